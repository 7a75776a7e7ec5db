// Package stack computes LRU stack distances: for each access to a cache line, how many
// distinct other lines were accessed since the last access to it (MODELS §1). A fully
// associative LRU cache of C lines hits exactly the accesses with a distance below C, so one
// pass answers for every capacity (Mattson, Gecsei, Slutz and Traiger, 1970).
//
// [Exact] is the model for distances alone. It keeps the stack in two pieces:
//
//  1. The topmost 16 lines are an array in order of use. Most accesses of real programs hit there:
//     a linear search shifts the entries that it passes, and the distance is the position.
//  2. A line that falls off the array gets a time stamp. Below the array the order of use is the
//     order of the stamps, so the distance of a line that comes back is 16 plus the number of live
//     stamps newer than its own. A bitmap of live stamps with a tree of prefix counts (stamps.go)
//     finds that number in a fixed, short walk; a hash table (table.go) finds the stamp.
//
// The array does not depend on the hash table, so accesses that miss it are queued and processed in
// bursts: the table's slots are touched first, so that their cache misses overlap.
//
// If most accesses miss the array, searching it wastes time, and two lines have to be looked up:
// the line that comes back and the line that falls off. Then every line has a stamp (exact.go),
// repeated accesses to one line are recognised by comparing, and any other access is one look into
// the table. The array is updated now and then, to notice when most accesses would hit it again.
//
// When stamps run out the live ones are renumbered from zero; room for as many new ones keeps
// that rare.
//
// [Sets] answers for set-associative caches too: for every number of sets from 2^0 to 2^16, how
// deep each access finds its line in its set (MODELS §4; Hill and Smith, 1989, call it
// all-associativity simulation). Two lines meet in 2^a sets if the last a bits of their numbers
// agree, so one count of trailing zeros of their difference answers for all a:
//
//  1. For a line in the top array, the lines above it are known. Each adds one to the depths
//     in all numbers of sets in which it meets the line: a word of sixteen 4-bit lanes takes
//     them in one addition.
//  2. For a line from below, a list for each set, of at most 32 numbers, counts the lines that fell
//     off the array since it did (recency.go); the lines of the array that did not fall are added
//     in lanes. A line visits its lists only when it falls, up to the first set in whose front it
//     is: with more sets it is in front, too. If every line has a stamp, the lists follow all
//     accesses instead of falls: one visit counts and moves.
//
// [Coherent] answers the same for one core of several, when other cores' stores invalidate its
// lines (MODELS §6.4). [Shelved] is for more lines than fit in memory: they are in a spill store
// ([Shelf]), and segments of the trace that were analysed in memory are appended one by one
// (MODELS §9).
//
// Counting live marks in a tree over time is Bennett and Kruskal's (1975) and Olken's (1981)
// idea. The tests compare every model with reference implementations.
package stack

import (
	"math"

	"github.com/stackglass/stackglass/core/trace"
)

// Cold is the distance of a first access to a line: infinite.
const Cold = math.MaxUint32

// Model is an LRU stack. A model takes up to 2^32 - 2^17 distinct lines.
type Model interface {
	// Distances accesses the lines, below 2^61, in order and writes the stack distance of each,
	// in lines from zero, or [Cold], to the same index in out, which is at least as long.
	Distances(lines []trace.Line, out []uint32)
	// Lines returns the number of distinct lines accessed so far.
	Lines() int
	// Stack returns every line, most recently used first.
	Stack() []trace.Line
}
