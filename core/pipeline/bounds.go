package pipeline

import (
	"math"
	"math/bits"
	"slices"
)

// Bottleneck is the resource or dependence that limits the speed of a loop's body or a block.
type Bottleneck string

// The bottlenecks.
const (
	Ports      Bottleneck = "ports"      // some ports are always busy
	Recurrence Bottleneck = "recurrence" // an iteration waits for results of the previous iteration
	Dispatch   Bottleneck = "dispatch"   // the number of micro-ops that enter the core per cycle is the limit
	Latency    Bottleneck = "latency"    // one pass through the block does not overlap with the next
	Bandwidth  Bottleneck = "bandwidth"  // the number of lines per cycle from caches and memory is the limit
	InFlight   Bottleneck = "misses"     // the window is full of operations that wait for lines
	Nothing    Bottleneck = "nothing"    // the body costs nothing
)

// Steady describes the time of an iteration in a loop with many iterations.
type Steady struct {
	Cycles     float64 // the maximum of the bounds
	Bottleneck Bottleneck

	Ports      float64 // lower bound from the ports, for an optimal distribution of micro-ops
	Full       uint64  // set of the ports that are always busy in this distribution
	Load       []float64
	Dispatch   float64
	Recurrence float64
	Cycle      []uint32 // the operations of the recurrence, in order of execution
	Iterations uint32   // number of iterations that the recurrence spans
	Misses     float64  // lower bound from the number of misses in the window
	Transfers  float64  // lower bound from accesses to the first level, and from the transfer of lines to it
}

// Steady returns the steady state of a loop with this body. The time is the maximum of its lower
// bounds.
func (b *Body) Steady() Steady {
	s := Steady{}
	s.Ports, s.Full, s.Load = b.portBound()
	if b.Processor.Dispatch > 0 {
		s.Dispatch = b.MicroOps() / float64(b.Processor.Dispatch)
	}
	s.Recurrence, s.Cycle, s.Iterations = b.recurrence()
	s.Misses = b.missBound()
	s.selectBound()
	return s
}

// missBound returns the lower bound that independent misses impose on the time of an iteration. The
// window holds W micro-ops. A miss delays the later micro-ops in the window until its value
// arrives, but overlaps with other misses in the window. If an iteration has M micro-ops and n
// misses with a total latency of Λ cycles, n·W/M misses are in the window at a time. The iteration
// then takes Λ/(n·W/M) cycles. If no other miss is in the window, the iteration takes Λ cycles (T.
// Karkhanis and J. Smith, A first-order superscalar processor model, ISCA 2004, on long data cache
// misses).
func (b *Body) missBound() float64 {
	n, waits := 0.0, 0.0
	for i := range b.Ops {
		op := &b.Ops[i]
		n += op.Weight * op.Misses.Lines
		waits += op.Weight * op.Misses.Waits
	}
	m := b.MicroOps()
	if b.Processor.Window <= 0 || m <= 0 {
		return 0
	}
	return waits / max(1, n*float64(b.Processor.Window)/m)
}

// addTransferBound sets the lower bound from transfers of lines to the first level. Sequential
// lines have the given cost per iteration, to which the cost of scattered lines is added.
// During a transfer, loads and stores cannot access the first level. Accesses and transfers
// alternate. All other operations overlap with the accesses and transfers. The time is therefore
// max(T_OL, T_nOL + T_data), as in the ECM model (H. Stengel, J. Treibig, G. Hager and G. Wellein,
// Quantifying performance bottlenecks of stencil computations using the Execution-Cache-Memory
// model, ICS 2015, section 3). If a core overlaps transfers with accesses, as AMD Zen does, T_data
// is a separate bound (J. Hofmann, C. Alappat, G. Hager, D. Fey and G. Wellein, Bridging the
// Architecture Gap: Abstracting Performance-Relevant Properties of Modern Server Processors, 2020).
// If only the way to the second level overlaps with accesses, the last step T_L2 of all lines does
// not: the time is max(T_OL, T_nOL + T_L2, T_data).
func (s *Steady) addTransferBound(b *Body, lines Transfer) {
	accesses := Body{Processor: b.Processor}
	for i := range b.Ops {
		op := &b.Ops[i]
		lines = lines.Plus(op.Weight, op.Misses.Scattered)
		switch op.Class {
		case Load, Store, Gather, Scatter, Masked, MaskedS, Atomic:
			accesses.Ops = append(accesses.Ops, *op)
		}
	}
	if lines.Cycles > 0 {
		s.Transfers = lines.Cycles
		ports, _, _ := accesses.portBound()
		switch b.Processor.Overlap {
		case NoOverlap:
			s.Transfers += ports
		case OverlapBeyondL2:
			s.Transfers = max(s.Transfers, lines.Near+ports)
		}
		s.selectBound()
	}
}

