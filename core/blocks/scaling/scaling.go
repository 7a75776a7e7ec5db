// Package scaling predicts the blocks' executions and reuse at an input that was not run, from runs
// at two or three small ones (MODELS §17). Santhi and Chennupati (Compute Node Models,
// LA-UR-17-20754, part 2) let a larger input have new counts N_i from new branch probabilities,
// with the same reuse profiles P(Δ|BB_i); here both follow from the changes between runs.
//
// # Counts
//
// The executions of a block of an affine program are a polynomial of the input's parameters (as
// long as trip counts have the same remainder by the unrolling of loops). Most polynomials fit few
// runs, so that the shortest description is chosen (Rissanen, Modeling by shortest data
// description, 1978):
//
//  1. All sums of up to four monomials with rational coefficients that fit every run exactly are
//     tried.
//  2. The length of a description is the length of the coefficients and of the choice of monomials.
//     It has to be less than the length of the counts.
//  3. The runs beyond the number of coefficients are a check: [Law.Checked] is their number. A
//     polynomial with as many terms as runs has none, which is a caveat.
//
// Counts without such a polynomial depend on data. They get a power law or, if more than two runs
// suggest it, a + b log n or a n + b n log n, by least squares: [Law.Kind], with its relative error.
//
// # Reuse
//
// The reuse profile of a block is kept as in the largest run, or scaled. First touches of lines
// have a law, as counts do. Distances that are apart from all others by a factor, and whose counts
// have checked polynomials, are a class of their own; if not all are, the profile is one class.
// Each of 512 quantiles of a class is followed from run to run, because a distance in one run
// corresponds to a distance in the next. A quantile is a polynomial that fits the runs, a constant,
// or a sum of two monomials or a power law that fits to 2 % (12.5 % if distances are binned).
// Otherwise it stays the same, because shares change at the quantiles where classes of distances
// meet. Predicted quantiles are sorted.
//
// # Programs
//
// [FitProgram] takes whole runs and predicts one: the edges between blocks, each with its law, and
// sites with their references and distances. [Predicted.Slack] is the imbalance of edges that is
// closed. The result is a profile, so that questions about it need no other formulas. A site's
// distances are binned; within a bin, they are distributed as the exact distances of all references
// of its kind.
//
// # Limits
//
// Sets are not predicted, and power-of-two sizes that share them miss more than the stack distance
// cache model expects. If an allocator aligns arrays differently from run to run, references
// cross lines in some runs only, without a law. A parameter that was the same in all runs cannot be
// predicted with another value. A block that never ran is predicted to run never.
package scaling

import (
	"cmp"
	"math"
	"math/big"
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/core/blocks/memory"
	"github.com/stackglass/stackglass/core/trace"
)

// Run is one input of a program, with the counts and the reuse of its blocks. Lists are indexed by
// block.
type Run struct {
	Parameters []int64           // of the input
	Counts     []uint64          // executions
	References []uint64          // line accesses; nil: unknown
	Reuse      []*memory.Profile // of them; nil, or with nil in it: unknown
}

// Model predicts other runs from some runs.
type Model struct {
	Names  []string // of the parameters
	Counts []Law    // by block

	runs       []Run      // by their parameters, the smallest first
	varied     []int      // parameters with more than one value
	perRun     []Law      // line accesses of an execution, by block
	reuse      []*classed // by block; nil: unknown
	references bool
	fitter     *fitter
}

// Fit finds laws for runs that differ in the parameters with these names. The error is a
// [*trace.OptionError].
func Fit(names []string, runs []Run) (*Model, error) {
	if err := check(names, runs); err != nil {
		return nil, err
	}
	m := &Model{Names: slices.Clone(names), runs: slices.Clone(runs), references: true}
	slices.SortStableFunc(m.runs, func(a, b Run) int {
		return cmp.Or(cmp.Compare(size(a), size(b)), slices.Compare(a.Parameters, b.Parameters))
	})
	for j := range names {
		for i := range runs {
			if runs[i].Parameters[j] != runs[0].Parameters[j] {
				m.varied = append(m.varied, j)
				break
			}
		}
	}
	f := newFitter(m)
	m.fitter = f
	blocks := len(runs[0].Counts)
	m.Counts = make([]Law, blocks)
	for b := range blocks {
		m.Counts[b] = f.counts(m.values(func(r *Run) uint64 { return r.Counts[b] }))
	}
	for i := range m.runs {
		m.references = m.references && m.runs[i].References != nil
	}
	if m.references {
		m.fitReuse(f)
	}
	return m, nil
}

