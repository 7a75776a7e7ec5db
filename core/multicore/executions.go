package multicore

import (
	"github.com/stackglass/stackglass/core/papers/sasmm"
	"github.com/stackglass/stackglass/core/trace"
)

// Printed converts the options to options of package sasmm. The Division must be ByRegion or
// AsPrinted. [Mimic] reads from [sasmm.Shared] or, if Apart is set, from [sasmm.Private], which
// keeps a separate order of blocks for each core. A chunk size is a number of executions. A
// dynamic schedule assigns chunks to the cores in turn, because all executions are assumed to take
// equally long.
func (o *Options) Printed() sasmm.Options {
	p := sasmm.Options{Cores: o.Cores, PerRegion: o.Division == ByRegion, Order: o.Order}
	p.Ranges = append(p.Ranges, o.Private.Ranges...)
	if s := o.Schedule; s != nil {
		p.Chunk, p.Guided = s.Chunk, s.Kind == Guided
		if s.Kind == Dynamic {
			p.Chunk = max(1, s.Chunk)
		}
	}
	return p
}

// newDividedReader returns a reader that divides the executions of blocks instead of the iterations
// of loops.
func newDividedReader(r trace.Reader, o Options) (*Reader, error) {
	mimic := sasmm.Shared
	if o.Apart {
		mimic = sasmm.Private
	}
	p, err := mimic(r, o.Printed())
	if err != nil {
		return nil, err
	}
	return &Reader{in: r, options: o, executions: p, ofCores: make([]uint64, o.Cores)}, nil
}

// nextDivided implements [Reader.Next] for the case that executions of blocks are divided.
func (m *Reader) nextDivided(b *trace.Batch) error {
	err := m.executions.Next(b)
	for i, k := range b.Kind {
		if k.IsReference() {
			m.ofCores[b.Thread[i]]++
		}
	}
	return err
}

// Blocks returns how often each block was executed in the single-threaded run, or nil if iterations
// are divided instead of executions. Call Blocks only after all rows have been read.
func (m *Reader) Blocks() []sasmm.Count {
	if m.executions == nil {
		return nil
	}
	return m.executions.Blocks()
}

// reportDivided implements [Reader.Report] for the case that executions of blocks are divided.
func (m *Reader) reportDivided() Report {
	r := Report{Regions: m.executions.Regions(), References: m.ofCores}
	for _, n := range m.executions.Blocks() {
		if n.Parallel == 0 {
			r.Outside += n.References
		} else if n.Parallel < n.Executions {
			r.Outside += n.References / n.Executions * (n.Executions - n.Parallel)
		}
	}
	if r.Regions == 0 {
		r.Doubts = append(r.Doubts, noRegion)
	}
	return r
}
