package sites

import (
	"slices"

	"github.com/stackglass/stackglass/core/analysis/locality"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
)

// timeline counts accesses in windows of the run (profile.Timeline). At the end of a window, it
// compares all bins with their values at the beginning of the window, so that there is no cost per
// access. The lists of counts are sorted by bin, so that windows can be joined by merging.
//
// Windows begin at multiples of their size. The size depends only on the number of references and
// on the number of places in each window; a place is a site, a data object or a call path that has
// accesses in the window. Neither number decreases as the trace grows, and a segment never has more
// places in a window than the whole trace has in the same window. The windows therefore do not
// depend on how the trace is divided. Segments do not count call paths as places, because the
// callers at the beginning of a segment are unknown.
type timeline struct {
	most    int  // maximum sum of the numbers of places in all windows
	segment bool // call paths do not count as places

	size    uint64 // number of references in a window
	first   uint64 // number of the first window
	windows []timeWindow
	open    uint64               // number of the window of the latest accesses
	known   [timeStacks][]uint64 // the values of the bins at the last call of addToOpenWindow
	threads []uint32             // the thread of each lane, in the order of the threads' first accesses
	// for each slot, object and call path: the number of the last call of countPlaces that counted
	// it
	marks  [timeParts][]uint32
	counts uint32     // number of calls of countPlaces
	room   []binDelta // buffer of addToOpenWindow

	// the timeline of the segment that was appended last and has not been added to the windows yet;
	// nil: none
	next *nextTimeline
	off  bool // an older version, without timelines, has analysed a part of the run
}

const (
	timeStacks = int(profile.TimeLost) + 1
	timeParts  = int(profile.TimePath) + 1
)

// timeWindow contains the counts of a window, in ascending order of their bins. The field lanes has
// the same indices as timeline.threads, but may be shorter.
type timeWindow struct {
	counts [timeStacks][]binDelta
	lanes  []uint64
	places int // 0: the places have not been counted yet
}

// binDelta is the number of accesses that a bin has counted in a window. Until the result is
// computed, the key is the index in bins.counts.
type binDelta = profile.TimeCount

func newTimeline(o Options) *timeline {
	if o.TimelinePlaces == 0 {
		return nil
	}
	return &timeline{most: o.TimelinePlaces, segment: o.Segment, size: profile.MinWindow}
}

func (t *timeline) counting() bool { return t != nil && !t.off }

// stacks returns the bins of each stack; nil: no such stack.
func (a *Analysis) stacks() (list [timeStacks]*bins) {
	list[profile.TimeWhole] = &a.bins
	if a.cores != nil {
		list[profile.TimeFound], list[profile.TimeLost] = &a.cores.bins, &a.cores.lost
	}
	return list
}

// prepare must be called before the accesses of the next references are counted. The parameter
// first is the number of the first of these references.
func (t *timeline) prepare(a *Analysis, first uint64) {
	t.addNext(a)
	if first/t.size == t.open && len(t.windows) > 0 {
		return
	}
	t.addToOpenWindow(a)
	t.enlargeWindows(a, profile.TimelineWindow(first+1))
	if t.open = first / t.size; len(t.windows) == 0 {
		t.first = t.open
	}
	t.window(t.open)
}

func (t *timeline) window(number uint64) *timeWindow {
	for t.first+uint64(len(t.windows)) <= number {
		t.windows = append(t.windows, timeWindow{})
	}
	return &t.windows[number-t.first]
}

// addToOpenWindow adds the counts since the last call to the open window.
func (t *timeline) addToOpenWindow(a *Analysis) {
	if len(t.windows) == 0 {
		return
	}
	w := t.window(t.open)
	for s, b := range a.stacks() {
		if b != nil {
			t.room = b.changesSince(&t.known[s], t.room[:0])
			w.counts[s] = mergeCounts(w.counts[s], slices.Clone(t.room))
		}
	}
	w.places = 0
	t.limitPlaces(a)
}

// changesSince computes how much each bin has changed since the last call, and appends the changes
// to the slice named list. The parameter known contains the values of the bins at the last call,
// and is updated.
func (b *bins) changesSince(known *[]uint64, list []binDelta) []binDelta {
	old := len(*known)
	before := slices.Grow(*known, len(b.counts)-old)[:len(b.counts)]
	clear(before[old:])
	for g := 0; g < len(before); g += 8 {
		now, then := (*[8]uint64)(b.counts[g:]), (*[8]uint64)(before[g:])
		if *now == *then {
			continue
		}
		for i, n := range now {
			if n != then[i] {
				list = append(list, binDelta{Key: profile.TimeKey(g + i), Count: n - then[i]})
			}
		}
		*then = *now
	}
	*known = before
	return list
}

