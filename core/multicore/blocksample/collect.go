package blocksample

import (
	"math"
	"math/bits"
	"slices"
	"sort"
	"strconv"

	"github.com/stackglass/stackglass/core/analysis/contract"
	"github.com/stackglass/stackglass/core/analysis/index"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace"
)

// Options defines which windows are sampled, and which threads share a stack.
type Options struct {
	LineBytes uint32 // size of a cache line, a power of two
	Seed      uint64 // seed for selecting the sampled windows
	Looked    Looked
	// SharedBy is the number of consecutive threads that share a stack. If SharedBy is 1, each
	// thread has its own stack. If SharedBy is 0, all threads share one stack.
	SharedBy uint32
}

// Looked selects how many windows of each block are sampled.
type Looked struct {
	Rate  float64 // the fraction of the windows to sample, above 0 and at most 1; 0 means 1 %
	Least int     // the minimum number of sampled windows per block, 2 to MostLeast; 0 means 30
}

// MostLeast is the largest value permitted for Looked.Least.
const MostLeast = 1 << 12

// All selects every window of every block.
var All = Looked{Rate: 1}

// WithDefaults returns l with zeros replaced by the defaults.
func (l Looked) WithDefaults() Looked {
	if l.Rate == 0 {
		l.Rate = 0.01
	}
	if l.Least == 0 {
		l.Least = LeastWindows
	}
	return l
}

// Check validates the options l. The error is a *trace.OptionError.
func (l Looked) Check() error {
	l = l.WithDefaults()
	if !(l.Rate > 0 && l.Rate <= 1) {
		return &trace.OptionError{Option: "rate", Got: strconv.FormatFloat(l.Rate, 'g', -1, 64), Want: "a fraction of windows above 0 and at most 1, for example 0.05"}
	}
	if l.Least < 2 || l.Least > MostLeast {
		return &trace.OptionError{Option: "least", Got: strconv.Itoa(l.Least), Want: "2 to " + strconv.Itoa(MostLeast) + " windows per block"}
	}
	return nil
}

// threshold returns the threshold for window numbers. All windows with lower numbers are sampled.
func (l Looked) threshold() uint64 {
	switch l.Rate {
	case 0.01:
		return (1 << 64) / 100
	case 1:
		return math.MaxUint64
	}
	return uint64(l.Rate * (1 << 64))
}

// Collector samples windows of a trace as the trace is being read. Threads must be numbered from 0.
// The caller should select references and BlockEntry events. In a trace without BlockEntry
// events, a window begins whenever the site number does not increase.
type Collector struct {
	o         Options
	shift     uint
	program   func() *trace.Program
	threshold uint64      // windows with numbers below this threshold are sampled
	stacks    []*gatherer // stacks, indexed by number
	threads   []running   // threads, indexed by number
	depth     int         // nesting depth of regions
}

type running struct {
	on    *gatherer
	now   *window // nil if the window is not sampled
	block uint32
	site  uint32
	entry bool // whether the window began with a BlockEntry event
	began bool
}

// LeastWindows is the default minimum number of sampled windows per block. If a block has fewer
// windows, all of them are sampled.
const LeastWindows = 30

// windowNumber returns the number of a window: a hash of the block and of the number of its
// earlier executions. Only this number determines whether the window is sampled.
func windowNumber(seed uint64, block uint32, before uint64) uint64 {
	return index.Hash(seed ^ index.Hash(uint64(block)<<32^index.Hash(before)))
}

// MostThreads is the maximum number of threads that have their own stacks. If all threads share a
// stack, threads beyond this number are treated like the last thread.
const MostThreads = 1 << 8

// New returns a collector. The function program must return the code that the trace's tables have
// described so far. The error is a *trace.OptionError.
func New(o Options, program func() *trace.Program) (*Collector, error) {
	if o.LineBytes == 0 || o.LineBytes&(o.LineBytes-1) != 0 || o.LineBytes < 8 {
		return nil, &trace.OptionError{Option: "line", Got: strconv.Itoa(int(o.LineBytes)), Want: "a power of two of at least 8 bytes"}
	}
	if err := o.Looked.Check(); err != nil {
		return nil, err
	}
	o.Looked = o.Looked.WithDefaults()
	return &Collector{o: o, shift: uint(bits.TrailingZeros32(o.LineBytes)), threshold: o.Looked.threshold(), program: program}, nil
}

// gatherer contains an LRU stack and the counts of the windows that use this stack.
type gatherer struct {
	seed      uint64
	model     *stack.Exact
	lines     []trace.Line
	of        []*window // window of each line
	distances []uint32
	blocks    []sampled
}

