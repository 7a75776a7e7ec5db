package state

import (
	"sort"

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

	*Answers

	communication *Communication // made when it is first asked for
	threads       *Threads       // the same
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
		Answers:   NewAnswers("", p),
		Profile:   p,
		Locality:  l,
		LineBytes: uint64(l.LineBytes),
		Curve:     profile.NewCurve(hist, cold),
		Lines:     l.Lines(),
	}
}

// MissRatio is the share of accesses that miss in a fully associative LRU cache of sizeBytes.
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

// Knee is a fall of the miss-ratio curve between two capacities.
type Knee struct {
	Below uint64  // lines: the largest capacity at which the fall has not begun
	Lines uint64  // lines: the least capacity at which it is over
	From  float64 // miss ratio at Below
	To    float64 // miss ratio at Lines
}

// Cliff tells whether a few lines make the fall: at most a 64th of the capacity.
func (k Knee) Cliff() bool { return k.Lines-k.Below <= cliffWidth(k.Lines) }

// cliffWidth and slopeWidth are how far below a capacity a fall that ends there
// may begin, in lines.
func cliffWidth(lines uint64) uint64 { return max(1, lines/64) }
func slopeWidth(lines uint64) uint64 { return max(1, lines/4) }

// Knees finds up to most falls of the curve that save at least 2 % of accesses: first the cliffs,
// then the slopes within a factor of 4/3 that are away from them, each the steepest first.
func (v *View) Knees(most int) []Knee {
	var knees []Knee
	for _, width := range []func(uint64) uint64{cliffWidth, slopeWidth} {
		for len(knees) < most {
			knee, ok := v.steepest(knees, width)
			if !ok {
				break
			}
			knees = append(knees, knee)
		}
	}
	return knees
}

// steepest is the largest fall within a width that touches none of the others.
// Caches of less than four lines are none.
func (v *View) steepest(others []Knee, width func(uint64) uint64) (best Knee, found bool) {
	c := v.Curve
	gain := c.Accesses / 50
	below, all := 0, distances{curve: c} // distances that the smaller capacity hits
	for d, upto := range c.From(0) {
		lines := d + 1
		if lines < 4 {
			continue
		}
		next, count, hits := all.at(below)
		for next < lines-width(lines) {
			below++
			next, count, hits = all.at(below)
		}
		hits -= count
		// The next distance is the largest capacity that hits no more.
		k := Knee{Below: next, Lines: lines}
		if upto-hits <= gain || nearKnee(others, k) {
			continue
		}
		gain = upto - hits
		k.From, k.To = c.MissRatio(k.Below), c.MissRatio(lines)
		best, found = k, true
	}
	if found {
		best.tighten(c)
	}
	return best, found
}

// tighten moves the lower end up to where the fall really begins: 19 parts in 20 of it lie above.
func (k *Knee) tighten(c *profile.Curve) {
	least := (k.From - k.To) * 0.95
	first := sort.Search(c.Len(), func(i int) bool {
		d, _ := c.At(i)
		return d > k.Below
	})
	for d := range c.From(first) {
		from := c.MissRatio(d)
		if d >= k.Lines || from-k.To < least {
			return
		}
		k.Below, k.From = d, from
	}
}

// nearKnee tells whether a fall overlaps one of the others, or continues it: a
// gradual curve is not made of steps.
func nearKnee(others []Knee, k Knee) bool {
	for _, o := range others {
		if k.Below < o.Lines && o.Below < k.Lines {
			return true
		}
		if !o.Cliff() && k.Lines < 2*o.Lines && o.Lines < 2*k.Lines {
			return true
		}
	}
	return false
}
