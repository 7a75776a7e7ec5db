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

// asked is the hierarchy in question: the URL's, or the preset.
func (a *App) asked() hierarchy.Hierarchy { return a.askedOn(a.Screen) }

// askedOn is the hierarchy in question on a screen.
func (a *App) askedOn(s state.Screen) (h hierarchy.Hierarchy) {
	if h = *a.presetOf(s); s.Levels != nil {
		h = hierarchy.Hierarchy{Levels: s.Levels, Memory: s.Memory, ClockGHz: s.ClockGHz}
	}
	h.Threads = s.Threads
	return h
}

// Machine is the hierarchy in question with lines that the profile has.
func (a *App) Machine() hierarchy.Hierarchy {
	h := a.asked()
	h.Levels = a.Levels()
	return h
}

// Levels are its caches.
func (a *App) Levels() []hierarchy.Cache {
	levels := a.asked().Levels
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

// Presets are computed once, because every render needs them.
func (a *App) Presets() []hierarchy.Hierarchy {
	if a.presets == nil {
		a.presets = hierarchy.Presets()
	}
	return a.presets
}

// answer is the prediction for the hierarchy in question, made when it or the view change.
func (a *App) answer() *state.Caches {
	r := a.result
	h := a.asked()
	if r.answer == nil || !state.SameMachine(r.asked, h) {
		r.asked, r.answer = h, r.View.Predict(h)
	}
	return r.answer
}

// change changes the levels for a control; memory and clock stay.
func (a *App) change(control string, f func(levels []hierarchy.Cache) []hierarchy.Cache) {
	a.changeMachine(control, func(s *state.Screen) { s.Levels = f(s.Levels) })
}

// changeLevel changes a level, from 1, for one of its controls.
func (a *App) changeLevel(control string, level int, f func(*hierarchy.Cache)) {
	a.change(of(control, level), func(levels []hierarchy.Cache) []hierarchy.Cache { return state.With(levels, level-1, f) })
}

// changeMachine changes the hierarchy in question for a control.
func (a *App) changeMachine(control string, f func(s *state.Screen)) {
	if a.result == nil || a.result.View == nil {
		return
	}
	s, h := a.Screen, a.asked()
	s.Levels, s.Memory, s.ClockGHz = h.Levels, h.Memory, h.ClockGHz
	f(&s)
	a.adjust(control, s)
	a.sayAnswer()
}

// of is the name of a level's control, which is its element's id. Levels count from 1.
func of(control string, level int) string { return control + "-" + strconv.Itoa(level) }

// sayAnswer announces the answer for the hierarchy to screen readers.
func (a *App) sayAnswer() {
	if r := a.result; r != nil && r.View != nil && !a.comparing() {
		a.Port.Announce(a.answer().Sentence())
	}
}

// SetSize sets the size of a level, from 1.
func (a *App) SetSize(level int, bytes uint64) {
	a.changeLevel("size", level, func(c *hierarchy.Cache) {
		line := uint64(c.LineBytes)
		c.SizeBytes = max(bytes-bytes%line, line)
	})
}

// StepWays increases or decreases the ways of a level, from 1; nothing changes at the end of the
// range.
func (a *App) StepWays(level, by int) {
	c := a.Levels()[level-1]
	if ways := state.Step(state.Ways(c), c.Ways, by); ways != c.Ways {
		a.changeLevel("ways", level, func(c *hierarchy.Cache) { c.Ways = ways })
	}
}

// StepLine increases or decreases the line size of a level, from 1.
func (a *App) StepLine(level, by int) {
	c := a.Levels()[level-1]
	if line := state.Step(a.LineSizes(), c.LineBytes, by); line != c.LineBytes {
		a.change(of("line", level), func(levels []hierarchy.Cache) []hierarchy.Cache { return state.WithLine(levels, level-1, line) })
	}
}

// LineSizes are the line sizes that the profile has.
func (a *App) LineSizes() (list []uint32) {
	for i := range a.result.Profile.Locality {
		list = append(list, a.result.Profile.Locality[i].LineBytes)
	}
	return list
}

// SetLatency sets a level's latency from typed text, from 1; "": unknown.
func (a *App) SetLatency(level int, text string) {
	cycles, ok := typed(text)
	if !ok {
		a.refuseTyped(text)
		return
	}
	a.changeLevel("latency", level, func(c *hierarchy.Cache) { c.LatencyCycles = cycles })
}

// SetMemory sets the latency of memory, or the clock, from typed text.
func (a *App) SetMemory(text string, set func(s *state.Screen, x float64)) {
	if x, ok := typed(text); ok {
		a.changeMachine("memory", func(s *state.Screen) { set(s, x) })
		return
	}
	a.refuseTyped(text)
}

// refuseTyped explains why a field is reset.
func (a *App) refuseTyped(text string) {
	a.Note = "“" + text + "” is not accepted: latencies and the clock are numbers above zero, such as 4 or 3.5. Leave the field empty if a number is unknown."
	a.Port.Announce(a.Note)
	a.touch()
}

// typed reads a number above zero, or nothing, which is 0.
func typed(text string) (x float64, ok bool) {
	text = strings.TrimSpace(strings.ReplaceAll(text, ",", "."))
	if text == "" {
		return 0, true
	}
	return hierarchy.ParsePositive(text)
}

// AddLevel adds a level after the last.
func (a *App) AddLevel() {
	a.change("level-add", func(levels []hierarchy.Cache) []hierarchy.Cache {
		return state.WithLevel(levels, uint32(a.result.View.LineBytes))
	})
	n := len(a.Levels())
	a.Port.Announce(strconv.Itoa(n) + " levels")
	// The last level leaves no button.
	if a.Port.Focus("level-add"); n >= state.MaxLevels {
		a.Port.Focus("size-" + strconv.Itoa(n))
	}
}

// RemoveLevel removes a level.
func (a *App) RemoveLevel(level int) {
	a.change(of("remove", level), func(levels []hierarchy.Cache) []hierarchy.Cache { return state.WithoutLevel(levels, level-1) })
	a.Port.Announce(strconv.Itoa(len(a.Levels())) + " levels")
	a.Port.Focus("level-add")
}

// asks reports whether there is a hierarchy to ask about.
func (a *App) asks() bool {
	return a.result != nil && (a.result.View != nil || a.blocks() != nil)
}

// processors is the table of processors, for views that depend on one, from the latest answer, so
// that the choice stays while another answer is computed.
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

// SetPreset sets a preset's levels.
func (a *App) SetPreset(slug string) {
	s := a.Screen
	s.Levels, s.Preset = nil, slug
	a.adjust("preset", s)
	a.sayAnswer()
}

// PlaceThreads has the threads run on other cores, as a choice of state.Placements names them.
func (a *App) PlaceThreads(choice string) {
	a.goTo(a.Screen.ThreadsOn(choice), true)
	a.Port.Announce(a.threadsLine())
	a.sayAnswer()
}

// placements are the choices of cores for the threads in view.
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

// threadsLine says on which cores the threads in view run; "" for one thread.
func (a *App) threadsLine() string {
	if c := a.comparison(); c != nil {
		return c.ThreadsOn(a.Machine())
	}
	if a.result == nil || a.result.Profile == nil || a.comparing() {
		return ""
	}
	return answers.ThreadsOn(a.result.Profile, a.Machine())
}

// KeepBeside keeps the hierarchy in question as B; drop removes B.
func (a *App) KeepBeside(drop bool) {
	s := a.Screen
	if s.Beside = nil; drop {
		a.Port.Focus("machine-keep") // the button disappears
	} else {
		s.Beside = state.AgainstWords(a.Machine())
		a.Port.Announce("Kept as B. Change the hierarchy, and see both.")
	}
	a.adjust("beside", s)
}

// Move sets the size of a level, from 1, from a goroutine: a handle on the curve was dragged.
func (a *App) Move(level int, bytes uint64) {
	a.update(func() { a.SetSize(level, bytes) })
}

// PickMachine lets the reader choose a file that describes a hierarchy.
func (a *App) PickMachine() {
	a.describing = true
	a.Port.Pick()
}

// describes reports whether a file's name is that of a description of a hierarchy, and not of a
// trace or source file.
func describes(name string) bool {
	for _, ending := range []string{".json", ".conf", ".cfg"} {
		if strings.HasSuffix(strings.ToLower(name), ending) {
			return true
		}
	}
	return false
}

// takeMachine opens a file that describes a hierarchy, in a view that uses one, and reports whether
// it did: the reader chose it for this, or its name shows it. It may block.
func (a *App) takeMachine(file File) (taken bool) {
	a.update(func() {
		taken = a.result != nil && a.result.View != nil && a.Screen.Tab == state.TabCaches &&
			(a.describing || describes(file.Name)) && file.Bytes <= 1<<20
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
			a.trouble(file.Name + " describes no hierarchy that the page can ask about: " + err.Error() + ".")
			return
		}
		s := a.Screen
		s.Levels, s.Memory, s.ClockGHz = h.Levels, h.Memory, h.ClockGHz
		a.adjust("machine", s)
		a.Note = "This is the hierarchy of " + file.Name + "."
		for _, note := range reply.Notes {
			a.Note += " " + note + "."
		}
		a.Port.Announce(a.Note)
	})
	return true
}

