// Package memory computes the average cost of memory accesses from the hit ratios of a
// hierarchy (MODELS §13.1; Santhi and Chennupati, Compute Node Models, LA-UR-17-20754,
// part 2).
//
//  1. A reuse profile P(Δ) says how many lines were touched since the line of an access
//     was ([Profile]). That of a program is the sum of those of its blocks, weighted by
//     how much each refers ([Mix]): measured once, and weighted anew for other counts of
//     executions.
//
//  2. With it each level of a hierarchy has a hit ratio P(h_i), of all accesses
//     ([Profile.Ratios]): below its lines in a fully associative cache, and by the stack
//     distance cache model in one of sets (MODELS §5), as if each level saw every access.
//
//  3. An access that comes to level i has missed those above: of these
//
//     P_i = (P(h_i) − P(h_i−1)) / (1 − P(h_i−1))
//
//     hit ([Conditional]). The average latency, from the load to the use of its value,
//     is what hits here at its latency and what does not at that of all that is behind:
//
//     E(λ) = P_1 λ_1 + (1 − P_1) [P_2 λ_2 + (1 − P_2) [… λ_RAM]]
//
//     and the average bandwidth cost E(β) the same sum of the cycles that a level takes
//     to give a word, its reciprocal throughput ([New]).
//
//  4. A block of b words that follow one another takes t(b) = E(λ) + (b − 1) E(β): one
//     waits for the first, and the others come as fast as they are given
//     ([Costs.Block]).
//
// # Errata of the slides
//
//   - They print t = (1 − b) E(β) + E(λ), by which longer blocks were cheaper. The sign
//     is turned around here; [Costs.AsPrinted] has theirs, to compare.
//   - They write P_hit2 without a word of its being conditional. With the ratio of all
//     accesses in its place, as P(hit) = Σ P(hit|d) P(d) gives it, what hits in the
//     first level would hit in the second once more.
//   - P(BB_i) = N_i / Σ N_j weighs a block by its executions. References are what is
//     averaged, so that a block with r_i of them in an execution weighs N_i r_i
//     ([ByReferences]); theirs is [ByExecutions].
//
// # Limits
//
// Averages only: accesses that overlap each other, prefetches, lines written back and
// the limits of buses are not in it. Exclusive levels and other replacements than LRU are
// taken as inclusive LRU ones; package hierarchy has more to say of a whole run.
package memory

import (
	"math"
	"strconv"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/trace"
)

// WordBytes is the word of most programs' arithmetic.
const WordBytes = 8

// Level is what accesses find at one level, or in memory.
type Level struct {
	Name          string
	Cumulative    float64 // share of all accesses that hit here or above
	Conditional   float64 // share of those that come here
	LatencyCycles float64 // of what hits here; 0: not known
	CyclesPerWord float64 // that a word takes from here; 0: not known
}

// Costs are averages over accesses.
type Costs struct {
	Levels []Level // first level first, memory last

	// LatencyCycles is E(λ) and CyclesPerWord is E(β). They are known if what they hang
	// on is: a level that nothing hits in need say nothing.
	LatencyCycles, CyclesPerWord float64
	LatencyKnown, PerWordKnown   bool
}

// Conditional gives, from hit ratios of all accesses, those of the accesses that come to
// each level. A level that nothing comes to has 1. Where a ratio is below the one of the
// level above, nothing hits there.
func Conditional(cumulative []float64) []float64 {
	list := make([]float64, len(cumulative))
	above := 0.0
	for i, p := range cumulative {
		p = max(p, above)
		list[i] = 1
		if above < 1 {
			list[i] = (p - above) / (1 - above)
		}
		above = p
	}
	return list
}

// New gives the costs of accesses of wordBytes bytes each, of which the share
// cumulative[i] hits at level i of h or above. The error is a [*trace.OptionError].
func New(h hierarchy.Hierarchy, cumulative []float64, wordBytes uint32) (Costs, error) {
	if len(h.Levels) == 0 || len(cumulative) != len(h.Levels) {
		return Costs{}, &trace.OptionError{Option: "hit ratios", Got: strconv.Itoa(len(cumulative)), Want: "one for each level of the hierarchy, which has " + strconv.Itoa(len(h.Levels))}
	}
	if wordBytes == 0 {
		return Costs{}, &trace.OptionError{Option: "word", Got: "0", Want: "a word of at least one byte"}
	}
	for i, p := range cumulative {
		if !(p >= 0 && p <= 1) {
			return Costs{}, &trace.OptionError{Option: "hit ratio of " + h.Levels[i].Name, Got: strconv.FormatFloat(p, 'g', -1, 64), Want: "a share from 0 to 1"}
		}
	}
	var c Costs
	above := 0.0
	for i, p := range Conditional(cumulative) {
		above = max(above, cumulative[i])
		l := &h.Levels[i]
		c.Levels = append(c.Levels, Level{l.Name, above, p, l.LatencyCycles, perWord(wordBytes, l.BytesPerCycle)})
	}
	c.Levels = append(c.Levels, Level{"memory", 1, 1, h.Memory.LatencyCycles, perWord(wordBytes, h.Memory.BytesPerCycle)})
	c.LatencyCycles, c.LatencyKnown = c.average(func(l *Level) float64 { return l.LatencyCycles })
	c.CyclesPerWord, c.PerWordKnown = c.average(func(l *Level) float64 { return l.CyclesPerWord })
	return c, nil
}

func perWord(wordBytes uint32, bytesPerCycle float64) float64 {
	if bytesPerCycle <= 0 {
		return 0
	}
	return float64(wordBytes) / bytesPerCycle
}

// average sums up from memory upwards.
func (c *Costs) average(of func(*Level) float64) (mean float64, known bool) {
	known = true
	for i := len(c.Levels) - 1; i >= 0; i-- {
		l := &c.Levels[i]
		switch {
		case l.Conditional == 0:
		case l.Conditional == 1:
			mean, known = of(l), of(l) > 0
		default:
			mean = l.Conditional*of(l) + (1-l.Conditional)*mean
			known = known && of(l) > 0
		}
	}
	return mean, known
}

// Block is t(b), the cycles that a block of so many words takes which follow one another;
// of none, none. known is false where a latency or bandwidth that it hangs on is not.
func (c *Costs) Block(words float64) (cycles float64, known bool) {
	if !(words > 0) {
		return 0, words == 0
	}
	more := max(0, words-1)
	return c.LatencyCycles + more*c.CyclesPerWord, c.LatencyKnown && (more == 0 || c.PerWordKnown)
}

// AsPrinted is t(b) with the sign of the slides, which is wrong.
func (c *Costs) AsPrinted(words float64) (cycles float64, known bool) {
	return c.LatencyCycles + (1-words)*c.CyclesPerWord, c.LatencyKnown && c.PerWordKnown
}

// Of gives the costs of a run that package hierarchy predicted.
func Of(h hierarchy.Hierarchy, p *hierarchy.Prediction, wordBytes uint32) (Costs, error) {
	var ratios []float64
	for i := range p.Levels {
		ratio := 1.0
		if all := p.Levels[0].Accesses; all > 0 {
			ratio = math.Min(1, math.Max(0, 1-p.Levels[i].Misses/all))
		}
		ratios = append(ratios, ratio)
	}
	return New(h, ratios, wordBytes)
}
