package command

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace/tracetest"
	"github.com/stackglass/stackglass/site"
	"github.com/stackglass/stackglass/site/policy"
)

// inFolder creates a folder with the given files, and makes it the current folder. File names may
// contain slashes.
func inFolder(t *testing.T, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func demoBytes(t *testing.T) string {
	t.Helper()
	content, err := site.DemoFile("matmul-naive.sgt")
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// flipBit flips one bit in the middle byte of a string.
func flipBit(s string) string {
	b := []byte(s)
	b[len(b)/2] ^= 0x40
	return string(b)
}

// expectExit checks the exit code, and checks that standard error contains the given words.
func expectExit(t *testing.T, got answer, code int, words ...string) {
	t.Helper()
	if got.code != code {
		t.Errorf("exit code %d, want %d; stderr: %s", got.code, code, got.stderr)
	}
	for _, w := range words {
		if !strings.Contains(got.stderr, w) {
			t.Errorf("stderr does not contain %q:\n%s", w, got.stderr)
		}
	}
	if len(words) == 0 && got.stderr != "" {
		t.Errorf("stderr: %s", got.stderr)
	}
}

func TestUsageErrors(t *testing.T) {
	inFolder(t, map[string]string{"a.din": "0 1000\n"})
	for line, words := range map[string]string{
		"frobnicate":                          "no verb \"frobnicate\"; the verbs are analyze,",
		"cruve a.din":                         "did you mean `stackglass curve`?\n",
		"help frobnicate":                     "no verb \"frobnicate\"",
		"version x":                           "version accepts only options",
		"serve x":                             "serve accepts only options",
		"demo a b":                            "2 are given",
		"curve":                               "for example: stackglass curve app.lackey.lz4; see `stackglass help curve`\n",
		"analyze":                             "for example: stackglass analyze app.lackey.lz4 -o app.sgp; see `stackglass help analyze`\n",
		"curve a b":                           "2 are given: a, b; see `stackglass help curve`\n",
		"--frob":                              "no option --frob; see `stackglass help`\n",
		"curve a.din --frob":                  "no option --frob; see `stackglass help curve`\n",
		"curve a.din -x":                      "no option -x",
		"curve a.din --limit":                 "--limit: the value is missing",
		"curve a.din --line 64B":              "--line \"64B\", want a whole number without a unit",
		"curve a.din --limit -1":              "--limit \"-1\", want a whole number without a unit or sign",
		"analyze a.din --lines 64,x":          "--lines \"64,x\", want whole numbers",
		"what-if a.din --cache memory=1KiB,4": "latency=CYCLES",
		"what-if a.din --cache L1.d=1KiB,4":   "cannot be named \"L1.d\"",
		"curve a.din --line 48":               "48",
		"curve a.din --line 0":                "line",
		"analyze a.din --lines 64,48":         "48",
		"analyze a.din -o -":                  "-o -",
		"analyze a.din -o a.din":              "is the trace itself",
		"analyze a.din a.din -o x.sgp":        "folder",
		"analyze a.din a.din --format json":   "one trace",
		"curve a.din --format xml":            "table, csv, json, md",
		"curve a.din --kinds loads":           "loads",
		"curve a.din --threads 1,x":           "x",
		"curve a.din --input-format elf":      "elf",
		"curve a.din --memory much":           "much",
		"what-if a.din":                       "--cache",
		"what-if a.din --cache L1=32KiB":      "L1=32KiB",
		"what-if a.din --cache L1=1KiB,4 --cache L1=2KiB,4":     "already",
		"what-if a.din --hierarchy no-such-thing":               "the presets are ryzen-9950x, i7-4770K, ",
		"what-if a.din --hierarchy i7-6701":                     "want a preset such as i7-6700",
		"what-if a.din --cache L1=1KiB,4 --fail-if L2.misses>1": "--fail-if",
		"what-if a.din --cache L1=1KiB,4 --fail-if L1.misses":   "--fail-if",
		"diagnose a.din --fail-if findings.kin>1":               "a table and a column",
		"diagnose a.din --fail-if findings>1":                   "a table and a column",
		"diagnose a.din --fail-if findings.saved_share>1O%":     "a table and a column",
		"demo nothing":                "no demo nothing; the demos are matmul-naive",
		"curve demo:nothing":          "no demo nothing; the demos are matmul-naive",
		"info demo:nothing":           "no demo nothing; the demos are matmul-naive",
		"serve --http 0.0.0.0:8080":   "other machines",
		"serve --http 192.168.1.2:80": "other machines",
		"serve --http :8080":          "other machines",
		"serve --http 8080":           "HOST:PORT",
	} {
		t.Run(line, func(t *testing.T) {
			got := stackglass(strings.Fields(line)...)
			expectExit(t, got, exitUsage, words)
			if got.stdout != "" {
				t.Errorf("stdout: %s", got.stdout)
			}
		})
	}
}

// TestHelp checks that every verb in package ask has a help text with examples, and that every help
// text belongs to a verb.
func TestHelp(t *testing.T) {
	root := new(app).root()
	for _, v := range ask.Verbs() {
		if verb, _, _ := root.Find([]string{v.Name}); verb.Long == "" || verb.Example == "" || strings.Contains(verb.Long, "{") {
			t.Errorf("%s: help %q, examples %q", v.Name, verb.Long, verb.Example)
		}
	}
	texts, err := helpTexts.ReadDir("help")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range texts {
		name := strings.TrimSuffix(text.Name(), ".txt")
		if verb, _, err := root.Find([]string{name}); name != root.Name() && (err != nil || verb.Name() != name) {
			t.Errorf("help/%s belongs to no verb", text.Name())
		}
	}
}

// TestHelpTopics checks that the verb "help" also prints pages of the manual.
func TestHelpTopics(t *testing.T) {
	for _, topic := range []string{"index", "record", "ask", "predict", "host"} {
		page, err := site.ManualPage(topic)
		if got := stackglass("help", topic); err != nil || got.code != exitOK || got.stdout != string(page) {
			t.Errorf("help %s: %s, %v", topic, got, err)
		}
		if !strings.Contains(stackglass("help").stdout, topic) {
			t.Errorf("help does not list %s", topic)
		}
	}
}

func TestVersion(t *testing.T) {
	want := "stackglass " + Version + "\n"
	for _, line := range []string{"version", "--version", "-v"} {
		if got := stackglass(line); got.code != exitOK || got.stdout != want || got.stderr != "" {
			t.Errorf("%s: %s", line, got)
		}
	}
}

// TestWarningWithoutHierarchy checks the warning of verbs that can run without a hierarchy.
func TestWarningWithoutHierarchy(t *testing.T) {
	expectExit(t, stackglass(words("pipeline demo:matmul-naive")...), exitOK, "because no cache hierarchy is given; add one, for example --hierarchy ryzen-9950x")
	if got := stackglass(words("pipeline demo:matmul-naive --hierarchy epyc-7742")...); got.code != exitOK || strings.Contains(got.stderr, "no cache hierarchy") {
		t.Error(got)
	}
}

func TestBadInput(t *testing.T) {
	whole := string(tracetest.Packed())
	inFolder(t, map[string]string{
		"empty":           "",
		"unknown":         "this is no trace\nat all\n",
		"counts":          "event,value\nPAPI_L1_DCM,5\n",
		"cut.lz4":         whole[:len(whole)/2],
		"head.lz4":        whole[:5],
		"flipped.lz4":     flipBit(whole),
		"bad-line.din":    "0 1000\n7 2000\n1 3000\n",
		"bad-line.lackey": " L 00001000,8\n L zzz,8\n S 00002000,8\n",
		"newer.sgp":       "\x89SGP\r\n\x1a\n\x63",
		"cut.sgp":         "\x89SGP\r\n\x1a\n\x01INPT",
	})
	if err := os.Mkdir("folder", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ file, words string }{
		{"empty", "empty: the file is empty"},
		{"unknown", "unknown format|not lackey|not din|--input-format"},
		{"counts", "counts: the file contains measurements|stackglass measured counts"},
		{"cut.lz4", "cut.lz4|the lz4 stream is truncated|covers only a part"},
		{"head.lz4", "head.lz4|truncated"},
		{"flipped.lz4", "flipped.lz4|lz4"},
		{"bad-line.din", "bad-line.din:2|label|\"7\"|--skip-bad"},
		{"bad-line.lackey", "bad-line.lackey:2|--skip-bad"},
		{"newer.sgp", "newer.sgp|version 99|newer"},
		{"cut.sgp", "cut.sgp"},
		{"missing", "missing|no such file"},
		{"folder", "is a folder"},
	} {
		for _, verb := range []string{"histogram", "info"} {
			if verb == "info" && strings.HasPrefix(c.file, "bad-line") {
				continue // the verb "info" counts bad records instead of failing
			}
			t.Run(verb+" "+c.file, func(t *testing.T) {
				words := strings.Split(c.words, "|")
				if verb == "info" {
					words = words[:1]
				}
				expectExit(t, stackglass(verb, c.file), exitInput, words...)
			})
		}
	}
	expectExit(t, stackglass("convert", "counts", "-o", "out.sgt"), exitInput, "contains measurements")
	expectExit(t, stackglass("multicore", "counts", "--cores", "2", "--cache", "L1=1KiB,2"), exitInput, "contains measurements")
	expectExit(t, stackglass("multicore", "unknown", "--cores", "2", "--cache", "L1=1KiB,2"), exitInput, "unknown format")
	expectExit(t, stackglass("histogram", "counts", "--input-format", "csv"), exitInput, "column named addr")
}

func TestInfoCountsBadRecords(t *testing.T) {
	inFolder(t, map[string]string{"a.din": "0 1000\n7 2000\n1 3000\n"})
	got := stackglass("info", "a.din", "--format", "json")
	expectExit(t, got, exitOK)
	if !strings.Contains(got.stdout, `"bad_records": 1`) || !strings.Contains(got.stdout, "a.din:2") {
		t.Errorf("stdout: %s", got.stdout)
	}
}

func TestSkipBad(t *testing.T) {
	inFolder(t, map[string]string{"a.din": "0 1000\n7 2000\n1 1000\nx\n0 1040\n"})
	expectExit(t, stackglass("curve", "a.din", "--skip-bad", "1"), exitInput, "a.din:4")
	got := stackglass("histogram", "a.din", "--skip-bad", "2", "--format", "csv")
	expectExit(t, got, exitOK, "warning", "2 records could not be read", "a.din:2")
	if want := "distance,count\n0,1\ninf,2\n"; got.stdout != want {
		t.Errorf("stdout = %q, want %q", got.stdout, want)
	}
}

// readProfile reads a profile that a command wrote, and checks that no temporary file remains.
func readProfile(t *testing.T, path string) *profile.Profile {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p, err := profile.Decode(content)
	if err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".*.part"))
	if err != nil || len(left) > 0 {
		t.Errorf("temporary files remain: %v (%v)", left, err)
	}
	return p
}

