package pipeline

import (
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Error is an error in a description.
type Error struct {
	Line int // line number; 0 if the error does not concern a particular line
	Text string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Text
	}
	return "line " + strconv.Itoa(e.Line) + ": " + e.Text
}

// mostBytes is the maximum size of a description.
const mostBytes = 1 << 20

// Read parses the description of a processor (see the package documentation for the format), or a
// PPT hardware file. The error is an [*Error].
func Read(text []byte) (*Processor, error) {
	if len(text) > mostBytes {
		return nil, &Error{0, "the file is larger than 1 MiB, but a description of a processor is much smaller"}
	}
	if isPPT(string(text)) {
		return readPPT(string(text))
	}
	r := &descriptionReader{p: &Processor{}, port: map[string]int{}, seen: map[string]bool{}}
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		r.line = n
		if err := r.read(strings.TrimRight(line, " \t\r\n")); err != nil {
			return nil, &Error{n, err.Error()}
		}
	}
	if err := r.p.checkComplete(); err != nil {
		return nil, err
	}
	return r.p, nil
}

// descriptionReader parses a description line by line.
type descriptionReader struct {
	p       *Processor
	line    int
	section string // current section of indented lines: "classes", "levels" or "notes"
	port    map[string]int
	seen    map[string]bool
}

func (r *descriptionReader) read(line string) error {
	content := strings.TrimLeft(line, " ")
	switch {
	case content == "" || strings.HasPrefix(content, "#"):
		return nil
	case strings.HasPrefix(content, "\t"):
		return errors.New("a tab, want spaces before the entries of " + strconv.Quote(r.section))
	}
	inside := len(content) < len(line)
	if item, isItem := strings.CutPrefix(content, "- "); isItem && r.section == "notes" {
		r.p.Notes = append(r.p.Notes, item)
		return nil
	}
	if before, _, comment := strings.Cut(content, " #"); comment {
		content = strings.TrimRight(before, " ")
	}
	key, value, ok := strings.Cut(content, ":")
	if !ok || key == "" {
		return errors.New(strconv.Quote(shorten(content)) + ", want key: value")
	}
	value = strings.TrimSpace(value)
	if inside {
		return r.inside(key, value)
	}
	if r.section = ""; r.seen[key] {
		return errors.New("duplicate key " + strconv.Quote(shorten(key)))
	}
	r.seen[key] = true
	return r.top(key, value)
}

// shorten limits the length of a text that an error message quotes.
func shorten(s string) string {
	if len(s) > 60 {
		return s[:60] + "…"
	}
	return s
}

func (r *descriptionReader) top(key, value string) (err error) {
	switch key {
	case "name":
		r.p.Name = value
	case "title":
		r.p.Title = value
	case "isa":
		r.p.ISA = value
	case "source":
		r.p.Source = value
	case "clock_ghz":
		r.p.ClockGHz, err = cycles(value, "a number above 0")
	case "dispatch":
		r.p.Dispatch, err = count(value, 1, 64, "1 to 64 micro-ops per cycle")
	case "window":
		r.p.Window, err = count(value, 1, 1<<20, "1 to 1048576 micro-ops")
	case "scheduler":
		r.p.Scheduler, err = count(value, 1, 1<<20, "1 to 1048576 micro-ops")
	case "ports":
		return r.ports(value)
	case "fuses":
		return r.fuses(value)
	case "transfers":
		at := slices.Index(overlaps[1:], value)
		if at < 0 {
			return errors.New("transfers " + strconv.Quote(shorten(value)) + ", want " + strings.Join(overlaps[1:], " or "))
		}
		r.p.Overlap = Overlap(at + 1)
	case "classes", "levels", "notes":
		if r.section = key; value != "" {
			return errors.New(strconv.Quote(shorten(value)) + " follows " + key + ": on the same line, want each entry on a line of its own")
		}
		if key == "classes" && len(r.p.Ports) == 0 {
			return errors.New("classes before ports, want the ports first")
		}
	default:
		return errors.New("unknown key " + strconv.Quote(shorten(key)) + ", want name, title, isa, source, clock_ghz, dispatch, window, scheduler, ports, fuses, transfers, levels, classes or notes")
	}
	return err
}

