"""Memory estimates: how much a function will need, and whether that fits, before it is run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mycel._src.compiler.transforms.specialize import specialize
from mycel._src.engines.select import engine
from mycel._src.foundation.errors import CompileError
from mycel._src.foundation.readable_sizes import readable
from mycel._src.staging.compiled.call_signature import key_of
from mycel._src.staging.compiled.explain import compiled_of, divided_of
from mycel._src.staging.compiled.parallel_dispatch import RankProgram

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


def estimate(fn: Any, *args: Any, parallel: bool = False, **kwargs: Any) -> Estimate:
    """Return the memory that a run of a function or Cell with arguments like these will take,
    without running it, generating its code, or allocating its arguments.

    The function is staged and its program laid out for these sizes. `Estimate.fits` compares with
    what is available; `Estimate.check` raises where it does not fit.

    Args:
        fn (Callable[..., Any]): The function or Cell, or what `distribute` returns.
        *args (Any): Its arguments as in a call. A tensor of which only the type is known is
            ``Tensor(shape=..., dtype=..., init=...)``, which takes no memory as long as nobody asks
            for its elements.
        parallel (bool): Whether it is the memory of one rank of a parallel mode
            (`set_auto_parallel_context`) that is returned, as always for what `distribute` returns:
            of the first stage of a pipeline, where this process is no rank. Nothing has to be
            started, and parameters need not have been made. Default: False.
        **kwargs (Any): Its arguments by name.

    Returns:
        Estimate: The bytes at the peak, by what takes them.

    Raises:
        CompileError: For a function that is not one graph, or in which data decide sizes: their
            memory is known only when they run.
        ValueError: For `parallel` without a parallel mode.

    Examples:
        >>> import mycel as ms
        >>> from mycel.common.initializer import Zero
        >>> batch = ms.Tensor(shape=(4096, 1024), dtype=ms.float32, init=Zero())
        >>> found = ms.estimate(lambda x: ms.ops.matmul(x.T, ms.ops.exp(x)), batch)
        >>> found.arguments >> 20, found.fits
        (16, True)
        >>> found.total >= (16 + 16 + 4) << 20
        True
    """
    divided = divided_of("estimate", fn, args, kwargs, parallel)
    if divided is not None:
        of_rank, given = divided
        return _of_program(of_rank.graph.name, of_rank, (given, kwargs))
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
    whole = RankProgram(version, graph, range(len(graph.inputs)), version.aliases)
    return _of_program(compiled.__qualname__, whole, (bound + args, kwargs))


def _of_program(name: str, program: RankProgram, call: tuple[Any, Any]) -> Estimate:
    """Return the memory of a run of a program of static sizes, whose function is called `name`,
    with the arguments of `call`.
    """
    found = engine().footprint(program.graph, program.aliases)
    tensors: list[Any] = []
    key_of(*call, tensors)
    given = [*tensors, *program.version.tensors]
    bytes_of = [(n, k < len(tensors), given[k]._buf is not None) for n, k in zip(found.inputs, program.inputs)]
    return Estimate(
        name,
        sum(n for n, is_argument, _ in bytes_of if is_argument),
        sum(n for n, is_argument, _ in bytes_of if not is_argument),
        sum(n for n, _, is_there in bytes_of if is_there),
        found,
        engine().available_memory(),
    )
