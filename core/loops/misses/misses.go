// Package misses computes the exact hits and misses of a loop-compressed trace in LRU caches. The
// package simulates the tree of loops ([loops.Tree]) instead of the trace, so that the simulation
// time hardly depends on trip counts (MODELS §11.2).
//
//  1. A loop is simulated iteration by iteration, and each access looks up its line, as in package
//     simulate (MODELS §1). A reference makes one access for each line that it touches. A modify (a
//     load and a store of the same address) counts as one access. Stores allocate lines.
//  2. Idempotence: as long as no reference of a loop moves to another line, all iterations access
//     the same sequence of lines. The LRU state is then the same after each iteration, so the
//     counts of the second iteration also apply to all later iterations.
//  3. Warping (Morelli and Reineke, Warping cache simulation of polyhedral programs, PLDI 2022)
//     detects that the cache state equals the state some iterations earlier, except that lines have
//     moved together with their references. The following iterations then repeat the iterations
//     between the two states at shifted addresses. To skip the remaining periods of the loop, the
//     increments of the counters and the movements of the lines are multiplied by the number of
//     skipped periods.
//  4. Evictions are counted by the reference that fetched a line and by the reference that made the
//     last access to the evicted line. The cache state therefore also contains the last reference to
//     each line, and two states are equal only if these references are equal.
//  5. Cold misses are first touches of a line. Capacity misses are the misses of a fully
//     associative cache with the same number of lines, not counting cold misses. The number of
//     conflict misses is the total number of misses minus the number of cold and capacity misses,
//     and may be negative (MODELS §4).
//
// # When warping is sound
//
// Every reference r of a loop moves by d(r) bytes per iteration. References to the same array that
// move by the same distance d form a class. The regions of a class contain all lines that the class
// touches between the older of the two compared iterations and the last skipped iteration. A jump,
// which skips iterations, ends before the regions of two classes would overlap.
//
//   - The period is a number of iterations after which each reference is at the same offset in its
//     line, and all references have moved by the same number of sets.
//   - Two states match under two conditions. First, if a line of the older state is in a region of
//     a class, the newer state must contain, at the same position, this line moved by d, and the
//     moved line must be in a region of the same class. Second, every other line must be at the
//     same position in both states. If the moved line were outside the regions of its class,
//     references to a different array could hit it after the jump, and the counts would be silently
//     wrong.
//
// Under these conditions, the movement is a one-to-one mapping of all lines that are in the cache
// or are accessed before the end of the jump, and it maps sets to sets. LRU does not depend on line
// numbers. After the movement, the same accesses therefore hit and miss as before, and each victim
// is the moved counterpart of an earlier victim.
//
// # When trip counts vary
//
// A loop whose inner trip counts change from iteration to iteration, for example in triangular
// nests, is divided into blocks of iterations. After each block, every reference is at the same
// offset in its line and in the same set. The number of periods that an inner loop skips grows by
// the same amount from block to block. If a few consecutive blocks are alike, the last block of the
// loop is simulated, too. The initial state of the last block is extrapolated from the states
// between these blocks. If the last block is also like the first blocks, all blocks in between are
// alike, too. The counts of a block are then a polynomial in the number of the block, and the first
// blocks determine this polynomial. The degree of the polynomial is at most the number of nested
// loops.
//
// Blocks are alike under three conditions. First, the simulation makes the same decisions in
// each block. Second, the touched lines, the states and the numbers of periods are in arithmetic
// progression from block to block. Third, consider the lines that may be in the cache at the
// same time, and the bounds of the regions. Sorted by address, they have the same order in each
// block. Each line is an affine function of the number of the block. Two lines that have the
// same order in the first and the last block therefore have the same order in all blocks in
// between. Two different lines therefore never become the same line, and LRU depends only on
// which lines are the same. For the same reason, if the jumps in the first and the last block
// are sound, the jumps in all blocks in between are sound, too. If the last block does not meet
// the three conditions, an earlier block is tried.
//
// # Differences
//
// In the polyhedral model of the paper, each line is identified by the access that fetched it. This
// package identifies lines by numbers, and derives from the steps of the compressed loops how these
// numbers change between iterations. The package can therefore simulate any tree. In triangular
// nests, the paper simulates loops with varying inner trip counts iteration by iteration. This
// package also supports numbers of sets that are not powers of two.
//
// # Limits
//
// Irregular parts are simulated access by access: loops that directly contain wild references,
// varying inner loops that are too short for the cache to reach a steady state, and references
// outside loops. [Result.Simulated] is the number of simulated accesses, and [Result.Jumped] is the
// number of skipped accesses. Irregular traces yield trees with millions of top-level nodes. Trees
// of this kind are read twice, because all arrays must be known before the simulation. All threads share the cache. A hierarchy of several levels follows the
// independent-level model (MODELS §3): each level sees every access. Write-backs are not counted.
package misses

