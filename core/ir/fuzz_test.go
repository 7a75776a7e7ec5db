package ir

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// FuzzInstrument checks that no text makes the rewriter panic, and that the resulting tables are
// consistent.
func FuzzInstrument(f *testing.F) {
	for _, text := range seeds(f) {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		r, err := Instrument(src, Options{Instrs: true})
		if err != nil {
			if err.Error() == "" {
				t.Error("the error has no text")
			}
			return
		}
		if len(r.Program.Blocks) == 0 {
			if !bytes.Equal(r.Text, src) {
				t.Error("the text changed, although nothing was instrumented")
			}
			return
		}
		checkProgram(t, r.Program)
		checkText(t, string(src), string(r.Text))
	})
}

// checkText checks that the rewriter keeps all lines of the module in the same order. The only
// exceptions are the labels of phis and invokes, and the allocas that the rewriter moves.
func checkText(t *testing.T, src, text string) {
	t.Helper()
	lines := strings.Split(text, "\n")
	for line := range strings.SplitSeq(src, "\n") {
		if strings.Contains(line, "phi ") || strings.Contains(line, "label ") || strings.Contains(line, "alloca ") ||
			strings.HasPrefix(line, "attributes") || strings.HasPrefix(line, "@") {
			continue
		}
		for len(lines) > 0 && lines[0] != line {
			lines = lines[1:]
		}
		if len(lines) == 0 {
			t.Fatalf("the line %q is missing", line)
		}
	}
}

