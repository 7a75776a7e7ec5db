// Package branches counts how often each branch of a program is taken, from the blocks that a trace
// says were entered. The result is the edges of a run, as core/blocks defines them (MODELS §12).
//
// A row only says that a thread entered a block. The edge by which it came follows from a call
// stack for each thread, which contains the latest block of every active invocation:
//
//  1. No edge of a function leads to its first block, so entering that is a call. The
//     call is by name if the block before names the function, or has a return that stands
//     for it (a call in the place of a return makes its own step behind that of the return);
//     else the caller is unknown: a callback, a thread, a signal handler.
//  2. A block that follows the latest one of its invocation, by the program's tables, was
//     entered by that edge; the first of several to the same block counts.
//  3. A block that returns ends its invocation. A call in the place of a return counts,
//     whether or not what it calls comes back.
//  4. Otherwise invocations ended without a return. The block belongs to the topmost invocation
//     whose latest block it follows, such as a landing pad. A block after a setjmp belongs to the
//     topmost invocation of its function, and counts as resumed; so does any other block that fits
//     nowhere. The invocations above have ended.
//  5. A block of a function without an invocation is resumed, and all others of the thread end.
//     This happens if a trace begins in the middle of a run, or programs change stacks.
//
// Invocations that are on a stack at the end did not return: the program exited, or the trace ends.
// The reuse of a block's references is the sum over its sites: see blocks.Run.Reuse.
//
// A segment of a trace does not know the stacks that it begins with. It records the blocks that
// belong to invocations below, and the calls that came first, and resolves them when it is appended
// (state.go); the result is the same as for the whole trace. If a block could belong to an
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
	segment bool // earlier rows exist, and are unknown
	gone    bool // the analysis was stopped: calls are nested too deep
	code    code
	counts  counts

	threads  []*thread   // in the order of appearance
	threadAt index.Table // by number
	now      *thread     // of the latest rows
	encoded  encoded

	enters  [32][]uint32       // by kind and Site of a row: the block that it enters; 0: none
	entered [mostPicked]uint32 // blocks that rows enter
}

// New returns an analysis of a run with these kinds of references. program returns the part of the
// code that the trace has described so far, or nil. segment: it begins in the middle of a run.
func New(kinds trace.Kinds, segment bool, program func() *trace.Program) *Analysis {
	const needed = 1<<trace.Load | 1<<trace.Store | 1<<trace.Modify
	a := &Analysis{program: program, segment: segment}
	a.code = code{bySite: kinds&needed == needed, nodes: []node{{}}, names: map[string]uint32{}, calls: []uint32{0}}
	return a
}

var _ contract.Analysis = (*Analysis)(nil)

// Takes asks for the blocks that are entered.
func (a *Analysis) Takes() (events trace.Kinds, sites, pcs bool) {
	if a.code.bySite {
		return 1 << trace.BareBlock, true, false
	}
	return 1 << trace.BlockEntry, true, false
}

// Close keeps everything: a result needs it all.
func (a *Analysis) Close() {}

const mostFrames = 1 << 22 // of nested calls; a trace with deeper calls has no result

// ErrTorn reports that a segment came to a block, and cannot know from where.
var ErrTorn = errors.New("a part of the trace has a jump that could come from before it, so that its blocks cannot be joined; analyse the trace in one piece")

// Consume follows the next rows. Whether a row enters a block, and by which of two edges, is as
// unpredictable as the program. So rows that enter blocks are selected without a branch, and then a block
// that follows its predecessor costs one branch, which nearly always has the same outcome.
func (a *Analysis) Consume(b *trace.Batch) error {
	if b.Site == nil || a.gone {
		return nil
	}
	if a.now == nil {
		a.now = a.thread(0)
	}
	for lo := 0; lo < b.Len(); {
		hi := min(lo+len(a.entered), b.Len())
		if b.Thread != nil {
			hi = lo + runOf(b.Thread[lo:hi])
		}
		n, unknown := a.pick(b.Kind[lo:hi], b.Site[lo:hi])
		if n > 0 && b.Thread != nil && b.Thread[lo] != a.now.number {
			a.now = a.thread(b.Thread[lo])
		}
		if err := a.follow(a.now, a.entered[:n]); err != nil {
			return err
		}
		if unknown != nil {
			return unknown
		}
		lo = hi
	}
	return nil
}

// runOf returns how many of the first threads are equal; there is at least one.
func runOf(threads []uint32) int {
	const block = 64 // number of threads in a comparison
	n := 1
	for n+block <= len(threads) && *(*[block]uint32)(threads[n:]) == *(*[block]uint32)(threads[n-1:]) {
		n += block
	}
	for n < len(threads) && threads[n] == threads[0] {
		n++
	}
	return n
}

// pick writes the blocks that the rows enter to a.entered, and returns their number n. If a row cannot be used,
// n blocks come before it, and err says why.
func (a *Analysis) pick(kinds []trace.Kind, sites []uint32) (n int, err error) {
	sites = sites[:len(kinds)]
	entered := &a.entered
	for i, k := range kinds {
		enters, site := a.enters[k&31], sites[i]
		if uint64(site) >= uint64(len(enters)) {
			what := "block"
			switch {
			case k <= trace.Modify && a.code.bySite:
				what = "site"
			case k == trace.BlockEntry || k == trace.BareBlock && a.code.bySite:
			default:
				continue
			}
			if err := a.meet(what, site); err != nil {
				return n, err
			}
			enters = a.enters[k&31]
		}
		to := enters[site]
		entered[n&(mostPicked-1)] = to
		n += int((to | -to) >> 31)
	}
	return n, nil
}

const mostPicked = 1 << 10 // rows at a time

func (a *Analysis) follow(t *thread, entered []uint32) error {
	nodes, taken, at, returned := a.code.nodes, a.counts.taken, t.at, t.returned
	for _, to := range entered {
		from := &nodes[at]
		first, second := uint64(from.first^to), uint64(from.second^to)
		if first*second == 0 && nodes[to].plain {
			taken[from.edge+uint32(-first>>63)]++ // the second unless it is the first
			at, returned = to, 0
			continue
		}
		if from.jump != 0 && nodes[to].plain {
			if edge, found := a.code.follows(at, to); found {
				taken[edge]++
				at, returned = to, 0
				continue
			}
		}
		t.at, t.returned = at, returned
		if err := a.visit(t, to-1); err != nil {
			return err
		}
		at, returned = t.at, t.returned
	}
	t.at, t.returned = at, returned
	return nil
}

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
