package analysis

import (
	"slices"

	"github.com/stackglass/stackglass/core/analysis/contract"
	"github.com/stackglass/stackglass/core/analysis/index"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// feed passes the rows of a batch to analyses, and counts them.
type feed struct {
	analyses []member
	batch    *trace.Batch
	mixed    bool        // the batch may contain events
	next     int         // index of the first row of the batch that has not been analysed yet
	view     trace.Batch // the rows of the batch that are being analysed

	references referenceExtractor       // extracts the references from these rows
	rest       cutReference             // the reference that is being analysed in pieces
	beside     func(*trace.Batch) error // additional consumer, or nil
	// whether the additional consumer also receives events
	besideEvents bool

	totals   profile.Totals // totals so far; threads are in the order of their first references
	threads  index.Table    // the known threads
	analysed uint64         // the sum of totals.References
}

// selectRows determines which columns the analyses read, and returns the kinds of events that they
// read.
func (f *feed) selectRows() (events trace.Kinds) {
	for _, a := range f.analyses {
		kinds, sites, pcs := a.Takes()
		events |= kinds
		f.references.sites = f.references.sites || kinds == 0 && sites
		f.references.pcs = f.references.pcs || kinds == 0 && pcs
	}
	return events
}

// pending reports whether some rows of the batch have not been analysed yet.
func (f *feed) pending() bool { return f.next < f.batch.Len() }

const stepBytes = 4 << 20 // maximum number of bytes that one step may touch: a power of two, and a multiple of every line size

// consume analyses the next rows of the batch, starting with row f.next. The references in these
// rows touch at most stepBytes bytes, unless a single reference touches more.
func (f *feed) consume() error {
	b := f.batch
	end, bytes := f.next, uint64(0)
	var counts kindCounts
	counted := f.next == 0 && !f.mixed && b.Len() <= countedRows
	if counted {
		counts = countKinds(b.Kind, b.Bytes)
		counted = counts.bytes() <= stepBytes
	}
	if counted {
		end = b.Len()
	}
	for end < b.Len() && (bytes+uint64(b.Bytes[end]) <= stepBytes || end == f.next) {
		bytes += uint64(b.Bytes[end])
		end++
	}
	part := b
	if f.next > 0 || end < b.Len() {
		part = b.View(&f.view, f.next, end)
	}
	if f.next = end; part.Len() == 0 {
		return nil
	}
	references := f.references.extract(part, f.mixed)
	if counted {
		f.addKinds(&counts)
		f.countThreads(references)
	} else if references.Len() > 0 {
		f.count(references)
	}
	for _, a := range f.analyses {
		rows := references
		if events, _, _ := a.Takes(); events != 0 {
			rows = part
		}
		if rows.Len() == 0 || f.rest.begin(a.Analysis, rows) {
			continue
		}
		if err := a.Consume(rows); err != nil {
			return err
		}
	}
	switch {
	case f.beside != nil && f.besideEvents:
		return f.beside(part)
	case f.beside != nil && references.Len() > 0:
		return f.beside(references)
	}
	return nil
}

func (f *feed) count(b *trace.Batch) {
	for lo := 0; lo < b.Len(); lo += countedRows {
		hi := min(lo+countedRows, b.Len())
		counts := countKinds(b.Kind[lo:hi], b.Bytes[lo:hi])
		f.addKinds(&counts)
	}
	f.countThreads(b)
}

// countThreads adds the number of rows to the total, and records the threads of the rows.
func (f *feed) countThreads(b *trace.Batch) {
	f.analysed += uint64(b.Len())
	if b.Thread == nil {
		return
	}
	last := ^b.Thread[0]
	for _, t := range b.Thread {
		if t != last {
			f.seeThread(t)
			last = t
		}
	}
}

// One 64-bit word counts both the references of a kind and their bytes. The bits from numberBit
// upwards contain the number of references, and the lower bits contain the number of bytes. A word
// can count at most countedRows references.
const (
	countedRows = 1 << 12
	numberBit   = 48
)

// kindCounts contains one such word for each kind of reference.
type kindCounts [8]uint64

// countKinds counts at most countedRows references. countKinds uses four tables alternately,
// because otherwise an increment of a counter often has to wait for the previous store to the same
// counter.
func countKinds(kinds []trace.Kind, sizes []uint32) kindCounts {
	var a, b, c, d kindCounts
	sizes = sizes[:len(kinds)]
	for len(kinds) >= 4 && len(sizes) >= 4 {
		a[kinds[0]&7] += 1<<numberBit + uint64(sizes[0])
		b[kinds[1]&7] += 1<<numberBit + uint64(sizes[1])
		c[kinds[2]&7] += 1<<numberBit + uint64(sizes[2])
		d[kinds[3]&7] += 1<<numberBit + uint64(sizes[3])
		kinds, sizes = kinds[4:], sizes[4:]
	}
	for i, k := range kinds {
		a[k&7] += 1<<numberBit + uint64(sizes[i])
	}
	for k := range a {
		a[k] += b[k] + c[k] + d[k]
	}
	return a
}

func (c *kindCounts) bytes() (sum uint64) {
	for _, n := range c {
		sum += n & (1<<numberBit - 1)
	}
	return sum
}

func (f *feed) addKinds(c *kindCounts) {
	for k := range trace.NumKinds {
		f.totals.References[k] += c[k] >> numberBit
		f.totals.Bytes[k] += c[k] & (1<<numberBit - 1)
	}
}

// seeThread adds a thread to the list of threads if it is new.
func (f *feed) seeThread(t uint32) {
	if _, known := f.threads.Find(uint64(t)); !known {
		f.threads.Add(uint64(t), uint32(len(f.totals.Threads)))
		f.totals.Threads = append(f.totals.Threads, t)
	}
}

// progress returns the progress of the analyses, except for the field Resuming.
func (f *feed) progress() Progress {
	p := Progress{References: f.analysed, Threads: len(f.totals.Threads)}
	for _, a := range f.analyses {
		if l, ok := a.Analysis.(contract.LineCounter); ok {
			p.Lines = l.Lines()
		}
	}
	return p
}

// profile returns the result so far. The parameter omitted counts the references that were not
// selected. If the parameter segment is true, the result contains the data from which a run can be
// restored. If the spec is also mergeable, the result can be appended to a run.
func (f *feed) profile(spec *Spec, header trace.Header, omitted profile.Totals, state profile.State, segment bool) *profile.Profile {
	p := &profile.Profile{
		Input: profile.Input{
			Kinds: spec.Kinds, Skip: spec.Skip, Limit: spec.Limit, Threads: slices.Clone(spec.Threads), Header: header,
		},
		Totals: addTotals(f.totals, omitted),
		State:  state,
	}
	// Program and Capture contain file names and paths
	p.Input.Header.Program, p.Input.Header.Capture = nil, nil
	p.Totals.Threads = slices.Clone(f.totals.Threads)
	slices.Sort(p.Totals.Threads)
	if segment {
		p.Segment = &profile.Segment{Start: spec.Start}
	}
	for _, a := range f.analyses {
		a.Result(p, segment)
	}
	if p.Sites != nil || len(p.Blocks) > 0 || p.Counters != nil {
		p.Sources = header.Program.SourceFiles()
	}
	spec.explain(p)
	return p
}

// withoutRunState removes, from a final profile, the data that only a saved run needs.
func withoutRunState(p *profile.Profile) *profile.Profile {
	if p.Segment != nil {
		p.Segment.Communication = nil
	}
	return p
}

// settle completes the results. It returns an error if a spill store fails.
func (f *feed) settle() error {
	for _, a := range f.analyses {
		if s, ok := a.Analysis.(contract.Settler); ok {
			if err := s.Settle(); err != nil {
				return err
			}
		}
	}
	return nil
}

// restore restores the counts of a saved run.
func (f *feed) restore(t *profile.Totals) {
	f.totals = profile.Totals{References: t.References, Bytes: t.Bytes}
	f.threads = index.Table{}
	for _, thread := range t.Threads {
		f.seeThread(thread)
	}
	f.analysed = t.AllReferences()
}

func (f *feed) close() {
	for _, a := range f.analyses {
		a.Close()
	}
}

// cutReference is a reference that touches more bytes than one step may touch, and is therefore
// analysed in pieces. The analysis of a range of several gigabytes can take seconds and need
// gigabytes of memory, so it must be possible to stop a run in the middle of such a range. Analyses
// that are not PieceConsumers process the whole reference at once.
type cutReference struct {
	analyses  []contract.PieceConsumer
	batch     *trace.Batch // the reference
	from, end uint64       // byte range of the latest piece
	most      uint64
}

func (r *cutReference) pending() bool { return r.end < r.most }

// begin passes the first piece of a reference to an analysis if the rows consist of only this
// reference, and the reference is too long for one step. A reference that extends beyond the end of
// the address space is not divided, because only its first line counts.
func (r *cutReference) begin(a Analysis, rows *trace.Batch) bool {
	taker, ok := a.(contract.PieceConsumer)
	if !ok || rows.Len() != 1 {
		return false
	}
	bytes := uint64(rows.Bytes[0])
	if bytes <= stepBytes || rows.Addr[0]+bytes-1 < rows.Addr[0] {
		return false
	}
	if !r.pending() {
		*r = cutReference{analyses: r.analyses[:0], batch: rows, most: bytes}
		r.piece()
	}
	r.analyses = append(r.analyses, taker)
	taker.ConsumePiece(rows, r.from, r.end)
	return true
}

func (r *cutReference) piece() {
	r.from = r.end
	r.end = min(r.most, r.from+stepBytes-(r.batch.Addr[0]+r.from)%stepBytes)
}

// consume passes the next piece to the analyses.
func (r *cutReference) consume() {
	r.piece()
	for _, a := range r.analyses {
		a.ConsumePiece(r.batch, r.from, r.end)
	}
}

// canJoin reports whether a segment can be appended now, and whether segments may be appended
// later. The parameter next is nil if the result of the segment is not available yet.
func (f *feed) canJoin(next *profile.Profile) (now, later bool) {
	now, later = true, true
	for _, a := range f.analyses {
		if j, ok := a.Analysis.(contract.Joiner); ok {
			a, b := j.Joins(next)
			now, later = now && a, later && b
		}
	}
	return now, later
}

// canAppend reports whether a segment can be appended. The parameter lone is true if the segment was
// analysed without the sharing analysis.
func (f *feed) canAppend(s *profile.Profile, lone bool) bool {
	now, _ := f.canJoin(s)
	return now && s.Totals.AllReferences() > 0 && (!lone || f.isSingleCore(s.Totals.Threads))
}

// isSingleCore reports whether all references so far and all references of the given threads belong
// to the same core, according to a multi-core analysis.
func (f *feed) isSingleCore(threads []uint32) bool {
	cores, ok := findOptional[contract.MultiCore](f.analyses)
	return ok && cores.Alone(threads)
}

// hasSeveralCores reports whether a multi-core analysis has found several cores.
func (f *feed) hasSeveralCores() bool {
	cores, ok := findOptional[contract.MultiCore](f.analyses)
	return ok && cores.Several()
}

// append appends the result of the next segment.
func (f *feed) append(s *profile.Profile, lone bool) error {
	for _, a := range f.analyses {
		if _, is := a.Analysis.(contract.MultiCore); is && lone {
			continue
		}
		if err := a.Append(s); err != nil {
			return err
		}
	}
	f.add(&s.Totals)
	return nil
}

// readsSegmentRows reports whether any analysis must read the rows of segments.
func (f *feed) readsSegmentRows() bool {
	return slices.ContainsFunc(f.analyses, func(a member) bool {
		r, ok := a.Analysis.(contract.RowAppender)
		return ok && r.Reads()
	})
}

// segmentEvents returns the kinds of events that the analyses with support for segments need.
func (f *feed) segmentEvents() (events trace.Kinds) {
	for _, a := range f.analyses {
		if _, reads := a.Analysis.(contract.RowAppender); !reads {
			kinds, _, _ := a.Takes()
			events |= kinds
		}
	}
	return events
}

// appendRows passes rows of a segment to the analyses that must read all rows.
func (f *feed) appendRows(b *trace.Batch) error {
	for _, a := range f.analyses {
		if r, ok := a.Analysis.(contract.RowAppender); ok {
			if err := r.AppendRows(b); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *feed) add(t *profile.Totals) {
	for k := range t.References {
		f.totals.References[k] += t.References[k]
		f.totals.Bytes[k] += t.Bytes[k]
	}
	for _, thread := range t.Threads {
		f.seeThread(thread)
	}
	f.analysed += t.AllReferences()
}

// touchCost is the time for joining a first touch or a line of the stack, relative to the time for
// analysing a reference. touchCost is high because the look-up of the line usually misses in the
// cache.
const touchCost = 3

// joinCost estimates the time for joining a segment, in the unit of touchCost.
func joinCost(p *profile.Profile) (cost uint64) {
	for i := range p.Segment.Lines {
		cost += touchCost * uint64(p.Segment.Lines[i].FirstTouches.Len()+len(p.Segment.Lines[i].Stack))
	}
	cost /= uint64(max(1, len(p.Segment.Lines)))
	if p.Sites != nil {
		cost += touchCost * uint64(len(p.Sites.Code)+len(p.Sites.Data))
	}
	return cost
}
