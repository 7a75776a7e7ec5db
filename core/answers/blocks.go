package answers

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/blocks"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
)

// Blocks provides tables about the executions of a program's basic blocks, and about the operations
// in them.
type Blocks struct {
	System    *blocks.System
	Solution  *blocks.Solution
	Work      *blocks.Work
	Reuse     []blocks.Reuse        // reuse profile of each block; nil: unknown
	LineBytes uint32                // the line size of Reuse
	Windows   []blocks.SampledReuse // reuse profiles from sampled executions; may be nil
	Name      func(string) string   // makes a function's name readable; may be nil
}

// NewBlocks solves the system s. The error explains why the system has no solution.
func NewBlocks(s *blocks.System) (*Blocks, error) {
	solution, err := s.Solve()
	if err != nil {
		return nil, err
	}
	return &Blocks{System: s, Solution: solution, Work: blocks.NewWork(s.Program())}, nil
}

// All, as the maximum number of rows, means no limit.
const All = -1

// counted returns a counter of t, as an exact count if the total is a whole number.
func counted(t *blocks.Total, c profile.Counter) report.Value {
	return times(t.Counts[c], t.Exact[c], t.Whole)
}

// times returns a number of executions, as an exact count if it is a whole number.
func times(n float64, exact uint64, whole bool) report.Value {
	if whole {
		return report.Count(exact)
	}
	return report.Real(n)
}

// bytesOf returns the bytes accessed by loads, stores and copies.
func bytesOf(t *blocks.Total) report.Value {
	list := [...]profile.Counter{profile.BytesLoaded, profile.BytesStored, profile.RangeBytesRead, profile.RangeBytesWritten}
	sum, exact := 0.0, uint64(0)
	for _, c := range list {
		sum += t.Counts[c]
		exact += t.Exact[c]
	}
	return times(sum, exact, t.Whole)
}

func (b *Blocks) functionName(n uint32) string {
	p := b.System.Program()
	if int64(n) >= int64(len(p.Functions)) {
		return ""
	}
	if b.Name != nil {
		return b.Name(p.Functions[n].Name)
	}
	return p.Functions[n].Name
}

// label returns a block's name in its function. The suffix +1 marks the part of a block after its
// first call.
func (b *Blocks) label(n uint32) string {
	k := &b.System.Program().Blocks[n]
	if k.Part > 0 {
		return k.Label + "+" + strconv.FormatUint(uint64(k.Part), 10)
	}
	return k.Label
}

// first returns the beginning of a list: at most the given number of elements (most), or the whole
// list if most is All.
func first[T any](list []T, most int) []T {
	if most == All {
		return list
	}
	return list[:min(most, len(list))]
}

func descending[T any, W cmp.Ordered](list []T, weight func(T) W) {
	slices.SortStableFunc(list, func(x, y T) int { return cmp.Compare(weight(y), weight(x)) })
}

// workColumns are the columns for the work of a function or block in all its executions.
var workColumns = report.Columns("instructions", "share", "flops", "integer_ops=integer", "bytes")

func workOf(t *blocks.Total, all float64) []report.Value {
	return []report.Value{
		counted(t, profile.Instructions), report.Quotient(t.Counts[profile.Instructions], all), counted(t, profile.Flops), counted(t, profile.IntegerOps), bytesOf(t),
	}
}

// Total returns facts about the whole program: its instructions, operations and bytes.
func (b *Blocks) Total() []report.Fact {
	w := b.Work.Program(b.Solution)
	return []report.Fact{
		{Key: "instructions", Label: "instructions", Value: counted(&w, profile.Instructions)},
		{Key: "flops", Label: "flops", Value: counted(&w, profile.Flops)},
		{Key: "integer_ops", Label: "integer operations", Value: counted(&w, profile.IntegerOps)},
		{Key: "bytes", Label: "bytes loaded and stored", Value: bytesOf(&w)},
	}
}

// Functions returns a table with a row for each function that runs, in descending order of executed
// instructions.
func (b *Blocks) Functions(most int) report.Table {
	t := report.Table{Key: "functions", Title: "Functions, excluding callees", Columns: append(report.Columns(
		"function", "file", "line", "invocations"), workColumns...)}
	p := b.System.Program()
	type row struct {
		n     uint32
		total blocks.Total
	}
	var rows []row
	for n := range p.Functions {
		if b.Solution.Invocations[n] > 0 || b.runs(&p.Functions[n]) {
			rows = append(rows, row{uint32(n), b.Work.Function(b.Solution, n)})
		}
	}
	descending(rows, func(r row) float64 { return r.total.Counts[profile.Instructions] })
	all := b.Work.Program(b.Solution).Counts[profile.Instructions]
	for i := range first(rows, most) {
		f, r := &p.Functions[rows[i].n], &rows[i]
		t.Add(append([]report.Value{
			report.TextOf(b.functionName(r.n)), report.TextOf(f.Place.File), report.Known(uint64(f.Place.Line)),
			times(b.Solution.Invocations[r.n], b.Solution.Invoked[r.n], b.Solution.Whole[r.n]),
		}, workOf(&r.total, all)...)...)
	}
	return t
}