func (r *descriptionReader) ports(value string) error {
	for name := range strings.FieldsSeq(value) {
		if strings.ContainsAny(name, "|+*,:#") {
			return errors.New("a port named " + strconv.Quote(shorten(name)) + ", want a name without | + * , : #")
		}
		if _, again := r.port[name]; again {
			return errors.New("duplicate port " + strconv.Quote(shorten(name)))
		}
		r.port[name] = len(r.p.Ports)
		r.p.Ports = append(r.p.Ports, name)
	}
	if len(r.p.Ports) == 0 || len(r.p.Ports) > mostPorts {
		return errors.New(strconv.Itoa(len(r.p.Ports)) + " ports, want 1 to " + strconv.Itoa(mostPorts))
	}
	return nil
}

func (r *descriptionReader) fuses(value string) error {
next:
	for word := range strings.FieldsSeq(value) {
		for _, f := range fusions {
			if f.name == word {
				r.p.Fuses |= f.bit
				continue next
			}
		}
		return errors.New("fuses " + strconv.Quote(shorten(word)) + ", want compare-branch, compare-select, extend-address or load-operation")
	}
	return nil
}

func (r *descriptionReader) inside(key, value string) error {
	switch r.section {
	case "classes":
		return r.parseClass(key, value)
	case "levels":
		l, err := parseLevel(key, value)
		r.p.Levels = append(r.p.Levels, l)
		if err == nil && len(r.p.Levels) > 16 {
			return errors.New("more than 16 levels of memory")
		}
		return err
	}
	return errors.New(strconv.Quote(shorten(key)) + " is indented, want indented lines only below classes:, levels: or notes:")
}

// levelCycles lists the entries of a level whose values are numbers of cycles.
var levelCycles = [...]struct {
	name string
	of   func(*Level) *float64
}{
	{"latency", func(l *Level) *float64 { return &l.LatencyCycles }},
	{"read", func(l *Level) *float64 { return &l.ReadCycles }},
	{"written", func(l *Level) *float64 { return &l.WrittenCycles }},
	{"scattered", func(l *Level) *float64 { return &l.ScatteredCycles }},
	{"stored", func(l *Level) *float64 { return &l.StoredCycles }},
}

// parseLevel parses a level, such as `latency 14, size 1MiB, ways 16, read 1.5`. A value without
// spaces is the latency.
func parseLevel(name, value string) (l Level, err error) {
	l.Name = name
	if !strings.Contains(value, " ") {
		l.LatencyCycles, err = cycles(value, "cycles above 0")
		return l, err
	}
	for part := range strings.SplitSeq(value, ",") {
		word, rest, _ := strings.Cut(strings.TrimSpace(part), " ")
		err = errors.New(strconv.Quote(shorten(part)) + ", want latency, size, ways, read, written, scattered or stored")
		switch word {
		case "size":
			l.SizeBytes, err = sizeOf(rest)
		case "ways":
			var n int
			n, err = count(rest, 1, 1<<16, "1 to 65536 ways")
			l.Ways = uint32(n)
		default:
			for _, field := range levelCycles {
				if field.name == word {
					*field.of(&l), err = cycles(rest, "cycles above 0")
				}
			}
		}
		if err != nil {
			return l, err
		}
	}
	if l.LatencyCycles == 0 {
		return l, errors.New(name + " has no latency")
	}
	return l, nil
}

// sizes lists the units for sizes, in descending order.
var sizes = [...]struct {
	name  string
	bytes uint64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}

func sizeOf(text string) (uint64, error) {
	text = strings.TrimSpace(text)
	for _, unit := range sizes {
		if digits, ok := strings.CutSuffix(text, unit.name); ok {
			n, err := count(digits, 1, 1<<20, "a size such as 48KiB or 2MiB")
			return uint64(n) * unit.bytes, err
		}
	}
	return 0, errors.New(strconv.Quote(shorten(text)) + ", want a size such as 48KiB or 2MiB")
}

