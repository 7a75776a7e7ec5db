package diagnose

import (
	"io"
	"slices"
	"sync"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/trace"
)

// A recorded trace contains the references of all threads in the order in which the threads ran on
// one machine. The cost of sharing depends on that order, so a replay chooses a different order:
// between two synchronisation points, the thread that is furthest behind executes the next basic
// block. Synchronisation points are the forks, joins and barriers of OpenMP, and the starts and
// ends of other threads.

// row is a reference or an event of the replayed trace.
type row struct {
	addr trace.Addr
	site uint32 // for a reference, the number of its site in the trace's tables; for a block entry, the block
	// for a reference, the index of its site in the profile; -1 if the profile does not contain the
	// site
	index  int32
	bytes  uint32
	thread uint8 // number of the core that runs the thread
	kind   trace.Kind
	// whether an atomic operation accesses the same word as the previous operation of its site and
	// thread
	again  bool
	splits uint8 // number of accesses across line boundaries
}

// buffers limits the rows of a parallel region that are kept.
type buffers struct {
	least int // number of rows that are kept before they are scheduled
	most  int // largest number of rows that are kept for threads that are ahead of other threads
}

// usualBuffers are the limits outside tests.
var usualBuffers = buffers{1 << 17, 1 << 21}

// mostCores is the largest number of threads that a schedule distinguishes.
const mostCores = 64

// schedule delivers the rows of a loop-compressed trace in the order of a machine that runs every
// thread on its own core. A schedule reads the next rows while it passes on earlier rows. The code
// that reads rows and the code that passes them on use different cache lines of the host.
type schedule struct {
	tree *loops.Tree
	// divide is called, in trace order, for each reference with a site. The reference is the last
	// element of rows, and divide replaces it with one or more rows. divide may be nil
	divide  func(rows []row) []row
	index   *siteIndex                          // nil if references have no sites
	reuse   *reuse                              // nil if there is only one thread
	order   *reorder                            // also receives block entries; nil if the order is not changed
	alloc   func(addr trace.Addr, bytes uint64) // called for each allocation, in trace order; may be nil
	goOn    func() bool
	numbers map[uint32]uint8
	rest    *loops.Expander // rows that have not yet been read
	batch   *trace.Batch
	done    int    // number of rows of the batch that have been read
	thread  uint32 // thread of the row read last
	number  uint8  // the core of that thread
	stopped bool
	parts   parts
	past    uint64            // number of rows read or skipped
	threads int               // number of threads in the trace
	regions bool              // the trace contains parallel regions
	creates func(uint32) bool // reports whether a block ends with a call that creates a thread
	joins   func(uint32) bool // reports whether a block ends with a call that waits for a thread; nil if unknown

	_ gap

	take    func(*row)
	joined  func()             // called when all threads have synchronised
	forked  func()             // called when the threads begin
	clock   [mostCores]float64 // the clock of each thread; the function take advances the clock
	met     float64            // clock at the last synchronisation point
	worked  uint64             // a bit for each thread that has run since the last synchronisation point
	known   int                // number of threads seen so far
	open    bool
	master  uint8
	alive   int
	started int
	created int // number of threads whose creation was requested
	// whether a call that waits for a thread was made since the threads began
	joining bool
	members [mostCores]member
	pool    *sync.Pool     // unused buffers
	rows    int            // number of rows that are kept
	limits  buffers        // the zero value means usualBuffers
	full    int            // number of rows that are kept before they are passed on
	inner   [mostCores]int // number of nested regions of each thread

	_ gap
}

// gap separates data of goroutines that run at the same time. Otherwise, each write by one
// goroutine would invalidate the cache line of another goroutine.
type gap [128]byte

// member is the remaining work of a thread.
type member struct {
	kept   []segment // the rows that wait for their turn
	at     int       // number of the next row to pass on, from the start of the region
	end    int       // number of the next row to be kept
	phases []int     // numbers of the rows at which the thread's phases begin
	phase  int       // number of the phase that contains the first row
	ended  bool
}

// buffer contains consecutive rows of the trace.
type buffer struct {
	rows     []row
	byThread []threadRows
	users    int // number of segments in the buffer that still wait, plus one while the buffer is read
}

// threadRows is a sequence of rows of one thread in a buffer. The sequence begins where the previous
// sequence ends, and ends before the row with the index end.
type threadRows struct {
	end   int
	keeps bool // the rows only wait for their turn; otherwise, the sequence is a single row
}

// divideByThread divides the rows of a buffer into sequences of rows of one thread.
func (s *schedule) divideByThread(b *buffer) {
	b.byThread = b.byThread[:0]
	for i := range b.rows {
		r := &b.rows[i]
		keeps, last := s.keeps(r), len(b.byThread)-1
		if keeps && last >= 0 && b.byThread[last].keeps && b.rows[i-1].thread == r.thread {
			b.byThread[last].end = i + 1
			continue
		}
		b.byThread = append(b.byThread, threadRows{i + 1, keeps})
	}
}

