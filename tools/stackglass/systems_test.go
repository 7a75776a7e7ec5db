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
	// newEmulator returns a function that runs the command on this machine, or the reason why this
	// is not possible. The field is nil if no emulator exists for the target.
	newEmulator func(*testing.T) (start, string)
}

// start is a function that prepares a process that runs a program for another system. The second
// result is a function that converts paths to that system's notation.
type start func(program string, args ...string) (cmd *exec.Cmd, named func(string) string)

// The targets contain each system and each architecture, but not all pairs, because no file of this
// module is compiled only for a pair, and each build takes more than a minute of processor time.
var targets = []target{
	{"linux", "amd64", nil}, // the target on which all other tests run
	{"linux", "arm64", newQEMU},
	{"darwin", "arm64", nil},
	{"windows", "amd64", newWine},
}

// TestCommandBuildsForAllSystems checks that the command can be built for all target systems, and
// that it runs correctly if an emulator is installed.
func TestCommandBuildsForAllSystems(t *testing.T) {
	for _, to := range targets {
		t.Run(to.system+"-"+to.machine, func(t *testing.T) {
			if to.system == runtime.GOOS && to.machine == runtime.GOARCH {
				t.Skip("all other tests run on this system")
			}
			program := filepath.Join(t.TempDir(), "stackglass.exe")
			build := exec.Command("go", "build", "-ldflags", "-s -w", "-o", program, ".")
			build.Env = append(os.Environ(), "GOOS="+to.system, "GOARCH="+to.machine, "CGO_ENABLED=0")
			if said, err := build.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, said)
			}
			if to.newEmulator == nil {
				return
			}
			run, missing := to.newEmulator(t)
			if missing != "" {
				t.Skip("skipped running the command for " + to.system + "/" + to.machine + ": " + missing)
			}
			s := &remoteCommand{T: t, target: to, program: program, start: run, folder: filepath.Join(t.TempDir(), "a folder")}
			if err := os.Mkdir(s.folder, 0o777); err != nil {
				t.Fatal(err)
			}
			s.checkAnalyses()
			s.checkResume()
			s.checkServe()
			s.checkRecording()
		})
	}
}

// newQEMU returns the emulator for Linux on arm64.
func newQEMU(*testing.T) (start, string) {
	emulator, err := exec.LookPath("qemu-aarch64")
	if err != nil {
		return nil, "qemu-aarch64 is not installed"
	}
	return func(program string, args ...string) (*exec.Cmd, func(string) string) {
		return exec.Command(emulator, append([]string{program}, args...)...), func(path string) string { return path }
	}, ""
}

