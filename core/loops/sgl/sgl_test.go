package sgl_test

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/loops/sgl"
	"github.com/stackglass/stackglass/core/open"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sgt"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// fold compresses a trace into a file.
func fold(t tracetest.Failer, r trace.Reader) *loops.Tree {
	t.Helper()
	f, b := loops.NewFolder(0), trace.NewBatch(0)
	for {
		if err := r.Next(b); err == io.EOF {
			return f.Finish()
		} else if err != nil {
			t.Fatalf("%v", err)
		}
		if err := f.Consume(b); err != nil {
			t.Fatalf("%v", err)
		}
	}
}

// openContent returns a reader of a file with the given content.
func openContent(t tracetest.Failer, file []byte, kinds trace.Kinds) *open.Trace {
	t.Helper()
	r, err := open.Open("t", bytes.NewReader(file), open.Options{})
	if err != nil {
		t.Fatalf("%v", err)
	}
	r.Select(kinds)
	return r
}

// write writes trees with the same header to a file.
func write(t tracetest.Failer, h trace.Header, trees ...*loops.Tree) []byte {
	t.Helper()
	var out bytes.Buffer
	w := sgl.NewWriter(&out)
	for _, tree := range trees {
		if err := w.Write(tree, h); err != nil {
			t.Fatalf("%v", err)
		}
	}
	if err := w.Close(h, sgt.End{How: "exit"}); err != nil {
		t.Fatalf("%v", err)
	}
	return out.Bytes()
}

// program returns a container with the trace of a program that has blocks, and the loop-compressed
// form of the same trace.
func program(t tracetest.Failer) (container, file []byte) {
	t.Helper()
	p := &trace.Program{
		Modules:   []trace.Module{{Name: "copy.c", Options: "-O2"}},
		Functions: []trace.Function{{Name: "copy", Place: trace.Place{File: "copy.c", Line: 2}, Blocks: 2}},
		Blocks: []trace.Block{
			{Label: "entry", Flags: trace.EntryBlock, File: "copy.c", FirstLine: 2, LastLine: 2, Successors: []uint32{1}},
			{Label: "loop", Flags: trace.HeaderBlock | trace.LatchBlock | trace.ReturnBlock, Loop: 2, Depth: 1, File: "copy.c", FirstLine: 3, LastLine: 3, Successors: []uint32{1}, Sites: 2},
		},
		Sites: []trace.Site{
			{Kind: trace.Load, Bytes: 8, Block: 1, Place: trace.Place{File: "copy.c", Line: 3, Column: 12}, Type: "i64", Object: "from"},
			{Kind: trace.Store, Bytes: 8, Block: 1, Place: trace.Place{File: "copy.c", Line: 3, Column: 10}, Type: "i64", Object: "to"},
		},
		Objects: []trace.Object{{Name: "from", Bytes: 48, Type: "[6 x i64]"}, {Name: "to", Bytes: 48, Type: "[6 x i64]"}},
	}
	var out bytes.Buffer
	w := sgt.NewWriter(&out, 64, []trace.Fact{{Name: "tool", Value: "test"}})
	if err := w.Module(sgt.AppendModule(nil, p)); err != nil {
		t.Fatalf("%v", err)
	}
	w.Objects(0, []trace.Addr{0x1000, 0x2000})
	w.Thread(trace.Thread{Number: 1, ID: 100, Name: "main"})
	w.Tags(0, []string{"first"})
	for range 3 {
		_ = w.Step(1, 1, 0, nil)
		for i := range uint64(6) {
			_ = w.Step(1, 1, 1, []uint64{0x1000 + 8*i, 0x2000 + 8*i})
		}
	}
	if err := w.Close(sgt.End{How: "exit"}); err != nil {
		t.Fatalf("%v", err)
	}
	r := openContent(t, out.Bytes(), trace.AllKinds|trace.EventKinds)
	tree := fold(t, r)
	return out.Bytes(), write(t, r.Header(), tree)
}

// batches returns all rows of a reader, and the error after the last row.
func batches(t tracetest.Failer, r trace.Reader) (*trace.Batch, error) {
	t.Helper()
	return trace.ReadAll(tracetest.Spoil(r))
}

