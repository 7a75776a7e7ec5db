package ui

import (
	"cmp"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/ui/state"
)

// demoPrefix is the first part of the key of a demo's analysis. The key is the same in every
// browser: demo-NAME, or demo-NAME-HASH with settings other than the defaults.
const demoPrefix = "demo-"

// demo returns the demo with the given name; nil if there is no such demo.
func (a *App) demo(name string) *Demo {
	for _, d := range a.Port.Demos() {
		if d.Name == name {
			return &d
		}
	}
	return nil
}

// demoOfKey returns the demo to which a key belongs: the demo with the longest matching name.
func (a *App) demoOfKey(key string) (found *Demo) {
	for _, d := range a.Port.Demos() {
		prefix := demoPrefix + d.Name
		if (key == prefix || strings.HasPrefix(key, prefix+"-")) && (found == nil || len(d.Name) > len(found.Name)) {
			found = &d
		}
	}
	return found
}

// item returns the demo as an item for [App.Offer]. The link's settings override the demo's.
func (d *Demo) item(link string) Item {
	return Item{Demo: d.Name, URL: d.URL, Title: d.Title, opens: link, link: true}
}

// screenOf returns the screen that is shown when an item is opened as the analysis with the given
// key.
func (a *App) screenOf(item Item, key string) state.Screen {
	d := a.demo(item.Demo)
	if d == nil {
		return a.Screen.Anew(key)
	}
	s := state.ParseScreen(item.opens)
	if s.Open == "" { // a link to an open analysis does not include the demo's screen
		preset := s.Preset != "" && s.Levels == nil
		if s = state.ParseScreen(d.screen() + "&" + item.opens); preset {
			s.Levels = nil
		}
	}
	s.Open, s.Other, s.Demo = key, "", ""
	return s
}

// screen returns the URL's hash for the screen that the demo opens.
func (d *Demo) screen() string { return cmp.Or(d.Opens, "view="+state.TabCaches.Slug()) }

// spec returns the spec for the analysis of an item, with the form's settings.
func (a *App) spec(item Item, settings state.Settings) (analysis.Spec, error) {
	spec, err := settings.Spec()
	if err != nil {
		return spec, err
	}
	spec.Domains = item.domains
	spec.Skip, spec.Limit = item.part.refs.From, item.part.refs.To-item.part.refs.From
	h, d := a.currentMachine(), a.demo(item.Demo)
	if spec.Analyses |= item.analyses; item.analyses&analysis.Loops != 0 {
		spec.Analyses &^= analysis.Regular
	}
	if d != nil && !item.again { // links to a demo always use the same analysis
		h = a.machineOfScreen(state.ParseScreen(d.screen()))
	}
	state.Measure(&spec, h.Levels)
	return spec, nil
}

// demoKey returns the key of the analysis of a demo, or of a part of any run. It ends in a hash of
// the settings, except for a demo with the default settings.
func (a *App) demoKey(item Item, spec analysis.Spec) string {
	key := demoPrefix + item.Demo
	if item.part.of != "" {
		key = item.part.key()
	}
	usual, err := a.spec(Item{Demo: item.Demo, part: item.part}, state.Settings{})
	if text := state.SpecKey(spec); item.Demo == "" || err != nil || text != state.SpecKey(usual) {
		h := fnv.New64a()
		h.Write([]byte(text))
		key += "-" + strconv.FormatUint(h.Sum64(), 16)
	}
	return key
}

// keptDemo returns the key of a demo's analysis with the form's settings, or "" if this analysis is
// not stored or is incomplete.
func (a *App) keptDemo(item Item) (key string) {
	a.update(func() {
		if spec, err := a.spec(item, a.Port.Settings()); err == nil {
			key = a.demoKey(item, spec)
		}
	})
	if e, ok := a.entry(key); !ok || e.State != profile.EntryComplete {
		return ""
	}
	return key
}

// fetchDemo fetches the trace of a demo whose analysis is stored, because predictions and further
// analyses read the trace. fetchDemo may block.
func (a *App) fetchDemo(key string) {
	d, known := a.demoOfKey(key), true
	a.update(func() { _, known = a.items[key] })
	if d == nil || known {
		return
	}
	item := d.item("")
	file, err := a.Port.Fetch(d.URL, d.Name)
	if err != nil {
		return
	}
	item.File, item.File.Name = file, d.Title
	a.update(func() {
		item.part = a.partOf(key)
		if a.items == nil {
			a.items = map[string]Item{}
		}
		a.items[key] = item
	})
}

// openKept opens an item whose analysis is stored. openKept may block.
func (a *App) openKept(key string, item Item) {
	var hash string
	a.update(func() {
		hash = a.screenOf(item, key).Hash()
		a.Port.SetHash(hash, item.link)
	})
	a.Navigate("#" + hash)
	a.update(func() {
		if a.origin = ""; item.Demo != "" {
			a.origin = demoPrefix + item.Demo
		}
		a.compareOpened(key)
	})
}

// leaveIfNothing returns to the first screen if a link led to no result. The problem is already
// shown.
func (a *App) leaveIfNothing() {
	var nothing bool
	var problem string
	a.update(func() {
		missing := a.result == nil || a.comparing() && a.other == nil
		nothing, problem = missing && a.run == nil && a.Screen.Open != "", a.Problem
	})
	if nothing {
		a.giveUp(problem)
	}
}

// openDemo follows a link to a demo.
func (a *App) openDemo(name, hash string) {
	d := a.demo(name)
	if d == nil {
		var names []string
		for _, d := range a.Port.Demos() {
			names = append(names, d.Name)
		}
		a.giveUp("The link names a demo that does not exist, “" + name + "”. The names of the demos are " + strings.Join(names, ", ") + ".")
		return
	}
	a.Offer(d.item(strings.TrimPrefix(hash, "#")))
	if unread := strings.Join(state.Unread(hash), " "); unread != "" {
		a.update(func() {
			a.Note = unread
			a.Port.Announce(unread)
		})
	}
}

// analysesLinked reports whether a key belongs to a demo without a stored analysis. If so, it
// starts to analyse the demos of the screen. It may block.
func (a *App) analysesLinked(key string) bool {
	if _, kept := a.entry(key); kept || a.demoOfKey(key) == nil {
		return false
	}
	a.update(func() { go a.analyseLinked(a.Screen) })
	return true
}

// analyseLinked analyses those demos of a screen whose analyses are not stored, and then shows the
// screen. analyseLinked blocks until these demos have been analysed.
func (a *App) analyseLinked(s state.Screen) {
	for _, key := range []*string{&s.Open, &s.Other} {
		d := a.demoOfKey(*key)
		if _, kept := a.entry(*key); kept || d == nil {
			continue
		}
		item := d.item(s.Against("").Hash())
		a.update(func() { item.part = a.partOf(*key) })
		if item.part.of != "" {
			item.part.of = demoPrefix + d.Name
		}
		a.Offer(item)
		if *key = a.keptDemo(item); *key == "" || s.Other == "" {
			a.leaveIfNothing()
			return
		}
	}
	a.update(func() { a.Port.SetHash(s.Hash(), true) })
	a.Navigate("#" + s.Hash())
}
