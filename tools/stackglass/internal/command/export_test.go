package command

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"html"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/export"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

func init() {
	goldenCommands = append(goldenCommands,
		"export demo:matmul-naive --to csv --table curve_64",
		"export demo:matmul-naive --to callgrind --cache L1=2KiB,full",
		"export demo:matmul-blocked --to folded --cache L1=2KiB,full",
		"export demo:array-list --to csv --table objects --cache L1=2KiB,full",
		"export demo:matmul-blocked --to csv --table levels --cache L1=2KiB,full --cache L2=8KiB,full",
	)
}

// TestExportedTables checks that the folder of CSV files and the JSON object contain the same
// tables as the verbs.
func TestExportedTables(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "tables")
	caches := " --cache L1=2KiB,full --cache L2=8KiB,8"
	if got := stackglass(words("export demo:matmul-naive --to csv --lines 32,64 -o " + folder + caches)...); got.code != 0 || got.stdout != "" {
		t.Fatal(got)
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal([]byte(stackglass(words("export demo:matmul-naive --to json --lines 32,64"+caches)...).stdout), &all); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		name, isTable := strings.CutSuffix(f.Name(), ".csv")
		if _, there := all[name]; !there || !isTable {
			t.Errorf("%s is not a table of the JSON export", f.Name())
		}
	}
	if len(files)+2 != len(all) { // "schema" and "warnings" are not tables
		t.Errorf("%d CSV files and %d JSON keys, want 2 more keys than files", len(files), len(all))
	}
	for file, verb := range map[string]string{
		"histogram_32": "histogram demo:matmul-naive --line 32", "levels": "what-if demo:matmul-naive" + caches,
	} {
		content, err := os.ReadFile(filepath.Join(folder, file+".csv"))
		if err != nil {
			t.Fatal(err)
		}
		if want := stackglass(words(verb + " --format csv")...).stdout; string(content) != want {
			t.Errorf("%s.csv:\n%swant, of %s:\n%s", file, content, verb, want)
		}
	}
}

func TestExportedReport(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.html")
	line := "export demo:matmul-naive --to html --cache L1=2KiB,full --cache L2=8KiB,8"
	if got := stackglass(words(line + " -o " + path)...); got.code != 0 || got.stdout != "" || !strings.Contains(got.stderr, "warning") {
		t.Fatal(got)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if piped := stackglass(words(line)...); piped.stdout != string(content) {
		t.Error("the report on standard output differs from the file")
	}
	for _, want := range []string{
		"<h1>demo:matmul-naive</h1>", "33,920", "L2, 8 KiB: 6.54 %", "every level is predicted as if it saw all accesses", "Instruction mix", "Source lines", "<td>matmul-naive.c</td>", "by sets and ways", "</html>",
	} {
		if !strings.Contains(string(content), want) {
			t.Errorf("the report does not contain %q", want)
		}
	}
}

// TestExportsCoverEveryVerb checks every verb for which the profile has data. The report must
// contain the verb's answer, and the JSON object and the folder of CSV files must contain its
// tables.
func TestExportsCoverEveryVerb(t *testing.T) {
	_, h, err := pagedOptions(pagedHierarchies[0])
	if err != nil {
		t.Fatal(err)
	}
	lined := func(table report.Table) string {
		table.Key, table.Title = "rows", ""
		return string((&report.Document{Tables: []report.Table{table}}).JSON())
	}
	answered := map[string]bool{}
	for _, file := range []string{"demo:matmul-naive", "demo:false-sharing", "demo:openmp-alone"} {
		p := openPaged(t, file, []hierarchy.Hierarchy{h})
		run := ask.NewRun(p.file, p.view.Profile)
		x, err := export.New(run, p.file, h)
		if err != nil {
			t.Fatal(err)
		}
		page := string(x.HTML())
		tables, _ := x.Tables()
		have := map[string]bool{}
		for _, table := range tables {
			have[lined(table)] = true
		}
		for _, v := range ask.Verbs() {
			if v.Missing(p.view.Profile) != "" {
				continue
			}
			q := ask.New(v)
			if v.Machine != ask.NoCaches {
				q.Machine = h
			}
			questions := []ask.Question{q}
			if by := v.Arg("by"); by != nil {
				for _, word := range by.Words {
					questions = append(questions, q.With("by", word))
				}
			}
			for _, q := range questions {
				d, err := run.Answer(q)
				if err != nil {
					continue
				}
				rows, missing := 0, 0
				for _, table := range d.Tables {
					if rows += len(table.Rows); len(table.Rows) > 0 && !have[lined(table)] {
						missing++
					}
				}
				answered[v.Name] = answered[v.Name] || rows > 0 && missing == 0
			}
			title := v.Title
			if own := sectionTitles[v.Name]; own != "" {
				title = own
			}
			if !strings.Contains(page, "<h2>"+html.EscapeString(title)) {
				t.Errorf("%s: the report has no section %q", file, title)
			}
		}
	}
	for _, v := range ask.Verbs() {
		// the verbs "multicore" and "simulate" need a trace, and the verb "measured" needs measurements
		if v.Name != "multicore" && v.Name != "simulate" && v.Name != "measured" && !answered[v.Name] {
			t.Errorf("the exports contain no table of %s", v.Name)
		}
	}
}

// sectionTitles contains the titles of report sections that differ from the title of their verb.
var sectionTitles = map[string]string{
	"histogram": "Reuse of 64-byte lines", "curve": "Reuse of 64-byte lines", "windows": "Reuse of 64-byte lines",
	"sets": "Caches", "what-if": "Caches", "sites": "Code and data", "counters": "Counters",
}

// exportedSites returns the counts that the verb "sites" prints, for each source line and event.
func exportedSites(t *testing.T, file, caches string, events []string) map[string][]float64 {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(stackglass(words("sites " + file + " --by line --format csv " + caches)...).stdout)).ReadAll()
	if err != nil || len(rows) < 2 {
		t.Fatal(err, len(rows))
	}
	found := map[string][]float64{}
	for _, row := range rows[1:] {
		cell := func(key string) string { return row[slices.Index(rows[0], key)] }
		for _, event := range events {
			n, _ := strconv.ParseFloat(cell(event), 64) // an empty cell counts as 0
			found[cell("file")+":"+cell("line")] = append(found[cell("file")+":"+cell("line")], n)
		}
	}
	return found
}

