package multicore

import "strconv"

// schedule is a schedule that a program requests. LLVM's runtime numbers schedules in enum
// sched_type (openmp/runtime/src/kmp.h).
type schedule struct {
	kind    scheduleAsked
	ordered bool
	// The fields monotonic and nonmonotonic are the modifiers of the schedule. In OpenMP 5, a
	// dynamic schedule without a modifier is nonmonotonic.
	monotonic, nonmonotonic bool
	chunk                   uint64 // chunk size; 0 if no chunk size is given
}

type scheduleAsked uint8

const (
	unknownSchedule scheduleAsked = iota
	staticChunked
	staticWhole
	dynamicChunked
	guidedChunked
	byRuntime
	byItself
	distribute // the schedule distributes iterations among teams
)

// These constants are the lower bounds of the ranges of schedule numbers that compilers pass to
// the runtime. For ordered loops, and for loops whose chunks must not be merged, compilers add
// the difference between two of these bounds to the schedule number.
const (
	schLower        = 32  // kmp_sch_lower
	ordLower        = 64  // kmp_ord_lower
	distLower       = 91  // kmp_distribute_static_chunked, kmp_distribute_static
	nmLower         = 160 // kmp_nm_lower
	nmOrdLower      = nmLower + ordLower - schLower
	monotonicBit    = 1 << 29 // kmp_sch_modifier_monotonic
	nonmonotonicBit = 1 << 30 // kmp_sch_modifier_nonmonotonic
)

// decodeSchedule returns the schedule that the arguments of a worksharing call request.
func decodeSchedule(number, chunk uint64) schedule {
	s := schedule{monotonic: number&monotonicBit != 0, nonmonotonic: number&nonmonotonicBit != 0}
	n := uint32(number) &^ (monotonicBit | nonmonotonicBit)
	switch {
	case n > nmOrdLower && n < nmOrdLower+schLower:
		s.ordered, n = true, n-nmOrdLower
	case n > nmLower && n < nmOrdLower:
		n -= nmLower
	case n == distLower || n == distLower+1:
		s.kind = distribute
		return s
	case n > ordLower && n < distLower:
		s.ordered, n = true, n-ordLower
	case n > schLower && n < ordLower:
		n -= schLower
	default:
		return s
	}
	// The chunk size is a signed number of 32 or 64 bits; values below 1 mean that no chunk size is
	// given.
	if int64(chunk) > 0 && chunk>>31 != 1 {
		s.chunk = chunk
	}
	switch n {
	case 1, 13: // static_chunked, static_balanced_chunked
		s.kind = staticChunked
		s.chunk = max(s.chunk, 1)
	case 2, 8, 9: // static, static_greedy, static_balanced
		s.kind, s.chunk = staticWhole, 0
	case 3, 12: // dynamic_chunked, static_steal
		s.kind = dynamicChunked
		s.chunk = max(s.chunk, 1)
	case 4, 7, 10, 11, 14: // guided_chunked, trapezoidal, guided_iterative_chunked, guided_analytical_chunked, guided_simd
		s.kind = guidedChunked
		s.chunk = max(s.chunk, 1)
	case 5, 15: // runtime, runtime_simd
		s.kind, s.chunk = byRuntime, 0
	case 6: // auto
		s.kind, s.chunk = byItself, 0
	}
	return s
}

// String returns the schedule, including its modifiers, in OpenMP's syntax.
func (s schedule) String() string {
	text := "unknown"
	switch s.kind {
	case staticChunked, staticWhole:
		text = "static"
	case dynamicChunked:
		text = "dynamic"
	case guidedChunked:
		text = "guided"
	case byRuntime:
		text = "runtime"
	case byItself:
		text = "auto"
	case distribute:
		text = "distribute"
	}
	if s.chunk != 0 {
		text += "," + strconv.FormatUint(s.chunk, 10)
	}
	if s.monotonic {
		text = "monotonic:" + text
	}
	if s.ordered {
		text += " ordered"
	}
	return text
}

