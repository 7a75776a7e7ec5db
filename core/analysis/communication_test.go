package analysis_test

import (
	"bytes"
	"cmp"
	"io"
	"maps"
	"math/bits"
	"math/rand/v2"
	"reflect"
	"slices"
	"sort"
	"testing"

	"pgregory.net/rapid"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/analysis/communication"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/stack/stacktest"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// naiveCommunication is a direct implementation of the definition of the analysis.
type naiveCommunication struct {
	p      *profile.Profile // a profile of the same trace with sites and data objects
	where  *naiveSites      // finds the data object that contains an address
	size   [3]uint64        // size of the granules, in bytes
	memory [3]map[uint64]*naiveGranule
	flows  [3]map[[2]uint32]*profile.Flow
	pairs  map[[5]uint32]*profile.SitePair
	byTime []naiveEvent
	owners map[uint32]map[uint64]*naiveWord // keyed by data object, and by the offset, in words, within the memory block
	stacks map[uint32]*stacktest.Holes      // coherent stacks, by core
	depths map[[2]uint32]*profile.SourceDistances
	slots  []uint32 // threads in the order of their first references
	done   uint64
}

type naiveGranule struct {
	written        bool
	writer         uint32
	wrote          uint32 // last thread that wrote; its references are attributed to the thread in the field "writer"
	site           uint32
	used           map[uint32]bool
	users          map[uint32]bool
	producers      map[uint32]bool
	references     uint64
	events, untrue uint64
	holders        map[uint32]bool       // threads that have a valid copy of the line
	falses         map[naiveFalse]uint64 // number of misses
	stores         uint64
	handovers      uint64 // number of stores that follow a store by another thread
	object         uint32 // object of the last reference
	begin          uint64
	offsets        map[naiveFalse]uint64
}

// naiveFalse identifies false misses by the object, the two sites and the two threads.
type naiveFalse struct{ object, store, reference, from, to uint32 }

type naiveEvent struct {
	reference uint64
	from, to  uint32
	transfer  bool
}

// naiveWord contains the counts of a part of a data object.
type naiveWord struct {
	first                     uint64
	thread                    uint32
	by                        map[uint32]uint64
	readers, writers, sources map[uint32]bool
	events, untrue            uint64
}

func communicationByDefinition(got *profile.Profile, where *naiveSites, b *trace.Batch, kinds trace.Kinds) *profile.Communication {
	n := &naiveCommunication{
		p: got, where: where, size: [3]uint64{8, where.line, 4096},
		pairs: map[[5]uint32]*profile.SitePair{}, owners: map[uint32]map[uint64]*naiveWord{},
		stacks: map[uint32]*stacktest.Holes{}, depths: map[[2]uint32]*profile.SourceDistances{},
	}
	for g := range n.memory {
		n.memory[g], n.flows[g] = map[uint64]*naiveGranule{}, map[[2]uint32]*profile.Flow{}
	}
	for i := range b.Kind {
		switch {
		case b.Kind[i].IsReference() && kinds.Has(b.Kind[i]):
			n.reference(b, i)
			n.done++
		case b.Kind[i] == trace.Alloc:
			where.alloc(b, i)
		case b.Kind[i] == trace.Free:
			where.live = slices.DeleteFunc(where.live, func(at naiveBlock) bool { return at.from == b.Addr[i] && at.of.kind == profile.HeapObject })
		}
	}
	return n.result()
}

// codeIndex and dataIndex return the index of a site or of an object in the profile.
func (n *naiveCommunication) codeIndex(number uint32) uint32 {
	return uint32(slices.IndexFunc(n.p.Sites.Code, func(s profile.Site) bool { return s.Number == number }))
}

func (n *naiveCommunication) dataIndex(of objectID) uint32 {
	return uint32(slices.IndexFunc(n.p.Sites.Data, func(o profile.DataObject) bool {
		return o.Kind == of.kind && o.Number == of.number && (of.number != profile.NoSite || o.Function == of.function && o.Name == of.name)
	}))
}

// blockBegin returns the first address of the memory block that contains an address, or 0 if no block
// contains it.
func (n *naiveCommunication) blockBegin(addr uint64) uint64 {
	for _, at := range n.where.live {
		if addr >= at.from && addr < at.from+at.bytes {
			return at.from
		}
	}
	for _, g := range n.where.p.Objects {
		if g.Addr != 0 && addr >= g.Addr && addr < g.Addr+g.Bytes {
			return g.Addr
		}
	}
	return 0
}

// granule adds a reference to the counts of a granule, and returns the granule.
func (n *naiveCommunication) granule(g int, number uint64, thread uint32) *naiveGranule {
	m := n.memory[g][number]
	if m == nil {
		m = &naiveGranule{users: map[uint32]bool{}, producers: map[uint32]bool{}, used: map[uint32]bool{}, holders: map[uint32]bool{}, falses: map[naiveFalse]uint64{}, offsets: map[naiveFalse]uint64{}}
		n.memory[g][number] = m
	}
	m.references++
	return m
}

// classifyUse reports whether the use of a value is an event, and whether the use is a transfer.
func (n *naiveCommunication) classifyUse(g int, m *naiveGranule, thread uint32, loads bool) (event, transfer bool) {
	if !m.written || m.writer == thread {
		return false, false
	}
	m.events++
	f := n.flows[g][[2]uint32{m.writer, thread}]
	if f == nil {
		f = &profile.Flow{From: m.writer, To: thread}
		n.flows[g][[2]uint32{m.writer, thread}] = f
	}
	f.Events++
	if transfer = loads && !m.used[thread]; transfer {
		m.used[thread] = true
		m.producers[m.writer] = true
		f.Transfers++
		f.Bytes += n.size[g]
	}
	return true, transfer
}

// slotThread returns the thread to which the references of the given thread are attributed.
func (n *naiveCommunication) slotThread(thread uint32) uint32 {
	if !slices.Contains(n.slots, thread) {
		n.slots = append(n.slots, thread)
	}
	return n.slots[min(slices.Index(n.slots, thread), profile.MaxThreads-1)]
}

func (n *naiveCommunication) reference(b *trace.Batch, i int) {
	addr, bytes, thread := b.Addr[i], uint64(max(b.Bytes[i], 1)), n.slotThread(b.Thread[i])
	loads := b.Kind[i] != trace.Store && b.Kind[i] != trace.RangeWrite
	stores := b.Kind[i] == trace.Store || b.Kind[i] == trace.Modify || b.Kind[i] == trace.RangeWrite
	site, object, begin := n.codeIndex(b.Site[i]), n.dataIndex(n.where.objectOf(addr, b.Site[i])), n.blockBegin(addr)
	sourced := map[[2]uint64]bool{} // granules with a word for which this reference causes an event
	for w := addr / 8; w <= (addr+bytes-1)/8; w++ {
		m := n.granule(0, w, thread)
		m.users[thread] = true
		part := n.part(object, (max(w*8, begin)-begin)/64, thread)
		part.by[thread]++
		if loads {
			part.readers[thread] = true
		}
		if stores {
			part.writers[thread] = true
		}
		event, transfer := n.classifyUse(0, m, thread, loads)
		if event {
			sourced[[2]uint64{1, w * 8 / n.size[1]}], sourced[[2]uint64{2, w * 8 / 4096}] = true, true
			n.byTime = append(n.byTime, naiveEvent{n.done, m.writer, thread, transfer})
			key := [5]uint32{m.site, site, object, m.writer, thread}
			if n.pairs[key] == nil {
				n.pairs[key] = &profile.SitePair{Producer: m.site, Consumer: site, Object: object, From: m.writer, To: thread}
			}
			n.pairs[key].Events++
			if transfer {
				n.pairs[key].Transfers++
				part.sources[m.writer] = true
			}
		}
	}
	for g := 1; g < 3; g++ {
		for number := addr / n.size[g]; number <= (addr+bytes-1)/n.size[g]; number++ {
			m := n.granule(g, number, thread)
			m.object, m.begin = object, begin
			lost := m.users[thread] && !m.holders[thread]
			m.users[thread], m.holders[thread] = true, true
			if stores {
				m.holders = map[uint32]bool{thread: true}
			}
			event, transfer := n.classifyUse(g, m, thread, loads)
			if event && g == 1 {
				n.countDepth(m, b.Thread[i], number, transfer)
			}
			if g == 1 {
				n.touch(b.Thread[i], number, stores)
			}
			untrue := event && !sourced[[2]uint64{uint64(g), number}]
			if untrue {
				m.untrue++
			}
			if event && g == 1 {
				first := max(addr/8, number*n.size[1]/8)
				part := n.part(object, (max(first*8, begin)-begin)/64, thread)
				part.events++
				if untrue {
					part.untrue++
				}
				if untrue && lost {
					key := naiveFalse{object, m.site, site, m.writer, thread}
					m.falses[key]++
					offset := max(number*n.size[1], begin) - begin
					if least, met := m.offsets[key]; !met || offset < least {
						m.offsets[key] = offset
					}
				}
			}
		}
	}
	if !stores {
		return
	}
	for g := range n.memory {
		for number := addr / n.size[g]; number <= (addr+bytes-1)/n.size[g]; number++ {
			m := n.memory[g][number]
			if m.stores++; m.written && m.writer != thread {
				m.handovers++
			}
			m.written, m.writer, m.wrote, m.site, m.used = true, thread, b.Thread[i], site, map[uint32]bool{}
		}
	}
}

// firstOnCore returns the first thread on the core of the given thread.
func (n *naiveCommunication) firstOnCore(thread uint32) uint32 {
	if len(n.p.Sharing) > 0 && len(n.p.Totals.Threads) > profile.MaxCores { // a separate test covers traces with more threads than cores
		for _, c := range n.p.Sharing[0].Cores {
			if slices.Contains(c.Threads, thread) {
				return c.Threads[0]
			}
		}
	}
	for _, together := range n.where.spec.Cores {
		if slices.Contains(together, thread) {
			return together[0]
		}
	}
	return thread
}

// countDepth counts an event by the depth of the line in the stack of the thread that last wrote
// the word.
func (n *naiveCommunication) countDepth(m *naiveGranule, to uint32, line trace.Line, transfer bool) {
	if n.firstOnCore(m.wrote) == n.firstOnCore(to) {
		return
	}
	ends := [2]uint32{m.writer, n.slotThread(to)}
	d := n.depths[ends]
	if d == nil {
		d = &profile.SourceDistances{From: ends[0], To: ends[1]}
		n.depths[ends] = d
	}
	depth := uint64(n.stacks[n.firstOnCore(m.wrote)].Do(stacktest.Event{Op: stack.AskOp, Line: line}))
	d.Distances.Add(depth)
	if transfer {
		d.Transfers.Add(depth)
	}
}

// touch performs an access to a line on the stack of a thread. A store removes the line from all
// other stacks.
func (n *naiveCommunication) touch(thread uint32, line trace.Line, stores bool) {
	thread = n.firstOnCore(thread)
	if n.stacks[thread] == nil {
		n.stacks[thread] = new(stacktest.Holes)
	}
	n.stacks[thread].Do(stacktest.Event{Op: stack.AccessOp, Line: line})
	for other, s := range n.stacks {
		if other != thread && stores {
			s.Do(stacktest.Event{Op: stack.LoseOp, Line: line})
		}
	}
}

func (n *naiveCommunication) part(object uint32, offset uint64, thread uint32) *naiveWord {
	if n.owners[object] == nil {
		n.owners[object] = map[uint64]*naiveWord{}
	}
	w := n.owners[object][offset]
	if w == nil {
		w = &naiveWord{first: n.done, thread: thread, by: map[uint32]uint64{}, readers: map[uint32]bool{}, writers: map[uint32]bool{}, sources: map[uint32]bool{}}
		n.owners[object][offset] = w
	}
	return w
}

func naiveClass(users, producers int, events, untrue uint64) profile.SharingClass {
	switch {
	case users == 1:
		return profile.PrivateData
	case 2*untrue > events:
		return profile.FalselyShared
	case producers == 0:
		return profile.ReadShared
	case producers == 1:
		return profile.ProducerConsumer
	}
	return profile.Migratory
}

func flowList(flows map[[2]uint32]*profile.Flow) (list []profile.Flow) {
	for _, f := range flows {
		list = append(list, *f)
	}
	sort.Slice(list, func(i, j int) bool {
		return list[i].From < list[j].From || list[i].From == list[j].From && list[i].To < list[j].To
	})
	return list
}

func (n *naiveCommunication) result() *profile.Communication {
	c := &profile.Communication{Beyond: uint32(max(len(n.slots), profile.MaxThreads) - profile.MaxThreads)}
	for g, bytes := range n.size {
		if len(c.Granules) > 0 && c.Granules[len(c.Granules)-1].Bytes == uint32(bytes) {
			continue
		}
		out := profile.Granule{Bytes: uint32(bytes), Flows: flowList(n.flows[g])}
		for _, m := range n.memory[g] {
			class := &out.Classes[naiveClass(len(m.users), len(m.producers), m.events, m.untrue)]
			class.Granules++
			class.References += m.references
			class.Events += m.events
		}
		c.Granules = append(c.Granules, out)
	}
	for _, f := range c.Granules[0].Flows {
		c.Messages += f.Bytes
	}
	for _, p := range n.pairs {
		c.Pairs = append(c.Pairs, *p)
	}
	sort.Slice(c.Pairs, func(i, j int) bool { return profile.ComparePairs(&c.Pairs[i], &c.Pairs[j]) < 0 })
	n.windows(c)
	for _, object := range slices.Sorted(maps.Keys(n.owners)) {
		c.Owners = append(c.Owners, n.ownership(object))
	}
	n.falseSharing(c)
	n.lineSharing(c)
	c.Sources = []profile.SourceDistances{}
	for _, d := range n.depths {
		c.Sources = append(c.Sources, *d)
	}
	slices.SortFunc(c.Sources, func(x, y profile.SourceDistances) int {
		return slices.Compare([]uint32{x.From, x.To}, []uint32{y.From, y.To})
	})
	return c
}

func (n *naiveCommunication) windows(c *profile.Communication) {
	c.Window = 1024
	for (n.done+c.Window-1)/c.Window > 64 {
		c.Window *= 2
	}
	for from := uint64(0); from < n.done; from += c.Window {
		flows := map[[2]uint32]*profile.Flow{}
		for _, e := range n.byTime {
			if e.reference < from || e.reference >= from+c.Window {
				continue
			}
			key := [2]uint32{e.from, e.to}
			if flows[key] == nil {
				flows[key] = &profile.Flow{From: e.from, To: e.to}
			}
			flows[key].Events++
			if e.transfer {
				flows[key].Transfers++
				flows[key].Bytes += 8
			}
		}
		c.Windows = append(c.Windows, profile.FlowWindow{Flows: flowList(flows)})
	}
}

func (n *naiveCommunication) ownership(object uint32) profile.Ownership {
	offsets := slices.Sorted(maps.Keys(n.owners[object]))
	shift := 0
	for offsets[len(offsets)-1]>>shift-offsets[0]>>shift >= profile.MaxParts {
		shift++
	}
	o := profile.Ownership{Object: object, PartBytes: 64 << shift, First: offsets[0] >> shift}
	o.Parts = make([]profile.OwnedPart, offsets[len(offsets)-1]>>shift-o.First+1)
	for i := range o.Parts {
		sum := &naiveWord{first: 1 << 63, by: map[uint32]uint64{}, readers: map[uint32]bool{}, writers: map[uint32]bool{}, sources: map[uint32]bool{}}
		for _, offset := range offsets {
			if offset>>shift != o.First+uint64(i) {
				continue
			}
			w := n.owners[object][offset]
			if w.first < sum.first {
				sum.first, sum.thread = w.first, w.thread
			}
			sum.events += w.events
			sum.untrue += w.untrue
			for t, count := range w.by {
				sum.by[t] += count
			}
			maps.Copy(sum.readers, w.readers)
			maps.Copy(sum.writers, w.writers)
			maps.Copy(sum.sources, w.sources)
		}
		if len(sum.by) == 0 {
			continue
		}
		p := &o.Parts[i]
		*p = profile.OwnedPart{
			FirstTouch: sum.thread, Readers: uint32(len(sum.readers)), Writers: uint32(len(sum.writers)),
			Class: naiveClass(len(sum.by), len(sum.sources), sum.events, sum.untrue),
		}
		for _, t := range slices.Sorted(maps.Keys(sum.by)) {
			p.References += sum.by[t]
			if sum.by[t] > p.Own {
				p.Most, p.Own = t, sum.by[t]
			}
		}
	}
	return o
}

func (n *naiveCommunication) falseSharing(c *profile.Communication) {
	type set struct {
		out     profile.FalseSharing
		threads map[[2]uint32]uint64
	}
	sets := map[[3]uint32]*set{}
	for number, m := range n.memory[1] {
		if naiveClass(len(m.users), len(m.producers), m.events, m.untrue) != profile.FalselyShared || len(m.falses) == 0 {
			continue
		}
		sums := map[[3]uint32]uint64{}
		misses := uint64(0)
		for f, n := range m.falses {
			sums[[3]uint32{f.object, f.store, f.reference}] += n
			misses += n
		}
		keys := slices.Collect(maps.Keys(sums))
		slices.SortFunc(keys, func(x, y [3]uint32) int {
			if sums[x] != sums[y] {
				return int(sums[y]) - int(sums[x])
			}
			return slices.Compare(x[:], y[:])
		})
		s := sets[keys[0]]
		if s == nil {
			s = &set{threads: map[[2]uint32]uint64{}}
			s.out = profile.FalseSharing{Object: keys[0][0], Sites: [2]uint32(keys[0][1:]), Offset: 1<<64 - 1, Apart: 1<<32 - 1}
			sets[keys[0]] = s
		}
		s.out.Lines++
		s.out.Events += m.untrue
		s.out.Misses += misses
		s.out.Apart = min(s.out.Apart, n.minDistance(number))
		for f, events := range m.falses {
			if [3]uint32{f.object, f.store, f.reference} == keys[0] {
				s.threads[[2]uint32{f.from, f.to}] += events
				s.out.Offset = min(s.out.Offset, m.offsets[f])
			}
		}
	}
	c.False = []profile.FalseSharing{}
	for _, s := range sets {
		ends := slices.Collect(maps.Keys(s.threads))
		slices.SortFunc(ends, func(x, y [2]uint32) int {
			if s.threads[x] != s.threads[y] {
				return int(s.threads[y]) - int(s.threads[x])
			}
			return slices.Compare(x[:], y[:])
		})
		s.out.Threads = ends[0]
		c.False = append(c.False, s.out)
	}
	slices.SortFunc(c.False, func(x, y profile.FalseSharing) int {
		if x.Misses != y.Misses {
			return int(y.Misses) - int(x.Misses)
		}
		return slices.Compare([]uint32{x.Object, x.Sites[0], x.Sites[1]}, []uint32{y.Object, y.Sites[0], y.Sites[1]})
	})
}

// lineSharing considers lines in which several threads own words, and ranks data structures by how
// often these lines move.
func (n *naiveCommunication) lineSharing(c *profile.Communication) {
	sets, most, owners := map[uint32]*profile.LineSharing{}, map[uint32]uint64{}, map[uint32]map[uint32]bool{}
	perLine := n.size[1] / 8
	for number, m := range n.memory[1] {
		if len(m.users) < 2 {
			continue
		}
		// owner describes the words that a thread owns, and its accesses to these words.
		type owner struct {
			thread               uint32
			uses, stores, atMost uint64
			site                 uint32
		}
		var list []*owner
		ownerOf := map[uint64]uint32{}
		for i := range perLine {
			w := n.memory[0][number*perLine+i]
			if w == nil || !w.written || w.handovers*8 > w.references-w.events {
				continue
			}
			at := slices.IndexFunc(list, func(o *owner) bool { return o.thread == w.writer })
			if at < 0 {
				at = len(list)
				list = append(list, &owner{thread: w.writer})
			}
			ownerOf[i] = w.writer
			uses := w.references - w.events
			list[at].uses, list[at].stores = list[at].uses+uses, list[at].stores+min(w.stores, 255)
			if uses > list[at].atMost {
				list[at].atMost, list[at].site = uses, w.site
			}
		}
		list = slices.DeleteFunc(list, func(o *owner) bool { return o.stores < 16 })
		slot := func(thread uint32) int { return slices.Index(n.slots, thread) }
		slices.SortFunc(list, func(x, y *owner) int {
			return cmp.Or(cmp.Compare(y.uses, x.uses), cmp.Compare(slot(x.thread), slot(y.thread)))
		})
		// For each thread, taking contains the smaller of two numbers: how often the thread missed
		// because of another thread's store, and how often other threads missed because of this
		// thread's stores.
		var pingPongs, all uint64
		taking := map[uint32]uint64{}
		for _, t := range n.slots {
			var suffered, caused uint64
			for f, k := range m.falses {
				if f.to == t {
					suffered += k
				}
				if f.from == t {
					caused += k
				}
			}
			all += suffered
			if taking[t] = min(suffered, caused); taking[t] == 0 {
				delete(taking, t)
			}
			pingPongs += taking[t]
		}
		between := slices.SortedFunc(maps.Keys(taking), func(x, y uint32) int {
			return cmp.Or(cmp.Compare(taking[y], taking[x]), cmp.Compare(slot(x), slot(y)))
		})
		if len(between) < 2 {
			pingPongs = 0
		} else if 2*pingPongs >= all {
			pingPongs = all
		}
		one := profile.LineSharing{Lines: 1, PingPongs: pingPongs}
		threads := map[uint32]bool{}
		if len(list) >= 2 {
			all := uint64(0)
			for _, o := range list {
				all += o.uses
				threads[o.thread] = true
			}
			one.Moves = max(pingPongs, min(all, 2*(all-list[0].uses)))
			one.Threads, one.Sites = [2]uint32{list[0].thread, list[1].thread}, [2]uint32{list[0].site, list[1].site}
			one.Apart = uint32(n.size[1])
			for i, t := range ownerOf {
				for j, u := range ownerOf {
					if threads[t] && threads[u] && t != u && i > j {
						one.Apart = min(one.Apart, uint32(i-j)*8)
					}
				}
			}
		} else if pingPongs >= 4 {
			one.Moves, one.Threads, one.Apart = pingPongs, [2]uint32(between), n.minDistance(number)
			threads[between[0]], threads[between[1]] = true, true
			one.Sites = [2]uint32{n.storeOfMost(m, between[0]), n.storeOfMost(m, between[1])}
		} else {
			continue
		}
		one.Object, one.Offset = m.object, max(number*n.size[1], m.begin)-m.begin
		s := sets[m.object]
		if s == nil {
			sets[m.object], most[m.object], owners[m.object] = &one, one.Moves, threads
			continue
		}
		maps.Copy(owners[m.object], threads)
		key := func(l *profile.LineSharing) []uint32 { return slices.Concat(l.Sites[:], l.Threads[:]) }
		if one.Moves > most[m.object] || one.Moves == most[m.object] && slices.Compare(key(&one), key(s)) < 0 {
			most[m.object], s.Sites, s.Threads = one.Moves, one.Sites, one.Threads
		}
		s.Lines, s.Moves, s.PingPongs = s.Lines+1, s.Moves+one.Moves, s.PingPongs+pingPongs
		s.Apart, s.Offset = min(s.Apart, one.Apart), min(s.Offset, one.Offset)
	}
	c.LineSharing = []profile.LineSharing{}
	for object, s := range sets {
		s.Owners = uint32(len(owners[object]))
		c.LineSharing = append(c.LineSharing, *s)
	}
	slices.SortFunc(c.LineSharing, profile.CompareLineSharing)
}

// storeOfMost returns the index of the thread's store that causes the most misses. If several
// stores cause the same number of misses, storeOfMost returns the smallest index.
func (n *naiveCommunication) storeOfMost(m *naiveGranule, from uint32) (site uint32) {
	best := uint64(0)
	sums := map[uint32]uint64{}
	for f, k := range m.falses {
		if f.from == from {
			sums[f.store] += k
		}
	}
	for store, k := range sums {
		if k > best || k == best && store < site {
			best, site = k, store
		}
	}
	return site
}

// minDistance returns the minimum distance between two words of a line that are accessed by different
// threads.
func (n *naiveCommunication) minDistance(number uint64) uint32 {
	least := uint32(n.size[1])
	of := func(i uint64) map[uint32]bool {
		if m := n.memory[0][number*n.size[1]/8+i]; m != nil {
			return m.users
		}
		return nil
	}
	for i := range n.size[1] / 8 {
		for j := range i {
			for t := range of(i) {
				for u := range of(j) {
					if t != u {
						least = min(least, uint32(i-j)*8)
					}
				}
			}
		}
	}
	return least
}

// sharingSteps returns steps of a few threads, which mostly access the same few words.
func sharingSteps(rng *rand.Rand, p *trace.Program, steps int, threads uint32) []tracetest.Step {
	list := allocatingSteps(rng, p, steps)
	const from, words = 1 << 12, 24
	first := 0
	if rng.IntN(2) == 0 {
		first = rng.IntN(steps) // all steps before this one belong to one thread
	}
	for i := range list {
		s := &list[i]
		s.Thread = 5
		if i >= first {
			s.Thread += rng.Uint32N(threads)
		}
		if p.Sites[s.Block].Kind.IsReference() && rng.IntN(3) > 0 {
			s.Values[0] = from + 8*rng.Uint64N(words)
		}
	}
	return list
}

func TestCommunicationEqualsNaive(t *testing.T) {
	program := allocatingProgram()
	owned, taken := 0, 0 // number of data structures in which several threads own words of one line; number of lines that a store invalidated
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 61))
		spec := analysis.Spec{Analyses: analysis.Communication, Kinds: trace.AllKinds, LineBytes: []uint32{1 << (3 + rng.UintN(10))}}.WithDefaults()
		if seed%2 == 0 {
			spec.Analyses |= analysis.Sharing
		}
		if seed%4 == 0 {
			spec.Cores = [][]uint32{{5, 7}, {6, 8, 100}}
		}
		whole := tracetest.Rows(program, sharingSteps(rng, program, 1+rng.IntN(3000), 1+rng.Uint32N(5))...)
		p := resultOf(t, spec, tracetest.NewProgramReader(program, whole, rng.IntN(300)))
		if len(p.Totals.Threads) < 2 {
			if p.Communication != nil {
				t.Fatalf("seed %d: the profile contains communication for %d threads, want none", seed, len(p.Totals.Threads))
			}
			continue
		}
		where := &naiveSites{p: program, spec: spec, line: uint64(spec.LineBytes[0]), data: map[objectID]*profile.DataObject{}}
		want := communicationByDefinition(p, where, whole, spec.Kinds)
		if spec.Analyses&analysis.Sharing == 0 {
			want.Sources = nil
		}
		equalCommunication(t, p.Communication, want)
		sharesEqual(t, rng, spec, want, func() trace.Reader { return tracetest.NewProgramReader(program, whole, rng.IntN(300)) })
		for _, l := range want.LineSharing {
			if owned++; l.PingPongs > 0 {
				taken++
			}
		}
	}
	if owned == 0 || taken == 0 {
		t.Errorf("%d entries of LineSharing were compared, %d of them with PingPongs; want at least one of each", owned, taken)
	}
}

