package loops

import (
	"errors"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
	"pgregory.net/rapid"
)

// TestOutputTreesExpandToTheTrace checks that, for batches of any size, a folder outputs trees that
// expand to the original trace.
func TestOutputTreesExpandToTheTrace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all, has := drawRows(t)
		whole := batch(all, has)
		every, bytes := rapid.Uint64Range(1, 300).Draw(t, "rows"), rapid.Uint64Range(1, 5000).Draw(t, "bytes")
		window := rapid.SampledFrom([]int{1, 5, 0}).Draw(t, "window")
		var first string
		for _, rows := range []int{len(all), rapid.IntRange(1, 100).Draw(t, "rows a batch")} {
			f := NewFolder(window)
			var trees []*Tree
			var code string
			f.Give(bytes, func(given *Tree) error {
				form := given.Append(nil)
				code += string(form)
				tree, err := Decode(form)
				trees = append(trees, tree)
				return err
			})
			f.every = every
			var view trace.Batch
			for lo := 0; lo < len(all); lo += rows {
				if err := f.Consume(whole.View(&view, lo, min(lo+rows, len(all)))); err != nil {
					t.Fatal(err)
				}
			}
			last := f.Finish()
			code += string(last.Append(nil))
			if tree := Join(append(trees, last)...); tree.Rows() != uint64(len(all)) {
				t.Fatalf("%d rows, want %d", tree.Rows(), len(all))
			} else {
				checkSameRows(t, unfold(t, tree, 100), all)
			}
			if first == "" {
				first = code
			} else if code != first {
				t.Fatal("the trees depend on the sizes of the batches")
			}
		}
	})
}

func TestErrorOfOutputFunctionIsReturned(t *testing.T) {
	var c code
	chase(&c, 100)
	f, full := NewFolder(0), errors.New("full")
	f.Give(1, func(*Tree) error { return full })
	f.every = 10
	for range 2 {
		if err := f.Consume(batchOf(c.rows)); err != full {
			t.Errorf("Consume: error %v, want the error of the function", err)
		}
	}
}

// TestMemoryIsBounded uses a folder that outputs trees. The folder's memory must not grow with the
// number of rows, and the folder must eventually stop allocating memory.
func TestMemoryIsBounded(t *testing.T) {
	for _, k := range irregular {
		c := code{blocks: true}
		k.run(&c, 40)
		whole := batch(c.rows, columns{site: true})
		f := NewFolder(0)
		given, largest := 0, uint64(0)
		f.Give(1<<18, func(t *Tree) error {
			given++
			largest = max(largest, f.Bytes())
			return nil
		})
		f.every = 1 << 12
		take := func() {
			if err := f.Consume(whole); err != nil {
				t.Fatal(err)
			}
		}
		for range 20 {
			take()
		}
		before := given
		if allocations := testing.AllocsPerRun(10, take); allocations > 1 {
			t.Errorf("%s: %v allocations for %d rows, want at most 1", k.name, allocations, len(c.rows))
		}
		if before < 2 || given == before || largest > 1<<19 {
			t.Errorf("%s: %d trees were output, the largest with %d bytes; want more trees, with at most 512 KiB each", k.name, given, largest)
		}
	}
}
