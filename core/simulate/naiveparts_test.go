package simulate

import (
	"maps"
	"slices"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/trace"
)

// demanded performs a demand access to a whole line. demanded also updates the fetch counts, the
// causes of misses and the prefetches, which depend on such accesses.
func (n *naive) demanded(i int, line uint64, store bool, access func()) {
	l := n.levels[i]
	fresh, pushed, before := false, l.pushed[line], l.counts.Misses()
	if x := l.lines[line]; x != nil {
		fresh = x.fresh
	}
	access()
	if x := l.lines[line]; x != nil {
		x.fresh = false
	}
	missed := l.counts.Misses() != before
	if n.fetching && len(n.icaches) > 0 {
		l.counts.Fetches++
		if missed {
			l.counts.FetchMisses++
		}
	}
	why, _ := n.causeOf(l, []uint64{line}, line, store && l.Write.Around(), missed, missed)
	l.counts.count(why)
	l.demands = append(l.demands, line)
	if fresh {
		l.counts.Prefetch.Useful++
	}
	if missed && pushed {
		l.counts.Prefetch.Pollution++
		l.pushed[line] = false
	}
	addr := line * l.lineSize()
	if i == 0 {
		addr = n.addr
	}
	if !store || !l.Prefetch.Reads {
		n.prefetchAfter(i, addr, missed, fresh)
	}
}

// causeOf determines the cause of a miss, either of sub-blocks or of a whole line.
func (n *naive) causeOf(l *naiveLevel, blocks []uint64, line uint64, bypass, missed, lineMissed bool) (why, lineWhy cause) {
	if l.full == nil {
		return noCause, noCause
	}
	x := l.full.lines[line]
	held, seenAll, seenAny := x != nil, true, false
	for _, b := range blocks {
		held = held && (x == nil || x.valid[b])
		seenAll = seenAll && l.seen[b]
	}
	for b := range l.seen {
		seenAny = seenAny || b == line && l.SubBlockBytes == 0 || l.SubBlockBytes > 0 && b/l.lineSize() == line
	}
	n.now++
	if x != nil {
		l.full.use(x, n.now, true)
	} else if !bypass {
		x = &naiveLine{number: line, valid: map[uint64]bool{}}
		l.full.insert(x, n.now)
	}
	for _, b := range blocks {
		l.seen[b] = true
		if x != nil {
			x.valid[b] = true
		}
	}
	decide := func(missed, held, seen bool) cause {
		switch {
		case !missed:
			return noCause
		case held:
			return conflict
		case seen:
			return capacity
		}
		return cold
	}
	return decide(missed, held, seenAll), decide(lineMissed, l.full.lines[line] != nil && (held || x != nil && len(x.valid) > len(blocks)), seenAny)
}

// prefetchAfter issues the prefetches that a level makes after an access.
func (n *naive) prefetchAfter(i int, addr uint64, missed, fresh bool) {
	l := n.levels[i]
	unit := l.lineSize()
	if l.SubBlockBytes > 0 {
		unit = uint64(l.SubBlockBytes)
	}
	degree, distance := uint64(max(l.Prefetch.Degree, 1)), uint64(max(l.Prefetch.Distance, 1))
	var list []uint64
	ahead := func(stride uint64) {
		for k := range degree {
			list = append(list, addr+stride*(distance+k))
		}
	}
	line := addr / l.lineSize()
	switch l.Prefetch.Kind {
	case hierarchy.NextLine:
		if missed {
			ahead(unit)
		}
	case hierarchy.Tagged:
		if missed || fresh {
			ahead(unit)
		}
	case hierarchy.Always:
		ahead(unit)
	case hierarchy.Adjacent:
		switch {
		case missed && addr/unit%2 == 0:
			list = []uint64{(addr/unit + 1) * unit}
		case missed:
			list = []uint64{(addr/unit - 1) * unit}
		}
	case hierarchy.LoadForward:
		ahead(unit)
		list = slices.DeleteFunc(list, func(a uint64) bool { return a/l.lineSize() != line })
	case hierarchy.SubBlock:
		ahead(unit)
		for k := range list {
			list[k] = line*l.lineSize() + list[k]%l.lineSize()
		}
	case hierarchy.Stride:
		list = l.naiveStrides(addr, n.pc, ahead, func() []uint64 { return list }, unit)
	case hierarchy.Stream:
		list = l.naiveStreams(addr, unit, ahead, func() []uint64 { return list })
	}
	for _, a := range list {
		if n.waits(i) {
			n.waiting = append(n.waiting, func() { n.prefetch(i, a, unit) })
		} else {
			n.prefetch(i, a, unit)
		}
	}
}

