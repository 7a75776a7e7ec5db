source_filename = "parallel.c"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

%struct.ident_t = type { i32, i32, i32, i32, ptr }

@0 = private unnamed_addr constant [4 x i8] c";;;\00", align 1
@1 = private unnamed_addr constant %struct.ident_t { i32 0, i32 2, i32 0, i32 3, ptr @0 }, align 8
@lock = common global [8 x i32] zeroinitializer, align 8

define void @region(ptr %x) {
entry:
  call void (ptr, i32, ptr, ...) @__kmpc_fork_call(ptr @1, i32 1, ptr @body, ptr %x)
  ret void
}

define internal void @body(ptr noalias %gtid, ptr noalias %btid, ptr %x) {
entry:
  %last = alloca i32, align 4
  %0 = load i32, ptr %gtid, align 4
  call void @__kmpc_for_static_init_4(ptr @1, i32 %0, i32 34, ptr %last, ptr %last, ptr %last, ptr %last, i32 1, i32 8)
  call void @__kmpc_for_static_fini(ptr @1, i32 %0)
  call void @__kmpc_barrier(ptr @1, i32 %0)
  call void @__kmpc_dispatch_init_8u(ptr @1, i32 %0, i32 35, i64 0, i64 99, i64 1, i64 7)
  br label %next

next:                                             ; preds = %next, %entry
  %1 = phi i64 [ 3, %entry ], [ 4, %next ]
  %more = call i32 @__kmpc_dispatch_next_8u(ptr @1, i32 %0, ptr %last, ptr %last, ptr %last, ptr %last)
  %go = icmp eq i32 %more, 0
  br i1 %go, label %done, label %next

done:                                             ; preds = %next
  call void @__kmpc_critical(ptr @1, i32 %0, ptr @lock)
  call void @__kmpc_end_critical(ptr @1, i32 %0, ptr @lock)
  %way = call i32 @__kmpc_reduce_nowait(ptr @1, i32 %0, i32 1, i64 8, ptr %x, ptr @body, ptr @lock)
  call void @__kmpc_end_reduce_nowait(ptr @1, i32 %0, ptr @lock)
  %task = call ptr @__kmpc_omp_task_alloc(ptr @1, i32 %0, i32 1, i64 40, i64 8, ptr @errand)
  %ran = call i32 @__kmpc_omp_task(ptr @1, i32 %0, ptr %task)
  %waited = call i32 @__kmpc_omp_taskwait(ptr @1, i32 %0)
  ret void
}

define internal i32 @errand(i32 %0, ptr %1) {
  %3 = load i64, ptr %1, align 8
  ret i32 0
}

declare void @__kmpc_fork_call(ptr, i32, ptr, ...)
declare void @__kmpc_for_static_init_4(ptr, i32, i32, ptr, ptr, ptr, ptr, i32, i32)
declare void @__kmpc_for_static_fini(ptr, i32)
declare void @__kmpc_barrier(ptr, i32)
declare void @__kmpc_dispatch_init_8u(ptr, i32, i32, i64, i64, i64, i64)
declare i32 @__kmpc_dispatch_next_8u(ptr, i32, ptr, ptr, ptr, ptr)
declare void @__kmpc_critical(ptr, i32, ptr)
declare void @__kmpc_end_critical(ptr, i32, ptr)
declare i32 @__kmpc_reduce_nowait(ptr, i32, i32, i64, ptr, ptr, ptr)
declare void @__kmpc_end_reduce_nowait(ptr, i32, ptr)
declare ptr @__kmpc_omp_task_alloc(ptr, i32, i32, i64, i64, ptr)
declare i32 @__kmpc_omp_task(ptr, i32, ptr)
declare i32 @__kmpc_omp_taskwait(ptr, i32)