// snippets are functions with rare constructs. The expected result is "" if the function is
// instrumented, and otherwise the beginning of the reason why the function is not instrumented.
var snippets = []struct{ name, text, why string }{
	{"naked", "define void @f() naked {\n  ret void\n}\n", "the function is naked"},
	{"coroutine", "define void @f() #0 {\n  ret void\n}\nattributes #0 = { presplitcoroutine \"x\"=\"y\" }\n", "the function is a coroutine"},
	{"old coroutine", "define void @f() #0 {\n  ret void\n}\nattributes #0 = { \"coroutine.presplit\"=\"0\" }\n", "the function is a coroutine"},
	{"forbidden", "define void @f() #0 {\n  ret void\n}\nattributes #0 = { nounwind disable_sanitizer_instrumentation }\n", "the attributes of the function forbid"},
	{"resolver", "@i = ifunc void (), ptr @f\n\ndefine ptr @f() {\n  ret ptr null\n}\n", "the function is the resolver"},
	{"boot", "define void @f() section \".init.text\" {\n  ret void\n}\n", "the function is in section"},
	{"interrupt", "define x86_intrcc void @f(ptr byval(i8) %p) {\n  ret void\n}\n", "the function is an interrupt"},
	{"numbered calling convention", "define cc 10 void @f() {\n  ret void\n}\n", "the calling convention of the function"},
	{"collected", "define void @f() gc \"shadow-stack\" {\n  ret void\n}\n", "the function uses a garbage collector"},
	{"swifterror", "define void @f(ptr swifterror %e) {\n  ret void\n}\n", "the function has a swifterror argument"},
	{"swifterror alloca", "define void @f() {\n  %e = alloca swifterror ptr\n  ret void\n}\n", "the function has a swifterror variable"},
	{"funclet", "define void @f() {\n  %p = cleanuppad within none []\n  ret void\n}\n", "line 2 of the function's IR: Windows exceptions"},
	{"token", "define void @f() {\n  %t = call token @llvm.call.preallocated.setup(i32 1)\n  ret void\n}\n", "line 2 of the function's IR: token values"},
	{"unknown", "define void @f() {\n  %t = teleport i32 1\n  ret void\n}\n", "line 2 of the function's IR: the instruction is unknown"},
	{"extra operand", "define void @f(i32 %a) {\n  %t = add i32 %a, %a, %a\n  ret void\n}\n", "line 2 of the function's IR: cannot parse this add"},
	{"no terminator", "define void @f() {\n  br label %x\n\nx:\n  %t = add i32 1, 2\n}\n", "line 6 of the function's IR: the basic block x does not end"},
	{"no label", "define void @f() {\n  br label %x\n}\n", "line 3 of the function's IR: a label is used but not defined"},
	{"label twice", "define void @f() {\n  br label %x\n\nx:\n  br label %x\n\nx:\n  ret void\n}\n", "line 7 of the function's IR: the label x is defined twice"},
	{"value twice", "define void @f() {\n  %x = add i32 1, 1\n  %x = add i32 1, 1\n  ret void\n}\n", "line 3 of the function's IR: the value %x is defined twice"},
	{"late phi", "define void @f() {\n  br label %x\n\nx:\n  %a = add i32 1, 1\n  %p = phi i32 [ 1, %0 ], [ 2, %x ]\n  br label %x\n}\n", "line 8 of the function's IR: the basic block x has a misplaced phi"},
	{"use list", "define void @f(ptr %p) {\n  ret void\n  uselistorder ptr %p, { 1, 0 }\n}\n", "line 3 of the function's IR: the instruction is unknown"},
	{"memory", "define i32 @f() memory(none) {\n  ret i32 1\n}\n", "the attributes of the function restrict"},
	{"odd label", "define void @f() {\n  br label %\"a b\"\n\n\"a b\":\n  ret void\n}\n", ""},
	{"comments", "; one\ndefine void @f() { ; two\n; three\n  ret void ; four\n  ; five\n}\n", ""},
	{"branches", "define void @f(i1 %c, ptr %p) {\n  br i1 %c, label %x, label %y\nx:\n  indirectbr ptr %p, [label %x, label %y]\ny:\n  switch i1 %c, label %x [\n  ]\n}\n", ""},
	{"asm goto", "define void @f() {\n  callbr void asm \"\", \"!i\"()\n          to label %x [label %y]\nx:\n  ret void\ny:\n  ret void\n}\n", ""},
	{"vectors", "define <4 x i32> @f(<4 x ptr> %p, <4 x i1> %m) {\n  %g = getelementptr i8, <4 x ptr> %p, i64 1\n  %v = call <4 x i32> @llvm.masked.gather.v4i32.v4p0(<4 x ptr> %g, i32 4, <4 x i1> %m, <4 x i32> poison)\n  %s = shufflevector <4 x i32> %v, <4 x i32> poison, <8 x i32> zeroinitializer\n  %e = extractelement <8 x i32> %s, i64 0\n  ret <4 x i32> %v\n}\n", ""},
	{"scalable", "define void @f(ptr %p) {\n  %v = load <vscale x 4 x i32>, ptr %p\n  store <vscale x 4 x i32> %v, ptr %p\n  ret void\n}\n", ""},
	{"segment", "define i32 @f() {\n  %v = load i32, ptr addrspace(257) null, align 4\n  ret i32 %v\n}\n", ""},
	{"constants", "define { i8, [2 x ptr] } @f() {\n  store { i8, [2 x ptr] } { i8 1, [2 x ptr] [ptr @f, ptr getelementptr inbounds (i8, ptr @f, i64 3)] }, ptr null\n  store [3 x i8] c\"a\\22\\00\", ptr inttoptr (i64 16 to ptr)\n  ret { i8, [2 x ptr] } zeroinitializer\n}\n", ""},
	{"bundles", "define void @f(i32 %x) {\n  call void @g(i32 %x) [ \"deopt\"(i32 %x), \"tag\"() ]\n  ret void\n}\ndeclare void @g(i32)\n", ""},
	{"implicit parameters", "define i32 @f(i32, ptr, ...) {\n  br label %3\n\n3:\n  %4 = phi i32 [ %0, %2 ]\n  ret i32 %4\n}\n", ""},
	{"type and argument with the same name", "%x = type { i32 }\ndefine void @f(ptr %x) {\n  %y = getelementptr %x, ptr %x, i64 1\n  %z = load %x, ptr %y\n  ret void\n}\n", ""},
}

// TestInstrumentUnusualFunctions checks that functions are instrumented if they can be parsed and
// may be changed. The other functions must remain unchanged and be reported.
func TestInstrumentUnusualFunctions(t *testing.T) {
	for _, s := range snippets {
		r, err := Instrument([]byte(s.text), Options{Instrs: true})
		if err != nil {
			t.Errorf("%s: %v", s.name, err)
			continue
		}
		checkProgram(t, r.Program)
		checkText(t, s.text, string(r.Text))
		why := ""
		for _, m := range r.Missed {
			if m.What == "f" {
				why = m.Why
			}
		}
		if (why == "") != (s.why == "") || !strings.HasPrefix(why, s.why) {
			t.Errorf("%s: reason %q, want %q", s.name, why, s.why)
		}
		if (why == "") != (len(r.Program.Functions) == 1) {
			t.Errorf("%s: %d functions", s.name, len(r.Program.Functions))
		}
	}
}

