package ui

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/ui/state"
)

// TestPlacementOfThreads checks that each thread runs on its own core unless the user puts all
// threads on one core. The answers, the overview, exports, comparisons and the URL must depend on
// this choice.
func TestPlacementOfThreads(t *testing.T) {
	d := at(t, "false-sharing", state.TabCaches)
	d.act(func() { d.app.SetPreset("i7-4770K") })
	d.wants("4 threads, each on its own core; L1 and L2 private, L3 shared by 4 cores", `id="threads-on-choice"`, "Threads that share a private cache",
		`<dd class="misses">8 707</dd>`, `<td class="number">8 189</td>`, `id="table-by-core"`)
	if strings.Contains(d.html(), "assumes that all threads") {
		t.Error("the page says that it assumes one core for all threads")
	}
	d.app.Navigate(facts(d.app.Screen))
	d.wants("35.4 % of accesses (8 707) miss in L1; stores by other cores cause 8 189 of these misses", "false-sharing.c:31")
	exports := func(misses string) {
		t.Helper()
		delete(d.saved, FileName(d.app.result.Name)+".json")
		d.act(func() { d.app.ExportAs("json") })
		until(t, func() bool {
			d.app.Env.RLock()
			defer d.app.Env.RUnlock()
			return strings.Contains(string(d.saved[FileName(d.app.result.Name)+".json"]), misses)
		})
	}
	exports(`"misses": 8707,`)

	d.act(func() { d.app.PlaceThreads("one-core") })
	d.wants("4 threads, all on one core", "2.09 % of accesses (515) miss in L1.")
	if !strings.Contains(d.hash, "threads=one-core") || state.ParseScreen(d.hash).Threads != hierarchy.OnOneCore {
		t.Errorf("hash = %s, want threads=one-core", d.hash)
	}
	exports(`"misses": 515,`)
	d.app.Navigate("#" + d.app.Screen.With(state.TabCaches).Hash())
	d.wants(`<dd class="misses">515</dd>`)
	if page := d.html(); strings.Contains(page, `class="coherence"`) || strings.Contains(page, `id="table-by-core"`) {
		t.Error("the page shows coherence misses with all threads on one core")
	}

	// The two placements can be compared.
	d.act(func() { d.app.KeepBeside(false); d.app.PlaceThreads("") })
	d.wants(`id="table-against"`, "8 707")
	if b := state.ParseScreen(d.hash).Beside; !slices.Contains(b, "threads=one-core") {
		t.Errorf("B = %q, want threads=one-core in it", b)
	}
}

// TestPlacementInComparison checks that, in a comparison of two runs, the threads run on the cores
// that the user selects.
func TestPlacementInComparison(t *testing.T) {
	d := newDesk(t)
	d.app.OfferPair(Item{Demo: "false-sharing", URL: "demos/false-sharing.sgt", Title: "Four counters"},
		Item{Demo: "false-sharing-padded", URL: "demos/false-sharing-padded.sgt", Title: "Four counters, apart"})
	d.await(func() bool { return d.app.comparison() != nil })
	d.act(func() { d.app.SetPreset("i7-4770K") })
	d.app.Navigate("#" + d.app.Screen.With(state.TabCaches).Hash())
	d.wants("4 threads, each on its own core", "8 707", "8 189", "coherence misses")
	d.act(func() { d.app.PlaceThreads("one-core") })
	d.wants("4 threads, all on one core", "515", "517")
	if strings.Contains(d.html(), "8 189") {
		t.Error("the page shows coherence misses with all threads on one core")
	}
}

// TestHierarchyWithoutCommonStacks checks what the page does if several cores share a cache level,
// but the profile has no common stack for these cores. The page must report this, and offer to
// analyse the trace again with these groups of cores.
func TestHierarchyWithoutCommonStacks(t *testing.T) {
	d := newDesk(t)
	text := "addr,rw,size,tid\n"
	for i := range 3000 {
		thread := 3 + i*7%5
		text += fmt.Sprintf("%d,%s,8,%d\n", 64*(i*i%97), []string{"r", "w"}[i%3/2], thread)
	}
	d.app.Offer(Item{File: fileWith("five.csv", []byte(text))})
	d.await(func() bool { return d.app.result != nil && !d.app.result.Live && d.app.result.View != nil })
	d.app.Navigate("#" + d.app.Screen.With(state.TabCaches).Hash())
	d.act(func() { d.app.SetPreset("i7-4770K") })
	d.wants("Each L3 is shared by 4 cores, and the threads run on 5 cores.", "3,4,5,6/7", `id="groups-missing"`)
	if page := d.html(); strings.Contains(page, "--domains") {
		t.Error("the page names the option --domains of the command")
	}
	d.act(func() { d.app.PlaceThreads("one-core") })
	if problem := d.app.answer().Problem; problem != "" {
		t.Errorf("problem with all threads on one core = %s, want none", problem)
	}
	d.act(func() { d.app.PlaceThreads("") })
	before := d.app.result
	d.act(func() { d.app.RepeatFor(d.app.answer().Missing) })
	d.await(func() bool {
		r := d.app.result
		return r != nil && r != before && !r.Live && r.View != nil
	})
	d.act(func() { d.app.SetPreset("i7-4770K") })
	if a := d.app.answer(); a.Problem != "" || len(a.Prediction.Cores) != 5 {
		t.Errorf("answer after the second analysis = %+v, want 5 cores and no problem", a)
	}
}
