"""Checks of arguments: a function for each kind of value, and one wording for all that is refused.

Each takes the owner (the function or class that the user called), the parameter's name and the
value, and returns the value with its static type. What is refused reads
"{owner}: {parameter} must be {what}, not {value}", where a wrong type is named and a wrong value
shown. TypeError is for wrong types and ValueError for wrong values, unless `error` is given.

No check asks for a tensor's value except `index` and `int64`, so that they work while a function
is being staged.
"""

from __future__ import annotations

import numbers
import operator
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Optional, TypeVar, Union, overload

import numpy as np

from mycel.base.errors import NeedsValue

__all__ = [
    "choice",
    "flag",
    "function",
    "index",
    "instance",
    "int64",
    "integer",
    "mapping",
    "number",
    "one_of",
    "optional",
    "path",
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
Kinds = Union[type, tuple[type, ...]]
_LONGEST = 80
_WORDS = (str, bool, type(None))
_NAMES: dict[type, str] = {str: "a string", bytes: "bytes", type: "a class", np.ndarray: "a NumPy array"}


def shown(value: object) -> str:
    """Show a value in a message: its `repr`, cut at 80 characters."""
    try:
        found = repr(value.item() if isinstance(value, np.generic) else value)
    except ValueError:  # an int with more digits than Python prints
        return f"{type(value).__name__} of too many digits"
    return found if len(found) <= _LONGEST else f"{found[: _LONGEST - 3]}..."


def wrong_type(owner: str, parameter: str, what: str, value: object, error: type[Exception] = TypeError) -> Exception:
    """Make the error for a value of a type that is refused; the message names the type."""
    return error(f"{owner}: {parameter} must be {what}, not {type(value).__name__}")


def wrong_value(owner: str, parameter: str, what: str, value: object, error: type[Exception] = ValueError) -> Exception:
    """Make the error for a value that is refused; the message shows it."""
    return error(f"{owner}: {parameter} must be {what}, not {shown(value)}")


def integer(
    owner: str,
    parameter: str,
    value: object,
    at_least: Optional[int] = None,
    at_most: Optional[int] = None,
    *,
    flags: bool = False,
    numpy: bool = True,
    error: Optional[type[Exception]] = None,
) -> int:
    """Check for an int within closed bounds.

    Booleans are ints only with `flags`, NumPy's integers unless `numpy` is False; tensors are not.
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
    """Check for what Python takes as an index: ints, booleans, and tensors of one integer."""
    try:
        return operator.index(value)
    except NeedsValue:
        raise
    except TypeError:
        raise wrong_type(owner, parameter, "an int", value) from None


def int64(owner: str, parameter: str, value: object) -> int:
    """Check for an index that a signed integer of 64 bits can hold; OverflowError beyond."""
    found = index(owner, parameter, value)
    if abs(found) > 2**63 - 1:
        raise wrong_value(owner, parameter, "within 2**63 - 1", found, OverflowError)
    return found


def number(
    owner: str,
    parameter: str,
    value: object,
    at_least: Optional[float] = None,
    above: Optional[float] = None,
    at_most: Optional[float] = None,
    below: Optional[float] = None,
    *,
    numpy: bool = True,
    error: Optional[type[Exception]] = None,
) -> float:
    """Check for a real number within closed (`at_least`, `at_most`) or open bounds.

    It is returned as a float. Booleans and tensors are no numbers, NumPy's numbers and others of
    Python's are unless `numpy` is False. NaN lies within no bounds.
    """
    if isinstance(value, float):
        found = value
    elif isinstance(value, bool) or not isinstance(value, numbers.Real if numpy else int):
        raise wrong_type(owner, parameter, "a number", value, error or TypeError)
    else:
        found = float(value)
    if at_least is not None and not found >= at_least:
        raise wrong_value(owner, parameter, f"at least {at_least}", value, error or ValueError)
    if above is not None and not found > above:
        raise wrong_value(owner, parameter, f"above {above}", value, error or ValueError)
    if at_most is not None and not found <= at_most:
        raise wrong_value(owner, parameter, f"at most {at_most}", value, error or ValueError)
    if below is not None and not found < below:
        raise wrong_value(owner, parameter, f"below {below}", value, error or ValueError)
    return found


def flag(
    owner: str, parameter: str, value: object, *, integers: bool = False, error: type[Exception] = TypeError
) -> bool:
    """Check for a bool; with `integers`, ints and NumPy's booleans may stand for one."""
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
    error: Optional[type[Exception]] = None,
) -> str:
    """Check for a string; the empty one is refused where `empty` is False."""
    if not isinstance(value, str):
        raise wrong_type(owner, parameter, what, value, error or TypeError)
    if not empty and not value:
        raise wrong_value(owner, parameter, f"{what} that is not empty", value, error or ValueError)
    return value


