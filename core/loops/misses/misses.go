// Package misses computes the exact hits and misses of a folded trace in LRU caches,
// in time that hardly grows with its trip counts: it simulates the tree of loops
// ([loops.Tree]), not the trace (MODELS §11.2).
//
//  1. A loop is run iteration by iteration, and each access looks its line up, as in
//     package simulate (MODELS §1): one access a line that a reference touches, a
//     modify is one, stores allocate.
//  2. Idempotence: while no reference of a loop leaves its line, iterations repeat one
//     sequence of accesses. LRU is then, after the first of them, as it is after any
//     other, so that the second counts for all that follow.
//  3. Warping (Morelli and Reineke, Warping cache simulation of polyhedral programs,
//     PLDI 2022): if before some iteration the cache is as it was some iterations ago,
//     but for lines that moved as their references did in between, then what follows
//     is what followed then, moved. The counters are multiplied and the lines moved by
//     as many periods as the loop has left.
//  4. Cold misses are first touches of a line, whatever the cache; capacity misses are
//     those others of a fully associative cache of as many lines; conflict misses are
//     the rest, which may be negative (MODELS §4).
//
// # When warping is sound
//
// Let every reference r of a loop move by d(r) bytes an iteration. References of one
// array and equal d are a class. From the first iteration that is compared to the last
// that is jumped over, the lines that a class touches lie in regions, spans that are
// swept with d; where regions of two classes would overlap, the jump ends before.
//
//   - The period is a number of iterations after which each reference is at the same
//     place of a line, and all references moved by the same number of sets.
//   - Two states are equal if each line of the older one that is in a region of a class
//     is, moved, at the same place of the newer one and in a region of that class, and
//     each other line is there unmoved. That the moved line has to be in a region of
//     its class, too, is what keeps a line of one array from being hit by the
//     references of another after the jump: without it counts are silently wrong.
//
// Then moving lines is one-to-one on all that is in the cache or comes until the end of
// the jump, it keeps sets together, and LRU does not look at names: hits, misses and
// victims are the same, moved.
//
// # When trip counts vary
//
// A loop whose inner trip counts change from one iteration to the next, as in triangular
// nests, is looked at in blocks of iterations, after which every reference is at the same
// place of a line and of the same set. Inner loops jump over a number of periods that
// grows by the same from block to block. If a few blocks are alike, the last one of the
// loop is made from the state that the progression of states predicts. If it is alike as
// well, so are all between, and what each counts is a polynomial in its number, whose
// degree is at most the number of loops below one another; the first blocks give it.
//
// Blocks are alike if all that was decided in them is equal, the lines that were touched
// and the states are in arithmetic progression, as are the numbers of periods, and all
// lines that may meet in the cache have the same order by address, as do lines and the
// bounds of regions. Between the first block and the last, each line is an affine
// function of the block's number; two that are in order at both ends are in order
// between. So no line comes to be another that it was not, which is all that LRU asks,
// and every jump within is as sound as it is at both ends. Where the last block is not
// alike, an earlier one is tried.
//
// # Differences
//
// The paper labels lines with the access that brought them, in the polyhedral model;
// here lines are numbers, and the motion is found from the steps of the folded loops,
// so that any tree that a trace folds to will do. The paper simulates triangular nests
// iteration by iteration on the level that varies. Sets are any number, not only powers
// of two. One run on a fully associative cache answers for all smaller ones, too, since
// each hit knows its stack distance ([Capacities]).
//
// # Limits
//
// What does not repeat is simulated as it comes: loops with wild references at their
// level, inner loops that vary and are too short for the cache to come to a steady state,
// and what is not in loops. [Result.Simulated] and [Result.Jumped] say how much. Trees of
// millions of nodes at the top, as irregular traces fold to, are gone through twice: which
// arrays there are has to be known before lines of one evict those of another. Threads
// share the cache. Several levels use the independent-level model (MODELS §3): each
// sees every access, see [Levels]. Write-backs are not counted.
package misses

import (
	"math"
	"strconv"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/trace"
)

// Cache is an LRU cache that allocates for loads and stores alike. The set of a line is
// its number modulo Sets. One set is a fully associative cache.
type Cache struct {
	LineBytes uint64 // a power of two, at least 8
	Sets      uint64 // any number
	Ways      uint64 // lines in a set
}

// Full is the fully associative cache of so many bytes.
func Full(bytes, lineBytes uint64) Cache { return Cache{lineBytes, 1, bytes / max(1, lineBytes)} }

// Lines is how many lines the cache holds.
func (c Cache) Lines() uint64 { return c.Sets * c.Ways }

