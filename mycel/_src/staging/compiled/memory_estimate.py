"""Memory estimates: how much a function will need, and whether that fits, before it is run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mycel._src.compiler.transforms.specialize import specialize
from mycel._src.engines.select import engine
from mycel._src.foundation.errors import CompileError
from mycel._src.foundation.readable_sizes import readable
from mycel._src.staging.compiled.call_signature import key_of
from mycel._src.staging.compiled.explain import compiled_of

if TYPE_CHECKING:
    from mycel._src.engines.reports import Footprint

__all__ = ["Estimate", "estimate"]


@dataclass
class Estimate:
    """The memory of a compiled function's run, in bytes.

    `total` is the peak: arguments, the parameters and other tensors that the function reads,
    results, constants, and the arena for the values in between; `needed` is what a run allocates
    beside what is there.

    Args:
        name (str): The name of the function.
        arguments (int): The bytes of the arguments.
        captured (int): Those of the parameters and other tensors that it reads.
        present (int): What is allocated already (parameters, and arguments that have data).
        footprint (Footprint): What is alive at the peak, by the user's lines.
        available (int | None): What the system, a container or `max_device_memory` leaves now, None
            where that is unknown. Default: None.
    """

    name: str
    arguments: int
    captured: int
    present: int
    footprint: Footprint = field(repr=False)
    available: int | None = None

    @property
    def total(self) -> int:
        """The bytes at the peak."""
        return self.footprint.total

    @property
    def needed(self) -> int:
        """The bytes that a run takes beside those that are allocated already."""
        return self.total - self.present

    @property
    def fits(self) -> bool:
        """Whether a run takes no more than is available; True where the latter is unknown."""
        return self.available is None or self.needed <= self.available

    def check(self) -> None:
        """Raise MemoryError, with what is alive at the peak, if a run does not fit."""
        if not self.fits:
            raise MemoryError(
                f"{self.text}\n  work in smaller batches, put parts into mycel.recompute, or use a narrower type such "
                "as bfloat16"
            )

    @property
    def text(self) -> str:
        """The estimate as readable text."""
        verdict = "nothing tells what is available"
        if self.available is not None:
            verdict = f"{readable(self.available)} are available: " + ("it fits" if self.fits else "it does not fit")
        head = (
            f"{self.name} takes {readable(self.needed)} beside the {readable(self.present)} of its parameters and "
            f"arguments; {verdict}"
        )
        return head + "\n" + self.footprint.text()

    def __str__(self) -> str:
        return self.text


def estimate(fn: Any, *args: Any, **kwargs: Any) -> Estimate:
    """Return the memory that a run of a function or Cell with arguments like these will take,
    without running it, generating its code, or allocating its arguments.

    Arguments are as in a call. A tensor of which only the type is known is ``Tensor(shape=...,
    dtype=..., init=...)``, which takes no memory as long as nobody asks for its elements. The
    function is staged and its program laid out for these sizes. `Estimate.fits` compares with what
    is available; `Estimate.check` raises where it does not fit. Raises CompileError for a function
    that is not one graph, or in which data decide sizes: their memory is known only when they run.

    >>> import mycel as ms
    >>> from mycel.common.initializer import Zero
    >>> batch = ms.Tensor(shape=(4096, 1024), dtype=ms.float32, init=Zero())
    >>> found = ms.estimate(lambda x: ms.ops.matmul(x.T, ms.ops.exp(x)), batch)
    >>> found.arguments >> 20, found.fits
    (16, True)
    >>> found.total >= (16 + 16 + 4) << 20
    True
    """
    compiled, bound = compiled_of(fn)
    version, plan = compiled.look(bound + args, kwargs)
    if version is None:
        assert plan is not None
        raise CompileError(
            f"estimate: {plan.refusal}\n  what it takes is known only as it runs: see "
            "mycel.runtime.max_memory_allocated()"
        )
    if version.is_open:
        raise CompileError(
            f"estimate: data decide sizes in {compiled.__qualname__}: what it takes is known only as it runs; see "
            "mycel.runtime.max_memory_allocated()"
        )
    graph = specialize(version.graph, version.sizes) if version.sizes else version.graph
    found = engine().footprint(graph, version.aliases)
    tensors: list[Any] = []
    key_of(bound + args, kwargs, tensors)
    count = len(graph.inputs) - len(version.tensors)
    present = sum(n for n, t in zip(found.inputs, [*tensors, *version.tensors]) if t._buf is not None)
    return Estimate(
        compiled.__qualname__,
        sum(found.inputs[:count]),
        sum(found.inputs[count:]),
        present,
        found,
        engine().available_memory(),
    )
