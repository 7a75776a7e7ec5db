// Package branches counts how often each edge between the basic blocks of a program is taken, from
// the block entries that a trace contains. Package blocks computes execution counts from these edge
// counts (MODELS §12).
//
// A record of the trace states only that a thread entered a block. To find the edge that led to the
// entered block, the analysis keeps a call stack for each thread, with the latest block of every
// active invocation:
//
//  1. No edge of a function leads to its first block, so entering the first block is a call. The
//     preceding block is the caller if it contains a call to the function or ends in a tail call.
//     (In the trace, the return of the block with the tail call precedes the entry of the called
//     function.) Otherwise, the caller is unknown: the function is a callback, the start of a
//     thread, or a signal handler.
//  2. If the program's tables list a block as a successor of the latest block of its invocation,
//     the edge between these two blocks is counted. If the latest block has several edges to the
//     entered block, the first edge is counted.
//  3. A block that returns ends the invocation to which it belongs. A tail call also counts as a
//     return, whether or not the called function returns.
//  4. If the entered block is neither a first block nor a listed successor, at least one invocation
//     has ended without a return. The entered block, for example a landing pad, belongs to the
//     topmost invocation whose latest block lists the entered block as a successor. If there is no
//     such invocation, or if the entered block follows a call to setjmp, the entered block belongs
//     to the topmost invocation of its function and counts as resumed. All invocations above that
//     invocation on the stack have ended.
//  5. If the block's function has no active invocation, the block counts as resumed, and all
//     invocations of the thread end. Blocks without an active invocation occur if a trace begins in
//     the middle of a run, or if a program switches stacks.
//
// Invocations that are still on a call stack at the end of the trace did not return, because the
// program exited or the recording ended first. The stack-distance histogram of a block is the sum
// of the histograms of its sites: see blocks.Run.Reuse.
//
// The call stacks at the beginning of a segment are unknown. A segment therefore records its first
// calls and the blocks that belong to earlier invocations. The edges and callers of these blocks
// are determined when the segment is appended (state.go), so the result is the same as for the
// whole trace. In recursive code, after a jump that the tables do not declare, a block may belong
// either to an invocation that began in the segment or to an earlier invocation. A segment that
// contains such a jump cannot be appended (ErrTorn). Segments cannot be joined if the joined run
// might exceed the maximum number of call paths (ErrManyPaths).
package branches

import (
	"errors"
	"strconv"

	"github.com/stackglass/stackglass/core/analysis/contract"
	"github.com/stackglass/stackglass/core/analysis/index"
	"github.com/stackglass/stackglass/core/trace"
)

// Analysis follows the calls and branches of each thread.
type Analysis struct {
	program func() *trace.Program
	segment bool // the analysis begins in the middle of a run
	gone    bool // calls are nested too deeply, so the analysis was stopped
	code    code
	counts  counts

	threads  []*thread   // in the order of the threads' first records
	threadAt index.Table // indexed by the thread's number
	now      *thread     // thread of the latest record
	encoded  encodedProgram

	enters    [32][]uint32       // the block that a record enters, by the kind and site of the record; 0: none
	entered   [mostPicked]uint32 // the blocks that the current records enter
	enteredAt [mostPicked]uint32 // number of references of the batch before each entry

	paths   paths
	passed  uint32   // number of references of the batch so far
	changes []Change // changes of the call path within the batch
	adopted []uint32 // for each path of the latest restored or appended profile: the path's number in this analysis
}

// New returns an analysis for a run that reads references of the given kinds. The function program
// returns the code that the trace's tables have described so far, or nil. If the analysis begins in
// the middle of a run, segment must be true.
func New(kinds trace.Kinds, segment bool, program func() *trace.Program) *Analysis {
	const needed = 1<<trace.Load | 1<<trace.Store | 1<<trace.Modify
	a := &Analysis{program: program, segment: segment, paths: newPaths(segment)}
	a.code = code{bySite: kinds&needed == needed, nodes: []node{{}}, names: map[string]uint32{}, calls: []uint32{0}}
	return a
}

var (
	_ contract.Analysis     = (*Analysis)(nil)
	_ contract.CallFollower = (*Analysis)(nil)
	_ contract.Joiner       = (*Analysis)(nil)
)

// Takes returns the events that mark the entry of a block.
func (a *Analysis) Takes() (events trace.Kinds, sites, pcs bool) {
	if a.code.bySite {
		return 1 << trace.BareBlock, true, false
	}
	return 1 << trace.BlockEntry, true, false
}

// Close does nothing, because Result needs all data.
func (a *Analysis) Close() {}

const mostFrames = 1 << 22 // maximum depth of nested calls; a trace with deeper calls has no result

// ErrTorn reports that a segment contains a jump to a block, but that the segment alone does not
// show in which call of a function the thread continues.
var ErrTorn = errors.New("a segment of the trace contains a jump that may belong to a call in an earlier segment, so the block counts of the segments cannot be joined; analyse the whole trace in one run")

// ErrManyPaths reports that segments have more than [MostPaths] call paths, or call paths of more
// than [MostDepth] functions. Such segments cannot be joined, because the order of the paths and
// their depths in the run are known only if the trace is read in order.
var ErrManyPaths = errors.New("the segments of the trace contain more than " + strconv.Itoa(MostPaths) + " call paths, or a call path of more than " + strconv.Itoa(MostDepth) + " functions, so the counts of the segments cannot be joined; analyse the whole trace in one run")

