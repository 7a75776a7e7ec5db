package ir

import (
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
	"pgregory.net/rapid"
)

// read reads a valid module, and checks that its tables are consistent.
func read(t testing.TB, text string) *Module {
	t.Helper()
	m, err := Read([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	checkModule(t, m)
	return m
}

func checkModule(t checker, m *Module) {
	t.Helper()
	checkProgram(t, m.Program)
	if len(m.Weights) != len(m.Program.Blocks) || len(m.Entries) != len(m.Program.Functions) || len(m.Entered) != len(m.Entries) {
		t.Fatalf("there are weights of %d blocks and entries of %d functions, want %d and %d", len(m.Weights), len(m.Entries), len(m.Program.Blocks), len(m.Program.Functions))
	}
	for b, w := range m.Weights {
		if w != nil && len(w) != len(m.Program.Blocks[b].Successors) {
			t.Errorf("block %d has %d weights for %d successors", b, len(w), len(m.Program.Blocks[b].Successors))
		}
	}
	for _, f := range m.Flow {
		if int(f.Block) >= len(m.Program.Blocks) || int(f.FromBlock) >= len(m.Program.Blocks) ||
			int(f.Instr) >= len(m.Program.Blocks[f.Block].Instrs) || int(f.FromInstr) >= len(m.Program.Blocks[f.FromBlock].Instrs) ||
			m.Program.Blocks[f.Block].Function != m.Program.Blocks[f.FromBlock].Function {
			t.Errorf("values flow between instructions that do not exist: %+v", f)
		}
	}
	for _, s := range m.Skipped {
		if s.What == "" || s.Why == "" || s.Count == 0 {
			t.Errorf("skipped: %+v", s)
		}
	}
}

// TestReadAndInstrumentAgree checks that Read and Instrument build the same tables, except for
// functions that are not instrumented.
func TestReadAndInstrumentAgree(t *testing.T) {
	for _, text := range seeds(t) {
		r, err := Instrument([]byte(text), Options{Instrs: true})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Program.Functions) == 0 {
			continue
		}
		m := read(t, text)
		if len(m.Program.Functions) == len(r.Program.Functions) {
			if !reflect.DeepEqual(m.Program, r.Program) {
				t.Errorf("%.60q: the tables differ from the rewriter's", text)
			}
			continue
		}
		for i := range r.Program.Functions {
			f := &r.Program.Functions[i]
			n := slices.IndexFunc(m.Program.Functions, func(g trace.Function) bool { return g.Name == f.Name })
			if n < 0 || m.Program.Functions[n].Blocks != f.Blocks {
				t.Fatalf("function %s is missing, or has different blocks", f.Name)
			}
			for k := range f.Blocks {
				a, b := &r.Program.Blocks[f.First+k], &m.Program.Blocks[m.Program.Functions[n].First+k]
				if a.Label != b.Label || a.Part != b.Part || a.Flags != b.Flags || !reflect.DeepEqual(a.Ops, b.Ops) || !reflect.DeepEqual(a.Instrs, b.Instrs) {
					t.Errorf("%s: block %s.%d differs from the rewriter's", f.Name, a.Label, a.Part)
				}
			}
		}
	}
}

// TestReadUnusualInstructions checks that the parser also reads code that must not be rewritten,
// and that the parser reports code that it cannot read.
func TestReadUnusualInstructions(t *testing.T) {
	unreadable := []string{"unknown", "extra operand", "no terminator", "no label", "label twice", "value twice", "late phi"}
	for _, s := range snippets {
		text := s.text + "\ndefine void @last() {\n  ret void\n}\n"
		if s.name == "funclet" {
			text = strings.Replace(text, "  ret void\n", "  cleanupret from %p unwind to caller\n", 1)
		}
		m := read(t, text)
		var names []string
		for i := range m.Program.Functions {
			names = append(names, m.Program.Functions[i].Name)
		}
		want, why := []string{"f", "last"}, ""
		if slices.Contains(unreadable, s.name) {
			want, why = want[1:], s.why
		}
		if !slices.Equal(names, want) {
			t.Errorf("%s: functions %v, want %v", s.name, names, want)
		}
		if (why == "") != (len(m.Skipped) == 0) || why != "" && (m.Skipped[0].What != "f" || !strings.HasPrefix(m.Skipped[0].Why, why)) {
			t.Errorf("%s: skipped %v, want %q", s.name, m.Skipped, why)
		}
	}
}

func TestReadWindowsExceptions(t *testing.T) {
	m := read(t, `define i32 @f() personality ptr @p {
  %t = call token @llvm.call.preallocated.setup(i32 1)
  invoke void @g() [ "preallocated"(token %t) ]
          to label %done unwind label %switch

switch:
  %s = catchswitch within none [label %catch] unwind label %clean

catch:
  %c = catchpad within %s [ptr null, i32 64, ptr null]
  catchret from %c to label %done

clean:
  %l = cleanuppad within none []
  cleanupret from %l unwind to caller

done:
  ret i32 0
}
`)
	var ways []string
	for b := range m.Program.Blocks {
		way := m.Program.Blocks[b].Label + ":"
		for _, s := range m.Program.Blocks[b].Successors {
			way += " " + m.Program.Blocks[s].Label
		}
		ways = append(ways, way)
	}
	if want := []string{"0: 0 switch", "0: done", "switch: catch clean", "catch: done", "clean:", "done:"}; !slices.Equal(ways, want) && !slices.Equal(ways, append([]string{"0: done switch"}, want[2:]...)) {
		t.Errorf("the blocks have the successors %q, want %q", ways, want)
	}
}

// TestReadWeights checks that the weights of every terminator with weights are read, in the order
// of its successors.
func TestReadWeights(t *testing.T) {
	m := read(t, `define i32 @f(i32 %a, ptr %p) !prof !0 personality ptr @q {
entry:
  %c = icmp eq i32 %a, 0
  %s = select i1 %c, i32 1, i32 2, !prof !1
  %v = call i32 %p(), !prof !7
  br i1 %c, label %one, label %two, !prof !1

one:
  switch i32 %a, label %two [
    i32 1, label %three
    i32 2, label %three
  ], !prof !2

two:
  invoke void @g()
          to label %three unwind label %pad, !prof !3

three:
  invoke void @g()
          to label %four unwind label %pad, !prof !4

four:
  indirectbr ptr %p, [label %one, label %two], !prof !5

pad:
  %l = landingpad { ptr, i32 }
          cleanup
  br i1 %c, label %one, label %end, !prof !6

end:
  br label %back, !prof !3

back:
  ret i32 %s
}

define void @g() !prof !8 {
  ret void
}

define void @h() {
  ret void
}

!0 = !{!"function_entry_count", i64 1000000000000}
!1 = !{!"branch_weights", i32 -2, i32 1}
!2 = !{!"branch_weights", !"expected", i32 1, i32 2000, i32 3}
!3 = !{!"branch_weights", i32 77}
!4 = !{!"branch_weights", i32 50, i32 5}
!5 = !{!"branch_weights", i64 5000000000, i32 0}
!6 = !{!"branch_weights", i32 1, i32 2, i32 3}
!7 = !{!"VP", i32 0, i64 1600, i64 7651369219802541373, i64 1030}
!8 = !{!"function_entry_count", i64 -1}
`)
	got := map[string][]uint64{}
	for b, w := range m.Weights {
		if w != nil {
			k := &m.Program.Blocks[b]
			got[k.Label+"."+strconv.Itoa(int(k.Part))] = w
		}
	}
	want := map[string][]uint64{
		"entry.1": {1<<32 - 2, 1}, "one.0": {1, 2000, 3}, "two.0": {77, 0}, "three.0": {50, 5}, "four.0": {5000000000, 0}, "end.0": {77},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("branch weights = %v, want %v", got, want)
	}
	if !slices.Equal(m.Entries, []uint64{1000000000000, 0, 0}) || !slices.Equal(m.Entered, []bool{true, false, false}) {
		t.Errorf("entries %v, %v", m.Entries, m.Entered)
	}
}

// TestReadInvalidText checks that Read rejects text that is not a module, and skips lines of a
// module that cannot be parsed.
func TestReadInvalidText(t *testing.T) {
	for text, want := range map[string]string{
		"int main() {}\n": `the module: no function could be read: line 1: "int main() {}", want a definition, a declaration or metadata; want LLVM IR as text, written by clang -S -emit-llvm`,
		"BC\xc0\xde5\x14": "the module is bitcode, want text; convert the module with llvm-dis, or compile with clang -S -emit-llvm",
	} {
		if _, err := Read([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("Read(%q): error %v, want %s", text, err, want)
		}
	}
	m := read(t, `source_filename = "a.c"
hint "something new"
define void @open() {
  ret void

define void @whole() {
  ret void
}

define void @cut() {
  ret void
`)
	if len(m.Program.Functions) != 1 || m.Program.Functions[0].Name != "whole" {
		t.Errorf("functions %+v, want only the complete function", m.Program.Functions)
	}
	var skipped []string
	for _, s := range m.Skipped {
		skipped = append(skipped, s.What+": "+s.Why)
	}
	if want := []string{
		`line 2: "hint \"something new\"", want a definition, a declaration or metadata`,
		`line 3: "define void @open() {", want a line "}" at the end of this function`,
		`line 10: "define void @cut() {", want a line "}" at the end of this function`,
	}; !slices.Equal(skipped, want) {
		t.Errorf("skipped %q, want %q", skipped, want)
	}
	if m := read(t, "declare void @f()\n"+strings.Repeat("?\n", 1000)+"define void @g() {\n  ret void\n}\n"); len(m.Skipped) != maxSkipped+1 || m.Skipped[maxSkipped].Count != 1000-maxSkipped {
		t.Errorf("%d entries of skipped lines, want %d individual lines and one entry for all other lines", len(m.Skipped), maxSkipped)
	}
}

// usesOf returns the operands of the n-th instruction with the given opcode in a block.
func usesOf(b *trace.Block, opcode string, n int) []int32 {
	for _, in := range b.Instrs {
		if in.Opcode == opcode {
			if n == 0 {
				return in.Uses
			}
			n--
		}
	}
	return nil
}

// TestDependencesThroughMemory checks that a load depends on the preceding store to the same
// address. In a loop, the preceding store may be in the previous iteration.
func TestDependencesThroughMemory(t *testing.T) {
	m := read(t, `@g = global i32 0

define void @f(ptr %p, ptr %q, i64 %n) {
entry:
  store i32 1, ptr %p
  %a = load i32, ptr %p
  %b = load i32, ptr %q
  store i32 2, ptr @g
  %c = load i32, ptr @g
  %x = getelementptr i32, ptr %p, i64 %n, !dbg !1
  store i32 3, ptr %x
  %y = getelementptr i32, ptr %p, i64 %n
  %d = load i32, ptr %y
  call void @h()
  %e = load i32, ptr %p
  br label %loop

loop:
  %i = phi i64 [ 0, %entry ], [ %j, %loop ]
  %s = load double, ptr %q
  %at = getelementptr double, ptr %p, i64 %i
  %v = load double, ptr %at
  %t = fadd double %s, %v
  store double %t, ptr %at
  store double %t, ptr %q
  %j = add i64 %i, 1
  %k = icmp eq i64 %j, %n
  br i1 %k, label %end, label %loop

end:
  ret void
}
declare void @h()
!1 = !{}
`)
	entry, after, body := &m.Program.Blocks[0], &m.Program.Blocks[1], &m.Program.Blocks[2]
	for _, test := range []struct {
		what  string
		block *trace.Block
		load  int
		want  []int32
	}{
		{"stored before", entry, 0, []int32{-1, 0}}, {"stored elsewhere", entry, 1, []int32{-1}}, {"a global", entry, 2, []int32{3}},
		{"an address computed in the same way", entry, 3, []int32{7, 6}}, {"behind a call", after, 0, []int32{-1}},
		{"an iteration ago", body, 0, []int32{-1, -2 - 6}}, {"an address that changes", body, 1, []int32{2}},
	} {
		if got := usesOf(test.block, "load", test.load); !slices.Equal(got, test.want) {
			t.Errorf("%s: uses %v, want %v", test.what, got, test.want)
		}
	}
	typed := read(t, "define void @f(i32* %p) {\n  %q = bitcast i32* %p to float*\n  store float 1.0, float* %q\n  %a = load i32, i32* %p\n  ret void\n}\n")
	if got := usesOf(&typed.Program.Blocks[0], "load", 0); !slices.Equal(got, []int32{-1, 1}) {
		t.Errorf("through a cast: uses %v, want -1 and the store", got)
	}
}

// FuzzRead checks that no text makes the reader panic, and that the resulting tables are
// consistent.
func FuzzRead(f *testing.F) {
	for _, text := range seeds(f) {
		f.Add([]byte(text))
	}
	f.Add([]byte("define void @f() !prof !0 {\n  br i1 true, label %1, label %1, !prof !1\n1:\n  ret void\n}\n!0 = !{!\"function_entry_count\", i64 2}\n!1 = !{!\"branch_weights\", i32 1, i32 -1}\n"))
	f.Fuzz(func(t *testing.T, src []byte) {
		m, err := Read(src)
		if err != nil {
			if err.Error() == "" {
				t.Error("the error has no text")
			}
			return
		}
		checkModule(t, m)
	})
}

// TestReadDamagedModules checks the same properties as FuzzRead, for modules in which lines or
// characters were lost, duplicated or swapped.
func TestReadDamagedModules(t *testing.T) {
	whole := seeds(t)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SampledFrom(whole).Draw(t, "module")
		for range rapid.IntRange(1, 4).Draw(t, "damages") {
			text = damage(t, text)
		}
		if m, err := Read([]byte(text)); err == nil {
			checkModule(t, m)
		}
	})
}

