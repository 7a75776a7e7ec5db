package simulate

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/trace"
)

// addDifference adds the difference after - before to every number in a Counts or Traffic.
func addDifference(sum, after, before reflect.Value) {
	for i := range sum.NumField() {
		if f := sum.Field(i); f.Kind() == reflect.Struct {
			addDifference(f, after.Field(i), before.Field(i))
		} else {
			f.SetUint(f.Uint() + after.Field(i).Uint() - before.Field(i).Uint())
		}
	}
}

func addDifferences[T any](sum, after, before *T) {
	addDifference(reflect.ValueOf(sum).Elem(), reflect.ValueOf(after).Elem(), reflect.ValueOf(before).Elem())
}

// drawRegions adds random threads, and regions with the tags 0 to 2, to the references of a batch.
// The regions of a thread can be nested. Some regions have no end, and some ends have no beginning.
func drawRegions(t *rapid.T, from *trace.Batch, threads int) *trace.Batch {
	b := trace.NewBatch(0)
	b.NeedPC()
	b.NeedThread()
	for i := range from.Len() {
		thread := uint32(rapid.IntRange(0, threads-1).Draw(t, "thread"))
		switch rapid.IntRange(0, 9).Draw(t, "event") {
		case 0:
			b.Append(trace.RegionBegin, rapid.Uint64Range(0, 2).Draw(t, "tag"), 0, thread, 0)
		case 1:
			b.Append(trace.RegionEnd, 0, 0, thread, 0)
		}
		b.Append(from.Kind[i], from.Addr[i], from.Bytes[i], thread, from.PC[i])
	}
	return b
}

// The counts in regions equal the sum, over all times at which a region is open, of the differences
// between the counts at the end and at the beginning in a simulation of the whole trace.
func TestRegionsEqualDifferences(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, threads := drawHierarchy(t), rapid.IntRange(1, 3).Draw(t, "threads")
		b := drawRegions(t, drawBatch(t), threads)
		if drawFeatures(t, &h, threads == 1); threads == 1 {
			b.Thread = nil
		}
		private := rapid.IntRange(0, len(h.Levels)).Draw(t, "private levels")
		for i := private; i < len(h.Levels); i++ {
			if h.Levels[i].SharedBy = hierarchy.AllCores; i < len(h.Instructions) {
				h.Instructions[i].SharedBy = hierarchy.AllCores
			}
		}
		o := Options{Seed: 3, Causes: rapid.Bool().Draw(t, "causes"), Bound: true}
		whole := begin(t, h, o)
		o.Region = func(tag trace.Addr) bool { return tag == 1 }
		counted := begin(t, h, o)

		var want Result
		want.Levels, want.Instructions = make([]Level, len(h.Levels)), make([]Level, len(h.Instructions))
		open, isOpen := map[uint32][]trace.Addr{}, false
		var before Result
		end := func() {
			after := whole.Result()
			addDifferences(&want.Memory, &after.Memory, &before.Memory)
			want.References += after.References - before.References
			want.Split += after.Split - before.Split
			wants, befores := slices.Concat(want.Levels, want.Instructions), slices.Concat(before.Levels, before.Instructions)
			for i, l := range slices.Concat(after.Levels, after.Instructions) {
				addDifferences(&wants[i].Run, &l.Run, &befores[i].Run)
				wants[i].BestMisses += l.BestMisses - befores[i].BestMisses
			}
			copy(want.Levels, wants)
			copy(want.Instructions, wants[len(want.Levels):])
		}
		for i, kind := range b.Kind {
			thread := trace.At(b.Thread, i)
			switch of := open[thread]; {
			case kind == trace.RegionBegin:
				open[thread] = append(of, b.Addr[i])
			case kind == trace.RegionEnd && len(of) > 0:
				open[thread] = of[:len(of)-1]
			}
			now := false
			for _, of := range open {
				now = now || slices.Contains(of, 1)
			}
			if now && !isOpen {
				before = whole.Result()
			} else if isOpen && !now {
				end()
			}
			isOpen = now
			row := b.View(new(trace.Batch), i, i+1)
			for _, s := range []*Simulator{whole, counted} {
				if err := s.Consume(row); err != nil {
					t.Fatal(err)
				}
			}
		}
		if isOpen {
			end()
		}
		got := counted.Finish()
		if got.Memory != want.Memory || got.References != want.References || got.Split != want.Split {
			t.Fatalf("%+v, %d references, %d split references, want %+v, %d and %d", got.Memory, got.References, got.Split, want.Memory, want.References, want.Split)
		}
		wants := slices.Concat(want.Levels, want.Instructions)
		for i, l := range slices.Concat(got.Levels, got.Instructions) {
			if l.Run != wants[i].Run || l.BestMisses != wants[i].BestMisses {
				t.Fatalf("%s: %d misses with OPT, %+v, want %d, %+v", l.Cache, l.BestMisses, l.Run, wants[i].BestMisses, wants[i].Run)
			}
		}
		all := whole.Finish()
		if got.Flush != all.Flush {
			t.Fatalf("the traffic of the flush is %+v, want %+v", got.Flush, all.Flush)
		}
	})
}

// Regions cannot be combined with a warm-up or a limit.
func TestRegionOptions(t *testing.T) {
	h := hierarchy.Hierarchy{Levels: []hierarchy.Cache{{Name: "L1", SizeBytes: 64, LineBytes: 8}}}
	for _, o := range []Options{{Warmup: 1}, {WarmupShare: 0.5}, {Limit: 1}} {
		o.Region = func(trace.Addr) bool { return true }
		if _, err := New(h, o); err == nil {
			t.Errorf("%+v: New returned no error", o)
		}
	}
}
