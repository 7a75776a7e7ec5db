package capture

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// role specifies how an argument is used in the steps of a build.
type role uint8

const (
	aSetting    role = iota // an option for compiling and linking
	aSource                 // a file that can be instrumented
	anInput                 // any other input file: an object, library or assembly file
	anOutput                // -o
	aDependency             // -MD and similar options, which request dependency files
	aLanguage               // -x
	aPhase                  // -c
	aMachine                // an option for every step that generates code
	aDrop                   // an option that is removed from the command line
)

// argument is one option with its value, or one file.
type argument struct {
	words    []string // the option and its value, or the file name, as typed by the user
	role     role
	language string // the language of a source file if option -x specifies it, or ""
}

func (a *argument) name() string { return a.words[0] }

// preprocessed reports whether a source is the output of a preprocessor.
func (a *argument) preprocessed() bool {
	return strings.HasSuffix(cmp.Or(a.language, languageOf(a.name())), "cpp-output")
}

// isIR reports whether a source is LLVM IR, as text or as bitcode.
func (a *argument) isIR() bool { return cmp.Or(a.language, languageOf(a.name())) == "ir" }

// value returns the value of an option, which may be a separate word or joined to the option.
func (a *argument) value(option string) string {
	if len(a.words) > 1 {
		return a.words[1]
	}
	if _, long, is := strings.Cut(a.words[0], "="); is && strings.HasPrefix(a.words[0], "--") {
		return long
	}
	return strings.TrimPrefix(a.words[0], option)
}

// mode specifies how a command line is handled.
type mode uint8

const (
	passing   mode = iota // the command line is passed on to the compiler unchanged
	compiling             // -c
	building              // a program or library, from sources or objects
)

// commandLine is a parsed command line of a compiler.
type commandLine struct {
	args        []argument
	mode        mode
	output      string // the output file, which option -o specifies, or ""
	passReason  string // the reason for mode "passing"; "" if the user need not know the reason
	unsupported string // an unsupported option, such as a sanitizer
	shared      bool   // whether a shared library is built
	partial     bool   // option -r: the linker combines objects into one object
}

// separateValueOptions lists the options that take their value from the next word.
var separateValueOptions = wordSet(`-o -x -I -L -D -U -l -include -imacros -isystem -iquote -idirafter -iprefix
	-iwithprefix -iwithprefixbefore -isysroot -iwithsysroot -iframework -cxx-isystem -stdlib++-isystem
	-include-pch -ivfsoverlay -F -MF -MT -MQ -MJ -Xclang -Xlinker -Xpreprocessor -Xassembler -Xanalyzer
	-Xflang -Xopenmp-target -mllvm -target -arch -T -Tbss -Tdata -Ttext -u -z -e -A -B -G --param -aux-info
	-working-directory -gcc-toolchain -dumpdir -J -module-dir -rpath -serialize-diagnostics
	--serialize-diagnostics -resource-dir --sysroot --output --language --include --include-directory
	--define-macro --undefine-macro --library-directory --for-linker --entry -main-file-name -fmodule-name`)

// otherOutputOptions lists the options that request output other than objects or programs.
var otherOutputOptions = wordSet(`-E -S -M -MM -fsyntax-only -emit-llvm -emit-ast -emit-pch -emit-module -verify-pch
	--version -version --help -help --help-hidden -### -dumpversion -dumpmachine -dumpfullversion
	-cc1 -cc1as --analyze -rewrite-objc -rewrite-legacy-objc --precompile -print -P --autocomplete
	-emit-interface-stubs -fc1 --preprocess --assemble`)

func wordSet(list string) map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(list) {
		set[word] = true
	}
	return set
}

// instrumentableLanguages lists the languages that are compiled to LLVM IR, by their names in
// option -x.
var instrumentableLanguages = wordSet(`c c++ cpp-output c-cpp-output c++-cpp-output objective-c objective-c++ f95 f95-cpp-input ir`)

