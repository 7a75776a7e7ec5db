package state

import (
	"slices"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
)

// BlocksPair is the compute-node models' answer for two runs.
type BlocksPair struct {
	A, B    *Blocks
	Runs    *Comparison
	Machine hierarchy.Hierarchy // the hierarchy to which the answers apply
}

// Sentence returns a sentence that compares the times of both runs.
func (p *BlocksPair) Sentence() string {
	a, b := number(p.A.fact("cycles")), number(p.B.fact("cycles"))
	if a == 0 || b == 0 {
		return "A: " + p.A.Summary() + " B: " + p.B.Summary()
	}
	return "From " + formatEstimate(a) + " cycles in A to " + formatEstimate(b) + " in B, " + changeWords(a, b, "more", "fewer") +
		", on " + p.A.fact("processor").Plain() + "."
}

// fact returns a value from the table of the whole program, or None if it is missing.
func (b *Blocks) fact(name string) report.Value {
	t := b.Table("program")
	for i := range rowsOf(t) {
		if cellText(t, i, "name") == name {
			return cell(t, i, "value")
		}
	}
	return report.None()
}

// Functions pairs the functions of A with the functions of the same name in B.
func (p *BlocksPair) Functions(by string) *Table {
	return p.table("functions", "Functions, A and B", by, p.question(), []string{"function"}, "cycles", "instructions", "calls")
}

// OfFunction pairs the blocks of the selected function in A with the blocks of the same name in B.
// OfFunction returns nil if only one run contains the function.
func (p *BlocksPair) OfFunction(by string) *Table {
	name := p.A.FunctionName()
	if name == "" || p.B.FunctionName() != name {
		return nil
	}
	return p.table("blocks", "Blocks of "+name+", A and B", by, p.question().With("function", name), []string{"block"}, "cycles", "cycles_each", "count")
}

// question returns the question together with the models' answers about both runs.
func (p *BlocksPair) question() ask.Question {
	q := ask.New(ask.Pipeline(map[*profile.Profile]*answers.Reply{p.Runs.A.Profile: p.A.Reply, p.Runs.B.Profile: p.B.Reply}))
	q.Machine = p.Machine
	return q
}

func (p *BlocksPair) table(key, title, by string, q ask.Question, columns []string, numbers ...string) *Table {
	if len(rowsOf(p.A.Table(key)))+len(rowsOf(p.B.Table(key))) == 0 {
		return nil
	}
	a := p.Runs.ask(q, key)
	return a.byRow(title, blockWords, by, columns, numbers...)
}

// Same returns the number of the function in B that has the same name as the selected function
// in A, or 0.
func (p *BlocksPair) Same() uint32 {
	t := p.B.Table("functions")
	for i := range rowsOf(t) {
		if cellText(t, i, "function") == p.A.FunctionName() {
			return p.B.Number("functions", i)
		}
	}
	return 0
}

// Choices returns A's functions, in descending order of time.
func (p *BlocksPair) Choices() (list []Choice) {
	t := p.A.Table("functions")
	for i := range rowsOf(t) {
		list = append(list, Choice{Name: cellText(t, i, "number"), Title: cellText(t, i, "function")})
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
