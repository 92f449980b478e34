"""The fixed part of every native program, as LLVM IR: memory, the step machine, and the door from Python.

Buffers are CPython capsules around 64-byte aligned memory, which `memory_ir` allocates.

A program is a table of 64-bit words (`PROGRAM` names them), built by Python. Its steps are quadruples (function, arguments, extent,
grain): the function runs ``f(arguments, begin, end)`` over parts of [0, extent), on several threads where there are at least two grains of
work. `relocations` are triples (address of a word, base number, offset): before a run the word becomes base + offset, where bases are the
inputs, then the outputs, then the arena. So kernels find addresses and sizes in their argument words, and control flow is a step whose
arguments name other step tables. While a log is set (`mycel_log`: its room, its length, then records of `RECORD` words), what happens adds (what, key, begin, end,
thread): 0 a step and 2 a thread's part of one, by their arguments; 1 a run of a program, by its table; 3 memory taken and 4 given back, by its address, with its bytes for
an end. Times are nanoseconds of the monotonic clock.

The word `status` is 0 while all is well. A kernel that meets an index outside of what it names stores the address of a record there, whose first word is the index (`Site`); what else
ends a run stores a small number, which Python reads. Then no further step of the run begins, except those that free tapes; and `mycel_invoke` and `mycel_repeat` raise what `outside_hook` makes
of the record. It belongs to the call: one thread at a time runs a program, under Python's lock or the program's mutex.

The word `arena` keeps the arena of the last run for the next, where `keeps` says so; a run that finds none takes its own.
"""

from __future__ import annotations

__all__ = ["PROGRAM", "RECORD", "RUNTIME", "RUNTIME_SYMBOLS"]

RECORD = 5

PROGRAM = (
    "inputs", "outputs", "output_bytes", "output_alias", "relocations", "relocation_table",
    "arena_bytes", "steps", "step_table", "heavy", "mutex", "arena", "keeps", "status", "polls",
)  # fmt: skip

RUNTIME_SYMBOLS = (
    "mycel_new_buffer", "mycel_wrap", "mycel_address", "mycel_number", "mycel_invoke", "mycel_run", "mycel_set_threads", "mycel_copy",
    "mycel_dense", "mycel_cond", "mycel_while", "mycel_listen", "mycel_release", "mycel_log", "mycel_hook", "mycel_outside_hook",
    "mycel_recursion", "mycel_memory", "mycel_main_thread", "mycel_empty_cache", "mycel_drop_arena",
)  # fmt: skip

# Grains after which a signal is looked for on the way: some 10 milliseconds of one core.
PIECES = 512

