package command

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/bits"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/ask/program"
	"github.com/stackglass/stackglass/core/attribution"
	"github.com/stackglass/stackglass/core/costmodel"
	"github.com/stackglass/stackglass/core/export"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/multicore/predict"
	"github.com/stackglass/stackglass/core/open"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/tools/stackglass/internal/pass"
	"github.com/stackglass/stackglass/ui/state"
	"github.com/stackglass/stackglass/workers"
	"github.com/stackglass/stackglass/workers/answerers"
)

// pageRun is a trace that both the page and the command have loaded.
type pageRun struct {
	*testing.T
	file string
	view *state.View
}

// pagedTraces returns the paths of all demos, and of the traces of multi-threaded OpenMP programs.
func pagedTraces(t *testing.T) (files []string) {
	demos, err := filepath.Glob("../../../../site/demos/*.sgt")
	if err != nil || len(demos) == 0 {
		t.Fatal("no demos", err)
	}
	for _, demo := range demos {
		files = append(files, "demo:"+strings.TrimSuffix(filepath.Base(demo), ".sgt"))
	}
	return append(files, kernelFolder+"stencil.sgt", kernelFolder+"histogram.sgt")
}

// pagedHierarchies lists hierarchies in a short form. The test converts them to options for the
// command and to lines for the page.
var pagedHierarchies = []string{
	"L1=32KiB,8,latency=4 L2=256KiB,8,latency=12 L3=8MiB,16,shared=4,hashed,latency=36 memory=latency=235",
	"L1=1KiB,full L2=8KiB,4,shared=all",
	"L1=2KiB,4 L2=16KiB,full threads=one-core",
}

// pagedOptions returns the command-line options that describe a hierarchy.
func pagedOptions(lines string) (options []string, h hierarchy.Hierarchy, err error) {
	for _, line := range strings.Fields(lines) {
		if err := h.Add(line); err != nil {
			return nil, h, err
		}
		if line == "threads=one-core" {
			options = append(options, "--one-core")
		} else {
			options = append(options, "--cache", line)
		}
	}
	return options, h, nil
}

// openPaged analyses a trace for several hierarchies, as the page does, and writes the profile to a
// file for the command.
func openPaged(t *testing.T, trace string, hierarchies []hierarchy.Hierarchy) *pageRun {
	t.Helper()
	return openPagedWith(t, trace, state.Settings{Loops: true}, hierarchies)
}

func openPagedWith(t *testing.T, trace string, settings state.Settings, hierarchies []hierarchy.Hierarchy) *pageRun {
	t.Helper()
	spec, err := settings.Spec()
	if err != nil {
		t.Fatal(err)
	}
	spec.Analyses |= analysis.Footprint | analysis.Data
	for _, h := range hierarchies {
		state.Measure(&spec, h.Levels)
	}
	in, err := pass.Open(context.Background(), trace, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	r, err := in.Analyze(context.Background(), pass.Options{Spec: spec})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "a profile with a name that is about as long as the path of a file.sgp")
	if err := os.WriteFile(file, r.Profile.Encode(), 0o644); err != nil {
		t.Fatal(err)
	}
	view := state.NewView(r.Profile, 64)
	view.Run.Name = file
	return &pageRun{t, file, view}
}

// commandAnswer returns the command's answer as decoded JSON.
func (p *pageRun) commandAnswer(verb string, options ...string) map[string]any {
	p.Helper()
	args := append(append([]string{verb, p.file}, options...), "--format", "json")
	got := stackglass(args...)
	var d map[string]any
	if err := json.Unmarshal([]byte(got.stdout), &d); err != nil || got.code != exitOK {
		p.Fatalf("%s: %v\n%s", args, err, got)
	}
	return d
}

// tableRows returns the rows of one table in a decoded JSON answer.
func tableRows(d map[string]any, table string) (list []map[string]any) {
	whole, _ := d[table].([]any)
	for _, row := range whole {
		list = append(list, row.(map[string]any))
	}
	return list
}

// bareNumber returns a number from the page without units, spaces and other characters.
func bareNumber(text string) string {
	return strings.NewReplacer("≈", "", " ", "", "\u202f", "", "\u00a0", "", "%", "", "cycles", "", "−", "-").Replace(text)
}

// compareNumber compares a number on the page with a number that the command prints.
func (p *pageRun) compareNumber(what, page string, command any, write func(float64) string) {
	p.Helper()
	x, is := command.(float64)
	if page == "" || page == "–" {
		if is && x != 0 {
			p.Errorf("%s: the page shows %q, the command prints %v", what, page, command)
		}
		return
	}
	if !is || bareNumber(page) != bareNumber(write(x)) {
		p.Errorf("%s: the page shows %q, the command prints %v", what, page, command)
	}
}

