package ui

import (
	"html"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/analysis/communication"
	verbs "github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/ui/state"
)

// The function "threaded" returns a multi-threaded demo.
func threaded(name string) Item { return Item{Demo: name, URL: "demos/" + name + ".sgt", Title: name} }

// The function "at" returns a desk that shows a multi-threaded demo in the given tab.
func at(t *testing.T, demo string, tab state.Tab) *desk {
	t.Helper()
	d := newDesk(t)
	d.app.Offer(threaded(demo))
	d.app.Navigate("#" + d.app.Screen.With(tab).Hash())
	return d
}

// lastSaid returns the text that was announced last.
func (d *desk) lastSaid() string { return d.said[len(d.said)-1] }

// The method "rests" reports whether no analysis is running.
func (d *desk) rests() bool {
	d.app.Env.RLock()
	defer d.app.Env.RUnlock()
	return d.app.run == nil
}

// The method "sum" adds up the displayed numbers in a column of a table.
func (d *desk) sum(chart, column string) (n uint64) {
	d.t.Helper()
	t := d.app.table(chart)
	at := slices.IndexFunc(t.Columns, func(c state.Column) bool { return c.Key == column || c.Name == column })
	if at < 0 {
		d.t.Fatalf("the table %s has no column %s: %+v", chart, column, t.Columns)
	}
	for i := range t.Rows {
		cell, err := strconv.ParseUint(strings.ReplaceAll(t.Row(i)[at], "\u202f", ""), 10, 64)
		if err != nil {
			d.t.Fatal(err)
		}
		n += cell
	}
	return n
}

func TestThreadsView(t *testing.T) {
	d := at(t, "openmp-stencil", state.TabThreads)
	threads := d.app.threads()
	d.wants(`id="chart-cores"`, `id="table-own"`, `id="table-shared"`, `id="table-change"`, `id="stack-coherent"`,
		html.EscapeString(threads.OwnSentence(48<<10)), `id="core-chip-0"`, "another cache")
	if n := len(threads.Cores); n < 2 || len(d.charts["cores"].Series) != n || len(d.charts["core-1"].Series) != 3 {
		t.Fatalf("cores = %d, charts = %v; want a curve for each core, and three curves of core 1", n, d.charts)
	}
	private := d.charts["cores"]
	d.act(func() { d.app.ShowStack(state.CoherentStack) })
	if c := d.charts["cores"]; c.Title == private.Title || c.Summary != d.lastSaid() || !strings.Contains(c.Summary, "had invalidated the line") {
		t.Errorf("title of the coherent curves = %q, announcement = %q", c.Title, d.lastSaid())
	}
	d.act(func() { d.app.ShowStack(state.PrivateStack) })
	if d.app.Screen.Stack != "" || d.charts["cores"].Title != private.Title {
		t.Errorf("screen after the return to the private stack = %+v, want the default stack", d.app.Screen)
	}
	d.act(func() { d.app.goTo(d.app.Screen.Toggle("cores"), true) })
	d.wants(`id="table-cores"`, ">private<")
}

// TestSizesInThreadsView checks that the sentence, the table, the announcement and the URL contain the
// selected sizes.
func TestSizesInThreadsView(t *testing.T) {
	d := at(t, "openmp-stencil", state.TabThreads)
	before := d.sum("own", "misses")
	d.act(func() { d.app.SetOwn(1 << 10) })
	if after := d.sum("own", "misses"); after <= before {
		t.Errorf("misses with 1 KiB = %d, want more than %d with 48 KiB", after, before)
	}
	d.wants("With 1 KiB for each thread", `aria-valuetext="1 KiB"`)
	if !strings.HasPrefix(strings.ReplaceAll(d.lastSaid(), "\u202f", " "), "With 1 KiB for each thread") || state.ParseScreen(d.hash).OwnBytes != 1<<10 {
		t.Errorf("said %q, hash %q", d.lastSaid(), d.hash)
	}
	if own := d.sum("own", "cold") + d.sum("own", "capacity, conflict") + d.sum("own", "coherence"); own != d.sum("own", "misses") {
		t.Errorf("sum of the misses by cause = %d, want %d", own, d.sum("own", "misses"))
	}
	d.act(func() { d.app.SetShared(2 << 10) })
	d.wants("In shared caches of 2 KiB, the threads miss")
	few := d.sum("shared", "misses")
	d.act(func() { d.app.SetShared(1 << 20) })
	if more := d.sum("shared", "misses"); more >= few {
		t.Errorf("misses with 1 MiB = %d, want fewer than %d with 2 KiB", more, few)
	}
	d.act(func() { d.app.SetOwn(77) }) // 77 bytes are not a multiple of the line size
	if d.app.ownBytes() != 64 {
		t.Errorf("ownBytes() = %d for 77 bytes, want 64", d.app.ownBytes())
	}
}

