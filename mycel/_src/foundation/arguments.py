"""Argument validation: a check for each kind of value, with uniform error messages.

Each takes the owner (the function or class that the user called), the parameter's name and the
value, and returns the value with its static type. The message of an error reads "{owner}:
{parameter} must be {what}, not {value}"; it names a wrong type and shows a wrong value. TypeError
is for wrong types and ValueError for wrong values, unless `error` is given.

Only `index` and `int64` ask for a tensor's value; the other checks work while a function is being
staged.
"""

from __future__ import annotations

import numbers
import operator
import os
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar, overload

import numpy as np

from mycel._src.foundation.errors import NeedsValue

__all__ = [
    "choice",
    "flag",
    "function",
    "index",
    "instance",
    "int64",
    "integer",
    "mapping",
    "named",
    "named_type",
    "number",
    "one_of",
    "optional",
    "path",
    "real",
    "sequence",
    "shown",
    "sizes",
    "text",
    "wrong_type",
    "wrong_value",
]

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
Kinds = type | tuple[type, ...]
Bounds = tuple[float | None, float | None, float | None, float | None]
_LONGEST = 80
_WORDS = (str, bool, type(None))
_NAMES: dict[type, str] = {str: "a string", bytes: "bytes", type: "a class", np.ndarray: "a NumPy array"}


def shown(value: object) -> str:
    """Return a value as a message shows it: its `repr`, cut at 80 characters."""
    try:
        found = repr(value.item() if isinstance(value, np.generic) else value)
    except ValueError:  # an int with more digits than Python prints
        return f"{type(value).__name__} of too many digits"
    return found if len(found) <= _LONGEST else f"{found[: _LONGEST - 3]}..."


def wrong_type(owner: str, parameter: str, what: str, value: object, error: type[Exception] = TypeError) -> Exception:
    """Return the error for a value of a wrong type; the message names the type.

    `owner` and `parameter` name, in the message, the function or class that the user called and its
    parameter; `what` says what `value` must be; `error` is the class of the error.
    """
    return error(f"{owner}: {parameter} must be {what}, not {named_type(value)}{_as_tensor(what, value)}")


def named_type(value: object) -> str:
    """Return the name of a value's type, with that of the package where it is another one's.

    >>> import numpy
    >>> named_type(1), named_type(numpy.zeros(2))
    ('int', 'numpy.ndarray')
    """
    kind = type(value)
    package = str(kind.__module__).partition(".")[0]
    own = ("builtins", "mycel", "mindspore") if "mycel.compat" in sys.modules else ("builtins", "mycel")
    return kind.__name__ if package in own else f"{package}.{kind.__name__}"


def _as_tensor(what: str, value: object) -> str:
    """Return how a value becomes a tensor, where one is wanted and the value is like one; or ""."""
    if not what.startswith("a tensor"):
        return ""
    if isinstance(value, (list, tuple, np.ndarray, np.generic, int, float, complex)):
        return "; give mycel.Tensor(x)"
    alike = hasattr(value, "__array__") or type(value).__name__ in _TENSORS
    return "; give mycel.Tensor(numpy.asarray(x))" if alike else ""


_TENSORS = frozenset(("Tensor", "Parameter", "EagerTensor", "ResourceVariable", "Variable", "Array", "ArrayImpl"))


def wrong_value(owner: str, parameter: str, what: str, value: object, error: type[Exception] = ValueError) -> Exception:
    """Return the error for a wrong value; the message shows it.

    `owner` and `parameter` name, in the message, the function or class that the user called and its
    parameter; `what` says what `value` must be; `error` is the class of the error.
    """
    return error(f"{owner}: {parameter} must be {what}, not {shown(value)}")


def integer(
    owner: str,
    parameter: str,
    value: object,
    at_least: int | None = None,
    at_most: int | None = None,
    *,
    flags: bool = False,
    numpy: bool = True,
    error: type[Exception] | None = None,
) -> int:
    """Check that `value` is an int within closed bounds, and return it.

    `owner` and `parameter` name, in the message, the function or class that the user called and its
    parameter. `at_least` and `at_most` are the bounds; None is no bound. Booleans count as ints
    only with `flags`, NumPy's integers unless `numpy` is False; tensors never do. `error` is raised
    in place of TypeError and ValueError.
    """
    if type(value) is not int:
        if not isinstance(value, numbers.Integral if numpy else int) or isinstance(value, bool) and not flags:
            raise wrong_type(owner, parameter, "an int", value, error or TypeError)
        value = int(value)
    if at_least is not None and value < at_least:
        raise wrong_value(owner, parameter, f"at least {at_least}", value, error or ValueError)
    if at_most is not None and value > at_most:
        raise wrong_value(owner, parameter, f"at most {at_most}", value, error or ValueError)
    return value


def index(owner: str, parameter: str, value: Any) -> int:
    """Check that Python takes `value` as an index, and return it as an int.

    Ints, booleans and tensors of one integer are indices.
    """
    try:
        return operator.index(value)
    except NeedsValue:
        raise
    except (TypeError, ValueError):  # a tensor of several elements is no index
        raise wrong_type(owner, parameter, "an int", value) from None


