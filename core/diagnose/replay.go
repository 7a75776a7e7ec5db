package diagnose

import (
	"math/bits"
	"slices"
	"strings"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// A replay runs the references of the folded trace through the caches of the machine once
// more: as they are, or with other addresses, as they would be if the data lay elsewhere. Every
// level sees every access, as everywhere in this package.

// What a replay may cost.
const (
	mostReplayed = 20 << 20 // rows of one replay
	mostRows     = 80 << 20 // of all
	mostShared   = 1 << 20  // lines of a run with threads
	mostWays     = 64       // a wider set is not searched
)

// The buffers of a core that keep translations of addresses. Round figures of current cores.
const (
	pageShift      = 12
	hugeShift      = 21
	firstPages     = 64
	firstPageWays  = firstPages
	secondPages    = 2048
	secondPageWays = 16

	secondPageCycles = 7.0  // a translation that the second buffer has
	walkCycles       = 40.0 // one that has to be read from the page table
	walkOverlap      = 4.0  // walks that are under way at a time, where no load needs the one before
)

// splitCycles is what a reference costs more that lies across two lines.
const splitCycles = 2.0

// remoteExtra is how much longer memory of another socket takes, of what memory takes.
const remoteExtra = 0.7

// counts is what a replay counts.
type counts struct {
	sites     []siteCounts
	misses    [][]float64 // by level and site
	coherence [][]float64 // of these, after another core's store
	falsely   []float64   // of these in the first level, by site, at words that nobody else wrote
	idle      []waiting   // of threads for others
	blocks    []block     // that were allocated, ascending
	pages     map[trace.Addr]*page
	contended map[trace.Line]*line
	lines     map[trace.Line]*line
	team      int     // threads
	busy      float64 // cycles of all threads together
}

// siteCounts are those of a site.
type siteCounts struct {
	references, accesses, near, split uint64
	strides                           [profile.NumStrides]uint64
	second, walks                     float64 // translations from the second buffer, and from the page table
	low, high                         trace.Addr
	grain                             uint64 // that divides all distances between references
}

// waiting is what threads wait for the slowest of them, from one point where they meet to the
// next.
type waiting struct {
	cycles  float64
	slowest uint8
	fork    uint32 // the block at which the threads were forked
	dynamic bool   // the runtime divided the work while the program ran
	block   uint32 // of the slowest thread, in which it was longest
}

// page is who uses a page.
type page struct {
	first     uint8 // thread that stored to it first
	firstSite int32
	owner     uint8 // thread that uses it most, once another one than the first has used it
	shared    bool
	lead      int32
	user      int32   // a site of the owner
	far       float64 // cycles by which memory of another socket is later, for threads that did not store first
	moved     float64 // the same for lines that such threads fetch for the first time
}

// line is who has a line.
type line struct {
	sharers, lost, seen uint64   // bits of cores
	writer              [8]uint8 // of each word: 1 + the thread that stored to it last
	owner               [8]uint8 // of each word: 1 + the only thread that stored to it, or several
	hot                 bool     // cores took it from each other
	honest              bool     // for words that both use
}

const several = 255

// lru is a cache of one level: sets of line numbers, each plus one, the last used first.
type lru struct {
	sets uint64
	mask uint64 // sets-1 where sets are a power of two; else 0
	ways int
	tags []uint64
}

func newLRU(lines, ways uint64) *lru {
	c := &lru{sets: lines / ways, ways: int(ways), tags: make([]uint64, lines)}
	if bits.OnesCount64(c.sets) == 1 {
		c.mask = c.sets - 1
	}
	return c
}

func (c *lru) set(line uint64) []uint64 {
	at := uint64(0)
	if c.mask != 0 {
		at = line & c.mask
	} else if c.sets > 1 {
		at = line % c.sets
	}
	lo := int(at) * c.ways
	return c.tags[lo : lo+c.ways : lo+c.ways]
}

// use makes an access, and reports whether the line was there.
func (c *lru) use(line uint64) bool {
	set := c.set(line)
	tag := line + 1
	if set[0] == tag {
		return true
	}
	last := tag
	for i := range set {
		set[i], last = last, set[i]
		if last == tag {
			return true
		}
	}
	return false
}

// drop takes a line away.
func (c *lru) drop(line uint64) {
	set := c.set(line)
	for i := range set {
		if set[i] == line+1 {
			copy(set[i:], set[i+1:])
			set[len(set)-1] = 0
			return
		}
	}
}

// rename gives the address of a reference after a change.
type rename func(r *row, site int) trace.Addr

// replay is one run through the caches.
type replay struct {
	*counts
	schedule
	index     func(*row) int // of the site of a reference; -1: none
	to        rename         // nil: as it is
	shift     uint           // of lines
	pageShift uint
	levels    []hierarchy.Cache
	caches    [][]*lru // by level and number
	group     []int    // cores that share a cache of each level
	private   int      // levels that no other core shares
	buffers   [mostCores][2]*lru
	near      [mostCores][nearLines + 1]uint64
	latest    [mostCores]uint64  // page that was used last, plus one
	last      []lastOf           // by site and thread
	perFetch  [][]float64        // cycles of a fetch, by site and level
	perVisit  []float64          // cycles of a block
	perMiss   float64            // coherence
	remote    []float64          // by site
	native    []uint64           // bytes of the widest access of the machine, by site
	work      [mostCores]float64 // cycles of blocks
	waited    [mostCores]float64 // cycles for lines that no other core took
	began     [mostCores]float64 // both when the threads met last
	awaited   [mostCores]float64
	fork      uint32
	dynamic   bool
	longest   [mostCores]map[uint32]float64 // cycles by block since the threads met
	block     [mostCores]uint32
	broken    bool
}

type lastOf struct {
	addr   trace.Addr
	stride int64
	seen   bool
}

// canReplay tells whether the trace can be run through the caches again.
func (r *run) canReplay() bool {
	if r.loops == nil || r.p.State.Partial || r.p.Sampled != nil || r.loops.Tree().Rows() > mostReplayed {
		return false
	}
	for _, l := range r.Machine.Levels {
		ways := uint64(l.Ways)
		if l.Full() {
			ways = l.Lines()
		}
		if l.Hashed || ways == 0 || ways > mostWays || l.Lines()%ways != 0 || l.LineBytes != r.p.Sites.LineBytes {
			return false
		}
	}
	return true
}

// again runs the trace through the caches, with addresses changed by to (nil: as they are), and
// pages of 1<<pageShift bytes; nil: it cannot.
func (r *run) again(to rename, pageShift uint) *counts {
	rows := r.loops.Tree().Rows()
	if !r.canReplay() || r.replayed+rows > mostRows {
		return nil
	}
	r.replayed += rows
	n, levels := len(r.p.Sites.Code), len(r.Machine.Levels)
	c := &counts{sites: make([]siteCounts, n), falsely: make([]float64, n), team: max(1, len(r.p.Totals.Threads))}
	for range levels {
		c.misses = append(c.misses, make([]float64, n))
		c.coherence = append(c.coherence, make([]float64, n))
	}
	s := &replay{counts: c, to: to, shift: uint(bits.TrailingZeros32(r.p.Sites.LineBytes)), pageShift: pageShift, levels: r.Machine.Levels,
		caches: make([][]*lru, levels), last: make([]lastOf, n*min(c.team, mostCores))}
	s.schedule = schedule{tree: r.loops.Tree(), take: s.row, joined: s.join, forked: s.begin, goOn: r.GoOn, threads: c.team, creates: r.creates(), joins: r.joins()}
	s.index = siteIndex(r.p)
	if c.team > 1 {
		c.pages, c.lines = map[trace.Addr]*page{}, map[trace.Line]*line{}
	}
	s.private = levels
	for k, l := range r.Machine.Levels {
		shared := int(min(max(l.SharedBy, 1), mostCores))
		s.group = append(s.group, shared)
		if shared > 1 {
			s.private = min(s.private, k)
		}
	}
	memory := r.cost.latency[levels-1]
	for i := range n {
		of := &r.p.Sites.Code[i]
		var per []float64
		for k := range levels {
			wait := r.cost.latency[k] / r.cost.run.overlap[i]
			if k > 0 {
				wait -= r.cost.latency[k-1] / r.cost.run.overlap[i]
			}
			per = append(per, wait)
		}
		s.native = append(s.native, nativeBytes(r.cost.program, of))
		s.perFetch = append(s.perFetch, per)
		s.remote = append(s.remote, remoteExtra*memory/r.cost.run.overlap[i])
	}
	s.perMiss = r.handOver()
	if r.cost.program != nil {
		s.perVisit = make([]float64, len(r.cost.program.Blocks))
		for b := range s.perVisit {
			s.perVisit[b] = share(r.cost.hits.Blocks[b].Cycles, r.cost.visits[b])
		}
	}
	if !s.schedule.run() || s.broken {
		return nil
	}
	c.blocks = sortBlocks(c.blocks)
	for _, clock := range s.clock {
		c.busy += clock
	}
	return c
}

// creates tells blocks that end with a call that makes a thread.
func (r *run) creates() func(uint32) bool {
	return r.calls("pthread_create", "thrd_create", "_ZNSt6thread15_M_start_thread")
}

// joins tells blocks that end with a call that waits for the end of a thread.
func (r *run) joins() func(uint32) bool {
	return r.calls("pthread_join", "thrd_join", "_ZNSt6thread4joinEv")
}

// calls tells blocks that end with a call of a function whose name begins with one of some;
// nil: there is none.
func (r *run) calls(names ...string) func(uint32) bool {
	p := r.cost.program
	if p == nil {
		return nil
	}
	does := func(b uint32) bool {
		callee := p.Blocks[b].Callee
		return callee != "" && slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(callee, name) })
	}
	for b := range p.Blocks {
		if does(uint32(b)) {
			return func(b uint32) bool { return int64(b) < int64(len(p.Blocks)) && does(b) }
		}
	}
	return nil
}

