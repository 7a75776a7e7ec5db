package capture

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const hello = "#include \"hello.h\"\n#include <stdio.h>\nint main(void) { return puts(HELLO) < 0; }\n"

// helloFolder returns a new folder with a program that consists of a source file and a header.
func helloFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"hello.c": hello, "hello.h": "#define HELLO \"hello\"\n", "bad.c": "int main(void) { return x; }\n", "hello.i": "int main(void) { return 0; }\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// compileResult is the result of running a compiler command line.
type compileResult struct {
	status         int
	stdout, stderr string
	// the names of the files that the compiler wrote, and the content of dependency files
	files map[string]string
}

func filesIn(dir string) (map[string]string, error) {
	files := map[string]string{}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		files[e.Name()] = ""
		if filepath.Ext(e.Name()) == ".d" {
			text, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				return nil, err
			}
			files[e.Name()] = string(text)
		}
	}
	return files, err
}

func compiledByUs(t *testing.T, clang string, args []string) compileResult {
	t.Helper()
	t.Chdir(helloFolder(t))
	var stdout, stderr bytes.Buffer
	status, err := Compile(IO{Stdin: strings.NewReader(hello), Stdout: &stdout, Stderr: &stderr}, Options{}, clang, args)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filesIn(".")
	if err != nil {
		t.Fatal(err)
	}
	return compileResult{status, stdout.String(), stderr.String(), files}
}

// compileDirectly runs the compiler, without tracing, in the background, and returns a channel that
// receives the result.
func compileDirectly(t *testing.T, clang string, args []string) <-chan compileResult {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd, made := exec.Command(clang, args...), make(chan compileResult, 1)
	cmd.Dir = helloFolder(t)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(hello), &stdout, &stderr
	go func() {
		defer close(made)
		status, err := statusOf(cmd.Run())
		files, unread := filesIn(cmd.Dir)
		if err = errors.Join(err, unread); err != nil {
			t.Error(err)
			return
		}
		made <- compileResult{status, stdout.String(), stderr.String(), files}
	}()
	return made
}

// TestDropInReplacement checks that a command line has the same output files, dependency files,
// messages and exit status as the compiler itself.
func TestDropInReplacement(t *testing.T) {
	newestClang(t)
	samples := []string{ // command lines that are also tested with older compilers
		"-v", "-c hello.c -o x.o", "-x c - -o hello", "-MMD -c hello.c -o sub.x.o", "bad.c -o bad", "-c hello.c -unused-option",
		"-g -O2 hello.c -o hello", "--coverage -c hello.c -o x.obj", "-g -gsplit-dwarf -c hello.c -o x.o",
	}
	for _, line := range []string{
		"--version", "-v", "-E hello.c", "-M hello.c", "-MM hello.c", "-S hello.c", "-S -emit-llvm hello.c",
		"-c -emit-llvm hello.c", "-fsyntax-only hello.c", "-print-search-dirs", "-dumpmachine", "-print-prog-name=ld",
		"-c hello.c", "-c hello.c -o x.o", "-chello.c", "-c -ox.o hello.c", "-c -o /dev/null hello.c",
		"hello.c", "hello.c -o hello", "-x c -c - -o x.o", "-x c - -o hello", "-x c hello.c -o hello", "-x c++ -c hello.c", "-c hello.i", "-O2 -c hello.i -g",
		"-MD -c hello.c", "-MMD -c hello.c -o sub.x.o", "-MD hello.c -o hello", "-MMD -MF deps.d -c hello.c", "-MD -MT target -c hello.c",
		"-MD -MP -MQ a$b -c hello.c -o x.o", "-Wp,-MD,deps.d -c hello.c -o x.o", "-Wp,-MMD,deps.d -c hello.c",
		"-c bad.c", "bad.c -o bad", "missing.c", "-c missing.c", "hello.c -lmissing", "-c hello.c -unused-option", "-c hello.c --unknown-option", "-c hello.c -Wl,-s -lm",
		"", "-o hello", "-r hello.c -o joined.o", "-Wall -Werror -std=c99 -pedantic -O3 -march=x86-64-v3 -c hello.c",
		"-g -O2 hello.c -o hello", "-pie -fPIE hello.c -o hello", "-no-pie hello.c -o hello", "-fuse-ld=bfd hello.c -o hello",
		"-D HELLO2 -I . -include hello.h -c hello.c", "-Wl,--as-needed -Wl,-O1 hello.c -o hello -lm", "-ffunction-sections -Wl,--gc-sections hello.c -o hello",
		"--coverage -c hello.c", "--coverage -c hello.c -o x.obj", "-ftest-coverage -O1 hello.c -o hello", "--coverage hello.c", "--coverage -x c -c hello.i -o x.o",
		"-g -gsplit-dwarf -c hello.c -o x.o", "-gsplit-dwarf -c hello.c",
		"-c hello.c -o missing/x.o", "-save-temps=obj -c hello.c -o x.o", "-m32 -fsyntax-only hello.c", "-nostdlib -c hello.c",
	} {
		for _, clang := range installedClangs() {
			if !shouldTest(clang, slices.Contains(samples, line)) {
				continue
			}
			args := strings.Fields(line)
			t.Run(filepath.Base(clang)+" "+line, func(t *testing.T) {
				alone := compileDirectly(t, clang, args)
				got, want := compiledByUs(t, clang, args), <-alone
				if got.status != want.status {
					t.Fatalf("status %d, want %d; stderr\n%s\nwant\n%s", got.status, want.status, got.stderr, want.stderr)
				}
				if (want.status == 0 || strings.Contains(line, "missing/")) && line != "-v" && got.stderr != want.stderr {
					t.Errorf("stderr is %q, want %q", got.stderr, want.stderr)
				}
				if line != "-print-search-dirs" && got.stdout != want.stdout {
					t.Errorf("stdout is %q, want %q", got.stdout, want.stdout)
				}
				for name, text := range want.files {
					if made, there := got.files[name]; !there && !strings.Contains(line, "-save-temps") {
						t.Errorf("the output file %s is missing", name)
					} else if made != text {
						t.Errorf("output file %s contains %q, want %q", name, made, text)
					}
				}
				for name := range got.files {
					if _, there := want.files[name]; !there && !strings.Contains(line, "-save-temps") {
						t.Errorf("unexpected output file %s", name)
					}
				}
			})
		}
	}
}

