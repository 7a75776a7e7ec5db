// Package pages computes stack distances of pages, for the page sizes of [profile.PageSizes]. The
// misses of a TLB follow from these distances (MODELS §2.2).
//
// A program accesses few pages for a long time. The analysis therefore divides the references of
// each thread into epochs. In an epoch, a thread accesses at most [profile.LeastEntries] different
// pages of the smallest size. If a page has already been accessed in the epoch, its distance is
// below profile.LeastEntries, and the analysis only stores the number of the access. At the end of
// an epoch, the analysis computes the distances of the first accesses in the epoch, on the stacks
// as they were at the beginning of the epoch. It then moves the epoch's pages to the top of the
// stacks, in the order of their last accesses. This is exact for the same reason as joining
// segments (MODELS §9). Distances below profile.LeastEntries are counted as 0, so the result does
// not depend on where epochs end.
//
// Each thread has its own stacks, because each core has its own TLBs, and stores do not invalidate
// the entries of a TLB.
package pages

import (
	"errors"
	"maps"
	"math/bits"
	"slices"

	"github.com/stackglass/stackglass/core/analysis/contract"
	"github.com/stackglass/stackglass/core/codec"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace"
)

const (
	sizes     = len(profile.PageSizes)
	smallest  = 1 << baseShift // profile.PageSizes[0]
	epoch     = profile.LeastEntries
	slotBits  = 6
	queueRoom = 512
	noPage    = ^trace.Line(0) // not a page number
	hash      = 0x9e3779b97f4a7c15
	baseShift = 12 // binary logarithm of the smallest page size
)

// Analysis computes the stack distances of data pages. Use [New] to create one.
type Analysis struct {
	mergeable bool
	// whether the result is omitted, because the run continues a run of an earlier version, which did
	// not count pages, or has more than profile.MaxThreads threads
	unknown bool
	found   [sizes]profile.Pages
	threads map[uint32]*stacks
}

// stacks contains the pages of one thread.
type stacks struct {
	now     uint64 // number of the thread's next access
	slots   [1 << slotBits]slot
	list    [epoch]trace.Line // the pages of the epoch, in the order of first accesses
	n       int
	bySize  [sizes]*stack.Exact
	queues  [sizes]queue
	top     [sizes]trace.Line   // the most recently used page, including queued accesses
	touches [sizes][]trace.Line // first accesses to pages, in order; only if the result is mergeable
}

// queue contains accesses that the stack has not performed yet.
type queue struct {
	pages   [queueRoom]trace.Line
	counted [queueRoom]bool // whether the access's distance is counted
	n       int
}

// slot contains a page of the epoch and the number of its last access. The page determines the slot.
type slot struct {
	page trace.Line
	last uint64
}

var (
	_ contract.Analysis      = (*Analysis)(nil)
	_ contract.PieceConsumer = (*Analysis)(nil)
)

// New returns an analysis. The parameter mergeable means that the result can be appended to an
// earlier segment.
func New(mergeable bool) *Analysis {
	a := &Analysis{mergeable: mergeable, threads: map[uint32]*stacks{}}
	for i, bytes := range profile.PageSizes {
		a.found[i].PageBytes = bytes
	}
	return a
}

func newStacks() *stacks {
	t := new(stacks)
	for i := range t.slots {
		t.slots[i].page = noPage
	}
	for i := range t.bySize {
		t.bySize[i], t.top[i] = stack.NewExact(), noPage
	}
	return t
}

// of returns the stacks of a thread. It returns nil, and omits the result of the analysis, if there
// are too many threads.
func (a *Analysis) of(thread uint32) *stacks {
	t := a.threads[thread]
	if t == nil {
		if len(a.threads) == profile.MaxThreads {
			a.unknown = true
			clear(a.threads)
			return nil
		}
		t = newStacks()
		a.threads[thread] = t
	}
	return t
}

// Takes implements [contract.Analysis]. The analysis reads only references.
func (a *Analysis) Takes() (events trace.Kinds, sites, pcs bool) { return 0, false, false }

// Consume implements [contract.Analysis].
func (a *Analysis) Consume(b *trace.Batch) error {
	if a.unknown {
		return nil
	}
	for lo := 0; lo < b.Len(); {
		hi, thread := b.Len(), uint32(0)
		if b.Thread != nil {
			thread = b.Thread[lo]
			for hi = lo + 1; hi < b.Len() && b.Thread[hi] == thread; hi++ {
			}
		}
		t := a.of(thread)
		if t == nil {
			return nil
		}
		t.consume(a, b.Addr[lo:hi], b.Bytes[lo:hi], b.Kind[lo:hi])
		lo = hi
	}
	return nil
}