// TestInvalidModules checks that errors contain the location, the invalid text, and the expected
// text.
func TestInvalidModules(t *testing.T) {
	for text, want := range map[string]string{
		"source_filename = \"a.c\"\n\ndefine void @f() {\n  ret void\n": `a.c:3: "define void @f() {", want a line "}" at the end of this function; the text is not in the form that LLVM 14 to 19 write`,
		"int main() {}\n":                   `the module:1: "int main() {}", want a definition, a declaration or metadata; the text is not in the form that LLVM 14 to 19 write`,
		"target triple = \"wasm32-wasi\"\n": `the module: compiled for "wasm32-wasi", want a system that uses ELF, such as Linux`,
		"@__sg_thread = external global i8": `the module: the module is already instrumented, or part of the runtime; compile the module without instrumentation`,
	} {
		_, err := Instrument([]byte(text), Options{})
		if err == nil || err.Error() != want {
			t.Errorf("Instrument(%q): error %v, want %s", text, err, want)
		}
	}
}

// TestDamagedModules checks that a module in which lines or characters were lost, duplicated or
// swapped is either rejected or read into consistent tables.
func TestDamagedModules(t *testing.T) {
	whole := seeds(t)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SampledFrom(whole).Draw(t, "module")
		for range rapid.IntRange(1, 4).Draw(t, "damages") {
			text = damage(t, text)
		}
		r, err := Instrument([]byte(text), Options{Instrs: true})
		if err != nil || len(r.Program.Blocks) == 0 {
			return
		}
		checkProgram(t, r.Program)
	})
}

func seeds(t testing.TB) []string {
	var list []string
	files, _ := filepath.Glob("testdata/golden/*.ll")
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, string(src))
	}
	for _, s := range snippets {
		list = append(list, s.text)
	}
	return list
}

// damage swaps, duplicates or drops a line or a word, or changes a character.
func damage(t *rapid.T, text string) string {
	if text == "" {
		return text
	}
	between := rapid.SampledFrom([]string{"\n", " ", ","}).Draw(t, "between")
	parts := strings.Split(text, between)
	i := rapid.IntRange(0, len(parts)-1).Draw(t, "part")
	j := rapid.IntRange(0, len(parts)-1).Draw(t, "other")
	switch rapid.IntRange(0, 3).Draw(t, "damage") {
	case 0:
		parts[i], parts[j] = parts[j], parts[i]
	case 1:
		parts[i] = parts[j]
	case 2:
		parts = append(parts[:i], parts[i+1:]...)
	default:
		at := rapid.IntRange(0, len(text)-1).Draw(t, "at")
		return text[:at] + rapid.SampledFrom([]string{"", "%", "@", "\"", "(", ")", "[", "{", "}", "<", ">", ":", "0", "\n", "ptr", "!", ","}).Draw(t, "character") + text[at+1:]
	}
	return strings.Join(parts, between)
}

// BenchmarkInstrument rewrites a module with debug information, in the form in which LLVM prints
// it.
func BenchmarkInstrument(b *testing.B) {
	src := manyFunctions(b)
	b.SetBytes(int64(len(src)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Instrument(src, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

// manyFunctions returns a module with debug information, in which the functions of a small module
// are repeated many times.
func manyFunctions(b *testing.B) []byte {
	src, err := os.ReadFile("testdata/golden/loop.ll")
	if err != nil {
		b.Fatal(err)
	}
	define, end := bytes.Index(src, []byte("define")), bytes.Index(src, []byte("declare"))
	var large bytes.Buffer
	large.Write(src[:define])
	for i := range 500 {
		f := bytes.ReplaceAll(src[define:end], []byte("@dot"), []byte("@dot"+strconv.Itoa(i)))
		large.Write(f)
	}
	large.Write(src[end:])
	return large.Bytes()
}
