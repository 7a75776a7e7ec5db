package stack

import "slices"

// recency counts the lines of a set, at most MaxWays, that moved to the front of the set since a
// given move. It counts for several numbers of sets, which are powers of two, beginning with 2.
// Each set is represented by a list of the numbers of its lines' last moves, newest first.
//
// [Sets] decides which events move a line. If most accesses hit in the top array, and many lines
// share few sets, a line moves when it falls off the array. The event that a line falls off the
// array is called a fall. A hit then requires no work in this type, and a miss counts the accessed
// line and moves the line that fell. Otherwise, every access moves the accessed line, and one
// search counts and moves the line. No list changes if the line was accessed last in its set, for
// the smallest number of sets, because it was then also accessed last in its set for all larger
// numbers of sets.
//
// A moved line goes to the front of its list. If the line is already at the front, nothing changes
// for larger numbers of sets, because lines that share a set among more sets also share a set among
// fewer sets. An entry may therefore be older than the last move of its line. Nevertheless, the
// lists are in the order of the last moves, and the depth of x is the number of entries that are
// newer than the last move of x. A line that moved after x was not at the front of x's set when it
// moved, so its entry was moved to the front. The entry of x is therefore also the first entry that
// is not newer than the last move of x.
//
// Only some numbers of sets have lists. A line that is in a list is also in the lists of all
// smaller numbers of sets. Each entry contains the last bits of its line, so a list also shows
// which newer lines share a finer set. For a number of sets without lists, a set consists of
// several sets with lists, and the depth is the sum of the positions in their lists. A line that is
// first in one of these lists made its last move in that list, and no other line of that set has
// moved since. One list is therefore sufficient for each number of sets with fewer than MaxWays
// newer lines. Only deeper lines need the list for the next larger number of sets, which is created
// when a list overflows. Before a list overflows, it contains every line of its set.
//
// All pending accesses are processed for one number of sets before the next number of sets. The
// lists in use then stay in the processor's cache, and the loads of different accesses overlap.
type recency struct {
	numbers SetNumbers
	least   int                 // 2^least is the smallest number of sets
	kept    []int               // there are lists for 2^kept[k] sets
	finer   [setBits + 1]uint64 // adding finer[n] increments the depths for more than 2^kept[0] sets, and at most 2^n sets

	visits   []visit                            // pending visits, if the lists follow falls
	accesses []access                           // pending accesses, if the lists follow accesses
	lists    []lists                            // the existing lists, in the order of kept
	depths   [setBits + 1][2 * depthRoom]uint64 // the depths of marked lines begin at index depthRoom

	sink uint64 // prevents the compiler from removing touches
}

// visit describes a visit to a set. It either counts the lines that are newer than a line, or moves
// the line to the front.
type visit struct {
	// entries with at least this number are newer than the line; 1: the line was never in the lists
	after uint32
	now   uint32 // number of the move; 0: the visit counts
	line  uint32 // the last bits of the line's number, and perhaps the flag marked
	above uint64 // number of lines of the top array to add to the count, in lanes
}

// access describes an access, which moves a line to the front of its set and counts the line's
// former depth.
type access struct {
	after uint32 // as in visit
	now   uint32 // the number of the move
	line  uint32 // the last bits of the line's number, and perhaps the flags uncounted or marked
	lanes uint64 // number of newer lines in the lanes of [recency.finer], after counting
}

const (
	never     = 1       // value of after if the line was never in the lists
	uncounted = 1 << 31 // flag in access.line: the access moves its line without being counted
	marked    = 1 << 30 // flag in line: the access is counted separately

	visitRoom = 1024
	depthRoom = 64 // a power of two, larger than the entries of a list plus the largest count of a lane
	nearLists = 10 // lists of up to 2^10 sets need no prefetching
	nearby    = 32 // number of accesses whose lists are touched at once

	fineBits = 5 // bits of a lane that counts fewer than MaxWays lines
	fineMask = 1<<fineBits - 1

	keptStep = 4
)

// count selects the numbers of sets that have lists. The smallest number and every fourth of the
// larger numbers have lists.
func (r *recency) count(numbers SetNumbers) {
	most := 0
	for a := setBits; a >= 1; a-- {
		if numbers>>a&1 != 0 {
			most, r.least = max(most, a), a
		}
	}
	r.numbers = numbers | 1
	if most == 0 { // create lists for 2 sets, whose counts are not used
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
	r.open()
}

// open creates the lists of the next number of sets.
func (r *recency) open() *lists {
	k := len(r.lists)
	r.lists = append(slices.Clip(r.lists), makeLists(r.leastOf(k), r.kept[k]))
	return &r.lists[k]
}

// leastOf returns the smallest number of sets that uses the lists with index k.
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

// settle passes pending visits through all lists.
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
			r.depths[b][MaxWays] += l.late[0]
			r.depths[b][MaxWays+depthRoom] += l.late[1]
		}
		l.late = [2]uint64{}
	}
	r.visits, r.accesses = r.visits[:0], r.accesses[:0]
}

