package ui

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/attribution"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace/sourcefile"
	"github.com/stackglass/stackglass/ui/state"
)

// codeState is the state of the Code view that the URL does not contain: the search, the source
// files that the user opened, and the results of the last render.
type codeState struct {
	search  string
	sourced bool // whether the text of any source file of the profile is available
	wide    bool // whether the ranking shows all columns and is above the source
	sources state.Sources
	fetched string // the demo source that was requested last
	// for each file name: the index of the file that is shown if several files have this name
	chosen  map[string]int
	dropped map[string][]*state.Source // for the key of each analysis: the files that the user dropped

	recorded   *sourcefile.Files // the source files that the profile in the field "recordedIn" contains
	recordedIn *profile.Profile

	of      *state.View
	machine hierarchy.Hierarchy
	levels  []attribution.Attribution
	doubts  []hierarchy.Warning
	sums    map[attribution.By]*state.Code // for each grouping: the misses of each level, attributed to rows
	view    *state.CodeView
	picked  int // the selected row; -1: none
	// results for the selected row, computed when they are first shown
	tables    map[string]*state.Table
	distances *state.Chart

	instructions verbAnswer          // the LLVM IR instructions of the selected line
	listed       *state.Instructions // the instructions in view
	// the site of the instruction that the user selected, plus 1; 0: none
	site int
}

// pickedSite returns the site of the instruction that the user selected; -1 if there is none.
func (c *codeState) pickedSite() int { return c.site - 1 }

// codeView returns the Code view of the result in view; nil if there are no sites. It is recomputed
// when its inputs change.
func (a *App) codeView() *state.CodeView {
	r, c := a.result, &a.code
	if r == nil || r.View == nil || r.Profile.Sites == nil {
		return nil
	}
	of := a.inRange()
	rank := of.Ranker()
	if rank == nil {
		return nil
	}
	if h := a.Machine(); c.of != of || !state.SameMachine(c.machine, h) {
		c.of, c.machine, c.view, c.sums = of, h, nil, map[attribution.By]*state.Code{}
		c.levels, c.doubts, _ = rank.Attribute(h) // the Caches view explains why there is no answer
	}
	by := cmp.Or(a.Screen.Place, attribution.Line)
	if by == attribution.Object && len(r.Profile.Sites.Data) == 0 {
		by = attribution.Line
	}
	if len(c.levels) == 0 {
		return nil
	}
	if c.sums[by] == nil {
		c.sums[by] = state.NewCode(r.answers.Run, rank, by, c.levels)
	}
	if c.sums[attribution.Line] == nil {
		c.sums[attribution.Line] = state.NewCode(r.answers.Run, rank, attribution.Line, c.levels)
	}
	if v := c.view; v == nil || v.Code != c.sums[by] || v.Sort != a.Screen.Sort || v.Search != c.search {
		c.view, c.tables, c.distances = state.NewCodeView(c.sums[by], a.Screen.Sort, c.search), nil, nil
		c.view.Lines, c.view.Advice = c.sums[attribution.Line], a.adviceOn
		c.view.Document, c.view.OfPlace = of.SitesDocument(by, c.machine), of.PlaceDocument(by, c.machine)
	}
	c.view.Brief = c.sourced && !c.wide && a.Screen.Table != "instructions"
	return c.view
}

// adviceOn returns the problem that the diagnosis found in a line; nil if there is no problem, or
// no diagnosis yet.
func (a *App) adviceOn(file string, line uint32) *state.Advice {
	if r := a.result; r != nil && r.Profile == a.diagnosis.of && file != "" {
		for i := range a.diagnosis.advice {
			if p := &a.diagnosis.advice[i]; p.File == file && p.Line == line {
				return p
			}
		}
	}
	return nil
}

// pickedPlace returns the selected row, or the first row of the ranking if no row is selected; -1
// if the ranking is empty.
func (a *App) pickedPlace() int {
	v := a.codeView()
	if v == nil {
		return -1
	}
	if place := v.Find(a.Screen.Picked - 1); place >= 0 {
		return place
	}
	return v.At(0)
}

func newCode(a *App) View {
	c := &CodeView{App: a, Distances: newFigure(a, "place", helpPlace), Before: newTable(a, "before"), Operands: newTable(a, "operands"),
		Evictions: newTable(a, "evictions"), Exchanges: newTable(a, "exchanges")}
	c.Caveats = &Caveats{ID: "code-doubts", List: c.doubts}
	return c
}

// Placed implements [placed].
func (c *CodeView) Placed() bool { return true }

// Waits implements [View].
func (c *CodeView) Waits() string {
	why := c.App.missingAccesses()
	if why == "" && c.App.codeView() == nil {
		why = "The misses cannot be attributed: " + c.App.answer().Problem + "."
	}
	return why
}

