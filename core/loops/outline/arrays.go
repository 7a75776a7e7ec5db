package outline

import (
	"cmp"
	"slices"
	"sort"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/trace"
)

// Array describes an array that references of a loop access. References with overlapping lines or
// the same variable name access the same array. All addresses are from the first run of the loop.
type Array struct {
	Name string // "" if no reference has a name
	Refs []loops.Reference
	// References is the number of references to the array in all runs of the loop. Stores is the
	// number of stores among these references.
	References, Stores uint64
	// Wild is true if the addresses are irregular. Only Name, References and Stores are then known.
	Wild bool

	Base   trace.Addr // address of the lowest byte that is accessed
	Extent uint64     // number of bytes from Base to the highest accessed byte, inclusive
	// Strides contains the stride in bytes for each loop, from the outermost loop of the nest to
	// the innermost loop around the references.
	Strides []int64
	// Mixed is true if the references to the array differ in their strides or in their number of
	// surrounding loops.
	Mixed bool
	// Touched is the number of accessed bytes, and Lines is the number of lines that contain these
	// bytes.
	Touched, Lines uint64
	// Exact is true if Touched and Lines are exact numbers. Otherwise, they are upper bounds.
	Exact bool
}

// Utilisation returns the line utilisation: the number of accessed bytes as a fraction, from 0 to
// 1, of all bytes in the array's lines.
func (a *Array) Utilisation(lineBytes uint64) float64 {
	if a.Lines == 0 {
		return 0
	}
	return float64(a.Touched) / (float64(a.Lines) * float64(lineBytes))
}

// Arrays returns the arrays of a loop, in descending order of references. The parameter name is a
// function that returns the variable that a reference accesses, or "" if the variable is unknown.
// The argument lineBytes must be a power of two.
func (o *Outline) Arrays(loop int, lineBytes uint64, name func(loops.Reference) string) []Array {
	l := &o.Loops[loop]
	w := walker{nest: o.nests[l.Nest], lineBytes: lineBytes, left: maxSpans}
	return w.arrays(l.item, name)
}

// span is a range of bytes.
type span struct{ lo, hi trace.Addr } // hi is greater than lo

// maxSpans limits the number of ranges in an exact description of the data of a loop.
const maxSpans = 1 << 17

// pattern describes the addresses of a reference.
type pattern struct {
	spans  []span // disjoint and in ascending order if the field "exact" is true
	lo, hi trace.Addr
	bytes  uint64
	exact  bool
}

type walker struct {
	nest      *nest
	lineBytes uint64
	left      int
}

// leaf is a reference of a loop.
type leaf struct {
	item    int
	name    string
	of      pattern
	strides []int64
}

func (w *walker) arrays(k int, name func(loops.Reference) string) (list []Array) {
	n := w.nest
	var tame []leaf
	for j := k; j < n.items[k].end; j++ {
		it := &n.items[j]
		if it.loop || !it.ref.Kind.IsReference() {
			continue
		}
		l := leaf{item: j, name: name(it.ref)}
		if it.wild {
			list = w.addWild(list, &l)
			continue
		}
		l.of = w.pattern(k, j, n.params[k:])
		l.strides = n.strides(j)
		tame = append(tame, l)
	}
	sort.SliceStable(tame, func(i, j int) bool { return tame[i].of.lo < tame[j].of.lo })
	for len(tame) > 0 {
		var group, rest []leaf
		end, named := uint64(0), ""
		for i, l := range tame {
			if i > 0 && l.of.lo/w.lineBytes > end { // this range lies after all previous ranges
				rest = append(rest, tame[i:]...)
				break
			}
			if i > 0 && l.name != "" && named != "" && l.name != named {
				rest = append(rest, l)
				continue
			}
			group = append(group, l)
			end, named = max(end, (l.of.hi-1)/w.lineBytes), cmp.Or(named, l.name)
		}
		list = append(list, w.array(group, named))
		tame = rest
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].References > list[j].References })
	return list
}

