package diagnose

import (
	"testing"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/loops/change"
	"github.com/stackglass/stackglass/core/trace"
)

// TestReusedMemoryIsSeparated checks that threads 2 and 3, which use the same stack and the same
// block one after the other, receive separate memory. Thread 2 allocates its block twice.
func TestReusedMemoryIsSeparated(t *testing.T) {
	r := &run{cost: &costs{program: &trace.Program{Threads: []trace.Thread{{Number: 1, StackLow: 9000, StackHigh: 9900}, {Number: 2, StackLow: 5000, StackHigh: 5100}, {Number: 3, StackLow: 5000, StackHigh: 5100}}}}}
	u := r.newReuse()
	u.allocated(2, 100, 16)
	u.allocated(2, 100, 16)
	same := func(what string, thread uint32, addr, want trace.Addr) {
		t.Helper()
		if got := u.move(thread, addr); got != want {
			t.Errorf("%s: address %d of thread %d moves to %d, want %d", what, addr, thread, got, want)
		}
	}
	same("its own block", 2, 104, 104)
	same("its own stack", 2, 5099, 5099)
	same("a stack that an earlier thread used", 3, 5099, 5099+apartBy)
	same("the stack of another thread", 3, 9001, 9001)
	u.allocated(3, 100, 16)
	same("a block that another thread had allocated", 3, 115, 115+2*apartBy)
	same("the byte after the block", 3, 116, 116)
	u.allocated(1, 96, 64)
	same("a larger block in the same place", 1, 115, 115)
}

// TestReferenceBetweenLoops checks that a reference between two loops can be moved before both
// loops.
func TestReferenceBetweenLoops(t *testing.T) {
	ref := func(site uint32) loops.Reference { return loops.Reference{Site: site, Kind: trace.Load, Bytes: 8} }
	n := &loops.Nest{Items: []loops.Item{loops.Loop(3,
		loops.Loop(5, loops.Leaf(ref(1), 800, 0, 8)), loops.Leaf(ref(2), 16, 0), loops.Loop(5, loops.Leaf(ref(3), 800, 0, 8)),
		loops.Leaf(ref(4), 4000, 8), loops.Loop(5, loops.Leaf(ref(5), 800, 0, 8)))}}
	list := besides(n)
	if len(list) != 1 {
		t.Fatalf("%d pairs of loops, want 1, because the address of the reference between the second and the third loop changes", len(list))
	}
	body := list[0].nest.Items[0].Body
	if body[0].Ref.Site != 2 || !body[1].IsLoop() || !body[2].IsLoop() || len(n.Items[0].Body) != 5 || n.Items[0].Body[0].Body == nil {
		t.Errorf("the body is %v, want the reference of site 2 before both loops", body)
	}
	if err := (change.Fuse{First: list[0].path}).Apply(list[0].nest); err != nil {
		t.Error(err)
	}
}
