package ui

import (
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/ui/state"
)

// Shelves are the spill stores of analyses that do not fit in memory. Their methods wait.
type Shelves interface {
	// Keys are the keys of the analyses that have one.
	Keys() []string
	Delete(key string)
}

// Sweep deletes spill stores that nobody needs: of analyses that are finished or deleted, or whose
// tab died before their first checkpoint. It deletes none if tabs cannot exchange what they run. It
// waits.
func (a *App) Sweep() {
	if a.Shelves == nil || a.Tabs == nil || a.Store == nil {
		return
	}
	for _, key := range a.Shelves.Keys() {
		if a.isNeeded(key) {
			continue
		}
		release := a.Tabs.Own(key)
		if release == nil {
			continue // it runs
		}
		if !a.isNeeded(key) { // a run that has just ended may have left a checkpoint
			a.Shelves.Delete(key)
		}
		release()
	}
}

// isNeeded reports whether an interrupted analysis may be resumed, or the store cannot say.
func (a *App) isNeeded(key string) bool {
	entries, err := a.Store.List()
	for _, e := range entries {
		if e.Key == key {
			return e.State == profile.EntryInterrupted
		}
	}
	return err != nil
}

// storage describes the contents of the browser's storage.
func (a *App) storage() (parts []state.Fact, total string) {
	key, running := "", uint64(0)
	if a.run != nil {
		key, running = a.run.key, a.run.progress.Outside
	}
	return state.Storage(a.kept, a.used, key, running)
}
