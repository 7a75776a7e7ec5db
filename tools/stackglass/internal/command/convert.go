package command

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace/sgt"
	"github.com/stackglass/stackglass/tools/stackglass/internal/pass"
	"github.com/stackglass/stackglass/tools/stackglass/internal/wholefile"
)

// convert returns the verb that converts a trace to a different format. The verb has two older
// names: fold writes a loop-compressed trace, and unfold expands one.
func (a *app) convert() *cobra.Command {
	var r *convertCommand
	var to string
	var window int
	formats := append(slices.Clone(pass.WrittenFormats), pass.Folded)
	cmd := &cobra.Command{
		Use:     "convert FILE -o OUT",
		Aliases: []string{"fold", "unfold"},
		Short:   "Convert a trace, or part of it, to a different format",
		Args:    oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			ending := strings.TrimPrefix(filepath.Ext(r.output), ".")
			switch {
			case cmd.Flags().Changed("to"):
			case cmd.CalledAs() == "fold":
				to = pass.Folded
			case cmd.CalledAs() != "unfold" && slices.Contains(formats, ending):
				to = ending
			}
			if !slices.Contains(formats, to) {
				return usagef("--to ", to, ", want one of ", strings.Join(formats, ", "))
			}
			if r.sample != "" {
				return usagef("--sample: convert writes all references; use --sample with analyze")
			}
			if window < 0 || window > 1<<20 {
				return usagef("--window: want a number of nodes from 1 to 1048576")
			}
			return a.convertTrace(r, args[0], pass.ConvertOptions{To: to, Window: window})
		},
	}
	r = addRewriting(cmd)
	cmd.Flags().StringVar(&to, "to", "sgt", "the `FORMAT` to write: "+strings.Join(formats, ", ")+" (default: the format of OUT's extension, or sgt)")
	cmd.Flags().Lookup("to").DefValue = ""
	cmd.Flags().IntVar(&window, "window", 0, "for sgl, search for repetitions among the last `N` nodes (0: 1024 nodes)")
	setCompletions(cmd, "to", formats)
	return cmd
}

// convertCommand contains the options of convert.
type convertCommand struct {
	*readOptions
	output string
}

func addRewriting(cmd *cobra.Command) *convertCommand {
	r := &convertCommand{readOptions: addReading(cmd)}
	f := cmd.Flags()
	f.Lookup("kinds").Usage = "write only references of these `KINDS`: load, store, modify, fetch, data, all"
	f.Lookup("kinds").DefValue = "all"
	f.Lookup("threads").Usage = "write only the references of the threads in this `LIST`, for example 1,2"
	f.Lookup("limit").Usage = "write at most `N` references (0: all references)"
	must(f.Set("kinds", "all"))
	f.Lookup("kinds").Changed = false
	hide(cmd, "memory", "sample", "sample-seed", "workers")
	f.StringVarP(&r.output, "output", "o", "", "write the trace to this `FILE` (- for standard output)")
	return r
}

// convertTrace converts a trace with the given options.
func (a *app) convertTrace(r *convertCommand, name string, to pass.ConvertOptions) error {
	o, err := r.options(a, nil)
	if err != nil {
		return err
	}
	if err := checkOutputPath(r.cmd.Name(), "OUT.sgt", r.output, name); err != nil {
		return err
	}
	to.Format, to.SkipBad, to.Strict, to.Tool, to.Terminal = o.Format, o.Spec.SkipBad, o.Strict, "stackglass "+Version, o.Terminal
	to.Part = sgt.Part{Kinds: o.Spec.Kinds, Threads: o.Spec.Threads, Skip: o.Spec.Skip, Limit: o.Spec.Limit}
	return a.convertOne(r.readOptions, name, r.output, to)
}

// checkOutputPath returns an error if the output path is missing or is the path of the input.
func checkOutputPath(verb, as, output, name string) error {
	if output == "" {
		return usagef(verb, " writes a file; give its name, for example: stackglass ", verb, " ", name, " -o ", as)
	}
	in, err := os.Stat(name)
	out, none := os.Stat(output)
	if err == nil && none == nil && os.SameFile(in, out) {
		return usagef("-o ", output, " is the trace itself, which would be overwritten; choose a different name")
	}
	return nil
}

func (a *app) convertOne(r *readOptions, name, output string, o pass.ConvertOptions) error {
	in, err := pass.Open(r.cmd.Context(), name, a.stdin)
	if err != nil {
		return err
	}
	defer in.Close()
	if in.IsProfile {
		return usagef(in.Name, " is a profile, but ", r.cmd.Name(), " writes traces; give the trace from which the profile was made")
	}
	// Unless an option selects or repairs records, every record of a loop-compressed trace is
	// restored.
	if in.IsFolded && o.To == "sgt" && r.firstSet(selectionOptions...) == "" {
		if err := a.checkExpansion(r, name); err != nil {
			return err
		}
		o.To = pass.Unfolded
	}
	to := &countingWriter{w: a.stdout}
	var file *wholefile.File
	if output != "-" {
		if file, err = create(output); err != nil {
			return err
		}
		defer file.Discard()
		to.w = file
	}
	done, err := in.Convert(r.cmd.Context(), to, o)
	if to.failed != nil {
		return &outputError{path: output, err: to.failed}
	}
	if err != nil {
		return err
	}
	if file == nil {
		for _, w := range convertDoubts(in.Name, o, done) {
			a.warn(w)
		}
		return done.Stopped
	}
	if err := file.Commit(); err != nil {
		return &outputError{path: output, err: err}
	}
	document := convertedDocument(in, output, to.bytes, o, done)
	if o.To == pass.Folded {
		document = foldedDocument(document, to.bytes, done)
	}
	if err := a.print(r.format, document); err != nil {
		return err
	}
	return done.Stopped
}

