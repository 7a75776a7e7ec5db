package multicore

import (
	"io"

	"github.com/stackglass/stackglass/core/interleave"
	"github.com/stackglass/stackglass/core/multicore/tape"
	"github.com/stackglass/stackglass/core/papers/sasmm"
	"github.com/stackglass/stackglass/core/trace"
)

// Store is a temporary file for the rows of a parallel region that do not fit into memory.
type Store = tape.Store

// ErrNoBlocks is the error of a [Reader] for a trace without basic blocks.
var ErrNoBlocks error = captureError("the trace does not contain the executed basic blocks, so the work of the threads cannot be determined")

// ErrThreads is the error of a [Reader] for a trace of a run with several threads.
var ErrThreads error = captureError("the trace comes from a run with several threads, so the work is already divided")

type captureError string

func (e captureError) Error() string {
	return string(e) + "; record a single-threaded run: stackglass cc -- clang -fopenmp …, then OMP_NUM_THREADS=1 ./program"
}

// Reader synthesises the trace of several cores from the trace of a single-threaded run. Thread n
// runs on core n.
type Reader struct {
	in      trace.Reader
	options Options
	wanted  trace.Kinds // kinds of rows that Next returns
	kept    trace.Kinds // kinds of rows that cores process
	bare    bool        // whether Next returns a BareBlock row for each entry of a bare block, and no other block entries

	batch  *trace.Batch // the current batch, which was read from the field "in"
	keep   []int32      // scratch space: indices of the rows to keep in a batch
	at     int          // index of the current row in batch
	begun  bool
	err    error
	hasPC  bool
	hasArg bool

	code    code
	program trace.Program // the program that Header returns
	tape    *tape.Tape
	merger  *interleave.Merger
	cursors []cursor
	streams []interleave.Stream
	numbers []uint32
	merging bool

	preScan

	executions *sasmm.Reader // divides the executions of blocks; nil if iterations are divided
	ofCores    []uint64      // number of references of each core, if executions are divided
}

// Mimic returns a reader of threads that are synthesised for o.Cores cores. The reader r must read
// the trace of a single-threaded run, and the trace must contain basic blocks. The store s
// receives, in compressed form, the rows of a region that do not fit into memory. If s is nil, each
// region must fit into memory. If executions of blocks are divided, s is not used. The error is a
// *trace.OptionError.
func Mimic(r trace.Reader, o Options, s Store) (*Reader, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	if o.Division != ByIterations {
		return newDividedReader(r, o)
	}
	m := &Reader{
		in: r, options: o, wanted: trace.AllKinds, batch: trace.NewBatch(0),
		merger: interleave.New(o.Order), cursors: make([]cursor, o.Cores),
	}
	m.found.cores, m.clock = o.Cores, make([]float64, o.Cores)
	m.byTime = o.Order.Policy == interleave.ByTime
	m.private.ranges = o.Private.Ranges
	m.tape = tape.New(tape.Options{Store: s, Readers: o.Cores, Args: true, Mark: m.private.markPrivate})
	for c := range m.cursors {
		m.cursors[c] = cursor{r: m, core: c}
		m.streams = append(m.streams, &m.cursors[c])
		m.numbers = append(m.numbers, uint32(c))
	}
	return m, nil
}

// Select sets the kinds of rows that Next returns. Select must be called before the first call to
// Next.
func (m *Reader) Select(kinds trace.Kinds) {
	m.wanted = kinds
	if m.executions != nil {
		m.executions.Select(kinds)
	}
}

// needed contains the kinds of rows that are needed to divide the work, or to report caveats.
const needed = trace.DataKinds | 1<<trace.BlockEntry | 1<<trace.Return | 1<<trace.ParallelBegin | 1<<trace.ParallelEnd |
	1<<trace.Barrier | 1<<trace.LoopBegin | 1<<trace.LoopEnd | 1<<trace.CriticalBegin | 1<<trace.ReduceBegin |
	1<<trace.TaskCreate | 1<<trace.Alloc

// selectKinds selects the kinds of rows that are read from the trace.
func (m *Reader) selectKinds() {
	m.begun = true
	m.kept = m.wanted
	m.bare = m.wanted.Has(trace.BareBlock) && !m.wanted.Has(trace.BlockEntry)
	m.kept &^= 1 << trace.BareBlock
	if m.bare || m.options.Order.Policy >= interleave.ByBlock {
		m.kept |= 1 << trace.BlockEntry
	}
	if s, ok := m.in.(trace.Selector); ok {
		s.Select((m.wanted | needed) &^ (1 << trace.BareBlock))
	}
}

