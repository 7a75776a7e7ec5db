package workers

import (
	"errors"
	"io"
	"runtime"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/analysis/locality"
	"github.com/stackglass/stackglass/core/stack"
)

// insideShare is how much of the memory models in it may take, in hundredths, and
// modelShare what they may outside of it: results, the file and what is free between two
// collections need some, and segments leave gaps behind, which WebAssembly's memory
// keeps.
const (
	insideShare = 42
	modelShare  = 34
)

// outside is what a job has outside of memory.
type outside struct {
	shelf  stack.Shelf // nil: nothing
	remove func()      // removes what is there
	needed bool        // by the last checkpoint
	stays  bool        // in memory, come what may
	looked uint64      // bytes that were in use when that was looked at closely
	held   []Message   // that came while a shelf was at work
	ended  error       // how the run is to end, as one of them said
}

// errNoShelf tells that a run with a budget has no place for what is beyond it.
var errNoShelf = errors.New("there is no storage here for what does not fit in memory; analyse without a limit of memory")

// fullOutside is what a run says that can go on once there is room.
const fullOutside = "The storage is full, and what does not fit in memory has no place there. What this analysis did up to its last checkpoint is kept, and so are all others. " +
	"Delete kept analyses or free space on the disk, and go on from the list; or analyse with more memory."

// leftOut is what is said of a whole result whose stacks lay outside of memory.
const leftOut = "its lines did not fit in memory, so that code, data and sharing between threads were left out"

// limit has the program keep within the run's memory.
func (j *job) limit() {
	if j.host.OpenShelf == nil {
		j.start.Memory = 0 // nothing can go elsewhere
	}
	if j.host.SetLimit != nil {
		j.host.SetLimit(j.start.Memory)
	}
	if b := j.start.Spec.Budget; b != nil && j.start.Memory > 0 {
		b.Bytes = j.start.Memory / 100 * modelShare
	}
}

// openShelf gives a budget its shelf; as it is, where the run goes on.
func (j *job) openShelf(b *locality.Budget, goesOn bool) error {
	shelf, remove, err := j.host.OpenShelf(j.start.Key, goesOn)
	if err != nil {
		return err
	}
	j.shelf, j.remove = shelf, remove
	b.Shelf = turning{shelf, j}
	return nil
}

// isTooLarge tells that the models take all of the memory that they may.
func (j *job) isTooLarge() bool {
	h, most := j.host, j.start.Memory/100*insideShare
	if most == 0 || j.shelf != nil || j.stays {
		return false
	}
	if d, ok := j.runner.(*analysis.Divided); ok && j.team.memory() > 0 && h.Memory()+j.team.memory() > j.start.Memory {
		d.Close() // helpers take some of it
	}
	if h.OpenShelf == nil || h.Live() < most {
		return false
	}
	if h.Live() < j.looked+most/10 {
		return false
	}
	runtime.GC()
	j.looked = h.Live()
	return j.looked >= most
}

// spill moves the stacks out of memory. Where that cannot be, the run goes on as it is,
// with what memory there is: to look for garbage again and again would find none.
func (j *job) spill() {
	defer func() {
		if j.stays {
			j.start.Memory = 0
			j.limit()
		}
	}()
	b := locality.Budget{Bytes: j.start.Memory / 100 * modelShare}
	if j.stays = j.openShelf(&b, false) != nil; j.stays {
		return
	}
	now, ok := j.runner.Spill(b)
	if j.stays = !ok; j.stays {
		j.unshelve()
		return
	}
	j.start.Spec, j.keeper.Spec, j.unsaved = now, now, ""
	j.snapshot.next = j.host.Now() // what is shown is what is analysed
	j.shown = 0
}

// bytesOutside is how much lies on the shelf, as far as it is known.
func (j *job) bytesOutside() uint64 {
	if s, ok := j.shelf.(interface{ Bytes() uint64 }); ok {
		return s.Bytes()
	}
	return 0
}

// closeShelf lets go of what lies outside, and leaves it there if a checkpoint needs it.
func (j *job) closeShelf() {
	if !j.needed {
		j.unshelve()
	} else if c, ok := j.shelf.(io.Closer); ok {
		_ = c.Close()
	}
}

// unshelve removes what lies outside; there tells that something did.
func (j *job) unshelve() (there bool) {
	if j.shelf == nil {
		return false
	}
	j.shelf = nil
	j.remove()
	return true
}

// turning is a shelf that gives the job a turn now and then: to go through all lines
// takes seconds.
type turning struct {
	stack.Shelf
	job *job
}

// Write implements [stack.Shelf].
func (t turning) Write(run, block uint32, data []byte) error {
	t.job.listen()
	return t.Shelf.Write(run, block, data)
}

// Sync has all that was written lie there for good.
func (t turning) Sync() error {
	if s, ok := t.Shelf.(interface{ Sync() error }); ok {
		return s.Sync()
	}
	return nil
}

// listen answers messages while a shelf is at work; what has to wait is held until it
// is not. A run that is cancelled ends then.
func (j *job) listen() {
	if now := j.host.Now(); !j.turn.due(now) {
		return
	}
	j.host.Yield()
	held := j.held
	j.held = nil
	for j.ended == nil {
		m, ok, err := j.message()
		if err != nil {
			j.ended = err
		}
		if !ok {
			break
		}
		if m.Type == TypePause || m.Type == TypeResume {
			held = append(held, m)
		} else {
			j.ended = j.take(m)
		}
	}
	j.held = held
	now := j.host.Now()
	if j.progress.due(now) || j.ended == errCancelled {
		_ = j.sendProgress(func(p *Progress) { p.Ending = j.ended != nil })
		j.progress.ran(now, now)
	}
	j.turn.ran(now, now)
}
