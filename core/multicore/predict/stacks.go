package predict

import (
	"slices"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// byThread is a sample that tells of the stacks of threads, for an answer and not for a
// profile: the stack that all accesses have together is looked at only where no second
// thread has any, and is given up when one comes.
type byThread struct{ analysis.Sampling }

// Locality implements [analysis.Sampling].
func (s byThread) Locality(lineBytes []uint32) analysis.SampledLocality {
	return &alone{SampledLocality: s.Sampling.Locality(lineBytes), lineBytes: lineBytes}
}

// alone is an analysis of a run as long as it has one thread.
type alone struct {
	analysis.SampledLocality
	lineBytes []uint32
	several   bool // threads have come
	seen      bool // that of first has
	first     uint32
}

// Consume implements analysis.Analysis.
func (a *alone) Consume(b *trace.Batch) error {
	if a.isOver(b) {
		return nil
	}
	return a.SampledLocality.Consume(b)
}

// ConsumePiece takes a piece of the one reference of b: see contract.PieceConsumer.
func (a *alone) ConsumePiece(b *trace.Batch, from, end uint64) {
	if !a.isOver(b) {
		a.SampledLocality.ConsumePiece(b, from, end)
	}
}

// isOver tells whether there were several threads, those of b included.
func (a *alone) isOver(b *trace.Batch) bool {
	if a.several || b.Thread == nil {
		return a.several
	}
	if !a.seen && b.Len() > 0 {
		a.seen, a.first = true, b.Thread[0]
	}
	a.several = slices.ContainsFunc(b.Thread, func(t uint32) bool { return t != a.first })
	return a.several
}

// Result implements analysis.Analysis. Of several threads, it only names the line sizes.
func (a *alone) Result(p *profile.Profile, state bool) {
	if !a.several {
		a.SampledLocality.Result(p, state)
		return
	}
	for _, n := range a.lineBytes {
		p.Locality = append(p.Locality, profile.Locality{LineBytes: n})
	}
}
