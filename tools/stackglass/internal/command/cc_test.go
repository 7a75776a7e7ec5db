package command

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestCompilerCommandLines(t *testing.T) {
	expectExit(t, stackglass("cc"), exitUsage, "give a compiler and its arguments after --", "got nothing")
	expectExit(t, stackglass("cc", "clang", "x.c"), exitUsage, "give a compiler and its arguments after --", "clang x.c")
	expectExit(t, stackglass("cc", "--", "no-compiler", "x.c"), exitUsage, "no-compiler: there is no such compiler")
	if got := stackglass("cc", "--header"); got.code != exitOK || !strings.Contains(got.stdout, "static inline void stackglass_begin(const char *tag)") {
		t.Errorf("cc --header: exit code %d, output %q", got.code, got.stdout)
	}
	if got := stackglass("cc", "--help"); got.code != exitOK || !strings.Contains(got.stdout, "STACKGLASS_MAX_BYTES") {
		t.Errorf("cc --help: exit code %d, output %q", got.code, got.stdout)
	}
}

// TestCompilerStatus checks that the verb "cc" returns the compiler's exit status, and that the
// compiled program runs.
func TestCompilerStatus(t *testing.T) {
	if _, err := exec.LookPath("clang-19"); err != nil {
		t.Skip("clang-19 is not installed")
	}
	inFolder(t, map[string]string{"bad.c": "int main(void) { return x; }\n", "good.c": "int main(void) { return 9; }\n"})
	if got := stackglass("cc", "--", "clang-19", "-c", "bad.c"); got.code != 1 || !strings.Contains(got.stderr, "undeclared identifier") {
		t.Errorf("cc with incorrect source: exit code %d, want 1; stderr %q", got.code, got.stderr)
	}
	if got := stackglass("cc", "--", "clang-19", "good.c", "-o", "good"); got.code != exitOK || got.stderr != "" {
		t.Errorf("cc with correct source: exit code %d, want 0; stderr %q", got.code, got.stderr)
	}
	cmd := exec.Command("./good")
	cmd.Env = append(os.Environ(), "STACKGLASS_OUT=good.sgt")
	if err := cmd.Run(); err == nil || cmd.ProcessState.ExitCode() != 9 {
		t.Errorf("the program ended with %v, want status 9", err)
	}
	if got := stackglass("info", "good.sgt"); got.code != exitOK {
		t.Errorf("info good.sgt: exit code %d, want 0; stderr %q", got.code, got.stderr)
	}
	if got := stackglass("cc", "--preload", "--", "clang-19"); got.code != exitOK || !strings.HasSuffix(got.stdout, ".so\n") {
		t.Errorf("cc --preload: exit code %d, output %q", got.code, got.stdout)
	}
}
