package sma

import (
	"container/list"
	"math"
)

// lineCache is an LRU cache of lines, which serves as the context of the root (thesis, Algorithm
// 1). The context of the root consists of lines instead of arrays, because a tree may have a large
// number of top-level nodes, most of which access only one line.
type lineCache struct {
	geometry
	at   map[uint64]*list.Element // entry of each line that has been used; nil if the line was evicted
	sets map[uint64]*list.List    // lines by set, most recently used first
}

func newLineCache(g geometry) *lineCache {
	return &lineCache{geometry: g, at: map[uint64]*list.Element{}, sets: map[uint64]*list.List{}}
}

// access simulates an access to a line. It reports whether the line was in the cache, and whether the
// line had been used before.
func (h *lineCache) access(line uint64) (hit, known bool) {
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

// mostLines is the maximum number of individually tracked lines of an array. For large caches, the
// limit is higher.
const mostLines = 1 << 10

// linesAt appends the lines of an array to a list, in ascending order of addresses. If the array
// has many more lines than the cache, linesAt appends only the last lines of the array.
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

// sectionLines appends the lines of all sections of an array to a list, unless there are too many
// lines.
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
		s.forEachRun(len(s.dims)-1, s.span.lo, func(at uint64) {
			for n := at / line; n <= (at+uint64(s.run)-1)/line; n++ {
				list = append(list, n)
			}
		})
	}
	return list
}

// composeRoot determines for each touch which of its lines are in the cache. The arrays of a loop
// are accessed alternately. Arrays that each iteration of the loop uses completely are accessed
// again at the end of the loop.
func (a *analysis) composeRoot(touches []touch, arrays []array) {
	h := newLineCache(a.cache)
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
					hit, known := h.access(lines[i][at])
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
					h.access(line)
				}
			}
			a.setRootLevel(&now[i], float64(len(h.at)) > a.cache.lines())
			now[i].addTo(arrays, most)
		}
	}
	for i := range arrays {
		arrays[i].grows = true
	}
}

// setRootLevel sets the misses and the class of a touch of the root. The parameter "full" means
// that more lines have been used so far than the cache can contain.
func (a *analysis) setRootLevel(t *touch, full bool) {
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
