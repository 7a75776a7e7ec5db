package gem5

import (
	"math"
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/core/trace"
)

// Forms of fields in the wire format of Protocol Buffers (protobuf.dev/programming-guides/encoding). These
// traces use the first two; the others are skipped.
const (
	wireVarint  = 0
	wireBytes   = 2
	wireFixed64 = 1
	wireFixed32 = 5
)

// varint reads a number of at most ten bytes. n is the number of bytes taken: 0 if the text ends
// within it, negative if the number has more than 64 bits.
func varint(text []byte) (v uint64, n int) {
	if len(text) > 0 && text[0] < 0x80 {
		return uint64(text[0]), 1
	}
	for i, c := range text {
		if i == 9 && c > 1 {
			return 0, -(i + 1)
		}
		v |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			return v, i + 1
		}
	}
	return 0, 0
}

// field is one field of a message.
type field struct {
	number uint64
	wire   uint64
	value  uint64 // of a varint
	text   []byte // of bytes
}

// nextField reads the first field of text and returns the rest.
func nextField(text []byte) (f field, rest []byte, ok bool) {
	tag, n := varint(text)
	if n <= 0 {
		return f, nil, false
	}
	f.number, f.wire, rest = tag>>3, tag&7, text[n:]
	width := uint64(0)
	switch f.wire {
	case wireVarint:
		f.value, n = varint(rest)
		width = uint64(max(n, 0))
		ok = n > 0
	case wireBytes:
		var length uint64
		if length, n = varint(rest); n > 0 && length <= uint64(len(rest)-n) {
			f.text = rest[n : n+int(length)]
			width, ok = uint64(n)+length, true
		}
	case wireFixed64:
		width, ok = 8, len(rest) >= 8
	case wireFixed32:
		width, ok = 4, len(rest) >= 4
	}
	if !ok {
		return f, nil, false
	}
	return f, rest[width:], true
}

// packet is one Packet.
type packet struct {
	cmd, size, flags uint32
	addr, id, pc     uint64
}

// packetFields is one more than the number of a packet's last field.
const packetFields = 8

// decodePacket reads a Packet.
func decodePacket(text []byte) (k packet, wrong *trace.SyntaxError) {
	const required = 1<<2 | 1<<3 | 1<<4 // command, address, size
	var values [packetFields]uint64
	there := uint64(0)
	for len(text) > 0 {
		if tag := text[0]; tag >= 1<<3 && tag < packetFields<<3 && tag&7 == wireVarint {
			v, n := varint(text[1:])
			if n <= 0 {
				return k, badField(text)
			}
			values[tag>>3], text = v, text[1+n:]
			there |= 1 << (tag >> 3)
			continue
		}
		f, rest, ok := nextField(text)
		switch {
		case !ok:
			return k, badField(text)
		case f.number > 0 && f.number < packetFields && f.wire != wireVarint:
			return k, badWire(f)
		case f.number > 0 && f.number < packetFields:
			values[f.number] = f.value // its tag is longer than it need be
			there |= 1 << f.number
		}
		text = rest
	}
	k = packet{cmd: uint32(values[2]), addr: values[3], size: uint32(values[4]), flags: uint32(values[5]), id: values[6], pc: values[7]}
	switch {
	case there&required != required:
		return k, &trace.SyntaxError{What: "packet", Got: "", Want: "one with command, address and size"}
	case values[4] > math.MaxUint32:
		return k, &trace.SyntaxError{What: "size", Got: strconv.FormatUint(values[4], 10), Want: "at most 4294967295"}
	case k.size > 0 && k.addr > math.MaxUint64-uint64(k.size-1):
		return k, &trace.SyntaxError{What: "packet", Got: "0x" + strconv.FormatUint(k.addr, 16), Want: "one that ends within the 64-bit address space"}
	}
	return k, nil
}

// decodeHeader reads a PacketHeader.
func decodeHeader(text []byte) (probe string, requestors []trace.Thread, wrong *trace.SyntaxError) {
	frequency := false
	for len(text) > 0 {
		f, rest, ok := nextField(text)
		if !ok {
			return "", nil, badField(text)
		}
		switch text = rest; {
		case f.number == 1 && f.wire == wireBytes:
			probe = string(f.text)
		case f.number == 3 && f.wire == wireVarint:
			frequency = true
		case f.number == 4 && f.wire == wireBytes:
			thread, wrong := decodeRequestor(f.text)
			if wrong != nil {
				return "", nil, wrong
			}
			requestors = append(requestors, thread)
		case f.number >= 1 && f.number <= 4 && f.number != 2:
			return "", nil, badWire(f)
		}
	}
	if !frequency {
		return "", nil, &trace.SyntaxError{What: "header", Got: "", Want: "one with a tick frequency"}
	}
	return probe, slices.Clip(requestors), nil
}

// decodeRequestor reads an IdStringEntry.
func decodeRequestor(text []byte) (t trace.Thread, wrong *trace.SyntaxError) {
	for len(text) > 0 {
		f, rest, ok := nextField(text)
		if !ok {
			return t, badField(text)
		}
		switch text = rest; {
		case f.number == 1 && f.wire == wireVarint:
			t.Number = uint32(f.value)
		case f.number == 2 && f.wire == wireBytes:
			t.Name = string(f.text)
		}
	}
	return t, nil
}

func badField(text []byte) *trace.SyntaxError {
	const most = 10
	return &trace.SyntaxError{What: "field", Got: string(text[:min(len(text), most)]), Want: "a tag and a value of Protocol Buffers"}
}

func badWire(f field) *trace.SyntaxError {
	return &trace.SyntaxError{What: "field " + strconv.FormatUint(f.number, 10), Got: "wire type " + strconv.FormatUint(f.wire, 10), Want: "the wire type that gem5 gives it"}
}
