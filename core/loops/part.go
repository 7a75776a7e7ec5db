package loops

import "github.com/stackglass/stackglass/core/trace"

// Only returns the tree of the records of some kinds, or t itself if it has no others.
func (t *Tree) Only(kinds trace.Kinds) *Tree {
	return t.Map(func(r Reference) (Reference, bool) { return r, kinds.Has(r.Kind) })
}

// Map returns the tree in which f replaces or removes each reference. Loops that become empty are
// removed too.
func (t *Tree) Map(f func(Reference) (Reference, bool)) *Tree {
	m := &mapper{from: t, to: newTree(), shapes: make([]mapped, len(t.shapes.all))}
	m.to.has = t.has
	same := true
	for i, r := range t.refs {
		now, stays := f(r)
		same = same && stays && now == r
		s := stream{}
		if stays {
			s = t.streams[i]
		}
		m.to.refs, m.to.streams, m.stays = append(m.to.refs, now), append(m.to.streams, s), append(m.stays, stays)
	}
	if same {
		return t
	}
	to := m.to
	for id, params := range t.tops() {
		if now := m.shape(id); now.params != nil {
			to.nodes = append(to.nodes, now.id)
			for _, i := range now.params {
				to.params = append(to.params, params[i])
			}
		}
	}
	if rows, err := to.count(mostCounted); err == nil {
		to.rows, to.bodies = rows.most(), rows.bodies
	} else {
		to.rows, to.bodies = t.rows, t.bodies // at most
	}
	return to
}

// mapper maps shapes.
type mapper struct {
	from, to *Tree
	stays    []bool // by reference
	shapes   []mapped
}

// mapped is what a shape becomes.
type mapped struct {
	known  bool
	id     uint32
	params []int32 // those of the old shape that stay; nil: the shape is removed
}

func (m *mapper) shape(id uint32) mapped {
	if m.shapes[id].known {
		return m.shapes[id]
	}
	s := &m.from.shapes.all[id]
	now := mapped{known: true}
	switch {
	case s.loop:
		now.id, now.params = m.loop(s)
	case m.stays[s.ref]:
		now.id, now.params = m.to.shapes.leaf(s.ref, s.wild), []int32{0}
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
	return m.to.shapes.loop(body, steps), params
}

// Join returns the tree of traces that follow each other. It leaves the given trees as they are.
func Join(trees ...*Tree) *Tree {
	if len(trees) == 1 {
		return trees[0]
	}
	j := &joiner{assembler: newAssembler()}
	for _, t := range trees {
		j.add(t)
	}
	return j.tree
}

type joiner struct {
	assembler
	shapes []uint32 // by shape of the tree that is added: 1 + the new shape
}

func (j *joiner) add(t *Tree) {
	to := j.tree
	to.has = to.has.or(t.has)
	refs := make([]uint32, len(t.refs))
	for i, r := range t.refs {
		refs[i], _ = j.reference(r)
		to.streams[refs[i]].join(&t.streams[i])
	}
	j.shapes = make([]uint32, len(t.shapes.all))
	for _, id := range t.nodes {
		to.nodes = append(to.nodes, j.shape(t, refs, id))
	}
	to.params = append(to.params, t.params...)
	if to.rows += t.rows; to.rows < t.rows {
		to.rows = 1<<64 - 1
	}
	to.bodies += t.bodies
}

func (j *joiner) shape(t *Tree, refs []uint32, id uint32) uint32 {
	if j.shapes[id] > 0 {
		return j.shapes[id] - 1
	}
	s := &t.shapes.all[id]
	var now uint32
	if s.loop {
		body := make([]uint32, len(s.items))
		for i := range s.items {
			body[i] = j.shape(t, refs, s.items[i].shape)
		}
		now = j.tree.shapes.loop(body, s.steps)
	} else {
		now = j.leaf(refs[s.ref], s.wild)
	}
	j.shapes[id] = now + 1
	return now
}

// assembler adds references and leaves to a tree, each once.
type assembler struct {
	tree   *Tree
	refs   map[Reference]uint32
	leaves map[leafKey]uint32 // shapes
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

// leaf returns the shape of a leaf.
func (a *assembler) leaf(ref uint32, wild bool) uint32 {
	key := leafKey{ref, wild}
	shape, known := a.leaves[key]
	if !known {
		shape = a.tree.shapes.leaf(ref, wild)
		a.leaves[key] = shape
	}
	return shape
}
