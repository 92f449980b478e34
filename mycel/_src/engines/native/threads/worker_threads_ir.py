"""The pool's worker threads (*helpers* of teams): how they start, wait, work and end, in LLVM IR.

A helper that goes to sleep says so, and then looks once more whether there is work; who opens the
gate writes the gate and then looks who sleeps. So one of the two sees the other. The same holds for
a caller that sleeps and the last helper that leaves.
"""

from __future__ import annotations

__all__ = ["HELPERS"]

HELPERS = r"""
define internal ptr @helper(ptr %seat) {
entry:
  %key = load i64, ptr @seat_key
  %r = call i32 @pthread_setspecific(i64 %key, ptr %seat)
  %pasleep = getelementptr i64, ptr %seat, i64 8
  %pteam = getelementptr i64, ptr %seat, i64 9
  %team = load ptr, ptr %pteam
  %pi = getelementptr i64, ptr %seat, i64 10
  %own = load i64, ptr %pi
  %pn = getelementptr i64, ptr %team, i64 17
  %pwaits = getelementptr i64, ptr %team, i64 8
  %pquit = getelementptr i64, ptr %team, i64 28
  br label %begin
begin:
  %last = phi i64 [ 0, %entry ], [ %last, %nap ], [ %count, %left ]
  %begun = call i64 @time()
  br label %look
look:
  %before = phi i64 [ %begun, %begin ], [ %before, %again ], [ %now, %spin ]
  %gate = load atomic i64, ptr %team seq_cst, align 8
  %count = lshr i64 %gate, 17
  %is_new = icmp ne i64 %count, %last
  %bit = and i64 %gate, 65536
  %is_open = icmp ne i64 %bit, 0
  %offered = and i1 %is_new, %is_open
  br i1 %offered, label %mine, label %idle
mine:
  %n = load atomic i64, ptr %pn monotonic, align 8
  %seated = icmp ult i64 %own, %n
  br i1 %seated, label %enter, label %idle
gone:
  ret ptr null
enter:
  %inside = add i64 %gate, 1
  %swap = cmpxchg ptr %team, i64 %gate, i64 %inside seq_cst seq_cst
  %in = extractvalue { i64, i1 } %swap, 1
  br i1 %in, label %go, label %again
again:
  br label %look
go:
  %until1 = load atomic i64, ptr @calm_until monotonic, align 8
  %calm1 = icmp slt i64 %before, %until1
  br i1 %calm1, label %aside, label %begin_work
aside:
  call void @step_aside(ptr %team, ptr %seat)
  br label %begin_work
begin_work:
  call void @work(ptr %team, ptr %seat)
  %old = atomicrmw sub ptr %team, i64 1 seq_cst
  %low = and i64 %old, 131071
  %was_last = icmp eq i64 %low, 1
  br i1 %was_last, label %tell, label %left
tell:
  %waits = load atomic i32, ptr %pwaits seq_cst, align 4
  %asleep = icmp ne i32 %waits, 0
  br i1 %asleep, label %wake, label %left
wake:
  store atomic i32 0, ptr %pwaits seq_cst, align 4
  call void @wake(ptr %pwaits, i32 1)
  br label %left
left:
  br label %begin
idle:
  %quits = load atomic i64, ptr %pquit monotonic, align 8
  %ends = icmp ne i64 %quits, 0
  br i1 %ends, label %gone, label %stay
stay:
  %most = load i64, ptr @helper_spins
  %until = load atomic i64, ptr @calm_until monotonic, align 8
  %calm = icmp slt i64 %before, %until
  br i1 %calm, label %sleep, label %alert
alert:
  %paside = getelementptr i64, ptr %seat, i64 14
  %gone_aside = load i64, ptr %paside
  %is_aside = icmp ne i64 %gone_aside, 0
  br i1 %is_aside, label %return, label %spin
return:
  call void @step_back(ptr %seat)
  br label %spin
spin:
  %now = call i64 @spun(i64 %begun, i64 %before, i64 %most)
  %tired = icmp eq i64 %now, 0
  br i1 %tired, label %sleep, label %look
sleep:
  store atomic i32 1, ptr %pasleep seq_cst, align 4
  %gate2 = load atomic i64, ptr %team seq_cst, align 8
  %count2 = lshr i64 %gate2, 17
  %is_new2 = icmp ne i64 %count2, %last
  %bit2 = and i64 %gate2, 65536
  %is_open2 = icmp ne i64 %bit2, 0
  %offered2 = and i1 %is_new2, %is_open2
  %n2 = load atomic i64, ptr %pn monotonic, align 8
  %seated2 = icmp ult i64 %own, %n2
  %works = and i1 %offered2, %seated2
  %quits2 = load atomic i64, ptr %pquit seq_cst, align 8
  %ends2 = icmp ne i64 %quits2, 0
  %stays = or i1 %works, %ends2
  br i1 %stays, label %nap, label %down
down:
  call void @sleep(ptr %pasleep, i32 1)
  br label %nap
nap:
  store atomic i32 0, ptr %pasleep seq_cst, align 4
  br label %begin
}

; a seat that nobody has had
define internal ptr @furnished(ptr %team, i64 %k) {
  %at0 = mul i64 %k, SEAT
  %at = add i64 %at0, SEATS
  %seat = getelementptr i64, ptr %team, i64 %at
  call void @llvm.memset.p0.i64(ptr %seat, i8 0, i64 SEAT_BYTES, i1 false)
  %pteam = getelementptr i64, ptr %seat, i64 9
  store ptr %team, ptr %pteam
  %pi = getelementptr i64, ptr %seat, i64 10
  store i64 %k, ptr %pi
  ret ptr %seat
}

; helpers for `n` seats: how many seats there are
define internal i64 @staffed(ptr %team, i64 %n) {
entry:
  %ph = getelementptr i64, ptr %team, i64 26
  %all = alloca [32 x i64]
  %old = alloca [32 x i64]
  %has = load i64, ptr %ph
  %enough = icmp uge i64 %has, %n
  br i1 %enough, label %yes, label %mask
yes:
  ret i64 %n
mask:
  %r0 = call i32 @sigfillset(ptr %all)
  %r1 = call i32 @pthread_sigmask(i32 SET_MASK, ptr %all, ptr %old)
  br label %loop
loop:
  %k = phi i64 [ %has, %mask ], [ %k1, %made ]
  %seat = call ptr @furnished(ptr %team, i64 %k)
  %pthread = getelementptr i64, ptr %seat, i64 13
  %failed = call i32 @pthread_create(ptr %pthread, ptr null, ptr @helper, ptr %seat)
  %sound = icmp eq i32 %failed, 0
  br i1 %sound, label %made, label %over
made:
  %k1 = add i64 %k, 1
  store i64 %k1, ptr %ph
  %more = icmp ult i64 %k1, %n
  br i1 %more, label %loop, label %over
over:
  %r3 = call i32 @pthread_sigmask(i32 SET_MASK, ptr %old, ptr null)
  %got = load i64, ptr %ph
  ret i64 %got
}

; end the helpers of a team that nobody has
define internal void @dismissed(ptr %team) {
entry:
  %ph = getelementptr i64, ptr %team, i64 26
  %has = load i64, ptr %ph
  %pquit = getelementptr i64, ptr %team, i64 28
  %seats = getelementptr i64, ptr %team, i64 SEATS
  store atomic i64 1, ptr %pquit seq_cst, align 8
  br label %bell
bell:
  %k = phi i64 [ 1, %entry ], [ %k1, %rung ]
  %some = icmp ult i64 %k, %has
  br i1 %some, label %ring, label %over
ring:
  %at = mul i64 %k, SEAT
  %seat = getelementptr i64, ptr %seats, i64 %at
  %pa = getelementptr i64, ptr %seat, i64 8
  store atomic i32 0, ptr %pa seq_cst, align 4
  call void @wake(ptr %pa, i32 1)
  %pthread = getelementptr i64, ptr %seat, i64 13
  %id = load i64, ptr %pthread
  %r = call i32 @pthread_join(i64 %id, ptr null)
  br label %rung
rung:
  %k1 = add i64 %k, 1
  br label %bell
over:
  store i64 1, ptr %ph
  store atomic i64 0, ptr %pquit seq_cst, align 8
  ret void
}
"""
