// Package sharing computes stack distances for the private and the shared caches of several cores.
// The distances are computed in the four ways that MODELS §6 describes, which are called views
// here. For each view, the package maintains LRU stacks and counts all stack distances, both in the
// whole stack and within sets.
//
//  1. Threads are assigned to cores: one core per thread, or the groups that the user chooses
//     (cores.go). Cores that share a cache form a domain. One domain always contains all cores.
//  2. Package locality keeps the stack of the whole trace, which is the concurrent stack of all
//     cores. View 2, the concurrent stack, therefore costs no additional time.
//  3. A directory (directory.go) records, for every line, which cores have a copy, which core
//     accessed the line last, and the time of this access. The directory detects stores that
//     invalidate other cores' copies. The directory also detects accesses to a line that a
//     different core accessed last, because Anger's model counts these accesses separately
//     (MODELS §6.3).
//  4. Each core has two stacks: one for view 1, and one for view 4, in which invalidated lines
//     leave holes (stack.Coherent). Every other domain has its own stack and directory.
//  5. For each access, the distance on the private stack is compared with the distance on the
//     concurrent stack. The comparison shows Wu and Yeung's dilation, overlap and interception
//     (MODELS §6.6; SASMM §2.3; directory.go).
//  6. A [Follower] receives, batch by batch, the depth of every access on the coherent stack of its
//     core. Package sites counts these depths by source location.
//
// A trace with one core needs no additional time. As long as only one core has accessed memory, the
// stack of the whole trace is also the stack of this core. When a second core appears, the first
// core's counts are copied from the stack of the whole trace.
//
// Segments of a trace are joined exactly (append.go), even if each segment contains references of
// only one core. A segment therefore records everything that depends on earlier records
// (segment.go): first touches by core, accesses after an invalidation, and stores.
package sharing

import (
	"sync"

	"github.com/stackglass/stackglass/core/analysis/contract"
	"github.com/stackglass/stackglass/core/analysis/locality"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace"
)

// Options contains the user's choices.
type Options struct {
	LineBytes []uint32
	// Cores lists groups of threads that run on the same core. Domains lists groups of threads
	// whose cores share a cache.
	Cores, Domains [][]uint32
	Mergeable      bool // record the data that Append needs
	// OnlyJoins means that the analysis appends segments to a restored segment, and reads no records.
	// The coherent stacks then remain encoded.
	OnlyJoins bool
	Stacks    Stacks
	// HasCore reports whether the coherent stack of a core is counted; nil: all stacks are counted.
	// Only a run whose Stacks is Coherent, and that is not Mergeable, may set HasCore.
	HasCore func(core uint8) bool
}

// Stacks selects the views of MODELS §6 that are counted; 0: all views. The counts of views that
// are not selected are meaningless.
type Stacks uint8

// The values of Stacks. If Concurrent is not selected, package locality stops computing stack
// distances as soon as a second core appears.
const (
	Coherent   Stacks = 1 << iota // the stack of each core, with invalidation; always counted
	Private                       // the stack of each core, without invalidation, and its comparison with the concurrent stack
	Concurrent                    // the stack of all cores
)

func (s Stacks) has(which Stacks) bool { return s == 0 || s&which != 0 }

// Analysis implements the sharing analysis.
type Analysis struct {
	options    Options
	pass       *locality.Analysis
	cores      Grouping
	sizes      []*lineSize
	rows       []uint8 // cores of the batch's references
	running    bool    // whether several cores have appeared
	seen       bool    // whether there has been a reference
	absent     bool    // a part of the trace was analysed without the sharing analysis
	concurrent bool    // see RunConcurrently
}

// New returns an analysis that receives line accesses from a locality analysis with the same line
// sizes and set tables. The sharing analysis must read every batch before the locality analysis.
func New(o Options, pass *locality.Analysis) *Analysis {
	a := &Analysis{options: o, pass: pass}
	a.cores.reset(o.Cores)
	for _, n := range o.LineBytes {
		s := &lineSize{analysis: a, bytes: n}
		if o.Mergeable {
			s.segment = new(segment)
			s.segment.lines.reset(0)
		}
		pass.Feed(n, s)
		a.sizes = append(a.sizes, s)
	}
	return a
}

