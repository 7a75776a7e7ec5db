package main

import (
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/stackglass/stackglass/core/multicore"
	"github.com/stackglass/stackglass/core/oracle/validate"
)

const intro = `# How accurate predictions of many cores are

<!-- Made by make multicore; DO NOT EDIT. -->

An OpenMP program was run with one thread, and with 1, 2, 4, 8 and 16. From the first run
it was predicted what the threads of the others do to caches, and simulated what they did:
their own references, one of each thread in turn between barriers. Both go through the
same simulated caches, kept coherent by MESI, so that the difference is that of the
division of work. Package core/oracle/validate says more.

Differences are in percentage points of a hit rate. L1 is private, and its rate the mean
over the cores' caches, in which all weigh the same; L2 is shared by all, and its rate the
global one, 1 - misses by all references. Means and maxima are of absolute differences over
programs and numbers of cores.

The programs are in tools/multicore/kernels, compiled by clang 19. Three classes of them
are told apart:

- With static schedules, and sections, it is settled who does what.
- With dynamic and guided ones it is not, and a machine with fewer processors than threads
  has some threads do nearly everything. So pace.c has each thread that comes for a chunk
  wait until it has used the least time, as if each had a processor of its own; which chunk
  it gets then is up to LLVM's runtime. The prediction counts references where that counts
  time. A dynamic schedule begins with a part for each thread, and who is done steals: both
  do.
- Where iterations of a worksharing loop are vectorised themselves, a prediction deals out
  the iterations that the run with one thread had, of several elements each. A thread
  with few elements has to do them one by one, and with schedule(static, 1) the compiler's
  code does so for any number of threads above 1. Or the compiler makes the loop one call
  of memcpy, which cannot be dealt out. No prediction from a run with one thread can know
  what others would have run; the command warns where parts are smaller than vectors. These
  programs, cyclic, durbin and sections, are compiled without vectors, unrolling and memcpy,
  too: then they are of the first class, in rows of their own. Outer loops, whose inner ones
  are vectorised, are not affected.

Where who does what hangs on chance, in dynamic and guided schedules and the single construct
of sections, there were five runs with as many threads: the truth is the mean over them, and
by how much they differ, at most, is in the table by program. All runs have their addresses
in the same places: nothing is placed at random, so that the same variables share lines.
With another layout rates are others, in the prediction as in the run.

Work is divided by iterations, as OpenMP does, or as the paper divides executions of
blocks (package core/papers/sasmm): as printed, or counted within each region. There
L1 is that of the traces of Algorithm 1, whose caches do not know of each other, and L2
that of Algorithm 2.

What is left of static schedules is mostly how reductions are put together. Teams of up to
four threads add to the whole atomically, and have the references that are predicted. Larger
ones add two by two, in a function that a run with one thread never calls: durbin, bfs and
histogram have more references with 16 threads than predicted, and in durbin, with a reduction
in each of 129 short regions, it shows.
`

type printer struct {
	w   io.Writer
	err error
}