// TestUnsupportedCommandLines checks that each error about an unsupported command line includes
// advice.
func TestUnsupportedCommandLines(t *testing.T) {
	for _, c := range []struct{ compiler, args, want string }{
		{"clang-99", "", "clang-99 is not installed; install it, for example with: apt-get install clang-99"},
		{"clang++-99", "-c x.cc", "clang++-99 is not installed; install it, for example with: apt-get install clang-99"},
		{"flang-new-99", "", "flang-new-99 is not installed; install it, for example with: apt-get install flang-99"},
		{"no-compiler", "", "no-compiler: there is no such compiler"},
		{"true", "x.c", "true is neither clang nor flang"},
	} {
		_, err := Compile(IO{Stderr: &bytes.Buffer{}}, Options{}, c.compiler, strings.Fields(c.args))
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("Compile(%s %s) = %v, want %s", c.compiler, c.args, err, c.want)
		}
	}
	_, err := Compile(IO{Stderr: &bytes.Buffer{}}, Options{}, newestClang(t), []string{"-fsanitize=address", "x.c"})
	if want := "-fsanitize=address: a sanitizer adds code around every reference"; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("Compile with a sanitizer = %v, want %s", err, want)
	}
}

// TestNumberedCompiler checks that, if a compiler is installed only under a versioned name, the
// error suggests this name.
func TestNumberedCompiler(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"clang-14", "clang-19", "clang-20"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	for name, want := range map[string]string{
		"clang": "clang is not installed, but clang-19 is; use clang-19", "flang": "flang is not installed; install it",
	} {
		if _, err := findCompiler(name); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("findCompiler(%s) = %v, want %s", name, err, want)
		}
	}
}

// TestLinkTimeOptimisationIsIgnored checks that -flto is ignored, that a note says so, and that the
// program is traced.
func TestLinkTimeOptimisationIsIgnored(t *testing.T) {
	got := compiledByUs(t, newestClang(t), strings.Fields("-flto -O2 hello.c -o hello"))
	if want := "stackglass: note: -flto is ignored: each source is optimised and traced separately\n"; got.status != 0 || got.stderr != want {
		t.Errorf("status %d, stderr %q; want status 0, stderr %q", got.status, got.stderr, want)
	}
}

