package command

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func init() {
	golden = append(golden,
		"export demo:matmul-naive --to csv --table curve_64",
		"export demo:matmul-blocked --to csv --table levels --cache L1=2KiB,full --cache L2=8KiB,full",
	)
}

// TestExportedTables: the folder of CSV files and the JSON object hold the same
// tables, and each says what the verb says that it is from.
func TestExportedTables(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "tables")
	caches := " --cache L1=2KiB,full --cache L2=8KiB,8"
	if got := ask(words("export demo:matmul-naive --to csv --lines 32,64 -o " + folder + caches)...); got.code != 0 || got.stdout != "" {
		t.Fatal(got)
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal([]byte(ask(words("export demo:matmul-naive --to json --lines 32,64"+caches)...).stdout), &all); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		name, isTable := strings.CutSuffix(f.Name(), ".csv")
		if _, there := all[name]; !there || !isTable {
			t.Errorf("%s is no table of the JSON export", f.Name())
		}
	}
	if len(files)+3 != len(all) { // schema, input and warnings are no tables
		t.Errorf("%d files, and JSON has %d keys", len(files), len(all))
	}
	for file, verb := range map[string]string{
		"histogram_32": "histogram demo:matmul-naive --line 32", "levels": "what-if demo:matmul-naive" + caches,
	} {
		content, err := os.ReadFile(filepath.Join(folder, file+".csv"))
		if err != nil {
			t.Fatal(err)
		}
		if want := ask(words(verb + " --format csv")...).stdout; string(content) != want {
			t.Errorf("%s.csv:\n%swant, of %s:\n%s", file, content, verb, want)
		}
	}
}

func TestExportedReport(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.html")
	line := "export demo:matmul-naive --to html --cache L1=2KiB,full --cache L2=8KiB,8"
	if got := ask(words(line + " -o " + path)...); got.code != 0 || got.stdout != "" || !strings.Contains(got.stderr, "warning") {
		t.Fatal(got)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if piped := ask(words(line)...); piped.stdout != string(content) {
		t.Error("standard output gets another report than a file")
	}
	for _, want := range []string{
		"<h1>demo:matmul-naive</h1>", "33,920", "L2, 8 KiB: 6.54 %", "every level is asked about all accesses", "Instruction mix", "</html>",
	} {
		if !strings.Contains(string(content), want) {
			t.Errorf("no %q in the report", want)
		}
	}
}

func TestExportPacks(t *testing.T) {
	folder := t.TempDir()
	plain, packed := filepath.Join(folder, "a.json"), filepath.Join(folder, "a.json.gz")
	for _, path := range []string{plain, packed} {
		if got := ask("export", "demo:array-list", "--to", "json", "-o", path); got.code != 0 {
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
		t.Errorf("unpacked: %d bytes, %v, want %d", len(got), err, len(want))
	}
}

func TestExportRefuses(t *testing.T) {
	folder := t.TempDir()
	kept := filepath.Join(folder, "kept.sgp")
	if got := ask("analyze", "demo:array-list", "-o", kept); got.code != 0 {
		t.Fatal(got)
	}
	for line, want := range map[string]string{
		"export":                                                                         "give a trace or a profile",
		"export demo:array-list":                                                         `--to "", want html, `,
		"export demo:array-list --to pdf":                                                `--to "pdf", want html, `,
		"export demo:array-list --to csv":                                                "give a folder for all of them",
		"export demo:array-list --to csv --table x":                                      "--table x: demo:array-list gives locality",
		"export demo:array-list --to json --table x":                                     "--table is for --to csv",
		"export demo:array-list --to html --event x":                                     "--event is for --to folded",
		"export demo:array-list --to html --format csv":                                  "--to says what to export",
		"export demo:array-list --to html --cache L1=7KiB,5":                             "divides",
		"export " + kept + " --to html -o " + kept:                                       "is the file itself",
		"export " + kept + " --to html --lines 32":                                       "is a profile",
		"export " + kept + " --to html --cache L1=2KiB,8,32":                             "a line size that the profile has",
		"export demo:array-list --to html -o " + filepath.Join(folder, "none", "a.html"): "does not exist",
	} {
		if got := ask(words(line)...); got.code != exitUsage || got.stdout != "" || !strings.Contains(got.stderr, want) {
			t.Errorf("%s: want %q and exit 2, got %v", line, want, got)
		}
	}
}
