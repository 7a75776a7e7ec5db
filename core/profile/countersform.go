package profile

import (
	"math/bits"
	"strconv"

	"github.com/stackglass/stackglass/core/codec"
)

func (c *Counters) code(w *coder) {
	w.Flags(&c.Blocks, &c.Ops, &c.Touched)
	counters := uint64(NumCounters)
	if w.U64(&counters); counters != uint64(NumCounters) {
		w.In.Fail("counters of another number than this program's " + strconv.Itoa(int(NumCounters)) + "; use a newer stackglass")
		return
	}
	w.named(func() {
		next := uint64(0)
		codec.Slice(w.Coder, &c.Functions, 7, func(f *FunctionCounters) {
			codec.Next(w.Coder, &f.Number, &next, 1<<32)
			w.name(&f.Name)
			w.name(&f.File)
			w.U32(&f.Line)
			w.U64s(&f.Invocations, &f.UniqueBytes)
			w.Masked(f.Loose[:])
		})
		next = 0
		codec.Slice(w.Coder, &c.Code, 8, func(k *BlockCounters) {
			codec.Next(w.Coder, &k.Number, &next, 1<<32)
			w.Index(&k.Function)
			w.name(&k.Label)
			w.name(&k.File)
			w.U32s(&k.FirstLine, &k.LastLine)
			w.U64(&k.Executions)
			w.Masked(k.Counts[:])
		})
		codec.Slice(w.Coder, &c.Tallies, 6, func(t *Tally) {
			codec.Below(w.Coder, &t.Kind, uint64(numTallyKinds))
			w.name(&t.Name)
			w.U32s(&t.Lanes, &t.Size)
			w.U64s(&t.Count, &t.Bytes)
		})
		w.U64(&c.UniqueBytes)
		w.Array(c.Usage[:])
	})
}

// check tests the order of the lists, and that no sum is beyond 64 bits.
func (c *Counters) check() error {
	if c == nil {
		return nil
	}
	switch {
	case !c.inOrder():
		return &CheckError{"a list of its counters is out of order"}
	case !c.Blocks && len(c.Code) > 0 || !c.Ops && len(c.Tallied(Opcodes)) > 0:
		return &CheckError{"its counters are of code that the trace did not tell of"}
	case !c.sumsFit():
		return &CheckError{"its counters add up to more than can be counted"}
	}
	return c.checkTouched()
}

func (c *Counters) inOrder() bool {
	return ascending(c.Functions, compareFunctions) && ascending(c.Code, compareBlocks) && ascending(c.Tallies, CompareTallies)
}

// ascending reports whether each member of a list is less than the next one.
func ascending[T any](list []T, compare func(x, y *T) int) bool {
	for i := 1; i < len(list); i++ {
		if compare(&list[i-1], &list[i]) >= 0 {
			return false
		}
	}
	return true
}

// sumsFit reports whether sums of any of the program's numbers fit into 64 bits, and whether
// all functions of blocks exist.
func (c *Counters) sumsFit() bool {
	var all uint64
	fits := true
	add := func(counts *Counts) {
		for _, n := range counts {
			sum, carry := bits.Add64(all, n, 0)
			all, fits = sum, fits && carry == 0
		}
	}
	for i := range c.Functions {
		add(&c.Functions[i].Loose)
	}
	for i := range c.Code {
		add(&c.Code[i].Counts)
		fits = fits && c.FunctionAt(c.Code[i].Function) >= 0
	}
	return fits
}

func (c *Counters) checkTouched() error {
	last := uint64(0)
	for _, n := range c.Usage {
		if n < last || n > c.UniqueBytes {
			return &CheckError{"the bytes that hold a share of its accesses are not ascending"}
		}
		last = n
	}
	for i := range c.Functions {
		if c.Functions[i].UniqueBytes > c.UniqueBytes {
			return &CheckError{"a function touches more bytes than the program"}
		}
	}
	if c.Touched && last != c.UniqueBytes {
		return &CheckError{"all of its accesses are not in the bytes that it touches"}
	}
	return nil
}
