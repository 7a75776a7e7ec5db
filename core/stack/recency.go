package stack

import "slices"

// recency counts how many lines have moved to the front of a set since a given move, up to MaxWays.
// recency counts for several numbers of sets, which are powers of two and at least 2. For each set,
// a list contains the number of the last move of each line, newest first.
//
// [Sets] decides which events move a line. If most accesses hit in the top array, and many lines
// share few sets, a line moves when it falls off the array. Such an event is called a fall, and the
// lists are said to follow falls. In this case, a hit requires no work in this type. A miss counts
// the depth of the accessed line, and moves the line that falls off. Otherwise, every access moves
// the accessed line (the lists follow accesses), and one search counts and moves the line. If the
// line is the most recently used line of its set for the smallest number of sets, no list changes,
// because it is then also the most recently used line of its set for all larger numbers of sets.
//
// A line that moves is inserted at the front of its list. If the line is already at the front, the
// lists for larger numbers of sets are not visited, because the line is at the front of these
// lists, too. An entry may therefore be older than the last move of its line. Nevertheless, the
// lists are in the order of the last moves, and the depth of a line x is the number of entries that
// are newer than the last move of x. If a line y of the set moved after x had moved, y was not at
// the front when it moved, so the entry of y was moved to the front. The entry of x is therefore
// also the first entry that is not newer than the last move of x.
//
// Only some numbers of sets have lists. A line that is in a list is also in the lists of all
// smaller numbers of sets. Each entry contains the last bits of its line number, so a list also
// shows which of the newer lines share a set with a line if there are more sets. If a number of
// sets has no lists, each of its sets consists of several sets with lists, and the depth is the sum
// of the positions in their lists. If a line is first in one of these lists, no other line of its
// set has moved since the move that its entry records. As long as fewer than MaxWays lines of a
// list are newer than a line, this list is sufficient to count the line for all larger numbers of
// sets. Only deeper lines need the list for the next larger number of sets, which is created when a
// list overflows. Before a list overflows, it contains every line of its set.
//
// All pending accesses are processed for one number of sets before any access is processed for
// the next number of sets. The lists for this number of sets then stay in the processor's
// cache, and the loads of different accesses overlap.
type recency struct {
	numbers SetNumbers
	least   int                 // binary logarithm of the smallest number of sets
	kept    []int               // the numbers of sets that have lists: 2^kept[k]
	finer   [setBits + 1]uint64 // adding finer[n] to a word of lanes increments the depths for 2^(kept[0]+1) to 2^n sets

	visits   []visit                            // pending visits, if the lists follow falls
	accesses []access                           // pending accesses, if the lists follow accesses
	lists    []lists                            // the existing lists, in the order of the slice "kept"
	depths   [setBits + 1][2 * depthRoom]uint64 // the counts of marked lines begin at index depthRoom

	sink uint64 // prevents the compiler from removing loads that only prefetch
}

// visit describes a visit to a set, which either counts the lines that are newer than a line, or
// moves the line to the front.
type visit struct {
	// entries with this number or a higher number are newer than the line; the constant "never" if
	// the line was never in the lists
	after uint32
	now   uint32 // number of the move; 0 if the visit counts newer lines
	line  uint32 // the last bits of the line number, optionally with the flag "marked"
	above uint64 // number of lines in the top array that must be added to the count, in lanes
}

// access describes an access, which moves a line to the front of its set and counts the line's
// former depth.
type access struct {
	after uint32 // as in the type "visit"
	now   uint32 // number of the move
	line  uint32 // the last bits of the line number, optionally with the flag "uncounted" or "marked"
	lanes uint64 // numbers of newer lines in the lanes of [recency.finer]; 0 until they have been counted
}

const (
	never     = 1       // value of the field "after" if the line was never in the lists
	uncounted = 1 << 31 // flag in access.line: the access moves its line, but is not counted
	marked    = 1 << 30 // flag in visit.line and access.line: the access is counted separately

	visitRoom   = 1024
	depthRoom   = 64 // a power of two, larger than the entries of a list plus the largest count of a lane
	cachedLists = 10 // the lists for up to 2^10 sets need no prefetching
	touchBatch  = 32 // number of accesses whose lists are prefetched together

	fineBits = 5 // number of bits in a lane that counts fewer than MaxWays lines
	fineMask = 1<<fineBits - 1

	keptStep = 4
)

