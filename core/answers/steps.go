package answers

import (
	"math"
	"sort"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
)

// mostSteps is the maximum number of rows of [Steps].
const mostSteps = 4

// Steps lists the sizes of fully associative LRU caches at which the miss ratio falls steeply, in
// ascending order. A cache of capacity_lines lines misses much less often than a cache of
// below_lines lines. A fall is called a cliff if it spans at most 1/64 of the cache size.
func Steps(c *profile.Curve, lineBytes uint32) report.Table {
	t := report.Table{Key: "steps", Title: "Sizes at which the miss ratio falls (fully associative LRU, exact)", Columns: report.Columns(
		"below_lines=below (lines)", "below_bytes=below", "capacity_lines=capacity (lines)", "capacity_bytes=capacity",
		"miss_ratio_below=miss ratio below", "miss_ratio=miss ratio", "cliff")}
	list := knees(c)
	sort.Slice(list, func(i, j int) bool { return list[i].Lines < list[j].Lines })
	line := uint64(lineBytes)
	for _, k := range list {
		t.Add(report.Count(k.Below), report.Bytes(k.Below*line), report.Count(k.Lines), report.Bytes(k.Lines*line),
			report.Share(c.Misses(k.Below), c.Accesses), report.Share(c.Misses(k.Lines), c.Accesses), report.YesNo(k.cliff()))
	}
	return t
}

// MostApart returns the capacity, in lines, of the smallest fully associative LRU cache in which
// the miss ratios of two runs differ most. MostApart returns 0 if the miss ratios never differ.
func MostApart(a, b *profile.Curve) (lines uint64) {
	most := 0.
	for _, c := range []*profile.Curve{a, b} {
		for capacity := range c.Points {
			if apart := math.Abs(a.MissRatio(capacity) - b.MissRatio(capacity)); apart > most {
				most, lines = apart, capacity
			}
		}
	}
	return lines
}

// knee is a steep fall of the miss-ratio curve between two capacities.
type knee struct {
	Below uint64  // largest capacity before the fall, in lines
	Lines uint64  // smallest capacity after the fall, in lines
	From  float64 // miss ratio of a cache of Below lines
	To    float64 // miss ratio of a cache of Lines lines
}

// cliff reports whether the fall spans at most 1/64 of the capacity.
func (k knee) cliff() bool { return k.Lines-k.Below <= cliffWidth(k.Lines) }

// cliffWidth and slopeWidth return the maximum width, in lines, of a cliff or slope that ends at
// the given capacity.
func cliffWidth(lines uint64) uint64 { return max(1, lines/64) }
func slopeWidth(lines uint64) uint64 { return max(1, lines/4) }

// knees returns at most mostSteps falls of a curve. Each fall reduces the misses by at least 2 % of
// all accesses. Cliffs come first, followed by slopes that span at most a factor of 4/3 in capacity
// and do not touch a cliff. Cliffs and slopes are each sorted by the size of the fall, in
// descending order.
func knees(c *profile.Curve) []knee {
	var knees []knee
	for _, width := range []func(uint64) uint64{cliffWidth, slopeWidth} {
		for len(knees) < mostSteps {
			k, ok := steepest(c, knees, width)
			if !ok {
				break
			}
			knees = append(knees, k)
		}
	}
	return knees
}

// steepest returns the largest fall that is not wider than the given width and touches no other
// fall. Caches of fewer than four lines are ignored.
func steepest(c *profile.Curve, others []knee, width func(uint64) uint64) (best knee, found bool) {
	gain := c.Accesses / 50
	// "below" is the number of distinct distances at which accesses hit at the smaller capacity
	below, all := 0, distances{curve: c}
	for d, upto := range c.From(0) {
		lines := d + 1
		if lines < 4 {
			continue
		}
		next, count, hits := all.distanceAt(below)
		for next < lines-width(lines) {
			below++
			next, count, hits = all.distanceAt(below)
		}
		hits -= count
		// An access at distance "next" misses in a cache whose capacity is at most this distance.
		k := knee{Below: next, Lines: lines}
		if upto-hits <= gain || nearKnee(others, k) {
			continue
		}
		gain = upto - hits
		k.From, k.To = c.MissRatio(k.Below), c.MissRatio(lines)
		best, found = k, true
	}
	if found {
		best.tighten(c)
	}
	return best, found
}

// tighten increases the lower capacity of a fall as long as at least 95 % of the fall remains.
func (k *knee) tighten(c *profile.Curve) {
	least := (k.From - k.To) * 0.95
	first := sort.Search(c.Len(), func(i int) bool {
		d, _ := c.At(i)
		return d > k.Below
	})
	for d := range c.From(first) {
		from := c.MissRatio(d)
		if d >= k.Lines || from-k.To < least {
			return
		}
		k.Below, k.From = d, from
	}
}

// nearKnee reports whether a fall overlaps or continues one of the given falls, so that a gradual
// decline is not reported as several steps.
func nearKnee(others []knee, k knee) bool {
	for _, o := range others {
		if k.Below < o.Lines && o.Below < k.Lines {
			return true
		}
		if !o.cliff() && k.Lines < 2*o.Lines && o.Lines < 2*k.Lines {
			return true
		}
	}
	return false
}

// distances provides indexed access to the distances of a curve. Access is fast if the indices are
// consecutive.
type distances struct {
	curve  *profile.Curve
	first  int // index of the first distance in the buffer
	buffer []distance
}

type distance struct{ d, count, upto uint64 }

// distanceAt returns the i-th distance, the number of accesses at that distance, and the number of
// accesses at or below it.
func (r *distances) distanceAt(i int) (d, count, upto uint64) {
	const together = 256
	if i < r.first || i >= r.first+len(r.buffer) {
		before := uint64(0)
		if i > 0 {
			_, before = r.curve.At(i - 1)
		}
		r.first, r.buffer = i, r.buffer[:0]
		for d, upto := range r.curve.From(i) {
			r.buffer = append(r.buffer, distance{d, upto - before, upto})
			if before = upto; len(r.buffer) == together {
				break
			}
		}
	}
	got := r.buffer[i-r.first]
	return got.d, got.count, got.upto
}
