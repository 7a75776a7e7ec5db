package program

import (
	"slices"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/attribution"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
)

// Calls is the verb that divides misses, instructions and bytes by call path.
var Calls = ask.Add(&ask.Verb{
	Name:    "calls",
	Use:     "[--cache NAME=SIZE,WAYS[,LINE] …]",
	Title:   "Misses, instructions and bytes by call path",
	Machine: ask.UsualCaches,
	Usual:   []string{"L1=32KiB,8"},
	Args: []ask.Arg{
		{Name: "by", Default: "path", Words: []string{"path", "function"}, Help: "group by this `UNIT`: path or function"},
		{Name: "share", Default: "1%", Help: "leave out paths with less than this `SHARE` of the first level's misses, callees included"},
		ask.Range,
	},
	Needs: func(q ask.Question) analysis.Analyses {
		return analysis.Sites | analysis.Sharing | analysis.Blocks | analysis.Sets
	},
	Lines:  ask.LevelLines,
	Groups: true, Places: true, Measures: true,
	Check: func(q ask.Question) error {
		_, err := ask.ParseShare(q, "misses, as in 1% or 0.01", 0)
		return err
	},
	Missing: func(p *profile.Profile) string {
		switch {
		case p.Sites == nil:
			return "the profile holds no sites"
		case p.Calls == nil:
			return "the profile holds no call paths"
		}
		return ""
	},
	Answer: calls,
})

func calls(r *ask.Run, q ask.Question, d *report.Document) error {
	if r.Profile.Sites != nil && r.Profile.Calls == nil {
		if r.Analysed {
			return r.Cannot(`the trace does not record calls; compile the program with "stackglass cc -- clang …" and run it`)
		}
		return r.Cannot("the profile holds no call paths; analyze the trace again with --analyses sites,blocks")
	}
	r, err := r.Within(q, d)
	if err != nil {
		return err
	}
	s, doubts, err := r.Attributed(q, attribution.Function)
	if err != nil {
		return err
	}
	share, err := ask.ParseShare(q, "misses, as in 1% or 0.01", 0)
	if err != nil {
		return err
	}
	d.Input = slices.Concat(r.Facts(r.Profile.Sites.LineBytes), answers.ThreadFacts(r.Profile, q.Caches()), d.Input)
	d.Warnings = append(doubts, answers.MissingSites(r.Profile)...)
	c := answers.NewCalls(r.Profile, s.Levels, r.Readable)
	var t report.Table
	switch {
	case q.Text("by") == "function":
		t = c.ByFunction()
	case q.Brief || q.Given("share"):
		t = c.ByPath(share)
	default:
		t = c.ByPath(0)
	}
	if q.Brief {
		t = c.Narrow(t)
		t.Title += " (all columns and rows: --format csv)"
	}
	d.Tables = []report.Table{t}
	return nil
}
