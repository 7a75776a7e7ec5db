package ask

import (
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
)

// The verb threads reports how threads use private and shared caches.
var _ = Add(&Verb{
	Name:    "threads",
	Use:     "[--cache NAME=SIZE,WAYS[,LINE][,shared=CORES] …]",
	Title:   "Misses of threads in private and shared caches",
	Machine: UsualCaches,
	Usual:   []string{"L1=32KiB,8", "L2=1MiB,16,shared=all"}, // a private L1 for each core, and an L2 shared by all cores
	Args: []Arg{
		{Name: "by", Words: []string{"core", "domain", "change", "view"}, Help: manual("print only this `TABLE`: core, domain, change, view")},
		{Name: "curve", Kind: Switch, Help: manual("print the misses of each core at every capacity")},
		Line,
	},
	Needs:  alwaysNeeds(analysis.Sharing),
	Groups: true,
	Lines: func(q Question) []uint32 {
		lines := []uint32{q.Line()}
		for _, c := range q.Caches().Levels {
			lines = append(lines, c.LineBytes)
		}
		slices.Sort(lines)
		return slices.Compact(lines)
	},
	Check: func(q Question) error {
		if q.Is("curve") && q.Given("by") {
			return &Error{"--curve and --by " + q.Text("by") + " cannot be combined: each option selects the only table to print"}
		}
		for _, c := range q.Caches().Levels {
			if err := c.Check(); err != nil {
				return err
			}
		}
		return nil
	},
	Missing: func(p *profile.Profile) string {
		switch {
		case len(p.Sharing) > 0:
			return ""
		case len(p.Totals.Threads) == 0:
			return "the trace does not record which thread made a reference"
		case len(p.Totals.Threads) == 1:
			return "one thread made all references"
		}
		return "the profile contains no per-thread stacks"
	},
	Answer: (*Run).threads,
})

func (r *Run) threads(q Question, d *report.Document) error {
	p := r.Profile
	if len(p.Sharing) == 0 {
		return r.noThreads()
	}
	s := p.SharingAt(q.Line())
	if s == nil && !q.Given(Line.Name) {
		s = &p.Sharing[0]
	}
	if s == nil {
		_, err := r.Locality(q)
		return err
	}
	if q.Text("by") == "change" && answers.IsOfSample(p) {
		return r.Cannot("--by change: a sample of lines does not show how stack distances change; sample intervals of the run instead, for example --sample onoff=1e6/1e8")
	}
	t, doubts, err := answers.NewThreads(p, r.Asker(), q.Caches().Levels)
	if err != nil {
		return err
	}
	d.Input = append(r.Facts(0), report.Fact{Key: "threads", Label: "threads", Value: report.Count(uint64(len(p.Totals.Threads)))})
	d.Warnings = slices.Concat(r.Told(doubts), answers.RestsOnSample(p, answers.ThreadsOfSample))
	switch q.Text("by") {
	case "core":
		d.Tables = []report.Table{t.Cores()}
	case "domain":
		d.Tables = []report.Table{t.Domains()}
	case "change":
		d.Tables = []report.Table{answers.Changes(s)}
	case "view":
		d.Tables = []report.Table{t.Views()}
	default:
		if q.Is("curve") {
			d.Tables = []report.Table{answers.ThreadCurves(s, q.Brief)}
			return nil
		}
		d.Tables = []report.Table{t.Cores(), t.Views(), t.Domains()}
		if !answers.IsOfSample(p) {
			d.Tables = append(d.Tables, answers.Changes(s))
		}
		if q.Brief {
			d.Tables = slices.DeleteFunc(d.Tables, func(t report.Table) bool { return len(t.Rows) == 0 })
		}
	}
	return nil
}

// noThreads returns an error that explains why the profile has no per-thread stacks.
func (r *Run) noThreads() error {
	switch p := r.Profile; {
	case p.Totals.AllReferences() == 0:
		return r.Cannot(NoReference)
	case len(p.Totals.Threads) == 0:
		return r.Cannot("this trace does not record which thread made a reference; curve, sets and what-if treat all references as if one thread had made them; " +
			`to record threads, compile the program with "stackglass cc -- clang …" and run it, or run the existing program under "stackglass trace -- PROGRAM"`)
	case len(p.Totals.Threads) == 1:
		return r.Cannot("thread " + strconv.FormatUint(uint64(p.Totals.Threads[0]), 10) + " made all references" +
			", so no other thread affects its caches; use curve, sets and what-if instead")
	case r.Analysed && p.Sampled != nil:
		return r.Cannot("the sample contains lines of at most one core; take a larger sample, or a different sample with --sample-seed")
	case r.Analysed:
		return r.Cannot("--cores " + r.Cores + " puts all threads on one core, so no other core affects its caches; use curve, sets and what-if instead")
	}
	return r.Cannot("the profile contains no per-thread stacks; analyze the trace again, by default or with --analyses sharing")
}

// Told returns the warnings of a prediction, except for warnings that [Doubts] already returns.
func (r *Run) Told(warnings []hierarchy.Warning) (list []string) {
	said := hierarchy.ProfileDoubts(r.Profile)
	for _, w := range warnings {
		if !slices.Contains(said, w) {
			list = append(list, string(w))
		}
	}
	return list
}

// sharedCores returns a warning if threads share a core because there are more threads than cores.
// Each group of threads that the user specified occupies a core, even if no thread of the group
// occurs in the trace.
func (r *Run) sharedCores() []string {
	p := r.Profile
	groups, _ := analysis.ParseGroups("cores", r.Cores)
	absent, single := 0, len(p.Totals.Threads)
	for _, group := range groups {
		known := len(answers.KnownThreads(p, group))
		if single -= known; known == 0 {
			absent++
		}
	}
	if len(p.Sharing) == 0 || single <= profile.MaxCores-len(groups) || len(p.Sharing[0].Cores)+absent < profile.MaxCores {
		return nil
	}
	return []string{r.Name + ": there are " + strconv.Itoa(len(p.Totals.Threads)) + " threads but at most " + strconv.Itoa(profile.MaxCores) +
		" cores, so the remaining threads are assigned to the cores round-robin; to choose which threads share a core, use --cores; to analyse fewer threads, use --threads"}
}
