package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stackglass/stackglass/tools/internal/chromium"
)

// buildProbe compiles the program in testdata/probe for js/wasm.
func buildProbe(t *testing.T) string {
	t.Helper()
	if _, err := chromium.Find(); err != nil {
		t.Skip(err)
	}
	binary := filepath.Join(t.TempDir(), "probe.test")
	cmd := exec.Command("go", "test", "-c", "-o", binary, "./testdata/probe")
	cmd.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cannot build the probe: %v\n%s", err, out)
	}
	return binary
}

func TestRunPassesOnOutputAndExitCode(t *testing.T) {
	binary := buildProbe(t)
	t.Setenv("STACKGLASS_PROBE", "seen")
	cases := []struct {
		name, flag     string
		code           int
		stdout, stderr string
	}{
		{"pass", "-test.run=Passes", 0, "to stdout\nPASS\n", "to stderr\n"},
		{"fail", "-test.run=Fails", 1, "failed as asked", ""},
		{"panic", "-test.run=Panics", 2, "--- FAIL: TestPanics", "panicked as asked"},
		{"environment", "-test.run=Environment", 0, "PASS\n", ""},
		{"files", "-test.run=FindsNoFile", 0, "PASS\n", ""},
		{"fuzz", "-test.run=FuzzSeeds", 0, "PASS\n", ""},
		{"bench", "-test.bench=Counts", 0, "BenchmarkCounts", ""},
		{"log file is ignored", "-test.testlogfile=/nowhere/log", 1, "failed as asked", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			args := []string{binary, c.flag}
			switch c.name {
			case "bench":
				args = append(args, "-test.run=^$", "-test.benchtime=10x")
			case "log file is ignored":
				args = append(args, "-test.run=Fails")
			}
			var stdout, stderr bytes.Buffer
			code, err := run(t.Context(), args, &stdout, &stderr)
			if err != nil || code != c.code {
				t.Errorf("exit code %d, error %v, want %d", code, err, c.code)
			}
			if !strings.Contains(stdout.String(), c.stdout) {
				t.Errorf("stdout %q lacks %q", stdout.String(), c.stdout)
			}
			if !strings.Contains(stderr.String(), c.stderr) {
				t.Errorf("stderr %q lacks %q", stderr.String(), c.stderr)
			}
		})
	}
}

// cancelOn is a writer that cancels a context when a certain text is written. With this writer, a
// test also checks that output arrives while the program is still running.
type cancelOn struct {
	text   string
	cancel func()
	once   sync.Once
}

func (c *cancelOn) Write(p []byte) (int, error) {
	if strings.Contains(string(p), c.text) {
		c.once.Do(c.cancel)
	}
	return len(p), nil
}

func TestRunStopsAProgramThatHangs(t *testing.T) {
	binary := buildProbe(t)
	ctx, cancel := context.WithCancel(t.Context())
	output := &cancelOn{text: "hanging as asked", cancel: cancel}
	code, err := run(ctx, []string{binary, "-test.run=Hangs"}, output, output)
	if code != exitBroken || err == nil || !strings.Contains(err.Error(), "stopped before the tests ended") {
		t.Errorf("exit code %d, error %v", code, err)
	}
}

func TestRunWithoutBinary(t *testing.T) {
	code, err := run(t.Context(), nil, os.Stdout, os.Stderr)
	if code != exitBroken || err == nil {
		t.Errorf("exit code %d, error %v", code, err)
	}
}
