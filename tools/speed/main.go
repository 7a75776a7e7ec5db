// Command speed measures how long users wait, and compares the times with targets.
//
//	speed [-o PAGE] [-baseline FOLDER] [-rounds N] [-programs NAMES]
//
// This tool compiles the programs in programs/ with instrumentation, runs each program, and
// measures whole runs of the stackglass command on the resulting traces. Each reported time is the
// sum of user and system time, including decoding, and is the median of all rounds. Each round runs
// every command once, so that a busy machine slows all commands equally. The baseline is the
// textbook method, a hash table and a Fenwick tree, in a program that reads plain line numbers. The
// source of the baseline is FOLDER/fen.cc. The benchmarks of core/stack measure the kernels on the
// same traces, and a test of tools/e2e measures the page in Chromium.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// session contains the data that all measurements share.
type session struct {
	work, command   string // a temporary folder, and the path of the command in this folder
	baselineProgram string // the path of the baseline's program, or "" if there is no baseline
	rounds          int
	programs        []*program
	demo            *program // a demo whose trace is measured only in the browser tab
	failures        []string // failed measurements and their reasons
}

func main() {
	if len(os.Args) > 2 && os.Args[1] == "spend" {
		measureChild(os.Args[2:])
		return
	}
	page := flag.String("o", "tools/speed/SPEED.md", "file to write")
	folder := flag.String("baseline", os.Getenv("STACKGLASS_BASELINE"), "folder with fen.cc")
	rounds := flag.Int("rounds", 3, "number of times to measure each run")
	names := flag.String("programs", ".", "regular expression that selects programs")
	flag.Parse()
	work, err := os.MkdirTemp("", "speed")
	if err == nil {
		err = try(func() {
			s := &session{work: work, command: filepath.Join(work, "stackglass"), rounds: *rounds, demo: newProgram("false-sharing", "demo")}
			s.run(*folder, regexp.MustCompile(*names))
			var out strings.Builder
			s.write(&out)
			check(os.WriteFile(*page, []byte(out.String()), 0o644))
		})
		os.RemoveAll(work)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "speed:", err)
		os.Exit(1)
	}
}

func (s *session) run(folder string, wanted *regexp.Regexp) {
	output(nil, "go", "build", "-o", s.command, "./tools/stackglass")
	s.attempt("the baseline", func() {
		if folder == "" {
			check(errors.New("STACKGLASS_BASELINE is not set"))
		}
		plain := filepath.Join(s.work, "fen")
		output(nil, "c++", "-O3", "-march=native", "-o", plain, filepath.Join(folder, "fen.cc"))
		s.baselineProgram = plain
	})
	sources, err := filepath.Glob("tools/speed/programs/*.c")
	check(err)
	for _, source := range sources {
		name := strings.TrimSuffix(filepath.Base(source), ".c")
		if !wanted.MatchString(name) {
			continue
		}
		teams := []int{0}
		if name == "team" {
			teams = []int{1, 4}
		}
		for _, team := range teams {
			p := s.captureProgram(source, name, team)
			s.programs = append(s.programs, p)
			s.compareSamples(p)
			s.measureQuestions(p)
		}
	}
	s.attempt("kernels", s.benchmarkKernels)
	s.attempt("the page in a tab", s.measureTab)
}

// failure is the type of check's panic value.
type failure struct{ error }

// check panics if err is not nil. The panic ends the function that [try] called.
func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// try calls a function, and returns the error with which [check] ended the function, or nil.
func try(f func()) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = r.(failure)
		}
	}()
	f()
	return nil
}

// attempt calls the function f. If f fails, attempt records a missing measurement.
func (s *session) attempt(what string, f func()) {
	if err := try(f); err != nil {
		fmt.Fprintf(os.Stderr, "speed: not measured: %s: %v\n", what, err)
		why, _, _ := strings.Cut(err.Error(), "\n")
		s.failures = append(s.failures, what+" ("+why+")")
	}
}

// output runs a program and returns its standard output.
func output(environment []string, name string, words ...string) string {
	cmd := exec.Command(name, words...)
	cmd.Env = append(os.Environ(), environment...)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		check(fmt.Errorf("%s: %w: %s%s", name, err, said.String(), out[max(0, len(out)-500):]))
	}
	return string(out)
}