// sharesEqual divides the communication analysis into random numbers of shares, each of which is
// computed in a run of its own, and joins the shares in random order.
func sharesEqual(t *testing.T, rng *rand.Rand, spec analysis.Spec, want *profile.Communication, read func() trace.Reader) {
	t.Helper()
	pages, cores := 1+rng.IntN(5), 0
	if want.Sources != nil {
		cores = 1 + rng.IntN(5)
	}
	states := analysis.SharesOf(spec, pages, cores, read)
	rng.Shuffle(len(states), func(i, j int) { states[i], states[j] = states[j], states[i] })
	got, err := communication.Join(spec.SiteLineBytes(), states...)
	if err != nil {
		t.Fatal(err)
	}
	equalCommunication(t, got, want)
	other := rng.IntN(len(states))
	for what, wrong := range map[string][][]byte{
		"a missing share":   slices.Delete(slices.Clone(states), other, other+1),
		"an equal share":    append(slices.Clone(states), states[other]),
		"a truncated share": append(slices.Delete(slices.Clone(states), other, other+1), states[other][:rng.IntN(len(states[other]))]),
	} {
		if what == "a missing share" && (pages == 1 || cores == 1) {
			continue // an analysis with fewer runs has the same shares
		}
		if _, err := communication.Join(spec.SiteLineBytes(), wrong...); err == nil {
			t.Errorf("%d shares by page and %d by core: Join returns no error for %s", pages, cores, what)
		}
	}
}

