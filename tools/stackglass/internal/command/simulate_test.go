package command

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/simulate"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sgt"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

func init() {
	goldenCommands = append(goldenCommands,
		"help simulate",
		"simulate demo:matmul-naive --cache L1=2KiB,8 --cache L2=8KiB,8",
		"simulate demo:matmul-naive --cache L1=2KiB,8,plru,latency=4 --cache L2=8KiB,8,exclusive,latency=12 --cache memory=latency=200 --format json",
		"simulate demo:array-list --cache L1=2KiB,4,random,write-through,no-allocate --seed 3 --limit 20000 --format csv",
		"simulate testdata/threads.sgt --cache L1=1KiB,2 --cache L2=4KiB,4,128 --fail-if L2.misses>8 --format md",
		"simulate testdata/multiply.sgp --cache L1=1KiB,2",
		"simulate demo:matmul-naive --hierarchy ryzen-9950x --format json",
		"simulate demo:matmul-naive --cache L1=2KiB,8 --range 10%..35% --format json",
		"simulate demo:matmul-naive --cache L1=2KiB,4,drrip,prefetch=stream --cache L2=16KiB,8 --baseline --bound",
		"help validate",
		"validate demo:matmul-naive --cache L1=2KiB,full --cache L2=8KiB,full,inclusive",
		"validate demo:matmul-naive --cache L1=2KiB,full --cache L2=8KiB,full --format json --fail-if L2.difference>0.01",
		"validate demo:array-list --cache L1=2KiB,4,plru --cache L2=8KiB,4 --format csv",
	)
}

// TestSimulationEqualsExact checks that exact predictions equal the simulation.
func TestSimulationEqualsExact(t *testing.T) {
	for _, cache := range []string{"L1=2KiB,full", "L1=192,full", "L1=4KiB,full,32"} {
		for _, part := range []string{"", " --kinds store", " --skip 100 --limit 5000"} {
			options := "demo:matmul-blocked --cache " + cache + part + " --format csv"
			simulated, predicted := levelsOf(t, "simulate "+options), levelsOf(t, "what-if "+options)
			for _, column := range []string{"accesses", "hits", "misses"} {
				if got, want := simulated[0][column], predicted[0][column]; got != want {
					t.Errorf("%s: simulated %s = %s, predicted %s", options, column, got, want)
				}
			}
			if validated := levelsOf(t, "validate "+options); validated[0]["difference"] != "0" {
				t.Errorf("%s: validate reports a difference of %s, want 0", options, validated[0]["difference"])
			}
		}
	}
}

// levelsOf runs a command line and returns the rows of its CSV output.
func levelsOf(t *testing.T, line string) (levels []map[string]string) {
	t.Helper()
	got := stackglass(words(line)...)
	table, err := csv.NewReader(strings.NewReader(got.stdout)).ReadAll()
	if err != nil || len(table) < 2 {
		t.Fatalf("%s: %v\n%s", line, err, got)
	}
	for _, row := range table[1:] {
		level := map[string]string{}
		for i, name := range table[0] {
			level[name] = row[i]
		}
		levels = append(levels, level)
	}
	return levels
}

// TestSimulateTruncatedTrace checks that the result for a truncated trace is marked as partial, and
// that the exit code is the code for partial results.
func TestSimulateTruncatedTrace(t *testing.T) {
	whole, err := os.ReadFile(filepath.Join("testdata", "threads.sgt"))
	if err != nil {
		t.Fatal(err)
	}
	inFolder(t, map[string]string{"cut.sgt": string(whole[:len(whole)*3/4]), "bad.din": "0 1000\n1 2000\n7 3000\n0 1000\n"})
	for _, verb := range []string{"simulate", "validate"} {
		expectExit(t, stackglass(verb, "cut.sgt", "--cache", "L1=1KiB,full"), exitInput, "cut.sgt: the answer covers only a part")
		expectExit(t, stackglass(verb, "bad.din", "--cache", "L1=1KiB,full"), exitInput, "bad.din:3", "covers only a part")
		got := stackglass(verb, "bad.din", "--cache", "L1=1KiB,full", "--skip-bad", "1")
		expectExit(t, got, exitOK, "1 record could not be read")
	}
}

