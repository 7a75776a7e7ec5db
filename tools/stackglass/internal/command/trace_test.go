package command

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/report"
)

func TestTraceUsage(t *testing.T) {
	inFolder(t, map[string]string{"text": "text"})
	for line, words := range map[string]string{
		"trace":                          "for example: stackglass trace -- ./prog input.txt\n",
		"trace --":                       "for example: stackglass trace -- ./prog input.txt\n",
		"trace --with strace -- true":    "--with \"strace\", want qemu or valgrind",
		"trace --max-size much -- true":  "--max-size \"much\", want a size, for example 2GiB",
		"trace -- ./nothing":             "./nothing: there is no such program",
		"trace -- ./text":                "./text: there is no such program, or it is not executable",
		"trace -o no/folder.sgt -- true": "the folder no does not exist",
	} {
		t.Run(line, func(t *testing.T) {
			if strings.Contains(line, "folder") {
				needTracer(t)
			}
			expectExit(t, stackglass(strings.Fields(line)...), exitUsage, words)
		})
	}
}

// TestRecordsOnLinux checks the errors that the recording verbs print on operating systems other
// than Linux. TestCommandBuildsForAllSystems runs these verbs on Windows.
func TestRecordsOnLinux(t *testing.T) {
	for system, words := range map[string]string{"windows": "this machine runs Windows. Record the program on Linux (the Windows Subsystem", "darwin": "this machine runs macOS. Record the program on Linux (a container", "freebsd": "this machine runs freebsd"} {
		got := cannotRecord(new(app).trace(), system).Error()
		if canRecord(system) || !strings.Contains(got, words) || !strings.Contains(got, "stackglass help import") {
			t.Errorf("%s: %s", system, got)
		}
	}
	if !canRecord("linux") {
		t.Error("canRecord(\"linux\") = false, want true")
	}
}

// needTracer skips the test if no tracer is installed.
func needTracer(t *testing.T) {
	t.Helper()
	for _, program := range []string{"qemu-x86_64", "cc"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("skipped: " + program + " is not installed")
		}
	}
}

func TestTrace(t *testing.T) {
	needTracer(t)
	inFolder(t, nil)
	got := askWith("a line\n", "trace", "--", "cat", "-")
	if got.code != 0 || got.stdout != "a line\n" || !strings.HasPrefix(got.stderr, "stackglass: cat.sgt has ") || strings.Count(got.stderr, "\n") != 1 {
		t.Errorf("%v", got)
	}
	if got := stackglass("trace", "-q", "-o", "f.sgt", "false"); got.code != 1 || got.stdout+got.stderr != "" {
		t.Errorf("%v", got)
	}
	if got := stackglass("trace", "-q", "-o", "f.sgt", "--", "sh", "-c", "kill -9 $$"); got.code != 137 || got.stdout+got.stderr != "" {
		t.Errorf("%v", got)
	}
	if got := stackglass("trace", "-o", "f.sgt", "--", "sh", "-c", "exec true"); got.code != 0 || !strings.Contains(got.stderr, "replaced itself") {
		t.Errorf("%v", got)
	}
}

func TestDigitGroups(t *testing.T) {
	for n, want := range map[uint64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", 123456: "123,456"} {
		if got := report.Count(n).Human(); got != want {
			t.Errorf("digit groups of %d = %s, want %s", n, got, want)
		}
	}
}
