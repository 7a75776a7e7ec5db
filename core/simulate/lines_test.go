package simulate

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/trace"
)

// TestLineTable compares a lineTable with a map.
func TestLineTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table, want := newLineTable(), map[trace.Line]copies{}
		stride := rapid.SampledFrom([]trace.Line{1, 64, 1 << 20, 1 << 58}).Draw(t, "stride")
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			first, n := rapid.Uint64Range(0, 3000).Draw(t, "line"), rapid.Uint64Range(1, 300).Draw(t, "lines")
			for line := first; line < first+n; line++ {
				c := copies{holders: line ^ n, owner: int8(n % 64)}
				if e := table.find(stride * line); e.next != 0 {
					e.copies = c
				} else {
					table.add(stride*line, c)
				}
				want[stride*line] = c
			}
			if rapid.IntRange(0, 9).Draw(t, "forget") == 0 {
				odd := func(line trace.Line, c copies) bool { return (line/stride+c.holders)%2 == 1 }
				table.keep(odd)
				for line, c := range want {
					if !odd(line, c) {
						delete(want, line)
					}
				}
			}
		}
		if table.used != len(want) || 2*table.used > len(table.entries) {
			t.Fatalf("the table has %d lines in %d entries, want %d lines", table.used, len(table.entries), len(want))
		}
		for line := range trace.Line(3400) {
			got, known := table.get(stride * line)
			c, is := want[stride*line]
			if known != is || got != c {
				t.Fatalf("get(line %d) = %+v, %t, want %+v, %t", stride*line, got, known, c, is)
			}
		}
	})
}

// If a bus removes lines as fast as it adds lines, it allocates no additional memory.
func TestBusAllocatesNothing(t *testing.T) {
	h := hierarchy.Hierarchy{}
	for _, text := range []string{"L1=8KiB,8", "L2=128KiB,16,shared=all"} {
		c, err := hierarchy.ParseCache(text)
		if err != nil {
			t.Fatal(err)
		}
		h.Levels = append(h.Levels, c)
	}
	s, err := New(h, Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := trace.NewBatch(0)
	at := trace.Addr(0)
	stream := func() {
		b.Reset()
		for b.Len() < b.Cap() {
			b.Append(trace.Load, at, 8, uint32(at>>6%16), 0)
			at += 64
		}
		if err := s.Consume(b); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 {
		stream()
	}
	if n := testing.AllocsPerRun(100, stream); n > 0 {
		t.Errorf("the bus made %g allocations with %d lines, want 0", n, b.Len())
	}
}