// mergeCounts adds up two lists of counts. The result may be one of the lists.
func mergeCounts(a, b []binDelta) []binDelta {
	switch {
	case len(a) == 0:
		return b
	case len(b) == 0:
		return a
	}
	sum := make([]binDelta, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0].Key < b[0].Key:
			sum, a = append(sum, a[0]), a[1:]
		case a[0].Key > b[0].Key:
			sum, b = append(sum, b[0]), b[1:]
		default:
			sum = append(sum, binDelta{Key: a[0].Key, Count: a[0].Count + b[0].Count})
			a, b = a[1:], b[1:]
		}
	}
	return append(append(sum, a...), b...)
}

func (w *timeWindow) add(other *timeWindow) {
	for s := range w.counts {
		w.counts[s] = mergeCounts(w.counts[s], other.counts[s])
	}
	for i, n := range other.lanes {
		*w.lane(i) += n
	}
	w.places = 0
}

func (w *timeWindow) lane(i int) *uint64 {
	for len(w.lanes) <= i {
		w.lanes = append(w.lanes, 0)
	}
	return &w.lanes[i]
}

// enlargeWindows doubles the size of the windows until each window contains at least the given
// number of references.
func (t *timeline) enlargeWindows(a *Analysis, size uint64) {
	if t.size >= size {
		return
	}
	for t.size < size {
		t.windows = joinWindowPairs(t.first, t.windows)
		t.size, t.first, t.open = 2*t.size, t.first/2, t.open/2
	}
	t.limitPlaces(a)
}

// joinWindowPairs joins each even-numbered window with the next window. The parameter first is the
// number of the first window.
func joinWindowPairs(first uint64, windows []timeWindow) []timeWindow {
	joined := windows[:0]
	for i := range windows {
		if w := windows[i]; i > 0 && (first+uint64(i))%2 == 1 {
			joined[len(joined)-1].add(&w)
		} else {
			joined = append(joined, w)
		}
	}
	clear(windows[len(joined):])
	return joined
}

// limitPlaces doubles the size of the windows until the total number of places does not exceed the
// limit.
func (t *timeline) limitPlaces(a *Analysis) {
	atMost := 0
	for i := range t.windows {
		atMost += timeParts * len(t.windows[i].counts[profile.TimeWhole])
	}
	if atMost <= t.most || len(t.windows) < 2 {
		return
	}
	places := 0
	for i := range t.windows {
		if w := &t.windows[i]; w.places == 0 {
			w.places = t.countPlaces(a, w)
		}
		places += t.windows[i].places
	}
	if places > t.most {
		t.enlargeWindows(a, 2*t.size)
	}
}

// countPlaces returns the number of places of a window.
func (t *timeline) countPlaces(a *Analysis, w *timeWindow) (places int) {
	t.counts++
	mark := func(part profile.TimePart, n uint32) {
		list := &t.marks[part]
		if grow := int(n) + 1 - len(*list); grow > 0 {
			*list = append(*list, make([]uint32, grow)...)
		}
		if (*list)[n] != t.counts {
			(*list)[n] = t.counts
			places++
		}
	}
	for _, d := range w.counts[profile.TimeWhole] {
		list, _ := a.bins.owner(uint32(d.Key))
		p, path := a.pairs[list], a.paths.pathOf(list)
		if p.slot != noSlot {
			mark(profile.TimeSite, p.slot)
		}
		if p.object != noObject {
			mark(profile.TimeObject, p.object)
		}
		if path >= 0 && !t.segment {
			mark(profile.TimePath, uint32(path))
		}
	}
	return places
}

// countByThread counts accesses by thread.
func (t *timeline) countByThread(x *locality.Accesses) {
	threads := x.Batch.Thread
	if threads == nil {
		return
	}
	w, n := t.window(t.open), len(x.Lines)
	for i := 0; i < n; {
		thread, from := threads[x.Row(i)], i
		if x.Rows == nil {
			rows := threads[x.First:][:n]
			for i++; i < n && rows[i] == thread; i++ {
			}
		} else {
			for i++; i < n && threads[x.Row(i)] == thread; i++ {
			}
		}
		*w.lane(t.lane(thread)) += uint64(i - from)
	}
}

// lane returns the index of a thread's lane.
func (t *timeline) lane(thread uint32) int {
	at := slices.Index(t.threads, thread)
	if at < 0 {
		at = len(t.threads)
		t.threads = append(t.threads, thread)
	}
	return at
}

// beforeCores must be called before the bins of the trace's stack are copied to create the bins of
// the coherent stacks.
func (t *timeline) beforeCores(a *Analysis) {
	// If a segment is being appended, the bins already contain the segment, but the windows do not.
	if a.joining.part == nil {
		t.addNext(a)
		t.addToOpenWindow(a)
		t.known[profile.TimeFound], t.known[profile.TimeLost] = slices.Clone(t.known[profile.TimeWhole]), nil
	}
	for i := range t.windows {
		w := &t.windows[i]
		w.counts[profile.TimeFound] = slices.Clone(w.counts[profile.TimeWhole])
	}
}