// countingWriter counts the bytes that are written, and stores the last write error.
type countingWriter struct {
	w      io.Writer
	bytes  uint64
	failed error
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.bytes += uint64(n)
	if err != nil {
		c.failed = err
	}
	return n, err
}

// convertDoubts returns warnings about a conversion.
func convertDoubts(name string, o pass.ConvertOptions, done *pass.Converted) (list []string) {
	if done.Stopped != nil {
		list = append(list, name+": the output covers only the readable part of the trace")
	}
	if done.References == 0 {
		list = append(list, name+": no reference was written: the trace is empty, or contains no reference of the selected kinds and threads in the selected part")
	}
	if o.Part.Threads != nil && !done.From.Threads {
		list = append(list, name+": threads were selected, but the trace has no thread numbers, so nothing was written")
	}
	if done.BadRecords > 0 {
		list = append(list, name+": skipped "+plural(done.BadRecords, "record")+" that could not be read; the first: "+done.FirstBad.Error())
	}
	return list
}

func convertedDocument(in *pass.Input, output string, bytes uint64, o pass.ConvertOptions, done *pass.Converted) *report.Document {
	if o.To == pass.Unfolded {
		o.To = "sgt"
	}
	return &report.Document{
		Schema: "stackglass.convert", Version: 1, Warnings: convertDoubts(in.Name, o, done),
		Input: []report.Fact{
			{Key: "file", Label: "file", Value: report.TextOf(in.Name)},
			{Key: "trace_format", Label: "trace format", Value: report.TextOf(done.From.Format)},
			{Key: "stored_bytes", Label: "stored bytes", Value: report.Known(uint64(in.Bytes))},
			{Key: "output", Label: "written to", Value: report.TextOf(output)},
			{Key: "output_format", Label: "as", Value: report.TextOf(o.To)},
			{Key: "references", Label: "references", Value: report.Count(done.References)},
			{Key: "complete", Label: "complete", Value: report.YesNo(done.Stopped == nil)},
			{Key: "output_bytes", Label: "bytes", Value: report.Count(bytes)},
			{Key: "bytes_per_reference", Label: "bytes per reference", Value: quotient(bytes, done.References)},
		},
	}
}

// foldedDocument adds facts about a loop-compressed trace to the document of its conversion.
func foldedDocument(d *report.Document, bytes uint64, done *pass.Converted) *report.Document {
	d.Schema = "stackglass.fold"
	d.Input = append(d.Input,
		report.Fact{Key: "rows", Label: "rows, including events", Value: report.Count(done.Rows)},
		report.Fact{Key: "bytes_per_row", Label: "bytes per row", Value: quotient(bytes, done.Rows)},
		report.Fact{Key: "nodes", Label: "top-level nodes", Value: report.Count(uint64(done.Size.Nodes))},
		report.Fact{Key: "loops", Label: "loops", Value: report.Count(uint64(done.Size.Loops))},
		report.Fact{Key: "leaves", Label: "leaves", Value: report.Count(uint64(done.Size.Leaves))},
		report.Fact{Key: "wild", Label: "irregular addresses", Value: report.Count(done.Size.Wild)},
	)
	return d
}

// selectionOptions lists the options that select or repair records.
var selectionOptions = []string{"kinds", "threads", "skip", "skip-bad", "input-format"}

// Maximum number of records to which a trace may be expanded. More records would occupy terabytes.
const (
	mostUnfolded     = 1 << 40
	mostUnfoldedText = "2^40"
)

// checkExpansion returns an error if a loop-compressed trace would expand to too many records.
func (a *app) checkExpansion(r *readOptions, name string) error {
	if name == "-" {
		return nil // standard input can be read only once
	}
	in, err := pass.Open(r.cmd.Context(), name, a.stdin)
	if err != nil {
		return err
	}
	defer in.Close()
	tree, _, err := in.Tree()
	if tree == nil || err != nil || r.limit > 0 {
		return nil // the reader reports the error
	}
	if rows := tree.Rows(); rows > mostUnfolded {
		text := report.Count(rows).Human() + " records"
		if rows == 1<<64-1 {
			text = "more than 10^19 records"
		}
		hint := "; write only the first records with --limit, or analyse the trace"
		if rows > loops.MostUnfolded {
			hint = "; analyse the trace"
		}
		return usagef(in.Name, " expands to ", text, ", but at most ", mostUnfoldedText, " can be written", hint, " without expanding it, for example: stackglass loops ", name)
	}
	return nil
}
