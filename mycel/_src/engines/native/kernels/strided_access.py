"""Strided vector loads and stores by shuffles instead of gathers, for small constant strides.

Lane i of an access with stride s along the vector loop is element ``s * i`` from the address of
lane 0, where s is 2 to `WIDEST` or negative; -1 is a reversed vector. Loads cover the elements from
the first lane's to the last lane's and no others: the last load ends there and overlaps the one
before. Under a mask an element is loaded or stored where its lane's bit is set. The stride is part
of the kernel's text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mycel._src.engines.native.kernels.instruction_emitter import Emitter, suffix

__all__ = ["load_strided", "small_step", "store_strided"]

WIDEST = 4


def small_step(step: Any) -> int:
    """Return a stride along the lanes that is known, small and not 1; 0 for any other."""
    return step if type(step) is int and (1 < step <= WIDEST or -WIDEST <= step < 0) else 0


class _Span:
    """The elements from the first lane's to the last lane's, and the parts that vectors cover.

    `e` is the writer, `lanes` the vector width, `step` the stride, `element` the LLVM type of an
    element and `pointer` the address of lane 0.
    """

    def __init__(self, lanes: int, step: int, element: str, pointer: str, e: Emitter) -> None:
        self.lanes, self.step, self.gap, self.e, self.element = lanes, step, abs(step), e, element
        self.length = self.gap * (lanes - 1) + 1
        self.base = pointer
        if step < 0:
            self.base = e.put(f"getelementptr {element}, ptr {pointer}, i64 {1 - self.length}")

    def place(self, lane: int) -> int:
        """Return the position of a lane's element, counted from the lowest address."""
        return self.gap * (lane if self.step > 0 else self.lanes - 1 - lane)

    def lane(self, place: int) -> int | None:
        """Return the lane of an element; None for one in a gap."""
        if place % self.gap or place >= self.length:
            return None
        k = place // self.gap
        return k if self.step > 0 else self.lanes - 1 - k

    def at(self, start: int) -> str:
        return self.base if not start else self.e.put(f"getelementptr {self.element}, ptr {self.base}, i64 {start}")

    def mask(self, mask: str | None, start: int) -> str | None:
        """Return the mask of the part from `start`; None where each of its elements has a lane."""
        e, bits = self.e, self.e.vector("i1")
        owners = [self.lane(start + k) for k in range(self.lanes)]
        if mask is None:
            if None not in owners:
                return None
            return "<" + ", ".join(f"i1 {'false' if k is None else 'true'}" for k in owners) + ">"
        order = ", ".join(f"i32 {self.lanes if k is None else k}" for k in owners)
        return e.put(f"shufflevector {bits} {mask}, {bits} zeroinitializer, <{self.lanes} x i32> <{order}>")


def load_strided(
    e: Emitter,
    step: int,
    element: str,
    size: int,
    pointer: str,
    mask: str | None,
    default: str,
    spread: Callable[[list[int | None]], str],
) -> str:
    """Return a vector whose lanes are elements `step` apart, from the address of lane 0 on.

    `e` is the writer, `element` the LLVM type of an element, `size` its bytes and `pointer` the
    address of lane 0. Lanes not in `mask` (None: all are) have the values of the vector `default`;
    `spread` makes the mask of a part from the lanes of its elements.
    """
    span = _Span(e.lanes, step, element, pointer, e)
    kind = e.vector(element)
    starts = [*range(0, span.length - e.lanes, e.lanes), span.length - e.lanes]
    parts: list[tuple[list[int | None], str]] = []
    for n, start in enumerate(starts):
        if mask is None:
            value = e.put(f"load {kind}, ptr {span.at(start)}, align {size}")
        else:
            part_mask = spread([span.lane(start + k) for k in range(e.lanes)])
            value = e.intrinsic(
                kind,
                f"llvm.masked.load.{suffix(kind)}.p0",
                ["ptr", "i32", e.vector("i1"), kind],
                [span.at(start), str(size), part_mask, "zeroinitializer"],
            )
        held: list[int | None] = []
        for lane in range(e.lanes):
            place = span.place(lane)
            mine = next(m for m, s in enumerate(starts) if s <= place < s + e.lanes)
            held.append(place - start if mine == n else None)
        parts.append((held, value))
    while len(parts) > 1:
        parts = [_joined(e, kind, *parts[k : k + 2]) for k in range(0, len(parts), 2)]
    held, value = parts[0]
    if held != list(range(e.lanes)):
        order = ", ".join(f"i32 {k}" for k in held)
        value = e.put(f"shufflevector {kind} {value}, {kind} undef, <{e.lanes} x i32> <{order}>")
    if mask is not None and default != "zeroinitializer":
        value = e.put(f"select {e.vector('i1')} {mask}, {kind} {value}, {kind} {default}")
    return value


def _joined(
    e: Emitter, kind: str, a: tuple[list[int | None], str], b: tuple[list[int | None], str] | None = None
) -> tuple[list[int | None], str]:
    """Return two parts as one with the lanes of both."""
    if b is None:
        return a
    order, held = [], []
    for lane, (x, y) in enumerate(zip(a[0], b[0])):
        place = x if x is not None else None if y is None else y + e.lanes
        order.append("i32 undef" if place is None else f"i32 {place}")
        held.append(None if place is None else lane)
    value = e.put(f"shufflevector {kind} {a[1]}, {kind} {b[1]}, <{e.lanes} x i32> <{', '.join(order)}>")
    return held, value


def store_strided(e: Emitter, step: int, element: str, size: int, pointer: str, mask: str | None, value: str) -> None:
    """Write a vector's lanes `step` elements apart, from the address of lane 0 on.

    `e` is the writer, `element` the LLVM type of an element of `value`, `size` its bytes and
    `pointer` the address of lane 0; only the lanes in `mask` (None: all) are written. The elements
    between are unchanged.
    """
    span = _Span(e.lanes, step, element, pointer, e)
    kind = e.vector(element)
    for start in range(0, span.length, e.lanes):
        owners = [span.lane(start + k) for k in range(e.lanes)]
        order = ", ".join("i32 undef" if k is None else f"i32 {k}" for k in owners)
        part = e.put(f"shufflevector {kind} {value}, {kind} undef, <{e.lanes} x i32> <{order}>")
        part_mask = span.mask(mask, start)
        if part_mask is None:
            e.do(f"store {kind} {part}, ptr {span.at(start)}, align {size}")
            continue
        name = f"llvm.masked.store.{suffix(kind)}.p0"
        e.declares.add(f"declare void @{name}({kind}, ptr, i32, {e.vector('i1')})")
        e.do(f"call void @{name}({kind} {part}, ptr {span.at(start)}, i32 {size}, {e.vector('i1')} {part_mask})")
