package communication

import (
	"cmp"
	"slices"
	"sort"

	"github.com/stackglass/stackglass/core/profile"
)

type falseKey struct {
	object uint32
	sites  [2]uint32
}

type falseSet struct {
	profile.FalseSharing
	threads map[[2]uint32]uint64 // number of misses, by the thread that stored and the thread that missed
}

// falseSharing groups the falsely shared lines with false misses into sets.
func (a *Analysis) falseSharing() []profile.FalseSharing {
	sets := map[falseKey]*falseSet{}
	m := &a.memory
	for n := range m.lines.count {
		l := m.lines.first(n)
		if !l.shared {
			continue
		}
		if s := m.shares.first(l.words); s.tallies != 0 && s.class.sharingClass(s.events, s.falseEvents) == profile.FalselyShared {
			a.addFalse(sets, l, s)
		}
	}
	list := make([]profile.FalseSharing, 0, len(sets))
	for _, s := range sets {
		s.Threads = largestKey(s.threads, comparePairs)
		list = append(list, s.FalseSharing)
	}
	sort.Slice(list, func(i, j int) bool {
		x, y := &list[i], &list[j]
		return cmp.Or(cmp.Compare(y.Misses, x.Misses), cmp.Compare(x.Object, y.Object), comparePairs(x.Sites, y.Sites)) < 0
	})
	return foldFalse(list)
}

// addFalse adds a line to the set of the two sites that cause the most false misses of the line.
func (a *Analysis) addFalse(sets map[falseKey]*falseSet, l *line, s *sharedLine) {
	places, threads, offsets := map[falseKey]uint64{}, map[falseKey]map[[2]uint32]uint64{}, map[falseKey]uint64{}
	for n := s.tallies; n != 0; n = a.memory.tallies[n].next {
		t := &a.memory.tallies[n]
		code, data := a.pairIndices(t.pair)
		key := falseKey{data, [2]uint32{a.codeIndex(t.site), code}}
		if offset, met := offsets[key]; !met || t.offset < offset {
			offsets[key] = t.offset
		}
		if threads[key] == nil {
			threads[key] = map[[2]uint32]uint64{}
		}
		places[key] += t.misses
		threads[key][[2]uint32{a.threads.numbers[t.from], a.threads.numbers[t.to]}] += t.misses
	}
	key, misses := largestKey(places, falseKey.compare), uint64(0)
	for _, n := range places {
		misses += n
	}
	set, apart := sets[key], a.minDistance(l)
	if set == nil {
		set = &falseSet{FalseSharing: profile.FalseSharing{Object: key.object, Sites: key.sites, Offset: offsets[key], Apart: apart}, threads: map[[2]uint32]uint64{}}
		sets[key] = set
	}
	set.Lines++
	set.Events += s.falseEvents
	set.Misses += misses
	set.Offset, set.Apart = min(set.Offset, offsets[key]), min(set.Apart, apart)
	for ends, n := range threads[key] {
		set.threads[ends] += n
	}
}

func (k falseKey) compare(other falseKey) int {
	return cmp.Or(cmp.Compare(k.object, other.object), slices.Compare(k.sites[:], other.sites[:]))
}

func comparePairs(x, y [2]uint32) int { return slices.Compare(x[:], y[:]) }

// minDistance returns the smallest distance in bytes between words that different threads access.
func (a *Analysis) minDistance(l *line) uint32 {
	cells := a.memory.cells.run(l.words)
	least := uint32(len(cells))
	last := -1 // the previous word that has references
	for i := range cells {
		c := &cells[i]
		if c.references == 0 {
			continue
		}
		// It is sufficient to compare neighbouring words: if all neighbours belong to the same
		// thread, all words do.
		if last >= 0 {
			if b := &cells[last]; c.class.several || b.class.several || c.class.first != b.class.first {
				least = min(least, uint32(i-last))
			}
		}
		last = i
	}
	return least << wordShift
}

// foldFalse merges all sets beyond the maximum number into the last set.
func foldFalse(list []profile.FalseSharing) []profile.FalseSharing {
	const kept = profile.MaxFalseSharing - 1
	if len(list) <= profile.MaxFalseSharing {
		return list
	}
	rest := profile.FalseSharing{Object: profile.NoSite, Sites: [2]uint32{profile.NoSite, profile.NoSite}, Apart: list[kept].Apart}
	for i := range list[kept:] {
		f := &list[kept+i]
		rest.Lines += f.Lines
		rest.Events += f.Events
		rest.Misses += f.Misses
		rest.Apart = min(rest.Apart, f.Apart)
	}
	return append(list[:kept:kept], rest)
}
