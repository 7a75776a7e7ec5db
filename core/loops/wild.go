package loops

import (
	"encoding/binary"
	"math/bits"

	"github.com/stackglass/stackglass/core/trace"
)

// stream contains the addresses of a wild reference in the order of the trace. Each address is
// encoded as a zigzag varint of its difference from the previous address.
type stream struct {
	packed []byte
	last   trace.Addr
	count  uint64
	least  trace.Addr
	most   trace.Addr
}

func (s *stream) add(addr trace.Addr) {
	s.extendRange(addr)
	s.packed = binary.AppendVarint(s.packed, int64(addr-s.last))
	s.last = addr
	s.count++
}

// extendRange extends the address range [s.least, s.most] so that it includes addr.
func (s *stream) extendRange(addr trace.Addr) {
	if s.count == 0 {
		s.least, s.most = addr, addr
	}
	if addr < s.least {
		s.least = addr
	}
	if addr > s.most {
		s.most = addr
	}
}

// cursor is a position in a stream.
type cursor struct {
	at   int // position in bytes
	last trace.Addr
}

// next returns the next address. The result ok is false after the last address.
func (c *cursor) next(s *stream) (addr trace.Addr, ok bool) {
	delta, n := varint(s.packed[c.at:])
	if n <= 0 {
		return 0, false
	}
	c.at += n
	c.last += delta
	return c.last, true
}

// varint works like [binary.Varint], but without a branch for each byte. For irregular differences,
// such branches would be mispredicted.
func varint(b []byte) (delta uint64, n int) {
	if len(b) >= 8 {
		v := binary.LittleEndian.Uint64(b)
		if last := ^v & 0x8080808080808080; last != 0 { // the top bit of each byte that is the last byte of a number
			n = bits.TrailingZeros64(last)>>3 + 1
			v &= (last ^ (last - 1)) & 0x7f7f7f7f7f7f7f7f
			v = v&0x007f007f007f007f | v&0x7f007f007f007f00>>1
			v = v&0x00003fff00003fff | v&0x3fff00003fff0000>>2
			v = v&0x000000000fffffff | v&0x0fffffff00000000>>4
			return v>>1 ^ -(v & 1), n
		}
	}
	signed, n := binary.Varint(b)
	return uint64(signed), n
}

const (
	rememberedSteps = 8  // number of address differences that a habit remembers
	trial           = 32 // number of rows before a reference can become wild
)

// habit tracks the addresses of a reference in one context, until the reference becomes wild in
// this context.
type habit struct {
	inContext
	last  trace.Addr
	seen  uint64 // number of rows seen so far
	odd   uint64 // number of unpredicted rows with a new address difference
	steps [rememberedSteps]uint64
	next  uint8 // index of the oldest element of the field "steps"
	wild  bool
}

type inContext struct{ ref, context uint32 }

// referenceState contains the data about a reference that does not depend on the context.
type referenceState struct {
	// considering only unpredicted rows: the reference of the row that most recently came directly
	// after a row of this reference
	follower uint32
	leaf     [2]uint32 // 1 + the shape of the reference's tame leaves, and 1 + the shape of its wild leaves; 0 if there are no such leaves yet
}

func (f *Folder) habit(ref, context uint32) *habit {
	if h := &f.habits[ref]; h.context == context {
		return h
	}
	return f.otherHabit(ref, context)
}

// otherHabit returns the habit of a reference in a context that is not the context of its first
// row.
func (f *Folder) otherHabit(ref, context uint32) *habit {
	key := inContext{ref, context}
	near := &f.nearOthers[(ref*0x9e3779b1^context*0x85ebca6b)>>(32-nearBits)]
	if id := int(*near); id < len(f.others) && f.others[id].inContext == key {
		return &f.others[id]
	}
	id, known := f.contexts[key]
	if !known {
		if len(f.others) == maxHabits {
			return &f.habits[ref]
		}
		id = uint32(len(f.others))
		f.others = append(f.others, habit{inContext: key})
		f.contexts[key] = id
	}
	*near = id
	return &f.others[id]
}

// addUnpredicted counts an unpredicted row, and records its address difference if it is new.
func (h *habit) addUnpredicted(addr trace.Addr) {
	step := addr - h.last
	h.last = addr
	if h.seen++; h.seen == 1 {
		return
	}
	known := uint64(0) // (x - 1) &^ x has its highest bit set only if x is 0
	for _, s := range h.steps {
		x := s ^ step
		known |= (x - 1) &^ x
	}
	if int64(known) < 0 {
		return
	}
	h.steps[h.next%rememberedSteps] = step
	h.next++
	h.odd++
}