// Threads after the 63rd are merged into one thread, although each of them has its own core.
func TestManyThreadsEqualNaive(t *testing.T) {
	program := allocatingProgram()
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 66))
		spec := analysis.Spec{Analyses: analysis.Communication | analysis.Sharing, Kinds: trace.AllKinds}.WithDefaults()
		if seed%2 == 0 {
			spec.Cores = [][]uint32{{5, 77, 78}, {70, 71, 72, 73, 80}}
		}
		whole := tracetest.Rows(program, sharingSteps(rng, program, 2000, 65+rng.Uint32N(20))...)
		reader := func() trace.Reader { return tracetest.NewProgramReader(program, whole, 1+rng.IntN(300)) }
		p := resultOf(t, spec, reader())
		where := &naiveSites{p: program, spec: spec, line: 64, data: map[objectID]*profile.DataObject{}}
		want := communicationByDefinition(p, where, whole, spec.Kinds)
		equalCommunication(t, p.Communication, want)
		sharesEqual(t, rng, spec, want, reader)
		if p.Communication.Beyond == 0 {
			t.Fatal("the trace does not have more threads than slots")
		}
		if got := resumed(t, spec, 4, reader); !bytes.Equal(got.Encode(), p.Encode()) {
			t.Error("the interruption changes the result")
		}
	}
}

