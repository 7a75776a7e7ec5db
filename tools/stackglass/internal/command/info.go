package command

import (
	"context"
	"encoding/hex"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/tools/stackglass/internal/pass"
)

// infoReferences is the number of references that info reads.
const infoReferences = 1 << 20

// info reports what a file is.
func (a *app) info() *cobra.Command {
	var format, inputFormat string
	cmd := &cobra.Command{
		Use:   "info FILE",
		Short: "What a file is: its format, or what a profile covers",
		Long: `Say what FILE is. Of a trace: its format, how it is packed, and facts of its
first ` + strconv.Itoa(infoReferences) + ` references. Of a container (.sgt): how it was made and how the run ended, its
threads and chunks, and what it knows of the program. Of a profile: what it
covers, and its digest.`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			in, err := pass.Open(cmd.Context(), args[0], a.stdin)
			if err != nil {
				return err
			}
			defer in.Close()
			if in.IsProfile {
				if err := (&reading{cmd: cmd}).refuseForProfile(in.Name); err != nil {
					return err
				}
				return a.profileInfo(cmd.Context(), in, format)
			}
			facts, err := in.Look(cmd.Context(), inputFormat, infoReferences)
			if err != nil {
				return err
			}
			if err := a.print(format, traceInfo(in, facts)); err != nil {
				return err
			}
			return facts.Stopped
		},
	}
	addFormat(cmd, &format)
	addInputFormat(cmd, &inputFormat)
	return cmd
}

// traceInfo lays out facts about the beginning of a trace.
func traceInfo(in *pass.Input, facts *pass.Facts) *report.Document {
	if facts.Container != nil {
		return containerInfo(in, facts)
	}
	d := &report.Document{Schema: "stackglass.info", Version: 1, Input: []report.Fact{
		{Key: "file", Label: "file", Value: report.TextOf(in.Name)},
		{Key: "type", Label: "type", Value: report.TextOf("trace")},
		{Key: "trace_format", Label: "trace format", Value: report.TextOf(facts.Header.Format)},
		{Key: "packed", Label: "packed", Value: packedIn(facts.Packings)},
		{Key: "stored_bytes", Label: "stored bytes", Value: known(uint64(in.Bytes))},
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

func known(n uint64) report.Value {
	if n == 0 {
		return report.None()
	}
	return report.Count(n)
}

// profileInfo prints what a profile covers.
func (a *app) profileInfo(ctx context.Context, in *pass.Input, format string) error {
	result, err := in.Analyze(ctx, pass.Options{})
	if err != nil {
		return err
	}
	l := &answerable{Result: result, name: in.Name}
	l.warnings = l.doubts()
	p := l.Profile
	digest := p.Digest()
	d := &report.Document{Schema: "stackglass.info", Version: 1}
	facts := l.facts(0)
	d.Input = append(facts[:1:1],
		report.Fact{Key: "type", Label: "type", Value: report.TextOf("profile")},
		report.Fact{Key: "digest", Label: "digest", Value: report.TextOf(hex.EncodeToString(digest[:]))},
		report.Fact{Key: "stored_bytes", Label: "stored bytes", Value: known(uint64(in.Bytes))})
	d.Input = append(d.Input, facts[1:]...)
	d.Input = append(d.Input,
		report.Fact{Key: "skip", Label: "references skipped", Value: report.Count(p.Input.Skip)},
		report.Fact{Key: "limit", Label: "limit of references", Value: known(p.Input.Limit)},
		report.Fact{Key: "threads", Label: "threads analysed", Value: threadList(p.Input.Threads, "all")},
		report.Fact{Key: "threads_seen", Label: "threads seen", Value: threadList(p.Totals.Threads, "the trace has none")},
		report.Fact{Key: "unselected", Label: "references left out", Value: report.Count(p.Totals.Unselected)},
		report.Fact{Key: "bad_records", Label: "bad records", Value: report.Count(p.Totals.BadRecords)},
		report.Fact{Key: "mergeable", Label: "can be appended to", Value: report.YesNo(p.Segment != nil)},
	)
	d.Tables = answers.Summary(p)
	return a.answer(l, format, d)
}

// threadList lists threads; if there are many, it counts them.
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

// flush writes the contents of a buffered writer.
func flush(w io.Writer) error {
	if f, ok := w.(interface{ Flush() error }); ok {
		return f.Flush()
	}
	return nil
}
