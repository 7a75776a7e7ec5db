package command

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
)

// whatIf predicts hits and misses of a hierarchy of caches.
func (a *app) whatIf() *cobra.Command {
	var (
		r      *reading
		caches []string
		named  string
		budget []string
	)
	cmd := &cobra.Command{
		Use:   "what-if FILE --cache NAME=SIZE,WAYS[,LINE] …",
		Short: "Hits and misses of a hierarchy of caches",
		Long: `Predict hits and misses of each level of a hierarchy, first level first. SIZE is
32KiB, 32KB or 32K, all the same (units are powers of 1024), or a number of
bytes; WAYS a number or full (fully associative), LINE 64 unless said.

--hierarchy takes a preset (` + strings.Join(presetNames(), ", ") + `)
or a file with one cache a line. --fail-if states a budget, as in L2.misses>1e6,
on accesses, hits, misses or miss_ratio of a level, or memory.accesses: beyond
it the exit code is 1.`,
		Example: "  stackglass what-if app.sgp --cache L1=32KiB,full --cache L2=1MiB,full\n" +
			"  stackglass what-if app.sgp --cache L1=32KiB,8 --fail-if 'L1.miss_ratio>0.05'",
		Args: oneFile,
		RunE: func(_ *cobra.Command, args []string) error {
			h, err := chooseHierarchy(caches, named)
			if err != nil {
				return err
			}
			budgets, err := parseBudgets(budget, h)
			if err != nil {
				return err
			}
			l, err := a.load(r, args[0], lineSizes(h))
			if err != nil {
				return err
			}
			predicted, doubts, err := hierarchy.Predict(l.Profile, h)
			if err != nil {
				return asUsage(err)
			}
			d := &report.Document{Schema: "stackglass.what-if", Version: 1, Input: l.facts(0)}
			d.Tables = []report.Table{answers.Levels(predicted), answers.Memory(predicted)}
			for _, doubt := range doubts {
				d.Warnings = append(d.Warnings, string(doubt))
			}
			if err := a.answer(l, r.format, d); err != nil {
				return err
			}
			return checkBudgets(budgets, predicted)
		},
	}
	r = addReading(cmd)
	cmd.Flags().StringArrayVar(&caches, "cache", nil, "a level, as in L1=32KiB,8 (repeat for the next one)")
	cmd.Flags().StringVar(&named, "hierarchy", "", "a preset, or a `FILE` with one cache a line")
	cmd.Flags().StringArrayVar(&budget, "fail-if", nil, "exit 1 if this holds, as in 'L2.misses>1e6' (may be repeated)")
	must(cmd.RegisterFlagCompletionFunc("hierarchy", cobra.FixedCompletions(presetNames(), cobra.ShellCompDirectiveDefault)))
	return cmd
}

func presetNames() (names []string) {
	for _, h := range hierarchy.Presets() {
		names = append(names, h.Name)
	}
	return names
}

// chooseHierarchy takes the levels from --cache or from --hierarchy.
func chooseHierarchy(caches []string, named string) (hierarchy.Hierarchy, error) {
	switch {
	case len(caches) > 0 && named != "":
		return hierarchy.Hierarchy{}, usagef("--cache and --hierarchy exclude each other: give the levels by one of them")
	case len(caches) > 0:
		return parseLevels(fromFlag, caches)
	case named == "":
		return hierarchy.Hierarchy{}, usagef("no cache to ask about: give --cache L1=32KiB,8, or --hierarchy and one of ", strings.Join(presetNames(), ", "))
	}
	for _, h := range hierarchy.Presets() {
		if strings.EqualFold(h.Name, named) {
			return h, nil
		}
	}
	text, err := os.ReadFile(named)
	if err != nil {
		return hierarchy.Hierarchy{}, usagef("--hierarchy ", named, ": neither a preset (", strings.Join(presetNames(), ", "), ") nor a file that can be read")
	}
	var lines []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return parseLevels("--hierarchy "+named+": ", lines)
}

// fromFlag is where levels come from that are given one by one.
const fromFlag = "--cache "

// parseLevels reads caches; where is for messages.
func parseLevels(where string, texts []string) (h hierarchy.Hierarchy, err error) {
	for _, text := range texts {
		cache, err := hierarchy.ParseCache(text)
		var option *trace.OptionError
		switch {
		case errors.As(err, &option) && option.Option == "cache" && where == fromFlag:
			return h, asUsage(err)
		case err != nil:
			return h, usagef(where, text, ": ", err.Error())
		}
		if cache.Name == "memory" || strings.ContainsAny(cache.Name, ".<>") {
			return h, usagef(where, text, ": a cache may not be named ", strconv.Quote(cache.Name),
				": memory, dots, < and > mean something else to --fail-if; give it another name, as in L1")
		}
		if slices.ContainsFunc(h.Levels, func(other hierarchy.Cache) bool { return other.Name == cache.Name }) {
			return h, usagef(where, text, ": there is a cache ", cache.Name, " already; give each level its own name")
		}
		h.Levels = append(h.Levels, cache)
	}
	if len(h.Levels) == 0 {
		return h, usagef(where, "no cache in it, want lines such as L1=32KiB,8")
	}
	return h, nil
}

// lineSizes are the different line sizes of the levels, ascending.
func lineSizes(h hierarchy.Hierarchy) []uint32 {
	var sizes []uint32
	for _, c := range h.Levels {
		sizes = append(sizes, c.LineBytes)
	}
	slices.Sort(sizes)
	return slices.Compact(sizes)
}