func TestTruncatedTraceKeepsPartialProfile(t *testing.T) {
	whole := string(tracetest.Packed())
	inFolder(t, map[string]string{"cut.lz4": whole[:len(whole)/2]})
	expectExit(t, stackglass("analyze", "cut.lz4", "-o", "cut.sgp"), exitInput, "truncated")
	p := readProfile(t, "cut.sgp")
	if !p.State.Partial || !strings.Contains(p.State.Reason, "truncated") || p.Totals.AllReferences() == 0 {
		t.Errorf("state %+v after %d references, want a partial profile", p.State, p.Totals.AllReferences())
	}
	// Every answer from the partial profile must contain the warning.
	got := stackglass("curve", "cut.sgp", "--format", "json")
	expectExit(t, got, exitOK)
	var d struct {
		Input    struct{ Complete bool }
		Warnings []string
	}
	if err := json.Unmarshal([]byte(got.stdout), &d); err != nil {
		t.Fatal(err)
	}
	if d.Input.Complete || len(d.Warnings) != 1 {
		t.Errorf("got %+v", d)
	}
}

func TestSameProfileFromAnyInput(t *testing.T) {
	whole := demoBytes(t)
	inFolder(t, map[string]string{"other-name.bin": whole})
	for _, line := range []string{"analyze demo:matmul-naive -o a.sgp", "analyze other-name.bin -o b.sgp", "analyze - -o c.sgp"} {
		expectExit(t, askWith(whole, strings.Fields(line)...), exitOK)
	}
	a, err := os.ReadFile("a.sgp")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"b.sgp", "c.sgp"} {
		if b, err := os.ReadFile(name); err != nil || !bytes.Equal(a, b) {
			t.Errorf("%s differs from a.sgp (%v)", name, err)
		}
	}
	// The answers from the profile must equal the answers from the trace, even if the profile is
	// read from standard input.
	fromTrace := stackglass("curve", "other-name.bin", "--format", "csv")
	fromProfile := askWith(string(a), "curve", "-", "--format", "csv")
	if fromTrace.stdout != fromProfile.stdout || fromTrace.stdout == "" {
		t.Error("the trace and the profile have different curves")
	}
}

