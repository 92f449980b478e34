"""Strategies of operators: how a program asks that their inputs and results are divided.

A strategy has an entry for each tensor: a tuple of the number of parts of each axis, or a `Layout`.
What MindSpore refuses when a strategy is given is refused here, with its types of errors; whether a
strategy fits the tensors is seen when a call is staged (`mycel.frontend.operator_marks`).
"""

from __future__ import annotations

from typing import Any, Optional

from mycel.base import arguments
from mycel.base.notes import without_effect
from mycel.base.parallel_settings import current
from mycel.frontend.operator_marks import Strategy
from mycel.ir.division import Division, division_of
from mycel.ir.layout import Layout

__all__ = ["attributes_of", "divisions", "note_unused", "strategy_of"]


def divisions(owner: str, name: str, given: Any) -> Optional[tuple[Division, ...]]:
    """Return what a strategy says, an entry for each tensor; None for None.

    `owner` and `name` are the operator and the argument in errors. Raises TypeError for what is no
    tuple of tuples of ints, and no tuple of layouts, and for a mixture of both.
    """
    if given is None:
        return None
    arguments.instance(owner, name, given, tuple)
    layouts = bool(given) and isinstance(given[0], Layout)
    for entry in given:
        if not isinstance(entry, (tuple, Layout)):
            raise arguments.wrong_type(owner, f"each entry of {name}", "a tuple of ints or a Layout", entry)
        if isinstance(entry, Layout) is not layouts:
            raise TypeError(f"{owner}: {name} must have tuples of ints only, or layouts only, not {given!r}")
        if isinstance(entry, tuple) and not all(isinstance(n, int) for n in entry):
            raise TypeError(f"{owner}: {name} must have ints, the numbers of parts of each axis, not {entry!r}")
    return tuple([division_of(entry) for entry in given])


def strategy_of(owner: str, in_strategy: Any, out_strategy: Any, stage: int = -1) -> Optional[Strategy]:
    """Return the strategy of an operator, None where neither inputs nor results have one.

    Raises TypeError as `divisions` does, and ValueError for results without inputs, and for numbers
    on one side and layouts on the other.
    """
    inputs, results = divisions(owner, "in_strategy", in_strategy), divisions(owner, "out_strategy", out_strategy)
    if inputs is None and results is not None:
        raise ValueError(f"{owner}: out_strategy is {out_strategy!r}, and in_strategy is missing; give both")
    if inputs and results and (inputs[0].mesh is None) is not (results[0].mesh is None):
        raise ValueError(
            f"{owner}: in_strategy and out_strategy must both have tuples of ints, or both have layouts; they are "
            f"{in_strategy!r} and {out_strategy!r}"
        )
    return Strategy(inputs, results, stage) if inputs is not None or stage >= 0 else None


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
