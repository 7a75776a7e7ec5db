// Package gem5 reads the packet traces that the MemTraceProbe and the CommMonitor of the simulator
// gem5 write.
//
// A file consists of the magic number "gem5" and Protocol Buffers messages, each preceded by its
// length as a varint (gem5's src/proto/protoio.cc). The first message is a PacketHeader, and all
// others are Packets (src/proto/packet.proto):
//
//	PacketHeader  1 obj_id string · 2 ver · 3 tick_freq · 4 id_strings {1 key · 2 value string}, repeated
//	Packet        1 tick · 2 cmd · 3 addr · 4 size · 5 flags · 6 pkt_id · 7 pc
//
// Numbers are varints; cmd, addr and size are required. Demand requests become references. A
// processor sends the demand requests ReadReq and WriteReq. Other demand requests occur below a
// cache: ReadSharedReq, ReadCleanReq and LoadLockedReq become loads, and ReadExReq, WriteLineReq
// and StoreCondReq become stores, because gem5 sends these three requests only for stores. Requests
// with flag 0x100 (Request::INST_FETCH) are instruction fetches. All other packets, such as
// responses, write-backs, evictions, upgrades and prefetches, are omitted. The trace's header lists
// the number of omitted packets of each command. The file does not name the version of gem5 that
// wrote it. ReadReq and WriteReq have the same numbers in all versions. For all other commands, the
// numbers of gem5 20 and later are assumed (src/mem/packet.hh, MemCmd::Command). In older versions,
// the numbers of these commands are lower by two or three.
//
// If the header lists id_strings, pkt_id is the number of the requestor (for example the data side
// of a core). Each requestor becomes a thread with a name in [trace.Program]. The field pc is
// present if the probe was configured to record it. Addresses are taken from the probed packets,
// and are usually physical.
package gem5

import (
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/records"
)

const (
	magic         = "gem5"
	longestHeader = 32 << 10 // maximum length in bytes; a longer header causes an error and is skipped
	longestPacket = 1 << 10  // maximum length in bytes; all known fields together take fewer than 100 bytes

	flagInstFetch = 0x100
)

// command is a packet command of gem5. The number of a command is its index in the array
// "commands".
type command struct {
	name   string
	demand bool
	kind   trace.Kind // kind of reference, if the command is a demand request
}

var commands = [...]command{
	0: {name: "InvalidCmd"}, 1: {"ReadReq", true, trace.Load}, 2: {name: "ReadResp"}, 3: {name: "ReadRespWithInvalidate"},
	4: {"WriteReq", true, trace.Store}, 5: {name: "WriteResp"}, 6: {name: "WriteCompleteResp"},
	7: {name: "WritebackDirty"}, 8: {name: "WritebackClean"}, 9: {name: "WriteClean"}, 10: {name: "CleanEvict"},
	11: {name: "SoftPFReq"}, 12: {name: "SoftPFExReq"}, 13: {name: "HardPFReq"}, 14: {name: "SoftPFResp"}, 15: {name: "HardPFResp"},
	16: {"WriteLineReq", true, trace.Store}, 17: {name: "UpgradeReq"}, 18: {name: "SCUpgradeReq"}, 19: {name: "UpgradeResp"},
	20: {name: "SCUpgradeFailReq"}, 21: {name: "UpgradeFailResp"}, 22: {"ReadExReq", true, trace.Store}, 23: {name: "ReadExResp"},
	24: {"ReadCleanReq", true, trace.Load}, 25: {"ReadSharedReq", true, trace.Load}, 26: {"LoadLockedReq", true, trace.Load},
	27: {"StoreCondReq", true, trace.Store}, 28: {name: "StoreCondFailReq"}, 29: {name: "StoreCondResp"},
	30: {name: "other commands"}, // the numbers of later commands differ between versions
}

func commandOf(cmd uint32) int { return int(min(cmd, uint32(len(commands)-1))) }

// NewReader returns a reader for the trace in r. Errors refer to the trace by the given name.
func NewReader(name string, r io.Reader) *records.Reader {
	return records.NewReader(name, "gem5", r, &parser{})
}

type stage uint8

