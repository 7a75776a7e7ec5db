package misses

import "math/bits"

// span is a run of bytes or lines, both ends included.
type span struct{ first, last uint64 }

func (s *span) join(o span) {
	s.first, s.last = min(s.first, o.first), max(s.last, o.last)
}

// sweep extends a span to all that it passes over in steps; ok is false if it would leave the
// address space.
func (s *span) sweep(step, steps uint64) (ok bool) {
	if step == 0 || steps == 0 {
		return true
	}
	back := int64(step) < 0
	if back {
		step = -step
	}
	over, far := bits.Mul64(step, steps)
	if over != 0 {
		return false
	}
	if back {
		ok = far <= s.first
		s.first -= far
		return ok
	}
	s.last += far
	return s.last >= far
}

// hullOf sets, for each reference below a node with these parameters, a span of bytes that
// contains all that it touches. ok is false if some would leave the address space.
//
// For a loop with equal iterations, it is the span of the first iteration, swept. Where trip counts
// below vary, it is the union of the spans of the first and the last iteration: how far an inner
// loop reaches, if it runs at least once, is a convex function of the iteration.
func (b *block) hullOf(p []uint64, out []span) (ok bool) {
	if !b.loop {
		if b.counted {
			out[0] = span{p[0], p[0] + b.bytes - 1}
			return out[0].first <= out[0].last
		}
		return true
	}
	if len(b.leaves) == 0 {
		return true
	}
	out = out[:len(b.leaves)]
	if !b.hullOfBody(p[1:], out) {
		return false
	}
	trips := uint64(max(1, int64(p[0])))
	if trips == 1 {
		return true
	}
	if !b.varies {
		for i := range out {
			if !out[i].sweep(b.leaves[i].step, trips-1) {
				return false
			}
		}
		return true
	}
	last := make([]uint64, len(b.steps))
	for i, step := range b.steps {
		last[i] = p[1+i] + step*(trips-1)
	}
	at := make([]span, len(out))
	if !b.hullOfBody(last, at) {
		return false
	}
	for i := range out {
		l := &b.leaves[i]
		moved := span{p[1+l.param], p[1+l.param]}
		if !moved.sweep(l.step, trips-1) {
			return false
		}
		out[i].join(at[i])
	}
	return true
}

func (b *block) hullOfBody(p []uint64, out []span) bool {
	for i := range b.items {
		it := &b.items[i]
		if it.events {
			continue
		}
		if !it.hullOf(p[it.at:it.at+it.n], out) {
			return false
		}
		out = out[it.width():]
	}
	return true
}

// width returns the number of references below.
func (b *block) width() int {
	if b.loop {
		return len(b.leaves)
	}
	if b.counted {
		return 1
	}
	return 0
}
