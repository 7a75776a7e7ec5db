package pass

import (
	"context"
	"errors"

	"github.com/stackglass/stackglass/core/open"
)

// Rows is a trace that is read row by row.
type Rows struct {
	*open.Trace
	in *Input
}

// ErrNotTrace tells that a file holds something else.
var ErrNotTrace = errors.New("it is no trace; give one that stackglass cc made")

// OpenRows opens a trace by its name.
func OpenRows(ctx context.Context, name string) (*Rows, error) {
	in, err := Open(ctx, name, nil)
	if err != nil {
		return nil, err
	}
	if in.IsProfile || in.IsByfl || in.IsModule {
		in.Close()
		return nil, ErrNotTrace
	}
	t, err := open.Open(in.Name, in, open.Options{Packings: packings})
	if err != nil {
		in.Close()
		return nil, in.readError(ctx, err)
	}
	return &Rows{Trace: t, in: in}, nil
}

// Close closes the file.
func (r *Rows) Close() error { return r.in.Close() }
