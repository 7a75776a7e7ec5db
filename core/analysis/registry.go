package analysis

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"

	"github.com/stackglass/stackglass/core/analysis/contract"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace"
)

// Analysis is what an analysis implements: see package contract.
type Analysis = contract.Analysis

// Analyses is a set of analyses; 0 stands for [Default].
type Analyses uint32

// registration is all that the framework knows of one analysis, or of an option of one. See
// table.go for the registrations.
type registration struct {
	tag   Analyses // one bit
	name  string   // as [ParseAnalyses] reads it
	needs Analyses // these run with it: it uses what they compute, or is an option of one

	// beside says that Default leaves it out, and that naming it alone adds it to Default.
	beside bool
	// inOrder says why no part of a trace can be analysed apart from what comes before it;
	// "" if that is possible. Such an analysis has no segments, and is a
	// [contract.RowAppender] where others have some.
	inOrder string
	// estimated says that in a run with a [Sampling] the analyses of the sample stand in for it.
	estimated bool
	// inSample reports whether a run with a sample has it; nil if every such run has.
	inSample func(Sampling) bool
	// byLine says that it keeps more of every line than stacks do. It does not run with a Budget.
	byLine bool
	// bounded says that its memory does not grow with the lines or bytes that the run
	// touches. It continues if the stacks are spilled.
	bounded bool

	// make returns the analysis for a run or a segment, or nil if a segment has none. make
	// itself is nil for an option, which the analysis that it belongs to looks up.
	make func(m *maker) Analysis
	// layout returns an analysis that only follows the addresses of blocks of memory; nil if the
	// analysis is no [contract.LayoutFollower].
	layout func(s Spec, program func() *trace.Program) contract.LayoutFollower

	// finish is called when p has all results, to say why one is missing; nil if there is nothing to say.
	finish func(s Spec, p *profile.Profile)
}

// registered are the registrations, in the order in which analyses consume batches. init
// sets it, because their functions refer to it.
var registered []registration

// These are derived from the registrations.
var (
	analysisNames []string // by the bit of the tag
	allAnalyses   Analyses
	beside        Analyses // those that are added to the ones of Default
	byLine        Analyses // those that keep more of every line than stacks do
	bounded       Analyses // those that continue if the stacks are spilled
)

func init() { register(registrations()) }

// register sets the table. The tags of the registrations are the lowest bits, each once.
func register(list []registration) {
	registered, analysisNames = list, make([]string, len(list))
	allAnalyses, beside, byLine, bounded = 0, 0, 0, 0
	for i := range registered {
		r := &registered[i]
		analysisNames[bits.TrailingZeros32(uint32(r.tag))] = r.name
		allAnalyses |= r.tag
		if r.beside {
			beside |= r.tag
		}
		if r.byLine {
			byLine |= r.tag
		}
		if r.bounded {
			bounded |= r.tag
		}
	}
}

// Default are the analyses that run unless the user chooses others: locality with sets, so that
// no cache has to be chosen before the run; if the trace has several threads, how they share
// caches, and their communication if the trace's tables or index list the threads, or two of them
// appear soon (see communication.Expects); and, if the trace has code, sites and the cheap
// counters. Accesses per byte are not counted.
const Default Analyses = 0

// None are no analyses: a pass only counts, and feeds what stands beside it.
const None Analyses = 1 << 31

// AnalysisNames lists the names that [ParseAnalyses] takes.
func AnalysisNames() []string { return analysisNames }

