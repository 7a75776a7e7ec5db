package multicore

import (
	"slices"
	"strings"

	"github.com/stackglass/stackglass/core/trace"
)

// shape describes the code of a worksharing loop, and which blocks begin iterations of the loop.
//
// The iterations are in loops of the function that contains the worksharing call, one level deeper
// than the call. If the runtime hands out chunks, or the chunks have a fixed length, the loop at
// this depth iterates over chunks, and its inner loops iterate over the iterations of a chunk.
// There may be several inner loops, because the compiler generates a vectorised loop and a loop for
// the remaining iterations. If an iteration of the vectorised loop on average accesses w times as
// many bytes as an iteration of the second loop, one iteration of the vectorised loop represents w
// iterations of the program.
//
// If the loop exits after its body (at a latch, for example in optimised code), an iteration begins
// with the loop's header. If the loop exits earlier, at a test that is not a latch, an iteration
// begins after the test and includes the next test. If iterations begin after the test, each core
// executes one more test than iterations, as a real thread does.
type shape struct {
	function   uint32
	first      uint32 // number of the function's first block
	iterations []step // by block of the function: the step for detecting iterations
	chunks     []step // by block of the function: the step for detecting chunks; nil if there is no loop over chunks
	depth      []uint8
	plain      []bool // by block: whether entering the block within an iteration has no effect
	// widths maps a loop header to the number of the program's iterations in one iteration of the
	// compiled loop. The number is larger than 1 if the references of this loop are wider than the
	// references of the loop for the remaining iterations. If the map is nil, the number is 1 for
	// every loop.
	widths map[uint32]uint64
}

const (
	outside = iota // outside all loops that belong to the worksharing call
	inChunk        // in the loop over chunks, but outside iterations
	inIteration
)

// step describes how the entry of a block affects the detection of iterations or chunks.
type step struct {
	header uint32   // 1 + the block's number if it is a loop header, otherwise 0
	test   bool     // the block tests whether there is a further iteration, and may leave the loop
	whole  bool     // the block is a header, and an iteration begins with it
	bodies []uint32 // for each loop around the block: 1 + its header
}

// isPlain reports whether the block neither begins nor ends a loop.
func (s *step) isPlain() bool { return s.header == 0 && !s.test }

// shapeOf returns the shape of the worksharing loop that begins at a site, or nil if the code of
// the loop is unknown.
func (c *code) shapeOf(site uint32, sched schedule) *shape {
	if s, ok := c.shapes[site]; ok {
		return s
	}
	var s *shape
	if b, ok := c.block(site); ok {
		s = c.makeShape(b, sched)
	}
	if s != nil { // if s is nil, the code may become known later
		c.shapes[site] = s
	}
	return s
}

func (c *code) makeShape(call uint32, sched schedule) *shape {
	b := &c.program.Blocks[call]
	if uint64(b.Function) >= uint64(len(c.program.Functions)) {
		return nil
	}
	f := &c.program.Functions[b.Function]
	if uint64(f.First)+uint64(f.Blocks) > uint64(len(c.program.Blocks)) || call < f.First || call-f.First >= f.Blocks {
		return nil
	}
	s := &shape{function: b.Function, first: f.First, depth: make([]uint8, f.Blocks)}
	blocks := c.program.Blocks[f.First : f.First+f.Blocks]
	depth := b.Depth + 1
	if strings.Contains(b.Callee, "dispatch_init") || sched.kind == staticChunked {
		s.chunks = loopSteps(blocks, f.First, depth)
		depth++
	}
	s.iterations = loopSteps(blocks, f.First, depth)
	s.widths = c.loopWidths(blocks, s, call-f.First, depth)
	s.plain = make([]bool, f.Blocks)
	for i := range blocks {
		s.plain[i] = blocks[i].Depth >= depth && s.iterations[i].isPlain() && (s.chunks == nil || s.chunks[i].isPlain()) &&
			c.roles[f.First+uint32(i)]&^isBare == 0 && blocks[i].Flags&trace.EntryBlock == 0
		switch d := blocks[i].Depth; {
		case d >= depth:
			s.depth[i] = inIteration
		case d > b.Depth:
			s.depth[i] = inChunk
		}
	}
	return s
}

// vectorBytes is the minimum size of a reference that may access several elements.
const vectorBytes = 16

// loopWidths compares the references in the loops of a worksharing call, ignoring inner loops. It
// returns a map from loop headers to the widths of the loops.
func (c *code) loopWidths(blocks []trace.Block, s *shape, call, depth uint32) map[uint32]uint64 {
	type body struct{ bytes, widest uint64 }
	bodies := map[uint32]*body{}
	mine := c.reachableBlocks(blocks, s.first, call)
	for i := range blocks {
		if !mine[i] || blocks[i].Depth != depth {
			continue
		}
		for _, header := range s.iterations[i].bodies {
			b := bodies[header]
			if b == nil {
				b = &body{}
				bodies[header] = b
			}
			for _, site := range c.sitesOf(&blocks[i]) {
				if trace.DataKinds.Has(site.Kind) {
					b.bytes += uint64(site.Bytes)
					b.widest = max(b.widest, uint64(site.Bytes))
				}
			}
		}
	}
	var widths map[uint32]uint64
	for header, b := range bodies {
		for _, other := range bodies {
			if b.widest < vectorBytes || other.bytes == 0 || b.widest < 2*other.widest {
				continue
			}
			if widths == nil {
				widths = map[uint32]uint64{}
			}
			widths[header-1] = max(widths[header-1], (b.bytes+other.bytes/2)/other.bytes)
		}
	}
	return widths
}