def choice(owner: str, parameter: str, value: object, allowed: Collection[str]) -> str:
    """Check for one of the strings `allowed`; TypeError for what is no string."""
    found = text(owner, parameter, value)
    if found not in allowed:
        raise wrong_value(owner, parameter, _listed(allowed), value)
    return found


def one_of(owner: str, parameter: str, value: Any, allowed: Collection[A]) -> A:
    """Check for one of the strings, booleans and None in `allowed`; ValueError for all else."""
    listed = isinstance(value, _WORDS) and value in allowed
    if not listed:
        raise wrong_value(owner, parameter, _listed(allowed), value)
    found: A = value
    return found


def _listed(allowed: Collection[object]) -> str:
    return f"{'one of ' if len(allowed) > 1 else ''}{', '.join(map(repr, allowed))}"


def sequence(owner: str, parameter: str, value: object, what: str = "a tuple or a list") -> Sequence[Any]:
    """Check for a tuple or a list."""
    if not isinstance(value, (tuple, list)):
        raise wrong_type(owner, parameter, what, value)
    return value


def mapping(owner: str, parameter: str, value: object, what: str = "a dict") -> Mapping[Any, Any]:
    """Check for a mapping, such as a dict."""
    if not isinstance(value, Mapping):
        raise wrong_type(owner, parameter, what, value)
    return value


def sizes(owner: str, parameter: str, value: object, count: int, at_least: int = 1) -> tuple[int, ...]:
    """Check for `count` ints in a tuple or a list.

    One int, alone or in a sequence, stands for all.
    """
    if isinstance(value, (tuple, list)):
        if len(value) == 1 and count > 1:
            value = tuple(value) * count
        if len(value) != count:
            raise wrong_value(owner, parameter, f"an int or {count} of them", tuple(value))
        return tuple([integer(owner, f"each of {parameter}", v, at_least) for v in value])
    return (integer(owner, parameter, value, at_least),) * count


@overload
def instance(owner: str, parameter: str, value: object, kind: type[A], what: str = ...) -> A: ...
@overload
def instance(
    owner: str, parameter: str, value: object, kind: tuple[type[A], type[B]], what: str = ...
) -> Union[A, B]: ...
@overload
def instance(
    owner: str, parameter: str, value: object, kind: tuple[type[A], type[B], type[C]], what: str = ...
) -> Union[A, B, C]: ...
@overload
def instance(owner: str, parameter: str, value: object, kind: tuple[type, ...], what: str = ...) -> object: ...
def instance(owner: str, parameter: str, value: object, kind: Kinds, what: str = "") -> object:
    """Check for an instance of a class, or of one of several.

    `what` names it in the message where the classes' names do not.
    """
    if not isinstance(value, kind):
        raise wrong_type(owner, parameter, what or _kinds(kind), value)
    return value


@overload
def optional(owner: str, parameter: str, value: object, kind: type[A], what: str = ...) -> Optional[A]: ...
@overload
def optional(
    owner: str, parameter: str, value: object, kind: tuple[type[A], type[B]], what: str = ...
) -> Union[A, B, None]: ...
@overload
def optional(owner: str, parameter: str, value: object, kind: tuple[type, ...], what: str = ...) -> object: ...
def optional(owner: str, parameter: str, value: object, kind: Kinds, what: str = "") -> object:
    """Check for None or an instance, as `instance` does."""
    if value is not None and not isinstance(value, kind):
        raise wrong_type(owner, parameter, f"{what or _kinds(kind)} or None", value)
    return value


def _kinds(kind: Kinds) -> str:
    """Name classes with their articles: "a Cell or an int"."""
    if isinstance(kind, tuple):
        named = [_kinds(k) for k in kind]
        return f"{', '.join(named[:-1])} or {named[-1]}"
    name = kind.__name__
    return _NAMES.get(kind, f"{'an' if name.lstrip('_')[:1].lower() in 'aeiou' else 'a'} {name}")


def function(owner: str, parameter: str, value: object, what: str = "a function") -> Callable[..., Any]:
    """Check for something that can be called."""
    if not callable(value):
        raise wrong_type(owner, parameter, what, value)
    return value


def path(owner: str, parameter: str, value: object, what: str = "a path") -> Union[str, os.PathLike[str]]:
    """Check for a path: a string or an `os.PathLike`."""
    if not isinstance(value, (str, os.PathLike)):
        raise wrong_type(owner, parameter, what, value)
    return value