// selectLists selects the numbers of sets that have lists. The first selected number is the
// smallest number of sets, but at least the largest number of sets divided by 2^12. Of the larger
// numbers, every fourth is selected.
func (r *recency) selectLists(numbers SetNumbers) {
	most := 0
	for a := setBits; a >= 1; a-- {
		if numbers>>a&1 != 0 {
			most, r.least = max(most, a), a
		}
	}
	r.numbers = numbers | 1
	if most == 0 { // create lists for two sets, although their counts are not used
		most, r.least = 1, 1
	}
	r.kept = append(r.kept[:0], max(r.least, most-64/fineBits))
	for a := r.kept[0]; a < most; {
		last := min(a+keptStep, most)
		for a++; numbers>>a&1 == 0; a++ {
		}
		for last = max(last, a); numbers>>last&1 == 0; last-- {
		}
		r.kept = append(r.kept, last)
		a = last
	}
	for n := r.kept[0] + 1; n <= setBits; n++ {
		r.finer[n] = r.finer[n-1]
		if n <= most {
			r.finer[n] |= 1 << ((n - r.kept[0] - 1) * fineBits)
		}
	}
}

func (r *recency) reset() {
	if r.visits == nil {
		r.visits, r.accesses = make([]visit, 0, visitRoom), make([]access, 0, visitRoom)
	}
	r.visits, r.accesses, r.lists = r.visits[:0], r.accesses[:0], nil
	r.createLists()
}

// createLists creates the lists for the next larger of the numbers of sets for which lists are kept.
func (r *recency) createLists() *lists {
	k := len(r.lists)
	r.lists = append(slices.Clip(r.lists), makeLists(r.leastOf(k), r.kept[k]))
	return &r.lists[k]
}

// leastOf returns the binary logarithm of the smallest number of sets whose depths are computed
// from lists[k].
func (r *recency) leastOf(k int) int {
	if k == 0 {
		return r.least
	}
	least := r.kept[k-1] + 1
	for r.numbers>>least&1 == 0 {
		least++
	}
	return least
}

func (r *recency) visit(v visit) {
	if r.numbers == 1 {
		return
	}
	if r.visits = append(r.visits, v); len(r.visits) == visitRoom {
		r.settle()
	}
}

func (r *recency) access(v access) {
	if r.numbers == 1 {
		return
	}
	if r.accesses = append(r.accesses, v); len(r.accesses) == visitRoom {
		r.settle()
	}
}

// settle performs all pending visits and accesses.
func (r *recency) settle() {
	visits, accesses := r.visits, r.accesses
	for k := 0; k < len(r.lists); k++ {
		if len(visits) > 0 {
			r.sink += r.lists[k].touchVisits(visits)
			visits = visits[:r.visitLists(k, visits)]
		}
		if len(accesses) > 0 {
			accesses = accesses[:r.accessLists(k, accesses)]
		}
		l := &r.lists[k]
		for b := l.least; b <= l.most; b++ {
			r.depths[b][MaxWays] += l.deeper[0]
			r.depths[b][MaxWays+depthRoom] += l.deeper[1]
		}
		l.deeper = [2]uint64{}
	}
	r.visits, r.accesses = r.visits[:0], r.accesses[:0]
}

// overflow creates lists[k+1] before a list of lists[k] first loses an entry, and reports whether
// it created lists[k+1]. The new lists contain all entries that have been added to lists[k] so far.
func (r *recency) overflow(k int) (made bool) {
	if k+1 < len(r.lists) || k+1 == len(r.kept) {
		return false
	}
	more := r.createLists()
	l := &r.lists[k]
	for i, p := range l.pages {
		if p != nil {
			p.copyTo(more, l.turn[i*pageLists:])
		}
	}
	return true
}

// touchVisits loads the memory that visits will read, so that the cache misses overlap.
func (l *lists) touchVisits(visits []visit) (sink uint64) {
	if l.inCache() {
		return 0
	}
	for i := range visits {
		sink += l.touch(l.index(visits[i].line))
	}
	return sink
}

