package workers

import (
	"errors"
	"io"
	"runtime"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/analysis/locality"
	"github.com/stackglass/stackglass/core/stack"
)

// insideShare is the percentage of the memory limit that models may use before they are spilled.
// modelShare is the percentage of the memory limit that the models may use after their stacks were
// spilled. Results, the file and garbage need the rest of the limit. In addition, segments leave
// gaps in WebAssembly's memory, which never shrinks.
const (
	insideShare = 42
	modelShare  = 34
)

// spillState contains the spill store of a job and its state.
type spillState struct {
	shelf  stack.Shelf // nil: nothing is spilled
	remove func()      // deletes the spill store
	needed bool        // whether the last checkpoint needs the spill store
	stays  bool        // whether the stacks stay in memory because spilling is impossible
	looked uint64      // bytes in use after the last garbage collection that isTooLarge started
	held   []Message   // messages that arrived while the spill store was busy
	ended  error       // the error that a message in the field "held" caused; it ends the run
}

// errNoShelf reports that there is no spill store for a run with a budget.
var errNoShelf = errors.New("this browser cannot store data that does not fit in memory; analyse the trace without a memory limit")

// fullOutside is the message about a run that stopped because the storage is full, and that can be
// resumed when the storage has room.
const fullOutside = "The storage is full, so data that does not fit in memory cannot be stored. The work up to the last checkpoint and all other analyses are kept. " +
	"Delete stored analyses or free disk space, and then resume the analysis from the list; or analyse the trace with more memory."

// leftOut is the reason for missing analyses in a complete result whose stacks were spilled.
const leftOut = "the lines of the trace did not fit in memory, so misses by code and data, and sharing between threads, were not analysed"

// setLimit sets the program's memory limit to the memory limit of the run.
func (j *job) setLimit() {
	if j.host.OpenShelf == nil {
		j.start.Memory = 0 // nothing can be spilled
	}
	if j.host.SetLimit != nil {
		j.host.SetLimit(j.start.Memory)
	}
	if b := j.start.Spec.Budget; b != nil && j.start.Memory > 0 {
		b.Bytes = j.start.Memory / 100 * modelShare
	}
}

// openShelf opens the spill store of a budget. The spill store is empty unless the run is resumed.
func (j *job) openShelf(b *locality.Budget, resume bool) error {
	shelf, remove, err := j.host.OpenShelf(j.start.Key, resume)
	if err != nil {
		return err
	}
	j.shelf, j.remove = shelf, remove
	b.Shelf = yieldingShelf{shelf, j}
	return nil
}

// isTooLarge reports whether the models exceed their share of the memory limit.
func (j *job) isTooLarge() bool {
	h, most := j.host, j.start.Memory/100*insideShare
	if most == 0 || j.shelf != nil || j.stays {
		return false
	}
	if d, ok := j.runner.(*analysis.Divided); ok && j.team.memory() > 0 && h.Memory()+j.team.memory() > j.start.Memory {
		d.Close() // end the helpers, which use a part of the memory
	}
	if h.OpenShelf == nil || h.Live() < max(most, j.looked+most/10) {
		return false
	}
	runtime.GC()
	j.looked = h.Live()
	return j.looked >= most
}

// spill spills the stacks. If spilling is impossible, the run continues with all available memory,
// because more frequent garbage collections would not free more memory.
func (j *job) spill() {
	defer func() {
		if j.stays {
			j.start.Memory = 0
			j.setLimit()
		}
	}()
	b := locality.Budget{Bytes: j.start.Memory / 100 * modelShare}
	if j.stays = j.openShelf(&b, false) != nil; j.stays {
		return
	}
	now, ok := j.runner.Spill(b)
	if j.stays = !ok; j.stays {
		j.deleteShelf()
		return
	}
	j.start.Spec, j.keeper.Spec, j.unsaved = now, now, ""
	j.snapshot.next = j.host.Now() // send a snapshot that contains only the remaining analyses
	j.shown = 0
}

// bytesOutside returns the number of spilled bytes, or 0 if it is unknown.
func (j *job) bytesOutside() uint64 {
	if s, ok := j.shelf.(interface{ Bytes() uint64 }); ok {
		return s.Bytes()
	}
	return 0
}

// closeShelf closes the spill store, and deletes it unless a checkpoint needs it.
func (j *job) closeShelf() {
	if !j.needed {
		j.deleteShelf()
	} else if c, ok := j.shelf.(io.Closer); ok {
		_ = c.Close()
	}
}

// deleteShelf deletes the spill store. The result reports whether there was a spill store.
func (j *job) deleteShelf() (there bool) {
	if j.shelf == nil {
		return false
	}
	j.shelf = nil
	j.remove()
	return true
}

// yieldingShelf is a spill store. Each write lets the job handle messages, because a pass of the
// stacks over all lines can take seconds.
type yieldingShelf struct {
	stack.Shelf
	job *job
}

// Write implements [stack.Shelf].
func (t yieldingShelf) Write(run, block uint32, data []byte) error {
	t.job.listen()
	return t.Shelf.Write(run, block, data)
}

// Sync makes all written data durable.
func (t yieldingShelf) Sync() error {
	if s, ok := t.Shelf.(interface{ Sync() error }); ok {
		return s.Sync()
	}
	return nil
}

// listen handles messages while a spill store is busy, and keeps the messages that have to wait. If
// a Cancel has arrived, the run ends.
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
			j.ended = j.handle(m)
		}
	}
	j.held = held
	now := j.host.Now()
	if j.progress.due(now) || j.ended == errCancelled {
		_ = j.sendProgress(func(p *Progress) { p.Ending = j.ended != nil })
		j.progress.recordRun(now, now)
	}
	j.turn.recordRun(now, now)
}
