// Package sma implements ScalaMemAnalysis (SMA). SMA estimates the misses of a tree of loops
// ([loops.Tree]) in a cache without processing every access. SMA proceeds from inner to outer
// loops, and determines which arrays are in the cache (Balasubramanian, ScalaMemAnalysis: A
// Compositional Approach to Cache Analysis of Compressed Memory Traces, MS thesis, North
// Carolina State University, 2014; called the thesis here; MODELS §11.3). The result can be
// compared with the exact counts of package misses for the same tree.
//
//  1. An array is the data that a reference touches while a loop runs: a strided section
//     (thesis §3.1). For each loop, a section covers all iterations of that loop, and overlapping
//     sections form one array.
//  2. Each loop has two contexts: a left context (the first arrays that it uses), and a right
//     context (the last arrays that it uses, from least to most recently used). Both contexts
//     contain only arrays that fit in the cache (§3.3). The context-based reuse distance determines
//     whether lines of an array are still in the cache when the array is used again: for each set,
//     the number of lines used since the last use is compared with the number of ways.
//  3. Within a loop, the references alternate, one line at a time; between loops, arrays are
//     treated as a whole (§4.9). First, the end of an iteration is composed with the beginning of
//     the next iteration of the same loop (Figure 3.4). Then each loop is composed with its
//     enclosing loop (Algorithm 2), up to the root, which is a loop that runs once.
//  4. Each array has a class at each level ([Class]; §4.2). The class determines the array's
//     misses: with FIRST_MISS, each line of the array misses once at that level; lines that do not
//     stay in the cache miss again in each iteration of the outer loops that reuse them.
//
// The first rule that applies determines the class. An array is ALWAYS_HIT if it is already in the
// cache. An array is FIRST_MISS if it fits in the cache and each set has enough ways. If two arrays
// in the same loop begin in the same set, have the same length and stride, and the sets have no
// free way, both are ALWAYS_MISS (§4.3). In this case, an array that was already in the cache
// before the loop is FIRST_HIT. If two arrays overlap in some sets, or begin in the same set with
// different strides, both are CONF_MISS (§4.4, §4.5). If the arrays belong to nested loops, the
// inner array is CONF_MISS, because it stays in the cache except for one line per iteration; the
// outer array is ALWAYS_MISS (§4.7). If the cache is too small, the array is CAP_MISS, even if it
// was FIRST_MISS (§4.8). Two arrays that share a line at their edges do not conflict (§4.10). Cold
// misses are not distinguished from capacity misses (§3.1).
//
// The run time depends on the size of the tree, the number of sets and the number of arrays in a
// loop, but not on trip counts.
//
// # Gaps in the thesis
//
//   - In this package, conflicts are counted for each set. The thesis splits an array into regions,
//     and counts the ways in each region (§4.4). Here, each set is a region, so only the lines in
//     overfull sets miss again. Only contexts and classes are determined for whole arrays (§4.1).
//     If misses were counted for whole arrays instead of sets, the errors would be several times as
//     large as in the thesis.
//   - Here, an array with a stride longer than a line occupies only the sets of the lines that it
//     accesses. The thesis assumes that such an array occupies all sets in its address range, and
//     calls the assumption a weakness (§4.10).
//   - Strides of outer loops move arrays relative to each other (§4.6, which has no formula). Here,
//     the shares of evicted lines are averaged over many iterations, which are spread evenly over
//     all enclosing loops. If a loop touches B lines of an array in total and D in each of its n
//     iterations, (B-D)/(n-1) lines are new in each iteration after the first. The other
//     D-(B-D)/(n-1) lines of an iteration were used earlier, but may have been evicted.
//   - If a loop traverses several arrays at the same time, and the cache cannot contain all of
//     them, only a part of each array is in the cache when the loop ends, as in the text on Figure
//     4.4. If each iteration of the loop uses a whole array, this array is treated as if the loop
//     used it after the arrays that the loop traverses.
//   - If a trace compresses badly, the root of its tree contains a large number of arrays that
//     consist of only one line. Therefore, the context of the root consists of lines instead of
//     arrays, and references outside of loops are composed exactly.
//   - The trip count of a loop may change from one iteration of an outer loop to the next. This
//     package uses the mean trip count, and the trip counts in eight iterations of the outer loop.
//     The thesis does not consider loops with varying trip counts.
//   - The addresses of references without a pattern (wild references) are stored as a list. The
//     method of the thesis would compose every access of a wild reference. Here, package misses
//     counts the misses of wild references in a separate cache, and the contexts do not contain
//     these references.
//
// Figures 4.3 and 4.4 of the thesis contradict its text; this package follows the text.
//
// # Errors
//
// testdata/errors.txt compares SMA with simulation for 43 nests in 28 caches each. The thesis
// reports errors for caches of 4 KB or more. For gemm, the thesis's errors are at most 8 % of the
// latency and 45 % of the misses; the errors of this package are at most 3.5 % of the latency and
// 21 % of the misses. For blocked gemm, the thesis's errors are at most 8 % of the latency (except
// for two outliers) and 40 % of the misses (with spikes of 60 to 80 %); the errors of this package
// are at most 3.5 % of the latency and 35 % of the misses (with one spike of 48 %). For simple
// nests, the thesis's errors are at most 2 % of the latency; the counts of this package are exact.
// For transposition, triangular products, matrix-vector products and Jacobi's method, which the
// thesis does not measure, the errors of this package are at most 4.3 % of the latency and 40 % of
// the misses. The counts of package misses are exact.
//
// # Classes from exact counts
//
// [Result.Exact] returns exact counts for the same arrays and loops. [Exact.Class] derives the
// class of an array from its counts.
package sma

