package sgt

import (
	"bytes"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pierrec/lz4/v4"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/lackey"
	"github.com/stackglass/stackglass/core/trace/ppt"
	"github.com/stackglass/stackglass/core/trace/tracetest"
	"pgregory.net/rapid"
)

type described interface {
	trace.Reader
	trace.Describer
}

// The function "imported" converts a trace to a container.
func imported(t failer, r described, full chunkSize) []byte {
	t.Helper()
	var out bytes.Buffer
	m, b := NewImporter(&out, nil), trace.NewBatch(100)
	m.w.full = full
	for {
		err := r.Next(b)
		if err == io.EOF {
			break
		}
		if err == nil {
			err = m.Write(b, r.Header())
		}
		if err != nil {
			t.Fatalf("%v", err)
		}
	}
	if err := m.Close(End{How: "converted"}); err != nil {
		t.Fatalf("%v", err)
	}
	return out.Bytes()
}

// sameTrace checks that a container has the same references and columns as a trace, and no other
// columns.
func sameTrace(t failer, r *Reader, want *trace.Batch) {
	t.Helper()
	got, err := trace.ReadAll(r)
	if err != nil {
		t.Fatalf("%v", err)
	}
	if got.Len() == 0 && want.Len() == 0 {
		return
	}
	got.Site = nil
	if !reflect.DeepEqual(got, &trace.Batch{Addr: want.Addr, Bytes: want.Bytes, Kind: want.Kind, Thread: want.Thread, PC: want.PC}) {
		for i := range min(got.Len(), want.Len()) {
			if got.Addr[i] != want.Addr[i] || got.Bytes[i] != want.Bytes[i] || got.Kind[i] != want.Kind[i] {
				t.Fatalf("reference %d is a %v of %d bytes at %#x, want a %v of %d bytes at %#x", i, got.Kind[i], got.Bytes[i], got.Addr[i], want.Kind[i], want.Bytes[i], want.Addr[i])
			}
		}
		t.Fatalf("%d references, want %d; has threads: %v, want %v; has PCs: %v, want %v", got.Len(), want.Len(), got.Thread != nil, want.Thread != nil, got.PC != nil, want.PC != nil)
	}
}

// someReferences returns a random trace in which loops over a few streams alternate with arbitrary
// references.
func someReferences(t *rapid.T) *trace.Batch {
	whole := trace.NewBatch(100)
	if rapid.Bool().Draw(t, "threads") {
		whole.NeedThread()
	}
	hasPC := rapid.Bool().Draw(t, "PCs")
	if hasPC {
		whole.NeedPC()
	}
	sized := rapid.Bool().Draw(t, "sizes")
	for range rapid.IntRange(0, 10).Draw(t, "loops") {
		thread := rapid.Uint32Range(0, 2).Draw(t, "thread")
		type stream struct {
			kind         trace.Kind
			addr, stride trace.Addr
			bytes        uint32
			pc           trace.Addr
		}
		var streams []stream
		for range rapid.IntRange(1, 4).Draw(t, "streams") {
			s := stream{
				kind: trace.Kind(rapid.IntRange(0, int(trace.NumKinds)-1).Draw(t, "kind")),
				addr: rapid.Uint64().Draw(t, "address"), stride: rapid.SampledFrom([]uint64{0, 8, 64, ^uint64(3)}).Draw(t, "stride"),
			}
			if sized {
				s.bytes = rapid.SampledFrom([]uint32{8, 4, 1, 0, 1<<32 - 1}).Draw(t, "bytes")
			}
			if hasPC {
				s.pc = rapid.SampledFrom([]uint64{0, 0x400000, 0x400004, 1 << 63}).Draw(t, "PC")
			}
			streams = append(streams, s)
		}
		for range rapid.SampledFrom([]int{1, 2, 50}).Draw(t, "turns") {
			for i := range streams {
				s := &streams[i]
				whole.Append(s.kind, s.addr, s.bytes, thread, s.pc)
				s.addr += s.stride
			}
		}
	}
	return whole
}

func TestImportLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := someReferences(t)
		in := tracetest.NewReader(want, 0)
		r := NewReader("t", bytes.NewReader(imported(t, in, someChunks(t))), Options{})
		if want.PC != nil && !reflect.ValueOf(want.PC).IsZero() && allZero(want.PC) {
			want.PC = nil // the PCs are dropped, because the instructions are unknown
		}
		sameTrace(t, r, want)
		if want.Len() == 0 {
			return
		}
		if h, was := r.Header(), in.Header(); h.Sizes != was.Sizes || h.Threads != was.Threads {
			t.Fatalf("header %+v, want the columns of %+v", h, was)
		}
	})
}