// Draw implements [View].
func (c *CodeView) Draw() {
	a := c.App
	a.fetchDemoSource()
	a.askForLoops()
	a.code.sourced = slices.ContainsFunc(c.view().Files(), func(name string) bool { return len(a.sourcesOf(name)) > 0 })
	v, place := c.view(), c.place()
	if l := a.loops(); l == nil {
		v.Loops = nil
	} else if v.Loops == nil {
		v.Loops = l.Lines()
	}
	a.grid(v.Grid(place))
	if place < 0 {
		return
	}
	made := c.pickedState()
	if made.distances == nil {
		made.distances = v.Distances(place)
	}
	a.draw(made.distances)
	if c.showsInstructions() && c.instructionsMissing() == "" {
		x := &a.code.instructions
		r := a.result
		x.ask(a, r, state.InstructionsQuestion(v.Line(place)), func() {
			first := a.code.listed == nil
			if a.code.listed = nil; x.reply != nil {
				a.code.listed = state.NewInstructions(r.Profile, x.reply)
			}
			a.drawAgain(state.TabCode)
			if t := c.Table("instructions"); t != nil && first {
				a.Port.Announce(t.Caption)
			}
		})
		if c.listed() {
			a.grid(v.InstructionsGrid(a.code.listed, place, a.code.pickedSite()))
		}
	}
	if f, line := a.source(); f != nil {
		name, _ := v.Location(place)
		a.grid(v.SourceGrid(f, name, line))
	}
}

// pickedState returns the state of the view, without the results for a row that is no longer selected.
func (c *CodeView) pickedState() *codeState {
	made := &c.App.code
	if place := c.place(); made.picked != place {
		made.picked, made.tables, made.distances = place, nil, nil
	}
	return made
}

// Table implements [View].
func (c *CodeView) Table(name string) *state.Table {
	v, place, made := c.view(), c.place(), c.pickedState()
	if name == "code" {
		return v.Grid(-1).Table
	}
	if place < 0 {
		return nil
	}
	if made.tables == nil {
		made.tables = map[string]*state.Table{"place": v.DistancesTable(place), "before": v.Before(place),
			"operands": v.Operands(place, c.App.inRange().SitesDocument(attribution.Site, c.App.code.machine))}
	}
	switch {
	case made.tables[name] != nil:
	case name == "evictions" && v.By != attribution.Object && c.App.evictionsCounted():
		made.tables[name] = c.App.loops().LineEvictions(v.SourceLines(place))
	case name == "exchanges" && v.By != attribution.Object && state.TabCommunication.Missing(c.App.result.Profile) == "":
		made.tables[name] = c.App.result.View.LineExchanges(v.SourceLines(place))
	case name == "instructions" && c.listed():
		return made.listed.Table()
	}
	return made.tables[name]
}

// evictionsNote explains why there is no table of evictions, or which evictions the table may lack.
func (c *CodeView) evictionsNote() string {
	a := c.App
	if c.view().By == attribution.Object {
		return ""
	}
	if c.Table("evictions") != nil {
		return a.loops().UnknownUsers()
	}
	missing := state.TabLoops.Missing(a.result.Profile)
	switch {
	case missing != "":
		return "Evictions are counted in the loop-compressed trace. " + missing
	case !a.evictionsCounted() && a.nests.failed != "":
		return a.nests.failed
	case !a.evictionsCounted():
		return "The evictions are being counted …"
	}
	if !a.loops().Evicts() {
		return "The evictions from these caches cannot be counted. See Loops for the reason."
	}
	text := "This " + state.PlaceName(c.view().By) + " evicts no cache lines"
	if unknown := a.loops().UnknownUsers(); unknown != "" {
		return text + ". " + unknown
	}
	return text + ", and the cache lines that it used last are not evicted."
}

// listed reports whether LLVM IR instructions of this result are known. Until the
// instructions of the selected line arrive, they are the instructions of the previously selected line.
func (c *CodeView) listed() bool {
	made := &c.App.code
	return made.listed != nil && made.instructions.of == c.App.result.Profile && c.instructionsMissing() == ""
}

// showsInstructions reports whether the LLVM IR instructions of the selected line are shown.
func (c *CodeView) showsInstructions() bool { return c.App.Screen.Table == "instructions" }

func (c *CodeView) expanded() string { return strconv.FormatBool(c.showsInstructions()) }

// toggleInstructions shows or hides the LLVM IR instructions of the selected line.
func (c *CodeView) toggleInstructions() { c.App.goTo(c.App.Screen.Toggle("instructions"), true) }

