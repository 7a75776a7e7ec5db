package loops

import "github.com/stackglass/stackglass/core/trace"

// Only selects records by kind: the result is a tree of all records of the given kinds. If t
// contains no other records, the result is t itself.
func (t *Tree) Only(kinds trace.Kinds) *Tree {
	return t.Map(func(r Reference) (Reference, bool) { return r, kinds.Has(r.Kind) })
}

// Map returns a tree in which f has replaced or removed references. Map also removes loops that
// have become empty.
func (t *Tree) Map(f func(Reference) (Reference, bool)) *Tree {
	m := mapper{assembler: newAssembler(), refs: make([]int32, len(t.refs))}
	to := m.tree
	to.has = t.has
	same := true
	for i, r := range t.refs {
		now, stays := f(r)
		same = same && stays && now == r
		to.refs, to.streams = append(to.refs, now), append(to.streams, stream{})
		if m.refs[i] = -1; stays {
			m.refs[i], to.streams[i] = int32(i), t.streams[i]
		}
	}
	if same {
		return t
	}
	m.add(t)
	if rows, err := to.count(maxCounted); err == nil {
		to.rows, to.bodies = rows.saturated(), rows.bodies
	} else {
		to.rows, to.bodies = t.rows, t.bodies // the counts of the tree t are upper bounds
	}
	return to
}

// Join returns a tree that contains the records of all given trees, in order. Join does not change
// the given trees.
func Join(trees ...*Tree) *Tree {
	if len(trees) == 1 {
		return trees[0]
	}
	m := mapper{assembler: newAssembler()}
	to := m.tree
	for _, t := range trees {
		to.has = to.has.or(t.has)
		m.refs = make([]int32, len(t.refs))
		for i, r := range t.refs {
			ref, _ := m.reference(r)
			m.refs[i] = int32(ref)
			to.streams[ref].join(&t.streams[i])
		}
		m.add(t)
		if to.rows += t.rows; to.rows < t.rows {
			to.rows = 1<<64 - 1
		}
		to.bodies += t.bodies
	}
	return to
}

// mapper adds the nodes of a tree to another tree.
type mapper struct {
	assembler
	refs   []int32 // by reference: its number in the new tree, or -1 if it is removed
	from   *Tree
	shapes []mapped
}

type mapped struct {
	known  bool
	id     uint32
	params []int32 // indices of the parameters that remain; nil if the shape is removed
}

func (m *mapper) add(t *Tree) {
	m.from, m.shapes = t, make([]mapped, len(t.shapes.all))
	to := m.tree
	for id, params := range t.tops() {
		now := m.shape(id)
		if now.params == nil {
			continue
		}
		to.nodes = append(to.nodes, now.id)
		for _, i := range now.params {
			to.params = append(to.params, params[i])
		}
	}
}

func (m *mapper) shape(id uint32) mapped {
	if m.shapes[id].known {
		return m.shapes[id]
	}
	s := &m.from.shapes.all[id]
	now := mapped{known: true}
	if s.loop {
		now.id, now.params = m.loop(s)
	} else if ref := m.refs[s.ref]; ref >= 0 {
		now.id, now.params = m.leaf(uint32(ref), s.wild), []int32{0}
	}
	m.shapes[id] = now
	return now
}

func (m *mapper) loop(s *shape) (id uint32, params []int32) {
	var body []uint32
	var steps []uint64
	params = []int32{0}
	for i := range s.items {
		it := &s.items[i]
		now := m.shape(it.shape)
		if now.params == nil {
			continue
		}
		body = append(body, now.id)
		for _, p := range now.params {
			params = append(params, 1+it.at+p)
			steps = append(steps, s.steps[it.at+p])
		}
	}
	if body == nil {
		return 0, nil
	}
	return m.tree.shapes.loop(body, steps), params
}

// assembler adds references and leaves to a tree, and avoids duplicates.
type assembler struct {
	tree   *Tree
	refs   map[Reference]uint32
	leaves map[leafKey]uint32 // shapes of the leaves
}

// leafKey identifies a leaf's shape.
type leafKey struct {
	ref  uint32
	wild bool
}

func newAssembler() assembler {
	return assembler{tree: newTree(), refs: map[Reference]uint32{}, leaves: map[leafKey]uint32{}}
}

// reference returns the number of a reference, and whether it is new.
func (a *assembler) reference(r Reference) (ref uint32, fresh bool) {
	ref, known := a.refs[r]
	if !known {
		ref = uint32(len(a.tree.refs))
		a.refs[r] = ref
		a.tree.refs, a.tree.streams = append(a.tree.refs, r), append(a.tree.streams, stream{})
	}
	return ref, !known
}

func (a *assembler) leaf(ref uint32, wild bool) uint32 {
	key := leafKey{ref, wild}
	shape, known := a.leaves[key]
	if !known {
		shape = a.tree.shapes.leaf(ref, wild)
		a.leaves[key] = shape
	}
	return shape
}
