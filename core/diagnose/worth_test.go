package diagnose

import (
	"strings"
	"testing"
)

// TestSmallFindingsAreOmitted checks that findings with small savings are omitted, unless they are
// the only explanation for the run's waiting time.
func TestSmallFindingsAreOmitted(t *testing.T) {
	run := func(waiting float64, list ...Finding) *Diagnosis {
		d := &Diagnosis{Cycles: 1e6, Waits: []LevelWait{{Name: "L2", Cycles: waiting}}, Findings: list}
		d.merge()
		d.keepWorth()
		return d
	}
	tried := Finding{Kind: Stride, File: "a.c", Line: 1, Saved: 3e5, Least: 3e5, Most: 3e5, Tried: true}
	small := Finding{Kind: RandomAccess, File: "a.c", Line: 9, Saved: 5e3, Most: 4e4, Why: "no order", Data: "table"}
	second := small
	second.Line, second.Saved = 7, 4e3
	third := second
	third.Line = 8
	if d := run(4e5, tried, small); len(d.Findings) != 1 || !strings.Contains(d.Verdict(), "one change would save about 30 %") {
		t.Errorf("verdict %q with %d findings, want only the finding that was tried", d.Verdict(), len(d.Findings))
	}
	if d := run(4e5, small); len(d.Findings) != 1 || !strings.HasSuffix(d.Verdict(), "may save up to 4 %") {
		t.Errorf("verdict %q with %d findings, want only the small finding", d.Verdict(), len(d.Findings))
	}
	if d := run(5e4, small); len(d.Findings) != 0 {
		t.Errorf("%d findings in a run that does not wait, want none", len(d.Findings))
	}
	d := run(4e5, second, small, third)
	if len(d.Findings) != 1 || d.Findings[0].Line != 9 || d.Findings[0].Why != "no order; the same applies to lines 7 and 8" || d.Findings[0].Most != 12e4 {
		t.Errorf("findings are %+v, want one finding at line 9", d.Findings)
	}
	next := small
	next.Line, next.Saved, next.Data = 11, 6e3, "entry"
	if d := run(4e5, small, next); len(d.Findings) != 1 || d.Findings[0].Line != 11 || d.Findings[0].Data != "table, entry" {
		t.Errorf("findings are %+v, want one finding at line 11", d.Findings)
	}
}

// TestSourceFunction checks that functions made by the compiler are shown with the name of the
// enclosing function.
func TestSourceFunction(t *testing.T) {
	for name, want := range map[string]string{
		"dot.omp_outlined": "dot", "main.omp_outlined_debug__.omp_outlined": "main", "solve_..omp_par": "solve_",
		".omp_outlined.": ".omp_outlined.", "std::sort<int*>(int*, int*)": "std::sort<int*>(int*, int*)", "": "",
	} {
		if got := sourceFunction(name); got != want {
			t.Errorf("sourceFunction(%q) = %q, want %q", name, got, want)
		}
	}
}

// TestVerdictOfChanges checks that the verdict distinguishes the savings of changes that were tried
// from the maximum savings of changes that could not be tried.
func TestVerdictOfChanges(t *testing.T) {
	tried, second := Finding{Kind: Stride, Saved: 5e5, Tried: true}, Finding{Kind: Conflict, Saved: 1e5, Tried: true}
	range0, range3 := Finding{Kind: RandomAccess, Saved: 3e4, Most: 24e4}, Finding{Kind: Capacity, Saved: 3e4, Least: 3e4, Most: 12e4}
	for want, list := range map[string][]Finding{
		"no change that would save 1 % of the cycles was found":                                                       nil,
		"one change would save about 50 %":                                                                            {tried},
		"2 changes together would save about 60 %":                                                                    {tried, second},
		"one change that could not be tried may save up to 24 %":                                                      {range0},
		"one change would save 3 % to 12 %":                                                                           {range3},
		"2 changes together would save 3 % to 36 %":                                                                   {range0, range3},
		"2 changes that could not be tried may together save up to 48 %":                                              {range0, range0},
		"one change would save about 50 %, and another that could not be tried may save up to 24 %":                   {tried, range0},
		"2 changes together would save about 60 %, and 2 others that could not be tried may together save up to 48 %": {tried, second, range0, range0},
		"one change would save about 50 %, and another would save 3 % to 12 %":                                        {tried, range3},
		"one change would save about 90 %, because the computation would also become faster":                          {{Kind: Stride, Saved: 9e5, Tried: true}},
	} {
		d := &Diagnosis{Cycles: 1e6, Waits: []LevelWait{{Name: "L2", Cycles: 6e5}}, Findings: list}
		if got := d.changes(); got != want {
			t.Errorf("changes = %q, want %q", got, want)
		}
	}
}

// TestLargePages checks that a finding mentions pages if its source line spends most of its waiting
// time on address translation.
func TestLargePages(t *testing.T) {
	r := &run{out: &Diagnosis{Cycles: 1e6}}
	r.add(&place{file: "scan.c", wait: 10, pages: 90}, Finding{Kind: Stride, Why: "each iteration accesses another line", Fix: "interchange the loops"})
	r.add(&place{file: "scan.c", wait: 90, pages: 10}, Finding{Kind: Stride, Why: "each iteration accesses another line", Fix: "interchange the loops"})
	for i, want := range []bool{true, false} {
		if f := r.out.Findings[i]; strings.Contains(f.Why, "TLB") != want || strings.Contains(f.Fix, "pages of 2 MiB") != want {
			t.Errorf("finding %d: why = %q, fix = %q; mentions pages: want %t", i+1, f.Why, f.Fix, want)
		}
	}
}

// TestAvoidedWalks checks that a finding counts only the page walks of its source location.
func TestAvoidedWalks(t *testing.T) {
	tried := &retrial{walks: [2][]float64{{900, 50, 100, 0}, {0, 50, 50, 0}}}
	for want, sites := range map[string][]int{
		", which avoid 95 % of 1,000 page walks": {0, 2},
		", which avoid 0 % of 50 page walks":     {1},
		"":                                       {3},
	} {
		if got := tried.avoidedWalks(&place{sites: sites}); got != want {
			t.Errorf("sites %d: %q, want %q", sites, got, want)
		}
	}
}

// TestAdviceForFortran checks that the advice for a Fortran source names no C function.
func TestAdviceForFortran(t *testing.T) {
	for _, words := range []func(string) string{nonTemporal, largePages, separation} {
		for _, file := range []string{"flux.f90", "OLD.F", "src/a.f03"} {
			if text := words(file); strings.Contains(text, "__builtin") || strings.Contains(text, "madvise") || strings.Contains(text, "alignas") {
				t.Errorf("the advice for %s names a C function: %q", file, text)
			}
		}
		if words("a.c") == words("a.f90") {
			t.Errorf("C and Fortran have the same advice: %q", words("a.c"))
		}
	}
}