def int64(owner: str, parameter: str, value: object) -> int:
    """Check that `value` is an index that fits a signed integer of 64 bits, and return it.

    Raises OverflowError for one that does not fit.
    """
    found = index(owner, parameter, value)
    if abs(found) > 2**63 - 1:
        raise wrong_value(owner, parameter, "within 2**63 - 1", found, OverflowError)
    return found


def number(
    owner: str,
    parameter: str,
    value: object,
    at_least: float | None = None,
    above: float | None = None,
    at_most: float | None = None,
    below: float | None = None,
    *,
    numpy: bool = True,
) -> float:
    """Check that `value` is a real number within bounds, and return it as a float.

    `owner` and `parameter` name, in the message, the function or class that the user called and its
    parameter. The bounds `at_least` and `at_most` are closed, `above` and `below` open; None is no
    bound. Booleans and tensors are not numbers; NumPy's numbers and other real numbers of Python's
    are, unless `numpy` is False, which allows floats and ints only. NaN lies within no bounds.
    """
    if isinstance(value, float):
        found = value
    elif isinstance(value, bool) or not isinstance(value, numbers.Real if numpy else int):
        raise wrong_type(owner, parameter, "a number", value)
    else:
        found = float(value)
    _within(owner, parameter, value, found, (at_least, above, at_most, below))
    return found


def real(
    owner: str,
    parameter: str,
    value: object,
    at_least: float | None = None,
    above: float | None = None,
    at_most: float | None = None,
    below: float | None = None,
) -> float:
    """Check that `value` is a float, Python's or NumPy's, within bounds, and return it; ints are
    refused.

    `owner` and `parameter` name, in the message, the function or class that the user called and its
    parameter. The bounds `at_least` and `at_most` are closed, `above` and `below` open; None is no
    bound. NaN lies within no bounds.
    """
    if not isinstance(value, (float, np.floating)):
        raise wrong_type(owner, parameter, "a float", value)
    found = float(value)
    _within(owner, parameter, value, found, (at_least, above, at_most, below))
    return found


def _within(owner: str, parameter: str, value: object, found: float, bounds: Bounds) -> None:
    """Raise ValueError unless `found`, what `value` is as a float, lies within the bounds.

    `owner` and `parameter` are for the message; `bounds` are the least, an open bound below, the
    most, and an open bound above.
    """
    at_least, above, at_most, below = bounds
    if at_least is not None and not found >= at_least:
        raise wrong_value(owner, parameter, f"at least {at_least}", value)
    if above is not None and not found > above:
        raise wrong_value(owner, parameter, f"above {above}", value)
    if at_most is not None and not found <= at_most:
        raise wrong_value(owner, parameter, f"at most {at_most}", value)
    if below is not None and not found < below:
        raise wrong_value(owner, parameter, f"below {below}", value)


def flag(
    owner: str, parameter: str, value: object, *, integers: bool = False, error: type[Exception] = TypeError
) -> bool:
    """Check that `value` is a bool, and return it.

    `owner` and `parameter` name, in the message, the function or class that the user called and its
    parameter. With `integers`, ints and NumPy's booleans may stand for one. `error` is raised for
    anything else.
    """
    if isinstance(value, bool):
        return value
    if integers and isinstance(value, (int, np.bool_)):
        return bool(value)
    raise wrong_type(owner, parameter, "a bool", value, error)


def text(
    owner: str,
    parameter: str,
    value: object,
    *,
    what: str = "a string",
    empty: bool = True,
    error: type[Exception] | None = None,
) -> str:
    """Check that `value` is a string, and return it.

    `owner` and `parameter` name, in the message, the function or class that the user called and its
    parameter; `what` says what is expected. The empty string is refused where `empty` is False.
    `error` is raised in place of TypeError and ValueError.
    """
    if not isinstance(value, str):
        raise wrong_type(owner, parameter, what, value, error or TypeError)
    if not empty and not value:
        raise wrong_value(owner, parameter, f"{what} that is not empty", value, error or ValueError)
    return value


def choice(owner: str, parameter: str, value: object, allowed: Collection[str]) -> str:
    """Check that `value` is one of the strings `allowed`, and return it.

    `owner` and `parameter` name, in the message, the function or class that the user called and its
    parameter. Raises TypeError for a value that is not a string, ValueError for another string.
    """
    found = text(owner, parameter, value)
    if found not in allowed:
        raise wrong_value(owner, parameter, _listed(allowed), value)
    return found


def one_of(owner: str, parameter: str, value: Any, allowed: Collection[A]) -> A:
    """Check that `value` is one of the strings, booleans and None in `allowed`, and return it.

    `owner` and `parameter` name, in the message, the function or class that the user called and its
    parameter. Raises ValueError for anything else, of whatever type.
    """
    listed = isinstance(value, _WORDS) and value in allowed
    if not listed:
        raise wrong_value(owner, parameter, _listed(allowed), value)
    found: A = value
    return found


