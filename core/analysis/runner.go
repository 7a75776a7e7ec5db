package analysis

import (
	"errors"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// Runner reads a trace once and feeds every analysis of a [Spec].
//
//	for {
//		err := r.Step()
//		if err == io.EOF { break }
//		...
//	}
//	p := r.Profile(profile.State{})
type Runner struct{}

// Progress is what a runner can tell between two steps.
type Progress struct {
	References uint64 // analysed so far
	Lines      uint64 // distinct lines so far, of the first line size
	Threads    int    // threads seen; 0 where the trace has none
	BadRecords uint64 // tolerated so far
}

// NewRunner checks spec and prepares to read r.
func NewRunner(spec Spec, r trace.Reader) (*Runner, error) { return nil, errors.New("not yet") }

// Step analyses one batch. io.EOF tells that the trace, or the part that the
// spec limits it to, is done. Any other error ends the run; what was analysed
// before it is in Profile.
func (r *Runner) Step() error { return errors.New("not yet") }

// Progress tells how far the run is.
func (r *Runner) Progress() Progress { return Progress{} }

// Profile gives the result so far. It shares nothing with the running analyses.
func (r *Runner) Profile(state profile.State) *profile.Profile { return nil }

// Save gives the state of the run as bytes, from which Restore goes on.
func (r *Runner) Save() []byte { return nil }

// Restore makes a fresh runner go on where Save was called: with the same spec
// and a reader at the start of the same trace. The references that were
// analysed then are read again but skipped.
func (r *Runner) Restore(saved []byte) error { return errors.New("not yet") }
