package pipeline

import (
	"errors"
	"math"
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/core/trace"
)

// Form selects how a run time is computed from blocks.
type Form uint8

const (
	// SteadyForm computes the steady state of each loop. All blocks of the loop form one body.
	SteadyForm Form = iota
	// SlidesForm adds up the times of single passes of each block through an empty core. As in
	// the slides on PPT, passes do not overlap.
	SlidesForm
)

// Run describes a run whose time is to be computed.
type Run struct {
	Program *trace.Program
	Visits  []float64 // number of executions of each block
	Form    Form
	// LoadLatency, Crossing, Misses and FillWait are as in [Options], but with the program's block
	// numbers.
	LoadLatency func(block, site uint32) float64
	Crossing    func(block, site uint32) float64
	Misses      func(block, site uint32) Misses
	FillWait    func(load, fetching Access, between int) float64
	// Transfers contains, for each block, the cost Σ β of the lines that all its executions
	// fetch in sequence. If the slice is nil, no lines are fetched in sequence.
	Transfers []Transfer
	// Carried contains the values that one block computes and another block uses. If these values
	// are unknown, Carried is nil. Loops of several blocks then have no recurrence, and short inner
	// loops do not overlap with their next execution ([Body.SteadyOver]).
	Carried []trace.Flow
}

// Runtime contains the time of a run.
type Runtime struct {
	Cycles    float64
	Seconds   float64   // run time in seconds; 0 if the clock frequency is unknown
	Functions []float64 // cycles of each function's own blocks
	Blocks    []BlockTime
	Missing   []Missing // classes that have no cost in the description, and are treated as free
	Unknown   []string  // names of called functions whose time is not included
}

// BlockTime contains the time of a block.
type BlockTime struct {
	Cycles     float64 // cycles of all executions
	Transfers  float64 // cycles for transferring the lines that all executions fetch in sequence
	Bottleneck Bottleneck
	Steady     Steady // steady state of the loop that contains the block, or of the block if it is not in a loop
	Loop       uint32 // 1 + the number of the loop's head block; 0 if the block is not in a loop
}

// Translation is an effect that is modelled only if the hierarchy has TLBs.
const Translation = "address translation (TLB)"

// NotModelled lists the effects that are not modelled.
func NotModelled() []string {
	return []string{
		"mispredicted branches",
		"prefetching, except that sequential lines are assumed to arrive in time",
		Translation,
		"memory-bandwidth limits, except for sequential lines",
		"loads that wait for a store to the same address, unless the code shows this dependence",
		"instruction fetch and decoding",
		"the size of the instruction window, except for short loops and misses",
	}
}

// Runtime computes the time of a run: the sum over all blocks of executions × time. In
// [SteadyForm], the blocks of each loop form one body, in which each block is weighted by its
// executions per iteration.
func (p *Processor) Runtime(r Run) (*Runtime, error) {
	t := r.Program
	for _, list := range []struct {
		name   string
		length int
		needed bool
	}{{"visits", len(r.Visits), true}, {"transfers", len(r.Transfers), r.Transfers != nil}} {
		if list.needed && list.length != len(t.Blocks) {
			return nil, errors.New(list.name + " for " + strconv.Itoa(list.length) + " blocks, but the program has " + strconv.Itoa(len(t.Blocks)))
		}
	}
	m := &maker{p: p, r: &r, out: &Runtime{Functions: make([]float64, len(t.Functions)), Blocks: make([]BlockTime, len(t.Blocks))}}
	if r.Form == SlidesForm {
		for b := range t.Blocks {
			m.timePass(uint32(b))
		}
	} else {
		m.timeLoops()
	}
	m.addUp()
	return m.out, nil
}

type maker struct {
	p   *Processor
	r   *Run
	out *Runtime
	// by instruction: the instructions in other blocks whose results the instruction uses
	from map[instrPlace][]instrPlace
}

// instrPlace identifies an instruction of the program.
type instrPlace struct{ block, instr uint32 }

func (m *maker) options(blocks []uint32) Options {
	o := Options{Target: m.r.Program.TargetOf(blocks[0])}
	if m.r.LoadLatency != nil {
		o.LoadLatency = func(block int, site uint32) float64 { return m.r.LoadLatency(blocks[block], site) }
	}
	if m.r.Crossing != nil {
		o.Crossing = func(block int, site uint32) float64 { return m.r.Crossing(blocks[block], site) }
	}
	if m.r.Misses != nil {
		o.Misses = func(block int, site uint32) Misses { return m.r.Misses(blocks[block], site) }
	}
	if m.r.FillWait != nil {
		o.FillWait = func(load, fetching Access, between int) float64 {
			load.Block, fetching.Block = int(blocks[load.Block]), int(blocks[fetching.Block])
			return m.r.FillWait(load, fetching, between)
		}
	}
	return o
}

