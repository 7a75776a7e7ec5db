package loopcount

import (
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/loops/change"
	"github.com/stackglass/stackglass/core/loops/misses"
	"github.com/stackglass/stackglass/core/loops/outline"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
)

// Trial tries changes on the first execution of a loop nest, which is simulated in isolation.
// Changes are made to the loops of the source, even if the compiler has unrolled or vectorised them
// (see [change.Roll]).
type Trial struct {
	*change.Rolled

	of     *answers.Loops
	number int // index of the nest in the trace, counted from 0
	arrays []outline.Array
}

// NewTrial returns a trial of the nest with the given index, counted from 0. The error is a
// [*change.Error].
func NewTrial(l *answers.Loops, number int) (*Trial, error) {
	t := &Trial{Rolled: change.Roll(l.Nest(number), CodeOf(l)), of: l, number: number}
	for i := range l.Loops {
		if l.Loops[i].Nest == number {
			t.arrays = l.Arrays(i)
			break
		}
	}
	for _, a := range t.arrays {
		if a.Wild {
			return nil, &change.Error{Change: "a change", Why: "nest " + strconv.Itoa(number+1) + " has irregular references, which no loop describes; the addresses of these references after a change are unknown"}
		}
	}
	return t, nil
}

// CodeOf returns a function that looks up the source location, the variable and the vector width of
// a reference.
func CodeOf(l *answers.Loops) func(loops.Reference) change.Code {
	return func(r loops.Reference) change.Code {
		s := l.Place(r)
		if s == nil {
			return change.Code{}
		}
		return change.Code{File: s.File, Variable: s.Variable, Line: s.Line, Column: s.Column, Lanes: lanes(s.Type)}
	}
}

// lanes returns the number of elements of a vector type such as <2 x double>, and 1 for other
// types.
func lanes(kind string) uint64 {
	number, _, _ := strings.Cut(strings.TrimPrefix(kind, "<"), " x ")
	if n, err := strconv.ParseUint(number, 10, 16); err == nil && n > 0 && strings.HasPrefix(kind, "<") {
		return n
	}
	return 1
}

// Names returns the names of the nest's arrays and loops.
func (t *Trial) Names() change.Names {
	return change.Names{
		Array: func(at trace.Addr) string {
			if a := t.arrayAt(at); a != nil && a.Name != "" {
				return a.Name
			}
			if by := t.of.AllocatedAt(at); by != nil && by.Line > 0 {
				return answers.Allocated(by, t.of.Name)
			}
			return ""
		},
		Element: func(at trace.Addr) uint64 {
			if a := t.arrayAt(at); a != nil && len(a.Refs) > 0 {
				return uint64(a.Refs[0].Bytes) / CodeOf(t.of)(a.Refs[0]).Elements()
			}
			return 0
		},
		Elements: t.Elements,
		Loop: func(p change.Path) string {
			return "loop " + strings.Replace(t.Compiled(p).String(), "1", strconv.Itoa(t.number+1), 1)
		},
	}
}

func (t *Trial) arrayAt(at trace.Addr) *outline.Array {
	for i := range t.arrays {
		if a := &t.arrays[i]; at >= a.Base && at-a.Base < max(1, a.Extent) {
			return a
		}
	}
	return nil
}

