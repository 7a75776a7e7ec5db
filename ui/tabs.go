package ui

import (
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/workers"
)

// Tabs provides access to the other tabs of this page in the same browser. Each analysis runs in
// one tab, its owner. If the same file is opened in other tabs, these tabs watch the owner's
// progress, and one of them takes over if the owner's tab ends for any reason.
type Tabs interface {
	// Own makes this tab the owner of the analysis with the given key, until the function "release" is
	// called or the tab ends. Own returns nil if another tab is the owner.
	Own(key string) (release func())
	// Await waits until this tab becomes the owner. Await returns nil if the channel "leave" is closed
	// first. Like Own, Await may block.
	Await(key string, leave <-chan struct{}) (release func())
	// Owned returns the keys of all analyses that are running in some tab. Owned may block.
	Owned() map[string]bool
	// Tell sends a message to the other tabs, which receive it in [App.Heard].
	Tell(key string, progress []byte)
}

// Heard handles another tab's message. The message contains the progress of the analysis with the
// given key, or, if the key is "", reports a change to the list of stored analyses. Heard may
// block.
func (a *App) Heard(key string, progress []byte) {
	p, err := workers.DecodeProgress(progress)
	known := false
	a.update(func() {
		known = key != "" && a.elsewhere[key]
		if r := a.run; err == nil && r != nil && r.leave != nil && r.key == key {
			r.progress, known = p, true
		}
	})
	if !known {
		a.reload()
	}
}

// Refresh reads the list of stored analyses again, because a tab that has ended sends no message.
// Refresh may block.
func (a *App) Refresh() {
	open := false
	a.update(func() { open = a.Screen.Open != "" })
	if !open {
		a.reload()
	}
}

// Leave ends the runs of a page that the browser is about to suspend, and stops watching other
// tabs. Without Leave, the runs would be suspended together with the page, and no other tab could
// continue them.
func (a *App) Leave() {
	var left *run
	a.update(func() {
		if left = a.run; left == nil {
			return
		}
		if left.leave != nil {
			a.Cancel()
		}
		left.left = true
	})
	if left == nil || left.carrier == nil {
		return
	}
	_ = left.carrier.Close()
	left.release()
}

func (a *App) tell() {
	if a.Tabs != nil {
		a.Tabs.Tell("", nil)
	}
}

// acquire waits until this tab may run the analysis with the given key. If another tab already runs
// the analysis, this tab watches, and takes over if the other tab ends before the analysis is
// finished. The result "over" reports that no work is left.
func (a *App) acquire(item Item, key, name string) (release func(), over bool) {
	if a.Tabs == nil {
		return func() {}, false
	}
	if release := a.Tabs.Own(key); release != nil {
		return release, false
	}
	leave := make(chan struct{})
	a.update(func() {
		a.run.key, a.run.name, a.run.leave = key, name, leave
		a.Screen = a.screenOf(item, key)
		a.Port.SetHash(a.Screen.Hash(), item.link)
		a.Port.ShowFirst(false)
		a.present(&Result{Key: key, Name: name, Live: true})
		a.Note = name + " is being analysed in another tab. The progress is also shown here; if that tab is closed, the analysis continues in this tab."
		a.Port.Announce(a.Note)
		a.Port.Focus("result-title")
	})
	release = a.Tabs.Await(key, leave)
	if release == nil {
		a.endRun("")
		return nil, true
	}
	a.update(func() { a.run.leave, a.Note = nil, "" })
	if e, ok := a.entry(key); ok && e.State != profile.EntryInterrupted {
		release()
		a.endRun(key)
		return nil, true
	}
	return release, false
}

// endRun ends a run without a final message. endRun opens the result with the given key, or returns
// to the list if key is "".
func (a *App) endRun(key string) {
	a.update(func() {
		inView := a.result != nil && a.result.Key == a.run.key
		a.run, a.Note = nil, ""
		if inView {
			a.result = nil
		}
		if inView && key == "" {
			a.goTo(a.Screen.Anew(""), true)
			a.Port.ShowFirst(true)
			a.Port.Focus("kept-title")
		}
	})
	if key != "" {
		a.load(key)
	}
	a.reload()
}

// entry reads an entry from the store.
func (a *App) entry(key string) (e profile.Entry, ok bool) {
	if a.Store == nil {
		return e, false
	}
	entries, _ := a.Store.List()
	for _, e := range entries {
		if e.Key == key {
			return e, true
		}
	}
	return e, false
}
