package ask

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/attribution"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
)

// The verb sites ranks source locations or data structures by misses.
var _ = Add(&Verb{
	Name:    "sites",
	Use:     "[--cache NAME=SIZE,WAYS[,LINE] …]",
	Title:   "Misses by source line, function or data",
	Machine: UsualCaches,
	Usual:   []string{"L1=32KiB,8"},
	Args: []Arg{
		{Name: "by", Default: string(attribution.Line), Words: []string{"site", "line", "function", "object"}, Help: manual("group by this `UNIT`: site, line, function or object")},
		topArg("show the first `N` rows"),
		{Name: "share", Default: "90%", Help: manual("show the rows that cause this `SHARE` of the first level's misses")},
		{Name: "sort", Help: manual("sort by this `COLUMN`, named as in csv: utilisation in ascending order, other numbers in descending order (default: misses of the first level)")},
		{Name: "distances", Help: manual("print only the stack distances of one `ROW`, given by function and file:line, for example \"main app.c:17\"")},
		Range,
	},
	// As in what-if, threads have private caches by default, so that the totals of the two verbs are
	// equal.
	Needs:  func(q Question) analysis.Analyses { return analysis.Sites | analysis.Sharing | setTables(q) },
	Lines:  LevelLines,
	Groups: true, Places: true, Measures: true,
	Check: func(q Question) error {
		_, err := shareOf(q)
		return err
	},
	Missing: missingIf(func(p *profile.Profile) bool { return p.Sites == nil }, "the profile contains no sites"),
	Answer:  (*Run).sites,
})

// topArg returns the argument "top", which limits the number of rows.
func topArg(help string) Arg { return Arg{Name: "top", Kind: Number, Default: "0", Help: help} }

// shareOf parses the argument "share": the share of the misses that the listed rows must cause
// together.
func shareOf(q Question) (float64, error) {
	return ParseShare(q, "misses, for example 90% or 0.9", math.SmallestNonzeroFloat64)
}

// ParseShare parses a share, such as 90% or 0.9. ParseShare fails if the share is smaller than the
// parameter least.
func ParseShare(q Question, of string, least float64) (share float64, err error) {
	text, percent := strings.CutSuffix(q.Text("share"), "%")
	share, err = strconv.ParseFloat(strings.TrimSpace(text), 64)
	if percent {
		share /= 100
	}
	if err != nil || !(share >= least && share <= 1) {
		return 0, &trace.OptionError{Option: "share", Got: q.Text("share"), Want: "a share of the " + of}
	}
	return share, nil
}

// mostRows is the maximum number of rows in brief answers without --top.
const mostRows = 100

func (r *Run) sites(q Question, d *report.Document) error {
	by := attribution.By(q.Text("by"))
	r, err := r.Within(q, d)
	if err != nil {
		return err
	}
	s, doubts, err := r.Attributed(q, by)
	if err != nil {
		return err
	}
	if keys := s.Keys(); q.Given("sort") && !slices.Contains(keys, q.Text("sort")) {
		return &trace.OptionError{Option: "sort", Got: q.Text("sort"), Want: "one of " + strings.Join(keys, ", ")}
	}
	d.Input = slices.Concat(r.Facts(r.Profile.Sites.LineBytes), answers.ThreadFacts(r.Profile, q.Caches()), d.Input)
	d.Warnings = slices.Concat(doubts, answers.MissingSites(r.Profile), answers.RestsOnSample(r.Profile, answers.SitesOfSample))
	if q.Given("distances") {
		t, ok := s.Distances(q.Text("distances"))
		if d.Tables = []report.Table{t}; !ok {
			return &trace.OptionError{Option: "distances", Got: q.Text("distances"), Want: "a row of the table by " + string(by) + ", as FUNCTION FILE:LINE, for example main app.c:17"}
		}
		return nil
	}
	rows, sorted := int(min(q.Number("top"), math.MaxInt)), math.MaxInt // number of rows in the table, and number of rows that Order sorts by the column
	switch {
	case rows > 0:
	case !q.Brief:
		rows = math.MaxInt
	default:
		share, err := shareOf(q)
		if err != nil {
			return err
		}
		rows = min(max(1, len(s.Reaching(0, share))), mostRows)
		sorted = rows
	}
	if slices.Contains(s.Numbers(), q.Only) {
		s.Number = q.Only
	}
	order := s.Order(q.Text("sort"), sorted)
	t := s.Table(order, rows)
	if t.Title = "Misses by " + string(by); q.Brief {
		t = s.Narrow(t, q.Text("sort"))
		t.Title += " (all columns and rows: --format csv)"
	}
	if d.Tables = []report.Table{t}; r.Profile.Sites.Previous && !r.Ranker().Part() {
		d.Tables = append(d.Tables, s.Before(order[:min(rows, len(order))]))
	}
	return nil
}

// Attributed predicts and attributes the misses of the hierarchy in question. The second result
// contains warnings.
func (r *Run) Attributed(q Question, by attribution.By) (*answers.Sites, []string, error) {
	ranker := r.Ranker()
	if ranker == nil {
		return nil, nil, r.noSites()
	}
	levels, doubts, err := ranker.Attribute(q.Caches())
	if err != nil {
		return nil, nil, r.aboutUsual(q, err)
	}
	if by == attribution.Object && r.Profile.Sites.Data == nil {
		return nil, nil, r.Cannot("--by object: the trace contains no data structures; compile the program with \"stackglass cc -- clang …\"")
	}
	s := &answers.Sites{Profile: r.Profile, Ranker: ranker, Levels: levels, By: by, Name: r.Readable, Source: r.SourceText()}
	return s, append(r.Told(doubts), slices.Concat(answers.Estimated(levels), rangeEstimates(levels))...), nil
}

// noSites explains why there are no sites.
func (r *Run) noSites() error {
	const how = `compile the program with "stackglass cc -- clang …" and run it, or run the existing program under "stackglass trace -- PROGRAM"`
	switch {
	case r.Profile.Totals.AllReferences() == 0:
		return r.Cannot(NoReference)
	case r.Analysed:
		return r.Cannot("the trace contains neither sites nor instruction addresses, so there is nothing to rank; " + how)
	}
	return r.Cannot("the profile contains no sites; analyze the trace again with --analyses sites or, if the trace contains no sites, " + how)
}

// aboutUsual adds an explanation to an error about the default cache.
func (r *Run) aboutUsual(q Question, err error) error {
	var option *trace.OptionError
	if len(q.Machine.Levels) > 0 || len(q.Verb.Usual) == 0 || !errors.As(err, &option) || option.Option != "cache" {
		return err
	}
	usual := q.Verb.Usual[0]
	return r.Cannot("the default cache, " + usual + ", has lines of 64 bytes; choose a cache with a line size of the profile, for example --cache " +
		usual + "," + strconv.Itoa(int(r.Profile.Sites.LineBytes)) + ", or analyze the trace again and include 64 in --lines")
}
