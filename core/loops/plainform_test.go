package loops

import (
	"encoding/binary"
	"errors"

	"github.com/stackglass/stackglass/core/trace"
)

// Plain builds the plain form of a trace. The encoding of a tree must not exceed its plain form by
// more than 5 %. The plain form lists the references (all fields of a row except the address), and
// the address differences of the rows of each reference. The plain form is complete: [ReadPlain]
// restores the rows from the plain form alone. Integers are encoded as LEB128, and differences as
// zigzag numbers.
//
//	version (2), columns in bits: 1 thread, 2 PC, 4 site, 8 arg
//	references, each: kind << 1, bytes, and, of the columns that exist,
//	    site and PC as differences from the previous reference, thread, arg
//	rows
//	runs of equal references, each: number of the reference, number of rows minus one,
//	    and for each row the difference from the reference's previous address
//
// The plain form is not compressed in any other way.
type Plain struct {
	columns uint64
	numbers map[plainReference]uint64
	table   []plainReference
	last    []uint64 // last address of each reference
	rows    uint64
	done    []byte // completed runs
	run     uint64 // reference of the current run
	runs    uint64 // number of rows in the run
	deltas  []byte // the encoded addresses of the current run
}

type plainReference struct {
	pc, arg             uint64
	site, thread, bytes uint32
	kind                trace.Kind
}

// Add adds rows to the trace.
func (p *Plain) Add(b *trace.Batch) {
	for i, has := range [...]bool{b.Thread != nil, b.PC != nil, b.Site != nil, b.Arg != nil} {
		if has {
			p.columns |= 1 << i
		}
	}
	for i, addr := range b.Addr {
		r := plainReference{bytes: b.Bytes[i], kind: b.Kind[i]}
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

func (p *Plain) row(r plainReference, addr trace.Addr) {
	n, known := p.numbers[r]
	if !known {
		if p.numbers == nil {
			p.numbers = map[plainReference]uint64{}
		}
		n = uint64(len(p.table))
		p.numbers[r], p.table, p.last = n, append(p.table, r), append(p.last, 0)
	}
	if n != p.run {
		p.done = p.running(p.done)
		p.run, p.runs, p.deltas = n, 0, p.deltas[:0]
	}
	p.rows++
	p.runs++
	p.deltas = binary.AppendVarint(p.deltas, int64(addr-p.last[n]))
	p.last[n] = addr
}

// running appends the encoding of the current run to dst.
func (p *Plain) running(dst []byte) []byte {
	if p.runs == 0 {
		return dst
	}
	dst = binary.AppendUvarint(binary.AppendUvarint(dst, p.run), p.runs-1)
	return append(dst, p.deltas...)
}

// Form returns the plain form of all rows that have been added.
func (p *Plain) Form() (form []byte) {
	uv := func(v uint64) { form = binary.AppendUvarint(form, v) }
	uv(2)
	uv(p.columns)
	uv(uint64(len(p.table)))
	var before plainReference
	for _, r := range p.table {
		uv(uint64(r.kind) << 1)
		uv(uint64(r.bytes))
		if p.columns&4 != 0 {
			form = binary.AppendVarint(form, int64(r.site)-int64(before.site))
		}
		if p.columns&2 != 0 {
			form = binary.AppendVarint(form, int64(r.pc-before.pc))
		}
		if p.columns&1 != 0 {
			uv(uint64(r.thread))
		}
		if p.columns&8 != 0 {
			uv(r.arg)
		}
		before = r
	}
	uv(p.rows)
	return p.running(append(form, p.done...))
}

// ReadPlain returns the rows of a plain form, in a batch with all columns.
func ReadPlain(form []byte) (*trace.Batch, error) {
	bad := false
	uv := func() uint64 {
		v, n := binary.Uvarint(form)
		bad = bad || n <= 0
		form = form[max(n, 0):]
		return v
	}
	zigzag := func() uint64 {
		v := uv()
		return v>>1 ^ -(v & 1)
	}
	_ = uv() // version
	columns := uv()
	var table []plainReference
	var before plainReference
	for n := uv(); n > 0 && !bad; n-- {
		r := plainReference{kind: trace.Kind(uv() >> 1), bytes: uint32(uv())}
		if columns&4 != 0 {
			r.site = before.site + uint32(zigzag())
		}
		if columns&2 != 0 {
			r.pc = before.pc + zigzag()
		}
		if columns&1 != 0 {
			r.thread = uint32(uv())
		}
		if columns&8 != 0 {
			r.arg = uv()
		}
		table, before = append(table, r), r
	}
	last := make([]uint64, len(table))
	rows := int(uv())
	b := trace.NewBatch(rows)
	b.NeedThread()
	b.NeedPC()
	b.NeedSite()
	b.NeedArg()
	for b.Len() < rows && !bad {
		of := uv()
		for n := uv() + 1; n > 0 && !bad && of < uint64(len(table)) && b.Len() < rows; n-- {
			last[of] += zigzag()
			r := &table[of]
			b.Append(r.kind, last[of], r.bytes, r.thread, r.pc)
			b.Site[b.Len()-1], b.Arg[b.Len()-1] = r.site, r.arg
		}
		bad = bad || of >= uint64(len(table))
	}
	if bad || len(form) > 0 {
		return nil, errors.New("not a plain form")
	}
	return b, nil
}