func TestProfileKeepsItsOptions(t *testing.T) {
	inFolder(t, nil)
	expectExit(t, stackglass("analyze", "demo:matmul-naive", "-o", "a.sgp"), exitOK)
	expectExit(t, stackglass("curve", "a.sgp", "--kinds", "load"), exitUsage, "--kinds", "is a profile")
	expectExit(t, stackglass("curve", "a.sgp", "--limit", "5"), exitUsage, "--limit")
	expectExit(t, stackglass("curve", "a.sgp", "--line", "128"), exitUsage, "lines of 64 bytes", "--lines")
	expectExit(t, stackglass("curve", "a.sgp", "--line", "48"), exitUsage, "want a power of two", "lines of 64 bytes")
	expectExit(t, stackglass("info", "a.sgp", "--input-format", "din"), exitUsage, "--input-format", "is a profile")
	expectExit(t, stackglass("analyze", "a.sgp", "--lines", "128"), exitUsage, "--lines", "is a profile")
	expectExit(t, stackglass("analyze", "a.sgp", "--line", "128"), exitUsage, "--line", "is a profile")
}

func TestAnalyzeIntoFolder(t *testing.T) {
	inFolder(t, map[string]string{"x.din": "0 1000\n"})
	if err := os.Mkdir("out", 0o755); err != nil {
		t.Fatal(err)
	}
	expectExit(t, stackglass("analyze", "demo:matmul-naive", "x.din", "-o", "out"), exitOK)
	readProfile(t, "out/matmul-naive.sgp")
	readProfile(t, "out/x.sgp")
}

