package estimate

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/stackglass/stackglass/core/codec"
	"github.com/stackglass/stackglass/core/trace"
)

// naiveHoled implements the coherent stack of MODELS §6.4 as a list of lines and holes.
type naiveHoled struct {
	list []trace.Line
	lost map[trace.Line]bool
}

func (n *naiveHoled) access(line trace.Line) (at int, how found) {
	at, top := slices.Index(n.list, line), slices.Index(n.list, hole)
	switch {
	case at >= 0 && top >= 0 && top < at:
		n.list[at] = hole
		n.list = slices.Delete(n.list, top, top+1)
	case at >= 0:
		n.list = slices.Delete(n.list, at, at+1)
	case top >= 0:
		n.list = slices.Delete(n.list, top, top+1)
	}
	n.list = slices.Insert(n.list, 0, line)
	switch {
	case at >= 0:
		return at, foundHere
	case n.lost[line]:
		delete(n.lost, line)
		return 0, foundLost
	}
	return 0, foundNew
}

func (n *naiveHoled) lose(line trace.Line) (at int, here bool) {
	if at = slices.Index(n.list, line); at < 0 {
		return 0, false
	}
	n.list[at], n.lost[line] = hole, true
	return at, true
}

// TestStackWithHolesEqualsList checks that holedStack and holedFront agree with a list of lines and
// holes, even after they have been saved and restored.
func TestStackWithHolesEqualsList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fast, slow, top := newHoled(), naiveHoled{lost: map[trace.Line]bool{}}, holedFront{}
		(*front)(&top).clear()
		lines := rapid.Uint64Range(1, 60).Draw(t, "lines")
		choose := rapid.Uint64().Draw(t, "seed")
		for i := range rapid.Uint64Range(0, 4000).Draw(t, "steps") {
			r := hashLine(i, choose)
			line := r >> 8 % lines
			if r%4 == 0 {
				at, here := slow.lose(line)
				if d, is := fast.invalidate(line); d != at || is != here {
					t.Fatalf("step %d: invalidate returned depth %d, %v, want depth %d, %v", i, d, is, at, here)
				}
				if got := top.invalidate(line); here && at < frontLines && got != at || (!here || at >= frontLines) && got != frontLines {
					t.Fatalf("step %d: invalidate of the front array returned depth %d, want %d", i, got, at)
				}
				continue
			}
			at, how := slow.access(line)
			if d, is := fast.access(line); d != at || is != how {
				t.Fatalf("step %d: access returned depth %d, %v, want depth %d, %v", i, d, is, at, how)
			}
			if got, _ := top.access(line); how == foundHere && got != min(at, frontLines) || how != foundHere && got != frontLines {
				t.Fatalf("step %d: access to the front array returned depth %d; the full stack has the line at depth %d, %v", i, got, at, how)
			}
			if r>>40%500 == 0 {
				again := newHoled()
				saved := codec.Writer(nil)
				fast.code(saved)
				again.code(codec.Reader(saved.Out))
				fast = again
			}
		}
	})
}
