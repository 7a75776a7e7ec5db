package profile_test

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// testCounters returns counters that satisfy every invariant.
func testCounters() *profile.Counters {
	c := &profile.Counters{
		Blocks: true, Ops: true, Touched: true, UniqueBytes: 40,
		Functions: []profile.FunctionCounters{
			{Number: 2, Name: "main", File: "a.c", Line: 7, Invocations: 1, UniqueBytes: 40},
			{Number: profile.NoFunction, Loose: profile.Counts{profile.Loads: 3, profile.BytesLoaded: 12}},
		},
		Code: []profile.BlockCounters{
			{Number: 0, Function: 2, Label: "entry", File: "a.c", FirstLine: 8, LastLine: 9, Executions: 1, Counts: profile.Counts{profile.Flops: 4}},
			{Number: 5, Function: profile.NoFunction, Label: "x", Executions: 1 << 60, Counts: profile.Counts{profile.Stores: 1 << 60}},
		},
		Tallies: []profile.Tally{
			{Name: "br", Count: 4}, {Name: "fadd", Count: 4}, {Kind: profile.Callees, Name: "*", Count: 2}, {Kind: profile.Callees, Name: "main", Count: 1},
			{Kind: profile.IntegerVectors, Lanes: 4, Size: 32, Count: 5}, {Kind: profile.FloatVectors, Lanes: 4, Size: 32, Count: 6},
			{Kind: profile.LoadTypes, Name: "i32", Size: 4, Count: 3, Bytes: 12}, {Kind: profile.StoreTypes, Count: 1 << 60},
		},
	}
	for i := range c.Usage {
		c.Usage[i] = uint64(2 * (i + 1))
	}
	return c
}

func withCounters() *profile.Profile {
	p := testProfile(true)
	p.Counters = testCounters()
	p.Segment.Touched = []byte{1, 2, 3}
	return p
}

func TestCountersSurviveEncoding(t *testing.T) {
	p := withCounters()
	data := p.Encode()
	got, err := profile.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got.Counters, p.Counters) || !bytes.Equal(got.Segment.Touched, p.Segment.Touched) {
		t.Errorf("the decoded counters are %+v, want %+v", got.Counters, p.Counters)
	}
	if !bytes.Equal(got.Encode(), data) || got.Digest() == testProfile(true).Digest() {
		t.Error("decoding and encoding changes the bytes, or the digest does not cover the counters")
	}
	for i := range data {
		damaged := bytes.Clone(data)
		damaged[i] ^= 0x20
		if _, err := profile.Decode(damaged); err == nil {
			t.Fatalf("Decode returns no error if byte %d is changed", i)
		}
	}
}

func TestCountersCheck(t *testing.T) {
	for name, breakIt := range map[string]func(c *profile.Counters){
		"functions out of order": func(c *profile.Counters) { c.Functions[1].Number = 1 },
		"a block twice":          func(c *profile.Counters) { c.Code[1].Number = 0 },
		"unknown function":       func(c *profile.Counters) { c.Code[0].Function = 3 },
		"callees":                func(c *profile.Counters) { c.Tallies[2].Name = "x" },
		"opcodes":                func(c *profile.Counters) { c.Tallies[1].Name = "br" },
		"vectors":                func(c *profile.Counters) { c.Tallies[5].Kind = profile.IntegerVectors },
		"types":                  func(c *profile.Counters) { slices.Reverse(c.Tallies) },
		"no blocks":              func(c *profile.Counters) { c.Blocks = false },
		"no instructions":        func(c *profile.Counters) { c.Ops = false },
		"overflow":               func(c *profile.Counters) { c.Code[0].Counts[profile.Loads] = 1<<64 - 1 },
		"usage":                  func(c *profile.Counters) { c.Usage[3] = 1 },
		"usage of all accesses":  func(c *profile.Counters) { c.UniqueBytes = 41 },
		"a function's bytes":     func(c *profile.Counters) { c.Functions[0].UniqueBytes = 41 },
	} {
		p := withCounters()
		breakIt(p.Counters)
		checkInvalid(t, name, p)
	}
}

func TestCountersSections(t *testing.T) {
	const input, totals, state = "\x03din\x00\x07\x00\x00\x00", "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", "\x00\x00"
	// a section with nineteen counters, empty lists, and no accessed bytes
	none := "\x00\x13\x00\x00\x00\x00" + strings.Repeat("\x00", 21)
	const local, windows = "\x40\x00", "\x40\x80\x08\x00\x00"
	head := []string{"INPT", input, "TOTL", totals, "STAT", state}
	if _, err := profile.Decode(sections(append(head[:6:6], "CNTR", none)...)); err != nil {
		t.Errorf("counters without stack distances: %v", err)
	}
	for name, parts := range map[string][]string{
		"twice":                    append(head[:6:6], "CNTR", none, "CNTR", none),
		"before the state":         append(head[:4:4], "CNTR", none, "STAT", state),
		"before distances":         append(head[:6:6], "CNTR", none, "LOCA", local, "WIND", windows),
		"wrong number of counters": append(head[:6:6], "CNTR", "\x00\x12"+none[2:]),
		"unknown string":           append(head[:6:6], "CNTR", "\x01\x13\x00\x01"+strings.Repeat("\x00", 40)),
		"touched, no segm":         append(head[:6:6], "segt", ""),
		"touched twice":            append(head[:6:6], "segm", "\x00\x00", "segt", "", "segt", ""),
		"too long":                 append(head[:6:6], "CNTR", none+"\x00"),
	} {
		if _, err := profile.Decode(sections(parts...)); err == nil {
			t.Errorf("%s: Decode returns no error", name)
		}
	}
}

