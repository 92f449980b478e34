"""Emits the reductions of a kernel: accumulators, combining a value, and the result over lanes."""

from __future__ import annotations

import math
from typing import Any

from mycel._src.compiler.ir.dims import is_zero
from mycel._src.engines.native.kernels.instruction_emitter import Emitter, choose, compute_type, extreme, literal
from mycel._src.engines.native.kernels.kernel_form import Form
from mycel._src.engines.native.kernels.kernel_function import KernelFunction
from mycel._src.engines.native.kernels.loop_nest import Reduce
from mycel._src.engines.native.kernels.open_loops import OpenLoops
from mycel._src.engines.native.kernels.value_writer import ValueWriter

__all__ = ["ReductionWriter", "identity", "merge"]


def identity(r: Reduce) -> str:
    """Return the literal that leaves every value unchanged; a running sum keeps even -0.0."""
    dtype = r.value.dtype
    k = r.kind
    if r.scan and k == "sum" and dtype.kind == "f":
        value: Any = -0.0
    elif k in ("sum", "any"):
        value = 0
    elif k in ("prod", "all"):
        value = 1
    else:
        largest = k in ("max", "argmax")
        if dtype.kind == "f":
            value = -math.inf if largest else math.inf
        elif dtype.kind == "b":
            value = not largest
        else:
            low, high = (
                (-(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1)
                if dtype.kind == "i"
                else (0, (1 << dtype.bits) - 1)
            )
            value = low if largest else high
    return literal(value, dtype)


def merge(e: Emitter, r: Reduce, kind: str, x: str, y: str) -> str:
    """Return two partial results of the reduction `r` combined.

    `x` and `y` have the LLVM type `kind`; `e` is the writer.
    """
    dtype = r.value.dtype
    if r.kind == "sum":
        return e.put(f"{'fadd' if dtype.kind == 'f' else 'add'} {kind} {x}, {y}")
    if r.kind == "prod":
        return e.put(f"{'fmul' if dtype.kind == 'f' else 'mul'} {kind} {x}, {y}")
    if r.kind in ("any", "all"):
        return e.put(f"{'or' if r.kind == 'any' else 'and'} {kind} {x}, {y}")
    return extreme(e, kind, dtype, x, y, r.kind == "max")


def _unset(r: Reduce) -> str:
    """Return the position of a reduction before its first value: one that no axis has."""
    return str((1 << (r.result.dtype.bits - 1)) - 1)


class ReductionWriter:
    """A writer of reductions, of the `values` inside of `loops`, into the `function`.

    Accumulators are stack slots, one for each copy of a vector, which LLVM turns into registers:
    `copies` of them at most. `slots` has their names. The nest has the form `form`.
    """

    def __init__(
        self, form: Form, function: KernelFunction, loops: OpenLoops, values: ValueWriter, copies: int
    ) -> None:
        self.slots: dict[Reduce, list[str]] = {}
        self._indices: dict[Reduce, list[str]] = {}
        self._form, self._function, self._loops, self._values = form, function, loops, values
        self._e, self._lanes, self._wide = function.e, form.lanes, form.wide
        self._copies = copies if form.wide else 1

    def declare(self, r: Reduce, kind: str = "") -> None:
        """Reserve the accumulators of a reduction, of the LLVM type `kind` ("": the values')."""
        kind = kind or self.kind_of(r)
        self.slots[r] = names = [f"%acc{self._function.fresh('')}" for _ in range(self._copies)]
        self._function.entry.extend(f"  {name} = alloca {kind}" for name in names)
        if r.position is not None:
            self._indices[r] = [f"{name}i" for name in names]
            self._function.entry.extend(f"  {name} = alloca {self._index_kind(r)}" for name in self._indices[r])

    def _index_kind(self, r: Reduce) -> str:
        """Return the LLVM type of the positions that argmax and argmin give."""
        kind = compute_type(r.result.dtype)
        return self._e.vector(kind) if self._wide else kind

    def _unset_lanes(self, r: Reduce) -> str:
        if not self._wide:
            return _unset(r)
        return self._function.repeated(compute_type(r.result.dtype), _unset(r))

    def kind_of(self, r: Reduce) -> str:
        """Return the LLVM type of the values of a reduction."""
        kind = compute_type(r.value.dtype)
        return self._e.vector(kind) if self._wide else kind

    def start(self, r: Reduce) -> None:
        """Set the accumulators to what they are before the first value."""
        e = self._e
        text = identity(r)
        kind = compute_type(r.value.dtype)
        splat = self._function.repeated(kind, text) if self._wide else text
        for slot in self.slots[r]:
            e.do(f"store {self.kind_of(r)} {splat}, ptr {slot}")
        if r.position is not None:
            for slot in self._indices[r]:
                e.do(f"store {self._index_kind(r)} {self._unset_lanes(r)}, ptr {slot}")

    def join(self, r: Reduce) -> None:
        """Combine one iteration's value with the accumulators."""
        e = self._e
        kind = self.kind_of(r)
        values = self._values.widened(r.value, self._wide)
        slots = self.slots[r]
        for u in range(self._loops.copies if self._wide else 1):
            value = values[u if len(values) > 1 else 0]
            slot = slots[u]
            before = e.put(f"load {kind}, ptr {slot}")
            if r.position is not None:
                self._join_position(r, kind, value, before, u)
                continue
            after = merge(e, r, kind, before, value)
            if self._loops.mask is not None and self._form.across:
                after = choose(e, kind, self._loops.mask, after, before)
            e.do(f"store {kind} {after}, ptr {slot}")

    def _better(self, r: Reduce, kind: str, new: str, old: str) -> str:
        """Return whether `new` beats `old` in the argmax or argmin `r`; NaN beats every number.

        Both have the LLVM type `kind`.
        """
        e, dtype = self._e, r.value.dtype
        largest = r.kind == "argmax"
        mask_kind = kind.replace(compute_type(dtype), "i1") if kind.startswith("<") else "i1"
        if dtype.kind == "f":
            more = e.put(f"fcmp {'ogt' if largest else 'olt'} {kind} {new}, {old}")
            nan = e.put(f"fcmp uno {kind} {new}, {new}")
            known = e.put(f"fcmp ord {kind} {old}, {old}")
            return e.put(f"or {mask_kind} {more}, {e.put(f'and {mask_kind} {nan}, {known}')}")
        op = ("sgt" if largest else "slt") if dtype.kind == "i" else ("ugt" if largest else "ult")
        return e.put(f"icmp {op} {kind} {new}, {old}")

    def _join_position(self, r: Reduce, kind: str, value: str, before: str, copy: int) -> None:
        """Combine one iteration's value and position with the accumulators of an argmax or argmin.

        `r` is the reduction, `value` the new value and `before` the accumulator's, both of the LLVM
        type `kind`; `copy` is the number of the vector.
        """
        e = self._e
        assert r.position is not None
        slot, index_slot = self.slots[r][copy], self._indices[r][copy]
        index_kind, bits = self._index_kind(r), r.result.dtype.bits
        lanes = self._wide and not is_zero(r.position.coefficient(self._form.vector_loop))
        here = self._loops.place(r.position, copy, bits, lanes)
        if self._wide and not lanes:
            here = e.splat(here, f"i{bits}")
        old_index = e.put(f"load {index_kind}, ptr {index_slot}")
        take = self._better(r, kind, value, before)
        unset = e.put(f"icmp eq {index_kind} {old_index}, {self._unset_lanes(r)}")
        take = e.put(f"or {e.vector('i1') if self._wide else 'i1'} {take}, {unset}")
        if r.valid is not None:
            valid = self._values.widened(r.valid, self._wide)
            one = valid[copy if len(valid) > 1 else 0]
            take = e.put(f"and {e.vector('i1') if self._wide else 'i1'} {take}, {one}")
        if self._loops.mask is not None and self._form.across:
            take = e.put(f"and {e.vector('i1')} {take}, {self._loops.mask}")
        e.do(f"store {kind} {choose(e, kind, take, value, before)}, ptr {slot}")
        e.do(f"store {index_kind} {choose(e, index_kind, take, here, old_index)}, ptr {index_slot}")

    def finish(self, r: Reduce) -> None:
        """Compute the result of a reduction from its accumulators."""
        e = self._e
        kind = self.kind_of(r)
        slots = self.slots[r]
        if not self._form.across:
            found, kind = (slots, kind) if r.position is None else (self._indices[r], self._index_kind(r))
            found = found[: self._loops.copies if self._wide else 1]
            self._values.results[r] = [e.put(f"load {kind}, ptr {slot}") for slot in found]
            return
        if r.position is not None:
            self._values.results[r] = [self._finish_position(r, kind)]
            return
        total = e.put(f"load {kind}, ptr {slots[0]}")
        for slot in slots[1:]:
            total = merge(e, r, kind, total, e.put(f"load {kind}, ptr {slot}"))
        if not self._wide:
            self._values.results[r] = [total]
            return
        self._values.results[r] = [self._folded(r, total)]

    def _folded(self, r: Reduce, vector: str) -> str:
        """Return the lanes of a vector combined into one value, half with half.

        Each step works on vectors half as long. On vectors that stay long, with upper lanes that
        nothing reads, LLVM 22.1 takes wrong lanes in a function with two such sums of integers and
        AVX-512.
        """
        e, element, width = self._e, compute_type(r.value.dtype), self._lanes
        while width > 1:
            kind, width = f"<{width} x {element}>", width // 2
            low, high = (
                e.put(
                    f"shufflevector {kind} {vector}, {kind} undef, <{width} x i32> "
                    f"<{', '.join(f'i32 {i}' for i in half)}>"
                )
                for half in (range(width), range(width, 2 * width))
            )
            vector = merge(e, r, f"<{width} x {element}>", low, high)
        return e.put(f"extractelement <1 x {element}> {vector}, i32 0")

    def _finish_position(self, r: Reduce, kind: str) -> str:
        """Return the position that an argmax or argmin has found, over all copies and lanes.

        `kind` is the LLVM type of its accumulators. Vectors are combined half with half.
        """
        e, index_kind, width = self._e, self._index_kind(r), self._lanes if self._wide else 1
        element, one = compute_type(r.value.dtype), compute_type(r.result.dtype)
        pairs = [
            (e.put(f"load {kind}, ptr {slot}"), e.put(f"load {index_kind}, ptr {index_slot}"))
            for slot, index_slot in zip(self.slots[r], self._indices[r])
        ]
        best, place = pairs[0]
        for value, index in pairs[1:]:
            best, place = self._preferred(r, width if self._wide else 0, best, place, value, index)
        if not self._wide:
            return place
        while width > 1:
            whole, whole_index, width = f"<{width} x {element}>", f"<{width} x {one}>", width // 2
            parts = []
            for half in (range(width), range(width, 2 * width)):
                mask = f"<{width} x i32> <{', '.join(f'i32 {k}' for k in half)}>"
                parts.append(e.put(f"shufflevector {whole} {best}, {whole} undef, {mask}"))
                parts.append(e.put(f"shufflevector {whole_index} {place}, {whole_index} undef, {mask}"))
            best, place = self._preferred(r, width, *parts)
        return e.put(f"extractelement <1 x {one}> {place}, i32 0")

    def _preferred(self, r: Reduce, width: int, best: str, place: str, value: str, index: str) -> tuple[str, str]:
        """Return the better of two values with their positions, the earlier of equal ones.

        They are vectors of `width` lanes, or single numbers where it is 0. What has no position is
        no value.
        """
        e = self._e
        element, one = compute_type(r.value.dtype), compute_type(r.result.dtype)
        kind, index_kind, bit, unset = element, one, "i1", _unset(r)
        if width:
            kind, index_kind, bit = f"<{width} x {element}>", f"<{width} x {one}>", f"<{width} x i1>"
            unset = "<" + ", ".join([f"{one} {unset}"] * width) + ">"
        wins = self._better(r, kind, value, best)
        loses = self._better(r, kind, best, value)
        earlier = e.put(f"icmp slt {index_kind} {index}, {place}")
        tie = e.put(f"and {bit} {earlier}, {self._not(bit, width, loses)}")
        real = e.put(f"icmp ne {index_kind} {index}, {unset}")
        take = e.put(f"and {bit} {e.put(f'or {bit} {wins}, {tie}')}, {real}")
        void = e.put(f"icmp eq {index_kind} {place}, {unset}")
        take = e.put(f"or {bit} {take}, {e.put(f'and {bit} {void}, {real}')}")
        chosen = e.put(f"select {bit} {take}, {kind} {value}, {kind} {best}")
        return chosen, e.put(f"select {bit} {take}, {index_kind} {index}, {index_kind} {place}")

    def _not(self, bit: str, width: int, mask: str) -> str:
        ones = "<" + ", ".join(["i1 true"] * width) + ">" if width else "true"
        return self._e.put(f"xor {bit} {mask}, {ones}")
