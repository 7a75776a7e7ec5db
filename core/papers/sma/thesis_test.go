package sma

import (
	"slices"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/loops/misses"
)

// way exceeds every cache of these tests: addresses of equal remainder begin in the same set.
const way = 1 << 20

// walk is a loop over a number of lines, of several arrays that begin at these lines of a way each,
// a double at a time.
func walk(lines uint64, around int, at ...uint64) loops.Item {
	var body []loops.Item
	for i, first := range at {
		body = append(body, load(uint32(first)+1, base+uint64(i)*way+64*first, steps(around, 8)...))
	}
	return loops.Loop(8*lines, body...)
}

func steps(around int, last int64) []int64 { return append(make([]int64, around), last) }

func analyzed(t *testing.T, c misses.Cache, items ...loops.Item) *Result {
	t.Helper()
	tree, err := (&loops.Nest{Items: items}).Build()
	if err != nil {
		t.Fatal(err)
	}
	r, err := Analyze(tree, c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// classes are the classes of the leaves, at the level of the loop that is out levels around them.
func classes(r *Result, out int) string {
	var list []string
	for _, l := range r.Leaves {
		list = append(list, l.Levels[max(0, len(l.Levels)-1-out)].Class.String())
	}
	return strings.Join(list, " ")
}

func wantClasses(t *testing.T, name string, r *Result, out int, want string) {
	t.Helper()
	if got := classes(r, out); got != want {
		t.Errorf("%s: %s, want %s", name, got, want)
	}
}

func missesOf(t *testing.T, name string, r *Result, want float64) {
	t.Helper()
	if d := r.Total.Misses - want; d > 0.01 || d < -0.01 {
		t.Errorf("%s: %v misses, want %v", name, r.Total.Misses, want)
	}
}

// named are arrays of a loop by the lines at which they begin in their way.
func named(l *Loop, list []int) string {
	var names []string
	for _, i := range list {
		names = append(names, string(rune('a'+(l.Arrays[i].Lo-base)/way)))
	}
	return strings.Join(names, " ")
}

func contexts(t *testing.T, name string, l *Loop, left, right string) {
	t.Helper()
	if got := named(l, l.Left); got != left {
		t.Errorf("%s: left context %s, want %s", name, got, left)
	}
	if got := named(l, l.Right); got != right {
		t.Errorf("%s: right context %s, want %s", name, got, right)
	}
}

// sequence is a loop for each array, over the same number of lines, with array i in way i.
func sequence(lines uint64, arrays string) (items []loops.Item) {
	for _, name := range strings.Fields(arrays) {
		i := uint64(name[0] - 'a')
		items = append(items, loops.Loop(8*lines, load(uint32(i), base+i*way, 8)))
	}
	return items
}

// TestFigure3_3: the left context has the first arrays, the right context the last ones, as many as
// fit.
func TestFigure3_3(t *testing.T) {
	full := misses.Cache{LineBytes: 64, Sets: 1, Ways: 16}
	one := analyzed(t, full, sequence(4, "a b c d")...)
	contexts(t, "one loop", &one.Loops[0], "a b c d", "a b c d")
	two := analyzed(t, full, sequence(4, "a b c d e f")...)
	contexts(t, "a second loop", &two.Loops[0], "a b c d", "c d e f")
}

// TestFigure3_4: of three arrays in a set of two lines, the third evicts the first one, and
// composing the contexts shows that the second one is lost, too.
func TestFigure3_4(t *testing.T) {
	r := analyzed(t, misses.Cache{LineBytes: 64, Sets: 16, Ways: 2}, walk(4, 0, 0, 0, 0))
	wantClasses(t, "three", r, 0, "ALWAYS_MISS ALWAYS_MISS ALWAYS_MISS")
	missesOf(t, "three", r, 96)
	r = analyzed(t, misses.Cache{LineBytes: 64, Sets: 16, Ways: 4}, walk(4, 0, 0, 0, 0))
	wantClasses(t, "four ways", r, 0, "FIRST_MISS FIRST_MISS FIRST_MISS")
	missesOf(t, "four ways", r, 12)
}

// TestFigure3_5: of the arrays of an inner loop, b is in the context of the outer one, and is used
// last there; e is not.
func TestFigure3_5(t *testing.T) {
	full := misses.Cache{LineBytes: 64, Sets: 1, Ways: 16}
	r := analyzed(t, full, sequence(4, "a b c b e")...)
	wantClasses(t, "a b c, then b e", r, 1, "FIRST_MISS FIRST_MISS FIRST_MISS ALWAYS_HIT FIRST_MISS")
	contexts(t, "a b c, then b e", &r.Loops[0], "a b c e", "a c b e")
	missesOf(t, "a b c, then b e", r, 16)
	r = analyzed(t, full, sequence(4, "a b c d e b a")...)
	wantClasses(t, "b stays, a does not", r, 1, "CAP_MISS CAP_MISS CAP_MISS CAP_MISS CAP_MISS ALWAYS_HIT CAP_MISS")
	missesOf(t, "b stays, a does not", r, 24)
}

// TestPureConflicts: §4.3, Figure 4.1.
func TestPureConflicts(t *testing.T) {
	direct := misses.Cache{LineBytes: 64, Sets: 16, Ways: 1}
	r := analyzed(t, direct, walk(4, 0, 0, 0))
	wantClasses(t, "direct", r, 0, "ALWAYS_MISS ALWAYS_MISS")
	missesOf(t, "direct", r, 64)
	r = analyzed(t, misses.Cache{LineBytes: 64, Sets: 8, Ways: 2}, walk(4, 0, 0, 0))
	wantClasses(t, "two ways", r, 0, "FIRST_MISS FIRST_MISS")
	missesOf(t, "two ways", r, 8)
	// Each array exceeds a way, but the lines of each iteration fit; none remains complete.
	r = analyzed(t, misses.Cache{LineBytes: 64, Sets: 4, Ways: 2}, walk(6, 0, 0, 0))
	wantClasses(t, "two arrays of 6 in 8 lines", r, 0, "CAP_MISS CAP_MISS")
	missesOf(t, "two arrays of 6 in 8 lines", r, 12)
	if n := len(r.Loops[1].Right); n > 1 {
		t.Errorf("%d arrays of 6 lines are in a cache of 8", n)
	}
}

// TestPartialConflicts: §4.4, the four cases of Figure 4.2: the end of one overlaps the beginning
// of the other and the reverse, one is inside of the other and the reverse.
func TestPartialConflicts(t *testing.T) {
	direct := misses.Cache{LineBytes: 64, Sets: 64, Ways: 1}
	array := func(way uint64, lines, first uint64) loops.Item {
		return load(uint32(way), base+way<<20+64*first, 0, int64(lines)*64/32)
	}
	for _, c := range []struct {
		name           string
		aLines, aFirst uint64
		xLines, xFirst uint64
		want           string
		again          uint64 // lines of both that conflict
	}{
		{"x begins in a", 16, 0, 16, 8, "CONF_MISS CONF_MISS", 16},
		{"x ends in a", 16, 8, 16, 0, "CONF_MISS CONF_MISS", 16},
		{"x is in a", 16, 0, 4, 8, "CONF_MISS CONF_MISS", 8},
		{"a is in x", 4, 8, 16, 0, "CONF_MISS CONF_MISS", 8},
		{"apart", 16, 0, 16, 16, "FIRST_MISS FIRST_MISS", 0},
	} {
		inner := loops.Loop(32, array(0, c.aLines, c.aFirst), array(1, c.xLines, c.xFirst))
		r := analyzed(t, direct, loops.Loop(10, inner))
		wantClasses(t, c.name, r, 0, c.want)
		l := &r.Loops[2]
		if whole := len(l.Right) == 2; whole != (c.again == 0) {
			t.Errorf("%s: %d arrays are left whole", c.name, len(l.Right))
		}
	}
	// A second way has room for both.
	inner := loops.Loop(32, array(0, 16, 0), array(1, 16, 8))
	r := analyzed(t, misses.Cache{LineBytes: 64, Sets: 64, Ways: 2}, loops.Loop(10, inner))
	wantClasses(t, "two ways", r, 0, "FIRST_MISS FIRST_MISS")
	missesOf(t, "two ways", r, 32)
}

// TestFigure4_3: x at sets 0 to 32 and three arrays that it partly overlaps, by the text of §4.4:
// regions of x are in the first, second or third way, and so two ways are not enough. The sets in
// the figure and in its text contradict each other; a, b and e are placed so that the second and
// the third way agree as far as possible.
func TestFigure4_3(t *testing.T) {
	array := func(n, first, lines uint64) []loops.Item {
		return []loops.Item{loops.Loop(8*lines, load(uint32(n), base+n*way+64*first, 0, 8))}
	}
	items := slices.Concat(array(0, 0, 9), array(1, 4, 7), array(2, 11, 6), array(3, 0, 33))
	for ways, want := range map[uint64]string{
		2: "CONF_MISS CONF_MISS FIRST_MISS CONF_MISS",
		3: "FIRST_MISS FIRST_MISS FIRST_MISS FIRST_MISS",
	} {
		r := analyzed(t, misses.Cache{LineBytes: 64, Sets: 64, Ways: ways}, loops.Loop(10, items...))
		wantClasses(t, "ways", r, 1, want)
	}
}

// TestVaryingStrides: §4.5: two arrays that begin in the same set, one with twice the stride,
// conflict at the beginning only.
func TestVaryingStrides(t *testing.T) {
	direct := misses.Cache{LineBytes: 64, Sets: 64, Ways: 1}
	r := analyzed(t, direct, loops.Loop(10, loops.Loop(64, load(1, base, 0, 8), load(2, base+way, 0, 16))))
	wantClasses(t, "twice the stride", r, 0, "CONF_MISS CONF_MISS")
	if m := r.Loops[2].Total.Misses; m < 24 || m > 48 {
		t.Errorf("%v misses a run, want those of 8 and 16 lines and some, for two arrays of 64 accesses each", m)
	}
	if n := len(r.Loops[2].Right); n > 1 {
		t.Errorf("%d arrays are left whole, want the last one at most", n)
	}
}

// TestForwardStrides: §4.6: a conflict of the first iteration of a loop outside is none
// in others, where its strides differ.
func TestForwardStrides(t *testing.T) {
	direct := misses.Cache{LineBytes: 64, Sets: 64, Ways: 1}
	inner := func(step int64) loops.Item {
		return loops.Loop(32, load(1, base, 0, 8), load(2, base+way, step, 8))
	}
	r := analyzed(t, direct, loops.Loop(16, inner(0)))
	wantClasses(t, "moved alike", r, 0, "ALWAYS_MISS ALWAYS_MISS")
	missesOf(t, "moved alike", r, 16*64)
	r = analyzed(t, direct, loops.Loop(16, inner(4*64)))
	if m := r.Total.Misses; m > 16*64/4 {
		t.Errorf("%v misses, want those of one iteration in 16, where they are in each other's way, and of the lines", m)
	}
}

// TestVaryingDepth: §4.7: an array of the outer loop always misses if one of an inner loop occupies
// its set; the latter loses one line per iteration and stays.
func TestVaryingDepth(t *testing.T) {
	direct := misses.Cache{LineBytes: 64, Sets: 16, Ways: 1}
	r := analyzed(t, direct, loops.Loop(100,
		load(1, base+way+64*5, 0),
		loops.Loop(64, load(2, base, 0, 8))))
	wantClasses(t, "at the inner loop", r, 0, "ALWAYS_MISS FIRST_MISS")
	if got := r.Leaves[1].Levels[1].Class; got != ConfMiss {
		t.Errorf("the inner array is %v in the outer loop, want CONF_MISS", got)
	}
	missesOf(t, "one line each", r, 100+8+99)
	if got := named(&r.Loops[1], r.Loops[1].Right); got != "a" {
		t.Errorf("right context %s, want the inner array, which stays", got)
	}
}

// TestCapacity: §4.8: where the arrays exceed the cache, each FIRST_MISS becomes CAP_MISS.
func TestCapacity(t *testing.T) {
	for lines, want := range map[uint64]string{4: "FIRST_MISS FIRST_MISS FIRST_MISS", 6: "CAP_MISS CAP_MISS CAP_MISS"} {
		r := analyzed(t, misses.Cache{LineBytes: 64, Sets: 1, Ways: 16}, loops.Loop(7, walk(lines, 1, 0, 0, 0)))
		wantClasses(t, "inner", r, 0, want)
		wantClasses(t, "outer", r, 1, want)
		if lines == 6 {
			missesOf(t, "too long", r, 7*18)
		} else {
			missesOf(t, "short", r, 12)
		}
	}
}

// TestFigure4_4: four arrays of seven lines in four sets of four ways: each iteration's lines fit,
// and misses are those of the lines, but no array remains complete.
func TestFigure4_4(t *testing.T) {
	c := misses.Cache{LineBytes: 64, Sets: 4, Ways: 4}
	r := analyzed(t, c, walk(7, 0, 0, 0, 0, 0))
	missesOf(t, "one run", r, 28)
	wantClasses(t, "one run", r, 0, "CAP_MISS CAP_MISS CAP_MISS CAP_MISS")
	r = analyzed(t, c, loops.Loop(5, walk(7, 1, 0, 0, 0, 0)))
	missesOf(t, "five runs", r, 28+4*24) // the last set keeps its lines: no others map to it
}

// TestSharedEdge: §4.10: arrays that share the line at an edge are no conflict.
func TestSharedEdge(t *testing.T) {
	r := analyzed(t, misses.Cache{LineBytes: 64, Sets: 16, Ways: 1},
		loops.Loop(9, loops.Loop(12, load(1, base, 0, 8)), loops.Loop(12, load(2, base+96, 0, 8))))
	wantClasses(t, "edge", r, 0, "FIRST_MISS FIRST_MISS")
	if n := len(r.Loops[1].Arrays); n != 2 {
		t.Errorf("%d arrays, want 2", n)
	}
	if m := r.Total.Misses; m < 3 || m > 4 {
		t.Errorf("%v misses, want those of 3 lines, or of 2 each", m)
	}
}

// TestLongStrides: §4.10: an array whose stride is longer than a line has no more misses than
// accesses.
func TestLongStrides(t *testing.T) {
	r := analyzed(t, misses.Cache{LineBytes: 64, Sets: 64, Ways: 1}, loops.Loop(5, loops.Loop(20, load(1, base, 0, 192))))
	wantClasses(t, "stride", r, 0, "FIRST_MISS")
	missesOf(t, "stride", r, 20)
}

// TestFirstHit: §4.2: an array that is in the cache, and then loses each line in turn to another
// one that maps to the same sets.
func TestFirstHit(t *testing.T) {
	direct := misses.Cache{LineBytes: 64, Sets: 16, Ways: 1}
	r := analyzed(t, direct, loops.Loop(32, load(1, base, 8)), walk(4, 0, 0, 0))
	wantClasses(t, "in their loops", r, 0, "FIRST_MISS ALWAYS_MISS ALWAYS_MISS")
	wantClasses(t, "one after the other", r, 1, "FIRST_MISS FIRST_HIT ALWAYS_MISS")
	missesOf(t, "one after the other", r, 4+28+32)
}
