package command

import (
	"bufio"
	"encoding/csv"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// dataFile returns the path of a file in the external data. If the file does not exist, the test is
// skipped.
func dataFile(t *testing.T, name string) string {
	t.Helper()
	root := os.Getenv("STACKGLASS_DATA")
	if root == "" {
		root = filepath.Join("..", "..", "..", "..", "..", "shared", "data")
	}
	path := filepath.Join(root, name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("%s does not exist; set STACKGLASS_DATA to the folder with traces/ and truth/", path)
	}
	return path
}

// TestHistogramsEqualReferenceProgram compares complete histograms with the histograms of a
// reference program.
func TestHistogramsEqualReferenceProgram(t *testing.T) {
	for _, name := range []string{"gemm", "jacobi2d", "sort"} {
		t.Run(name, func(t *testing.T) {
			truth, err := os.ReadFile(dataFile(t, "truth/"+name+".histogram.txt"))
			if err != nil {
				t.Fatal(err)
			}
			got := stackglass("histogram", dataFile(t, "traces/"+name+".lackey.lz4"), "--format", "csv")
			if got.code != 0 || got.stderr != "" {
				t.Fatalf("exit %d: %s", got.code, got.stderr)
			}
			want := "distance,count\n" + strings.ReplaceAll(string(truth), " ", ",")
			if got.stdout != want {
				t.Errorf("the histogram differs from the reference; first difference: %s", firstDifference(got.stdout, want))
			}
		})
	}
}

func firstDifference(got, want string) string {
	a, b := bufio.NewScanner(strings.NewReader(got)), bufio.NewScanner(strings.NewReader(want))
	for a.Scan() && b.Scan() {
		if a.Text() != b.Text() {
			return a.Text() + ", want " + b.Text()
		}
	}
	return "its length"
}

// TestCurveEqualsDineroIV checks that the misses of fully associative caches equal the misses that
// DineroIV counted.
func TestCurveEqualsDineroIV(t *testing.T) {
	f, err := os.Open(dataFile(t, "truth/dinero.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	column := map[string]int{}
	for i, name := range rows[0] {
		column[name] = i
	}
	checked := 0
	for _, name := range []string{"gemm", "jacobi2d", "sort"} {
		profile := filepath.Join(t.TempDir(), name+".sgp")
		if got := stackglass("analyze", dataFile(t, "traces/"+name+".lackey.lz4"), "-o", profile); got.code != 0 {
			t.Fatalf("exit %d: %s", got.code, got.stderr)
		}
		for _, row := range rows[1:] {
			if row[column["trace"]] != name || row[column["cache"]] != "l1-dcache" || row[column["assoc"]] != "full" {
				continue
			}
			got := stackglass("what-if", profile, "--cache", "L1="+row[column["size_bytes"]]+",full", "--format", "csv")
			cells := strings.Split(strings.Split(got.stdout, "\n")[1], ",")
			if cells[6] != row[column["misses"]] {
				t.Errorf("%s, %s bytes: %s misses, want %s", name, row[column["size_bytes"]], cells[6], row[column["misses"]])
			}
			checked++
		}
	}
	if checked == 0 {
		t.Error("compared 0 fully associative caches, want at least 1")
	}
}

// TestSetsEqualDineroIV compares the set tables of one pass with all single-level caches that
// DineroIV simulated, including fully associative caches.
func TestSetsEqualDineroIV(t *testing.T) {
	rows := dineroRows(t)
	for _, name := range []string{"gemm", "jacobi2d", "sort"} {
		t.Run(name, func(t *testing.T) {
			got := stackglass("sets", dataFile(t, "traces/"+name+".lackey.lz4"), "--format", "csv")
			if got.code != 0 || got.stderr != "" {
				t.Fatalf("exit %d: %s", got.code, got.stderr)
			}
			misses := missesBySets(t, got.stdout)
			checked := 0
			for _, row := range rows {
				if row["trace"] != name || !strings.HasSuffix(row["cache"], "l1-dcache") {
					continue
				}
				lines, sets := number(t, row["size_bytes"])/64, 1
				ways := lines
				if row["assoc"] != "full" {
					ways = number(t, row["assoc"])
					sets = lines / ways
				}
				if m := misses(sets, ways); m != row["misses"] {
					t.Errorf("%d sets of %d ways: %s misses, want %s", sets, ways, m, row["misses"])
				}
				checked++
			}
			if checked != 80 {
				t.Errorf("compared %d caches, want 80", checked)
			}
		})
	}
}

// dineroRows reads DineroIV's results as rows with named columns.
func dineroRows(t *testing.T) (rows []map[string]string) {
	t.Helper()
	f, err := os.Open(dataFile(t, "truth/dinero.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cells, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range cells[1:] {
		named := map[string]string{}
		for i, cell := range row {
			named[cells[0][i]] = cell
		}
		rows = append(rows, named)
	}
	return rows
}

// missesBySets looks up misses in the output of the verb "sets". For a single set, the output
// contains only the numbers of ways at which the number of misses changes. Therefore, the misses
// are in the last row with at most the given number of ways.
func missesBySets(t *testing.T, printed string) func(sets, ways int) string {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(printed)).ReadAll()
	if err != nil || strings.Join(rows[0], ",") != "sets,ways,line,accesses,misses" {
		t.Fatalf("%v: columns %v", err, rows[0])
	}
	return func(sets, ways int) (misses string) {
		for _, row := range rows[1:] {
			if s, w := number(t, row[0]), number(t, row[1]); s == sets && w <= ways && (s == 1 || w == ways) {
				misses = row[4]
			}
		}
		return misses
	}
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