def _listed(allowed: Collection[object]) -> str:
    return f"{'one of ' if len(allowed) > 1 else ''}{', '.join(map(repr, allowed))}"


def sequence(owner: str, parameter: str, value: object, what: str = "a tuple or a list") -> Sequence[Any]:
    """Check that `value` is a tuple or a list, and return it.

    `owner` and `parameter` name, in the message, the function or class that the user called and its
    parameter; `what` says what is expected.
    """
    if not isinstance(value, (tuple, list)):
        raise wrong_type(owner, parameter, what, value)
    return value


def mapping(owner: str, parameter: str, value: object, what: str = "a dict") -> Mapping[Any, Any]:
    """Check that `value` is a mapping, such as a dict, and return it.

    `owner` and `parameter` name, in the message, the function or class that the user called and its
    parameter; `what` says what is expected.
    """
    if not isinstance(value, Mapping):
        raise wrong_type(owner, parameter, what, value)
    return value


def sizes(
    owner: str,
    parameter: str,
    value: object,
    count: int,
    at_least: int = 1,
    *,
    lists: bool = True,
    miscounted: type[Exception] = ValueError,
) -> tuple[int, ...]:
    """Check that `value` is a tuple or a list of `count` ints, and return it as a tuple.

    One int, alone or in a sequence, stands for all. `owner` and `parameter` name, in the message,
    the function or class that the user called and its parameter; each int must be `at_least` this
    large. Lists are refused where `lists` is False. `miscounted` is raised for another number of
    ints.
    """
    if isinstance(value, list) and not lists:
        raise wrong_type(owner, parameter, "an int or a tuple of ints", value)
    if isinstance(value, (tuple, list)):
        if len(value) == 1 and count > 1:
            value = tuple(value) * count
        if len(value) != count:
            raise wrong_value(owner, parameter, f"an int or {count} of them", tuple(value), miscounted)
        return tuple([integer(owner, f"each of {parameter}", v, at_least) for v in value])
    return (integer(owner, parameter, value, at_least),) * count


@overload
def instance(owner: str, parameter: str, value: object, kind: type[A], what: str = ...) -> A: ...
@overload
def instance(owner: str, parameter: str, value: object, kind: tuple[type[A], type[B]], what: str = ...) -> A | B: ...
@overload
def instance(
    owner: str, parameter: str, value: object, kind: tuple[type[A], type[B], type[C]], what: str = ...
) -> A | B | C: ...
@overload
def instance(owner: str, parameter: str, value: object, kind: tuple[type, ...], what: str = ...) -> object: ...
def instance(owner: str, parameter: str, value: object, kind: Kinds, what: str = "") -> object:
    """Check that `value` is an instance of `kind`, a class or a tuple of classes, and return it.

    `owner` and `parameter` name, in the message, the function or class that the user called and its
    parameter; `what` says what is expected where the names of the classes do not.
    """
    if not isinstance(value, kind):
        raise wrong_type(owner, parameter, what or named(kind), value)
    return value


@overload
def optional(owner: str, parameter: str, value: object, kind: type[A], what: str = ...) -> A | None: ...
@overload
def optional(
    owner: str, parameter: str, value: object, kind: tuple[type[A], type[B]], what: str = ...
) -> A | B | None: ...
@overload
def optional(owner: str, parameter: str, value: object, kind: tuple[type, ...], what: str = ...) -> object: ...
def optional(owner: str, parameter: str, value: object, kind: Kinds, what: str = "") -> object:
    """Check that `value` is None or an instance of `kind`, as `instance` does, and return it.

    `owner` and `parameter` name, in the message, the function or class that the user called and its
    parameter; `what` says what is expected where the names of the classes do not.
    """
    if value is not None and not isinstance(value, kind):
        raise wrong_type(owner, parameter, f"{what or named(kind)} or None", value)
    return value


def named(kind: Kinds) -> str:
    """Return the names of classes with their articles: "a Cell or an int"."""
    if isinstance(kind, tuple):
        *names, last = [named(k) for k in kind]
        return f"{', '.join(names)} or {last}" if names else last
    name = kind.__name__
    return _NAMES.get(kind, f"{'an' if name.lstrip('_')[:1].lower() in 'aeiou' else 'a'} {name}")


def function(owner: str, parameter: str, value: object, what: str = "a function") -> Callable[..., Any]:
    """Check that `value` can be called, and return it.

    `owner` and `parameter` name, in the message, the function or class that the user called and its
    parameter; `what` says what is expected.
    """
    if not callable(value):
        raise wrong_type(owner, parameter, what, value)
    return value


def path(owner: str, parameter: str, value: object, what: str = "a path") -> str | os.PathLike[str]:
    """Check that `value` is a path, a string or an `os.PathLike`, and return it.

    `owner` and `parameter` name, in the message, the function or class that the user called and its
    parameter; `what` says what is expected.
    """
    if not isinstance(value, (str, os.PathLike)):
        raise wrong_type(owner, parameter, what, value)
    return value
