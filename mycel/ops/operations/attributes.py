"""The parameters of operations as objects: what each may be, and its default.

A class statement gives each parameter its default, which also says the type that it must have
(``axis=-1``, ``keep_dims=False``, ``epsilon=1e-5``), or an `Attribute` made by a function of this
module where there is no default, or where more or less than its type is taken: ``axis=integer()``,
``depth_radius=integer(5, at_least=0)``.

Wrong types are refused with TypeError and wrong values with ValueError when an object is made. An
int is no float, and a bool is neither, as in MindSpore.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from mycel._src.compiler.ir.dims import Dim
from mycel._src.foundation import arguments
from mycel._src.foundation.dtype import DType
from mycel._src.tensors.core.tensor import Tensor

__all__ = [
    "NEEDED",
    "Attribute",
    "anything",
    "attribute_of",
    "element_type",
    "flag",
    "integer",
    "integers",
    "number",
    "numbers",
    "one_of",
    "optional",
    "pairs",
    "real",
    "text",
    "word",
]

NEEDED: Any = inspect.Parameter.empty
# It is given the name of the operation, that of the parameter and a value, and returns the value.
Check = Callable[[str, str, Any], Any]


class Attribute(NamedTuple):
    """What a parameter may be: a check of values, and the default, `NEEDED` if there is none."""

    check: Check
    default: Any = NEEDED


def _flag(owner: str, parameter: str, value: Any) -> bool:
    return bool(value) if isinstance(value, np.bool_) else arguments.flag(owner, parameter, value)


def _whole(owner: str, parameter: str, value: Any) -> Any:
    return value if isinstance(value, Dim) else arguments.integer(owner, parameter, value)


def _element_type(owner: str, parameter: str, value: Any) -> DType:
    return arguments.instance(owner, parameter, value, DType, "an element type")


def _as_it_is(owner: str, parameter: str, value: Any) -> Any:
    return value


_BY_TYPE: dict[type, Check] = {
    bool: _flag,
    int: _whole,
    float: arguments.real,
    str: arguments.text,
    DType: _element_type,
}


def attribute_of(given: Any) -> Attribute:
    """Return what a class statement says of a parameter by an `Attribute` or by a default."""
    return given if isinstance(given, Attribute) else Attribute(_BY_TYPE.get(type(given), _as_it_is), given)


def anything(default: Any = NEEDED) -> Attribute:
    """Return a parameter of any type: MindSpore does not look at it, or the operation does."""
    return Attribute(_as_it_is, default)


def optional(attribute: Any) -> Attribute:
    """Return a parameter that may also be None, which is its default unless it has one."""
    check, default = attribute_of(attribute)

    def given(owner: str, parameter: str, value: Any) -> Any:
        return None if value is None else check(owner, parameter, value)

    return Attribute(given, None if default is NEEDED else default)


def flag(default: Any = NEEDED) -> Attribute:
    """Return a parameter that is a bool."""
    return Attribute(_flag, default)


def text(default: Any = NEEDED) -> Attribute:
    """Return a parameter that is a string."""
    return Attribute(arguments.text, default)


def integer(
    default: Any = NEEDED,
    at_least: int | None = None,
    at_most: int | None = None,
    *,
    tensors: bool = False,
    error: type[Exception] | None = None,
) -> Attribute:
    """Return a parameter that is an int within closed bounds, or with `tensors` a tensor.

    `default` is the default, `at_least` and `at_most` are the bounds. `error` is the class of
    errors in place of TypeError and ValueError.
    """

    def check(owner: str, parameter: str, value: Any) -> Any:
        if isinstance(value, Dim) or tensors and isinstance(value, Tensor):
            return value
        return arguments.integer(owner, parameter, value, at_least, at_most, error=error)

    return Attribute(check, default)


def real(
    default: Any = NEEDED,
    at_least: float | None = None,
    above: float | None = None,
    at_most: float | None = None,
) -> Attribute:
    """Return a parameter that is a float within bounds.

    `at_least` and `at_most` are closed bounds, `above` is an open one; `default` is the default.
    """

    def check(owner: str, parameter: str, value: Any) -> float:
        return arguments.real(owner, parameter, value, at_least, above, at_most)

    return Attribute(check, default)


def number(default: Any = NEEDED) -> Attribute:
    """Return a parameter that is a float, an int or a bool."""

    def check(owner: str, parameter: str, value: Any) -> Any:
        return arguments.instance(owner, parameter, value, (bool, int, float, np.number, Dim), "a number")

    return Attribute(check, default)


def word(default: str, *others: str) -> Attribute:
    """Return a parameter that is one of some strings, of which one is the default."""
    allowed = (default, *others)
    return Attribute(lambda owner, parameter, value: arguments.choice(owner, parameter, value, allowed), default)


def one_of(default: str, *others: str) -> Attribute:
    """Return a parameter as `word` does, where a value that is no string is a ValueError too."""
    allowed = (default, *others)
    return Attribute(lambda owner, parameter, value: arguments.one_of(owner, parameter, value, allowed), default)


def element_type(default: Any, *others: DType) -> Attribute:
    """Return a parameter that is one of some element types, of which one is the default, or any
    where no others are given.

    Another element type is a TypeError.
    """
    allowed = (default, *others)

    def check(owner: str, parameter: str, value: Any) -> DType:
        found = _element_type(owner, parameter, value)
        if others and found not in allowed:
            names = [d.name for d in allowed if d is not NEEDED]
            raise TypeError(f"{owner}: {parameter} must be {' or '.join(names)}, not {found.name}")
        return found

    return Attribute(check, default)


def integers(
    default: Any = NEEDED,
    count: None | int | tuple[int, ...] = None,
    at_least: int | None = None,
    *,
    alone: bool = True,
    kinds: Any = tuple,
    each: Attribute | None = None,
    error: type[Exception] = TypeError,
) -> Attribute:
    """Return a parameter that is a sequence of ints, or one int.

    `count` says how many there may be, any number if it is None, and `at_least` bounds each.
    `alone` says whether one int will do, `kinds` which types the sequence may have; `each` is what
    a member may be if it is no int, and `error` the class of the error for one of a wrong type.
    `default` is the default.
    """
    counts = (count,) if isinstance(count, int) else count
    what = f"{arguments.named(kinds)} of ints"
    what = f"an int or {what}" if alone else what
    one = integer(at_least=at_least).check if each is None else each.check

    def check(owner: str, parameter: str, value: Any) -> Any:
        if isinstance(value, Tensor) and isinstance(value, kinds):
            return value
        if isinstance(value, kinds):
            if counts is not None and len(value) not in counts:
                raise arguments.wrong_value(owner, parameter, f"{what} ({' or '.join(map(str, counts))})", value)
            for v in value:
                try:
                    one(owner, f"each of {parameter}", v)
                except TypeError as wrong:
                    raise error(str(wrong)) from None
            return value
        if not alone or isinstance(value, bool) or not isinstance(value, (int, np.integer, Dim)):
            raise arguments.wrong_type(owner, parameter, what, value)
        return one(owner, parameter, value)

    return Attribute(check, default)


def pairs(count: int | None = None, kinds: Any = (tuple, list), error: type[Exception] = TypeError) -> Attribute:
    """Return a parameter that is a sequence of pairs of ints, without a default.

    There are `count` of them if that is given. `kinds` are the types of the sequence, and `error`
    is the class of the error for one of another type.
    """

    def check(owner: str, parameter: str, value: Any) -> Any:
        if not isinstance(value, kinds):
            raise arguments.wrong_type(owner, parameter, f"{arguments.named(kinds)} of pairs of ints", value, error)
        if count is not None and len(value) != count:
            raise arguments.wrong_value(owner, parameter, f"{count} pairs of ints", value)
        for pair in value:
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise arguments.wrong_value(owner, parameter, "pairs of ints", value)
        return value

    return Attribute(check)


def numbers(default: Any = NEEDED, count: int | None = None, kinds: Any = tuple) -> Attribute:
    """Return a parameter that is a sequence of floats, `count` of them if that is given.

    `kinds` are the types of the sequence, `default` is the default.
    """

    def check(owner: str, parameter: str, value: Any) -> Any:
        if not isinstance(value, kinds):
            raise arguments.wrong_type(owner, parameter, f"{arguments.named(kinds)} of floats", value)
        if count is not None and len(value) != count:
            raise arguments.wrong_value(owner, parameter, f"{count} floats", value)
        for v in value:
            arguments.real(owner, f"each of {parameter}", v)
        return value

    return Attribute(check, default)
