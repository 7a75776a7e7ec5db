package answers

import (
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
)

// TestTranslation checks the tables for a run that touches 20 small pages twice, each time in the same
// order: with 16 entries, every access to a small page misses.
func TestTranslation(t *testing.T) {
	p := &profile.Profile{Pages: []profile.Pages{{PageBytes: 4 << 10, Accesses: 40, Cold: 20}, {PageBytes: 2 << 20, Accesses: 40, Cold: 10}, {PageBytes: 1 << 30, Accesses: 40, Cold: 1}}}
	p.Pages[0].Distances.AddN(19, 20)
	p.Pages[1].Distances.AddN(9, 10)
	p.Totals.References[trace.Load] = 40
	for _, c := range []struct {
		tlbs, page string
		misses     string // misses of the first TLB
		walks      string // page walks by page size
		saved      string
		warning    string
	}{
		{"DTLB=16,full,tlb", "4KiB", "40", "40 10 1", " 0.75 0.975", ""},
		{"DTLB=16,full,tlb", "2MiB", "10", "40 10 1", "  0.9", ""},
		{"DTLB=32,full,tlb", "4KiB", "20", "20 10 1", " 0.5 0.95", ""},
		{"DTLB=16,full,tlb,pages=4KiB STLB=16,full,tlb,pages=2MiB", "4KiB", "40", "40 10 ", " 0.75 ", ""},
		{"DTLB=4,full,tlb", "4KiB", "", "", "", "at least 8 entries"},
		{"DTLB=16,full,tlb", "64KiB", "", "", "", "4KiB, 2MiB or 1GiB"},
		{"DTLB=16,full,fifo,tlb", "4KiB", "40", "40 10 1", " 0.75 0.975", "DTLB"},
		{"DTLB=16,full,tlb,shared=2", "4KiB", "40", "40 10 1", " 0.75 0.975", "cores share this TLB"},
		{"DTLB=16,full,tlb STLB1G=1,full,tlb,pages=1GiB DTLB2M=4,full,tlb,pages=2MiB", "4KiB", "40", "40  1", "  0.975", "pages of 2MiB"},
		{"", "4KiB", "", "", "", ""},
	} {
		var h hierarchy.Hierarchy
		for line := range strings.FieldsSeq(c.tlbs) {
			if err := h.Add(line); err != nil {
				t.Fatal(err)
			}
		}
		if err := h.SetPages(c.page); err != nil {
			t.Fatal(err)
		}
		tables, warnings := Translation(hierarchy.NewAsker(p), h)
		var warning hierarchy.Warning
		for _, w := range warnings {
			warning += w
		}
		if c.walks == "" {
			if len(tables) > 0 || (warning == "") != (c.warning == "") || !strings.Contains(string(warning), c.warning) {
				t.Errorf("%s: %d tables, warning %q, want %q", c.tlbs, len(tables), warning, c.warning)
			}
			continue
		}
		if len(tables) != 2 || (warning == "") != (c.warning == "") || !strings.Contains(string(warning), c.warning) {
			t.Fatalf("%s: %d tables, warning %q", c.tlbs, len(tables), warning)
		}
		if got := tables[0].Rows[0][tables[0].Index("misses")].Plain(); got != c.misses {
			t.Errorf("%s with pages of %s: %s misses, want %s", c.tlbs, c.page, got, c.misses)
		}
		for name, want := range map[string]string{"walks": c.walks, "saved": c.saved} {
			var cells []string
			for _, row := range tables[1].Rows {
				cells = append(cells, row[tables[1].Index(name)].Plain())
			}
			if got := strings.Join(cells, " "); got != want {
				t.Errorf("%s with pages of %s: %s = %q, want %q", c.tlbs, c.page, name, got, want)
			}
		}
	}
	if _, warnings := Translation(hierarchy.NewAsker(&profile.Profile{}), hierarchy.Hierarchy{TLBs: []hierarchy.Cache{{Name: "DTLB", SizeBytes: 64 << 12, LineBytes: 1 << 12}}}); len(warnings) != 1 || !strings.Contains(string(warnings[0]), "analyse the whole trace again") {
		t.Errorf("a profile without pages: warnings %q", warnings)
	}
}

// TestAgainstPages checks that a comparison of a hierarchy with itself for larger pages contains the
// misses of the TLB and the page walks for both page sizes.
func TestAgainstPages(t *testing.T) {
	p := &profile.Profile{
		Locality: []profile.Locality{{LineBytes: 64, Kinds: []profile.KindLocality{{Cold: 40}}}},
		Pages:    []profile.Pages{{PageBytes: 4 << 10, Accesses: 40, Cold: 20}, {PageBytes: 2 << 20, Accesses: 40, Cold: 10}, {PageBytes: 1 << 30, Accesses: 40, Cold: 1}},
	}
	p.Pages[0].Distances.AddN(19, 20)
	p.Totals.References[trace.Load] = 40
	var h [2]hierarchy.Hierarchy
	var predicted [2]hierarchy.ByCore
	var translations [2][]report.Table
	asker := hierarchy.NewAsker(p)
	for i, pages := range []string{"4KiB", "2MiB"} {
		for _, line := range []string{"L1=1KiB,full", "DTLB=16,full,tlb", "pages=" + pages} {
			if err := h[i].Add(line); err != nil {
				t.Fatal(err)
			}
		}
		var err error
		if predicted[i], _, err = asker.Predict(h[i], nil); err != nil {
			t.Fatal(err)
		}
		translations[i], _ = Translation(asker, h[i])
	}
	preset := hierarchy.Presets()[0]
	small := preset
	preset.Name, preset.PageBytes = "", 2<<20
	if got, want := hierarchyText(&preset, &small), small.Name+" with pages of 2 MiB"; got != want {
		t.Errorf("a preset with another page size is called %q, want %q", got, want)
	}
	against := Against(h, predicted, translations, MainNumbers...)
	if want := "A compared with B: L1=1KiB,full with pages of 4 KiB and L1=1KiB,full with pages of 2 MiB"; against.Title != want {
		t.Errorf("title = %q, want %q", against.Title, want)
	}
	var got []string
	for _, row := range against.Rows {
		if name := row[0].Plain(); name == "DTLB" || name == "page walks" {
			got = append(got, name+" "+row[1].Plain()+" "+row[2].Plain()+" "+row[3].Plain())
		}
	}
	want := "DTLB misses 40 10, DTLB miss ratio 1 0.25, page walks page walks 40 10"
	if strings.Join(got, ", ") != want {
		t.Errorf("rows about TLBs = %s, want %s", strings.Join(got, ", "), want)
	}
}
