package ui

import (
	"bytes"
	"errors"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stackglass/stackglass/core/analysis"
	_ "github.com/stackglass/stackglass/core/analysis/sample/estimate" // the import registers the analysis of samples
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/open"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/profile/memstore"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/stack/stacktest"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
	"github.com/stackglass/stackglass/ui/state"
	"github.com/stackglass/stackglass/workers"
	"github.com/stackglass/stackglass/workers/answerers"
	"github.com/stackglass/stackglass/workers/local"
	"github.com/vugu/vugu"
	"github.com/vugu/vugu/staticrender"
)

// A desk is a page without a browser. A desk has a Port that records events, and real hosts that
// run analyses in goroutines.
type desk struct {
	t     *testing.T
	app   *App
	root  *Root
	store *memstore.Store

	mu      sync.Mutex
	hash    string
	history []string // the browser history: the hashes to which the Back button returns
	demos   []Demo   // demos of the page, or nil for two default demos
	first   bool
	focus   string
	charts  map[string]*state.Chart
	zooms   map[string]state.Zoom
	grids   map[string]*state.Grid

	remembered map[string]string
	heat       *state.HeatMap
	graph      *state.Graph
	timeline   *state.Timeline
	matrices   map[string]*state.Matrix
	flames     map[string]*state.Flame
	saved      map[string][]byte
	said       []string
	picked     int

	restored string // the last id for RestoreFocus

	interrupted string // the text about an interrupted analysis on the first screen
	resumable   bool   // whether a button beside this text resumes the analysis

	settings state.Settings

	connect         func() (workers.Carrier, error)
	checkpointBytes uint64
	// whether the worker spills its stacks from the start
	outside bool
	fileOf  func(content []byte) io.Reader // reader of the content, or nil to read the given bytes
}

func newDesk(t *testing.T) *desk {
	d := &desk{t: t, store: new(memstore.Store), charts: map[string]*state.Chart{}, zooms: map[string]state.Zoom{}, grids: map[string]*state.Grid{}, matrices: map[string]*state.Matrix{}, flames: map[string]*state.Flame{}, saved: map[string][]byte{}}
	d.app = &App{Env: vugu.NewEventEnvImpl(new(sync.RWMutex), make(chan bool, 64)), Port: d, Store: d.store}
	d.root = NewRoot(d.app)
	d.connect = d.host
	d.app.Start("")
	return d
}

func (d *desk) host() (workers.Carrier, error) {
	asker, other := local.Pair()
	h := workers.Host{
		Carrier: other, Store: d.store, CheckpointBytes: d.checkpointBytes,
		OpenFile: func(attachment any) (io.ReadCloser, uint64, error) {
			content := attachment.([]byte)
			var r io.Reader = bytes.NewReader(content)
			if d.fileOf != nil {
				r = d.fileOf(content)
			}
			return io.NopCloser(r), uint64(len(content)), nil
		},
		OpenTrace: func(name string, r io.Reader, format string, watch func() error) (trace.Reader, error) {
			return open.Open(name, r, open.Options{Format: format, Watch: watch})
		},
	}
	if d.outside {
		h.Live = func() uint64 { return 1 << 40 }
		h.OpenShelf = func(string, bool) (stack.Shelf, func(), error) { return new(stacktest.Shelf), func() {}, nil }
	}
	go h.Serve()
	return asker, nil
}

func (d *desk) Connect(analysis.Spec) (workers.Carrier, error) { return d.connect() }
func (d *desk) Fetch(url, name string) (File, error) {
	content, err := os.ReadFile("../site/" + url)
	return fileWith(name, content), err
}
func (d *desk) Remember(name, text string) {
	if d.remembered == nil {
		d.remembered = map[string]string{}
	}
	d.remembered[name] = text
}
func (d *desk) Remembered(name string) string { return d.remembered[name] }
func (d *desk) Demos() []Demo {
	if d.demos != nil {
		return d.demos
	}
	return []Demo{{Name: naive, Question: "How small may it be?", References: 66560, Lines: 384,
		Lesson: []Sentence{{Text: "A column needs 32 lines.", Tab: state.TabCaches}, {Text: "Then B.", Tab: state.TabLocality}}},
		{Name: "matmul-blocked", References: 73728, Lines: 384, Opens: "view=caches&levels=L1.8192.8.64_L2.65536.8.64"}}
}
func (d *desk) Answerer() (workers.Carrier, error) {
	asker, other := local.Pair()
	h := workers.AnswerHost{Carrier: other, Open: answerers.All(func(name, format string, attachment any) (trace.Reader, io.Closer, error) {
		r, err := open.Open(name, bytes.NewReader(attachment.([]byte)), open.Options{Format: format})
		return r, io.NopCloser(nil), err
	})}
	go func() { _ = h.Serve() }()
	return asker, nil
}
func (d *desk) Copy(text string) error                { d.saved["clipboard"] = []byte(text); return nil }
func (d *desk) Settings() state.Settings              { return d.settings }
func (d *desk) Heat(m *state.HeatMap)                 { d.heat = m }
func (d *desk) Matrix(m *state.Matrix)                { d.matrices[m.ID] = m }
func (d *desk) Timeline(t *state.Timeline)            { d.timeline = t }
func (d *desk) Graph(g *state.Graph)                  { d.graph = g }
func (d *desk) Flame(f *state.Flame)                  { d.flames[f.ID] = f }
func (d *desk) Grid(g *state.Grid)                    { d.grids[g.ID] = g }
func (d *desk) Chart(c *state.Chart, zoom state.Zoom) { d.charts[c.ID], d.zooms[c.ID] = c, zoom }
func (d *desk) SavePicture(_, _ string)               {}
func (d *desk) Pick()                                 { d.picked++ }
func (d *desk) Hash() string                          { return d.hash }
func (d *desk) ShowProgress(state.RunBar) bool        { return false }
func (d *desk) Breathe()                              { runtime.Gosched() }
func (d *desk) ShowFirst(show bool)                   { d.first = show }
func (d *desk) ShowInterrupted(s string, button bool) { d.interrupted, d.resumable = s, button }
func (d *desk) SetTitle(string)                       {}
func (d *desk) Announce(text string)                  { d.said = append(d.said, text) }
func (d *desk) Focus(id string)                       { d.focus = id }
func (d *desk) RestoreFocus(id string)                { d.restored = id }
func (d *desk) Now() time.Time                        { return time.UnixMilli(1_800_000_000_000) }
func (d *desk) SetHash(hash string, replace bool) {
	if !replace {
		d.history = append(d.history, d.hash)
	}
	d.hash = hash
}

