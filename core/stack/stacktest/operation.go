package stacktest

import (
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace"
)

// Do does operations in order; all arguments are of equal length. Of an access it
// writes in out and lost what [stack.Coherent.Access] does, and of another operation
// the depth of its line before that, or Cold where the core does not have it.
func Do(m *stack.Coherent, ops []stack.Op, lines []trace.Line, out, lost []uint32) {
	lines, out, lost = lines[:len(ops)], out[:len(ops)], lost[:len(ops)]
	for len(ops) > 0 {
		n := 0
		for n < len(ops) && ops[n] == stack.AccessOp {
			n++
		}
		switch {
		case n > 0:
			m.Access(lines[:n], out, lost)
		case ops[0] == stack.LoseOp:
			n, out[0] = 1, m.Lose(lines[0])
		default:
			n, out[0] = 1, m.Depth(lines[0])
		}
		ops, lines, out, lost = ops[n:], lines[n:], out[n:], lost[n:]
	}
}
