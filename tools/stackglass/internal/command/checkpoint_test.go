package command

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stackglass/stackglass/tools/stackglass/internal/folder"
)

// runAsCommand is an environment variable. If this variable is set, the test binary runs as the
// command, so that a test can kill the command.
const runAsCommand = "STACKGLASS_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(runAsCommand) != "" {
		os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// newProcess prepares the command to run as a separate process.
func newProcess(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), runAsCommand+"=1")
	return cmd
}

// dinTrace returns a din trace with many cache lines and some locality, so that the saved state is
// not tiny.
func dinTrace(n int) string {
	random := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, 0, 14*n)
	for i := range n {
		address := random.Uint64N(1 << 22)
		if i%2 == 0 {
			address = uint64(i) * 8 % (1 << 16)
		}
		b = append(b, '0'+byte(i%2), ' ')
		b = strconv.AppendUint(b, 0x10000+address, 16)
		b = append(b, '\n')
	}
	return string(b)
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestKilledAnalysisResumes kills an analysis several times at random moments, and repeats the
// command until the analysis is complete. The profile must equal the profile of an uninterrupted
// analysis, and no other files may remain.
func TestKilledAnalysisResumes(t *testing.T) {
	inMemory, spilled, length := 6, 2, 1_000_000
	if os.Getenv("STACKGLASS_SOAK") != "" {
		inMemory, spilled, length = 24, 8, 2_000_000
	}
	t.Run("in memory", func(t *testing.T) { testKilled(t, inMemory, length) })
	t.Run("spilled", func(t *testing.T) { testKilled(t, spilled, length, "--analyses", "sets", "--spill", "spilled") })
}

// hasCheckpoint reports whether a folder contains a checkpoint.
func hasCheckpoint(dir string) bool {
	found, _ := filepath.Glob(filepath.Join(dir, "*.checkpoint"))
	return len(found) > 0
}

