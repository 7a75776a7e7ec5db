; ModuleID = 'matmul-naive.c'
source_filename = "matmul-naive.c"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

@a = dso_local local_unnamed_addr global [32 x [32 x double]] zeroinitializer, align 64, !dbg !0
@b = dso_local local_unnamed_addr global [32 x [32 x double]] zeroinitializer, align 64, !dbg !5
@c = dso_local local_unnamed_addr global [32 x [32 x double]] zeroinitializer, align 64, !dbg !11

; Function Attrs: nofree norecurse nosync nounwind memory(readwrite, argmem: none, inaccessiblemem: none) uwtable
define dso_local noundef i32 @main() local_unnamed_addr #0 !dbg !21 {
entry:
    #dbg_value(i32 0, !26, !DIExpression(), !36)
  br label %for.cond1.preheader, !dbg !37

for.cond1.preheader:                              ; preds = %entry, %for.cond.cleanup3
  %indvars.iv44 = phi i64 [ 0, %entry ], [ %indvars.iv.next45, %for.cond.cleanup3 ]
    #dbg_value(i64 %indvars.iv44, !26, !DIExpression(), !36)
    #dbg_value(i32 0, !28, !DIExpression(), !38)
  br label %for.cond5.preheader, !dbg !39

for.cond.cleanup:                                 ; preds = %for.cond.cleanup3
  ret i32 0, !dbg !40

for.cond5.preheader:                              ; preds = %for.cond1.preheader, %for.cond.cleanup7
  %indvars.iv40 = phi i64 [ 0, %for.cond1.preheader ], [ %indvars.iv.next41, %for.cond.cleanup7 ]
    #dbg_value(i64 %indvars.iv40, !28, !DIExpression(), !38)
    #dbg_value(i32 0, !34, !DIExpression(), !41)
    #dbg_value(double 0.000000e+00, !31, !DIExpression(), !42)
  br label %for.body8, !dbg !43

for.cond.cleanup3:                                ; preds = %for.cond.cleanup7
  %indvars.iv.next45 = add nuw nsw i64 %indvars.iv44, 1, !dbg !44
    #dbg_value(i64 %indvars.iv.next45, !26, !DIExpression(), !36)
  %exitcond47.not = icmp eq i64 %indvars.iv.next45, 32, !dbg !45
  br i1 %exitcond47.not, label %for.cond.cleanup, label %for.cond1.preheader, !dbg !37, !llvm.loop !46

for.cond.cleanup7:                                ; preds = %for.body8
  %arrayidx18 = getelementptr inbounds [32 x [32 x double]], ptr @c, i64 0, i64 %indvars.iv44, i64 %indvars.iv40, !dbg !50
  store double %2, ptr %arrayidx18, align 8, !dbg !51, !tbaa !52
  %indvars.iv.next41 = add nuw nsw i64 %indvars.iv40, 1, !dbg !56
    #dbg_value(i64 %indvars.iv.next41, !28, !DIExpression(), !38)
  %exitcond43.not = icmp eq i64 %indvars.iv.next41, 32, !dbg !57
  br i1 %exitcond43.not, label %for.cond.cleanup3, label %for.cond5.preheader, !dbg !39, !llvm.loop !58

for.body8:                                        ; preds = %for.cond5.preheader, %for.body8
  %indvars.iv = phi i64 [ 0, %for.cond5.preheader ], [ %indvars.iv.next, %for.body8 ]
  %sum.035 = phi double [ 0.000000e+00, %for.cond5.preheader ], [ %2, %for.body8 ]
    #dbg_value(i64 %indvars.iv, !34, !DIExpression(), !41)
    #dbg_value(double %sum.035, !31, !DIExpression(), !42)
  %arrayidx10 = getelementptr inbounds [32 x [32 x double]], ptr @a, i64 0, i64 %indvars.iv44, i64 %indvars.iv, !dbg !60
  %0 = load double, ptr %arrayidx10, align 8, !dbg !60, !tbaa !52
  %arrayidx14 = getelementptr inbounds [32 x [32 x double]], ptr @b, i64 0, i64 %indvars.iv, i64 %indvars.iv40, !dbg !62
  %1 = load double, ptr %arrayidx14, align 8, !dbg !62, !tbaa !52
  %2 = tail call double @llvm.fmuladd.f64(double %0, double %1, double %sum.035), !dbg !63
    #dbg_value(double %2, !31, !DIExpression(), !42)
  %indvars.iv.next = add nuw nsw i64 %indvars.iv, 1, !dbg !64
    #dbg_value(i64 %indvars.iv.next, !34, !DIExpression(), !41)
  %exitcond.not = icmp eq i64 %indvars.iv.next, 32, !dbg !65
  br i1 %exitcond.not, label %for.cond.cleanup7, label %for.body8, !dbg !43, !llvm.loop !66
}

; Function Attrs: mustprogress nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare double @llvm.fmuladd.f64(double, double, double) #1

attributes #0 = { nofree norecurse nosync nounwind memory(readwrite, argmem: none, inaccessiblemem: none) uwtable "min-legal-vector-width"="0" "no-trapping-math"="true" "stack-protector-buffer-size"="8" "target-cpu"="x86-64" "target-features"="+cmov,+cx8,+fxsr,+mmx,+sse,+sse2,+x87" "tune-cpu"="generic" }
attributes #1 = { mustprogress nocallback nofree nosync nounwind speculatable willreturn memory(none) }

!llvm.dbg.cu = !{!2}
!llvm.module.flags = !{!13, !14, !15, !16, !17, !18, !19}
!llvm.ident = !{!20}