// Consume processes the next records. If the code branched on whether a record enters a block, or
// on the edge to the block, these branches would be as unpredictable as the branches of the traced
// program. Consume therefore uses branchless code to select the records that enter blocks. If a
// thread enters a block along an edge, Consume executes only one conditional branch, whose outcome
// is almost always the same.
func (a *Analysis) Consume(b *trace.Batch) error {
	a.passed, a.changes = 0, append(a.changes[:0], Change{})
	if b.Site == nil || a.gone {
		return nil
	}
	if a.now == nil {
		a.now = a.thread(0)
	}
	for lo := 0; lo < b.Len(); {
		hi := min(lo+len(a.entered), b.Len())
		if b.Thread != nil {
			hi = lo + equalPrefix(b.Thread[lo:hi])
		}
		if b.Thread != nil && b.Thread[lo] != a.now.number {
			a.now = a.thread(b.Thread[lo])
		}
		a.notePath(a.passed, a.now.row)
		n, unknown := a.collectEntries(b.Kind[lo:hi], b.Site[lo:hi])
		if err := a.moveThrough(a.now, a.entered[:n], a.enteredAt[:n]); err != nil {
			return err
		}
		if unknown != nil {
			return unknown
		}
		lo = hi
	}
	return nil
}

// equalPrefix returns the number of equal elements at the beginning of the list.
func equalPrefix(threads []uint32) int {
	const block = 64 // number of elements compared at a time
	n := 1
	for n+block <= len(threads) && *(*[block]uint32)(threads[n:]) == *(*[block]uint32)(threads[n-1:]) {
		n += block
	}
	for n < len(threads) && threads[n] == threads[0] {
		n++
	}
	return n
}

// collectEntries collects, in a.entered, the blocks that the records enter. The result n is the
// number of these blocks. If a record refers to unknown code, collectEntries returns an error, and
// n is the number of blocks before this record.
func (a *Analysis) collectEntries(kinds []trace.Kind, sites []uint32) (n int, err error) {
	sites = sites[:len(kinds)]
	entered, at, passed := &a.entered, &a.enteredAt, a.passed
	for i, k := range kinds {
		enters, site := a.enters[k&31], sites[i]
		if uint64(site) >= uint64(len(enters)) {
			what := "block"
			switch {
			case k <= trace.Modify && a.code.bySite:
				what = "site"
			case k == trace.BlockEntry || k == trace.BareBlock && a.code.bySite:
			default:
				if k < trace.NumKinds {
					passed++
				}
				continue
			}
			if err := a.readTables(what, site); err != nil {
				a.passed = passed
				return n, err
			}
			enters = a.enters[k&31]
		}
		to := enters[site]
		entered[n&(mostPicked-1)], at[n&(mostPicked-1)] = to, passed
		n += int((to | -to) >> 31)
		passed += (uint32(k) - uint32(trace.NumKinds)) >> 31 // adds 1 only if the record is a reference
	}
	a.passed = passed
	return n, nil
}

const mostPicked = 1 << 10 // maximum number of records that collectEntries examines at a time

// moveThrough moves a thread through the given blocks, in order. before[i] is the number of
// references that precede block entered[i].
func (a *Analysis) moveThrough(t *thread, entered, before []uint32) error {
	nodes, taken, at, returned := a.code.nodes, a.counts.taken, t.at, t.returned
	if returned != 0 && len(entered) > 0 {
		t.row = t.path
		a.notePath(before[0], t.row)
	}
	instructions := uint64(0) // number of executed instructions on the path of the topmost invocation
	for i, to := range entered {
		from := &nodes[at]
		first, second := uint64(from.first^to), uint64(from.second^to)
		if first*second == 0 && nodes[to].plain {
			// count the first edge if it leads to the block, otherwise the second edge
			taken[from.edge+uint32(-first>>63)]++
			at, returned = to, 0
			instructions += uint64(nodes[to].instructions)
			continue
		}
		if from.jump != 0 && nodes[to].plain {
			if edge, found := a.code.findEdge(at, to); found {
				taken[edge]++
				at, returned = to, 0
				instructions += uint64(nodes[to].instructions)
				continue
			}
		}
		t.at, t.returned = at, returned
		a.paths.list[t.path].instructions += instructions
		instructions = 0
		if err := a.enterBlock(t, to-1); err != nil {
			return err
		}
		if at, returned = t.at, t.returned; a.gone {
			return nil
		}
		a.paths.list[t.row].instructions += uint64(nodes[to].instructions)
		if a.notePath(before[i], t.row); returned != 0 && i+1 < len(entered) {
			t.row = t.path
			a.notePath(before[i+1], t.row)
		}
	}
	t.at, t.returned = at, returned
	a.paths.list[t.path].instructions += instructions
	return nil
}

// readTables reads the program's tables again, because a record refers to an unknown block or site.
func (a *Analysis) readTables(what string, number uint32) error {
	a.addProgram(a.program())
	known := len(a.code.nodes) - 1
	if what == "site" {
		known = len(a.code.blockOfFirst)
	}
	if uint64(number) >= uint64(known) {
		return &contract.UnknownError{What: what, Number: number, Known: known, Without: "blocks"}
	}
	return nil
}

// thread returns the thread with the given number, and creates it if necessary.
func (a *Analysis) thread(number uint32) *thread {
	n, known := a.threadAt.Find(uint64(number))
	if !known {
		n = uint32(len(a.threads))
		a.threadAt.Add(uint64(number), n)
		t := &thread{number: number, unstarted: a.segment}
		if a.segment {
			t.start = a.paths.addUnknown()
			t.row = t.start
		}
		a.threads = append(a.threads, t)
	}
	return a.threads[n]
}
