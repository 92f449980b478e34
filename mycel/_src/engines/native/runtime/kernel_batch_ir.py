"""The runtime's code for kernel batches, which run as one parallel step, as LLVM IR."""

from __future__ import annotations

__all__ = ["BATCH", "BATCH_SYMBOLS"]

BATCH_SYMBOLS = ("mycel_batch",)

# Words: quadruples of the members (function, arguments, extent, where its share begins), how many,
# the length of the range. A boundary inside of a member with a long extent is moved to a multiple
# of 64, which vectors like; both threads that share it move it alike. Short extents are rows, each
# of which may be much work.
BATCH = r"""
define void @mycel_batch(ptr %args, i64 %begin, i64 %end) {
entry:
  %table = load ptr, ptr %args
  %p1 = getelementptr i64, ptr %args, i64 1
  %count = load i64, ptr %p1
  %p2 = getelementptr i64, ptr %args, i64 2
  %total = load i64, ptr %p2
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i1, %next ]
  %i1 = add i64 %i, 1
  %at = shl i64 %i, 2
  %member = getelementptr i64, ptr %table, i64 %at
  %p3 = getelementptr i64, ptr %member, i64 3
  %first = load i64, ptr %p3
  %more = icmp ult i64 %i1, %count
  br i1 %more, label %look, label %cut
look:
  %p7 = getelementptr i64, ptr %member, i64 7
  %following = load i64, ptr %p7
  br label %cut
cut:
  %last = phi i64 [ %total, %loop ], [ %following, %look ]
  %later = icmp ugt i64 %begin, %first
  %low = select i1 %later, i64 %begin, i64 %first
  %sooner = icmp ult i64 %end, %last
  %high = select i1 %sooner, i64 %end, i64 %last
  %some = icmp ult i64 %low, %high
  br i1 %some, label %run, label %next
run:
  %pe = getelementptr i64, ptr %member, i64 2
  %extent = load i64, ptr %pe
  %length = sub i64 %last, %first
  %l0 = sub i64 %low, %first
  %l1 = mul i64 %l0, %extent
  %l2 = udiv i64 %l1, %length
  %wide = icmp uge i64 %extent, 4096
  %mask = select i1 %wide, i64 -64, i64 -1
  %from = and i64 %l2, %mask
  %h0 = sub i64 %high, %first
  %h1 = mul i64 %h0, %extent
  %h2 = udiv i64 %h1, %length
  %h3 = and i64 %h2, %mask
  %whole = icmp eq i64 %high, %last
  %to = select i1 %whole, i64 %extent, i64 %h3
  %any = icmp ult i64 %from, %to
  br i1 %any, label %call, label %next
call:
  %f = load ptr, ptr %member
  %pa = getelementptr i64, ptr %member, i64 1
  %own = load ptr, ptr %pa
  call void %f(ptr %own, i64 %from, i64 %to)
  br label %next
next:
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""
