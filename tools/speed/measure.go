package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stackglass/stackglass/tools/internal/chromium"
)

// question is a command line whose time and memory are measured.
type question struct {
	name string
	// arguments of the command line; $TRACE and other names represent files of the program
	arguments string
	group     string // a key of the map "groups"; it selects the programs for this question
}

const baseline = "baseline"

// pageCaches is the option that makes the command measure line utilisation in the same caches as
// the page: the page's default hierarchy.
const pageCaches = " --utilisation 48KiB,12,1MiB,16,32MiB,16"

// questions lists the command lines that are measured for each program.
var questions = []question{
	{"histogram", "histogram $TRACE", "all"},
	{"curve", "curve $TRACE", "all"},
	{"curve of text", "curve $TEXT", "all"},
	{"curve, 1 % of the lines", "curve $TRACE --sample space=0.01", "all"},
	{"locality", "analyze $TRACE --analyses locality", "every"},
	{"locality, one reference", "analyze $ONE --analyses locality", "every"},
	{"locality, sites, operations", "analyze $TRACE --analyses sites,operations", "all"},
	{"analyze, default only", "analyze $TRACE --analyses default", "every"},
	{"default only, one reference", "analyze $ONE --analyses default", "every"},
	{"analyze", "analyze $TRACE", "all"},
	{"analyze, one worker", "analyze $TRACE --workers 1", "all"},
	{"analyze text", "analyze $TEXT", "in the tab"},
	{"analyze text, one worker", "analyze $TEXT --workers 1", "in the tab"},
	{"analyze as the page does, one worker", "analyze $TRACE --workers 1" + pageCaches, "in the tab"},
	{"analyze text as the page does, one worker", "analyze $TEXT --workers 1" + pageCaches, "in the tab"},
	{"simulate", "simulate $TRACE --cache L1=32KiB,8 --cache L2=1MiB,16", "all"},
	{"what-if", "what-if $TRACE --cache L1=32KiB,8 --cache L2=1MiB,16", "all"},
	{"check", "check $TRACE", "all"},
	{"fold", "fold $TRACE -o $FOLDED", "all"},
	{"loops --cache", "loops $TRACE --cache L1=32KiB,8 --cache L2=1MiB,16", "all"},
	{"diagnose a profile", "diagnose $PROFILE", "all"},
}

// cost contains the time and memory of a run.
type cost struct {
	cpu, wall float64 // in seconds
	memory    float64 // peak resident set size in bytes
}

// longRun is the time, in seconds, above which a run is measured only once.
const longRun = 4

// measureQuestions measures all questions for a program, in s.rounds rounds.
func (s *session) measureQuestions(p *program) {
	for range s.rounds {
		if s.baselineProgram != "" && p.traced() {
			p.measureRun(baseline, s.baselineProgram, "$LINES", os.DevNull)
		}
		for _, q := range questions {
			if !groups[q.group](p) || len(p.costs[q.name]) == 1 && p.costs[q.name][0].wall > longRun {
				continue
			}
			if err := try(func() { p.measureRun(q.name, s.command, strings.Fields(q.arguments)...) }); err != nil {
				// continue, because the tables show a dash if a measurement is missing
				fmt.Fprintf(os.Stderr, "speed: %s, %s: %v\n", p.name, q.name, err)
			}
		}
	}
}

// measureRun runs a program, and records the time and memory of the run. Because a process inherits
// the peak memory of its parent, a small process starts the measured process.
func (p *program) measureRun(question, name string, words ...string) {
	words = append([]string{"spend", name}, words...)
	for i, word := range words {
		words[i] = cmp.Or(p.files[word], word)
	}
	self, err := os.Executable()
	check(err)
	var c cost
	_, err = fmt.Sscan(output(nil, self, words...), &c.cpu, &c.wall, &c.memory)
	check(err)
	p.costs[question] = append(p.costs[question], c)
}

// peakMemory returns the peak resident set size of a finished process in bytes, or NaN on a system other
// than Linux.
func peakMemory(state *os.ProcessState) float64 {
	if runtime.GOOS != "linux" {
		return math.NaN()
	}
	return float64(reflect.ValueOf(state.SysUsage()).Elem().FieldByName("Maxrss").Int() << 10)
}

// measureChild runs a program in a child process, and prints the cost of the run.
func measureChild(words []string) {
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Stderr = os.Stderr
	begun := time.Now()
	if err := cmd.Run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	state := cmd.ProcessState
	fmt.Println((state.UserTime() + state.SystemTime()).Seconds(), time.Since(begun).Seconds(), peakMemory(state))
}

// point is a point of a curve.
type point struct {
	Lines  float64 `json:"capacity_lines"`
	Misses float64 `json:"misses"`
	Low    float64 `json:"misses_low"`
	High   float64 `json:"misses_high"`
}

