package ui

import (
	"cmp"
	"strings"
	"sync/atomic"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/ui/state"
	"github.com/vugu/vugu"
)

// App contains the state of the page and the handlers of the events that change this state.
type App struct {
	Env   vugu.EventEnv
	Port  Port
	Store profile.Store // nil if the browser has no storage; NoStore contains the reason
	// NoStore explains why analyses are not stored.
	NoStore string
	Tabs    Tabs    // nil if the tabs of this browser cannot communicate
	Handles Handles // nil if the browser cannot store handles
	Shelves Shelves // nil if there are no spill stores
	// SourceFiles is nil if the browser has no storage.
	SourceFiles SourceFiles

	Screen  state.Screen
	Problem string // problems that the user has not dismissed; see [state.AddProblem]
	Note    string // a message that reports no problem; the next event removes it

	kept      []profile.Entry
	elsewhere map[string]bool // keys of the analyses that were running in any tab when the list of stored analyses was read
	files     map[string]bool // keys of interrupted analyses whose files can be opened again
	listed    bool            // whether the list of stored analyses was read, successfully or not
	used      uint64          // bytes of storage in use when the list of stored analyses was read; 0: unknown
	editing   string          // key of the entry that is being renamed
	newName   string
	doomed    string // key of the entry whose deletion the user must confirm

	run     *run
	waiting []Item          // items dropped while an analysis was running
	items   map[string]Item // for each key: the item that was analysed since the page was loaded
	origin  string          // id of the element from which the user opened the result in view
	wanted  string          // key of the analysis to resume, chosen in the list
	// the part of a run to analyse when the user opens the file of the run; zero: none
	wantedPart part
	lost       string // name of an analysis that was interrupted before its first checkpoint; "": none

	presets []hierarchy.Hierarchy // computed on first use
	cpus    *report.Table         // the table of processors in the latest answer
	// whether the file picker asks for a description of a hierarchy
	describing bool

	opened map[state.Tab]View // views of one result, each created when first opened
	both   View               // the view that compares two results

	result  *Result
	other   *Result // side B of a comparison, whose side A is the field "result"; see comparing
	against string  // key of the analysis with which the next result is compared

	compared       *state.Comparison
	comparedTables map[string]*state.Table

	charts    map[string]*state.Chart // for each id: the chart passed to Port
	handed    map[string]any          // for each id: the latest data passed to Port
	grids     map[string]*state.Grid  // for each id: the latest table passed to Port
	smalls    *state.Threads          // the view whose small charts are in the field "each"
	each      []*state.Chart          // one small chart for each core
	chosen    map[string]int          // for each demo: the user's prediction in the exercise; nil until loaded
	code      codeState
	line      timelineState
	calls     callState
	nests     loopState
	diagnosis diagnosisState
	data      dataState
	diagnoses diagnosesState
	models    modelState
	pair      pairState
	verbs     [2]verbAnswer // the second program's answers about A and B; see askBoth
	cores     coreState
	changed   bool
	links     atomic.Int64 // number of links that the user followed; only the last link counts
	step      string       // the control that caused the latest history entry; see adjust
	pressed   atomic.Bool  // whether the pointer was pressed since the latest history entry
}

// Result is the analysis in view.
type Result struct {
	Key, Name string
	Digest    string
	Live      bool // the analysis is still running
	Profile   *profile.Profile
	View      *state.View // nil before the first access is counted

	demo     *Demo           // the demo, if the whole trace of a demo was analysed; otherwise nil
	findings []state.Finding // the findings about View; computed on first use
	foundFor hierarchy.Hierarchy
	answers  *state.Answers
	readable map[string]string   // for each mangled name: the function's readable name; nil: not known yet
	asked    hierarchy.Hierarchy // the hierarchy to which the field "answer" belongs
	answered *state.View         // the view to which the field "answer" belongs
	answer   *state.Caches

	counterKeys []string // keys of the tables of counters, in the order of the page
	counters    map[string]*state.Table
	summed      answers.CountersBy // grouping of the counters
	sorted      string             // column by which counters are sorted
}

// Changed reports whether anything has changed since the last call. If nothing has changed, the
// page is not rendered again.
func (a *App) Changed() bool {
	was := a.changed
	a.changed = false
	return was
}

func (a *App) touch() { a.changed = true }

// update changes the app from a goroutine and renders the page.
func (a *App) update(f func()) {
	a.Env.Lock()
	f()
	a.touch()
	a.Env.UnlockRender()
}

// Start navigates to the screen in the URL's hash, and reads the list of stored analyses.
func (a *App) Start(hash string) {
	a.Navigate(hash)
	if a.Screen.Open != "" {
		a.reload()
	}
}

