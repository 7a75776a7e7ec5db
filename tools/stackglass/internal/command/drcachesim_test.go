package command

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// comparedPath is the path of the table that TestDrCacheSim writes and checks.
var comparedPath = filepath.FromSlash("../../../../core/simulate/DRCACHESIM.md")

// TestDrCacheSim compares stackglass with the expected results of DynamoRIO's tests for caches,
// TLBs and reuse distances, and checks the table of all results. DynamoRIO's tests are used only if
// their traces are stored in DynamoRIO's repository and can be decoded without DynamoRIO. The
// traces must be in the dynamorio folder of the external data.
func TestDrCacheSim(t *testing.T) {
	dir := dataFile(t, "dynamorio")
	machine := filepath.Join(t.TempDir(), "drcachesim.txt")
	const levels = "L1I=32KiB,8,instructions\nL1D=32KiB,8,prefetch=next-line\nLL=8MiB,16,shared=all\n" // drcachesim's default hierarchy
	if err := os.WriteFile(machine, []byte(levels), 0o644); err != nil {
		t.Fatal(err)
	}
	c := &resultTable{t: t}
	legacy := simulateTrace(t, filepath.Join(dir, "offline-legacy-trace.gz"), machine, "--cores", "168593/168594,168595,168596,168597")
	for _, w := range []struct {
		table, where, column string
		want                 int
	}{
		{"cores", "0 L1I", "hits", 61538}, {"cores", "0 L1I", "misses", 724}, {"cores", "0 L1D", "hits", 21189}, {"cores", "0 L1D", "misses", 774},
		{"cores", "1 L1I", "hits", 19428}, {"cores", "1 L1I", "misses", 130}, {"cores", "1 L1D", "hits", 20477}, {"cores", "1 L1D", "misses", 258},
		{"cores", "0 L1D", "prefetch_hits", 151}, {"cores", "0 L1D", "prefetch_misses", 623},
		{"cores", "1 L1D", "prefetch_hits", 66}, {"cores", "1 L1D", "prefetch_misses", 192},
		{"levels", "LL", "hits", 342}, {"levels", "LL", "misses", 1544}, {"prefetch", "LL", "received", 141 + 674}, {"prefetch", "LL", "received_misses", 674},
	} {
		c.add("offline-legacy", w.table+" "+w.where+" "+w.column, w.want, legacy.cellNumber(w.table, w.where, w.column))
	}
	snappy := simulateTrace(t, filepath.Join(dir, "drmemtrace.chase-snappy.x64.tracedir"), machine)
	c.add("offline-snappy-serial", "levels LL hits", 78312, snappy.cellNumber("levels", "LL", "hits"))

	small := writeFirstBytes(t, filepath.Join(dir, "drmemtrace.small.x64.trace"))
	counts := distances(t, small, "all")
	for distance, want := range []int{103, 42, 13, 13, 53} {
		c.add("reuse_offline", "references with distance "+strconv.Itoa(distance), want, counts[strconv.Itoa(distance)])
	}
	c.add("reuse_offline", "lines", 5, counts["inf"])
	threads := filepath.Join(dir, "drmemtrace.threadsig.x64.tracedir")
	starts := writeFirstBytes(t, threads)
	c.add("core_sharded", "references", 922934, sumOf(distances(t, starts, "all")))
	c.add("core_sharded", "instructions", 650576, sumOf(distances(t, starts, "fetch")))
	c.add("core_sharded", "data references", 272358, sumOf(distances(t, starts, "data")))
	c.add("core_sharded", "instruction lines", 694, distances(t, threads, "fetch")["inf"])
	c.add("core_sharded", "data lines, without references of size 0", 1155, distances(t, writeSized(t, threads), "data")["inf"])
	if n := distances(t, threads, "data")["inf"]; n != 1160 {
		t.Errorf("core_sharded: %d data lines including references of size 0, want 1160", n)
	}
	c.checkTable()
}

// resultTable collects the rows of the table.
type resultTable struct {
	t    *testing.T
	rows []string
}

func (c *resultTable) add(test, what string, want, got int) {
	if got != want {
		c.t.Errorf("%s: %s = %d, want %d", test, what, got, want)
	}
	c.rows = append(c.rows, "| "+test+" | "+what+" | "+strconv.Itoa(want)+" | "+strconv.Itoa(got)+" |")
}

const comparedHead = `# DynamoRIO's tests of caches, TLBs and reuse distances

This table compares stackglass with the tests of DynamoRIO (clients/drcachesim/tests). The table
contains every count that these tests expect for a trace in DynamoRIO's repository. If drcachesim
prints several numbers where stackglass prints only their sum, the table contains the sum. The test
TestDrCacheSim writes the table.

| test | count | expected | stackglass |
|---|---|---:|---:|
`

