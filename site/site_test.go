package site

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/open"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/site/policy"
)

// openDemo returns a reader for a demo's trace.
func openDemo(t *testing.T, file string) *open.Trace {
	t.Helper()
	content, err := DemoFile(file)
	if err != nil {
		t.Fatal(err)
	}
	reader, err := open.Open(file, bytes.NewReader(content), open.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return reader
}

// analyse returns a profile of a demo's trace, analysed with the given specification.
func analyse(t *testing.T, file string, spec analysis.Spec) *profile.Profile {
	t.Helper()
	runner, err := analysis.NewRunner(spec, openDemo(t, file))
	if err != nil {
		t.Fatal(err)
	}
	for {
		switch err := runner.Step(); {
		case err == io.EOF:
			return runner.Profile(profile.State{})
		case err != nil:
			t.Fatal(err)
		}
	}
}

// TestDemos analyses each demo and checks every number that its lesson states.
func TestDemos(t *testing.T) {
	demos, err := Demos()
	if err != nil {
		t.Fatal(err)
	}
	if len(demos) < 5 {
		t.Fatalf("%d demos", len(demos))
	}
	for _, d := range demos {
		t.Run(d.Name, func(t *testing.T) {
			p := analyse(t, d.File, analysis.Spec{})
			if got := p.Totals.AllReferences(); got != d.References {
				t.Errorf("%d references, demos.json says %d", got, d.References)
			}
			if got := p.Locality[0].Lines(); got != d.Lines {
				t.Errorf("%d lines, demos.json says %d", got, d.Lines)
			}
			if len(d.Expected) == 0 {
				t.Error("the demo has no expected numbers")
			}
			for _, e := range d.Expected {
				checkExpectation(t, d, e)
			}
			checkText(t, d)
		})
	}
}

func checkExpectation(t *testing.T, d Demo, e Expectation) {
	t.Helper()
	named := e.Misses
	switch {
	case e.Transfers > 0:
		named = e.Transfers
		checkTransfers(t, d, e)
	case e.Unshared || e.False > 0:
		named = e.False
		checkFalse(t, d, e)
	case e.Cache == "":
		named = e.Taken
		checkTaken(t, d, e)
	default:
		checkMisses(t, d, e)
	}
	if lesson := strings.ReplaceAll(strings.Join(d.Lesson, " "), ",", ""); !containsNumber(lesson, named) {
		t.Errorf("the lesson does not contain the expected number %d", named)
	}
}

// containsNumber reports whether a lesson contains the given number. For the number 1, the
// lesson may contain "misses once" instead.
func containsNumber(lesson string, n uint64) bool {
	if n == 1 && strings.Contains(lesson, "misses once") {
		return true
	}
	return slices.Contains(regexp.MustCompile(`[0-9]+`).FindAllString(lesson, -1), strconv.FormatUint(n, 10))
}

func checkMisses(t *testing.T, d Demo, e Expectation) {
	t.Helper()
	cache, err := hierarchy.ParseCache(e.Cache)
	if err != nil {
		t.Fatal(err)
	}
	if cache.Ways != 0 {
		t.Fatalf("%s: want a fully associative cache, because only its misses are exact", e.Cache)
	}
	spec := analysis.Spec{Limit: e.Limit}
	if e.Thread != 0 {
		spec.Threads = []uint32{e.Thread}
	}
	counts, cold := analyse(t, d.File, spec).LocalityAt(cache.LineBytes).Histogram(trace.AllKinds)
	misses := profile.NewCurve(counts, cold).Misses
	got := misses(cache.SizeBytes / uint64(cache.LineBytes))
	// If a lesson says that only cold misses remain, a smaller cache must have misses of other
	// kinds, too.
	if got == d.Lines && misses(cache.SizeBytes/uint64(cache.LineBytes)-1) == got {
		t.Errorf("%s: a cache with one line less has as many misses, so the lesson names too large a cache", e.Cache)
	}
	if got != e.Misses {
		t.Errorf("%s: %d misses, demos.json says %d", e.Cache, got, e.Misses)
	}
}

func checkFalse(t *testing.T, d Demo, e Expectation) {
	t.Helper()
	p := analyse(t, d.File, analysis.Spec{Analyses: analysis.Communication})
	cases := p.Communication.False
	if e.Unshared {
		if got := countInvalidated(t, d.File, d.References); len(cases) != 0 || got != 0 {
			t.Errorf("want no false sharing and no invalidations, got %+v and %d invalidations", cases, got)
		}
		return
	}
	if len(cases) == 0 {
		t.Fatal("no false sharing")
	}
	first := &cases[0]
	site := &p.Sites.Code[first.Sites[0]]
	at, data := site.File+":"+strconv.Itoa(int(site.Line)), p.Sites.Data[first.Object].Name
	if first.Misses != e.False || at != e.At || data != e.Data || first.Apart != 8 {
		t.Errorf("false sharing of %s at %s, %d misses, %d bytes apart, want %+v, as in demos.json", data, at, first.Misses, first.Apart, e)
	}
}

func checkTransfers(t *testing.T, d Demo, e Expectation) {
	t.Helper()
	got := uint64(0)
	for _, f := range analyse(t, d.File, analysis.Spec{Analyses: analysis.Communication}).Communication.Granules[0].Flows {
		if (e.From == 0 || f.From == e.From) && (e.To == 0 || f.To == e.To) {
			got += f.Transfers
		}
	}
	if got != e.Transfers {
		t.Errorf("%d words go from thread %d to thread %d, want %d, as in demos.json", got, e.From, e.To, e.Transfers)
	}
}

func checkTaken(t *testing.T, d Demo, e Expectation) {
	t.Helper()
	if got := countInvalidated(t, d.File, e.Limit); got != e.Taken {
		t.Errorf("%d references to invalidated lines in the first %d references, want %d, as in demos.json", got, e.Limit, e.Taken)
	}
}

// countInvalidated counts the events that [Expectation.Taken] describes. A store invalidates
// the line in the caches of all other threads. If one of these threads references the line later,
// that reference is counted.
func countInvalidated(t *testing.T, file string, limit uint64) (count uint64) {
	t.Helper()
	type holding struct{ had, has bool }
	lines := map[trace.Line]map[uint32]holding{}
	reader, b, seen := openDemo(t, file), trace.NewBatch(0), uint64(0)
	for {
		if err := reader.Next(b); err == io.EOF {
			return count
		} else if err != nil {
			t.Fatal(err)
		}
		for i, kind := range b.Kind {
			if seen++; seen > limit {
				return count
			}
			line, thread := b.Addr[i]/64, b.Thread[i]
			if lines[line] == nil {
				lines[line] = map[uint32]holding{}
			}
			if h := lines[line][thread]; h.had && !h.has {
				count++
			}
			if kind != trace.Load {
				for other := range lines[line] {
					lines[line][other] = holding{had: true}
				}
			}
			lines[line][thread] = holding{had: true, has: true}
		}
	}
}

// TestDemosContainNoPath checks that no demo contains a path from the machine that recorded its
// trace, because the demos are published.
func TestDemosContainNoPath(t *testing.T) {
	demos, err := Demos()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range demos {
		reader, b := openDemo(t, d.File), trace.NewBatch(0)
		for err == nil {
			err = reader.Next(b)
		}
		if err != io.EOF {
			t.Fatal(err)
		}
		err = nil
		h := reader.Header()
		if h.Program == nil || len(h.Capture) == 0 {
			t.Fatalf("%s has no description of the program or of the capture", d.File)
		}
		for _, text := range texts(h) {
			if strings.HasPrefix(text, "/") {
				t.Errorf("%s reports %s", d.File, text)
			}
		}
	}
}

// texts returns all texts in a trace that might contain a path from the machine that recorded it.
func texts(h trace.Header) (list []string) {
	for _, fact := range h.Capture {
		list = append(list, fact.Value)
	}
	for _, m := range h.Program.Modules {
		list = append(list, m.Name)
		list = append(list, strings.Fields(m.Options)...)
	}
	for i := range h.Program.Functions {
		list = append(list, h.Program.Functions[i].Place.File)
	}
	for i := range h.Program.Blocks {
		list = append(list, h.Program.Blocks[i].File)
	}
	for i := range h.Program.Sites {
		list = append(list, h.Program.Sites[i].Place.File)
	}
	for i := range h.Program.Objects {
		list = append(list, h.Program.Objects[i].Place.File)
	}
	return list
}

func checkText(t *testing.T, d Demo) {
	t.Helper()
	if n := len(d.Lesson); n < 2 || n > 3 {
		t.Errorf("the lesson has %d sentences, want 2 or 3", n)
	}
	if len(d.Views) != len(d.Lesson) {
		t.Errorf("the lesson has %d sentences, but names the views %q: want one view for each sentence", len(d.Lesson), d.Views)
	}
	if n := len(d.Predict.Choices); d.Predict.Ask == "" || n < 3 || n > 4 || d.Predict.Right < 0 || d.Predict.Right >= n {
		t.Errorf("the exercise has %d choices, but the right choice is number %d", n, d.Predict.Right)
	}
	for _, view := range d.Views {
		if !slices.Contains([]string{"overview", "locality", "caches", "threads", "communication", "loops", "counters"}, view) {
			t.Errorf("a demo has no view %q", view)
		}
	}
	if !strings.HasSuffix(d.Question, "?") {
		t.Errorf("question %q", d.Question)
	}
	packed, err := DemoFile(d.File)
	if err != nil {
		t.Fatal(err)
	}
	if len(packed) > 300<<10 {
		t.Errorf("%s has %d bytes, want at most 300 KiB", d.File, len(packed))
	}
	if source, err := DemoFile(d.Source); err != nil || !bytes.Contains(source, []byte("int main(void)")) {
		t.Errorf("source %s: %v", d.Source, err)
	}
}

func TestBuiltSite(t *testing.T) {
	files, err := Dist()
	if errors.Is(err, ErrNotBuilt) {
		t.Skip("skipped: site/dist is empty; run make site")
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"index.html", "assets/app.*.wasm", "assets/app.*.wasm.br", "assets/app.*.wasm.gz", "_headers"} {
		if found, err := fs.Glob(files, pattern); len(found) != 1 {
			t.Errorf("%s: %q, %v", pattern, found, err)
		}
	}
	for name, rules := range map[string]string{"index.html": policy.Meta, "_headers": policy.Content} {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			t.Fatal(err)
		}
		plain := strings.NewReplacer("&#39;", "'", "&#34;", `"`).Replace(string(text))
		if !strings.Contains(plain, rules) {
			t.Errorf("%s does not contain the page's policy", name)
		}
	}
}

// TestWorkshop checks that the teacher's page lists the right prediction for each exercise, in the
// same order as the workshop page.
func TestWorkshop(t *testing.T) {
	page, err := os.ReadFile("docs/workshop.md")
	if err != nil {
		t.Fatal(err)
	}
	demos, err := Demos()
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range demos {
		row := "| " + strconv.Itoa(i+1) + " | " + d.Title + " | " + d.Predict.Choices[d.Predict.Right] + " | "
		if !strings.Contains(string(page), row) {
			t.Errorf("docs/workshop.md lacks %s", row)
		}
	}
}
