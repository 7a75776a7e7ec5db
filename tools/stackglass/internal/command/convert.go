package command

import (
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace/sgt"
	"github.com/stackglass/stackglass/tools/stackglass/internal/pass"
	"github.com/stackglass/stackglass/tools/stackglass/internal/wholefile"
)

// convert returns the verb that writes a trace in another format.
func (a *app) convert() *cobra.Command {
	var r *rewriting
	var to string
	cmd := &cobra.Command{
		Use:   "convert FILE -o OUT.sgt",
		Short: "Write a trace, or a part of it, in another format",
		Args:  oneFile,
		RunE: func(_ *cobra.Command, args []string) error {
			if !slices.Contains(pass.WrittenFormats, to) {
				return usagef("--to ", to, ", want ", strings.Join(pass.WrittenFormats, ", "))
			}
			if r.sample != "" {
				return usagef("--sample: convert writes all references; use --sample with analyze")
			}
			return a.rewrite(r, args[0], "OUT.sgt", pass.ConvertOptions{To: to})
		},
	}
	r = addRewriting(cmd, "write", "trace")
	cmd.Flags().StringVar(&to, "to", "sgt", "the `FORMAT` to write: "+strings.Join(pass.WrittenFormats, ", "))
	complete(cmd, "to", pass.WrittenFormats)
	return cmd
}

// rewriting contains the options of a verb that reads and writes a trace.
type rewriting struct {
	*reading
	output string
}

// addRewriting adds the options of rewriting. verb says in the help what the command does with
// references.
func addRewriting(cmd *cobra.Command, verb, written string) *rewriting {
	r := &rewriting{reading: addReading(cmd)}
	f := cmd.Flags()
	f.Lookup("kinds").Usage = "references to " + verb + ": load, store, modify, fetch, data, all"
	f.Lookup("kinds").DefValue = "all"
	f.Lookup("threads").Usage = verb + " only these threads, as in 1,2"
	f.Lookup("limit").Usage = verb + " at most `N` references (0: all)"
	must(f.Set("kinds", "all"))
	f.Lookup("kinds").Changed = false
	hide(cmd, "memory", "sample", "sample-seed", "workers")
	f.StringVarP(&r.output, "output", "o", "", "write the "+written+" to this `FILE` (- for standard output)")
	return r
}

// rewrite writes a trace in the format of to. as is an example of an output name, for error
// messages.
func (a *app) rewrite(r *rewriting, name, as string, to pass.ConvertOptions) error {
	o, err := r.options(a, nil)
	if err != nil {
		return err
	}
	if err := writtenTo(r.cmd.Name(), as, r.output, name); err != nil {
		return err
	}
	if to.To == pass.Unfolded {
		if err := a.unfolds(r.reading, name); err != nil {
			return err
		}
	}
	to.Format, to.SkipBad, to.Strict, to.Tool, to.Terminal = o.Format, o.Spec.SkipBad, o.Strict, "stackglass "+Version, o.Terminal
	to.Part = sgt.Part{Kinds: o.Spec.Kinds, Threads: o.Spec.Threads, Skip: o.Spec.Skip, Limit: o.Spec.Limit}
	return a.convertOne(r.reading, name, r.output, to)
}

// writtenTo checks the path of a verb's output: it must not be the path of the input.
func writtenTo(verb, as, output, name string) error {
	if output == "" {
		return usagef(verb, " writes a file; name it, as in: stackglass ", verb, " ", name, " -o ", as)
	}
	in, err := os.Stat(name)
	out, none := os.Stat(output)
	if err == nil && none == nil && os.SameFile(in, out) {
		return usagef("-o ", output, ": is the trace itself; give another name")
	}
	return nil
}

func (a *app) convertOne(r *reading, name, output string, o pass.ConvertOptions) error {
	in, err := pass.Open(r.cmd.Context(), name, a.stdin)
	if err != nil {
		return err
	}
	defer in.Close()
	if in.IsProfile {
		return usagef(in.Name, ": is a profile, but ", r.cmd.Name(), " writes traces; give the trace from which the profile was made")
	}
	to := &counted{w: a.stdout}
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

// counted counts the bytes written, and stores the last write error.
type counted struct {
	w      io.Writer
	bytes  uint64
	failed error
}

func (c *counted) Write(p []byte) (int, error) {
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
		list = append(list, name+": no reference was written: the trace is empty, or contains no reference of the selected kinds, threads and part")
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

// fold returns the verb that writes a loop-compressed trace.
func (a *app) fold() *cobra.Command {
	var r *rewriting
	var window int
	cmd := &cobra.Command{
		Use:   "fold FILE -o OUT.sgl",
		Short: "Compress a trace into its loops, without loss",
		Args:  oneFile,
		RunE: func(_ *cobra.Command, args []string) error {
			if window < 0 || window > 1<<20 {
				return usagef("--window, want a number of nodes from 1 to 1048576")
			}
			return a.rewrite(r, args[0], "OUT.sgl", pass.ConvertOptions{To: pass.Folded, Window: window})
		},
	}
	r = addRewriting(cmd, "fold", "loop-compressed trace")
	cmd.Flags().IntVar(&window, "window", 0, "search for repetitions among the last `N` nodes (0: 1024)")
	return cmd
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

// unfold returns the verb that expands a loop-compressed trace.
func (a *app) unfold() *cobra.Command {
	var r *rewriting
	cmd := &cobra.Command{
		Use:   "unfold FILE.sgl -o OUT.sgt",
		Short: "Expand a loop-compressed trace",
		Args:  oneFile,
		RunE: func(_ *cobra.Command, args []string) error {
			return a.rewrite(r, args[0], "OUT.sgt", pass.ConvertOptions{To: pass.Unfolded})
		},
	}
	r = addRewriting(cmd, "unfold", "trace")
	hide(cmd, notUnfolding...)
	return cmd
}

// notUnfolding lists the options that unfold rejects.
var notUnfolding = []string{"kinds", "threads", "skip", "skip-bad", "input-format"}

// The maximum number of rows to expand: more would take terabytes.
const (
	mostUnfolded     = 1 << 40
	mostUnfoldedText = "2^40"
)

// unfolds returns an error for files that are not loop-compressed traces, or that expand to too
// many rows.
func (a *app) unfolds(r *reading, name string) error {
	if option := r.changed(notUnfolding...); option != "" {
		return usagef("--", option, ": unfold restores all records; select records with convert or analyze, which accept a loop-compressed trace")
	}
	if name == "-" {
		return nil // standard input can be read only once
	}
	in, err := pass.Open(r.cmd.Context(), name, a.stdin)
	if err != nil {
		return err
	}
	defer in.Close()
	if !in.IsFolded {
		return usagef(in.Name, ": is not a loop-compressed trace; create one with: stackglass fold ", name, " -o OUT.sgl")
	}
	tree, _, err := in.Tree()
	if tree == nil || err != nil || r.limit > 0 {
		return nil // the reader reports the error
	}
	if rows := tree.Rows(); rows > mostUnfolded {
		text := report.Count(rows).Human() + " records"
		if rows == 1<<64-1 {
			text = "more than 10^19 records"
		}
		hint := "; write only the first ones with --limit, or analyse the trace"
		if rows > loops.MostUnfolded {
			hint = "; analyse the trace"
		}
		return usagef(in.Name, ": expands to ", text, ", but at most ", mostUnfoldedText, " can be written", hint, " without expanding it, as in: stackglass loops ", name)
	}
	return nil
}