// readLines reads the lines of a description.
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

// cell is the selected cell on the map of sets and ways.
func (a *App) cell() state.Cell {
	c := a.Screen.Cell
	if c == (state.Cell{}) {
		c = state.DefaultCell(a.Levels(), uint32(a.result.View.LineBytes))
	}
	return a.result.View.Counted(c, false)
}

// PickCell picks a cache of the map.
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

// MoveCell picks a cache from a goroutine: heatmap.js heard a click or a key.
func (a *App) MoveCell(log2Sets, ways int) {
	a.update(func() { a.PickCell(state.Cell{Log2Sets: log2Sets, Ways: ways}) })
}

// ShowConflicts chooses the numbers of the map.
func (a *App) ShowConflicts(yes bool) {
	s := a.Screen
	s.Conflicts = yes
	a.goTo(s, true)
}

// AskCell makes the selected cache the first level, in the view Caches.
func (a *App) AskCell() {
	c := a.cell()
	a.change("cell", func(levels []hierarchy.Cache) []hierarchy.Cache {
		v := a.result.View
		out := state.WithLine(levels, 0, uint32(v.LineBytes))
		out[0].SizeBytes, out[0].Ways, out[0].Hashed = c.Lines()*v.LineBytes, uint32(c.Ways), false
		return out
	})
	a.goTo(a.Screen.With(state.TabCaches), false)
}
