package command

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// falseRow is a row of the false-sharing table.
type falseRow struct {
	Object, Severity, Fix string
	Threads, Lines, Moves uint64
	PingPongs             uint64 `json:"ping_pongs"`
}

func falseRows(t *testing.T, trace string) (rows []falseRow) {
	t.Helper()
	got := stackglass("communication", filepath.Join("testdata", trace), "--false-sharing", "--format", "json")
	var answer struct {
		Rows []falseRow `json:"false_sharing"`
	}
	if err := json.Unmarshal([]byte(got.stdout), &answer); err != nil {
		t.Fatalf("%v\n%s", err, got)
	}
	return answer.Rows
}

// An array that is indexed by thread number must rank before a partitioned grid. In the grid, the
// threads share only the few lines at the borders of their parts. A grid that one thread writes and
// other threads read is not falsely shared. If each element of the array has its own line, only the
// partitioned grid may be reported.
func TestFalseSharingIsRanked(t *testing.T) {
	rows := falseRows(t, "tally.sgt")
	if len(rows) != 2 || rows[0].Object != "tally" || rows[1].Object != "field" {
		t.Fatalf("false sharing %+v, want “tally”, then “field”, and no other data structure", rows)
	}
	if f := rows[0]; f.Severity != "in this run" || f.Lines != 1 || f.Threads < 3 || f.PingPongs == 0 || f.Moves < 1000 || !strings.Contains(f.Fix, "alignas(64)") {
		t.Errorf("%+v", f)
	}
	if f := rows[1]; f.Lines < 10 || !strings.Contains(f.Fix, "rows") {
		t.Errorf("%+v", f)
	}
	if rows := falseRows(t, "tally-padded.sgt"); len(rows) != 1 || rows[0].Object != "field" {
		t.Errorf("false sharing with padding: %+v, want only “field”", rows)
	}
}

// False sharing between threads that did not run at the same time must also be reported, but with a
// lower severity.
func TestFalseSharingWithoutOverlap(t *testing.T) {
	rows := falseRows(t, "counters.sgt")
	if len(rows) != 1 || rows[0].Object != "counter" || rows[0].Severity != "possible" || rows[0].Threads != 4 || rows[0].PingPongs != 0 || rows[0].Moves != 40_000 {
		t.Errorf("false sharing %+v, want 40,000 possible moves of one line of counter", rows)
	}
	expectExit(t, stackglass("communication", filepath.Join("testdata", "counters.sgt")), exitOK, "")
	if got := stackglass("communication", filepath.Join("testdata", "counters.sgt"), "--false-sharing"); !strings.Contains(got.stdout, "Possible false sharing in counter: 4 threads write different words of the same line") ||
		!strings.Contains(got.stdout, "In this run, the threads did not overlap") {
		t.Error(got)
	}
}