// The method "back" acts like the browser's Back button.
func (d *desk) back() {
	d.hash = d.history[len(d.history)-1]
	d.history = d.history[:len(d.history)-1]
	d.app.Navigate("#" + d.hash)
}
func (d *desk) Save(name, _ string, content []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.saved[name] = content
}

func fileWith(name string, content []byte) File {
	return File{Name: name, Bytes: uint64(len(content)), Ref: content, Read: func(most int) ([]byte, error) {
		if most > 0 && most < len(content) {
			return content[:most], nil
		}
		return content, nil
	}}
}

// The function "facts" returns the hash of the diagnosis view in which the facts about the run are
// expanded.
func facts(s state.Screen) string {
	s = s.With(state.TabDiagnosis)
	s.Facts = true
	return "#" + s.Hash()
}

func (d *desk) html() string {
	d.t.Helper()
	d.app.Env.RLock()
	defer d.app.Env.RUnlock()
	env, err := vugu.NewBuildEnv(d.app.Env)
	if err != nil {
		d.t.Fatal(err)
	}
	var out bytes.Buffer
	if err := staticrender.New(&out).Render(env.RunBuild(d.root)); err != nil {
		d.t.Fatal(err)
	}
	return strings.ReplaceAll(out.String(), "\u202f", " ")
}

func (d *desk) wants(parts ...string) {
	d.t.Helper()
	page := d.html()
	for _, part := range parts {
		if !strings.Contains(page, strings.ReplaceAll(part, "\u202f", " ")) {
			d.t.Errorf("the page lacks %q:\n%s", part, page)
		}
	}
}

func (d *desk) entries() []profile.Entry {
	list, err := d.store.List()
	if err != nil {
		d.t.Fatal(err)
	}
	return list
}

// The method "act" runs a function like an event handler, with the lock held.
func (d *desk) act(f func()) {
	d.app.Env.Lock()
	f()
	d.app.Env.UnlockRender()
}

const naive = "matmul-naive"

func demoItem() Item {
	return Item{Demo: naive, URL: "demos/" + naive + ".sgt", Title: "Matrix multiplication"}
}

// textItem returns a file that needs many reads, with a trace that contains no instructions.
func textItem() Item { return Item{File: fileWith("a.lackey.lz4", tracetest.Packed())} }

func TestResultOfDemo(t *testing.T) {
	d := newDesk(t)
	d.wants(`id="kept-empty"`)
	d.app.Offer(demoItem())
	d.wants("Matrix multiplication", `class="chip complete"`, "66 560", `id="level-1"`, `aria-current="page"`)
	if d.first || !strings.HasPrefix(d.hash, "open=") || d.charts["curve"] == nil {
		t.Errorf("first screen shown = %v, hash = %q, charts = %v; want the result with a curve", d.first, d.hash, d.charts)
	}
	if e := d.entries(); len(e) != 1 || e[0].State != profile.EntryComplete || e[0].References != 66560 {
		t.Errorf("kept: %+v", e)
	}
	d.wants(`id="lesson"`, "How small may it be?", "A column needs 32 lines.", "See Locality")
	if page := d.html(); strings.Contains(page, "See Caches") {
		t.Error("the lesson links to the view that is already shown")
	}
	for tab, want := range map[state.Tab]string{
		state.TabDiagnosis: `id="facts-open"`, state.TabLocality: `id="capacities"`, state.TabCode: `id="code"`, state.TabThreads: `id="missing"`,
	} {
		d.app.Navigate("#" + d.app.Screen.With(tab).Hash())
		d.wants(want)
	}
	d.app.Navigate(facts(d.app.Screen))
	d.wants(`id="finding-footprint"`)
	key := d.app.Screen.Open
	d.app.Navigate("")
	d.wants(`data-name="Matrix multiplication"`, "66.6 k", `id="open-`+key+`"`)
	if d.focus != "demo-"+naive {
		t.Errorf("focus after closing a result opened from a card = %q, want the card", d.focus)
	}
	d.app.Navigate("#open=" + key)
	d.app.Navigate("")
	if d.focus != "open-"+key {
		t.Errorf("focus after closing a result opened from a row = %q, want the row", d.focus)
	}
}

// TestLastLinkWins checks that, after two links are followed in quick succession, the page and the
// URL match the second link, even if a change to the screen was pending.
func TestLastLinkWins(t *testing.T) {
	d := newDesk(t)
	d.app.Offer(demoItem())
	key := d.app.Screen.Open
	caches := d.app.Screen.With(state.TabCaches).Hash()
	for range 100 {
		d.app.Navigate("#open=" + key)
		d.act(func() {
			d.hash = caches
			d.app.Follow(d.hash)
			d.hash = ""
			d.app.Follow(d.hash)
			d.app.goTo(d.app.Screen.With(state.TabLocality), true)
		})
		until(t, func() (yes bool) {
			d.act(func() { yes = d.app.Screen.Open == "" })
			return yes
		})
		runtime.Gosched()
		d.act(func() {
			if d.app.Screen.Open != "" || d.hash != "" {
				t.Fatalf("open analysis = %q, hash of the URL = %q; want the analysis of the second link in both", d.app.Screen.Open, d.hash)
			}
		})
	}
}

func TestTableAndExports(t *testing.T) {
	d := newDesk(t)
	d.app.Offer(demoItem())
	d.act(func() { d.app.goTo(d.app.Screen.Toggle("curve"), true) })
	d.wants(`id="table-curve"`, "2.31 KiB", "4 352")
	d.act(func() { d.app.SaveCSV("curve"); d.app.SaveProfile() })
	if csv := string(d.saved["Matrix multiplication-curve.csv"]); !strings.Contains(csv, "\n2368,37,4352,") {
		t.Errorf("CSV %q", csv)
	}
	saved := d.saved["Matrix multiplication.sgp"]
	if p, err := profile.Decode(saved); err != nil || p.Totals.AllReferences() != 66560 {
		t.Fatalf("exported profile: %v", err)
	}
	// An imported profile becomes a separate analysis, whatever its name.
	d.app.Offer(Item{File: fileWith("from a friend", saved)})
	d.wants("from a friend", `class="chip complete"`)
	if e := d.entries(); len(e) != 2 || e[0].Digest != e[1].Digest {
		t.Errorf("kept: %+v", e)
	}
}

