package din

import (
	"bytes"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
	"pgregory.net/rapid"
)

type outcome = tracetest.Outcome

func reader(r io.Reader) trace.Reader { return NewReader("t", r) }

func ref(kind trace.Kind, addr trace.Addr) outcome {
	return outcome{Ref: tracetest.Ref{Kind: kind, Addr: addr}}
}

func sized(o outcome, bytes uint32) outcome {
	o.Bytes = bytes
	return o
}

// The function "naive" is a reference implementation that reads a din trace line by line.
func naive(text string) (all []outcome) {
	for i, line := range strings.Split(strings.TrimPrefix(text, "\ufeff"), "\n") {
		fields := strings.FieldsFunc(line, func(c rune) bool { return c == ' ' || c == '\t' || c == '\r' })
		if len(fields) == 0 || fields[0] == "3" || fields[0] == "4" {
			continue
		}
		label := strings.Index("012", fields[0])
		if len(fields[0]) != 1 || label < 0 || len(fields) < 2 {
			all = append(all, outcome{ErrorLine: i + 1})
			continue
		}
		digits := fields[1]
		if lower := strings.ToLower(digits); len(digits) > 2 && strings.HasPrefix(lower, "0x") {
			digits = digits[2:]
		}
		addr, err := strconv.ParseUint(digits, 16, 64)
		if err != nil || strings.ContainsAny(digits, "+-_") {
			all = append(all, outcome{ErrorLine: i + 1})
			continue
		}
		o := ref([]trace.Kind{trace.Load, trace.Store, trace.Fetch}[label], addr)
		if len(fields) == 3 && len(fields[2]) <= 3 && fields[2][0] >= '0' && fields[2][0] <= '9' && !strings.ContainsAny(fields[2], "+-_") {
			size, err := strconv.ParseUint(fields[2], 16, 32)
			if err == nil && size > 0 && addr+size-1 < addr {
				all = append(all, outcome{ErrorLine: i + 1})
				continue
			} else if err == nil {
				o.Bytes = uint32(size)
			}
		}
		all = append(all, o)
	}
	return all
}

func compare(t tracetest.Failer, text string) {
	t.Helper()
	tracetest.CheckText(t, text, reader, naive(text))
}

func TestLines(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []outcome
	}{
		{"labels", "0 1fff000708\n1 0x10\n2 04001ab0\n3 0\n4\n0 8\n", []outcome{
			ref(trace.Load, 0x1fff000708), ref(trace.Store, 16), ref(trace.Fetch, 0x4001ab0), ref(trace.Load, 8),
		}},
		{"further fields", "0 10 4 whatever\n 1\t0X20 8\r\n0 30 7fff0\n0 40 load\n1 50 10\n0 60 0\n0 70 add\n0 fffffffffffffffe 2\n0 fffffffffffffffe 3\n", []outcome{
			ref(trace.Load, 16), sized(ref(trace.Store, 32), 8), ref(trace.Load, 48), ref(trace.Load, 64), sized(ref(trace.Store, 80), 16), ref(trace.Load, 96), ref(trace.Load, 112),
			sized(ref(trace.Load, 1<<64-2), 2), {ErrorLine: 9},
		}},
		{"widths", "0 ffffffffffffffff\n0 0x0123456789abcdef\n0 1ffffffffffffffff\n0 00000000000000010\n0 0x\n0 0", []outcome{
			ref(trace.Load, 1<<64-1), ref(trace.Load, 0x123456789abcdef), {ErrorLine: 3}, ref(trace.Load, 16), {ErrorLine: 5}, ref(trace.Load, 0),
		}},
		{"CRLF", "0 10\r\n\r\n1 20\r\n", []outcome{ref(trace.Load, 16), ref(trace.Store, 32)}},
		{"truncated in the last line", "0 10\n1", []outcome{ref(trace.Load, 16), {ErrorLine: 2}}},
		{"no address", "0 \r\n1 \n2\n", []outcome{{ErrorLine: 1}, {ErrorLine: 2}, {ErrorLine: 3}}},
		{"nothing", "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			tracetest.CheckText(t, c.text, reader, c.want)
			compare(t, c.text)
		})
	}
}

// TestWrongByteAnywhere checks that the reader and the reference implementation agree if any byte
// in a line on the fast path is replaced with any other value.
func TestWrongByteAnywhere(t *testing.T) {
	tracetest.CheckWrongBytes(t, reader, naive, "0 8\n", "0 4001ab\n", "1 1fff000708\r\n", "2 0x04001ab0\n", "0 0123456789abcdef\n")
}

func TestErrorMessages(t *testing.T) {
	tracetest.CheckLineErrors(t, NewReader, "app.din", "0 8", "1 8", map[string]string{
		"7 10":                `app.din:2: label "7", want 0 to 4`,
		"r 10":                `app.din:2: label "r", want 0 to 4`,
		"0":                   `app.din:2: address "", want 1 to 16 hexadecimal digits`,
		"0 xyz":               `app.din:2: address "xyz", want 1 to 16 hexadecimal digits`,
		"0 12345678901234567": `app.din:2: address "12345678901234567", want at most 16 hexadecimal digits, because an address has 64 bits`,
	})
}

func TestEqualsReference(t *testing.T) {
	line := rapid.OneOf(
		rapid.StringMatching(`[0-2] [0-9a-f]{1,16}`),
		rapid.StringMatching(`[ \t]?[0-5][ \t]{1,2}(0[xX])?[0-9a-fA-F]{0,18}( [0-9]{1,3})?\r?`),
		rapid.StringMatching(`[ -~]{0,20}`),
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

func TestRealTrace(t *testing.T) { compare(t, string(tracetest.Small("small.din"))) }

func TestNoAllocations(t *testing.T) {
	tracetest.CheckAllocations(t, testing.AllocsPerRun, reader(tracetest.Endless(tracetest.Small("small.din"))))
}

func FuzzDin(f *testing.F) {
	for _, name := range tracetest.SmallTraces {
		f.Add(string(tracetest.Small(name)))
	}
	f.Add("0 0x1ffffffffffffffff 1\r\n4\n2\t8\n0 0x")
	f.Fuzz(func(t *testing.T, text string) { compare(t, text) })
}

func BenchmarkRead(b *testing.B) {
	tracetest.BenchmarkReader(b, NewReader, bytes.Repeat(tracetest.Small("small.din"), 4000))
}
