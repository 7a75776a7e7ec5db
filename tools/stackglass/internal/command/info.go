package command

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sgt"
	"github.com/stackglass/stackglass/tools/stackglass/internal/pass"
)

// infoReferences is the number of references that the verb "info" reads.
const infoReferences = 1 << 20

// info returns the verb that describes a file. The older verb "check" is an alias of info --verify.
func (a *app) info() *cobra.Command {
	var format, inputFormat string
	var verify bool
	cmd := &cobra.Command{
		Use:     "info FILE",
		Aliases: []string{"check"},
		Short:   "Describe or verify a trace or a profile",
		Args:    oneFile,
	}
	describe := func(ctx context.Context, in *pass.Input) error {
		if in.IsProfile {
			if err := (&readOptions{cmd: cmd}).refuseForProfile(in.Name); err != nil {
				return err
			}
			return a.profileInfo(ctx, in, format)
		}
		facts, err := in.Look(ctx, inputFormat, infoReferences)
		if err == nil {
			err = a.print(format, traceInfo(in, facts))
		}
		if err != nil {
			return err
		}
		return facts.Stopped
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		in, err := pass.Open(cmd.Context(), args[0], a.stdin)
		if err != nil {
			return err
		}
		defer in.Close()
		if verify || cmd.CalledAs() == "check" {
			return a.verify(cmd.Context(), in, inputFormat, format)
		}
		return describe(cmd.Context(), in)
	}
	addFormat(cmd, &format)
	addInputFormat(cmd, &inputFormat)
	cmd.Flags().BoolVar(&verify, "verify", false, "read all of FILE, and report any damage and its position")
	return cmd
}

// traceInfo returns a document with facts about the beginning of a trace.
func traceInfo(in *pass.Input, facts *pass.Facts) *report.Document {
	if facts.Container != nil {
		return containerInfo(in, facts)
	}
	d := &report.Document{Schema: "stackglass.info", Version: 1, Input: []report.Fact{
		{Key: "file", Label: "file", Value: report.TextOf(in.Name)},
		{Key: "type", Label: "type", Value: report.TextOf("trace")},
		{Key: "trace_format", Label: "trace format", Value: report.TextOf(facts.Header.Format)},
		{Key: "packed", Label: "packed", Value: compressionNames(facts.Packings)},
		{Key: "stored_bytes", Label: "stored bytes", Value: report.Known(uint64(in.Bytes))},
		{Key: "whole", Label: "read to the end", Value: report.YesNo(facts.Whole)},
		{Key: "references", Label: "references read", Value: report.Count(facts.References)},
		{Key: "bad_records", Label: "bad records", Value: report.Count(facts.BadRecords)},
		{Key: "has_threads", Label: "thread numbers", Value: report.YesNo(facts.Header.Threads)},
		{Key: "has_pcs", Label: "instruction addresses", Value: report.YesNo(facts.Header.PCs)},
		{Key: "has_sizes", Label: "sizes", Value: report.YesNo(facts.Header.Sizes)},
		{Key: "lowest_address", Label: "lowest address", Value: report.TextOf("0x" + strconv.FormatUint(facts.Lowest, 16))},
		{Key: "highest_address", Label: "highest address", Value: report.TextOf("0x" + strconv.FormatUint(facts.Highest, 16))},
	}}
	t := report.Table{Key: "kinds", Columns: report.Columns("kind", "references")}
	for k := trace.Kind(0); k < trace.NumKinds; k++ {
		if facts.Kinds[k] > 0 {
			t.Add(report.TextOf(k.String()), report.Count(facts.Kinds[k]))
		}
	}
	d.Tables = []report.Table{t}
	if text := facts.Header.LeftOut(); text != "" {
		d.Input = append(d.Input, report.Fact{Key: "left_out", Label: "left out", Value: report.TextOf(text)})
	}
	if facts.BadRecords > 0 {
		d.Warnings = append(d.Warnings, plural(facts.BadRecords, "record")+" could not be read; the first: "+facts.FirstBad.Error())
	}
	return d
}

