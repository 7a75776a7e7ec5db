package ui

import (
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/ui/state"
	"github.com/stackglass/stackglass/workers"
)

// currentMachine returns the current hierarchy: the hierarchy in the URL, or else the preset.
func (a *App) currentMachine() hierarchy.Hierarchy { return a.machineOfScreen(a.Screen) }

// machineOfScreen returns the hierarchy that a screen shows.
func (a *App) machineOfScreen(s state.Screen) (h hierarchy.Hierarchy) {
	if h = *a.presetOf(s); s.Levels != nil {
		h = hierarchy.Hierarchy{Levels: s.Levels, Memory: s.Memory, ClockGHz: s.ClockGHz, TLBs: s.TLBs}
	}
	h.Threads = s.Threads
	_ = h.SetPages(s.Own(state.Pages)) // an invalid size in a link leaves the default
	return h
}

// Machine returns the current hierarchy with the profile's line sizes.
func (a *App) Machine() hierarchy.Hierarchy {
	h := a.currentMachine()
	h.Levels = a.Levels()
	return h
}

// Levels returns the caches of the current hierarchy.
func (a *App) Levels() []hierarchy.Cache {
	levels := a.currentMachine().Levels
	if a.result == nil || a.result.View == nil {
		return levels
	}
	return a.result.View.WithLines(levels)
}

func (a *App) preset() *hierarchy.Hierarchy { return a.presetOf(a.Screen) }

func (a *App) presetOf(s state.Screen) *hierarchy.Hierarchy {
	presets := a.Presets()
	if s.Preset == "" {
		return &presets[0]
	}
	for i := range presets {
		if state.PresetSlug(presets[i].Name) == s.Preset {
			return &presets[i]
		}
	}
	return &presets[0]
}

// Presets returns the presets. The presets are computed once, because every render needs them.
func (a *App) Presets() []hierarchy.Hierarchy {
	if a.presets == nil {
		a.presets = hierarchy.Presets()
	}
	return a.presets
}

// answer returns the prediction for the current hierarchy. The prediction is computed again when
// the hierarchy or the view changes.
func (a *App) answer() *state.Caches {
	r := a.result
	h := a.currentMachine()
	if v := a.inRange(); r.answer == nil || r.answered != v || !state.SameMachine(r.asked, h) {
		r.asked, r.answered, r.answer = h, v, v.Predict(h)
	}
	return r.answer
}

// changeLevels applies the change of a control to the levels. The memory and the clock stay the
// same.
func (a *App) changeLevels(control string, f func(levels []hierarchy.Cache) []hierarchy.Cache) {
	a.changeMachine(control, func(s *state.Screen) { s.Levels = f(s.Levels) })
}

// changeLevel applies the change of a control to the given level. Levels are counted from 1.
func (a *App) changeLevel(control string, level int, f func(*hierarchy.Cache)) {
	a.changeLevels(controlID(control, level), func(levels []hierarchy.Cache) []hierarchy.Cache { return state.With(levels, level-1, f) })
}

// changeMachine applies the change of a control to the current hierarchy.
func (a *App) changeMachine(control string, f func(s *state.Screen)) {
	if a.result == nil || a.result.View == nil {
		return
	}
	s, h := a.Screen, a.currentMachine()
	s.Levels, s.Memory, s.ClockGHz, s.TLBs = h.Levels, h.Memory, h.ClockGHz, h.TLBs
	f(&s)
	a.adjust(control, s)
	a.sayAnswer()
}

// controlID returns the element id of a level's control. Levels are counted from 1.
func controlID(control string, level int) string { return control + "-" + strconv.Itoa(level) }

// sayAnswer announces the prediction for the hierarchy to screen readers.
func (a *App) sayAnswer() {
	if r := a.result; r != nil && r.View != nil && !a.comparing() {
		a.Port.Announce(a.answer().Sentence())
	}
}

// SetSize sets the size of a level (counted from 1).
func (a *App) SetSize(level int, bytes uint64) {
	a.changeLevel("size", level, func(c *hierarchy.Cache) {
		line := uint64(c.LineBytes)
		c.SizeBytes = max(bytes-bytes%line, line)
	})
}

// StepWays increases or decreases the number of ways of a level (counted from 1). At either end of
// the range, StepWays does nothing.
func (a *App) StepWays(level, by int) {
	c := a.Levels()[level-1]
	if ways := state.Step(state.Ways(c), c.Ways, by); ways != c.Ways {
		a.changeLevel("ways", level, func(c *hierarchy.Cache) { c.Ways = ways })
	}
}

// StepLine increases or decreases the line size of a level (counted from 1).
func (a *App) StepLine(level, by int) {
	c := a.Levels()[level-1]
	if line := state.Step(a.LineSizes(), c.LineBytes, by); line != c.LineBytes {
		a.changeLevels(controlID("line", level), func(levels []hierarchy.Cache) []hierarchy.Cache { return state.WithLine(levels, level-1, line) })
	}
}

