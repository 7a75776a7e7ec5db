package stack

// recency answers, for each number of sets from 2^1 on, how many lines of a set were moved to
// its front since a given move, up to MaxWays. A set is the list of its last lines to move:
// only the numbers of their moves, newest first.
//
// [Sets] decides what moves a line. Where the top array holds most accesses, it is a fall off
// the array: a hit costs nothing here, a miss counts one line and moves another. Where every
// line has a stamp, it is every access that is not on top, which counts and moves in one search.
//
// A moved line goes to the front of its list. If it is there already, nothing changes with more
// sets, because whoever shares a set with it there shares one here too. So an entry may be older
// than its line's last move. Still the lists are in the order of the last moves, and the number
// of entries newer than the last move of x is the depth of x: a line that moved after x was not
// in front of x's set then, so it has moved there. For the same reason x's own entry is the
// first one that is not newer.
//
// Only some numbers of sets have lists. The sets of the numbers between are combined from them,
// and their newer entries add up: a line in front of a kept set, which did not move with more
// sets, has its last move there, and with fewer sets nobody else moved in between.
//
// Pending visits go through the lists of one number of sets after the other, so that the lists
// in use stay in the cache, and the loads of different visits overlap.
type recency struct {
	visits   []visit  // pending, while the lists follow falls
	accesses []access // pending, while they follow accesses

	lists  [len(kept)]lists
	depths [setBits + 1][2 * depthRoom]uint64 // those of marked lines from depthRoom on

	sink uint32 // keeps touches from being optimised away
}

// visit asks how many lines of a set are newer than a line, or moves it to the front.
type visit struct {
	after uint32 // entries from this on are newer than the line; 1: the lists never had it
	now   uint32 // the number that moves it; 0: it counts
	line  uint32 // its last bits, or those and marked
	above uint64 // lines of the top array to count too, in lanes
}

// access moves a line to the front of its set, and counts how deep it was.
type access struct {
	after, now uint32 // as in visit
	line       uint32 // its last bits, or those and uncounted or marked
}

const (
	never     = 1       // in after: the lists never had the line
	uncounted = 1 << 31 // in an access: it moves its line only
	marked    = 1 << 30 // it counts apart

	visitRoom = 1024
	depthRoom = 64 // more than a list has entries and a lane counts, a power of two
	nearLists = 10 // lists of up to 2^10 sets are near enough without touching
	nearGroup = 12 // and of up to 2^12 those that are put together
	nearby    = 32 // accesses whose lists are touched at once
)

// kept are the numbers of sets, 2^4, 2^8, …, that lists are kept of: closer together where a line
// that comes back from a large footprint is still in a list, so that few are put together.
var kept = [...]int{4, 8, 12, 14, setBits}

func (r *recency) reset() {
	if r.visits == nil {
		r.visits, r.accesses = make([]visit, 0, visitRoom), make([]access, 0, visitRoom)
	}
	r.visits, r.accesses = r.visits[:0], r.accesses[:0]
	least := 1
	for k, most := range kept {
		r.lists[k] = makeLists(least, most)
		least = most + 1
	}
}

func (r *recency) visit(v visit) {
	if r.visits = append(r.visits, v); len(r.visits) == visitRoom {
		r.settle()
	}
}

func (r *recency) access(v access) {
	if r.accesses = append(r.accesses, v); len(r.accesses) == visitRoom {
		r.settle()
	}
}

// settle passes what is pending through all lists.
func (r *recency) settle() {
	visits := r.visits
	for k := range r.lists {
		l := &r.lists[k]
		r.sink += l.touchVisits(visits)
		visits = visits[:r.visitLists(l, visits)]
		for at := 0; at < len(r.accesses); at += nearby {
			r.accessLists(l, r.accesses[at:min(at+nearby, len(r.accesses))])
		}
	}
	r.visits, r.accesses = r.visits[:0], r.accesses[:0]
}

// touchVisits touches what visits will read, so that the cache misses overlap.
func (l *lists) touchVisits(visits []visit) (sink uint32) {
	if l.near() {
		return 0
	}
	for i := range visits {
		v := &visits[i]
		sink += l.touch(l.of(v.line), v.now == 0)
	}
	return sink
}

// visitLists visits the lists of one number of sets. Visits that continue to more sets stay.
func (r *recency) visitLists(l *lists, visits []visit) (stay int) {
	for i := range visits {
		v := &visits[i]
		goes := false
		if v.now == 0 {
			goes = r.count(l, v)
		} else {
			goes = l.move(l.of(v.line), v.after, v.now)
		}
		if goes {
			if stay != i {
				visits[stay] = *v
			}
			stay++
		}
	}
	return stay
}

// count counts the newer lines for one number of sets, and for the fewer ones that are combined
// from it. It reports whether there are any in the former.
func (r *recency) count(l *lists, v *visit) bool {
	a, place := l.most, l.of(v.line)
	p, lanes := l.pages[place/pageLists], v.above>>((a-1)*laneBits)
	n, apart := p[place%pageLists].newer(l.turn[place], v.after), apart(v.line)
	if n == 0 {
		r.finish(a, lanes, apart)
	} else {
		r.depths[a][(n+int(lanes&laneMask))%depthRoom+apart]++
	}
	all := n
	for b := a - 1; b >= l.least; b-- {
		all += l.beside(p, place, b, all, v.after)
		lanes := v.above >> ((b - 1) * laneBits)
		r.depths[b][min(all, MaxWays)+int(lanes&laneMask)+apart]++
	}
	return n > 0
}

// finish counts, from 2^a sets on, a line that nothing in its lists is newer than.
func (r *recency) finish(a int, lanes uint64, apart int) {
	for ; lanes != 0; a++ {
		r.depths[a][int(lanes&laneMask)+apart]++
		lanes >>= laneBits
	}
}

// apart returns where the depths of a line begin: 0, or depthRoom if it is marked.
func apart(line uint32) int { return int(line & marked / (marked / depthRoom)) }

func (l *lists) touchAccesses(accesses []access) (sink uint32) {
	if l.near() {
		return 0
	}
	for i := range accesses {
		sink += l.touch(l.of(accesses[i].line), true)
	}
	return sink
}

// accessLists makes accesses on the lists of one number of sets. It is a single loop without
// calls, because traces with long distances spend their time here.
func (r *recency) accessLists(l *lists, accesses []access) {
	r.sink += l.touchAccesses(accesses)
	var late [2]uint64 // those that are marked apart
	for i := range accesses {
		v := &accesses[i]
		place, after := l.of(v.line), v.after
		p, turn := l.pages[place/pageLists], l.turn[place]
		list := &p[place%pageLists]
		n := 0
		switch {
		case list[at(turn, half-1)] < after:
			n = list.toFront(turn, v.now, after)
		case list[at(turn, MaxWays-1)] >= after:
			l.push(p, place, v.now)
			late[apart(v.line)/depthRoom] += uint64(^v.line >> 31)
			continue
		default:
			n = list.newer(turn, after)
			list.insert(turn, n, v.now)
		}
		if v.line&uncounted != 0 {
			continue
		}
		apart := apart(v.line)
		for b := l.most; ; {
			r.depths[b][n%depthRoom+apart]++
			if b--; b < l.least {
				break
			}
			n = min(n+l.beside(p, place, b, n, after), MaxWays)
		}
	}
	for b := l.least; b <= l.most; b++ {
		r.depths[b][MaxWays] += late[0]
		r.depths[b][MaxWays+depthRoom] += late[1]
	}
}
