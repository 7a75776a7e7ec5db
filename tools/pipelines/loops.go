package main

import (
	"bytes"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/ir"
	"github.com/stackglass/stackglass/core/trace"
)

// loop contains one loop body, in all forms that the comparison needs.
type loop struct {
	name     string
	block    trace.Block // the loop in the optimised IR
	target   trace.Target
	assembly string  // the assembly of the loop
	count    float64 // number of iterations in a run with the larger size minus the number in a run with the smaller size
	measured float64 // cycles per iteration; 0: not measured
	median   float64 // the median of several rounds; the field "measured" contains the fastest round
}

// source is a file of loops, with the flags to compile it.
type source struct {
	file  string
	flags []string
}

var sources = []source{
	{"scalar.c", []string{"-fno-vectorize", "-fno-slp-vectorize", "-fno-unroll-loops"}},
	{"wide.c", nil},
	{"sums.c", []string{"-ffast-math"}},
}

// build contains the compiled loops, and the folders of sources and intermediate files.
type build struct {
	dir, testdata string
	machine       string // the processor for which clang generates code
	// whether the loops were written for a different processor; in this case, a loop is skipped if
	// it cannot be compiled to one block for this target
	otherTarget bool
	loops       []loop
}

func command(name string, args ...string) error {
	cmd := exec.Command(name, args...)
	var messages bytes.Buffer
	cmd.Stdout, cmd.Stderr = &messages, &messages
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %.600s", strings.Join(cmd.Args, " "), err, messages.String())
	}
	return nil
}

// compile generates optimised IR, and assembly from exactly this IR.
func (b *build) compile(s source) error {
	stem := filepath.Join(b.dir, strings.TrimSuffix(s.file, ".c"))
	module, counted, err := b.compileModule(s, stem)
	if err != nil {
		return err
	}
	assembly, err := os.ReadFile(stem + ".s")
	if err != nil {
		return err
	}
	program := module.Program
	for f := range program.Functions {
		name := program.Functions[f].Name
		block, ok := largestLoop(program, f)
		if !ok {
			return fmt.Errorf("%s: the IR has no single-block loop", name)
		}
		code, err := bodyOf(string(assembly), name, block.Label)
		if err != nil && b.otherTarget {
			continue // skip the loop, which contains a branch or a call on this target
		} else if err != nil {
			return err
		}
		b.loops = append(b.loops, loop{name: name, block: *block, target: program.Functions[f].Target, assembly: code})
		if counted, err = addCounter(counted, name, block.Label); err != nil {
			return err
		}
	}
	return b.generateCounted(stem, counted+"\n@pipelines_count = external global i64\n")
}

// compileModule compiles a source file to stem.ll, and then stem.ll to stem.s. It returns the IR,
// both parsed and as text.
func (b *build) compileModule(s source, stem string) (m *ir.Module, text string, err error) {
	content, err := compileToIR(stem+".ll", b.optimise(filepath.Join(b.testdata, s.file), s.flags)...)
	if err != nil {
		return nil, "", err
	}
	if m, err = ir.Read(content); err != nil {
		return nil, "", err
	}
	return m, string(content), b.generate(stem+".ll", stem+".s")
}

// compileToIR runs clang, which writes LLVM IR to a file, and returns the content of this file.
func compileToIR(file string, args ...string) ([]byte, error) {
	if err := command(clangProgram, append(args, "-S", "-emit-llvm", "-o", file)...); err != nil {
		return nil, err
	}
	return os.ReadFile(file)
}

// generateCounted generates assembly from IR text that contains code to count the executions of
// blocks.
func (b *build) generateCounted(stem, text string) error {
	if err := os.WriteFile(stem+".counted.ll", []byte(text), 0o644); err != nil {
		return err
	}
	return b.generate(stem+".counted.ll", stem+".counted.s")
}

// generate compiles IR to assembly without optimising it again.
func (b *build) generate(from, to string) error {
	return command(clangProgram, "-O2", "-march="+b.machine, "-Xclang", "-disable-llvm-passes", "-x", "ir", "-S", from, "-o", to)
}

// largestLoop returns the single-block loop with the most instructions, which processes most of the
// elements.
func largestLoop(p *trace.Program, function int) (*trace.Block, bool) {
	var best *trace.Block
	f := &p.Functions[function]
	for i := f.First; i < f.First+f.Blocks; i++ {
		b := &p.Blocks[i]
		if b.Flags&trace.HeaderBlock != 0 && b.Flags&trace.LatchBlock != 0 && (best == nil || len(b.Instrs) > len(best.Instrs)) {
			best = b
		}
	}
	return best, best != nil
}