// reload reads the list of stored analyses. It waits for the store.
func (a *App) reload() {
	if a.Store == nil {
		return
	}
	entries, err := a.Store.List()
	used, _, _ := a.Store.Usage()
	var elsewhere, files map[string]bool
	if a.Tabs != nil {
		elsewhere = a.Tabs.Owned()
	}
	if err == nil {
		files = a.reopenable(entries, elsewhere)
	}
	a.update(func() {
		a.listed, a.used = true, used
		a.elsewhere, a.files = elsewhere, files
		if err != nil {
			a.Problem = "The list of kept analyses could not be read: " + err.Error() + ". Reload the page to try again."
			return
		}
		a.kept = entries
		a.findLost(entries, elsewhere)
		a.showInterrupted()
	})
}

// Follow navigates to the screen in the URL's hash after the hash has changed. If the user follows
// several links in quick succession, the last link takes effect, even while an earlier change of
// the screen is pending. Follow must be called on the event thread.
func (a *App) Follow(hash string) {
	turn := a.links.Add(1)
	go func() {
		a.navigate(func() (string, bool) {
			if turn != a.links.Load() {
				return "", false
			}
			if a.Port.Hash() != hash {
				a.Port.SetHash(hash, true)
			}
			return "#" + hash, true
		})
	}()
}

// Navigate navigates to the screen that a hash describes. Navigate waits for the store.
func (a *App) Navigate(hash string) {
	a.navigate(func() (string, bool) { return hash, true })
}

func (a *App) navigate(to func() (hash string, yes bool)) {
	var screen state.Screen
	var load, demo string
	var yes bool
	a.update(func() {
		var hash string
		if hash, yes = to(); !yes {
			return
		}
		if strings.HasPrefix(hash, "#") && !strings.Contains(hash, "=") {
			hash = "" // an anchor on the first screen
		}
		var unread []string
		screen, unread = state.ParseScreen(hash), state.Unread(hash)
		if demos := a.Port.Demos(); screen.Open == "" && screen.Exercise > 0 && screen.Exercise <= len(demos) {
			screen.Demo = demos[screen.Exercise-1].Name
		}
		if screen.Demo != "" {
			demo = hash
			return
		}
		before := a.Screen
		a.Screen, a.step, a.wantedPart = screen, "", part{}
		a.Note = strings.Join(unread, " ")
		if unread != nil {
			a.Port.SetHash(screen.Hash(), true) // the hash of the screen that is shown
			a.Port.Announce(a.Note)
		}
		if screen.Other != "" {
			a.against = ""
		}
		if before.Open == "" {
			a.origin = "open-" + screen.Open
		}
		switch {
		case screen.Open == "":
			if before.Open != "" {
				a.Port.SetTitle("stackglass")
				a.Port.Announce("Analyses")
				a.Port.Focus(a.wayBack(before.Open))
			}
		case a.run != nil && a.run.key == screen.Open && (a.result == nil || a.result.Key != screen.Open):
			a.present(&Result{Key: a.run.key, Name: a.run.name, Live: true, Profile: a.run.growing})
		case a.result == nil || a.result.Key != screen.Open:
			load = screen.Open
			a.result = nil
		default:
			if before.LineBytes != screen.LineBytes {
				a.result.show(screen.LineBytes)
				if a.other != nil {
					a.other.show(screen.LineBytes)
				}
			}
			if before.Other != "" && screen.Other == "" {
				a.Port.Focus("result-title") // the clicked link is no longer on the page
			}
			if before.Tab != screen.Tab {
				a.Port.Announce(screen.Tab.Name())
			}
		}
		a.Port.ShowFirst(screen.Open == "")
		a.drawCharts()
	})
	switch {
	case !yes:
	case demo != "":
		go a.openDemo(screen.Demo, demo)
	case load != "":
		a.load(load)
	case screen.Open != "":
		a.loadOther()
	default:
		a.reload() // another tab may have stored or deleted analyses
	}
}

// wayBack returns the element from which the user opened the result that was just closed: a demo's
// card, or a row in the list.
func (a *App) wayBack(key string) string {
	if a.origin != "open-"+key && a.origin != "" {
		return a.origin
	}
	for _, e := range a.kept {
		if e.Key == key && e.State != profile.EntryInterrupted {
			return "open-" + key
		}
	}
	return "kept-title"
}

// load opens a stored analysis. It waits for the store.
func (a *App) load(key string) {
	r, problem := a.readKept(key)
	if problem != "" {
		if a.analysesLinked(key) {
			return
		}
		a.giveUp(problem)
		return
	}
	a.fetchDemo(key)
	a.update(func() {
		if a.Screen.Open != key { // the user has navigated elsewhere in the meantime
			return
		}
		a.present(r)
		a.Port.Focus("result-title")
	})
	a.loadOther()
}