// languageOf returns the language of a file by its extension, or "" if the file is for the linker.
func languageOf(file string) string {
	switch ext := filepath.Ext(file); ext {
	case ".c":
		return "c"
	case ".i":
		return "cpp-output"
	case ".cc", ".cp", ".cxx", ".cpp", ".CPP", ".c++", ".C", ".CC", ".CXX":
		return "c++"
	case ".ii":
		return "c++-cpp-output"
	case ".m":
		return "objective-c"
	case ".mm", ".M":
		return "objective-c++"
	case ".f", ".for", ".ftn", ".f77", ".f90", ".f95", ".f03", ".f08", ".f18":
		return "f95"
	case ".F", ".FOR", ".FTN", ".fpp", ".FPP", ".F77", ".F90", ".F95", ".F03", ".F08", ".F18":
		return "f95-cpp-input"
	case ".ll", ".bc":
		return "ir"
	case ".h", ".hh", ".hpp", ".hxx", ".H", ".pch", ".gch", ".cppm", ".cu", ".hip", ".cl":
		return "other"
	}
	return ""
}

// parse parses the arguments of a compiler.
func parse(args []string) *commandLine {
	c, language := &commandLine{mode: building}, ""
	for i := 0; i < len(args); i++ {
		words := args[i : i+1]
		if separateValueOptions[args[i]] && i+1 < len(args) {
			words = args[i : i+2]
			i++
		}
		a := argument{words: words, role: roleOf(words[0])}
		switch a.role {
		case aLanguage:
			if language = a.value("-x"); language == "none" {
				language = ""
			}
		case anInput:
			c.classify(&a, language)
		case anOutput:
			c.output = a.value("-o")
		}
		c.args = append(c.args, a)
	}
	c.setMode()
	return c
}

// classify determines whether a file is a source.
func (c *commandLine) classify(a *argument, language string) {
	of := cmp.Or(language, languageOf(a.name()))
	switch {
	case instrumentableLanguages[of]:
		a.role, a.language = aSource, language
	case of == "other" || language != "" && !strings.HasPrefix(language, "assembler"):
		c.passThrough("")
	}
}

// roleOf returns the role of an argument, given its first word.
func roleOf(word string) role {
	switch {
	case word == "-" || !strings.HasPrefix(word, "-"):
		return anInput
	case word == "-c" || word == "--compile":
		return aPhase
	case word == "-x" || word == "--language" || strings.HasPrefix(word, "-x") || strings.HasPrefix(word, "--language="):
		return aLanguage
	case word == "-o" || word == "--output" || strings.HasPrefix(word, "--output="):
		return anOutput
	case strings.HasPrefix(word, "-o") && !strings.HasPrefix(word, "-objc"):
		return anOutput
	case isDependency(word):
		return aDependency
	case strings.HasPrefix(word, "-flto") || word == "-fwhole-program-vtables":
		return aDrop
	case affectsCodegen(word):
		return aMachine
	}
	return aSetting
}

func isDependency(word string) bool {
	switch word {
	case "-MD", "-MMD", "-MP", "-MG", "-MV", "--write-dependencies", "--write-user-dependencies":
		return true
	}
	return beginsWithAny(word, "-MF", "-MT", "-MQ", "-MJ", "-Wp,-M")
}

// codegenPrefixes lists the prefixes of the options that affect code generation. All other options
// affect only the generation of IR.
var codegenPrefixes = []string{
	"-m", "-fPIC", "-fpic", "-fPIE", "-fpie", "-fno-PIC", "-fno-pic", "-fno-PIE", "-fno-pie",
	"-ffunction-sections", "-fno-function-sections", "-fdata-sections", "-fno-data-sections",
	"-funique-", "-fno-unique-", "-fplt", "-fno-plt", "-fintegrated-as", "-fno-integrated-as",
	"-fsemantic-interposition", "-fno-semantic-interposition", "-ffp-contract=", "-femulated-tls",
	"-fuse-init-array", "-fno-use-init-array", "-faddrsig", "-fno-addrsig", "-fdirect-access-external-data",
	"-fno-direct-access-external-data", "-Wa,", "-Xassembler", "-target", "--target", "--sysroot",
	"-gcc-toolchain", "--gcc-toolchain", "-B",
}

