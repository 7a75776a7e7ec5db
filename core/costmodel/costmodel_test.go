package costmodel_test

import (
	"io"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/costmodel"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/open"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
)

func read(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// profileOf analyses a demo with its blocks.
func profileOf(t *testing.T, demo string) []byte {
	t.Helper()
	f, err := os.Open("../../site/demos/" + demo + ".sgt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := open.Open(demo+".sgt", f, open.Options{})
	if err != nil {
		t.Fatal(err)
	}
	a, err := analysis.NewRunner(analysis.Spec{Kinds: trace.DataKinds, LineBytes: []uint32{64, 128}, Analyses: analysis.Default | analysis.Blocks}, r)
	for err == nil {
		err = a.Step()
	}
	if err != io.EOF {
		t.Fatal(err)
	}
	return a.Finish(profile.State{}).Encode()
}

// cellIn returns a cell of the row whose key column contains the given text.
func cellIn(t *testing.T, r *answers.Reply, table, keyColumn, text, column string) report.Value {
	t.Helper()
	of := r.Table(table)
	if of == nil {
		t.Fatalf("no table %s", table)
	}
	for _, row := range of.Rows {
		if row[of.Index(keyColumn)].Plain() == text {
			return row[of.Index(column)]
		}
	}
	t.Fatalf("table %s has no row with %s %s:\n%s", table, keyColumn, text, of.CSV())
	return report.Value{}
}

func haswell(t *testing.T) []string {
	t.Helper()
	for _, h := range hierarchy.Presets() {
		return h.Lines()
	}
	return nil
}

// The counts equal the run's counts: 32³ for the innermost loop.
func TestRun(t *testing.T) {
	m, err := costmodel.Open(profileOf(t, "matmul-naive"), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	r := m.Answer(answers.ModelQuestion{Machine: haswell(t)})
	if r.Problem != "" || r.Bytes != nil {
		t.Errorf("problem %q, encoded profile of %d bytes; want neither", r.Problem, len(r.Bytes))
	}
	for label, want := range map[string]string{"entry": "1", "for.cond1.preheader": "32", "for.cond5.preheader": "1024", "for.body8": "32768"} {
		if got := cellIn(t, r, "blocks", "block", label, "count").Plain(); got != want {
			t.Errorf("%s ran %s times, want %s", label, got, want)
		}
	}
	list := r.Table("blocks") // in descending order of cycles
	for i := 1; i < len(list.Rows); i++ {
		before, _ := list.Rows[i-1][list.Index("cycles")].Number()
		if cycles, _ := list.Rows[i][list.Index("cycles")].Number(); cycles > before {
			t.Errorf("a block of %v cycles follows a block of %v cycles, want descending order", cycles, before)
		}
	}
	if got := list.Rows[0][list.Index("block")].Plain(); got != "for.body8" {
		t.Errorf("%s is listed first, want for.body8", got)
	}
	// Each addition waits three cycles for the previous addition, because baseline x86-64 has no
	// multiply-add instruction.
	if got := cellIn(t, r, "blocks", "block", "for.body8", "limit").Plain(); got != "recurrence" {
		t.Errorf("limited by %s", got)
	}
	if got := cellIn(t, r, "bounds", "name", "cycles per iteration", "value").Plain(); got != "3" {
		t.Errorf("an iteration takes %s cycles, want 3", got)
	}
	if len(r.Unmodelled) == 0 {
		t.Error("the reply does not list the costs that are not modelled")
	}
}

// TestLoadsUseCacheLatencies checks that loads have the latencies of the caches in every preset.
// For a hierarchy without latencies, a note states the assumed latencies.
func TestLoadsUseCacheLatencies(t *testing.T) {
	m, err := costmodel.Open(profileOf(t, "array-list"), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range append(hierarchy.Presets(), levelsOf(0, 0, 0)) {
		notes := strings.Join(m.Answer(answers.ModelQuestion{Machine: h.Lines()}).Notes, "\n")
		if strings.Contains(notes, "Every load is assumed to hit") {
			t.Errorf("%s: %s", h.Name, notes)
		}
		if got := strings.Contains(notes, "assumed latencies, in cycles: L1 5, L2 17.5, memory 300 "); got != (h.Name == "") {
			t.Errorf("%s: %s", h.Name, notes)
		}
	}
}

// TestPageWalksAreNoted checks that the predicted time includes page walks, and that a note states their
// number if their time is long. If the profile does not count pages, a note says so.
func TestPageWalksAreNoted(t *testing.T) {
	p, err := profile.Decode(profileOf(t, "matmul-naive"))
	if err != nil {
		t.Fatal(err)
	}
	n := p.Totals.AllReferences()
	pages := func(cold uint64) (list []profile.Pages) {
		for i, size := range profile.PageSizes {
			list = append(list, profile.Pages{PageBytes: size, Accesses: n, Cold: max(cold>>(9*i), 1)})
		}
		return list
	}
	cycles := 0.0
	for _, c := range []struct {
		pages []profile.Pages
		want  string // "" if there must be no note
	}{
		{nil, "The page walks of this run are unknown: its profile does not contain stack distances of pages."},
		{pages(4), ""},
		{pages(n), "The time includes about 66,554 page walks of 40 cycles each, but not about 6 page walks for lines that a prefetcher fetches."},
		{pages(n), "Pages of 2 MiB avoid 99.8 % of the page walks."},
	} {
		p.Pages = c.pages
		m, err := costmodel.New(p, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		r := m.Answer(answers.ModelQuestion{Machine: haswell(t)})
		notes := strings.Join(r.Notes, "\n")
		if !strings.Contains(notes, c.want) || strings.Contains(notes, "page walks") != (c.want != "") {
			t.Errorf("notes = %s, want %q", notes, c.want)
		}
		got, _ := cellIn(t, r, "program", "name", "cycles", "value").Number()
		switch walks := 66_554 * costmodel.WalkCycles; {
		case cycles == 0:
			cycles = got
		case strings.HasPrefix(c.want, "The time") && (got < walks*0.95 || got > walks+cycles):
			t.Errorf("%v cycles, want about the %v cycles of page walks, which no other misses overlap", got, walks)
		case c.want == "" && got != cycles:
			t.Errorf("%v cycles with few page walks, want %v as without", got, cycles)
		}
	}
}

// For a module without a run, notes state the assumptions. Adding the module of the traced program
// changes nothing.
func TestModule(t *testing.T) {
	module := read(t, "testdata/matmul-naive.ll")
	m, err := costmodel.Open(nil, "matmul-naive.ll", module)
	if err != nil {
		t.Fatal(err)
	}
	r := m.Answer(answers.ModelQuestion{})
	if got := cellIn(t, r, "branches", "to", "for.body8", "origin").Plain(); got != "assumed" {
		t.Errorf("the origin of a branch is %q, want assumed", got)
	}
	if got := cellIn(t, r, "functions", "function", "main", "calls").Plain(); got != "1" {
		t.Errorf("main is called %s times, want 1", got)
	}
	notes := strings.Join(r.Notes, "\n")
	if !strings.Contains(notes, "loops are assumed to run ten times") {
		t.Errorf("notes %s", notes)
	}

	// The module is stored as a profile, which yields the same answer.
	kept, err := costmodel.Open(r.Bytes, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	again := kept.Answer(answers.ModelQuestion{})
	if again.Bytes != nil || !reflect.DeepEqual(again.Tables, r.Tables) || strings.Join(again.Notes, "\n") != notes {
		t.Errorf("the stored profile yields the notes %q and the blocks\n%s\nwant the notes %q and the blocks\n%s", again.Notes, again.Table("blocks").CSV(), notes, r.Table("blocks").CSV())
	}

	encoded := profileOf(t, "matmul-naive")
	both, err := costmodel.Open(encoded, "matmul-naive.ll", module)
	if err != nil {
		t.Fatal(err)
	}
	r = both.Answer(answers.ModelQuestion{})
	if got := cellIn(t, r, "blocks", "block", "for.body8", "count").Plain(); got != "32768" || strings.Contains(strings.Join(r.Notes, ""), "a different build") {
		t.Errorf("%s times, %q", got, r.Notes)
	}
	other := strings.ReplaceAll(string(module), "for.body8", "for.body9")
	both, err = costmodel.Open(encoded, "matmul-naive.ll", []byte(other))
	if err != nil {
		t.Fatal(err)
	}
	if r = both.Answer(answers.ModelQuestion{}); !strings.Contains(strings.Join(r.Notes, ""), "the trace is from a different build") {
		t.Errorf("%q", r.Notes)
	}
}

func TestOpenExplainsErrors(t *testing.T) {
	for name, of := range map[string]struct {
		profile, module []byte
		want            string
	}{
		"nothing":     {nil, nil, "the profile contains no blocks"},
		"no profile":  {[]byte("nonsense"), nil, "profile"},
		"bitcode":     {nil, []byte("BC\xc0\xde...."), "bitcode"},
		"not IR":      {nil, []byte("int main() {}\n"), "LLVM IR"},
		"no function": {nil, nil, "no blocks"},
	} {
		if _, err := costmodel.Open(of.profile, "a.ll", of.module); err == nil || !strings.Contains(err.Error(), of.want) {
			t.Errorf("%s: Open returned error %v, want an error with %q", name, err, of.want)
		}
	}
}
