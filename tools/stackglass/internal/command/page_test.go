package command

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/answers/loopcount"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/costmodel"
	"github.com/stackglass/stackglass/core/export"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/multicore/predict"
	"github.com/stackglass/stackglass/core/open"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/tools/stackglass/internal/pass"
	"github.com/stackglass/stackglass/ui/state"
)

// paged is a trace as the page and the command see it.
type paged struct {
	*testing.T
	file string
	view *state.View
}

// pagedTraces are all demos, and captured OpenMP programs with several threads.
func pagedTraces(t *testing.T) (files []string) {
	demos, err := filepath.Glob("../../../../site/demos/*.sgt")
	if err != nil || len(demos) == 0 {
		t.Fatal("no demos", err)
	}
	for _, demo := range demos {
		files = append(files, "demo:"+strings.TrimSuffix(filepath.Base(demo), ".sgt"))
	}
	return append(files, kernels+"stencil.sgt", kernels+"histogram.sgt")
}

// pagedHierarchies are given to the command by these options, and to the page by lines.
var pagedHierarchies = []string{
	"L1=32KiB,8,latency=4 L2=256KiB,8,latency=12 L3=8MiB,16,shared=4,hashed,latency=36 memory=latency=235",
	"L1=1KiB,full L2=8KiB,4,shared=all",
	"L1=2KiB,4 L2=16KiB,full threads=one-core",
}

// pagedOptions are those of the command for a hierarchy.
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

// openPaged analyses a trace as the page does, for several hierarchies, and writes the
// profile to a file for the command.
func openPaged(t *testing.T, trace string, hierarchies []hierarchy.Hierarchy) *paged {
	t.Helper()
	spec, err := state.Settings{Loops: true}.Spec()
	if err != nil {
		t.Fatal(err)
	}
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
	file := filepath.Join(t.TempDir(), "with a name as long as a path, which reports give more room.sgp")
	if err := os.WriteFile(file, r.Profile.Encode(), 0o644); err != nil {
		t.Fatal(err)
	}
	view := state.NewView(r.Profile, 64)
	view.Run.Name = file
	return &paged{t, file, view}
}

// command gives what the command answers in JSON.
func (p *paged) command(verb string, options ...string) map[string]any {
	p.Helper()
	args := append(append([]string{verb, p.file}, options...), "--format", "json")
	got := stackglass(args...)
	var d map[string]any
	if err := json.Unmarshal([]byte(got.stdout), &d); err != nil || got.code != exitOK {
		p.Fatalf("%s: %v\n%s", args, err, got)
	}
	return d
}

// rows returns the rows of one table of a decoded JSON answer.
func rows(d map[string]any, table string) (list []map[string]any) {
	whole, _ := d[table].([]any)
	for _, row := range whole {
		list = append(list, row.(map[string]any))
	}
	return list
}

// bare is a number of the page without what it is set in.
func bare(text string) string {
	return strings.NewReplacer("≈", "", " ", "", "\u202f", "", "\u00a0", "", "%", "", "cycles", "", "−", "-").Replace(text)
}

// same compares what the page shows with a number of the command.
func (p *paged) same(what, page string, command any, write func(float64) string) {
	p.Helper()
	x, is := command.(float64)
	if page == "" || page == "–" {
		if is && x != 0 {
			p.Errorf("%s: the page shows %q, the command %v", what, page, command)
		}
		return
	}
	if !is || bare(page) != bare(write(x)) {
		p.Errorf("%s: the page shows %q, the command %v", what, page, command)
	}
}

// sameCSV compares two tables of the same rows: columns of the page by those of the
// command.
func (p *paged) sameCSV(what string, page []byte, d []map[string]any, columns map[string]string) {
	p.Helper()
	list, err := csv.NewReader(bytes.NewReader(page)).ReadAll()
	if err != nil || len(list) == 0 {
		p.Fatalf("%s: %v\n%s", what, err, page)
	}
	if len(list)-1 != len(d) {
		p.Errorf("%s: the page has %d rows, the command %d", what, len(list)-1, len(d))
		return
	}
	for i, row := range list[1:] {
		for column, key := range columns {
			at := slices.Index(list[0], column)
			if at < 0 {
				p.Fatalf("%s: the page has no column %s: %s", what, column, list[0])
			}
			want := fmt.Sprint(d[i][key])
			if x, is := d[i][key].(float64); is {
				want = strconv.FormatFloat(x, 'f', -1, 64)
				if y, err := strconv.ParseFloat(row[at], 64); err == nil && (x-y <= 0.001 && y-x <= 0.001) {
					continue // the page rounds to thousandths
				}
			}
			if row[at] != want && !(d[i][key] == nil && (row[at] == "–" || row[at] == "")) {
				p.Errorf("%s, row %d: %s is %s in the page, %s %s in the command", what, i, column, row[at], key, want)
				return
			}
		}
	}
}

