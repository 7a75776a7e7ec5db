package estimate

import (
	"errors"
	"maps"
	"slices"

	"github.com/stackglass/stackglass/core/codec"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// The state of a run consists of varints: the number of references and, for each line size, the
// line size in bytes, the sampler, the counts and the windows.

func (s *lineSize) code(c *codec.Coder) {
	shift := uint64(s.Shift)
	c.U64(&shift)
	c.Check(shift == uint64(s.Shift), otherSizes)
	s.sampler.code(c)
	s.counts.code(c)
	s.windows.code(c)
}

const otherSizes = "the checkpoint was saved with different line sizes; analyse the trace again from its start"

// Restore implements [contract.Analysis].
func (a *Analysis) Restore(p *profile.Profile) error {
	if p.Segment == nil || p.Segment.Sample == nil || p.Sampled == nil || optionsOf(p.Sampled) != a.options {
		return errors.New("the checkpoint was saved without a sample, or with a different sample; analyse the trace again from its start")
	}
	c := codec.Reader(p.Segment.Sample)
	if c.U64(&a.done); a.done != p.Totals.AllReferences() {
		return errors.New("the checkpoint is damaged: the number of references does not match the sample; analyse the trace again from its start")
	}
	if c.In.Uint() != uint64(len(a.sizes)) {
		return errors.New(otherSizes)
	}
	for _, s := range a.sizes {
		if s.code(c); !c.Failed() && !s.windows.coverReferences(a.done) {
			return errors.New("the checkpoint is damaged: the windows do not match the references; analyse the trace again from its start")
		}
	}
	return c.In.Err()
}

// Append implements [contract.Analysis]. Append always fails, because a sample does not contain the
// data for joining segments.
func (a *Analysis) Append(*profile.Profile) error {
	return errors.New("sampled profiles cannot be joined; sample the whole trace in one pass")
}

func (c *counts) code(w *codec.Coder) {
	for half := range c.near {
		w.Array(c.near[half][:])
	}
	w.Array(c.beyond[:])
	for k := range c.deep {
		w.U64(&c.cold[k])
		codeHistogram(w, &c.deep[k])
	}
	w.U64(&c.samples)
	for g := range c.spread {
		w.Array(c.spread[g][:])
	}
}

const beyond = 1 << 61 // larger than every line number

// codeLines reads or writes lines. When reading, it drops impossible line numbers.
func codeLines(c *codec.Coder, lines *[]trace.Line) {
	if c.Stack(lines); c.Reads() {
		*lines = slices.DeleteFunc(*lines, func(line trace.Line) bool { return line >= beyond })
	}
}

// codeLine reads or writes a line, or a special value such as noLine. The parameter marks is the
// number of special values, which are encoded as the smallest numbers.
func codeLine(c *codec.Coder, line *trace.Line, marks uint64) {
	above := *line + marks
	if codec.Below(c, &above, beyond+marks); c.Reads() {
		*line = above - marks
	}
}

// codeByLine reads or writes a map, sorted by line. The parameter least is the minimum number of
// bytes in the encoding of an entry.
func codeByLine[T any](c *codec.Coder, of map[trace.Line]T, least int, value func(*T)) {
	lines := slices.Sorted(maps.Keys(of))
	codec.Slice(c, &lines, least, func(line *trace.Line) {
		codec.Below(c, line, beyond)
		v := of[*line]
		if value(&v); c.Reads() && !c.Failed() {
			of[*line] = v
		}
	})
}

func (w *windows) code(c *codec.Coder) {
	c.U64(&w.References)
	codec.Slice(c, &w.rows, 1+2*profile.WindowBins, func(r *row) {
		c.U64(&r.beyond)
		c.Array(r.near[:])
		c.Array(r.sample[:])
	})
	c.Array(w.counted[:])
}

// coverReferences reports whether the number of windows matches the given number of references.
func (w *windows) coverReferences(references uint64) bool {
	of := profile.Windows{References: w.References}
	if w.References != profile.WindowSize(references) {
		return false
	}
	_, rows := of.Span(0, references)
	return uint64(len(w.rows)) == rows
}
