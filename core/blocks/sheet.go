package blocks

import (
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/trace"
)

// Sheet is a branch-probability file. Each line has one of the following forms. # begins a comment.
//
//	n = 1000                                         a parameter
//	rows = n/4                                       a parameter that depends on others
//	enter main = 1                                   invocations that do not come from direct calls
//	resume main back = 1                             executions that enter a block without an edge
//	made main entry = 99/100                         share of the block's calls that enter the function
//	main for.cond a.c:14 | for.body for.end = trip n
//	main if.cond a.c:15  | if.then if.else = 0.25, rest
//	main call a.c:16     | call+1 (leaves) = 999 : 1
//
// A branch line contains the function, the block, the source line (for information only; "-" if
// unknown), the successors in the order of the terminator, and, after "=", their frequencies.
// Blocks have the compiler's labels, with +n for the part after the n-th call. The last successor
// may be (leaves), which means that an exception, longjmp, or the end of the program ends the
// invocation. The frequencies have one of these forms:
//
//	0.25, 3/4       probabilities, which must sum to 1; one may be "rest"
//	99 : 1          weights
//	trip 100        for a branch that continues or leaves a loop: the rest of the loop's body
//	                (or the whole body, if the branch is at its end) runs 100 times per exit
//	?               unknown
//
// Numbers are exact rational numbers. A number may also be an expression with parameters, the
// operators + - * / ^, and the functions min, max, floor and ceil. Names with characters other than
// letters, digits and ._$-+ are quoted as in Go.
type Sheet struct {
	file       string
	parameters []parameter
	named      map[string]int // indices of parameters
	branches   []branch
	entries    []entry
}

type parameter struct {
	name, text string
	of         *expression
	line       int
}

// branch is a line of a branch-probability file that describes a branch. Such lines contain "|".
type branch struct {
	line            int
	function, block string
	ways            []string
	leaves          bool // the last successor is (leaves)
	kind            valueKind
	values          []*expression // nil if the frequency is "rest"
}

type valueKind uint8

const (
	notKnown valueKind = iota
	weights
	probabilities
	trips
)

// entry is a line of a branch-probability file that begins with enter, resume or made.
type entry struct {
	line                  int
	what, function, block string
	of                    *expression
}

// ParseSheet parses a branch-probability file. Errors contain the name of the file.
func ParseSheet(file string, text []byte) (*Sheet, error) {
	s := &Sheet{file: file, named: map[string]int{}}
	line := 0
	for l := range strings.Lines(string(text)) {
		line++
		if why := s.line(strings.TrimRight(l, "\r\n"), line); why != "" {
			return nil, s.fail(line, why, "")
		}
	}
	return s, nil
}

func (s *Sheet) fail(line int, why, do string) *Error {
	return &Error{Sheet: s.file + ":" + strconv.Itoa(line), Block: -1, Why: why, Do: do}
}

// splitWords splits a line into words. The results bar and equals are the positions of the words |
// and =, or -1 if the line does not contain them. The text after the character = is a single word.
func splitWords(l string) (list []string, bar, equals int, why string) {
	bar, equals = -1, -1
	for {
		l = strings.TrimLeft(l, " \t")
		if l == "" || l[0] == '#' {
			return list, bar, equals, ""
		}
		if l[0] == '"' {
			quoted, err := strconv.QuotedPrefix(l)
			if err != nil {
				return nil, 0, 0, "an opening quotation mark has no closing quotation mark"
			}
			word, _ := strconv.Unquote(quoted)
			list, l = append(list, word), l[len(quoted):]
			continue
		}
		end := strings.IndexAny(l, " \t")
		if end < 0 {
			end = len(l)
		}
		switch word := l[:end]; word {
		case "|":
			bar = len(list)
		case "=":
			equals = len(list)
			rest, _, _ := strings.Cut(l[end:], "#")
			return append(list, strings.TrimSpace(rest)), bar, equals, ""
		default:
			list = append(list, word)
		}
		l = l[end:]
	}
}

func (s *Sheet) line(l string, number int) (why string) {
	list, bar, equals, why := splitWords(l)
	switch {
	case why != "" || len(list) == 0:
		return why
	case equals < 0:
		return "the line contains no \"=\" between blanks, want a parameter, an entry or a branch"
	case bar >= 0:
		return s.branch(list, bar, equals, number)
	}
	value := list[equals]
	if equals == 1 && isName(list[0]) {
		if i, ok := s.named[list[0]]; ok {
			return "the parameter " + list[0] + " is defined twice, first on line " + strconv.Itoa(s.parameters[i].line)
		}
		s.named[list[0]] = len(s.parameters)
		e, why := parseExpression(value)
		s.parameters = append(s.parameters, parameter{list[0], value, e, number})
		return why
	}
	e := entry{line: number, what: list[0]}
	switch {
	case equals == 2 && e.what == "enter":
		e.function = list[1]
	case equals == 3 && (e.what == "resume" || e.what == "made"):
		e.function, e.block = list[1], list[2]
	default:
		return "cannot read this line, want NAME = NUMBER, enter FUNCTION = NUMBER, resume FUNCTION BLOCK = NUMBER, made FUNCTION BLOCK = NUMBER, or FUNCTION BLOCK LINE | SUCCESSORS = NUMBERS"
	}
	e.of, why = parseExpression(value)
	s.entries = append(s.entries, e)
	return why
}

