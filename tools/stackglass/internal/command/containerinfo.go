package command

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sgt"
	"github.com/stackglass/stackglass/tools/stackglass/internal/pass"
)

// containerInfo tells what a container tells of itself.
func containerInfo(in *pass.Input, f *pass.Facts) *report.Document {
	s := f.Container
	d := &report.Document{Schema: "stackglass.info", Version: 1, Input: []report.Fact{
		{Key: "file", Label: "file", Value: report.TextOf(in.Name)},
		{Key: "type", Label: "type", Value: report.TextOf("trace")},
		{Key: "trace_format", Label: "trace format", Value: report.TextOf(f.Header.Format)},
		{Key: "packed", Label: "packed", Value: packedIn(f.Packings)},
		{Key: "stored_bytes", Label: "stored bytes", Value: known(uint64(in.Bytes))},
		{Key: "version", Label: "version", Value: report.Count(s.Version)},
		{Key: "whole", Label: "whole", Value: report.YesNo(f.Stopped == nil)},
		{Key: "ended", Label: "the run ended", Value: endOf(f)},
		{Key: "references", Label: "references", Value: report.Count(s.References)},
		{Key: "bytes_per_reference", Label: "bytes per reference", Value: quotient(s.Bytes, s.References)},
		{Key: "steps", Label: "steps", Value: report.Count(s.Steps)},
		{Key: "lost_steps", Label: "steps lost by the capture", Value: report.Count(s.Ending.Lost)},
		{Key: "chunks", Label: "chunks", Value: report.Count(s.Chunks)},
		{Key: "content_bytes", Label: "bytes in them, unpacked", Value: report.Count(s.ContentBytes)},
		{Key: "tickets", Label: "tickets", Value: report.Count(ticketsOf(s))},
		{Key: "pointer_bits", Label: "bits of an address", Value: known(s.PointerBits)},
		{Key: "has_threads", Label: "thread numbers", Value: report.YesNo(f.Header.Threads)},
		{Key: "has_pcs", Label: "instruction addresses", Value: report.YesNo(f.Header.PCs)},
		{Key: "has_sizes", Label: "sizes", Value: report.YesNo(f.Header.Sizes)},
	}}
	d.Input = append(d.Input, capturedFacts(f.Header.Capture)...)
	d.Tables = []report.Table{codeTable(f.Header.Program), threadTable(s), moduleTable(f.Header.Program), missedTable(f.Header.Program)}
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

func ticketsOf(s *sgt.Survey) uint64 {
	if s.Chunks == 0 {
		return 0
	}
	return s.LastTicket - s.FirstTicket + 1
}

// endOf says how a run ended.
func endOf(f *pass.Facts) report.Value {
	switch how := f.Container.Ending.String(); {
	case how != "":
		return report.TextOf(how)
	case errors.Is(f.Stopped, trace.ErrCutShort):
		return report.TextOf("unknown: the trace is cut short")
	}
	return report.None()
}

// capturedFacts are those that the capture wrote. Of several under one name the
// last holds, but arguments are a line.
func capturedFacts(capture []trace.Fact) (facts []report.Fact) {
	values := map[string][]string{}
	for _, c := range capture {
		values[c.Name] = append(values[c.Name], c.Value)
	}
	for _, c := range capture {
		all := values[c.Name]
		if all == nil {
			continue // shown
		}
		text := all[len(all)-1]
		if c.Name == "argument" {
			text = strings.Join(all, " ")
		}
		facts = append(facts, report.Fact{Key: "capture_" + c.Name, Label: c.Name, Value: report.TextOf(text)})
		values[c.Name] = nil
	}
	return facts
}

// codeTable counts what is known of the program.
func codeTable(p *trace.Program) report.Table {
	t := report.Table{Key: "code", Columns: report.Columns("what=known of the program", "number")}
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

// mostListed is how many rows the tables of threads and modules have.
const mostListed = 20

// threadTable lists threads, those with the most references first.
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

// moduleTable lists modules that have names.
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

// missedTable lists what was not instrumented.
func missedTable(p *trace.Program) report.Table {
	t := report.Table{Key: "missed", Columns: report.Columns(
		"module=not in the trace: of module", "what", "why", "places")}
	for i := range p.Modules {
		for _, m := range p.Modules[i].Missed {
			if len(t.Rows) < mostListed {
				t.Add(report.TextOf(p.Modules[i].Name), report.TextOf(m.What), report.TextOf(m.Why), report.Count(uint64(m.Count)))
			}
		}
	}
	return t
}
