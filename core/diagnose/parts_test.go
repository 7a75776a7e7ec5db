package diagnose

import (
	"testing"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// TestReplayInParts checks that a replay of parts reads all allocations, but reads other rows only
// in the middle of each period.
func TestReplayInParts(t *testing.T) {
	const allocations, each = 100, 10_000
	n := loops.Nest{Items: []loops.Item{loops.Loop(allocations,
		loops.Leaf(loops.Reference{Kind: trace.Alloc, Arg: 64}, 0x1000, 64),
		loops.Loop(each, loops.Leaf(loops.Reference{Site: 1, Kind: trace.Load, Bytes: 8}, 0, 8*each, 8)),
	)}}
	tree, err := n.Build()
	if err != nil {
		t.Fatal(err)
	}
	got := 0
	s := schedule{tree: tree, parts: parts{period: tree.Rows() / 4, rows: tree.Rows() / 20}, goOn: func() bool { return true }, threads: 1}
	s.alloc = func(trace.Addr, uint64) { got++ }
	var read []row
	for more := true; more; {
		var rows []row
		rows, more = s.read(nil, 1<<14)
		read = append(read, rows...)
	}
	if want := int(tree.Rows() / 5); len(read) < want*9/10 || len(read) > want*11/10 {
		t.Errorf("%d rows were read, want about %d", len(read), want)
	}
	if got != allocations {
		t.Errorf("%d allocations were read, want %d", got, allocations)
	}
	quarters := [4]int{}
	for i := range read {
		quarters[read[i].addr/8*4/(allocations*each)]++
	}
	for i, number := range quarters {
		if number < len(read)/5 {
			t.Errorf("%d of %d rows are from quarter %d of the trace, want at least a fifth", number, len(read), i+1)
		}
	}
}

// TestScaleParts checks that the counts of parts are scaled up to the number of references in the
// whole run.
func TestScaleParts(t *testing.T) {
	p := &profile.Profile{Sites: &profile.Sites{Code: make([]profile.Site, 2)}}
	p.Sites.Code[0].Strides[profile.UnitStride] = 1000
	p.Sites.Code[1].Strides[profile.UnitStride] = 500
	c := &counts{sites: []siteCounts{{references: 100, split: 10, siteAccesses: siteAccesses{accesses: 110, walks: 3}}, {}}, misses: [][]float64{{20, 0}}}
	c.scale(p)
	if s := c.sites[0]; s.references != 1000 || s.accesses != 1100 || s.split != 100 || s.walks != 30 || c.misses[0][0] != 200 {
		t.Errorf("scaled counts are %+v and %v misses", s, c.misses)
	}
	if s := c.sites[1]; s.references != 0 || c.misses[0][1] != 0 {
		t.Errorf("a site without replayed references has the counts %+v, want zeros", s)
	}
}
