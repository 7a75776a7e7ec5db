package ir

import (
	"sort"
	"strings"

	"github.com/stackglass/stackglass/core/trace"
)

// memoryDependences contains the dependences through memory within a piece: the stores whose values
// are read by loads of the same piece. Two addresses are considered equal if they are the same
// value, the same constant, or computed in the same way from the same values. Like a processor that
// speculates, it assumes that no other accesses alias.
type memoryDependences struct {
	first   int32                   // the first instruction of the piece; writers[0] belongs to this instruction
	writers []int32                 // by instruction: the store whose value it reads, in the notation of trace.Instr.Uses; or noWriter
	stores  map[memoryAddress]int32 // the last store to each address, as a number within the piece
	alike   map[string]int32
}

// memoryAddress identifies an address: the number of a local value, or the text of a constant.
type memoryAddress struct {
	value    int32
	constant string
}

const maxCasts = 16

// noWriter means that the instruction reads no value that the piece has stored.
const noWriter = -1

// writer returns the store whose value instruction i reads, in the notation of trace.Instr.Uses. If
// there is no such store, writer returns noWriter.
func (m *memoryDependences) writer(i int32) int32 { return m.writers[i-m.first] }

// followMemory finds the stores whose values a piece's loads read. If a piece is a whole loop, and
// a load precedes a store to the same constant address, the load reads the value that the previous
// iteration stored.
func (p *plan) followMemory(q *piece, loop bool) {
	m, f := &p.memory, p.f
	m.first, m.writers = q.first, m.writers[:0]
	if m.stores == nil {
		m.stores, m.alike = map[memoryAddress]int32{}, map[string]int32{}
	}
	stores := 0
	for i := q.first; i < q.last; i++ {
		m.writers = append(m.writers, noWriter)
		if op := f.insts[i].op; op == opStore || op == opModify {
			stores++
		}
	}
	if stores == 0 {
		return
	}
	clear(m.stores)
	clear(m.alike)
	for i := q.first; i < q.last; i++ {
		in := &f.insts[i]
		switch in.op {
		case opAddress:
			p.noteAlike(i)
		case opLoad, opStore, opModify:
			at := p.addressOf(in)
			if n, ok := m.stores[at]; ok && in.op != opStore {
				m.writers[i-q.first] = n
			}
			if in.op != opLoad {
				m.stores[at] = p.local[i]
			}
		}
	}
	if loop {
		p.followAround(q)
	}
}

// followAround finds loads that read a value from the previous iteration, and the stores that wrote
// these values. No such store precedes its load in the loop body.
func (p *plan) followAround(q *piece) {
	m, f := &p.memory, p.f
	for i := q.first; i < q.last; i++ {
		in := &f.insts[i]
		if in.op != opLoad && in.op != opModify || m.writers[i-q.first] != noWriter {
			continue
		}
		at := p.addressOf(in)
		if n, ok := m.stores[at]; ok && p.isInvariant(q, at.value) {
			m.writers[i-q.first] = -2 - n
		}
	}
}

// addressOf returns the address of an access.
func (p *plan) addressOf(in *inst) memoryAddress {
	o := in.address
	for range maxCasts {
		d := undefined
		if o.id >= 0 {
			d = int(p.f.defs[o.id])
		}
		if d < 0 || p.f.insts[d].word != "bitcast" {
			break
		}
		o = p.f.insts[d].address
	}
	if o.id < 0 {
		return memoryAddress{-1, o.text}
	}
	if d := p.f.defs[o.id]; d >= p.memory.first && d < p.memory.first+int32(len(p.memory.writers)) && p.f.insts[d].op == opAddress {
		if same, ok := p.memory.alike[p.computation(d)]; ok {
			return memoryAddress{same, ""}
		}
	}
	return memoryAddress{o.id, ""}
}

// computation returns the right-hand side of an instruction: the text after the equals sign,
// without metadata. Operands do not change within a piece, so instructions with equal texts have
// equal results.
func (p *plan) computation(i int32) string {
	in := &p.f.insts[i]
	from := int(in.from) + len(in.resultName)
	text := p.f.m.text[from:in.to]
	if _, rest, ok := strings.Cut(text, "="); ok {
		text = rest
	}
	text, _, _ = strings.Cut(text, ", !")
	return text
}

// noteAlike records an address computation, unless an equal computation has already been recorded.
func (p *plan) noteAlike(i int32) {
	result := p.f.insts[i].result
	if result < 0 {
		return
	}
	text := p.computation(i)
	if _, known := p.memory.alike[text]; !known {
		p.memory.alike[text] = result
	}
}

// isInvariant reports whether a value is loop-invariant in a piece that is a whole loop. Such a
// value is a constant, a value computed outside the loop, or an address computed from such values.
func (p *plan) isInvariant(q *piece, value int32) bool {
	if value < 0 {
		return true
	}
	d := p.f.defs[value]
	if d < q.first || d >= q.last {
		return true
	}
	in := &p.f.insts[d]
	if in.op != opAddress {
		return false
	}
	for _, use := range p.f.uses[in.uses:in.usesEnd] {
		if use >= 0 {
			if d := p.f.defs[use]; d >= q.first && d < q.last {
				return false
			}
		}
	}
	return true
}

// addFlow appends the values that flow between the blocks of a function. The instructions must be
// numbered.
func (p *plan) addFlow(list []trace.Flow) []trace.Flow {
	f := p.f
	for i := range p.pieces {
		q := &p.pieces[i]
		whole := p.isWholeLoop(q)
		for k := q.first; k < q.last; k++ {
			if p.local[k] < 0 {
				continue
			}
			in := &f.insts[k]
			for n, id := range f.uses[in.uses:in.usesEnd] {
				if id < 0 {
					continue
				}
				d := f.defs[id]
				if d < 0 || int(d) >= len(p.local) || p.local[d] < 0 {
					continue
				}
				before := uint32(0)
				if in.op == opPhi && p.loops.within(f.blockOf[f.refs[in.refs+int32(n)].label], q.basic) {
					before = 1
				}
				if d >= q.first && d < q.last && (before == 0 || whole) {
					continue // the list Uses already contains this use, or the use is unreachable
				}
				if from := p.pieceOf(d); from >= 0 {
					list = append(list, trace.Flow{Block: q.number, Instr: uint32(p.local[k]), FromBlock: p.pieces[from].number, FromInstr: uint32(p.local[d]), Before: before})
				}
			}
		}
	}
	return list
}

// pieceOf returns the piece of an instruction, or -1.
func (p *plan) pieceOf(inst int32) int {
	i := sort.Search(len(p.pieces), func(i int) bool { return p.pieces[i].last > inst })
	if i == len(p.pieces) || p.pieces[i].first > inst {
		return -1
	}
	return i
}

// within reports whether vertex v is in the loop with the header "head".
func (l *loops) within(v, head int32) bool {
	for steps := 0; v >= 0 && steps <= len(l.header); steps++ {
		h := l.header[v]
		if h == head {
			return true
		}
		if h < 0 {
			return false
		}
		v = l.outer[h]
		if v == head {
			return true
		}
	}
	return false
}