// SteadyOver returns the steady state of a loop that is re-entered after a given number of
// iterations (a round). A round must not use values of earlier rounds. While the core waits in one
// round, it executes micro-ops of the next round that are in the window. Suppose that a round has M
// micro-ops, and that it would take T cycles if the recurrence were the only limit. With r
// micro-ops per cycle and a window of W micro-ops, the last micro-op of a round enters the core M/r
// cycles after the first, and must finish after another W/r cycles. Therefore, T = (M+W)/r, and a
// round takes M/r = T·M/(M+W) cycles.
//
// The scheduler, in which micro-ops wait for values, is smaller than the window. Only micro-ops
// that wait for the recurrence stay in the scheduler. If w of M micro-ops wait, and the scheduler
// has S entries, the core looks ahead by at most S·M/w micro-ops.
func (b *Body) SteadyOver(iterations float64) Steady {
	s := b.Steady()
	if m, reach := b.MicroOps(), b.lookAhead(s.Cycle); reach > 0 && m > 0 {
		s.Recurrence *= m * iterations / (m*iterations + reach)
	}
	s.selectBound()
	return s
}

// lookAhead returns the number of micro-ops that can enter the core while it waits for a
// recurrence.
func (b *Body) lookAhead(cycle []uint32) float64 {
	reach := float64(b.Processor.Window)
	if b.Processor.Scheduler == 0 {
		return reach
	}
	waits := make([]bool, len(b.Ops))
	for _, op := range cycle {
		waits[op] = true
	}
	waiting := 0.0
	for changed := true; changed; {
		changed, waiting = false, 0
		for i := range b.Ops {
			op := &b.Ops[i]
			for _, w := range op.Waits {
				changed = changed || waits[w.Op] && !waits[i]
				waits[i] = waits[i] || waits[w.Op]
			}
			if waits[i] {
				waiting += op.Weight * float64(op.Cost.MicroOps)
			}
		}
	}
	if waiting > 0 {
		reach = min(reach, float64(b.Processor.Scheduler)*b.MicroOps()/waiting)
	}
	return reach
}

// selectBound sets the time to the maximum of all bounds.
func (s *Steady) selectBound() {
	s.Cycles, s.Bottleneck = 0, Nothing
	for _, bound := range [...]struct {
		cycles float64
		by     Bottleneck
	}{{s.Recurrence, Recurrence}, {s.Ports, Ports}, {s.Dispatch, Dispatch}, {s.Misses, InFlight}, {s.Transfers, Bandwidth}} {
		if bound.cycles > s.Cycles {
			s.Cycles, s.Bottleneck = bound.cycles, bound.by
		}
	}
}

// demand is the number of cycles per pass for which micro-ops occupy a port. Each port of the given
// set can execute these micro-ops.
type demand struct {
	ports  uint64
	cycles float64
}

// demands returns the total demand of the body's micro-ops for each set of ports that can execute
// them.
func (b *Body) demands() []demand {
	var list []demand
	at := map[uint64]int{}
	for i := range b.Ops {
		for _, u := range b.Ops[i].Cost.Uses {
			k, found := at[u.Ports]
			if !found {
				k = len(list)
				at[u.Ports] = k
				list = append(list, demand{ports: u.Ports})
			}
			list[k].cycles += b.Ops[i].Weight * u.Cycles
		}
	}
	return slices.DeleteFunc(list, func(d demand) bool { return d.cycles <= 0 || d.ports == 0 })
}

