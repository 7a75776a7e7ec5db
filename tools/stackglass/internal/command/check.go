package command

import (
	"cmp"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/tools/stackglass/internal/pass"
)

// check reads a file to its end and reports what is wrong with it.
func (a *app) check() *cobra.Command {
	var format, inputFormat string
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Whether a file is whole, and what is wrong with it",
		Long: `Read all of FILE, a trace or a profile, and say what is wrong with it, and where.
Of a container (.sgt) every checksum, table, step and ticket is verified, and
whether its index and its end tell what is in it. The exit code is 3 if anything
is wrong.`,
		Example: "  stackglass check app.sgt\n  stackglass check app.lackey.lz4 --format json",
		Args:    oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			in, err := pass.Open(cmd.Context(), args[0], a.stdin)
			if err != nil {
				return err
			}
			defer in.Close()
			checked, err := in.Check(cmd.Context(), inputFormat)
			if err != nil {
				return err
			}
			if err := a.print(format, checkDocument(in, checked)); err != nil {
				return err
			}
			if v := checked.Container; v != nil && checked.Count == 1 && errors.Is(v.Stopped, trace.ErrCutShort) {
				return v.Stopped
			}
			if checked.Count > 0 {
				return errors.New(in.Name + " has " + plural(checked.Count, "fault") + "; copy the file or record the trace again, or use the part that can be read")
			}
			return nil
		},
	}
	addFormat(cmd, &format)
	addInputFormat(cmd, &inputFormat)
	return cmd
}

func checkDocument(in *pass.Input, c *pass.Checked) *report.Document {
	d := &report.Document{Schema: "stackglass.check", Version: 1, Input: []report.Fact{
		{Key: "file", Label: "file", Value: report.TextOf(in.Name)},
		{Key: "type", Label: "type", Value: report.TextOf(c.Type)},
		{Key: "packed", Label: "packed", Value: packedIn(c.Packings)},
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

// packedIn names the compression of a file.
func packedIn(packings []string) report.Value {
	return report.TextOf(cmp.Or(strings.Join(packings, " in "), "no"))
}
