package workers

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// However long a task takes each time, it takes at most a twentieth of the time that follows, and
// never runs more often than requested.
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

// The speed follows a program that becomes slower, within seconds.
func TestSpeedIsRecent(t *testing.T) {
	var s speed
	part, millis, last := uint64(0), uint64(0), uint64(0)
	for _, phase := range []uint64{3_000_000, 140_000} {
		for range 100 { // 20 seconds
			last = s.at(part, millis)
			part, millis = part+phase/5, millis+200
		}
		if last < phase*95/100 || last > phase*105/100 {
			t.Errorf("%d a second, want about %d", last, phase)
		}
	}
	if s.at(5, millis) != 0 { // it begins again
		t.Error("a count that falls has a speed")
	}
}

// For any durations that do not exceed the expected ones, all tasks together stay within a
// twentieth of the time, including the last.
func TestShareIsKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.UnixMilli(0)
		s := share{began: now}
		first := time.Duration(rapid.Int64Range(0, 1e9).Draw(t, "first"))
		spent := time.Duration(0)
		for range 200 {
			now = now.Add(time.Duration(rapid.Int64Range(0, 5e9).Draw(t, "work")))
			if !s.due(now, first) {
				continue
			}
			most := s.last + s.last/2
			if s.spent == 0 {
				most = first
			}
			cost := time.Duration(rapid.Int64Range(0, int64(most)).Draw(t, "cost"))
			s.ran(cost)
			now, spent = now.Add(cost), spent+cost
			if spent > now.Sub(s.began)/20 {
				t.Fatalf("%v of %v", spent, now.Sub(s.began))
			}
		}
	})
}
