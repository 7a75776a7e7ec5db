package analysis

import (
	"sync/atomic"

	"github.com/stackglass/stackglass/core/analysis/contract"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

type worker struct {
	p      *Parallel
	header *trace.Header // header of the rows that are being analysed
	// analysis that tracks the layout of memory blocks, up to the first row of the batch with the
	// number layoutBlock; nil: not created yet
	layout      contract.LayoutFollower
	layoutBlock int
}

// layoutChanges contains the rows that change the layout of memory blocks, and the trace's header
// at these rows. Rows are kept until all workers have processed them.
type layoutChanges struct {
	wanted    trace.Kinds // the kinds of layout events; 0: the layout is not needed
	list      []layoutChange
	latest    *trace.Header
	followers []*worker
}

type layoutChange struct {
	block  int
	rows   *trace.Batch // the rows; nil: none
	header *trace.Header
}

func (m *layoutChanges) note(number int, b *block) {
	if m.wanted == 0 || !b.moves && b.header == m.latest {
		return
	}
	m.latest = b.header
	one := layoutChange{block: number, header: b.header}
	if b.moves {
		one.rows = eventsOf(b.rows, m.wanted)
	}
	m.list = append(m.list, one)
}

// eventsOf returns a copy of the batch's events of the given kinds.
func eventsOf(b *trace.Batch, kinds trace.Kinds) *trace.Batch {
	some := &trace.Batch{}
	for i, k := range b.Kind {
		if !kinds.Has(k) {
			continue
		}
		some.Kind, some.Addr = append(some.Kind, k), append(some.Addr, b.Addr[i])
		if b.Site != nil {
			some.Site = append(some.Site, b.Site[i])
		}
		if b.Arg != nil {
			some.Arg = append(some.Arg, b.Arg[i])
		}
	}
	return some
}

// changesIn returns the layout changes in the blocks [from, to), and drops the changes that all
// workers have processed.
func (m *layoutChanges) changesIn(from, to int) (list []layoutChange) {
	known := to
	for _, w := range m.followers {
		known = min(known, w.layoutBlock)
	}
	n := 0
	for n < len(m.list) && m.list[n].block < known {
		n++
	}
	m.list = m.list[n:]
	for _, one := range m.list {
		if one.block >= from && one.block < to {
			list = append(list, one)
		}
	}
	return list
}

func (w *worker) work() {
	for c := w.claim(); c != nil; c = w.claim() {
		w.analyse(c)
	}
}

// claim waits until there is a segment for the worker, or returns nil if there are no more
// segments.
func (w *worker) claim() *claim {
	p := w.p
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.closed && !p.alone {
		end := p.firstBlock + len(p.blocks)
		if from, to := p.claims.nextBlocks(p.firstBlock, end, p.ended != nil); to > from && p.joining {
			c := &claim{from: from, to: to, blocks: p.blocks[from-p.firstBlock : to-p.firstBlock], lone: p.lone}
			p.claims.list = append(p.claims.list, c)
			w.updateLayout(from)
			return c
		}
		if w.layoutBlock+maxBehind < p.firstBlock {
			w.updateLayout(p.firstBlock)
			continue
		}
		p.changed.Wait()
	}
	return nil
}

// maximum number of blocks by which an idle worker's layout may be out of date
const maxBehind = 256

// updateLayout applies the layout changes in the blocks before block number end. updateLayout
// releases the lock during the update.
func (w *worker) updateLayout(end int) {
	list := w.p.moves.changesIn(w.layoutBlock, end)
	w.layoutBlock = end
	if len(list) == 0 {
		return
	}
	w.p.mu.Unlock()
	defer w.p.mu.Lock()
	if w.layout == nil {
		w.layout = w.p.spec.newLayout(w.program)
	}
	for _, one := range list {
		w.header = one.header
		if one.rows == nil {
			one.rows = &trace.Batch{}
		}
		w.layout.Move(one.rows)
	}
}

// program returns the code that the trace has described up to the current rows.
func (w *worker) program() *trace.Program { return w.header.Program }

func (w *worker) analyse(c *claim) {
	first := &c.blocks[0]
	w.header = first.header
	spec := w.p.spec
	spec.Start += first.first
	f := feed{analyses: spec.segmentTable(w.program, c.lone)}
	f.selectRows()
	blocks, follows := findOptional[contract.LayoutFollower](f.analyses)
	if follows && w.layout != nil {
		blocks.Succeed(w.layout)
	}
	done, ok := 0, true
	for ; ok && done < len(c.blocks) && !c.cut.Load(); done++ {
		b := &c.blocks[done]
		w.header, f.batch, f.mixed, f.next = b.header, b.rows, b.mixed, 0
		ok = f.analyseBatch() == nil
		c.done.Add(1)
	}
	var result *profile.Profile
	if ok {
		result = f.profile(&spec, *w.header, profile.Totals{}, profile.State{}, true)
	}
	p := w.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if follows {
		w.layout = blocks
	}
	c.to, c.result, c.ended = c.from+done, result, true
	w.layoutBlock = c.to
	p.notify()
}

// analyseBatch analyses all remaining rows of the batch.
func (f *feed) analyseBatch() error {
	for f.pending() || f.rest.pending() {
		if f.rest.pending() {
			f.rest.consume()
		} else if err := f.consume(); err != nil {
			return err
		}
	}
	return nil
}

// block is a batch of selected rows.
type block struct {
	rows       *trace.Batch
	mixed      bool   // the rows may contain events
	first      uint64 // number of references before the block
	references uint64
	header     *trace.Header  // the trace's header at the end of the block
	left       profile.Totals // totals of the rows that were not selected since the end of the previous block
	position   position       // position of the reader after the block
	moves      bool           // the rows change the layout of memory blocks
}

// claim is a segment of blocks that a worker analyses.
type claim struct {
	from, to int     // range of block numbers, which becomes shorter if the segment is cut
	blocks   []block // the blocks [from, to)

	lone bool         // whether the segment is analysed without the sharing analysis: see segmentInfo
	done atomic.Int64 // number of blocks analysed so far
	cut  atomic.Bool  // the worker must stop at the end of the current block

	ended  bool             // the worker has finished the segment
	result *profile.Profile // the result of the segment; nil: the analysis failed
}

// The first segments are short, so that all workers start early. The length then grows as long as
// the cost of joining a segment exceeds a small share of the cost of analysing it.
const (
	leastBlocks = 16      // 65,536 references if every row is a reference
	firstBlocks = 1 << 6  // initial number of blocks of a segment
	mostRows    = 1 << 24 // maximum number of rows that are waiting or being analysed
	mostBlocks  = 256     // maximum number of blocks of a segment
	rowBytes    = 41      // maximum number of bytes of a row
	rowsShare   = 8       // rows may use at most 1/rowsShare of the memory limit
)

// sizes determines the lengths of segments.
type sizes struct {
	workers int // number of workers, including the live analyses
	blocks  int // current number of blocks of a segment
	most    int
	fixed   bool
	rest    int // no segment begins before this block, because joining would take too long
	pause   int
}

func newSizes(workers, blocks int, memoryBytes uint64) sizes {
	s := sizes{workers: workers, blocks: blocks, fixed: blocks > 0}
	rows := mostRows
	if memoryBytes > 0 {
		rows = int(min(mostRows, memoryBytes/rowsShare/rowBytes))
	}
	s.most = max(leastBlocks, min(mostBlocks, rows/trace.DefaultRows/(workers+2)))
	if !s.fixed {
		s.blocks = firstBlocks
	}
	return s
}

// maxBlocks returns the maximum number of blocks that are waiting or being analysed.
func (s *sizes) maxBlocks() int { return (s.workers + 2) * s.blocks }

// adaptTo adapts the sizes to the cost of joining a segment that ends before block number end.
func (s *sizes) adaptTo(p *profile.Profile, end int) {
	if s.fixed {
		return
	}
	cost, references := joinCost(p), p.Totals.AllReferences()
	switch {
	case cost > references/2 && s.blocks == s.most:
		s.pause = max(2*s.pause, 8*s.blocks)
		s.rest = end + s.pause
	case cost > references/16:
		s.blocks = min(2*s.blocks, s.most)
	default:
		s.pause = 0
	}
}

// claims contains the segments that workers analyse, in the order of the trace.
type claims struct {
	sizes
	list []*claim
}

// nextBlocks chooses the blocks [from, to) for an idle worker; the range is empty if too few blocks
// are available. The parameter live is the number of the block that the live analyses have reached.
// All blocks before block number end are available, and the parameter last is true if no more
// blocks will follow. The blocks between two claims are left to the live analyses, whose results
// need not be joined. Ideally, the live analyses reach a claim exactly when the worker has finished
// it.
func (c *claims) nextBlocks(live, end int, last bool) (from, to int) {
	reserve, frontier := 0, live
	for _, taken := range c.list {
		reserve += taken.from - frontier
		frontier = taken.to
	}
	gap := 0
	if 2*reserve < c.blocks {
		gap = c.blocks
	}
	most := c.blocks
	if left := end - frontier; last && !c.fixed {
		share := left / c.workers
		if gap > 0 {
			gap, most = max(1, min(gap, share)), min(most, max(1, (left-share)/(c.workers-1)))
		} else if most = min(most, left); most > leastBlocks {
			most = max(leastBlocks, min(most, (left+reserve)/c.workers+1))
		}
	}
	from = max(frontier+gap, c.rest)
	if to = from + most; to > end && last {
		to = end
	}
	if to > end || to-from < leastBlocks && !c.fixed {
		return from, from
	}
	return from, max(from, to)
}
