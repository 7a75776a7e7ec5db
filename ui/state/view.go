package state

import (
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
)

// View is a summary of a profile for one line size and all kinds of references.
type View struct {
	Profile   *profile.Profile
	Locality  *profile.Locality
	LineBytes uint64
	Curve     *profile.Curve
	Lines     uint64 // the number of distinct lines: the footprint
	// Part is the part of the run in view, or nil for the whole run. Range is the range of the
	// part's references. Only Curve, Predict, Ranker, and the answers of verbs that accept a
	// range are limited to this part.
	Part  *ask.Run
	Range Range

	*Answers

	// Computed on first use.
	communication *Communication
	threads       *Threads
	causes        *report.Table // the causes of the misses in each cell of the map of sets
}

// NewView summarises a profile for a line size, or for the profile's first line size if the
// profile has no histogram for the given line size. NewView returns nil for a profile without
// histograms.
func NewView(p *profile.Profile, lineBytes uint32) *View {
	if len(p.Locality) == 0 {
		return nil
	}
	l := p.LocalityAt(lineBytes)
	if l == nil {
		l = &p.Locality[0]
		if at := p.LocalityAt(64); at != nil {
			l = at
		}
	}
	hist, cold := l.Histogram(trace.AllKinds)
	return &View{
		Answers:   NewAnswers("", p),
		Profile:   p,
		Locality:  l,
		LineBytes: uint64(l.LineBytes),
		Curve:     profile.NewCurve(hist, cold),
		Lines:     l.Lines(),
	}
}

// MissRatio returns the share of accesses that miss in a fully associative LRU cache of sizeBytes.
func (v *View) MissRatio(sizeBytes uint64) float64 {
	return v.Curve.MissRatio(sizeBytes / v.LineBytes)
}

// FootprintBytes returns the total size of all distinct lines.
func (v *View) FootprintBytes() uint64 { return v.Lines * v.LineBytes }

// Splits returns the number of additional line accesses due to references that cross a line
// boundary.
func (v *View) Splits() uint64 {
	if refs := v.Profile.Totals.AllReferences(); v.Curve.Accesses > refs {
		return v.Curve.Accesses - refs
	}
	return 0
}
