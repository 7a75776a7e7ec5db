package state

import (
	"slices"
	"strings"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/report"
)

// Simulated is set to "1" while the page shows replacement policies and prefetchers.
var Simulated = newOwnSetting("simulate")

// Policies returns the replacement policies that a cache can have.
func Policies(c hierarchy.Cache) (list []Choice) {
	ways := uint64(c.Ways)
	if c.Full() {
		ways = c.Lines()
	}
	for i, name := range hierarchy.Replacements() {
		r := hierarchy.Replacement(i)
		if r != hierarchy.TreePLRU || ways&(ways-1) == 0 || c.Replacement == r {
			list = append(list, Choice{Name: name, Title: r.Title()})
		}
	}
	return list
}

// Prefetchers returns the prefetchers that a cache can have: every kind with its usual degree and
// distance, and the current prefetcher.
func Prefetchers(c hierarchy.Cache) (list []Choice) {
	for _, name := range hierarchy.PrefetchKinds()[:hierarchy.Stream+1] {
		list = append(list, Choice{Name: name, Title: strings.ReplaceAll(name, "-", " ")})
	}
	if own := c.Prefetch.String(); c.Prefetch.Kind <= hierarchy.Stream && own != c.Prefetch.Kind.String() {
		title := strings.NewReplacer("-", " ", ":", ", ", "=", " ").Replace(own)
		list = slices.Insert(list, int(c.Prefetch.Kind)+1, Choice{Name: own, Title: title})
	}
	return list
}

// WithPolicy returns the levels after a change to the replacement policy or the prefetcher of level
// i. The parameter "name" is the name of one of the [Policies] or [Prefetchers].
func WithPolicy(levels []hierarchy.Cache, i int, name string) []hierarchy.Cache {
	return With(levels, i, func(c *hierarchy.Cache) {
		if policy := slices.Index(hierarchy.Replacements(), name); policy >= 0 {
			c.Replacement = hierarchy.Replacement(policy)
		} else if prefetch, ok := hierarchy.ParsePrefetch(name); ok {
			c.Prefetch = prefetch
		}
	})
}

// LRUOnly reports whether all levels have LRU replacement and no prefetchers.
func LRUOnly(levels []hierarchy.Cache) bool {
	return !slices.ContainsFunc(levels, func(c hierarchy.Cache) bool {
		return c.Replacement != hierarchy.LRU || c.Prefetch.Kind != hierarchy.NoPrefetch
	})
}

// SimulationQuestion returns the question for a simulation of a hierarchy's caches in a part of the
// run, or in the whole run if the range is zero. If the parameter "bound" is set, the answer also
// contains the misses of optimal replacement. The trace has the given format; "" detects the format.
func SimulationQuestion(h hierarchy.Hierarchy, part Range, bound bool, format string) answers.Question {
	args := []string{"baseline=true"}
	if bound {
		args = append(args, "bound=true")
	}
	if part != (Range{}) {
		args = append(args, "range="+part.String())
	}
	// TLBs and instruction caches do not change the counts of the caches for data.
	q := VerbQuestion("simulate", hierarchy.Hierarchy{Levels: h.Levels, Memory: h.Memory, ClockGHz: h.ClockGHz, Threads: h.Threads}, args...)
	q.Bytes = []byte(format)
	return q
}

// SimulatedTable returns a table of the reply to a [SimulationQuestion], reduced to its most
// important rows and columns, or nil if the reply lacks this table.
func SimulatedTable(reply *answers.Reply, key string) *Table {
	t := reply.Table(key)
	switch {
	case t == nil:
		return nil
	case key == "prefetch":
		return show(t, words, nil, "name", "prefetcher", "inserted", "useful", "accuracy", "coverage", "pollution").setReply(reply, key)
	case key != "against":
		return AnsweredTable(reply, key)
	}
	changes := simulatedChanges(t)
	made := show(&changes, words, nil, "name", "number", "a", "b", "difference", "change").setReply(reply, key)
	made.Caption = "Before: LRU replacement and no prefetchers. After: the chosen policies and prefetchers"
	made.Columns[2].Name, made.Columns[3].Name = "before", "after"
	return made
}

// simulatedChanges returns the rows of the table "against" that contain misses and fetched bytes,
// with the names of these numbers.
func simulatedChanges(t *report.Table) report.Table {
	part, number := *t, t.Index("number")
	part.Rows = nil
	for _, row := range t.Rows {
		name := row[number].Plain()
		if name == "misses" || name == "fetched_bytes" {
			row = slices.Clone(row)
			row[number] = report.TextOf(strings.Replace(name, "fetched_bytes", "fetched bytes", 1))
			part.Rows = append(part.Rows, row)
		}
	}
	return part
}

// SimulationSentence returns a sentence with the misses of each level before and after, or "" if the
// reply contains no comparison.
func SimulationSentence(reply *answers.Reply) string {
	t := reply.Table("against")
	if t == nil {
		return ""
	}
	var parts []string
	changes := simulatedChanges(t)
	for i := range changes.Rows {
		cell := func(key string) string { return shown(changes.Rows[i][t.Index(key)], words) }
		text := cell("name") + ": " + cell("b") + " " + cell("number") + " instead of " + cell("a")
		if change := cell("change"); change != "" && change != "–" {
			text += " (" + change + ")"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ") + "."
}

// SimulationProgress returns the share of the references that a partial reply covers, between 0 and
// 1. It returns 0 for other replies.
func SimulationProgress(reply *answers.Reply) float64 {
	if reply == nil {
		return 0
	}
	t := reply.Table("progress")
	if t == nil || len(t.Rows) == 0 {
		return 0
	}
	n, _ := t.Rows[0][0].Number()
	of, _ := t.Rows[0][1].Number()
	return min(n/max(of, 1), 1)
}
