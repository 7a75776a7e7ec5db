package stack_test

import (
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace"
)

// Plain and Cache are the baselines for [stack.Sets]. Plain computes the same depths with the
// simplest method. Cache simulates only one of the many caches that [stack.Sets] covers. Neither
// Plain nor Cache computes distances.

// Plain counts depths with a move-to-front list for each set. A search moves each line that
// precedes the match back by one position. For each access, Plain visits the numbers of sets in
// ascending order. Plain stops when the line is already at the front of its set's list.
type Plain struct {
	numbers []int
	sets    [setBits + 1][][ways]trace.Line // line + 1, or 0 if the way is free
	Depths  [setBits + 1][ways + 1]uint64
}

const ways = 32

// NewPlain returns an empty Plain.
func NewPlain(numbers stack.SetNumbers) *Plain {
	m := new(Plain)
	for a := range m.sets {
		if numbers>>a&1 != 0 {
			m.sets[a], m.numbers = make([][ways]trace.Line, 1<<a), append(m.numbers, a)
		}
	}
	return m
}

// Distances counts the accesses to the lines. In spite of its name, Distances does not compute
// distances.
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

// moveToFront moves a key to the front and returns its former index, or the number of ways if the
// key was absent.
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
	sets   [64][8]trace.Line // line + 1, or 0 if the way is free
	Misses uint64
}

// Distances counts the accesses to the lines. In spite of its name, Distances does not compute
// distances.
func (m *Cache) Distances(lines []trace.Line, _ []uint32) {
	for _, x := range lines {
		key := x + 1
		set := &m.sets[x%64]
		if set[0] != key && moveToFront(set[:], key) == len(set) {
			m.Misses++
		}
	}
}