// instructionsMissing explains why the LLVM IR instructions of the selected row cannot be listed; "" if
// they can.
func (c *CodeView) instructionsMissing() string {
	switch missing := state.TabBlocks.Missing(c.App.result.Profile); {
	case missing != "":
		return missing
	case c.view().Line(c.place()) == "":
		return "To see instructions, group by source line and select a line."
	}
	return ""
}

// noInstructions explains why there is no table of LLVM IR instructions.
func (c *CodeView) noInstructions() string {
	x := &c.App.code.instructions
	switch missing := c.instructionsMissing(); {
	case missing != "":
		return missing
	case x.err != nil:
		return "The instructions could not be listed: " + x.err.Error() + ". Reload the page to try again."
	case x.asker.busy() || x.reply == nil:
		return "The instructions are being listed …"
	}
	return "The instructions could not be listed: " + x.reply.Problem + "."
}

// SumCodeBy changes how misses are grouped.
func (a *App) SumCodeBy(by attribution.By) { a.goTo(a.Screen.SummedIn(by), true) }

// Search shows only the rows that contain the words.
func (a *App) Search(words string) {
	a.code.search = words
	a.goTo(a.Screen, true)
	if v := a.codeView(); v != nil {
		a.Port.Announce(v.Summary())
	}
}

// PickRow selects the row that was picked in a grid: a row of the ranking, a source line, or a
// loop. PickRow must be called from a separate goroutine.
func (a *App) PickRow(grid string, row int) {
	a.update(func() {
		if g := a.grids[grid]; g != nil {
			row = g.At(row)
		}
		switch grid {
		case "loops":
			a.pickLoop(row)
			return
		case "data":
			a.pickData(row)
			return
		case "functions", "blocks":
			a.pickModel(grid, row)
			return
		}
		if tree, is := strings.CutPrefix(grid, "calls-"); is {
			a.zoomCalls(tree, row)
			return
		}
		v := a.codeView()
		if v == nil || a.comparing() {
			return
		}
		if grid == "source" {
			a.pickLine(uint32(row + 1))
		} else if grid == "instructions" {
			a.pickInstruction(row)
		} else if place := v.At(row); place >= 0 {
			a.selectRow(a.Screen, place)
		}
	})
}

// ShowFunction shows the source of a function, given its ID in the ranking by function.
// ShowFunction must be called from a separate goroutine.
func (a *App) ShowFunction(id int) {
	a.update(func() {
		s := a.Screen
		if s.Tab != state.TabCode {
			s = s.With(state.TabCode)
		}
		a.goTo(s.SummedIn(attribution.Function), true)
		if v := a.codeView(); v != nil && v.Find(id) >= 0 {
			a.selectRow(a.Screen, v.Find(id))
		}
	})
}

// selectRow shows the given screen with a row of the ranking selected.
func (a *App) selectRow(s state.Screen, place int) {
	v := a.codeView()
	s.Picked = v.ID(place) + 1
	a.goTo(s, true)
	a.Port.Announce(v.Place(place) + ": " + v.Sentence(place))
}

// pickLine selects a line of the source in view, and groups the ranking by line.
func (a *App) pickLine(line uint32) {
	v := a.codeView()
	name, _ := v.Location(a.pickedPlace())
	if _, misses := v.Lines.InFile(name)[line]; !misses {
		return
	}
	s := a.Screen
	if v.By != attribution.Line {
		s = s.SummedIn(attribution.Line)
		a.goTo(s, true)
		v = a.codeView()
	}
	a.selectRow(s, v.LinePlace(name, line))
}

// pickInstruction selects the source line of an LLVM IR instruction. If the ranking is grouped by
// instruction, pickInstruction selects the instruction.
func (a *App) pickInstruction(row int) {
	v, x := a.codeView(), a.code.listed
	if v == nil || x == nil {
		return
	}
	site := x.Site(row)
	place := v.PlaceOf(site)
	if place < 0 {
		a.Port.Announce("This row accesses no memory. Select a load or a store to see its source line.")
		return
	}
	a.code.site = site + 1
	a.selectRow(a.Screen, place)
}

// NextHot selects the next or the previous line with many misses in the source file in view.
// NextHot wraps around at both ends of the file.
func (a *App) NextHot(forward bool) {
	v := a.codeView()
	f, line := a.source()
	if f == nil {
		return
	}
	name, _ := v.Location(a.pickedPlace())
	hot := v.Hot(name)
	if len(hot) == 0 {
		return
	}
	at, is := slices.BinarySearch(hot, line)
	switch {
	case !forward:
		at--
	case is:
		at++
	}
	a.pickLine(hot[(at+len(hot))%len(hot)])
}

// ShowAllColumns shows all columns of the ranking, which then appears above the source. The next
// call shows the narrow ranking next to the source again.
func (a *App) ShowAllColumns() {
	a.code.wide = !a.code.wide
	a.goTo(a.Screen, true)
}

