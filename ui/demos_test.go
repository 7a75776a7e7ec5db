package ui

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/ui/state"
)

// siteDemos returns the demos that the page offers.
func siteDemos(t *testing.T) (list []Demo) {
	t.Helper()
	var read []struct {
		Name, Title, Question, File, Opens string
		References, Lines                  uint64
	}
	text, err := os.ReadFile("../site/demos/demos.json")
	if err == nil {
		err = json.Unmarshal(text, &read)
	}
	if err != nil || len(read) == 0 {
		t.Fatalf("%d demos, %v", len(read), err)
	}
	for _, d := range read {
		list = append(list, Demo{Name: d.Name, Title: d.Title, Question: d.Question, URL: "demos/" + d.File, Opens: d.Opens, References: d.References, Lines: d.Lines})
	}
	return list
}

// The method "arrives" waits until the page shows a complete analysis.
func (d *desk) arrives(key string) {
	d.t.Helper()
	until(d.t, func() (yes bool) {
		d.act(func() {
			a := d.app
			yes = a.Problem != "" || a.run == nil && a.result != nil && a.result.Key == key && (!a.comparing() || a.comparison() != nil)
		})
		return yes
	})
	if d.app.Problem != "" {
		d.t.Fatal(d.app.Problem)
	}
}

// TestDemoLinks checks that a link to a demo works in any browser, whether it contains the demo's
// name or is copied from the open demo's URL. The demo must open in the view that answers its
// question.
func TestDemoLinks(t *testing.T) {
	demos := siteDemos(t)
	d, fresh := newDesk(t), newDesk(t)
	d.demos, fresh.demos = demos, demos
	for i, demo := range demos {
		if unread := state.Unread(demo.Opens); unread != nil {
			t.Errorf("%s: the screen %q has unreadable parts: %q", demo.Name, demo.Opens, unread)
		}
		key := "demo-" + demo.Name
		d.hash = "demo=" + demo.Name
		d.app.Navigate("#" + d.hash)
		d.arrives(key)
		if want := "open=" + key + "&" + demo.Opens; d.hash != want {
			t.Errorf("%s: hash = %q, want %q", demo.Name, d.hash, want)
		}
		if page := d.html(); strings.Contains(page, `id="missing"`) || !strings.Contains(page, demo.Question) {
			t.Errorf("%s: the first view is empty or lacks the demo's question", demo.Name)
		}
		if len(d.history) > 0 {
			t.Errorf("%s: history = %q, want no entry", demo.Name, d.history)
		}
		if e := d.entries(); len(e) != i+1 {
			t.Errorf("%s: kept analyses = %d, want %d", demo.Name, len(e), i+1)
		}

		if i%4 > 0 {
			continue
		}
		// In another browser, open the URL of the demo that is now open.
		link := state.Screen{Open: key, Tab: state.TabLocality, Preset: "i7-6700"}.Hash()
		fresh.app.Navigate("#" + link)
		fresh.arrives(key)
		if fresh.hash != link {
			t.Errorf("%s: hash = %q, want %q", demo.Name, fresh.hash, link)
		}
	}
	// A kept demo's trace is available even if the page has just been loaded.
	d.app = &App{Env: d.app.Env, Port: d, Store: d.store}
	d.root = NewRoot(d.app)
	d.app.Start("#open=demo-openmp-alone&view=threads")
	d.arrives("demo-openmp-alone")
	d.act(func() {
		if !d.app.CanRepeat() || !d.app.canPredict() {
			t.Error("CanRepeat() or canPredict() = false for a kept demo")
		}
	})
	d.app.Navigate("#demo=matmul-naive&cell=3x99")
	until(t, func() bool { return strings.Contains(d.html(), "SETSxWAYS") })
	d.app.Navigate("#demo=matmul-naive&view=diagnosis&preset=i7-6700")
	d.arrives("demo-matmul-naive")
	until(t, func() bool { return strings.Contains(d.html(), `id="diagnosis"`) })
	if s := d.app.Screen; s.Tab != state.TabDiagnosis || s.Levels != nil || s.Preset != "i7-6700" || len(d.entries()) != len(demos) {
		t.Errorf("screen of a link with its own settings = %+v, kept analyses = %d; want the Diagnosis view with i7-6700", s, len(d.entries()))
	}

	// Compare two demos with each other.
	pair := newDesk(t)
	pair.demos = demos
	link := state.Screen{Open: "demo-false-sharing", Other: "demo-false-sharing-padded"}.Hash()
	pair.app.Navigate("#" + link)
	until(t, func() bool { return strings.Contains(pair.html(), `id="differences"`) })
	if pair.hash != link || len(pair.entries()) != 2 {
		t.Errorf("hash = %q, want %q; kept analyses = %d, want 2", pair.hash, link, len(pair.entries()))
	}

	// The trace of this demo does not exist.
	pair.demos = append([]Demo{{Name: "gone", URL: "demos/gone.sgt"}}, demos...)
	for _, link := range []string{"demo=gone", "open=demo-gone", "open=demo-false-sharing&with=demo-gone"} {
		pair.app.Navigate("#" + link)
		until(t, func() bool { return strings.Contains(pair.html(), "The demo could not be loaded") })
		until(t, func() bool { return !strings.Contains(pair.html(), "Opening …") })
		pair.act(pair.app.Dismiss)
	}

	d.app.Navigate("#demo=matmul")
	until(t, func() (yes bool) {
		d.act(func() { yes = d.app.Problem != "" })
		return yes
	})
	d.wants("a demo that does not exist, “matmul”", "matmul-naive, matmul-blocked, array-list")
	if d.app.Screen.Open != "" || d.hash != "" {
		t.Errorf("screen = %+v, hash = %q; want the first screen", d.app.Screen, d.hash)
	}
}

// TestDemoWithSettings checks that a demo that is analysed with other settings is a separate
// analysis. In a different browser, a link to this analysis must open the demo with the default
// settings.
func TestDemoWithSettings(t *testing.T) {
	d := newDesk(t)
	d.settings.LineBytes = []string{"128"}
	d.app.Offer(demoItem())
	key := d.app.Screen.Open
	if !strings.HasPrefix(key, "demo-"+naive+"-") {
		t.Errorf("key of a demo with settings = %q, want a key with a hash", key)
	}
	d.settings.LineBytes = nil
	d.app.Offer(demoItem())
	if now := d.app.Screen.Open; now != "demo-"+naive || len(d.entries()) != 2 {
		t.Errorf("key of a demo = %q, kept analyses = %d; want %q and 2", now, len(d.entries()), "demo-"+naive)
	}
	if err := d.store.Delete(key); err != nil {
		t.Fatal(err)
	}
	d.app.Navigate("#open=" + key + "&view=locality")
	d.arrives("demo-" + naive)
	if e := d.entries(); len(e) != 1 || e[0].State != profile.EntryComplete || d.app.Screen.Tab != state.TabLocality {
		t.Errorf("%+v, screen %+v", e, d.app.Screen)
	}
}