// nextTimeline is the timeline of a profile that is being restored or appended. The counts in its
// windows are not sorted.
type nextTimeline struct {
	size, first uint64
	windows     []timeWindow
	of          *profile.Timeline
}

// readTimeline reads the timeline of a profile; addNext adds it to the windows later.
func (t *timeline) readTimeline(f *stateCoder, p *profile.Profile) {
	from := p.Timeline
	if t.off = t.off || from == nil; t.off {
		return
	}
	t.next = &nextTimeline{from.References, from.First, make([]timeWindow, len(from.Windows)), from}
	t.next.addSegment(f, profile.TimeWhole, profile.TimeWhole)
	for i := range from.Windows {
		w := &t.next.windows[i]
		for n, thread := range p.Totals.Threads {
			if from.Lanes != nil {
				*w.lane(t.lane(thread)) += from.Lanes[n][i]
				continue
			}
			all := w.lane(t.lane(thread)) // there is only one thread
			for _, c := range from.Windows[i] {
				if c.Key.Part() == profile.TimeSite && c.Key.Stack() == profile.TimeWhole {
					*all += c.Count
				}
			}
		}
	}
}

// addSegment adds the segment's counts on the source stack to the counts on the target stack.
func (n *nextTimeline) addSegment(f *stateCoder, source, target profile.TimeStack) {
	b := f.a.stacks()[target]
	for i, counts := range n.of.Windows {
		for _, c := range counts {
			if c.Key.Stack() != source {
				continue
			}
			bin, index := c.Key.Bin(), c.Key.Index()
			switch c.Key.Part() {
			case profile.TimeSite:
				n.count(b, i, target, f.a.pairNumber(pair{slot: f.slots[index], object: noObject}), bin, c.Count)
				if f.in.Data == nil {
					n.count(b, i, target, f.a.pairNumber(pair{slot: noSlot, object: rest}), bin, c.Count)
				}
			case profile.TimeObject:
				n.count(b, i, target, f.a.pairNumber(pair{slot: noSlot, object: f.objects[index+1]}), bin, c.Count)
			case profile.TimePath:
				if f.calls != nil {
					n.count(b, i, target, f.paths[index], bin, c.Count)
				}
			}
		}
	}
}

func (n *nextTimeline) count(b *bins, window int, s profile.TimeStack, list uint32, bin int, count uint64) {
	counts := &n.windows[window].counts[s]
	*counts = append(*counts, binDelta{Key: profile.TimeKey(b.index(list, bin)), Count: count})
}

// resolve changes a cold access of the segment into an access at the given distance.
func (n *nextTimeline) resolve(b *bins, window int, s profile.TimeStack, list, distance uint32) {
	n.count(b, window, s, list, coldBin, ^uint64(0))
	n.count(b, window, s, list, binOf(distance), 1)
}

// window returns the index of the window that contains a reference.
func (n *nextTimeline) window(reference uint64) int { return int(reference/n.size - n.first) }

// joinCores adds the counts of the segment on the coherent stacks of the cores, and resolves the
// first touches by the cores. The parameters depths and lostAt are the parameters of
// cores.appendSegment. All lists in the parameter firsts contain the first touches in the same
// order.
func (n *nextTimeline) joinCores(f *stateCoder, depths, lostAt []uint32, firsts ...[]uint32) {
	stack := profile.TimeFound
	if !f.several {
		stack = profile.TimeWhole
	} else {
		n.addSegment(f, profile.TimeLost, profile.TimeLost)
	}
	n.addSegment(f, stack, profile.TimeFound)
	c, at := f.a.cores, 0
	for i, counts := range n.of.Windows {
		// number of first touches in this window; in the lists, they follow the first touches in
		// earlier windows
		cold := uint64(0)
		for _, k := range counts {
			if k.Key.Part() == profile.TimeSite && k.Key.Stack() == stack && k.Key.Bin() == profile.ColdSiteBin {
				cold += k.Count
			}
		}
		for ; cold > 0 && at < len(depths); cold-- {
			for _, lists := range firsts {
				switch d := depths[at]; {
				case isCold(d):
				case isLost(d):
					n.count(&c.bins, i, profile.TimeFound, lists[at], coldBin, ^uint64(0))
					n.count(&c.lost, i, profile.TimeLost, lists[at], binOf(lostAt[at]), 1)
				default:
					n.resolve(&c.bins, i, profile.TimeFound, lists[at], d)
				}
			}
			at++
		}
	}
}

func isLost(d uint32) bool { return d == stack.Lost }