// timePass computes the time of a block with the method that the slides on PPT describe.
func (m *maker) timePass(b uint32) {
	n := m.r.Visits[b]
	if n <= 0 {
		return
	}
	body := m.p.NewBody(m.r.Program.Blocks[b].Instrs, m.options([]uint32{b}))
	m.addGaps(body, []uint32{b})
	cycles := body.OnePass().Cycles
	m.out.Blocks[b] = BlockTime{Cycles: n * cycles, Bottleneck: Latency, Steady: Steady{Cycles: cycles, Bottleneck: Latency}}
}

// timeLoops computes the time of each loop without its inner loops, and the time of each block
// outside loops.
func (m *maker) timeLoops() {
	of := map[uint32][]uint32{}
	var heads []uint32
	for b := range m.r.Program.Blocks {
		if m.r.Visits[b] <= 0 {
			continue
		}
		head := m.r.Program.Blocks[b].Loop
		if head == 0 || int(head) > len(m.r.Program.Blocks) || m.r.Visits[head-1] <= 0 {
			m.timeBody(0, []uint32{uint32(b)}, m.r.Visits[b], nil)
			continue
		}
		if of[head] == nil {
			heads = append(heads, head)
		}
		of[head] = append(of[head], uint32(b))
	}
	carried := map[uint32][]trace.Flow{}
	m.from = map[instrPlace][]instrPlace{}
	for _, c := range m.r.Carried {
		to := instrPlace{c.Block, c.Instr}
		m.from[to] = append(m.from[to], instrPlace{c.FromBlock, c.FromInstr})
	}
	for _, c := range m.r.Carried {
		if int(c.Block) < len(m.r.Program.Blocks) {
			head := m.r.Program.Blocks[c.Block].Loop
			carried[head] = append(carried[head], c)
		}
	}
	for _, head := range heads {
		m.timeLoop(head, of[head], carried[head])
	}
}

// reversePostorder returns the blocks of a loop in reverse postorder, starting with the head.
func (m *maker) reversePostorder(head uint32, blocks []uint32) []uint32 {
	next := make(map[uint32]int, len(blocks)) // index of the next successor to visit; -1 for unvisited blocks
	for _, b := range blocks {
		next[b] = -1
	}
	order := make([]uint32, 0, len(blocks))
	for _, from := range append([]uint32{head - 1}, blocks...) {
		if next[from] >= 0 {
			continue
		}
		way := []uint32{from}
		next[from] = 0
		for len(way) > 0 {
			b := way[len(way)-1]
			successors := m.r.Program.Blocks[b].Successors
			if next[b] == len(successors) {
				order, way = append(order, b), way[:len(way)-1]
				continue
			}
			s := successors[next[b]]
			next[b]++
			if at, inside := next[s]; inside && at < 0 {
				next[s] = 0
				way = append(way, s)
			}
		}
		if from == head-1 {
			slices.Reverse(order) // blocks that are unreachable from the head come last
		}
	}
	return order
}

// timeLoop computes the time of a loop.
func (m *maker) timeLoop(head uint32, blocks []uint32, carried []trace.Flow) {
	blocks = m.reversePostorder(head, blocks)
	var list []Carried
	for _, c := range carried {
		piece, from := slices.Index(blocks, c.Block), slices.Index(blocks, c.FromBlock)
		if piece >= 0 && from >= 0 {
			list = append(list, Carried{uint32(piece), c.Instr, uint32(from), c.FromInstr, c.Before})
		}
	}
	m.timeBody(head, blocks, m.r.Visits[head-1], list)
}

// timeBody computes the time of several blocks that form one body.
func (m *maker) timeBody(head uint32, blocks []uint32, iterations float64, carried []Carried) {
	pieces := make([]Piece, len(blocks))
	for i, b := range blocks {
		pieces[i] = Piece{m.r.Program.Blocks[b].Instrs, m.r.Visits[b] / iterations}
	}
	body := m.p.NewChain(pieces, carried, m.options(blocks))
	m.addGaps(body, blocks)
	steady := body.Steady()
	if rounds := m.roundLength(head, blocks, iterations); rounds > 0 && steady.Bottleneck == Recurrence && m.isIndependent(body, blocks, steady.Cycle) {
		steady = body.SteadyOver(rounds)
	}
	var transfers Transfer
	if m.r.Transfers != nil {
		for _, b := range blocks {
			transfers = transfers.Plus(1/iterations, m.r.Transfers[b])
		}
	}
	steady.addTransferBound(body, transfers)
	shares := m.timeShares(body, pieces)
	for i, b := range blocks {
		m.out.Blocks[b] = BlockTime{
			Cycles: iterations * steady.Cycles * shares[i], Bottleneck: steady.Bottleneck, Steady: steady, Loop: head,
		}
		if m.r.Transfers != nil {
			m.out.Blocks[b].Transfers = m.r.Transfers[b].Cycles
		}
	}
}