// addWild adds an irregular reference to the wild array with the same name.
func (w *walker) addWild(list []Array, l *leaf) []Array {
	at := slices.IndexFunc(list, func(a Array) bool { return a.Wild && a.Name == l.name && l.name != "" })
	if at < 0 {
		at = len(list)
		list = append(list, Array{Name: l.name, Wild: true})
	}
	w.count(&list[at], l)
	return list
}

func (w *walker) count(a *Array, l *leaf) {
	it := &w.nest.items[l.item]
	a.References += w.nest.counts[l.item]
	if it.ref.Kind == trace.Store || it.ref.Kind == trace.Modify || it.ref.Kind == trace.RangeWrite {
		a.Stores += w.nest.counts[l.item]
	}
	if !slices.Contains(a.Refs, it.ref) {
		a.Refs = append(a.Refs, it.ref)
	}
}

func (w *walker) array(group []leaf, name string) Array {
	a := Array{Name: name, Exact: true, Base: group[0].of.lo}
	end := a.Base
	var all []span
	var bound uint64
	for i := range group {
		l := &group[i]
		w.count(&a, l)
		end = max(end, l.of.hi)
		if len(l.strides) > len(a.Strides) {
			a.Strides = l.strides
		}
		a.Exact = a.Exact && l.of.exact
		bound += l.of.bytes
		all = append(all, l.of.spans...)
	}
	for i := range group {
		a.Mixed = a.Mixed || !slices.Equal(group[i].strides, a.Strides)
	}
	a.Extent = end - a.Base
	maxLines := (end-1)/w.lineBytes - a.Base/w.lineBytes + 1
	if !a.Exact {
		a.Touched = min(bound, a.Extent)
		a.Lines = min(maxLines, bound)
		return a
	}
	next := uint64(0) // the first line that has not been counted yet
	for _, s := range mergeSpans(all) {
		a.Touched += s.hi - s.lo
		first, last := max(s.lo/w.lineBytes, next), (s.hi-1)/w.lineBytes
		if last >= first {
			a.Lines += last - first + 1
		}
		next = last + 1
	}
	return a
}

func (n *nest) strides(j int) (list []int64) {
	for k := n.items[j].parent; k >= 0; k = n.items[k].parent {
		list = append(list, int64(n.items[k].steps[j-k-1]))
	}
	slices.Reverse(list)
	return list
}

// dim is a loop in which each iteration moves a whole pattern by the given step in bytes.
type dim struct{ trips, step uint64 }

// magnitude returns the absolute value of the step.
func (d dim) magnitude() uint64 { return min(d.step, -d.step) }

// pattern returns the bytes that leaf j touches while item k runs once with parameters p. The loops
// that move a whole pattern can be processed in any order. The method processes loops with small
// steps first, because the result is then usually a single contiguous range.
func (w *walker) pattern(k, j int, p []uint64) pattern {
	var whole []dim
	for k != j && int64(p[0]) >= 1 && !w.nest.variesBelow(k, j) {
		child := w.nest.itemAbove(k, j)
		whole = append(whole, dim{p[0], w.nest.items[k].steps[j-k-1]})
		p, k = p[child-k:], child
	}
	of := w.iteratedPattern(k, j, p)
	sort.Slice(whole, func(i, j int) bool { return whole[i].magnitude() < whole[j].magnitude() })
	for _, d := range whole {
		of = w.repeatPattern(of, d.trips, d.step)
	}
	return of
}

// itemAbove returns the item of loop k's body that contains leaf j.
func (n *nest) itemAbove(k, j int) int {
	child := k + 1
	for n.items[child].end <= j {
		child = n.items[child].end
	}
	return child
}

