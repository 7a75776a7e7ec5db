package command

import (
	"os"
	"strings"
	"testing"
)

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
		expectExit(t, stackglass(verb, "a.sgp"), exitOK, "begins at reference 20000 with empty caches")
	}
	// The first block of main is not executed in this part.
	expectExit(t, stackglass(words("diagnose demo:array-list --skip 10240 --limit 25600")...), exitOK, "reference 10240")
	expectExit(t, stackglass(words("analyze demo:ring --range 1..2 --skip 1")...), exitUsage, "--range and --skip cannot be combined")
	expectExit(t, stackglass(words("analyze demo:ring --range 2..1")...), exitUsage, "range", "want the beginning and the end")
	expectExit(t, stackglass(words("analyze a.sgp --range 1..2")...), exitUsage, "--range applies only when a trace is read")
	expectExit(t, stackglass(words("analyze demo:ring --range 99.9999%..")...), exitUsage, "the part begins after the last reference")
	expectExit(t, stackglass(words("analyze demo:ring --range 900000000..900000001 -o past.sgp")...), exitUsage, "the part begins after the last reference of demo:ring")
	if _, err := os.Stat("past.sgp"); err == nil {
		t.Error("a part without references was written to a profile")
	}
}
