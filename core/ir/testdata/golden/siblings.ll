; ModuleID = 'siblings.c'
source_filename = "siblings.c"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

@depth = dso_local global i64 0, align 8

; It shares the return with the end of the recursion.
define dso_local i32 @even(i64 noundef %n) local_unnamed_addr {
entry:
  %0 = load i64, ptr @depth, align 8
  %inc = add nsw i64 %0, 1
  store i64 %inc, ptr @depth, align 8
  %cmp = icmp eq i64 %n, 0
  br i1 %cmp, label %done, label %more

more:                                             ; preds = %entry
  %sub = add nsw i64 %n, -1
  %call = tail call i32 @odd(i64 noundef %sub)
  br label %done

done:                                             ; preds = %entry, %more
  %result = phi i32 [ %call, %more ], [ 1, %entry ]
  ret i32 %result
}

; All that came to the return are such calls, and values have numbers.
define i32 @odd(i64 %0) {
  %2 = icmp eq i64 %0, 0
  br i1 %2, label %3, label %5

3:                                                ; preds = %1
  %4 = tail call i32 @zero()
  br label %7

5:                                                ; preds = %1
  %6 = tail call i32 @even(i64 %0)
  br label %7

7:                                                ; preds = %5, %3
  %8 = phi i32 [ %4, %3 ], [ %6, %5 ]
  ret i32 %8
}

; Right before the return, behind what makes no code.
define void @step(ptr %pc) {
  %next = load ptr, ptr %pc, align 8
  tail call void %next(ptr %pc)
  call void @llvm.assume(i1 true)
  ret void
}

; No sibling calls: another value is returned, there is something to tell behind
; the call, it is no tail call, something is done behind it.
define ptr @others(i32 %x) {
  switch i32 %x, label %out [
    i32 1, label %one
    i32 2, label %two
    i32 3, label %three
  ]

one:                                              ; preds = %0
  %a = tail call i32 @zero()
  br label %out

two:                                              ; preds = %0
  %b = tail call ptr @malloc(i64 8)
  br label %out

three:                                            ; preds = %0
  %c = call ptr @any()
  br label %out

out:                                              ; preds = %three, %two, %one, %0
  %r = phi ptr [ null, %0 ], [ null, %one ], [ %b, %two ], [ %c, %three ]
  ret ptr %r
}

define i32 @after() {
  %a = tail call i32 @zero()
  br label %out

out:
  %b = add i32 %a, 1
  ret i32 %b
}

define void @nothing(i1 %x) {
  br i1 %x, label %some, label %out

some:                                             ; preds = %0
  %a = tail call i32 @zero()
  br label %out

out:                                              ; preds = %some, %0
  ret void
}

declare i32 @zero()
declare ptr @any()
declare ptr @malloc(i64)
declare void @llvm.assume(i1)

