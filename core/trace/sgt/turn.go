package sgt

// The lanes of a reader are a binary heap by (ticket, thread).

type place struct {
	ticket uint64
	thread uint32
}

func (p place) before(other place) bool {
	return p.ticket < other.ticket || p.ticket == other.ticket && p.thread < other.thread
}

func (l *lane) place() place { return place{l.ticket, l.thread} }

// limit returns how far the first lane may go: to the place of the second, or to the floor if more chunks
// may come.
func (r *Reader) limit() place {
	limit := place{^uint64(0), ^uint32(0)}
	for _, l := range r.turn[min(1, len(r.turn)):min(3, len(r.turn))] {
		if p := l.place(); p.before(limit) {
			limit = p
		}
	}
	if r.ended == nil && r.floor <= limit.ticket {
		limit = place{r.floor - 1, ^uint32(0)}
	}
	return limit
}

// rise moves a lane up to its place in the heap.
func (r *Reader) rise(i int) {
	for i > 0 {
		above := (i - 1) / 2
		if !r.turn[i].place().before(r.turn[above].place()) {
			return
		}
		r.turn[i], r.turn[above] = r.turn[above], r.turn[i]
		i = above
	}
}

// sink moves a lane down to its place in the heap.
func (r *Reader) sink(i int) {
	for {
		first := i
		for below := 2*i + 1; below <= 2*i+2 && below < len(r.turn); below++ {
			if r.turn[below].place().before(r.turn[first].place()) {
				first = below
			}
		}
		if first == i {
			return
		}
		r.turn[i], r.turn[first] = r.turn[first], r.turn[i]
		i = first
	}
}
