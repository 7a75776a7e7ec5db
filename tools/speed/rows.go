package main

import (
	"math"
	"slices"
)

// tableRow is a row of a table: a figure for each program, and the targets for this figure.
type tableRow struct {
	name  string
	value func(p *program) float64 // returns NaN if the program has no figure
	goals []target
}

// target is a lower or upper bound for a figure. It applies to the programs of one group.
type target struct {
	group     string // a key of the map "groups"
	bound     float64
	isMaximum bool // whether the bound is an upper bound; otherwise, it is a lower bound
}

func least(on string, bound float64) []target { return []target{{on, bound, false}} }
func most(on string, bound float64) []target  { return []target{{on, bound, true}} }

// groups maps the name of each group to a predicate. The predicate selects the programs to which a
// question or a target applies.
var groups = map[string]func(p *program) bool{
	"every":          func(*program) bool { return true },
	"all":            (*program).traced,
	"irregular":      func(p *program) bool { return p.kind == "irregular" },
	"regular":        func(p *program) bool { return p.kind == "regular" },
	"one thread":     func(p *program) bool { return p.traced() && p.name != "team of 4" },
	"four threads":   func(p *program) bool { return p.name == "team of 4" },
	"cache-friendly": func(p *program) bool { return p.cacheFriendly && p.kind != "memory" },
	"≥ 10^6 lines":   func(p *program) bool { return p.distinct >= 1e6 },
	"in the tab":     (*program).inTab,
	"threads, demo":  func(p *program) bool { return p.name == "team of 4" || p.kind == "demo" },
}

// traced reports whether a program has measurements for every question, except the questions about
// the browser tab (see inTab).
func (p *program) traced() bool { return p.kind != "memory" && p.kind != "demo" }

func cpu(c cost) float64      { return c.cpu }
func wall(c cost) float64     { return c.wall }
func memoryOf(c cost) float64 { return c.memory }

// median returns the median of a list, or NaN if the list is empty.
func median(list []float64) float64 {
	if len(list) == 0 {
		return math.NaN()
	}
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
}

// median returns the median cost of a question for the program.
func (p *program) median(question string, of func(cost) float64) float64 {
	var list []float64
	for _, c := range p.costs[question] {
		list = append(list, of(c))
	}
	return median(list)
}

// ratio returns a function that computes the cost of one question divided by the cost of another
// question.
func ratio(question, other string, of func(cost) float64) func(p *program) float64 {
	return func(p *program) float64 { return p.median(question, of) / p.median(other, of) }
}

// relativeSpeed returns a function that computes the speed of a question relative to the baseline.
func relativeSpeed(question string) func(p *program) float64 { return ratio(baseline, question, cpu) }

// figure returns a function that computes the median of a figure that is not the cost of a
// question.
func figure(name string) func(p *program) float64 {
	return func(p *program) float64 { return median(p.figures[name]) }
}

// quotient returns a function that computes the quotient of figures a and b.
func quotient(a, b string) func(p *program) float64 {
	return func(p *program) float64 { return figure(a)(p) / figure(b)(p) }
}

// tabSpeed returns a function that computes the speed of the page in a tab relative to the command.
func tabSpeed(question, whole string) func(p *program) float64 {
	return func(p *program) float64 { return p.median(question, wall) / figure(whole)(p) }
}

// bytesPerLine returns a function that computes the memory per distinct line in bytes. The memory
// of a run on a single reference is subtracted first.
func bytesPerLine(question, one string) func(p *program) float64 {
	return func(p *program) float64 {
		return (p.median(question, memoryOf) - p.median(one, memoryOf)) / p.distinct
	}
}

// fourThreadsToOne returns a function that computes the cost with four threads divided by the cost
// with one thread.
func (s *session) fourThreadsToOne(question string, of func(cost) float64) func(p *program) float64 {
	return func(p *program) float64 {
		at := slices.IndexFunc(s.programs, func(p *program) bool { return p.name == "team of 1" })
		if at < 0 || p.name != "team of 4" {
			return math.NaN()
		}
		return p.median(question, of) / s.programs[at].median(question, of)
	}
}

// section is a table with a column for each program.
type section struct {
	title string
	rows  []tableRow
}

