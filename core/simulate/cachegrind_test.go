package simulate_test

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/open"
	"github.com/stackglass/stackglass/core/simulate"
	"github.com/stackglass/stackglass/core/trace"
)

// TestCachegrind compares the simulation of a trace by Lackey with Cachegrind's simulation of the
// same program. Lackey and Cachegrind are tools of Valgrind. The only difference concerns
// references that cross a line boundary. Cachegrind counts such a reference once, and as a miss if
// any of its lines misses.
func TestCachegrind(t *testing.T) {
	if _, err := exec.LookPath("valgrind"); err != nil {
		t.Skip("valgrind is not installed")
	}
	dir := t.TempDir()
	log := filepath.Join(dir, "trace")
	valgrind(t, "--tool=lackey", "--trace-mem=yes", "--log-file="+log)
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []hierarchy.Cache{
		{Name: "L1", SizeBytes: 32768, Ways: 8, LineBytes: 64},
		{Name: "L1", SizeBytes: 4096, Ways: 1, LineBytes: 64},
		{Name: "L1", SizeBytes: 8192, Ways: 2, LineBytes: 32},
		{Name: "L1", SizeBytes: 4096, Ways: 64, LineBytes: 64},
	} {
		geometry := strconv.Itoa(int(c.SizeBytes)) + "," + strconv.Itoa(int(c.Ways)) + "," + strconv.Itoa(int(c.LineBytes))
		said := valgrind(t, "--tool=cachegrind", "--cache-sim=yes", "--D1="+geometry, "--cachegrind-out-file="+filepath.Join(dir, "out"))
		got := simulateData(t, text, c)
		if references := saidCount(t, said, "D   refs"); got.References != references {
			t.Fatalf("%s: %d references in the trace, but Cachegrind counts %d", geometry, got.References, references)
		}
		misses, theirs := got.Levels[0].Run.Misses(), saidCount(t, said, "D1  misses")
		if theirs > misses || misses-theirs > got.Split {
			t.Errorf("%s: %d misses, but Cachegrind counts %d; %d references cross lines", geometry, misses, theirs, got.Split)
		}
	}
}

// TestCachegrindLevels simulates separate first-level caches and a shared last level for five
// programs. TestCachegrindLevels compares the misses with the misses that Cachegrind counts. The
// counts must be equal.
func TestCachegrindLevels(t *testing.T) {
	if _, err := exec.LookPath("valgrind"); err != nil {
		t.Skip("valgrind is not installed")
	}
	var h hierarchy.Hierarchy
	for _, line := range []string{"D1=4096,2,64", "LL=65536,4,64", "I1=2048,1,64,instructions"} {
		if err := h.Add(line); err != nil {
			t.Fatal(err)
		}
	}
	for _, program := range [][]string{{"/bin/true"}, {"/bin/echo", "a", "b"}, {"/bin/uname", "-s"}, {"/usr/bin/expr", "3", "*", "4"}, {"/usr/bin/seq", "20"}} {
		t.Run(filepath.Base(program[0]), func(t *testing.T) {
			dir := t.TempDir()
			log := filepath.Join(dir, "trace")
			valgrindOn(t, program, "--tool=lackey", "--trace-mem=yes", "--log-file="+log)
			text, err := os.ReadFile(log)
			if err != nil {
				t.Fatal(err)
			}
			said := valgrindOn(t, program, "--tool=cachegrind", "--cache-sim=yes", "--I1=2048,1,64", "--D1=4096,2,64", "--LL=65536,4,64",
				"--log-file="+filepath.Join(dir, "log"), "--cachegrind-out-file="+filepath.Join(dir, "out"))
			if summary, err := os.ReadFile(filepath.Join(dir, "log")); err == nil {
				said = string(summary)
			}
			s, err := simulate.New(h, simulate.Options{PerReference: true})
			if err != nil {
				t.Fatal(err)
			}
			reader, err := open.Open("lackey", bytes.NewReader(text), open.Options{})
			if err != nil {
				t.Fatal(err)
			}
			whole, err := trace.ReadAll(reader)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Consume(whole); err != nil {
				t.Fatal(err)
			}
			r := s.Finish()
			i1, d1, ll := &r.Instructions[0].Run, &r.Levels[0].Run, &r.Levels[1].Run
			for name, got := range map[string]uint64{
				"I   refs": i1.Accesses(), "I1  misses": i1.Misses(), "LLi misses": ll.FetchMisses,
				"D   refs": d1.Accesses(), "D1  misses": d1.Misses(), "LLd misses": ll.Misses() - ll.FetchMisses,
			} {
				if want := saidCount(t, said, name); got != want {
					t.Errorf("%s: %d, but Cachegrind counts %d", name, got, want)
				}
			}
		})
	}
}

// valgrind runs a small program under Valgrind, always in the same environment, and returns
// Valgrind's messages.
func valgrind(t *testing.T, options ...string) string {
	t.Helper()
	return valgrindOn(t, []string{"/bin/true"}, options...)
}

// valgrindOn runs a program under Valgrind.
func valgrindOn(t *testing.T, program []string, options ...string) string {
	t.Helper()
	cmd := exec.Command("valgrind", append(options, program...)...)
	cmd.Env = []string{}
	said, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	return string(said)
}

func saidCount(t *testing.T, said, what string) uint64 {
	t.Helper()
	found := regexp.MustCompile(what + `: +([0-9,]+)`).FindStringSubmatch(said)
	if found == nil {
		t.Fatalf("%s is missing in Valgrind's messages: %s", what, said)
	}
	return number(t, strings.ReplaceAll(found[1], ",", ""))
}

// simulateData simulates one cache for the data references of a text trace.
func simulateData(t *testing.T, text []byte, c hierarchy.Cache) simulate.Result {
	t.Helper()
	reader, err := open.Open("lackey", bytes.NewReader(text), open.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := simulate.New(hierarchy.Hierarchy{Levels: []hierarchy.Cache{c}}, simulate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := trace.NewBatch(0)
	for {
		err := reader.Next(b)
		if err == io.EOF {
			return s.Finish()
		} else if err != nil {
			t.Fatal(err)
		}
		data := trace.NewBatch(b.Len())
		for i, kind := range b.Kind {
			if kind != trace.Fetch {
				data.Append(kind, b.Addr[i], b.Bytes[i], 0, 0)
			}
		}
		if err := s.Consume(data); err != nil {
			t.Fatal(err)
		}
	}
}
