package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/tools/beam/pool"
)

// progress adds up the work that all processes report.
type progress struct {
	mu    sync.Mutex
	total uint64 // number of references that the job analyses; 0: unknown
	done  map[string]uint64
	ended int
}

// note records the state of a part of the work. A part that is repeated counts once.
func (p *progress) note(w pool.Work) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done[w.Name] = max(p.done[w.Name], w.Done)
	if w.Ended {
		p.ended++
	}
}

// line describes the progress after a time.
func (p *progress) line(after time.Duration) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	done := uint64(0)
	for _, n := range p.done {
		done += n
	}
	count := func(n uint64) string { return report.Count(n).Human() }
	switch {
	case p.total == 0:
		return fmt.Sprintf("%s references analysed", count(done))
	case done >= p.total:
		return fmt.Sprintf("all %s references analysed; results are being joined", count(p.total))
	case done == 0:
		return fmt.Sprintf("0 of %s references analysed", count(p.total))
	}
	left := p.total - done
	wait := time.Duration(float64(after) * float64(left) / float64(done)).Round(time.Second)
	return fmt.Sprintf("%s of %s references analysed (%.0f%%), %s left, about %v",
		count(done), count(p.total), 100*float64(done)/float64(p.total), count(left), wait)
}

// showTime is the time between two lines of progress.
const showTime = 5 * time.Second

// show writes a line about the progress of a job every few seconds, until stop is called.
func show(to io.Writer, references uint64) (stop func()) {
	p := &progress{total: references, done: map[string]uint64{}}
	pool.Watch(p.note)
	begun, ended := time.Now(), make(chan struct{})
	go func() {
		ticker := time.NewTicker(showTime)
		defer ticker.Stop()
		for {
			select {
			case <-ended:
				return
			case <-ticker.C:
				fmt.Fprintln(to, p.line(time.Since(begun)))
			}
		}
	}()
	return sync.OnceFunc(func() { close(ended) })
}
