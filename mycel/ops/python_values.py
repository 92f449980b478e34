"""Operations on Python's own values: numbers, strings, tuples, lists, dictionaries and slices. In
MindSpore they are primitives of its graphs.

Each is a plain Python function of a fixed number of arguments. In a compiled function it is
interpreted as if the user had written it (`followed`), so that tensors may be members, conditions
and indices wherever Python allows them. Nothing is changed in place: a function that sets a member
returns a new container.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from typing import Any

from mycel._src.compiler.ir.dims import Dim
from mycel._src.foundation import arguments
from mycel._src.foundation.pytree import flatten
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.tensor import Tensor

__all__ = [
    "augassign_add",
    "augassign_div",
    "augassign_floordiv",
    "augassign_mod",
    "augassign_mul",
    "augassign_sub",
    "bool_and",
    "bool_eq",
    "bool_not",
    "bool_or",
    "dict_getitem",
    "dict_setitem",
    "followed",
    "in_dict",
    "is_",
    "is_not",
    "iter_converter",
    "list_equal",
    "list_getitem",
    "list_len",
    "list_setitem",
    "make_dict",
    "make_list",
    "make_range",
    "make_slice",
    "make_tuple",
    "ms_hasnext",
    "ms_next",
    "not_in_dict",
    "string_concat",
    "string_eq",
    "tail",
    "tuple_div",
    "tuple_equal",
    "tuple_getitem",
    "tuple_len",
    "tuple_reversed",
    "tuple_setitem",
    "zip_operation",
]


def followed(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function of this library so that a compiled function traces it like the user's own
    code.
    """
    staging = eager.local.staging if eager.active else None
    return function(*args) if staging is None else staging.following.follow(function, args)


def _define(function: Callable[..., Any], summary: str, call: str, shown: str, note: str = "") -> Callable[..., Any]:
    """Return a public function of positional arguments, named as `function` is without its
    underscore.

    `summary` and `note` are its documentation; `call` and `shown` are the arguments and the result
    of its example.
    """
    name = function.__name__[1:]
    parameters = inspect.signature(function).parameters.values()
    least = sum(p.default is p.empty and p.kind is not p.VAR_POSITIONAL for p in parameters)
    most = None if any(p.kind is p.VAR_POSITIONAL for p in parameters) else len(parameters)

    def public(*args: Any) -> Any:
        if len(args) < least or most is not None and len(args) > most:
            count = f"{least}" if most == least else f"at least {least}" if most is None else f"{least} to {most}"
            raise TypeError(f"{name}: takes {count} arguments, not {len(args)}")
        return followed(function, *args)

    public.__name__ = public.__qualname__ = name
    public.__module__ = __name__
    public.__doc__ = f"""{summary}{f" {note}" if note else ""}

    >>> import mycel as ms
    >>> ms.ops.{name}({call})
    {shown}
    """
    return public


# Members. Indices count from the end where they are negative.


def _member(name: str, x: Any, kind: type, index: Any) -> Any:
    arguments.instance(name, "x", x, kind)
    arguments.instance(name, "the index", index, (int, slice, Tensor), "an int")
    try:
        return x[index]
    except IndexError:
        raise IndexError(f"{name}: the index {index!r:.80} is not in [{-len(x)}, {len(x)})") from None


def _replaced(name: str, x: Any, kind: type, index: Any, value: Any) -> Any:
    arguments.instance(name, "x", x, kind)
    if isinstance(index, bool) or not isinstance(index, int) or not -len(x) <= index < len(x):
        raise IndexError(f"{name}: the index {index!r} is not a whole number in [{-len(x)}, {len(x)})")
    items = list(x)
    items[index] = value
    return items


def _tuple_getitem(x: Any, index: Any) -> Any:
    return _member("tuple_getitem", x, tuple, index)


def _list_getitem(x: Any, index: Any) -> Any:
    return _member("list_getitem", x, list, index)


def _tuple_setitem(x: Any, index: Any, value: Any) -> Any:
    return tuple(_replaced("tuple_setitem", x, tuple, index, value))


def _list_setitem(x: Any, index: Any, value: Any) -> Any:
    return _replaced("list_setitem", x, list, index, value)


def _tuple_len(x: Any) -> Any:
    arguments.instance("tuple_len", "x", x, tuple)
    return len(x)


def _list_len(x: Any) -> Any:
    arguments.instance("list_len", "x", x, list)
    return len(x)


