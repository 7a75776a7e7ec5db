package sharing

import (
	"slices"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace"
)

// domain is the cores that share a cache. That of all cores has no stack of its own:
// it is the one of the pass.
type domain struct {
	threads   []uint32 // whose cores these are; nil: all
	sets      *stack.Sets
	table     table
	members   []*member // by core; nil: not in the domain
	directory directory
	overlaps  overlaps
	foreign   counts
	flags     [maxAccesses]uint8

	lines     []trace.Line // the members' accesses, and of each its core and its private distance
	core      []uint8
	private   []uint32
	distances []uint32
}

// member is what is counted of a core's accesses in a domain. Changes of those that
// are not listed here are none.
type member struct {
	counts
	dilated, overlapped, intercepted, brought uint64
}

func newDomain(threads []uint32) *domain {
	d := &domain{threads: threads, sets: stack.NewSets()}
	d.table.model = d.sets
	d.directory.reset()
	return d
}

// isFor tells whether a core is in the domain: whether one of its threads is.
func (d *domain) isFor(g *group) bool {
	return slices.ContainsFunc(g.possible, func(t uint32) bool { return slices.Contains(d.threads, t) })
}

// join makes a core a member.
func (d *domain) join(core uint8) {
	for len(d.members) <= int(core) {
		d.members = append(d.members, nil)
	}
	d.members[core] = new(member)
}

func (d *domain) has(core uint8) bool {
	return int(core) < len(d.members) && d.members[core] != nil
}

// start has a domain begin with what was counted before, all of one core, and with
// these lines on its stack, most recently used first.
func (d *domain) start(core uint8, before *profile.StackCounts, lines []trace.Line) {
	d.members[core].load(&before.Distances, before.Cold)
	for i := range lines {
		e := d.directory.entry(lines[len(lines)-1-i])
		d.touch(e, core)
		e.holders = 1 << core
	}
	if d.sets != nil {
		d.table.before.Add(&before.Sets)
		push(lines, d.sets.Push)
	}
}

// follow takes the accesses of the trace, of which those of members count.
func (d *domain) follow(lines []trace.Line, cores []uint8, private []uint32) {
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
		d.flags[i] = d.touch(d.directory.entry(x), d.core[i])
	}
	d.sets.Distances(d.lines, d.distances)
	d.count(d.core, d.private, d.distances, d.flags[:])
}

// count counts accesses of cores by their distances on the private and the shared
// stack.
func (d *domain) count(cores []uint8, private, concurrent []uint32, flags []uint8) {
	concurrent, private, flags = concurrent[:len(cores)], private[:len(cores)], flags[:len(cores)]
	for i, core := range cores {
		m, far := d.members[core], concurrent[i]
		m.add(far)
		near, flag := private[i], flags[i]
		if flag == 0 && near == far || far == cold {
			continue
		}
		switch {
		case flag&foreignFlag != 0:
			d.foreign.add(far)
			if near == cold {
				m.brought++
			} else {
				m.intercepted++
			}
		case near == far:
		case flag&overlapFlag != 0:
			m.overlapped++
		default:
			m.dilated++
		}
	}
}

func (d *domain) close() {
	d.table.close()
	d.sets, d.directory = nil, directory{}
}
