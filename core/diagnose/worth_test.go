package diagnose

import (
	"strings"
	"testing"
)

// TestFindingsWorthReading: findings with small savings are omitted unless no other finding
// explains why the run waits.
func TestFindingsWorthReading(t *testing.T) {
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
		t.Errorf("%q with %d findings, want only the finding that was tried", d.Verdict(), len(d.Findings))
	}
	if d := run(4e5, small); len(d.Findings) != 1 || !strings.HasSuffix(d.Verdict(), "may save up to 4 %") {
		t.Errorf("%q with %d findings, want only the small finding", d.Verdict(), len(d.Findings))
	}
	if d := run(5e4, small); len(d.Findings) != 0 {
		t.Errorf("%d findings in a run that does not wait, want none", len(d.Findings))
	}
	d := run(4e5, second, small, third)
	if len(d.Findings) != 1 || d.Findings[0].Line != 9 || d.Findings[0].Why != "no order; the same holds for lines 7 and 8" || d.Findings[0].Most != 12e4 {
		t.Errorf("%+v, want one finding at line 9", d.Findings)
	}
	next := small
	next.Line, next.Saved, next.Data = 11, 6e3, "entry"
	if d := run(4e5, small, next); len(d.Findings) != 1 || d.Findings[0].Line != 11 || d.Findings[0].Data != "table, entry" {
		t.Errorf("%+v, want one finding at line 11", d.Findings)
	}
}

// TestSourceFunction: functions made by the compiler are shown with the name of the enclosing
// function.
func TestSourceFunction(t *testing.T) {
	for name, want := range map[string]string{
		"dot.omp_outlined": "dot", "main.omp_outlined_debug__.omp_outlined": "main", "solve_..omp_par": "solve_",
		".omp_outlined.": ".omp_outlined.", "std::sort<int*>(int*, int*)": "std::sort<int*>(int*, int*)", "": "",
	} {
		if got := sourceFunction(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
