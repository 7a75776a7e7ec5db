package ir

import "sort"

// Flow is a value that goes from one block of a function to another, or around a loop of several blocks:
// instruction Instr of block Block uses the result of instruction FromInstr of block FromBlock, Before
// iterations ago of the loop that Block heads (1 for a phi's value from a latch, else 0). It does not
// repeat trace.Instr.Uses.
type Flow struct{ Block, Instr, FromBlock, FromInstr, Before uint32 }

// addFlow appends the values that go between a function's blocks, whose instructions are numbered.
func (p *plan) addFlow(list []Flow) []Flow {
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
					continue // in Uses; or, before its definition, unreachable
				}
				if from := p.pieceOf(d); from >= 0 {
					list = append(list, Flow{q.number, uint32(p.local[k]), p.pieces[from].number, uint32(p.local[d]), before})
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

// within reports whether a vertex is in the loop that another one heads.
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
