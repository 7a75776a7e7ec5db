package analysis

import (
	"github.com/stackglass/stackglass/core/analysis/contract"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// joins reports whether segments with references of these threads can be appended now, or
// perhaps later.
func (f *feed) joins(threads []uint32) (now, later bool) {
	now, later = true, true
	for _, a := range f.analyses {
		if j, ok := a.Analysis.(contract.Joiner); ok {
			a, b := j.Joins(threads)
			now, later = now && a, later && b
		}
	}
	return now, later
}

// takes reports whether a segment, made without sharing if lone, can be appended.
func (f *feed) takes(s *profile.Profile, lone bool) bool {
	now, _ := f.joins(s.Totals.Threads)
	return now && s.Totals.AllReferences() > 0 && (!lone || f.alone(s.Totals.Threads))
}

// alone reports whether an analysis of several cores knows that all references so far, and
// those of these threads, are of one core.
func (f *feed) alone(threads []uint32) bool {
	cores, ok := find[contract.MultiCore](f.analyses)
	return ok && cores.Alone(threads)
}

// append appends the segment that follows.
func (f *feed) append(s *profile.Profile, lone bool) error {
	for _, a := range f.analyses {
		if _, is := a.Analysis.(contract.MultiCore); is && lone {
			continue
		}
		if err := a.Append(s); err != nil {
			return err
		}
	}
	f.add(&s.Totals)
	return nil
}

// appendRows passes rows of a segment to the analyses that have to read them.
func (f *feed) appendRows(b *trace.Batch) error {
	for _, a := range f.analyses {
		if r, ok := a.Analysis.(contract.RowAppender); ok {
			if err := r.AppendRows(b); err != nil {
				return err
			}
		}
	}
	return nil
}

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

// touchCost is the cost of joining a first touch or a line of the stack, in references: finding
// the line is a cache miss.
const touchCost = 3

// joinCost estimates the cost of joining a segment, in references.
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