func (p *printer) say(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

// spread are absolute differences.
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

// of sums what a function gives for the measurements that another picks.
func of(all []measurement, pick func(*measurement) bool, points func(*measurement) float64) (s spread) {
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

// class is a class of programs, as compiled.
type class struct {
	title string
	has   func(*program) bool
}

func vectorised(p *program) bool { return p.vector && p.level == "-O2" }

var classes = []class{
	{"Static schedules", func(p *program) bool { return !p.paced && !vectorised(p) }},
	{"Dynamic and guided schedules", func(p *program) bool { return p.paced }},
	{"Iterations that are vectorised themselves", vectorised},
}

func (p *printer) summary(all []measurement) {
	for _, c := range classes {
		if !slices.ContainsFunc(all, func(m measurement) bool { return c.has(m.program) }) {
			continue
		}
		p.say("\n## %s: mean (maximum)\n", c.title)
		p.say("\n| division | caches | compiled with | L1 | L1, by references | L2, global |\n|---|---|---|---|---|---|\n")
		for _, division := range divisions {
			for i, m := range machines {
				for _, level := range levels {
					pick := func(m *measurement) bool {
						return m.division == division && m.machine == i && m.program.level == level && c.has(m.program)
					}
					if s := of(all, pick, first); s.n > 0 {
						p.say("| %s | %s | %s | %s | %s | %s |\n", division, m.name, level, s, of(all, pick, weighted), of(all, pick, last))
					}
				}
			}
		}
	}
}

func (p *printer) programs(all []measurement) {
	p.say("\n## By program, divided by iterations: mean (maximum) over numbers of cores, %s\n", machines[0].name)
	p.say("\n| program | compiled with | L1 | L1, by references | L2, global | several runs differ in L1 by | references, of 16 threads and predicted |\n|---|---|---|---|---|---|---|\n")
	for _, k := range kernels {
		for _, level := range levels {
			pick := func(m *measurement) bool {
				return m.division == multicore.ByIterations && m.machine == 0 && m.program.level == level && m.program.name == k.name
			}
			s := of(all, pick, first)
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
				differ = of(all, pick, func(m *measurement) float64 { return 100 * m.row.Levels[0].Varies.Mean }).String()
			}
			p.say("| %s | %s | %s | %s | %s | %s | %d, %d |\n", k.name, level, s, of(all, pick, weighted), of(all, pick, last), differ, row.TrueReferences, row.PredictedReferences)
		}
	}
}

// steps says what each step of the prediction is off by itself.
func (p *printer) steps(all []measurement) {
	p.say("\n## Steps by themselves, divided by iterations: mean (maximum)\n")
	p.say("\nThe stack distance cache model (SDCM) instead of simulated caches, in points of global rates; and L1 as if stores took\nnothing from other cores.\n")
	p.say("\n| caches | compiled with | SDCM, L1 | SDCM, L2 | without coherence, L1 | without coherence, L1, 16 cores |\n|---|---|---|---|---|---|\n")
	for i, m := range machines {
		for _, level := range levels {
			pick := func(m *measurement) bool {
				return m.division == multicore.ByIterations && m.machine == i && m.program.level == level
			}
			most := func(m *measurement) bool { return pick(m) && m.row.Cores == 16 }
			alone := func(m *measurement) float64 { return m.row.Levels[0].CoherenceError() }
			p.say("| %s | %s | %s | %s | %s | %s |\n", m.name, level,
				of(all, pick, func(m *measurement) float64 { return m.row.Levels[0].SDCMError() }),
				of(all, pick, func(m *measurement) float64 { return m.row.Levels[1].SDCMError() }),
				of(all, pick, alone), of(all, most, alone))
		}
	}
}

func (p *printer) againstCachegrind(all []measurement) {
	measured := func(m *measurement) bool { return m.grind != nil && m.division == multicore.ByIterations }
	if !slices.ContainsFunc(all, func(m measurement) bool { return measured(&m) }) {
		return
	}
	p.say("\n## Against Cachegrind: mean (maximum), %s\n", machines[0].name)
	p.say(`
Cachegrind has one first-level cache for all threads, which it runs one after the other,
a slice of time each; no store takes a line from another core; instructions share the last
level with data; and it counts what is not in the trace: registers that are saved and
reloaded, constants, and the libraries. Compared are the lines of the program's own source
file. "truth" is the truth above against Cachegrind: a difference that no prediction is to
blame for.

At -O2 it has three causes. With one thread, misses in L1 agree within 1 %% for 10 of the 14
programs with static schedules, but what they are divided by does not. blackscholes has 321,355
references in its machine code and 67,525 in the trace, for it keeps values on the stack
around calls, and constants in memory; convolution has a third more than in the trace.
histogram has 60,102 and not 80,068: adding to a place in memory is one reference to
Cachegrind, a load and a store here. An access across two lines counts twice here and once
there: jacobi's vectors make 144,108 accesses, and 115,967. Second, the runtime's own data
are in Cachegrind's L1: durbin's, gramschmidt's and bfs's regions are so short that they find
lines gone when they come back (4,234 misses and not 55 in durbin). Third, with more threads,
one cache for all is not many that take lines from each other: in cyclic, whose threads write
into the same lines, that is 41 points.
`)
	p.say("\n| division | compiled with | L1: truth | L1: predicted | L2: truth | L2: predicted |\n|---|---|---|---|---|---|\n")
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
	p.say("| %s | %s | %s | %s | %s | %s |\n", division, level, of(all, pick, against(0, true)), of(all, pick, against(0, false)), of(all, pick, against(1, true)), of(all, pick, against(1, false)))
}
