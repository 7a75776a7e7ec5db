package sites

import (
	"errors"
	"slices"

	"github.com/stackglass/stackglass/core/analysis/locality"
	"github.com/stackglass/stackglass/core/codec"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// Section segs contains the state of a segment in addition to its results. Sites and objects are
// encoded as their indices in the lists of the profile. The indices of objects begin at 1; index 0
// is the object rest if there is no other object. The type uv is an unsigned LEB128 varint. A mask
// consists of little-endian words, each with one bit for each of 64 bytes. Fields in brackets exist
// only if the segment is mergeable.
//
//	uv flags: 1 mergeable
//	list of threads, each: uv thread; list of walks, each
//	  uv site · 8 bytes last address · 8 bytes last step
//	  [uv recorded references, at most 2 · for each of them: 8 bytes address · uv bytes]
//	list of lines, ascending, empty if no measurement needs the state of lines, each
//	  uv line − previous line · uv site of the last access; for each capacity
//	    uv site and uv object that fetched the line · uv 0 in the line's first stay, otherwise 1
//	    · mask of the bytes used · [mask of the bytes used in the first stay]
//	list of first touches, in order, empty unless mergeable, each: uv site · uv object
//	if call paths are known: for each of these first touches, uv call path
//	list of blocks, ascending, empty if mergeable, each: uv object · 8 bytes address · uv bytes
//	if there are coherent stacks: list of first touches by each core, and their call paths, as above
//	if utilisation is measured in private caches: the state of the caches (corelines.go)
//
// This state is sufficient to append the segment (MODELS §9). The first touches of the segment
// become accesses at a finite distance, by the same pair. If a first touch hits, the line's first
// stay in the segment is joined with its last stay in the previous segment. The strides of the
// first two references of each walk are replaced with their strides in the whole trace.

type walkStart struct {
	references int // number of recorded references, at most 2
	addr       [2]trace.Addr
	bytes      [2]uint32

	pending [numPending]uint64 // the pending accesses of the walk, in their stored form
	move    uint64             // number of lines of the first move, if it is pending
}

func (w *walkStart) note(addr trace.Addr, bytes uint32) {
	if w.references < len(w.addr) {
		w.addr[w.references], w.bytes[w.references] = addr, bytes
		w.references++
	}
}

type joining struct {
	firsts     []uint32 // pairs of the first touches so far, if the run is mergeable
	firstPaths []uint32 // for each of these first touches: the list of bins of its call path

	// The following fields describe the segment that is being appended.
	part  *stateCoder              // state of the segment; nil if references have been analysed since the segment was loaded
	next  []uint32                 // pairs of the first touches of the segment that have not been resolved yet
	paths []uint32                 // for each of these first touches: the list of bins of its call path
	moves map[uint64]pendingAccess // pending accesses by their index in the segment's first touches, if the run is mergeable
	lines map[trace.Line]*lineState
	stack []trace.Line // the stack at the end of the segment
}

// lineState is the state of a line at the end of a segment.
type lineState struct {
	line trace.Line
	last uint32 // slot of the last site
	// The following lists have one element for each capacity.
	stays  []stay
	masks  []uint64
	firsts []uint64
}

// stateCoder reads or writes the state of a segment.
type stateCoder struct {
	*codec.Coder
	a         *Analysis
	mergeable bool // the segment can be appended to any run

	moves *codec.Coder // section segw; nil: it is unknown which accesses a prefetcher covers

	s *summary // only for writing

	// The following fields are only for reading.
	in      *profile.Sites
	restore bool
	several bool     // the profile has several cores
	slots   []uint32 // slots of the profile's sites
	objects []uint32 // numbers of the profile's objects, beginning at index 1

	firstTouches, coreFirsts []uint32 // pairs of the segment's first touches, and of the first touches by each core

	covers []coveredAccess // pending accesses that turned out to be covered
	touch  uint64          // an upper bound for the indices of pending first touches

	calls                      *profile.Calls // call paths of the profile; nil: unknown
	paths                      []uint32       // the list of bins of each call path of the profile
	touchPaths, coreFirstPaths []uint32       // the lists of bins of the first touches' call paths
}

// failUnless records a decoding error unless the condition holds.
func (f *stateCoder) failUnless(possible bool) { f.Check(possible, "a number is out of range") }

// state returns the sections segs and segw. The second section is nil if it is unknown which accesses
// a prefetcher covers.
func (s *summary) state(in *profile.Sites, calls *profile.Calls) (state, moves []byte) {
	a := s.a
	f := stateCoder{Coder: codec.Writer([]byte{}), a: a, s: s, in: in, mergeable: a.options.Mergeable, firstTouches: a.joining.firsts, touchPaths: a.joining.firstPaths, calls: calls}
	if in.Coherent != nil {
		f.coreFirsts, f.coreFirstPaths = a.cores.firsts, a.cores.firstPaths
	}
	if !a.uncovered {
		f.moves = codec.Writer([]byte{})
	}
	f.Flag(&f.mergeable)
	f.codeAll()
	if in.Coherent != nil && a.cores.private != nil {
		f.codePrivate(a.cores.private)
	}
	if f.moves != nil {
		moves = f.moves.Out
	}
	return f.Out, moves
}

// codeAll reads or writes the state, except for the flags at the beginning and the private caches.
// When reading, it returns the lines.
func (f *stateCoder) codeAll() (states []lineState) {
	var threads []walks
	var placed []savedBlock
	if !f.Reads() {
		threads, placed = f.a.threads.list, f.s.currentBlocks()
	}
	codec.Slice(f.Coder, &threads, 2, f.walks)
	states = f.lines()
	f.codeFirsts(&f.firstTouches, func(i int) uint64 { return f.in.Code[i].Reuse.Cold })
	f.codeCoveredTouches()
	f.firstPaths(&f.touchPaths, len(f.firstTouches))
	codec.Slice(f.Coder, &placed, 1+8+1, f.block)
	if f.in.Coherent != nil {
		f.codeFirsts(&f.coreFirsts, func(i int) uint64 { return f.in.Coherent.Code[i].Cold })
		f.firstPaths(&f.coreFirstPaths, len(f.coreFirsts))
	}
	return states
}

func (f *stateCoder) slot(v *uint32) {
	if !f.Reads() {
		code := f.s.codeAt[*v] - 1
		f.U32(&code)
		return
	}
	i := f.In.UintBelow(uint64(len(f.slots)))
	if *v = noSlot; !f.Failed() {
		*v = f.slots[i]
	}
}

func (f *stateCoder) object(v *uint32) {
	if !f.Reads() {
		f.U32(&f.s.dataAt[*v])
		return
	}
	i := f.In.UintBelow(uint64(len(f.objects)))
	if *v = rest; !f.Failed() {
		*v = f.objects[i]
	}
}

// pair reads or writes a site and an object.
func (f *stateCoder) pair(v *uint32) {
	var p pair
	if !f.Reads() {
		p = f.a.pairs[*v]
	}
	f.slot(&p.slot)
	f.object(&p.object)
	if f.Reads() {
		*v = f.a.pairNumber(p)
	}
}

// walk is the state of a walk: the sequence of references that one site makes in one thread.
type walk struct {
	slot  uint32
	at    stride
	start walkStart
}

func (f *stateCoder) walks(w *walks) {
	thread := w.thread
	f.U32(&thread)
	var list []walk
	if !f.Reads() {
		for _, slot := range f.s.order {
			if int(slot) < len(w.sites) && w.sites[slot].isUsed() {
				list = append(list, walk{slot: slot, at: w.sites[slot]})
				if f.mergeable {
					list[len(list)-1].start = w.starts[slot]
				}
			}
		}
	}
	codec.Slice(f.Coder, &list, 1+8+8, func(x *walk) {
		f.slot(&x.slot)
		f.Word(&x.at.last)
		f.Word(&x.at.step)
		if f.mergeable {
			f.start(&x.start)
		}
		f.codeMoves(x)
		if f.Reads() && !f.Failed() {
			f.joinWalk(thread, x)
		}
	})
}

func (f *stateCoder) start(w *walkStart) {
	codec.Below(f.Coder, &w.references, uint64(len(w.addr))+1)
	for i := range w.references {
		f.Word(&w.addr[i])
		f.U32(&w.bytes[i])
	}
	f.failUnless(w.references > 0)
}

// lines reads or writes the states of lines. When reading, it subtracts the unfinished stays from
// the counts, which include them.
func (f *stateCoder) lines() (states []lineState) {
	l, order, next := f.a.lines, []uint32{}, uint64(0)
	if l != nil && !f.Reads() {
		order = l.sortedNumbers()
	}
	n := f.Length(len(order), 2)
	f.failUnless(n == 0 || l != nil)
	for i := 0; i < n && !f.Failed(); i++ {
		var s lineState
		if f.Reads() {
			all := len(l.capacities) * l.words
			s = lineState{stays: make([]stay, len(l.capacities)), masks: make([]uint64, all), firsts: make([]uint64, all)}
		} else {
			s = l.state(order[i])
		}
		f.After(&s.line, &next, mostLines)
		f.slot(&s.last)
		for c := range s.stays {
			at, mask := &s.stays[c], s.masks[c*l.words:][:l.words]
			f.pair(&at.pair)
			f.Flag(&at.later)
			f.Words(mask)
			if f.mergeable {
				f.Words(s.firsts[c*l.words:][:l.words])
			}
			if f.Reads() {
				l.resumeStay(at.pair, c, mask)
			}
		}
		if f.Reads() {
			states = append(states, s)
		}
	}
	return states
}

const mostLines = 1 << 61 // an upper bound for line numbers

// state returns the state of a line. The result shares memory with l.
func (l *lines) state(n uint32) lineState {
	at, to := int(n)*len(l.capacities), int(n+1)*len(l.capacities)
	s := lineState{line: l.list[n], last: l.last[n], stays: l.stays[at:to], masks: l.masks[at*l.words : to*l.words]}
	if l.mergeable {
		s.firsts = l.firsts[at*l.words : to*l.words]
	}
	return s
}

// resumeStay continues a stay in a cache. It subtracts the stay from the counts, which include the
// stay as if it had ended.
func (l *lines) resumeStay(pair uint32, capacity int, mask []uint64) {
	u := &(*l.used)[int(pair)*len(l.capacities)+capacity]
	u.Fetched--
	u.BytesUsed -= count(mask)
}

// codeFirsts reads or writes the pairs of first touches. The function touchesOf returns the number
// of first touches by a site.
func (f *stateCoder) codeFirsts(list *[]uint32, touchesOf func(site int) uint64) {
	codec.Slice(f.Coder, list, 2, f.pair)
	cold := uint64(0)
	for i := range f.in.Code {
		cold += touchesOf(i)
	}
	f.failUnless(f.mergeable && uint64(len(*list)) == cold || !f.mergeable && len(*list) == 0)
}

type savedBlock struct {
	object uint32
	from   trace.Addr
	bytes  uint64
}

// currentBlocks returns the current blocks, or nil if the segment is mergeable.
func (s *summary) currentBlocks() (list []savedBlock) {
	m := &s.a.memory
	for _, piece := range m.placed.chunks {
		for _, p := range piece {
			b := &m.blocks[p.block]
			if of := m.objectOf[p.block]; !s.a.options.Mergeable && m.objects[of].kind != profile.GlobalObject {
				list = append(list, savedBlock{of, b.from, b.bytes})
			}
		}
	}
	return list
}

func (f *stateCoder) block(b *savedBlock) {
	f.object(&b.object)
	f.Word(&b.from)
	f.U64(&b.bytes)
	if f.Failed() || !f.Reads() {
		return
	}
	m := &f.a.memory
	kind := m.objects[b.object].kind
	if f.failUnless(f.restore && !f.a.options.Mergeable && (kind == profile.HeapObject || kind == profile.StackObject)); !f.Failed() {
		m.addBlock(b.object, b.from, b.bytes)
	}
}

var errState = errors.New("the saved state of the sites analysis is damaged; analyse the trace again from its start")

// Restore implements [contract.Analysis].
func (a *Analysis) Restore(p *profile.Profile) error { return a.loadProfile(p, true) }

// Append implements [contract.Analysis]. Append must be called before the locality analysis appends
// the segment and calls Resolve.
func (a *Analysis) Append(next *profile.Profile) error { return a.loadProfile(next, false) }

// loadProfile adds the counts and the state of a profile: the profile of a saved run, or of the
// next segment.
func (a *Analysis) loadProfile(p *profile.Profile, restore bool) error {
	a.joining.part = nil
	if p.Totals.AllReferences() == 0 {
		return nil
	}
	if a.absent = a.absent || p.Sites == nil; a.absent {
		return nil
	}
	if t := a.timeline; t.counting() {
		t.addNext(a)
		t.addToOpenWindow(a)
	}
	a.uncovered = a.uncovered || p.Sites.Covered == nil || p.Segment.Moves == nil
	f := &stateCoder{Coder: codec.Reader(p.Segment.Sites), a: a, in: p.Sites, calls: p.Calls, restore: restore, several: p.Sites.Coherent != nil || p.SharingAt(p.Sites.LineBytes) != nil}
	if !a.uncovered {
		f.moves = codec.Reader(p.Segment.Moves)
	}
	o := a.options
	f.Flag(&f.mergeable)
	if p.Sites.LineBytes != o.LineBytes || !slices.Equal(p.Sites.Capacities, o.Capacities) || !slices.Equal(p.Sites.Ways, o.Ways) || p.Sites.Previous != o.Previous ||
		restore && f.mergeable != o.Mergeable || !restore && !f.mergeable {
		return errState
	}
	a.joining.moves = map[uint64]pendingAccess{}
	f.results()
	f.pathResults()
	if a.timeline.counting() && !f.Failed() {
		a.timeline.readTimeline(f, p)
	}
	a.places.slots, a.places.objects = f.slots, f.objects
	states := f.codeAll()
	if restore && f.several {
		f.restoreCores()
	}
	if f.Failed() || f.More() || f.moves != nil && (f.moves.Failed() || f.moves.More()) {
		return errState
	}
	stack := locality.StackOf(p, o.LineBytes)
	if restore {
		a.joining.firstPaths = f.touchPaths
		return a.resumeLines(states, f.firstTouches, stack)
	}
	a.joining.stack, a.joining.part = stack, f
	a.joining.next, a.joining.paths, a.joining.lines = f.firstTouches, f.touchPaths, map[trace.Line]*lineState{}
	for i := range states {
		a.joining.lines[states[i].line] = &states[i]
	}
	return nil
}

// resumeLines continues with the saved states of lines. resumeLines derives the contents of
// set-associative caches from the stack.
func (a *Analysis) resumeLines(states []lineState, firsts []uint32, stack []trace.Line) error {
	a.joining.firsts = firsts
	for i := range states {
		if _, known := a.lines.at.Find(states[i].line); known {
			return errState
		}
		a.lines.addLine(&states[i])
	}
	if a.lines != nil {
		if len(a.lines.list) != len(stack) {
			return errState
		}
		a.lines.fillSets(stack)
	}
	return nil
}

func (f *stateCoder) results() {
	a := f.a
	a.code.list = slices.Grow(a.code.list, len(f.in.Code))
	f.slots = slices.Grow(f.slots, len(f.in.Code))
	for i := range f.in.Code {
		s := &f.in.Code[i]
		met := len(a.code.list)
		slot := a.code.slot(siteKey{s.Number, s.PC, s.Kind})
		f.slots = append(f.slots, slot)
		a.code.list[slot].load(s, int(slot) == met)
	}
	// every site may have made the previous access to a line, so all sites need slots
	for i := range f.in.Code {
		n := f.load(pair{slot: f.slots[i], object: noObject}, &f.in.Code[i].Reuse)
		if f.moves != nil {
			c := &f.in.Covered[i]
			a.bins.addTimes(n, ^uint64(0), c.Cold, c.Bins)
			a.bins.addTimes(a.coveredPair(n), 1, c.Cold, c.Bins)
		}
	}
	f.objects = []uint32{rest}
	for i := range f.in.Data {
		o := &f.in.Data[i]
		n := a.memory.object(keyOf(o))
		f.objects = append(f.objects, n)
		a.memory.objects[n].load(o)
		into := f.load(pair{slot: noSlot, object: n}, &o.Reuse)
		a.extra[into] += o.Reuse.Accesses() - o.References
	}
	if f.in.Data != nil {
		return
	}
	into := a.pairNumber(pair{slot: noSlot, object: rest})
	for i := range f.in.Code {
		s := &f.in.Code[i]
		f.load(pair{slot: noSlot, object: rest}, &s.Reuse)
		a.extra[into] += s.Reuse.Accesses() - s.References()
	}
}

func (f *stateCoder) load(p pair, from *profile.Reuse) uint32 {
	a := f.a
	n := a.pairNumber(p)
	a.bins.addTimes(n, 1, from.Cold, from.Bins)
	if len(from.Used) > 0 {
		addUsed((*a.lines.used)[int(n)*len(from.Used):], from.Used)
	}
	for _, b := range from.Before {
		s := &f.in.Code[b.Site]
		a.lines.before[beforeKey{n, a.code.slot(siteKey{s.Number, s.PC, s.Kind})}] += b.Count
	}
	return n
}

// load adds the counts of a site from a profile. The parameter isNew is true if the site has no
// counts yet.
func (s *site) load(from *profile.Site, isNew bool) {
	for c, n := range from.Strides {
		s.base[c] += n
	}
	if s.before == nil {
		s.before = from
	}
	if isNew {
		s.bytes = from.Bytes
	}
	s.file = from.File
	if s.bytes != from.Bytes {
		s.bytes = 0
	}
}

func keyOf(o *profile.DataObject) objectKey {
	key := objectKey{kind: o.Kind, number: o.Number}
	if o.Number == profile.NoSite && o.Kind != profile.OtherObject {
		key.function, key.name = o.Function, o.Name
	}
	return key
}

func (o *object) load(from *profile.DataObject) {
	o.blocks += from.Blocks
	o.bytes += from.Bytes
	if o.before == nil {
		o.before = from
	}
	o.file = from.File
}

func (f *stateCoder) joinWalk(thread uint32, x *walk) {
	w := f.a.threads.walksOf(thread, len(f.a.code.list), f.a.options.Mergeable)
	base := &f.a.code.list[x.slot].base
	if at := &w.sites[x.slot]; !at.isUsed() {
		x.at.counts[profile.IrregularStride] = 1
		base[profile.IrregularStride]--
		*at = x.at
		if f.a.options.Mergeable {
			start := &w.starts[x.slot]
			start.pending, start.move = x.start.pending, x.start.move
			f.awaitDistance(thread, x.slot, firstAccess, start)
			f.awaitDistance(thread, x.slot, firstMove, start)
		}
	} else if f.mergeable {
		f.joinMoves(thread, x, at, w)
		at.appendStride(&x.at, &x.start, base)
	} else {
		f.failUnless(false)
	}
	if f.a.options.Mergeable {
		for i := range x.start.references {
			w.starts[x.slot].note(x.start.addr[i], x.start.bytes[i])
		}
	}
}

// appendStride appends the walk of the next segment. It corrects the strides of the first two
// references: the segment counted the first reference as irregular, and the second reference
// without knowing the previous step.
func (s *stride) appendStride(next *stride, start *walkStart, counts *strideCounts) {
	step := start.addr[0] - s.last
	counts[profile.IrregularStride]--
	counts[strideClass(step, s.step, start.bytes[0])]++
	if start.references == 1 {
		s.last, s.step = start.addr[0], step
		return
	}
	second := start.addr[1] - start.addr[0]
	counts[strideClass(second, 0, start.bytes[1])]--
	counts[strideClass(second, step, start.bytes[1])]++
	s.last, s.step = next.last, next.step
}

// Resolve implements locality.Follower.
func (a *Analysis) Resolve(touches []profile.FirstTouch, distances []uint32) {
	if a.absent {
		return
	}
	next := a.joining.next[:min(len(touches), len(a.joining.next))]
	first := 0
	if part := a.joining.part; part != nil {
		first = len(part.firstTouches) - len(a.joining.next)
	}
	a.joining.next = a.joining.next[len(next):]
	if a.paths != nil {
		paths := a.joining.paths[:len(next)]
		a.joining.paths = a.joining.paths[len(next):]
		for i, n := range paths {
			if d := distances[i]; !isCold(d) {
				a.resolveFirstTouch(n, d, touches[i].Reference)
			} else if a.options.Mergeable {
				a.joining.firstPaths = append(a.joining.firstPaths, n)
			}
		}
	}
	for i, n := range next {
		d := distances[i]
		if !isCold(d) {
			a.resolveFirstTouch(n, d, touches[i].Reference)
		} else if a.options.Mergeable {
			a.joining.firsts = append(a.joining.firsts, n)
		}
		if p, pending := a.joining.moves[uint64(first+i)]; pending {
			at := &a.threads.walksOf(p.thread, 0, true).starts[p.slot].pending[p.which]
			if *at = 1 + uint64(binOf(d)); isCold(d) {
				*at = firstTouch + uint64(len(a.joining.firsts)-1)
			}
		}
		if a.lines == nil {
			continue
		}
		if s := a.joining.lines[touches[i].Line]; s != nil {
			a.lines.appendLine(s, d, n)
		}
	}
	if a.lines != nil && len(a.joining.next) == 0 {
		a.lines.fillSets(a.joining.stack)
		a.joining.stack = nil
	}
}

// resolveFirstTouch changes a cold access of a list into an access at the given distance.
func (a *Analysis) resolveFirstTouch(list, distance uint32, reference uint64) {
	a.bins.moveFromCold(list, distance)
	if t := a.timeline; t.counting() && t.next != nil {
		t.next.resolve(&a.bins, t.next.window(reference), profile.TimeWhole, list, distance)
	}
}

// addLine adds a new line.
func (l *lines) addLine(s *lineState) {
	n := l.number(s.line)
	l.last[n] = s.last
	at := n * len(l.capacities)
	copy(l.stays[at:], s.stays)
	copy(l.masks[at*l.words:], s.masks)
	if l.mergeable {
		copy(l.firsts[at*l.words:], s.firsts)
	}
}

// appendLine appends the state of a line in the next segment. The parameters distance and pair
// belong to the first access to the line in this segment.
func (l *lines) appendLine(s *lineState, distance, pair uint32) {
	if isCold(distance) {
		l.addLine(s)
		for c := range l.capacities {
			l.misses(c, s.line, l.number(s.line), distance)
		}
		return
	}
	n := l.number(s.line)
	if l.previous && distance >= profile.PreviousFrom {
		l.before[beforeKey{pair, l.last[n]}]++
	}
	l.last[n] = s.last
	for c := range l.capacities {
		at := n*len(l.capacities) + c
		mask, first := s.masks[c*l.words:][:l.words], s.firsts[c*l.words:][:l.words]
		if !l.misses(c, s.line, n, distance) { // the cache still contained the line, so the line was not fetched
			if !s.stays[c].later {
				unite(l.mask(at), mask)
				continue
			}
			u := &(*l.used)[int(pair)*len(l.capacities)+c]
			u.Fetched--
			u.BytesUsed -= count(first)
			unite(l.mask(at), first)
		}
		l.endStay(at, c)
		l.stays[at] = stay{pair: s.stays[c].pair, later: true}
		copy(l.mask(at), mask)
	}
}

func unite(mask, with []uint64) {
	for i, word := range with {
		mask[i] |= word
	}
}
