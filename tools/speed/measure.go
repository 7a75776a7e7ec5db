package main

import (
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

// question is a run of the command that is measured.
type question struct {
	name  string
	words string // $TRACE and others are files of the program
	on    string // which programs: a key of groups
}

const baseline = "baseline"

// questions are measured for each program.
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
	{"analyze text", "analyze $TEXT", "three"},
	{"analyze text, one worker", "analyze $TEXT --workers 1", "three"},
	{"simulate", "simulate $TRACE --cache L1=32KiB,8 --cache L2=1MiB,16", "all"},
	{"what-if", "what-if $TRACE --cache L1=32KiB,8 --cache L2=1MiB,16", "all"},
	{"check", "check $TRACE", "all"},
	{"fold", "fold $TRACE -o $FOLDED", "all"},
	{"loops --cache", "loops $TRACE --cache L1=32KiB,8 --cache L2=1MiB,16", "all"},
	{"diagnose a profile", "diagnose $PROFILE", "all"},
}

// cost is what a run took.
type cost struct {
	cpu, wall float64 // seconds
	peak      float64 // resident bytes
}

// long is the time from which on a run is measured once, in seconds.
const long = 4

// measure runs all questions, round by round.
func (s *session) measure(p *program) error {
	if err := s.sample(p); err != nil {
		return err
	}
	for range s.rounds {
		if s.plain != "" && !p.wide() {
			if err := p.spend(baseline, s.plain, "$LINES", os.DevNull); err != nil {
				return err
			}
		}
		for _, q := range questions {
			if !groups[q.on](p) || len(p.costs[q.name]) == 1 && p.costs[q.name][0].wall > long {
				continue
			}
			if err := p.spend(q.name, s.command, strings.Fields(q.words)...); err != nil {
				fmt.Fprintf(os.Stderr, "speed: %s, %s: %v\n", p.name, q.name, err) // a table has no number there
			}
		}
	}
	return nil
}

