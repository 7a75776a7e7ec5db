package analysis

import (
	"github.com/stackglass/stackglass/core/analysis/branches"
	"github.com/stackglass/stackglass/core/analysis/communication"
	"github.com/stackglass/stackglass/core/analysis/contract"
	"github.com/stackglass/stackglass/core/analysis/counters"
	"github.com/stackglass/stackglass/core/analysis/footprint"
	"github.com/stackglass/stackglass/core/analysis/locality"
	"github.com/stackglass/stackglass/core/analysis/nests"
	"github.com/stackglass/stackglass/core/analysis/pages"
	"github.com/stackglass/stackglass/core/analysis/regions"
	"github.com/stackglass/stackglass/core/analysis/sharing"
	"github.com/stackglass/stackglass/core/analysis/sites"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// This file is the only file of the package that refers to the types of analyses. A new analysis
// needs
//
//  1. a package that implements [contract.Analysis], and the optional interfaces of package
//     contract that it needs;
//  2. a tag and a registration here;
//  3. a field of [profile.Profile] that Result sets, a file with its type, its encoding and its check,
//     and an entry in the list of sections (forms). If Append needs data in addition to the result, a
//     field of [profile.Segment] for this data;
//  4. tests of its result. TestEveryAnalysisInEveryKindOfRun checks that the profiles of divided,
//     segmented and saved runs are byte-identical to the profile of a plain run.
//
// registry.go explains the fields of a registration.

// The analyses. Saved runs contain these bits, so new analyses must be added at the end.
const (
	Locality      Analyses = 1 << iota // stack distances
	Counters                           // operations, bytes, and the number of accesses to each byte
	Sites                              // accesses by site and by data object; includes Locality
	Sets                               // stack distances within sets, for every number of sets; includes Locality
	Sharing                            // private, shared and coherent stacks of cores; includes Sets
	Communication                      // values that one thread writes and another thread uses; includes Sites
	Loops                              // the loop-compressed trace; always combined with Default
	Blocks                             // execution counts of blocks and branches; always combined with Default
	Operations                         // the cheap counters, which are also part of Default
	Footprint                          // average number of distinct lines in windows of every length; always combined with Default
	Regular                            // option of Loops: stop early if the trace does not compress or does not describe code
	// lifetimes of memory blocks, use of structure members, and accesses by address and time; always
	// combined with Default
	Data
	Regions // the regions that the program has marked
	Pages   // stack distances of pages
)

// Usual selects the analyses that the page and the command run if the user does not choose any:
// Default, and the additional analyses for a diagnosis. The results of these additional analyses
// can neither be joined nor estimated from a sample.
const Usual = Loops | Regular | Blocks

// registrations returns the table. Blocks precedes Sites, because Sites needs the call paths that
// Blocks determines. Sites and Sharing precede Locality, because Locality passes its accesses to
// them.
func registrations() []registration {
	return []registration{
		{
			tag: Blocks, name: "blocks", additional: true, bounded: true,
			make: func(m *maker) Analysis {
				a := branches.New(m.spec.Kinds, m.spec.Start > 0, m.program)
				if m.part.is {
					a.Bare()
				}
				return a
			},
		},
		{
			tag: Sites, name: "sites", needs: Locality, estimated: true, byLine: true,
			make: func(m *maker) Analysis {
				o := m.spec.sites()
				o.Follows = m.part.layoutKnown
				o.Segment, o.TimelinePlaces = m.part.is || m.spec.Start > 0, timelinePlaces
				o.Callers, _ = m.get(Blocks).(*branches.Analysis)
				a := sites.New(o, m.program)
				m.get(Locality).(*locality.Analysis).Feed(o.LineBytes, a)
				return a
			},
			layout: func(s Spec, program func() *trace.Program) contract.LayoutFollower {
				return sites.New(s.sites(), program)
			},
		},
		{
			tag: Communication, name: "communication", needs: Sites, estimated: true, byLine: true, inSample: Sampling.KeepsLines,
			make: func(m *maker) Analysis {
				if m.part.is || m.spec.Start > 0 {
					return nil // runs with communication have no segments
				}
				return communication.New(m.spec.SiteLineBytes(), m.get(Sites).(*sites.Analysis), m.spec.communicationDecision(m.program))
			},
			finish: Spec.explainCommunication,
		},
		{
			tag: Sharing, name: "sharing", needs: Sets, estimated: true, byLine: true,
			make: func(m *maker) Analysis {
				if m.part.lone {
					return nil
				}
				o := m.spec.sharing()
				o.OnlyJoins = m.part.joins
				a := sharing.New(o, m.get(Locality).(*locality.Analysis))
				if bySite, ok := m.get(Sites).(*sites.Analysis); ok && m.spec.Stacks == 0 {
					a.FeedSites(m.spec.SiteLineBytes(), bySite)
				}
				if communicated, ok := m.get(Communication).(*communication.Analysis); ok {
					communicated.Follow(a)
				}
				return a
			},
		},
		{
			tag: Locality, name: "locality", estimated: true,
			make: func(m *maker) Analysis {
				if b := m.spec.Budget; b != nil {
					return locality.NewShelved(m.spec.LineBytes, m.spec.setNumbers(), *b)
				}
				return locality.New(m.spec.LineBytes, m.spec.Start, m.spec.Mergeable, m.spec.setNumbers())
			},
		},
		{
			tag: Sets, name: "sets", needs: Locality, inSample: func(Sampling) bool { return false },
		},
		{
			tag: Counters, name: "counters",
			make: func(m *maker) Analysis {
				return counters.New(m.spec.Kinds, m.spec.Analyses&Counters == 0, m.program)
			},
		},
		{
			tag: Operations, name: "operations", needs: Counters, bounded: true,
		},
		{
			tag: Loops, name: "loops", additional: true, bounded: true,
			orderReason: "the whole trace must be compressed in order",
			make: func(m *maker) Analysis {
				if m.part.is {
					return nil // the analysis reads the rows of a segment when the segment is appended
				}
				return nests.New(nests.Options{MostBytes: loopBytes, IfRegular: m.spec.has(Regular)})
			},
			graft: func(to, from *profile.Profile) { to.Loops = from.Loops },
		},
		{
			tag: Regular, name: "regular", needs: Loops, additional: true, bounded: true,
		},
		{
			tag: Footprint, name: "footprint", additional: true, byLine: true,
			orderReason: "the footprint must be measured over the whole trace, in order",
			inSample:    func(Sampling) bool { return false },
			make: func(m *maker) Analysis {
				if m.part.is {
					return nil // the analysis reads the rows of a segment when the segment is appended
				}
				return footprint.New(m.spec.LineBytes[0])
			},
			graft: func(to, from *profile.Profile) { to.Footprint = from.Footprint },
		},
		{
			tag: Data, name: "data", additional: true, byLine: true,
			orderReason: "the lifetimes of memory blocks must be tracked over the whole trace, in order",
			inSample:    func(Sampling) bool { return false },
			make: func(m *maker) Analysis {
				if m.part.is || !m.spec.has(Sites) {
					return nil // the analysis reads the rows of a segment when the segment is appended
				}
				return contract.NewData(m.spec.SiteLineBytes(), m.program)
			},
			graft: func(to, from *profile.Profile) { to.Data = from.Data },
		},
		{
			tag: Regions, name: "regions", bounded: true, inSample: Sampling.KeepsLines,
			make: func(m *maker) Analysis {
				return regions.New(m.program, m.part.is || m.spec.Start > 0, m.spec.Start, mostRegions)
			},
		},
		{
			tag: Pages, name: "pages", byLine: true, inSample: func(Sampling) bool { return false },
			make: func(m *maker) Analysis { return pages.New(m.spec.Mergeable) },
		},
	}
}

// loopBytes is the memory limit of the loop tree. A tree that exceeds the limit is dropped. Tests
// set a lower limit.
var loopBytes uint64 = nests.MostBytes

// timelinePlaces is the maximum number of places in a timeline: see profile.MostTimelinePlaces.
// Tests set a lower limit.
var timelinePlaces = profile.MostTimelinePlaces

// mostRegions is the maximum number of marked regions. Tests set a lower limit.
var mostRegions = profile.MostRegions

// Wanted contains the analyses whose results are estimated from a sample.
type Wanted struct {
	LineBytes uint32           // line size for which sites and communication are analysed
	Sites     *sites.Options   // nil: not requested
	Sharing   *sharing.Options // nil: not requested
	// whether communication is analysed; if so, Sites is not nil
	Communication bool
	// Program returns the code that the trace's tables have described so far, or nil. Decides is
	// nil if the communication analysis must read the whole trace. If the analysis may stop because
	// no second thread appears, Decides is the same function as Program.
	Program, Decides func() *trace.Program
}

// wanted returns the analyses whose results are estimated from a sample.
func (s Spec) wanted(program func() *trace.Program) Wanted {
	w := Wanted{LineBytes: s.SiteLineBytes(), Communication: s.has(Communication), Program: program, Decides: s.communicationDecision(program)}
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

// communicationDecision returns a function that returns the program. The communication analysis
// decides from the program whether to run. If the user selected communication, the analysis always
// runs, and communicationDecision returns nil.
func (s Spec) communicationDecision(program func() *trace.Program) func() *trace.Program {
	if !s.isDefault() {
		return nil
	}
	return program
}

// inOrderAnalyses returns the run's analyses without support for segments, including their options.
// The parameter threads is the number of threads of the trace, or 0 if the number is unknown.
func (s Spec) inOrderAnalyses(threads int) (some Analyses) {
	if s.has(Communication) && (threads > 1 || !s.isDefault()) {
		some = Communication
	}
	for i := range registered {
		if r := &registered[i]; s.has(r.tag) && (r.orderReason != "" || r.needs&some != 0) {
			some |= r.tag
		}
	}
	return some
}

// withoutAnalyses returns the spec of the run without the given analyses.
func (s Spec) withoutAnalyses(some Analyses) Spec {
	if all := s.wants(); some&Communication != 0 {
		s.Analyses = all&^Counters | s.Analyses&Counters // otherwise, the result would also select the counters of each byte
	}
	s.Analyses &^= some
	return s
}

// onlyAnalyses returns the spec of a run with the given analyses, except for communication, and the
// analyses on which their results depend.
func (s Spec) onlyAnalyses(some Analyses) Spec {
	all := s.wants()
	s.Analyses = some&^Communication | Locality // a list that contains Locality does not include Default
	if some&Data != 0 {
		s.Analyses |= all & Sites
	}
	s.SetNumbers = 1
	return s
}

// orderedRun is a run that reads the whole trace in order, for a part of the analyses without support
// for segments.
type orderedRun struct {
	analyses Analyses            // communication is not included
	share    communication.Share // the share of communication, if there are no analyses
}

// orderedRuns returns the runs that together compute the results of the analyses some. The stacks of
// cores are divided among as many runs as the pages, but among at most one run for each of the
// threads.
func (s Spec) orderedRuns(some Analyses, shares, threads int) (runs []orderedRun) {
	if some&Communication != 0 {
		pages, cores := min(max(shares, 1), communication.MostShares), 0
		if s.has(Sharing) {
			cores = min(pages, max(threads, 1))
		}
		for _, share := range communication.Shares(pages, cores) {
			runs = append(runs, orderedRun{share: share})
		}
	}
	if others := some &^ (Communication | Sites | Sharing); others != 0 {
		runs = append(runs, orderedRun{analyses: others})
	}
	return runs
}

// shareTable creates the analyses of a run that computes a share of communication.
func (s Spec) shareTable(share communication.Share, program func() *trace.Program) []member {
	bytes := s.SiteLineBytes()
	if !share.Depths {
		o := sites.Options{LineBytes: bytes, Unfed: true}
		by := sites.New(o, program)
		a := communication.New(bytes, by, nil)
		a.Only(share)
		return []member{{by, Sites}, {a, Communication}}
	}
	a, lines := communication.NewDepths(bytes, share), locality.New([]uint32{bytes}, 0, false, 1)
	stacks := sharing.New(sharing.Options{LineBytes: []uint32{bytes}, Cores: s.Cores, Stacks: CoherentStacks, HasCore: share.HasCore}, lines)
	a.Follow(stacks)
	return []member{{a, Communication}, {stacks, Sharing}, {lines, Locality}}
}

// shareState returns the result of a share.
func shareState(analyses []member) (state []byte) {
	for _, m := range analyses {
		switch a := m.Analysis.(type) {
		case *sites.Analysis:
			a.Result(&profile.Profile{}, false) // the indices of sites and data objects
		case *communication.Analysis:
			state = a.ShareState()
		}
	}
	return state
}

// joinShares adds the result of communication to a profile.
func (s Spec) joinShares(to *profile.Profile, states ...[]byte) (err error) {
	to.Communication, err = communication.Join(s.SiteLineBytes(), states...)
	return err
}

// Stacks selects the multi-core stacks that the analysis Sharing counts.
type Stacks = sharing.Stacks

// The values of Stacks.
const (
	CoherentStacks  = sharing.Coherent
	PrivateStacks   = sharing.Private
	ConcurrentStack = sharing.Concurrent
)

func (s Spec) sharing() sharing.Options {
	return sharing.Options{LineBytes: s.LineBytes, Cores: s.Cores, Domains: s.Domains, Mergeable: s.Mergeable, Stacks: s.Stacks}
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

// explainCommunication records why a result contains no communication, if the trace has several
// threads or may have several threads after another segment has been appended.
func (s Spec) explainCommunication(p *profile.Profile) { p.NoCommunication = s.absence(p) }

func (s Spec) absence(p *profile.Profile) profile.Absence {
	asked := s.isDefault() || s.Analyses&Communication != 0
	switch {
	case p.Communication != nil || len(p.Totals.Threads) < 2:
		return profile.AbsenceUnknown
	case s.Budget != nil && asked:
		return profile.BeyondMemory
	case s.Sample != nil && asked:
		return profile.NotInSample
	case !s.has(Communication):
		return profile.NotAnalysed
	}
	return profile.LateThread
}