// format returns a level in the syntax that parseLevel parses.
func (l *Level) format() string {
	if *l == (Level{Name: l.Name, LatencyCycles: l.LatencyCycles}) {
		return decimal(l.LatencyCycles)
	}
	text := "latency " + decimal(l.LatencyCycles)
	if l.SizeBytes > 0 {
		for _, unit := range sizes {
			if l.SizeBytes%unit.bytes == 0 {
				text += ", size " + strconv.FormatUint(l.SizeBytes/unit.bytes, 10) + unit.name
				break
			}
		}
	}
	if l.Ways > 0 {
		text += ", ways " + strconv.Itoa(int(l.Ways))
	}
	for _, field := range levelCycles[1:] {
		if cycles := *field.of(l); cycles > 0 {
			text += ", " + field.name + " " + decimal(cycles)
		}
	}
	return text
}

// parseClass parses a class, such as `fadd double: latency 3, uops 1, ports P1|P5`.
func (r *descriptionReader) parseClass(key, value string) error {
	name, typ, _ := strings.Cut(key, " ")
	if !isClass(name) {
		return errors.New("unknown class " + strconv.Quote(shorten(name)) + ", want one of " + strings.Join(classNames(), ", "))
	}
	if of := shapeOf(typ); typ != "" && of.String() != typ {
		return errors.New("type " + strconv.Quote(shorten(typ)) + ", want i32, i64, float, double, a vector of 2 to 64 of these types (or of i8 or i16) such as <4 x float>, or none")
	}
	k := Key{Class(name), typ}
	if _, again := r.p.costs[k]; again {
		return errors.New("duplicate class " + k.String())
	}
	c := Cost{MicroOps: 1}
	latency := false
	for part := range strings.SplitSeq(value, ",") {
		word, rest, _ := strings.Cut(strings.TrimSpace(part), " ")
		var err error
		switch word {
		case "latency":
			latency = true
			c.Latency, err = number(rest, 0, "a latency of 0 to 1000000 cycles")
		case "addend":
			c.Addend, err = cycles(rest, "a latency above 0 cycles")
		case "again":
			c.Again, err = cycles(rest, "a latency above 0 cycles")
		case "uops":
			c.MicroOps, err = count(rest, 0, mostMicroOps, "0 to 10000 micro-ops")
		case "ports":
			c.Uses, err = r.parseUses(rest)
		default:
			return errors.New(strconv.Quote(shorten(part)) + ", want latency, addend, again, uops or ports")
		}
		if err != nil {
			return err
		}
	}
	if !latency {
		return errors.New(k.String() + " has no latency")
	}
	r.p.Set(k, c)
	return nil
}

// parseUses parses ports, such as `P0|P1 + 4*P5`.
func (r *descriptionReader) parseUses(text string) (list []Use, err error) {
	for term := range strings.SplitSeq(text, "+") {
		u := Use{Cycles: 1}
		n := 1
		term = strings.TrimSpace(term)
		if before, after, ok := strings.Cut(term, "x "); ok && strings.Trim(before, "0123456789") == "" {
			if n, err = count(before, 1, mostUses, "1 to 256 micro-ops"); err != nil {
				return nil, err
			}
			term = after
		}
		if before, after, ok := strings.Cut(term, "*"); ok {
			if u.Cycles, err = cycles(strings.TrimSpace(before), "cycles above 0"); err != nil {
				return nil, err
			}
			term = after
		}
		for name := range strings.SplitSeq(term, "|") {
			name = strings.TrimSpace(name)
			at, found := r.port[name]
			if !found {
				return nil, errors.New("port " + strconv.Quote(shorten(name)) + " is not defined, want one or more of " + strings.Join(r.p.Ports, " "))
			}
			u.Ports |= 1 << at
		}
		for range n {
			list = append(list, u)
		}
		if len(list) > mostUses {
			return nil, errors.New("more than 256 micro-ops")
		}
	}
	return list, nil
}

func number(text string, least float64, want string) (float64, error) {
	x, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || math.IsNaN(x) || x < least || x > mostCycles {
		return 0, errors.New(strconv.Quote(shorten(text)) + ", want " + want)
	}
	return x, nil
}

