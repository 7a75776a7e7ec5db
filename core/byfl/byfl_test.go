package byfl

import (
	"encoding/binary"
	"errors"
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/profile"
)

var update = flag.Bool("update", false, "write testdata")

// encode returns tables in Byfl's file format.
func encode(tables ...Table) []byte {
	b := []byte(magic)
	text := func(s string) { b = append(binary.BigEndian.AppendUint16(b, uint16(len(s))), s...) }
	cell := func(t Type, c Cell) {
		switch t {
		case Number:
			b = binary.BigEndian.AppendUint64(b, c.Number)
		case Text:
			text(c.Text)
		case Truth:
			b = append(b, byte(c.Number))
		}
	}
	for _, t := range tables {
		keyed := len(t.Rows) == 1 && !strings.HasSuffix(t.Name, "s")
		if keyed {
			b = append(b, 2)
		} else {
			b = append(b, 1)
		}
		text(t.Name)
		for i, c := range t.Columns {
			b = append(b, byte(c.Type))
			text(c.Name)
			if keyed {
				cell(c.Type, t.Rows[0][i])
			}
		}
		b = append(b, 0)
		if keyed {
			continue
		}
		for _, row := range t.Rows {
			b = append(b, 1)
			for i, c := range t.Columns {
				cell(c.Type, row[i])
			}
		}
		b = append(b, 0)
	}
	return append(b, 0)
}

// keyValueTable returns a table of kind 2 (key and value) with the given keys and numbers.
func keyValueTable(name string, keysAndValues ...any) Table {
	t := Table{Name: name, Rows: [][]Cell{nil}}
	for i := 0; i < len(keysAndValues); i += 2 {
		t.Columns = append(t.Columns, Column{keysAndValues[i].(string), Number})
		t.Rows[0] = append(t.Rows[0], Cell{Number: uint64(keysAndValues[i+1].(int))})
	}
	return t
}

// table2 returns the numbers that Anger et al. published in Table 2 (an early version of
// HPCG on Legion), as tables like Byfl's.
func table2() []Table {
	text := func(s string) Cell { return Cell{Text: s} }
	number := func(n uint64) Cell { return Cell{Number: n} }
	return []Table{
		keyValueTable("Program", "Load operations", 23_671_118, "Store operations", 4_708_067, "Floating-point operations", 4_376_254,
			"Integer operations", 97_813_342, "Unconditional and direct branch operations (removable)", 4_397_938,
			"Conditional branch operations (not taken)", 2_792_872, "Conditional branch operations (taken)", 10_000_000,
			"Bytes loaded", 166_772_045, "Bytes stored", 22_499_152, "Calls to memset", 150_716, "Calls to memcpy and memmove", 40_330,
			"Bytes stored by memset", 4_639_120, "Bytes loaded and stored by memcpy and memmove", 586_492,
			"Vector operations", 358_580, "Total vector elements", 717_160),
		keyValueTable("Instruction mix", "Load", 23_671_118, "FAdd", 2_000_000),
		{Name: "Vector operations", Columns: []Column{{"Elements per vector", Number}, {"Bits per element", Number}, {"Floating point", Truth}, {"Tally", Number}},
			Rows: [][]Cell{{number(2), number(64), number(1), number(358_000)}, {number(2), number(64), number(1), number(580)}}},
		{Name: "Functions", Columns: []Column{{"Load operations", Number}, {"Floating-point operations", Number}, {"Unique bytes", Number}, {"Invocations", Number},
			{"Mangled function name", Text}, {"Demangled function name", Text}, {"File name", Text}, {"Line number", Number}},
			Rows: [][]Cell{{number(20_000_000), number(4_000_000), number(4096), number(12), text("_Z4spmvv"), text("spmv()"), text("/hpcg/src/spmv.cc"), number(31)}}},
		{Name: "Called functions", Columns: []Column{{"Invocations", Number}, {"Byfl instrumented", Truth}, {"Exception throwing", Truth},
			{"Mangled function name", Text}, {"Demangled function name", Text}},
			Rows: [][]Cell{{number(7), number(0), number(0), text("sqrt"), text("sqrt")}, {number(5), number(0), number(1), text("sqrt"), text("sqrt")}}},
		{Name: "Memory accesses by data types"}, // a table with a different name, which is ignored
		{Name: "Strided accesses", Columns: []Column{{"Word size", Number}}, Rows: [][]Cell{{number(8)}}},
		keyValueTable("System information"),
	}
}

func TestRead(t *testing.T) {
	want := table2()
	data := encode(want...)
	got, err := Read("t", data)
	if err != nil || len(got) != len(want) {
		t.Fatalf("%d tables, %v", len(got), err)
	}
	for i := range want {
		if got[i].Name != want[i].Name || !reflect.DeepEqual(got[i].Columns, want[i].Columns) || !reflect.DeepEqual(got[i].Rows, want[i].Rows) {
			t.Errorf("%+v, want %+v", got[i], want[i])
		}
	}
	for n := range data {
		if _, err := Read("t", data[:n]); err == nil {
			t.Fatalf("Read accepted a file that ends after %d bytes, want an error", n)
		}
	}
	for what, broken := range map[string][]byte{
		"bytes after the end":       append(data, 0),
		"an unknown kind of table":  []byte(magic + "\x03"),
		"an unknown type of column": []byte(magic + "\x01\x00\x01t\x09"),
		"an unknown kind of row":    []byte(magic + "\x01\x00\x01t\x00\x07"),
		"endless rows":              []byte(magic + "\x01\x00\x01t\x00\x01\x01\x01"),
	} {
		_, err := Read("t.byfl", broken)
		var format *FormatError
		if !errors.As(err, &format) || !strings.HasPrefix(err.Error(), "t.byfl, byte ") {
			t.Errorf("%s: %v, want a FormatError with the position", what, err)
		}
	}
}

