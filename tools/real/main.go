// Command real compiles real programs with and without stackglass cc, runs both, and compares their
// output and their times.
//
//	real [-o PAGE] [-work FOLDER] [-rounds N] [-programs NAMES]
//
// The sources come from Debian 12, by apt-get, and from Go modules. The folder keeps the sources and
// the executables for the next run. Each round runs every program natively and traced, so that a busy
// machine slows both. Each reported time is the median of all rounds.
package main

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	page := flag.String("o", "tools/real/REAL.md", "file to write")
	work := flag.String("work", "build/real", "folder for the sources and the executables")
	rounds := flag.Int("rounds", 5, "number of times to run each program")
	names := flag.String("programs", ".", "regular expression that selects programs")
	only := flag.Bool("build", false, "only build the programs")
	flag.Parse()
	if err := run(*page, *work, *rounds, regexp.MustCompile(*names), *only); err != nil {
		fmt.Fprintln(os.Stderr, "real:", err)
		os.Exit(1)
	}
}

func run(page, work string, rounds int, names *regexp.Regexp, onlyBuild bool) error {
	s, err := newSession(work)
	if err != nil {
		return err
	}
	var list []*result
	for i := range programs {
		if p := &programs[i]; names.MatchString(p.name) {
			r := &result{program: p}
			if err := s.build(r); err != nil {
				r.failed = err.Error()
				fmt.Fprintf(os.Stderr, "real: %s: %v\n", p.name, err)
			}
			list = append(list, r)
		}
	}
	if onlyBuild {
		return nil
	}
	for range rounds {
		for _, r := range list {
			if r.failed == "" {
				if err := s.measure(r); err != nil {
					r.failed = err.Error()
				}
			}
		}
	}
	return os.WriteFile(page, []byte(describe(list, rounds)), 0o644)
}

// session contains the paths that all programs share.
type session struct {
	work, programs, command string
	built                   time.Time // when the command was written
}

func newSession(work string) (*session, error) {
	s := &session{}
	var err error
	if s.work, err = filepath.Abs(work); err != nil {
		return nil, err
	}
	if s.programs, err = filepath.Abs("tools/real/programs"); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(s.work, 0o755); err != nil {
		return nil, err
	}
	s.command = filepath.Join(s.work, "stackglass")
	if said, err := exec.Command("go", "build", "-o", s.command, "./tools/stackglass").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building stackglass: %v\n%s", err, said)
	}
	info, err := os.Stat(s.command)
	if err != nil {
		return nil, err
	}
	s.built = info.ModTime()
	// Some builds do not accept a compiler command with spaces.
	for name, compiler := range map[string]string{"cc": "clang-19", "c++": "clang++-19", "fc": "flang-new-19"} {
		for kind, prefix := range map[string]string{"native": "", "traced": s.command + " cc -- "} {
			script := "#!/bin/sh\nexec " + prefix + compiler + " \"$@\"\n"
			if err := os.WriteFile(filepath.Join(s.work, kind+"-"+name), []byte(script), 0o755); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

// sources lists the archive of Debian's sources. It is used in addition to the system's lists.
const sources = "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian bookworm main\n"

// source downloads and unpacks the source of a program, and returns its folder. An empty package
// means that the source is in this repository.
func (s *session) source(p *program) (folder string, err error) {
	switch {
	case p.source == "":
		return s.programs, nil
	case strings.Contains(p.source, "@"):
		out, err := exec.Command("go", "mod", "download", "-json", p.source).Output()
		if err != nil {
			return "", fmt.Errorf("go mod download %s: %w", p.source, err)
		}
		found := regexp.MustCompile(`"Dir": "(.*)"`).FindSubmatch(out)
		if found == nil {
			return "", fmt.Errorf("go mod download %s printed no folder", p.source)
		}
		return string(found[1]), nil
	}
	at := filepath.Join(s.work, "source", p.source)
	if found, _ := filepath.Glob(filepath.Join(at, "*", "")); len(found) > 0 {
		return unpacked(at)
	}
	lists := filepath.Join(s.work, "lists")
	if err := os.MkdirAll(filepath.Join(lists, "partial"), 0o755); err != nil {
		return "", err
	}
	if err := os.MkdirAll(at, 0o755); err != nil {
		return "", err
	}
	list := filepath.Join(s.work, "sources.list")
	if err := os.WriteFile(list, []byte(sources), 0o644); err != nil {
		return "", err
	}
	apt := []string{"-qq", "-o", "Dir::Etc::sourcelist=" + list, "-o", "Dir::Etc::sourceparts=-", "-o", "Dir::State::lists=" + lists}
	if found, _ := filepath.Glob(filepath.Join(lists, "*Sources*")); len(found) == 0 {
		if err := shell(at, nil, exec.Command("apt-get", append(apt, "update")...)); err != nil {
			return "", err
		}
	}
	if err := shell(at, nil, exec.Command("apt-get", append(apt, "source", p.source)...)); err != nil {
		return "", err
	}
	return unpacked(at)
}

// unpacked returns the only folder in a folder.
func unpacked(at string) (string, error) {
	list, err := os.ReadDir(at)
	if err != nil {
		return "", err
	}
	for _, e := range list {
		if e.IsDir() {
			return filepath.Join(at, e.Name()), nil
		}
	}
	return "", fmt.Errorf("%s contains no unpacked source", at)
}

func shell(dir string, env []string, cmd *exec.Cmd) error {
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, said[max(0, len(said)-2000):])
	}
	return nil
}