// LineSizes returns the line sizes for which the profile has results.
func (a *App) LineSizes() (list []uint32) {
	for i := range a.result.Profile.Locality {
		list = append(list, a.result.Profile.Locality[i].LineBytes)
	}
	return list
}

// SetLatency sets the latency of a level (counted from 1) from typed text; "" means unknown.
func (a *App) SetLatency(level int, text string) {
	cycles, ok := parseNumber(text)
	if !ok {
		a.refuseTyped(text)
		return
	}
	a.changeLevel("latency", level, func(c *hierarchy.Cache) { c.LatencyCycles = cycles })
}

// SetMemory sets the memory latency or the clock frequency from typed text.
func (a *App) SetMemory(text string, set func(s *state.Screen, x float64)) {
	if x, ok := parseNumber(text); ok {
		a.changeMachine("memory", func(s *state.Screen) { set(s, x) })
		return
	}
	a.refuseTyped(text)
}

// refuseTyped tells the user why a field was reset.
func (a *App) refuseTyped(text string) {
	a.Note = "“" + text + "” is not accepted: a latency or a clock frequency must be a number above zero, such as 4 or 3.5. If the number is unknown, leave the field empty."
	a.Port.Announce(a.Note)
	a.touch()
}

// parseNumber parses a positive number that the user typed; blank text means 0.
func parseNumber(text string) (x float64, ok bool) {
	text = strings.TrimSpace(strings.ReplaceAll(text, ",", "."))
	if text == "" {
		return 0, true
	}
	return hierarchy.ParsePositive(text)
}

// AddLevel adds a level after the last level.
func (a *App) AddLevel() {
	a.changeLevels("level-add", func(levels []hierarchy.Cache) []hierarchy.Cache {
		return state.WithLevel(levels, uint32(a.result.View.LineBytes))
	})
	n := len(a.Levels())
	a.Port.Announce(strconv.Itoa(n) + " levels")
	// The button disappears when the hierarchy has the maximum number of levels.
	if a.Port.Focus("level-add"); n >= state.MaxLevels {
		a.Port.Focus("size-" + strconv.Itoa(n))
	}
}

// RemoveLevel removes a level.
func (a *App) RemoveLevel(level int) {
	a.changeLevels(controlID("remove", level), func(levels []hierarchy.Cache) []hierarchy.Cache { return state.WithoutLevel(levels, level-1) })
	a.Port.Announce(strconv.Itoa(len(a.Levels())) + " levels")
	a.Port.Focus("level-add")
}

// usesMachine reports whether the numbers of the result in view depend on a hierarchy.
func (a *App) usesMachine() bool {
	return a.result != nil && (a.result.View != nil || a.blocks() != nil)
}

// processors returns the table of processors if the view depends on a processor. The table comes
// from the latest answer, so that the user can choose a processor while the next answer is being
// computed.
func (a *App) processors() *report.Table {
	v, is := a.view().(timed)
	if !is {
		return nil
	}
	t, depends := v.Processors()
	if !depends {
		return nil
	}
	if t != nil {
		a.cpus = t
	}
	return a.cpus
}

// SetPreset selects the hierarchy of a preset.
func (a *App) SetPreset(slug string) {
	s := a.Screen
	s.Levels, s.Preset = nil, slug
	a.adjust("preset", s)
	a.sayAnswer()
}

// PlaceThreads chooses the cores on which the threads run. The parameter "choice" is one of
// state.Placements.
func (a *App) PlaceThreads(choice string) {
	a.goTo(a.Screen.ThreadsOn(choice), true)
	a.Port.Announce(a.threadsLine())
	a.sayAnswer()
}

// placements returns the possible placements of the threads in view.
func (a *App) placements() []state.Choice {
	for _, r := range []*Result{a.result, a.other} {
		if r == nil || r.Profile == nil || r == a.other && !a.comparing() {
			continue
		}
		if list := state.Placements(r.Profile); list != nil {
			return list
		}
	}
	return nil
}

// threadsLine returns a sentence about the cores on which the threads in view run; "" for one
// thread.
func (a *App) threadsLine() string {
	if c := a.comparison(); c != nil {
		return c.ThreadsOn(a.Machine())
	}
	if a.result == nil || a.result.Profile == nil || a.comparing() {
		return ""
	}
	return answers.ThreadsOn(a.result.Profile, a.Machine())
}

// Choose changes a part of the hierarchy. The parameter "line" describes the part (see
// [answers.Choices]).
func (a *App) Choose(line string) {
	if size, found := strings.CutPrefix(line, "pages="); found {
		if a.adjust("pages", a.Screen.WithOwn(state.Pages, size)); size == "" {
			a.Port.Announce("The TLBs are hidden.")
		}
	}
}

// KeepBeside stores the current hierarchy as hierarchy B, so that the user can compare other
// hierarchies with B. If the parameter "drop" is set, KeepBeside removes B instead.
func (a *App) KeepBeside(drop bool) {
	s := a.Screen
	if s.Beside = nil; drop {
		a.Port.Focus("machine-keep") // the button with the focus disappears
	} else {
		s.Beside = state.AgainstWords(a.Machine())
		a.Port.Announce("This hierarchy is kept as B. Now change the hierarchy to compare the new one with B.")
	}
	a.adjust("beside", s)
}

