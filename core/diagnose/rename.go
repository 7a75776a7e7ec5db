package diagnose

import (
	"cmp"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
)

// retrial is the effect of a change of addresses on the whole run.
type retrial struct {
	saved         float64      // number of cycles saved
	bySite        []float64    // cycles saved, by site
	before, after []float64    // misses by level
	walks         [2][]float64 // numbers of page walks before and after the change, by site
	data          string       // the name of the data that was moved; "" if it is unknown or not needed
	extended      string       // the result of counts.extended for the changed run
}

// base returns the replay of the unchanged run.
func (r *run) base() *counts {
	if r.cost.replay == nil && r.canReplay() {
		r.cost.replay = r.withMisses(r.again(nil, nil, pageShift, false), pageShift)
		if r.cost.replay == nil {
			r.replayed = mostRows // the replay was stopped, so do not replay again
		}
	}
	return r.cost.replay
}

// retry replays the trace with changed addresses. It returns nil if this is impossible.
func (r *run) retry(to rename, pageShift uint) *retrial {
	of := r.base()
	if of == nil {
		return nil
	}
	changed := r.withMisses(r.replay(to, nil, pageShift, to != nil, of, false), pageShift)
	if changed == nil {
		return nil
	}
	return r.compare(of, changed)
}

// compare returns the effect of a change on the whole run, or nil if it is unknown.
func (r *run) compare(of, changed *counts) *retrial {
	t := &retrial{extended: changed.extended()}
	before, idleBefore := r.cyclesOf(of)
	after, idleAfter := r.cyclesOf(changed)
	if before == nil || after == nil {
		return nil
	}
	t.bySite = make([]float64, len(before))
	t.saved = idleBefore - idleAfter
	for i := range before {
		t.bySite[i] = before[i] - after[i]
		t.saved += t.bySite[i]
	}
	for k := range of.misses {
		t.before, t.after = append(t.before, sum(of.misses[k])), append(t.after, sum(changed.misses[k]))
	}
	t.walks = [2][]float64{of.overheads().walks, changed.overheads().walks}
	r.untake(t)
	return t
}

// cyclesOf returns, for each site, the cycles that depend on the addresses of data. It also returns
// the cycles that threads wait for each other.
func (r *run) cyclesOf(of *counts) (bySite []float64, idle float64) {
	m := r.cost.measured(r.p, of)
	waits, err := r.cost.waits(r, &m)
	if err != nil {
		return nil, 0
	}
	pages, split := r.cost.othersOf(r, &m, waits, of.overheads())
	for i := range waits {
		bySite = append(bySite, sum(waits[i])+pages[i]+split[i])
	}
	return bySite, of.idleCycles()
}

// savedAt returns the cycles that a retrial saves at a source location.
func (t *retrial) savedAt(at *place) (cycles float64) {
	for _, i := range at.sites {
		cycles += t.bySite[i]
	}
	return cycles
}

// leftAt returns the cycles that a retrial saves at a source location and that no finding includes
// yet.
func (r *run) leftAt(t *retrial, at *place) float64 {
	saved := t.savedAt(at)
	return saved - max(0, saved)*r.taken[at]
}

// untake subtracts the cycles that other findings already save from the saving of a retrial.
func (r *run) untake(t *retrial) {
	for _, at := range r.places {
		t.saved -= max(0, t.savedAt(at)) * r.taken[at]
	}
}

// heaviest returns the source location at which a retrial saves the most cycles. heaviest ignores
// code that fills data for the first time.
func (r *run) heaviest(t *retrial, at *place) *place {
	most := r.leftAt(t, at)
	for _, of := range r.places {
		if saved := r.leftAt(t, of); saved > most && !of.fills() {
			at, most = of, saved
		}
	}
	return at
}

// take records that a finding includes the waits that a retrial saves.
func (r *run) take(t *retrial) {
	for _, at := range r.places {
		if s := share(t.savedAt(at), at.wait); s > 0.1 {
			r.taken[at] = min(1, max(r.taken[at], s))
			if s > 0.5 {
				r.taken[at] = 1
			}
		}
	}
}

// retried returns sentences that describe how a change of addresses was tried.
func (r *run) retried(t *retrial) string {
	const changed = "recorded references were changed as the code would change them, and the caches were simulated again."
	switch {
	case r.parts().period > 0:
		return "The addresses of " + changed + " Because the run is long, only " +
			strconv.Itoa(numParts) + " parts of " + report.Count(mostSampled/numParts).Human() + " references and events each were simulated, and the result was scaled to the whole run."
	case t.extended != "":
		return "The addresses of " + changed + t.extended
	}
	return "The addresses of all " + changed
}

