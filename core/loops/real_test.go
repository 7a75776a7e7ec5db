package loops

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/open"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// beginning reads the first rows of a file, with all of its events.
func beginning(t testing.TB, path string, most int) (all []*trace.Batch) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r, err := open.Open(path, file, open.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r.Select(trace.EventKinds)
	for rows := 0; rows < most; {
		b := trace.NewBatch(0)
		if err := r.Next(b); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		rows += b.Len()
		all = append(all, b)
	}
	return all
}

// foldAll folds batches and wants their rows back.
func foldAll(t testing.TB, batches []*trace.Batch) *Tree {
	t.Helper()
	f := NewFolder(0)
	var want []row
	for _, b := range batches {
		if err := f.Consume(b); err != nil {
			t.Fatal(err)
		}
		want = append(want, rowsIn(b)...)
	}
	tree := f.Finish()
	same(t, unfold(t, tree, 1000), want)
	return tree
}

func TestRealTracesComeBack(t *testing.T) {
	for _, name := range tracetest.RealTraces {
		t.Run(name, func(t *testing.T) {
			tree := foldAll(t, beginning(t, tracetest.RealPath(t, name), 400_000))
			t.Logf("%d rows, %+v", tree.Rows(), tree.Size())
		})
	}
}

func TestDemosComeBack(t *testing.T) {
	demos, err := filepath.Glob("../../site/demos/*.sgt")
	if err != nil || len(demos) == 0 {
		t.Fatalf("no demos: %v", err)
	}
	for _, demo := range demos {
		t.Run(filepath.Base(demo), func(t *testing.T) {
			tree := foldAll(t, beginning(t, demo, 400_000))
			t.Logf("%d rows, %+v", tree.Rows(), tree.Size())
		})
	}
}
