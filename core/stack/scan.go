package stack

import (
	"runtime"

	"github.com/stackglass/stackglass/core/trace"
)

// topArray is the top array of a [Sets] or [Coherent], with the hash table and the stamps. topArray
// counts hits in the array by their depths in sets. The depths of a hit depend only on the lines
// above it in the array.
type topArray struct {
	exact  Exact
	tally  nearTally
	packed [chunk]uint64 // the depths of each hit in a scan, in lanes
}

type nearTally struct {
	tally

	// front counts the hits among the first four lines of the top array. The index of a counter
	// combines, for each of the three lines that can be above the accessed line, the number of low
	// bits that the two line numbers share (0 if there is no such line).
	front [(setBits + 1) * (setBits + 1) * (setBits + 1)]uint64
	// pairs counts the other hits in the top array. The index of a counter consists of two adjacent
	// lanes of the depths of a hit.
	pairs [setBits / 2][1 << (2 * laneBits)]uint64
}

const (
	// number of bits of a lane in a word of depths; the word contains a lane for each number of
	// sets, starting with 2^1
	laneBits = 4
	laneMask = 1<<laneBits - 1
)

// Adding sharing[n] to a word of depths increments the depths for 2^1 to 2^n sets. If the last n
// bits of two line numbers agree, the lines share a set for these numbers of sets.
var sharing = func() (lanes [setBits + 1]uint64) {
	for n := 1; n <= setBits; n++ {
		lanes[n] = lanes[n-1] | 1<<((n-1)*laneBits)
	}
	return lanes
}()

func (t *nearTally) add(hits []uint64) {
	for _, depths := range hits {
		t.addLanes(depths)
	}
}

// addLanes counts a hit with the given depths. Depths never increase with the number of sets, so
// all lanes after a lane with 0 are 0.
func (t *nearTally) addLanes(depths uint64) {
	const two = 2 * laneBits
	t.pairs[0][depths&(1<<two-1)]++
	t.pairs[1][depths>>two&(1<<two-1)]++
	depths >>= 2 * two
	for k := 2; depths != 0; k++ {
		t.pairs[k%len(t.pairs)][depths&(1<<two-1)]++
		depths >>= two
	}
}

// depths returns the numbers of hits in the top array by depth, including the counts for a single
// set.
func (t *nearTally) depths() *SetDepths {
	s := new(SetDepths)
	t.single(&s[0])
	const base = setBits + 1
	for i, n := range t.front {
		if n == 0 { // in a short trace, most combinations of three numbers do not occur
			continue
		}
		depths := sharing[i/base/base] + sharing[i/base%base] + sharing[i%base]
		for a := 1; depths != 0; a++ {
			s[a][depths&laneMask] += n
			depths >>= laneBits
		}
	}
	for k := range t.pairs {
		for pair, n := range t.pairs[k] {
			s[2*k+1][pair&laneMask] += n
			s[2*k+2][pair>>laneBits] += n
		}
	}
	return s
}

// scan works like [Exact]'s scan, but also counts the depths of hits in the top array.
func (m *topArray) scan(lines []trace.Line, out []uint32) (misses int) {
	if runtime.GOARCH == "wasm" {
		return m.scanSteps(&m.tally, lines, out)
	}
	return m.scanOnce(&m.tally, lines, out)
}

// scanOnce implements scan in one loop, for processors that predict most branches.
func (m *topArray) scanOnce(t *nearTally, lines []trace.Line, out []uint32) (misses int) {
	top, queue := &m.exact.top, &m.exact.queue
	t0, t1, t2, t3 := top[0], top[1], top[2], top[3]
	out = out[:len(lines)]
	hits := 0
next:
	for i, x := range lines {
		out[i] = 0
		if x == t0 {
			continue
		}
		d := uint32(frontLines)
		if x == t3 {
			d = 3
		}
		if x == t2 {
			d = 2
		}
		if x == t1 {
			d = 1
		}
		carry := t3
		if d >= 3 {
			t3 = t2
		}
		if d >= 2 {
			t2 = t1
		}
		t0, t1 = x, t0
		out[i] = d
		if d < frontLines {
			n1, n2, n3 := common(x, t1), 0, 0
			if n := common(x, t2); d >= 2 {
				n2 = n
			}
			if n := common(x, t3); d >= 3 {
				n3 = n
			}
			t.whole[d%MaxWays]++
			t.front[(n1*(setBits+1)+n2)*(setBits+1)+n3]++
			continue
		}
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
				d += j
				out[i] = uint32(d)
				depths := sharing[common(x, t1)] + sharing[common(x, t2)] + sharing[common(x, t3)]
				for _, y := range top[frontLines : d%topLines+1] {
					depths += sharing[common(x, y)]
				}
				t.whole[d%MaxWays]++
				m.packed[hits&(chunk-1)] = depths
				hits++
				continue next
			}
			carry = last
		}
		queue[misses&(chunk-1)] = queuedAccess{x, carry, int32(i), 0}
		misses++
	}
	top[0], top[1], top[2], top[3] = t0, t1, t2, t3
	t.add(m.packed[:hits])
	return misses
}