func (s *Sheet) branch(list []string, bar, equals, number int) (why string) {
	if bar < 2 || bar > 3 || equals == bar {
		return "want FUNCTION BLOCK LINE | SUCCESSORS = NUMBERS"
	}
	b := branch{line: number, function: list[0], block: list[1], ways: list[bar:equals]}
	if last := len(b.ways) - 1; b.ways[last] == "(leaves)" {
		b.ways, b.leaves = b.ways[:last], true
	}
	ways := equals - bar
	value := list[equals]
	if trip, ok := strings.CutPrefix(value, "trip "); ok {
		b.kind = trips
		e, why := parseExpression(trip)
		b.values = []*expression{e}
		s.branches = append(s.branches, b)
		return why
	}
	if value == "?" {
		s.branches = append(s.branches, b)
		return ""
	}
	b.kind = weights
	parts := splitOutside(value, ':')
	if len(parts) == 1 {
		b.kind, parts = probabilities, splitOutside(value, ',')
	}
	if len(parts) != ways {
		return strconv.Itoa(len(parts)) + " numbers for " + strconv.Itoa(ways) + " successors; separate probabilities by commas, and weights by colons"
	}
	rests := 0
	for _, part := range parts {
		part = strings.TrimSpace(part)
		if part == "rest" && b.kind == probabilities {
			rests++
			b.values = append(b.values, nil)
			continue
		}
		e, why := parseExpression(part)
		if why != "" {
			return why
		}
		b.values = append(b.values, e)
	}
	if rests > 1 {
		return "several successors have the probability \"rest\", want at most one"
	}
	s.branches = append(s.branches, b)
	return ""
}

// splitOutside splits text at each occurrence of a character that is not in parentheses.
func splitOutside(text string, at byte) (parts []string) {
	depth, from := 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '(':
			depth++
		case ')':
			depth--
		case at:
			if depth == 0 {
				parts = append(parts, text[from:i])
				from = i + 1
			}
		}
	}
	return append(parts, text[from:])
}

// Parameter is a parameter of a branch-probability file.
type Parameter struct{ Name, Expression string }

// Parameters lists the parameters, in the order of the file.
func (s *Sheet) Parameters() []Parameter {
	list := make([]Parameter, len(s.parameters))
	for i := range s.parameters {
		list[i] = Parameter{s.parameters[i].name, s.parameters[i].text}
	}
	return list
}

// Model is a system whose weights are computed from a branch-probability file and from values of
// the file's parameters.
type Model struct {
	System *System
	sheet  *Sheet
	blocks []int // by branch in the file: the number of its block
	places []int // by entry in the file: the number of its function or block
}

// Bind finds the file's branches in a system. Branches that are not in the file keep their weights.
func (s *Sheet) Bind(system *System) (*Model, error) {
	m := &Model{System: system, sheet: s, blocks: make([]int, len(s.branches)), places: make([]int, len(s.entries))}
	functions := map[string]int{} // function by name; -1 if several functions have the name
	for n := range system.program.Functions {
		name := system.program.Functions[n].Name
		if _, ok := functions[name]; ok {
			functions[name] = -1
		} else {
			functions[name] = n
		}
		functions[system.fullName(n)] = n
	}
	var b finder
	for i := range s.branches {
		l := &s.branches[i]
		at, err := b.find(s, system, functions, l.function, l.block, l.line)
		if err != nil {
			return nil, err
		}
		if err := s.fits(l, system, at); err != nil {
			return nil, err
		}
		m.blocks[i] = at
	}
	for i := range s.entries {
		e := &s.entries[i]
		n, known := functions[e.function]
		switch {
		case e.block != "":
			at, err := b.find(s, system, functions, e.function, e.block, e.line)
			if err != nil {
				return nil, err
			}
			n = at
		case !known || n < 0:
			return nil, s.noFunction(e.function, e.line, known)
		}
		m.places[i] = n
	}
	return m, nil
}

func (s *Sheet) noFunction(name string, line int, several bool) *Error {
	if several {
		return s.fail(line, "several modules have a function "+name, "add its module to the name: "+name+"@FILE")
	}
	return s.fail(line, "the program has no function "+name, "the file may belong to a different program or build")
}

