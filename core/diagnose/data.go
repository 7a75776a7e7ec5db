package diagnose

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
)

// chasing tries to lay out the data of dependent loads in the order in which the loads reach the
// elements. It starts with the source location that waits longest, because another loop may reach
// the same elements in a different order.
func (r *run) chasing() {
	list := slices.DeleteFunc(r.byWait(), func(at *place) bool {
		return at.wait < leastWait*r.out.Cycles || at.dependent <= at.wait/2 || r.taken[at] > 0.5
	})
	for tries := 0; len(list) > 0; tries++ {
		var t *retrial
		if tries < mostElements {
			t = r.inOrderOf(list[0])
		}
		if t == nil { // for example, look-ups in a sorted array
			function := list[0].function
			r.searched[function] = r.base() != nil && !r.linked(list[0].sites)
			list = slices.DeleteFunc(list, func(at *place) bool { return at.function == function })
			continue
		}
		all := 0.0
		for _, at := range list {
			all += max(0, t.savedAt(at))
		}
		for i, saved := range t.bySite { // a loop over all elements visits them in memory order in either layout
			if saved < 0 && !r.cost.run.scattered[i] {
				t.saved -= saved
			}
		}
		var others []*place // locations that do not reach the same elements
		for first := list[0]; len(list) > 0; {
			at := list[0]
			saved, cost, wait := 0.0, 0.0, 0.0
			var same []*place // source lines of one function that access one structure
			list = slices.DeleteFunc(list, func(of *place) bool {
				if of.function != at.function || of.file != at.file {
					return false
				}
				same = append(same, of)
				saved += max(0, t.savedAt(of))
				cost += of.wait + of.pages
				wait += of.wait
				return true
			})
			if saved < wait/4 || t.saved <= 0 { // the order is not the cause, for example in look-ups in a tree
				if r.searched[at.function] = true; at != first {
					others = append(others, same...)
				}
				continue
			}
			r.taken[at] = 1
			r.add(at, Finding{Kind: PointerChasing, Data: t.data, unnamed: true, Cost: cost, Saved: t.saved * share(saved, all), Tried: true, Before: t.before, After: t.after,
				Why:       chased(r.nextLower(at.level)),
				Fix:       "allocate the elements from one array in the order in which they are visited, or keep the fields that the loop needs in an array instead of behind pointers",
				How:       "The elements were laid out in the order in which this loop first reaches them, and the caches were simulated again with the changed addresses." + t.extended,
				IllegalIf: "other code keeps pointers to the elements, or the order of visits changes while the program runs",
				More:      "sites --by line"})
		}
		r.take(t)
		list = slices.DeleteFunc(others, func(at *place) bool { return r.taken[at] > 0.5 })
	}
}

// inOrderOf tries a layout with the elements in the order in which a source location first reaches
// them. It returns nil if that is impossible. If the location uses several arrays, such as list
// elements and an array that is indexed by a field of the element, each array is tried separately.
func (r *run) inOrderOf(at *place) (best *retrial) {
	for _, sites := range r.dataApart(at) {
		if to := r.traversal(sites); to != nil {
			if t := r.retry(to, pageShift); t != nil && (best == nil || t.saved > best.saved) {
				t.data, best = cmp.Or(r.dataOf(slices.Sorted(maps.Keys(sites))), r.structureOf(sites)), t
			}
		}
	}
	return best
}

// mostApart is the maximum number of arrays whose elements are reordered separately.
const mostApart = 2

// dataApart returns the sites of a source location whose addresses are irregular, grouped by
// address range. The ranges with the longest waits come first.
func (r *run) dataApart(at *place) (list []map[int]bool) {
	of := r.base()
	if of == nil {
		return nil
	}
	type extent struct {
		record
		sites map[int]bool
		wait  float64
	}
	var all []extent
	for _, i := range at.sites {
		if n := &of.sites[i]; n.references > 0 && r.cost.run.scattered[i] && sum(r.cost.site[i]) > 0 {
			all = append(all, extent{record{low: n.low, high: n.high}, map[int]bool{i: true}, sum(r.cost.site[i])})
		}
	}
	slices.SortFunc(all, func(a, b extent) int { return cmp.Compare(a.low, b.low) })
	apart := all[:0]
	for _, a := range all {
		if n := len(apart); n > 0 && a.low <= apart[n-1].high {
			last := &apart[n-1]
			last.high, last.wait = max(last.high, a.high), last.wait+a.wait
			maps.Copy(last.sites, a.sites)
		} else {
			apart = append(apart, a)
		}
	}
	slices.SortStableFunc(apart, func(a, b extent) int { return cmp.Compare(b.wait, a.wait) })
	for _, a := range apart[:min(mostApart, len(apart))] {
		list = append(list, a.sites)
	}
	return list
}

