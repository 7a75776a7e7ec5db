package answers

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stackglass/stackglass/core/attribution"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
)

// drawHistogram draws a histogram, and also returns its counts as a plain map.
func drawHistogram(t *rapid.T) (*profile.Histogram, map[uint64]uint64, uint64) {
	h, naive := new(profile.Histogram), map[uint64]uint64{}
	for range rapid.IntRange(0, 20).Draw(t, "distances") {
		d := rapid.Uint64Range(0, 1<<rapid.IntRange(0, 20).Draw(t, "bits")).Draw(t, "distance")
		n := rapid.Uint64Range(1, 1<<20).Draw(t, "count")
		h.AddN(d, n)
		naive[d] += n
	}
	return h, naive, rapid.Uint64Range(0, 100).Draw(t, "cold")
}

func number(v report.Value) uint64 {
	x, _ := v.Number()
	return uint64(x)
}

// TestTablesEqualReference recomputes each row from a plain map.
func TestTablesEqualReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, naive, cold := drawHistogram(t)
		misses := func(lines uint64) uint64 {
			n := cold
			for d, count := range naive {
				if d >= lines {
					n += count
				}
			}
			return n
		}
		c := profile.NewCurve(h, cold)
		for _, row := range CurveAt(c, 64, Breakpoints(c)).Rows {
			if got, want := number(row[2]), misses(number(row[1])); got != want || number(row[0]) != 64*number(row[1]) {
				t.Fatalf("curve: %d misses at %d lines, want %d", got, number(row[1]), want)
			}
		}
		powers := PowersOfTwo(c, 64)
		for _, row := range powers.Rows {
			if got, want := number(row[2]), misses(number(row[1])); got != want || number(row[0]) != 64*number(row[1]) {
				t.Fatalf("powers of two: %d misses at %d lines, want %d", got, number(row[1]), want)
			}
		}
		if last := powers.Rows[len(powers.Rows)-1]; number(last[2]) != cold {
			t.Fatalf("the largest power of two has %d misses, want only the %d cold misses", number(last[2]), cold)
		}
		var all, binned uint64
		for _, row := range Histogram(h, cold).Rows {
			all += number(row[1])
		}
		for _, row := range BinnedHistogram(h, cold).Rows {
			binned += number(row[1])
		}
		if all != c.Accesses || binned != all {
			t.Fatalf("sum of the rows: %d; sum of the bins: %d; want %d", all, binned, c.Accesses)
		}
	})
}

func TestBinNames(t *testing.T) {
	var names []string
	for k := range 5 {
		names = append(names, BinName(k))
	}
	if got := strings.Join(names, " "); got != "0 1 2–3 4–7 8–15" {
		t.Error(got)
	}
}

func TestSummary(t *testing.T) {
	p := &profile.Profile{}
	p.Totals.References[trace.Load], p.Totals.Bytes[trace.Load] = 3, 24
	keys := func() (list []string) {
		for _, table := range Summary(p) {
			list = append(list, table.Key)
		}
		return list
	}
	if got := fmt.Sprint(keys()); got != "[kinds]" {
		t.Errorf("without distances: %s", got)
	}
	p.Locality = []profile.Locality{{LineBytes: 64, Kinds: []profile.KindLocality{{Kind: trace.Load, Cold: 3}}}}
	p.Counters = &profile.Counters{}
	if got := fmt.Sprint(keys()); got != "[locality kinds counters]" {
		t.Errorf("with everything: %s", got)
	}
	if row := Locality(p).Rows[0]; number(row[1]) != 3 || number(row[3]) != 192 || !report.Equal(row[4], report.None()) {
		t.Errorf("three cold misses: %v", row)
	}
}