// finder finds blocks by label. It caches the labels of the last function.
type finder struct {
	function int
	labels   map[string]int
}

func (f *finder) find(s *Sheet, system *System, functions map[string]int, function, block string, line int) (int, error) {
	n, ok := functions[function]
	if !ok || n < 0 {
		return 0, s.noFunction(function, line, ok)
	}
	if f.labels == nil || f.function != n {
		f.function, f.labels = n, map[string]int{}
		about := &system.program.Functions[n]
		for b := about.First; b < about.First+about.Blocks; b++ {
			if system.program.Blocks[b].Flags&trace.Synthetic == 0 {
				f.labels[Label(&system.program.Blocks[b])] = int(b)
			}
		}
	}
	at, ok := f.labels[block]
	if !ok {
		return 0, s.fail(line, function+" has no block "+block, "the file may belong to a different program or build")
	}
	return at, nil
}

// fits returns an error if the successors of a branch in the file differ from the successors of the
// block.
func (s *Sheet) fits(l *branch, system *System, at int) error {
	next := system.program.Blocks[at].Successors
	var want []string
	for _, n := range next {
		want = append(want, Label(&system.program.Blocks[n]))
	}
	if !slices.Equal(want, l.ways) {
		return s.fail(l.line, "block "+l.block+" of "+l.function+" continues to "+strings.Join(want, " ")+", but the file says "+strings.Join(l.ways, " "),
			"the file may belong to a different program or build")
	}
	return nil
}

// fullName returns a function's name with its module.
func (s *System) fullName(n int) string {
	f := &s.program.Functions[n]
	if uint64(f.Module) < uint64(len(s.program.Modules)) {
		return f.Name + "@" + s.program.Modules[f.Module].Name
	}
	return f.Name
}

// Set computes the weights of the system for the given parameter values. All other parameters keep
// their values from the file.
func (m *Model) Set(values map[string]*big.Rat) error {
	get := m.sheet.parameterGetter(values)
	for i := range m.sheet.branches {
		l := &m.sheet.branches[i]
		if err := m.set(l, m.blocks[i], get); err != nil {
			return err
		}
	}
	for i := range m.sheet.entries {
		e := &m.sheet.entries[i]
		v, why := e.of.value(get)
		if why != "" {
			return m.sheet.fail(e.line, why, "")
		}
		if e.what == "made" {
			if v.Sign() < 0 || v.Num().Cmp(v.Denom()) > 0 || !v.Denom().IsUint64() {
				return m.sheet.fail(e.line, "the share is "+formatNumber(v)+", want 0 to 1", "")
			}
			m.System.setMade(m.places[i], share{v.Num().Uint64(), v.Denom().Uint64()})
			continue
		}
		if !v.IsInt() || v.Sign() < 0 || v.Num().BitLen() > 62 {
			return m.sheet.fail(e.line, formatNumber(v)+" times, want a whole number from 0 to 2^62", "")
		}
		if e.what == "enter" {
			m.System.Enter(m.places[i], v.Num().Uint64())
		} else {
			m.System.Resume(m.places[i], v.Num().Uint64())
		}
	}
	return nil
}

// setMade sets the share of a block's calls that enter the called function.
func (s *System) setMade(block int, made share) {
	if made.part == made.whole {
		made = share{}
	}
	if s.made[block] != made {
		s.made[block] = made
		s.markUnsolved(block)
	}
}

// parameterGetter returns a function that returns the value of a parameter, and computes each value
// only once.
func (s *Sheet) parameterGetter(values map[string]*big.Rat) func(string) (*big.Rat, string) {
	known := map[string]*big.Rat{}
	open, depth := map[string]bool{}, 0
	var get func(string) (*big.Rat, string)
	get = func(name string) (*big.Rat, string) {
		if v, ok := values[name]; ok {
			return v, ""
		}
		if v, ok := known[name]; ok {
			return v, ""
		}
		i, ok := s.named[name]
		switch {
		case !ok:
			return nil, "there is no parameter " + name + "; define it as " + name + " = NUMBER"
		case open[name]:
			return nil, "the parameter " + name + " depends on itself"
		case depth == maxDepth:
			return nil, "more than " + strconv.Itoa(maxDepth) + " parameters depend on each other"
		}
		open[name] = true
		depth++
		v, why := s.parameters[i].of.value(get)
		depth--
		open[name] = false
		if why == "" {
			known[name] = v
		}
		return v, why
	}
	return get
}

