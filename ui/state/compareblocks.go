package state

import (
	"slices"
	"sort"

	"github.com/stackglass/stackglass/core/report"
)

// BlocksPair is what the compute-node models say of two runs.
type BlocksPair struct{ A, B *Blocks }

// Sentence says how long both take.
func (p *BlocksPair) Sentence() string {
	a, b := number(p.A.fact("cycles")), number(p.B.fact("cycles"))
	if a == 0 || b == 0 {
		return "A: " + p.A.Summary() + " B: " + p.B.Summary()
	}
	return "From " + modelled(a) + " cycles in A to " + modelled(b) + " in B, " + changeWords(a, b, "more", "fewer") +
		", on " + p.A.fact("processor").Plain() + "."
}

// fact is a value of the table of the whole program, None where it is not there.
func (b *Blocks) fact(name string) report.Value {
	t := b.Table("program")
	for i := range rowsOf(t) {
		if cell(t, i, "name").Plain() == name {
			return cell(t, i, "value")
		}
	}
	return report.None()
}

// Functions are the functions of both, joined by name.
func (p *BlocksPair) Functions(column string) *Table {
	return p.joined("functions", "Functions, A and B", "function", column, "calls", "instructions", "cycles")
}

// OfFunction are the blocks of the function in question, joined by name.
func (p *BlocksPair) OfFunction(column string) *Table {
	return p.joined("blocks", "Blocks of "+p.A.FunctionName()+", A and B", "block", column, "count", "cycles_each", "cycles")
}

// joined lays a table of both out, what differs most in cycles first; nil where neither
// has it.
func (p *BlocksPair) joined(key, title, name, column string, shown ...string) *Table {
	var tables [2]report.Table
	for side, b := range []*Blocks{p.A, p.B} {
		if t := b.Table(key); t != nil {
			tables[side] = picked(*t, append([]string{name}, shown...)...)
			rows := tables[side].Rows
			sort.SliceStable(rows, func(i, j int) bool { return report.Compare(rows[j][len(rows[j])-1], rows[i][len(rows[i])-1]) < 0 })
		}
	}
	if len(tables[0].Rows)+len(tables[1].Rows) == 0 {
		return nil
	}
	joined := report.Join(tables[0], tables[1], report.Key{Columns: []string{name}, Counts: true})
	joined.Title = title
	slices.Reverse(shown) // cycles first
	return sortedJoin(joined, key, blockWords, "cycles", column, shown...)
}

// Same finds the function of B that is called as the one in question in A; 0: there is
// none.
func (p *BlocksPair) Same() uint32 {
	t := p.B.Table("functions")
	for i := range rowsOf(t) {
		if cell(t, i, "function").Plain() == p.A.FunctionName() {
			return p.B.Number("functions", i)
		}
	}
	return 0
}

// Choices are A's functions, those that take most first.
func (p *BlocksPair) Choices() (list []Choice) {
	t := p.A.Table("functions")
	for i := range rowsOf(t) {
		list = append(list, Choice{Name: cell(t, i, "number").Plain(), Title: cell(t, i, "function").Plain()})
	}
	return list
}

// Caveats returns the caveats of A and B without repetition.
func (p *BlocksPair) Caveats() (list []string) {
	for _, b := range []*Blocks{p.A, p.B} {
		for _, text := range append([]string{b.Problem}, b.Notes...) {
			if text != "" && !slices.Contains(list, text) {
				list = append(list, text)
			}
		}
	}
	if what := Unmodelled(p.A.Unmodelled); what != "" && len(p.A.Unmodelled) > 0 {
		list = append(list, what)
	}
	return list
}
