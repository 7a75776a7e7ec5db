package analysis

// LimitLoops has trees of loops take no more than so many bytes, until undo is called.
func LimitLoops(bytes uint64) (undo func()) {
	before := loopBytes
	loopBytes = bytes
	return func() { loopBytes = before }
}

// NewPlanBehind is NewPlan with another number of references in front of the stretches.
var NewPlanBehind = newPlan
