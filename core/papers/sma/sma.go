// Package sma is ScalaMemAnalysis: how a tree of loops ([loops.Tree]) behaves in a cache,
// composed loop by loop from which arrays are in the cache, without running through the
// trace (Balasubramanian, ScalaMemAnalysis: A Compositional Approach to Cache Analysis of
// Compressed Memory Traces, MS thesis, North Carolina State University, 2014; here, the
// thesis; MODELS §11.3). It is an estimate, and it is here so that its results can be held against exact
// ones: package misses counts on the same tree what SMA estimates.
//
//  1. An array is what a reference touches while a loop runs: a strided section (thesis
//     §3.1). At the level of each loop, those that overlap are one, and extents are
//     computed anew with that loop's stride.
//  2. Each loop has a left context, the first arrays that it uses, and a right context,
//     the last ones, from the one used longest ago to the last one, as far as they fit
//     (§3.3). Whether lines of an array are still there when it is used again is its
//     context-based reuse distance: what was used since, set by set, against the ways.
//  3. Within a loop, references go by turns, so each takes one line a time; between loops
//     arrays count as a whole (§4.9). A loop is composed with itself, the end of an
//     iteration with the beginning of the next (Figure 3.4), and then into the loop around
//     it (Algorithm 2), up to the root, a loop that runs once.
//  4. A class is given to each array at each level ([Class]; §4.2), and misses follow:
//     those of FIRST_MISS are an array's lines at that level; what does not stay is missed
//     again in each iteration of the loops outside, as far as it is used again.
//
// The classes, by the first rule that fits. Present: ALWAYS_HIT. It fits, and there are ways:
// FIRST_MISS. In the same loop, beginning in the same set, as long, moving alike, and no
// way left: ALWAYS_MISS, both (§4.3). The same where it was present before: FIRST_HIT. A
// partial overlap in sets, or the same beginning with another stride: CONF_MISS, both
// (§4.4, §4.5). Of two loops, one within the other: CONF_MISS for the inner array, which
// loses a line an iteration and stays, and ALWAYS_MISS for the outer one (§4.7). No room in
// the cache: CAP_MISS, also for what was FIRST_MISS (§4.8). A line at an edge that two
// arrays share is no conflict (§4.10). Cold misses are not told from capacity misses (§3.1).
//
// The time goes with the size of the tree, the number of sets and how many arrays there are
// in a loop, never with trip counts.
//
// # What the thesis leaves open
//
//   - Conflicts are counted by set. The thesis splits an array into regions with a number
//     of ways each (§4.4); here the regions are sets, so that only the lines in sets that
//     are too full are missed again. Contexts and classes know whole arrays only (§4.1).
//     With whole arrays for misses, too, errors would be several times those of the thesis.
//   - The sets of a stride that is longer than a line are those that it comes to. The
//     thesis takes the whole range, and says that this is its weakness (§4.10).
//   - Strides of outer loops move arrays against each other (§4.6, which has no formula):
//     iterations at many places, spread evenly over all loops around, are looked at, and
//     what is lost is averaged. Of B lines of an array in all of a loop and D in one of its
//     n iterations, (B-D)/(n-1) are new in each; the others can have been lost.
//   - Arrays that a loop walks through by turns and that do not fit together are all
//     incomplete at its end, as the text for Figure 4.4 has it; those that each iteration
//     uses as a whole were used after them.
//   - In the root, where a tree that folds badly has very many arrays of one line, the
//     context is kept by lines, so that what is in no loop is composed exactly.
//   - Trip counts that change from one iteration to the next enter with their mean, and at
//     eight stages of the loop that changes them. The thesis has no such loops.
//   - Of references without a pattern (wild), whose addresses are a list, the thesis would
//     compose each access. Here they miss what they miss, by package misses, in a cache
//     that only they use, and take no room in the contexts.
//
// Figures 4.3 and 4.4 of the thesis contradict its text; the text holds here.
//
// # Errors
//
// testdata/errors.txt holds SMA against simulation for 43 nests in 28 caches each. From
// 4 KB on, where the thesis measured, its figures and ours: gemm within 8 % of the latency
// and 45 % of the misses, ours 3.5 and 21; blocked gemm 8 (two outliers aside) and 40, with
// spikes of 60 to 80, ours 3.5 and 35, with one of 48; simple nests 2 % of the latency,
// ours 0. Transposition, products of a triangle and with vectors, and Jacobi's method,
// which it has not: 4.3 and 40. The exact counts of package misses are off by nothing.
//
// # Classes from exact counts
//
// [Result.Exact] gives counts that are exact for the same arrays and loops, and
// [Exact.Class] the class that they amount to.
package sma

