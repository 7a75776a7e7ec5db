package command

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/site"
	"github.com/stackglass/stackglass/tools/stackglass/internal/pass"
)

// demo returns the verb that lists, analyses or writes embedded demos.
func (a *app) demo() *cobra.Command {
	var (
		format, output string
		source         bool
	)
	cmd := &cobra.Command{
		Use:   "demo [NAME]",
		Short: "List or analyse the built-in demos",
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return demoNames(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) > 1:
				return usagef("demo accepts one name, but ", strconv.Itoa(len(args)), " are given: ", strings.Join(args, ", "))
			case len(args) == 0 && (source || output != ""):
				return usagef("-o and --source write one demo; name one of the demos ", strings.Join(demoNames(), ", "))
			case len(args) == 0:
				return a.listDemos(format)
			}
			d, err := pass.FindDemo(args[0])
			if err != nil {
				return err
			}
			file := d.File
			if source {
				file = d.Source
			}
			if source || output != "" {
				return a.writeDemo(output, file)
			}
			return a.printDemo(cmd, d, format)
		},
	}
	addFormat(cmd, &format)
	cmd.Flags().StringVarP(&output, "output", "o", "", "write the trace (with --source: the program) to this `FILE` (- for standard output)")
	cmd.Flags().BoolVar(&source, "source", false, "write the C program instead of the trace")
	return cmd
}

func demoNames() (names []string) {
	demos, err := site.Demos()
	must(err) // the list is embedded, and a test checks it
	for _, d := range demos {
		names = append(names, d.Name)
	}
	return names
}

func (a *app) listDemos(format string) error {
	demos, err := site.Demos()
	if err != nil {
		return err
	}
	t := report.Table{Key: "demos", Columns: report.Columns("name", "references", "question")}
	for _, d := range demos {
		t.Add(report.TextOf(d.Name), report.Count(d.References), report.TextOf(d.Question))
	}
	return a.print(format, &report.Document{Schema: "stackglass.demos", Version: 1, Tables: []report.Table{t}})
}

// printDemo prints a demo's question, its miss-ratio curve, and its lesson.
func (a *app) printDemo(cmd *cobra.Command, d site.Demo, format string) error {
	r := &readOptions{cmd: cmd, kinds: "data", format: format, analyses: analysis.Locality.String()}
	l, err := a.load(r, "demo:"+d.Name, []uint32{64})
	if err != nil {
		return err
	}
	found := l.Profile.LocalityAt(64)
	answer := &report.Document{Schema: "stackglass.demo", Version: 1}
	answer.Input = append([]report.Fact{
		{Key: "title", Label: "program", Value: report.TextOf(d.Title)},
		{Key: "question", Label: "question", Value: report.TextOf(d.Question)},
	}, l.facts(64)...)
	lesson := report.Table{Key: "lesson", Columns: report.Columns("sentence=What it teaches")}
	for _, sentence := range d.Lesson {
		lesson.Add(report.TextOf(sentence))
	}
	answer.Tables = []report.Table{answers.PowersOfTwo(profile.NewCurve(found.Histogram(trace.AllKinds)), 64), lesson}
	return a.answer(l, format, answer)
}

// writeDemo writes an embedded file to path, or to stdout if path is "" or -.
func (a *app) writeDemo(path, file string) error {
	content, err := site.DemoFile(file)
	if err != nil {
		return err
	}
	if path == "" || path == "-" {
		return a.write(content)
	}
	return saveFile(path, contentOf(content))
}
