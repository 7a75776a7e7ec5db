package communication

import (
	"cmp"
	"math/bits"

	"github.com/stackglass/stackglass/core/profile"
)

// These constants determine whether a thread owns words of a line. A word still belongs to a worker
// thread if the main thread only clears the word before the worker starts and prints the word after
// the worker has ended.
const (
	usesPerHandover = 8 // a word belongs to its last writer if it has at least this number of references per handover
	// a thread with fewer stores to its words of a line probably only initialised them
	leastStores = 16
)

// lineOwners describes the threads that own words of one line, by slot.
type lineOwners struct {
	threads uint64              // bit set of the owners
	uses    [mostThreads]uint64 // number of references of each owner to its own words
	site    [mostThreads]uint32 // for each owner: the site of the last store to the owner's most used word, and the number of uses of this word
	most    [mostThreads]uint64
}

// ownerOf returns the thread that owns a word, and the number of its references to the word.
func ownerOf(c *cell) (thread uint8, uses uint64, ok bool) {
	uses = c.references - c.events
	return c.writer, uses, c.site != 0 && uint64(c.handovers)*usesPerHandover <= uses
}

func ownersOf(cells []cell) (o lineOwners) {
	var stores [mostThreads]uint
	for i := range cells {
		t, uses, ok := ownerOf(&cells[i])
		if !ok {
			continue
		}
		stores[t] += uint(cells[i].stores)
		if o.uses[t] += uses; uses > o.most[t] {
			o.most[t], o.site[t] = uses, cells[i].site
		}
	}
	for t, n := range stores {
		if n >= leastStores {
			o.threads |= 1 << t
		}
	}
	return o
}

// minDistance returns the minimum distance in bytes between words of different owners.
func (o *lineOwners) minDistance(cells []cell) uint32 {
	least, last, before := len(cells), -1, uint8(0)
	for i := range cells {
		t, _, ok := ownerOf(&cells[i])
		if !ok || o.threads>>t&1 == 0 {
			continue
		}
		if last >= 0 && t != before {
			least = min(least, i-last)
		}
		last, before = i, t
	}
	return uint32(least) << wordShift
}

// maxMoves returns the maximum number of times that the line can move if its owners run at the same
// time. It also returns the two owners that use their words most often.
func (o *lineOwners) maxMoves() (n uint64, first, second uint8) {
	var all uint64
	first, second = noOwner, noOwner
	for set := o.threads; set != 0; set &= set - 1 {
		t := uint8(bits.TrailingZeros64(set))
		all += o.uses[t]
		if first == noOwner || o.uses[t] > o.uses[first] {
			first, second = t, first
		} else if second == noOwner || o.uses[t] > o.uses[second] {
			second = t
		}
	}
	if second == noOwner {
		return 0, first, second
	}
	return min(all, 2*(all-o.uses[first])), first, second
}

const noOwner = mostThreads

// lineMoves describes how a line moves between cores.
type lineMoves struct {
	moves, pingPongs uint64
	owners           uint64    // bit set of threads
	between          [2]uint8  // the two threads with the most uses or false misses
	sites            [2]uint32 // the sites of the stores by these threads, as indices in the profile
	minDistance      uint32
}

// movesOf describes the moves of a line between threads that own words of the line, or that
// invalidate each other's copies of the line. If the line does not move, the number of moves is 0.
func (a *Analysis) movesOf(l *line) (x lineMoves) {
	s, cells := a.memory.shares.first(l.words), a.memory.cells.run(l.words)
	a.pingPongs(s, &x)
	owners := ownersOf(cells)
	if n, first, second := owners.maxMoves(); n > 0 {
		x.moves, x.owners, x.between, x.minDistance = max(n, x.pingPongs), owners.threads, [2]uint8{first, second}, owners.minDistance(cells)
		x.sites = [2]uint32{a.codeIndex(owners.site[first]), a.codeIndex(owners.site[second])}
	} else if x.pingPongs >= leastPingPongs {
		x.moves, x.owners, x.minDistance = x.pingPongs, 1<<x.between[0]|1<<x.between[1], a.minDistance(l)
	}
	return x
}

