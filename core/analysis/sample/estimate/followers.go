package estimate

import (
	"errors"
	"math/bits"
	"slices"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/analysis/contract"
	"github.com/stackglass/stackglass/core/analysis/sample"
	"github.com/stackglass/stackglass/core/analysis/sites"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// followers returns the analyses of sites, threads and communication: see [analysis.Sampling].
func followers(o sample.Options, w analysis.Wanted) []analysis.Analysis {
	if w.Sites == nil && w.Sharing == nil {
		return nil
	}
	k := &sampledAnalyses{options: o, lineBytes: w.LineBytes}
	var list []analysis.Analysis
	var lineBytes []uint32
	if w.Sharing != nil {
		lineBytes = slices.Clone(w.Sharing.LineBytes)
	}
	if w.Sites != nil {
		k.sites = sites.New(*w.Sites, w.Program)
		list = append(list, siteFeeder{k.sites})
		if !slices.Contains(lineBytes, w.LineBytes) {
			lineBytes = append(lineBytes, w.LineBytes)
		}
	}
	slices.Sort(lineBytes)
	for _, n := range lineBytes {
		k.sizes = append(k.sizes, newKeptSize(k, n, w))
	}
	return append(list, k)
}

// siteFeeder passes batches to the sites analysis. Only sampledAnalyses writes the results of the
// sites analysis.
type siteFeeder struct{ sites *sites.Analysis }

func (a siteFeeder) Takes() (events trace.Kinds, sites, pcs bool) { return a.sites.Takes() }
func (a siteFeeder) Consume(b *trace.Batch) error                 { return a.sites.Consume(b) }
func (siteFeeder) Result(*profile.Profile, bool)                  {}
func (siteFeeder) Close()                                         {}
func (siteFeeder) Restore(*profile.Profile) error                 { return nil }
func (siteFeeder) Append(*profile.Profile) error                  { return nil }

// sampledAnalyses estimates sites, threads and communication from a sample: see the package comment.
type sampledAnalyses struct {
	options   sample.Options
	lineBytes uint32          // line size for sites and communication
	done      uint64          // number of references so far
	sites     *sites.Analysis // the sites analysis, which receives all references; nil: not requested
	sizes     []*sampledLineSize
	failed    error
}

var (
	_ contract.Analysis      = (*sampledAnalyses)(nil)
	_ contract.PieceConsumer = (*sampledAnalyses)(nil)
)

// sampledLineSize contains the followers of a sample for one line size.
type sampledLineSize struct {
	of      *sampledAnalyses
	bytes   uint32
	shift   uint
	bySite  *siteSampler          // nil: not requested, or requested for a different line size
	threads *threads              // nil: not requested
	talk    *sampledCommunication // nil: not requested, or requested for a different line size

	siteCores *siteCores // nil: sites or threads are not requested, or there is only one core
	without   bool       // the field siteCores remains nil

	lines []trace.Line // line accesses, and the row of each line access in the batch
	rows  []uint32
	parts []touchedPart // the touched part of each line, if a follower needs it
	cores []uint8
}

// touchedPart is the part of a reference that lies within one line.
type touchedPart struct {
	addr  trace.Addr
	bytes uint32
}

func newKeptSize(k *sampledAnalyses, lineBytes uint32, w analysis.Wanted) *sampledLineSize {
	s := &sampledLineSize{of: k, bytes: lineBytes, shift: uint(bits.TrailingZeros32(lineBytes)), lines: make([]trace.Line, 0, maxLines), rows: make([]uint32, 0, maxLines)}
	if w.Sharing != nil && slices.Contains(w.Sharing.LineBytes, lineBytes) {
		s.threads = newThreads(k.options, lineBytes, w.Sharing)
	}
	if lineBytes != w.LineBytes || k.sites == nil {
		return s
	}
	s.bySite = newBySite(k.options, k.sites)
	if w.Communication && k.options.KeepsLines() {
		s.talk = &sampledCommunication{size: s, decides: w.Decides}
		s.talk.analysesFor(0)
	}
	return s
}

// Takes implements [contract.Analysis].
func (k *sampledAnalyses) Takes() (events trace.Kinds, sites, pcs bool) {
	return 0, k.sites != nil, k.sites != nil
}

// Close implements [contract.Analysis]. Close does nothing, because results need all data.
func (k *sampledAnalyses) Close() {}

// Consume implements [contract.Analysis]. Consume must be called after the sites analysis has
// consumed the same batch.
func (k *sampledAnalyses) Consume(b *trace.Batch) error {
	for _, s := range k.sizes {
		for at := 0; at < b.Len(); at = s.addWholeRows(b, at) {
			s.addAccesses(b, at, b.Addr[at], b.Bytes[at])
			at++
		}
		s.flush(b)
	}
	return k.reach(k.done + uint64(b.Len()))
}

// ConsumePiece implements [contract.PieceConsumer].
func (k *sampledAnalyses) ConsumePiece(b *trace.Batch, from, end uint64) {
	if from > 0 {
		k.done-- // the reference has already been counted with its previous piece
	}
	for _, s := range k.sizes {
		s.addAccesses(b, 0, b.Addr[0]+from, uint32(end-from))
		s.flush(b)
	}
	k.failed = k.reach(k.done + 1)
}

func (k *sampledAnalyses) reach(references uint64) error {
	k.done = references
	for _, s := range k.sizes {
		if s.talk != nil {
			s.talk.reach(references)
		}
	}
	return k.failed
}

// addWholeRows adds all rows up to the first row that touches several lines, and returns the index of
// this row.
func (s *sampledLineSize) addWholeRows(b *trace.Batch, at int) int {
	if s.talk != nil {
		return at
	}
	for at < b.Len() {
		n := len(s.lines)
		if n == maxLines {
			s.flush(b)
			n = 0
		}
		addrs := b.Addr[at:min(b.Len(), at+maxLines-n)]
		sizes := b.Bytes[at:][:len(addrs)]
		lines, rows := s.lines[n:maxLines][:len(addrs)], s.rows[n:maxLines][:len(addrs)]
		shift := s.shift & 63
		for i, addr := range addrs {
			line := addr >> shift
			if (addr+uint64(max(sizes[i], 1))-1)>>shift != line {
				s.lines, s.rows = s.lines[:n+i], s.rows[:n+i]
				return at + i
			}
			lines[i], rows[i] = line, uint32(at+i)
		}
		at += len(addrs)
		s.lines, s.rows = s.lines[:n+len(addrs)], s.rows[:n+len(addrs)]
	}
	return at
}

// addAccesses adds the line accesses of row i of a batch. The parameters addr and bytes are the
// range that the row accesses.
func (s *sampledLineSize) addAccesses(b *trace.Batch, i int, addr trace.Addr, bytes uint32) {
	first, end := addr>>s.shift, addr+uint64(max(bytes, 1))-1
	last := end >> s.shift
	if last < first {
		last, end = first, addr // the reference extends beyond the end of the address space
	}
	for line := first; line <= last; line++ {
		if len(s.lines) == maxLines {
			s.flush(b)
		}
		s.lines, s.rows = append(s.lines, line), append(s.rows, uint32(i))
		if s.talk != nil {
			from := max(addr, line<<s.shift)
			upto := min(end, line<<s.shift|(uint64(s.bytes)-1))
			s.parts = append(s.parts, touchedPart{from, uint32(upto - from + 1)})
		}
	}
}

// flush passes the collected accesses to the followers.
func (s *sampledLineSize) flush(b *trace.Batch) {
	if len(s.lines) == 0 {
		return
	}
	several := s.threads != nil && (b.Thread != nil || len(s.threads.cores) > 0)
	if several {
		s.findCores(b)
		s.beginSites()
	}
	if s.bySite != nil {
		s.bySite.processAccesses(b, s.lines, s.rows)
	}
	if several {
		s.flushThreads(b)
	} else if s.talk != nil && s.of.failed == nil {
		s.of.failed = s.talk.processBatch(b)
	}
	s.lines, s.rows, s.parts = s.lines[:0], s.rows[:0], s.parts[:0]
}

func (s *sampledLineSize) flushThreads(b *trace.Batch) {
	var ask questions
	if s.talk != nil && s.of.failed == nil {
		if s.of.failed = s.talk.processBatch(b); s.of.failed == nil {
			ask = s.talk.collectQuestions()
		}
	}
	rows, cores := s.rows[:len(s.lines)], s.cores[:len(s.lines)]
	var pairs []uint32
	if s.siteCores != nil {
		s.siteCores.begin()
		pairs, _ = s.bySite.sites.Rows()
	}
	for i, line := range s.lines {
		ask.answerUpTo(i, s.threads)
		if pairs != nil {
			s.siteCores.beginAccess(pairs[rows[i]])
		}
		s.threads.access(cores[i], line, trace.WriteKinds.Has(b.Kind[rows[i]]))
		if pairs != nil {
			s.siteCores.done()
		}
	}
	ask.passAnswers()
	if pairs != nil {
		s.siteCores.passDepths(cores)
	}
}

func (s *sampledLineSize) findCores(b *trace.Batch) {
	s.cores = s.cores[:0]
	thread, core := uint32(0), s.threads.coreOf(threadOf(b, s.rows[0]))
	for i, row := range s.rows {
		if now := threadOf(b, row); i == 0 || now != thread {
			thread, core = now, s.threads.coreOf(now)
		}
		s.cores = append(s.cores, core)
	}
}

func threadOf(b *trace.Batch, row uint32) uint32 {
	if b.Thread == nil {
		return 0
	}
	return b.Thread[row]
}

// Append implements [contract.Analysis].
func (k *sampledAnalyses) Append(*profile.Profile) error {
	return errors.New("sampled profiles cannot be joined; sample the whole trace in one pass")
}