func (m *Model) set(l *branch, at int, get func(string) (*big.Rat, string)) error {
	fail := func(why, do string) error {
		e := m.System.fail(at, why, do)
		e.Sheet = m.sheet.file + ":" + strconv.Itoa(l.line)
		return e
	}
	n := len(l.ways)
	values := make([]*big.Rat, len(l.values))
	for i, e := range l.values {
		if e == nil {
			continue
		}
		v, why := e.value(get)
		if why != "" {
			return fail(why, "")
		}
		values[i] = v
	}
	switch l.kind {
	case notKnown:
		return m.System.Set(at, make([]uint64, n), 0)
	case trips:
		var why string
		if values, why = m.System.tripWeights(at, values[0]); why != "" {
			return fail(why, "")
		}
		if l.leaves {
			return fail("\"trip\" cannot describe a branch that may also leave the function", "use weights instead")
		}
	case probabilities:
		if why := distribute(values); why != "" {
			return fail(why, "make the probabilities sum to 1, write \"rest\" for one successor, or separate weights by colons")
		}
	default:
		for _, v := range values {
			if v.Sign() < 0 {
				return fail("the weight is "+formatNumber(v)+", want 0 or more", "")
			}
		}
	}
	list, ok := integers(values)
	if !ok {
		return fail("the weights of the branch need more than 63 bits as whole numbers", "write the numbers with fewer digits")
	}
	leaves := uint64(0)
	if l.leaves {
		leaves, list = list[n], list[:n]
	}
	return m.System.Set(at, list, leaves)
}

// formatNumber formats a number as an integer or a decimal number if possible, and otherwise as a
// fraction.
func formatNumber(v *big.Rat) string {
	if text := v.RatString(); len(text) <= 20 {
		return text
	}
	f, _ := v.Float64()
	return strconv.FormatFloat(f, 'g', 6, 64)
}

// tripWeights converts a trip count to weights of the branch that continues or leaves the loop.
func (s *System) tripWeights(b int, count *big.Rat) (list []*big.Rat, why string) {
	next := s.program.Blocks[b].Successors
	if len(next) != 2 || s.leavesLoop(b, int(next[0])) == s.leavesLoop(b, int(next[1])) {
		return nil, "\"trip\" requires a branch with one successor inside the loop and one outside"
	}
	stays := 0
	if s.leavesLoop(b, int(next[0])) {
		stays = 1
	}
	list = []*big.Rat{big.NewRat(1, 1), big.NewRat(1, 1)}
	list[stays] = count
	least := "0"
	if s.endsBody(b, int(next[stays])) {
		list[stays] = new(big.Rat).Sub(count, list[1-stays])
		least = "1"
	}
	if list[stays].Sign() < 0 {
		return nil, "the trip count is " + formatNumber(count) + ", want " + least + " or more"
	}
	return list, ""
}

// endsBody reports whether an edge leads from the end of a loop's body back to the header.
func (s *System) endsBody(b, next int) bool { return uint32(next)+1 == s.program.Blocks[b].Loop }

// distribute checks probabilities. If an element is nil, it assigns the remaining probability to
// this element.
func distribute(values []*big.Rat) (why string) {
	sum, rest := new(big.Rat), -1
	for i, v := range values {
		switch {
		case v == nil:
			rest = i
		case v.Sign() < 0 || v.Cmp(big.NewRat(1, 1)) > 0:
			return "the probability is " + formatNumber(v) + ", want 0 to 1"
		default:
			sum.Add(sum, v)
		}
	}
	left := new(big.Rat).Sub(big.NewRat(1, 1), sum)
	if rest >= 0 && left.Sign() >= 0 {
		values[rest] = left
		return ""
	}
	if left.Sign() != 0 {
		return "the probabilities sum to " + formatNumber(sum) + ", want 1"
	}
	return ""
}

// integers returns integers that have the same proportions as the given values. Their sum has at
// most 63 bits.
func integers(values []*big.Rat) ([]uint64, bool) {
	scale, common := big.NewInt(1), new(big.Int)
	for _, v := range values {
		common.GCD(nil, nil, scale, v.Denom())
		scale.Mul(scale, new(big.Int).Quo(v.Denom(), common))
		if scale.BitLen() > 1<<16 {
			return nil, false
		}
	}
	whole, divisor := make([]*big.Int, len(values)), new(big.Int)
	for i, v := range values {
		whole[i] = new(big.Int).Mul(v.Num(), new(big.Int).Quo(scale, v.Denom()))
		divisor.GCD(nil, nil, divisor, whole[i])
	}
	list, sum := make([]uint64, len(values)), new(big.Int)
	for i, n := range whole {
		if divisor.Sign() > 0 {
			n.Quo(n, divisor)
		}
		sum.Add(sum, n)
		if !n.IsUint64() {
			return nil, false
		}
		list[i] = n.Uint64()
	}
	return list, sum.BitLen() <= 63
}
