package sites

import (
	"math/bits"
	"slices"

	"github.com/stackglass/stackglass/core/analysis/index"
	"github.com/stackglass/stackglass/core/analysis/locality"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace"
)

// lines records the site that last touched each line. For each LRU cache, it also records the
// current stay of each line in the cache: the pair that fetched the line, and the bytes that have
// been used since then. A stay begins with a miss, and ends with the next miss or at the end of the
// trace. In a fully associative cache, an access misses if its distance is at least the capacity.
// Set-associative caches are simulated.
type lines struct {
	shift      uint
	words      int // number of 64-bit words in a mask of a line's bytes
	capacities []uint64
	sets       []sets // indexed by cache; empty for a fully associative cache
	previous   bool
	mergeable  bool

	at   index.Cached
	list []trace.Line // indexed by line number
	last []uint32     // slot of the last site, indexed by line number

	stays []stay   // indexed by line number and capacity
	masks []uint64 // for each stay: a mask of the used bytes
	// firsts contains, for each line, a mask of the bytes that were used in the line's first stay,
	// because this stay may have to be joined with the line's last stay in the previous segment.
	// The mask is zero until the stay ends. Masks of first stays are recorded only if the run is
	// mergeable.
	firsts []uint64

	used   *[]profile.Utilisation // indexed by pair and capacity
	before map[beforeKey]uint64
}

type stay struct {
	pair  uint32 // pair that fetched the line
	later bool   // the stay is not the line's first stay
}

// beforeKey consists of the pair of an access, and the slot of the site that made the previous
// access to the line.
type beforeKey struct{ pair, slot uint32 }

func newLines(o Options) *lines {
	l := &lines{
		shift: uint(bits.TrailingZeros32(o.LineBytes)), words: max(1, int(o.LineBytes/64)),
		capacities: o.Capacities, previous: o.Previous, mergeable: o.Mergeable, before: map[beforeKey]uint64{}, sets: make([]sets, len(o.Capacities)),
		used: new([]profile.Utilisation),
	}
	for c, ways := range o.Ways {
		if ways > 0 {
			number := o.Capacities[c] / uint64(ways)
			l.sets[c] = sets{number: number, ways: int(ways), pages: make([][]uint32, (number+setsOfPage-1)/setsOfPage)}
			if number&(number-1) == 0 {
				l.sets[c].mask = number - 1
			}
		}
	}
	return l
}

// sets contains the lines in a set-associative LRU cache. A set is a list of line numbers + 1, most
// recently used first; 0 means an empty way. Pages of sets are allocated on demand.
type sets struct {
	number uint64
	mask   uint64 // line & mask is the index of the line's set; mask is 0 if the number of sets is not a power of two
	ways   int
	pages  [][]uint32
}

const setsOfPage = 64

// setOf returns the set to which a line belongs.
func (s *sets) setOf(line trace.Line) []uint32 {
	at := line & s.mask
	if s.mask == 0 {
		at = line % s.number // a division, which is slow, only if there is no mask
	}
	page := s.pages[at/setsOfPage]
	if page == nil {
		page = make([]uint32, setsOfPage*s.ways)
		s.pages[at/setsOfPage] = page
	}
	return page[int(at%setsOfPage)*s.ways:][:s.ways]
}

// touch accesses a line, and reports whether the cache contained the line.
func (s *sets) touch(line trace.Line, number int) bool {
	set, entry := s.setOf(line), uint32(number)+1
	return set[0] == entry || moveToFront(set, entry)
}

// moveToFront moves an entry to the front of a set, and reports whether the set contained the
// entry.
func moveToFront(set []uint32, entry uint32) bool {
	before := entry
	for way, there := range set {
		set[way] = before
		before = there
		if there == entry {
			return true
		}
		if there == 0 {
			return false
		}
	}
	return false
}

// misses reports whether an access to a line misses in cache c.
func (l *lines) misses(c int, line trace.Line, number int, distance uint32) bool {
	if s := &l.sets[c]; s.ways > 0 {
		return !s.touch(line, number)
	}
	return uint64(distance) >= min(l.capacities[c], stack.Lost) // an invalidated line misses in every cache
}

// fillSets fills the sets by accessing the lines in reverse order.
func (l *lines) fillSets(used []trace.Line) {
	for i := len(used) - 1; i >= 0; i-- {
		for c := range l.sets {
			if l.sets[c].ways > 0 {
				l.sets[c].touch(used[i], l.number(used[i]))
			}
		}
	}
}

func (l *lines) addPair() {
	*l.used = append(*l.used, make([]profile.Utilisation, len(l.capacities))...)
}

// number returns the number of a line, and assigns a number to a new line.
func (l *lines) number(line trace.Line) int {
	n, known := l.at.Find(line)
	if !known {
		n = l.add(line)
	}
	return int(n)
}

