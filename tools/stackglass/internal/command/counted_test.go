package command

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

// TestCountsOfCompiledProgram checks the counts of a matrix multiplication. The program is
// compiled with -O0, so that the expected counts can be derived from its source.
func TestCountsOfCompiledProgram(t *testing.T) {
	sizes := []int{1, 2, 17} // the first compiler is tested with all sizes, and the others only with the last size
	for _, compiler := range []string{"clang-19", "clang-14", "clang"} {
		if _, err := exec.LookPath(compiler); err != nil {
			continue
		}
		t.Setenv("XDG_CACHE_HOME", t.TempDir()) // a new cache, so that the runtime is compiled only once for all sizes
		for _, n := range sizes {
			t.Run(compiler+" "+strconv.Itoa(n), func(t *testing.T) { checkMultiply(t, compiler, n) })
		}
		sizes = sizes[len(sizes)-1:]
	}
	if len(sizes) > 1 {
		t.Skip("no clang is installed, so no program can be compiled and traced")
	}
}

func checkMultiply(t *testing.T, compiler string, n int) {
	dir := t.TempDir()
	program, trace := filepath.Join(dir, "multiply"), filepath.Join(dir, "multiply.sgt")
	if got := stackglass("cc", "--", compiler, "-O0", "-g", "-DN="+strconv.Itoa(n), "testdata/compile/multiply.c", "-o", program); got.code != 0 {
		t.Fatalf("compiling: %s", got)
	}
	run := exec.Command(program)
	run.Env = append(os.Environ(), "STACKGLASS_OUT="+trace, "STACKGLASS_QUIET=1")
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("running: %v\n%s", err, out)
	}
	got := countersOf(t, trace)
	cells := uint64(n) * uint64(n)
	products := cells * uint64(n)
	tests := products + 2*cells + 2*uint64(n) + 1 // tests: i < N, j < N, k < N
	steps := products + cells + uint64(n)         // increments: k++, j++, i++
	ints := tests + steps + 6*products            // there are 6 index loads per product
	intStores := steps + cells + uint64(n) + 2    // the other stores initialise k, j and i, and write main's result
	for counter, want := range map[string]uint64{
		"flops":                2 * products,
		"loads":                3*products + ints,
		"stores":               products + intStores,
		"bytes_loaded":         3*products*8 + ints*4,
		"bytes_stored":         products*8 + intStores*4,
		"branches_conditional": tests,
		"returns":              2,
		"calls":                1,
		"memset_calls":         1,
		"memset_bytes":         8 * cells,
		"memmove_calls":        0,
		"unique_bytes":         3*8*cells + 4*4, // the matrices, the variables i, j and k, and main's result
	} {
		if got.sums[counter] != want {
			t.Errorf("counter %s = %d, want %d", counter, got.sums[counter], want)
		}
	}
	if f := got.functions["multiply"]; f.Invocations != 1 || f.Flops != 2*products || f.UniqueBytes != 3*8*cells+3*4 {
		t.Errorf("multiply: %+v", f)
	}
	if f := got.functions["main"]; f.Invocations != 1 || f.Flops != 0 || f.UniqueBytes != 8*cells+4 {
		t.Errorf("main: %+v", f)
	}
}

// countersAnswer is a parsed answer of the verb "counters".
type countersAnswer struct {
	sums      map[string]uint64
	functions map[string]countedFunction
}

type countedFunction struct {
	Function    string
	Invocations uint64
	UniqueBytes uint64 `json:"unique_bytes"`
	Flops       uint64
}

func countersOf(t *testing.T, file string) countersAnswer {
	t.Helper()
	c := countersAnswer{sums: map[string]uint64{}, functions: map[string]countedFunction{}}
	var program struct {
		Counters []struct {
			Counter string
			Count   uint64
		}
	}
	unmarshal(t, &program, "counters", file, "--format", "json")
	for _, row := range program.Counters {
		c.sums[row.Counter] = row.Count
	}
	var functions struct{ Functions []countedFunction }
	unmarshal(t, &functions, "counters", file, "--by", "function", "--format", "json")
	for _, f := range functions.Functions {
		c.functions[f.Function] = f
	}
	return c
}

func unmarshal(t *testing.T, into any, args ...string) {
	t.Helper()
	got := stackglass(args...)
	if got.code != 0 {
		t.Fatalf("%v: %s", args, got)
	}
	if err := json.Unmarshal([]byte(got.stdout), into); err != nil {
		t.Fatal(err)
	}
}
