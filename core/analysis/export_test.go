package analysis

import (
	"io"
	"slices"

	"github.com/stackglass/stackglass/core/analysis/communication"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// Append joins the profiles of consecutive segments that were analysed with the same spec. The
// result equals the result of one run, except for communication.
func Append(spec Spec, segments ...*profile.Profile) (*profile.Profile, error) {
	spec = spec.WithDefaults()
	spec.Start = segments[0].Segment.Start
	analyses := slices.DeleteFunc(table(spec, noProgram), func(m member) bool { return m.tag == Communication })
	joined, err := restoreFirst(analyses, segments[0])
	for _, next := range segments[1:] {
		if err == nil {
			err = appendResults(joined, analyses, next)
		}
	}
	if err != nil {
		return nil, err
	}
	for _, a := range analyses {
		a.Result(joined, true)
	}
	return joined, nil
}

// AsSegment removes the results that segments do not have from a profile.
func AsSegment(p *profile.Profile) *profile.Profile {
	p.Communication, p.NoCommunication, p.Segment.Communication = nil, profile.AbsenceUnknown, nil
	return p
}

// LimitLoops limits the memory of loop trees to the given number of bytes until the function undo
// is called.
func LimitLoops(bytes uint64) (undo func()) {
	before := loopBytes
	loopBytes = bytes
	return func() { loopBytes = before }
}

// NewPlanBehind is like NewPlan, but the first segment begins after the given number of references.
var NewPlanBehind = newPlan

// Register adds an analysis to the table until the function undo is called. The analysis reads
// every row in order.
func Register(name string, newAnalysis func() Analysis) (tag Analyses, undo func()) {
	tag = allAnalyses + 1
	register(append(registrations(), registration{
		tag: tag, name: name, additional: true, bounded: true, orderReason: "the test analysis must read the whole trace, in order",
		make: func(m *maker) Analysis {
			if m.part.is {
				return nil
			}
			return newAnalysis()
		},
	}))
	return tag, func() { register(registrations()) }
}

// LimitTimeline limits timelines to the given number of places until the function undo is called.
func LimitTimeline(places int) (undo func()) {
	before := timelinePlaces
	timelinePlaces = places
	return func() { timelinePlaces = before }
}

// LimitRegions limits the number of marked regions until the function undo is called.
func LimitRegions(most int) (undo func()) {
	before := mostRegions
	mostRegions = most
	return func() { mostRegions = before }
}

// SharesOf computes the shares of the communication analysis, each in a run of its own.
func SharesOf(spec Spec, pages, cores int, read func() trace.Reader) (states [][]byte) {
	spec = spec.WithDefaults()
	for _, share := range communication.Shares(pages, cores) {
		r := newRunnerOf(spec, read(), func(program func() *trace.Program) []member { return spec.shareTable(share, program) })
		if err := runToEnd(r, func(Progress) error { return nil }); err != io.EOF {
			panic(err)
		}
		states = append(states, shareState(r.analyses))
	}
	return states
}
