package loops

import (
	"reflect"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
	"pgregory.net/rapid"
)

// TestWholeIterationsMatchSingleRecords compares a folder that compares whole iterations with a folder that
// receives its rows one by one. Both folders must have the same tree and the same state.
func TestWholeIterationsMatchSingleRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := drawIterations(t)
		has := columns{thread: rapid.Bool().Draw(t, "threads"), pc: rapid.Bool().Draw(t, "PCs"), site: true, arg: rapid.Bool().Draw(t, "args")}
		whole := batch(all, has)
		fast, slow := NewFolder(0), NewFolder(0)
		if err := fast.Consume(whole); err != nil {
			t.Fatal(err)
		}
		var view trace.Batch
		for i := range all {
			if err := slow.Consume(whole.View(&view, i, i+1)); err != nil {
				t.Fatal(err)
			}
		}
		if fast.unpredicted != slow.unpredicted {
			t.Fatalf("%d rows were not predicted, want %d", fast.unpredicted, slow.unpredicted)
		}
		if !reflect.DeepEqual(fast.habits, slow.habits) || !reflect.DeepEqual(fast.others, slow.others) {
			t.Fatalf("the prediction state differs from the state after row-by-row compression")
		}
		if got, want := fast.Tree(), slow.Tree(); !reflect.DeepEqual(got, want) {
			t.Fatalf("the tree differs from the tree after row-by-row compression")
		}
		if !reflect.DeepEqual(fast.Finish(), slow.Finish()) {
			t.Fatalf("the final tree differs from the final tree after row-by-row compression")
		}
	})
}

// drawIterations draws the rows of several random runs of a nest. Some rows differ from run to run,
// and some rows are missing.
func drawIterations(t *rapid.T) (all []row) {
	seed := rapid.Uint64().Draw(t, "seed")
	chance := func(n uint64) uint64 {
		seed = mix(seed)
		return seed % n
	}
	leaves := rapid.IntRange(1, 12).Draw(t, "leaves")
	inner := rapid.Uint64Range(0, 9).Draw(t, "inner iterations")
	grows := rapid.Bool().Draw(t, "a triangle")
	calls := rapid.Bool().Draw(t, "calls")
	wild := chance(uint64(2 * leaves))
	rare := 1 + 20*uint64(1)<<rapid.IntRange(0, 10).Draw(t, "rows between two irregular rows")
	kinds := []trace.Kind{trace.Load, trace.Store, trace.BlockEntry, trace.BareBlock}
	leaf := func(site uint64, addr uint64) {
		r := row{Reference: Reference{Site: uint32(site), Bytes: 8, Kind: kinds[site%4], PC: 4 * site, Thread: uint32(site % 3), Arg: site / 5}, Addr: addr}
		switch chance(rare) {
		case 0:
			r.Addr += 8
		case 1:
			r.Site += 100
		case 2:
			r.Bytes++
		case 3:
			r.Kind = trace.Modify
		case 4:
			r.PC, r.Thread, r.Arg = r.PC+uint64(chance(2)), r.Thread+uint32(chance(2)), r.Arg+1
		case 5:
			return
		}
		if site == wild {
			r.Addr = chance(1 << 20)
		}
		all = append(all, r)
	}
	for run := range uint64(rapid.IntRange(1, 3).Draw(t, "runs")) {
		for i := range uint64(rapid.IntRange(1, 300).Draw(t, "iterations")) {
			if calls && chance(2*rare) != 0 {
				all = append(all, row{Reference: Reference{Site: 50, Kind: trace.Call}})
			}
			for site := range uint64(leaves) {
				leaf(site, 1<<20*site+run<<12+8*i*(site%3))
				if site != uint64(leaves)/2 {
					continue
				}
				trips := inner
				if grows {
					trips = i
				}
				for j := range min(trips, 40) {
					leaf(20, 1<<30+8*(i+j))
					for k := range j % 3 {
						leaf(21, 1<<31+64*i+8*j+k)
					}
				}
			}
			if calls && chance(2*rare) != 0 {
				all = append(all, row{Reference: Reference{Site: 51, Kind: trace.Return}})
			}
		}
	}
	return all
}