// The size of windows doubles if the trace is long, and the size of parts doubles if the data
// object is large.
func TestLongCommunicationEqualsNaive(t *testing.T) {
	program := allocatingProgram()
	rng := rand.New(rand.NewPCG(1, 64))
	var steps []tracetest.Step
	for range 150_000 {
		steps = append(steps, tracetest.Step{Block: rng.Uint32N(3), Thread: rng.Uint32N(3), Values: []uint64{1<<18 + 64*(rng.Uint64N(1<<rng.UintN(15))^1<<13)}})
	}
	whole := tracetest.Rows(program, steps...)
	spec := analysis.Spec{Analyses: analysis.Communication}.WithDefaults()
	p := resultOf(t, spec, tracetest.NewProgramReader(program, whole, 0))
	where := &naiveSites{p: program, spec: spec, line: 64, data: map[objectID]*profile.DataObject{}}
	want := communicationByDefinition(p, where, whole, spec.Kinds)
	want.Sources = nil
	sharesEqual(t, rng, spec, want, func() trace.Reader { return tracetest.NewProgramReader(program, whole, 0) })
	equalCommunication(t, p.Communication, want)
	if c := p.Communication; c.Window <= 1024 || c.Owners[len(c.Owners)-1].PartBytes <= 64 {
		t.Errorf("windows have %d references, want more than 1024; parts have %d bytes, want more than 64", c.Window, c.Owners[len(c.Owners)-1].PartBytes)
	}
}