// structureOf returns the name of the structure that sites access, or "" if it is unknown.
func (r *run) structureOf(sites map[int]bool) string {
	p := r.cost.program
	if p == nil {
		return ""
	}
	for _, i := range slices.Sorted(maps.Keys(sites)) {
		if n := r.p.Sites.Code[i].Number; int64(n) < int64(len(p.Sites)) {
			if of := int(p.Sites[n].Structure) - 1; of >= 0 && of < len(p.Structures) {
				return p.Structures[of].Name
			}
		}
	}
	return ""
}

func chased(from string) string {
	return "each load takes its address from the previous load, and the addresses follow no pattern, so the core can request each line only after the previous line has arrived from " + from
}

// translations adds findings about source locations that wait longer for address translation than
// for lines.
func (r *run) translations() {
	var t *retrial
	for _, at := range r.byWait() {
		if at.pages < leastWait*r.out.Cycles || r.taken[at] > 0.5 || at.pages < at.wait*(1-r.taken[at]) {
			continue
		}
		if t == nil {
			if t = r.retry(nil, hugeShift); t == nil {
				return
			}
		}
		saved := t.savedAt(at)
		if saved < at.pages/2 {
			continue
		}
		walks, second := 0.0, 0.0
		for _, i := range at.sites {
			walks += r.cost.overheads.walks[i]
			second += r.cost.overheads.second[i]
		}
		hidden := walks*walkCycles < second*secondPageCycles // at best, the page walks overlap with instructions that do not wait
		walks += second
		left := at.wait * (1 - r.taken[at])
		r.taken[at] = 1
		if at.irregular > 0.5 && at.pages < 2*left { // the data is larger than the caches, too
			r.add(at, Finding{Kind: RandomAccess, Cost: at.pages + at.wait, Saved: saved, Least: saved, Most: saved + left,
				Why:  r.irregularReason(at) + "; " + ratio(uint64(walks), at.references) + " access a page whose translation is no longer in the first-level TLB",
				Fix:  "make the data smaller, or sort or partition the accesses so that accesses to the same part of the data are close in time; or use " + largePages(at.file),
				How:  "The lower bound is the saving with pages of 2 MiB, for which the translations were counted again. No other order was tried, so the upper bound is all cycles that the run waits here." + t.extended,
				More: "sites --by line"})
			continue
		}
		f := Finding{Kind: TLB, Cost: at.pages + at.wait, Saved: saved, Tried: true,
			Why:  percent(share(walks, float64(at.references))) + " of the accesses access a page whose translation is no longer in the first-level TLB: the loop uses more pages than the TLB has entries, and only a small part of each page",
			Fix:  "use " + largePages(at.file) + ", or move data that is used together onto fewer pages, with a smaller stride or with an array of only the data that the loop needs",
			How:  "The translations were counted again with pages of 2 MiB" + t.avoidedWalks(at) + "." + t.extended,
			More: "sites --by line"}
		if hidden {
			f.Saved, f.Most, f.Tried = saved/uncertaintyDivisor, saved, false
			f.How += " Most translations are in the second-level TLB, and the core may do other work while these translations are read, so the saving is a range."
		}
		r.add(at, f)
	}
}

// avoidedWalks returns a clause about the page walks of a source location that a change avoids, or
// "" if there were no page walks.
func (t *retrial) avoidedWalks(at *place) string {
	before, after := 0.0, 0.0
	for _, i := range at.sites {
		before += t.walks[0][i]
		after += t.walks[1][i]
	}
	if before < 1 {
		return ""
	}
	return ", which avoid " + percent(max(0, 1-after/before)) + " of " + report.Count(uint64(before+0.5)).Human() + " page walks"
}

