package analysis

import (
	"github.com/stackglass/stackglass/core/analysis/nests"
	"github.com/stackglass/stackglass/core/analysis/sharing"
	"github.com/stackglass/stackglass/core/analysis/sites"
	"github.com/stackglass/stackglass/core/profile"
)

// joins tells whether segments with references of these threads can be appended now,
// or perhaps later.
func (f *feed) joins(threads []uint32) (now, later bool) {
	now, later = true, true
	for _, a := range f.analyses {
		if j, ok := a.(interface {
			Joins(threads []uint32) (now, later bool)
		}); ok {
			a, b := j.Joins(threads)
			now, later = now && a, later && b
		}
	}
	return now, later
}

// takes tells whether a segment, made without sharing if it is lone, can be appended.
func (f *feed) takes(s *profile.Profile, lone bool) bool {
	now, _ := f.joins(s.Totals.Threads)
	return now && s.Totals.AllReferences() > 0 && (!lone || sharingOf(f.analyses).Alone(s.Totals.Threads))
}

// append adds a segment that follows what was analysed so far.
func (f *feed) append(s *profile.Profile, lone bool) error {
	for _, a := range f.analyses {
		if _, is := a.(*sharing.Analysis); is && lone {
			continue
		}
		if err := a.Append(s); err != nil {
			return err
		}
	}
	f.add(&s.Totals)
	return nil
}

// add counts the references of a segment.
func (f *feed) add(t *profile.Totals) {
	for k := range t.References {
		f.totals.References[k] += t.References[k]
		f.totals.Bytes[k] += t.Bytes[k]
	}
	for _, thread := range t.Threads {
		f.seeThread(thread)
	}
	f.analysed += t.AllReferences()
}

// touchCost is about how many references a first touch, or a line of the stack, costs
// as much as when it is joined: its line is found nowhere near.
const touchCost = 3

// joinCost is about how many references joining a segment costs as much as.
func joinCost(p *profile.Profile) (cost uint64) {
	for i := range p.Segment.Lines {
		cost += touchCost * uint64(len(p.Segment.Lines[i].FirstTouches)+len(p.Segment.Lines[i].Stack))
	}
	cost /= uint64(max(1, len(p.Segment.Lines)))
	if p.Sites != nil {
		cost += touchCost * uint64(len(p.Sites.Code)+len(p.Sites.Data))
	}
	return cost
}

// sitesOf finds the analysis that follows where blocks of memory lie, or nil.
func sitesOf(analyses []Analysis) *sites.Analysis {
	for _, a := range analyses {
		if s, ok := a.(*sites.Analysis); ok {
			return s
		}
	}
	return nil
}

// nestsOf finds the analysis that has to see every row, or nil.
func nestsOf(analyses []Analysis) *nests.Analysis {
	for _, a := range analyses {
		if n, ok := a.(*nests.Analysis); ok {
			return n
		}
	}
	return nil
}

// sharingOf finds the analysis of several cores, or nil.
func sharingOf(analyses []Analysis) *sharing.Analysis {
	for _, a := range analyses {
		if s, ok := a.(*sharing.Analysis); ok {
			return s
		}
	}
	return nil
}