func TestSimulateUsageErrors(t *testing.T) {
	inFolder(t, map[string]string{"a.din": "0 1000\n"})
	for line, word := range map[string]string{
		"simulate":                                "for example: stackglass simulate app.lackey.lz4",
		"simulate a.din":                          "--cache",
		"simulate a.din --cache L1=192,3,plru":    "power of two",
		"simulate a.din --cache L1=64GiB,8":       "lines per cache",
		"simulate a.din --cache L1=1KiB,4 --seed": "--seed",
		"simulate a.din --cache L1=1KiB,4 --cache L2=2KiB,4,32,inclusive": "inclusive",
		"validate a.din --cache L1=1KiB,4 --fail-if L1.misses>1":          "L2.difference>0.01",
		"validate a.din --cache L1=1KiB,4 --fail-if memory.accesses>1":    "memory.difference",
		"validate a.din --cache L1=1KiB,4 --cache L2=4KiB,4,128,plru,x":   "L2=4KiB",
	} {
		expectExit(t, stackglass(words(line)...), exitUsage, word)
	}
}

// TestValidateBudget checks that the exit code of the verb "validate" depends on the absolute value
// of the relative difference.
func TestValidateBudget(t *testing.T) {
	const line = "validate demo:matmul-naive --cache L1=2KiB,full --cache L2=8KiB,full,inclusive --format csv --fail-if "
	off := levelsOf(t, line+"memory.difference>1")[1]["difference_ratio"]
	share, err := strconv.ParseFloat(off, 64)
	if err != nil || share >= 0 {
		t.Fatalf("the relative difference is %s, want a negative number", off)
	}
	for _, metric := range []string{"L2.difference", "memory.difference"} {
		bound := strconv.FormatFloat(math.Abs(share)/2, 'g', -1, 64)
		if got := stackglass(words(line + metric + ">" + bound)...); got.code != exitBudget {
			t.Errorf("--fail-if %s>%s: exit code %d, want %d", metric, bound, got.code, exitBudget)
		}
		if got := stackglass(words(line + metric + ">1")...); got.code != exitOK {
			t.Errorf("--fail-if %s>1: exit code %d, want 0", metric, got.code)
		}
	}
}

// TestSimulateWithinMemory checks that a cache that does not fit in memory is rejected before it is
// allocated.
func TestSimulateWithinMemory(t *testing.T) {
	inFolder(t, map[string]string{"a.din": "0 1000\n"})
	for _, verb := range []string{"simulate", "validate"} {
		got := stackglass(words(verb + " a.din --cache L1=4GiB,1,random --cache L2=8GiB,1,random --memory 200MiB")...)
		expectExit(t, got, exitExhausted, "the memory limit is 209715200 bytes", "are needed before the first reference", "set the limit with --memory")
	}
	c, err := hierarchy.ParseCache("L1=128MiB,1,random")
	if err != nil {
		t.Fatal(err)
	}
	need, err := simulate.MemoryBytes(hierarchy.Hierarchy{Levels: []hierarchy.Cache{c}})
	if err != nil {
		t.Fatal(err)
	}
	line := words("simulate a.din --cache " + c.String() + " --memory " + strconv.FormatUint(need*3/2, 10))
	const refused = " bytes are needed before the first reference"
	if got := stackglass(line...); strings.Contains(got.stderr, refused) {
		t.Errorf("without the baseline: %s, want a simulation", got.stderr)
	}
	expectExit(t, stackglass(append(line, "--baseline")...), exitExhausted, strconv.FormatUint(2*need, 10)+refused)
}