import (
	"errors"
	"iter"
	"math"
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/trace"
)

// Cache is an LRU cache that allocates lines for both loads and stores. The set number of a line is
// the line number modulo Sets. A cache with one set is fully associative.
type Cache struct {
	LineBytes uint64 // a power of two, at least 8
	Sets      uint64 // number of sets, which need not be a power of two
	Ways      uint64 // lines per set
}

// Lines returns the number of lines in the cache.
func (c Cache) Lines() uint64 { return c.Sets * c.Ways }

// maxLines is the maximum number of lines in a cache.
const maxLines = 1 << 24

func (c Cache) check() error {
	want := ""
	switch {
	case c.LineBytes < 8 || c.LineBytes > 1<<20 || c.LineBytes&(c.LineBytes-1) != 0:
		want = "a line size that is a power of two from 8 to 1048576 bytes"
	case c.Sets < 1 || c.Ways < 1:
		want = "at least one set and one way"
	case c.Sets > maxLines || c.Ways > maxLines || c.Lines() > maxLines:
		want = "at most " + strconv.Itoa(maxLines) + " lines"
	default:
		return nil
	}
	return &trace.OptionError{Option: "cache", Got: c.String(), Want: want}
}

func (c Cache) String() string {
	n := func(v uint64) string { return strconv.FormatUint(v, 10) }
	return n(c.Sets) + " sets of " + n(c.Ways) + " lines of " + n(c.LineBytes) + " bytes"
}

// Counts contains the numbers of line accesses and misses.
type Counts struct {
	Accesses, Misses uint64
	Cold             uint64 // first accesses to a line, which miss in every cache
	Full             uint64 // misses of a fully associative cache with the same number of lines
}

// Capacity returns the number of capacity misses.
func (c Counts) Capacity() uint64 { return c.Full - c.Cold }

// Conflict returns the number of conflict misses, which is the number of misses minus the number of
// misses in a fully associative cache of the same size.
func (c Counts) Conflict() int64 { return int64(c.Misses - c.Full) }

func (c *Counts) add(d Counts) {
	c.Accesses += d.Accesses
	c.Misses += d.Misses
	c.Cold += d.Cold
	c.Full += d.Full
}

// Plus returns the sum of c and d.
func (c Counts) Plus(d Counts) Counts {
	c.add(d)
	return c
}

// Minus returns the difference of c and d.
func (c Counts) Minus(d Counts) Counts {
	return Counts{c.Accesses - d.Accesses, c.Misses - d.Misses, c.Cold - d.Cold, c.Full - d.Full}
}

// Result contains the hits and misses of a tree in a cache.
type Result struct {
	Cache Cache
	// Kinds reports whether Cold and Full were counted. If Kinds is false, Cold and Full are 0.
	Kinds bool
	Total Counts
	// Nodes contains the counts of the top-level loops and of all nodes in them, in pre-order. The
	// counts of a loop are the sums over its items. Leaves outside loops are not included. If the
	// tree has more than 2^18 top-level nodes, top-level loops that make at most 64 references are
	// not included either.
	Nodes []Counts
	// Loose contains the counts of leaves that are not included in Nodes, summed by reference
	// ([loops.Tree.References]). ShortLoops reports whether Loose includes the leaves of short
	// top-level loops.
	Loose      []Counts
	ShortLoops bool
	// Refs contains, for each reference, the counts of all its leaves.
	Refs []Counts

	Arrays []Array // in ascending order of address
	// Evictions[i][j] is the number of times that reference i fetched a line and thereby evicted a
	// line, if Columns[j] describes the reference that made the last access to the evicted line.
	Evictions [][]uint64
	Columns   []Column

	// Simulated is the number of line accesses that were simulated one by one to count Misses.
	// Jumped is the number of line accesses that were skipped, because their misses follow from
	// earlier iterations.
	Simulated, Jumped uint64

	tops []topLoop
	top  int // number of top-level nodes
}

