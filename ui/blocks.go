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
)

// modelState is the part of the state of the view “Blocks and runtime” that is not in the URL: the
// answer program, its last answer, and the user's changes.
type modelState struct {
	of *profile.Profile
	// an LLVM IR module that the user opened in addition to the profile, or nil
	module *module
	asker  *asker // nil before the first question
	asked  answers.Question
	blocks *state.Blocks // the answer to the question in the field "asked"; nil: no answer yet
	// name for saving the answer's branch-probability file; "": the answer contains no such file
	saving  string
	problem string // why there is no answer
	tables  map[string]*state.Table

	executed verbAnswer // the answer of "stackglass blocks" about the recorded run

	file       []string // lines of the branch-probability file that the user opened
	named      string   // rejected text in the field for a new parameter
	branches   []edit   // the user's changes, oldest first
	parameters []edit
}

// module is a file of LLVM IR.
type module struct {
	name string
	text []byte
}

// edit is a user's change to a branch or a parameter.
type edit struct{ name, text string }

// isModule reports whether a file is textual LLVM IR, judging by its name and content.
func isModule(name string, head []byte) bool {
	if !strings.HasSuffix(strings.ToLower(name), ".ll") {
		return false
	}
	return bytes.IndexByte(head, 0) < 0
}

// blocks returns the models' answer for the result in view; nil while there is none.
func (a *App) blocks() *state.Blocks {
	if a.models.of == nil || a.result == nil || a.models.of != a.result.Profile {
		return nil
	}
	return a.models.blocks
}

// modelQuestion returns the question for the models in the current view.
func (a *App) modelQuestion() answers.ModelQuestion {
	q := answers.ModelQuestion{Processor: a.Screen.Processor, Function: uint32(a.Screen.Function), Block: uint32(a.Screen.Block)}
	h := a.Machine()
	q.Machine = h.Lines()
	var changes strings.Builder
	for _, line := range a.models.file {
		if name, _, is := strings.Cut(line, " = "); !is || !isEdited(a.models.parameters, name) && !isEdited(a.models.branches, name) {
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
	c := &BlocksView{App: a, Schedule: newTable(a, "schedule"), Bounds: newTable(a, "bounds"),
		Branches: newTable(a, "branches"), Opcodes: newTable(a, "opcodes")}
	c.Caveats = &Caveats{ID: "blocks-notes", List: c.caveats}
	return c
}

// Placed implements [placed].
func (c *BlocksView) Placed() bool { return true }

// Waits implements [View]. The view does not wait for a run, because even a program that never ran
// has blocks.
func (c *BlocksView) Waits() string {
	switch r := c.App.result; {
	case r == nil || r.Profile == nil:
		return c.App.missingAccesses()
	case r.Live:
		return "The cycles of the blocks will be computed once the trace has been read."
	}
	return ""
}

// Processors implements [timed].
func (c *BlocksView) Processors() (list *report.Table, depends bool) {
	if b := c.blocks(); b != nil {
		list = b.Table("processors")
	}
	return list, true
}

// Draw draws the models' answer. Draw sends the current question if the last answer belongs to an
// earlier question.
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
	if r.Profile.Totals.AllReferences() > 0 { // the result comes from a run, not only from a module
		m.executed.ask(a, r, state.VerbQuestion("blocks", hierarchy.Hierarchy{}), func() { m.tables = nil })
	}
	m.tables = nil
	for _, g := range []*state.Grid{b.Functions(), b.OfFunction()} {
		if g != nil {
			a.grid(g)
		}
	}
	if b.Graph != nil && a.handsOver(b.Graph.ID, b.Graph) {
		a.Port.Graph(b.Graph)
	}
	if g := a.blockSource(); g != nil {
		a.grid(g)
	}
}

// Table implements [View].
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
			m.tables[name] = b.Shown(name, "Cycles and ports for one execution of "+b.BlockName())
		case "bounds":
			m.tables[name] = b.Shown(name, "What "+b.BlockName()+" takes")
		case "branches", "opcodes":
			m.tables[name] = m.executed.table(name)
		}
	}
	return m.tables[name]
}

// endModels ends the answer program. The caller holds the lock.
func (a *App) endModels() {
	a.models.asker.end()
	a.models.executed.asker.end()
	a.models = modelState{}
}

