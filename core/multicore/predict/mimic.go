package predict

import (
	"github.com/stackglass/stackglass/core/multicore"
	"github.com/stackglass/stackglass/core/multicore/printed"
	"github.com/stackglass/stackglass/core/trace"
)

// Mimic gives the threads of o.Cores cores of the trace of a run with one thread, by the
// division that is asked for. s keeps regions that are too long for memory; nil: nothing
// does. Errors are those of multicore.Mimic and printed.Shared.
//
// By region and as printed, the threads' references come in the order of Algorithm 2, which
// is that of a cache that all share: private caches see their own core's in the order in
// which core 0 went through the code.
func Mimic(r trace.Reader, o multicore.Options, s multicore.Store) (Threads, error) {
	if o.Division == multicore.ByIterations {
		m, err := multicore.Mimic(r, o, s)
		if err != nil {
			return nil, err // a nil *multicore.Reader would be no nil Threads
		}
		return m, nil
	}
	p := printed.Options{Cores: o.Cores, PerRegion: o.Division == multicore.ByRegion, Order: o.Order, Shared: o.Private.Shared}
	if s := o.Schedule; s != nil {
		if p.Chunk, p.Guided = s.Chunk, s.Kind == multicore.Guided; s.Kind == multicore.Dynamic {
			p.Chunk = max(1, s.Chunk)
		}
	}
	for _, x := range o.Private.Ranges {
		p.Ranges = append(p.Ranges, printed.Range(x))
	}
	m, err := printed.Shared(r, p)
	if err != nil {
		return nil, err
	}
	return m, nil
}
