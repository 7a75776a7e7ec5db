package ui

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/ui/state"
	"github.com/vugu/vugu"
)

// A control is an input, a list or a button in the built page.
type control struct {
	node *vugu.VGNode
	// The field "place" is the path from the root to the control, which consists of the tag and the
	// child number of each element. The renderer matches elements by their positions. If a control
	// moved to another position, a drag would continue with the element at the old position.
	place string
}

func (c *control) attribute(name string) string {
	for _, a := range c.node.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// The method "controls" returns the page's current controls, by their IDs.
func (d *desk) controls() map[string]*control {
	d.t.Helper()
	d.app.Env.RLock()
	defer d.app.Env.RUnlock()
	env, err := vugu.NewBuildEnv(d.app.Env)
	if err != nil {
		d.t.Fatal(err)
	}
	built := env.RunBuild(d.root)
	Fit(built)
	found := map[string]*control{}
	var walk func(n *vugu.VGNode, place string)
	walk = func(n *vugu.VGNode, place string) {
		for n.Component != nil {
			n = built.ResultFor(n.Component).Out[0]
		}
		place += " " + n.Data
		c := &control{node: n, place: place}
		if id := c.attribute("id"); id != "" && strings.Contains(" input select button ", " "+n.Data+" ") {
			found[id] = c
		}
		i := 0
		for child := n.FirstChild; child != nil; child = child.NextSibling {
			if child.Type == vugu.ElementNode || child.Component != nil {
				walk(child, place+" "+strconv.Itoa(i))
			}
			i++
		}
	}
	walk(built.Out.Out[0], "")
	return found
}

// The method "use" operates a control like a user. Depending on the control, the method clicks on a
// button twice, or enters several values one after another. The method returns the number of events
// that the page has handled.
func (d *desk) use(c *control) (times int) {
	type attempt struct{ event, value string }
	var attempts []attempt
	switch kind := c.attribute("type"); {
	case kind == "range":
		last, _ := strconv.Atoi(c.attribute("max"))
		for _, at := range []int{last / 2, 0, last} {
			attempts = append(attempts, attempt{"input", strconv.Itoa(at)})
		}
	case kind == "radio" || kind == "checkbox":
		attempts = append(attempts, attempt{"change", "on"})
	case c.node.Data == "select":
		for option := c.node.FirstChild; option != nil && len(attempts) < 4; option = option.NextSibling {
			if value := (&control{node: option}).attribute("value"); option.Data == "option" {
				attempts = append(attempts, attempt{"change", value})
			}
		}
	case strings.HasPrefix(c.attribute("id"), "ways-") || strings.HasPrefix(c.attribute("id"), "line-"):
		attempts = append(attempts, attempt{"click", ""}, attempt{"click", ""})
	}
	for _, a := range attempts {
		for _, h := range c.node.DOMEventHandlerSpecList {
			if h.EventType == a.event {
				d.act(func() {
					h.Func(vugu.NewDOMEvent(d.app.Env, map[string]any{"type": a.event, "target": map[string]any{"value": a.value}}))
				})
				times++
			}
		}
	}
	return times
}

// The method "settle" waits until the models have answered all questions.
func (d *desk) settle() {
	d.t.Helper()
	until(d.t, func() (yes bool) {
		d.act(func() { yes = !d.app.models.asker.busy() && !d.app.pair.asking })
		return yes
	})
}

// TestControlsKeepElements checks that a control is still the same element after it has changed, so
// that it keeps the focus and a drag can continue.
func TestControlsKeepElements(t *testing.T) {
	leads := map[string]bool{"compare-with": true, "export-as": true} // these controls lead to a different screen
	screens := map[string]func(d *desk){
		"one thread": func(d *desk) {
			d.settings.Loops, d.settings.LineBytes = true, []string{"64", "128"}
			d.app.Offer(demoItem())
		},
		"threads": func(d *desk) { d.app.Offer(threaded("ring")) },
		"alone":   func(d *desk) { d.app.Offer(threaded("openmp-alone")) },
		"two":     func(d *desk) { d.app.OfferPair(demoPair()) },
		"two of threads": func(d *desk) {
			d.app.OfferPair(threaded("false-sharing"), threaded("false-sharing-padded"))
		},
	}
	for name, open := range screens {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			open(d)
			if d.app.Problem != "" {
				t.Fatal(d.app.Problem)
			}
			used := 0
			for _, tab := range state.Tabs() {
				start := "#" + d.app.Screen.With(tab).Hash()
				d.app.Navigate(start)
				if d.settle(); name == "alone" && tab == state.TabThreads {
					d.predictedAll()
				}
				for id := range d.controls() {
					if leads[id] {
						continue
					}
					d.app.Navigate(start)
					d.settle()
					before := d.controls()
					if before[id] == nil || d.use(before[id]) == 0 {
						continue
					}
					used++
					after := d.controls() // at this point, the answer program is still working
					if after[id] != nil && after[id].place == before[id].place {
						d.settle()
						after = d.controls()
					}
					if after[id] == nil || after[id].place != before[id].place {
						t.Errorf("%s: control %s was at%s", tab.Name(), id, where(before[id], after[id]))
					}
				}
				d.app.Navigate(start)
			}
			if used == 0 {
				t.Error("the test found no control that it could use")
			}
		})
	}
}

