// Command multicore measures the errors of predictions for several cores, and writes a report. The
// predictions are computed from single-threaded runs.
//
//	multicore [-o PAGE] [-kernels NAMES] [-cachegrind=false]
//
// The command compiles the OpenMP programs in the folder kernels at -O0 and -O2, with
// instrumentation, and runs each program with 1, 2, 4, 8 and 16 threads. If the runs of a program
// may differ from each other, the program is run several times. Package core/oracle/validate
// describes the comparisons. The command also compiles the same programs without tracing, and runs
// them under Cachegrind.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/multicore"
	"github.com/stackglass/stackglass/core/multicore/predict"
	"github.com/stackglass/stackglass/core/oracle/validate"
	"github.com/stackglass/stackglass/core/trace"
)

// machine is a cache hierarchy for which misses are predicted.
type machine struct {
	name  string
	lines []string // the cache levels, in the syntax of --cache
}

var machines = []machine{
	{"8 KiB and 128 KiB", []string{"L1=8KiB,8", "L2=128KiB,16,shared=all"}}, // the caches in the paper
	{"32 KiB and 1 MiB", []string{"L1=32KiB,8", "L2=1MiB,16,shared=all"}},
}

func (m machine) hierarchy() (h hierarchy.Hierarchy, err error) {
	for _, line := range m.lines {
		if err := h.Add(line); err != nil {
			return h, err
		}
	}
	return h, nil
}

var (
	levels    = []string{"-O0", "-O2", scalarOptions}
	coreList  = []int{1, 2, 4, 8, 16}
	divisions = []multicore.Division{multicore.ByIterations, multicore.ByRegion, multicore.AsPrinted}
)

// measurement is the result of comparing one prediction with one or more runs.
type measurement struct {
	program  *program
	machine  int
	division multicore.Division
	row      validate.Row
	grind    *validate.Cachegrind // the counts of Cachegrind, or nil if they were not measured
}

func main() {
	out := flag.String("o", "", "write the page to this `file` instead of standard output")
	only := flag.String("kernels", "", "measure only the programs with these `names`, separated by commas")
	grinds := flag.Bool("cachegrind", true, "run Cachegrind, too")
	flag.Parse()
	if err := do(*out, *only, *grinds); err != nil {
		fmt.Fprintln(os.Stderr, "multicore:", err)
		os.Exit(1)
	}
}

func do(out, only string, grinds bool) error {
	folder, err := os.MkdirTemp("", "stackglass-multicore-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	var all []measurement
	for _, k := range kernels {
		if only != "" && !slices.Contains(strings.Split(only, ","), k.name) {
			continue
		}
		for _, level := range k.optimisationLevels() {
			p, err := compile(k, level, folder)
			if err != nil {
				return err
			}
			list, err := measure(p, grinds)
			if err != nil {
				return err
			}
			all = append(all, list...)
			fmt.Fprintln(os.Stderr, "measured", k.name, level)
		}
	}
	if out == "" {
		return writePage(os.Stdout, all)
	}
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	if err := writePage(f, all); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// measure runs all comparisons for a program.
func measure(p *program, grinds bool) (list []measurement, err error) {
	one, err := p.run(1)
	if err != nil {
		return nil, err
	}
	for _, cores := range coreList {
		var many []string
		for n := range max(p.runs, 1) {
			path, err := p.runAgain(cores, 1+n)
			if err != nil {
				return nil, err
			}
			many = append(many, path)
		}
		for i, m := range machines {
			h, err := m.hierarchy()
			if err != nil {
				return nil, err
			}
			for _, division := range divisions {
				if i > 0 && division != multicore.ByIterations {
					continue
				}
				row, err := compare(one, many, cores, h, division)
				if err != nil {
					return nil, fmt.Errorf("%s %s, %d cores, by %s: %w", p.name, p.level, cores, division, err)
				}
				list = append(list, measurement{program: p, machine: i, division: division, row: row})
			}
			if grinds && i == 0 {
				g, err := p.cachegrind(cores, h.Levels)
				if err != nil {
					return nil, err
				}
				for n := range list {
					if list[n].row.Cores == cores && list[n].machine == 0 {
						list[n].grind = &g
					}
				}
			}
		}
		for _, path := range many {
			os.Remove(path)
		}
	}
	return list, os.Remove(one)
}

// compare computes a prediction from a single-threaded trace, and compares it with the traces of
// parallel runs. With the paper's division of the work, Algorithm 1, which treats the caches as
// independent, predicts the first level. Algorithm 2 predicts the second level.
func compare(single string, parallel []string, cores int, h hierarchy.Hierarchy, division multicore.Division) (validate.Row, error) {
	var truths []predict.Source
	for _, path := range parallel {
		truths = append(truths, validate.Truth(func() (trace.Reader, error) { return openTrace(path) }))
	}
	q := predict.Question{Cores: []int{cores}, Hierarchy: h, Stacks: division == multicore.ByIterations}
	if division == multicore.ByIterations {
		return validate.Compare(q, synthesisedThreads(single), truths...)
	}
	perRegion := division == multicore.ByRegion
	row, err := validate.Compare(q, printedThreads(single, perRegion, true), truths...)
	if err != nil {
		return row, err
	}
	private, err := validate.Compare(q, printedThreads(single, perRegion, false))
	if err != nil {
		return row, err
	}
	row.Levels[0].Predicted = private.Levels[0].Alone
	return row, nil
}

// writePage writes the measurements as a documentation page.
func writePage(w io.Writer, all []measurement) error {
	p := &printer{w: w}
	p.say("%s", intro)
	p.summary(all)
	p.programs(all)
	p.writeSteps(all)
	p.againstCachegrind(all)
	return p.err
}