// iteratedPattern works like pattern, but for a leaf, or for a loop with varying inner trip counts.
func (w *walker) iteratedPattern(k, j int, p []uint64) pattern {
	n := w.nest
	it := &n.items[k]
	if !it.loop {
		lo := p[0]
		hi := lo + max(1, uint64(it.ref.Bytes))
		if hi < lo {
			hi = lo + 1
		}
		return pattern{spans: []span{{lo, hi}}, lo: lo, hi: hi, bytes: hi - lo, exact: true}
	}
	trips := p[0]
	if int64(trips) < 1 {
		return pattern{lo: p[j-k], hi: p[j-k], exact: true}
	}
	child := n.itemAbove(k, j)
	first := w.pattern(child, j, p[child-k:])
	if trips == 1 {
		return first
	}
	// If there are few iterations, all iterations are examined, and the result is exact. Otherwise
	// the first and the last iteration determine an upper bound.
	cur := make([]uint64, it.end-k-1)
	at := func(i uint64) pattern {
		for m := range cur {
			cur[m] = p[1+m] + i*it.steps[m]
		}
		return w.pattern(child, j, cur[child-k-1:])
	}
	last := at(trips - 1)
	sum := pattern{lo: min(first.lo, last.lo), hi: max(first.hi, last.hi), exact: first.exact && last.exact}
	if uint64(w.left) < trips {
		sum.exact = false
	}
	if !sum.exact {
		sum.bytes = sum.hi - sum.lo
		return sum
	}
	sum.spans = append(first.spans, last.spans...)
	for i := uint64(1); i < trips-1; i++ {
		of := at(i)
		if w.left -= len(of.spans); w.left < 0 || !of.exact {
			sum.exact, sum.spans, sum.bytes = false, nil, sum.hi-sum.lo
			return sum
		}
		sum.spans = append(sum.spans, of.spans...)
	}
	sum.spans = mergeSpans(sum.spans)
	sum.bytes = bytesOf(sum.spans)
	return sum
}

// variesBelow reports whether any loop between loop k and leaf j has a trip count that depends on
// the iteration of loop k.
func (n *nest) variesBelow(k, j int) bool {
	for m := n.items[j].parent; m > k; m = n.items[m].parent {
		if n.items[k].steps[m-k-1] != 0 {
			return true
		}
	}
	return false
}

// repeatPattern returns the bytes that a pattern touches if it is repeated. The argument "trips"
// is the number of repetitions, and the argument "step" is the distance between successive
// repetitions in bytes.
func (w *walker) repeatPattern(one pattern, trips, step uint64) pattern {
	if step == 0 || trips == 1 || one.hi == one.lo {
		return one
	}
	far := step * (trips - 1) // the offset of the last repetition, as a signed number
	all := one
	if int64(step) > 0 {
		all.hi += far
	} else {
		all.lo += far
	}
	wide := dim{trips, step}.magnitude()
	over := wide != 0 && (wide*(trips-1))/wide != trips-1 || all.hi <= all.lo || all.lo > one.lo || all.hi < one.hi
	switch {
	case over: // the pattern wraps around the end of the address space
		return pattern{lo: one.lo, hi: one.hi, bytes: one.bytes}
	case one.exact && len(one.spans) == 1 && wide <= one.bytes:
		all.spans = []span{{all.lo, all.hi}}
		all.bytes = all.hi - all.lo
		return all
	case !one.exact || uint64(w.left) < trips || uint64(w.left)/uint64(len(one.spans)) < trips:
		all.exact, all.spans = false, nil
		if all.bytes = one.bytes * trips; all.bytes/trips != one.bytes || all.bytes > all.hi-all.lo {
			all.bytes = all.hi - all.lo
		}
		return all
	}
	all.spans = make([]span, 0, int(trips)*len(one.spans))
	w.left -= cap(all.spans)
	for i := range trips {
		for _, s := range one.spans {
			all.spans = append(all.spans, span{s.lo + i*step, s.hi + i*step})
		}
	}
	all.spans = mergeSpans(all.spans)
	all.bytes = bytesOf(all.spans)
	return all
}

// mergeSpans sorts ranges, and merges overlapping and adjacent ranges.
func mergeSpans(all []span) []span {
	slices.SortFunc(all, func(a, b span) int { return cmp.Compare(a.lo, b.lo) })
	kept := all[:0]
	for _, s := range all {
		if n := len(kept); n > 0 && s.lo <= kept[n-1].hi {
			kept[n-1].hi = max(kept[n-1].hi, s.hi)
			continue
		}
		kept = append(kept, s)
	}
	return kept
}

func bytesOf(spans []span) (bytes uint64) {
	for _, s := range spans {
		bytes += s.hi - s.lo
	}
	return bytes
}
