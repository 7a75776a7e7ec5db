package sites

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/stackglass/stackglass/core/codec"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// What a segment keeps besides its results, in section segs. Sites and objects
// are their indices in the profile's lists, objects 1 on and 0 for the rest where
// it is the only one; uv is an unsigned LEB128 varint, masks are little-endian
// words of 64 bytes' bits.
//
//	uv flags: 1 mergeable
//	list of threads, each: uv thread; list of walks, each
//	  uv site · 8 bytes last address · 8 bytes step
//	  where mergeable: uv references, 2 if there are more · of each
//	  8 bytes address · uv bytes
//	list of lines, ascending, none where nothing is noted of lines (the stack of
//	  section segm has as many), each
//	  uv line − the one before · uv last site; for each capacity
//	  uv site · uv object, that fetched it · uv 1 if that was not the first time
//	  · mask of the bytes used · where mergeable: mask of those of the first time
//	list of first touches where mergeable, in order, each: uv site · uv object
//	list of blocks, none where mergeable, ascending, each: uv object · 8 bytes address · uv bytes
//	where there are coherent stacks of cores, list of the first touches of each core
//	where mergeable, in order, each: uv site · uv object; and where utilisation is
//	measured in private caches, these (corelines.go)
//
// With this a segment is appended (MODELS §9). Its first touches become accesses
// at a distance, of the same pair; its first stay of a line is joined to the last
// one of the segment before, if the first touch turns out to hit; the first two
// references of each walk get the strides that they have in the whole.

// walkStart are the first references of a walk.
type walkStart struct {
	references int // noted, at most 2
	addr       [2]trace.Addr
	bytes      [2]uint32
}

// note keeps a reference if it is one of the first two.
func (w *walkStart) note(addr trace.Addr, bytes uint32) {
	if w.references < len(w.addr) {
		w.addr[w.references], w.bytes[w.references] = addr, bytes
		w.references++
	}
}

// joining is what appending needs.
type joining struct {
	firsts []uint32 // pairs of the first touches so far, where mergeable

	// Of the segment that is being appended:
	part  *loader  // until more is analysed
	next  []uint32 // pairs of its first touches that were not resolved yet
	lines map[trace.Line]*lineState
	stack []trace.Line // at its end
}

// lineState is what a segment knows of a line at its end.
type lineState struct {
	line trace.Line
	last uint32 // slot
	// For each capacity:
	stays  []stay
	masks  []uint64
	firsts []uint64
}

// state writes what goes with a summary.
func (s *summary) state(in *profile.Sites) []byte {
	a := s.a
	mergeable := uint64(0)
	if a.options.Mergeable {
		mergeable = 1
	}
	b := binary.AppendUvarint([]byte{}, mergeable)
	b = binary.AppendUvarint(b, uint64(len(a.threads.list)))
	for i := range a.threads.list {
		b = s.appendWalks(b, &a.threads.list[i])
	}
	b = s.appendLines(b)
	b = binary.AppendUvarint(b, uint64(len(a.joining.firsts)))
	for _, n := range a.joining.firsts {
		b = s.appendPair(b, n)
	}
	b = s.appendBlocks(b)
	if in.Coherent == nil {
		return b
	}
	b = binary.AppendUvarint(b, uint64(len(a.cores.firsts)))
	for _, n := range a.cores.firsts {
		b = s.appendPair(b, n)
	}
	if a.cores.private != nil {
		b = s.appendPrivate(b)
	}
	return b
}

func (s *summary) appendPair(b []byte, n uint32) []byte {
	p := s.a.pairs[n]
	return binary.AppendUvarint(binary.AppendUvarint(b, uint64(s.codeAt[p.slot]-1)), uint64(s.dataAt[p.object]))
}

func (s *summary) appendWalks(b []byte, w *walks) []byte {
	n := 0
	for i := range w.sites {
		if w.sites[i].seen() {
			n++
		}
	}
	b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(w.thread)), uint64(n))
	for _, slot := range s.order {
		if int(slot) >= len(w.sites) || !w.sites[slot].seen() {
			continue
		}
		at := &w.sites[slot]
		b = binary.AppendUvarint(b, uint64(s.codeAt[slot]-1))
		b = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, at.last), at.step)
		if s.a.options.Mergeable {
			start := &w.starts[slot]
			b = binary.AppendUvarint(b, uint64(start.references))
			for i := range start.references {
				b = binary.AppendUvarint(binary.LittleEndian.AppendUint64(b, start.addr[i]), uint64(start.bytes[i]))
			}
		}
	}
	return b
}

