package analysis

import "github.com/stackglass/stackglass/core/trace"

// referenceExtractor extracts the references from a batch, with the necessary columns, for analyses
// that do not request events.
type referenceExtractor struct {
	sites, pcs bool         // whether the columns Site and PC are needed
	view       trace.Batch  // view of a batch without events
	copied     *trace.Batch // copy of the references of a batch with events
}

// extract returns the references of a batch. The batch may contain events only if mixed is true.
func (r *referenceExtractor) extract(part *trace.Batch, mixed bool) *trace.Batch {
	if !mixed {
		into := part.View(&r.view, 0, part.Len())
		into.Arg = nil
		if !r.sites {
			into.Site = nil
		}
		if !r.pcs {
			into.PC = nil
		}
		return into
	}
	if r.copied == nil || r.copied.Cap() < part.Len() {
		r.copied = trace.NewBatch(part.Len())
	}
	return r.compact(part)
}

func (r *referenceExtractor) compact(part *trace.Batch) *trace.Batch {
	into := r.copied
	into.Reset()
	if part.Thread != nil {
		into.NeedThread()
	}
	if part.Site != nil && r.sites {
		into.NeedSite()
	}
	if part.PC != nil && r.pcs {
		into.NeedPC()
	}
	into.Resize(part.Len())
	events := 0
	for _, k := range part.Kind {
		if k >= trace.NumKinds {
			events++
		}
	}
	if events*manyRows < part.Len() {
		copyRuns(into, part)
	} else {
		copyRows(into, part)
	}
	into.Resize(part.Len() - events)
	return into
}

const manyRows = 16 // if there are more references per event, copying whole runs of references is faster

func copyRuns(into, part *trace.Batch) {
	n, kinds := 0, part.Kind
	for lo := 0; lo < len(kinds); lo++ {
		hi := lo
		for hi < len(kinds) && kinds[hi] < trace.NumKinds {
			hi++
		}
		copy(into.Addr[n:], part.Addr[lo:hi])
		copy(into.Bytes[n:], part.Bytes[lo:hi])
		copy(into.Kind[n:], part.Kind[lo:hi])
		copyRun(into.Thread, part.Thread, n, lo, hi)
		copyRun(into.Site, part.Site, n, lo, hi)
		copyRun(into.PC, part.PC, n, lo, hi)
		n, lo = n+hi-lo, hi
	}
}

func copyRun[T any](into, from []T, n, lo, hi int) {
	if into != nil {
		copy(into[n:], from[lo:hi])
	}
}

// copyRows copies references without a branch on the kind of a row: it copies every row, and then
// overwrites each event with the next row.
func copyRows(into, part *trace.Batch) {
	kinds, n := part.Kind, 0
	froms, addrs := part.Addr[:len(kinds)], into.Addr[:len(kinds)]
	sizes, bytes := part.Bytes[:len(kinds)], into.Bytes[:len(kinds)]
	those := into.Kind[:len(kinds)]
	for i, k := range kinds {
		addrs[n], bytes[n], those[n] = froms[i], sizes[i], k
		if k < trace.NumKinds {
			n++
		}
	}
	copyColumn(into.Thread, part.Thread, kinds)
	copyColumn(into.Site, part.Site, kinds)
	copyColumn(into.PC, part.PC, kinds)
}

func copyColumn[T any](into, from []T, kinds []trace.Kind) {
	if into == nil {
		return
	}
	n := 0
	from, into = from[:len(kinds)], into[:len(kinds)]
	for i, k := range kinds {
		into[n] = from[i]
		if k < trace.NumKinds {
			n++
		}
	}
}