// readKept reads a stored analysis, or returns a problem that explains why it cannot be read.
func (a *App) readKept(key string) (r *Result, problem string) {
	if a.Store == nil {
		return nil, a.NoStore
	}
	entries, err := a.Store.List()
	var entry profile.Entry
	for _, e := range entries {
		if e.Key == key {
			entry = e
		}
	}
	switch {
	case err == nil && entry.Key == "":
		return nil, notKept
	case entry.State == profile.EntryInterrupted:
		return nil, "The analysis of " + entry.Name + " was interrupted. Press “resume” beside the analysis in the list, and choose the file again: the analysis resumes where it stopped."
	}
	var data []byte
	if err == nil {
		data, err = a.Store.Get(key)
	}
	var p *profile.Profile
	if err == nil {
		p, err = profile.Decode(data)
	}
	if err != nil {
		return nil, "The analysis could not be opened: " + err.Error() + "."
	}
	return &Result{Key: key, Name: entry.Name, Digest: entry.Digest, Profile: p}, ""
}

// notKept is shown for a link to an analysis that is not in the store.
const notKept = "The linked analysis is not kept in this browser: it was deleted, made in a different browser, or interrupted before its first checkpoint. Other analyses are untouched. Open an analysis from the list, or drop the file that was analysed."

// giveUp returns to the first screen and shows a problem. giveUp waits for the store.
func (a *App) giveUp(problem string) {
	a.update(func() {
		a.Problem = problem
		a.Screen = state.Screen{}
		a.Port.SetHash("", true)
		a.Port.ShowFirst(true)
	})
	a.reload()
}

// present shows a result. The caller holds the lock.
func (a *App) present(r *Result) {
	a.result, a.code.site, a.wantedPart = r, 0, part{}
	if a.models.of != nil && a.models.of != r.Profile {
		a.endModels() // the program that runs the models has loaded a different profile
	}
	r.show(a.Screen.LineBytes)
	r.demo = a.demoOf(r)
	a.readSources(r.Key)
	a.readNames(r)
	a.Port.SetTitle(r.Name + " – stackglass")
	a.drawCharts()
}

// show prepares the view of the profile for a line size.
func (r *Result) show(lineBytes uint32) {
	r.View, r.findings, r.answer, r.answers, r.counters = nil, nil, nil, nil, nil
	if r.Profile == nil {
		return
	}
	r.answers = state.NewAnswers(r.Name, r.Profile)
	r.answers.Run.Digest = r.Digest
	r.answers.Run.Readable = func(name string) string { return cmp.Or(r.readable[name], name) }
	if r.View = state.NewView(r.Profile, lineBytes); r.View != nil {
		r.View.Answers = r.answers
	}
}

// goTo changes the screen and the URL, so that the browser's Back button works. Small changes
// replace the history entry. goTo also removes the note, because it refers to the previous screen.
func (a *App) goTo(s state.Screen, replace bool) {
	before := a.Screen
	a.Note, a.wantedPart = "", part{}
	a.Screen, a.step = s, ""
	a.touch()
	a.Port.SetHash(s.Hash(), replace)
	if before.LineBytes != s.LineBytes && a.result != nil {
		a.result.show(s.LineBytes)
		if a.other != nil {
			a.other.show(s.LineBytes)
		}
	}
	a.drawCharts()
}

// adjust changes the screen after the user has used a control. The change becomes a history entry,
// so that Back undoes it. Dragging a slider, or pressing keys repeatedly on one control, adds only
// one entry.
func (a *App) adjust(control string, s state.Screen) {
	same := !a.pressed.Swap(false) && a.step == control
	a.goTo(s, same || s.Hash() == a.Screen.Hash())
	a.step = control
}

// Pressed records that the pointer was pressed, so that the next adjustment becomes a new history
// entry. Pressed may be called without the lock.
func (a *App) Pressed() { a.pressed.Store(true) }

// Dismiss removes the problem and the note. Dismiss also moves the focus, because the dismiss
// button disappears.
func (a *App) Dismiss() {
	a.Problem, a.Note = "", ""
	if a.Port.Focus("result-title"); a.Screen.Open == "" {
		a.Port.Focus("kept-title")
	}
	a.touch()
}

// SortBy sorts a grid by a column. SortBy must be called from a separate goroutine.
func (a *App) SortBy(grid, column string) {
	a.update(func() {
		s := a.Screen.Sorted(column)
		if g := a.grids[grid]; g != nil && g.Sorts() {
			s = a.Screen.Ordered(grid, column)
		}
		a.goTo(s, true)
	})
}

// grid passes a table to the browser, with its rows in the order that the user has chosen. The caller
// holds the lock.
func (a *App) grid(g *state.Grid) {
	if a.grids == nil {
		a.grids = map[string]*state.Grid{}
	}
	g = g.Sorted(a.Screen.Order(g.ID))
	a.grids[g.ID] = g
	a.Port.Grid(g)
}
