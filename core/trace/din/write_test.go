package din

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
	"pgregory.net/rapid"
)

// The function "write" converts a trace to din text, in batches of the given number of rows, and
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

// TestWriteRoundTrip checks that writing a trace as text and reading it again loses only the
// information that din cannot represent.
func TestWriteRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var want []outcome
		whole := trace.NewBatch(100)
		for range rapid.IntRange(0, 50).Draw(t, "references") {
			r := ref(trace.Kind(rapid.IntRange(0, 2).Draw(t, "kind")), rapid.Uint64().Draw(t, "address"))
			if r.Kind == trace.Modify {
				r.Kind = trace.Fetch
			}
			want = append(want, r)
			whole.Append(r.Kind, r.Addr, 8, 0, 0)
		}
		text := write(t, tracetest.NewReader(whole, 0), 7)
		tracetest.CheckText(t, text, reader, want)
		if again := write(t, reader(strings.NewReader(text)), 3); again != text {
			t.Fatalf("%q is read and written as %q, want the same text", text, again)
		}
	})
}

// TestWriteKinds checks that a reference whose kind has no din label is written with the most
// similar label.
func TestWriteKinds(t *testing.T) {
	b := trace.NewBatch(8)
	for _, k := range []trace.Kind{trace.Load, trace.Store, trace.Modify, trace.Fetch, trace.RangeRead, trace.RangeWrite, trace.Barrier} {
		b.Append(k, 0x1fff, 8, 0, 0)
	}
	want := "0 1fff\n1 1fff\n0 1fff\n1 1fff\n2 1fff\n0 1fff\n1 1fff\n"
	if got := write(t, tracetest.NewReader(b, 0), 0); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