// segment is a sequence of rows of one thread in a buffer, from index from to index to-1.
type segment struct {
	in       *buffer
	from, to int
}

// bufferRows is the approximate number of rows in a buffer.
const bufferRows = 1 << 12

// newBuffer returns an empty buffer.
func (s *schedule) newBuffer() *buffer {
	b, unused := s.pool.Get().(*buffer)
	if !unused {
		return &buffer{rows: make([]row, 0, bufferRows+bufferRows/4)}
	}
	b.rows, b.byThread = b.rows[:0], b.byThread[:0]
	return b
}

// release ends one use of a buffer, and returns the buffer to the pool after its last use.
func (s *schedule) release(b *buffer) {
	if b.users--; b.users == 0 {
		s.pool.Put(b)
	}
}

// keep appends rows of a buffer to the rows of a thread that wait for their turn.
func (m *member) keep(b *buffer, from, to int) {
	m.end += to - from
	if n := len(m.kept); n > 0 {
		if last := &m.kept[n-1]; last.in == b && last.to == from {
			last.to = to
			return
		}
	}
	b.users++
	m.kept = append(m.kept, segment{b, from, to})
}

// passed removes the first rows of a thread, which are all in its first segment.
func (s *schedule) passed(m *member, rows int) {
	m.at += rows
	first := &m.kept[0]
	if first.from += rows; first.from == first.to {
		s.release(first.in)
		m.kept = m.kept[1:]
	}
}

// run passes on all rows. It returns false if it was stopped.
func (s *schedule) run() bool {
	if s.limits.most == 0 {
		s.limits = usualBuffers
	}
	s.full = s.limits.least
	for i := range s.tree.References() {
		s.regions = s.regions || s.tree.References()[i].Kind == trace.ParallelBegin
	}
	if s.pool == nil {
		s.pool = &sync.Pool{}
	}
	full := make(chan *buffer, mostFull)
	go func() {
		defer close(full)
		for more := true; more; {
			b := s.newBuffer()
			if b.rows, more = s.read(b.rows, bufferRows); s.threads > 1 {
				s.divideByThread(b)
			}
			full <- b
		}
	}()
	for b := range full {
		s.give(b)
	}
	if !s.stopped {
		s.flush(true)
	}
	return !s.stopped
}

// mostFull is the largest number of buffers that are read while earlier rows are passed on.
const mostFull = 256

// read appends approximately the given number of rows of the trace, and reports whether there may
// be more. It omits events if there is only one thread.
func (s *schedule) read(rows []row, most int) (_ []row, more bool) {
	if s.rest == nil {
		s.rest, s.batch, s.numbers = s.tree.Expand(), trace.NewBatch(0), map[uint32]uint8{}
	}
	b := s.batch
	for len(rows) < most {
		if s.done == b.Len() {
			s.done = 0
			if err := s.rest.Next(b); err != nil || !s.goOn() {
				s.stopped = err != io.EOF
				return rows, false
			}
			s.past += uint64(b.Len())
			if s.parts.skip(s.past-uint64(b.Len()), b.Len()) {
				s.skip(b)
				s.done = b.Len()
				continue
			}
		}
		from, end := s.done, min(b.Len(), s.done+most-len(rows))
		s.done = end
		rows = slices.Grow(rows, end-from)
		for i := from; i < end; i++ {
			kind := b.Kind[i]
			if s.threads < 2 && !kind.IsReference() && (s.order == nil || kind != trace.BlockEntry && kind != trace.BareBlock) {
				if s.alloc != nil && kind == trace.Alloc && b.Arg != nil {
					s.alloc(b.Addr[i], b.Arg[i])
				}
				continue
			}
			if b.Thread != nil && (b.Thread[i] != s.thread || len(s.numbers) == 0) {
				s.thread = b.Thread[i]
				known := false
				if s.number, known = s.numbers[s.thread]; !known {
					s.number = uint8(len(s.numbers) % mostCores)
					s.numbers[s.thread] = s.number
				}
			}
			rows = rows[:len(rows)+1]
			r := &rows[len(rows)-1]
			// One store for each field: a composite literal is built in other memory, and copied.
			r.addr, r.site, r.index, r.bytes = b.Addr[i], 0, -1, b.Bytes[i]
			r.thread, r.kind, r.again, r.splits = s.number, kind, false, 0
			if s.reuse != nil && (kind.IsReference() || kind == trace.Alloc) {
				if kind == trace.Alloc && b.Arg != nil {
					s.reuse.allocated(s.thread, r.addr, b.Arg[i])
				}
				r.addr = s.reuse.move(s.thread, r.addr)
			}
			if b.Site != nil {
				r.site = b.Site[i]
			}
			switch {
			case s.index != nil && kind.IsReference():
				pc := trace.Addr(0)
				if b.PC != nil {
					pc = b.PC[i]
				}
				r.index = s.index.indexOf(r.site, pc, kind)
			case s.alloc != nil && kind == trace.Alloc && b.Arg != nil:
				s.alloc(r.addr, b.Arg[i])
			}
			if s.divide != nil && r.index >= 0 {
				rows = slices.Grow(s.divide(rows), end-i)
			}
		}
	}
	return rows, true
}

