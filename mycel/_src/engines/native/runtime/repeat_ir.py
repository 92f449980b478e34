"""The native loop that runs a program many times, as LLVM IR.

One call runs the step table of a program for a number of rounds without Python's lock. Addresses of
operands that differ between rounds (a batch, the place of a result in an array of results) come
from lists, one entry for each round. A result that is an input of the next round is copied over
that input (`carries`). Everything else stays in place: aliased parameters are updated in place as
they are by a single run. A round runs the same table as a single run, with the same addresses
inside the arena, so the results are the same bit for bit.

Each round is a run in the log. The loop ends early, before the next round begins, when the
program's `status` is not 0 (an index was out of range, a host step failed, a recursion was too
deep). `done` counts the rounds that were run.
"""

from __future__ import annotations

from mycel._src.engines.native.runtime.runtime_ir import PROGRAM

__all__ = ["REPEAT", "REPEAT_IR"]

REPEAT = ("program", "rounds", "bases", "moves", "move_table", "carries", "carry_table", "done")

_TEXT = r"""
define ptr @mycel_repeat(ptr %self, ptr %args, i64 %count) {
entry:
  %given = load ptr, ptr %args
  %plan = call ptr @PyLong_AsVoidPtr(ptr %given)
  %program = load ptr, ptr %plan
  %q1 = getelementptr i64, ptr %plan, i64 1
  %rounds = load i64, ptr %q1
  %q2 = getelementptr i64, ptr %plan, i64 2
  %bases = load ptr, ptr %q2
  %q3 = getelementptr i64, ptr %plan, i64 3
  %moves = load i64, ptr %q3
  %q4 = getelementptr i64, ptr %plan, i64 4
  %move_table = load ptr, ptr %q4
  %q5 = getelementptr i64, ptr %plan, i64 5
  %carries = load i64, ptr %q5
  %q6 = getelementptr i64, ptr %plan, i64 6
  %carry_table = load ptr, ptr %q6
  %status = getelementptr i64, ptr %program, i64 <status>
  %done = getelementptr i64, ptr %plan, i64 7
  %w0 = getelementptr i64, ptr %program, i64 <inputs>
  %inputs = load i64, ptr %w0
  %w1 = getelementptr i64, ptr %program, i64 <outputs>
  %outputs = load i64, ptr %w1
  %w4 = getelementptr i64, ptr %program, i64 <relocations>
  %relocations = load i64, ptr %w4
  %w5 = getelementptr i64, ptr %program, i64 <relocation_table>
  %table = load ptr, ptr %w5
  %w6 = getelementptr i64, ptr %program, i64 <arena_bytes>
  %arena_bytes = load i64, ptr %w6
  %w7 = getelementptr i64, ptr %program, i64 <steps>
  %steps = load i64, ptr %w7
  %w8 = getelementptr i64, ptr %program, i64 <step_table>
  %step_table = load ptr, ptr %w8
  %w10 = getelementptr i64, ptr %program, i64 <mutex>
  %mutex = load ptr, ptr %w10
  %w11 = getelementptr i64, ptr %program, i64 <arena>
  %w12 = getelementptr i64, ptr %program, i64 <keeps>
  %keeps = load i64, ptr %w12
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
  br i1 %taken, label %ready, label %no_memory
no_memory:
  %e = call ptr @PyErr_NoMemory()
  ret ptr null
ready:
  %arena = phi ptr [ null, %entry ], [ %kept, %reuse ], [ %memory, %fresh ]
  %io = add i64 %inputs, %outputs
  %parena = getelementptr ptr, ptr %bases, i64 %io
  store ptr %arena, ptr %parena
  %log = load ptr, ptr @log
  %logs = icmp ne ptr %log, null
  br i1 %logs, label %clock, label %begin
clock:
  %hook = load ptr, ptr @hook
  %hooked = icmp ne ptr %hook, null
  br i1 %hooked, label %tell, label %begin
tell:
  call void %hook()
  br label %begin
begin:
  %thread = call ptr @PyEval_SaveThread()
  %l = call i32 @pthread_mutex_lock(ptr %mutex)
  br label %round
round:
  %k = phi i64 [ 0, %begin ], [ %k1, %next ]
  %failed = load i64, ptr %status
  %sound = icmp eq i64 %failed, 0
  %left = icmp ult i64 %k, %rounds
  %more = and i1 %left, %sound
  br i1 %more, label %carrying, label %end
carrying:
  %first = icmp eq i64 %k, 0
  %no_carries = icmp eq i64 %carries, 0
  %skip = or i1 %first, %no_carries
  br i1 %skip, label %moving, label %carry
carry:
  %c = phi i64 [ 0, %carrying ], [ %c1, %carry ]
  %c3 = mul i64 %c, 3
  %pc0 = getelementptr i64, ptr %carry_table, i64 %c3
  %from = load i64, ptr %pc0
  %c31 = add i64 %c3, 1
  %pc1 = getelementptr i64, ptr %carry_table, i64 %c31
  %to = load i64, ptr %pc1
  %c32 = add i64 %c3, 2
  %pc2 = getelementptr i64, ptr %carry_table, i64 %c32
  %bytes = load i64, ptr %pc2
  %pfrom = getelementptr ptr, ptr %bases, i64 %from
  %source = load ptr, ptr %pfrom
  %pto = getelementptr ptr, ptr %bases, i64 %to
  %target = load ptr, ptr %pto
  call void @llvm.memcpy.p0.p0.i64(ptr %target, ptr %source, i64 %bytes, i1 false)
  %c1 = add i64 %c, 1
  %more_c = icmp ult i64 %c1, %carries
  br i1 %more_c, label %carry, label %moving
moving:
  %no_moves = icmp eq i64 %moves, 0
  br i1 %no_moves, label %patch, label %move
move:
  %m = phi i64 [ 0, %moving ], [ %m1, %move ]
  %m2 = shl i64 %m, 1
  %pm0 = getelementptr i64, ptr %move_table, i64 %m2
  %number = load i64, ptr %pm0
  %m21 = add i64 %m2, 1
  %pm1 = getelementptr i64, ptr %move_table, i64 %m21
  %list = load ptr, ptr %pm1
  %pplace = getelementptr ptr, ptr %list, i64 %k
  %place = load ptr, ptr %pplace
  %pbase = getelementptr ptr, ptr %bases, i64 %number
  store ptr %place, ptr %pbase
  %m1 = add i64 %m, 1
  %more_m = icmp ult i64 %m1, %moves
  br i1 %more_m, label %move, label %patch
patch:
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
  %pstart = getelementptr ptr, ptr %bases, i64 %base
  %start = load ptr, ptr %pstart
  %address = getelementptr i8, ptr %start, i64 %offset
  store ptr %address, ptr %where
  %r1 = add i64 %r, 1
  %more_r = icmp ult i64 %r1, %relocations
  br i1 %more_r, label %relocate, label %run
run:
  br i1 %logs, label %timed, label %untimed
untimed:
  call void @mycel_run(ptr %step_table, i64 %steps, ptr %status)
  br label %next
timed:
  %t0 = call i64 @now()
  call void @mycel_run(ptr %step_table, i64 %steps, ptr %status)
  %t1 = call i64 @now()
  call void @note(ptr %log, i64 1, ptr %program, i64 %t0, i64 %t1)
  br label %next
next:
  %k1 = add i64 %k, 1
  call void @mycel_round(ptr %status)
  br label %round
end:
  store i64 %k, ptr %done
  %outside = icmp ugt i64 %failed, 3
  br i1 %outside, label %take_status, label %over
take_status:
  %noted = call i64 @taken(ptr %status, i64 %failed)
  br label %over
over:
  %index = phi i64 [ 0, %end ], [ %noted, %take_status ]
  %ul = call i32 @pthread_mutex_unlock(ptr %mutex)
  call void @PyEval_RestoreThread(ptr %thread)
  br i1 %needs, label %give, label %answer
give:
  %slot = load ptr, ptr %w11
  %vacant = icmp eq ptr %slot, null
  %wanted = icmp ne i64 %keeps, 0
  %keep_it = and i1 %vacant, %wanted
  br i1 %keep_it, label %keep, label %drop
keep:
  store ptr %arena, ptr %w11
  br label %answer
drop:
  call void @release(ptr %arena)
  br label %answer
answer:
  br i1 %outside, label %raise, label %tell_count
raise:
  call void @raise_taken(ptr %program, i64 %failed, i64 %index)
  ret ptr null
tell_count:
  %asvoid = inttoptr i64 %k to ptr
  %answered = call ptr @PyLong_FromVoidPtr(ptr %asvoid)
  ret ptr %answered
}
"""

REPEAT_IR = _TEXT
for _name in PROGRAM:
    REPEAT_IR = REPEAT_IR.replace(f"<{_name}>", str(PROGRAM.index(_name)))