// String lists the names, comma-separated; default stands for [Default].
func (a Analyses) String() string {
	var names []string
	if a&^beside == Default {
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
	for word := range strings.SplitSeq(list, ",") {
		if word = strings.TrimSpace(word); word == "default" {
			byDefault = true
			continue
		}
		if i := slices.Index(analysisNames, word); i >= 0 {
			set |= 1 << i
			continue
		}
		return 0, &trace.OptionError{Option: "analyses", Got: word, Want: strings.Join(analysisNames, ", ") + ", separated by commas, or default"}
	}
	if byDefault && set&^beside != 0 {
		return 0, &trace.OptionError{Option: "analyses", Got: list, Want: "default alone or with loops or blocks, or a list of others"}
	}
	return set, nil
}

// Runs reports whether a run of the spec includes an analysis, which is one bit.
func (s Spec) Runs(a Analyses) bool { return s.has(a) }

// has reports whether an analysis runs.
func (s Spec) has(a Analyses) bool {
	r := registrationOf(a)
	return s.wants()&r.tag != 0 && !(s.Budget != nil && r.byLine) && (s.Sample == nil || r.inSample == nil || r.inSample(s.Sample))
}

// SetNumbers is a set of numbers of sets: bit a stands for 2^a sets.
type SetNumbers = stack.SetNumbers

// setNumbers returns the numbers of sets of set tables; 0: there are none.
func (s Spec) setNumbers() stack.SetNumbers {
	if !s.has(Sets) {
		return 0
	}
	return cmp.Or(s.SetNumbers, stack.AllSetNumbers)
}

// continuing returns the spec for a run that continues from a profile: unless others were asked for, with the
// numbers of sets that its tables have.
func (s Spec) continuing(p *profile.Profile) Spec {
	if s.SetNumbers == 0 && s.has(Sets) && len(p.Locality) > 0 && p.Locality[0].Sets != nil {
		s.SetNumbers = numbersOf(p.Locality[0].Sets)
	}
	return s
}

// numbersOf returns the numbers of sets that a table counts.
func numbersOf(t *profile.SetTable) stack.SetNumbers {
	return stack.AllSetNumbers &^ stack.SetNumbers(t.Omitted)
}

// wants returns the analyses that were asked for, and those that they need.
func (s Spec) wants() (all Analyses) {
	all = s.Analyses
	if s.isDefault() {
		all |= allAnalyses &^ beside
	}
	for before := Default; all != before; {
		before = all
		for i := range registered {
			if all&registered[i].tag != 0 {
				all |= registered[i].needs
			}
		}
	}
	return all
}

// registrationOf returns the registration of an analysis of this program.
func registrationOf(a Analyses) *registration {
	return &registered[slices.IndexFunc(registered, func(r registration) bool { return r.tag == a })]
}

// inOrder returns an analysis of the run that has to read every row in order, or nil.
func (s Spec) inOrder() *registration {
	for i := range registered {
		if r := &registered[i]; r.inOrder != "" && s.has(r.tag) {
			return r
		}
	}
	return nil
}

// isDefault reports whether the analyses of [Default] run, perhaps with others.
func (s Spec) isDefault() bool { return s.Analyses&^beside == Default }

// SiteLineBytes returns the line size of sites.
func (s Spec) SiteLineBytes() uint32 {
	if s = s.WithDefaults(); slices.Contains(s.LineBytes, DefaultLineBytes) {
		return DefaultLineBytes
	}
	return s.LineBytes[0]
}

type member struct {
	Analysis
	tag Analyses // 0: from a sample
}

// find returns the first analysis that implements an optional interface.
func find[Optional any](list []member) (found Optional, ok bool) {
	for _, m := range list {
		if found, ok = m.Analysis.(Optional); ok {
			return found, true
		}
	}
	return found, false
}

// maker makes the analyses of a run, or of a segment of one.
type maker struct {
	spec    Spec
	program func() *trace.Program // the code in the trace so far, or nil
	part    part
	made    []member
}

// part says that analyses are of a segment that the framework appends to a run.
type part struct {
	is   bool
	told bool // layout of blocks of memory at its beginning
	lone bool // it is given up if there is more than one core
}

// get returns an analysis of the run, which it makes on the first call, or nil. So the order in
// which analyses are made follows from who uses whom.
func (m *maker) get(tag Analyses) Analysis {
	for _, a := range m.made {
		if a.tag == tag {
			return a.Analysis
		}
	}
	if !m.spec.has(tag) {
		return nil
	}
	made := registrationOf(tag).make(m)
	m.made = append(m.made, member{made, tag})
	return made
}

// table makes the analyses of a run in the order in which they read batches. program returns
// what the trace has told so far of its code, or nil.
func table(s Spec, program func() *trace.Program) []member {
	return s.tableFor(program, part{})
}

// tableFor is table, perhaps for a part.
func (s Spec) tableFor(program func() *trace.Program, of part) (list []member) {
	m := maker{spec: s, program: program, part: of}
	sampled := s.Sample != nil && s.has(Locality)
	if sampled {
		list = append(list, member{Analysis: s.Sample.Locality(s.LineBytes)})
		for _, a := range s.Sample.Followers(s.wanted(program)) {
			list = append(list, member{Analysis: a})
		}
	}
	for i := range registered {
		r := &registered[i]
		if r.make == nil || sampled && r.estimated {
			continue
		}
		if a := m.get(r.tag); a != nil {
			list = append(list, member{a, r.tag})
		}
	}
	return list
}

// segmentTable makes the analyses of a segment that is appended to a run.
func (s Spec) segmentTable(program func() *trace.Program, lone bool) []member {
	told := !s.Mergeable
	s.Mergeable = true
	return s.tableFor(program, part{is: true, told: told, lone: lone})
}

// newLayout makes an analysis that only follows the addresses of blocks of memory.
func (s Spec) newLayout(program func() *trace.Program) contract.LayoutFollower {
	i := slices.IndexFunc(registered, func(r registration) bool { return r.layout != nil })
	return registered[i].layout(s, program)
}
