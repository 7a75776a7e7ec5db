package ui

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/ui/state"
)

// The function "folded" analyses the desk's demo, including its loops, and opens the Loops view.
func folded(t *testing.T, d *desk) {
	t.Helper()
	d.settings.Loops = true
	d.app.Offer(demoItem())
	d.app.Navigate("#" + d.app.Screen.With(state.TabLoops).Hash())
	d.countedLoops()
}

// countedLoops waits until the misses for the current hierarchy are counted.
func (d *desk) countedLoops() {
	d.t.Helper()
	until(d.t, func() (yes bool) {
		d.act(func() { yes = d.app.loopsCounted() })
		return yes
	})
}

// TestLoops checks the loop tree of a demo, the arrays of one loop, and the loop's misses in
// several caches.
func TestLoops(t *testing.T) {
	d := newDesk(t)
	folded(t, d)
	d.wants(`id="loops-summary"`, "3 loops in 1 nest make 100 % of 66 560 references. Loop 1.1.1, matmul-naive.c:20, main makes the most references: 98.5 %.",
		"Loop 1.1.1, matmul-naive.c:20, main", "One run of this loop uses 12.5 % of the bytes in the 32 lines of “b” that the run touches, because the innermost loop strides by 256 bytes",
		"0 +8 +256", "7.76 KiB", `id="loops-counted"`, "No line is evicted")
	grid := d.grids["loops"]
	if grid.Rows != 3 || !slices.Equal(grid.Depths, []int{1, 2, 3}) || grid.Selected != 2 {
		t.Fatalf("tree = %+v, want three nested loops with the innermost loop selected", grid)
	}
	rows, marks := grid.View(0, 3)
	if rows[2][0] != "1.1.1 · matmul-naive.c:20" || rows[2][1] != "main" || rows[2][2] != "32" || rows[2][3] != "1\u202f024" || marks[2] != "most" {
		t.Errorf("rows %q, marks %q", rows, marks)
	}

	d.app.PickRow("loops", 1)
	d.wants("Loop 1.1, matmul-naive.c:20–21, main", "The loop runs 32 times, with 32 iterations each, 1 024 in all.", "1 024 of them outside its inner loops")
	if d.app.Screen.Loop != 2 || !strings.Contains(d.hash, "loop=2") || state.ParseScreen(d.hash).Loop != 2 {
		t.Errorf("hash %q", d.hash)
	}
	if d.app.PickRow("loops", 99); d.app.Screen.Loop != 2 {
		t.Error("PickRow selected a row that does not exist")
	}

	// The misses of all loops add up to the misses in the hierarchy.
	d.act(func() { d.app.SetSize(1, 2048) })
	d.act(func() { d.app.goTo(d.app.Screen, true) })
	d.countedLoops()
	d.act(func() {
		t1 := d.app.loops().MissesTable(0)
		number := func(row int, key string) float64 {
			x, _ := t1.Source().Rows[row][t1.Source().Index(key)].Number()
			return x
		}
		const levels = 3
		nest, total := t1.Row(0), t1.Row(t1.Rows-levels)
		if nest[1] != "L1" || total[0] != "(total)" || nest[3] != total[3] || number(0, "misses") < number(2*levels, "misses") || number(0, "cold") != 384 {
			t.Errorf("%q, %q, %v", nest, total, t1.Source().Rows)
		}
	})
	for m := d.app.Levels()[0]; !m.Full(); m = d.app.Levels()[0] {
		d.act(func() { d.app.StepWays(1, 1) })
	}
	d.countedLoops()
	d.wants("33 920", "Evictions from L1 by array", "class in L1", "ALWAYS_MISS")
	rows, _ = d.grids["loops"].View(0, 1)
	if rows[0][6] != "33\u202f920" {
		t.Errorf("row of the nest = %q, want 33 920 misses", rows[0])
	}

	d.act(func() { d.app.SaveCSV("loops"); d.app.SaveCSV("arrays") })
	if csv := d.saw("Matrix multiplication-loops.csv"); !strings.Contains(csv, "1.1.1,2,main,matmul-naive.c,20,20,32,32,1024,32768,65536,") {
		t.Errorf("CSV %q", csv)
	}
	if csv := d.saw("Matrix multiplication-arrays.csv"); !strings.Contains(csv, "1.1,b,32768,0,") {
		t.Errorf("CSV %q", csv)
	}
}

