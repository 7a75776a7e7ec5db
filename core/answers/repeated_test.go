package answers

import (
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/report"
)

type heapRow struct {
	name   string
	line   uint64
	misses uint64
}

// heapTable returns a table of heap data with the given rows.
func heapTable(rows ...heapRow) report.Table {
	t := report.Table{Key: "sites", Columns: []report.Column{{Key: "name"}, {Key: "kind"}, {Key: "function"}, {Key: "file"}, {Key: "line"}, {Key: "L1_misses"}}}
	for _, r := range rows {
		t.Add(report.TextOf(r.name), report.TextOf("heap"), report.TextOf("main"), report.TextOf("h.c"), report.Count(r.line), report.Count(r.misses))
	}
	return t
}

// TestAllocationsInOneFunction checks that each of two allocations in one function is compared with
// the same allocation in the other run, regardless of which allocation has more misses.
func TestAllocationsInOneFunction(t *testing.T) {
	const blocks = "[blocks]"
	for _, c := range []struct {
		a, b  report.Table
		want  map[string]string // misses in A and B, by name
		doubt string
	}{
		{ // the same code with different input
			a:    heapTable(heapRow{blocks, 4, 400}, heapRow{blocks, 5, 10}),
			b:    heapTable(heapRow{blocks, 5, 300}, heapRow{blocks, 4, 100}),
			want: map[string]string{"[blocks] h.c:4": "400,100", "[blocks] h.c:5": "10,300"},
		},
		{ // the program did not reach one of the allocations
			a:    heapTable(heapRow{blocks, 5, 10}),
			b:    heapTable(heapRow{blocks, 4, 300}, heapRow{blocks, 5, 30}),
			want: map[string]string{"[blocks] h.c:4": "0,300", "[blocks] h.c:5": "10,30"},
		},
		{ // a line was inserted between the allocations
			a:     heapTable(heapRow{blocks, 4, 400}, heapRow{blocks, 5, 10}),
			b:     heapTable(heapRow{blocks, 6, 300}, heapRow{blocks, 4, 100}),
			want:  map[string]string{"[blocks] h.c:4": "400,100", "[blocks] h.c:5, in B h.c:6": "10,300"},
			doubt: "in source order",
		},
		{ // only run B has several allocations
			a:    heapTable(heapRow{"x", 1, 1}),
			b:    heapTable(heapRow{"x", 9, 2}, heapRow{blocks, 6, 300}, heapRow{blocks, 4, 100}),
			want: map[string]string{"x": "1,2", "[blocks] h.c:4": "0,100", "[blocks] h.c:6": "0,300"},
		},
		{ // the allocations have the same name
			a:     heapTable(heapRow{blocks, 4, 400}, heapRow{blocks, 4, 10}),
			b:     heapTable(heapRow{blocks, 4, 300}, heapRow{blocks, 4, 100}),
			want:  map[string]string{"[blocks] h.c:4": "10,100"},
			doubt: "in the order of their misses",
		},
	} {
		got := Join([]report.Table{c.a}, []report.Table{c.b})[0]
		cell := got.Cell("L1_misses")
		have := map[string]string{}
		for _, r := range got.Rows {
			have[r.Name[0].Plain()] = r.A[cell].Plain() + "," + r.B[cell].Plain()
		}
		for name, want := range c.want {
			if have[name] != want {
				t.Errorf("%s: %s, want %s; all rows: %v", name, have[name], want, have)
			}
		}
		if len(have) != len(c.want) || (c.doubt == "") != (got.Doubt == "") || !strings.Contains(got.Doubt, c.doubt) {
			t.Errorf("%v with the warning %q, want %v and %q", have, got.Doubt, c.want, c.doubt)
		}
	}
	before := heapTable(heapRow{blocks, 4, 400}, heapRow{blocks, 5, 10})
	Join([]report.Table{before}, []report.Table{before})
	if before.Rows[0][0].Plain() != blocks {
		t.Error("joining two tables renamed their rows")
	}
}
