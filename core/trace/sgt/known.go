package sgt

import "github.com/stackglass/stackglass/core/trace"

// known is what the file tells before a chunk: rows of the chunk may be of it only, and
// are given with no more.
type known struct {
	tables        int // number of those before it
	program       trace.Program
	blocks        int
	hasPC, hasArg bool
}

// learned takes note of what is known with the chunks that come.
func (r *Reader) learned() {
	if r.latest == nil || r.latest.tables != len(r.tables) {
		r.shared = true
		r.latest = &known{len(r.tables), r.program, len(r.plans), r.hasPC, r.hasArg}
	}
}

// isNews tells whether more is known with a chunk than is shown.
func (r *Reader) isNews(k *known) bool { return r.now == nil || k.tables > r.now.tables }

// peek reads up to the first chunk. The error tells that there is none.
func (r *Reader) peek() error {
	if !r.begun && r.ended == nil {
		if r.ahead, r.ended = r.source.next(r); r.ended != nil {
			return r.ended
		}
	}
	return nil
}

// read gives the next chunk of the file.
func (r *Reader) read() (*chunk, error) {
	if c := r.ahead; c != nil {
		r.ahead = nil
		return c, nil
	}
	return r.source.next(r)
}
