"""The OpenMP functions that the dense library calls, implemented on the thread pool, in LLVM IR.

A parallel region of `n` threads is work of `n` items, one for each number of a thread. Threads of
a region may wait for each other, at barriers or by words of their own, so parts that have begun
must all go on. They do: there are as many threads as parts, and a thread has one part at a time. So
whoever is done, the caller too, may take a part that nobody has begun. If the parts wait for each
other nobody is done before all have begun; if they do not, the order is free.

A region inside of a part is that part's alone, as nested regions are in OpenMP by default.
"""

from __future__ import annotations

__all__ = ["OPENMP", "TEAMS", "TEAM_SYMBOLS"]

# Names in the pool by the library's names.
OPENMP = {
    "GOMP_parallel": "team_parallel",
    "GOMP_parallel_start": "team_start",
    "GOMP_parallel_end": "team_end",
    "GOMP_barrier": "team_barrier",
    "GOMP_loop_static_start": "team_loop",
    "GOMP_loop_static_next": "team_loop_next",
    "GOMP_loop_end_nowait": "team_loop_end",
    "omp_get_max_threads": "team_most",
    "omp_get_num_threads": "team_size",
    "omp_get_thread_num": "team_number",
    "omp_in_parallel": "team_inside",
    "omp_set_num_threads": "team_set",
}
TEAM_SYMBOLS = tuple(OPENMP.values())

_MESSAGE = "mycel: the system starts no more threads; lower runtime_num_threads or OMP_NUM_THREADS"