// TestPageAndCommand: the page, with its default settings, shows the numbers that the
// command prints of the same trace.
func TestPageAndCommand(t *testing.T) {
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
				p.loops(h, options)
				p.blocks(h, options)
				p.exports(h, options)
				p.compare(other, h, options)
			}
		})
	}
}

func (p *paged) caches(h hierarchy.Hierarchy, options []string) {
	page, d := p.view.Predict(h), p.command("what-if", options...)
	if page.Problem != "" {
		p.Fatalf("the page has no answer: %s", page.Problem)
	}
	levels := rows(d, "levels")
	for i, l := range page.Levels {
		for what, shown := range map[string]string{"accesses": l.Accesses, "hits": l.Hits, "misses": l.Misses, "coherence_misses": l.Lost} {
			p.same(l.Cache.Name+" "+what, shown, levels[i][what], state.Count)
		}
		if l.Chip != levels[i]["method"] {
			p.Errorf("%s: the page's method is %s, the command's %s", l.Cache.Name, l.Chip, levels[i]["method"])
		}
	}
	if cycles := rows(d, "amat"); len(cycles) == 1 && page.Average != "" {
		p.Errorf("the average access time is a table: %v", cycles)
	} else if amat, is := d["amat"].(map[string]any); is {
		p.same("average access time", fmt.Sprintf("%.6f", page.Prediction.AverageCycles), amat["cycles"], func(x float64) string { return fmt.Sprintf("%.6f", x) })
	}
	p.same("memory accesses", page.Memory, d["memory"].(map[string]any)["accesses"], state.Count)
	input := d["input"].(map[string]any)
	if line := strings.Replace(answers.ThreadsOn(p.view.Profile, h), " threads", "", 1); line != "" && line != input["threads_on"] {
		p.Errorf("the page says of threads %q, the command %q", line, input["threads_on"])
	}
	if page.Cores != nil {
		p.exported(page.Cores, "what-if", append(slices.Clone(options), "--by", "core")...)
	}
}

// numbersOf sorts lists of numbers, so that rows that are equal in the number by which a
// table is sorted may have any order.
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

