package answers_test

import (
	"bytes"
	"encoding/csv"
	"io"
	"slices"
	"strconv"
	"testing"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

func multiplied(t *testing.T) *profile.Profile {
	t.Helper()
	p, steps := tracetest.Multiplication(6)
	r, err := analysis.NewRunner(analysis.Spec{Analyses: analysis.Locality | analysis.Counters}, tracetest.NewProgramReader(p, tracetest.Rows(p, steps...), 0))
	for err == nil {
		err = r.Step()
	}
	if err != io.EOF {
		t.Fatal(err)
	}
	return r.Finish(profile.State{})
}

// plainCells returns a table's cells in the format for programs, beginning with the header.
func plainCells(t *testing.T, table report.Table) [][]string {
	t.Helper()
	var out bytes.Buffer
	d := report.Document{Tables: []report.Table{table}}
	if err := d.Write(&out, report.CSV); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&out).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestEveryRowFillsItsColumns(t *testing.T) {
	p := multiplied(t)
	tables := append(answers.CounterTables(p), answers.CountersOf(p.Counters, answers.ByFunction, ""), answers.CountersOf(p.Counters, answers.ByBlock, ""))
	keys := map[string]bool{}
	for _, table := range tables {
		if table.Key == "" || keys[table.Key] || len(table.Rows) == 0 {
			t.Errorf("table %q is empty, or its key occurs twice", table.Key)
		}
		keys[table.Key] = true
		for _, row := range table.Rows {
			if len(row) != len(table.Columns) {
				t.Errorf("table %s: a row has %d cells, want %d", table.Key, len(row), len(table.Columns))
			}
		}
	}
}

// In every sort order, the rows of functions and of blocks add up to the program's totals. Rows
// that are sorted by a number are in descending order.
func TestSortedRowsAddUp(t *testing.T) {
	p := multiplied(t)
	sum := p.Counters.Program()
	for _, by := range []answers.CountersBy{answers.ByFunction, answers.ByBlock} {
		for _, column := range answers.CountersOf(p.Counters, by, "").Columns {
			rows := plainCells(t, answers.CountersOf(p.Counters, by, column.Key))
			at := slices.Index(rows[0], column.Key)
			flops := slices.Index(rows[0], "flops")
			last, total := uint64(1<<63), uint64(0)
			for _, row := range rows[1:] {
				if n, err := strconv.ParseUint(row[at], 10, 64); err == nil {
					if n > last {
						t.Errorf("by %s, sorted by %s: %d follows %d, want descending order", by, column.Key, n, last)
					}
					last = n
				}
				n, _ := strconv.ParseUint(row[flops], 10, 64)
				total += n
			}
			if total != sum[profile.Flops] {
				t.Errorf("by %s, sorted by %s: %d flops, want %d", by, column.Key, total, sum[profile.Flops])
			}
		}
	}
}

func TestNarrowCountersDropsColumns(t *testing.T) {
	whole := answers.CountersOf(multiplied(t).Counters, answers.ByBlock, "loads")
	narrow := answers.NarrowCounters(whole, "loads")
	if len(narrow.Columns) >= len(whole.Columns) || narrow.Index("loads") < 0 || narrow.Index("stores") >= 0 {
		t.Errorf("columns %+v", narrow.Columns)
	}
	at, from := narrow.Index("flops"), whole.Index("flops")
	for i := range whole.Rows {
		if !report.Equal(narrow.Rows[i][at], whole.Rows[i][from]) {
			t.Errorf("flops in row %d = %v, want %v", i, narrow.Rows[i][at], whole.Rows[i][from])
		}
	}
}

func TestReasonsForMissingCounters(t *testing.T) {
	p := multiplied(t)
	if list := answers.NotCounted(p); len(list) != 0 {
		t.Errorf("NotCounted = %q, want nothing for a profile with all counters", list)
	}
	p.Counters = &profile.Counters{}
	p.Input.Header.Sizes = false
	if list := answers.NotCounted(p); len(list) != 3 {
		t.Errorf("NotCounted = %q, want sentences about blocks, sizes and unique bytes", list)
	}
	p.Counters.Blocks = true
	if list := answers.NotCounted(p); len(list) != 3 {
		t.Errorf("NotCounted = %q, want sentences about instructions, sizes and unique bytes", list)
	}
}
