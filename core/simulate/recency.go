package simulate

import "github.com/stackglass/stackglass/core/trace"

// recency is LRU for few ways. The frames of a set are in the order of their use, most recent
// first, and empty ones last.
type recency struct {
	index
	ways   uint64
	frames []frame // set by set
}

func newRecency(where index, ways uint64) *recency {
	return &recency{index: where, ways: ways, frames: emptyFrames(where.sets * ways)}
}

func (t *recency) of(line trace.Line) []frame {
	at := t.set(line) * t.ways
	return t.frames[at : at+t.ways]
}

func (t *recency) touch(line trace.Line, dirty bool) bool {
	set, wanted := t.of(line), frameOf(line, dirty)
	if set[0].line() == line { // mostly
		set[0] |= wanted
		return true
	}
	for i, f := range set {
		if f.line() == line {
			toFront(set[:i+1], f|wanted)
			return true
		}
	}
	return false
}

// toFront inserts f at the front and drops the last frame.
func toFront(set []frame, f frame) {
	for i := len(set) - 1; i > 0; i-- {
		set[i] = set[i-1]
	}
	set[0] = f
}

func (t *recency) insert(line trace.Line, dirty bool) (victim trace.Line, victimDirty, evicted bool) {
	set := t.of(line)
	last := set[len(set)-1]
	toFront(set, frameOf(line, dirty))
	return last.line(), last.dirty(), last != emptyFrame
}

func (t *recency) remove(line trace.Line) (present, dirty bool) {
	set := t.of(line)
	for i, f := range set {
		if f.line() == line {
			copy(set[i:], set[i+1:])
			set[len(set)-1] = emptyFrame
			return true, f.dirty()
		}
	}
	return false, false
}

// find returns the frame of a line, or nil.
func (t *recency) find(line trace.Line) *frame {
	set := t.of(line)
	for i, f := range set {
		if f.line() == line {
			return &set[i]
		}
	}
	return nil
}

func (t *recency) look(line trace.Line) (present, dirty bool) {
	f := t.find(line)
	return f != nil, f != nil && f.dirty()
}

func (t *recency) wash(line trace.Line) {
	if f := t.find(line); f != nil {
		*f &^= 1
	}
}

func (t *recency) clean(back func(trace.Line)) { cleanFrames(t.frames, back) }

func (t *recency) resident() (lines uint64) {
	for _, f := range t.frames {
		if f != emptyFrame {
			lines++
		}
	}
	return lines
}
