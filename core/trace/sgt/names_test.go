package sgt

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/lackey"
	"github.com/stackglass/stackglass/core/trace/tracetest"
	"pgregory.net/rapid"
)

// TestFamiliesEqualMap checks that two groups belong to the same family only if all of their fields
// are equal.
func TestFamiliesEqualMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, want, few := newFamilies(), map[siteGroup]uint32{}, rapid.Uint64Range(1, 9).Draw(t, "few")
		of := func(i uint64) siteGroup {
			return siteGroup{kind: trace.Kind(i % few), flags: trace.SiteFlags(i / 2 % few), bytes: uint32(i / 3 % few), pc: i / 5 % few << 60, history: i / 7 << 40}
		}
		for i := range rapid.Uint64Range(1, 5000).Draw(t, "groups") {
			g := of(i * i)
			if got := f.get(&g); got.group != g || got.count == 0 != (want[g] == 0) || got.count > 0 && got.blocks[0] != want[g] {
				t.Fatalf("the family of group %+v is %+v, want the family of block %d", g, got, want[g])
			}
			want[g] = uint32(i) + 1
			f.get(&g).blocks[0], f.get(&g).count = uint32(i)+1, 1
		}
		if len(f.all) != len(want) {
			t.Fatalf("%d families, want %d", len(f.all), len(want))
		}
	})
}

// TestNamerMatchesImporter checks that a Namer assigns each row to the same site as an Importer
// does.
func TestNamerMatchesImporter(t *testing.T) {
	r := lackey.NewReader("t", bytes.NewReader(tracetest.Small("data.lackey")))
	var out bytes.Buffer
	m, n, b := NewImporter(&out, nil), NewNamer(), trace.NewBatch(100)
	var got []uint32
	sites := make([]uint32, 100)
	for r.Next(b) == nil {
		if err := m.Write(b, r.Header()); err != nil {
			t.Fatal(err)
		}
		n.Name(b, r.Header(), sites)
		got = append(got, sites[:b.Len()]...)
	}
	if err := m.Close(End{}); err != nil {
		t.Fatal(err)
	}
	c := NewReader("t", &out, Options{})
	whole, err := trace.ReadAll(c)
	if err != nil || !slices.Equal(got, whole.Site) {
		t.Errorf("%d sites, error %v, want one site for each of %d rows", len(got), err, whole.Len())
	}
	if a, b := n.Program(), c.Header().Program; !slices.Equal(a.Sites, b.Sites) || len(a.Blocks) != len(b.Blocks) {
		t.Errorf("%d sites in %d blocks, want %d sites in %d blocks", len(a.Sites), len(a.Blocks), len(b.Sites), len(b.Blocks))
	}
}
