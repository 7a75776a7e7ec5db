// Command speed measures what a user waits for, and writes it down.
//
//	speed [-o PAGE] [-baseline FOLDER] [-rounds N] [-programs NAMES]
//
// It compiles the programs in programs/ so that they trace themselves, runs each, and measures whole runs of
// the command on their traces: processor time of user and system, decoding included, the median of the
// rounds. The runs of a round alternate, so that a busy machine slows all of them. The baseline is a program
// of the textbook's method, a hash table and a Fenwick tree, that reads bare numbers of lines: FOLDER has its
// source, fen.cc.
package main

import (
	"bufio"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/pierrec/lz4/v4"

	"github.com/stackglass/stackglass/core/open"
	"github.com/stackglass/stackglass/core/trace"
)

// question is a run of the command that is measured.
type question struct {
	name, of string // of: the denominator of its ratio, another question or the baseline
	words    string // $TRACE and others are files of the program
}

// questions are measured for each program. A ratio above 1 is faster than what it is compared with.
var questions = []question{
	{"histogram", baseline, "histogram $TRACE"},
	{"curve", baseline, "curve $TRACE"},
	{"curve of text", "curve", "curve $TEXT"},
	{"curve, a hundredth", baseline, "curve $TRACE --sample space=0.01"},
	{"locality", baseline, "analyze $TRACE --analyses locality"},
	{"analyze without loops and blocks", baseline, "analyze $TRACE --analyses default"},
	{"analyze", baseline, "analyze $TRACE"},
	{"analyze, one worker", "analyze", "analyze $TRACE --workers 1"},
	{"simulate", baseline, "simulate $TRACE --cache L1=32KiB,8 --cache L2=1MiB,16"},
	{"what-if", "simulate", "what-if $TRACE --cache L1=32KiB,8 --cache L2=1MiB,16"},
	{"check", baseline, "check $TRACE"},
	{"loops --cache", "simulate", "loops $TRACE --cache L1=32KiB,8 --cache L2=1MiB,16"},
	{"diagnose a profile", "analyze", "diagnose $PROFILE"},
}

const (
	baseline = "baseline"
	line     = 64
)

// cost is the time of a run.
type cost struct{ cpu, wall time.Duration }

type program struct {
	name, kind string
	files      map[string]string // by the words of questions
	references uint64
	bytes      int64
	median     map[string]cost // by question
}

func main() {
	page := flag.String("o", "tools/speed/SPEED.md", "file to write")
	folder := flag.String("baseline", os.Getenv("STACKGLASS_BASELINE"), "folder with fen.cc")
	rounds := flag.Int("rounds", 5, "how often each run is measured")
	names := flag.String("programs", ".", "which programs, a regular expression")
	flag.Parse()
	work, err := os.MkdirTemp("", "speed")
	if err == nil {
		defer os.RemoveAll(work)
		err = run(work, *page, *folder, *rounds, *names)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "speed:", err)
		os.Exit(1)
	}
}

func run(work, page, folder string, rounds int, names string) error {
	wanted, err := regexp.Compile(names)
	if err != nil {
		return err
	}
	command := filepath.Join(work, "stackglass")
	if err := do(nil, "go", "build", "-o", command, "./tools/stackglass"); err != nil {
		return err
	}
	plain := ""
	if folder != "" {
		plain = filepath.Join(work, "fen")
		if err := do(nil, "c++", "-O3", "-march=native", "-o", plain, filepath.Join(folder, "fen.cc")); err != nil {
			return err
		}
	}
	sources, err := filepath.Glob("tools/speed/programs/*.c")
	if err != nil {
		return err
	}
	var measured []*program
	for _, source := range sources {
		name := strings.TrimSuffix(filepath.Base(source), ".c")
		if !wanted.MatchString(name) {
			continue
		}
		for _, team := range teams(name) {
			p, err := capture(work, command, source, name, team)
			if err != nil {
				return err
			}
			if err := p.measure(command, plain, rounds); err != nil {
				return err
			}
			measured = append(measured, p)
		}
	}
	var out strings.Builder
	write(&out, measured, rounds, plain != "")
	return os.WriteFile(page, []byte(out.String()), 0o644)
}

