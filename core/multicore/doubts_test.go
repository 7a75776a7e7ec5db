package multicore

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
)

// TestCaveats checks that the report mentions missing information and code that cannot be
// divided, and that all other code is divided.
func TestCaveats(t *testing.T) {
	program, whole := rowsOf(12, 5)
	at := func(k trace.Kind) int { return slices.Index(whole.Kind, k) }
	begin, end, loop := at(trace.ParallelBegin), at(trace.ParallelEnd), at(trace.LoopBegin)
	if begin < 0 || end < begin || loop < 0 {
		t.Fatal("the trace has no region with a loop")
	}
	// editedCopy copies some rows, applies a change to the copy, and returns it.
	editedCopy := func(rows []int, change func(b *trace.Batch)) *trace.Batch {
		b := trace.NewBatch(len(rows))
		b.NeedThread()
		b.NeedSite()
		b.NeedArg()
		for _, i := range rows {
			add(b, row{kind: whole.Kind[i], addr: whole.Addr[i], bytes: whole.Bytes[i], site: whole.Site[i], arg: whole.Arg[i]}, 1)
		}
		if change != nil {
			change(b)
		}
		return b
	}
	// requestSchedule returns a function that sets the schedule number of the loop.
	requestSchedule := func(number uint64) func(b *trace.Batch) {
		return func(b *trace.Batch) { b.Addr[slices.Index(b.Kind, trace.LoopBegin)] = number }
	}
	var all []int
	for i := range whole.Kind {
		all = append(all, i)
	}
	for name, c := range map[string]struct {
		rows    []int
		change  func(b *trace.Batch)
		instead *Schedule
		cores   int
		want    string
		regions uint64
		divided bool // whether cores other than core 0 execute code
	}{
		"as it is":                   {rows: all, cores: 4, regions: 1, divided: true},
		"no region":                  {rows: all[:begin], cores: 4, want: noRegion},
		"a nested region":            {rows: slices.Insert(slices.Clone(all), loop+8, begin, end), cores: 4, regions: 1, divided: true, want: "1 parallel region was nested: one thread executes this region"},
		"a region without an end":    {rows: all[:end-20], cores: 4, regions: 1, divided: true, want: "The trace ends within a parallel region."},
		"an end without a region":    {rows: slices.Insert(slices.Clone(all), len(all), end), cores: 4, regions: 1, divided: true, want: "1 parallel region has an end, but no beginning."},
		"more cores than iterations": {rows: all, cores: 64, regions: 1, divided: true, want: "1 worksharing loop had fewer iterations than there are cores."},
		"an unknown schedule": {rows: all, cores: 4, regions: 1, divided: true, want: "1 worksharing loop has an unknown schedule: the loop was divided statically.",
			change: requestSchedule(777)},
		"a replacement for an unknown schedule": {rows: all, cores: 4, regions: 1, divided: true, instead: &Schedule{Dynamic, 1}, change: requestSchedule(777)},
		"a schedule from OMP_SCHEDULE": {rows: all, cores: 4, regions: 1, divided: true, change: requestSchedule(37),
			want: "1 worksharing loop takes its schedule from OMP_SCHEDULE, which the trace does not contain: the loop was divided statically;"},
		"a schedule that the runtime chooses": {rows: all, cores: 4, regions: 1, divided: true, change: requestSchedule(38),
			want: "1 worksharing loop leaves its schedule to the runtime, and the trace does not contain the schedule: the loop was divided statically;"},
	} {
		m, err := Mimic(sourceOf(program, editedCopy(c.rows, c.change), 50), Options{Cores: c.cores, Schedule: c.instead}, nil)
		if err != nil {
			t.Fatal(err)
		}
		b := trace.NewBatch(0)
		references := 0
		for err == nil {
			if err = m.Next(b); err == nil {
				references += b.Len()
			}
		}
		r := m.Report()
		if err != io.EOF || r.Regions != c.regions || references == 0 {
			t.Errorf("%s: %v, %d regions, %d rows", name, err, r.Regions, references)
		}
		if (r.References[1] > 0) != c.divided {
			t.Errorf("%s: the second core has %d references", name, r.References[1])
		}
		found := 0
		for _, doubt := range r.Doubts {
			if c.want != "" && strings.HasPrefix(doubt, c.want) {
				found++
			}
		}
		if (found == 1) != (c.want != "") {
			t.Errorf("%s: warnings %q, want %q", name, r.Doubts, c.want)
		}
	}
}
