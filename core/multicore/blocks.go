package multicore

import (
	"strings"

	"github.com/stackglass/stackglass/core/trace"
)

// roles contains the properties of a block that affect the division of work.
type roles uint16

const (
	joins roles = 1 << iota // the block follows the end of a region
	waits                   // the block follows a barrier
	// the block ends with a call that determines whether this thread executes the following code
	asksForOne
	oneIsDone   // the block ends the code that one thread executes for all threads
	isBare      // the block has no loads, stores or modifications
	usesNumber  // the block calls omp_get_thread_num or omp_get_num_threads
	setsThreads // the block sets the number of threads
	makesTasks
	locks
	keepsPrivate // the block requests the thread's copy of a threadprivate variable
	inOrder      // the block makes an iteration wait for earlier iterations
	cancels
	adds // the block adds a thread's partial result to a reduction variable, in the code for a team of one thread
)

// callees maps the names of functions of LLVM's runtime and of OpenMP to the roles of the blocks
// that call them.
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

// code describes the basic blocks of a program.
type code struct {
	program *trace.Program
	roles   []roles
	shapes  map[uint32]*shape // shapes of worksharing loops, by site
	guards  map[[2]uint32]bool
}

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

// block returns the number of the block that contains a site, or false if no block contains the
// site.
func (c *code) block(site uint32) (uint32, bool) {
	if uint64(site) >= uint64(len(c.program.Sites)) {
		return 0, false
	}
	b := c.program.Sites[site].Block
	return b, uint64(b) < uint64(len(c.program.Blocks))
}

func (c *code) function(block uint32) uint32 {
	if uint64(block) >= uint64(len(c.program.Blocks)) {
		return trace.NoFunction
	}
	return c.program.Blocks[block].Function
}

// callee returns the name of the function that is called at the end of a site's block, or "".
func (c *code) callee(site uint32) string {
	if b, ok := c.block(site); ok {
		return c.program.Blocks[b].Callee
	}
	return ""
}

// continues reports whether block "next" continues the basic block of b after a call.
func (c *code) continues(b, next uint32) bool {
	x, y := &c.program.Blocks[b], &c.program.Blocks[next]
	return next == b+1 && y.Function == x.Function && y.Part == x.Part+1 && y.Label == x.Label
}

// guarded reports whether only one thread executes block "next". This block is a successor of block
// "check", which tests whether the current thread executes the guarded code. The result is true if
// a path leads from "next" to the end of the guarded code and avoids the other successors of
// "check".
func (c *code) guarded(check, next uint32) bool {
	key := [2]uint32{check, next}
	is, ok := c.guards[key]
	if !ok {
		is = c.isGuarded(check, next)
		c.guards[key] = is
	}
	return is
}

func (c *code) isGuarded(check, next uint32) bool {
	blocks := c.program.Blocks
	if uint64(check) >= uint64(len(blocks)) || uint64(next) >= uint64(len(blocks)) {
		return false
	}
	seen := map[uint32]bool{check: true}
	is := false
	for _, s := range blocks[check].Successors {
		is = is || s == next
		seen[s] = s != next
	}
	if !is || len(blocks[check].Successors) < 2 {
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
