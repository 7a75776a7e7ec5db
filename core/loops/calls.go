package loops

import "github.com/stackglass/stackglass/core/trace"

// calls tracks calls and returns, and determines the context of each reference: the number of its call
// stack's signature. The folder follows a reference in each context apart, because the addresses of a
// function with many callers are only regular for each caller.
//
// The signature is a hash of the call sites, as in Budanur, Mueller and Gamblin. Recursion is folded: a
// function that is on the stack already gets the context of its first entry, whatever was called in
// between. Otherwise each level of a recursion, and each path to it, would be a context of its own. A
// function that an exception or longjmp left stays on the stack: contexts only affect the size.
type calls struct {
	threads  map[uint32]*stack
	thread   uint32 // of the last row
	now      *stack // its stack; nil before the first call of the trace
	numbers  map[uint64]uint32
	contexts []uint32 // of a batch's rows
}

// stack is the call stack of a thread.
type stack struct {
	frames    [mostFrames]called
	depth     int // of frames
	deeper    int // functions that are not in frames
	signature uint64
	context   uint32
	// The last two blocks. The first block of a function comes before the call, so that the
	// block of the call site is the one before.
	block, before uint32
}

// called is a function on the stack, with the signature and context before its call.
type called struct {
	function  uint32
	signature uint64
	context   uint32
}

const (
	mostFrames   = 64      // deeper functions have the context of these
	mostContexts = 1 << 14 // rows in further contexts have none, as outside of all calls
	mostHabits   = 1 << 16 // further habits are one for each reference
)

// of returns the contexts of rows. Rows before first come before all calls.
func (k *calls) of(c *rows, first int) []uint32 {
	if k.now == nil {
		k.threads, k.numbers = map[uint32]*stack{}, map[uint64]uint32{}
		k.turnTo(c.thread[first])
	}
	if n := len(c.kind); n > len(k.contexts) {
		k.contexts = make([]uint32, n)
	}
	contexts := k.contexts[:len(c.kind)]
	clear(contexts[:first])
	for i := first; i < len(contexts); i++ {
		if c.thread[i] != k.thread {
			k.turnTo(c.thread[i])
		}
		contexts[i] = 0
		switch s := k.now; c.kind[i] {
		case trace.BlockEntry, trace.BareBlock:
			s.before, s.block = s.block, c.site[i]
		case trace.Call:
			s.enter(c.site[i], k)
		case trace.Return:
			s.leave()
		default:
			if c.kind[i].IsReference() {
				contexts[i] = s.context
			}
		}
	}
	return contexts
}

func (k *calls) turnTo(thread uint32) {
	k.thread = thread
	if k.now = k.threads[thread]; k.now == nil {
		k.now = new(stack)
		k.threads[thread] = k.now
	}
}

// number returns the context of a signature.
func (k *calls) number(signature uint64) uint32 {
	n, known := k.numbers[signature]
	if !known && len(k.numbers) < mostContexts {
		n = uint32(len(k.numbers)) + 1
		k.numbers[signature] = n
	}
	return n
}

// enter pushes a function.
func (s *stack) enter(function uint32, k *calls) {
	if s.depth == mostFrames {
		s.deeper++
		return
	}
	now := called{function, s.signature, s.context}
	s.frames[s.depth] = now
	s.depth++
	after := now // the state behind the entry of the frame before
	for i := s.depth - 2; i >= 0; i-- {
		if s.frames[i].function == function {
			s.signature, s.context = after.signature, after.context
			return
		}
		after = s.frames[i]
	}
	s.signature = mix(s.signature ^ mix(uint64(s.before)<<32|uint64(function)))
	s.context = k.number(s.signature)
}

func (s *stack) leave() {
	switch {
	case s.deeper > 0:
		s.deeper--
	case s.depth > 0: // it is 0 in functions that were entered before the trace began
		s.depth--
		f := &s.frames[s.depth]
		s.signature, s.context = f.signature, f.context
	}
}
