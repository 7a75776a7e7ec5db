package ir

import (
	"slices"
	"strconv"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
)

// TestMemberNames checks that, if a member of a structure points to data, the data is named after
// this member.
func TestMemberNames(t *testing.T) {
	r, err := Instrument([]byte(`
target datalayout = "e-m:e-i64:64-n8:16:32:64-S128"
%struct.state = type { i64, ptr, %struct.inner }
%struct.inner = type { ptr, ptr }
@global = global %struct.state zeroinitializer, !dbg !30
define void @use(ptr %s, ptr %v, ptr %this, i64 %i) !dbg !5 {
  #dbg_value(ptr %s, !20, !DIExpression(), !40)
  #dbg_value(ptr %v, !21, !DIExpression(), !40)
  #dbg_value(ptr %this, !22, !DIExpression(), !40)
  %a1 = getelementptr inbounds i8, ptr %s, i64 8
  %a2 = load ptr, ptr %a1, align 8
  %a3 = load i32, ptr %a2, align 4
  %b1 = getelementptr inbounds %struct.state, ptr %s, i64 %i, i32 2, i32 1
  %b2 = load ptr, ptr %b1, align 8
  %b3 = load i32, ptr %b2, align 4
  %c1 = getelementptr inbounds i8, ptr %s, i64 16
  %c2 = load ptr, ptr %c1, align 8
  %c3 = getelementptr inbounds i8, ptr %c2, i64 8
  %c4 = load ptr, ptr %c3, align 8
  %c5 = load i32, ptr %c4, align 4
  %d2 = load ptr, ptr %v, align 8
  %d3 = load i32, ptr %d2, align 4
  %e1 = getelementptr inbounds i8, ptr %this, i64 8
  %e2 = load ptr, ptr %e1, align 8
  %e3 = load i32, ptr %e2, align 4
  %f2 = load ptr, ptr getelementptr inbounds (i8, ptr @global, i64 8), align 8
  %g1 = getelementptr inbounds %struct.state, ptr @global, i64 0, i32 1
  %g2 = load ptr, ptr %g1, align 8
  %g3 = load i32, ptr %g2, align 4
  %h1 = getelementptr inbounds i8, ptr %s, i64 %i
  %h2 = load ptr, ptr %h1, align 8
  %h3 = load i32, ptr %h2, align 4
  ret void
}
!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!1}
!0 = distinct !DICompileUnit(language: DW_LANG_C_plus_plus_14, file: !2, emissionKind: FullDebug)
!1 = !{i32 2, !"Debug Info Version", i32 3}
!2 = !DIFile(filename: "app.cpp", directory: "/src")
!3 = !DIBasicType(name: "int", size: 32, encoding: DW_ATE_signed)
!4 = !DISubroutineType(types: !{})
!5 = distinct !DISubprogram(name: "use", file: !2, line: 30, type: !4, unit: !0)
!6 = !DIDerivedType(tag: DW_TAG_pointer_type, baseType: !3, size: 64)
!7 = distinct !DICompositeType(tag: DW_TAG_structure_type, name: "state", size: 256, elements: !8)
!8 = !{!9, !10, !11}
!9 = !DIDerivedType(tag: DW_TAG_member, name: "n", baseType: !3, size: 64)
!10 = !DIDerivedType(tag: DW_TAG_member, name: "table", baseType: !6, size: 64, offset: 64)
!11 = !DIDerivedType(tag: DW_TAG_member, name: "in", baseType: !12, size: 128, offset: 128)
!12 = distinct !DICompositeType(tag: DW_TAG_structure_type, name: "inner", size: 128, elements: !13)
!13 = !{!14, !15}
!14 = !DIDerivedType(tag: DW_TAG_member, name: "next", baseType: !16, size: 64)
!15 = !DIDerivedType(tag: DW_TAG_member, name: "list", baseType: !6, size: 64, offset: 64)
!16 = !DIDerivedType(tag: DW_TAG_pointer_type, baseType: !17, size: 64)
!17 = !DIDerivedType(tag: DW_TAG_typedef, name: "state_t", baseType: !7)
!18 = distinct !DICompositeType(tag: DW_TAG_class_type, name: "vector", size: 192, elements: !24)
!19 = !DIDerivedType(tag: DW_TAG_member, name: "_M_start", baseType: !6, size: 64)
!20 = !DILocalVariable(name: "s", scope: !5, type: !16)
!21 = !DILocalVariable(name: "v", scope: !5, type: !23)
!22 = !DILocalVariable(name: "this", scope: !5, type: !16)
!23 = !DIDerivedType(tag: DW_TAG_reference_type, baseType: !18, size: 64)
!24 = !{!19}
!30 = !DIGlobalVariableExpression(var: !31, expr: !DIExpression())
!31 = distinct !DIGlobalVariable(name: "global", file: !2, type: !17)
!40 = !DILocation(line: 31, column: 1, scope: !5)
`), Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"a3": "s->table", "b3": "s->in.list", "c4": "s->in.next", "c5": "s->in.next->table",
		"d3": "v", "e3": "table", "g3": "global.table", "h3": "",
	}
	checkElements(t, r.Program)
	names := []string{"a2", "a3", "b2", "b3", "c2", "c4", "c5", "d2", "d3", "e2", "e3", "f2", "g2", "g3", "h2", "h3"}
	if len(r.Program.Sites) != len(names) {
		t.Fatalf("%d sites, want %d", len(r.Program.Sites), len(names))
	}
	for i, load := range names {
		if name, ok := want[load]; ok && r.Program.Sites[i].Object != name {
			t.Errorf("load %s: object %q, want %q", load, r.Program.Sites[i].Object, name)
		}
	}
}

