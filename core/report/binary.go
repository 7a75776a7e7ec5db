package report

import (
	encoding "encoding/binary"
	"errors"
	"math"
	"strconv"
)

// AppendBinary appends the table to b, for another program of the same build:
// [ReadTable] gives it back with every value as it is, which no other form does.
//
//	text     number of bytes as uvarint, bytes
//	table    key, title, single (one byte), columns, rows
//	columns  their number, then key, label and unit of each
//	rows     their number, then as many values as there are columns, each
//	value    kind, flags (one byte each); by kind a uvarint, eight bytes of a float64, or a text
func (t *Table) AppendBinary(b []byte) []byte {
	b = putText(putText(b, t.Key), t.Title)
	b = append(b, bit(t.Single, 0))
	b = encoding.AppendUvarint(b, uint64(len(t.Columns)))
	for _, c := range t.Columns {
		b = putText(putText(putText(b, c.Key), c.Label), c.Unit)
	}
	b = encoding.AppendUvarint(b, uint64(len(t.Rows)))
	for _, row := range t.Rows {
		for i := range t.Columns {
			v := None()
			if i < len(row) {
				v = row[i]
			}
			b = v.appendBinary(b)
		}
	}
	return b
}

func putText(b []byte, s string) []byte {
	return append(encoding.AppendUvarint(b, uint64(len(s))), s...)
}

// bit is the flag with that number, if it is set.
func bit(set bool, number int) byte {
	if set {
		return 1 << number
	}
	return 0
}

func (v Value) appendBinary(b []byte) []byte {
	b = append(b, byte(v.kind), bit(v.signed, 0)|bit(v.negative, 1)|bit(v.changed, 2)|bit(v.list, 3))
	switch v.kind {
	case countKind, bytesKind, yesNoKind:
		return encoding.AppendUvarint(b, v.count)
	case realKind, ratioKind, decimalKind:
		return encoding.LittleEndian.AppendUint64(b, math.Float64bits(v.real))
	case textKind:
		return putText(b, v.text)
	}
	return b
}

// ReadTable reads what [Table.AppendBinary] wrote, and gives the bytes behind it.
func ReadTable(b []byte) (t Table, rest []byte, err error) {
	r := &binaryReader{b: b, all: len(b)}
	t = Table{Key: r.text(), Title: r.text(), Single: r.one()&1 != 0}
	for range r.count(3) {
		t.Columns = append(t.Columns, Column{Key: r.text(), Label: r.text(), Unit: r.text()})
	}
	if rows := r.count(2 * len(t.Columns)); len(t.Columns) > 0 {
		for range rows {
			row := make([]Value, len(t.Columns))
			for i := range row {
				row[i] = r.value()
			}
			t.Rows = append(t.Rows, row)
		}
	}
	if r.bad {
		return Table{}, nil, errors.New("byte " + strconv.Itoa(r.all-len(r.b)) + " of a table cannot be read; both programs have to be of one build")
	}
	return t, r.b, nil
}

// binaryReader reads primitives; after the first that is not there it reads zeros.
type binaryReader struct {
	b   []byte
	all int
	bad bool
}

func (r *binaryReader) fail() {
	if !r.bad {
		r.bad, r.all = true, r.all-len(r.b)
		r.b = nil
	}
}

func (r *binaryReader) take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.fail()
		return nil
	}
	part := r.b[:n]
	r.b = r.b[n:]
	return part
}

func (r *binaryReader) one() byte {
	if part := r.take(1); part != nil {
		return part[0]
	}
	return 0
}

func (r *binaryReader) number() uint64 {
	n, length := encoding.Uvarint(r.b)
	if length <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[length:]
	return n
}

// count is a number of things, each of which takes so many bytes at least.
func (r *binaryReader) count(least int) uint64 {
	n := r.number()
	if n > uint64(len(r.b)/max(1, least)) {
		r.fail()
		return 0
	}
	return n
}

func (r *binaryReader) text() string { return string(r.take(r.number())) }

func (r *binaryReader) value() Value {
	v := Value{kind: kind(r.one())}
	flags := r.one()
	v.signed, v.negative, v.changed, v.list = flags&1 != 0, flags&2 != 0, flags&4 != 0, flags&8 != 0
	switch v.kind {
	case countKind, bytesKind, yesNoKind:
		v.count = r.number()
	case realKind, ratioKind, decimalKind:
		if part := r.take(8); part != nil {
			v.real = math.Float64frombits(encoding.LittleEndian.Uint64(part))
		}
	case textKind:
		v.text = r.text()
	case noneKind:
	default:
		r.fail()
	}
	return v
}
