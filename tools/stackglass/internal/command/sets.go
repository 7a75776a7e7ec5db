package command

import (
	"github.com/spf13/cobra"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
)

// sets prints the misses of LRU caches of every number of sets and ways.
func (a *app) sets() *cobra.Command {
	var (
		r    *reading
		line uint32
	)
	cmd := &cobra.Command{
		Use:   "sets FILE",
		Short: "Misses of set-associative caches of every number of sets and ways",
		Long: `Print the misses of LRU caches of 2^0 to 2^16 sets and 1 to 32 ways, exactly.
A cache of S sets and W ways holds S × W lines.

csv and json have every number of ways; for one set, which is a fully associative
cache, beyond 32 too, wherever the misses change, as curve does. table and md have
miss ratios, with a row for each number of sets.`,
		Example: "  stackglass sets app.lackey.lz4\n  stackglass sets app.sgp --line 128 --format csv",
		Args:    oneFile,
		RunE: func(_ *cobra.Command, args []string) error {
			l, err := a.load(r, args[0], []uint32{line})
			if err != nil {
				return err
			}
			found, err := l.setTable(line)
			if err != nil {
				return err
			}
			d := &report.Document{Schema: "stackglass.sets", Version: 1, Input: l.facts(line)}
			if exactRows(r.format) {
				d.Tables = []report.Table{answers.Sets(found)}
			} else {
				d.Tables = []report.Table{answers.SetsGrid(found)}
			}
			answers.FromSample(&d.Tables[0], l.Profile)
			if l.Profile.Sampled != nil && l.Profile.LocalityAt(line).Sets == nil {
				d.Warnings = append(d.Warnings, "a sample has too few lines of each set to count in them; these are what the stack distance cache model (SDCM) expects, which lets lines fall into sets at random")
			}
			return a.answer(l, r.format, d)
		},
	}
	r = addReading(cmd)
	r.addSpill()
	r.analyses = "sets"
	lineFlag(cmd, &line)
	return cmd
}

// setTable gives the result for one line size, with its set table.
func (l *answerable) setTable(lineBytes uint32) (*profile.Locality, error) {
	found, err := l.locality(lineBytes)
	if err == nil && found.Sets == nil && l.Profile.Sampled != nil {
		modelled := *found
		modelled.Sets = hierarchy.ModelledSets(found)
		return &modelled, nil
	}
	if err == nil && found.Sets == nil {
		err = usagef("the profile ", l.name, " holds no set tables; analyze the trace again, by default or with --analyses sets")
	}
	return found, err
}
