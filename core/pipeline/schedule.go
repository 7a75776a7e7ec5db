package pipeline

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// Schedule describes one pass of a body through an empty core.
type Schedule struct {
	Cycles float64 // cycles from the first dispatch to the last result
	Starts []Start // start of each operation
	Slots  []Slot  // port uses in the order in which operations start
	Last   uint32  // the operation that ends last
}

// Start contains the cycle in which an operation starts and the time when its result is available.
type Start struct{ Cycle, Done float64 }

// Slot is the use of a port by an operation.
type Slot struct {
	Op     uint32
	Port   uint8
	Cycle  uint32 // the first cycle
	Cycles uint32
}

// Longer schedules are cut off, because descriptions can make an operation occupy ports for a very
// long time.
const (
	longestPass = 1 << 22 // maximum number of cycles of a schedule
	mostWork    = 1 << 26 // maximum number of examined cycles and operations
)

// OnePass greedily schedules one pass of the body through an empty core. Operations enter in
// program order, with as many micro-ops per cycle as the processor dispatches. After the cycle in
// which it enters, each operation starts as soon as its operands are available and its ports are
// free. Older operations have priority. If several ports are possible, a micro-op uses the port
// that the body uses least. Results of the previous iteration are available from the beginning.
func (b *Body) OnePass() Schedule {
	s := scheduler{b: b}
	_, _, s.need = b.portBound()
	s.s.Starts = make([]Start, len(b.Ops))
	s.enter()
	s.run()
	return s.s
}

type scheduler struct {
	b      *Body
	s      Schedule
	need   []float64 // load of each port in the steady state
	enters []uint32  // by operation: the first cycle in which it may start
	busy   []row     // busy ports by cycle
	held   []Slot    // slots of the operation that is being placed
	uses   []Use     // micro-ops of this operation, in ascending order of their numbers of ports
	work   int
}

// row is the set of busy ports in a cycle.
type row = uint64

// enter computes the cycle in which each operation enters the core.
func (s *scheduler) enter() {
	width := s.b.Processor.Dispatch
	s.enters = make([]uint32, len(s.b.Ops))
	cycle, room := uint32(0), width
	for i := range s.b.Ops {
		n := s.b.Ops[i].Cost.MicroOps
		if width <= 0 || n == 0 {
			s.enters[i] = cycle
			continue
		}
		if min(n, width) > room {
			cycle, room = cycle+1, width
		}
		s.enters[i] = cycle
		for n > room {
			n -= room
			cycle, room = cycle+1, width
		}
		room -= n
	}
}

// run starts operations cycle by cycle, beginning with the oldest.
func (s *scheduler) run() {
	ops := s.b.Ops
	left := make([]int32, 0, len(ops))
	for i := range ops {
		left = append(left, int32(i))
	}
	done := make([]bool, len(ops))
	for cycle := uint32(0); len(left) > 0 && cycle < longestPass && s.work < mostWork; {
		s.work += len(left)
		next := uint32(math.MaxUint32) // the earliest cycle in which a further operation can start
		kept := left[:0]
		for _, i := range left {
			op := &ops[i]
			ready, known := s.ready(op, done)
			// the operation waits for an older operation that has not started, and that determines
			// next
			if !known {
				kept = append(kept, i)
				continue
			}
			from := max(s.enters[i], uint32(min(math.Ceil(ready-1e-9), longestPass)))
			if len(op.Cost.Uses) == 0 {
				start := max(ready, float64(s.enters[i]))
				s.s.Starts[i], done[i] = Start{start, start + op.Cost.Latency}, true
				continue
			}
			if from > cycle {
				next = min(next, from)
				kept = append(kept, i)
				continue
			}
			if !s.place(uint32(i), cycle) {
				next = min(next, cycle+1)
				kept = append(kept, i)
				continue
			}
			start := max(float64(cycle), ready)
			s.s.Starts[i], done[i] = Start{start, start + op.Cost.Latency}, true
		}
		if left = kept; next == math.MaxUint32 {
			next = cycle + 1
		}
		cycle = max(next, cycle+1)
	}
	for i := range s.s.Starts {
		if s.s.Starts[i].Done > s.s.Cycles {
			s.s.Cycles, s.s.Last = s.s.Starts[i].Done, uint32(i)
		}
	}
}

