package pass

import (
	"context"
	"errors"
	"io"
	"strconv"

	"github.com/stackglass/stackglass/core/open"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sgt"
)

// Facts describes the beginning of a trace.
type Facts struct {
	Header          trace.Header
	Packings        []string // compression formats, starting with the outermost
	References      uint64   // number of references read
	Kinds           [trace.NumKinds]uint64
	Lowest, Highest trace.Addr // lowest and highest start address of a reference
	BadRecords      uint64
	FirstBad        *trace.SyntaxError
	Whole           bool        // whether the trace was read to its end
	Stopped         error       // the reason why reading ended early, or nil
	Container       *sgt.Survey // facts about the whole container, or nil
}

// Look reads about the given number of references from the beginning of a trace. Look skips and
// counts bad records. If the trace is a container, the facts also describe the whole trace. Look
// fails if there is nothing to report.
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

// Checked is the result of a check of a whole input.
type Checked struct {
	Type       string // "profile", or the format of a trace
	Packings   []string
	References uint64 // number of readable references
	Container  *sgt.Verdict
	Faults     []Fault // at most mostFaults faults
	Count      uint64  // total number of faults
}

// Fault is one fault in the input.
type Fault struct {
	Where string // for example "byte 17" or "line 3"
	What  string
}

// mostFaults is the maximum number of listed faults.
const mostFaults = 100

func (c *Checked) add(where, what string) {
	if c.Count++; c.Count <= mostFaults {
		c.Faults = append(c.Faults, Fault{where, what})
	}
}

// Check reads the whole input and collects its faults. Check fails if the input cannot be read.
func (in *Input) Check(ctx context.Context, format string) (*Checked, error) {
	if in.IsProfile {
		c := &Checked{Type: "profile"}
		if p, err := in.readProfile(); err != nil {
			c.add("", err.Error())
		} else {
			c.References = p.Totals.AllReferences()
		}
		return c, in.readError(ctx, nil)
	}
	t, err := open.Open(in.Name, in, open.Options{Format: format, Packings: packings})
	if err != nil {
		return nil, in.readError(ctx, err)
	}
	c := &Checked{Type: t.Format(), Packings: t.Packings()}
	if r := t.Container(); r != nil {
		c.Container, err = sgt.Check(r, func(f sgt.Fault) { c.add("byte "+number(f.Offset), f.What) })
		if err == nil {
			c.References = c.Container.Decoded
		}
		return c, in.readError(ctx, err)
	}
	return c, in.readError(ctx, c.readRows(ctx, t))
}

// readRows reads a trace to its end and collects its faults.
func (c *Checked) readRows(ctx context.Context, t *open.Trace) error {
	b := trace.NewBatch(0)
	for ctx.Err() == nil {
		err := t.Next(b)
		var syntax *trace.SyntaxError
		var damage *trace.DamageError
		switch {
		case err == io.EOF:
			return nil
		case errors.As(err, &syntax):
			where := "line " + number(uint64(syntax.Line))
			if syntax.Line == 0 {
				where = "byte " + number(uint64(syntax.Offset))
			}
			c.add(where, syntax.What+" "+strconv.Quote(syntax.Got)+", want "+syntax.Want)
		case errors.As(err, &damage):
			c.add("byte "+number(uint64(damage.Offset)), damage.Nameless())
			return nil
		case err != nil:
			return err
		default:
			c.References += uint64(b.Len())
		}
	}
	return nil
}

func number(n uint64) string { return strconv.FormatUint(n, 10) }