// testKilled waits for a checkpoint before every second kill, so that some runs resume even on a
// slow machine. On a fast machine, a run may end before its first checkpoint.
func testKilled(t *testing.T, kills, length int, more ...string) {
	inFolder(t, map[string]string{"a.din": dinTrace(length)})
	random := rand.New(rand.NewPCG(20, 24))
	begin := time.Now()
	plain := append([]string{"analyze", "a.din", "-o", "whole.sgp", "--lines", "32,64"}, more...)
	if out, err := newProcess(t, plain[:min(len(plain), 8)]...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	whole := time.Since(begin)
	line := append([]string{"analyze", "a.din", "-o", "a.sgp", "--lines", "32,64", "--checkpoint", "kept", "--checkpoint-every", "50000"}, more...)
	killed, resumed, ended := 0, 0, 0
	unfinished := func(runs int) bool { return runs < 4*kills && (killed < kills || resumed == 0) }
	for runs := 0; unfinished(runs) || ended == 0; runs++ {
		var stderr bytes.Buffer
		var over atomic.Bool
		cmd := newProcess(t, line...)
		cmd.Stderr = &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if unfinished(runs) {
			delay, behind := time.Duration(random.Float64()*float64(whole)), runs%2 == 1
			if behind {
				delay /= 16 // most of the run may be complete when the first checkpoint appears
			}
			go func() {
				for behind && !hasCheckpoint("kept") && !over.Load() {
					time.Sleep(time.Millisecond)
				}
				time.Sleep(delay)
				_ = cmd.Process.Kill()
			}()
		}
		err := cmd.Wait()
		over.Store(true)
		if strings.Contains(stderr.String(), "continuing after") {
			resumed++
		}
		if err == nil {
			ended++
			if !bytes.Equal(read(t, "a.sgp"), read(t, "whole.sgp")) {
				t.Fatalf("the profile after %d kills differs from the profile of an uninterrupted run", killed)
			}
			for _, dir := range []string{"kept", "spilled"} {
				if left, _ := os.ReadDir(dir); len(left) > 0 {
					t.Errorf("the folder %s contains %v, want no files", dir, left)
				}
			}
			if err := os.Remove("a.sgp"); err != nil {
				t.Error(err)
			}
			continue
		}
		if cmd.ProcessState.ExitCode() != -1 {
			t.Fatalf("%v: %s", err, stderr.String())
		}
		killed++
		if _, err := os.Stat("a.sgp"); err == nil {
			if !bytes.Equal(read(t, "a.sgp"), read(t, "whole.sgp")) {
				t.Fatal("a killed run wrote an incomplete profile")
			}
		}
	}
	if resumed == 0 {
		t.Error("no run resumed from a checkpoint")
	}
	t.Logf("%d kills, %d runs resumed from a checkpoint, %d runs ended", killed, resumed, ended)
}

// interruptAnalysis interrupts an analysis of a.din halfway, so that a checkpoint remains in the
// folder "kept".
func interruptAnalysis(t *testing.T, more ...string) {
	t.Helper()
	ctx, interrupt := context.WithCancel(t.Context())
	content := read(t, "a.din")
	done := make(chan struct{})
	defer close(done)
	stdin := &interruptingInput{Reader: bytes.NewReader(content), remaining: len(content) / 2, interrupt: interrupt, over: done}
	var stdout, stderr bytes.Buffer
	code := run(ctx, append([]string{"analyze", "-", "--checkpoint", "kept"}, more...), stdin, &stdout, &stderr)
	expectExit(t, answer{stdout.String(), stderr.String(), code}, exitInterrupted, "run the same command again to resume from the checkpoint in kept", "interrupted")
	if len(files(t, "kept")) != 1 {
		t.Fatalf("the folder contains %q, want one checkpoint", files(t, "kept"))
	}
}

// interruptingInput is a standard input that interrupts the command as soon as only the given
// number of bytes (field remaining) is left. It then blocks until the channel "over" is closed.
type interruptingInput struct {
	*bytes.Reader
	remaining int
	interrupt func()
	over      chan struct{}
}

func (r *interruptingInput) Read(p []byte) (int, error) {
	if r.Len() <= r.remaining {
		r.interrupt()
		<-r.over
	}
	return r.Reader.Read(p[:min(len(p), 1000)])
}

// TestInterruptedResumes checks that an interrupted pass resumes where it stopped, and that it
// fails if standard input has changed.
func TestInterruptedResumes(t *testing.T) {
	for _, options := range [][]string{
		nil, {"--mergeable"}, {"--skip", "1000", "--limit", "250000"}, {"--sample", "space=0.1"}, {"--sample", "onoff=1000/10000"}, {"--analyses", "locality,sets,sites,counters"},
	} {
		t.Run(strings.Join(options, " "), func(t *testing.T) {
			text := dinTrace(300_000)
			inFolder(t, map[string]string{"a.din": text})
			interruptAnalysis(t, options...)
			expectExit(t, askWith(text, append([]string{"analyze", "-", "-o", "whole.sgp"}, options...)...), exitOK, expectedWarnings(options)...)
			got := askWith(text, append([]string{"analyze", "-", "-o", "a.sgp", "--checkpoint", "kept"}, options...)...)
			expectExit(t, got, exitOK, append(expectedWarnings(options), "standard input: continuing after")...)
			if !bytes.Equal(read(t, "a.sgp"), read(t, "whole.sgp")) {
				t.Error("the profile differs from the profile of an uninterrupted run")
			}
			for _, dir := range []string{"kept", "spilled"} {
				if left, _ := os.ReadDir(dir); len(left) > 0 {
					t.Errorf("the folder %s contains %v, want no files", dir, left)
				}
			}
		})
	}
}

// expectedWarnings returns words that the warnings of a command with the given options must
// contain.
func expectedWarnings(options []string) []string {
	switch {
	case slices.Contains(options, "--sample"):
		return []string{"sample"}
	case slices.Contains(options, "--skip"):
		return []string{"with empty caches"}
	}
	return nil
}

// TestOtherOptionsStartOver checks that a command with different options starts a new analysis, and
// keeps the checkpoint of the first analysis.
func TestOtherOptionsStartOver(t *testing.T) {
	text := dinTrace(300_000)
	inFolder(t, map[string]string{"a.din": text})
	interruptAnalysis(t)
	expectExit(t, askWith(text, "analyze", "-", "--lines", "128", "--checkpoint", "kept"), exitOK)
	if len(files(t, "kept")) != 1 {
		t.Errorf("the folder contains %q, want only the checkpoint of the first analysis", files(t, "kept"))
	}
}

// TestChangedFile checks that an analysis does not resume after any change to the file, and that
// its checkpoint is not deleted.
func TestChangedFile(t *testing.T) {
	text := dinTrace(600_000)
	late := []byte(text)
	late[4<<20+1000] ^= 1 // this changes a digit or a record separator
	early := []byte(text)
	early[100] ^= 1
	for name, c := range map[string]struct{ text, says string }{
		"early bytes": {string(early), "this file differs from the first byte"},
		"late bytes":  {string(late), "this file differs after byte 4194304"},
		"shorter":     {text[:2000], "this file differs"},
	} {
		t.Run(name, func(t *testing.T) {
			inFolder(t, map[string]string{"a.din": text})
			interruptLate(t)
			before := files(t, "kept")
			got := askWith(c.text, "analyze", "-", "-o", "a.sgp", "--checkpoint", "kept")
			expectExit(t, got, exitInput, "standard input: the file was changed since its analysis was interrupted", c.says, "delete "+filepath.Join("kept", "standard-input-"))
			if after := files(t, "kept"); len(after) != 1 || after[0] != before[0] {
				t.Errorf("the folder contained %q before, and now contains %q", before, after)
			}
			if _, err := os.Stat("a.sgp"); err == nil {
				t.Error("the command wrote a profile, want none")
			}
		})
	}
}

func interruptLate(t *testing.T) {
	t.Helper()
	ctx, interrupt := context.WithCancel(t.Context())
	content := read(t, "a.din")
	stdin := &interruptingInput{Reader: bytes.NewReader(content), remaining: len(content) / 8, interrupt: interrupt}
	var stdout, stderr bytes.Buffer
	if code := run(ctx, []string{"analyze", "-", "--checkpoint", "kept"}, stdin, &stdout, &stderr); code != exitInterrupted {
		t.Fatalf("exit code %d, want an interrupted analysis; stderr: %s", code, stderr.String())
	}
}

// TestChangedLength checks that a file whose length has changed is rejected before it is read.
func TestChangedLength(t *testing.T) {
	text := dinTrace(4_000_000)
	inFolder(t, map[string]string{"a.din": text})
	cmd := newProcess(t, "analyze", "a.din", "--checkpoint", "kept", "--checkpoint-every", "20000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for checkpoints := 0; checkpoints == 0; {
		select {
		case err := <-ended:
			t.Fatalf("the analysis ended without a checkpoint: %v", err)
		case <-time.After(time.Millisecond):
		}
		found, err := filepath.Glob("kept/*.checkpoint")
		if err != nil {
			t.Fatal(err)
		}
		checkpoints = len(found)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Skip("the analysis ended before it could be killed")
	}
	if err := os.WriteFile("a.din", []byte(text+"0 1000\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	expectExit(t, stackglass("analyze", "a.din", "--checkpoint", "kept"), exitInput, "a.din: the file was changed since its analysis was interrupted", "bytes, and this file has")
}

// TestUnusableCheckpoint checks that a checkpoint that is damaged or has a different version is
// reported, but not deleted.
func TestUnusableCheckpoint(t *testing.T) {
	text := dinTrace(300_000)
	inFolder(t, map[string]string{"a.din": text})
	interruptAnalysis(t)
	path := filepath.Join("kept", files(t, "kept")[0])
	whole := read(t, path)
	damaged := bytes.Clone(whole)
	damaged[len(damaged)/2] ^= 1
	if err := os.WriteFile(path, damaged, 0o644); err != nil {
		t.Fatal(err)
	}
	expectExit(t, askWith(text, "analyze", "-", "--checkpoint", "kept"), exitInput, "cannot resume from kept", "damaged", "delete the checkpoint")
	if !bytes.Equal(read(t, path), damaged) {
		t.Error("the damaged checkpoint was deleted")
	}
}

// TestConcurrentCommandFails checks that only one process at a time can run an analysis.
func TestConcurrentCommandFails(t *testing.T) {
	text := dinTrace(300_000)
	inFolder(t, map[string]string{"a.din": text})
	interruptAnalysis(t)
	f, err := folder.Open("kept")
	if err != nil {
		t.Fatal(err)
	}
	name, _, _ := strings.Cut(files(t, "kept")[0], "-1.checkpoint")
	release, err := f.Own(name)
	if err != nil {
		t.Fatal(err)
	}
	expectExit(t, askWith(text, "analyze", "-", "--checkpoint", "kept"), exitUsage, "another run of the same analysis")
	release()
	expectExit(t, askWith(text, "analyze", "-", "--checkpoint", "kept"), exitOK, "continuing after")
}

// TestCheckpointFolder checks that the command exits with code 2 if it cannot create the checkpoint
// folder.
func TestCheckpointFolder(t *testing.T) {
	inFolder(t, map[string]string{"a.din": "0 1000\n", "file": ""})
	expectExit(t, stackglass("analyze", "a.din", "--checkpoint", "file"), exitUsage, "file: cannot be written")
	expectExit(t, stackglass("analyze", "a.din", "--checkpoint", "new/folder"), exitOK)
}