// ready returns the time at which all operands of the iteration are available.
func (s *scheduler) ready(op *Op, done []bool) (at float64, known bool) {
	for _, w := range op.Waits {
		if w.Before > 0 {
			continue
		}
		if !done[w.Op] {
			return 0, false
		}
		at = max(at, s.s.Starts[w.Op].Cycle+w.Cycles)
	}
	return at, true
}

// place assigns ports to all micro-ops of an operation that starts in a cycle. place returns false
// if the first micro-op cannot start in that cycle. Other micro-ops may start later, because their
// ports are busy, or because they wait for micro-ops of the same operation.
func (s *scheduler) place(op, cycle uint32) bool {
	s.held = s.held[:0]
	s.uses = append(s.uses[:0], s.b.Ops[op].Cost.Uses...)
	slices.SortStableFunc(s.uses, func(a, b Use) int {
		return cmp.Or(cmp.Compare(a.After, b.After), bits.OnesCount64(a.Ports)-bits.OnesCount64(b.Ports))
	})
	for k, u := range s.uses {
		for at := cycle + uint32(min(u.After, longestPass)); ; {
			port, next, ok := s.choose(u, at)
			if ok {
				slot := Slot{op, port, at, uint32(whole(u.Cycles))}
				s.hold(slot)
				s.held = append(s.held, slot)
				break
			}
			if k == 0 || next > longestPass || s.work > mostWork {
				return false
			}
			at = next
		}
	}
	s.s.Slots = append(s.s.Slots, s.held...)
	return true
}

// choose returns the port with the least load among the ports that are free long enough for a
// micro-op in a cycle. If no port is free, next is the earliest cycle in which a port may be free.
func (s *scheduler) choose(u Use, cycle uint32) (port uint8, next uint32, found bool) {
	taken := uint64(0)
	s.work += whole(u.Cycles)
	// Go backwards in time until every port has been seen busy, in this cycle or a later cycle.
	for at := int(min(cycle+uint32(whole(u.Cycles)), uint32(len(s.busy)))) - 1; at >= int(cycle); at-- {
		before := taken
		if taken |= s.busy[at]; u.Ports&^before != 0 && u.Ports&^taken == 0 {
			next = uint32(at) + 1 // no port is free long enough before this cycle
		}
	}
	if next > 0 {
		return 0, next, false
	}
	for set := u.Ports &^ taken; set != 0; set &= set - 1 {
		q := uint8(bits.TrailingZeros64(set))
		if !found || s.loadOf(q) < s.loadOf(port) {
			port, found = q, true
		}
	}
	return port, cycle + 1, found
}

func (s *scheduler) loadOf(port uint8) float64 {
	if int(port) < len(s.need) {
		return s.need[port]
	}
	return 0
}

func (s *scheduler) hold(slot Slot) {
	for len(s.busy) < int(slot.Cycle+slot.Cycles) {
		s.busy = append(s.busy, 0)
	}
	for at := slot.Cycle; at < slot.Cycle+slot.Cycles; at++ {
		s.busy[at] |= 1 << slot.Port
	}
}

// Table returns, for each cycle and port, the operation that occupies the port, or -1. The table
// has at most the given number of rows (cycles).
func (s *Schedule) Table(ports, rows int) [][]int32 {
	last := 0
	for _, slot := range s.Slots {
		last = max(last, int(slot.Cycle+slot.Cycles))
	}
	table := make([][]int32, min(last, max(0, rows)))
	for i := range table {
		table[i] = slices.Repeat([]int32{-1}, ports)
	}
	for _, slot := range s.Slots {
		for at := slot.Cycle; at < slot.Cycle+slot.Cycles && int(at) < len(table); at++ {
			if int(slot.Port) < ports {
				table[at][slot.Port] = int32(slot.Op)
			}
		}
	}
	return table
}
