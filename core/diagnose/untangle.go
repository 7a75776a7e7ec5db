package diagnose

import (
	"io"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/trace"
)

// If a machine runs threads at the same time, or switches between them often, the trace is tangled:
// rows of other threads lie between the rows of a thread. Loops are then broken into pieces, and
// changes of nests cannot be tried. The order of threads between two events is random anyway (see
// schedule.go), so the rows of each thread can be grouped.

// Traces are untangled if threads take turns at least this often, with at most this average number
// of rows in a turn.
const (
	leastTurns = 1000
	mostTurn   = 1 << 10
)

// untangled returns a trace in which the rows of each thread between two events follow each other,
// or nil if this would not reduce the number of nodes, or takes too long.
func (r *run) untangled(t *loops.Tree) *loops.Tree {
	if len(r.p.Totals.Threads) < 2 || t.Rows() > mostReplayed {
		return nil
	}
	turns, last := uint64(0), uint32(0)
	for n := range t.Nodes() {
		for n.IsLoop() {
			n, _ = n.Item(0)
		}
		if thread := t.References()[n.Ref()].Thread; thread != last {
			turns, last = turns+1, thread
		}
	}
	if turns < leastTurns || t.Rows()/turns > mostTurn {
		return nil
	}
	of := untangling{folder: loops.NewFolder(0), number: map[uint32]int{}}
	rest, b := t.Expand(), trace.NewBatch(0)
	for {
		err := rest.Next(b)
		if err == io.EOF {
			break
		}
		if err != nil || !r.GoOn() || of.take(b) != nil {
			return nil
		}
	}
	if of.flush() != nil {
		return nil
	}
	if out := of.folder.Finish(); 2*out.Size().Nodes < t.Size().Nodes {
		return out
	}
	return nil
}

// untangling keeps the rows of each thread until an event.
type untangling struct {
	folder  *loops.Folder
	number  map[uint32]int // number of each thread in rows
	threads []*trace.Batch
	rows    int
}

// mostTangled is the largest number of rows that are kept.
const mostTangled = 1 << 21

func (u *untangling) take(b *trace.Batch) error {
	if b.Thread == nil {
		b.NeedThread()
	}
	for i := 0; i < b.Len(); {
		end := i + 1
		for end < b.Len() && b.Thread[end] == b.Thread[i] && stays(b.Kind[end]) && stays(b.Kind[i]) {
			end++
		}
		n, ok := u.number[b.Thread[i]]
		if !ok {
			n = len(u.threads)
			u.number[b.Thread[i]] = n
			u.threads = append(u.threads, trace.NewBatch(0))
		}
		event := !stays(b.Kind[i])
		if event || u.rows > mostTangled {
			if err := u.flush(); err != nil {
				return err
			}
		}
		u.threads[n].NeedLike(b)
		u.threads[n].AppendRows(b, i, end)
		if u.rows += end - i; event {
			if err := u.flush(); err != nil {
				return err
			}
		}
		i = end
	}
	return nil
}

// flush passes on the rows that are kept.
func (u *untangling) flush() error {
	for _, b := range u.threads {
		if b.Len() == 0 {
			continue
		}
		if err := u.folder.Consume(b); err != nil {
			return err
		}
		b.Reset()
	}
	u.rows = 0
	return nil
}

// stays reports whether rows of a kind are not events at which threads may meet.
func stays(kind trace.Kind) bool {
	return kind.IsReference() || kind == trace.BlockEntry || kind == trace.BareBlock
}