func equalCommunication(t rapid.TB, got, want *profile.Communication) {
	t.Helper()
	g, w := reflect.ValueOf(*got), reflect.ValueOf(*want)
	for i := range g.NumField() {
		if x, y := g.Field(i), w.Field(i); !reflect.DeepEqual(x.Interface(), y.Interface()) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", g.Type().Field(i).Name, x.Interface(), y.Interface())
		}
	}
	if t.Failed() {
		t.FailNow()
	}
}

// If very many source locations access a line, its false misses are attributed to the two locations
// that access the line most often, even if the run is interrupted.
func TestFalseSharingWithManySites(t *testing.T) {
	const references = 20_000
	rng := rand.New(rand.NewPCG(1, 65))
	var refs []tracetest.Ref
	for i := range references {
		thread := uint32(i % 8)
		ref := tracetest.Ref{Kind: trace.Store, Addr: 1<<16 + 8*uint64(thread), Bytes: 8, Thread: thread + 1, PC: 1<<22 + 4*rng.Uint64N(1000)}
		if thread == 2 || thread == 3 {
			ref.PC = 1<<21 + uint64(thread)
		}
		refs = append(refs, ref)
	}
	spec := analysis.Spec{Analyses: analysis.Communication}
	reader := func() trace.Reader { return tracetest.NewReader(tracetest.Of(refs...), 100) }
	p := resultOf(t, spec, reader())
	if list := p.Communication.False; len(list) != 1 || list[0].Lines != 1 || list[0].Misses != references-8 || list[0].Threads != [2]uint32{3, 4} {
		t.Errorf("the false sharing is %+v, want one line with %d misses, most of which are by thread 4 after stores by thread 3", list, references-8)
	}
	if got := resumed(t, spec, references/200, reader); !bytes.Equal(got.Encode(), p.Encode()) {
		t.Errorf("after an interruption, the false sharing is %+v, want %+v", got.Communication.False, p.Communication.False)
	}
}