// Starts returns, for each top-level node, the index of its counts in Nodes, or -1 if Nodes does
// not contain its counts.
func (r *Result) Starts() []int32 {
	starts := make([]int32, r.top)
	at := 0
	for i := range starts {
		starts[i] = -1
		if at < len(r.tops) && int(r.tops[at].node) == i {
			starts[i] = r.tops[at].start
			at++
		}
	}
	return starts
}

// Tops yields, for each top-level node with counts in Nodes, the index of the node and the index of
// its counts.
func (r *Result) Tops() iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		for _, of := range r.tops {
			if !yield(int(of.node), int(of.start)) {
				return
			}
		}
	}
}

// Array is a set of lines. References that touch overlapping lines belong to one array.
type Array struct {
	First, Last trace.Line
	References  []int // indices in loops.Tree.References
	Counts      Counts
}

// Column describes references that made the last access to evicted lines. A column represents one
// reference, or, if there are many references, the rarely used references to one or several arrays.
type Column struct {
	Array int // index in Result.Arrays; -1: several arrays
	Ref   int // index in loops.Tree.References; -1: several references
}

// errMany reports a tree with too many references to count.
var errMany = &trace.OptionError{Option: "tree", Got: "2^64 references or more", Want: "fewer, because counts are 64-bit numbers"}

// ErrStopped reports that the caller stopped a run.
var ErrStopped = errors.New("loops: stopped while misses were counted")

// pauseEvery is the approximate number of simulated accesses between two calls of the caller's
// function goOn.
const pauseEvery = 1 << 17

// pauser calls a function from time to time to ask whether to continue.
type pauser struct {
	ask  func() bool // the caller's function; may be nil
	left int         // number of accesses until the next call of the function "ask"
	over bool
}

// spend counts simulated accesses, and calls the function "ask" after every pauseEvery accesses.
func (p *pauser) spend(accesses int) {
	if p.left -= accesses; p.left > 0 || p.ask == nil {
		return
	}
	p.left = pauseEvery
	p.over = p.over || !p.ask()
}

// Run returns the counts of a tree in a cache that is initially empty. The kinds of misses are not
// counted for a tree that touches half a billion lines or more. The error is a
// [*trace.OptionError].
func Run(t *loops.Tree, c Cache) (*Result, error) { return RunAsking(t, c, nil) }

// RunAsking does the same as [Run], but can be stopped. RunAsking calls goOn every few hundred
// thousand simulated accesses, and returns [ErrStopped] if goOn returns false.
func RunAsking(t *loops.Tree, c Cache, goOn func() bool) (*Result, error) {
	e, err := count(t, c, goOn)
	if err != nil {
		return nil, err
	}
	cold := firstTouches(e.layout, e.pauser)
	full := e.tally.counts
	if cold != nil && c.Sets > 1 && !e.over {
		all := newEngine(e.layout, 1, c.Lines())
		all.pauser = e.pauser
		all.run()
		full = all.tally.counts
	}
	if e.over {
		return nil, ErrStopped
	}
	return e.result(c, full, cold), nil
}

// CountAsking does the same as [RunAsking], but does not count the kinds of misses. CountAsking
// takes less than half the time of RunAsking.
func CountAsking(t *loops.Tree, c Cache, goOn func() bool) (*Result, error) {
	e, err := count(t, c, goOn)
	if err != nil {
		return nil, err
	}
	return e.result(c, nil, nil), nil
}

// FirstAsking does the same as [CountAsking] for a fully associative cache that can contain all
// lines of the tree. FirstAsking is faster than CountAsking, but does not count accesses.
// FirstAsking calls CountAsking if the cache has several sets, if the cache is too small, or if the
// tree touches half a billion lines or more.
func FirstAsking(t *loops.Tree, c Cache, goOn func() bool) (*Result, error) {
	e, err := prepare(t, c)
	if err != nil {
		return nil, err
	}
	e.pauser.ask = goOn
	cold, sum := firstTouches(e.layout, e.pauser), uint64(0)
	for i, n := range cold {
		e.tally.counts[i].misses = n
		sum += n
	}
	switch {
	case e.over:
		return nil, ErrStopped
	case cold == nil || sum > c.Lines() || c.Sets > 1:
		return CountAsking(t, c, goOn)
	}
	return e.result(c, nil, nil), nil
}

