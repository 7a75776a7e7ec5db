package predict

import (
	"io"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/multicore"
	"github.com/stackglass/stackglass/core/multicore/printed"
	"github.com/stackglass/stackglass/core/multicore/windows"
	"github.com/stackglass/stackglass/core/trace"
)

// Windows is the statistical method of PPT-SASMM (§3.4 to §3.6; package windows): SDCM asked
// about profiles of some executions of each block, weighted by how much blocks count. Stacks
// know no coherence there. Where executions of blocks are divided, those of private caches
// see each core's own order (Algorithm 1), and others the common one (Algorithm 2).
type Windows struct {
	Looked  windows.Looked
	Weights windows.Weighting
	Seed    uint64 // of the windows that are looked at
}

// Check tells what is wrong with the numbers. The error is a *trace.OptionError.
func (w *Windows) Check() error { return w.Looked.Check() }

// Looked is what a level's estimate rests on.
type Looked struct {
	Windows   uint64 // executions of blocks that were looked at; 0: lines were
	Of        uint64 // so many
	Lines     uint64 // that were followed; 0: windows were looked at, or it is not known
	MostLines uint64 // that may have been followed of each stack, where Lines are not known
	Accesses  uint64 // of lines, that were looked at; 0: not known
	All       uint64 // so many
}

// stacksOf are the caches of levels that are asked of the same stacks.
type stacksOf struct {
	lineBytes uint32
	cores     uint32 // that share a cache; 0: all do
	seen      []*windows.Collector
}

// windowed looks at windows in a pass.
type windowed struct {
	stacks []*stacksOf
	batch  *trace.Batch
	own    Threads // that see each core's own order, for private levels; nil: not yet, or never
}

// sharers are the cores that share a cache of a level, 0 for all.
func sharers(c *hierarchy.Cache, cores int) uint32 {
	if n := max(c.SharedBy, 1); int64(n) < int64(cores) {
		return n
	}
	return 0
}

// newWindowed prepares to look at windows.
func (p *pass) newWindowed() error {
	if len(p.q.Windows) == 0 {
		return nil
	}
	p.windowed = &windowed{}
	for i := range p.q.Hierarchy.Levels {
		c := &p.q.Hierarchy.Levels[i]
		if p.windowed.of(c, p.cores) != nil {
			continue
		}
		s := &stacksOf{lineBytes: c.LineBytes, cores: sharers(c, p.cores)}
		for _, w := range p.q.Windows {
			from := func() *trace.Program { return p.threads.Header().Program }
			if p.apart(s) {
				from = func() *trace.Program { return p.windowed.own.Header().Program }
			}
			seen, err := windows.New(windows.Options{LineBytes: c.LineBytes, Seed: w.Seed, Looked: w.Looked, SharedBy: s.cores}, from)
			if err != nil {
				return err
			}
			s.seen = append(s.seen, seen)
		}
		p.windowed.stacks = append(p.windowed.stacks, s)
	}
	return nil
}

// of are the stacks that tell of a cache.
func (w *windowed) of(c *hierarchy.Cache, cores int) *stacksOf {
	for _, s := range w.stacks {
		if s.lineBytes == c.LineBytes && s.cores == sharers(c, cores) {
			return s
		}
	}
	return nil
}

// apart tells whether stacks see each core's own order, in which a trace has to be read by
// itself.
func (p *pass) apart(s *stacksOf) bool {
	return p.q.Options.Division != multicore.ByIterations && p.cores > 1 && s.cores == 1
}

// lookAt has the stacks that go by one of both orders take rows.
func (p *pass) lookAt(b *trace.Batch, apart bool) error {
	for _, s := range p.windowed.stacks {
		if p.apart(s) != apart {
			continue
		}
		for _, seen := range s.seen {
			if err := seen.Consume(b); err != nil {
				return err
			}
		}
	}
	return nil
}

