// Package codec reads and writes binary encodings. One function describes an encoding in both
// directions: it either encodes the fields of a value, or decodes them.
//
//	func (s *Site) code(c *codec.Coder) {
//		c.U32(&s.Line)
//		c.Text(&s.Name)
//		codec.Slice(c, &s.Counts, 1, c.U64)
//	}
//
// Numbers are unsigned LEB128 varints. A [Coder] reads and writes; a [Decoder] only reads. No input
// makes a coder or decoder panic, or allocate more than a small multiple of the input's length.
package codec

import "encoding/binary"

// Coder encodes or decodes the fields of values. Encoding does not change the fields, so several
// coders may encode the same value concurrently.
type Coder struct {
	Out []byte   // the bytes that the coder has encoded
	In  *Decoder // the input of the coder; nil if it encodes
}

// Writer returns a coder that appends to b.
func Writer(b []byte) *Coder { return &Coder{Out: b} }

// Reader returns a coder that reads data.
func Reader(data []byte) *Coder { return &Coder{In: NewDecoder(data)} }

// Reads reports whether the coder decodes.
func (c *Coder) Reads() bool { return c.In != nil }

// Failed reports whether decoding a value has failed.
func (c *Coder) Failed() bool { return c.In != nil && c.In.err != nil }

// Check records an error if the coder decodes and the condition ok is false.
func (c *Coder) Check(ok bool, what string) {
	if !ok && c.In != nil {
		c.In.Fail(what)
	}
}

// More reports whether the coder decodes and has not reached the end of its input.
func (c *Coder) More() bool { return c.In != nil && len(c.In.Rest()) > 0 }

// appendNumber appends a number as a varint. Inlining appendNumber would only enlarge its many
// callers.
//
//go:noinline
func (c *Coder) appendNumber(v uint64) { c.Out = binary.AppendUvarint(c.Out, v) }

// U64 codes (that is, encodes or decodes) a number as a varint.
//
//go:noinline
func (c *Coder) U64(v *uint64) {
	if c.In != nil {
		*v = c.In.Uint()
		return
	}
	c.Out = binary.AppendUvarint(c.Out, *v)
}

// U64s codes several numbers in the format of [Coder.U64].
func (c *Coder) U64s(fields ...*uint64) {
	for _, v := range fields {
		c.U64(v)
	}
}

// U32 codes a 32-bit number.
//
//go:noinline
func (c *Coder) U32(v *uint32) {
	if c.In != nil {
		*v = uint32(c.In.UintBelow(1 << 32))
		return
	}
	c.Out = binary.AppendUvarint(c.Out, uint64(*v))
}

// U32s codes several 32-bit numbers in the format of [Coder.U32].
func (c *Coder) U32s(fields ...*uint32) {
	for _, v := range fields {
		c.U32(v)
	}
}

// Below codes *v, which must be less than limit, as a varint.
func Below[T ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uint | ~int](c *Coder, v *T, limit uint64) {
	if c.In != nil {
		*v = T(c.In.UintBelow(limit))
		return
	}
	c.appendNumber(uint64(*v))
}

// Next codes a number of an ascending list as its difference from *next, the smallest possible
// value. Next then sets *next to the smallest possible value of the following number. The number
// must be less than limit.
func Next[T ~uint8 | ~uint32 | ~uint64](c *Coder, v *T, next *uint64, limit uint64) {
	if c.In != nil {
		*v = T(*next + c.In.UintBelow(limit-*next))
	} else {
		c.appendNumber(uint64(*v) - *next)
	}
	*next = uint64(*v) + 1
}

// After is like Next, but codes the difference from the previous number. The first number is coded
// as its difference from 0.
func (c *Coder) After(v, next *uint64, limit uint64) {
	last := *next - min(*next, 1)
	if c.In == nil {
		c.Out = binary.AppendUvarint(c.Out, *v-last)
	} else if *v = last + c.In.Uint(); *v < *next || *v >= limit {
		c.In.Fail("a number is out of order or out of range")
	}
	*next = *v + 1
}

// Index codes a 32-bit index as the index plus one, modulo 2^32. The largest 32-bit number, which
// means that there is no index, is coded as 0.
func (c *Coder) Index(v *uint32) {
	plus := *v + 1
	if c.U32(&plus); c.In != nil {
		*v = plus - 1
	}
}

// Delta codes a number as its difference from last, modulo 2^64, and sets last to the number.
func (c *Coder) Delta(v, last *uint64) {
	if c.In != nil {
		*v = *last + c.In.Uint()
	} else {
		c.Out = binary.AppendUvarint(c.Out, *v-*last)
	}
	*last = *v
}

// Near is like Delta, but codes the difference as a zigzag varint, because the number may be
// smaller than last.
func (c *Coder) Near(v, last *uint64) {
	if c.In != nil {
		*v = *last + uint64(c.In.Int())
	} else {
		c.Out = binary.AppendVarint(c.Out, int64(*v-*last))
	}
	*last = *v
}

// Word codes a number as eight bytes, little-endian.
func (c *Coder) Word(v *uint64) {
	if c.In != nil {
		*v = c.In.Word()
		return
	}
	c.Out = binary.LittleEndian.AppendUint64(c.Out, *v)
}

