package predict

import (
	"slices"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/multicore"
	"github.com/stackglass/stackglass/core/multicore/blocksample"
	"github.com/stackglass/stackglass/core/papers/sasmm"
	"github.com/stackglass/stackglass/core/trace"
)

// WindowSampling contains options for the statistical method of PPT-SASMM (§3.4 to §3.6; package
// blocksample). The method samples executions of each block, applies SDCM to their weighted reuse
// profiles, and ignores coherence. If executions of blocks are divided, private caches see the
// accesses of their core in the order of Algorithm 1, and shared caches see the accesses of all
// cores in the order of Algorithm 2.
type WindowSampling struct {
	Looked  blocksample.Looked
	Weights blocksample.Weighting
	Seed    uint64 // seed for choosing the windows
}

// Check validates the sample size. The error is a *trace.OptionError.
func (w *WindowSampling) Check() error { return w.Looked.Check() }

// Looked describes the size of the sample from which a level was estimated. The sample consists of
// windows or of lines.
type Looked struct {
	Windows  uint64 // number of executions of blocks in the sample
	Of       uint64 // total number of executions of blocks
	Lines    uint64 // number of lines in the sample
	Accesses uint64 // number of line accesses in the sample
	All      uint64 // total number of line accesses
}

// stacksOf contains the stacks for all levels with the same line size and the same number of cores
// per cache.
type stacksOf struct {
	lineBytes uint32
	cores     uint32 // number of cores that share a cache; 0: all cores
	seen      []*blocksample.Collector
}

// windowSampler contains the samples of windows in a pass.
type windowSampler struct {
	stacks []*stacksOf
	// the sampling options in the question; if executions of blocks are divided, an additional
	// element requests all windows, because there are no complete stacks
	asked []WindowSampling
}

// sharers returns the number of cores that share a cache of a level, or 0 if all cores share it.
func sharers(c *hierarchy.Cache, cores int) uint32 {
	if n := max(c.SharedBy, 1); int64(n) < int64(cores) {
		return n
	}
	return 0
}

// newWindowed prepares the sampling of windows.
func (p *pass) newWindowed() error {
	asked := p.q.Windows
	if p.q.Stacks && p.divided() {
		asked = append(slices.Clip(asked), WindowSampling{Looked: blocksample.All, Weights: blocksample.Counted})
	}
	if len(asked) == 0 {
		return nil
	}
	p.windowed = &windowSampler{asked: asked}
	for i := range p.q.Hierarchy.Levels {
		c := &p.q.Hierarchy.Levels[i]
		if p.windowed.stacksFor(c, p.cores) != nil {
			continue
		}
		s := &stacksOf{lineBytes: c.LineBytes, cores: sharers(c, p.cores)}
		for _, w := range asked {
			from := func() *trace.Program { return p.threads.Header().Program }
			if p.usesPrivateOrder(c) {
				from = func() *trace.Program { return p.own.threads.Header().Program }
			}
			seen, err := blocksample.New(blocksample.Options{LineBytes: c.LineBytes, Seed: w.Seed, Looked: w.Looked, SharedBy: s.cores}, from)
			if err != nil {
				return err
			}
			s.seen = append(s.seen, seen)
		}
		p.windowed.stacks = append(p.windowed.stacks, s)
	}
	return nil
}

// stacksFor returns the stacks from which the hit ratio of a cache is estimated, or nil.
func (w *windowSampler) stacksFor(c *hierarchy.Cache, cores int) *stacksOf {
	for _, s := range w.stacks {
		if s.lineBytes == c.LineBytes && s.cores == sharers(c, cores) {
			return s
		}
	}
	return nil
}

// sampleWindows passes the rows of a batch to collectors. If the parameter "apart" is true, the
// rows are in the order of Algorithm 1, and are passed to the stacks of private caches. Otherwise,
// the rows are in the order of Algorithm 2, and are passed to the stacks of shared caches.
func (p *pass) sampleWindows(b *trace.Batch, apart bool) error {
	for _, s := range p.windowed.stacks {
		if (p.divided() && s.cores == 1) != apart {
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

// addWindowed adds the estimates from sampled windows to the result.
func (p *pass) addWindowed(r *Result) error {
	if p.windowed == nil {
		return nil
	}
	var counts []sasmm.Count
	if t, ok := unwrap(p.threads).(interface{ Blocks() []sasmm.Count }); ok {
		counts = t.Blocks()
	}
	for i, w := range p.windowed.asked {
		// whether w is the additional element, which requests all windows
		whole := i == len(p.q.Windows)
		var list []Level
		unknown := 0.0
		for k := range p.q.Hierarchy.Levels {
			c := p.q.Hierarchy.Levels[k]
			stacks := p.windowed.stacksFor(&c, p.cores).seen[i].Result()
			if i == 0 && !whole && p.q.Profiles {
				r.Stacks = append(r.Stacks, stacks)
			}
			blocks := blocksample.BlocksOf(stacks)
			if counts != nil {
				blocks = blocksample.Blocks(counts, stacks...)
			}
			e, err := blocksample.Of(stacks, r.Levels[k].Caches, blocks, w.Weights, c)
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
			l.setRates(r.Levels[0].Accesses)
			low, high := e.Global.Bounds()
			l.Low, l.High, l.Bounded = min(low, l.Global), max(high, l.Global), true
			l.Off = blocksample.Interval95 * e.Global.Off
			switch { // for lower levels, only the total misses of the level above are known
			case k == 0:
				l.Mean, l.MeanOff, l.Averaged = e.Mean.HitRate, blocksample.Interval95*e.Mean.Off, true
			case l.Caches == 1:
				l.Mean, l.Averaged = l.Local, true
			}
			unknown = max(unknown, e.Global.Unknown)
			list = append(list, l)
		}
		if unknown > 0.001 {
			r.Warnings = append(r.Warnings, "the paper's equations give weight to blocks that never ran on the cores of a cache; these blocks are excluded from the hit ratio of this cache")
		}
		if !whole {
			r.Windowed = append(r.Windowed, list)
			continue
		}
		for k := range list {
			l := &list[k]
			l.Method, l.Bounded, l.Low, l.High, l.Looked = hierarchy.SDCM, false, 0, 0, nil
		}
		r.Modelled = list
	}
	if len(r.Windowed) == 0 {
		r.Warnings = append(r.Warnings, "SDCM assigns lines to sets at random, and treats every level as if it saw all accesses; a real lower level sees only the misses of the level above")
		return nil
	}
	r.Warnings = append(r.Warnings, "SDCM from windows: ± is half the width of the 95 % confidence interval, which covers the sampling error only; SDCM assigns lines to sets at random, treats every level as if it saw all accesses, and here ignores invalidations by other cores' stores")
	return nil
}

// unwrap returns the threads that t wraps, or t if it wraps no threads.
func unwrap(t Threads) any {
	if u, ok := t.(interface{ Unwrap() Threads }); ok {
		return u.Unwrap()
	}
	return t
}
