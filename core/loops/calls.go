package loops

import "github.com/stackglass/stackglass/core/trace"

// calls follows the functions that are entered and left, and gives each row of a reference
// its context: the number of its call stack's signature. What a reference does is followed
// apart in each, for a function that is called from many places goes on from where it was
// by none of a few distances, though it does for each place.
//
// The signature is a hash of the places of the calls, as it is with Budanur, Mueller and
// Gamblin. Recursion is folded: a function that is on the stack already has the context of
// its first entry again, whatever was called between, for each level of a recursion, and
// each way to come to it, would go its own way otherwise. A function that an exception or
// longjmp left stays on the stack: contexts are only ever a question of bytes.
type calls struct {
	threads  map[uint32]*stack
	thread   uint32 // of the last row
	now      *stack // its stack; nil before the first call of the trace
	numbers  map[uint64]uint32
	contexts []uint32 // of a batch's rows
}

// stack is the functions that a thread is in.
type stack struct {
	frames    [mostFrames]called
	depth     int // of frames
	deeper    int // functions that are not in frames
	signature uint64
	context   uint32
	// The blocks that it entered last: a function's first one comes before the call, so
	// that the block of the place is the one before that.
	block, before uint32
}

// called is a function that was entered, and what there was before.
type called struct {
	function  uint32
	signature uint64
	context   uint32
}

const (
	mostFrames   = 64      // that are looked at; deeper ones have the context of these
	mostContexts = 1 << 14 // that are told apart; rows in more have none, as outside of all calls
	mostHabits   = 1 << 16 // that are followed; more are taken as one for each reference
)

// of gives the contexts of rows, of which those before first come before all calls.
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

// number gives the context of a signature.
func (k *calls) number(signature uint64) uint32 {
	n, known := k.numbers[signature]
	if !known && len(k.numbers) < mostContexts {
		n = uint32(len(k.numbers)) + 1
		k.numbers[signature] = n
	}
	return n
}

// enter takes note of a function.
func (s *stack) enter(function uint32, k *calls) {
	if s.depth == mostFrames {
		s.deeper++
		return
	}
	now := called{function, s.signature, s.context}
	s.frames[s.depth] = now
	s.depth++
	after := now // what there was behind the entry before
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
