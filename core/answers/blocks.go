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
	Reuse     []blocks.Reuse        // reuse profile of each block; nil if unknown
	LineBytes uint32                // the line size of the reuse profiles
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

// All means that the number of rows is not limited.
const All = -1

// counterCell returns the cell for one of the counters in t. If t.Whole is set, the cell contains
// an exact count.
func counterCell(t *blocks.Total, c profile.Counter) report.Value {
	return countCell(t.Counts[c], t.Exact[c], t.Whole)
}

// countCell returns the cell for a number of executions: an exact count if the number is whole, and
// otherwise a real number.
func countCell(n float64, exact uint64, whole bool) report.Value {
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
	return countCell(sum, exact, t.Whole)
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

// firstRows returns the first elements of a list: at most the given number (most), or the whole
// list if the limit is All.
func firstRows[T any](list []T, most int) []T {
	if most == All {
		return list
	}
	return list[:min(most, len(list))]
}

func descending[T any, W cmp.Ordered](list []T, weight func(T) W) {
	slices.SortStableFunc(list, func(x, y T) int { return cmp.Compare(weight(y), weight(x)) })
}

// workColumns are the columns that sum the work (instructions, operations and bytes) of all
// executions of a function or block.
var workColumns = report.Columns("instructions", "share", "flops", "integer_ops=integer", "bytes")

func workOf(t *blocks.Total, all float64) []report.Value {
	return []report.Value{
		counterCell(t, profile.Instructions), report.Quotient(t.Counts[profile.Instructions], all), counterCell(t, profile.Flops), counterCell(t, profile.IntegerOps), bytesOf(t),
	}
}

// Total returns facts about the whole program: its instructions, operations and bytes.
func (b *Blocks) Total() []report.Fact {
	w := b.Work.Program(b.Solution)
	return []report.Fact{
		{Key: "instructions", Label: "instructions", Value: counterCell(&w, profile.Instructions)},
		{Key: "flops", Label: "flops", Value: counterCell(&w, profile.Flops)},
		{Key: "integer_ops", Label: "integer operations", Value: counterCell(&w, profile.IntegerOps)},
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
		if b.Solution.Invocations[n] > 0 || b.functionRuns(&p.Functions[n]) {
			rows = append(rows, row{uint32(n), b.Work.Function(b.Solution, n)})
		}
	}
	descending(rows, func(r row) float64 { return r.total.Counts[profile.Instructions] })
	all := b.Work.Program(b.Solution).Counts[profile.Instructions]
	for i := range firstRows(rows, most) {
		f, r := &p.Functions[rows[i].n], &rows[i]
		t.Add(append([]report.Value{
			report.TextOf(b.functionName(r.n)), report.TextOf(f.Place.File), report.Known(uint64(f.Place.Line)),
			countCell(b.Solution.Invocations[r.n], b.Solution.Invoked[r.n], b.Solution.Whole[r.n]),
		}, workOf(&r.total, all)...)...)
	}
	return t
}

// functionRuns reports whether any block of a function is executed.
func (b *Blocks) functionRuns(f *trace.Function) bool {
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
	for _, n := range firstRows(list, most) {
		k := &p.Blocks[n]
		total := b.Work.Block(b.Solution, int(n))
		row := append([]report.Value{
			report.TextOf(b.functionName(k.Function)), report.TextOf(b.label(n)), report.TextOf(k.File), report.Known(uint64(k.FirstLine)), report.Known(uint64(k.LastLine)),
			countCell(b.Solution.Visits[n], b.Solution.Exact[n], int64(k.Function) < int64(len(b.Solution.Whole)) && b.Solution.Whole[k.Function]),
		}, workOf(&total, all)...)
		if b.Reuse != nil {
			r := &b.Reuse[n]
			row = append(row, report.Count(r.References), report.Count(r.Cold), report.Count(r.Misses(hotCapacityBytes/uint64(b.LineBytes))))
		}
		t.Add(append(row, report.ListOf(operations(k)))...)
	}
	return t
}

// Sampled compares, for each block with references, the reuse profile from sampled executions with
// the profile from all executions. Rows are in descending order of references.
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
	for _, n := range firstRows(list, most) {
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

// Instructions returns the instructions of the blocks that contain a source line. The location has
// the form FILE:LINE. Blocks are in descending order of executed instructions. Within a block,
// instructions are in program order. A trace records the exact source line of an instruction only
// if the instruction accesses memory. For other instructions, the trace records only the line range
// of the whole block. Therefore, if the line has instructions that access memory, Instructions
// lists only the blocks with these instructions. The column "site" contains the number of an
// instruction's first site in the trace, and "sites" the number of its sites: the memory accesses
// that the instruction makes. The result found is false if no block contains the line.
func (b *Blocks) Instructions(location string) (t report.Table, found bool) {
	t = report.Table{Key: "instructions", Title: "LLVM IR instructions of the blocks with " + location, Columns: report.Columns(
		"function", "block", "number", "line", "instruction", "operands", "variable", "executions", "site", "sites")}
	at := max(strings.LastIndexByte(location, ':'), 0)
	name := location[:at]
	line, err := strconv.ParseUint(strings.TrimPrefix(location[at:], ":"), 10, 32)
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
		executions := countCell(b.Solution.Visits[n], b.Solution.Exact[n], int64(k.Function) < int64(len(b.Solution.Whole)) && b.Solution.Whole[k.Function])
		sites := sitesOf(k)
		for i := range k.Instrs {
			in := &k.Instrs[i]
			place, variable, site := report.None(), report.TextOf(""), report.None()
			if in.Site > 0 && in.Site <= k.Sites {
				s := &p.Sites[k.FirstSite+in.Site-1]
				place, variable, site = report.Known(uint64(s.Place.Line)), report.TextOf(s.Object), report.Count(uint64(k.FirstSite+in.Site-1))
			}
			t.Add(report.TextOf(b.functionName(k.Function)), report.TextOf(b.label(n)), report.Count(uint64(i+1)), place,
				report.TextOf(strings.TrimSpace(in.Opcode+" "+in.Type)), report.TextOf(operands(in)), variable, executions, site, report.Count(sites[i]))
		}
	}
	return t, with != nil
}

// sitesOf returns the number of sites of each instruction of a block. The sites of an instruction
// begin at its first site and end before the first site of the next instruction.
func sitesOf(k *trace.Block) []uint64 {
	counts, next := make([]uint64, len(k.Instrs)), k.Sites+1
	for i := len(k.Instrs) - 1; i >= 0; i-- {
		if first := k.Instrs[i].Site; first > 0 && first <= k.Sites {
			counts[i] = uint64(max(next, first+1) - first)
			next = first
		}
	}
	return counts
}

// operands lists the instructions whose results the given instruction uses. Each instruction is
// listed by its number in the block.
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
	for _, in := range firstRows(list, most) {
		k := &p.Blocks[in.Block]
		to := "(leaves)"
		weights, leaves := b.System.Weights(in.Block)
		weight := leaves
		if in.Way < len(k.Successors) {
			to, weight = b.label(k.Successors[in.Way]), weights[in.Way]
		}
		t.Add(report.TextOf(b.functionName(k.Function)), report.TextOf(b.label(uint32(in.Block))), report.TextOf(k.File), report.Known(uint64(k.LastLine)),
			report.TextOf(to), b.timesTaken(in.Block, weight, weights, leaves), report.Ratio(in.Share), report.Decimal(in.Weight))
	}
	return t, nil
}

// timesTaken returns how often a branch outcome with this weight occurs, as an exact count if the
// weights are counts.
func (b *Blocks) timesTaken(block int, weight uint64, weights []uint64, leaves uint64) report.Value {
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
	for _, op := range firstRows(list, most) {
		t.Add(report.TextOf(op.Name), countCell(op.Count, op.Exact, whole), report.Quotient(op.Count, all))
	}
	return t
}
