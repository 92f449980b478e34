"""The work-stealing thread pool, as LLVM IR.

A *team* is a caller and its helpers. Each caller takes a team that is free, or makes one, so
threads of Python do not wait for each other. Work is a function and a number of items, of which
each seat of the team has a range, for the sake of caches. Who is done with its own range takes
items of others. So the caller never waits for a helper that has not begun: it does its items
itself, and waits only for items in progress. What an item is does not depend on who does it.

A team's *gate* is one word: how many helpers are inside, whether it is open, and a count of
openings. The caller writes the work while the gate is shut and nobody inside, and opens it. A
helper enters by a compare-and-swap, so it enters the opening that it saw or none. When no items are
left the caller shuts the gate, and waits until the last helper has left.

Who waits spins for a while and then sleeps. Spinning is worth it only on a core of one's own: with
another program on the core it uses up the share that the work would need, and the helper is not
running when there is work. A thread that spins sees that the clock has jumped, far or twice, which
says that another program ran meanwhile. From then on the team is *calm*: helpers sleep as soon as
there is no work, callers spin no longer than `BRIEF`, and short work is the caller's alone. That
lasts `CALM_LEAST` nanoseconds, and twice as long each time that it is found again soon after, at
most `CALM_MOST`. A helper that is woken on the caller's core, where it would only take turns with
the caller, leaves that core (`sleep_ir`).
"""

from __future__ import annotations

import re

from mycel._src.engines.native.threads.openmp_interface_ir import TEAM_SYMBOLS, TEAMS
from mycel._src.engines.native.threads.sleep_ir import CONDITION, FUTEX, FUTEX_CALLS
from mycel._src.engines.native.threads.worker_threads_ir import HELPERS

__all__ = ["MOST_THREADS", "POOL_SYMBOLS", "pool_text"]

# Seats of a team, and its size in bytes.
MOST_THREADS = 1024
_SEATS, _SEAT = 48, 32
_TEAM_BYTES = 8 * (_SEATS + _SEAT * MOST_THREADS)

# Nanoseconds: how long a helper spins for work and a caller for the end; how long a caller spins
# where others use the cores.
HELPER_SPINS, CALLER_SPINS, BRIEF = 2_000_000, 300_000, 20_000
# Which gap of the clock says that something else ran, which that it was a program, and how soon a
# second gap says so: the kernel's own threads run shortly and seldom.
GAP, LONG_GAP, OFTEN = 400_000, 3_000_000, 20_000_000
# How long spinning is then left off.
CALM_LEAST, CALM_MOST = 100_000_000, 400_000_000
# In a calm team a share of fewer grains, of some 20 microseconds each, is done by the caller, as
# waking a helper takes as long.
WORTH_WAKING = 8
# Clock readings are so many pauses apart.
PAUSES = 16
# A share has at most so many items for each thread.
PARTS = 8

POOL_SYMBOLS = ("pool_begin", "pool_forked", "pool_rest", "pool_share", "pool_start", "pool_spin", *TEAM_SYMBOLS)

