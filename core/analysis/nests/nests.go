// Package nests compresses the records of a run into a tree of loop nests, in the same pass as
// other analyses. Package loops implements the compression. The compression depends on all earlier
// records, so a segment's records are compressed only when the segment is appended. A saved run
// contains the current tree. When the run is resumed, the records of the tree are compressed again,
// which restores the state of the compressor.
package nests

import (
	"strconv"

	"github.com/stackglass/stackglass/core/analysis/contract"
	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

const (
	// MostBytes is the default memory limit of a tree. If a trace does not compress, its tree is as
	// long as the trace.
	MostBytes = 96 << 20
	// lookEvery is the number of rows between two checks of the limits. The rows at which the
	// limits are checked do not depend on batches or segments.
	lookEvery = 1 << 16
	// An unpredicted row costs about ten times as much as a predicted row. A trace counts as
	// compressible if at most one eighth of its rows are unpredicted, apart from the first
	// allowedRows unpredicted rows. allowedRows limits the time that the analysis wastes on traces
	// that do not compress. Traces of programs with loops have far fewer unpredicted rows.
	unpredictedOf = 8
	allowedRows   = 1 << 17
)

// Options contains the limits of the compression.
type Options struct {
	// If the tree needs more than approximately MostBytes bytes of memory, the analysis stops and
	// has no result.
	MostBytes uint64
	// IfRegular makes the analysis stop early, without a result, in two cases: if the trace does
	// not compress, or if it does not identify instructions. If the trace does not identify
	// instructions, the loops of the tree are not the loops of the program.
	IfRegular bool
}

// Analysis compresses a trace into loops. The zero value is not usable: see [New].
type Analysis struct {
	folder *loops.Folder // nil: the analysis has stopped
	rows   uint64
	coded  bool // the rows have sites or PCs
	Options
	view trace.Batch
}

// New returns an analysis.
func New(o Options) *Analysis { return &Analysis{folder: loops.NewFolder(0), Options: o} }

// Takes selects all rows and all columns.
func (a *Analysis) Takes() (events trace.Kinds, sites, pcs bool) { return trace.EventKinds, true, true }

// Consume compresses the next rows.
func (a *Analysis) Consume(b *trace.Batch) error {
	a.coded = a.coded || b.Site != nil || b.PC != nil
	for lo := 0; lo < b.Len() && a.folder != nil; {
		hi := min(b.Len(), lo+int(lookEvery-a.rows%lookEvery))
		if err := a.folder.Consume(b.View(&a.view, lo, hi)); err != nil {
			return err
		}
		a.rows += uint64(hi - lo)
		if lo = hi; a.rows%lookEvery == 0 && (a.folder.Bytes() > a.MostBytes || a.isIrregular()) {
			a.folder = nil
		}
	}
	return nil
}

// isIrregular reports whether the analysis should stop because the trace does not compress.
func (a *Analysis) isIrregular() bool {
	return a.IfRegular && (!a.coded || a.folder.Unpredicted() > a.rows/unpredictedOf+allowedRows)
}

// Result writes the tree, which is also the saved state. Result writes nothing if the analysis has
// stopped.
func (a *Analysis) Result(p *profile.Profile, state bool) {
	switch {
	case a.folder != nil && (state || !a.isIrregular()):
		p.Loops = a.folder.Tree().Append([]byte{})
	case !a.IfRegular || state:
		p.Loops = []byte{}
	}
}

// Close does nothing, because Result needs all data.
func (a *Analysis) Close() {}

// StateError reports that the tree of a saved run is damaged.
type StateError struct{ Err error }

func (e *StateError) Error() string {
	return "the loops in the checkpoint are damaged: " + e.Err.Error() + "; analyse the trace again from its start"
}

func (e *StateError) Unwrap() error { return e.Err }

// Restore expands the tree in p, and compresses its rows again.
func (a *Analysis) Restore(p *profile.Profile) error {
	if len(p.Loops) == 0 {
		if p.Loops != nil {
			a.folder = nil
		}
		return nil
	}
	tree, err := loops.Decode(p.Loops)
	if err != nil {
		return &StateError{err}
	}
	rows := p.Totals.AllReferences()
	if tree.Rows() < rows {
		return &StateError{&trace.OptionError{Option: "rows", Got: strconv.FormatUint(tree.Rows(), 10), Want: "at least " + strconv.FormatUint(rows, 10) + ", the number of references"}}
	}
	e, b := tree.Expand(), trace.NewBatch(0)
	for done := uint64(0); done < tree.Rows() && a.folder != nil; done += uint64(b.Len()) {
		if err := e.Next(b); err != nil {
			return &StateError{err}
		}
		if err := a.Consume(b); err != nil {
			return err
		}
	}
	return nil
}

// Append does nothing, because AppendRows receives the rows of the segment.
func (a *Analysis) Append(*profile.Profile) error { return nil }

// Reads implements [contract.RowAppender].
func (a *Analysis) Reads() bool { return a.folder != nil }

// AppendRows compresses the next rows of a segment.
func (a *Analysis) AppendRows(b *trace.Batch) error { return a.Consume(b) }

var (
	_ contract.Analysis    = (*Analysis)(nil)
	_ contract.RowAppender = (*Analysis)(nil)
)
