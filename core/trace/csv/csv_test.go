package csv

import (
	"bytes"
	stdcsv "encoding/csv"
	"errors"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
	"pgregory.net/rapid"
)

type outcome = tracetest.Outcome

func reader(r io.Reader) trace.Reader { return NewReader("t", r) }

func ref(kind trace.Kind, addr trace.Addr, bytes, thread uint32, pc trace.Addr) outcome {
	return outcome{Ref: tracetest.Ref{Kind: kind, Addr: addr, Bytes: bytes, Thread: thread, PC: pc}, HasThread: thread != 0}
}

const header = "addr,tid,pc,rw,size"

// The function "naive" is a reference implementation. It reads each line after [header] separately,
// with the standard library.
func naive(lines []string) (all []outcome) {
	for i, line := range lines {
		line = strings.TrimRight(line, "\r")
		if strings.Trim(line, " \t\r") == "" {
			continue
		}
		o, ok := naiveLine(line)
		if !ok {
			o = outcome{ErrorLine: i + 2}
		}
		all = append(all, o)
	}
	return all
}

func naiveLine(line string) (o outcome, ok bool) {
	r := stdcsv.NewReader(strings.NewReader(line))
	r.TrimLeadingSpace = true
	fields, err := r.Read()
	if err != nil || len(fields) != 5 {
		return o, false
	}
	for i := range fields {
		fields[i] = strings.Trim(fields[i], " \t\r")
	}
	numbers, bits := [5]uint64{}, [5]int{64, 32, 64, 0, 32}
	for i, field := range fields {
		if bits[i] == 0 || field == "" && (i == 2 || i == 4) {
			continue
		}
		base, digits := 10, field
		if strings.HasPrefix(strings.ToLower(field), "0x") {
			base, digits = 16, field[2:]
		}
		if numbers[i], err = strconv.ParseUint(digits, base, bits[i]); err != nil || strings.ContainsAny(digits, "+-_") {
			return o, false
		}
	}
	kinds := map[string]trace.Kind{
		"r": trace.Load, "l": trace.Load, "load": trace.Load, "read": trace.Load, "0": trace.Load,
		"w": trace.Store, "s": trace.Store, "store": trace.Store, "write": trace.Store, "1": trace.Store,
		"m": trace.Modify, "modify": trace.Modify, "update": trace.Modify, "rw": trace.Modify,
		"i": trace.Fetch, "f": trace.Fetch, "fetch": trace.Fetch, "ifetch": trace.Fetch, "x": trace.Fetch, "2": trace.Fetch,
	}
	kind, ok := kinds[strings.ToLower(fields[3])]
	if !ok || numbers[4] > 0 && numbers[0] > math.MaxUint64-(numbers[4]-1) {
		return o, false
	}
	o = ref(kind, numbers[0], uint32(numbers[4]), uint32(numbers[1]), numbers[2])
	o.HasThread = true
	return o, true
}

func TestTables(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []outcome
	}{
		{"all columns", header + "\n0x10,1,0x400,r,8\n32,2,,store,0x4\n", []outcome{
			ref(trace.Load, 16, 8, 1, 0x400), ref(trace.Store, 32, 4, 2, 0),
		}},
		{"a different order, and unknown columns", "time;SIZE;Kind;Address\n1;8;M;0x10\n2;;fetch;0x20\n", []outcome{
			ref(trace.Modify, 16, 8, 0, 0), ref(trace.Fetch, 32, 0, 0, 0),
		}},
		{"addresses only", "address\r\n\r\n0x10\r\n32", []outcome{ref(trace.Load, 16, 0, 0, 0), ref(trace.Load, 32, 0, 0, 0)}},
		{"tabs", "\ufeffaddr\tis_write\n1\t0\n2\t1\n", []outcome{ref(trace.Load, 1, 0, 0, 0), ref(trace.Store, 2, 0, 0, 0)}},
		{"quotes", "\"addr\", \"note, with comma\",rw\n\"0x10\",\"a \"\"b\"\", c\",\"W\"\n 0x20 , , w \n", []outcome{
			ref(trace.Store, 16, 0, 0, 0), ref(trace.Store, 32, 0, 0, 0),
		}},
		{"wrong rows", "addr,size\n1\n1,2,3\n-1,2\n0x,2\nff,2\n1,4294967296\n18446744073709551616,1\n18446744073709551615,2\n\"1,2\n\"1\"x,2\n,1\n7,8\n", []outcome{
			{ErrorLine: 2}, {ErrorLine: 3}, {ErrorLine: 4}, {ErrorLine: 5}, {ErrorLine: 6}, {ErrorLine: 7},
			{ErrorLine: 8}, {ErrorLine: 9}, {ErrorLine: 10}, {ErrorLine: 11}, {ErrorLine: 12}, ref(trace.Load, 7, 8, 0, 0),
		}},
		{"header only", header, nil},
	} {
		t.Run(c.name, func(t *testing.T) { tracetest.CheckText(t, c.text, reader, c.want) })
	}
}

