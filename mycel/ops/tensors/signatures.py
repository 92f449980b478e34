"""The parameters of tensor methods that are functions of `mycel.ops`.

The first parameter of a function is named for what it takes ("input", "x"), that of a method is
`self`, and some methods have names of their own for the others. A method is therefore the
function's code under other names of its parameters: nothing is called in between, and
`inspect.signature` says what can be passed.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

from mycel._src.tensors.core.fused import fused
from mycel.ops._operands import rounded_once

__all__ = ["OTHER_NAMES", "SPELLINGS", "also_named", "as_method", "bound", "drawing", "with_signature"]

# Parameters that have another name in the method than in the function.
OTHER_NAMES: dict[str, dict[str, str]] = {
    "approximate_equal": {"y": "other"},
    "diagonal": {"dim1": "axis1", "dim2": "axis2"},
    "float_power": {"exponent": "other"},
    "multiply": {"other": "value"},
}

# Methods whose parameters have further names, as in MindSpore's overloads.
SPELLINGS: dict[str, dict[str, str]] = {
    "chunk": {"dim": "axis"},
    "expand_as": {"x": "other"},
    "index_select": {"dim": "axis"},
    "index_fill_": {"dim": "axis"},
    "isclose": {"x2": "other"},
    "matmul": {"tensor2": "other"},
    "narrow": {"dim": "axis"},
    "remainder": {"divisor": "other"},
    "repeat_interleave": {"dim": "axis"},
    "scatter": {"dim": "axis"},
    "scatter_": {"dim": "axis", "value": "src"},
    "split": {"dim": "axis", "split_size": "split_size_or_sections"},
    "sub": {"y": "other"},
    "take": {"index": "indices"},
    "true_divide": {"other": "divisor"},
}


def also_named(method: Callable[..., Any], others: Mapping[str, str]) -> Callable[..., Any]:
    """Return `method` with further names of parameters.

    Raises TypeError where a parameter is given twice.
    """

    @functools.wraps(method)
    def call(self: Any, *args: Any, **named: Any) -> Any:
        if not named:
            return method(self, *args)
        for other in others.keys() & named.keys():
            if others[other] in named:
                raise TypeError(
                    f"{method.__name__}: {other} and {others[other]} name the same parameter; give one of them"
                )
            named[others[other]] = named.pop(other)
        return method(self, *args, **named)

    call.__dict__["__signature__"] = inspect.signature(method)
    return call


def bound(
    method: str, names: tuple[str, ...], args: tuple[Any, ...], named: Mapping[str, Any], **defaults: Any
) -> list[Any]:
    """Return the arguments of one of the overloads of `method`, in the order of `names`, all of
    which it needs, and of `defaults`, which are values that may be left out.

    `args` are those given by position, `named` those given by name. Raises TypeError that says what
    is missing or too much.
    """
    every = (*names, *defaults)
    given = dict(zip(every, args))
    both = given.keys() | named.keys()
    if len(args) > len(every) or given.keys() & named.keys() or set(names) - both or both - set(every):
        what = ", ".join([*(type(a).__name__ for a in args), *(f"{k}=" for k in named)]) or "nothing"
        raise TypeError(f"{method}: takes {', '.join(every)}, but was given {what}")
    found = {**defaults, **given, **named}
    return [found[n] for n in every]


def _copy(function: FunctionType, code: Any) -> FunctionType:
    """Return a copy of a function with other code."""
    made = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    made.__kwdefaults__ = function.__kwdefaults__
    made.__qualname__, made.__module__, made.__doc__ = function.__qualname__, function.__module__, function.__doc__
    made.__annotations__ = dict(function.__annotations__)
    made.__dict__.update(function.__dict__)
    return made


def _renamed(function: FunctionType, names: Mapping[str, str]) -> FunctionType:
    """Return a function of the same code whose parameters and local variables have other names."""
    code = function.__code__
    made = _copy(
        function,
        code.replace(
            co_varnames=tuple([names.get(n, n) for n in code.co_varnames]),
            co_cellvars=tuple([names.get(n, n) for n in code.co_cellvars]),
        ),
    )
    made.__annotations__ = {names.get(n, n): kind for n, kind in made.__annotations__.items()}
    return made


def _shown(function: FunctionType, names: Mapping[str, str]) -> FunctionType:
    """Return a copy of a wrapper, or of one around another, whose signature shows other names."""
    inner = function.__dict__.get("__wrapped__")
    if inner is None:
        return _renamed(function, names)
    made = _copy(function, function.__code__)
    made.__dict__["__wrapped__"] = _shown(inner, names)
    return made


def as_method(function: Callable[..., Any], others: Mapping[str, str] | None = None) -> Callable[..., Any]:
    """Return `function` with its first parameter named `self`, and other parameters as `others`
    says.

    Where nothing changes that is the function itself. The method's `method_of` is the function.
    """
    first = next(iter(inspect.signature(function).parameters.values()), None)
    if first is None or not isinstance(function, FunctionType) or first.kind is first.VAR_POSITIONAL:
        return function
    names = {**(others or {}), first.name: "self"}
    if names == {"self": "self"}:
        return function
    inner = function.__dict__.get("__wrapped__")
    if inner is None:
        made = _renamed(function, names)
    elif others:
        # What is passed by name reaches the innermost function, so it is wrapped anew.
        within = inner.__dict__.get("__wrapped__")
        made = fused(_renamed(inner, names) if within is None else rounded_once(_renamed(within, names)))
    else:
        made = _shown(function, names)
    made.__dict__["method_of"] = function
    if function.__doc__ is not None:
        made.__doc__ = _of_method(function.__doc__, names)
    return made


def _of_method(text: str, names: Mapping[str, str]) -> str:
    """Return a function's docstring for its method: without the first of the parameters that it
    lists, and with others under their own names.
    """
    before, listed, after = text.partition("\n    Args:\n")
    if not listed:
        return text
    end = after.find("\n        ", after.find("\n"))
    while end >= 0 and after[end + 9] == " ":
        end = after.find("\n        ", end + 1)
    rest = after[end + 1 :]
    for old, new in names.items():
        rest = rest.replace(f"\n        {old} (", f"\n        {new} (") if new != "self" else rest
        if rest.startswith(f"        {old} (") and new != "self":
            rest = f"        {new} (" + rest[len(old) + 10 :]
    return before + listed + rest


def with_signature(method: Any, function: Callable[..., Any]) -> Any:
    """Return `method`, which passes all its arguments on to `function`, with the signature of
    `function`.
    """
    known = inspect.signature(function)
    first, *rest = known.parameters.values()
    method.__signature__ = known.replace(parameters=[first.replace(name="self"), *rest])
    return method


def drawing(method: Any, draw: Callable[..., Any]) -> Any:
    """Return `method`, which draws by ``draw(self, generator, ...)``, with the signature of `draw`.

    The generator comes last there and is passed by name.
    """
    known = inspect.signature(draw)
    first, generator, *rest = known.parameters.values()
    last = generator.replace(kind=generator.KEYWORD_ONLY, default=None)
    method.__signature__ = known.replace(parameters=[first, *rest, last])
    return method
