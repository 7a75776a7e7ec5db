package branches

import "github.com/stackglass/stackglass/core/trace"

// thread is the state of a thread. Blocks are identified by their numbers in code.
type thread struct {
	number uint32
	at     uint32   // the latest block of the topmost invocation; 0: there is no active invocation
	stack  []uint32 // latest blocks of the lower invocations

	path  uint32   // path of the topmost invocation; 0: no invocation
	under []uint32 // paths of the lower invocations, in the same order as stack
	row   uint32   // path of the latest record; after a return, the path changes only at the next record
	start uint32   // in a segment: the path of the records before the thread's first block

	// returned is the latest block if this block returned, and otherwise 0. before is the block
	// that precedes the latest block in the same invocation, or 0 if there is none. reached is true
	// if this preceding block lies before the beginning of the segment, and is therefore unknown.
	returned, before uint32
	reached          bool

	// In a segment, unstarted is true if the thread has not entered a block yet, and beganEarlier
	// is true if the thread's bottommost invocation began before the segment. If an invocation that
	// began before the segment continues in a block of the segment, continuations contains this
	// block.
	unstarted, beganEarlier bool
	continuations           []continuation
}

// continuation is a block in which an invocation that began before the segment continues.
type continuation struct {
	block uint32 // 0: the thread's records in the segment begin with a call
	then  uint32 // if the thread then entered a function whose caller may be outside the segment: the first block of this function; otherwise 0
	path  uint32 // path of the invocation
	lower uint32 // path of the next lower invocation; 0: not needed
}

// counts contains the counts of all edges (taken) and of all blocks. A block is identified by its
// number in code.
type counts struct {
	taken         []uint64
	left, resumed []uint64
	callee        []uint32 // for each block that calls a function: 1 + the function that the block called first; 0: none
	made          []uint64 // number of calls of this function
	otherAt       map[call]int
	other         []uint64 // number of calls of other functions
}

type call struct{ caller, function uint32 }

func extend[T any](s []T, length int) []T {
	if len(s) < length {
		s = append(s, make([]T, length-len(s))...)
	}
	return s
}

func (c *counts) call(caller, function uint32, n uint64) {
	if c.callee[caller] == 0 {
		c.callee[caller] = function + 1
	}
	if c.callee[caller] == function+1 {
		c.made[caller] += n
		return
	}
	key := call{caller, function}
	at, known := c.otherAt[key]
	if !known {
		if c.otherAt == nil {
			c.otherAt = map[call]int{}
		}
		at = len(c.other)
		c.otherAt[key] = at
		c.other = append(c.other, 0)
	}
	c.other[at] += n
}

// callCount returns the number of direct calls of a function by a block.
func (c *counts) callCount(caller, function uint32) uint64 {
	if c.callee[caller] == function+1 {
		return c.made[caller]
	}
	if at, known := c.otherAt[call{caller, function}]; known {
		return c.other[at]
	}
	return 0
}

func (a *Analysis) addProgram(p *trace.Program) {
	a.code.addProgram(p)
	c, nodes := &a.counts, len(a.code.nodes)
	c.taken = extend(c.taken, int(a.code.edges))
	c.left, c.resumed, c.made, c.callee = extend(c.left, nodes), extend(c.resumed, nodes), extend(c.made, nodes), extend(c.callee, nodes)
	for k := range a.enters {
		a.enters[k] = a.code.zeros
	}
	a.enters[trace.BlockEntry] = a.code.bareBlocks
	if a.code.bySite {
		a.enters[trace.Load], a.enters[trace.Store], a.enters[trace.Modify] = a.code.blockOfFirst, a.code.blockOfFirst, a.code.blockOfFirst
		a.enters[trace.BareBlock] = a.code.bareBlocks
	}
}

// enterBlock moves a thread to a block that the program's tables contain.
func (a *Analysis) enterBlock(t *thread, block uint32) error {
	to := block + 1
	if a.code.nodes[to].enters {
		if a.enter(t, to); a.gone {
			return nil
		}
		if a.segment && a.paths.exceedsLimits() {
			return ErrManyPaths
		}
	} else if err := a.enterInnerBlock(t, to); err != nil {
		return err
	}
	t.row = t.path
	if a.code.nodes[to].returns {
		a.counts.left[to]++
		t.leave()
	}
	return nil
}

func (a *Analysis) enter(t *thread, to uint32) {
	a.countCaller(t, to)
	path := a.paths.callee(a.topPath(t), a.code.function(to), 1)
	t.push()
	t.at, t.path, t.returned, t.before, t.reached = to, path, 0, 0, false
	a.gone = len(t.stack) >= mostFrames
}

// countCaller finds the block that called the function entered by a thread, and counts the call.
func (a *Analysis) countCaller(t *thread, to uint32) {
	function := a.code.function(to)
	switch {
	case t.unstarted:
		t.continuations = append(t.continuations, continuation{then: to})
	case t.returned == 0:
		a.countCallBy(t.at, function)
	case a.countCallBy(t.returned, function):
	case t.reached:
		t.continuations[len(t.continuations)-1].then = to
	case a.code.nodes[t.before].passes && a.code.nodes[t.before].first == t.returned:
		a.countCallBy(t.before, function)
	}
	t.unstarted = false
}

