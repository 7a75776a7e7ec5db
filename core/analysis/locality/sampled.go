package locality

import (
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// Sampled is an analysis that estimates what this package counts, from a sample. Its
// methods are those of analysis.Analysis.
type Sampled interface {
	Takes() (events trace.Kinds, sites, pcs bool)
	Consume(b *trace.Batch) error
	Result(p *profile.Profile, state bool)
	Close()
	Restore(p *profile.Profile) error
	Append(next *profile.Profile) error
	Lines() uint64 // distinct lines so far, about
}