// Read parses a change, given as an option of the command and its value: pad a=+64, interchange
// 1.1,1.1.1, tile 1.1=32,1.1.1=32, align 64 or a=64, fuse 1.1, and array-of-structs x,y. Arrays are
// given by name or address. Loops are given by number, as in 1.2, or by letter: i is the outermost
// loop of the nest, j is the first loop inside loop i, and so on. The error is a
// [*trace.OptionError].
func (t *Trial) Read(kind, text string) (change.Change, error) {
	refuse := func(want string) error { return &trace.OptionError{Option: kind, Got: text, Want: want} }
	switch kind {
	case "pad":
		name, bytes, ok := strings.Cut(text, "=")
		n, err := strconv.ParseUint(strings.TrimPrefix(bytes, "+"), 10, 32)
		if !ok || err != nil || n == 0 {
			return nil, refuse("an array and the number of bytes to add to each row, for example a=+64")
		}
		at, err := t.array(kind, name)
		return change.Pad{Array: at, Bytes: n}, err
	case "interchange":
		names := strings.Split(text, ",")
		if len(names) != 2 {
			return nil, refuse("two loops, the outer one first, for example i,j")
		}
		outer, err := t.loop(kind, names[0])
		if err != nil {
			return nil, err
		}
		inner, err := t.loop(kind, names[1])
		if err != nil {
			return nil, err
		}
		if len(inner) < len(outer) {
			outer, inner = inner, outer
		}
		if len(inner) == len(outer) || !slices.Equal(inner[:len(outer)], outer) {
			return nil, refuse("two loops, one inside the other")
		}
		return change.Interchange{Outer: outer, Below: len(inner) - len(outer)}, nil
	case "tile":
		return t.tile(text)
	case "align":
		name, bytes, ok := strings.Cut(text, "=")
		if !ok {
			name, bytes = "", text
		}
		n, err := strconv.ParseUint(bytes, 10, 32)
		if err != nil || n == 0 || n&(n-1) != 0 {
			return nil, refuse("a power of two such as 64, or an array with a power of two such as a=64")
		}
		c := change.Align{Bytes: n}
		if ok {
			c.Array, err = t.array(kind, name)
		}
		return c, err
	case "fuse":
		c := change.Fuse{More: -1}
		for name := range strings.SplitSeq(text, ",") {
			p, err := t.loop(kind, name)
			switch {
			case err != nil:
				return nil, err
			case c.First == nil:
				c.First = p
			case !slices.Equal(p, c.Loop(c.More+2)):
				return nil, refuse("consecutive loops")
			default:
				c.More++
			}
		}
		c.More = max(c.More, 0)
		return c, nil
	case "array-of-structs":
		var c change.Records
		for name := range strings.SplitSeq(text, ",") {
			at, err := t.array(kind, name)
			if err != nil {
				return nil, err
			}
			c.Arrays = append(c.Arrays, at)
		}
		return c, nil
	}
	return nil, &trace.OptionError{Option: "change", Got: kind, Want: "pad, interchange, tile, align, fuse or array-of-structs"}
}

// Option is the inverse of [Trial.Read]: it returns the option and the value for a change to the
// nest. The result ok is false if the command has no option for the change.
func (t *Trial) Option(c change.Change) (kind, text string, ok bool) {
	loop := func(p change.Path) string { return strings.TrimPrefix(t.Names().Loop(p), "loop ") }
	array := func(at trace.Addr) string {
		if a := t.arrayAt(at); a != nil {
			if first, err := t.array("", a.Name); err == nil && first == a.Base && plainName(a.Name) {
				return a.Name
			}
		}
		return "0x" + strconv.FormatUint(at, 16)
	}
	inner := func(p change.Path, below int) change.Path {
		return append(slices.Clone(p), make(change.Path, below)...)
	}
	switch c := c.(type) {
	case change.Pad:
		return "pad", array(c.Array) + "=+" + strconv.FormatUint(c.Bytes, 10), true
	case change.Interchange:
		return "interchange", loop(c.Outer) + "," + loop(inner(c.Outer, c.Below)), true
	case change.Tile:
		var parts []string
		for i, trips := range c.Trips {
			size := "all"
			if trips > 0 {
				size = strconv.FormatUint(trips, 10)
			}
			parts = append(parts, loop(inner(c.Outer, i))+"="+size)
		}
		return "tile", strings.Join(parts, ","), true
	case change.Align:
		bytes := strconv.FormatUint(c.Bytes, 10)
		if c.Array != 0 {
			bytes = array(c.Array) + "=" + bytes
		}
		return "align", bytes, true
	case change.Fuse:
		text := loop(c.First)
		for i := 1; c.More > 0 && i <= c.More+1; i++ {
			text += "," + loop(c.Loop(i))
		}
		return "fuse", text, true
	case change.Records:
		var names []string
		for _, at := range c.Arrays {
			names = append(names, array(at))
		}
		return "array-of-structs", strings.Join(names, ","), true
	}
	return "", "", false
}

// plainName reports whether a name needs no quoting in a shell and can be read by [Trial.Read].
func plainName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(c rune) bool {
		return c != '_' && c != '.' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z')
	})
}

