package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// bounds is a hand-written text that explains why some targets are not reached.
//
//go:embed bounds.md
var bounds string

// peers contains measurements of other tools.
//
//go:embed peers.md
var peers string

// write writes SPEED.md to w.
func (s *session) write(w io.Writer) {
	fmt.Fprintf(w, `# Speed

`+"`make speed`"+` generates this page (%s, %s). Each time is the median processor time of
%d whole runs, including decoding. A run that takes more than %d s is not repeated. The baseline is the textbook method in
C++, with a hash table and a Fenwick tree; the baseline reads only line numbers. To compute the memory per distinct line,
the peak memory (resident set) of a run that reads a single reference is subtracted from the peak memory of the measured
run, and the difference is divided by the number of distinct lines. The target for this memory applies only to traces that
touch at least 10^6 lines, because for smaller traces, fixed-size buffers need more memory than the lines do.
`+"`analyze, default only`"+` omits the analyses of loops and blocks, which `+"`analyze`"+` includes. The curve of a sample is
compared with the exact curve at every power of two from 32 lines upwards, with ten seeds. A trace is cache-friendly if
less than 3 %% of its accesses miss in a cache of 32 KiB.
A dash means that there is no result.
`, runtime.Version(), processor(), s.rounds, longRun)
	if s.failures != nil {
		fmt.Fprintf(w, "\nNot measured: %s.\n", strings.Join(s.failures, "; "))
	}
	s.writeTargets(w)
	fmt.Fprintf(w, "\n## Where the time is spent\n\n%s", bounds)
	s.table(w, "Traces", s.programs, []tableRow{
		{"references, millions", func(p *program) float64 { return p.references / 1e6 }, nil},
		{"distinct lines, thousands", func(p *program) float64 { return p.distinct / 1e3 }, nil},
		{"bytes per reference", func(p *program) float64 { return p.size("$TRACE") / p.references }, nil},
	})
	for _, part := range s.sections() {
		s.table(w, part.title, append(s.programs, s.demo), part.rows)
	}
	for i, title := range []string{"Processor time in seconds", "Wall time in seconds"} {
		var rows []tableRow
		for _, q := range append([]question{{name: baseline}}, questions...) {
			if !strings.HasSuffix(q.name, "one reference") {
				rows = append(rows, tableRow{q.name, func(p *program) float64 { return p.median(q.name, []func(cost) float64{cpu, wall}[i]) }, nil})
			}
		}
		s.table(w, title, s.programs, rows)
	}
	fmt.Fprintf(w, "\n## Other tools\n\n%s", peers)
}

// writeTargets writes a table that shows which targets are reached.
func (s *session) writeTargets(w io.Writer) {
	fmt.Fprint(w, "\n## Targets\n\n| | traces | target | worst | worst trace | median | best | reached |\n|---|---|---|---|---|---|---|---|\n")
	for _, part := range s.sections() {
		for _, r := range part.rows {
			for _, g := range r.goals {
				fmt.Fprintf(w, "| %s | %s | %s |\n", r.name, g.group, g.cells(append(s.programs, s.demo), r.value))
			}
		}
	}
}

// cells returns the table cells that show whether a target is reached.
func (g target) cells(programs []*program, value func(*program) float64) string {
	var list []*program
	asked, reached := 0, 0
	for _, p := range programs {
		if groups[g.group](p) {
			asked++
			if !math.IsNaN(value(p)) {
				list = append(list, p)
			}
		}
	}
	sign, better := "≥", 1.
	if g.isMaximum {
		sign, better = "≤", -1
	}
	slices.SortFunc(list, func(a, b *program) int { return cmp.Compare(better*value(a), better*value(b)) })
	for _, p := range list {
		if better*value(p) >= better*g.bound {
			reached++
		}
	}
	cells := []string{sign + " " + number(g.bound), "–", "–", "–", "–", "–"}
	if n := len(list); n > 0 {
		verdict := "yes"
		if reached < n {
			verdict = fmt.Sprintf("no: %d of %d", reached, n)
		}
		if n < asked {
			verdict += fmt.Sprintf(", %d without a result", asked-n)
		}
		copy(cells[1:], []string{number(value(list[0])), list[0].name, number(value(list[n/2])), number(value(list[n-1])), verdict})
	}
	return strings.Join(cells, " | ")
}

// table writes a table, with a column for each program that has a value in at least one row.
func (s *session) table(w io.Writer, title string, programs []*program, rows []tableRow) {
	heads := []string{""}
	var shown []*program
	for _, p := range programs {
		if slices.ContainsFunc(rows, func(r tableRow) bool { return !math.IsNaN(r.value(p)) }) {
			heads, shown = append(heads, p.name), append(shown, p)
		}
	}
	if shown == nil {
		return
	}
	fmt.Fprintf(w, "\n## %s\n\n| %s |\n|%s\n", title, strings.Join(heads, " | "), strings.Repeat("---|", len(heads)))
	for _, r := range rows {
		cells := []string{r.name}
		for _, p := range shown {
			cells = append(cells, number(r.value(p)))
		}
		fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | "))
	}
}

// number formats a figure with two or three digits.
func number(v float64) string {
	switch abs := math.Abs(v); {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "–"
	case abs == math.Trunc(abs) || abs >= 100:
		return fmt.Sprintf("%.0f", v)
	case abs >= 10:
		return fmt.Sprintf("%.1f", v)
	case abs >= 0.1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.4f", v)
}

// processor describes the machine's processor.
func processor() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	if m := regexp.MustCompile(`model name\s*: (.*)`).FindSubmatch(text); m != nil {
		return fmt.Sprintf("%[2]s with %[1]d cores", runtime.NumCPU(), m[1])
	}
	return fmt.Sprintf("%d processors", runtime.NumCPU())
}