func TestErrorMessages(t *testing.T) {
	for line, want := range map[string]string{
		"1,2":          `a.csv:2: line "1,2", want 5 fields, as in the header, got 2`,
		"abc,1,2,r,4":  `a.csv:2: address "abc", want a number of at most 64 bits, decimal or hexadecimal with 0x`,
		"1,x,2,r,4":    `a.csv:2: thread "x", want a number of at most 32 bits, decimal or hexadecimal with 0x`,
		"1,1,2,q,4":    `a.csv:2: kind "q", want r, w, m, i, load, store, modify or fetch`,
		`1,1,2,"r,4`:   `a.csv:2: quoted field "\"r,4", want a closing quote on the same line`,
		`"1" 2,1,2,r,`: `a.csv:2: text after a quoted field "2,1,2,r,", want a separator or the end of the line`,
	} {
		r := NewReader("a.csv", strings.NewReader(header+"\n"+line+"\n1,1,1,w,1\n"))
		b := trace.NewBatch(0)
		if err := r.Next(b); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
		if err := r.Next(b); err != nil || b.Len() != 1 || b.Kind[0] != trace.Store {
			t.Errorf("the line after %q: %d rows, error %v, want one store", line, b.Len(), err)
		}
	}
}

func TestHeaderErrorsAreFinal(t *testing.T) {
	for text, want := range map[string]string{
		"tid,rw\n1,r\n":                         `a.csv:1: header "tid,rw": there is no column of addresses, want a column named addr, and optionally tid, pc, rw and size`,
		"addr,address\n1,2\n":                   `a.csv:1: header "addr,address": there are two columns for addr, want one column`,
		"addr,cpu,core\n1,2,3\n":                `a.csv:1: header "addr,cpu,core": there are two columns for core, want one column`,
		"\"addr\n":                              `a.csv:1: header "\"addr": the closing quote of a name is missing, want a closing quote on the same line`,
		"addr" + strings.Repeat(",", 70) + "\n": `a.csv:1: header "addr` + strings.Repeat(",", 70) + `": there are too many columns, want at most 64`,
	} {
		r := NewReader("a.csv", strings.NewReader(text))
		b := trace.NewBatch(0)
		for range 2 {
			err := r.Next(b)
			var wrong *HeaderError
			if !errors.As(err, &wrong) || err.Error() != want || b.Len() != 0 {
				t.Errorf("%d rows, error\n%v, want no rows and the error\n%s", b.Len(), err, want)
			}
		}
	}
}

// TestCores checks that a column of cores is read as threads only if there is no column of threads.
func TestCores(t *testing.T) {
	for text, want := range map[string]uint32{
		"cpu,addr\n7,1\n":        7,
		"cpu,addr,tid\n7,1,4\n":  4,
		"TID,addr,Core\n4,1,7\n": 4,
	} {
		rows, err := trace.ReadAll(NewReader("t", strings.NewReader(text)))
		if err != nil || rows.Len() != 1 || rows.Thread[0] != want {
			t.Errorf("%q: %+v, error %v, want thread %d", text, rows, err, want)
		}
	}
}

func TestHeader(t *testing.T) {
	r := NewReader("t", strings.NewReader("addr,tid\n1,2\n"))
	if _, err := trace.ReadAll(r); err != nil {
		t.Fatal(err)
	}
	if h := r.Header(); !reflect.DeepEqual(h, trace.Header{Format: "csv", Threads: true}) {
		t.Errorf("Header() = %+v, want only threads", h)
	}
}

