package ui

import (
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/ui/state"
	"github.com/stackglass/stackglass/workers"
)

// readNames demangles the names of a result's functions. The page's second program does this,
// because the demangler would make the download of a first visit larger. Until the demangled
// names arrive, the page shows the names in the profile. The caller holds the lock.
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
