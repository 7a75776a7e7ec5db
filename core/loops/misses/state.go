package misses

import (
	"math/bits"

	"github.com/stackglass/stackglass/core/trace"
)

// access is one of a line.
type access struct {
	line  trace.Line
	at    uint32 // whose count it is
	array uint32 // whose line it is
}

// tally is what states count.
type tally struct {
	weight uint64 // of each access: how many equal ones it stands for
	counts []hits
	arrays *arrays
	out    []uint64 // evictions: by the array that comes, then by the one that goes
	depths []uint64 // hits by stack distance, of one set; nil: not wanted
}

// hits are of one node.
type hits struct{ accesses, misses uint64 }

// state is what a cache holds: LRU in each set.
type state interface {
	// touch makes accesses, and counts.
	touch(all []access, t *tally)
	// lines is the largest number that the cache holds.
	lines() int
	// save appends what the cache holds to a slice that was emptied.
	save(to []uint64) []uint64
	// load has the cache hold what was saved.
	load(from []uint64)
	// moved tells whether the cache holds what was saved, each line where m moved it.
	moved(from []uint64, m *motion) bool
	// move moves all lines by m, so many times.
	move(m *motion, times uint64)
	// content gives the lines of a set, most recently used first.
	content(set int) []trace.Line
}

// none is no line.
const none = ^uint64(0)

// newState makes an empty cache.
func newState(sets, ways uint64) state {
	if ways <= fewWays {
		return newFrames(sets, ways)
	}
	return newStacks(sets, ways)
}

// fewWays is how many ways are searched one by one.
const fewWays = 16

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

// use makes a line that is not the newest of its set that.
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

// evict counts a line that went for another one.
func (t *tally) evict(a *access, line trace.Line) {
	t.out[int(a.array)*t.arrays.shown+int(t.arrays.of(line))] += t.weight
}

func (f *frames) save(to []uint64) []uint64 { return append(to, f.held...) }

func (f *frames) load(from []uint64) { copy(f.held, from) }

func (f *frames) moved(from []uint64, m *motion) bool {
	to := int(m.turn)
	for s := range int(f.sets) {
		before, now := from[s*f.ways:(s+1)*f.ways], f.held[to*f.ways:(to+1)*f.ways]
		for w := f.ways - 1; w >= 0; w-- {
			if !m.brings(before[w], now[w]) {
				return false
			}
		}
		if to++; to == int(f.sets) {
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

func (f *frames) content(set int) (lines []trace.Line) {
	for _, line := range f.held[set*f.ways : (set+1)*f.ways] {
		if line != none {
			lines = append(lines, line)
		}
	}
	return lines
}
