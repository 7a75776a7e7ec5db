package answers

import (
	"cmp"
	"math"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/loops/outline"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
)

// Loops contains the loops of a loop-compressed trace, and returns tables of them.
type Loops struct {
	*outline.Outline
	Place     func(loops.Reference) *profile.Site // finds the site of a reference; the result may be nil
	LineBytes uint32                              // line size for counting the lines of arrays
	Name      func(string) string                 // makes a function's name readable; may be nil

	data   []profile.DataObject
	blocks []allocation // the memory blocks that no loop allocated
}

// OtherUsers replaces the names of the last users of evicted lines in the tables of evictions, where
// several rarely used references are counted together.
const OtherUsers = "(others)"

// allocation is a block of allocated memory.
type allocation struct {
	from, end trace.Addr
	by        *profile.DataObject
}

// mostAllocations is the largest number of blocks that [Loops.AllocatedAt] examines.
const mostAllocations = 1 << 12

// NewLoops summarises the loops of a profile, up to the given number of nests (most). NewLoops
// returns nil for a profile without loops, and an error if its loops are damaged.
func NewLoops(p *profile.Profile, most int) (*Loops, error) {
	if len(p.Loops) == 0 {
		return nil, nil
	}
	tree, err := loops.Decode(p.Loops)
	if err != nil {
		return nil, err
	}
	l := &Loops{Outline: outline.New(tree, most), Place: PlacesOf(p), LineBytes: 64}
	switch {
	case p.Sites != nil:
		l.data = p.Sites.Data
		l.blocks = l.allocations()
		l.LineBytes = p.Sites.LineBytes
	case len(p.Locality) > 0:
		l.LineBytes = p.Locality[0].LineBytes
	}
	return l, nil
}

// PlacesOf returns a function that finds the site of a reference in a profile.
func PlacesOf(p *profile.Profile) func(loops.Reference) *profile.Site {
	type key struct {
		number uint32
		pc     uint64
		kind   trace.Kind
	}
	known := map[key]*profile.Site{}
	numbered := false
	if p.Sites != nil {
		for i := range p.Sites.Code {
			s := &p.Sites.Code[i]
			if s.Number != profile.NoSite {
				numbered = true
				known[key{number: s.Number}] = s
			} else {
				known[key{pc: s.PC, kind: s.Kind}] = s
			}
		}
	}
	return func(r loops.Reference) *profile.Site {
		if numbered {
			return known[key{number: r.Site}]
		}
		return known[key{pc: r.PC, kind: r.Kind}]
	}
}

// ProgramPlaces returns a function that finds the site of a reference in the tables of a trace.
func ProgramPlaces(p *trace.Program) func(loops.Reference) *profile.Site {
	if p == nil {
		return func(loops.Reference) *profile.Site { return nil }
	}
	var paths []string
	for i := range p.Sites {
		paths = append(paths, p.Sites[i].Place.File)
	}
	names := trace.FileNames(paths)
	return func(r loops.Reference) *profile.Site {
		if int64(r.Site) >= int64(len(p.Sites)) {
			return nil
		}
		s := &p.Sites[r.Site]
		made := &profile.Site{Number: r.Site, PC: s.PC, File: names[s.Place.File], Line: s.Place.Line, Column: s.Place.Column, Kind: s.Kind, Bytes: s.Bytes, Type: s.Type, Variable: s.Object}
		if int64(s.Block) < int64(len(p.Blocks)) {
			if f := p.Blocks[s.Block].Function; int64(f) < int64(len(p.Functions)) {
				made.Function = p.Functions[f].Name
			}
		}
		return made
	}
}

// SourceRange is the source location of a loop's references.
type SourceRange struct {
	Function    string
	File        string
	First, Last uint32 // line numbers; 0 if unknown
}

// SourceRange returns the source location of a loop. The first reference with a known location
// determines the function and the file. The line range covers all references of the loop in that
// file.
func (l *Loops) SourceRange(loop int) (w SourceRange) {
	for _, r := range l.Refs(loop) {
		s := l.Place(r)
		if s == nil || s.Function == "" && s.File == "" {
			continue
		}
		if w.Function == "" && w.File == "" {
			w.Function, w.File = s.Function, s.File
			if l.Name != nil {
				w.Function = l.Name(w.Function)
			}
		}
		if s.File == w.File && s.Line > 0 {
			if w.First == 0 {
				w.First = s.Line
			}
			w.First, w.Last = min(w.First, s.Line), max(w.Last, s.Line)
		}
	}
	return w
}

// Source returns the file and lines, such as file.c:12–20.
func (w SourceRange) Source() string {
	text := w.File
	if w.First > 0 {
		text += ":" + strconv.FormatUint(uint64(w.First), 10)
	}
	if w.Last > w.First {
		text += "–" + strconv.FormatUint(uint64(w.Last), 10)
	}
	return text
}

// Label returns a loop's hierarchical number: 2.1.3 is the third loop in the first loop of nest 2.
func (l *Loops) Label(loop int) string {
	own := &l.Loops[loop]
	text := strconv.Itoa(own.Count)
	start := loop
	for l.Loops[start].Depth > 0 {
		start--
	}
	for at := start; at < loop; {
		number := 1
		next := at + 1
		for l.Loops[next].End <= loop {
			next = l.Loops[next].End
			number++
		}
		text += "." + strconv.Itoa(number)
		at = next
	}
	return text
}

// Find returns the index of the loop with the given label, or -1.
func (l *Loops) Find(label string) int {
	for i := range l.Loops {
		if l.Label(i) == label {
			return i
		}
	}
	return -1
}

