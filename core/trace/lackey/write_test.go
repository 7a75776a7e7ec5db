package lackey

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
	"pgregory.net/rapid"
)

// The function "write" converts a trace to lackey text, in batches of the given number of rows, and
// returns the text.
func write(t tracetest.Failer, r trace.Reader, rows int) string {
	t.Helper()
	var text bytes.Buffer
	w, b := NewWriter(&text), trace.NewBatch(rows)
	for r.Next(b) == nil {
		if err := w.Write(b); err != nil {
			t.Fatalf("%v", err)
		}
	}
	return text.String()
}

func readWhole(t tracetest.Failer, text string) *trace.Batch {
	t.Helper()
	b, err := trace.ReadAll(NewReader("t", strings.NewReader(text)))
	if err != nil {
		t.Fatalf("%v", err)
	}
	return b
}

// TestReadWriteRoundTrip checks that a lackey trace is unchanged after it is written and read
// again. If the original text has exactly the format that lackey writes, the written text must be
// equal to it.
func TestReadWriteRoundTrip(t *testing.T) {
	for _, name := range []string{"threads.lackey", "blocks.lackey", "data.lackey"} {
		want := readWhole(t, string(tracetest.Small(name)))
		text := write(t, NewReader("t", bytes.NewReader(tracetest.Small(name))), 100)
		if got := readWhole(t, text); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: the written trace differs from the original trace", name)
		}
		if name == "data.lackey" && !strings.Contains(string(tracetest.Small(name)), text) {
			t.Errorf("%s: the written text differs", name)
		}
	}
}

// TestWriteRoundTrip checks that writing a trace as text and reading it again loses only the PCs.
func TestWriteRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole, threads := trace.NewBatch(100), rapid.Bool().Draw(t, "threads")
		if threads {
			whole.NeedThread()
		}
		for range rapid.IntRange(0, 50).Draw(t, "references") {
			addr := rapid.Uint64().Draw(t, "address") >> rapid.IntRange(1, 63).Draw(t, "shift")
			whole.Append(trace.Kind(rapid.IntRange(0, 2).Draw(t, "kind")), addr, rapid.Uint32().Draw(t, "bytes"), rapid.Uint32Range(0, 3).Draw(t, "thread"), 0)
		}
		got := readWhole(t, write(t, tracetest.NewReader(whole, 0), 7))
		if got.Len() == 0 && whole.Len() == 0 {
			return
		}
		want := &trace.Batch{Addr: whole.Addr, Bytes: whole.Bytes, Kind: whole.Kind, Thread: whole.Thread}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("got\n%+v\nwant\n%+v", got, want)
		}
	})
}
