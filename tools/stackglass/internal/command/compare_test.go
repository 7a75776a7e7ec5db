package command

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func init() {
	goldenCommands = append(goldenCommands,
		"compare demo:matmul-naive demo:matmul-blocked",
		"compare demo:matmul-naive demo:matmul-blocked --on what-if --cache L1=2KiB,full --cache L2=8KiB,full",
		"compare demo:matmul-naive demo:matmul-blocked --on what-if --cache L1=2KiB,full --format json --fail-if L1.misses.difference>-96%",
		"compare demo:matmul-naive demo:matmul-blocked --on diagnose --cache L1=2KiB,full --cache L2=10KiB,full",
		"compare demo:false-sharing demo:matmul-blocked --on diagnose --format csv",
		"compare demo:matmul-naive demo:matmul-blocked --on curve --sort misses --top 3 --format md",
		"compare demo:matmul-naive demo:matmul-blocked --on counters --by function --format csv",
		"compare demo:matmul-naive demo:matmul-blocked --on counters --by block --sort flops --top 4",
		"compare demo:matmul-naive demo:array-list --on histogram --kinds store",
		"compare demo:matmul-naive demo:matmul-blocked --on sites --by function --cache L1=2KiB,full",
		"compare demo:matmul-naive demo:matmul-blocked --on sites --by object --cache L1=2KiB,full --format csv",
		"compare demo:matmul-naive demo:matmul-blocked --on sets --sort misses --top 5",
		"compare demo:matmul-naive demo:matmul-blocked --on windows --sort misses_32 --top 3 --format md",
		"compare demo:matmul-naive demo:matmul-blocked --on loops --cache L1=2KiB,8 --top 4",
		"compare demo:matmul-naive demo:matmul-blocked --on blocks --by block --sort instructions --format csv",
		"compare demo:matmul-naive demo:matmul-blocked --on pipeline --hierarchy i7-6700",
		"compare demo:false-sharing demo:false-sharing-padded --on threads --by core --format md",
		"compare demo:false-sharing demo:false-sharing-padded --on simulate --cache L1=2KiB,8 --sort misses --top 1",
		"compare testdata/multicore/gemm-16.sgt testdata/multicore/gemm-32.sgt --on multicore --hierarchy sasmm --by cores --top 6",
	)
}

const pair = "compare demo:matmul-naive demo:matmul-blocked "

func words(line string) []string { return strings.Fields(line) }

// TestCompareEqualsSeparateRuns checks that a comparison contains the same numbers as a verb that
// runs on each file separately.
func TestCompareEqualsSeparateRuns(t *testing.T) {
	for _, c := range []struct{ verb, on, name, number string }{
		{"histogram", "histogram", "distance", "count"},
		{"what-if --cache L1=2KiB,full --cache L2=4KiB,full", "what-if --cache L1=2KiB,full --cache L2=4KiB,full", "name", "misses"},
		{"counters", "counters", "counter", "count"},
		{"sites --by object --cache L1=2KiB,full", "sites --by object --cache L1=2KiB,full", "name", "L1_misses"},
		{"loops", "loops", "loop", "references"},
		{"loops --cache L1=2KiB,full --loop 1.1", "loops loop=1.1 --cache L1=2KiB,full", "loop", "misses"},
		{"blocks --by opcode", "blocks --by opcode", "opcode", "count"},
		{"pipeline", "pipeline", "function", "cycles"},
		{"simulate --bound --cache L1=2KiB,8,drrip --cache L2=16KiB,8", "simulate bound=true --cache L1=2KiB,8,drrip --cache L2=16KiB,8", "name", "misses"},
	} {
		verb, options, _ := strings.Cut(c.verb, " ")
		sides := map[string]map[string]string{}
		for side, file := range map[string]string{"a": "demo:matmul-naive", "b": "demo:matmul-blocked"} {
			sides[side] = csvColumn(t, words(verb+" "+file+" --format csv "+options), c.name, c.number, nil)
		}
		for side, alone := range sides {
			on, options, _ := strings.Cut(c.on, " --")
			line := append(words(pair+"--format csv --on"), on)
			if options != "" {
				line = append(line, words("--"+options)...)
			}
			compared := csvColumn(t, line, c.name, side, func(row map[string]string) bool { return row["number"] == c.number })
			for name, want := range alone {
				if compared[name] != want {
					t.Errorf("%s: %s of %s in %s is %s, want %s", verb, c.number, name, side, compared[name], want)
				}
			}
			for name, got := range compared {
				if _, there := alone[name]; !there && got != "0" && got != "" {
					t.Errorf("%s: %s of %s is %s in %s, which has no such row; want 0 or no value", verb, c.number, name, got, side)
				}
			}
		}
	}
}

