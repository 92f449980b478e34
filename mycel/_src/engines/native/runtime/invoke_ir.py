"""Calls of programs from Python, as LLVM IR: from buffers to a buffer or a tuple of them.

If a program's status is not 0 when a run ends, `mycel_invoke` and `mycel_repeat` raise an error:
the one that `outside_hook` makes of an index's record, or that of a signal's handler.
"""

from __future__ import annotations

__all__ = ["INVOKE"]

INVOKE = r"""
define ptr @mycel_invoke(ptr %self, ptr %args, i64 %count) {
entry:
  %program = call ptr @PyCapsule_GetPointer(ptr %self, ptr null)
  %inputs = load i64, ptr %program
  %w1 = getelementptr i64, ptr %program, i64 1
  %outputs = load i64, ptr %w1
  %w2 = getelementptr i64, ptr %program, i64 2
  %sizes = load ptr, ptr %w2
  %w3 = getelementptr i64, ptr %program, i64 3
  %aliases = load ptr, ptr %w3
  %w4 = getelementptr i64, ptr %program, i64 4
  %relocations = load i64, ptr %w4
  %w5 = getelementptr i64, ptr %program, i64 5
  %table = load ptr, ptr %w5
  %w6 = getelementptr i64, ptr %program, i64 6
  %arena_bytes = load i64, ptr %w6
  %w7 = getelementptr i64, ptr %program, i64 7
  %steps = load i64, ptr %w7
  %w8 = getelementptr i64, ptr %program, i64 8
  %step_table = load ptr, ptr %w8
  %w9 = getelementptr i64, ptr %program, i64 9
  %heavy = load i64, ptr %w9
  %w10 = getelementptr i64, ptr %program, i64 10
  %mutex = load ptr, ptr %w10
  %w11 = getelementptr i64, ptr %program, i64 11
  %same = icmp eq i64 %count, %inputs
  %log = load ptr, ptr @log
  %logs = icmp ne ptr %log, null
  br i1 %same, label %watch, label %wrong
wrong:
  %kind = load ptr, ptr @PyExc_TypeError
  call void @PyErr_SetString(ptr %kind, ptr @wrong_count)
  ret ptr null
watch:
  br i1 %logs, label %clock, label %prepare
clock:
  %hook = load ptr, ptr @hook
  %hooked = icmp ne ptr %hook, null
  br i1 %hooked, label %tell_hook, label %begin_run
tell_hook:
  call void %hook()
  br label %begin_run
begin_run:
  %t0 = call i64 @now()
  br label %prepare
prepare:
  %begun = phi i64 [ 0, %watch ], [ %t0, %begin_run ]
  %io = add i64 %inputs, %outputs
  %total = add i64 %io, 1
  %bases = alloca ptr, i64 %total
  %results = alloca ptr, i64 %outputs
  %no_inputs = icmp eq i64 %inputs, 0
  br i1 %no_inputs, label %make, label %input
input:
  %i = phi i64 [ 0, %prepare ], [ %i1, %got ]
  %ai = getelementptr ptr, ptr %args, i64 %i
  %capsule = load ptr, ptr %ai
  %data = call ptr @PyCapsule_GetPointer(ptr %capsule, ptr null)
  %bad = icmp eq ptr %data, null
  br i1 %bad, label %fail, label %got
got:
  %bi = getelementptr ptr, ptr %bases, i64 %i
  store ptr %data, ptr %bi
  %i1 = add i64 %i, 1
  %more_in = icmp ult i64 %i1, %inputs
  br i1 %more_in, label %input, label %make
fail:
  ret ptr null
make:
  %no_outputs = icmp eq i64 %outputs, 0
  br i1 %no_outputs, label %arena, label %output
output:
  %o = phi i64 [ 0, %make ], [ %o1, %placed ]
  %pa = getelementptr i64, ptr %aliases, i64 %o
  %alias = load i64, ptr %pa
  %new = icmp slt i64 %alias, 0
  br i1 %new, label %create, label %share
share:
  %as = getelementptr ptr, ptr %args, i64 %alias
  %shared = load ptr, ptr %as
  call void @Py_IncRef(ptr %shared)
  br label %placed
create:
  %ps = getelementptr i64, ptr %sizes, i64 %o
  %bytes = load i64, ptr %ps
  %created = call ptr @new_capsule(i64 %bytes)
  %no_memory = icmp eq ptr %created, null
  br i1 %no_memory, label %undo_next, label %placed
placed:
  %result = phi ptr [ %shared, %share ], [ %created, %create ]
  %pr = getelementptr ptr, ptr %results, i64 %o
  store ptr %result, ptr %pr
  %odata = call ptr @PyCapsule_GetPointer(ptr %result, ptr null)
  %ob = add i64 %inputs, %o
  %pb = getelementptr ptr, ptr %bases, i64 %ob
  store ptr %odata, ptr %pb
  %o1 = add i64 %o, 1
  %more_out = icmp ult i64 %o1, %outputs
  br i1 %more_out, label %output, label %arena
undo_next:
  %u = phi i64 [ %o, %create ], [ %outputs, %no_arena ], [ %u1, %undo_one ]
  %none_left = icmp eq i64 %u, 0
  br i1 %none_left, label %fail, label %undo_one
undo_one:
  %u1 = sub i64 %u, 1
  %pu = getelementptr ptr, ptr %results, i64 %u1
  %ru = load ptr, ptr %pu
  call void @Py_DecRef(ptr %ru)
  br label %undo_next
arena:
  %needs = icmp ne i64 %arena_bytes, 0
  br i1 %needs, label %take, label %ready
take:
  %kept = load ptr, ptr %w11
  %have = icmp ne ptr %kept, null
  br i1 %have, label %reuse, label %fresh
reuse:
  store ptr null, ptr %w11
  br label %ready
fresh:
  %memory = call ptr @allocate(i64 %arena_bytes)
  %taken = icmp ne ptr %memory, null
  br i1 %taken, label %ready, label %no_arena
no_arena:
  %e = call ptr @PyErr_NoMemory()
  br label %undo_next
ready:
  %arena_data = phi ptr [ null, %arena ], [ %kept, %reuse ], [ %memory, %fresh ]
  %pba = getelementptr ptr, ptr %bases, i64 %io
  store ptr %arena_data, ptr %pba
  %is_heavy = icmp ne i64 %heavy, 0
  br i1 %is_heavy, label %unlock, label %patch
unlock:
  %thread = call ptr @PyEval_SaveThread()
  %l = call i32 @pthread_mutex_lock(ptr %mutex)
  br label %patch
patch:
  %state = phi ptr [ null, %ready ], [ %thread, %unlock ]
  %no_relocations = icmp eq i64 %relocations, 0
  br i1 %no_relocations, label %run, label %relocate
relocate:
  %r = phi i64 [ 0, %patch ], [ %r1, %relocate ]
  %r3 = mul i64 %r, 3
  %pr0 = getelementptr i64, ptr %table, i64 %r3
  %where = load ptr, ptr %pr0
  %r31 = add i64 %r3, 1
  %pr1 = getelementptr i64, ptr %table, i64 %r31
  %base = load i64, ptr %pr1
  %r32 = add i64 %r3, 2
  %pr2 = getelementptr i64, ptr %table, i64 %r32
  %offset = load i64, ptr %pr2
  %pbase = getelementptr ptr, ptr %bases, i64 %base
  %start = load ptr, ptr %pbase
  %target = getelementptr i8, ptr %start, i64 %offset
  store ptr %target, ptr %where
  %r1 = add i64 %r, 1
  %more_r = icmp ult i64 %r1, %relocations
  br i1 %more_r, label %relocate, label %run
run:
  %status = getelementptr i64, ptr %program, i64 13
  call void @mycel_run(ptr %step_table, i64 %steps, ptr %status)
  %code = load i64, ptr %status
  %outside = icmp ugt i64 %code, 3
  br i1 %outside, label %take_status, label %over, !prof !0
take_status:
  %noted = call i64 @taken(ptr %status, i64 %code)
  br label %over
over:
  %index = phi i64 [ 0, %run ], [ %noted, %take_status ]
  br i1 %is_heavy, label %lock, label %finish
lock:
  %ul = call i32 @pthread_mutex_unlock(ptr %mutex)
  call void @PyEval_RestoreThread(ptr %state)
  br label %finish
finish:
  br i1 %needs, label %give, label %answer
give:
  %slot = load ptr, ptr %w11
  %vacant = icmp eq ptr %slot, null
  %w12 = getelementptr i64, ptr %program, i64 12
  %keeps = load i64, ptr %w12
  %wanted = icmp ne i64 %keeps, 0
  %kept_on = and i1 %vacant, %wanted
  br i1 %kept_on, label %keep, label %drop
keep:
  store ptr %arena_data, ptr %w11
  br label %answer
drop:
  call void @release(ptr %arena_data)
  br label %answer
answer:
  br i1 %logs, label %tell, label %told
tell:
  %t1 = call i64 @now()
  call void @note(ptr %log, i64 1, ptr %program, i64 %begun, i64 %t1)
  br label %told
told:
  br i1 %outside, label %fail_next, label %tell_results, !prof !0
fail_next:
  %d = phi i64 [ %outputs, %told ], [ %d1, %fail_one ]
  %all_dropped = icmp eq i64 %d, 0
  br i1 %all_dropped, label %fail_raise, label %fail_one
fail_one:
  %d1 = sub i64 %d, 1
  %pd = getelementptr ptr, ptr %results, i64 %d1
  %rd = load ptr, ptr %pd
  call void @Py_DecRef(ptr %rd)
  br label %fail_next
fail_raise:
  call void @raise_taken(ptr %program, i64 %code, i64 %index)
  ret ptr null
tell_results:
  %single = icmp eq i64 %outputs, 1
  br i1 %single, label %one, label %several
one:
  %first = load ptr, ptr %results
  ret ptr %first
several:
  %tuple = call ptr @PyTuple_New(i64 %outputs)
  br i1 %no_outputs, label %end, label %pack
pack:
  %k = phi i64 [ 0, %several ], [ %k1, %pack ]
  %pk = getelementptr ptr, ptr %results, i64 %k
  %rk = load ptr, ptr %pk
  %ignored = call i32 @PyTuple_SetItem(ptr %tuple, i64 %k, ptr %rk)
  %k1 = add i64 %k, 1
  %more_k = icmp ult i64 %k1, %outputs
  br i1 %more_k, label %pack, label %end
end:
  ret ptr %tuple
}
"""
