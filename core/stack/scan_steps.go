package stack

import "github.com/stackglass/stackglass/core/trace"

// scanSteps implements scan for WebAssembly, where loops with few branches and few live values are
// fastest. scanSteps processes the accesses in several steps. The steps that compare and move lines
// only write notes, and later steps use these notes as indices of counters. If a single step did
// both, the address of a load would depend on the comparisons, so the compiler would emit branches
// instead of conditional moves.
func (m *topArray) scanSteps(t *nearTally, lines []trace.Line, out []uint32) (misses int) {
	var notes [chunk]uint16
	hits, deeper := m.scanFront(lines, out, &notes)
	t.addFront(notes[:hits])
	hits, misses = m.scanRest(deeper, out, &notes)
	t.addRest(notes[:hits], m.packed[:hits])
	return misses
}

// The note for a hit among the first four lines contains the index in tally.front, and two bits:
// whether the distance is at least 2, and whether it is at least 3.
const (
	noteSecond = 1 << 13
	noteThird  = 1 << 14
	noteIndex  = noteSecond - 1
)

// commonBits is the number of bits that a result of the function "common" needs. For a queued
// access, scanFront stores three such results in the field "packed": for the accessed line and
// each of the three lines that follow it in the array.
const commonBits = 5

// scanFront searches the first four lines of the top array. scanFront writes the distances of hits,
// writes a note for each hit below the topmost line, and queues the other accesses.
func (m *topArray) scanFront(lines []trace.Line, out []uint32, notes *[chunk]uint16) (hits, deeper int) {
	top, queue, packed := &m.exact.top, &m.exact.queue, &m.packed
	t0, t1, t2, t3 := top[0], top[1], top[2], top[3]
	out = out[:len(lines)]
	for i, x := range lines {
		out[i] = 0
		if x == t0 {
			continue
		}
		d := frontLines
		if x == t3 {
			d = 3
		}
		if x == t2 {
			d = 2
		}
		if x == t1 {
			d = 1
		}
		last := t3
		if d >= 3 {
			t3 = t2
		}
		if d >= 2 {
			t2 = t1
		}
		t0, t1 = x, t0
		out[i] = uint32(d)
		n1, n2, n3 := common(x, t1), common(x, t2), common(x, t3)
		if d < frontLines {
			second, third := n2*(setBits+1)+noteSecond, n3+noteThird
			if d < 2 {
				second = 0
			}
			if d < 3 {
				third = 0
			}
			notes[hits&(chunk-1)] = uint16(n1*(setBits+1)*(setBits+1) + second + third)
			hits++
			continue
		}
		at := deeper & (chunk - 1)
		queue[at] = queuedAccess{x, last, int32(i), 0}
		packed[at] = uint64(n1 | n2<<commonBits | n3<<(2*commonBits))
		deeper++
	}
	top[0], top[1], top[2], top[3] = t0, t1, t2, t3
	return hits, deeper
}

func (t *nearTally) addFront(notes []uint16) {
	second, third := uint64(0), uint64(0)
	for _, n := range notes {
		t.front[n&noteIndex]++
		second += uint64(n / noteSecond & 1)
		third += uint64(n / noteThird)
	}
	t.whole[1] += uint64(len(notes)) - second
	t.whole[2] += second - third
	t.whole[3] += third
}

// scanRest searches the remaining lines of the top array for the queued accesses, four lines at a
// time as in [Exact]. For each hit, it stores the distance in "out" and in "notes", and the
// depths in the field "packed".
func (m *topArray) scanRest(deeper int, out []uint32, notes *[chunk]uint16) (hits, misses int) {
	top, queue, packed := &m.exact.top, &m.exact.queue, &m.packed
next:
	for k := range queue[:deeper] {
		q := &queue[k]
		x, carry := q.line, q.evicted
		for j := frontLines; j < topLines; j += 4 {
			four := (*[4]trace.Line)(top[j:])
			a, b, c, e := four[0], four[1], four[2], four[3]
			d := 4
			last := e
			if x == e {
				d = 3
			}
			if x == c {
				d = 2
			}
			if x == b {
				d = 1
			}
			if x == a {
				d = 0
			}
			if d >= 3 {
				e = c
			}
			if d >= 2 {
				c = b
			}
			if d >= 1 {
				b = a
			}
			four[0], four[1], four[2], four[3] = carry, b, c, e
			if d < 4 {
				out[q.index] = uint32(j + d)
				depths := frontLanes(packed[k&(chunk-1)])
				for _, y := range top[frontLines : j+d+1] {
					depths += lanes(x, y)
				}
				packed[hits&(chunk-1)] = depths
				notes[hits&(chunk-1)] = uint16(j + d)
				hits++
				continue next
			}
			carry = last
		}
		queue[misses&(chunk-1)] = queuedAccess{x, carry, q.index, 0}
		misses++
	}
	return hits, misses
}

// lanes computes sharing[common(x, y)] without a load.
func lanes(x, y trace.Line) uint64 {
	const all = 0x1111_1111_1111_1111
	none := 2 * (setBits - common(x, y)) // half of the number of bits to discard; two shifts are necessary, because a shift count must be below 64
	return all >> (none & 63) >> (none & 63)
}

// frontLanes returns the contribution of the first lines of the array to the depths of a queued
// access, in lanes.
func frontLanes(n uint64) uint64 {
	const mask = 1<<commonBits - 1
	return sharing[n&mask] + sharing[n>>commonBits&mask] + sharing[n>>(2*commonBits)&mask]
}

// addRest counts the distances and depths of the hits that scanRest found. The depths are in lanes.
func (t *nearTally) addRest(distances []uint16, depths []uint64) {
	const two = 2 * laneBits
	depths = depths[:len(distances)]
	for i, d := range distances {
		t.whole[d%MaxWays]++
		lanes := depths[i]
		t.pairs[0][lanes&(1<<two-1)]++
		t.pairs[1][lanes>>two&(1<<two-1)]++
		t.pairs[2][lanes>>(2*two)&(1<<two-1)]++
		t.pairs[3][lanes>>(3*two)&(1<<two-1)]++
		if lanes >>= 4 * two; lanes != 0 {
			t.pairs[4][lanes&(1<<two-1)]++
			t.pairs[5][lanes>>two&(1<<two-1)]++
			t.pairs[6][lanes>>(2*two)&(1<<two-1)]++
			t.pairs[7][lanes>>(3*two)]++
		}
	}
}
