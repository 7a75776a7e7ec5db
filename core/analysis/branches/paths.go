package branches

import (
	"cmp"
	"math"
	"sort"

	"github.com/stackglass/stackglass/core/analysis/index"
	"github.com/stackglass/stackglass/core/profile"
)

// MostPaths is the maximum number of call paths that a run distinguishes. The counts of all further
// call paths are added to the path [profile.FurtherPaths].
const MostPaths = 1 << 14

// MostDepth is the maximum number of functions in a call path. Deeper calls are counted on an
// additional path, [profile.FurtherPaths], below the last function. Without this limit, a recursion
// among three or more functions that is thousands of calls deep would have thousands of paths. The
// size of exports that write every path in full would then grow with the square of the depth.
const MostDepth = 512

// paths is the tree of call paths: the calling context tree of Ammons, Ball and Larus (Exploiting
// Hardware Performance Counters with Flow and Context Sensitive Profiling, PLDI 1997). If a
// function calls itself, the path stays the same. If two functions call each other, the calls
// alternate between two paths. Recursion of any depth therefore adds only a few paths. Whether a
// call extends a path depends only on the last two functions of the path, so the paths of a segment
// can start from unknown callers. When the segment is appended, its paths become paths of the run.
type paths struct {
	list    []path
	at      index.Table // parent << 32 | function
	most    int         // maximum number of paths that are counted separately
	rest    uint32      // the path that counts all calls beyond the maximum number of paths; 0: no such calls so far
	deep    uint32      // maximum depth of paths that are counted separately
	deepest uint32      // greatest depth of any path
}

// path is a call path: a function, and the path of its caller. Path 0 is outside all functions.
type path struct {
	parent, function uint32 // the path of the caller; and the function: its number in code, or one of the constants below
	// number of functions on the path; in a segment, excluding functions that were entered before
	// the segment
	depth uint32

	calls        uint64 // calls from the parent's function
	again        uint64 // direct recursive calls of the function, which stay on the path
	back         uint64 // calls back to the parent's function, which continue on the parent's path
	instructions uint64 // LLVM IR instructions executed on the path
}

// If the field function has one of these values, the path does not end in a known function.
const (
	outside = ^uint32(0) - iota // outside all functions
	below                       // the path is unknown, because it began before the segment
	further                     // all paths beyond the limits
)

// newPaths returns a tree without calls. In a segment, all paths are counted separately, because
// only an analysis of the whole run knows which paths appear first. If a segment's paths exceed the
// limits of a run, the segment cannot be appended (ErrManyPaths).
func newPaths(segment bool) paths {
	p := paths{list: []path{{function: outside}}, most: MostPaths, deep: MostDepth}
	if segment {
		p.most, p.deep = math.MaxInt, math.MaxUint32
	}
	return p
}

// exceedsLimits reports whether a segment's paths exceed the limits of a run.
func (p *paths) exceedsLimits() bool { return len(p.list) > MostPaths || p.deepest > MostDepth }

func (p *paths) callee(from, function uint32, times uint64) uint32 {
	at := &p.list[from]
	switch {
	case at.function == function || at.function == further:
		at.again += times
		return from
	case from != 0 && p.list[at.parent].function == function:
		at.back += times
		return at.parent
	}
	n := p.calleePath(from, function)
	p.list[n].calls += times
	return n
}

// calleePath returns the path of a function that is called from another path, and creates the path
// if necessary.
func (p *paths) calleePath(from, function uint32) uint32 {
	if p.list[from].depth >= p.deep {
		function = further
	}
	key := uint64(from)<<32 | uint64(function)
	n, known := p.at.Find(key)
	if known {
		return n
	}
	if len(p.list) >= p.most {
		if p.rest == 0 {
			p.rest = p.add(0, further)
		}
		n = p.rest
	} else {
		n = p.add(from, function)
	}
	p.at.Add(key, n)
	return n
}

// copyPath adds a path of another tree, without its counts.
func (p *paths) copyPath(from *paths, n uint32) uint32 {
	if n == 0 {
		return 0
	}
	at := &from.list[n]
	return p.calleePath(p.copyPath(from, at.parent), at.function)
}

func (p *paths) add(parent, function uint32) uint32 {
	p.list = append(p.list, path{parent: parent, function: function})
	n := uint32(len(p.list) - 1)
	p.setDepth(n)
	return n
}