// RunConcurrently makes the analysis process the stacks of each core in a separate goroutine,
// concurrently with the stack of package locality. This is possible because all these stacks are
// independent.
func (a *Analysis) RunConcurrently() { a.concurrent = true }

var (
	_ contract.Analysis   = (*Analysis)(nil)
	_ contract.Joiner     = (*Analysis)(nil)
	_ contract.MultiCore  = (*Analysis)(nil)
	_ contract.Concurrent = (*Analysis)(nil)
)

// Takes implements [contract.Analysis].
func (a *Analysis) Takes() (events trace.Kinds, sites, pcs bool) { return 0, false, false }

// Consume implements [contract.Analysis]. Consume determines the cores of the references. Package
// locality passes the line accesses later.
func (a *Analysis) Consume(b *trace.Batch) error {
	a.seen = a.seen || b.Len() > 0
	if a.absent {
		return nil
	}
	if !a.running && !a.cores.assignAll(b.Thread) {
		return nil
	}
	if len(a.rows) < b.Len() {
		a.rows = make([]uint8, b.Len())
	}
	a.cores.findCores(b.Thread, a.rows[:b.Len()])
	if !a.running {
		a.createStacks()
	}
	return nil
}

func (a *Analysis) createStacks() {
	a.running = true
	for _, s := range a.sizes {
		s.begin()
	}
}

// Accesses contains the next line accesses, and the core of each access.
type Accesses struct {
	locality.Accesses         // Distances is not set
	Cores             []uint8 // cores are numbered in the order in which they appear
}

// Question asks for the depth of a line on a core's coherent stack immediately before an access.
type Question struct {
	Access uint32 // index in Accesses
	Core   uint8
	Line   trace.Line
}

// Asker requests depths of lines on the coherent stacks of cores during a run. Package
// communication uses these depths to determine whether a communicated value comes from a cache,
// which is the case if the cache still contains the line.
type Asker interface {
	// Ask appends its questions about the next accesses, in the order of the accesses. The slices
	// in the parameter a are valid until Ask returns.
	Ask(a *Accesses, questions []Question) []Question
	// Answer receives the depths, in the order of the questions. The depth is stack.Cold if the
	// core does not have the line.
	Answer(depths []uint32)
}

// Feed sets the asker for a line size.
func (a *Analysis) Feed(lineBytes uint32, asker Asker) {
	if s := a.size(lineBytes); s != nil {
		s.asker = asker
	}
}

func (a *Analysis) size(lineBytes uint32) *lineSize {
	for _, s := range a.sizes {
		if s.bytes == lineBytes {
			return s
		}
	}
	return nil
}

// Follower receives the depth of every access on the coherent stack of its core, for one line size.
type Follower interface {
	// BeginCores is called when a second core appears. All earlier accesses belong to the first
	// core, whose coherent stack was the stack of package locality until then.
	BeginCores()
	// FollowCores receives the cores and depths of the latest accesses. The depth is stack.Cold for
	// a core's first access to a line, and stack.Lost for a coherence miss. For a coherence miss,
	// the parameter lostAt contains the depth at which the line was invalidated. The parameter lost
	// is true if any access is a coherence miss. The slices are valid until FollowCores returns.
	FollowCores(cores []uint8, depths, lostAt []uint32, lost bool)
	// JoinCores adds the counts of an appended segment to the counts since BeginCores. JoinCores
	// receives the depths of the segment's first touches, in order, as in FollowCores. If depths is
	// nil, the first touches of the segment remain first touches.
	JoinCores(depths, lostAt []uint32)
}

// FeedSites sets the follower for a line size.
func (a *Analysis) FeedSites(lineBytes uint32, f Follower) {
	if s := a.size(lineBytes); s != nil {
		s.follower = f
	}
}

// Threads returns the threads of each core so far. Cores are numbered as in [Accesses].
func (a *Analysis) Threads() [][]uint32 { return a.cores.Threads() }

