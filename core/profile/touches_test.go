package profile_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
	"pgregory.net/rapid"
)

// A list of first touches contains what was appended to it. A clipped copy and its original are
// independent.
func TestFirstTouches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := rapid.Uint64().Draw(t, "start")
		var list profile.FirstTouches
		list.Append(profile.FirstTouch{Line: 1})
		list.Reset(start)
		draw := func(name string) (touches []profile.FirstTouch) {
			for range rapid.IntRange(0, 20).Draw(t, name) {
				touches = append(touches, profile.FirstTouch{
					Line: rapid.Uint64().Draw(t, "line"), Reference: rapid.Uint64().Draw(t, "reference"),
					Kind: trace.Kind(rapid.IntRange(0, trace.NumKinds-1).Draw(t, "kind")),
				})
			}
			return touches
		}
		appendTo := func(list *profile.FirstTouches, touches []profile.FirstTouch) {
			for _, touch := range touches {
				list.Append(touch)
			}
		}
		same := func(what string, list *profile.FirstTouches, want []profile.FirstTouch) {
			if got := slices.Collect(list.All()); list.Len() != len(want) || !slices.Equal(got, want) {
				t.Fatalf("%s has %d first touches, %v, want %v", what, list.Len(), got, want)
			}
		}
		head, left, right := draw("head"), draw("left"), draw("right")
		appendTo(&list, head)
		clipped := list.Clip()
		appendTo(&list, left)
		same("the copy", &clipped, head)
		appendTo(&clipped, right)
		same("the original", &list, append(slices.Clip(head), left...))
		same("the extended copy", &clipped, append(slices.Clip(head), right...))
		for first := range list.All() { // the iteration may end early
			same("the first touch", &list, append([]profile.FirstTouch{first}, slices.Collect(list.All())[1:]...))
			break
		}
	})
}

// Decoding returns the first touches that were encoded. Appending to the decoded list does not change
// the data that it aliases.
func TestDecodedFirstTouches(t *testing.T) {
	p := testProfile(true)
	data := p.Encode()
	copied := slices.Clone(data)
	got, err := profile.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	list := &got.Segment.Lines[0].FirstTouches
	if !reflect.DeepEqual(*list, p.Segment.Lines[0].FirstTouches) {
		t.Errorf("the decoded list is %v, want %v", *list, p.Segment.Lines[0].FirstTouches)
	}
	list.Append(profile.FirstTouch{Line: 5, Reference: 2})
	if !slices.Equal(data, copied) {
		t.Error("appending a first touch changes the encoded profile")
	}
}
