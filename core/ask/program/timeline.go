package program

import (
	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/attribution"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
)

// Timeline is the verb that reports phases, and misses over time.
var Timeline = ask.Add(&ask.Verb{
	Name:    "timeline",
	Use:     "[--cache NAME=SIZE,WAYS[,LINE] …]",
	Title:   "Phases of the run, and misses over time by level",
	Machine: ask.UsualCaches,
	Usual:   []string{"L1=32KiB,8"},
	Needs:   func(q ask.Question) analysis.Analyses { return analysis.Sites | analysis.Sharing | analysis.Sets },
	Lines:   ask.LevelLines,
	Groups:  true, Places: true,
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
		d.Warnings = doubts
		if r.Ranker().Part() || len(r.Profile.Timeline.Windows) == 0 {
			return r.Cannot(ask.NoReference)
		}
		d.Tables = answers.Timeline(s, q.Caches().Memory.LatencyCycles)
		if q.Brief {
			d.Tables = d.Tables[:1]
			d.Tables[0].Title += " (every window: --format json)"
		}
		return nil
	},
})