func where(before, after *control) string {
	if after == nil {
		return before.place + ", and no longer exists"
	}
	return fmt.Sprintf("%s, and is now at%s", before.place, after.place)
}

// TestBackUndoesADrag checks that each Back undoes one whole drag or one series of key presses.
func TestBackUndoesADrag(t *testing.T) {
	d := newDesk(t)
	d.app.Offer(demoItem())
	d.act(func() { d.app.SetPreset("i7-6700") })
	before := []string{d.hash}
	drag := func(level int, sizes ...uint64) {
		d.app.Pressed()
		for _, size := range sizes {
			d.app.Move(level, size)
		}
		before = append(before, d.hash)
	}
	drag(1, 16<<10, 8<<10, 4<<10)
	drag(1, 2<<10)
	drag(2, 512<<10, 1<<20)
	for range 4 { // the same action with the keyboard
		d.act(func() { d.app.StepWays(2, -1) })
	}
	before = append(before, d.hash)
	for range 3 {
		d.act(func() { d.app.StepWays(1, -1) })
	}
	for i := len(before) - 1; i >= 0; i-- {
		d.back()
		if d.hash != before[i] {
			t.Fatalf("hash after %d steps back = %q, want %q", len(before)-i, d.hash, before[i])
		}
	}
	if d.app.Screen.Levels != nil || d.app.Screen.Preset != "i7-6700" {
		t.Errorf("screen after going back through all steps = %+v, want the preset i7-6700", d.app.Screen)
	}
	d.wants("Skylake")
}

// TestZoom checks that the URL contains a zoom, and that each Back undoes one drag or one series of
// key presses.
func TestZoom(t *testing.T) {
	d := newDesk(t)
	d.app.Offer(demoItem())
	d.app.Navigate("#" + d.app.Screen.With(state.TabCaches).Hash())
	whole := d.hash
	wants := func(chart string, from, to float64) {
		t.Helper()
		if z := d.zooms[chart]; z.From != from || z.To != to {
			t.Errorf("zoom of %s = %v, want %v to %v", chart, z, from, to)
		}
	}
	wants("curve", 0, 0)
	d.app.Pressed()
	d.app.ZoomChart("curve", 4096, 65536)
	wants("curve", 4096, 65536)
	link := d.hash
	d.app.Pressed()
	for _, to := range []float64{32768, 16384, 8192.12345678} { // a series of key presses, which follows one press of the pointer
		d.app.ZoomChart("curve", 4096, to)
	}
	wants("curve", 4096, 8192.1235)
	d.back()
	wants("curve", 4096, 65536)
	d.back()
	if wants("curve", 0, 0); d.hash != whole {
		t.Errorf("hash = %q, want %q", d.hash, whole)
	}
	d.app.Navigate("#" + link)
	wants("curve", 4096, 65536)

	// Charts in other views do not change this zoom, and have their own zooms.
	show := func(tab state.Tab) { d.act(func() { d.app.goTo(d.app.Screen.With(tab), false) }) }
	show(state.TabLocality)
	d.app.ZoomChart("histogram", -0.6, 4)
	wants("histogram", -0.6, 4)
	show(state.TabCaches)
	wants("curve", 4096, 65536)
	d.act(func() { d.app.unzoom("curve") })
	wants("curve", 0, 0)
	d.back()
	wants("curve", 4096, 65536)
}
