package blocks

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/stackglass/stackglass/core/blocks/opclass"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// Work is what one execution of each block of a program does: its instructions, its
// flops, its bytes, and so on, counted as package analysis/counters counts a trace.
type Work struct {
	program *trace.Program
	once    []profile.Counts // by block
	opcodes []string
	ops     []opAmount // of block b: opsAt[b] up to opsAt[b+1]
	opsAt   []int32
	untold  []uint32 // by block: references of which only a trace's records tell the bytes
}

type opAmount struct {
	opcode int32
	amount uint32
}

// NewWork reads the work off the program's tables.
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
				does = opclass.Of(key.opcode, key.datatype, key.several)
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

// addSite counts a site's reference. Of masked accesses, whose blocks stand before
// that of the instruction, and of copies of any length, the tables do not tell how
// much they touch.
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

// Once is what one execution of a block does.
func (w *Work) Once(block int) *profile.Counts { return &w.once[block] }

// Opcode is a number of executions of instructions with that opcode.
type Opcode struct {
	Name  string
	Count float64
	Exact uint64 // where the total is whole
}

// Total is what a block, a function or a program does.
type Total struct {
	Counts [profile.NumCounters]float64
	// Whole tells that all is whole numbers, proven, below 2^64: Exact.
	Whole bool
	Exact profile.Counts
	// Untold are executed references of which only a trace's records tell how many
	// bytes they touch: masked vector accesses, which are in no count, and copies of
	// any length, whose bytes are in none.
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

// finish takes the numbers from the whole ones, which have no rounding.
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

// sum adds up the blocks from first up to end.
func (w *Work) sum(s *Solution, first, end int) Total {
	t := Total{Whole: true}
	for b := first; b < end; b++ {
		f := w.program.Blocks[b].Function
		t.add(w, b, s.Visits[b], s.Exact[b], int64(f) < int64(len(s.Whole)) && s.Whole[f])
	}
	return t.finish()
}

// Block is what all executions of a block do.
func (w *Work) Block(s *Solution, b int) Total { return w.sum(s, b, b+1) }

// Function is what a function does, without those that it calls.
func (w *Work) Function(s *Solution, n int) Total {
	f := &w.program.Functions[n]
	return w.sum(s, int(f.First), int(f.First+f.Blocks))
}

// Program is what the program does.
func (w *Work) Program(s *Solution) Total { return w.sum(s, 0, len(w.program.Blocks)) }

// Opcodes counts the instructions of functions from first up to end, by opcode; the
// most frequent one comes first.
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
