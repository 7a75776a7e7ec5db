// Package analysis runs analyses over a trace in one pass and collects their
// results in a profile.
package analysis

import (
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// Analysis consumes a trace, batch by batch, and gives its result for the
// profile. A batch is read-only and valid until Consume returns.
type Analysis interface {
	Consume(b *trace.Batch) error
	// Result writes the analysis' sections into p. It may be called at any time
	// between batches; what it writes is not touched by later batches.
	Result(p *profile.Profile)
}

// Spec is what to analyse and how. The zero value with the defaults of
// [Spec.WithDefaults] analyses all data references with 64-byte lines.
type Spec struct {
	Kinds     trace.Kinds // kinds of references; 0: data references
	Skip      uint64      // references to leave out at the start
	Limit     uint64      // references to analyse at most; 0: all
	Threads   []uint32    // threads to analyse; nil: all
	LineBytes []uint32    // line sizes, powers of two from 8 to 4,096; nil: 64
	SkipBad   uint64      // bad records to tolerate
	Mergeable bool        // keep what Append needs (addresses) in the profile
	Start     uint64      // number of selected references before this segment
}