// TestAnalyzeSameNames checks that two profiles with the same path are rejected, because the second
// would overwrite the first.
func TestAnalyzeSameNames(t *testing.T) {
	inFolder(t, map[string]string{"a.din": "0 1\n", "a.din.lackey": " L 1,1\n", "bad.din": "0 1\nx\n"})
	must(os.Mkdir("out", 0o755))
	expectExit(t, stackglass("analyze", "a.din", "a.din.lackey", "-o", "out"), exitUsage, "a.din and a.din.lackey", "out/a.sgp")
	if kept, _ := os.ReadDir("out"); len(kept) != 0 {
		t.Errorf("the folder contains %v, want no files", kept)
	}
	expectExit(t, stackglass("analyze", "bad.din", "a.din", "-o", "out"), exitInput, "bad.din:2", "not analysed", "a.din")
}

func TestNothingAnalysed(t *testing.T) {
	inFolder(t, map[string]string{"a.din": "0 1\n"})
	for _, option := range []string{"--kinds=modify", "--skip=5"} {
		expectExit(t, stackglass("curve", "a.din", option), exitOK, "no references were analysed")
	}
}

func TestThreadsInAnyOrder(t *testing.T) {
	inFolder(t, map[string]string{"a.csv": "addr,tid\n1,1\n2,2\n3,3\n"})
	got := stackglass("analyze", "a.csv", "--threads", "2,1,2", "--format", "json")
	expectExit(t, got, exitOK)
	if !strings.Contains(got.stdout, `"references": 2`) {
		t.Errorf("%s", got.stdout)
	}
}

func TestFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("this system has no /dev/full")
	}
	defer full.Close()
	expectExit(t, stackglass("analyze", "demo:matmul-naive", "-o", "/dev/full"), exitExhausted, "/dev/full: no space left", "free some space")
	expectExit(t, stackglass("demo", "matmul-naive", "-o", "/dev/full"), exitExhausted, "free some space")
	expectExit(t, stackglass("curve", "demo:matmul-naive", "--svg", "/dev/full"), exitExhausted, "free some space")
	var stderr strings.Builder
	code := run(context.Background(), []string{"histogram", "demo:array-list", "--format", "csv"}, nil, full, &stderr)
	expectExit(t, answer{"", stderr.String(), code}, exitExhausted, "standard output")
}

func TestImpossibleOutputPath(t *testing.T) {
	inFolder(t, nil)
	expectExit(t, stackglass("analyze", "demo:matmul-naive", "-o", "no/such/folder.sgp"), exitUsage, "the folder no/such does not exist; create it first")
	expectExit(t, stackglass("analyze", "demo:matmul-naive", "-o", "nodir/"), exitUsage, "the folder nodir does not exist")
	expectExit(t, stackglass("curve", "demo:matmul-naive", "--svg", "nodir/c.svg"), exitUsage, "the folder nodir does not exist")
}

// TestPartialProfileDoesNotReplaceComplete checks that a partial profile does not replace a
// complete profile.
func TestPartialProfileDoesNotReplaceComplete(t *testing.T) {
	content := string(tracetest.Packed())
	inFolder(t, map[string]string{"cut.lz4": content[:len(content)/2], "other.sgp": "no profile"})
	expectExit(t, stackglass("analyze", "demo:matmul-naive", "-o", "a.sgp"), exitOK)
	before := readProfile(t, "a.sgp")
	for range 2 { // the second partial profile replaces the first
		got := stackglass("analyze", "cut.lz4", "-o", "a.sgp")
		expectExit(t, got, exitInput, "a.sgp is a complete profile", "is in a.partial.sgp", "truncated")
		if !strings.Contains(got.stdout, "written to") || !strings.Contains(got.stdout, "a.partial.sgp") {
			t.Errorf("stdout: %s", got.stdout)
		}
	}
	if after := readProfile(t, "a.sgp"); after.Digest() != before.Digest() || after.State.Partial {
		t.Errorf("a.sgp has changed, or is partial: %+v", after.State)
	}
	if !readProfile(t, "a.partial.sgp").State.Partial {
		t.Error("a.partial.sgp is marked as complete, want partial")
	}
	expectExit(t, stackglass("analyze", "cut.lz4", "-o", "other.sgp"), exitInput, "truncated")
	readProfile(t, "other.sgp")
	expectExit(t, stackglass("analyze", "demo:matmul-naive", "-o", "a.partial.sgp"), exitOK)
	if readProfile(t, "a.partial.sgp").State.Partial {
		t.Error("a complete profile did not replace a partial one")
	}
}

// blockingReader returns its text and then blocks until it is closed, like a pipe from a program
// that is still running.
type blockingReader struct {
	text   io.Reader
	waits  chan struct{} // closed when the whole text was read
	closed chan struct{}
}

func (s *blockingReader) Read(p []byte) (int, error) {
	n, err := s.text.Read(p)
	if err != io.EOF {
		return n, err
	}
	close(s.waits)
	<-s.closed
	return 0, errors.New("closed")
}

