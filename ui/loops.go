package ui

import (
	"slices"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/ui/state"
)

// loopState is what the Loops view holds beyond the address: the loops that were read
// last, and the misses that were counted in them.
type loopState struct {
	of      *profile.Profile
	loops   *state.Loops
	problem string // why there are none, in a sentence

	levels   []hierarchy.Cache // that counted is of
	counted  *answers.LoopMisses
	counting []hierarchy.Cache // nil: nothing is counted at present
	tables   map[string]*state.Table
	picked   int // that tables are of

	changes changeState
}

// loops are those of the result in view; nil where there are none.
func (a *App) loops() *state.Loops {
	r := a.result
	if r == nil || r.Profile == nil {
		return nil
	}
	if s := &a.nests; s.of != r.Profile {
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
func (a *App) loopMisses() *answers.LoopMisses {
	if s := &a.nests; s.counted != nil && slices.Equal(s.levels, a.Levels()) {
		return s.counted
	}
	return nil
}

// drawLoops hands the tree over, and has misses counted. The caller holds the lock.
func (a *App) drawLoops() {
	l := a.loops()
	if l == nil {
		return
	}
	a.countLoops()
	if c := a.changes(); c != nil {
		c.recount(a)
	}
	s := &a.nests
	s.tables = nil
	counted := a.loopMisses()
	if counted == nil {
		counted = state.Uncounted(a.Levels())
	}
	a.Port.Grid(l.Grid(a.pickedLoop(), counted))
}

// countLoops begins to count the misses of the hierarchy in question, unless that is done
// or under way. What folds is counted at once; what does not takes as long as a
// simulation, and others have their turn meanwhile.
func (a *App) countLoops() {
	s, levels := &a.nests, a.Levels()
	if a.result.Live || slices.Equal(s.counting, levels) || s.counted != nil && slices.Equal(s.levels, levels) {
		return
	}
	l := s.loops
	s.counting = slices.Clone(levels)
	mine := s.counting
	go func() {
		counted := l.CountMisses(mine, func() bool {
			a.Port.Breathe()
			wanted := false
			a.Env.Lock()
			wanted = a.nests.loops == l && slices.Equal(a.nests.counting, mine) && a.Screen.Tab == state.TabLoops
			a.Env.UnlockOnly()
			return wanted
		})
		a.update(func() {
			s := &a.nests
			if s.loops != l || !slices.Equal(s.counting, mine) {
				return
			}
			if s.counting = nil; counted == nil {
				return
			}
			s.counted, s.levels = counted, mine
			if a.Screen.Tab == state.TabLoops && !a.comparing() {
				a.drawLoops()
			}
		})
	}()
}

// loopTable gives a table of the Loops view, or nil.
func (a *App) loopTable(chart string) *state.Table {
	l, picked := a.loops(), a.pickedLoop()
	if l == nil || picked < 0 {
		return nil
	}
	s := &a.nests
	if s.tables == nil || s.picked != picked {
		s.tables, s.picked = map[string]*state.Table{"loops": l.Grid(-1, nil).Table, "arrays": l.ArraysTable(picked, a.loopMisses())}, picked
		if m := a.loopMisses(); m != nil {
			s.tables["loop-misses"], s.tables["evictions"] = l.MissesTable(m, picked), l.EvictionsTable(m)
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