// bodyOf returns the assembly of a loop, from the loop's label to the jump back to this label.
func bodyOf(assembly, function, block string) (string, error) {
	_, rest, ok := strings.Cut(assembly, "\n"+function+":")
	if !ok {
		return "", fmt.Errorf("the assembly does not contain function %s", function)
	}
	rest, _, _ = strings.Cut(rest, ".Lfunc_end")
	lines := strings.Split(rest, "\n")
	label := regexp.MustCompile(`^(\.LBB\d+_\d+):\s*# %` + regexp.QuoteMeta(block) + `$`)
	for i, line := range lines {
		m := label.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		var code []string
		for _, line := range lines[i+1:] {
			line, _, _ = strings.Cut(line, "#")
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, ".LBB") {
				break
			}
			if line == "" || strings.HasPrefix(line, ".") {
				continue
			}
			code = append(code, line)
			if mnemonic, target, _ := strings.Cut(line, "\t"); strings.HasPrefix(mnemonic, "j") && target == m[1] {
				return strings.Join(code, "\n"), nil
			}
		}
		return "", fmt.Errorf("%s: the loop %s has more than one block of assembly", function, block)
	}
	return "", fmt.Errorf("%s: no block %s in the assembly", function, block)
}

// addCounter adds code to a block of IR. The code counts the executions of the block.
func addCounter(text, function, block string) (string, error) {
	return insertIncrement(text, function, block, "@pipelines_count", "")
}

// insertIncrement adds code to a block of IR, after the block's phis. The code increments a
// counter.
func insertIncrement(text, function, block, counter, suffix string) (string, error) {
	header := regexp.MustCompile(`(?m)^define .*@` + regexp.QuoteMeta(function) + `\(`).FindStringIndex(text)
	if header == nil {
		return "", fmt.Errorf("the IR does not contain function %s", function)
	}
	at := header[0]
	from := strings.Index(text[at:], "\n"+block+":")
	if from < 0 {
		return "", fmt.Errorf("%s: no block %s in the IR", function, block)
	}
	place := at + from + 1
	for {
		place += strings.IndexByte(text[place:], '\n') + 1
		line, _, _ := strings.Cut(text[place:], "\n")
		if !strings.Contains(line, " = phi ") {
			break
		}
	}
	was, is := "%pipelines.was"+suffix, "%pipelines.is"+suffix
	return text[:place] + "  " + was + " = load i64, ptr " + counter + "\n  " + is + " = add i64 " + was + ", 1\n" +
		"  store i64 " + is + ", ptr " + counter + "\n" + text[place:], nil
}

// run builds and runs a program that contains kernels. It returns the numbers that the program
// prints after the name of each kernel.
func (b *build) run(program string, names, assembly []string, flags ...string) (map[string][]float64, error) {
	list := ""
	for _, name := range names {
		list += "KERNEL(" + name + ")\n"
	}
	if err := os.WriteFile(filepath.Join(b.dir, "kernels.h"), []byte(list), 0o644); err != nil {
		return nil, err
	}
	args := append([]string{"-O2", "-I", b.dir, "-o", filepath.Join(b.dir, program), filepath.Join(b.testdata, program+".c")}, flags...)
	if err := command(clangProgram, append(append(args, assembly...), "-lm")...); err != nil {
		return nil, err
	}
	out, err := exec.Command(filepath.Join(b.dir, program)).Output()
	if err != nil {
		return nil, err
	}
	numbers := map[string][]float64{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		for _, field := range fields[1:] {
			x, err := strconv.ParseFloat(field, 64)
			if err != nil {
				return nil, err
			}
			numbers[fields[0]] = append(numbers[fields[0]], x)
		}
	}
	return numbers, nil
}

// measure measures the time per iteration of each loop on this machine.
func (b *build) measure() error {
	var counted, plain []string
	for _, s := range sources {
		stem := filepath.Join(b.dir, strings.TrimSuffix(s.file, ".c"))
		counted, plain = append(counted, stem+".counted.s"), append(plain, stem+".s")
	}
	counts, err := b.run("counter", b.names(), counted)
	if err != nil {
		return err
	}
	times, err := b.run("harness", b.names(), plain)
	if err != nil {
		return err
	}
	for i := range b.loops {
		l := &b.loops[i]
		if n := counts[l.name]; len(n) == 1 {
			l.count = n[0]
		}
		if t := times[l.name]; len(t) == 2 && l.count > 0 {
			l.measured, l.median = t[0]/l.count, t[1]/l.count
		}
	}
	return nil
}

//go:embed snippets/*.txt
var snippetFiles embed.FS

// snippet is the code for one class of instructions on one kind of machine, in several forms, with
// the best form first. A processor uses the first form that its assembler supports. The lines of
// code in each form are executed in sequence.
type snippet struct {
	key   string // class and type of the instructions, in the syntax of descriptions
	forms []string
}

// readSnippets reads the snippets for an instruction set.
func readSnippets(isa string) (list []snippet, err error) {
	text, err := snippetFiles.ReadFile("snippets/" + isa + ".txt")
	for line := range strings.Lines(string(text)) {
		if key, ways, found := strings.Cut(strings.TrimSpace(line), ": "); found && !strings.HasPrefix(line, "#") {
			list = append(list, snippet{key, strings.Split(strings.ReplaceAll(ways, "; ", "\n"), " | ")})
		}
	}
	return list, err
}
