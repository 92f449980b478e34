"""A template with its symbols bound to actual sizes, and its buffers placed in the arena."""

from __future__ import annotations

from collections.abc import Mapping

from mycel._src.compiler.ir.dim_values import evaluate
from mycel._src.compiler.ir.dims import Dim, DimLike
from mycel._src.compiler.ir.graph import at
from mycel._src.compiler.ir.types import MOST_BYTES, TensorType, Type
from mycel._src.compiler.transforms.specialize import concrete
from mycel._src.engines.host_memory import check_needs
from mycel._src.engines.native.kernels.loop_nest import Buffer
from mycel._src.engines.native.kernels.strided_view import View
from mycel._src.engines.native.program import arena
from mycel._src.engines.native.program.liveness import Ends, Liveness
from mycel._src.engines.native.program.template import Template
from mycel._src.engines.native.runtime import bounds_check_setting
from mycel._src.foundation.errors import SizeError

__all__ = ["Placed"]


class Placed:
    """A template for actual sizes, by symbol.

    `calls` are the plans of the dense library by the identity of the step, with their buffers by
    name; `places` are the offsets of buffers in the arena, by identity, and `arena_bytes` is its
    size. Offsets are multiples of `unit`, and `tries` are spent on a smaller arena.
    """

    unit, tries = arena.ALIGNMENT, 0

    def __init__(self, template: Template, sizes: Mapping[str, int]) -> None:
        self.template, self.sizes = template, dict(sizes)
        self.graph, self.lowered, self.kernels = template.graph, template.lowered, template.kernels
        self.all_steps = template.all_steps
        self._numbers = template.numbers(self.sizes)
        self._new: list[Dim] = []
        self.outputs = [_of_value(t) for t in self.graph.output_types]
        self.output_bytes = [max(self.number(t.nbytes), 1) for t in self.outputs]
        if max(self.output_bytes, default=0) > MOST_BYTES:
            raise self.too_large()
        self.calls = template.plans(self.number)
        self.places: dict[int, int] = {}
        self.arena_bytes = 0
        self.ends: Ends | None = None
        self._place_arena()

    def number(self, value: DimLike) -> int:
        """Return the value of a dimension for these sizes."""
        if type(value) is int:
            return value
        found = self._numbers.get(value)
        if found is None:
            found = self._numbers[value] = evaluate(value, self.sizes)
            if isinstance(value, Dim):
                self._new.append(value)
        return found

    def most(self, value: DimLike) -> int:
        """Return what a dimension is at most, for which there has to be memory."""
        return self.number(value)

    def shape(self, view: View) -> tuple[int, ...]:
        """Return the actual sizes of a view."""
        return tuple([self.number(d) for d in view.shape])

    def nbytes(self, buffer: Buffer) -> int:
        """Return the bytes of a buffer for these sizes."""
        return self.number(buffer.size) * buffer.dtype.itemsize

    def offset(self, view: View) -> int:
        """Return the bytes from the start of a view's buffer to its first element."""
        return self.number(view.offset) * view.buffer.dtype.itemsize

    def too_large(self) -> SizeError:
        """Return the error for sizes with which a count in the graph does not fit 63 bits."""
        for node in self.graph.nodes:
            for kind in node.type if isinstance(node.type, tuple) else (node.type,):
                try:
                    with at(node.where):
                        concrete(kind, self.sizes)
                except SizeError as error:
                    error.raised_in(node.op if node.prim is not None else self.graph.name)
                    return error
        sizes = ", ".join(f"{name} = {size}" for name, size in self.sizes.items())
        return SizeError(
            f"{self.graph.name} counts more than 2**63 - 1 elements or bytes in one "
            f"step{' for ' if sizes else ''}{sizes}"
        )

    def _place_arena(self) -> None:
        """Choose the offsets of the buffers that live only inside a run."""
        new = sum(n for j, n in enumerate(self.output_bytes) if j not in self.template.aliases)
        check_needs(self.graph, new, self.sizes)
        live = Liveness(self.template.steps, self.calls, self.template.takes)
        lives = live.lives(self.most)
        if max((nbytes for _, nbytes, _, _ in lives), default=0) > MOST_BYTES:
            raise self.too_large()
        self.places, self.arena_bytes = arena.plan(lives, live.taking, self.unit, self.tries)
        if bounds_check_setting.is_on():
            self.ends = Ends(live.times, arena.joined(lives, live.taking)[0], self.places)
        check_needs(self.graph, self.arena_bytes + new, self.sizes)


def _of_value(kind: Type) -> TensorType:
    """Return the type of a result, which is a tensor."""
    assert isinstance(kind, TensorType), "a token is no result"
    return kind
