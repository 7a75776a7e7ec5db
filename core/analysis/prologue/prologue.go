// Package prologue follows the rows that a run skips, so that the analyses know the program's state at
// the first analysed reference: the call stacks, the memory blocks that are in use, and the marked
// regions that are open (MODELS §9.1). When the skipped rows end, the analyses receive the records of
// these allocations and regions again, as if the blocks were allocated and the regions began at this
// point.
//
// Only programs that skip references import this package, so that the page does not have to load the
// package on the first visit.
package prologue

import (
	"slices"

	"github.com/stackglass/stackglass/core/analysis/contract"
	"github.com/stackglass/stackglass/core/analysis/sites"
	"github.com/stackglass/stackglass/core/trace"
)

func init() { contract.NewPrologue = newPrologue }

type prologue struct {
	analyses []contract.Analysis
	callers  contract.CallFollower // nil: calls are not analysed

	finder  *sites.Finder
	record  record   // the row that is being followed
	records []record // the allocation of each memory block, by the block's number
	regions []record // the beginnings of the open regions
	like    *trace.Batch
}

// record is a row of a batch.
type record struct {
	kind          trace.Kind
	addr, pc, arg uint64
	bytes         uint32
	thread, site  uint32
}

func newPrologue(analyses []contract.Analysis, program func() *trace.Program) contract.Prologue {
	p := &prologue{analyses: analyses, like: trace.NewBatch(0)}
	for _, a := range analyses {
		if c, ok := a.(contract.CallFollower); ok {
			p.callers = c
		}
	}
	p.finder = sites.NewFinder(program, p)
	return p
}

// Follow implements [contract.Prologue].
func (p *prologue) Follow(b *trace.Batch, rows int) error {
	skipped := b.View(new(trace.Batch), 0, rows)
	p.like.NeedLike(skipped)
	if p.callers != nil {
		if err := p.callers.Consume(skipped); err != nil {
			return err
		}
	}
	placing := skipped.Site != nil && slices.ContainsFunc(skipped.Kind, contract.LayoutEvents.Has)
	if placing {
		if err := p.finder.Begin(skipped); err != nil {
			return err
		}
	}
	for i, k := range skipped.Kind {
		switch {
		case k.IsReference():
		case k == trace.RegionBegin:
			p.regions = append(p.regions, recordOf(skipped, i))
		case k == trace.RegionEnd:
			p.endRegion(trace.At(skipped.Thread, i))
		case placing && contract.LayoutEvents.Has(k):
			p.record = recordOf(skipped, i)
			p.finder.Event(skipped, i)
			p.record = record{}
		}
	}
	return nil
}

// Placed stores the record of the allocation that has added a block. Blocks that the trace's tables
// declare have no record.
func (p *prologue) Placed(block uint32) {
	if n := int(block) + 1; n > len(p.records) {
		p.records = append(p.records, make([]record, n-len(p.records))...)
	}
	p.records[block] = p.record
}

// Removed is called before a block is removed.
func (p *prologue) Removed(block uint32) { p.records[block] = record{} }

// endRegion ends the innermost open region of a thread.
func (p *prologue) endRegion(thread uint32) {
	for i := len(p.regions) - 1; i >= 0; i-- {
		if p.regions[i].thread == thread {
			p.regions = slices.Delete(p.regions, i, i+1)
			return
		}
	}
}

// DropCounts implements [contract.Prologue].
func (p *prologue) DropCounts() {
	if p.callers != nil {
		p.callers.ForgetCounts()
	}
}

// End implements [contract.Prologue].
func (p *prologue) End() error {
	p.DropCounts()
	rows := p.like
	p.finder.Each(func(block uint32) {
		if r := &p.records[block]; r.kind == trace.Alloc {
			r.appendTo(rows)
		}
	})
	for i := range p.regions {
		p.regions[i].appendTo(rows)
	}
	p.records, p.regions, p.finder = nil, nil, nil
	if rows.Len() == 0 {
		return nil
	}
	for _, a := range p.analyses {
		if events, _, _ := a.Takes(); events != 0 {
			if err := a.Consume(rows); err != nil {
				return err
			}
		}
	}
	return nil
}

func recordOf(b *trace.Batch, i int) record {
	return record{
		kind: b.Kind[i], addr: b.Addr[i], bytes: b.Bytes[i],
		pc: trace.At(b.PC, i), arg: trace.At(b.Arg, i), thread: trace.At(b.Thread, i), site: trace.At(b.Site, i),
	}
}

func (r *record) appendTo(b *trace.Batch) {
	b.Append(r.kind, r.addr, r.bytes, r.thread, r.pc)
	if n := b.Len() - 1; b.Site != nil {
		b.Site[n] = r.site
	}
	if n := b.Len() - 1; b.Arg != nil {
		b.Arg[n] = r.arg
	}
}