// teams returns with how many threads a program is run.
func teams(name string) []int {
	if name == "team" {
		return []int{1, 4}
	}
	return []int{0}
}

// capture compiles and runs a program, and makes the other files that questions name.
func capture(work, command, source, name string, team int) (*program, error) {
	text, err := os.ReadFile(source)
	if err != nil {
		return nil, err
	}
	kind, _, _ := strings.Cut(strings.TrimPrefix(string(text), "// "), "\n")
	kind, _, _ = strings.Cut(kind, ":")
	p := &program{name: name, kind: kind, median: map[string]cost{}}
	compile := []string{"cc", "--", "clang-19", "-O2", source, "-o"}
	if team > 0 {
		p.name = fmt.Sprintf("%s of %d", name, team)
		compile = slices.Insert(compile, 4, "-fopenmp", fmt.Sprintf("-DTEAM=%d", team))
	}
	base := filepath.Join(work, strings.ReplaceAll(p.name, " ", "-"))
	p.files = map[string]string{"$TRACE": base + ".sgt", "$TEXT": base + ".lackey.lz4", "$PROFILE": base + ".sgp", "$LINES": base + ".lines"}
	trace := "STACKGLASS_OUT=" + p.files["$TRACE"]
	for _, step := range []func() error{
		func() error { return do(nil, command, append(compile, base)...) },
		func() error { return do([]string{trace}, base) },
		func() error { return do(nil, command, "analyze", p.files["$TRACE"], "-o", p.files["$PROFILE"]) },
		p.writeLines,
		func() error { return pack(command, p.files["$TRACE"], p.files["$TEXT"]) },
	} {
		if err := step(); err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
	}
	about, err := os.Stat(p.files["$TRACE"])
	if err == nil {
		p.bytes = about.Size()
	}
	return p, err
}

// writeLines writes the lines that the references access, for the baseline.
func (p *program) writeLines() (err error) {
	file, err := os.Open(p.files["$TRACE"])
	if err != nil {
		return err
	}
	defer file.Close()
	r, err := open.Open(file.Name(), file, open.Options{})
	if err != nil {
		return err
	}
	out, err := os.Create(p.files["$LINES"])
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(out, 1<<20)
	batch := trace.NewBatch(0)
	for err == nil {
		if err = r.Next(batch); err == nil {
			p.references += writeBatch(w, batch)
		}
	}
	if err == io.EOF {
		err = w.Flush()
	}
	if closed := out.Close(); err == nil {
		err = closed
	}
	return err
}

// writeBatch writes the lines of a batch and returns how many references it has.
func writeBatch(w *bufio.Writer, batch *trace.Batch) (references uint64) {
	for i, kind := range batch.Kind {
		if !kind.IsReference() || kind == trace.Fetch {
			continue
		}
		references++
		last := uint64(batch.Addr[i]) + max(uint64(batch.Bytes[i]), 1) - 1
		for l := uint64(batch.Addr[i]) / line; l <= last/line; l++ {
			var word [8]byte
			binary.LittleEndian.PutUint64(word[:], l)
			w.Write(word[:]) // Flush reports what went wrong
		}
	}
	return references
}

// pack writes a trace as lackey's text, packed by LZ4.
func pack(command, from, to string) (err error) {
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	w := lz4.NewWriter(out)
	cmd := exec.Command(command, "convert", from, "--to", "lackey", "-o", "-")
	cmd.Stdout = w
	err = cmd.Run()
	for _, end := range []func() error{w.Close, out.Close} {
		if ended := end(); err == nil {
			err = ended
		}
	}
	return err
}

