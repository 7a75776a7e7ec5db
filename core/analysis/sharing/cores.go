package sharing

import (
	"math/bits"
	"slices"

	"github.com/stackglass/stackglass/core/profile"
)

// Grouping maps threads to cores, which are numbered in the order in which they appear. There are
// at most [profile.MaxCores] cores. Every group that the user chose has its own core. Additional
// threads are assigned to the existing cores in turn.
type Grouping struct {
	groups   [][]uint32 // groups that the user chose
	number   []int      // the core of each group; -1 before a thread of the group has appeared
	list     []group
	of       map[uint32]uint8
	appeared []uint32
	turn     int // number of additional threads, which were assigned to existing cores
	recent   [256]recentThread
}

// group contains the threads of a core, and the threads that may still appear on this core. Both
// lists are ascending.
type group struct {
	threads []uint32
	// the threads that may appear on the core, except additional threads
	possible []uint32
}

type recentThread struct {
	thread uint32
	known  bool
	core   uint8
}

func (c *Grouping) reset(groups [][]uint32) {
	*c = Grouping{groups: groups, of: map[uint32]uint8{}}
	for range groups {
		c.number = append(c.number, -1)
	}
}

// assignAll assigns the threads of a batch to cores, and reports whether there are several cores.
func (c *Grouping) assignAll(threads []uint32) bool {
	if len(threads) == 0 {
		return false
	}
	first, others := threads[0], uint32(0)
	for _, t := range threads { // no branches, because usually all references belong to one thread
		others |= t ^ first
	}
	c.core(first)
	if others == 0 {
		return len(c.list) > 1
	}
	last := first
	for _, t := range threads {
		if t != last {
			c.core(t)
			last = t
		}
	}
	return len(c.list) > 1
}

// findCores determines the core of each reference, and stores it in the parameter cores. References
// without a thread belong to thread 0.
func (c *Grouping) findCores(threads []uint32, cores []uint8) {
	if threads == nil {
		core := c.core(0)
		for i := range cores {
			cores[i] = core
		}
		return
	}
	for i, t := range threads[:len(cores)] {
		r := &c.recent[t%256]
		if r.thread != t || !r.known {
			*r = recentThread{t, true, c.core(t)}
		}
		cores[i] = r.core
	}
}

// Threads returns the threads of each core so far, ascending.
func (c *Grouping) Threads() (list [][]uint32) {
	for i := range c.list {
		list = append(list, slices.Clone(c.list[i].threads))
	}
	return list
}

func (c *Grouping) core(thread uint32) uint8 {
	if n, known := c.of[thread]; known {
		return n
	}
	n := c.assignThread(thread)
	c.of[thread], c.appeared = uint8(n), append(c.appeared, thread)
	at, _ := slices.BinarySearch(c.list[n].threads, thread)
	c.list[n].threads = slices.Insert(c.list[n].threads, at, thread)
	return uint8(n)
}

// assignThread assigns a new thread to a core, and creates the core if necessary.
func (c *Grouping) assignThread(thread uint32) int {
	waiting := 0
	for i, threads := range c.groups {
		if _, found := slices.BinarySearch(threads, thread); found {
			if c.number[i] < 0 {
				c.number[i] = c.add(threads)
			}
			return c.number[i]
		}
		if c.number[i] < 0 {
			waiting++
		}
	}
	if len(c.list)+waiting < profile.MaxCores {
		return c.add([]uint32{thread})
	}
	if len(c.list) == 0 {
		c.number[0] = c.add(c.groups[0])
	}
	c.turn++
	return (c.turn - 1) % len(c.list)
}

func (c *Grouping) add(possible []uint32) int {
	c.list = append(c.list, group{possible: possible})
	return len(c.list) - 1
}

func lowest(set uint64) int { return bits.TrailingZeros64(set) }

// NewGrouping assigns each of the groups to a core, and every other thread to its own core.
func NewGrouping(groups [][]uint32) *Grouping {
	c := new(Grouping)
	c.reset(groups)
	return c
}

// Core returns the number of a thread's core, and creates the core if necessary. Cores are numbered
// in the order in which they appear.
func (c *Grouping) Core(thread uint32) uint8 {
	r := &c.recent[thread%256]
	if r.thread != thread || !r.known {
		*r = recentThread{thread, true, c.core(thread)}
	}
	return r.core
}

// Known returns the core of a thread, and reports whether the thread has appeared.
func (c *Grouping) Known(thread uint32) (core uint8, known bool) {
	core, known = c.of[thread]
	return core, known
}

// Cores returns the number of cores.
func (c *Grouping) Cores() int { return len(c.list) }

// Appeared returns the threads so far, in the order in which they appeared.
func (c *Grouping) Appeared() []uint32 { return c.appeared }

// IsIn reports whether a core belongs to the domain with the given threads.
func (c *Grouping) IsIn(core uint8, threads []uint32) bool {
	return slices.ContainsFunc(c.list[core].possible, func(t uint32) bool { return slices.Contains(threads, t) })
}