func TestWhatIf(t *testing.T) {
	d := newDesk(t)
	d.app.Offer(demoItem())
	d.app.Move(1, 2048)
	d.act(func() { d.app.StepWays(1, 1) })
	d.act(func() { d.app.StepWays(1, 1) })
	d.wants("33 920", "exact for LRU", `class="chip exact"`, "fully associative")
	if s := state.ParseScreen(d.hash); len(s.Levels) == 0 || s.Levels[0].SizeBytes != 2048 || s.Levels[0].Ways != 0 || s.Levels[1].LatencyCycles != 14 {
		t.Errorf("hash %q", d.hash)
	}
	d.act(func() { d.app.StepWays(1, -1) })
	d.wants("16 ways", "misses by SDCM", "29 343")
	d.act(func() { d.app.SetPreset("sasmm") })
	d.wants("8 KiB", "8 ways", "The setting of PPT-SASMM")
	d.act(func() { d.app.SetLatency(1, "") })
	d.wants("enter the latency of L1")
	d.app.Move(9, 2048) // the hierarchy has no such level
}

// TestOneHierarchyForAllViews checks that the hierarchy that is selected in the header applies to
// all views, and that the next analysis uses the selected hierarchy and processor.
func TestOneHierarchyForAllViews(t *testing.T) {
	d := newDesk(t)
	d.app.Offer(demoItem())
	d.act(func() { d.app.SetPreset("i7-6700"); d.app.SetProcessor("neoverse-n1") })
	for _, tab := range state.Tabs() {
		d.app.Navigate("#" + d.app.Screen.With(tab).Hash())
		if n := strings.Count(d.html(), `preset" `) + strings.Count(d.html(), `preset">`); n != 1 || d.app.Machine().Name != "i7-6700" {
			t.Errorf("%s: hierarchy = %s with %d controls to choose it, want i7-6700 and one control", tab.Name(), d.app.Machine().Name, n)
		}
	}
	d.app.Offer(textItem())
	if s := d.app.Screen; s.Preset != "i7-6700" || s.Processor != "neoverse-n1" {
		t.Errorf("preset and processor of the next analysis = %q and %q, want i7-6700 and neoverse-n1", s.Preset, s.Processor)
	}
}

func TestEditAndCompareHierarchies(t *testing.T) {
	d := newDesk(t)
	d.app.Offer(demoItem())
	d.act(func() { d.app.SetPreset("i7-6700") })
	d.wants(`id="average"`, "cycles", "ns", "2015 (Skylake)")
	d.act(func() { d.app.KeepBeside(false) })
	d.act(d.app.AddLevel)
	d.act(func() { d.app.SetLatency(4, "60,5") })
	d.act(func() { d.app.RemoveLevel(1) })
	d.wants(`id="level-3"`, "L4", `id="table-against"`, "A compared with B: L2=", " and i7-6700", "average access time (cycles)")
	s := state.ParseScreen(d.hash)
	if len(s.Levels) != 3 || s.Levels[2].LatencyCycles != 60.5 || s.Memory.LatencyCycles != 246 || s.ClockGHz != 4 || !slices.Equal(s.Beside, []string{"i7-6700", "threads=own-cores"}) {
		t.Errorf("hash %q", d.hash)
	}
	for _, text := range []string{"fast", "-5", "0", "1e99"} { // the hierarchy stays unchanged
		d.act(func() { d.app.Note = ""; d.app.SetLatency(1, text) })
		d.wants("“"+text+"” is not accepted", "number above zero")
	}
	d.act(func() { d.app.SetMemory("", func(s *state.Screen, x float64) { s.Memory.LatencyCycles = x }) })
	d.wants("enter the latency of memory")
	if s := state.ParseScreen(d.hash); s.Levels[0].LatencyCycles != 12 || s.Memory.LatencyCycles != 0 {
		t.Errorf("hash %q", d.hash)
	}
	d.app.SaveCSV("against")
	d.act(func() { d.app.KeepBeside(true) })
	if page := d.html(); strings.Contains(page, `id="table-against"`) {
		t.Error("the page still shows hierarchy B after B was removed")
	}
}

// TestFocusMovesToExistingElement checks that, if the focused element disappears, another element
// receives the focus.
func TestFocusMovesToExistingElement(t *testing.T) {
	d := newDesk(t)
	d.app.Offer(demoItem())
	now := func(what, want string, f func()) {
		t.Helper()
		d.focus = ""
		d.act(f)
		if d.focus != want || !strings.Contains(d.html(), `id="`+want+`"`) {
			t.Errorf("%s: focus = %q, want %q, an element of the page", what, d.focus, want)
		}
	}
	for len(d.app.Levels()) < state.MaxLevels-1 {
		now("another level", "level-add", d.app.AddLevel)
	}
	now("the last level", "size-"+strconv.Itoa(state.MaxLevels), d.app.AddLevel)
	now("one less", "level-add", func() { d.app.RemoveLevel(1) })
	d.act(func() { d.app.KeepBeside(false) })
	now("A alone", "machine-keep", func() { d.app.KeepBeside(true) })
	d.act(func() { d.app.Problem = "Something." })
	now("dismiss", "result-title", d.app.Dismiss)
	d.act(func() { d.app.SetPreset("sasmm") })
	for d.app.Levels()[0].Ways != 0 {
		d.act(func() { d.app.StepWays(1, 1) })
	}
	d.wants(`aria-disabled="true"`)
	d.app.Navigate("#open=" + d.app.Screen.Open + "&view=caches&preset=i7-6700")
	for range 9 {
		d.act(func() { d.app.StepWays(1, 9) })
	}
	if d.app.Screen.Levels != nil {
		t.Error("a step beyond the end of the range replaced the preset with custom sizes")
	}
}

