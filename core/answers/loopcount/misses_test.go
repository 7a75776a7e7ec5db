package loopcount

import (
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
)

// count8 counts the misses of a loop in a cache of 8 lines of 64 bytes.
func count8(t *testing.T, ways string, loop loops.Item) *Misses {
	t.Helper()
	tree, err := (&loops.Nest{Items: []loops.Item{loop}}).Build()
	if err != nil {
		t.Fatal(err)
	}
	l, err := answers.NewLoops(&profile.Profile{Loops: tree.Append(nil)}, answers.AllNests)
	if err != nil {
		t.Fatal(err)
	}
	cache, err := hierarchy.ParseCache("L1=512B," + ways)
	if err != nil {
		t.Fatal(err)
	}
	return Count(l, []hierarchy.Cache{cache}, nil)
}

func load(site uint32, at trace.Addr, by ...int64) loops.Item {
	return loops.Leaf(loops.Reference{Site: site, Kind: trace.Load, Bytes: 8}, at, by...)
}

// TestNegativeConflictMisses checks that a number of conflict misses is negative if sets avoid misses,
// and that it can be compared with another number. The loop repeatedly loads 9 lines: a fully
// associative cache of 8 lines always misses. If each set has one line, only lines 0 and 8 conflict.
func TestNegativeConflictMisses(t *testing.T) {
	const trips = 100
	conflicts := func(ways string) report.Value {
		m := count8(t, ways, loops.Loop(trips, loops.Loop(9, load(1, 1<<20, 0, 64))))
		table := m.Table(nil)
		last := table.Rows[len(table.Rows)-1]
		return last[table.Index("conflict")]
	}
	direct, full := conflicts("1"), conflicts("full")
	if got := direct.Human(); got != "-693" || !direct.IsNumber() { // lines 1 to 7 miss only in the first trip
		t.Errorf("conflict misses = %q, want the number -693", got)
	}
	if got := report.Difference(direct, full).Human(); got != "+693" {
		t.Errorf("difference = %q, want +693", got)
	}
}

// TestTablesOfEvictionsCombineRows checks that tables of evictions have at most the requested number of
// rows, and that their sums do not depend on this number. With 100 references, the last users of some
// lines are not distinguished.
func TestTablesOfEvictionsCombineRows(t *testing.T) {
	body := func(refs int) (list []loops.Item) {
		for i := range refs {
			list = append(list, load(uint32(i+1), trace.Addr(i+1)<<20, 0))
		}
		return list
	}
	m := count8(t, "full", loops.Loop(1000, body(100)...))
	for name, table := range map[string]func(int) report.Table{"arrays": m.Evictions, "lines": m.LineEvictions} {
		sum := func(t report.Table) (sum float64) {
			for _, row := range t.Rows {
				n, _ := row[t.Index("lines")].Number()
				sum += n
			}
			return sum
		}
		all := table(10_000)
		for _, most := range []int{1, 2, 20} {
			part := table(most)
			if len(part.Rows) > most || sum(part) != sum(all) || sum(all) != 100*1000-8 {
				t.Errorf("%s: table(%d) has %d rows with the sum %v; want at most %d rows with the sum %d", name, most, len(part.Rows), sum(part), most, 100*1000-8)
			}
		}
	}
	if got := m.UnknownUsers(); !strings.HasPrefix(got, "L1: for 35.995 %") || !strings.Contains(got, answers.OtherUsers) {
		t.Errorf("warning %q, want a warning about references 65 to 100", got)
	}
	if got := count8(t, "full", loops.Loop(1000, body(96)...)).UnknownUsers(); got != "" {
		t.Errorf("warning %q for 96 references, which are all distinguished", got)
	}
}
