package answers_test

import (
	"testing"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// TestUnnamedArraysAreNamedAfterAllocation checks that an array without a name is named after its
// allocation, unless several allocations had the same address at different times.
func TestUnnamedArraysAreNamedAfterAllocation(t *testing.T) {
	block := func(site uint32, at trace.Addr) loops.Item {
		return loops.Leaf(loops.Reference{Kind: trace.Alloc, Site: site, Arg: 800}, at)
	}
	load := func(site uint32, at trace.Addr) loops.Item {
		return loops.Loop(100, loops.Leaf(loops.Reference{Kind: trace.Load, Site: site, Bytes: 8}, at, 8))
	}
	tree, err := (&loops.Nest{Items: []loops.Item{block(0, 4096), block(1, 8192), block(0, 16384), block(1, 16384), load(2, 4096), load(3, 8192), load(4, 16384), load(5, 1<<20)}}).Build()
	if err != nil {
		t.Fatal(err)
	}
	data := []profile.DataObject{{Kind: profile.HeapObject, Name: "a"}, {Kind: profile.HeapObject, Number: 1, Function: "f", File: "f.c", Line: 7}}
	l, err := answers.NewLoops(&profile.Profile{Loops: tree.Append(nil), Sites: &profile.Sites{LineBytes: 64, Data: data}}, answers.AllNests)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"a", "", "", ""} {
		if got := l.Arrays(i)[0].Name; got != want {
			t.Errorf("name of the array of loop %d = %q, want %q", i, got, want)
		}
	}
	vector := &profile.DataObject{File: "vector.tcc", Line: 453, Function: "grow"}
	if text := answers.Allocated(vector, func(string) string { return "std::vector::_M_realloc_insert" }); text != "a std::vector" {
		t.Errorf("Allocated() = %q for a vector", text)
	}
	if by := l.AllocatedAt(8192 + 799); by != &data[1] || answers.Allocated(by, nil) != "the array from f.c:7 in f" {
		t.Errorf("AllocatedAt(8192 + 799) = %+v, want the block that is allocated in line 7", by)
	}
	for _, at := range []trace.Addr{8192 + 800, 16384, 0} {
		if by := l.AllocatedAt(at); by != nil {
			t.Errorf("AllocatedAt(%d) = %+v, want nil", at, by)
		}
	}
}