// TestSimulateWarnsAboutInaccurateLevels checks the warnings about levels whose predictions are
// inaccurate. There is exactly one warning for each level that is smaller than the level above, or
// that invalidates lines in the levels above.
func TestSimulateWarnsAboutInaccurateLevels(t *testing.T) {
	inFolder(t, map[string]string{"a.din": "0 1000\n"})
	for _, verb := range []string{"simulate", "validate", "what-if"} {
		for lower, wants := range map[string]string{
			"L2=1KiB,4,inclusive": "L2 is smaller than L1, so it cannot include that level",
			"L2=1KiB,4":           "L2 is smaller than L1, so few misses of L1 hit in L2",
			"L2=1KiB,4,exclusive": "",
			"L2=4KiB,4":           "",
			"L2=8KiB,4,inclusive": "",
			"L2=4KiB,4,inclusive": "L2 is inclusive and not much larger than L1: lines that it evicts are also evicted from L1",
		} {
			if verb == "simulate" && lower == "L2=4KiB,4,inclusive" {
				wants = "" // the verb "simulate" counts these invalidations
			}
			got := stackglass(verb, "a.din", "--cache", "L1=2KiB,4", "--cache", lower)
			n := strings.Count(got.stderr, "smaller than") + strings.Count(got.stderr, "not much larger")
			if got.code != exitOK || !strings.Contains(got.stderr, wants) || n != min(1, len(wants)) {
				t.Errorf("%s, %s: want %q exactly once, got %v", verb, lower, wants, got)
			}
		}
	}
}

// TestPartialResultIsReportedOnce checks that answers about a partial run contain exactly one
// warning about it.
func TestPartialResultIsReportedOnce(t *testing.T) {
	content := string(tracetest.Packed())
	inFolder(t, map[string]string{"cut.lz4": content[:len(content)/2]})
	for _, line := range []string{"what-if cut.lz4", "validate cut.lz4", "simulate cut.lz4", "compare cut.lz4 demo:matmul-naive --on what-if", "export cut.lz4 --to json"} {
		got := stackglass(append(words(line), "--cache", "L1=1KiB,full")...)
		if n := strings.Count(got.stderr, "a part of the trace"); got.code != exitInput || n != 1 {
			t.Errorf("%s: %d warnings about the partial run, want 1\n%s", line, n, got)
		}
	}
}

// TestSimulateFeatures checks that stride prefetchers know each reference's instruction, and that
// TLBs count page walks.
func TestSimulateFeatures(t *testing.T) {
	got := stackglass("simulate", "demo:matmul-naive", "--cache", "L1=2KiB,4,prefetch=stride", "--cache", "DTLB=4,full,tlb", "--format", "json")
	a := simulatedAnswer{t, nil}
	if err := json.Unmarshal([]byte(got.stdout), &a.tables); err != nil || got.code != 0 {
		t.Fatalf("exit %d, %v: %s", got.code, err, got.stderr)
	}
	if n := a.cellNumber("prefetch", "L1", "useful"); n < 10000 {
		t.Errorf("%d useful prefetches in a matrix multiplication, want at least 10000", n)
	}
	if n := a.cellNumber("tlbs", "DTLB", "misses"); n == 0 {
		t.Error("0 TLB misses, want more")
	}
	if got := stackglass("simulate", "testdata/plain.din", "--cache", "L1=2KiB,4,prefetch=stride"); got.code != 0 || !strings.Contains(got.stderr, "as references of one instruction") {
		t.Errorf("exit code %d, stderr %s, want a warning", got.code, got.stderr)
	}
	if got := stackglass("simulate", "demo:matmul-naive", "--cache", "L1=2KiB,4", "--pages", "2MiB"); got.code != 2 || !strings.Contains(got.stderr, "needs a hierarchy with TLBs") {
		t.Errorf("exit code %d, stderr %s, want an error", got.code, got.stderr)
	}
}

