package predict

import (
	"slices"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// byThread is a sample of the threads' stacks, for an answer and not for a profile: the common
// stack of all accesses is only analysed until a second thread appears.
type byThread struct{ analysis.Sampling }

// Locality returns the analysis of the common stack.
func (s byThread) Locality(lineBytes []uint32) analysis.SampledLocality {
	return &alone{SampledLocality: s.Sampling.Locality(lineBytes), lineBytes: lineBytes}
}

// alone analyses a run until it has a second thread.
type alone struct {
	analysis.SampledLocality
	lineBytes []uint32
	several   bool   // there is a second thread
	seen      bool   // first is known
	first     uint32 // thread
}

// Consume consumes the rows of a run with one thread.
func (a *alone) Consume(b *trace.Batch) error {
	if a.isOver(b) {
		return nil
	}
	return a.SampledLocality.Consume(b)
}

// ConsumePiece consumes a piece of the single reference of b: see contract.PieceConsumer.
func (a *alone) ConsumePiece(b *trace.Batch, from, end uint64) {
	if !a.isOver(b) {
		a.SampledLocality.ConsumePiece(b, from, end)
	}
}

// isOver reports whether there are several threads, including those of b.
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

// Result sets the locality, and only the line sizes for several threads.
func (a *alone) Result(p *profile.Profile, state bool) {
	if !a.several {
		a.SampledLocality.Result(p, state)
		return
	}
	for _, n := range a.lineBytes {
		p.Locality = append(p.Locality, profile.Locality{LineBytes: n})
	}
}
