// Command speed measures the times that a user waits, and compares them with targets.
//
//	speed [-o PAGE] [-baseline FOLDER] [-rounds N] [-programs NAMES]
//
// It compiles the programs in programs/ so that they trace themselves, runs each, and measures whole runs of
// the command on their traces: processor time of user and system, decoding included, the median of the
// rounds. The runs of a round alternate, so that a busy machine slows all of them alike. The baseline is a
// program of the textbook's method, a hash table and a Fenwick tree, that reads bare numbers of lines: FOLDER
// has its source, fen.cc. The benchmarks of core/stack measure the kernels on the same traces, and a test of
// tools/e2e the page in Chromium.
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

// session is what all measurements share.
type session struct {
	work, command string // a folder, and the command in it
	plain         string // the program of the baseline; "": none
	rounds        int
	programs      []*program
	demo          *program // which only the tab shows
	missing       []string // failed measurements, with the reason
}

func main() {
	if len(os.Args) > 2 && os.Args[1] == "spend" {
		spendHere(os.Args[2:])
		return
	}
	page := flag.String("o", "tools/speed/SPEED.md", "file to write")
	folder := flag.String("baseline", os.Getenv("STACKGLASS_BASELINE"), "folder with fen.cc")
	rounds := flag.Int("rounds", 3, "how often each run is measured")
	names := flag.String("programs", ".", "which programs, a regular expression")
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
			check(errors.New("STACKGLASS_BASELINE names no folder"))
		}
		plain := filepath.Join(s.work, "fen")
		output(nil, "c++", "-O3", "-march=native", "-o", plain, filepath.Join(folder, "fen.cc"))
		s.plain = plain
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
			p := s.capture(source, name, team)
			s.programs = append(s.programs, p)
			s.sample(p)
			s.measure(p)
		}
	}
	s.attempt("kernels", s.kernels)
	s.attempt("the page in a tab", s.tab)
}

// failure is what check panics with.
type failure struct{ error }

// check ends the function that [try] calls if there is an error.
func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// try calls a function and returns the error that ended it.
func try(f func()) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = r.(failure)
		}
	}()
	f()
	return nil
}

// attempt calls a function. It records a failure of the measurement in it.
func (s *session) attempt(what string, f func()) {
	if err := try(f); err != nil {
		fmt.Fprintf(os.Stderr, "speed: not measured: %s: %v\n", what, err)
		why, _, _ := strings.Cut(err.Error(), "\n")
		s.missing = append(s.missing, what+" ("+why+")")
	}
}

// output returns what a program prints.
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