// TestSplitDebugWhenLinking checks that -gsplit-dwarf is ignored, and that a note says so, if one
// command compiles and links a program.
func TestSplitDebugWhenLinking(t *testing.T) {
	got := compiledByUs(t, newestClang(t), strings.Fields("-g -gsplit-dwarf hello.c -o hello"))
	if want := "stackglass: note: -gsplit-dwarf is ignored when linking: the debug information is in the linked files\n"; got.status != 0 || got.stderr != want {
		t.Errorf("status %d, stderr %q; want status 0, stderr %q", got.status, got.stderr, want)
	}
}

// TestBrokenSourcesAreUnchanged checks that a function is not instrumented if the compiler rejects
// its rewritten form, and that the whole source is not instrumented if the compiler still rejects
// it. The object file must be written in both cases. The compiler in this test rejects IR that
// contains certain texts.
func TestBrokenSourcesAreUnchanged(t *testing.T) {
	clang := newestClang(t)
	for _, c := range []struct{ refuse, say, note string }{
		{`call .*@__sg_more.*\n`, "", ""},
		{`__sg_`, "in function first", "first is not traced: the instrumented code does not compile (error: in function first)"},
		{`__sg_`, "out of luck", "is not traced: the instrumented code does not compile (error: out of luck)"},
	} {
		t.Chdir(helloFolder(t))
		fake := fakeClang(t, clang, c.refuse, c.say)
		var stderr bytes.Buffer
		source := "int a; int first(void) { return a++; } int second(void) { return a++; }\n"
		if err := os.WriteFile("two.c", []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
		status, err := Compile(IO{Stdin: strings.NewReader(""), Stdout: &stderr, Stderr: &stderr}, Options{}, fake, []string{"-c", "two.c"})
		if err != nil || status != 0 || !strings.Contains(stderr.String(), c.note) {
			t.Errorf("compiler error %q: status %d, %v, stderr %q; want status 0, stderr %q", c.say, status, err, stderr.String(), c.note)
		}
		if _, err := os.Stat("two.o"); err != nil {
			t.Error(err)
		}
	}
}

// fakeClang returns the path of a wrapper for clang that rejects IR if the text matches a pattern.
// If an error message is given, the wrapper prints it.
func fakeClang(t *testing.T, clang, pattern, say string) string {
	t.Helper()
	if say == "" {
		return clang
	}
	path, err := filepath.Abs("clang-fake")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir()) // a separate cache for the runtime, which is compiled with -O0 because it is never executed
	script := `#!/bin/sh
case " $* " in *" -x ir "*) ;; *" -std=gnu11 "*) exec ` + clang + ` "$@" -O0 ;; *) exec ` + clang + ` "$@" ;; esac
cat >text.ll
if grep -q '` + pattern + `' text.ll; then echo "error: ` + say + `" >&2; exit 1; fi
exec ` + clang + ` "$@" <text.ll
`
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFunctionInErrorMessage(t *testing.T) {
	text := []byte("@x = global i32 0\ndefine i32 @first(i32 %a) {\n  ret i32 %a\n}\n\ndefine internal void @\"odd name\"() {\n  ret void\n}\n")
	for _, c := range []struct{ said, want string }{
		{"<stdin>:3:7: error: expected type\n", "first"},
		{"<stdin>:7:3: error: x", "odd name"},
		{"<stdin>:5:1: error: x", ""},
		{"<stdin>:1:1: error: x", ""},
		{"LLVM ERROR: Cannot select: 0x55: ch = X86ISD\nIn function: first", ""},
		{"fatal error: error in backend: Cannot select: in function 'kernel'", "kernel"},
		{"out of memory", ""},
	} {
		if got := culprit(c.said, text); got != c.want {
			t.Errorf("%q: culprit %q, want %q", c.said, got, c.want)
		}
	}
}

// TestResponseFiles checks that @FILE is replaced by the arguments in the file, and that response
// files may refer to other response files.
func TestResponseFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"a": "-O2 @b 'one word' \"two\\\" words\"", "b": "-c\n\tx\\ y.c", "loop": "@loop"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"-v", "-O2", "-c", "x y.c", "one word", `two" words`, "@missing"}
	if got := expandResponses([]string{"-v", "@a", "@missing"}); !slices.Equal(got, want) {
		t.Errorf("expandResponses = %q, want %q", got, want)
	}
	if got := expandResponses([]string{"@loop"}); !slices.Equal(got, []string{"@loop"}) {
		t.Errorf("a file that includes itself expands to %q", got)
	}
}