import (
	"math"
	"strconv"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/loops/misses"
	"github.com/stackglass/stackglass/core/trace"
)

// Class describes the behaviour of an array in a loop (thesis §4.2).
type Class uint8

// The classes.
const (
	AlwaysHit Class = iota // the array is already in the cache
	FirstMiss              // each line misses once, and then stays in the cache
	CapMiss                // the array does not stay in the cache, which is too small; misses repeat in outer loops
	FirstHit               // the array is in the cache until other arrays evict its lines one by one
	// the array does not stay in the cache, because other arrays use the same sets; misses repeat
	// in outer loops
	ConfMiss
	AlwaysMiss // all accesses miss
	NumClasses = 6
)

// String returns the name of the class in the thesis.
func (c Class) String() string {
	if c >= NumClasses {
		return "unknown"
	}
	return [...]string{"ALWAYS_HIT", "FIRST_MISS", "CAP_MISS", "FIRST_HIT", "CONF_MISS", "ALWAYS_MISS"}[c]
}

// Level contains the counts for one run of a loop, averaged over all runs of the loop. The
// counts assume that the cache contains no array of the loop before the run.
type Level struct {
	Accesses, Misses float64 // numbers of line accesses and line misses
	Class            Class
}

func (v *Level) add(o Level) {
	v.Accesses += o.Accesses
	v.Misses += o.Misses
}

// Latency contains the costs of hits and misses (thesis §5.3).
type Latency struct{ HitCycles, MissCycles float64 }

// Opteron returns the latencies that the thesis uses.
func Opteron() Latency { return Latency{3, 12} }

// Mean returns the average latency of accesses.
func (l Latency) Mean(accesses, misses float64) float64 {
	if accesses == 0 {
		return 0
	}
	return l.HitCycles + (l.MissCycles-l.HitCycles)*misses/accesses
}

// Result contains the results of an analysis for a tree.
type Result struct {
	Loops  []Loop  // the root, then the loops in pre-order
	Leaves []Leaf  // references in the order of the tree, without events and without references that never run
	Total  Level   // sum over all leaves; Class is not set
	Wild   float64 // number of accesses of wild references, whose addresses are stored as a list
}

// Loop contains the results for a loop. The counts are for one run of the loop (see [Level]).
type Loop struct {
	Path   []int   // indices of items in the tree, outermost first; empty for the root
	Around int     // enclosing loop, an index into Result.Loops; -1 for the root
	Trips  float64 // mean number of iterations per run
	Runs   float64
	Total  Level // mean counts per run; Class is not set
	// Arrays is sorted by the time of the last use. Left and Right contain indices into Arrays.
	// Left lists the arrays that the loop uses first: as many arrays as fit in the cache together.
	// Right lists the arrays that are still completely in the cache at the end of the loop; the
	// most recently used array comes last (§3.3).
	Arrays      []Array
	Left, Right []int
}

// Array is the data that some references touch in the first run of a loop. References whose bytes
// overlap during the loop belong to the same array.
type Array struct {
	Lo, Hi trace.Addr // addresses of the first and the last byte
	Lines  float64    // mean number of distinct lines per run
	Leaves []int      // indices into Result.Leaves
	Level
}

// Leaf contains the results for a reference.
type Leaf struct {
	Path   []int // indices of items in the tree, outermost first
	Ref    loops.Reference
	Addr   trace.Addr // address in the first iteration of all enclosing loops
	Wild   bool
	Loops  []int   // the enclosing loops, indices into Result.Loops, the root first
	Levels []Level // counts for one run of each of these loops (§3.2)
}

// errMany is the error for a tree whose counts would overflow.
var errMany = &trace.OptionError{Option: "tree", Got: "2^64 references or more", Want: "fewer accesses, because counts have 64 bits"}

// These constants are the maximum dimensions of a cache.
const (
	mostSets = 1 << 20
	mostWays = 1 << 24
	mostLine = 1 << 20
)

func geometryOf(c misses.Cache) (geometry, error) {
	want := ""
	switch {
	case c.LineBytes < 1 || c.LineBytes > mostLine || c.LineBytes&(c.LineBytes-1) != 0:
		want = "a line size that is a power of two up to 1048576 bytes"
	case c.Sets < 1 || c.Sets > mostSets:
		want = "1 to " + strconv.Itoa(mostSets) + " sets"
	case c.Ways < 1 || c.Ways > mostWays:
		want = "1 to " + strconv.Itoa(mostWays) + " ways"
	default:
		return geometry{uint32(c.Sets), uint32(c.Ways), uint32(c.LineBytes)}, nil
	}
	return geometry{}, &trace.OptionError{Option: "cache", Got: c.String(), Want: want}
}

// These limits apply to the number of sampled iterations: the maximum for all loops together,
// and the minimum and maximum for one loop.
const (
	allPlaces  = 1 << 25
	leastOfOne = 1 << 10
	mostOfOne  = 1 << 16
)

// Analyze analyses a tree that starts with an empty cache. The error is a [*trace.OptionError].
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
	a.countWild(nest, c)
	root := &loop{trips: 1, turns: 1}
	a.buildLoops(nest.Items, root, []*loop{root})
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

// addLoop adds a loop and its inner loops to the result.
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
	sum.Left = a.leftContext(l)
	r.Loops = append(r.Loops, sum)
	for _, p := range l.body {
		if p.inner != nil {
			a.addLoop(r, p.inner, l.at)
		}
	}
}
