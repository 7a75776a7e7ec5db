package workers_test

import (
	"bytes"
	"io"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/analysis/locality"
	"github.com/stackglass/stackglass/core/analysis/sample"
	_ "github.com/stackglass/stackglass/core/analysis/sample/estimate" // the import registers the analysis of samples
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/stack/stacktest"
	"github.com/stackglass/stackglass/workers"
)

// The type "shelves" contains the spill store of one key.
type shelves struct {
	shelf   *stacktest.Shelf
	removed bool
	full    bool // whether the spill store is full
}

func (s *shelves) open(_ string, resume bool) (stack.Shelf, func(), error) {
	if !resume || s.shelf == nil {
		s.shelf = new(stacktest.Shelf)
	}
	return s, func() { s.removed, s.shelf = true, nil }, nil
}

func (s *shelves) Write(run, block uint32, data []byte) error {
	if s.full {
		return profile.ErrFull
	}
	return s.shelf.Write(run, block, data)
}
func (s *shelves) Read(run, block uint32) ([]byte, error) { return s.shelf.Read(run, block) }
func (s *shelves) Drop(run, block uint32) error           { return s.shelf.Drop(run, block) }
func (s *shelves) Bytes() uint64                          { return uint64(s.shelf.Blocks()) << 20 }

// newOutside returns a fixture whose host measures the memory of its models repeatedly. After the
// given number of measurements, the models are too large.
func newOutside(t *testing.T, at int64) (*fixture, *shelves) {
	f, s := newFixture(t), new(shelves)
	var turns atomic.Int64
	f.host.OpenShelf = s.open
	f.host.Live = func() uint64 {
		if turns.Add(1) > at {
			return 1 << 30
		}
		return 0
	}
	return f, s
}

const limit = 1 << 30

var outsideSpec = analysis.Spec{LineBytes: []uint32{32, 64}}

// The function "beyond" analyses a trace in a run that spills its stacks, and returns the profile.
func beyond(t *testing.T, b []byte) []byte {
	return direct(t, b, outsideSpec.Beyond(locality.Budget{Shelf: new(stacktest.Shelf)})).Encode()
}

// TestRunSpills checks that a run that exceeds its memory limit spills, and that its result equals
// the result of a run that spilled from the start. After the run, the spill store must be empty.
func TestRunSpills(t *testing.T) {
	b := din(300_000)
	f, s := newOutside(t, 3)
	var limits []uint64
	f.host.SetLimit = func(bytes uint64) { limits = append(limits, bytes) }
	f.serve()
	f.start(1, workers.Start{Key: "k", Name: "a.din", Spec: outsideSpec, Memory: limit}, bytesFile(b))
	if p := f.progress(); p.Beyond || p.Limit != limit {
		t.Errorf("began at %+v", p)
	}
	p := f.progress()
	for !p.Ending {
		p = f.progress()
	}
	if !p.Beyond || p.Outside == 0 {
		t.Errorf("ended at %+v", p)
	}
	if d, _ := f.done(); !bytes.Equal(d.Profile, beyond(t, b)) || !s.removed {
		t.Errorf("the profile differs from the profile of a run that spilled from its start, or spilled data remains (removed = %t)", s.removed)
	}
	f.start(2, workers.Start{Key: "l", Name: "a.din", Spec: outsideSpec}, bytesFile(b))
	if _, p := f.done(); p.State.Partial {
		t.Errorf("%+v", p.State)
	}
	if len(limits) != 2 || limits[0] != limit || limits[1] != 0 {
		t.Errorf("limits %v", limits)
	}
}

// TestRunWithoutSpillStore checks that a run that cannot spill stays in memory, and may use all
// available memory.
func TestRunWithoutSpillStore(t *testing.T) {
	b := din(100_000)
	o, err := sample.Parse("space=0.5")
	if err != nil {
		t.Fatal(err)
	}
	f, s := newOutside(t, 3)
	var limits []uint64
	f.host.SetLimit = func(bytes uint64) { limits = append(limits, bytes) }
	f.serve()
	f.start(1, workers.Start{Key: "k", Name: "a.din", Spec: analysis.Spec{Sample: o}, Memory: limit}, bytesFile(b))
	if d, p := f.done(); p.State.Partial || !d.Kept || !s.removed {
		t.Errorf("%+v, kept %t, removed %t", p.State, d.Kept, s.removed)
	}
	if len(limits) != 2 || limits[0] != limit || limits[1] != 0 {
		t.Errorf("limits %v", limits)
	}
}

