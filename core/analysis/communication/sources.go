package communication

import (
	"sort"

	"github.com/stackglass/stackglass/core/analysis/sharing"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace"
)

// sourceDepths counts the events of lines by the current depth of the line in the coherent stack of
// the source thread (Kulkarni, section 4.3). With private caches of C lines, events at depths less
// than C are cache-to-cache transfers. At larger depths, the line is fetched from memory.
//
// The stacks belong to package sharing, which processes each batch later. The events of a batch are
// therefore queued until package sharing requests them. Events between threads on the same core are
// omitted, because these threads share a private cache.
type sourceDepths struct {
	stacks  Stacks             // coherent stacks of cores; nil: not requested
	joined  bool               // the list contains the depths of joined shares
	queue   []lineEvent        // events of the batch, by row and line
	next    int                // index of the next event for which Ask must ask a question
	waiting []lineEvent        // events whose questions have not been answered yet
	cores   [mostThreads]uint8 // 1 + the core of the first thread of each slot; 0: not known yet
	list    []distances
	at      map[uint32]uint32 // for each index in flows: the index in list
}

// Stacks provides the depths of lines on the coherent stacks of cores; [sharing.Analysis]
// implements it.
type Stacks interface {
	Feed(lineBytes uint32, asker sharing.Asker)
	Core(thread uint32) (core uint8, known bool) // cores are numbered in the order of their first references
}

type lineEvent struct {
	row      uint32
	writer   uint32 // number of the thread that wrote the value, instead of the thread's slot, because several threads may share a slot
	line     trace.Line
	from, to uint8
	transfer bool
}

type distances struct {
	place             uint32 // index in flows
	events, transfers profile.Histogram
}

// maxDepth returns an upper bound for the depths of lines. If the depths are estimated, the bound
// exceeds the number of lines, because estimated depths can exceed the number of lines.
func (s *sourceDepths) maxDepth(lines uint32) uint32 {
	if _, all := s.stacks.(*sharing.Analysis); all && lines > 0 {
		return lines
	}
	return profile.MaxDistance - 1
}

func (s *sourceDepths) begin() { s.queue, s.next = s.queue[:0], 0 }

// Follow makes the analysis read the depths of lines from the stacks of cores. The analysis of
// these stacks must process every batch after this analysis.
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
		if from := a.coreOf(e); from != 0 && from-1 != x.Cores[i] && a.share.HasCore(from-1) {
			s.waiting = append(s.waiting, *e)
			questions = append(questions, sharing.Question{Access: uint32(i), Core: from - 1, Line: e.line})
		}
	}
	return questions
}

// coreOf returns 1 + the core of the thread that wrote the value of an event, or 0 if the core is
// unknown.
func (a *Analysis) coreOf(e *lineEvent) uint8 {
	known := &a.sources.cores[e.from%mostThreads]
	if *known != 0 && e.writer == a.threads.numbers[e.from] {
		return *known
	}
	core, ok := a.sources.stacks.Core(e.writer)
	if !ok {
		return 0
	}
	if e.writer == a.threads.numbers[e.from] {
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

func (s *sourceDepths) between(place uint32) *distances {
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

func (s *sourceDepths) count(e *lineEvent, depth uint64) {
	d := s.between(uint32(e.from)*mostThreads + uint32(e.to))
	d.events.Add(depth)
	if e.transfer {
		d.transfers.Add(depth)
	}
}

func (a *Analysis) sourceDistances() (list []profile.SourceDistances) {
	if a.sources.stacks == nil && !a.sources.joined {
		return nil
	}
	list = []profile.SourceDistances{}
	for i := range a.sources.list {
		d := &a.sources.list[i]
		var out profile.SourceDistances
		out.From, out.To = a.flowThreads(d.place)
		out.Distances.Merge(&d.events)
		out.Transfers.Merge(&d.transfers)
		list = append(list, out)
	}
	sort.Slice(list, func(i, j int) bool {
		return list[i].From < list[j].From || list[i].From == list[j].From && list[i].To < list[j].To
	})
	return list
}
