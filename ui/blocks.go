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

// modelState is what the view Blocks and runtime holds beyond the address: the program
// that answers, what it said last, and what the reader changed.
type modelState struct {
	of      *profile.Profile
	module  *module // that was given beside it; nil: none
	asker   *asker  // nil: nothing was asked
	asked   answers.Question
	blocks  *state.Blocks // the answer to it; nil: none yet
	saving  string        // the name that the file of probabilities in the answer shall have; "": it has none
	problem string        // why there is none, in a sentence
	tables  map[string]*state.Table

	executed verbAnswer // to the verb blocks, of the run as it was

	file       []string // lines of a file of probabilities that was given
	named      string   // in the field for a new parameter, where it was not understood
	branches   []edit   // latest last
	parameters []edit
}

// module is a file of LLVM IR.
type module struct {
	name string
	text []byte
}

// edit is a branch or a parameter with what the reader wants of it.
type edit struct{ name, text string }

// isModule tells by name and content whether a file is LLVM IR in text.
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

// modelQuestion is what is asked of the models at present.
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

// takeModels takes what the models say. It asks again where something else is in question
// by now. The caller holds the lock.
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

// subjectOf is what questions are about: a profile, a module, or both.
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

// inView tells whether one result is, whole: others are remembered beneath the first
// screen. The caller holds the lock.
func (a *App) inView() bool {
	r := a.result
	return r != nil && r.Profile != nil && !r.Live && a.Screen.Open == r.Key && !a.comparing()
}

// takeModule takes a file of LLVM IR: beside the result in view, or else as a result of
// its own. It waits.
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

// PickBlock takes a block that was picked in the graph, from a goroutine.
func (a *App) PickBlock(node int) {
	a.update(func() {
		if b := a.blocks(); b != nil {
			a.pickModel("blocks", b.RowOf(node))
		}
	})
}

// pickModel takes a row of a table of functions or blocks. The caller holds the lock.
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

// SetBranch sets how often the ways of a branch are taken, in the words of the file of
// probabilities. The function in view stays, even if another one takes longer now.
func (a *App) SetBranch(name, text string) {
	a.models.branches = changed(a.models.branches, name, text)
	if b := a.blocks(); b != nil && a.Screen.Function == 0 {
		s := a.Screen
		s.Function = int(b.Function)
		a.goTo(s, true)
	}
	a.drawCharts() // what is shown changes with the answer
}

// named tells whether something was changed.
func named(list []edit, name string) bool {
	return slices.ContainsFunc(list, func(e edit) bool { return e.name == strings.TrimSpace(name) })
}

// NameNumber takes a new parameter, as n = 1000.
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

// isProbabilities tells a file of probabilities by how the page and the command begin it.
func isProbabilities(head []byte) bool { return bytes.HasPrefix(head, []byte("# The branches of ")) }

// takeProbabilities takes such a file for the result in view. It waits.
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

// editOf is what the reader wants of a branch, "" for nothing.
func (a *App) editOf(branch string) string {
	for _, e := range a.models.branches {
		if e.name == branch {
			return e.text
		}
	}
	return ""
}

// Edited tells whether the reader changed anything.
func (a *App) Edited() bool {
	return len(a.models.branches)+len(a.models.parameters)+len(a.models.file) > 0
}

// AskAgain asks the models once more, after they could not be asked.
func (a *App) AskAgain() {
	a.models.problem = ""
	a.drawCharts()
	a.touch()
}

// blockSource is the source of the block in view, around its lines; nil where the reader
// did not give it.
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

// SetParameter gives a named number.
func (a *App) SetParameter(name, text string) {
	a.models.parameters = changed(a.models.parameters, name, text)
	a.drawCharts()
}

// changed is a list of edits with another one, which takes the place of an earlier one of
// the same name.
func changed(list []edit, name, text string) []edit {
	list = slices.DeleteFunc(slices.Clone(list), func(e edit) bool { return e.name == name })
	if text = strings.TrimSpace(text); text == "" {
		return list
	}
	return append(list, edit{name, text})
}

// ForgetBranches takes all changes back.
func (a *App) ForgetBranches() {
	a.models.branches, a.models.parameters, a.models.file, a.models.named = nil, nil, nil, ""
	a.Port.Focus("processor") // the button goes
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