// elements tries other layouts for the elements of arrays: it moves fields that are used together
// to a separate array, or aligns the elements to lines.
func (r *run) elements() {
	tried := 0
	for _, at := range r.byWait() {
		left := (at.wait+at.pages)*(1-r.taken[at]) + at.split
		if left < leastElements*r.out.Cycles || tried == mostElements {
			return
		}
		if r.taken[at] > 0.5 && at.split < leastElements*r.out.Cycles || at.dependent > at.wait/2 {
			continue
		}
		if r.merge(at) {
			tried++
			continue
		}
		aligned := false // one trial is enough: align also moves the other arrays that cross line boundaries
		for _, of := range r.arraysAt(at) {
			if of.wait < leastElements*r.out.Cycles || tried == mostElements {
				break
			}
			if slices.ContainsFunc(r.moved, func(b record) bool { return b.low <= of.high && of.low <= b.high }) {
				continue // a different layout of the array was already found
			}
			line := uint64(r.p.Sites.LineBytes)
			straddles := of.low%line != 0 && of.pitch >= 16 || of.pitch%line != 0 && line%of.pitch != 0
			if !aligned && (at.split > leastElements*r.out.Cycles || straddles && (r.cost.run.scattered[of.site] || of.pitch > line/2)) {
				aligned = true
				tried++
				if r.align(at, of.record) {
					break
				}
			}
			if !r.splittable(at, of) {
				continue
			}
			tried++
			if added, _ := r.split(at, of.record, nil); added {
				break
			}
		}
	}
}

// splittable reports whether a source location uses few enough bytes of each element of an array
// that a separate array of the used fields may help.
func (r *run) splittable(at *place, of arrayAt) bool {
	used := r.utilisation(at)
	return (used == 0 || used <= fewBytes) && of.pitch > 2*uint64(r.p.Sites.Code[of.site].Bytes)
}

// arrayAt is an array that a source location accesses.
type arrayAt struct {
	record
	site int     // the site that waits longest for the array
	wait float64 // cycles that no finding includes yet
}

// arraysAt returns the arrays of elements that a source location accesses, in descending order of
// its waits for them.
func (r *run) arraysAt(at *place) (list []arrayAt) {
	exchanged, others := r.leftOf(at)
	wait := func(i int) float64 {
		coherence := 0.0
		for k := range r.cost.levels {
			coherence += r.cost.coherenceOf(i, k)
		}
		return exchanged*coherence + others*(sum(r.cost.site[i])-coherence+r.cost.pages[i]) + r.cost.split[i]
	}
	sites := slices.Clone(at.sites)
	slices.SortStableFunc(sites, func(a, b int) int { return cmp.Compare(wait(b), wait(a)) })
	for _, i := range sites {
		a, ok := r.recordOf(i)
		if !ok || a.high-a.low < 4*a.pitch {
			continue
		}
		j := slices.IndexFunc(list, func(of arrayAt) bool { return of.low <= a.high && a.low <= of.high })
		if j < 0 {
			j, list = len(list), append(list, arrayAt{a, i, 0})
		}
		list[j].wait += wait(i)
	}
	slices.SortStableFunc(list, func(a, b arrayAt) int { return cmp.Compare(b.wait, a.wait) })
	return list
}

// Conditions for trying a layout in a replay.
const (
	leastElements = 0.04
	mostElements  = 3
)

// worstSite returns the site that waits longest at a source location.
func (r *run) worstSite(at *place) int {
	cost := func(i int) float64 { return sum(r.cost.site[i]) + r.cost.pages[i] + r.cost.split[i] }
	return slices.MaxFunc(at.sites, func(a, b int) int { return cmp.Compare(cost(a), cost(b)) })
}

// hotSites returns the sites that access an array in the same code as a source location: the sites
// in the same function with at least a quarter as many references as the location.
func (r *run) hotSites(at *place, a record) (list []int) {
	of := r.base()
	most := uint64(0)
	for _, i := range at.sites {
		most = max(most, r.p.Sites.Code[i].References())
	}
	for i := range r.p.Sites.Code {
		s := &r.p.Sites.Code[i]
		n := &of.sites[i]
		if n.references == 0 || n.low > a.high || n.high < a.low || s.References() < most/4 {
			continue
		}
		list = append(list, i)
	}
	return list
}