// csvColumn returns the values in one column of a command's CSV output, keyed by the values in
// another column.
func csvColumn(t *testing.T, args []string, name, number string, choose func(map[string]string) bool) map[string]string {
	t.Helper()
	answer := stackglass(args...)
	rows, err := csv.NewReader(strings.NewReader(answer.stdout)).ReadAll()
	if err != nil || answer.code != 0 || len(rows) < 2 {
		t.Fatalf("%v: %d rows, %v, %v", args, len(rows), err, answer)
	}
	found := map[string]string{}
	for _, cells := range rows[1:] {
		row := map[string]string{}
		for i, key := range rows[0] {
			row[key] = cells[i]
		}
		if choose == nil || choose(row) {
			found[row[name]] = row[number]
		}
	}
	return found
}

// TestDifferencesAreExact checks that all differences in all compared tables are exact.
func TestDifferencesAreExact(t *testing.T) {
	for _, on := range []string{"summary", "histogram", "curve", "what-if --cache L1=2KiB,8", "sets", "sites", "windows", "counters", "counters --by block", "loops --cache L1=2KiB,8", "blocks", "pipeline"} {
		compareJSON(t, on, words(pair+"--format json --on "+on))
	}
	const shared = "compare demo:false-sharing demo:false-sharing-padded --format json --on "
	for _, on := range []string{"threads", "communication", "communication --cache L1=2KiB,full", "what-if --cache L1=2KiB,8 --by core", "sites"} {
		compareJSON(t, on, words(shared+on))
	}
}

// compareJSON checks the differences in a comparison in JSON.
func compareJSON(t *testing.T, on string, args []string) {
	t.Helper()
	answer := stackglass(args...)
	var tables map[string]json.RawMessage
	if err := json.Unmarshal([]byte(answer.stdout), &tables); err != nil || answer.code != 0 {
		t.Fatalf("%s: error %v; the command printed %s", on, err, answer)
	}
	lines := 0
	for _, text := range tables {
		var rows []struct {
			A, B, Difference, Change any // numbers, or strings if the compared values are texts
			Number                   string
		}
		if json.Unmarshal(text, &rows) != nil {
			continue // not a table of numbers: the schema, the input, the warnings, or a comparison of texts
		}
		for _, r := range rows {
			a, inA := r.A.(float64)
			b, inB := r.B.(float64)
			difference, _ := r.Difference.(float64)
			change, known := r.Change.(float64)
			if !inA || !inB {
				continue
			}
			lines++
			if !near(b-a, difference) {
				t.Errorf("%s: %s: difference of %v and %v = %v", on, r.Number, a, b, difference)
			}
			if known && a != 0 && !near(difference/math.Abs(a), change) {
				t.Errorf("%s: %s: relative change for a difference of %v from %v = %v", on, r.Number, difference, a, change)
			}
		}
	}
	if lines == 0 {
		t.Errorf("%s: the comparison is empty", on)
	}
}

func near(x, y float64) bool { return x-y < 0.002 && y-x < 0.002 }