func (t *stacks) consume(a *Analysis, addrs []trace.Addr, bytes []uint32, kinds []trace.Kind) {
	bytes, kinds = bytes[:len(addrs)], kinds[:len(addrs)]
	now, references := t.now, uint64(0)
	for i, addr := range addrs {
		if !trace.DataKinds.Has(kinds[i]) {
			continue
		}
		references++
		page := addr >> baseShift
		s := &t.slots[page*hash>>(64-slotBits)]
		if s.page != page {
			t.add(a, page)
		}
		s.last = now
		now++
		if addr&(smallest-1)+uint64(bytes[i]) > smallest {
			t.now = now
			t.touchOthers(a, addr, uint64(bytes[i]))
			now = t.now
		}
	}
	t.now = now
	for i := range a.found {
		a.found[i].Accesses += references
	}
}

// touchOthers accesses all pages of a reference except the first. A reference that extends beyond
// the end of the address space accesses only its first page.
func (t *stacks) touchOthers(a *Analysis, addr trace.Addr, bytes uint64) {
	last := addr + bytes - 1
	if last < addr {
		return
	}
	for page := addr>>baseShift + 1; page <= last>>baseShift; page++ {
		s := &t.slots[page*hash>>(64-slotBits)]
		if s.page != page {
			t.add(a, page)
		}
		s.last = t.now
		t.now++
	}
	for i, size := range profile.PageSizes {
		a.found[i].Accesses += last/size - addr/size
	}
}

// ConsumePiece implements [contract.PieceConsumer].
func (a *Analysis) ConsumePiece(b *trace.Batch, from, end uint64) {
	if a.unknown || !trace.DataKinds.Has(b.Kind[0]) {
		return
	}
	thread := uint32(0)
	if b.Thread != nil {
		thread = b.Thread[0]
	}
	addr := b.Addr[0] + from
	t := a.of(thread)
	if t == nil {
		return
	}
	t.consume(a, []trace.Addr{addr}, []uint32{uint32(end - from)}, b.Kind[:1])
	for i, size := range profile.PageSizes {
		if from > 0 && addr%size != 0 {
			a.found[i].Accesses-- // the previous piece has accessed this page
		}
	}
}

// add adds a page to the epoch, or begins a new epoch.
func (t *stacks) add(a *Analysis, page trace.Line) {
	s := &t.slots[page*hash>>(64-slotBits)]
	if t.n == epoch || s.page != noPage {
		t.endEpoch(a)
	}
	s.page = page
	t.list[t.n] = page
	t.n++
}

// endEpoch queues the accesses that change the stacks: the epoch's first accesses, and if their order
// differs from the order of the last accesses, all pages in the latter order.
func (t *stacks) endEpoch(a *Analysis) {
	if t.n == 0 {
		return
	}
	var order [epoch]trace.Line // the pages in the order of last accesses
	var times [epoch]uint64
	for i, page := range t.list[:t.n] {
		s := &t.slots[page*hash>>(64-slotBits)]
		k := i
		for ; k > 0 && times[k-1] > s.last; k-- {
			times[k], order[k] = times[k-1], order[k-1]
		}
		times[k], order[k] = s.last, page
		s.page = noPage
	}
	first, last := t.list[:t.n], order[:t.n]
	for i := range t.bySize {
		if i > 0 {
			shift := uint(bits.TrailingZeros64(profile.PageSizes[i] / profile.PageSizes[i-1]))
			first, last = larger(first, shift, false), larger(last, shift, true)
		}
		if len(first) == 1 && first[0] == t.top[i] {
			continue // the distance is 0, and the stack does not change
		}
		t.top[i] = last[len(last)-1]
		t.access(a, i, first, true)
		if !slices.Equal(first, last) {
			t.access(a, i, last, false)
		}
	}
	t.n = 0
}

// larger replaces the pages of a list by larger pages, and removes duplicates. Of equal pages, it
// keeps the last one if the parameter keepLast is true, and otherwise the first one.
func larger(list []trace.Line, shift uint, keepLast bool) []trace.Line {
	n := 0
	for _, page := range list {
		page >>= shift & 63
		if n > 0 && list[n-1] == page {
			continue
		}
		at := slices.Index(list[:n], page)
		if at >= 0 && !keepLast {
			continue
		}
		if at >= 0 {
			copy(list[at:n], list[at+1:n])
			n--
		}
		list[n] = page
		n++
	}
	return list[:n]
}