# Words of a team: 0 the gate, 8 whether the caller sleeps; 16 the function of items, 17 seats, 18
# items, 19 to 25 what the function needs; 26 seats that have a thread, 27 the next free team, 28
# whether helpers are to end, 29 the caller's core; 32 how many are at the barrier, 33 how often it
# was passed, 34 sleepers at it; then seats. Words of a seat: 0 the next item of its range, 1 its
# end; 8 whether its helper sleeps, 9 the team, 10 the seat's number, 11 the number of the part that
# it does for the dense library, 12 regions opened inside of that part, 13 its thread, 14 and 16 to
# 31 what `step_aside` keeps.
# Word 0 of the gate: 16 bits for those inside, one whether it is open, the others count openings.
_POOL = r"""
@spare = internal global ptr null
@free_teams = internal global ptr null
@free_mutex = internal global [16 x i64] zeroinitializer
@seat_key = internal global i64 0
@calm_until = internal global i64 0
@last_gap = internal global i64 0
@calm_for = internal global i64 CALM_LEAST
@helper_spins = internal global i64 HELPER_SPINS
@caller_spins = internal global i64 CALLER_SPINS

declare i32 @clock_gettime(i32, ptr)
declare ptr @aligned_alloc(i64, i64)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(i64, ptr)
declare i32 @pthread_key_create(ptr, ptr)
declare ptr @pthread_getspecific(i64)
declare i32 @pthread_setspecific(i64, ptr)
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @sigfillset(ptr)
declare i32 @usleep(i32)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

define internal i64 @time() {
  %time = alloca [2 x i64]
  %r = call i32 @clock_gettime(i32 MONOTONIC, ptr %time)
  %s = load i64, ptr %time
  %pn = getelementptr i64, ptr %time, i64 1
  %n = load i64, ptr %pn
  %ns = mul i64 %s, 1000000000
  %all = add i64 %ns, %n
  ret i64 %all
}

; once for the process, with the usual number of threads of a region
define i32 @pool_begin(i64 %threads) {
  store i64 %threads, ptr @most_threads
  %m = call i32 @pthread_mutex_init(ptr @free_mutex, ptr null)
  %r = call i32 @pthread_key_create(ptr @seat_key, ptr null)
  %q = call i32 @pthread_key_create(ptr @most_key, ptr null)
  BEGIN_SLEEP
  ret i32 %r
}

; a forked child has no helpers: forget all teams
define void @pool_forked() {
  store ptr null, ptr @spare
  store ptr null, ptr @free_teams
  %m = call i32 @pthread_mutex_init(ptr @free_mutex, ptr null)
  %key = load i64, ptr @seat_key
  %r = call i32 @pthread_setspecific(i64 %key, ptr null)
  BEGIN_SLEEP
  ret void
}

; end the helpers of all teams that nobody has; later work makes new ones
define void @pool_rest() {
entry:
  %t = atomicrmw xchg ptr @spare, ptr null seq_cst
  %l = call i32 @pthread_mutex_lock(ptr @free_mutex)
  %first = load ptr, ptr @free_teams
  store ptr null, ptr @free_teams
  %u = call i32 @pthread_mutex_unlock(ptr @free_mutex)
  %found = icmp ne ptr %t, null
  br i1 %found, label %spare, label %list
spare:
  call void @dismissed(ptr %t)
  call void @given_back(ptr %t)
  br label %list
list:
  %team = phi ptr [ %first, %entry ], [ %first, %spare ], [ %next, %one ]
  %more = icmp ne ptr %team, null
  br i1 %more, label %one, label %done
one:
  %pnext = getelementptr i64, ptr %team, i64 27
  %next = load ptr, ptr %pnext
  call void @dismissed(ptr %team)
  call void @given_back(ptr %team)
  br label %list
done:
  ret void
}

; how long helpers and callers spin
define void @pool_spin(i64 %helper, i64 %caller) {
  store i64 %helper, ptr @helper_spins
  store i64 %caller, ptr @caller_spins
  ret void
}

; something else ran on this core for `gap` nanoseconds: another program, if that was long or is often
define internal void @seen(i64 %now, i64 %gap) {
entry:
  %before = atomicrmw xchg ptr @last_gap, i64 %now monotonic
  %apart = sub i64 %now, %before
  %often = icmp slt i64 %apart, OFTEN
  %long = icmp sgt i64 %gap, LONG_GAP
  %program = or i1 %often, %long
  br i1 %program, label %judge, label %done
judge:
  %until = load atomic i64, ptr @calm_until monotonic, align 8
  %known = icmp slt i64 %now, %until
  br i1 %known, label %done, label %set
set:
  %for = load atomic i64, ptr @calm_for monotonic, align 8
  %since = sub i64 %now, %until
  %four = shl i64 %for, 2
  %soon = icmp slt i64 %since, %four
  %twice = shl i64 %for, 1
  %capped = icmp slt i64 %twice, CALM_MOST
  %longer = select i1 %capped, i64 %twice, i64 CALM_MOST
  %next = select i1 %soon, i64 %longer, i64 CALM_LEAST
  store atomic i64 %next, ptr @calm_for monotonic, align 8
  %to = add i64 %now, %next
  store atomic i64 %to, ptr @calm_until monotonic, align 8
  br label %done
done:
  ret void
}

; one stretch of spinning that began at `begun`, the clock having been read last at `before`:
; the clock now, or 0 where it is time to sleep
define internal i64 @spun(i64 %begun, i64 %before, i64 %most) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i1, %loop ]
  PAUSE
  %i1 = add i64 %i, 1
  %more = icmp ult i64 %i1, PAUSES
  br i1 %more, label %loop, label %look
look:
  %now = call i64 @time()
  %gap = sub i64 %now, %before
  %long = icmp sgt i64 %gap, GAP
  br i1 %long, label %jumped, label %judge
jumped:
  call void @seen(i64 %now, i64 %gap)
  br label %judge
judge:
  %until = load atomic i64, ptr @calm_until monotonic, align 8
  %calm = icmp slt i64 %now, %until
  %less = icmp slt i64 %most, BRIEF
  %brief = select i1 %less, i64 %most, i64 BRIEF
  %limit = select i1 %calm, i64 %brief, i64 %most
  %spent = sub i64 %now, %begun
  %over = icmp sge i64 %spent, %limit
  %result = select i1 %over, i64 0, i64 %now
  ret i64 %result
}

; do what there is, one's own range first; log the time that it took where the work asks for it
define internal void @work(ptr %team, ptr %seat) {
entry:
  %pf = getelementptr i64, ptr %team, i64 16
  %f = load ptr, ptr %pf
  %pn = getelementptr i64, ptr %team, i64 17
  %n = load i64, ptr %pn
  %seats = getelementptr i64, ptr %team, i64 SEATS
  %pi = getelementptr i64, ptr %seat, i64 10
  %own = load i64, ptr %pi
  %pnote = getelementptr i64, ptr %team, i64 25
  %note = load ptr, ptr %pnote
  %notes = icmp ne ptr %note, null
  br i1 %notes, label %clock, label %ranges
clock:
  %t0 = call i64 @time()
  br label %ranges
ranges:
  %begun = phi i64 [ 0, %entry ], [ %t0, %clock ]
  br label %range
range:
  %k = phi i64 [ 0, %ranges ], [ %k1, %next ]
  %done0 = phi i64 [ 0, %ranges ], [ %done, %next ]
  %v0 = add i64 %own, %k
  %wraps = icmp uge i64 %v0, %n
  %v1 = sub i64 %v0, %n
  %v = select i1 %wraps, i64 %v1, i64 %v0
  %at = mul i64 %v, SEAT
  %theirs = getelementptr i64, ptr %seats, i64 %at
  %pe = getelementptr i64, ptr %theirs, i64 1
  %end = load i64, ptr %pe
  br label %item
item:
  %done = phi i64 [ %done0, %range ], [ %done1, %take ]
  %seen = load atomic i64, ptr %theirs monotonic, align 8
  %left = icmp ult i64 %seen, %end
  br i1 %left, label %try, label %next
try:
  %i = atomicrmw add ptr %theirs, i64 1 monotonic
  %got = icmp ult i64 %i, %end
  br i1 %got, label %take, label %next
take:
  call void %f(ptr %team, ptr %seat, i64 %i)
  %done1 = add i64 %done, 1
  br label %item
next:
  %k1 = add i64 %k, 1
  %more = icmp ult i64 %k1, %n
  br i1 %more, label %range, label %over
over:
  %some = icmp ne i64 %done, 0
  %tell = and i1 %notes, %some
  br i1 %tell, label %log, label %ret
log:
  %t1 = call i64 @time()
  %pa = getelementptr i64, ptr %team, i64 20
  %args = load ptr, ptr %pa
  call void %note(ptr %args, i64 %begun, i64 %t1)
  br label %ret
ret:
  ret void
}

; a team that nobody else has; null without memory
define internal ptr @taken_team() {
entry:
  %t = atomicrmw xchg ptr @spare, ptr null seq_cst
  %found = icmp ne ptr %t, null
  br i1 %found, label %have, label %slow
have:
  ret ptr %t
slow:
  %l = call i32 @pthread_mutex_lock(ptr @free_mutex)
  %first = load ptr, ptr @free_teams
  %any = icmp ne ptr %first, null
  br i1 %any, label %pop, label %none
pop:
  %pnext = getelementptr i64, ptr %first, i64 27
  %next = load ptr, ptr %pnext
  store ptr %next, ptr @free_teams
  br label %none
none:
  %u = call i32 @pthread_mutex_unlock(ptr @free_mutex)
  br i1 %any, label %listed, label %make
listed:
  ret ptr %first
make:
  %team = call ptr @aligned_alloc(i64 128, i64 TEAM_BYTES)
  %lost = icmp eq ptr %team, null
  br i1 %lost, label %no, label %clear
no:
  ret ptr null
clear:
  call void @llvm.memset.p0.i64(ptr %team, i8 0, i64 HEAD_BYTES, i1 false)
  %seat = call ptr @furnished(ptr %team, i64 0)
  %ph = getelementptr i64, ptr %team, i64 26
  store i64 1, ptr %ph
  ret ptr %team
}

define internal void @given_back(ptr %team) {
entry:
  %swap = cmpxchg ptr @spare, ptr null, ptr %team seq_cst seq_cst
  %done = extractvalue { ptr, i1 } %swap, 1
  br i1 %done, label %ret, label %slow
slow:
  %l = call i32 @pthread_mutex_lock(ptr @free_mutex)
  %first = load ptr, ptr @free_teams
  %pnext = getelementptr i64, ptr %team, i64 27
  store ptr %first, ptr %pnext
  store ptr %team, ptr @free_teams
  %u = call i32 @pthread_mutex_unlock(ptr @free_mutex)
  br label %ret
ret:
  ret void
}

; give each seat its range of the items, those below `from` being done, open the gate and wake who sleeps
define internal void @opened(ptr %team, i64 %from) {
entry:
  %pn = getelementptr i64, ptr %team, i64 17
  %n = load i64, ptr %pn
  %pm = getelementptr i64, ptr %team, i64 18
  %m = load i64, ptr %pm
  %seats = getelementptr i64, ptr %team, i64 SEATS
  br label %seat
seat:
  %k = phi i64 [ 0, %entry ], [ %k1, %seat ]
  %b = phi i64 [ %from, %entry ], [ %e, %seat ]
  %k1 = add i64 %k, 1
  %m1 = mul i64 %m, %k1
  %e = udiv i64 %m1, %n
  %at = mul i64 %k, SEAT
  %ps = getelementptr i64, ptr %seats, i64 %at
  %pe = getelementptr i64, ptr %ps, i64 1
  store i64 %b, ptr %ps
  store i64 %e, ptr %pe
  %more = icmp ult i64 %k1, %n
  br i1 %more, label %seat, label %gate
gate:
  %until = load atomic i64, ptr @calm_until monotonic, align 8
  %never = icmp eq i64 %until, 0
  br i1 %never, label %swing, label %place
place:
  %core = call i32 @own_core()
  %pcore = getelementptr i64, ptr %team, i64 29
  store i32 %core, ptr %pcore
  br label %swing
swing:
  %old = load atomic i64, ptr %team monotonic, align 8
  %count = add i64 %old, 131072
  %open = or i64 %count, 65536
  store atomic i64 %open, ptr %team seq_cst, align 8
  br label %bell
bell:
  %h = phi i64 [ 1, %swing ], [ %h1, %rung ]
  %some = icmp ult i64 %h, %n
  br i1 %some, label %ask, label %done
ask:
  %hat = mul i64 %h, SEAT
  %hat8 = add i64 %hat, 8
  %pa = getelementptr i64, ptr %seats, i64 %hat8
  %a = load atomic i32, ptr %pa seq_cst, align 4
  %asleep = icmp ne i32 %a, 0
  br i1 %asleep, label %ring, label %rung
ring:
  store atomic i32 0, ptr %pa seq_cst, align 4
  call void @wake(ptr %pa, i32 1)
  br label %rung
rung:
  %h1 = add i64 %h, 1
  br label %bell
done:
  ret void
}

; shut the gate, and wait for those inside
define internal void @shut(ptr %team) {
entry:
  %pwaits = getelementptr i64, ptr %team, i64 8
  %most = load i64, ptr @caller_spins
  %old = atomicrmw and ptr %team, i64 -65537 seq_cst
  %inside = and i64 %old, 65535
  %empty = icmp eq i64 %inside, 0
  br i1 %empty, label %done, label %wait
wait:
  %begun = call i64 @time()
  br label %spin
spin:
  %before = phi i64 [ %begun, %wait ], [ %now, %tire ]
  %now = call i64 @spun(i64 %begun, i64 %before, i64 %most)
  %gate = load atomic i64, ptr %team seq_cst, align 8
  %inside1 = and i64 %gate, 65535
  %empty1 = icmp eq i64 %inside1, 0
  br i1 %empty1, label %done, label %tire
tire:
  %tired = icmp eq i64 %now, 0
  br i1 %tired, label %sleep, label %spin
sleep:
  store atomic i32 1, ptr %pwaits seq_cst, align 4
  %gate3 = load atomic i64, ptr %team seq_cst, align 8
  %inside3 = and i64 %gate3, 65535
  %empty3 = icmp eq i64 %inside3, 0
  br i1 %empty3, label %up, label %down
down:
  call void @sleep(ptr %pwaits, i32 1)
  br label %sleep
up:
  store atomic i32 0, ptr %pwaits seq_cst, align 4
  br label %done
done:
  ret void
}

; an item of a share: words 19 function, 20 its arguments, 21 where it begins, 22 its length, 23 a mask of boundaries
define internal void @chunk(ptr %team, ptr %seat, i64 %i) {
entry:
  %pm = getelementptr i64, ptr %team, i64 18
  %m = load i64, ptr %pm
  %pf = getelementptr i64, ptr %team, i64 19
  %f = load ptr, ptr %pf
  %pa = getelementptr i64, ptr %team, i64 20
  %args = load ptr, ptr %pa
  %p1 = getelementptr i64, ptr %team, i64 21
  %first = load i64, ptr %p1
  %p2 = getelementptr i64, ptr %team, i64 22
  %extent = load i64, ptr %p2
  %p3 = getelementptr i64, ptr %team, i64 23
  %mask = load i64, ptr %p3
  %b0 = mul i64 %extent, %i
  %b1 = udiv i64 %b0, %m
  %b2 = and i64 %b1, %mask
  %i1 = add i64 %i, 1
  %e0 = mul i64 %extent, %i1
  %e1 = udiv i64 %e0, %m
  %e2 = and i64 %e1, %mask
  %is_last = icmp eq i64 %i1, %m
  %e3 = select i1 %is_last, i64 %extent, i64 %e2
  %begin = add i64 %first, %b2
  %end = add i64 %first, %e3
  %some = icmp ult i64 %b2, %e3
  br i1 %some, label %run, label %done
run:
  call void %f(ptr %args, i64 %begin, i64 %end)
  br label %done
done:
  ret void
}

; run f(args, begin, end) over parts of [first, first + extent) on up to `n` threads; there are `grains` parts worth
; a thread; `note` is told of each thread's time, or null
define void @pool_share(ptr %f, ptr %args, i64 %first, i64 %extent, i64 %n, i64 %grains, ptr %note) {
entry:
  %until = load atomic i64, ptr @calm_until monotonic, align 8
  %never = icmp eq i64 %until, 0
  br i1 %never, label %take, label %clock
clock:
  %now = call i64 @time()
  %calm = icmp slt i64 %now, %until
  %short = icmp ult i64 %grains, WORTH_WAKING
  %alone = and i1 %calm, %short
  br i1 %alone, label %plain, label %take
take:
  %team = call ptr @taken_team()
  %none = icmp eq ptr %team, null
  br i1 %none, label %plain, label %staff
plain:
  %stop = add i64 %first, %extent
  call void %f(ptr %args, i64 %first, i64 %stop)
  ret void
staff:
  %most = icmp ult i64 %n, MOST_THREADS
  %wanted = select i1 %most, i64 %n, i64 MOST_THREADS
  %seats = call i64 @staffed(ptr %team, i64 %wanted)
  %per0 = udiv i64 %grains, %seats
  %high = icmp ugt i64 %per0, PARTS
  %per1 = select i1 %high, i64 PARTS, i64 %per0
  %low = icmp eq i64 %per1, 0
  %per = select i1 %low, i64 1, i64 %per1
  %m = mul i64 %per, %seats
  %length = udiv i64 %extent, %m
  %long = icmp uge i64 %length, 512
  %mask = select i1 %long, i64 -64, i64 -1
  %w16 = getelementptr i64, ptr %team, i64 16
  store ptr @chunk, ptr %w16
  %w17 = getelementptr i64, ptr %team, i64 17
  store atomic i64 %seats, ptr %w17 monotonic, align 8
  %w18 = getelementptr i64, ptr %team, i64 18
  store i64 %m, ptr %w18
  %w19 = getelementptr i64, ptr %team, i64 19
  store ptr %f, ptr %w19
  %w20 = getelementptr i64, ptr %team, i64 20
  store ptr %args, ptr %w20
  %w21 = getelementptr i64, ptr %team, i64 21
  store i64 %first, ptr %w21
  %w22 = getelementptr i64, ptr %team, i64 22
  store i64 %extent, ptr %w22
  %w23 = getelementptr i64, ptr %team, i64 23
  store i64 %mask, ptr %w23
  %w25 = getelementptr i64, ptr %team, i64 25
  store ptr %note, ptr %w25
  call void @opened(ptr %team, i64 0)
  %own = getelementptr i64, ptr %team, i64 SEATS
  call void @work(ptr %team, ptr %own)
  call void @shut(ptr %team)
  call void @given_back(ptr %team)
  ret void
}

; start the helpers of a team of `n`: how many threads it has
define i64 @pool_start(i64 %n) {
entry:
  %team = call ptr @taken_team()
  %none = icmp eq ptr %team, null
  br i1 %none, label %one, label %staff
one:
  ret i64 1
staff:
  %seats = call i64 @staffed(ptr %team, i64 %n)
  call void @given_back(ptr %team)
  ret i64 %seats
}
"""