// TestOneSetMatchesCurve checks that a cache with one set has as many misses as the curve predicts,
// and that a profile without set tables yields no rows.
func TestOneSetMatchesCurve(t *testing.T) {
	l := &profile.Locality{LineBytes: 64, Kinds: []profile.KindLocality{{Kind: trace.Load, Cold: 5}}, Sets: new(profile.SetTable)}
	for d := range uint64(profile.MaxWays) {
		l.Kinds[0].Distances.AddN(d, d+1)
		for a := range l.Sets.Depths {
			l.Sets.Depths[a][d] = d + 1
		}
	}
	l.Kinds[0].Distances.AddN(1000, 7)
	c := profile.NewCurve(l.Histogram(trace.AllKinds))
	table := Sets(l)
	if len(table.Rows) != profile.SetCounts*profile.MaxWays+1 {
		t.Fatalf("%d rows", len(table.Rows))
	}
	if last := table.Rows[profile.MaxWays]; number(last[0]) != 1 || number(last[1]) != 1001 {
		t.Fatalf("the last row for one set is %v, want 1001 ways", last)
	}
	for _, row := range table.Rows {
		if number(row[0]) > 1 {
			continue
		}
		if number(row[4]) != c.Misses(number(row[1])) || number(row[3]) != c.Accesses {
			t.Fatalf("%v, want %d misses of %d", row, c.Misses(number(row[1])), c.Accesses)
		}
	}
	grid := SetsGrid(l)
	for _, row := range grid.Rows {
		hits, _ := l.Sets.Hits(number(row[0]), 8)
		if !report.Equal(row[grid.Index("miss_ratio_8")], report.Share(l.Accesses()-hits, l.Accesses())) {
			t.Errorf("row %v: want miss_ratio_8 to equal the ratio from the set table", row)
		}
	}
	if len(grid.Rows) != profile.SetCounts {
		t.Errorf("%d rows, want one for each number of sets", len(grid.Rows))
	}
	if l.Sets = nil; len(Sets(l).Rows) != 0 || len(SetsGrid(l).Rows) != 0 {
		t.Error("Sets or SetsGrid returned rows for a profile without a set table")
	}
}

func TestWindows(t *testing.T) {
	l := &profile.Locality{LineBytes: 64}
	l.Windows = profile.Windows{References: 1024, First: 2, Rows: make([]profile.WindowRow, 2)}
	l.Windows.Rows[0][0], l.Windows.Rows[0][profile.ColdBin] = 7, 3
	l.Windows.Rows[1][2] = 4 // accesses at distances 2 and 3 hit in a cache of 4 lines
	table := Windows(l)
	want := "first_reference,accesses,misses_1,misses_2,misses_4\n2048,10,3,3,3\n3072,4,4,4,0\n"
	if got := string(table.CSV()); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestMissingSites checks that a share that rounds to 0 is not mentioned.
func TestMissingSites(t *testing.T) {
	for known, want := range map[uint64]int{10: 1, 1000: 1, 10_000: 0} {
		p := &profile.Profile{Sites: &profile.Sites{Code: []profile.Site{{Function: "f"}, {PC: 1}}}}
		p.Sites.Code[0].Strides[0], p.Sites.Code[1].Strides[0] = known, 1
		if list := MissingSites(p); len(list) != want {
			t.Errorf("1 of %d references has no source location: %q", known+1, list)
		}
	}
}

// TestUnknownSizeOfObject checks that a data structure of unknown size has no size, instead of 0 bytes.
func TestUnknownSizeOfObject(t *testing.T) {
	p := &profile.Profile{Sites: &profile.Sites{LineBytes: 64, Data: []profile.DataObject{{Kind: profile.StackObject}, {Kind: profile.StackObject, Bytes: 64}}}}
	s := Sites{Profile: p, Ranker: new(attribution.Ranker), By: attribution.Object}
	_, size, ok := s.Column("bytes")
	if !ok {
		t.Fatal("the table has no column for the size")
	}
	for object, want := range []report.Value{report.None(), report.Bytes(64)} {
		if got := size(&attribution.Row{Object: object}); !report.Equal(got, want) {
			t.Errorf("the size of data structure %d is %s, want %s", object, got.Human(), want.Human())
		}
	}
}
