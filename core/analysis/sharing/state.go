package sharing

import (
	"cmp"
	"encoding/binary"
	"errors"
	"math/bits"
	"slices"
	"sort"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// What a run keeps besides its results, in section segh; uv is an unsigned LEB128
// varint, and a list is uv its length and that many members.
//
//	list of groups that the user chose as cores, each: list of uv thread
//	list of groups that he chose as domains, each: the same
//	uv threads that had no core of their own
//	list of cores, as they appeared, each
//	  uv group + 1, or 0 · uv thread that it was made for · list of uv thread
//	for each line size
//	  for each core
//	    its private stack, as section segm has stacks
//	    uv bytes · its coherent stack, as package stack draws it
//	  for each line of the stack of all, which is in section segm
//	    uv core that touched it last × 2, + 1 where others have the line, or the core
//	    has not · then: uv mask of those that have it
//	  overlaps of the domain of all cores
//	  for each domain with cores
//	    its stack, as section segm has stacks · for each line uv core that touched it
//	    last · overlaps
//	overlaps are, for each core, the uv lines that were last touched before the time of
//	its overlap. Only the order of times matters: it is that of the stack.

// state writes it.
func (a *Analysis) state() []byte {
	b := appendGroups(appendGroups([]byte{}, a.options.Cores), a.options.Domains)
	b = binary.AppendUvarint(b, uint64(a.cores.turn))
	b = binary.AppendUvarint(b, uint64(len(a.cores.list)))
	for i := range a.cores.list {
		g := &a.cores.list[i]
		b = binary.AppendUvarint(b, uint64(slices.Index(a.cores.number, i)+1))
		b = binary.AppendUvarint(b, uint64(g.possible[0]))
		b = appendThreads(b, g.threads)
	}
	for _, s := range a.sizes {
		b = s.state(b)
	}
	return b
}

func appendGroups(b []byte, groups [][]uint32) []byte {
	b = binary.AppendUvarint(b, uint64(len(groups)))
	for _, threads := range groups {
		b = appendThreads(b, threads)
	}
	return b
}

func appendThreads(b []byte, threads []uint32) []byte {
	b = binary.AppendUvarint(b, uint64(len(threads)))
	for _, t := range threads {
		b = binary.AppendUvarint(b, uint64(t))
	}
	return b
}

func (s *lineSize) state(b []byte) []byte {
	for _, c := range s.cores {
		b = profile.AppendStack(b, c.private.Stack())
		coherent := c.coherent.State()
		b = append(binary.AppendUvarint(b, uint64(len(coherent))), coherent...)
	}
	_, lines := s.analysis.pass.At(s.bytes)
	for _, x := range lines {
		e := s.all.directory.entry(x)
		last := e.last & 0xff
		if e.holders == 1<<last {
			b = binary.AppendUvarint(b, last<<1)
		} else {
			b = binary.AppendUvarint(binary.AppendUvarint(b, last<<1|1), e.holders)
		}
	}
	b = s.all.appendOverlaps(b, lines, len(s.cores))
	for _, d := range s.domains {
		if len(d.members) == 0 {
			continue
		}
		lines := d.sets.Stack()
		b = profile.AppendStack(b, lines)
		for _, x := range lines {
			b = binary.AppendUvarint(b, d.directory.entry(x).last&0xff)
		}
		b = d.appendOverlaps(b, lines, len(s.cores))
	}
	return b
}

// appendOverlaps writes the overlaps of a domain that has these lines on its stack.
func (d *domain) appendOverlaps(b []byte, lines []trace.Line, cores int) []byte {
	for _, time := range d.overlaps.both[:cores] {
		newer := sort.Search(len(lines), func(i int) bool { return d.directory.entry(lines[i]).last>>8 < time })
		b = binary.AppendUvarint(b, uint64(len(lines)-newer))
	}
	return b
}

var errState = errors.New("the state of the stacks of threads cannot be read; analyse the trace again from its start")

// Append implements analysis.Analysis. Segments with stacks of several threads are
// refused before it comes to that.
func (a *Analysis) Append(next *profile.Profile) error { return nil }

// Restore implements analysis.Analysis.
func (a *Analysis) Restore(p *profile.Profile) error {
	if p.Segment.Sharing == nil && len(p.Sharing) == 0 {
		if a.cores.several(p.Totals.Threads) {
			return errState
		}
		return nil
	}
	r := &loader{Decoder: profile.NewDecoder(p.Segment.Sharing), a: a}
	r.threads()
	if r.Err() != nil || r.wrong || len(p.Sharing) != len(a.sizes) {
		return errState
	}
	for i, s := range a.sizes {
		if p.Sharing[i].LineBytes != s.bytes || len(p.Sharing[i].Cores) != len(a.cores.list) {
			return errState
		}
		r.size(s, &p.Sharing[i], stackOf(p, s.bytes))
		if r.Err() != nil || r.wrong {
			return errState
		}
	}
	if a.running = true; len(r.Rest()) != 0 {
		return errState
	}
	return nil
}

// stackOf gives the LRU stack of a line size.
func stackOf(p *profile.Profile, lineBytes uint32) []trace.Line {
	for i := range p.Locality {
		if p.Locality[i].LineBytes == lineBytes && i < len(p.Segment.Lines) {
			return p.Segment.Lines[i].Stack
		}
	}
	return nil
}

// loader reads the section.
type loader struct {
	*profile.Decoder
	a     *Analysis
	wrong bool
}

func (r *loader) groups() (groups [][]uint32) {
	for range r.Length(1) {
		groups = append(groups, r.threadList())
	}
	return groups
}

func (r *loader) threadList() (threads []uint32) {
	for range r.Length(1) {
		threads = append(threads, uint32(r.UintBelow(1<<32)))
	}
	return threads
}

// threads reads which threads are on which cores.
func (r *loader) threads() {
	c := &r.a.cores
	same := func(x, y [][]uint32) bool { return slices.EqualFunc(x, y, slices.Equal[[]uint32]) }
	r.wrong = !same(r.groups(), r.a.options.Cores) || !same(r.groups(), r.a.options.Domains)
	c.turn = int(r.UintBelow(1 << 32))
	for range r.UintBelow(profile.MaxCores + 1) {
		group := int(r.UintBelow(uint64(len(c.groups))+1)) - 1
		own, threads := uint32(r.UintBelow(1<<32)), r.threadList()
		if r.Err() != nil || len(threads) == 0 || !slices.IsSorted(threads) || group >= 0 && c.number[group] >= 0 {
			r.wrong = true
			return
		}
		n := c.add([]uint32{own})
		if group >= 0 {
			c.list[n].possible, c.number[group] = c.groups[group], n
		}
		c.list[n].threads = threads
		for _, t := range threads {
			c.of[t] = uint8(n)
		}
	}
	r.wrong = r.wrong || len(c.list) < 2
}

// size reads the stacks of a line size, whose results and stack of all are known.
func (r *loader) size(s *lineSize, known *profile.Sharing, stack []trace.Line) {
	s.reset()
	s.addCores(len(r.a.cores.list))
	order := r.a.cores.order()
	for n, c := range s.cores {
		r.core(c, &known.Cores[slices.Index(order, n)])
	}
	at := 0 // in known.Domains
	for _, d := range append([]*domain{&s.all}, s.domains...) {
		if len(d.members) == 0 {
			continue
		}
		if r.wrong || r.Err() != nil || at == len(known.Domains) {
			r.wrong = true
			return
		}
		r.domain(d, &known.Domains[at], order, stack)
		at++
	}
	r.wrong = r.wrong || at != len(known.Domains)
}

func (r *loader) core(c *core, known *profile.Core) {
	private, coherent := r.Stack(), r.String()
	if r.wrong = r.wrong || r.Err() != nil || uint64(len(private)) != known.Private.Cold || beyond(private); r.wrong {
		return
	}
	c.load(known)
	push(private, c.private.Push)
	err := c.coherent.Restore([]byte(coherent))
	r.wrong = err != nil || c.private.Lines() != len(private) || c.coherent.Lines() != len(private)
}

// beyond reports whether lines are beyond the address space.
func beyond(lines []trace.Line) bool {
	return slices.ContainsFunc(lines, func(x trace.Line) bool { return x >= 1<<61 })
}

// load has a core go on from its result.
func (c *core) load(known *profile.Core) {
	c.privateCounts.load(&known.Private.Distances, known.Private.Cold)
	c.coherentCounts.load(&known.Coherent.Distances, known.Coherent.Cold)
	c.foreignCounts.load(&known.Foreign.Distances, known.Foreign.Cold)
	c.lost.load(&known.Coherent.Lost, 0)
	c.invalidations = known.Coherent.Invalidations
	c.privateSets.before.Add(&known.Private.Sets)
	c.coherentSets.before.Add(&known.Coherent.Sets)
	c.foreignSets.before.Add(&known.Foreign.Sets)
}

// domain reads the stack and directory of a domain; of that of all cores, the
// stack is known.
func (r *loader) domain(d *domain, known *profile.Domain, order []int, stack []trace.Line) {
	if d.sets != nil {
		stack = r.Stack()
	}
	_, cold := known.Concurrent()
	if r.wrong = uint64(len(stack)) != cold || beyond(stack) || !d.load(known, order); r.wrong {
		return
	}
	if d.sets != nil {
		push(stack, d.sets.Push)
		d.table.before.Add(&known.Sets)
	}
	for i, x := range stack {
		e := d.directory.entry(x)
		if e.last != 0 { // a second time
			r.wrong = true
		}
		last, holders := r.toucher(d, len(order))
		e.last, e.holders = uint64(len(stack)-i)<<8|last, holders
	}
	d.overlaps.now = uint64(len(stack))
	for n := range order {
		// Touches of the lines up to that one were before.
		d.overlaps.both[n] = r.UintBelow(uint64(len(stack))+1) + 1
	}
}

// toucher reads who touched a line last, and who has it.
func (r *loader) toucher(d *domain, cores int) (last, holders uint64) {
	if d.sets != nil {
		last = r.UintBelow(uint64(cores))
		r.wrong = r.wrong || !d.has(uint8(last))
		return last, 0
	}
	last = r.UintBelow(2 * uint64(cores))
	if holders = 1 << (last >> 1); last&1 != 0 {
		holders = r.Uint()
	}
	r.wrong = r.wrong || bits.Len64(holders) > cores
	return last >> 1, holders
}

// load has a domain go on from its result; it reports whether that has the same
// cores.
func (d *domain) load(known *profile.Domain, order []int) bool {
	members := 0
	for _, m := range d.members {
		if m != nil {
			members++
		}
	}
	if members != len(known.Cores) {
		return false
	}
	for i, at := range known.Cores {
		n := order[at]
		if !d.has(uint8(n)) {
			return false
		}
		m, result := d.members[n], &known.Members[i]
		m.counts.load(&result.Distances, result.Cold)
		m.dilated, m.overlapped = result.Change.Dilated, result.Change.Overlapped
		m.intercepted, m.brought = result.Change.Intercepted, result.Change.Brought
	}
	d.foreign.load(&known.Foreign.Distances, 0)
	d.foreignTable.before.Add(&known.Foreign.Sets)
	return true
}

// order gives the cores by their first thread.
func (c *cores) order() []int {
	order := make([]int, len(c.list))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(c.list[i].threads[0], c.list[j].threads[0]) })
	return order
}
