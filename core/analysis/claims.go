package analysis

import (
	"sync/atomic"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// block is a batch of selected rows.
type block struct {
	rows       *trace.Batch
	mixed      bool   // events may be among the rows
	first      uint64 // references before it
	references uint64
	header     *trace.Header  // what the trace had told by then
	left       profile.Totals // left out, from the block before to this one
	position   position       // of the reader behind it
	moves      bool           // rows tell where blocks of memory lie
}

// claim is a segment of blocks that a worker analyses.
type claim struct {
	from, to int     // numbers of blocks; to moves back where the segment is cut
	blocks   []block // those

	lone bool         // without sharing: see part
	done atomic.Int64 // blocks analysed
	cut  atomic.Bool  // it shall end at the next block

	ended  bool             // the worker is done with it,
	result *profile.Profile // and this is the segment; nil: it failed
}

// Segments begin short, so that there is work for all soon, and grow while joining them costs
// more than a small part of analysing them.
const (
	leastBlocks = 16      // 65,536 references, if every row is one
	firstBlocks = 1 << 6  // of a segment at the beginning
	mostRows    = 1 << 24 // that wait or are being analysed
	mostBlocks  = 256     // of a segment
	rowBytes    = 41      // that a row takes at most
	rowsShare   = 8       // of the memory is the most for rows
)

// sizes decides how long segments are.
type sizes struct {
	workers int // the live analyses among them
	blocks  int // of a segment
	most    int
	fixed   bool
	rest    int // no claim begins before this block: joining does not pay
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

// room returns how many blocks may wait or be analysed at a time.
func (s *sizes) room() int { return (s.workers + 2) * s.blocks }

// learn adapts the sizes to the cost of joining a segment that ends before a block.
func (s *sizes) learn(p *profile.Profile, to int) {
	if s.fixed {
		return
	}
	cost, references := joinCost(p), p.Totals.AllReferences()
	switch {
	case cost > references/2 && s.blocks == s.most:
		s.pause = max(2*s.pause, 8*s.blocks)
		s.rest = to + s.pause
	case cost > references/16:
		s.blocks = min(2*s.blocks, s.most)
	default:
		s.pause = 0
	}
}

// claims are the segments that workers have, ascending.
type claims struct {
	sizes
	list []*claim
}

// next chooses the blocks that a free worker takes, up to end; from == to: none yet. The live
// analyses come to block at next. last says that there will be no more blocks. Between two
// claims remain blocks for the live analyses, whose results need not be joined: they should
// come to a claim when it is done.
func (c *claims) next(at, end int, last bool) (from, to int) {
	reserve, frontier := 0, at
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
