package loops

import (
	"maps"
	"slices"
)

// Tree gives the tree of the rows so far, which is the one that Finish would give. The
// folder goes on, and leaves that tree as it is, but for one that was told to give
// finished trees: with that, it is valid until the next Consume.
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
	t.shapes.all, t.shapes.next, t.shapes.first = slices.Clip(t.shapes.all), slices.Clip(t.shapes.next), maps.Clone(t.shapes.first)
	t.shapes.parts = parts{} // none of the folder's
	twin := *f
	twin.tree = &t
	twin.nodes, twin.list, twin.params = slices.Clone(f.nodes), slices.Clone(f.list), slices.Clone(f.params)
	twin.ends, twin.unlike, twin.loops = slices.Clone(f.ends), slices.Clone(f.unlike), slices.Clone(f.loops)
	twin.past, twin.scratch, twin.used = nil, nil, slices.Clone(f.used)
	return twin.Finish()
}

// Bytes is about how much memory the tree takes so far. It hangs on the rows alone, and
// not on how they were divided into batches.
func (f *Folder) Bytes() (bytes uint64) {
	if f.tree == nil {
		return 0
	}
	const shapeBytes, itemBytes, referenceBytes = 160, 24, 160
	t := f.tree
	all := t.shapes.all
	for i := f.weighed; i < len(all); i++ {
		f.shapeBytes += shapeBytes + itemBytes*uint64(len(all[i].items)) + 8*uint64(len(all[i].steps)) + 4*uint64(len(all[i].trips))
	}
	f.weighed = len(all)
	for i := range t.streams {
		bytes += referenceBytes + uint64(len(t.streams[i].packed))
	}
	return bytes + f.shapeBytes + 4*uint64(len(t.nodes)) + 8*uint64(len(t.params)+len(f.params))
}