// TestOpenHierarchyFile checks that a file that describes a hierarchy is accepted in any view that
// shows a hierarchy. If the user selects a different kind of file, the error must contain the
// reason for the rejection.
func TestOpenHierarchyFile(t *testing.T) {
	d := newDesk(t)
	d.app.Offer(demoItem())
	d.app.Offer(Item{File: fileWith("mine.json", []byte(`{"levels": [{"name": "L1", "size": "1KiB", "ways": 4, "latency_cycles": 2}], "memory": {"latency_cycles": 50}, "clock_ghz": 1}`))})
	d.wants("1 KiB", "4 ways", "the hierarchy of mine.json", `id="average"`, `id="note-dismiss"`)
	d.act(func() { d.app.SetPreset("i7-6700") })
	if page := d.html(); strings.Contains(page, "mine.json") {
		t.Error("the page names mine.json after a preset was chosen")
	}
	d.app.Offer(Item{File: fileWith("tlbs.conf", []byte("L1=1KiB,4\nDTLB=16,full,tlb\npages=2MiB\n"))})
	for range 2 { // the second time, the page shows the hierarchy of the link
		if h := d.app.Machine(); len(h.TLBs) != 1 || h.TLBs[0].Lines() != 16 || h.PageBytes != 2<<20 {
			t.Errorf("TLBs and page size = %v and %d, want those of tlbs.conf", h.TLBs, h.PageBytes)
		}
		d.act(func() { d.app.Screen = state.ParseScreen(d.app.Screen.Hash()) })
	}
	d.act(func() { d.app.SetPreset("i7-6700") })
	d.act(func() { d.app.SetSize(1, 1<<10) })
	if h := d.app.Machine(); len(h.TLBs) < 3 {
		t.Errorf("TLBs after a change to a cache = %v, want those of the preset", h.TLBs)
	}
	d.app.Offer(Item{File: fileWith("caches.conf", []byte("L1=1KiB,4\n"))})
	if h := d.app.Machine(); h.TLBs != nil {
		t.Errorf("TLBs = %v, want none, as in caches.conf", h.TLBs)
	}
	d.act(d.app.PickMachine)
	d.app.Offer(Item{File: fileWith("broken.json", []byte("{\n\"levels\": 3}"))})
	d.wants("broken.json does not describe a hierarchy that the page supports", "line 2")
	if len(d.entries()) != 1 || d.picked != 1 {
		t.Errorf("kept analyses = %d, opened file pickers = %d; want 1 and 1", len(d.entries()), d.picked)
	}
	d.app.Offer(textItem()) // a dropped trace is still analysed as a trace
	if len(d.entries()) != 2 {
		t.Errorf("kept analyses after a trace = %d, want 2", len(d.entries()))
	}
}

// TestTranslation checks that the button shows and hides the TLBs, that answers are announced, and
// that a sentence explains missing tables.
func TestTranslation(t *testing.T) {
	d := newDesk(t)
	d.app.Offer(demoItem())
	d.act(func() { d.app.goTo(d.app.Screen.With(state.TabCaches), false) })
	for _, c := range []struct{ preset, said string }{{"i7-6700", "for pages of 4\u202fKiB"}, {"apple-m1", "no TLBs"}} {
		d.act(func() { d.app.SetPreset(c.preset) })
		d.act(func() { d.app.Choose("pages=4KiB") })
		d.html()
		d.await(func() bool {
			return slices.ContainsFunc(d.said, func(text string) bool { return strings.Contains(text, c.said) })
		})
		d.wants("hide TLBs", `id="table-sources"`)
		d.act(func() { d.app.Choose("pages=") })
		if page := d.html(); strings.Contains(page, `id="table-sources"`) || strings.Contains(page, `id="pages-note"`) {
			t.Error("the tables are still shown after they were hidden")
		}
	}
}

func TestAssociativity(t *testing.T) {
	d := newDesk(t)
	d.app.Offer(demoItem())
	d.act(func() { d.app.goTo(d.app.Screen.With(state.TabAssociativity), false) })
	d.wants(`id="chart-sets"`, `id="cell-conflict"`, "64 sets, 12 ways", "48 KiB")
	d.app.MoveCell(2, 8)
	d.wants("4 sets, 8 ways", "2 KiB: 32 lines of 64 bytes")
	if d.heat == nil || d.heat.Cell != (state.Cell{Log2Sets: 2, Ways: 8}) || !strings.Contains(d.said[len(d.said)-1], "4 sets, 8 ways") {
		t.Errorf("map = %+v, announcements = %q; want the cell of 4 sets and 8 ways in both", d.heat, d.said)
	}
	d.act(func() { d.app.ShowConflicts(true) })
	d.wants("Conflict misses by sets and ways")
	if !d.heat.Signed {
		t.Error("the map of conflict misses does not have a signed scale")
	}
	d.act(func() { d.app.goTo(d.app.Screen.Toggle("sets"), true) })
	d.wants(`id="table-sets"`, "rows 1 to 20 of 550")
	d.app.SaveCSV("sets")
	if csv := string(d.saved["Matrix multiplication-sets.csv"]); strings.Count(csv, "\n") != 551 || !strings.HasPrefix(csv, "sets,ways,line,accesses,misses") {
		t.Errorf("CSV: %.100s", csv)
	}
	d.act(d.app.AskCell)
	d.wants(`id="level-1"`, "2 KiB", "8 ways")
	d.app.MoveCell(99, 99) // the selected cell is moved to the nearest cell on the map
	if d.app.Screen.Cell != (state.Cell{Log2Sets: 16, Ways: 32}) {
		t.Errorf("cell after a move beyond the map = %+v, want the last cell", d.app.Screen.Cell)
	}
}

