package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func init() {
	goldenCommands = append(goldenCommands,
		"validate --loops",
		"validate --loops --cache L1=4KiB,4 --format csv --miss-cycles 100",
		"validate demo:matmul-naive --loops --cache L1=2KiB,2 --cache L1=8KiB,full",
		"validate demo:matmul-blocked --loops --cache L1=2KiB,4 --format json",
		"validate demo:matmul-blocked --loops --cache L1=1KiB,full --cache L1=1KiB,1 --format md",
		"validate testdata/multiply.sgp --loops --cache L1=2KiB,4",
	)
}

// withoutDinero removes DineroIV from PATH, so that the output does not depend on whether it is
// installed.
func withoutDinero(t *testing.T) { t.Setenv("PATH", t.TempDir()) }

// TestExactMissesEqualSimulation checks that the exact counts for the loop tree of every demo equal
// the simulation.
func TestExactMissesEqualSimulation(t *testing.T) {
	withoutDinero(t)
	for _, demo := range []string{"matmul-naive", "matmul-blocked", "array-list", "openmp-stencil", "false-sharing"} {
		for _, cache := range []string{"L1=2KiB,2", "L1=1KiB,1,32", "L1=4KiB,full"} {
			line := "validate demo:" + demo + " --loops --cache " + cache + " --format csv"
			got := stackglass(words(line)...)
			table := strings.Split(strings.TrimSpace(strings.Split(got.stdout, "\n\n")[0]), "\n")
			if got.code != 0 || len(table) < 2 {
				t.Fatalf("%s: %s", line, got)
			}
			names, values := strings.Split(table[0], ","), strings.Split(table[1], ",")
			row := map[string]string{}
			for i, name := range names {
				row[name] = values[i]
			}
			if row["exact_misses"] != row["misses"] || row["misses"] == "" {
				t.Errorf("%s: %s misses counted on the loop tree, want the simulated %s", line, row["exact_misses"], row["misses"])
			}
		}
	}
}

// TestDineroIVIsRun checks that DineroIV simulates the correct cache and receives all accesses, if
// it is installed.
func TestDineroIVIsRun(t *testing.T) {
	dir := t.TempDir()
	script := "#!/bin/sh\n" +
		"[ \"$*\" = '-l1-usize 1024 -l1-ubsize 64 -l1-uassoc 2 -informat d' ] || exit 3\n" +
		"n=0; while read -r label addr; do n=$((n+1)); done\n" +
		"echo ' Demand Fetches\t\t  1 0'; echo \" Demand Misses\t\t  $n 0\"\n"
	if err := os.WriteFile(filepath.Join(dir, "dineroIV"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
	got := stackglass(words("validate demo:array-list --limit 1000 --loops --cache L1=1KiB,2 --format json")...)
	if got.code != 0 || !strings.Contains(got.stdout, `"dinero_misses": 1000`) {
		t.Errorf("got %s, want 1000, the number of accesses that DineroIV received", got)
	}
	got = stackglass(words("validate demo:array-list --limit 1000 --loops --cache L1=2KiB,2")...)
	if got.code == exitOK || !strings.Contains(got.stderr, "dineroIV") {
		t.Errorf("got %s, want an error, because DineroIV failed", got)
	}
}

func TestValidateLoopsUsageErrors(t *testing.T) {
	for line, want := range map[string]string{
		"validate demo:array-list --loops":                                         "--cache L1=16KiB,1",
		"validate demo:array-list --loops --cache L1=1KiB,2,plru":                  "LRU",
		"validate demo:array-list --loops --cache L1=1KiB,2,no-allocate":           "allocate",
		"validate demo:array-list --loops --cache L1=1KiB,x":                       "L1=1KiB,x",
		"validate demo:array-list --loops --hierarchy i7-4770K":                    "--hierarchy",
		"validate demo:array-list --loops --cache L1=1KiB,2 --fail-if L1.misses>1": "--fail-if",
		"validate demo:array-list --loops --cache L1=1KiB,2 --sampling space=0.1":  "--sampling",
		"validate demo:array-list --loops --cache L1=1KiB,2 --miss-cycles 1":       "costs at least as much",
		"validate demo:array-list --loops --cache L1=1KiB,2 --sample space=0.1":    "--sample",
		"validate a.din b.din --loops --cache L1=1KiB,2":                           "a.din, b.din",
		"validate --cache L1=1KiB,2":                                               "give a trace",
	} {
		if got := stackglass(words(line)...); got.code != exitUsage || !strings.Contains(got.stderr, want) {
			t.Errorf("%s printed %s, want a usage error with %q", line, got, want)
		}
	}
}
