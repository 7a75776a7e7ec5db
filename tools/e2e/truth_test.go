package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/pierrec/lz4/v4"

	caches "github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/site"
	"github.com/stackglass/stackglass/ui/state"
)

// realTrace returns the path of the real trace "sort", or of a small trace if "sort" does not
// exist.
func realTrace(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("STACKGLASS_DATA")
	if dir == "" {
		dir = filepath.Join(rootFolder, "..", "shared", "data")
	}
	path := absolute(t, filepath.Join(dir, "traces", "sort.lackey.lz4"))
	if _, err := os.Stat(path); err == nil {
		return path
	}
	t.Logf("%s does not exist (set STACKGLASS_DATA to its folder); using a small trace instead", path)
	return lackeyTrace(t)
}

// lackeyTrace returns the path of a small lackey trace that is compressed with lz4. The trace
// contains no blocks.
func lackeyTrace(t *testing.T) string {
	t.Helper()
	return absolute(t, filepath.Join(rootFolder, "core", "trace", "tracetest", "testdata", "array-list.lackey.lz4"))
}

// shortTrace returns the path of a file that contains the beginning of the real trace. The file is
// for tests that do not need a long trace. All tests share this file.
func shortTrace(t *testing.T) string {
	t.Helper()
	const references = 1e6
	from := realTrace(t)
	path := filepath.Join(needStage(t).files, "beginning-"+filepath.Base(from))
	if _, err := os.Stat(path); err == nil {
		return path
	}
	text := unpacked(t, from)
	if lines := bytes.Count(text, []byte("\n")); lines < references {
		text = bytes.Repeat(text, references/max(1, lines)+1)
	}
	end := 0
	for range int(references) {
		line := bytes.IndexByte(text[end:], '\n')
		if line < 0 {
			break
		}
		end += line + 1
	}
	err := os.WriteFile(path, pack(t, text[:end], func(w io.Writer) (io.WriteCloser, error) { return lz4.NewWriter(w), nil }), 0o600)
	if err == nil {
		err = os.Chtimes(path, fileTime, fileTime)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// longTrace returns the path of a trace with at least the given number of references. The trace
// consists of copies of the real trace in consecutive LZ4 frames. All tests share this file. The
// file's modification time is always the same, so that the command's result for the file is
// computed only once. A test that changes the file must use ownTrace instead.
func longTrace(t *testing.T, references uint64) string {
	t.Helper()
	path := filepath.Join(needStage(t).files, fmt.Sprintf("long-%d-%s", references, filepath.Base(realTrace(t))))
	if _, err := os.Stat(path); err != nil {
		writeLong(t, path, references)
	}
	return path
}

// pausableLength is the number of references in a trace whose analysis takes long enough to be
// paused.
const pausableLength = 5e6

// ownTrace returns the path of a private copy of a trace that is long enough for a run to be
// paused.
func ownTrace(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "own-"+filepath.Base(realTrace(t)))
	writeLong(t, path, pausableLength)
	return path
}

func writeLong(t *testing.T, path string, references uint64) {
	t.Helper()
	from := realTrace(t)
	once := truthOf(t, from).References
	content, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(path, bytes.Repeat(content, int((references+once-1)/once)), 0o600)
	}
	if err == nil {
		err = os.Chtimes(path, fileTime, fileTime)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// commandResult is the result that the command computes for a trace.
type commandResult struct {
	Digest     string
	References uint64
	Complete   bool
	Profile    string // path of the profile that the command wrote
}

var (
	truthsMu sync.Mutex
	truths   = map[string]*commandResult{}
)

// measuredCaches lists the caches for which the page counts misses by site by default. These are
// the caches of the first preset, except the caches that select sets with a hash function.
const measuredCaches = "48KiB,12,1MiB,16,32MiB,16"

// truthOf analyses a trace with the command. Each trace is analysed only once for all tests.
func truthOf(t *testing.T, trace string) *commandResult {
	t.Helper()
	truthsMu.Lock()
	defer truthsMu.Unlock()
	if known := truths[trace]; known != nil {
		return known
	}
	profile := filepath.Join(sharedStage.files, "command-"+strconv.Itoa(len(truths))+".sgp")
	measuring := measuredCaches
	for _, d := range demos(t) {
		if trace == "demo:"+d.Name {
			measuring = d.cachesBySite()
		}
	}
	answer := runCommand(t, "analyze", trace, "-o", profile, "--format", "json", "--utilisation", measuring)
	v := truthIn(t, answer)
	v.Profile = profile
	truths[trace] = v
	return v
}

// infoOf returns the facts that the verb "info" prints about a profile.
func infoOf(t *testing.T, profile string) *commandResult {
	t.Helper()
	return truthIn(t, runCommand(t, "info", profile, "--format", "json"))
}

func truthIn(t *testing.T, answer []byte) *commandResult {
	t.Helper()
	var v struct{ Input commandResult }
	if err := json.Unmarshal(answer, &v); err != nil {
		t.Fatalf("%v in %s", err, answer)
	}
	if len(v.Input.Digest) != 64 {
		t.Fatalf("no digest in %s", answer)
	}
	return &v.Input
}

// runCommand runs the command and returns its output. A partial answer is not an error.
func runCommand(t *testing.T, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(needStage(t).program, args...)
	var said bytes.Buffer
	cmd.Stderr = &said
	answer, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 3 && len(answer) > 0) {
		t.Fatalf("stackglass %s: %v\n%s", strings.Join(args, " "), err, said.Bytes())
	}
	return answer
}

// A demoCard describes one demo in demos.json.
type demoCard struct {
	Name, Title, Question string
	Opens                 string
	Lesson                []string
	Predict               site.Prediction
	References            uint64
}

// cachesBySite returns the caches for which the page counts a demo's misses by site: the caches
// with which the demo opens.
func (d demoCard) cachesBySite() string {
	screen := state.ParseScreen(d.Opens)
	levels := screen.Levels
	for _, h := range caches.Presets() {
		if levels == nil && (screen.Preset == "" || screen.Preset == state.PresetSlug(h.Name)) {
			levels = h.Levels
		}
	}
	var list []string
	for _, c := range levels {
		if c.Hashed {
			continue
		}
		list = append(list, strconv.FormatUint(c.SizeBytes, 10))
		if !c.Full() {
			list = append(list, strconv.Itoa(int(c.Ways)))
		}
	}
	return strings.Join(list, ",")
}

func demos(t *testing.T) []demoCard {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(rootFolder, "site", "demos", "demos.json"))
	if err != nil {
		t.Fatal(err)
	}
	var list []demoCard
	if err := json.Unmarshal(content, &list); err != nil || len(list) == 0 {
		t.Fatalf("demos.json: %d demos, %v", len(list), err)
	}
	return list
}

// demoFile returns the content of a demo's trace file.
func demoFile(t *testing.T, name string) []byte {
	t.Helper()
	return runCommand(t, "demo", name, "-o", "-")
}
