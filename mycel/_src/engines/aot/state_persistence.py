"""Power-safe state: two functions of a library that save its state to storage and restore it.

A store is memory that the caller reads and writes by functions, as flash or a file. It has two
slots. A slot has the state's parts one after the other, and behind them a trailer of four words:
what the state is of, the number of the save, the checksum (CRC-32) of the parts, and that of the
words before. A save writes the slot that is not the newest whole one, in ascending order, so the
trailer comes last; a slot is whole where both checksums agree. So whenever power is lost, one whole
state is there: the new one from the last byte on, and the old one before. The words of a store are
in the order of the processor.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

__all__ = ["MOST", "TRAILER", "identity_of", "keeping_text"]

TRAILER, CHUNK = 16, 256
# The bytes of a state that can be kept: offsets are 32 bits.
MOST = 1 << 30

_TEXT = """
@NAME_nibbles = internal constant [16 x i32] [NIBBLES]
@NAME_parts = internal constant [COUNT x { ptr, i32 }] [PARTS]
declare i32 @llvm.umin.i32(i32, i32)
define internal i32 @NAME_sum(i32 %first, ptr %data, i32 %size) nounwind {
entry:
  br label %head
head:
  %k = phi i32 [ 0, %entry ], [ %k1, %body ]
  %c = phi i32 [ %first, %entry ], [ %c4, %body ]
  %more = icmp ult i32 %k, %size
  br i1 %more, label %body, label %done
body:
  %at = getelementptr i8, ptr %data, i32 %k
  %byte = load i8, ptr %at, align 1
  %word = zext i8 %byte to i32
  %c1 = xor i32 %c, %word
  %n1 = and i32 %c1, 15
  %p1 = getelementptr i32, ptr @NAME_nibbles, i32 %n1
  %t1 = load i32, ptr %p1, align 4
  %s1 = lshr i32 %c1, 4
  %c2 = xor i32 %s1, %t1
  %n2 = and i32 %c2, 15
  %p2 = getelementptr i32, ptr @NAME_nibbles, i32 %n2
  %t2 = load i32, ptr %p2, align 4
  %s2 = lshr i32 %c2, 4
  %c4 = xor i32 %s2, %t2
  %k1 = add i32 %k, 1
  br label %head
done:
  ret i32 %c
}
define internal i1 @NAME_whole(ptr %store, i32 %slot, ptr %trailer) nounwind {
entry:
  %buffer = alloca [CHUNK x i8], align 16
  %context = load ptr, ptr %store
  %p1 = getelementptr { ptr, ptr, ptr, i32 }, ptr %store, i32 0, i32 1
  %read = load ptr, ptr %p1
  %p3 = getelementptr { ptr, ptr, ptr, i32 }, ptr %store, i32 0, i32 3
  %stride = load i32, ptr %p3
  %start = mul i32 %slot, %stride
  %end = add i32 %start, TOTAL
  %r = call i32 %read(ptr %context, i32 %end, ptr %trailer, i32 TRAILER)
  %got = icmp eq i32 %r, 0
  br i1 %got, label %look, label %bad
look:
  %w0 = load i32, ptr %trailer, align 4
  %same = icmp eq i32 %w0, IDENTITY
  %sum = call i32 @NAME_sum(i32 -1, ptr %trailer, i32 12)
  %q3 = getelementptr i32, ptr %trailer, i32 3
  %w3 = load i32, ptr %q3, align 4
  %true = icmp eq i32 %sum, %w3
  %both = and i1 %same, %true
  br i1 %both, label %head, label %bad
head:
  %at = phi i32 [ 0, %look ], [ %at1, %next ]
  %c = phi i32 [ -1, %look ], [ %c1, %next ]
  %left = sub i32 TOTAL, %at
  %over = icmp eq i32 %left, 0
  br i1 %over, label %done, label %body
body:
  %size = call i32 @llvm.umin.i32(i32 %left, i32 CHUNK)
  %place = add i32 %start, %at
  %r1 = call i32 %read(ptr %context, i32 %place, ptr %buffer, i32 %size)
  %got1 = icmp eq i32 %r1, 0
  br i1 %got1, label %next, label %bad
next:
  %c1 = call i32 @NAME_sum(i32 %c, ptr %buffer, i32 %size)
  %at1 = add i32 %at, %size
  br label %head
done:
  %q2 = getelementptr i32, ptr %trailer, i32 2
  %w2 = load i32, ptr %q2, align 4
  %agrees = icmp eq i32 %c, %w2
  ret i1 %agrees
bad:
  ret i1 false
}
define internal i32 @NAME_newest(ptr %store, ptr %trailers) nounwind {
entry:
  %other = getelementptr i8, ptr %trailers, i32 TRAILER
  %a = call i1 @NAME_whole(ptr %store, i32 0, ptr %trailers)
  %b = call i1 @NAME_whole(ptr %store, i32 1, ptr %other)
  %pa = getelementptr i32, ptr %trailers, i32 1
  %na = load i32, ptr %pa, align 4
  %pb = getelementptr i32, ptr %other, i32 1
  %nb = load i32, ptr %pb, align 4
  %ahead = sub i32 %nb, %na
  %later = icmp sgt i32 %ahead, 0
  %both = and i1 %a, %b
  %last = zext i1 %later to i32
  %one = select i1 %a, i32 0, i32 1
  %found = select i1 %both, i32 %last, i32 %one
  %any = or i1 %a, %b
  %result = select i1 %any, i32 %found, i32 -1
  ret i32 %result
}
define internal i1 @NAME_moved(ptr %move, ptr %context, i32 %start, ptr %sum) nounwind {
entry:
  br label %head
head:
  %k = phi i32 [ 0, %entry ], [ %k1, %next ]
  %at = phi i32 [ %start, %entry ], [ %at1, %next ]
  %c = phi i32 [ -1, %entry ], [ %c1, %next ]
  %more = icmp ult i32 %k, COUNT
  br i1 %more, label %body, label %done
body:
  %pp = getelementptr { ptr, i32 }, ptr @NAME_parts, i32 %k, i32 0
  %part = load ptr, ptr %pp
  %ps = getelementptr { ptr, i32 }, ptr @NAME_parts, i32 %k, i32 1
  %size = load i32, ptr %ps
  %r = call i32 %move(ptr %context, i32 %at, ptr %part, i32 %size)
  %got = icmp eq i32 %r, 0
  br i1 %got, label %next, label %bad
next:
  %c1 = call i32 @NAME_sum(i32 %c, ptr %part, i32 %size)
  %at1 = add i32 %at, %size
  %k1 = add i32 %k, 1
  br label %head
done:
  store i32 %c, ptr %sum, align 4
  ret i1 true
bad:
  ret i1 false
}
define i32 @NAME_save(ptr %store) nounwind {
entry:
  %trailers = alloca [8 x i32], align 16
  %context = load ptr, ptr %store
  %p2 = getelementptr { ptr, ptr, ptr, i32 }, ptr %store, i32 0, i32 2
  %write = load ptr, ptr %p2
  %p3 = getelementptr { ptr, ptr, ptr, i32 }, ptr %store, i32 0, i32 3
  %stride = load i32, ptr %p3
  %room = icmp uge i32 %stride, SLOT
  br i1 %room, label %begin, label %narrow
narrow:
  ret i32 3
begin:
  %newest = call i32 @NAME_newest(ptr %store, ptr %trailers)
  %none = icmp slt i32 %newest, 0
  %slot = icmp eq i32 %newest, 0
  %number = zext i1 %slot to i32
  %start = mul i32 %number, %stride
  %word = mul i32 %newest, 4
  %index = add i32 %word, 1
  %index0 = select i1 %none, i32 0, i32 %index
  %pn = getelementptr i32, ptr %trailers, i32 %index0
  %known = load i32, ptr %pn, align 4
  %old = select i1 %none, i32 0, i32 %known
  %new = add i32 %old, 1
  %q2 = getelementptr i32, ptr %trailers, i32 2
  %put = call i1 @NAME_moved(ptr %write, ptr %context, i32 %start, ptr %q2)
  br i1 %put, label %done, label %bad
done:
  %q1 = getelementptr i32, ptr %trailers, i32 1
  %q3 = getelementptr i32, ptr %trailers, i32 3
  store i32 IDENTITY, ptr %trailers, align 4
  store i32 %new, ptr %q1, align 4
  %sum = call i32 @NAME_sum(i32 -1, ptr %trailers, i32 12)
  store i32 %sum, ptr %q3, align 4
  %end = add i32 %start, TOTAL
  %r1 = call i32 %write(ptr %context, i32 %end, ptr %trailers, i32 TRAILER)
  %put1 = icmp eq i32 %r1, 0
  br i1 %put1, label %good, label %bad
good:
  ret i32 0
bad:
  ret i32 2
}
define i32 @NAME_load(ptr %store) nounwind {
entry:
  %trailers = alloca [8 x i32], align 16
  %sum = alloca i32, align 4
  %context = load ptr, ptr %store
  %p1 = getelementptr { ptr, ptr, ptr, i32 }, ptr %store, i32 0, i32 1
  %read = load ptr, ptr %p1
  %p3 = getelementptr { ptr, ptr, ptr, i32 }, ptr %store, i32 0, i32 3
  %stride = load i32, ptr %p3
  %room = icmp uge i32 %stride, SLOT
  br i1 %room, label %begin, label %narrow
narrow:
  ret i32 3
begin:
  %newest = call i32 @NAME_newest(ptr %store, ptr %trailers)
  %none = icmp slt i32 %newest, 0
  br i1 %none, label %empty, label %found
empty:
  ret i32 1
found:
  %start = mul i32 %newest, %stride
  %got = call i1 @NAME_moved(ptr %read, ptr %context, i32 %start, ptr %sum)
  br i1 %got, label %done, label %bad
done:
  %word = mul i32 %newest, 4
  %index = add i32 %word, 2
  %q = getelementptr i32, ptr %trailers, i32 %index
  %w = load i32, ptr %q, align 4
  %c = load i32, ptr %sum, align 4
  %agrees = icmp eq i32 %c, %w
  br i1 %agrees, label %good, label %bad
good:
  ret i32 0
bad:
  ret i32 2
}
"""


def identity_of(name: str, facts: Sequence[str]) -> int:
    """Return a word that tells states apart, by the library's name and facts of each part."""
    return int.from_bytes(hashlib.sha256("|".join([name, *facts]).encode()).digest()[:4], "little")


def keeping_text(name: str, parts: Sequence[tuple[str, int]], identity: int) -> str:
    """Return the text of the functions that save and load the state of a library.

    `name` is that of its function, `parts` the places of the state in its text with their bytes,
    `identity` a word that tells it from other states.
    """
    total = sum(size for _, size in parts)
    nibbles = []
    for k in range(16):
        c = k
        for _ in range(4):
            c = c >> 1 ^ (0xEDB88320 if c & 1 else 0)
        nibbles.append(f"i32 {c}")
    words = {
        "NIBBLES": ", ".join(nibbles),
        "PARTS": ", ".join(f"{{ ptr, i32 }} {{ ptr {place}, i32 {size} }}" for place, size in parts),
        "IDENTITY": str(identity),
        "COUNT": str(len(parts)),
        "CHUNK": str(CHUNK),
        "TRAILER": str(TRAILER),
        "TOTAL": str(total),
        "SLOT": str(total + TRAILER),
        "@NAME_": f"@{name}_",
    }
    text = _TEXT
    for word, value in words.items():
        text = text.replace(word, value)
    return text
