package command

import (
	"github.com/spf13/cobra"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/report"
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

Behind these may stand, with commas: latency=CYCLES (from a load to the use of
what hits), bandwidth=BYTES a cycle (to the level above), shared=CORES, and the
words hashed, plru, random, non-inclusive, exclusive, write-through and
no-allocate. Memory and clock are given in the same way: --cache
memory=latency=230,bandwidth=8 --cache clock=3.5. With all latencies known, the
answer has the average access time.

--hierarchy takes a preset (` + presetLines() + `)
or a file: JSON or YAML (core/hierarchy/config/hierarchy.schema.json says which
keys), a PPT hardware file, a drcachesim configuration, or one cache a line.

The method of a level is exact (from stack distances or set tables), inclusive
(as if it saw every access, not only the misses of the one above), as-lru (another
policy, taken for LRU), or sdcm: a model of sets. Where sets are exact, what SDCM
would have said stands beside it. MPKR and MPKI are misses a thousand references
and a thousand instructions.

--fail-if states a budget, as in L2.misses>1e6, on accesses, hits, misses or
miss_ratio of a level, or memory.accesses: beyond it the exit code is 1.`,
		Example: "  stackglass what-if app.sgp --cache L1=32KiB,full --cache L2=1MiB,full\n" +
			"  stackglass what-if app.sgp --hierarchy i7-4770K\n" +
			"  stackglass what-if app.sgp --cache L1=32KiB,8,latency=4 --cache memory=latency=200\n" +
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
			d.Tables = answers.Predicted(h, predicted)
			if h.About != "" {
				doubts = append(doubts, hierarchy.Warning(h.Name+": "+h.About))
			}
			d.Warnings = l.told(doubts)
			if err := a.answer(l, r.format, d); err != nil {
				return err
			}
			return checkBudgets(budgets, predicted)
		},
	}
	r = addReading(cmd)
	cmd.Flags().StringArrayVar(&caches, "cache", nil, "a level, as in L1=32KiB,8 (repeat for the next one)")
	cmd.Flags().StringVar(&named, "hierarchy", "", "a preset, or a `FILE` that describes a hierarchy")
	cmd.Flags().StringArrayVar(&budget, "fail-if", nil, "exit 1 if this holds, as in 'L2.misses>1e6' (may be repeated)")
	must(cmd.RegisterFlagCompletionFunc("hierarchy", cobra.FixedCompletions(presetNames(), cobra.ShellCompDirectiveDefault)))
	return cmd
}

// presetLines lists the presets, a few a line.
func presetLines() string {
	text := ""
	for i, name := range presetNames() {
		switch {
		case i > 0 && i%6 == 0:
			text += ",\n"
		case i > 0:
			text += ", "
		}
		text += name
	}
	return text
}
