"""`mindspore._checkparam`: the checks of arguments that libraries borrow from MindSpore, as
functions and as the `Validator` of older releases.

A check returns the value, or raises TypeError for a wrong type and ValueError for a wrong value,
naming the operation, the argument and the valid values. `arg_value` is the value to check;
`arg_name` and `prim_name` are the names of the argument and the operation in errors.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from typing import Any

from mycel._src.foundation import dtype as D

__all__ = [
    "EQ",
    "GE",
    "GT",
    "IN",
    "INC_BOTH",
    "INC_LEFT",
    "INC_NEITHER",
    "INC_RIGHT",
    "LE",
    "LT",
    "NE",
    "NOT_IN",
    "Rel",
    "Validator",
    "args_type_check",
    "check",
    "check_bool",
    "check_equal_int",
    "check_float",
    "check_float_range",
    "check_int",
    "check_int_range",
    "check_is_float",
    "check_is_int",
    "check_is_number",
    "check_isinstance",
    "check_negative_float",
    "check_negative_int",
    "check_non_negative_float",
    "check_non_negative_int",
    "check_non_negative_int_sequence",
    "check_non_positive_float",
    "check_non_positive_int",
    "check_number",
    "check_number_range",
    "check_positive_float",
    "check_positive_float_sequence",
    "check_positive_int",
    "check_positive_int_sequence",
    "check_string",
    "check_subclass",
    "check_tensor_dtype_valid",
    "check_type_name",
    "check_types_same_and_valid",
    "check_value_type",
    "once",
    "triple",
    "twice",
]


class Rel(IntEnum):
    """The relation of a value to limits: a comparison, membership, or a kind of interval."""

    EQ = 1
    NE = 2
    LT = 3
    LE = 4
    GT = 5
    GE = 6
    INC_NEITHER = 7
    INC_LEFT = 8
    INC_RIGHT = 9
    INC_BOTH = 10
    IN = 11
    NOT_IN = 12


EQ, NE, LT, LE, GT, GE, INC_NEITHER, INC_LEFT, INC_RIGHT, INC_BOTH, IN, NOT_IN = Rel

_COMPARED: dict[Rel, tuple[str, Callable[[Any, Any], bool]]] = {
    EQ: ("=", operator.eq),
    NE: ("!=", operator.ne),
    LT: ("<", operator.lt),
    LE: ("<=", operator.le),
    GT: (">", operator.gt),
    GE: (">=", operator.ge),
    IN: ("in", lambda x, y: x in y),
    NOT_IN: ("not in", lambda x, y: x not in y),
}
_INTERVAL: dict[Rel, tuple[str, str, Callable[[Any, Any], bool], Callable[[Any, Any], bool]]] = {
    INC_NEITHER: ("(", ")", operator.lt, operator.lt),
    INC_LEFT: ("[", ")", operator.le, operator.lt),
    INC_RIGHT: ("(", "]", operator.lt, operator.le),
    INC_BOTH: ("[", "]", operator.le, operator.le),
}


def _subject(arg_name: str | None, prim_name: str | None) -> str:
    return (f"For '{prim_name}', the " if prim_name else "The ") + (f"'{arg_name}'" if arg_name else "input value")


def _typed(value: Any, kinds: Any, text: str, arg_name: str | None, prim_name: str | None) -> Any:
    if not isinstance(value, kinds) or isinstance(value, bool):
        raise TypeError(f"{_subject(arg_name, prim_name)} must be {text}, but got '{type(value).__name__}'.")
    return value


_NUMBERS: dict[Any, Any] = {int: int, float: (int, float)}


def _compared(
    arg_value: Any, value: Any, rel: int, arg_type: type = int, arg_name: Any = None, prim_name: Any = None
) -> Any:
    """Return `arg_value`, checked to be a number of `arg_type` that is in the relation `rel` to
    `value`.

    `arg_name` and `prim_name` name the argument and the operation in errors.
    """
    _typed(arg_value, _NUMBERS[arg_type], arg_type.__name__, arg_name, prim_name)
    sign, holds = _COMPARED[Rel(rel)]
    if not holds(arg_value, value):
        raise ValueError(
            f"{_subject(arg_name, prim_name)} must be {arg_type.__name__} and must {sign} {value}, "
            f"but got '{arg_value}' with type '{type(arg_value).__name__}'."
        )
    return arg_value


def check_number_range(
    arg_value: Any,
    lower_limit: Any,
    upper_limit: Any,
    rel: int,
    value_type: type,
    arg_name: Any = None,
    prim_name: Any = None,
) -> Any:
    """Return `arg_value`, checked to be a number of `value_type` in the interval of the kind `rel`
    from `lower_limit` to `upper_limit`.

    `arg_name` and `prim_name` name the argument and the operation in errors.
    """
    _typed(arg_value, _NUMBERS[value_type], value_type.__name__, arg_name, prim_name)
    left, right, above, below = _INTERVAL[Rel(rel)]
    if not (above(lower_limit, arg_value) and below(arg_value, upper_limit)):
        raise ValueError(
            f"{_subject(arg_name, prim_name)} must be in range of {left}{lower_limit}, {upper_limit}{right}, "
            f"but got {arg_value} with type '{type(arg_value).__name__}'."
        )
    return arg_value


def check(
    arg_name: str,
    arg_value: Any,
    value_name: str,
    value: Any,
    rel: int = EQ,
    prim_name: Any = None,
    excp_cls: type[Exception] = ValueError,
) -> Any:
    """Return `arg_value`, checked to be in the relation `rel` to `value`, or to the two limits in
    `value`.

    `arg_name`, `value_name` and `prim_name` are the names of the argument, of `value` and of the
    operation in errors, which are of the class `excp_cls`.
    """
    kind = Rel(rel)
    if kind in _INTERVAL:
        left, right, above, below = _INTERVAL[kind]
        holds, wanted = (
            above(value[0], arg_value) and below(arg_value, value[1]),
            f"in range of {left}{value[0]}, {value[1]}{right}",
        )
    else:
        sign, compare = _COMPARED[kind]
        holds, wanted = compare(arg_value, value), f"{sign} '{value_name}' {value}"
    if not holds:
        raise excp_cls(f"{_subject(arg_name, prim_name)} must be {wanted}, but got {arg_value}.")
    return arg_value


def check_number(arg_name: str, arg_value: Any, value: Any, rel: int, prim_name: str) -> Any:
    """Return `arg_value`, checked to be in the relation `rel` to the number `value`.

    `arg_name` and `prim_name` are the argument and the operation in errors. Raises ValueError where
    the relation does not hold.
    """
    check(arg_name, arg_value, "", value, rel, prim_name)
    return arg_value


def check_int(arg_value: Any, value: int, rel: int, arg_name: Any = None, prim_name: Any = None) -> Any:
    """Return `arg_value`, checked to be an int that is in the relation `rel` to `value`.

    `arg_name` and `prim_name` name the argument and the operation in errors.
    """
    return _compared(arg_value, value, rel, int, arg_name, prim_name)


def check_float(arg_value: Any, value: float, rel: int, arg_name: Any = None, prim_name: Any = None) -> Any:
    """Return `arg_value`, checked to be a number that is in the relation `rel` to `value`.

    `arg_name` and `prim_name` name the argument and the operation in errors.
    """
    return _compared(arg_value, value, rel, float, arg_name, prim_name)


def check_equal_int(arg_value: Any, value: int, arg_name: Any = None, prim_name: Any = None) -> Any:
    """Return `arg_value`, checked to be the int `value`.

    `arg_name` and `prim_name` name the argument and the operation in errors.
    """
    return check_int(arg_value, value, EQ, arg_name, prim_name)


def check_int_range(
    arg_value: Any, lower_limit: Any, upper_limit: Any, rel: int, arg_name: Any = None, prim_name: Any = None
) -> Any:
    """Return `arg_value`, checked to be an int in the interval of the kind `rel` from `lower_limit`
    to `upper_limit`.

    `arg_name` and `prim_name` name the argument and the operation in errors.
    """
    return check_number_range(arg_value, lower_limit, upper_limit, rel, int, arg_name, prim_name)


def check_float_range(
    arg_value: Any, lower_limit: Any, upper_limit: Any, rel: int, arg_name: Any = None, prim_name: Any = None
) -> Any:
    """Return `arg_value`, checked to be a number in the interval of the kind `rel` from
    `lower_limit` to `upper_limit`.

    `arg_name` and `prim_name` name the argument and the operation in errors.
    """
    return check_number_range(arg_value, lower_limit, upper_limit, rel, float, arg_name, prim_name)


def _against_zero(name: str, rel: Rel, kind: type) -> Callable[..., Any]:
    def checked(arg_value: Any, arg_name: Any = None, prim_name: Any = None) -> Any:
        return _compared(arg_value, 0, rel, kind, arg_name, prim_name)

    checked.__name__ = checked.__qualname__ = name
    checked.__doc__ = f"Return `arg_value`, checked to be of type {kind.__name__} and {_COMPARED[rel][0]} 0."
    return checked


check_positive_int = _against_zero("check_positive_int", GT, int)
check_negative_int = _against_zero("check_negative_int", LT, int)
check_non_positive_int = _against_zero("check_non_positive_int", LE, int)
check_non_negative_int = _against_zero("check_non_negative_int", GE, int)
check_positive_float = _against_zero("check_positive_float", GT, float)
check_negative_float = _against_zero("check_negative_float", LT, float)
check_non_positive_float = _against_zero("check_non_positive_float", LE, float)
check_non_negative_float = _against_zero("check_non_negative_float", GE, float)


def _each(name: str, one: Callable[..., Any]) -> Callable[..., Any]:
    def checked(sequence: Sequence[Any], arg_name: Any = None, prim_name: Any = None) -> Sequence[Any]:
        for k, x in enumerate(sequence):
            one(x, f"{arg_name or 'sequence'}[{k}]", prim_name)
        return sequence

    checked.__name__ = checked.__qualname__ = name
    checked.__doc__ = f"Return `sequence`, each element checked by `{one.__name__}`."
    return checked


check_positive_int_sequence = _each("check_positive_int_sequence", check_positive_int)
check_non_negative_int_sequence = _each("check_non_negative_int_sequence", check_non_negative_int)
check_positive_float_sequence = _each("check_positive_float_sequence", check_positive_float)


def check_bool(arg_value: Any, arg_name: Any = None, prim_name: Any = None) -> Any:
    """Return `arg_value`, checked to be a bool."""
    if not isinstance(arg_value, bool):
        raise TypeError(f"{_subject(arg_name, prim_name)} must be a bool, but got {type(arg_value).__name__}.")
    return arg_value


def check_is_int(arg_value: Any, arg_name: Any = None, prim_name: Any = None) -> Any:
    """Return `arg_value`, checked to be an int."""
    return _typed(arg_value, int, "int", arg_name, prim_name)


def check_is_float(arg_value: Any, arg_name: Any = None, prim_name: Any = None) -> Any:
    """Return `arg_value`, checked to be a float."""
    return _typed(arg_value, float, "float", arg_name, prim_name)


def check_is_number(arg_value: Any, arg_type: type, arg_name: Any = None, prim_name: Any = None) -> Any:
    """Return `arg_value`, checked to be a number of the type `arg_type`.

    `arg_name` and `prim_name` name the argument and the operation in errors.
    """
    return _typed(arg_value, arg_type, arg_type.__name__, arg_name, prim_name)


def check_string(arg_value: Any, valid_values: Iterable[str], arg_name: Any = None, prim_name: Any = None) -> Any:
    """Return `arg_value`, checked to be one of the strings `valid_values`.

    `arg_name` and `prim_name` name the argument and the operation in errors.
    """
    valid = list(valid_values)
    if not isinstance(arg_value, str) or arg_value not in valid:
        raise ValueError(
            f"{_subject(arg_name, prim_name)} must be str and must be in '{valid}', but got '{arg_value}'."
        )
    return arg_value


def check_value_type(arg_name: Any, arg_value: Any, valid_types: Any, prim_name: Any = None) -> Any:
    """Return `arg_value`, checked to be of one of the types `valid_types`; a bool is not an int.

    `arg_name` and `prim_name` name the argument and the operation in errors.
    """
    kinds = tuple(valid_types) if isinstance(valid_types, Iterable) else (valid_types,)
    if not isinstance(arg_value, kinds) or (isinstance(arg_value, bool) and bool not in kinds and object not in kinds):
        names = ", ".join(f"'{k.__name__}'" for k in kinds)
        prefix = f"For '{prim_name}', the" if prim_name else "The"
        raise TypeError(
            f"{prefix} type of '{arg_name}' should be {'one of ' if len(kinds) > 1 else ''}{names}, "
            f"but got type '{type(arg_value).__name__}'."
        )
    return arg_value


def check_isinstance(arg_name: Any, arg_value: Any, classes: Any) -> Any:
    """Return `arg_value`, checked to be an object of one of the `classes`."""
    return check_value_type(arg_name, arg_value, classes)


def _dtype_of(value: Any) -> Any:
    return getattr(value, "dtype", value)


def check_type_name(arg_name: Any, arg_type: Any, valid_types: Any, prim_name: Any) -> Any:
    """Return `arg_type`, checked to be one of the element types `valid_types`, or a tensor of one.

    `arg_name` and `prim_name` name the argument and the operation in errors.
    """
    kinds = tuple(valid_types) if isinstance(valid_types, Iterable) else (valid_types,)
    if _dtype_of(arg_type) not in kinds:
        names = ", ".join(str(k) for k in kinds)
        raise TypeError(f"{_subject(arg_name, prim_name)} should be one of ({names}), but got {_dtype_of(arg_type)}.")
    return arg_type


def check_tensor_dtype_valid(arg_name: Any, arg_type: Any, valid_dtypes: Any, prim_name: Any) -> Any:
    """Return `arg_type`, checked to be one of the element types `valid_dtypes`, or a tensor of one.

    `arg_name` and `prim_name` name the argument and the operation in errors.
    """
    return check_type_name(arg_name, arg_type, valid_dtypes, prim_name)


def check_types_same_and_valid(args: dict[str, Any], valid_values: Any, prim_name: Any) -> None:
    """Check that all element types in `args` are the same, and one of `valid_values`."""
    for name, kind in args.items():
        check_type_name(name, kind, valid_values, prim_name)
    if len({D.from_any(_dtype_of(kind)) for kind in args.values()}) > 1:
        raise TypeError(f"For '{prim_name}', the types of {', '.join(args)} must be the same, but got {args}.")


def check_subclass(
    arg_name: Any, type_: Any, template_types: Any, prim_name: Any, addition_error_info: Any = None
) -> Any:
    """Return `type_`, checked to be a subclass of one of `template_types`, or an element type among
    them.

    `arg_name` and `prim_name` name the argument and the operation in errors. `addition_error_info`
    is added to the message.
    """
    wanted = tuple(template_types) if isinstance(template_types, Iterable) else (template_types,)
    found = any(
        issubclass(type_, w)
        if isinstance(type_, type) and isinstance(w, type)
        else type_ == w or (isinstance(w, type) and isinstance(type_, w))
        for w in wanted
    )
    if not found:
        raise TypeError(
            f"{_subject(arg_name, prim_name)} should be a subclass of {wanted}, but got "
            f"{type_}.{addition_error_info or ''}"
        )
    return type_


def args_type_check(*type_args: Any, **type_kwargs: Any) -> Callable[..., Any]:
    """Return a decorator that checks the types of a function's arguments.

    None is valid if it is the default.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(function)
        wanted = signature.bind_partial(*type_args, **type_kwargs).arguments

        @functools.wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            for name, value in signature.bind(*args, **kwargs).arguments.items():
                if name in wanted and not (value is None and signature.parameters[name].default is None):
                    if not isinstance(value, wanted[name]):
                        raise TypeError(f"The parameter '{name}' must be {wanted[name]}, but got {type(value)}.")
            return function(*args, **kwargs)

        return checked

    return decorate


def once(m: Any) -> tuple[Any, ...]:
    """Return `m` as a tuple of one."""
    return m if isinstance(m, tuple) else (m,)


def twice(m: Any) -> tuple[Any, ...]:
    """Return `m` as a tuple of two."""
    return m if isinstance(m, tuple) else (m, m)


def triple(m: Any) -> tuple[Any, ...]:
    """Return `m` as a tuple of three."""
    return m if isinstance(m, tuple) else (m, m, m)


# Releases before 2.0 had the functions as static methods of a class.
Validator: Any = type(
    "Validator",
    (),
    {
        "__doc__": "The checks as static methods.",
        **{n: staticmethod(f) for n, f in list(globals().items()) if n.startswith(("check", "args_"))},
    },
)
