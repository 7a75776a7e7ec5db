package ui

import (
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/ui/state"
)

// pairState contains the models' answer about the two analyses that are compared.
type pairState struct {
	of      *state.Comparison // the comparison to which the answer belongs
	asked   answers.Question
	asking  bool
	blocks  *state.BlocksPair // the answer; nil: no answer yet
	problem string            // why there is no answer
}

// pairBlocks returns the blocks of both analyses; nil while there is no answer.
func (a *App) pairBlocks() *state.BlocksPair {
	if p := &a.pair; p.of != nil && p.of == a.comparison() {
		return p.blocks
	}
	return nil
}

// drawPairBlocks asks the models about both analyses unless the answer is known. The caller holds
// the lock.
func (a *App) drawPairBlocks(c *state.Comparison) {
	if a.pair.of != c {
		a.pair = pairState{of: c}
	}
	h := a.Machine()
	q := answers.ModelQuestion{Machine: h.Lines(), Processor: a.Screen.Processor, Function: uint32(a.Screen.Function)}
	p := &a.pair
	if p.asking || p.problem != "" || p.blocks != nil && slices.Equal(p.asked.Words, q.Question().Words) {
		return
	}
	p.asking = true
	go func() {
		pair, err := a.askPair(c, h, q)
		a.update(func() {
			p := &a.pair
			if p.of != c { // the user has navigated elsewhere
				return
			}
			if p.asking = false; err != nil {
				p.problem = "The models could not be queried: " + err.Error() + "."
				return
			}
			p.asked, p.blocks = q.Question(), pair
			if a.comparison() == c && a.Screen.Tab == state.TabBlocks {
				a.drawCharts() // the question may have changed meanwhile
				a.Port.Announce(pair.Sentence())
			}
		})
	}()
}

// askPair asks the models about A, and then about the function of the same name in B. askPair runs
// one program at a time. It may block.
func (a *App) askPair(c *state.Comparison, h hierarchy.Hierarchy, q answers.ModelQuestion) (*state.BlocksPair, error) {
	pair := &state.BlocksPair{Runs: c, Machine: h}
	for _, side := range []struct {
		of *state.View
		to **state.Blocks
	}{{c.A, &pair.A}, {c.B, &pair.B}} {
		c, err := a.openSubject(a.subjectOf("", side.of.Profile, nil)())
		if err != nil {
			return nil, err
		}
		reply, err := ask(c, q.Question())
		if err == nil {
			if *side.to = state.NewBlocks(side.of.Run, h, reply); pair.B == nil {
				q.Function = 0 // function numbers differ between programs
			} else if q.Function = pair.Same(); q.Function != 0 && q.Function != pair.B.Function {
				if reply, err = ask(c, q.Question()); err == nil {
					pair.B = state.NewBlocks(side.of.Run, h, reply)
				}
			}
		}
		if _ = c.Close(); err != nil {
			return nil, err
		}
	}
	return pair, nil
}

// AskPairAgain repeats a question that failed.
func (a *App) AskPairAgain() {
	a.pair = pairState{}
	a.drawCharts()
	a.touch()
}

// PickFunction compares the blocks of the function that has the given number in A.
func (a *App) PickFunction(text string) {
	if n, err := strconv.Atoi(text); err == nil && n > 0 {
		s := a.Screen
		s.Function = n
		a.adjust("function", s)
	}
}
