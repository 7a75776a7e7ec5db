package sma

import "math"

// held is a cache by lines, LRU: the context of the root. A tree may have very many nodes
// there, most of them of one access, whose array is one line (thesis, Algorithm 1).
type held struct {
	geometry
	at    map[uint64]int32 // by line: 1 + its node; 0: it was here and left
	nodes []heldLine
	sets  map[uint64]*heldSet
}

type heldLine struct {
	line         uint64
	newer, older int32 // 1 + the node, 0 at an end
}

type heldSet struct {
	newest, oldest int32 // 1 + the node
	lines          uint32
}

func newHeld(g geometry) *held {
	return &held{geometry: g, at: map[uint64]int32{}, sets: map[uint64]*heldSet{}}
}

// use uses a line. It tells whether the line was there, and whether it was ever used
// before.
func (h *held) use(line uint64) (hit, known bool) {
	number := line % uint64(h.Sets)
	set := h.sets[number]
	if set == nil {
		set = &heldSet{}
		h.sets[number] = set
	}
	n, known := h.at[line]
	switch {
	case n != 0:
		if set.newest == n {
			return true, true
		}
		h.out(set, n)
	case set.lines < h.Ways:
		set.lines++
		h.nodes = append(h.nodes, heldLine{})
		n = int32(len(h.nodes))
	default:
		n = set.oldest
		h.at[h.nodes[n-1].line] = 0
		h.out(set, n)
	}
	hit = h.at[line] != 0
	h.at[line] = n
	h.nodes[n-1] = heldLine{line: line, older: set.newest}
	if set.newest != 0 {
		h.nodes[set.newest-1].newer = n
	} else {
		set.oldest = n
	}
	set.newest = n
	return hit, known
}

// out takes a node out of its set's list.
func (h *held) out(set *heldSet, n int32) {
	of := h.nodes[n-1]
	if of.newer != 0 {
		h.nodes[of.newer-1].older = of.older
	} else {
		set.newest = of.older
	}
	if of.older != 0 {
		h.nodes[of.older-1].newer = of.newer
	} else {
		set.oldest = of.newer
	}
}

// mostLines bounds the lines of an array that are gone through, by the lines of the cache
// and at least so many.
const mostLines = 1 << 10

// linesAt lists an array's lines in the order of addresses; of more than four times as many
// as the cache holds, only the last ones.
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

// sectionLines lists the lines of an array's sections, if there are not too many.
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
	var put func(s *section, d int, at uint64)
	put = func(s *section, d int, at uint64) {
		if d < 0 {
			for n := at / line; n <= (at+uint64(s.run)-1)/line; n++ {
				list = append(list, n)
			}
			return
		}
		for i := range uint64(math.Ceil(s.dims[d].trips)) {
			put(s, d-1, at+i*uint64(s.dims[d].step))
		}
	}
	for i := range s.sections {
		put(&s.sections[i], len(s.sections[i].dims)-1, s.sections[i].span.lo)
	}
	return list
}

// composeRoot finds which lines of each touch are in the cache when the root comes to it.
// The arrays of one loop are used by turns, those that it uses as a whole at its end, too.
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
				// Those that are shorter go on as slowly.
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
			of := &arrays[now[i].group]
			of.level.Accesses += now[i].level.Accesses
			of.level.Misses += now[i].level.Misses
			if m := now[i].level.Misses; most[now[i].group] == 0 || m > most[now[i].group] {
				most[now[i].group] = m
				of.level.Class = now[i].level.Class
			}
		}
	}
	for i := range arrays {
		arrays[i].grows = true
	}
}

// rootLevel gives a touch of the root its misses and its class; full says that more was
// used so far than there is room for.
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
