//go:build js && wasm

package main

import (
	"strconv"
	"strings"
	"syscall/js"
	"time"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/ui"
	"github.com/stackglass/stackglass/ui/state"
	"github.com/stackglass/stackglass/wasm/host"
	"github.com/stackglass/stackglass/workers"
	"github.com/stackglass/stackglass/workers/web"
)

// address returns the URL of a file of the site, as recorded in the page. The file "worker" starts
// this program in a worker, and "unpacker" starts the second program.
func address(file string) string {
	return document().Get("documentElement").Get("dataset").Get(file).String()
}

// browser is the page's [ui.Port].
type browser struct {
	focus   string // id of the element to focus after the next render
	restore bool   // whether to focus this element only if no element has the focus
	demos   []ui.Demo
	grids   map[string]*state.Grid // for each id: the table passed to tables.js
	problem string                 // the problem that was last scrolled into view

	hash      string // the pending hash, which has not been set yet
	hashWaits bool
	hashes    int // number of hashes that were set within the last hashPause

	app      *ui.App
	matrices map[string]*state.Matrix  // for each id: the matrix passed to matrix.js; nil before matrix.js is loaded
	timeline *state.Timeline           // the latest timeline; nil before timeline.js is loaded
	maps     map[string]*state.HeatMap // for each id: the map passed to heatmap.js; nil before heatmap.js is loaded
	flames   map[string]*state.Flame   // for each id: the flame graph passed to flame.js; nil before flame.js is loaded
	graph    *state.Graph              // the graph passed to graph.js; nil before graph.js is loaded
}

func document() js.Value { return js.Global().Get("document") }

func element(id string) js.Value { return document().Call("getElementById", id) }

// script returns the global JavaScript object that one of the site's scripts defines.
func script(name string) js.Value { return js.Global().Get("stackglass" + name) }

func listen(event string, f func(event js.Value)) {
	js.Global().Call("addEventListener", event, web.Function(func(args []js.Value) { f(args[0]) }))
}

// beginBuild is called before a build is rendered. It returns a function that must be called after
// the build has been rendered.
func (b *browser) beginBuild() (rendered func()) {
	focus, restore := b.focus, b.restore
	b.focus = ""
	return func() {
		b.showProblem()
		if focus == "" || restore && !document().Get("activeElement").Equal(document().Get("body")) {
			return
		}
		if e := element(focus); e.Truthy() {
			e.Call("focus", map[string]any{"preventScroll": restore})
		}
	}
}

// showProblem scrolls to a new problem, which may be out of view.
func (b *browser) showProblem() {
	text, problem := "", element("problem")
	if problem.Truthy() {
		text = problem.Get("textContent").String()
	}
	if text != b.problem && text != "" {
		problem.Call("scrollIntoView", map[string]any{"block": "nearest"})
	}
	b.problem = text
}

// Connect starts a worker that can make the analyses of a spec.
func (b *browser) Connect(spec analysis.Spec) (workers.Carrier, error) {
	program := "worker"
	if spec.Analyses&analysis.Data != 0 || spec.Sample != nil || spec.Skip > 0 {
		program = "unpacker" // only the second program can analyse data structures, samples and parts
	}
	return web.Spawn(address(program), host.Name)
}

// Settings reads the form of the first screen.
func (b *browser) Settings() state.Settings {
	data := js.Global().Get("FormData").New(element("settings-form"))
	s := state.Settings{}
	lines := data.Call("getAll", "line")
	for i := range lines.Length() {
		s.LineBytes = append(s.LineBytes, lines.Index(i).String())
	}
	for name, to := range map[string]*string{
		"kinds": &s.Kinds, "format": &s.Format, "cores": &s.Cores, "sample": &s.Sample, "memory": &s.Memory, "workers": &s.Workers,
	} {
		if text := data.Call("get", name); text.Type() == js.TypeString {
			*to = text.String()
		}
	}
	s.Touched = data.Call("has", "touched").Bool()
	s.Reuse = data.Call("has", "reuse").Bool()
	s.Loops = data.Call("has", "loops").Bool()
	return s
}

// Demos reads the cards of the first screen.
func (b *browser) Demos() []ui.Demo {
	if b.demos != nil {
		return b.demos
	}
	cards := document().Call("querySelectorAll", "[data-demo]")
	for i := range cards.Length() {
		card := cards.Index(i)
		attributes := card.Get("dataset")
		d := ui.Demo{Name: attributes.Get("demo").String(), Question: card.Get("textContent").String(),
			Title: attributes.Get("title").String(), URL: attributes.Get("file").String(), Opens: attributes.Get("opens").String(),
			Source: web.Text(attributes, "source")}
		// If a card lacks these numbers, its demo is not recognised in any result.
		d.References, _ = strconv.ParseUint(attributes.Get("references").String(), 10, 64)
		d.Lines, _ = strconv.ParseUint(attributes.Get("lines").String(), 10, 64)
		lesson := card.Call("closest", ".card").Call("querySelectorAll", "[data-view]")
		for j := range lesson.Length() {
			s := lesson.Index(j)
			d.Lesson = append(d.Lesson, ui.Sentence{Text: s.Get("textContent").String(), Tab: state.TabOf(s.Get("dataset").Get("view").String())})
		}
		if p := card.Call("closest", ".card").Call("querySelector", "[data-predict]"); p.Truthy() {
			attributes := p.Get("dataset")
			d.Ask, d.Why = attributes.Get("predict").String(), attributes.Get("why").String()
			d.Right, _ = strconv.Atoi(attributes.Get("right").String())
			choices := p.Get("children")
			for j := range choices.Length() {
				d.Choices = append(d.Choices, choices.Index(j).Get("textContent").String())
			}
		}
		b.demos = append(b.demos, d)
	}
	return b.demos
}

