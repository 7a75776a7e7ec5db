package ui

import (
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/ui/state"
)

// TestPart checks that a view that cannot show a range offers to analyse the range. The result must
// equal an analysis of this part of the trace, and a link must lead back to the whole run.
func TestPart(t *testing.T) {
	d := newDesk(t)
	d.app.Offer(demoItem())
	whole := d.app.result
	d.app.Navigate("#" + d.app.Screen.With(state.TabDiagnosis).Hash())
	if strings.Contains(d.html(), `id="timeline-analyse"`) || strings.Contains(d.html(), `id="whole-run"`) {
		t.Error("the page offers to analyse a part, although no range is chosen, or links to the whole run")
	}
	d.app.BrushRange(2, 6, false)
	d.wants(`id="timeline-analyse"`, ">analyse only references 2 048 to 6 144<")
	d.app.BrushRange(2, 7, false)
	d.wants(">analyse only references 2 048 to 7 168<")
	d.app.Navigate("#" + d.app.Screen.With(state.TabCaches).Hash())
	if strings.Contains(d.html(), `id="timeline-analyse"`) {
		t.Error("the Caches view offers to analyse the range, although it shows the range")
	}
	d.app.Navigate("#" + d.app.Screen.With(state.TabCounters).Hash())
	d.act(d.app.AnalysePart)
	d.await(func() bool { return d.app.result != nil && d.app.result != whole && !d.app.result.Live })
	r := d.app.result
	in := r.Profile.Input
	if n := r.Profile.Totals.AllReferences(); n != 5120 || in.Skip != 2048 || in.Limit != 5120 || d.app.Screen.Tab != state.TabCounters || d.app.Screen.Range != (state.Range{}) {
		t.Errorf("references = %d, skipped = %d, view = %s; want 5120 references from number 2048 in the same view", n, in.Skip, d.app.Screen.Tab.Name())
	}
	total := state.Exact(whole.Profile.Totals.AllReferences())
	d.wants("references 2 048 to 7 168 of "+total+" of Matrix multiplication", `id="whole-run"`, `id="part-note"`)
	if !strings.Contains(d.hash, "open="+whole.Key+"-part-2048-7168") {
		t.Errorf("hash = %s, want the key of the whole run and the range", d.hash)
	}

	// A range of the part is a range of the whole run.
	d.app.BrushRange(1, 3, false)
	d.wants(">analyse only references 3 072 to 5 120<")
	d.act(d.app.AnalysePart)
	d.await(func() bool { return d.app.result != nil && d.app.result != r && !d.app.result.Live })
	if in := d.app.result.Profile.Input; in.Skip != 3072 || in.Limit != 2048 || d.app.result.Key != whole.Key+"-part-3072-5120" {
		t.Errorf("part of a part = %s, references from number %d; want 3072", d.app.result.Key, in.Skip)
	}
	d.wants("references 3 072 to 5 120 of " + total + " of Matrix multiplication")

	// Another analysis of the part counts only the part. Going back to the whole run and choosing
	// the same range opens the stored analysis.
	d.act(func() { d.app.RepeatWith(analysis.Data) })
	d.await(func() bool { return d.app.result != nil && !d.app.result.Live && d.app.result.Profile.Data != nil })
	if in := d.app.result.Profile.Input; in.Skip != 3072 || in.Limit != 2048 {
		t.Errorf("repeated analysis = %d references from number %d, want 2048 from 3072", in.Limit, in.Skip)
	}
	d.app.Navigate(d.app.WholeRun())
	if d.app.result.Key != whole.Key {
		t.Errorf("the link to the whole run leads to %s, want %s", d.app.result.Key, whole.Key)
	}
	kept := len(d.entries())
	d.app.BrushRange(2, 7, false)
	d.act(d.app.AnalysePart)
	d.await(func() bool { return d.app.result != nil && d.app.result.Key == r.Key })
	if len(d.entries()) != kept {
		t.Errorf("kept analyses = %d, want %d, because this part was already analysed", len(d.entries()), kept)
	}
}

// TestLinkToPart checks that a link to a part of a demo analyses this part.
func TestLinkToPart(t *testing.T) {
	d := newDesk(t)
	d.demos = siteDemos(t)
	key := demoPrefix + naive + "-part-1024-3072"
	d.app.Navigate("#open=" + key + "&view=counters")
	d.arrives(key)
	if in := d.app.result.Profile.Input; in.Skip != 1024 || in.Limit != 2048 || d.app.Screen.Tab != state.TabCounters {
		t.Errorf("link leads to %d references from number %d in the view %s, want 2048 from 1024 in Counters", in.Limit, in.Skip, d.app.Screen.Tab.Name())
	}
}