// mostLines is the largest cache.
const mostLines = 1 << 24

func (c Cache) check() error {
	want := ""
	switch {
	case c.LineBytes < 8 || c.LineBytes > 1<<20 || c.LineBytes&(c.LineBytes-1) != 0:
		want = "lines of 8 to 1048576 bytes, a power of two"
	case c.Sets < 1 || c.Ways < 1:
		want = "at least one set and one way"
	case c.Sets > mostLines || c.Ways > mostLines || c.Lines() > mostLines:
		want = "at most " + strconv.Itoa(mostLines) + " lines"
	default:
		return nil
	}
	return &trace.OptionError{Option: "cache", Got: c.String(), Want: want}
}

func (c Cache) String() string {
	n := func(v uint64) string { return strconv.FormatUint(v, 10) }
	return n(c.Sets) + " sets of " + n(c.Ways) + " lines of " + n(c.LineBytes) + " bytes"
}

// Counts are line accesses, and what became of them.
type Counts struct {
	Accesses, Misses uint64
	Cold             uint64 // first accesses to a line, which miss in any cache
	Full             uint64 // misses of a fully associative cache of as many lines
}

// Capacity is the number of misses that more sets would not help.
func (c Counts) Capacity() uint64 { return c.Full - c.Cold }

// Conflict is how many misses more there are than in a fully associative cache.
func (c Counts) Conflict() int64 { return int64(c.Misses - c.Full) }

func (c *Counts) add(d Counts) {
	c.Accesses += d.Accesses
	c.Misses += d.Misses
	c.Cold += d.Cold
	c.Full += d.Full
}

// Plus returns the sums of the counts.
func (c Counts) Plus(d Counts) Counts {
	c.add(d)
	return c
}

// Minus returns the differences of the counts, of which d has a part.
func (c Counts) Minus(d Counts) Counts {
	return Counts{c.Accesses - d.Accesses, c.Misses - d.Misses, c.Cold - d.Cold, c.Full - d.Full}
}

// Result is what a tree does in a cache.
type Result struct {
	Cache Cache
	// Kinds tells that Cold and Full were counted; or else they are 0.
	Kinds bool
	Total Counts
	// Nodes are the counts of the loops at the top and of all nodes in them, in
	// pre-order: a loop, then the items of its body, each with what is in it. Those of a
	// loop are the sums of its items'. Leaves at the top are not among them, and in a
	// tree of more than 2^18 nodes at the top, loops there over at most 64 references
	// are not, either.
	Nodes []Counts
	// Loose are the counts of what is not in Nodes, by reference
	// ([loops.Tree.References]). ShortLoops reports that the tree has so many nodes at the
	// top that short loops there are among them.
	Loose      []Counts
	ShortLoops bool
	// Refs are the counts of all leaves, by reference.
	Refs []Counts

	Arrays []Array // by address
	// Evictions count lines that went because others came: by the column of the array
	// that comes, then of the one that goes.
	Evictions [][]uint64

	// Line accesses that were simulated one by one for Misses, and those that were
	// counted without.
	Simulated, Jumped uint64

	tops []top
	top  int // nodes there
}

// Starts gives, by node at the top, where its counts are in Nodes, or -1.
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

// Array is what references whose lines overlap touch.
type Array struct {
	First, Last trace.Line
	References  []int // numbers
	Column      int   // in Evictions; the last one of 32 may stand for several arrays
	Counts      Counts
}

// errMany is of a tree beyond what counts.
var errMany = &trace.OptionError{Option: "tree", Got: "2^64 references or more", Want: "fewer: counts have 64 bits"}

// Run gives the counts of a tree in a cache that is empty at its beginning. Kinds of
// misses are left out of a tree that touches half a billion lines or more. The error is a
// [*trace.OptionError].
func Run(t *loops.Tree, c Cache) (*Result, error) { return run(t, c, new(pauses)) }

func run(t *loops.Tree, c Cache, asks *pauses) (*Result, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	p, err := Prepare(t, c.LineBytes)
	if err != nil {
		return nil, err
	}
	return p.run(c, asks)
}

// Prepared is a tree that was looked at, to be run in several caches with lines of one
// size. It is for one goroutine.
type Prepared struct {
	layout *layout
	cold   []uint64          // nil: not known yet
	vast   bool              // first touches are too many to be known
	full   map[uint64][]hits // of fully associative caches, by lines
}

