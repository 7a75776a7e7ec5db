package tracetest

import (
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
)

func TestLines(t *testing.T) {
	b := Lines(64, "1:La 2:Sb 1:Ma")
	if !slices.Equal(b.Addr, []trace.Addr{64, 128, 64}) || !slices.Equal(b.Thread, []uint32{1, 2, 1}) ||
		!slices.Equal(b.Kind, []trace.Kind{trace.Load, trace.Store, trace.Modify}) || b.PC != nil {
		t.Errorf("got %+v", b)
	}
	if b := Lines(64, "a b"); b.Thread != nil || b.Len() != 2 {
		t.Errorf("got %+v", b)
	}
}

func TestReaderOverwritesBatch(t *testing.T) {
	whole := Lines(64, "1:a 1:b 1:c 2:d 2:e")
	r := NewReader(whole, 2)
	b := trace.NewBatch(4)
	if err := r.Next(b); err != nil || b.Len() != 2 {
		t.Fatalf("%d rows, %v", b.Len(), err)
	}
	kept := b.Addr
	if err := r.Next(b); err != nil || kept[0] == whole.Addr[0] {
		t.Fatalf("error %v, and the previous batch still contains address %x", err, kept[0])
	}
	r.Rewind()
	if got := Outcomes(t, r, 3); len(got) != 5 || got[4].Addr != whole.Addr[4] || got[4].Thread != 2 {
		t.Errorf("got %+v", got)
	}
}

func TestBrokenReader(t *testing.T) {
	whole := Lines(64, "a b c d e")
	gone := errors.New("gone")
	r, b := Broken(whole, 3, gone), trace.NewBatch(2)
	rows, err := 0, error(nil)
	for err = r.Next(b); err == nil; err = r.Next(b) {
		rows += b.Len()
	}
	if rows != 3 || err != gone || r.Next(b) != gone {
		t.Errorf("%d rows, then error %v, want 3 rows and a final error", rows, err)
	}
	got := Outcomes(t, Broken(whole, 3, &trace.SyntaxError{Line: 4}), 2)
	if len(got) != 6 || got[3].ErrorLine != 4 || got[5].Addr != whole.Addr[4] {
		t.Errorf("got %+v", got)
	}
}

func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		name     string
		make     func() Pattern
		refs     int
		distinct int // maximum number of distinct addresses
		atLeast  int
	}{
		{"sequential", func() Pattern { return Sequential(4096) }, 2000, 512, 512},
		{"strided", func() Pattern { return Strided(128, 4096) }, 2000, 32, 32},
		{"uniform", func() Pattern { return Uniform(100, 7) }, 5000, 100, 100},
		{"zipf", func() Pattern { return Zipf(1000, 1, 7) }, 3000, 1000, 300},
		{"mixed", func() Pattern { return Mixed(7, Sequential(512), Strided(64, 6400)) }, 5000, 164, 164},
	} {
		a, b := Generate(c.refs, c.make()), Generate(c.refs, c.make())
		if !slices.Equal(a.Addr, b.Addr) || !slices.Equal(a.Kind, b.Kind) || a.Len() != c.refs {
			t.Errorf("%s: two streams with the same seed differ", c.name)
		}
		seen := map[trace.Addr]bool{}
		for _, addr := range a.Addr {
			seen[addr] = true
		}
		if len(seen) > c.distinct || len(seen) < c.atLeast {
			t.Errorf("%s: %d distinct addresses, want %d to %d", c.name, len(seen), c.atLeast, c.distinct)
		}
	}
}

func TestStreamEnds(t *testing.T) {
	r, b := Stream(5, Sequential(64)), trace.NewBatch(3)
	for _, want := range []int{3, 2} {
		if err := r.Next(b); err != nil || b.Len() != want {
			t.Fatalf("Next: %d rows, error %v, want %d rows", b.Len(), err, want)
		}
	}
	if err := r.Next(b); err != io.EOF || b.Len() != 0 {
		t.Errorf("Next: %d rows, error %v, want io.EOF", b.Len(), err)
	}
}

func TestSmallTraces(t *testing.T) {
	for _, name := range SmallTraces {
		if len(Small(name)) < 1000 {
			t.Errorf("%s has %d bytes, want at least 1000", name, len(Small(name)))
		}
	}
}