// Header returns the header of the trace. The header contains one thread for each core instead of
// the threads of the trace.
func (m *Reader) Header() trace.Header {
	if m.executions != nil {
		return m.executions.Header()
	}
	h := trace.Header{Threads: true}
	if d, ok := m.in.(trace.Describer); ok {
		h = d.Header()
	}
	h.Threads, h.Sliced = true, false
	if h.Program == nil {
		return h
	}
	m.program = *h.Program
	var moved func(addr trace.Addr, core int) trace.Addr
	if len(m.private.ranges) == 0 {
		moved = func(addr trace.Addr, core int) trace.Addr { return addr + m.private.offset(core) }
	}
	m.program.Threads = h.Program.LikeFirst(m.options.Cores, moved)
	h.Program = &m.program
	return h
}

// Next fills b as specified by [trace.Reader]. No rows can be read after ErrNoBlocks, ErrThreads,
// [tape.ErrFull] or an error of the store. If executions of blocks are divided, the errors are
// the same as for [sasmm.Reader].
func (m *Reader) Next(b *trace.Batch) error {
	if m.executions != nil {
		return m.nextDivided(b)
	}
	b.Reset()
	if m.err != nil {
		return m.err
	}
	if !m.begun {
		m.selectKinds()
	}
	for {
		err := m.fill(b)
		if b.Len() > 0 {
			m.filter(b)
		}
		if b.Len() > 0 {
			if err != nil && !trace.IsSyntax(err) {
				m.err = err
			} else if err != nil {
				m.later = err
			}
			return nil
		}
		if err != nil {
			b.Reset()
			if !trace.IsSyntax(err) {
				m.err = err
			}
			return err
		}
	}
}

// fill appends rows to b, which must be empty. It may return both rows and an error.
func (m *Reader) fill(b *trace.Batch) error {
	if err := m.later; err != nil {
		m.later = nil
		return err
	}
	for b.Len() <= b.Cap()/2 {
		m.addColumns(b)
		if m.merging {
			if err := m.merger.Fill(b); err == io.EOF {
				m.endPhase()
			} else if err != nil {
				return err
			}
			continue
		}
		var err error
		if m.at == m.batch.Len() {
			err = m.read()
		} else {
			err = m.step(b)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// addColumns adds to b the columns that all batches must contain.
func (m *Reader) addColumns(b *trace.Batch) {
	b.NeedThread()
	b.NeedSite()
	if m.hasArg {
		b.NeedArg()
	}
	if m.hasPC {
		b.NeedPC()
	}
}

func (m *Reader) read() error {
	m.at = 0
	if err := m.in.Next(m.batch); err != nil {
		m.batch.Reset()
		if trace.IsSyntax(err) || m.ended {
			return err
		}
		m.ended = true
		if wrong := m.endIncompleteRegion(); wrong != nil {
			return wrong
		}
		if !m.merging {
			return err
		}
		return nil // the error is returned after the phase
	}
	if m.batch.Site == nil {
		return ErrNoBlocks
	}
	var h trace.Header
	if d, ok := m.in.(trace.Describer); ok {
		h = d.Header()
	}
	if h.Program == nil || len(h.Program.Blocks) == 0 {
		return ErrNoBlocks
	}
	m.code.know(h.Program)
	if m.batch.PC != nil && !m.hasPC {
		m.hasPC = true
		m.tape.NeedPC()
	}
	m.hasArg = m.hasArg || m.batch.Arg != nil
	if !m.oneThread() {
		return ErrThreads
	}
	return nil
}

// oneThread reports whether all references that have been read come from one thread.
func (m *Reader) oneThread() bool {
	if m.batch.Thread == nil {
		return true
	}
	for i, t := range m.batch.Thread {
		if t != m.thread {
			if m.threaded && m.batch.Kind[i].IsReference() {
				return false
			}
			if !m.threaded {
				m.thread = t
			}
		}
		m.threaded = m.threaded || m.batch.Kind[i].IsReference()
	}
	return true
}

// filter removes the rows of b that Next must not return.
func (m *Reader) filter(b *trace.Batch) {
	if !m.kept.Has(trace.BlockEntry) || m.wanted.Has(trace.BlockEntry) {
		return
	}
	m.keep = m.keep[:0]
	for i, k := range b.Kind {
		if k == trace.BlockEntry {
			if !m.bare || !m.isBare(b.Site[i]) {
				continue
			}
			b.Kind[i] = trace.BareBlock
		}
		m.keep = append(m.keep, int32(i))
	}
	b.Select(m.keep)
}

func (m *Reader) isBare(block uint32) bool {
	return uint64(block) < uint64(len(m.code.roles)) && m.code.roles[block]&isBare != 0
}

// passOn appends to b those rows in the range [from, to) of the current batch whose kinds are in
// the field "kept". The rows are outside parallel regions, so core 0 executes them.
func (m *Reader) passOn(b *trace.Batch, from, to int) {
	for from < to {
		k := m.batch.Kind[from]
		if !m.kept.Has(k) {
			from++
			continue
		}
		end := from
		for end < to && m.kept.Has(m.batch.Kind[end]) {
			if m.batch.Kind[end].IsReference() {
				m.outside++
			}
			end++
		}
		n := b.Len()
		b.AppendRows(m.batch, from, end)
		clear(b.Thread[n:])
		from = end
	}
}