// TestPageAndCommandShowSameNumbers checks that the page (with its default settings) and the
// command show the same numbers for a trace.
func TestPageAndCommandShowSameNumbers(t *testing.T) {
	for _, file := range pagedTraces(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			var hierarchies []hierarchy.Hierarchy
			for _, lines := range pagedHierarchies {
				_, h, err := pagedOptions(lines)
				if err != nil {
					t.Fatal(err)
				}
				hierarchies = append(hierarchies, h)
			}
			p, other := openPaged(t, file, hierarchies), openPaged(t, "demo:false-sharing-padded", hierarchies)
			p.locality()
			p.threads()
			p.communication()
			p.counters()
			for _, lines := range pagedHierarchies {
				options, h, err := pagedOptions(lines)
				if err != nil {
					t.Fatal(err)
				}
				p.caches(h, options)
				p.code(h, options)
				p.checkLoops(h, options)
				p.blocks(h, options)
				p.checkDiagnosis(h, options)
				p.checkExports(h, options)
				p.checkComparison(other, h, options)
			}
		})
	}
}

func (p *pageRun) caches(h hierarchy.Hierarchy, options []string) {
	page, d := p.view.Predict(h), p.commandAnswer("what-if", options...)
	if page.Problem != "" {
		p.Fatalf("the page has no answer: %s", page.Problem)
	}
	levels := tableRows(d, "levels")
	for i, l := range page.Levels {
		p.compareNumber(l.Cache.Name+" misses", factOf(l.Numbers, "misses"), levels[i]["misses"], state.Count)
		if l.Chip != levels[i]["method"] {
			p.Errorf("%s: the page's method is %s, the command's method is %s", l.Cache.Name, l.Chip, levels[i]["method"])
		}
	}
	if cycles := tableRows(d, "amat"); len(cycles) == 1 && page.Average != "" {
		p.Errorf("the command prints the average access time as a table: %v", cycles)
	} else if amat, is := d["amat"].(map[string]any); is {
		p.compareNumber("average access time", fmt.Sprintf("%.6f", page.Prediction.AverageCycles), amat["cycles"], func(x float64) string { return fmt.Sprintf("%.6f", x) })
	}
	p.compareNumber("memory accesses", factOf(page.Memory, "accesses"), d["memory"].(map[string]any)["accesses"], state.Count)
	input := d["input"].(map[string]any)
	if line := strings.Replace(answers.ThreadsOn(p.view.Profile, h), " threads", "", 1); line != "" && line != input["threads_on"] {
		p.Errorf("the page describes the threads as %q, the command as %q", line, input["threads_on"])
	}
	p.checkTableExports(p.view.LevelsTable(h), "what-if", options...)
	if t := p.view.TimesTable(h); t != nil {
		p.checkExport(t.JSON(), "what-if", append(slices.Clone(options), "--format", "json")...)
	}
	against := state.AgainstWords(hierarchy.Presets()[0])
	p.checkTableExports(p.view.Against(h, against), "what-if", append(slices.Clone(options), "--against", against[0], "--against", against[1])...)
	if page.Prediction.Cores != nil {
		p.checkTableExports(p.view.CoresTable(h), "what-if", append(slices.Clone(options), "--by", "core")...)
	}
}

// factOf returns the value of the fact with the given ID, or "" if there is no such fact.
func factOf(list []state.Fact, id string) string {
	for _, f := range list {
		if f.ID == id {
			return f.Value
		}
	}
	return ""
}

// numbersOf returns rows of numbers as sorted texts, because rows with the same sort key may appear
// in any order.
func numbersOf(list [][]float64) (text []string) {
	for _, row := range list {
		line := ""
		for _, x := range row {
			line += fmt.Sprintf(" %.2f", x+1e-9)
		}
		text = append(text, line)
	}
	sort.Strings(text)
	return text
}

func (p *pageRun) code(h hierarchy.Hierarchy, options []string) {
	if p.view.Run.Ranker() == nil {
		return
	}
	levels, _, err := p.view.Run.Ranker().Attribute(h)
	if err != nil {
		p.Fatal(err)
	}
	for _, by := range state.CodeBys() {
		name := string(by)
		if by == attribution.Object && len(p.view.Profile.Sites.Data) == 0 {
			continue
		}
		view := state.NewCodeView(state.NewCode(p.view.Run, p.view.Run.Ranker(), by, levels), "", "")
		view.Document = p.view.SitesDocument(by, h)
		grid := view.Grid(-1)
		p.checkTableExports(grid.Table, "sites", append(slices.Clone(options), "--by", name)...)
		view.OfPlace = p.view.PlaceDocument(by, h)
		for place := range min(2, len(view.Code.Rows())) {
			p.checkTableExports(view.DistancesTable(place), "sites", append(slices.Clone(options), "--by", name, "--distances", view.Named(place))...)
		}
		// The grid has the same source locations as the document, in any order.
		var page, document []string
		cells, marks := grid.View(0, grid.Rows)
		for i, row := range cells {
			text := ""
			for c, column := range grid.Columns {
				if strings.HasSuffix(column.Key, "_misses") && !strings.HasSuffix(column.Key, "_coherence_misses") {
					text += " " + bareNumber(row[c])
				}
			}
			if marks[i] != "rest" {
				page = append(page, text)
			}
		}
		t := grid.Source()
		for _, row := range t.Rows {
			if at := max(t.Index("function"), t.Index("name")); strings.HasPrefix(row[at].Plain(), "(of no") || strings.HasPrefix(row[at].Plain(), "(not") {
				continue
			}
			text := ""
			for _, l := range h.Levels {
				x, _ := row[t.Index(l.Name+"_misses")].Number()
				text += " " + bareNumber(state.Count(x))
			}
			document = append(document, text)
		}
		slices.Sort(page)
		slices.Sort(document)
		if !slices.Equal(page, document) {
			p.Errorf("misses by %s in %s differ: the page shows\n%s\nits document has\n%s", name, h.Lines(), strings.Join(page, "\n"), strings.Join(document, "\n"))
		}
	}
}

