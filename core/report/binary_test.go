package report

import (
	"math"
	"reflect"
	"testing"

	"github.com/stackglass/stackglass/core/codec"
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

func written(t *Table) []byte {
	c := codec.Writer(nil)
	t.Code(c)
	return c.Out
}

func TestBinaryTable(t *testing.T) {
	want := binaryTable()
	whole := written(want)
	c := codec.Reader(append(whole, "rest"...))
	var got Table
	if got.Code(c); c.Failed() || string(c.In.Rest()) != "rest" || !reflect.DeepEqual(got, *want) {
		t.Errorf("%+v, %q, %v", got, c.In.Rest(), c.In.Err())
	}
	for n := range whole { // a table whose last bytes are missing is not valid
		c := codec.Reader(whole[:n])
		if new(Table).Code(c); !c.Failed() {
			t.Errorf("Code accepted the first %d bytes of a table, want an error", n)
		}
	}
}

func FuzzTableCode(f *testing.F) {
	f.Add(written(binaryTable()))
	f.Add(written(&Table{}))
	f.Add([]byte("\x00\x00\x00\x00\x02\x00\x00")) // a table with rows but without columns
	f.Fuzz(func(t *testing.T, b []byte) {
		var table, again Table
		c := codec.Reader(b)
		if table.Code(c); c.Failed() {
			return
		}
		c = codec.Reader(written(&table))
		if again.Code(c); c.Failed() || len(again.Rows) != len(table.Rows) {
			t.Errorf("a table of %d rows has %d rows after encoding and decoding, error %v", len(table.Rows), len(again.Rows), c.In.Err())
		}
	})
}