func TestCompareUsageErrors(t *testing.T) {
	small := filepath.Join(t.TempDir(), "small.sgp")
	if got := stackglass("analyze", "demo:array-list", "--lines", "16", "--analyses", "locality", "-o", small); got.code != 0 {
		t.Fatal(got)
	}
	for line, want := range map[string]string{
		"compare demo:matmul-naive":      "give two traces or profiles",
		"compare - -":                    "only one of the two inputs can be read from standard input",
		pair + "--on nonsense":           `--on "nonsense", want one of summary, blocks`,
		pair + "--by function":           "--by applies to --on blocks, calls, communication, counters, measured, multicore, sites, threads, what-if, not to --on summary",
		pair + "--cache L1=2KiB,8":       "--cache applies to --on calls, communication, data, diagnose, loops, measured, multicore, pipeline, simulate, sites, threads, timeline, what-if, not to --on summary",
		pair + "--on what-if":            "no caches are given",
		pair + "--on what-if --line 32":  "not to --on what-if",
		pair + "--on counters --line 32": "not to --on counters",
		pair + "--on curve --line 48":    "48",
		pair + "--sort nonsense":         `--sort "nonsense", want one of accesses`,
		pair + "--format xml":            `format "xml"`,
		pair + "--on sites --by seven":   `--by "seven", want one of site, line`,
		"compare " + small + " demo:matmul-naive --on sets --line 16":                              "no set tables",
		"compare ../../../../core/trace/tracetest/testdata/small.din demo:matmul-naive --on sites": "contains neither sites nor instruction addresses",
		pair + "--on counters --by seven":                                                          `--by "seven"`,
		"compare " + small + " demo:matmul-naive":                                                  "have no line size in common",
		"compare " + small + " demo:matmul-naive --on curve":                                       "contains lines of 16 bytes",
		"compare " + small + " demo:matmul-naive --on what-if --cache L1=2KiB,8":                   small,
		"compare " + small + " demo:matmul-naive --on counters":                                    "no counters",
		"compare " + small + " demo:matmul-naive --kinds load":                                     "is a profile",
		pair + "--fail-if misses>1":                                                                "want ROW.NUMBER.difference>BOUND",
		pair + "--fail-if 64.misses.difference>much":                                               "want ROW.NUMBER.difference>BOUND",
		pair + "--fail-if L9.accesses.difference>1":                                                "the comparison has no row L9 with a number named accesses; want one of 64.accesses.difference",
	} {
		got := stackglass(words(line)...)
		if got.code != exitUsage || !strings.Contains(got.stderr, want) || got.stdout != "" {
			t.Errorf("%s: want %q and exit code 2, got %v", line, want, got)
		}
	}
}

func TestCompareWarnings(t *testing.T) {
	folder := t.TempDir()
	first := filepath.Join(folder, "first.sgp")
	if got := stackglass("analyze", "demo:matmul-naive", "--limit", "1000", "-o", first); got.code != 0 {
		t.Fatal(got)
	}
	for line, want := range map[string]string{
		"compare " + first + " demo:matmul-naive":                                            "A has at most 1000 references from number 0, B has the whole trace",
		"compare demo:array-list demo:array-list":                                            "are the same run",
		pair + "--on what-if --cache L1=2KiB,full":                                           "",
		pair + "--on counters --by function":                                                 "functions are matched by name only",
		"compare testdata/threads.sgt demo:matmul-naive":                                     "",
		"compare ../../../../core/byfl/testdata/table2.byfl demo:matmul-naive --on counters": "Byfl",
		"compare demo:array-list testdata/threads.sgt":                                       "",
		"compare ../../../../core/trace/tracetest/testdata/small.din demo:array-list":        "A has the format din (no access sizes), B has the format sgt",
	} {
		got := stackglass(words(line)...)
		if got.code != 0 || (want == "") != (got.stderr == "") || !strings.Contains(got.stderr, want) {
			t.Errorf("%s: want the warning %q, got %s", line, want, got.stderr)
		}
	}
}

