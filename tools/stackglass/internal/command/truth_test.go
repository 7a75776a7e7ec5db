package command

import (
	"bufio"
	"encoding/csv"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// dataFile gives the path of a file of the external data, or skips the test.
func dataFile(t *testing.T, name string) string {
	t.Helper()
	root := os.Getenv("STACKGLASS_DATA")
	if root == "" {
		root = filepath.Join("..", "..", "..", "..", "..", "shared", "data")
	}
	path := filepath.Join(root, name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("left out: %s is not there; set STACKGLASS_DATA to the folder with traces/ and truth/", path)
	}
	return path
}

// TestTruth compares whole histograms with ones that another program computed.
func TestTruth(t *testing.T) {
	for _, name := range []string{"gemm", "jacobi2d", "sort"} {
		t.Run(name, func(t *testing.T) {
			truth, err := os.ReadFile(dataFile(t, "truth/"+name+".histogram.txt"))
			if err != nil {
				t.Fatal(err)
			}
			got := ask("histogram", dataFile(t, "traces/"+name+".lackey.lz4"), "--format", "csv")
			if got.code != 0 || got.stderr != "" {
				t.Fatalf("exit %d: %s", got.code, got.stderr)
			}
			want := "distance,count\n" + strings.ReplaceAll(string(truth), " ", ",")
			if got.stdout != want {
				t.Errorf("the histogram differs from the truth, first in %s", firstDifference(got.stdout, want))
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

// TestTruthOfCurve compares misses at capacities with DineroIV's fully
// associative caches.
func TestTruthOfCurve(t *testing.T) {
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
		if got := ask("analyze", dataFile(t, "traces/"+name+".lackey.lz4"), "-o", profile); got.code != 0 {
			t.Fatalf("exit %d: %s", got.code, got.stderr)
		}
		for _, row := range rows[1:] {
			if row[column["trace"]] != name || row[column["cache"]] != "l1-dcache" || row[column["assoc"]] != "full" {
				continue
			}
			got := ask("what-if", profile, "--cache", "L1="+row[column["size_bytes"]]+",full", "--format", "csv")
			cells := strings.Split(strings.Split(got.stdout, "\n")[1], ",")
			if cells[6] != row[column["misses"]] {
				t.Errorf("%s, %s bytes: %s misses, want %s", name, row[column["size_bytes"]], cells[6], row[column["misses"]])
			}
			checked++
		}
	}
	if checked == 0 {
		t.Error("no fully associative run of DineroIV was compared")
	}
}