// split tries to separate the fields that a source location uses from the other fields. If f is not
// nil, f is the finding of an earlier trial, and split refines this finding. The result added
// reports whether split added a finding. The result replayed reports whether the whole run was
// replayed with the change.
func (r *run) split(at *place, a record, f *Finding) (added, replayed bool) {
	hot := r.hotSites(at, a)
	to := r.splitting(a, hot)
	if to == nil {
		return false, false
	}
	t := r.retry(to, pageShift)
	if t == nil || t.saved < Least*r.out.Cycles || t.saved < at.wait/8 || f == nil && r.onlyFilled(t) {
		return false, t != nil
	}
	if f == nil {
		f = &Finding{Kind: Layout,
			Fix:       "place the fields that this loop uses next to each other: split the structure, or make an array of each field",
			IllegalIf: "other code needs the fields together, because it passes a pointer to a structure, copies whole structures, or shares structures with a file or another program",
			More:      "sites --by object --utilisation 48KiB,12"}
	}
	used := uint64(0)
	seen := map[uint64]bool{}
	for _, i := range hot {
		if n := &r.base().sites[i]; n.low >= a.low && !seen[(n.low-a.low)%a.pitch] {
			seen[(n.low-a.low)%a.pitch] = true
			used += uint64(r.p.Sites.Code[i].Bytes)
		}
	}
	f.Why = "the code uses " + bytesOf(int64(used)) + " of each element of " + bytesOf(int64(a.pitch)) + ", so most of each fetched line is replaced without being used"
	r.moved = append(r.moved, a)
	at = r.heaviest(t, at)
	f.Cost, f.Saved, f.Tried, f.Least, f.Most = max(f.Cost, at.wait+at.pages, t.saved), t.saved, true, 0, 0
	f.Before, f.After, f.How = t.before, t.after, r.retried(t)
	if r.linked(hot) { // the elements must stay together, because links point to them
		f.Saved, f.Most, f.Tried = t.saved/uncertaintyDivisor, t.saved, false
		f.Fix = "move the fields that this loop does not use to separate elements, to which each element has a pointer or an index"
	}
	r.taken[at] = 1
	r.take(t)
	r.add(at, *f)
	return true, true
}

// linked reports whether any of the given sites loads the address of the next element of a list or
// tree.
func (r *run) linked(sites []int) bool {
	return r.cost.program != nil && slices.ContainsFunc(sites, func(i int) bool {
		number := r.p.Sites.Code[i].Number
		return int64(number) < int64(len(r.cost.program.Sites)) && r.cost.program.Sites[number].Flags&trace.LinkSite != 0
	})
}

// onlyFilled reports whether most cycles that a retrial saves are in code that fills data for the
// first time. Code that fills data must store the data somewhere, and the caches must fetch new
// pages anyway.
func (r *run) onlyFilled(t *retrial) bool {
	filled := 0.0
	for _, at := range r.places {
		if at.fills() {
			filled += r.leftAt(t, at)
		}
	}
	return filled > t.saved/2
}

