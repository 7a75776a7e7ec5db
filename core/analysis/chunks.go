package analysis

import (
	"sort"

	"github.com/stackglass/stackglass/core/trace"
)

// chunkIndex translates between positions in a trace and numbers of references.
type chunkIndex struct {
	chunks []trace.Chunk
	before []uint64 // number of references before each chunk, and, as the last element, the total number of references
}

func newChunkIndex(chunks []trace.Chunk) chunkIndex {
	x := chunkIndex{chunks: chunks, before: make([]uint64, 1, len(chunks)+1)}
	for i := range chunks {
		x.before = append(x.before, x.before[i]+chunks[i].References)
	}
	return x
}

func (x *chunkIndex) total() uint64 { return x.before[len(x.chunks)] }

// chunkOf returns the index of the chunk that contains a reference.
func (x *chunkIndex) chunkOf(references uint64) int {
	return sort.Search(len(x.chunks), func(i int) bool { return x.before[i+1] > references })
}

// firstChunkFrom returns the index of the first chunk that begins at or after a position.
func (x *chunkIndex) firstChunkFrom(p trace.Position) int {
	return sort.Search(len(x.chunks), func(i int) bool { return x.chunks[i].At >= p.Chunk })
}

// referencesBeforeChunk returns the number of references before the chunk of a position.
func (x *chunkIndex) referencesBeforeChunk(p trace.Position) uint64 {
	return x.before[x.firstChunkFrom(p)]
}

// positionOf returns the approximate position after a number of references.
func (x *chunkIndex) positionOf(references uint64) trace.Position {
	if references >= x.total() {
		return trace.Position{Chunk: trace.AtEnd}
	}
	i := x.chunkOf(references)
	return trace.Position{Chunk: x.chunks[i].At, Rows: references - x.before[i]}
}

// referencesAt returns the approximate number of references before a position.
func (x *chunkIndex) referencesAt(p trace.Position) uint64 {
	i := x.firstChunkFrom(p)
	if i == len(x.chunks) || x.chunks[i].At != p.Chunk {
		return x.before[i]
	}
	return min(x.before[i]+p.Rows, x.before[i+1])
}

// nextBorder returns the first chunk border at or after the given number of references.
func (x *chunkIndex) nextBorder(references uint64) uint64 {
	return x.before[sort.Search(len(x.chunks), func(i int) bool { return x.before[i] >= references })]
}

// previousBorder returns the last chunk border at or before the given number of references.
func (x *chunkIndex) previousBorder(references uint64) uint64 { return x.before[x.chunkOf(references)] }

// roundToChunk rounds a number of references to a chunk border, so that no chunk is decoded twice,
// unless the distance to the border is large compared with the length of a segment.
func (x *chunkIndex) roundToChunk(references, segment uint64) uint64 {
	i := x.chunkOf(references)
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