// runs reports whether any block of a function runs.
func (b *Blocks) runs(f *trace.Function) bool {
	for n := f.First; n < f.First+f.Blocks; n++ {
		if b.Solution.Visits[n] > 0 {
			return true
		}
	}
	return false
}

// hotCapacityBytes is the size of the cache for which the misses of blocks are shown.
const hotCapacityBytes = 32 << 10

// Hot returns a table with a row for each block that runs, in descending order of executed
// instructions.
func (b *Blocks) Hot(most int) report.Table {
	t := report.Table{Key: "blocks", Title: "Blocks", Columns: append(report.Columns(
		"function", "block", "file", "line", "last_line=to", "executions"), workColumns...)}
	if b.Reuse != nil {
		t.Columns = append(t.Columns, report.Columns("references", "cold", "misses_32KiB=misses in 32 KiB")...)
	}
	t.Columns = append(t.Columns, report.Columns("operations")...)
	p := b.System.Program()
	var list []uint32
	for n := range p.Blocks {
		if b.Solution.Visits[n] > 0 {
			list = append(list, uint32(n))
		}
	}
	descending(list, func(n uint32) float64 {
		return b.Solution.Visits[n] * float64(b.Work.Once(int(n))[profile.Instructions])
	})
	all := b.Work.Program(b.Solution).Counts[profile.Instructions]
	for _, n := range first(list, most) {
		k := &p.Blocks[n]
		total := b.Work.Block(b.Solution, int(n))
		row := append([]report.Value{
			report.TextOf(b.functionName(k.Function)), report.TextOf(b.label(n)), report.TextOf(k.File), report.Known(uint64(k.FirstLine)), report.Known(uint64(k.LastLine)),
			times(b.Solution.Visits[n], b.Solution.Exact[n], int64(k.Function) < int64(len(b.Solution.Whole)) && b.Solution.Whole[k.Function]),
		}, workOf(&total, all)...)
		if b.Reuse != nil {
			r := &b.Reuse[n]
			row = append(row, report.Count(r.References), report.Count(r.Cold), report.Count(r.Misses(hotCapacityBytes/uint64(b.LineBytes))))
		}
		t.Add(append(row, report.ListOf(operations(k)))...)
	}
	return t
}

// Sampled compares the reuse profile from windows with the profile from all executions, for each
// block with references. Rows are in descending order of references.
func (b *Blocks) Sampled(most int) report.Table {
	t := report.Table{Key: "windows", Title: "Reuse profiles from sampled executions, compared with the profiles from all references", Columns: report.Columns(
		"function", "block", "executions", "windows", "accuracy", "miss_ratio_32KiB=miss ratio in 32 KiB",
		"miss_ratio_32KiB_sampled=miss ratio from samples")}
	var list []int
	for n := range b.Windows {
		if n < len(b.Reuse) && b.Windows[n].Windows > 0 {
			list = append(list, n)
		}
	}
	descending(list, func(n int) uint64 { return b.Reuse[n].References })
	lines := hotCapacityBytes / uint64(b.LineBytes)
	p := b.System.Program()
	for _, n := range first(list, most) {
		all, some := &b.Reuse[n], &b.Windows[n]
		t.Add(report.TextOf(b.functionName(p.Blocks[n].Function)), report.TextOf(b.label(uint32(n))), report.Count(some.Executions), report.Count(some.Windows),
			report.Ratio(blocks.Accuracy(&all.Reuse, &some.Reuse)), report.Share(all.Misses(lines), all.Accesses()), report.Share(some.Misses(lines), some.Accesses()))
	}
	return t
}

// operations lists the opcodes of one execution of a block, in descending order of frequency.
func operations(k *trace.Block) string {
	sums := map[string]uint64{}
	var names []string
	for _, op := range k.Ops {
		if sums[op.Opcode] == 0 {
			names = append(names, op.Opcode)
		}
		sums[op.Opcode] += uint64(op.Count)
	}
	descending(names, func(name string) uint64 { return sums[name] })
	for i, name := range names {
		if sums[name] > 1 {
			names[i] = strconv.FormatUint(sums[name], 10) + " " + name
		}
	}
	return strings.Join(names, ", ")
}

