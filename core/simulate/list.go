package simulate

import "github.com/stackglass/stackglass/core/trace"

// list is LRU for many ways. A table finds a line's node, and the nodes of a set are a ring in
// the order of their use, so that the cost of an access does not depend on the number of
// ways. Memory grows with the number of lines.
type list struct {
	index
	ways   uint64
	held   []uint64              // lines in each set
	at     map[trace.Line]uint32 // the node of each line
	nodes  []node                // the ends of the sets' rings, then lines
	unused []uint32              // nodes without a line
}

// node is a line in its set's ring. The ring's end is between the least and the most recently
// used line.
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
	if first := &t.nodes[t.nodes[end].next]; first.frame.line() == line { // mostly
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

func (t *list) look(line trace.Line) (present, dirty bool) {
	n, found := t.at[line]
	return found, found && t.nodes[n].frame.dirty()
}

func (t *list) wash(line trace.Line) {
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

// toFront inserts a node after the end of its set's ring.
func (t *list) toFront(n, end uint32) {
	first := t.nodes[end].next
	t.nodes[n].previous, t.nodes[n].next = end, first
	t.nodes[end].next, t.nodes[first].previous = n, n
}

func (t *list) clean(back func(trace.Line)) {
	for end := range uint32(t.sets) {
		for n := t.nodes[end].next; n != end; n = t.nodes[n].next {
			if f := t.nodes[n].frame; f.dirty() {
				t.nodes[n].frame &^= 1
				back(f.line())
			}
		}
	}
}

func (t *list) resident() (lines uint64) { return uint64(len(t.at)) }
