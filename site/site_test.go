package site

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/open"
)

// analyse makes the profile of a demo's first references; 0: of all.
func analyse(t *testing.T, file string, limit uint64) *profile.Profile {
	t.Helper()
	content, err := DemoFile(file)
	if err != nil {
		t.Fatal(err)
	}
	reader, err := open.Open(file, bytes.NewReader(content), open.Options{})
	if err != nil {
		t.Fatal(err)
	}
	runner, err := analysis.NewRunner(analysis.Spec{Limit: limit}, reader)
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

// TestDemos analyses each demo and checks every number that it promises.
func TestDemos(t *testing.T) {
	demos, err := Demos()
	if err != nil {
		t.Fatal(err)
	}
	if len(demos) < 3 {
		t.Fatalf("%d demos", len(demos))
	}
	for _, d := range demos {
		t.Run(d.Name, func(t *testing.T) {
			p := analyse(t, d.File, 0)
			if got := p.Totals.AllReferences(); got != d.References {
				t.Errorf("%d references, demos.json says %d", got, d.References)
			}
			if got := p.Locality[0].Lines(); got != d.Lines {
				t.Errorf("%d lines, demos.json says %d", got, d.Lines)
			}
			if len(d.Expected) == 0 {
				t.Error("it promises no number")
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
	cache, err := hierarchy.ParseCache(e.Cache)
	if err != nil {
		t.Fatal(err)
	}
	if cache.Ways != 0 {
		t.Fatalf("%s: only fully associative caches have exact numbers here", e.Cache)
	}
	counts, cold := analyse(t, d.File, e.Limit).LocalityAt(cache.LineBytes).Histogram(trace.AllKinds)
	misses := profile.NewCurve(counts, cold).Misses
	got := misses(cache.SizeBytes / uint64(cache.LineBytes))
	// Where a lesson says that only first accesses are left, they are not before.
	if got == d.Lines && misses(cache.SizeBytes/uint64(cache.LineBytes)-1) == got {
		t.Errorf("%s: a line less misses no more, so the lesson names too large a cache", e.Cache)
	}
	if got != e.Misses {
		t.Errorf("%s: %d misses, demos.json says %d", e.Cache, got, e.Misses)
	}
	if lesson := strings.ReplaceAll(strings.Join(d.Lesson, " "), ",", ""); !strings.Contains(lesson, strconv.FormatUint(e.Misses, 10)) {
		t.Errorf("the lesson does not name the %d misses that are expected", e.Misses)
	}
}

func checkText(t *testing.T, d Demo) {
	t.Helper()
	if len(d.Lesson) != 2 {
		t.Errorf("the lesson has %d sentences, want 2", len(d.Lesson))
	}
	if len(d.Views) != len(d.Lesson) {
		t.Errorf("%d sentences are shown in the views %q", len(d.Lesson), d.Views)
	}
	for _, view := range d.Views {
		if view != "overview" && view != "locality" && view != "caches" {
			t.Errorf("there is no view %q of a demo", view)
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
	if source, err := DemoFile(d.Source); err != nil || !bytes.Contains(source, []byte("run(void)")) {
		t.Errorf("source %s: %v", d.Source, err)
	}
}

func TestDist(t *testing.T) {
	files, err := Dist()
	if errors.Is(err, ErrNotBuilt) {
		t.Skip("left out: site/dist is empty; make site fills it")
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"index.html", "app.wasm", "_headers"} {
		if _, err := fs.Stat(files, name); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"index.html", "_headers"} {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			t.Fatal(err)
		}
		plain := strings.NewReplacer("&#39;", "'", "&#34;", `"`).Replace(string(text))
		if !strings.Contains(plain, MetaPolicy) {
			t.Errorf("%s does not carry the policy of this package", name)
		}
	}
}

func TestPolicyKeepsToItsOrigin(t *testing.T) {
	for _, directive := range strings.Split(Policy, "; ") {
		name, sources, _ := strings.Cut(directive, " ")
		for _, source := range strings.Fields(sources) {
			switch source {
			case "'none'", "'self'", "'wasm-unsafe-eval'":
			case "data:", "blob:":
				if name != "img-src" {
					t.Errorf("%s allows %s", name, source)
				}
			default:
				t.Errorf("%s allows %s", name, source)
			}
		}
	}
	if !strings.HasPrefix(Policy, "default-src 'none'") {
		t.Error("the policy allows what it does not name")
	}
}