// curve runs the verb "curve" on the trace of a program, and returns the points of the curve.
func (s *session) curve(p *program, more ...string) []point {
	var answer struct{ Curve []point }
	check(json.Unmarshal([]byte(output(nil, s.command, append([]string{"curve", p.files["$TRACE"], "--format", "json"}, more...)...)), &answer))
	return answer.Curve
}

// pointAt returns the point of a curve for a cache with the given number of lines.
func pointAt(curve []point, lines float64) point {
	after := slices.IndexFunc(curve, func(p point) bool { return p.Lines > lines })
	if after < 0 {
		after = len(curve)
	}
	return curve[max(after-1, 0)]
}

// compareSamples compares the curves of ten samples with the exact curve, for caches whose number
// of lines is a power of two and at least 32.
func (s *session) compareSamples(p *program) {
	exact := s.curve(p)
	p.distinct = exact[len(exact)-1].Misses
	p.cacheFriendly = pointAt(exact, 32<<10/line).Misses < 0.03*p.accesses
	if !p.traced() {
		return
	}
	var off, width, covered, n float64
	for seed := range 10 {
		curve := s.curve(p, "--sample", "space=0.01", "--sample-seed", strconv.Itoa(seed+1))
		for lines := 32.0; lines < 2*p.distinct; lines *= 2 {
			truth, estimate := pointAt(exact, lines).Misses, pointAt(curve, lines)
			off += math.Abs(estimate.Misses-truth) / p.accesses
			width += (estimate.High - estimate.Low) / 2 / p.accesses
			if estimate.Low <= truth && truth <= estimate.High {
				covered++
			}
			n++
		}
	}
	p.figures["sample error"] = []float64{off / n}
	p.figures["sample width"] = []float64{width / off}
	p.figures["sample coverage"] = []float64{100 * covered / n}
}

// These patterns match the lines that the benchmarks of package stack and the speed tests of the
// page print.
var (
	benchmarkLine = regexp.MustCompile(`(?m)^BenchmarkDistances/(\S+)/(\w+?)(?:-\d+)?\s.*?([\d.]+) Mrefs/s`)
	figureLine    = regexp.MustCompile(`speed: ([^:]+): ([^:]+): ([\d.]+)`)
)

// benchmarkKernels runs the benchmarks of package stack on the line accesses of all traces.
func (s *session) benchmarkKernels() {
	test := filepath.Join(s.work, "stack.test")
	output(nil, "go", "test", "-c", "-o", test, "./core/stack")
	var files []string
	for _, p := range s.programs {
		files = append(files, p.files["$LINES"])
	}
	for range s.rounds {
		s.recordFigures(benchmarkLine, output([]string{"STACKGLASS_LINES=" + strings.Join(files, ":")},
			test, "-test.run", "^$", "-test.benchtime", "1x", "-test.bench", "Distances/.*/(exact|sets|plain|fenwick16)$"))
	}
}

// measureTab runs the speed tests of the page in Chromium.
func (s *session) measureTab() {
	_, err := chromium.Find()
	check(err)
	if _, err := os.Stat("bin/stackglass"); err != nil {
		check(errors.New("bin/stackglass does not exist; run make build"))
	}
	demo, err := filepath.Abs("site/demos/" + s.demo.name + ".sgt")
	check(err)
	views, runs := []string{"STACKGLASS_SPEED=" + demo}, []string{"STACKGLASS_SPEED_RUNS="}
	for _, p := range s.programs {
		if groups["four threads"](p) {
			views = append(views, p.files["$TRACE"])
		}
		if p.inTab() {
			runs = append(runs, p.files["$TRACE"], p.files["$TEXT"])
		}
	}
	for what, files := range map[string][]string{"views in a tab": views, "runs in a tab": runs} {
		s.attempt(what, func() {
			s.recordFigures(figureLine, output([]string{"STACKGLASS_E2E=1", strings.Replace(strings.Join(files, ":"), "=:", "=", 1)},
				"go", "test", "-vet=off", "-timeout=1h", "-count=1", "-v", "-run", "^TestSpeed", "./tools/e2e/"))
		})
	}
}

// recordFigures records the figures that a program has printed. A figure consists of a file name, a
// name, and a number. recordFigures adds the extension of the file to the name of the figure,
// because the files of a program differ only in their extensions.
func (s *session) recordFigures(form *regexp.Regexp, output string) {
	for _, m := range form.FindAllStringSubmatch(output, -1) {
		name, extension, _ := strings.Cut(m[1], ".")
		v, err := strconv.ParseFloat(m[3], 64)
		check(err)
		for _, p := range append(s.programs, s.demo) {
			if name == p.fileName() {
				what := strings.TrimSpace(m[2] + " " + extension)
				p.figures[what] = append(p.figures[what], v)
			}
		}
	}
}