func (p *paged) code(h hierarchy.Hierarchy, options []string) {
	if p.view.Ranker() == nil {
		return
	}
	levels, _, err := p.view.Ranker().Attribute(h)
	if err != nil {
		p.Fatal(err)
	}
	for _, by := range state.CodeBys() {
		name := map[state.CodeBy]string{state.ByLine: "line", state.BySite: "site", state.ByFunction: "function", state.ByObject: "object"}[by]
		if by == state.ByObject && len(p.view.Profile.Sites.Data) == 0 {
			continue
		}
		view := state.NewCodeView(state.NewCode(p.view.Profile.Sites, p.view.Ranker(), by, levels), "", "")
		view.Document = p.view.SitesDocument(by, h)
		grid := view.Grid(-1)
		p.exported(grid.Table, "sites", append(slices.Clone(options), "--by", name)...)
		// What the grid shows of each place, in any order, is what the document has.
		var page, document []string
		cells, marks := grid.View(0, grid.Rows)
		for i, row := range cells {
			text := ""
			for c, column := range grid.Columns {
				if strings.HasPrefix(column.Key, "misses_") {
					text += " " + bare(row[c])
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
				text += " " + bare(state.Count(x))
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

// exported compares what the page exports of a table with what the command prints, byte by
// byte.
func (p *paged) exported(t *state.Table, verb string, options ...string) {
	p.Helper()
	if t == nil || !t.Exports() {
		p.Errorf("%s %s: the page exports nothing: %+v", verb, options, t)
		return
	}
	p.printed(t.CSV(), verb, append(options, "--format", "csv")...)
	p.printed(t.JSON(), verb, append(options, "--format", "json")...)
}

// printed compares a file of the page with what the command prints.
func (p *paged) printed(page []byte, verb string, options ...string) {
	p.Helper()
	got := stackglass(append([]string{verb, p.file}, options...)...)
	if got.code != exitOK {
		p.Fatalf("%s %s: %s", verb, options, got)
	}
	if string(page) != got.stdout {
		p.Errorf("%s %s: the page has %d bytes, the command %d:\n%.1500s\n%.1500s", verb, options, len(page), len(got.stdout), page, got.stdout)
	}
}

func (p *paged) locality() {
	p.exported(p.view.CurveTable(), "curve")
	p.exported(p.view.CommonTable(), "curve")
	p.exported(p.view.HistogramTable(), "histogram")
	p.exported(p.view.OverTimeTable(p.view.DefaultLog2Lines()), "windows")
	p.exported(p.view.WorkingSetTable(), "windows")
	p.exported(p.view.SetsTable(), "sets")
}

func (p *paged) threads() {
	threads := p.view.Threads()
	if threads == nil {
		return
	}
	p.exported(threads.CurvesTable(), "threads", "--curve")
	p.exported(threads.OwnTable(32<<10), "threads", "--by", "core", "--cache", "L1=32KiB,full")
	p.exported(threads.SharedTable(state.OneGroup(len(threads.Cores)), 1<<20), "threads", "--by", "domain", "--cache", "L2=1MiB,full,shared="+strconv.Itoa(len(threads.Cores)))
	p.exported(threads.ChangeTable(), "threads", "--by", "change")
}

func (p *paged) communication() {
	c := p.view.Communication()
	if c == nil {
		return
	}
	for i, granularity := range ask.VerbOf("communication").Arg("granularity").Words {
		p.exported(c.FlowsTable(i, 0), "communication", "--by", "flow", "--granularity", granularity)
	}
	windows := rows(p.command("communication", "--by", "window"), "windows")
	for w := range c.Windows {
		if w == 0 {
			p.exported(c.FlowsTable(0, w+1), "communication", "--by", "window")
		}
		first := float64(uint64(w) * c.Window)
		n := 0
		for _, row := range windows {
			if row["first_reference"] == first {
				n++
			}
		}
		if shown := c.FlowsTable(0, w+1).Rows; shown != n {
			p.Errorf("window %d: the page shows %d flows, the command %d", w, shown, n)
		}
	}
	p.printed(c.TrafficTable().JSON(), "communication", "--format", "json")
	if t := c.FalseTable(); t != nil {
		p.exported(t, "communication", "--false-sharing")
	} else if list := rows(p.command("communication", "--false-sharing"), "false_sharing"); len(list) > 0 {
		p.Errorf("the page has no false sharing, the command %v", list)
	}
	p.exported(c.PairsTable([2]int{-1, -1}), "communication", "--by", "site")
	parts := 0
	for i := range c.Owners {
		if i == 0 {
			p.exported(c.OwnersTable(i), "communication", "--by", "owner")
		}
		parts += c.OwnersTable(i).Rows
	}
	if n := len(rows(p.command("communication", "--by", "owner"), "owners")); n != parts {
		p.Errorf("the page shows %d parts of data, the command %d", parts, n)
	}
	if c.Sources != nil {
		cache := rows(p.command("communication", "--cache", "L1=32KiB,full"), "caches")[0]
		want := "Of " + state.Count(cache["transfers"].(float64)) + " transfers of lines, " + state.Count(cache["cache_to_cache"].(float64)) + ", "
		if page := c.SourceSentence(32 << 10); cache["transfers"] != 0.0 && !strings.HasPrefix(page, want) {
			p.Errorf("where lines come from: the page says %q, the command %v", page, cache)
		}
	}
}

func (p *paged) counters() {
	if p.view.Profile.Counters == nil {
		return
	}
	keys, tables := state.CounterTables(p.view.Answers, answers.ByProgram, "")
	for _, key := range keys {
		p.printed(tables[key].JSON(), "counters", "--format", "json")
	}
	for _, by := range []answers.CountersBy{answers.ByFunction, answers.ByBlock} {
		keys, tables := state.CounterTables(p.view.Answers, by, "")
		p.exported(tables[keys[0]], "counters", "--by", string(by))
	}
}

func (p *paged) loops(h hierarchy.Hierarchy, options []string) {
	l, problem := state.NewLoops(p.view.Profile)
	if problem != "" {
		return
	}
	options = slices.DeleteFunc(slices.Clone(options), func(text string) bool { return text == "--one-core" })
	d := p.command("loops", append(options, "--share", "0.1%")...)
	list, err := csv.NewReader(bytes.NewReader(l.Grid(0, nil).Table.CSV())).ReadAll()
	if err != nil {
		p.Fatal(err)
	}
	shown := map[string]int{} // loops of the page, which leaves out the smallest
	for i, row := range list[1:] {
		shown[row[0]] = i
	}
	loops := slices.DeleteFunc(rows(d, "loops"), func(loop map[string]any) bool { _, is := shown[fmt.Sprint(loop["loop"])]; return !is })
	p.sameCSV("loops", l.Grid(0, nil).Table.CSV(), loops, map[string]string{"loop": "loop", "references": "references", "runs": "runs"})
	machine := h
	machine.Threads = hierarchy.OnOwnCores
	var counted *answers.Reply
	counter, err := loopcount.Open(p.view.Profile.Encode())
	if err != nil {
		p.Fatal(err)
	}
	counter.Answer(answers.LoopQuestion{Machine: machine.Lines()}, func() bool { return true }, func(r *answers.Reply) {
		if r.Part == "" {
			counted = r
		}
	})
	for _, row := range rows(d, "misses") {
		at := slices.IndexFunc(counted.Table("by_loop").Columns, func(c report.Column) bool { return c.Key == row["level"] })
		if i, is := shown[fmt.Sprint(row["loop"])]; is && at >= 0 && !report.Equal(counted.Table("by_loop").Rows[i][at], report.None()) {
			p.same(fmt.Sprint("misses of loop ", row["loop"]), state.MissesCell(counted, at, i), row["misses"], state.Count)
		}
	}
}

func (p *paged) blocks(h hierarchy.Hierarchy, options []string) {
	if len(p.view.Profile.Blocks) == 0 {
		return
	}
	m, err := costmodel.Open(p.view.Profile.Encode(), "", nil)
	if err != nil {
		p.Fatal(err)
	}
	b := state.NewBlocks(m.Answer(answers.ModelQuestion{Machine: h.Lines()}))
	p.sameCSV("functions", b.Functions().Table.CSV(), rows(p.command("pipeline", options...), "functions"),
		map[string]string{"function": "function", "calls": "calls", "instructions": "instructions", "cycles": "cycles"})
	var page, command [][]float64 // executions and instructions of blocks that run, whose order differs
	number := func(t *report.Table, row int, key string) float64 {
		x, _ := t.Rows[row][t.Index(key)].Number()
		return x
	}
	functions := b.Table("functions")
	for f := range functions.Rows {
		t := m.Answer(answers.ModelQuestion{Machine: h.Lines(), Function: uint32(number(functions, f, "number"))}).Table("blocks")
		for i := range t.Rows {
			if n := number(t, i, "count"); n > 0 {
				page = append(page, []float64{n, n * number(t, i, "instructions")})
			}
		}
	}
	for _, row := range rows(p.command("blocks"), "blocks") {
		n, _ := row["executions"].(float64)
		instructions, _ := row["instructions"].(float64)
		command = append(command, []float64{n, instructions})
	}
	if a, b := numbersOf(page), numbersOf(command); !slices.Equal(a, b) {
		p.Errorf("blocks differ: the page has\n%s\nthe command\n%s", strings.Join(a, "\n"), strings.Join(b, "\n"))
	}
}

// TestPageAndCommandPredictCores: the page, with its default settings, predicts the same
// for several cores as the command.
func TestPageAndCommandPredictCores(t *testing.T) {
	const file = "demo:openmp-alone"
	options, h, err := pagedOptions(pagedHierarchies[0])
	if err != nil {
		t.Fatal(err)
	}
	p, cores := &paged{T: t, file: file}, new(state.Cores)
	predicted := func(numbers ...int) { // in one question
		q := state.Screen{}.CoresQuestion(h)
		q.Name = file
		for _, n := range numbers {
			q.Cores = append(q.Cores, uint32(n))
		}
		cores.Ask()
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
	predicted(4) // the page asks for the chosen number first, and then for others
	predicted(1, 2, 16)
	options = append(options, "--cores", "1,2,4,16", "--processor", costmodel.DefaultProcessor)
	answer := p.command("multicore", options...) // has rates and speedup
	for _, by := range []string{"work", "cores"} {
		maps.Copy(answer, p.command("multicore", append(options, "--by", by)...))
	}
	for _, by := range []string{"rates", "speedup", "work", "cores"} {
		table := cores.PredictedTable(by, 0, "")
		if table == nil {
			t.Fatalf("the page has no table %s", by)
		}
		columns := map[string]string{}
		for _, c := range table.Source().Columns {
			columns[c.Key] = c.Key
		}
		p.sameCSV(by, table.CSV(), rows(answer, by), columns)
	}
}

// exports compares the page's exports with the command's, byte by byte. The page knows the
// name of a file only, the command its path.
func (p *paged) exports(h hierarchy.Hierarchy, options []string) {
	name := filepath.Base(p.file)
	for _, form := range export.Forms() {
		if form.Sites && p.view.Profile.Sites == nil {
			continue
		}
		page, err := (&export.Request{Form: form.Name, Title: name, Hierarchy: h, Profile: p.view.Profile.Encode()}).Answer()
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
			p.Errorf("%s for %s differs in byte %d of %d: the page has\n%.300q\nthe command\n%.300q", form.Name, h.Lines(), at, len(page), page[max(0, at-100):], command[max(0, at-100):])
		}
	}
}

// compare puts two traces side by side.
func (p *paged) compare(other *paged, h hierarchy.Hierarchy, options []string) {
	c := &state.Comparison{A: p.view, B: other.view}
	p.joins(other, h, options)
	d := p.command("compare", append([]string{other.file, "--on", "what-if"}, options...)...)
	list, err := csv.NewReader(bytes.NewReader(c.Levels(h).CSV())).ReadAll()
	if err != nil {
		p.Fatal(err)
	}
	for _, row := range rows(d, "levels") {
		name, number := fmt.Sprint(row["name"]), fmt.Sprint(row["number"])
		for _, of := range list[1:] {
			if strings.HasPrefix(of[0], name+",") && of[slices.Index(list[0], "number")] == number {
				for _, side := range []string{"a", "b"} {
					if number == "miss_ratio" {
						continue
					}
					p.same(name+" "+number+" of "+side, of[slices.Index(list[0], side)], row[side], state.Count)
				}
			}
		}
	}
}

// joins puts the other tables of two traces side by side that both have: curve, histogram,
// windows, counters and places in the code.
func (p *paged) joins(other *paged, h hierarchy.Hierarchy, options []string) {
	c := &state.Comparison{A: p.view, B: other.view}
	on := func(what string, options ...string) map[string]any {
		return p.command("compare", append([]string{other.file, "--on", what}, options...)...)
	}
	p.sameSides("counters", c.CountersBy(answers.ByProgram, ""), rows(on("counters"), "counters"))
	for by, table := range map[answers.CountersBy]string{answers.ByFunction: "functions", answers.ByBlock: "blocks"} {
		p.sameSides("counters by "+string(by), c.CountersBy(by, ""), rows(on("counters", "--by", string(by)), table))
	}
	if p.view.Ranker() != nil && other.view.Ranker() != nil {
		for by, name := range map[state.CodeBy]string{state.ByLine: "line", state.ByFunction: "function", state.ByObject: "object"} {
			if by == state.ByObject && (len(p.view.Profile.Sites.Data) == 0 || len(other.view.Profile.Sites.Data) == 0) {
				continue
			}
			t, err := c.CodeBy(by, h, "")
			if err != nil {
				p.Fatal(err)
			}
			p.sameSides("misses by "+name, t, rows(on("sites", append(options, "--by", name)...), "sites"))
		}
	}
	p.facts(c, h, on("summary"))
	// The page has the misses of one cache over time, the command those of all.
	windows := map[string][]map[string]any{}
	for _, row := range rows(on("windows"), "windows") {
		if number := fmt.Sprint(row["number"]); strings.HasPrefix(number, "misses_") {
			row["number"] = number + "_lines"
			windows[number] = append(windows[number], row)
		}
	}
	for log2Lines := range len(windows) {
		lines := fmt.Sprint(1 << log2Lines)
		p.sameSides("windows in "+lines+" lines", c.TimeTable(log2Lines), windows["misses_"+lines])
	}
	// The page has the curves at powers of two, the command wherever one of them changes.
	at, misses := map[string][2]any{}, rows(on("curve"), "curve")
	for lines := 1.0; lines <= 1<<40; lines *= 2 {
		for _, row := range misses {
			if row["number"] == "misses" && row["capacity_lines"].(float64) <= lines {
				at[state.Exact(uint64(lines))] = [2]any{row["a"], row["b"]}
			}
		}
	}
	t := c.CurveTable().Source()
	for _, row := range t.Rows {
		if row[t.Index("number")].Plain() != "misses" {
			continue
		}
		lines, _ := row[t.Index("capacity_lines")].Number()
		for i, side := range []string{"a", "b"} {
			p.same(fmt.Sprint("misses of ", side, " in ", lines, " lines"), row[t.Index(side)].Plain(), at[state.Exact(uint64(lines))][i], func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) })
		}
	}
	// The page sums distances up to powers of two.
	sums := map[string][2]float64{}
	for _, row := range rows(on("histogram"), "histogram") {
		name := "first access" // the distance inf
		if d, is := row["distance"].(float64); is {
			name = answers.BinName(bits.Len64(uint64(d)))
		}
		a, _ := row["a"].(float64)
		b, _ := row["b"].(float64)
		sums[name] = [2]float64{sums[name][0] + a, sums[name][1] + b}
	}
	t = c.HistogramTable().Source()
	for _, row := range t.Rows {
		name := row[t.Index("distance")].Plain()
		for i, side := range []string{"a", "b"} {
			if x, _ := row[t.Index(side)].Number(); row[t.Index("number")].Plain() == "count" && x != sums[name][i] {
				p.Errorf("accesses at distance %s of %s: the page has %v, the command %v", name, side, x, sums[name][i])
			}
		}
	}
}

// facts compares the page's facts of two traces with the command's summary.
func (p *paged) facts(c *state.Comparison, h hierarchy.Hierarchy, d map[string]any) {
	p.Helper()
	sums := map[string][2]float64{}
	add := func(fact string, row map[string]any, times float64) {
		a, _ := row["a"].(float64)
		b, _ := row["b"].(float64)
		sums[fact] = [2]float64{sums[fact][0] + a*times, sums[fact][1] + b*times}
	}
	for _, row := range rows(d, "kinds") {
		add(map[any]string{"references": "references", "bytes": "bytes accessed"}[row["number"]], row, 1)
	}
	for _, row := range rows(d, "locality") {
		if row["line_bytes"] == 64.0 {
			name := fmt.Sprint(row["number"])
			if name == "half_within_lines" {
				add("cache in which half of all accesses hit", row, 64)
			}
			add(map[string]string{"accesses": "line accesses", "lines": "lines", "footprint_bytes": "footprint"}[name], row, 1)
		}
	}
	t, compared := c.Facts(h).Source(), 0
	for _, row := range t.Rows {
		want, is := sums[row[t.Index("fact")].Plain()]
		if !is {
			continue
		}
		compared++
		for i, side := range []string{"a", "b"} {
			if x, _ := row[t.Index(side)].Number(); x != want[i] {
				p.Errorf("%s of %s: the page has %v, the command %v", row[t.Index("fact")].Plain(), side, x, want[i])
			}
		}
	}
	if compared < len(sums)-1 { // but for miss ratios
		p.Errorf("%d facts of the page are in the command's summary: %v", compared, t.Rows)
	}
}

// sameSides compares joined tables, whose rows need not be in one order: each number of A
// and B by what it is called.
func (p *paged) sameSides(what string, page *state.Table, d []map[string]any) {
	p.Helper()
	a, b := map[string][][]float64{}, map[string][][]float64{} // by number
	t := page.Source()
	add := func(number string, x, y report.Value) {
		if x.IsNumber() || y.IsNumber() {
			of, _ := strconv.ParseFloat(x.Plain(), 64) // rounded as in JSON
			beside, _ := strconv.ParseFloat(y.Plain(), 64)
			a[number] = append(a[number], []float64{of, beside})
		}
	}
	for _, row := range t.Rows {
		if at := t.Index("number"); at >= 0 {
			add(row[at].Plain(), row[t.Index("a")], row[t.Index("b")])
			continue
		}
		for i, c := range t.Columns {
			if number, is := strings.CutSuffix(c.Key, "_a"); is {
				add(number, row[i], row[t.Index(number+"_b")])
			}
		}
	}
	for _, row := range d {
		x, isA := row["a"].(float64)
		y, isB := row["b"].(float64)
		if number := fmt.Sprint(row["number"]); isA || isB {
			b[number] = append(b[number], []float64{x, y})
		}
	}
	if len(a) == 0 && len(b) > 0 {
		p.Errorf("%s of two traces: the page has no numbers", what)
	}
	for number := range a {
		if page, command := numbersOf(a[number]), numbersOf(b[number]); !slices.Equal(page, command) {
			p.Errorf("%s of two traces differ in %s: the page has %d rows, the command %d:\n%.600s\n%.600s", what, number, len(page), len(command), page, command)
		}
	}
	for number := range b {
		if a[number] == nil {
			p.Errorf("%s of two traces: the page lacks %s", what, number)
		}
	}
}