// TestThreadsGroups checks that, if the analysis has no stacks for the selected groups, the misses
// of these groups are unknown until the trace is analysed again.
func TestThreadsGroups(t *testing.T) {
	d := at(t, "ring", state.TabThreads)
	cores := len(d.app.threads().Cores)
	if cores < 4 {
		t.Fatalf("threads of the demo = %d, want at least 4", cores)
	}
	d.act(func() { d.app.SetShared(2 << 10) })
	d.act(func() { d.app.MoveCore(2, 1) })
	d.act(func() { d.app.MoveCore(3, 1) })
	d.wants(`id="groups-unknown"`, `id="groups-again"`, `id="group-3"`, "analyse the trace again with these groups")
	if d.app.Screen.Groups != "0-0-1-1" || d.charts["cores"] == nil {
		t.Errorf("groups %q", d.app.Screen.Groups)
	}
	before := d.app.Screen.Open
	d.act(d.app.Repeat)
	d.await(func() bool { return d.app.run == nil && d.app.Screen.Open != before })
	if page := d.html(); strings.Contains(page, `id="groups-unknown"`) {
		t.Error("the page says that the groups are unknown after an analysis with these groups")
	}
	d.wants("In shared caches of 2 KiB, the threads miss", `id="group-3"`)
	if s := d.app.Screen; s.Groups != "0-0-1-1" || s.Tab != state.TabThreads || s.SharedBytes != 2<<10 {
		t.Errorf("screen after the analysis = %+v, want the Threads view with the groups 0-0-1-1", s)
	}
	domains := d.app.result.Profile.Sharing[0].Domains
	if len(domains) != 3 || len(domains[1].Cores) != 2 {
		t.Errorf("domains %+v", domains)
	}
	// A group of one thread needs no additional stacks.
	for core := range cores {
		d.act(func() { d.app.MoveCore(core, cores) })
	}
	if page := d.html(); strings.Contains(page, `id="groups-unknown"`) || d.app.Screen.Groups != "0-1-2-3" {
		t.Errorf("groups = %q, want the known groups 0-1-2-3", d.app.Screen.Groups)
	}
}

func TestCommunicationView(t *testing.T) {
	d := at(t, "ring", state.TabCommunication)
	c := d.app.communication()
	d.wants(`id="chart-flows"`, `id="table-pairs"`, `id="table-classes"`, `id="false-sentence"`, `id="source-sentence"`, c.Sentence(), "To see the source locations behind a cell")
	all := d.sum("flows", "transfers")
	if all == 0 || d.sum("pairs", "transfers") != all {
		t.Errorf("transfers of the flows = %d, transfers of the pairs of source locations = %d; want equal numbers", all, d.sum("pairs", "transfers"))
	}
	d.act(func() { d.app.ShowMeasure(state.FlowBytes) })
	if !strings.HasPrefix(d.matrixOf("flows").Title, "Bytes") || d.app.measure() != state.FlowBytes {
		t.Errorf("title of the matrix = %q, want Bytes", d.matrixOf("flows").Title)
	}
	d.act(func() { d.app.ShowGranule(1) })
	d.act(func() { d.app.goTo(d.app.Screen.Toggle("flows"), true) })
	d.wants("Flows between threads, by lines of 64 bytes")
	if d.app.granule() != 1 || !strings.HasSuffix(d.matrixOf("flows").Summary, d.lastSaid()) {
		t.Errorf("granule %d, said %q", d.app.granule(), d.lastSaid())
	}
	d.act(func() { d.app.SetOwn(1 << 10) })
	if s := strings.ReplaceAll(d.lastSaid(), "\u202f", " "); !strings.Contains(s, "cache of 1 KiB") {
		t.Errorf("said %q", s)
	}
}