const (
	atMagic stage = iota
	atHeader
	atPackets
	skipping // the reader skips a message that is too long
)

type parser struct {
	stage      stage
	rest       uint64 // number of bytes that remain to be skipped
	probe      string // the field obj_id of the header
	requestors []trace.Thread
	pcs        bool                  // whether a packet had a PC
	leftOut    [len(commands)]uint64 // number of omitted packets, by command
}

// Header implements [records.Parser].
func (p *parser) Header() trace.Header {
	h := trace.Header{Format: "gem5", Threads: p.requestors != nil, PCs: p.pcs, Sizes: true}
	if h.Threads {
		h.Program = &trace.Program{Threads: p.requestors}
	}
	if p.probe != "" {
		h.Capture = append(h.Capture, trace.Fact{Name: "program", Value: p.probe})
	}
	if text := p.skipped(); text != "" {
		h.Capture = append(h.Capture, trace.Fact{Name: trace.LeftOutFact, Value: text})
	}
	return h
}

// skipped returns a text that lists the omitted packets by command, or "" if no packets were
// omitted.
func (p *parser) skipped() string {
	all, list := uint64(0), ""
	for i, n := range p.leftOut {
		if n == 0 {
			continue
		}
		if all += n; list != "" {
			list += ", "
		}
		list += strconv.FormatUint(n, 10) + " " + commands[i].name
	}
	if all == 0 {
		return ""
	}
	return strconv.FormatUint(all, 10) + " packets that are not demand requests: " + list
}

// Begin adds the columns that have occurred in the trace so far.
func (p *parser) Begin(b *trace.Batch) {
	if p.pcs {
		b.NeedPC()
	}
	if p.requestors != nil {
		b.NeedThread()
	}
}

// Parse implements [records.Parser].
func (p *parser) Parse(window []byte, b *trace.Batch, row int) (taken, rows int, err error) {
	for row < b.Len() && taken < len(window) && err == nil {
		var n int
		switch p.stage {
		case atMagic:
			n, err = p.begin(window)
		case skipping:
			n = int(min(p.rest, uint64(len(window)-taken)))
			if p.rest -= uint64(n); p.rest == 0 {
				p.stage = atPackets
			}
		default:
			var wrong *trace.SyntaxError
			if n, row, wrong = p.message(window[taken:], b, row); wrong != nil {
				wrong.Offset, err = int64(taken), wrong
			}
		}
		if n == 0 {
			break
		}
		taken += n
	}
	return taken, row, err
}

// begin reads the magic number.
func (p *parser) begin(window []byte) (taken int, err error) {
	if len(window) < len(magic) {
		return 0, nil
	}
	if got := window[:len(magic)]; string(got) != magic {
		err = &trace.SyntaxError{What: "magic number", Got: string(got), Want: magic}
	}
	p.stage = atHeader
	return len(magic), err
}

// message reads one message, including its length.
func (p *parser) message(window []byte, b *trace.Batch, row int) (taken, rows int, wrong *trace.SyntaxError) {
	length, n := varint(window)
	if n == 0 {
		return 0, row, nil
	}
	longest := uint64(longestPacket)
	if p.stage == atHeader {
		longest = longestHeader
	}
	if n < 0 || length > longest {
		taken, wrong = p.skip(length, n)
		return taken, row, wrong
	}
	if uint64(len(window)-n) < length {
		return 0, row, nil
	}
	text := window[n : n+int(length)]
	taken = n + int(length)
	if p.stage == atHeader {
		p.stage = atPackets
		p.probe, p.requestors, wrong = decodeHeader(text)
		p.Begin(b)
		return taken, row, wrong
	}
	got, wrong := decodePacket(text)
	if wrong != nil {
		return taken, row, wrong
	}
	return taken, p.row(got, b, row), nil
}

// skip skips a message with an invalid length.
func (p *parser) skip(length uint64, n int) (taken int, wrong *trace.SyntaxError) {
	if n < 0 {
		n, length = -n, 0
	}
	p.stage, p.rest = atPackets, length
	if length > 0 {
		p.stage = skipping
	}
	return n, &trace.SyntaxError{What: "length of a message", Got: strconv.FormatUint(length, 10),
		Want: "a varint that is at most " + strconv.Itoa(longestPacket) + " for a packet, or at most " + strconv.Itoa(longestHeader) + " for the header"}
}

