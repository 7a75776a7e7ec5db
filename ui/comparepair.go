package ui

import (
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/ui/state"
)

// askBoth asks the second program a question about both compared runs. It does not repeat the last
// question. The caller holds the lock.
func (a *App) askBoth(t state.Tab, q answers.Question) {
	for side, r := range [2]*Result{a.result, a.other} {
		x := &a.verbs[side]
		x.ask(a, r, q, func() {
			if !x.asker.busy() { // release the program's memory
				x.asker.end()
				x.asker = nil
			}
			a.drawAgain(t)
		})
	}
}

// replies returns the answers to a question about both runs. The result "known" is false until
// both answers have arrived. The caller holds the lock.
func (a *App) replies(q answers.Question) (both [2]*answers.Reply, known bool) {
	for side, r := range [2]*Result{a.result, a.other} {
		x := &a.verbs[side]
		if r == nil || !x.current(r, q) {
			return both, false
		}
		both[side] = x.reply
	}
	return both, true
}

// repliesWait explains why there are no replies yet.
func (a *App) repliesWait() string {
	for side := range a.verbs {
		if err := a.verbs[side].err; err != nil {
			return state.SideName(side) + ": " + err.Error() + ". Reload the page to try again."
		}
	}
	return "Computing the answers about both runs …"
}
