package costmodel

import (
	"math"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/pipeline"
)

// Default latencies, for levels that neither the hierarchy nor the processor describes.
const (
	firstLevel = 4 // latency of the first level, in cycles
	// nextLevel is the ratio between the latency of a cache and the latency of the level above.
	// With 4 cycles in the first level, the second level takes 14 cycles and the third level 49
	// cycles. These latencies are close to the latencies of Zen 4 (4, 14 and 50 cycles).
	nextLevel = 3.5
	// memoryNanoseconds is the latency of memory if the clock frequency is known. memoryCycles is
	// the latency of memory if the clock frequency is unknown. In the presets, the latency of
	// memory is 80 to 140 ns, or 120 to 440 cycles.
	memoryNanoseconds = 100
	memoryCycles      = 300
	// leastMemory is the minimum ratio between the latency of memory and the latency of the last
	// cache.
	leastMemory = 2
)

// CompleteLatencies returns h with a latency for every level and for memory, in cycles, and a
// warning that lists the latencies that h lacked. Existing latencies do not change. A missing
// latency is set to the first of the following values that lies between the latencies of the
// neighbouring levels:
//
//   - the latency of the level at the same depth (or of memory) in the processor's description; for
//     the first level, the latency of an integer load;
//   - for the first level, 4 cycles; for another cache, 3.5 times the latency of the level above;
//   - for memory, 100 ns at the clock frequency of h or of the processor (300 cycles if neither is
//     known), but at least twice the latency of the last cache;
//   - the geometric mean of the neighbouring latencies.
//
// A hierarchy without levels is left unchanged.
func CompleteLatencies(h hierarchy.Hierarchy, p *pipeline.Processor) (hierarchy.Hierarchy, []hierarchy.Warning) {
	n := len(h.Levels)
	if n == 0 {
		return h, nil
	}
	latencies := make([]float64, n+1) // the last latency is the latency of memory
	for i := range h.Levels {
		latencies[i] = h.Levels[i].LatencyCycles
	}
	latencies[n] = h.Memory.LatencyCycles
	var assumed []string
	for i := range latencies {
		if latencies[i] > 0 {
			continue
		}
		above, below, name := 0.0, math.Inf(1), "memory"
		if i > 0 {
			above = latencies[i-1]
		}
		for _, next := range latencies[i+1:] {
			if next > 0 {
				below = next
				break
			}
		}
		latencies[i] = math.Sqrt(max(above, 1) * below)
		guess := max(firstLevel, nextLevel*above)
		if i < n {
			name = h.Levels[i].Name
		} else {
			guess = max(usualMemory(h.ClockGHz, p), leastMemory*above)
		}
		for _, cycles := range []float64{describedLatency(p, i, i == n), guess} {
			if cycles > above && cycles < below {
				latencies[i] = cycles
				break
			}
		}
		assumed = append(assumed, name+" "+strconv.FormatFloat(latencies[i], 'g', 4, 64))
	}
	if assumed == nil {
		return h, nil
	}
	h.Levels = append([]hierarchy.Cache(nil), h.Levels...)
	for i := range h.Levels {
		h.Levels[i].LatencyCycles = latencies[i]
	}
	h.Memory.LatencyCycles = latencies[n]
	return h, []hierarchy.Warning{hierarchy.Warning("the hierarchy does not state all latencies; assumed latencies, in cycles: " + strings.Join(assumed, ", ") +
		" (add latency=CYCLES to a level, and memory=latency=CYCLES)")}
}

// describedLatency returns the latency of a level in a processor's description, or 0 if there is
// none.
func describedLatency(p *pipeline.Processor, depth int, memory bool) float64 {
	switch {
	case p == nil:
		return 0
	case memory:
		if n := len(p.Levels); n > 0 && p.Levels[n-1].SizeBytes == 0 {
			return p.Levels[n-1].LatencyCycles
		}
		return 0
	case depth == 0:
		return p.FirstLevel()
	case depth < len(p.Levels) && p.Levels[depth].SizeBytes > 0:
		return p.Levels[depth].LatencyCycles
	}
	return 0
}

// usualMemory returns the latency of memory that is assumed if no latency is given.
func usualMemory(clockGHz float64, p *pipeline.Processor) float64 {
	if clockGHz == 0 && p != nil {
		clockGHz = p.ClockGHz
	}
	if clockGHz > 0 {
		return math.Round(memoryNanoseconds * clockGHz)
	}
	return memoryCycles
}