// access queues accesses to different pages. The queue makes the stack faster, which processes
// several accesses at a time.
func (t *stacks) access(a *Analysis, size int, list []trace.Line, counted bool) {
	q := &t.queues[size]
	if q.n+len(list) > len(q.pages) {
		t.settle(a, size)
	}
	for _, page := range list {
		q.pages[q.n], q.counted[q.n] = page, counted
		q.n++
	}
}

// settle performs the queued accesses of a page size, and counts their distances.
func (t *stacks) settle(a *Analysis, size int) {
	q := &t.queues[size]
	var distances [queueRoom]uint32
	t.bySize[size].Distances(q.pages[:q.n], distances[:q.n])
	found := &a.found[size]
	for k, d := range distances[:q.n] {
		switch {
		case !q.counted[k]:
		case d == stack.Cold:
			found.Cold++
			if a.mergeable {
				t.touches[size] = append(t.touches[size], q.pages[k])
			}
		case d >= epoch:
			found.Distances.Add(uint64(d))
		}
	}
	q.n = 0
}

// finish completes the counts of all references so far.
func (t *stacks) finish(a *Analysis) {
	t.endEpoch(a)
	for size := range t.bySize {
		t.settle(a, size)
	}
}

// Result implements [contract.Analysis].
func (a *Analysis) Result(p *profile.Profile, state bool) {
	if p.Pages = nil; a.unknown {
		return
	}
	for _, t := range a.threads {
		t.finish(a)
	}
	for i := range a.found {
		found := a.found[i]
		found.Distances = profile.Histogram{}
		found.Distances.Merge(&a.found[i].Distances)
		p.Pages = append(p.Pages, found)
	}
	if state {
		w := codec.Writer(nil)
		a.code(w)
		p.Segment.Pages = w.Out
	}
}

// code reads or writes the stacks and the first accesses of all threads.
func (a *Analysis) code(c *codec.Coder) {
	threads := slices.Sorted(maps.Keys(a.threads))
	codec.Slice(c, &threads, 1+2*sizes, func(thread *uint32) {
		c.U32(thread)
		t := a.of(*thread)
		if t == nil {
			t = newStacks() // the state is damaged: see Restore
		}
		for i := range t.bySize {
			list := t.bySize[i].Stack()
			c.Stack(&list)
			if c.Reads() {
				t.push(i, list)
			}
			c.Stack(&t.touches[i])
		}
	})
}

// push pushes pages onto a stack. The list begins with the most recently used page.
func (t *stacks) push(size int, list []trace.Line) {
	var distance [1]uint32
	for _, page := range slices.Backward(list) {
		t.bySize[size].Distances([]trace.Line{page}, distance[:])
		t.top[size] = page
	}
}

// Close implements [contract.Analysis].
func (a *Analysis) Close() {
	for _, t := range a.threads {
		t.finish(a)
	}
	a.threads = nil
}

var errState = errors.New("the pages in the checkpoint are damaged; analyse the trace again from its start")

// Restore implements [contract.Analysis]. If the run was saved by an earlier version, which did not
// count pages, the pages remain unknown.
func (a *Analysis) Restore(p *profile.Profile) error {
	if a.unknown = p.Pages == nil; a.unknown {
		return nil
	}
	r := codec.Reader(p.Segment.Pages)
	a.code(r)
	if r.Failed() || r.More() || a.unknown {
		return errState
	}
	a.addCounts(p)
	return nil
}

func (a *Analysis) addCounts(p *profile.Profile) {
	for i := range a.found {
		a.found[i].Accesses += p.Pages[i].Accesses
		a.found[i].Cold += p.Pages[i].Cold
		a.found[i].Distances.Merge(&p.Pages[i].Distances)
	}
}

// Append implements [contract.Analysis]. The first accesses of the segment are not cold if the page
// was accessed before the segment.
func (a *Analysis) Append(next *profile.Profile) error {
	segment := New(true)
	if err := segment.Restore(next); err != nil {
		return err
	}
	if a.unknown = a.unknown || segment.unknown; a.unknown {
		return nil
	}
	a.addCounts(next)
	for _, thread := range slices.Sorted(maps.Keys(segment.threads)) {
		t, of := a.of(thread), segment.threads[thread]
		if t == nil {
			return nil
		}
		t.finish(a)
		for i := range t.bySize {
			touches := of.touches[i]
			if uint64(len(touches)) > a.found[i].Cold {
				return errState
			}
			a.found[i].Cold -= uint64(len(touches)) // replay counts them again if they remain cold
			for part := range slices.Chunk(touches, epoch) {
				t.access(a, i, part, true)
			}
			t.settle(a, i)
			t.push(i, of.bySize[i].Stack())
		}
	}
	return nil
}
