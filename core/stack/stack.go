// Package stack computes LRU stack distances: for each access to a cache line,
// how many distinct other lines were accessed since the last access to it
// (MODELS §1). A fully associative LRU cache of C lines hits exactly the
// accesses with a distance below C, so one pass answers for every capacity
// (Mattson, Gecsei, Slutz and Traiger, 1970).
//
// [Exact] is the model to use. It keeps the stack in two pieces:
//
//  1. The topmost 16 lines are a plain array in order of use. Most accesses of
//     real programs end there: a linear search that shifts while it looks, and
//     the distance is the position. No hash, no tree.
//  2. A line that falls off the array's end gets a time stamp. Below the array
//     the order of use is the order of the stamps, so the distance of a line
//     that comes back is 16 plus the number of live stamps newer than its own.
//     A bitmap of live stamps with a tree of prefix counts over it (stamps.go)
//     finds that number in a fixed, short walk; a hash table (table.go) finds
//     the stamp.
//
// What the array holds does not depend on the hash table, so accesses that miss
// the array are queued and settled in bursts: first the table's slots are
// touched one after the other, so that their cache misses overlap, then they
// are resolved in order.
//
// When stamps run out the live ones are renumbered from zero; room for as many
// new ones keeps that rare.
//
// The idea of counting live marks in a tree over time is Bennett and Kruskal's
// (1975) and Olken's (1981). Package stacktest has the naive twins and the
// suite that every model passes.
package stack

import (
	"math"

	"github.com/stackglass/stackglass/core/trace"
)

// Cold is the distance of a first access to a line: infinite.
const Cold = math.MaxUint32

// Model is an LRU stack. A model takes up to 2^32 - 2^17 distinct lines.
type Model interface {
	// Distances accesses the lines in order and writes the stack distance of
	// each, in lines from zero, or [Cold], to the same place in out, which is
	// at least as long. Lines are below 2^61.
	Distances(lines []trace.Line, out []uint32)
	// Lines is the number of distinct lines accessed so far.
	Lines() int
	// Stack gives every line, most recently used first.
	Stack() []trace.Line
}
