package loops

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
	"pgregory.net/rapid"
)

// checkAlike checks that two trees are equal. The numbering of references and shapes may differ.
func checkAlike(t tracetest.Failer, got, want *Tree) {
	t.Helper()
	if got.Rows() != want.Rows() || got.Size() != want.Size() || got.has != want.has {
		t.Fatalf("tree of %d rows, size %+v, columns %v, want %d, %+v, %v", got.Rows(), got.Size(), got.has, want.Rows(), want.Size(), want.has)
	}
	nodes := slices.Collect(want.Nodes())
	i := 0
	for n := range got.Nodes() {
		alikeNodes(t, n, nodes[i])
		i++
	}
	checkSameRows(t, naive(got), naive(want))
}

func alikeNodes(t tracetest.Failer, got, want Node) {
	t.Helper()
	if !slices.Equal(got.Params(), want.Params()) || got.IsLoop() != want.IsLoop() || got.Len() != want.Len() {
		t.Fatalf("node with %d items and parameters %v, want %d items and parameters %v", got.Len(), got.Params(), want.Len(), want.Params())
	}
	r, addr, wild := got.Leaf()
	if other, otherAddr, otherWild := want.Leaf(); r != other || addr != otherAddr || wild != otherWild {
		t.Fatalf("leaf %+v at %#x, want %+v at %#x", r, addr, other, otherAddr)
	}
	for i := range got.Len() {
		a, steps := got.Item(i)
		b, otherSteps := want.Item(i)
		if !slices.Equal(steps, otherSteps) {
			t.Fatalf("item %d has steps %v, want %v", i, steps, otherSteps)
		}
		alikeNodes(t, a, b)
	}
}

// checkRoundTrip checks that Decode restores a tree from its encoding. If the encoding is the plain
// form, checkRoundTrip compares only the rows.
func checkRoundTrip(t tracetest.Failer, tree *Tree) {
	t.Helper()
	code := tree.Append(nil)
	got, err := Decode(code)
	if err != nil {
		t.Fatalf("%v", err)
	}
	if !tree.isFlat() && !bytes.Equal(code, tree.appendFolded(nil)) {
		checkSameRows(t, naive(got), naive(tree))
	} else {
		checkAlike(t, got, tree)
	}
	if again := got.Append(nil); !bytes.Equal(again, code) {
		t.Fatalf("encoding the decoded tree yields %d bytes, want the original %d bytes", len(again), len(code))
	}
}

func TestEncodingRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all, has := drawRows(t)
		window := rapid.SampledFrom([]int{1, 3, 17, 0}).Draw(t, "window")
		tree := fold(t, window, batch(all, has), func() int { return 1000 })
		checkRoundTrip(t, tree)
		if code, found := bytes.CutPrefix(tree.Append([]byte("before")), []byte("before")); !found || !bytes.Equal(code, tree.Append(nil)) {
			t.Fatalf("the encoding depends on the bytes before it")
		}
	})
}

func TestEncodedKernelsAreSmall(t *testing.T) {
	for _, k := range kernels {
		for _, blocks := range []bool{true, false} {
			c := code{blocks: blocks}
			k.run(&c, 40)
			tree := fold(t, 0, batch(c.rows, columns{site: true}), func() int { return 1000 })
			got := tree.Append(nil)
			t.Logf("%s, block entries %v: %d rows in %d bytes", k.name, blocks, len(c.rows), len(got))
			if len(got) > 500 {
				t.Errorf("%s, block entries %v: %d bytes, want at most 500", k.name, blocks, len(got))
			}
		}
	}
}

// triangle returns a loop with the given trip count, which contains an inner loop with a leaf. The
// inner loop has the trip count "inner" in the first iteration. In each further iteration, this
// trip count increases by "increment".
func triangle(trips, inner, increment uint64) *Tree {
	t := &Tree{shapes: shapes{first: map[uint64]uint32{}}, refs: make([]Reference, 1), streams: make([]stream, 1), rows: math.MaxUint64}
	leaf := t.shapes.leaf(0, false)
	in := t.shapes.loop([]uint32{leaf}, []uint64{8})
	t.nodes = []uint32{t.shapes.loop([]uint32{in}, []uint64{increment, 64})}
	t.params = []uint64{trips, inner, 0}
	return t
}

