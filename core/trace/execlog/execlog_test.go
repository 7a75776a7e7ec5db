package execlog

import (
	"bytes"
	"io"
	"os"
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

const small = `0, 0x401745, 0xc0315741, "xorl %eax, %eax"
0, 0x40174a, 0xfffab1e8, "callq 0x401200", store, 0x40007ffdf8
1, 0x40174f, 0x243c8b48, "movq (%rsp), %rdi", load, 0x00002000, RAM
1, 0x401750, 0x1, "addl %eax, (%rsi)", load, 0x3000, store, 0x3000, rax -> 0x00000010
`

// The function "naive" is a simple reference implementation that parses each line with package
// strings.
func naive(text string) (all []outcome) {
	for i, line := range strings.Split(strings.TrimPrefix(text, "\ufeff"), "\n") {
		if line = strings.TrimRight(line, " \t\r"); line != "" {
			rows, ok := naiveLine(line)
			if !ok {
				rows = []outcome{{ErrorLine: i + 1}}
			}
			all = append(all, rows...)
		}
	}
	return all
}

func naiveLine(line string) (rows []outcome, ok bool) {
	parts := strings.SplitN(line, ",", 4)
	if len(parts) < 4 {
		return nil, false
	}
	processor := strings.Trim(parts[0], " \t\r")
	thread, err := strconv.ParseUint(processor, 10, 32)
	pc, ok1 := naiveAddress(parts[1])
	_, ok2 := naiveAddress(parts[2])
	quoted := strings.SplitN(parts[3], `"`, 3)
	if err != nil || processor[0] == '+' || !ok1 || !ok2 || len(quoted) < 3 || strings.Trim(quoted[0], " \t\r") != "" {
		return nil, false
	}
	row := func(kind trace.Kind, addr trace.Addr) {
		rows = append(rows, outcome{Ref: tracetest.Ref{Kind: kind, Addr: addr, PC: pc, Thread: uint32(thread)}, HasThread: true})
	}
	row(trace.Fetch, pc)
	fields := strings.Split(quoted[2], ",")
	if strings.Trim(fields[0], " \t\r") != "" {
		return nil, false
	}
	for fields = fields[1:]; len(fields) > 0; fields = fields[1:] {
		kind := map[string]trace.Kind{"load": trace.Load, "store": trace.Store}
		if k, found := kind[strings.Trim(fields[0], " \t\r")]; found {
			if len(fields) < 2 {
				return nil, false
			}
			addr, ok := naiveAddress(fields[1])
			if !ok {
				return nil, false
			}
			row(k, addr)
			fields = fields[1:]
		}
	}
	return rows, true
}

func naiveAddress(s string) (trace.Addr, bool) {
	digits, found := strings.CutPrefix(strings.Trim(s, " \t\r"), "0x")
	v, err := strconv.ParseUint(digits, 16, 64)
	return v, found && err == nil && !strings.ContainsAny(digits, "+-_")
}

func compare(t tracetest.Failer, text string) {
	t.Helper()
	tracetest.CheckText(t, text, reader, naive(text))
}

func TestLines(t *testing.T) {
	row := func(kind trace.Kind, addr, pc trace.Addr, thread uint32) outcome {
		return outcome{Ref: tracetest.Ref{Kind: kind, Addr: addr, PC: pc, Thread: thread}, HasThread: true}
	}
	tracetest.CheckText(t, small, reader, []outcome{
		row(trace.Fetch, 0x401745, 0x401745, 0),
		row(trace.Fetch, 0x40174a, 0x40174a, 0), row(trace.Store, 0x40007ffdf8, 0x40174a, 0),
		row(trace.Fetch, 0x40174f, 0x40174f, 1), row(trace.Load, 0x2000, 0x40174f, 1),
		row(trace.Fetch, 0x401750, 0x401750, 1), row(trace.Load, 0x3000, 0x401750, 1), row(trace.Store, 0x3000, 0x401750, 1),
	})
	compare(t, small)
	compare(t, strings.ReplaceAll(small, "\n", " \r\n\r\n"))
}

func TestErrorMessages(t *testing.T) {
	tracetest.CheckLineErrors(t, NewReader, "a", `0, 0x1, 0x2, "nop"`, `0, 0x1, 0x2, "nop"`, map[string]string{
		"hello":                         `a:2: processor "hello", want a decimal number, at most 4294967295`,
		`4294967296, 0x1, 0x2, "x"`:     `a:2: processor "4294967296", want a decimal number, at most 4294967295`,
		`0, 401000, 0x1, "nop"`:         `a:2: instruction "401000", want 0x and 1 to 16 hexadecimal digits`,
		`0, 0x1, x, "nop"`:              `a:2: opcode "x", want 0x and 1 to 16 hexadecimal digits`,
		`0, 0x1, 0x2, nop`:              `a:2: disassembly " nop", want text in quotes, and a comma if references follow`,
		`0, 0x1, 0x2, "nop" load, 0x3`:  `a:2: disassembly " \"nop\" load, 0x3", want text in quotes, and a comma if references follow`,
		`0, 0x1, 0x2, "nop", load, RAM`: `a:2: address "RAM", want 0x and 1 to 16 hexadecimal digits`,
		`0, 0x1, 0x2, "nop", load`:      `a:2: address "", want 0x and 1 to 16 hexadecimal digits`,
	})
}

func TestRecognise(t *testing.T) {
	tracetest.CheckRecognise(t, Recognise, map[string]string{
		small: "", "\n" + small: "", "\n": "the file contains no instruction",
		"addr,rw\n0x1,r\n": `line 1: processor "addr"`, "0 1000\n": `line 1: processor "0 1000"`,
	})
}

func TestEqualsReference(t *testing.T) {
	line := rapid.OneOf(
		rapid.StringMatching(`[0-9], 0x[0-9a-f]{1,12}, 0x[0-9a-f]{1,8}, "[a-z %,]{0,9}"(, (load|store), 0x[0-9a-f]{1,12}){0,4}`),
		rapid.StringMatching(`[ 0-9]{0,2}, ?(0x)?[0-9a-f]{0,3},? ?0x[0-9a-f]{0,3},? ?"?[a-z %,]{0,3}"? ?(,? ?(load|store|RAM|rax -> 0x1), ?(0x)?[0-9a-f]{0,4}){0,4}[ ,\r]{0,2}`),
		rapid.StringMatching(`[ -~]{0,20}`),
	)
	rapid.Check(t, func(t *rapid.T) { compare(t, strings.Join(rapid.SliceOfN(line, 0, 20).Draw(t, "lines"), "\n")) })
}

func TestLongLine(t *testing.T) {
	text := "0, 0x1, 0x2, \"nop\"\n" + strings.Repeat("x", 300<<10) + "\n0, 0x1, 0x2, \"nop\"\n"
	row := outcome{Ref: tracetest.Ref{Kind: trace.Fetch, Addr: 1, PC: 1}, HasThread: true}
	tracetest.CheckText(t, text, reader, []outcome{row, {ErrorLine: 2}, row})
}

func TestNoAllocations(t *testing.T) {
	tracetest.CheckAllocations(t, testing.AllocsPerRun, NewReader("t", tracetest.Endless([]byte(small))))
}

func FuzzExeclog(f *testing.F) {
	f.Add(small)
	f.Fuzz(func(t *testing.T, text string) {
		Recognise([]byte(text))
		compare(t, text)
	})
}

func BenchmarkRead(b *testing.B) {
	tracetest.BenchmarkReader(b, NewReader, bytes.Repeat([]byte(small), 20000))
}

// TestRecording reads what QEMU wrote for testdata/loop.S, and compares it with the references that
// the program makes. QEMU reports a load of 16 bytes as two loads.
func TestRecording(t *testing.T) {
	f, err := os.Open("testdata/loop.log")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := trace.ReadAll(NewReader("loop.log", f))
	if err != nil {
		t.Fatal(err)
	}
	const table, stack = 0x402000, 0x4000800838
	var want []string
	add := func(kind trace.Kind, addr trace.Addr) {
		want = append(want, kind.String()+" "+strconv.FormatUint(addr, 16))
	}
	for x := trace.Addr(table); x < table+32; x += 8 {
		add(trace.Load, x)
		add(trace.Store, x)
		add(trace.Load, x+1)
		add(trace.Load, x)
		add(trace.Load, x+8)
		add(trace.Store, stack)
		add(trace.Load, stack)
	}
	var got []string
	fetches := 0
	for i, kind := range b.Kind {
		if kind == trace.Fetch {
			fetches++
		} else {
			got = append(got, kind.String()+" "+strconv.FormatUint(b.Addr[i], 16))
		}
	}
	if instructions := 2 + 4*7 + 3; fetches != instructions || !slices.Equal(got, want) {
		t.Errorf("got %d instructions and the references %v, want %d and %v", fetches, got, instructions, want)
	}
}
