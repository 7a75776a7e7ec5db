package command

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/loops/sgl"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sgt"
)

// runOK runs a command, checks that its exit code is 0, and returns its output.
func runOK(t *testing.T, args ...string) string {
	t.Helper()
	got := stackglass(args...)
	if got.code != 0 {
		t.Fatalf("stackglass %s: %s", strings.Join(args, " "), got)
	}
	return got.stdout
}

// digestIn returns the digest that a JSON answer contains.
func digestIn(t *testing.T, answer string) string {
	t.Helper()
	_, rest, found := strings.Cut(answer, `"digest": "`)
	if !found || len(rest) < 64 {
		t.Fatalf("no digest in %s", answer)
	}
	return rest[:64]
}

// TestCompressAndExpandLoops checks that loop-compressing and expanding a trace does not change its
// profile, and that both forms have the same loops.
func TestCompressAndExpandLoops(t *testing.T) {
	dir := t.TempDir()
	for _, demo := range []string{"matmul-naive", "array-list", "openmp-stencil", "ring"} {
		folded, unfolded := filepath.Join(dir, demo+".sgl"), filepath.Join(dir, demo+".sgt")
		if text := runOK(t, "fold", "demo:"+demo, "-o", folded); !strings.Contains(text, "leaves") || !strings.Contains(text, "bytes per reference") {
			t.Errorf("fold prints %s", text)
		}
		runOK(t, "unfold", folded, "-o", unfolded)
		want := digestIn(t, runOK(t, "analyze", "demo:"+demo, "--format", "json", "--analyses", "loops"))
		if got := digestIn(t, runOK(t, "analyze", unfolded, "--format", "json", "--analyses", "loops")); got != want {
			t.Errorf("%s: the expanded trace has the digest %s, want %s", demo, got, want)
		}
		// The trace must still contain its program if only some of its references are converted.
		some := filepath.Join(dir, "some.sgt")
		runOK(t, "convert", folded, "-o", some, "--kinds", "load")
		runOK(t, "info", some, "--verify")
		loads := slices.Sorted(strings.Lines(runOK(t, "sites", "demo:"+demo, "--kinds", "load", "--format", "csv")))
		if got := slices.Sorted(strings.Lines(runOK(t, "sites", some, "--format", "csv"))); !slices.Equal(got, loads) {
			t.Errorf("%s: the loads of the expanded trace have the sites\n%s\nwant\n%s", demo, got, loads)
		}
		a, b := runOK(t, "loops", "demo:"+demo, "--arrays", "--cache", "L1=2KiB,8", "--format", "json"), runOK(t, "loops", folded, "--arrays", "--cache", "L1=2KiB,8", "--format", "json")
		if _, a, _ = strings.Cut(a, `"loops":`); !strings.HasSuffix(b, a) {
			t.Errorf("%s: loops of the loop-compressed trace are\n%s\nwant\n%s", demo, b, a)
		}
	}
	if got := stackglass("fold", filepath.Join(dir, "ring.sgt"), "-o", filepath.Join(dir, "part.sgl"), "--limit", "1001"); got.code != 0 {
		t.Fatal(got)
	}
	if got := stackglass("convert", filepath.Join(dir, "part.sgl"), "-o", filepath.Join(dir, "part.sgt")); got.code == 0 || !strings.Contains(got.stderr, "--kinds all") {
		t.Errorf("convert a part that ends within a block: %s, want an error", got)
	}
	if got := stackglass("convert", filepath.Join(dir, "part.sgl"), "-o", filepath.Join(dir, "part.sgt"), "--kinds", "all"); got.code != 0 || !strings.Contains(got.stdout, "1,001") {
		t.Errorf("convert --kinds all: %s, want 1,001 references", got)
	}
}

// A small file must not be expanded if its references would not fit on a disk. The file's loops
// must still be listed.
func TestTracesThatAreTooLargeAreNotExpanded(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		trips uint64
		says  string
	}{"2^45": {1 << 15, "--limit"}, "2^60": {1 << 20, "1,152,921,504,606,846,976 records"}, "2^90": {1 << 30, "more than 10^19 records"}} {
		at := loops.Leaf(loops.Reference{Kind: trace.Load, Bytes: 8, Site: 0}, 1<<32, 0, 0, 8)
		tree, err := (&loops.Nest{Items: []loops.Item{loops.Loop(c.trips, loops.Loop(c.trips, loops.Loop(c.trips, at)))}}).Build()
		if err != nil {
			t.Fatal(err)
		}
		var file bytes.Buffer
		w := sgl.NewWriter(&file)
		if err := w.Write(tree, trace.Header{Format: "test"}); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(trace.Header{Format: "test"}, sgt.End{How: "exit"}); err != nil {
			t.Fatal(err)
		}
		path, out := filepath.Join(dir, "huge.sgl"), filepath.Join(dir, "huge.sgt")
		if err := os.WriteFile(path, file.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		os.Remove(out)
		got := stackglass("unfold", path, "-o", out)
		if _, err := os.Stat(out); got.code != 2 || !strings.Contains(got.stderr, c.says) || err == nil {
			t.Errorf("%s: %s", name, got)
		}
		if got := stackglass("loops", path, "--arrays", "--cache", "L1=32KiB,8"); got.code != 0 || !strings.Contains(got.stdout, "1.1.1") {
			t.Errorf("%s: loops: %s", name, got)
		}
		if got := stackglass("unfold", path, "-o", out, "--limit", "1000"); name == "2^45" && (got.code != 0 || !strings.Contains(got.stdout, "1,000")) {
			t.Errorf("%s: unfold --limit 1000: %s, want 1,000 references", name, got)
		}
	}
}
