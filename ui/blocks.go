package ui

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/ui/state"
	"github.com/stackglass/stackglass/workers"
)

// modelState is the state of the view Blocks and runtime that is not in the URL: the program that
// answers, its last answer, and the reader's changes.
type modelState struct {
	of      *profile.Profile
	module  *module // given in addition to it; nil: none
	asker   *asker  // nil: no question was asked
	asked   answers.Question
	blocks  *state.Blocks // the answer to it; nil: none yet
	saving  string        // name for the branch-probability file in the answer; "": it has none
	problem string        // why there is none
	tables  map[string]*state.Table

	executed verbAnswer // the verb blocks' answer for the run as recorded

	file       []string // lines of a given branch-probability file
	named      string   // text in the field for a new parameter that could not be read
	branches   []edit   // latest last
	parameters []edit
}

// module is a file of LLVM IR.
type module struct {
	name string
	text []byte
}

// edit is the reader's change of a branch or a parameter.
type edit struct{ name, text string }

// isModule reports, by name and content, whether a file is LLVM IR in text.
func isModule(name string, head []byte) bool {
	if !strings.HasSuffix(strings.ToLower(name), ".ll") {
		return false
	}
	return bytes.IndexByte(head, 0) < 0
}

// blocks are the models' answers for the result in view; nil while there are none.
func (a *App) blocks() *state.Blocks {
	if a.models.of == nil || a.result == nil || a.models.of != a.result.Profile {
		return nil
	}
	return a.models.blocks
}

// modelQuestion is the current question to the models.
func (a *App) modelQuestion() answers.ModelQuestion {
	q := answers.ModelQuestion{Processor: a.Screen.Processor, Function: uint32(a.Screen.Function), Block: uint32(a.Screen.Block)}
	h := a.Machine()
	q.Machine = h.Lines()
	var changes strings.Builder
	for _, line := range a.models.file {
		if name, _, is := strings.Cut(line, " = "); !is || !named(a.models.parameters, name) && !named(a.models.branches, name) {
			changes.WriteString(line + "\n")
		}
	}
	for _, e := range a.models.parameters {
		changes.WriteString(e.name + " = " + e.text + "\n")
	}
	for _, e := range a.models.branches {
		changes.WriteString(e.name + " = " + e.text + "\n")
	}
	q.Changes = changes.String()
	return q
}

func newBlocks(a *App) View {
	return &BlocksView{App: a, Schedule: newTable(a, "schedule"), Bounds: newTable(a, "bounds"),
		Branches: newTable(a, "branches"), Opcodes: newTable(a, "opcodes")}
}

// Placed is part of [placed].
func (c *BlocksView) Placed() bool { return true }

// Waits is part of [View]: blocks can be of a program that never ran.
func (c *BlocksView) Waits() string {
	switch r := c.App.result; {
	case r == nil || r.Profile == nil:
		return c.App.uncounted()
	case r.Live:
		return "The cycles of blocks are computed once the trace is read."
	}
	return ""
}

// Processors is part of [timed].
func (c *BlocksView) Processors() (list *report.Table, depends bool) {
	if b := c.blocks(); b != nil {
		list = b.Table("processors")
	}
	return list, true
}

// Draw draws the models' answer, and asks for it if the current answer is for another question.
func (c *BlocksView) Draw() {
	a, r, m := c.App, c.App.result, &c.App.models
	if m.of != r.Profile {
		a.endModels()
		m.of = r.Profile
	}
	if q := a.modelQuestion().Question(); !m.asker.busy() && m.problem == "" && (m.blocks == nil || !slices.Equal(m.asked.Words, q.Words)) {
		m.asked = q
		a.askModels(q)
	}
	b := m.blocks
	if b == nil {
		return
	}
	if r.Profile.Totals.AllReferences() > 0 { // it is not of a module alone
		m.executed.ask(a, r, state.VerbQuestion("blocks", hierarchy.Hierarchy{}), func() { m.tables = nil })
	}
	m.tables = nil
	for _, g := range []*state.Grid{b.Functions(), b.OfFunction()} {
		if g != nil {
			a.Port.Grid(g)
		}
	}
	if b.Graph != nil {
		a.Port.Graph(b.Graph)
	}
	if g := a.blockSource(); g != nil {
		a.Port.Grid(g)
	}
}

