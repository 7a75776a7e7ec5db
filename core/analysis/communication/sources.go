package communication

import (
	"sort"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// sources counts the events of lines by the depth that the line has, at that
// moment, in the coherent stack of its source (Kulkarni, section 4.3): of a private
// cache of C lines, those below C are transfers from cache to cache, and what the
// others need comes from memory.
//
// The stacks are package sharing's, which follows the same references later. So the
// events of a batch wait here until it asks.
type sources struct {
	asked    bool        // somebody is going to ask
	queue    []lineEvent // of the batch
	next     int         // of these, the first one that nobody asked about yet
	waiting  []lineEvent // asked about, and not answered yet
	coreOf   [mostThreads]uint8
	list     []distances
	at       map[uint32]uint32 // indices in list, by place in flows
	unplaced uint64            // events whose line was not in the source's stack
}

// lineEvent is an event of a line, by a row of the batch.
type lineEvent struct {
	row      uint32
	line     trace.Line
	from, to uint8
	transfer bool
}

// distances are those between two threads.
type distances struct {
	place             uint32 // in flows
	events, transfers profile.Histogram
}

// begin forgets the batch before.
func (s *sources) begin() { s.queue, s.next = s.queue[:0], 0 }

// note keeps an event.
func (s *sources) note(r *reference, line trace.Line, from source) {
	s.queue = append(s.queue, lineEvent{row: r.row, line: line, from: from.thread, to: r.thread, transfer: from.transfer})
}

// between gives the distances between two threads.
func (s *sources) between(place uint32) *distances {
	n, known := s.at[place]
	if !known {
		if s.at == nil {
			s.at = map[uint32]uint32{}
		}
		n = uint32(len(s.list))
		s.at[place] = n
		s.list = append(s.list, distances{place: place})
	}
	return &s.list[n]
}

// count counts an event at a depth.
func (s *sources) count(e *lineEvent, depth uint64) {
	d := s.between(uint32(e.from)*mostThreads + uint32(e.to))
	d.events.Add(depth)
	if e.transfer {
		d.transfers.Add(depth)
	}
}

func (a *Analysis) sourceDistances() (list []profile.SourceDistances) {
	if !a.sources.asked {
		return nil
	}
	list = []profile.SourceDistances{}
	for i := range a.sources.list {
		d := &a.sources.list[i]
		var out profile.SourceDistances
		out.From, out.To = a.ends(d.place)
		out.Distances.Merge(&d.events)
		out.Transfers.Merge(&d.transfers)
		list = append(list, out)
	}
	sort.Slice(list, func(i, j int) bool {
		return list[i].From < list[j].From || list[i].From == list[j].From && list[i].To < list[j].To
	})
	return list
}
