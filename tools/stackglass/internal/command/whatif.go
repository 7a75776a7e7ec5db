package command

import (
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
)

// whatIf predicts hits and misses of a hierarchy of caches.
func (a *app) whatIf() *cobra.Command {
	var (
		r      *reading
		q      asked
		by     string
		shares []string
		one    bool
	)
	cmd := &cobra.Command{
		Use:   "what-if FILE --cache NAME=SIZE,WAYS[,LINE] …",
		Short: "Hits and misses of a hierarchy of caches",
		Long: `Predict hits and misses of each level of a hierarchy, first level first. SIZE is
32KiB, 32KB or 32K, all the same (units are powers of 1024), or a number of
bytes; WAYS a number or full (fully associative), LINE 64 unless said.

Behind these may stand, with commas: latency=CYCLES (from a load to the use of
what hits), bandwidth=BYTES a cycle (to the level above), shared=CORES, and the
words hashed, plru, random, inclusive, exclusive, write-through and
no-allocate. Memory and clock are given in the same way: --cache
memory=latency=230,bandwidth=8 --cache clock=3.5. With all latencies known, the
answer has the average access time.

--hierarchy takes a preset (` + presetLines() + `)
or a file: JSON or YAML (core/hierarchy/config/hierarchy.schema.json says which
keys), a PPT hardware file, a drcachesim configuration, or one cache a line.

The method of a level is exact (from stack distances or set tables), independent
(as if it saw every access, not only the misses of the one above), as-lru (another
policy, taken for LRU), or sdcm: a model of sets. Where sets are exact, what SDCM
would have said stands beside it. MPKR and MPKI are misses a thousand references
and a thousand instructions.

Where the trace has several threads, each runs on its own core. --one-core puts all on
one core; --cores, with a trace, puts some on one. Levels are private to a core unless shared=CORES or shared=all says
how many have one in common; other cores' stores take lines from private ones, and
the misses that come of that are told apart. --by core has the numbers of each core.
The cores that share a cache are those whose threads appear one after the other, as in
simulate, unless --domains or --cores says otherwise; a profile (.sgp) has only the
groups that it was made with.
--share 0=4MiB,1=2MiB parts the last shared level between the threads' cores.

--fail-if states a budget, as in L2.misses>1e6, on accesses, hits, misses or
miss_ratio of a level, or memory.accesses: beyond it the exit code is 1.`,
		Example: "  stackglass what-if app.sgp --cache L1=32KiB,full --cache L2=1MiB,full\n" +
			"  stackglass what-if app.sgp --hierarchy i7-4770K\n" +
			"  stackglass what-if app.sgp --cache L1=32KiB,8,latency=4 --cache memory=latency=200\n" +
			"  stackglass what-if app.sgp --cache L1=32KiB,8 --fail-if 'L1.miss_ratio>0.05'",
		Args: oneFile,
		RunE: func(_ *cobra.Command, args []string) error {
			return a.runWhatIf(r, &q, args[0], by, shares, one)
		},
	}
	r = addReading(cmd)
	r.addSpill()
	q.add(cmd, "L2.misses>1e6")
	addGroups(cmd, r)
	addOneCore(cmd, &one)
	cmd.Flags().StringVar(&by, "by", "level", "print what each core asks of each level: level or core")
	cmd.Flags().StringSliceVar(&shares, "share", nil, "parts of the last shared level that threads have to themselves, as in 0=4MiB,1=2MiB")
	must(cmd.RegisterFlagCompletionFunc("by", cobra.FixedCompletions([]string{"level", "core"}, cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

func (a *app) runWhatIf(r *reading, q *asked, name, by string, shares []string, together bool) error {
	h, err := chooseHierarchy(q.caches, q.named)
	if err != nil {
		return err
	}
	budgets, err := parseBudgets(q.budget, h)
	if err != nil {
		return err
	}
	if by != "level" && by != "core" {
		return usagef("--by ", strconv.Quote(by), ", want level or core")
	}
	if place(&h, together); together && (by == "core" || r.cores != "") {
		return usagef("--one-core leaves no cores to group or to tell apart: leave it out, or --by core and --cores")
	}
	parts, err := parseShares(shares)
	if err != nil {
		return err
	}
	r.asked, r.analyses = h, r.predictionOf(h).String()
	l, err := a.load(r, name, lineSizes(h))
	if err != nil {
		return err
	}
	predicted, doubts, err := hierarchy.NewCoreAsker(l.Profile).Predict(h, parts)
	if err != nil {
		return asUsage(err)
	}
	d := &report.Document{Schema: "stackglass.what-if", Version: 1, Input: append(l.facts(0), answers.ThreadFacts(l.Profile, h)...)}
	d.Tables = answers.PredictedByCore(h, predicted)
	if h.About != "" {
		doubts = append(doubts, hierarchy.Warning(h.Name+": "+h.About))
	}
	if by == "core" {
		if len(predicted.Cores) == 0 {
			doubts = append(doubts, oneCore(l.Profile))
		} else {
			d.Tables = slices.Insert(d.Tables, 0, answers.CoreLevels(predicted))
		}
	}
	d.Warnings = l.told(doubts)
	if err := a.answer(l, r.format, d); err != nil {
		return err
	}
	return checkBudgets(budgets, predicted.Prediction)
}

// oneCore says why there is nothing to tell by core.
func oneCore(p *profile.Profile) hierarchy.Warning {
	switch {
	case !p.Input.Header.Threads:
		return "the trace does not say which thread made a reference, so there is one core"
	case len(p.Totals.Threads) < 2:
		return "the trace has one thread, so there is one core"
	}
	return "the profile has no stacks of threads; analyze the trace again, by default or with --analyses sharing"
}

// parseShares reads THREAD=SIZE.
func parseShares(list []string) (shares []hierarchy.Share, err error) {
	for _, text := range list {
		thread, size, found := strings.Cut(text, "=")
		number, bad := strconv.ParseUint(strings.TrimSpace(thread), 10, 32)
		bytes, err := hierarchy.ParseSize(size)
		if !found || bad != nil || err != nil || bytes == 0 {
			return nil, usagef("--share ", strconv.Quote(text), ", want a thread and its part of the cache, as in 0=4MiB")
		}
		shares = append(shares, hierarchy.Share{Thread: uint32(number), SizeBytes: bytes})
	}
	return shares, nil
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