// countCallBy counts a direct call of a function by a block. It returns false if the block does not
// call this function directly.
func (a *Analysis) countCallBy(caller, function uint32) bool {
	name := a.code.calls[caller]
	if name == 0 || uint64(function) >= uint64(len(a.code.nameOf)) || a.code.nameOf[function] != name {
		return false
	}
	a.counts.call(caller, function, 1)
	return true
}

func (t *thread) blank() bool { return t.at == 0 && t.returned == 0 && len(t.continuations) == 0 }

// push pushes the current invocation onto the thread's stack, to make room for a new invocation.
func (t *thread) push() {
	if t.at != 0 {
		t.stack, t.under = append(t.stack, t.at), append(t.under, t.path)
	}
}

func (t *thread) leave() {
	t.returned = t.at
	t.pop()
}

func (t *thread) pop() {
	last := len(t.stack) - 1
	if last < 0 {
		t.at, t.path, t.beganEarlier = 0, 0, false
		return
	}
	t.at, t.stack = t.stack[last], t.stack[:last]
	t.path, t.under = t.under[last], t.under[:last]
}

// enterInnerBlock moves a thread to a block that is not the first block of a function.
func (a *Analysis) enterInnerBlock(t *thread, to uint32) error {
	edge, found := a.code.findEdge(t.at, to)
	if !found {
		return a.jumpTo(t, to)
	}
	a.takeEdge(t, edge, to)
	return nil
}

// jumpTo moves a thread to a block that is not a successor of the latest block of the topmost
// invocation.
func (a *Analysis) jumpTo(t *thread, to uint32) error {
	node := &a.code.nodes[to]
	if !node.jumps {
		if depth, edge := a.invocationBefore(t, to); depth >= 0 {
			a.dropInvocations(t, depth)
			a.takeEdge(t, edge, to)
			return nil
		}
	}
	depth := -1
	if !node.lands {
		depth = a.invocationOf(t, node.function)
	}
	if depth >= 0 && a.segment && !node.jumps {
		return ErrTorn
	}
	t.unstarted = false
	t.returned, t.before, t.reached = 0, 0, false
	if a.dropInvocations(t, depth); depth >= 0 {
		a.counts.left[t.at]++
		a.counts.resumed[to]++
		t.at = to
		return nil
	}
	if t.at = to; !a.segment {
		t.path = a.paths.calleePath(0, node.function)
		a.counts.resumed[to]++
		return nil
	}
	t.path = a.paths.addUnknown()
	t.beganEarlier, t.reached = true, true
	t.continuations = append(t.continuations, continuation{block: to, path: t.path})
	return nil
}

// takeEdge moves a thread's topmost invocation along an edge to a block.
func (a *Analysis) takeEdge(t *thread, edge, to uint32) {
	a.counts.taken[edge]++
	t.before, t.at, t.returned, t.reached = t.at, to, 0, false
}

// invocationBefore finds the topmost invocation whose latest block has an edge to the given block.
// It returns the edge, and the number of invocations above the found invocation. If no invocation
// has such an edge, this number is -1.
func (a *Analysis) invocationBefore(t *thread, to uint32) (depth int, edge uint32) {
	for i := len(t.stack) - 1; i >= 0; i-- {
		if edge, found := a.code.findEdge(t.stack[i], to); found {
			return len(t.stack) - i, edge
		}
	}
	return -1, 0
}

func (a *Analysis) invocationOf(t *thread, function uint32) (depth int) {
	if t.at != 0 && a.code.function(t.at) == function {
		return 0
	}
	for i := len(t.stack) - 1; i >= 0; i-- {
		if a.code.function(t.stack[i]) == function {
			return len(t.stack) - i
		}
	}
	return -1
}

// dropInvocations ends the given number of topmost invocations at their latest blocks. If the
// parameter depth is -1, dropInvocations ends all invocations.
func (a *Analysis) dropInvocations(t *thread, depth int) {
	for ; t.at != 0 && depth != 0; depth-- {
		a.counts.left[t.at]++
		t.pop()
	}
}

// ForgetCounts implements [contract.CallFollower]. The latest block of each active invocation, and the
// latest block of each thread, are still being executed, so they will count as executed once. Unless
// such a block is the first block of its function, it counts as resumed. Call paths without active
// invocations are removed.
func (a *Analysis) ForgetCounts() {
	c, before := &a.counts, a.paths
	for _, list := range [][]uint64{c.taken, c.left, c.resumed, c.made} {
		clear(list)
	}
	clear(c.callee)
	c.otherAt, c.other = nil, nil
	a.paths = newPaths(a.segment)
	for _, t := range a.threads {
		running := t.frames()
		if t.returned != 0 {
			running = append(running, t.returned)
			c.left[t.returned]++
		}
		for _, n := range running {
			if !a.code.nodes[n].enters {
				c.resumed[n]++
			}
		}
		t.before = 0
		t.path, t.row = a.paths.copyPath(&before, t.path), a.paths.copyPath(&before, t.row)
		for i, n := range t.under {
			t.under[i] = a.paths.copyPath(&before, n)
		}
	}
}