// siteIndex finds the site of a reference in the profile.
func siteIndex(p *profile.Profile) func(*row) int {
	var byNumber []int32
	type key struct {
		pc   uint64
		kind trace.Kind
	}
	byPC := map[key]int{}
	for i := range p.Sites.Code {
		s := &p.Sites.Code[i]
		if s.Number == profile.NoSite {
			byPC[key{s.PC, s.Kind}] = i
			continue
		}
		if int(s.Number) >= len(byNumber) {
			if s.Number > 1<<24 {
				continue
			}
			more := make([]int32, int(s.Number)+1-len(byNumber))
			for j := range more {
				more[j] = -1
			}
			byNumber = append(byNumber, more...)
		}
		byNumber[s.Number] = int32(i)
	}
	if byNumber == nil {
		return func(r *row) int {
			if i, ok := byPC[key{r.pc, r.kind}]; ok {
				return i
			}
			return -1
		}
	}
	return func(r *row) int {
		if int(r.site) < len(byNumber) {
			return int(byNumber[r.site])
		}
		return -1
	}
}

// row takes a row of the trace.
func (s *replay) row(r *row) {
	if !r.kind.IsReference() {
		s.event(r)
		return
	}
	i := s.index(r)
	if i < 0 {
		return
	}
	addr := r.addr
	if s.to != nil {
		if r.bytes > 2<<s.shift {
			s.scattered(r, i)
			return
		}
		addr = s.to(r, i)
	}
	c := &s.sites[i]
	s.classify(c, i, r, addr)
	bytes := uint64(max(1, r.bytes))
	first, last := addr>>s.shift, (addr+bytes-1)>>s.shift
	if last > first {
		n := splits(addr, bytes, s.native[i], s.shift)
		c.split += n
		s.clock[r.thread] += splitCycles * float64(n)
	}
	for at := first; at <= last && at-first < 1<<20; at++ {
		s.access(c, i, r, at, addr, bytes)
	}
}

