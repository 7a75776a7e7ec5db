package diagnose

import (
	"slices"

	"github.com/stackglass/stackglass/core/costmodel"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
)

// recordMore is the advice to record a trace with code.
const recordMore = `the trace does not say which source location made a reference, so only the run as a whole is diagnosed, and each reference is assumed to cost one cycle: ` +
	`compile the program with "stackglass cc -- clang …" and run it, to find source lines and data, and to try changes`

// whole diagnoses a run without source locations. whole divides the misses of each level by cause.
// Conflict misses are the misses that a fully associative cache of the same size would avoid. No
// cache can avoid cold misses, or misses on lines that another core invalidated. All other misses
// are capacity misses.
func (r *run) whole() error {
	h, assumed := costmodel.CompleteLatencies(r.Machine, r.Processor)
	full := h
	full.Levels = slices.Clone(h.Levels)
	for k := range full.Levels {
		full.Levels[k].Ways, full.Levels[k].Hashed = 0, false
	}
	asker := hierarchy.NewAsker(r.p)
	found, warnings, err := asker.Predict(h, nil)
	if err != nil {
		return err
	}
	ideal, _, err := asker.Predict(full, nil)
	if err != nil {
		return err
	}
	for _, w := range slices.Concat(assumed, warnings) {
		r.out.Notes = append(r.out.Notes, string(w))
	}
	r.out.Notes = append(r.out.Notes, recordMore)

	r.out.Cycles = withoutCode * float64(r.p.Totals.AllReferences())
	conflicts, capacity := make([]float64, len(h.Levels)), make([]float64, len(h.Levels)) // cycles due to conflict and capacity misses, by level
	for k := range h.Levels {
		behind, name := h.Memory.LatencyCycles, "memory"
		fetched := found.Levels[k].Misses
		if k+1 < len(h.Levels) {
			behind, name = h.Levels[k+1].LatencyCycles, h.Levels[k+1].Name
			fetched = max(0, fetched-found.Levels[k+1].Misses)
		}
		wait := fetched * (behind - h.Levels[0].LatencyCycles) / overlapRandom
		r.out.Waits = append(r.out.Waits, LevelWait{Name: name, Cycles: wait})
		r.out.Cycles += wait
		misses, cold, lost := found.Levels[k].Misses, 0.0, 0.0
		if k < len(found.Coherence) {
			lost = found.Coherence[k]
		}
		if l := r.p.LocalityAt(h.Levels[k].LineBytes); l != nil {
			cold = min(misses, float64(coldOf(l)))
		}
		inSets := max(0, misses-max(cold, ideal.Levels[k].Misses))
		conflicts[k] = wait * share(inSets, misses)
		capacity[k] = wait * max(0, share(misses-cold-inSets-lost, misses))
	}
	const how = "Not tried, because the trace does not say which source locations miss. The saving is a range. The upper bound is all cycles that the run waits for these misses."
	if k, cost := largest(conflicts); cost > 0 {
		level := h.Levels[k].Name
		r.add(&place{}, Finding{Kind: Conflict, Cost: cost, Saved: cost / 2, Most: cost, How: how,
			Why: percent(share(conflicts[k], r.out.Waits[k].Cycles)) + " of the misses of " + level + " are conflict misses, because the lines map to only a few sets",
			Fix: "pad the rows of arrays whose size is a power of two, or move arrays apart, so that they begin in different sets", More: "sets"})
	}
	if k, cost := largest(capacity); cost > 0 {
		level := h.Levels[k].Name
		r.add(&place{}, Finding{Kind: Capacity, Cost: cost, Saved: cost / 4, Most: cost, How: how,
			Why: percent(share(capacity[k], r.out.Waits[k].Cycles)) + " of the misses of " + level + " are on lines that were evicted since their last use" + r.sufficientSize(h.Levels[k].LineBytes),
			Fix: "work on parts of the data that fit in " + level + ": do all steps for one part before starting the next", More: "curve"})
	}
	return nil
}

// largest returns the index of the largest number, and the sum of all numbers.
func largest(list []float64) (at int, sum float64) {
	for k, x := range list {
		sum += x
		if x > list[at] {
			at = k
		}
	}
	return at, sum
}

func coldOf(l *profile.Locality) uint64 {
	_, cold := l.Histogram(trace.AllKinds)
	return cold
}

// sufficientSize returns the smallest size of a fully associative cache that has only cold misses.
func (r *run) sufficientSize(lineBytes uint32) string {
	l := r.p.LocalityAt(lineBytes)
	if l == nil {
		return ""
	}
	counts, cold := l.Histogram(trace.AllKinds)
	c := profile.NewCurve(counts, cold)
	all, ok := c.CapacityFor(cold)
	if !ok {
		return ""
	}
	return "; a fully associative cache of " + report.Bytes(all*uint64(lineBytes)).Human() + " would contain all of these lines"
}
