package sasmm

import (
	"sort"

	"github.com/stackglass/stackglass/core/trace"
)

// share divides the executions of a block among cores: array_divide.
type share struct {
	cores, chunk, total uint64    // chunk 0: contiguous parts
	pieces              [][]piece // of guided, by core; otherwise nil
	all                 []piece   // of guided, in order
}

// piece is a run of executions that a core takes at once.
type piece struct {
	from   uint64 // the first
	before uint64 // executions that the core had before
	core   int
}

func (o *Options) share(total uint64) share {
	s := share{cores: uint64(o.Cores), chunk: o.Chunk, total: total}
	if o.Guided && total > 1 {
		s.guide()
	}
	return s
}

// guide assigns ever smaller chunks to the first core with the fewest executions, which is free first
// because all executions take equally long.
func (s *share) guide() {
	s.pieces = make([][]piece, s.cores)
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
		p := piece{from: from, before: had[core], core: core}
		s.all, s.pieces[core] = append(s.all, p), append(s.pieces[core], p)
		had[core] += n
		from += n
	}
}

// of returns the core of execution n, if there are several executions.
func (s *share) of(n uint64) int {
	switch {
	case s.pieces != nil:
		return s.all[sort.Search(len(s.all), func(i int) bool { return s.all[i].from > n })-1].core
	case s.chunk > 0:
		return int(n / s.chunk % s.cores)
	}
	each, more := s.total/s.cores, s.total%s.cores
	if large := more * (each + 1); n >= large {
		return int(more + (n-large)/each)
	}
	return int(n / (each + 1))
}

func (s *share) count(core int) uint64 {
	c := uint64(core)
	switch {
	case s.total == 1:
		return 1
	case s.pieces != nil:
		of := s.pieces[core]
		if len(of) == 0 {
			return 0
		}
		last := of[len(of)-1]
		return last.before + s.end(last) - last.from
	case s.chunk > 0:
		if s.chunk >= s.total { // chunk times cores may be beyond 2^64
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

func (s *share) end(p piece) uint64 {
	i := sort.Search(len(s.all), func(i int) bool { return s.all[i].from > p.from })
	if i == len(s.all) {
		return s.total
	}
	return s.all[i].from
}

// nth returns the number of a core's execution j, below count, among all.
func (s *share) nth(core int, j uint64) uint64 {
	c := uint64(core)
	switch {
	case s.total == 1:
		return 0
	case s.pieces != nil:
		of := s.pieces[core]
		p := of[sort.Search(len(of), func(i int) bool { return of[i].before > j })-1]
		return p.from + j - p.before
	case s.chunk > 0:
		return (j/s.chunk*s.cores+c)*s.chunk + j%s.chunk
	}
	each, more := s.total/s.cores, s.total%s.cores
	return c*each + min(c, more) + j
}

func (s *share) most() (n uint64) {
	for c := range int(s.cores) {
		n = max(n, s.count(c))
	}
	return n
}

// coreBits is the first of the bits of private addresses that contain the number of the core.
const coreBits = 48

// movable reports whether those bits of an address are free: all 0, or all 1 as in kernels.
func movable(addr trace.Addr) bool {
	top := addr >> (coreBits - 1)
	return top <= 1 || top >= 1<<17-2
}

// moved returns a core's address for a private address of core 0.
func moved(addr trace.Addr, core int) trace.Addr { return addr ^ trace.Addr(core)<<coreBits }

// stackBytes is the assumed stack size if the trace does not say it, usual for a main thread.
const stackBytes = 8 << 20

// fork notes the frame in which a region begins.
func (r *Reader) fork(frame trace.Addr) {
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

// isPrivate reports whether a reference of a parallel block is to the thread's own memory. It also applies
// to other blocks, because only the end shows which are parallel; core 0, which has the others, never
// moves addresses.
func (r *Reader) isPrivate(addr trace.Addr) bool {
	o := &r.options
	if o.Ranges == nil {
		return addr < r.frame && addr >= r.low
	}
	i := sort.Search(len(o.Ranges), func(i int) bool { return o.Ranges[i].High > addr })
	return i < len(o.Ranges) && o.Ranges[i].Low <= addr
}
