package ui

import (
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/ui/state"
	"github.com/stackglass/stackglass/workers"
)

// readNames demangles the names of a result's functions, in the page's second program, because the
// code that does it would make a first visit larger. Until the names arrive, they are shown as they
// are in the profile. The caller holds the lock.
func (a *App) readNames(r *Result) {
	mangled := state.Mangled(r.Profile)
	if r.Live || len(mangled) == 0 {
		return
	}
	go func() {
		reply, err := a.askOnce(workers.Subject{}, answers.Question{Of: answers.OfNames, Words: mangled})
		if err != nil || len(reply.Notes) != len(mangled) {
			return
		}
		readable := map[string]string{}
		for i, name := range mangled {
			readable[name] = reply.Notes[i]
		}
		a.update(func() {
			r.readable = readable
			r.show(a.Screen.LineBytes)
			if r == a.result || r == a.other {
				a.drawCharts()
			}
		})
	}()
}