const exportedCaches = "--cache L1=2KiB,8 --cache L2=8KiB,full"

var exportedEvents = []string{"accesses", "references", "L1_misses", "L2_misses", "cold"}

// keptProfile writes a demo's profile, so that all verbs use the same analysis, and returns the
// path of the profile.
func keptProfile(t *testing.T, demo string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), demo+".sgp")
	if got := stackglass("analyze", "demo:"+demo, "-o", path); got.code != 0 {
		t.Fatal(got)
	}
	return path
}

// runReader runs a tool on an export and returns its output. If the tool is not installed, the test
// is skipped.
func runReader(t *testing.T, file, form string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath(args[0]); err != nil {
		t.Skipf("%s, which reads the export back, is not installed", args[0])
	}
	path := filepath.Join(t.TempDir(), "exported."+form+".gz")
	if form == "callgrind" {
		path = strings.TrimSuffix(path, ".gz")
	}
	if got := stackglass(words("export " + file + " --to " + form + " " + exportedCaches + " -o " + path)...); got.code != 0 {
		t.Fatal(got)
	}
	cmd := exec.Command(args[0], append(args[1:], path)...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s%s", args, err, out, said.Bytes())
	}
	return string(out)
}

// sameCounts checks that a tool's counts equal the counts that the verb "sites" prints. Because of
// rounding, the count of a source line may differ by one for each site in the line.
func sameCounts(t *testing.T, of string, got map[string][]float64, want map[string][]float64) {
	t.Helper()
	for place, counts := range want {
		for i := range counts {
			have := 0.0
			if i < len(got[place]) {
				have = got[place][i]
			}
			if off := have - counts[i]; off > 3 || off < -3 || counts[i] == math.Trunc(counts[i]) && i != 2 && off != 0 {
				t.Errorf("%s: %s of line %s = %v, want %v", of, exportedEvents[i], place, have, counts[i])
			}
		}
	}
	if len(got) != len(want) {
		t.Errorf("%s: %d source lines, want %d: %v", of, len(got), len(want), got)
	}
}

