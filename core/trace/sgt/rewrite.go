package sgt

import (
	"encoding/binary"
	"io"
	"slices"
	"strings"

	"github.com/stackglass/stackglass/core/trace"
)

// Part selects the references of a container that are copied.
type Part struct {
	Kinds   trace.Kinds // kinds of references to keep; events are always kept
	Threads []uint32    // numbers of the threads to copy, in ascending order; nil means all threads
	// Skip is the number of references of these kinds and threads to skip. Limit is the maximum
	// number of references to keep after the skipped references, or 0 for no limit.
	Skip, Limit uint64
}

func (p *Part) isWhole() bool {
	return p.Kinds&trace.AllKinds == trace.AllKinds && p.Threads == nil && p.Skip == 0 && p.Limit == 0
}

func (p *Part) String() string {
	words := []string{"kinds " + p.Kinds.String()}
	if p.Threads != nil {
		var threads []string
		for _, t := range p.Threads {
			threads = append(threads, decimal(uint64(t)))
		}
		words = append(words, "threads "+strings.Join(threads, ","))
	}
	if p.Skip > 0 {
		words = append(words, "skip "+decimal(p.Skip))
	}
	if p.Limit > 0 {
		words = append(words, "limit "+decimal(p.Limit))
	}
	return strings.Join(words, ", ")
}

// Rewriter writes a part of a container to a new container. Rewriter writes steps in the order of
// tickets, so that readers need not merge threads. Rewriter keeps blocks, steps and tickets, but
// removes sites of omitted kinds from the blocks. If Skip or Limit cuts a step, the remaining
// references of the step become steps of synthetic blocks.
type Rewriter struct {
	r    *Reader
	w    *Writer
	part Part

	toSkip, left uint64 // remaining number of references to skip (toSkip), and to copy after these (left)
	blocks       []rewrittenBlock
	modules      []uint64 // the number of each block in the new file
	written      uint64   // number of modules in the new file
	values       []uint64
}

type rewrittenBlock struct {
	number uint32  // number of the block in the new file
	keep   []uint8 // numbers of the values that are copied; nil means all values
}

// NewRewriter returns a Rewriter that writes a part of the container that r reads. The reader r
// must not have read anything yet.
func NewRewriter(w io.Writer, r *Reader, part Part) *Rewriter {
	x := &Rewriter{r: r, w: NewWriter(w, 0, nil), part: part, toSkip: part.Skip, left: part.Limit}
	if part.Limit == 0 {
		x.left = ^uint64(0)
	}
	r.each = x.frame
	return x
}

// frame copies a frame that does not belong to a chunk.
func (x *Rewriter) frame(f frame) error {
	switch f.tag {
	case tagFile:
		x.w.pointerBits, x.w.facts = x.r.pointerBits, slices.Clone(x.r.facts)
		if !x.part.isWhole() {
			x.w.facts = append(x.w.facts, trace.Fact{Name: "part", Value: x.part.String()})
		}
	case tagCapture, tagThread, tagTags:
		x.w.put(f.tag, f.body)
	case tagObjects:
		module, n := binary.Uvarint(f.body)
		x.w.put(f.tag, append(binary.AppendUvarint(nil, x.modules[module]), f.body[n:]...))
	case tagModule:
		return x.module(f.body)
	}
	return nil
}

// module copies a module without the omitted sites.
func (x *Rewriter) module(body []byte) error {
	var p trace.Program
	if err := ParseModule(body, &p); err != nil {
		return err
	}
	first := uint32(len(x.w.layouts))
	keep := make([][]uint8, len(p.Blocks))
	if x.part.Kinds&trace.AllKinds != trace.AllKinds {
		x.removeSites(&p, keep)
		body = AppendModule(nil, &p)
	}
	for i := range p.Blocks {
		x.blocks = append(x.blocks, rewrittenBlock{number: first + uint32(i), keep: keep[i]})
	}
	x.modules = append(x.modules, x.written)
	x.written++
	return x.w.Module(body)
}

