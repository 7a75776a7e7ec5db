package stack

import (
	"runtime"

	"github.com/stackglass/stackglass/core/trace"
)

// scan is [Exact]'s scan. If it searches the top array, it counts the depths of the lines
// there: those above the line are at hand.
func (m *Sets) scan(lines []trace.Line, out []uint32) (misses int) {
	if m.exact.stamped {
		return m.exact.scanStamped(lines, out)
	}
	if runtime.GOARCH == "wasm" {
		return m.scanSteps(&m.tally, lines, out)
	}
	return m.scanOnce(&m.tally, lines, out)
}

// scanOnce is scan in one loop, for processors that predict most branches.
func (m *Sets) scanOnce(t *tally, lines []trace.Line, out []uint32) (misses int) {
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
		queue[misses&(chunk-1)] = deep{x, carry, i}
		misses++
	}
	top[0], top[1], top[2], top[3] = t0, t1, t2, t3
	t.add(m.packed[:hits])
	return misses
}