func newRunner(t *testing.T, spec analysis.Spec, r trace.Reader) *analysis.Runner {
	t.Helper()
	runner, err := analysis.NewRunner(spec, r)
	if err != nil {
		t.Fatal(err)
	}
	return runner
}

// If a line has the size of a page (4,096 bytes) or of a word (8 bytes), this granularity is listed
// only once.
func TestCommunicationGranularities(t *testing.T) {
	program := allocatingProgram()
	steps := sharingSteps(rand.New(rand.NewPCG(1, 63)), program, 500, 3)
	for line, want := range map[uint32][]uint32{8: {8, 4096}, 64: {8, 64, 4096}, 4096: {8, 4096}} {
		p := resultOf(t, analysis.Spec{Analyses: analysis.Communication, LineBytes: []uint32{line}}, tracetest.NewProgramReader(program, tracetest.Rows(program, steps...), 0))
		var got []uint32
		for _, g := range p.Communication.Granules {
			got = append(got, g.Bytes)
		}
		if !slices.Equal(got, want) {
			t.Errorf("with lines of %d bytes, the granularities are %v, want %v", line, got, want)
		}
	}
}

// communicationOf analyses a trace of loads and stores of whole words, and returns its communication.
func communicationOf(t *testing.T, refs []tracetest.Ref) *profile.Communication {
	t.Helper()
	p := resultOf(t, analysis.Spec{Analyses: analysis.Communication}, tracetest.NewReader(tracetest.Of(refs...), 0))
	if p.Communication == nil {
		t.Fatal("the profile has no communication")
	}
	return p.Communication
}

func words(kind trace.Kind, thread uint32, first, n int) (refs []tracetest.Ref) {
	for i := range n {
		refs = append(refs, tracetest.Ref{Kind: kind, Addr: 1<<16 + 8*uint64(first+i), Bytes: 8, Thread: thread + 1})
	}
	return refs
}

// sums returns the total numbers of events and transfers in the flows of words, and checks that
// each transfer has 8 bytes.
func sums(t *testing.T, c *profile.Communication) (events, transfers uint64) {
	t.Helper()
	for _, f := range c.Granules[0].Flows {
		events += f.Events
		transfers += f.Transfers
		if f.Bytes != 8*f.Transfers {
			t.Errorf("a flow has %d bytes in %d transfers, want 8 bytes per transfer", f.Bytes, f.Transfers)
		}
	}
	if c.Messages != 8*transfers {
		t.Errorf("the messages have %d bytes, want %d", c.Messages, 8*transfers)
	}
	return events, transfers
}

// The test uses three traces with known traffic. In the first trace, n threads pass k values around
// a ring. In the second trace, the threads transpose n² values: each thread owns a row and reads a
// column. In the third trace, a thread broadcasts k values.
func TestKnownTraffic(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n, k := rapid.IntRange(2, 70).Draw(rt, "threads"), rapid.IntRange(1, 20).Draw(rt, "values")
		n = min(n, 16)
		var ring, transpose, broadcast []tracetest.Ref
		ring = append(ring, words(trace.Store, 0, 0, k)...)
		for i := 1; i <= n; i++ { // each thread copies its input into its own buffer, and reads the input twice
			from, to := (i-1)*32, i*32
			ring = append(ring, words(trace.Load, uint32(i%n), from, k)...)
			ring = append(ring, words(trace.Load, uint32(i%n), from, k)...)
			ring = append(ring, words(trace.Store, uint32(i%n), to, k)...)
		}
		for row := range n {
			transpose = append(transpose, words(trace.Store, uint32(row), row*n, n)...)
		}
		for column := range n {
			for row := range n {
				transpose = append(transpose, words(trace.Load, uint32(column), row*n+column, 1)...)
			}
		}
		broadcast = append(broadcast, words(trace.Store, 0, 0, k)...)
		for thread := range n {
			broadcast = append(broadcast, words(trace.Load, uint32(thread), 0, k)...)
		}
		for _, c := range []struct {
			name              string
			refs              []tracetest.Ref
			events, transfers int
		}{
			{"ring", ring, 2 * n * k, n * k},
			{"transpose", transpose, n*n - n, n*n - n},
			{"broadcast", broadcast, (n - 1) * k, (n - 1) * k},
		} {
			events, transfers := sums(t, communicationOf(t, c.refs))
			if events != uint64(c.events) || transfers != uint64(c.transfers) {
				rt.Errorf("%s: %d events and %d transfers, want %d and %d", c.name, events, transfers, c.events, c.transfers)
			}
		}
	})
}

// A reference to several words or to a range causes one event for each word. A store is not a
// transfer. A modify reference is both an event and a transfer.
func TestCommunicationByKind(t *testing.T) {
	at := func(kind trace.Kind, thread, bytes uint32) tracetest.Ref {
		return tracetest.Ref{Kind: kind, Addr: 1 << 20, Bytes: bytes, Thread: thread}
	}
	for name, c := range map[string]struct {
		refs              []tracetest.Ref
		events, transfers uint64
	}{
		"two words":        {[]tracetest.Ref{at(trace.Store, 1, 16), at(trace.Load, 2, 16)}, 2, 2},
		"a range":          {[]tracetest.Ref{at(trace.RangeWrite, 1, 10000), at(trace.RangeRead, 2, 10000)}, 1250, 1250},
		"a store":          {[]tracetest.Ref{at(trace.Store, 1, 8), at(trace.Store, 2, 8)}, 1, 0},
		"a modify":         {[]tracetest.Ref{at(trace.Store, 1, 8), at(trace.Modify, 2, 8), at(trace.Load, 2, 8)}, 1, 1},
		"loads again":      {[]tracetest.Ref{at(trace.Store, 1, 8), at(trace.Load, 2, 8), at(trace.Load, 2, 8)}, 2, 1},
		"a store between":  {[]tracetest.Ref{at(trace.Store, 1, 8), at(trace.Load, 2, 8), at(trace.Store, 1, 8), at(trace.Load, 2, 8)}, 2, 2},
		"nothing written":  {[]tracetest.Ref{at(trace.Load, 1, 8), at(trace.Load, 2, 8)}, 0, 0},
		"no size":          {[]tracetest.Ref{at(trace.Store, 1, 0), at(trace.Load, 2, 0)}, 1, 1},
		"the last address": {[]tracetest.Ref{{Kind: trace.Store, Addr: 1<<64 - 1, Bytes: 1, Thread: 1}, {Kind: trace.Load, Addr: 1<<64 - 8, Bytes: 8, Thread: 2}}, 1, 1},
		"a long range":     {[]tracetest.Ref{at(trace.RangeWrite, 1, 20<<20), at(trace.Load, 2, 8)}, 1, 1},
	} {
		if events, transfers := sums(t, communicationOf(t, c.refs)); events != c.events || transfers != c.transfers {
			t.Errorf("%s: %d events and %d transfers, want %d and %d", name, events, transfers, c.events, c.transfers)
		}
	}
}