// stepApart goes on where each core's own order has to be read, too; io.EOF tells that it
// is done.
func (p *pass) stepApart() error {
	w := p.windowed
	if w == nil {
		return io.EOF
	}
	if w.own == nil {
		needed := false
		for _, s := range w.stacks {
			needed = needed || p.apart(s)
		}
		if !needed {
			return io.EOF
		}
		o := p.q.Options
		o.Cores, o.Apart = p.cores, true
		own, err := p.open(o)
		if err != nil {
			return err
		}
		w.own, w.batch = own, trace.NewBatch(0)
		own.Select(windows.Kinds)
		return nil
	}
	if err := w.own.Next(w.batch); err != nil {
		return err
	}
	return p.lookAt(w.batch, true)
}

func (w *windowed) close() {
	if w == nil {
		return
	}
	if c, ok := w.own.(io.Closer); ok {
		c.Close()
	}
}

// answer adds what windows tell.
func (p *pass) answer(r *Result) error {
	if p.windowed == nil {
		return nil
	}
	var counts []printed.Count
	if t, ok := bare(p.threads).(interface{ Blocks() []printed.Count }); ok {
		counts = t.Blocks()
	}
	for i, w := range p.q.Windows {
		var list []Level
		unknown := 0.0
		for k := range p.q.Hierarchy.Levels {
			c := p.q.Hierarchy.Levels[k]
			stacks := p.windowed.of(&c, p.cores).seen[i].Result()
			if i == 0 && p.q.Profiles {
				r.Stacks = append(r.Stacks, stacks)
			}
			blocks := windows.BlocksOf(stacks)
			if counts != nil {
				blocks = windows.Blocks(counts, stacks...)
			}
			e, err := windows.Of(stacks, r.Levels[k].Caches, blocks, w.Weights, c)
			if err != nil {
				return err
			}
			if e.Of == 0 && r.References > 0 {
				return multicore.ErrNoBlocks
			}
			l := Level{Cache: c, Method: hierarchy.WindowedSDCM, Caches: r.Levels[k].Caches}
			l.Looked = &Looked{Windows: e.Windows, Of: e.Of, Accesses: e.Looked, All: uint64(e.Accesses)}
			l.Accesses, l.Misses = e.Accesses, (1-e.Global.HitRate)*e.Accesses
			if k > 0 {
				l.Accesses = list[k-1].Misses
				l.Misses = min(l.Misses, l.Accesses)
			}
			l.Hits = l.Accesses - l.Misses
			l.Global, l.Local = rate(l.Misses, r.Levels[0].Accesses), rate(l.Misses, l.Accesses)
			low, high := e.Global.Bounds()
			l.Low, l.High, l.Bounded = min(low, l.Global), max(high, l.Global), true
			l.Off = windows.Interval95 * e.Global.Off
			switch { // behind others a mean is of what these let through
			case k == 0:
				l.Mean, l.MeanOff, l.Averaged = e.Mean.HitRate, windows.Interval95*e.Mean.Off, true
			case l.Caches == 1:
				l.Mean, l.Averaged = l.Local, true
			}
			unknown = max(unknown, e.Global.Unknown)
			list = append(list, l)
		}
		if unknown > 0.001 {
			r.Warnings = append(r.Warnings, "blocks that never ran where their cache is have a weight by these equations, and stay out of its rate")
		}
		r.Windowed = append(r.Windowed, list)
	}
	r.Warnings = append(r.Warnings, "SDCM from windows: ± is half of the interval that has the truth in 95 of 100 samples, of sampling alone; SDCM lets lines fall into sets at random, asks every level about all accesses, and here knows of no lines that other cores' stores take away")
	if p.windowed.own != nil {
		r.Warnings = append(r.Warnings, "windows of private caches see each core's own order, that of Algorithm 1")
	}
	return nil
}

// bare gives the threads as multicore made them.
func bare(t Threads) any {
	if u, ok := t.(interface{ Unwrap() Threads }); ok {
		return u.Unwrap()
	}
	return t
}