func TestBoundsOnDifferences(t *testing.T) {
	for text, broken := range map[string]bool{
		"64.accesses.difference>7167":          true,
		"64.accesses.difference>7168":          false,
		"64.accesses.difference>=7168":         true,
		"64.accesses.difference>10%":           true,
		"64.accesses.difference>11%":           false,
		"64.half_within_lines.difference<0":    true,
		"64.half_within_lines.difference<-73%": false,
		"store.references.difference>299.9%":   true,
		"*.references.difference<0":            false,
		"*.lines.difference>0":                 false,
		" loads.count.difference <= 4096 ":     true,
	} {
		got := stackglass(append(words(pair), "--fail-if", text)...)
		if want := map[bool]int{true: exitBudget, false: exitOK}[broken]; got.code != want || broken != strings.Contains(got.stderr, strconv.Quote(text)) {
			t.Errorf("%s: exit code %d, want %d: %s", text, got.code, want, got.stderr)
		}
	}
	// A change from 0 exceeds every bound. The name of a row may contain any characters.
	for _, text := range []string{"*.flops.difference>1000000%", "main/for.body24.loads.difference>5"} {
		if got := stackglass(append(words(pair+"--on counters --by block"), "--fail-if", text)...); got.code != exitBudget {
			t.Errorf("%s: %v", text, got)
		}
	}
	for text, want := range map[string]bound{
		"operator<.misses.difference<=-2.5%": {row: "operator<", percent: true, budget: budget{metric: "misses", ops: "<=", bound: -2.5}},
		"a.c/7.misses.difference>1e3":        {row: "a.c/7", budget: budget{metric: "misses", ops: ">", bound: 1000}},
	} {
		want.text, want.level = text, -1
		if got, ok := parseBound(text); got != want || !ok {
			t.Errorf("parseBound(%s) = %+v", text, got)
		}
	}
}

// TestCompareProfiles checks that a comparison of profiles equals the comparison of their traces.
func TestCompareProfiles(t *testing.T) {
	folder := t.TempDir()
	var kept []string
	for _, name := range []string{"matmul-naive", "matmul-blocked"} {
		path := filepath.Join(folder, name+".sgp")
		if got := stackglass("analyze", "demo:"+name, "-o", path); got.code != 0 {
			t.Fatal(got)
		}
		kept = append(kept, path)
	}
	for _, on := range []string{"summary", "curve", "what-if --cache L1=2KiB,full"} {
		traces := stackglass(words(pair + "--format csv --on " + on)...)
		profiles := stackglass(append([]string{"compare", kept[0], kept[1], "--format", "csv", "--on"}, words(on)...)...)
		if traces.stdout != profiles.stdout || traces.code != 0 {
			t.Errorf("%s: comparison of profiles:\n%v\ncomparison of traces:\n%v", on, profiles, traces)
		}
	}
}

// TestCompareSetsListsEveryCache checks that both compared tables contain every number of sets and
// ways.
func TestCompareSetsListsEveryCache(t *testing.T) {
	got := stackglass(words(pair + "--on sets --format csv")...)
	if rows := strings.Count(got.stdout, ",misses,"); got.code != 0 || rows != 17*32 || strings.Count(got.stdout, ",both,") != 2*rows {
		t.Errorf("%d numbers of sets and ways, want %d, all of them in both tables: %v", rows, 17*32, got)
	}
}

// TestParseBound checks that a bound is parsed correctly, whatever the name of its row is.
func TestParseBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		row := rapid.StringMatching(`[a-z<>=.%/ ]*[a-z]`).Draw(t, "row")
		want := bound{row: row, percent: rapid.Bool().Draw(t, "percent")}
		want.level = -1
		want.metric = rapid.StringMatching(`[a-z_0-9]+`).Draw(t, "number")
		want.ops = rapid.SampledFrom([]string{">", ">=", "<", "<="}).Draw(t, "operator")
		want.bound = rapid.Float64Range(-1e9, 1e9).Draw(t, "bound")
		want.text = strings.TrimLeft(row, " ") + "." + want.metric + ".difference" + want.ops + strconv.FormatFloat(want.bound, 'g', -1, 64)
		want.row = strings.TrimLeft(row, " ")
		if want.percent {
			want.text += "%"
		}
		if got, ok := parseBound(want.text); got != want || !ok {
			t.Fatalf("bound %q is parsed as %+v, %v", want.text, got, ok)
		}
	})
}

