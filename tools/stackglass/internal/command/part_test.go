package command

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sgt"
)

// TestRecordedPartIsTold checks that all answers about a trace, a copy of it, and its profile warn that
// only a part of each thread was recorded.
func TestRecordedPartIsTold(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(name string, e trace.Extent) {
		t.Helper()
		f, err := os.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		w, b := sgt.NewImporter(f, e.Facts()), trace.NewBatch(0)
		b.Resize(100)
		for i := range b.Addr {
			b.Kind[i], b.Addr[i], b.Bytes[i] = trace.Load, trace.Addr(64*i), 8
		}
		if err := w.Write(b, trace.Header{Format: "test", Sizes: true}); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(sgt.End{How: "exit"}); err != nil {
			t.Fatal(err)
		}
	}
	after := "the recording begins with empty caches after the first 20,000 references of each thread, so the first access to each line is a cold miss, values that were written earlier have no source, and memory blocks that were allocated earlier are unknown"
	limit := "the recording contains at most 30,000 references of each thread"
	for _, c := range []struct {
		trace.Extent
		want []string
	}{{trace.Extent{}, nil}, {trace.Extent{After: 20000}, []string{after}}, {trace.Extent{For: 30000}, []string{limit}}, {trace.Extent{After: 20000, For: 30000}, []string{after, limit}}} {
		write("part.sgt", c.Extent)
		expectExit(t, stackglass(words("analyze part.sgt -o part.sgp")...), exitOK, c.want...)
		expectExit(t, stackglass(words("convert part.sgt -o copy.sgt")...), exitOK)
		expectExit(t, stackglass(words("convert part.sgt -o folded.sgl")...), exitOK)
		for _, command := range []string{"analyze part.sgt", "simulate --cache L1=1KiB,2 part.sgt", "locality part.sgt", "curve part.sgp", "timeline copy.sgt", "locality folded.sgl"} {
			expectExit(t, stackglass(words(command)...), exitOK, c.want...)
		}
	}
	if out := stackglass("info", "part.sgt").stdout; !regexp.MustCompile(`beginning of each thread +20,000\nlimit of references in each thread +30,000\n`).MatchString(out) {
		t.Errorf("info prints\n%s\nwant the recorded part, with grouped digits", out)
	}
}

// TestAnalyzeRange checks that --range selects the same references as --skip and --limit, that
// percentages work, and that the profile of a part answers all questions.
func TestAnalyzeRange(t *testing.T) {
	t.Chdir(t.TempDir())
	digest := func(options string) string {
		t.Helper()
		run := stackglass(words("analyze demo:false-sharing --format json -o a.sgp " + options)...)
		expectExit(t, run, exitOK)
		_, after, _ := strings.Cut(run.stdout, `"digest": "`)
		text, _, _ := strings.Cut(after, `"`)
		return text
	}
	want := digest("--skip 4096 --limit 8192")
	for _, options := range []string{"--range 4096..12288", "--range 16.66192%..49.98576%"} {
		if got := digest(options); got != want || got == "" {
			t.Errorf("digest with %s = %q, want %q, as with --skip and --limit", options, got, want)
		}
	}
	if got, want := digest("--range 20000.."), digest("--skip 20000"); got != want {
		t.Errorf("digest with --range 20000.. = %q, want %q", got, want)
	}
	for _, verb := range []string{"diagnose", "threads", "communication", "blocks", "counters", "calls", "sites", "timeline"} {
		expectExit(t, stackglass(verb, "a.sgp"), exitOK, "begins at reference 20,000 with empty caches")
	}
	// The first block of main is not executed in this part.
	expectExit(t, stackglass(words("diagnose demo:array-list --skip 10240 --limit 25600")...), exitOK, "reference 10,240")
	expectExit(t, stackglass(words("analyze demo:ring --range 1..2 --skip 1")...), exitUsage, "--range and --skip cannot be combined")
	expectExit(t, stackglass(words("analyze demo:ring --range 2..1")...), exitUsage, "range", "want the beginning and the end")
	expectExit(t, stackglass(words("analyze a.sgp --range 1..2")...), exitUsage, "--range applies only when a trace is read")
	expectExit(t, stackglass(words("analyze demo:ring --range 99.9999%..")...), exitUsage, "the part begins after the last reference")
	expectExit(t, stackglass(words("analyze demo:ring --range 900000000..900000001 -o past.sgp")...), exitUsage, "the part begins after the last reference of demo:ring")
	if _, err := os.Stat("past.sgp"); err == nil {
		t.Error("a part without references was written to a profile")
	}
}