// addNext adds a timeline to the windows: the timeline of the profile that was restored or appended
// last.
func (t *timeline) addNext(a *Analysis) {
	next := t.next
	if next == nil {
		return
	}
	t.next = nil
	for s, b := range a.stacks() {
		if b != nil {
			t.known[s] = append(t.known[s][:0], b.counts...)
		}
	}
	for i := range next.windows {
		for s := range next.windows[i].counts {
			next.windows[i].counts[s] = profile.SumTimes(next.windows[i].counts[s])
		}
	}
	t.enlargeWindows(a, next.size)
	for next.size < t.size {
		next.windows = joinWindowPairs(next.first, next.windows)
		next.size, next.first = 2*next.size, next.first/2
	}
	if len(t.windows) == 0 {
		t.first = next.first
	}
	for i := range next.windows {
		t.open = next.first + uint64(i)
		t.window(t.open).add(&next.windows[i])
	}
	t.limitPlaces(a)
}

// result returns the timeline for a profile, in which places are identified by their indices in the
// profile.
func (t *timeline) result(s *summary, p *profile.Profile) *profile.Timeline {
	a := s.a
	t.addNext(a)
	t.addToOpenWindow(a)
	out := &profile.Timeline{References: t.size, First: t.first, Windows: make([][]profile.TimeCount, len(t.windows))}
	sums := timeSums{code: len(p.Sites.Code), data: len(p.Sites.Data)}
	var paths []uint32 // indices of the call paths in the profile
	if p.Calls != nil {
		_, numbers := a.paths.callers.Describe()
		paths = make([]uint32, len(numbers))
		for i, n := range numbers {
			paths[n] = uint32(i)
		}
	}
	sums.init(len(paths))
	for i := range t.windows {
		for stack, b := range a.stacks() {
			if b == nil || stack > 0 && !a.OnCores() {
				continue
			}
			for _, d := range t.windows[i].counts[stack] {
				list, bin := b.owner(uint32(d.Key))
				at, path := a.pairs[list], a.paths.pathOf(list)
				if at.slot != noSlot {
					sums.add(stack, int(s.codeAt[at.slot])-1, bin, d.Count)
				}
				if at.object != noObject && s.dataAt[at.object] > 0 && p.Sites.Data != nil {
					sums.add(stack, sums.code+int(s.dataAt[at.object])-1, bin, d.Count)
				}
				if path >= 0 && path < len(paths) {
					sums.add(stack, sums.code+sums.data+int(paths[path]), bin, d.Count)
				}
			}
		}
		out.Windows[i] = sums.takeCounts()
	}
	if len(p.Totals.Threads) > 1 {
		for _, thread := range p.Totals.Threads {
			lane, at := make([]uint64, len(t.windows)), t.lane(thread)
			for i := range t.windows {
				if w := &t.windows[i]; at < len(w.lanes) {
					lane[i] = w.lanes[at]
				}
			}
			out.Lanes = append(out.Lanes, lane)
		}
	}
	return out
}

// timeSums adds up the counts of one window by site, object and call path. The lists of the sites
// come first, then the lists of the objects, and then the lists of the call paths.
type timeSums struct {
	code, data int // numbers of sites and of objects
	stacks     [timeStacks]bins
	seen       []bool
	touched    []int // the lists that contain counts
}

func (t *timeSums) init(paths int) {
	t.seen = make([]bool, t.code+t.data+paths)
	for s := range t.stacks {
		t.stacks[s].groups = make([]binGroups, len(t.seen))
	}
}

func (t *timeSums) add(stack, list, bin int, count uint64) {
	if !t.seen[list] {
		t.seen[list] = true
		t.touched = append(t.touched, list)
	}
	*t.stacks[stack].counter(uint32(list), bin) += count
}

// takeCounts returns all counts, sorted by key, and resets them.
func (t *timeSums) takeCounts() (counts []profile.TimeCount) {
	slices.Sort(t.touched)
	for _, list := range t.touched {
		part, index := profile.TimeSite, list
		switch {
		case list >= t.code+t.data:
			part, index = profile.TimePath, list-t.code-t.data
		case list >= t.code:
			part, index = profile.TimeObject, list-t.code
		}
		for stack := range t.stacks {
			b := &t.stacks[stack]
			for g, group := range b.groups[list] {
				if group == 0 {
					continue
				}
				for i, n := range b.counts[group<<3:][:8] {
					if n != 0 {
						counts = append(counts, profile.TimeCount{Key: profile.NewTimeKey(part, uint32(index), profile.TimeStack(stack), g<<3|i), Count: n})
					}
				}
			}
			b.groups[list] = binGroups{}
		}
		t.seen[list] = false
	}
	for s := range t.stacks {
		t.stacks[s].counts, t.stacks[s].owners = t.stacks[s].counts[:0], t.stacks[s].owners[:0]
	}
	t.touched = t.touched[:0]
	return counts
}
