package command

import (
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/costmodel"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/pipeline"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/tools/stackglass/internal/pass"
)

// pipelineOptions are what the verb pipeline takes besides what it reads.
type pipelineOptions struct {
	processor     string
	caches        []string
	named         string
	probabilities string
	values        []string
	module        string
	function      string
	block         string
	top           int
	oneCore       bool
}

// pipeline prints what the blocks of a program take on a processor.
func (a *app) pipeline() *cobra.Command {
	var (
		r *reading
		o pipelineOptions
	)
	cmd := &cobra.Command{
		Use:   "pipeline FILE",
		Short: "Cycles of functions and blocks on a processor, and what limits them",
		Long: `Print how many cycles a program takes on the core of a processor: by function, by block
of one function, and for one block what its loop waits for and its schedule on ports.

FILE is a trace of a program compiled by "stackglass cc", a profile that was made with
"analyze --analyses default,blocks", or the text of LLVM IR (.ll). Of a run, --cache or
--hierarchy say where loads find their lines: each takes the average latency of its
place in the code. A latency that they do not state is the processor's, or a usual one,
and a warning names it. Without them every load hits in the first level.
--module gives the LLVM IR of a program beside its trace.

A loop's iteration takes the largest of three bounds: ports, micro-ops that enter the
core, and values of the iteration before. It is a model: what it leaves out is said.

--processor is one of ` + strings.Join(pipeline.Processors(), ", ") + `,
or a file with a description of one, in the same form or in PPT's.`,
		Example: "  stackglass pipeline app.sgt --hierarchy ryzen-9950x\n  stackglass pipeline app.ll --processor neoverse-v2 --probabilities app.txt --set n=1000\n" +
			"  stackglass pipeline app.sgt --function solve --format csv",
		Args: oneFile,
		RunE: func(_ *cobra.Command, args []string) error { return a.runPipeline(r, &o, args[0]) },
	}
	r = addReading(cmd)
	f := cmd.Flags()
	f.StringVar(&o.processor, "processor", "znver4", "whose core: a name, or a `FILE` that describes one")
	f.StringArrayVar(&o.caches, "cache", nil, "a level, as in L1=32KiB,8 (repeat for the next one)")
	f.StringVar(&o.named, "hierarchy", "", "a preset, or a `FILE` that describes a hierarchy")
	addOneCore(cmd, &o.oneCore)
	f.StringVar(&o.probabilities, "probabilities", "", "take how likely ways are from this `FILE`, as blocks --template writes it")
	f.StringSliceVar(&o.values, "set", nil, "give parameters of --probabilities other values, as in n=1000")
	f.StringVar(&o.module, "module", "", "the LLVM IR of a traced program, as a `FILE`")
	f.StringVar(&o.function, "function", "", "the blocks of this `FUNCTION` (default: of the one that takes most)")
	f.StringVar(&o.block, "block", "", "the schedule of the block with this `LABEL` (default: of the one that takes most)")
	f.IntVar(&o.top, "top", 10, "print the first `N` rows of each table (0: all; csv and json have all)")
	for _, name := range []string{"sample", "sample-seed"} {
		must(f.MarkHidden(name))
	}
	must(cmd.RegisterFlagCompletionFunc("processor", cobra.FixedCompletions(pipeline.Processors(), cobra.ShellCompDirectiveDefault)))
	must(cmd.RegisterFlagCompletionFunc("hierarchy", cobra.FixedCompletions(presetNames(), cobra.ShellCompDirectiveDefault)))
	return cmd
}

func (a *app) runPipeline(r *reading, o *pipelineOptions, name string) error {
	if o.top < 0 {
		return usagef("--top ", strconv.Itoa(o.top), ", want a number of rows, or 0 for all")
	}
	if len(o.values) > 0 && o.probabilities == "" {
		return usagef("--set: parameters are those of a file; give it by --probabilities")
	}
	q, h, err := o.question()
	if err != nil {
		return err
	}
	processor, err := o.chosen()
	if err != nil {
		return err
	}
	r.analyses = (analysis.Sites | analysis.Sets | analysis.Blocks | analysis.Sharing).String()
	r.asked = h
	if _, err := r.options(a, nil); err != nil {
		return err
	}
	in, err := pass.Open(r.cmd.Context(), name, a.stdin)
	if err != nil {
		return err
	}
	defer in.Close()
	var m *costmodel.Models
	var l *answerable
	if in.IsModule {
		text, err := io.ReadAll(in)
		if err != nil {
			return err
		}
		m, err = costmodel.Open(nil, in.Name, text)
		if err != nil {
			return asUsage(&moduleError{in.Name, err})
		}
	} else {
		lines := []uint32{analysis.DefaultLineBytes}
		if len(h.Levels) > 0 {
			lines = lineSizes(h)
		}
		if l, err = a.loadOpened(r, in, lines); err != nil {
			return err
		}
		if m, err = o.open(l); err != nil {
			return err
		}
	}
	m.Use(processor)
	var threads []report.Fact
	if l != nil && len(h.Levels) > 0 {
		threads = answers.ThreadFacts(l.Profile, h)
	}
	return a.printPipeline(r, o, m, l, q, threads, in.Name)
}

