"""Emits the reductions of a kernel: accumulators, combining a value, and the result over lanes."""

from __future__ import annotations

import math
from typing import Any

from mycel._src.compiler.ir.dims import is_zero
from mycel._src.engines.native.kernels.instruction_emitter import choose, compute_type, extreme, literal
from mycel._src.engines.native.kernels.loop_nest import Reduce
from mycel._src.engines.native.kernels.register_transpose import TileWriter

__all__ = ["ReductionWriter"]


class ReductionWriter(TileWriter):
    """A writer of reductions.

    Accumulators are stack slots, one for each copy of a vector, which LLVM turns into registers.
    """

    def declare_accumulators(self, r: Reduce) -> None:
        dtype = r.value.dtype
        wide = self.wide
        kind = self.e.vector(compute_type(dtype)) if wide else compute_type(dtype)
        names = []
        for _ in range(self.most_copies if wide else 1):
            name = f"%acc{self.fresh('')}"
            self.entry.append(f"  {name} = alloca {kind}")
            names.append(name)
        self.accumulators[r, "slots"] = names
        if r.position is not None:
            indices = []
            index_kind = self.index_kind(r)
            for name in names:
                self.entry.append(f"  {name}i = alloca {index_kind}")
                indices.append(f"{name}i")
            self.accumulators[r, "indices"] = indices

    def index_kind(self, r: Reduce) -> str:
        """Return the LLVM type of the positions that argmax and argmin give."""
        kind = compute_type(r.result.dtype)
        return self.e.vector(kind) if self.wide else kind

    def unset(self, r: Reduce) -> str:
        """Return the position of a reduction before its first value: one that no axis has."""
        return str((1 << (r.result.dtype.bits - 1)) - 1)

    def unset_lanes(self, r: Reduce) -> str:
        if not self.wide:
            return self.unset(r)
        return "<" + ", ".join([f"{compute_type(r.result.dtype)} {self.unset(r)}"] * self.lanes) + ">"

    def kind_of(self, r: Reduce) -> str:
        kind = compute_type(r.value.dtype)
        return self.e.vector(kind) if self.wide else kind

    def identity(self, r: Reduce) -> str:
        dtype = r.value.dtype
        k = r.kind
        if k in ("sum", "any"):
            value: Any = 0
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

    def start(self, r: Reduce) -> None:
        e = self.e
        text = self.identity(r)
        kind = compute_type(r.value.dtype)
        splat = "<" + ", ".join([f"{kind} {text}"] * self.lanes) + ">" if self.wide else text
        for slot in self.accumulators[r, "slots"]:
            e.do(f"store {self.kind_of(r)} {splat}, ptr {slot}")
        if r.position is not None:
            for slot in self.accumulators[r, "indices"]:
                e.do(f"store {self.index_kind(r)} {self.unset_lanes(r)}, ptr {slot}")

    def merge(self, r: Reduce, kind: str, x: str, y: str) -> str:
        """Return two partial results of the reduction `r` combined.

        `x` and `y` have the LLVM type `kind`.
        """
        e, dtype = self.e, r.value.dtype
        if r.kind == "sum":
            return e.put(f"{'fadd' if dtype.kind == 'f' else 'add'} {kind} {x}, {y}")
        if r.kind == "prod":
            return e.put(f"{'fmul' if dtype.kind == 'f' else 'mul'} {kind} {x}, {y}")
        if r.kind in ("any", "all"):
            return e.put(f"{'or' if r.kind == 'any' else 'and'} {kind} {x}, {y}")
        return extreme(e, kind, dtype, x, y, r.kind == "max")

    def join(self, r: Reduce) -> None:
        """Combine one iteration's value with the accumulators."""
        e = self.e
        kind = self.kind_of(r)
        values = self.widened(r.value, self.wide)
        slots = self.accumulators[r, "slots"]
        for u in range(self.copies if self.wide else 1):
            value = values[u if len(values) > 1 else 0]
            slot = slots[u]
            before = e.put(f"load {kind}, ptr {slot}")
            if r.position is not None:
                self.join_position(r, kind, value, before, u)
                continue
            after = self.merge(r, kind, before, value)
            if self.mask is not None and self.across:
                after = choose(e, kind, self.mask, after, before)
            e.do(f"store {kind} {after}, ptr {slot}")

    def better(self, r: Reduce, kind: str, new: str, old: str) -> str:
        """Return whether `new` beats `old` in the argmax or argmin `r`; NaN beats every number.

        Both have the LLVM type `kind`.
        """
        e, dtype = self.e, r.value.dtype
        largest = r.kind == "argmax"
        mask_kind = kind.replace(compute_type(dtype), "i1") if kind.startswith("<") else "i1"
        if dtype.kind == "f":
            more = e.put(f"fcmp {'ogt' if largest else 'olt'} {kind} {new}, {old}")
            nan = e.put(f"fcmp uno {kind} {new}, {new}")
            known = e.put(f"fcmp ord {kind} {old}, {old}")
            return e.put(f"or {mask_kind} {more}, {e.put(f'and {mask_kind} {nan}, {known}')}")
        op = ("sgt" if largest else "slt") if dtype.kind == "i" else ("ugt" if largest else "ult")
        return e.put(f"icmp {op} {kind} {new}, {old}")

    def join_position(self, r: Reduce, kind: str, value: str, before: str, copy: int) -> None:
        """Combine one iteration's value and position with the accumulators of an argmax or argmin.

        `r` is the reduction, `value` the new value and `before` the accumulator's, both of the LLVM
        type `kind`; `copy` is the number of the vector.
        """
        e = self.e
        assert r.position is not None
        slot, index_slot = self.accumulators[r, "slots"][copy], self.accumulators[r, "indices"][copy]
        index_kind, bits = self.index_kind(r), r.result.dtype.bits
        lanes = self.wide and not is_zero(r.position.coefficient(self.vector_loop))
        here = self.place(r.position, copy, bits, lanes)
        if self.wide and not lanes:
            here = e.splat(here, f"i{bits}")
        old_index = e.put(f"load {index_kind}, ptr {index_slot}")
        take = self.better(r, kind, value, before)
        unset = e.put(f"icmp eq {index_kind} {old_index}, {self.unset_lanes(r)}")
        take = e.put(f"or {e.vector('i1') if self.wide else 'i1'} {take}, {unset}")
        if r.valid is not None:
            take = e.put(
                f"and {e.vector('i1') if self.wide else 'i1'} {take}, "
                f"{self.widened(r.valid, self.wide)[copy if self.varies[id(r.valid)] else 0]}"
            )
        if self.mask is not None and self.across:
            take = e.put(f"and {e.vector('i1')} {take}, {self.mask}")
        e.do(f"store {kind} {choose(e, kind, take, value, before)}, ptr {slot}")
        e.do(f"store {index_kind} {choose(e, index_kind, take, here, old_index)}, ptr {index_slot}")

    def finish(self, r: Reduce) -> None:
        """Compute the result of a reduction from its accumulators."""
        e = self.e
        kind = self.kind_of(r)
        slots = self.accumulators[r, "slots"]
        if not self.across:
            source = "indices" if r.position is not None else "slots"
            result = [
                e.put(f"load {self.index_kind(r) if source == 'indices' else kind}, ptr {slot}")
                for slot in self.accumulators[r, source][: self.copies if self.wide else 1]
            ]
            self.accumulators[r, "result"] = result
            return
        if r.position is not None:
            self.accumulators[r, "result"] = [self.finish_position(r, kind)]
            return
        total = e.put(f"load {kind}, ptr {slots[0]}")
        for slot in slots[1:]:
            total = self.merge(r, kind, total, e.put(f"load {kind}, ptr {slot}"))
        if not self.wide:
            self.accumulators[r, "result"] = [total]
            return
        self.accumulators[r, "result"] = [self.folded(r, total)]

    def folded(self, r: Reduce, vector: str) -> str:
        """Return the lanes of a vector combined into one value, half with half.

        Each step works on vectors half as long. On vectors that stay long, with upper lanes that
        nothing reads, LLVM 22.1 takes wrong lanes in a function with two such sums of integers and
        AVX-512.
        """
        e, element, width = self.e, compute_type(r.value.dtype), self.lanes
        while width > 1:
            kind, width = f"<{width} x {element}>", width // 2
            low, high = (
                e.put(
                    f"shufflevector {kind} {vector}, {kind} undef, <{width} x i32> "
                    f"<{', '.join(f'i32 {i}' for i in half)}>"
                )
                for half in (range(width), range(width, 2 * width))
            )
            vector = self.merge(r, f"<{width} x {element}>", low, high)
        return e.put(f"extractelement <1 x {element}> {vector}, i32 0")

    def finish_position(self, r: Reduce, kind: str) -> str:
        """Return the position that an argmax or argmin has found, over all copies and lanes.

        `kind` is the LLVM type of its accumulators. Vectors are combined half with half.
        """
        e, index_kind, width = self.e, self.index_kind(r), self.lanes if self.wide else 1
        element, one = compute_type(r.value.dtype), compute_type(r.result.dtype)
        pairs = [
            (e.put(f"load {kind}, ptr {slot}"), e.put(f"load {index_kind}, ptr {index_slot}"))
            for slot, index_slot in zip(self.accumulators[r, "slots"], self.accumulators[r, "indices"])
        ]
        best, place = pairs[0]
        for value, index in pairs[1:]:
            best, place = self._preferred(r, width if self.wide else 0, best, place, value, index)
        if not self.wide:
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
        e = self.e
        element, one = compute_type(r.value.dtype), compute_type(r.result.dtype)
        kind, index_kind, bit, unset = element, one, "i1", self.unset(r)
        if width:
            kind, index_kind, bit = f"<{width} x {element}>", f"<{width} x {one}>", f"<{width} x i1>"
            unset = "<" + ", ".join([f"{one} {unset}"] * width) + ">"
        wins = self.better(r, kind, value, best)
        loses = self.better(r, kind, best, value)
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
        return self.e.put(f"xor {bit} {mask}, {ones}")
