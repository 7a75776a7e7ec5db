package program

import (
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/attribution"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
)

// briefRegions is the number of marked regions in brief answers.
const briefRegions = 20

// Timeline is the verb that reports the phases of a run and its misses over time.
var Timeline = ask.Add(&ask.Verb{
	Name:    "timeline",
	Use:     "[--cache NAME=SIZE,WAYS[,LINE] …]",
	Title:   "Phases and marked regions of the run, and the misses of each level over time",
	Machine: ask.UsualCaches,
	Usual:   []string{"L1=32KiB,8"},
	Needs: func(q ask.Question) analysis.Analyses {
		return analysis.Sites | analysis.Sharing | analysis.Sets | analysis.Regions
	},
	Lines:  ask.LevelLines,
	Groups: true, Places: true,
	Missing: func(p *profile.Profile) string {
		if p.Timeline == nil {
			return "the profile contains no timeline"
		}
		return ""
	},
	Answer: func(r *ask.Run, q ask.Question, d *report.Document) error {
		if r.Profile.Timeline == nil {
			return r.NoTimeline()
		}
		s, doubts, err := r.Attributed(q, attribution.Function)
		if err != nil {
			return err
		}
		d.Input = append(r.Facts(r.Profile.Sites.LineBytes), answers.ThreadFacts(r.Profile, q.Caches())...)
		d.Input = append(d.Input, report.Fact{Key: "window_references", Label: "window (references)", Value: report.Count(r.Profile.Timeline.References)})
		d.Warnings = append(doubts, answers.RegionDoubts(r.Profile)...)
		if r.Ranker().Part() || len(r.Profile.Timeline.Windows) == 0 {
			return r.Cannot(ask.NoReference)
		}
		d.Tables = answers.Timeline(s, q.Caches().Memory.LatencyCycles)
		if q.Brief {
			d.Tables = slices.DeleteFunc(d.Tables, func(t report.Table) bool { return t.Key != "phases" && t.Key != "regions" })
			d.Tables[0].Title += " (every window: --format json)"
			if last := &d.Tables[len(d.Tables)-1]; len(last.Rows) > briefRegions && last.Key == "regions" {
				last.Title += " (the first " + strconv.Itoa(briefRegions) + " of " + strconv.Itoa(len(last.Rows)) + "; all: --format json)"
				last.Rows = last.Rows[:briefRegions]
			}
		}
		return nil
	},
})