// spend runs a program and notes what it took. A process's peak is at least that of the process that
// started it, so that a small one starts what is measured.
func (p *program) spend(question, name string, words ...string) error {
	words = append([]string{"spend", name}, words...)
	for i, word := range words {
		if file, is := p.files[word]; is {
			words[i] = file
		}
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	out, err := output(nil, self, words...)
	if err != nil {
		return err
	}
	var c cost
	if _, err = fmt.Sscan(string(out), &c.cpu, &c.wall, &c.peak); err == nil {
		p.costs[question] = append(p.costs[question], c)
	}
	return err
}

// peak returns the largest resident set of a process that ended, in bytes, where the system is Linux.
func peak(state *os.ProcessState) float64 {
	if runtime.GOOS != "linux" {
		return math.NaN()
	}
	return float64(reflect.ValueOf(state.SysUsage()).Elem().FieldByName("Maxrss").Int() << 10)
}

// spendHere runs a program, prints what it took, and returns the exit code.
func spendHere(words []string) int {
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Stderr = os.Stderr
	begun := time.Now()
	if err := cmd.Run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	state := cmd.ProcessState
	fmt.Println((state.UserTime() + state.SystemTime()).Seconds(), time.Since(begun).Seconds(), peak(state))
	return 0
}

// point is a point of a curve.
type point struct {
	Lines  float64 `json:"capacity_lines"`
	Misses float64 `json:"misses"`
	Low    float64 `json:"misses_low"`
	High   float64 `json:"misses_high"`
}

// curve returns the curve of a trace.
func (s *session) curve(p *program, more ...string) ([]point, error) {
	out, err := output(nil, s.command, append([]string{"curve", p.files["$TRACE"], "--format", "json"}, more...)...)
	if err != nil {
		return nil, err
	}
	var answer struct{ Curve []point }
	err = json.Unmarshal(out, &answer)
	return answer.Curve, err
}

// at returns the point for a cache of so many lines.
func at(curve []point, lines float64) point {
	after := slices.IndexFunc(curve, func(p point) bool { return p.Lines > lines })
	if after < 0 {
		after = len(curve)
	}
	return curve[max(after-1, 0)]
}

// sample compares the curves of ten samples with the exact one, in caches of 32 lines and more, by powers of two.
func (s *session) sample(p *program) error {
	exact, err := s.curve(p)
	if err != nil {
		return err
	}
	accesses := float64(p.accesses)
	p.distinct = uint64(exact[len(exact)-1].Misses)
	p.friendly = at(exact, 32<<10/line).Misses < 0.03*accesses
	if p.wide() {
		return nil
	}
	var off, width, covered, n float64
	for seed := range 10 {
		curve, err := s.curve(p, "--sample", "space=0.01", "--sample-seed", strconv.Itoa(seed+1))
		if err != nil {
			return err
		}
		for lines := 32.0; lines < 2*float64(p.distinct); lines *= 2 {
			truth, estimate := at(exact, lines).Misses, at(curve, lines)
			off += math.Abs(estimate.Misses-truth) / accesses
			width += (estimate.High - estimate.Low) / 2 / accesses
			if estimate.Low <= truth && truth <= estimate.High {
				covered++
			}
			n++
		}
	}
	p.figures["sample error"] = []float64{off / n}
	p.figures["sample width"] = []float64{width / off}
	p.figures["sample coverage"] = []float64{100 * covered / n}
	return nil
}

// benchmarked is a line that a benchmark of package stack prints.
var benchmarked = regexp.MustCompile(`(?m)^BenchmarkDistances/(\S+)/(\w+?)(?:-\d+)?\s.*?([\d.]+) Mrefs/s`)

// kernels runs the benchmarks of package stack on the lines of the traces.
func (s *session) kernels() error {
	test := filepath.Join(s.work, "stack.test")
	if err := do(nil, "go", "test", "-c", "-o", test, "./core/stack"); err != nil {
		return err
	}
	var files []string
	for _, p := range s.programs {
		files = append(files, p.files["$LINES"])
	}
	for range s.rounds {
		out, err := output([]string{"STACKGLASS_LINES=" + strings.Join(files, ":")}, test, "-test.run", "^$", "-test.benchtime", "1x",
			"-test.bench", "Distances/.*/(exact|sets|plain|fenwick16)$")
		if err != nil {
			return err
		}
		s.note(benchmarked.FindAllStringSubmatch(string(out), -1))
	}
	return nil
}

// figured is a line that a test of the page prints.
var figured = regexp.MustCompile(`speed: ([^:]+): ([^:]+): ([\d.]+)`)

// tab runs the tests of the page that measure, in Chromium.
func (s *session) tab() error {
	if _, err := chromium.Find(); err != nil {
		return err
	}
	if _, err := os.Stat("bin/stackglass"); err != nil {
		return errors.New("no bin/stackglass: run make build")
	}
	demo, err := filepath.Abs("site/demos/" + s.demo.name + ".sgt")
	if err != nil {
		return err
	}
	views, runs := []string{demo}, []string(nil)
	for _, p := range s.programs {
		if p.inTab() {
			runs = append(runs, p.files["$TRACE"], p.files["$TEXT"])
		}
		if groups["four threads"](p) {
			views = append(views, p.files["$TRACE"])
		}
	}
	out, err := output([]string{"STACKGLASS_E2E=1", "STACKGLASS_SPEED=" + strings.Join(views, ":"), "STACKGLASS_SPEED_RUNS=" + strings.Join(runs, ":")},
		"go", "test", "-vet=off", "-timeout=1h", "-count=1", "-v", "-run", "^TestSpeed", "./tools/e2e/")
	s.note(figured.FindAllStringSubmatch(string(out), -1))
	return err
}

// note adds figures. Each has the name of a file, a name, and a number. The figure's name gets the extension
// of the file, in which the files of a program differ.
func (s *session) note(found [][]string) {
	for _, m := range found {
		name, kind, _ := strings.Cut(m[1], ".")
		v, err := strconv.ParseFloat(m[3], 64)
		for _, p := range append(s.programs, s.demo) {
			if name == p.file() && err == nil {
				what := strings.TrimSpace(m[2] + " " + kind)
				p.figures[what] = append(p.figures[what], v)
			}
		}
	}
}
