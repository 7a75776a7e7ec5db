package blocks

import (
	"math/bits"
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/core/trace"
)

// maxWeight limits the sum of a block's weights, so that flows fit in 128 bits.
const maxWeight = 1 << 63

// System is a program whose branches have weights. After a change of weights, only the changed
// functions are solved again.
type System struct {
	program *trace.Program
	weights [][]uint64 // by block, in the order of Successors; if these weights and leaves[b] are all 0, the weights of block b are unknown
	leaves  []uint64   // by block: the weight of ending the invocation
	entered []uint64   // by function: invocations that do not come from direct calls
	resumed []uint64   // by block: executions that enter the block without following an edge
	made    []share    // by block: the share of its calls that enter the callee
	// by function: invocations in the recorded run; nil if there is no such run, or if weights were
	// changed
	known []uint64

	callees   []int32 // by block: the called function, or -1
	functions []solvedFunction
	positions []int32 // by block: the number of its state in its function
}

// share is the fraction part/whole. If part and whole are 0, the fraction is 1.
type share struct{ part, whole uint64 }

// NewSystem returns a system in which only blocks with one successor have weights. NewSystem fails
// if a successor belongs to another function. Solutions ignore blocks that belong to no function.
func NewSystem(p *trace.Program) (*System, error) {
	s := &System{
		program: p, weights: make([][]uint64, len(p.Blocks)), leaves: make([]uint64, len(p.Blocks)), entered: make([]uint64, len(p.Functions)),
		resumed: make([]uint64, len(p.Blocks)), made: make([]share, len(p.Blocks)), callees: make([]int32, len(p.Blocks)),
		functions: make([]solvedFunction, len(p.Functions)), positions: make([]int32, len(p.Blocks)),
	}
	ways := 0
	for b := range p.Blocks {
		ways += len(p.Blocks[b].Successors)
	}
	all := make([]uint64, ways)
	for b := range p.Blocks {
		k := len(p.Blocks[b].Successors)
		s.weights[b], all = all[:k:k], all[k:]
		for _, next := range p.Blocks[b].Successors {
			if uint64(next) >= uint64(len(p.Blocks)) {
				return nil, s.fail(b, "the block continues to block "+strconv.Itoa(int(next))+", which does not exist", "the program's tables are damaged; load the program again")
			}
		}
	}
	for n := range p.Functions {
		f := &p.Functions[n]
		if uint64(f.First)+uint64(f.Blocks) > uint64(len(p.Blocks)) {
			return nil, &Error{Function: f.Name, Block: -1, Why: "the function refers to blocks that do not exist", Do: "the program's tables are damaged; load the program again"}
		}
		for b := f.First; b < f.First+f.Blocks; b++ {
			for _, next := range p.Blocks[b].Successors {
				if next-f.First >= f.Blocks {
					return nil, s.fail(int(b), "the block continues to block "+strconv.Itoa(int(next))+" of another function", "the program's tables are damaged; load the program again")
				}
			}
		}
	}
	s.findCallees(&Edges{})
	return s, nil
}

// FromEdges returns a system whose solution equals the counts of a run.
func FromEdges(p *trace.Program, e *Edges) (*System, error) {
	if err := e.Check(p); err != nil {
		return nil, err
	}
	s, err := NewSystem(p)
	if err != nil {
		return nil, err
	}
	s.findCallees(e)
	for b := range p.Blocks {
		if e.Unmade[b] > 0 {
			s.made[b] = share{e.Visits[b] - e.Unmade[b], e.Visits[b]}
		}
		if len(s.weights[b]) > 0 || e.Left[b] > 0 {
			if err := s.Set(b, e.Taken[b], e.Left[b]); err != nil {
				return nil, err
			}
		}
	}
	copy(s.resumed, e.Resumed)
	copy(s.entered, e.Entered)
	s.known = make([]uint64, len(p.Functions))
	for n := range p.Functions {
		if p.Functions[n].Blocks > 0 {
			s.known[n] = e.invocations(p, n)
		}
	}
	s.guessUnentered()
	return s, nil
}