// TestPprofEqualsSites checks that "go tool pprof" and the verb "sites" print the same counts for
// every line and event.
func TestPprofEqualsSites(t *testing.T) {
	for _, demo := range []string{"matmul-naive", "array-list"} {
		file := keptProfile(t, demo)
		raw := runReader(t, file, "pprof", "go", "tool", "pprof", "-raw")
		_, samples, _ := strings.Cut(raw, "instructions/count\n")
		samples, locations, _ := strings.Cut(samples, "Locations\n")
		places := map[string]string{}
		for line := range strings.Lines(locations) {
			if at := regexp.MustCompile(`^ +(\d+): 0x\S+ .* (\S*):(\d+):\d+ s=0`).FindStringSubmatch(line); at != nil {
				places[at[1]] = at[2] + ":" + at[3]
				if at[3] == "0" {
					places[at[1]] = at[2] + ":"
				}
			}
		}
		got := map[string][]float64{}
		for line := range strings.Lines(samples) {
			numbers, location, isSample := strings.Cut(line, ": ")
			if !isSample {
				continue
			}
			if counts := strings.Fields(numbers); slices.ContainsFunc(counts[:len(exportedEvents)], func(n string) bool { return n != "0" }) { // the other samples count only instructions
				addCounts(got, places[strings.Fields(location)[0]], counts)
			}
		}
		sameCounts(t, demo, got, exportedSites(t, file, exportedCaches, exportedEvents))
	}
}

// addCounts adds one number for each event to the counts of a source location.
func addCounts(to map[string][]float64, place string, numbers []string) {
	if to[place] == nil {
		to[place] = make([]float64, len(exportedEvents))
	}
	for i := range exportedEvents {
		n, _ := strconv.ParseFloat(strings.ReplaceAll(numbers[i], ",", ""), 64)
		to[place][i] += n
	}
}

// TestCallgrindEqualsSites checks that callgrind_annotate, which groups the totals by function,
// prints the same counts as the verb "sites".
func TestCallgrindEqualsSites(t *testing.T) {
	file := keptProfile(t, "array-list")
	text := runReader(t, file, "callgrind", "callgrind_annotate", "--threshold=100", "--auto=no", "--show-percs=no")
	got, want := map[string][]float64{}, map[string][]float64{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if n := len(exportedEvents) + 2; len(fields) > n && strings.Contains(fields[n], ":") && fields[0] != "Accesses" {
			addCounts(got, "all", fields[:n])
		}
	}
	for _, counts := range exportedSites(t, file, exportedCaches, exportedEvents) {
		var numbers []string
		for _, n := range counts {
			numbers = append(numbers, strconv.FormatFloat(n, 'f', -1, 64))
		}
		addCounts(want, "all", numbers)
	}
	sameCounts(t, "array-list", got, want)
}

// TestFoldedAddsUpToWhatIf checks that the misses of all stacks add up to the misses of the run.
func TestFoldedAddsUpToWhatIf(t *testing.T) {
	levels := csvColumn(t, words("what-if demo:array-list --format csv "+exportedCaches), "name", "misses", nil)
	for _, level := range []string{"L1", "L2"} {
		sum := 0
		for line := range strings.Lines(stackglass(words("export demo:array-list --to folded --event " + level + "_misses " + exportedCaches)...).stdout) {
			n, err := strconv.Atoi(strings.TrimSpace(line[strings.LastIndexByte(line, ' '):]))
			if err != nil {
				t.Fatal(line, err)
			}
			sum += n
		}
		if want, err := strconv.ParseFloat(levels[level], 64); err != nil || float64(sum) != math.Round(want) {
			t.Errorf("%s: the misses of all stacks add up to %d, want %v (%v)", level, sum, want, err)
		}
	}
}

func TestExportCompresses(t *testing.T) {
	folder := t.TempDir()
	plain, packed := filepath.Join(folder, "a.json"), filepath.Join(folder, "a.json.gz")
	for _, path := range []string{plain, packed} {
		if got := stackglass("export", "demo:array-list", "--to", "json", "-o", path); got.code != 0 {
			t.Fatal(got)
		}
	}
	want, err := os.ReadFile(plain)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(packed)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(z); err != nil || string(got) != string(want) {
		t.Errorf("the decompressed export has %d bytes (%v), want %d equal bytes", len(got), err, len(want))
	}
}

