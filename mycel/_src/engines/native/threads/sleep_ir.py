"""Sleep and wake-up of threads (futex), and the cores that helpers run on, in LLVM IR.

On Linux a thread sleeps by the system's own call, and a helper of a calm team leaves the caller's
core to the caller, where the process may run on others: the system likes to wake a thread on the
core of who wakes it. When the team is not calm any more the helper may run there again. Elsewhere a
condition variable serves all, and the system's choice of cores stands.
"""

from __future__ import annotations

__all__ = ["CONDITION", "FUTEX", "FUTEX_CALLS"]

# Numbers of the system call by processor.
FUTEX_CALLS = {"x86_64": 202, "aarch64": 98, "riscv64": 98, "powerpc64le": 221, "s390x": 238}

FUTEX = r"""
declare i64 @syscall(i64, ...)
declare i32 @sched_getcpu()
declare i32 @sched_getaffinity(i32, i64, ptr)
declare i32 @sched_setaffinity(i32, i64, ptr)
declare i32 @memcmp(ptr, ptr, i64)

define internal void @sleep(ptr %word, i32 %value) {
  %r = call i64 (i64, ...) @syscall(i64 FUTEX, ptr %word, i32 128, i32 %value, ptr null)
  ret void
}
define internal void @wake(ptr %word, i32 %count) {
  %r = call i64 (i64, ...) @syscall(i64 FUTEX, ptr %word, i32 129, i32 %count)
  ret void
}
define internal i32 @own_core() {
  %r = call i32 @sched_getcpu()
  ret i32 %r
}

; a helper that was woken on the caller's core keeps the caller from working: leave that core to it, if others are
; allowed; words of a seat: 14 the core and 1, 16 to 31 the cores that remained
define internal void @step_aside(ptr %team, ptr %seat) {
entry:
  %pcore = getelementptr i64, ptr %team, i64 29
  %core = load i32, ptr %pcore
  %own = call i32 @sched_getcpu()
  %same = icmp eq i32 %core, %own
  %known = icmp ult i32 %own, 1024
  %goes = and i1 %same, %known
  br i1 %goes, label %undo, label %done
undo:
  call void @step_back(ptr %seat)
  %mask = getelementptr i64, ptr %seat, i64 16
  call void @llvm.memset.p0.i64(ptr %mask, i8 0, i64 128, i1 false)
  %r = call i32 @sched_getaffinity(i32 0, i64 128, ptr %mask)
  %bad = icmp slt i32 %r, 0
  br i1 %bad, label %done, label %clear
clear:
  %c = zext i32 %own to i64
  %word = lshr i64 %c, 6
  %bit = and i64 %c, 63
  %one = shl i64 1, %bit
  %rest = xor i64 %one, -1
  %pw = getelementptr i64, ptr %mask, i64 %word
  %before = load i64, ptr %pw
  %after = and i64 %before, %rest
  store i64 %after, ptr %pw
  ; an empty set is refused
  %r2 = call i32 @sched_setaffinity(i32 0, i64 128, ptr %mask)
  %refused = icmp ne i32 %r2, 0
  br i1 %refused, label %done, label %note
note:
  %paside = getelementptr i64, ptr %seat, i64 14
  %c1 = add i64 %c, 1
  store i64 %c1, ptr %paside
  br label %done
done:
  ret void
}

; let a helper run where it might before, unless somebody else has said meanwhile where it may
define internal void @step_back(ptr %seat) {
entry:
  %now = alloca [16 x i64]
  %paside = getelementptr i64, ptr %seat, i64 14
  %c1 = load i64, ptr %paside
  %none = icmp eq i64 %c1, 0
  br i1 %none, label %done, label %ask
ask:
  store i64 0, ptr %paside
  call void @llvm.memset.p0.i64(ptr %now, i8 0, i64 128, i1 false)
  %mask = getelementptr i64, ptr %seat, i64 16
  %r = call i32 @sched_getaffinity(i32 0, i64 128, ptr %now)
  %differ = call i32 @memcmp(ptr %now, ptr %mask, i64 128)
  %changed = icmp ne i32 %differ, 0
  br i1 %changed, label %done, label %set
set:
  %c = sub i64 %c1, 1
  %word = lshr i64 %c, 6
  %bit = and i64 %c, 63
  %one = shl i64 1, %bit
  %pw = getelementptr i64, ptr %now, i64 %word
  %before = load i64, ptr %pw
  %after = or i64 %before, %one
  store i64 %after, ptr %pw
  %r2 = call i32 @sched_setaffinity(i32 0, i64 128, ptr %now)
  br label %done
done:
  ret void
}
"""
CONDITION = r"""
@sleep_mutex = internal global [16 x i64] zeroinitializer
@sleep_condition = internal global [16 x i64] zeroinitializer
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)
define internal void @begin_sleep() {
  %m = call i32 @pthread_mutex_init(ptr @sleep_mutex, ptr null)
  %c = call i32 @pthread_cond_init(ptr @sleep_condition, ptr null)
  ret void
}
define internal void @sleep(ptr %word, i32 %value) {
entry:
  %l = call i32 @pthread_mutex_lock(ptr @sleep_mutex)
  br label %look
look:
  %v = load atomic i32, ptr %word seq_cst, align 4
  %same = icmp eq i32 %v, %value
  br i1 %same, label %wait, label %done
wait:
  %w = call i32 @pthread_cond_wait(ptr @sleep_condition, ptr @sleep_mutex)
  br label %look
done:
  %u = call i32 @pthread_mutex_unlock(ptr @sleep_mutex)
  ret void
}
define internal void @wake(ptr %word, i32 %count) {
  %l = call i32 @pthread_mutex_lock(ptr @sleep_mutex)
  %b = call i32 @pthread_cond_broadcast(ptr @sleep_condition)
  %u = call i32 @pthread_mutex_unlock(ptr @sleep_mutex)
  ret void
}

define internal i32 @own_core() {
  ret i32 0
}
define internal void @step_aside(ptr %team, ptr %seat) {
  ret void
}
define internal void @step_back(ptr %seat) {
  ret void
}
"""
