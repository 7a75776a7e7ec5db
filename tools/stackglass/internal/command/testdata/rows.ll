; ModuleID = 'rows.c'
source_filename = "rows.c"
target triple = "x86_64-pc-linux-gnu"

define double @sum(ptr %a, i64 %n) {
entry:
  br label %loop

loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %s = phi double [ 0.0, %entry ], [ %more, %loop ]
  %at = getelementptr double, ptr %a, i64 %i
  %v = load double, ptr %at, align 8
  %more = fadd double %s, %v
  %next = add i64 %i, 1
  %done = icmp eq i64 %next, %n
  br i1 %done, label %exit, label %loop, !prof !1

exit:
  ret double %more
}

define i32 @main(i32 %argc, ptr %argv) !prof !0 {
entry:
  %rows = alloca [100 x double], align 16
  %some = icmp sgt i32 %argc, 1
  br i1 %some, label %row, label %out, !prof !2

row:
  %r = phi i32 [ 0, %entry ], [ %up, %row ]
  %s = call double @sum(ptr %rows, i64 100)
  %up = add i32 %r, 1
  %all = icmp eq i32 %up, 50
  br i1 %all, label %out, label %row, !prof !3

out:
  ret i32 0
}

!llvm.ident = !{!4}
!0 = !{!"function_entry_count", i64 1}
!1 = !{!"branch_weights", i32 50, i32 4950}
!2 = !{!"branch_weights", i32 1, i32 0}
!3 = !{!"branch_weights", i32 1, i32 49}
!4 = !{!"clang version 19.1.7"}
