"""The loops around the code that is being written: where they are, and what holds inside them.

Each loop that is opened moves the offsets of the accesses that depend on it. A value is remembered
in the scope of the loop in which it was computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mycel._src.compiler.ir.dims import Dim, is_one, is_zero
from mycel._src.engines.native.kernels.instruction_emitter import memory_type
from mycel._src.engines.native.kernels.kernel_form import Facts, Form
from mycel._src.engines.native.kernels.kernel_function import KernelFunction
from mycel._src.engines.native.kernels.loop_nest import Access, Affine, Guard

__all__ = ["OpenLoops"]


class OpenLoops:
    """The open loops of a kernel: positions, offsets, guards and the lanes that there are.

    * `position`: the number of the iteration by loop, a name or an integer; `extents`: the number
      of iterations of each loop of the nest, in the same way.
    * `copies`: how many copies of each vector are computed side by side.
    * `mask`: the lanes that there are (None: all); `left`: how many these are at most, as an i32;
      `last_masked`: whether only the last copy has that mask.
    * `held`: the guards that are known to hold.

    The nest has the form `form`, of whose accesses are `facts`; `function` is what is written. The
    words of sizes, strides and offsets are loaded when it is made.
    """

    def __init__(self, form: Form, facts: Facts, function: KernelFunction) -> None:
        self.form, self.function = form, function
        self.position: dict[int, Any] = {}
        self.copies = 1
        self.mask: str | None = None
        self.left = ""
        self.last_masked = False
        self.held: frozenset[Guard] | set[Guard] = frozenset()
        self._facts = facts
        self._e, self._ix = function.e, function.ix
        self._scopes: list[dict[Any, list[str]]] = [{}]
        self._offsets: list[dict[int, str | None]] = [{}]
        self._strides: dict[tuple[int, int], str] = {}
        self.extents: dict[int, Any] = {
            k: (loop.extent if loop.unroll else function.word("int", loop.extent))
            for k, loop in enumerate(form.nest.loops)
        }
        for i, access in enumerate(facts.accesses):
            for loop, value in access.offset.terms:
                if not (loop == form.vector_loop and is_one(value)):
                    self._strides[i, loop] = function.word("int", value)
            if not is_zero(access.offset.const):
                self._offsets[0][i] = function.word("int", access.offset.const)
            function.pointer(access.buffer)

    # Scopes.

    @contextmanager
    def scope(self, loop: int, position: Any) -> Iterator[None]:
        """Write code inside one more loop at a position.

        Offsets and values computed in it are forgotten when the block ends.
        """
        self._scopes.append({})
        mine = dict(self._offsets[-1])
        self.position[loop] = position
        for i, access in enumerate(self._facts.accesses):
            stride = access.offset.coefficient(loop)
            if not is_zero(stride) and position != 0:
                step = self._stride(i, loop, stride)
                moved = position if step is None else self._e.put(f"mul {self._ix} {position}, {step}")
                mine[i] = moved if mine.get(i) is None else self._e.put(f"add {self._ix} {mine[i]}, {moved}")
        self._offsets.append(mine)
        try:
            yield
        finally:
            self._scopes.pop()
            self._offsets.pop()
            self.position.pop(loop)

    def known(self, key: Any) -> list[str] | None:
        """Return the values remembered by `key` in an open scope."""
        for scope in self._scopes[::-1]:
            if key in scope:
                return scope[key]
        return None

    def remember(self, key: Any, values: list[str]) -> None:
        """Remember values until the innermost scope ends."""
        self._scopes[-1][key] = values

    @contextmanager
    def holding(self, guards: set[Guard]) -> Iterator[None]:
        """Write code in which guards are known to hold."""
        before = self.held
        self.held = before | guards
        try:
            yield
        finally:
            self.held = before

    def mask_of(self, copy: int) -> str | None:
        """Return the mask of the lanes that there are of a copy; None for all."""
        return None if self.last_masked and copy != self.copies - 1 else self.mask

    # Addresses.

    def _stride(self, access: int, loop: int, value: Any) -> str | None:
        """Return the word of an access's stride; None for the unit stride of the vector loop."""
        if loop == self.form.vector_loop and is_one(value):
            return None
        return self._strides[access, loop]

    def lane_stride(self, access: Access) -> str | None:
        """Return the word of the distance of an access's lanes; None where that is one."""
        loop = self.form.vector_loop
        return self._stride(self._facts.access_index[access], loop, access.offset.coefficient(loop))

    def address(self, access: Access, copy: int) -> str:
        """Return the address of the first lane of a copy.

        The data-dependent part of the access must be the same for all lanes.
        """
        e, lanes, loop = self._e, self.form.lanes, self.form.vector_loop
        i = self._facts.access_index[access]
        offset = self._offsets[-1].get(i)
        kind = memory_type(access.buffer.dtype)
        step = access.offset.coefficient(loop)
        base = self.function.pointer(access.buffer)
        if offset is not None:
            base = e.put(f"getelementptr {kind}, ptr {base}, {self._ix} {offset}")
        if copy and not is_zero(step):
            if is_one(step):
                base = e.put(f"getelementptr {kind}, ptr {base}, {self._ix} {copy * lanes}")
            else:
                jump = e.put(f"mul {self._ix} {self.lane_stride(access)}, {copy * lanes}")
                base = e.put(f"getelementptr {kind}, ptr {base}, {self._ix} {jump}")
        return base

    def lanes_addresses(self, access: Access, copy: int, moved: str | None, moved_wide: bool) -> str:
        """Return a vector of addresses of an access, one for each lane.

        `copy` is the number of the vector among those computed side by side. `moved` is the offset
        that data-dependent indices add (None: none), a vector where `moved_wide`.
        """
        e, ix = self._e, self._ix
        kind = memory_type(access.buffer.dtype)
        base = self.address(access, copy)
        step = access.offset.coefficient(self.form.vector_loop)
        steps: str | None = None
        if not is_zero(step):
            if is_one(step):
                steps = self.function.iota(ix)
            else:
                word = str(self.lane_stride(access))
                steps = e.put(f"mul {e.vector(ix)} {e.splat(word, ix)}, {self.function.iota(ix)}")
        if moved is not None:
            wide = moved if moved_wide else e.splat(moved, ix)
            steps = wide if steps is None else e.put(f"add {e.vector(ix)} {steps}, {wide}")
        return e.put(f"getelementptr {kind}, ptr {base}, {e.vector(ix)} {steps or 'zeroinitializer'}")

    # Positions and guards.

    def place(self, position: Affine, copy: int, bits: int, wide: bool) -> str:
        """Return an affine position as an integer of `bits` bits, a vector where `wide`.

        `copy` is the number of the vector among those computed side by side.
        """
        e, function, ix = self._e, self.function, self._ix
        total: str | None = None
        const: Any = position.const
        for loop, c in position.terms:
            at = self.position[loop]
            if isinstance(at, int):
                const = const + c * at
                continue
            term = at if is_one(c) else e.put(f"mul {ix} {at}, {function.number(c)}")
            total = term if total is None else e.put(f"add {ix} {total}, {term}")
        step: Any = position.coefficient(self.form.vector_loop) if wide else 0
        const = const + step * copy * self.form.lanes
        if total is None:
            base = total = function.number(const)
            narrow_known = not isinstance(const, Dim)
        else:
            base = total if is_zero(const) else e.put(f"add {ix} {total}, {function.number(const)}")
            narrow_known = False
        kind = f"i{bits}"
        if not narrow_known:
            base = function.resized(base, ix, bits)
        if not wide:
            return base
        if not isinstance(step, Dim):
            return e.put(f"add {e.vector(kind)} {e.splat(base, kind)}, {function.iota(kind, 0, step)}")
        word = function.resized(function.number(step), ix, bits)
        lanes = e.put(f"mul {e.vector(kind)} {e.splat(word, kind)}, {function.iota(kind)}")
        return e.put(f"add {e.vector(kind)} {e.splat(base, kind)}, {lanes}")

    def guards(self, guards: Any, copy: int, wide: bool) -> str | None:
        """Return whether every guard holds; None where there are none.

        The result is a vector where `wide`, for the lanes of a `copy`.
        """
        e, near = self._e, self.form.near
        result: str | None = None
        for position, size in guards:
            if (position, size) in self.held:
                continue
            lanes = wide and not is_zero(position.coefficient(self.form.vector_loop))
            kind = f"i{near}"
            at = self.place(position, copy, near, lanes)
            limit = self.limit(position, size)
            if lanes:
                one = e.put(f"icmp ult {e.vector(kind)} {at}, {e.splat(limit, kind)}")
            else:
                one = e.put(f"icmp ult {kind} {at}, {limit}")
                if wide:
                    one = e.splat(one, "i1")
            result = one if result is None else e.put(f"and {e.vector('i1') if wide else 'i1'} {result}, {one}")
        return result

    def all_inside(self, access: Access, copy: int, valid: str | None) -> str | None:
        """Return whether all lanes pass the guards and checks of an access.

        As these are monotonic, the first and the last lane decide. `copy` is the number of the
        vector among those computed side by side, and `valid` says whether the indices are in range.
        Returns None where there are no tests.
        """
        e, form = self._e, self.form
        tests = [] if valid is None else [valid]
        for position, size in access.guards:
            if (position, size) in self.held:
                continue
            step = position.coefficient(form.vector_loop)
            if not isinstance(step, int):
                return None
            kind, limit = f"i{form.near}", self.limit(position, size)
            first = self.place(position, 0, form.near, False)
            if copy and step:
                first = e.put(f"add {kind} {first}, {step * copy * form.lanes}")
            tests.append(e.put(f"icmp ult {kind} {first}, {limit}"))
            if step:
                last = e.put(f"add {kind} {first}, {step * (form.lanes - 1)}")
                tests.append(e.put(f"icmp ult {kind} {last}, {limit}"))
        if not tests:
            return None
        result = tests[0]
        for t in tests[1:]:
            result = e.put(f"and i1 {result}, {t}")
        return result

    def limit(self, position: Affine, size: Any) -> str:
        """Return the size that a guard compares with, in the type of positions."""
        return self.function.resized(self.size_word(position, size), self._ix, self.form.near)

    def size_word(self, position: Affine, size: Any) -> str:
        """Return the size of a guard as a word."""
        return self.function.word_once(("size", position, size), size)