// checkTableExports checks that the page's exports of a table are byte-identical to the command's
// output.
func (p *pageRun) checkTableExports(t *state.Table, verb string, options ...string) {
	p.Helper()
	if t == nil || !t.Exports() {
		p.Errorf("%s %s: the page does not export the table %+v", verb, options, t)
		return
	}
	p.checkExport(t.CSV(), verb, append(options, "--format", "csv")...)
	p.checkExport(t.JSON(), verb, append(options, "--format", "json")...)
}

// checkExport compares a file that the page exports with the command's output.
func (p *pageRun) checkExport(page []byte, verb string, options ...string) {
	p.Helper()
	got := stackglass(append([]string{verb, p.file}, options...)...)
	if got.code != exitOK {
		p.Fatalf("%s %s: %s", verb, options, got)
	}
	if string(page) != got.stdout {
		p.Errorf("%s %s: the page exports %d bytes, the command prints %d:\n%.1500s\n%.1500s", verb, options, len(page), len(got.stdout), page, got.stdout)
	}
}

func (p *pageRun) locality() {
	p.checkTableExports(p.view.CurveTable(), "curve")
	p.checkTableExports(p.view.HistogramTable(), "histogram")
	p.checkTableExports(p.view.OverTimeTable(p.view.DefaultLog2Lines()), "windows")
	p.checkTableExports(p.view.WorkingSetTable(), "windows")
	p.checkTableExports(p.view.SetsTable(), "sets")
	p.checkTableExports(p.view.FootprintTable(), "footprint")

	text := ""
	for _, f := range p.view.Findings(hierarchy.Presets()[0]) {
		if f.ID == "knees" {
			text = bareNumber(f.Text)
		}
	}
	for _, row := range tableRows(p.commandAnswer("curve", "--steps"), "steps") {
		if want := bareNumber("from " + state.Percent(row["miss_ratio_below"].(float64)) + " to " + state.Percent(row["miss_ratio"].(float64))); !strings.Contains(text, want) {
			p.Errorf("the page says %q, want the command's step %q in it", text, want)
		}
	}
	for _, row := range tableRows(p.commandAnswer("sets", "--causes"), "causes") {
		sets, ways := uint64(row["sets"].(float64)), int(row["ways"].(float64))
		if ways != 1 && ways != 8 {
			continue
		}
		facts := p.view.CellFacts(state.Cell{Log2Sets: bits.TrailingZeros64(sets), Ways: ways})
		for _, cause := range []string{"misses", "cold", "capacity"} {
			p.compareNumber(fmt.Sprintf("%s in %d sets of %d ways", cause, sets, ways), factOf(facts, cause), row[cause], func(x float64) string { return state.Exact(uint64(x)) })
		}
	}
}

func (p *pageRun) threads() {
	threads := p.view.Threads()
	if threads == nil {
		return
	}
	p.checkTableExports(threads.CurvesTable(), "threads", "--curve")
	p.checkTableExports(threads.OwnTable(32<<10), "threads", "--by", "core", "--cache", "L1=32KiB,full")
	p.checkTableExports(threads.SharedTable(state.OneGroup(len(threads.Cores)), 1<<20), "threads", "--by", "domain", "--cache", "L2=1MiB,full,shared="+strconv.Itoa(len(threads.Cores)))
	p.checkTableExports(threads.ChangeTable(), "threads", "--by", "change")
}

