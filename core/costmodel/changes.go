package costmodel

import (
	"cmp"
	"strings"

	"github.com/stackglass/stackglass/core/blocks"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
)

// keep returns an encoded profile for a module without a run. The profile contains the program, and
// the compiler's profile in the module, which describes an earlier run.
func (m *Models) keep() []byte {
	run := &blocks.Run{Program: m.program, Edges: blocks.NewEdges(m.program), Profile: m.weights}
	p := &profile.Profile{Blocks: run.Append(nil)}
	p.Input.Header.Format = "llvm"
	return p.Encode()
}

// changes contains the branches and parameters set by the user.
type changes struct {
	text  string
	sheet *blocks.Sheet // nil if there are no changes, or they cannot be read
	wrong string        // an error message, as a sentence
}

// change solves the system with new changes. After an error, the counts without changes are kept.
func (m *Models) change(text string) {
	if text == m.changed.text {
		return
	}
	m.changed = changes{text: text}
	if err := m.try(text); err != nil {
		m.changed = changes{text: text, wrong: upper(err.Error()) + "."}
		m.system, m.counts = m.base, m.baseCounts
	}
}

// try solves the system with changes.
func (m *Models) try(text string) error {
	m.system, m.counts = m.base, m.baseCounts
	if text == "" {
		return nil
	}
	sheet, err := blocks.ParseSheet("your changes", []byte(text))
	if err != nil {
		return err
	}
	system, err := m.fresh()
	if err != nil {
		return err
	}
	system.Guess() // with the changes, blocks may run that never ran before
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

// file returns the whole branch-probability file, including the changed lines and parameters.
func (m *Models) file() string {
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
