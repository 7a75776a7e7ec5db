package multicore

import (
	"io"
	"reflect"
	"slices"
	"testing"

	"github.com/stackglass/stackglass/core/interleave"
	"github.com/stackglass/stackglass/core/papers/sasmm"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

func TestOptionsOfPaper(t *testing.T) {
	for _, c := range []struct {
		schedule *Schedule
		chunk    uint64
		guided   bool
	}{
		{nil, 0, false}, {&Schedule{}, 0, false}, {&Schedule{Chunk: 3}, 3, false},
		{&Schedule{Kind: Dynamic}, 1, false}, {&Schedule{Dynamic, 4}, 4, false}, {&Schedule{Guided, 2}, 2, true},
	} {
		o := Options{Cores: 5, Division: ByRegion, Schedule: c.schedule, Order: interleave.Order{Seed: 3},
			Private: Private{Ranges: []Range{{Low: 1, High: 2}, {Low: 5, High: 7}}}}
		want := sasmm.Options{Cores: 5, PerRegion: true, Chunk: c.chunk, Guided: c.guided, Order: o.Order,
			Ranges: []sasmm.Range{{Low: 1, High: 2}, {Low: 5, High: 7}}}
		if got := o.Printed(); !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	whole := Options{Division: AsPrinted}
	if o := whole.Printed(); o.PerRegion || o.Ranges != nil {
		t.Errorf("%+v", o)
	}
}

// TestDividedExecutionsEqualSASMM divides executions of blocks among cores, and checks that Mimic
// and package sasmm return the same rows.
func TestDividedExecutionsEqualSASMM(t *testing.T) {
	// The function main forks twice. After each fork, it executes the block "body" in a loop and
	// then joins. Each execution of the block "body" loads a[i] and stores to the stack.
	p := &trace.Program{
		Functions: []trace.Function{{Name: "main"}, {Name: "main.omp_outlined", First: 2, Outline: true}},
		Blocks:    []trace.Block{{Sites: 1}, {FirstSite: 1, Sites: 2}, {Function: 1, FirstSite: 3, Sites: 2}},
		Sites: []trace.Site{
			{Kind: trace.ParallelBegin}, {Kind: trace.ParallelEnd, Block: 1}, {Kind: trace.Load, Bytes: 8, Block: 1},
			{Kind: trace.Load, Bytes: 8, Block: 2}, {Kind: trace.Store, Bytes: 8, Block: 2},
		},
	}
	const stack = 0x7fff_0000_0000
	var steps []tracetest.Step
	for region := range uint64(2) {
		steps = append(steps, tracetest.Step{Block: 0, Values: []uint64{stack}})
		for i := range uint64(4) {
			steps = append(steps, tracetest.Step{Block: 2, Values: []uint64{0x1000*region + i, stack - 8}})
		}
		steps = append(steps, tracetest.Step{Block: 1, Values: []uint64{1}})
	}
	whole := tracetest.Rows(p, steps...)
	for division, want := range map[Division][]trace.Addr{
		ByRegion:  {2, 3, 0x1002, 0x1003},
		AsPrinted: {0x1000, 0x1001, 0x1002, 0x1003},
	} {
		m, err := Mimic(tracetest.NewProgramReader(p, whole, 0), Options{Cores: 2, Division: division}, nil)
		if err != nil {
			t.Fatal(err)
		}
		m.Select(trace.DataKinds)
		b, err := trace.ReadAll(m)
		if err != nil {
			t.Fatal(err)
		}
		var got, own []trace.Addr
		for i := range b.Addr {
			if b.Thread[i] == 1 && b.Kind[i] == trace.Load {
				got = append(got, b.Addr[i])
			} else if b.Thread[i] == 1 {
				own = append(own, b.Addr[i])
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: core 1 loads from %x, want %x", division, got, want)
		}
		for _, a := range own {
			if a>>48 != 1 {
				t.Errorf("%s: core 1 stores to %x, on core 0's stack", division, a)
			}
		}
		r := m.Report()
		if !slices.Equal(r.References, []uint64{10, 8}) || r.Regions != 2 || r.Outside != 2 || len(r.Doubts) > 0 {
			t.Errorf("%s: %+v", division, r)
		}
		if h := m.Header(); !h.Threads || len(h.Program.Threads) != 2 {
			t.Errorf("%s: %+v", division, h)
		}
		if err := m.Next(trace.NewBatch(0)); err != io.EOF {
			t.Errorf("after the last row, the error is %v, want io.EOF", err)
		}
	}
}
