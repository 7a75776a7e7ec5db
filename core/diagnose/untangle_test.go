package diagnose

import (
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
	"pgregory.net/rapid"
)

// TestRecordsAreGroupedByThread checks that, between two events, the rows of each thread are
// consecutive and in their original order, and that all rows remain between the same events.
func TestRecordsAreGroupedByThread(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type row struct {
			addr   trace.Addr
			thread uint32
		}
		u := newUntangling(1)
		var want []row
		parts := map[uint32][]row{}
		part := func() {
			for thread := range uint32(4) {
				want = append(want, parts[thread]...)
			}
			clear(parts)
		}
		next := trace.Addr(0)
		for range rapid.IntRange(1, 6).Draw(t, "batches") {
			b := trace.NewBatch(0)
			b.NeedThread()
			for range rapid.IntRange(0, 30).Draw(t, "rows") {
				// Threads are numbered in the order of their first rows.
				thread := min(rapid.Uint32Range(0, 3).Draw(t, "thread"), uint32(len(u.number)))
				kind := rapid.SampledFrom([]trace.Kind{trace.Load, trace.Store, trace.Load, trace.BlockEntry, trace.Barrier}).Draw(t, "kind")
				if _, known := u.number[thread]; !known {
					u.number[thread] = int(thread)
				}
				next += 64
				b.Append(kind, next, 8, thread, 0)
				if kind == trace.Barrier {
					part()
					want = append(want, row{next, thread})
					continue
				}
				parts[thread] = append(parts[thread], row{next, thread})
			}
			u.take(b)
		}
		part()
		var got []row
		rest, b := u.finish().Expand(), trace.NewBatch(0)
		for {
			err := rest.Next(b)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			for i := range b.Addr {
				r := row{addr: b.Addr[i]}
				if b.Thread != nil {
					r.thread = b.Thread[i]
				}
				got = append(got, r)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("the rows are %v, want %v", got, want)
		}
	})
}
