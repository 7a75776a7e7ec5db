package capture

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/ir"
	"github.com/stackglass/stackglass/core/trace/sourcefile"
)

// irArguments returns the arguments that compile a source to IR text on standard output.
func (b *build) irArguments(src *argument) []string {
	args := b.line.words(aSetting, aMachine)
	args = append(args, b.dependencyArguments(src)...)
	args = append(args, b.coverageArguments(src)...)
	if !b.compiler.fortran {
		if b.line.mode == building {
			// the command line also contains arguments for the linker
			args = append(args, "-Qunused-arguments")
		}
		args = append(args, "-fno-discard-value-names", "-Xclang", "-disable-O0-optnone")
		switch {
		case src.isIR():
			// Another compiler may name the same processor differently.
			args = append(args, "-Wno-override-module")
		case !src.preprocessed():
			args = append(args, "-idirafter", b.runtime.Include)
		}
	}
	if !b.wantsDebugInfo() {
		args = append(args, "-g")
	}
	if src.language != "" {
		args = append(args, "-x", src.language)
	}
	return append(args, "-S", "-emit-llvm", "-o", "-", src.name())
}

// wantsDebugInfo reports whether the build requests debug information.
func (b *build) wantsDebugInfo() bool {
	return slices.ContainsFunc(b.line.args, func(a argument) bool {
		return a.role == aSetting && strings.HasPrefix(a.name(), "-g") && a.name() != "-g0" &&
			!beginsWithAny(a.name(), "-gcc", splitDebug, "-gz", "-gno-") // these options do not request debug information
	})
}

func beginsWithAny(word string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(word, prefix) })
}

func containsAny(text string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}

// splitDebug is the option that writes debug information to a separate file next to the object.
const splitDebug = "-gsplit-dwarf"

