package pass

import (
	"context"
	"errors"
	"io"

	"github.com/stackglass/stackglass/core/open"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sgt"
)

// Facts are what the beginning of a trace tells.
type Facts struct {
	Header          trace.Header
	Packings        []string // what it is packed in, outermost first
	References      uint64   // that were looked at
	Kinds           [trace.NumKinds]uint64
	Lowest, Highest trace.Addr // first bytes of references
	BadRecords      uint64
	FirstBad        *trace.SyntaxError
	Whole           bool        // the trace ends within what was looked at
	Stopped         error       // why looking ended early; nil: it did not
	Container       *sgt.Survey // what a container tells of itself, all of it; nil: it is none
}

// Look reads the first references of a trace, about as many as said. Bad
// records are counted and passed over. A container tells of all of itself. The
// error tells that there is nothing to tell.
func (in *Input) Look(ctx context.Context, format string, references uint64) (*Facts, error) {
	unpacked, err := open.Open(in.Name, in, open.Options{Format: format, Packings: packings})
	if err != nil {
		return nil, in.readError(ctx, err)
	}
	if r := unpacked.Container(); r != nil {
		survey, err := sgt.Look(r)
		if err != nil {
			return nil, in.readError(ctx, err)
		}
		return &Facts{Header: survey.Header, Packings: unpacked.Packings(), Stopped: in.readError(ctx, survey.Stopped), Container: survey}, nil
	}
	f := &Facts{Packings: unpacked.Packings(), Lowest: ^trace.Addr(0)}
	b := trace.NewBatch(0)
	for f.Stopped == nil && !f.Whole && f.References+f.BadRecords < references {
		switch err := unpacked.Next(b); {
		case err == io.EOF:
			f.Whole = true
		case trace.IsSyntax(err):
			if f.BadRecords++; f.FirstBad == nil {
				errors.As(err, &f.FirstBad)
			}
		case err != nil:
			f.Stopped = in.readError(ctx, err)
		default:
			f.add(b)
		}
	}
	f.Header = unpacked.Header()
	if f.References == 0 {
		f.Lowest = 0
		if f.Stopped != nil {
			return nil, f.Stopped
		}
	}
	return f, nil
}

func (f *Facts) add(b *trace.Batch) {
	f.References += uint64(b.Len())
	for i, k := range b.Kind {
		if k < trace.NumKinds {
			f.Kinds[k]++
		}
		f.Lowest, f.Highest = min(f.Lowest, b.Addr[i]), max(f.Highest, b.Addr[i])
	}
}
