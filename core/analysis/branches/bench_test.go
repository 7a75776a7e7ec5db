package branches

import (
	"testing"

	"github.com/stackglass/stackglass/core/trace"
)

// nested returns the program for i { for j { load, load, store } ; f() }, with three references per
// block, and its rows.
func nested() (p *trace.Program, b *trace.Batch, entries int) {
	p = &trace.Program{
		Functions: []trace.Function{{Name: "main", Blocks: 4}, {Name: "f", First: 4, Blocks: 1}},
		Blocks: []trace.Block{
			{Flags: trace.EntryBlock, Successors: []uint32{1}}, {Successors: []uint32{1, 2}},
			{Callee: "f", Successors: []uint32{3}}, {Successors: []uint32{1}},
			{Function: 1, Flags: trace.EntryBlock | trace.ReturnBlock},
		},
		Sites: []trace.Site{{Block: 1}, {Block: 1}, {Block: 1}},
	}
	b = trace.NewBatch(0)
	b.NeedThread()
	b.NeedSite()
	row := func(kind trace.Kind, site uint32) {
		b.Append(kind, 0, 0, 1, 0)
		b.Site[b.Len()-1] = site
	}
	for j := 0; b.Len() < b.Cap()-16; j++ {
		entries++
		for site := range uint32(3) {
			row(trace.Load, site)
		}
		if j%10 == 9 {
			row(trace.BareBlock, 2)
			row(trace.BareBlock, 4)
			row(trace.BareBlock, 3)
			entries += 3
		}
	}
	return p, b, entries
}

func BenchmarkBlocks(b *testing.B) {
	p, rows, entries := nested()
	a := New(trace.DataKinds, false, func() *trace.Program { return p })
	for b.Loop() {
		if err := a.Consume(rows); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(rows.Len())*float64(b.N)/b.Elapsed().Seconds(), "refs/s")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(entries), "ns/block")
}

func TestNoAllocations(t *testing.T) {
	p, rows, _ := nested()
	a := New(trace.DataKinds, false, func() *trace.Program { return p })
	consume := func() {
		if err := a.Consume(rows); err != nil {
			t.Fatal(err)
		}
	}
	consume()
	if n := testing.AllocsPerRun(20, consume); n != 0 {
		t.Errorf("a batch causes %v allocations, want 0", n)
	}
}
