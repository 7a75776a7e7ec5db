package lackey

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
	"pgregory.net/rapid"
)

type outcome = tracetest.Outcome

func reader(r io.Reader) trace.Reader { return NewReader("t", r) }

func ref(kind trace.Kind, addr trace.Addr, bytes uint32) outcome {
	return outcome{Ref: tracetest.Ref{Kind: kind, Addr: addr, Bytes: bytes}}
}

// The function "with" adds a PC to an outcome. It also adds a thread, unless the thread is 0.
func with(o outcome, pc trace.Addr, thread uint32) outcome {
	o.PC, o.Thread, o.HasThread = pc, thread, thread != 0
	return o
}

// The function "naive" is a reference implementation that reads lackey text line by line.
func naive(text string) (all []outcome) {
	var thread uint32
	var pc trace.Addr
	var threads bool
	text = strings.TrimPrefix(text, "\ufeff")
	for i, line := range strings.Split(text, "\n") {
		if _, sched, ok := strings.Cut(line, "--   SCHED["); ok && strings.HasPrefix(line, "--") {
			id, event, _ := strings.Cut(sched, "]:")
			n, err := strconv.ParseUint(id, 10, 32)
			if strings.HasPrefix(strings.Trim(event, " \t\r"), "acquired lock") && err == nil && id[0] != '+' {
				if uint32(n) != thread {
					pc = 0
				}
				thread, threads = uint32(n), true
			}
		}
		trimmed := strings.Trim(line, " \t\r")
		skip := trimmed == "" || strings.HasPrefix(line, "SB ") || strings.HasPrefix(line, "###")
		for _, prefix := range []string{"==", "--", "**"} {
			skip = skip || len(line) > 2 && strings.HasPrefix(line, prefix)
		}
		if skip {
			continue
		}
		r, ok := naiveReference(trimmed)
		if !ok {
			all = append(all, outcome{ErrorLine: i + 1})
			continue
		}
		if r.Kind == trace.Fetch {
			pc = r.Addr
		}
		r.Thread, r.HasThread, r.PC = thread, threads, pc
		all = append(all, r)
	}
	return all
}

func naiveReference(text string) (r outcome, ok bool) {
	fields := strings.FieldsFunc(text, func(c rune) bool { return c == ' ' || c == '\t' || c == '\r' })
	if len(fields) != 2 || len(fields[0]) != 1 || !strings.Contains("LSMI", fields[0]) {
		return r, false
	}
	addr, size, _ := strings.Cut(fields[1], ",")
	a, err1 := strconv.ParseUint(addr, 16, 64)
	n, err2 := strconv.ParseUint(size, 10, 32)
	signed := strings.ContainsAny(fields[1], "+-_")
	if err1 != nil || err2 != nil || signed || n > 0 && a > math.MaxUint64-(n-1) {
		return r, false
	}
	r.Kind = trace.Kind(strings.Index("LSMI", fields[0]))
	r.Addr, r.Bytes = a, uint32(n)
	return r, true
}

