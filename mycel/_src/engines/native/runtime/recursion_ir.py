"""Recursive functions in the runtime, as LLVM IR: activations on the heap, and a separate stack.

A `Routine` is the body of a recursive function as a template of a *record*: a block that begins
with the base addresses (inputs, outputs, arena, the record itself), then holds the words and step
tables of the body, then its arena. `mycel_recursion` is the step that calls a routine. The
outermost one is called by `mycel_run` and becomes a machine with an explicit stack: for each call
it copies the template into a new record, relocates it and pushes its steps; `cond`, `while` and
further calls push frames too. So neither depth nor nesting uses the stack of the thread. A frame is
six words: kind, steps, index, count, data, bytes; kinds are 0 a branch, 1 the body of a loop, 2 its
test, 3 an activation.

If there are too many levels, or no memory, the machine sets the program's status word, frees every
record and writes zeros to the outputs; loops end when they see the status, and the caller raises
RecursionError. A status that a step of an activation sets ends the run in the same way.
"""

from __future__ import annotations

__all__ = ["LEVELS", "RECORD_BYTES", "RECURSION", "ROUTINE"]

LEVELS = 250_000
RECORD_BYTES = 1 << 31

ROUTINE = (
    "template",
    "template_bytes",
    "record_bytes",
    "relocations",
    "relocation_table",
    "bases",
    "arena",
    "steps",
    "step_count",
    "inputs",
    "output_bytes",
)