func (p *pageRun) communication() {
	c := p.view.Communication()
	if c == nil {
		return
	}
	for i, granularity := range ask.VerbOf("communication").Arg("granularity").Words {
		p.checkTableExports(c.FlowsTable(i, 0), "communication", "--by", "flow", "--granularity", granularity)
	}
	windows := tableRows(p.commandAnswer("communication", "--by", "window"), "windows")
	for w := range c.Windows {
		if w == 0 {
			p.checkTableExports(c.FlowsTable(0, w+1), "communication", "--by", "window")
		}
		first := float64(uint64(w) * c.Window)
		n := 0
		for _, row := range windows {
			if row["first_reference"] == first {
				n++
			}
		}
		if shown := c.FlowsTable(0, w+1).Rows; shown != n {
			p.Errorf("window %d: the page shows %d flows, the command prints %d", w, shown, n)
		}
	}
	p.checkExport(c.TrafficTable().JSON(), "communication", "--format", "json")
	if t := c.FalseTable(); t != nil {
		p.checkTableExports(t, "communication", "--false-sharing")
	} else if list := tableRows(p.commandAnswer("communication", "--false-sharing"), "false_sharing"); len(list) > 0 {
		p.Errorf("the page shows no false sharing, the command prints %v", list)
	}
	p.checkTableExports(c.PairsTable([2]int{-1, -1}), "communication", "--by", "site")
	parts := 0
	for i := range c.Owners {
		if i == 0 {
			p.checkTableExports(c.OwnersTable(i), "communication", "--by", "owner")
		}
		parts += c.OwnersTable(i).Rows
	}
	if n := len(tableRows(p.commandAnswer("communication", "--by", "owner"), "owners")); n != parts {
		p.Errorf("the page shows %d ranges of data, the command prints %d", parts, n)
	}
	if c.Sources != nil {
		cache := tableRows(p.commandAnswer("communication", "--cache", "L1=32KiB,full"), "caches")[0]
		want := state.Count(cache["cache_to_cache"].(float64)) + " of " + state.Count(cache["transfers"].(float64)) + " line transfers ("
		if page := c.SourceSentence(32 << 10); cache["transfers"] != 0.0 && !strings.HasPrefix(page, want) {
			p.Errorf("sources of line transfers: the page says %q, the command prints %v", page, cache)
		}
	}
}

func (p *pageRun) counters() {
	if p.view.Profile.Counters == nil {
		return
	}
	keys, tables := state.CounterTables(p.view.Answers, answers.ByProgram, "")
	for _, key := range keys {
		p.checkExport(tables[key].JSON(), "counters", "--format", "json")
	}
	p.checkExport(tables[keys[0]].CSV(), "counters", "--format", "csv")
	for _, by := range []answers.CountersBy{answers.ByFunction, answers.ByBlock} {
		keys, tables := state.CounterTables(p.view.Answers, by, "")
		p.checkTableExports(tables[keys[0]], "counters", "--by", string(by))
	}
}

// workerAnswer returns the reply of the page's worker that answers questions.
func (p *pageRun) workerAnswer(q answers.Question) (reply *answers.Reply) {
	p.Helper()
	answer, err := answerers.All(nil)[q.Of](workers.Subject{Name: p.file, Profile: p.view.Profile.Encode()})
	if err == nil {
		err = answer(q, nil, func() bool { return true }, func(r *answers.Reply) { reply = r })
	}
	if err != nil {
		p.Fatalf("%s: %v", q.Words, err)
	}
	return reply
}

// TestPageSimulatesAsCommand checks that the document of a simulation on the page is byte-identical to
// the command's document, for the whole run and for a part of the run.
func TestPageSimulatesAsCommand(t *testing.T) {
	open := func(name, format string, attachment any) (trace.Reader, io.Closer, error) {
		r, err := open.Open(name, bytes.NewReader(attachment.([]byte)), open.Options{Format: format})
		return r, io.NopCloser(nil), err
	}
	for _, file := range pagedTraces(t) {
		p := openPaged(t, file, nil)
		path := file
		if demo, found := strings.CutPrefix(file, "demo:"); found {
			path = "../../../../site/demos/" + demo + ".sgt"
		}
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := answerers.All(open)[answers.OfVerb](workers.Subject{Name: file, Profile: p.view.Profile.Encode()})
		if err != nil {
			t.Fatal(err)
		}
		for i, lines := range []string{
			"L1=2KiB,4,drrip,prefetch=stream L2=16KiB,8,random memory=latency=200",
			"L1=1KiB,full,lfu L2=8KiB,4,shared=2,plru,prefetch=next-line:degree=2",
			"L1=2KiB,4,prefetch=stride L2=16KiB,full,fifo threads=one-core clock=3.5",
		} {
			options := []string{"simulate", file, "--baseline", "--format", "json"}
			var h hierarchy.Hierarchy
			for _, line := range strings.Fields(lines) {
				if err := h.Add(line); err != nil {
					t.Fatal(err)
				}
				options = append(options, "--cache", line)
			}
			var part state.Range
			if all := p.view.Profile.Totals.AllReferences(); i == 0 {
				part = state.Range{From: all / 4, To: all / 2}
				options = append(options, "--range", part.String())
			}
			bound := i < 2
			if bound {
				options = append(options, "--bound")
			}
			q := state.SimulationQuestion(h, part, bound, "")
			var reply *answers.Reply
			if err := answer(q, content, func() bool { return true }, func(r *answers.Reply) { reply = r }); err != nil || reply.Problem != "" {
				t.Fatalf("%s, %s: %v, %s", file, lines, err, reply.Problem)
			}
			if want := stackglass(options...); string(reply.Bytes) != want.stdout || want.code != exitOK {
				t.Errorf("%s, %s: the page's document is\n%s\nwant the command's document\n%s%s", file, lines, reply.Bytes, want.stdout, want.stderr)
			}
		}
	}
}

