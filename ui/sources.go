package ui

import (
	"slices"

	"github.com/stackglass/stackglass/ui/state"
)

// SourceFiles stores the source files that the user dropped, under the key of their analysis. All
// methods may block.
type SourceFiles interface {
	// Keep replaces the files of an analysis. If there are no new files, Keep deletes the old files.
	Keep(key string, files []*state.Source)
	// Read returns the files of an analysis.
	Read(key string) []*state.Source
	// Keys returns the keys of all analyses that have files.
	Keys() []string
}

// keepSource stores a dropped file with the result in view if the result refers to the file. It
// reports whether it stored the file. The caller holds the lock.
func (a *App) keepSource(f *state.Source) bool {
	r, v := a.result, a.codeView()
	if a.SourceFiles == nil || r == nil || r.Live || v == nil || len(v.FilesNamed(f.Name)) == 0 {
		return false
	}
	a.storeSources(r.Key, append(slices.Clone(a.code.dropped[r.Key]), f))
	return true
}

// storeSources sets the dropped files of an analysis. The caller holds the lock.
func (a *App) storeSources(key string, files []*state.Source) {
	if a.code.dropped == nil {
		a.code.dropped = map[string][]*state.Source{}
	}
	a.code.dropped[key] = files
	if a.SourceFiles != nil {
		go a.SourceFiles.Keep(key, files)
	}
}

// readSources reads the source files that were stored with a result. readSources reads these files
// only once. The caller holds the lock.
func (a *App) readSources(key string) {
	if _, read := a.code.dropped[key]; read || a.SourceFiles == nil {
		return
	}
	if a.code.dropped == nil {
		a.code.dropped = map[string][]*state.Source{}
	}
	a.code.dropped[key] = nil
	go func() {
		files := a.SourceFiles.Read(key)
		if len(files) == 0 {
			return
		}
		a.update(func() {
			a.code.dropped[key] = append(files, a.code.dropped[key]...)
			for _, f := range files {
				a.code.sources.Add(f)
			}
			a.drawCharts()
		})
	}()
}

// Dropped reports whether the user dropped this source file for the result in view. Only dropped
// files can be removed.
func (a *App) Dropped(f *state.Source) bool {
	return a.result != nil && slices.Contains(a.code.dropped[a.result.Key], f)
}

// RemoveSource removes a source file that the user dropped.
func (a *App) RemoveSource(f *state.Source) {
	if !a.Dropped(f) {
		return
	}
	key := a.result.Key
	a.code.sources.Remove(f)
	delete(a.code.chosen, f.Name)
	a.storeSources(key, slices.DeleteFunc(slices.Clone(a.code.dropped[key]), func(x *state.Source) bool { return x == f }))
	a.Note = f.Name + " was removed from this browser."
	a.Port.Announce(a.Note)
	a.Port.Focus("code-search")
	a.drawCharts()
	a.touch()
}

// forgetSources deletes the source files of analyses that are no longer stored. forgetSources may
// block.
func (a *App) forgetSources() {
	if a.SourceFiles == nil || a.Store == nil {
		return
	}
	entries, err := a.Store.List()
	if err != nil {
		return
	}
	for _, key := range a.SourceFiles.Keys() {
		kept := false
		for _, e := range entries {
			kept = kept || e.Key == key
		}
		if !kept {
			a.SourceFiles.Keep(key, nil)
		}
	}
}
