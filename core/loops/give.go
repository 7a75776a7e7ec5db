package loops

import (
	"maps"
	"slices"
)

const (
	// weighRows is the number of records after which the memory of a tree is checked, so that the
	// division of records into batches changes nothing.
	weighRows = 1 << 16
	// mostKept is the most references that are remembered from one tree to the next.
	mostKept = 1 << 14
)

// GivenBytes is the default size of the trees that a folder passes on, by [Folder.Bytes].
const GivenBytes = 8 << 20

// Give makes a folder pass on a tree of the records since the previous tree whenever that takes
// more than this number of bytes (0: [GivenBytes]); Finish returns the rest. This bounds the memory
// for any trace. Loops end at the end of a tree. The tree is valid until give returns. An error of
// give ends the folder.
func (f *Folder) Give(bytes uint64, give func(*Tree) error) {
	if bytes == 0 {
		bytes = GivenBytes
	}
	f.give, f.most, f.every = give, bytes, weighRows
}

// weigh passes the tree on if it is large.
func (f *Folder) weigh() {
	f.unasked = 0
	if f.Bytes() <= f.most {
		return
	}
	f.close()
	if f.err = f.give(f.tree); f.err == nil {
		f.again()
	}
}

// close completes the tree of the records so far.
func (f *Folder) close() {
	f.stop(false)
	for f.reduce() {
	}
	f.retire(len(f.nodes))
}

// again begins another tree in the memory of the previous one.
func (f *Folder) again() {
	t := f.tree
	t.rows, t.nodes, t.params = 0, t.nodes[:0], t.params[:0]
	t.shapes.clear()
	f.weighed, f.shapeBytes = 0, 0
	clear(f.ends)
	f.used = f.used[:0]
	for i := range t.streams {
		t.streams[i] = stream{packed: t.streams[i].packed[:0]}
		f.places[i].leaf = [2]uint32{}
	}
	if len(t.refs) > mostKept {
		t.refs, t.streams, f.latest = t.refs[:0], t.streams[:0], 0
		f.places, f.habits, f.others = f.places[:0], f.habits[:0], f.others[:0]
		clear(f.known)
		clear(f.contexts)
	}
}

// Tree returns the tree of the records so far, as Finish would. The folder continues and does not
// change that tree; with [Folder.Give], it is valid until the next Consume.
func (f *Folder) Tree() *Tree {
	if f.tree == nil {
		return nil
	}
	t := *f.tree
	t.refs, t.nodes, t.params = slices.Clip(t.refs), slices.Clip(t.nodes), slices.Clip(t.params)
	t.streams = slices.Clone(t.streams)
	for i := range t.streams {
		t.streams[i].packed = slices.Clip(t.streams[i].packed)
	}
	s := &t.shapes
	s.all, s.next, s.first = slices.Clip(s.all), slices.Clip(s.next), maps.Clone(s.first)
	s.parts = parts{} // not the folder's
	copied := *f
	copied.tree = &t
	copied.nodes, copied.list, copied.params = slices.Clone(f.nodes), slices.Clone(f.list), slices.Clone(f.params)
	copied.ends, copied.unlike, copied.loops = slices.Clone(f.ends), slices.Clone(f.unlike), slices.Clone(f.loops)
	copied.past, copied.scratch, copied.used = nil, nil, slices.Clone(f.used)
	return copied.Finish()
}

// Bytes estimates the memory of the tree so far. It depends only on the records, and not on their
// division into batches.
func (f *Folder) Bytes() (bytes uint64) {
	if f.tree == nil {
		return 0
	}
	const shapeBytes, itemBytes, referenceBytes = 160, 24, 160
	t := f.tree
	for _, s := range t.shapes.all[f.weighed:] {
		f.shapeBytes += shapeBytes + itemBytes*uint64(len(s.items)) + 8*uint64(len(s.steps)) + 4*uint64(len(s.trips))
	}
	f.weighed = len(t.shapes.all)
	for i := range t.streams {
		bytes += referenceBytes + uint64(len(t.streams[i].packed))
	}
	return bytes + f.shapeBytes + 4*uint64(len(t.nodes)) + 8*uint64(len(t.params)+len(f.params))
}
