package communication

import (
	"errors"
	"slices"

	"github.com/stackglass/stackglass/core/analysis/index"
	"github.com/stackglass/stackglass/core/codec"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// Share is a part of the analysis. Several runs read the same trace, each run computes one share,
// and [Join] combines the shares. Segments of a trace cannot be used instead: which thread wrote a
// value, and how deep the value's line lies on this thread's stack, depends on all earlier records.
//
//   - If Depths is false, the share contains the values in the pages whose hash modulo Of is Number:
//     events, transfers, classes, owners and false sharing. Pages are independent of each other.
//   - If Depths is true, the share contains the depths of lines on the coherent stacks of the cores
//     whose number modulo Of is Number. These stacks are independent of each other. The share tracks
//     only the last writer of each line, and needs neither sites nor data objects.
type Share struct {
	Depths     bool
	Number, Of uint8 // Number is below Of
}

// Shares returns all shares of an analysis that is divided by pages and by cores into the given
// numbers of parts.
func Shares(pages, cores int) (list []Share) {
	for n := range pages {
		list = append(list, Share{Number: uint8(n), Of: uint8(pages)})
	}
	for n := range cores {
		list = append(list, Share{Depths: true, Number: uint8(n), Of: uint8(cores)})
	}
	return list
}

// MostShares is the maximum number of shares by pages or by cores.
const MostShares = mostThreads

func (s *Share) hasPage(page uint64) bool {
	return s.Of <= 1 || uint8(index.Hash(page)%uint64(s.Of)) == s.Number
}

// HasCore reports whether a share of depths contains the stack of a core.
func (s Share) HasCore(core uint8) bool { return s.Of <= 1 || core%s.Of == s.Number }

// Only restricts a new analysis to a share.
func (a *Analysis) Only(share Share) {
	a.share = share
	if share.Depths {
		a.writers = &lineWriters{}
	}
}

// lineWriters contains the last writer of each line. A share of depths uses it instead of memory.
type lineWriters struct {
	at   index.Cached // index in list, by line
	list []lineWriter
}

type lineWriter struct {
	used    uint64 // see cell.used
	number  uint32 // the thread that last wrote the line
	slot    uint8  // the slot of this thread
	written bool
}

// trackLines records the lines of a reference to the bytes from first to last, inclusive.
func (a *Analysis) trackLines(first, last trace.Addr) {
	r, w := &a.current, a.writers
	for line := first >> a.lineShift; ; line++ {
		n, known := w.at.Find(line)
		if !known {
			n = uint32(len(w.list))
			w.at.Add(line, n)
			w.list = append(w.list, lineWriter{})
		}
		l := &w.list[n]
		if l.written && l.slot != r.thread {
			transfer := r.loads && l.used&r.bit == 0
			if transfer {
				l.used |= r.bit
			}
			a.sources.queue = append(a.sources.queue, lineEvent{row: r.row, writer: l.number, line: line, from: l.slot, to: r.thread, transfer: transfer})
		}
		if r.stores {
			*l = lineWriter{number: r.number, slot: r.thread, written: true}
		}
		if line == last>>a.lineShift {
			return
		}
	}
}

// numbering assigns numbers to sites, data objects and pairs of both. [sites.Analysis] implements
// numbering for a run.
type numbering interface {
	Code(slot uint32) uint32
	Data(object uint32) uint32
	Slot(code uint32) uint32
	Object(data uint32) uint32
	Pair(number uint32) (slot, object uint32)
	PairOf(slot, object uint32) uint32
}

// profileNumbers is the numbering of joined shares. It assigns numbers to the indices of a profile
// in the order in which they appear. Number 0 belongs to profile.NoSite.
type profileNumbers struct{ code, data, pairs numbers }

// numbers assigns numbers to keys.
type numbers struct {
	of   map[uint64]uint32
	keys []uint64
}

func newProfileNumbers() *profileNumbers {
	p := &profileNumbers{}
	for _, n := range []*numbers{&p.code, &p.data, &p.pairs} {
		n.of = map[uint64]uint32{}
	}
	p.Slot(profile.NoSite)
	p.Object(profile.NoSite)
	return p
}

func (n *numbers) number(key uint64) uint32 {
	number, known := n.of[key]
	if !known {
		number = uint32(len(n.keys))
		n.of[key] = number
		n.keys = append(n.keys, key)
	}
	return number
}

func (p *profileNumbers) Code(slot uint32) uint32   { return uint32(p.code.keys[slot]) }
func (p *profileNumbers) Data(object uint32) uint32 { return uint32(p.data.keys[object]) }
func (p *profileNumbers) Slot(code uint32) uint32   { return p.code.number(uint64(code)) }
func (p *profileNumbers) Object(data uint32) uint32 { return p.data.number(uint64(data)) }

func (p *profileNumbers) Pair(number uint32) (slot, object uint32) {
	key := p.pairs.keys[number]
	return uint32(key >> 32), uint32(key)
}

func (p *profileNumbers) PairOf(slot, object uint32) uint32 {
	return p.pairs.number(uint64(slot)<<32 | uint64(object))
}

// ShareState returns the result of a share. The sites analysis, if there is one, must already have
// written its result.
func (a *Analysis) ShareState() []byte {
	f := stateCoder{Coder: codec.Writer([]byte{}), sites: a.numbers}
	f.shareState(a)
	return f.Out
}

// shareState reads or writes a share: its description, and the state of its analysis.
func (f *stateCoder) shareState(a *Analysis) {
	f.Flag(&a.share.Depths)
	f.u8(&a.share.Number)
	f.u8(&a.share.Of)
	f.failUnless(a.share.Number < a.share.Of)
	a.codeAll(f)
}

// Join combines the results of all shares of an analysis, in any order. Join returns nil if the trace
// has fewer than two threads. The result refers to sites and data objects by their indices in the
// profile of a run that analyses the whole trace.
func Join(lineBytes uint32, states ...[]byte) (*profile.Communication, error) {
	var whole *Analysis
	parts, of, numbers := map[Share]bool{}, map[bool]int{}, newProfileNumbers()
	for _, state := range states {
		a := newAnalysis(lineBytes)
		a.numbers = numbers
		f := stateCoder{Coder: codec.Reader(state), sites: numbers}
		if f.shareState(a); f.Failed() || f.More() || !a.rebuildAndCheck() {
			return nil, errShares
		}
		parts[a.share], of[a.share.Depths] = true, int(a.share.Of)
		if whole == nil {
			whole = a
		} else if !whole.join(a) {
			return nil, errShares
		}
	}
	if len(states) != len(parts) || len(states) != of[false]+of[true] || of[false] == 0 {
		return nil, errShares
	}
	for _, s := range Shares(of[false], of[true]) {
		if !parts[s] {
			return nil, errShares
		}
	}
	if whole.Threads() < 2 {
		return nil, nil
	}
	whole.sources.joined = of[true] > 0
	return whole.Told(), nil
}

var errShares = errors.New("the results of the communication analysis are damaged, or belong to different runs; run the job again")

// join adds the results of another share of the same run. join returns false if the runs differ. The
// other analysis must not be used afterwards.
func (a *Analysis) join(b *Analysis) bool {
	w := &a.windows
	if a.done != b.done || !slices.Equal(a.threads.numbers, b.threads.numbers) || a.threads.beyond != b.threads.beyond ||
		w.size != b.windows.size || w.next != b.windows.next || len(w.closed) != len(b.windows.closed) {
		return false
	}
	for g := range b.flows {
		for place, c := range b.flows[g] {
			if c.events > 0 {
				a.flows[g].at(uint32(place)).join(c)
			}
		}
	}
	for i, closed := range b.windows.closed {
		w.closed[i] = sumWindows(nil, w.closed[i], closed)
		w.count(closed)
	}
	for i := range b.pairs.list {
		p := &b.pairs.list[i]
		a.pairs.countsFor(p.site, p.pair, p.place).join(p.counts)
	}
	for i := range b.sources.list {
		from := &b.sources.list[i]
		to := a.sources.between(from.place)
		to.events.Merge(&from.events)
		to.transfers.Merge(&from.transfers)
	}
	for n := range b.owners.objects {
		if a.owners.grow(uint32(n)); len(b.owners.objects[n].parts) > 0 {
			a.owners.objects[n].join(&b.owners.objects[n])
		}
	}
	return a.memory.join(&b.memory)
}

// join adds the counts of another share.
func (o *owned) join(b *owned) {
	if len(o.parts) == 0 {
		*o = *b
		return
	}
	for o.shift < b.shift {
		o.coarsen()
	}
	o.coverOffsets(b.first<<b.shift, (b.first+uint64(len(b.parts)))<<b.shift-1)
	for b.shift < o.shift {
		b.coarsen()
	}
	at := int(b.first - o.first)
	for i := range b.parts {
		o.parts[at+i].join(&b.parts[i])
	}
	for thread, counts := range b.counts {
		if len(counts) == 0 {
			continue
		}
		o.count(uint8(thread))
		for i, n := range counts {
			o.counts[thread][at+i] += n
		}
	}
}

// join adds the lines and pages of another share. join returns false if a page belongs to both.
func (m *memory) join(b *memory) bool {
	for n, number := range b.pageNumbers() {
		if _, known := m.pageAt.Find(number); known {
			return false
		}
		*m.pages.first(m.pageOf(number)) = *b.pages.first(uint32(n))
	}
	for n := range b.lines.count {
		from := b.lines.first(n)
		if !m.restoreLine(from.number, from.owner, from.shared) {
			return false
		}
		to := m.lines.first(m.lines.count - 1)
		to.references, to.site = from.references, from.site
		if !from.shared {
			copy(m.private.run(to.words), b.private.run(from.words))
			continue
		}
		copy(m.cells.run(to.words), b.cells.run(from.words))
		s := m.shares.first(to.words)
		*s = *b.shares.first(from.words)
		next := s.tallies
		for s.tallies = 0; next != 0; next = b.tallies[next].next {
			t := b.tallies[next]
			t.line = to.words
			m.addTally(s, t)
		}
	}
	return true
}