// source returns the file and the line of the selected row; nil if the user has not opened the
// file.
func (a *App) source() (f *state.Source, line uint32) {
	v, place := a.codeView(), a.pickedPlace()
	if place < 0 {
		return nil, 0
	}
	name, line := v.Location(place)
	if all := a.sourcesOf(name); len(all) > 0 {
		return all[min(a.code.chosen[name], len(all)-1)], line
	}
	return nil, line
}

// sourcesOf returns the source files for a name in the profile: the file that was recorded with the
// program, or the files that the user opened.
func (a *App) sourcesOf(name string) []*state.Source {
	if r, made := a.result, &a.code; r != nil && r.Profile != nil {
		if made.recordedIn != r.Profile {
			made.recordedIn, made.recorded = r.Profile, sourcefile.New(r.Profile.Sources)
		}
		if lines := made.recorded.Lines(name); lines != nil {
			return []*state.Source{{Name: path.Base(name), Path: name, Lines: lines}}
		}
	}
	return a.code.sources.Of(name)
}

// ChooseSource selects one of several files with the same name.
func (a *App) ChooseSource(name string, number int) {
	if a.code.chosen == nil {
		a.code.chosen = map[string]int{}
	}
	a.code.chosen[name] = number
	a.goTo(a.Screen, true)
}

// isSourceFile reports whether a file is source code. This is the case if the file has the
// extension of a source file, or if the result in view refers to a file with this name.
func (a *App) isSourceFile(name string) bool {
	if state.IsSource(name) {
		return true
	}
	named := false
	a.update(func() {
		if v := a.codeView(); v != nil && a.Screen.Tab == state.TabCode {
			named = len(v.FilesNamed(name)) > 0
		}
	})
	return named
}

// takeSource keeps a source file in memory, to show it next to the misses of its lines.
func (a *App) takeSource(file File) {
	f, problem := readSource(file)
	a.update(func() {
		if problem != "" {
			a.addProblem(problem)
			return
		}
		if have := a.code.sources.Add(f); have == f {
			a.keepSource(f)
		}
		a.Note = a.sourceNote(f)
		a.Port.Announce(a.Note)
		a.drawCharts()
	})
}

// readSource reads a source file, or returns a sentence that explains why the file cannot be read.
func readSource(file File) (f *state.Source, problem string) {
	content, err := file.Read(0)
	if err != nil {
		return nil, file.Name + " could not be read: " + err.Error() + "."
	}
	return state.NewSource(file.Name, file.Path, content)
}

// sourceNote returns a sentence about where the page shows a source file.
func (a *App) sourceNote(f *state.Source) string {
	v := a.codeView()
	switch {
	case a.result == nil:
		return f.Name + " is source code. Results that refer to this file show its lines in Diagnosis and Code."
	case v == nil:
		return f.Name + " is source code, but this result does not refer to any source file."
	case len(v.FilesNamed(f.Name)) == 0:
		return f.Name + " is source code, but this result does not refer to this file. The result refers to " + someNames(v.Files()) + "."
	case a.code.recorded != nil && slices.ContainsFunc(v.FilesNamed(f.Name), func(name string) bool { return a.code.recorded.Lines(name) != nil }):
		return f.Name + " was recorded with the program. The page shows the recorded source."
	case slices.ContainsFunc(v.FilesNamed(f.Name), func(name string) bool { return len(a.sourcesOf(name)) > 1 }):
		return "There are " + strconv.Itoa(len(a.sourcesOf(f.Name))) + " files named " + f.Name + " now. Choose the file that was compiled."
	}
	text := f.Name + " is shown with the misses of each line. "
	if a.SourceFiles == nil {
		return text + "It is kept in this tab's memory until the tab is closed."
	}
	return text + "It is kept in this browser, with the analysis, until you remove it."
}

// someNames returns a text with the first few names of a list.
func someNames(names []string) string {
	const few = 4
	text := ""
	for i, n := range names {
		if i == few {
			return text + " and " + strconv.Itoa(len(names)-few) + " more"
		}
		if i > 0 {
			text += ", "
		}
		text += n
	}
	return text
}

// fetchDemoSource fetches the source file of a demo from this site, in the background. Without the
// source file, the page shows only line numbers.
func (a *App) fetchDemoSource() {
	r := a.result
	if r == nil || r.demo == nil || r.demo.Source == "" || a.code.fetched == r.demo.Source {
		return
	}
	url := r.demo.Source
	a.code.fetched = url
	go func() {
		file, err := a.Port.Fetch(url, url[len("demos/"):])
		if err != nil {
			return
		}
		if f, problem := readSource(file); problem == "" {
			a.update(func() {
				a.code.sources.Add(f)
				a.drawAgain(state.TabCode)
			})
		}
	}()
}
