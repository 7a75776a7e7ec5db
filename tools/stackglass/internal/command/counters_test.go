package command

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// multiplyProfile returns the profile of a program that multiplies two 8 × 8 matrices.
func multiplyProfile(t *testing.T, spec analysis.Spec) *profile.Profile {
	t.Helper()
	p, steps := tracetest.Multiplication(8)
	r, err := analysis.NewRunner(spec, tracetest.NewProgramReader(p, tracetest.Rows(p, steps...), 0))
	for err == nil {
		err = r.Step()
	}
	if err != io.EOF {
		t.Fatal(err)
	}
	return r.Finish(profile.State{})
}

// TestFixtureIsCurrent checks that the profile for the golden command lines is up to date.
func TestFixtureIsCurrent(t *testing.T) {
	const path = "testdata/multiply.sgp"
	want := multiplyProfile(t, analysis.Spec{Analyses: analysis.Locality | analysis.Counters}).Encode()
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s differs from the current analysis (%v); update it with -update", path, err)
	}
}

func TestCountersMessages(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, p *profile.Profile) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, p.Encode(), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	none := write("none.sgp", multiplyProfile(t, analysis.Spec{Analyses: analysis.Locality}))
	few := write("few.sgp", multiplyProfile(t, analysis.Spec{}))
	alone := write("alone.sgp", multiplyProfile(t, analysis.Spec{Analyses: analysis.Counters}))
	cut := filepath.Join(dir, "cut.byfl")
	if err := os.WriteFile(cut, []byte("BYFLBIN\x02\x00\x07Prog"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		line string
		code int
		says string
	}{
		{"counters " + none, 2, "contains no counters; analyze the trace again with --analyses locality,counters"},
		{"counters " + few, 0, "unique bytes and memory usage were not counted"},
		{"counters " + alone, 0, "bytes per flop"},
		{"curve " + alone, 2, "contains no stack distances"},
		{"counters " + cut, 3, "cut.byfl, byte 10: the file ends too early"},
		{"counters --limit 5 ../../../../core/byfl/testdata/table2.byfl", 2, "is a result of Byfl"},
		{"curve ../../../../core/byfl/testdata/table2.byfl", 3, "stackglass counters"},
		{"counters --by line " + few, 2, "want one of program, function, block"},
		{"counters --sort flops " + few, 2, "--by function or --by block"},
		{"counters --by block --sort speed " + few, 2, "want one of function, block, file"},
		{"counters", 2, "give a trace or a profile"},
		{"analyze demo:array-list --analyses flops", 2, "want one or more of locality, counters"},
	} {
		got := stackglass(strings.Fields(c.line)...)
		if got.code != c.code || !strings.Contains(got.stdout+got.stderr, c.says) {
			t.Errorf("%s: want %q and exit %d, got\n%s", c.line, c.says, c.code, got)
		}
	}
}

// Rows can be sorted by every column.
func TestEveryColumnSorts(t *testing.T) {
	for _, by := range []answers.CountersBy{answers.ByFunction, answers.ByBlock} {
		table := answers.CountersOf(&profile.Counters{}, by, "")
		for _, column := range table.Columns {
			got := stackglass("counters", "testdata/multiply.sgp", "--by", string(by), "--sort", column.Key, "--format", "csv")
			if got.code != 0 || strings.Count(got.stdout, "\n") < 3 {
				t.Errorf("counters by %s, sorted by %s: want rows, got %s", by, column.Key, got)
			}
		}
	}
}

// Even if a trace contains only references, its loads and stores are counted.
func TestCountersOfReferences(t *testing.T) {
	whole := tracetest.Of(
		tracetest.Ref{Kind: trace.Load, Addr: 8, Bytes: 8}, tracetest.Ref{Kind: trace.Modify, Addr: 8, Bytes: 4},
		tracetest.Ref{Kind: trace.Store, Addr: 100, Bytes: 200}, tracetest.Ref{Kind: trace.RangeWrite, Addr: 1000, Bytes: 50})
	r, err := analysis.NewRunner(analysis.Spec{Analyses: analysis.Counters}, tracetest.NewReader(whole, 0))
	for err == nil {
		err = r.Step()
	}
	c := r.Finish(profile.State{}).Counters
	sum := c.Program()
	calls, set := sum.Sets()
	if sum[profile.Loads] != 2 || sum[profile.BytesLoaded] != 12 || sum[profile.Stores] != 2 || sum[profile.BytesStored] != 204 ||
		calls != 1 || set != 50 || c.UniqueBytes != 8+200+50 {
		t.Errorf("unexpected counters %v or number of unique bytes %d", sum, c.UniqueBytes)
	}
	loads, stores := c.Tallied(profile.LoadTypes), c.Tallied(profile.StoreTypes)
	if len(loads) != 2 || loads[1].Size != 8 || len(stores) != 2 || stores[0].Bytes != 200 {
		t.Errorf("unexpected loads by size %+v or stores by size %+v", loads, stores)
	}
}
