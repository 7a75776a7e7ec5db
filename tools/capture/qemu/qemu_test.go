package qemu

import (
	"context"
	"debug/elf"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/tools/capture"
)

// scriptPrinting returns the path of a script that prints one line.
func scriptPrinting(t *testing.T, line string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "qemu-x86_64")
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho '"+line+"'\n"), 0o777); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestInterfaceVersion(t *testing.T) {
	for line, want := range map[string]int{
		"qemu-x86_64 version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)": 1,
		"qemu-x86_64 version 8.2.0":                                 1,
		"qemu-x86_64 version 9.0.2 (v9.0.2)":                        2,
		"qemu-x86_64 version 10.1.50":                               2,
		"something else":                                            0,
	} {
		got, err := interfaceVersion(context.Background(), scriptPrinting(t, line))
		if got != want || (err != nil) != (want == 0) {
			t.Errorf("%s: interfaceVersion = %d, %v; want %d", line, got, err, want)
		}
	}
}

func TestPluginIsBuiltOnce(t *testing.T) {
	if findCompiler() == "" {
		t.Skip("skipped: no C compiler is installed")
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	emulator := scriptPrinting(t, "qemu-x86_64 version 7.2.22")
	first, err := Plugin(context.Background(), emulator)
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.Open(first)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	exported, err := f.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range exported {
		if s.Section != elf.SHN_UNDEF && elf.ST_BIND(s.Info) == elf.STB_GLOBAL {
			names = append(names, s.Name)
		}
	}
	slices.Sort(names)
	if got := strings.Join(names, " "); got != "kill qemu_plugin_install qemu_plugin_version" {
		t.Errorf("the plugin exports %s, want kill, qemu_plugin_install and qemu_plugin_version", got)
	}
	t.Setenv("PATH", t.TempDir()+":/bin") // PATH is needed to find sh
	if findCompiler() == "" {
		if _, err := Plugin(context.Background(), scriptPrinting(t, "qemu-x86_64 version 9.0.0")); !errors.Is(err, ErrNoCompiler) || !strings.Contains(err.Error(), "apt-get install gcc") {
			t.Errorf("without a compiler, the error is %v", err)
		}
	}
	if second, err := Plugin(context.Background(), emulator); err != nil || second != first {
		t.Errorf("second call: %s, %v; want %s", second, err, first)
	}
}

// TestPluginCompilesWithoutWarnings checks that QEMU's plugin, which users compile on their own
// machines, compiles without warnings.
func TestPluginCompilesWithoutWarnings(t *testing.T) {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("skipped: gcc is not installed")
	}
	sources, err := filepath.Glob("plugin/*.c")
	if err != nil || len(sources) == 0 {
		t.Fatalf("%d sources, %v", len(sources), err)
	}
	args := append([]string{"-std=gnu11", "-O2", "-fPIC", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"}, sources...)
	if said, err := exec.Command(gcc, args...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
}

func TestBuildErrorContainsAdvice(t *testing.T) {
	for want, e := range map[string]error{
		"QEMU's plugin must be compiled once, but no C compiler is installed; install a compiler (apt-get install gcc libc6-dev)": ErrNoCompiler,
		"/bin/cc cannot compile QEMU's plugin: no stdio.h; install the C library's development files (apt-get install libc6-dev)": &capture.CompileError{Compiler: "/bin/cc", Code: "QEMU's plugin", Output: "no stdio.h\nmore\n"},
	} {
		if e.Error() != want {
			t.Errorf("got  %s,\nwant %s", e, want)
		}
	}
}

func TestCommand(t *testing.T) {
	t.Setenv("LD_PRELOAD", "")
	os.Unsetenv("LD_PRELOAD")
	t.Setenv("STACKGLASS_TRACE", "mine")
	cmd := Command("/bin/qemu", "/p.so", "/t.sgt", 7, trace.Extent{After: 8, For: 9}, "./prog", "/prog", []string{"-x", "y"})
	want := "/bin/qemu -plugin /p.so -0 ./prog -U LD_PRELOAD -E STACKGLASS_TRACE=mine -U STACKGLASS_TRACE_BYTES -U STACKGLASS_TRACE_AFTER -U STACKGLASS_TRACE_FOR -- /prog -x y"
	if got := strings.Join(cmd.Args, " "); got != want {
		t.Errorf("got  %s,\nwant %s", got, want)
	}
	for _, setting := range []string{"LD_PRELOAD=/p.so", "STACKGLASS_TRACE=/t.sgt", "STACKGLASS_TRACE_BYTES=7", "STACKGLASS_TRACE_AFTER=8", "STACKGLASS_TRACE_FOR=9"} {
		if !slices.Contains(cmd.Env, setting) {
			t.Errorf("the environment lacks %s", setting)
		}
	}
}

func TestEmulators(t *testing.T) {
	if _, name, _ := Emulator(elf.EM_X86_64); name != "qemu-x86_64" {
		t.Errorf("the emulator for x86-64 is %q, want qemu-x86_64", name)
	}
	if _, name, err := Emulator(elf.EM_SPARC); name != "" || err == nil {
		t.Errorf("the emulator for SPARC is %q, %v; want an error", name, err)
	}
}
