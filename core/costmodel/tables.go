package costmodel

import (
	"cmp"
	"slices"

	"github.com/stackglass/stackglass/core/blocks"
	"github.com/stackglass/stackglass/core/report"
)

func maybe(text string) report.Value {
	if text == "" {
		return report.None()
	}
	return report.TextOf(text)
}

// functionsTable lists the functions in descending order of their cycles.
func (m *Models) functionsTable() report.Table {
	t := report.Table{Key: "functions", Title: "Functions", Columns: report.Columns("number", "function", "source", "calls", "instructions", "share", "cycles", "limit=limited by")}
	var list []int
	all := 0.0
	for f := range m.program.Functions {
		if m.program.Functions[f].Blocks > 0 {
			list = append(list, f)
			all += m.costOf(f)
		}
	}
	slices.SortStableFunc(list, func(x, y int) int { return cmp.Compare(m.costOf(y), m.costOf(x)) })
	for _, f := range list {
		of := &m.program.Functions[f]
		calls := report.Real(m.counts.Invocations[f])
		if m.counts.Whole[f] {
			calls = report.Count(m.counts.Invoked[f])
		}
		instructions, limit, most := 0.0, "", 0.0
		for b := int(of.First); b < int(of.First+of.Blocks); b++ {
			instructions += m.counts.Visits[b] * float64(m.instructions(b))
			if c := m.runtime.Blocks[b].Cycles; c > most {
				most, limit = c, string(m.runtime.Blocks[b].Bottleneck)
			}
		}
		t.Add(report.Count(uint64(f+1)), report.TextOf(of.Name), maybe(sourceRange(of.Place.File, of.Place.Line, 0)), calls, report.Real(instructions),
			report.Ratio(part(m.costOf(f), all)), report.Real(m.costOf(f)), maybe(limit))
	}
	return t
}

func part(x, of float64) float64 {
	if of <= 0 {
		return 0
	}
	return x / of
}

func (m *Models) instructions(b int) (n uint64) {
	for _, op := range m.program.Blocks[b].Ops {
		n += uint64(op.Count)
	}
	return n
}

func (m *Models) costOf(f int) float64 { return m.runtime.Functions[f] }

// blocksTable lists a function's blocks in descending order of their cycles.
func (m *Models) blocksTable(f int) report.Table {
	t := report.Table{Key: "blocks", Title: "Blocks", Columns: report.Columns("number", "block", "source", "count", "instructions", "share", "cycles_each=cycles each", "cycles", "limit=limited by")}
	if f < 0 {
		return t
	}
	of, all := &m.program.Functions[f], m.costOf(f)
	var list []int
	for b := int(of.First); b < int(of.First+of.Blocks); b++ {
		list = append(list, b)
	}
	slices.SortStableFunc(list, func(x, y int) int { return cmp.Compare(m.runtime.Blocks[y].Cycles, m.runtime.Blocks[x].Cycles) })
	for _, b := range list {
		k := &m.program.Blocks[b]
		t.Add(report.Count(uint64(b+1)), report.TextOf(blocks.Label(k)), maybe(sourceRange(k.File, k.FirstLine, k.LastLine)), m.executionCount(b), report.Count(m.instructions(b)),
			report.Ratio(part(m.runtime.Blocks[b].Cycles, all)), report.Decimal(part(m.runtime.Blocks[b].Cycles, m.counts.Visits[b])), report.Real(m.runtime.Blocks[b].Cycles), maybe(string(m.runtime.Blocks[b].Bottleneck)))
	}
	return t
}

// waysTable lists the edges between the blocks of a function. In this table, the blocks are
// numbered from 0.
func (m *Models) waysTable(f int) report.Table {
	t := report.Table{Key: "ways", Title: "Successors", Columns: report.Columns("from", "to", "share", "count")}
	if f < 0 {
		return t
	}
	of := &m.program.Functions[f]
	for b := int(of.First); b < int(of.First+of.Blocks); b++ {
		shares := m.branchShares(b)
		for i, to := range m.program.Blocks[b].Successors {
			t.Add(report.Count(uint64(b)-uint64(of.First)), report.Count(uint64(to-of.First)), report.Ratio(shares[i]), m.edgeCount(b, i))
		}
	}
	return t
}

// branchShares returns the branch probabilities of a block.
func (m *Models) branchShares(b int) []float64 {
	weights, leaves := m.system.Weights(b)
	sum := float64(leaves)
	for _, w := range weights {
		sum += float64(w)
	}
	list := make([]float64, len(weights))
	for i, w := range weights {
		if list[i] = part(float64(w), sum); sum == 0 && len(weights) == 1 {
			list[i] = 1
		}
	}
	return list
}

// edgeCount returns how often an edge is taken. The edge leads from block b to the successor with
// index way, or out of the function. The count is exact if the branch weights are counts of a run
// and add up to the executions of the block.
func (m *Models) edgeCount(b, way int) report.Value {
	weights, leaves := m.system.Weights(b)
	sum := leaves
	for _, w := range weights {
		sum += w
	}
	if n, whole := m.executionCount(b).Number(); whole && sum > 0 && n == float64(sum) {
		return report.Count(weights[way])
	}
	return report.Real(m.counts.Visits[b] * m.branchShares(b)[way])
}

// branchesTable lists the branches of a function: the successors of each block that has several
// successors.
func (m *Models) branchesTable(f int) report.Table {
	t := report.Table{Key: "branches", Title: "Branches", Columns: report.Columns("branch", "block", "source", "to", "share", "count", "text", "origin")}
	if f < 0 {
		return t
	}
	first := m.program.Functions[f].First
	for _, line := range m.system.BranchLines(f) {
		k := &m.program.Blocks[line.Block]
		weights, leaves := m.system.Weights(line.Block)
		shares, origin := m.branchShares(line.Block), m.origins[line.Block]
		if was, left := m.base.Weights(line.Block); left != leaves || !slices.Equal(was, weights) {
			origin = yours
		}
		add := func(to string, share float64, count report.Value) {
			t.Add(report.TextOf(line.Name), report.Count(uint64(line.Block)-uint64(first)), maybe(sourceRange(k.File, k.LastLine, 0)), report.TextOf(to),
				report.Ratio(share), count, report.TextOf(line.Value), report.TextOf(origin))
		}
		rest := 1.0
		for i, to := range k.Successors {
			rest -= shares[i]
			add(blocks.Label(&m.program.Blocks[to]), shares[i], m.edgeCount(line.Block, i))
		}
		if leaves > 0 {
			add("(leaves)", rest, report.Real(m.counts.Visits[line.Block]*rest))
		}
	}
	return t
}
