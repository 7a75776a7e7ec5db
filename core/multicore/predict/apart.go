package predict

import (
	"io"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/multicore"
	"github.com/stackglass/stackglass/core/multicore/blocksample"
	"github.com/stackglass/stackglass/core/simulate"
	"github.com/stackglass/stackglass/core/trace"
)

// privatePass is a second pass over the trace for private caches, which is needed if executions of
// blocks are divided. In this case, private caches see the rows of their core in the order of
// Algorithm 1, and shared caches see the rows of all cores in the order of Algorithm 2. Algorithm 1
// does not order the references of different cores, so the coherence of private caches is not
// simulated.
type privatePass struct {
	threads Threads
	batch   *trace.Batch
	own     trace.Batch
	// by core: simulator of the private levels above the first shared level; empty if there are no
	// such levels
	cores  []*simulate.Simulator
	levels int
}

// divided reports whether executions of blocks are divided among the cores, instead of iterations
// of loops.
func (p *pass) divided() bool { return p.q.Options.Division != multicore.ByIterations }

// usesPrivateOrder reports whether a cache sees only the rows of one core, which are in the order of
// Algorithm 1.
func (p *pass) usesPrivateOrder(c *hierarchy.Cache) bool {
	return p.divided() && sharers(c, p.cores) == 1
}

// beginPrivatePass opens the second pass. It returns io.EOF if no second pass is needed.
func (p *pass) beginPrivatePass() error {
	levels := p.q.Hierarchy.Levels
	front, needed := 0, false
	for front < len(levels) && p.usesPrivateOrder(&levels[front]) {
		front++
	}
	for i := range levels {
		needed = needed || p.usesPrivateOrder(&levels[i])
	}
	if !needed {
		return io.EOF
	}
	o := p.q.Options
	o.Cores, o.Apart = p.cores, true
	threads, err := p.open(o)
	if err != nil {
		return err
	}
	p.own = &privatePass{threads: threads, batch: trace.NewBatch(0), levels: front}
	if kinds := trace.DataKinds &^ (1 << trace.Fetch); p.windowed == nil {
		threads.Select(kinds)
	} else {
		threads.Select(kinds | blocksample.Kinds)
	}
	if front == 0 {
		return nil
	}
	for range p.cores {
		s, err := simulate.New(hierarchy.Hierarchy{Levels: levels[:front:front]}, simulate.Options{Seed: p.q.Seed, Cores: coresOf(1), MemoryBytes: p.q.MemoryBytes})
		if err != nil {
			return err
		}
		p.own.cores = append(p.own.cores, s)
	}
	return nil
}

// stepPrivatePass processes the next batch of the second pass. It returns io.EOF at the end of the
// pass.
func (p *pass) stepPrivatePass() error {
	if p.own == nil {
		return p.beginPrivatePass()
	}
	a := p.own
	if err := a.threads.Next(a.batch); err != nil {
		return err
	}
	if p.windowed != nil {
		if err := p.sampleWindows(a.batch, true); err != nil {
			return err
		}
	}
	for core, s := range a.cores {
		a.own.Resize(0)
		for i, k := range a.batch.Kind {
			if trace.DataKinds.Has(k) && k != trace.Fetch && (a.batch.Thread == nil && core == 0 || a.batch.Thread != nil && int(a.batch.Thread[i]) == core) {
				a.own.Append(k, a.batch.Addr[i], a.batch.Bytes[i], 0, 0)
			}
		}
		if err := s.Consume(&a.own); err != nil {
			return err
		}
	}
	return nil
}

// replacePrivate replaces the results for private caches with the results of the second pass.
func (a *privatePass) replacePrivate(r *Result) {
	for k := range a.levels {
		l := &r.Levels[k]
		l.Accesses, l.Hits, l.Misses, l.Coherence = 0, 0, 0, 0
		for core, s := range a.cores {
			run := s.Result().Levels[k].Run
			c := hierarchy.CoreLevel{Accesses: float64(run.Accesses()), Hits: float64(run.Hits()), Misses: float64(run.Misses())}
			l.Cores[core] = c
			l.Accesses += c.Accesses
			l.Hits += c.Hits
			l.Misses += c.Misses
		}
		l.setRates(r.Levels[0].Accesses)
		l.setMean(1)
	}
}

func (a *privatePass) close() {
	if a == nil {
		return
	}
	if c, ok := a.threads.(io.Closer); ok {
		c.Close()
	}
}
