package report

import (
	"math"
	"reflect"
	"testing"
)

func binaryTable() *Table {
	t := &Table{Key: "blocks", Title: "Blocks", Single: true, Columns: []Column{{Key: "a", Label: "A", Unit: "bytes"}, {Key: "b"}}}
	values := []Value{
		TextOf("für"), ListOf("a, b"), Count(math.MaxUint64), Bytes(1 << 20), Real(-0.5), Ratio(0.25), Decimal(math.Inf(1)), YesNo(true), None(),
		Change(Count(3), Count(2)), Difference(Count(3), Count(2)),
	}
	for _, v := range values {
		t.Add(v, None())
	}
	return t
}

func TestBinaryTable(t *testing.T) {
	want := binaryTable()
	got, rest, err := ReadTable(append(want.AppendBinary(nil), "rest"...))
	if err != nil || string(rest) != "rest" || !reflect.DeepEqual(got, *want) {
		t.Errorf("%+v, %q, %v", got, rest, err)
	}
	whole := want.AppendBinary(nil)
	for n := range whole { // none of its beginnings is a table
		if _, _, err := ReadTable(whole[:n]); err == nil {
			t.Errorf("the first %d bytes are read as a table", n)
		}
	}
}

func FuzzReadTable(f *testing.F) {
	f.Add(binaryTable().AppendBinary(nil))
	f.Add((&Table{}).AppendBinary(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		table, _, err := ReadTable(b)
		if err != nil {
			return
		}
		again, _, err := ReadTable(table.AppendBinary(nil))
		if err != nil || len(again.Rows) != len(table.Rows) {
			t.Errorf("%v", err)
		}
	})
}