func TestCountsOfHugeTrees(t *testing.T) {
	for _, c := range []struct {
		name               string
		trips, inner, more uint64
		rows               uint64
		about              float64
		refused            bool
	}{
		{"few", 3, 5, 2, 21, 21, false},
		{"2^40 times", 1 << 40, 3, 0, 3 << 40, 3 << 40, false},
		{"a triangle of 2^30", 1 << 30, 1, 1, 1<<59 + 1<<29, 1<<59 + 1<<29, false},
		{"a triangle down", 1 << 30, 1 << 30, ^uint64(0), 1<<59 + 1<<29, 1<<59 + 1<<29, false},
		{"2^80", 1 << 40, 1 << 40, 0, math.MaxUint64, 1 << 80, false},
		{"about 2^81", 1 << 41, 1, 1, math.MaxUint64, 1 << 81, false},
		{"2^63", 1 << 32, 1 << 31, 0, 1 << 63, 1 << 63, false},
		{"2^64", 1 << 32, 1 << 32, 0, math.MaxUint64, 1 << 64, false},
		{"never", 0, 3, 0, 0, 0, false},
		{"no iterations of the inner loop at the end", 4, 3, ^uint64(0), 6, 6, false},
		{"trip counts below 0", 5, 3, ^uint64(0), 6, 6, false},
		{"a negative trip count", 1 << 63, 1, 0, 0, 0, false},
		{"trip counts above 2^63 at the end", 1 << 40, 1 << 62, 1 << 30, 0, 0, true},
		{"trip counts that wrap around", 1 << 40, 5, 1 << 24, 0, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree, err := Decode(triangle(c.trips, c.inner, c.more).Append(nil))
			if _, ok := errors.AsType[*NestError](err); ok != c.refused {
				t.Fatalf("Build: error %v, want a NestError: %v", err, c.refused)
			}
			if err != nil {
				return
			}
			about := tree.Approximately()
			if tree.Rows() != c.rows || math.Abs(about-c.about) > 1e-6*c.about {
				t.Errorf("Rows() = %d, Approximately() = %g, want %d and %g", tree.Rows(), about, c.rows, c.about)
			}
			err = tree.Expand().Next(trace.NewBatch(10))
			if _, refused := errors.AsType[*UnfoldError](err); refused != (c.rows > MostUnfolded) {
				t.Errorf("expanding the tree returned the error %v", err)
			}
		})
	}
}

// TestCountsMatchRows checks the row counts of deep nests whose trip counts change at any level.
func TestCountsMatchRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree := &Tree{shapes: shapes{first: map[uint64]uint32{}}, refs: make([]Reference, 1), streams: make([]stream, 1)}
		id := tree.shapes.leaf(0, false)
		p := []uint64{0}
		for range rapid.IntRange(1, 4).Draw(t, "loops") {
			var body []uint32
			var start, steps []uint64
			for range rapid.IntRange(1, 2).Draw(t, "items") {
				body = append(body, id)
				start = append(start, p...)
			}
			s := tree.shapes.all[id]
			for range body {
				here := make([]uint64, len(p))
				for _, trip := range s.trips {
					here[trip] = uint64(int64(rapid.IntRange(-1, 2).Draw(t, "more")))
				}
				steps = append(steps, here...)
			}
			id = tree.shapes.loop(body, steps)
			p = append([]uint64{uint64(rapid.IntRange(1, 4).Draw(t, "trips"))}, start...)
		}
		tree.nodes, tree.params = []uint32{id}, p
		var rows uint64
		var unfold func(id uint32, p []uint64)
		unfold = func(id uint32, p []uint64) {
			s := &tree.shapes.all[id]
			if !s.loop {
				rows++
				return
			}
			for i := range uint64(max(0, int64(p[0]))) {
				for _, it := range s.items {
					now := make([]uint64, it.params)
					for j := range now {
						now[j] = p[1+int(it.at)+j] + i*s.steps[int(it.at)+j]
					}
					unfold(it.shape, now)
				}
			}
		}
		unfold(id, p)
		got, err := Decode(tree.Append(nil))
		if err != nil {
			t.Fatal(err)
		}
		if got.Rows() != rows || got.Approximately() != float64(rows) {
			t.Fatalf("Rows() = %d, Approximately() = %g, want %d", got.Rows(), got.Approximately(), rows)
		}
	})
}

func TestExpansionOfManyEmptyLoopsFails(t *testing.T) {
	tree, err := Decode(triangle(1<<60, 0, 0).Append(nil))
	if err != nil {
		t.Fatal(err)
	}
	err = tree.Expand().Next(trace.NewBatch(10))
	if _, refused := errors.AsType[*UnfoldError](err); !refused || !strings.Contains(err.Error(), "about 1.15e+18 loop iterations, most of them without records") {
		t.Errorf("error %v", err)
	}
}