func (s *summary) appendLines(b []byte) []byte {
	l := s.a.lines
	if l == nil {
		return binary.AppendUvarint(b, 0)
	}
	b = binary.AppendUvarint(b, uint64(len(l.list)))
	last := trace.Line(0)
	for _, n := range l.inOrder() {
		b = binary.AppendUvarint(b, l.list[n]-last)
		b = binary.AppendUvarint(b, uint64(s.codeAt[l.last[n]]-1))
		last = l.list[n]
		for c := range l.capacities {
			at := int(n)*len(l.capacities) + c
			b = s.appendPair(b, l.stays[at].pair)
			later := uint64(0)
			if l.stays[at].later {
				later = 1
			}
			b = appendMask(binary.AppendUvarint(b, later), l.mask(at))
			if l.mergeable {
				b = appendMask(b, l.firsts[at*l.words:][:l.words])
			}
		}
	}
	return b
}

func appendMask(b []byte, mask []uint64) []byte {
	for _, word := range mask {
		b = binary.LittleEndian.AppendUint64(b, word)
	}
	return b
}

func (s *summary) appendBlocks(b []byte) []byte {
	if s.a.options.Mergeable {
		return binary.AppendUvarint(b, 0)
	}
	m := &s.a.memory
	var list []uint32
	for _, piece := range m.placed.pieces {
		for _, p := range piece {
			if m.objects[m.objectOf[p.block]].kind != profile.GlobalObject {
				list = append(list, p.block)
			}
		}
	}
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, n := range list {
		b = binary.AppendUvarint(b, uint64(s.dataAt[m.objectOf[n]]))
		b = binary.LittleEndian.AppendUint64(b, m.blocks[n].from)
		b = binary.AppendUvarint(b, m.blocks[n].bytes)
	}
	return b
}

var errState = errors.New("the state of the sites cannot be read; analyse the trace again from its start")

// Restore implements analysis.Analysis.
func (a *Analysis) Restore(p *profile.Profile) error { return a.load(p, true) }

// Append implements analysis.Analysis. It comes before locality's, which then
// has Resolve finish it.
func (a *Analysis) Append(next *profile.Profile) error { return a.load(next, false) }

// load adds what a profile tells: of the run so far, or of the segment behind.
func (a *Analysis) load(p *profile.Profile, restore bool) error {
	a.joining.part = nil
	if p.Totals.AllReferences() == 0 {
		return nil
	}
	if a.absent = a.absent || p.Sites == nil; a.absent {
		return nil
	}
	r := &loader{Decoder: codec.NewDecoder(p.Segment.Sites), a: a, in: p.Sites, several: p.Sites.Coherent != nil || p.SharingAt(p.Sites.LineBytes) != nil}
	o := a.options
	r.mergeable = r.UintBelow(2) == 1
	if p.Sites.LineBytes != o.LineBytes || !slices.Equal(p.Sites.Capacities, o.Capacities) || !slices.Equal(p.Sites.Ways, o.Ways) || p.Sites.Previous != o.Previous ||
		restore && r.mergeable != o.Mergeable || !restore && !r.mergeable {
		return errState
	}
	r.results()
	a.places.slots, a.places.objects = r.slots, r.objects
	for range r.Length(2) {
		thread := uint32(r.UintBelow(1 << 32))
		for range r.Length(1 + 8 + 8) {
			r.walk(thread)
		}
	}
	states := r.lines()
	r.firstTouches = r.firsts(func(i int) uint64 { return r.in.Code[i].Reuse.Cold })
	for range r.Length(1 + 8 + 1) {
		r.block(restore)
	}
	if r.in.Coherent != nil {
		r.coreFirsts = r.firsts(func(i int) uint64 { return r.in.Coherent.Code[i].Cold })
	}
	if restore && r.several {
		r.restoreCores()
	}
	if r.Err() != nil || len(r.Rest()) != 0 || r.wrong {
		return errState
	}
	stack := stackOf(p, o.LineBytes)
	if restore {
		return a.resume(states, r.firstTouches, stack)
	}
	a.joining.stack, a.joining.part = stack, r
	a.joining.next, a.joining.lines = r.firstTouches, map[trace.Line]*lineState{}
	for i := range states {
		a.joining.lines[states[i].line] = &states[i]
	}
	return nil
}

// stackOf gives the LRU stack of a line size.
func stackOf(p *profile.Profile, lineBytes uint32) []trace.Line {
	for i := range p.Locality {
		if p.Locality[i].LineBytes == lineBytes && i < len(p.Segment.Lines) {
			return p.Segment.Lines[i].Stack
		}
	}
	return nil
}

