package analysis

import (
	"io"
	"sync/atomic"

	"github.com/stackglass/stackglass/core/trace"
)

// Goroutines makes helpers in this program, for [DividedOptions].
func Goroutines(n int, spec Spec, source trace.Source) func(wake func()) []Helper {
	return func(wake func()) (list []Helper) {
		for range n {
			g := &goroutine{stretcher: NewStretcher(spec, source), wake: wake, stretches: make(chan Stretch, 1)}
			go g.work()
			list = append(list, g)
		}
		return list
	}
}

// goroutine is a [Helper] in this process.
type goroutine struct {
	stretcher *Stretcher
	wake      func()
	stretches chan Stretch
	analysed  atomic.Uint64
	cut       atomic.Bool
	closed    atomic.Bool
	ended     atomic.Bool // segment is there
	segment   Segment
}

func (g *goroutine) Begin(s Stretch) {
	g.analysed.Store(0)
	g.cut.Store(false)
	g.ended.Store(false)
	g.stretches <- s
}

func (g *goroutine) Cut() { g.cut.Store(true) }

func (g *goroutine) Analysed() (uint64, bool) { return g.analysed.Load(), g.ended.Load() }

func (g *goroutine) Segment() Segment {
	s := g.segment
	g.segment = Segment{}
	return s
}

func (g *goroutine) Gone() bool { return false }

func (g *goroutine) Close() {
	g.closed.Store(true)
	g.cut.Store(true)
	close(g.stretches)
}

func (g *goroutine) work() {
	for s := range g.stretches {
		g.segment = g.analyse(s)
		g.ended.Store(true)
		g.wake()
	}
}

func (g *goroutine) analyse(s Stretch) Segment {
	g.stretcher.Begin(s)
	err := error(nil)
	for err == nil && !g.cut.Load() {
		err = g.stretcher.Step()
		references, _ := g.stretcher.Progress()
		g.analysed.Store(references)
	}
	if err != nil && err != io.EOF || g.closed.Load() {
		return Segment{}
	}
	return g.stretcher.Segment(err == io.EOF)
}
