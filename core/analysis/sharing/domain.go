package sharing

import (
	"github.com/stackglass/stackglass/core/analysis/locality"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace"
)

// domain is a set of cores that share a cache. The domain of all cores has no stack of its own, but
// uses the stack of package locality.
type domain struct {
	threads   []uint32 // threads of the domain's cores; nil: all threads
	sets      *stack.Sets
	table     table
	members   []*member // indexed by core; nil: the core is not in the domain
	directory directory
	overlaps  overlapTracker

	foreign      counts
	foreignTable table

	// isForeign[i] is true if another core touched the line of access i last. Otherwise,
	// isOverlap[i] reports whether both the accessing core and another core have touched some line
	// since the accessing core last touched the line of access i.
	isForeign, isOverlap [maxAccesses]bool
	several              bool // some accesses are foreign

	lines     []trace.Line // the accesses by the domain's cores, with the core and the private distance of each access
	core      []uint8
	private   []uint32
	distances []uint32
}

// member counts the accesses of a core in a domain, except for accesses that have the same distance
// on the core's stack and on the domain's stack.
type member struct {
	counts
	dilated, overlapped, intercepted, brought uint64
}

func newDomain(sets stack.SetNumbers, threads []uint32) *domain {
	d := &domain{threads: threads, sets: stack.NewSets(sets)}
	d.table.model, d.foreignTable.model = d.sets, markedModel{d.sets}
	d.table.omitted, d.foreignTable.omitted = locality.Omitted(sets), locality.Omitted(sets)
	d.directory.reset(0)
	return d
}

func (d *domain) join(core uint8) {
	for len(d.members) <= int(core) {
		d.members = append(d.members, nil)
	}
	d.members[core] = new(member)
}

func (d *domain) has(core uint8) bool {
	return int(core) < len(d.members) && d.members[core] != nil
}

func (d *domain) set() (members uint64) {
	for n, m := range d.members {
		if m != nil {
			members |= 1 << n
		}
	}
	return members
}

// initialise sets the counts of a domain to the counts so far, all of which belong to one core, and
// fills its stack with the given lines, most recently used first.
func (d *domain) initialise(core uint8, before *profile.StackCounts, lines []trace.Line) {
	d.members[core].load(&before.Distances, before.Cold)
	for i := range lines {
		e := d.directory.entry(lines[len(lines)-1-i])
		d.overlaps.recordTouch(e, core)
		e.holders = 1 << core
	}
	if d.sets != nil {
		d.table.before.Add(&before.Sets)
		locality.PushAll(lines, d.sets.Push)
	}
}

// recordTouch records that access i, by the given core, touches a line. recordTouch reports whether
// the access is foreign.
func (d *domain) recordTouch(e *entry, core uint8, i int) (foreign bool) {
	foreign, d.isOverlap[i] = d.overlaps.recordTouch(e, core)
	d.isForeign[i] = foreign
	d.several = d.several || foreign
	return foreign
}

// foreignAccesses reports which accesses are foreign, or returns nil if no access is foreign.
func (d *domain) foreignAccesses(n int) []bool {
	if !d.several {
		return nil
	}
	d.several = false
	return d.isForeign[:n]
}

// countMembers counts the accesses by the domain's cores.
func (d *domain) countMembers(lines []trace.Line, cores []uint8, private []uint32) {
	d.lines, d.core, d.private = d.lines[:0], d.core[:0], d.private[:0]
	for i, core := range cores {
		if d.has(core) {
			d.lines, d.core, d.private = append(d.lines, lines[i]), append(d.core, core), append(d.private, private[i])
		}
	}
	if n := len(d.lines); len(d.distances) < n {
		d.distances = make([]uint32, max(n, maxAccesses))
	}
	for i, x := range d.lines {
		d.recordTouch(d.directory.entry(x), d.core[i], i)
	}
	if foreign := d.foreignAccesses(len(d.lines)); foreign != nil {
		d.sets.DistancesMarked(d.lines, foreign, d.distances)
	} else {
		d.sets.Distances(d.lines, d.distances)
	}
	d.countByCore(d.core, d.private, d.distances)
}

// countByCore counts accesses by core, and by their distances on the private and the shared stack.
func (d *domain) countByCore(cores []uint8, private, concurrent []uint32) {
	concurrent, private = concurrent[:len(cores)], private[:len(cores)]
	for lo := 0; lo < len(cores); {
		m, at := d.members[cores[lo]], lo
		for lo++; lo < len(cores) && cores[lo] == cores[at]; lo++ {
		}
		d.countRun(m, at, private[at:lo], concurrent[at:lo])
	}
}

// countRun counts a run of accesses by one core. The parameter first is the index of the run's
// first access.
func (d *domain) countRun(m *member, first int, private, concurrent []uint32) {
	foreign := d.isForeign[first:][:len(private)]
	for i, near := range private {
		far := concurrent[i]
		if far < topDepths {
			m.top[far]++
		} else {
			m.add(far)
		}
		switch {
		case foreign[i]:
			d.foreign.add(far)
			if near == cold {
				m.brought++
			} else {
				m.intercepted++
			}
		case near == far: // includes accesses that are cold on both stacks
		case d.isOverlap[first+i]:
			m.overlapped++
		default:
			m.dilated++
		}
	}
}

func (d *domain) close() {
	d.table.close()
	d.foreignTable.close()
	d.sets, d.directory = nil, directory{}
}
