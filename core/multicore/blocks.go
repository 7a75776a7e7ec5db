package multicore

import (
	"strings"

	"github.com/stackglass/stackglass/core/trace"
)

// roles are what a block does that matters for dividing work.
type roles uint16

const (
	joins       roles = 1 << iota // a region has ended when it begins
	waits                         // a barrier has been left when it begins
	asksForOne                    // at its end it asks whether this thread does what one does for all
	oneIsDone                     // at its end what one does for all ends
	isBare                        // loads, stores and modifies nothing
	usesNumber                    // asks for a thread's number, or how many there are
	setsThreads                   // asks for a number of threads
	makesTasks
	locks
	keepsPrivate // asks for a thread's copy of a global variable
	inOrder      // iterations wait for earlier ones
	cancels
	adds // a thread's part of a reduction to the whole, in a team of one
)

// callees are functions of LLVM's runtime, and of OpenMP's library, that matter.
var callees = map[string]roles{
	"__kmpc_single": asksForOne, "__kmpc_master": asksForOne, "__kmpc_masked": asksForOne,
	"__kmpc_end_single": oneIsDone, "__kmpc_end_master": oneIsDone, "__kmpc_end_masked": oneIsDone,
	"omp_get_thread_num": usesNumber, "omp_get_num_threads": usesNumber,
	"omp_get_thread_num_": usesNumber, "omp_get_num_threads_": usesNumber,
	"omp_set_num_threads": setsThreads, "__kmpc_push_num_threads": setsThreads, "omp_set_num_threads_": setsThreads,
	"omp_set_lock": locks, "omp_set_nest_lock": locks, "omp_test_lock": locks, "omp_test_nest_lock": locks,
	"__kmpc_threadprivate_cached": keepsPrivate,
	"__kmpc_ordered":              inOrder, "__kmpc_doacross_wait": inOrder,
	"__kmpc_end_reduce": adds, "__kmpc_end_reduce_nowait": adds,
	"__kmpc_cancel": cancels, "__kmpc_cancellationpoint": cancels,
}

// code is what was found out about a program's blocks.
type code struct {
	program *trace.Program
	roles   []roles
	shapes  map[uint32]*shape // by site
	guards  map[[2]uint32]bool
}

// know takes in the blocks that the program has now.
func (c *code) know(p *trace.Program) {
	c.program = p
	if c.shapes == nil {
		c.shapes, c.guards = map[uint32]*shape{}, map[[2]uint32]bool{}
	}
	for n := len(c.roles); n < len(p.Blocks); n++ {
		c.roles = append(c.roles, c.rolesOf(&p.Blocks[n]))
	}
}

func (c *code) rolesOf(b *trace.Block) roles {
	r := callees[b.Callee] | isBare
	if strings.HasPrefix(b.Callee, "__kmpc_omp_task") || strings.HasPrefix(b.Callee, "__kmpc_taskloop") {
		r |= makesTasks
	}
	for _, s := range c.sitesOf(b) {
		switch s.Kind {
		case trace.ParallelEnd:
			r |= joins
		case trace.Barrier:
			r |= waits
		case trace.Load, trace.Store, trace.Modify:
			r &^= isBare
		}
	}
	return r
}

func (c *code) sitesOf(b *trace.Block) []trace.Site {
	sites := c.program.Sites
	from := min(uint64(b.FirstSite), uint64(len(sites)))
	return sites[from:min(from+uint64(b.Sites), uint64(len(sites)))]
}

// block gives the block of a site of an event, and whether there is one.
func (c *code) block(site uint32) (uint32, bool) {
	if uint64(site) >= uint64(len(c.program.Sites)) {
		return 0, false
	}
	b := c.program.Sites[site].Block
	return b, uint64(b) < uint64(len(c.program.Blocks))
}

// function is that of a block; of one that there is not, NoFunction.
func (c *code) function(block uint32) uint32 {
	if uint64(block) >= uint64(len(c.program.Blocks)) {
		return trace.NoFunction
	}
	return c.program.Blocks[block].Function
}

// callee is what the block of a site calls.
func (c *code) callee(site uint32) string {
	if b, ok := c.block(site); ok {
		return c.program.Blocks[b].Callee
	}
	return ""
}

// goesOn tells whether a block is what follows a call in the basic block that another one
// is in, too.
func (c *code) goesOn(b, next uint32) bool {
	x, y := &c.program.Blocks[b], &c.program.Blocks[next]
	return next == b+1 && y.Function == x.Function && y.Part == x.Part+1 && y.Label == x.Label
}

// guarded tells whether block next, which follows block asks after it asked whether this
// thread is the one, is what only that one does: from there one comes to the end of it
// without the other ways that go on behind asks.
func (c *code) guarded(asks, next uint32) bool {
	key := [2]uint32{asks, next}
	is, ok := c.guards[key]
	if !ok {
		is = c.isGuarded(asks, next)
		c.guards[key] = is
	}
	return is
}

func (c *code) isGuarded(asks, next uint32) bool {
	blocks := c.program.Blocks
	if uint64(asks) >= uint64(len(blocks)) || uint64(next) >= uint64(len(blocks)) {
		return false
	}
	seen := map[uint32]bool{asks: true}
	is := false
	for _, s := range blocks[asks].Successors {
		is = is || s == next
		seen[s] = s != next
	}
	if !is || len(blocks[asks].Successors) < 2 {
		return false
	}
	work := []uint32{next}
	for len(work) > 0 {
		b := work[len(work)-1]
		work = work[:len(work)-1]
		if uint64(b) < uint64(len(c.roles)) && c.roles[b]&oneIsDone != 0 {
			return true
		}
		for _, s := range blocks[b].Successors {
			if uint64(s) < uint64(len(blocks)) && !seen[s] {
				seen[s] = true
				work = append(work, s)
			}
		}
	}
	return false
}
