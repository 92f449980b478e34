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
from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import is_one, is_zero
from mycel._src.compiler.loops.programs import COMBINES
from mycel._src.engines.native.kernels import instruction_emitter
from mycel._src.engines.native.kernels.half_rounding import is_rounded
from mycel._src.engines.native.kernels.instruction_emitter import choose, compute_type, literal, memory_type, suffix
from mycel._src.engines.native.kernels.loop_nest import Access, Expr, Store
from mycel._src.engines.native.kernels.strided_access import load_strided, small_step, spread_mask, store_strided
from mycel._src.engines.native.kernels.value_writer import KernelWriter
from mycel._src.engines.native.llvm.half_conversion import ANY, EXACT, narrow, widen
from mycel._src.engines.native.llvm.target import target
from mycel._src.foundation import dtype as D
from mycel._src.foundation.dtype import DType

__all__ = ["MemoryWriter"]


class MemoryWriter(KernelWriter):
    """A writer of addresses, masks, loads and stores."""

    def address(self, access: Access, copy: int) -> str:
        """Return the address of the first lane of a copy.

        The data-dependent part of the access must be the same for all lanes.
        """
        e = self.e
        i = self.access_index[access]
        offset = self.offsets[-1].get(i)
        kind = memory_type(access.buffer.dtype)
        step = access.offset.coefficient(self.vector_loop)
        base = self.pointer(access.buffer)
        if offset is not None:
            base = e.put(f"getelementptr {kind}, ptr {base}, {self.ix} {offset}")
        if copy and not is_zero(step):
            if is_one(step):
                base = e.put(f"getelementptr {kind}, ptr {base}, {self.ix} {copy * self.lanes}")
            else:
                jump = e.put(f"mul {self.ix} {self.stride(i, self.vector_loop, step)}, {copy * self.lanes}")
                base = e.put(f"getelementptr {kind}, ptr {base}, {self.ix} {jump}")
        return base

    def lanes_addresses(self, access: Access, copy: int, moved: str | None, moved_wide: bool) -> str:
        """Return a vector of addresses of an access, one for each lane.

        `copy` is the number of the vector among those computed side by side. `moved` is the offset
        that data-dependent indices add (None: none), a vector where `moved_wide`.
        """
        e = self.e
        kind = memory_type(access.buffer.dtype)
        base = self.address(access, copy)
        i = self.access_index[access]
        step = access.offset.coefficient(self.vector_loop)
        steps: str | None = None
        if not is_zero(step):
            if is_one(step):
                steps = self.iota(self.ix)
            else:
                word = self.stride(i, self.vector_loop, step)
                steps = e.put(f"mul {e.vector(self.ix)} {e.splat(str(word), self.ix)}, {self.iota(self.ix)}")
        if moved is not None:
            wide = moved if moved_wide else e.splat(moved, self.ix)
            steps = wide if steps is None else e.put(f"add {e.vector(self.ix)} {steps}, {wide}")
        return e.put(f"getelementptr {kind}, ptr {base}, {e.vector(self.ix)} {steps or 'zeroinitializer'}")

    def whole_mask(self, access: Access, copy: int, valid: str | None, valid_wide: bool) -> str | None:
        """Return the mask of a vector access: existing lanes that pass guards and index checks.

        `copy` is the number of the vector among those computed side by side. `valid` says whether
        the indices of `access` are in range (None: it has none), as a vector where `valid_wide`.
        Returns None where no lane is masked.
        """
        e = self.e
        parts = [] if self.mask is None else [self.mask]
        guard = self.guards(access.guards, copy, True)
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

    def load(self, x: Expr) -> list[str]:
        access, default = x.data
        wide = self.varies[id(x)]
        return [self.load_one(access, default, u, wide) for u in range(self.copies if wide else 1)]

    def load_one(self, access: Access, default: Any, copy: int, wide: bool, reports: bool = True) -> str:
        """Return the value of a load, a vector where `wide`.

        `default` is the value where a guard of `access` fails. `copy` is the number of the vector
        among those computed side by side; an index out of range is reported where it `reports`.
        """
        e = self.e
        dtype: DType = access.buffer.dtype
        kind = memory_type(dtype)
        size = dtype.itemsize
        moved_wide = wide and any(self.varies[id(d[0])] for d in access.dynamic)
        moved, valid = self.dynamic(access, copy, moved_wide, reports)
        if not wide:
            pointer = self.address(access, 0)
            if moved is not None:
                pointer = e.put(f"getelementptr {kind}, ptr {pointer}, {self.ix} {moved}")
            guard = self.guards(access.guards, 0, False)
            if valid is not None:
                guard = valid if guard is None else e.put(f"and i1 {guard}, {valid}")
            if guard is None:
                return self.from_memory(e.put(f"load {kind}, ptr {pointer}, align {size}"), dtype, False)
            safe = e.put(f"select i1 {guard}, ptr {pointer}, ptr {self.pointer(access.buffer)}")
            value = self.from_memory(e.put(f"load {kind}, ptr {safe}, align {size}"), dtype, False)
            return choose(e, compute_type(dtype), guard, value, literal(default, dtype))
        raw = "i16" if kind in ("half", "bfloat") else kind
        vector = e.vector(raw)
        step = access.offset.coefficient(self.vector_loop)
        if access in self.tiles:
            value = self.load_tile(access)
        elif (self.lanes == 1 or is_one(step) or small_step(step)) and not moved_wide:
            pointer = self.address(access, copy)
            if moved is not None:
                pointer = e.put(f"getelementptr {kind}, ptr {pointer}, {self.ix} {moved}")
            inside = self.all_inside(access, copy, valid) if self.mask is None else None
            if inside is None:
                value = self.load_near(access, copy, pointer, default, valid)
            else:
                fast, slow, after = (self.fresh(n) for n in ("inside", "edge", "read"))
                e.do(f"br i1 {inside}, label %{fast}, label %{slow}")
                e.label(fast)
                whole = self.load_near(access, copy, pointer, default, valid, checked=True)
                e.do(f"br label %{after}")
                e.label(slow)
                part = self.load_near(access, copy, pointer, default, valid)
                e.do(f"br label %{after}")
                e.label(after)
                value = e.put(f"phi {vector} [ {whole}, %{fast} ], [ {part}, %{slow} ]")
        else:
            mask = self.whole_mask(access, copy, valid, moved_wide)
            pointers = self.lanes_addresses(access, copy, moved, moved_wide)
            name = f"llvm.masked.gather.{suffix(vector)}.v{self.lanes}p0"
            given = [(f"<{self.lanes} x ptr>", pointers), ("i32", str(size))]
            value = self.under_mask(name, vector, given, mask, self.raw_default(default, dtype, raw))
        if raw != kind:
            value = e.put(f"bitcast {vector} {value} to {e.vector(kind)}")
        return self.from_memory(value, dtype, True)

    def load_near(
        self, access: Access, copy: int, pointer: str, default: Any, valid: str | None, checked: bool = False
    ) -> str:
        """Return a vector of elements, contiguous or a few elements apart, in memory's type.

        `pointer` is the address of the first lane of `access`. `copy` is the number of the vector
        among those computed side by side; `default` is the value of masked lanes, `valid` says
        whether the indices are in range (None: there are none). With `checked` all lanes are known
        to be readable.
        """
        e, dtype = self.e, access.buffer.dtype
        kind, size = memory_type(dtype), dtype.itemsize
        raw = "i16" if kind in ("half", "bfloat") else kind
        vector = e.vector(raw)
        mask = None if checked else self.whole_mask(access, copy, valid, False)
        others = self.raw_default(default, dtype, raw)
        if self.lanes > 1 and (step := small_step(access.offset.coefficient(self.vector_loop))):
            spread = functools.partial(spread_mask, self, access, copy, valid)
            return load_strided(e, step, raw, size, pointer, mask, others, spread)
        if mask is None:
            return e.put(f"load {vector}, ptr {pointer}, align {size}")
        name = f"llvm.masked.load.{suffix(vector)}.p0"
        return self.under_mask(name, vector, [("ptr", pointer), ("i32", str(size))], mask, others)

    def under_mask(self, name: str, vector: str, given: list[tuple[str, str]], mask: str | None, others: str) -> str:
        """Return the elements that the intrinsic `name` reads under a mask (None: all of them).

        `vector` is their type, `given` are types and values of the operands before the mask, and
        `others` stand in the lanes that are not read. LLVM extends narrow elements together with
        their load for Helium, but not what stands in for others: that is added behind the load.
        """
        e = self.e
        narrow_lanes = vector.endswith((" i8>", " i16>"))
        apart = target().is_family("thumb") and others != "zeroinitializer" and narrow_lanes
        types, values = zip(*given, (e.vector("i1"), mask or self.all_true()))
        passed = "zeroinitializer" if apart else others
        value = e.intrinsic(vector, name, [*types, vector], [*values, passed])
        if apart and mask is not None:
            # A choice between both would become the operand of the load again.
            rest = e.put(f"select {e.vector('i1')} {mask}, {vector} zeroinitializer, {vector} {others}")
            return e.put(f"or {vector} {value}, {rest}")
        return value

    def all_inside(self, access: Access, copy: int, valid: str | None) -> str | None:
        """Return whether all lanes pass the guards and checks of an access.

        As these are monotonic, the first and the last lane decide. Returns None where there are
        none.
        """
        e = self.e
        tests = [] if valid is None else [valid]
        for position, size in access.guards:
            if (position, size) in self.held:
                continue
            step = position.coefficient(self.vector_loop)
            if not isinstance(step, int):
                return None
            kind, limit = f"i{self.near}", self.limit(position, size)
            first = self.place(position, 0, self.near, False)
            if copy and step:
                first = e.put(f"add {kind} {first}, {step * copy * self.lanes}")
            tests.append(e.put(f"icmp ult {kind} {first}, {limit}"))
            if step:
                last = e.put(f"add {kind} {first}, {step * (self.lanes - 1)}")
                tests.append(e.put(f"icmp ult {kind} {last}, {limit}"))
        if not tests:
            return None
        result = tests[0]
        for t in tests[1:]:
            result = e.put(f"and i1 {result}, {t}")
        return result

    def load_tile(self, access: Access) -> str:
        """Return a vector of a transposed tile, as `TileWriter` keeps it."""
        raise NotImplementedError

    def raw_default(self, default: Any, dtype: DType, raw: str) -> str:
        if not default:
            return "zeroinitializer"
        if raw in ("float", "double"):
            text = literal(default, dtype)
        else:
            text = str(int(np.asarray(default).astype(dtype.numpy).view(f"u{dtype.itemsize}")))
        return "<" + ", ".join([f"{raw} {text}"] * self.lanes) + ">"

    def from_memory(self, value: str, dtype: DType, wide: bool) -> str:
        e = self.e
        shape = e.vector if wide else (lambda t: t)
        if dtype is D.bool_:
            return e.put(f"icmp ne {shape('i8')} {value}, {'zeroinitializer' if wide else '0'}")
        if dtype in (D.float16, D.bfloat16):
            return widen(e, wide, value, dtype)
        return value

    def to_memory(self, value: str, dtype: DType, wide: bool, known: int = ANY) -> str:
        """Return `value` of type `dtype` in the type that memory holds, a vector where `wide`.

        `known` says how far a 16-bit float is known to be rounded already.
        """
        e = self.e
        shape = e.vector if wide else (lambda t: t)
        if dtype is D.bool_:
            return e.put(f"zext {shape('i1')} {value} to {shape('i8')}")
        if dtype in (D.float16, D.bfloat16):
            return narrow(e, wide, value, dtype, known)
        return value

    def store(self, s: Store) -> None:
        e, access = self.e, s.target
        dtype: DType = access.buffer.dtype
        step = access.offset.coefficient(self.vector_loop)
        wide = self.wide and (
            self.varies[id(s.value)] or step != 0 or any(self.varies[id(d[0])] for d in access.dynamic)
        )
        wide = wide and (s.full or not self.across)
        values = self.widened(s.value, wide)
        for u in range(self.copies if wide else 1):
            value = values[u if len(values) > 1 else 0]
            if s.mode != "set":
                before = self.load_one(access, 0, u, wide, reports=False)
                value = instruction_emitter.operation(e, COMBINES[s.mode], wide, dtype, [before, value], [dtype, dtype])
            self.store_one(access, value, u, wide, EXACT if s.mode == "set" and is_rounded(s.value) else ANY)

    def store_masked(self, vector: str, value: str, pointer: str, size: int, mask: str, left: str) -> None:
        """Write the lanes of a vector that a mask has, one behind the other.

        The arguments, `vector`, `value`, `pointer`, `size`, `mask` and `left`, are as for
        `store_lanes`.
        """
        e = self.e
        name, bits = f"llvm.masked.store.{suffix(vector)}.p0", vector.split(" x ")[0] + " x i1>"
        e.declares.add(f"declare void @{name}({vector}, ptr, i32, {bits})")
        call = f"call void @{name}({vector} {value}, ptr {pointer}, i32 {size}, {bits} {mask})"
        self.store_lanes(vector, value, pointer, size, mask, left, lambda: e.do(call))

    def store_lanes(
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
        e = self.e
        if size >= 4 or not left:
            several()
            return
        count, element = vector[1:-1].split(" x ")
        one, alone, more, after = (self.fresh(n) for n in ("one", "alone", "more", "written"))
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

    def store_one(self, access: Access, value: str, copy: int, wide: bool, known: int = ANY) -> None:
        """Write `value` at `access`, as a vector where `wide`.

        `copy` is the number of the vector among those computed side by side; `known` says how far a
        16-bit float is known to be rounded already.
        """
        e = self.e
        dtype: DType = access.buffer.dtype
        kind, size = memory_type(dtype), dtype.itemsize
        moved_wide = wide and any(self.varies[id(d[0])] for d in access.dynamic)
        moved, valid = self.dynamic(access, copy, moved_wide)
        value = self.to_memory(value, dtype, wide, known)
        if not wide and kind in ("half", "bfloat"):
            # Processors without such numbers would move them by way of float, and call a library
            # for the way back.
            value, kind = e.put(f"bitcast {kind} {value} to i16"), "i16"
        if not wide:
            pointer = self.address(access, 0)
            if moved is not None:
                pointer = e.put(f"getelementptr {kind}, ptr {pointer}, {self.ix} {moved}")
            guard = self.guards(access.guards, 0, False)
            if valid is not None:
                guard = valid if guard is None else e.put(f"and i1 {guard}, {valid}")
            if guard is None:
                e.do(f"store {kind} {value}, ptr {pointer}, align {size}")
                return
            write, after = self.fresh("write"), self.fresh("after")
            e.do(f"br i1 {guard}, label %{write}, label %{after}")
            e.label(write)
            e.do(f"store {kind} {value}, ptr {pointer}, align {size}")
            e.do(f"br label %{after}")
            e.label(after)
            return
        raw = "i16" if kind in ("half", "bfloat") else kind
        vector = e.vector(raw)
        if raw != kind:
            value = e.put(f"bitcast {e.vector(kind)} {value} to {vector}")
        mask, left = self.whole_mask(access, copy, valid, moved_wide), "" if self.mask is None else self.left
        if (self.lanes == 1 or is_one(access.offset.coefficient(self.vector_loop))) and not moved_wide:
            pointer = self.address(access, copy)
            if moved is not None:
                pointer = e.put(f"getelementptr {kind}, ptr {pointer}, {self.ix} {moved}")
            if mask is None:
                e.do(f"store {vector} {value}, ptr {pointer}, align {size}")
                return
            self.store_masked(vector, value, pointer, size, mask, left)
            return
        if not moved_wide and (step := small_step(access.offset.coefficient(self.vector_loop))):
            pointer = self.address(access, copy)
            if moved is not None:
                pointer = e.put(f"getelementptr {kind}, ptr {pointer}, {self.ix} {moved}")
            strided = functools.partial(store_strided, e, step, raw, size, pointer, mask, value)
            if mask is None:
                strided()
            else:
                self.store_lanes(vector, value, pointer, size, mask, left, strided)
            return
        pointers = self.lanes_addresses(access, copy, moved, moved_wide)
        name = f"llvm.masked.scatter.{suffix(vector)}.v{self.lanes}p0"
        e.declares.add(f"declare void @{name}({vector}, <{self.lanes} x ptr>, i32, {e.vector('i1')})")
        e.do(
            f"call void @{name}({vector} {value}, <{self.lanes} x ptr> {pointers}, i32 {size}, {e.vector('i1')} "
            f"{mask or self.all_true()})"
        )
