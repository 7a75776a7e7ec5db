package stack

// recency answers, for each number of sets from 2^1 on, how many lines of a set
// fell off the top array since a given fall, up to MaxWays. A set is the list of
// its last lines to fall: only the numbers of their falls, newest first.
//
// When a line falls again, it moves to the front of its list. Where it is there
// already, nothing changes with more sets, because whoever shares a set with it
// there shares one here too. So an entry may be older than its line's last fall.
// The lists are in order of the last falls all the same, and the number of entries
// newer than the last fall of x is the depth of x: a line that fell after x was
// not in front of x's set then, so it has moved since. For the same reason x's own
// entry is the first one that is not newer.
//
// Lists are kept of 2^1, 2^4, … 2^16 sets. The sets of the numbers between are
// some of these put together, and what is newer in them adds up: a line that was
// in front of a set that is kept, and did not move with more sets, has its last
// fall noted there, and with fewer sets nobody else fell in between.
//
// A batch of visits goes through the lists of one number of sets, and what is not
// in front goes on to the next: the lists in use stay in the cache, and the loads
// of one visit do not wait for those of another.
//
// A line that comes back late is in no list of few sets. From which age on that
// is so is known for all lists of a number of sets at once, so that such a visit
// starts at the first number of sets where it may find something, or only puts its
// line in front.
type recency struct {
	pending int                  // visits that were added
	visits  []visit              // of them, those that start with 2^1 sets
	late    [setBits + 1][]visit // and those that start with more
	spare   []visit              // for merging them
	skipped [setBits + 1]uint64  // visits that start late, by the last number of sets before

	lists  [setBits + 1]lists // by number of sets
	depths [setBits + 1][depthRoom]uint64

	sink uint32 // keeps touches from being optimised away
}

// visit asks how many lines of a set are newer than a line, or moves it to the
// front.
type visit struct {
	after uint32 // entries from this on are newer than the line; 0: it never fell
	now   uint32 // the fall that moves it; 0: it counts
	line  uint32 // its last bits
	order uint32 // among the pending visits
	above uint64 // lines of the top array to count too, in lanes
}

const (
	visitRoom = 1024
	depthRoom = 64 // more than a list has entries and a lane counts
)

// lists are those of one number of sets: the fronts, which most visits see alone,
// side by side, and what is behind them in pages, so that short traces touch
// little memory.
type lists struct {
	front  []uint32 // 0 where there is none
	room   []uint8  // by set: where in its list the entries begin
	rest   []*page  // nil where no set has had a second line
	full   uint32   // in no set, nor with fewer sets, is a line whose last fall is before
	visits int      // since full was found
}

type page [pageSets]list

// list is what is behind the front of a set: MaxWays entries, newest first; 0
// ends a short one. There is room in front of them, so that putting one there is
// a store most of the time.
type list [listRoom + MaxWays]uint32

const (
	keptEvery = 3                    // lists are kept of 2^1, 2^4, … 2^16 sets
	siblings  = 1 << (keptEvery - 1) // lists that make one of the fewest sets that are not kept
	pageSets  = 16
	listRoom  = 8
	nearLists = 10 // lists of up to 2^10 sets are near enough without touching
)

// entries gives those that begin at room.
func (l *list) entries(room uint8) *[MaxWays]uint32 {
	return (*[MaxWays]uint32)(l[min(room, listRoom):])
}

// reset empties all lists.
func (r *recency) reset() {
	r.clear()
	if r.visits == nil {
		r.visits, r.spare = make([]visit, 0, visitRoom), make([]visit, 0, visitRoom)
	}
	for a := 1; a <= setBits; a += keptEvery {
		r.lists[a] = lists{front: make([]uint32, 1<<a), room: make([]uint8, 1<<a), rest: make([]*page, (1<<a+pageSets-1)/pageSets)}
	}
}

// clear forgets the pending visits.
func (r *recency) clear() {
	r.pending, r.visits = 0, r.visits[:0]
	for a := range r.late {
		r.late[a] = r.late[a][:0]
	}
}

