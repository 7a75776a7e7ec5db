package config

import (
	"math"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/hierarchy"
)

// value is what a Python expression of a hardware file is worth.
type value struct {
	numbers []float64
	list    bool
}

// pptParser keeps what the names of a hardware file stand for. It evaluates
// numbers, lists, names, indices and arithmetic; whatever else a file has (texts,
// dictionaries of pipelines, calls) is passed over, for it says nothing of
// caches.
type pptParser struct {
	values map[string]value
	lines  map[string]int // where a name was given its value
}

// readPPT reads a hardware file of PPT.
func readPPT(text string) (h hierarchy.Hierarchy, notes []string, err error) {
	p := &pptParser{values: map[string]value{}, lines: map[string]int{}}
	for _, s := range statements(text) {
		if err := p.assign(s); err != nil {
			return h, nil, err
		}
	}
	sizes := p.values["cache_sizes"]
	if !sizes.list || len(sizes.numbers) == 0 || len(sizes.numbers) > mostLevels {
		return h, nil, errorAt(p.lines["cache_sizes"], "cache_sizes, want a list of 1 to 16 sizes in bytes")
	}
	clock := p.number("clockspeed")
	h.ClockGHz = positive(clock / 1e9)
	for i := range sizes.numbers {
		cache, err := p.cache(i, clock)
		if err != nil {
			return h, nil, err
		}
		h.Levels = append(h.Levels, cache)
	}
	h.Memory.LatencyCycles = positive(p.number("ram_cycles"))
	if h.Memory.LatencyCycles == 0 {
		h.Memory.LatencyCycles = positive(p.number("ram_latency") * clock)
	}
	if clock > 0 {
		h.Memory.BytesPerCycle = positive(p.number("bw_ram") / clock)
	}
	if len(p.values["associativity"].numbers) == 0 {
		notes = append(notes, "the file says nothing of associativity: its caches are taken as fully associative")
	}
	if len(p.values["cache_bandwidth_cycles"].numbers) > 0 {
		notes = append(notes, "cache_bandwidth_cycles has units that differ from file to file, and is left out")
	}
	return h, notes, nil
}

// positive is x to a millionth where it is a number above zero that a hierarchy
// can have, else 0: products of times and clocks are not exact to more.
func positive(x float64) float64 {
	x = math.Round(x*1e6) / 1e6
	if _, ok := hierarchy.ParsePositive(hierarchy.FormatNumber(x)); !ok {
		return 0
	}
	return x
}

// cache makes level i, from 0.
func (p *pptParser) cache(i int, clock float64) (hierarchy.Cache, error) {
	c := hierarchy.Cache{Name: "L" + strconv.Itoa(i+1), LineBytes: hierarchy.DefaultLineBytes}
	whole := func(name string, most float64) (uint64, error) {
		x := p.item(name, i)
		if x == 0 || x == math.Trunc(x) && x > 0 && x <= most {
			return uint64(x), nil
		}
		return 0, errorAt(p.lines[name], name, "[", strconv.Itoa(i), "] is ", hierarchy.FormatNumber(x), ", want a whole number above 0")
	}
	var err error
	if c.SizeBytes, err = whole("cache_sizes", 1<<50); err != nil {
		return c, err
	}
	ways, err := whole("associativity", 1<<31)
	if err != nil {
		return c, err
	}
	line, err := whole("cache_line_sizes", 4096)
	if err != nil {
		return c, err
	}
	if c.Ways = uint32(ways); line != 0 {
		c.LineBytes = uint32(line)
	}
	if c.LatencyCycles = positive(p.item("cache_cycles", i)); c.LatencyCycles == 0 {
		c.LatencyCycles = positive(p.item("cache_latency", i) * clock)
	}
	if err := c.Check(); err != nil {
		return c, errorAt(p.lines["cache_sizes"], c.String(), ", want ", wantOf(err))
	}
	return c, nil
}

// number is a name's number, 0 where there is none.
func (p *pptParser) number(name string) float64 {
	if v := p.values[name]; !v.list && len(v.numbers) == 1 {
		return v.numbers[0]
	}
	return 0
}

