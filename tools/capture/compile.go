package capture

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/ir"
)

// irArguments are those that make IR text, on standard output, of a source.
func (b *build) irArguments(src *argument) []string {
	args := b.line.words(aSetting, aMachine)
	args = append(args, b.dependencyArguments(src)...)
	args = append(args, b.coverageArguments(src)...)
	if !b.compiler.fortran {
		if b.line.mode == building {
			args = append(args, "-Qunused-arguments") // those for the linker
		}
		args = append(args, "-fno-discard-value-names", "-Xclang", "-disable-O0-optnone")
		if !src.preprocessed() {
			args = append(args, "-idirafter", b.runtime.Include)
		}
	}
	if !b.debugs() {
		args = append(args, "-g")
	}
	if src.language != "" {
		args = append(args, "-x", src.language)
	}
	return append(args, "-S", "-emit-llvm", "-o", "-", src.name())
}

// debugs tells whether the build asks for debug information itself.
func (b *build) debugs() bool {
	for _, a := range b.line.args {
		if a.role == aSetting && strings.HasPrefix(a.name(), "-g") && a.name() != "-g0" && !saysHow(a.name()) {
			return true
		}
	}
	return false
}

// saysHow tells options with a g that ask for no debug information.
func saysHow(option string) bool {
	return slices.ContainsFunc([]string{"-gcc", splitDebug, "-gz", "-gno-"}, func(begins string) bool {
		return strings.HasPrefix(option, begins)
	})
}

// splitDebug puts debug information into a file beside the object.
const splitDebug = "-gsplit-dwarf"

// dependencyArguments keep dependency files as they would be: where the compiler
// would name them after the object, it is told the name.
func (b *build) dependencyArguments(src *argument) []string {
	args := b.line.words(aDependency)
	var wanted, file, target bool
	for _, arg := range args {
		wanted = wanted || arg == "-MD" || arg == "-MMD" || strings.HasPrefix(arg, "-Wp,-MD") || strings.HasPrefix(arg, "-Wp,-MMD") || strings.HasPrefix(arg, "--write-")
		file = file || strings.HasPrefix(arg, "-MF") || strings.HasPrefix(arg, "-Wp,-MD,") || strings.HasPrefix(arg, "-Wp,-MMD,")
		target = target || strings.HasPrefix(arg, "-MT") || strings.HasPrefix(arg, "-MQ") || strings.Contains(arg, ",-MT") || strings.Contains(arg, ",-MQ")
	}
	if !wanted {
		return args
	}
	named := b.line.output
	if named == "" {
		named = replaceExtension(filepath.Base(src.name()), ".o")
	}
	if !file {
		args = append(args, "-MF", replaceExtension(named, ".d"))
	}
	if !target {
		args = append(args, "-MQ", named)
	}
	return args
}

func replaceExtension(file, with string) string {
	return strings.TrimSuffix(file, filepath.Ext(file)) + with
}

// objectArguments are those that make an object of IR text on standard input.
func (b *build) objectArguments(object string) []string {
	args := []string{"-Qunused-arguments"}
	if b.compiler.fortran {
		for _, word := range b.line.words(aMachine) {
			if !strings.HasPrefix(word, "-mllvm") && !strings.HasPrefix(word, "-mmlir") {
				args = append(args, word)
			}
		}
	} else {
		args = append(args, b.line.words(aMachine)...)
	}
	for _, word := range b.line.words(aSetting) {
		if strings.HasPrefix(word, splitDebug) && b.line.mode == compiling && b.debugs() {
			args = append(args, word)
		}
	}
	return append(args, "-w", "-O2", "-Xclang", "-disable-llvm-passes", "-x", "ir", "-c", "-", "-o", object)
}