func TestCounters(t *testing.T) {
	c, skipped, err := Counters(table2())
	if err != nil || !reflect.DeepEqual(skipped, []string{"Strided accesses"}) {
		t.Fatalf("skipped %q, %v", skipped, err)
	}
	sum := c.Program()
	sets, set := sum.Sets()
	moves, moved := sum.Moves()
	if sum.Bytes() != 189_271_197 || sum[profile.Loads] != 23_671_118 || sum[profile.ConditionalBranches] != 12_792_872 ||
		sets != 150_716 || set != 4_639_120 || moves != 40_330 || moved != 586_492 {
		t.Errorf("counts of the program: %v, %d memsets of %d bytes, %d copies of %d bytes; want the numbers of the paper", sum, sets, set, moves, moved)
	}
	for _, d := range sum.Derive(0) {
		if d.Key == "bytes_per_flop" && (d.Value < 43.245 || d.Value > 43.255) {
			t.Errorf("%v bytes per flop, want the paper's 43.25", d.Value)
		}
	}
	f := c.Functions[0]
	if f.Name != "spmv()" || f.File != "spmv.cc" || f.Line != 31 || f.Invocations != 12 || f.UniqueBytes != 4096 || f.Loose[profile.Flops] != 4_000_000 {
		t.Errorf("function %+v", f)
	}
	if calls := c.Tallied(profile.Callees); len(calls) != 1 || calls[0].Name != "sqrt" || calls[0].Count != 12 {
		t.Errorf("calls %+v", calls)
	}
	if v := c.Tallied(profile.FloatVectors); len(v) != 1 || v[0].Lanes != 2 || v[0].Count != 358_580 || sum[profile.VectorOps] != 717_160 {
		t.Errorf("vectors %+v", v)
	}
	if _, _, err := Counters(table2()[1:]); err != ErrNoProgram {
		t.Errorf("a file without the table \"Program\": error %v, want ErrNoProgram", err)
	}
}

func TestBlocksAndMemory(t *testing.T) {
	row := func(n uint64, name string, line uint64) []Cell {
		return []Cell{{Number: n}, {Text: name}, {Text: "a/b.c"}, {Number: line}, {Number: 3}}
	}
	tables := []Table{
		keyValueTable("Program", "Load operations", 20),
		{Name: "Basic blocks", Columns: []Column{{"Basic block number", Number}, {"Demangled function name", Text}, {"File name", Text}, {"Line number", Number}, {"Load operations", Number}},
			Rows: [][]Cell{row(1, "f", 10), row(2, "f", 20), row(3, "f", 10)}},
		keyValueTable("Memory accesses by data type", "Loads of 64-bit integers", 20, "Stores of vectors of 32-bit floating-point values", 4),
		{Name: "Memory locality", Columns: []Column{{"Capacity in bytes", Number}, {"Maximum possible hit count", Number}},
			Rows: [][]Cell{{{Number: 8}, {Number: 50}}, {{Number: 80}, {Number: 100}}}},
	}
	c, _, err := Counters(tables)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Code) != 2 || c.Code[0].Executions != 2 || c.Code[0].Counts[profile.Loads] != 6 || c.Code[1].FirstLine != 20 {
		t.Errorf("blocks %+v", c.Code)
	}
	if c.Code[0].Function != c.Code[1].Function || c.Functions[0].Name != "f" {
		t.Errorf("functions %+v", c.Functions)
	}
	if !c.Touched || c.Usage[9] != 8 || c.Usage[10] != 80 || c.UniqueBytes != 80 {
		t.Errorf("memory usage %v and %d unique bytes, want the usages 8 and 80, and 80 unique bytes", c.Usage, c.UniqueBytes)
	}
	if len(c.Tallies) != 2 || c.Tallies[0].Name != "64-bit integers" || c.Tallies[1].Kind != profile.StoreTypes {
		t.Errorf("types %+v", c.Tallies)
	}
}

// TestFixture checks that the file used by the command's tests contains the tables that the
// function table2 returns.
func TestFixture(t *testing.T) {
	const path = "testdata/table2.byfl"
	data := encode(table2()...)
	if *update {
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if kept, err := os.ReadFile(path); err != nil || string(kept) != string(data) {
		t.Errorf("%s does not contain these tables (%v); create it again with -update", path, err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(encode(table2()...))
	f.Fuzz(func(t *testing.T, data []byte) {
		tables, err := Read("t", data)
		if err != nil {
			return
		}
		if c, _, err := Counters(tables); err == nil {
			c.Program()
		}
	})
}
