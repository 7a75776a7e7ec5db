; ModuleID = 'typed.cc'
source_filename = "typed.cc"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

%"class.a b" = type { i8*, <{ i16, i32 }>, [3 x x86_fp80] }

@kept = global i32* null, align 8
@llvm.used = appending global [1 x i8*] [i8* bitcast (i32** @kept to i8*)], section "llvm.metadata"
@"odd name" = internal global %"class.a b" zeroinitializer, comdat($group), align 16

$group = comdat any

define i8* @make(i64 %size, %"class.a b"* %object) #0 personality i8* bitcast (i32 (...)* @__gxx_personality_v0 to i8*) !dbg !5 {
entry:
  %kept.addr = alloca i32*, align 8
  call void @llvm.dbg.declare(metadata i32** %kept.addr, metadata !7, metadata !DIExpression()), !dbg !8
  call void @llvm.dbg.value(metadata %"class.a b"* %object, metadata !6, metadata !DIExpression()), !dbg !8
  call void @llvm.dbg.value(metadata i64 %size, metadata !7, metadata !DIExpression(DW_OP_plus_uconst, 1)), !dbg !8
  %held = load i32*, i32** %kept.addr, align 8
  store i32 1, i32* %held, align 4
  %part = getelementptr inbounds %"class.a b", %"class.a b"* %object, i64 0, i32 1, i32 1
  %old = load i32, i32* %part, align 1
  %new = invoke noalias nonnull i8* @_Znwm(i64 %size)
          to label %done unwind label %pad, !dbg !8

done:                                             ; preds = %entry, %again
  %p = phi i8* [ %new, %entry ], [ %q, %again ]
  %more = icmp eq i32 %old, 3
  br i1 %more, label %again, label %out

again:                                            ; preds = %done
  %q = tail call i8* @realloc(i8* %p, i64 24), !dbg !8
  store i8* %q, i8** getelementptr inbounds (%"class.a b", %"class.a b"* @"odd name", i64 0, i32 0), align 16
  br label %done

pad:                                              ; preds = %entry
  %caught = landingpad { i8*, i32 }
          cleanup
          catch i8* null
  %wide = load x86_fp80, x86_fp80* getelementptr inbounds (%"class.a b", %"class.a b"* @"odd name", i64 0, i32 2, i64 1), align 16
  call void @__clang_call_terminate(i8* null) #1, !dbg !8
  unreachable

out:                                              ; preds = %done
  ret i8* %p
}

define void @chain(i8* %x) {
  %1 = load volatile i8, i8* %x, align 1
  musttail call void @chain(i8* %x)
  ret void
}

define i8* @either(i1 %c, i8* %x) {
  br i1 %c, label %1, label %3

1:                                                ; preds = %0
  %2 = tail call i8* (i8*, ...) @any(i8* %x)
  call void @llvm.dbg.value(metadata i8* %2, metadata !7, metadata !DIExpression()), !dbg !8
  br label %5

3:                                                ; preds = %0
  %4 = tail call i8* @either(i1 true, i8* %x)
  br label %5

5:                                                ; preds = %3, %1
  %6 = phi i8* [ %2, %1 ], [ %4, %3 ]
  ret i8* %6
}

declare void @llvm.dbg.declare(metadata, metadata, metadata)
declare void @llvm.dbg.value(metadata, metadata, metadata)
declare i32 @__gxx_personality_v0(...)
declare noalias nonnull i8* @_Znwm(i64)
declare i8* @any(i8*, ...)
declare i8* @realloc(i8*, i64)
declare void @__clang_call_terminate(i8*)

attributes #0 = { readonly uwtable }
attributes #1 = { noreturn nounwind }

!llvm.ident = !{!0}
!llvm.module.flags = !{!1}
!llvm.dbg.cu = !{!2}

!0 = !{!"Debian clang version 14.0.6"}
!1 = !{i32 2, !"Debug Info Version", i32 3}
!2 = distinct !DICompileUnit(language: DW_LANG_C_plus_plus, file: !3, producer: "clang", isOptimized: true, runtimeVersion: 0, emissionKind: FullDebug)
!3 = !DIFile(filename: "typed.cc", directory: "/src")
!4 = !DISubroutineType(types: !9)
!5 = distinct !DISubprogram(name: "make<int>", linkageName: "make", scope: !3, file: !3, line: 3, type: !4, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !2)
!6 = !DILocalVariable(name: "it", arg: 2, scope: !5, file: !3, line: 3, type: !10)
!7 = !DILocalVariable(name: "held, or line: 7", scope: !5, file: !3, line: 4, type: !10)
!8 = !DILocation(line: 5, column: 2, scope: !5)
!9 = !{null}
!10 = !DIBasicType(name: "int", size: 32, encoding: DW_ATE_signed)