// TestSimulateBaseline checks that --baseline lists the counts of two separate simulations: of the
// hierarchy with LRU replacement and without prefetchers, and of the hierarchy as given.
func TestSimulateBaseline(t *testing.T) {
	for _, c := range []struct{ file, plain, given string }{
		{"demo:matmul-naive", "--cache L1=2KiB,4 --cache L2=16KiB,8", "--cache L1=2KiB,4,drrip,prefetch=stream:degree=2 --cache L2=16KiB,8,random"},
		{"demo:matmul-blocked", "--cache L1=2KiB,4 --cache L2=16KiB,8,exclusive", "--cache L1=2KiB,4,prefetch=stride --cache L2=16KiB,8,exclusive,plru"},
		{"demo:false-sharing", "--cache L1=1KiB,2 --cache L2=4KiB,full,shared=2", "--cache L1=1KiB,2,fifo,prefetch=next-line --cache L2=4KiB,full,shared=2"},
		{"demo:array-list", "--cache L1=4KiB,8,write-through", "--cache L1=4KiB,8,write-through"},
	} {
		levels := func(caches string, more ...string) map[string]map[string]float64 {
			counts := map[string]map[string]float64{}
			for _, number := range []string{"accesses", "hits", "misses", "miss_ratio"} {
				counts[number] = map[string]float64{}
				for name, text := range csvColumn(t, append(words("simulate "+c.file+" --format csv "+caches), more...), "name", number, nil) {
					counts[number][name], _ = strconv.ParseFloat(text, 64)
				}
			}
			return counts
		}
		plain, given, both := levels(c.plain), levels(c.given), levels(c.given, "--baseline")
		if !reflect.DeepEqual(given, both) {
			t.Errorf("%s: with --baseline, the levels are %v, want %v", c.given, both, given)
		}
		got := stackglass(words("simulate " + c.file + " --baseline --format json " + c.given)...)
		var answer struct {
			Against []struct {
				Name, Number     string
				A, B, Difference float64
			}
		}
		if err := json.Unmarshal([]byte(got.stdout), &answer); err != nil || got.code != 0 {
			t.Fatalf("%v: %v", err, got)
		}
		found := 0
		for _, row := range answer.Against {
			a, known := plain[row.Number][row.Name]
			if b := given[row.Number][row.Name]; known && (row.A != a || row.B != b || row.Difference != b-a) {
				t.Errorf("%s: %s of %s: %v, want A = %v and B = %v", c.given, row.Number, row.Name, row, a, b)
			}
			if known {
				found++
			}
		}
		if found != 4*len(given["misses"]) {
			t.Errorf("%s: %d numbers of levels, want %d", c.given, found, 4*len(given["misses"]))
		}
	}
}

// TestInstructionCachesWithoutFetches checks that instruction caches and instruction TLBs never
// disappear from the answer silently. Caches that the user lists cause a warning. The instruction
// cache of a preset is listed among the facts.
func TestInstructionCachesWithoutFetches(t *testing.T) {
	inFolder(t, map[string]string{"data.din": "0 1000\n1 2000\n", "all.din": "2 400\n0 1000\n", "small.txt": "L1I=1KiB,2,instructions\nL1D=1KiB,2\n"})
	const none, record = "because the trace has no instruction fetches", "stackglass trace --with valgrind"
	for line, words := range map[string][]string{
		"data.din --cache L1I=1KiB,2,instructions --cache L1D=1KiB,2":                                                              {"not simulated: L1I, " + none, record},
		"data.din --cache L1I=1KiB,2,instructions --cache L1D=1KiB,2 --cache ITLB=4,full,tlb,instructions --cache DTLB=4,full,tlb": {"not simulated: L1I, ITLB, " + none, record},
		"data.din --cache L1D=1KiB,2 --cache ITLB=4,full,tlb,instructions --cache DTLB=4,full,tlb":                                 {"not simulated: ITLB, " + none, record},
		"data.din --hierarchy small.txt":                                               {"not simulated: L1I, " + none, record},
		"data.din --I1 1024,2,64 --D1 1024,2,64 --LL 4096,4,64":                        {"not simulated: I1, " + none, record},
		"all.din --cache L1I=1KiB,2,instructions --cache L1D=1KiB,2 --kinds data":      {"not simulated: L1I, because --kinds excludes instruction fetches"},
		"all.din --cache L1I=1KiB,2,instructions --cache L1D=1KiB,2 --skip 1":          {"not simulated: L1I, because the selected part of the trace has no instruction fetches", record},
		"all.din --cache L1I=1KiB,2,instructions --cache L1D=1KiB,2":                   nil,
		"all.din --cache L1I=1KiB,2,instructions --cache L1D=1KiB,2 --cache L2=4KiB,2": nil,
		"data.din --hierarchy i7-6700":                                                 nil,
	} {
		expectExit(t, stackglass(append([]string{"simulate"}, strings.Fields(line)...)...), exitOK, words...)
	}
	got := stackglass("simulate", "data.din", "--hierarchy", "i7-6700")
	if !strings.Contains(got.stdout, "not simulated  L1I, ITLB (the trace has no instruction fetches)") || strings.Contains(got.stdout, "ITLB2M") {
		t.Errorf("a preset without instruction fetches:\n%s", got.stdout)
	}
	got = stackglass("simulate", "data.din", "--cache", "L1I=1KiB,2,instructions", "--cache", "L1D=1KiB,2", "--format", "json")
	var document struct{ Warnings []string }
	if err := json.Unmarshal([]byte(got.stdout), &document); err != nil || len(document.Warnings) != 1 || !strings.Contains(document.Warnings[0], "not simulated: L1I") {
		t.Errorf("JSON: %v, warnings %q, want one", err, document.Warnings)
	}
}