// Instructions returns the instructions of the blocks that contain a source line. text is the line
// in the form FILE:LINE. Blocks are in descending order of executed instructions, and the
// instructions of a block are in the order of the code. A trace records the source lines of
// instructions that access memory, and only the range of lines of other instructions' blocks.
// Therefore, if instructions of the line access memory, only blocks with these instructions count.
// found is false if no block contains the line.
func (b *Blocks) Instructions(text string) (t report.Table, found bool) {
	t = report.Table{Key: "instructions", Title: "LLVM IR instructions of the blocks with " + text, Columns: report.Columns(
		"function", "block", "number", "line", "instruction", "operands", "variable", "executions")}
	at := max(strings.LastIndexByte(text, ':'), 0)
	name := text[:at]
	line, err := strconv.ParseUint(strings.TrimPrefix(text[at:], ":"), 10, 32)
	if err != nil || line == 0 || name == "" {
		return t, false
	}
	p := b.System.Program()
	isFile := func(file string) bool {
		_, same := trace.CommonTail(name, file)
		return same
	}
	var with, around []uint32
	for n := range p.Blocks {
		k := &p.Blocks[n]
		if slices.ContainsFunc(p.Sites[k.FirstSite:k.FirstSite+k.Sites], func(s trace.Site) bool { return uint64(s.Place.Line) == line && isFile(s.Place.File) }) {
			with = append(with, uint32(n))
		} else if uint64(k.FirstLine) <= line && line <= uint64(k.LastLine) && isFile(k.File) {
			around = append(around, uint32(n))
		}
	}
	if with == nil {
		with = around
	}
	descending(with, func(n uint32) float64 {
		return b.Solution.Visits[n] * float64(b.Work.Once(int(n))[profile.Instructions])
	})
	for _, n := range with {
		k := &p.Blocks[n]
		executions := times(b.Solution.Visits[n], b.Solution.Exact[n], int64(k.Function) < int64(len(b.Solution.Whole)) && b.Solution.Whole[k.Function])
		for i := range k.Instrs {
			in := &k.Instrs[i]
			place, variable := report.None(), report.TextOf("")
			if in.Site > 0 && in.Site <= k.Sites {
				s := &p.Sites[k.FirstSite+in.Site-1]
				place, variable = report.Known(uint64(s.Place.Line)), report.TextOf(s.Object)
			}
			t.Add(report.TextOf(b.functionName(k.Function)), report.TextOf(b.label(n)), report.Count(uint64(i+1)), place,
				report.TextOf(strings.TrimSpace(in.Opcode+" "+in.Type)), report.TextOf(operands(in)), variable, executions)
		}
	}
	return t, with != nil
}

// operands lists the instructions whose results an instruction uses, by their numbers in the block.
func operands(in *trace.Instr) string {
	var list []string
	for _, n := range in.Uses {
		switch {
		case n >= 0:
			list = append(list, "#"+strconv.Itoa(int(n)+1))
		case n == -1:
			list = append(list, "outside")
		default:
			list = append(list, "#"+strconv.Itoa(-int(n)-1)+" of the previous iteration")
		}
	}
	return strings.Join(list, ", ")
}

// Branches returns a table with a row for each branch outcome that occurs, in descending order of
// influence on the number of instructions. Branches fails if the system has no solution.
func (b *Blocks) Branches(most int) (report.Table, error) {
	t := report.Table{Key: "branches", Title: "Branches, by their effect on the number of instructions", Columns: report.Columns(
		"function", "block", "file", "line", "to=continues to", "taken", "probability", "sensitivity")}
	list, _, err := b.System.Sensitivity(b.Solution, b.Work.Costs(profile.Instructions))
	if err != nil {
		return t, err
	}
	p := b.System.Program()
	// the rank of each block is the rank of its most influential outcome, so that the outcomes of a
	// block stay together
	rank := map[int]int{}
	for i, in := range list {
		if _, known := rank[in.Block]; !known {
			rank[in.Block] = i
		}
	}
	slices.SortFunc(list, func(x, y blocks.Influence) int {
		return cmp.Or(cmp.Compare(rank[x.Block], rank[y.Block]), cmp.Compare(x.Way, y.Way))
	})
	for _, in := range first(list, most) {
		k := &p.Blocks[in.Block]
		to := "(leaves)"
		weights, leaves := b.System.Weights(in.Block)
		weight := leaves
		if in.Way < len(k.Successors) {
			to, weight = b.label(k.Successors[in.Way]), weights[in.Way]
		}
		t.Add(report.TextOf(b.functionName(k.Function)), report.TextOf(b.label(uint32(in.Block))), report.TextOf(k.File), report.Known(uint64(k.LastLine)),
			report.TextOf(to), b.taken(in.Block, weight, weights, leaves), report.Ratio(in.Share), report.Decimal(in.Weight))
	}
	return t, nil
}

// taken returns the number of occurrences of an outcome with this weight, as an exact count if the
// weights are counts.
func (b *Blocks) taken(block int, weight uint64, weights []uint64, leaves uint64) report.Value {
	sum := leaves
	for _, w := range weights {
		sum += w
	}
	f := b.System.Program().Blocks[block].Function
	if b.Solution.Whole[f] && sum == b.Solution.Exact[block] {
		return report.Count(weight)
	}
	return report.Real(b.Solution.Visits[block] * float64(weight) / float64(sum))
}

// Opcodes returns a table with a row for each opcode.
func (b *Blocks) Opcodes(most int) report.Table {
	t := report.Table{Key: "opcodes", Title: "Instructions", Columns: report.Columns(
		"opcode", "count=instructions", "share")}
	list, whole := b.Work.Opcodes(b.Solution, 0, len(b.System.Program().Functions))
	all := 0.0
	for i := range list {
		all += list[i].Count
	}
	for _, op := range first(list, most) {
		t.Add(report.TextOf(op.Name), times(op.Count, op.Exact, whole), report.Quotient(op.Count, all))
	}
	return t
}