// Trips formats a trip count, such as 512 or 1–512.
func Trips(least, most uint64) string {
	if least == most {
		return strconv.FormatUint(most, 10)
	}
	return strconv.FormatUint(least, 10) + "–" + strconv.FormatUint(most, 10)
}

// Variable returns the variable of a reference, or "".
func (l *Loops) Variable(r loops.Reference) string {
	if s := l.Place(r); s != nil {
		return s.Variable
	}
	return ""
}

// Arrays returns the arrays of a loop. If no reference provides a variable name, the array has the
// name of the data structure whose memory block contains the array.
func (l *Loops) Arrays(loop int) []outline.Array {
	list := l.Outline.Arrays(loop, uint64(l.LineBytes), l.Variable)
	for i := range list {
		if a := &list[i]; a.Name == "" && !a.Wild {
			if by := l.AllocatedAt(a.Base); by != nil {
				a.Name = by.Name
			}
		}
	}
	return list
}

// AllocatedAt returns the data structure whose memory block contains an address. AllocatedAt
// returns nil if the data structure is unknown, for example because several blocks contained the
// address at different times.
func (l *Loops) AllocatedAt(addr trace.Addr) (by *profile.DataObject) {
	for _, b := range l.blocks {
		switch {
		case addr < b.from || addr >= b.end || b.by == by:
		case by != nil:
			return nil
		default:
			by = b.by
		}
	}
	return by
}

// allocations returns the memory blocks that were not allocated in a loop.
func (l *Loops) allocations() (list []allocation) {
	byNumber := map[uint32]*profile.DataObject{}
	for i := range l.data {
		if of := &l.data[i]; of.Kind == profile.HeapObject && of.Number != profile.NoSite {
			byNumber[of.Number] = of
		}
	}
	if len(byNumber) == 0 {
		return nil
	}
	for node := range l.Tree().Nodes() {
		r, addr, wild := node.Leaf()
		if node.IsLoop() || wild || r.Kind != trace.Alloc || byNumber[r.Site] == nil {
			continue
		}
		if len(list) == mostAllocations {
			return nil
		}
		list = append(list, allocation{addr, addr + min(r.Arg, ^addr), byNumber[r.Site]})
	}
	return list
}

// Brief returns a shorter version of Table that is easier to read. Brief omits source loops whose
// share of the references is smaller than the given share (least). Inner loops are indented. The
// last rows count the references outside the listed loops.
func (l *Loops) Brief(of []SourceLoop, least float64) report.Table {
	t := report.Table{Key: "loops", Title: "Loops (all columns and rows: --format csv)", Columns: report.Columns(
		"loop", "function", "source", "loops", "threads", "trips", "runs", "references", "share")}
	small, nests := l.LeftOutReferences, l.LeftOut
	for i := range of {
		s := l.total(&of[i])
		if l.Share(s.references) < least {
			if of[i].Depth == 0 {
				small += s.references
				nests += uint64(len(of[i].Loops))
			}
			continue
		}
		w := l.SourceRange(of[i].Loops[0])
		t.Add(report.TextOf(strings.Repeat("  ", of[i].Depth)+l.LabelOf(&of[i])), textCell(w.Function), textCell(w.Source()), report.Count(uint64(len(of[i].Loops))), report.Count(uint64(s.threads)),
			report.TextOf(Trips(s.least, s.most)), report.Count(s.runs), report.Count(s.references), report.Share(s.references, l.References))
	}
	rest := func(name string, references uint64) {
		row := []report.Value{report.TextOf(name)}
		for range len(t.Columns) - 3 {
			row = append(row, report.None())
		}
		t.Add(append(row, report.Count(references), report.Share(references, l.References))...)
	}
	if nests > 0 {
		rest("("+strconv.FormatUint(nests, 10)+" more)", small)
	}
	if l.Straight > 0 {
		rest("(outside loops)", l.Straight)
	}
	return t
}

// ArraysTable returns a table with a row for each array of these loops.
func (l *Loops) ArraysTable(of []int) report.Table {
	t := report.Table{Key: "arrays", Title: "Arrays by loop (addresses and bytes in the loop's first run)", Columns: report.Columns(
		"loop", "array", "references", "stores", "base", "extent_bytes=extent",
		"stride_bytes=stride in each loop (bytes)", "touched_bytes=touched", "lines", "utilisation", "exact")}
	for _, loop := range of {
		for _, a := range l.Arrays(loop) {
			if a.Wild {
				t.Add(report.TextOf(l.Label(loop)), report.TextOf(cmp.Or(a.Name, "(irregular)")), report.Count(a.References), report.Count(a.Stores),
					report.None(), report.None(), report.TextOf("irregular"), report.None(), report.None(), report.None(), report.None())
				continue
			}
			t.Add(report.TextOf(l.Label(loop)), textCell(a.Name), report.Count(a.References), report.Count(a.Stores),
				report.TextOf("0x"+strconv.FormatUint(a.Base, 16)), report.Bytes(a.Extent), report.TextOf(Strides(&a)),
				report.Bytes(a.Touched), report.Count(a.Lines), report.Ratio(a.Utilisation(uint64(l.LineBytes))), report.YesNo(a.Exact))
		}
	}
	return t
}

// Strides lists an array's stride in each loop, from the outermost to the innermost, for example
// +4096 0 +8.
func Strides(a *outline.Array) string {
	var words []string
	for _, s := range a.Strides {
		word := strconv.FormatInt(s, 10)
		if s > 0 {
			word = "+" + word
		}
		words = append(words, word)
	}
	text := strings.Join(words, " ")
	if a.Mixed {
		text += " and others"
	}
	return text
}

// AllNests means that the number of nests is not limited.
const AllNests = math.MaxInt

func textCell(s string) report.Value {
	if s == "" {
		return report.None()
	}
	return report.TextOf(s)
}
