package sasmm

import (
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/ppt"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// The constants table and pptTrace are texts in Byfl's format. The function main forks twice, and a
// call interrupts the first block of main.
const table = `BasicBlock: aa: (main, entry)
BasicBlock: bb: (OUT__1__6545__, shared_trace)
BasicBlock: cc: (OUT__1__6545__, for.body)
BasicBlock: dd: (main, for.end)
`

const pptTrace = `BB START: aa
STORE: 0x1000
BB START: bb
LOAD: 0x2000
BB DONE: bb
BB START: cc
LOAD: 0x3000
STORE: 0x2000
BB DONE: cc
BB START: cc
LOAD: 0x3008
STORE: 0x4000
BB DONE: cc
BB START: cc
LOAD: 0x3010
BB DONE: cc
LOAD: 0x1000
BB DONE: aa
BB START: dd
LOAD: 0x3000
BB DONE: dd
BB START: cc
LOAD: 0x3018
BB DONE: cc
`

func files(t testing.TB) *Files {
	blocks, err := ppt.ParseBlocks("table", []byte(table))
	if err != nil {
		t.Fatal(err)
	}
	return &Files{Blocks: blocks}
}

func TestPPT(t *testing.T) {
	f := files(t)
	shared, err := f.Addresses(pptReader(pptTrace))
	if err != nil || !slices.Equal(shared, []trace.Addr{0x2000}) {
		t.Fatalf("shared addresses %x, %v", shared, err)
	}
	f.Shared = shared
	f.Counts = []ppt.BlockCount{{ID: "aa", Executions: 1}, {ID: "cc", Executions: 4}}
	f.Bounds = &ppt.Bounds{Low: 0x1000, High: 0x4000}
	m, err := f.Mark(pptReader(pptTrace))
	if err != nil {
		t.Fatal(err)
	}
	const other = 1 << 48 // the offset that is added to core 1's private addresses
	r, err := Private(m, Options{Cores: 2, Ranges: Ranges(shared)})
	if err != nil {
		t.Fatal(err)
	}
	got := drain(t, r, trace.DataKinds, 3)
	want := [][]trace.Addr{
		// The function shared_trace ran once, and its execution is copied. The block for.body ran
		// four times, so each core has two executions.
		{0x1000, 0x2000, 0x3000, 0x2000, 0x3008, 0x4000, 0x1000, 0x3000},
		{0x2000, 0x3010 | other, 0x3018 | other},
	}
	for core := range want {
		var addrs []trace.Addr
		for _, x := range ofThread(got, core) {
			addrs = append(addrs, x.Addr)
		}
		if !slices.Equal(addrs, want[core]) {
			t.Errorf("addresses of core %d = %x, want %x", core, addrs, want[core])
		}
	}
	m, err = f.Mark(pptReader(pptTrace))
	if err != nil {
		t.Fatal(err)
	}
	if r, err = Shared(m, Options{Cores: 2, Ranges: Ranges(shared)}); err != nil {
		t.Fatal(err)
	}
	var addrs []trace.Addr
	for _, x := range drain(t, r, trace.DataKinds, 0) {
		addrs = append(addrs, x.Addr)
	}
	wantShared := []trace.Addr{0x1000, 0x2000, 0x2000, 0x3000, 0x3010 | other, 0x2000, 0x3008, 0x3018 | other, 0x4000, 0x1000, 0x3000}
	if !slices.Equal(addrs, wantShared) {
		t.Errorf("addresses of the shared trace = %x, want %x", addrs, wantShared)
	}
}

// TestBlockNamesReplaceTable checks that a trace that contains block names needs no block table.
func TestBlockNamesReplaceTable(t *testing.T) {
	names := strings.NewReplacer("aa", "(main, entry)", "bb", "(OUT__1__6545__, shared_trace)", "cc", "(OUT__1__6545__, for.body)", "dd", "(main, for.end)")
	var all [2][]ref
	for i, text := range []string{pptTrace, names.Replace(pptTrace)} {
		f := files(t)
		if i == 1 {
			f.Blocks = nil
			f.Counts = []ppt.BlockCount{{ID: "(main, entry)", Executions: 1}, {ID: "(OUT__1__6545__, for.body)", Executions: 4}}
		}
		m, err := f.Mark(pptReader(text))
		if err != nil {
			t.Fatal(err)
		}
		r, err := Shared(m, Options{Cores: 3, PerRegion: true, Ranges: Ranges(nil)})
		if err != nil {
			t.Fatal(err)
		}
		all[i] = drain(t, r, trace.DataKinds|1<<trace.BlockEntry|1<<trace.ParallelBegin|1<<trace.ParallelEnd, 0)
		if r.Regions() != 2 {
			t.Errorf("%d regions, want 2", r.Regions())
		}
	}
	wantSame(t, "named", all[1], all[0])
}

func TestRanges(t *testing.T) {
	for _, c := range []struct {
		shared []trace.Addr
		want   []Range
	}{
		{nil, []Range{{0, math.MaxUint64}}},
		{[]trace.Addr{0, 1}, []Range{{2, math.MaxUint64}}},
		{[]trace.Addr{9, 4, 9, 5}, []Range{{0, 4}, {6, 9}, {10, math.MaxUint64}}},
		{[]trace.Addr{math.MaxUint64 - 1}, []Range{{0, math.MaxUint64 - 1}}},
		{[]trace.Addr{math.MaxUint64}, []Range{{0, math.MaxUint64}}},
	} {
		got := Ranges(c.shared)
		o := Options{Cores: 1, Ranges: got}
		if !slices.Equal(got, c.want) || o.Check() != nil {
			t.Errorf("Ranges(%x) = %x, want %x; Check: %v", c.shared, got, c.want, o.Check())
		}
	}
}

// TestMismatchedFiles checks that each kind of mismatch is reported.
func TestMismatchedFiles(t *testing.T) {
	for want, change := range map[string]func(f *Files){
		"is not in the block table":  func(f *Files) { f.Blocks = f.Blocks[:3] },
		"has no block of a parallel": func(f *Files) { f.Blocks = f.Blocks[:1] },
		"no block of a parallel region": func(f *Files) {
			f.Parallel = func(b ppt.BlockName) bool { return b.ID == "zz" }
			f.Blocks = append(f.Blocks, ppt.BlockName{ID: "zz"})
		},
		"1 of 2 shared addresses":        func(f *Files) { f.Shared = []trace.Addr{0x2000, 0x9999, 0x9999} },
		"runs 4 times in the trace":      func(f *Files) { f.Counts = []ppt.BlockCount{{ID: "cc", Executions: 5}} },
		"runs 0 times in the trace":      func(f *Files) { f.Counts = []ppt.BlockCount{{ID: "zz", Executions: 5}} },
		"address 0x1000 of the trace is": func(f *Files) { f.Bounds = &ppt.Bounds{Low: 0x1001, High: 0x9000} },
		"is named by a hash":             func(f *Files) { f.Blocks = nil },
	} {
		f := files(t)
		change(f)
		m, err := f.Mark(pptReader(pptTrace))
		if err == nil {
			var r *Reader
			if r, err = Private(m, Options{Cores: 2, Ranges: Ranges(nil)}); err != nil {
				t.Fatal(err)
			}
			for b := trace.NewBatch(5); err == nil; {
				err = r.Next(b)
			}
			if again := r.Next(trace.NewBatch(5)); again != err {
				t.Errorf("%s: then %v", want, again)
			}
		}
		var wrong *FilesError
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	f := files(t)
	f.IsShared = func(ppt.BlockName) bool { return false }
	if _, err := f.Addresses(pptReader(pptTrace)); err == nil {
		t.Error("Addresses accepted a table without labels of shared variables, want an error")
	}
	if _, err := f.Mark(tracetest.NewReader(tracetest.Lines(64, "a"), 0)); err == nil {
		t.Error("Mark accepted a trace without blocks, want an error")
	}
}

// FuzzPPT checks that no text causes a panic or an endless trace.
func FuzzPPT(f *testing.F) {
	f.Add(pptTrace, uint8(2), uint8(0))
	f.Add("BB START: cc\nLOAD: 0x1\nBB START: cc\nx\nLOAD: 0x2", uint8(3), uint8(7))
	f.Fuzz(func(t *testing.T, text string, cores, flags uint8) {
		o := Options{Cores: int(cores%5) + 1, PerRegion: flags&1 != 0, Guided: flags&2 != 0, Chunk: uint64(flags >> 5), LimitBytes: 1 << 16}
		if flags&16 != 0 {
			o.Ranges = Ranges([]trace.Addr{0x1000, 0x2000})
		}
		files := files(t)
		if flags&8 != 0 {
			files.Blocks = nil
		}
		m, err := files.Mark(pptReader(text))
		if err != nil {
			t.Fatal(err)
		}
		r, err := newReader(m, o, flags&4 != 0)
		if err != nil {
			t.Fatal(err)
		}
		r.Select(everything)
		b, rows, wrong := trace.NewBatch(7), 0, 0
		for {
			err := r.Next(b)
			if rows += b.Len(); trace.IsSyntax(err) {
				wrong++
			} else if err != nil {
				if again := r.Next(b); again != err && err != io.EOF {
					t.Fatalf("%v, then %v", err, again)
				}
				break
			}
			if rows > 20*len(text)+100 || wrong > len(text) {
				t.Fatalf("the reader returned %d rows and %d errors for %d bytes of text, and has not reached the end", rows, wrong, len(text))
			}
		}
	})
}
