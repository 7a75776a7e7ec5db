package state

import (
	"math"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// View is a profile summed up for one line size and all its kinds.
type View struct {
	Profile   *profile.Profile
	Locality  *profile.Locality
	LineBytes uint64
	Curve     *profile.Curve
	Lines     uint64 // distinct lines: the footprint
}

// NewView sums up p for a line size, or for its first one where it has no
// histogram for lineBytes. It gives nil for a profile without any.
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
		Profile:   p,
		Locality:  l,
		LineBytes: uint64(l.LineBytes),
		Curve:     profile.NewCurve(hist, cold),
		Lines:     l.Lines(),
	}
}

// MissRatio is the share of accesses that miss in a fully associative LRU cache
// of sizeBytes.
func (v *View) MissRatio(sizeBytes uint64) float64 {
	return v.Curve.MissRatio(sizeBytes / v.LineBytes)
}

// FootprintBytes is the size of all distinct lines.
func (v *View) FootprintBytes() uint64 { return v.Lines * v.LineBytes }

// Splits is the number of line accesses beyond one a reference: references that
// cross a line boundary.
func (v *View) Splits() uint64 {
	if refs := v.Profile.Totals.AllReferences(); v.Curve.Accesses > refs {
		return v.Curve.Accesses - refs
	}
	return 0
}

// Knee is a capacity at which misses drop: how many a small step in size saves.
type Knee struct {
	Bytes uint64  // the least capacity that saves the misses
	From  float64 // miss ratio of three quarters of the capacity
	To    float64 // miss ratio at the capacity
}

// Knees finds the up to most steepest drops of the curve. A drop is the share
// of all misses that are not cold, lost within a factor of 4/3 in capacity; the
// distances in one drop are not counted again in the next.
func (v *View) Knees(most int) []Knee {
	c := v.Curve
	if c.Accesses == 0 || len(c.Distances) == 0 {
		return nil
	}
	var knees []Knee
	for len(knees) < most {
		best, gain := Knee{}, 0.02 // less than 2 % of accesses is no knee
		last := uint64(0)
		for _, d := range c.Distances {
			capacity := d + 1
			if capacity < last+last/128 { // steps of less than 1 % are too fine to tell apart
				continue
			}
			last = capacity
			if capacity < 4 || nearKnee(knees, capacity*v.LineBytes) {
				continue
			}
			from, to := c.MissRatio(capacity*3/4), c.MissRatio(capacity)
			if from-to > gain {
				gain, best = from-to, Knee{Bytes: capacity * v.LineBytes, From: from, To: to}
			}
		}
		if best.Bytes == 0 {
			break
		}
		knees = append(knees, best)
	}
	return knees
}

// nearKnee tells whether a capacity is within a factor of two of a knee.
func nearKnee(knees []Knee, bytes uint64) bool {
	for _, k := range knees {
		if math.Abs(math.Log2(float64(bytes)/float64(k.Bytes))) < 1 {
			return true
		}
	}
	return false
}
