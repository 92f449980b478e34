"""How the classes of `mycel.ops.operations.optimizer_updates` are made of rules.

A class names its inputs (those with a star are written), a rule of `mycel.ops.optimizer_updates`
(or one made of it there), and the arguments of the rule: the parameter, its gradient, the states,
then numbers, each an input or a parameter of the object. Where there are `indices`, gradients have
the rows of the parameter that these name, gradients of a row that is named twice add up, and the
rule sees those rows only. The results are the written parameters, in the order of the inputs, or
the first of them. Numbers are as float32 holds them, unless the parameter is float64, so that ``1 -
beta`` is that of tensors.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.ops import optimizer_updates
from mycel.ops.assignment import updated

__all__ = ["number", "update"]


def number(given: Any, wide: bool = False) -> Any:
    """Return a number as float32 has it, or a tensor of one element without its dimensions."""
    if isinstance(given, float):
        return given if wide else float(np.float32(given))
    return given.reshape(()) if isinstance(given, Tensor) and given.shape == (1,) else given


def update(
    inputs: str,
    rule: Callable[..., Any],
    takes: str,
    gives: str = "all",
    name: str = "",
    *,
    whole: bool = False,
    many: str = "",
    strays: bool = False,
    plain: bool = True,
) -> Callable[..., Any]:
    """Return the function that computes an update.

    `inputs`, `rule` and `takes` are those of the class. `gives` says what it returns: "all" written
    parameters, the "first", or "one" for a tuple of the first. An operation without parameters
    needs its `name`. Numbers are tensors and floats, and with `whole` ints and bools too. States
    have the shape of the parameter, and numbers but those that `many` names one element, unless
    `plain` is False. With `strays` indices of rows that are not there are left out.
    """
    names = inputs.replace("*", "").split()
    written = [t[1:] for t in inputs.split() if t.startswith("*")]
    wanted = takes.split()
    parameter, gradient = wanted[:2]
    targets = [parameter, *wanted[2 : len(written) + 1]]
    assert set(targets) == set(written), f"a rule for {written} gives {targets}"
    tensors = {*written, gradient, "indices"}
    alike = targets[1:] if plain else []
    single = [n for n in names if n not in tensors] if plain else []
    single = [n for n in single if n not in many.split()]
    by_rows = "indices" in names and "indices" not in wanted

    def compute(p: Any, *values: Any) -> Any:
        name = p.name
        given = dict(zip(names, values))
        p_, g = given[parameter], given[gradient]
        if "indices" not in names and g.shape != p_.shape:
            raise ShapeError(f"{name}: {gradient} has shape {g.shape}, but {parameter} has {p_.shape}")
        if by_rows and (given["indices"].ndim != 1 or g.ndim != p_.ndim):
            raise ShapeError(
                f"{name}: takes indices (N,) and rows of {p_._type}, not {given['indices']._type} and {g._type}"
            )
        states = tuple(given[t] for t in targets[1:])
        for t in alike:
            if given[t].shape != p_.shape:
                raise ShapeError(f"{name}: {t} has shape {given[t].shape}, but {parameter} has {p_.shape}")
        for t in single:
            if isinstance(given[t], Tensor) and given[t].size > 1:
                raise ShapeError(f"{name}: {t} must be one number, not {given[t]._type}")
        wide = p_.dtype is D.float64
        rest = [
            given[t] if t in tensors else number(given[t] if t in given else getattr(p, t), wide)
            for t in wanted[2 + len(states) :]
        ]
        if by_rows:
            found = optimizer_updates.on_rows(rule, p_, g, given["indices"], states, *rest, strays=strays)
        else:
            found = rule(p_, g, *states, *rest)
        for t, new in zip(targets, found):
            given[t] = updated(given[t], cast(new, given[t].dtype))
        results = tuple(given[t] for t in written)
        return results if gives == "all" else results[:1] if gives == "one" else results[0]

    numbers: Any = Tensor | bool | int | float if whole else Tensor | float
    parts = {"p": Any, **{n: Tensor if n in tensors else numbers for n in names}}
    place = inspect.Parameter.POSITIONAL_OR_KEYWORD
    vars(compute)["__signature__"] = inspect.Signature(
        [inspect.Parameter(n, place, annotation=kinds) for n, kinds in parts.items()]
    )
    return functools.partial(compute, SimpleNamespace(name=name)) if name else compute