// newData is the lowest address for data that a change moves. No program uses addresses in this
// range.
const newData trace.Addr = 1 << 47

// block is a block of allocated memory.
type block struct {
	addr, bytes trace.Addr
	until       trace.Addr // end of the block, or beginning of the next block if the two overlap because they existed at different times
}

// mostElement is the maximum size of a block that counts as one element.
const mostElement = 1024

// blockAt returns the block that contains an address. ok is false if no block contains it.
func blockAt(blocks []block, addr trace.Addr) (b block, ok bool) {
	i, found := slices.BinarySearchFunc(blocks, addr, func(b block, addr trace.Addr) int { return cmp.Compare(b.addr, addr) })
	if !found {
		i--
	}
	if i < 0 || addr-blocks[i].addr >= blocks[i].bytes {
		return b, false
	}
	return blocks[i], true
}

// blockFinder returns a function that is faster than blockAt for many addresses. Most of the
// addresses should be between low and high.
func blockFinder(blocks []block, low, high trace.Addr) func(trace.Addr) (block, bool) {
	const mostPages = 1 << 18
	shift := uint(pageShift)
	for (high-low)>>shift > mostPages {
		shift++
	}
	before := make([]uint32, (high-low)>>shift+2) // number of blocks that begin before each page
	n := 0
	for page := range before {
		for n < len(blocks) && (blocks[n].addr < low || blocks[n].addr-low < trace.Addr(page)<<shift) {
			n++
		}
		before[page] = uint32(n)
	}
	return func(addr trace.Addr) (block, bool) {
		if addr < low || addr > high {
			return blockAt(blocks, addr)
		}
		page := (addr - low) >> shift
		end := before[page+1]
		return blockAt(blocks[min(max(before[page], 1)-1, end):end], addr)
	}
}

// sortBlocks orders blocks by address. sortBlocks keeps only the largest block at each address.
func sortBlocks(blocks []block) []block {
	slices.SortFunc(blocks, func(a, b block) int { return cmp.Or(cmp.Compare(a.addr, b.addr), cmp.Compare(b.bytes, a.bytes)) })
	blocks = slices.CompactFunc(blocks, func(a, b block) bool { return a.addr == b.addr })
	for i := range blocks {
		b := &blocks[i]
		b.until = b.addr + min(b.bytes, ^b.addr)
		if i+1 < len(blocks) {
			b.until = min(b.until, blocks[i+1].addr)
		}
	}
	return blocks
}

// traversal lays out elements in the order in which the given sites first reach them.
func (r *run) traversal(sites map[int]bool) rename {
	of := r.base()
	if of == nil {
		return nil
	}
	grain := uint64(0)
	low, high := ^trace.Addr(0), trace.Addr(0)
	for i := range sites {
		grain = gcd(grain, of.sites[i].grain)
		low, high = min(low, of.sites[i].low), max(high, of.sites[i].high)
	}
	if grain < 8 {
		return nil
	}
	first := low
	for j := range of.sites { // other fields of the element may precede this field
		if o := &of.sites[j]; o.grain > 0 && o.grain%grain == 0 && o.low < high && o.high > low && o.low+grain > first {
			low = min(low, o.low)
		}
	}
	e := newElementTable(of.blocks, low, high, grain)
	from, end := low-min(low, mostElement), high+mostElement
	hot := make([]bool, len(r.p.Sites.Code))
	for i := range sites {
		hot[i] = true
	}
	s := schedule{tree: r.loops.Tree(), parts: r.parts(), threads: of.team, creates: r.createCalls(), joins: r.joinCalls(), index: newSiteIndex(r.p)}
	if of.team > 1 {
		s.reuse = r.newReuse()
	}
	var complete atomic.Bool // every element has a new address
	s.goOn = func() bool { return !complete.Load() && r.GoOn() }
	s.take = func(w *row) {
		if w.index >= 0 && hot[w.index] && w.addr >= low && w.addr <= high && len(e.to) <= mostShared && e.find(w.addr, true) && e.placed == e.possible {
			complete.Store(true)
		}
	}
	r.replayed += r.rows()
	if !s.run() && !complete.Load() {
		return nil
	}
	e.latest = 0
	return func(w *row, _ int) trace.Addr {
		if w.addr < from || w.addr > end || !e.find(w.addr, false) {
			return w.addr
		}
		return e.to[e.latest] + w.addr - e.numbers.keys[e.latest]
	}
}

