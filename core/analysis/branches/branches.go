// Package branches counts how often each branch of a program is taken, from the blocks
// that a trace says were entered. The result is the edges of a run, as core/blocks
// defines them (MODELS §12).
//
// A row tells that a thread entered a block, and no more. From where follows with a
// stack of calls for each thread, which has the latest block of every invocation that
// has not ended:
//
//  1. Nothing in a function leads to its first block, so whoever comes there was called.
//     The call is by name where the block before has the name of that function, or has a
//     return that stands for it (a call in the place of a return makes its own step
//     behind the step of that return); else the function counts as entered by nobody
//     that is known: a callback, a thread, a handler of a signal.
//  2. A block that follows the latest one of its invocation, by the program's tables, was
//     come to by that edge; the first of several to the same block counts.
//  3. A block that returns ends its invocation, be it by a call: one in the place of a
//     return counts that, whether or not what it calls comes back.
//  4. Else invocations were left without a return. The block goes to the topmost
//     invocation whose latest block it follows, as where an exception lands, or a call of
//     something that has caught one goes on. What follows a setjmp goes to the topmost
//     invocation of its function, and counts as resumed; so does, if no invocation fits,
//     any other block. What is above is left where it was.
//  5. A block of a function that has no invocation on the stack is resumed, and all
//     others of the thread are left: so it is where a trace begins in the middle of a
//     run, or programs change stacks.
//
// What is still on a stack at the end was left there: the program exited, or the trace
// ends.
//
// How near each block's references find their lines needs no count of its own: it is the
// sum over the block's sites: see Run.Reuse there.
//
// A segment of a trace does not know the stacks that it begins with. It notes which
// blocks go to what lies below its own, and what was called before anything else, and
// counts where they came from when it is appended (state.go); the result is that of the
// whole. Where a block could go to an invocation of the segment or to one below, which
// takes a jump or an exception in recursive code that no table tells of, the segment
// cannot tell, and is given up.
package branches

import (
	"strconv"

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

// New makes an analysis of a run of whose references there are these kinds. program
// gives what the trace has told of its code so far, or nil. segment tells that it begins in
// the middle of a run that it will be appended to.
//
// If all loads and stores are among the references, a block's first one shows that it
// was entered, and readers are faster that need not tell of each entry.
func New(kinds trace.Kinds, segment bool, program func() *trace.Program) *Analysis {
	const needed = 1<<trace.Load | 1<<trace.Store | 1<<trace.Modify
	a := &Analysis{program: program, segment: segment, bySite: kinds&needed == needed}
	a.code.init()
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

// mostFrames is how deep calls of a thread may be nested. Where they are nested deeper,
// as by a trace that only calls, there is no result.
const mostFrames = 1 << 22

// UnknownError tells that a row is of code that the trace's tables lack.
type UnknownError struct {
	What   string // "block" or "site"
	Number uint32
	Known  int
}

func (e *UnknownError) Error() string {
	return "a row is of " + e.What + " " + strconv.FormatUint(uint64(e.Number), 10) + ", but the trace's tables tell of " +
		strconv.Itoa(e.Known) + " only; the file is damaged or was joined from parts: capture it again, or analyse without blocks"
}

// TornError tells that a segment came to a block without what it takes to say from where.
type TornError struct{}

func (e *TornError) Error() string {
	return "a part of the trace has a jump that could come from before it, so that its blocks cannot be joined; analyse the trace in one piece"
}

// Consume follows the next rows. A block that plainly follows the one before takes no
// call: there may be as many of them as references.
func (a *Analysis) Consume(b *trace.Batch) error {
	if b.Site == nil || a.gone {
		return nil
	}
	if a.now == nil {
		a.turn(0)
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
			a.turn(threads[i])
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

// noBlock is what a site shows that is not the first reference of a block.
const noBlock = ^uint32(0)

// meet takes in what the trace has told since, because a row names something that was
// not known.
func (a *Analysis) meet(what string, number uint32) error {
	a.learn(a.program())
	known := len(a.code.nodes) - 1
	if what == "site" {
		known = len(a.code.firstOf)
	}
	if uint64(number) >= uint64(known) {
		return &UnknownError{what, number, known}
	}
	return nil
}

// turn goes to another thread's rows.
func (a *Analysis) turn(number uint32) { a.now = a.thread(number) }

// thread gives a thread by its number, which may be new.
func (a *Analysis) thread(number uint32) *thread {
	n, known := a.threadAt.Find(uint64(number))
	if !known {
		n = uint32(len(a.threads))
		a.threadAt.Add(uint64(number), n)
		a.threads = append(a.threads, &thread{number: number, fresh: a.segment})
	}
	return a.threads[n]
}