// TestWarmupThatNeverEnds checks that the answer contains a warning if no reference follows the
// warm-up. With --warmup, the warm-up of a configuration file is ignored.
func TestWarmupThatNeverEnds(t *testing.T) {
	const caches = "L1I { type instruction core 0 size 1K assoc 2 parent LL }\nL1D { type data core 0 size 1K assoc 2 parent LL }\nLL { size 4K assoc 4 }\n"
	inFolder(t, map[string]string{
		"a.din":     "0 1000\n1 2000\n2 400\n0 1000\n",
		"share.txt": "num_cores 1\nwarmup_fraction 0.5\nsim_refs 20000\n" + caches, "count.txt": "num_cores 1\nwarmup_refs 5\n" + caches, "equal.txt": "num_cores 1\nwarmup_refs 4\n" + caches, "less.txt": "num_cores 1\nwarmup_refs 3\n" + caches,
	})
	for line, words := range map[string][]string{
		"--hierarchy share.txt":            {"a.din: the warm-up did not end: it ends when 50% of 64 lines of LL are filled, but the trace fills only 3 lines", "include all references", "--warmup N"},
		"--hierarchy count.txt":            {"a.din: the warm-up did not end: the simulation ended after 4 references", "include all references"},
		"--hierarchy equal.txt":            {"the warm-up ends with the last reference, so no reference is counted"},
		"--hierarchy less.txt":             nil,
		"--hierarchy share.txt --warmup 2": nil,
		"--cache L1=1KiB,2 --warmup 2":     nil,
		"--cache L1=1KiB,2 --warmup 9":     {"a.din: the warm-up did not end: the simulation ended after 3 references"},
		"--cache L1=1KiB,2 --warmup 3":     {"the warm-up ends with the last reference, so no reference is counted"},
	} {
		expectExit(t, stackglass(append([]string{"simulate", "a.din"}, strings.Fields(line)...)...), exitOK, words...)
	}
	got := levelsOf(t, "simulate a.din --hierarchy share.txt --warmup 2 --format csv")
	if got[0]["accesses"] != "1" || got[1]["accesses"] != "1" {
		t.Errorf("after a warm-up of 2 references: %v, want one access to each first-level cache", got)
	}
}

