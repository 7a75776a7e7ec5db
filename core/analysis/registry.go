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

// Analysis is the interface that every analysis implements: see package contract.
type Analysis = contract.Analysis

// Analyses is a set of analyses; 0 represents [Default].
type Analyses uint32

// registration describes an analysis, or an option of an analysis, to the framework. The
// registrations are in table.go.
type registration struct {
	tag   Analyses // a single bit
	name  string   // name that [ParseAnalyses] accepts
	needs Analyses // other analyses that must run, because the analysis uses their results or is an option of one of them

	// additional is true if Default does not include the analysis. Selecting only additional analyses
	// selects Default, too.
	additional bool
	// orderReason is the reason why the analysis does not support segments and must read the whole
	// trace in order; "" if it supports segments. An analysis without support for segments must be a
	// [contract.RowAppender], unless no analysis of the run supports segments.
	orderReason string
	// estimated is true if the analyses of a [Sampling] replace this analysis in a run with a
	// sample.
	estimated bool
	// inSample reports whether a run with the given sample includes the analysis; nil: always.
	inSample func(Sampling) bool
	// byLine is true if the analysis stores more data per line than a stack does. Such an analysis
	// cannot run with a Budget.
	byLine bool
	// bounded is true if the memory of the analysis does not grow with the number of touched lines
	// or bytes. Such an analysis continues if the stacks are spilled.
	bounded bool

	// make creates the analysis for a run or a segment, or returns nil if the segment is analysed
	// without it. The field is nil for an option: the analysis to which the option belongs checks
	// whether the option is selected.
	make func(m *maker) Analysis
	// layout creates an instance of the analysis that only tracks the layout of memory blocks. The
	// field is nil if the analysis is not a [contract.LayoutFollower].
	layout func(s Spec, program func() *trace.Program) contract.LayoutFollower

	// graft copies the result of the analysis from the profile of a run that read the trace in
	// order. The field is set for every analysis that does not support segments, but not for its
	// options.
	graft func(to, from *profile.Profile)

	// finish is called when p contains all results, and records why a result is missing. The field
	// may be nil.
	finish func(s Spec, p *profile.Profile)
}

// registered lists the registrations, in the order in which the analyses consume batches. The
// variable is set in init, because functions in the registrations use it.
var registered []registration

var (
	analysisNames []string // indexed by the bit of the tag
	allAnalyses   Analyses
	additional    Analyses // analyses that run in addition to Default
	byLine        Analyses // analyses that store more data per line than a stack does
	bounded       Analyses // analyses that continue if the stacks are spilled
)

func init() { register(registrations()) }

// register sets the list of registrations. Their tags must be unique, and must occupy the lowest
// bits.
func register(list []registration) {
	registered, analysisNames = list, make([]string, len(list))
	allAnalyses, additional, byLine, bounded = 0, 0, 0, 0
	for i := range registered {
		r := &registered[i]
		analysisNames[bits.TrailingZeros32(uint32(r.tag))] = r.name
		allAnalyses |= r.tag
		if r.additional {
			additional |= r.tag
		}
		if r.byLine {
			byLine |= r.tag
		}
		if r.bounded {
			bounded |= r.tag
		}
	}
}

// Default selects the analyses that run if the user does not choose analyses. Default includes the
// analyses locality and sets, so that no cache has to be chosen before the run. If the trace has
// several threads, Default includes sharing. Default includes communication if the trace's tables
// or index list several threads, or if a second thread appears soon (see communication.Expects). If
// the trace describes code, Default includes sites and the cheap counters, which do not count the
// accesses to each byte.
const Default Analyses = 0

// None selects no analyses. The run then only counts references, and calls the consumer of
// [Runner.Beside].
const None Analyses = 1 << 31

// AnalysisNames returns the names that [ParseAnalyses] accepts.
func AnalysisNames() []string { return analysisNames }

// String returns the names of the analyses, separated by commas. The name of [Default] is
// "default".
func (a Analyses) String() string {
	list := names(a)
	if a&^additional == Default {
		list = slices.Insert(list, 0, "default")
	}
	return strings.Join(list, ",")
}

// names returns the names of the analyses in a set.
func names(a Analyses) (list []string) {
	for i, name := range analysisNames {
		if a>>i&1 != 0 {
			list = append(list, name)
		}
	}
	return list
}

// ParseAnalyses parses a comma-separated list of names, or "default". Some analyses, such as loops,
// always run with other analyses: "loops" alone means "default,loops".
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
		return 0, &trace.OptionError{Option: "analyses", Got: word, Want: "one or more of " + strings.Join(analysisNames, ", ") + ", separated by commas, or default"}
	}
	if byDefault && set&^additional != 0 {
		return 0, &trace.OptionError{Option: "analyses", Got: list, Want: "a list without default; default can be combined only with " + strings.Join(names(additional), ", ")}
	}
	return set, nil
}

// Runs reports whether a run of the spec includes the analysis a, which must be a single bit.
func (s Spec) Runs(a Analyses) bool { return s.has(a) }