// skip handles the rows of a part of the trace that is omitted.
func (s *schedule) skip(b *trace.Batch) {
	if s.alloc == nil || b.Arg == nil {
		return
	}
	for i, kind := range b.Kind {
		if kind == trace.Alloc {
			s.alloc(b.Addr[i], b.Arg[i])
		}
	}
}

// parts describes which rows of a long trace are replayed. The trace is divided into periods of
// equal length. The field period is the number of rows in each period. The field rows is the number
// of rows that are replayed, in the middle of each period. The zero value means all rows.
type parts struct{ period, rows uint64 }

// skip reports whether a group of rows is omitted. The group is skipped or replayed as a whole.
func (p parts) skip(from uint64, rows int) bool {
	if p.period == 0 {
		return false
	}
	middle := (from + uint64(rows)/2) % p.period
	begin := (p.period - p.rows) / 2
	return middle < begin || middle >= begin+p.rows
}

// give handles the rows of a buffer: it passes each row on, or keeps it until it is the turn of its
// thread.
func (s *schedule) give(b *buffer) {
	b.users = 1
	if s.threads < 2 {
		for i := range b.rows {
			s.take(&b.rows[i])
		}
	}
	from := 0
	for _, p := range b.byThread {
		m := &s.members[b.rows[from].thread]
		for from < p.end {
			if !s.open || len(m.phases) == 0 || !p.keeps {
				s.add(b, from)
				from++
				continue
			}
			to := min(p.end, from+max(1, s.full-s.rows))
			m.keep(b, from, to)
			s.rows += to - from
			if from = to; s.rows >= s.full {
				s.flush(false)
			}
		}
	}
	s.release(b)
}

// keeps reports whether a row of a running thread neither starts nor ends threads, so the row only
// has to wait for its turn.
func (s *schedule) keeps(r *row) bool {
	if r.kind != trace.BlockEntry && r.kind != trace.BareBlock {
		return r.kind.IsReference()
	}
	return s.regions || (s.creates == nil || !s.creates(r.site)) && (s.joins == nil || !s.joins(r.site))
}

// add processes the row with index i of a buffer, in a run with several threads.
func (s *schedule) add(b *buffer, i int) {
	r := &b.rows[i]
	s.known = max(s.known, int(r.thread)+1)
	switch {
	case s.regions && r.kind == trace.ParallelBegin && !s.open,
		!s.regions && r.kind == trace.ThreadStart && s.known > 1 && !s.open:
		s.flush(true)
		s.open, s.master, s.alive, s.joining = true, r.thread, 0, false
		if r.kind == trace.ThreadStart {
			s.master = 0 // the program's initial thread
		}
		s.meet()
		if s.forked != nil {
			s.forked()
		}
	case r.kind == trace.ParallelBegin && s.open:
		s.inner[r.thread]++
	}
	if !s.regions && s.creates != nil && (r.kind == trace.BlockEntry || r.kind == trace.BareBlock) && s.creates(r.site) {
		s.created++
	}
	if s.open && !s.regions && s.joins != nil && (r.kind == trace.BlockEntry || r.kind == trace.BareBlock) && s.joins(r.site) {
		s.joining = true
		if s.alive <= 0 && s.started >= s.created {
			s.flush(true)
		}
	}
	if !s.regions && r.kind == trace.ThreadStart && s.known > 1 {
		s.alive++
		s.started++
	}
	if !s.open {
		s.take(r)
		return
	}
	m := &s.members[r.thread]
	if len(m.phases) == 0 {
		m.phases = append(m.phases, 0)
	}
	m.keep(b, i, i+1)
	s.rows++
	switch {
	case r.kind == trace.Barrier && s.regions && s.inner[r.thread] == 0:
		m.phases = append(m.phases, m.end)
	case r.kind == trace.ParallelEnd && s.inner[r.thread] > 0:
		s.inner[r.thread]--
	case r.kind == trace.ParallelEnd && r.thread == s.master && s.regions:
		s.flush(true)
		return
	case r.kind == trace.ThreadEnd && !s.regions:
		m.ended = true
		// On a busy machine, a thread may end before the next thread starts or is even created. The
		// threads therefore belong together until the program waits for one of them.
		if s.alive--; s.alive <= 0 && s.started >= s.created && (s.joining || s.joins == nil) {
			s.flush(true)
			return
		}
	}
	if s.rows >= s.full {
		s.flush(false)
	}
}

