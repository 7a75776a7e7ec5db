package branches

import (
	"slices"

	"github.com/stackglass/stackglass/core/analysis/index"
	"github.com/stackglass/stackglass/core/trace"
)

// code contains the program from the trace's tables in a form for fast look-ups. Blocks are
// numbered from 1, and 0 means no block.
type code struct {
	program *trace.Program
	nodes   []node
	edges   uint32      // number of edges of all nodes
	jumps   []jump      // the edges of nodes with more than two edges
	targets []uint32    // the edges of all jumps, by target; see type jump
	more    index.Table // the edges of jumps whose targets are far apart, by source and target; only the first of several equal edges
	names   map[string]uint32
	// nameOf contains, for each function, the number of its name. calls contains, for each node,
	// the number of the called function's name, or 0 if there is no such name.
	nameOf, calls []uint32
	// bySite is true if an entry of a block is detected by the first load, store or modify of the
	// block. blockOfFirst contains, for each site: the block in which this site makes the first
	// reference; 0: no block. bareBlocks contains, for each block: the number of the block if the
	// block makes no references, otherwise 0. zeros contains only zeros, and is as long as the
	// longer one of blockOfFirst and bareBlocks.
	bySite                          bool
	blockOfFirst, bareBlocks, zeros []uint32
}

type node struct {
	first, second uint32 // successors; 0: none
	edge          uint32 // index of the node's first edge
	function      uint32
	instructions  uint32
	jump          uint32 // 1 + the index of the node's jump; 0: the node has at most two edges
	plain         bool   // if a thread enters the node along an edge, only the edge and the node's instructions must be counted
	enters        bool
	returns       bool
	lands         bool // the node is a landing pad for exceptions
	jumps         bool // longjmp may jump to this node
	passes        bool // the return after the node represents a tail call
}

// jump describes the edges of a node with more than two edges, such as a switch. The edge to node
// low + i has the number targets[at+i] - 1; if targets[at+i] is 0, the edge does not exist. If the
// span is 0, the edges are in the map code.more instead.
type jump struct{ low, span, at uint32 }

// The edges of a jump are in the map code.more if the jump's targets span at least mostSpan nodes
// per edge.
const mostSpan = 16

// addProgram adds the new functions, blocks and sites of the program p.
func (c *code) addProgram(p *trace.Program) {
	if p == nil {
		return
	}
	// A resumed run already knows the whole program before it has read all tables again.
	if c.program == nil || len(p.Blocks) >= len(c.program.Blocks) {
		c.program = p
	}
	for f := len(c.nameOf); f < len(p.Functions); f++ {
		c.nameOf = append(c.nameOf, c.nameNumber(p.Functions[f].Name))
	}
	for n := len(c.nodes) - 1; n < len(p.Blocks); n++ {
		c.add(uint32(n), &p.Blocks[n])
	}
	for s := len(c.blockOfFirst); s < len(p.Sites) && c.bySite; s++ {
		first := uint32(0)
		if c.isAccessedOnce(p, uint32(s)) {
			bare := &c.bareBlocks[p.Sites[s].Block]
			first, *bare = *bare, 0
		}
		c.blockOfFirst = append(c.blockOfFirst, first)
	}
	c.zeros = extend(c.zeros, max(len(c.blockOfFirst), len(c.bareBlocks)))
}

// isAccessedOnce reports whether the site makes exactly one reference in each execution of its block.
func (c *code) isAccessedOnce(p *trace.Program, site uint32) bool {
	s := &p.Sites[site]
	if s.Kind > trace.Modify || uint64(s.Block) >= uint64(len(p.Blocks)) {
		return false
	}
	b := &p.Blocks[s.Block]
	return b.Flags&trace.Synthetic == 0 && site-b.FirstSite < b.Sites
}

// nameNumber returns the number of a function name, or 0 if no function can have this name.
func (c *code) nameNumber(name string) uint32 {
	if name == "" || name == "*" {
		return 0
	}
	n, known := c.names[name]
	if !known {
		n = uint32(len(c.names)) + 1
		c.names[name] = n
	}
	return n
}

func (c *code) add(number uint32, b *trace.Block) {
	n := node{
		edge: c.edges, function: b.Function, enters: b.Flags&trace.EntryBlock != 0, returns: b.Flags&trace.ReturnBlock != 0,
		lands: b.Flags&trace.LandingPad != 0, instructions: instructionsOf(b),
	}
	n.plain = !n.enters && !n.returns
	n.jumps = b.Part > 0 && number > 0 && c.program.Blocks[number-1].Function == b.Function && slices.Contains(jumpSetters, c.program.Blocks[number-1].Callee)
	if len(b.Successors) > 0 {
		n.first = b.Successors[0] + 1
	}
	if len(b.Successors) > 1 {
		n.second = b.Successors[1] + 1
	}
	if len(b.Successors) > 2 {
		c.jumps = append(c.jumps, c.newJump(number+1, n.edge, b.Successors))
		n.jump = uint32(len(c.jumps))
	}
	c.edges += uint32(len(b.Successors))
	call := c.nameNumber(b.Callee)
	n.passes = call != 0 && !n.returns && len(b.Successors) == 1 && uint64(b.Successors[0]) < uint64(len(c.program.Blocks)) && c.program.Blocks[b.Successors[0]].Part == 0
	c.calls = append(c.calls, call)
	c.nodes = append(c.nodes, n)
	c.bareBlocks = append(c.bareBlocks, number+1)
}

// newJump returns the jump of a node with more than two edges. The numbers of the edges are
// consecutive, and begin with the parameter first.
func (c *code) newJump(from, first uint32, successors []uint32) jump {
	low, high := slices.Min(successors), slices.Max(successors)
	if uint64(high-low) >= mostSpan*uint64(len(successors)) {
		for i, to := range successors {
			if key := edgeKey(from, to+1); !c.known(key) {
				c.more.Add(key, first+uint32(i))
			}
		}
		return jump{}
	}
	j := jump{low: low + 1, span: high - low + 1, at: uint32(len(c.targets))}
	c.targets = append(c.targets, make([]uint32, j.span)...)
	for i, to := range successors {
		if edge := &c.targets[j.at+to-low]; *edge == 0 {
			*edge = first + uint32(i) + 1
		}
	}
	return j
}

func (c *code) known(edge uint64) bool {
	_, known := c.more.Find(edge)
	return known
}

// jumpSetters lists the functions that can return more than once, because a longjmp makes the same
// call return again.
var jumpSetters = []string{"setjmp", "_setjmp", "sigsetjmp", "__sigsetjmp", "getcontext", "swapcontext", "vfork"}

// instructionsOf returns the number of LLVM IR instructions in one execution of a block.
func instructionsOf(b *trace.Block) (n uint32) {
	for i := range b.Ops {
		n += b.Ops[i].Count
	}
	return n
}

func edgeKey(from, to uint32) uint64 { return uint64(from)<<32 | uint64(to) }

// findEdge returns the edge from one node to another node.
func (c *code) findEdge(from, to uint32) (edge uint32, found bool) {
	n := &c.nodes[from]
	switch {
	case to == n.first:
		return n.edge, true
	case to == n.second:
		return n.edge + 1, true
	case n.jump == 0:
		return 0, false
	}
	if j := &c.jumps[n.jump-1]; j.span == 0 {
		return c.more.Find(edgeKey(from, to))
	} else if i := to - j.low; i < j.span {
		edge = c.targets[j.at+i]
		return edge - 1, edge != 0
	}
	return 0, false
}

func (c *code) function(n uint32) uint32 { return c.nodes[n].function }
