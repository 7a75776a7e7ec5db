// Package scaling predicts execution counts and stack distances of basic blocks for an input that
// was not run, from runs with two or three small inputs (MODELS §17). Santhi and Chennupati
// (Compute Node Models, LA-UR-17-20754, part 2) compute new counts N_i for a larger input from new
// branch probabilities, but do not change the reuse profiles P(Δ|BB_i). This package predicts both
// the counts and the profiles, from the differences between the runs.
//
// # Counts
//
// In an affine program, the number of executions of a block is a polynomial in the input's
// parameters (as long as trip counts have the same remainder modulo the unrolling factor). If there
// are only a few runs, many different polynomials fit their counts. The polynomial with the
// shortest description is chosen (Rissanen, Modeling by shortest data description, 1978):
//
//  1. All sums of up to four monomials are tried. A sum must fit every run exactly, with rational
//     coefficients.
//  2. The length of a description is the number of bits that encode the coefficients and the choice
//     of monomials. A description must be shorter than the counts themselves.
//  3. If there are more runs than coefficients, the additional runs check the polynomial.
//     [Law.Checked] is the number of these additional runs. If a polynomial has as many terms as
//     there are runs, it cannot be checked. The law is then not decided: the result contains a
//     caveat, and an interval that also contains the values of approximate laws.
//  4. If no checked polynomial fits, sums are tried whose terms also contain a [Function], for example
//     n log2 n. An additional run must check these sums. If all sizes are powers of two, logarithms
//     are integers. Otherwise, logarithms are rounded up, as in a merge sort, or down, as in a heap.
//
// If there is no such sum, the counts are assumed to depend on the input data. Approximate laws are
// then fitted by least squares: a power law, sums of one or two terms, and multiples of the exact
// laws of other blocks. Each law is fitted to all runs except one, in turn, and the law that predicts
// these runs best is chosen. [Law.Kind] is the form of the law, and [Law.Interval] returns the limits
// of its value.
//
// # Reuse
//
// The reuse profile of a block is either copied from the largest run, or scaled. The number of
// first accesses to lines is predicted by a law, like other counts. Distances are divided into
// classes. The distances of neighbouring classes must differ by at least a certain factor, and the
// count of each class must have a checked polynomial. If the distances cannot be divided in this
// way, they form a single class. A law is fitted to each of 512 quantiles of a class, because each
// quantile in one run corresponds to the same quantile in all other runs. The law of a quantile is
// a polynomial that fits all runs exactly, a constant, a sum of two monomials, or a power law. Sums
// and power laws must fit within 2 % (12.5 % if distances are binned). A quantile without such a
// law keeps its value from the largest run. Such quantiles lie where two classes of distances meet,
// if the shares of the classes change from run to run. Finally, the predicted quantiles are sorted.
//
// # Programs
//
// [FitProgram] predicts a complete run from complete runs. [FitProgram] fits a law to each edge
// between blocks, and to the references and distances of each site. [Predicted.Slack] is the total
// difference between the predicted entries and exits of blocks, before the edges are balanced. The
// result is a profile, which can be used like any other profile. Only the bins of a site's
// distances are known. Within a bin, a site's distances are assumed to have the same distribution
// as the exact distances of all references of the same kind.
//
// # Loops
//
// If the loop-compressed traces of the runs have the same structure, they are extrapolated: trip
// counts, strides, sizes, and offsets in heap blocks are polynomials in the parameters, and a run must
// check each of them. Package misses then counts the misses of the larger run exactly, including
// conflicts in sets. The number of references must equal the number that the laws of the sites
// predict. The addresses of heap blocks and of the stack do not follow from the parameters. The likely
// placement continues the pattern of the runs, and assumes that glibc maps blocks of at least 128 KiB
// separately. [Predicted.Forecast] counts the misses for 16 placements, and returns the smallest and
// the largest number as an interval.
//
// # Limits
//
// If the loops cannot be extrapolated ([Predicted.NoLoops] is the reason), the mapping of lines to
// sets is not known. Arrays with power-of-two sizes that map to the same sets then miss more often than
// the stack distance cache model predicts, and the interval contains the misses for every mapping. If
// an allocator aligns arrays differently from run to run, references cross line boundaries in only
// some runs, so the numbers of line accesses follow no law. If a parameter has the same value in all
// runs, runs with other values of this parameter cannot be predicted. If no run executed a block, its
// predicted count is 0. Cycles are predicted without conflicts in sets.
package scaling

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/core/blocks/memory"
	"github.com/stackglass/stackglass/core/trace"
)

