package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stackglass/stackglass/site"
	"github.com/stackglass/stackglass/tools/stackglass/internal/command"
)

// A target is an operating system and architecture for which the command is built.
type target struct {
	system, machine string
	// The function "emulator" returns a function that runs the command on this machine, or the
	// reason why this is not possible. The field is nil if no emulator exists for the target.
	emulator func(*testing.T) (start, string)
}

// A start function returns a process that runs a program for another system, and the path of a file
// in that system's notation.
type start func(program string, args ...string) (cmd *exec.Cmd, named func(string) string)

var targets = []target{
	{"linux", "amd64", nil}, // the target on which all other tests run
	{"linux", "arm64", qemu},
	{"darwin", "amd64", nil},
	{"darwin", "arm64", nil},
	{"windows", "amd64", wine},
	{"windows", "arm64", nil},
}

// TestSystems checks that the command can be built for all target systems, and that it runs
// correctly if an emulator is installed.
func TestSystems(t *testing.T) {
	for _, to := range targets {
		t.Run(to.system+"-"+to.machine, func(t *testing.T) {
			if to.system == runtime.GOOS && to.machine == runtime.GOARCH {
				t.Skip("all other tests run on this system")
			}
			program := filepath.Join(t.TempDir(), "stackglass.exe")
			build := exec.Command("go", "build", "-o", program, ".")
			build.Env = append(os.Environ(), "GOOS="+to.system, "GOARCH="+to.machine, "CGO_ENABLED=0")
			if said, err := build.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, said)
			}
			if to.emulator == nil {
				return
			}
			run, missing := to.emulator(t)
			if missing != "" {
				t.Skip("skipped running the command for " + to.system + "/" + to.machine + ": " + missing)
			}
			s := &elsewhere{T: t, target: to, program: program, start: run, folder: filepath.Join(t.TempDir(), "a folder")}
			if err := os.Mkdir(s.folder, 0o777); err != nil {
				t.Fatal(err)
			}
			s.analyses()
			s.resumes()
			s.serves()
			s.records()
		})
	}
}

// The function "qemu" runs programs for Linux on arm64.
func qemu(*testing.T) (start, string) {
	emulator, err := exec.LookPath("qemu-aarch64")
	if err != nil {
		return nil, "qemu-aarch64 is not installed"
	}
	return func(program string, args ...string) (*exec.Cmd, func(string) string) {
		return exec.Command(emulator, append([]string{program}, args...)...), func(path string) string { return path }
	}, ""
}