// TestLineExchanges checks that the Code view lists, for the selected line, the values that the
// line writes for other threads or uses from other threads. Each event between two lines belongs to
// both lines.
func TestLineExchanges(t *testing.T) {
	d := at(t, "ring", state.TabCode)
	q := verbs.New(verbs.VerbOf("communication")).With("by", "site")
	document, err := verbs.NewRun("ring", d.app.result.Profile).Answer(q)
	if err != nil {
		t.Fatal(err)
	}
	pairs, want, found := &document.Tables[0], map[string]uint64{}, 0
	for _, row := range pairs.Rows {
		line := func(side string) string {
			return row[pairs.Index(side+"_file")].Plain() + ":" + row[pairs.Index(side+"_line")].Plain()
		}
		events, _ := row[pairs.Index("events")].Number()
		want[line("producer")] += uint64(events)
		if line("consumer") != line("producer") {
			want[line("consumer")] += uint64(events)
		}
	}
	for row := range d.grids["code"].Rows {
		d.act(func() { d.app.selectRow(d.app.Screen, d.app.codeView().At(row)) })
		line, got := d.app.codeView().Line(d.app.pickedPlace()), uint64(0)
		if d.app.table("exchanges") != nil {
			d.wants(`id="table-exchanges"`)
			got = d.sum("exchanges", "events")
			found++
		}
		if got != want[line] {
			t.Errorf("events of %s = %d, want %d", line, got, want[line])
		}
	}
	if found < 2 {
		t.Errorf("%d lines exchange values with other threads, want at least 2", found)
	}
}

// TestFlowsByWindow checks that each window shows only its own flows, and that the flows in all
// windows add up to the flows in the whole run.
func TestFlowsByWindow(t *testing.T) {
	d := at(t, "ring", state.TabCommunication)
	all, sum := d.sum("flows", "events"), uint64(0)
	windows := len(d.app.communication().Windows)
	if windows < 2 {
		t.Fatalf("%d windows", windows)
	}
	for n := range windows {
		d.act(func() { d.app.ShowWindow(n + 1) })
		sum += d.sum("flows", "events")
	}
	if sum != all || !strings.Contains(d.lastSaid(), "This window covers references") {
		t.Errorf("events of the windows = %d, want the events of the run, %d; announcement = %q", sum, all, d.lastSaid())
	}
	d.wants(`id="flow-window"`, strconv.Itoa(windows)+" of "+strconv.Itoa(windows))
	d.act(func() { d.app.ShowGranule(2) }) // communication in windows is counted only for words
	if d.app.Screen.Window != 0 || d.app.granule() != 2 {
		t.Errorf("screen %+v", d.app.Screen)
	}
}

// TestSelectFlow checks that the page describes a flow when its cell is selected, and that the cell
// is deselected when it is selected again.
func TestSelectFlow(t *testing.T) {
	d := at(t, "ring", state.TabCommunication)
	all := d.sum("pairs", "transfers")
	flow := d.app.communication().Granules[0].Flows[0]
	row, column := d.threadIndex(flow.From), d.threadIndex(flow.To)
	d.app.PickFlow(row, column)
	d.wants("Thread " + strconv.Itoa(int(flow.From)) + " to thread " + strconv.Itoa(int(flow.To)) + ": ")
	if m := d.matrixOf("flows"); m.Row != row || m.Column != column || d.lastSaid() == "" {
		t.Errorf("selected cell of the matrix = %d, %d, want %d, %d", m.Row, m.Column, row, column)
	}
	if got := d.sum("pairs", "transfers"); got != flow.Transfers {
		t.Errorf("transfers of the flow's pairs of source locations = %[2]d, want %[1]d", flow.Transfers, got)
	}
	if s := state.ParseScreen(d.hash); s.Flow != [2]int{row + 1, column + 1} {
		t.Errorf("hash %q", d.hash)
	}
	d.app.PickFlow(row, column)
	if d.sum("pairs", "transfers") != all || d.app.Screen.Flow != [2]int{} {
		t.Errorf("selected cell after deselecting = %+v, want none", d.app.Screen.Flow)
	}
	d.app.Navigate("#" + d.app.Screen.With(state.TabThreads).Hash())
	d.app.PickFlow(0, 1) // this tab has no matrix
	if d.app.Screen.Flow != [2]int{} {
		t.Error("PickFlow selected a cell in a view without a matrix")
	}
}

