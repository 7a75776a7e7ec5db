package ppt

import (
	"bytes"
	"io"
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

// rows parses a text and returns a description of each row, such as "load 10 main.entry", "block
// main.entry+1" or "error 7".
func rows(t tracetest.Failer, text string, kinds trace.Kinds, batch int) (all []string) {
	r := NewReader("t", strings.NewReader(text))
	r.Select(kinds)
	s, b := tracetest.Spoil(r), trace.NewBatch(batch)
	name := func(p *trace.Program, block uint32) string {
		if block == 0 {
			return "outside"
		}
		x := p.Blocks[block]
		n := "." + x.Label
		if x.Function != trace.NoFunction {
			n = p.Functions[x.Function].Name + n
		}
		if x.Part > 0 {
			n += "+" + strconv.Itoa(int(x.Part))
		}
		return n
	}
	for {
		err := s.Next(b)
		if wrong, ok := err.(*trace.SyntaxError); ok {
			all = append(all, "error "+strconv.Itoa(wrong.Line))
			continue
		}
		if err == io.EOF {
			return all
		}
		if err != nil || b.Len() == 0 {
			t.Fatalf("%d rows, %v", b.Len(), err)
		}
		p := r.Header().Program
		for i, kind := range b.Kind {
			what := kind.String()
			switch {
			case kind == trace.BlockEntry:
				what += " " + name(p, b.Site[i])
			case b.Site == nil:
				what += " " + strconv.FormatUint(b.Addr[i], 16)
			default:
				site := p.Sites[b.Site[i]]
				if site.Kind != kind || site.Flags != trace.NoSize {
					t.Fatalf("a %v refers to the site %+v", kind, site)
				}
				what += " " + strconv.FormatUint(b.Addr[i], 16) + " " + name(p, site.Block)
			}
			all = append(all, what)
		}
	}
}

const everything = trace.DataKinds | 1<<trace.BlockEntry

// The function "naive" is a simple reference implementation that parses each line separately and
// maintains a list of open blocks.
func naive(text string) (all []string) {
	type running struct {
		label  string
		part   int
		called bool
	}
	name := func(r running) string {
		n := "." + r.label
		if inner, ok := strings.CutPrefix(r.label, "("); ok && strings.HasSuffix(inner, ")") {
			if i := strings.LastIndex(inner, ","); i >= 0 {
				n = strings.Trim(inner[:i], " \t\r") + "." + strings.Trim(strings.TrimSuffix(inner[i+1:], ")"), " \t\r")
			}
		}
		if r.part > 0 {
			n += "+" + strconv.Itoa(r.part)
		}
		return n
	}
	var open []running
	labelled := false
	for i, line := range strings.Split(strings.TrimPrefix(text, "\ufeff"), "\n") {
		line = strings.Trim(line, " \t\r")
		wrong := "error " + strconv.Itoa(i+1)
		if line == "" {
			continue
		}
		if label, ok := strings.CutPrefix(line, "BB START: "); ok {
			labelled = true
			open = append(open, running{label: strings.Trim(label, " \t\r")})
			all = append(all, "block "+name(open[len(open)-1]))
			continue
		}
		if label, ok := strings.CutPrefix(line, "BB DONE: "); ok {
			at := -1
			for j, r := range open {
				if r.label == strings.Trim(label, " \t\r") {
					at = j
				}
			}
			if at < 0 {
				all = append(all, wrong)
				continue
			}
			if open = open[:at]; at > 0 {
				open[at-1].called = true
			}
			continue
		}
		kind, digits := "load", line
		for prefix, k := range map[string]string{"LOAD: ": "load", "LD: ": "load", "STORE: ": "store", "ST: ": "store"} {
			if after, ok := strings.CutPrefix(line, prefix); ok {
				kind, digits = k, strings.Trim(after, " \t\r")
			}
		}
		addr, hex := strings.CutPrefix(digits, "0x")
		v, err := strconv.ParseUint(addr, 16, 64)
		if !hex || err != nil || strings.ContainsAny(addr, "+-_") {
			all = append(all, wrong)
			continue
		}
		where := ""
		if n := len(open); n > 0 {
			if open[n-1].called {
				open[n-1].called = false
				open[n-1].part++
				all = append(all, "block "+name(open[n-1]))
			}
			where = " " + name(open[n-1])
		} else if labelled {
			where = " outside"
		}
		all = append(all, kind+" "+strconv.FormatUint(v, 16)+where)
	}
	return all
}

func compare(t tracetest.Failer, text string) {
	t.Helper()
	want := naive(text)
	for _, batch := range []int{1, 3, 200} {
		if got := rows(t, text, everything, batch); !slices.Equal(got, want) {
			t.Fatalf("%d rows per batch: got\n%q, want\n%q, text\n%q", batch, got, want, text)
		}
	}
	want = slices.DeleteFunc(want, func(s string) bool { return strings.HasPrefix(s, "block ") })
	if got := rows(t, text, trace.DataKinds, 7); !slices.Equal(got, want) {
		t.Fatalf("references only: got\n%q, want\n%q, text\n%q", got, want, text)
	}
}

const small = `LOAD: 0x1
BB START: b2f3727763ed2e86
STORE: 0x7ffd96666320
BB START: (callee, entry)
LD: 0x10  
BB DONE: (callee, entry)
BB START: (callee, exit)
BB DONE: (callee, exit)

ST: 0x20
0x30
BB DONE: b2f3727763ed2e86
LOAD: 0x2
`

func TestLines(t *testing.T) {
	want := []string{
		"load 1", "block .b2f3727763ed2e86", "store 7ffd96666320 .b2f3727763ed2e86",
		"block callee.entry", "load 10 callee.entry", "block callee.exit",
		"block .b2f3727763ed2e86+1", "store 20 .b2f3727763ed2e86+1", "load 30 .b2f3727763ed2e86+1", "load 2 outside",
	}
	if got := rows(t, small, everything, 0); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	compare(t, small)
	r := NewReader("t", strings.NewReader(small))
	if _, err := trace.ReadAll(r); err != nil {
		t.Fatal(err)
	}
	h := r.Header()
	if h.Format != "ppt" || !h.Sites || h.Sizes || len(h.Program.Functions) != 1 {
		t.Errorf("header %+v", h)
	}
}

func TestAllExecutionsShareParts(t *testing.T) {
	once := "BB START: a\n0x1\nBB START: f\nBB DONE: f\n0x2\nBB START: f\nBB DONE: f\n0x3\nBB DONE: a\n"
	r := NewReader("t", strings.NewReader(once+once))
	if _, err := trace.ReadAll(r); err != nil {
		t.Fatal(err)
	}
	if p := r.Header().Program; len(p.Blocks) != 5 || len(p.Sites) != 3 {
		t.Errorf("%d blocks and %d sites, want 5 blocks (outside, three parts of a, and f) and 3 sites", len(p.Blocks), len(p.Sites))
	}
	compare(t, once+once)
}

func TestJumpOutOfCalls(t *testing.T) {
	compare(t, "BB START: a\nBB START: b\nBB START: c\n0x1\nBB DONE: a\n0x2\nBB DONE: c\n")
}

func TestOnlySelectedKinds(t *testing.T) {
	got := rows(t, small, 1<<trace.Store|1<<trace.BlockEntry, 2)
	want := slices.DeleteFunc(naive(small), func(s string) bool { return strings.HasPrefix(s, "load ") })
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestMemoryIsLimited checks that neither endless nesting nor an endless number of labels exhausts
// the memory.
func TestMemoryIsLimited(t *testing.T) {
	r := NewReader("t", strings.NewReader(strings.Repeat("BB START: a\n", 3*deepest)+"0x1\n"))
	if b, err := trace.ReadAll(r); err != nil || b.Len() != 1 {
		t.Fatalf("%d rows, %v", b.Len(), err)
	}
	if n := len(r.parse.blocks.open); n > deepest || n < deepest/2 {
		t.Errorf("the reader tracks %d executions, want at most %d", n, deepest)
	}
	blocks := newBlocks()
	for i := range mostBlocks + 5 {
		_, wrong := blocks.begin([]byte(strconv.Itoa(i)))
		if beyond := i >= mostBlocks-1; (wrong != nil) != beyond {
			t.Fatalf("block %d: unexpected error %v", i, wrong)
		}
	}
	blocks.end([]byte("1"))
	if blocks.resume(); len(blocks.program.Blocks) != mostBlocks {
		t.Errorf("%d blocks, want %d", len(blocks.program.Blocks), mostBlocks)
	}
}

func TestErrorMessages(t *testing.T) {
	tracetest.CheckLineErrors(t, NewReader, "a", "0x1", "0x2", map[string]string{
		"hello":        `a:2: line "hello", want an address with 0x, alone or after LOAD:, STORE:, LD: or ST:, or a block after BB START: or BB DONE:`,
		"LOAD: 10":     `a:2: address "10", want 0x and 1 to 16 hexadecimal digits`,
		"BB DONE: x":   `a:2: BB DONE "x", want a block that has begun but not ended`,
		"BB START: \t": `a:2: line "BB START:", want an address with 0x, alone or after LOAD:, STORE:, LD: or ST:, or a block after BB START: or BB DONE:`,
	})
}

func TestRecognise(t *testing.T) {
	tracetest.CheckRecognise(t, Recognise, map[string]string{
		small: "", "\n\n0x10\n": "", "": "the file contains no reference",
		"0 1000\n": `line 1: line "0 1000"`, "addr\n0x1\n": `line 1: line "addr"`, "0x1: R 0x2\n": `line 1: address "0x1: R 0x2"`,
	})
}

func TestEqualsReference(t *testing.T) {
	line := rapid.OneOf(
		rapid.StringMatching(`(LOAD: |STORE: |LD: |ST: |)0x[0-9a-f]{1,12}`),
		rapid.StringMatching(`BB (START|DONE): [abc]`),
		rapid.StringMatching(`BB (START|DONE): \((f|g\(int, int\)), [ab]\)`),
		rapid.StringMatching(`BB (START|DONE): [ ()a,]{0,4}`),
		rapid.StringMatching(`[LSBT]{0,2}: (0x)?[0-9a-fg]{0,17}[ \r]{0,2}`),
		rapid.StringMatching(`[ -~]{0,20}`),
	)
	rapid.Check(t, func(t *rapid.T) { compare(t, strings.Join(rapid.SliceOfN(line, 0, 25).Draw(t, "lines"), "\n")) })
}

// TestWrongByteAnywhere checks that the reader and the reference implementation agree if any byte
// in a line on the fast path is replaced with any other value.
func TestWrongByteAnywhere(t *testing.T) {
	for _, line := range []string{"LOAD: 0x7ffe01234567\n", "STORE: 0xfedcba9876543210\n", "0x401ab0\n"} {
		for at := range line {
			for c := range 256 {
				text := line[:at] + string([]byte{byte(c)}) + line[at+1:] + "0x2\n"
				if got, want := rows(t, text, everything, 4), naive(text); !slices.Equal(got, want) {
					t.Fatalf("rows of %q = %q, want %q", text, got, want)
				}
			}
		}
	}
}

func TestLongLine(t *testing.T) {
	tracetest.CheckText(t, "0x1\n"+strings.Repeat("x", 300<<10)+"\n0x2\n", reader, []outcome{
		{Ref: tracetest.Ref{Addr: 1}}, {ErrorLine: 2}, {Ref: tracetest.Ref{Addr: 2}},
	})
}

func TestNoAllocations(t *testing.T) {
	r := NewReader("t", tracetest.Endless([]byte(small)))
	r.Select(everything)
	tracetest.CheckAllocations(t, testing.AllocsPerRun, r)
}

func FuzzPPT(f *testing.F) {
	f.Add(small)
	f.Add("BB START: a\nBB START: b\nBB START: c\n0x1\nBB DONE: a\n0x2\nBB DONE: c\n")
	f.Fuzz(func(t *testing.T, text string) {
		Recognise([]byte(text))
		compare(t, text)
	})
}

func BenchmarkRead(b *testing.B) {
	tracetest.BenchmarkReader(b, NewReader, bytes.Repeat([]byte(small), 10000))
}