// resume goes on where the lines are. What sets hold follows from the stack.
func (a *Analysis) resume(states []lineState, firsts []uint32, stack []trace.Line) error {
	a.joining.firsts = firsts
	for i := range states {
		if _, known := a.lines.at.Find(states[i].line); known {
			return errState
		}
		a.lines.adopt(&states[i])
	}
	if a.lines != nil {
		if len(a.lines.list) != len(stack) {
			return errState
		}
		a.lines.push(stack)
	}
	return nil
}

// loader reads a segment.
type loader struct {
	*codec.Decoder
	a       *Analysis
	in      *profile.Sites
	slots   []uint32 // of the profile's sites
	objects []uint32 // of its objects, from 1 on
	wrong   bool

	mergeable bool // it can be appended, whatever it is added to
	several   bool // it has several cores

	firstTouches, coreFirsts []uint32 // pairs of first touches of the segment, and of each core in it
}

// results adds the profile's sites and objects.
func (r *loader) results() {
	a := r.a
	a.code.list = slices.Grow(a.code.list, len(r.in.Code))
	r.slots = slices.Grow(r.slots, len(r.in.Code))
	for i := range r.in.Code {
		s := &r.in.Code[i]
		met := len(a.code.list)
		slot := a.code.slot(siteKey{s.Number, s.PC, s.Kind})
		r.slots = append(r.slots, slot)
		a.code.list[slot].load(s, int(slot) == met)
	}
	for i := range r.in.Code { // any site may be named as the one before
		r.load(pair{r.slots[i], noObject}, &r.in.Code[i].Reuse)
	}
	r.objects = []uint32{rest}
	for i := range r.in.Data {
		o := &r.in.Data[i]
		n := a.memory.object(keyOf(o))
		r.objects = append(r.objects, n)
		a.memory.objects[n].load(o)
		into := r.load(pair{noSlot, n}, &o.Reuse)
		a.extra[into] += o.Reuse.Accesses() - o.References
	}
	if r.in.Data != nil {
		return
	}
	into := a.pairNumber(pair{noSlot, rest})
	for i := range r.in.Code {
		s := &r.in.Code[i]
		r.load(pair{noSlot, rest}, &s.Reuse)
		a.extra[into] += s.Reuse.Accesses() - s.References()
	}
}

// load adds counts to a pair.
func (r *loader) load(p pair, from *profile.Reuse) uint32 {
	a := r.a
	n := a.pairNumber(p)
	a.bins.addTimes(n, 1, from.Cold, from.Bins)
	for c, u := range from.Used {
		to := &(*a.lines.used)[int(n)*len(from.Used)+c]
		to.Fetched += u.Fetched
		to.BytesUsed += u.BytesUsed
	}
	for _, b := range from.Before {
		s := &r.in.Code[b.Site]
		a.lines.before[beforeKey{n, a.code.slot(siteKey{s.Number, s.PC, s.Kind})}] += b.Count
	}
	return n
}

// load adds what a profile tells of the site, which is new or has made references.
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

// load adds what a profile tells of the object.
func (o *object) load(from *profile.DataObject) {
	o.blocks += from.Blocks
	o.bytes += from.Bytes
	if o.before == nil {
		o.before = from
	}
	o.file = from.File
}

// slot reads a site.
func (r *loader) slot() uint32 {
	if i := r.UintBelow(uint64(len(r.slots))); r.Err() == nil {
		return r.slots[i]
	}
	return noSlot
}

// object reads an object.
func (r *loader) object() uint32 {
	if i := r.UintBelow(uint64(len(r.objects))); r.Err() == nil {
		return r.objects[i]
	}
	return rest
}

// pair reads a site and an object.
func (r *loader) pair() uint32 { return r.a.pairNumber(pair{r.slot(), r.object()}) }

// walk reads a walk, and joins it to the one before.
func (r *loader) walk(thread uint32) {
	slot := r.slot()
	next, start := stride{last: r.Word(), step: r.Word()}, walkStart{}
	if r.mergeable {
		for range r.UintBelow(3) {
			addr, bytes := r.Word(), uint32(r.UintBelow(1<<32))
			start.note(addr, bytes)
		}
		if start.references == 0 {
			r.wrong = true
		}
	}
	if r.Err() != nil || r.wrong || slot == noSlot {
		return
	}
	w := r.a.threads.walksOf(thread, len(r.a.code.list), r.a.options.Mergeable)
	base := &r.a.code.list[slot].base
	if at := &w.sites[slot]; !at.seen() {
		next.counts[profile.IrregularStride] = 1
		base[profile.IrregularStride]--
		*at = next
	} else if r.mergeable {
		at.join(&next, &start, base)
	} else {
		r.wrong = true
	}
	if r.a.options.Mergeable {
		for i := range start.references {
			w.starts[slot].note(start.addr[i], start.bytes[i])
		}
	}
}