// TestLoopsOnRequest checks that a trace without code is loop-compressed only on request, and that
// the view explains this and offers a button for it.
func TestLoopsOnRequest(t *testing.T) {
	d := newDesk(t)
	d.app.Offer(Item{File: fileWith("rows.din", []byte(strings.Repeat("0 1000\n0 1040\n1 2000\n", 100)))})
	d.app.Navigate("#" + d.app.Screen.With(state.TabLoops).Hash())
	d.wants(`id="missing"`, "--analyses loops", `id="loops-again"`)
	before := d.app.Screen.Open
	d.act(func() { d.app.RepeatForLoops() })
	until(t, func() (yes bool) {
		d.act(func() { yes = d.app.run == nil && d.app.Screen.Open != before && d.app.loops() != nil })
		return yes
	})
	d.countedLoops()
	d.wants(`id="loops-counted"`)
	// The result must still contain the results of the earlier analysis.
	if p := d.app.result.Profile; p.Locality[0].Sets == nil {
		t.Error("the result lacks the table of sets of the earlier analysis")
	}
}

func TestLoopsThatCannotBeShown(t *testing.T) {
	d := newDesk(t)
	folded(t, d)
	good := d.app.result.Profile
	for _, c := range []struct {
		loops []byte
		want  string
	}{{[]byte{7, 7, 7}, "are damaged"}, {[]byte{}, "cannot be compressed into loops"}} {
		damaged := *good
		damaged.Loops = c.loops
		d.app.Offer(Item{File: fileWith("damaged.sgp", damaged.Encode())})
		d.app.Navigate("#" + d.app.Screen.With(state.TabLoops).Hash())
		until(t, func() bool { return strings.Contains(d.html(), c.want) })
	}
}

// TestLoopMissesAreCountedOnce checks that misses are counted only once for each hierarchy, and not
// for a closed result.
func TestLoopMissesAreCountedOnce(t *testing.T) {
	d := newDesk(t)
	folded(t, d)
	first := d.app.loops()
	d.act(func() { d.app.goTo(d.app.Screen, true) })
	if d.app.loops() != first || !d.rests() {
		t.Error("the page counted the misses again for an unchanged screen")
	}
	d.act(func() { d.app.SetSize(1, 1<<20); d.app.result.Profile = new(profile.Profile) })
	until(t, func() (yes bool) {
		d.act(func() { yes = d.app.loops() == nil })
		return yes
	})
}

// The method "tried" waits until the misses of all changes are counted.
func (d *desk) tried() {
	d.t.Helper()
	until(d.t, func() (yes bool) {
		d.act(func() { yes = !d.app.nests.changes.busy })
		return yes
	})
}

// TestLoopChanges checks that the user can try named changes to a loop nest, search for changes,
// count their misses for other caches, and discard them.
func TestLoopChanges(t *testing.T) {
	d := newDesk(t)
	folded(t, d)
	d.act(func() { d.app.SetSize(1, 4096) })
	d.wants("What if nest 1 were different", `id="propose"`, "pad rows", `placeholder="a=+64"`)
	try := func(kind, text string) {
		t.Helper()
		d.act(func() {
			s := d.app.changes()
			s.kind, s.text = kind, text
			d.app.TryChange()
		})
		d.tried()
	}
	try("pad", "b=+8")
	before := ""
	d.act(func() { before = d.app.loops().Misses(0, "L1") })
	d.wants("pad each row of b by 1 element (8 bytes)", "other code needs the rows without gaps", before)
	try("interchange", "i,k")
	d.wants("Interchange does not apply: a loop contains code outside the next inner loop")
	try("tile", "i=8,q=8")
	d.wants("Tile &#34;q&#34;, want a loop of nest 1")
	try("interchange", "i,j")
	d.wants("interchange loop 1 and loop 1.1")

	d.act(d.app.ProposeChanges)
	d.tried()
	d.wants(`id="table-proposed"`, "that would save the most misses of L1")
	rows := func() (n int) {
		d.act(func() {
			for _, chart := range []string{"tried-1", "tried-2"} {
				n += d.app.changeTable(chart).Rows
			}
		})
		return n
	}
	if n := rows(); n != 2*3 {
		t.Errorf("rows = %d, want 6 for two changes and three levels", n)
	}
	first := ""
	d.act(func() { first = d.app.changeTable("tried-1").Row(0)[2] })
	d.act(func() { d.app.SetSize(1, 2048) })
	d.tried()
	d.act(func() {
		if now := d.app.changeTable("tried-1").Row(0)[2]; now == first {
			t.Errorf("misses with half of the cache = %s, want a different number", now)
		}
	})
	d.act(d.app.ForgetChanges)
	d.act(func() {
		if d.app.changeTable("tried-1") != nil || d.app.changeTable("proposed") != nil {
			t.Error("the page still has the tables of discarded changes")
		}
	})
	// If the user stops a search, it has no proposals.
	d.act(func() { d.app.ProposeChanges(); d.app.ProposeChanges() })
	d.tried()
	d.act(func() {
		if d.app.changeTable("proposed") != nil {
			t.Error("the page shows proposals from a search that the user ended")
		}
	})
}