// TestCyclicTypes checks that naming terminates even if types contain each other in a cycle.
func TestCyclicTypes(t *testing.T) {
	_, err := Instrument([]byte(`
define void @f(ptr %s) {
  #dbg_value(ptr %s, !20, !DIExpression(), !40)
  %a = getelementptr inbounds i8, ptr %s, i64 8
  %b = load ptr, ptr %a, align 8
  %c = load i32, ptr %b, align 4
  ret void
}
!1 = !DIDerivedType(tag: DW_TAG_typedef, baseType: !2)
!2 = !DIDerivedType(tag: DW_TAG_typedef, baseType: !1)
!3 = !DIDerivedType(tag: DW_TAG_pointer_type, baseType: !4, size: 64)
!4 = distinct !DICompositeType(tag: DW_TAG_structure_type, size: 256, elements: !5)
!5 = !{!6, !7}
!6 = !DIDerivedType(tag: DW_TAG_member, name: "x", baseType: !4, size: 256)
!7 = !DIDerivedType(tag: DW_TAG_member, name: "y", baseType: !1, offset: 64)
!20 = !DILocalVariable(name: "s", type: !3)
`), Options{})
	if err != nil {
		t.Fatal(err)
	}
}

// checkElements checks the structures of the program in TestMemberNames, and the offsets of the
// program's loads in these structures.
func checkElements(t *testing.T, p *trace.Program) {
	want := []trace.Structure{{Name: "state", Bytes: 32, Members: []trace.Member{
		{Name: "n", Offset: 0, Bytes: 8, Type: "int"}, {Name: "table", Offset: 8, Bytes: 8, Type: "int *"},
		{Name: "in.next", Offset: 16, Bytes: 8, Type: "state_t *"}, {Name: "in.list", Offset: 24, Bytes: 8, Type: "int *"},
	}}}
	if !slices.EqualFunc(p.Structures, want, trace.Structure.Equal) {
		t.Errorf("structures are %+v, want %+v", p.Structures, want)
	}
	if p.Objects[0].Structure != 1 {
		t.Errorf("the variable has structure %d, want 1", p.Objects[0].Structure)
	}
	var offsets []string
	for _, s := range p.Sites {
		text := "-"
		if s.Structure > 0 {
			text = strconv.Itoa(int(s.Offset))
		}
		offsets = append(offsets, text)
	}
	// The offsets belong to a2, a3, b2, b3, c2, c4, c5, d2, d3, e2, e3, f2, g2, g3, h2 and h3. No
	// structure contains the data to which table and list point. The class of v has only one
	// member. f2 is a constant expression, and the index in h2 is a number of bytes.
	if want := []string{"8", "-", "24", "-", "16", "8", "-", "-", "-", "8", "-", "-", "8", "-", "-", "-"}; !slices.Equal(offsets, want) {
		t.Errorf("offsets\n%v, want\n%v", offsets, want)
	}
}

// TestAllocationNames checks that an allocation is named after the variable or member to which its
// address is assigned. The allocation must contain elements of the type to which this variable or
// member points.
func TestAllocationNames(t *testing.T) {
	r, err := Instrument([]byte(`
declare ptr @malloc(i64)
define ptr @make(ptr %s) {
  #dbg_value(ptr %s, !20, !DIExpression(), !40)
  %a = call ptr @malloc(i64 16)
  #dbg_value(ptr %a, !21, !DIExpression(), !40)
  %b = call ptr @malloc(i64 16)
  %b1 = getelementptr inbounds i8, ptr %s, i64 8
  store ptr %b, ptr %b1, align 8
  %c = call ptr @malloc(i64 16)
  ret ptr %c
}
!3 = !DIDerivedType(tag: DW_TAG_pointer_type, baseType: !4, size: 64)
!4 = distinct !DICompositeType(tag: DW_TAG_structure_type, name: "pair", size: 128, elements: !5)
!5 = !{!6, !7}
!6 = !DIDerivedType(tag: DW_TAG_member, name: "x", baseType: !8, size: 64)
!7 = !DIDerivedType(tag: DW_TAG_member, name: "y", baseType: !3, size: 64, offset: 64)
!8 = !DIBasicType(name: "double", size: 64)
!20 = !DILocalVariable(name: "s", type: !3)
!21 = !DILocalVariable(name: "t", type: !3)
`), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range r.Program.Sites {
		if s.Kind == trace.Alloc {
			got = append(got, s.Object+" "+strconv.Itoa(int(s.Structure)))
		}
	}
	if want := []string{"t 1", "s->y 1", " 0"}; !slices.Equal(got, want) {
		t.Errorf("allocations are named %q, want %q", got, want)
	}
}
