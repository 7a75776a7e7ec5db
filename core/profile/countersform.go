package profile

import (
	"encoding/binary"
	"math/bits"
	"strconv"
)

// The flags of section CNTR.
const (
	blocksFlag = 1 << iota
	opsFlag
	touchedFlag
)

// stringTable numbers strings in the order of their first use.
type stringTable struct {
	number map[string]uint64
	list   []string
}

func (t *stringTable) of(s string) uint64 {
	n, known := t.number[s]
	if !known {
		n = uint64(len(t.list))
		t.number[s] = n
		t.list = append(t.list, s)
	}
	return n
}

// packer writes the section. Its methods are no part of hot loops, and are kept
// from being copied to their many callers.
type packer struct {
	out   []byte
	names stringTable
}

//go:noinline
func (w *packer) uint(v uint64) { w.out = binary.AppendUvarint(w.out, v) }

func (w *packer) name(s string) { w.uint(w.names.of(s)) }

// counts writes a mask of the counters that are not zero, then those.
func (w *packer) counts(c *Counts) {
	var mask uint64
	for i, n := range c {
		if n != 0 {
			mask |= 1 << i
		}
	}
	w.uint(mask)
	for _, n := range c {
		if n != 0 {
			w.uint(n)
		}
	}
}

func (c *Counters) encode(b []byte) []byte {
	body := packer{names: stringTable{number: map[string]uint64{}}}
	c.pack(&body)
	w := packer{out: b}
	var flags uint64
	for i, set := range [...]bool{c.Blocks, c.Ops, c.Touched} {
		if set {
			flags |= 1 << i
		}
	}
	w.uint(flags)
	w.uint(uint64(NumCounters))
	w.uint(uint64(len(body.names.list)))
	for _, s := range body.names.list {
		w.out = appendString(w.out, s)
	}
	return append(w.out, body.out...)
}

// pack writes what comes behind the strings.
func (c *Counters) pack(w *packer) {
	w.uint(uint64(len(c.Functions)))
	next := uint32(0)
	for i := range c.Functions {
		f := &c.Functions[i]
		w.uint(uint64(f.Number - next))
		w.name(f.Name)
		w.name(f.File)
		w.uint(uint64(f.Line))
		w.uint(f.Invocations)
		w.uint(f.UniqueBytes)
		w.counts(&f.Loose)
		next = f.Number + 1
	}
	w.uint(uint64(len(c.Code)))
	next = 0
	for i := range c.Code {
		k := &c.Code[i]
		w.uint(uint64(k.Number - next))
		w.uint(uint64(k.Function + 1))
		w.name(k.Label)
		w.name(k.File)
		w.uint(uint64(k.FirstLine))
		w.uint(uint64(k.LastLine))
		w.uint(k.Executions)
		w.counts(&k.Counts)
		next = k.Number + 1
	}
	w.uint(uint64(len(c.Tallies)))
	for i := range c.Tallies {
		t := &c.Tallies[i]
		w.uint(uint64(t.Kind))
		w.name(t.Name)
		w.uint(uint64(t.Lanes))
		w.uint(uint64(t.Size))
		w.uint(t.Count)
		w.uint(t.Bytes)
	}
	w.uint(c.UniqueBytes)
	for _, n := range c.Usage {
		w.uint(n)
	}
}

func decodeCounters(r *Decoder) *Counters {
	flags := r.UintBelow(2 * touchedFlag)
	c := &Counters{Blocks: flags&blocksFlag != 0, Ops: flags&opsFlag != 0, Touched: flags&touchedFlag != 0}
	if n := r.Uint(); n != uint64(NumCounters) {
		r.fail("counters of another number than this program's " + strconv.Itoa(int(NumCounters)) + "; use a newer stackglass")
		return nil
	}
	names := make([]string, r.Length(1))
	for i := range names {
		names[i] = r.String()
	}
	name := func() string {
		if i := r.UintBelow(uint64(len(names))); r.err == nil {
			return names[i]
		}
		return ""
	}
	c.unpack(r, name)
	return c
}

// number32 reads a number of 32 bits.
func (r *Decoder) number32() uint32 { return uint32(r.UintBelow(1 << 32)) }

func (c *Counters) unpack(r *Decoder, name func() string) {
	next := uint32(0)
	for range r.Length(7) {
		f := FunctionCounters{Number: next + r.number32(), Name: name(), File: name(), Line: r.number32(), Invocations: r.Uint(), UniqueBytes: r.Uint()}
		f.Loose.decode(r)
		if r.err != nil {
			return
		}
		c.Functions, next = append(c.Functions, f), f.Number+1
	}
	next = 0
	for range r.Length(8) {
		k := BlockCounters{
			Number: next + r.number32(), Function: r.number32() - 1, Label: name(), File: name(),
			FirstLine: r.number32(), LastLine: r.number32(), Executions: r.Uint(),
		}
		k.Counts.decode(r)
		if r.err != nil {
			return
		}
		c.Code, next = append(c.Code, k), k.Number+1
	}
	for range r.Length(6) {
		kind := TallyKind(r.UintBelow(uint64(numTallyKinds)))
		c.Tallies = append(c.Tallies, Tally{kind, name(), r.number32(), r.number32(), r.Uint(), r.Uint()})
	}
	c.UniqueBytes = r.Uint()
	for i := range c.Usage {
		c.Usage[i] = r.Uint()
	}
}

func (c *Counts) decode(r *Decoder) {
	for mask := r.UintBelow(1 << NumCounters); mask != 0; mask &= mask - 1 {
		c[bits.TrailingZeros64(mask)] = r.Uint()
	}
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
	for i := 1; i < len(c.Functions); i++ {
		if c.Functions[i-1].Number >= c.Functions[i].Number {
			return false
		}
	}
	for i := 1; i < len(c.Code); i++ {
		if c.Code[i-1].Number >= c.Code[i].Number {
			return false
		}
	}
	for i := 1; i < len(c.Tallies); i++ {
		if CompareTallies(&c.Tallies[i-1], &c.Tallies[i]) >= 0 {
			return false
		}
	}
	return true
}

// sumsFit reports whether the program's numbers, and sums of any of them, fit
// into 64 bits, and whether all blocks are of functions that are there.
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