// visitLists performs visits to lists[k]. visitLists moves the visits that must continue with
// lists[k+1] to the front of the slice, and returns their number.
func (r *recency) visitLists(k int, visits []visit) (stay int) {
	l := &r.lists[k]
	for i := range visits {
		v := &visits[i]
		place, after := l.index(v.line), uint64(v.after)<<numberBit
		p, turn := l.pages[place/pageLists], l.turn[place]
		list := &p[place%pageLists]
		newest, full := &list[slot(turn, 0)], list[slot(turn, MaxWays-1)] >= after
		switch {
		case v.now == 0 && !full:
			n, lanes := list.countNewer(turn, v.line, after, &r.finer)
			r.countAt(l, p, place, n, lanes, v)
			continue
		case v.now == 0:
			l.deeper[depthOffset(v.line)/depthRoom]++
		case *newest < after:
			first := *newest == 0
			*newest = entryOf(v.now, v.line)
			if !first {
				continue
			}
		case full:
			if r.overflow(k) {
				stay, l = 0, &r.lists[k]
			}
			l.push(p, place, entryOf(v.now, v.line))
		default:
			list.insert(turn, list.newer(turn, after), entryOf(v.now, v.line))
		}
		if stay != i {
			visits[stay] = *v
		}
		stay++
	}
	return stay
}

// countAt counts the depths of a line. In the line's list, n entries are newer than the line, and n
// is less than MaxWays. The parameter "lanes" contains the number of newer entries in the line's
// set for each larger number of sets.
func (r *recency) countAt(l *lists, p *listPage, place uint32, n int, lanes uint64, v *visit) {
	a, above, after, apart := l.most, v.above, uint64(v.after)<<numberBit, depthOffset(v.line)
	r.depths[a][n+int(above>>((a-1)*laneBits)&laneMask)+apart]++
	for b := a - 1; b >= l.least; b-- {
		n = min(n+l.newerInSiblings(p, place, b, n, after), MaxWays)
		r.depths[b][n+int(above>>((b-1)*laneBits)&laneMask)+apart]++
	}
	lanes >>= (a - r.kept[0]) * fineBits
	above >>= a * laneBits
	for a++; lanes|above != 0; a++ {
		r.depths[a][int(lanes&fineMask)+int(above&laneMask)+apart]++
		lanes >>= fineBits
		above >>= laneBits
	}
}

// depthOffset returns the index in recency.depths at which the counts for a line begin: depthRoom
// if the line is marked, and otherwise 0.
func depthOffset(line uint32) int { return int(line & marked / (marked / depthRoom)) }

func (l *lists) touchAccesses(accesses []access) (sink uint64) {
	if l.inCache() {
		return 0
	}
	for i := range accesses {
		sink += l.touch(l.index(accesses[i].line))
	}
	return sink
}

// accessLists performs accesses to lists[k]. accessLists moves the accesses that must continue with
// lists[k+1] to the front of the slice, and returns their number.
func (r *recency) accessLists(k int, accesses []access) (stay int) {
	l := &r.lists[k]
	lane := max(l.most-r.kept[0]-1, 0) * fineBits
	next := 64 // position of the lane for the smallest number of sets that uses lists[k+1]
	if k+1 < len(r.kept) {
		next = (r.leastOf(k+1) - r.kept[0] - 1) * fineBits
	}
	for i := range accesses {
		if i%touchBatch == 0 {
			r.sink += l.touchAccesses(accesses[i:min(i+touchBatch, len(accesses))])
		}
		v := accesses[i]
		place, after := l.index(v.line), uint64(v.after)<<numberBit
		p, turn := l.pages[place/pageLists], l.turn[place]
		list, entry := &p[place%pageLists], entryOf(v.now, v.line)
		switch newest := &list[slot(turn, 0)]; {
		case *newest < after:
			first := *newest == 0
			*newest = entry
			if v.line&uncounted == 0 {
				r.countAt(l, p, place, 0, 0, &visit{after: v.after, line: v.line})
				v.line |= uncounted
			}
			if !first {
				continue
			}
		case list[slot(turn, MaxWays-1)] >= after:
			if r.overflow(k) {
				stay, l = 0, &r.lists[k]
			}
			l.push(p, place, entry)
			l.deeper[depthOffset(v.line)/depthRoom] += uint64(^v.line >> 31)
		case v.lanes != 0:
			list.insert(turn, int(v.lanes>>lane&fineMask), entry)
		case v.line&uncounted != 0:
			list.insert(turn, list.newer(turn, after), entry)
		default:
			n := 0
			n, v.lanes = list.toFront(turn, entry, after, &r.finer)
			r.countAt(l, p, place, n, v.lanes, &visit{after: v.after, line: v.line})
			if v.lanes>>next&fineMask == 0 {
				continue // the line is at the front for all larger numbers of sets
			}
			v.line |= uncounted
		}
		accesses[stay] = v
		stay++
	}
	return stay
}
