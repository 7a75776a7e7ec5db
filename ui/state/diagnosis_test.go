package state

import (
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/report"
)

// TestMissesOfFix checks that the page shows the misses of each level in which a fix noticeably
// changes the number of misses.
func TestMissesOfFix(t *testing.T) {
	table := report.Table{Key: "misses", Columns: report.Columns("rank", "level", "misses_before", "misses_after")}
	add := func(rank, level string, before, after uint64) {
		table.Add(report.TextOf(rank), report.TextOf(level), report.Count(before), report.Count(after))
	}
	add("1", "L1", 100_000, 20_000)
	add("1", "L2", 10_000, 9_999)
	add("1", "L3", 0, 500)
	add("2", "L1", 1_000, 999)
	text := missesOf(&table, "1")
	if !strings.HasPrefix(text, "Misses: L1") || strings.Contains(text, "L2") || !strings.Contains(text, "L3") {
		t.Errorf("change of the misses = %q, want the misses in L1 and L3", text)
	}
	if text := missesOf(&table, "2"); text != "" {
		t.Errorf("change of the misses for a fix that changes none = %q, want no text", text)
	}
}