// align tries to align the elements of an array to lines, or to place no element across a line
// boundary.
func (r *run) align(at *place, a record) bool {
	line := uint64(r.p.Sites.LineBytes)
	lines := strconv.FormatUint(line, 10) + " bytes"
	fix, pitch := "align the array to "+lines, a.pitch
	if !isFortran(at.file) {
		fix += " (alignas, or aligned_alloc)"
	}
	packed := a
	if b, ok := blockAt(r.base().blocks, a.low); ok && b.bytes >= 2*a.pitch { // the block begins with an element
		packed.low -= (a.low - b.addr) % a.pitch
	}
	fields := r.fieldsOf(packed)
	if natural := unpacked(packed, fields); natural > 0 && at.split > 0 && a.pitch%8 != 0 {
		a, pitch = packed, natural
		fix = "do not pack the structure: with its fields aligned to their sizes, an element has about " + strconv.FormatUint(pitch, 10) + " bytes instead of " + strconv.FormatUint(a.pitch, 10)
	} else if fields = nil; a.pitch%line != 0 && line%a.pitch != 0 {
		for pitch = 16; pitch < a.pitch && pitch < line; pitch *= 2 {
		}
		pitch = max(pitch, (a.pitch+line-1)/line*line*boolOf(a.pitch > line))
		fix = "pad each element from " + strconv.FormatUint(a.pitch, 10) + " to " + strconv.FormatUint(pitch, 10) + " bytes, and align the array to " + lines
	}
	arrays := []aligned{{a, pitch, fields}}
	for _, i := range at.sites { // other arrays that this source line uses
		if other, ok := r.recordOf(i); ok && r.base().sites[i].split > 0 && !slices.ContainsFunc(arrays, func(b aligned) bool { return b.low <= other.high && other.low <= b.high }) {
			arrays = append(arrays, aligned{other, other.pitch, nil})
		}
	}
	if len(arrays) > 1 {
		fix = strings.Replace(fix, "align the array", "align the arrays", 1)
	}
	to := aligning(arrays)
	if r.remainSplit(at, to) {
		return false
	}
	t := r.retry(to, pageShift)
	if t == nil || t.saved < 2*Least*r.out.Cycles || t.saved < (at.wait+at.split)/10 {
		return false
	}
	why := "elements of " + bytesOf(int64(a.pitch)) + " cross line boundaries, so using one element fetches two lines"
	if at.split > 0 {
		why = percent2(share(at.crossing, float64(at.references))) + " of the accesses cross a line boundary, and each of these takes two cache accesses"
	}
	for _, b := range arrays {
		r.moved = append(r.moved, b.record)
	}
	at = r.heaviest(t, at)
	r.taken[at] = 1
	r.add(at, Finding{Kind: Alignment, Cost: max(at.wait+at.split, t.saved), Saved: t.saved, Tried: true, Before: t.before, After: t.after,
		Why: why, Fix: fix, How: r.retried(t),
		IllegalIf: "other code relies on the current layout, for example of a file or of data shared with another program",
		More:      "sites --by line"})
	r.take(t)
	return true
}

// remainSplit reports whether more than a quarter of the references that cross line boundaries
// still do so after a change of addresses. In a grid, for example, only one of several neighbours
// can be aligned. remainSplit only counts references in parts of the run, and simulates no caches.
func (r *run) remainSplit(at *place, to rename) bool {
	before, after := uint64(0), uint64(0)
	native := make([]uint64, len(r.p.Sites.Code)) // 0 if the site belongs to a different location
	for _, i := range at.sites {
		native[i] = nativeBytes(r.cost.program, &r.p.Sites.Code[i])
	}
	shift := r.lineShift()
	some := r.parts()
	if period := r.loops.Tree().Rows() / numParts; some.period == 0 && period > leastPart {
		some = parts{period, leastPart}
	}
	s := schedule{tree: r.loops.Tree(), goOn: r.GoOn, index: newSiteIndex(r.p), parts: some} // the order of threads does not matter here
	s.take = func(w *row) {
		if w.index >= 0 && native[w.index] > 0 && w.bytes <= 2<<shift {
			bytes := uint64(max(1, w.bytes))
			before += splits(w.addr, bytes, native[w.index], shift)
			after += splits(to(w, int(w.index)), bytes, native[w.index], shift)
		}
	}
	return !s.run() || 4*after > before
}

// leastPart is the number of rows in each part of the run that remainSplit reads.
const leastPart = 1 << 18

// padded tries to pad the rows of the arrays that conflict in the nests of a group.
func (r *run) padded(g *group) *retrial {
	of := r.base()
	if of == nil {
		return nil
	}
	var arrays []record
	for _, nest := range g.loops {
		for _, at := range r.placesOf(nest) {
			for _, i := range at.sites {
				n := &of.sites[i]
				if n.references == 0 || n.high-n.low > 1<<40 {
					continue
				}
				a := record{low: n.low, high: n.high}
				if r.p.Sites.Code[i].Stride() == profile.ConstantStride && n.grain >= 256 {
					a.pitch = n.grain
				}
				arrays = append(arrays, a)
			}
		}
	}
	slices.SortFunc(arrays, func(a, b record) int { return cmp.Compare(a.low, b.low) })
	merged := arrays[:0]
	for _, a := range arrays {
		if n := len(merged); n > 0 && a.low <= merged[n-1].high {
			m := &merged[n-1]
			m.high = max(m.high, a.high)
			if m.pitch == 0 || a.pitch != 0 && a.pitch < m.pitch {
				m.pitch = a.pitch
			}
			continue
		}
		merged = append(merged, a)
	}
	if len(merged) == 0 || len(merged) > 64 {
		return nil
	}
	for i := range merged { // for example, if several references access different planes
		if merged[i].pitch == 0 {
			merged[i].pitch = r.planes(g, merged[i])
		}
	}
	return r.retry(padding(merged, uint64(r.p.Sites.LineBytes)), pageShift)
}

