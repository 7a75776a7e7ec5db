package pass

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/loops/sgl"
	"github.com/stackglass/stackglass/core/open"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/csv"
	"github.com/stackglass/stackglass/core/trace/din"
	"github.com/stackglass/stackglass/core/trace/lackey"
	"github.com/stackglass/stackglass/core/trace/sgt"
)

// WrittenFormats are the formats that traces are converted to, the default
// first.
var WrittenFormats = []string{"sgt", "lackey", "din", "csv"}

// Folded is the format that traces are folded to. Unfolded is a container of every row
// of one, with the program that it tells of.
const (
	Folded   = "sgl"
	Unfolded = "unfolded"
)

// ConvertOptions say what of a trace to convert, and to what.
type ConvertOptions struct {
	Format   string // of the input; "" finds out
	To       string // one of WrittenFormats, or Folded
	Window   int    // of the folder; 0: as it is best
	Part     sgt.Part
	SkipBad  uint64 // bad records to tolerate
	Strict   bool
	Tool     string // the fact that says what converted
	Terminal io.Writer
}

// Converted is what came of a conversion.
type Converted struct {
	From       trace.Header
	References uint64 // that were written
	BadRecords uint64
	FirstBad   *trace.SyntaxError
	Rows       uint64     // that were folded, with events
	Size       loops.Size // of what they were folded to
	// Stopped is the damage that ended the input early; what was before it is
	// written. nil: there was none.
	Stopped error
}

// Convert writes the input, or a part of it, to w in another format. After an
// error what was written is not whole.
func (in *Input) Convert(ctx context.Context, w io.Writer, o ConvertOptions) (*Converted, error) {
	t, err := open.Open(in.Name, in, open.Options{Format: o.Format, Packings: packings, Strict: o.Strict})
	if err != nil {
		return nil, in.readError(ctx, err)
	}
	c := &conversion{in: in, ctx: ctx, bar: newBar(o.Terminal, 0, in.Bytes), options: o}
	defer c.bar.finish()
	if container := t.Container(); container != nil && o.To == "sgt" {
		err = c.rewrite(container, w)
	} else {
		switch o.To {
		case "sgt":
			t.Select(trace.AllKinds | 1<<trace.BlockEntry)
		case Folded, Unfolded:
			t.Select(trace.AllKinds | trace.EventKinds)
		}
		rows := newRowWriter(w, o)
		err = c.rows(t, rows)
		if f, ok := rows.(foldedWriter); ok {
			c.done.Rows, c.done.Size = f.Rows(), f.Folding.Size()
		}
	}
	c.done.From = t.Header()
	return &c.done, err
}

type conversion struct {
	in      *Input
	ctx     context.Context
	bar     *bar
	options ConvertOptions
	done    Converted
	keep    []int32
	skipped uint64
}

// rewrite takes a container over step by step.
func (c *conversion) rewrite(r *sgt.Reader, w io.Writer) error {
	x := sgt.NewRewriter(w, r, c.options.Part)
	for {
		err := x.Copy(trace.DefaultRows)
		c.done.References = x.References()
		if over, err := c.over(err); over {
			if err != nil {
				return err
			}
			return x.Close(c.how())
		}
	}
}

// over tells whether reading has come to its end, and whether that is an error
// that leaves nothing to keep.
func (c *conversion) over(err error) (bool, error) {
	c.bar.show(c.in.read.Load(), c.done.References, 0, time.Now())
	var damage *trace.DamageError
	switch {
	case c.ctx.Err() != nil:
		return true, ErrInterrupted
	case err == io.EOF:
		return true, nil
	case errors.As(err, &damage) && c.done.References > 0:
		c.done.Stopped = err
		return true, nil
	}
	return err != nil, err
}

// how tells how a run ended that ends with a conversion.
func (c *conversion) how() string {
	switch limit := c.options.Part.Limit; {
	case c.done.Stopped != nil:
		return "cut"
	case limit > 0 && c.done.References == limit:
		return "limit"
	}
	return "converted"
}

// rows converts batch by batch.
func (c *conversion) rows(t *open.Trace, w rowWriter) error {
	b := trace.NewBatch(0)
	for {
		err := t.Next(b)
		if trace.IsSyntax(err) {
			if c.done.BadRecords == c.options.SkipBad {
				return err
			}
			if c.done.BadRecords++; c.done.FirstBad == nil {
				errors.As(err, &c.done.FirstBad)
			}
			continue
		}
		if err == nil {
			c.done.References += c.choose(b)
			if err := w.Write(b, t.Header()); err != nil {
				return err
			}
			if limit := c.options.Part.Limit; limit > 0 && c.done.References == limit {
				err = io.EOF
			}
		}
		if over, err := c.over(err); over {
			if err != nil {
				return err
			}
			return w.Close(sgt.End{How: c.how()}, t.Header())
		}
	}
}

// choose keeps the references of a batch that are within the part, and what
// entries of blocks are around them. It gives the number of references.
func (c *conversion) choose(b *trace.Batch) (references uint64) {
	p, left := &c.options.Part, ^uint64(0)
	if p.Limit > 0 {
		left = p.Limit - c.done.References
	}
	c.keep = c.keep[:0]
	for i, kind := range b.Kind {
		if p.Threads != nil && (b.Thread == nil || !slices.Contains(p.Threads, b.Thread[i])) {
			continue
		}
		switch isReference := kind.IsReference(); {
		case isReference && !p.Kinds.Has(kind):
		case isReference && c.skipped < p.Skip:
			c.skipped++
		case c.skipped == p.Skip && references < left:
			c.keep = append(c.keep, int32(i))
			if isReference {
				references++
			}
		}
	}
	if len(c.keep) < b.Len() {
		b.Select(c.keep)
	}
	return references
}

// rowWriter writes a trace in some format.
type rowWriter interface {
	Write(*trace.Batch, trace.Header) error
	Close(sgt.End, trace.Header) error
}

func newRowWriter(w io.Writer, o ConvertOptions) rowWriter {
	switch o.To {
	case Folded:
		return foldedWriter{sgl.NewFolding(w, o.Window)}
	case Unfolded:
		return unfoldedWriter{sgt.NewRestorer(w, []trace.Fact{{Name: "tool", Value: o.Tool}})}
	case "lackey":
		return textWriter{write: lackey.NewWriter(w).Write}
	case "din":
		return textWriter{write: din.NewWriter(w).Write}
	case "csv":
		return tableWriter{csv.NewWriter(w)}
	}
	return containerWriter{sgt.NewImporter(w, []trace.Fact{{Name: "tool", Value: o.Tool}})}
}

// textWriter writes formats that have nothing but lines of references.
type textWriter struct{ write func(*trace.Batch) error }

func (w textWriter) Write(b *trace.Batch, _ trace.Header) error { return w.write(b) }
func (w textWriter) Close(sgt.End, trace.Header) error          { return nil }

type tableWriter struct{ *csv.Writer }

// Close writes the names of the columns, if no reference came before.
func (w tableWriter) Close(_ sgt.End, h trace.Header) error {
	return w.Write(&trace.Batch{}, h)
}

type unfoldedWriter struct{ *sgt.Restorer }

func (w unfoldedWriter) Close(e sgt.End, h trace.Header) error { return w.Restorer.Close(h, e) }

type foldedWriter struct{ *sgl.Folding }

func (w foldedWriter) Close(e sgt.End, h trace.Header) error { return w.Folding.Close(h, e) }

type containerWriter struct{ *sgt.Importer }

func (w containerWriter) Close(e sgt.End, _ trace.Header) error { return w.Importer.Close(e) }
