package ask

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
)

// Translation returns the tables about the TLBs of a hierarchy. Package program sets Translation to
// [answers.Translation], so that the page does not have to load the function on the first visit.
var Translation func(a *hierarchy.Asker, h hierarchy.Hierarchy) ([]report.Table, []hierarchy.Warning)

// The verb what-if predicts the hits and misses of a cache hierarchy.
var _ = Add(&Verb{
	Name:    "what-if",
	Use:     "--cache NAME=SIZE,WAYS[,LINE] …",
	Title:   "Hits and misses of a cache hierarchy",
	Machine: AllCaches,
	Args: []Arg{
		{Name: "by", Default: "level", Words: []string{"level", "core"}, Help: manual("print one row for each `UNIT`: level or core")},
		{Name: "share", Kind: List, Help: manual("divide the last shared level among the threads; `PARTS` contains the size for each thread, for example 0=4MiB,1=2MiB")},
		{Name: "against", Kind: List, Help: manual("compare with another `HIERARCHY`: a processor, a file, or a level as in --cache (repeat for more levels)")},
		Range,
	},
	Needs: func(q Question) analysis.Analyses {
		// analysis.Operations counts the instructions, which MPKI needs.
		of := analysis.Locality | analysis.Operations | analysis.Sharing | setTables(q)
		// An invalid value of "against" is reported by Check.
		if other, _ := q.Against(); len(q.Machine.TLBs)+len(other.TLBs) > 0 && !q.Given(Range.Name) {
			of |= analysis.Pages
		}
		if q.Given(Range.Name) {
			of |= analysis.Sites
		}
		return of
	},
	Lines:  LevelLines,
	Spills: true, Groups: true, Places: true,
	Check: func(q Question) error {
		if q.Machine.Threads == hierarchy.OnOneCore && q.Text("by") == "core" {
			return &Error{"--one-core leaves only one core; remove --one-core or --by core"}
		}
		if q.Given(Range.Name) && (q.Given("share") || q.Given("against") || q.Text("by") == "core") {
			return &Error{"--range applies to all cores together and to one hierarchy; omit --by core, --share and --against"}
		}
		_, _, _, err := q.whatIf()
		return err
	},
	Missing: noDistances,
	Answer: func(r *Run, q Question, d *report.Document) error {
		if q.Given(Range.Name) {
			return r.whatIfWithin(q, d)
		}
		h, other, parts, err := q.whatIf()
		if err != nil {
			return err
		}
		predicted, doubts, err := r.predict(h, parts)
		if err != nil {
			return err
		}
		d.Input = append(r.Facts(0), answers.ThreadFacts(r.Profile, h)...)
		d.Tables = answers.PredictedByCore(h, predicted)
		if q.Text("by") == "core" {
			if len(predicted.Cores) == 0 {
				doubts = append(doubts, oneCoreReason(r.Profile))
			} else {
				d.Tables = slices.Insert(d.Tables, 0, answers.CoreLevels(predicted))
			}
		}
		var translations [2][]report.Table
		if Translation != nil {
			tables, more := Translation(r.Asker(), h)
			translations[0] = tables
			d.Tables, doubts = append(d.Tables, tables...), append(doubts, more...)
		}
		d.Warnings = r.Told(doubts)
		if !q.Given("against") {
			return nil
		}
		against, doubts, err := r.predict(other, parts)
		if err != nil {
			return err
		}
		if Translation != nil {
			tables, more := Translation(r.Asker(), other)
			translations[1] = tables
			doubts = append(doubts, more...)
		}
		var keys []string
		if q.Brief {
			keys = answers.MainNumbers
		}
		d.Tables = slices.Insert(d.Tables, 0, answers.Against([2]hierarchy.Hierarchy{h, other}, [2]hierarchy.ByCore{predicted, against}, translations, keys...))
		for _, text := range r.Told(doubts) {
			if !slices.Contains(d.Warnings, text) {
				d.Warnings = append(d.Warnings, "B: "+text)
			}
		}
		return nil
	},
})

// whatIf returns the hierarchy in question, the hierarchy with which it is compared, and the parts
// into which the last shared level is divided.
func (q Question) whatIf() (h, other hierarchy.Hierarchy, parts []hierarchy.Share, err error) {
	if other, err = q.Against(); err == nil {
		parts, err = parseShares(q)
	}
	return q.Machine, other, parts, err
}

// predict predicts the misses of a hierarchy. The warnings also cover the hierarchy itself.
func (r *Run) predict(h hierarchy.Hierarchy, parts []hierarchy.Share) (hierarchy.ByCore, []hierarchy.Warning, error) {
	p, doubts, err := r.Asker().Predict(h, parts)
	if err == nil && h.About != "" {
		doubts = append(doubts, hierarchy.Warning(h.Name+": "+h.About))
	}
	return p, doubts, err
}

