package state

import (
	"errors"
	"strconv"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
)

// oneCore is the placement of all threads on one core, in the URL and in choices.
const oneCore = "one-core"

// placementOf reads a placement from the URL, or from a choice.
func placementOf(text string) hierarchy.Placement {
	if text == oneCore {
		return hierarchy.OnOneCore
	}
	return hierarchy.OnOwnCores
}

// ThreadsOn gives the screen with the threads on other cores, as a choice of
// [Placements] names them.
func (s Screen) ThreadsOn(choice string) Screen {
	s.Threads = placementOf(choice)
	return s
}

// Placements are the cores on which a profile can put the threads of its program; nil
// where there is no choice.
func Placements(p *profile.Profile) []Choice {
	if len(p.Sharing) == 0 {
		return nil
	}
	own := "each thread on its own core"
	if n := len(p.Sharing[0].Cores); n < len(p.Totals.Threads) {
		own = "threads on " + strconv.Itoa(n) + " cores: " + answers.Groups(p)
	}
	return []Choice{{Title: own}, {Name: oneCore, Title: "all threads on one core"}}
}

// ThreadsOn says on which cores the threads of A and of B run.
func (c *Comparison) ThreadsOn(h hierarchy.Hierarchy) string {
	a, b := answers.ThreadsOn(c.A.Profile, h), answers.ThreadsOn(c.B.Profile, h)
	if a == b {
		return a
	}
	one := func(text string) string {
		if text == "" {
			return "one thread"
		}
		return text
	}
	return "A: " + one(a) + ". B: " + one(b)
}

// coresTable is what each core asks of each level; nil for one core.
func (v *View) coresTable(h hierarchy.Hierarchy, p hierarchy.ByCore) *Table {
	if len(p.Cores) == 0 {
		return nil
	}
	brief := picked(answers.CoreLevels(p), "threads", "name", "accesses", "hits", "misses", "miss_ratio", "coherence_misses")
	for i, row := range brief.Rows {
		exact, above := exactTo(&p.Prediction, i%len(p.Levels))
		for j, column := range brief.Columns {
			switch x, _ := row[j].Number(); column.Key {
			case "accesses":
				row[j] = predicted(x, above)
			case "hits", "misses", "coherence_misses":
				row[j] = predicted(x, exact)
			}
		}
	}
	q := v.question("what-if").With("by", "core")
	q.Machine = h
	return show(&brief, predictedWords, nil).unsorted().of(v.document(q))
}

// exactTo reports whether a level's numbers are exact: it and all above it are. Its
// accesses are where all above it are.
func exactTo(p *hierarchy.Prediction, level int) (exact, above bool) {
	exact, above = true, true
	for _, l := range p.Levels[:level+1] {
		above = exact
		exact = exact && l.Method == hierarchy.Exact
	}
	return exact, above
}

// problem says why a hierarchy has no answer, and which groups of threads an analysis
// needs for one.
func (v *View) problem(err error) (text string, missing [][]uint32) {
	var domain *hierarchy.DomainError
	if !errors.As(err, &domain) {
		return err.Error(), nil
	}
	c := domain.Level
	return c.Name + " is shared by " + strconv.FormatUint(uint64(c.SharedBy), 10) + " cores and the threads run on " + strconv.Itoa(len(v.Profile.Sharing[0].Cores)) +
		", so each of these groups of threads has one " + c.Name + ": " + analysis.FormatGroups(domain.Groups) +
		". This analysis did not count what such groups miss. Analyse the trace again with these groups, or put all threads on one core", domain.Groups
}

// oneCache is said of what has one cache for all threads; "" where there is one thread.
func (v *View) oneCache() string {
	if len(v.Profile.Totals.Threads) < 2 {
		return ""
	}
	return ", one cache for all threads"
}
