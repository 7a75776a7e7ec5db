package misses

import (
	"math/bits"

	"github.com/stackglass/stackglass/core/trace"
)

type access struct {
	line trace.Line
	at   uint32 // index of the counters of the access
	ref  uint32 // reference that makes the access
}

// tally contains the counters of a run.
type tally struct {
	weight uint64 // number of accesses that each simulated access represents
	counts []hits
	arrays *arrayMap
	// number of evictions, by the reference that fetched the new line and the column of the reference
	// that made the last access to the evicted line; nil if not needed
	out    []uint64
	depths []uint64 // number of hits by stack distance, if there is only one set; nil if not needed
}

type hits struct{ accesses, misses uint64 }

// save appends the counters of a loop to a list: the counters of its nodes, of which the first has
// the index at, of evictions by its references, and of stack distances.
func (t *tally) save(to []uint64, at int, b *block) []uint64 {
	for _, n := range t.counts[at : at+b.nodes] {
		to = append(to, n.accesses, n.misses)
	}
	if t.out != nil {
		for _, ref := range b.refs {
			to = append(to, t.evictedBy(ref)...)
		}
	}
	return append(to, t.depths...)
}

// load restores the counters that save appended.
func (t *tally) load(from []uint64, at int, b *block) {
	for i := range b.nodes {
		t.counts[at+i] = hits{from[2*i], from[2*i+1]}
	}
	from = from[2*b.nodes:]
	if t.out != nil {
		for _, ref := range b.refs {
			from = from[copy(t.evictedBy(ref), from):]
		}
	}
	copy(t.depths, from)
}

// evictedBy returns the counters of evictions by a reference. The counters are indexed by the column
// of the reference that made the last access to the evicted line.
func (t *tally) evictedBy(ref uint32) []uint64 {
	n := len(t.arrays.columns)
	return t.out[int(ref)*n:][:n]
}

// state is the content of a cache with LRU replacement in each set.
type state interface {
	touch(all []access, t *tally) // simulates accesses, and counts hits and misses
	lines() int                   // number of lines that fit in the cache
	save(to []uint64) []uint64    // appends the content of the cache to a list
	load(from []uint64)           // restores a saved state
	// moved reports whether the content of the cache equals the saved content after the motion m of
	// all lines
	moved(from []uint64, m *motion) bool
	move(m *motion, times uint64) // applies the motion m to all lines, the given number of times
	// track makes the state record the last reference to each line. The saved content then also
	// contains these references, at its end.
	track()
	linesIn(saved []uint64) []uint64 // the part of a saved content that does not contain references
}

const noLine = ^uint64(0)

// fewWays is the maximum number of ways of a cache whose ways are searched one by one.
const fewWays = 16

func newState(sets, ways uint64) state {
	if ways <= fewWays {
		return newFrames(sets, ways)
	}
	return newStacks(sets, ways)
}

type index struct {
	sets uint64
	mask uint64 // sets - 1 if the number of sets is a power of two greater than 1
}

func newIndex(sets uint64) index {
	if sets&(sets-1) == 0 {
		return index{sets, sets - 1}
	}
	return index{sets: sets}
}

func (x *index) set(line trace.Line) uint64 {
	if x.mask != 0 || x.sets == 1 {
		return line & x.mask
	}
	return line % x.sets
}

// frames is a cache with few ways. Each set contains its lines, most recently used first, followed
// by empty frames.
type frames struct {
	index
	ways  int
	held  []trace.Line
	last  []uint32 // the last reference to each line; nil if not recorded
	spare []uint64
}

func newFrames(sets, ways uint64) *frames {
	f := &frames{index: newIndex(sets), ways: int(ways), held: make([]trace.Line, sets*ways)}
	for i := range f.held {
		f.held[i] = noLine
	}
	return f
}

func (f *frames) lines() int { return len(f.held) }

func (f *frames) touch(all []access, t *tally) {
	for i := range all {
		a := &all[i]
		t.counts[a.at].accesses += t.weight
		if at := int(f.set(a.line)) * f.ways; f.held[at] != a.line {
			f.moveToFront(a, at, t)
		} else if f.last != nil {
			f.last[at] = a.ref
		}
	}
}

