package misses

import (
	"cmp"
	"slices"

	"github.com/stackglass/stackglass/core/trace"
)

// mostArrays is the number of columns in counts of evictions.
const mostArrays = 32

// arrays divides lines among arrays. References whose lines overlap belong to one array.
type arrays struct {
	spans  []span   // of lines, ascending
	number []uint32 // of each span: its column in counts of evictions
	byRef  []int    // the span of each reference, -1 without any
	shown  int      // columns
	last   int      // the span of the line that was looked up last
}

// divide joins the spans of bytes of references where their lines overlap. A span that ends before
// it begins is empty. uses decide which arrays have columns of their own.
func divide(all []span, uses []uint64, shift uint) *arrays {
	a := &arrays{byRef: make([]int, len(all))}
	var order []int
	for ref := range all {
		a.byRef[ref] = -1
		if all[ref].first <= all[ref].last {
			all[ref].first >>= shift
			all[ref].last >>= shift
			order = append(order, ref)
		}
	}
	slices.SortFunc(order, func(x, y int) int { return cmp.Compare(all[x].first, all[y].first) })
	var weight []uint64
	for _, ref := range order {
		if n := len(a.spans); n > 0 && all[ref].first <= a.spans[n-1].last {
			a.spans[n-1].join(all[ref])
		} else {
			a.spans = append(a.spans, all[ref])
			weight = append(weight, 0)
		}
		a.byRef[ref] = len(a.spans) - 1
		weight[len(a.spans)-1] += uses[ref]
	}
	a.number = make([]uint32, len(a.spans))
	a.shown = min(len(a.spans), mostArrays)
	heavy := whole(len(a.spans))
	if len(a.spans) > mostArrays {
		slices.SortStableFunc(heavy, func(x, y int) int { return cmp.Compare(weight[y], weight[x]) })
		slices.Sort(heavy[:mostArrays-1])
	}
	for i, s := range heavy {
		a.number[s] = uint32(min(i, mostArrays-1))
	}
	return a
}

// of returns the column of a line's array.
func (a *arrays) of(line trace.Line) uint32 {
	if s := &a.spans[a.last]; line < s.first || line > s.last {
		lo, hi := 0, len(a.spans)-1
		for lo < hi {
			mid := (lo + hi) / 2
			if a.spans[mid].last < line {
				lo = mid + 1
			} else {
				hi = mid
			}
		}
		a.last = lo
	}
	return a.number[a.last]
}
