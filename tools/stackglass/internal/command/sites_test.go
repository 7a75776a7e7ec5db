package command

import (
	"debug/elf"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/ask/program"
	"github.com/stackglass/stackglass/core/attribution"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/tools/internal/symbols"
)

func TestSitesMessages(t *testing.T) {
	dir := t.TempDir()
	none := filepath.Join(dir, "none.sgp")
	if err := os.WriteFile(none, multiplyProfile(t, analysis.Spec{Analyses: analysis.Locality}).Encode(), 0o644); err != nil {
		t.Fatal(err)
	}
	din := filepath.Join(dir, "a.din")
	if err := os.WriteFile(din, []byte("0 1000\n1 1040\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		line string
		code int
		says string
	}{
		{"sites " + din, 2, `the trace contains neither sites nor instruction addresses, so there is nothing to rank; compile the program with "stackglass cc -- clang …"`},
		{"sites " + none, 2, "the profile contains no sites; analyze the trace again with --analyses sites"},
		{"sites --utilisation 32KiB " + none, 2, "is a profile; give the trace"},
		{"sites demo:matmul-naive --by module", 2, "want one of site, line, function, object"},
		{"sites demo:matmul-naive --share 0", 2, "want a share of the misses, for example 90% or 0.9"},
		{"sites demo:matmul-naive --top -1", 2, "want a whole number"},
		{"sites demo:matmul-naive --sort speed", 2, "want one of function, file, line"},
		{"sites demo:matmul-naive --source " + dir + "/src", 2, "no such file or directory; give a folder or a file"},
		{"sites demo:matmul-naive --source " + dir, 0, "not found in --source: matmul-naive.c"},
		{"sites demo:matmul-naive --symbols " + din, 2, "give the ELF file of the program or library that was traced"},
		{"sites demo:matmul-naive --utilisation 100", 2, "multiple of the line size"},
		{"sites demo:matmul-naive --cache L1=1KiB,2,32", 0, "miss ratio"},
		{"sites", 2, "give a trace or a profile"},
		{"analyze demo:matmul-naive --analyses locality --utilisation 1KiB", 0, "66,560"},
	} {
		got := stackglass(strings.Fields(c.line)...)
		if got.code != c.code || !strings.Contains(got.stdout+got.stderr, c.says) {
			t.Errorf("%s: want %q and exit code %d, got\n%s", c.line, c.says, c.code, got)
		}
	}
}

// TestSitesAddUpToWhatIf checks that the misses of all source locations add up to the misses that
// the verb "what-if" predicts, and that the misses of all data structures do, too. The test also
// checks coherence misses. The test covers single-threaded and multi-threaded runs, and private and
// shared caches.
func TestSitesAddUpToWhatIf(t *testing.T) {
	for _, name := range demoNames() {
		for _, caches := range []string{
			"--cache L1=32KiB,8", "--cache L1=2KiB,full --cache L2=16KiB,8", "--cache L1=1KiB,2 --cache L2=8KiB,full,shared=all",
			"--hierarchy i7-4770K",
		} {
			options := strings.Fields("demo:" + name + " " + caches)
			levels := tableIn(t, stackglass(append(append([]string{"what-if"}, options...), "--format", "json")...).stdout, "levels")
			for _, by := range []string{"line", "object"} {
				got := stackglass(append(append([]string{"sites", "--by", by}, options...), "--format", "json")...)
				if by == "object" && strings.Contains(got.stderr, "contains no data structures") {
					continue
				}
				sums := map[string]float64{}
				for _, row := range tableIn(t, got.stdout, "sites") {
					for key, value := range row {
						if n, ok := value.(float64); ok {
							sums[key] += n
						}
					}
				}
				for _, level := range levels {
					for _, count := range []string{"misses", "coherence_misses"} {
						key := level["name"].(string) + "_" + count
						want, _ := level[count].(float64)
						if off := sums[key] - want; off > 1e-3 || off < -1e-3 {
							t.Errorf("%s, caches %s, by %s: %s of all rows add up to %v, want %v", name, caches, by, key, sums[key], want)
						}
					}
				}
			}
		}
	}
}

// tableIn returns a table in a JSON answer.
func tableIn(t *testing.T, answer, key string) []map[string]any {
	t.Helper()
	var all map[string]json.RawMessage
	var rows []map[string]any
	if err := json.Unmarshal([]byte(answer), &all); err != nil {
		t.Fatalf("%v in %s", err, answer)
	}
	if err := json.Unmarshal(all[key], &rows); err != nil {
		t.Fatalf("%v in %s", err, answer)
	}
	return rows
}

// TestFalselySharedLineMissesMost checks that the source line with false sharing has the most
// misses, in every output format.
func TestFalselySharedLineMissesMost(t *testing.T) {
	for _, c := range []struct{ line, says string }{
		{"sites demo:false-sharing --format csv --top 1", "look,false-sharing.c,31,8192,"},
		{"export demo:false-sharing --cache L1=32KiB,8 --to folded", "run;look 6528"},
		{"compare --on sites --cache L1=32KiB,8 demo:false-sharing demo:false-sharing-padded", "look      false-sharing.c           31  A          8,192"},
	} {
		if got := stackglass(strings.Fields(c.line)...); got.code != 0 || !strings.Contains(got.stdout, c.says) {
			t.Errorf("%s: want %q, got\n%s", c.line, c.says, got)
		}
	}
}

// TestSitesSortByEveryColumn checks that rows can be sorted by every column of the CSV output, for
// any grouping.
func TestSitesSortByEveryColumn(t *testing.T) {
	for _, by := range []string{"site", "line", "function", "object"} {
		head, _, _ := strings.Cut(stackglass("sites", "demo:array-list", "--by", by, "--format", "csv").stdout, "\n")
		for column := range strings.SplitSeq(head, ",") {
			got := stackglass("sites", "demo:array-list", "--by", by, "--sort", column)
			if got.code != 0 || strings.Count(got.stdout, "\n") < 8 {
				t.Errorf("sites by %s, sorted by %s: want rows, got %s", by, column, got)
			}
		}
	}
}

// TestTopSitesByColumn checks that --top selects the rows with the largest values in the sorted
// column, and not the rows with the most misses.
func TestTopSitesByColumn(t *testing.T) {
	for _, by := range []string{"site", "line", "function", "object"} {
		for _, column := range []string{"references", "line", "L1_misses"} {
			line := []string{"sites", "demo:array-list", "--by", by, "--cache", "L1=1KiB,full", "--sort", column, "--format", "csv"}
			all := strings.SplitAfter(stackglass(line...).stdout, "\n")
			for n := 1; n < len(all)-1 && n < 4; n++ {
				got := stackglass(append(line, "--top", fmt.Sprint(n))...)
				if want := strings.Join(all[:n+1], ""); got.code != 0 || !strings.HasPrefix(got.stdout, want) {
					t.Errorf("first %d rows sorted by %s, grouped by %s:\n%swant\n%s", n, column, by, got.stdout, want)
				}
			}
		}
	}
}

// TestSitesListPreviousAccesses checks that the answer lists previous accesses or states which
// format lists them, for any grouping of rows.
func TestSitesListPreviousAccesses(t *testing.T) {
	for _, by := range []string{"site", "line", "function", "object"} {
		line := []string{"sites", "demo:matmul-naive", "--previous", "--by", by}
		if got := stackglass(line...); got.code != 0 || !strings.Contains(got.stdout, "Code that previously accessed the same lines") || !strings.Contains(got.stdout, "main matmul-naive.c:2") && by != "function" {
			t.Errorf("--previous --by %s: the answer has no table of previous accesses: %s", by, got)
		}
		got := stackglass(append(line, "--format", "json")...)
		var answer struct{ Before []map[string]any }
		if err := json.Unmarshal([]byte(got.stdout), &answer); err != nil || len(answer.Before) == 0 {
			t.Errorf("--previous --by %s: %v, %d rows in json, want at least 1", by, err, len(answer.Before))
		}
		if got := stackglass(append(line, "--format", "csv")...); !strings.Contains(got.stderr, "to see which code last accessed the lines") {
			t.Errorf("--previous --by %s: csv omits the table of previous accesses without a warning: %s", by, got.stderr)
		}
	}
}

// TestSitesOfProfile checks that a profile leads to the same answers as its trace.
func TestSitesOfProfile(t *testing.T) {
	kept := filepath.Join(t.TempDir(), "p.sgp")
	if got := stackglass("analyze", "demo:array-list", "--utilisation", "8KiB", "-o", kept); got.code != 0 {
		t.Fatal(got)
	}
	const options = "--cache L1=8KiB,full --format csv --by line"
	of := func(file string) string {
		return stackglass(append([]string{"sites", file}, strings.Fields(options)...)...).stdout
	}
	if a, b := of("demo:array-list"), of(kept); a != b || strings.Count(a, "\n") < 5 {
		t.Errorf("answer from the trace:\n%sanswer from the profile:\n%s", a, b)
	}
}

// TestSitesWarnsAboutEstimates checks that there is a warning about estimated misses, with advice
// on how to count the misses. There must be no warning about counted misses.
func TestSitesWarnsAboutEstimates(t *testing.T) {
	dir := t.TempDir()
	plain, counted := filepath.Join(dir, "plain.sgp"), filepath.Join(dir, "counted.sgp")
	for file, utilisation := range map[string]string{plain: "1MiB", counted: "3KiB,4"} {
		if got := stackglass("analyze", "demo:matmul-naive", "--utilisation", utilisation, "-o", file); got.code != 0 {
			t.Fatal(got)
		}
	}
	const want = "L1: the misses of each source location are estimated from its stack distances"
	for _, verb := range []string{"sites FILE", "compare FILE demo:matmul-naive --on sites", "export FILE --to json"} {
		for file, doubted := range map[string]bool{plain: true, counted: false, "demo:matmul-naive": false} {
			line := strings.Replace(verb, "FILE", file, 1) + " --cache L1=3KiB,4"
			got := stackglass(strings.Fields(line)...)
			says := strings.Contains(got.stdout+got.stderr, want) && strings.Contains(got.stdout+got.stderr, "--utilisation 3KiB,4 to count them")
			if got.code != 0 || says != doubted {
				t.Errorf("%s: prints a warning about estimates: %v, want %v: %s", line, says, doubted, got.stderr)
			}
		}
	}
}

// TestUtilisationAtOtherLineSizes checks that line utilisation is reported only for levels whose
// line size was measured.
func TestUtilisationAtOtherLineSizes(t *testing.T) {
	got := stackglass("sites", "demo:matmul-naive", "--cache", "L1=1KiB,2", "--cache", "L2=8KiB,4,128")
	if !strings.Contains(got.stdout, "used in 1KiB,2") || strings.Contains(got.stdout, "used in 8KiB") || !strings.Contains(got.stderr, "its line utilisation is unknown") {
		t.Errorf("want only the line utilisation of L1: %s", got)
	}
	got = stackglass("sites", "demo:matmul-naive", "--cache", "L1=1KiB,2,32")
	if !strings.Contains(got.stdout, "used in 1KiB,2") || got.stderr != "" {
		t.Errorf("want the line utilisation of L1, which has the measured line size: %s", got)
	}
}

const columnWalk = `#include <stdio.h>
#define N 512
double m[N][N];
int main(void)
{
    double sum = 0;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            sum += m[i][j]; // along the rows
    for (int j = 0; j < N; j++)
        for (int i = 0; i < N; i++)
            sum += m[i][j]; // down the columns
    printf("%g\n", sum);
    return 0;
}
`

// buildProgram compiles a program with clang. If clang is not installed, the test is skipped.
func buildProgram(t *testing.T, source string, args ...string) string {
	t.Helper()
	clang, err := exec.LookPath("clang-19")
	if err != nil {
		t.Skip("clang-19 is not installed")
	}
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.WriteFile("walk.c", []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	args = append([]string{clang, "-g", "-O1", "walk.c", "-o", "walk"}, args...)
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return dir
}

// TestLoopWithMostMissesIsFirst compiles, records and analyses a program, and checks that the
// source line with the most misses is listed first.
func TestLoopWithMostMissesIsFirst(t *testing.T) {
	buildProgram(t, columnWalk)
	if got := stackglass("cc", "--", "clang-19", "-g", "-O1", "walk.c", "-o", "walk"); got.code != exitOK {
		t.Fatal(got)
	}
	if out, err := exec.Command("./walk").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	got := stackglass("sites", "walk.sgt", "--source", ".", "--format", "csv")
	rows := strings.Split(got.stdout, "\n")
	if got.code != exitOK || len(rows) < 3 || !strings.HasPrefix(rows[1], "main,walk.c,12,sum += m[i][j]; // down the columns,") {
		t.Fatalf("want line 12 first:\n%s", got)
	}
	if !strings.HasPrefix(rows[2], "main,walk.c,9,sum += m[i][j]; // along the rows,") {
		t.Errorf("want line 9 second:\n%s", got)
	}
	data := stackglass("sites", "walk.sgt", "--by", "object", "--format", "csv")
	if !strings.HasPrefix(strings.Split(data.stdout, "\n")[1], "m,global,") {
		t.Errorf("want m first:\n%s", data)
	}
}

// TestFilesWithTheSameName checks that every answer distinguishes files that have the same name,
// but are in different folders. Each line must be shown with the text in its own file or without a
// text.
func TestFilesWithTheSameName(t *testing.T) {
	clang, err := exec.LookPath("clang-19")
	if err != nil {
		t.Skip("clang-19 is not installed")
	}
	t.Chdir(t.TempDir())
	const util = "static double s[4096];\nstatic double walk(void) { double t = 0; for (int i = 0; i < 4096; i++)\n t += s[i]; // in FOLDER\n return t; }\ndouble in_FOLDER(void) { return walk(); }\n"
	for name, text := range map[string]string{
		"a/util.c": strings.ReplaceAll(util, "FOLDER", "a"), "b/util.c": strings.ReplaceAll(util, "FOLDER", "b"),
		"main.c": "double in_a(void), in_b(void);\nint main(void) { return in_a() + in_b() + in_b() > 0; }\n",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := stackglass("cc", "--", clang, "-g", "-O0", "a/util.c", "b/util.c", "main.c", "-o", "m"); got.code != exitOK {
		t.Fatal(got)
	}
	if out, err := exec.Command("./m").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for line, want := range map[string][]string{
		"sites m.sgt --by function --format csv":                    {"\nwalk,a/util.c,", "\nwalk,b/util.c,"},
		"sites m.sgt --format csv --source .":                       {"a/util.c,3,t += s[i]; // in a,", "b/util.c,3,t += s[i]; // in b,"},
		"sites m.sgt --format csv --source a":                       {"a/util.c,3,t += s[i]; // in a,", "b/util.c,3,,", "not found in --source: b/util.c"},
		"export m.sgt --to callgrind --cache L1=32KiB,8":            {" a/util.c\n", " b/util.c\n"},
		"sites m.sgt --by object --format csv --cache L1=1KiB,full": {"a/util.c,1,", "b/util.c,1,"},
	} {
		got := stackglass(strings.Fields(line)...)
		for _, text := range want {
			if !strings.Contains(got.stdout+got.stderr, text) {
				t.Errorf("%s printed %s, want %q in it", line, got, text)
			}
		}
	}
}

// TestSymbols checks that names for instruction addresses are found in the traced program, but not
// in a different program.
func TestSymbols(t *testing.T) {
	buildProgram(t, columnWalk, "-no-pie")
	file, err := symbols.Open("walk")
	if err != nil {
		t.Fatal(err)
	}
	var main symbols.Function
	for addr := file.Low; main.Name != "main"; addr += 16 {
		main, _ = file.Function(addr)
		if addr > file.Low+1<<20 {
			t.Fatal("the program has no function main")
		}
	}
	at, ok := file.Line(main.Addr)
	if !ok {
		t.Fatal("the source line of main is unknown")
	}
	write := func(name string, base uint64) {
		text := "addr,rw,size,pc\n"
		for i := range 100 {
			text += fmt.Sprintf("%d,r,8,%d\n", 4096+64*i, main.Addr+base)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("here.csv", 0)
	write("moved.csv", 0x1000000)
	head := fmt.Sprintf("main,walk.c,%d,", at.Line)
	for _, c := range []struct{ line, row, says string }{
		{"here.csv --symbols walk", head, ""},
		{"moved.csv --symbols walk", "0x", "no instruction of the trace is in a function of walk: this is not the program that was traced"},
		{fmt.Sprintf("moved.csv --symbols walk@%d", file.Low+0x1000000), head, ""},
		{"here.csv", "0x", "add --symbols FILE to find the locations"},
	} {
		got := stackglass(append([]string{"sites", "--format", "csv"}, strings.Fields(c.line)...)...)
		rows := strings.Split(got.stdout, "\n")
		if got.code != 0 || len(rows) < 2 || !strings.HasPrefix(rows[1], c.row) || !strings.Contains(got.stderr, c.says) {
			t.Errorf("%s: want the row %q and the warning %q:\n%s", c.line, c.row, c.says, got)
		}
	}
	if got := stackglass("analyze", "here.csv", "--symbols", "walk", "-o", "here.sgp"); got.code != 0 {
		t.Fatal(got)
	}
	if got := stackglass("sites", "here.sgp", "--format", "csv"); !strings.Contains(got.stdout, "\n"+head) {
		t.Errorf("the profile does not contain the names:\n%s", got)
	}
}

// TestSymbolsOfUnrelatedFile checks that a file that was not part of the traced process provides no
// names, and causes a warning.
func TestSymbolsOfUnrelatedFile(t *testing.T) {
	n := symbolizer{name: "other", file: &symbols.File{}}
	n.addNames(&profile.Site{PC: 0x1000, Module: "walk", Offset: 16})
	if list := n.matchWarnings(); len(list) != 1 || !strings.Contains(list[0], "other is not among the modules of the trace (walk)") {
		t.Errorf("%q", list)
	}
}

// TestSymbolWarnings checks two warnings. The first warning is about a trace without instruction
// addresses, for which no names are found. The second warning is about a load address at which the
// program has no source lines.
func TestSymbolWarnings(t *testing.T) {
	path := filepath.Join(buildProgram(t, "int main(void) { volatile int x = 1; return x; }\n", "-no-pie"), "walk")
	p := &profile.Profile{Sites: &profile.Sites{Code: []profile.Site{{Number: 1, Function: "main"}}}}
	if list, err := symbolize(p, []string{path}); err != nil || len(list) != 1 || !strings.Contains(list[0], "contains no instruction addresses") {
		t.Errorf("%q, %v", list, err)
	}
	program, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	all, err := program.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for name, doubts := range map[string]int{"main": 0, "__do_global_dtors_aux": 1} {
		at := slices.IndexFunc(all, func(y elf.Symbol) bool { return y.Name == name })
		if at < 0 {
			t.Skip("this system links programs without " + name)
		}
		p := &profile.Profile{Sites: &profile.Sites{Code: []profile.Site{{Number: profile.NoSite, PC: all[at].Value}}}}
		list, err := symbolize(p, []string{path})
		if err != nil || len(list) != doubts || doubts > 0 && !strings.Contains(list[0], "no source lines of the traced instructions") {
			t.Errorf("%s: %q, %v", name, list, err)
		}
	}
}

// TestReadableNames checks that C++ names are demangled.
func TestReadableNames(t *testing.T) {
	for name, want := range map[string]string{"_ZN3foo3barEi": "foo::bar(int)", "main": "main", "_ZN9wikipedia7article8print_toERSo": "wikipedia::article::print_to(std::ostream&)"} {
		if got := program.Readable(name); got != want {
			t.Errorf("Readable(%s) = %s, want %s", name, got, want)
		}
	}
}

// TestManySites checks that text tables have at most a hundred rows unless --top requests more.
// Comparisons must have one number in each row, and the CSV and JSON formats must contain all rows.
func TestManySites(t *testing.T) {
	var text strings.Builder
	text.WriteString("address,rw,size,pc\n")
	for i := range 300 {
		fmt.Fprintf(&text, "%#x,r,8,%#x\n", 1<<20+64*i, 0x400000+4*i)
	}
	inFolder(t, map[string]string{"many.csv": text.String()})
	for line, rows := range map[string]int{
		"sites many.csv": 100, "sites many.csv --share 100%": 100, "sites many.csv --top 250": 250,
		"sites many.csv --format csv": 300, "compare many.csv many.csv --on sites": 300, "compare many.csv many.csv --on sites --sort cold": 300,
	} {
		got := stackglass(words(line)...)
		if n := strings.Count(got.stdout, "\n0x400"); got.code != 0 || n != rows {
			t.Errorf("%s: exit code %d, %d rows, want %d", line, got.code, n, rows)
		}
		if others := strings.Contains(got.stdout, "(all others)"); others != (rows < 300) {
			t.Errorf("%s: the answer has a row for all others: %v", line, others)
		}
	}
	expectExit(t, stackglass(words("compare many.csv many.csv --on sites --sort function")...), exitUsage, "want one of", "miss_ratio")
}

// TestTableWithOneNumberColumn checks that a table with only one column of numbers has the same
// rows and values as the whole table.
func TestTableWithOneNumberColumn(t *testing.T) {
	h, err := chooseHierarchy([]string{"L1=2KiB,8"}, "")
	if err != nil {
		t.Fatal(err)
	}
	q := ask.New(ask.VerbOf("sites"))
	q.Machine = h
	s, _, err := ask.NewRun("m", multiplyProfile(t, analysis.Spec{})).Attributed(q, attribution.Site)
	if err != nil {
		t.Fatal(err)
	}
	whole := s.Table(s.Order("", 0), 2)
	s.Number = "cold"
	one, keys := s.Table(s.Order("", 0), 2), []string(nil)
	for i, c := range one.Columns {
		keys = append(keys, c.Key)
		for row := range whole.Rows {
			if got, want := one.Rows[row][i], whole.Rows[row][whole.Index(c.Key)]; !report.Equal(got, want) {
				t.Errorf("column %s of row %d = %v, want %v", c.Key, row, got, want)
			}
		}
	}
	if got := strings.Join(keys, " "); got != "function file line cold kind variable column" || len(one.Rows) != len(whole.Rows) {
		t.Errorf("columns %s, %d rows, want %d", got, len(one.Rows), len(whole.Rows))
	}
}

// TestSymbolsNameFiles checks that files with the same name are distinguished by their paths,
// whether the symbols or the trace contain the paths.
func TestSymbolsNameFiles(t *testing.T) {
	s := &profile.Sites{Code: []profile.Site{{File: "main.c"}, {}, {}, {}}}
	nameFiles(s, map[*profile.Site]string{&s.Code[1]: "/x/a/util.c", &s.Code[2]: "/x/b/util.c"})
	for i, want := range []string{"main.c", "a/util.c", "b/util.c", ""} {
		if got := s.Code[i].File; got != want {
			t.Errorf("file of site %d = %q, want %q", i, got, want)
		}
	}
}

// TestSitesMarkPrefetchCoverage checks that prefetch coverage is marked as approximate unless it refers
// to exactly the misses of the first level.
func TestSitesMarkPrefetchCoverage(t *testing.T) {
	for line, about := range map[string]bool{
		"demo:matmul-naive --cache L1=16KiB,1":                true, // conflict misses
		"demo:matmul-naive --cache L1=16KiB,full":             false,
		"demo:array-list --cache L1=704,full":                 true, // 11 lines: the size falls within a bin
		"demo:array-list --cache L1=4KiB,full":                false,
		"demo:false-sharing --cache L1=16KiB,full":            true, // coherence misses
		"demo:openmp-stencil --cache L1=2KiB,full,shared=all": false,
	} {
		got := stackglass(append([]string{"sites"}, strings.Fields(line)...)...)
		if got.code != 0 || !strings.Contains(got.stdout, "prefetch coverage") || strings.Contains(got.stdout, "prefetch coverage (≈)") != about {
			t.Errorf("sites %s: the coverage should be marked with ≈: %v; got %s", line, about, got)
		}
	}
}