// moveToFront makes a line the most recently used line of its set, which begins at the given index.
// The line must not already be the most recently used line.
func (f *frames) moveToFront(a *access, at int, t *tally) {
	set := f.held[at : at+f.ways]
	above := set[0]
	set[0] = a.line
	for w := 1; w < len(set); w++ {
		above, set[w] = set[w], above
		if above == a.line {
			if f.last != nil {
				last := f.last[at : at+f.ways]
				copy(last[1:w+1], last)
				last[0] = a.ref
			}
			return
		}
	}
	t.counts[a.at].misses += t.weight
	if f.last != nil {
		last := f.last[at : at+f.ways]
		if above != noLine {
			t.countEviction(a, last[f.ways-1])
		}
		copy(last[1:], last)
		last[0] = a.ref
	}
}

// countEviction records that an access has evicted a line, and which reference made the last access
// to this line.
func (t *tally) countEviction(a *access, last uint32) {
	t.evictedBy(a.ref)[t.arrays.columnOf[last]] += t.weight
}

func (f *frames) track() { f.last = make([]uint32, len(f.held)) }

func (f *frames) linesIn(saved []uint64) []uint64 { return saved[:len(f.held)] }

func (f *frames) save(to []uint64) []uint64 {
	to = append(to, f.held...)
	for _, ref := range f.last {
		to = append(to, uint64(ref))
	}
	return to
}

func (f *frames) load(from []uint64) {
	from = from[copy(f.held, from):]
	for i := range f.last {
		f.last[i] = uint32(from[i])
	}
}

func (f *frames) moved(from []uint64, m *motion) bool {
	to := int(m.turn) * f.ways
	for at := 0; at < len(f.held); at += f.ways {
		before, now := from[at:at+f.ways], f.held[to:to+f.ways]
		for w := f.ways - 1; w >= 0; w-- {
			if !m.movesTo(before[w], now[w]) || f.last != nil && from[len(f.held)+at+w] != uint64(f.last[to+w]) {
				return false
			}
		}
		if to += f.ways; to == len(f.held) {
			to = 0
		}
	}
	return true
}

func (f *frames) move(m *motion, times uint64) {
	turn := int(mulMod(m.turn, times, f.sets))
	f.spare = f.save(f.spare[:0])
	for s := range int(f.sets) {
		to := (s + turn) % int(f.sets)
		for w, line := range f.spare[s*f.ways : (s+1)*f.ways] {
			f.held[to*f.ways+w] = m.positionAfter(line, times)
			if f.last != nil {
				f.last[to*f.ways+w] = uint32(f.spare[len(f.held)+s*f.ways+w])
			}
		}
	}
}

// mulMod returns a × b modulo n.
func mulMod(a, b, n uint64) uint64 {
	hi, lo := bits.Mul64(a%n, b%n)
	return bits.Rem64(hi, lo, n)
}

// stacks is a cache with many ways. It has an LRU stack for each set.
type stacks struct {
	index
	all []stack
}

func newStacks(sets, ways uint64) *stacks {
	s := &stacks{index: newIndex(sets), all: make([]stack, sets)}
	for i := range s.all {
		s.all[i].init(int(ways))
	}
	return s
}

func (s *stacks) lines() int { return len(s.all) * s.all[0].most }

func (s *stacks) touch(all []access, t *tally) {
	for i := range all {
		a := &all[i]
		t.counts[a.at].accesses += t.weight
		k := &s.all[0]
		if len(s.all) > 1 {
			k = &s.all[s.set(a.line)]
		}
		if k.order[k.next-1] != a.line {
			k.moveToTop(a, t)
		} else {
			k.touchTop(a, t)
		}
	}
}

// touchTop accesses the most recently used line.
func (k *stack) touchTop(a *access, t *tally) {
	if t.depths != nil {
		t.depths[0] += t.weight
	}
	if k.last != nil {
		k.last[k.next-1] = a.ref
	}
}

