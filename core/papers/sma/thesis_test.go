package sma

import (
	"slices"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/loops/misses"
)

// The constant way is a multiple of the size of every way in these tests. Addresses that are equal
// modulo this constant are in the same set.
const way = 1 << 20

// walk returns a loop that iterates over several arrays, one double at a time. Each array has the
// given number of lines, and array i begins at line at[i] of way i.
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

// classes returns the classes of the leaves at the level of an enclosing loop: the innermost loop
// if out is 0, the next loop if out is 1, and so on.
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
		t.Errorf("%s: classes %s, want %s", name, got, want)
	}
}

func missesOf(t *testing.T, name string, r *Result, want float64) {
	t.Helper()
	if d := r.Total.Misses - want; d > 0.01 || d < -0.01 {
		t.Errorf("%s: %v misses, want %v", name, r.Total.Misses, want)
	}
}

// named returns the names of the arrays with the given indices. An array that begins in the first
// "way" bytes of the address range is named a, an array that begins in the next "way" bytes is
// named b, and so on.
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

// sequence returns one loop for each name in the string "arrays". Each loop walks over its own
// array; all loops walk over the same number of lines.
func sequence(lines uint64, arrays string) (items []loops.Item) {
	for _, name := range strings.Fields(arrays) {
		i := uint64(name[0] - 'a')
		items = append(items, loops.Loop(8*lines, load(uint32(i), base+i*way, 8)))
	}
	return items
}

// TestFigure3_3 checks that the left context contains the first arrays, and that the right
// context contains the last arrays. Each context contains as many arrays as fit in the cache.
func TestFigure3_3(t *testing.T) {
	full := misses.Cache{LineBytes: 64, Sets: 1, Ways: 16}
	one := analyzed(t, full, sequence(4, "a b c d")...)
	contexts(t, "one loop", &one.Loops[0], "a b c d", "a b c d")
	two := analyzed(t, full, sequence(4, "a b c d e f")...)
	contexts(t, "a second loop", &two.Loops[0], "a b c d", "c d e f")
}

// TestFigure3_4 uses three arrays in a set of two lines. The third array evicts the first array.
// The composed contexts must show that the second array is also evicted.
func TestFigure3_4(t *testing.T) {
	r := analyzed(t, misses.Cache{LineBytes: 64, Sets: 16, Ways: 2}, walk(4, 0, 0, 0, 0))
	wantClasses(t, "three", r, 0, "ALWAYS_MISS ALWAYS_MISS ALWAYS_MISS")
	missesOf(t, "three", r, 96)
	r = analyzed(t, misses.Cache{LineBytes: 64, Sets: 16, Ways: 4}, walk(4, 0, 0, 0, 0))
	wantClasses(t, "four ways", r, 0, "FIRST_MISS FIRST_MISS FIRST_MISS")
	missesOf(t, "four ways", r, 12)
}

// TestFigure3_5 checks that array b is still in the context when a later loop accesses it again,
// and that this loop makes b more recently used. Array e is not in the context.
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

// TestPureConflicts checks §4.3 and Figure 4.1.
func TestPureConflicts(t *testing.T) {
	direct := misses.Cache{LineBytes: 64, Sets: 16, Ways: 1}
	r := analyzed(t, direct, walk(4, 0, 0, 0))
	wantClasses(t, "direct", r, 0, "ALWAYS_MISS ALWAYS_MISS")
	missesOf(t, "direct", r, 64)
	r = analyzed(t, misses.Cache{LineBytes: 64, Sets: 8, Ways: 2}, walk(4, 0, 0, 0))
	wantClasses(t, "two ways", r, 0, "FIRST_MISS FIRST_MISS")
	missesOf(t, "two ways", r, 8)
	// Each array exceeds a way, but the lines of each iteration fit in the cache. No array remains
	// completely in the cache.
	r = analyzed(t, misses.Cache{LineBytes: 64, Sets: 4, Ways: 2}, walk(6, 0, 0, 0))
	wantClasses(t, "two arrays of 6 in 8 lines", r, 0, "CAP_MISS CAP_MISS")
	missesOf(t, "two arrays of 6 in 8 lines", r, 12)
	if n := len(r.Loops[1].Right); n > 1 {
		t.Errorf("%d arrays of 6 lines are in a cache of 8 lines, want at most 1", n)
	}
}

// TestPartialConflicts checks §4.4 and the four cases of Figure 4.2. In two cases, the end of one
// array overlaps the beginning of the other. In two cases, one array is inside the other.
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
		again          uint64 // number of conflicting lines in both arrays
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
			t.Errorf("%s: both arrays remain completely in the cache: %t, want %t", c.name, whole, c.again == 0)
		}
	}
	// With a second way, both arrays fit.
	inner := loops.Loop(32, array(0, 16, 0), array(1, 16, 8))
	r := analyzed(t, misses.Cache{LineBytes: 64, Sets: 64, Ways: 2}, loops.Loop(10, inner))
	wantClasses(t, "two ways", r, 0, "FIRST_MISS FIRST_MISS")
	missesOf(t, "two ways", r, 32)
}

