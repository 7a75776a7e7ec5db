package workers

import "time"

// pace spaces out something that is done again and again: at least least
// apart, and so far apart that it takes no more than a twentieth of the time.
type pace struct {
	least time.Duration
	next  time.Time
}

func (p *pace) due(now time.Time) bool { return !now.Before(p.next) }

// ran notes that it was done from begin to end.
func (p *pace) ran(begin, end time.Time) {
	const share = 20
	p.next = end.Add(max(p.least, (share-1)*end.Sub(begin)))
}

// share keeps something that is done again and again within a twentieth of the time
// since began, the next time too.
type share struct {
	began       time.Time
	spent, last time.Duration
}

// due tells whether to do it; first is what the first time is taken to cost, and
// every other to cost half more than the one before.
func (s *share) due(now time.Time, first time.Duration) bool {
	const share = 20
	next := s.last + s.last/2
	if s.spent == 0 {
		next = first
	}
	return now.Sub(s.began) >= share*(s.spent+next)
}

// ran notes what it took once.
func (s *share) ran(took time.Duration) {
	s.last = took
	s.spent += took
}