func (d *desk) threadIndex(thread uint32) int {
	for i, name := range d.matrixOf("flows").Rows {
		if name == strconv.Itoa(int(thread)) {
			return i
		}
	}
	d.t.Fatalf("the matrix has no thread %d", thread)
	return -1
}

// matrixOf returns the last matrix with the given ID.
func (d *desk) matrixOf(id string) *state.Matrix { return d.matrices[id] }

func TestOwners(t *testing.T) {
	d := at(t, "openmp-stencil", state.TabCommunication)
	c := d.app.communication()
	list := c.Objects()
	if len(list) < 2 {
		t.Fatalf("data structures with owners = %d, want at least 2", len(list))
	}
	d.wants(`id="owner-object"`, `id="chart-owners"`, c.OwnerName(list[0]))
	d.act(func() { d.app.ShowOwners(list[1]) })
	if m := d.matrixOf("owners"); m.Title != c.OwnerMap(list[1]).Title || d.lastSaid() != m.Summary || len(m.Letters) < 2 {
		t.Errorf("title of the owners = %q, announcement = %q; want the second data structure", m.Title, d.lastSaid())
	}
	d.act(func() { d.app.goTo(d.app.Screen.Toggle("owners"), true) })
	d.wants(`id="table-owners"`, "used most by")
	d.app.Navigate("#" + d.app.Screen.Hash() + "&owner=999") // no data structure has this number
	d.wants(c.OwnerName(list[0]))
}

// TestFalseSharingIsNamed checks that the page names the falsely shared data structure, both source
// locations and the fix. The overview must contain these details only for the first case of false
// sharing.
func TestFalseSharingIsNamed(t *testing.T) {
	d := at(t, "false-sharing", state.TabCommunication)
	f := d.app.communication().FalseFindings()[0]
	d.wants(`id="false-1"`, `id="table-false"`, ">"+f.Name+"<", html.EscapeString(f.Fix), "the store in Code", "in this run")
	if !strings.Contains(f.Text, "false-sharing.c:") || !strings.Contains(f.Fix, "alignas(64)") || f.PingPongs != 8189 {
		t.Errorf("%+v", f)
	}
	d.app.Navigate(facts(d.app.Screen))
	d.wants(`id="finding-false-sharing"`, `id="finding-coherence"`, `id="finding-flow"`)
	d = at(t, "ring", state.TabCommunication)
	if page := d.html(); len(d.app.communication().FalseFindings()) == 0 && !strings.Contains(page, "No false sharing") {
		t.Error("the page does not say that the ring demo has no false sharing")
	}
}

// TestThreadsTabWithoutData checks that a tab without data shows the reason and advice.
func TestThreadsTabWithoutData(t *testing.T) {
	p := &profile.Profile{Totals: profile.Totals{Threads: []uint32{1, 2}}}
	for tab, want := range map[state.Tab]string{state.TabThreads: "“sharing” was not among the requested analyses", state.TabCommunication: "written by an earlier version of stackglass"} {
		if why := tab.Missing(p); !strings.Contains(why, want) {
			t.Errorf("%s of two threads: reason = %q, want %q in it", tab.Name(), why, want)
		}
	}
	d := newDesk(t)
	d.app.Offer(demoItem())
	for _, tab := range []state.Tab{state.TabThreads, state.TabCommunication} {
		d.app.Navigate("#" + d.app.Screen.With(tab).Hash())
		d.wants(`id="missing"`, "only one thread")
	}
}

