; ModuleID = 'typed.cc'
source_filename = "typed.cc"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

%"class.a b" = type { i8*, <{ i16, i32 }>, [3 x x86_fp80] }

@kept = global i32* null, align 8
@llvm.used = appending global [1 x i8*] [i8* bitcast (i32** @kept to i8*)], section "llvm.metadata"
@"odd name" = internal global %"class.a b" zeroinitializer, comdat($group), align 16

$group = comdat any

define i8* @make(i64 %size, %"class.a b"* %object) #0 personality i8* bitcast (i32 (...)* @__gxx_personality_v0 to i8*) {
entry:
  %part = getelementptr inbounds %"class.a b", %"class.a b"* %object, i64 0, i32 1, i32 1
  %old = load i32, i32* %part, align 1
  %new = invoke noalias nonnull i8* @_Znwm(i64 %size)
          to label %done unwind label %pad

done:                                             ; preds = %entry, %again
  %p = phi i8* [ %new, %entry ], [ %q, %again ]
  %more = icmp eq i32 %old, 3
  br i1 %more, label %again, label %out

again:                                            ; preds = %done
  %q = tail call i8* @realloc(i8* %p, i64 24)
  store i8* %q, i8** getelementptr inbounds (%"class.a b", %"class.a b"* @"odd name", i64 0, i32 0), align 16
  br label %done

pad:                                              ; preds = %entry
  %caught = landingpad { i8*, i32 }
          cleanup
          catch i8* null
  %wide = load x86_fp80, x86_fp80* getelementptr inbounds (%"class.a b", %"class.a b"* @"odd name", i64 0, i32 2, i64 1), align 16
  call void @__clang_call_terminate(i8* null) #1
  unreachable

out:                                              ; preds = %done
  ret i8* %p
}

define void @chain(i8* %x) {
  %1 = load volatile i8, i8* %x, align 1
  musttail call void @chain(i8* %x)
  ret void
}

declare i32 @__gxx_personality_v0(...)
declare noalias nonnull i8* @_Znwm(i64)
declare i8* @realloc(i8*, i64)
declare void @__clang_call_terminate(i8*)

attributes #0 = { readonly uwtable }
attributes #1 = { noreturn nounwind }

!llvm.ident = !{!0}

!0 = !{!"Debian clang version 14.0.6"}