// TestCompressedTraceEqualsTrace checks that a loop-compressed trace has the same program tables as
// the original trace and, for any selection of kinds, the same rows.
func TestCompressedTraceEqualsTrace(t *testing.T) {
	container, file := program(t)
	for _, kinds := range []trace.Kinds{
		trace.AllKinds, trace.DataKinds, trace.AllKinds | trace.EventKinds, 1 << trace.Store, 1 << trace.BlockEntry,
		1 << trace.BareBlock, trace.DataKinds | 1<<trace.BareBlock | 1<<trace.Call, 1 << trace.Fetch,
	} {
		a, b := openContent(t, container, kinds), openContent(t, file, kinds)
		want, wantErr := batches(t, a)
		got, err := batches(t, b)
		if err != wantErr {
			t.Errorf("%v: error %v, want %v", kinds, err, wantErr)
		}
		if !reflect.DeepEqual(got.Addr, want.Addr) || !reflect.DeepEqual(got.Kind, want.Kind) || !reflect.DeepEqual(got.Site, want.Site) || !reflect.DeepEqual(got.Thread, want.Thread) {
			t.Errorf("%v:\ngot  %+v\nwant %+v", kinds, got, want)
		}
		h := b.Header()
		if !reflect.DeepEqual(h.Program, a.Header().Program) {
			t.Errorf("%v: program %+v, want %+v", kinds, h.Program, a.Header().Program)
		}
		facts := []trace.Fact{{Name: "format", Value: "sgt"}, {Name: "tool", Value: "test"}}
		if h.Format != "sgl" || !h.Sites || !h.Threads || !h.Sizes || h.PCs || h.Sliced || !slices.Equal(h.Capture, facts) {
			t.Errorf("%v: header %+v", kinds, h)
		}
	}
}

func TestTreesAreConcatenated(t *testing.T) {
	_, file := program(t)
	tree, h, err := sgl.ReadTree("t", bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	again := write(t, h, tree, tree, tree)
	three, _, err := sgl.ReadTree("t", bytes.NewReader(again))
	if err != nil || three.Rows() != 3*tree.Rows() {
		t.Fatalf("%d rows, error %v, want 3 times %d rows", three.Rows(), err, tree.Rows())
	}
	b, err := batches(t, openContent(t, again, trace.AllKinds|trace.EventKinds))
	if err != nil || uint64(b.Len()) != 3*tree.Rows() {
		t.Fatalf("%d rows, error %v, want 3 times %d rows", b.Len(), err, tree.Rows())
	}
}

// TestTruncatedFile checks that, for a truncated file, the reader returns all trees before the end.
func TestTruncatedFile(t *testing.T) {
	_, file := program(t)
	tree, h, _ := sgl.ReadTree("t", bytes.NewReader(file))
	file = write(t, h, tree, tree)
	for n := 12; n < len(file); n++ {
		b, err := batches(t, sgl.NewReader("t", bytes.NewReader(file[:n])))
		damage, ok := errors.AsType[*trace.DamageError](err)
		if !ok || !damage.Cut || uint64(b.Len())%36 != 0 {
			t.Fatalf("file cut off at byte %d: %d rows, error %v, want the rows of complete trees and an error that reports truncation", n, b.Len(), err)
		}
	}
	for n := range file {
		broken := slices.Clone(file)
		broken[n] ^= 0x10
		if b, err := batches(t, sgl.NewReader("t", bytes.NewReader(broken))); err == nil {
			t.Fatalf("reading returned %d rows and no error, although byte %d is wrong", b.Len(), n)
		}
	}
}

func TestTooManyRecordsToExpand(t *testing.T) {
	n := loops.Nest{Items: []loops.Item{loops.Loop(1<<40, loops.Loop(1<<40, loops.Leaf(loops.Reference{Bytes: 8}, 0, 0, 8)))}}
	tree, err := n.Build()
	if err != nil {
		t.Fatal(err)
	}
	file := write(t, trace.Header{Sizes: true}, tree)
	_, err = batches(t, openContent(t, file, trace.AllKinds))
	want := "t: the loop-compressed trace has about 1.21e+24 records, too many to expand, want at most 2^48; analyse the compressed trace instead"
	if err == nil || err.Error() != want {
		t.Errorf("reading the trace: error %v, want %s", err, want)
	}
	got, _, err := sgl.ReadTree("t", bytes.NewReader(file))
	if err != nil || got.Approximately() != 1<<80 {
		t.Errorf("Approximately() = %g, error %v, want 2^80", got.Approximately(), err)
	}
}

func TestNewerVersion(t *testing.T) {
	file := sgt.AppendFrame(nil, "SGL.", []byte{3, 2})
	_, err := batches(t, sgl.NewReader("t", bytes.NewReader(file)))
	if err == nil || !strings.Contains(err.Error(), "t: container version 3 requires reader version 2 or later") {
		t.Errorf("error %v", err)
	}
}

func FuzzReader(f *testing.F) {
	_, file := program(f)
	f.Add(file)
	f.Fuzz(func(t *testing.T, file []byte) {
		r, b := sgl.NewReader("t", bytes.NewReader(file)), trace.NewBatch(64)
		for range 100 {
			if r.Next(b) != nil {
				break
			}
		}
		r.Header()
	})
}