// add appends a visit.
func (r *recency) add(v visit) {
	v.order = uint32(r.pending)
	if v.now == 0 && v.after < r.lists[1].full {
		r.addLate(v)
	} else {
		r.visits = append(r.visits, v)
	}
	if r.pending++; r.pending == visitRoom {
		r.settle()
	}
}

// addLate appends a visit that counts and finds nothing in 2^1 sets.
func (r *recency) addLate(v visit) {
	a := 1
	for a < setBits && v.after < r.lists[a+keptEvery].full {
		a += keptEvery
	}
	r.skipped[a]++
	if a += keptEvery; a > setBits {
		return
	}
	if r.late[a] == nil {
		r.late[a] = make([]visit, 0, visitRoom)
	}
	r.late[a] = append(r.late[a], v)
}

// settle takes the pending visits through all lists.
func (r *recency) settle() {
	visits := r.visits
	for a := 1; a <= setBits; a += keptEvery {
		r.fill(a, len(visits))
		if late := r.late[a]; len(late) > 0 {
			merged := merge(r.spare, visits, late)
			r.visits, r.spare, visits = r.spare, r.visits, merged
		}
		if a > nearLists {
			r.sink += r.lists[a].touch(visits)
		}
		visits = visits[:r.visit(a, visits)]
	}
	skipped := uint64(0)
	for a := setBits; a > 0; a-- {
		skipped += r.skipped[a]
		r.depths[a][MaxWays] += skipped
		r.skipped[a] = 0
	}
	r.clear()
}

// merge puts two lists of visits in order, in the memory of to.
func merge(to, a, b []visit) []visit {
	to = to[:len(a)+len(b)]
	for i := range to {
		if len(b) == 0 || len(a) > 0 && a[0].order < b[0].order {
			to[i], a = a[0], a[1:]
		} else {
			to[i], b = b[0], b[1:]
		}
	}
	return to
}

// touch reads what the visits will, so that the cache misses overlap.
func (l *lists) touch(visits []visit) (sink uint32) {
	quarter := len(l.front) / siblings
	for i := range visits {
		v := &visits[i]
		set := int(v.line) & (len(l.front) - 1)
		if v.now != 0 {
			sink += l.touchList(set, MaxWays-1)
			continue
		}
		for k := 0; k < len(l.front); k += quarter {
			sink += l.touchList(set^k, MaxWays/2)
		}
	}
	return sink
}

func (l *lists) touchList(set, deep int) uint32 {
	if p := l.rest[set/pageSets]; p != nil {
		e := p[set%pageSets].entries(l.room[set])
		return l.front[set] + e[0] + e[deep&(MaxWays-1)]
	}
	return l.front[set]
}

// fill finds from which fall on lines may still be in a list, now and then. Looking
// through all lists takes a small part of the time of as many visits. In traces
// whose lines come back late most visits are before, and have nothing to search.
func (r *recency) fill(a, visits int) {
	l := &r.lists[a]
	if l.visits += visits; l.visits < 8*len(l.front) {
		return
	}
	l.visits = 0
	oldest := ^uint32(0)
	for set := range l.front {
		p := l.rest[set/pageSets]
		if p == nil {
			return
		}
		oldest = min(oldest, p[set%pageSets].entries(l.room[set])[MaxWays-1])
	}
	if oldest == 0 {
		return
	}
	// What more sets do not hold, fewer do not either.
	for ; a > 0; a -= keptEvery {
		r.lists[a].full = max(r.lists[a].full, oldest+1)
	}
}

// visit takes visits through the lists of 2^a sets. Those that go on to more sets
// stay, in order.
func (r *recency) visit(a int, visits []visit) (stay int) {
	l, full := &r.lists[a], r.lists[a].full
	for i := range visits {
		v := visits[i]
		goes := true
		switch {
		case v.now == 0:
			goes = r.count(a, &v)
		case v.after < full:
			l.put(int(v.line)&(len(l.front)-1), v.now)
		default:
			goes = l.move(int(v.line)&(len(l.front)-1), v.after, v.now)
		}
		visits[stay&(visitRoom-1)] = v
		if goes {
			stay++
		}
	}
	return stay
}