func TestInterruptKeepsPartialProfile(t *testing.T) {
	inFolder(t, nil)
	content := strings.Repeat("0 1000\n1 2000\n", 100_000)
	stdin := &blockingReader{text: strings.NewReader(content), waits: make(chan struct{}), closed: make(chan struct{})}
	defer close(stdin.closed)
	ctx, interrupt := context.WithCancel(context.Background())
	go func() {
		<-stdin.waits
		// Wait until the pass has begun. The number of references that have been read does not
		// matter.
		time.Sleep(100 * time.Millisecond)
		interrupt()
	}()
	var stdout, stderr strings.Builder
	code := run(ctx, []string{"analyze", "-", "-o", "a.sgp"}, stdin, &stdout, &stderr)
	expectExit(t, answer{stdout.String(), stderr.String(), code}, exitInterrupted, "interrupted")
	p := readProfile(t, "a.sgp")
	if !p.State.Partial || !strings.Contains(p.State.Reason, "stopped by the user after") {
		t.Errorf("state %+v", p.State)
	}
}

func TestInterruptBySignal(t *testing.T) {
	inFolder(t, nil)
	stdin := &blockingReader{text: strings.NewReader("0 1000\n"), waits: make(chan struct{}), closed: make(chan struct{})}
	defer close(stdin.closed)
	go func() {
		<-stdin.waits
		if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
			t.Error(err)
		}
	}()
	var stdout, stderr strings.Builder
	if code := Main([]string{"curve", "-"}, stdin, &stdout, &stderr); code != exitInterrupted {
		t.Errorf("exit %d: %s", code, stderr.String())
	}
}

func TestMemoryLimitKeepsPartialProfile(t *testing.T) {
	inFolder(t, nil)
	expectExit(t, stackglass("analyze", "demo:matmul-naive", "-o", "a.sgp", "--memory", "1KiB"), exitExhausted, "memory", "--memory")
	if p := readProfile(t, "a.sgp"); !p.State.Partial {
		t.Errorf("state %+v", p.State)
	}
}

func TestCharts(t *testing.T) {
	inFolder(t, nil)
	expectExit(t, stackglass("curve", "demo:matmul-naive", "--svg", "c.svg", "--png", "c.png"), exitOK)
	expectExit(t, stackglass("histogram", "demo:matmul-naive", "--svg", "h.svg", "--png", "h.png"), exitOK)
	for name, begin := range map[string]string{"c.svg": "<?xml", "h.svg": "<?xml", "c.png": "\x89PNG", "h.png": "\x89PNG"} {
		content, err := os.ReadFile(name)
		if err != nil || !bytes.HasPrefix(content, []byte(begin)) {
			t.Errorf("%s begins with %.8q (%v), want the header of its format", name, content, err)
		}
	}
	svg, err := os.ReadFile("c.svg")
	if err != nil {
		t.Fatal(err)
	}
	for _, words := range []string{"Miss-ratio curve of demo:matmul-naive", "capacity", "1 KiB"} {
		if !bytes.Contains(svg, []byte(words)) {
			t.Errorf("c.svg does not contain %q", words)
		}
	}
}

func TestDemoIsWrittenUnchanged(t *testing.T) {
	inFolder(t, nil)
	expectExit(t, stackglass("demo", "matmul-naive", "-o", "a.sgt"), exitOK)
	if content, err := os.ReadFile("a.sgt"); err != nil || string(content) != demoBytes(t) {
		t.Errorf("the written demo differs from the embedded demo (%v)", err)
	}
	if got := stackglass("demo", "matmul-naive", "-o", "-"); got.stdout != demoBytes(t) {
		t.Error("the printed demo differs from the embedded demo")
	}
}

func TestDemoSource(t *testing.T) {
	inFolder(t, nil)
	printed := stackglass("demo", "matmul-naive", "--source")
	expectExit(t, printed, exitOK)
	expectExit(t, stackglass("demo", "matmul-naive", "--source", "-o", "a.c"), exitOK)
	if kept, err := os.ReadFile("a.c"); err != nil || string(kept) != printed.stdout || printed.stdout == "" {
		t.Errorf("a.c differs from the printed source: %v", err)
	}
	expectExit(t, stackglass("demo", "-o", "x"), exitUsage, "name one of", "matmul-naive")
	expectExit(t, stackglass("demo", "--source"), exitUsage, "name one of")
}