// Words codes each number in the format of [Coder.Word].
func (c *Coder) Words(list []uint64) {
	if c.In != nil {
		for i := range list {
			list[i] = c.In.Word()
		}
		return
	}
	out := c.Out
	for _, v := range list {
		out = binary.LittleEndian.AppendUint64(out, v)
	}
	c.Out = out
}

// Flag codes a boolean value as 0 or 1.
//
//go:noinline
func (c *Coder) Flag(v *bool) {
	switch {
	case c.In != nil:
		*v = c.In.UintBelow(2) != 0
	case *v:
		c.Out = append(c.Out, 1)
	default:
		c.Out = append(c.Out, 0)
	}
}

// Flags codes boolean values as the bits of a number. The first value is the lowest bit.
func (c *Coder) Flags(fields ...*bool) {
	var bits uint64
	for i, v := range fields {
		if *v {
			bits |= 1 << i
		}
	}
	if Below(c, &bits, 1<<len(fields)); c.In == nil {
		return
	}
	for i, v := range fields {
		*v = bits>>i&1 != 0
	}
}

// Text codes a string as its length followed by its bytes.
func (c *Coder) Text(v *string) {
	if c.In != nil {
		*v = c.In.String()
		return
	}
	c.Out = append(binary.AppendUvarint(c.Out, uint64(len(*v))), *v...)
}

// Bytes codes a byte slice in the same format as a string. When Bytes decodes, *v aliases the decoder's data.
func (c *Coder) Bytes(v *[]byte) {
	if c.In != nil {
		*v = c.In.Bytes()
		return
	}
	c.Out = append(binary.AppendUvarint(c.Out, uint64(len(*v))), *v...)
}

// Array codes the numbers of a list, but not its length.
func (c *Coder) Array(list []uint64) {
	for i := range list {
		c.U64(&list[i])
	}
}

// Masked codes at most 63 numbers as a bit mask of the nonzero numbers, followed by these numbers.
func (c *Coder) Masked(list []uint64) {
	var mask uint64
	if c.In == nil {
		for i, n := range list {
			if n != 0 {
				mask |= 1 << i
			}
		}
	}
	Below(c, &mask, 1<<len(list))
	for i := range list {
		if mask>>i&1 != 0 {
			c.U64(&list[i])
		} else if c.In != nil {
			list[i] = 0
		}
	}
}

// Length codes the length of a list. The parameter least is the minimum encoded size of a member in
// bytes.
//
//go:noinline
func (c *Coder) Length(n, least int) int {
	if c.In != nil {
		return c.In.Length(least)
	}
	c.appendNumber(uint64(n))
	return n
}

// Slice codes a list as its length followed by its members. The parameter least is the minimum
// encoded size of a member in bytes. When Slice decodes, it appends the members to *list, so an
// empty list remains nil.
func Slice[T any](c *Coder, list *[]T, least int, member func(*T)) {
	members(c, list, byBytes, least, member)
}

// Bounded codes a list like Slice, but rejects lists with more members than the given maximum.
func Bounded[T any](c *Coder, list *[]T, most int, member func(*T)) {
	members(c, list, atMost, most, member)
}

// Members codes the members of a list, but not its length. When Members decodes, it reads n members.
func Members[T any](c *Coder, list *[]T, n int, member func(*T)) {
	members(c, list, exactly, n, member)
}

// bound selects how decoding limits the length of a list.
type bound uint8

const (
	byBytes bound = iota
	atMost
	exactly
)

// members implements Slice, Bounded and Members. When it decodes, it appends one member at a time,
// and stops at the first error.
func members[T any](c *Coder, list *[]T, b bound, limit int, member func(*T)) {
	from, to := c.codeLength(len(*list), b, limit)
	for i := from; i < to && !c.Failed(); i++ {
		if i == len(*list) {
			*list = append(*list, *new(T))
		}
		member(&(*list)[i])
	}
}

// codeLength codes the length of a list that currently has n members, and returns the index range
// of the members that remain to be coded.
func (c *Coder) codeLength(n int, b bound, limit int) (from, to int) {
	if c.In == nil {
		if b != exactly {
			c.appendNumber(uint64(n))
		}
		return 0, n
	}
	switch b {
	case byBytes:
		limit = c.In.Length(limit)
	case atMost:
		limit = int(c.In.UintBelow(uint64(limit) + 1))
	}
	return n, n + limit
}

// Optional is like Slice, but distinguishes a nil list from an empty list. A nil list is coded as
// 0, and any other list as 1 followed by the list.
func Optional[T any](c *Coder, list *[]T, least int, member func(*T)) {
	there := *list != nil
	if c.Flag(&there); !there {
		return
	}
	if c.In != nil {
		*list = []T{}
	}
	Slice(c, list, least, member)
}

// Stack codes an LRU stack, or any other list in which neighbouring numbers are close to each
// other.
func (c *Coder) Stack(list *[]uint64) {
	var last uint64
	c.Nears(list, &last)
}

// Nears codes a list of numbers in the format of [Coder.Near]. When Nears decodes, it replaces
// *list with a new list.
func (c *Coder) Nears(list *[]uint64, near *uint64) {
	last := *near
	if n := c.Length(len(*list), 1); c.In != nil {
		*list = make([]uint64, n)
		for i := range *list {
			last += uint64(c.In.Int())
			(*list)[i] = last
		}
	} else {
		out := c.Out
		for _, v := range *list {
			out = binary.AppendVarint(out, int64(v-last))
			last = v
		}
		c.Out = out
	}
	*near = last
}