// TestFigure4_3 follows the text of §4.4: array x occupies sets 0 to 32 and partly overlaps three
// arrays. Array x occupies parts of the first, second and third way, so two ways are not enough.
// The figure and the text state different sets. The addresses of arrays a, b and e are chosen so
// that the second and third ways agree with the thesis as far as possible.
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

// TestVaryingStrides checks §4.5: if two arrays begin in the same set, and one stride is twice the
// other, the arrays conflict only at the beginning.
func TestVaryingStrides(t *testing.T) {
	direct := misses.Cache{LineBytes: 64, Sets: 64, Ways: 1}
	r := analyzed(t, direct, loops.Loop(10, loops.Loop(64, load(1, base, 0, 8), load(2, base+way, 0, 16))))
	wantClasses(t, "twice the stride", r, 0, "CONF_MISS CONF_MISS")
	if m := r.Loops[2].Total.Misses; m < 24 || m > 48 {
		t.Errorf("%v misses per run, want 24 to 48: two arrays of 8 and 16 lines, with 64 accesses each", m)
	}
	if n := len(r.Loops[2].Right); n > 1 {
		t.Errorf("%d arrays remain completely in the cache, want at most the last array", n)
	}
}

// TestForwardStrides checks §4.6: arrays with different strides in the outer loop may conflict
// in the first iteration of this loop, but not in other iterations.
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
		t.Errorf("%v misses, want one miss per line, and conflict misses in one of 16 iterations", m)
	}
}

// TestVaryingDepth checks §4.7: an array of the outer loop always misses if an array of an inner
// loop occupies its set. The inner array loses one line per iteration, but stays in the cache.
func TestVaryingDepth(t *testing.T) {
	direct := misses.Cache{LineBytes: 64, Sets: 16, Ways: 1}
	r := analyzed(t, direct, loops.Loop(100,
		load(1, base+way+64*5, 0),
		loops.Loop(64, load(2, base, 0, 8))))
	wantClasses(t, "in the inner loop", r, 0, "ALWAYS_MISS FIRST_MISS")
	if got := r.Leaves[1].Levels[1].Class; got != ConfMiss {
		t.Errorf("the inner array is %v in the outer loop, want CONF_MISS", got)
	}
	missesOf(t, "one line each", r, 100+8+99)
	if got := named(&r.Loops[1], r.Loops[1].Right); got != "a" {
		t.Errorf("right context %s, want the inner array, which stays in the cache", got)
	}
}

// TestCapacity checks §4.8: if the arrays exceed the cache, each FIRST_MISS becomes CAP_MISS.
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

// TestFigure4_4 uses four arrays of seven lines in a cache with four sets and four ways. The lines
// of each iteration fit in the cache, so each line misses once, but no array remains completely in
// the cache.
func TestFigure4_4(t *testing.T) {
	c := misses.Cache{LineBytes: 64, Sets: 4, Ways: 4}
	r := analyzed(t, c, walk(7, 0, 0, 0, 0, 0))
	missesOf(t, "one run", r, 28)
	wantClasses(t, "one run", r, 0, "CAP_MISS CAP_MISS CAP_MISS CAP_MISS")
	r = analyzed(t, c, loops.Loop(5, walk(7, 1, 0, 0, 0, 0)))
	missesOf(t, "five runs", r, 28+4*24) // the last set keeps its lines, because no other lines map to this set
}

// TestSharedEdge checks §4.10: arrays that share a line at their edges do not conflict.
func TestSharedEdge(t *testing.T) {
	r := analyzed(t, misses.Cache{LineBytes: 64, Sets: 16, Ways: 1},
		loops.Loop(9, loops.Loop(12, load(1, base, 0, 8)), loops.Loop(12, load(2, base+96, 0, 8))))
	wantClasses(t, "edge", r, 0, "FIRST_MISS FIRST_MISS")
	if n := len(r.Loops[1].Arrays); n != 2 {
		t.Errorf("%d arrays, want 2", n)
	}
	if m := r.Total.Misses; m < 3 || m > 4 {
		t.Errorf("%v misses, want 3 (one per line) or 4 (2 lines for each array)", m)
	}
}

// TestLongStrides checks §4.10: if an array's stride is longer than a line, there are at most as
// many misses as accesses.
func TestLongStrides(t *testing.T) {
	r := analyzed(t, misses.Cache{LineBytes: 64, Sets: 64, Ways: 1}, loops.Loop(5, loops.Loop(20, load(1, base, 0, 192))))
	wantClasses(t, "stride", r, 0, "FIRST_MISS")
	missesOf(t, "stride", r, 20)
}

// TestFirstHit checks §4.2: an array is in the cache, and another array that maps to the same
// sets evicts its lines one by one.
func TestFirstHit(t *testing.T) {
	direct := misses.Cache{LineBytes: 64, Sets: 16, Ways: 1}
	r := analyzed(t, direct, loops.Loop(32, load(1, base, 8)), walk(4, 0, 0, 0))
	wantClasses(t, "in their loops", r, 0, "FIRST_MISS ALWAYS_MISS ALWAYS_MISS")
	wantClasses(t, "one after the other", r, 1, "FIRST_MISS FIRST_HIT ALWAYS_MISS")
	missesOf(t, "one after the other", r, 4+28+32)
}