func (s Spec) has(a Analyses) bool {
	r := registrationOf(a)
	return s.wants()&r.tag != 0 && !(s.Budget != nil && r.byLine) && (s.Sample == nil || r.inSample == nil || r.inSample(s.Sample))
}

// SetNumbers is a bit set that selects numbers of sets: bit a represents 2^a sets.
type SetNumbers = stack.SetNumbers

// setNumbers returns the numbers of sets that the set tables cover, or 0 if there are no set
// tables.
func (s Spec) setNumbers() stack.SetNumbers {
	if !s.has(Sets) {
		return 0
	}
	return cmp.Or(s.SetNumbers, stack.AllSetNumbers)
}

// continuing returns the spec for a run that continues from a profile. Unless the spec selects
// numbers of sets, the new spec selects the numbers that the profile's set tables cover.
func (s Spec) continuing(p *profile.Profile) Spec {
	if s.SetNumbers == 0 && s.has(Sets) && len(p.Locality) > 0 && p.Locality[0].Sets != nil {
		s.SetNumbers = numbersOf(p.Locality[0].Sets)
	}
	return s
}

// numbersOf returns the numbers of sets that a table covers.
func numbersOf(t *profile.SetTable) stack.SetNumbers {
	return stack.AllSetNumbers &^ stack.SetNumbers(t.Omitted)
}

// wants returns the selected analyses and the analyses on which they depend.
func (s Spec) wants() (all Analyses) {
	all = s.Analyses
	if s.isDefault() {
		all |= allAnalyses &^ additional
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

// registrationOf returns the registration of an analysis, which must exist.
func registrationOf(a Analyses) *registration {
	return &registered[slices.IndexFunc(registered, func(r registration) bool { return r.tag == a })]
}

// withoutSegments returns the run's first analysis without support for segments, or nil if all
// analyses of the run support segments.
func (s Spec) withoutSegments() *registration {
	for i := range registered {
		if r := &registered[i]; r.orderReason != "" && s.has(r.tag) {
			return r
		}
	}
	return nil
}

// graft copies the results of analyses that do not support segments.
func (s Spec) graft(some Analyses, to, from *profile.Profile) {
	for i := range registered {
		if r := &registered[i]; r.tag&some != 0 && r.graft != nil {
			r.graft(to, from)
		}
	}
}

// explain records why results are missing from a profile.
func (s Spec) explain(to *profile.Profile) {
	for i := range registered {
		if finish := registered[i].finish; finish != nil {
			finish(s, to)
		}
	}
}

// isDefault reports whether the run includes the analyses of [Default].
func (s Spec) isDefault() bool { return s.Analyses&^additional == Default }

// SiteLineBytes returns the line size for which sites are analysed.
func (s Spec) SiteLineBytes() uint32 {
	if s = s.WithDefaults(); slices.Contains(s.LineBytes, DefaultLineBytes) {
		return DefaultLineBytes
	}
	return s.LineBytes[0]
}

type member struct {
	Analysis
	tag Analyses // 0: an analysis that belongs to the sample
}

// findOptional returns the first analysis that implements the interface Optional.
func findOptional[Optional any](list []member) (found Optional, ok bool) {
	for _, m := range list {
		if found, ok = m.Analysis.(Optional); ok {
			return found, true
		}
	}
	return found, false
}

// maker creates the analyses of a run or a segment.
type maker struct {
	spec    Spec
	program func() *trace.Program // returns the code that the trace's tables have described so far, or nil
	part    segmentInfo
	made    []member
}

// segmentInfo describes a segment that the framework will append to a run. The zero value means a
// whole run.
type segmentInfo struct {
	is          bool
	layoutKnown bool // the layout of memory blocks at the beginning of the segment is known
	joins       bool // the analyses append segments to this segment, and read no records
	// the analyses assume that all references of the segment belong to one core; otherwise, the
	// framework discards the result
	lone bool
}

// get returns an analysis of the run, or nil if the run does not include it. The first call creates
// the analysis, so an analysis that uses another analysis is created later.
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

// table creates the analyses of a run, in the order in which they read batches. The function
// program returns the code that the trace's tables have described so far, or nil.
func table(s Spec, program func() *trace.Program) []member {
	return s.tableFor(program, segmentInfo{})
}

// tableFor is like table, but can also create the analyses of a segment.
func (s Spec) tableFor(program func() *trace.Program, of segmentInfo) (list []member) {
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

// segmentTable creates the analyses of a segment that will be appended to a run.
func (s Spec) segmentTable(program func() *trace.Program, lone bool) []member {
	told := !s.Mergeable
	s.Mergeable = true
	return s.tableFor(program, segmentInfo{is: true, layoutKnown: told, lone: lone})
}

// newLayout creates an analysis that only tracks the layout of memory blocks.
func (s Spec) newLayout(program func() *trace.Program) contract.LayoutFollower {
	i := slices.IndexFunc(registered, func(r registration) bool { return r.layout != nil })
	return registered[i].layout(s, program)
}
