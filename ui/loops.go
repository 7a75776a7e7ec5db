package ui

import (
	"errors"
	"slices"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/ui/state"
)

// loopState is what the Loops view holds beyond the address: the loops that were read
// last, and what the program that counts said of them.
type loopState struct {
	of      *profile.Profile
	loops   *state.Loops
	problem string // why there are none, in a sentence

	asker   *asker               // nil: nothing was asked
	asked   answers.LoopQuestion // last
	counted *answers.Reply       // what is said of it; nil: not yet
	machine []string             // that the last counts are of
	counts  *answers.Reply       // the last ones, of whatever loop and machine
	failed  string               // why nothing can be counted, in a sentence
	tables  map[string]*state.Table
	picked  int // that tables are of

	changes changeState
}

func newLoops(a *App) View {
	return &LoopsView{controls: controls{a}, Arrays: newTable(a, "arrays"), Misses: newTable(a, "loop-misses"), Evictions: newTable(a, "evictions"),
		Changes: &LoopChanges{App: a, Tried: newTable(a, "tried"), Proposed: newTable(a, "proposed")}}
}

// Waits is part of [View].
func (c *LoopsView) Waits() string {
	why := c.App.uncounted()
	if why == "" && c.loops() == nil {
		why = c.App.nests.problem
	}
	return why
}

// Repeat is part of [repeater].
func (c *LoopsView) Repeat() (words string, analyse func()) {
	if p := c.App.result.Profile; p == nil || p.Loops != nil {
		return "", nil
	}
	return "Analyse again, and fold its loops", c.App.RepeatForLoops
}

// Draw hands the tree over, and has misses counted.
func (c *LoopsView) Draw() {
	a, s := c.App, &c.App.nests
	a.askLoops()
	s.tables, s.loops.Levels = nil, a.Levels()
	counted := s.counts // of every loop
	if !slices.Equal(s.machine, a.loopQuestion().Machine) {
		counted = nil
	}
	a.Port.Grid(c.loops().Grid(c.picked(), counted))
}

// Table is part of [View].
func (c *LoopsView) Table(name string) *state.Table {
	if name == "tried" || name == "proposed" {
		return c.App.changeTable(name)
	}
	l, picked, s := c.loops(), c.picked(), &c.App.nests
	if picked < 0 {
		return nil
	}
	if s.tables == nil || s.picked != picked {
		m := c.counted()
		s.tables, s.picked = map[string]*state.Table{"loops": l.Grid(-1, nil).Table, "arrays": l.ArraysTable(picked, m)}, picked
		if m != nil {
			s.tables["loop-misses"], s.tables["evictions"] = l.MissesTable(m, picked), l.EvictionsTable(m)
		}
	}
	return s.tables[name]
}

// loops are those of the result in view; nil where there are none.
func (a *App) loops() *state.Loops {
	r := a.result
	if r == nil || r.Profile == nil {
		return nil
	}
	if s := &a.nests; s.of != r.Profile {
		s.asker.end()
		*s = loopState{of: r.Profile}
		s.loops, s.problem = state.NewLoops(r.Profile)
	}
	return a.nests.loops
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
func (a *App) loopMisses() *answers.Reply {
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

// askLoops asks what is wanted, unless that was asked last. What is counted meanwhile is
// given up. The caller holds the lock.
func (a *App) askLoops() {
	s := &a.nests
	if a.result.Live || len(s.loops.Outline.Loops) == 0 || s.failed != "" {
		return
	}
	q := a.loopQuestion()
	same := s.asker != nil && s.sameCounts(q)
	if same && slices.Equal(q.Question().Words, s.asked.Question().Words) {
		return
	}
	if !same {
		s.counted = nil
	}
	s.changes.busy = len(q.Changes) > 0 || q.Propose
	if s.asked = q; s.asker == nil {
		part := *s.of
		part.Blocks = nil // large, and not asked about
		s.asker = &asker{app: a, subject: subjectOf(&part, nil), take: a.takeLoops}
	}
	s.asker.ask(q.Question(), nil)
}

// loopsFailed says why nothing is counted. The caller holds the lock.
func (a *App) loopsFailed(err error) {
	s := &a.nests
	s.asker.end()
	s.asker = nil
	s.failed = "Misses by loop could not be counted: " + err.Error() + ". Reload the page to try once more."
	s.changes.busy = false
	a.Port.Announce(s.failed)
}

// takeLoops takes an answer. The caller holds the lock.
func (a *App) takeLoops(reply *answers.Reply, err error) {
	s := &a.nests
	switch {
	case err != nil:
		a.loopsFailed(err)
	case reply.Part == answers.PartChanges:
		a.takeChanges(reply)
	case reply.Problem != "":
		a.loopsFailed(errors.New(reply.Problem))
	default:
		s.counted, s.counts, s.machine = reply, reply, s.asked.Machine
	}
	a.drawAgain(state.TabLoops)
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