// TestCompareSimulateInputs checks that a comparison of simulations can read one trace from standard
// input, and that the error for a profile names the verb that reads profiles.
func TestCompareSimulateInputs(t *testing.T) {
	inFolder(t, map[string]string{"a.din": "0 1000\n1 2000\n", "b.din": "0 1000\n0 1000\n0 3000\n"})
	compare := func(input, a, b string) answer {
		var stdout, stderr strings.Builder
		code := run(t.Context(), []string{"compare", a, b, "--on", "simulate", "--cache", "L1=1KiB,2", "--format", "csv"}, strings.NewReader(input), &stdout, &stderr)
		return answer{stdout.String(), stderr.String(), code}
	}
	want := compare("", "a.din", "b.din")
	expectExit(t, want, exitOK)
	if !strings.Contains(want.stdout, "both,accesses,2,3,1") {
		t.Errorf("answer = %s, want 2 and 3 accesses", want.stdout)
	}
	got := compare("0 1000\n0 1000\n0 3000\n", "a.din", "-")
	expectExit(t, got, exitOK)
	if got.stdout != want.stdout {
		t.Errorf("with B from standard input: %s, want %s", got.stdout, want.stdout)
	}
	expectExit(t, stackglass("analyze", "a.din", "-o", "a.sgp"), exitOK)
	expectExit(t, compare("", "a.sgp", "b.din"), exitUsage, "a.sgp is a profile, but a simulation needs the trace; with a profile, run: stackglass what-if a.sgp")
	expectExit(t, compare("", "b.din", "a.sgp"), exitUsage, "run: stackglass what-if a.sgp")
}

// TestCompareSimulateInterrupted checks that an interrupted simulation is not compared, because it
// covers only a part of the run.
func TestCompareSimulateInterrupted(t *testing.T) {
	content := []byte(strings.Repeat("0 1000\n0 2000\n", 200_000))
	inFolder(t, map[string]string{"a.din": string(content)})
	for _, files := range [][]string{{"a.din", "-"}, {"-", "a.din"}} {
		ctx, interrupt := context.WithCancel(t.Context())
		done := make(chan struct{})
		stdin := &interruptingInput{Reader: bytes.NewReader(content), remaining: len(content) / 2, interrupt: interrupt, over: done}
		var stdout, stderr strings.Builder
		code := run(ctx, append([]string{"compare", "--on", "simulate", "--cache", "L1=1KiB,2"}, files...), stdin, &stdout, &stderr)
		close(done)
		expectExit(t, answer{stdout.String(), stderr.String(), code}, exitInterrupted, "interrupted")
		if stdout.Len() > 0 {
			t.Errorf("%v: printed %s, want no comparison", files, stdout.String())
		}
	}
}

// TestCompareBaselines checks that a comparison of two runs calls the baseline "before" and the
// hierarchy "after", because A and B are the runs.
func TestCompareBaselines(t *testing.T) {
	const options = " --cache L1=2KiB,4"
	got := stackglass(append(words(pair+options+",drrip --on"), "simulate baseline=true")...)
	expectExit(t, got, exitOK)
	found := map[string][]string{}
	for line := range strings.SplitSeq(got.stdout, "\n") {
		if f := strings.Fields(line); len(f) > 4 && f[0] == "L1" && f[1] == "misses" {
			found[f[2]] = f[3:5]
		}
	}
	for side, policy := range map[string]string{"before": "", "after": ",drrip"} {
		for i, run := range []string{"naive", "blocked"} {
			misses := csvColumn(t, words("simulate demo:matmul-"+run+" --format csv"+options+policy), "name", "misses", nil)["L1"]
			if got := found[side]; len(got) != 2 || strings.ReplaceAll(got[i], ",", "") != misses {
				t.Errorf("misses of %s %s = %v, want %s", run, side, got, misses)
			}
		}
	}
	if len(found["A"])+len(found["B"]) > 0 {
		t.Error("A and B also name the baseline and the hierarchy")
	}
}