func TestLines(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []outcome
	}{
		{"kinds", "I  04001ab0,3\n L 1fff000708,8\n S 1fff000700,16\n M 0421c7f0,4\n", []outcome{
			with(ref(trace.Fetch, 0x4001ab0, 3), 0x4001ab0, 0),
			with(ref(trace.Load, 0x1fff000708, 8), 0x4001ab0, 0),
			with(ref(trace.Store, 0x1fff000700, 16), 0x4001ab0, 0),
			with(ref(trace.Modify, 0x421c7f0, 4), 0x4001ab0, 0),
		}},
		{"CRLF and no last newline", " L 1,8\r\n S 2,4", []outcome{ref(trace.Load, 1, 8), ref(trace.Store, 2, 4)}},
		{"byte order mark", "\ufeff L 1,8\n", []outcome{ref(trace.Load, 1, 8)}},
		{"all digits", " L ffffffffffffffff,1\n L 0123456789abcdef,0\n L ABCDEF0,123456\n", []outcome{
			ref(trace.Load, math.MaxUint64, 1), ref(trace.Load, 0x123456789abcdef, 0), ref(trace.Load, 0xabcdef0, 123456),
		}},
		{"beyond the address space", " L ffffffffffffffff,2\n L 8,8\n", []outcome{{ErrorLine: 1}, ref(trace.Load, 8, 8)}},
		{"17 digits", " L 1ffffffffffffffff,1\n L 00000000000000008,8\n", []outcome{{ErrorLine: 1}, ref(trace.Load, 8, 8)}},
		{"Valgrind's lines", "==1== Lackey\n--1-- x\n###\nSB 04001ab0\n**1** y\n\n L 8,8\n", []outcome{ref(trace.Load, 8, 8)}},
		{"threads", " L 1,1\n--1--   SCHED[2]:  acquired lock (x)\nI  00000010,4\n L 2,1\n" +
			"--1--   SCHED[2]: releasing lock (y)\n--1--   SCHED[1]:  acquired lock (x)\n L 3,1\n", []outcome{
			ref(trace.Load, 1, 1),
			with(ref(trace.Fetch, 16, 4), 16, 2),
			with(ref(trace.Load, 2, 1), 16, 2),
			with(ref(trace.Load, 3, 1), 0, 1),
		}},
		{"truncated in the last line", " L 8,8\n S 1f", []outcome{ref(trace.Load, 8, 8), {ErrorLine: 2}}},
		{"nothing", "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			tracetest.CheckText(t, c.text, reader, c.want)
			tracetest.CheckText(t, c.text, reader, naive(c.text))
		})
	}
}

// TestWrongByteAnywhere checks that the reader and the reference implementation agree if any byte
// in a line on the fast path is replaced with any other value.
func TestWrongByteAnywhere(t *testing.T) {
	tracetest.CheckWrongBytes(t, reader, naive, " L 8,8\n", " L 04001ab0,8\n", " S 1fff000708,16\n", "I  04001ab,3\r\n", " M 7ffe01234567,8\n", " L 0123456789abcdef,128\n")
}

func TestErrorMessages(t *testing.T) {
	tracetest.CheckLineErrors(t, NewReader, "a.lackey", " L 8,8", " S 8,8", map[string]string{
		"hello":                  `a.lackey:2: line "hello", want I, L, S or M, then address,bytes`,
		" X 10,8":                `a.lackey:2: line " X 10,8", want I, L, S or M, then address,bytes`,
		" L 10":                  `a.lackey:2: reference "10", want address,bytes`,
		" L 1g,8":                `a.lackey:2: address "1g", want 1 to 16 hexadecimal digits`,
		" L 12345678901234567,8": `a.lackey:2: address "12345678901234567", want at most 16 hexadecimal digits, because an address has 64 bits`,
		" L 10,":                 `a.lackey:2: bytes "", want a decimal number, at most 4294967295`,
		" L 10,4294967296":       `a.lackey:2: bytes "4294967296", want a decimal number, at most 4294967295`,
		" L ffffffffffffffff,8":  `a.lackey:2: reference "ffffffffffffffff,8", want a reference that ends within the 64-bit address space`,
	})
}

func TestLinesLongerThanTheBuffer(t *testing.T) {
	long := strings.Repeat("x", 300<<10)
	text := " L 1,1\n==9== Command: " + long + "\n L 2,1\n" + long + "\n L 3,1\n L 4,1" + strings.Repeat(" ", 300<<10)
	tracetest.CheckText(t, text, reader, []outcome{
		ref(trace.Load, 1, 1), ref(trace.Load, 2, 1), {ErrorLine: 4}, ref(trace.Load, 3, 1), {ErrorLine: 6},
	})
}