// Threads after the 63rd are merged into one thread, regardless of their numbers.
func TestCommunicationWithManyThreads(t *testing.T) {
	var refs []tracetest.Ref
	for thread := range uint32(100) {
		refs = append(refs, tracetest.Ref{Kind: trace.Modify, Addr: 4096, Bytes: 8, Thread: 1<<32 - 1 - thread})
	}
	c := communicationOf(t, refs)
	events, transfers := sums(t, c)
	if c.Beyond != 36 || events != 63 || transfers != 63 {
		t.Errorf("%d threads share the last slot, with %d events and %d transfers; want 36, 63 and 63", c.Beyond, events, transfers)
	}
	if class := c.Granules[0].Classes[profile.Migratory]; class.Granules != 1 || class.References != 100 {
		t.Errorf("the migratory words are %+v, want one word with 100 references", class)
	}
}

// A trace with one thread, or without threads, has no communication.
func TestNoCommunication(t *testing.T) {
	for name, words := range map[string]string{"one thread": "1:Sa 1:La", "no threads": "Sa La"} {
		p := resultOf(t, analysis.Spec{Analyses: analysis.Communication}, tracetest.NewReader(tracetest.Lines(64, words), 0))
		if p.Communication != nil {
			t.Errorf("%s: %+v", name, p.Communication)
		}
	}
}

func TestCommunicationSaveRestore(t *testing.T) {
	program := allocatingProgram()
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 62))
		whole := tracetest.Rows(program, sharingSteps(rng, program, 100+rng.IntN(3000), 1+rng.Uint32N(5))...)
		spec := analysis.Spec{Analyses: analysis.Communication, Kinds: trace.AllKinds, LineBytes: []uint32{64 << rng.UintN(3)}}
		if seed%2 == 0 {
			spec.Analyses |= analysis.Sharing
		}
		spec.Mergeable = seed%3 == 0
		reader := func() trace.Reader { return tracetest.NewProgramReader(program, whole, 100) }
		want := resultOf(t, spec, reader())
		first, err := analysis.NewRunner(spec, reader())
		for range 1 + rng.IntN(whole.Len()/100+1) {
			if err == nil {
				err = first.Step()
			}
		}
		if err != nil && err != io.EOF {
			t.Fatal(err)
		}
		again, err := analysis.NewRunner(spec, reader())
		if err == nil {
			err = again.Restore(first.Save())
		}
		if err != nil {
			t.Fatal(err)
		}
		if saved := again.Save(); !bytes.Equal(saved, first.Save()) && len(saved) != len(first.Save()) {
			t.Fatalf("seed %d: the state has %d bytes when the restored run is saved again, want %d", seed, len(saved), len(first.Save()))
		}
		finish(t, again)
		if got := checked(t, again.Finish(profile.State{})); !bytes.Equal(got.Encode(), want.Encode()) {
			equalCommunication(t, got.Communication, want.Communication)
			t.Fatalf("seed %d: the profile differs from the profile of an uninterrupted run", seed)
		}
	}
}

