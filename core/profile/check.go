package profile

import (
	"strconv"

	"github.com/stackglass/stackglass/core/trace"
)

// CheckError reports an invariant that a profile violates.
type CheckError struct{ What string }

func (e *CheckError) Error() string { return "the profile is inconsistent: " + e.What }

// MinLineBytes and MaxLineBytes are the smallest and the largest line size that an analysis
// accepts.
const (
	MinLineBytes = 8
	MaxLineBytes = 4096
)

// maxLine is the number of the last line in the address space with the smallest line size.
const maxLine = ^trace.Line(0) / MinLineBytes

// ValidLineBytes reports whether n is a power of two from 8 to 4,096.
func ValidLineBytes(n uint32) bool {
	return n >= MinLineBytes && n <= MaxLineBytes && n&(n-1) == 0
}

// Check verifies that the results in a profile are consistent with each other. The error is a
// [*CheckError].
func (p *Profile) Check() error {
	for _, f := range forms {
		if f.check == nil {
			continue
		}
		if err := f.check(p); err != nil {
			return err
		}
	}
	if err := p.checkPages(); err != nil {
		return err
	}
	if err := p.checkCovered(); err != nil {
		return err
	}
	return p.checkSegment()
}

func (p *Profile) checkLocalities() error {
	for i := range p.Locality {
		l := &p.Locality[i]
		if err := p.checkLocality(l); err != nil {
			return err
		}
		if i > 0 && l.LineBytes <= p.Locality[i-1].LineBytes {
			return &CheckError{"line sizes are not in ascending order"}
		}
		if l.Sets == nil {
			continue
		}
		sum, _ := l.Histogram(^trace.Kinds(0))
		if err := l.Sets.check(sum); err != nil {
			return err
		}
	}
	return nil
}

// checkSegment checks the invariants that are needed to append a segment.
func (p *Profile) checkSegment() error {
	s := p.Segment
	if s == nil || s.Sample != nil { // a sampled run resumes from the state of its sampler instead
		return nil
	}
	if len(s.Lines) != len(p.Locality) {
		return &CheckError{"the mergeable part and the histograms have different numbers of line sizes"}
	}
	references := p.Totals.AllReferences()
	end := s.Start + references
	if end < s.Start {
		return &CheckError{"the reference numbers of the mergeable part exceed 64 bits"}
	}
	for i := range s.Lines {
		l, cold := &s.Lines[i], [trace.NumKinds]uint64{}
		for k := range p.Locality[i].Kinds {
			cold[p.Locality[i].Kinds[k].Kind] = p.Locality[i].Kinds[k].Cold
		}
		if n := uint64(len(l.Stack)); s.Shelved == nil && n != p.Locality[i].Lines() || l.FirstTouches.Len() != 0 && uint64(l.FirstTouches.Len()) != n {
			return &CheckError{"the mergeable part and the histograms have different numbers of lines"}
		}
		if err := p.Locality[i].Windows.checkWorkingSets(l.WorkingSets, s.Start, references, p.Locality[i].Lines()); err != nil {
			return err
		}
		beyond := false
		for t := range l.FirstTouches.All() {
			if t.Reference < s.Start || t.Reference >= end || cold[t.Kind] == 0 {
				return &CheckError{"the mergeable part has first touches that the histograms do not count"}
			}
			cold[t.Kind]--
			beyond = beyond || t.Line > maxLine
		}
		for _, line := range l.Stack {
			beyond = beyond || line > maxLine
		}
		if beyond {
			return &CheckError{"the mergeable part has a line outside the address space"}
		}
	}
	return nil
}

