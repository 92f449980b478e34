"""The plan of a library's program: its steps for a target, and where their values lie."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mycel._src.compiler.ir.dims import DimLike
from mycel._src.engines.native.kernels.codegen import Kernel
from mycel._src.engines.native.kernels.loop_nest import Nest
from mycel._src.engines.native.llvm.target import Target
from mycel._src.engines.native.program.placed_template import Placed
from mycel._src.engines.native.program.template import Making, Template

__all__ = ["ALIGN", "Plan", "Texts"]

# Values begin at multiples of these bytes, in the arena and elsewhere.
ALIGN = 16


class Texts(Making):
    """The kernels of a template as text, which nobody compiles yet."""

    def compile(self, kernel: Kernel) -> None:
        """Leave a kernel as it is."""


class Plan(Placed):
    """A program for a target: its steps, their kernels by identity, and the places of values.

    `stripes` is the number of stripes that its first operations are divided into (0: they are not),
    and `copied_bytes` what one call copies for that.
    """

    unit, tries = ALIGN, 500
    stripes = copied_bytes = 0

    def __init__(
        self,
        template: Template,
        target: Target,
        sizes: Mapping[str, int] | None = None,
        most: Callable[[DimLike], int] | None = None,
    ) -> None:
        """Place the steps of `template` for `target`.

        `sizes` are those that it is reported for, by symbol, and `most` says what a value is at
        most, where there are symbols.
        """
        self.target = target
        self._most = most
        super().__init__(template, sizes or {})
        steps = [s for s in self.all_steps if isinstance(s.data, (Nest, Kernel))]
        self.code = dict(zip(map(id, steps), self.kernels))

    def most(self, value: DimLike) -> int:
        return self.number(value) if self._most is None else self._most(value)

    def most_elements(self) -> int:
        """Return the elements of the largest value, at most."""
        buffers = {id(b): b for s in self.all_steps for b in (*s.reads, *s.writes)}
        return max((self.most(b.size) for b in buffers.values()), default=0)
