// Package loopstest has what folded traces are held against. Only tests may import it.
package loopstest

import (
	"encoding/binary"

	"github.com/stackglass/stackglass/core/trace"
)

// Plain is the plain form of a trace, which the bytes of trees must not exceed by more
// than a twentieth: references (all of a row but its address) in runs of equal ones, a
// number and a length as LEB128; and for every row the zigzag varint of the difference to
// the address of its reference before. The table of references counts as in a tree.
// Nothing else is packed.
type Plain struct {
	numbers map[reference]uint64
	last    []uint64 // addresses, by reference
	run     uint64   // the reference that runs
	runs    uint64   // its rows
	bytes   int      // but for the run
}

type reference struct {
	pc, arg             uint64
	site, thread, bytes uint32
	kind                trace.Kind
}

// Add takes rows.
func (p *Plain) Add(b *trace.Batch) {
	for i, addr := range b.Addr {
		r := reference{bytes: b.Bytes[i], kind: b.Kind[i]}
		if b.PC != nil {
			r.pc = b.PC[i]
		}
		if b.Arg != nil {
			r.arg = b.Arg[i]
		}
		if b.Site != nil {
			r.site = b.Site[i]
		}
		if b.Thread != nil {
			r.thread = b.Thread[i]
		}
		p.row(r, addr)
	}
}

func (p *Plain) row(r reference, addr trace.Addr) {
	n, known := p.numbers[r]
	if !known {
		if p.numbers == nil {
			p.numbers = map[reference]uint64{}
		}
		n = uint64(len(p.last))
		p.numbers[r], p.last = n, append(p.last, 0)
		p.bytes += 2 + size(uint64(r.bytes))
		for _, v := range [...]uint64{r.pc, r.arg, uint64(r.site), uint64(r.thread)} {
			if v != 0 {
				p.bytes += size(v)
			}
		}
	}
	if p.runs == 0 || n != p.run {
		p.bytes += p.running()
		p.run, p.runs = n, 0
	}
	p.runs++
	d := addr - p.last[n]
	p.bytes += size(d<<1 ^ uint64(int64(d)>>63))
	p.last[n] = addr
}

// running is the bytes of the run that goes on.
func (p *Plain) running() int {
	if p.runs == 0 {
		return 0
	}
	return size(p.run) + size(p.runs-1)
}

// Bytes is how long the plain form is.
func (p *Plain) Bytes() int { return p.bytes + p.running() }

func size(v uint64) int {
	var form [binary.MaxVarintLen64]byte
	return binary.PutUvarint(form[:], v)
}
