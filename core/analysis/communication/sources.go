package communication

import (
	"sort"

	"github.com/stackglass/stackglass/core/analysis/sharing"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace"
)

// sources counts the events of lines by the depth of the line in the coherent stack of its source
// at that moment (Kulkarni, section 4.3): with private caches of C lines, events at depths below C
// are transfers from cache to cache, and the others come from memory.
//
// The stacks are package sharing's, which reads the same references later, so the events of a
// batch wait until it asks. Threads of one core are left out: they share the cache.
type sources struct {
	stacks  Stacks             // nil: not wanted
	queue   []lineEvent        // of the batch, by row and line
	next    int                // the first of these without a question
	waiting []lineEvent        // with a question, but no answer yet
	cores   [mostThreads]uint8 // of the first thread of each slot: 1 + the core; 0: not known yet
	list    []distances
	at      map[uint32]uint32 // indices in list, by place in flows
}

// Stacks returns depths of lines on the coherent stacks of cores, as a [sharing.Analysis] does.
type Stacks interface {
	Feed(lineBytes uint32, asker sharing.Asker)
	Core(thread uint32) (core uint8, known bool) // by order of appearance
}

type lineEvent struct {
	row      uint32
	wrote    uint32 // the thread that wrote the value, if several share the slot
	line     trace.Line
	from, to uint8
	transfer bool
}

type distances struct {
	place             uint32 // in flows
	events, transfers profile.Histogram
}

// deepest exceeds the depth of any of the known lines. Estimated stacks have more lines.
func (s *sources) deepest(lines uint32) uint32 {
	if _, all := s.stacks.(*sharing.Analysis); all || s.stacks == nil {
		return lines
	}
	return profile.MaxDistance - 1
}

func (s *sources) begin() { s.queue, s.next = s.queue[:0], 0 }

// Follow reads the depths of sources from the stacks of cores, which read every batch later.
func (a *Analysis) Follow(stacks Stacks) {
	a.sources.stacks = stacks
	stacks.Feed(1<<a.lineShift, a)
}

// Ask implements sharing.Asker.
func (a *Analysis) Ask(x *sharing.Accesses, questions []sharing.Question) []sharing.Question {
	s := &a.sources
	s.waiting = s.waiting[:0]
	i := 0
	for ; s.next < len(s.queue); s.next++ {
		e := &s.queue[s.next]
		for i < len(x.Lines) && (x.Lines[i] != e.line || x.Row(i) != int(e.row)) {
			i++
		}
		if i == len(x.Lines) {
			break
		}
		if from := a.coreOf(e); from != 0 && from-1 != x.Cores[i] {
			s.waiting = append(s.waiting, *e)
			questions = append(questions, sharing.Question{Access: uint32(i), Core: from - 1, Line: e.line})
		}
	}
	return questions
}

// coreOf returns 1 + the core of the thread that wrote an event's value, or 0.
func (a *Analysis) coreOf(e *lineEvent) uint8 {
	known := &a.sources.cores[e.from%mostThreads]
	if *known != 0 && e.wrote == a.threads.numbers[e.from] {
		return *known
	}
	core, ok := a.sources.stacks.Core(e.wrote)
	if !ok {
		return 0
	}
	if e.wrote == a.threads.numbers[e.from] {
		*known = core + 1
	}
	return core + 1
}

// Answer implements sharing.Asker.
func (a *Analysis) Answer(depths []uint32) {
	for i, depth := range depths {
		if depth != stack.Cold {
			a.sources.count(&a.sources.waiting[i], uint64(depth))
		}
	}
}

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

func (s *sources) count(e *lineEvent, depth uint64) {
	d := s.between(uint32(e.from)*mostThreads + uint32(e.to))
	d.events.Add(depth)
	if e.transfer {
		d.transfers.Add(depth)
	}
}

func (a *Analysis) sourceDistances() (list []profile.SourceDistances) {
	if a.sources.stacks == nil {
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
