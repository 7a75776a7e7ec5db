package state

import (
	"strconv"
	"testing"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
)

// TestPagesOfTables checks that a table of at most 30 rows has one page, and that the pages of each
// table contain each row once, in order.
func TestPagesOfTables(t *testing.T) {
	for rows, pages := range map[int]int{0: 1, 1: 1, 20: 1, 21: 1, 30: 1, 31: 2, 40: 2, 41: 3, 60: 3, 61: 4} {
		table := &Table{Rows: rows, Row: func(i int) []string { return []string{strconv.Itoa(i)} }}
		if got := table.Pages(); got != pages {
			t.Errorf("a table of %d rows has %d pages, want %d", rows, got, pages)
		}
		next := 0
		for page := range table.Pages() {
			list, first := table.Page(page)
			if first != next {
				t.Errorf("page %d of %d rows begins with row %d, want %d", page, rows, first, next)
			}
			for _, row := range list {
				if row[0] != strconv.Itoa(next) {
					t.Errorf("page %d of %d rows contains row %s, want %d", page, rows, row[0], next)
				}
				next++
			}
		}
		if next != rows {
			t.Errorf("the pages contain %d of %d rows", next, rows)
		}
		if list, first := table.Page(pages + 5); first != (pages-1)*PageRows || len(list) != rows-first {
			t.Errorf("a page after the last page of %d rows has %d rows from row %d, want the last page", rows, len(list), first)
		}
	}
}

// TestUnknownUsers checks the sentence about evicted lines whose last users are counted together.
func TestUnknownUsers(t *testing.T) {
	table := report.Table{Key: "line_evictions", Columns: report.Columns("comes", "goes", "lines", "share")}
	loops := func() *Loops {
		return NewLoops(&profile.Profile{}, nil, &answers.Reply{Tables: []report.Table{table}})
	}
	add := func(comes, goes string, lines uint64) {
		table.Add(report.TextOf(comes), report.TextOf(goes), report.Count(lines), report.Share(lines, 100))
	}
	add("a.c:1", "a.c:2", 18)
	if got := loops().UnknownUsers(); got != "" {
		t.Errorf("sentence %q, although all last users are known", got)
	}
	add("a.c:1", answers.OtherUsers, 50)
	add("a.c:2", answers.OtherUsers, 32)
	if got, want := loops().UnknownUsers(), "For 82\u202f% of all evicted lines, the last user is not distinguished (“(others)”); it may be this code."; got != want {
		t.Errorf("sentence %q, want %q", got, want)
	}
}