type sampled struct {
	executions, parallel, references, accesses uint64

	windows uint64 // number of windows whose numbers are below the threshold
	// groups of sampled windows; used after the number of windows below the threshold has reached
	// the minimum (Options.Looked.Least)
	groups []*window
	// windows with the lowest numbers, in ascending order; used until the number of windows below
	// the threshold reaches the minimum
	lowest []*window
}

// mostGroups is the maximum number of groups of windows for each block. The variance is computed
// between groups.
const mostGroups = 64

// mostLines is the maximum number of line accesses whose distances are computed at once.
const mostLines = 4096

// Kinds contains the kinds of rows to read. The beginnings and ends of regions show which blocks
// are parallel.
const Kinds = trace.DataKinds | 1<<trace.BlockEntry | 1<<trace.ParallelBegin | 1<<trace.ParallelEnd

// Consume processes the next rows of the trace.
func (c *Collector) Consume(b *trace.Batch) error {
	if b.Site == nil {
		return nil
	}
	p := c.program()
	for i, k := range b.Kind {
		switch {
		case k == trace.ParallelBegin:
			c.depth++
		case k == trace.ParallelEnd:
			c.depth = max(0, c.depth-1)
		}
		if !k.IsReference() && k != trace.BlockEntry {
			continue
		}
		thread, site := uint32(0), b.Site[i]
		if b.Thread != nil {
			thread = b.Thread[i]
		}
		if c.o.SharedBy == 0 {
			thread = min(thread, MostThreads-1)
		}
		if uint64(thread) >= uint64(len(c.threads)) {
			if err := c.meet(thread); err != nil {
				return err
			}
		}
		t := &c.threads[thread]
		if k == trace.BlockEntry {
			t.begin(site, true)
			continue
		}
		if p == nil || uint64(site) >= uint64(len(p.Sites)) {
			known := 0
			if p != nil {
				known = len(p.Sites)
			}
			return &contract.UnknownError{What: "site", Number: site, Known: known, Without: "blocks"}
		}
		block := p.Sites[site].Block
		if uint64(block) >= uint64(len(p.Blocks)) {
			return &contract.UnknownError{What: "block", Number: block, Known: len(p.Blocks), Without: "blocks"}
		}
		if block != t.block || t.began && !t.entry && site <= t.site {
			t.begin(block, false)
		}
		end := b.Addr[i] + uint64(max(b.Bytes[i], 1)) - 1
		if end < b.Addr[i] {
			return &EndError{b.Addr[i], b.Bytes[i]}
		}
		c.access(t, site, b.Addr[i]>>c.shift, end>>c.shift)
	}
	for _, g := range c.stacks {
		g.flush()
	}
	return nil
}

func (c *Collector) meet(thread uint32) error {
	if thread >= MostThreads {
		return &trace.OptionError{Option: "threads", Got: "number " + strconv.FormatUint(uint64(thread), 10), Want: "thread numbers below " + strconv.Itoa(MostThreads)}
	}
	for uint64(len(c.threads)) <= uint64(thread) {
		if len(c.stacks) == 0 || c.o.SharedBy > 0 && uint32(len(c.threads))%c.o.SharedBy == 0 {
			seed := c.o.Seed
			if n := len(c.stacks); n > 0 {
				// each core samples different windows
				seed = index.Hash(seed + uint64(n))
			}
			c.stacks = append(c.stacks, &gatherer{seed: seed, model: stack.NewExact(), distances: make([]uint32, mostLines)})
		}
		c.threads = append(c.threads, running{on: c.stacks[len(c.stacks)-1], block: ^uint32(0)})
	}
	return nil
}

// EndError reports a reference that extends beyond the end of the address space.
type EndError struct {
	Addr  trace.Addr
	Bytes uint32
}

func (e *EndError) Error() string {
	return "a reference of " + strconv.FormatUint(uint64(e.Bytes), 10) + " bytes at address 0x" + strconv.FormatUint(e.Addr, 16) +
		" extends beyond the end of the address space; the trace is damaged: capture the program again"
}

// begin starts a new execution of a block. The execution becomes a window only when it makes a
// reference.
func (t *running) begin(block uint32, entry bool) {
	t.now, t.block, t.entry, t.began = nil, block, entry, false
}

func (c *Collector) access(t *running, site uint32, first, last trace.Line) {
	g := t.on
	if !t.began {
		for uint64(len(g.blocks)) <= uint64(t.block) {
			g.blocks = append(g.blocks, make([]sampled, max(64, min(len(g.blocks), 1<<16)))...)
		}
		s := &g.blocks[t.block]
		t.began, t.now = true, c.windowFor(s, windowNumber(g.seed, t.block, s.executions))
		if s.executions++; c.depth > 0 {
			s.parallel++
		}
	}
	t.site = site
	g.blocks[t.block].references++
	g.blocks[t.block].accesses += last - first + 1
	for line := first; ; line++ {
		if len(g.lines) == mostLines {
			g.flush()
		}
		if g.lines, g.of = append(g.lines, line), append(g.of, t.now); line == last {
			break
		}
	}
}