// size orders runs.
func size(r Run) (n float64) {
	for _, v := range r.Parameters {
		n += math.Log(math.Abs(float64(v)) + 1)
	}
	return n
}

func (m *Model) values(of func(*Run) uint64) []uint64 {
	list := make([]uint64, len(m.runs))
	for i := range m.runs {
		list[i] = of(&m.runs[i])
	}
	return list
}

func check(names []string, runs []Run) error {
	bad := func(got, want string) error { return &trace.OptionError{Option: "runs", Got: got, Want: want} }
	if len(names) == 0 || len(names) > mostParameters {
		return bad(strconv.Itoa(len(names))+" parameters", "one to "+strconv.Itoa(mostParameters)+", such as the size of the input")
	}
	if len(runs) < 2 {
		return bad(strconv.Itoa(len(runs)), "at least two, at different inputs")
	}
	for i := range runs {
		r := &runs[i]
		number := "run " + strconv.Itoa(i+1) + ": "
		if len(r.Parameters) != len(names) {
			return bad(number+strconv.Itoa(len(r.Parameters))+" parameters", "a value for each of "+strconv.Itoa(len(names)))
		}
		blocks := len(runs[0].Counts)
		if len(r.Counts) != blocks || r.References != nil && len(r.References) != blocks || r.Reuse != nil && len(r.Reuse) != blocks {
			return bad(number+strconv.Itoa(len(r.Counts))+" blocks", "as many as the first run, "+strconv.Itoa(blocks)+", in all of its lists: runs of one build of the program")
		}
		for j := range runs[:i] {
			if slices.Equal(runs[j].Parameters, r.Parameters) {
				return bad(number+"the parameters of run "+strconv.Itoa(j+1), "runs at different inputs")
			}
		}
		for _, v := range r.Parameters {
			if v > mostValue || v < -mostValue {
				return bad(number+strconv.FormatInt(v, 10), "parameters from −2^40 to 2^40")
			}
		}
	}
	return nil
}

const (
	mostParameters = 4
	mostValue      = 1 << 40
)

// Count is a predicted number of executions of a block.
type Count struct {
	Executions float64
	// Whole is Executions if a polynomial has a non-negative integer value, which IsWhole reports;
	// it is exact if the polynomial is the program's.
	Whole   uint64
	IsWhole bool
}

// Prediction is the predicted behaviour of a program at an input.
type Prediction struct {
	Parameters []int64
	Counts     []Count        // by block
	Blocks     []memory.Block // the same with references and their reuse, for [memory.Mix]; nil: unknown
	Doubts     []string       // sentences
}

// Reuse selects how reuse profiles are predicted.
type Reuse uint8

const (
	// Kept: the profiles of the largest run.
	Kept Reuse = iota
	// Scaled: distances grow as they grew from run to run.
	Scaled
)

// Predict returns counts and reuse at parameters. The error is a [*trace.OptionError].
func (m *Model) Predict(at []int64, reuse Reuse) (*Prediction, error) {
	if err := m.checkAt(at); err != nil {
		return nil, err
	}
	p := &Prediction{Parameters: slices.Clone(at), Counts: make([]Count, len(m.Counts))}
	for b := range m.Counts {
		p.Counts[b] = m.Counts[b].count(at)
	}
	if m.references {
		p.Blocks = make([]memory.Block, len(m.Counts))
		for b := range p.Blocks {
			p.Blocks[b] = m.block(b, p.Counts[b].Executions, at, reuse)
		}
	}
	m.doubt(p, reuse)
	return p, nil
}