// item is a number of a name's list, 0 where there is none.
func (p *pptParser) item(name string, i int) float64 {
	if v := p.values[name]; v.list && i < len(v.numbers) {
		return v.numbers[i]
	}
	return 0
}

// statement is a logical line: brackets hold lines together.
type statement struct {
	text string
	line int // the first one
}

// statements cuts a Python file into logical lines, without comments and texts
// over several lines.
func statements(text string) (list []statement) {
	var (
		current []byte
		open    int
		line    = 1
		first   = 1
	)
	end := func() {
		if whole := strings.TrimSpace(string(current)); whole != "" {
			list = append(list, statement{whole, first})
		}
		current, first = current[:0], line+1
	}
	for i := 0; i < len(text); i++ {
		rest := text[i:]
		switch c := text[i]; {
		case strings.HasPrefix(rest, `'''`), strings.HasPrefix(rest, `"""`):
			length := strings.Index(rest[3:], rest[:3])
			if length < 0 {
				return list
			}
			line += strings.Count(rest[:length+3], "\n")
			i += length + 5
		case c == '#':
			for i+1 < len(text) && text[i+1] != '\n' {
				i++
			}
		case c == '\n' && open == 0:
			end()
			line++
		case c == '\n':
			current = append(current, ' ')
			line++
		default:
			if strings.IndexByte("([{", c) >= 0 {
				open++
			} else if strings.IndexByte(")]}", c) >= 0 {
				open = max(0, open-1)
			}
			current = append(current, c)
		}
	}
	end()
	return list
}

// assign evaluates a statement, if it gives a name its value. A dictionary gives
// each of its keys one.
func (p *pptParser) assign(s statement) error {
	e := &expression{text: s.text, values: p.values}
	name := e.name()
	if !e.next('=') || name == "" {
		return nil
	}
	if e.next('{') {
		for !e.failed && !e.next('}') {
			key := e.quoted()
			if !e.next(':') {
				return nil
			}
			from := e.at
			if v := e.value(); !e.failed {
				if err := p.set(key, s.line, v); err != nil {
					return err
				}
			} else { // of no interest: go on behind it
				e.skip(from)
			}
			e.next(',')
		}
		return nil
	}
	v := e.value()
	if e.blank(); e.failed || e.at < len(e.text) {
		if name == "cache_sizes" {
			return errorAt(s.line, "cache_sizes is more than numbers, lists and arithmetic on names that were given before")
		}
		delete(p.values, name)
		return nil
	}
	return p.set(name, s.line, v)
}

func (p *pptParser) set(name string, line int, v value) error {
	if before, again := p.lines[name]; again && name == "cache_sizes" {
		return errorAt(line, "cache_sizes a second time, after line ", strconv.Itoa(before), ": want a file with one processor")
	}
	p.values[name], p.lines[name] = v, line
	return nil
}

// expression evaluates Python's arithmetic: the rules are those of its grammar,
// one method each.
type expression struct {
	text   string
	at     int
	depth  int
	values map[string]value
	failed bool
}

func (e *expression) blank() {
	for e.at < len(e.text) && strings.IndexByte(" \t\r\\", e.text[e.at]) >= 0 {
		e.at++
	}
}

func (e *expression) next(c byte) bool {
	e.blank()
	if e.at < len(e.text) && e.text[e.at] == c {
		e.at++
		return true
	}
	return false
}

// name takes a name, without the object that it is of.
func (e *expression) name() string {
	e.blank()
	from := e.at
	for e.at < len(e.text) {
		c := e.text[e.at]
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (e.at == from || c < '0' || c > '9') {
			break
		}
		e.at++
	}
	name := e.text[from:e.at]
	if name == "self" && e.next('.') {
		return e.name()
	}
	return name
}

// quoted takes a text in quotation marks of either kind.
func (e *expression) quoted() string {
	for _, mark := range []byte(`"'`) {
		if e.next(mark) {
			from := e.at
			for e.at < len(e.text) && e.text[e.at] != mark {
				e.at++
			}
			text := e.text[from:e.at]
			e.next(mark)
			return text
		}
	}
	e.failed = true
	return ""
}