func (l *lines) add(line trace.Line) uint32 {
	n := uint32(len(l.list))
	l.at.Add(line, n)
	l.list, l.last = append(l.list, line), append(l.last, 0)
	for range l.capacities {
		l.stays = append(l.stays, stay{})
		for range l.words {
			l.masks = append(l.masks, 0)
			if l.mergeable {
				l.firsts = append(l.firsts, 0)
			}
		}
	}
	return n
}

// recordAccesses processes accesses with their pairs. recordAccesses handles successive accesses to
// the same line specially, because the line then usually is the most recently used line in all
// caches.
func (l *lines) recordAccesses(x *locality.Accesses, pairs []uint32, all []pair) {
	n, line := -1, trace.Line(0)
	for i, d := range x.Distances {
		again := n >= 0 && x.Lines[i] == line
		if !again {
			line = x.Lines[i]
			n = l.number(line)
		}
		if l.previous && d >= profile.PreviousFrom && !isCold(d) {
			l.before[beforeKey{pairs[i], l.last[n]}]++
		}
		l.last[n] = all[pairs[i]].slot
		if len(l.capacities) == 0 {
			continue
		}
		row := x.Row(i)
		if !again || d > 0 || l.words > 1 {
			l.markUsed(line, n, d, pairs[i], x.Batch.Addr[row], x.Batch.Bytes[row])
			continue
		}
		used := bitsOf(l.touchedBytes(line, x.Batch.Addr[row], x.Batch.Bytes[row]))
		for at := n * len(l.capacities); at < (n+1)*len(l.capacities); at++ {
			l.masks[at] |= used
		}
	}
}

// markUsed marks bytes of line number n as used in all caches. The parameter distance is the stack
// distance of the access.
func (l *lines) markUsed(line trace.Line, n int, distance, pair uint32, addr trace.Addr, bytes uint32) {
	from, end := l.touchedBytes(line, addr, bytes)
	at := n * len(l.capacities)
	for c, capacity := range l.capacities {
		missed := false
		if s := &l.sets[c]; s.ways > 0 {
			set, entry := s.setOf(line), uint32(n)+1
			missed = set[0] != entry && !moveToFront(set, entry)
		} else {
			missed = uint64(distance) >= min(capacity, stack.Lost)
		}
		if missed {
			l.fetch(at+c, c, pair, isCold(distance))
		}
		if l.words == 1 {
			l.masks[at+c] |= bitsOf(from, end)
		} else {
			setBits(l.mask(at+c), from, end)
		}
	}
}

// touchedBytes returns the bytes of a line that a reference touches, as a half-open interval.
func (l *lines) touchedBytes(line trace.Line, addr trace.Addr, bytes uint32) (from, end uint64) {
	first := line << l.shift
	if addr > first {
		from = addr - first
	}
	last := addr + uint64(max(bytes, 1)) - 1
	return from, min(last-first, 1<<l.shift-1) + 1
}

func (l *lines) mask(at int) []uint64 { return l.masks[at*l.words:][:l.words] }

func (l *lines) fetch(at, capacity int, pair uint32, first bool) {
	if !first {
		l.endStay(at, capacity)
	}
	l.stays[at] = stay{pair: pair, later: !first}
	clear(l.mask(at))
}

// endStay counts the utilisation of a stay that ends.
func (l *lines) endStay(at, capacity int) {
	s, mask := l.stays[at], l.mask(at)
	if l.mergeable && !s.later {
		copy(l.firsts[at*l.words:], mask)
	}
	u := &(*l.used)[int(s.pair)*len(l.capacities)+capacity]
	u.Fetched++
	u.BytesUsed += count(mask)
}

// bitsOf returns a mask in which the bits [from, end) are set. The range must contain at most 64
// bits.
func bitsOf(from, end uint64) uint64 { return ^uint64(0) >> ((64 - (end - from)) & 63) << (from & 63) }

// setBits sets the bits [from, end) of a mask.
func setBits(mask []uint64, from, end uint64) {
	for ; from < end; from = (from | 63) + 1 {
		here := min(end, (from|63)+1) - from
		mask[from/64] |= ^uint64(0) >> (64 - here) << (from % 64)
	}
}

func count(mask []uint64) (n uint64) {
	for _, word := range mask {
		n += uint64(bits.OnesCount64(word))
	}
	return n
}

// utilisation returns the utilisation, by pair and capacity, as if all lines left the caches now.
func (l *lines) utilisation() []profile.Utilisation {
	used := append([]profile.Utilisation{}, *l.used...)
	l.addUnfinished(used)
	return used
}

// addUnfinished adds the utilisation of unfinished stays to the counts.
func (l *lines) addUnfinished(used []profile.Utilisation) {
	for at, s := range l.stays {
		u := &used[int(s.pair)*len(l.capacities)+at%len(l.capacities)]
		u.Fetched++
		u.BytesUsed += count(l.mask(at))
	}
}

// sortedNumbers returns the numbers of the lines, sorted by address.
func (l *lines) sortedNumbers() []uint32 {
	sorted, order := slices.Clone(l.list), make([]uint32, len(l.list))
	slices.Sort(sorted)
	for i, line := range sorted {
		order[i], _ = l.at.Find(line)
	}
	return order
}
