package sharing

import (
	"errors"
	"math/bits"
	"slices"
	"sort"

	"github.com/stackglass/stackglass/core/analysis/locality"
	"github.com/stackglass/stackglass/core/codec"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// Section segh contains the state of a run, except for the results. The type uv is an unsigned
// LEB128 varint. A list is encoded as its length (uv) followed by its elements, and a stack as in
// section segm.
//
//	list of the user's cores, and list of the user's domains, each: list of uv thread
//	uv number of threads that were assigned to existing cores
//	list of cores, in the order in which they appeared, each
//	  uv group + 1, or 0 if the core belongs to no group · uv first thread · list of uv thread
//	for each line size
//	  for each core: private stack · uv bytes · coherent stack, as encoded by package stack
//	  for each line of the stack of all cores, which is in section segm
//	    uv 2 × the core that touched the line last, + 1 if the bit set of holders follows
//	    uv bit set of the cores that have a valid copy of the line, unless only this core has one
//	  overlaps of the domain of all cores
//	  for each other domain with cores
//	    stack · for each line of the stack: uv core that touched the line last · overlaps
//
// The overlap of each core is encoded as the number (uv) of lines that were last touched before the
// time of the overlap. This number is sufficient because only the order of the times matters, and
// the stack contains the lines in this order.
//
// If a mergeable state has at most one core, it contains, for each line size, only a list of the
// lines to which the core stored, each encoded as
//
//	zigzag varint line − previous line · uv number of first touches since the previous list element
//
// If a mergeable state has several cores, the stacks of each line size are followed by a list of
// notes (segment.go), each encoded as
//
//	zigzag varint line − previous line · uv operation + 4 × core + 256 × filled

func (a *Analysis) state() []byte {
	w := codec.Writer([]byte{})
	codeGroups(w, &a.options.Cores)
	codeGroups(w, &a.options.Domains)
	turn, cores := uint64(a.cores.turn), uint64(len(a.cores.list))
	w.U64s(&turn, &cores)
	for i := range a.cores.list {
		g := &a.cores.list[i]
		m := madeCore{slices.Index(a.cores.number, i) + 1, g.possible[0], g.threads}
		m.code(w, len(a.cores.groups))
	}
	for _, s := range a.sizes {
		if !a.running {
			codeStores(w, &s.segment.stores)
			continue
		}
		if s.state(w); s.segment != nil {
			codeNotes(w, &s.segment.notes)
		}
	}
	return w.Out
}

func codeGroups(c *codec.Coder, groups *[][]uint32) {
	codec.Slice(c, groups, 1, func(threads *[]uint32) { codec.Slice(c, threads, 1, c.U32) })
}

type madeCore struct {
	group   int // 1 + the index of the group; 0: the core belongs to no group
	own     uint32
	threads []uint32
}

func (m *madeCore) code(c *codec.Coder, groups int) {
	codec.Below(c, &m.group, uint64(groups)+1)
	c.U32(&m.own)
	codec.Slice(c, &m.threads, 1, c.U32)
}

func (s *lineSize) state(w *codec.Coder) {
	for _, c := range s.cores {
		private, coherent := c.private.Stack(), c.coherentState()
		w.Stack(&private)
		w.Bytes(&coherent)
	}
	_, lines := s.analysis.pass.At(s.bytes)
	s.all.state(w, lines, false, len(s.cores))
	for _, d := range s.domains {
		if len(d.members) == 0 {
			continue
		}
		lines := d.sets.Stack()
		w.Stack(&lines)
		d.state(w, lines, true, len(s.cores))
	}
}

// state writes the core that last touched each line of the domain's stack, and then the overlaps of
// the domain.
func (d *domain) state(w *codec.Coder, lines []trace.Line, own bool, cores int) {
	for _, x := range lines {
		e := d.directory.entry(x)
		t := toucher{uint8(e.last), e.holders}
		t.code(w, own, cores)
	}
	for _, time := range d.overlaps.both[:cores] {
		newer := sort.Search(len(lines), func(i int) bool { return d.directory.entry(lines[i]).last>>8 < time })
		older := uint64(len(lines) - newer)
		w.U64(&older)
	}
}

var errState = errors.New("the saved state of the per-thread stacks is damaged; analyse the trace again from its start")

// Restore implements [contract.Analysis].
func (a *Analysis) Restore(p *profile.Profile) error {
	references := p.Totals.AllReferences()
	a.seen = references > 0
	switch {
	case p.Segment.Sharing != nil:
		return a.restore(p)
	case a.options.Mergeable:
		a.absent = a.seen
	case len(p.Sharing) > 0 || a.cores.assignAll(p.Totals.Threads):
		return errState
	}
	return nil
}

func (a *Analysis) restore(p *profile.Profile) error {
	r := &loader{codec.Reader(p.Segment.Sharing), a}
	r.threads()
	r.failUnless(!slices.ContainsFunc(p.Locality, func(l profile.Locality) bool { return l.Sets == nil }))
	if a.running = len(p.Sharing) > 0; !r.failUnless(a.running == (len(a.cores.list) > 1) && (len(p.Sharing) == len(a.sizes) || !a.running && a.options.Mergeable)) {
		return errState
	}
	for i, s := range a.sizes {
		if !a.running {
			s.segment.touches = uint64(len(locality.StackOf(p, s.bytes)))
			s.segment.stores = r.stores(s.segment.touches)
			for _, store := range s.segment.stores {
				s.segment.lines.entry(store.line).last = 1
			}
		} else if p.Sharing[i].LineBytes != s.bytes || len(p.Sharing[i].Cores) != len(a.cores.list) {
			return errState
		} else if at := r.part(&p.Sharing[i], locality.StackOf(p, s.bytes)); at != nil {
			r.failUnless(s.continueFrom(at))
		}
		if r.Failed() {
			return errState
		}
	}
	if r.More() {
		return errState
	}
	return nil
}

type loader struct {
	*codec.Coder
	a *Analysis
}

// failUnless records a decoding error unless the condition holds. failUnless returns false after
// any error.
func (r *loader) failUnless(possible bool) bool {
	r.Check(possible, errState.Error())
	return !r.Failed()
}

func (r *loader) stack() (lines []trace.Line) {
	if r.Stack(&lines); !r.failUnless(!beyondAddressSpace(lines)) {
		return nil
	}
	return lines
}

// threads reads the assignment of threads to cores.
func (r *loader) threads() {
	c := &r.a.cores
	for _, chosen := range [][][]uint32{r.a.options.Cores, r.a.options.Domains} {
		var groups [][]uint32
		codeGroups(r.Coder, &groups)
		r.failUnless(slices.EqualFunc(groups, chosen, slices.Equal[[]uint32]))
	}
	codec.Below(r.Coder, &c.turn, 1<<32)
	for range r.In.UintBelow(profile.MaxCores + 1) {
		var m madeCore
		m.code(r.Coder, len(c.groups))
		group, threads := m.group-1, m.threads
		if !r.failUnless(len(threads) > 0 && slices.IsSorted(threads) && (group < 0 || c.number[group] < 0)) {
			return
		}
		n := c.add([]uint32{m.own})
		if group >= 0 {
			c.list[n].possible, c.number[group] = c.groups[group], n
		}
		c.list[n].threads = threads
		for _, t := range threads {
			c.of[t] = uint8(n)
		}
	}
}

// sizePart is the state for a line size, except for the results.
type sizePart struct {
	cores   []corePart
	domains []domainPart // the domain of all cores, and the user's domains
	notes   []note
	lines   directory // states of the lines of the notes
}

type corePart struct {
	*profile.Core
	private  []trace.Line
	coherent []byte
}

// domainPart is the state of a domain. domainPart is empty if the domain has no cores.
type domainPart struct {
	*profile.Domain
	members  []*profile.Member // indexed by core
	stack    []trace.Line      // most recently used first
	touchers []toucher         // for each line of the stack
	overlaps []uint64          // for each core: number of lines that were last touched before the core's overlap
}

// toucher contains the core that last touched a line, and the cores that have a valid copy of the
// line.
type toucher struct {
	last    uint8
	holders uint64
}

// part reads the state for a line size, or returns nil if the state is damaged. The results and the
// stack of all cores must already be known.
func (r *loader) part(known *profile.Sharing, stack []trace.Line) *sizePart {
	p, list := new(sizePart), r.a.cores.list
	order := r.a.cores.Order()
	for n := range list {
		c := corePart{Core: &known.Cores[slices.Index(order, n)], private: r.stack()}
		if r.Bytes(&c.coherent); !r.failUnless(uint64(len(c.private)) == c.Private.Cold) {
			return nil
		}
		p.cores = append(p.cores, c)
	}
	at := 0 // index in known.Domains
	for i := range len(r.a.options.Domains) + 1 {
		d, members := domainPart{}, r.a.cores.coresIn(i, r.a.options.Domains)
		if members == 0 {
			p.domains = append(p.domains, d)
			continue
		}
		if !r.failUnless(at < len(known.Domains)) {
			return nil
		}
		d.Domain, d.stack = &known.Domains[at], stack
		if r.domain(&d, i > 0, members, order); r.Failed() {
			return nil
		}
		p.domains = append(p.domains, d)
		at++
	}
	if r.failUnless(at == len(known.Domains)) && r.a.options.Mergeable {
		p.notes, p.lines = r.notes(len(list))
	}
	return p
}

// coresIn returns the bit set of the cores in a domain. Domain number 0 contains all cores.
func (c *Grouping) coresIn(number int, domains [][]uint32) (members uint64) {
	if number == 0 {
		return 1<<len(c.list) - 1
	}
	for n := range c.list {
		if c.IsIn(uint8(n), domains[number-1]) {
			members |= 1 << n
		}
	}
	return members
}

// continueFrom makes a line size continue from a saved state, and reports whether the state is
// consistent.
func (s *lineSize) continueFrom(p *sizePart) bool {
	s.reset(len(p.domains[0].stack))
	s.addCores(len(p.cores))
	for n, c := range s.cores {
		c.load(p.cores[n].Core)
		locality.PushAll(p.cores[n].private, c.private.Push)
		lines := len(p.cores[n].private)
		if c.setCoherent(p.cores[n].coherent) != nil || c.private.Lines() != lines || c.coherent != nil && c.coherent.Lines() != lines {
			return false
		}
	}
	for i, d := range s.allDomains() {
		if p.domains[i].Domain == nil {
			continue
		}
		d.load(&p.domains[i])
		if !d.restoreStack(&p.domains[i]) {
			return false
		}
	}
	if s.segment != nil {
		s.segment.notes, s.segment.lines, s.segment.from = p.notes, p.lines, len(p.notes)
	}
	return true
}

func (s *lineSize) allDomains() []*domain { return append([]*domain{&s.all}, s.domains...) }

// beyondAddressSpace reports whether any line lies beyond the end of the address space.
func beyondAddressSpace(lines []trace.Line) bool {
	return slices.ContainsFunc(lines, func(x trace.Line) bool { return x >= 1<<61 })
}

func (c *core) load(known *profile.Core) {
	c.privateCounts.load(&known.Private.Distances, known.Private.Cold)
	c.coherentCounts.load(&known.Coherent.Distances, known.Coherent.Cold)
	c.foreignCounts.load(&known.Foreign.Distances, known.Foreign.Cold)
	c.lost.load(&known.Coherent.Lost, 0)
	c.invalidations += known.Coherent.Invalidations
	c.privateSets.before.Add(&known.Private.Sets)
	c.coherentSets.before.Add(&known.Coherent.Sets)
	c.foreignSets.before.Add(&known.Foreign.Sets)
}

// domain reads the stack and the directory of a domain. The stack of the domain of all cores is
// already known.
func (r *loader) domain(d *domainPart, own bool, members uint64, order []int) {
	if own {
		d.stack = r.stack()
	}
	_, cold := d.Concurrent()
	if !r.failUnless(uint64(len(d.stack)) == cold && !beyondAddressSpace(d.stack) && len(d.Cores) == bits.OnesCount64(members)) {
		return
	}
	d.members = make([]*profile.Member, len(order))
	for i, at := range d.Cores {
		n := order[at]
		d.members[n] = &d.Members[i]
		r.failUnless(members>>n&1 != 0)
	}
	d.touchers, d.overlaps = make([]toucher, len(d.stack)), make([]uint64, len(order))
	for i := range d.touchers {
		t := &d.touchers[i]
		t.code(r.Coder, own, len(order))
		r.failUnless(members>>t.last&1 != 0 && bits.Len64(t.holders) <= len(order))
	}
	for n := range d.overlaps {
		codec.Below(r.Coder, &d.overlaps[n], uint64(len(d.stack))+1)
	}
}

// code reads or writes a toucher. If the domain has its own stack, the holders are not encoded.
func (t *toucher) code(c *codec.Coder, own bool, cores int) {
	if own {
		codec.Below(c, &t.last, uint64(cores))
		return
	}
	last := uint64(t.last) << 1
	if t.holders != 1<<t.last {
		last |= 1
	}
	if codec.Below(c, &last, 2*uint64(cores)); c.Reads() {
		t.last, t.holders = uint8(last>>1), 1<<(last>>1)
	}
	if last&1 != 0 {
		c.U64(&t.holders)
	}
}

// load loads the result of a domain.
func (d *domain) load(known *domainPart) {
	for n, result := range known.members {
		if result != nil {
			m := d.members[n]
			m.counts.load(&result.Distances, result.Cold)
			m.dilated += result.Change.Dilated
			m.overlapped += result.Change.Overlapped
			m.intercepted += result.Change.Intercepted
			m.brought += result.Change.Brought
		}
	}
	d.foreign.load(&known.Foreign.Distances, 0)
	d.foreignTable.before.Add(&known.Foreign.Sets)
	if d.sets != nil {
		d.table.before.Add(&known.Sets)
	}
}

// restoreStack pushes the saved lines onto the stack of an empty domain, and reports whether all
// lines are distinct.
func (d *domain) restoreStack(known *domainPart) bool {
	if d.sets != nil {
		locality.PushAll(known.stack, d.sets.Push)
	}
	for i, x := range known.stack {
		e := d.directory.entry(x)
		if e.last != 0 {
			return false
		}
		t := known.touchers[i]
		e.last, e.holders = uint64(len(known.stack)-i)<<8|uint64(t.last), t.holders
	}
	d.overlaps.now = uint64(len(known.stack))
	for n, older := range known.overlaps {
		d.overlaps.both[n] = older + 1 // this line and all lines below it were touched before the overlap
	}
	return true
}

// Order returns the cores in the order in which profiles list them: sorted by their first threads.
func (c *Grouping) Order() []int {
	order := make([]int, len(c.list))
	for i := range order {
		order[i] = i
	}
	sort.Slice(order, func(i, j int) bool { return c.list[order[i]].threads[0] < c.list[order[j]].threads[0] })
	return order
}
