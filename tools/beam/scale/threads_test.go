package scale

import (
	"bytes"
	"io"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sgt"
)

const (
	testThreads = 4
	testLines   = 60_000
)

// threadedTrace writes a trace of four threads that take turns. In each round, each thread makes one
// access to each of its lines: lines that no other thread uses, or the same lines as all others.
func threadedTrace(t *testing.T, shared, stores bool, rounds int) *sgt.Source {
	t.Helper()
	p := &trace.Program{
		Modules:   []trace.Module{{Name: "a.c", Base: 0x400000, End: 0x500000}},
		Functions: []trace.Function{{Name: "main", Blocks: 2}},
		Threads:   []trace.Thread{{Number: 1}},
		Blocks:    []trace.Block{{Label: "load", Sites: 1}, {Label: "store", FirstSite: 1, Sites: 1}},
		Sites:     []trace.Site{{Kind: trace.Load, Bytes: 8}, {Kind: trace.Store, Bytes: 8}},
	}
	for i := range p.Sites {
		p.Sites[i].PC, p.Sites[i].Place = 0x400000+4*trace.Addr(i), trace.Place{File: "a.c", Line: uint32(i + 1)}
	}
	var out bytes.Buffer
	w := sgt.NewWriter(&out, 64, nil)
	if err := w.Module(sgt.AppendModule(nil, p)); err != nil {
		t.Fatal(err)
	}
	block, time := uint32(0), uint64(0)
	if stores {
		block = 1
	}
	for range rounds {
		for thread := range uint32(testThreads) {
			from, to := 0, testLines
			if !shared {
				from, to = int(thread)*testLines/testThreads, (int(thread)+1)*testLines/testThreads
			}
			for i := from; i < to; i++ {
				if err := w.Step(thread+1, time, block, []uint64{0x10000000 + 64*uint64(i*7919%testLines)}); err != nil {
					t.Fatal(err)
				}
				time++
			}
		}
	}
	if err := w.Close(sgt.End{How: "exit"}); err != nil {
		t.Fatal(err)
	}
	s, err := sgt.NewSource("t", bytes.NewReader(out.Bytes()), int64(out.Len()), nil)
	if err != nil {
		t.Fatal(err)
	}
	return s.Merged()
}

// most returns the largest heap of reachable objects while a function runs, without the objects that
// exist before.
func most(run func()) uint64 {
	defer debug.SetGCPercent(debug.SetGCPercent(10))
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	now := func() uint64 { metrics.Read(live); return live[0].Value.Uint64() }
	runtime.GC()
	before, largest := now(), uint64(0)
	end, ended := make(chan bool), make(chan bool)
	go func() {
		defer close(ended)
		for {
			select {
			case <-end:
				return
			case <-time.After(time.Millisecond):
				largest = max(largest, now())
			}
		}
	}()
	func() {
		defer func() {
			close(end)
			<-ended
		}()
		run()
	}()
	return max(largest, before) - before
}

// The worker that appends the segments of a trace with threads needs no more memory than
// ThreadedRoot predicts, whether the threads use separate lines, read the same lines, or invalidate
// each other's lines, and whatever the number of segments is.
func TestThreadedRootBoundsHeap(t *testing.T) {
	for _, c := range []struct {
		name           string
		shared, stores bool
		pairs          float64
	}{{"separate", false, true, testLines}, {"read", true, false, testThreads * testLines}, {"invalidated", true, true, testThreads * testLines}} {
		t.Run(c.name, func(t *testing.T) {
			source := threadedTrace(t, c.shared, c.stores, 2)
			spec := analysis.Spec{Analyses: analysis.Default}
			references := uint64(0)
			for _, chunk := range source.Chunks() {
				references += chunk.References
			}
			for _, segments := range []uint64{2, 6} {
				plan, err := analysis.NewPlan(spec, source, references/segments+1)
				if err != nil || len(plan.Stretches) < int(segments)-1 || plan.InOrderRuns() == 0 {
					t.Fatalf("%d segments, %d runs in order, error %v", len(plan.Stretches), plan.InOrderRuns(), err)
				}
				var encoded [][]byte
				for _, stretch := range plan.Stretches {
					s := analysis.NewStretcher(spec, source)
					s.Begin(stretch)
					for err = nil; err == nil; err = s.Step() {
					}
					if err != io.EOF {
						t.Fatal(err)
					}
					encoded = append(encoded, s.Segment(true).Profile.Encode())
				}
				var p *profile.Profile
				heap := most(func() {
					var joined bool
					p, joined, err = plan.Finish(source.Open(0, trace.AllKinds), source, func(yield func(*profile.Profile, error) bool) {
						for _, b := range encoded {
							if one, err := profile.Decode(b); !yield(one, err) {
								return
							}
						}
					}, func(analysis.Progress) error { return nil })
					if err != nil || !joined {
						t.Fatal(joined, err)
					}
				})
				if lines := p.Locality[0].Lines(); lines != testLines {
					t.Fatalf("the profile has %d lines, want %d", lines, testLines)
				}
				notes := min(float64(references)/float64(segments), c.pairs+testLines) // no line is accessed twice in a segment
				bound := ThreadedRoot(testLines, c.pairs, notes)
				t.Logf("%d segments, %d references: %.1f MB, at most %.1f MB predicted", len(plan.Stretches), references, float64(heap)/1e6, bound/1e6)
				if float64(heap) > bound {
					t.Errorf("the heap has %d bytes, want at most %.0f", heap, bound)
				}
			}
		})
	}
}