RUNTIME = r"""
@threads = internal global i32 1
@main_thread = internal global i64 0
@heard = internal global i64 0
@rounds = internal global i64 1
@log = internal global ptr null
@hook = internal global ptr null
@outside_hook = internal global ptr null

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare ptr @PyCapsule_New(ptr, ptr, ptr)
declare ptr @PyCapsule_GetPointer(ptr, ptr)
declare ptr @PyCapsule_GetContext(ptr)
declare i32 @PyCapsule_SetContext(ptr, ptr)
declare ptr @PyLong_FromVoidPtr(ptr)
declare ptr @PyLong_AsVoidPtr(ptr)
declare i64 @PyLong_AsSsize_t(ptr)
declare ptr @PyLong_FromLongLong(i64)
declare ptr @PyFloat_FromDouble(double)
declare ptr @PyBool_FromLong(i64)
declare ptr @PyErr_Occurred()
declare ptr @PyErr_NoMemory()
declare void @PyErr_SetString(ptr, ptr)
declare void @PyErr_SetObject(ptr, ptr)
declare ptr @PyObject_Type(ptr)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare ptr @PyTuple_New(i64)
declare i32 @PyTuple_SetItem(ptr, i64, ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare i32 @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare i32 @PyErr_CheckSignals()
declare i32 @clock_gettime(i32, ptr)
declare i64 @pthread_self()
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare void @GOMP_parallel(ptr, ptr, i32, i32)
declare i32 @omp_get_thread_num()
declare i32 @omp_get_num_threads()
@PyExc_TypeError = external global ptr
@wrong_count = private constant [46 x i8] c"a compiled program got the wrong inputs count\00"

define void @mycel_drop_arena(ptr %program) {
  %w11 = getelementptr i64, ptr %program, i64 11
  %kept = load ptr, ptr %w11
  %have = icmp ne ptr %kept, null
  br i1 %have, label %drop, label %done
drop:
  store ptr null, ptr %w11
  call void @release(ptr %kept)
  br label %done
done:
  ret void
}

define internal void @destroy(ptr %capsule) {
  %owner = call ptr @PyCapsule_GetContext(ptr %capsule)
  %data = call ptr @PyCapsule_GetPointer(ptr %capsule, ptr null)
  %own = icmp eq ptr %owner, null
  br i1 %own, label %mine, label %theirs
mine:
  call void @release(ptr %data)
  ret void
theirs:
  call void @Py_DecRef(ptr %owner)
  ret void
}

define internal ptr @new_capsule(i64 %bytes) {
  %data = call ptr @allocate(i64 %bytes)
  %failed = icmp eq ptr %data, null
  br i1 %failed, label %out, label %ok
ok:
  %capsule = call ptr @PyCapsule_New(ptr %data, ptr null, ptr @destroy)
  ret ptr %capsule
out:
  %e = call ptr @PyErr_NoMemory()
  ret ptr null
}

define ptr @mycel_new_buffer(ptr %self, ptr %args, i64 %count) {
  %a = load ptr, ptr %args
  %bytes = call i64 @PyLong_AsSsize_t(ptr %a)
  %bad = icmp slt i64 %bytes, 0
  br i1 %bad, label %error, label %ok
ok:
  %capsule = call ptr @new_capsule(i64 %bytes)
  ret ptr %capsule
error:
  %occurred = call ptr @PyErr_Occurred()
  %set = icmp eq ptr %occurred, null
  br i1 %set, label %memory, label %out
memory:
  %e = call ptr @PyErr_NoMemory()
  br label %out
out:
  ret ptr null
}

define ptr @mycel_wrap(ptr %self, ptr %args, i64 %count) {
  %owner = load ptr, ptr %args
  %s1 = getelementptr ptr, ptr %args, i64 1
  %a = load ptr, ptr %s1
  %data = call ptr @PyLong_AsVoidPtr(ptr %a)
  %capsule = call ptr @PyCapsule_New(ptr %data, ptr null, ptr @destroy)
  %failed = icmp eq ptr %capsule, null
  br i1 %failed, label %out, label %ok
ok:
  call void @Py_IncRef(ptr %owner)
  %r = call i32 @PyCapsule_SetContext(ptr %capsule, ptr %owner)
  br label %out
out:
  ret ptr %capsule
}

define ptr @mycel_address(ptr %self, ptr %args, i64 %count) {
  %c = load ptr, ptr %args
  %p = call ptr @PyCapsule_GetPointer(ptr %c, ptr null)
  %bad = icmp eq ptr %p, null
  br i1 %bad, label %out, label %ok
ok:
  %r = call ptr @PyLong_FromVoidPtr(ptr %p)
  ret ptr %r
out:
  ret ptr null
}

; args: capsule, and 0 to 4 for a float, double, 32-bit or 64-bit integer or boolean that it begins with
define ptr @mycel_number(ptr %self, ptr %args, i64 %count) {
  %c = load ptr, ptr %args
  %p = call ptr @PyCapsule_GetPointer(ptr %c, ptr null)
  %bad = icmp eq ptr %p, null
  br i1 %bad, label %out, label %ok
ok:
  %s1 = getelementptr ptr, ptr %args, i64 1
  %k = load ptr, ptr %s1
  %kind = call i64 @PyLong_AsSsize_t(ptr %k)
  switch i64 %kind, label %truth [ i64 0, label %single i64 1, label %double i64 2, label %word i64 3, label %long ]
single:
  %f = load float, ptr %p
  %fd = fpext float %f to double
  %r0 = call ptr @PyFloat_FromDouble(double %fd)
  ret ptr %r0
double:
  %d = load double, ptr %p
  %r1 = call ptr @PyFloat_FromDouble(double %d)
  ret ptr %r1
word:
  %w = load i32, ptr %p
  %wl = sext i32 %w to i64
  %r2 = call ptr @PyLong_FromLongLong(i64 %wl)
  ret ptr %r2
long:
  %l = load i64, ptr %p
  %r3 = call ptr @PyLong_FromLongLong(i64 %l)
  ret ptr %r3
truth:
  %b = load i8, ptr %p
  %set = icmp ne i8 %b, 0
  %bl = zext i1 %set to i64
  %r4 = call ptr @PyBool_FromLong(i64 %bl)
  ret ptr %r4
out:
  ret ptr null
}

define void @mycel_set_threads(i32 %n) {
  store i32 %n, ptr @threads
  ret void
}

; one thread's share of a step
define internal void @part(ptr %step) {
  call void @part_from(ptr %step, i64 0)
  ret void
}

; one thread's share of a piece: a function, its arguments, a length and where that begins
define internal void @part_of_piece(ptr %piece) {
  %p3 = getelementptr i64, ptr %piece, i64 3
  %first = load i64, ptr %p3
  call void @part_from(ptr %piece, i64 %first)
  ret void
}

define internal void @part_from(ptr %step, i64 %first) alwaysinline {
  %t32 = call i32 @omp_get_thread_num()
  %n32 = call i32 @omp_get_num_threads()
  %t = zext i32 %t32 to i64
  %n = zext i32 %n32 to i64
  %f = load ptr, ptr %step
  %p1 = getelementptr i64, ptr %step, i64 1
  %args = load ptr, ptr %p1
  %p2 = getelementptr i64, ptr %step, i64 2
  %extent = load i64, ptr %p2
  %t1 = add i64 %t, 1
  %b0 = mul i64 %extent, %t
  %b1 = udiv i64 %b0, %n
  %begin = add i64 %first, %b1
  %e0 = mul i64 %extent, %t1
  %e1 = udiv i64 %e0, %n
  %end = add i64 %first, %e1
  %log = load ptr, ptr @log
  %logs = icmp ne ptr %log, null
  br i1 %logs, label %timed, label %plain
plain:
  call void %f(ptr %args, i64 %begin, i64 %end)
  ret void
timed:
  %from = call i64 @now()
  call void %f(ptr %args, i64 %begin, i64 %end)
  %to = call i64 @now()
  call void @note(ptr %log, i64 2, ptr %args, i64 %from, i64 %to)
  ret void
}

define void @mycel_log(ptr %log) {
  store ptr %log, ptr @log
  ret void
}

; what is called, with Python's lock, before a program runs while there is a log; or null
define void @mycel_hook(ptr %function) {
  store ptr %function, ptr @hook
  ret void
}

; what is called, with Python's lock, for the exception of an index outside: the program's table, the record, the index
define void @mycel_outside_hook(ptr %function) {
  store ptr %function, ptr @outside_hook
  ret void
}

; the index that a status of a run names (0 for a signal), after which the status is free; before another thread may run the program
define internal i64 @taken(ptr %status, i64 %code) {
  store i64 0, ptr %status
  %by_signal = icmp eq i64 %code, 4
  br i1 %by_signal, label %none, label %noted
noted:
  %record = inttoptr i64 %code to ptr
  %index = load i64, ptr %record
  ret i64 %index
none:
  ret i64 0
}

; the exception of a status that was taken; that of a signal is set
define internal void @raise_taken(ptr %program, i64 %record, i64 %index) {
  %by_signal = icmp eq i64 %record, 4
  br i1 %by_signal, label %done, label %ask
ask:
  %hook = load ptr, ptr @outside_hook
  %error = call ptr %hook(ptr %program, i64 %record, i64 %index)
  %none = icmp eq ptr %error, null
  br i1 %none, label %done, label %raise
raise:
  %type = call ptr @PyObject_Type(ptr %error)
  call void @PyErr_SetObject(ptr %type, ptr %error)
  call void @Py_DecRef(ptr %type)
  call void @Py_DecRef(ptr %error)
  br label %done
done:
  ret void
}

define internal i64 @now() {
  %time = alloca [2 x i64]
  %r = call i32 @clock_gettime(i32 1, ptr %time)
  %s = load i64, ptr %time
  %pn = getelementptr i64, ptr %time, i64 1
  %n = load i64, ptr %pn
  %ns = mul i64 %s, 1000000000
  %all = add i64 %ns, %n
  ret i64 %all
}

define internal void @note(ptr %log, i64 %what, ptr %key, i64 %begin, i64 %end) {
  %p1 = getelementptr i64, ptr %log, i64 1
  %i = atomicrmw add ptr %p1, i64 1 monotonic
  %room = load i64, ptr %log
  %fits = icmp ult i64 %i, %room
  br i1 %fits, label %write, label %full
write:
  %i5 = mul i64 %i, 5
  %at = add i64 %i5, 2
  %e = getelementptr i64, ptr %log, i64 %at
  store i64 %what, ptr %e
  %e1 = getelementptr i64, ptr %e, i64 1
  store ptr %key, ptr %e1
  %e2 = getelementptr i64, ptr %e, i64 2
  store i64 %begin, ptr %e2
  %e3 = getelementptr i64, ptr %e, i64 3
  store i64 %end, ptr %e3
  %thread = call i64 @pthread_self()
  %e4 = getelementptr i64, ptr %e, i64 4
  store i64 %thread, ptr %e4
  ret void
full:
  ret void
}

; Python's handlers of signals run in its main thread: which that is
define void @mycel_main_thread(i64 %thread) {
  store i64 %thread, ptr @main_thread
  ret void
}

; whether a handler of a signal raised, which is looked at ten times a second; the exception is then set
define i1 @mycel_interrupted() {
  %self = call i64 @pthread_self()
  %main = load i64, ptr @main_thread
  %other = icmp ne i64 %self, %main
  br i1 %other, label %no, label %clock
clock:
  %t = call i64 @now()
  %heard = load i64, ptr @heard
  %since = sub i64 %t, %heard
  %soon = icmp ult i64 %since, 100000000
  br i1 %soon, label %no, label %listen
no:
  ret i1 false
listen:
  store i64 %t, ptr @heard
  %state = call i32 @PyGILState_Ensure()
  %raised = call i32 @PyErr_CheckSignals()
  call void @PyGILState_Release(i32 %state)
  %is = icmp ne i32 %raised, 0
  ret i1 %is
}

; what kernels with long rows ask: whether the run is to end, by a signal that is heard now or by what another thread found
define i1 @mycel_listen(ptr %status) {
  %before = load atomic i64, ptr %status monotonic, align 8
  %failed = icmp ne i64 %before, 0
  %pp = getelementptr i64, ptr %status, i64 1
  %polls = load i64, ptr %pp
  %deaf = icmp eq i64 %polls, 0
  br i1 %deaf, label %no, label %sound
no:
  ret i1 false
sound:
  br i1 %failed, label %yes, label %ask
ask:
  %stop = call i1 @mycel_interrupted()
  br i1 %stop, label %set, label %no
set:
  store atomic i64 4, ptr %status monotonic, align 8
  br label %yes
yes:
  ret i1 true
}

; a step of more than `PIECES` grains, so many at a time, as long as nobody ends the run
define internal void @mycel_pieces(ptr %step, ptr %status) {
entry:
  %piece = alloca [4 x i64]
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
  %q1 = getelementptr i64, ptr %piece, i64 1
  %q2 = getelementptr i64, ptr %piece, i64 2
  %q3 = getelementptr i64, ptr %piece, i64 3
  store ptr %f, ptr %piece
  store ptr %args, ptr %q1
  br label %loop
loop:
  %first = phi i64 [ 0, %entry ], [ %end, %on ]
  %rest = sub i64 %extent, %first
  %less = icmp ult i64 %rest, %most
  %length = select i1 %less, i64 %rest, i64 %most
  %end = add i64 %first, %length
  store i64 %length, ptr %q2
  store i64 %first, ptr %q3
  %fit = udiv i64 %length, %grain
  %few = icmp ult i64 %fit, %all
  %n = select i1 %few, i64 %fit, i64 %all
  %many = icmp ugt i64 %n, 1
  br i1 %many, label %several, label %one
several:
  %n32 = trunc i64 %n to i32
  call void @GOMP_parallel(ptr @part_of_piece, ptr %piece, i32 %n32, i32 0)
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
  %n32 = trunc i64 %n to i32
  call void @GOMP_parallel(ptr @part, ptr %step, i32 %n32, i32 0)
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

; words: execute, set_handle, primitive, stream, count, exec_args, set_threads or 0, threads, then (memory, pointer) for each;
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
!0 = !{!"branch_weights", i32 1, i32 1048576}
!1 = !{!"branch_weights", i32 64, i32 1}
""".replace("PIECES", str(PIECES))
