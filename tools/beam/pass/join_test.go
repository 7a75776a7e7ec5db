package pass

import (
	"context"
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

// FuzzSegment checks that bytes that are not a segment are refused.
func FuzzSegment(f *testing.F) {
	f.Add([]byte("x"))
	f.Add(pack([]byte("stackglass")))
	f.Fuzz(func(t *testing.T, b []byte) {
		s := Segment{Trace: "a.sgt", Profile: b}
		if p, err := s.profile(); err == nil && p.Segment == nil {
			t.Error("the bytes are not a segment, but there was no error")
		}
		if _, err := unpackValue[[]Segment](b); err == nil && len(b) == 0 {
			t.Error("no bytes were decoded as a list")
		}
	})
}