// portBound distributes the demands among their ports, and minimises the load of the busiest port.
// It returns this load, the set of ports with this load, and the load of each port in an optimal
// distribution.
//
// By linear programming duality, the minimum load is the maximum, over sets S of ports, of the
// demand that only ports of S can serve, divided by the number of ports in S. portBound finds this
// maximum by Dinkelbach's method, which starts with the average over all ports as the capacity of
// each port. While the demands exceed this capacity, the minimum cut yields a set S with a larger
// ratio, which becomes the new capacity. Each step computes a maximum flow, and only a few steps
// are needed.
func (b *Body) portBound() (cycles float64, full uint64, load []float64) {
	load = make([]float64, len(b.Processor.Ports))
	list := b.demands()
	full = 0
	for _, d := range list {
		full |= d.ports
	}
	if full == 0 {
		return 0, 0, load
	}
	cycles = ratio(list, full)
	for {
		flow := newFlow(list, cycles)
		cut, whole := flow.maximise()
		if whole {
			flow.loads(load)
			return cycles, full, load
		}
		if r := ratio(list, cut); r > cycles {
			cycles, full = r, cut
			continue
		}
		flow.loads(load)
		return cycles, full, load
	}
}

// ratio returns the demand that only ports of the given set can serve, divided by the number of
// ports in the set.
func ratio(list []demand, set uint64) float64 {
	sum := 0.0
	for _, d := range list {
		if d.ports&^set == 0 {
			sum += d.cycles
		}
	}
	return sum / float64(max(1, bits.OnesCount64(set)))
}

// flow computes a maximum flow from demands to ports of equal capacity.
type flow struct {
	list   []demand
	most   float64     // capacity of a port
	sent   [][]float64 // flow by demand and port
	taken  []float64   // flow by port
	left   []float64   // remaining demand
	ports  int
	little float64 // flows below this amount are negligible
}

func newFlow(list []demand, most float64) *flow {
	f := &flow{list: list, most: most, ports: mostPorts, little: most * 1e-12}
	f.taken = make([]float64, f.ports)
	f.left = make([]float64, len(list))
	f.sent = make([][]float64, len(list))
	for i, d := range list {
		f.left[i] = d.cycles
		f.sent[i] = make([]float64, f.ports)
	}
	return f
}

// maximise computes the maximum flow with shortest augmenting paths (Edmonds and Karp). If it cannot
// serve all demands, it returns the set of ports that are reachable from the remaining demands. All
// ports of this set are full, and no other ports can serve these demands.
func (f *flow) maximise() (cut uint64, whole bool) {
	fromDemand := make([]int, f.ports) // by port: the demand from which the port was reached; -1: not reached
	// by demand: the port from which the demand was reached; -1: the search started here,
	// because a part of the demand remains; -2: not reached
	fromPort := make([]int, len(f.list))
	for {
		queue := make([]int, 0, len(f.list))
		for i := range fromDemand {
			fromDemand[i] = -1
		}
		for i := range f.list {
			if fromPort[i] = -2; f.left[i] > f.little {
				fromPort[i] = -1
				queue = append(queue, i)
			}
		}
		if len(queue) == 0 {
			return 0, true
		}
		end := -1
		cut = 0
	search:
		for k := 0; k < len(queue); k++ {
			d := queue[k]
			for set := f.list[d].ports &^ cut; set != 0; set &= set - 1 {
				q := bits.TrailingZeros64(set)
				cut |= 1 << q
				fromDemand[q] = d
				if f.most-f.taken[q] > f.little {
					end = q
					break search
				}
				for other := range f.list {
					if fromPort[other] == -2 && f.sent[other][q] > f.little {
						fromPort[other] = q
						queue = append(queue, other)
					}
				}
			}
		}
		if end < 0 {
			return cut, false
		}
		f.push(end, fromDemand, fromPort)
	}
}

