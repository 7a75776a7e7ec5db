package workers

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestEachTaskTakesLimitedShareOfTime checks that a task of any duration takes at most a twentieth
// of the time until its next run, and never runs more often than requested.
func TestEachTaskTakesLimitedShareOfTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		least := time.Duration(rapid.Int64Range(0, 2e9).Draw(t, "least"))
		p := pace{least: least}
		now := time.UnixMilli(0)
		for range rapid.IntRange(1, 50).Draw(t, "times") {
			if !p.due(now) {
				t.Fatal("due() = false at the time of the next run, want true")
			}
			cost := time.Duration(rapid.Int64Range(0, 3e9).Draw(t, "cost"))
			begin := now
			p.recordRun(begin, begin.Add(cost))
			if p.due(p.next.Add(-1)) {
				t.Fatal("due() = true before the time of the next run, want false")
			}
			if whole := p.next.Sub(begin); whole < cost+least || whole < 20*cost {
				t.Fatalf("time to the next run = %[2]v after a run of %[1]v, want at least 20 times the duration and at least %[3]v", cost, whole, least)
			}
			now = p.next
		}
	})
}

// TestSpeedFollowsRecentChanges checks that, if a program becomes slower, the measured speed
// reflects this within seconds.
func TestSpeedFollowsRecentChanges(t *testing.T) {
	var s speed
	part, millis, last := uint64(0), uint64(0), uint64(0)
	for _, phase := range []uint64{3_000_000, 140_000} {
		for range 100 { // the program runs for 20 seconds
			last = s.record(part, millis)
			part, millis = part+phase/5, millis+200
		}
		if last < phase*95/100 || last > phase*105/100 {
			t.Errorf("speed = %d per second, want about %d", last, phase)
		}
	}
	if s.record(5, millis) != 0 { // the count has restarted from a lower number
		t.Error("the speed of a falling count is positive, want 0")
	}
}

// TestAllTasksTakeLimitedShareOfTime checks that, if no task takes longer than expected, all tasks
// including the last one take at most a twentieth of the time.
func TestAllTasksTakeLimitedShareOfTime(t *testing.T) {
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
			s.recordRun(cost)
			now, spent = now.Add(cost), spent+cost
			if spent > now.Sub(s.began)/20 {
				t.Fatalf("the tasks took %v of %v, want at most a twentieth", spent, now.Sub(s.began))
			}
		}
	})
}