// checkLoops checks the tables in the Loops view: their cells must equal the command's output, and
// their documents must be byte-identical to it.
func (p *pageRun) checkLoops(h hierarchy.Hierarchy, options []string) {
	if len(p.view.Profile.Loops) == 0 {
		return
	}
	options = slices.DeleteFunc(slices.Clone(options), func(text string) bool { return text == "--one-core" })
	q := state.LoopsQuestion(h.Levels, state.EachLoop)
	l := state.NewLoops(p.view.Profile, q.Words, p.workerAnswer(q))
	grid := l.Grid(0, h.Levels)
	options = append(options, "--each")
	p.checkExport(grid.JSON(), "loops", append(slices.Clone(options), "--format", "json")...)
	for _, t := range []*state.Table{l.ArraysTable(0), l.MissesTable(0), l.EvictionsTable()} {
		if t != nil {
			p.checkDocument(t, "loops", options...)
		}
	}
	d := p.commandAnswer("loops", options...)
	at := map[string]int{}
	for i := range grid.Rows {
		if label, _, _ := strings.Cut(grid.Row(i)[0], " · "); l.ID(i) > 0 {
			at[label] = i
		}
	}
	listed := map[string]bool{}
	for _, row := range append(tableRows(d, "loops"), tableRows(d, "each")...) {
		i, is := at[row["loop"].(string)]
		parts, _ := row["loops"].(float64)
		listed[row["loop"].(string)] = true
		cells := grid.Row(i)
		source, _ := row["file"].(string)
		if !is || parts > 1 != strings.HasSuffix(row["loop"].(string), "+") || !strings.Contains(cells[0], source) || source != "" && row["function"] != nil && cells[1] != row["function"] {
			p.Errorf("loop %d: the page shows %q, the command prints %v", i, cells, row)
		}
		for k, key := range []string{"runs", "references"} {
			p.compareNumber("loop "+cells[0]+" "+key, cells[3+k], row[key], state.Count)
		}
	}
	if len(at) != len(listed) {
		p.Errorf("the page shows %d loops, the command prints %d", len(at), len(listed))
	}
	for _, row := range tableRows(d, "misses") {
		if i, is := at[row["loop"].(string)]; is {
			level := slices.IndexFunc(h.Levels, func(c hierarchy.Cache) bool { return c.Name == row["level"] })
			p.compareNumber(fmt.Sprint("misses of loop ", row["loop"]), grid.Row(i)[6+level], row["misses"], state.Count)
		}
	}
	if l.Len() == 0 || l.Irregular(l.Nest(0)) {
		return
	}
	changes := []string{"align=64", "propose=5"}
	for _, change := range changes {
		reply := p.workerAnswer(state.LoopsQuestion(h.Levels, "nest="+l.Nest(0), change))
		name, value, _ := strings.Cut(change, "=")
		args := append(slices.Clone(options[:len(options)-1]), "--nest", l.Nest(0), "--"+name, value)
		if reply.Problem != "" { // for example, if the low address bits do not select the set
			if got := stackglass(append(append([]string{"loops", p.file}, args...), "--format", "json")...); got.code == exitOK || !strings.Contains(got.stderr, reply.Problem) {
				p.Errorf("%s: the page says %q, the command prints %s", change, reply.Problem, got)
			}
			continue
		}
		p.checkDocument(state.AnsweredTable(reply, "changes"), "loops", args...)
	}
}

// checkDocument checks that the document for a table equals the command's output, and that the
// table has rows.
func (p *pageRun) checkDocument(t *state.Table, verb string, options ...string) {
	p.Helper()
	p.checkExport(t.JSON(), verb, append(slices.Clone(options), "--format", "json")...)
	source := t.Source()
	if source == nil || t.Rows > len(source.Rows) || len(t.CSV()) == 0 {
		p.Errorf("%s: the page shows %d rows of %v", t.Caption, t.Rows, source)
	}
}

// checkDiagnosis compares the diagnosis on the page with the command's output.
func (p *pageRun) checkDiagnosis(h hierarchy.Hierarchy, options []string) {
	reply := p.workerAnswer(state.VerbQuestion("diagnose", h))
	for _, key := range []string{"verdict", "findings"} {
		if t := state.AnsweredTable(reply, key); t != nil {
			p.checkDocument(t, "diagnose", options...)
		} else if key == "verdict" {
			p.Errorf("the page has no verdict: %+v", reply)
		}
	}
	const all = 1 << 30
	verdict, list := state.Diagnosis(reply, all)
	d := p.commandAnswer("diagnose", options...)
	if want := tableRows(d, "verdict")[0]["verdict"]; verdict != state.Spaced(fmt.Sprint(want, ".")) || len(list) != len(tableRows(d, "findings")) {
		p.Errorf("the page says %q and has %d findings, the command prints %v", verdict, len(list), d)
	}
	for i, row := range tableRows(d, "findings") {
		if line, is := row["line"].(float64); row["file"] != nil && list[i].File != row["file"] || is && float64(list[i].Line) != line || list[i].Fix != state.Spaced(state.Sentence(row["fix"].(string))) {
			p.Errorf("finding %d: the page has %+v, the command prints %v", i, list[i], row)
		}
	}
}

