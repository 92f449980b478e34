"""Strategies: how a program asks that the inputs and results of operators and Cells are divided.

A strategy has an entry for each tensor: a tuple of the number of parts of each axis, or a `Layout`;
for Cells and functions also None, which leaves a tensor open. What MindSpore refuses when a
strategy is given is refused here, with its types of errors; whether a strategy fits the tensors is
seen when a call is staged (`frontend.parallelism.operator_marks`).
"""

from __future__ import annotations

from typing import Any

from mycel._src.compiler.ir.sharding.division import Division, division_of
from mycel._src.compiler.ir.sharding.layout import Layout
from mycel._src.foundation import arguments
from mycel._src.foundation.settings.ignored_settings import without_effect
from mycel._src.foundation.settings.parallel_settings import current

__all__ = ["Divisions", "Strategy", "attributes_of", "divisions", "note_unused", "plan_of", "strategy_of"]

Divisions = tuple[Division | None, ...]


class Strategy:
    """What a program says of the inputs and results of an operator or Cell.

    `inputs` and `results` have an entry for each tensor, None where it is left open; None for no
    word of all. `stage` is the stage of a pipeline, -1 for none. `plan` has divisions of parameters
    by name.
    """

    __slots__ = ("inputs", "results", "stage", "plan", "__weakref__")

    def __init__(
        self,
        inputs: Divisions | None = None,
        results: Divisions | None = None,
        stage: int = -1,
        plan: tuple[tuple[str, Division], ...] = (),
    ) -> None:
        self.inputs, self.results, self.stage, self.plan = inputs, results, stage, plan


def divisions(owner: str, name: str, given: Any, may_be_open: bool = False) -> Divisions | None:
    """Return what a strategy says, an entry for each tensor; None for None.

    Raises TypeError for what is no tuple of tuples of ints, and no tuple of layouts, and for a
    mixture of both.

    Args:
        owner: The operator in errors.
        name: The argument in errors.
        given: The strategy.
        may_be_open: Whether entries may be None.
    """
    if given is None:
        return None
    arguments.instance(owner, name, given, tuple, "a tuple with an element for each tensor")
    entries = [v for v in given if v is not None or not may_be_open]
    layouts = bool(entries) and isinstance(entries[0], Layout)
    for entry in entries:
        if not isinstance(entry, (tuple, Layout)):
            raise arguments.wrong_type(owner, f"each entry of {name}", "a tuple of ints or a Layout", entry)
        if isinstance(entry, Layout) is not layouts:
            raise TypeError(f"{owner}: {name} must have tuples of ints only, or layouts only, not {given!r}")
        if isinstance(entry, tuple) and not all(isinstance(n, int) for n in entry):
            raise TypeError(f"{owner}: {name} must have ints, the numbers of parts of each axis, not {entry!r}")
    return tuple([None if entry is None else division_of(entry) for entry in given])


def plan_of(owner: str, plan: Any) -> tuple[tuple[str, Division], ...]:
    """Return the divisions of parameters by name that a `parameter_plan` has, a dict or None.

    Raises TypeError for anything else; `owner` is the function in errors.
    """
    if plan is None:
        return ()
    if not isinstance(plan, dict) or not all(isinstance(name, str) for name in plan):
        raise TypeError(f"{owner}: parameter_plan must be a dict by names of parameters, not {plan!r}")
    found = []
    for name, given in plan.items():
        (division,) = divisions(owner, f"parameter_plan[{name!r}]", (given,)) or ()
        assert division is not None
        found.append((name, division))
    return tuple(found)


def strategy_of(owner: str, in_strategy: Any, out_strategy: Any, stage: int = -1) -> Strategy | None:
    """Return the strategy of the operator `owner`, None where neither inputs nor results have one.

    `in_strategy` and `out_strategy` are as the program gives them, and `stage` is that of a
    pipeline, -1 for none. Raises TypeError as `divisions` does, and ValueError for results without
    inputs, and for numbers on one side and layouts on the other.
    """
    inputs, results = divisions(owner, "in_strategy", in_strategy), divisions(owner, "out_strategy", out_strategy)
    if inputs is None and results is not None:
        raise ValueError(f"{owner}: out_strategy is {out_strategy!r}, and in_strategy is missing; give both")
    if inputs and results and _has_mesh(inputs) is not _has_mesh(results):
        raise ValueError(
            f"{owner}: in_strategy and out_strategy must both have tuples of ints, or both have layouts; they are "
            f"{in_strategy!r} and {out_strategy!r}"
        )
    return Strategy(inputs, results, stage) if inputs is not None or stage >= 0 else None


def _has_mesh(known: Divisions) -> bool:
    return any(d is not None and d.mesh is not None for d in known)


def attributes_of(in_strategy: Any, out_strategy: Any) -> dict[str, Any]:
    """Return the attributes that MindSpore gives an operator for its strategy."""
    made: dict[str, Any] = {}
    for side, given in (("in", in_strategy), ("out", out_strategy)):
        is_layout = bool(given) and isinstance(given[0], Layout)
        made[f"{side}_strategy"] = None if is_layout else given
        made[f"{side}_layout"] = tuple([_described(v) for v in given]) if is_layout else None
    return made


def note_unused(what: str) -> None:
    """Log, once, that a strategy has no effect, where the parallel mode divides no operators."""
    settings = current()
    if settings.dividing is None:
        without_effect(
            what,
            f"parallel_mode is {settings.parallel_mode!r}; set 'semi_auto_parallel' or 'auto_parallel' by "
            "set_auto_parallel_context",
        )


def _described(layout: Layout) -> dict[str, Any]:
    known = layout.to_dict()
    return {k: known[k] for k in ("device_matrix", "tensor_map", "interleaved_parallel", "alias_name")}
