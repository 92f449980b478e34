"""Reports on compiled functions (`explain`): graphs, guards, and graph breaks with reasons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mycel._src.compiler.ir.dim_values import symbols_in
from mycel._src.compiler.ir.printer import to_text
from mycel._src.compiler.transforms.specialize import inner_sizes, specialize
from mycel._src.engines.select import engine
from mycel._src.foundation.settings.parallel_settings import current
from mycel._src.staging.compiled.jit import Jit
from mycel._src.staging.compiled.parallel_dispatch import RankProgram, dividing
from mycel._src.staging.frontend.ast_interpreter.graph_breaks import Break
from mycel._src.staging.frontend.source_code.tracebacks import describe_place
from mycel._src.tensors.cells.cell import Cell

if TYPE_CHECKING:
    from mycel._src.engines.reports import Account, Footprint
    from mycel._src.planner.communication_volume import Communication

__all__ = ["Explanation", "explain"]


class Explanation:
    """An account of a compiled function; `text` (and `str`) shows it.

    `graphs` are the compiled graphs, newest first for each kind of arguments; `captures` are the
    tensors from outside that they read, `writes` those that they change, and `guards` the
    conditions under which a graph is used again. For kinds of arguments that cannot be one graph,
    `refusals` are the reasons, `segments` the graphs of the last call, in order, and `breaks` the
    places between them where Python went on: the line, the reason, and what to write instead.
    Without breaks everything is compiled. `memory` has the memory at the peak and the values that
    are alive then, `steps` the work of each kernel, with the loops of operators of `mycel.te`, and
    the reasons why it stores values; `costs` shows both. `code` has the kernels' code. Of a
    function that ranks compute together, `communication` has what each sends, by line, and memory,
    steps and code are those of one rank.
    """

    communication: Communication | None = None

    def __init__(
        self, name: str, versions: Any, plans: Any, passed: int = 0, of_rank: RankProgram | None = None
    ) -> None:
        """Make an account of the function `name` from its compiled `versions` and the `plans` of
        calls in segments; `passed` calls ran operation by operation. `of_rank` is what a rank runs
        of the one version of a function that is divided.
        """
        self.name, self.passed = name, passed
        # One graph serves calls of many sizes.
        versions = list({id(v.graph): v for v in versions}.values())
        self.graphs = [v.graph for v in versions]
        self.captures = [v.tensors for v in versions]
        self.writes = [[v.tensors[i] for i, _ in v.writes] for v in versions]
        self.guards = [v.guards.describe() + (v.symbolic.plan.describe() if v.symbolic else []) for v in versions]
        self._programs = [(v.graph, v.sizes, v.aliases) for v in versions]
        if of_rank is not None:
            from mycel._src.planner.communication_volume import Communication

            self._programs = [(of_rank.graph, {}, of_rank.aliases)]
            self.communication = Communication(of_rank.graph)
        self._accounts: list[Account] | None = None
        self._footprints: list[Footprint] | None = None
        self.refusals = [p.refusal for p in plans]
        self.segments = [g for p in plans for g in p.segments]
        self._host_steps: list[tuple[str, str, Any]] | None = None
        self.breaks: list[Any] = [b for p in plans for b in p.breaks or [p.refusal]]

    @property
    def host_steps(self) -> list[tuple[str, str, Any]]:
        """The operations that have no native code and run in NumPy, each with the reason and the
        user's position.
        """
        if self._host_steps is None:
            found = [s for g in (*self.graphs, *self.segments) for s in engine().host_steps(g)]
            self._host_steps = [(node.op, why, node.where) for node, why in found]
        return self._host_steps

    def _static(self) -> list[tuple[Any, Any]]:
        """Return the graphs and segments whose sizes are known, with what they write over their
        inputs.
        """
        found = [(specialize(g, sizes) if sizes else g, aliases) for g, sizes, aliases in self._programs]
        found += [(g, {}) for g in self.segments]
        return [(g, aliases) for g, aliases in found if g.outputs and not symbols_in(*inner_sizes(g))]

    @property
    def memory(self) -> list[Footprint]:
        """The memory of each graph or segment of known sizes at its peak, and what is alive
        then.
        """
        if self._footprints is None:
            self._footprints = [engine().footprint(g, aliases) for g, aliases in self._static()]
        return self._footprints

    @property
    def steps(self) -> list[Account]:
        """The steps of each graph or segment of known sizes: what was fused, the bytes moved and
        operations done, why values lie in memory, and how.
        """
        if self._accounts is None:
            self._accounts = [engine().account(g, aliases) for g, aliases in self._static()]
        return self._accounts

    @property
    def costs(self) -> str:
        """`memory` and `steps` as readable text."""
        return "\n\n".join(f"{m.text()}\n{s.text()}" for m, s in zip(self.memory, self.steps))

    def code(self, assembly: bool = False) -> str:
        """Return the code of all kernels, each with its step of `costs` as a title.

        It is LLVM's as Mycel writes it, or with `assembly` the processor's after LLVM's passes.
        """
        return "\n".join([s.code(assembly) for s in self.steps])

    @property
    def text(self) -> str:
        """Everything as readable text."""
        lines = [f"{self.name}: {_count(self.graphs, 'graph')}, {_count(self.breaks, 'break')}"]
        if self.passed:
            lines.append(
                f"{_count(range(self.passed), 'call')} ran operation by operation: the function recurses over a "
                "structure in its arguments that was new; what comes again is compiled"
            )
        lines += [str(r) for r in self.refusals]
        lines += [str(b) for b in self.breaks if isinstance(b, Break)]
        lines += [
            f"{name} runs in NumPy: {why}" + (f"\n{describe_place(w)}" if w else "") for name, why, w in self.host_steps
        ]
        for graph in self.segments:
            lines += ["", to_text(graph)]
        for graph, captures, writes, guards in zip(self.graphs, self.captures, self.writes, self.guards):
            lines += ["", to_text(graph)]
            if captures:
                lines.append(f"reads {_names(captures)}")
            if writes:
                lines.append(f"changes {_names(writes)}")
            if guards:
                lines += ["holds as long as", *[f"  {g}" for g in guards]]
        lines += ["", *[m.text() for m in self.memory]] if self.memory else []
        lines += ["", self.communication.text()] if self.communication is not None else []
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__


def _count(items: Sequence[Any], word: str) -> str:
    return f"{len(items)} {word}{'' if len(items) == 1 else 's'}"


def _names(tensors: list[Any]) -> str:
    return ", ".join(f"{t.__dict__.get('name') or 'a tensor'} {t._type}" for t in tensors)


def explain(fn: Any, *args: Any, parallel: bool = False, **kwargs: Any) -> Explanation:
    """Compile a function or Cell for arguments like these and give an account of it.

    A function that is one graph is not run. One that goes back to Python on the way is called once,
    with all its effects, as what comes after a break depends on the values before it. Without
    arguments, the account is of what has been compiled so far.

    Args:
        fn (Callable[..., Any]): The function or Cell.
        *args (Any): Its arguments.
        parallel (bool): Whether it is divided as the parallel mode in force says, and the account
            says what each rank sends; ranks need not have been started. Default: False.
        **kwargs (Any): Its arguments by name.

    Returns:
        Explanation: The account.

    Raises:
        ValueError: If no such mode is set.

    Examples:
        >>> import mycel as ms
        >>> account = ms.explain(lambda x: x * x.sum().item(), ms.Tensor([2.0, 3.0]))
        >>> reason, mend = account.breaks[0].reason.split("; ")
        >>> reason
        'item() needs the value of a tensor (float32[])'
        >>> len(account.segments)
        2
    """

    divided = divided_of("explain", fn, args, kwargs, parallel)
    if divided is not None:
        of_rank, _ = divided
        return Explanation(of_rank.graph.name, [of_rank.version], [], of_rank=of_rank)
    compiled, bound = compiled_of(fn)
    if not args and not kwargs and (compiled.versions or compiled.lives):
        versions = [v for found in compiled.versions.values() for v in found]
        return Explanation(compiled.__qualname__, versions, compiled.lives.values(), compiled.structures.passed)
    version, plan = compiled.look(bound + args, kwargs)
    if plan is not None:
        compiled(*bound, *args, **kwargs)
        return Explanation(compiled.__qualname__, [], [plan], compiled.structures.passed)
    return Explanation(compiled.__qualname__, [version], [], compiled.structures.passed)


def divided_of(name: str, fn: Any, args: Any, kwargs: Any, parallel: bool) -> tuple[RankProgram, Any] | None:
    """Return what a rank runs of a call of a divided function, and the call's arguments with those
    that the function is bound to; None for a function that is not divided.

    `fn` is what `distribute` returns, or with `parallel` what the parallel mode divides; `args` and
    `kwargs` are those of the call, and `name` is the function's that asks.

    Raises ValueError for `parallel` without a parallel mode.
    """
    divided = getattr(fn, "planned", None)
    if divided is not None:
        return divided(*args, **kwargs), args
    if not parallel:
        return None
    if dividing.planned is None or current().dividing is None:
        raise ValueError(
            f"{name}: parallel=True needs a parallel mode of several devices; call set_auto_parallel_context("
            "parallel_mode='semi_auto_parallel', device_num=8), or pass what `distribute` returns"
        )
    compiled, bound = compiled_of(fn)
    return dividing.planned(compiled, *bound, *args, **kwargs), bound + args


def compiled_of(fn: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return the compiled function of a function, method or Cell, and the arguments that it is
    bound to.
    """
    function = getattr(fn, "__func__", fn)
    if isinstance(function, Jit):
        return function, () if function is fn else (fn.__self__,)
    if isinstance(fn, Cell):
        compiled = fn.__dict__.get("_compiled_call") or Jit(fn)
        fn.__dict__["_compiled_call"] = compiled
        return compiled, ()
    return Jit(fn), ()
