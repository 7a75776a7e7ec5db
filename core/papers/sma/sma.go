// Package sma is ScalaMemAnalysis (SMA). It composes the behaviour of a tree of loops ([loops.Tree]) in a
// cache, loop by loop, from which arrays are in the cache, without running through the trace
// (Balasubramanian, ScalaMemAnalysis: A Compositional Approach to Cache Analysis of Compressed Memory
// Traces, MS thesis, North Carolina State University, 2014; here, the thesis; MODELS §11.3). It is an
// estimate, to be compared with the exact counts of package misses on the same tree.
//
//  1. An array is what a reference touches while a loop runs: a strided section (thesis §3.1). At the
//     level of each loop, sections that overlap are one array, with extents for that loop's stride.
//  2. Each loop has a left context, the first arrays that it uses, and a right context, the last
//     ones, from least to most recently used, as far as they fit (§3.3). Whether lines of an array
//     are still there when it is used again depends on its context-based reuse distance: the lines
//     used since, set by set, compared with the ways.
//  3. Within a loop, references take turns, one line at a time; between loops, arrays count as a whole
//     (§4.9). A loop is composed with itself, the end of an iteration with the beginning of the next
//     (Figure 3.4), and then into the loop around it (Algorithm 2), up to the root, a loop that runs once.
//  4. Each array gets a class at each level ([Class]; §4.2), and the misses follow: FIRST_MISS
//     misses an array's lines at that level once; lines that do not stay are missed again in each
//     iteration of the outer loops that use them again.
//
// The first rule that fits determines the class. Present: ALWAYS_HIT. The array fits, and there are
// ways: FIRST_MISS. Two arrays in the same loop, beginning in the same set, of the same length,
// moving alike, without a way left: ALWAYS_MISS, both (§4.3). The same, if it was present before
// the loop: FIRST_HIT. A partial overlap in sets, or the same beginning with another stride:
// CONF_MISS, both (§4.4, §4.5). Two loops, one within the other: CONF_MISS for the inner array,
// which loses a line an iteration and stays, and ALWAYS_MISS for the outer one (§4.7). No room in
// the cache: CAP_MISS, also if it was FIRST_MISS (§4.8). A line at an edge that two arrays share is
// no conflict (§4.10). Cold misses are not distinguished from capacity misses (§3.1).
//
// The time depends on the size of the tree, the number of sets and the number of arrays in a loop,
// not on trip counts.
//
// # Gaps in the thesis
//
//   - Conflicts are counted by set. The thesis splits an array into regions with a number of ways
//     each (§4.4); here the regions are sets, so that only the lines in overfull sets are missed
//     again. Contexts and classes know whole arrays only (§4.1). With whole arrays for misses, too,
//     errors would be several times the thesis's.
//   - A stride that is longer than a line uses the sets that it reaches. The thesis takes the whole
//     range, and calls this its weakness (§4.10).
//   - Strides of outer loops move arrays against each other (§4.6, which has no formula). Here the
//     losses are averaged over iterations at many places, spread evenly over all loops around. If a
//     loop touches B lines of an array in all and D in one of its n iterations, (B-D)/(n-1) are new
//     in each iteration; the others may have been lost.
//   - Arrays that a loop walks through in turn and that do not fit together are all incomplete at its end,
//     as in the text for Figure 4.4; arrays that each iteration uses as a whole were used after them.
//   - In the root, where a badly compressed tree has very many arrays of one line, the context is
//     kept by lines, so that references outside of loops are composed exactly.
//   - Trip counts that change from one iteration to the next count with their mean, and at eight
//     stages of the loop that changes them. The thesis has no such loops.
//   - The thesis would compose each access of references without a pattern (wild), whose addresses
//     are a list. Here package misses counts their misses in a cache that only they use, and they
//     take no room in the contexts.
//
// Figures 4.3 and 4.4 of the thesis contradict its text; the text holds here.
//
// # Errors
//
// testdata/errors.txt compares SMA with simulation for 43 nests in 28 caches each. From 4 KB on, where the
// thesis measured, its figures and ours: gemm within 8 % of the latency and 45 % of the misses, ours 3.5
// and 21; blocked gemm 8 (two outliers aside) and 40, with spikes of 60 to 80, ours 3.5 and 35, with one
// of 48; simple nests 2 % of the latency, ours 0. Transposition, products of a triangle and with vectors,
// and Jacobi's method, which the thesis does not have: 4.3 and 40. Package misses is exact.
//
// # Classes from exact counts
//
// [Result.Exact] returns exact counts for the same arrays and loops, and [Exact.Class] their class.
package sma

import (
	"math"
	"strconv"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/loops/misses"
	"github.com/stackglass/stackglass/core/trace"
)

// Class is the behaviour of an array in a loop (thesis §4.2).
type Class uint8

// The classes.
const (
	AlwaysHit  Class = iota // the array is in the cache already
	FirstMiss               // each line misses once, and stays
	CapMiss                 // does not stay, because there is no room; misses multiply in outer loops
	FirstHit                // is in the cache, until other arrays evict the lines in turn
	ConfMiss                // does not stay, because other arrays are in its sets; misses multiply in outer loops
	AlwaysMiss              // all accesses miss
	NumClasses = 6
)

// String returns the class as the thesis writes it.
func (c Class) String() string {
	if c >= NumClasses {
		return "unknown"
	}
	return [...]string{"ALWAYS_HIT", "FIRST_MISS", "CAP_MISS", "FIRST_HIT", "CONF_MISS", "ALWAYS_MISS"}[c]
}

// Level is the behaviour in one run of a loop, on average over its runs, if none of its arrays is in
// the cache before.
type Level struct {
	Accesses, Misses float64 // of lines
	Class            Class
}

