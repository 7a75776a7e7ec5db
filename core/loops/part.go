package loops

import "github.com/stackglass/stackglass/core/trace"

// Only gives the tree of the rows of some kinds, and t itself where it has no others.
func (t *Tree) Only(kinds trace.Kinds) *Tree {
	return t.Map(func(r Reference) (Reference, bool) { return r, kinds.Has(r.Kind) })
}

// Map gives the tree in which each reference is another one, or is left out. Loops
// without a reference that stays are left out with them.
func (t *Tree) Map(f func(Reference) (Reference, bool)) *Tree {
	m := &mapper{from: t, to: &Tree{has: t.has, shapes: shapes{first: map[uint64]uint32{}}}}
	same := true
	for i, r := range t.refs {
		of, stays := f(r)
		same = same && stays && of == r
		m.to.refs = append(m.to.refs, of)
		s := stream{}
		if stays {
			s = t.streams[i]
		}
		m.to.streams = append(m.to.streams, s)
		m.stays = append(m.stays, stays)
	}
	if same {
		return t
	}
	m.shapes = make([]mapped, len(t.shapes.all))
	to, params := m.to, t.params
	for _, id := range t.nodes {
		n := t.shapes.all[id].params
		if of := m.shape(id); of.params != nil {
			to.nodes = append(to.nodes, of.id)
			for _, i := range of.params {
				to.params = append(to.params, params[i])
			}
		}
		params = params[n:]
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
	params []int32 // that stay, of the old shape; nil: nothing is left of it
}

func (m *mapper) shape(id uint32) mapped {
	if m.shapes[id].known {
		return m.shapes[id]
	}
	s := &m.from.shapes.all[id]
	of := mapped{known: true}
	switch {
	case s.loop:
		of.id, of.params = m.loop(s)
	case m.stays[s.ref]:
		of.id, of.params = m.to.shapes.leaf(s.ref, s.wild), []int32{0}
	}
	m.shapes[id] = of
	return of
}

func (m *mapper) loop(s *shape) (id uint32, params []int32) {
	var body []uint32
	var steps []uint64
	params = []int32{0}
	for i := range s.items {
		it := &s.items[i]
		of := m.shape(it.shape)
		if of.params == nil {
			continue
		}
		body = append(body, of.id)
		for _, p := range of.params {
			params = append(params, 1+it.at+p)
			steps = append(steps, s.steps[it.at+p])
		}
	}
	if body == nil {
		return 0, nil
	}
	return m.to.shapes.loop(body, steps), params
}

// Join gives the tree of traces that follow each other. It spoils none of them.
func Join(trees ...*Tree) *Tree {
	if len(trees) == 1 {
		return trees[0]
	}
	j := &joiner{to: &Tree{shapes: shapes{first: map[uint64]uint32{}}}, refs: map[Reference]uint32{}, leaves: map[leafOf]uint32{}}
	for _, t := range trees {
		j.add(t)
	}
	return j.to
}

type joiner struct {
	to     *Tree
	refs   map[Reference]uint32
	leaves map[leafOf]uint32
	shapes []uint32 // by shape of the tree that is added: 1 + what it is now
}

func (j *joiner) add(t *Tree) {
	to := j.to
	to.has.thread = to.has.thread || t.has.thread
	to.has.pc = to.has.pc || t.has.pc
	to.has.site = to.has.site || t.has.site
	to.has.arg = to.has.arg || t.has.arg
	refs := make([]uint32, len(t.refs))
	for i, r := range t.refs {
		id, known := j.refs[r]
		if !known {
			id = uint32(len(to.refs))
			j.refs[r] = id
			to.refs, to.streams = append(to.refs, r), append(to.streams, stream{})
		}
		refs[i] = id
		to.streams[id].join(&t.streams[i])
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
		now = j.to.shapes.loop(body, s.steps)
	} else {
		of := leafOf{refs[s.ref], s.wild}
		known := false
		if now, known = j.leaves[of]; !known {
			now = j.to.shapes.leaf(of.ref, of.wild)
			j.leaves[of] = now
		}
	}
	j.shapes[id] = now + 1
	return now
}