// moveToTop makes a line the most recently used line. The line must not already be the most
// recently used line.
func (k *stack) moveToTop(a *access, t *tally) {
	at, slot := k.find(a.line)
	if at >= 0 {
		if t.depths != nil {
			t.depths[k.countNewer(at)] += t.weight
		}
		k.live[at/64] &^= 1 << (at % 64)
		k.values[slot] = int32(k.next)
	} else {
		t.counts[a.at].misses += t.weight
		if k.held == k.most {
			if stamp := k.drop(); k.last != nil {
				t.countEviction(a, k.last[stamp])
			}
			_, slot = k.find(a.line)
		}
		k.held++
		k.keys[slot], k.values[slot] = a.line, int32(k.next)
	}
	k.put(a)
}

func (s *stacks) track() {
	for i := range s.all {
		s.all[i].last = make([]uint32, len(s.all[i].order))
	}
}

func (s *stacks) linesIn(saved []uint64) []uint64 {
	if s.all[0].last == nil {
		return saved
	}
	return saved[:(len(saved)+len(s.all))/2]
}

func (s *stacks) save(to []uint64) []uint64 {
	for i := range s.all {
		k := &s.all[i]
		to = append(to, uint64(k.held))
		for at := k.tail; at < k.next; at++ {
			if k.isLive(at) {
				to = append(to, k.order[at])
			}
		}
	}
	for i := range s.all {
		k := &s.all[i]
		for at := k.tail; at < k.next && k.last != nil; at++ {
			if k.isLive(at) {
				to = append(to, uint64(k.last[at]))
			}
		}
	}
	return to
}

func (s *stacks) load(from []uint64) {
	refs := from[len(s.linesIn(from)):]
	for i := range s.all {
		k := &s.all[i]
		k.held = int(from[0])
		from = from[1:]
		clear(k.live)
		for at, line := range from[:k.held] {
			k.order[1+at] = line
			k.live[(1+at)/64] |= 1 << ((1 + at) % 64)
			if k.last != nil {
				k.last[1+at] = uint32(refs[at])
			}
		}
		from = from[k.held:]
		refs = refs[min(len(refs), k.held):]
		k.next, k.tail = 1+k.held, 1
		k.renumber()
	}
}

func (s *stacks) moved(from []uint64, m *motion) bool {
	refs := from[len(s.linesIn(from)):]
	to := int(m.turn)
	for range s.all {
		k := &s.all[to]
		held := int(from[0])
		if held != k.held || !k.equalsMoved(from[1:1+held], refs, m) {
			return false
		}
		from, refs = from[1+held:], refs[min(len(refs), held):]
		if to++; to == len(s.all) {
			to = 0
		}
	}
	return true
}

func (s *stacks) move(m *motion, times uint64) {
	if turn := int(mulMod(m.turn, times, s.sets)); turn != 0 {
		s.all = append(append([]stack(nil), s.all[len(s.all)-turn:]...), s.all[:len(s.all)-turn]...)
	}
	for i := range s.all {
		k := &s.all[i]
		for at := k.tail; at < k.next; at++ {
			if k.isLive(at) {
				k.order[at] = m.positionAfter(k.order[at], times)
			}
		}
		k.renumber()
	}
}

// stack is an LRU stack. Each use of a line gets the next stamp. The newest stamp of each line is
// live, and a hash table maps the line to this stamp. When all stamps have been used, the live
// stamps are renumbered.
type stack struct {
	most, held int
	order      []trace.Line // line of each stamp
	last       []uint32     // the last reference to the line of each stamp; nil if not recorded
	live       []uint64     // a bit for each stamp
	next       int          // the next stamp
	tail       int          // lower bound on all live stamps

	keys   []trace.Line // hash table with open addressing
	values []int32
	shift  uint
}

// isLive reports whether a stamp is the newest stamp of its line.
func (k *stack) isLive(stamp int) bool { return k.live[stamp/64]>>(stamp%64)&1 != 0 }