// row writes the row of a packet, if the packet is a reference.
func (p *parser) row(k packet, b *trace.Batch, row int) int {
	c := commandOf(k.cmd)
	if !commands[c].demand {
		p.leftOut[c]++
		return row
	}
	kind := commands[c].kind
	if k.flags&flagInstFetch != 0 {
		kind = trace.Fetch
	}
	if k.pc != 0 {
		p.pcs = true
		b.NeedPC()
	}
	b.Addr[row], b.Bytes[row], b.Kind[row] = k.addr, k.size, kind
	if b.PC != nil {
		b.PC[row] = k.pc
	}
	if b.Thread != nil {
		b.Thread[row] = uint32(k.id)
	}
	return row + 1
}

// Recognise reports whether head, the beginning of a file, is a packet trace; if not, it returns
// the reason. gem5's instruction traces have the same magic number, but a different first message.
func Recognise(head []byte) (reason string, ok bool) {
	if len(head) < len(magic) || string(head[:len(magic)]) != magic {
		return "the file does not begin with " + magic, false
	}
	header, rest := cut(head[len(magic):])
	if header == nil {
		return "", true // head does not contain the whole header
	}
	if _, _, wrong := decodeHeader(header); wrong != nil {
		return "the header: " + wrong.Clause(), false
	}
	if first, _ := cut(rest); first != nil {
		if _, wrong := decodePacket(first); wrong != nil {
			return "the first message is not a packet: " + wrong.Clause(), false
		}
	}
	return "", true
}

// cut returns the first message of text and the bytes after it, or nil if the message is
// incomplete.
func cut(text []byte) (message, rest []byte) {
	length, n := varint(text)
	if n <= 0 || length > uint64(len(text)-n) {
		return nil, nil
	}
	end := n + int(length)
	return text[n:end:end], text[end:]
}

// Wire types of Protocol Buffers (protobuf.dev/programming-guides/encoding). gem5's traces use the
// first two types. Fields of all other types are skipped.
const (
	wireVarint  = 0
	wireBytes   = 2
	wireFixed64 = 1
	wireFixed32 = 5
)

// varint reads a varint of at most ten bytes. The result n is the number of bytes read. The result
// n is 0 if the text ends within the varint, and negative if the number has more than 64 bits.
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

type field struct {
	number uint64
	wire   uint64
	value  uint64 // value of the field if it is a varint
	text   []byte // content of the field if it is length-delimited
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

type packet struct {
	cmd, size, flags uint32
	addr, id, pc     uint64
}

// the highest known field number of a Packet, plus 1
const packetFields = 8

func decodePacket(text []byte) (k packet, wrong *trace.SyntaxError) {
	const required = 1<<2 | 1<<3 | 1<<4 // bits of the fields command, address and size
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
			values[f.number] = f.value // reached only if the tag is encoded in more bytes than necessary
			there |= 1 << f.number
		}
		text = rest
	}
	k = packet{cmd: uint32(values[2]), addr: values[3], size: uint32(values[4]), flags: uint32(values[5]), id: values[6], pc: values[7]}
	switch {
	case there&required != required:
		return k, &trace.SyntaxError{What: "packet", Got: "", Want: "a packet with a command, an address and a size"}
	case values[4] > math.MaxUint32:
		return k, &trace.SyntaxError{What: "size", Got: strconv.FormatUint(values[4], 10), Want: "at most 4294967295"}
	case k.size > 0 && k.addr > math.MaxUint64-uint64(k.size-1):
		return k, &trace.SyntaxError{What: "packet", Got: "0x" + strconv.FormatUint(k.addr, 16), Want: "a reference that ends within the 64-bit address space"}
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
		return "", nil, &trace.SyntaxError{What: "header", Got: "", Want: "a header with a tick frequency"}
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
	return &trace.SyntaxError{What: "field " + strconv.FormatUint(f.number, 10), Got: "wire type " + strconv.FormatUint(f.wire, 10), Want: "the wire type that gem5 uses for this field"}
}