// measure runs all questions, round by round.
func (p *program) measure(command, plain string, rounds int) error {
	taken := map[string][]cost{}
	for range rounds {
		if plain != "" {
			c, err := spend(plain, p.files["$LINES"], os.DevNull)
			if err != nil {
				return err
			}
			taken[baseline] = append(taken[baseline], c)
		}
		for _, q := range questions {
			words := strings.Fields(q.words)
			for i, word := range words {
				if file, is := p.files[word]; is {
					words[i] = file
				}
			}
			c, err := spend(command, words...)
			if err != nil {
				fmt.Fprintf(os.Stderr, "speed: %s, %s: %v\n", p.name, q.name, err)
				continue // a table has no number there
			}
			taken[q.name] = append(taken[q.name], c)
		}
	}
	for name, list := range taken {
		slices.SortFunc(list, func(a, b cost) int { return int(a.cpu - b.cpu) })
		p.median[name] = list[len(list)/2]
	}
	return nil
}

// spend runs a program and returns its time.
func spend(name string, words ...string) (cost, error) {
	cmd := exec.Command(name, words...)
	begun := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		return cost{}, fmt.Errorf("%s: %w: %s", strings.Join(words, " "), err, out)
	}
	c := cost{wall: time.Since(begun), cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	return c, nil
}

// write writes the page.
func write(w io.Writer, measured []*program, rounds int, compared bool) {
	fmt.Fprintf(w, "# Speed\n\n`make speed` makes this page. %s, %s; processor time of whole runs, medians of %d. A\nratio above 1 is faster than what it is compared with. There is no number where the command has no answer.\n", runtime.Version(), processor(), rounds)
	if compared {
		fmt.Fprintf(w, "The baseline is the textbook's method in C++, a hash table and a Fenwick tree, which reads bare numbers of lines.\n")
	}
	heads := []string{""}
	for _, p := range measured {
		heads = append(heads, p.name)
	}
	table := func(title string, row func(add func(name string, cell func(p *program) string))) {
		fmt.Fprintf(w, "\n## %s\n\n| %s |\n|%s\n", title, strings.Join(heads, " | "), strings.Repeat("---|", len(heads)))
		row(func(name string, cell func(p *program) string) {
			cells := []string{name}
			for _, p := range measured {
				cells = append(cells, cell(p))
			}
			fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | "))
		})
	}
	table("Traces", func(add func(string, func(*program) string)) {
		add("kind", func(p *program) string { return p.kind })
		add("references, millions", func(p *program) string { return fmt.Sprintf("%.1f", float64(p.references)/1e6) })
		add("bytes a reference", func(p *program) string { return fmt.Sprintf("%.3f", float64(p.bytes)/float64(p.references)) })
	})
	table("Speed, as a multiple of what each is compared with", func(add func(string, func(*program) string)) {
		for _, q := range questions {
			if q.of == baseline && !compared {
				continue
			}
			add(q.name+" ÷ "+q.of, func(p *program) string {
				if p.median[q.name].cpu == 0 {
					return "–"
				}
				return fmt.Sprintf("%.2f", p.median[q.of].cpu.Seconds()/p.median[q.name].cpu.Seconds())
			})
		}
	})
	every := append([]question{}, questions...)
	if compared {
		every = slices.Insert(every, 0, question{name: baseline})
	}
	table("Seconds of a processor", func(add func(string, func(*program) string)) {
		for _, q := range every {
			add(q.name, func(p *program) string { return seconds(p.median[q.name].cpu) })
		}
	})
	table("Seconds by the clock", func(add func(string, func(*program) string)) {
		for _, q := range every {
			add(q.name, func(p *program) string { return seconds(p.median[q.name].wall) })
		}
	})
}

// seconds formats a time; 0: there was no answer.
func seconds(t time.Duration) string {
	if t == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", t.Seconds())
}

// processor names the machine.
func processor() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	if m := regexp.MustCompile(`model name\s*: (.*)`).FindSubmatch(text); m != nil {
		return fmt.Sprintf("%d of %s", runtime.NumCPU(), m[1])
	}
	return fmt.Sprintf("%d processors", runtime.NumCPU())
}

// do runs a program in silence.
func do(environment []string, name string, words ...string) error {
	cmd := exec.Command(name, words...)
	cmd.Env = append(os.Environ(), environment...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return nil
}
