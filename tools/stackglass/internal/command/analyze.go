package command

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/ask/program"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/tools/stackglass/internal/wholefile"
)

// analyze returns the verb that analyses traces and writes their profiles.
func (a *app) analyze() *cobra.Command {
	var (
		r      *readOptions
		lines  []uint
		output string
		named  []string // executables and libraries from which symbols are read
		saved  checkpoints
		part   string // the part of the run to analyse, or "" for the whole run
	)
	cmd := &cobra.Command{
		Use:   "analyze FILE… [-o PROFILE.sgp]",
		Short: "Read traces once and write their profiles",
		Args:  someFiles,
		RunE: func(_ *cobra.Command, args []string) error {
			sizes, err := parseLines(lines)
			if err != nil {
				return err
			}
			if len(args) > 1 && r.format != string(report.Text) && r.format != string(report.Markdown) {
				return usagef("--format ", r.format, " supports only one trace, but ", plural(uint64(len(args)), "trace"), " are given; analyse the traces one by one")
			}
			paths, err := outputsFor(output, args)
			if err != nil {
				return err
			}
			for i, name := range args {
				if i > 0 {
					fmt.Fprintln(a.stdout)
				}
				if saved.dir != "" {
					r.checkpoints = &checkpoints{dir: saved.dir, references: saved.references, spill: r.spill}
				}
				if err := a.selectPart(r, part, name, sizes); err != nil {
					return err
				}
				l, err := a.analyzeAndKeep(r, name, paths[i], sizes, named)
				if r.checkpoints != nil {
					err = r.checkpoints.finish(a, l, err)
				}
				if err != nil {
					if rest := args[i+1:]; len(rest) > 0 {
						a.warn("the command ended at " + name + ", so these traces were not analysed: " + strings.Join(rest, ", "))
					}
					return err
				}
			}
			return nil
		},
	}
	r = addReading(cmd)
	r.addSpill()
	cmd.Flags().UintSliceVar(&lines, "lines", []uint{64}, "cache line sizes in `BYTES`, powers of two from 8 to 4096")
	cmd.Flags().UintSliceVar(&lines, "line", []uint{64}, "the same as --lines")
	hide(cmd, "line")
	r.lineOptions = []string{"lines", "line", "range"}
	r.usual = true
	cmd.Flags().StringVar(&r.analyses, "analyses", analysis.Usual.String(), "run this `LIST` of analyses: "+strings.Join(analysis.AnalysisNames(), ", ")+" (\"regular\" runs \"loops\" only if the trace compresses well)")
	cmd.Flags().StringVar(&r.setCounts, "sets", "all", "count misses exactly in caches with these `NUMBERS` of sets: all (powers of two up to 65536) or most (faster: all except 2, 4 and 8)")
	setCompletions(cmd, "sets", []string{"all", "most"})
	cmd.Flags().StringVar(&part, "range", "", "analyse only this `PART` of the run, such as 10%..35% or 2000000..5000000 (reference numbers), exactly and with empty caches at its beginning")
	cmd.Flags().StringVarP(&output, "output", "o", "", "write the profile to this `FILE` (for several traces: to this folder)")
	cmd.Flags().BoolVar(&r.mergeable, "mergeable", false, "store the addresses that are needed to append the profile of a later segment of the trace")
	cmd.Flags().StringVar(&saved.dir, "checkpoint", "", "save the state of the analysis in the folder `DIR`, and resume from the saved state")
	cmd.Flags().Uint64Var(&saved.references, "checkpoint-every", 0, "save the state every `N` references, or less often if saving takes more than 5 % of the time (0: after every 2^24 references or 256 MiB of the file)")
	addMeasures(cmd, r)
	addGroups(cmd, r)
	addSymbols(cmd, &named)
	return cmd
}

// selectPart makes the analysis of a trace skip all references except the part that --range selects.
func (a *app) selectPart(r *readOptions, part, name string, lineBytes []uint32) error {
	if r.firstSet("range") == "" {
		return nil
	}
	if option := r.firstSet("skip", "limit"); option != "" {
		return usagef("--range and --", option, " cannot be combined: --range selects the first and the last reference")
	}
	r.skip, r.limit = 0, 0
	o, err := r.options(a, lineBytes)
	if err != nil {
		return err
	}
	first, end, all, err := program.SelectPart(part, func() (uint64, error) { return a.countReferences(r, part, name, o) })
	if err != nil {
		return err
	}
	if first >= all {
		return asUsage(program.EmptyPart(part, name, all))
	}
	if r.skip = first; end < all {
		r.limit = end - first
	}
	return nil
}