func (t *Trial) tile(text string) (change.Change, error) {
	// tile sizes by loop depth; 0 means that the loop is inside the tiles, but is not tiled itself
	sizes := map[int]uint64{}
	var innermost change.Path
	outermost := -1
	for part := range strings.SplitSeq(text, ",") {
		name, trips, ok := strings.Cut(part, "=")
		n, err := strconv.ParseUint(trips, 10, 64)
		if all := trips == "all"; !ok || !all && (err != nil || n == 0) {
			return nil, &trace.OptionError{Option: "tile", Got: text, Want: "loops with the number of iterations per tile, for example i=32,j=32 or i=all,j=32"}
		}
		p, err := t.loop("tile", name)
		if err != nil {
			return nil, err
		}
		long, short := p, innermost
		if len(short) > len(long) {
			long, short = short, long
		}
		if _, twice := sizes[len(p)]; twice || !slices.Equal(long[:len(short)], short) {
			return nil, &trace.OptionError{Option: "tile", Got: text, Want: "nested loops, each only once"}
		}
		sizes[len(p)] = n
		innermost = long
		if outermost < 0 || len(p) < outermost {
			outermost = len(p)
		}
	}
	c := change.Tile{Outer: innermost[:outermost]}
	for depth := outermost; depth <= len(innermost); depth++ {
		c.Trips = append(c.Trips, sizes[depth])
	}
	return c, nil
}

func (t *Trial) loop(kind, name string) (change.Path, error) {
	if len(name) == 1 && name[0] >= 'i' && name[0] <= 'n' {
		p := make(change.Path, 1+int(name[0]-'i'))
		if p.Loop(t.Nest) != nil {
			return p, nil
		}
	}
	if at := t.of.Find(name); at >= 0 && t.of.Loops[at].Nest == t.number {
		p := change.Path{0}
		for _, part := range strings.Split(name, ".")[1:] {
			n, _ := strconv.Atoi(part)
			p = append(p, n-1)
		}
		if of, ok := t.Find(p); ok {
			return of, nil
		}
	}
	return nil, &trace.OptionError{Option: kind, Got: name, Want: "a loop of nest " + strconv.Itoa(t.number+1) + ": a loop number, or a letter (i for the outermost loop, j for the first loop inside that loop, and so on)"}
}

func (t *Trial) array(kind, name string) (trace.Addr, error) {
	var names []string
	for i := range t.arrays {
		a := &t.arrays[i]
		if a.Name != "" && a.Name == name {
			return a.Base, nil
		}
		if a.Name != "" {
			names = append(names, a.Name)
		} else {
			names = append(names, "0x"+strconv.FormatUint(a.Base, 16))
		}
	}
	if digits, ok := strings.CutPrefix(name, "0x"); ok {
		if at, err := strconv.ParseUint(digits, 16, 64); err == nil && t.arrayAt(at) != nil {
			return at, nil
		}
	}
	return 0, &trace.OptionError{Option: kind, Got: name, Want: "an array of nest " + strconv.Itoa(t.number+1) + ", by name or by an address inside it: " + strings.Join(names, ", ")}
}

// CacheOf converts a level to the cache type of package misses. The result ok is false if a hash of
// the address selects the set, or if the number of lines is not a multiple of the number of ways.
func CacheOf(c hierarchy.Cache) (cache misses.Cache, ok bool) {
	ways := uint64(c.Ways)
	if c.Full() {
		ways = c.Lines()
	}
	if c.Hashed || ways == 0 || c.Lines()%ways != 0 {
		return cache, false
	}
	return misses.Cache{LineBytes: uint64(c.LineBytes), Sets: c.Lines() / ways, Ways: ways}, true
}

// Try counts the misses of the nest in each level, before and after all of these changes. Try
// returns a warning for each omitted level.
func (t *Trial) Try(levels []hierarchy.Cache, goOn func() bool, changes ...change.Change) (table report.Table, doubts []string, err error) {
	table = trialTable("Misses of nest " + strconv.Itoa(t.number+1) + " alone, in initially empty caches (exact, LRU; each level sees every access)")
	var words, illegal []string
	for _, c := range changes {
		words = append(words, c.Words(t.Names()))
		illegal = append(illegal, c.Illegal())
	}
	for _, level := range levels {
		cache, ok := CacheOf(level)
		if !ok {
			doubts = append(doubts, level.Name+" is left out, because it does not select sets by the low bits of the line number")
			continue
		}
		o, err := change.Try(t.Nest, cache, goOn, changes...)
		if err != nil {
			return table, doubts, err
		}
		addTrial(&table, strings.Join(words, ", then "), level.Name, &o, strings.Join(illegal, "; or "))
	}
	return table, doubts, nil
}