// scattered takes a range of memory, as a copy or a fill, whose words a change moves apart.
func (s *replay) scattered(r *row, i int) {
	const word = 8
	at := *r
	var lately [2]trace.Line
	for at.addr = r.addr; at.addr-r.addr < uint64(r.bytes); at.addr += word {
		addr := s.to(&at, i)
		line := addr >> s.shift
		if line == lately[0] || line == lately[1] {
			continue
		}
		lately[0], lately[1] = line, lately[0]
		s.access(&s.sites[i], i, &at, line, addr, word)
	}
	s.classify(&s.sites[i], i, r, s.to(r, i))
}

// splits is how many accesses of a reference lie across two lines; the machine makes them in
// pieces of native bytes.
func splits(addr trace.Addr, bytes, native uint64, shift uint) (n uint64) {
	if bytes > 16*native {
		return 0 // a range, which the runtime library divides as it likes
	}
	for border := (addr>>shift + 1) << shift; border < addr+bytes; border += 1 << shift {
		if (border-addr)%native != 0 {
			n++
		}
	}
	return n
}

// classify counts how a reference lies behind the one before of the same site and thread.
func (s *replay) classify(c *siteCounts, i int, r *row, addr trace.Addr) {
	if c.references == 0 {
		c.low, c.high = addr, addr
	}
	c.references++
	c.low, c.high = min(c.low, addr), max(c.high, addr+uint64(max(1, r.bytes))-1)
	l := &s.last[i]
	if s.threads > 1 {
		l = &s.last[i*min(s.team, mostCores)+int(r.thread)%min(s.team, mostCores)]
	}
	by := int64(addr - l.addr)
	class := profile.IrregularStride
	switch {
	case !l.seen:
	case by == 0:
		class = profile.ZeroStride
	case magnitude(by) == int64(r.bytes):
		class = profile.UnitStride
	case by == l.stride:
		class = profile.ConstantStride
	}
	c.strides[class]++
	if by != l.stride && l.seen {
		c.grain = gcd(c.grain, uint64(magnitude(by)))
	}
	l.addr, l.stride, l.seen = addr, by, true
}

