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
	mixed    bool        // events may be among the batch's rows
	next     int         // the batch's rows before it are analysed
	view     trace.Batch // the part of the batch that is being analysed

	references references               // of that part
	rest       rest                     // of a reference that is analysed in pieces
	beside     func(*trace.Batch) error // or nil

	totals   profile.Totals // its threads in the order of appearance
	threads  index.Table    // these
	analysed uint64         // sum of totals.References
}

// ask records what the analyses take, and returns the events among it.
func (f *feed) ask() (events trace.Kinds) {
	for _, a := range f.analyses {
		kinds, sites, pcs := a.Takes()
		events |= kinds
		f.references.sites = f.references.sites || kinds == 0 && sites
		f.references.pcs = f.references.pcs || kinds == 0 && pcs
	}
	return events
}

// pending reports whether rows of the batch are not analysed yet.
func (f *feed) pending() bool { return f.next < f.batch.Len() }

// stepBytes is how many bytes one step may touch: a power of two that every line size divides.
const stepBytes = 4 << 20

// consume analyses rows of the batch from f.next on, up to stepBytes.
func (f *feed) consume() error {
	b := f.batch
	end, bytes := f.next, uint64(0)
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
	references := f.references.of(part, f.mixed)
	if references.Len() > 0 {
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
	if f.beside != nil && references.Len() > 0 {
		return f.beside(references)
	}
	return nil
}

func (f *feed) count(b *trace.Batch) {
	f.analysed += uint64(b.Len())
	for lo := 0; lo < b.Len(); lo += countedRows {
		hi := min(lo+countedRows, b.Len())
		f.countKinds(b.Kind[lo:hi], b.Bytes[lo:hi])
	}
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

// countedRows is how many rows are counted in one word: their number from bit numberBit on, and
// their bytes.
const (
	countedRows = 1 << 12
	numberBit   = 48
)

// countKinds adds rows to the totals by kind. Even and odd rows use different counters, because
// adding to a counter that was just written waits for the store.
func (f *feed) countKinds(kinds []trace.Kind, sizes []uint32) {
	var sums [2][8]uint64
	sizes = sizes[:len(kinds)]
	for i, k := range kinds {
		sums[i&1][k&7] += 1<<numberBit + uint64(sizes[i])
	}
	for _, half := range sums {
		for k := range trace.NumKinds {
			f.totals.References[k] += half[k] >> numberBit
			f.totals.Bytes[k] += half[k] & (1<<numberBit - 1)
		}
	}
}

// seeThread records a thread, in the order of appearance.
func (f *feed) seeThread(t uint32) {
	if _, known := f.threads.Find(uint64(t)); !known {
		f.threads.Add(uint64(t), uint32(len(f.totals.Threads)))
		f.totals.Threads = append(f.totals.Threads, t)
	}
}

// progress returns the progress of the analyses. The caller sets Resuming.
func (f *feed) progress() Progress {
	p := Progress{References: f.analysed, Threads: len(f.totals.Threads)}
	for _, a := range f.analyses {
		if l, ok := a.Analysis.(contract.LineCounter); ok {
			p.Lines = l.Lines()
		}
	}
	return p
}

// profile returns the result so far. left is what was left out. With segment, it can be
// restored and, if the spec says so, appended.
func (f *feed) profile(spec *Spec, header trace.Header, left profile.Totals, state profile.State, segment bool) *profile.Profile {
	p := &profile.Profile{
		Input: profile.Input{
			Kinds: spec.Kinds, Skip: spec.Skip, Limit: spec.Limit, Threads: slices.Clone(spec.Threads), Header: header,
		},
		Totals: addTotals(f.totals, left),
		State:  state,
	}
	p.Input.Header.Program, p.Input.Header.Capture = nil, nil // they name files and paths
	p.Totals.Threads = slices.Clone(f.totals.Threads)
	slices.Sort(p.Totals.Threads)
	if segment {
		p.Segment = &profile.Segment{Start: spec.Start}
	}
	for _, a := range f.analyses {
		a.Result(p, segment)
	}
	for i := range registered {
		if finish := registered[i].finish; finish != nil {
			finish(*spec, p)
		}
	}
	return p
}

// settle completes the results. It fails if a spill store does.
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
