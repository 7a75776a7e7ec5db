package loops

import (
	"encoding/binary"
	"io"
	"slices"

	"github.com/stackglass/stackglass/core/trace"
)

// The plain form of a tree is the records themselves: of each run of equal references the
// reference's number and the run's length, and of each record the difference to the address before
// it of its reference. Trees of few records, or without repetitions, may be longer as loops and
// leaves; [Tree.Append] knows when.
const plainVersion = 2

const (
	// A tree with loops may be longer than its plain form by this fraction, because loops are
	// worth a twentieth.
	mostOver, mostOverOf = 21, 20
	// barrenAByte bounds the iterations without records that are expanded for a byte.
	barrenAByte = 4
)

// Append appends the tree as bytes, which FORMAT.md draws and [Decode] reads. Equal trees have equal
// bytes, however their folders came to them. The bytes are never more than 1.05 times those of the
// plain form: a tree that would take more is written without loops and lists, record by record.
func (t *Tree) Append(dst []byte) []byte {
	form := t.appendFolded(dst)
	n := len(form) - len(dst)
	if t.bodies > float64(barrenAByte*n) || t.plainTakes(uint64(n)) {
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

// plainTakes reports whether the plain form takes so many bytes or more, as far as can be seen
// without expansion: one for each record, and two for each run of leaves and of loops over leaves.
func (t *Tree) plainTakes(bytes uint64) bool {
	least, last := t.rows, int64(-1)
	for id, p := range t.tops() {
		if least >= bytes {
			return true
		}
		switch s := &t.shapes.all[id]; {
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
					least += 2 * p[0] // fewer than there are records, and so than bytes
				}
				last = ref
			}
		}
	}
	return least >= bytes
}

// isFlat reports whether the tree has neither loops nor lists.
func (t *Tree) isFlat() bool {
	return !slices.ContainsFunc(t.nodes, func(id uint32) bool { return t.shapes.all[id].loop || t.shapes.all[id].wild })
}

// plain returns the plain form if it has at most so many bytes.
func (t *Tree) plain(most int) (form []byte, ok bool) {
	w := newEncoder(t)
	w.plain = true
	last := make([]uint64, len(t.refs))
	var run uint32         // 1 + the reference of the run
	var rows, begun uint64 // all records, and those of the run
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
	e, b := t.numbered(), trace.NewBatch(int(min(t.rows, trace.DefaultRows)))
	for e.Next(b) == nil {
		for i, addr := range b.Addr {
			ref := b.Site[i]
			if run != ref+1 {
				end()
				run = ref + 1
				w.meet(ref)
			}
			begun++
			deltas = binary.AppendVarint(deltas, int64(addr-last[ref]))
			last[ref] = addr
		}
		if len(w.dst)+len(deltas) >= most {
			return nil, false
		}
	}
	if end(); e.err != io.EOF || rows != t.rows {
		return nil, false
	}
	form = w.withHead(nil)
	return form, len(form) <= most
}

// numbered expands the tree with the numbers of references in place of their sites.
func (t *Tree) numbered() *Expander {
	n := *t
	n.refs, n.has = make([]Reference, len(t.refs)), columns{site: true}
	for i := range n.refs {
		n.refs[i].Site = uint32(i)
	}
	return n.expander()
}