// reachableBlocks reports, for each block, whether it can be reached from a worksharing call before
// the loop of the call ends and before the next worksharing loop begins.
func (c *code) reachableBlocks(blocks []trace.Block, first, call uint32) []bool {
	seen := make([]bool, len(blocks))
	seen[call] = true
	for work := []uint32{call}; len(work) > 0; {
		b := work[len(work)-1]
		work = work[:len(work)-1]
		for _, to := range blocks[b].Successors {
			if to -= first; uint64(to) < uint64(len(blocks)) && !seen[to] {
				seen[to] = true
				if !c.endsLoop(&blocks[to], blocks[call].Depth) {
					work = append(work, to)
				}
			}
		}
	}
	return seen
}

func (c *code) endsLoop(b *trace.Block, depth uint32) bool {
	for _, site := range c.sitesOf(b) {
		if site.Kind == trace.LoopBegin || site.Kind == trace.LoopEnd && b.Depth <= depth {
			return true
		}
	}
	return false
}

// loopSteps finds the loops of a function at a given depth, and returns a step for each block of
// the function. The parameter "first" is the number of the function's first block.
func loopSteps(blocks []trace.Block, first, depth uint32) []step {
	steps := make([]step, len(blocks))
	before := predecessors(blocks, first)
	for h := range blocks {
		if blocks[h].Flags&trace.HeaderBlock == 0 || blocks[h].Depth != depth {
			continue
		}
		body := bodyOf(blocks, first, uint32(h), before)
		steps[h].header = uint32(h) + 1
		tested := false
		for b := range blocks {
			if !body[b] {
				continue
			}
			steps[b].bodies = append(steps[b].bodies, uint32(h)+1)
			if canLeave(blocks, first, uint32(b), body) {
				if blocks[b].Flags&trace.LatchBlock != 0 && leadsTo(blocks, first, uint32(b), uint32(h)) {
					steps[h].whole = true
				} else {
					steps[b].test, tested = true, true
				}
			}
		}
		if !tested {
			steps[h].whole = true
		}
	}
	return steps
}

func predecessors(blocks []trace.Block, first uint32) [][]uint32 {
	before := make([][]uint32, len(blocks))
	for b := range blocks {
		for _, s := range blocks[b].Successors {
			if s >= first && s-first < uint32(len(blocks)) {
				before[s-first] = append(before[s-first], uint32(b))
			}
		}
	}
	return before
}

// bodyOf returns the natural loop of a header: the blocks from which a latch of the header is
// reachable without passing the header.
func bodyOf(blocks []trace.Block, first, h uint32, before [][]uint32) []bool {
	body := make([]bool, len(blocks))
	body[h] = true
	var work []uint32
	for _, b := range before[h] {
		inside := blocks[b].Depth > blocks[h].Depth || blocks[b].Depth == blocks[h].Depth && blocks[b].Loop == first+h+1
		if blocks[b].Flags&trace.LatchBlock != 0 && inside && !body[b] {
			body[b] = true
			work = append(work, b)
		}
	}
	for len(work) > 0 {
		b := work[len(work)-1]
		work = work[:len(work)-1]
		for _, p := range before[b] {
			if !body[p] && blocks[p].Depth >= blocks[h].Depth {
				body[p] = true
				work = append(work, p)
			}
		}
	}
	return body
}

// canLeave reports whether a branch of block b, other than an exception, leaves the loop.
func canLeave(blocks []trace.Block, first, b uint32, body []bool) bool {
	for _, s := range blocks[b].Successors {
		if s >= first && s-first < uint32(len(blocks)) && !body[s-first] && blocks[s-first].Flags&trace.LandingPad == 0 {
			return true
		}
	}
	return false
}

func leadsTo(blocks []trace.Block, first, b, to uint32) bool {
	return slices.Contains(blocks[b].Successors, first+to)
}

// walk detects the iterations of loops from the sequence of entered blocks.
type walk struct {
	steps  []step
	loop   uint32 // 1 + the header of the loop whose test is pending, or 0
	tested bool   // whether the pending test was executed
	head   uint32 // 1 + the header of the loop in which the last iteration began
}

// enter processes the entry of block b of the function, and reports whether an iteration begins
// with this block.
func (w *walk) enter(b uint32) bool {
	s := &w.steps[b]
	if w.tested {
		w.tested = false
		loop := w.loop
		if w.loop = 0; s.header != loop && slices.Contains(s.bodies, loop) {
			w.head = loop
			return true
		}
	}
	if s.header != 0 {
		if w.loop = s.header; s.whole {
			w.loop, w.head = 0, s.header
			return true
		}
	}
	w.tested = w.loop != 0 && s.test
	return false
}

func (w *walk) reset() { w.loop, w.tested = 0, false }