// Remember stores a short text in this browser.
func (b *browser) Remember(name, text string) {
	defer func() { _ = recover() }() // panics if storage is disabled
	js.Global().Get("localStorage").Call("setItem", name, text)
}

// Remembered returns the text that was stored under a name; "" if there is none.
func (b *browser) Remembered(name string) (text string) {
	defer func() { _ = recover() }()
	if v := js.Global().Get("localStorage").Call("getItem", name); v.Type() == js.TypeString {
		text = v.String()
	}
	return text
}

// Copy copies text to the clipboard.
func (b *browser) Copy(text string) error {
	clipboard := js.Global().Get("navigator").Get("clipboard")
	if !clipboard.Truthy() {
		return errNoClipboard
	}
	_, err := web.Await(clipboard.Call("writeText", text))
	return err
}

// Save downloads content as a file with the given name.
func (b *browser) Save(name, mediaType string, content []byte) {
	blob := js.Global().Get("Blob").New([]any{web.Array(content)}, map[string]any{"type": mediaType})
	script("Charts").Call("save", blob, name)
}

// SavePicture downloads a picture of a chart as drawn.
func (b *browser) SavePicture(chart, name string) {
	script("Charts").Call("savePicture", chart, name)
}

// Pick opens the file picker. Browsers allow this only during a click.
func (b *browser) Pick() { element("file").Call("click") }

// Hash returns the URL's hash, without "#".
func (b *browser) Hash() string {
	return strings.TrimPrefix(js.Global().Get("location").Get("hash").String(), "#")
}

// SetHash changes the URL's hash without a hashchange event. Replacing the hash takes several
// milliseconds, and Safari allows only 100 replacements in 30 seconds. SetHash therefore sets at
// most mostHashes hashes immediately, for single clicks and keys. If more hashes follow within
// hashPause, for example from a slider, SetHash sets only the last of these hashes.
func (b *browser) SetHash(hash string, replace bool) {
	switch {
	case !replace:
		b.finishHash()
		writeHash("pushState", hash)
	case b.hashes == mostHashes:
		b.hash, b.hashWaits = hash, true
	default:
		writeHash("replaceState", hash)
		b.hashWaits = false
		b.hashes++
		time.AfterFunc(hashPause, func() {
			if b.hashes--; b.hashWaits {
				b.SetHash(b.hash, true)
			}
		})
	}
}

const (
	mostHashes = 4
	hashPause  = 1250 * time.Millisecond
)

// finishHash sets the pending hash, if there is one. finishHash is called before the browser
// follows a link. It needs no lock, because it does not block.
func (b *browser) finishHash() {
	if b.hashWaits {
		b.hashWaits = false
		writeHash("replaceState", b.hash)
	}
}

func writeHash(method, hash string) {
	url := js.Global().Get("location").Get("pathname").String() + js.Global().Get("location").Get("search").String()
	if hash != "" {
		url += "#" + hash
	}
	js.Global().Get("history").Call(method, js.Null(), "", url)
}

// ShowProgress implements [ui.Port].
func (b *browser) ShowProgress(bar state.RunBar) bool {
	length, percent := element("run-progress"), element("run-percent")
	facts := make([]js.Value, len(bar.Facts))
	for i, f := range bar.Facts {
		if facts[i] = element("run-" + f.ID); facts[i].IsNull() || f.Share != "" && facts[i].Get("nextElementSibling").IsNull() {
			return false
		}
	}
	if length.IsNull() || percent.IsNull() {
		return false
	}
	if bar.Known {
		length.Set("value", bar.Value())
	}
	percent.Set("textContent", bar.Percent)
	for i, f := range bar.Facts {
		facts[i].Set("textContent", f.Value)
		if f.Share != "" {
			facts[i].Get("nextElementSibling").Set("value", f.Share)
		}
	}
	return true
}

// Breathe implements [ui.Port].
func (b *browser) Breathe() { web.Yield() }

// ShowFirst shows or hides the static first screen.
func (b *browser) ShowFirst(show bool) {
	for _, id := range []string{"first", "about"} {
		element(id).Set("hidden", !show)
	}
}

// ShowInterrupted implements [ui.Port].
func (b *browser) ShowInterrupted(text string, resumable bool) {
	note := element("interrupted")
	note.Set("hidden", text == "")
	note.Get("firstElementChild").Set("textContent", text)
	element("interrupted-resume").Set("hidden", !resumable)
}

// SetTitle sets the title of the window.
func (b *browser) SetTitle(title string) { document().Set("title", title) }

// Announce announces text to screen readers.
func (b *browser) Announce(text string) { element("live").Set("textContent", text) }

// Focus moves the focus after the next render.
func (b *browser) Focus(id string) { b.focus, b.restore = id, false }

// RestoreFocus moves the focus after the next render if no element has the focus then.
func (b *browser) RestoreFocus(id string) {
	if b.focus == "" {
		b.focus, b.restore = id, true
	}
}

// Now returns the current time.
func (b *browser) Now() time.Time { return time.Now() }
