package ppt

import (
	"bytes"
	"strconv"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/lines"
)

const (
	// mostBlocks limits the memory for a file that is no trace and whose labels all differ.
	mostBlocks = 1 << 20
	// deepest is the number of nested calls that are followed. Beyond it, as in a trace
	// without ends of blocks, the outermost are forgotten.
	deepest = 1 << 16

	outside = 0 // the block of references outside of all blocks
)

// blocks are the blocks of a trace and their current executions.
type blocks struct {
	program   trace.Program
	functions map[string]uint32
	labels    map[string]uint32 // the first part of a block
	parts     []part            // of each block
	open      []uint32          // the parts that run, outermost first
	called    bool              // an execution inside the innermost one has ended since its last reference
}

// part is what is known of a block besides the program's tables.
type part struct {
	first uint32    // the block's first part
	next  uint32    // its next part, 0 for none yet
	sites [2]uint32 // 1 + the site of its loads and of its stores, 0 for none yet
}

func newBlocks() *blocks {
	t := &blocks{functions: map[string]uint32{}, labels: map[string]uint32{}}
	t.add(trace.Block{Function: trace.NoFunction, Flags: trace.Synthetic}, outside)
	t.open = append(t.open, outside)
	return t
}

// add appends a block and returns its number.
func (t *blocks) add(b trace.Block, first uint32) uint32 {
	t.program.Blocks = append(t.program.Blocks, b)
	t.parts = append(t.parts, part{first: first})
	return uint32(len(t.program.Blocks) - 1)
}

// function returns the number of a function, which may be new. Blocks named by a hash have none.
func (t *blocks) function(name []byte) uint32 {
	if name == nil {
		return trace.NoFunction
	}
	n, ok := t.functions[string(name)]
	if !ok {
		n = uint32(len(t.program.Functions))
		t.program.Functions = append(t.program.Functions, trace.Function{Name: string(name)})
		t.functions[string(name)] = n
	}
	return n
}

// begin starts an execution of the block of that label.
func (t *blocks) begin(label []byte) (block uint32, wrong *trace.SyntaxError) {
	block, ok := t.labels[string(label)]
	if !ok {
		if len(label) == 0 {
			return 0, lines.Wrong("BB START", nil, "a block")
		}
		if len(t.program.Blocks) >= mostBlocks {
			return 0, lines.Wrong("BB START", label, "one of at most "+strconv.Itoa(mostBlocks)+" blocks")
		}
		function, name := splitLabel(label)
		block = uint32(len(t.parts))
		t.labels[string(label)] = t.add(trace.Block{Function: t.function(function), Label: string(name)}, block)
	}
	if len(t.open) == deepest {
		t.open = t.open[:copy(t.open[1:], t.open[deepest/2:])+1]
	}
	t.open, t.called = append(t.open, block), false
	return block, nil
}

// end ends the innermost execution of that block, and all inside it, which were left by a jump.
func (t *blocks) end(label []byte) bool {
	first, ok := t.labels[string(label)]
	if !ok {
		return false
	}
	for i := len(t.open) - 1; i > 0; i-- {
		if t.parts[t.open[i]].first == first {
			t.open, t.called = t.open[:i], i > 1
			return true
		}
	}
	return false
}

// resume returns the part of the innermost block that follows a call.
func (t *blocks) resume() uint32 {
	running := &t.open[len(t.open)-1]
	t.called = false
	if now := *running; t.parts[now].next != 0 {
		*running = t.parts[now].next
	} else if len(t.program.Blocks) < mostBlocks {
		b := t.program.Blocks[now]
		b.Part++
		*running = t.add(b, t.parts[now].first)
		t.parts[now].next = *running
	}
	return *running
}

// site returns the site of loads or stores of the running block.
func (t *blocks) site(kind trace.Kind) uint32 {
	block := t.open[len(t.open)-1]
	known := &t.parts[block].sites[kind]
	if *known == 0 {
		t.program.Sites = append(t.program.Sites, trace.Site{Kind: kind, Block: block, Flags: trace.NoSize})
		*known = uint32(len(t.program.Sites))
	}
	return *known - 1
}

// splitLabel splits "(function, block)"; any other label is a block without a function.
func splitLabel(label []byte) (function, block []byte) {
	inner, open := bytes.CutPrefix(label, []byte("("))
	inner, closed := bytes.CutSuffix(inner, []byte(")"))
	comma := bytes.LastIndexByte(inner, ',') // functions of C++ may have some of their own
	if !open || !closed || comma < 0 {
		return nil, label
	}
	return lines.Trim(inner[:comma]), lines.Trim(inner[comma+1:])
}