// TestResumeSpilledRun checks that a run resumes from a checkpoint that it saved after it had begun
// to spill.
func TestResumeSpilledRun(t *testing.T) {
	b := din(800_000)
	f, s := newOutside(t, 3)
	f.host.CheckpointBytes, f.host.Yield = 300_000, runtime.Gosched
	f.serve()
	file := &stuck{bytes.NewReader(b[:len(b)*2/3]), make(chan struct{})}
	f.start(1, workers.Start{Key: "k", Name: "a.din", Spec: outsideSpec, Memory: limit},
		attached{open: func() io.ReadCloser { return file }, size: uint64(len(b))})
	for f.progress().References < 400_000 {
	}
	checkpoint, err := f.store.Get("k")
	if err != nil {
		t.Fatal(err)
	}
	f.asker.Close()
	close(file.free)
	if c, err := workers.DecodeCheckpoint(checkpoint); err != nil || c.Spec.Budget == nil {
		t.Fatalf("%+v, %v", c, err)
	}

	g, _ := newOutside(t, 3)
	g.store, g.host.Store, g.host.OpenShelf = f.store, f.store, s.open
	g.serve()
	g.start(1, workers.Start{Key: "k", Name: "a.din", Resume: true, Memory: limit}, bytesFile(b))
	if d, _ := g.done(); !bytes.Equal(d.Profile, beyond(t, b)) || !s.removed {
		t.Errorf("the profile differs from the profile of a run that spilled from its start, or spilled data remains (removed = %t)", s.removed)
	}
}

// TestNoRoomToSpill checks that, if the spill store is full, a run with a checkpoint keeps the
// checkpoint, and a run without a checkpoint keeps its counts.
func TestNoRoomToSpill(t *testing.T) {
	b := din(800_000)
	for _, checkpoints := range []uint64{0, 300_000} {
		f, s := newOutside(t, 30)
		f.host.CheckpointBytes, f.host.Yield = checkpoints, runtime.Gosched
		s.full = true
		f.serve()
		f.start(1, workers.Start{Key: "k", Name: "a.din", Spec: outsideSpec, Memory: limit}, bytesFile(b))
		if checkpoints > 0 {
			wantContains(t, f.failed(), "The storage is full", "last checkpoint and all other analyses are kept")
			if e := f.entry(); e.State != profile.EntryInterrupted {
				t.Errorf("entry %+v", e)
			}
		} else {
			_, p := f.done()
			wantContains(t, p.State.Reason, profile.ErrFull.Error())
			if e := f.entry(); e.State != profile.EntryPartial || e.References == 0 {
				t.Errorf("entry %+v", e)
			}
		}
		f.end() // the host reports a failure before it deletes the spill store
		if !s.removed {
			t.Error("spilled data remains although no run needs it")
		}
	}
}

// TestCancelWhileSpilled checks that a run can be paused and cancelled while it is reading spilled
// data.
func TestCancelWhileSpilled(t *testing.T) {
	f, _ := newOutside(t, 3)
	f.serve()
	part := &endless{part: din(100_000)}
	f.start(1, workers.Start{Key: "k", Name: "a.din", Spec: outsideSpec, Memory: limit}, attached{open: func() io.ReadCloser { return part }})
	for !f.progress().Beyond {
	}
	f.send(workers.Message{Type: workers.TypePause, Job: 1})
	for !f.progress().Paused {
	}
	f.send(workers.Message{Type: workers.TypeResume, Job: 1})
	for f.progress().Paused {
	}
	f.send(workers.Message{Type: workers.TypeCancel, Job: 1})
	if _, p := f.done(); !p.State.Partial || p.Totals.AllReferences() == 0 {
		t.Errorf("%+v", p.State)
	}
}