// skip goes on behind a member of a dictionary that could not be evaluated.
func (e *expression) skip(from int) {
	open := 0
	for e.at, e.failed = from, false; e.at < len(e.text); e.at++ {
		switch c := e.text[e.at]; {
		case strings.IndexByte("([{", c) >= 0:
			open++
		case open > 0 && strings.IndexByte(")]}", c) >= 0:
			open--
		case open == 0 && (c == ',' || c == '}'):
			return
		}
	}
	e.failed = true
}

// value is a list or a number.
func (e *expression) value() (v value) {
	if !e.next('[') {
		return e.sum()
	}
	v.list = true
	for !e.failed && !e.next(']') {
		item := e.sum()
		if e.failed = e.failed || item.list || len(v.numbers) > 64; e.failed {
			return v
		}
		v.numbers = append(v.numbers, item.numbers[0])
		if !e.next(',') && (e.at >= len(e.text) || e.text[e.at] != ']') {
			e.failed = true
		}
	}
	return v
}

func number(x float64) value { return value{numbers: []float64{x}} }

// binary applies an operator to two numbers.
func (e *expression) binary(a, b value, f func(x, y float64) float64) value {
	if e.failed = e.failed || a.list || b.list; e.failed {
		return number(0)
	}
	return number(f(a.numbers[0], b.numbers[0]))
}

func (e *expression) sum() value {
	e.depth++
	defer func() { e.depth-- }()
	if e.failed = e.failed || e.depth > 64; e.failed {
		return number(0)
	}
	v := e.product()
	for !e.failed {
		switch {
		case e.next('+'):
			v = e.binary(v, e.product(), func(x, y float64) float64 { return x + y })
		case e.next('-'):
			v = e.binary(v, e.product(), func(x, y float64) float64 { return x - y })
		default:
			return v
		}
	}
	return v
}

func (e *expression) product() value {
	v := e.power()
	for !e.failed {
		switch {
		case e.next('*'):
			v = e.binary(v, e.power(), func(x, y float64) float64 { return x * y })
		case e.next('/'):
			if whole := e.next('/'); whole {
				v = e.binary(v, e.power(), func(x, y float64) float64 { return math.Floor(x / y) })
			} else {
				v = e.binary(v, e.power(), func(x, y float64) float64 { return x / y })
			}
		default:
			return v
		}
	}
	return v
}

func (e *expression) power() value {
	if e.next('-') {
		return e.binary(number(0), e.nested((*expression).power), func(x, y float64) float64 { return x - y })
	}
	v := e.atom()
	if e.blank(); strings.HasPrefix(e.text[min(e.at, len(e.text)):], "**") {
		e.at += 2
		v = e.binary(v, e.nested((*expression).power), math.Pow)
	}
	return v
}

// nested is a rule inside itself, so deep and no deeper.
func (e *expression) nested(rule func(*expression) value) value {
	e.depth++
	defer func() { e.depth-- }()
	if e.failed = e.failed || e.depth > 64; e.failed {
		return number(0)
	}
	return rule(e)
}

// atom is a number, a name with or without an index, or a sum in brackets.
func (e *expression) atom() value {
	if e.next('(') {
		v := e.sum()
		if !e.next(')') {
			e.failed = true
		}
		return v
	}
	if name := e.name(); name != "" {
		v, known := e.values[name]
		if e.failed = e.failed || !known; e.failed {
			return number(0)
		}
		if v.list && e.next('[') {
			return e.index(v)
		}
		return v
	}
	from := e.at
	for e.at < len(e.text) {
		c := e.text[e.at]
		sign := (c == '+' || c == '-') && e.at > from && (e.text[e.at-1] == 'e' || e.text[e.at-1] == 'E')
		if c != '.' && (c < '0' || c > '9') && c != 'e' && c != 'E' && !sign {
			break
		}
		e.at++
	}
	x, err := strconv.ParseFloat(e.text[from:e.at], 64)
	if err != nil {
		e.failed = true
	}
	return number(x)
}

// index takes a number of a list.
func (e *expression) index(v value) value {
	at := e.sum()
	if !e.next(']') || at.list || e.failed {
		e.failed = true
		return number(0)
	}
	i := at.numbers[0]
	if i < 0 || i >= float64(len(v.numbers)) || i != math.Trunc(i) {
		e.failed = true
		return number(0)
	}
	return number(v.numbers[int(i)])
}
