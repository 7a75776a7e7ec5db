package stack

// recency answers, for each number of sets from 2^1 on, how many lines of a set
// fell off the top array since a given fall, up to MaxWays. A set is the list of
// its last lines to fall: only the numbers of their falls, newest first.
//
// When a line falls again, it moves to the front of its list, unless it is there:
// then nothing changes, neither here nor with more sets, because whoever shares a
// set with it there shares one here too. So an entry may be older than its line's
// last fall. The lists are in order of the last falls all the same, and the number
// of entries newer than the last fall of x is the depth of x: a line that fell
// after x was not in front of x's set then, so it has moved since. For the same
// reason x's own entry is the first one that is not newer.
//
// A batch of visits goes through the lists of one number of sets, and what is not
// in front goes on to the next: the lists in use stay in the cache, and the loads
// of one visit do not wait for those of another.
type recency struct {
	visits  [visitRoom]visit
	pending int
	done    [visitRoom]uint64 // lanes of visits that go no further

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
	rest   []*page  // nil where no set has had a second line
	full   uint32   // in no set is a line whose last fall is before; 0 while a list is short
	visits int      // since full was found
}

type page [pageSets]list

// list is what is behind the front of a set, newest first; 0 ends a short one.
type list [MaxWays]uint32

const (
	pageSets  = 16
	nearLists = 10 // lists of up to 2^10 sets are near enough without touching
)

// reset empties all lists.
func (r *recency) reset() {
	r.pending = 0
	for a := 1; a <= setBits; a++ {
		r.lists[a] = lists{front: make([]uint32, 1<<a), rest: make([]*page, (1<<a+pageSets-1)/pageSets)}
	}
}

// add appends a visit.
func (r *recency) add(v visit) {
	r.visits[r.pending&(visitRoom-1)] = v
	if r.pending++; r.pending == visitRoom {
		r.settle()
	}
}

// settle takes the pending visits through all lists.
func (r *recency) settle() {
	visits := r.visits[:r.pending]
	r.pending = 0
	for a := 1; a <= setBits; a++ {
		r.lists[a].fill(len(visits))
		if a > nearLists {
			r.sink += r.lists[a].touch(visits)
		}
		stay, done := r.visit(a, visits)
		r.finish(a, r.done[:done])
		visits = visits[:stay]
	}
}

// touch reads what the visits will, so that the cache misses overlap.
func (l *lists) touch(visits []visit) (sink uint32) {
	for i := range visits {
		if visits[i].after < l.full && visits[i].now == 0 {
			continue
		}
		set := int(visits[i].line) & (len(l.front) - 1)
		if p := l.rest[set/pageSets]; p != nil {
			sink += p[set%pageSets][0] + p[set%pageSets][MaxWays-1]
		}
		sink += l.front[set]
	}
	return sink
}

// fill finds from which fall on lines may still be in a list, now and then. Looking
// through all lists takes a small part of the time of as many visits. In traces
// whose lines come back late most visits are before, and have nothing to search.
func (l *lists) fill(visits int) {
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
		oldest = min(oldest, p[set%pageSets][MaxWays-1])
	}
	if oldest != 0 {
		l.full = oldest + 1
	}
}

// visit takes visits through the lists of 2^a sets. Those that go on to more sets
// stay, in order; of the others it notes what is above in the top array.
func (r *recency) visit(a int, visits []visit) (stay, done int) {
	l, depths := &r.lists[a], &r.depths[a]
	front, rest, full, beyond := l.front, l.rest, l.full, uint64(0)
	for i := range visits {
		v := &visits[i]
		after, now, line, above := v.after, v.now, v.line, v.above
		next := &visits[stay&(visitRoom-1)]
		set := int(line) & (len(front) - 1)
		if after < full { // it is in no list
			next.after, next.now, next.line, next.above = after, now, line, above>>laneBits
			stay++
			if now == 0 {
				beyond++
				continue
			}
			rest[set/pageSets][set%pageSets].push(front[set])
			front[set] = now
			continue
		}
		newest := front[set]
		if newest < after {
			r.done[done&(visitRoom-1)] = above
			done++
			continue
		}
		next.after, next.now, next.line, next.above = after, now, line, above>>laneBits
		stay++
		p := rest[set/pageSets]
		if now == 0 {
			n := 1
			if p != nil {
				n += p[set%pageSets].newer(after)
			}
			depths[(n+int(above&laneMask))%depthRoom]++
			continue
		}
		front[set] = now
		if newest == 0 {
			continue // it is the first line of its set
		}
		if p == nil {
			p = new(page)
			rest[set/pageSets] = p
		}
		p[set%pageSets].insert(newest, after)
	}
	depths[MaxWays] += beyond
	return stay, done
}

// finish counts, from 2^a sets on, lines that nothing in their lists is newer
// than: only what is above them in the top array.
func (r *recency) finish(a int, above []uint64) {
	for _, lanes := range above {
		for b := a; lanes != 0; b++ {
			r.depths[b][lanes&laneMask]++
			lanes >>= laneBits
		}
	}
}

// push puts an entry in front and takes out the last one.
func (l *list) push(entry uint32) {
	copy(l[1:], l[:])
	l[0] = entry
}

// newer counts the entries from after on. Four are compared at a time without a
// branch, which would be hard to predict.
func (l *list) newer(after uint32) int {
	from := int64(after)
	for i := 0; i < MaxWays; i += 4 {
		four := (*[4]uint32)(l[i:])
		older := uint64(int64(four[0])-from)>>63 + uint64(int64(four[1])-from)>>63 +
			uint64(int64(four[2])-from)>>63 + uint64(int64(four[3])-from)>>63
		if older != 0 {
			return i + 4 - int(older)
		}
		if i == 0 && l[MaxWays-1] >= after {
			break // all are: a line that was not here for long
		}
	}
	return MaxWays
}

// insert puts an entry in front and takes out the first one that is older than
// after, or the last one, with conditional moves four at a time.
func (l *list) insert(entry, after uint32) {
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
		if i == 0 && l[MaxWays-1] >= after {
			copy(l[5:], l[4:])
			l[4] = entry
			return
		}
	}
}