// Core returns the core of a thread. Cores are numbered as in [Accesses].
func (a *Analysis) Core(thread uint32) (core uint8, known bool) {
	return a.cores.Known(thread)
}

// Close implements [contract.Analysis].
func (a *Analysis) Close() {
	for _, s := range a.sizes {
		s.close()
	}
}

const maxAccesses = 4096 // maximum number of accesses that package locality passes at a time

type lineSize struct {
	analysis *Analysis
	bytes    uint32
	asker    Asker        // nil: no asker
	follower Follower     // nil: no follower
	segment  *segment     // the segment that is being recorded; nil: none
	joint    *segmentJoin // the segment that is being appended; nil: none

	all     domain    // the domain of all cores
	domains []*domain // all other domains
	cores   []*core

	accesses  Accesses
	questions []Question
	answers   []uint32

	runs sync.WaitGroup // goroutines of the cores, if they run concurrently

	// These fields describe the accesses that package locality has passed.
	core    [maxAccesses]uint8
	write   [maxAccesses]bool
	private [maxAccesses]uint32 // distance of each access on the private stack of its core
	// For the follower: the depth of each access on the coherent stack of its core and, for a
	// coherence miss, the depth at which the line was invalidated.
	coherent, lostAt [maxAccesses]uint32
}

// begin creates stacks for the cores. All accesses so far belong to the first core.
func (s *lineSize) begin() {
	s.reset(0)
	l, lines := s.analysis.pass.At(s.bytes)
	h, cold := l.Histogram(trace.AllKinds)
	before := profile.StackCounts{Cold: cold, Distances: *h, Sets: *l.Sets}
	s.addCores(1)
	s.cores[0].initialise(&before, lines)
	s.all.initialise(0, &before, lines)
	for _, d := range s.domains {
		if d.has(0) {
			d.initialise(0, &before, lines)
		}
	}
	if s.segment != nil {
		s.segment.begin(s.analysis.pass.FirstTouches(s.bytes))
	}
	if s.follower != nil {
		s.follower.BeginCores()
	}
	if !s.analysis.options.Stacks.has(Concurrent) {
		s.analysis.pass.Stop(s.bytes)
	}
}

func (s *lineSize) reset(lines int) {
	s.all = domain{}
	s.all.directory.reset(lines)
	for i := range s.analysis.options.Domains {
		s.domains = append(s.domains, newDomain(s.analysis.pass.SetNumbers, s.analysis.options.Domains[i]))
	}
}

// addCores creates stacks for new cores, until there are n cores.
func (s *lineSize) addCores(n int) {
	for len(s.cores) < n {
		number := len(s.cores)
		s.cores = append(s.cores, newCore(s.analysis.pass.SetNumbers, &s.analysis.options))
		s.all.join(uint8(number))
		for _, d := range s.domains {
			if s.analysis.cores.IsIn(uint8(number), d.threads) {
				d.join(uint8(number))
			}
		}
	}
}

// Mark implements locality.Marker: it marks accesses to lines that another core touched last.
func (s *lineSize) Mark(a *locality.Accesses) (foreign []bool) {
	if !s.analysis.running {
		return nil
	}
	s.addCores(len(s.analysis.cores.list))
	s.take(a)
	if s.questions = s.questions[:0]; s.asker != nil {
		s.accesses = Accesses{*a, s.core[:len(a.Lines)]}
		s.questions = s.asker.Ask(&s.accesses, s.questions)
	}
	s.distribute(a.Lines)
	if s.analysis.concurrent {
		for _, c := range s.cores {
			s.runs.Add(1)
			go func() {
				defer s.runs.Done()
				c.run(s)
			}()
		}
	}
	return s.all.foreignAccesses(len(a.Lines))
}