// Propose searches for the changes that save the most misses in a level, and returns at most the
// given number of changes (most), in descending order of saved misses. Propose returns stopped =
// true if goOn ended the search.
func (t *Trial) Propose(level hierarchy.Cache, most int, goOn func() bool) (table report.Table, stopped bool, err error) {
	table = trialTable("Changes to nest " + strconv.Itoa(t.number+1) + " that would save the most misses of " + level.Name + " (misses of the nest alone, in an initially empty cache; one change at a time)")
	cache, ok := CacheOf(level)
	if !ok {
		return table, false, &trace.OptionError{Option: "cache", Got: level.Name, Want: "a cache that selects sets by the low bits of the line number"}
	}
	wanted := func(by change.Change) bool {
		fuse, ok := by.(change.Fuse)
		return !ok || !t.crossesFunctions(fuse)
	}
	found, stopped, err := change.Search(t.Nest, cache, change.Count, most, wanted, goOn)
	for i := range found {
		addTrial(&table, found[i].Change.Words(t.Names()), level.Name, &found[i], found[i].Change.Illegal())
	}
	return table, stopped, err
}

// crossesFunctions reports whether a fusion merges loops of different functions.
func (t *Trial) crossesFunctions(fuse change.Fuse) bool {
	fused := t.Nest.Clone()
	for _, pair := range fuse.Pairs() {
		if Separate(t.of, fused, pair) || pair.Apply(fused) != nil {
			return true
		}
	}
	return false
}

// Separate reports whether two loops cannot be fused because they are in different functions. The
// compiler outlines the body of a parallel region as a separate function. Therefore, a loop in a
// region and a loop before or after the region are also in different functions. Inlined code
// belongs to the function into which it was inlined.
func Separate(l *answers.Loops, n *loops.Nest, fuse change.Fuse) bool {
	if len(fuse.First) == 0 {
		return false
	}
	a, b := fuse.First.Loop(n), fuse.Loop(1).Loop(n)
	if a == nil || b == nil {
		return false
	}
	first, second := functionsOf(l, a.Body), functionsOf(l, b.Body)
	shared := slices.ContainsFunc(first, func(name string) bool { return slices.Contains(second, name) })
	return len(first) > 0 && len(second) > 0 && !shared || hasRegionBorder(a.Body) || hasRegionBorder(b.Body)
}

// functionsOf returns the functions whose references occur in the given items.
func functionsOf(l *answers.Loops, items []loops.Item) (names []string) {
	for i := range items {
		switch it := &items[i]; {
		case it.IsLoop():
			names = append(names, functionsOf(l, it.Body)...)
		case it.Ref.Kind.IsReference():
			if s := l.Place(it.Ref); s != nil && s.Function != "" && !slices.Contains(names, s.Function) {
				names = append(names, s.Function)
			}
		}
	}
	return names
}

// hasRegionBorder reports whether items contain the beginning or the end of a parallel region.
func hasRegionBorder(items []loops.Item) bool {
	return slices.ContainsFunc(items, func(it loops.Item) bool {
		return it.IsLoop() && hasRegionBorder(it.Body) || !it.IsLoop() && (it.Ref.Kind == trace.ParallelBegin || it.Ref.Kind == trace.ParallelEnd)
	})
}

func trialTable(title string) report.Table {
	return report.Table{Key: "changes", Title: title, Columns: report.Columns(
		"change", "level", "misses_before=misses before", "misses_after=after",
		"change_ratio=change of misses", "illegal=condition that would make it illegal (not checked)")}
}

func addTrial(t *report.Table, words, level string, o *change.Outcome, illegal string) {
	t.Add(report.TextOf(words), report.TextOf(level), report.Count(o.Before), report.Count(o.After), report.Change(report.Count(o.Before), report.Count(o.After)), report.TextOf(illegal))
}