!0 = !DIGlobalVariableExpression(var: !1, expr: !DIExpression())
!1 = distinct !DIGlobalVariable(name: "a", scope: !2, file: !3, line: 12, type: !7, isLocal: false, isDefinition: true, align: 512)
!2 = distinct !DICompileUnit(language: DW_LANG_C11, file: !3, producer: "Debian clang version 19.1.7 (3~deb12u1)", isOptimized: true, runtimeVersion: 0, emissionKind: FullDebug, globals: !4, splitDebugInlining: false, nameTableKind: None)
!3 = !DIFile(filename: "matmul-naive.c", directory: "/src", checksumkind: CSK_MD5, checksum: "2c2a07cfbd04b58e9f32f1708096abab")
!4 = !{!0, !5, !11}
!5 = !DIGlobalVariableExpression(var: !6, expr: !DIExpression())
!6 = distinct !DIGlobalVariable(name: "b", scope: !2, file: !3, line: 12, type: !7, isLocal: false, isDefinition: true, align: 512)
!7 = !DICompositeType(tag: DW_TAG_array_type, baseType: !8, size: 65536, elements: !9)
!8 = !DIBasicType(name: "double", size: 64, encoding: DW_ATE_float)
!9 = !{!10, !10}
!10 = !DISubrange(count: 32)
!11 = !DIGlobalVariableExpression(var: !12, expr: !DIExpression())
!12 = distinct !DIGlobalVariable(name: "c", scope: !2, file: !3, line: 12, type: !7, isLocal: false, isDefinition: true, align: 512)
!13 = !{i32 7, !"Dwarf Version", i32 5}
!14 = !{i32 2, !"Debug Info Version", i32 3}
!15 = !{i32 1, !"wchar_size", i32 4}
!16 = !{i32 8, !"PIC Level", i32 2}
!17 = !{i32 7, !"PIE Level", i32 2}
!18 = !{i32 7, !"uwtable", i32 2}
!19 = !{i32 7, !"debug-info-assignment-tracking", i1 true}
!20 = !{!"Debian clang version 19.1.7 (3~deb12u1)"}
!21 = distinct !DISubprogram(name: "main", scope: !3, file: !3, line: 14, type: !22, scopeLine: 15, flags: DIFlagPrototyped | DIFlagAllCallsDescribed, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !2, retainedNodes: !25)
!22 = !DISubroutineType(types: !23)
!23 = !{!24}
!24 = !DIBasicType(name: "int", size: 32, encoding: DW_ATE_signed)
!25 = !{!26, !28, !31, !34}
!26 = !DILocalVariable(name: "i", scope: !27, file: !3, line: 16, type: !24)
!27 = distinct !DILexicalBlock(scope: !21, file: !3, line: 16, column: 5)
!28 = !DILocalVariable(name: "j", scope: !29, file: !3, line: 17, type: !24)
!29 = distinct !DILexicalBlock(scope: !30, file: !3, line: 17, column: 9)
!30 = distinct !DILexicalBlock(scope: !27, file: !3, line: 16, column: 5)
!31 = !DILocalVariable(name: "sum", scope: !32, file: !3, line: 18, type: !8)
!32 = distinct !DILexicalBlock(scope: !33, file: !3, line: 17, column: 37)
!33 = distinct !DILexicalBlock(scope: !29, file: !3, line: 17, column: 9)
!34 = !DILocalVariable(name: "k", scope: !35, file: !3, line: 19, type: !24)
!35 = distinct !DILexicalBlock(scope: !32, file: !3, line: 19, column: 13)
!36 = !DILocation(line: 0, scope: !27)
!37 = !DILocation(line: 16, column: 5, scope: !27)
!38 = !DILocation(line: 0, scope: !29)
!39 = !DILocation(line: 17, column: 9, scope: !29)
!40 = !DILocation(line: 23, column: 5, scope: !21)
!41 = !DILocation(line: 0, scope: !35)
!42 = !DILocation(line: 0, scope: !32)
!43 = !DILocation(line: 19, column: 13, scope: !35)
!44 = !DILocation(line: 16, column: 29, scope: !30)
!45 = !DILocation(line: 16, column: 23, scope: !30)
!46 = distinct !{!46, !37, !47, !48, !49}
!47 = !DILocation(line: 22, column: 9, scope: !27)
!48 = !{!"llvm.loop.mustprogress"}
!49 = !{!"llvm.loop.unroll.disable"}
!50 = !DILocation(line: 21, column: 13, scope: !32)
!51 = !DILocation(line: 21, column: 21, scope: !32)
!52 = !{!53, !53, i64 0}
!53 = !{!"double", !54, i64 0}
!54 = !{!"omnipotent char", !55, i64 0}
!55 = !{!"Simple C/C++ TBAA"}
!56 = !DILocation(line: 17, column: 33, scope: !33)
!57 = !DILocation(line: 17, column: 27, scope: !33)
!58 = distinct !{!58, !39, !59, !48, !49}
!59 = !DILocation(line: 22, column: 9, scope: !29)
!60 = !DILocation(line: 20, column: 24, scope: !61)
!61 = distinct !DILexicalBlock(scope: !35, file: !3, line: 19, column: 13)
!62 = !DILocation(line: 20, column: 34, scope: !61)
!63 = !DILocation(line: 20, column: 21, scope: !61)
!64 = !DILocation(line: 19, column: 37, scope: !61)
!65 = !DILocation(line: 19, column: 31, scope: !61)
!66 = distinct !{!66, !43, !67, !48, !49}
!67 = !DILocation(line: 20, column: 40, scope: !35)