// result contains the measurements of a program.
type result struct {
	program        *program
	failed         string // why there are no measurements
	native, traced []times
	differs        bool // the traced program's output differs
	references     uint64
	bytes          int64
}

type times struct{ wall, cpu time.Duration }

func (s *session) folder(p *program) string {
	return filepath.Join(s.work, "bin", strings.ReplaceAll(p.name, " ", "-"))
}

// build builds both variants of a program. It keeps existing executables, except traced ones that are
// older than the stackglass command.
func (s *session) build(r *result) error {
	p := r.program
	at := s.folder(p)
	for _, kind := range []string{"native", "traced"} {
		bin := filepath.Join(at, kind)
		if info, err := os.Stat(bin); err == nil && (kind == "native" || info.ModTime().After(s.built)) {
			continue
		}
		source, err := s.source(p)
		if err != nil {
			return err
		}
		copied := filepath.Join(at, "source")
		if err := os.RemoveAll(copied); err != nil {
			return err
		}
		if err := os.MkdirAll(at, 0o755); err != nil {
			return err
		}
		if err := shell(at, nil, exec.Command("sh", "-ec", `cp -r "$0" "$1"; chmod -R u+w "$1"`, source, copied)); err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "real: building %s, %s\n", p.name, kind)
		env := s.environment(p, kind)
		if err := shell(copied, env, exec.Command("sh", "-ec", p.build)); err != nil {
			os.Remove(bin)
			return err
		}
	}
	return nil
}

func (s *session) environment(p *program, kind string) []string {
	at := s.folder(p)
	tool := filepath.Join(s.work, kind+"-")
	return []string{
		"CC=" + tool + "cc", "CXX=" + tool + "c++", "FC=" + tool + "fc", "OUT=" + filepath.Join(at, kind), "AT=" + at, "PROGRAMS=" + s.programs,
		"STACKGLASS_OUT=" + filepath.Join(at, "out.sgt"), "STACKGLASS_VERBOSE=1",
		"MAKEFLAGS=", // of this project's Makefile, which do not suit other programs
	}
}

var printed = regexp.MustCompile(`stackglass: ([0-9,]+) references in `)

