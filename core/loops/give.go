package loops

import (
	"maps"
	"slices"
)

const (
	// memoryCheckRows is the number of records between two checks of the memory of a tree. It is
	// constant, so that the result does not depend on the sizes of the batches.
	memoryCheckRows = 1 << 16
	// maxKept is the maximum number of references that a new tree inherits from the previous tree.
	maxKept = 1 << 14
)

// GivenBytes is the default limit of [Folder.Give]. [Folder.Bytes] estimates the size of a tree.
const GivenBytes = 8 << 20

// Give limits the memory of the Folder. Whenever the tree takes more than the given number of bytes
// (0 means [GivenBytes]), the Folder passes the tree to the function output, and begins a new tree.
// Finish returns the tree of the remaining records. No loop extends over several trees. A tree is
// valid until this function returns. If the function returns an error, the Folder stops.
func (f *Folder) Give(bytes uint64, output func(*Tree) error) {
	if bytes == 0 {
		bytes = GivenBytes
	}
	f.output, f.outputBytes, f.every = output, bytes, memoryCheckRows
}

// checkMemory passes the tree to output if the tree takes too much memory.
func (f *Folder) checkMemory() {
	f.unasked = 0
	if f.Bytes() <= f.outputBytes {
		return
	}
	f.completeTree()
	if f.err = f.output(f.tree); f.err == nil {
		f.restart()
	}
}

// completeTree completes the tree of the records that have been read so far.
func (f *Folder) completeTree() {
	f.stopLoop(false)
	for f.reduce() {
	}
	f.retire(len(f.nodes))
}

// restart begins a new tree, and reuses the memory of the previous tree.
func (f *Folder) restart() {
	t := f.tree
	t.rows, t.nodes, t.params = 0, t.nodes[:0], t.params[:0]
	t.shapes.clear()
	f.measured, f.shapeBytes = 0, 0
	clear(f.ends)
	f.used = f.used[:0]
	for i := range t.streams {
		t.streams[i] = stream{packed: t.streams[i].packed[:0]}
		f.places[i].leaf = [2]uint32{}
	}
	if len(t.refs) > maxKept {
		t.refs, t.streams, f.latest = t.refs[:0], t.streams[:0], 0
		f.places, f.habits, f.others = f.places[:0], f.habits[:0], f.others[:0]
		clear(f.known)
		clear(f.contexts)
	}
}

// Tree returns a tree of the records so far. After Tree, unlike after Finish, the Folder can
// consume further records. These records do not change the returned tree. After [Folder.Give], the
// tree is valid only until the next Consume.
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
	s.parts = parts{} // the copies must not share this memory with the folder
	copied := *f
	copied.tree = &t
	copied.nodes, copied.list, copied.params = slices.Clone(f.nodes), slices.Clone(f.list), slices.Clone(f.params)
	copied.ends, copied.unlike, copied.loops = slices.Clone(f.ends), slices.Clone(f.unlike), slices.Clone(f.loops)
	copied.past, copied.scratch, copied.used = nil, nil, slices.Clone(f.used)
	return copied.Finish()
}

// Bytes estimates the memory of the tree so far. The estimate depends only on the records, and not
// on the sizes of the batches.
func (f *Folder) Bytes() (bytes uint64) {
	if f.tree == nil {
		return 0
	}
	const shapeBytes, itemBytes, referenceBytes = 160, 24, 160
	t := f.tree
	for _, s := range t.shapes.all[f.measured:] {
		f.shapeBytes += shapeBytes + itemBytes*uint64(len(s.items)) + 8*uint64(len(s.steps)) + 4*uint64(len(s.trips))
	}
	f.measured = len(t.shapes.all)
	for i := range t.streams {
		bytes += referenceBytes + uint64(len(t.streams[i].packed))
	}
	return bytes + f.shapeBytes + 4*uint64(len(t.nodes)) + 8*uint64(len(t.params)+len(f.params))
}