// compile makes the object of one source. A status that is not 0 is the
// compiler's own, which has said why.
func (b *build) compile(src *argument, object string) (status int, err error) {
	var text bytes.Buffer
	cmd := exec.Command(b.compiler.path, b.irArguments(src)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = b.io.Stdin, &text, b.io.Stderr
	if status, err := statusOf(cmd.Run()); status != 0 || err != nil {
		return status, err
	}
	return b.assemble(src, text.Bytes(), object)
}

// withoutDebug makes the object free of debug information that only we asked for.
// The tables have what they need of it.
func (b *build) withoutDebug(text []byte) []byte {
	if b.debugs() {
		return text
	}
	return bytes.ReplaceAll(text, []byte("emissionKind: FullDebug"), []byte("emissionKind: NoDebug"))
}

// assemble makes the object of IR text. What a compiler cannot take in rewritten
// form stays as it was: first single functions, then all, then the whole source.
func (b *build) assemble(src *argument, text []byte, object string) (status int, err error) {
	options := ir.Options{Source: src.name(), CompileOptions: strings.Join(b.line.words(aSetting, aMachine), " "), Instrs: true}
	for everything := false; ; {
		made, err := ir.Instrument(text, options)
		if err != nil {
			b.note(src.name(), " is not traced: ", err.Error())
			break
		}
		said, err := b.object(b.withoutDebug(made.Text), object)
		if said == "" || err != nil {
			return 0, err
		}
		if isAboutOutput(said) {
			return b.asItIs(src, object) // it says so in its own words
		}
		if everything {
			break // it is not the functions
		}
		options.Skip, everything = b.leaveOut(src, options.Skip, said, made)
	}
	if said, err := b.object(b.withoutDebug(text), object); said == "" || err != nil {
		return 0, err
	}
	return b.asItIs(src, object)
}

// isAboutOutput tells whether there is no object because it cannot be written.
func isAboutOutput(said string) bool {
	return slices.ContainsFunc([]string{"unable to open output file", "unable to rename temporary", "IO failure on output"}, func(words string) bool {
		return strings.Contains(said, words)
	})
}

// leaveOut adds to the functions to skip the one that an error is about, or all.
func (b *build) leaveOut(src *argument, skip []string, said string, made *ir.Result) (more []string, everything bool) {
	first, _, _ := strings.Cut(said, "\n")
	if name := culprit(said, made.Text); name != "" && !slices.Contains(skip, name) && len(skip) < mostSkipped {
		b.note(src.name(), ": ", name, " is not traced: what was made of it does not compile (", first, ")")
		return append(skip, name), false
	}
	b.note(src.name(), " is not traced: what was made of it does not compile (", first, ")")
	for _, f := range made.Program.Functions {
		skip = append(skip, f.Name)
	}
	return skip, true
}

// mostSkipped is how many functions of a source are left out one by one.
const mostSkipped = 8

// object makes an object of IR text; said is why it is none.
func (b *build) object(text []byte, object string) (said string, err error) {
	var stderr bytes.Buffer
	cmd := exec.Command(b.compiler.clang, b.objectArguments(object)...)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(text), &stderr
	status, err := statusOf(cmd.Run())
	if status == 0 || err != nil {
		return "", err
	}
	return strings.TrimSpace(stderr.String()) + "\n", nil
}

// asItIs compiles a source without us.
func (b *build) asItIs(src *argument, object string) (int, error) {
	args := b.line.words(aSetting, aMachine)
	if src.language != "" {
		args = append(args, "-x", src.language)
	}
	return b.io.run(b.compiler.path, append(args, "-c", src.name(), "-o", object))
}

var (
	namedFunction = regexp.MustCompile(`in function '?"?([A-Za-z0-9_.$]+)`)
	lineOfText    = regexp.MustCompile(`(?:<stdin>|-):(\d+):\d+: error`)
)

// culprit is the function that an error is about, "" where it does not say.
func culprit(said string, text []byte) string {
	if m := namedFunction.FindStringSubmatch(said); m != nil {
		return m[1]
	}
	m := lineOfText.FindStringSubmatch(said)
	if m == nil {
		return ""
	}
	line, err := strconv.Atoi(m[1])
	if err != nil {
		return ""
	}
	return functionAt(text, line)
}

var definition = regexp.MustCompile(`^define .*?@("[^"]*"|[-A-Za-z0-9_.$]+)\(`)

// functionAt is the function around a line of IR text.
func functionAt(text []byte, line int) (name string) {
	for n, l := range bytes.Split(text, []byte("\n")) {
		if n >= line {
			break
		}
		if m := definition.FindSubmatch(l); m != nil {
			name = strings.Trim(string(m[1]), `"`)
		} else if len(l) == 1 && l[0] == '}' {
			name = ""
		}
	}
	return name
}