// TestPageAndCommandPrintSameDiagnosis checks that, with default settings, the page and the command
// print the same diagnosis of a trace. The command reads the trace, but the page reads its own
// profile.
func TestPageAndCommandPrintSameDiagnosis(t *testing.T) {
	for _, file := range pagedTraces(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			h := hierarchy.Presets()[0]
			p := openPaged(t, file, []hierarchy.Hierarchy{h})
			p.file = file
			p.checkDiagnosis(h, nil)
			if input := p.commandAnswer("diagnose")["input"].(map[string]any); input["hierarchy"] != h.Name {
				t.Errorf("the hierarchy is %v, want %s", input["hierarchy"], h.Name)
			}
		})
	}
}

// TestPartialDiagnosis checks that progress reports do not change a diagnosis, and that the last
// reported findings are the findings in the result.
func TestPartialDiagnosis(t *testing.T) {
	p := openPaged(t, "demo:matmul-naive", nil)
	q := ask.New(ask.VerbOf("diagnose"))
	want, err := ask.NewRun("a", p.view.Profile).Answer(q)
	if err != nil {
		t.Fatal(err)
	}
	run := ask.NewRun("a", p.view.Profile)
	var last *report.Document
	tried := 0.0
	run.Partial = func(soFar func() *report.Document) {
		last = soFar()
		n, _ := last.Tables[len(last.Tables)-1].Rows[0][0].Number()
		if n < tried {
			t.Errorf("the number of tried changes fell from %g to %g", tried, n)
		}
		tried = n
	}
	d, err := run.Answer(q)
	if err != nil || !bytes.Equal(d.JSON(), want.JSON()) {
		t.Errorf("error %v, and the diagnosis with progress is\n%s\nwant\n%s", err, d.JSON(), want.JSON())
	}
	if tried == 0 || !reflect.DeepEqual(last.Tables[1].Rows, d.Tables[1].Rows) {
		t.Errorf("the last progress, after %g changes, has the findings %v, want the final findings %v", tried, last.Tables[1].Rows, d.Tables[1].Rows)
	}
}

func (p *pageRun) blocks(h hierarchy.Hierarchy, options []string) {
	if len(p.view.Profile.Blocks) == 0 {
		return
	}
	b := p.modelResults(h, 0)
	p.checkTableExports(b.Functions().Table, "pipeline", options...)
	for _, t := range []*state.Table{b.OfFunction().Table, b.Shown("bounds", ""), b.Shown("schedule", "")} {
		if t != nil {
			p.checkExport(t.JSON(), "pipeline", append(slices.Clone(options), "--format", "json")...)
		}
	}
	functions := b.Table("functions")
	for f := range functions.Rows {
		name := functions.Rows[f][functions.Index("function")].Plain()
		p.checkExport(p.modelResults(h, b.Number("functions", f)).OfFunction().JSON(), "pipeline", append(slices.Clone(options), "--function", name, "--format", "json")...)
	}
	counts := p.workerAnswer(state.VerbQuestion("blocks", hierarchy.Hierarchy{}))
	for _, t := range counts.Tables {
		p.checkDocument(state.AnsweredTable(counts, t.Key), "blocks")
	}
	var page, command [][]float64 // sorted, because the page and the command list the executed blocks in different orders
	number := func(t *report.Table, row int, key string) float64 {
		x, _ := t.Rows[row][t.Index(key)].Number()
		return x
	}
	for f := range functions.Rows {
		t := p.modelResults(h, b.Number("functions", f)).Table("blocks")
		for i := range t.Rows {
			if n := number(t, i, "count"); n > 0 {
				page = append(page, []float64{n, n * number(t, i, "instructions")})
			}
		}
	}
	for _, row := range tableRows(p.commandAnswer("blocks"), "blocks") {
		n, _ := row["executions"].(float64)
		instructions, _ := row["instructions"].(float64)
		command = append(command, []float64{n, instructions})
	}
	if a, b := numbersOf(page), numbersOf(command); !slices.Equal(a, b) {
		p.Errorf("blocks differ: the page has\n%s\nthe command prints\n%s", strings.Join(a, "\n"), strings.Join(b, "\n"))
	}
}

// TestPageAndCommandListSamePreviousAccesses checks that the page and the command list the same
// previous accesses for a source location.
func TestPageAndCommandListSamePreviousAccesses(t *testing.T) {
	options, h, err := pagedOptions(pagedHierarchies[1])
	if err != nil {
		t.Fatal(err)
	}
	p := openPagedWith(t, "demo:array-list", state.Settings{Reuse: true}, []hierarchy.Hierarchy{h})
	levels, _, err := p.view.Run.Ranker().Attribute(h)
	if err != nil {
		t.Fatal(err)
	}
	for _, by := range state.CodeBys() {
		view := state.NewCodeView(state.NewCode(p.view.Run, p.view.Run.Ranker(), by, levels), "", "")
		view.Document = p.view.SitesDocument(by, h)
		shown := 0
		for place := range view.Rows() {
			table := view.Before(place)
			p.checkDocument(table, "sites", append(slices.Clone(options), "--by", string(by))...)
			shown += table.Rows
		}
		if n := len(tableRows(p.commandAnswer("sites", append(slices.Clone(options), "--by", string(by))...), "before")); shown < n || n == 0 {
			t.Errorf("previous accesses by %s: the page shows %d rows, the command prints %d", by, shown, n)
		}
	}
}

