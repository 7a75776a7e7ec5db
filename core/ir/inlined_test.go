package ir

import (
	"path"
	"strconv"
	"testing"
)

// TestInlinedCodeLocations checks that code inlined from a system header or an accessor is located
// at the call, and that all other code is located at its own line.
func TestInlinedCodeLocations(t *testing.T) {
	r, err := Instrument([]byte(`
define double @use(ptr %v, i64 %n) !dbg !5 {
entry:
  %a = load double, ptr %v, align 8, !dbg !20
  %b = load double, ptr %v, align 8, !dbg !21
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %at = getelementptr inbounds double, ptr %v, i64 %i
  %c = load double, ptr %at, align 8, !dbg !22
  %d = load double, ptr %at, align 8, !dbg !23
  %e = load double, ptr %at, align 8, !dbg !24
  %f = load double, ptr %at, align 8, !dbg !27
  %g = load double, ptr %at, align 8, !dbg !27
  %h = load double, ptr %at, align 8, !dbg !27
  %k = load double, ptr %at, align 8, !dbg !28
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done, !dbg !25
done:
  ret double %c
}
!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!1}
!0 = distinct !DICompileUnit(language: DW_LANG_C_plus_plus_14, file: !2, emissionKind: FullDebug)
!1 = !{i32 2, !"Debug Info Version", i32 3}
!2 = !DIFile(filename: "app.cpp", directory: "/src")
!3 = !DIFile(filename: "/usr/bin/../lib/gcc/x86_64-linux-gnu/12/../../../../include/c++/12/bits/stl_vector.h", directory: "")
!4 = !DISubroutineType(types: !{})
!5 = distinct !DISubprogram(name: "use", file: !2, line: 30, type: !4, unit: !0)
!6 = distinct !DISubprogram(name: "operator[]", file: !3, line: 1120, type: !4, unit: !0)
!7 = distinct !DISubprogram(name: "at", file: !50, line: 10, type: !4, unit: !0)
!8 = distinct !DISubprogram(name: "step", file: !50, line: 14, type: !4, unit: !0)
!9 = distinct !DISubprogram(name: "sum", file: !50, line: 20, type: !4, unit: !0)
!10 = distinct !DILocation(line: 31, column: 1, scope: !5)
!11 = distinct !DILocation(line: 32, column: 1, scope: !5)
!12 = distinct !DILocation(line: 33, column: 1, scope: !5)
!13 = distinct !DILocation(line: 34, column: 1, scope: !5)
!14 = distinct !DILocation(line: 11, column: 9, scope: !7, inlinedAt: !11)
!20 = !DILocation(line: 1125, column: 2, scope: !6, inlinedAt: !10)
!21 = !DILocation(line: 1126, column: 2, scope: !6, inlinedAt: !14)
!22 = !DILocation(line: 11, column: 5, scope: !7, inlinedAt: !12)
!23 = !DILocation(line: 15, column: 5, scope: !8, inlinedAt: !12)
!24 = !DILocation(line: 21, column: 5, scope: !9, inlinedAt: !13)
!25 = !DILocation(line: 21, column: 1, scope: !9, inlinedAt: !13)
!27 = !DILocation(line: 41, column: 5, scope: !51, inlinedAt: !12)
!50 = !DIFile(filename: "app.h", directory: "/src")
!51 = distinct !DISubprogram(name: "get", file: !2, line: 40, type: !4, unit: !0)
!28 = !DILocation(line: 62, column: 5, scope: !53, inlinedAt: !12)
!52 = distinct !DISubprogram(name: "all", file: !50, line: 60, type: !4, unit: !0)
!53 = distinct !DILexicalBlock(scope: !52, file: !50, line: 61, column: 3)
!26 = !DILocation(line: 16, column: 5, scope: !8, inlinedAt: !12)
`), Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"app.cpp:31", // a system header, which has code on several lines
		"app.cpp:32", // code from a system header that was inlined in an accessor
		"app.cpp:33", // an accessor
		"app.h:15",   // a function with code on two lines
		"app.h:21",   // a loop on one line
		"app.cpp:33", // an accessor in the same file
		"app.cpp:33", // copies of an accessor in an unrolled loop
		"app.cpp:33",
		"app.h:62", // a loop that has been reduced to its body
	}
	if len(r.Program.Sites) != len(want) {
		t.Fatalf("%d sites, want %d", len(r.Program.Sites), len(want))
	}
	for i := range want {
		place := r.Program.Sites[i].Place
		if got := path.Base(place.File) + ":" + strconv.Itoa(int(place.Line)); got != want[i] {
			t.Errorf("source location of site %d = %s, want %s", i, got, want[i])
		}
	}
}

// TestCyclicLocations checks that resolving a location terminates even if locations are inlined at
// each other in a cycle.
func TestCyclicLocations(t *testing.T) {
	_, err := Instrument([]byte(`
define void @f(ptr %v) {
  %a = load double, ptr %v, align 8, !dbg !1
  ret void
}
!1 = distinct !DILocation(line: 1, column: 1, scope: !3, inlinedAt: !2)
!2 = distinct !DILocation(line: 1, column: 1, scope: !3, inlinedAt: !1)
!3 = distinct !DISubprogram(name: "f", line: 1)
`), Options{})
	if err != nil {
		t.Fatal(err)
	}
}