func TestExportUsageErrors(t *testing.T) {
	folder := t.TempDir()
	kept := filepath.Join(folder, "kept.sgp")
	if got := stackglass("analyze", "demo:array-list", "-o", kept); got.code != 0 {
		t.Fatal(got)
	}
	for line, want := range map[string]string{
		"export":                                                                         "give a trace or a profile",
		"export demo:array-list":                                                         `--to "", want one of html, `,
		"export demo:array-list --to pdf":                                                `--to "pdf", want one of html, `,
		"export demo:array-list --to csv":                                                "give a folder for all tables",
		"export demo:array-list --to csv --table x":                                      "--table x: demo:array-list has the tables diagnose_verdict",
		"export demo:array-list --to csv --table levels":                                 "with --cache or --hierarchy, it also has levels",
		"export demo:array-list --to json --table x":                                     "--table applies only to --to csv",
		"export demo:array-list --to html --event x":                                     "--event applies only to --to folded",
		"export demo:array-list --to folded --event x":                                   "want one of accesses, references, L1_misses, cold, distance_sum",
		"export ../../../../core/trace/tracetest/testdata/small.din --to pprof":          "contains no source locations",
		"export demo:array-list --to html --format csv":                                  "use --to to select the form of the export",
		"export demo:array-list --to html --cache L1=7KiB,5":                             "divides",
		"export " + kept + " --to html -o " + kept:                                       "is the input file itself",
		"export " + kept + " --to html --lines 32":                                       "is a profile",
		"export " + kept + " --to html --cache L1=2KiB,8,32":                             "a line size of the profile",
		"export demo:array-list --to html -o " + filepath.Join(folder, "none", "a.html"): "does not exist",
	} {
		if got := stackglass(words(line)...); got.code != exitUsage || got.stdout != "" || !strings.Contains(got.stderr, want) {
			t.Errorf("%s: want %q and exit code 2, got %v", line, want, got)
		}
	}
}

// TestPartialExportDoesNotReplaceComplete checks that the partial export of a pass that ends early
// does not replace a complete export.
func TestPartialExportDoesNotReplaceComplete(t *testing.T) {
	content := string(tracetest.Packed())
	inFolder(t, map[string]string{"cut.lz4": content[:len(content)/2], "a.html": "whole", "a.json.gz": "whole"})
	for to, names := range map[string][2]string{"html": {"a.html", "a.partial.html"}, "json": {"a.json.gz", "a.partial.json.gz"}} {
		expectExit(t, stackglass("export", "cut.lz4", "--to", to, "-o", names[0]), exitInput, names[0]+" already existed and was not changed", "is in "+names[1], "truncated")
		if kept, err := os.ReadFile(names[0]); err != nil || string(kept) != "whole" {
			t.Errorf("%s now contains %q, %v", names[0], kept, err)
		}
		if part, err := os.ReadFile(names[1]); err != nil || len(part) == 0 {
			t.Errorf("%s: %v", names[1], err)
		}
	}
	expectExit(t, stackglass("export", "cut.lz4", "--to", "html", "-o", "new.html"), exitInput, "truncated")
	if _, err := os.Stat("new.html"); err != nil {
		t.Error(err)
	}
}

// TestFolderOfOneExport checks that a folder contains the tables and the description of only one
// export.
func TestFolderOfOneExport(t *testing.T) {
	content := string(tracetest.Packed())
	inFolder(t, map[string]string{"cut.lz4": content[:len(content)/2]})
	expectExit(t, stackglass(words("export demo:array-list --to csv --lines 32,64 --cache L1=2KiB,8 -o tables")...), exitOK)
	if err := os.WriteFile(filepath.Join("tables", "notes.csv"), []byte("mine"), 0o666); err != nil {
		t.Fatal(err)
	}
	expectExit(t, stackglass(words("export cut.lz4 --to csv -o tables")...), exitInput, "tables already existed", "is in tables.partial")
	about, err := os.ReadFile(filepath.Join("tables.partial", "input.csv"))
	if err != nil || !strings.Contains(string(about), "\ncomplete,false\n") {
		t.Errorf("%v: the tables of a partial profile are not marked as such:\n%s", err, about)
	}
	expectExit(t, stackglass(words("export demo:matmul-naive --to csv -o tables")...), exitOK)
	for name, want := range map[string]bool{"curve_64.csv": true, "notes.csv": true, "curve_32.csv": false, "levels.csv": false, "objects.csv": false} {
		if _, err := os.Stat(filepath.Join("tables", name)); (err == nil) != want {
			t.Errorf("%s: %v, want the file to exist: %v", name, err, want)
		}
	}
	if about, err = os.ReadFile(filepath.Join("tables", "input.csv")); err != nil || !strings.Contains(string(about), "file,demo:matmul-naive\n") {
		t.Errorf("%v: %s", err, about)
	}
	inFolder(t, map[string]string{"input.csv": "a,b\n1,2\n"})
	expectExit(t, stackglass(words("export demo:matmul-naive --to csv -o .")...), exitUsage, "not written by an export")
}
