package analysis

import "github.com/stackglass/stackglass/core/profile"

// LimitLoops has trees of loops take no more than so many bytes, until undo is called.
func LimitLoops(bytes uint64) (undo func()) {
	before := loopBytes
	loopBytes = bytes
	return func() { loopBytes = before }
}

// NewPlanBehind is NewPlan with another number of references in front of the stretches.
var NewPlanBehind = newPlan

// Register adds an analysis that reads every row in order to the table, until undo is called.
func Register(name string, newAnalysis func() Analysis) (tag Analyses, undo func()) {
	tag = allAnalyses + 1
	register(append(registrations(), registration{
		tag: tag, name: name, beside: true, bounded: true, inOrder: "it is a test",
		make: func(m *maker) Analysis {
			if m.part.is {
				return nil
			}
			return newAnalysis()
		},
		found: func(*profile.Profile) bool { return false },
	}))
	return tag, func() { register(registrations()) }
}
