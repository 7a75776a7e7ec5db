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

// realTrace is the trace of sort, or lackeyTrace if there is none.
func realTrace(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("STACKGLASS_DATA")
	if dir == "" {
		dir = filepath.Join(root, "..", "shared", "data")
	}
	path := absolute(t, filepath.Join(dir, "traces", "sort.lackey.lz4"))
	if _, err := os.Stat(path); err == nil {
		return path
	}
	t.Logf("there is no %s (STACKGLASS_DATA names its folder): a small trace stands in", path)
	return lackeyTrace(t)
}

// lackeyTrace is a small trace as text, packed by lz4; it reports no blocks.
func lackeyTrace(t *testing.T) string {
	t.Helper()
	return absolute(t, filepath.Join(root, "core", "trace", "tracetest", "testdata", "array-list.lackey.lz4"))
}

// beginning is the beginning of the real trace, where its length proves nothing. It is one
// file for all tests.
func beginning(t *testing.T) string {
	t.Helper()
	const references = 1e6
	from := realTrace(t)
	path := filepath.Join(needStage(t).files, "beginning-"+filepath.Base(from))
	if _, err := os.Stat(path); err == nil {
		return path
	}
	text := unpacked(t, from)
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
		err = os.Chtimes(path, modified, modified)
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

// longTrace is the real trace repeated, in consecutive LZ4 frames, with at least this number of
// references. It is one file for all tests, with the date modified, so that its truth is computed
// once; tests that change it use ownTrace.
func longTrace(t *testing.T, references uint64) string {
	t.Helper()
	path := filepath.Join(needStage(t).files, fmt.Sprintf("long-%d-%s", references, filepath.Base(realTrace(t))))
	if _, err := os.Stat(path); err != nil {
		writeLong(t, path, references)
	}
	return path
}

// ownTrace is the real trace in a file of the test's own.
func ownTrace(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "own-"+filepath.Base(realTrace(t)))
	writeLong(t, path, 1)
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
		err = os.Chtimes(path, modified, modified)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// truth is the command's result for a trace.
type truth struct {
	Digest     string
	References uint64
	Complete   bool
	Profile    string // the file that it kept
}

var (
	truthsMu sync.Mutex
	truths   = map[string]*truth{}
)

// measured are the caches that the page measures by site unless another hierarchy is in view: those
// of the first preset whose sets are not chosen by a hash.
const measured = "32KiB,8,256KiB,8"

// truthOf analyses a trace with the command, once for all tests.
func truthOf(t *testing.T, trace string) *truth {
	t.Helper()
	truthsMu.Lock()
	defer truthsMu.Unlock()
	if known := truths[trace]; known != nil {
		return known
	}
	profile := filepath.Join(shared.files, "command-"+strconv.Itoa(len(truths))+".sgp")
	measuring := measured // as the page does
	for _, d := range demos(t) {
		if trace == "demo:"+d.Name {
			measuring = d.measured()
		}
	}
	answer := ask(t, "analyze", trace, "-o", profile, "--format", "json", "--utilisation", measuring)
	v := truthIn(t, answer)
	v.Profile = profile
	truths[trace] = v
	return v
}

// infoOf is the command's description of a profile.
func infoOf(t *testing.T, profile string) *truth {
	t.Helper()
	return truthIn(t, ask(t, "info", profile, "--format", "json"))
}

func truthIn(t *testing.T, answer []byte) *truth {
	t.Helper()
	var v struct{ Input truth }
	if err := json.Unmarshal(answer, &v); err != nil {
		t.Fatalf("%v in %s", err, answer)
	}
	if len(v.Input.Digest) != 64 {
		t.Fatalf("no digest in %s", answer)
	}
	return &v.Input
}

// ask runs the command and returns its output. A partial answer is accepted, too.
func ask(t *testing.T, args ...string) []byte {
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

// demoCard is a demo in demos.json.
type demoCard struct {
	Name, Title, Question string
	Opens                 string
	Lesson                []string
	Predict               site.Prediction
	References            uint64
}

// measured are the caches that the page measures by site in a demo: those that it opens with.
func (d demoCard) measured() string {
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
	content, err := os.ReadFile(filepath.Join(root, "site", "demos", "demos.json"))
	if err != nil {
		t.Fatal(err)
	}
	var list []demoCard
	if err := json.Unmarshal(content, &list); err != nil || len(list) == 0 {
		t.Fatalf("demos.json: %d demos, %v", len(list), err)
	}
	return list
}

// demoFile is a demo's trace.
func demoFile(t *testing.T, name string) []byte {
	t.Helper()
	return ask(t, "demo", name, "-o", "-")
}