// windowFor returns the window that counts the execution with the given number, or nil if the
// execution is not sampled.
func (c *Collector) windowFor(s *sampled, number uint64) *window {
	looked := number < c.threshold || c.o.Looked.Rate == 1
	if looked {
		s.windows++
	}
	if s.windows < uint64(c.o.Looked.Least) {
		return s.lowestWindow(number, c.o.Looked.Least)
	}
	if s.lowest != nil { // the number of windows below the threshold has reached the minimum
		for _, w := range s.lowest {
			if w.number < c.threshold || c.o.Looked.Rate == 1 {
				s.groups = append(s.groups, w)
			}
		}
		s.lowest = nil
	}
	if !looked {
		return nil
	}
	if groups := max(mostGroups, c.o.Looked.Least); len(s.groups) >= groups {
		return s.groups[(s.windows-1)%uint64(groups)]
	}
	s.groups = append(s.groups, &window{number: number})
	return s.groups[len(s.groups)-1]
}

// lowestWindow returns a new window if its number is among the lowest numbers of the block so far, and
// nil otherwise.
func (s *sampled) lowestWindow(number uint64, least int) *window {
	at := sort.Search(len(s.lowest), func(i int) bool { return s.lowest[i].number > number })
	if at == least {
		return nil
	}
	if len(s.lowest) == least {
		s.lowest = s.lowest[:least-1] // the removed window is discarded, even if the distances of some of its accesses have not been computed yet
	}
	w := &window{number: number}
	s.lowest = slices.Insert(s.lowest, at, w)
	return w
}

// flush computes the stack distances of the gathered accesses.
func (g *gatherer) flush() {
	if len(g.lines) == 0 {
		return
	}
	distances := g.distances[:len(g.lines)]
	g.model.Distances(g.lines, distances)
	for i, d := range distances {
		if w := g.of[i]; w != nil {
			w.add(d)
		}
	}
	g.lines, g.of = g.lines[:0], g.of[:0]
}

// window counts the stack distances of one execution, or of a group of executions.
type window struct {
	number uint64
	raw    []uint32 // distances that have not been added to the field "counts" yet
	counts []count  // counts in ascending order of distance
}

type count struct {
	distance uint32 // stack distance; stack.Cold for cold accesses
	n        uint64
}

// mostRaw is the minimum number of distances that are collected before they are added to the field
// "counts".
const mostRaw = 256

func (w *window) add(distance uint32) {
	if w.raw = append(w.raw, distance); len(w.raw) >= max(mostRaw, len(w.counts)/4) {
		w.fold()
	}
}

// fold adds the distances in the field "raw" to the field "counts", and empties "raw".
func (w *window) fold() {
	slices.Sort(w.raw)
	var fresh []count
	for _, d := range w.raw {
		if n := len(fresh); n > 0 && fresh[n-1].distance == d {
			fresh[n-1].n++
		} else {
			fresh = append(fresh, count{d, 1})
		}
	}
	w.raw, w.counts = w.raw[:0], merge(w.counts, fresh)
}

func merge(a, b []count) []count {
	if len(a) == 0 {
		return b
	}
	sum := make([]count, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0].distance < b[0].distance:
			sum, a = append(sum, a[0]), a[1:]
		case b[0].distance < a[0].distance:
			sum, b = append(sum, b[0]), b[1:]
		default:
			sum = append(sum, count{a[0].distance, a[0].n + b[0].n})
			a, b = a[1:], b[1:]
		}
	}
	return append(append(sum, a...), b...)
}

// Result returns the stacks in thread order.
func (c *Collector) Result() []*Stack {
	list := make([]*Stack, len(c.stacks))
	for i, g := range c.stacks {
		s := &Stack{LineBytes: c.o.LineBytes, Blocks: make([]Conditional, len(g.blocks))}
		for b := range g.blocks {
			s.Blocks[b] = g.blocks[b].conditional()
		}
		list[i] = s
	}
	return list
}

func (s *sampled) conditional() Conditional {
	c := Conditional{Executions: s.executions, Parallel: s.parallel, References: s.references, Accesses: s.accesses, Windows: s.windows}
	groups := s.groups
	if s.lowest != nil {
		groups, c.Windows = s.lowest, uint64(len(s.lowest))
	}
	for _, w := range groups {
		w.fold()
		if len(w.counts) > 0 {
			c.groups = append(c.groups, w.counts)
		}
	}
	return c
}