// TestStrideByInstructionAddress checks that stride prefetchers know each reference's instruction if
// the trace contains addresses of instructions, but no sites. Two instructions with different
// strides access alternate lines, so a prefetcher that cannot distinguish them prefetches nothing.
func TestStrideByInstructionAddress(t *testing.T) {
	text := strings.Builder{}
	text.WriteString("addr,rw,size,pc\n")
	for i := range 50 {
		text.WriteString(strconv.Itoa(64*i) + ",r,4,4096\n" + strconv.Itoa(1<<20+128*i) + ",r,4,4100\n")
	}
	inFolder(t, map[string]string{"a.csv": text.String()})
	got := stackglass("simulate", "a.csv", "--cache", "L1=2KiB,4,prefetch=stride", "--format", "json")
	var document struct {
		Prefetch []struct{ Useful int }
		Warnings []string
	}
	if err := json.Unmarshal([]byte(got.stdout), &document); err != nil || got.code != 0 {
		t.Fatalf("exit %d, %v: %s", got.code, err, got.stderr)
	}
	if len(document.Prefetch) != 1 || document.Prefetch[0].Useful < 90 || len(document.Warnings) > 0 {
		t.Errorf("%+v, want at least 90 useful prefetches and no warning", document)
	}
}

// TestSimulateRange checks that the counts of a part of the run equal the counts up to the end of
// the part minus the counts up to its beginning.
func TestSimulateRange(t *testing.T) {
	const command = "simulate demo:matmul-naive --cache L1=2KiB,4,plru --cache L2=8KiB,4 --format csv"
	ends := map[string]string{"": "0", "10%": "6656", "35%": "23296", "10000": "10000", "6656": "6656", "23296": "23296", "50.5%": "33613", "1e9": ""}
	limited := func(n string) []map[string]string {
		switch n {
		case "0":
			return []map[string]string{{}, {}}
		case "":
			return levelsOf(t, command)
		}
		return levelsOf(t, command+" --limit "+n)
	}
	for _, part := range []string{"10%..35%", "..10%", "6656..23296", "10000..50.5%", "35%..1e9", "10%.."} {
		low, high, _ := strings.Cut(part, "..")
		if high == "" {
			high = "1e9"
		}
		got, before, after := levelsOf(t, command+" --range "+part), limited(ends[low]), limited(ends[high])
		for i := range got {
			for _, column := range []string{"accesses", "hits", "misses", "write_backs"} {
				from, _ := strconv.Atoi(before[i][column])
				if want := number(t, after[i][column]) - from; number(t, got[i][column]) != want {
					t.Errorf("--range %s, level %d: %s %s, want %d", part, i+1, got[i][column], column, want)
				}
			}
		}
	}
	a := simulatedAnswer{t, nil}
	answer := stackglass(strings.Fields(strings.Replace(command, "csv", "json", 1) + " --cache DTLB=4,full,tlb --range 10%..35%")...)
	if err := json.Unmarshal([]byte(answer.stdout), &a.tables); err != nil || a.cellNumber("tlbs", "DTLB", "accesses") != 23296-6656 {
		t.Errorf("the TLB does not count 16640 accesses (%v):\n%s", err, answer.stdout)
	}
	if !strings.Contains(answer.stdout, `"from_reference": 6656, "to_reference": 23296`) {
		t.Errorf("the answer does not contain the part:\n%s", answer.stdout)
	}
	inFolder(t, map[string]string{"a.din": "0 1000\n1 2000\n2 400\n0 1000\n", "settings.txt": "warmup_refs 1\nsim_refs 1\nL1 { core 0 size 1K assoc 2 }\n"})
	for line, words := range map[string][]string{
		"--range 1..2":             nil,
		"--range 50%..100%":        nil,
		"--range 3..9":             {"the part begins after the last reference: a.din has only 3 references"},
		"--range 2..1":             {"range", "10%..35%"},
		"--range 10":               {"range", "10%..35%"},
		"--range=":                 {"range", "10%..35%"},
		"--range 1..2 --warmup 1":  {"--range and --warmup cannot be combined"},
		"--range 1..200% --skip 2": {"the part begins after the last reference: a.din has only 1 reference"},
	} {
		code := exitUsage
		if words == nil {
			code = exitOK
		}
		expectExit(t, stackglass(append([]string{"simulate", "a.din", "--cache", "L1=1KiB,2"}, strings.Fields(line)...)...), code, words...)
	}
	if got := levelsOf(t, "simulate a.din --hierarchy settings.txt --kinds all --range 1..4 --format csv"); got[0]["accesses"] != "3" {
		t.Errorf("with the settings of a file, %s accesses are counted, want 3", got[0]["accesses"])
	}
	expectExit(t, stackglass("simulate", "-", "--cache", "L1=1KiB,2", "--range", "10%..35%"), exitUsage, "which is unknown for a trace from standard input")
}

