package ir

import (
	"reflect"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sgt"
)

// checker is implemented by *testing.T and *rapid.T.
type checker interface {
	Helper()
	Error(...any)
	Errorf(string, ...any)
	Fatal(...any)
	Fatalf(string, ...any)
}

// checkProgram checks that the tables are consistent, and that the bytes embedded in the module
// decode to the same tables.
func checkProgram(t checker, p *trace.Program) {
	t.Helper()
	site, block := uint32(0), uint32(0)
	for n := range p.Functions {
		f := &p.Functions[n]
		if f.First != block || f.Blocks == 0 {
			t.Fatalf("function %s has blocks %d to %d, want blocks from %d on", f.Name, f.First, f.First+f.Blocks, block)
		}
		for i := f.First; i < f.First+f.Blocks; i++ {
			checkBlock(t, p, f, i, site)
			site += p.Blocks[i].Sites
		}
		block += f.Blocks
	}
	if int(block) != len(p.Blocks) || int(site) != len(p.Sites) {
		t.Fatalf("functions have %d blocks and %d sites, want all %d and %d", block, site, len(p.Blocks), len(p.Sites))
	}
	var back trace.Program
	if err := sgt.ParseModule(sgt.AppendModule(nil, p), &back); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(back.Blocks, p.Blocks) || !reflect.DeepEqual(back.Sites, p.Sites) || !reflect.DeepEqual(back.Functions, p.Functions) {
		t.Error("the bytes do not decode to the same tables")
	}
}

func checkBlock(t checker, p *trace.Program, f *trace.Function, i, firstSite uint32) {
	t.Helper()
	b := &p.Blocks[i]
	if b.FirstSite != firstSite {
		t.Fatalf("%s: block %d begins at site %d, want %d", f.Name, i, b.FirstSite, firstSite)
	}
	values := 0
	for s := b.FirstSite; s < b.FirstSite+b.Sites; s++ {
		values += p.Sites[s].Values()
		if p.Sites[s].Block != i {
			t.Fatalf("%s: site %d is in block %d, want %d", f.Name, s, p.Sites[s].Block, i)
		}
	}
	if values > sgt.MaxValues {
		t.Fatalf("%s: block %d has %d values, which is more than the limit", f.Name, i, values)
	}
	for _, next := range b.Successors {
		if next < f.First || next >= f.First+f.Blocks {
			t.Fatalf("%s: block %d has the successor %d in a different function", f.Name, i, next)
		}
	}
	if b.Loop > 0 && p.Blocks[b.Loop-1].Flags&trace.HeaderBlock == 0 || (b.Loop > 0) != (b.Depth > 0) {
		t.Fatalf("%s: block %d has loop %d and depth %d, which contradict each other", f.Name, i, b.Loop, b.Depth)
	}
	ops, instrs := 0, len(b.Instrs)
	for _, op := range b.Ops {
		ops += int(op.Count)
	}
	if instrs != 0 && ops != instrs {
		t.Fatalf("%s: block %d has %d operations, and %d instructions", f.Name, i, ops, instrs)
	}
	for k, in := range b.Instrs {
		for _, use := range in.Uses {
			// A value from the same iteration must precede its use.
			if int(use) >= k || int(-2-use) >= instrs {
				t.Fatalf("%s: block %d: instruction %d uses instruction %d, but the block has %d instructions", f.Name, i, k, use, instrs)
			}
		}
		if in.Site > b.Sites {
			t.Fatalf("%s: block %d: instruction %d has site %d, but the block has %d sites", f.Name, i, k, in.Site, b.Sites)
		}
	}
}