# What tells a processor that a loop waits.
_PAUSES = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "aarch64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"),
}


def pool_text(triple: str, futex: bool = True) -> str:
    """Return the pool for a target; with `futex` threads sleep by Linux's own call, if known."""
    processor, linux = triple.split("-")[0], "linux" in triple
    declared, pause = _PAUSES.get("aarch64" if processor == "arm64" else processor, ("", ""))
    call = FUTEX_CALLS.get(processor) if linux and futex else None
    values = {
        "CALM_LEAST": CALM_LEAST,
        "CALM_MOST": CALM_MOST,
        "HELPER_SPINS": HELPER_SPINS,
        "CALLER_SPINS": CALLER_SPINS,
        "MOST_THREADS": MOST_THREADS,
        "TEAM_BYTES": _TEAM_BYTES,
        "HEAD_BYTES": 8 * _SEATS,
        "SEAT_BYTES": 8 * _SEAT,
        "PAUSES": PAUSES,
        "PAUSE": pause,
        "PARTS": PARTS,
        "WORTH_WAKING": WORTH_WAKING,
        "BRIEF": BRIEF,
        "GAP": GAP,
        "LONG_GAP": LONG_GAP,
        "OFTEN": OFTEN,
        "MONOTONIC": 1 if linux else 6,
        "SET_MASK": 2 if linux else 3,
        "BEGIN_SLEEP": "" if call else "call void @begin_sleep()",
        "FUTEX": call,
        "SEATS": _SEATS,
        "SEAT": _SEAT,
    }
    text = declared + (FUTEX if call else CONDITION) + _POOL + HELPERS + TEAMS
    return re.sub("|".join(rf"\b{name}\b" for name in values), lambda found: str(values[found[0]]), text)