func (p *Profile) checkLocality(l *Locality) error {
	at := "at " + strconv.Itoa(int(l.LineBytes)) + "-byte lines "
	if !ValidLineBytes(l.LineBytes) {
		return &CheckError{at + "the line size must be a power of two from 8 to 4096"}
	}
	lines := l.Lines()
	var accesses uint64
	next := trace.Kind(0)
	missing := p.Totals.References // each reference makes at least one access
	for i := range l.Kinds {
		k := &l.Kinds[i]
		if k.Kind < next || !p.Input.Kinds.Has(k.Kind) {
			return &CheckError{at + "the kinds of references are out of order, or include kinds that were not analysed"}
		}
		next = k.Kind + 1
		for d, count := range k.Distances.All() {
			if d >= lines && p.Sampled == nil {
				return &CheckError{at + "a stack distance, " + strconv.FormatUint(d, 10) + ", is not smaller than the number of lines, " + strconv.FormatUint(lines, 10)}
			}
			if accesses += count; accesses < count {
				return &CheckError{at + "the number of accesses exceeds 64 bits"}
			}
		}
		if accesses += k.Cold; accesses < k.Cold {
			return &CheckError{at + "the number of accesses exceeds 64 bits"}
		}
		missing[k.Kind] -= min(missing[k.Kind], k.Accesses())
	}
	if missing != [trace.NumKinds]uint64{} {
		return &CheckError{at + "there are fewer accesses than references"}
	}
	var start uint64
	if p.Segment != nil {
		start = p.Segment.Start
	}
	return l.Windows.check(at, accesses, start, p.Totals.AllReferences())
}

// check returns an error unless the windows cover all references from the number "start" onwards,
// and the counts of the windows add up to the given number of accesses.
func (w *Windows) check(at string, accesses, start, references uint64) error {
	size := w.References
	if size < MinWindow || size&(size-1) != 0 {
		return &CheckError{at + "the number of references in a window is not a power of two of at least 1,024"}
	}
	first, rows := w.Span(start, references)
	if w.First != first || uint64(len(w.Rows)) != rows || w.References != WindowSize(start+references) {
		return &CheckError{at + "the windows do not cover the references"}
	}
	for i := range w.Rows {
		accesses -= w.Rows[i].Accesses()
	}
	if accesses != 0 {
		return &CheckError{at + "the windows do not add up to the accesses"}
	}
	if w.Distinct != nil && len(w.Distinct) != len(w.Rows) {
		return &CheckError{at + "the working sets do not match the windows"}
	}
	for i, lines := range w.Distinct {
		if lines < w.Rows[i][ColdBin] || lines > w.Rows[i].Accesses() {
			return &CheckError{at + "a window has more first accesses than lines, or more lines than accesses"}
		}
	}
	return nil
}

// checkWorkingSets checks the working sets in the parameter "larger", whose windows are larger than
// the windows in Windows.Rows. The windows of each list contain twice as many references as the
// windows of the previous list. The last list contains a single window, which is the whole segment
// and contains all lines.
func (w *Windows) checkWorkingSets(larger [][]uint64, start, references, lines uint64) error {
	if w.Distinct == nil {
		if larger != nil {
			return &CheckError{"the mergeable part has working sets, but the windows have none"}
		}
		return nil
	}
	all := append([][]uint64{w.Distinct}, larger...)
	for i, sets := range all {
		first, last := start/w.References>>i, (start+references-1)/w.References>>i
		if uint64(len(sets)) != last-first+1 || (len(sets) == 1) != (i == len(all)-1) {
			return &CheckError{"the working sets of the mergeable part do not match the windows"}
		}
		for _, n := range sets {
			if n > lines || len(sets) == 1 && n != lines {
				return &CheckError{"the number of lines in a working set does not match the histograms"}
			}
		}
	}
	return nil
}

// WindowSize returns the number of references in a window for a trace of the given length: the
// smallest power of two that is at least MinWindow and yields at most MaxWindows windows.
func WindowSize(references uint64) uint64 {
	size := uint64(MinWindow)
	for (references+size-1)/size > MaxWindows {
		size *= 2
	}
	return size
}

// Span returns the number of the first window that contains any of the given references, and the
// number of windows that contain these references. The parameter start is the number of the first
// reference.
func (w *Windows) Span(start, references uint64) (first, rows uint64) {
	first = start / w.References
	if references == 0 {
		return first, 0
	}
	return first, (start+references-1)/w.References - first + 1
}
