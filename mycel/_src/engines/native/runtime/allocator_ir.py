"""The allocator of the native runtime, as LLVM IR; its calls run under Python's lock.

Small freed blocks of a size class (four to a power of two) are kept in a list for the next
allocation. Large blocks are cut from segments (`large_block_allocator_ir`). Writing memory that was
used before takes a thirtieth of the time of new memory, so as many bytes may be reserved as were in
use at one time, and a sixteenth more; that mark falls slowly while large blocks come and go. Where
an allocation would exceed the program's limit, or the system has no more memory, all that is free
is given back. Requests for more than all of the machine's memory are refused at once, as systems
promise more than they have.

`MEMORY` names the words of the account. A block begins with its class, a link, its size, the bytes
requested and those taken from the system.
"""

from __future__ import annotations

from mycel._src.engines.native.runtime.large_block_allocator_ir import LARGE, PIECE_CLASS, PIECES

__all__ = ["ALLOCATOR", "MEMORY"]

MEMORY = ("allocated", "most_allocated", "reserved", "most_reserved", "limit", "blocks", "machine")

ALLOCATOR = r"""
@free_lists = internal global [256 x ptr] zeroinitializer
@peak = internal global i64 0
@account = internal global [7 x i64] [i64 0, i64 0, i64 0, i64 0, i64 9223372036854775807, i64 0,
    i64 9223372036854775807]

declare ptr @aligned_alloc(i64, i64)
declare void @free(ptr)
declare i32 @madvise(ptr, i64, i32)
declare i64 @llvm.ctlz.i64(i64, i1)

define internal ptr @allocate(i64 %bytes) {
  %data = call ptr @obtain(i64 %bytes)
  %log = load ptr, ptr @log
  %logs = icmp ne ptr %log, null
  br i1 %logs, label %told, label %done
told:
  %t = call i64 @now()
  call void @note(ptr %log, i64 3, ptr %data, i64 %t, i64 %bytes)
  br label %done
done:
  ret ptr %data
}

define internal ptr @obtain(i64 %bytes) {
  %small = icmp ult i64 %bytes, 64
  %n = select i1 %small, i64 64, i64 %bytes
  %large = icmp uge i64 %n, LARGE
  br i1 %large, label %piece, label %listed
piece:
  %cut = call ptr @obtain_piece(i64 %n)
  br label %looked
listed:
  %m = sub i64 %n, 1
  %z = call i64 @llvm.ctlz.i64(i64 %m, i1 false)
  %l = sub i64 63, %z
  %l2 = sub i64 %l, 2
  %top = lshr i64 %m, %l2
  %quarter = and i64 %top, 3
  %l4 = shl i64 %l, 2
  %class = add i64 %l4, %quarter
  %slot = getelementptr [256 x ptr], ptr @free_lists, i64 0, i64 %class
  %head = load ptr, ptr %slot
  %none = icmp eq ptr %head, null
  br i1 %none, label %make, label %reuse
reuse:
  %link = getelementptr i8, ptr %head, i64 8
  %next = load ptr, ptr %link
  store ptr %next, ptr %slot
  br label %given
make:
  %q5 = add i64 %quarter, 5
  %size = shl i64 %q5, %l2
  %pad = add i64 %size, 127
  %whole = and i64 %pad, -64
  %block = call ptr @reserve(i64 %whole)
  %failed = icmp eq ptr %block, null
  br i1 %failed, label %out, label %ok
ok:
  store i64 %class, ptr %block
  %held = getelementptr i8, ptr %block, i64 16
  store i64 %size, ptr %held
  %pwhole = getelementptr i8, ptr %block, i64 32
  store i64 %whole, ptr %pwhole
  br label %given
looked:
  %without = icmp eq ptr %cut, null
  br i1 %without, label %out, label %given
given:
  %found = phi ptr [ %head, %reuse ], [ %block, %ok ], [ %cut, %looked ]
  %pasked = getelementptr i8, ptr %found, i64 24
  store i64 %n, ptr %pasked
  %a0 = load i64, ptr @account
  %a1 = add i64 %a0, %n
  store i64 %a1, ptr @account
  %pmost = getelementptr i64, ptr @account, i64 1
  %most = load i64, ptr %pmost
  %above = icmp ugt i64 %a1, %most
  %most1 = select i1 %above, i64 %a1, i64 %most
  store i64 %most1, ptr %pmost
  %peak = load i64, ptr @peak
  %higher = icmp ugt i64 %a1, %peak
  %peak1 = select i1 %higher, i64 %a1, i64 %peak
  store i64 %peak1, ptr @peak
  %data = getelementptr i8, ptr %found, i64 64
  ; GIVEN
  ret ptr %data
out:
  ret ptr null
}

; how much may be reserved when so much is in use: a sixteenth more than was in use at some time
define internal i64 @bound(i64 %using) {
  %peak = load i64, ptr @peak
  %more = icmp ugt i64 %using, %peak
  %most = select i1 %more, i64 %using, i64 %peak
  %part = lshr i64 %most, 4
  %a = add i64 %most, %part
  %b = add i64 %a, 8388608
  ret i64 %b
}

; a small block from the system, within the limit; what is free is given back where that is needed for it
define internal ptr @reserve(i64 %bytes) {
entry:
  %preserved = getelementptr i64, ptr @account, i64 2
  %r0 = load i64, ptr %preserved
  %plimit = getelementptr i64, ptr @account, i64 4
  %limit = load i64, ptr %plimit
  %r1 = add i64 %r0, %bytes
  %beyond = icmp ugt i64 %r1, %limit
  br i1 %beyond, label %empty, label %ask
ask:
  %first = call ptr @aligned_alloc(i64 64, i64 %bytes)
  %refused = icmp eq ptr %first, null
  br i1 %refused, label %empty, label %note
empty:
  call void @mycel_empty_cache()
  %r2 = load i64, ptr %preserved
  %r3 = add i64 %r2, %bytes
  %still = icmp ugt i64 %r3, %limit
  br i1 %still, label %none, label %again
again:
  %second = call ptr @aligned_alloc(i64 64, i64 %bytes)
  %gone = icmp eq ptr %second, null
  br i1 %gone, label %none, label %note
note:
  %block = phi ptr [ %first, %ask ], [ %second, %again ]
  %r4 = load i64, ptr %preserved
  %r5 = add i64 %r4, %bytes
  store i64 %r5, ptr %preserved
  %pmost = getelementptr i64, ptr @account, i64 3
  %most = load i64, ptr %pmost
  %above = icmp ugt i64 %r5, %most
  %most1 = select i1 %above, i64 %r5, i64 %most
  store i64 %most1, ptr %pmost
  %pblocks = getelementptr i64, ptr @account, i64 5
  %b0 = load i64, ptr %pblocks
  %b1 = add i64 %b0, 1
  store i64 %b1, ptr %pblocks
  ret ptr %block
none:
  ret ptr null
}

define internal void @give_back(ptr %block) {
  %pwhole = getelementptr i8, ptr %block, i64 32
  %whole = load i64, ptr %pwhole
  %preserved = getelementptr i64, ptr @account, i64 2
  %r0 = load i64, ptr %preserved
  %r1 = sub i64 %r0, %whole
  store i64 %r1, ptr %preserved
  %pblocks = getelementptr i64, ptr @account, i64 5
  %b0 = load i64, ptr %pblocks
  %b1 = sub i64 %b0, 1
  store i64 %b1, ptr %pblocks
  call void @free(ptr %block)
  ret void
}

define void @mycel_empty_cache() {
entry:
  call void @trim_pieces(i64 0)
  br label %lists
lists:
  %i = phi i64 [ 0, %entry ], [ %i1, %next ]
  %slot = getelementptr [256 x ptr], ptr @free_lists, i64 0, i64 %i
  br label %blocks
blocks:
  %block = load ptr, ptr %slot
  %none = icmp eq ptr %block, null
  br i1 %none, label %next, label %drop
drop:
  %link = getelementptr i8, ptr %block, i64 8
  %rest = load ptr, ptr %link
  store ptr %rest, ptr %slot
  call void @give_back(ptr %block)
  br label %blocks
next:
  %i1 = add i64 %i, 1
  %more = icmp ult i64 %i1, 256
  br i1 %more, label %lists, label %done
done:
  ret void
}

define ptr @mycel_memory() {
  ret ptr @account
}

define void @mycel_release(ptr %data) {
  call void @release(ptr %data)
  ret void
}

define internal void @release(ptr %data) {
  %log = load ptr, ptr @log
  %logs = icmp ne ptr %log, null
  br i1 %logs, label %told, label %on
told:
  %t = call i64 @now()
  call void @note(ptr %log, i64 4, ptr %data, i64 %t, i64 0)
  br label %on
on:
  %block = getelementptr i8, ptr %data, i64 -64
  %class = load i64, ptr %block
  %held = getelementptr i8, ptr %block, i64 16
  %size = load i64, ptr %held
  %pasked = getelementptr i8, ptr %block, i64 24
  ; TAKEN
  %asked = load i64, ptr %pasked
  %a0 = load i64, ptr @account
  %a1 = sub i64 %a0, %asked
  store i64 %a1, ptr @account
  %listed = icmp ne i64 %class, PIECE_CLASS
  br i1 %listed, label %keep, label %piece
keep:
  %slot = getelementptr [256 x ptr], ptr @free_lists, i64 0, i64 %class
  %head = load ptr, ptr %slot
  %link = getelementptr i8, ptr %block, i64 8
  store ptr %head, ptr %link
  store ptr %block, ptr %slot
  ret void
piece:
  %peak = load i64, ptr @peak
  %decay = lshr i64 %peak, 16
  %peak1 = sub i64 %peak, %decay
  store i64 %peak1, ptr @peak
  call void @release_piece(ptr %block, i64 %a1)
  ret void
}
""".replace("LARGE", str(LARGE)).replace("PIECE_CLASS", str(PIECE_CLASS))
ALLOCATOR += PIECES
