"""Loop splitting: interior and boundary iterations, so that padding is tested only at edges.

A guard says that an affine position lies inside of an array: an image's, behind which padding is.
Where no threads share a kernel's rows, two ranges are found before a loop begins:

* *Kept* iterations of a reducing loop: those of which something can come. Where a guard fails, a
  product with what is 0 outside adds nothing to a sum, and the lowest number changes no maximum.
* The *interior* of the loop of vectors: the lanes for which a guard holds whatever the loops inside
  do. Only the vectors before and behind it test.

For a position ``c v + rest`` with `rest` between two bounds, both ranges follow from the first and
the last `v` with ``0 <= c v + rest < size``.
"""

from __future__ import annotations

from collections.abc import Callable

from mycel._src.engines.native.kernels.instruction_emitter import literal
from mycel._src.engines.native.kernels.kernel_form import Facts, Form
from mycel._src.engines.native.kernels.kernel_function import KernelFunction
from mycel._src.engines.native.kernels.loop_nest import Affine, Expr, Guard, Reduce
from mycel._src.engines.native.kernels.open_loops import OpenLoops
from mycel._src.engines.native.kernels.reductions import identity
from mycel._src.engines.native.llvm.target import target

__all__ = ["LoopSplitter"]


class LoopSplitter:
    """A writer of loops over the iterations in which guards hold, inside of `loops`.

    The nest has the form `form` and `facts`; `function` is what is written.
    """

    def __init__(self, form: Form, facts: Facts, function: KernelFunction, loops: OpenLoops) -> None:
        self._form, self._facts, self._function, self._loops = form, facts, function, loops
        self._e, self._ix = function.e, function.ix

    def kept(self, loop: int, reduces: list[Reduce]) -> tuple[str, str, set[Guard]]:
        """Return the iterations of a reducing loop that contribute something to `reduces`.

        These are their first, the first after them, and the guards that hold in them.
        """
        start, stop = "0", str(self._loops.extents[loop])
        if target().threads:
            return start, stop, set()
        found: set[Guard] | None = None
        for r in reduces:
            found = _vain(r) if found is None else found & _vain(r)
        guards = {g for g in found or () if self._is_open(g[0], loop)}
        for guard in guards:
            first, last = self._limits(guard, loop)
            start, stop = self._function.most(start, first), self._function.least(stop, last)
        return start, stop, guards

    def split(self, start: str, end: str, whole: Callable[[str, str], None], edge: Callable[[str, str], None]) -> None:
        """Write the loop of vectors from `start` to `end`.

        `whole` writes it for a range in which crossed guards hold, `edge` where they may not.
        """
        e, guards = self._e, self._crossed()
        if not guards:
            whole(start, end)
            return
        first, last = start, end
        for guard in guards:
            low, high = self._limits(guard, self._form.vector_loop)
            first, last = self._function.most(first, low), self._function.least(last, high)
        first = self._function.least(first, end)
        last = self._function.most(first, last)
        with self._function.loop("0", "2", 1) as side:
            before = e.put(f"icmp eq {self._ix} {side}, 0")
            edge(
                e.put(f"select i1 {before}, {self._ix} {start}, {self._ix} {last}"),
                e.put(f"select i1 {before}, {self._ix} {first}, {self._ix} {end}"),
            )
        with self._loops.holding(guards):
            whole(first, last)

    def _limits(self, guard: Guard, loop: int) -> tuple[str, str]:
        """Return the first iteration of a loop in which a guard holds, and the first after them.

        Loops that are not open yet may be at any of their iterations.
        """
        e, ix, function, loops = self._e, self._ix, self._function, self._loops
        position, size = guard
        c, opened, low, high = position.coefficient(loop), [], 0, 0
        for k, factor in position.terms:
            if k == loop:
                continue
            if k in loops.position:
                opened.append((k, factor))
            else:
                reach = int(factor) * (int(self._form.nest.loops[k].extent) - 1)
                low, high = low + min(reach, 0), high + max(reach, 0)
        rest = loops.place(Affine(tuple(opened), position.const), 0, function.bits, False)
        first = rest if not low else e.put(f"add {ix} {rest}, {function.word_once(('low', guard, loop), low)}")
        last = rest if not high else e.put(f"add {ix} {rest}, {function.word_once(('high', guard, loop), high)}")
        extent = loops.size_word(position, size)
        step = abs(int(c))
        if int(c) > 0:
            start, stop = e.put(f"sub {ix} {step - 1}, {first}"), e.put(f"sub {ix} {extent}, {last}")
            stop = stop if step == 1 else e.put(f"add {ix} {stop}, {step - 1}")
        else:
            start = e.put(f"add {ix} {e.put(f'sub {ix} {last}, {extent}')}, {step}")
            stop = e.put(f"add {ix} {first}, {step}")
        if step > 1:
            start, stop = e.put(f"sdiv {ix} {start}, {step}"), e.put(f"sdiv {ix} {stop}, {step}")
        return start, stop

    def _is_open(self, position: Affine, loop: int) -> bool:
        """Return whether a position depends on a loop, and beside it on open loops alone.

        The lanes of vectors are many positions.
        """
        lanes = self._form.wide and any(k == self._form.vector_loop for k, _ in position.terms)
        return (
            not lanes
            and position.coefficient(loop) != 0
            and all(isinstance(c, int) for _, c in position.terms)
            and all(k == loop or k in self._loops.position for k, _ in position.terms)
        )

    def _crossed(self) -> set[Guard]:
        """Return the guards that hold in an interior of the loop of vectors.

        The interior comes behind both edges, so there is none where the order of positions counts:
        in running reductions, and for the first of several equal values.
        """
        ordered = any(r.scan or r.position is not None for r in self._form.nest.reduces)
        if target().threads or not self._form.wide or ordered:
            return set()
        held = self._loops.held
        return {g for access in self._facts.accesses for g in access.guards if g not in held and self._is_bounded(g[0])}

    def _is_bounded(self, position: Affine) -> bool:
        """Return whether a position depends on the lanes, and is known but for open loops."""
        return position.coefficient(self._form.vector_loop) != 0 and all(
            isinstance(c, int) and (k in self._loops.position or isinstance(self._form.nest.loops[k].extent, int))
            for k, c in position.terms
        )


def _vain(r: Reduce) -> set[Guard]:
    """Return the guards without which an iteration adds nothing to a reduction."""
    factors: tuple[Expr, ...] = (r.value,)
    if r.kind == "sum" and r.value.kind == "op" and r.value.data == "mul":
        factors = r.value.args
    if r.kind not in ("sum", "max") or r.valid is not None or r.scan:
        return set()
    nothing = identity(r)
    return {g for x in factors if x.kind == "load" and literal(x.data[1], x.dtype) == nothing for g in x.data[0].guards}