func parseLines(lines []uint) ([]uint32, error) {
	var sizes []uint32
	for _, n := range lines {
		if n > 1<<31 {
			return nil, usagef("--lines: the line size is too large; want powers of two from 8 to 4096")
		}
		sizes = append(sizes, uint32(n))
	}
	slices.Sort(sizes)
	return slices.Compact(sizes), nil
}

// outputsFor returns the paths of the profiles. It fails if two paths are equal.
func outputsFor(output string, names []string) ([]string, error) {
	var paths []string
	for i, name := range names {
		path, err := outputFor(output, name, len(names))
		if err != nil {
			return nil, err
		}
		if same := slices.Index(paths, path); path != "" && same >= 0 {
			return nil, usagef("-o ", output, ": ", names[same], " and ", names[i], " would both be written to ", path,
				"; analyse the traces one by one, and give each a different file after -o")
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// outputFor returns the path of the profile of one trace, or "" if no profile is written.
func outputFor(output, name string, traces int) (string, error) {
	st, err := os.Stat(output)
	folder := output != "" && err == nil && st.IsDir()
	switch {
	case output == "":
		return "", nil
	case output == "-":
		return "", usagef("-o -: the profile cannot be written to standard output, because the summary is printed there; give the name of a file")
	case folder:
		base := filepath.Base(strings.TrimPrefix(name, "demo:"))
		if name == "-" {
			base = "stdin"
		}
		for _, ending := range []string{".lz4", ".gz", ".zst", ".xz", ".zip", ".sz", ".lackey", ".din", ".csv", ".txt"} {
			base = strings.TrimSuffix(base, ending)
		}
		return filepath.Join(output, base+".sgp"), nil
	case traces > 1:
		return "", usagef("-o ", output, " is not a folder, but there are several traces; create the folder first")
	}
	if in, err := os.Stat(name); err == nil && st != nil && os.SameFile(in, st) {
		return "", usagef("-o ", output, " is the trace itself, which would be overwritten; choose a different name")
	}
	return output, nil
}

// analyzeAndKeep analyses a trace and writes its profile to path. Even if it returns an error, the
// result may be non-nil.
func (a *app) analyzeAndKeep(r *readOptions, name, path string, lineBytes []uint32, named []string) (*loadedFile, error) {
	var out *wholefile.File
	if path != "" {
		// Create the file before the pass, which may take long, so that a wrong path is reported at
		// once.
		var err error
		if out, err = create(path); err != nil {
			return nil, err
		}
		defer out.Discard()
	}
	l, err := a.load(r, name, lineBytes)
	if err != nil {
		return nil, err
	}
	if part := r.cmd.Flags().Lookup("range"); part != nil && part.Changed && l.Profile.Totals.AllReferences() == 0 && l.Profile.Totals.Unselected == 0 {
		return nil, usagef("--range ", part.Value.String(), ": the part begins after the last reference of ", l.name)
	}
	notes, err := symbolize(l.Profile, named)
	if err != nil {
		return l, err
	}
	l.warnings = append(l.warnings, notes...)
	if r.usual && !r.mergeable && !r.cmd.Flags().Changed("analyses") && len(l.Profile.Sharing) > 0 && l.Profile.Communication == nil {
		l.warnings = append(l.warnings, l.name+": the profile does not contain communication between threads: "+answers.NoCommunication(l.Profile)+"; add --analyses sharing,communication")
	}
	d := &report.Document{Schema: "stackglass.analyze", Version: 1, Input: l.facts(0)}
	digest := l.Profile.Digest()
	d.Input = append(d.Input, report.Fact{Key: "digest", Label: "digest", Value: report.TextOf(hex.EncodeToString(digest[:]))})
	if out != nil {
		if path, err = a.saveProfile(l, out, path); err != nil {
			return l, err
		}
		d.Input = append(d.Input, report.Fact{Key: "profile", Label: "written to", Value: report.TextOf(path)})
	}
	d.Tables = answers.Summary(l.Profile)
	return l, a.answer(l, r.format, d)
}