// open gives the models of a run, with the module that is given beside it.
func (o *pipelineOptions) open(l *answerable) (*costmodel.Models, error) {
	if _, err := runOf(l); err != nil {
		return nil, err
	}
	var text []byte
	if o.module != "" {
		var err error
		if text, err = os.ReadFile(o.module); err != nil {
			return nil, usagef("--module ", o.module, ": ", reason(err))
		}
	}
	m, err := costmodel.Open(l.Profile.Encode(), o.module, text)
	if err != nil {
		return nil, asUsage(&moduleError{l.name, err})
	}
	return m, nil
}

// question is what is asked of the models.
func (o *pipelineOptions) question() (q answers.ModelQuestion, h hierarchy.Hierarchy, err error) {
	if len(o.caches) > 0 || o.named != "" {
		if h, err = chooseHierarchy(o.caches, o.named); err != nil {
			return q, h, err
		}
		place(&h, o.oneCore)
		q.Machine = h.Lines()
	}
	if o.probabilities == "" {
		return q, h, nil
	}
	text, err := os.ReadFile(o.probabilities)
	if err != nil {
		return q, h, usagef("--probabilities ", o.probabilities, ": ", reason(err))
	}
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	for _, set := range o.values {
		parameter, value, found := strings.Cut(set, "=")
		at := slices.IndexFunc(lines, func(l string) bool {
			name, _, is := strings.Cut(l, "=")
			return is && strings.TrimSpace(name) == parameter
		})
		if !found || at < 0 {
			return q, h, usagef("--set ", strconv.Quote(set), ", want a parameter of ", o.probabilities, " and a number, as in n=1000")
		}
		lines[at] = parameter + " = " + value
	}
	q.Changes = strings.Join(lines, "\n")
	return q, h, nil
}

// chosen is the processor.
func (o *pipelineOptions) chosen() (*pipeline.Processor, error) {
	p, unknown := pipeline.Named(o.processor)
	if unknown == nil {
		return p, nil
	}
	text, err := os.ReadFile(o.processor)
	if err != nil {
		return nil, usagef("--processor ", o.processor, ": ", unknown.Error(), "; or a file, and there is none of that name that can be read")
	}
	if p, err = pipeline.Read(text); err != nil {
		return nil, usagef("--processor ", o.processor, ": ", err.Error())
	}
	return p, nil
}

// warningOf is a note of the models as a warning, with the options that help.
func warningOf(note string) string {
	text := strings.TrimSuffix(note, ".")
	if note == costmodel.NoHierarchy {
		text += "; add one, as in --hierarchy ryzen-9950x or --cache L1=32KiB,8,latency=4 --cache memory=latency=200"
	}
	return text
}

// printPipeline asks and prints.
func (a *app) printPipeline(r *reading, o *pipelineOptions, m *costmodel.Models, l *answerable, q answers.ModelQuestion, threads []report.Fact, name string) error {
	reply := m.Answer(q)
	if reply.Problem != "" {
		return usagef("--probabilities ", o.probabilities, ": ", strings.TrimSuffix(reply.Problem, "."))
	}
	for _, pick := range []struct {
		option, table, column, want string
		number                      *uint32
	}{{"function", "functions", "function", o.function, &q.Function}, {"block", "blocks", "block", o.block, &q.Block}} {
		if pick.want == "" {
			continue
		}
		t := reply.Table(pick.table)
		at := slices.IndexFunc(t.Rows, func(row []report.Value) bool { return row[t.Index(pick.column)].Plain() == pick.want })
		if at < 0 {
			return usagef("--", pick.option, " ", pick.want, ": there is none of that name")
		}
		n, _ := t.Rows[at][t.Index("number")].Number()
		*pick.number = uint32(n)
		reply = m.Answer(q)
	}
	d := &report.Document{Schema: "stackglass.pipeline", Version: 1, Input: []report.Fact{{Key: "file", Label: "file", Value: report.TextOf(name)}}}
	if l != nil {
		d.Input = append(l.facts(0), threads...)
	}
	program := reply.Table("program")
	for _, row := range program.Rows {
		label := row[0].Plain()
		d.Input = append(d.Input, report.Fact{Key: strings.ReplaceAll(label, " ", "_"), Label: label, Value: row[1]})
	}
	for _, note := range reply.Notes {
		d.Warnings = append(d.Warnings, warningOf(note))
	}
	d.Warnings = append(d.Warnings, "not modelled: "+strings.Join(reply.Unmodelled, "; "))
	for _, key := range []string{"functions", "blocks", "bounds", "schedule"} {
		t := *reply.Table(key)
		if at := t.Index("number"); at == 0 {
			t.Columns = t.Columns[1:]
			rows := t.Rows
			t.Rows = nil
			for _, row := range rows {
				t.Rows = append(t.Rows, row[1:])
			}
		}
		if o.top > 0 && !exactRows(r.format) && len(t.Rows) > o.top && key != "bounds" {
			t.Rows = t.Rows[:o.top]
			t.Title += ", the first " + strconv.Itoa(o.top)
		}
		if len(t.Rows) > 0 {
			d.Tables = append(d.Tables, t)
		}
	}
	if l != nil {
		return a.answer(l, r.format, d)
	}
	f, err := parseFormat(r.format)
	if err != nil {
		return err
	}
	return a.print(f, d)
}
