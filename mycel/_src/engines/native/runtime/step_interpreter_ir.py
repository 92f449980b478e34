"""The step interpreter: runs tables of steps on threads, and has the non-kernel steps, in LLVM IR.

A step is a quadruple (function, arguments, extent, grain): the function runs ``f(arguments, begin,
end)`` over parts of [0, extent), on several threads where there are at least two grains of work.
Control flow is a step whose arguments name other tables.
"""

from __future__ import annotations

__all__ = ["STEPS"]

# Grains after which a signal is looked for on the way: some 10 milliseconds of one core.
PIECES = 512

STEPS = r"""
define void @mycel_set_threads(i32 %n) {
  store i32 %n, ptr @threads
  ret void
}

; what one thread did of a step, into the log
define internal void @note_part(ptr %args, i64 %from, i64 %to) {
  %log = load ptr, ptr @log
  %logs = icmp ne ptr %log, null
  br i1 %logs, label %tell, label %done
tell:
  call void @note(ptr %log, i64 2, ptr %args, i64 %from, i64 %to)
  br label %done
done:
  ret void
}

; [first, first + length) of a step on `n` threads; there are `fit` grains
define internal void @shared(ptr %step, i64 %first, i64 %length, i64 %n, i64 %fit) {
  %f = load ptr, ptr %step
  %p1 = getelementptr i64, ptr %step, i64 1
  %args = load ptr, ptr %p1
  %log = load ptr, ptr @log
  %logs = icmp ne ptr %log, null
  %note = select i1 %logs, ptr @note_part, ptr null
  call void @pool_share(ptr %f, ptr %args, i64 %first, i64 %length, i64 %n, i64 %fit, ptr %note)
  ret void
}

; a step of more than `PIECES` grains, so many at a time, as long as nobody ends the run
define internal void @mycel_pieces(ptr %step, ptr %status) {
entry:
  %f = load ptr, ptr %step
  %p1 = getelementptr i64, ptr %step, i64 1
  %args = load ptr, ptr %p1
  %p2 = getelementptr i64, ptr %step, i64 2
  %extent = load i64, ptr %p2
  %p3 = getelementptr i64, ptr %step, i64 3
  %grain = load i64, ptr %p3
  %most = mul i64 %grain, PIECES
  %all32 = load i32, ptr @threads
  %all = zext i32 %all32 to i64
  br label %loop
loop:
  %first = phi i64 [ 0, %entry ], [ %end, %on ]
  %rest = sub i64 %extent, %first
  %less = icmp ult i64 %rest, %most
  %length = select i1 %less, i64 %rest, i64 %most
  %end = add i64 %first, %length
  %fit = udiv i64 %length, %grain
  %few = icmp ult i64 %fit, %all
  %n = select i1 %few, i64 %fit, i64 %all
  %many = icmp ugt i64 %n, 1
  br i1 %many, label %several, label %one
several:
  call void @shared(ptr %step, i64 %first, i64 %length, i64 %n, i64 %fit)
  br label %ask
one:
  call void %f(ptr %args, i64 %first, i64 %end)
  br label %ask
ask:
  %stop = call i1 @mycel_listen(ptr %status)
  br i1 %stop, label %done, label %on
on:
  %more = icmp ult i64 %end, %extent
  br i1 %more, label %loop, label %done
done:
  ret void
}

; the end of a round: every 64th asks for signals, and sets the status to 4 where one raised
define void @mycel_round(ptr %status) alwaysinline {
  %n = load i64, ptr @rounds
  %n1 = sub i64 %n, 1
  store i64 %n1, ptr @rounds
  %goes = icmp sgt i64 %n1, 0
  br i1 %goes, label %done, label %ask, !prof !1
ask:
  store i64 64, ptr @rounds
  %stop = call i1 @mycel_interrupted()
  br i1 %stop, label %set, label %done
set:
  store i64 4, ptr %status
  br label %done
done:
  ret void
}

; steps from the first on, until `status` is not 0; then only what frees tapes, and loops, which end at once
define void @mycel_run(ptr %steps, i64 %count, ptr %status) {
entry:
  %log = load ptr, ptr @log
  %logs = icmp ne ptr %log, null
  %empty = icmp eq i64 %count, 0
  br i1 %empty, label %end, label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i1, %on ]
  %at = shl i64 %i, 2
  %step = getelementptr i64, ptr %steps, i64 %at
  %f = load ptr, ptr %step
  %p1 = getelementptr i64, ptr %step, i64 1
  %args = load ptr, ptr %p1
  %p2 = getelementptr i64, ptr %step, i64 2
  %extent = load i64, ptr %p2
  %p3 = getelementptr i64, ptr %step, i64 3
  %grain = load i64, ptr %p3
  %failed = load i64, ptr %status
  %broken = icmp ne i64 %failed, 0
  br i1 %broken, label %drain, label %sound, !prof !0
drain:
  %is_while = icmp eq ptr %f, @mycel_while
  %is_begin = icmp eq ptr %f, @mycel_tape_begin
  %is_pop = icmp eq ptr %f, @mycel_tape_pop
  %either = or i1 %is_while, %is_begin
  %frees = or i1 %either, %is_pop
  br i1 %frees, label %sound, label %on
sound:
  br i1 %logs, label %before, label %start
before:
  %t0 = call i64 @now()
  br label %start
start:
  %begun = phi i64 [ 0, %sound ], [ %t0, %before ]
  %serial = icmp eq i64 %grain, 0
  br i1 %serial, label %one, label %maybe
maybe:
  %all32 = load i32, ptr @threads
  %all = zext i32 %all32 to i64
  %fit = udiv i64 %extent, %grain
  %huge = icmp ugt i64 %fit, PIECES
  br i1 %huge, label %pieces, label %share, !prof !0
pieces:
  call void @mycel_pieces(ptr %step, ptr %status)
  br label %next
share:
  %few = icmp ult i64 %fit, %all
  %n = select i1 %few, i64 %fit, i64 %all
  %many = icmp ugt i64 %n, 1
  br i1 %many, label %several, label %one
several:
  call void @shared(ptr %step, i64 0, i64 %extent, i64 %n, i64 %fit)
  br label %long
one:
  %work = phi i64 [ 0, %start ], [ %fit, %share ]
  call void %f(ptr %args, i64 0, i64 %extent)
  %is_dense = icmp eq ptr %f, @mycel_dense
  %is_work = icmp ne i64 %work, 0
  %is_long = or i1 %is_dense, %is_work
  br i1 %is_long, label %long, label %next
long:
  %stop = call i1 @mycel_listen(ptr %status)
  br label %next
next:
  br i1 %logs, label %after, label %on
after:
  %t1 = call i64 @now()
  call void @note(ptr %log, i64 0, ptr %args, i64 %begun, i64 %t1)
  br label %on
on:
  %i1 = add i64 %i, 1
  %more = icmp ult i64 %i1, %count
  br i1 %more, label %loop, label %end
end:
  ret void
}

; words: target, source, bytes; the range is of pages of 4096
define void @mycel_copy(ptr %args, i64 %begin, i64 %end) {
  %to = load ptr, ptr %args
  %p1 = getelementptr i64, ptr %args, i64 1
  %from = load ptr, ptr %p1
  %p2 = getelementptr i64, ptr %args, i64 2
  %bytes = load i64, ptr %p2
  %first = shl i64 %begin, 12
  %reach = shl i64 %end, 12
  %less = icmp ult i64 %reach, %bytes
  %stop = select i1 %less, i64 %reach, i64 %bytes
  %length = sub i64 %stop, %first
  %target = getelementptr i8, ptr %to, i64 %first
  %source = getelementptr i8, ptr %from, i64 %first
  call void @llvm.memcpy.p0.p0.i64(ptr %target, ptr %source, i64 %length, i1 false)
  ret void
}

; words: execute, set_handle, primitive, stream, count, exec_args, set_threads or 0, threads, then (memory, pointer)
; for each;
; the number of threads belongs to the calling thread, and must be that for which the primitive was made
define void @mycel_dense(ptr %args, i64 %begin, i64 %end) {
entry:
  %execute = load ptr, ptr %args
  %p1 = getelementptr i64, ptr %args, i64 1
  %set = load ptr, ptr %p1
  %p2 = getelementptr i64, ptr %args, i64 2
  %primitive = load ptr, ptr %p2
  %p3 = getelementptr i64, ptr %args, i64 3
  %stream = load ptr, ptr %p3
  %p4 = getelementptr i64, ptr %args, i64 4
  %count = load i64, ptr %p4
  %p5 = getelementptr i64, ptr %args, i64 5
  %list = load ptr, ptr %p5
  %p6 = getelementptr i64, ptr %args, i64 6
  %set_threads = load ptr, ptr %p6
  %alone = icmp eq ptr %set_threads, null
  br i1 %alone, label %handles, label %team
team:
  %p7 = getelementptr i64, ptr %args, i64 7
  %threads = load i64, ptr %p7
  %threads32 = trunc i64 %threads to i32
  call void %set_threads(i32 %threads32)
  br label %handles
handles:
  br label %loop
loop:
  %i = phi i64 [ 0, %handles ], [ %i1, %loop ]
  %i2 = shl i64 %i, 1
  %k = add i64 %i2, 8
  %pm = getelementptr i64, ptr %args, i64 %k
  %memory = load ptr, ptr %pm
  %k1 = add i64 %k, 1
  %pd = getelementptr i64, ptr %args, i64 %k1
  %data = load ptr, ptr %pd
  %r = call i32 %set(ptr %memory, ptr %data)
  %i1 = add i64 %i, 1
  %more = icmp ult i64 %i1, %count
  br i1 %more, label %loop, label %go
go:
  %n = trunc i64 %count to i32
  %status = call i32 %execute(ptr %primitive, ptr %stream, i32 %n, ptr %list)
  ret void
}

; words: predicate, then-steps, then-count, else-steps, else-count, status
define void @mycel_cond(ptr %args, i64 %begin, i64 %end) {
  %pred = load ptr, ptr %args
  %v = load i8, ptr %pred
  %truth = icmp ne i8 %v, 0
  %base = select i1 %truth, i64 1, i64 3
  %p = getelementptr i64, ptr %args, i64 %base
  %steps = load ptr, ptr %p
  %base1 = add i64 %base, 1
  %q = getelementptr i64, ptr %args, i64 %base1
  %count = load i64, ptr %q
  %ps = getelementptr i64, ptr %args, i64 5
  %status = load ptr, ptr %ps
  call void @mycel_run(ptr %steps, i64 %count, ptr %status)
  ret void
}

; words: predicate, test-steps, test-count, body-steps, body-count, status
define void @mycel_while(ptr %args, i64 %begin, i64 %end) {
entry:
  %pred = load ptr, ptr %args
  %p1 = getelementptr i64, ptr %args, i64 1
  %test = load ptr, ptr %p1
  %p2 = getelementptr i64, ptr %args, i64 2
  %tests = load i64, ptr %p2
  %p3 = getelementptr i64, ptr %args, i64 3
  %body = load ptr, ptr %p3
  %p4 = getelementptr i64, ptr %args, i64 4
  %bodies = load i64, ptr %p4
  %p5 = getelementptr i64, ptr %args, i64 5
  %status = load ptr, ptr %p5
  br label %check
check:
  call void @mycel_run(ptr %test, i64 %tests, ptr %status)
  %v = load i8, ptr %pred
  %truth = icmp ne i8 %v, 0
  %failed = load i64, ptr %status
  %sound = icmp eq i64 %failed, 0
  %goes = and i1 %truth, %sound
  br i1 %goes, label %go, label %end0
go:
  call void @mycel_run(ptr %body, i64 %bodies, ptr %status)
  call void @mycel_round(ptr %status)
  br label %check
end0:
  ret void
}
""".replace("PIECES", str(PIECES))
