package analysis

import (
	"sort"

	"github.com/stackglass/stackglass/core/trace"
)

// chunkIndex translates between positions in a trace and numbers of references.
type chunkIndex struct {
	chunks []trace.Chunk
	before []uint64 // number of references before each chunk; the last element is the total
}

func newChunkIndex(chunks []trace.Chunk) chunkIndex {
	x := chunkIndex{chunks: chunks, before: make([]uint64, 1, len(chunks)+1)}
	for i := range chunks {
		x.before = append(x.before, x.before[i]+chunks[i].References)
	}
	return x
}

func (x *chunkIndex) total() uint64 { return x.before[len(x.chunks)] }

// at returns the chunk that contains a reference.
func (x *chunkIndex) at(references uint64) int {
	return sort.Search(len(x.chunks), func(i int) bool { return x.before[i+1] > references })
}

// from returns the first chunk that begins at or after a position.
func (x *chunkIndex) from(p trace.Position) int {
	return sort.Search(len(x.chunks), func(i int) bool { return x.chunks[i].At >= p.Chunk })
}

// first returns the number of references before the chunk that contains a position.
func (x *chunkIndex) first(p trace.Position) uint64 { return x.before[x.from(p)] }

// position returns the approximate position after a number of references.
func (x *chunkIndex) position(references uint64) trace.Position {
	if references >= x.total() {
		return trace.Position{Chunk: trace.AtEnd}
	}
	i := x.at(references)
	return trace.Position{Chunk: x.chunks[i].At, Rows: references - x.before[i]}
}

// references returns the approximate number of references before a position.
func (x *chunkIndex) references(p trace.Position) uint64 {
	i := x.from(p)
	if i == len(x.chunks) || x.chunks[i].At != p.Chunk {
		return x.before[i]
	}
	return min(x.before[i]+p.Rows, x.before[i+1])
}

// border returns the first chunk border at or after a number of references.
func (x *chunkIndex) border(references uint64) uint64 {
	return x.before[sort.Search(len(x.chunks), func(i int) bool { return x.before[i] >= references })]
}

// below returns the last chunk border at or before a number of references.
func (x *chunkIndex) below(references uint64) uint64 { return x.before[x.at(references)] }

// even rounds a number of references to a chunk border if the border is close compared with the
// length of a segment, so that no chunk is decoded twice.
func (x *chunkIndex) even(references, segment uint64) uint64 {
	i := x.at(references)
	if i == len(x.chunks) {
		return references
	}
	near := segment / 16
	if over := references - x.before[i]; over <= near {
		return x.before[i]
	}
	if under := x.before[i+1] - references; under <= near {
		return x.before[i+1]
	}
	return references
}
