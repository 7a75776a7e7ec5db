// Command speed measures what a user waits for, and compares it with targets.
//
//	speed [-o PAGE] [-baseline FOLDER] [-rounds N] [-programs NAMES]
//
// It compiles the programs in programs/ so that they trace themselves, runs each, and measures whole runs of
// the command on their traces: processor time of user and system, decoding included, the median of the
// rounds. The runs of a round alternate, so that a busy machine slows all of them. The baseline is a program
// of the textbook's method, a hash table and a Fenwick tree, that reads bare numbers of lines: FOLDER has its
// source, fen.cc. The benchmarks of core/stack measure the kernels on the same traces, and a test of tools/e2e
// the page in Chromium.
package main

import (
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
	missing       []string // what could not be measured, and why
}

func main() {
	if len(os.Args) > 2 && os.Args[1] == "spend" {
		os.Exit(spendHere(os.Args[2:]))
	}
	page := flag.String("o", "tools/speed/SPEED.md", "file to write")
	folder := flag.String("baseline", os.Getenv("STACKGLASS_BASELINE"), "folder with fen.cc")
	rounds := flag.Int("rounds", 3, "how often each run is measured")
	names := flag.String("programs", ".", "which programs, a regular expression")
	flag.Parse()
	work, err := os.MkdirTemp("", "speed")
	if err == nil {
		s := &session{work: work, command: filepath.Join(work, "stackglass"), rounds: *rounds, demo: newProgram("false-sharing", "demo")}
		if err = s.run(*folder, *names); err == nil {
			var out strings.Builder
			s.write(&out)
			err = os.WriteFile(*page, []byte(out.String()), 0o644)
		}
		os.RemoveAll(work)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "speed:", err)
		os.Exit(1)
	}
}

func (s *session) run(folder, names string) error {
	wanted, err := regexp.Compile(names)
	if err != nil {
		return err
	}
	if err := do(nil, "go", "build", "-o", s.command, "./tools/stackglass"); err != nil {
		return err
	}
	if folder == "" {
		s.miss("the baseline", "STACKGLASS_BASELINE names no folder")
	} else {
		s.plain = filepath.Join(s.work, "fen")
		if err := do(nil, "c++", "-O3", "-march=native", "-o", s.plain, filepath.Join(folder, "fen.cc")); err != nil {
			s.miss("the baseline", err.Error())
			s.plain = ""
		}
	}
	sources, err := filepath.Glob("tools/speed/programs/*.c")
	if err != nil {
		return err
	}
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
			p, err := s.capture(source, name, team)
			if err != nil {
				return err
			}
			s.programs = append(s.programs, p)
			if err := s.measure(p); err != nil {
				return err
			}
		}
	}
	if err := s.kernels(); err != nil {
		s.miss("kernels", err.Error())
	}
	if err := s.tab(); err != nil {
		s.miss("the page in a tab", err.Error())
	}
	return nil
}

// miss notes what could not be measured.
func (s *session) miss(what, why string) {
	fmt.Fprintf(os.Stderr, "speed: not measured: %s: %s\n", what, why)
	why, _, _ = strings.Cut(why, "\n")
	s.missing = append(s.missing, what+" ("+why+")")
}

// do runs a program in silence.
func do(environment []string, name string, words ...string) error {
	_, err := output(environment, name, words...)
	return err
}

// output returns what a program prints.
func output(environment []string, name string, words ...string) ([]byte, error) {
	cmd := exec.Command(name, words...)
	cmd.Env = append(os.Environ(), environment...)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("%s: %w: %s%s", name, err, said.String(), out[max(0, len(out)-500):])
	}
	return out, nil
}