// access is one of a line.
func (s *replay) access(c *siteCounts, i int, r *row, at trace.Line, addr trace.Addr, bytes uint64) {
	c.accesses++
	core := r.thread
	near := &s.near[core]
	tag := at + 1
	store := r.kind == trace.Store || r.kind == trace.Modify || r.kind == trace.RangeWrite
	if near[0] == tag && s.threads < 2 {
		c.near++
		return
	}
	lost := false
	var of *line
	if s.threads > 1 {
		of, lost = s.share(core, at, addr, bytes, store)
		if s.broken {
			return
		}
		if near[0] == tag && !lost {
			c.near++
			return
		}
	}
	position := len(near) - 1
	for k := range near {
		if near[k] == tag {
			c.near++
			position = k
			break
		}
	}
	copy(near[1:position+1], near[:position])
	near[0] = tag
	if lost {
		for k := range s.private {
			s.coherence[k][i]++
		}
		s.clock[core] += s.perMiss
		if !of.honest {
			s.falsely[i]++
		}
	}
	missed := false
	for k := range s.caches {
		cache := s.cache(k, core)
		if cache.use(at) {
			continue
		}
		s.misses[k][i]++
		missed = k == len(s.caches)-1
		if !lost {
			s.clock[core] += s.perFetch[i][k]
			s.waited[core] += s.perFetch[i][k]
		}
	}
	s.translate(c, core, addr)
	if s.pages != nil {
		s.place(r, i, at, of, store, missed, lost)
	}
}

