package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/log"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners/prism"
	"google.golang.org/grpc"

	"github.com/stackglass/stackglass/tools/beam/pool"
)

func TestReachable(t *testing.T) {
	defer func(before time.Duration) { answerTime = before }(answerTime)
	listen := func() (net.Listener, string) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return l, l.Addr().String()
	}
	listener, address := listen()
	server := grpc.NewServer()
	go server.Serve(listener)
	for _, endpoint := range []string{"", address, "http://" + address} {
		if err := reachable(context.Background(), endpoint); err != nil {
			t.Errorf("%q: %v", endpoint, err)
		}
	}
	server.Stop()
	silent, accepts := listen()
	defer silent.Close()
	answerTime = 300 * time.Millisecond
	for endpoint, want := range map[string]string{address: "refused", accepts: "does not answer"} {
		if err := reachable(context.Background(), endpoint); err == nil || !strings.Contains(err.Error(), "start the job server") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", endpoint, err, want)
		}
	}
}

// serverPort is the environment variable that makes the test program a job server.
const serverPort = "STACKGLASS_TEST_JOB_SERVER"

func TestMain(m *testing.M) {
	pool.Child()
	if port, err := strconv.Atoi(os.Getenv(serverPort)); err == nil {
		slog.SetDefault(slog.New(slog.DiscardHandler))
		if _, err := prism.CreateJobServer(context.Background(), prism.Options{Port: port}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		io.Copy(io.Discard, os.Stdin) // until the test ends
		os.Exit(0)
	}
	beam.Init()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	log.SetLogger(lastWords{})
	os.Exit(m.Run())
}

// startServer starts a job server in another process, and returns its address.
func startServer(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), serverPort+"="+port)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		cmd.Process.Kill()
		cmd.Wait()
	})
	for range 600 {
		if reachable(context.Background(), address) == nil {
			return address
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("the job server does not answer")
	return ""
}

// set sets flags until the test ends.
func set(t *testing.T, values map[string]string) {
	t.Helper()
	for name, value := range values {
		f := flag.Lookup(name)
		before := f.Value.String()
		if err := f.Value.Set(value); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Value.Set(before) })
	}
}

// A job server that runs in another process, as the servers of Flink and Spark do, receives the
// pipeline over the Job API, and connects to the workers in this process (LOOPBACK). The profiles
// equal the files of the default runner. Nothing temporary is left over, not even after a failed job.
func TestJobServer(t *testing.T) {
	dir := t.TempDir()
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	demo, err := filepath.Glob("../../site/demos/*.sgt")
	if err != nil || len(demo) < 3 {
		t.Fatal(demo, err)
	}
	text := filepath.Join(dir, "a.din")
	if err := os.WriteFile(text, []byte(strings.Repeat("0 1000\n1 1040\n0 2080\n", 60_000)), 0o644); err != nil {
		t.Fatal(err)
	}
	names := []string{demo[0], demo[1], text}
	address := startServer(t)
	contents := map[string]map[string]string{}
	for _, runner := range []string{"prism", "universal", "flink"} {
		t.Run(runner, func(t *testing.T) {
			out := t.TempDir()
			set(t, map[string]string{"runner": runner, "output": out, "references": "20000", "message-bytes": "100", "part-bytes": "300000"})
			if runner != "prism" {
				set(t, map[string]string{"endpoint": address, "environment_type": "LOOPBACK"})
			}
			if partial, err := run(context.Background(), names); partial || err != nil {
				t.Fatal(partial, err)
			}
			contents[runner] = map[string]string{}
			list, err := os.ReadDir(out)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range list {
				b, err := os.ReadFile(filepath.Join(out, f.Name()))
				if err != nil {
					t.Fatal(err)
				}
				contents[runner][f.Name()] = strings.ReplaceAll(string(b), out, "")
			}
			if len(list) != len(names)+2 || !strings.Contains(contents[runner]["report.txt"], "din, converted in 5 parts") {
				t.Errorf("%d files, report:\n%s", len(list), contents[runner]["report.txt"])
			}
			delete(contents[runner], "report.txt") // the widths of its columns depend on the names of folders
			if !maps.Equal(contents[runner], contents["prism"]) {
				t.Error("the files differ from the files of the default runner")
			}
		})
	}
	t.Run("failure", func(t *testing.T) {
		out := t.TempDir()
		damaged, err := os.ReadFile(demo[1])
		if err != nil {
			t.Fatal(err)
		}
		for i := range len(damaged) / 8 {
			damaged[len(damaged)/2+i] ^= 0x55
		}
		name := filepath.Join(t.TempDir(), "damaged.sgt")
		if err := os.WriteFile(name, damaged, 0o644); err != nil {
			t.Fatal(err)
		}
		set(t, map[string]string{"runner": "universal", "endpoint": address, "environment_type": "LOOPBACK", "output": out, "references": "20000", "message-bytes": "100"})
		_, err = run(context.Background(), []string{name})
		if err == nil || !strings.Contains(ownWords(err), name) {
			t.Errorf("error %v, want one that names the file", err)
		}
		if list, err := os.ReadDir(out); err != nil || len(list) > 0 {
			t.Errorf("%v, %v is left over", list, err)
		}
	})
	if list, err := os.ReadDir(temporary); err != nil || len(list) > 0 {
		t.Errorf("%v, %v is left over in the folder for temporary files", list, err)
	}
}

// The recipe of the image contains only instructions of container files, begins with Beam's image, and
// has the version of Beam with which the program is built. The README uses the same version.
func TestContainerfile(t *testing.T) {
	module, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(module), "github.com/apache/beam/sdks/v2 v")
	version, _, _ := strings.Cut(rest, "\n")
	if !found || version == "" {
		t.Fatal("go.mod requires no Beam")
	}
	recipe, err := os.ReadFile("Containerfile")
	if err != nil {
		t.Fatal(err)
	}
	var instructions []string
	for i, line := range strings.Split(string(recipe), "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, arguments, _ := strings.Cut(line, " ")
		if !slices.Contains([]string{"FROM", "RUN", "ENV", "LABEL", "COPY", "WORKDIR", "ENTRYPOINT"}, name) || strings.TrimSpace(arguments) == "" || strings.HasSuffix(line, "\\") {
			t.Errorf("line %d is no instruction with arguments: %s", i+1, line)
		}
		instructions = append(instructions, line)
	}
	if want := "FROM docker.io/apache/beam_go_sdk:" + version; len(instructions) == 0 || instructions[0] != want {
		t.Errorf("the recipe begins with %q, want %q", instructions, want)
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, image := range []string{"beam_go_sdk:", "prism@v"} {
		all := strings.Split(string(readme), image)
		for _, after := range all[1:] {
			if !strings.HasPrefix(after, version) {
				t.Errorf("the README names %s%.10s, want version %s", image, after, version)
			}
		}
		if len(all) == 1 {
			t.Errorf("the README does not name %s", image)
		}
	}
}