// markedTrace returns a container with loads of the lines in the text. A word that begins with +
// begins a region, and the word - ends the latest region.
func markedTrace(t *testing.T, text string) string {
	t.Helper()
	p := &trace.Program{Modules: []trace.Module{{Name: "m"}}}
	for i, kind := range []trace.Kind{trace.Load, trace.RegionBegin, trace.RegionEnd} {
		p.Blocks = append(p.Blocks, trace.Block{Function: trace.NoFunction, Flags: trace.Synthetic, FirstSite: uint32(i), Sites: 1})
		p.Sites = append(p.Sites, trace.Site{Kind: kind, Block: uint32(i)})
	}
	p.Sites[0].Bytes = 8
	var out bytes.Buffer
	w, tags := sgt.NewWriter(&out, 64, nil), 0
	must(w.Module(sgt.AppendModule(nil, p)))
	for i, word := range strings.Fields(text) {
		block, values := uint32(2), []uint64(nil)
		if name, begins := strings.CutPrefix(word, "+"); begins {
			w.Tags(tags, []string{name})
			block, values = 1, []uint64{uint64(tags)}
			tags++
		} else if word != "-" {
			block, values = 0, []uint64{uint64(number(t, word)) * 64}
		}
		must(w.Step(1, uint64(i+1), block, values))
	}
	must(w.Close(sgt.End{How: "exit"}))
	return out.String()
}

// TestSimulateRegion checks that --region counts only references in regions with this name, with
// caches that all references fill.
func TestSimulateRegion(t *testing.T) {
	inFolder(t, map[string]string{"a.sgt": markedTrace(t, "1 2 +solve 1 3 +inner 2 4 - - 5 +solve 5 6 - +other 7 -"), "none.sgt": markedTrace(t, "1 2"), "a.din": "0 1000\n"})
	const command = "simulate a.sgt --cache L1=2KiB,full --format csv --region "
	for name, want := range map[string][2]string{"solve": {"6", "3"}, "inner": {"2", "1"}, "other": {"1", "1"}} {
		if got := levelsOf(t, command+name); got[0]["accesses"] != want[0] || got[0]["misses"] != want[1] {
			t.Errorf("%s: %v, want %s accesses and %s misses", name, got[0], want[0], want[1])
		}
	}
	got := stackglass(strings.Fields(strings.Replace(command, "csv", "json", 1) + "solve --cache DTLB=4,full,tlb")...)
	a := simulatedAnswer{t, nil}
	if err := json.Unmarshal([]byte(got.stdout), &a.tables); err != nil || a.cellNumber("tlbs", "DTLB", "accesses") != 6 || !strings.Contains(got.stdout, `"region": "solve", "counted_references": 6`) {
		t.Errorf("%v, exit %d: %s%s", err, got.code, got.stdout, got.stderr)
	}
	for line, words := range map[string][]string{
		"a.sgt --region=":                   {"--region: the name is empty"},
		"a.sgt --region sove":               {"a.sgt has no region with this name; the regions are inner, other, solve"},
		"none.sgt --region solve":           {"none.sgt has no marked regions", "stackglass_begin"},
		"a.din --region solve":              {"a.din has no marked regions"},
		"a.sgt --region solve --range 1..2": {"--region and --range cannot be combined"},
		"a.sgt --region solve --warmup 2":   {"--region and --warmup cannot be combined"},
		"a.sgt --region solve --skip 2":     {"omit --skip"},
	} {
		expectExit(t, stackglass(append([]string{"simulate", "--cache", "L1=1KiB,2"}, strings.Fields(line)...)...), exitUsage, words...)
	}
}