func (v *Level) add(o Level) {
	v.Accesses += o.Accesses
	v.Misses += o.Misses
}

// Latency contains the costs of hits and misses (thesis §5.3).
type Latency struct{ HitCycles, MissCycles float64 }

// Opteron returns the latency in the thesis.
func Opteron() Latency { return Latency{3, 12} }

// Mean returns the average latency of accesses.
func (l Latency) Mean(accesses, misses float64) float64 {
	if accesses == 0 {
		return 0
	}
	return l.HitCycles + (l.MissCycles-l.HitCycles)*misses/accesses
}

// Result is the result for a tree.
type Result struct {
	Loops  []Loop  // the root, then the loops in pre-order
	Leaves []Leaf  // references in the order of the tree, without events and without references that never run
	Total  Level   // without a class
	Wild   float64 // accesses whose addresses are a list
}

// Loop is a loop at its level.
type Loop struct {
	Path   []int   // indices of items in the tree, the outermost first; empty for the root
	Around int     // in Result.Loops; -1 for the root
	Trips  float64 // of a run, on average
	Runs   float64
	Total  Level // of a run, without a class
	// Arrays are in the order of their last use. Left are the first arrays that are used, as many
	// as fit in the cache. Right are the arrays that are still completely in the cache at the end,
	// the most recent last (§3.3).
	Arrays      []Array
	Left, Right []int
}

// Array is the data that references touch in the first run of a loop, joined if their bytes overlap
// during the loop.
type Array struct {
	Lo, Hi trace.Addr // the lowest and the highest byte
	Lines  float64    // distinct, on average over runs
	Leaves []int      // in Result.Leaves
	Level
}

// Leaf is a reference.
type Leaf struct {
	Path   []int // indices of items in the tree, the outermost first
	Ref    loops.Reference
	Addr   trace.Addr // in the first iteration of all loops around it
	Wild   bool
	Loops  []int   // around it, in Result.Loops, the root first
	Levels []Level // at each of these loops (§3.2)
}

// errMany reports a tree whose counts would overflow.
var errMany = &trace.OptionError{Option: "tree", Got: "2^64 references or more", Want: "fewer: counts have 64 bits"}

// Limits of a cache.
const (
	mostSets = 1 << 20
	mostWays = 1 << 24
	mostLine = 1 << 20
)

func geometryOf(c misses.Cache) (geometry, error) {
	want := ""
	switch {
	case c.LineBytes < 1 || c.LineBytes > mostLine || c.LineBytes&(c.LineBytes-1) != 0:
		want = "lines of 1 to 1048576 bytes, a power of two"
	case c.Sets < 1 || c.Sets > mostSets:
		want = "1 to " + strconv.Itoa(mostSets) + " sets"
	case c.Ways < 1 || c.Ways > mostWays:
		want = "1 to " + strconv.Itoa(mostWays) + " ways"
	default:
		return geometry{uint32(c.Sets), uint32(c.Ways), uint32(c.LineBytes)}, nil
	}
	return geometry{}, &trace.OptionError{Option: "cache", Got: c.String(), Want: want}
}

// Bounds of the positions at which iterations are sampled, in all loops together and in one.
const (
	allPlaces  = 1 << 25
	leastOfOne = 1 << 10
	mostOfOne  = 1 << 16
)

// Analyze analyses a tree, from an empty cache. The error is a [*trace.OptionError].
func Analyze(t *loops.Tree, c misses.Cache) (*Result, error) {
	g, err := geometryOf(c)
	if err != nil {
		return nil, err
	}
	if t.Rows() == math.MaxUint64 {
		return nil, errMany
	}
	a := &analysis{cache: g, wild: map[loops.Reference]Level{}, counts: make([]float32, g.Sets)}
	nest := t.Nest()
	a.alone(nest, c)
	root := &loop{trips: 1, turns: 1}
	a.read(nest.Items, root, []*loop{root})
	a.budget = min(max(allPlaces/(a.loops+1), leastOfOne), mostOfOne)
	a.compose(root)
	r := &Result{}
	a.addLoop(r, root, -1)
	for _, l := range a.leaves {
		leaf := Leaf{Path: l.path, Ref: l.item.Ref, Addr: l.item.Addr, Wild: l.item.Wild, Levels: l.levels}
		for _, around := range l.chain {
			leaf.Loops = append(leaf.Loops, around.at)
		}
		r.Leaves = append(r.Leaves, leaf)
		if l.item.Wild {
			r.Wild += l.levels[0].Accesses
		}
	}
	r.Total = r.Loops[0].Total
	return r, nil
}

// addLoop adds a loop and those in it to the result.
func (a *analysis) addLoop(r *Result, l *loop, around int) {
	l.at = len(r.Loops)
	sum := Loop{Path: l.path, Around: around, Trips: l.trips, Runs: 1}
	if l.around != nil {
		sum.Runs = l.around.turns
	}
	for _, u := range l.wild {
		sum.Total.add(u.levels[l.depth])
	}
	for i := range l.arrays {
		s := &l.arrays[i]
		v := Array{Lo: s.span.lo, Hi: s.span.hi, Lines: s.lines, Level: s.level}
		for _, u := range s.leaves {
			v.Leaves = append(v.Leaves, u.number)
		}
		sum.Arrays = append(sum.Arrays, v)
		sum.Total.add(s.level)
		if s.stays {
			sum.Right = append(sum.Right, i)
		}
	}
	sum.Left = a.left(l)
	r.Loops = append(r.Loops, sum)
	for _, p := range l.body {
		if p.inner != nil {
			a.addLoop(r, p.inner, l.at)
		}
	}
}