// newWine returns the emulator for Windows on amd64. Every Go program loads a library that versions
// of Wine before 9 do not contain, so newWine builds this library.
func newWine(t *testing.T) (start, string) {
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
		// Wine's processes may still write to the folder while they exit.
		for range 100 {
			if os.RemoveAll(prefix) == nil {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
	library := filepath.Join(prefix, "drive_c", "windows", "system32", "bcryptprimitives.dll")
	if _, err := os.Stat(library); err != nil {
		if missing := buildForwarder(t, library, "ProcessPrng", "advapi32.SystemFunction036"); missing != "" {
			return nil, missing
		}
	}
	return func(program string, args ...string) (*exec.Cmd, func(string) string) {
		cmd := exec.Command(emulator, append([]string{program}, args...)...)
		cmd.Env = env
		return cmd, func(path string) string { return "Z:" + strings.ReplaceAll(path, "/", `\`) }
	}, ""
}

// buildForwarder builds a Windows library whose only function forwards to another library.
func buildForwarder(t *testing.T, library, name, to string) (missing string) {
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

// remoteCommand is the command on a target system.
type remoteCommand struct {
	*testing.T
	target
	program string
	start   start
	folder  string // a folder whose name contains a space
}

// remotePath returns the path of a file in the target system's notation.
func (s *remoteCommand) remotePath(name string) string {
	_, named := s.start(s.program)
	return named(filepath.Join(s.folder, name))
}

// runCommand runs the command on the target system, and returns its output with Linux newlines.
func (s *remoteCommand) runCommand(want int, args ...string) (stdout, stderr string) {
	s.Helper()
	for attempt := 1; ; attempt++ {
		cmd, _ := s.start(s.program, args...)
		var out, messages bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &messages
		_ = cmd.Run() // the exit code is compared below
		// Wine's server ends some time after the last program has ended. A program that starts
		// while the server is ending fails.
		if attempt < mostAttempts && strings.Contains(messages.String(), "wine client error") {
			continue
		}
		if code := cmd.ProcessState.ExitCode(); code != want {
			s.Fatalf("%q: exit code %d, want %d\n%s%s", args, code, want, &out, &messages)
		}
		return out.String(), messages.String()
	}
}

// mostAttempts is the maximum number of times that a test starts a program in Wine.
const mostAttempts = 3

// runHere runs the command in this process.
func (s *remoteCommand) runHere(args ...string) string {
	s.Helper()
	var out, messages bytes.Buffer
	if code := command.Main(args, strings.NewReader(""), &out, &messages); code != 0 {
		s.Fatalf("%q: exit code %d\n%s", args, code, &messages)
	}
	return out.String()
}

func (s *remoteCommand) same(one, other string) {
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

// checkAnalyses compares profiles and answers with the results on this system. Profiles must be
// byte-identical, and answers must have the same text. Only the 16th digit of numbers in CSV and
// JSON may differ, because mathematical functions round differently on different processors.
func (s *remoteCommand) checkAnalyses() {
	for _, demo := range []string{"matmul-naive", "openmp-stencil"} {
		s.runCommand(0, "analyze", "demo:"+demo, "-o", s.remotePath(demo+" there.sgp"))
		s.runHere("analyze", "demo:"+demo, "-o", filepath.Join(s.folder, demo+" here.sgp"))
		s.same(demo+" there.sgp", demo+" here.sgp")
		for _, question := range [][]string{{"curve"}, {"sites"}, {"what-if", "--cache", "L1=4KiB,4"}, {"diagnose"}} {
			there, _ := s.runCommand(0, append(question, s.remotePath(demo+" here.sgp"))...)
			here := s.runHere(append(question, filepath.Join(s.folder, demo+" here.sgp"))...)
			if there = strings.ReplaceAll(there, s.remotePath(demo), filepath.Join(s.folder, demo)); there != here {
				s.Errorf("%s of %s:\n%s\nwant\n%s", question, demo, there, here)
			}
		}
	}
}

// checkResume kills an analysis after its first checkpoint, and checks that a second run resumes
// it.
func (s *remoteCommand) checkResume() {
	var trace bytes.Buffer
	for i := range 600_000 {
		fmt.Fprintf(&trace, "%d %x\n", i%2, i*7919%(1<<21)*8)
	}
	if err := os.WriteFile(filepath.Join(s.folder, "a trace.din"), trace.Bytes(), 0o666); err != nil {
		s.Fatal(err)
	}
	args := []string{"analyze", s.remotePath("a trace.din"), "-o", s.remotePath("there.sgp"), "--checkpoint", s.remotePath("check points"), "--checkpoint-every", "20000"}
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
	if _, said := s.runCommand(0, args...); !strings.Contains(said, "continuing after") {
		s.Errorf("the analysis did not resume: %s", said)
	}
	s.runHere("analyze", filepath.Join(s.folder, "a trace.din"), "-o", filepath.Join(s.folder, "here.sgp"))
	s.same("there.sgp", "here.sgp")
	if left, err := os.ReadDir(filepath.Join(s.folder, "check points")); err != nil || len(left) > 0 {
		s.Errorf("the folder of checkpoints still contains %v, %v", left, err)
	}
}

// checkServe starts two servers. When the second server starts, the default port is already in use.
func (s *remoteCommand) checkServe() {
	files, err := site.Dist()
	if err != nil {
		if _, said := s.runCommand(3, "serve", "--no-browser"); !strings.Contains(said, err.Error()) {
			s.Errorf("serve printed %q, want %q in it", said, err)
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
		s.Errorf("addresses of two servers = %v, want two addresses", addresses)
	}
}

// checkRecording checks the errors of verbs that cannot record on the target system, which must
// contain advice.
func (s *remoteCommand) checkRecording() {
	if s.system == "linux" {
		return
	}
	for _, args := range [][]string{{"trace", "--", "program.exe"}, {"cc", "--", "clang", "a.c"}} {
		if _, said := s.runCommand(2, args...); !strings.Contains(said, "only on Linux") || !strings.Contains(said, "help import") {
			s.Errorf("%q: %s", args, said)
		}
	}
}