// put moves a line to the front of a full list that does not have it.
func (l *lists) put(set int, now uint32) {
	l.room[set] = l.rest[set/pageSets][set%pageSets].push(l.room[set], l.front[set])
	l.front[set] = now
}

// move moves a line to the front. It tells whether it was not there.
func (l *lists) move(set int, after, now uint32) bool {
	newest := l.front[set]
	l.front[set] = now
	if newest < after && newest != 0 {
		return false
	}
	if newest == 0 {
		return true // it is the first line of its set
	}
	p := l.rest[set/pageSets]
	if p == nil {
		p = new(page)
		l.rest[set/pageSets] = p
	}
	list, room := &p[set%pageSets], l.room[set]
	if e := list.entries(room); e[MaxWays-1] >= after {
		l.room[set] = list.push(room, newest)
	} else {
		insert(e, newest, after)
	}
	return true
}

// newer is the number of lines of a set from a fall on.
func (l *lists) newer(set int, after uint32) int {
	if l.front[set] < after {
		return 0
	}
	if p := l.rest[set/pageSets]; p != nil {
		return 1 + newer(p[set%pageSets].entries(l.room[set]), after)
	}
	return 1
}

// count counts the lines that are newer in 2^a sets and in the fewer ones whose
// lists are not kept: their sets are several of 2^a put together. It tells
// whether there are any in 2^a sets.
func (r *recency) count(a int, v *visit) bool {
	l, set := &r.lists[a], int(v.line)&(1<<a-1)
	lanes := v.above >> ((a - 1) * laneBits)
	n := l.newer(set, v.after)
	if n == 0 {
		r.finish(a, lanes)
	} else {
		r.depths[a][(n+int(lanes&laneMask))%depthRoom]++
	}
	all := n
	for b := a - 1; b > 0 && b > a-keptEvery; b-- {
		for k := 1 << b; k < 1<<a && all < MaxWays; k += 2 << b {
			all += l.newer(set^k, v.after)
		}
		lanes := v.above >> ((b - 1) * laneBits)
		r.depths[b][min(all, MaxWays)+int(lanes&laneMask)]++
	}
	return n > 0
}

// finish counts, from 2^a sets on, a line that nothing in its lists is newer
// than: only what is above it in the top array.
func (r *recency) finish(a int, lanes uint64) {
	for ; lanes != 0; a++ {
		r.depths[a][lanes&laneMask]++
		lanes >>= laneBits
	}
}

// push puts an entry in front of those that begin at room, takes out the last
// one, and gives where they begin now.
func (l *list) push(room uint8, entry uint32) uint8 {
	if room == 0 {
		copy(l[listRoom+1:], l[:MaxWays-1])
		room = listRoom + 1
	}
	room--
	l[min(room, listRoom)] = entry
	return room
}

// newer counts the entries from after on: among the first four, or by halves,
// without a branch, which would be hard to predict.
func newer(l *[MaxWays]uint32, after uint32) int {
	if l[3] < after {
		n := 0
		if l[0] >= after {
			n = 1
		}
		if l[1] >= after {
			n = 2
		}
		if l[2] >= after {
			n = 3
		}
		return n
	}
	if l[MaxWays-1] >= after {
		return MaxWays
	}
	n := 0
	for half := MaxWays / 2; half > 0; half /= 2 {
		m := n + half
		if l[(m-1)&(MaxWays-1)] < after {
			m = n
		}
		n = m
	}
	return n
}

// insert puts an entry in front and takes out the first one that is older than
// after, which is there, with conditional moves four at a time.
func insert(l *[MaxWays]uint32, entry, after uint32) {
	for i := 0; i < MaxWays; i += 4 {
		four := (*[4]uint32)(l[i:])
		a, b, c, d := four[0], four[1], four[2], four[3]
		last := d
		if c >= after {
			d = c
		}
		if b >= after {
			c = b
		}
		if a >= after {
			b = a
		}
		four[0], four[1], four[2], four[3] = entry, b, c, d
		if last < after {
			return
		}
		entry = last
	}
}