// waits reports whether prefetches by level i wait until the levels above have inserted their
// lines.
func (n *naive) waits(i int) bool {
	isInclusive := func(c hierarchy.Cache) bool { return c.Inclusion == hierarchy.Inclusive }
	return i > 0 && (slices.ContainsFunc(n.h.Levels[i:], isInclusive) || slices.ContainsFunc(n.h.Instructions[min(i, len(n.h.Instructions)):], isInclusive))
}

func (n *naive) prefetch(i int, a, unit uint64) {
	l := n.levels[i]
	if l.Prefetch.Drop > 0 && l.drops.Uint64N(100) < uint64(l.Prefetch.Drop) {
		l.counts.Prefetch.Dropped++
		return
	}
	n.notifyOtherCores(i, a/l.lineSize()*l.lineSize(), false)
	if l.SubBlockBytes > 0 {
		n.accessParts(i, request{prefetch: true}, a/unit*unit, unit, nil)
		return
	}
	{
		line := a / l.lineSize()
		x := l.lines[line]
		n.causeOf(l, []uint64{line}, line, false, false, false)
		if x != nil {
			l.counts.Prefetch.Hits++
			n.use(l, x)
			return
		}
		l.counts.Prefetch.Misses++
		words, dirty := n.pullFrom(i+1, line*l.lineSize(), l.lineSize())
		if victim := n.putLine(i, &naiveLine{number: line, words: maps.Clone(words), dirty: dirty, fresh: true}); victim != nil {
			l.pushed[victim.number] = true
		}
	}
}

func (l *naiveLevel) naiveStrides(addr, pc trace.Addr, ahead func(uint64), list func() []uint64, unit uint64) (kept []uint64) {
	if l.strides[pc] == nil {
		if l.strideOrder = append(l.strideOrder, pc); len(l.strideOrder) > 256 {
			delete(l.strides, l.strideOrder[0])
			l.strideOrder = l.strideOrder[1:]
		}
	}
	l.strides[pc] = append(l.strides[pc], addr)
	last := l.strides[pc]
	if len(last) < 3 {
		return nil
	}
	last = last[len(last)-3:]
	stride := last[2] - last[1]
	if stride == 0 || stride != last[1]-last[0] {
		return nil
	}
	ahead(stride)
	before := addr / unit
	for _, a := range list() {
		if a/unit != before && a/unit != addr/unit {
			kept = append(kept, a)
		}
		before = a / unit
	}
	return kept
}

func (l *naiveLevel) naiveStreams(addr, unit uint64, ahead func(uint64), list func() []uint64) (kept []uint64) {
	page, at := addr/4096, addr/unit
	s := naiveStream{page: page}
	for k := range l.streams {
		if l.streams[k].page == page {
			s = l.streams[k]
			l.streams = slices.Delete(l.streams, k, k+1)
			break
		}
	}
	moved := len(s.units) == 0 || s.units[len(s.units)-1] != at
	if moved {
		s.units = append(s.units, at)
	}
	l.streams = append(l.streams, s)
	if len(l.streams) > 16 {
		l.streams = l.streams[1:]
	}
	if !moved || len(s.units) < 3 {
		return nil
	}
	last := s.units[len(s.units)-3:]
	switch {
	case last[0] < last[1] && last[1] < last[2]:
		ahead(unit)
	case last[0] > last[1] && last[1] > last[2]:
		ahead(-unit)
	}
	for _, a := range list() {
		if a/4096 == page {
			kept = append(kept, a)
		}
	}
	return kept
}