// profileInfo prints which part of its trace a profile covers.
func (a *app) profileInfo(ctx context.Context, in *pass.Input, format string) error {
	result, err := in.Analyze(ctx, pass.Options{})
	if err != nil {
		return err
	}
	l := &loadedFile{Result: result, name: in.Name}
	l.warnings = l.resultWarnings()
	p := l.Profile
	digest := p.Digest()
	d := &report.Document{Schema: "stackglass.info", Version: 1}
	facts := l.facts(0)
	d.Input = append(facts[:1:1],
		report.Fact{Key: "type", Label: "type", Value: report.TextOf("profile")},
		report.Fact{Key: "digest", Label: "digest", Value: report.TextOf(hex.EncodeToString(digest[:]))},
		report.Fact{Key: "stored_bytes", Label: "stored bytes", Value: report.Known(uint64(in.Bytes))})
	d.Input = append(d.Input, facts[1:]...)
	d.Input = append(d.Input,
		report.Fact{Key: "skip", Label: "references skipped", Value: report.Count(p.Input.Skip)},
		report.Fact{Key: "limit", Label: "limit of references", Value: report.Known(p.Input.Limit)},
		report.Fact{Key: "threads", Label: "threads analysed", Value: threadList(p.Input.Threads, "all")},
		report.Fact{Key: "threads_seen", Label: "threads seen", Value: threadList(p.Totals.Threads, "none in the trace")},
		report.Fact{Key: "unselected", Label: "references left out", Value: report.Count(p.Totals.Unselected)},
		report.Fact{Key: "bad_records", Label: "bad records", Value: report.Count(p.Totals.BadRecords)},
		report.Fact{Key: "mergeable", Label: "mergeable", Value: report.YesNo(p.Segment != nil)},
	)
	d.Tables = answers.Summary(p)
	return a.answer(l, format, d)
}

// threadList returns a list of threads or, if there are many, only their number.
func threadList(threads []uint32, none string) report.Value {
	if len(threads) == 0 {
		return report.TextOf(none)
	}
	if len(threads) > 16 {
		return report.TextOf(plural(uint64(len(threads)), "thread"))
	}
	var words []string
	for _, t := range threads {
		words = append(words, strconv.FormatUint(uint64(t), 10))
	}
	return report.TextOf(strings.Join(words, ","))
}

// containerInfo returns a document with facts about a container.
func containerInfo(in *pass.Input, f *pass.Facts) *report.Document {
	s, tickets := f.Container, uint64(0)
	if s.Chunks > 0 {
		tickets = s.LastTicket - s.FirstTicket + 1
	}
	d := &report.Document{Schema: "stackglass.info", Version: 1, Input: []report.Fact{
		{Key: "file", Label: "file", Value: report.TextOf(in.Name)},
		{Key: "type", Label: "type", Value: report.TextOf("trace")},
		{Key: "trace_format", Label: "trace format", Value: report.TextOf(f.Header.Format)},
		{Key: "packed", Label: "packed", Value: compressionNames(f.Packings)},
		{Key: "stored_bytes", Label: "stored bytes", Value: report.Known(uint64(in.Bytes))},
		{Key: "version", Label: "version", Value: report.Count(s.Version)},
		{Key: "whole", Label: "whole", Value: report.YesNo(f.Stopped == nil)},
		{Key: "ended", Label: "the run ended", Value: endingOf(f)},
		{Key: "references", Label: "references", Value: report.Count(s.References)},
		{Key: "bytes_per_reference", Label: "bytes per reference", Value: quotient(s.Bytes, s.References)},
		{Key: "steps", Label: "steps", Value: report.Count(s.Steps)},
		{Key: "lost_steps", Label: "steps lost while recording", Value: report.Count(s.Ending.Lost)},
		{Key: "chunks", Label: "chunks", Value: report.Count(s.Chunks)},
		{Key: "content_bytes", Label: "bytes in chunks, decompressed", Value: report.Count(s.ContentBytes)},
		{Key: "tickets", Label: "tickets", Value: report.Count(tickets)},
		{Key: "pointer_bits", Label: "address bits", Value: report.Known(s.PointerBits)},
		{Key: "has_threads", Label: "thread numbers", Value: report.YesNo(f.Header.Threads)},
		{Key: "has_pcs", Label: "instruction addresses", Value: report.YesNo(f.Header.PCs)},
		{Key: "has_sizes", Label: "sizes", Value: report.YesNo(f.Header.Sizes)},
	}}
	d.Input = append(d.Input, capturedFacts(f.Header.Capture)...)
	d.Tables = []report.Table{codeTable(f.Header.Program), threadTable(s), moduleTable(f.Header.Program), uninstrumentedTable(f.Header.Program)}
	d.Tables = slices.DeleteFunc(d.Tables, func(t report.Table) bool { return len(t.Rows) == 0 })
	if s.Lost.First != nil {
		d.Warnings = append(d.Warnings, in.Name+": "+s.Lost.String())
	}
	return d
}

