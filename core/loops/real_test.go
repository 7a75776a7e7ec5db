package loops_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/loops/sgl"
	"github.com/stackglass/stackglass/core/open"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sgt"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// reader opens a file, and selects all kinds of events.
func reader(t testing.TB, path string) *open.Trace {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	r, err := open.Open(path, file, open.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r.Select(trace.AllKinds | trace.EventKinds)
	return r
}

// comesBack folds a file, encodes the tree, and checks that the rows can be restored.
func comesBack(t *testing.T, path string) {
	var out bytes.Buffer
	r, f, batch := reader(t, path), sgl.NewFolding(&out, 0), trace.NewBatch(0)
	var plain loops.Plain
	for {
		if err := r.Next(batch); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if err := f.Write(batch, r.Header()); err != nil {
			t.Fatal(err)
		}
		plain.Add(batch)
	}
	if err := f.Close(r.Header(), sgt.End{How: "exit"}); err != nil {
		t.Fatal(err)
	}
	file := out.Bytes()
	tree, _, err := sgl.ReadTree(path, bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	got, err := open.Open(path, bytes.NewReader(file), open.Options{})
	if err != nil {
		t.Fatal(err)
	}
	got.Select(trace.AllKinds | trace.EventKinds)
	want := reader(t, path)
	a, b := trace.NewBatch(0), trace.NewBatch(0)
	var rows uint64
	for {
		_ = want.Next(a)
		if a.Len() == 0 {
			break
		}
		for at := 0; at < a.Len(); {
			part := trace.NewBatch(a.Len() - at)
			if err := got.Next(part); err != nil {
				t.Fatalf("Next after row %d: %v", rows, err)
			}
			end := at + part.Len()
			if a.View(b, at, end); !equal(part, b) {
				t.Fatalf("rows %d to %d differ from the original rows", rows+uint64(at), rows+uint64(end))
			}
			at = end
		}
		rows += uint64(a.Len())
	}
	if err := got.Next(a); err != io.EOF {
		t.Fatalf("Next after the last row = %v, want io.EOF", err)
	}
	form := tree.Append(nil)
	t.Logf("%d rows, %+v, a tree of %d bytes from a file of %d bytes, %.4f times the plain form", tree.Rows(), tree.Size(), len(form), len(file), float64(len(form))/float64(len(plain.Form())))
	if most := len(plain.Form()); 20*len(form) > 21*most {
		t.Errorf("the tree takes %d bytes, want at most 1.05 times %d", len(form), most)
	}
	if again, err := loops.Decode(tree.Append(nil)); err != nil || !bytes.Equal(again.Append(nil), tree.Append(nil)) {
		t.Fatalf("decoding the encoded tree yields a different tree or an error: %v", err)
	}
}

// equal reports whether the restored rows equal the original rows. If the original rows have no
// sites, the function ignores the sites of the restored rows, because the folder assigns sites to
// such rows.
func equal(a, b *trace.Batch) bool {
	return slices.Equal(a.Addr, b.Addr) && slices.Equal(a.Bytes, b.Bytes) && slices.Equal(a.Kind, b.Kind) &&
		slices.Equal(a.Thread, b.Thread) && slices.Equal(a.PC, b.PC) && (b.Site == nil || slices.Equal(a.Site, b.Site)) && alikeArgs(a.Arg, b.Arg)
}

// alikeArgs reports whether two Arg columns are equal. It treats a missing column as a column of
// zeros.
func alikeArgs(a, b []uint64) bool {
	for i := range max(len(a), len(b)) {
		if (a != nil && a[i] != 0 || b != nil && b[i] != 0) && (a == nil || b == nil || a[i] != b[i]) {
			return false
		}
	}
	return true
}

func TestRealTracesRoundTrip(t *testing.T) {
	for _, name := range tracetest.RealTraces {
		t.Run(name, func(t *testing.T) { comesBack(t, tracetest.RealPath(t, name)) })
	}
}

func TestDemosRoundTrip(t *testing.T) {
	demos, err := filepath.Glob("../../site/demos/*.sgt")
	if err != nil || len(demos) == 0 {
		t.Fatalf("there are no demos: %v", err)
	}
	for _, demo := range demos {
		t.Run(filepath.Base(demo), func(t *testing.T) { comesBack(t, demo) })
	}
}