def _tuple_reversed(x: Any) -> Any:
    arguments.instance("tuple_reversed", "x", x, tuple)
    return x[::-1]


def _tail(x: Any) -> Any:
    if not isinstance(x, (tuple, list)) or len(x) == 0:
        raise TypeError(f"tail: takes a tuple or list with members, not {x!r}")
    return x[1:]


def _same(name: str, x: Any, y: Any, kind: type) -> Any:
    arguments.instance(name, "x", x, kind)
    arguments.instance(name, "y", y, kind)
    if any([isinstance(v, Tensor) for v in flatten((x, y))[0]]):
        raise TypeError(f"{name}: compares plain values; compare tensors with ops.equal")
    return x == y


def _tuple_equal(x: Any, y: Any) -> Any:
    return _same("tuple_equal", x, y, tuple)


def _list_equal(x: Any, y: Any) -> Any:
    return _same("list_equal", x, y, list)


def _tuple_div(x: Any, y: Any) -> Any:
    arguments.instance("tuple_div", "x", x, tuple)
    arguments.instance("tuple_div", "y", y, tuple)
    if len(x) != len(y):
        raise ValueError(f"tuple_div: the tuples have {len(x)} and {len(y)} members; give as many of both")
    for a, b in zip(x, y):
        if not isinstance(a, (int, Dim)) or not isinstance(b, (int, Dim)):
            raise TypeError(f"tuple_div: divides whole numbers, not {a!r} by {b!r}")
        if b == 0 or a % b != 0:
            raise ValueError(f"tuple_div: {a} is not a multiple of {b}")
    return tuple([a // b for a, b in zip(x, y)])


# Making containers.


def _make_tuple(*items: Any) -> Any:
    return tuple(items)


def _make_list(*items: Any) -> Any:
    return list(items)


def _make_dict(keys: Any, values: Any) -> Any:
    for word, value in (("keys", keys), ("values", values)):
        arguments.sequence("make_dict", word, value)
    if len(keys) != len(values):
        raise ValueError(f"make_dict: there are {len(keys)} keys and {len(values)} values; give as many of both")
    return dict(zip(keys, values))


def _make_range(start: Any, stop: Any = None, step: Any = 1) -> Any:
    if start is None:
        raise TypeError("make_range: takes whole numbers, not None")
    for v in (start, stop, step):
        if isinstance(v, float):
            raise TypeError(f"make_range: takes whole numbers, not {v!r}")
    if isinstance(step, int) and step == 0:
        raise ValueError("make_range: the step must not be 0")
    if all(isinstance(v, int) or v is None for v in (start, stop, step)):
        count = start if stop is None else (stop - start) // step
        if count > 1 << 28:
            raise ValueError(f"make_range: {count} numbers do not fit in memory")
    return tuple(range(start)) if stop is None else tuple(range(start, stop, step))


def _make_slice(start: Any, stop: Any, step: Any) -> Any:
    return slice(start, stop, step)


# Dictionaries.


def _dict_getitem(x: Any, key: Any) -> Any:
    arguments.instance("dict_getitem", "x", x, dict)
    if key not in x:
        raise KeyError(f"dict_getitem: there is no key {key!r}; the keys are {list(x)}")
    return x[key]


def _dict_setitem(x: Any, key: Any, value: Any) -> Any:
    arguments.instance("dict_setitem", "x", x, dict)
    made = dict(x)
    made[key] = value
    return made


def _in_dict(key: Any, x: Any) -> Any:
    arguments.instance("in_dict", "x", x, dict)
    return key in x


def _not_in_dict(key: Any, x: Any) -> Any:
    arguments.instance("not_in_dict", "x", x, dict)
    return key not in x


# Truth, identity and strings.


def _bool_not(x: Any) -> Any:
    return not x


def _bool_and(x: Any, y: Any) -> Any:
    return not (not x or not y)


def _bool_or(x: Any, y: Any) -> Any:
    return not (not x and not y)


def _bool_eq(x: Any, y: Any) -> Any:
    return (not x) == (not y)


def _is_(x: Any, y: Any) -> Any:
    # Small numbers and strings are one object or two as it happens: what is asked is whether they
    # are the same value.
    return x == y if type(x) is type(y) and isinstance(x, (bool, int, str)) else x is y


def _is_not(x: Any, y: Any) -> Any:
    return not _is_(x, y)


def _string_eq(x: Any, y: Any) -> Any:
    arguments.instance("string_eq", "x", x, str)
    arguments.instance("string_eq", "y", y, str)
    return x == y


def _string_concat(x: Any, y: Any) -> Any:
    arguments.instance("string_concat", "x", x, str)
    arguments.instance("string_concat", "y", y, str)
    return x + y


# Iteration over sequences, dictionaries (their keys) and tensors (their rows) as a tuple of what is
# still to come.


def _need_items(name: str, x: Any) -> None:
    arguments.instance(name, "x", x, (tuple, list, dict, str, range, Tensor), "a sequence, a dictionary or a tensor")


def _iter_converter(x: Any) -> Any:
    _need_items("iter_converter", x)
    return tuple(x)


def _ms_hasnext(x: Any) -> Any:
    _need_items("ms_hasnext", x)
    return len(x) > 0


def _ms_next(x: Any) -> Any:
    arguments.instance("ms_next", "x", x, tuple)
    if len(x) == 0:
        raise IndexError("ms_next: there are no more items; ask ms_hasnext first")
    return x[0], x[1:]


def _zip_operation(*sequences: Any) -> Any:
    for x in sequences:
        _need_items("zip_operation", x)
    return tuple(zip(*sequences))


# Augmented assignments, as functions of the value before.


def _need_divisor(name: str, y: Any) -> None:
    if isinstance(y, (int, float)) and y == 0:
        raise ZeroDivisionError(f"{name}: the divisor is 0")


def _augassign_add(x: Any, y: Any) -> Any:
    return operator.add(x, y)


def _augassign_sub(x: Any, y: Any) -> Any:
    return operator.sub(x, y)


def _augassign_mul(x: Any, y: Any) -> Any:
    for many, times in ((x, y), (y, x)):
        if isinstance(many, (tuple, list, str)) and isinstance(times, int) and len(many) * times > 1 << 32:
            raise ValueError(f"augassign_mul: {len(many)} members {times} times do not fit in memory")
    return operator.mul(x, y)


def _augassign_div(x: Any, y: Any) -> Any:
    _need_divisor("augassign_div", y)
    return operator.truediv(x, y)


def _augassign_floordiv(x: Any, y: Any) -> Any:
    _need_divisor("augassign_floordiv", y)
    return operator.floordiv(x, y)


def _augassign_mod(x: Any, y: Any) -> Any:
    _need_divisor("augassign_mod", y)
    return operator.mod(x, y)


_INDEX = "Raises IndexError for an index out of range, and TypeError for anything but a"
tuple_getitem = _define(
    _tuple_getitem, "Return a member of a tuple by its index.", "(1, 2), -1", "2", f"{_INDEX} tuple."
)
list_getitem = _define(_list_getitem, "Return a member of a list by its index.", "[1, 2], 0", "1", f"{_INDEX} list.")
tuple_setitem = _define(
    _tuple_setitem,
    "Return a tuple with one member replaced, by its index.",
    "(1, 2), 0, 5",
    "(5, 2)",
    f"{_INDEX} tuple.",
)
list_setitem = _define(
    _list_setitem,
    "Return a new list with one member replaced, by its index.",
    "[1, 2], 0, 5",
    "[5, 2]",
    f"{_INDEX} list.",
)
tuple_len = _define(
    _tuple_len,
    "Return the number of members of a tuple.",
    "(1, 2, 3)",
    "3",
    "Raises TypeError for anything but a tuple.",
)
list_len = _define(
    _list_len, "Return the number of members of a list.", "[1, 2, 3]", "3", "Raises TypeError for anything but a list."
)
tuple_reversed = _define(
    _tuple_reversed,
    "Reverse a tuple.",
    "(1, 2, 3)",
    "(3, 2, 1)",
    "Raises TypeError for anything but a tuple.",
)
tail = _define(
    _tail,
    "Return a tuple or list without its first member.",
    "(1, 2, 3)",
    "(2, 3)",
    "Raises TypeError for other values and for empty ones.",
)
tuple_equal = _define(
    _tuple_equal,
    "Return whether two tuples of plain values are equal.",
    "(1, 2), (1, 3)",
    "False",
    "Raises TypeError for anything but tuples, and for tensors in them.",
)
list_equal = _define(
    _list_equal,
    "Return whether two lists of plain values are equal.",
    "[1, 2], [1, 2]",
    "True",
    "Raises TypeError for anything but lists, and for tensors in them.",
)
tuple_div = _define(
    _tuple_div,
    "Divide the members of a tuple by those of another.",
    "(4, 6), (2, 3)",
    "(2, 2)",
    "Raises ValueError where a number does not divide without a remainder, or where the lengths differ.",
)
make_tuple = _define(_make_tuple, "Make a tuple of the arguments.", "1, 2", "(1, 2)")
make_list = _define(_make_list, "Make a list of the arguments.", "1, 2", "[1, 2]")
make_dict = _define(
    _make_dict,
    "Make a dictionary of a tuple of keys and a tuple of values.",
    '("a", "b"), (1, 2)',
    "{'a': 1, 'b': 2}",
    "Raises ValueError where they differ in length.",
)
make_range = _define(
    _make_range,
    "Return the whole numbers of a range as a tuple; takes (stop), (start, stop) or (start, stop, step).",
    "1, 7, 2",
    "(1, 3, 5)",
    "Raises TypeError for other numbers and ValueError for a step of 0.",
)
make_slice = _define(_make_slice, "Make a slice.", "1, 5, None", "slice(1, 5, None)")
dict_getitem = _define(
    _dict_getitem, "Return the value of a key.", '{"a": 1}, "a"', "1", "Raises KeyError where there is none."
)
dict_setitem = _define(
    _dict_setitem, "Return a new dictionary with the value of a key set.", '{"a": 1}, "b", 2', "{'a': 1, 'b': 2}"
)
in_dict = _define(_in_dict, "Return whether a dictionary has a key.", '"a", {"a": 1}', "True")
not_in_dict = _define(_not_in_dict, "Return whether a dictionary lacks a key.", '"a", {"a": 1}', "False")
bool_not = _define(_bool_not, "Return the opposite of a truth value.", "True", "False")
bool_and = _define(_bool_and, "Return whether both truth values hold.", "True, False", "False")
bool_or = _define(_bool_or, "Return whether at least one of two truth values holds.", "True, False", "True")
bool_eq = _define(_bool_eq, "Return whether two truth values are the same.", "True, False", "False")
is_ = _define(
    _is_,
    "Return whether two values are the same object, or numbers or strings of one type that are equal.",
    "None, None",
    "True",
)
is_not = _define(_is_not, "Return the opposite of `is_`.", "None, 1", "True")
string_eq = _define(
    _string_eq,
    "Return whether two strings are equal.",
    '"a", "b"',
    "False",
    "Raises TypeError for anything but strings.",
)
string_concat = _define(
    _string_concat, "Join two strings.", '"a", "b"', "'ab'", "Raises TypeError for anything but strings."
)
iter_converter = _define(
    _iter_converter,
    "Return the items of an iteration as a tuple: members, keys of a dictionary, rows of a tensor.",
    '{"a": 1}',
    "('a',)",
)
ms_hasnext = _define(
    _ms_hasnext, "Return whether an iterator, the tuple of its remaining items, has another item.", "(1,)", "True"
)
ms_next = _define(
    _ms_next,
    "Return the next item of an iterator, the tuple of its remaining items, and the rest.",
    "(1, 2)",
    "(1, (2,))",
    "Raises IndexError where there is none.",
)
zip_operation = _define(
    _zip_operation,
    "Return corresponding members of sequences, as a tuple of tuples.",
    "(1, 2), (3, 4)",
    "((1, 3), (2, 4))",
)
augassign_add = _define(
    _augassign_add,
    "Return the x that `x += y` gives, for numbers, tensors, sequences and strings.",
    "[1], [2]",
    "[1, 2]",
    "The argument x is not changed.",
)
augassign_sub = _define(
    _augassign_sub, "Return the x that `x -= y` gives.", "3, 1", "2", "The argument x is not changed."
)
augassign_mul = _define(
    _augassign_mul, "Return the x that `x *= y` gives.", "[1], 2", "[1, 1]", "The argument x is not changed."
)
augassign_div = _define(
    _augassign_div, "Return the x that `x /= y` gives.", "3, 2", "1.5", "The argument x is not changed."
)
augassign_floordiv = _define(
    _augassign_floordiv, "Return the x that `x //= y` gives.", "7, 2", "3", "The argument x is not changed."
)
augassign_mod = _define(
    _augassign_mod,
    "Return the x that `x %= y` gives; a string is formatted.",
    "7, 4",
    "3",
    "The argument x is not changed.",
)
