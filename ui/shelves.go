package ui

import (
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/ui/state"
)

// Shelves provides access to the spill stores of analyses that do not fit in memory. All methods
// may block.
type Shelves interface {
	// Keys returns the keys of the analyses that have a spill store.
	Keys() []string
	Delete(key string)
}

// Sweep deletes spill stores that are no longer needed, because their analysis is finished or
// deleted, or its tab died before the first checkpoint. If tabs cannot exchange the names of their
// runs, Sweep deletes nothing. Sweep may block.
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
			continue // the analysis is running
		}
		if !a.isNeeded(key) { // a run that has just ended may have left a checkpoint
			a.Shelves.Delete(key)
		}
		release()
	}
}

// isNeeded reports whether an analysis was interrupted and can still be resumed. It also returns
// true if the store cannot be read.
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