func compare(t tracetest.Failer, lines []string) {
	t.Helper()
	tracetest.CheckText(t, header+"\n"+strings.Join(lines, "\n"), reader, naive(lines))
}

func TestEqualsReference(t *testing.T) {
	line := rapid.OneOf(
		rapid.StringMatching(`0x[0-9a-f]{1,16},[0-9]{1,2},0x[0-9a-f]{1,16},[rwmi],[0-9]{1,3}`),
		rapid.StringMatching(` ?(0x)?[0-9a-f]{0,18} ?,"?[0-9]{0,11}"?,[0-9]{0,21},(load|Store|W|q|)?,[0-9]{0,11},?\r?`),
		rapid.StringMatching(`1844674407370955161[0-9],1,,r,[0-9]`),
		rapid.StringMatching(`[ -~]{0,20}`),
	)
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(line, 0, 20).Draw(t, "lines")
		for i, l := range lines {
			if len(l) > 0 && rapid.IntRange(0, 3).Draw(t, "mutate") == 0 {
				at := rapid.IntRange(0, len(l)-1).Draw(t, "at")
				lines[i] = l[:at] + string(rapid.ByteRange(' ', '~').Draw(t, "byte")) + l[at+1:]
			}
		}
		compare(t, lines)
	})
}

// TestWrongByteAnywhere checks that the reader and the reference implementation agree if any byte
// in a line on the fast path is replaced with any printable character.
func TestWrongByteAnywhere(t *testing.T) {
	for _, row := range []string{"0x1fff000708,12,0x4001ab0,r,8", "137438953472,0x7,12,w,0x10", "18446744073709551615,4294967295,0,i,1", "0x8,4294967296,,m,4294967295"} {
		for at := range row {
			for c := byte(' '); c <= '~'; c++ {
				lines := []string{row[:at] + string([]byte{c}) + row[at+1:], "1,1,1,r,1"}
				got := tracetest.Outcomes(t, reader(strings.NewReader(header+"\n"+strings.Join(lines, "\n"))), 4)
				if want := naive(lines); !slices.Equal(got, want) {
					t.Fatalf("%q: got %+v, want %+v", lines, got, want)
				}
			}
		}
	}
}

func TestRealTrace(t *testing.T) {
	lines := strings.Split(string(tracetest.Small("small.csv")), "\n")
	compare(t, lines[1:])
}

func TestNoAllocations(t *testing.T) {
	rows := "0x10,1,0x400,r,8\n\"0x20\",2,,\"store\",4\n"
	r := NewReader("t", io.MultiReader(strings.NewReader(header+"\n"), tracetest.Endless([]byte(rows))))
	tracetest.CheckAllocations(t, testing.AllocsPerRun, r)
}

func FuzzCSV(f *testing.F) {
	for _, name := range tracetest.SmallTraces {
		f.Add(string(tracetest.Small(name)))
	}
	f.Add("\"addr\";bytes;rw\n\"0x1\"\"0\";8;r\n1;2;\"w\"\r\n;;\n\"")
	f.Fuzz(func(t *testing.T, text string) {
		r := NewReader("t", strings.NewReader(text))
		b := trace.NewBatch(7)
		var wrong *HeaderError
		for calls := 0; ; calls++ {
			err := r.Next(b)
			if err == io.EOF || errors.As(err, &wrong) {
				break
			}
			if calls > 2*len(text)+2 {
				t.Fatalf("the trace does not end after %d calls of Next", calls)
			}
		}
		if wrong == nil {
			tracetest.CheckText(t, text, reader, tracetest.Outcomes(t, NewReader("t", strings.NewReader(text)), 0))
		}
		// Compare the rows with the reference implementation only if all characters are printable
		// ASCII, because the reference implementation treats some other characters as blanks.
		if strings.IndexFunc(text, func(c rune) bool { return c != '\n' && (c < ' ' || c > '~') }) < 0 {
			compare(t, strings.Split(text, "\n"))
		}
	})
}

func BenchmarkRead(b *testing.B) {
	small := tracetest.Small("small.csv")
	first := bytes.IndexByte(small, '\n') + 1
	tracetest.BenchmarkReader(b, NewReader, slices.Concat(small[:first], bytes.Repeat(small[first:], 10000)))
}
