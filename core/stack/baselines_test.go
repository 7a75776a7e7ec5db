package stack_test

import (
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace"
)

// These are the baselines of [stack.Sets]: the same answer by the plain method, and one of the many
// answers. They do not give distances.

// Plain counts depths for numbers of sets by a list of lines for each set,
// moved to front by a search that shifts while it looks, one number of sets after
// the other for each access, up to the first in which the line is on top.
type Plain struct {
	numbers []int
	sets    [setBits + 1][][ways]trace.Line // line + 1; 0: free
	Depths  [setBits + 1][ways + 1]uint64
}

const ways = 32

// NewPlain makes an empty one.
func NewPlain(numbers stack.SetNumbers) *Plain {
	m := new(Plain)
	for a := range m.sets {
		if numbers>>a&1 != 0 {
			m.sets[a], m.numbers = make([][ways]trace.Line, 1<<a), append(m.numbers, a)
		}
	}
	return m
}

// Distances accesses the lines and leaves out as it is.
func (m *Plain) Distances(lines []trace.Line, _ []uint32) {
	for _, x := range lines {
		key := x + 1
		for _, a := range m.numbers {
			set := &m.sets[a][x&(1<<a-1)]
			if set[0] == key {
				m.Depths[a][0]++
				break
			}
			m.Depths[a][moveToFront(set[:], key)]++
		}
	}
}

// moveToFront returns the place that a key had, or the number of places.
func moveToFront(set []trace.Line, key trace.Line) int {
	carry := key
	for i, here := range set {
		set[i] = carry
		if here == key {
			return i
		}
		carry = here
	}
	return len(set)
}

// Cache simulates one cache of 64 sets and 8 ways: 32 KiB of 64-byte lines.
type Cache struct {
	sets   [64][8]trace.Line // line + 1; 0: free
	Misses uint64
}

// Distances accesses the lines and leaves out as it is.
func (m *Cache) Distances(lines []trace.Line, _ []uint32) {
	for _, x := range lines {
		key := x + 1
		set := &m.sets[x%64]
		if set[0] != key && moveToFront(set[:], key) == len(set) {
			m.Misses++
		}
	}
}
