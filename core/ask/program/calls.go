package program

import (
	"slices"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/attribution"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
)

// Calls is the verb that reports misses, instructions and bytes by call path.
var Calls = ask.Add(&ask.Verb{
	Name:    "calls",
	Use:     "[--cache NAME=SIZE,WAYS[,LINE] …]",
	Title:   "Misses, instructions and bytes by call path",
	Machine: ask.UsualCaches,
	Usual:   []string{"L1=32KiB,8"},
	Args: []ask.Arg{
		{Name: "by", Default: "path", Words: []string{"path", "caller", "function"}, Help: "group by this `UNIT`: path, from callers to callees; caller, from callees to callers; or function"},
		{Name: "function", Help: "list only the callers and the callees of the function with this `NAME`, for example multiply or app.c:multiply"},
		{Name: "event", Help: "rank rows by this `EVENT`, named as in csv, for example L2_misses, bytes or instructions (default: misses of the first level)"},
		{Name: "share", Default: "1%", Help: "leave out rows with less than this `SHARE` of the event"},
		ask.Range,
	},
	Needs: func(q ask.Question) analysis.Analyses {
		return analysis.Sites | analysis.Sharing | analysis.Blocks | analysis.Sets
	},
	Lines:  ask.LevelLines,
	Groups: true, Places: true, Measures: true,
	Check: func(q ask.Question) error {
		if q.Given("function") && q.Text("by") == "function" {
			return &trace.OptionError{Option: "function", Got: q.Text("function"), Want: "by=path or by=caller, because by=function lists no callers"}
		}
		_, err := ask.ParseShare(q, "misses, for example 1% or 0.01", 0)
		return err
	},
	Missing: func(p *profile.Profile) string {
		switch {
		case p.Sites == nil:
			return "the profile contains no sites"
		case p.Calls == nil:
			return "the profile contains no call paths"
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
		return r.Cannot("the profile contains no call paths; analyze the trace again with --analyses sites,blocks")
	}
	r, err := r.Within(q, d)
	if err != nil {
		return err
	}
	s, doubts, err := r.Attributed(q, attribution.Function)
	if err != nil {
		return err
	}
	share, err := ask.ParseShare(q, "misses, for example 1% or 0.01", 0)
	if err != nil {
		return err
	}
	h := q.Caches()
	d.Input = slices.Concat(r.Facts(r.Profile.Sites.LineBytes), []report.Fact{answers.CacheFact(h)}, answers.ThreadFacts(r.Profile, h), d.Input)
	d.Warnings = append(doubts, answers.MissingSites(r.Profile)...)
	c := answers.NewCalls(r.Profile, s.Levels, r.Readable)
	c.AddCycles(s.Levels, h.Memory.LatencyCycles)
	if q.Given("event") {
		if err := c.Rank(q.Text("event")); err != nil {
			return err
		}
	}
	if !q.Brief && !q.Given("share") {
		share = 0
	}
	switch by := q.Text("by"); {
	case q.Given("function"):
		paths, err := c.Named(q.Text("function"))
		if err != nil {
			return err
		}
		d.Tables, d.Main = []report.Table{c.Callers(paths, share), c.Callees(paths, share)}, "callees"
		if by == "caller" {
			d.Main = "callers"
		}
	case by == "function":
		d.Tables = []report.Table{c.ByFunction()}
	case by == "caller":
		d.Tables = []report.Table{c.ByCaller(share)}
	default:
		d.Tables = []report.Table{c.ByPath(share)}
	}
	if !q.Brief {
		d.Tables = append(d.Tables, c.Totals())
		return nil
	}
	for i := range d.Tables {
		d.Tables[i] = c.Narrow(d.Tables[i])
	}
	d.Tables[0].Title += " (all columns and rows: --format csv)"
	return nil
}
