package ui

import "github.com/stackglass/stackglass/core/profile"

// Handles reopens dropped files in browsers that can store a file handle, a reference to a file
// without its content. All methods may block.
type Handles interface {
	// Keep remembers a file under the key of its analysis.
	Keep(key string, f File)
	// Keys returns the keys of all stored handles.
	Keys() []string
	// Reopen asks the user for permission to read the file, and returns the file in its current state.
	// Browsers ask for permission only during a click.
	Reopen(key string) (File, error)
	Forget(key string)
}

// keepFile remembers the file of an analysis that is starting.
func (a *App) keepFile(key string, f File) {
	if a.Handles != nil && f.Handle != nil {
		go a.Handles.Keep(key, f)
	}
}

// reopenable returns the keys of interrupted analyses whose files the browser can open again. It
// deletes the file handles of all analyses that are neither interrupted nor running.
func (a *App) reopenable(entries []profile.Entry, elsewhere map[string]bool) map[string]bool {
	if a.Handles == nil {
		return nil
	}
	interrupted := map[string]bool{}
	for _, e := range entries {
		interrupted[e.Key] = e.State == profile.EntryInterrupted
	}
	var running string
	a.update(func() {
		if a.run != nil {
			running = a.run.key
		}
	})
	remembered := map[string]bool{}
	for _, key := range a.Handles.Keys() {
		switch {
		case interrupted[key]:
			remembered[key] = true
		case key != running && !elsewhere[key]:
			a.Handles.Forget(key)
		}
	}
	return remembered
}

// reopen resumes an interrupted analysis whose file the browser can open again.
func (a *App) reopen(key, name string) {
	f, err := a.Handles.Reopen(key)
	if err != nil {
		a.update(func() {
			a.wanted, a.Note = key, ""
			a.addProblem(name + " could not be opened again (" + err.Error() + "). Drop the file, or press “resume” to choose it: the analysis resumes where it stopped.")
			delete(a.files, key)
		})
		return
	}
	a.update(func() { a.wanted = key })
	a.Offer(Item{File: f})
}