// TestCompareThreads compares counters that share a cache line with counters in separate lines. The
// test checks that the comparison shows the coherence misses, the communication, and the
// differences.
func TestCompareThreads(t *testing.T) {
	d := newDesk(t)
	d.app.Offer(threaded("false-sharing"))
	first := d.app.Screen.Open
	d.app.Offer(threaded("false-sharing-padded"))
	d.app.Navigate("#" + state.Screen{Open: first, Other: d.app.Screen.Open}.Hash())
	d.wants(`id="difference-coherence"`, `id="difference-false-sharing"`)
	d.app.Navigate("#" + d.app.Screen.With(state.TabThreads).Hash())
	d.wants(`id="table-own-compared"`, `id="table-shared-compared"`, "misses, A")
	c := d.app.comparison()
	d.act(func() { d.app.SetOwn(128) })
	d.wants(html.EscapeString(c.OwnSentence(128)))
	if d.lastSaid() != c.OwnSentence(128) {
		t.Errorf("said %q", d.lastSaid())
	}
	if a, b := d.sum("own-compared", "coherence_a"), d.sum("own-compared", "coherence_b"); a == 0 || b >= a {
		t.Errorf("coherence misses with counters in one line = %d, in separate lines = %d; want fewer in separate lines", a, b)
	}
	d.act(func() { d.app.SetShared(64) })
	d.wants("A: In shared caches of 64 B, the threads miss", "B: In shared caches of 64 B, the threads miss")
	d.act(func() { d.app.goTo(d.app.Screen.Sorted("accesses_a"), true) })
	d.wants(`data-sort="accesses_a"`)

	d.app.Navigate("#" + d.app.Screen.With(state.TabCommunication).Hash())
	d.wants(`id="table-flows-compared"`, `id="table-pairs-compared"`, `id="compare-false"`, "B: No false sharing")
	if a := d.sum("flows-compared", "events_a"); a != d.sum("pairs-compared", "events_a") {
		t.Errorf("events of the flows of A = %d, events of the pairs of source locations = %d; want equal numbers", a, d.sum("pairs-compared", "events_a"))
	}

	// In a single-threaded run, there is nothing to compare.
	d.app.Navigate("")
	d.app.Offer(demoItem())
	d.app.Navigate("#" + state.Screen{Open: first, Other: d.app.Screen.Open, Tab: state.TabThreads}.Hash())
	d.wants(`id="missing"`, "B has nothing to compare in this view")
}

// TestLateSecondThread checks that, if a trace's second thread appears late, communication is
// counted only on request. The page must list threads that are in the settings but not in the
// trace.
func TestLateSecondThread(t *testing.T) {
	d := newDesk(t)
	text := "addr,rw,size,tid\n" + strings.Repeat("0x1000,w,8,1\n", communication.Trial) + "0x1000,r,8,2\n"
	d.settings = state.Settings{Cores: "8,9"}
	d.app.Offer(Item{File: fileWith("late.csv", []byte(text))})
	d.wants(`id="note"`, "8,9: the trace contains none of these threads, only 1,2")
	d.settings = state.Settings{}
	d.app.Navigate("#" + d.app.Screen.With(state.TabCommunication).Hash())
	d.wants(`id="missing"`, `id="communication-again"`)
	before := d.app.Screen.Open
	d.act(func() { d.app.RepeatWith(analysis.Sharing | analysis.Communication) })
	d.await(func() bool { return d.app.run == nil && d.app.Screen.Open != before })
	if page := d.html(); strings.Contains(page, `id="missing"`) || d.app.Screen.Tab != state.TabCommunication {
		t.Error("the Communication view is empty after an analysis that includes communication")
	}
	if n := d.sum("flows", "transfers"); n != 1 {
		t.Errorf("transfers = %d, want 1", n)
	}
}