func cycles(text, want string) (float64, error) {
	x, err := number(text, 0, want)
	if err == nil && x <= 0 {
		err = errors.New(strconv.Quote(shorten(text)) + ", want " + want)
	}
	return x, err
}

func count(text string, least, most int, want string) (int, error) {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || n < least || n > most {
		return 0, errors.New(strconv.Quote(shorten(text)) + ", want " + want)
	}
	return n, nil
}

func classNames() (names []string) {
	for _, class := range slices.AppendSeq(slices.Clone(withoutSubstitute), maps.Keys(substitutes)) {
		names = append(names, string(class))
	}
	slices.Sort(names)
	return names
}

// checkComplete returns an error if a description is incomplete.
func (p *Processor) checkComplete() error {
	switch {
	case p.Name == "":
		return &Error{0, `the entry "name:" is missing`}
	case len(p.Ports) == 0:
		return &Error{0, `the entry "ports:" is missing, want at least one port`}
	case p.Dispatch == 0:
		return &Error{0, "the entry \"dispatch:\" is missing, want the number of micro-ops that enter the core per cycle"}
	case len(p.keys) == 0:
		return &Error{0, `the entry "classes:" is missing`}
	}
	return nil
}

// String returns the type in LLVM's syntax.
func (s shape) String() string {
	if s.elements == 0 {
		return s.element
	}
	return vectorOf(s.elements, s.element)
}

// Write returns the description in the format that [Read] parses.
func (p *Processor) Write() []byte {
	var w []byte
	line := func(parts ...string) { w = append(append(w, strings.Join(parts, "")...), '\n') }
	field := func(key, value string) {
		if value != "" {
			line(key, ": ", value)
		}
	}
	field("name", p.Name)
	field("title", p.Title)
	field("isa", p.ISA)
	field("source", p.Source)
	if p.ClockGHz > 0 {
		field("clock_ghz", decimal(p.ClockGHz))
	}
	for _, n := range []struct {
		key   string
		value int
	}{{"dispatch", p.Dispatch}, {"window", p.Window}, {"scheduler", p.Scheduler}} {
		if n.value > 0 {
			field(n.key, strconv.Itoa(n.value))
		}
	}
	field("ports", strings.Join(p.Ports, " "))
	var fuses []string
	for _, f := range fusions {
		if p.Fuses&f.bit != 0 {
			fuses = append(fuses, f.name)
		}
	}
	field("fuses", strings.Join(fuses, " "))
	field("transfers", overlaps[p.Overlap])
	if len(p.Notes) > 0 {
		line("notes:")
		for _, note := range p.Notes {
			line("  - ", note)
		}
	}
	if len(p.Levels) > 0 {
		line("levels:")
		for _, l := range p.Levels {
			line("  ", l.Name, ": ", l.format())
		}
	}
	line("classes:")
	for _, k := range p.keys {
		c := p.costs[k]
		addend := ""
		if c.Addend > 0 {
			addend = ", addend " + decimal(c.Addend)
		}
		if c.Again > 0 {
			addend += ", again " + decimal(c.Again)
		}
		uses := ""
		if len(c.Uses) > 0 {
			uses = ", ports " + p.usesText(c.Uses)
		}
		line("  ", k.String(), ": latency ", decimal(c.Latency), addend, ", uops ", strconv.Itoa(c.MicroOps), uses)
	}
	return w
}

// usesText formats uses, such as 2x P0|P1 + 4*P5, and combines equal uses.
func (p *Processor) usesText(uses []Use) string {
	var terms []string
	for i, u := range uses {
		n, first := 0, i
		for k := len(uses) - 1; k >= 0; k-- {
			if u.Ports == uses[k].Ports && u.Cycles == uses[k].Cycles {
				n, first = n+1, k
			}
		}
		if first < i {
			continue
		}
		term := p.PortNames(u.Ports)
		if u.Cycles != 1 {
			term = decimal(u.Cycles) + "*" + term
		}
		if n > 1 {
			term = strconv.Itoa(n) + "x " + term
		}
		terms = append(terms, term)
	}
	return strings.Join(terms, " + ")
}

func decimal(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