// Against returns the hierarchy with which the hierarchy in question is compared. The argument
// "against" contains the name of a preset, lines that [hierarchy.Hierarchy.Add] accepts, or the
// name followed by lines. If the argument is not set, the returned hierarchy has no levels. Unless
// a line specifies otherwise, threads run on the same cores in both hierarchies.
func (q Question) Against() (h hierarchy.Hierarchy, err error) {
	bad := func(word, want string) error { return &trace.OptionError{Option: "against", Got: word, Want: want} }
	h.Threads = q.Machine.Threads
	for i, word := range q.List("against") {
		var option *trace.OptionError
		switch preset, unknown := hierarchy.Preset(word); {
		case i == 0 && unknown == nil:
			preset.Threads, h = h.Threads, preset
		case i == 0 && !strings.Contains(word, "=") && errors.As(unknown, &option):
			return h, bad(word, option.Want+", or a level, for example L1=32KiB,8")
		default:
			if err := h.Add(word); errors.As(err, &option) {
				return h, bad(word, option.Want)
			}
			if name, _, _ := strings.Cut(word, "="); name != "threads" && name != "pages" {
				h.Name = ""
			}
		}
	}
	if q.Given("against") && len(h.Levels) == 0 {
		return h, bad(strings.Join(q.List("against"), " "), "at least one level, for example L1=32KiB,8")
	}
	return h, nil
}

// Levels returns the levels of the hierarchy in question and of the hierarchy with which it is
// compared. The analyses must provide the counts for all these levels.
func (q Question) Levels() hierarchy.Hierarchy {
	h := q.Caches()
	if other, err := q.Against(); err == nil {
		h.Levels = slices.Concat(h.Levels, other.Levels)
	}
	return h
}

// LevelLines is a function for Verb.Lines. LevelLines returns the line sizes of the caches in
// question, in ascending order.
func LevelLines(q Question) []uint32 { return LineSizes(q.Levels()) }

// LineSizes returns the line sizes of a hierarchy, in ascending order.
func LineSizes(h hierarchy.Hierarchy) (sizes []uint32) {
	for _, c := range h.Levels {
		sizes = append(sizes, c.LineBytes)
	}
	slices.Sort(sizes)
	return slices.Compact(sizes)
}

// SetNumbers returns the numbers of sets for which set tables make the answers exact.
func SetNumbers(h hierarchy.Hierarchy) (numbers analysis.SetNumbers) {
	for _, c := range h.Levels {
		sets := c.Sets()
		if !c.Full() && !c.Hashed && sets&(sets-1) == 0 && sets < 1<<profile.SetCounts && c.Ways <= profile.MaxWays {
			numbers |= analysis.SetNumbers(sets)
		}
	}
	return numbers
}

// Stacks returns the kinds of per-core LRU stacks that the answer needs; 0 means all kinds.
func (q Question) Stacks() analysis.Stacks {
	if q.Given(Range.Name) {
		return 0 // attributing misses to sites needs all stacks
	}
	stacks, other := analysis.CoherentStacks, hierarchy.Hierarchy{}
	if q.Given("share") {
		stacks |= analysis.PrivateStacks
	}
	other, _ = q.Against()
	for _, c := range q.Levels().Levels {
		if c.SharedBy > 1 || q.Machine.Threads == hierarchy.OnOneCore || other.Threads == hierarchy.OnOneCore {
			stacks |= analysis.ConcurrentStack
		}
	}
	return stacks
}

// setTables returns the analysis of set tables if they make the answer for at least one level
// exact, and otherwise 0.
func setTables(q Question) analysis.Analyses {
	if SetNumbers(q.Levels()) != 0 {
		return analysis.Sets
	}
	return 0
}

// oneCoreReason explains why the answer has no numbers for individual cores.
func oneCoreReason(p *profile.Profile) hierarchy.Warning {
	switch {
	case !p.Input.Header.Threads:
		return "the trace does not record which thread made a reference, so there is one core"
	case len(p.Totals.Threads) < 2:
		return "the trace has one thread, so there is one core"
	}
	return "the profile has no per-thread stacks; analyze the trace again, by default or with --analyses sharing"
}

// parseShares parses the argument "share", a list of elements in the form THREAD=SIZE: a thread,
// and the size of the thread's part of a cache.
func parseShares(q Question) (list []hierarchy.Share, err error) {
	for _, value := range q.List("share") {
		for text := range strings.SplitSeq(value, ",") {
			thread, size, found := strings.Cut(text, "=")
			number, bad := strconv.ParseUint(strings.TrimSpace(thread), 10, 32)
			bytes, err := hierarchy.ParseSize(size)
			if !found || bad != nil || err != nil || bytes == 0 {
				return nil, &trace.OptionError{Option: "share", Got: text, Want: "a thread and its part of the cache, for example 0=4MiB"}
			}
			list = append(list, hierarchy.Share{Thread: uint32(number), SizeBytes: bytes})
		}
	}
	return list, nil
}