// isIrregular reports whether more than half of the rows were unpredicted and had new address
// differences.
func (h *habit) isIrregular() bool { return h.seen >= trial && 2*h.odd > h.seen }

// join appends the addresses of another stream.
func (s *stream) join(other *stream) {
	if other.count == 0 {
		return
	}
	first, n := binary.Varint(other.packed) // the first difference is relative to 0
	packed := binary.AppendVarint(s.packed[:len(s.packed):len(s.packed)], int64(uint64(first)-s.last))
	s.packed = append(packed, other.packed[n:]...)
	s.last = other.last
	if s.count == 0 {
		s.least = other.least
	}
	s.least, s.most = min(s.least, other.least), max(s.most, other.most)
	s.count += other.count
}

// callTracker tracks calls and returns, and determines the context of each row: a number that
// identifies the signature of the call stack. A reference is tracked separately in each context,
// because the addresses of a function with many callers are regular only within each caller.
//
// The signature is a hash of the call sites, as in Budanur, Mueller and Gamblin, but ignores
// recursion: if a function is already on the stack, a further call of this function has the same
// context as its first call, regardless of the calls in between. Otherwise, each level of a
// recursion, and each path to this level, would have a separate context. If an exception or longjmp
// leaves a function, the function stays on the stack. This is harmless, because contexts affect
// only the size of the tree.
type callTracker struct {
	threads  map[uint32]*stack
	thread   uint32 // thread of the last row
	now      *stack // call stack of this thread; nil before the first call in the trace
	numbers  map[uint64]uint32
	contexts []uint32 // context of each row of a batch
}

// stack is the call stack of a thread.
type stack struct {
	frames    [maxFrames]callFrame
	depth     int // number of frames
	deeper    int // number of functions at the top of the stack that have no frame
	signature uint64
	context   uint32
	// The field "block" is the most recently entered block, and the field "before" is the previous
	// block. The entry of a function's first block precedes the call event. Therefore, when the
	// call event is processed, the field "before" is the block of the call site.
	block, before uint32
}

// callFrame is a function on the call stack, together with the signature and the context before its
// call.
type callFrame struct {
	function  uint32
	signature uint64
	context   uint32
}

const (
	maxFrames = 64 // maximum number of frames; deeper functions have the context of the last frame
	// maximum number of contexts; rows of all further contexts have context 0, like rows outside
	// all calls
	maxContexts = 1 << 14
	maxHabits   = 1 << 16 // maximum number of elements of Folder.others
)

// contextsOf returns the context of each row. There must be no calls before the row with the index
// "first".
func (k *callTracker) contextsOf(c *rows, first int) []uint32 {
	if k.now == nil {
		k.threads, k.numbers = map[uint32]*stack{}, map[uint64]uint32{}
		k.turnTo(c.Thread[first])
	}
	if n := len(c.Kind); n > len(k.contexts) {
		k.contexts = make([]uint32, n)
	}
	contexts := k.contexts[:len(c.Kind)]
	clear(contexts[:first])
	threads, sites := c.Thread[:len(contexts)], c.Site[:len(contexts)]
	s, context := k.now, k.now.context
	for i, kind := range c.Kind {
		if i < first {
			continue
		}
		if threads[i] != k.thread {
			k.turnTo(threads[i])
			s, context = k.now, k.now.context
		}
		if kind.IsReference() {
			contexts[i] = context
			continue
		}
		contexts[i] = 0
		switch kind {
		case trace.BlockEntry, trace.BareBlock:
			s.before, s.block = s.block, sites[i]
		case trace.Call:
			s.enter(sites[i], k)
			context = s.context
		case trace.Return:
			s.leave()
			context = s.context
		}
	}
	return contexts
}

func (k *callTracker) turnTo(thread uint32) {
	k.thread = thread
	if k.now = k.threads[thread]; k.now == nil {
		k.now = new(stack)
		k.threads[thread] = k.now
	}
}

func (k *callTracker) number(signature uint64) uint32 {
	n, known := k.numbers[signature]
	if !known && len(k.numbers) < maxContexts {
		n = uint32(len(k.numbers)) + 1
		k.numbers[signature] = n
	}
	return n
}

// enter pushes a function onto the call stack.
func (s *stack) enter(function uint32, k *callTracker) {
	if s.depth == maxFrames {
		s.deeper++
		return
	}
	now := callFrame{function, s.signature, s.context}
	s.frames[s.depth] = now
	s.depth++
	after := now // the signature and context inside the function of frame i
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
	case s.depth > 0: // otherwise, the function was called before the trace began
		s.depth--
		f := &s.frames[s.depth]
		s.signature, s.context = f.signature, f.context
	}
}
