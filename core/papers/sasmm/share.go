package sasmm

import (
	"sort"

	"github.com/stackglass/stackglass/core/trace"
)

// division divides the executions of a block among the cores, like array_divide in the paper.
type division struct {
	cores, chunk, total uint64          // chunk 0 means one contiguous part per core
	chunksByCore        [][]guidedChunk // for a guided schedule: the chunks of each core; otherwise nil
	chunks              []guidedChunk   // for a guided schedule: all chunks, in order
}

// guidedChunk is a chunk of consecutive executions that a guided schedule assigns to a core.
type guidedChunk struct {
	from   uint64 // number of the first execution
	before uint64 // number of earlier executions on the same core
	core   int
}

func (o *Options) share(total uint64) division {
	s := division{cores: uint64(o.Cores), chunk: o.Chunk, total: total}
	if o.Guided && total > 1 {
		s.assignGuided()
	}
	return s
}

// assignGuided assigns chunks of decreasing size to cores. Each chunk is assigned to the core with the
// fewest executions so far, which is free first if all executions take the same time.
func (s *division) assignGuided() {
	s.chunksByCore = make([][]guidedChunk, s.cores)
	had := make([]uint64, s.cores)
	for from := uint64(0); from < s.total; {
		core := 0
		for c := range had {
			if had[c] < had[core] {
				core = c
			}
		}
		left := s.total - from
		n := min(left, max(1, s.chunk, (left+s.cores-1)/s.cores))
		p := guidedChunk{from: from, before: had[core], core: core}
		s.chunks, s.chunksByCore[core] = append(s.chunks, p), append(s.chunksByCore[core], p)
		had[core] += n
		from += n
	}
}

// coreOf returns the core that performs execution n. The block must have several executions.
func (s *division) coreOf(n uint64) int {
	switch {
	case s.chunksByCore != nil:
		return s.chunks[sort.Search(len(s.chunks), func(i int) bool { return s.chunks[i].from > n })-1].core
	case s.chunk > 0:
		return int(n / s.chunk % s.cores)
	}
	each, more := s.total/s.cores, s.total%s.cores
	if large := more * (each + 1); n >= large {
		return int(more + (n-large)/each)
	}
	return int(n / (each + 1))
}

func (s *division) count(core int) uint64 {
	c := uint64(core)
	switch {
	case s.total == 1:
		return 1
	case s.chunksByCore != nil:
		of := s.chunksByCore[core]
		if len(of) == 0 {
			return 0
		}
		last := of[len(of)-1]
		return last.before + s.end(last) - last.from
	case s.chunk > 0:
		if s.chunk >= s.total { // chunk × cores may overflow
			if core == 0 {
				return s.total
			}
			return 0
		}
		chunks, rest := s.total/s.chunk, s.total%s.chunk
		n := (chunks + s.cores - 1 - c) / s.cores * s.chunk
		if chunks%s.cores == c {
			n += rest
		}
		return n
	}
	n := s.total / s.cores
	if c < s.total%s.cores {
		n++
	}
	return n
}

func (s *division) end(p guidedChunk) uint64 {
	i := sort.Search(len(s.chunks), func(i int) bool { return s.chunks[i].from > p.from })
	if i == len(s.chunks) {
		return s.total
	}
	return s.chunks[i].from
}

// nthExecution returns the number of a core's j-th execution in the sequence of all executions. The
// parameter j must be less than count(core).
func (s *division) nthExecution(core int, j uint64) uint64 {
	c := uint64(core)
	switch {
	case s.total == 1:
		return 0
	case s.chunksByCore != nil:
		of := s.chunksByCore[core]
		p := of[sort.Search(len(of), func(i int) bool { return of[i].before > j })-1]
		return p.from + j - p.before
	case s.chunk > 0:
		return (j/s.chunk*s.cores+c)*s.chunk + j%s.chunk
	}
	each, more := s.total/s.cores, s.total%s.cores
	return c*each + min(c, more) + j
}

func (s *division) most() (n uint64) {
	for c := range int(s.cores) {
		n = max(n, s.count(c))
	}
	return n
}

// coreBits is the position of the lowest bit of the core's number in private addresses.
const coreBits = 48

// movable reports whether the bits for the core's number are unused. Unused bits are all 0, or
// all 1 (for example in kernel addresses).
func movable(addr trace.Addr) bool {
	top := addr >> (coreBits - 1)
	return top <= 1 || top >= 1<<17-2
}

// moveToCore converts a private address of core 0 to the corresponding address of another core.
func moveToCore(addr trace.Addr, core int) trace.Addr { return addr ^ trace.Addr(core)<<coreBits }

// stackBytes is the assumed stack size if the trace does not contain the size: the usual size for a
// main thread.
const stackBytes = 8 << 20

// recordFork records the stack pointer at the beginning of a region.
func (r *Reader) recordFork(frame trace.Addr) {
	r.frame, r.low = frame, frame-min(frame, stackBytes)
	if r.known == nil {
		return
	}
	for i := range r.known.Threads {
		if t := &r.known.Threads[i]; t.StackLow < frame && frame <= t.StackHigh {
			r.low = t.StackLow
		}
	}
}

// isPrivate reports whether a reference of a parallel block accesses private memory of the thread.
// It is also called for references of serial blocks, because the parallel blocks are known only at
// the end. For serial blocks, the result does not matter: core 0 executes them, and addresses of
// core 0 are never moved.
func (r *Reader) isPrivate(addr trace.Addr) bool {
	o := &r.options
	if o.Ranges == nil {
		return addr < r.frame && addr >= r.low
	}
	i := sort.Search(len(o.Ranges), func(i int) bool { return o.Ranges[i].High > addr })
	return i < len(o.Ranges) && o.Ranges[i].Low <= addr
}