// dependencyArguments returns the options that make the compiler write dependency files under the
// names that it would derive from the object's name.
func (b *build) dependencyArguments(src *argument) []string {
	args := b.line.words(aDependency)
	var wanted, file, target bool
	for _, arg := range args {
		wanted = wanted || arg == "-MD" || arg == "-MMD" || beginsWithAny(arg, "-Wp,-MD", "-Wp,-MMD", "--write-")
		file = file || beginsWithAny(arg, "-MF", "-Wp,-MD,", "-Wp,-MMD,")
		target = target || beginsWithAny(arg, "-MT", "-MQ") || containsAny(arg, ",-MT", ",-MQ")
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

// objectArguments returns the arguments that compile IR text on standard input to an object.
func (b *build) objectArguments(object string) []string {
	args := []string{"-Qunused-arguments"}
	for _, word := range b.line.words(aMachine) {
		if !b.compiler.fortran || !beginsWithAny(word, "-mllvm", "-mmlir") {
			args = append(args, word)
		}
	}
	for _, word := range b.line.words(aSetting) {
		if strings.HasPrefix(word, splitDebug) && b.line.mode == compiling && b.wantsDebugInfo() {
			args = append(args, word)
		}
	}
	return append(args, "-w", "-O2", "-Xclang", "-disable-llvm-passes", "-x", "ir", "-c", "-", "-o", object)
}

// compile compiles one source to an object. A nonzero status is the exit status of the compiler,
// which has printed the reason.
func (b *build) compile(src *argument, object string) (status int, err error) {
	var text bytes.Buffer
	cmd := exec.Command(b.compiler.path, b.irArguments(src)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = b.io.Stdin, &text, b.io.Stderr
	if status, err := statusOf(cmd.Run()); status != 0 || err != nil {
		return status, err
	}
	return b.assemble(src, text.Bytes(), object)
}

// withoutDebug removes debug information that the build did not request. The trace does not need
// the debug information, because the tables contain all necessary data.
func (b *build) withoutDebug(text []byte) []byte {
	if b.wantsDebugInfo() {
		return text
	}
	return bytes.ReplaceAll(text, []byte("emissionKind: FullDebug"), []byte("emissionKind: NoDebug"))
}

// assemble instruments IR text and compiles it to an object. If the rewritten text does not
// compile, assemble tries again without instrumenting the functions that cause the errors, and then
// without instrumenting any function of the source. If this fails, too, assemble compiles the
// original text.
func (b *build) assemble(src *argument, text []byte, object string) (status int, err error) {
	options := ir.Options{Source: src.name(), CompileOptions: strings.Join(b.line.words(aSetting, aMachine), " "), Instrs: true}
	if !b.options.NoSource {
		options.Read = readSource
	}
	for everything := false; ; {
		made, err := ir.Instrument(text, options)
		if err != nil {
			b.note(src.name(), " is not traced: ", err.Error())
			break
		}
		message, err := b.compileIR(b.withoutDebug(made.Text), object)
		if message == "" || err != nil {
			return 0, err
		}
		if isAboutOutput(message) {
			return b.compileUninstrumented(src, object) // run the compiler again, so that the user sees its message
		}
		if everything {
			break // instrumenting fewer functions does not help
		}
		options.Skip, everything = b.skipCulprit(src, options.Skip, message, made)
	}
	if message, err := b.compileIR(b.withoutDebug(text), object); message == "" || err != nil {
		return 0, err
	}
	return b.compileUninstrumented(src, object)
}

// readSource returns the text of a source file named in the debug information, or nil if it cannot
// be read.
func readSource(file string) []byte {
	at, err := os.Stat(file)
	if err != nil || !at.Mode().IsRegular() || at.Size() > sourcefile.MostBytes {
		return nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	return text
}

// isAboutOutput reports whether the compiler failed to write the object.
func isAboutOutput(message string) bool {
	return containsAny(message, "unable to open output file", "unable to rename temporary", "IO failure on output")
}

// skipCulprit adds the function that caused a compiler error to the list of functions to skip. If
// this function is unknown, skipCulprit adds all functions.
func (b *build) skipCulprit(src *argument, skip []string, message string, made *ir.Result) (more []string, everything bool) {
	first, _, _ := strings.Cut(message, "\n")
	if name := culprit(message, made.Text); name != "" && !slices.Contains(skip, name) && len(skip) < maxSkipped {
		b.note(src.name(), ": ", name, " is not traced: the instrumented code does not compile (", first, ")")
		return append(skip, name), false
	}
	b.note(src.name(), " is not traced: the instrumented code does not compile (", first, ")")
	for _, f := range made.Program.Functions {
		skip = append(skip, f.Name)
	}
	return skip, true
}

// maxSkipped limits how many functions of one source file are skipped one by one.
const maxSkipped = 8

// compileIR compiles IR text to an object. It returns the compiler's error message, or "" if the
// compiler succeeded.
func (b *build) compileIR(text []byte, object string) (message string, err error) {
	var stderr bytes.Buffer
	cmd := exec.Command(b.compiler.clang, b.objectArguments(object)...)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(text), &stderr
	status, err := statusOf(cmd.Run())
	if status == 0 || err != nil {
		return "", err
	}
	return strings.TrimSpace(stderr.String()) + "\n", nil
}

// compileUninstrumented compiles a source file without instrumentation.
func (b *build) compileUninstrumented(src *argument, object string) (int, error) {
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

// culprit returns the function to which an error message refers, or "" if it is unknown.
func culprit(message string, text []byte) string {
	if m := namedFunction.FindStringSubmatch(message); m != nil {
		return m[1]
	}
	m := lineOfText.FindStringSubmatch(message)
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

// functionAt returns the function that contains a line of IR text.
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

// coverageFile matches the option by which the driver names gcov's notes file or data file. In
// clang 14, the option and its value are separate words.
var coverageFile = regexp.MustCompile(`"(-coverage-(?:notes|data)-file)(=|" ")((?:[^"\\]|\\.)*)"`)

var quotedByDriver = regexp.MustCompile(`\\(.)`)

// coverageArguments returns the options that make --coverage write files with the same names as in
// a build without tracing. The driver prints the names that it derives from the name of the object
// or program. All other names are derived from the name of the source.
func (b *build) coverageArguments(src *argument) (args []string) {
	if !b.line.hasOption("--coverage", "-coverage", "-ftest-coverage", "-fprofile-arcs") {
		return nil
	}
	asked := slices.Concat([]string{"-###"}, b.line.words(aSetting, aMachine, aPhase, anOutput))
	if src.language != "" {
		asked = append(asked, "-x", src.language)
	}
	// errors are ignored, because an invalid command line fails later anyway
	said, _ := exec.Command(b.compiler.path, append(asked, src.name())...).CombinedOutput()
	for _, m := range coverageFile.FindAllStringSubmatch(string(said), -1) {
		file := quotedByDriver.ReplaceAllString(m[3], "$1")
		if m[2] == "=" {
			args = append(args, "-Xclang", m[1]+"="+file)
		} else {
			args = append(args, "-Xclang", m[1], "-Xclang", file)
		}
	}
	if args != nil {
		return args
	}
	for _, of := range [][2]string{{"-coverage-notes-file", ".gcno"}, {"-coverage-data-file", ".gcda"}} {
		if file, err := filepath.Abs(replaceExtension(filepath.Base(src.name()), of[1])); err == nil {
			args = append(args, "-Xclang", of[0], "-Xclang", file)
		}
	}
	return args
}
