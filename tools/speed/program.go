package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pierrec/lz4/v4"

	"github.com/stackglass/stackglass/core/open"
	"github.com/stackglass/stackglass/core/trace"
)

const line = 64

// program is a traced program and what was measured on its traces.
type program struct {
	name, kind string
	files      map[string]string // by the words of questions
	references uint64
	accesses   uint64 // of lines
	distinct   uint64
	friendly   bool // nearly all accesses hit in 32 KiB
	costs      map[string][]cost
	figures    map[string][]float64 // of kernels, samples and the tab
}

func newProgram(name, kind string) *program {
	return &program{name: name, kind: kind, costs: map[string][]cost{}, figures: map[string][]float64{}}
}

// wide tells whether the program is there for its memory alone.
func (p *program) wide() bool { return p.kind == "memory" }

// file is the program's name in names of files.
func (p *program) file() string { return strings.ReplaceAll(p.name, " ", "-") }

// inTab tells whether the tab runs the program, too.
func (p *program) inTab() bool {
	return slices.Contains([]string{"interpreter", "join", "team of 4"}, p.name)
}

// capture compiles and runs a program, and makes the other files that questions name.
func (s *session) capture(source, name string, team int) (*program, error) {
	text, err := os.ReadFile(source)
	if err != nil {
		return nil, err
	}
	kind, _, _ := strings.Cut(strings.TrimPrefix(string(text), "// "), ":")
	p := newProgram(name, kind)
	compile := []string{"cc", "--", "clang-19", "-O2", source, "-o"}
	if team > 0 {
		p.name = fmt.Sprintf("%s of %d", name, team)
		compile = slices.Insert(compile, 4, "-fopenmp", fmt.Sprintf("-DTEAM=%d", team))
	}
	base := filepath.Join(s.work, p.file())
	p.files = map[string]string{
		"$TRACE": base + ".sgt", "$TEXT": base + ".lackey.lz4", "$PROFILE": base + ".sgp", "$LINES": base + ".lines",
		"$FOLDED": base + ".sgl", "$ONE": base + "-1.sgt",
	}
	steps := []func() error{
		func() error { return do(nil, s.command, append(compile, base)...) },
		func() error { return do([]string{"STACKGLASS_OUT=" + p.files["$TRACE"]}, base) },
		func() error {
			return do(nil, s.command, "convert", p.files["$TRACE"], "--limit", "1", "-o", p.files["$ONE"])
		},
		p.writeLines,
	}
	if !p.wide() {
		steps = append(steps,
			func() error { return do(nil, s.command, "analyze", p.files["$TRACE"], "-o", p.files["$PROFILE"]) },
			func() error { return pack(s.command, p.files["$TRACE"], p.files["$TEXT"]) })
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return p, nil
}

// size returns the length of a file in bytes; 0: there is none.
func (p *program) size(word string) float64 {
	about, err := os.Stat(p.files[word])
	if err != nil {
		return 0
	}
	return float64(about.Size())
}

// writeLines writes the lines that the references access, for the baseline.
func (p *program) writeLines() error {
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
		if err = r.Next(batch); err != nil {
			break
		}
		for i, kind := range batch.Kind {
			if !kind.IsReference() || kind == trace.Fetch {
				continue
			}
			p.references++
			last := batch.Addr[i] + uint64(max(batch.Bytes[i], 1)) - 1
			for l := batch.Addr[i] / line; l <= last/line; l++ {
				w.Write(binary.LittleEndian.AppendUint64(w.AvailableBuffer(), l)) // Flush reports what went wrong
				p.accesses++
			}
		}
	}
	if err == io.EOF {
		err = w.Flush()
	}
	return errors.Join(err, out.Close())
}

// pack writes a trace as lackey's text, packed by LZ4.
func pack(command, from, to string) error {
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	w := lz4.NewWriter(out)
	cmd := exec.Command(command, "convert", from, "--to", "lackey", "-o", "-")
	cmd.Stdout = w
	return errors.Join(cmd.Run(), w.Close(), out.Close())
}