import (
	"math"
	"strconv"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/loops/misses"
	"github.com/stackglass/stackglass/core/trace"
)

// Class says how an array behaves in a loop (thesis §4.2).
type Class uint8

// The classes.
const (
	AlwaysHit  Class = iota // it is in the cache already
	FirstMiss               // each of its lines misses once, and stays
	CapMiss                 // it does not stay, for there is no room; misses multiply in the loops outside
	FirstHit                // it is in the cache, and then another array takes each line away by turns
	ConfMiss                // it does not stay, for others are in its sets; misses multiply in the loops outside
	AlwaysMiss              // all of its accesses miss
	NumClasses = 6
)

// String gives the class as the thesis writes it.
func (c Class) String() string {
	if c >= NumClasses {
		return "unknown"
	}
	return [...]string{"ALWAYS_HIT", "FIRST_MISS", "CAP_MISS", "FIRST_HIT", "CONF_MISS", "ALWAYS_MISS"}[c]
}

// Level is what happens in one run of a loop, on average over its runs, if the cache has
// nothing of its arrays before.
type Level struct {
	Accesses, Misses float64 // of lines
	Class            Class
}

// MissRate is the share of accesses that miss.
func (v Level) MissRate() float64 {
	if v.Accesses == 0 {
		return 0
	}
	return v.Misses / v.Accesses
}

// Latency is what an access costs on average (thesis §5.3).
type Latency struct{ HitCycles, MissCycles float64 }

// Opteron is the thesis' choice.
func Opteron() Latency { return Latency{3, 12} }

// Mean is the average over so many accesses.
func (l Latency) Mean(accesses, misses float64) float64 {
	if accesses == 0 {
		return 0
	}
	return l.HitCycles + (l.MissCycles-l.HitCycles)*misses/accesses
}

// Result is what the analysis says of a tree.
type Result struct {
	Loops  []Loop  // the root first, then loops in the order of the tree, each before those in it
	Leaves []Leaf  // references in the order of the tree; events and what never runs are left out
	Total  Level   // without a class
	Wild   float64 // accesses whose addresses are a list
}

// Loop is a loop at its level.
type Loop struct {
	Path   []int   // numbers of items in the tree, from 0, the outermost first; none of the root
	Around int     // in Result.Loops; -1 of the root
	Trips  float64 // a run, on average
	Runs   float64
	Total  Level // of a run, without a class
	// Arrays are in the order in which they were last used. Those of Left are the first
	// that are used, as many as the cache has room for, in order; those of Right are still
	// in the cache as a whole at the end, the one that was used last at the end (§3.3).
	Arrays      []Array
	Left, Right []int
}

// Array is what references whose bytes overlap during a loop touch in its first run.
type Array struct {
	Lo, Hi trace.Addr // the lowest and the highest byte
	Lines  float64    // different ones, on average over runs
	Leaves []int      // in Result.Leaves
	Level
}

// Leaf is a reference.
type Leaf struct {
	Path   []int // numbers of items in the tree, the outermost first
	Ref    loops.Reference
	Addr   trace.Addr // in the first iteration of all loops around it
	Wild   bool
	Loops  []int   // around it, in Result.Loops, the root first
	Levels []Level // at each of them (§3.2)
}

// errMany is of a tree beyond what counts.
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

// Bounds of the work: lines that are looked at in all loops together, and in one.
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
		of := Leaf{Path: l.path, Ref: l.item.Ref, Addr: l.item.Addr, Wild: l.item.Wild, Levels: l.levels}
		for _, around := range l.chain {
			of.Loops = append(of.Loops, around.at)
		}
		r.Leaves = append(r.Leaves, of)
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
	of := Loop{Path: l.path, Around: around, Trips: l.trips, Runs: 1}
	if l.around != nil {
		of.Runs = l.around.turns
	}
	for _, u := range l.wild {
		of.Total.Accesses += u.levels[l.depth].Accesses
		of.Total.Misses += u.levels[l.depth].Misses
	}
	for i := range l.arrays {
		s := &l.arrays[i]
		v := Array{Lo: s.span.lo, Hi: s.span.hi, Lines: s.lines, Level: s.level}
		for _, u := range s.leaves {
			v.Leaves = append(v.Leaves, u.number)
		}
		of.Arrays = append(of.Arrays, v)
		of.Total.Accesses += s.level.Accesses
		of.Total.Misses += s.level.Misses
		if s.stays {
			of.Right = append(of.Right, i)
		}
	}
	of.Left = a.left(l)
	r.Loops = append(r.Loops, of)
	for _, p := range l.body {
		if p.inner != nil {
			a.addLoop(r, p.inner, l.at)
		}
	}
}
