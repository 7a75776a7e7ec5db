package drmemtrace

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"

	"github.com/stackglass/stackglass/core/trace"
)

// Part is one file of a trace: the records of one thread, or of one core.
type Part struct {
	Name   string // the file's name in errors
	Reader io.Reader
}

const (
	typeMarker      = 28
	markerTimestamp = 2       // DynamoRIO's TRACE_MARKER_TYPE_TIMESTAMP
	checkedRecords  = 80      // number of records that CheckPart examines at the beginning of a part
	partBuffer      = 1 << 16 // number of bytes of a part that are read at once
	// findTimestamp examines at most this number of records at the beginning of a part.
	firstRecords = partBuffer / RecordBytes
)

// Merge returns one trace that contains the records of all parts, ordered as in DynamoRIO's serial
// schedule (clients/drcachesim/scheduler/scheduler_fixed.cpp): at each timestamp marker, the
// schedule switches to the part whose next timestamp is the lowest (the first such part, if there
// are several). A part without timestamps is read completely before all other parts.
//
// Each buffer of a traced thread contains about 64 KB of records, and begins with a timestamp
// marker. The order is therefore only as precise as the length of a buffer.
func Merge(parts []Part) io.Reader {
	m := &merger{}
	for _, p := range parts {
		m.parts = append(m.parts, &part{Part: p, records: bufio.NewReaderSize(p.Reader, partBuffer)})
	}
	return m
}

// CheckPart returns an error unless r begins like a file of a drmemtrace trace. The parameter
// "name" is the file's path.
func CheckPart(name string, r *bufio.Reader) error {
	head, err := r.Peek(checkedRecords * RecordBytes)
	if err != nil && err != io.EOF {
		return err
	}
	if reason, ok := Recognise(head); !ok {
		return errors.New(name + ": not a DynamoRIO trace, unlike the other files in the folder (" + reason +
			"); move this file to another folder, or open one file instead of the folder")
	}
	return nil
}

type merger struct {
	parts  []*part
	begun  bool
	now    *part // the part that is being read; nil if the next part must be selected
	chosen bool  // whether the current part has just been selected; its next record may then be a timestamp
	out    []byte
	rest   []byte // bytes of out that Read has not returned yet
	err    error

	thread  uint32 // thread of the last record in out
	threads bool   // whether the thread number is known
}

// part is an input of a merger, with its reading position.
type part struct {
	Part
	records *bufio.Reader
	next    uint64 // the next timestamp; 0 if no timestamp precedes the next record
	thread  uint32 // thread of the following records of the part
	threads bool   // whether the thread number is known
	pc      uint64 // address of the last instruction
	pcs     bool   // whether an instruction has been read
	read    int64  // number of bytes read
}

// Read returns bytes of the merged trace.
func (m *merger) Read(p []byte) (int, error) {
	for len(m.rest) == 0 {
		if m.err != nil {
			return 0, m.err
		}
		m.out = m.out[:0]
		m.err = m.fill()
		m.rest = m.out
	}
	n := copy(p, m.rest)
	m.rest = m.rest[n:]
	return n, nil
}

// fill appends records of one part to m.out.
func (m *merger) fill() error {
	if !m.begun {
		m.begun = true
		for _, p := range m.parts {
			p.findTimestamp()
		}
	}
	if m.now == nil && !m.choose() {
		return io.EOF
	}
	for len(m.out) < partBuffer {
		head, err := m.now.records.Peek(RecordBytes)
		if len(head) < RecordBytes {
			return m.finish(head, err)
		}
		record := (*[RecordBytes]byte)(head)
		if at, ok := timestamp(record); ok && !m.chosen {
			m.now.next, m.now = at, nil
			return nil
		}
		m.chosen = false
		m.add(record)
		m.now.records.Discard(RecordBytes)
		m.now.read += RecordBytes
	}
	return nil
}

// choose selects the part whose records come next. At the end of all parts, choose returns false.
func (m *merger) choose() bool {
	for _, p := range m.parts {
		if m.now == nil || p.next < m.now.next {
			m.now = p
		}
	}
	if m.now == nil {
		return false
	}
	m.chosen = true
	if p := m.now; p.threads {
		m.setThread(p.thread)
	}
	return true
}

// setThread appends a thread record if the following records belong to a different thread.
func (m *merger) setThread(thread uint32) {
	if m.threads && m.thread == thread {
		return
	}
	m.thread, m.threads = thread, true
	m.out = binary.LittleEndian.AppendUint16(m.out, typeThread)
	m.out = binary.LittleEndian.AppendUint16(m.out, 0)
	m.out = binary.LittleEndian.AppendUint64(m.out, uint64(thread))
}

// add appends a record of the current part.
func (m *merger) add(record *[RecordBytes]byte) {
	p := m.now
	kind := binary.LittleEndian.Uint16(record[:])
	value := binary.LittleEndian.Uint64(record[valueAt:])
	at := len(m.out)
	m.out = append(m.out, record[:]...)
	switch {
	case kind == typeThread:
		p.thread, p.threads = uint32(value), true
		m.thread, m.threads = p.thread, true
	case kind == typeMaybeFetch:
		// The type of this record refers to the previous instruction of the part, not of the merged
		// trace.
		fetched := uint16(typeInstr)
		if p.pcs && p.pc == value {
			fetched = typeNoFetch
		}
		binary.LittleEndian.PutUint16(m.out[at:], fetched)
	}
	if isInstruction(kind) {
		p.pc, p.pcs = value, true
	}
}

// finish removes the current part after its last record. The parameter "rest" contains the bytes
// after the part's last complete record.
func (m *merger) finish(rest []byte, err error) error {
	p := m.now
	m.now = nil
	for i, other := range m.parts {
		if other == p {
			m.parts = append(m.parts[:i], m.parts[i+1:]...)
			break
		}
	}
	if err == io.EOF && len(rest) == 0 {
		return nil
	}
	if err == io.EOF {
		return &trace.DamageError{File: p.Name, Layer: "drmemtrace", Offset: p.read, Cut: true, Err: io.ErrUnexpectedEOF}
	}
	return err
}

// findTimestamp stores the first timestamp near the part's beginning in the field "next".
func (p *part) findTimestamp() {
	head, _ := p.records.Peek(firstRecords * RecordBytes)
	for ; len(head) >= RecordBytes; head = head[RecordBytes:] {
		record := (*[RecordBytes]byte)(head)
		if at, ok := timestamp(record); ok {
			p.next = at
			return
		}
	}
}

// timestamp returns the value of a timestamp marker.
func timestamp(record *[RecordBytes]byte) (uint64, bool) {
	if binary.LittleEndian.Uint16(record[:]) != typeMarker || binary.LittleEndian.Uint16(record[sizeAt:]) != markerTimestamp {
		return 0, false
	}
	return binary.LittleEndian.Uint64(record[valueAt:]), true
}