func (k *stack) init(most int) {
	k.most = most
	stamps := max(128, 4*most+64) &^ 63
	k.order = make([]trace.Line, stamps)
	k.live = make([]uint64, stamps/64)
	size := 1 << bits.Len(uint(4*most))
	k.keys, k.values = make([]trace.Line, size), make([]int32, size)
	k.shift = uint(64 - bits.Len(uint(size-1)))
	for i := range k.keys {
		k.keys[i] = noLine
	}
	k.order[0] = noLine // the bit of the newest stamp is not set in the bitmap "live"
	k.next, k.tail = 1, 1
}

// find returns the stamp of a line and its slot in the table. If the line has no stamp, it returns
// -1 and the slot where the line would be stored.
func (k *stack) find(line trace.Line) (stamp, slot int) {
	mask := len(k.keys) - 1
	for slot = int(line * 0x9e3779b97f4a7c15 >> k.shift); ; slot = (slot + 1) & mask {
		switch k.keys[slot] {
		case line:
			return int(k.values[slot]), slot
		case noLine:
			return -1, slot
		}
	}
}

// countNewer returns the number of live stamps that are newer than the given stamp.
func (k *stack) countNewer(stamp int) (n int) {
	first, last := stamp/64, (k.next-1)/64
	n = bits.OnesCount64(k.live[first] >> (stamp % 64) >> 1)
	for _, word := range k.live[first+1 : max(first, last)+1] {
		n += bits.OnesCount64(word)
	}
	return n
}

func (k *stack) put(a *access) {
	k.order[k.next] = a.line
	if k.last != nil {
		k.last[k.next] = a.ref
	}
	k.live[k.next/64] |= 1 << (k.next % 64)
	if k.next++; k.next == len(k.order) {
		k.renumber()
	}
}

// drop removes the least recently used line, and returns its stamp.
func (k *stack) drop() (stamp int) {
	word := k.tail / 64
	for k.live[word] == 0 {
		word++
	}
	stamp = 64*word + bits.TrailingZeros64(k.live[word])
	k.live[word] &= k.live[word] - 1
	k.tail = stamp + 1
	k.held--
	k.remove(k.order[stamp])
	return stamp
}

// remove removes a line from the hash table, and moves later entries to close the gap.
func (k *stack) remove(line trace.Line) {
	mask := len(k.keys) - 1
	_, gap := k.find(line)
	for slot := (gap + 1) & mask; k.keys[slot] != noLine; slot = (slot + 1) & mask {
		home := int(k.keys[slot] * 0x9e3779b97f4a7c15 >> k.shift)
		if (slot-home)&mask >= (slot-gap)&mask {
			k.keys[gap], k.values[gap] = k.keys[slot], k.values[slot]
			gap = slot
		}
	}
	k.keys[gap] = noLine
}

// renumber renumbers the live stamps, and rebuilds the table.
func (k *stack) renumber() {
	to := 1
	for at := k.tail; at < k.next; at++ {
		if k.isLive(at) {
			k.order[to] = k.order[at]
			if k.last != nil {
				k.last[to] = k.last[at]
			}
			to++
		}
	}
	clear(k.live)
	for i := range k.keys {
		k.keys[i] = noLine
	}
	for at := 1; at < to; at++ {
		k.live[at/64] |= 1 << (at % 64)
		_, slot := k.find(k.order[at])
		k.keys[slot], k.values[slot] = k.order[at], int32(at)
	}
	k.next, k.tail = to, 1
	if to == 1 {
		k.order[0] = noLine
	}
}

// equalsMoved reports whether the stack contains exactly the saved lines after the motion m, with the
// same last references. The first saved line is the least recently used line.
func (k *stack) equalsMoved(from, refs []uint64, m *motion) bool {
	i := 0
	for at := k.tail; at < k.next; at++ {
		if k.isLive(at) {
			if !m.movesTo(from[i], k.order[at]) || k.last != nil && refs[i] != uint64(k.last[at]) {
				return false
			}
			i++
		}
	}
	return true
}
