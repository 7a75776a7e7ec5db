package answers

import (
	"slices"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
)

// Choices returns a table for each part of a hierarchy that users choose from a list. The title
// names the part. Each row contains a line that [hierarchy.Hierarchy.Add] accepts, the title of the
// option, and whether the option is chosen.
func Choices(h hierarchy.Hierarchy) (tables []report.Table) {
	if len(h.TLBs) == 0 {
		return nil
	}
	t := report.Table{Key: "choices", Title: "page size", Columns: report.Columns("name", "title", "chosen")}
	sizes := profile.PageSizes[:]
	if !slices.Contains(sizes, h.PageSize()) {
		sizes = append(slices.Clone(sizes), h.PageSize())
		slices.Sort(sizes)
	}
	for _, page := range sizes {
		size := hierarchy.FormatSize(page)
		number, unit := size[:len(size)-3], size[len(size)-3:]
		t.Add(report.TextOf("pages="+size), report.TextOf(number+" "+unit), report.YesNo(page == h.PageSize()))
	}
	return append(tables, t)
}