// askModels sends a question to the models. The caller holds the lock.
func (a *App) askModels(q answers.Question) {
	m := &a.models
	if m.asker == nil {
		m.asker = &asker{app: a, subject: a.subjectOf("", m.of, m.module), onReply: a.takeModels}
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
			a.addProblem("The branch-probability file could not be created: " + err.Error() + ".")
		} else {
			m.problem = "The models could not be queried: " + err.Error() + "."
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

// inView reports whether a complete result is in view and the first screen does not hide it. The
// caller holds the lock.
func (a *App) inView() bool {
	r := a.result
	return r != nil && r.Profile != nil && !r.Live && a.Screen.Open == r.Key && !a.comparing()
}

// takeModule opens a file of LLVM IR, to compare it with the result in view or as a separate
// result. takeModule may block.
func (a *App) takeModule(file File) {
	text, err := file.Read(0)
	if err != nil {
		a.update(func() { a.addProblem(file.Name + " could not be read: " + err.Error() + ".") })
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
		a.Note = file.Name + " is now compared with " + r.Name + "."
		a.Port.Announce(a.Note)
	})
	if beside {
		return
	}
	reply, err := a.askOnce(a.subjectOf("", nil, given)(), answers.ModelQuestion{}.Question())
	if err == nil && reply.Bytes == nil {
		err = errors.New(strings.TrimSuffix(reply.Problem, "."))
	}
	if err != nil {
		a.update(func() {
			a.Note = ""
			a.addProblem(file.Name + " could not be read as LLVM IR: " + err.Error() + ".")
		})
		return
	}
	a.importData(file.Name, reply.Bytes, state.TabBlocks)
}

// PickBlock selects the block that was picked in the graph. PickBlock must be called from a
// separate goroutine.
func (a *App) PickBlock(node int) {
	a.update(func() {
		if b := a.blocks(); b != nil {
			a.pickModel("blocks", b.RowOf(node))
		}
	})
}

// pickModel selects a row of the table of functions or blocks. The caller holds the lock.
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

// SetProcessor computes the answer for the given processor.
func (a *App) SetProcessor(name string) {
	s := a.Screen
	s.Processor = name
	a.goTo(s, true)
}

// SetBranch sets the counts of a branch's outcomes, in the syntax of the branch-probability file.
// The function in view stays selected, even if another function now takes the most time.
func (a *App) SetBranch(name, text string) {
	a.models.branches = changed(a.models.branches, name, text)
	if b := a.blocks(); b != nil && a.Screen.Function == 0 {
		s := a.Screen
		s.Function = int(b.Function)
		a.goTo(s, true)
	}
	a.drawCharts() // this asks the models again, and their answer updates the page
}

// isEdited reports whether the list contains a change to the branch or parameter with the given
// name.
func isEdited(list []edit, name string) bool {
	return slices.ContainsFunc(list, func(e edit) bool { return e.name == strings.TrimSpace(name) })
}

// NameNumber adds a parameter, given as a text such as "n = 1000".
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

// takeProbabilities applies a branch-probability file to the result in view. takeProbabilities may
// block.
func (a *App) takeProbabilities(file File) {
	text, err := file.Read(0)
	a.update(func() {
		switch {
		case err != nil:
			a.addProblem(file.Name + " could not be read: " + err.Error() + ".")
		case !a.inView():
			a.addProblem(file.Name + " contains branch probabilities. Open the trace or the module to which the probabilities belong, and then drop the file again.")
		default:
			a.goTo(a.Screen.With(state.TabBlocks), false)
			a.models.file = strings.Split(strings.TrimRight(string(text), "\n"), "\n")
			a.models.branches, a.models.parameters = nil, nil
			a.Note = "Branch probabilities now come from " + file.Name + "."
			a.drawCharts()
		}
	})
}

// editOf returns the user's change to a branch, or "" if there is none.
func (a *App) editOf(branch string) string {
	for _, e := range a.models.branches {
		if e.name == branch {
			return e.text
		}
	}
	return ""
}

// Edited reports whether the user changed anything.
func (a *App) Edited() bool {
	return len(a.models.branches)+len(a.models.parameters)+len(a.models.file) > 0
}

// AskAgain repeats a failed question to the models.
func (a *App) AskAgain() {
	a.models.problem = ""
	a.drawCharts()
	a.touch()
}

// blockSource returns the source lines of the block in view, or nil if the source is not available.
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

// SetParameter sets the value of a parameter.
func (a *App) SetParameter(name, text string) {
	a.models.parameters = changed(a.models.parameters, name, text)
	a.drawCharts()
}

// changed returns the list with an additional edit. The new edit replaces an earlier edit with the
// same name.
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
	a.Port.Focus("processor") // the button with the focus disappears
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