func (m *Model) checkAt(at []int64) error {
	if len(at) != len(m.Names) {
		return &trace.OptionError{Option: "at", Got: strconv.Itoa(len(at)), Want: "a value for each of " + strconv.Itoa(len(m.Names))}
	}
	for j, v := range at {
		switch {
		case v > mostValue || v < -mostValue:
			return &trace.OptionError{Option: "at", Got: m.Names[j] + "=" + strconv.FormatInt(v, 10), Want: "a value from −2^40 to 2^40"}
		case v != m.runs[0].Parameters[j] && !slices.Contains(m.varied, j):
			return &trace.OptionError{Option: "at", Got: m.Names[j] + "=" + strconv.FormatInt(v, 10), Want: strconv.FormatInt(m.runs[0].Parameters[j], 10) + " as in all of the runs; add a run with another value to predict for others"}
		}
	}
	return nil
}

// count is the law's value as a number of executions.
func (l *Law) count(at []int64) (c Count) {
	if l.Kind == Polynomial {
		exact := l.exact(at)
		c.Executions, _ = exact.Float64()
		if exact.IsInt() && exact.Num().IsUint64() {
			c.Whole, c.IsWhole = exact.Num().Uint64(), true
		}
	} else {
		c.Executions = l.At(at)
	}
	c.Executions = min(max(0, c.Executions), mostExecutions)
	return c
}

// mostExecutions is beyond anything that will be run.
const mostExecutions = 1e30

// doubt adds the caveats of the prediction.
func (m *Model) doubt(p *Prediction, reuse Reuse) {
	say := func(s string) { p.Doubts = append(p.Doubts, s) }
	var all, guessed, unchecked, odd, off float64
	for b, c := range p.Counts {
		all += c.Executions
		l := &m.Counts[b]
		switch {
		case l.Kind != Polynomial:
			guessed += c.Executions
			off = max(off, l.Off)
		case !c.IsWhole:
			odd += c.Executions
		case l.Checked == 0:
			unchecked += c.Executions
		}
	}
	if guessed > 0 {
		say(percent(guessed/all) + " of the executions are of blocks whose counts depend on data, or on more than the runs show: they are predicted by formulas that match the runs to " + percent(off) + ".")
	}
	if unchecked > 0 {
		say(percent(unchecked/all) + " of the executions are of blocks whose polynomials have as many terms as there were runs: one more run would check them.")
	}
	if odd > 0 {
		say(percent(odd/all) + " of the executions are of blocks whose polynomials yield no whole number here: the input has another remainder than the runs.")
	}
	inside := 0
	for _, j := range m.varied {
		low, high := m.runs[0].Parameters[j], m.runs[0].Parameters[j]
		for i := range m.runs {
			low, high = min(low, m.runs[i].Parameters[j]), max(high, m.runs[i].Parameters[j])
		}
		switch v := p.Parameters[j]; {
		case v > high && high > 0 && v/high >= far:
			say(m.Names[j] + " is " + strconv.FormatInt(v/high, 10) + " times as large as in the largest run.")
		case v < low:
			say(m.Names[j] + " is smaller than in every run.")
		case v <= high:
			inside++
		}
	}
	if len(m.varied) > 0 && inside == len(m.varied) {
		say("No parameter is larger than in the runs: this is no prediction for a larger input.")
	}
	switch {
	case p.Blocks == nil:
	case reuse == Kept:
		say("The reuse of lines is taken to be as in the largest run.")
	case len(m.runs) < 3:
		say("The reuse of lines is scaled from two runs, without a third one as a check.")
	default:
		say("The reuse of lines is scaled from " + strconv.Itoa(len(m.runs)) + " runs.")
	}
}

// far is the ratio to the largest run above which an input has a caveat.
const far = 16

func percent(share float64) string {
	return strconv.FormatFloat(100*share, 'g', 3, 64) + " %"
}

// exact evaluates a polynomial.
func (l *Law) exact(at []int64) *big.Rat {
	sum := new(big.Rat)
	for i := range l.Terms {
		t := &l.Terms[i]
		sum.Add(sum, new(big.Rat).Mul(t.Factor, new(big.Rat).SetInt(t.monomial(at))))
	}
	return sum
}

// monomial is the product of the powers.
func (t *Term) monomial(at []int64) *big.Int {
	n := big.NewInt(1)
	for j, power := range t.Powers {
		for range power {
			n.Mul(n, big.NewInt(at[j]))
		}
	}
	return n
}