// join appends a walk: its first reference was counted as irregular, and its
// second one as if nothing had been before the first.
func (s *stride) join(next *stride, start *walkStart, counts *strideCounts) {
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

// lines reads the states of lines. What of their stays goes on is no more counted
// as ended.
func (r *loader) lines() (states []lineState) {
	l := r.a.lines
	n := r.Length(2)
	if n > 0 && l == nil {
		r.wrong = true
		return nil
	}
	line := trace.Line(0)
	for i := range n {
		step := r.Uint()
		if r.Err() != nil || i > 0 && step == 0 {
			r.wrong = true
			return nil
		}
		line += step
		s := lineState{line: line, last: r.slot()}
		for c := range l.capacities {
			from := stay{r.pair(), r.UintBelow(2) == 1}
			s.stays = append(s.stays, from)
			s.masks = r.mask(s.masks, l.words)
			if r.mergeable {
				s.firsts = r.mask(s.firsts, l.words)
			}
			u := &(*l.used)[int(from.pair)*len(l.capacities)+c]
			u.Fetched--
			u.BytesUsed -= count(s.masks[c*l.words:])
		}
		states = append(states, s)
	}
	return states
}

func (r *loader) mask(masks []uint64, words int) []uint64 {
	for range words {
		masks = append(masks, r.Word())
	}
	return masks
}

// firsts reads first touches, of which each site made so many.
func (r *loader) firsts(of func(site int) uint64) (firsts []uint32) {
	n := r.Length(2)
	cold := uint64(0)
	for i := range r.in.Code {
		cold += of(i)
	}
	r.wrong = r.wrong || r.mergeable && uint64(n) != cold || !r.mergeable && n != 0
	for range n {
		if r.Err() == nil {
			firsts = append(firsts, r.pair())
		}
	}
	return firsts
}

// block reads a block that is there at the end.
func (r *loader) block(restore bool) {
	of, from, bytes := r.object(), r.Word(), r.Uint()
	kind := r.a.memory.objects[of].kind
	if r.Err() != nil || !restore || r.a.options.Mergeable || kind != profile.HeapObject && kind != profile.StackObject {
		r.wrong = true
		return
	}
	r.a.memory.place(of, from, bytes)
}

// Resolve implements locality.Follower.
func (a *Analysis) Resolve(touches []profile.FirstTouch, distances []uint32) {
	if a.absent {
		return
	}
	next := a.joining.next[:min(len(touches), len(a.joining.next))]
	a.joining.next = a.joining.next[len(next):]
	for i, n := range next {
		d := distances[i]
		if !isCold(d) {
			a.bins.move(n, d)
		} else if a.options.Mergeable {
			a.joining.firsts = append(a.joining.firsts, n)
		}
		if a.lines == nil {
			continue
		}
		if s := a.joining.lines[touches[i].Line]; s != nil {
			a.lines.join(s, d, n)
		}
	}
	if a.lines != nil && len(a.joining.next) == 0 {
		a.lines.push(a.joining.stack)
		a.joining.stack = nil
	}
}

// adopt takes in a line that was not known.
func (l *lines) adopt(s *lineState) {
	n := l.number(s.line)
	l.last[n] = s.last
	at := n * len(l.capacities)
	copy(l.stays[at:], s.stays)
	copy(l.masks[at*l.words:], s.masks)
	if l.mergeable {
		copy(l.firsts[at*l.words:], s.firsts)
	}
}

// join appends what the next segment knows of a line: its first access, of a
// pair, is at this distance.
func (l *lines) join(s *lineState, distance, pair uint32) {
	if isCold(distance) {
		l.adopt(s)
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
		if !l.misses(c, s.line, n, distance) { // the line had stayed, so what fetched it was none
			if !s.stays[c].later {
				unite(l.mask(at), mask)
				continue
			}
			u := &(*l.used)[int(pair)*len(l.capacities)+c]
			u.Fetched--
			u.BytesUsed -= count(first)
			unite(l.mask(at), first)
		}
		l.end(at, c)
		l.stays[at] = stay{pair: s.stays[c].pair, later: true}
		copy(l.mask(at), mask)
	}
}

func unite(mask, with []uint64) {
	for i, word := range with {
		mask[i] |= word
	}
}
