// Package stack computes LRU stack distances: for each access to a cache line, the number of
// distinct other lines that were accessed since the previous access to this line (MODELS §1). In a
// fully associative LRU cache of C lines, exactly the accesses with a distance below C hit, so one
// pass covers every capacity (Mattson, Gecsei, Slutz and Traiger, 1970).
//
// [Exact] is the simplest model, and computes only stack distances. [Exact] keeps the stack in two
// parts:
//
//  1. The topmost 16 lines are in an array, in LRU order. Most accesses of real programs hit in
//     this array. A linear search shifts the entries that precede the hit, and the distance is the
//     position of the hit.
//  2. A line that falls off the array is assigned a timestamp, called its stamp. Below the array,
//     the LRU order is the order of the timestamps. When a line below the array is accessed again,
//     its distance is 16 plus the number of live stamps that are newer than the line's stamp. A
//     stamp is live until its line is accessed again. A hash table (table.go) maps the line to its
//     stamp. A bitmap of live stamps with a tree of prefix counts (stamps.go) counts the newer
//     stamps in a small, fixed number of steps.
//
// Searching the array requires no look-up in the hash table. Accesses that miss the array are
// queued, and processed in bursts. A burst first touches the slots of its lines in the hash table,
// so that their cache misses overlap.
//
// If most accesses miss the array, searching the array wastes time, and each miss requires two
// look-ups in the hash table: one for the accessed line, and one for the line that falls off the
// array. In this case, every line receives a stamp, and the array is not searched (exact.go). A
// repeated access to the same line needs only one comparison, and every other access needs one
// table look-up. The array is still updated from time to time, to detect when most accesses would
// hit in the array again.
//
// When the stamps run out, the live stamps are renumbered from zero. Stamps rarely run out, because
// there are several times as many stamps as lines.
//
// [Sets] also covers set-associative caches. For every number of sets from 2^0 to 2^16, [Sets]
// computes the depth at which each access finds its line in its set (MODELS §4; Hill and Smith,
// 1989, call this all-associativity simulation). With 2^a sets, two lines are in the same set if
// the last a bits of their line numbers agree. Two lines are therefore in the same set if a is at
// most the number of trailing zeros in the XOR of their line numbers.
//
//  1. For a line in the top array, the lines above it are known. For each number of sets, the depth
//     is the number of these lines that are in the same set as the accessed line. One addition to a
//     word of sixteen 4-bit lanes updates the depths for all numbers of sets.
//  2. For every number of sets, each set has a list of at most 32 lines that have fallen off the
//     array. The position of a line in the list is the number of lines of its set that fell off the
//     array later (recency.go). The lines of the set that are still in the array are counted with
//     lanes, as in step 1. A line moves to the front of its lists only when it falls off the array.
//     The lists are visited in ascending order of the number of sets. The visits end at the first
//     list in which the line is already at the front, because the line is then also at the front of
//     all following lists. If every line has a stamp, the lists are instead updated at each access,
//     and one visit to a list both determines the line's depth and moves the line.
//
// [Coherent] computes the depths within sets for one of several cores, if stores by other cores
// invalidate lines (MODELS §6.4). [Shelved] writes lines to a spill store ([Shelf]), and therefore
// supports more lines than fit in memory. Segments of the trace are analysed in memory, and
// [Shelved] appends their results one by one (MODELS §9).
//
// The method of counting live timestamps with a tree is from Bennett and Kruskal (1975) and Olken
// (1981). The tests compare every model with reference implementations.
package stack

import (
	"math"

	"github.com/stackglass/stackglass/core/trace"
)

// Cold is the distance of the first access to a line. The number Cold represents an infinite
// distance.
const Cold = math.MaxUint32

// Model is an LRU stack. A model supports up to 2^32 - 2^17 distinct lines.
type Model interface {
	// Distances accesses the given lines in order. Line numbers must be below 2^61. For each
	// access, Distances writes the stack distance (in lines, starting at zero) or [Cold] to the
	// element of the slice "out" that has the same index. The slice "out" must be at least as long
	// as the slice "lines".
	Distances(lines []trace.Line, out []uint32)
	// Lines returns the number of distinct lines accessed so far.
	Lines() int
	// Stack returns every line, most recently used first.
	Stack() []trace.Line
}
