// Package memory computes the average cost of memory accesses from the hit ratios of a
// hierarchy (MODELS §13.1; Santhi and Chennupati, Compute Node Models, LA-UR-17-20754,
// part 2).
//
//  1. A reuse profile P(Δ) counts accesses by stack distance ([Profile]). The profile of a
//     program is the sum of its blocks' profiles, weighted by their accesses ([Mix]).
//
//  2. Each level of a hierarchy has a hit ratio P(h_i) of all accesses ([Profile.Ratios]).
//     It is exact for a fully associative cache and follows the stack distance cache model
//     (MODELS §5) for a set-associative one, as if each level saw every access.
//
//  3. An access that reaches level i has missed the levels above. Of these accesses
//
//     P_i = (P(h_i) − P(h_i−1)) / (1 − P(h_i−1))
//
//     hit ([Conditional]). The average latency, from the load to the use of its value, is
//
//     E(λ) = P_1 λ_1 + (1 − P_1) [P_2 λ_2 + (1 − P_2) [… λ_RAM]]
//
//     and the average bandwidth cost E(β) is the same sum over the cycles that a level
//     needs for a word, its reciprocal throughput ([New]).
//
// # Errata of the slides
//
//   - They give a block of b words that follow one another the time t = (1 − b) E(β) + E(λ),
//     by which longer blocks would be cheaper. It is t = E(λ) + (b − 1) E(β).
//   - They do not say that P_hit2 is conditional. With the ratio of all accesses in its
//     place, as in P(hit) = Σ P(hit|d) P(d), hits in the first level would count again in
//     the second.
//   - P(BB_i) = N_i / Σ N_j weights a block by its executions. The average is over
//     references, so that a block with r_i of them in an execution has the weight N_i r_i.
//
// # Limits
//
// These are averages only: overlapping accesses, prefetches, write-backs and the bandwidth
// of buses are not modelled. Exclusive levels and other replacement policies count as
// inclusive LRU levels; package hierarchy models more for a whole run.
package memory

import (
	"strconv"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/trace"
)

// WordBytes is the word size of most programs' arithmetic.
const WordBytes = 8

// Level is one level of a hierarchy, or memory, as accesses see it.
type Level struct {
	Name          string
	Cumulative    float64 // hit ratio, here or above, of all accesses
	Conditional   float64 // hit ratio of the accesses that reach this level
	LatencyCycles float64 // of a hit here; 0 if unknown
	CyclesPerWord float64 // 0 if unknown
}

// Costs are averages over accesses.
type Costs struct {
	Levels []Level // first level first, memory last

	// LatencyCycles is E(λ) and CyclesPerWord is E(β). They are known if they are known of
	// every level with hits.
	LatencyCycles, CyclesPerWord float64
	LatencyKnown, PerWordKnown   bool
}

// Conditional turns hit ratios of all accesses into hit ratios of the accesses that reach
// each level: 1 where none does, and 0 where the ratio is below that of the level above.
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

// New returns the costs of accesses of wordBytes bytes each, of which the share
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

// average weights a cost of the levels with their hit ratios, from memory upwards.
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