// TestRefusals checks that no dropped file crashes the page, and that every rejection contains the
// reason.
func TestRefusals(t *testing.T) {
	d := newDesk(t)
	for name, content := range map[string]string{
		"unknown.bin": "\x00\x01\x02 nothing that is known", "empty": "", "broken.sgp": "no profile",
	} {
		d.app.Offer(Item{File: fileWith(name, []byte(content))})
		if d.app.Problem == "" || d.app.run != nil || !d.first && d.app.Screen.Open != "" {
			t.Errorf("%s: problem = %q, run = %v; want a problem and no run", name, d.app.Problem, d.app.run)
		}
		d.wants(`role="alert"`)
		d.act(d.app.Dismiss)
	}
	if len(d.entries()) != 0 {
		t.Errorf("kept: %+v", d.entries())
	}
	d.app.Navigate("#open=nothing-there&view=caches")
	if d.app.Problem == "" || d.app.Screen.Open != "" {
		t.Errorf("problem %q, screen %+v", d.app.Problem, d.app.Screen)
	}
	d.connect = func() (workers.Carrier, error) { return nil, errors.New("no workers today") }
	d.app.Offer(demoItem())
	if !strings.Contains(d.app.Problem, "no workers today") || d.app.run != nil {
		t.Errorf("problem %q", d.app.Problem)
	}
}

// TestUnknownLink checks that, if a link leads to a result that is not stored, the page shows
// advice and removes nothing from the list. The test opens the page with such a link.
func TestUnknownLink(t *testing.T) {
	d := newDesk(t)
	d.app.Offer(demoItem())
	key := d.app.Screen.Open
	if err := d.store.Put(profile.Entry{Key: "half", Name: "half.sgt", State: profile.EntryInterrupted}, nil); err != nil {
		t.Fatal(err)
	}
	for link, want := range map[string]string{"tdeadbeef": "is not kept in this browser", "half": "Press “resume”"} {
		app := &App{Env: d.app.Env, Port: d, Store: d.store}
		d.app, d.root = app, NewRoot(app)
		if page := d.html(); strings.Contains(page, `id="kept-empty"`) || !strings.Contains(page, `id="kept-reading"`) {
			t.Error("the page shows an empty list before it has read the list")
		}
		app.Start("#open=" + link)
		d.wants(want, `id="open-`+key+`"`, "resume half.sgt")
		if app.Screen.Open != "" || strings.Contains(app.Problem, "no such entry") {
			t.Errorf("link %s: problem = %q, screen = %+v; want the first screen", link, app.Problem, app.Screen)
		}
	}
}

// TestOpenFileWithUnknownTime checks that, if the browser does not report when a file was changed,
// a second analysis of the file is a separate entry. The file name's extensions must determine the
// format.
func TestOpenFileWithUnknownTime(t *testing.T) {
	d := newDesk(t)
	for range 3 {
		d.app.Offer(textItem())
		d.wants(`class="chip complete"`)
	}
	d.wants(">a.lackey.lz4<", ">a (2).lackey.lz4<", ">a (3).lackey.lz4<")
	d.app.Offer(demoItem())
	d.app.Offer(demoItem())
	if n := len(d.entries()); n != 4 {
		t.Errorf("kept analyses after a file was dropped three times and a demo was opened twice = %d, want 4", n)
	}
}

// TestInvalidLink checks that, if parts of a link are invalid, the page reports these parts, and
// changes the URL to match the view.
func TestInvalidLink(t *testing.T) {
	d := newDesk(t)
	d.app.Offer(demoItem())
	d.wants("No line size is selected")
	open := "open=" + d.app.Screen.Open
	for part, want := range map[string]string{
		"levels=nonsense": "at most 5", "levels=" + strings.Repeat("L1.64.1.64_", 5) + "L6.64.1.64": "at most 5",
		"levels=L1.32768.7.64": "the nearest possible", "cell=3x99": "SETSxWAYS", "preset=none-such": "a preset that the page does not know",
		"against=none-such": "a hierarchy that does not exist", "against=L1=3B,8": "a hierarchy that does not exist",
	} {
		d.app.Navigate("#" + open + "&view=caches&" + part)
		d.wants(want)
		if strings.Contains(d.hash, part) && part != "preset=none-such" && !strings.HasPrefix(part, "against=") {
			t.Errorf("the invalid part %s is still in the hash %q", part, d.hash)
		}
	}
	d.app.Navigate("#" + open + "&view=caches&levels=L1.32768.8.64.l4&cell=64x8&preset=i7-6700&against=i7-4770K&against=threads=one-core")
	if d.app.Note != "" {
		t.Errorf("note after a valid link = %q, want none", d.app.Note)
	}
}

// TestTwoBadFiles checks that, if several files are dropped together, the page shows the error in
// each of them, and mentions waiting files only while they wait.
func TestTwoBadFiles(t *testing.T) {
	d := newDesk(t)
	d.app.Offer(Item{File: fileWith("one.bin", []byte("\x00\x01 nothing"))})
	d.app.Offer(Item{File: fileWith("two.bin", []byte("\x00\x02 nothing")), More: true})
	d.wants("one.bin is not in a supported format", "two.bin is not in a supported format", "<details>")
	d.act(func() { d.app.waiting = []Item{{File: File{Name: "three"}}, {File: File{Name: "four"}}} })
	d.wants("three is next, then four.")
	d.act(func() { d.app.waiting = nil })
	d.app.Offer(demoItem())
	if page := d.html(); strings.Contains(page, ".bin") || strings.Contains(page, `id="waiting"`) {
		t.Error("the page still shows the problems of earlier files")
	}
}

// The type "failing" is a reader that fails in the middle of a file.
type failing struct {
	r    io.Reader
	left int
}

func (f *failing) Read(p []byte) (int, error) {
	if f.left == 0 {
		return 0, errors.New("the disk went away")
	}
	n, err := f.r.Read(p[:min(len(p), f.left)])
	f.left -= n
	return n, err
}

func TestDamagedFileIsPartial(t *testing.T) {
	d := newDesk(t)
	d.fileOf = func(content []byte) io.Reader { return &failing{bytes.NewReader(content), len(content) / 2} }
	d.app.Offer(textItem())
	d.wants(`class="chip partial"`, "the disk went away")
	if e := d.entries(); len(e) != 1 || e[0].State != profile.EntryPartial {
		t.Errorf("kept: %+v", e)
	}
}

// The type "dying" is a worker that ends as soon as possible after it has sent a snapshot.
type dying struct {
	workers.Carrier
	ready func() bool
	seen  bool
}