// pullFrom prefetches a range of bytes from level i or below.
func (n *naive) pullFrom(i int, addr, bytes uint64) (words data, dirty bool) {
	if i == len(n.levels) {
		n.memory.Reads++
		n.memory.BytesRead += bytes
		return n.words.part(addr, bytes), false
	}
	l, words := n.levels[i], data{}
	for _, piece := range splitAtLines(addr, bytes, l.lineSize()) {
		if l.SubBlockBytes > 0 {
			maps.Copy(words, n.accessParts(i, request{fromAbove: true}, piece[0], piece[1], nil))
			continue
		}
		more, changed := n.pull(i, piece[0]/l.lineSize())
		maps.Copy(words, more.part(piece[0], piece[1]))
		dirty = dirty || changed
	}
	return words, dirty
}

func (n *naive) pull(i int, line uint64) (words data, dirty bool) {
	l := n.levels[i]
	l.counts.PrefetchReads++
	x := l.lines[line]
	if x == nil {
		l.counts.PrefetchReadMisses++
		words, dirty = n.pullFrom(i+1, line*l.lineSize(), l.lineSize())
	}
	switch {
	case l.exclusive && x != nil:
		l.counts.Given++
		n.drop(l, x)
		return x.words, x.dirty
	case l.exclusive:
		return words, dirty
	case x != nil:
		n.use(l, x)
		words = maps.Clone(x.words)
	default:
		n.put(i, line, maps.Clone(words), dirty)
	}
	n.causeOf(l, []uint64{line}, line, false, false, false)
	if l.Prefetch.Chained {
		n.prefetchAfter(i, line*l.lineSize(), x == nil, false)
	}
	return words, false
}

// accessParts accesses a range of bytes within one line of a level that has sub-blocks.
func (n *naive) accessParts(i int, r request, addr, bytes uint64, words data) data {
	l := n.levels[i]
	sub := uint64(l.SubBlockBytes)
	line, demand := addr/l.lineSize(), !r.prefetch && !r.fromAbove
	var blocks []uint64 // addresses of the sub-blocks
	for at := addr / sub; at <= (addr+bytes-1)/sub; at++ {
		blocks = append(blocks, at*sub)
	}
	x := l.lines[line]
	missed, first, whole := x == nil, x != nil, uint64(len(blocks))*sub == bytes
	for _, b := range blocks {
		missed = missed || !x.valid[b]
		first = first && x.valid[b] && !x.touched[b]
	}
	insert := !r.store || l.Write == hierarchy.WriteBack || l.Write == hierarchy.WriteThrough || l.Write == hierarchy.WriteBackWhole && whole
	counters := []*uint64{&l.counts.Reads, &l.counts.ReadMisses}
	switch {
	case r.store:
		counters = []*uint64{&l.counts.Writes, &l.counts.WriteMisses}
	case r.fromAbove:
		counters = []*uint64{&l.counts.PrefetchReads, &l.counts.PrefetchReadMisses}
	case r.prefetch:
		var all uint64
		if counters = []*uint64{&all, &l.counts.Prefetch.Misses}; !missed {
			l.counts.Prefetch.Hits++
		}
	}
	if *counters[0]++; missed {
		*counters[1]++
	}
	why, _ := n.causeOf(l, blocks, line, !insert, missed, x == nil)
	if demand {
		l.counts.count(why)
		if x == nil {
			l.counts.LineMisses++
			if l.pushed[line] {
				l.counts.Prefetch.Pollution++
				l.pushed[line] = false
			}
		}
		if first && l.Prefetch.Kind != hierarchy.NoPrefetch {
			l.counts.Prefetch.Useful++
		}
		if !r.store && n.fetching && len(n.icaches) > 0 {
			if l.counts.Fetches++; missed {
				l.counts.FetchMisses++
			}
		}
	}
	keep := x != nil || insert
	var victim *naiveLine
	switch {
	case x != nil:
		n.use(l, x)
	case insert:
		x = &naiveLine{number: line, words: data{}, valid: map[uint64]bool{}, changed: map[uint64]bool{}, touched: map[uint64]bool{}}
		if victim = n.insertParts(l, x); victim != nil && r.prefetch {
			l.pushed[victim.number] = true
		}
	}
	var fetched data
	if missed && (!r.store || keep && !whole) {
		if demand {
			fetched, _ = n.demand(i+1, blocks[0], uint64(len(blocks))*sub)
		} else {
			fetched, _ = n.pullFrom(i+1, blocks[0], uint64(len(blocks))*sub)
		}
	}
	if keep {
		for _, b := range blocks {
			if !x.valid[b] {
				maps.Copy(x.words, fetched.part(b, sub))
			}
			x.valid[b] = true
			x.touched[b] = x.touched[b] || !r.prefetch
			x.changed[b] = x.changed[b] || r.store && !l.Write.Through()
			x.dirty = x.dirty || x.changed[b]
		}
		maps.Copy(x.words, words)
	}
	switch {
	case r.store && !keep:
		n.store(i+1, addr, bytes, words)
	case r.store && l.Write.Through():
		n.update(i+1, addr, bytes, words)
	}
	if victim != nil {
		n.evictedParts(i, victim)
	}
	var out data
	if x != nil {
		out = x.words.part(addr, bytes)
	}
	if l.Prefetch.Kind != hierarchy.NoPrefetch && !r.prefetch && (!r.store || !l.Prefetch.Reads) && (!r.fromAbove || l.Prefetch.Chained) {
		n.prefetchAfter(i, addr, missed, first)
	}
	return out
}

