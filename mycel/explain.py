"""What was compiled, from what, under which conditions, and what was not and why."""

from __future__ import annotations

from typing import Any

from mycel.ir.printer import to_text

__all__ = ["Explanation", "explain"]


class Explanation:
    """An account of a compiled function; `text` (and `str`) shows it.

    `graphs` are the compiled graphs, newest first for each kind of arguments; `captures` the tensors from outside that they read, `writes` those that they
    change; `guards` what has to be as it was for a graph to be used again; `fallbacks` why calls run operation by operation.
    """

    def __init__(self, name: str, versions: Any, fallbacks: Any) -> None:
        self.name = name
        self.graphs = [v.graph for v in versions]
        self.captures = [v.tensors for v in versions]
        self.writes = [[v.tensors[i] for i, _ in v.writes] for v in versions]
        self.guards = [v.guards.describe() for v in versions]
        self.fallbacks = list(fallbacks)

    @property
    def breaks(self) -> list[Any]:
        """Where the function goes back to Python, and why; empty where it is one graph."""
        return self.fallbacks

    @property
    def text(self) -> str:
        """Everything as readable text."""
        lines = [f"{self.name}: {_count(self.graphs, 'graph')}, {_count(self.fallbacks, 'fallback')}"]
        lines += [str(f) for f in self.fallbacks]
        for graph, captures, writes, guards in zip(self.graphs, self.captures, self.writes, self.guards):
            lines += ["", to_text(graph)]
            if captures:
                lines.append(f"reads {_names(captures)}")
            if writes:
                lines.append(f"changes {_names(writes)}")
            if guards:
                lines += ["holds as long as", *[f"  {g}" for g in guards]]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__


def _count(items: list[Any], word: str) -> str:
    return f"{len(items)} {word}{'' if len(items) == 1 else 's'}"


def _names(tensors: list[Any]) -> str:
    return ", ".join(f"{t.__dict__.get('name') or 'a tensor'} {t._type}" for t in tensors)


def explain(fn: Any, *args: Any, **kwargs: Any) -> Explanation:
    """Compile a function or Cell for arguments like these and give an account of it; nothing is run.

    Without arguments, an account of what has been compiled so far.

    >>> import mycel as ms
    >>> account = ms.explain(lambda x: x.item() + 1, ms.Tensor(2.0))
    >>> print(account.fallbacks[0].reason)
    item() needs the value of a tensor (float32[]) that is computed only when the compiled function runs; keep it a tensor, or return it and call item() outside
    """
    from mycel.cell import Cell
    from mycel.jit import Jit

    bound: tuple[Any, ...] = ()
    function = getattr(fn, "__func__", fn)
    if isinstance(function, Jit):
        compiled = function
        if function is not fn:
            bound = (fn.__self__,)
    elif isinstance(fn, Cell):
        compiled = fn.__dict__.get("_compiled_call") or Jit(fn)
        fn.__dict__["_compiled_call"] = compiled
    else:
        compiled = Jit(fn)
    if not args and not kwargs and (compiled.versions or compiled.fallbacks):
        versions = [v for found in compiled.versions.values() for v in found]
        return Explanation(compiled.__qualname__, versions, compiled.fallbacks.values())
    version, fallback = compiled.look(bound + args, kwargs)
    return Explanation(
        compiled.__qualname__, [version] if version is not None else [], [fallback] if fallback is not None else []
    )
