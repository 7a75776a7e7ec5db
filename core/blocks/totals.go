package blocks

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/stackglass/stackglass/core/blocks/opclass"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// Work contains the counters of one execution of each block, such as instructions, flops and bytes.
// Package analysis/counters defines these counters.
type Work struct {
	program *trace.Program
	once    []profile.Counts // the work of one execution of each block
	opcodes []string
	ops     []opAmount // the amounts of block b are ops[opsAt[b]:opsAt[b+1]]
	opsAt   []int32
	untold  []uint32 // by block: number of references whose size is not in the tables
}

type opAmount struct {
	opcode int32
	amount uint32
}

// NewWork computes the work of each block from the program's tables.
func NewWork(p *trace.Program) *Work {
	type opKey struct {
		opcode, datatype string
		several          bool
	}
	w := &Work{program: p, once: make([]profile.Counts, len(p.Blocks)), untold: make([]uint32, len(p.Blocks)), opsAt: make([]int32, 0, len(p.Blocks)+1)}
	known, numbers := map[opKey]opclass.Instruction{}, map[string]int32{}
	for b := range p.Blocks {
		k := &p.Blocks[b]
		w.opsAt = append(w.opsAt, int32(len(w.ops)))
		for _, op := range k.Ops {
			key := opKey{op.Opcode, op.Type, len(k.Successors) > 1 && op.Opcode == "br"}
			does, ok := known[key]
			if !ok {
				does = opclass.ClassOf(key.opcode, key.datatype, key.several)
				known[key] = does
			}
			for _, add := range does.Adds {
				w.once[b][add.Counter] += add.Amount * uint64(op.Count)
			}
			n, ok := numbers[does.Opcode]
			if !ok {
				n = int32(len(w.opcodes))
				numbers[does.Opcode], w.opcodes = n, append(w.opcodes, does.Opcode)
			}
			w.ops = append(w.ops, opAmount{n, op.Count})
		}
		for s := k.FirstSite; s < k.FirstSite+k.Sites && uint64(s) < uint64(len(p.Sites)); s++ {
			w.addSite(b, &p.Sites[s])
		}
	}
	w.opsAt = append(w.opsAt, int32(len(w.ops)))
	return w
}

// addSite counts the reference of a site. The tables do not contain the sizes of masked accesses
// and of variable-length copies. The site of a masked access belongs to a separate block before the
// block that contains the instruction.
func (w *Work) addSite(b int, s *trace.Site) {
	if !s.Kind.IsReference() {
		return
	}
	if w.program.Blocks[b].Flags&trace.Synthetic != 0 {
		if b+1 < len(w.untold) {
			w.untold[b+1]++
		}
		return
	}
	if s.Bytes == 0 && s.Flags&trace.NoSize == 0 {
		w.untold[b]++
	}
	once := &w.once[b]
	switch s.Kind {
	case trace.RangeRead:
		once[profile.RangesRead]++
		once[profile.RangeBytesRead] += uint64(s.Bytes)
	case trace.RangeWrite:
		once[profile.RangesWritten]++
		once[profile.RangeBytesWritten] += uint64(s.Bytes)
	}
	if s.Kind == trace.Load || s.Kind == trace.Modify {
		once[profile.Loads]++
		once[profile.BytesLoaded] += uint64(s.Bytes)
	}
	if s.Kind == trace.Store || s.Kind == trace.Modify {
		once[profile.Stores]++
		once[profile.BytesStored] += uint64(s.Bytes)
	}
}

// Once returns the work of one execution of a block.
func (w *Work) Once(block int) *profile.Counts { return &w.once[block] }

// Opcode is an opcode and the number of executed instructions with this opcode.
type Opcode struct {
	Name  string
	Count float64
	Exact uint64 // exact number; valid only if the total is an integer
}

// Total is the work of a block, a function or a program.
type Total struct {
	Counts [profile.NumCounters]float64
	// Whole is true if all counts are proven to be integers below 2^64. If Whole is true, Exact
	// contains these counts.
	Whole bool
	Exact profile.Counts
	// Untold is the number of executed references whose size can only be known from a trace.
	// Examples are masked vector accesses, which are not counted at all, and variable-length
	// copies, whose bytes are not counted.
	Untold float64
}

// add adds n executions of block b.
func (t *Total) add(w *Work, b int, n float64, exact uint64, whole bool) {
	if n == 0 {
		return
	}
	t.Whole = t.Whole && whole
	t.Untold += n * float64(w.untold[b])
	for i, amount := range w.once[b] {
		if amount == 0 {
			continue
		}
		t.Counts[i] += n * float64(amount)
		if t.Whole {
			hi, lo := bits.Mul64(exact, amount)
			sum, carry := bits.Add64(t.Exact[i], lo, 0)
			t.Exact[i] = sum
			t.Whole = hi|carry == 0
		}
	}
}

// finish replaces the counts by the exact counts if they are known.
func (t *Total) finish() Total {
	for i := range t.Counts {
		if t.Whole {
			t.Counts[i] = float64(t.Exact[i])
		}
	}
	if !t.Whole {
		t.Exact = profile.Counts{}
	}
	return *t
}

// sum returns the total work of the blocks [first, end).
func (w *Work) sum(s *Solution, first, end int) Total {
	t := Total{Whole: true}
	for b := first; b < end; b++ {
		f := w.program.Blocks[b].Function
		t.add(w, b, s.Visits[b], s.Exact[b], int64(f) < int64(len(s.Whole)) && s.Whole[f])
	}
	return t.finish()
}

// Block returns the work of all executions of a block.
func (w *Work) Block(s *Solution, b int) Total { return w.sum(s, b, b+1) }

// Function returns the work of a function without its callees.
func (w *Work) Function(s *Solution, n int) Total {
	f := &w.program.Functions[n]
	return w.sum(s, int(f.First), int(f.First+f.Blocks))
}

// Program returns the work of the program.
func (w *Work) Program(s *Solution) Total { return w.sum(s, 0, len(w.program.Blocks)) }

// Opcodes counts the instructions of the functions [first, end) by opcode, in descending order.
func (w *Work) Opcodes(s *Solution, first, end int) (list []Opcode, whole bool) {
	list, whole = make([]Opcode, len(w.opcodes)), true
	for i, name := range w.opcodes {
		list[i].Name = name
	}
	for n := first; n < end; n++ {
		f := &w.program.Functions[n]
		for b := f.First; b < f.First+f.Blocks; b++ {
			if s.Visits[b] == 0 {
				continue
			}
			whole = whole && s.Whole[n]
			for _, op := range w.ops[w.opsAt[b]:w.opsAt[b+1]] {
				o := &list[op.opcode]
				o.Count += s.Visits[b] * float64(op.amount)
				hi, lo := bits.Mul64(s.Exact[b], uint64(op.amount))
				sum, carry := bits.Add64(o.Exact, lo, 0)
				o.Exact = sum
				whole = whole && hi|carry == 0
			}
		}
	}
	list = slices.DeleteFunc(list, func(o Opcode) bool { return o.Count == 0 })
	for i := range list {
		if whole {
			list[i].Count = float64(list[i].Exact)
		} else {
			list[i].Exact = 0
		}
	}
	slices.SortStableFunc(list, func(a, b Opcode) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name)) })
	return list, whole
}