// Total returns the number of misses of a tree. Total calls goOn as often as RunAsking does. The
// arguments of goOn are a lower bound on the result, and the number of accesses that have been
// simulated or skipped so far. The parameter nodes contains indices of top-level nodes. For each of
// these nodes, the result before contains the number of misses of all earlier top-level nodes.
func Total(t *loops.Tree, c Cache, goOn func(least, accesses uint64) bool, nodes ...int) (total uint64, before []uint64, err error) {
	e, err := prepare(t, c)
	if err != nil {
		return 0, nil, err
	}
	e.pauser.ask = func() bool { return goOn(e.lowerBound()) }
	e.begins = func(node int) {
		if slices.Contains(nodes, node) {
			misses, _ := e.lowerBound()
			before = append(before, misses)
		}
	}
	if e.run(); e.over {
		return 0, nil, ErrStopped
	}
	total, _ = e.lowerBound()
	for len(before) < len(nodes) { // the given index lies after the last node
		before = append(before, total)
	}
	return total, before, nil
}

// lowerBound returns a lower bound on the misses of the whole run, and the number of accesses so
// far. After the run, the lower bound equals the number of misses.
func (e *engine) lowerBound() (misses, accesses uint64) {
	if e.open > 0 { // the counters may include a block that is run only to test a progression
		return 0, 0
	}
	for i := range e.tally.counts {
		misses += e.tally.counts[i].misses
		accesses += e.tally.counts[i].accesses
	}
	return misses, accesses
}

// count simulates a tree in a cache.
func count(t *loops.Tree, c Cache, goOn func() bool) (*engine, error) {
	e, err := prepare(t, c)
	if err != nil {
		return nil, err
	}
	e.pauser.ask = goOn
	e.countEvictions()
	if e.run(); e.over {
		return nil, ErrStopped
	}
	return e, nil
}

func prepare(t *loops.Tree, c Cache) (*engine, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if t.Rows() == math.MaxUint64 {
		return nil, errMany
	}
	e := newEngine(newLayout(t, c.LineBytes), c.Sets, c.Ways)
	e.pauser = &pauser{left: pauseEvery}
	return e, nil
}

// result converts the counters to a Result. The slice "full" contains the counts of the fully
// associative cache. The slice "cold" contains the first touches of each node, followed by the
// first touches of each reference outside loops. If the slice "cold" is nil, the Result does not
// divide the misses into kinds.
func (e *engine) result(c Cache, full []hits, cold []uint64) *Result {
	all := make([]Counts, len(e.tally.counts))
	for i, n := range e.tally.counts {
		all[i] = Counts{Accesses: n.accesses, Misses: n.misses}
		if cold != nil {
			all[i].Cold, all[i].Full = cold[i], full[i].misses
		}
	}
	r := &Result{
		Cache: c, Nodes: all[:e.nodes:e.nodes], Loose: all[e.nodes:], ShortLoops: e.layout.many,
		Simulated: e.done, Kinds: cold != nil, tops: e.tops, top: len(e.shapes),
	}
	r.Refs = append(r.Refs, r.Loose...)
	for i := range e.tops {
		at := int(e.tops[i].start)
		r.sum(e.layout.loops[i], at)
		r.Total.add(r.Nodes[at])
	}
	for _, n := range r.Loose {
		r.Total.add(n)
	}
	r.Jumped = r.Total.Accesses - r.Simulated
	a := e.arrays
	for _, s := range a.spans {
		r.Arrays = append(r.Arrays, Array{First: s.first, Last: s.last})
	}
	for ref, i := range a.byRef {
		if i >= 0 {
			r.Arrays[i].References = append(r.Arrays[i].References, ref)
			r.Arrays[i].Counts.add(r.Refs[ref])
		}
	}
	if e.tally.out != nil {
		r.Columns = a.columns
		for ref := range r.Refs {
			r.Evictions = append(r.Evictions, e.tally.evictedBy(uint32(ref)))
		}
	}
	return r
}

// sum computes the counts of loop b, and of the loops nested in it. The argument "at" is the node
// number of loop b.
func (r *Result) sum(b *block, at int) {
	for i := range b.items {
		it := &b.items[i]
		n := at + it.node
		if it.loop {
			r.sum(it.block, n)
		} else {
			r.Refs[it.ref].add(r.Nodes[n])
		}
		r.Nodes[at].add(r.Nodes[n])
	}
}
