package command

import (
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/site"
)

// verbGroup is a group of verbs with a common purpose.
type verbGroup struct {
	title string
	verbs []string
}

// verbGroups lists the verbs by purpose, in the order in which the help lists them. The last group
// also contains the verbs that are not listed here.
var verbGroups = []verbGroup{
	{"Record", []string{"cc", "trace"}},
	{"Analyse", []string{"diagnose", "analyze", "compare", "locality"}},
	{"Caches", []string{"what-if", "simulate", "validate"}},
	{"Code", []string{"sites", "data", "calls", "timeline", "loops", "blocks", "counters", "measured"}},
	{"Threads", []string{"threads", "communication"}},
	{"Predict", []string{"multicore", "pipeline", "scale"}},
	{"Files", []string{"info", "convert", "export"}},
	{"Other", []string{"serve", "demo", "help", "completion"}},
}

// readingOptions lists the options for reading a trace. The help lists these options last, because
// most verbs have these options.
var readingOptions = []string{
	"input-format", "kinds", "skip", "limit", "threads", "skip-bad", "strict", "sample", "sample-seed", "memory", "spill", "workers",
}

const (
	usualWidth = 80
	mostWidth  = 100 // longer lines are hard to read
)

// terminalWidth returns the number of columns of the terminal, or 0 if standard output is not a terminal.
func (a *app) terminalWidth() int {
	if f, ok := a.unbuffered.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil {
			return width
		}
	}
	return 0
}

// groupsOf returns the groups of the program's verbs.
func groupsOf(root *cobra.Command) []verbGroup {
	groups := slices.Clone(verbGroups)
	last := &groups[len(groups)-1]
	last.verbs = slices.Clone(last.verbs)
	for _, verb := range root.Commands() {
		listed := func(g verbGroup) bool { return slices.Contains(g.verbs, verb.Name()) }
		if !verb.Hidden && !slices.ContainsFunc(groups, listed) {
			last.verbs = append(last.verbs, verb.Name())
		}
	}
	return groups
}

// printHelp prints the help of the program or of a verb.
func (a *app) printHelp(cmd *cobra.Command, _ []string) {
	width := usualWidth
	if w := a.terminalWidth(); w > 0 {
		width = max(40, min(w, mostWidth))
	}
	cmd.InitDefaultHelpFlag()
	out := wrapText(cmd.Long, width)
	if out == "" {
		out = cmd.Short + "\n"
	}
	out += "\nUsage:\n  " + cmd.UseLine() + "\n"
	if cmd.HasExample() {
		out += "\nExamples:\n" + cmd.Example + "\n"
	}
	if !cmd.HasParent() {
		out += verbList(cmd, width)
	}
	own, reading := pflag.NewFlagSet("", 0), pflag.NewFlagSet("", 0)
	own.SortFlags, reading.SortFlags = false, false
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if slices.Contains(readingOptions, f.Name) && cmd.Name() != "convert" {
			reading.AddFlag(f)
		} else {
			own.AddFlag(f)
		}
	})
	out += "\nOptions:\n" + own.FlagUsagesWrapped(width)
	if reading.HasAvailableFlags() {
		out += "\nOptions for reading a trace:\n" + reading.FlagUsagesWrapped(width)
	}
	_ = a.write([]byte(out)) // the final flush reports the error
}

// verbList returns a list of the verbs in groups, and a list of the pages of the manual.
func verbList(root *cobra.Command, width int) string {
	var out strings.Builder
	for _, g := range groupsOf(root) {
		out.WriteString("\n" + g.title + ":\n")
		for _, name := range g.verbs {
			verb, _, err := root.Find([]string{name})
			if err == nil && verb != root {
				out.WriteString("  " + name + strings.Repeat(" ", 15-len(name)) + verb.Short + "\n")
			}
		}
	}
	names := make([]string, 0, 32)
	for _, topic := range site.Manual() {
		names = append(names, topic.Name)
	}
	out.WriteString("\nPages of the manual, for example `stackglass help tutorial`:\n" + indented(wrapText(strings.Join(names, ", "), width-2)))
	return out.String()
}

func indented(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n  ") + "\n"
}

// wrapText wraps the paragraphs of a text at the given width. Lines that begin with a blank do not
// change.
func wrapText(text string, width int) string {
	var out strings.Builder
	column := 0
	end := func() {
		if column > 0 {
			out.WriteByte('\n')
			column = 0
		}
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if line == "" || line[0] == ' ' {
			end()
			out.WriteString(line + "\n")
			continue
		}
		for _, word := range strings.Fields(line) {
			n := utf8.RuneCountInString(word)
			if column > 0 && column+1+n > width {
				end()
			}
			if column > 0 {
				out.WriteByte(' ')
				column++
			}
			out.WriteString(word)
			column += n
		}
	}
	end()
	return out.String()
}

// splitWideTables limits the tables of a document to the width of a terminal. It splits each table
// that is too wide into several tables with the same rows and the same first column.
func splitWideTables(d *report.Document, width int) *report.Document {
	narrow := *d
	narrow.Tables, narrow.Prose = fitTables(d.Tables, width), fitTables(d.Prose, width)
	return &narrow
}

func fitTables(tables []report.Table, width int) (narrow []report.Table) {
	for _, t := range tables {
		t.Title = strings.TrimSuffix(wrapText(t.Title, width), "\n")
		if t.Single && len(t.Rows) == 1 || len(t.Columns) < 2 {
			narrow = append(narrow, t)
			continue
		}
		widths := make([]int, len(t.Columns))
		for i, c := range t.Columns {
			widths[i] = utf8.RuneCountInString(c.Label)
			if c.Unit != "" {
				widths[i] += 3 + utf8.RuneCountInString(c.Unit)
			}
			for _, row := range t.Rows {
				widths[i] = max(widths[i], utf8.RuneCountInString(row[i].Human()))
			}
		}
		for from := 1; from < len(widths); {
			to, sum := from, widths[0]
			for to < len(widths) && (to == from || sum+2+widths[to] <= width) {
				sum += 2 + widths[to]
				to++
			}
			narrow = append(narrow, columnsOf(t, from, to))
			from, t.Title = to, ""
		}
	}
	return narrow
}

// columnsOf returns a table with the first column of t and the columns [from, to) of t.
func columnsOf(t report.Table, from, to int) report.Table {
	part := t
	part.Columns = append(t.Columns[:1:1], t.Columns[from:to]...)
	part.Rows = nil
	for _, row := range t.Rows {
		part.Rows = append(part.Rows, append(row[:1:1], row[from:to]...))
	}
	return part
}
