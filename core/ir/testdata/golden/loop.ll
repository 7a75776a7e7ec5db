; ModuleID = 'loop.c'
source_filename = "loop.c"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

%struct.pair = type { double, i32 }

@table = dso_local global [100 x double] zeroinitializer, align 16, !dbg !0
@.str = private unnamed_addr constant [4 x i8] c"%f\0A\00", align 1
@hidden = internal thread_local global i24 0, align 4
@elsewhere = external global i32, align 4

; Function Attrs: nofree norecurse nosync nounwind memory(read)
define dso_local double @dot(ptr nocapture noundef readonly %a, ptr nocapture noundef readonly %b, i32 noundef %n) local_unnamed_addr #0 !dbg !10 {
entry:
    #dbg_value(ptr %a, !14, !DIExpression(), !16)
    #dbg_value(ptr %b, !15, !DIExpression(), !16)
  %cmp = icmp sgt i32 %n, 0, !dbg !17
  br i1 %cmp, label %preheader, label %exit, !dbg !17

preheader:                                        ; preds = %entry
  %count = zext nneg i32 %n to i64
  br label %body, !dbg !17

body:                                             ; preds = %preheader, %body
  %i = phi i64 [ 0, %preheader ], [ %i.next, %body ]
  %sum = phi double [ 0.000000e+00, %preheader ], [ %add, %body ]
  %pa = getelementptr inbounds double, ptr %a, i64 %i, !dbg !18
  %x = load double, ptr %pa, align 8, !dbg !18
  %pb = getelementptr inbounds %struct.pair, ptr %b, i64 %i, !dbg !18
  %y = load double, ptr %pb, align 8, !dbg !18
  %add = tail call double @llvm.fmuladd.f64(double %x, double %y, double %sum), !dbg !19
  %i.next = add nuw nsw i64 %i, 1, !dbg !18
  %done = icmp eq i64 %i.next, %count, !dbg !17
  br i1 %done, label %exit, label %body, !dbg !17, !llvm.loop !21

exit:                                             ; preds = %body, %entry
  %result = phi double [ 0.000000e+00, %entry ], [ %add, %body ]
  ret double %result, !dbg !20
}

declare double @llvm.fmuladd.f64(double, double, double) #1

define dso_local i32 @main() #2 !dbg !22 {
  %1 = alloca [20 x i32], align 16
  %2 = load i32, ptr @elsewhere, align 4, !dbg !24
  %3 = alloca i32, align 4
    #dbg_declare(ptr %1, !23, !DIExpression(), !24)
  store volatile i32 %2, ptr %3, align 4
  call void @llvm.memset.p0.i64(ptr align 16 %1, i8 0, i64 80, i1 false), !dbg !24
  %4 = sext i32 %2 to i64
  %5 = call noalias ptr @malloc(i64 noundef %4), !dbg !25
  %6 = call double @dot(ptr noundef @table, ptr noundef %5, i32 noundef %2), !dbg !25
  %7 = call double @sin(double %6)
  %8 = getelementptr inbounds [100 x double], ptr @table, i64 0, i64 %4
  store double %7, ptr %8, align 8
  %9 = load i24, ptr @hidden, align 4
  switch i24 %9, label %12 [
    i24 1, label %10
    i24 2, label %10
    i24 3, label %13
  ]

10:                                               ; preds = %0, %0
  %11 = atomicrmw add ptr %3, i32 1 seq_cst, align 4
  call void @free(ptr %5)
  br label %13

12:                                               ; preds = %0
  call void @abort() #3
  unreachable

13:                                               ; preds = %10, %0
  %14 = phi i32 [ %11, %10 ], [ 0, %0 ]
  ret i32 %14
}

define available_externally i32 @copy() {
  ret i32 1
}

define void @bare() #4 {
  call void asm sideeffect "ret", "~{memory}"()
  unreachable
}

declare void @llvm.memset.p0.i64(ptr nocapture writeonly, i8, i64, i1 immarg) #1

declare noalias ptr @malloc(i64 noundef)

declare void @free(ptr)

declare double @sin(double)

declare void @abort()

attributes #0 = { nofree norecurse nosync nounwind memory(read) "target-cpu"="x86-64" }
attributes #1 = { nocallback nofree nosync nounwind speculatable willreturn memory(none) }
attributes #2 = { nounwind }
attributes #3 = { noreturn nounwind }
attributes #4 = { naked nounwind }

!llvm.dbg.cu = !{!2}
!llvm.module.flags = !{!8, !9}
!llvm.ident = !{!26}

!0 = !DIGlobalVariableExpression(var: !1, expr: !DIExpression())
!1 = distinct !DIGlobalVariable(name: "table", scope: !2, file: !3, line: 2, type: !5, isLocal: false, isDefinition: true)
!2 = distinct !DICompileUnit(language: DW_LANG_C11, file: !3, producer: "clang, with \22quotes\22", isOptimized: true, runtimeVersion: 0, emissionKind: FullDebug, globals: !4, splitDebugInlining: false, nameTableKind: None)
!3 = !DIFile(filename: "loop.c", directory: "/src")
!4 = !{!0}
!5 = !DICompositeType(tag: DW_TAG_array_type, baseType: !6, size: 6400, elements: !7)
!6 = !DIBasicType(name: "double", size: 64, encoding: DW_ATE_float)
!7 = !{!27}
!8 = !{i32 7, !"Dwarf Version", i32 5}
!9 = !{i32 2, !"Debug Info Version", i32 3}
!10 = distinct !DISubprogram(name: "dot", scope: !3, file: !3, line: 4, type: !11, scopeLine: 5, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !2, retainedNodes: !13)
!11 = !DISubroutineType(types: !12)
!12 = !{!6}
!13 = !{!14, !15}
!14 = !DILocalVariable(name: "left", arg: 1, scope: !10, file: !3, line: 4, type: !28)
!15 = !DILocalVariable(name: "right", arg: 2, scope: !10, file: !3, line: 4, type: !28)
!16 = !DILocation(line: 0, scope: !10)
!17 = !DILocation(line: 7, column: 3, scope: !10)
!18 = !DILocation(line: 8, column: 12, scope: !29)
!19 = !DILocation(line: 8, column: 9, scope: !29)
!20 = !DILocation(line: 9, column: 3, scope: !10)
!21 = distinct !{!21, !17, !20}
!22 = distinct !DISubprogram(name: "main", scope: !3, file: !3, line: 12, type: !11, scopeLine: 12, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !2)
!23 = !DILocalVariable(name: "local", scope: !22, file: !3, line: 13, type: !5)
!24 = !DILocation(line: 13, column: 7, scope: !22)
!25 = !DILocation(line: 2, column: 5, scope: !30, inlinedAt: !31)
!26 = !{!"clang version 19.1.7"}
!27 = !DISubrange(count: 100)
!28 = !DIDerivedType(tag: DW_TAG_pointer_type, baseType: !6, size: 64)
!29 = distinct !DILexicalBlock(scope: !10, file: !3, line: 7, column: 3)
!30 = distinct !DISubprogram(name: "inlined", scope: !32, file: !32, line: 1, type: !11, scopeLine: 1, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !2)
!31 = distinct !DILocation(line: 15, column: 3, scope: !22)
!32 = !DIFile(filename: "inlined.h", directory: "/src")