// flush passes on the buffered rows. last is set if the region ends here.
func (s *schedule) flush(last bool) {
	if !s.open {
		return
	}
	first, end, all := 1<<30, 0, 1<<30
	for i := range s.members {
		if m := &s.members[i]; len(m.phases) > 0 {
			first, end = min(first, m.phase), max(end, m.phase+len(m.phases))
			all = min(all, m.phase+len(m.phases)) // some threads have not begun later phases
		}
	}
	if !last && s.rows < s.limits.most {
		end = all
	}
	for phase := first; phase < end; phase++ {
		if !s.merge(phase, !last && s.rows < s.limits.most) {
			end = phase + 1
			break
		}
		if (phase+1 < end || last) && s.joined != nil {
			s.joined()
			s.meet()
		}
	}
	s.rows = 0
	for i := range s.members {
		m := &s.members[i]
		if last {
			for len(m.kept) > 0 { // only if rows were kept for a phase that does not end in this region
				s.passed(m, m.kept[0].to-m.kept[0].from)
			}
			*m = member{phases: m.phases[:0]}
			s.inner[i] = 0
			continue
		}
		if len(m.phases) == 0 {
			continue
		}
		// The last phase continues: keep its rows that have not yet been replayed.
		done := max(0, min(end-1-m.phase, len(m.phases)-1)) // a thread may be ahead of the phases that were replayed
		m.phases = append(m.phases[:0], m.phases[done:]...)
		for j := range m.phases {
			m.phases[j] = max(m.at, m.phases[j])
		}
		m.phase += done
		s.rows += m.end - m.at
	}
	s.full = min(max(s.limits.least, 2*s.rows), s.limits.most)
	if last {
		s.open = false
	}
}

// meet sets the clocks of all threads to the latest clock.
func (s *schedule) meet() {
	latest := 0.0
	for _, c := range s.clock {
		latest = max(latest, c)
	}
	for i := range s.clock {
		s.clock[i] = latest
	}
	s.met = latest
	s.worked = 0
}

// merge replays the rows of all threads in a phase. If hold is set and the phase is unfinished,
// merge stops as soon as one thread has replayed all of its rows that have been read so far. finished
// reports whether merge replayed all rows.
func (s *schedule) merge(phase int, hold bool) (finished bool) {
	var running []int
	var to [mostCores]int
	members := 0
	var more [mostCores]bool // threads with unread rows in the phase
	for i := range s.members {
		m := &s.members[i]
		at := phase - m.phase
		if at < 0 || at >= len(m.phases) {
			continue
		}
		members++
		m.at, to[i] = m.phases[at], m.end
		more[i] = at+1 == len(m.phases) && !m.ended && (s.regions || i != int(s.master))
		if at+1 < len(m.phases) {
			to[i] = m.phases[at+1]
		}
		switch {
		case m.at < to[i]:
			running = append(running, i)
		case hold && more[i]:
			return false
		}
	}
	if hold && (s.regions && members < s.threads || !s.regions && s.started < s.created) {
		return false // some threads have not yet begun
	}
	for len(running) > 0 {
		next := 0
		for i := range running {
			if s.clock[running[i]] < s.clock[running[next]] {
				next = i
			}
		}
		i := running[next]
		m := &s.members[i]
		before := s.clock[i]
		s.turn(m, to[i])
		s.worked |= 1 << i
		if s.clock[i] <= before {
			s.clock[i] = before + leastTurn // now it is another thread's turn
		}
		if m.at < to[i] {
			continue
		}
		if running = append(running[:next], running[next+1:]...); hold && more[i] {
			return false
		}
	}
	return true
}

// turn passes on the next rows of a thread: a basic block, or at most mostInTurn rows. It ends
// before the row with the number to.
func (s *schedule) turn(m *member, to int) {
	taken := 0
	for m.at < to {
		first := &m.kept[0]
		rows := first.in.rows[first.from:min(first.to, first.from+to-m.at)]
		for i := range rows {
			r := &rows[i]
			if taken > 0 && (r.kind == trace.BlockEntry || taken >= mostInTurn) {
				s.passed(m, i)
				return
			}
			s.take(r)
			taken++
		}
		s.passed(m, len(rows))
	}
}

// leastTurn is the smallest number of cycles for which a thread runs in a turn.
const leastTurn = 0.01

// mostInTurn is the largest number of rows that a thread replays in a turn if blocks are unknown.
const mostInTurn = 8
