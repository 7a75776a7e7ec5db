package loops

import "encoding/binary"

// The plain form of a tree is the rows themselves: of each run of equal references its
// number and its length, and of each row how far its address is from the one before of
// its reference. Trees of few rows, or of such in which nothing comes twice, may be longer
// as loops and leaves; [Tree.Append] knows when.
const plainVersion = 2

const (
	// mostOver is by how much a tree with loops may be longer than its plain form, as a
	// fraction: its loops are worth a twentieth.
	mostOver, mostOverOf = 21, 20
	// barrenAByte bounds the iterations without rows that are unfolded for a byte.
	barrenAByte = 4
)

// Append appends the tree as bytes, which FORMAT.md draws. [Decode] reads them. Equal
// trees give equal bytes, however their folders came to them. The bytes are never more
// than 1.05 times those of the plain form: a tree that would take more is written without
// its loops and lists, row for row.
func (t *Tree) Append(dst []byte) []byte {
	form := t.appendFolded(dst)
	n := len(form) - len(dst)
	if t.bodies > float64(barrenAByte*n) || t.leastPlain(uint64(n)) {
		return form
	}
	most, flat := n-1, t.isFlat()
	if !flat {
		most = (mostOverOf*n - 1) / mostOver
	}
	plain, ok := t.plain(most)
	if !ok {
		return form
	}
	if !flat {
		if rows, err := Decode(plain); err == nil {
			return rows.Append(dst)
		}
	}
	return append(dst, plain...)
}

// leastPlain tells whether the plain form has so many bytes or more, as far as is seen
// without unfolding: one for each row, and two for each run of leaves and of loops over
// leaves.
func (t *Tree) leastPlain(bytes uint64) bool {
	least, last, params := t.rows, int64(-1), t.params
	for _, id := range t.nodes {
		if least >= bytes {
			return true
		}
		s := &t.shapes.all[id]
		p := params[:s.params]
		params = params[s.params:]
		switch {
		case !s.loop:
			if last >= 0 && last != int64(s.ref) {
				least += 2
			}
			last = int64(s.ref)
		case s.loops > 1 || int64(p[0]) < 1:
			last = -1 // unknown
		default:
			for i := range s.items {
				ref := int64(s.items[i].ref)
				if i > 0 && ref != last {
					least += 2 * p[0] // which are fewer than rows, and so than bytes
				}
				last = ref
			}
		}
	}
	return least >= bytes
}

// isFlat tells whether the tree is as its rows: without loops and lists.
func (t *Tree) isFlat() bool {
	for _, id := range t.nodes {
		if s := &t.shapes.all[id]; s.loop || s.wild {
			return false
		}
	}
	return true
}

// plain gives the plain form, if it has at most so many bytes.
func (t *Tree) plain(most int) (form []byte, ok bool) {
	w := newEncoder(t, nil)
	w.plain = true
	last := make([]uint64, len(t.refs))
	var run uint32         // 1 + the reference that runs
	var rows, begun uint64 // all, and those of the run
	var deltas []byte      // of the run
	end := func() {
		if run > 0 {
			w.uv(uint64(w.refs[run-1] - 1))
			w.uv(begun - 1)
			w.text(deltas)
		}
		rows += begun
		begun, deltas = 0, deltas[:0]
	}
	whole := t.each(func(ref uint32, addr uint64) bool {
		if run != ref+1 {
			end()
			run = ref + 1
			if w.refs[ref] == 0 {
				w.order = append(w.order, ref)
				w.refs[ref] = uint32(len(w.order))
			}
		}
		begun++
		deltas = binary.AppendVarint(deltas, int64(addr-last[ref]))
		last[ref] = addr
		return len(w.dst)+len(deltas) < most
	})
	if end(); !whole || rows != t.rows {
		return nil, false
	}
	body := w.dst
	w.dst = nil
	w.head()
	form = append(w.dst, body...)
	return form, len(form) <= most
}

// each gives the rows, until yield has enough of them: their references and addresses. It
// tells whether it gave all that there are.
func (t *Tree) each(yield func(ref uint32, addr uint64) bool) bool {
	w, cursors, params := walk{skips: true}, make([]cursor, len(t.refs)), t.params
	give := func(ref uint32, wild bool, addr uint64) bool {
		if wild {
			var ok bool
			if addr, ok = cursors[ref].next(&t.streams[ref]); !ok {
				return false
			}
		}
		return yield(ref, addr)
	}
	for _, id := range t.nodes {
		s := &t.shapes.all[id]
		p := params[:s.params]
		params = params[s.params:]
		if !s.loop {
			if !give(s.ref, s.wild, p[0]) {
				return false
			}
			continue
		}
		if int64(p[0]) < 1 {
			continue
		}
		w.enter(s, p[0], p[1:])
		for w.settle(t.shapes.all); w.depth > 0; w.settle(t.shapes.all) {
			f := &w.frames[w.depth-1]
			it := &f.items[f.pos]
			if !give(it.ref, it.wild, f.cur[f.at]) {
				return false
			}
			f.pos++
			f.at++
		}
	}
	return true
}