// BenchmarkRead reads a module with debug information, in the form in which LLVM prints it. The
// module is the file $STACKGLASS_IR, or consists of many copies of a small module.
func BenchmarkRead(b *testing.B) {
	src, err := os.ReadFile(os.Getenv("STACKGLASS_IR"))
	if err != nil {
		src = manyFunctions(b)
	}
	b.SetBytes(int64(len(src)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Read(src); err != nil {
			b.Fatal(err)
		}
	}
}

// TestValuesBetweenBlocks checks that values flow to other blocks in the same iteration and,
// through the header's phis, to the next iteration. If a loop consists of one block, values flow
// only within that block.
func TestValuesBetweenBlocks(t *testing.T) {
	m := read(t, `define i64 @f(ptr %p, i64 %n) {
entry:
  %first = load i64, ptr %p
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %latch ]
  %s = phi i64 [ %first, %entry ], [ %t, %latch ]
  %c = icmp eq i64 %s, 7
  br i1 %c, label %side, label %latch
side:
  %m = mul i64 %s, %i
  br label %latch
latch:
  %t = phi i64 [ %s, %head ], [ %m, %side ]
  %next = add i64 %i, 1
  %d = icmp eq i64 %next, %n
  br i1 %d, label %small, label %head
small:
  %k = phi i64 [ %t, %latch ], [ %l, %small ]
  %l = add i64 %k, 3
  %e = icmp eq i64 %l, %n
  br i1 %e, label %exit, label %small
exit:
  ret i64 %l
}
`)
	want := []trace.Flow{
		{Block: 1, Instr: 0, FromBlock: 3, FromInstr: 1, Before: 1}, // i uses next
		{Block: 1, Instr: 1, FromBlock: 0, FromInstr: 0, Before: 0}, // s uses first
		{Block: 1, Instr: 1, FromBlock: 3, FromInstr: 0, Before: 1}, // s uses t
		{Block: 2, Instr: 0, FromBlock: 1, FromInstr: 1, Before: 0}, // m uses s
		{Block: 2, Instr: 0, FromBlock: 1, FromInstr: 0, Before: 0}, // m uses i
		{Block: 3, Instr: 0, FromBlock: 1, FromInstr: 1, Before: 0}, // t uses s
		{Block: 3, Instr: 0, FromBlock: 2, FromInstr: 0, Before: 0}, // t uses m
		{Block: 3, Instr: 1, FromBlock: 1, FromInstr: 0, Before: 0}, // next uses i
		{Block: 4, Instr: 0, FromBlock: 3, FromInstr: 0, Before: 0}, // k uses t
		{Block: 5, Instr: 0, FromBlock: 4, FromInstr: 1, Before: 0}, // ret uses l
	}
	if !slices.Equal(m.Flow, want) {
		t.Errorf("%v, want %v", m.Flow, want)
	}
}

// TestReadNewerNotations checks that the parser reads notations that LLVM introduced in version 20
// and later.
func TestReadNewerNotations(t *testing.T) {
	m := read(t, `source_filename = "new.c"
@g = dso_local global i32 0, align 4, code_model "large"
%t = type { i32, target("spirv.Image", void, 0) }

define dso_local noundef range(i32 0, 5) i32 @f(ptr noundef writeonly captures(none) initializes((0, 4)) %p, i64 noundef %n, float nofpclass(nan) %x) local_unnamed_addr #0 !dbg !4 {
entry:
    #dbg_value(ptr %p, !5, !DIExpression(), !6)
    #dbg_declare_value(i64 %n, !5, !DIExpression(), !6)
    #dbg_label(!7, !6)
  %a = getelementptr inbounds nuw i32, ptr %p, i64 %n
  store i32 0, ptr %a, align 4, !tbaa !8, !noalias.addrspace !9
  %b = trunc nuw nsw i64 %n to i32
  %c = icmp samesign ult i32 %b, 7
  %d = uitofp nneg i32 %b to float
  %e = fadd reassoc nsz contract float %d, %x
  %h = atomicrmw usub_cond ptr @g, i32 %b syncscope("agent") monotonic, align 4, !noalias.addrspace !9, !amdgpu.no.fine.grained.memory !9
  %i = ptrtoaddr ptr %a to i64
  %j = call range(i32 0, 5) i32 @llvm.scmp.i32.i64(i64 %i, i64 %n)
  %k = add <4 x i32> splat (i32 1), zeroinitializer
  %l = or disjoint i32 %j, 8
  %m = fptrunc nnan double 0x3FF0000000000000 to float
  %o = select nnan i1 %c, float %e, float %m
  br i1 %c, label %then, label %else, !prof !10, !llvm.loop !11

then:
  %q = tail call noundef i32 @g2(i32 noundef %l, ptr noundef nonnull align 4 dereferenceable(4) dead_on_return %a) #1 [ "kcfi"(i32 7) ], !dbg !6
  ret i32 %q

else:
  unreachable
}

declare i32 @g2(i32, ptr)
declare i32 @llvm.scmp.i32.i64(i64, i64)

attributes #0 = { nounwind memory(argmem: readwrite, target_mem0: none) }
attributes #1 = { nocreateundeforpoison }
!4 = distinct !DISubprogram(name: "f", line: 3, file: !12)
!5 = !DILocalVariable(name: "p")
!6 = !DILocation(line: 4, column: 2, scope: !4)
!7 = !DILabel(scope: !4, name: "l", line: 4, column: 3)
!10 = !{!"branch_weights", !"expected", i32 2000, i32 1}
!12 = !DIFile(filename: "new.c", directory: "/")
`)
	if len(m.Skipped) > 0 || len(m.Program.Functions) != 1 {
		t.Errorf("%d functions were read and %v skipped, want nothing skipped", len(m.Program.Functions), m.Skipped)
	}
}