// minimum number of ping-pongs for a report if the threads rarely store to the line
const leastPingPongs = 4

// pingPongs counts how often a line moved back and forth. For each thread, it counts the smaller of
// two numbers: the thread's false misses, and the misses that the thread's stores cause. If one
// thread fills a line and other threads then use the line, only the other threads miss, so the
// count is 0. If the count is at least half of the misses, pingPongs counts all misses.
func (a *Analysis) pingPongs(s *sharedLine, x *lineMoves) {
	if s.tallies == 0 {
		return
	}
	var suffered, caused [mostThreads]uint64
	var after [mostThreads]map[uint32]uint64 // number of misses that the thread's stores cause, by the store's site in the profile
	var all uint64
	for i := s.tallies; i != 0; i = a.memory.tallies[i].next {
		t := &a.memory.tallies[i]
		all += t.misses
		suffered[t.to] += t.misses
		caused[t.from] += t.misses
		if after[t.from] == nil {
			after[t.from] = map[uint32]uint64{}
		}
		after[t.from][a.codeIndex(t.site)] += t.misses
	}
	var most, next uint64
	first, second := uint8(noOwner), uint8(noOwner)
	for t := range caused {
		n := min(suffered[t], caused[t])
		if x.pingPongs += n; n > most {
			most, next, first, second = n, most, uint8(t), first
		} else if n > next {
			next, second = n, uint8(t)
		}
	}
	if second == noOwner {
		x.pingPongs = 0
		return
	}
	if 2*x.pingPongs >= all {
		x.pingPongs = all
	}
	x.between, x.sites = [2]uint8{first, second}, [2]uint32{largestKey(after[first], cmp.Compare), largestKey(after[second], cmp.Compare)}
}

// largestKey returns the key with the largest count, or the smallest such key if several keys have
// this count.
func largestKey[K comparable](counts map[K]uint64, compare func(x, y K) int) (key K) {
	best := uint64(0)
	for k, n := range counts {
		if n > best || n == best && compare(k, key) < 0 {
			best, key = n, k
		}
	}
	return key
}

// lineSharing finds the data structures that have lines in which several threads own words, even if
// the threads did not invalidate each other's lines in this run.
func (a *Analysis) lineSharing() []profile.LineSharing {
	type set struct {
		profile.LineSharing
		owners, most uint64
	}
	sets := map[uint32]*set{}
	m := &a.memory
	for n := range m.lines.count {
		l := m.lines.first(n)
		if !l.shared {
			continue
		}
		x := a.movesOf(l)
		if x.moves == 0 {
			continue
		}
		s := m.shares.first(l.words)
		_, object := a.pairIndices(s.pair)
		offset := max(l.number<<m.lineShift, s.begin) - s.begin
		of := sets[object]
		if of == nil {
			of = &set{}
			of.Object, of.Apart, of.Offset = object, x.minDistance, offset
			sets[object] = of
		}
		of.Lines++
		of.Moves += x.moves
		of.PingPongs += x.pingPongs
		of.owners |= x.owners
		of.Apart, of.Offset = min(of.Apart, x.minDistance), min(of.Offset, offset)
		threads := [2]uint32{a.threads.numbers[x.between[0]], a.threads.numbers[x.between[1]]}
		if x.moves > of.most || x.moves == of.most && cmp.Or(comparePairs(x.sites, of.Sites), comparePairs(threads, of.Threads)) < 0 {
			of.most, of.Sites, of.Threads = x.moves, x.sites, threads
		}
	}
	list := make([]profile.LineSharing, 0, len(sets))
	for _, of := range sets {
		of.Owners = uint32(bits.OnesCount64(of.owners))
		list = append(list, of.LineSharing)
	}
	profile.SortLineSharing(list)
	return list[:min(len(list), profile.MaxLineSharing)]
}