// cache is that of a core in a level.
func (s *replay) cache(k int, core uint8) *lru {
	number := int(core) / s.group[k]
	for len(s.caches[k]) <= number {
		s.caches[k] = append(s.caches[k], nil)
	}
	c := s.caches[k][number]
	if c == nil {
		c = s.make(k)
		s.caches[k][number] = c
	}
	return c
}

func (s *replay) make(k int) *lru {
	l := s.levels[k]
	ways := uint64(l.Ways)
	if l.Full() {
		ways = l.Lines()
	}
	return newLRU(l.Lines(), ways)
}

// translate looks the page of an access up.
func (s *replay) translate(c *siteCounts, core uint8, addr trace.Addr) {
	page := addr >> s.pageShift
	if s.latest[core] == page+1 {
		return
	}
	s.latest[core] = page + 1
	b := &s.buffers[core]
	if b[0] == nil {
		b[0], b[1] = newLRU(firstPages, firstPageWays), newLRU(secondPages, secondPageWays)
	}
	first, second := b[0].use(page), b[1].use(page)
	switch {
	case first:
	case second:
		c.second++
	default:
		c.walks++
	}
}

// share keeps a line coherent: a store takes it from the other cores. lost tells that this core
// had it until another one stored to it.
func (s *replay) share(core uint8, at trace.Line, addr trace.Addr, bytes uint64, store bool) (of *line, lost bool) {
	of = s.lines[at]
	if of == nil {
		if len(s.lines) == mostShared {
			s.broken = true
			return nil, false
		}
		of = &line{}
		s.lines[at] = of
	}
	me := uint64(1) << core
	lost = of.lost&me != 0
	honest := false
	from := at << s.shift
	lo, hi := uint64(0), uint64(0)
	if addr > from {
		lo = (addr - from) / 8
	}
	if end := addr + bytes; end > from {
		hi = min((end-from-1)/8, 7)
	}
	lo = min(lo, 7)
	for w := lo; w <= hi; w++ {
		if of.writer[w] != 0 && of.writer[w] != core+1 {
			honest = true
		}
		if store {
			of.writer[w] = core + 1
			switch {
			case !s.open: // one thread alone, as before the others begin
			case of.owner[w] == 0:
				of.owner[w] = core + 1
			case of.owner[w] != core+1:
				of.owner[w] = several
			}
		}
	}
	if lost {
		of.hot = true
		of.honest = honest
		s.contend(at, of)
	}
	of.lost &^= me
	if store && of.sharers&^me != 0 {
		for others := of.sharers &^ me; others != 0; others &= others - 1 {
			other := bits.TrailingZeros64(others)
			of.lost |= 1 << other
			for k := range s.private {
				if n := other / s.group[k]; n < len(s.caches[k]) && s.caches[k][n] != nil {
					s.caches[k][n].drop(at)
				}
			}
			for j := range s.near[other] {
				if s.near[other][j] == at+1 {
					s.near[other][j] = 0
				}
			}
		}
		of.sharers = 0
	}
	of.sharers |= me
	return of, lost
}

func (s *replay) contend(at trace.Line, of *line) {
	if s.contended == nil {
		s.contended = map[trace.Line]*line{}
	}
	s.contended[at] = of
}

