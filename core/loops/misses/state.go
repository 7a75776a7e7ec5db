package misses

import (
	"math/bits"

	"github.com/stackglass/stackglass/core/trace"
)

// access is an access to a line.
type access struct {
	line  trace.Line
	at    uint32 // number of the counters
	array uint32 // column of the line's array
}

// tally holds the counters of a run.
type tally struct {
	weight uint64 // how many equal accesses each access stands for
	counts []hits
	arrays *arrays
	out    []uint64 // evictions: by the array of the new line, then of the evicted one
	depths []uint64 // hits by stack distance, of one set; nil: not wanted
}

// hits are the counters of one node.
type hits struct{ accesses, misses uint64 }

// save appends the counters of the nodes from at on, of evictions and of stack distances to a list.
func (t *tally) save(to []uint64, at, nodes int) []uint64 {
	for _, n := range t.counts[at : at+nodes] {
		to = append(to, n.accesses, n.misses)
	}
	return append(append(to, t.out...), t.depths...)
}

// load sets the counters that save appended.
func (t *tally) load(from []uint64, at, nodes int) {
	for i := range nodes {
		t.counts[at+i] = hits{from[2*i], from[2*i+1]}
	}
	from = from[copy(t.out, from[2*nodes:])+2*nodes:]
	copy(t.depths, from)
}

// state is the content of a cache: LRU in each set.
type state interface {
	touch(all []access, t *tally) // makes and counts accesses
	lines() int                   // the most lines that the cache holds
	save(to []uint64) []uint64    // appends the content to a list
	load(from []uint64)           // sets the content to what was saved
	// moved reports whether the cache holds what was saved, each line where m moved it.
	moved(from []uint64, m *motion) bool
	move(m *motion, times uint64) // moves all lines by m, so many times
}

// none is no line.
const none = ^uint64(0)

// fewWays is how many ways are searched one by one.
const fewWays = 16

// newState makes an empty cache.
func newState(sets, ways uint64) state {
	if ways <= fewWays {
		return newFrames(sets, ways)
	}
	return newStacks(sets, ways)
}

// index chooses the set of a line.
type index struct {
	sets uint64
	mask uint64 // sets - 1 where that is all ones, and sets > 1
}

func newIndex(sets uint64) index {
	if sets&(sets-1) == 0 {
		return index{sets, sets - 1}
	}
	return index{sets: sets}
}

func (x *index) set(line trace.Line) uint64 {
	if x.mask != 0 || x.sets == 1 {
		return line & x.mask
	}
	return line % x.sets
}

// frames is a cache of few ways: the lines of each set in the order of their use, most
// recent first, none last.
type frames struct {
	index
	ways  int
	held  []trace.Line
	spare []trace.Line
}

func newFrames(sets, ways uint64) *frames {
	f := &frames{index: newIndex(sets), ways: int(ways), held: make([]trace.Line, sets*ways)}
	for i := range f.held {
		f.held[i] = none
	}
	return f
}

func (f *frames) lines() int { return len(f.held) }

func (f *frames) touch(all []access, t *tally) {
	for i := range all {
		a := &all[i]
		t.counts[a.at].accesses += t.weight
		at := int(f.set(a.line)) * f.ways
		if set := f.held[at : at+f.ways]; set[0] != a.line {
			f.use(a, set, t)
		}
	}
}

// use makes a line the newest of its set, which it is not yet.
func (f *frames) use(a *access, set []trace.Line, t *tally) {
	above := set[0]
	set[0] = a.line
	for w := 1; w < len(set); w++ {
		above, set[w] = set[w], above
		if above == a.line {
			return
		}
	}
	t.counts[a.at].misses += t.weight
	if above != none {
		t.evict(a, above)
	}
}

// evict counts the eviction of a line by an access.
func (t *tally) evict(a *access, line trace.Line) {
	t.out[int(a.array)*t.arrays.shown+int(t.arrays.of(line))] += t.weight
}

func (f *frames) save(to []uint64) []uint64 { return append(to, f.held...) }

func (f *frames) load(from []uint64) { copy(f.held, from) }

func (f *frames) moved(from []uint64, m *motion) bool {
	to := int(m.turn) * f.ways
	for at := 0; at < len(f.held); at += f.ways {
		before, now := from[at:at+f.ways], f.held[to:to+f.ways]
		for w := f.ways - 1; w >= 0; w-- {
			if !m.brings(before[w], now[w]) {
				return false
			}
		}
		if to += f.ways; to == len(f.held) {
			to = 0
		}
	}
	return true
}

func (f *frames) move(m *motion, times uint64) {
	turn := int(mulMod(m.turn, times, f.sets))
	f.spare = append(f.spare[:0], f.held...)
	for s := range int(f.sets) {
		to := (s + turn) % int(f.sets)
		for w, line := range f.spare[s*f.ways : (s+1)*f.ways] {
			f.held[to*f.ways+w] = m.after(line, times)
		}
	}
}

// mulMod is a × b modulo n.
func mulMod(a, b, n uint64) uint64 {
	hi, lo := bits.Mul64(a%n, b%n)
	return bits.Rem64(hi, lo, n)
}
