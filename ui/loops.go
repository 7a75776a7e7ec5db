package ui

import (
	"errors"
	"slices"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/ui/state"
	"github.com/stackglass/stackglass/workers"
)

// loopState is what the Loops view holds beyond the address: the loops that were read
// last, and what the program that counts said of them.
type loopState struct {
	of      *profile.Profile
	loops   *state.Loops
	problem string // why there are none, in a sentence

	carrier workers.Carrier // nil: it was not started, or is starting
	opening bool
	asked   answers.LoopQuestion // last
	number  uint32               // of that; 0: nothing was asked
	counted *answers.LoopReply   // what is said of it; nil: not yet
	machine []string             // that the last counts are of
	counts  *answers.LoopReply   // the last ones, of whatever loop and machine
	failed  string               // why nothing can be counted, in a sentence
	tables  map[string]*state.Table
	picked  int // that tables are of

	changes changeState
}

// loops are those of the result in view; nil where there are none.
func (a *App) loops() *state.Loops {
	r := a.result
	if r == nil || r.Profile == nil {
		return nil
	}
	if s := &a.nests; s.of != r.Profile {
		a.endLoops()
		*s = loopState{of: r.Profile}
		s.loops, s.problem = state.NewLoops(r.Profile)
	}
	return a.nests.loops
}

// endLoops ends the program that counts. The caller holds the lock.
func (a *App) endLoops() {
	if c := a.nests.carrier; c != nil {
		a.nests.carrier = nil
		go func() { _ = c.Close() }()
	}
}

// pickedLoop is the number of the loop that is picked, or -1.
func (a *App) pickedLoop() int {
	l := a.loops()
	if l == nil {
		return -1
	}
	if n := a.Screen.Loop; n > 0 && n <= len(l.Outline.Loops) {
		return n - 1
	}
	return l.Hottest()
}

// loopMisses are the misses of the hierarchy in question; nil while they are counted.
func (a *App) loopMisses() *answers.LoopReply {
	if s := &a.nests; s.counted != nil && s.sameCounts(a.loopQuestion()) {
		return s.counted
	}
	return nil
}

// sameCounts tells whether another question is answered by the same counts.
func (s *loopState) sameCounts(q answers.LoopQuestion) bool {
	return slices.Equal(s.asked.Machine, q.Machine) && s.asked.Loop == q.Loop
}

// loopQuestion is all that is wanted at present.
func (a *App) loopQuestion() answers.LoopQuestion {
	q := answers.LoopQuestion{Loop: uint32(max(0, a.pickedLoop()))}
	for _, c := range a.Levels() {
		q.Machine = append(q.Machine, c.String())
	}
	if c := a.changes(); c != nil {
		q.Nest, q.Changes, q.Propose = uint32(c.nest), slices.Clone(c.tried), c.search
	}
	return q
}

// drawLoops hands the tree over, and has misses counted. The caller holds the lock.
func (a *App) drawLoops() {
	l := a.loops()
	if l == nil {
		return
	}
	a.askLoops()
	s := &a.nests
	s.tables = nil
	q := a.loopQuestion()
	counted := s.counts // of every loop
	if counted == nil || !slices.Equal(s.machine, q.Machine) {
		counted = state.Uncounted(a.Levels())
	}
	a.Port.Grid(l.Grid(a.pickedLoop(), counted))
}

// askLoops asks what is wanted, unless that was asked last. What is counted meanwhile is
// given up. The caller holds the lock.
func (a *App) askLoops() {
	s := &a.nests
	if a.result.Live || len(s.loops.Outline.Loops) == 0 || s.failed != "" {
		return
	}
	if s.carrier == nil {
		if !s.opening {
			s.opening = true
			go a.openLoops(s.loops)
		}
		return
	}
	q := a.loopQuestion()
	same := s.number > 0 && s.sameCounts(q)
	if same && q.Nest == s.asked.Nest && slices.Equal(q.Changes, s.asked.Changes) && q.Propose == s.asked.Propose {
		return
	}
	if !same {
		s.counted = nil
	}
	s.changes.busy = len(q.Changes) > 0 || q.Propose
	s.asked, s.number = q, s.number+1
	err := s.carrier.Send(workers.Message{Type: workers.TypeLoopQuestion, Job: s.number, Body: workers.EncodeLoopQuestion(q)})
	if err != nil {
		a.loopsFailed(err)
	}
}

// openLoops starts the program that counts, and takes what it says. It waits.
func (a *App) openLoops(l *state.Loops) {
	part := *l.Profile
	part.Blocks = nil // large, and not asked about
	c, err := a.openSubject(workers.Subject{Profile: part.Encode()})
	gone := false
	a.update(func() {
		s := &a.nests
		if gone = s.loops != l; gone {
			return
		}
		s.opening = false
		if err != nil {
			a.loopsFailed(err)
			return
		}
		s.carrier = c
		if a.Screen.Tab == state.TabLoops {
			a.askLoops()
		}
	})
	for err == nil && !gone {
		var m workers.Message
		var reply *answers.LoopReply
		if m, err = c.Receive(); err == nil {
			reply, err = workers.DecodeLoopReply(m.Body)
		}
		a.update(func() {
			s := &a.nests
			if gone = s.carrier != c; gone {
				return
			}
			if err != nil {
				a.loopsFailed(err)
				return
			}
			if m.Job == s.number {
				a.takeLoops(reply)
			}
		})
	}
	if c != nil {
		_ = c.Close()
	}
}

// loopsFailed says why nothing is counted. The caller holds the lock.
func (a *App) loopsFailed(err error) {
	s := &a.nests
	a.endLoops()
	s.failed = "Misses by loop could not be counted: " + err.Error() + ". Reload the page to try once more."
	s.changes.busy = false
	a.Port.Announce(s.failed)
}

// takeLoops takes an answer. The caller holds the lock.
func (a *App) takeLoops(reply *answers.LoopReply) {
	s := &a.nests
	switch {
	case reply.Problem != "":
		a.loopsFailed(errors.New(reply.Problem))
	case reply.Trial:
		a.takeChanges(reply)
	default:
		s.counted, s.counts, s.machine = reply, reply, s.asked.Machine
	}
	if a.Screen.Tab == state.TabLoops && !a.comparing() {
		a.drawLoops()
	}
}

// loopTable gives a table of the Loops view, or nil.
func (a *App) loopTable(chart string) *state.Table {
	l, picked := a.loops(), a.pickedLoop()
	if l == nil || picked < 0 {
		return nil
	}
	s := &a.nests
	if s.tables == nil || s.picked != picked {
		m := a.loopMisses()
		s.tables, s.picked = map[string]*state.Table{"loops": l.Grid(-1, nil).Table, "arrays": l.ArraysTable(picked, m)}, picked
		if m != nil {
			s.tables["loop-misses"], s.tables["evictions"] = l.MissesTable(m, picked), state.EvictionsTable(m)
		}
	}
	return s.tables[chart]
}

// pickLoop takes a row of the tree that was picked. The caller holds the lock.
func (a *App) pickLoop(row int) {
	l := a.loops()
	if l == nil || a.comparing() || row < 0 || row >= len(l.Outline.Loops) {
		return
	}
	s := a.Screen
	s.Loop = row + 1
	a.goTo(s, true)
	a.Port.Announce("Loop " + l.Title(row) + ". " + l.Sentence(row))
}