func TestHierarchyFile(t *testing.T) {
	inFolder(t, map[string]string{"mine": "# two levels\nL1=2KiB,full\n\nL2=8KiB,full\n", "none": "# nothing\n"})
	fromFile := stackglass("what-if", "demo:matmul-naive", "--hierarchy", "mine", "--format", "csv")
	fromFlags := stackglass("what-if", "demo:matmul-naive", "--cache", "L1=2KiB,full", "--cache", "L2=8KiB,full", "--format", "csv")
	if fromFile.code != 0 || fromFile != fromFlags {
		t.Errorf("the answer for a hierarchy file is %v, want %v, the answer for the same caches as options", fromFile, fromFlags)
	}
	expectExit(t, stackglass("what-if", "demo:matmul-naive", "--hierarchy", "none"), exitUsage, "none")
	for _, name := range presetNames() {
		if got := stackglass("what-if", "demo:matmul-naive", "--hierarchy", name); got.code != exitOK {
			t.Errorf("preset %s: %v", name, got)
		}
	}
}

func TestBudgetOperators(t *testing.T) {
	for text, broken := range map[string]bool{
		"L1.misses>33920": false, "L1.misses>=33920": true, "L1.misses<33920": false, "L1.misses<=33920": true,
		"L1.miss_ratio>0.5": true, "L1.hits > 4e4": false, "memory.accesses>1e3": true, "L1.accesses<66561": true,
	} {
		want := exitOK
		if broken {
			want = exitBudget
		}
		if got := stackglass("what-if", "demo:matmul-naive", "--cache", "L1=2KiB,full", "--fail-if", text); got.code != want {
			t.Errorf("--fail-if %s: exit code %d, want %d: %s", text, got.code, want, got.stderr)
		}
	}
}

func TestBudgetShowsEnoughDigits(t *testing.T) {
	for _, c := range []struct {
		ops          string
		bound, value float64
		want         string
	}{
		{">", 0.01, 0.023590557141598266, "0.02359"},
		{">", 0.02359, 0.023590557141598266, "0.023591"},
		{">", 4000, 4424.22, "4424"},
		{">", 4424, 4424.22, "4424.2"},
		{">", 33919, 33920, "33920"},
		{">=", 0.5, 0.5, "0.5"},
		{"<", 1, 1e-9, "0"},
		{">", 0, 1e-9, "0.000000001"},
	} {
		b := budget{ops: c.ops, bound: c.bound}
		if got := b.format(c.value); got != c.want {
			t.Errorf("the condition %v %s %v shows the value as %s, want %s", c.value, c.ops, c.bound, got, c.want)
		}
	}
}

func TestMergeableProfiles(t *testing.T) {
	inFolder(t, nil)
	expectExit(t, stackglass("analyze", "demo:matmul-naive", "-o", "plain.sgp", "--analyses", "default"), exitOK)
	expectExit(t, stackglass("analyze", "demo:matmul-naive", "-o", "more.sgp", "--mergeable"), exitOK)
	plain, more := readProfile(t, "plain.sgp"), readProfile(t, "more.sgp")
	if plain.Segment != nil || more.Segment == nil {
		t.Errorf("the profile has a segment: %v without --mergeable, want false; %v with --mergeable, want true", plain.Segment != nil, more.Segment != nil)
	}
	if plain.Digest() != more.Digest() {
		t.Error("--mergeable changes the digest")
	}
	if got := stackglass("info", "more.sgp", "--format", "json"); !strings.Contains(got.stdout, `"mergeable": true`) || !strings.Contains(got.stdout, `"type": "profile"`) {
		t.Errorf("info prints %s, want a mergeable profile", got.stdout)
	}
}

