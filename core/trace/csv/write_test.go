package csv

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
	"pgregory.net/rapid"
)

type described interface {
	trace.Reader
	trace.Describer
}

// The function "write" converts a trace to a table, in batches of the given number of rows, and
// returns the text.
func write(t tracetest.Failer, r described, rows int) string {
	t.Helper()
	var text bytes.Buffer
	w, b := NewWriter(&text), trace.NewBatch(rows)
	for r.Next(b) == nil {
		if err := w.Write(b, r.Header()); err != nil {
			t.Fatalf("%v", err)
		}
	}
	return text.String()
}

// TestWriteRoundTrip checks that a trace has the same rows and columns after it is written as a
// table and read again.
func TestWriteRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole := trace.NewBatch(100)
		if rapid.Bool().Draw(t, "threads") {
			whole.NeedThread()
		}
		if rapid.Bool().Draw(t, "PCs") {
			whole.NeedPC()
		}
		sized := rapid.Bool().Draw(t, "sizes")
		for range rapid.IntRange(1, 50).Draw(t, "references") {
			bytes := uint32(0)
			if sized {
				bytes = rapid.Uint32Range(1, 1<<32-1).Draw(t, "bytes")
			}
			kind := trace.Kind(rapid.IntRange(0, 3).Draw(t, "kind"))
			whole.Append(kind, rapid.Uint64().Draw(t, "address")>>1, bytes, rapid.Uint32().Draw(t, "thread"), rapid.Uint64().Draw(t, "PC"))
		}
		text := write(t, tracetest.NewReader(whole, 0), 7)
		r := NewReader("t", strings.NewReader(text))
		got, err := trace.ReadAll(r)
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		want := &trace.Batch{Addr: whole.Addr, Bytes: whole.Bytes, Kind: whole.Kind, Thread: whole.Thread, PC: whole.PC}
		if !reflect.DeepEqual(got, want) || r.Header().Sizes != sized {
			t.Fatalf("got\n%+v\nwant\n%+v\nin\n%s", got, want, text)
		}
		if again := write(t, NewReader("t", strings.NewReader(text)), 3); again != text {
			t.Fatalf("reading and writing the table again yields\n%s\nwant\n%s", again, text)
		}
	})
}

func TestWriteKinds(t *testing.T) {
	b := trace.NewBatch(8)
	for _, k := range []trace.Kind{trace.Load, trace.Store, trace.Modify, trace.Fetch, trace.RangeRead, trace.RangeWrite, trace.Barrier} {
		b.Append(k, 0x1f, 8, 0, 0)
	}
	want := "addr,rw,size\n0x1f,r,8\n0x1f,w,8\n0x1f,m,8\n0x1f,i,8\n0x1f,r,8\n0x1f,w,8\n"
	if got := write(t, tracetest.NewReader(b, 0), 0); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestColumnAppearsAfterFirstRows(t *testing.T) {
	w, b := NewWriter(&bytes.Buffer{}), tracetest.Lines(64, "a b")
	if err := w.Write(b, trace.Header{Sizes: true}); err != nil {
		t.Fatal(err)
	}
	if err := w.Write(b, trace.Header{Sizes: true, Threads: true}); err != ErrLateColumn {
		t.Errorf("Write = %v, want ErrLateColumn", err)
	}
}