// overflow creates the lists for the next larger number of sets before any list of index k loses an
// entry. It reports whether it created lists. New lists contain all entries that were added to the
// lists so far.
func (r *recency) overflow(k int) (made bool) {
	if k+1 < len(r.lists) || k+1 == len(r.kept) {
		return false
	}
	more := r.open()
	l := &r.lists[k]
	for i, p := range l.pages {
		if p != nil {
			p.copyTo(more, l.turn[i*pageLists:])
		}
	}
	return true
}

// touchVisits touches the memory that visits will read, so that the cache misses overlap.
func (l *lists) touchVisits(visits []visit) (sink uint64) {
	if l.near() {
		return 0
	}
	for i := range visits {
		sink += l.touch(l.of(visits[i].line))
	}
	return sink
}

// visitLists performs visits on the lists of index k. It moves the visits that must continue with
// more sets to the front of visits, and returns the number of these visits.
func (r *recency) visitLists(k int, visits []visit) (stay int) {
	l := &r.lists[k]
	for i := range visits {
		v := &visits[i]
		place, after := l.of(v.line), uint64(v.after)<<numberBit
		p, turn := l.pages[place/pageLists], l.turn[place]
		list := &p[place%pageLists]
		newest, full := &list[at(turn, 0)], list[at(turn, MaxWays-1)] >= after
		switch {
		case v.now == 0 && !full:
			n, lanes := list.above(turn, v.line, after, &r.finer)
			r.countAt(l, p, place, n, lanes, v)
			continue
		case v.now == 0:
			l.late[apart(v.line)/depthRoom]++
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

// countAt counts a visit to a line that is older than n entries of the list, where n is below
// MaxWays. For each finer number of sets, lanes contains the number of newer entries in the line's
// set.
func (r *recency) countAt(l *lists, p *listPage, place uint32, n int, lanes uint64, v *visit) {
	a, above, after, apart := l.most, v.above, uint64(v.after)<<numberBit, apart(v.line)
	r.depths[a][n+int(above>>((a-1)*laneBits)&laneMask)+apart]++
	for b := a - 1; b >= l.least; b-- {
		n = min(n+l.beside(p, place, b, n, after), MaxWays)
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

// apart returns the index at which the depths of a line begin: depthRoom if the line is marked, and
// otherwise 0.
func apart(line uint32) int { return int(line & marked / (marked / depthRoom)) }

func (l *lists) touchAccesses(accesses []access) (sink uint64) {
	if l.near() {
		return 0
	}
	for i := range accesses {
		sink += l.touch(l.of(accesses[i].line))
	}
	return sink
}

// accessLists performs accesses on the lists of index k. It moves the accesses that must continue
// with more sets to the front of accesses, and returns the number of these accesses.
func (r *recency) accessLists(k int, accesses []access) (stay int) {
	l := &r.lists[k]
	lane := max(l.most-r.kept[0]-1, 0) * fineBits
	next := 64 // lane of the smallest number of sets that uses the next lists
	if k+1 < len(r.kept) {
		next = (r.leastOf(k+1) - r.kept[0] - 1) * fineBits
	}
	for i := range accesses {
		if i%nearby == 0 {
			r.sink += l.touchAccesses(accesses[i:min(i+nearby, len(accesses))])
		}
		v := accesses[i]
		place, after := l.of(v.line), uint64(v.after)<<numberBit
		p, turn := l.pages[place/pageLists], l.turn[place]
		list, entry := &p[place%pageLists], entryOf(v.now, v.line)
		switch newest := &list[at(turn, 0)]; {
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
		case list[at(turn, MaxWays-1)] >= after:
			if r.overflow(k) {
				stay, l = 0, &r.lists[k]
			}
			l.push(p, place, entry)
			l.late[apart(v.line)/depthRoom] += uint64(^v.line >> 31)
		case v.lanes != 0:
			list.insert(turn, int(v.lanes>>lane&fineMask), entry)
		case v.line&uncounted != 0:
			list.insert(turn, list.newer(turn, after), entry)
		default:
			n := 0
			n, v.lanes = list.toFront(turn, entry, after, &r.finer)
			r.countAt(l, p, place, n, v.lanes, &visit{after: v.after, line: v.line})
			if v.lanes>>next&fineMask == 0 {
				continue // for all larger numbers of sets, the line is at the front
			}
			v.line |= uncounted
		}
		accesses[stay] = v
		stay++
	}
	return stay
}