func TestAddCounters(t *testing.T) {
	a := testCounters()
	for _, c := range []struct{ x, y *profile.Counters }{{a, nil}, {nil, a}} {
		got, err := profile.AddCounters(c.x, c.y)
		if err != nil || got.Program() != a.Program() || !reflect.DeepEqual(got.Tallies, a.Tallies) {
			t.Errorf("AddCounters with nil = %+v, %v", got, err)
		}
	}
	sum, err := profile.AddCounters(a, a)
	if err != nil {
		t.Fatal(err)
	}
	once, twice := a.Program(), sum.Program()
	for i := range once {
		if twice[i] != 2*once[i] {
			t.Errorf("counter %d: the sum of %d and %[2]d is %[3]d", i, once[i], twice[i])
		}
	}
	if len(sum.Functions) != 2 || sum.Tallies[2].Count != 4 || sum.Tallies[1].Count != 8 || sum.Tallies[5].Count != 12 || sum.Tallies[6].Bytes != 24 {
		t.Errorf("the sum of two equal counters is %+v", sum)
	}
	if a.Functions[0].UniqueBytes != 40 || a.Tallies[0].Count != 4 {
		t.Error("AddCounters changed its arguments")
	}
	b := testCounters()
	b.Code[0].Label = "other"
	if _, err := profile.AddCounters(a, b); err == nil {
		t.Error("AddCounters returns no error if a number stands for different code")
	}
	if got := a.ByFunction(); got[0][profile.Flops] != 4 || got[1][profile.Stores] != 1<<60 || got[1][profile.Loads] != 3 {
		t.Errorf("ByFunction() = %v", got)
	}
}

func TestMemmoveAndMemsetCounts(t *testing.T) {
	c := profile.Counts{profile.RangesRead: 3, profile.RangesWritten: 5, profile.RangeBytesRead: 100, profile.RangeBytesWritten: 1000}
	calls, moved := c.Moves()
	sets, set := c.Sets()
	if calls != 3 || moved != 100 || sets != 2 || set != 900 {
		t.Errorf("got %d memory moves of %d bytes and %d memory sets of %d bytes, want 3 moves of 100 bytes and 2 sets of 900 bytes", calls, moved, sets, set)
	}
	c = profile.Counts{profile.RangesRead: 3, profile.RangeBytesRead: 5} // the trace ends between the read range and the written range of a move
	if sets, set := c.Sets(); sets != 0 || set != 0 {
		t.Errorf("got %d memory sets of %d bytes, want none", sets, set)
	}
}

func TestDerivedCounters(t *testing.T) {
	c := profile.Counts{profile.BytesLoaded: 60, profile.BytesStored: 40, profile.Loads: 6, profile.Stores: 4, profile.Flops: 25,
		profile.FlopBits: 1600, profile.IntegerOps: 25, profile.OpBits: 3200, profile.VectorOps: 10, profile.ConditionalBranches: 5}
	want := map[string]float64{
		"bytes_per_flop": 4, "bits_per_flop_bit": 0.5, "bytes_per_operation": 2, "bits_per_op_bit": 0.25, "bytes_loaded_per_stored": 1.5,
		"bits_per_memory_op": 80, "ops_per_branch": 13, "flops_per_branch": 5, "vectorised": 0.2, "unique_bytes_per_flop": 2, "bytes_per_unique_byte": 2,
	}
	list := c.Derive(50)
	for _, d := range list {
		if d.Value != want[d.Key] || d.Text == "" || d.Label == "" {
			t.Errorf("derived number %s = %v, want %v", d.Key, d.Value, want[d.Key])
		}
	}
	if len(list) != len(want) {
		t.Errorf("got %d ratios, want %d", len(list), len(want))
	}
	if none := new(profile.Counts).Derive(0); len(none) != 0 {
		t.Errorf("the ratios of zero counts are %v, want none", none)
	}
}

func TestEveryCounterHasAMeaning(t *testing.T) {
	seen := map[string]bool{}
	for c := range profile.NumCounters {
		m := c.Meaning()
		if m.Key == "" || m.Label == "" || m.Text == "" || seen[m.Key] {
			t.Errorf("counter %d: %+v", c, m)
		}
		seen[m.Key] = true
	}
}

// TestMedianReuse compares the median and the deviation with values that are computed from a sorted
// list of all distances.
func TestMedianReuse(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 2))
		l := profile.Locality{Kinds: []profile.KindLocality{{Kind: trace.Load, Cold: rng.Uint64N(20)}}}
		const infinite = 1 << 60
		var all []uint64
		for range l.Kinds[0].Cold {
			all = append(all, infinite)
		}
		for range rng.IntN(30) {
			d := rng.Uint64N(1 << rng.UintN(12))
			l.Kinds[0].Distances.Add(d)
			all = append(all, d)
		}
		median, deviation, ok := l.MedianReuse()
		if len(all) == 0 {
			if ok {
				t.Errorf("seed %d: MedianReuse without accesses returns a median", seed)
			}
			continue
		}
		slices.Sort(all)
		want := all[(len(all)-1)/2]
		if ok != (want != infinite) {
			t.Fatalf("seed %d: the median is finite: %v, want %v", seed, ok, all)
		}
		if !ok {
			continue
		}
		var off []uint64
		for _, d := range all {
			off = append(off, max(d, want)-min(d, want))
		}
		slices.Sort(off)
		if median != want || deviation != off[(len(off)-1)/2] {
			t.Fatalf("seed %d: median %d, deviation %d, want %d and %d", seed, median, deviation, want, off[(len(off)-1)/2])
		}
	}
}