// setDepth sets the depth of a path. The parent's depth must be known.
func (p *paths) setDepth(n uint32) {
	if at := &p.list[n]; n > 0 && at.function != below {
		at.depth = p.list[at.parent].depth + 1
		p.deepest = max(p.deepest, at.depth)
	}
}

// addUnknown adds a placeholder for an unknown path that began before the segment.
func (p *paths) addUnknown() uint32 { return p.add(0, below) }

// sorted returns the numbers of all paths in the order of results: parents precede their callees,
// and the callees of a path are sorted by function.
func (p *paths) sorted() []uint32 {
	callees := make([][]uint32, len(p.list))
	for n := range p.list[1:] {
		parent := p.list[n+1].parent
		callees[parent] = append(callees[parent], uint32(n+1))
	}
	order, waiting := make([]uint32, 0, len(p.list)), []uint32{0}
	for len(waiting) > 0 {
		n := waiting[len(waiting)-1]
		waiting = waiting[:len(waiting)-1]
		order = append(order, n)
		sort.Slice(callees[n], func(i, j int) bool {
			a, b := callees[n][i], callees[n][j]
			return cmp.Or(cmp.Compare(p.list[b].function, p.list[a].function), cmp.Compare(b, a)) < 0
		})
		waiting = append(waiting, callees[n]...)
	}
	return order
}

// Change describes a change of the call path within a batch: Path is the call path of the batch's
// references whose numbers are at least From.
type Change struct{ From, Path uint32 }

// notePath records that all references of the batch from the given number onwards belong to the
// path.
func (a *Analysis) notePath(from, path uint32) {
	n := len(a.changes)
	switch {
	case n > 0 && a.changes[n-1].Path == path:
	case n > 0 && a.changes[n-1].From == from:
		a.changes[n-1].Path = path
	default:
		a.changes = append(a.changes, Change{from, path})
	}
}

// topPath returns the path of a thread's topmost invocation. The invocation may have begun before
// the segment.
func (a *Analysis) topPath(t *thread) uint32 {
	switch {
	case t.at != 0:
		return t.path
	case !a.segment || len(t.continuations) == 0:
		return 0
	}
	last := &t.continuations[len(t.continuations)-1]
	if last.lower == 0 {
		last.lower = a.paths.addUnknown()
	}
	return last.lower
}

// appendPaths adds the paths of the next segment. The parameter known maps the segment's paths to
// paths of the run. The function that calls appendPaths must have set the elements of known for
// paths that began before the segment. appendPaths sets all other elements.
func (p *paths) appendPaths(next *paths, known []uint32) {
	for n := range next.list {
		from := &next.list[n]
		if from.function != outside && from.function != below {
			known[n] = p.callee(known[from.parent], from.function, from.calls)
			if from.again > 0 {
				p.callee(known[n], from.function, from.again)
			}
			if from.back > 0 {
				p.callee(known[n], next.list[from.parent].function, from.back)
			}
		}
		p.list[known[n]].instructions += from.instructions
	}
}

// Changes returns the call paths of the references in the latest batch, or nil if there are no call
// paths.
func (a *Analysis) Changes() []Change {
	if a.gone {
		return nil
	}
	return a.changes
}

// Paths returns the number of paths so far; 0 if there is no result.
func (a *Analysis) Paths() int {
	if a.gone {
		return 0
	}
	return len(a.paths.list)
}

// Adopted returns the number of each call path of the profile that was restored or appended last,
// in the order of that profile's Calls. Adopted returns nil if the profile has no call paths.
func (a *Analysis) Adopted() []uint32 { return a.adopted }

// Describe returns the call paths and their numbers, in the order in which results list them.
func (a *Analysis) Describe() (list []profile.Path, numbers []uint32) {
	numbers = a.paths.sorted()
	at := make([]uint32, len(numbers))
	list = make([]profile.Path, len(numbers))
	for i, n := range numbers {
		at[n] = uint32(i)
		of := &a.paths.list[n]
		list[i] = profile.Path{Parent: at[of.parent], Calls: of.calls, Again: of.again, Back: of.back, Instructions: of.instructions}
		switch p := a.code.program; {
		case of.function == further:
			list[i].Function = profile.FurtherPaths
		case of.function < below && p != nil && uint64(of.function) < uint64(len(p.Functions)):
			f := &p.Functions[of.function]
			list[i].Function, list[i].File, list[i].Line = f.Name, f.Place.File, f.Place.Line
		}
	}
	return list, numbers
}