// TestQuotedWordsRoundTrip checks that words that are quoted in the style of GNU tools are the same
// after the text is split again.
func TestQuotedWordsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOf(rapid.StringN(1, 10, -1)).Draw(t, "words")
		var text strings.Builder
		for _, w := range words {
			text.WriteString(`"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(w) + `" `)
		}
		if got := splitResponse(text.String()); !slices.Equal(got, words) {
			t.Fatalf("splitResponse = %q, want %q", got, words)
		}
	})
}

// TestParseKeepsEveryWord checks that a parsed command line still contains all of its words.
func TestParseKeepsEveryWord(t *testing.T) {
	word := rapid.OneOf(
		rapid.SampledFrom([]string{"-o", "-x", "-c", "a.c", "b.o", "-I", "-MF", "-lm", "-", "-Wl,-x", "-shared", "-MD", "-E", "c++", "-xc", "-ofile", "none", "--output=x", "-Xclang", "-flto"}),
		rapid.StringN(0, 6, -1))
	rapid.Check(t, func(t *rapid.T) {
		args := rapid.SliceOf(word).Draw(t, "args")
		var kept []string
		for _, a := range parse(args).args {
			kept = append(kept, a.words...)
		}
		if !slices.Equal(kept, args) {
			t.Fatalf("%q became %q", args, kept)
		}
	})
}

// TestRuntimeIsCompiledOnce checks that the runtime is compiled only once, and that its symbols
// cannot collide with the symbols of a program.
func TestRuntimeIsCompiledOnce(t *testing.T) {
	newestClang(t)
	for _, clang := range installedClangs() {
		first, err := BuildRuntime(clang)
		if err != nil {
			t.Fatal(err)
		}
		before, err := os.Stat(first.Program)
		if err != nil {
			t.Fatal(err)
		}
		second, err := BuildRuntime(clang)
		if err != nil || *second != *first {
			t.Errorf("the second call returned %+v, %v, want %+v", second, err, first)
		}
		if after, err := os.Stat(first.Program); err != nil || !after.ModTime().Equal(before.ModTime()) {
			t.Errorf("the runtime was compiled again: %v", err)
		}
		names, err := exec.Command("nm", "-g", "--defined-only", "-P", first.Program).Output()
		if err != nil {
			t.Skip("skipped: nm is not installed, so the symbols of the runtime are not checked")
		}
		for line := range strings.Lines(string(names)) {
			if !strings.HasPrefix(line, "__sg_") && !strings.HasPrefix(line, "__wrap_") {
				t.Errorf("the runtime defines the symbol %s, want the prefix __sg_ or __wrap_", line)
			}
		}
	}
}

// TestRuntimeCompilesCleanly checks that every version of clang compiles the runtime without
// warnings, and that gcc does the same for the parts of the runtime that QEMU's plugin uses.
func TestRuntimeCompilesCleanly(t *testing.T) {
	r, err := BuildRuntime(newestClang(t))
	if err != nil {
		t.Fatal(err)
	}
	strict := []string{"-std=gnu11", "-O2", "-fPIC", "-Wall", "-Wextra", "-Werror", "-c", "-o", "/dev/null"}
	for _, clang := range installedClangs() {
		for _, source := range []string{"program.c", "library.c", "calls.c", "encode.c", "file.c", "pack.c", "system.c"} {
			// Optimisation is off, because clang reports all warnings before it optimises.
			plainCompile(t, clang, append(strict, "-fsyntax-only", filepath.Join(r.Folder, source))...)
		}
	}
	if gcc, err := exec.LookPath("gcc"); err == nil {
		for _, source := range []string{"encode.c", "file.c", "pack.c", "system.c"} {
			plainCompile(t, gcc, append(strict, filepath.Join(r.Folder, source))...)
		}
	}
}