// Move sets the size of a level (counted from 1) whose handle on the curve is dragged. Move must be
// called from a separate goroutine.
func (a *App) Move(level int, bytes uint64) {
	a.update(func() { a.SetSize(level, bytes) })
}

// PickMachine lets the user choose a file that describes a hierarchy.
func (a *App) PickMachine() {
	a.describing = true
	a.Port.Pick()
}

// isMachineFile reports whether a file name has an extension of hierarchy descriptions that neither
// traces nor source files have.
func isMachineFile(name string) bool {
	for _, ending := range []string{".json", ".conf", ".cfg"} {
		if strings.HasSuffix(strings.ToLower(name), ending) {
			return true
		}
	}
	return false
}

// takeMachine opens a file as the description of a hierarchy, and reports whether the file was such
// a description. takeMachine opens the file only in a view that uses a hierarchy. In addition,
// either the user must have chosen the file as the description of a hierarchy, or the file's name
// must show that the file is such a description. It may block.
func (a *App) takeMachine(file File) (taken bool) {
	a.update(func() {
		taken = a.result != nil && a.result.View != nil && a.Screen.Tab == state.TabCaches &&
			(a.describing || isMachineFile(file.Name)) && file.Bytes <= 1<<20
		a.describing = false
	})
	if !taken {
		return false
	}
	text, err := file.Read(0)
	var reply *answers.Reply
	if err == nil {
		reply, err = a.askOnce(workers.Subject{}, answers.Question{Of: answers.OfDescription, Bytes: text})
	}
	lines, err := fileOf(reply, err)
	var h hierarchy.Hierarchy
	if err == nil {
		h, err = readLines(string(lines))
	}
	a.update(func() {
		if err != nil {
			a.addProblem(file.Name + " does not describe a hierarchy that the page supports: " + err.Error() + ".")
			return
		}
		s := a.Screen
		if s.Levels, s.Memory, s.ClockGHz, s.TLBs = h.Levels, h.Memory, h.ClockGHz, h.TLBs; h.PageBytes != 0 {
			s = s.WithOwn(state.Pages, hierarchy.FormatSize(h.PageBytes))
		}
		a.adjust("machine", s)
		a.Note = "The page now shows the hierarchy of " + file.Name + "."
		for _, note := range reply.Notes {
			a.Note += " " + note + "."
		}
		a.Port.Announce(a.Note)
	})
	return true
}

// readLines parses the lines of a hierarchy description.
func readLines(text string) (h hierarchy.Hierarchy, err error) {
	for line := range strings.Lines(text) {
		if err := h.Add(strings.TrimSpace(line)); err != nil {
			return h, err
		}
	}
	if len(h.Levels) > state.MaxLevels {
		return h, &trace.OptionError{Option: "hierarchy", Got: strconv.Itoa(len(h.Levels)) + " levels", Want: "at most " + strconv.Itoa(state.MaxLevels)}
	}
	return h, nil
}

// cell returns the selected cell in the map of sets and ways.
func (a *App) cell() state.Cell {
	c := a.Screen.Cell
	if c == (state.Cell{}) {
		c = state.DefaultCell(a.Levels(), uint32(a.result.View.LineBytes))
	}
	return a.result.View.Counted(c, false)
}

// PickCell selects a cache of the map.
func (a *App) PickCell(c state.Cell) {
	r := a.result
	if r == nil || r.View == nil || r.View.Locality.Sets == nil {
		return
	}
	s := a.Screen
	c = c.Move(0, 0)
	s.Cell = r.View.Counted(c, c.Log2Sets < a.cell().Log2Sets)
	a.adjust("cell", s)
	a.Port.Announce(r.View.CellSentence(s.Cell))
}

// MoveCell selects a cache after a click or a key in heatmap.js. MoveCell must be called from a
// separate goroutine.
func (a *App) MoveCell(log2Sets, ways int) {
	a.update(func() { a.PickCell(state.Cell{Log2Sets: log2Sets, Ways: ways}) })
}

// ShowConflicts chooses whether the map shows conflict misses or miss ratios.
func (a *App) ShowConflicts(yes bool) {
	s := a.Screen
	s.Conflicts = yes
	a.goTo(s, true)
}

// AskCell shows the Caches view with the selected cache as the first level.
func (a *App) AskCell() {
	c := a.cell()
	a.changeLevels("cell", func(levels []hierarchy.Cache) []hierarchy.Cache {
		v := a.result.View
		out := state.WithLine(levels, 0, uint32(v.LineBytes))
		out[0].SizeBytes, out[0].Ways, out[0].Hashed = c.Lines()*v.LineBytes, uint32(c.Ways), false
		return out
	})
	a.goTo(a.Screen.With(state.TabCaches), false)
}
