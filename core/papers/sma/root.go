package sma

import (
	"container/list"
	"math"
)

// held is an LRU cache of lines, which serves as the context of the root (thesis, Algorithm 1). The
// root's context consists of lines, because a tree may have very many top-level nodes, most of
// which are single accesses to one line.
type held struct {
	geometry
	at   map[uint64]*list.Element // entry of each line that has been used; nil if the line was evicted
	sets map[uint64]*list.List    // lines by set, most recently used first
}

func newHeld(g geometry) *held {
	return &held{geometry: g, at: map[uint64]*list.Element{}, sets: map[uint64]*list.List{}}
}

// use accesses a line, and reports whether the line was in the cache, and whether the line had been
// used before.
func (h *held) use(line uint64) (hit, known bool) {
	number := line % uint64(h.Sets)
	set := h.sets[number]
	if set == nil {
		set = list.New()
		h.sets[number] = set
	}
	e, known := h.at[line]
	switch {
	case e != nil:
		set.MoveToFront(e)
		return true, true
	case set.Len() < int(h.Ways):
		e = set.PushFront(line)
	default:
		e = set.Back()
		h.at[e.Value.(uint64)] = nil
		e.Value = line
		set.MoveToFront(e)
	}
	h.at[line] = e
	return false, known
}

// mostLines is the maximum number of lines of an array that are tracked individually. Large caches
// have a higher limit.
const mostLines = 1 << 10

// linesAt lists an array's lines in the order of their addresses. If the array has more than four
// times as many lines as the cache, linesAt lists only its last lines.
func (a *analysis) linesAt(s *array, list []uint64) []uint64 {
	most := uint64(max(4*a.cache.lines(), mostLines))
	in := s.span.in(a.cache.LineBytes)
	if !s.print.run {
		list = a.sectionLines(s, most, list)
		if len(list) > 0 {
			return list
		}
	}
	from := in.lo
	if in.hi-in.lo >= most {
		from = in.hi - most + 1
	}
	for line := from; ; line++ {
		list = append(list, line)
		if line == in.hi {
			return list
		}
	}
}

// sectionLines lists the lines of an array's sections, unless there are too many.
func (a *analysis) sectionLines(s *array, most uint64, list []uint64) []uint64 {
	all := 0.
	for i := range s.sections {
		n := math.Ceil(s.sections[i].run/float64(a.cache.LineBytes)) + 1
		for _, d := range s.sections[i].dims {
			n *= math.Ceil(d.trips)
		}
		all += n
	}
	if all > float64(most) {
		return list
	}
	line := uint64(a.cache.LineBytes)
	for i := range s.sections {
		s := &s.sections[i]
		s.each(len(s.dims)-1, s.span.lo, func(at uint64) {
			for n := at / line; n <= (at+uint64(s.run)-1)/line; n++ {
				list = append(list, n)
			}
		})
	}
	return list
}

// composeRoot determines which lines of each touch are in the cache at the time of this touch. The
// arrays of a loop are used in turn. Arrays that the loop uses completely in each iteration are
// used again at the end of the loop.
func (a *analysis) composeRoot(touches []touch, arrays []array) {
	h := newHeld(a.cache)
	most := make([]float64, len(arrays))
	var lines [][]uint64
	for lo, hi := 0, 0; lo < len(touches); lo = hi {
		longest := 0
		lines = lines[:0]
		for hi = lo; hi < len(touches) && touches[hi].part == touches[lo].part; hi++ {
			lines = append(lines, a.linesAt(touches[hi].of, nil))
			longest = max(longest, len(lines[hi-lo]))
		}
		now := touches[lo:hi]
		for k := range longest {
			for i := range now {
				// Shorter arrays advance more slowly, so all arrays end at the same time.
				n := len(lines[i])
				for at := k * n / longest; at < (k+1)*n/longest; at++ {
					hit, known := h.use(lines[i][at])
					if now[i].looked++; !hit {
						now[i].missed++
						now[i].again = now[i].again || known
					}
				}
			}
		}
		for i := range now {
			if len(now) > 1 && !now[i].of.grows {
				for _, line := range lines[i] {
					h.use(line)
				}
			}
			a.rootLevel(&now[i], float64(len(h.at)) > a.cache.lines())
			now[i].addTo(arrays, most)
		}
	}
	for i := range arrays {
		arrays[i].grows = true
	}
}

// rootLevel sets the misses and the class of a touch of the root. full means that more lines have
// been used so far than fit in the cache.
func (a *analysis) rootLevel(t *touch, full bool) {
	in := t.of.level
	inside := max(0, in.Misses-t.of.lines)
	share := t.missed / max(1, t.looked)
	t.level = Level{Accesses: in.Accesses, Misses: min(in.Accesses, share*t.of.lines+inside)}
	repeats := inside > slight*t.of.lines
	switch {
	case t.missed == 0 && !repeats:
		t.level.Class = AlwaysHit
	case t.missed == 0 && in.Class == AlwaysMiss:
		t.level.Class = FirstHit
	case repeats:
		t.level.Class = in.Class
	case !t.again:
		t.level.Class = FirstMiss
	case full:
		t.level.Class = CapMiss
	default:
		t.level.Class = ConfMiss
	}
}