// elementTable finds the element that contains an address, and its new address.
type elementTable struct {
	numbers numbers      // by the address at which an element begins
	to      []trace.Addr // new address of each element, and the end of the last element
	latest  uint32       // the element found last
	placed  uint64       // number of elements in blocks or, without blocks, number of grains
	// possible is the number of elements or grains between low and high. The field placed cannot
	// exceed this number.
	possible uint64
	// element returns the beginning of the element that contains an address, the number of bytes
	// that certainly belong to it, and the number of bytes that are reserved for it.
	element func(addr trace.Addr) (begin trace.Addr, bytes, room uint64)
	pages   numbers                // pages that contain elements
	cells   []*[cellsOfPage]uint32 // by page: for each cell, 1 + the number of its element, or noElement; 0 if unknown
	most    int                    // maximum number of pages
	page    trace.Addr             // the page looked up last, plus one
	at      uint32                 // the number of that page
}

// newElementTable returns an empty table. The elements of the table are small allocated blocks, and
// grains of the given number of bytes outside these blocks. Most addresses are between low and
// high.
func newElementTable(blocks []block, low, high trace.Addr, grain uint64) *elementTable {
	blockAt := blockFinder(blocks, low, high)
	e := &elementTable{to: []trace.Addr{newData}, element: func(addr trace.Addr) (begin trace.Addr, bytes, room uint64) {
		b, ok := blockAt(addr)
		switch {
		case ok && b.bytes <= mostElement:
			return b.addr, b.until - b.addr, (b.bytes + 15) &^ 15
		case ok:
			begin = addr - (addr-b.addr)%grain
			return begin, min(grain, b.until-begin), grain
		case len(blocks) > 0: // a block may be within the grain
			return addr - (addr-low)%grain, 0, grain
		}
		return addr - (addr-low)%grain, grain, grain
	}}
	if grain <= 1<<pageShift {
		e.most = mostCells
	}
	for _, b := range blocks {
		switch {
		case b.until <= low || b.addr > high:
		case b.bytes <= mostElement:
			e.possible++
		default:
			e.possible += (b.bytes + grain - 1) / grain
		}
	}
	if len(blocks) == 0 {
		e.possible = (high-low)/grain + 1
	}
	return e
}

// A cell is a fixed number of bytes that belong to one element.
const (
	cellShift   = 3
	cellsOfPage = 1 << (pageShift - cellShift)
	mostCells   = 1 << 15 // maximum number of pages with cells
	noElement   = ^uint32(0)
)

// cell returns the cell of an address, or nil if the table has no page for it.
func (e *elementTable) cell(addr trace.Addr) *uint32 {
	page := addr >> pageShift
	if e.page != page+1 {
		at, ok := e.pages.find(page)
		if !ok {
			return nil
		}
		e.page, e.at = page+1, at
	}
	return &e.cells[e.at][addr>>cellShift%cellsOfPage]
}

