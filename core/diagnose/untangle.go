package diagnose

import (
	"io"
	"sync/atomic"

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
// or nil if this would not reduce the number of nodes or would take too long.
func (r *run) untangled(t *loops.Tree) *loops.Tree {
	if len(r.p.Totals.Threads) < 2 || t.Rows() > mostReplayed {
		return nil
	}
	turns, last, event := uint64(0), uint32(0), false
	for n := range t.Nodes() {
		for n.IsLoop() {
			n, _ = n.Item(0)
		}
		of := t.References()[n.Ref()]
		if of.Thread != last {
			if last = of.Thread; !event { // after an event, the next thread begins anyway
				turns++
			}
			event = false
		}
		event = event || !stays(of.Kind)
	}
	if turns < leastTurns || t.Rows()/turns > mostTurn {
		return nil
	}
	of := newUntangling(float64(t.Size().Nodes) / float64(t.Rows()))
	rest, b := t.Expand(), trace.NewBatch(0)
	stopped := false
	for {
		err := rest.Next(b)
		if err == io.EOF {
			break
		}
		if stopped = err != nil || of.failed.Load() || !r.GoOn(); stopped {
			break
		}
		of.take(b)
	}
	if out := of.finish(); out != nil && !stopped && 2*out.Size().Nodes < t.Size().Nodes {
		return out
	}
	return nil
}

// untangling keeps the rows of each thread until an event. While untangling takes the next rows, a
// goroutine folds the earlier rows.
type untangling struct {
	number  map[uint32]int // index of each thread in the slice threads
	threads []rowsOfThread
	rows    int
	folder  *loops.Folder
	folded  int         // number of rows passed to the folder
	most    float64     // share of the rows of the tangled trace that begin a node
	failed  atomic.Bool // folding failed, or does not reduce the number of nodes
	// the rows of the threads between two events
	full, free chan []rowsOfThread
	done       chan struct{}
}

// rowsOfThread contains the rows of a thread. Rows are kept in batches of about mostTogether rows,
// because a batch that grows would be copied repeatedly. Only the first batches contain rows.
type rowsOfThread struct {
	batches []*trace.Batch
	filled  int
}

// mostTogether is the number of rows after which the next batch begins.
const mostTogether = 1 << 15

// last returns the batch to which the next rows are appended.
func (t *rowsOfThread) last() *trace.Batch {
	if t.filled == 0 || t.batches[t.filled-1].Len() >= mostTogether {
		if t.filled++; t.filled > len(t.batches) {
			t.batches = append(t.batches, trace.NewBatch(mostTogether+mostTogether/8))
		}
	}
	return t.batches[t.filled-1]
}

// newUntangling starts the goroutine. The caller must call finish.
func newUntangling(most float64) *untangling {
	const sets = 2
	u := &untangling{folder: loops.NewFolder(0), most: most, number: map[uint32]int{}, full: make(chan []rowsOfThread, sets), free: make(chan []rowsOfThread, sets), done: make(chan struct{})}
	for range sets {
		u.free <- nil
	}
	go func() {
		for threads := range u.full {
			for i := range threads {
				t := &threads[i]
				for _, b := range t.batches[:t.filled] {
					if !u.failed.Load() && !u.fold(b) {
						u.failed.Store(true)
					}
					b.Reset()
				}
				t.filled = 0
			}
			u.free <- threads
		}
		close(u.done)
	}()
	return u
}

// fold folds a batch. It returns false if the folder failed, or if so many rows begin a new node that
// the result would have about as many nodes as the tangled trace.
func (u *untangling) fold(b *trace.Batch) bool {
	if u.folder.Consume(b) != nil {
		return false
	}
	u.folded += b.Len()
	return u.folded < leastFolded || float64(u.folder.Unpredicted()) <= u.most*float64(u.folded)
}

// If the result does not have fewer nodes after leastFolded rows, folding is given up.
const leastFolded = 1 << 20

// finish folds the remaining rows. It returns nil if folding failed.
func (u *untangling) finish() *loops.Tree {
	u.flush()
	close(u.full)
	if <-u.done; u.failed.Load() {
		return nil
	}
	return u.folder.Finish()
}

// mostTangled is the largest number of rows that are kept.
const mostTangled = 1 << 21

func (u *untangling) take(b *trace.Batch) {
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
			n = len(u.number)
			u.number[b.Thread[i]] = n
		}
		event := !stays(b.Kind[i])
		if event || u.rows > mostTangled {
			u.flush()
		}
		for n >= len(u.threads) {
			u.threads = append(u.threads, rowsOfThread{})
		}
		to := u.threads[n].last()
		to.AppendRows(b, i, end)
		if u.rows += end - i; event {
			u.flush()
		}
		i = end
	}
}

// flush passes on the rows that are kept.
func (u *untangling) flush() {
	if u.rows > 0 {
		u.full <- u.threads
		u.threads, u.rows = <-u.free, 0
	}
}

// stays reports whether a row of this kind belongs to a single thread and cannot synchronise
// threads.
func stays(kind trace.Kind) bool {
	return kind.IsReference() || kind == trace.BlockEntry || kind == trace.BareBlock
}