// removeSites removes the sites of omitted kinds from the blocks of a module. For each block,
// removeSites stores the numbers of the remaining values in the list "keep".
func (x *Rewriter) removeSites(p *trace.Program, keep [][]uint8) {
	sites := p.Sites
	p.Sites = nil
	for i := range p.Blocks {
		b := &p.Blocks[i]
		old, value := sites[b.FirstSite:b.FirstSite+b.Sites], uint8(0)
		keep[i] = []uint8{}
		// 1 + the new number of each site, as in Instr.Site
		number := make([]uint32, len(old)+1)
		b.FirstSite = uint32(len(p.Sites))
		for n := range old {
			first := value
			value += uint8(old[n].Values())
			if k := old[n].Kind; k.IsReference() && !x.part.Kinds.Has(k) {
				continue
			}
			for v := first; v < value; v++ {
				keep[i] = append(keep[i], v)
			}
			p.Sites = append(p.Sites, old[n])
			number[n+1] = uint32(len(p.Sites)) - b.FirstSite
		}
		b.Sites = uint32(len(p.Sites)) - b.FirstSite
		for j := range b.Instrs {
			b.Instrs[j].Site = number[b.Instrs[j].Site]
		}
	}
}

// Copy copies up to the given number of steps. Copy returns io.EOF at the end. Any other error is
// an error of the reader, such as damage, or of the writer.
func (x *Rewriter) Copy(steps int) error {
	for range steps {
		if x.left == 0 {
			return io.EOF
		}
		l, block, values, err := x.r.step()
		if err != nil {
			return err
		}
		if _, found := slices.BinarySearch(x.part.Threads, l.thread); x.part.Threads != nil && !found {
			continue
		}
		if err := x.step(l.place(), block, values); err != nil {
			return err
		}
	}
	return nil
}

// References returns the number of references written so far.
func (x *Rewriter) References() uint64 { return x.w.total }

// step copies a step, or only those references of the step that belong to the part.
func (x *Rewriter) step(at place, block uint32, values []uint64) error {
	to := &x.blocks[block]
	if to.keep != nil {
		x.values = x.values[:0]
		for _, v := range to.keep {
			x.values = append(x.values, values[v])
		}
		values = x.values
	}
	n := x.w.layouts[to.number].referencesOf(values)
	switch {
	case x.toSkip > 0 && n <= x.toSkip:
		x.toSkip -= n
		return nil
	case x.toSkip > 0 || n > x.left:
		return x.copyReferences(at, &x.r.program.Blocks[block], values)
	}
	if x.part.Limit > 0 {
		x.left -= n
	}
	return x.w.Step(at.thread, at.ticket, to.number, values)
}

// copyReferences copies only those references of a step that belong to the part.
func (x *Rewriter) copyReferences(at place, b *trace.Block, values []uint64) error {
	p := &trace.Program{Modules: make([]trace.Module, 1)}
	var of [][]uint64
	for _, s := range x.r.program.Sites[b.FirstSite : b.FirstSite+b.Sites] {
		if s.Kind.IsReference() && !x.part.Kinds.Has(s.Kind) {
			continue
		}
		now := values[:s.Values()]
		values = values[len(now):]
		switch {
		case !s.Kind.IsReference() || x.left == 0:
			continue
		case x.toSkip > 0:
			x.toSkip--
			continue
		case x.part.Limit > 0:
			x.left--
		}
		p.Blocks = append(p.Blocks, trace.Block{Function: trace.NoFunction, Flags: trace.Synthetic, FirstSite: uint32(len(p.Sites)), Sites: 1})
		p.Sites, of = append(p.Sites, s), append(of, now)
	}
	first := uint32(len(x.w.layouts))
	x.written++
	if err := x.w.Module(AppendModule(nil, p)); err != nil {
		return err
	}
	for i := range of {
		if err := x.w.Step(at.thread, at.ticket, first+uint32(i), of[i]); err != nil {
			return err
		}
	}
	return nil
}

// Close ends the new container. If the old container does not describe how the run ended, the
// parameter "how" describes it.
func (x *Rewriter) Close(how string) error {
	e := x.r.ending.End
	if !x.r.ending.Known {
		e.How = how
	}
	return x.w.Close(e)
}
