package simulate

import (
	"github.com/stackglass/stackglass/core/trace"
)

// list implements LRU for many ways. A table maps a line to its node, and the nodes of a set form a
// ring in LRU order. The cost of an access therefore does not depend on the number of ways. Memory
// grows with the number of lines.
type list struct {
	index
	ways   uint64
	held   []uint64              // number of lines in each set
	at     map[trace.Line]uint32 // the node of each line
	nodes  []node                // the end node of each set's ring, followed by the nodes of lines
	unused []uint32              // nodes that can be reused
}

// node is a line in the ring of its set. The end node of the ring is between the least and the most
// recently used line.
type node struct {
	frame          frame
	previous, next uint32
}

func newList(where index, ways uint64) *list {
	t := &list{index: where, ways: ways, held: make([]uint64, where.sets), at: map[trace.Line]uint32{}, nodes: make([]node, where.sets)}
	for i := range t.nodes {
		t.nodes[i] = node{emptyFrame, uint32(i), uint32(i)}
	}
	return t
}

func (t *list) touch(line trace.Line, dirty bool) bool {
	wanted, end := frameOf(line, dirty), uint32(t.set(line))
	if first := &t.nodes[t.nodes[end].next]; first.frame.line() == line { // the most frequent case: the line is already the most recently used line of its set
		first.frame |= wanted
		return true
	}
	n, found := t.at[line]
	if found {
		t.nodes[n].frame |= wanted
		t.unlink(n)
		t.toFront(n, end)
	}
	return found
}

func (t *list) insert(line trace.Line, dirty bool) (victim trace.Line, victimDirty, evicted bool) {
	set := t.set(line)
	if t.held[set] == t.ways {
		last := t.nodes[t.nodes[set].previous].frame
		t.remove(last.line())
		victim, victimDirty, evicted = last.line(), last.dirty(), true
	}
	n := t.newNode()
	t.nodes[n].frame = frameOf(line, dirty)
	t.at[line] = n
	t.held[set]++
	t.toFront(n, uint32(set))
	return victim, victimDirty, evicted
}

func (t *list) remove(line trace.Line) (present, dirty bool) {
	n, found := t.at[line]
	if !found {
		return false, false
	}
	t.unlink(n)
	delete(t.at, line)
	t.held[t.set(line)]--
	t.unused = append(t.unused, n)
	return true, t.nodes[n].frame.dirty()
}

func (t *list) peek(line trace.Line) (present, dirty bool) {
	n, found := t.at[line]
	return found, found && t.nodes[n].frame.dirty()
}

func (t *list) markClean(line trace.Line) {
	if n, found := t.at[line]; found {
		t.nodes[n].frame &^= 1
	}
}

func (t *list) newNode() uint32 {
	if last := len(t.unused) - 1; last >= 0 {
		n := t.unused[last]
		t.unused = t.unused[:last]
		return n
	}
	t.nodes = append(t.nodes, node{})
	return uint32(len(t.nodes) - 1)
}

func (t *list) unlink(n uint32) {
	previous, next := t.nodes[n].previous, t.nodes[n].next
	t.nodes[previous].next, t.nodes[next].previous = next, previous
}

// toFront inserts a node after the end node of the set's ring.
func (t *list) toFront(n, end uint32) {
	first := t.nodes[end].next
	t.nodes[n].previous, t.nodes[n].next = end, first
	t.nodes[end].next, t.nodes[first].previous = n, n
}

func (t *list) cleanAll(back func(trace.Line)) {
	for end := range uint32(t.sets) {
		for n := t.nodes[end].next; n != end; n = t.nodes[n].next {
			if f := t.nodes[n].frame; f.dirty() {
				t.nodes[n].frame &^= 1
				back(f.line())
			}
		}
	}
}

func (t *list) each(f func(trace.Line)) {
	for line := range t.at {
		f(line)
	}
}

func (t *list) resident() (lines uint64) { return uint64(len(t.at)) }

// recency implements LRU for few ways. The frames of a set are in LRU order: the most recently used
// frame is first, and empty frames are last.
type recency struct {
	index
	ways   uint64
	frames []frame // frames of all sets, set by set
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
	if set[0].line() == line { // the most frequent case: the line is already the most recently used line of its set
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

// find returns the frame that contains a line, or nil if the line is absent.
func (t *recency) find(line trace.Line) *frame {
	set := t.of(line)
	for i, f := range set {
		if f.line() == line {
			return &set[i]
		}
	}
	return nil
}

func (t *recency) peek(line trace.Line) (present, dirty bool) {
	f := t.find(line)
	return f != nil, f != nil && f.dirty()
}

func (t *recency) markClean(line trace.Line) {
	if f := t.find(line); f != nil {
		*f &^= 1
	}
}

func (t *recency) cleanAll(back func(trace.Line)) { cleanFrames(t.frames, back) }

func (t *recency) each(f func(trace.Line)) { eachFrame(t.frames, f) }

func (t *recency) resident() (lines uint64) {
	for _, f := range t.frames {
		if f != emptyFrame {
			lines++
		}
	}
	return lines
}
