package simulate_test

import (
	"encoding/csv"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/open"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/simulate"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// run represents one run of DineroIV. A run has one row for each level in the table of expected
// results.
type run []map[string]string

// dineroRuns returns the runs of DineroIV on a trace.
func dineroRuns(t *testing.T, name string) (runs []run) {
	f, err := os.Open(filepath.Join(tracetest.DataDir(t), "truth", "dinero.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	table, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, cells := range table[1:] {
		row := map[string]string{}
		for i, column := range table[0] {
			row[column] = cells[i]
		}
		switch {
		case row["trace"] != name:
		// a second level's row follows the row of its first level
		case row["cache"] == "2level:l2-ucache":
			runs[len(runs)-1] = append(runs[len(runs)-1], row)
		default:
			runs = append(runs, run{row})
		}
	}
	return runs
}

// hierarchy returns the hierarchy of the run. Levels below the first level are non-inclusive, the
// default.
func (r run) hierarchy(t *testing.T) (h hierarchy.Hierarchy) {
	for i, row := range r {
		c := hierarchy.Cache{Name: "L" + strconv.Itoa(i+1), LineBytes: 64}
		c.SizeBytes = number(t, row["size_bytes"])
		if row["assoc"] != "full" {
			c.Ways = uint32(number(t, row["assoc"]))
		}
		h.Levels = append(h.Levels, c)
	}
	return h
}

func number(t *testing.T, text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// soak reports whether TestDineroIV simulates every run.
var soak = os.Getenv("STACKGLASS_SOAK") != ""

// TestDineroIV compares every count of DineroIV's runs, in one pass over each trace. Usually, each
// hierarchy is simulated with only one trace. With "make soak", each hierarchy is simulated with
// all traces. The counts include lines that are written back at the end.
func TestDineroIV(t *testing.T) {
	for n, name := range tracetest.RealTraces {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var runs []run
			for i, r := range dineroRuns(t, name) {
				if soak || i%len(tracetest.RealTraces) == n {
					runs = append(runs, r)
				}
			}
			var all []*simulate.Simulator
			for _, r := range runs {
				s, err := simulate.New(r.hierarchy(t), simulate.Options{})
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, s)
			}
			feed(t, name, all...)
			for i, r := range runs {
				compare(t, r, all[i].Finish())
			}
			if len(runs) == 0 {
				t.Error("no run of DineroIV was compared")
			}
		})
	}
}

// maxError is the largest permitted error of a prediction for a second level, as a share of the
// level's demand misses. The prediction assumes that the level sees every access.
const maxError = 0.01

// TestPredictDineroIV compares predictions from one profile with every run of DineroIV. Predictions
// for first levels must be exact, and predictions for second levels must be close.
func TestPredictDineroIV(t *testing.T) {
	for _, name := range tracetest.RealTraces {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asker := hierarchy.NewAsker(profileOf(t, name))
			for _, r := range dineroRuns(t, name) {
				predicted, _, err := asker.Predict(r.hierarchy(t), nil)
				if err != nil {
					t.Fatal(err)
				}
				for i, l := range predicted.Levels {
					misses := number(t, r[i]["read_misses"]) // only reads are demand misses, because writes to lower levels are write-backs
					if i == 0 {
						misses = number(t, r[i]["misses"])
					}
					off, most := math.Abs(l.Misses-float64(misses)), maxError*float64(misses)
					if i == 0 {
						most = 0
					} else {
						t.Logf("%s: %.0f misses by %s, %d by DineroIV (%.3f %%)", l.Cache, l.Misses, l.Method, misses, off/float64(misses)*100)
					}
					if off > most {
						t.Errorf("%s: predicted %.0f misses (%s), want about %d, as in the run %s", l.Cache, l.Misses, l.Method, misses, r[i]["command"])
					}
				}
			}
		})
	}
}

// profileOf analyses one of the large traces.
func profileOf(t *testing.T, name string) *profile.Profile {
	f, err := os.Open(tracetest.RealPath(t, name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	reader, err := open.Open(name, f, open.Options{})
	if err != nil {
		t.Fatal(err)
	}
	run, err := analysis.NewRunner(analysis.Spec{Analyses: analysis.Locality | analysis.Sets}, reader)
	for err == nil {
		err = run.Step()
	}
	if err != io.EOF {
		t.Fatal(err)
	}
	return run.Finish(profile.State{})
}

// feed reads one of the large traces and passes it to all simulators.
func feed(t testing.TB, name string, all ...*simulate.Simulator) {
	f, err := os.Open(tracetest.RealPath(t, name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	reader, err := open.Open(name, f, open.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := trace.NewBatch(0)
	for {
		err := reader.Next(b)
		if err == io.EOF {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		for _, s := range all {
			if err := s.Consume(b); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// compare compares a simulation result with a run of DineroIV. DineroIV also counts lines that are
// written back to a level as writes to this level. If such a write misses, no line is fetched.
func compare(t *testing.T, r run, got simulate.Result) {
	for i, l := range got.Levels {
		written := l.Run.WriteBacksReceived + l.Flush.WriteBacksReceived
		writeMisses := l.Run.WriteBackMisses + l.Flush.WriteBackMisses
		fromNext := l.Run.Misses() * 64
		if i+1 == len(got.Levels) && got.Memory.BytesRead != fromNext {
			t.Errorf("run %v: %d bytes were read from memory, want %d", r[i]["command"], got.Memory.BytesRead, fromNext)
		}
		split := got.Split
		if i > 0 {
			split = 0
		}
		for column, n := range map[string]uint64{
			"fetches":         l.Run.Accesses() + written,
			"read_fetches":    l.Run.Reads,
			"write_fetches":   l.Run.Writes + written,
			"misses":          l.Run.Misses() + writeMisses,
			"read_misses":     l.Run.ReadMisses,
			"write_misses":    l.Run.WriteMisses + writeMisses,
			"multiblock_refs": split,
			"bytes_from_next": fromNext,
			"bytes_to_next":   (l.Run.WriteBacksSent + l.Flush.WriteBacksSent) * 64,
		} {
			if want := number(t, r[i][column]); n != want {
				t.Errorf("%s of %s = %d, want %d, as in the run %s", column, l.Cache, n, want, r[i]["command"])
			}
		}
	}
}