// push sends the maximum possible flow along the path that ends at a port.
func (f *flow) push(end int, fromDemand, fromPort []int) {
	amount := f.most - f.taken[end]
	for q := end; ; {
		d := fromDemand[q]
		if fromPort[d] < 0 {
			amount = min(amount, f.left[d])
			break
		}
		amount = min(amount, f.sent[d][fromPort[d]])
		q = fromPort[d]
	}
	f.taken[end] += amount
	for q := end; ; {
		d := fromDemand[q]
		f.sent[d][q] += amount
		if fromPort[d] < 0 {
			f.left[d] -= amount
			return
		}
		q = fromPort[d]
		f.sent[d][q] -= amount
	}
}

func (f *flow) loads(load []float64) {
	for q := range load {
		load[q] = f.taken[q]
	}
}

// recurrence returns the number of cycles per iteration that dependences between iterations
// require. For each circuit of the dependence graph, the sum of its latencies is divided by the
// number of iterations that the circuit spans. The recurrence is the maximum of these quotients.
// First, the paths within an iteration are contracted: the graph keeps only operations whose
// results are used by later iterations, and connects them by the longest paths. Karp's theorem then
// yields the maximum mean of this graph (R. Karp, A characterization of the minimum cycle mean in a
// digraph, 1978). If a value is used several iterations later, additional vertices without cost
// represent the iterations in between.
func (b *Body) recurrence() (cycles float64, cycle []uint32, iterations uint32) {
	r := newValueGraph(b)
	if len(r.ends) == 0 {
		return 0, nil, 0
	}
	mean, found := r.maximumMean()
	if !found {
		return 0, nil, 0
	}
	cycle, iterations = b.criticalCircuit(mean)
	return mean, cycle, iterations
}

// valueGraph is the graph of values that are passed from one iteration to the next. A vertex is a
// value that a later iteration uses. An arc leads from a value to a value of the next iteration.
// The arc has the length of the longest path between the two values.
type valueGraph struct {
	ends []uint32 // operations whose results are used by later iterations
	arcs []arc
	size int
}

type arc struct {
	from, to int
	cycles   float64
}

func newValueGraph(b *Body) *valueGraph {
	r := &valueGraph{}
	vertex := map[uint32]int{}
	deepest := map[uint32]uint32{}
	for i := range b.Ops {
		for _, w := range b.Ops[i].Waits {
			if w.Before == 0 {
				continue
			}
			if _, found := vertex[w.Op]; !found {
				vertex[w.Op] = len(r.ends)
				r.ends = append(r.ends, w.Op)
			}
			deepest[w.Op] = max(deepest[w.Op], w.Before)
		}
	}
	// A value from n iterations ago passes through n-1 additional vertices without cost.
	r.size = len(r.ends)
	places := make([]int, len(r.ends))
	for v, op := range r.ends {
		places[v] = r.size
		before := v
		for n := uint32(1); n < min(deepest[op], mostBefore); n++ {
			r.arcs = append(r.arcs, arc{from: before, to: r.size})
			before = r.size
			r.size++
		}
	}
	longest := make([]float64, len(b.Ops))
	for v, op := range r.ends {
		for n := uint32(1); n <= min(deepest[op], mostBefore); n++ {
			from := v
			if n > 1 {
				from = places[v] + int(n) - 2
			}
			r.addLongestPaths(b, op, n, from, longest)
		}
	}
	return r
}

// mostBefore limits the number of iterations between the computation of a value and its
// use. A dependence that spans more iterations is ignored.
const mostBefore = 64

// addLongestPaths adds an arc for the longest path to each vertex from a value that was computed
// n iterations ago.
func (r *valueGraph) addLongestPaths(b *Body, op, n uint32, from int, longest []float64) {
	for i := range b.Ops {
		longest[i] = math.Inf(-1)
		for _, w := range b.Ops[i].Waits {
			switch {
			case w.Before == 0:
				longest[i] = max(longest[i], longest[w.Op]+w.Cycles)
			case w.Op == op && w.Before == n:
				longest[i] = max(longest[i], w.Cycles)
			}
		}
	}
	for to, end := range r.ends {
		if !math.IsInf(longest[end], -1) {
			r.arcs = append(r.arcs, arc{from, to, longest[end]})
		}
	}
}

