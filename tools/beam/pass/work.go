package pass

import (
	"context"
	"time"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/tools/beam/pool"
)

// work reports how many references of a part of a trace this process has analysed.
type work struct {
	name string
	done uint64
	told time.Time
}

// begin reports that work begins. The name contains the file and the range of references.
func begin(name string) *work {
	w := &work{name: name}
	w.tell(false)
	return w
}

// add adds references that have been analysed.
func (w *work) add(references uint64) {
	w.done += references
	if time.Since(w.told) > time.Second {
		w.tell(false)
	}
}

// end reports that all of the work is done. references is its number of references, if more than
// were added.
func (w *work) end(references uint64) {
	w.done = max(w.done, references)
	w.tell(true)
}

func (w *work) tell(ended bool) {
	w.told = time.Now()
	pool.Report(pool.Work{Name: w.name, Done: w.done, Ended: ended})
}

// goesOn returns a function that reports the progress of a run, and ends the run when ctx ends.
func (w *work) goesOn(ctx context.Context) func(analysis.Progress) error {
	return func(p analysis.Progress) error {
		w.add(p.References - w.done)
		return ctx.Err()
	}
}

// decimal returns a number with groups of digits.
func decimal(n uint64) string { return report.Count(n).Human() }
