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

// Start contains the time at which an operation starts, and the time at which its result is
// available.
type Start struct{ Cycle, Done float64 }

// Slot is a time interval in which an operation uses a port.
type Slot struct {
	Op     uint32
	Port   uint8
	Cycle  uint32 // the first cycle
	Cycles uint32
}

// Schedules are cut off at these limits, because descriptions may contain operations that occupy
// ports for a very long time.
const (
	longestPass = 1 << 22 // maximum number of cycles of a schedule
	mostWork    = 1 << 26 // limit on the total number of operations and cycles that are examined
)

// OnePass greedily schedules one pass of the body through an empty core. Operations enter the core
// in program order. The number of micro-ops per cycle is limited by the dispatch width of the
// processor. An operation starts after the cycle in which it enters the core, as soon as its
// operands are available and its ports are free. Older operations have priority. If several ports
// are free, a micro-op uses the port with the lowest load in the body. Results of the previous
// iteration are available from the beginning.
func (b *Body) OnePass() Schedule {
	s := scheduler{b: b}
	_, _, s.need = b.portBound()
	s.s.Starts = make([]Start, len(b.Ops))
	s.computeEntry()
	s.startOperations()
	return s.s
}

type scheduler struct {
	b      *Body
	s      Schedule
	need   []float64 // load of each port in the steady state
	enters []uint32  // by operation: the first cycle in which the operation may start
	busy   []portSet // busy ports by cycle
	held   []Slot    // assigned slots of the current operation
	// micro-ops of the current operation, in the order in which they start. If several micro-ops
	// start together, the micro-op with the fewest possible ports comes first.
	uses []Use
	work int
}

// portSet is a set of ports, with one bit for each port.
type portSet = uint64

// computeEntry computes in which cycle each operation enters the core.
func (s *scheduler) computeEntry() {
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

// startOperations starts operations cycle by cycle; in each cycle, it begins with the oldest
// operation.
func (s *scheduler) startOperations() {
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
			ready, known := s.readyTime(op, done)
			// the operation waits for an older operation, which has not started, but has already
			// been included in "next"
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
			if !s.assignPorts(uint32(i), cycle) {
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

// readyTime returns the time at which all operands from this iteration are available, or false if
// this time is not known yet.
func (s *scheduler) readyTime(op *Op, done []bool) (at float64, known bool) {
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

// assignPorts assigns ports to all micro-ops of an operation that starts in the given cycle. It
// returns false if the first micro-op cannot start in this cycle. The other micro-ops may start
// later, because their ports are busy, or because they wait for micro-ops of the same operation.
func (s *scheduler) assignPorts(op, cycle uint32) bool {
	s.held = s.held[:0]
	s.uses = append(s.uses[:0], s.b.Ops[op].Cost.Uses...)
	slices.SortStableFunc(s.uses, func(a, b Use) int {
		return cmp.Or(cmp.Compare(a.After, b.After), bits.OnesCount64(a.Ports)-bits.OnesCount64(b.Ports))
	})
	for k, u := range s.uses {
		for at := cycle + uint32(min(u.After, longestPass)); ; {
			port, next, ok := s.choosePort(u, at)
			if ok {
				slot := Slot{op, port, at, uint32(wholeCycles(u.Cycles))}
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

// choosePort returns the port with the lowest load among all ports that are free long enough for a
// micro-op that starts in the given cycle. If no port is free, the result "next" is the earliest
// cycle in which a port may be free.
func (s *scheduler) choosePort(u Use, cycle uint32) (port uint8, next uint32, found bool) {
	taken := uint64(0)
	s.work += wholeCycles(u.Cycles)
	// Search backwards in time until each port has been found busy in this cycle or in a later
	// cycle.
	for at := int(min(cycle+uint32(wholeCycles(u.Cycles)), uint32(len(s.busy)))) - 1; at >= int(cycle); at-- {
		before := taken
		if taken |= s.busy[at]; u.Ports&^before != 0 && u.Ports&^taken == 0 {
			next = uint32(at) + 1 // before this cycle, no port is free long enough
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

// Table returns a table with the operation that occupies each port (column) in each cycle (row),
// or -1 if the port is free. The table has at most the given number of rows.
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