func (n *naive) insertParts(l *naiveLevel, x *naiveLine) (victim *naiveLine) {
	l.counts.Fills++
	return n.insert(l, x)
}

func (n *naive) evictedParts(i int, victim *naiveLine) {
	l := n.levels[i]
	for b := range victim.valid {
		if !victim.touched[b] && l.Prefetch.Kind != hierarchy.NoPrefetch {
			l.counts.Prefetch.Unused++
		}
	}
	n.writeBackParts(i, victim)
}

// writeBackParts writes back the dirty sub-blocks of a line, beginning with the last sub-block.
// writeBackParts writes back adjacent sub-blocks together.
func (n *naive) writeBackParts(i int, x *naiveLine) {
	sub := uint64(n.levels[i].SubBlockBytes)
	var runs [][2]uint64
	for _, b := range slices.Sorted(maps.Keys(x.changed)) {
		if !x.changed[b] {
			continue
		}
		if last := len(runs) - 1; last >= 0 && runs[last][1] == b {
			runs[last][1] += sub
		} else {
			runs = append(runs, [2]uint64{b, b + sub})
		}
	}
	x.changed = map[uint64]bool{}
	for _, run := range slices.Backward(runs) {
		n.writeBackRun(i, run[0], run[1]-run[0], x.words.part(run[0], run[1]-run[0]))
	}
}

// receiveParts processes words that the level above writes back or writes through, and reports whether
// the level has kept them.
func (n *naive) receiveParts(i int, addr, bytes uint64, words data, back bool) bool {
	l := n.levels[i]
	sub := uint64(l.SubBlockBytes)
	line := addr / l.lineSize()
	x := l.lines[line]
	present, whole := x != nil, addr%sub == 0 && bytes%sub == 0
	for at := addr / sub; at <= (addr+bytes-1)/sub; at++ {
		present = present && x.valid[at*sub]
	}
	if back && !present {
		l.counts.WriteBackMisses++
	}
	var victim *naiveLine
	switch {
	case x != nil && (present || whole):
		n.use(l, x)
	case x == nil && whole && back && !l.Write.Around():
		x = &naiveLine{number: line, words: data{}, valid: map[uint64]bool{}, changed: map[uint64]bool{}, touched: map[uint64]bool{}}
		victim = n.insertParts(l, x)
	default:
		if x != nil { // the words are written to the sub-blocks that are present, and also to the level below
			for at := addr / sub; at <= (addr+bytes-1)/sub; at++ {
				if x.valid[at*sub] {
					maps.Copy(x.words, words.part(at*sub, sub))
				}
			}
		}
		return false
	}
	for at := addr / sub; at <= (addr+bytes-1)/sub; at++ {
		b := at * sub
		x.valid[b], x.touched[b] = true, true
		x.changed[b] = x.changed[b] || !l.Write.Through()
		x.dirty = x.dirty || x.changed[b]
	}
	maps.Copy(x.words, words)
	if victim != nil {
		n.evictedParts(i, victim)
	}
	return true
}