// place counts who uses a page, and what memory of another socket would cost.
func (s *replay) place(r *row, i int, at trace.Line, of *line, store, missed, lost bool) {
	number := at << s.shift >> pageShift
	p := s.pages[number]
	if p == nil {
		if !store {
			return
		}
		p = &page{first: r.thread, firstSite: int32(i), owner: r.thread, user: int32(i)}
		s.pages[number] = p
	}
	p.shared = p.shared || p.first != r.thread
	switch {
	case !p.shared: // it fills the page
	case p.owner == r.thread:
		p.lead++
		p.user = int32(i)
	case p.lead == 0:
		p.owner, p.lead, p.user = r.thread, 1, int32(i)
	default:
		p.lead--
	}
	if p.first == r.thread {
		return
	}
	if missed {
		p.far += s.remote[i]
	} else if !lost && of != nil && of.seen&(1<<r.thread) == 0 {
		p.moved += s.remote[i]
	}
	if of != nil {
		of.seen |= 1 << r.thread
	}
}

// event takes a row that is no reference.
func (s *replay) event(r *row) {
	switch r.kind {
	case trace.BlockEntry, trace.BareBlock:
		if int(r.site) < len(s.perVisit) {
			cycles := s.perVisit[r.site]
			s.clock[r.thread] += cycles
			s.work[r.thread] += cycles
			s.block[r.thread] = r.site
			if s.threads > 1 && s.open {
				if s.longest[r.thread] == nil {
					s.longest[r.thread] = map[uint32]float64{}
				}
				s.longest[r.thread][r.site] += cycles
			}
		}
	case trace.ParallelBegin:
		if s.fork = r.site; s.fork == 0 {
			s.fork = s.block[r.thread]
		}
	case trace.Alloc:
		if len(s.blocks) < mostShared && s.to == nil {
			s.blocks = append(s.blocks, block{r.addr, r.arg})
		}
	case trace.LoopBegin:
		s.dynamic = s.dynamic || !static(r.addr)
	case trace.TaskBegin:
		s.dynamic = true
	}
}

// static tells the schedules of OpenMP that divide a loop before it runs.
func static(schedule trace.Addr) bool {
	const chunked, plain, ordered, modifiers = 33, 34, 32, 1<<29 | 1<<30
	schedule &^= modifiers
	return schedule == chunked || schedule == plain || schedule == chunked+ordered || schedule == plain+ordered
}

// join has the threads meet: the others have waited for the slowest. Work is what is divided:
// a thread whose share misses more often than others has its own problem.
func (s *replay) join() {
	slowest, latest, sum, waited, working := 0, 0.0, 0.0, 0.0, 0
	for i := range mostCores {
		if s.worked>>i&1 == 0 {
			continue
		}
		own := s.work[i] - s.began[i]
		if !s.regions && uint8(i) == s.master { // it waits for those that it started
			continue
		}
		working++
		sum += own
		waited += s.waited[i] - s.awaited[i]
		if own > latest {
			slowest, latest = i, own
		}
	}
	if working > 1 {
		w := waiting{cycles: (float64(working)*latest - sum) * (1 + share(waited, sum)), slowest: uint8(slowest), fork: s.fork, dynamic: s.dynamic}
		most := -1.0
		for b, cycles := range s.longest[slowest] {
			if cycles > most || cycles == most && b < w.block {
				w.block, most = b, cycles
			}
		}
		s.idle = append(s.idle, w)
	}
	for i := range s.longest {
		clear(s.longest[i])
	}
	s.dynamic = false
	s.begin()
}

// begin has the threads begin.
func (s *replay) begin() { s.began, s.awaited = s.work, s.waited }

// nativeLeast is what every machine of today accesses at a time.
const nativeLeast = 16

// nativeBytes is the widest access that the code of a site makes.
func nativeBytes(p *trace.Program, s *profile.Site) uint64 {
	const least = nativeLeast
	if p == nil || int64(s.Number) >= int64(len(p.Sites)) {
		return least
	}
	b := p.Sites[s.Number].Block
	if int64(b) >= int64(len(p.Blocks)) || int64(p.Blocks[b].Function) >= int64(len(p.Functions)) {
		return least
	}
	float := strings.Contains(s.Type, "float") || strings.Contains(s.Type, "double")
	return uint64(max(least, p.Functions[p.Blocks[b].Function].Target.VectorBits(float)/8))
}
