package ir

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
)

func TestTarget(t *testing.T) {
	const x86, arm = "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"
	const haswell = trace.X86 | trace.SSE41 | trace.POPCNT | trace.AVX | trace.AVX2 | trace.FMA
	for _, c := range []struct {
		triple, attributes string
		want               trace.Target
	}{
		{x86, `"target-cpu"="x86-64" "target-features"="+cmov,+cx8,+fxsr,+mmx,+sse,+sse2,+x87"`, trace.X86},
		{x86, `"target-cpu"="haswell" "target-features"="+avx,+avx2,+fma,+popcnt,+sse4.1,+sse4.2" "tune-cpu"="generic"`, haswell},
		{x86, `"target-cpu"="haswell"`, haswell},
		{x86, `"target-cpu"="haswell" "target-features"="-fma"`, haswell &^ trace.FMA},
		{x86, `"target-cpu"="sapphirerapids" "target-features"="-avx"`, trace.X86 | trace.SSE41 | trace.POPCNT},
		{x86, `"target-cpu"="x86-64" "target-features"="+fma"`, trace.X86 | trace.SSE41 | trace.AVX | trace.FMA},
		{x86, `"target-cpu"="bdver1" "target-features"="+avx,+fma4"`, trace.X86 | trace.SSE41 | trace.POPCNT | trace.AVX | trace.FMA},
		{x86, `"target-features"="+avx512f"`, haswell&^trace.POPCNT | trace.AVX512},
		{x86, `"target-cpu"="of tomorrow"`, trace.X86},
		{x86, `nounwind`, trace.X86},
		{x86, `"target-features"="`, trace.X86}, // the string is not terminated
		{"i686-pc-linux-gnu", `"target-cpu"="pentium4"`, trace.X86},
		{"amd64-portbld-freebsd", `"target-cpu"="x86-64-v3"`, haswell},
		{arm, `"target-cpu"="generic" "target-features"="+fp-armv8,+neon"`, 0},
		{"", `"target-cpu"="haswell"`, 0},
	} {
		text := "target triple = \"" + c.triple + "\"\ndefine double @f(double %x) #0 {\n  ret double %x\n}\nattributes #0 = { " + c.attributes + " }\n"
		m, err := Read([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Program.Functions[0].Target; got != c.want {
			t.Errorf("target of %s, %s = %b, want %b", c.triple, c.attributes, got, c.want)
		}
	}
}

// TestContraction checks that a function is marked if all its products and sums allow contraction.
func TestContraction(t *testing.T) {
	for _, c := range []struct {
		body string
		want trace.Target
	}{
		{"%a = fmul fast double %x, %x\n  %b = fadd nnan contract double %a, %x", trace.Contract},
		{"%a = fmul fast double %x, %x\n  %b = fadd nnan double %a, %x", 0},
		{"%a = fdiv fast double %x, %x\n  %b = fneg double %a", 0},
		{"%a = fsub contract double %x, %x\n  %b = fdiv double %a, %a", trace.Contract},
	} {
		text := "target triple = \"aarch64-unknown-linux-gnu\"\ndefine double @f(double %x) {\n  " + c.body + "\n  ret double %b\n}\n"
		m, err := Read([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Program.Functions[0].Target; got != c.want {
			t.Errorf("contraction in %s = %b, want %b", c.body, got, c.want)
		}
	}
}

// TestTargetInCapturedData checks that the data embedded in a program contains the same target as the
// program's module.
func TestTargetInCapturedData(t *testing.T) {
	src, err := os.ReadFile("testdata/golden/loop.ll")
	if err != nil {
		t.Fatal(err)
	}
	src = []byte(strings.Replace(string(src), `"target-cpu"="x86-64"`, `"target-cpu"="x86-64-v3"`, 1))
	read, err := Read(src)
	if err != nil {
		t.Fatal(err)
	}
	traced, err := Instrument(src, Options{Instrs: true})
	if err != nil {
		t.Fatal(err)
	}
	if a, b := read.Program.Functions[0].Target, traced.Program.Functions[0].Target; a != b || a.Lacks(trace.FMA|trace.AVX2) || a == 0 {
		t.Errorf("the target is %b in the text, but %b in the captured data", a, b)
	}
}

// TestMultiplyAddOperands checks that operands are listed by position, including constants.
func TestMultiplyAddOperands(t *testing.T) {
	const text = `define double @f(double %x, ptr %p) {
  %a = load double, ptr %p
  %b = call double @llvm.fmuladd.f64(double %a, double 2.0, double %x)
  %c = call double @llvm.fma.f64(double %x, double %b, double 1.0)
  %d = call <2 x double> @llvm.fmuladd.v2f64(<2 x double> zeroinitializer, <2 x double> zeroinitializer, <2 x double> zeroinitializer)
  ret double %c
}
`
	m, err := Read([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	instrs := m.Program.Blocks[0].Instrs
	for i, want := range map[int][]int32{1: {0, -1, -1}, 2: {-1, 1, -1}, 3: {-1, -1, -1}} {
		if got := instrs[i].Uses; !slices.Equal(got, want) {
			t.Errorf("%s uses %v, want %v", instrs[i].Opcode, got, want)
		}
	}
}

// TestFactors checks that the opcodes of instructions contain the factors 3, 5 and 9, and that
// opcode counts do not contain them.
func TestFactors(t *testing.T) {
	const text = `define i64 @f(i64 %x) {
  %a = mul nuw nsw i64 %x, 3
  %b = mul i64 %a, 5
  %c = mul i64 %b, 9
  %d = mul i64 %c, 7
  %e = mul i64 %d, %x
  %f = add i64 %e, 3
  ret i64 %f
}
`
	m, err := Read([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	b := m.Program.Blocks[0]
	for i, want := range []string{"mul 3", "mul 5", "mul 9", "mul", "mul", "add"} {
		if b.Instrs[i].Opcode != want {
			t.Errorf("instruction %d has opcode %q, want %q", i, b.Instrs[i].Opcode, want)
		}
	}
	if b.Ops[0].Opcode != "mul" || b.Ops[0].Count != 5 {
		t.Errorf("the first opcode count is %+v, want 5 × mul", b.Ops[0])
	}
}
