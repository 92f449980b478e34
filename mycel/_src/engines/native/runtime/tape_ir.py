"""The tape of a loop's states, as LLVM IR: a part of the runtime (`runtime_ir`).

A tape's header is eight words: memory, entries that fit, entries, stride, rounds, rounds left.
`push` is called before each round (iteration) and keeps the state if the stride divides the number
of the round. The memory grows twofold; or, where the tape is to stay near the square root of the
number of rounds and has more entries than its stride, every second entry is dropped and the stride
doubles. `pop` restores the last entry, with the number of rounds from there to the next one as
rounds left. It frees the memory when no entry is left, or when the status says that the run is
over. `count` says whether a round is left. If there is no memory, `push` drops everything and sets
the program's status to 2, at which loops end.
"""

from __future__ import annotations

__all__ = ["TAPE", "TAPE_SYMBOLS"]

TAPE_SYMBOLS = ("mycel_tape_begin", "mycel_tape_push", "mycel_tape_pop", "mycel_tape_count")

# Words of a step: header, bytes of an entry, whether to stay near the root, status, predicate,
# number of buffers, then (address, bytes) of each.
TAPE = r"""
define void @mycel_tape_begin(ptr %args, i64 %begin, i64 %end) {
  %h = load ptr, ptr %args
  store <8 x i64> <i64 0, i64 0, i64 0, i64 1, i64 0, i64 0, i64 0, i64 0>, ptr %h, align 8
  ret void
}

define void @mycel_tape_push(ptr %args, i64 %begin, i64 %end) {
entry:
  %h = load ptr, ptr %args
  %a1 = getelementptr i64, ptr %args, i64 1
  %bytes = load i64, ptr %a1
  %a2 = getelementptr i64, ptr %args, i64 2
  %root = load i64, ptr %a2
  %a5 = getelementptr i64, ptr %args, i64 5
  %m = load i64, ptr %a5
  %h1 = getelementptr i64, ptr %h, i64 1
  %h2 = getelementptr i64, ptr %h, i64 2
  %h3 = getelementptr i64, ptr %h, i64 3
  %h4 = getelementptr i64, ptr %h, i64 4
  %rounds = load i64, ptr %h4
  %next = add i64 %rounds, 1
  store i64 %next, ptr %h4
  %stride = load i64, ptr %h3
  %every = icmp eq i64 %stride, 1
  br i1 %every, label %room, label %divide
divide:
  %rest = urem i64 %rounds, %stride
  %hit = icmp eq i64 %rest, 0
  br i1 %hit, label %room, label %done
room:
  %count = load i64, ptr %h2
  %capacity = load i64, ptr %h1
  %full = icmp uge i64 %count, %capacity
  br i1 %full, label %make, label %store
make:
  %near = icmp ne i64 %root, 0
  %more = icmp ugt i64 %capacity, %stride
  %some = icmp uge i64 %capacity, 16
  %both = and i1 %more, %some
  %drop = and i1 %both, %near
  br i1 %drop, label %thin, label %grow
grow:
  %none = icmp eq i64 %capacity, 0
  %double = shl i64 %capacity, 1
  %wanted = select i1 %none, i64 16, i64 %double
  %size = mul i64 %wanted, %bytes
  %old = load ptr, ptr %h
  %new = call ptr @realloc(ptr %old, i64 %size)
  %failed = icmp eq ptr %new, null
  br i1 %failed, label %short, label %grown
grown:
  store ptr %new, ptr %h
  store i64 %wanted, ptr %h1
  br label %store
short:
  call void @free(ptr %old)
  store ptr null, ptr %h
  store i64 0, ptr %h1
  store i64 0, ptr %h2
  %a3 = getelementptr i64, ptr %args, i64 3
  %status = load ptr, ptr %a3
  store i64 2, ptr %status
  br label %done
thin:
  %memory = load ptr, ptr %h
  %half = lshr i64 %capacity, 1
  br label %move
move:
  %i = phi i64 [ 1, %thin ], [ %i1, %move ]
  %to = mul i64 %i, %bytes
  %from = shl i64 %to, 1
  %target = getelementptr i8, ptr %memory, i64 %to
  %source = getelementptr i8, ptr %memory, i64 %from
  call void @llvm.memcpy.p0.p0.i64(ptr %target, ptr %source, i64 %bytes, i1 false)
  %i1 = add i64 %i, 1
  %moving = icmp ult i64 %i1, %half
  br i1 %moving, label %move, label %thinned
thinned:
  store i64 %half, ptr %h2
  %wider = shl i64 %stride, 1
  store i64 %wider, ptr %h3
  br label %store
store:
  %slot = load i64, ptr %h2
  %base = load ptr, ptr %h
  %offset = mul i64 %slot, %bytes
  %place = getelementptr i8, ptr %base, i64 %offset
  %taken = add i64 %slot, 1
  store i64 %taken, ptr %h2
  br label %copy
copy:
  %j = phi i64 [ 0, %store ], [ %j1, %put ]
  %at = phi ptr [ %place, %store ], [ %after, %put ]
  %left = icmp ult i64 %j, %m
  br i1 %left, label %put, label %done
put:
  %j2 = shl i64 %j, 1
  %k = add i64 %j2, 6
  %pp = getelementptr i64, ptr %args, i64 %k
  %state = load ptr, ptr %pp
  %k1 = add i64 %k, 1
  %pn = getelementptr i64, ptr %args, i64 %k1
  %n = load i64, ptr %pn
  call void @llvm.memcpy.p0.p0.i64(ptr %at, ptr %state, i64 %n, i1 false)
  %after = getelementptr i8, ptr %at, i64 %n
  %j1 = add i64 %j, 1
  br label %copy
done:
  ret void
}

define void @mycel_tape_pop(ptr %args, i64 %begin, i64 %end) {
entry:
  %h = load ptr, ptr %args
  %a1 = getelementptr i64, ptr %args, i64 1
  %bytes = load i64, ptr %a1
  %a4 = getelementptr i64, ptr %args, i64 4
  %pred = load ptr, ptr %a4
  %a5 = getelementptr i64, ptr %args, i64 5
  %m = load i64, ptr %a5
  %h1 = getelementptr i64, ptr %h, i64 1
  %h2 = getelementptr i64, ptr %h, i64 2
  %h3 = getelementptr i64, ptr %h, i64 3
  %h4 = getelementptr i64, ptr %h, i64 4
  %h5 = getelementptr i64, ptr %h, i64 5
  %count = load i64, ptr %h2
  %memory = load ptr, ptr %h
  %empty = icmp eq i64 %count, 0
  %a3 = getelementptr i64, ptr %args, i64 3
  %status = load ptr, ptr %a3
  %failed = load i64, ptr %status
  %broken = icmp ne i64 %failed, 0
  %over = or i1 %empty, %broken
  br i1 %over, label %end0, label %take
end0:
  call void @free(ptr %memory)
  store ptr null, ptr %h
  store i64 0, ptr %h1
  store i64 0, ptr %h2
  store i8 0, ptr %pred
  ret void
take:
  %slot = sub i64 %count, 1
  store i64 %slot, ptr %h2
  %stride = load i64, ptr %h3
  %rounds = load i64, ptr %h4
  %first = mul i64 %slot, %stride
  %remaining = sub i64 %rounds, %first
  store i64 %remaining, ptr %h5
  store i64 %first, ptr %h4
  %offset = mul i64 %slot, %bytes
  %place = getelementptr i8, ptr %memory, i64 %offset
  store i8 1, ptr %pred
  br label %copy
copy:
  %j = phi i64 [ 0, %take ], [ %j1, %put ]
  %at = phi ptr [ %place, %take ], [ %after, %put ]
  %left = icmp ult i64 %j, %m
  br i1 %left, label %put, label %done
put:
  %j2 = shl i64 %j, 1
  %k = add i64 %j2, 6
  %pp = getelementptr i64, ptr %args, i64 %k
  %state = load ptr, ptr %pp
  %k1 = add i64 %k, 1
  %pn = getelementptr i64, ptr %args, i64 %k1
  %n = load i64, ptr %pn
  call void @llvm.memcpy.p0.p0.i64(ptr %state, ptr %at, i64 %n, i1 false)
  %after = getelementptr i8, ptr %at, i64 %n
  %j1 = add i64 %j, 1
  br label %copy
done:
  ret void
}

define void @mycel_tape_count(ptr %args, i64 %begin, i64 %end) {
  %h = load ptr, ptr %args
  %a4 = getelementptr i64, ptr %args, i64 4
  %pred = load ptr, ptr %a4
  %h5 = getelementptr i64, ptr %h, i64 5
  %left = load i64, ptr %h5
  %any = icmp ne i64 %left, 0
  %taken = zext i1 %any to i64
  %now = sub i64 %left, %taken
  store i64 %now, ptr %h5
  %flag = zext i1 %any to i8
  store i8 %flag, ptr %pred
  ret void
}
"""