func quotient(a, b uint64) report.Value {
	if b == 0 {
		return report.None()
	}
	return report.Decimal(float64(a) / float64(b))
}

// endingOf describes how the traced run ended.
func endingOf(f *pass.Facts) report.Value {
	switch how := f.Container.Ending.String(); {
	case how != "":
		return report.TextOf(how)
	case errors.Is(f.Stopped, trace.ErrCutShort):
		return report.TextOf("unknown: the trace is truncated")
	}
	return report.None()
}

// capturedFacts returns the facts that were recorded with the trace. If a fact occurs several
// times, the last value is used; program arguments, however, are joined.
func capturedFacts(capture []trace.Fact) (facts []report.Fact) {
	texts := map[string]string{}
	var names []string
	for _, c := range capture {
		text, again := texts[c.Name]
		if !again {
			names = append(names, c.Name)
		}
		if texts[c.Name] = c.Value; again && c.Name == "argument" {
			texts[c.Name] = text + " " + c.Value
		}
	}
	for _, name := range names {
		value := report.TextOf(texts[name])
		if e := trace.ExtentOf([]trace.Fact{{Name: name, Value: texts[name]}}); e != (trace.Extent{}) {
			value = report.Count(max(e.After, e.For)) // one fact describes only one of the numbers
		}
		facts = append(facts, report.Fact{Key: "capture_" + name, Label: name, Value: value})
	}
	return facts
}

// codeTable returns a table with the number of entries in each of the program's tables.
func codeTable(p *trace.Program) report.Table {
	t := report.Table{Key: "code", Columns: report.Columns("what=information about the program", "number")}
	missed := uint64(0)
	for i := range p.Modules {
		for _, m := range p.Modules[i].Missed {
			missed += uint64(m.Count)
		}
	}
	for _, row := range []struct {
		what   string
		number int
	}{
		{"modules", len(p.Modules)}, {"functions", len(p.Functions)}, {"blocks", len(p.Blocks)},
		{"sites", len(p.Sites)}, {"global variables", len(p.Objects)}, {"calipers", len(p.Tags)}, {"threads", len(p.Threads)},
		{"places not instrumented", int(missed)},
	} {
		t.Add(report.TextOf(row.what), report.Count(uint64(row.number)))
	}
	return t
}

// mostListed is the maximum number of rows in the tables of threads and modules.
const mostListed = 20

