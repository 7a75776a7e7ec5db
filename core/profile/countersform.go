package profile

import (
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

func (c *Counters) encode(b []byte) []byte {
	names := &stringTable{number: map[string]uint64{}}
	body := c.encodeCode(nil, names)
	body = c.encodeTallies(body, names)
	var flags uint64
	for i, set := range []bool{c.Blocks, c.Ops, c.Touched} {
		if set {
			flags |= 1 << i
		}
	}
	b = appendUint(b, flags, uint64(NumCounters), uint64(len(names.list)))
	for _, s := range names.list {
		b = appendString(b, s)
	}
	b = append(b, body...)
	if c.Touched {
		b = appendUint(b, c.UniqueBytes)
		b = appendUint(b, c.Usage[:]...)
	}
	return b
}

func (c *Counters) encodeCode(b []byte, names *stringTable) []byte {
	b = appendUint(b, uint64(len(c.Functions)))
	next := uint32(0)
	for i := range c.Functions {
		f := &c.Functions[i]
		b = appendUint(b, uint64(f.Number-next), names.of(f.Name), names.of(f.File), uint64(f.Line), f.Invocations)
		if c.Touched {
			b = appendUint(b, f.UniqueBytes)
		}
		b = f.Loose.encode(b)
		next = f.Number + 1
	}
	b = appendUint(b, uint64(len(c.Code)))
	next = 0
	for i := range c.Code {
		k := &c.Code[i]
		b = appendUint(b, uint64(k.Number-next), uint64(k.Function+1), names.of(k.Label), names.of(k.File),
			uint64(k.FirstLine), uint64(k.LastLine), k.Executions)
		b = k.Counts.encode(b)
		next = k.Number + 1
	}
	return b
}

func (c *Counters) encodeTallies(b []byte, names *stringTable) []byte {
	b = appendUint(b, uint64(len(c.Calls)))
	for i := range c.Calls {
		b = appendUint(b, names.of(c.Calls[i].Name), c.Calls[i].Count, number(c.Calls[i].Traced))
	}
	b = appendUint(b, uint64(len(c.Mix)))
	for i := range c.Mix {
		b = appendUint(b, names.of(c.Mix[i].Opcode), c.Mix[i].Count)
	}
	b = appendUint(b, uint64(len(c.Vectors)))
	for i := range c.Vectors {
		v := &c.Vectors[i]
		b = appendUint(b, uint64(v.Lanes), uint64(v.Bits), number(v.Float), v.Count)
	}
	b = appendUint(b, uint64(len(c.Types)))
	for i := range c.Types {
		t := &c.Types[i]
		b = appendUint(b, number(t.Store), names.of(t.Type), uint64(t.Bytes), t.Count, t.TotalBytes)
	}
	return b
}

func number(yes bool) uint64 {
	if yes {
		return 1
	}
	return 0
}

// encode writes a mask of the counters that are not zero, then those.
func (c *Counts) encode(b []byte) []byte {
	var mask uint64
	for i, n := range c {
		if n != 0 {
			mask |= 1 << i
		}
	}
	b = appendUint(b, mask)
	for _, n := range c {
		if n != 0 {
			b = appendUint(b, n)
		}
	}
	return b
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
	c.decodeCode(r, name)
	c.decodeTallies(r, name)
	if c.Touched {
		c.UniqueBytes = r.Uint()
		for i := range c.Usage {
			c.Usage[i] = r.Uint()
		}
	}
	return c
}

func (c *Counters) decodeCode(r *Decoder, name func() string) {
	next := uint32(0)
	for range r.Length(6) {
		f := FunctionCounters{
			Number: next + uint32(r.UintBelow(1<<32)), Name: name(), File: name(),
			Line: uint32(r.UintBelow(1 << 32)), Invocations: r.Uint(),
		}
		if c.Touched {
			f.UniqueBytes = r.Uint()
		}
		f.Loose.decode(r)
		if r.err != nil {
			return
		}
		c.Functions, next = append(c.Functions, f), f.Number+1
	}
	next = 0
	for range r.Length(8) {
		k := BlockCounters{
			Number: next + uint32(r.UintBelow(1<<32)), Function: uint32(r.UintBelow(1<<32)) - 1, Label: name(), File: name(),
			FirstLine: uint32(r.UintBelow(1 << 32)), LastLine: uint32(r.UintBelow(1 << 32)), Executions: r.Uint(),
		}
		k.Counts.decode(r)
		if r.err != nil {
			return
		}
		c.Code, next = append(c.Code, k), k.Number+1
	}
}

func (c *Counters) decodeTallies(r *Decoder, name func() string) {
	for range r.Length(3) {
		c.Calls = append(c.Calls, CallCounter{Name: name(), Count: r.Uint(), Traced: r.UintBelow(2) == 1})
	}
	for range r.Length(2) {
		c.Mix = append(c.Mix, OpcodeCounter{Opcode: name(), Count: r.Uint()})
	}
	for range r.Length(4) {
		c.Vectors = append(c.Vectors, VectorCounter{
			Lanes: uint32(r.UintBelow(1 << 32)), Bits: uint32(r.UintBelow(1 << 32)), Float: r.UintBelow(2) == 1, Count: r.Uint(),
		})
	}
	for range r.Length(5) {
		c.Types = append(c.Types, TypeCounter{
			Store: r.UintBelow(2) == 1, Type: name(), Bytes: uint32(r.UintBelow(1 << 32)), Count: r.Uint(), TotalBytes: r.Uint(),
		})
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
	case !ascending(c.Functions, func(x, y *FunctionCounters) bool { return x.Number < y.Number }),
		!ascending(c.Code, func(x, y *BlockCounters) bool { return x.Number < y.Number }),
		!ascending(c.Calls, func(x, y *CallCounter) bool { return x.Name < y.Name }),
		!ascending(c.Mix, func(x, y *OpcodeCounter) bool { return x.Opcode < y.Opcode }),
		!ascending(c.Vectors, func(x, y *VectorCounter) bool { return CompareVectors(x, y) < 0 }),
		!ascending(c.Types, func(x, y *TypeCounter) bool { return CompareTypes(x, y) < 0 }):
		return &CheckError{"a list of its counters is out of order"}
	case !c.Blocks && len(c.Code) > 0 || !c.Ops && len(c.Mix) > 0:
		return &CheckError{"its counters are of code that the trace did not tell of"}
	case !c.sumsFit():
		return &CheckError{"its counters add up to more than can be counted"}
	}
	return c.checkTouched()
}

func ascending[T any](list []T, less func(x, y *T) bool) bool {
	for i := 1; i < len(list); i++ {
		if !less(&list[i-1], &list[i]) {
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
	if !c.Touched {
		return nil
	}
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
	if last != c.UniqueBytes {
		return &CheckError{"all of its accesses are not in the bytes that it touches"}
	}
	return nil
}
