package stack

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/stackglass/stackglass/core/trace"
)

// TestScanImplementationsAgree checks that, on every machine, both implementations of scan find,
// queue and count the same accesses.
func TestScanImplementationsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		once, steps := newNear(), newNear()
		lines := rapid.SliceOfN(rapid.Uint64Range(0, 23), 0, 4*chunk).Draw(t, "lines")
		shift := rapid.IntRange(0, setBits+1).Draw(t, "shift")
		for i := range lines {
			lines[i] <<= shift
		}
		for batch := range slices.Chunk(lines, chunk) {
			equalScans(t, once, steps, batch)
		}
		want, got := once.tally.depths(), steps.tally.depths()
		for a := range want {
			want[a][0], got[a][0] = 0, 0 // the method Depths computes these counts by subtraction
			if got[a] != want[a] {
				t.Fatalf("2^%d sets: the depths are %v after scanSteps, want %v, as after scanOnce", a, got[a], want[a])
			}
		}
	})
}

func newNear() *topArray {
	m := new(topArray)
	m.exact.top = emptyTop
	return m
}

func equalScans(t *rapid.T, once, steps *topArray, lines []trace.Line) {
	want, got := make([]uint32, len(lines)), make([]uint32, len(lines))
	wantQueue := once.exact.queue[:once.scanOnce(&once.tally, lines, want)]
	gotQueue := steps.exact.queue[:steps.scanSteps(&steps.tally, lines, got)]
	if !slices.Equal(gotQueue, wantQueue) {
		t.Fatalf("scanSteps queued %v, want %v, as scanOnce does", gotQueue, wantQueue)
	}
	for _, miss := range wantQueue {
		want[miss.index], got[miss.index] = 0, 0 // the distances of queued accesses are computed later
	}
	if !slices.Equal(got, want) {
		t.Fatalf("scanSteps returned the distances %v, want %v, as scanOnce does", got, want)
	}
	if steps.exact.top != once.exact.top {
		t.Fatalf("the top array is %v after scanSteps, want %v, as after scanOnce", steps.exact.top, once.exact.top)
	}
}