# Words of the step: routine, status, then the addresses of inputs and outputs.
RECURSION = r"""
declare ptr @malloc(i64)
declare ptr @realloc(ptr, i64)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

define void @mycel_recursion(ptr %args, i64 %begin, i64 %end) {
entry:
  %stack = alloca ptr
  %room = alloca i64
  %top = alloca i64
  %depth = alloca i64
  %used = alloca i64
  %call = alloca ptr
  %new_kind = alloca i64
  %new_steps = alloca ptr
  %new_count = alloca i64
  %new_data = alloca ptr
  %new_bytes = alloca i64
  %ps = getelementptr i64, ptr %args, i64 1
  %status = load ptr, ptr %ps
  %stack0 = call ptr @malloc(i64 12288)
  store ptr %stack0, ptr %stack
  store i64 256, ptr %room
  store i64 0, ptr %top
  store i64 0, ptr %depth
  store i64 0, ptr %used
  store ptr %args, ptr %call
  %already = load i64, ptr %status
  %failed0 = icmp ne i64 %already, 0
  %none0 = icmp eq ptr %stack0, null
  %stop0 = or i1 %failed0, %none0
  br i1 %stop0, label %fail, label %enter

enter:
  %words = load ptr, ptr %call
  %routine = load ptr, ptr %words
  %pr2 = getelementptr i64, ptr %routine, i64 2
  %bytes = load i64, ptr %pr2
  %d0 = load i64, ptr %depth
  %d1 = add i64 %d0, 1
  store i64 %d1, ptr %depth
  %u0 = load i64, ptr %used
  %u1 = add i64 %u0, %bytes
  store i64 %u1, ptr %used
  %deep = icmp ugt i64 %d1, LEVELS
  %big = icmp ugt i64 %u1, BYTES
  %over = or i1 %deep, %big
  br i1 %over, label %fail, label %take
take:
  %record = call ptr @aligned_alloc(i64 64, i64 %bytes)
  %no_record = icmp eq ptr %record, null
  br i1 %no_record, label %fail, label %fill
fill:
  %template = load ptr, ptr %routine
  %pr1 = getelementptr i64, ptr %routine, i64 1
  %template_bytes = load i64, ptr %pr1
  call void @llvm.memcpy.p0.p0.i64(ptr %record, ptr %template, i64 %template_bytes, i1 false)
  %pr5 = getelementptr i64, ptr %routine, i64 5
  %bases = load i64, ptr %pr5
  %given_bytes = shl i64 %bases, 3
  %given = getelementptr i64, ptr %words, i64 2
  call void @llvm.memcpy.p0.p0.i64(ptr %record, ptr %given, i64 %given_bytes, i1 false)
  %pr6 = getelementptr i64, ptr %routine, i64 6
  %arena_at = load i64, ptr %pr6
  %arena = getelementptr i8, ptr %record, i64 %arena_at
  %pb0 = getelementptr ptr, ptr %record, i64 %bases
  store ptr %arena, ptr %pb0
  %bases1 = add i64 %bases, 1
  %pb1 = getelementptr ptr, ptr %record, i64 %bases1
  store ptr %record, ptr %pb1
  %pr3 = getelementptr i64, ptr %routine, i64 3
  %relocations = load i64, ptr %pr3
  %pr4 = getelementptr i64, ptr %routine, i64 4
  %table = load ptr, ptr %pr4
  %no_relocations = icmp eq i64 %relocations, 0
  br i1 %no_relocations, label %activate, label %relocate
relocate:
  %r = phi i64 [ 0, %fill ], [ %r1, %relocate ]
  %r3 = mul i64 %r, 3
  %pw = getelementptr i64, ptr %table, i64 %r3
  %place = load i64, ptr %pw
  %pbn = getelementptr i64, ptr %pw, i64 1
  %base_number = load i64, ptr %pbn
  %po = getelementptr i64, ptr %pw, i64 2
  %offset = load i64, ptr %po
  %pbase = getelementptr ptr, ptr %record, i64 %base_number
  %base = load ptr, ptr %pbase
  %target = getelementptr i8, ptr %base, i64 %offset
  %where = getelementptr i8, ptr %record, i64 %place
  store ptr %target, ptr %where
  %r1 = add i64 %r, 1
  %more_r = icmp ult i64 %r1, %relocations
  br i1 %more_r, label %relocate, label %activate
activate:
  %pr7 = getelementptr i64, ptr %routine, i64 7
  %steps_at = load i64, ptr %pr7
  %first = getelementptr i8, ptr %record, i64 %steps_at
  %pr8 = getelementptr i64, ptr %routine, i64 8
  %step_count = load i64, ptr %pr8
  store i64 3, ptr %new_kind
  store ptr %first, ptr %new_steps
  store i64 %step_count, ptr %new_count
  store ptr %record, ptr %new_data
  store i64 %bytes, ptr %new_bytes
  br label %push

push:
  %t0 = load i64, ptr %top
  %room0 = load i64, ptr %room
  %full = icmp eq i64 %t0, %room0
  br i1 %full, label %grow, label %place_frame
grow:
  %room1 = shl i64 %room0, 1
  %grown_bytes = mul i64 %room1, 48
  %old = load ptr, ptr %stack
  %grown = call ptr @realloc(ptr %old, i64 %grown_bytes)
  %no_room = icmp eq ptr %grown, null
  br i1 %no_room, label %drop, label %grew
drop:
  %unplaced_kind = load i64, ptr %new_kind
  %is_record = icmp eq i64 %unplaced_kind, 3
  br i1 %is_record, label %drop_record, label %fail
drop_record:
  %unplaced = load ptr, ptr %new_data
  call void @free(ptr %unplaced)
  br label %fail
grew:
  store ptr %grown, ptr %stack
  store i64 %room1, ptr %room
  br label %place_frame
place_frame:
  %s1 = load ptr, ptr %stack
  %at = mul i64 %t0, 48
  %fr = getelementptr i8, ptr %s1, i64 %at
  %nk = load i64, ptr %new_kind
  store i64 %nk, ptr %fr
  %ns = load ptr, ptr %new_steps
  %fr1 = getelementptr i64, ptr %fr, i64 1
  store ptr %ns, ptr %fr1
  %fr2 = getelementptr i64, ptr %fr, i64 2
  store i64 0, ptr %fr2
  %nc = load i64, ptr %new_count
  %fr3 = getelementptr i64, ptr %fr, i64 3
  store i64 %nc, ptr %fr3
  %nd = load ptr, ptr %new_data
  %fr4 = getelementptr i64, ptr %fr, i64 4
  store ptr %nd, ptr %fr4
  %nb = load i64, ptr %new_bytes
  %fr5 = getelementptr i64, ptr %fr, i64 5
  store i64 %nb, ptr %fr5
  %t1 = add i64 %t0, 1
  store i64 %t1, ptr %top
  br label %next

next:
  %tn = load i64, ptr %top
  %idle = icmp eq i64 %tn, 0
  br i1 %idle, label %done, label %look
look:
  %sn = load ptr, ptr %stack
  %tm = sub i64 %tn, 1
  %atn = mul i64 %tm, 48
  %frame = getelementptr i8, ptr %sn, i64 %atn
  %frame1 = getelementptr i64, ptr %frame, i64 1
  %frame2 = getelementptr i64, ptr %frame, i64 2
  %frame3 = getelementptr i64, ptr %frame, i64 3
  %frame4 = getelementptr i64, ptr %frame, i64 4
  %frame5 = getelementptr i64, ptr %frame, i64 5
  %steps = load ptr, ptr %frame1
  %index = load i64, ptr %frame2
  %count = load i64, ptr %frame3
  %data = load ptr, ptr %frame4
  %ended = icmp eq i64 %index, %count
  br i1 %ended, label %finish, label %fetch
fetch:
  %index1 = add i64 %index, 1
  store i64 %index1, ptr %frame2
  %step_at = shl i64 %index, 5
  %step = getelementptr i8, ptr %steps, i64 %step_at
  %f = load ptr, ptr %step
  %pa = getelementptr i64, ptr %step, i64 1
  %a = load ptr, ptr %pa
  %is_cond = icmp eq ptr %f, @mycel_cond
  br i1 %is_cond, label %branch, label %other1
other1:
  %is_while = icmp eq ptr %f, @mycel_while
  br i1 %is_while, label %loop, label %other2
other2:
  %is_call = icmp eq ptr %f, @mycel_recursion
  br i1 %is_call, label %recur, label %plain
plain:
  call void @mycel_run(ptr %step, i64 1, ptr %status)
  %failed1 = load i64, ptr %status
  %stop1 = icmp ne i64 %failed1, 0
  br i1 %stop1, label %fail, label %next
recur:
  call void @mycel_round(ptr %status)
  %heard = load i64, ptr %status
  %stop_heard = icmp ne i64 %heard, 0
  br i1 %stop_heard, label %fail, label %recur_on
recur_on:
  store ptr %a, ptr %call
  br label %enter
branch:
  %pred = load ptr, ptr %a
  %v = load i8, ptr %pred
  %truth = icmp ne i8 %v, 0
  %which = select i1 %truth, i64 1, i64 3
  %pc = getelementptr i64, ptr %a, i64 %which
  %branch_steps = load ptr, ptr %pc
  %pc1 = getelementptr i64, ptr %pc, i64 1
  %branch_count = load i64, ptr %pc1
  store i64 0, ptr %new_kind
  store ptr %branch_steps, ptr %new_steps
  store i64 %branch_count, ptr %new_count
  store ptr null, ptr %new_data
  br label %push
loop:
  %pl1 = getelementptr i64, ptr %a, i64 1
  %test_steps = load ptr, ptr %pl1
  %pl2 = getelementptr i64, ptr %a, i64 2
  %test_count = load i64, ptr %pl2
  store i64 2, ptr %new_kind
  store ptr %test_steps, ptr %new_steps
  store i64 %test_count, ptr %new_count
  store ptr %a, ptr %new_data
  br label %push

finish:
  %kind = load i64, ptr %frame
  switch i64 %kind, label %pop [ i64 1, label %again i64 2, label %tested i64 3, label %leave ]
again:
  %pg1 = getelementptr i64, ptr %data, i64 1
  %again_steps = load ptr, ptr %pg1
  %pg2 = getelementptr i64, ptr %data, i64 2
  %again_count = load i64, ptr %pg2
  store i64 2, ptr %frame
  store ptr %again_steps, ptr %frame1
  store i64 0, ptr %frame2
  store i64 %again_count, ptr %frame3
  br label %next
tested:
  %wpred = load ptr, ptr %data
  %wv = load i8, ptr %wpred
  %goes_on = icmp ne i8 %wv, 0
  br i1 %goes_on, label %round, label %pop
round:
  %pg3 = getelementptr i64, ptr %data, i64 3
  %round_steps = load ptr, ptr %pg3
  %pg4 = getelementptr i64, ptr %data, i64 4
  %round_count = load i64, ptr %pg4
  store i64 1, ptr %frame
  store ptr %round_steps, ptr %frame1
  store i64 0, ptr %frame2
  store i64 %round_count, ptr %frame3
  br label %next
leave:
  call void @free(ptr %data)
  %freed = load i64, ptr %frame5
  %ul = load i64, ptr %used
  %ul1 = sub i64 %ul, %freed
  store i64 %ul1, ptr %used
  %dl = load i64, ptr %depth
  %dl1 = sub i64 %dl, 1
  store i64 %dl1, ptr %depth
  br label %pop
pop:
  store i64 %tm, ptr %top
  br label %next

fail:
  %was = load i64, ptr %status
  %unset = icmp eq i64 %was, 0
  %now = select i1 %unset, i64 1, i64 %was
  store i64 %now, ptr %status
  %routine0 = load ptr, ptr %args
  %qi = getelementptr i64, ptr %routine0, i64 9
  %inputs = load i64, ptr %qi
  %qb = getelementptr i64, ptr %routine0, i64 5
  %ios = load i64, ptr %qb
  %qo = getelementptr i64, ptr %routine0, i64 10
  %sizes = load ptr, ptr %qo
  br label %clear
clear:
  %c = phi i64 [ %inputs, %fail ], [ %c1, %wipe ]
  %cleared = icmp eq i64 %c, %ios
  br i1 %cleared, label %unwind, label %wipe
wipe:
  %c2 = add i64 %c, 2
  %pout = getelementptr ptr, ptr %args, i64 %c2
  %out = load ptr, ptr %pout
  %ci = sub i64 %c, %inputs
  %psize = getelementptr i64, ptr %sizes, i64 %ci
  %out_bytes = load i64, ptr %psize
  call void @llvm.memset.p0.i64(ptr %out, i8 0, i64 %out_bytes, i1 false)
  %c1 = add i64 %c, 1
  br label %clear
unwind:
  %tu = load i64, ptr %top
  %clean = icmp eq i64 %tu, 0
  br i1 %clean, label %done, label %undo
undo:
  %tu1 = sub i64 %tu, 1
  store i64 %tu1, ptr %top
  %su = load ptr, ptr %stack
  %atu = mul i64 %tu1, 48
  %fu = getelementptr i8, ptr %su, i64 %atu
  %ku = load i64, ptr %fu
  %holds = icmp eq i64 %ku, 3
  br i1 %holds, label %give, label %unwind
give:
  %fu4 = getelementptr i64, ptr %fu, i64 4
  %ru = load ptr, ptr %fu4
  call void @free(ptr %ru)
  br label %unwind
done:
  %sd = load ptr, ptr %stack
  call void @free(ptr %sd)
  ret void
}
""".replace("LEVELS", str(LEVELS)).replace("BYTES", str(RECORD_BYTES))
