package sample

import (
	"math/bits"
	"slices"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/analysis/communication"
	"github.com/stackglass/stackglass/core/analysis/locality"
	"github.com/stackglass/stackglass/core/analysis/sharing"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// thinned has analyses of threads see the references to the lines of a sample, at one
// line size, and no others. What a reference touches of several lines are as many rows.
type thinned struct {
	of        *kept
	lineBytes uint32
	shift     uint

	distances    *locality.Analysis
	stacks       *sharing.Analysis       // nil where it is not asked for
	communicated *communication.Analysis // nil where it is not, or at another line size

	batch  *trace.Batch
	rows   []uint32 // of the whole batch, by row of this one
	totals profile.Totals

	threads map[uint32]*ofThread
	latest  *ofThread
	thread  uint32 // whose latest is
	failed  error
}

// ofThread are a thread's accesses to lines, all of them, and whether some are in the
// sample.
type ofThread struct {
	accesses uint64
	sampled  bool
}

func newThinned(k *kept, lineBytes uint32, w analysis.Wanted) *thinned {
	t := &thinned{of: k, lineBytes: lineBytes, shift: uint(bits.TrailingZeros32(lineBytes)), batch: trace.NewBatch(0), threads: map[uint32]*ofThread{}}
	t.distances = locality.New([]uint32{lineBytes}, 0, false, true)
	if w.Communication && lineBytes == w.LineBytes {
		t.communicated = communication.New(lineBytes, k.sites, w.Decides)
	}
	if w.Sharing != nil {
		o := *w.Sharing
		o.LineBytes = []uint32{lineBytes}
		if t.stacks = sharing.New(o, t.distances); t.communicated != nil {
			t.communicated.Follow(t.stacks)
		}
	}
	return t
}

func (t *thinned) close() {
	if t.stacks != nil {
		t.stacks.Close()
	}
	t.distances.Close()
}

// begin prepares for rows of a batch.
func (t *thinned) begin(b *trace.Batch) {
	t.reset(b.Thread != nil)
	t.latest = nil
}

func (t *thinned) reset(threads bool) {
	t.rows = t.rows[:0]
	if t.batch.Reset(); threads {
		t.batch.NeedThread()
	}
}

// take takes some bytes of row i of a batch.
func (t *thinned) take(b *trace.Batch, i int, addr trace.Addr, bytes uint32) {
	thread := uint32(0)
	if b.Thread != nil {
		thread = b.Thread[i]
	}
	if t.latest == nil || thread != t.thread {
		t.turnTo(thread)
	}
	first, end := addr>>t.shift, addr+uint64(max(bytes, 1))-1
	last := end >> t.shift
	if last < first {
		last, end = first, addr // beyond the last address
	}
	t.latest.accesses += last - first + 1
	for line := first; line <= last; line++ {
		if mix(line, t.of.options.Seed) > t.of.options.Threshold {
			continue
		}
		from := max(addr, line<<t.shift)
		upto := min(end, line<<t.shift|(uint64(t.lineBytes)-1))
		t.add(b.Kind[i], from, uint32(upto-from+1), thread, i)
	}
}

func (t *thinned) turnTo(thread uint32) {
	t.thread, t.latest = thread, t.threads[thread]
	if t.latest == nil {
		t.latest = new(ofThread)
		t.threads[thread] = t.latest
	}
}

// add adds a row to those that are handed on.
func (t *thinned) add(kind trace.Kind, addr trace.Addr, bytes, thread uint32, row int) {
	if t.batch.Len() == t.batch.Cap() {
		if err := t.flush(); t.failed == nil {
			t.failed = err
		}
	}
	t.batch.Append(kind, addr, bytes, thread, 0)
	t.rows = append(t.rows, uint32(row))
	t.totals.References[kind]++
	t.totals.Bytes[kind] += uint64(bytes)
	t.latest.sampled = true
}

// flush hands rows on.
func (t *thinned) flush() error {
	if t.failed != nil || t.batch.Len() == 0 {
		return t.failed
	}
	defer t.reset(t.batch.Thread != nil)
	if t.communicated != nil {
		t.communicated.Among(t.rows, t.of.done)
		if err := t.communicated.Consume(t.batch); err != nil {
			return err
		}
	}
	if t.stacks != nil {
		if err := t.stacks.Consume(t.batch); err != nil {
			return err
		}
	}
	return t.distances.Consume(t.batch)
}

// made is how many accesses some threads made.
func (t *thinned) made(threads []uint32) (sum uint64) {
	for _, thread := range threads {
		if n := t.threads[thread]; n != nil {
			sum += n.accesses
		}
	}
	return sum
}

// result is what the analyses counted of the lines of the sample, as if there were no
// others.
func (t *thinned) result(of *profile.Profile, state bool) *profile.Profile {
	p := &profile.Profile{Input: of.Input, Totals: t.totals}
	for thread, n := range t.threads {
		if n.sampled && len(of.Totals.Threads) > 0 {
			p.Totals.Threads = append(p.Totals.Threads, thread)
		}
	}
	slices.Sort(p.Totals.Threads)
	if state {
		p.Segment = new(profile.Segment)
	}
	if t.communicated != nil {
		t.communicated.Result(p, state)
	}
	if t.stacks != nil {
		t.stacks.Result(p, state)
	}
	t.distances.Result(p, state)
	return p
}

func (t *thinned) restore(p *profile.Profile) error {
	t.totals = p.Totals
	t.totals.Threads = nil
	if t.communicated != nil {
		if err := t.communicated.Restore(p); err != nil {
			return err
		}
	}
	if t.stacks != nil {
		if err := t.stacks.Restore(p); err != nil {
			return err
		}
	}
	return t.distances.Restore(p)
}