// Run contains the counts and the reuse of a program's blocks for one input. Lists are indexed by
// block.
type Run struct {
	Parameters []int64  // the parameters of the input
	Counts     []uint64 // number of executions of each block
	References []uint64 // line accesses of each block; nil if unknown
	// the reuse profile of each block; nil, or a nil element, if unknown
	Reuse []*memory.Profile
}

// Model predicts a run from other runs.
type Model struct {
	Names  []string // the names of the parameters
	Counts []Law    // for each block: the law of its number of executions

	runs       []Run        // in ascending order of input size
	varied     []int        // parameters that have different values in different runs
	perRun     []Law        // line accesses per execution, by block
	reuse      []*classLaws // by block; nil if unknown
	references bool
	fitter     *fitter
}

// Fit finds laws that describe the runs. The parameters have the given names. The error is a
// [*trace.OptionError].
func Fit(names []string, runs []Run) (*Model, error) {
	if err := check(names, runs); err != nil {
		return nil, err
	}
	m := &Model{Names: slices.Clone(names), runs: slices.Clone(runs), references: true}
	slices.SortStableFunc(m.runs, func(a, b Run) int {
		return cmp.Or(cmp.Compare(size(a), size(b)), slices.Compare(a.Parameters, b.Parameters))
	})
	m.varied = variedIn(m.runs)
	f := newFitter(m)
	m.fitter = f
	blocks := len(runs[0].Counts)
	m.Counts = make([]Law, blocks)
	for b := range blocks {
		if l, ok := f.exactCount(m.values(func(r *Run) uint64 { return r.Counts[b] })); ok {
			f.addKnown(&l)
		}
	}
	for b := range blocks {
		m.Counts[b] = f.countLaw(m.values(func(r *Run) uint64 { return r.Counts[b] }))
	}
	for i := range m.runs {
		m.references = m.references && m.runs[i].References != nil
	}
	if m.references {
		m.fitReuse(f)
	}
	return m, nil
}

// size returns the size of a run's input. Runs are sorted by this size.
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
	if len(names) == 0 || len(names) > maxParameters {
		return bad(strconv.Itoa(len(names))+" parameters", "1 to "+strconv.Itoa(maxParameters)+" parameters, such as the size of the input")
	}
	if len(runs) < 2 {
		return bad(strconv.Itoa(len(runs)), "at least two runs, with different inputs")
	}
	for i := range runs {
		r := &runs[i]
		number := "run " + strconv.Itoa(i+1) + ": "
		if len(r.Parameters) != len(names) {
			return bad(number+strconv.Itoa(len(r.Parameters))+" parameters", "a value for each of the "+strconv.Itoa(len(names))+" parameters")
		}
		blocks := len(runs[0].Counts)
		if len(r.Counts) != blocks || r.References != nil && len(r.References) != blocks || r.Reuse != nil && len(r.Reuse) != blocks {
			return bad(number+strconv.Itoa(len(r.Counts))+" blocks", "as many blocks as in the first run ("+strconv.Itoa(blocks)+"); use runs of one build of the program")
		}
		for j := range runs[:i] {
			if slices.Equal(runs[j].Parameters, r.Parameters) {
				return bad(number+"the parameters of run "+strconv.Itoa(j+1), "runs with different inputs")
			}
		}
		for _, v := range r.Parameters {
			if v > maxValue || v < -maxValue {
				return bad(number+strconv.FormatInt(v, 10), "parameters from −2^40 to 2^40")
			}
		}
	}
	return nil
}

const (
	maxParameters = 4
	maxValue      = 1 << 40
)

// Count is a predicted number of executions of a block.
type Count struct {
	Executions float64
	// If the law is a polynomial and its value is a non-negative integer, IsWhole is true, and
	// Whole is this value. Whole is exact if the polynomial is correct for the program.
	Whole   uint64
	IsWhole bool
}

