//go:build invariants

package stack

import "math/bits"

// check tests the invariants that stand on the fields, once a batch. It is
// compiled in by -tags invariants and slow.
func (m *Exact) check() {
	var live, marked uint32
	for i := range m.stamps.blocks {
		for _, word := range m.stamps.blocks[i].bits {
			live += uint32(bits.OnesCount64(word))
		}
	}
	onArray := 0
	for _, line := range m.top {
		if line != noLine {
			onArray++
			if e := m.table.find(line); e == nil || e.stamp != onTop {
				panic("stack: a line of the top array is not marked so in the table")
			}
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
			panic("stack: a part of the table miscounts its entries")
		}
		lines += used
	}
	if live != m.stamps.live || marked != live || lines != m.table.lines || int(live)+onArray != lines {
		panic("stack: live stamps, lines of the array and lines of the table do not add up")
	}
}