// TestPageAndCommandPredictSameResults checks that the page (with its default settings) and the
// command predict the same results for runs on several cores.
func TestPageAndCommandPredictSameResults(t *testing.T) {
	const file = "demo:openmp-alone"
	options, h, err := pagedOptions(pagedHierarchies[0])
	if err != nil {
		t.Fatal(err)
	}
	p, cores := &pageRun{T: t, file: file}, new(state.Cores)
	predicted := func(numbers ...int) { // one question predicts the runs on all these numbers of cores
		q := state.Screen{}.CoresQuestion(h)
		q.Name = file
		for _, n := range numbers {
			q.Cores = append(q.Cores, uint32(n))
		}
		cores.Ask(q)
		predict.Answer(q, func() (trace.Reader, io.Closer, error) {
			in, err := pass.Open(t.Context(), file, nil)
			if err != nil {
				return nil, nil, err
			}
			r, err := open.Open(in.Name, in, open.Options{})
			return r, in, err
		}, func() bool { return true }, cores.Take)
		if cores.Problem != "" {
			t.Fatal(cores.Problem)
		}
	}
	predicted(4) // the page first requests the chosen number of cores, and then the other numbers
	predicted(1, 2, 16)
	options = append(options, "--cores", "1,2,4,16", "--processor", costmodel.DefaultProcessor)
	for _, by := range []string{"rates", "speedup", "work", "cores"} {
		table := cores.PredictedTable(by, 0, "")
		if table == nil {
			t.Fatalf("the page has no table %s", by)
		}
		list := options
		if by == "work" || by == "cores" {
			list = append(slices.Clone(options), "--by", by)
		}
		p.checkExport(table.JSON(), "multicore", append(slices.Clone(list), "--format", "json")...)
		if by != "speedup" {
			p.checkExport(table.CSV(), "multicore", append(slices.Clone(list), "--format", "csv")...)
		}
	}
	p.checkExport(cores.PredictedTable("speedup", 0, "").CSV(), "multicore", append(slices.Clone(options), "--by", "speedup", "--format", "csv")...)
	p.comparePredictedThreads(h, options[:len(options)-4])
}

// comparePredictedThreads compares a run's predicted threads with its recorded threads. The page's
// document must equal the command's output for the two profiles.
func (p *pageRun) comparePredictedThreads(h hierarchy.Hierarchy, options []string) {
	q := state.Screen{}.CoresQuestion(h)
	q.Name, q.Cores, q.Keep = p.file, []uint32{4}, 4
	var kept []byte
	predict.Answer(q, func() (trace.Reader, io.Closer, error) {
		in, err := pass.Open(p.Context(), p.file, nil)
		if err != nil {
			return nil, nil, err
		}
		r, err := open.Open(in.Name, in, open.Options{})
		return r, in, err
	}, func() bool { return true }, func(r *answers.Reply) { kept = r.Bytes })
	predicted, err := profile.Decode(kept)
	if err != nil {
		p.Fatal(err)
	}
	measured := openPaged(p.T, "demo:openmp-stencil", []hierarchy.Hierarchy{h})
	a := state.NewView(predicted, 64)
	a.Answers = state.NewAnswers(filepath.Join(p.TempDir(), "predicted.sgp"), predicted)
	if err := os.WriteFile(a.Run.Name, kept, 0o644); err != nil {
		p.Fatal(err)
	}
	t := (&state.Comparison{A: a, B: measured.view}).Levels(h)
	(&pageRun{T: p.T, file: a.Run.Name}).checkTableExports(t, "compare", append([]string{measured.file, "--on", "what-if"}, options...)...)
}

// checkExports checks that the page's exports are byte-identical to the command's exports. The page
// knows only the name of a file, but the command knows its path.
func (p *pageRun) checkExports(h hierarchy.Hierarchy, options []string) {
	name := filepath.Base(p.file)
	for _, form := range export.Forms() {
		if form.Sites && p.view.Profile.Sites == nil {
			continue
		}
		page, err := (&export.Request{Form: form.Name, Title: name, Hierarchy: h, Profile: p.view.Profile.Encode()}).Answer(program.Readable)
		if err != nil {
			p.Fatal(err)
		}
		file := filepath.Join(p.TempDir(), "x")
		if got := stackglass(append([]string{"export", p.file, "--to", form.Name, "-o", file}, options...)...); got.code != exitOK {
			p.Fatal(got)
		}
		command, err := os.ReadFile(file)
		if err != nil {
			p.Fatal(err)
		}
		if form.Name == "json" && len(p.view.Profile.Blocks) > 0 {
			for _, table := range []string{"blocks_functions", "blocks_branches", "pipeline_functions", "pipeline_bounds", "loops_loops", "loops_misses", "loops_arrays"} {
				if !bytes.Contains(page, []byte("\""+table+"\": ")) {
					p.Errorf("the exports for %s have no table %s", h.Lines(), table)
				}
			}
		}
		if command = bytes.ReplaceAll(command, []byte(p.file), []byte(name)); !bytes.Equal(page, command) {
			at := 0
			for at < min(len(page), len(command)) && page[at] == command[at] {
				at++
			}
			p.Errorf("%s for %s differs in byte %d of %d: the page has\n%.300q\nthe command prints\n%.300q", form.Name, h.Lines(), at, len(page), page[max(0, at-100):], command[max(0, at-100):])
		}
	}
}