// roundLength returns the average trip count of an inner loop, or 0 if this average is not a whole
// number. If the trip count of a loop varies, the loop's executions do not overlap: the core
// mispredicts the end of the loop, and starts the next execution late.
func (m *maker) roundLength(head uint32, blocks []uint32, iterations float64) float64 {
	if head == 0 || m.r.Carried == nil || m.r.Program.Blocks[head-1].Depth < 2 {
		return 0
	}
	entries := m.entries(head-1, blocks)
	if entries <= 0 {
		return 0
	}
	n := iterations / entries
	if math.Abs(n-math.Round(n)) > 1e-6*n {
		return 0
	}
	return n
}

// entries returns how often a loop is entered from outside.
func (m *maker) entries(head uint32, blocks []uint32) float64 {
	sum := 0.0
	for b := range m.r.Program.Blocks {
		if !slices.Contains(blocks, uint32(b)) && slices.Contains(m.r.Program.Blocks[b].Successors, head) {
			sum += m.r.Visits[b]
		}
	}
	return min(sum, m.r.Visits[head])
}

// isIndependent reports whether the recurrence of a loop starts with values that do not depend on the
// previous execution of the loop.
func (m *maker) isIndependent(body *Body, blocks, cycle []uint32) bool {
	seen := map[instrPlace]bool{}
	var work []instrPlace
	look := func(at instrPlace) {
		if !seen[at] {
			seen[at] = true
			work = append(work, at)
		}
	}
	for _, op := range cycle {
		at := instrPlace{blocks[body.Ops[op].Block], body.Ops[op].Instr}
		for _, from := range m.from[at] {
			if !slices.Contains(blocks, from.block) {
				look(from)
			}
		}
	}
	for len(work) > 0 {
		at := work[len(work)-1]
		work = work[:len(work)-1]
		if slices.Contains(blocks, at.block) {
			return false
		}
		for _, from := range m.from[at] {
			look(from)
		}
		if int(at.block) >= len(m.r.Program.Blocks) || int(at.instr) >= len(m.r.Program.Blocks[at.block].Instrs) {
			continue
		}
		for _, u := range m.r.Program.Blocks[at.block].Instrs[at.instr].Uses {
			if d := definedBy(u); d >= 0 {
				look(instrPlace{at.block, uint32(d)})
			}
		}
	}
	return true
}

// timeShares returns the share of each piece in the time of a body. The shares are proportional to
// the numbers of micro-ops.
func (m *maker) timeShares(body *Body, pieces []Piece) []float64 {
	shares := make([]float64, len(pieces))
	sum := 0.0
	for i := range body.Ops {
		op := &body.Ops[i]
		n := op.Weight * float64(max(op.Cost.MicroOps, len(op.Cost.Uses)))
		shares[op.Block] += n
		sum += n
	}
	for i := range shares {
		if sum > 0 {
			shares[i] /= sum
		} else {
			shares[i] = 1 / float64(len(shares))
		}
	}
	return shares
}

// addGaps adds the body's missing classes and unknown functions to the result.
func (m *maker) addGaps(body *Body, blocks []uint32) {
	for _, missing := range body.Missing {
		missing.Block = blocks[missing.Block]
		at := slices.IndexFunc(m.out.Missing, func(x Missing) bool { return x.Class == missing.Class })
		if at < 0 {
			m.out.Missing = append(m.out.Missing, missing)
		} else {
			m.out.Missing[at].Count += missing.Count
		}
	}
	for _, name := range body.Unknown {
		if !slices.Contains(m.out.Unknown, name) {
			m.out.Unknown = append(m.out.Unknown, name)
		}
	}
}

// addUp computes the total times of the program and of each function from the times of the blocks.
func (m *maker) addUp() {
	for b := range m.out.Blocks {
		t := &m.out.Blocks[b]
		m.out.Cycles += t.Cycles
		if f := m.r.Program.Blocks[b].Function; int(f) < len(m.out.Functions) {
			m.out.Functions[f] += t.Cycles
		}
	}
	if m.p.ClockGHz > 0 {
		m.out.Seconds = m.out.Cycles / (m.p.ClockGHz * 1e9)
	}
}
