package answers

import (
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
)

// ThreadsOn describes on which cores the threads of p run in a prediction for h, and which
// caches they share, as in "4 threads, each on its own core; L1 private, L2 shared by all
// cores". It returns "" for a program with one thread.
func ThreadsOn(p *profile.Profile, h hierarchy.Hierarchy) string {
	n := len(p.Totals.Threads)
	if n < 2 {
		return ""
	}
	text := strconv.Itoa(n) + " threads"
	if len(p.Sharing) == 0 || h.Threads == hierarchy.OnOneCore {
		return text + ", all on one core"
	}
	if cores := p.Sharing[0].Cores; len(cores) == n {
		text += ", each on its own core"
	} else {
		text += " on " + strconv.Itoa(len(cores)) + " cores"
		if len(cores) <= mostGroups {
			text += " (" + Groups(p) + ")"
		}
	}
	var parts []string
	for i := 0; i < len(h.Levels); {
		end := i + 1
		for end < len(h.Levels) && max(h.Levels[end].SharedBy, 1) == max(h.Levels[i].SharedBy, 1) {
			end++
		}
		if n := h.Levels[i].SharedBy; n <= 1 && end-i == len(h.Levels) {
			parts = append(parts, "private caches")
		} else {
			parts = append(parts, namesOf(h.Levels[i:end])+" "+sharedBy(n))
		}
		i = end
	}
	return text + "; " + strings.Join(parts, ", ")
}

// ThreadFacts is [ThreadsOn] as a fact of a document; nil for a program with one thread.
func ThreadFacts(p *profile.Profile, h hierarchy.Hierarchy) []report.Fact {
	text := ThreadsOn(p, h)
	if text == "" {
		return nil
	}
	return []report.Fact{{Key: "threads_on", Label: "threads", Value: report.TextOf(strings.Replace(text, " threads", "", 1))}}
}

// mostGroups is the most groups of threads that are listed in a line.
const mostGroups = 8

// Groups lists the threads of each core, as in 0,1/2,3. It returns "" for a profile without
// stacks of threads.
func Groups(p *profile.Profile) string {
	var groups []string
	if len(p.Sharing) > 0 {
		for _, c := range p.Sharing[0].Cores {
			groups = append(groups, NumbersOf(c.Threads))
		}
	}
	return strings.Join(groups, "/")
}

func namesOf(levels []hierarchy.Cache) string {
	var names []string
	for _, c := range levels {
		names = append(names, c.Name)
	}
	if last := len(names) - 1; last > 0 {
		return strings.Join(names[:last], ", ") + " and " + names[last]
	}
	return names[0]
}

func sharedBy(cores uint32) string {
	switch {
	case cores <= 1:
		return "private"
	case cores == hierarchy.AllCores:
		return "shared by all cores"
	}
	return "shared by " + strconv.FormatUint(uint64(cores), 10) + " cores"
}

// PredictedByCore lays out a prediction for several cores: the tables of [Predicted],
// with the coherence misses of each level.
func PredictedByCore(h hierarchy.Hierarchy, p hierarchy.ByCore) []report.Table {
	tables := Predicted(h, p.Prediction)
	if len(p.Cores) == 0 {
		return tables
	}
	levels := &tables[0]
	levels.Columns = append(levels.Columns, report.Columns("coherence_misses=of coherence")...)
	for i := range levels.Rows {
		levels.Rows[i] = append(levels.Rows[i], report.Real(p.Coherence[i]))
	}
	return tables
}

// CoreLevels has a row for each core and level: the core's demand accesses and their misses.
func CoreLevels(p hierarchy.ByCore) report.Table {
	t := report.Table{Key: "cores", Title: "Demand accesses by core", Columns: report.Columns(
		"core", "threads", "name=level", "accesses", "hits", "misses", "miss_ratio=miss ratio",
		"coherence_misses=of coherence")}
	for n, core := range p.Cores {
		for i, l := range core.Levels {
			t.Add(report.Count(uint64(n)), report.TextOf(NumbersOf(core.Threads)), report.TextOf(p.Levels[i].Cache.Name),
				report.Real(l.Accesses), report.Real(l.Hits), report.Real(l.Misses), report.Quotient(l.Misses, l.Accesses), report.Real(l.Coherence))
		}
	}
	return t
}
