// Package branches counts how often each branch of a program is taken, from the blocks that a trace
// says were entered. The result is the edges of a run, as core/blocks defines them (MODELS §12).
//
// A row says that a thread entered a block, and no more. Where it came from follows from a
// call stack for each thread, which has the latest block of every active invocation:
//
//  1. Nothing in a function leads to its first block, so whoever enters that was called. The
//     call is by name if the block before names the function, or has a return that stands
//     for it (a call in the place of a return makes its own step behind that of the return);
//     else the caller is unknown: a callback, a thread, a signal handler.
//  2. A block that follows the latest one of its invocation, by the program's tables, was
//     entered by that edge; the first of several to the same block counts.
//  3. A block that returns ends its invocation. A call in the place of a return counts,
//     whether or not what it calls comes back.
//  4. Else invocations were left without a return. The block belongs to the topmost
//     invocation whose latest block it follows, as where an exception lands. What follows a
//     setjmp belongs to the topmost invocation of its function, and counts as resumed; so
//     does any other block that fits nowhere. What is above was left.
//  5. A block of a function without an invocation is resumed, and all others of the thread are
//     left: so it is where a trace begins in the middle of a run, or programs change stacks.
//
// What is still on a stack at the end was left there: the program exited, or the trace ends.
// The reuse of a block's references is the sum over its sites: see blocks.Run.Reuse.
//
// A segment of a trace does not know the stacks that it begins with. It records which blocks
// belong to what lies below, and what was called before anything else, and resolves them when
// it is appended (state.go); the result is that of the whole. Where a block could belong to an
// invocation of the segment or to one below, as with jumps in recursive code that no table
// declares, the segment is given up.
package branches

import (
	"errors"

	"github.com/stackglass/stackglass/core/analysis/contract"
	"github.com/stackglass/stackglass/core/analysis/index"
	"github.com/stackglass/stackglass/core/trace"
)

// Analysis follows the calls of each thread.
type Analysis struct {
	program func() *trace.Program
	segment bool // there is something before, which is not known
	bySite  bool // the first reference of a block tells that it was entered
	gone    bool // given up: calls are nested too deep
	code    code
	counts  counts

	threads  []*thread   // in the order of appearance
	threadAt index.Table // by number
	now      *thread     // whose rows came last
	encoded  encoded
}

// New makes an analysis of a run with these kinds of references. program returns what the trace
// has told of its code so far, or nil. segment says that it begins in the middle of a run.
func New(kinds trace.Kinds, segment bool, program func() *trace.Program) *Analysis {
	const needed = 1<<trace.Load | 1<<trace.Store | 1<<trace.Modify
	a := &Analysis{program: program, segment: segment, bySite: kinds&needed == needed}
	a.code = code{nodes: []node{{}}, names: map[string]uint32{}, calls: []uint32{0}}
	return a
}

var _ contract.Analysis = (*Analysis)(nil)

// Takes asks for the blocks that are entered.
func (a *Analysis) Takes() (events trace.Kinds, sites, pcs bool) {
	if a.bySite {
		return 1 << trace.BareBlock, true, false
	}
	return 1 << trace.BlockEntry, true, false
}

// Close has nothing to free that a result does not need.
func (a *Analysis) Close() {}

const mostFrames = 1 << 22 // of nested calls; a trace with deeper calls has no result

// ErrTorn reports that a segment came to a block, and cannot know from where.
var ErrTorn = errors.New("a part of the trace has a jump that could come from before it, so that its blocks cannot be joined; analyse the trace in one piece")

// Consume follows the next rows. The common case, a block that follows the one before, is inlined.
func (a *Analysis) Consume(b *trace.Batch) error {
	if b.Site == nil || a.gone {
		return nil
	}
	if a.now == nil {
		a.now = a.thread(0)
	}
	t := a.now
	nodes, taken := a.code.nodes, a.counts.taken
	at, returned := t.at, t.returned
	sites, threads, number := b.Site[:len(b.Kind)], b.Thread, t.number
	first, bySite := a.code.firstOf, a.bySite
	for i, k := range b.Kind {
		block := sites[i]
		switch {
		case k <= trace.Modify && bySite:
			if uint64(block) >= uint64(len(first)) {
				if err := a.meet("site", block); err != nil {
					return err
				}
				first, nodes, taken = a.code.firstOf, a.code.nodes, a.counts.taken
			}
			if block = first[block] - 1; block == noBlock {
				continue
			}
		case k == trace.BlockEntry || k == trace.BareBlock && bySite:
			if uint64(block)+1 >= uint64(len(nodes)) {
				if err := a.meet("block", block); err != nil {
					return err
				}
				first, nodes, taken = a.code.firstOf, a.code.nodes, a.counts.taken
			}
			if bySite && nodes[block+1].shown {
				continue
			}
		default:
			continue
		}
		if i < len(threads) && threads[i] != number {
			t.at, t.returned = at, returned
			a.now = a.thread(threads[i])
			t, number = a.now, threads[i]
			at, returned = t.at, t.returned
		}
		to := uint64(block) + 1
		if to < uint64(len(nodes)) && nodes[to].plain {
			from := &nodes[at]
			if from.first == uint32(to) {
				taken[from.edge]++
				at, returned = uint32(to), 0
				continue
			}
			if from.second == uint32(to) {
				taken[from.edge+1]++
				at, returned = uint32(to), 0
				continue
			}
		}
		t.at, t.returned = at, returned
		if err := a.visit(t, block); err != nil {
			return err
		}
		at, returned = t.at, t.returned
	}
	t.at, t.returned = at, returned
	return nil
}

const noBlock = ^uint32(0) // a site that is not the first reference of a block

// meet reads the program's tables again, because a row names something unknown.
func (a *Analysis) meet(what string, number uint32) error {
	a.learn(a.program())
	known := len(a.code.nodes) - 1
	if what == "site" {
		known = len(a.code.firstOf)
	}
	if uint64(number) >= uint64(known) {
		return &contract.UnknownError{What: what, Number: number, Known: known, Without: "blocks"}
	}
	return nil
}

// thread returns the thread with a number, new or known.
func (a *Analysis) thread(number uint32) *thread {
	n, known := a.threadAt.Find(uint64(number))
	if !known {
		n = uint32(len(a.threads))
		a.threadAt.Add(uint64(number), n)
		a.threads = append(a.threads, &thread{number: number, fresh: a.segment})
	}
	return a.threads[n]
}