// Follow implements locality.Follower.
func (s *lineSize) Follow(a *locality.Accesses) {
	if !s.analysis.running {
		if s.segment != nil {
			s.segment.recordStores(a)
		}
		return
	}
	s.runs.Wait()
	lost := false
	for n, c := range s.cores {
		if !s.analysis.concurrent {
			c.run(s)
		}
		lost = lost || c.coherence
		if s.segment != nil {
			s.segment.recordHoles(n, c.coherent.Filled())
		}
	}
	if s.follower != nil {
		s.follower.FollowCores(s.core[:len(a.Lines)], s.coherent[:len(a.Lines)], s.lostAt[:len(a.Lines)], lost)
	}
	if s.segment != nil {
		s.segment.dropFilled()
	}
	s.answer()
	n := len(a.Lines)
	if a.Distances != nil {
		s.all.countByCore(s.core[:n], s.private[:n], a.Distances)
	}
	for _, d := range s.domains {
		d.countMembers(a.Lines, s.core[:n], s.private[:n])
	}
}

func (s *lineSize) take(a *locality.Accesses) {
	kinds, rows := a.Batch.Kind[a.First:], s.analysis.rows[a.First:]
	if a.Rows == nil {
		n := copy(s.core[:len(a.Lines)], rows)
		for i, k := range kinds[:n] {
			s.write[i] = trace.WriteKinds.Has(k)
		}
		return
	}
	for i, row := range a.Rows {
		s.core[i], s.write[i] = rows[row], trace.WriteKinds.Has(kinds[row])
	}
}

// distribute passes accesses, invalidations and questions to the cores. It processes one run at a
// time: consecutive accesses by a single core.
func (s *lineSize) distribute(lines []trace.Line) {
	if s.analysis.options.HasCore == nil {
		s.all.directory.prefetch(lines)
	}
	questions := s.questions
	for lo := 0; lo < len(lines); {
		limit := len(lines)
		for len(questions) > 0 && limit == len(lines) {
			if q := &questions[0]; int(q.Access) > lo {
				limit = int(q.Access)
			} else {
				s.cores[q.Core].addOperation(stack.AskOp, q.Line)
				questions = questions[1:]
			}
		}
		hi := lo + 1
		for hi < limit && s.core[hi] == s.core[lo] {
			hi++
		}
		s.processRun(lines[lo:hi], lo)
		lo = hi
	}
}

// processRun passes a run of accesses to the core that performs them, and passes the resulting
// invalidations to the other cores.
func (s *lineSize) processRun(lines []trace.Line, first int) {
	number, d := s.core[first], &s.all
	holder, foreign, apart := uint64(1)<<number, false, s.analysis.options.Stacks.has(Private)
	counted := s.analysis.options.HasCore == nil || s.analysis.options.HasCore(number)
	if !counted {
		holder = 0 // the directory contains only the copies of cores that are counted
	}
	for i, x := range lines {
		if !counted && !s.write[first+i] {
			continue
		}
		e := d.directory.entry(x)
		if apart {
			foreign = d.recordTouch(e, number, first+i) || foreign
		}
		if s.segment != nil {
			s.segment.recordAccess(x, number, s.write[first+i], e.holders&holder == 0)
		}
		if e.holders == holder {
			continue
		}
		if s.write[first+i] {
			for others := e.holders &^ holder; others != 0; others &= others - 1 {
				s.cores[lowest(others)].addOperation(stack.LoseOp, x)
			}
			e.holders = 0
		}
		e.holders |= holder
	}
	if !counted {
		return
	}
	s.cores[number].addAccesses(lines, d.isForeign[first:first+len(lines)], first, foreign)
}

func (s *lineSize) answer() {
	if s.asker == nil {
		return
	}
	s.answers = s.answers[:0]
	var at [profile.MaxCores]int
	for _, q := range s.questions {
		depths := s.cores[q.Core].asked
		s.answers = append(s.answers, depths[at[q.Core]])
		at[q.Core]++
	}
	s.asker.Answer(s.answers)
}

func (s *lineSize) close() {
	for _, c := range s.cores {
		c.close()
	}
	for _, d := range s.domains {
		d.close()
	}
	s.all.directory, s.segment = directory{}, nil
}

// Distances that represent first accesses and coherence misses.
const (
	cold = stack.Cold
	lost = stack.Lost
)