// Prepare looks at a tree. The error is a [*trace.OptionError].
func Prepare(t *loops.Tree, lineBytes uint64) (*Prepared, error) {
	if err := (Cache{lineBytes, 1, 1}).check(); err != nil {
		return nil, err
	}
	if t.Rows() == math.MaxUint64 {
		return nil, errMany
	}
	return &Prepared{layout: newLayout(t, lineBytes), full: map[uint64][]hits{}}, nil
}

// Run is the function Run, for lines of the prepared size.
func (p *Prepared) Run(sets, ways uint64) (*Result, error) {
	c := Cache{1 << p.layout.shift, sets, ways}
	if err := c.check(); err != nil {
		return nil, err
	}
	return p.run(c, new(pauses))
}

// Count is Run without kinds of misses. It takes less than half as long.
func (p *Prepared) Count(sets, ways uint64) (*Result, error) {
	c := Cache{1 << p.layout.shift, sets, ways}
	if err := c.check(); err != nil {
		return nil, err
	}
	e := newEngine(p.layout, sets, ways)
	e.run()
	return e.result(c, nil, nil), nil
}

func (p *Prepared) run(c Cache, asks *pauses) (*Result, error) {
	e := newEngine(p.layout, c.Sets, c.Ways)
	e.pauses = asks
	e.run()
	if c.Sets == 1 {
		p.full[c.Lines()] = e.tally.counts
	}
	if p.cold == nil && !asks.over && !p.vast {
		p.cold = firstTouches(p.layout, asks)
		p.vast = p.cold == nil
	}
	if p.vast && !asks.over {
		return e.result(c, nil, nil), nil
	}
	if p.full[c.Lines()] == nil && !asks.over {
		full := newEngine(p.layout, 1, c.Lines())
		full.pauses = asks
		full.run()
		p.full[c.Lines()] = full.tally.counts
	}
	if asks.over {
		p.cold, p.full = nil, map[uint64][]hits{}
		return nil, ErrStopped
	}
	return e.result(c, p.full[c.Lines()], p.cold), nil
}

// result lays counts out; full are those of the fully associative cache, and cold the
// first touches of each node, then of each reference at the top; or nil.
func (e *engine) result(c Cache, full []hits, cold []uint64) *Result {
	all := make([]Counts, len(e.tally.counts))
	for i, n := range e.tally.counts {
		all[i] = Counts{Accesses: n.accesses, Misses: n.misses}
		if full != nil {
			all[i].Cold, all[i].Full = cold[i], full[i].misses
		}
	}
	r := &Result{Cache: c, Nodes: all[:e.nodes:e.nodes], tops: e.tops, top: len(e.shapes), Loose: all[e.nodes:], ShortLoops: e.layout.many, Simulated: e.done, Kinds: full != nil}
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
	for i, s := range a.spans {
		r.Arrays = append(r.Arrays, Array{First: s.first, Last: s.last, Column: int(a.number[i])})
	}
	for ref, i := range a.byRef {
		if i >= 0 {
			r.Arrays[i].References = append(r.Arrays[i].References, ref)
			r.Arrays[i].Counts.add(r.Refs[ref])
		}
	}
	for i := range a.shown {
		r.Evictions = append(r.Evictions, e.tally.out[i*a.shown:(i+1)*a.shown])
	}
	return r
}

// sum fills in the counts of the loops from node at on.
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

// Curve is what a tree does in fully associative caches of all capacities up to a
// limit.
type Curve struct {
	Accesses uint64
	// Hits are the accesses with each stack distance, in lines from zero.
	Hits []uint64
	// Beyond are the others: those with a larger distance, and first accesses.
	Beyond uint64

	Simulated, Jumped uint64 // see [Result]
}

// Misses of a cache of so many lines, at most len(Hits).
func (c *Curve) Misses(lines int) uint64 {
	n := c.Beyond
	for _, hits := range c.Hits[lines:] {
		n += hits
	}
	return n
}

// Capacities gives the curve of a tree up to a capacity in lines. Its cost grows with
// that capacity, not with trip counts. The error is a [*trace.OptionError].
func Capacities(t *loops.Tree, lineBytes, lines uint64) (*Curve, error) {
	if err := (Cache{lineBytes, 1, lines}).check(); err != nil {
		return nil, err
	}
	p, err := Prepare(t, lineBytes)
	if err != nil {
		return nil, err
	}
	e := newEngine(p.layout, 1, lines)
	e.state = newStacks(1, lines)
	e.tally.depths = make([]uint64, lines)
	e.run()
	r := &Curve{Hits: e.tally.depths, Simulated: e.done}
	for _, n := range e.tally.counts {
		r.Accesses += n.accesses
		r.Beyond += n.misses
	}
	r.Jumped = r.Accesses - r.Simulated
	return r, nil
}