TEAMS = r"""
@most_key = internal global i64 0
@most_threads = internal global i64 1
@no_threads = private constant [LENGTH x i8] c"MESSAGE\0A"
declare i64 @write(i32, ptr, i64)
declare void @abort()

; an item of a region: words 19 its function, 20 what that is given
define internal void @region_part(ptr %team, ptr %seat, i64 %i) {
  %pn = getelementptr i64, ptr %seat, i64 11
  store i64 %i, ptr %pn
  %pf = getelementptr i64, ptr %team, i64 19
  %f = load ptr, ptr %pf
  %pd = getelementptr i64, ptr %team, i64 20
  %data = load ptr, ptr %pd
  call void %f(ptr %data)
  ret void
}

define internal ptr @own_seat() {
  %key = load i64, ptr @seat_key
  %seat = call ptr @pthread_getspecific(i64 %key)
  ret ptr %seat
}

; this thread's number in its team, and the size of that
define internal { i64, i64 } @standing() {
entry:
  %seat = call ptr @own_seat()
  %none = icmp eq ptr %seat, null
  br i1 %none, label %alone, label %look
look:
  %pd = getelementptr i64, ptr %seat, i64 12
  %depth = load i64, ptr %pd
  %nested = icmp ne i64 %depth, 0
  br i1 %nested, label %alone, label %member
alone:
  ret { i64, i64 } { i64 0, i64 1 }
member:
  %pn = getelementptr i64, ptr %seat, i64 11
  %number = load i64, ptr %pn
  %pt = getelementptr i64, ptr %seat, i64 9
  %team = load ptr, ptr %pt
  %ps = getelementptr i64, ptr %team, i64 17
  %size = load i64, ptr %ps
  %r0 = insertvalue { i64, i64 } undef, i64 %number, 0
  %r1 = insertvalue { i64, i64 } %r0, i64 %size, 1
  ret { i64, i64 } %r1
}

define i32 @team_number() {
  %s = call { i64, i64 } @standing()
  %n = extractvalue { i64, i64 } %s, 0
  %r = trunc i64 %n to i32
  ret i32 %r
}

define i32 @team_size() {
  %s = call { i64, i64 } @standing()
  %n = extractvalue { i64, i64 } %s, 1
  %r = trunc i64 %n to i32
  ret i32 %r
}

define i32 @team_inside() {
entry:
  %seat = call ptr @own_seat()
  %none = icmp eq ptr %seat, null
  br i1 %none, label %no, label %look
no:
  ret i32 0
look:
  %pt = getelementptr i64, ptr %seat, i64 9
  %team = load ptr, ptr %pt
  %ps = getelementptr i64, ptr %team, i64 17
  %size = load i64, ptr %ps
  %many = icmp ugt i64 %size, 1
  %r = zext i1 %many to i32
  ret i32 %r
}

; how many threads the regions have that this thread opens
define void @team_set(i32 %n) {
  %wide = zext i32 %n to i64
  %value = inttoptr i64 %wide to ptr
  %key = load i64, ptr @most_key
  %r = call i32 @pthread_setspecific(i64 %key, ptr %value)
  ret void
}

define i32 @team_most() {
entry:
  %key = load i64, ptr @most_key
  %value = call ptr @pthread_getspecific(i64 %key)
  %wide = ptrtoint ptr %value to i64
  %n = trunc i64 %wide to i32
  %unset = icmp eq i32 %n, 0
  br i1 %unset, label %look, label %told
told:
  ret i32 %n
look:
  %usual = load i64, ptr @most_threads
  %r = trunc i64 %usual to i32
  ret i32 %r
}

define void @team_start(ptr %f, ptr %data, i32 %asked) {
entry:
  %seat = call ptr @own_seat()
  %outside = icmp eq ptr %seat, null
  br i1 %outside, label %count, label %inner
inner:
  %pd = getelementptr i64, ptr %seat, i64 12
  %depth = load i64, ptr %pd
  %deeper = add i64 %depth, 1
  store i64 %deeper, ptr %pd
  ret void
count:
  %most = call i32 @team_most()
  %default = icmp eq i32 %asked, 0
  %n32 = select i1 %default, i32 %most, i32 %asked
  %n = zext i32 %n32 to i64
  %large = icmp ugt i64 %n, MOST_THREADS
  br i1 %large, label %fail, label %take
take:
  %team = call ptr @taken_team()
  %none = icmp eq ptr %team, null
  br i1 %none, label %fail, label %staff
staff:
  %tries = phi i64 [ 0, %take ], [ %tries1, %wait ]
  %has = call i64 @staffed(ptr %team, i64 %n)
  %enough = icmp uge i64 %has, %n
  br i1 %enough, label %go, label %short
short:
  %tries1 = add i64 %tries, 1
  %hopeless = icmp ugt i64 %tries1, 2000
  br i1 %hopeless, label %fail, label %wait
wait:
  %slept = call i32 @usleep(i32 1000)
  br label %staff
fail:
  %told = call i64 @write(i32 2, ptr @no_threads, i64 LENGTH)
  call void @abort()
  unreachable
go:
  %w16 = getelementptr i64, ptr %team, i64 16
  store ptr @region_part, ptr %w16
  %w17 = getelementptr i64, ptr %team, i64 17
  store atomic i64 %n, ptr %w17 monotonic, align 8
  %w18 = getelementptr i64, ptr %team, i64 18
  store i64 %n, ptr %w18
  %w19 = getelementptr i64, ptr %team, i64 19
  store ptr %f, ptr %w19
  %w20 = getelementptr i64, ptr %team, i64 20
  store ptr %data, ptr %w20
  %w25 = getelementptr i64, ptr %team, i64 25
  store ptr null, ptr %w25
  %own = getelementptr i64, ptr %team, i64 SEATS
  %pn = getelementptr i64, ptr %own, i64 11
  store i64 0, ptr %pn
  %key = load i64, ptr @seat_key
  %set = call i32 @pthread_setspecific(i64 %key, ptr %own)
  call void @opened(ptr %team, i64 1)
  ret void
}

define void @team_end() {
entry:
  %seat = call ptr @own_seat()
  %pd = getelementptr i64, ptr %seat, i64 12
  %depth = load i64, ptr %pd
  %inner = icmp ne i64 %depth, 0
  br i1 %inner, label %up, label %close
up:
  %less = sub i64 %depth, 1
  store i64 %less, ptr %pd
  ret void
close:
  %pt = getelementptr i64, ptr %seat, i64 9
  %team = load ptr, ptr %pt
  call void @work(ptr %team, ptr %seat)
  call void @shut(ptr %team)
  %key = load i64, ptr @seat_key
  %set = call i32 @pthread_setspecific(i64 %key, ptr null)
  call void @given_back(ptr %team)
  ret void
}

define void @team_parallel(ptr %f, ptr %data, i32 %n, i32 %flags) {
  call void @team_start(ptr %f, ptr %data, i32 %n)
  call void %f(ptr %data)
  call void @team_end()
  ret void
}

define void @team_barrier() {
entry:
  %s = call { i64, i64 } @standing()
  %n = extractvalue { i64, i64 } %s, 1
  %alone = icmp ult i64 %n, 2
  br i1 %alone, label %done, label %arrive
arrive:
  %seat = call ptr @own_seat()
  %pt = getelementptr i64, ptr %seat, i64 9
  %team = load ptr, ptr %pt
  %pc = getelementptr i64, ptr %team, i64 32
  %pp = getelementptr i64, ptr %team, i64 33
  %ps = getelementptr i64, ptr %team, i64 34
  %phase = load atomic i32, ptr %pp seq_cst, align 4
  %before = atomicrmw add ptr %pc, i64 1 seq_cst
  %here = add i64 %before, 1
  %all = icmp eq i64 %here, %n
  br i1 %all, label %pass, label %wait
pass:
  store atomic i64 0, ptr %pc seq_cst, align 8
  %passed = atomicrmw add ptr %pp, i32 1 seq_cst
  %sleepers = load atomic i64, ptr %ps seq_cst, align 8
  %some = icmp ne i64 %sleepers, 0
  br i1 %some, label %wake, label %done
wake:
  call void @wake(ptr %pp, i32 MOST_THREADS)
  br label %done
wait:
  %most = load i64, ptr @caller_spins
  %begun = call i64 @time()
  br label %spin
spin:
  %last = phi i64 [ %begun, %wait ], [ %now, %tire ]
  %now = call i64 @spun(i64 %begun, i64 %last, i64 %most)
  %phase1 = load atomic i32, ptr %pp seq_cst, align 4
  %moved = icmp ne i32 %phase1, %phase
  br i1 %moved, label %done, label %tire
tire:
  %tired = icmp eq i64 %now, 0
  br i1 %tired, label %lie, label %spin
lie:
  %more = atomicrmw add ptr %ps, i64 1 seq_cst
  br label %sleep
sleep:
  %phase2 = load atomic i32, ptr %pp seq_cst, align 4
  %moved2 = icmp ne i32 %phase2, %phase
  br i1 %moved2, label %rise, label %down
down:
  call void @sleep(ptr %pp, i32 %phase)
  br label %sleep
rise:
  %less = atomicrmw sub ptr %ps, i64 1 seq_cst
  br label %done
done:
  ret void
}

; a part's share of a loop, in one piece: whether there is any
define i8 @team_loop(i64 %start, i64 %end, i64 %step, i64 %chunk, ptr %from, ptr %to) {
entry:
  %s = call { i64, i64 } @standing()
  %number = extractvalue { i64, i64 } %s, 0
  %n = extractvalue { i64, i64 } %s, 1
  %up = icmp sgt i64 %step, 0
  %back = select i1 %up, i64 -1, i64 1
  %d0 = sub i64 %end, %start
  %d1 = add i64 %d0, %step
  %d2 = add i64 %d1, %back
  %rounds = sdiv i64 %d2, %step
  %any = icmp sgt i64 %rounds, 0
  br i1 %any, label %cut, label %no
no:
  ret i8 0
cut:
  %b0 = mul i64 %rounds, %number
  %b = sdiv i64 %b0, %n
  %next = add i64 %number, 1
  %e0 = mul i64 %rounds, %next
  %e = sdiv i64 %e0, %n
  %some = icmp slt i64 %b, %e
  br i1 %some, label %yes, label %no
yes:
  %b1 = mul i64 %b, %step
  %b2 = add i64 %start, %b1
  store i64 %b2, ptr %from
  %e1 = mul i64 %e, %step
  %e2 = add i64 %start, %e1
  store i64 %e2, ptr %to
  ret i8 1
}

define i8 @team_loop_next(ptr %from, ptr %to) {
  ret i8 0
}

define void @team_loop_end() {
  ret void
}
""".replace("LENGTH", str(len(_MESSAGE) + 1)).replace("MESSAGE", _MESSAGE)