// maximumMean returns the maximum mean length of all circuits, or false if there is no circuit.
// By Karp's theorem, this mean follows from the maximum lengths of paths with exactly k arcs,
// for all k up to the number of vertices.
func (r *valueGraph) maximumMean() (mean float64, found bool) {
	n := r.size
	rows := make([][]float64, n+1)
	for k := range rows {
		rows[k] = make([]float64, n)
		for v := range rows[k] {
			if k > 0 {
				rows[k][v] = math.Inf(-1)
			}
		}
		if k == 0 {
			continue
		}
		for _, a := range r.arcs {
			rows[k][a.to] = max(rows[k][a.to], rows[k-1][a.from]+a.cycles)
		}
	}
	mean = math.Inf(-1)
	for v := range n {
		if math.IsInf(rows[n][v], -1) {
			continue
		}
		least := math.Inf(1)
		for k := range n {
			if !math.IsInf(rows[k][v], -1) {
				least = min(least, (rows[n][v]-rows[k][v])/float64(n-k))
			}
		}
		mean = max(mean, least)
	}
	return mean, !math.IsInf(mean, -1)
}

// criticalCircuit finds the operations of a circuit with the maximum mean. If the mean is
// subtracted once for each iteration that a circuit spans, no circuit has a positive length, and
// critical circuits have length 0.
func (b *Body) criticalCircuit(mean float64) (cycle []uint32, iterations uint32) {
	n := len(b.Ops)
	gain := make([]float64, n) // the maximum length of a path to the operation
	little := max(mean, 1) * 1e-9
	for range n + 1 { // Bellman–Ford algorithm, which usually ends after a few rounds
		changed := false
		for i := range b.Ops {
			for _, w := range b.Ops[i].Waits {
				if g := gain[w.Op] + w.Cycles - mean*float64(w.Before); g > gain[i]+little {
					gain[i], changed = g, true
				}
			}
		}
		if !changed {
			break
		}
	}
	state := make([]uint8, n) // by operation: 0 if not visited, 1 if on the current path, 2 if finished
	next := make([]int, n)
	for i := range b.Ops {
		if state[i] != 0 {
			continue
		}
		way := []uint32{uint32(i)}
		state[i] = 1
	walk:
		for len(way) > 0 {
			v := way[len(way)-1]
			for next[v] < len(b.Ops[v].Waits) {
				w := b.Ops[v].Waits[next[v]]
				next[v]++
				if math.Abs(gain[w.Op]+w.Cycles-mean*float64(w.Before)-gain[v]) > 100*little {
					continue
				}
				if state[w.Op] == 1 {
					from := slices.Index(way, w.Op)
					return b.listCircuit(way[from:], mean, gain, 100*little)
				}
				if state[w.Op] == 0 {
					state[w.Op] = 1
					way = append(way, w.Op)
					continue walk
				}
			}
			state[v] = 2
			way = way[:len(way)-1]
		}
	}
	return nil, 0
}

// listCircuit returns the operations of a circuit that was found in reverse order, and the number
// of iterations that the circuit spans.
func (b *Body) listCircuit(way []uint32, mean float64, gain []float64, little float64) (cycle []uint32, iterations uint32) {
	for k, v := range way {
		from := way[(k+1)%len(way)]
		for _, w := range b.Ops[v].Waits {
			if w.Op == from && math.Abs(gain[from]+w.Cycles-mean*float64(w.Before)-gain[v]) <= little {
				iterations += w.Before
				break
			}
		}
	}
	cycle = slices.Clone(way)
	slices.Reverse(cycle)
	at := slices.Index(cycle, slices.Min(cycle))
	return slices.Concat(cycle[at:], cycle[:at]), iterations
}
