package multicore

import (
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
)

// rowsOf returns a program and the rows of a run with one parallel region. The region contains
// one loop, and each iteration accesses a row of a matrix.
func rowsOf(iterations, length int) (*trace.Program, *trace.Batch) {
	m := newModel(rand.New(rand.NewPCG(1, 1)), 1)
	var rows []row
	add := func(n uint32, addr func(site uint32) trace.Addr, values ...uint64) {
		for _, r := range m.blockRows(n, values...) {
			if r.kind.IsReference() {
				r.addr = addr(r.site)
			}
			rows = append(rows, r)
		}
	}
	scalar := func(site uint32) trace.Addr { return 0x5000 + 64*trace.Addr(site) }
	add(mainEntry, scalar)
	add(forkBlock, scalar)
	add(outlinedEntry, scalar)
	add(testedCall, scalar, 34, 1)
	add(testedHead, scalar)
	for i := range iterations {
		add(testedBody, scalar)
		add(calleeEntry, scalar)
		for j := range length {
			add(calleeLoop, func(site uint32) trace.Addr { return trace.Addr(0x100000*site) + trace.Addr(8*(i*length+j)) })
		}
		add(calleeExit, scalar)
		add(testedLatch, scalar)
		add(testedHead, scalar)
	}
	add(testedEnd, scalar)
	add(outlinedExit, scalar)
	add(joinBlock, scalar)
	return &m.program, batchOf(rows, 1)
}

// BenchmarkMimic measures the time per synthesised row, including the time for reading the recorded
// row. With 0 cores, the benchmark measures only the time for reading.
func BenchmarkMimic(b *testing.B) {
	program, whole := rowsOf(4000, 60)
	for _, schedule := range []Schedule{{Static, 0}, {Static, 1}, {Dynamic, 1}} {
		for _, cores := range []int{0, 1, 2, 16, 64} {
			if cores == 0 && schedule != (Schedule{}) {
				continue
			}
			b.Run(fmt.Sprintf("%v/%d", schedule, cores), func(b *testing.B) {
				batch := trace.NewBatch(0)
				rows := 0
				for b.Loop() {
					var r trace.Reader = sourceOf(program, whole, 0)
					if cores > 0 {
						m, err := Mimic(r, Options{Cores: cores, Schedule: &schedule}, nil)
						if err != nil {
							b.Fatal(err)
						}
						r = m
					} else {
						r.(trace.Selector).Select(needed)
					}
					for {
						if err := r.Next(batch); err == io.EOF {
							break
						} else if err != nil {
							b.Fatal(err)
						}
						rows += batch.Len()
					}
				}
				b.ReportMetric(float64(b.Elapsed())/float64(rows), "ns/row")
			})
		}
	}
}
