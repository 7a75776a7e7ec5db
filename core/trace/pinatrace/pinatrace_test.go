package pinatrace

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

const small = "0x7f3acd1ead50: R 0x7f3acd0bde84\n0x7f3acd1ead53: W 0x7ffc5d8ea1b8\r\n\n0x10: R 0xffffffffffffffff\n#eof\n"

// The function "naive" is a simple reference implementation that parses each line with package
// strings.
func naive(text string) (all []outcome) {
	for i, line := range strings.Split(strings.TrimPrefix(text, "\ufeff"), "\n") {
		line = strings.Trim(line, " \t\r")
		if line == "" || line[0] == '#' {
			continue
		}
		ip, after, colon := strings.Cut(line, ":")
		fields := strings.FieldsFunc(after, func(c rune) bool { return c == ' ' || c == '\t' || c == '\r' })
		o := outcome{ErrorLine: i + 1}
		if len(fields) == 2 && colon {
			pc, ok1 := naiveAddress(ip)
			addr, ok2 := naiveAddress(fields[1])
			if kind := strings.Index("RW", fields[0]); ok1 && ok2 && kind >= 0 && len(fields[0]) == 1 {
				o = outcome{Ref: tracetest.Ref{Kind: trace.Kind(kind), Addr: addr, PC: pc}}
			}
		}
		all = append(all, o)
	}
	return all
}

func naiveAddress(s string) (trace.Addr, bool) {
	digits, found := strings.CutPrefix(s, "0x")
	v, err := strconv.ParseUint(digits, 16, 64)
	return v, found && err == nil && !strings.ContainsAny(digits, "+-_")
}

func compare(t tracetest.Failer, text string) {
	t.Helper()
	tracetest.CheckText(t, text, reader, naive(text))
}

func TestLines(t *testing.T) {
	row := func(kind trace.Kind, addr, pc trace.Addr) outcome {
		return outcome{Ref: tracetest.Ref{Kind: kind, Addr: addr, PC: pc}}
	}
	tracetest.CheckText(t, small, reader, []outcome{
		row(trace.Load, 0x7f3acd0bde84, 0x7f3acd1ead50), row(trace.Store, 0x7ffc5d8ea1b8, 0x7f3acd1ead53), row(trace.Load, 1<<64-1, 0x10),
	})
	compare(t, small)
}

func TestErrorMessages(t *testing.T) {
	tracetest.CheckLineErrors(t, NewReader, "a", "0x1: R 0x2", "0x1: W 0x2", map[string]string{
		"hello":                           `a:2: line "hello", want instruction: R or W address`,
		"401000: R 0x10":                  `a:2: instruction "401000", want 0x and 1 to 16 hexadecimal digits`,
		"0x401000: X 0x10":                `a:2: kind "X", want R or W`,
		"0x401000: R":                     `a:2: address "", want 0x and 1 to 16 hexadecimal digits`,
		"0x401000: R 0x10000000000000000": `a:2: address "0x10000000000000000", want at most 16 hexadecimal digits, because an address has 64 bits`,
	})
}

func TestRecognise(t *testing.T) {
	tracetest.CheckRecognise(t, Recognise, map[string]string{
		small: "", "#begin\n" + small: "", "#eof\n": "the file contains no reference",
		" L 04001ab0,8\n": `line 1: line "L 04001ab0,8"`, "\n0x1: r 0x2": `line 2: kind "r"`,
	})
}

func TestEqualsReference(t *testing.T) {
	line := rapid.OneOf(
		rapid.StringMatching(`0x[0-9a-f]{1,12}: [RW] 0x[0-9a-f]{1,16}`),
		rapid.StringMatching(`[ \t]{0,2}(0x)?[0-9a-fA-F]{0,17}:?[ \t]{0,2}[RWX]{0,2}[ \t]{0,2}(0x)?[0-9a-fA-Fg]{0,17}[ \r]{0,2}`),
		rapid.StringMatching(`#?[ -~]{0,20}`),
	)
	rapid.Check(t, func(t *rapid.T) { compare(t, strings.Join(rapid.SliceOfN(line, 0, 20).Draw(t, "lines"), "\n")) })
}

// TestWrongByteAnywhere checks that the reader and the reference implementation agree if any byte
// in a line on the fast path is replaced with any other value.
func TestWrongByteAnywhere(t *testing.T) {
	tracetest.CheckWrongBytes(t, reader, naive, "0x1: R 0x2\n", "0x401ab0: R 0x7ffe01234567\n", "0x0123456789abcdef: W 0xfedcba9876543210\n")
}

func TestLongLine(t *testing.T) {
	compareLong := "0x1: R 0x2\n" + strings.Repeat("x", 300<<10) + "\n0x1: W 0x2\n"
	tracetest.CheckText(t, compareLong, reader, []outcome{
		{Ref: tracetest.Ref{Kind: trace.Load, Addr: 2, PC: 1}}, {ErrorLine: 2}, {Ref: tracetest.Ref{Kind: trace.Store, Addr: 2, PC: 1}},
	})
}

func TestNoAllocations(t *testing.T) {
	tracetest.CheckAllocations(t, testing.AllocsPerRun, NewReader("t", tracetest.Endless([]byte(small))))
}

func FuzzPinatrace(f *testing.F) {
	f.Add(small)
	f.Fuzz(func(t *testing.T, text string) {
		Recognise([]byte(text))
		compare(t, text)
	})
}

func BenchmarkRead(b *testing.B) {
	tracetest.BenchmarkReader(b, NewReader, bytes.Repeat([]byte("0x7f3acd1ead50: R 0x7f3acd0bde84\n"), 50000))
}
