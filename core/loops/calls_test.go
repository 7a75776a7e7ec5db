package loops

import (
	"fmt"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
	"pgregory.net/rapid"
)

// TestContextsMatchCallStacks checks that two rows have the same context if and only if their call
// stacks are equal after recursive calls have been removed.
func TestContextsMatchCallStacks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		chance := func(n uint64) uint32 {
			seed = mix(seed)
			return uint32(seed % n)
		}
		type entry struct{ function, path string }
		stacks := map[uint32][]entry{}
		var all []row
		var want []string
		add := func(kind trace.Kind, site, thread uint32, path string) {
			all = append(all, row{Reference: Reference{Kind: kind, Site: site, Thread: thread}})
			want = append(want, path)
		}
		add(trace.Call, 99, 9, "") // rows before the first call are ignored
		functions := 1 + uint64(chance(6))
		for range rapid.IntRange(1, 500).Draw(t, "steps") {
			thread := chance(3)
			s := stacks[thread]
			switch chance(3) {
			case 0:
				function, place := 100+chance(functions), chance(4)
				now := entry{function: fmt.Sprint(function)}
				now.path = fmt.Sprintf("%d>%d", place, function)
				if len(s) > 0 {
					now.path = s[len(s)-1].path + " " + now.path
				}
				for _, e := range s {
					if e.function == now.function {
						now.path = e.path
						break
					}
				}
				if len(s) == maxFrames {
					now = s[len(s)-1]
				}
				stacks[thread] = append(s, now)
				add(trace.BlockEntry, place, thread, "")
				add(trace.BlockEntry, function, thread, "")
				add(trace.Call, function, thread, "")
			case 1:
				add(trace.Return, 7, thread, "")
				if len(s) > 0 {
					stacks[thread] = s[:len(s)-1]
				}
			default:
				path := ""
				if len(s) > 0 {
					path = s[len(s)-1].path
				}
				add(trace.Load, chance(3), thread, path)
			}
		}
		b := batch(all, columns{site: true, thread: true})
		f := NewFolder(0)
		paths, contexts := map[uint32]string{0: ""}, map[string]uint32{"": 0}
		var view trace.Batch
		for lo := 0; lo < len(all); {
			hi := min(len(all), lo+1+int(chance(60)))
			c := f.rowsOf(b.View(&view, lo, hi))
			f.consume(&c, 0, hi-lo)
			for i := range c.Kind {
				context, path := c.contextOf(i), want[lo+i]
				if known, ok := contexts[path]; ok && known != context {
					t.Fatalf("row %d with call stack %q: context %d, want %d", lo+i, path, context, known)
				}
				if known, ok := paths[context]; ok && known != path {
					t.Fatalf("row %d with call stack %q: context %d, which belongs to the call stack %q", lo+i, path, context, known)
				}
				paths[context], contexts[path] = path, context
			}
			lo = hi
		}
	})
}

// TestCallsFromManyCallSites folds a nest that calls a function at many call sites, each with a
// different array. The whole nest must fold into one loop, even if the calls pass through a further
// function.
func TestCallsFromManyCallSites(t *testing.T) {
	const places = 40
	for _, deep := range []bool{false, true} {
		for _, n := range []uint64{20, 50} {
			c := code{blocks: true}
			call := func(place, function uint32, body func()) {
				c.block(place)
				c.block(function)
				c.event(trace.Call, function)
				body()
				c.event(trace.Return, function)
			}
			call(1, 2, func() {
				for i := range n {
					for j := range n {
						for k := range uint64(places) {
							add := func() {
								at := mix(k)>>20 + 8*(i*n+j)
								c.load(5, at)
								c.store(6, at)
							}
							call(uint32(10+k), 3, func() {
								if deep {
									call(8, 4, add)
								} else {
									add()
								}
							})
						}
						c.block(9)
					}
				}
			})
			tree := fold(t, 0, batch(c.rows, columns{site: true}), func() int { return 1000 })
			checkSameRows(t, unfold(t, tree, 512), c.rows)
			if got := tree.Size(); got.Wild > 0 || got.Loops != 1 || got.Nodes > 600 {
				t.Errorf("calls through a further function: %v, n = %d: size %+v, want one loop, no irregular addresses, and at most 600 nodes", deep, n, got)
			}
		}
	}
}

// TestRecursionHasFewContexts checks that recursion has few contexts, for any depth and any order
// of calls.
func TestRecursionHasFewContexts(t *testing.T) {
	var c code
	c.blocks = true
	seed := uint64(1)
	var walk func(depth int, place uint32)
	walk = func(depth int, place uint32) {
		c.block(place)
		c.block(2)
		c.event(trace.Call, 2)
		c.load(1, arrayA+seed%1000)
		if depth < 90 {
			seed = mix(seed)
			walk(depth+1, uint32(3+seed%7))
			if seed>>32%20 == 0 {
				walk(90, uint32(10+seed%3))
			}
		}
		c.event(trace.Return, 2)
	}
	c.event(trace.Call, 50)
	for range 20 {
		walk(0, 1)
	}
	f := NewFolder(0)
	if err := f.Consume(batchOf(c.rows)); err != nil {
		t.Fatal(err)
	}
	if n := len(f.calls.numbers); n != 2 {
		t.Errorf("%d contexts, want 2: one for the first caller, and one for all levels of recursion", n)
	}
	checkSameRows(t, unfold(t, f.Finish(), 100), c.rows)
}
