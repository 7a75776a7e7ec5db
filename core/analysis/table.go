package analysis

import (
	"slices"
	"strings"

	"github.com/stackglass/stackglass/core/analysis/blocks"
	"github.com/stackglass/stackglass/core/analysis/communication"
	"github.com/stackglass/stackglass/core/analysis/counters"
	"github.com/stackglass/stackglass/core/analysis/locality"
	"github.com/stackglass/stackglass/core/analysis/nests"
	"github.com/stackglass/stackglass/core/analysis/sharing"
	"github.com/stackglass/stackglass/core/analysis/sites"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// Analyses is a set of analyses; 0 stands for [Default].
type Analyses uint32

// The analyses.
const (
	Locality      Analyses = 1 << iota // stack distances
	Counters                           // operations, bytes, and how often each byte is accessed
	Sites                              // who makes the accesses, and to which data; with locality
	Sets                               // depths in sets, for every number of sets; with locality
	Sharing                            // stacks by thread, shared and coherent; with sets
	Communication                      // what threads write and others use; with sites
	Loops                              // the trace folded into loops; alone, with those of Default
	Blocks                             // how often blocks run, and branches are taken; the same
	Operations                         // of Counters those that cost little, as in Default
	allAnalyses   = 1<<iota - 1
)

// Default are the analyses that run unless others are asked for: locality with
// sets, so that nobody has to choose a cache before the run; where the trace has
// several threads, how they share caches, and what they communicate if its tables
// or its index tell of these threads, or two of them appear soon (see communication.Expects); and, where
// it tells of code, sites, and of the counters those that cost little. How often each
// byte is accessed is left out. Where the result is to be appended to, communication is
// of traces whose tables list several threads, and without the distances of sources.
const Default Analyses = 0

// None are no analyses: a pass only counts, and feeds what stands beside it.
const None Analyses = 1 << 31

var analysisNames = []string{"locality", "counters", "sites", "sets", "sharing", "communication", "loops", "blocks", "operations"}

// AnalysisNames lists the names that [ParseAnalyses] takes.
func AnalysisNames() []string { return analysisNames }

// String lists the names, comma-separated; default stands for [Default].
func (a Analyses) String() string {
	if a == Default {
		return "default"
	}
	var names []string
	if a != Default && a&^beside == Default {
		names = append(names, "default")
	}
	for i, name := range analysisNames {
		if a>>i&1 != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}

// ParseAnalyses reads a comma-separated list of names, or default. Loops are asked for
// beside others: loops alone is the same as default,loops, and so are blocks.
func ParseAnalyses(list string) (Analyses, error) {
	var set Analyses
	byDefault := false
next:
	for _, word := range strings.Split(list, ",") {
		if word = strings.TrimSpace(word); word == "default" {
			byDefault = true
			continue
		}
		for i, name := range analysisNames {
			if word == name {
				set |= 1 << i
				continue next
			}
		}
		return 0, &trace.OptionError{Option: "analyses", Got: word, Want: strings.Join(analysisNames, ", ") + ", separated by commas, or default"}
	}
	if byDefault && set&^beside != 0 {
		return 0, &trace.OptionError{Option: "analyses", Got: list, Want: "default alone or with loops or blocks, or a list of others"}
	}
	return set, nil
}

// beside are the analyses that leave others as they are.
const beside = Loops | Blocks

// byLine are the analyses that need every access to a line.
const byLine = Sites | Sharing | Communication

// Runs reports whether a run of the spec includes an analysis.
func (s Spec) Runs(a Analyses) bool { return s.has(a) }

// has tells whether an analysis runs.
func (s Spec) has(a Analyses) bool {
	switch {
	case s.Budget != nil && a&byLine != 0:
		return false
	case s.Sample != nil && (a == Sets || a == Communication && !s.Sample.KeepsLines()):
		return false
	case a&beside == 0 && s.isDefault():
		return true
	case a == Locality:
		return s.Analyses&(Locality|Sites|Sets|Sharing|Communication) != 0
	case a == Sites:
		return s.Analyses&(Sites|Communication) != 0
	case a == Sets:
		return s.Analyses&(Sets|Sharing) != 0
	case a == Counters:
		return s.Analyses&(Counters|Operations) != 0
	}
	return s.Analyses&a != 0
}

// absence says why a result has no communication though there are several threads, or may be
// once another one is appended to it.
func (s Spec) absence(p *profile.Profile) profile.Absence {
	several := len(p.Totals.Threads) > 1 || s.Mergeable && len(p.Totals.Threads) == 1
	asked := s.isDefault() || s.Analyses&Communication != 0
	switch {
	case p.Communication != nil || !several:
		return profile.AbsenceUnknown
	case s.Budget != nil && asked:
		return profile.BeyondMemory
	case s.Sample != nil && asked:
		return profile.NotInSample
	case !s.has(Communication):
		return profile.NotAnalysed
	case s.Mergeable:
		return profile.UnlistedThreads
	}
	return profile.LateThread
}

// loopBytes is how much memory a tree of loops may take before it is given up; tests
// have it be less.
var loopBytes uint64 = nests.MostBytes

// isDefault tells that the analyses of [Default] run, perhaps with others.
func (s Spec) isDefault() bool { return s.Analyses&^beside == Default }

// table is every analysis that the spec asks for. Sites and sharing come before
// locality, which they follow. sets tells whether set tables are made. program gives
// what the trace has told so far of its code, or nil.
func table(s Spec, sets bool, program func() *trace.Program) []Analysis {
	return s.tableFor(sets, program, part{})
}

// part says that analyses are of a segment that a [Parallel] run appends.
type part struct {
	is   bool
	told bool // where blocks of memory lie at its beginning
	lone bool // it is given up if there is more than one core
}

// tableFor is table, perhaps for a part. What threads communicate is in none: parts are
// of runs that have given it up.
func (s Spec) tableFor(sets bool, program func() *trace.Program, of part) (list []Analysis) {
	if s.Sample != nil && s.has(Locality) {
		list = append(list, s.Sample.Locality(s.LineBytes))
		list = append(list, s.Sample.Followers(s.wanted(program))...)
	} else if s.has(Locality) && s.Budget != nil {
		list = append(list, locality.NewShelved(s.LineBytes, sets, *s.Budget))
	} else if s.has(Locality) {
		distances := locality.New(s.LineBytes, s.Start, s.Mergeable, sets)
		var communicated *communication.Analysis
		var bySite *sites.Analysis
		if s.has(Sites) {
			o := s.sites()
			o.Follows = of.told
			follower := sites.New(o, program)
			distances.Feed(s.SiteLineBytes(), follower)
			list, bySite = append(list, follower), follower
			if s.has(Communication) && !of.is {
				communicated = communication.New(s.SiteLineBytes(), follower, s.decides(program))
				if list = append(list, communicated); s.Mergeable {
					communicated.Mergeable(s.Start)
				}
			}
		}
		if s.has(Sharing) && !of.lone {
			stacks := sharing.New(s.sharing(), distances)
			if bySite != nil {
				stacks.FeedSites(s.SiteLineBytes(), bySite)
			}
			if communicated != nil && !s.Mergeable {
				communicated.Follow(stacks)
			}
			list = append(list, stacks)
		}
		list = append(list, distances)
	}
	if s.has(Counters) {
		list = append(list, counters.New(s.Kinds, s.Analyses&Counters == 0, program))
	}
	if s.has(Blocks) {
		b := blocks.New(s.Kinds, s.Start > 0, program)
		if of.is {
			b.Bare()
		}
		list = append(list, b)
	}
	if s.has(Loops) && !of.is {
		list = append(list, nests.New(loopBytes))
	}
	return list
}

// wanted is what a sample of lines is asked for.
func (s Spec) wanted(program func() *trace.Program) Wanted {
	w := Wanted{LineBytes: s.SiteLineBytes(), Communication: s.has(Communication), Program: program, Decides: s.decides(program)}
	if s.has(Sites) {
		o := s.sites()
		w.Sites = &o
	}
	if s.has(Sharing) {
		o := s.sharing()
		w.Sharing = &o
	}
	return w
}

// decides is what communication makes up its mind by: nil where it was asked for.
func (s Spec) decides(program func() *trace.Program) func() *trace.Program {
	if !s.isDefault() {
		return nil
	}
	return program
}

// SiteLineBytes is the line size at which sites are told apart.
func (s Spec) SiteLineBytes() uint32 {
	if s = s.WithDefaults(); slices.Contains(s.LineBytes, DefaultLineBytes) {
		return DefaultLineBytes
	}
	return s.LineBytes[0]
}

func (s Spec) sharing() sharing.Options {
	return sharing.Options{LineBytes: s.LineBytes, Cores: s.Cores, Domains: s.Domains, Mergeable: s.Mergeable}
}

func (s Spec) sites() sites.Options {
	o := sites.Options{LineBytes: s.SiteLineBytes(), Previous: s.Previous, Mergeable: s.Mergeable, Cores: s.has(Sharing)}
	for _, bytes := range s.Utilisation {
		o.Capacities = append(o.Capacities, bytes/uint64(o.LineBytes))
		o.Ways = append(o.Ways, 0)
	}
	copy(o.Ways, s.UtilisationWays)
	return o
}

// analysesOf are the analyses whose results a profile holds.
func analysesOf(p *profile.Profile) Analyses {
	found := Default
	if p.Blocks != nil {
		found |= Blocks
	}
	if p.Counters == nil || !p.Counters.Touched {
		return found
	}
	found |= Counters
	if len(p.Locality) > 0 {
		found |= Locality
	}
	if p.Sites != nil {
		found |= Sites
	}
	if hasSets(p) {
		found |= Sets
	}
	return found
}

// hasSets reports whether a profile holds set tables: those by default do, unless
// they were made before there were any, and all or none of the line sizes.
func hasSets(p *profile.Profile) bool { return len(p.Locality) > 0 && p.Locality[0].Sets != nil }