// checkComparison checks that the page's documents equal the command's output if the page compares
// two traces.
func (p *pageRun) checkComparison(other *pageRun, h hierarchy.Hierarchy, options []string) {
	c := &state.Comparison{A: p.view, B: other.view}
	on := func(t *state.Table, what string, options ...string) {
		p.Helper()
		p.checkTableExports(t, "compare", append([]string{other.file, "--on", what}, options...)...)
	}
	on(c.Levels(h), "what-if", options...)
	if p.view.Run.Ranker() != nil && other.view.Run.Ranker() != nil {
		for _, by := range state.CodeBys() {
			if by == attribution.Object && (len(p.view.Profile.Sites.Data) == 0 || len(other.view.Profile.Sites.Data) == 0) {
				continue
			}
			on(c.CodeBy(by, h, ""), "sites by="+string(by), options...)
		}
		on(c.CodeBy(attribution.Function, h, "references_difference"), "sites by=function", append(options, "--sort", "references")...)
	}
	p.compareBlocks(other, c, h, options)
	if len(p.view.Profile.Loops) > 0 && len(other.view.Profile.Loops) > 0 {
		q := state.LoopsQuestion(h.Levels)
		replies := [2]*answers.Reply{p.workerAnswer(q), other.workerAnswer(q)}
		options := append([]string{other.file, "--on", "loops", "--format", "json"}, slices.DeleteFunc(slices.Clone(options), func(text string) bool { return text == "--one-core" })...)
		p.checkExport(c.LoopsTable(replies, h, "").JSON(), "compare", options...)
		p.checkExport(c.LoopMissesTable(replies, h, "").JSON(), "compare", options...)
	}
	if !slices.Equal(options[:2], []string{"--cache", strings.Fields(pagedHierarchies[0])[0]}) {
		return // the other tables do not depend on the caches, so they are checked for only one hierarchy
	}
	on(c.Facts(), "summary")
	on(c.CurveTable(), "curve")
	on(c.SetsTable(""), "sets")
	on(c.HistogramTable(), "histogram")
	on(c.TimeTable(5), "windows")
	on(c.CountersBy(answers.ByProgram, ""), "counters")
	on(c.CountersBy(answers.ByFunction, ""), "counters by=function")
	on(c.CountersBy(answers.ByBlock, "flops_difference"), "counters by=block", "--sort", "flops")
	if t := c.Own(32<<10, ""); t != nil {
		on(t, "threads by=core", "--cache", "L1=32KiB,full")
		on(c.Shared(1<<20, ""), "threads by=domain", "--cache", "L2=1MiB,full,shared=all")
	}
	if t := c.Flows(""); t != nil {
		on(t, "communication by=flow")
		on(c.Pairs(""), "communication by=site")
	}
}

// compareBlocks compares the models' results for both traces, for the function with the most cycles
// in the first trace.
func (p *pageRun) compareBlocks(other *pageRun, c *state.Comparison, h hierarchy.Hierarchy, options []string) {
	if len(p.view.Profile.Blocks) == 0 || len(other.view.Profile.Blocks) == 0 {
		return
	}
	pair := &state.BlocksPair{Runs: c, Machine: h}
	pair.A = p.modelResults(h, 0)
	if pair.B = other.modelResults(h, 0); pair.Same() != 0 {
		pair.B = other.modelResults(h, pair.Same())
	}
	p.checkTableExports(pair.Functions(""), "compare", append([]string{other.file, "--on", "pipeline"}, options...)...)
	if t := pair.OfFunction(""); t != nil {
		p.checkExport(t.JSON(), "compare", append([]string{other.file, "--on", "pipeline function=" + pair.A.FunctionName(), "--format", "json"}, options...)...)
	}
}

// modelResults returns the models' results for a run on the page. The function number 0 selects the
// function with the most cycles.
func (p *pageRun) modelResults(h hierarchy.Hierarchy, function uint32) *state.Blocks {
	p.Helper()
	m, err := costmodel.Open(p.view.Profile.Encode(), "", nil)
	if err != nil {
		p.Fatal(err)
	}
	return state.NewBlocks(p.view.Run, h, m.Answer(answers.ModelQuestion{Machine: h.Lines(), Function: function}))
}