// effective returns the schedule by which the loop is divided: the schedule "override" or, if
// "override" is nil, the schedule that the program requests.
func (s schedule) effective(override *Schedule) Schedule {
	if override != nil {
		return *override
	}
	switch s.kind {
	case staticChunked:
		return Schedule{Static, s.chunk}
	case dynamicChunked:
		return Schedule{Dynamic, s.chunk}
	case guidedChunked:
		return Schedule{Guided, s.chunk}
	}
	return Schedule{Kind: Static}
}

// steals reports whether idle threads steal chunks. If the user sets the schedule, threads do not
// steal: each chunk is assigned to the core with the least work.
func (s schedule) steals(override *Schedule) bool {
	return override == nil && s.kind == dynamicChunked && !s.ordered && !s.monotonic
}

// thieves contains the state of all cores in a nonmonotonic dynamic schedule. LLVM's runtime
// (static_steal in kmp_dispatch.cpp) assigns an initial part of the chunks to each core. An idle
// core steals a quarter of the remaining chunks from the end of another core's part, or one chunk
// if at most seven remain. If there are fewer chunks than cores, each idle core takes the next
// chunk.
type thieves struct {
	cores []thief
	taken uint64 // how many of the chunks that the field "common" counts have been taken
	// number of chunks that belong to no core's part: all chunks if there are fewer chunks than
	// cores, and otherwise 0
	common uint64
}

// thief is a core, with its remaining chunks [from, to).
type thief struct {
	from, to uint64
	victim   int // the first core to steal from
	// whether the core is stealing, or last stole a single chunk; in both cases, other cores
	// cannot steal from it
	stealing bool
}

func newThieves(chunks uint64, cores int) *thieves {
	t := &thieves{cores: make([]thief, cores)}
	if chunks < uint64(cores) {
		t.common = chunks
	}
	for c := range t.cores {
		if t.cores[c].victim = (c + 1) % cores; t.common == 0 {
			t.cores[c].from, t.cores[c].to = contiguousPart(chunks, c, cores)
		}
	}
	return t
}

func (t *thieves) next(core int) (chunk uint64, ok bool) {
	if t.taken < t.common {
		t.taken++
		return t.taken - 1, true
	}
	if t.common > 0 {
		return 0, false
	}
	c := &t.cores[core]
	if c.from == c.to && !t.stealChunks(core) {
		return 0, false
	}
	c.from++
	return c.from - 1, true
}

// stealChunks steals chunks from another core, and reports whether it succeeded. With n cores, it
// makes n-1 attempts. It skips cores that are also stealing, so it may overlook some chunks.
func (t *thieves) stealChunks(core int) bool {
	c, n := &t.cores[core], len(t.cores)
	c.stealing = true
	for range n - 1 {
		victim := c.victim
		for seen := 1; seen < n && (victim == core || t.cores[victim].stealing); seen++ {
			victim = (victim + 1) % n
		}
		v := &t.cores[victim]
		if victim == core || v.stealing {
			continue
		}
		left := v.to - v.from
		if left == 0 {
			c.victim = (victim + 1) % n
			continue
		}
		some := uint64(1)
		if left > 7 {
			some = left / 4
		}
		v.to -= some
		c.victim, c.from, c.to, c.stealing = victim, v.to, v.to+some, some == 1
		return true
	}
	return false
}

// contiguousPart returns the range of iterations that a core executes if n iterations are divided
// into one contiguous part per core. If n is not a multiple of cores, the first cores execute one
// additional iteration (kmp_sch_static_balanced).
func contiguousPart(n uint64, core, cores int) (from, to uint64) {
	part, more := n/uint64(cores), n%uint64(cores)
	c := uint64(core)
	from = c*part + min(c, more)
	to = from + part
	if c < more {
		to++
	}
	return from, to
}

// guidedChunk returns the size of the next chunk of a guided schedule. The size is ⌊left /
// (2·cores)⌋ or, if left < 2·cores·(chunk + 1), at most chunk (guided_iterative_chunked in
// kmp_dispatch.cpp).
func guidedChunk(left, chunk uint64, cores int) uint64 {
	chunk = max(chunk, 1)
	if left/(2*uint64(cores)) > chunk {
		return uint64(float64(left) * (0.5 / float64(cores)))
	}
	return min(left, chunk)
}
