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

// WrittenFormats lists the formats to which traces can be converted, starting with the default.
var WrittenFormats = []string{"sgt", "lackey", "din", "csv"}

// Folded is the format of loop-compressed traces. Unfolded is the format of a container that
// contains every record of a loop-compressed trace, and the description of the traced program.
const (
	Folded   = "sgl"
	Unfolded = "unfolded"
)

// ConvertOptions selects the part of a trace that is converted, and the target format.
type ConvertOptions struct {
	Format   string // format of the input, or "" to detect it
	To       string // one of WrittenFormats, Folded or Unfolded
	Window   int    // window of the loop compression, or 0 for the default
	Part     sgt.Part
	SkipBad  uint64 // maximum number of tolerated bad records
	Strict   bool
	Tool     string // name of the converting program, stored as a fact
	Terminal io.Writer
}

// Converted is the result of a conversion.
type Converted struct {
	From       trace.Header
	References uint64 // number of references that were written
	BadRecords uint64
	FirstBad   *trace.SyntaxError
	Rows       uint64     // rows that were loop-compressed, including events
	Size       loops.Size // size of the loop-compressed trace
	Stopped    error      // the damage that ended the input early, or nil
}

// Convert converts the input, or part of it, to a different format, and writes the output to w.
// After an error, the output is incomplete.
func (in *Input) Convert(ctx context.Context, w io.Writer, o ConvertOptions) (*Converted, error) {
	t, err := open.Open(in.Name, in, open.Options{Format: o.Format, Packings: packings, Strict: o.Strict})
	if err != nil {
		return nil, in.readError(ctx, err)
	}
	c := &conversion{in: in, ctx: ctx, bar: newBar(o.Terminal, 0, in.Bytes), options: o}
	defer c.bar.finish()
	if container := t.Container(); container != nil && o.To == "sgt" {
		err = c.copyContainer(container, w)
	} else {
		switch o.To {
		case "sgt":
			t.Select(trace.AllKinds | 1<<trace.BlockEntry)
		case Folded, Unfolded:
			t.Select(trace.AllKinds | trace.EventKinds)
		}
		err = c.convertRows(t, c.writer(w))
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

// copyContainer copies a container step by step.
func (c *conversion) copyContainer(r *sgt.Reader, w io.Writer) error {
	x := sgt.NewRewriter(w, r, c.options.Part)
	for {
		err := x.Copy(trace.DefaultRows)
		c.done.References = x.References()
		if over, err := c.readingEnded(err); over {
			if err != nil {
				return err
			}
			return x.Close(c.endingOf())
		}
	}
}

// readingEnded reports whether reading has ended. If it returns an error, the output is unusable.
func (c *conversion) readingEnded(err error) (bool, error) {
	c.bar.update(c.in.read.Load(), c.done.References, 0, time.Now())
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

// endingOf returns the description of how the recorded run ended, which is stored in the converted
// trace.
func (c *conversion) endingOf() string {
	switch limit := c.options.Part.Limit; {
	case c.done.Stopped != nil:
		return "cut"
	case limit > 0 && c.done.References == limit:
		return "limit"
	}
	return "converted"
}

// convertRows converts a trace batch by batch.
func (c *conversion) convertRows(t *open.Trace, w rowWriter) error {
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
			c.done.References += c.selectReferences(b)
			if err := w.write(b, t.Header()); err != nil {
				return err
			}
			if limit := c.options.Part.Limit; limit > 0 && c.done.References == limit {
				err = io.EOF
			}
		}
		if over, err := c.readingEnded(err); over {
			if err != nil {
				return err
			}
			return w.close(sgt.End{How: c.endingOf()}, t.Header())
		}
	}
}

// selectReferences removes references outside the selected part from a batch, and keeps the block
// entries that belong to the remaining references. It returns the number of remaining references.
func (c *conversion) selectReferences(b *trace.Batch) (references uint64) {
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

// rowWriter writes a trace in one of the formats.
type rowWriter struct {
	write func(*trace.Batch, trace.Header) error
	close func(sgt.End, trace.Header) error
}

// newLineWriter returns a rowWriter for a format that consists only of lines with references.
func newLineWriter(write func(*trace.Batch) error) rowWriter {
	return rowWriter{
		func(b *trace.Batch, _ trace.Header) error { return write(b) },
		func(sgt.End, trace.Header) error { return nil },
	}
}

func (c *conversion) writer(w io.Writer) rowWriter {
	tool := []trace.Fact{{Name: "tool", Value: c.options.Tool}}
	switch c.options.To {
	case Folded:
		f := sgl.NewFolding(w, c.options.Window)
		return rowWriter{f.Write, func(e sgt.End, h trace.Header) error {
			err := f.Close(h, e)
			c.done.Rows, c.done.Size = f.Rows(), f.Size()
			return err
		}}
	case Unfolded:
		r := sgt.NewRestorer(w, tool)
		return rowWriter{r.Write, func(e sgt.End, h trace.Header) error { return r.Close(h, e) }}
	case "lackey":
		return newLineWriter(lackey.NewWriter(w).Write)
	case "din":
		return newLineWriter(din.NewWriter(w).Write)
	case "csv":
		table := csv.NewWriter(w)
		// Even if there are no references, close writes the column names.
		return rowWriter{table.Write, func(_ sgt.End, h trace.Header) error { return table.Write(&trace.Batch{}, h) }}
	}
	importer := sgt.NewImporter(w, tool)
	return rowWriter{importer.Write, func(e sgt.End, _ trace.Header) error { return importer.Close(e) }}
}