// planes returns the largest multiple of the page size that divides all distances between
// references to an array in the same iteration of the nests. If there is no such multiple, it
// returns 0.
func (r *run) planes(g *group, a record) (bytes uint64) {
	for _, nest := range g.loops {
		for _, body := range bodies(r.rollNest(r.loops.Loops[nest].Nest).Nest.Items) {
			first := trace.Addr(0)
			for _, it := range body {
				switch {
				case it.Wild || it.Addr < a.low || it.Addr > a.high:
				case first == 0:
					first = it.Addr
				case (it.Addr-first)%(1<<pageShift) == 0:
					bytes = gcd(bytes, max(it.Addr, first)-min(it.Addr, first))
				}
			}
		}
	}
	return bytes
}

// bodies returns the references of each innermost loop among items.
func bodies(items []loops.Item) (list [][]*loops.Item) {
	for i := range items {
		switch {
		case !items[i].IsLoop():
		case hasLoop(items[i].Body):
			list = append(list, bodies(items[i].Body)...)
		default:
			list = append(list, leavesOf(items[i].Body))
		}
	}
	return list
}

// merge tries to merge arrays that are used with the same irregular index into one array of
// structures.
func (r *run) merge(at *place) bool {
	of := r.base()
	if of == nil || at.irregular < 0.5 {
		return false
	}
	var arrays []record
	var used []int
	bytes, references := uint64(0), uint64(0)
	for _, i := range at.sites {
		n := &of.sites[i]
		if !r.cost.run.scattered[i] || sum(r.cost.site[i]) < at.wait/10 {
			continue
		}
		own := uint64(r.p.Sites.Code[i].Bytes)
		if own == 0 || bytes != 0 && own != bytes || references != 0 && n.references != references || n.grain%own != 0 {
			return false
		}
		bytes, references = own, n.references
		arrays, used = append(arrays, record{low: n.low, high: n.high}), append(used, i)
	}
	slices.SortFunc(arrays, func(a, b record) int { return cmp.Compare(a.low, b.low) })
	joined := arrays[:0]
	// skip further references to the same array, which occur in unrolled loops
	for _, a := range arrays {
		if n := len(joined); n > 0 && a.low < joined[n-1].high {
			joined[n-1].high = max(joined[n-1].high, a.high)
		} else {
			joined = append(joined, a)
		}
	}
	if arrays = joined; len(arrays) < 2 {
		return false
	}
	for j := range arrays {
		length, first := arrays[j].high-arrays[j].low, arrays[0].high-arrays[0].low
		if j > 0 && arrays[j].low <= arrays[j-1].high || length > first+first/8 || first > length+length/8 {
			return false
		}
	}
	t := r.retry(merging(arrays, bytes), pageShift)
	if t == nil || t.saved < 2*Least*r.out.Cycles || t.saved < at.wait/8 {
		return false
	}
	r.moved = append(r.moved, arrays...)
	at = r.heaviest(t, at)
	r.taken[at] = 1
	r.add(at, Finding{Kind: Layout, Data: r.dataOf(used), unnamed: true, Cost: max(at.wait+at.pages, t.saved), Saved: t.saved, Tried: true, Before: t.before, After: t.after,
		Why:       "the code uses one element of each of " + strconv.Itoa(len(arrays)) + " arrays at the same index, and the indices follow no pattern, so every element requires fetching a separate line",
		Fix:       "merge these arrays into one array of structures, so that elements with the same index are in one line",
		How:       r.retried(t),
		IllegalIf: "other code uses one of the arrays as a whole, or iterates over an array with a pointer",
		More:      "sites --by object --utilisation 48KiB,12"})
	r.take(t)
	return true
}

func boolOf(is bool) uint64 {
	if is {
		return 1
	}
	return 0
}
