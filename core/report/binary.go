package report

import (
	"math"

	"github.com/stackglass/stackglass/core/codec"
)

// Code codes the table for another program of the same build. Unlike other formats, it preserves
// every value.
//
//	text     number of bytes as uvarint, bytes
//	table    key, title, single (one byte), columns, and if there are any, rows
//	columns  their number, then key, label and unit of each
//	rows     their number, then as many values as there are columns, each
//	value    kind, flags (one byte each); by kind a uvarint, eight bytes of a float64, or a text
func (t *Table) Code(c *codec.Coder) {
	c.Text(&t.Key)
	c.Text(&t.Title)
	c.Flag(&t.Single)
	codec.Slice(c, &t.Columns, 3, func(column *Column) {
		c.Text(&column.Key)
		c.Text(&column.Label)
		c.Text(&column.Unit)
	})
	if len(t.Columns) == 0 {
		return
	}
	codec.Slice(c, &t.Rows, 2*len(t.Columns), func(row *[]Value) {
		if c.Reads() {
			*row = make([]Value, len(t.Columns))
		}
		for i := range t.Columns {
			v := None()
			if i < len(*row) {
				v = (*row)[i]
			}
			if v.code(c); c.Reads() {
				(*row)[i] = v
			}
		}
	})
}

func (v *Value) code(c *codec.Coder) {
	codec.Below(c, &v.kind, uint64(decimalKind)+1)
	c.Flags(&v.signed, &v.negative, &v.changed, &v.list)
	switch v.kind {
	case countKind, bytesKind, yesNoKind:
		c.U64(&v.count)
	case realKind, ratioKind, decimalKind:
		bits := math.Float64bits(v.real)
		c.Word(&bits)
		v.real = math.Float64frombits(bits)
	case textKind:
		c.Text(&v.text)
	}
}
