package answers

import (
	"errors"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
)

// Translation returns two tables about the TLBs of a hierarchy: the hits and misses of each TLB for
// the hierarchy's page size, and the page walks for each page size. Without TLBs, there are no
// tables. The warnings contain the reasons why misses cannot be predicted, and the caveats of the
// predictions.
func Translation(a *hierarchy.Asker, h hierarchy.Hierarchy) (tables []report.Table, warnings []hierarchy.Warning) {
	if len(h.TLBs) == 0 {
		return nil, nil
	}
	chosen, err := a.Translate(h)
	if err != nil {
		return nil, []hierarchy.Warning{"the misses of the TLBs are not predicted: a prediction needs " + needOf(err)}
	}
	warnings = h.TranslationDoubts()
	tlbs := report.Table{Key: "tlbs", Title: "Address translation of data", Columns: report.Columns(
		"name=TLB", "entries", "ways", "page_bytes=page", "accesses", "hits", "misses", "miss_ratio=miss ratio", "method")}
	exact := true
	for _, l := range chosen.Levels {
		exact = exact && l.Method == hierarchy.Exact
		tlbs.Add(report.TextOf(l.Cache.Name), report.Count(l.Cache.Lines()), Ways(uint64(l.Cache.Ways)), report.Bytes(h.PageSize()),
			numberCell(l.Accesses, exact), numberCell(l.Hits, exact), numberCell(l.Misses, exact), report.Quotient(l.Misses, l.Accesses), report.TextOf(string(l.Method)))
	}
	walks := report.Table{Key: "page_walks", Title: "Page walks by page size", Columns: report.Columns(
		"page_bytes=page", "walks=page walks", "per_kilo_reference=per 1,000 references", "saved=page walks avoided")}
	for _, page := range profile.PageSizes {
		of := h
		of.PageBytes = page
		p, err := a.Translate(of)
		if err != nil || len(p.Levels) == 0 {
			walks.Add(report.Bytes(page), report.None(), report.None(), report.None())
			if err != nil {
				warnings = append(warnings, hierarchy.Warning("the page walks for pages of "+hierarchy.FormatSize(page)+" are not predicted: a prediction needs ")+needOf(err))
			}
			continue
		}
		saved := report.None()
		if page > h.PageSize() && chosen.MemoryAccesses > 0 {
			saved = report.Ratio(1 - p.MemoryAccesses/chosen.MemoryAccesses)
		}
		walks.Add(report.Bytes(page), numberCell(p.MemoryAccesses, exactTo(&p, len(p.Levels))), cellIfKnown(p.PerKiloReference(p.MemoryAccesses), p.References > 0), saved)
	}
	return []report.Table{tlbs, walks}, warnings
}

// needOf returns what a prediction of TLB misses needs.
func needOf(err error) hierarchy.Warning {
	var option *trace.OptionError
	if errors.As(err, &option) {
		return hierarchy.Warning(option.Want)
	}
	return hierarchy.Warning(err.Error())
}
