package ui

import (
	"slices"
	"strings"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/ui/state"
)

// startedText is the name of the text in the browser that lists the analyses that have started but
// not ended. If a page is killed, its analyses remain in the list. Each line contains the key of an
// analysis, a tab character, and the name of the analysis.
const startedText = "started"

// startedAnalysis is a line of this list.
type startedAnalysis struct{ key, name string }

func (a *App) started() (list []startedAnalysis) {
	for line := range strings.Lines(a.Port.Remembered(startedText)) {
		if key, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t"); ok {
			list = append(list, startedAnalysis{key, name})
		}
	}
	return list
}

func (a *App) rememberStarted(list []startedAnalysis) {
	var text strings.Builder
	for _, s := range list {
		text.WriteString(s.key + "\t" + strings.ReplaceAll(s.name, "\n", " ") + "\n")
	}
	a.Port.Remember(startedText, text.String())
}

// recordStart adds an analysis to the list of started analyses. The caller holds the lock. This tab
// must own the analysis, because other tabs delete analyses without an owner from the list.
func (a *App) recordStart(key, name string) {
	if a.Tabs != nil && a.Store != nil {
		a.rememberStarted(append(a.startedExcept(key), startedAnalysis{key, name}))
	}
}

// recordEnd deletes an analysis from the list of started analyses. The caller holds the lock.
func (a *App) recordEnd(key string) {
	if a.Tabs != nil && a.Store != nil {
		a.rememberStarted(a.startedExcept(key))
	}
}

func (a *App) startedExcept(key string) []startedAnalysis {
	return slices.DeleteFunc(a.started(), func(s startedAnalysis) bool { return s.key == key })
}

// findLost finds analyses that ended without any entry in the store, because their page was killed
// before the first checkpoint. The caller holds the lock.
func (a *App) findLost(entries []profile.Entry, elsewhere map[string]bool) {
	if a.Tabs == nil {
		return // it is unknown whether the analyses are running in other tabs
	}
	list := a.started()
	running := slices.DeleteFunc(slices.Clone(list), func(s startedAnalysis) bool {
		if elsewhere[s.key] || a.run != nil && a.run.key == s.key {
			return false
		}
		if !slices.ContainsFunc(entries, func(e profile.Entry) bool { return e.Key == s.key }) {
			a.lost = s.name
		}
		return true
	})
	if len(running) < len(list) {
		a.rememberStarted(running)
	}
}

// interrupted returns the rows of the analyses that can be resumed. The latest analysis is first.
func (a *App) interrupted() []state.KeptRow {
	return slices.DeleteFunc(a.Rows(), func(r state.KeptRow) bool { return !r.Interrupted || r.Running })
}

// showInterrupted shows on the first screen whether an analysis was interrupted, and what to do. The
// caller holds the lock.
func (a *App) showInterrupted() {
	rows := a.interrupted()
	if len(rows) == 0 {
		a.Port.ShowInterrupted(state.LostNote(a.lost), false)
		return
	}
	again := state.ReopensNever
	switch {
	case a.files[rows[0].Key]:
		again = state.Reopens
	case a.Handles != nil:
		again = state.ReopensOthers
	}
	a.Port.ShowInterrupted(state.InterruptedNote(rows, again), true)
}

// ResumeLatest resumes the interrupted analysis that the first screen shows.
func (a *App) ResumeLatest() {
	a.update(func() {
		if rows := a.interrupted(); len(rows) > 0 {
			a.GoOn(rows[0])
		}
	})
}
