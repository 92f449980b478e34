"""Early exits of a run (an index out of range, a signal) and the log of traces, as LLVM IR.

The word `status` of a program is 0 unless something ends the run early. A kernel that finds an
index out of range stores the address of a record there, whose first word is the index (`Site`);
other causes store a small number, which Python reads. The word belongs to the call: one thread at a
time runs a program, under Python's lock or the program's mutex.

While a log is set (`mycel_log`: its room, its length, then records of `RECORD` words), each event
adds a record (what, key, begin, end, thread): 0 is a step and 2 a thread's part of one, with their
arguments as the key; 1 is a run of a program, with its table; 3 is memory taken and 4 memory given
back, with its address, and its bytes in place of the end. Times are nanoseconds of the monotonic
clock.
"""

from __future__ import annotations

__all__ = ["SIGNALS"]

SIGNALS = r"""
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

; the index that a status of a run names (0 for a signal), after which the status is free; called before another thread
; may run the program
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

; what kernels with long rows ask: whether the run is to end, by a signal that is heard now or by what another
; thread found
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
"""