func (c *dying) Receive() (workers.Message, error) {
	if c.seen && c.ready() {
		c.Carrier.Close()
		return workers.Message{}, errors.New("exit code 2")
	}
	m, err := c.Carrier.Receive()
	c.seen = c.seen || m.Type == workers.TypeSnapshot
	return m, err
}

// The type "slow" is a reader that is slow enough for the analysis to send a snapshot before the
// trace ends.
type slow struct {
	r     io.Reader
	pause time.Duration
}

func (s *slow) Read(p []byte) (int, error) {
	time.Sleep(s.pause)
	return s.r.Read(p[:min(len(p), 64)])
}

func TestSnapshotIsKeptIfWorkerDies(t *testing.T) {
	d := newDesk(t)
	d.fileOf = func(content []byte) io.Reader { return &slow{bytes.NewReader(content), time.Millisecond} }
	d.connect = func() (workers.Carrier, error) {
		c, err := d.host()
		return &dying{Carrier: c, ready: func() bool { return true }}, err
	}
	d.app.Offer(textItem())
	d.wants("exit code 2", "The partial result is kept", `class="chip partial"`)
	if e := d.entries(); len(e) != 1 || e[0].State != profile.EntryPartial || e[0].References == 0 {
		t.Errorf("kept: %+v", e)
	}
}

// TestInterruptedRunResumes checks that, if the same file is dropped again after a crash, the
// analysis resumes and ends with the same digest.
func TestInterruptedRunResumes(t *testing.T) {
	whole := newDesk(t)
	whole.app.Offer(textItem())
	want := whole.entries()[0].Digest

	d := newDesk(t)
	d.checkpointBytes = 16 << 10
	d.fileOf = func(content []byte) io.Reader { return &slow{bytes.NewReader(content), time.Millisecond} }
	d.connect = func() (workers.Carrier, error) {
		c, err := d.host()
		return &dying{Carrier: c, ready: func() bool { return len(d.entries()) > 0 }}, err
	}
	d.app.Offer(textItem())
	if e := d.entries(); len(e) != 1 || e[0].State != profile.EntryInterrupted {
		t.Fatalf("kept: %+v", e)
	}
	d.app.Navigate("")
	d.wants("interrupted at", "resume a.lackey.lz4")
	d.act(func() { d.app.GoOn(d.app.Rows()[0]) })
	d.connect, d.fileOf = d.host, nil
	d.app.Offer(textItem())
	if e := d.entries(); d.picked != 1 || len(e) != 1 || e[0].State != profile.EntryComplete || e[0].Digest != want {
		t.Errorf("kept analyses = %+v, want one complete analysis with the digest %s", e, want)
	}
}

func TestSecondDroppedFileWaits(t *testing.T) {
	d := newDesk(t)
	d.fileOf = func(content []byte) io.Reader { return &slow{bytes.NewReader(content), time.Millisecond} }
	done := make(chan bool)
	go func() { d.app.Offer(textItem()); done <- true }()
	until(t, func() bool { return strings.Contains(d.html(), `id="run-cancel"`) })
	d.app.Offer(textItem())
	d.wants("is next.")
	until(t, func() bool { d.act(d.app.PauseOrResume); return strings.Contains(d.html(), "paused") })
	d.act(d.app.Cancel)
	<-done
	states := map[profile.EntryState]int{}
	for _, e := range d.entries() {
		states[e.State]++
	}
	if states[profile.EntryPartial] != 1 || states[profile.EntryComplete] != 1 {
		t.Errorf("kept: %+v", d.entries())
	}
}

// The function "until" waits until a goroutine makes a condition true.
func until(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the condition did not become true within 10 minutes")
		}
	}
}

// The method "await" waits until a goroutine makes a condition true. The method checks the
// condition with the lock held.
func (d *desk) await(ok func() bool) {
	d.t.Helper()
	until(d.t, func() (yes bool) {
		d.act(func() { yes = ok() })
		return yes
	})
}

// TestViewOtherResultDuringRun checks that, while an analysis is running, the user can view
// another analysis and return to the running analysis.
func TestViewOtherResultDuringRun(t *testing.T) {
	d := newDesk(t)
	d.app.Offer(textItem())
	kept := "#open=" + d.entries()[0].Key + "&view=diagnosis"
	d.fileOf = func(content []byte) io.Reader { return &slow{bytes.NewReader(content), time.Millisecond} }
	done := make(chan bool)
	go func() { d.app.Offer(textItem()); done <- true }()
	until(t, func() bool { return strings.Contains(d.html(), `class="chip growing"`) })
	running := "#" + d.app.Screen.Hash()
	d.app.Navigate(kept)
	d.wants(`class="chip complete"`, `id="run-cancel"`)
	d.app.Navigate(running)
	d.wants(`class="chip growing"`, `id="finding-footprint"`)
	d.app.Navigate(kept)
	d.act(d.app.Cancel)
	<-done
	d.wants(`class="chip complete"`, "is partial: stopped by the user")
	if d.app.Problem != "" {
		t.Errorf("problem after a cancelled run = %s, want none", d.app.Problem)
	}
}

func TestListOfKeptAnalyses(t *testing.T) {
	d := newDesk(t)
	d.app.Offer(demoItem())
	d.app.Navigate("")
	row := d.app.Rows()[0]
	d.act(func() { d.app.Edit(row) })
	d.wants(`id="rename-input"`)
	d.act(func() { d.app.newName = "  the naive one "; d.app.Rename() })
	until(t, func() bool { return strings.Contains(d.html(), `data-name="the naive one"`) })
	d.app.Export(row)
	until(t, func() bool { d.mu.Lock(); defer d.mu.Unlock(); return len(d.saved["Matrix multiplication.sgp"]) > 0 })
	d.act(func() { d.app.Doom(row.Key) })
	d.wants("Delete?")
	d.act(d.app.Delete)
	until(t, func() bool { return strings.Contains(d.html(), `id="kept-empty"`) })
	d.act(func() {
		if len(d.app.items) > 0 {
			t.Errorf("files of deleted analyses = %d, want 0", len(d.app.items))
		}
	})
}