const comparedTail = `
The simulated machine is drcachesim's default: L1I and L1D have 32 KiB and 8 ways, LL has 8 MiB and
16 ways, L1D has a next-line prefetcher, and the caches are not coherent. In offline-legacy, four
threads run one after the other on the same core. stackglass does not read thread exits from
drmemtrace traces, so ` + "`--cores`" + ` assigns these threads to one core. DynamoRIO's tools for reuse
distances consider only the first byte of a reference, whereas stackglass splits references at line
boundaries. For the test reuse_offline, every reference therefore has a size of 1 byte.

The trace of core_sharded contains 34 data references of size 0, which are aligned to lines.
DynamoRIO's histogram.cpp examines the lines of a reference with a loop that ends before
` + "`start_addr + size`" + `, so an aligned reference of size 0 touches no line. stackglass counts at least one
byte of each reference. The references of size 0 touch 8 lines, and 5 of these lines have no other
data reference. With these 5 lines, stackglass counts 1,160 data lines.

In addition, policies_test.go repeats drcachesim's unit tests of LRU, FIFO, LFU and SRRIP, and
compares the results of every step.

## What cannot be compared

| tests | why |
|---|---|
| simple, threads, coherence, TLB-simple, TLB-threads, delay-simple, filter-simple, multiproc, phys, phys-threads, simple-config-file, threads-with-config-file, missfile-config-file, warmup-valid, warmup-zeros, offline-simple, offline-filter, offline-fork, offline-multiproc, offline-burst, offline-cpu, offline-rseq and similar | These tests run a program under DynamoRIO, and expect patterns instead of counts. |
| simulate_as_traced, reuse_offline_threads, reuse_time_offline | The traces are in the repository, but the tests expect patterns instead of counts. |
| offline-tlb_simulator_v2p | The trace consists of raw AArch64 files, which only DynamoRIO can decode, and its addresses are translated to physical addresses. |
| unit tests of bit-PLRU | drcachesim chooses among the candidates at random. |
| unit tests of BRRIP and of exclusive levels with RRIP | In these tests, drcachesim inserts one in 4 lines with a long re-reference interval, whereas stackglass inserts one in 32 lines. Moreover, drcachesim counts a line that returns to an exclusive level as a hit in this level. |
| unit tests of a custom prefetcher | The tests define their own prefetcher in C++. |
`

// checkTable compares the table in the repository with the rows. If -update is set, checkTable
// writes the table instead.
func (c *resultTable) checkTable() {
	text := comparedHead + strings.Join(c.rows, "\n") + "\n" + comparedTail
	if *update {
		if err := os.WriteFile(comparedPath, []byte(text), 0o644); err != nil {
			c.t.Fatal(err)
		}
		return
	}
	if file, err := os.ReadFile(comparedPath); err != nil || string(file) != text {
		c.t.Errorf("%s differs from the results; update it with -update (%v)", comparedPath, err)
	}
}

// simulatedAnswer is an answer of the verb "simulate".
type simulatedAnswer struct {
	t      *testing.T
	tables map[string]json.RawMessage
}

// simulateTrace simulates a trace on a machine without coherence.
func simulateTrace(t *testing.T, path, machine string, more ...string) simulatedAnswer {
	t.Helper()
	got := stackglass(append([]string{"simulate", path, "--hierarchy", machine, "--protocol", "none", "--format", "json"}, more...)...)
	a := simulatedAnswer{t, nil}
	if err := json.Unmarshal([]byte(got.stdout), &a.tables); err != nil || got.code != 0 {
		t.Fatalf("exit %d, %v: %s", got.code, err, got.stderr)
	}
	return a
}

// cellNumber returns the number in a cell of a table. The name of the row is a level, such as "LL",
// or a core number and a level, such as "0 L1D".
func (a simulatedAnswer) cellNumber(table, rowName, column string) int {
	a.t.Helper()
	var rows []map[string]any
	if err := json.Unmarshal(a.tables[table], &rows); err != nil {
		a.t.Fatal(err)
	}
	for _, row := range rows {
		name, _ := row["name"].(string)
		if core, ok := row["core"].(float64); ok {
			name = strconv.Itoa(int(core)) + " " + name
		}
		if n, ok := row[column].(float64); ok && name == rowName {
			return int(n)
		}
	}
	a.t.Fatalf("no column %s in the row %s of the table %s", column, rowName, table)
	return 0
}

// writeFirstBytes writes a trace's references to a CSV file, each with a size of 1 byte.
func writeFirstBytes(t *testing.T, path string) string {
	return rewriteSizes(t, path, func(string) string { return "1" })
}

// writeSized writes a trace's references to a CSV file, without references of size 0.
func writeSized(t *testing.T, path string) string {
	return rewriteSizes(t, path, func(size string) string {
		if size == "0" {
			return ""
		}
		return size
	})
}

// rewriteSizes writes a trace's references to a CSV file, with the sizes that the function newSize
// returns. If the new size is "", the reference is omitted.
func rewriteSizes(t *testing.T, path string, newSize func(size string) string) string {
	t.Helper()
	got := stackglass("convert", path, "--to", "csv", "-o", "-")
	if got.code != 0 {
		t.Fatalf("exit %d: %s", got.code, got.stderr)
	}
	rows, err := csv.NewReader(strings.NewReader(got.stdout)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	size := -1
	for i, name := range rows[0] {
		if name == "size" || name == "bytes" {
			size = i
		}
	}
	if size < 0 {
		t.Fatalf("columns %q, want one that contains sizes", rows[0])
	}
	kept := rows[:1]
	for _, row := range rows[1:] {
		if row[size] = newSize(row[size]); row[size] != "" {
			kept = append(kept, row)
		}
	}
	file := filepath.Join(t.TempDir(), "sizes.csv")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := csv.NewWriter(f).WriteAll(kept); err != nil {
		t.Fatal(err)
	}
	return file
}

// distances returns the number of references at each stack distance. The distance of first accesses
// is "inf".
func distances(t *testing.T, path, kinds string) map[string]int {
	t.Helper()
	got := stackglass("histogram", path, "--kinds", kinds, "--format", "csv")
	rows, err := csv.NewReader(strings.NewReader(got.stdout)).ReadAll()
	if err != nil || got.code != 0 {
		t.Fatalf("exit %d, %v: %s", got.code, err, got.stderr)
	}
	counts := map[string]int{}
	for _, row := range rows[1:] {
		counts[row[0]] = number(t, row[1])
	}
	return counts
}

func sumOf(counts map[string]int) (sum int) {
	for _, n := range counts {
		sum += n
	}
	return sum
}