// Table is part of [View].
func (c *BlocksView) Table(name string) *state.Table {
	b, m := c.blocks(), &c.App.models
	if b == nil {
		return nil
	}
	if m.tables == nil {
		m.tables = map[string]*state.Table{}
	}
	if m.tables[name] == nil {
		switch name {
		case "functions":
			if g := b.Functions(); g != nil {
				m.tables[name] = g.Table
			}
		case "blocks":
			if g := b.OfFunction(); g != nil {
				m.tables[name] = g.Table
			}
		case "schedule":
			m.tables[name] = b.Shown(name, "Cycles and ports, one pass of "+b.BlockName())
		case "bounds":
			m.tables[name] = b.Shown(name, "What "+b.BlockName()+" takes")
		case "branches", "opcodes":
			m.tables[name] = m.executed.table(name)
		}
	}
	return m.tables[name]
}

// endModels ends the program that answers. The caller holds the lock.
func (a *App) endModels() {
	a.models.asker.end()
	a.models.executed.asker.end()
	a.models = modelState{}
}

// askModels asks the models. The caller holds the lock.
func (a *App) askModels(q answers.Question) {
	m := &a.models
	if m.asker == nil {
		m.asker = &asker{app: a, subject: subjectOf(m.of, m.module), take: a.takeModels}
	}
	m.asker.ask(q, nil)
}

// takeModels handles the models' reply, and asks again if the question has changed. The caller
// holds the lock.
func (a *App) takeModels(reply *answers.Reply, err error) {
	m := &a.models
	saving := m.saving
	if m.saving = ""; err != nil {
		if m.asker = nil; saving != "" {
			a.trouble("The file of probabilities could not be made: " + err.Error() + ".")
		} else {
			m.problem = "The models could not be asked: " + err.Error() + "."
		}
		return
	}
	if m.blocks = state.NewBlocks(a.result.answers.Run, a.Machine(), reply); saving != "" {
		a.Port.Save(saving, "text/plain", reply.Bytes)
	} else if reply.Problem != "" {
		a.Port.Announce(reply.Problem)
	}
	a.drawAgain(state.TabBlocks)
}

// subjectOf returns the subject of questions: a profile, a module, or both.
func subjectOf(of *profile.Profile, given *module) func() workers.Subject {
	return func() (s workers.Subject) {
		if of != nil {
			s.Profile = of.Encode()
		}
		if given != nil {
			s.Name, s.Module = given.name, given.text
		}
		return s
	}
}

// inView reports whether a complete result is in view: the first screen may cover one. The caller
// holds the lock.
func (a *App) inView() bool {
	r := a.result
	return r != nil && r.Profile != nil && !r.Live && a.Screen.Open == r.Key && !a.comparing()
}

// takeModule opens a file of LLVM IR, together with the result in view or as a result of its own.
// It waits.
func (a *App) takeModule(file File) {
	text, err := file.Read(0)
	if err != nil {
		a.update(func() { a.trouble(file.Name + " could not be read: " + err.Error() + ".") })
		return
	}
	given := &module{file.Name, text}
	beside := false
	a.update(func() {
		r := a.result
		if beside = a.inView() && r.Profile.Totals.AllReferences() > 0; !beside {
			a.Note = "Reading " + file.Name + " …"
			return
		}
		a.endModels()
		a.models.of, a.models.module = r.Profile, given
		a.goTo(a.Screen.With(state.TabBlocks), false)
		a.Note = file.Name + " is put beside " + r.Name + "."
		a.Port.Announce(a.Note)
	})
	if beside {
		return
	}
	reply, err := a.askOnce(subjectOf(nil, given)(), answers.ModelQuestion{}.Question())
	if err == nil && reply.Bytes == nil {
		err = errors.New(strings.TrimSuffix(reply.Problem, "."))
	}
	if err != nil {
		a.update(func() {
			a.Note = ""
			a.trouble(file.Name + " could not be read as LLVM IR: " + err.Error() + ".")
		})
		return
	}
	a.importData(file.Name, reply.Bytes, state.TabBlocks)
}

// PickBlock selects a block that was picked in the graph, from a goroutine.
func (a *App) PickBlock(node int) {
	a.update(func() {
		if b := a.blocks(); b != nil {
			a.pickModel("blocks", b.RowOf(node))
		}
	})
}

