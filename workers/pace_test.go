package workers

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// However long it takes each time, it takes at most a twentieth of the time
// that follows, and is never done more often than asked.
func TestPaceKeepsItsShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		least := time.Duration(rapid.Int64Range(0, 2e9).Draw(t, "least"))
		p := pace{least: least}
		now := time.UnixMilli(0)
		for range rapid.IntRange(1, 50).Draw(t, "times") {
			if !p.due(now) {
				t.Fatal("not due at its own time")
			}
			cost := time.Duration(rapid.Int64Range(0, 3e9).Draw(t, "cost"))
			begin := now
			p.ran(begin, begin.Add(cost))
			if p.due(p.next.Add(-1)) {
				t.Fatal("due before its time")
			}
			if whole := p.next.Sub(begin); whole < cost+least || whole < 20*cost {
				t.Fatalf("cost %v, next after %v, at least %v", cost, whole, least)
			}
			now = p.next
		}
	})
}