func TestDecodeErrors(t *testing.T) {
	head := "\x01\x04\x01\x00\x08\x02" // version 1, with sites, and with one reference, which is a load of 8 bytes at site 1
	plain := "\x02" + head[1:]
	for _, c := range []struct{ name, code, want string }{
		{"nothing", "", "at byte 0: number of remaining bytes is 0, want a complete LEB128"},
		{"another version", "\x03", "at byte 0: version is 3, want 1 or 2; use a newer stackglass"},
		{"columns", "\x01\x10", "column mask is 16, want less than 16"},
		{"many references", "\x01\x04\xff\xff\xff\x7f\x00", "number of references is 268435455, want at most 1, the number of remaining bytes"},
		{"a kind", "\x01\x04\x01\x0c\x08\x02\x00", "kind is 6, want the kind of a reference"},
		{"a site", "\x01\x04\x01\x00\x08\x01\x00\x00", "site is 18446744073709551615, want less than 2^32"},
		{"many nodes", head + "\xff\xff\x03", "number of nodes is 65535, want at most 9, the number of bytes"},
		{"predicted at first", head + "\x01\x01", "shape number is 0, want at least 1"},
		{"other at first", head + "\x01\x00", "shape number is 0, want at least 1"},
		{"a number", head + "\x01\x08", "shape number is 1, want less than 1"},
		{"more new leaves than references", head + "\x02\x04\x00\x00\x04\x00\x00", "reference number is 1, want less than 1"},
		{"a leaf twice", head + "\x02\x04\x00\x00\x04\x02\x00", "reference number is 0, want a reference that does not yet have a leaf"},
		{"wild without addresses", head + "\x01\x04\x01\x00", "want a reference with a list of addresses"},
		{"a reference without a leaf", head + "\x00", "number of references with leaves is 0, want 1, the number of references"},
		{"bytes after", head + "\x01\x04\x00\x00\x00", "number of bytes after the end is 1, want 0"},
		{"a shape after the last node", head + "\x02\x04\x00\x00\x05\x00", "shape after the last node is 1, want 0"},
		{"many items", head + "\x01\x04\x7f\x00", "number of additional items of a loop is 123, want fewer than 1, the number of remaining bytes"},
		{"plain form with an address list", "\x02\x04\x01\x01\x08\x02\x02\x01\x00", "number of address lists is 1, want 0"},
		{"many rows", plain + "\x05\x00\x00\x00", "number of records is 5, want at most 3, the number of remaining bytes"},
		{"plain form with one reference too many", plain + "\x02\x01\x00\x00", "reference number is 1, want less than 1"},
		{"a long run", plain + "\x02\x00\x02\x00\x00", "length of a run minus 1 is 2, want less than 2"},
		{"no rows", plain + "\x00", "number of references with leaves is 0, want 1, the number of references"},
		{"plain and more", plain + "\x01\x00\x00\x00\x00", "number of bytes after the end is 1, want 0"},
		{"fewer addresses", "\x01\x04\x01\x01\x08\x02\x02\x01\x00", "number of addresses of an irregular reference is 2, want 1, the number of addresses that follow"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Decode([]byte(c.code))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want … %s …", err, c.want)
			}
		})
	}
}

func TestNestingDepthIsLimited(t *testing.T) {
	code := []byte("\x01\x04\x01\x00\x08\x02\x01\x04")
	for range 100 {
		code = append(code, defineLoop, 0)
	}
	if _, err := Decode(append(code, make([]byte, 20000)...)); err == nil || !strings.Contains(err.Error(), "nesting depth of loops is 65, want at most 64") {
		t.Errorf("error %v", err)
	}
	code = []byte("\x01\x04\x01\x00\x08\x02\x01\x04\x04\x00\x00\x00")
	for range 30 {
		code = append(code, 5)
	}
	_, _ = Decode(code)
}

func FuzzDecode(f *testing.F) {
	for _, k := range kernels {
		for _, blocks := range []bool{true, false} {
			c := code{blocks: blocks}
			k.run(&c, 12)
			f.Add(fold(f, 0, batch(c.rows, columns{site: true}), func() int { return 1000 }).Append(nil))
		}
	}
	var c code
	gather(&c, 300)
	f.Add(fold(f, 0, batch(c.rows, columns{site: true, pc: true, arg: true, thread: true}), func() int { return 1000 }).Append(nil))
	f.Add(triangle(1<<30, 1<<30, ^uint64(0)).Append(nil))
	f.Fuzz(func(t *testing.T, code []byte) {
		tree, err := Decode(code)
		if err != nil {
			return
		}
		if _, err := Decode(tree.Append(nil)); err != nil {
			t.Fatal(err)
		}
		if tree.bodies > 1e6 {
			return // the expansion would terminate, but would take too long
		}
		if tree.Rows() < 10_000 {
			checkRoundTrip(t, tree)
		}
		e, b := tree.Expand(), trace.NewBatch(100)
		for rows := 0; rows < 10_000 && e.Next(b) == nil; rows += b.Len() {
		}
	})
}