// pickModel selects a row of a table of functions or blocks. The caller holds the lock.
func (a *App) pickModel(table string, row int) {
	b := a.blocks()
	if b == nil || a.comparing() {
		return
	}
	number := int(b.Number(table, row))
	if number == 0 {
		return
	}
	s := a.Screen
	if table == "functions" {
		s.Function, s.Block = number, 0
	} else {
		s.Function, s.Block = int(b.Function), number
	}
	a.goTo(s, true)
}

// SetProcessor asks about another processor.
func (a *App) SetProcessor(name string) {
	s := a.Screen
	s.Processor = name
	a.goTo(s, true)
}

// SetBranch sets the counts of a branch's outcomes, as in the branch-probability file. The function
// in view stays, even if another one takes longer now.
func (a *App) SetBranch(name, text string) {
	a.models.branches = changed(a.models.branches, name, text)
	if b := a.blocks(); b != nil && a.Screen.Function == 0 {
		s := a.Screen
		s.Function = int(b.Function)
		a.goTo(s, true)
	}
	a.drawCharts() // the answer changes the page
}

// named reports whether a branch or parameter was changed.
func named(list []edit, name string) bool {
	return slices.ContainsFunc(list, func(e edit) bool { return e.name == strings.TrimSpace(name) })
}

// NameNumber adds a parameter, as in n = 1000.
func (a *App) NameNumber(text string) {
	a.models.named = text
	a.touch()
	name, value, is := strings.Cut(text, "=")
	if name = strings.TrimSpace(name); !is || name == "" || strings.ContainsAny(name, " \t|") {
		return
	}
	a.models.named = ""
	a.SetParameter(name, value)
}

// isProbabilities recognises a branch-probability file by its first line, which the page and the
// command write.
func isProbabilities(head []byte) bool { return bytes.HasPrefix(head, []byte("# The branches of ")) }

// takeProbabilities opens such a file for the result in view. It waits.
func (a *App) takeProbabilities(file File) {
	text, err := file.Read(0)
	a.update(func() {
		switch {
		case err != nil:
			a.trouble(file.Name + " could not be read: " + err.Error() + ".")
		case !a.inView():
			a.trouble(file.Name + " says how often branches are taken: open the trace or the module that it is of, and drop it again.")
		default:
			a.goTo(a.Screen.With(state.TabBlocks), false)
			a.models.file = strings.Split(strings.TrimRight(string(text), "\n"), "\n")
			a.models.branches, a.models.parameters = nil, nil
			a.Note = "Branches are taken as often as " + file.Name + " says."
			a.drawCharts()
		}
	})
}

// editOf returns the reader's change of a branch, "" for none.
func (a *App) editOf(branch string) string {
	for _, e := range a.models.branches {
		if e.name == branch {
			return e.text
		}
	}
	return ""
}

// Edited reports whether the reader changed anything.
func (a *App) Edited() bool {
	return len(a.models.branches)+len(a.models.parameters)+len(a.models.file) > 0
}

// AskAgain asks the models again, after an attempt failed.
func (a *App) AskAgain() {
	a.models.problem = ""
	a.drawCharts()
	a.touch()
}

// blockSource is the source around the block in view; nil if the reader did not give it.
func (a *App) blockSource() *state.Grid {
	b := a.blocks()
	if b == nil {
		return nil
	}
	file, first, last := b.Place()
	if files := a.sourcesOf(file); first > 0 && len(files) == 1 {
		return state.BlockSource(files[0], first, last)
	}
	return nil
}

// SetParameter sets a parameter.
func (a *App) SetParameter(name, text string) {
	a.models.parameters = changed(a.models.parameters, name, text)
	a.drawCharts()
}

// changed returns the edits with another one, which replaces an earlier one of the same name.
func changed(list []edit, name, text string) []edit {
	list = slices.DeleteFunc(slices.Clone(list), func(e edit) bool { return e.name == name })
	if text = strings.TrimSpace(text); text == "" {
		return list
	}
	return append(list, edit{name, text})
}

// ForgetBranches discards all changes.
func (a *App) ForgetBranches() {
	a.models.branches, a.models.parameters, a.models.file, a.models.named = nil, nil, nil, ""
	a.Port.Focus("processor") // the button disappears
	a.drawCharts()
	a.touch()
}

// SaveProbabilities downloads the branch-probability file, with the user's changes.
func (a *App) SaveProbabilities() {
	m, q := &a.models, a.modelQuestion()
	if m.asker.busy() {
		return
	}
	m.saving, m.asked, q.Whole = FileName(a.result.Name)+"-probabilities.txt", q.Question(), true
	a.askModels(q.Question())
}
