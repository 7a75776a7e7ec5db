package ir

import (
	"testing"

	"github.com/stackglass/stackglass/core/trace"
)

// TestPointerChasing checks that loads from the elements of a list are marked as chasing, and that
// loads of the next element's address are also marked as links. Loads of data to which an element
// points are not marked, because they can overlap. Loads from the next element, as in a search that
// stops before this element, are marked.
func TestPointerChasing(t *testing.T) {
	r, err := Instrument([]byte(`
define i64 @list(ptr %head, i64 %key) {
entry:
  br label %loop
loop:
  %p = phi ptr [ %head, %entry ], [ %next, %more ]
  %k = load i64, ptr %p
  %found = icmp eq i64 %k, %key
  br i1 %found, label %done, label %more
more:
  %link = getelementptr i8, ptr %p, i64 8
  %next = load ptr, ptr %link
  %end = icmp eq ptr %next, null
  br i1 %end, label %done, label %loop
done:
  ret i64 0
}
define i64 @sometimes(ptr %head, ptr %data, i64 %n) {
entry:
  br label %loop
loop:
  %p = phi ptr [ %head, %entry ], [ %then, %more ]
  %i = phi i64 [ 0, %entry ], [ %j, %more ]
  %a = load i64, ptr %p
  %at = getelementptr i64, ptr %data, i64 %a
  %v = load i64, ptr %at
  %skip = icmp eq i64 %v, 0
  br i1 %skip, label %more, label %step
step:
  %next = load ptr, ptr %p
  br label %more
more:
  %then = phi ptr [ %p, %loop ], [ %next, %step ]
  %j = add i64 %i, 1
  %go = icmp ult i64 %j, %n
  br i1 %go, label %loop, label %done
done:
  ret i64 0
}
define i64 @search(ptr %a, i64 %n, i64 %key) {
entry:
  br label %loop
loop:
  %lo = phi i64 [ 0, %entry ], [ %low, %loop ]
  %hi = phi i64 [ %n, %entry ], [ %high, %loop ]
  %sum = add i64 %lo, %hi
  %mid = lshr i64 %sum, 1
  %at = getelementptr i64, ptr %a, i64 %mid
  %v = load i64, ptr %at
  %less = icmp ult i64 %v, %key
  %low = select i1 %less, i64 %mid, i64 %lo
  %high = select i1 %less, i64 %hi, i64 %mid
  %go = icmp ult i64 %low, %high
  br i1 %go, label %loop, label %done
done:
  ret i64 %lo
}
define i64 @gather(ptr %a, ptr %index, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %j, %loop ]
  %where = getelementptr i64, ptr %index, i64 %i
  %k = load i64, ptr %where
  %at = getelementptr i64, ptr %a, i64 %k
  %v = load i64, ptr %at
  %j = add i64 %i, 1
  %go = icmp ult i64 %j, %n
  br i1 %go, label %loop, label %done
done:
  ret i64 0
}
define ptr @before(ptr %head, i64 %level, i64 %key) {
entry:
  br label %loop
loop:
  %c = phi ptr [ %head, %entry ], [ %n, %more ]
  %link = getelementptr ptr, ptr %c, i64 %level
  %n = load ptr, ptr %link
  %end = icmp eq ptr %n, null
  br i1 %end, label %done, label %more
more:
  %at = getelementptr i8, ptr %n, i64 64
  %k = load i64, ptr %at
  %less = icmp ult i64 %k, %key
  br i1 %less, label %loop, label %done
done:
  ret ptr %c
}
define i32 @offsets(ptr %arena, i32 %head) {
entry:
  %off = alloca i32
  %t = alloca ptr
  store i32 %head, ptr %off
  br label %loop
loop:
  %o = load i32, ptr %off
  %end = icmp eq i32 %o, 0
  br i1 %end, label %done, label %body
body:
  %o2 = load i32, ptr %off
  %wide = zext i32 %o2 to i64
  %at = getelementptr i8, ptr %arena, i64 %wide
  store ptr %at, ptr %t
  %t2 = load ptr, ptr %t
  %next = load i32, ptr %t2
  store i32 %next, ptr %off
  br label %loop
done:
  ret i32 0
}
declare ptr @_ZSt18_Rb_tree_incrementPKSt18_Rb_tree_node_base(ptr)
define i32 @tree(ptr %first, ptr %end) {
entry:
  br label %loop
loop:
  %p = phi ptr [ %first, %entry ], [ %next, %loop ]
  %at = getelementptr i8, ptr %p, i64 32
  %v = load i32, ptr %at
  %next = call ptr @_ZSt18_Rb_tree_incrementPKSt18_Rb_tree_node_base(ptr %p)
  %last = icmp eq ptr %next, %end
  br i1 %last, label %done, label %loop
done:
  ret i32 %v
}
`), Options{})
	if err != nil {
		t.Fatal(err)
	}
	const chases, links = trace.ChasingSite, trace.ChasingSite | trace.LinkSite
	want := map[string][]trace.SiteFlags{
		"list": {chases, links}, "sometimes": {chases, 0, links}, "search": {0}, "gather": {0, 0}, "before": {links, chases}, "offsets": {links}, "tree": {chases},
	}
	got := map[string][]trace.SiteFlags{}
	for _, s := range r.Program.Sites {
		if s.Kind == trace.Load && s.Flags&trace.StackSite == 0 {
			name := r.Program.Functions[r.Program.Blocks[s.Block].Function].Name
			got[name] = append(got[name], s.Flags&links)
		}
	}
	for name, list := range want {
		if len(got[name]) != len(list) {
			t.Fatalf("function %s: %v, want %v", name, got[name], list)
		}
		for i := range list {
			if got[name][i] != list[i] {
				t.Errorf("function %s: %v, want %v", name, got[name], list)
			}
		}
	}
}