func TestLineSizes(t *testing.T) {
	d := newDesk(t)
	d.settings = state.Settings{LineBytes: []string{"32", "128"}}
	d.app.Offer(demoItem())
	d.wants(`id="line-size"`, "32-byte")
	s := d.app.Screen
	s.LineBytes = 128
	d.app.Navigate("#" + s.Hash())
	d.wants("128-byte")
	// If the profile does not contain the line size, the prediction uses a different line size and
	// has a note about this. The line size stays selected while cache sizes are changed.
	d.act(func() { d.app.SetSize(2, 512<<10) })
	d.wants("L1 has 64-byte lines", `class="chip other lines"`)
	for _, l := range d.app.answer().Levels {
		if l.Chip == "exact" {
			t.Errorf("a prediction for a line size that the profile lacks is marked as exact: %+v", l)
		}
	}
}

func TestWithoutStore(t *testing.T) {
	d := newDesk(t)
	d.app.Store, d.app.NoStore = nil, "Nothing is kept here."
	d.wants("Nothing is kept here.")
	d.app.importProfile(fileWith("p.sgp", exported(t)))
	d.wants("Nothing is kept here.", `class="chip complete"`)
}

// TestCounters checks that the page shows a profile's counters for the whole program, for each
// function and for each block. The tables can be exported, and sorted by any column.
func TestCounters(t *testing.T) {
	d := newDesk(t)
	d.app.importProfile(fileWith("product.sgp", multiplied(t, analysis.Spec{Analyses: analysis.Locality | analysis.Counters})))
	d.app.Navigate(facts(d.app.Screen))
	d.wants(`id="finding-operations"`, "moves 16 bytes for each flop")
	s := d.app.Screen
	d.app.Navigate("#" + s.With(state.TabCounters).Hash())
	d.wants(`id="counters"`, `id="tab-counters"`, "Counters of the program", "bytes per flop", `id="table-types"`, `id="table-memory"`, "median reuse distance")
	d.act(func() { d.app.goTo(d.app.Screen.Summed(answers.ByFunction), true) })
	d.wants(`id="table-functions"`, `aria-sort="descending"`, "multiply.c")
	if !strings.Contains(d.hash, "by=function") {
		t.Errorf("hash = %s, want by=function in it", d.hash)
	}
	d.act(func() { d.app.goTo(d.app.Screen.Sorted("function"), true) })
	d.wants(`aria-sort="ascending"`)
	page := d.html()
	if strings.Index(page, ">main<") > strings.Index(page, ">multiply<") {
		t.Error("multiply is before main in a table sorted by name")
	}
	d.act(func() { d.app.SaveCSV("functions"); d.app.SaveJSON("functions") })
	csv, json := string(d.saved["product-functions.csv"]), string(d.saved["product-functions.json"])
	if !strings.HasPrefix(csv, "function,file,line,invocations,unique_bytes,bytes,") || !strings.Contains(json, `"schema": {"name": "stackglass.counters"`) || len(d.saved) != 2 {
		t.Errorf("saved %q and %q", csv, json)
	}
	d.act(func() { d.app.goTo(d.app.Screen.Summed(answers.ByBlock), true) })
	d.wants(`id="table-blocks"`, "products")
}

// TestProfileOfCountersOnly checks that, if a profile contains counters but no stack distances, the
// page shows the counters, and the other views explain why they are empty.
func TestProfileOfCountersOnly(t *testing.T) {
	d := newDesk(t)
	d.app.importProfile(fileWith("alone.sgp", multiplied(t, analysis.Spec{Analyses: analysis.Counters})))
	d.wants("contains no stack distances")
	d.app.Navigate("#" + d.app.Screen.With(state.TabCounters).Hash())
	d.wants(`id="table-counters"`)
}

// TestCountersOfAnyTrace checks that, if a trace has no instructions, it has no counters unless
// they are requested, and that the tab explains how to request them.
func TestCountersOfAnyTrace(t *testing.T) {
	d := newDesk(t)
	d.app.Offer(textItem())
	d.app.Navigate("#" + d.app.Screen.With(state.TabCounters).Hash())
	d.wants(`id="missing"`, "stackglass cc")
	d.settings.Touched = true
	d.app.Offer(textItem())
	d.app.Navigate("#" + d.app.Screen.With(state.TabCounters).Hash())
	d.wants(`id="table-types"`, "The trace contains no blocks")
}

// The function "multiplied" returns the encoded profile of a matrix multiplication.
func multiplied(t *testing.T, spec analysis.Spec) []byte {
	t.Helper()
	p, steps := tracetest.Multiplication(6)
	r, err := analysis.NewRunner(spec, tracetest.NewProgramReader(p, tracetest.Rows(p, steps...), 0))
	for err == nil {
		err = r.Step()
	}
	if err != io.EOF {
		t.Fatal(err)
	}
	return r.Finish(profile.State{}).Encode()
}

func exported(t *testing.T) []byte {
	r, err := open.Open("t", strings.NewReader(" L 1000,8\n S 1040,8\n L 1000,8\n"), open.Options{})
	if err != nil {
		t.Fatal(err)
	}
	runner, err := analysis.NewRunner(analysis.Spec{}, r)
	for err == nil {
		err = runner.Step()
	}
	if err != io.EOF {
		t.Fatal(err)
	}
	return runner.Profile(profile.State{}).Encode()
}

// TestFullStore checks that nothing is lost if the storage is full. The page must show the result
// and be able to export it, and earlier results must remain.
func TestFullStore(t *testing.T) {
	d := newDesk(t)
	d.app.Offer(demoItem())
	before := d.entries()
	d.store.Quota = before[0].Bytes
	d.settings.Touched = true
	d.app.Offer(demoItem())
	d.wants("storage is full", `id="level-1"`, `id="export-profile"`)
	if after := d.entries(); len(after) != 1 || after[0] != before[0] {
		t.Errorf("kept analyses = %+v, want %+v", after, before)
	}
	d.app.Offer(Item{File: fileWith("again.sgp", exported(t))})
	d.wants("not kept")
}

