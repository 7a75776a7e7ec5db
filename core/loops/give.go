package loops

const (
	// weighRows is after how many rows a tree is weighed, so that how rows are divided
	// into batches changes nothing.
	weighRows = 1 << 16
	// mostKept is how many references are remembered from one tree to the next.
	mostKept = 1 << 14
)

// GivenBytes is how large trees are, as [Folder.Bytes] has it, when a folder gives them,
// where nothing else is said.
const GivenBytes = 8 << 20

// Give has a folder give a tree of the rows so far, since the last one, whenever it takes
// more than so many bytes (0: [GivenBytes]), and Finish the rest: so memory is bounded,
// however long and irregular the trace is. Loops end at the end of a tree. The tree is
// valid until give returns; its error ends the folder.
func (f *Folder) Give(bytes uint64, give func(*Tree) error) {
	if bytes == 0 {
		bytes = GivenBytes
	}
	f.give, f.most, f.every = give, bytes, weighRows
}

// weigh gives the tree if it is time.
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

// close has the tree hold all rows so far.
func (f *Folder) close() {
	f.stop(false)
	for f.reduce() {
	}
	f.retire(len(f.nodes))
}

// again begins another tree, in the memory of the one before.
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
