package stack

import (
	"slices"

	"github.com/stackglass/stackglass/core/trace"
)

// shelvedSets counts how deep in their sets the touches of [Shelved] find their lines.
// Its lists follow accesses, as those of [Sets] do where every line has a stamp, and
// the number of an access is its stamp plus one.
type shelvedSets struct {
	recent recency
	tally  tally
	order  []trace.Line // of the joined lines, from the bottom of the segment's stack
	last   []uint32     // the numbers of their touches, in the same order
	places []uint32     // of touches
	at     int
}

// listBytes is about how much memory the lists take.
const listBytes = 12 << 20

func newShelvedSets() *shelvedSets {
	s := new(shelvedSets)
	s.recent.reset()
	return s
}

func (s *shelvedSets) begin(joined []touched) {
	s.order = slices.Grow(s.order[:0], len(joined))[:len(joined)]
	s.last = slices.Grow(s.last[:0], len(joined))[:len(joined)]
	s.places = slices.Grow(s.places[:0], len(joined))[:len(joined)]
	s.at = 0
	for i := range joined {
		s.order[joined[i].place] = joined[i].line
		s.places[joined[i].index] = joined[i].place
	}
}

// touch counts a line, whose stamp before is replaced.
func (s *shelvedSets) touch(line trace.Line, before, now, distance uint32) {
	after, how := uint32(never), uint32(uncounted)
	s.tally.accesses++
	if s.tally.settle(distance); before != fresh {
		after, how = before+2, 0
	}
	s.last[s.places[s.at]] = now + 1
	s.at++
	s.recent.access(access{after, now + 1, uint32(line)&^(uncounted|marked) | how})
}

// push moves the joined lines to the front in the order of the segment's stack.
func (s *shelvedSets) push(joined []touched, first uint32) {
	for place, line := range s.order[:len(joined)] {
		s.recent.access(access{s.last[place] + 1, first + uint32(place) + 1, uint32(line)&^(uncounted|marked) | uncounted})
	}
	s.recent.settle()
}

// adopt moves new lines to the front, in the order of their places, which are their stamps.
func (s *shelvedSets) adopt(lines []touched) {
	for i := range lines {
		s.recent.access(access{never, lines[i].place + 1, uint32(lines[i].line)&^(uncounted|marked) | uncounted})
	}
	s.recent.settle()
}

// renumber renumbers the accesses in the lists as the live stamps of before are. The order of
// lines whose number is not that of their last access stays.
func (s *shelvedSets) renumber(before *stamps) {
	s.recent.settle()
	for k := range s.recent.lists {
		for _, page := range s.recent.lists[k].pages {
			if page != nil {
				page.renumber(before)
			}
		}
	}
}

func (p *listPage) renumber(before *stamps) {
	for i := range p {
		for j, number := range p[i] {
			if number != 0 {
				p[i][j] = before.rank(number-1) + 1
			}
		}
	}
}

func (s *shelvedSets) depths() *SetDepths {
	s.recent.settle()
	return s.tally.with(&s.recent.depths, 0)
}