// TestRehearsalBuildsEveryView checks that the steps of the function Rehearse build every view of a
// result without errors.
func TestRehearsalBuildsEveryView(t *testing.T) {
	env, err := vugu.NewBuildEnv()
	if err != nil {
		t.Fatal(err)
	}
	var pages []string
	build := func(c vugu.Builder) {
		var out bytes.Buffer
		if err := staticrender.New(&out).Render(env.RunBuild(c)); err != nil {
			t.Error(err)
		}
		pages = append(pages, out.String())
	}
	for _, step := range Rehearse(build) {
		step()
	}
	for i, want := range []string{`id="facts-open"`, `id="level-1"`, `id="capacities"`} {
		if i >= len(pages) || !strings.Contains(pages[i], want) {
			t.Errorf("page %d of %d pages that Rehearse builds lacks %s", i, len(pages), want)
		}
	}
}

func TestFileName(t *testing.T) {
	for name, want := range map[string]string{"a/b:c": "a-b-c", "  ..": "analysis", "sort 1": "sort 1", "x\x00y": "x-y"} {
		if got := FileName(name); got != want {
			t.Errorf("FileName(%q) = %q, want %q", name, got, want)
		}
	}
}

// TestNoReferencesOfChosenKinds checks that, if the settings exclude all references in a trace, the
// page says so instead of showing numbers.
func TestNoReferencesOfChosenKinds(t *testing.T) {
	d := newDesk(t)
	d.settings = state.Settings{Kinds: "fetch"}
	d.app.Offer(Item{File: fileWith("loads.csv", []byte("address,rw,size\n0x1000,r,8\n0x2000,r,8\n"))})
	for _, tab := range []state.Tab{state.TabCaches, state.TabDiagnosis, state.TabLocality} {
		d.app.Navigate("#" + d.app.Screen.With(tab).Hash())
		d.wants(`id="missing"`, "The settings exclude all 2 references of this trace", "“fetch”", "choose other kinds")
	}
	if page := d.html(); strings.Contains(page, `class="chip exact"`) {
		t.Error("a page that shows no numbers is marked as exact")
	}
}

// TestAnswersAreAnnounced checks that the answer for a preset or a size is announced to screen
// readers.
func TestAnswersAreAnnounced(t *testing.T) {
	d := newDesk(t)
	d.app.Offer(demoItem())
	for _, do := range []func(){
		func() { d.app.SetPreset("opteron") }, func() { d.app.SetSize(1, 8<<10) }, func() { d.app.StepWays(1, 1) },
	} {
		d.said = nil
		d.act(do)
		if want := d.app.answer().Sentence(); len(d.said) != 1 || d.said[0] != want || !slices.ContainsFunc(d.app.answer().Levels[0].Numbers, func(f state.Fact) bool { return f.ID == "ratio" && strings.Contains(want, "misses "+f.Value) }) {
			t.Errorf("announcements = %q, want %q", d.said, want)
		}
	}
}

// TestSampleAndCores checks that, if the settings request a sample, every chart is marked as
// sampled, and the sampled and exact analyses are separate entries. Invalid settings must be
// reported.
func TestSampleAndCores(t *testing.T) {
	d := newDesk(t)
	d.settings = state.Settings{Sample: " space=0.5 ", Touched: true}
	d.app.Offer(demoItem())
	d.wants("sampled 50 % of the lines")
	d.app.Navigate("#" + d.app.Screen.With(state.TabLocality).Hash())
	if page := d.html(); strings.Contains(page, `class="chip exact"`) {
		t.Error("a chart of a sample is marked as exact")
	}
	first := d.app.Screen.Open
	d.settings = state.Settings{}
	d.app.Offer(demoItem())
	if d.app.Screen.Open == first || d.app.result.Profile.Sampled != nil {
		t.Errorf("sample of the exact analysis = %+v, want none", d.app.result.Profile.Sampled)
	}
	d.app.Navigate("#" + state.Screen{Open: d.app.Screen.Open, Other: first}.Hash())
	if how := d.app.method(); !strings.HasPrefix(how, "sampled") {
		t.Errorf("label of a comparison with a sample = %s, want sampled", how)
	}

	d.settings = state.Settings{Cores: "1,2/3,4"}
	d.app.Offer(threaded("ring"))
	if cores := d.app.threads().Cores; len(cores) != 2 || len(cores[0].Threads) != 2 {
		t.Errorf("cores %+v", cores)
	}
	for _, bad := range []state.Settings{{Cores: "1,x"}, {Sample: "half"}, {Sample: "onoff=1e6/1e3"}} {
		d.app.Offer(demoItem())
		d.settings = bad
		d.app.Offer(demoItem())
		if !strings.Contains(d.app.Problem, "The settings cannot be used") {
			t.Errorf("%+v: %q", bad, d.app.Problem)
		}
		d.act(d.app.Dismiss)
		d.settings = state.Settings{}
	}
}

// TestOpenUnchangedFileAgain checks that, if an unchanged file is opened again, the page shows its
// kept analysis. If the file or the settings have changed, the file must be analysed again.
func TestOpenUnchangedFileAgain(t *testing.T) {
	d := newDesk(t)
	item := textItem()
	item.File.Modified = 1_700_000_000_000
	d.app.Offer(item)
	first := d.app.Screen.Open
	names := func() (list []string) {
		entries, err := d.store.List()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			list = append(list, e.Name)
		}
		return list
	}
	d.app.Navigate("#")
	d.app.Offer(item)
	if d.app.Screen.Open != first || len(names()) != 1 || d.app.result == nil || d.app.result.Live {
		t.Errorf("after the same file was opened again: open analysis = %q, kept analyses = %q; want one analysis", d.app.Screen.Open, names())
	}
	if d.act(func() {}); !d.app.CanRepeat() {
		t.Error("CanRepeat() = false for an analysis whose file was opened again")
	}
	changed := item
	changed.File.Modified++
	d.app.Offer(changed)
	if d.app.Screen.Open == first || len(names()) != 2 {
		t.Errorf("after a changed file was opened: open analysis = %q, kept analyses = %q; want a second analysis", d.app.Screen.Open, names())
	}
	d.settings.Kinds = "load"
	d.app.Offer(item)
	if d.app.Screen.Open == first || len(names()) != 3 {
		t.Errorf("after the file was opened with changed settings: open analysis = %q, kept analyses = %q; want a third analysis", d.app.Screen.Open, names())
	}
}