func (s *session) sections() []section {
	return []section{
		{"Speed relative to the baseline", []tableRow{
			{"histogram", relativeSpeed("histogram"), append(least("irregular", 1.5), least("regular", 2.5)...)},
			{"curve", relativeSpeed("curve"), append(least("irregular", 1.5), least("regular", 2.5)...)},
			{"curve, 1 % of the lines", relativeSpeed("curve, 1 % of the lines"), least("all", 5)},
			{"locality", relativeSpeed("locality"), nil},
			{"analyze, default only", relativeSpeed("analyze, default only"), least("one thread", 0.8)},
			{"analyze", relativeSpeed("analyze"), least("one thread", 0.8)},
			{"simulate", relativeSpeed("simulate"), nil},
		}},
		{"Other figures for whole runs", []tableRow{
			{"curve: time for text ÷ time for .sgt", ratio("curve of text", "curve", cpu), least("all", 1)},
			{"check, million references/s", func(p *program) float64 { return p.references / 1e6 / p.median("check", cpu) }, least("irregular", 150)},
			{"additional time for sites and operations ÷ time of locality", func(p *program) float64 {
				return ratio("locality, sites, operations", "locality", cpu)(p) - 1
			}, most("one thread", 1)},
			{"time of what-if ÷ time of simulate", ratio("what-if", "simulate", cpu), most("all", 1.2)},
			{"time of loops --cache ÷ time of simulate", ratio("loops --cache", "simulate", cpu), most("all", 2)},
			{"time to diagnose a profile ÷ time of analyze", ratio("diagnose a profile", "analyze", cpu), nil},
			{"analyze: wall time with one worker ÷ with two", ratio("analyze, one worker", "analyze", wall), least("all", 1.7)},
			{"analyze text: wall time with one worker ÷ with two", ratio("analyze text, one worker", "analyze text", wall), least("in the tab", 1.7)},
			{"analyze, default only: time for four threads ÷ time for one thread", s.fourThreadsToOne("analyze, default only", cpu), most("four threads", 3)},
			{"size of .sgl ÷ size of .sgt", func(p *program) float64 {
				if p.size("$FOLDED") == 0 {
					return math.NaN()
				}
				return p.size("$FOLDED") / p.size("$TRACE")
			}, most("all", 1)},
		}},
		{"Memory", []tableRow{
			{"locality, bytes per distinct line", bytesPerLine("locality", "locality, one reference"), most("≥ 10^6 lines", 40)},
			{"analyze, default only, bytes per distinct line", bytesPerLine("analyze, default only", "default only, one reference"), most("≥ 10^6 lines", 80)},
			{"loops --cache, MB", func(p *program) float64 { return p.median("loops --cache", memoryOf) / 1e6 }, most("all", 200)},
			{"analyze, default only: memory for four threads ÷ memory for one thread", s.fourThreadsToOne("analyze, default only", memoryOf), most("four threads", 2)},
		}},
		{"Kernels of core/stack", []tableRow{
			{"exact: speed ÷ speed of a Fenwick tree below a list of 16 lines", quotient("exact", "fenwick16"), least("all", 1.3)},
			{"sets: speed ÷ speed of plain LRU lists", quotient("sets", "plain"), least("all", 1.3)},
			{"sets, million accesses/s", figure("sets"), least("cache-friendly", 40)},
			{"exact, million accesses/s", figure("exact"), nil},
		}},
		{"A sample of 1 % of the lines", []tableRow{
			{"mean error of the miss ratio", figure("sample error"), most("all", 0.0024)},
			{"half-width of the confidence interval ÷ mean error", figure("sample width"), most("all", 3)},
			{"confidence intervals that contain the exact value, %", figure("sample coverage"), least("all", 95)},
		}},
		{"The page in a tab of Chromium", []tableRow{
			{"tab: speed relative to the command, one worker, .sgt", tabSpeed("analyze as the page does, one worker", "whole 1 sgt"), least("in the tab", 0.5)},
			{"tab: speed relative to the command, one worker, text", tabSpeed("analyze text as the page does, one worker", "whole 1 lackey.lz4"), least("in the tab", 0.5)},
			{"tab: time with one worker ÷ with two, for .sgt traces", quotient("whole 1 sgt", "whole 2 sgt"), least("in the tab", 1.7)},
			{"tab: time with one worker ÷ with two, for text traces", quotient("whole 1 lackey.lz4", "whole 2 lackey.lz4"), least("in the tab", 1.7)},
			{"tab: million references/s, two workers", func(p *program) float64 { return p.references / 1e6 / figure("whole 2 sgt")(p) }, least("four threads", 2)},
			{"tab: first curve, s", figure("curve 2 sgt"), most("in the tab", 1)},
			{"tab: slowest view, first time, ms", figure("slowest view, first time sgt"), most("threads, demo", 100)},
			{"tab: slowest view after the first display, ms", figure("slowest view sgt"), most("threads, demo", 100)},
			{"tab: slowest slider, ms", figure("slowest slider sgt"), most("threads, demo", 50)},
		}},
	}
}