// TestServe checks that a running server answers requests for the page, and that it ends when it is
// interrupted.
func TestServe(t *testing.T) {
	if _, err := site.Dist(); err != nil {
		t.Skip("skipped:", err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	said, stdout := io.Pipe()
	ended := make(chan int)
	go func() {
		ended <- run(ctx, []string{"serve", "--http", "127.0.0.1:0", "--no-browser"}, nil, stdout, io.Discard)
	}()
	line, err := bufio.NewReader(said).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(line, "http://")
	address, _, _ := strings.Cut(rest, " ")
	answer, err := http.Get("http://" + address)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	page, err := io.ReadAll(answer.Body)
	if err != nil || !bytes.Contains(page, []byte("<title>stackglass</title>")) {
		t.Errorf("the page is not served (%v)", err)
	}
	if got := answer.Header.Get("Content-Security-Policy"); got != policy.Content {
		t.Errorf("policy %q", got)
	}
	interrupt()
	if code := <-ended; code != exitOK {
		t.Errorf("exit %d", code)
	}
}

func TestServeUsesFreePort(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	address := taken.Addr().String()
	if _, err := listen(address, false); exitCode(err) != exitUsage || !strings.Contains(err.Error(), "another program") {
		t.Errorf("listen on an explicit port that is in use: %v, want a usage error", err)
	}
	other, err := listen(address, true)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if other.Addr().String() == address {
		t.Error("the server listens on a port that is in use")
	}
}

func TestCompletionAndVersion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if got := stackglass("completion", shell); got.code != exitOK || !strings.Contains(got.stdout, "stackglass") {
			t.Errorf("%s: %v", shell, got)
		}
	}
	if got := stackglass("version"); got.stdout != "stackglass "+Version+"\n" {
		t.Errorf("version: %v", got)
	}
}

// TestUnlistedVerb checks that the help lists a verb that is in no group.
func TestUnlistedVerb(t *testing.T) {
	root := (&app{}).root()
	root.AddCommand(&cobra.Command{Use: "banks", Short: "print the banks", Run: func(*cobra.Command, []string) {}})
	_, other, found := strings.Cut(verbList(root, usualWidth), "\nOther:\n")
	if !found || !strings.Contains(other, "  banks          print the banks\n") {
		t.Errorf("the help does not list the verb in the last group: %q", other)
	}
}

// TestManualPageIsComplete checks that the roff manual page lists every verb and every option, and
// that the man program reads it without a warning.
func TestManualPageIsComplete(t *testing.T) {
	page := stackglass("man").stdout
	root := (&app{}).root()
	for _, g := range groupsOf(root) {
		for _, name := range g.verbs {
			if !strings.Contains(page, "\n.SS \""+escapeRoff(name)+"\"\n") {
				t.Errorf("the manual page does not contain the verb %s", name)
			}
			verb, _, _ := root.Find([]string{name})
			verb.LocalFlags().VisitAll(func(f *pflag.Flag) {
				if !f.Hidden && f.Name != "help" && !strings.Contains(page, escapeRoff("--"+f.Name)) {
					t.Errorf("the manual page does not contain the option --%s of %s", f.Name, name)
				}
			})
		}
	}
	if _, err := exec.LookPath("groff"); err != nil {
		t.Skip("skipped reading the manual page: groff is not installed")
	}
	groff := exec.Command("groff", "-man", "-Tutf8", "-Kutf8", "-ww", "-z")
	groff.Stdin = strings.NewReader(page)
	if said, err := groff.CombinedOutput(); err != nil || len(said) > 0 {
		t.Errorf("groff: %v\n%s", err, said)
	}
}

// TestSkippedPackets checks that every format reports how many gem5 packets are not references.
func TestSkippedPackets(t *testing.T) {
	const header, read, response, writeback = "\x05\x0a\x01x\x18\x01", "\x08\x08\x05\x10\x01\x18\x40\x20\x08", "\x08\x08\x05\x10\x02\x18\x40\x20\x08", "\x08\x08\x05\x10\x07\x18\x40\x20\x08"
	inFolder(t, map[string]string{"a.trc": "gem5" + header + read + response + writeback + response})
	const want = "3 packets that are not demand requests: 2 ReadResp, 1 WritebackDirty"
	for _, line := range []string{"info a.trc", "info a.trc --format json", "analyze a.trc", "analyze a.trc --format json", "simulate a.trc --cache L1=1KiB,2"} {
		if got := stackglass(words(line)...); got.code != exitOK || !strings.Contains(got.stdout+got.stderr, want) {
			t.Errorf("%s: %s", line, got)
		}
	}
}