// Prediction is the predicted behaviour of a program for one input.
type Prediction struct {
	Parameters []int64
	Counts     []Count        // predicted executions of each block
	Blocks     []memory.Block // the blocks with their references and reuse, for [memory.Mix]; nil if unknown
	Doubts     []string       // caveats, as complete sentences
}

// Reuse selects how reuse profiles are predicted.
type Reuse uint8

const (
	// Kept uses the reuse profiles of the largest run unchanged.
	Kept Reuse = iota
	// Scaled extrapolates how the stack distances grow from run to run.
	Scaled
)

// Predict predicts counts and reuse for the given parameters. The error is a [*trace.OptionError].
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
		case v > maxValue || v < -maxValue:
			return &trace.OptionError{Option: "at", Got: m.Names[j] + "=" + strconv.FormatInt(v, 10), Want: "a value from −2^40 to 2^40"}
		case v != m.runs[0].Parameters[j] && !slices.Contains(m.varied, j):
			return &trace.OptionError{Option: "at", Got: m.Names[j] + "=" + strconv.FormatInt(v, 10), Want: strconv.FormatInt(m.runs[0].Parameters[j], 10) + ", as in all runs; to predict for different values, add a run with a different value"}
		}
	}
	return nil
}

func (l *Law) count(at []int64) (c Count) {
	l = l.at(at)
	if exact, ok := l.exactValue(at); l.Kind == Exact && ok && exact.IsInt() && exact.Num().IsUint64() {
		c.Whole, c.IsWhole = exact.Num().Uint64(), true
	}
	c.Executions = l.At(at)
	c.Executions = min(max(0, c.Executions), maxExecutions)
	return c
}

// maxExecutions is larger than the number of executions in any program.
const maxExecutions = 1e30

func (m *Model) doubt(p *Prediction, reuse Reuse) {
	say := func(s string) { p.Doubts = append(p.Doubts, s) }
	var all, guessed, unchecked, odd, off float64
	for b, c := range p.Counts {
		all += c.Executions
		l := &m.Counts[b]
		switch {
		case l.Kind != Exact:
			guessed += c.Executions
			off = max(off, l.Off)
		case !c.IsWhole:
			odd += c.Executions
		case l.Checked == 0:
			unchecked += c.Executions
		}
	}
	if guessed > 0 {
		say(percent(guessed/all) + " of the executions are in blocks whose counts depend on data, or on a quantity that is equal in all runs. The counts of these blocks are predicted by formulas that match the runs to within " + percent(off) + ".")
	}
	if unchecked > 0 {
		say(percent(unchecked/all) + " of the executions are in blocks whose formulas have as many terms as there were runs: one more run would check these formulas.")
	}
	if odd > 0 {
		say(percent(odd/all) + " of the executions are in blocks whose formulas yield fractions for this input, because its remainder modulo the compiler's vector length differs from the remainders of the recorded inputs.")
	}
	inside := 0
	for _, j := range m.varied {
		low, high := m.runs[0].Parameters[j], m.runs[0].Parameters[j]
		for i := range m.runs {
			low, high = min(low, m.runs[i].Parameters[j]), max(high, m.runs[i].Parameters[j])
		}
		switch v := p.Parameters[j]; {
		case v > high && high > 0 && v/high >= extrapolationRatio:
			say(m.Names[j] + " is " + strconv.FormatInt(v/high, 10) + " times as large as in the largest run.")
		case v < low:
			say(m.Names[j] + " is smaller than in any run.")
		case v <= high:
			inside++
		}
	}
	if len(m.varied) > 0 && inside == len(m.varied) {
		say("No parameter is larger than in the runs, so this is not a prediction for a larger input.")
	}
	switch {
	case p.Blocks == nil:
	case reuse == Kept:
		say("The reuse of lines is assumed to be the same as in the largest run.")
	case len(m.runs) < 3:
		say("The reuse of lines is predicted from two runs, and there is no third run to check it.")
	default:
		say("The reuse of lines is predicted from " + strconv.Itoa(len(m.runs)) + " runs.")
	}
}

// If a parameter is at least extrapolationRatio times its largest recorded value, the result
// contains a caveat about the extrapolation.
const extrapolationRatio = 16

func percent(share float64) string {
	return strconv.FormatFloat(100*share, 'g', 3, 64) + " %"
}