func affectsCodegen(word string) bool {
	return beginsWithAny(word, codegenPrefixes...) && !strings.HasPrefix(word, "-module")
}

// passThrough selects the mode "passing" and stores the reason. In this mode, the compiler receives
// the command line unchanged.
func (c *commandLine) passThrough(why string) {
	c.mode = passing
	if c.passReason == "" {
		c.passReason = why
	}
}

// setMode determines the mode of the command line.
func (c *commandLine) setMode() {
	sources, files := 0, 0
	for i := range c.args {
		a := &c.args[i]
		switch a.role {
		case aSource:
			sources++
			files++
		case anInput:
			files++
		case aPhase:
			if c.mode == building {
				c.mode = compiling
			}
		default:
			c.applyOption(a)
		}
	}
	switch {
	case files == 0, c.mode == compiling && sources == 0, c.mode == compiling && sources > 1 && c.output != "":
		c.passThrough("")
	case c.output == "-":
		c.passThrough("the output is a pipe")
	}
}

func (c *commandLine) applyOption(a *argument) {
	word := a.name()
	switch {
	case otherOutputOptions[word], strings.HasPrefix(word, "-print-"), strings.HasPrefix(word, "--print-"):
		c.passThrough("")
	case strings.HasPrefix(word, "-fsanitize=") && word != "-fsanitize=":
		c.unsupported = word
	case word == "-m32" || word == "-m16" || word == "-mx32":
		c.passThrough("the code is not for a 64-bit machine")
	case word == "-ffreestanding":
		c.passThrough("the program runs without a C library")
	case strings.HasPrefix(word, "--offload") || strings.HasPrefix(word, "-fopenmp-targets"):
		c.passThrough("the code is also compiled for an accelerator")
	case word == "-shared" || word == "--shared":
		c.shared = true
	case word == "-r" || word == "--relocatable":
		c.partial = true
	}
}

// sources returns the files that can be instrumented.
func (c *commandLine) sources() (list []argument) {
	for _, a := range c.args {
		if a.role == aSource {
			list = append(list, a)
		}
	}
	return list
}

// words returns the arguments that have one of the given roles, as the user typed them.
func (c *commandLine) words(roles ...role) (list []string) {
	for _, a := range c.args {
		if slices.Contains(roles, a.role) {
			list = append(list, a.words...)
		}
	}
	return list
}

// hasOption reports whether an option was given.
func (c *commandLine) hasOption(options ...string) bool {
	return slices.ContainsFunc(c.args, func(a argument) bool { return slices.Contains(options, a.name()) })
}

// expandResponses replaces each @FILE with the arguments in the file, recursively. Like compilers,
// it leaves @FILE unchanged if the file cannot be read.
func expandResponses(args []string) []string { return expandDeep(args, 16) }

func expandDeep(args []string, depth int) []string {
	var all []string
	for _, arg := range args {
		if name, is := strings.CutPrefix(arg, "@"); is && depth > 0 {
			if text, err := os.ReadFile(name); err == nil {
				all = append(all, expandDeep(splitResponse(string(text)), depth-1)...)
				continue
			}
		}
		all = append(all, arg)
	}
	return all
}

// splitResponse splits a response file in the same way as GNU tools: at blanks, except within
// single or double quotes or after a backslash.
func splitResponse(text string) (args []string) {
	var word strings.Builder
	within, quote := false, byte(0)
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\\' && quote != '\'' && i+1 < len(text):
			i++
			word.WriteByte(text[i])
			within = true
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote, within = c, true
		case quote == 0 && strings.IndexByte(" \t\r\n\f\v", c) >= 0:
			if within {
				args = append(args, word.String())
			}
			word.Reset()
			within = false
		default:
			word.WriteByte(c)
			within = true
		}
	}
	if within {
		args = append(args, word.String())
	}
	return args
}
