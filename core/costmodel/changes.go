package costmodel

import (
	"cmp"
	"strings"

	"github.com/stackglass/stackglass/core/blocks"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
)

// encodeModule encodes a module without a run as a profile. The encoded profile contains the
// program and the module's branch weights, which the compiler took from the profile of an earlier
// run.
func (m *Models) encodeModule() []byte {
	run := &blocks.Run{Program: m.program, Edges: blocks.NewEdges(m.program), Profile: m.weights}
	p := &profile.Profile{Blocks: run.Append(nil)}
	p.Input.Header.Format = "llvm"
	return p.Encode()
}

// userChanges contains the branch probabilities and parameters that the user has set.
type userChanges struct {
	text  string
	sheet *blocks.Sheet // nil if there are no changes, or if they cannot be parsed
	wrong string        // the error message, as a sentence
}

// applyChanges solves the system with new changes. If this fails, applyChanges restores the counts
// that were computed without the user's changes.
func (m *Models) applyChanges(text string) {
	if text == m.changed.text {
		return
	}
	m.changed = userChanges{text: text}
	if err := m.solveWith(text); err != nil {
		m.changed = userChanges{text: text, wrong: capitalise(err.Error()) + "."}
		m.system, m.counts = m.base, m.baseCounts
	}
}

// solveWith parses changes and solves the system with these changes.
func (m *Models) solveWith(text string) error {
	m.system, m.counts = m.base, m.baseCounts
	if text == "" {
		return nil
	}
	sheet, err := blocks.ParseSheet("your changes", []byte(text))
	if err != nil {
		return err
	}
	system, err := m.newBaseSystem()
	if err != nil {
		return err
	}
	system.Guess() // because of the changes, blocks may run that did not run before
	model, err := sheet.Bind(system)
	if err != nil {
		return err
	}
	if err := model.Set(nil); err != nil {
		return err
	}
	counts, err := system.Solve()
	if err != nil {
		return err
	}
	m.changed.sheet, m.system, m.counts = sheet, system, counts
	return nil
}

// branchFile returns the complete branch-probability file, including the user's changes.
func (m *Models) branchFile() string {
	about := "The branches of this program"
	if m.name != "" {
		about = "The branches of " + m.name
	}
	said := map[string]string{}
	if m.changed.sheet != nil {
		for line := range strings.Lines(m.changed.text) {
			if name, _, is := strings.Cut(line, " = "); is {
				said[name] = strings.TrimRight(line, "\n") + "\n"
			}
		}
	}
	var text strings.Builder
	remarks := true
	for line := range strings.Lines(string(m.system.AppendSheet(nil, about))) {
		if remarks && !strings.HasPrefix(line, "#") {
			remarks = false
			m.writeParameters(&text)
		}
		name, _, _ := strings.Cut(line, " = ")
		text.WriteString(cmp.Or(said[name], line))
	}
	return text.String()
}

func (m *Models) writeParameters(text *strings.Builder) {
	if m.changed.sheet == nil {
		return
	}
	for _, p := range m.changed.sheet.Parameters() {
		text.WriteString(p.Name + " = " + p.Expression + "\n")
	}
}

// parametersTable lists the parameters that the user has defined.
func (m *Models) parametersTable() report.Table {
	t := report.Table{Key: "parameters", Title: "Parameters", Columns: report.Columns("name", "value")}
	if m.changed.sheet != nil {
		for _, p := range m.changed.sheet.Parameters() {
			t.Add(report.TextOf(p.Name), report.TextOf(p.Expression))
		}
	}
	return t
}