// threadTable lists threads in descending order of references.
func threadTable(s *sgt.Survey) report.Table {
	t := report.Table{Key: "threads", Columns: report.Columns(
		"thread", "name", "chunks", "steps", "references")}
	if !s.Header.Threads {
		return t
	}
	names := map[uint32]string{}
	for _, th := range s.Header.Program.Threads {
		names[th.Number] = th.Name
	}
	for _, th := range s.Threads[:min(len(s.Threads), mostListed)] {
		t.Add(report.Count(uint64(th.Number)), report.TextOf(names[th.Number]), report.Count(th.Chunks), report.Count(th.Steps), report.Count(th.References))
	}
	if more := len(s.Threads) - mostListed; more > 0 {
		t.Title = "Threads, the first " + strconv.Itoa(mostListed) + " of " + strconv.Itoa(len(s.Threads))
	}
	return t
}

// moduleTable lists the modules that have names.
func moduleTable(p *trace.Program) report.Table {
	t := report.Table{Key: "modules", Columns: report.Columns("module", "options=compiled with", "functions")}
	functions := make([]uint64, len(p.Modules))
	for i := range p.Functions {
		functions[p.Functions[i].Module]++
	}
	for i := range p.Modules {
		if m := &p.Modules[i]; m.Name != "" && len(t.Rows) < mostListed {
			t.Add(report.TextOf(m.Name), report.TextOf(m.Options), report.Count(functions[i]))
		}
	}
	return t
}

// uninstrumentedTable lists code that was not instrumented.
func uninstrumentedTable(p *trace.Program) report.Table {
	t := report.Table{Key: "missed", Columns: report.Columns(
		"module=module with uninstrumented code", "what", "why", "places")}
	for i := range p.Modules {
		for _, m := range p.Modules[i].Missed {
			if len(t.Rows) < mostListed {
				t.Add(report.TextOf(p.Modules[i].Name), report.TextOf(m.What), report.TextOf(m.Why), report.Count(uint64(m.Count)))
			}
		}
	}
	return t
}

// verify reads a file to its end and reports any damage.
func (a *app) verify(ctx context.Context, in *pass.Input, inputFormat, format string) error {
	checked, err := in.Check(ctx, inputFormat)
	if err == nil {
		err = a.print(format, checkDocument(in, checked))
	}
	switch {
	case err != nil:
		return err
	case checked.Container != nil && checked.Count == 1 && errors.Is(checked.Container.Stopped, trace.ErrCutShort):
		return checked.Container.Stopped
	case checked.Count > 0:
		return errors.New(in.Name + " has " + plural(checked.Count, "fault") + "; copy the file again, record the program again, or use the readable part of the trace")
	}
	return nil
}

func checkDocument(in *pass.Input, c *pass.Checked) *report.Document {
	d := &report.Document{Schema: "stackglass.check", Version: 1, Input: []report.Fact{
		{Key: "file", Label: "file", Value: report.TextOf(in.Name)},
		{Key: "type", Label: "type", Value: report.TextOf(c.Type)},
		{Key: "packed", Label: "packed", Value: compressionNames(c.Packings)},
		{Key: "references", Label: "references that can be read", Value: report.Count(c.References)},
		{Key: "whole", Label: "whole", Value: report.YesNo(c.Count == 0)},
	}}
	if v := c.Container; v != nil {
		missing := v.References - min(v.References, v.Decoded) + v.Lost.References
		d.Input = append(d.Input,
			report.Fact{Key: "chunks", Label: "chunks", Value: report.Count(v.Chunks)},
			report.Fact{Key: "missing_references", Label: "references missing", Value: report.Count(missing)})
	}
	t := report.Table{Key: "faults", Columns: report.Columns("where", "fault")}
	for _, f := range c.Faults {
		t.Add(report.TextOf(f.Where), report.TextOf(f.What))
	}
	if len(t.Rows) > 0 {
		d.Tables = []report.Table{t}
	}
	if more := c.Count - uint64(len(c.Faults)); more > 0 {
		d.Warnings = append(d.Warnings, "and "+plural(more, "fault")+" more")
	}
	return d
}

// compressionNames returns the names of a file's compression formats, or "no".
func compressionNames(packings []string) report.Value {
	return report.TextOf(cmp.Or(strings.Join(packings, " in "), "no"))
}
