package stack

import "math/bits"

// CheckInvariants panics if the parts of the model contradict each other.
func (m *Exact) CheckInvariants() {
	live, marked := m.stamps.marked(), uint32(0)
	onArray := 0
	for i, line := range m.top {
		if line == noLine {
			continue
		}
		e := m.table.find(line)
		switch {
		case e == nil || m.stamped == (e.stamp == onTop):
			panic("stack: a line of the top array is not marked as such in the table")
		case !m.stamped:
			onArray++
		case m.stamps.rank(e.stamp) != m.stamps.live-1-uint32(i):
			panic("stack: the top array does not contain the lines with the newest stamps")
		}
	}
	lines := 0
	for p := range m.table.parts {
		used := 0
		for _, e := range m.table.parts[p].slots {
			if e.key == 0 {
				continue
			}
			used++
			if e.stamp < fresh {
				marked++
				if m.stamps.blocks[e.stamp/blockStamps].bits[e.stamp/64%blockWords]>>(e.stamp&63)&1 == 0 {
					panic("stack: the stamp of a line is not live")
				}
			}
		}
		if used != m.table.parts[p].used {
			panic("stack: the number of entries in a part of the table is wrong")
		}
		lines += used
	}
	if live != m.stamps.live || marked != live || lines != m.table.lines || int(live)+onArray != lines {
		panic("stack: the numbers of live stamps, lines in the array and lines in the table do not add up")
	}
}

// CheckInvariants checks the embedded model that computes the distances.
func (m *Sets) CheckInvariants() { m.exact.CheckInvariants() }

// CheckInvariants panics unless every live stamp belongs to one line or one hole, and each list
// begins with the top array's lines that are in the list's set.
func (m *Coherent) CheckInvariants() {
	exact := &m.near.exact
	live, inHoles, marked := exact.stamps.marked(), uint32(0), uint32(0)
	if len(m.holes.levels) > 0 {
		for _, word := range m.holes.levels[0] {
			inHoles += uint32(bits.OnesCount64(word))
		}
	}
	lost, ids := 0, map[uint32]bool{}
	for p := range exact.table.parts {
		for _, e := range exact.table.parts[p].slots {
			switch {
			case e.key == 0:
			case e.stamp == fresh:
				lost++
			case e.stamp != onTop:
				marked++
			}
			if e.key != 0 && m.ways.isHole[e.moved] == (e.stamp == fresh) {
				ids[e.moved] = true
			}
		}
	}
	if live != exact.stamps.live || marked+inHoles != live || lost != m.lost || len(ids) != exact.table.lines || len(m.ways.absent) != firstID+len(ids) {
		panic("stack: the numbers of live stamps, lines, holes and ids do not add up")
	}
	for _, line := range exact.top[:m.used] {
		for a := m.ways.after[0]; a < SetCounts; a = m.ways.after[a] {
			p, set := m.ways.page(a, line)
			k := 0
			for _, y := range exact.top[:m.used] {
				if common(line, y) >= a {
					k++
				}
			}
			id, here := exact.table.find(line).moved, p.sets[set].first
			for d := 0; here != id; d++ {
				if d+1 == k {
					panic("stack: a line of the array is not at the front of its set")
				}
				here = p.ring(set)[(int(p.sets[set].head)+d)&int(p.mask)]
			}
		}
	}
}

// marked counts the bits that are set in the bitmaps: one bit for each live stamp.
func (t *stamps) marked() (live uint32) {
	for i := range t.blocks {
		for _, word := range t.blocks[i].bits {
			live += uint32(bits.OnesCount64(word))
		}
	}
	return live
}