// measure runs both variants of a program once.
func (s *session) measure(r *result) error {
	at := s.folder(r.program)
	trace := filepath.Join(at, "out.sgt")
	os.Remove(trace)
	native, want, _, err := s.execute(r.program, "native")
	if err != nil {
		return err
	}
	traced, got, said, err := s.execute(r.program, "traced")
	if err != nil {
		return err
	}
	r.native, r.traced = append(r.native, native), append(r.traced, traced)
	r.differs = r.differs || !bytes.Equal(got, want) || len(got) == 0
	found := printed.FindSubmatch(said)
	info, err := os.Stat(trace)
	if found == nil || err != nil {
		return fmt.Errorf("there is no trace; standard error: %s", said)
	}
	r.bytes = info.Size()
	r.references, err = strconv.ParseUint(strings.ReplaceAll(string(found[1]), ",", ""), 10, 64)
	return err
}

func (s *session) execute(p *program, kind string) (t times, stdout, stderr []byte, err error) {
	var out, said bytes.Buffer
	cmd := exec.Command("sh", "-ec", p.run)
	cmd.Dir, cmd.Env = s.folder(p), append(os.Environ(), s.environment(p, kind)...)
	cmd.Stdout, cmd.Stderr = &out, &said
	begin := time.Now()
	err = cmd.Run()
	t.wall = time.Since(begin)
	if err != nil {
		return t, nil, nil, fmt.Errorf("%s: %w: %s", kind, err, said.Bytes())
	}
	t.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return t, out.Bytes(), said.Bytes(), nil
}

// median returns the median of one time in a list.
func median(list []times, which func(times) time.Duration) float64 {
	sorted := slices.SortedFunc(slices.Values(list), func(a, b times) int { return cmp.Compare(which(a), which(b)) })
	return which(sorted[len(sorted)/2]).Seconds()
}

func describe(list []*result, rounds int) string {
	var out strings.Builder
	fmt.Fprintf(&out, `# Real programs: what recording costs

Generated by %[1]smake capture-real%[1]s. DO NOT EDIT.

Each program was compiled twice from the same source, with the compiler and with %[1]sstackglass cc%[1]s
before it, and both were run with the same input. The slow-down is the time of the traced run divided
by the time of the untraced run: the elapsed (wall) time, and the CPU time of all threads, which
includes the time for encoding and writing the trace. If other programs run on the machine at the
same time, the elapsed times are not reliable. Each time is the median of %[2]d runs, traced and untraced
runs alternately, on %[3]d cores%[4]s. Times include the start of the process.

| program | compiler | input | untraced (ms) | slow-down, wall | slow-down, CPU | references | bytes per reference | same output |
|---|---|---|---|---|---|---|---|---|
`, "`", rounds, runtime.NumCPU(), model())
	for _, r := range list {
		p := r.program
		if r.failed != "" {
			first, _, _ := strings.Cut(r.failed, "\n")
			fmt.Fprintf(&out, "| %s | %s | %s | failed: %s | | | | | |\n", p.name, p.compiler, p.input, first)
			continue
		}
		wall := func(t times) time.Duration { return t.wall }
		cpu := func(t times) time.Duration { return t.cpu }
		same := "yes"
		if r.differs {
			same = "no"
		}
		fmt.Fprintf(&out, "| %s | %s | %s | %.0f | %.1f | %.1f | %s | %.2f | %s |\n", p.name, p.compiler, p.input,
			1000*median(r.native, wall), median(r.traced, wall)/median(r.native, wall), median(r.traced, cpu)/median(r.native, cpu),
			grouped(r.references), float64(r.bytes)/float64(r.references), same)
	}
	return out.String()
}

// model returns the name of the processor.
func model() string {
	text, _ := os.ReadFile("/proc/cpuinfo") // without the file, the page does not name the processor
	if found := regexp.MustCompile(`(?m)^model name\s*: (.*)$`).FindSubmatch(text); found != nil {
		return " of an " + string(found[1])
	}
	return ""
}

// grouped returns a number with commas between groups of three digits.
func grouped(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