// find finds the element of an address, or adds it if add is set.
func (e *elementTable) find(addr trace.Addr, add bool) bool {
	// Usually, the address is in the element that was found last, or in the next element in the new
	// order.
	for n := e.latest; n < e.latest+2 && int(n) < len(e.numbers.keys); n++ {
		if addr-e.numbers.keys[n] < e.to[n+1]-e.to[n] {
			e.latest = n
			return true
		}
	}
	cell := e.cell(addr)
	switch {
	case cell == nil && !add && len(e.cells) < e.most, cell != nil && *cell == noElement:
		return false
	case cell != nil && *cell != 0:
		e.latest = *cell - 1
		return true
	}
	begin, bytes, room := e.element(addr)
	number, found := e.numbers.find(begin)
	if !found && add {
		number, found = e.numbers.need(begin), true
		e.to = append(e.to, e.to[number]+room)
		if bytes > 0 {
			e.placed++
		}
		for _, page := range [...]trace.Addr{begin >> pageShift, (begin + room) >> pageShift} {
			if len(e.cells) < e.most && int(e.pages.need(page)) == len(e.cells) {
				e.cells = append(e.cells, new([cellsOfPage]uint32))
			}
		}
	}
	known := noElement
	if found {
		known, e.latest = number+1, number
	}
	if begin%(1<<cellShift) == 0 {
		for at := uint64(0); at+1<<cellShift <= min(bytes, 1<<pageShift); at += 1 << cellShift {
			if cell := e.cell(begin + at); cell != nil {
				*cell = known
			}
		}
	}
	return found
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// record is an array whose elements have equal sizes.
type record struct {
	low, high trace.Addr
	pitch     uint64
}

// recordOf finds the array that a site iterates over, from the distances between its references.
func (r *run) recordOf(i int) (a record, ok bool) {
	of := r.base()
	if of == nil {
		return a, false
	}
	n := &of.sites[i]
	a = record{n.low, n.high, n.grain}
	if a.pitch == 0 || a.high <= a.low {
		return a, false
	}
	for j := range of.sites { // unrolled loops advance by several elements at a time
		o, common := &of.sites[j], uint64(0)
		if o.references >= n.references/8 && o.grain > uint64(r.p.Sites.Code[j].Bytes) && o.low < n.high && o.high > n.low {
			common = gcd(a.pitch, o.grain)
		}
		if common > uint64(r.p.Sites.Code[i].Bytes) && common >= 8 {
			a.pitch = common
		}
	}
	for j := range of.sites { // other fields of the element may precede this field
		o := &of.sites[j]
		if o.references > 0 && o.grain > 0 && o.grain%a.pitch == 0 && o.low < n.high && o.high > n.low && o.low+a.pitch > n.low {
			a.low, a.high = min(a.low, o.low), max(a.high, o.high)
		}
	}
	return a, a.pitch > 1 && a.pitch <= mostElement
}

// splitting takes the fields that hot sites use out of each element, and moves them to a separate
// array of structures.
func (r *run) splitting(a record, hot []int) rename {
	of := r.base()
	var fields []field
	for _, i := range hot {
		n := &of.sites[i]
		if n.low < a.low || n.high > a.high+a.pitch {
			continue
		}
		if n.grain%a.pitch != 0 {
			return nil // the site's references are at several offsets in an element
		}
		fields = append(fields, field{at: (n.low - a.low) % a.pitch, bytes: max(1, uint64(r.p.Sites.Code[i].Bytes))})
	}
	slices.SortFunc(fields, func(x, y field) int { return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(y.bytes, x.bytes)) })
	merged := fields[:0]
	size := uint64(0)
	for _, f := range fields {
		if n := len(merged); n > 0 && f.at < merged[n-1].at+merged[n-1].bytes {
			more := max(merged[n-1].at+merged[n-1].bytes, f.at+f.bytes) - merged[n-1].at - merged[n-1].bytes
			merged[n-1].bytes += more
			size += more
			continue
		}
		f.to = size
		size += f.bytes
		merged = append(merged, f)
	}
	if size == 0 || size*2 > a.pitch {
		return nil
	}
	return func(w *row, _ int) trace.Addr {
		if w.addr < a.low || w.addr > a.high {
			return w.addr
		}
		element, offset := (w.addr-a.low)/a.pitch, (w.addr-a.low)%a.pitch
		for _, f := range merged {
			if offset >= f.at && offset < f.at+f.bytes {
				return newData + element*size + f.to + offset - f.at
			}
		}
		return w.addr
	}
}

// padding moves arrays apart, each by a different number of lines, and adds a line after each row.
func padding(arrays []record, lineBytes uint64) rename {
	var begins []trace.Addr
	next := newData
	for j, a := range arrays {
		begins = append(begins, next+uint64(j)*5*lineBytes+a.low%lineBytes)
		next += (a.high-a.low)*5/4&^(1<<pageShift-1) + 2<<pageShift
	}
	return func(w *row, _ int) trace.Addr {
		for j := range arrays {
			a := &arrays[j]
			if w.addr < a.low || w.addr > a.high {
				continue
			}
			offset := w.addr - a.low
			if a.pitch > 0 {
				offset += offset / a.pitch * lineBytes
			}
			return begins[j] + offset
		}
		return w.addr
	}
}

// fieldsOf returns the accessed fields of an array's elements, in the order of their offsets.
func (r *run) fieldsOf(a record) (list []field) {
	of := r.base()
	for i := range of.sites {
		n := &of.sites[i]
		if n.references == 0 || n.low < a.low || n.high > a.high || n.grain == 0 || n.grain%a.pitch != 0 {
			continue
		}
		at := (n.low - a.low) % a.pitch
		list = append(list, field{at: at, bytes: min(uint64(r.p.Sites.Code[i].Bytes), a.pitch-at)})
	}
	slices.SortFunc(list, func(x, y field) int { return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(y.bytes, x.bytes)) })
	return slices.CompactFunc(list, func(x, y field) bool { return x.at == y.at })
}

