package pass

import (
	"context"
	"os"
	"strings"
	"testing"
)

// TestJoinRefuses checks that only consecutive segments of one trace are joined.
func TestJoinRefuses(t *testing.T) {
	o := &Options{Analyses: "default"}
	a := Segment{Trace: "a.sgt", Identity: "1", Start: 100, End: 200, Profile: pack(nil)}
	for _, c := range []struct {
		name string
		next Segment
		want string
	}{
		{"another trace", Segment{Trace: "a.sgt", Identity: "2", Start: 200, End: 300, Profile: pack(nil)}, "mixed"},
		{"a gap", Segment{Trace: "a.sgt", Identity: "1", Start: 201, End: 300, Profile: pack(nil)}, "is missing"},
		{"twice", Segment{Trace: "a.sgt", Identity: "1", Start: 150, End: 250, Profile: pack(nil)}, "does not match the chunks"},
		{"no profile", Segment{Trace: "a.sgt", Identity: "1", Start: 200, End: 300, Profile: pack([]byte("x"))}, "damaged"},
		{"no bytes", Segment{Trace: "a.sgt", Identity: "1", Start: 200, End: 300, Profile: []byte("x")}, "damaged"},
	} {
		_, err := joinAll(context.Background(), o, []Segment{c.next, a})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "a.sgt") {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
	}
	alone := Segment{Trace: "a.sgt", Identity: "1", Start: 0, Alone: "torn"}
	if s, err := joinAll(context.Background(), o, []Segment{a, alone}); err != nil || s.Alone != "torn" {
		t.Errorf("a segment that cannot be joined: %v, %v", s, err)
	}
}

// TestSpilled checks that a segment in a file is the same segment, and that a missing or changed file
// is reported with its name and the place in the trace.
func TestSpilled(t *testing.T) {
	ctx, o := context.Background(), Options{Analyses: "default", Output: t.TempDir(), MostInline: 10}
	o, remove := o.Temporarily()
	run := Segment{Trace: "a.sgt", Number: 2, InOrder: true, Profile: []byte("0123456789ab")}
	if s, err := o.spill(ctx, run); err != nil || s.Profile != nil || !s.InOrder {
		t.Errorf("a run in order: %+v, %v", s, err)
	} else if b, err := s.content(ctx); err != nil || string(b) != "0123456789ab" {
		t.Errorf("a run in order: %q, %v", b, err)
	}
	small := Segment{Trace: "a.sgt", Start: 7, Profile: []byte("0123456789")}
	if s, err := o.spill(ctx, small); err != nil || s.File != "" || string(s.Profile) != "0123456789" {
		t.Errorf("a small segment: %+v, %v", s, err)
	}
	large := Segment{Trace: "a.sgt", Start: 7, End: 7, Profile: []byte("0123456789a")}
	s, err := o.spill(ctx, large)
	if err != nil || s.Profile != nil || !strings.HasPrefix(s.File, o.Spill) || s.represents() {
		t.Fatalf("a large segment: %+v, %v", s, err)
	}
	if again, err := o.spill(ctx, large); err != nil || again.File != s.File {
		t.Errorf("a repeated bundle: %+v, %v", again, err)
	}
	if b, err := s.content(ctx); err != nil || string(b) != "0123456789a" {
		t.Errorf("%q, %v", b, err)
	}
	for _, change := range []struct {
		want string
		do   func() error
	}{
		{"truncated to 3 bytes", func() error { return os.Truncate(s.File, 3) }},
		{"was changed", func() error { return os.WriteFile(s.File, []byte("0123456789b"), 0o644) }},
		{"is missing", func() error { return remove(ctx) }},
	} {
		if err := change.do(); err != nil {
			t.Fatal(err)
		}
		_, err := joinAll(ctx, &o, []Segment{s, {Trace: "a.sgt", Start: 7, Profile: pack(nil)}})
		for _, want := range []string{s.File, "a.sgt", "reference 7", change.want, "run the job again"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want one with %q", err, want)
			}
		}
	}
	if list, err := os.ReadDir(o.Output); err != nil || len(list) > 0 {
		t.Errorf("%v, %v is left over", list, err)
	}
}

// FuzzSegment checks that bytes that are not a segment are refused.
func FuzzSegment(f *testing.F) {
	f.Add([]byte("x"))
	f.Add(pack([]byte("stackglass")))
	f.Fuzz(func(t *testing.T, b []byte) {
		s := Segment{Trace: "a.sgt", Profile: b}
		if p, err := s.profile(context.Background()); err == nil && p.Segment == nil {
			t.Error("the bytes are not a segment, but there was no error")
		}
		if _, err := unpackValue[[]Segment](b); err == nil && len(b) == 0 {
			t.Error("no bytes were decoded as a list")
		}
	})
}

// Each worker gets about four stretches, or one if traces are also read in order, unless they would be
// very short or very long.
func TestLengthOfStretches(t *testing.T) {
	for _, test := range []struct {
		workers          int
		references, want uint64
		inOrder          bool
	}{
		{0, 1 << 40, MostReferences, false}, {1, 1 << 40, MostReferences, true}, {2, 80_000_001, 10_000_001, false}, {8, 100, leastReferences, false},
		{8, 0, leastReferences, true}, {4, 1 << 40, MostReferences, false}, {2, 80_000_001, 40_000_001, true}, {4, 1 << 40, MostReferences, true},
	} {
		o := Options{Workers: test.workers}
		if got := o.lengthFor(test.references, test.inOrder); got != test.want {
			t.Errorf("%d workers, %d references: the length of stretches is %d, want %d", test.workers, test.references, got, test.want)
		}
	}
	for workers, want := range map[int]int{0: 1, 2: 1, 4: 1, 8: 2, 16: 4, 1000: 4} {
		if got := (&Options{Workers: workers}).shares(); got != want {
			t.Errorf("%d workers: communication is divided into %d shares of each kind, want %d", workers, got, want)
		}
	}
}
