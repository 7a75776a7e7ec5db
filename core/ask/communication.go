package ask

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
)

var granularities = []string{"word", "line", "page"}

// The verb communication reports values that one thread writes and another thread uses.
var _ = Add(&Verb{
	Name:    "communication",
	Title:   "Communication between threads, and false sharing",
	Machine: SomeCaches,
	Args: []Arg{
		{Name: "granularity", Default: "word", Words: granularities, Help: "count flows between threads in this `UNIT`: " + strings.Join(granularities, ", ")},
		{Name: "by", Words: []string{"flow", "site", "object", "owner", "window"}, Help: manual("print only this `TABLE`: flow, site, object, owner, window")},
		{Name: "false-sharing", Kind: Switch, Help: manual("print only false sharing")},
		topArg("show the first `N` pairs of source locations"),
		Line,
	},
	Needs: func(q Question) analysis.Analyses {
		if len(q.Machine.Levels) > 0 {
			return analysis.Communication | analysis.Sharing
		}
		return analysis.Communication
	},
	Lines: oneLine,
	Check: func(q Question) error {
		by, granularity := q.Text("by"), q.Text("granularity")
		switch {
		case granularity != "word" && by != "" && by != "flow":
			return &Error{"--granularity " + granularity + ": --by " + by + " counts only words; only --by flow counts lines and pages"}
		case q.Is("false-sharing") && by != "":
			return &Error{"--false-sharing and --by " + by + " cannot be combined: each option selects the only table to print"}
		}
		return nil
	},
	Missing: func(p *profile.Profile) string {
		if p.Communication == nil {
			return "the profile has no communication between threads: " + answers.NoCommunication(p)
		}
		return ""
	},
	Answer: (*Run).communication,
})

func (r *Run) communication(q Question, d *report.Document) error {
	p, caches := r.Profile, q.Machine.Levels
	if p.Communication == nil {
		return r.noCommunication()
	}
	c := &answers.Communication{Profile: p, Name: r.Readable}
	if q.Text("granularity") == "page" && c.Granule(profile.PageBytes) == nil {
		return r.Cannot("--granularity page: a sample of lines does not contain most lines of a page; use word or line, or sample intervals of the run, for example --sample onoff=1e6/1e8")
	}
	doubts, err := r.checkCaches(c, caches)
	if err != nil {
		return err
	}
	for _, text := range answers.ManyThreads(p, len(caches) > 0) {
		doubts = append(doubts, r.Name+": "+text+"; select fewer threads with --threads")
	}
	if p.Input.Header.Sliced {
		doubts = append(doubts, r.Name+": the trace orders references of different threads only by time slice, so within a slice a value may be attributed to the wrong store; for the exact order, capture the program with STACKGLASS_ORDER=exact")
	}
	d.Input = append(r.Facts(c.LineBytes()), report.Fact{Key: "threads", Label: "threads", Value: report.Count(uint64(len(p.Totals.Threads)))})
	d.Warnings = append(doubts, answers.RestsOnSample(p, answers.CommunicationOfSample)...)
	if p.Sites != nil {
		d.Warnings = append(d.Warnings, answers.MissingSites(p)...)
	}
	if len(caches) > 0 {
		d.Tables = append(d.Tables, c.Caches(caches))
	} else if q.Text("by") == "" && !q.Is("false-sharing") {
		d.Main = "flows"
	}
	d.Tables = append(d.Tables, flowTables(q, c)...)
	return nil
}

