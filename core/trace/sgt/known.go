package sgt

// known is what the file tells before a chunk: rows of the chunk may be of it only, and
// are given with no more.
type known struct {
	told
	blocks        int // whose steps are understood
	hasPC, hasArg bool
}

// learned takes note of what is known with the chunks that come.
func (r *Reader) learned() {
	if r.latest == nil || len(r.latest.tables) != len(r.tables) {
		r.shared = true
		r.latest = &known{*r.told, len(r.plans), r.hasPC, r.hasArg}
	}
}

// isNews tells whether more is known with a chunk than is shown.
func (r *Reader) isNews(k *known) bool { return r.now == nil || len(k.tables) > len(r.now.tables) }

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