// TestLoopsOfThreads checks that a loop that several threads run has one row. The row is collapsed
// at first. The rows of the individual threads are below this row, and their numbers must add up to
// the row's numbers.
func TestLoopsOfThreads(t *testing.T) {
	d := newDesk(t)
	ring, err := os.ReadFile("../site/demos/ring.sgt")
	if err != nil {
		t.Fatal(err)
	}
	d.settings.Loops = true
	d.app.Offer(Item{File: fileWith("ring.sgt", ring)})
	d.app.Navigate("#" + d.app.Screen.With(state.TabLoops).Hash())
	d.act(func() { d.app.SetPreset("i7-6700") })
	d.countedLoops()
	grid := d.grids["loops"]
	rows, _ := grid.View(0, grid.Rows)
	row := func(label string) int {
		t.Helper()
		i := slices.IndexFunc(rows, func(cells []string) bool { return strings.HasPrefix(cells[0], label+" · ") })
		if i < 0 {
			t.Fatalf("the table has no loop %s: %q", label, rows)
		}
		return i
	}
	number := func(row, column int) int {
		n, err := strconv.Atoi(strings.ReplaceAll(rows[row][column], "\u202f", ""))
		if err != nil {
			t.Error(err)
		}
		return n
	}
	all, head := row("2+"), row("2+")+1
	if grid.Depths[head] != 2 || grid.Folded[head] || !grid.Folded[all] || rows[head][0] != "each thread and time slice" {
		t.Errorf("row below %q = %q, want a row for each thread and time slice, in a folded loop", rows[all], rows[head])
	}
	references, misses := 0, 0
	for _, label := range []string{"2", "3", "4", "5"} {
		if grid.Depths[row(label)] != 3 {
			t.Errorf("depth of loop %s = %d, want 3", label, grid.Depths[row(label)])
		}
		references, misses = references+number(row(label), 4), misses+number(row(label), 6)
	}
	if references != number(all, 4) || misses != number(all, 6) || misses == 0 {
		t.Errorf("sum over the threads' loops = %d references and %d misses, want the numbers of the row above, %q", references, misses, rows[all])
	}
	for i := range grid.Rows { // the first loop nest must have the most misses
		if grid.Depths[i] == 1 && i > 0 && number(0, 6) < number(i, 6) {
			t.Errorf("row %q is before row %q, want a descending order of misses", rows[0], rows[i])
		}
	}

	d.app.PickRow("loops", all)
	d.wants("Loop 2+, ring.c:27, pass_on", "as 4 separate loops in 4 threads", "Arrays of loop 2+")
	id := d.app.Screen.Loop
	if d.app.PickRow("loops", head); d.app.Screen.Loop != id {
		t.Error("PickRow selected a row that is not a loop")
	}
	d.app.PickRow("loops", row("4"))
	d.wants("Loop 4, ring.c:27, pass_on", "What if nest 4 were different")
	if n := d.app.Screen.Loop; n != 4 { // like older links, the URL numbers the loops in the order of the run
		t.Errorf("number of loop 4 in the URL = %d, want 4", n)
	}
}
