package sasmm

import (
	"io"

	"github.com/stackglass/stackglass/core/trace"
)

// lane contains the waiting rows of one core, which are merged next.
type lane struct {
	batch *trace.Batch
	given bool
}

// Next implements interleave.Stream.
func (l *lane) Next() (b *trace.Batch, from, to int, err error) {
	if l.given || l.batch.Len() == 0 {
		return nil, 0, 0, io.EOF
	}
	l.given = true
	return l.batch, 0, l.batch.Len(), nil
}

// enoughRows is a number of rows. If the order of executions does not matter, a merge starts as
// soon as this many rows are waiting.
const enoughRows = 2048

// queue appends the rows of an execution to the waiting rows of a core, and starts a merge if
// enough rows are waiting.
func (r *Reader) queue(x *execution, core int) {
	r.fill(x, core)
	if r.waiting >= enoughRows {
		r.flush()
	}
}

// flush starts to merge the waiting rows of all cores.
func (r *Reader) flush() {
	if r.waiting == 0 {
		return
	}
	r.cores, r.streams = r.cores[:0], r.streams[:0]
	for c := range r.lanes {
		if l := &r.lanes[c]; !l.given && l.batch.Len() > 0 {
			r.cores, r.streams = append(r.cores, uint32(c)), append(r.streams, l)
		}
	}
	r.merger.Begin(r.cores, r.streams)
	r.merging, r.waiting = true, 0
}

// fill appends the selected rows of an execution to the waiting rows of a core.
func (r *Reader) fill(x *execution, core int) {
	l := &r.lanes[core]
	b := l.batch
	if l.given {
		l.given = false
		b.Reset()
	}
	if r.known != nil {
		b.NeedSite()
	}
	if r.pcs {
		b.NeedPC()
	}
	if r.kinds&trace.EventKinds != 0 {
		b.NeedArg()
	}
	before := b.Len()
	for i := range x.cells {
		c := &x.cells[i]
		kind := c.kind
		if kind == trace.BlockEntry && !r.kinds.Has(kind) && r.kinds.Has(trace.BareBlock) && r.known.IsBare(c.site) {
			kind = trace.BareBlock
		}
		if !r.kinds.Has(kind) {
			continue
		}
		addr := x.addrs[i]
		if c.private {
			addr = moveToCore(addr, core)
		}
		b.Append(kind, addr, c.bytes, 0, c.pc)
		if b.Site != nil {
			b.Site[b.Len()-1] = c.site
		}
		if b.Arg != nil {
			b.Arg[b.Len()-1] = x.args[i]
		}
	}
	r.waiting += b.Len() - before
}

// beginReplay starts the replay of the section, which must be complete. The waiting rows are merged
// first.
func (r *Reader) beginReplay() {
	r.flush()
	r.keeping, r.replaying = false, true
	r.order.reset(&r.section.order)
	for i := range r.section.tracks {
		t := &r.section.tracks[i]
		if t.share = r.options.share(t.total); t.parallel && r.shared {
			t.cores = make([]cursor, r.options.Cores)
		}
		if t.parallel && !r.options.PerRegion {
			r.counts[t.block].Parallel = r.counts[t.block].Executions
		}
	}
}

// replay queues the next executions of the section, in trace order.
func (r *Reader) replay() {
	for !r.merging {
		n, ok := r.order.nextTrack()
		if !ok {
			r.replaying = false
			r.section.reset()
			return
		}
		t := &r.section.tracks[n]
		at := t.next
		t.next++
		switch {
		case !t.parallel:
			t.reader.read(t, at, &r.read)
			r.queue(&r.read, 0)
		case r.shared:
			if t.total == 1 || t.share.coreOf(at) == 0 {
				r.group, r.j = t, t.first
				t.first++
				r.flush()
				return
			}
		case t.total == 1:
			t.reader.read(t, at, &r.read)
			for core := range r.lanes {
				r.fill(&r.read, core)
			}
		default:
			t.reader.read(t, at, &r.read)
			r.queue(&r.read, t.share.coreOf(at))
		}
	}
}

// gather merges the j-th executions of a block on all cores. After core 0's last execution, it
// merges the remaining executions of the other cores.
func (r *Reader) gather() {
	t := r.group
	for core := range r.lanes {
		if r.j < t.share.count(core) {
			t.cores[core].read(t, t.share.nthExecution(core, r.j), &r.read)
			r.fill(&r.read, core)
		}
	}
	r.flush()
	r.j++
	if r.j < t.share.count(0) || r.j >= t.share.most() {
		r.group = nil
	}
}
