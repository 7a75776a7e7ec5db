package main

import (
	_ "embed" // embeds the text of the report
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/stackglass/stackglass/core/multicore"
	"github.com/stackglass/stackglass/core/oracle/validate"
)

// These files contain the report's text.
var (
	//go:embed text/intro.md
	intro string
	//go:embed text/cachegrind.md
	aboutCachegrind string
)

type printer struct {
	w   io.Writer
	err error
}

func (p *printer) say(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

// spread accumulates the mean and the maximum of absolute differences.
type spread struct {
	n        int
	sum, max float64
}

func (s *spread) add(points float64) {
	s.n++
	s.sum += math.Abs(points)
	s.max = max(s.max, math.Abs(points))
}

func (s spread) String() string {
	if s.n == 0 {
		return "–"
	}
	return fmt.Sprintf("%.3f (%.2f)", s.sum/float64(s.n), s.max)
}

// spreadOf returns the spread of the differences over all measurements that the function "pick"
// selects. The function "points" returns the difference for one measurement.
func spreadOf(all []measurement, pick func(*measurement) bool, points func(*measurement) float64) (s spread) {
	for i := range all {
		if m := &all[i]; pick(m) {
			s.add(points(m))
		}
	}
	return s
}

func first(m *measurement) float64    { return m.row.Levels[0].Error() }
func weighted(m *measurement) float64 { return m.row.Levels[0].Weighted() }
func last(m *measurement) float64     { return m.row.Levels[1].Error() }

// class describes a class of compiled programs, and selects the programs in this class.
type class struct {
	title string
	has   func(*program) bool
}

func vectorised(p *program) bool { return p.vectorised && p.level == "-O2" }

var classes = []class{
	{"Static schedules", func(p *program) bool { return !p.dynamic && !vectorised(p) }},
	{"Dynamic and guided schedules", func(p *program) bool { return p.dynamic }},
	{"Vectorised iterations", vectorised},
}

func (p *printer) summary(all []measurement) {
	for _, c := range classes {
		if !slices.ContainsFunc(all, func(m measurement) bool { return c.has(m.program) }) {
			continue
		}
		p.say("\n## %s: mean (maximum)\n", c.title)
		p.say("\n| division | caches | compiled with | L1 | L1, weighted by references | L2, global |\n|---|---|---|---|---|---|\n")
		for _, division := range divisions {
			for i, m := range machines {
				for _, level := range levels {
					pick := func(m *measurement) bool {
						return m.division == division && m.machine == i && m.program.level == level && c.has(m.program)
					}
					if s := spreadOf(all, pick, first); s.n > 0 {
						p.say("| %s | %s | %s | %s | %s | %s |\n", division, m.name, level, s, spreadOf(all, pick, weighted), spreadOf(all, pick, last))
					}
				}
			}
		}
	}
}

func (p *printer) programs(all []measurement) {
	p.say("\n## Errors by program, with loops divided among the cores by iterations: mean (maximum) over all core counts, %s\n", machines[0].name)
	p.say("\n| program | compiled with | L1 | L1, weighted by references | L2, global | difference between runs in L1 | references with 16 threads: actual, predicted |\n|---|---|---|---|---|---|---|\n")
	for _, k := range kernels {
		for _, level := range levels {
			pick := func(m *measurement) bool {
				return m.division == multicore.ByIterations && m.machine == 0 && m.program.level == level && m.program.name == k.name
			}
			s := spreadOf(all, pick, first)
			if s.n == 0 {
				continue
			}
			var row validate.Row
			for i := range all {
				if pick(&all[i]) {
					row = all[i].row
				}
			}
			differ := "–"
			if k.runs > 1 {
				differ = spreadOf(all, pick, func(m *measurement) float64 { return 100 * m.row.Levels[0].Varies.Mean }).String()
			}
			p.say("| %s | %s | %s | %s | %s | %s | %d, %d |\n", k.name, level, s, spreadOf(all, pick, weighted), spreadOf(all, pick, last), differ, row.TrueReferences, row.PredictedReferences)
		}
	}
}

// writeSteps prints a table with the error of each step of the prediction.
func (p *printer) writeSteps(all []measurement) {
	p.say("\n## Errors of the individual steps of the prediction, with loops divided among the cores by iterations: mean (maximum)\n")
	p.say("\nThe first two columns are the errors of the stack distance cache model (SDCM) relative to simulated caches, in\npercentage points of the global hit ratio. The last two columns show how the hit ratio of L1 would change if stores did not invalidate lines of other cores.\n")
	p.say("\n| caches | compiled with | SDCM, L1 | SDCM, L2 | without coherence, L1 | without coherence, L1, 16 cores |\n|---|---|---|---|---|---|\n")
	for i, m := range machines {
		for _, level := range levels {
			pick := func(m *measurement) bool {
				return m.division == multicore.ByIterations && m.machine == i && m.program.level == level
			}
			most := func(m *measurement) bool { return pick(m) && m.row.Cores == 16 }
			alone := func(m *measurement) float64 { return m.row.Levels[0].CoherenceError() }
			p.say("| %s | %s | %s | %s | %s | %s |\n", m.name, level,
				spreadOf(all, pick, func(m *measurement) float64 { return m.row.Levels[0].SDCMError() }),
				spreadOf(all, pick, func(m *measurement) float64 { return m.row.Levels[1].SDCMError() }),
				spreadOf(all, pick, alone), spreadOf(all, most, alone))
		}
	}
}

func (p *printer) againstCachegrind(all []measurement) {
	measured := func(m *measurement) bool { return m.grind != nil && m.division == multicore.ByIterations }
	if !slices.ContainsFunc(all, func(m measurement) bool { return measured(&m) }) {
		return
	}
	p.say("\n## Differences from Cachegrind: mean (maximum), %s\n", machines[0].name)
	p.say("%s", aboutCachegrind)
	p.say("\n| division | compiled with | L1: reference | L1: predicted | L2: reference | L2: predicted |\n|---|---|---|---|---|---|\n")
	for _, division := range divisions {
		for _, level := range levels {
			p.grinds(all, division, level)
		}
	}
}

func (p *printer) grinds(all []measurement, division multicore.Division, level string) {
	pick := func(m *measurement) bool { return m.grind != nil && m.division == division && m.program.level == level }
	if !slices.ContainsFunc(all, func(m measurement) bool { return pick(&m) }) {
		return
	}
	against := func(n int, truth bool) func(m *measurement) float64 {
		return func(m *measurement) float64 {
			l := &m.row.Levels[n]
			r := l.Predicted
			if truth {
				r = l.Truth
			}
			if n == 0 {
				return validate.Points(r.Local, m.grind.First())
			}
			return validate.Points(r.Global, m.grind.Last())
		}
	}
	p.say("| %s | %s | %s | %s | %s | %s |\n", division, level, spreadOf(all, pick, against(0, true)), spreadOf(all, pick, against(0, false)), spreadOf(all, pick, against(1, true)), spreadOf(all, pick, against(1, false)))
}