// noCommunication explains why there is no communication.
func (r *Run) noCommunication() error {
	switch p := r.Profile; {
	case p.Totals.AllReferences() == 0:
		return r.Cannot(NoReference)
	case len(p.Totals.Threads) == 0:
		return r.Cannot(`the trace has no thread numbers, so nothing is known about data that threads share; compile the program with "stackglass cc -- clang …" and run it; sites and counters need no thread numbers`)
	case len(p.Totals.Threads) == 1:
		return r.Cannot("thread " + strconv.FormatUint(uint64(p.Totals.Threads[0]), 10) + " made all references, so no data is exchanged between threads")
	case answers.IsOfSample(p):
		return r.Cannot("the sample contains lines of at most one thread; take a larger sample, or a different sample with --sample-seed")
	}
	return r.Cannot("the profile has no communication between threads: " + answers.NoCommunication(r.Profile) + "; analyze the trace again with --analyses communication")
}

// checkCaches returns an error if the profile contains no data for one of the caches, and otherwise
// warnings about the caches.
func (r *Run) checkCaches(c *answers.Communication, caches []hierarchy.Cache) (doubts []string, err error) {
	if len(caches) > 0 && r.Profile.Communication.Sources == nil {
		return nil, r.Cannot("--cache: the profile has no per-thread stacks; analyze the trace again with --analyses communication,sharing")
	}
	for _, cache := range caches {
		if cache.LineBytes != c.LineBytes() {
			return nil, &Error{"--cache " + cache.Name + ": lines of " + strconv.FormatUint(uint64(cache.LineBytes), 10) + " bytes, but communication was analysed for lines of " +
				strconv.FormatUint(uint64(c.LineBytes()), 10) + "; set --line, or use the same line size"}
		}
		if !cache.Full() {
			doubts = append(doubts, cache.Name+": treated as fully associative, because stack distances within sets are not recorded for transfers")
		}
	}
	return doubts, nil
}

// fewPairs is the default number of rows (pairs of source locations) in brief answers.
const fewPairs = 10

// flowTables returns the tables of the answer, except the table of --cache.
func flowTables(q Question, c *answers.Communication) []report.Table {
	granule := c.Granule([...]uint32{profile.WordBytes, c.LineBytes(), profile.PageBytes}[slices.Index(granularities, q.Text("granularity"))])
	top := int(min(q.Number("top"), math.MaxInt))
	switch {
	case top > 0:
	case q.Brief:
		top = fewPairs
	default:
		top = math.MaxInt
	}
	if q.Is("false-sharing") {
		return []report.Table{falseSharing(q, c)}
	}
	switch q.Text("by") {
	case "flow":
		if q.Brief {
			return []report.Table{c.Matrix(granule), c.Flows(granule)}
		}
		return []report.Table{c.Flows(granule)}
	case "site":
		return []report.Table{c.Sites(top, true)}
	case "object":
		return []report.Table{c.Objects(true)}
	case "owner":
		return []report.Table{c.Owners()}
	case "window":
		return []report.Table{c.Windows()}
	}
	if !q.Brief {
		return []report.Table{c.Traffic(), c.Flows(granule), c.Sites(top, true), c.FalseSharing(), c.Objects(true), c.Owners(), c.Windows()}
	}
	falsely, rest := falseSharing(q, c), []report.Table{c.Matrix(granule), c.Sites(top, false), c.Objects(false)}
	if len(falsely.Rows) > 0 { // problems with a known fix come first
		return append([]report.Table{falsely, c.Traffic()}, rest...)
	}
	return append(append([]report.Table{c.Traffic()}, rest...), falsely)
}

// falseSharing returns the table of false sharing. In brief answers, the title of the table
// describes the worst case or states that there is no false sharing.
func falseSharing(q Question, c *answers.Communication) report.Table {
	t := c.FalseSharing()
	switch {
	case !q.Brief:
	case len(t.Rows) == 0:
		return report.Table{Title: strings.TrimSuffix(c.FalseSummary(), ".")}
	case len(t.Rows) == 1:
		// the title contains the fix, so the column with the fix is dropped
		t.Columns = t.Columns[:len(t.Columns)-1]
		t.Rows[0] = t.Rows[0][:len(t.Columns)]
		fallthrough
	default:
		t.Title = c.Worst()
	}
	return t
}