// The function "wine" runs programs for Windows on amd64. Every Go program loads a library that
// versions of Wine before 9 do not contain. The function "wine" builds this library.
func wine(t *testing.T) (start, string) {
	emulator, err := exec.LookPath("wine")
	if err != nil {
		return nil, "wine is not installed"
	}
	prefix := t.TempDir()
	env := append(os.Environ(), "WINEPREFIX="+prefix, "WINEDEBUG=-all", "WINEDLLOVERRIDES=mscoree=;mshtml=")
	boot := exec.Command(emulator, "wineboot", "--init")
	boot.Env = env
	if said, err := boot.CombinedOutput(); err != nil {
		return nil, "wine does not start: " + string(bytes.TrimSpace(said))
	}
	t.Cleanup(func() {
		end := exec.Command(emulator, "wineboot", "--kill")
		end.Env = env
		_ = end.Run()
		// Wine's last processes still write to the folder while they end.
		for range 100 {
			if os.RemoveAll(prefix) == nil {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
	library := filepath.Join(prefix, "drive_c", "windows", "system32", "bcryptprimitives.dll")
	if _, err := os.Stat(library); err != nil {
		if missing := forward(t, library, "ProcessPrng", "advapi32.SystemFunction036"); missing != "" {
			return nil, missing
		}
	}
	return func(program string, args ...string) (*exec.Cmd, func(string) string) {
		cmd := exec.Command(emulator, append([]string{program}, args...)...)
		cmd.Env = env
		return cmd, func(path string) string { return "Z:" + strings.ReplaceAll(path, "/", `\`) }
	}, ""
}

// The function "forward" builds a Windows library whose only function forwards to another library.
func forward(t *testing.T, library, name, to string) (missing string) {
	const tools = "x86_64-w64-mingw32-"
	definition, exports := filepath.Join(t.TempDir(), "a.def"), filepath.Join(t.TempDir(), "a.exp")
	if err := os.WriteFile(definition, []byte("LIBRARY "+filepath.Base(library)+"\nEXPORTS\n"+name+" = "+to+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, line := range [][]string{
		{tools + "dlltool", "-d", definition, "-e", exports},
		{tools + "ld", "-shared", "-e", "0", "-o", library, exports},
	} {
		if said, err := exec.Command(line[0], line[1:]...).CombinedOutput(); err != nil {
			return "wine has no " + filepath.Base(library) + ", and it cannot be made: " + err.Error() + " " + string(said)
		}
	}
	return ""
}

// The type "elsewhere" is the command on a target system.
type elsewhere struct {
	*testing.T
	target
	program string
	start   start
	folder  string // a folder whose name contains a space
}

// The function "path" returns the path of a file in the target system's notation.
func (s *elsewhere) path(name string) string {
	_, named := s.start(s.program)
	return named(filepath.Join(s.folder, name))
}

// The method "run" runs the command, and returns its output with Linux newlines.
func (s *elsewhere) run(want int, args ...string) (stdout, stderr string) {
	s.Helper()
	cmd, _ := s.start(s.program, args...)
	var out, messages bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &messages
	_ = cmd.Run() // the exit code is compared below
	if code := cmd.ProcessState.ExitCode(); code != want {
		s.Fatalf("%q: exit code %d, want %d\n%s%s", args, code, want, &out, &messages)
	}
	return out.String(), messages.String()
}

// The function "here" runs the command in this process.
func (s *elsewhere) here(args ...string) string {
	s.Helper()
	var out, messages bytes.Buffer
	if code := command.Main(args, strings.NewReader(""), &out, &messages); code != 0 {
		s.Fatalf("%q: exit code %d\n%s", args, code, &messages)
	}
	return out.String()
}

func (s *elsewhere) same(one, other string) {
	s.Helper()
	a, err := os.ReadFile(filepath.Join(s.folder, one))
	if err != nil {
		s.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(s.folder, other))
	if err != nil {
		s.Fatal(err)
	}
	if !bytes.Equal(a, b) {
		s.Errorf("%s and %s differ", one, other)
	}
}

// The method "analyses" compares profiles and answers with the results on this system. The profiles
// must be byte-identical to the profiles that this system writes. The answers must be the same
// text. Only the 16th digit of a number in CSV or JSON may differ, because processors and their
// mathematical functions round differently.
func (s *elsewhere) analyses() {
	for _, demo := range []string{"matmul-naive", "openmp-stencil"} {
		s.run(0, "analyze", "demo:"+demo, "-o", s.path(demo+" there.sgp"))
		s.here("analyze", "demo:"+demo, "-o", filepath.Join(s.folder, demo+" here.sgp"))
		s.same(demo+" there.sgp", demo+" here.sgp")
		for _, question := range [][]string{{"curve"}, {"sites"}, {"what-if", "--cache", "L1=4KiB,4"}, {"diagnose"}} {
			there, _ := s.run(0, append(question, s.path(demo+" here.sgp"))...)
			here := s.here(append(question, filepath.Join(s.folder, demo+" here.sgp"))...)
			if there = strings.ReplaceAll(there, s.path(demo), filepath.Join(s.folder, demo)); there != here {
				s.Errorf("%s of %s:\n%s\nwant\n%s", question, demo, there, here)
			}
		}
	}
}

// The method "resumes" kills an analysis after its first checkpoint, and runs it again.
func (s *elsewhere) resumes() {
	var trace bytes.Buffer
	for i := range 600_000 {
		fmt.Fprintf(&trace, "%d %x\n", i%2, i*7919%(1<<21)*8)
	}
	if err := os.WriteFile(filepath.Join(s.folder, "a trace.din"), trace.Bytes(), 0o666); err != nil {
		s.Fatal(err)
	}
	args := []string{"analyze", s.path("a trace.din"), "-o", s.path("there.sgp"), "--checkpoint", s.path("check points"), "--checkpoint-every", "20000"}
	cmd, _ := s.start(s.program, args...)
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	saved := func() bool {
		found, _ := filepath.Glob(filepath.Join(s.folder, "check points", "*.checkpoint"))
		return len(found) > 0
	}
	for limit := time.Now().Add(10 * time.Minute); !saved() && time.Now().Before(limit); {
		time.Sleep(time.Millisecond)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if !saved() {
		s.Fatal("there is no checkpoint of the killed analysis")
	}
	if _, said := s.run(0, args...); !strings.Contains(said, "continuing after") {
		s.Errorf("the analysis did not resume: %s", said)
	}
	s.here("analyze", filepath.Join(s.folder, "a trace.din"), "-o", filepath.Join(s.folder, "here.sgp"))
	s.same("there.sgp", "here.sgp")
	if left, err := os.ReadDir(filepath.Join(s.folder, "check points")); err != nil || len(left) > 0 {
		s.Errorf("the folder of checkpoints still contains %v, %v", left, err)
	}
}

// The method "serves" starts two servers. When the second server starts, the default port is
// already in use.
func (s *elsewhere) serves() {
	files, err := site.Dist()
	if err != nil {
		if _, said := s.run(3, "serve", "--no-browser"); !strings.Contains(said, err.Error()) {
			s.Errorf("got %q, want %q", said, err)
		}
		return
	}
	programs, err := fs.Glob(files, "assets/*.wasm")
	if err != nil || len(programs) == 0 {
		s.Fatal("the page has no program: ", err)
	}
	addresses := map[string]bool{}
	for range 2 {
		cmd, _ := s.start(s.program, "serve", "--no-browser")
		out, err := cmd.StdoutPipe()
		if err != nil {
			s.Fatal(err)
		}
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			s.Fatal(err)
		}
		defer func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}()
		line, err := bufio.NewReader(out).ReadString('\n')
		words := strings.Fields(line)
		if err != nil || len(words) < 3 {
			s.Fatalf("got %q, %v", line, err)
		}
		addresses[words[2]] = true
		for name, want := range map[string]string{"": "text/html; charset=utf-8", programs[0]: "application/wasm", "demos/ring.sgt": "application/octet-stream"} {
			response, err := http.Get(words[2] + name)
			if err != nil {
				s.Fatal(err)
			}
			n, err := io.Copy(io.Discard, response.Body)
			response.Body.Close()
			if got := response.Header.Get("Content-Type"); response.StatusCode != http.StatusOK || got != want || n == 0 || err != nil {
				s.Errorf("%s%s: %s, %d bytes of type %s, want %s; %v", words[2], name, response.Status, n, got, want, err)
			}
		}
	}
	if len(addresses) != 2 {
		s.Errorf("two servers have the addresses %v", addresses)
	}
}

// The method "records" checks that the command reports what it cannot record on a system, and what
// the user can do instead.
func (s *elsewhere) records() {
	if s.system == "linux" {
		return
	}
	for _, args := range [][]string{{"trace", "--", "program.exe"}, {"cc", "--", "clang", "a.c"}} {
		if _, said := s.run(2, args...); !strings.Contains(said, "only on Linux") || !strings.Contains(said, "help import") {
			s.Errorf("%q: %s", args, said)
		}
	}
}