// guessUnentered guesses the weights of unknown branches in functions whose invocations all began
// before the trace. No execution reaches these branches, so the guesses have no effect on counts.
func (s *System) guessUnentered() {
	var ends []bool
	for n, entered := range s.known {
		f := &s.program.Functions[n]
		if entered > 0 || !slices.ContainsFunc(s.resumed[f.First:f.First+f.Blocks], isPositive) {
			continue
		}
		if ends == nil {
			ends = s.recursionEnds()
		}
		s.guessIn(n, ends)
	}
}

// invocations returns the number of times a function is entered at its first block.
func (e *Edges) invocations(p *trace.Program, n int) uint64 {
	f := &p.Functions[n]
	sum := e.Visits[f.First] - e.Resumed[f.First]
	for b := f.First; b < f.First+f.Blocks; b++ {
		for i, next := range p.Blocks[b].Successors {
			if next == f.First {
				sum -= e.Taken[b][i]
			}
		}
	}
	return sum
}

// FromProfile returns a system with the weights of a compiler's profile. The slice of weights is
// indexed by block, as in ir.Module. The weights of blocks without a profile remain unknown; see
// [System.Guess].
func FromProfile(p *trace.Program, weights [][]uint64) (*System, error) {
	s, err := NewSystem(p)
	if err != nil {
		return nil, err
	}
	for b, w := range weights {
		if w == nil || b >= len(p.Blocks) {
			continue
		}
		if err := s.Set(b, w, 0); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Program returns the program.
func (s *System) Program() *trace.Program { return s.program }

// Weights returns the weights of a block's successors, in order, and the weight of leaving the
// function from the block. Callers must not change the slice.
func (s *System) Weights(block int) (weights []uint64, leaves uint64) {
	return s.weights[block], s.leaves[block]
}

// Set sets the weights of a block's successors, in order, and the weight of leaving the
// function from the block.
func (s *System) Set(block int, weights []uint64, leaves uint64) error {
	if block < 0 || block >= len(s.weights) {
		return &Error{Block: block, Why: "there is no such block", Do: "blocks are numbered from 0 to " + strconv.Itoa(len(s.weights)-1)}
	}
	if len(weights) != len(s.weights[block]) {
		return s.fail(block, strconv.Itoa(len(weights))+" weights for "+strconv.Itoa(len(s.weights[block]))+" successors", "give one weight for each successor")
	}
	sum, carry := leaves, uint64(0)
	for _, w := range weights {
		if sum, carry = bits.Add64(sum, w, 0); carry != 0 {
			break
		}
	}
	if carry != 0 || sum > maxWeight {
		return s.fail(block, "the weights of the block sum to more than 2^63", "scale the weights down")
	}
	if s.leaves[block] != leaves || !slices.Equal(s.weights[block], weights) {
		copy(s.weights[block], weights)
		s.leaves[block] = leaves
		s.markUnsolved(block)
	}
	return nil
}

// markUnsolved records that the function of a block must be solved again.
func (s *System) markUnsolved(block int) {
	s.known = nil
	if n := s.program.Blocks[block].Function; int64(n) < int64(len(s.functions)) {
		s.functions[n].ready = false
	}
}

// Enter sets the number of invocations of a function that do not come from direct calls.
func (s *System) Enter(function int, times uint64) {
	if s.entered[function] != times {
		s.entered[function] = times
		s.known = nil
	}
}

// EnterMain enters main once. If there is no main, EnterMain enters each function that is never
// called directly. EnterMain returns the number of entered functions. If there is a main, EnterMain
// does not enter functions that are called only through pointers, such as callbacks and thread
// functions.
func (s *System) EnterMain() (entered int) {
	called := s.calledDirectly()
	for _, main := range []bool{true, false} {
		for n := range s.program.Functions {
			f := &s.program.Functions[n]
			if f.Blocks > 0 && (main && f.Name == "main" || !main && !called[n]) {
				s.Enter(n, 1)
				entered++
			}
		}
		if entered > 0 {
			break
		}
	}
	return entered
}

// EnterProfile enters each function that is never called directly, as often as a profile states.
// The slice of entries is indexed by function, as in ir.Module. EnterProfile returns the number of
// entered functions.
func (s *System) EnterProfile(entries []uint64, known []bool) (entered int) {
	called := s.calledDirectly()
	for n := range s.functions {
		if n < len(entries) && n < len(known) && known[n] && entries[n] > 0 && !called[n] && s.program.Functions[n].Blocks > 0 {
			s.Enter(n, min(entries[n], maxWhole))
			entered++
		}
	}
	return entered
}

// calledDirectly reports, for each function, whether other functions call it directly.
func (s *System) calledDirectly() []bool {
	called := make([]bool, len(s.functions))
	for b, c := range s.callees {
		if c >= 0 && s.program.Blocks[b].Function != uint32(c) {
			called[c] = true
		}
	}
	return called
}

// Resume sets the number of executions that enter a block without following an edge.
func (s *System) Resume(block int, times uint64) {
	if s.resumed[block] != times {
		s.resumed[block] = times
		s.markUnsolved(block)
	}
}

func (s *System) findCallees(e *Edges) {
	for b, f := range e.Callees(s.program) {
		s.callees[b] = -1
		if f != trace.NoFunction && s.program.Functions[f].Blocks > 0 {
			s.callees[b] = int32(f)
		}
	}
}

// guessedTrips is the assumed trip count of a loop. guessedReturns is the assumed ratio of returns
// to recursive calls at a branch that decides between them.
const (
	guessedTrips   = 10
	guessedReturns = 99
)

// Guess sets the weights of unknown branches. Guess assumes that loops run ten iterations, that
// branches continue a recursion with a probability of 1 %, and that all other successors are
// equally likely. Guess returns the number of guesses.
func (s *System) Guess() (guessed int) {
	ends := s.recursionEnds()
	for n := range s.program.Functions {
		guessed += s.guessIn(n, ends)
	}
	return guessed
}

// guessIn is Guess for the branches of one function.
func (s *System) guessIn(n int, canEnd []bool) (guessed int) {
	f := &s.program.Functions[n]
	for b := int(f.First); b < int(f.First+f.Blocks); b++ {
		if s.isUnknown(b) {
			_ = s.Set(b, s.guess(b, canEnd), 0)
			guessed++
		}
	}
	return guessed
}

// guess returns weights for the branch of block b. The slice canEnd marks the blocks from which the
// recursion can end.
func (s *System) guess(b int, canEnd []bool) []uint64 {
	next := s.program.Blocks[b].Successors
	w := make([]uint64, len(next))
	split := func(rare func(n int) bool, often uint64) bool {
		few := uint64(0)
		for _, n := range next {
			if rare(int(n)) {
				few++
			}
		}
		many := uint64(len(w)) - few
		for i, n := range next {
			w[i] = many
			if !rare(int(n)) {
				w[i] = few * often
			}
		}
		return few > 0 && many > 0
	}
	if split(func(n int) bool { return !canEnd[n] }, guessedReturns) {
		return w
	}
	often := uint64(guessedTrips)
	for _, n := range next {
		if s.endsBody(b, int(n)) {
			often = guessedTrips - 1
		}
	}
	if split(func(n int) bool { return s.leavesLoop(b, n) }, often) {
		return w
	}
	for i := range w {
		w[i] = 1
	}
	return w
}

// recursionEnds reports, for each block, whether its function can return from the block without a
// recursive call.
func (s *System) recursionEnds() []bool {
	calls := make([][]call, len(s.functions))
	for n := range s.program.Functions {
		f := &s.program.Functions[n]
		for b := f.First; b < f.First+f.Blocks; b++ {
			if c := s.callees[b]; c >= 0 {
				calls[n] = append(calls[n], call{int32(b), c, share{}})
			}
		}
	}
	list, _ := connected(len(calls), func(int) bool { return true }, func(f int32) ([]call, error) { return calls[f], nil })
	component := make([]int, len(calls))
	for i, members := range list {
		for _, f := range members {
			component[f] = i
		}
	}
	recursive := make([]bool, len(s.callees))
	for n, list := range calls {
		for _, c := range list {
			recursive[c.state] = component[n] == component[c.callee]
		}
	}
	ends := make([]bool, len(s.callees))
	var work, from []int32
	into := make([][]int32, len(s.callees))
	for b := range s.program.Blocks {
		for _, next := range s.program.Blocks[b].Successors {
			into[next] = append(into[next], int32(b))
		}
		if len(s.program.Blocks[b].Successors) == 0 && !recursive[b] {
			ends[b], work = true, append(work, int32(b))
		}
	}
	for len(work) > 0 {
		b := work[len(work)-1]
		work, from = work[:len(work)-1], into[b]
		for _, i := range from {
			if !ends[i] && !recursive[i] {
				ends[i], work = true, append(work, i)
			}
		}
	}
	return ends
}

// isUnknown reports whether a block has several successors without weights.
func (s *System) isUnknown(b int) bool {
	return s.leaves[b] == 0 && !slices.ContainsFunc(s.weights[b], isPositive) && s.hasSeveralSuccessors(b)
}

func isPositive(n uint64) bool { return n > 0 }

// hasSeveralSuccessors reports whether a block has at least two distinct successors.
func (s *System) hasSeveralSuccessors(b int) bool {
	next := s.program.Blocks[b].Successors
	return slices.ContainsFunc(next, func(n uint32) bool { return n != next[0] })
}

// leavesLoop reports whether an edge leaves the innermost loop of b.
func (s *System) leavesLoop(b, next int) bool {
	from, to := &s.program.Blocks[b], &s.program.Blocks[next]
	return from.Depth > 0 && (to.Depth < from.Depth || to.Depth == from.Depth && to.Loop != from.Loop)
}

// Error explains why a system has no solution, or what is wrong in a branch-probability file.
type Error struct {
	Sheet           string // name of the branch-probability file and line number, or ""
	Function, Label string
	Block           int // index of the block, or -1
	Place           trace.Place
	Why, Do         string
}

func (e *Error) Error() string {
	text := ""
	if e.Sheet != "" {
		text = e.Sheet + ": "
	}
	if e.Label != "" {
		text += "block " + e.Label + " of "
	}
	if e.Function != "" {
		text += e.Function
		if e.Place.Line > 0 {
			text += " (" + placeText(e.Place) + ")"
		}
		text += ": "
	}
	text += e.Why
	if e.Do != "" {
		text += "; " + e.Do
	}
	return text
}

func placeText(p trace.Place) string {
	if p.Line == 0 {
		return p.File
	}
	return p.File + ":" + strconv.FormatUint(uint64(p.Line), 10)
}

// fail returns an error that names a block.
func (s *System) fail(b int, why, do string) *Error {
	e := &Error{Block: b, Why: why, Do: do}
	k := &s.program.Blocks[b]
	e.Label = Label(k)
	e.Place = trace.Place{File: k.File, Line: k.LastLine}
	if int64(k.Function) < int64(len(s.program.Functions)) {
		f := &s.program.Functions[k.Function]
		e.Function = f.Name
		if e.Place.Line == 0 {
			e.Place = trace.Place{File: f.Place.File, Line: f.Place.Line}
		}
	}
	return e
}

// Label returns a block's label, with +n for the part after the n-th call.
func Label(k *trace.Block) string {
	if k.Part > 0 {
		return k.Label + "+" + strconv.FormatUint(uint64(k.Part), 10)
	}
	return k.Label
}