// field is a part of an element, and its new offset.
type field struct{ at, bytes, to uint64 }

// unpacked aligns each field to its size, as compilers do unless a structure is packed. It returns
// the resulting size of an element, or 0 if no field moves. A field inside the previous field moves
// with it, because a vector instruction stores both at once.
func unpacked(a record, fields []field) (pitch uint64) {
	end, from, widest, moved := uint64(0), uint64(0), uint64(1), false
	last := 0
	for i := range fields {
		f := &fields[i]
		size := min(f.bytes, 8)
		if size == 0 || f.bytes&(f.bytes-1) != 0 {
			size = 1
		}
		if g := &fields[last]; i > 0 && f.at < from {
			f.to = g.to + f.at - g.at
			if more := f.at + f.bytes; more > from {
				end, from, last = end+more-from, more, i
			}
			continue
		}
		at := end + f.at - from // unused bytes before the field stay in place
		f.to = (at + size - 1) &^ (size - 1)
		moved = moved || f.to != f.at
		end, from, last = f.to+f.bytes, f.at+f.bytes, i
		widest = max(widest, size)
	}
	end += a.pitch - min(a.pitch, from)
	end = (end + widest - 1) &^ (widest - 1)
	if !moved && end == a.pitch {
		return 0
	}
	return end
}

// aligned is an array that moves to the beginning of a line, and whose elements have a new size. If
// fields is not empty, fields move within the element.
type aligned struct {
	record
	bytes  uint64
	fields []field
}

// aligning moves arrays to new addresses at which their elements are aligned.
func aligning(arrays []aligned) rename {
	var begins []trace.Addr
	next := newData
	for _, a := range arrays {
		begins = append(begins, next)
		next += ((a.high-a.low)/a.pitch*a.bytes+1<<12)&^(1<<12-1) + 1<<12
	}
	return func(w *row, _ int) trace.Addr {
		for j := range arrays {
			a := &arrays[j]
			if w.addr < a.low || w.addr > a.high {
				continue
			}
			offset := w.addr - a.low
			in := offset % a.pitch
			for _, f := range a.fields {
				if in >= f.at && in < f.at+max(1, f.bytes) {
					in += f.to - f.at
					break
				}
			}
			return begins[j] + offset/a.pitch*a.bytes + in
		}
		return w.addr
	}
}

// merging merges several arrays, whose elements all have the same size, into one array of
// structures.
func merging(arrays []record, bytes uint64) rename {
	size := uint64(len(arrays)) * bytes
	for pitch := uint64(8); pitch <= 64; pitch *= 2 {
		if size <= pitch && size > pitch/2 {
			size = pitch // the next power of two, so that no element crosses a line boundary
		}
	}
	return func(w *row, _ int) trace.Addr {
		for j := range arrays {
			if a := &arrays[j]; w.addr >= a.low && w.addr <= a.high {
				offset := w.addr - a.low
				return newData + offset/bytes*size + uint64(j)*bytes + offset%bytes
			}
		}
		return w.addr
	}
}

// apart changes the lines that threads invalidate in each other's caches: it moves the words of
// each thread to separate lines. If copies is set, each thread has a private copy of words to which
// several threads store. The lines of a thread keep their order and their offsets in a page.
func apart(of *counts, shift uint, copies bool) rename {
	var list []trace.Line
	of.lines.each(func(at trace.Line, l *history) {
		if l.contended {
			list = append(list, at)
		}
	})
	slices.Sort(list)
	var contended lineTable
	for _, at := range list {
		*contended.need(at) = *of.lines.find(at)
	}
	const skew = 5 // in lines; the threads' lines are thus in different sets of a shared cache
	each := trace.Addr(len(contended.groups)<<groupShift+skew) << shift
	return func(w *row, _ int) trace.Addr {
		at := w.addr >> shift
		if len(list) == 0 || at < list[0] || at > list[len(list)-1] {
			return w.addr
		}
		index, ok := contended.known(at)
		if !ok {
			return w.addr
		}
		l := contended.historyAt(index)
		owner := l.owner[w.addr/wordBytes%words]
		switch {
		case !l.contended, copies && owner != several:
			return w.addr
		case copies:
			owner = w.thread
		}
		return newData + trace.Addr(owner)*each + trace.Addr(index)<<shift + w.addr&(1<<shift-1)
	}
}
