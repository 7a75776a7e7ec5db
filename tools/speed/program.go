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

// program describes a traced program, and contains the measurements of its traces.
type program struct {
	name, kind    string
	files         map[string]string // for each name in question.arguments, such as $TRACE: the path of the program's file
	references    float64
	accesses      float64 // number of line accesses
	distinct      float64
	cacheFriendly bool // whether more than 97 % of the accesses hit in a cache of 32 KiB
	costs         map[string][]cost
	figures       map[string][]float64 // measurements of the kernels, the samples and the browser tab
}

func newProgram(name, kind string) *program {
	return &program{name: name, kind: kind, costs: map[string][]cost{}, figures: map[string][]float64{}}
}

// fileName returns the program's name without spaces, for use in file names.
func (p *program) fileName() string { return strings.ReplaceAll(p.name, " ", "-") }

// inTab reports whether the program is also measured in the browser tab.
func (p *program) inTab() bool {
	return slices.Contains([]string{"interpreter", "join", "team of 4"}, p.name)
}

// captureProgram compiles and traces a program, and writes the other files that the questions need.
func (s *session) captureProgram(source, name string, team int) *program {
	text, err := os.ReadFile(source)
	check(err)
	kind, _, _ := strings.Cut(strings.TrimPrefix(string(text), "// "), ":")
	p := newProgram(name, kind)
	compile := []string{"cc", "--", "clang-19", "-O2", source, "-o"}
	if team > 0 {
		p.name = fmt.Sprintf("%s of %d", name, team)
		compile = slices.Insert(compile, 4, "-fopenmp", fmt.Sprintf("-DTEAM=%d", team))
	}
	base := filepath.Join(s.work, p.fileName())
	p.files = map[string]string{
		"$TRACE": base + ".sgt", "$TEXT": base + ".lackey.lz4", "$PROFILE": base + ".sgp", "$LINES": base + ".lines",
		"$FOLDED": base + ".sgl", "$ONE": base + "-1.sgt",
	}
	output(nil, s.command, append(compile, base)...)
	output([]string{"STACKGLASS_OUT=" + p.files["$TRACE"]}, base)
	output(nil, s.command, "convert", p.files["$TRACE"], "--limit", "1", "-o", p.files["$ONE"])
	p.writeLines()
	if p.traced() {
		output(nil, s.command, "analyze", p.files["$TRACE"], "-o", p.files["$PROFILE"])
		writeText(s.command, p.files["$TRACE"], p.files["$TEXT"])
	}
	return p
}

// size returns the size of one of the program's files in bytes, or 0 if the file does not exist.
func (p *program) size(word string) float64 {
	about, err := os.Stat(p.files[word])
	if err != nil {
		return 0
	}
	return float64(about.Size())
}

// writeLines writes a file for the baseline. The file contains the cache line numbers of all
// references except fetches.
func (p *program) writeLines() {
	file, err := os.Open(p.files["$TRACE"])
	check(err)
	defer file.Close()
	r, err := open.Open(file.Name(), file, open.Options{})
	check(err)
	out, err := os.Create(p.files["$LINES"])
	check(err)
	w := bufio.NewWriterSize(out, 1<<20)
	for batch := trace.NewBatch(0); ; {
		if err := r.Next(batch); err == io.EOF {
			break
		} else {
			check(err)
		}
		for i, kind := range batch.Kind {
			if !kind.IsReference() || kind == trace.Fetch {
				continue
			}
			p.references++
			last := batch.Addr[i] + uint64(max(batch.Bytes[i], 1)) - 1
			for l := batch.Addr[i] / line; l <= last/line; l++ {
				w.Write(binary.LittleEndian.AppendUint64(w.AvailableBuffer(), l)) // Flush reports the errors of earlier writes
				p.accesses++
			}
		}
	}
	check(errors.Join(w.Flush(), out.Close()))
}

// writeText converts a trace to lackey's text format, compressed with LZ4.
func writeText(command, from, to string) {
	out, err := os.Create(to)
	check(err)
	w := lz4.NewWriter(out)
	cmd := exec.Command(command, "convert", from, "--to", "lackey", "-o", "-")
	cmd.Stdout = w
	check(errors.Join(cmd.Run(), w.Close(), out.Close()))
}
