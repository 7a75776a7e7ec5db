package sample

import (
	"math"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/analysis/locality"
	"github.com/stackglass/stackglass/core/analysis/sites"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace"
)

// KeepsLines implements analysis.Sampling: with a rate that does not change, a line is
// in the sample from its first access to its last.
func (o Options) KeepsLines() bool { return o.Mode == profile.SpaceSample }

// Followers implements analysis.Sampling.
func (o Options) Followers(w analysis.Wanted) []analysis.Analysis {
	if !o.KeepsLines() || w.Sites == nil && w.Sharing == nil {
		return nil
	}
	k := &kept{options: o, rate: profile.RateOf(o.Threshold)}
	var list []analysis.Analysis
	if w.Sites != nil {
		k.lineBytes, k.sites = w.LineBytes, sites.New(*w.Sites, w.Program)
		k.whole = locality.NewOn(w.LineBytes, &keptStack{threshold: o.Threshold, seed: o.Seed, rate: k.rate, below: stack.NewExact()})
		k.whole.Feed(w.LineBytes, k.sites)
		list = append(list, ahead{k.sites})
	}
	k.addSizes(w)
	return append(list, k)
}

// ahead is the analysis of sites as far as it takes batches: its results are
// kept's to give.
type ahead struct{ sites *sites.Analysis }

func (a ahead) Takes() (events trace.Kinds, sites, pcs bool) { return a.sites.Takes() }
func (a ahead) Consume(b *trace.Batch) error                 { return a.sites.Consume(b) }
func (ahead) Result(*profile.Profile, bool)                  {}
func (ahead) Close()                                         {}
func (ahead) Restore(*profile.Profile) error                 { return nil }
func (ahead) Append(*profile.Profile) error                  { return nil }

// keptStack is an LRU stack of the lines of a sample: distances are those counted
// divided by the rate. Of a line that is not in the sample it says 0, the shortest
// there is, which is what accesses that the sample does not account for are taken for.
type keptStack struct {
	threshold, seed uint64
	rate            float64
	below           *stack.Exact

	lines  []trace.Line
	at     []uint32
	depths []uint32
}

// Distances implements stack.Model.
func (s *keptStack) Distances(lines []trace.Line, out []uint32) {
	if len(s.at) < len(lines) {
		s.lines, s.at, s.depths = make([]trace.Line, len(lines)), make([]uint32, len(lines)), make([]uint32, len(lines))
	}
	n := 0
	for i, line := range lines {
		out[i] = 0
		s.lines[n], s.at[n] = line, uint32(i)
		if mix(line, s.seed) <= s.threshold {
			n++
		}
	}
	s.below.Distances(s.lines[:n], s.depths)
	for i, d := range s.depths[:n] {
		out[s.at[i]] = scaledDistance(d, s.rate)
	}
}

// Lines implements stack.Model.
func (s *keptStack) Lines() int { return s.below.Lines() }

// Stack implements stack.Model.
func (s *keptStack) Stack() []trace.Line { return s.below.Stack() }

// scaledDistance is what a distance in lines of the sample stands for.
func scaledDistance(d uint32, rate float64) uint32 {
	if d == stack.Cold {
		return d
	}
	return uint32(min(math.Round(float64(d)/rate), stack.Lost-1))
}

// kept has analyses see the lines of a sample: see the package comment.
type kept struct {
	options Options
	rate    float64
	done    uint64 // references

	lineBytes uint32
	sites     *sites.Analysis    // nil where they are not asked for; it takes all references
	whole     *locality.Analysis // what sites follow
	sizes     []*thinned
}

func (k *kept) addSizes(w analysis.Wanted) {
	var lineBytes []uint32
	if w.Sharing != nil {
		lineBytes = w.Sharing.LineBytes
	} else if w.Communication {
		lineBytes = []uint32{w.LineBytes}
	}
	for _, n := range lineBytes {
		k.sizes = append(k.sizes, newThinned(k, n, w))
	}
}

// Takes implements analysis.Analysis.
func (k *kept) Takes() (events trace.Kinds, sites, pcs bool) {
	return 0, k.sites != nil, k.sites != nil
}

// Close implements analysis.Analysis.
func (k *kept) Close() {
	if k.whole != nil {
		k.whole.Close()
	}
	for _, t := range k.sizes {
		t.close()
	}
}

// Consume implements analysis.Analysis. It comes after that of sites.
func (k *kept) Consume(b *trace.Batch) error {
	if k.whole != nil {
		if err := k.whole.Consume(b); err != nil {
			return err
		}
	}
	for _, t := range k.sizes {
		t.begin(b)
		for i, addr := range b.Addr {
			t.take(b, i, addr, b.Bytes[i])
		}
		if err := t.flush(); err != nil {
			return err
		}
	}
	k.reach(k.done + uint64(b.Len()))
	return nil
}

// ConsumePiece takes a piece of the one reference of b: see analysis.Runner.
func (k *kept) ConsumePiece(b *trace.Batch, from, end uint64) {
	if from > 0 {
		k.done-- // the piece before counted it
	}
	if k.whole != nil {
		k.whole.ConsumePiece(b, from, end)
	}
	for _, t := range k.sizes {
		t.begin(b)
		t.take(b, 0, b.Addr[0]+from, uint32(end-from))
		t.failed = t.flush()
	}
	k.reach(k.done + 1)
}

func (k *kept) reach(references uint64) {
	k.done = references
	for _, t := range k.sizes {
		if t.communicated != nil {
			t.communicated.Reach(references)
		}
	}
}

// Append implements analysis.Analysis.
func (k *kept) Append(*profile.Profile) error {
	return &StateError{"sampled profiles cannot be joined; sample the whole trace in one pass"}
}