// TestPartOfFile checks that the page asks for the file if it is not at hand. If the user chooses a
// different file, or does something else first, all of the file is analysed. The name of the analysis
// contains a number if another analysis has the name of the file.
func TestPartOfFile(t *testing.T) {
	d := newDesk(t)
	d.settings.LineBytes = []string{"64"}
	d.app.Offer(demoItem())
	data, err := d.app.Port.Fetch(demoItem().URL, naive)
	if err != nil {
		t.Fatal(err)
	}
	content, err := data.Read(0)
	if err != nil {
		t.Fatal(err)
	}
	d.app.Offer(Item{File: fileWith("a.sgt", content)})
	d.app.Offer(Item{File: fileWith("a.sgt", content)})
	whole := d.app.result.Key
	for _, c := range []struct {
		file  string
		first func() // what the user does before choosing the file
		part  bool
		note  string
	}{
		{file: "b.sgt", note: "All references of b.sgt are analysed, because the file is not named a (2).sgt."},
		{file: "a.sgt", first: func() { d.app.Navigate("#" + state.Screen{Open: whole, Tab: state.TabThreads}.Hash()) }},
		{file: "a.sgt", first: func() { d.app.BrushRange(2, 5, false) }},
		{file: "a.sgt", part: true},
	} {
		d.app.Navigate("#" + state.Screen{Open: whole, Tab: state.TabDiagnosis}.Hash())
		delete(d.app.items, whole) // as after a reload
		d.app.BrushRange(1, 3, false)
		picked := d.picked
		d.act(d.app.AnalysePart)
		if d.picked != picked+1 {
			t.Fatal("the page does not ask for the file")
		}
		d.wants("Choose a (2).sgt again, or drop it on the page. Only references 1 024 to 3 072 will be analysed.")
		if c.first != nil {
			c.first()
		}
		d.app.Offer(Item{File: fileWith(c.file, content)})
		in := d.app.result.Profile.Input
		if (in.Skip == 1024 && in.Limit == 2048) != c.part || strings.HasPrefix(d.app.result.Key, whole+"-part-1024-3072-") != c.part || d.app.Note != c.note {
			t.Errorf("after choosing %s: analysis %s of references from number %d with the note %q, want a part: %t, and the note %q", c.file, d.app.result.Key, in.Skip, d.app.Note, c.part, c.note)
		}
	}
}

// TestPartWithSettings checks that the stored analysis of a part is opened only if it has the
// settings of the form. A file must be analysed again, too.
func TestPartWithSettings(t *testing.T) {
	for _, item := range []Item{demoItem(), {}} {
		d := newDesk(t)
		if item.Demo == "" {
			data, err := d.app.Port.Fetch(demoItem().URL, naive)
			if err != nil {
				t.Fatal(err)
			}
			content, err := data.Read(0)
			if err != nil {
				t.Fatal(err)
			}
			item.File = fileWith("a.sgt", content)
		}
		d.app.Offer(item)
		whole, keys := d.app.Screen.With(state.TabDiagnosis).Hash(), map[string]string{}
		for _, lines := range []string{"64", "128", "64", "128"} {
			d.settings.LineBytes = []string{lines}
			d.app.Navigate("#" + whole)
			d.app.BrushRange(1, 3, false)
			d.act(d.app.AnalysePart)
			d.await(func() bool {
				r := d.app.result
				return r != nil && !r.Live && partOfKey(r.Key).refs == state.Range{From: 1024, To: 3072}
			})
			r := d.app.result
			if keys[lines] == "" {
				keys[lines] = r.Key
			}
			if got := r.View.LineBytes; state.Exact(got) != lines || r.Key != keys[lines] || len(d.entries()) != 1+len(keys) {
				t.Errorf("part with lines of %s bytes: analysis %s with lines of %d bytes, and %d kept analyses; want %d", lines, r.Key, got, len(d.entries()), 1+len(keys))
			}
		}
	}
}

// TestNamedAfter checks that a file is recognised by every name that its analyses may have, and that
// other files are not recognised.
func TestNamedAfter(t *testing.T) {
	for _, c := range []struct {
		name, file string
		want       bool
	}{
		{"a.sgt", "a.sgt", true}, {"a (2).sgt.zst", "a.sgt.zst", true}, {"a (12)", "a", true}, {"a (2).sgt", "a (2).sgt", true}, {"a (2) (3).sgt", "a (2).sgt", true},
		{"a.sgt", "a (2).sgt", false}, {"b (2).sgt", "a.sgt", false}, {"a (x).sgt", "a.sgt", false}, {"a ().sgt", "a.sgt", false}, {"a (2).din", "a.sgt", false}, {"a (", "a", false},
	} {
		if got := namedAfter(c.name, c.file); got != c.want {
			t.Errorf("namedAfter(%q, %q) = %t, want %t", c.name, c.file, got, c.want)
		}
	}
}

// TestPartOfKey checks that the key of a part contains the part, and that other keys contain none.
func TestPartOfKey(t *testing.T) {
	p := part{of: "demo-x-part-1-2", refs: state.Range{From: 5, To: 70}}
	for key, want := range map[string]part{p.key(): p, p.key() + "-2": p, "tabc": {}, "": {}, "a-part-": {}, "a-part-5": {}, "a-part-7-5": {}, "a-part-x-y": {}} {
		if got := partOfKey(key); got != want {
			t.Errorf("partOfKey(%q) = %+v, want %+v", key, got, want)
		}
	}
}
