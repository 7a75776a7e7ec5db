package workers

import (
	"math"
	"time"
)

// pace determines when a repeated task runs. The time between two runs is at least the duration
// in the field "least", and the task takes at most a twentieth of the time.
type pace struct {
	least time.Duration
	next  time.Time
}

func (p *pace) due(now time.Time) bool { return !now.Before(p.next) }

// recordRun records a run of the task from begin to end.
func (p *pace) recordRun(begin, end time.Time) {
	const share = 20
	p.next = end.Add(max(p.least, (share-1)*end.Sub(begin)))
}

// speed measures how fast a count grows. Recent growth has the greatest weight, because a program
// that starts threads is analysed far more slowly than before.
type speed struct {
	known   bool
	part    uint64
	millis  uint64
	average float64 // growth per second
}

// record records the value of the count at the given time in milliseconds. It returns the growth per
// second, or 0 if the growth is not known yet.
func (s *speed) record(part, millis uint64) uint64 {
	const memory = 3000 // in milliseconds: after this time, the weight of a measurement has fallen to 1/e
	if !s.known || part < s.part {
		s.known, s.part, s.millis, s.average = true, part, millis, 0
		return 0
	}
	if took := float64(millis - min(millis, s.millis)); took > 0 {
		now, weight := float64(part-s.part)*1000/took, 1.0
		if s.average > 0 {
			weight = 1 - math.Exp(-took/memory)
		}
		s.average += weight * (now - s.average)
		s.part, s.millis = part, millis
	}
	return uint64(s.average)
}

// share limits a repeated task to a twentieth of the time that has passed since the time in the
// field "began". The limit applies to the total duration of all runs of the task, including the
// next run.
type share struct {
	began       time.Time
	spent, last time.Duration
}

// due reports whether to run the task now. The parameter "first" is the expected time of the first
// run. Each later run is expected to take 50 % longer than the run before it.
func (s *share) due(now time.Time, first time.Duration) bool {
	const share = 20
	next := s.last + s.last/2
	if s.spent == 0 {
		next = first
	}
	return now.Sub(s.began) >= share*(s.spent+next)
}

// recordRun records the duration of a run.
func (s *share) recordRun(took time.Duration) {
	s.last = took
	s.spent += took
}