func allZero(column []trace.Addr) bool {
	for _, v := range column {
		if v != 0 {
			return false
		}
	}
	return true
}

func TestImportSmallTraces(t *testing.T) {
	for _, name := range []string{"threads.lackey", "blocks.lackey", "data.lackey"} {
		text := tracetest.Small(name)
		want, err := trace.ReadAll(lackey.NewReader("t", bytes.NewReader(text)))
		if err != nil {
			t.Fatal(err)
		}
		file := imported(t, lackey.NewReader("t", bytes.NewReader(text)), usualChunks)
		sameTrace(t, NewReader("t", bytes.NewReader(file), Options{}), want)
		for _, f := range factsOf(t, file) {
			if f == (trace.Fact{Name: "format", Value: "lackey"}) {
				name = ""
			}
		}
		if name != "" {
			t.Errorf("the facts do not contain the format of %s", name)
		}
	}
}

func factsOf(t failer, file []byte) []trace.Fact {
	t.Helper()
	s, err := Look(NewReader("t", bytes.NewReader(file), Options{}))
	if err != nil {
		t.Fatalf("%v", err)
	}
	return s.Header.Capture
}

// TestImportBlocks checks that, if a trace with block entries is converted, the container contains
// these entries and the block of each reference.
func TestImportBlocks(t *testing.T) {
	text := "LOAD: 0x8\nBB START: (main, entry)\nLOAD: 0x10\nSTORE: 0x18\nBB START: (callee, entry)\nSTORE: 0x20\nBB DONE: (callee, entry)\n" +
		"LOAD: 0x28\nBB DONE: (main, entry)\n" + strings.Repeat("BB START: (main, loop)\n"+strings.Repeat("LOAD: 0x1000\n", 70)+"BB DONE: (main, loop)\n", 3) +
		"BB START: (main, loop)\nBB DONE: (main, loop)\n"
	const kinds = trace.DataKinds | 1<<trace.BlockEntry
	type told struct {
		kind            trace.Kind
		addr            trace.Addr
		function, label string
		part            uint32
	}
	read := func(r described) (all []told) {
		r.(trace.Selector).Select(kinds)
		b := trace.NewBatch(0)
		for r.Next(b) == nil {
			p := r.Header().Program
			for i, k := range b.Kind {
				row := told{kind: k, addr: b.Addr[i]}
				if b.Site == nil {
					all = append(all, row)
					continue
				}
				block := b.Site[i]
				if k != trace.BlockEntry {
					block = p.Sites[block].Block
				}
				row.label, row.part = p.Blocks[block].Label, p.Blocks[block].Part
				if f := p.Blocks[block].Function; f != trace.NoFunction {
					row.function = p.Functions[f].Name
				}
				all = append(all, row)
			}
		}
		return all
	}
	in := ppt.NewReader("t", strings.NewReader(text))
	in.Select(kinds)
	file := imported(t, in, chunkSize{bytes: 1 << 20, steps: 3})
	want := read(ppt.NewReader("t", strings.NewReader(text)))
	got := read(NewReader("t", bytes.NewReader(file), Options{}))
	if !slices.Equal(got, want) {
		t.Errorf("got\n%v\nwant\n%v", got, want)
	}
	if faults, _ := faultsOf(t, file); len(faults) > 0 {
		t.Errorf("faults %q", faults)
	}
}

// realFile converts a large real trace to a container.
func realFile(t tracetest.TB, name string) []byte {
	t.Helper()
	f, err := os.Open(tracetest.RealPath(t, name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return imported(t.(failer), lackey.NewReader(name, lz4.NewReader(f)), usualChunks)
}

func TestImportRealTraces(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: -short")
	}
	for name, most := range map[string]float64{"gemm": 0.01, "jacobi2d": 0.01, "sort": 0.4} {
		file := realFile(t, name)
		f, err := os.Open(tracetest.RealPath(t, name))
		if err != nil {
			t.Fatal(err)
		}
		want, err := trace.ReadAll(lackey.NewReader(name, lz4.NewReader(f)))
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		sameTrace(t, NewReader(name, bytes.NewReader(file), Options{}), want)
		if size := float64(len(file)) / float64(want.Len()); size > most {
			t.Errorf("%s takes %.4f bytes per reference, want at most %v", name, size, most)
		}
	}
}
