"""Emits the loads and stores of a kernel.

Elements that are contiguous, or a few elements apart (`strided_access`), are moved by whole
vectors, others by one access for each lane. Lanes that do not exist, fail a guard or have an index
out of range are masked. A load with guards first tests whether all its lanes pass, and then reads
without a mask: masked loads prevent processors from prefetching, and reading through them alone is
several times slower than the memory.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from mycel._src.compiler.ir.dims import is_one, is_zero
from mycel._src.engines.native.kernels.instruction_emitter import (
    Emitter,
    choose,
    compute_type,
    literal,
    memory_type,
    suffix,
)
from mycel._src.engines.native.kernels.kernel_function import KernelFunction
from mycel._src.engines.native.kernels.loop_nest import Access
from mycel._src.engines.native.kernels.open_loops import OpenLoops
from mycel._src.engines.native.kernels.register_transpose import TileWriter, raw_type
from mycel._src.engines.native.kernels.strided_access import load_strided, small_step, store_strided
from mycel._src.engines.native.llvm.half_conversion import ANY, narrow, widen
from mycel._src.engines.native.llvm.target import target
from mycel._src.foundation import dtype as D
from mycel._src.foundation.dtype import DType

__all__ = ["NOT_MOVED", "MemoryWriter", "Moved"]


class Moved(NamedTuple):
    """What data-dependent indices add to an access: an `offset`, and whether they are in range.

    Both are vectors where `wide`, and None where there are no such indices.
    """

    offset: str | None
    valid: str | None
    wide: bool


NOT_MOVED = Moved(None, None, False)


class MemoryWriter:
    """A writer of loads and stores of the `function`, inside of `loops`.

    Transposed loads are read from `tiles`.
    """

    def __init__(self, function: KernelFunction, loops: OpenLoops, tiles: TileWriter) -> None:
        self._function, self._loops, self._tiles = function, loops, tiles
        self._e, self._ix = function.e, function.ix
        self._lanes, self._vector_loop = loops.form.lanes, loops.form.vector_loop

    # Loads.

    def load(self, access: Access, default: Any, copy: int, wide: bool, moved: Moved) -> str:
        """Return the value of a load, a vector where `wide`.

        `default` is the value where a guard of `access` fails, `copy` the number of the vector
        among those computed side by side, and `moved` what data-dependent indices add.
        """
        e, loops = self._e, self._loops
        dtype: DType = access.buffer.dtype
        kind = memory_type(dtype)
        size = dtype.itemsize
        if not wide:
            pointer, guard = self._scalar_place(access, kind, moved)
            if guard is None:
                return self._from_memory(e.put(f"load {kind}, ptr {pointer}, align {size}"), dtype, False)
            safe = e.put(f"select i1 {guard}, ptr {pointer}, ptr {self._function.pointer(access.buffer)}")
            value = self._from_memory(e.put(f"load {kind}, ptr {safe}, align {size}"), dtype, False)
            return choose(e, compute_type(dtype), guard, value, literal(default, dtype))
        raw = raw_type(dtype)
        vector = e.vector(raw)
        step = access.offset.coefficient(self._vector_loop)
        if access in self._tiles.names:
            value = self._tiles.load(access)
        elif (self._lanes == 1 or is_one(step) or small_step(step)) and not moved.wide:
            pointer = self._place(access, copy, kind, moved)
            inside = loops.all_inside(access, copy, moved.valid) if loops.mask is None else None
            if inside is None:
                value = self._load_near(access, copy, pointer, default, moved.valid)
            else:
                fast, slow, after = (self._function.fresh(n) for n in ("inside", "edge", "read"))
                e.do(f"br i1 {inside}, label %{fast}, label %{slow}")
                e.label(fast)
                whole = self._load_near(access, copy, pointer, default, moved.valid, checked=True)
                e.do(f"br label %{after}")
                e.label(slow)
                part = self._load_near(access, copy, pointer, default, moved.valid)
                e.do(f"br label %{after}")
                e.label(after)
                value = e.put(f"phi {vector} [ {whole}, %{fast} ], [ {part}, %{slow} ]")
        else:
            mask = self._whole_mask(access, copy, moved.valid, moved.wide)
            pointers = loops.lanes_addresses(access, copy, moved.offset, moved.wide)
            name = f"llvm.masked.gather.{suffix(vector)}.v{self._lanes}p0"
            given = [(f"<{self._lanes} x ptr>", pointers), ("i32", str(size))]
            value = self._under_mask(name, vector, given, mask, self._raw_default(default, dtype, raw))
        if raw != kind:
            value = e.put(f"bitcast {vector} {value} to {e.vector(kind)}")
        return self._from_memory(value, dtype, True)

    def _place(self, access: Access, copy: int, kind: str, moved: Moved) -> str:
        """Return the address of the first lane of a copy, of elements of the LLVM type `kind`.

        `moved` is what data-dependent indices add, the same for all lanes of the `access`.
        """
        pointer = self._loops.address(access, copy)
        if moved.offset is None:
            return pointer
        return self._e.put(f"getelementptr {kind}, ptr {pointer}, {self._ix} {moved.offset}")

    def _scalar_place(self, access: Access, kind: str, moved: Moved) -> tuple[str, str | None]:
        """Return the address of a single element, and whether it may be accessed (None: always).

        `kind` and `moved` are as for `_place`.
        """
        pointer = self._place(access, 0, kind, moved)
        guard = self._loops.guards(access.guards, 0, False)
        if moved.valid is not None:
            guard = moved.valid if guard is None else self._e.put(f"and i1 {guard}, {moved.valid}")
        return pointer, guard

    def _load_near(
        self, access: Access, copy: int, pointer: str, default: Any, valid: str | None, checked: bool = False
    ) -> str:
        """Return a vector of elements, contiguous or a few elements apart, in memory's type.

        `pointer` is the address of the first lane of `access`. `copy` is the number of the vector
        among those computed side by side; `default` is the value of masked lanes, `valid` says
        whether the indices are in range (None: there are none). With `checked` all lanes are known
        to be readable.
        """
        e, dtype = self._e, access.buffer.dtype
        raw, size = raw_type(dtype), dtype.itemsize
        vector = e.vector(raw)
        mask = None if checked else self._whole_mask(access, copy, valid, False)
        others = self._raw_default(default, dtype, raw)
        if self._lanes > 1 and (step := small_step(access.offset.coefficient(self._vector_loop))):
            spread = functools.partial(_spread_mask, e, self._loops, access, copy, valid)
            return load_strided(e, step, raw, size, pointer, mask, others, spread)
        if mask is None:
            return e.put(f"load {vector}, ptr {pointer}, align {size}")
        name = f"llvm.masked.load.{suffix(vector)}.p0"
        return self._under_mask(name, vector, [("ptr", pointer), ("i32", str(size))], mask, others)

    def _whole_mask(self, access: Access, copy: int, valid: str | None, valid_wide: bool) -> str | None:
        """Return the mask of a vector access: existing lanes that pass guards and index checks.

        `copy` is the number of the vector among those computed side by side. `valid` says whether
        the indices of `access` are in range (None: it has none), as a vector where `valid_wide`.
        Returns None where no lane is masked.
        """
        e = self._e
        exists = self._loops.mask_of(copy)
        parts = [] if exists is None else [exists]
        guard = self._loops.guards(access.guards, copy, True)
        if guard is not None:
            parts.append(guard)
        if valid is not None:
            parts.append(valid if valid_wide else e.splat(valid, "i1"))
        if not parts:
            return None
        result = parts[0]
        for p in parts[1:]:
            result = e.put(f"and {e.vector('i1')} {result}, {p}")
        return result

    def _under_mask(self, name: str, vector: str, given: list[tuple[str, str]], mask: str | None, others: str) -> str:
        """Return the elements that the intrinsic `name` reads under a mask (None: all of them).

        `vector` is their type, `given` are types and values of the operands before the mask, and
        `others` stand in the lanes that are not read. LLVM extends narrow elements together with
        their load for Helium, but not what stands in for others: that is added behind the load.
        """
        e = self._e
        narrow_lanes = vector.endswith((" i8>", " i16>"))
        apart = target().is_family("thumb") and others != "zeroinitializer" and narrow_lanes
        types, values = zip(*given, (e.vector("i1"), mask or self._function.all_true()))
        passed = "zeroinitializer" if apart else others
        value = e.intrinsic(vector, name, [*types, vector], [*values, passed])
        if apart and mask is not None:
            # A choice between both would become the operand of the load again.
            rest = e.put(f"select {e.vector('i1')} {mask}, {vector} zeroinitializer, {vector} {others}")
            return e.put(f"or {vector} {value}, {rest}")
        return value

    def _raw_default(self, default: Any, dtype: DType, raw: str) -> str:
        if not default:
            return "zeroinitializer"
        if raw in ("float", "double"):
            text = literal(default, dtype)
        else:
            text = str(int(np.asarray(default).astype(dtype.numpy).view(f"u{dtype.itemsize}")))
        return self._function.repeated(raw, text)

    def _from_memory(self, value: str, dtype: DType, wide: bool) -> str:
        e = self._e
        shape = e.vector if wide else (lambda t: t)
        if dtype is D.bool_:
            return e.put(f"icmp ne {shape('i8')} {value}, {'zeroinitializer' if wide else '0'}")
        if dtype in (D.float16, D.bfloat16):
            return widen(e, wide, value, dtype)
        return value

    def _to_memory(self, value: str, dtype: DType, wide: bool, known: int = ANY) -> str:
        """Return `value` of type `dtype` in the type that memory holds, a vector where `wide`.

        `known` says how far a 16-bit float is known to be rounded already.
        """
        e = self._e
        shape = e.vector if wide else (lambda t: t)
        if dtype is D.bool_:
            return e.put(f"zext {shape('i1')} {value} to {shape('i8')}")
        if dtype in (D.float16, D.bfloat16):
            return narrow(e, wide, value, dtype, known)
        return value

    # Stores.

    def store_masked(self, vector: str, value: str, pointer: str, size: int, mask: str, left: str) -> None:
        """Write the lanes of a vector that a mask has, one behind the other.

        The arguments, `vector`, `value`, `pointer`, `size`, `mask` and `left`, are as for
        `_store_lanes`.
        """
        e = self._e
        name, bits = f"llvm.masked.store.{suffix(vector)}.p0", vector.split(" x ")[0] + " x i1>"
        e.declares.add(f"declare void @{name}({vector}, ptr, i32, {bits})")
        call = f"call void @{name}({vector} {value}, ptr {pointer}, i32 {size}, {bits} {mask})"
        self._store_lanes(vector, value, pointer, size, mask, left, lambda: e.do(call))

    def _store_lanes(
        self, vector: str, value: str, pointer: str, size: int, mask: str, left: str, several: Callable[[], None]
    ) -> None:
        """Write the lanes of a vector that a mask has, by `several`.

        * `vector`: the LLVM type of `value`; `pointer`, `size`: where its first lane goes, and the
          bytes of an element.
        * `mask`: the lanes; `left`: how many of them there can be at most, from the first on, an
          i32, "" where nothing is known.

        A single lane of bytes or halves is written by itself: where LLVM 22.1 sees that a mask has
        one lane, it writes 32 bits of a vector that is truncated.
        """
        e = self._e
        if size >= 4 or not left:
            several()
            return
        count, element = vector[1:-1].split(" x ")
        one, alone, more, after = (self._function.fresh(n) for n in ("one", "alone", "more", "written"))
        e.do(f"br i1 {e.put(f'icmp eq i32 {left}, 1')}, label %{one}, label %{more}")
        e.label(one)
        e.do(f"br i1 {e.put(f'extractelement <{count} x i1> {mask}, i32 0')}, label %{alone}, label %{after}")
        e.label(alone)
        first = e.put(f"extractelement {vector} {value}, i32 0")
        e.do(f"store {element} {first}, ptr {pointer}, align {size}")
        e.do(f"br label %{after}")
        e.label(more)
        several()
        e.do(f"br label %{after}")
        e.label(after)

    def store(self, access: Access, value: str, copy: int, wide: bool, moved: Moved, known: int = ANY) -> None:
        """Write `value` at `access`, as a vector where `wide`.

        `copy` is the number of the vector among those computed side by side, `moved` what
        data-dependent indices add; `known` says how far a 16-bit float is known to be rounded
        already.
        """
        e = self._e
        dtype: DType = access.buffer.dtype
        kind, size = memory_type(dtype), dtype.itemsize
        value = self._to_memory(value, dtype, wide, known)
        if not wide:
            self._store_scalar(access, kind, value, moved)
            return
        raw = raw_type(dtype)
        vector = e.vector(raw)
        if raw != kind:
            value = e.put(f"bitcast {e.vector(kind)} {value} to {vector}")
        mask = self._whole_mask(access, copy, moved.valid, moved.wide)
        left = "" if self._loops.mask is None else self._loops.left
        along = access.offset.coefficient(self._vector_loop)
        if (self._lanes == 1 or is_one(along)) and not moved.wide:
            pointer = self._place(access, copy, kind, moved)
            if mask is None:
                e.do(f"store {vector} {value}, ptr {pointer}, align {size}")
                return
            self.store_masked(vector, value, pointer, size, mask, left)
            return
        if not moved.wide and (step := small_step(along)):
            pointer = self._place(access, copy, kind, moved)
            strided = functools.partial(store_strided, e, step, raw, size, pointer, mask, value)
            if mask is None:
                strided()
            else:
                self._store_lanes(vector, value, pointer, size, mask, left, strided)
            return
        pointers = self._loops.lanes_addresses(access, copy, moved.offset, moved.wide)
        name = f"llvm.masked.scatter.{suffix(vector)}.v{self._lanes}p0"
        e.declares.add(f"declare void @{name}({vector}, <{self._lanes} x ptr>, i32, {e.vector('i1')})")
        e.do(
            f"call void @{name}({vector} {value}, <{self._lanes} x ptr> {pointers}, i32 {size}, {e.vector('i1')} "
            f"{mask or self._function.all_true()})"
        )

    def _store_scalar(self, access: Access, kind: str, value: str, moved: Moved) -> None:
        """Write a single element of the LLVM type `kind`; `moved` is as for `store`."""
        e, size = self._e, access.buffer.dtype.itemsize
        if kind in ("half", "bfloat"):
            # Processors without such numbers would move them by way of float, and call a library
            # for the way back.
            value, kind = e.put(f"bitcast {kind} {value} to i16"), "i16"
        pointer, guard = self._scalar_place(access, kind, moved)
        if guard is None:
            e.do(f"store {kind} {value}, ptr {pointer}, align {size}")
            return
        write, after = self._function.fresh("write"), self._function.fresh("after")
        e.do(f"br i1 {guard}, label %{write}, label %{after}")
        e.label(write)
        e.do(f"store {kind} {value}, ptr {pointer}, align {size}")
        e.do(f"br label %{after}")
        e.label(after)


def _spread_mask(
    e: Emitter, loops: OpenLoops, access: Access, copy: int, valid: str | None, owners: list[int | None]
) -> str:
    """Return the mask of elements that belong to the lanes `owners` (None: to no lane).

    It is computed from the lanes' numbers, as moving bits of a mask is slow. `e` is the writer, and
    `loops` know the existing lanes; `access` has the guards, `copy` is the number of the vector,
    and `valid` says whether the indices are in range (None: there are none).
    """
    near = loops.form.near
    place, bits = f"i{near}", e.vector("i1")
    kind = e.vector(place)

    # Added to any position, it lies beyond every size of which positions have so many bits.
    def numbers(step: int, of: str, beyond: int) -> str:
        return "<" + ", ".join(f"{of} {beyond if k is None else step * k}" for k in owners) + ">"

    parts, apart = [], None not in owners
    if loops.mask is not None:
        parts.append(e.put(f"icmp slt {e.vector('i32')} {numbers(1, 'i32', 1 << 30)}, {e.splat(loops.left, 'i32')}"))
        apart = True
    for position, size in access.guards:
        step = position.coefficient(loops.form.vector_loop)
        limit = loops.limit(position, size)
        base = loops.place(position, 0, near, False)
        if is_zero(step):
            parts.append(e.splat(e.put(f"icmp ult {place} {base}, {limit}"), "i1"))
        elif isinstance(step, int):
            first = e.put(f"add {place} {base}, {step * copy * e.lanes}")
            at = e.put(f"add {kind} {e.splat(first, place)}, {numbers(step, place, 3 << near - 3)}")
            parts.append(e.put(f"icmp ult {kind} {at}, {e.splat(limit, place)}"))
            apart = True
        else:
            lanes = loops.guards(((position, size),), copy, True)
            order = ", ".join(f"i32 {e.lanes if k is None else k}" for k in owners)
            parts.append(e.put(f"shufflevector {bits} {lanes}, {bits} zeroinitializer, <{e.lanes} x i32> <{order}>"))
            apart = True
    if valid is not None:
        parts.append(e.splat(valid, "i1"))
    if not apart:
        parts.append("<" + ", ".join(f"i1 {'false' if k is None else 'true'}" for k in owners) + ">")
    result = parts[0]
    for p in parts[1:]:
        result = e.put(f"and {bits} {result}, {p}")
    return result