func TestRealTraces(t *testing.T) {
	for _, name := range tracetest.SmallTraces {
		if strings.HasSuffix(name, ".lackey") {
			t.Run(name, func(t *testing.T) { compare(t, string(tracetest.Small(name))) })
		}
	}
	r := NewReader("threads", bytes.NewReader(tracetest.Small("threads.lackey")))
	b, err := trace.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if h := r.Header(); !h.Threads || !h.PCs || !h.Sizes || h.Format != "lackey" {
		t.Errorf("header %+v", h)
	}
	rows := map[uint32]int{}
	for _, thread := range b.Thread {
		rows[thread]++
	}
	if len(rows) != 2 || rows[1] == 0 || rows[2] == 0 {
		t.Errorf("numbers of rows by thread: %v, want rows of threads 1 and 2", rows)
	}
}

func TestEqualsReference(t *testing.T) {
	line := rapid.OneOf(
		rapid.StringMatching(` [LSM] [0-9a-f]{8,12},[0-9]{1,2}`),
		rapid.StringMatching(`I  [0-9a-f]{8,10},[0-9]`),
		rapid.StringMatching(`[ \t]{0,2}[LSMIX][ \t]{0,3}[0-9a-fA-F]{0,18},?[0-9]{0,12}[ \r]{0,2}`),
		rapid.StringMatching(`(==|--|\*\*|###|SB )[0-9a-z]{0,3}`),
		rapid.StringMatching(`--1--   SCHED\[[0-9]{1,2}\]: ( acquired|releasing) lock`),
		rapid.StringMatching(` L ffffffffffffff[0-9a-f]{2},[0-9]{1,3}`),
		rapid.StringMatching(`[ -~]{0,30}`),
	)
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(line, 0, 20).Draw(t, "lines"), "\n")
		for range rapid.IntRange(0, 2).Draw(t, "mutations") {
			if len(text) > 0 {
				at := rapid.IntRange(0, len(text)-1).Draw(t, "at")
				text = text[:at] + string(rapid.Byte().Draw(t, "byte")) + text[at+1:]
			}
		}
		compare(t, text)
	})
}

func compare(t tracetest.Failer, text string) {
	t.Helper()
	tracetest.CheckText(t, text, reader, naive(text))
}

func TestStreamWithReadError(t *testing.T) {
	broken := errors.New("the disk is gone")
	r := NewReader("t", io.MultiReader(strings.NewReader(" L 1,1\n L 2,1\n L 3"), iotest.ErrReader(broken)))
	b := trace.NewBatch(0)
	if err := r.Next(b); err != nil || b.Len() != 2 {
		t.Fatalf("Next: %d rows, error %v, want the two whole lines", b.Len(), err)
	}
	for range 3 {
		if err := r.Next(b); err != broken || b.Len() != 0 {
			t.Fatalf("Next: %d rows, error %v, want the error of the stream", b.Len(), err)
		}
	}
}

func TestNoAllocations(t *testing.T) {
	for _, name := range []string{"threads.lackey", "data.lackey"} {
		tracetest.CheckAllocations(t, testing.AllocsPerRun, NewReader(name, tracetest.Endless(tracetest.Small(name))))
	}
}

func FuzzLackey(f *testing.F) {
	for _, name := range tracetest.SmallTraces {
		f.Add(string(tracetest.Small(name)))
	}
	f.Add(" L 1ffffffffffffffff,1\r\n--1--   SCHED[2]:  acquired lock\nI  8,8\n S ffffffffffffffff,2")
	f.Fuzz(func(t *testing.T, text string) { compare(t, text) })
}

func BenchmarkRead(b *testing.B) {
	for _, name := range append(tracetest.RealTraces, "data.lackey", "threads.lackey") {
		b.Run(name, func(b *testing.B) {
			var text []byte
			if strings.HasSuffix(name, ".lackey") {
				text = bytes.Repeat(tracetest.Small(name), 4000)
			} else {
				text = tracetest.RealText(b, name, 32<<20)
			}
			tracetest.BenchmarkReader(b, NewReader, text)
		})
	}
}
