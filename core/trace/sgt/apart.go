package sgt

import (
	"io"

	"github.com/stackglass/stackglass/core/trace"
)

// apart is the position of a reader in chunks of one thread: see [trace.Mover].
type apart struct {
	is   bool
	here trace.Position // behind the rows that were returned
	stop trace.Position // of [Reader.Until]
}

// gave advances the position by rows of a chunk.
func (a *apart) gave(chunk uint64, rows int) {
	if a.here.Chunk != chunk {
		a.here = trace.Position{Chunk: chunk}
	}
	a.here.Rows += uint64(rows)
}

// room limits b to the rows of a chunk before the stop, and reports whether there may be any.
func (a *apart) room(b *trace.Batch, chunk uint64) bool {
	if chunk < a.stop.Chunk {
		return true
	}
	left := uint64(0)
	if chunk == a.stop.Chunk {
		left = a.stop.Rows
		if a.here.Chunk == chunk {
			left -= min(left, a.here.Rows)
		}
	}
	b.Resize(int(min(uint64(b.Cap()), left)))
	return left > 0
}

// Position is behind the rows that were returned.
func (r *Reader) Position() trace.Position { return r.apart.here }

// Until implements [trace.Mover]. The chunks must be of one thread: see [Source.Chunks].
func (r *Reader) Until(stop trace.Position) {
	r.apart.is, r.apart.stop = true, stop
	r.early = earlyLimit{} // chunks may be skipped
}

// Pass implements [trace.Mover]. It reads chunks without decoding them.
func (r *Reader) Pass(chunk uint64) error {
	for r.err == nil {
		l := r.top()
		switch {
		case l == nil && chunk == trace.AtEnd:
			r.shown = *r.told
			r.apart.here = trace.Position{Chunk: trace.AtEnd}
			return nil
		case l == nil:
			if r.err = r.end(); r.err == io.EOF {
				return trace.ErrNotThere
			}
			return r.err
		case l.queue[0].at > chunk || l.queue[0].at == chunk && r.apart.here.Chunk == chunk:
			return trace.ErrNotThere
		case l.queue[0].at == chunk:
			r.apart.here = trace.Position{Chunk: chunk}
			return nil
		}
		r.drop(l)
	}
	return r.err
}