// profileWithCommunication analyses the rows of a program, including communication, and returns the
// profile.
func profileWithCommunication(t rapid.TB, spec analysis.Spec, program *trace.Program, rows *trace.Batch) *profile.Profile {
	t.Helper()
	r, err := analysis.NewRunner(spec, tracetest.NewProgramReader(program, rows, 100))
	for err == nil {
		err = r.Step()
	}
	if err != io.EOF {
		t.Fatal(err)
	}
	p := r.Finish(profile.State{})
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestCommunicationAllocatesNothing(t *testing.T) {
	program := allocatingProgram()
	steps := sharingSteps(rand.New(rand.NewPCG(1, 66)), program, 20000, 4)
	steps = slices.DeleteFunc(steps, func(s tracetest.Step) bool { return !program.Sites[s.Block].Kind.IsReference() })
	whole := tracetest.Rows(program, slices.Repeat(steps, 24)...)
	r, err := analysis.NewRunner(analysis.Spec{Analyses: analysis.Communication}, &copier{rows: whole, p: program, endless: true})
	if err != nil {
		t.Fatal(err)
	}
	allocatesNothing(t, r, untilLongWindows)
}

// FuzzCommunicationState checks that a saved run with damaged words and lines is either rejected or
// continued, without a panic.
func FuzzCommunicationState(f *testing.F) {
	p := allocatingProgram()
	spec := analysis.Spec{Analyses: analysis.Communication, LineBytes: []uint32{128}}
	whole := tracetest.Rows(p, sharingSteps(rand.New(rand.NewPCG(1, 65)), p, 80, 3)...)
	r, err := analysis.NewRunner(spec, tracetest.NewProgramReader(p, whole, 0))
	if err == nil {
		err = r.Step()
	}
	if err != nil {
		f.Fatal(err)
	}
	saved := r.Save()
	head := savedHead(saved)
	at, err := profile.Decode(saved[head:])
	if err != nil {
		f.Fatal(err)
	}
	f.Add(at.Segment.Communication)
	f.Fuzz(func(t *testing.T, state []byte) {
		at, err := profile.Decode(saved[head:])
		if err != nil {
			t.Fatal(err)
		}
		at.Segment.Communication = state
		canContinue(t, spec, tracetest.NewProgramReader(p, whole, 0), append(slices.Clone(saved[:head]), at.Encode()...))
	})
}

// BenchmarkCommunication measures the set analysis, the site analysis and the communication
// analysis of a matrix product with one thread and with four threads.
func BenchmarkCommunication(b *testing.B) {
	program, steps := tracetest.Multiplication(96)
	for _, threads := range []uint32{1, 4} {
		for i := range steps {
			steps[i].Thread = 1 + uint32(bits.Reverse32(uint32(i>>12)))>>30%threads
		}
		whole := rowsOfKinds(tracetest.Rows(program, steps...), trace.AllKinds)
		for _, c := range []struct {
			name string
			what analysis.Analyses
		}{{"sets", analysis.Sets}, {"sites", analysis.Sites}, {"communication", analysis.Communication}} {
			b.Run(c.name+"/"+string(rune('0'+threads)), func(b *testing.B) {
				var references uint64
				for b.Loop() {
					references += pass(b, analysis.Spec{Analyses: c.what}, &copier{rows: whole, p: program}).Totals.AllReferences()
				}
				report(b, references)
			})
		}
	}
}

// By default, communication is analysed if the trace's tables list several threads, or if a second
// thread appears soon enough. In both cases, the result equals the result of a run in which
// communication is requested.
func TestCommunicationByDefault(t *testing.T) {
	program := allocatingProgram()
	whole := tracetest.Rows(program, sharingSteps(rand.New(rand.NewPCG(1, 67)), program, 2000, 3)...)
	all := program.Threads
	for _, listed := range [][]trace.Thread{all, all[:1], nil} {
		program.Threads = listed
		asked := resultOf(t, analysis.Spec{Analyses: analysis.Communication | analysis.Sharing}, tracetest.NewProgramReader(program, whole, 0))
		by := resultOf(t, analysis.Spec{}, tracetest.NewProgramReader(program, whole, 100))
		equalCommunication(t, by.Communication, asked.Communication)
	}
}

// lateSecondThread returns a trace that begins with a single thread. Later, a second thread reads
// values of this thread. The parameter first is the index of the second thread's first reference.
func lateSecondThread(first, references int) *trace.Batch {
	b := &trace.Batch{Thread: []uint32{}}
	for i := range references {
		if i < first {
			b.Append(trace.Store, uint64(i%100)*8, 8, 1, 0)
		} else {
			b.Append(trace.Load, uint64(i%100)*8, 8, 2, 0)
		}
	}
	return b
}

// The position up to which the analysis waits for a second thread depends neither on the batches of
// the trace nor on interruptions.
func TestWaitForSecondThread(t *testing.T) {
	for first, want := range map[int]bool{0: true, communication.Trial - 1: true, communication.Trial: false, communication.Trial + 5000: false} {
		whole := lateSecondThread(first, communication.Trial+10_000)
		if first == 0 {
			whole.Thread[0] = 3
		}
		for _, rows := range []int{1000, 4096, 7777} {
			reader := func() trace.Reader { return tracetest.NewReader(whole, rows) }
			p := resultOf(t, analysis.Spec{}, reader())
			if (p.Communication != nil) != want {
				t.Fatalf("with a second thread from reference %d on and %d rows per batch: the profile has communication = %v, want %v", first, rows, !want, want)
			}
			if want && first > 0 && p.Communication.Granules[0].Flows[0].Transfers != 100 {
				t.Errorf("the flows are %+v, want 100 transfers", p.Communication.Granules[0].Flows)
			}
			steps := communication.Trial/rows - 1 + rows%3 // the run is interrupted shortly before or after the reference whose number is communication.Trial
			if got := resumed(t, analysis.Spec{}, steps, reader); !bytes.Equal(got.Encode(), p.Encode()) {
				t.Errorf("with a second thread from reference %d on and %d rows per batch, an interruption changes the result", first, rows)
			}
		}
	}
}

// If the index of a trace lists several threads, the analysis begins with the first reference, even
// if only one thread runs for a long time. The test uses one worker, several workers, and
// interrupted runs.
func TestLongSingleThreadedStartEqualsNaive(t *testing.T) {
	program := allocatingProgram()
	program.Threads, program.ThreadCount = nil, 3
	rng := rand.New(rand.NewPCG(7, 65))
	const head = 2*communication.Trial + 1000
	var steps []tracetest.Step
	for i := range head + 3000 {
		s := tracetest.Step{Block: rng.Uint32N(3), Thread: 1, Values: []uint64{1<<18 + 8*rng.Uint64N(1<<10)}}
		if i >= head {
			s.Thread += rng.Uint32N(3)
		}
		steps = append(steps, s)
	}
	whole := tracetest.Rows(program, steps...)
	reader := func() trace.Reader { return tracetest.NewProgramReader(program, whole, 0) }
	spec := analysis.Spec{}.WithDefaults()
	p := resultOf(t, spec, reader())
	if p.Communication == nil {
		t.Fatal("the profile has no communication")
	}
	where := &naiveSites{p: program, spec: spec, line: 64, data: map[objectID]*profile.DataObject{}}
	equalCommunication(t, p.Communication, communicationByDefinition(p, where, whole, spec.Kinds))
	if q, _ := analyseInParallel(t, spec, reader(), 3, 20_000); !bytes.Equal(q.Encode(), p.Encode()) {
		t.Error("the result of several workers differs from the result of one worker")
	}
	before, again := newRunner(t, spec, reader()), newRunner(t, spec, reader())
	for before.Progress().References < head-2000 {
		if err := before.Step(); err != nil {
			t.Fatal(err)
		}
	}
	if err := again.Restore(before.Save()); err != nil {
		t.Fatal(err)
	}
	finish(t, again)
	if got := checked(t, again.Finish(profile.State{})); !bytes.Equal(got.Encode(), p.Encode()) {
		t.Error("the interruption changes the result")
	}
	program.ThreadCount = 0
	if p := resultOf(t, spec, reader()); p.Communication != nil || p.NoCommunication != profile.LateThread {
		t.Errorf("without an index: NoCommunication = %v, want LateThread", p.NoCommunication)
	}
}

func FuzzCommunicationShares(f *testing.F) {
	program := allocatingProgram()
	rng := rand.New(rand.NewPCG(3, 68))
	whole := tracetest.Rows(program, sharingSteps(rng, program, 300, 3)...)
	spec := analysis.Spec{Analyses: analysis.Communication | analysis.Sharing, Kinds: trace.AllKinds}
	states := analysis.SharesOf(spec, 1, 1, func() trace.Reader { return tracetest.NewProgramReader(program, whole, 0) })
	f.Add(states[0], states[1])
	f.Fuzz(func(t *testing.T, pages, cores []byte) {
		c, err := communication.Join(64, pages, cores)
		if err == nil && c != nil && len(c.Granules) == 0 {
			t.Error("Join returns neither an error nor a result")
		}
	})
}
