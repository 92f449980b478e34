"""Operator overloading: interprets operator methods of the user's classes, dispatched as in Python.

The rules are those of the language reference ("Data model", emulating numeric types and
containers).

Python would run such a method natively, where its reads are not guarded and its conditions cannot
depend on tensors. So it is looked up here as Python looks it up, on the class, and interpreted.
Operands without methods of the user are left to Python: plain data, tensors and library objects.
"""

from __future__ import annotations

import operator
import types
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from mycel._src.compiler.ir.dims import Dim
from mycel._src.compiler.prims import elementwise as E
from mycel._src.staging.frontend.calls.frames import Closure, call
from mycel._src.staging.frontend.calls.native_calls import see
from mycel._src.staging.frontend.calls.user_code import is_native
from mycel._src.staging.frontend.specialization import guards
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor

if TYPE_CHECKING:
    from mycel._src.staging.frontend.graph_building.stage import Stage

__all__ = [
    "FAST",
    "binary",
    "compare",
    "contains",
    "in_place",
    "item",
    "iterate",
    "length",
    "method_of",
    "truth_of",
    "unary",
]

FAST = frozenset(
    (
        Tensor,
        Parameter,
        int,
        float,
        complex,
        bool,
        str,
        bytes,
        type(None),
        tuple,
        list,
        dict,
        set,
        frozenset,
        range,
        slice,
        np.ndarray,
        type(...),
        types.FunctionType,
        types.ModuleType,
        types.BuiltinFunctionType,
        Closure,
        Dim,
    )
)
_REFLECTED = {
    "__lt__": "__gt__",
    "__gt__": "__lt__",
    "__le__": "__ge__",
    "__ge__": "__le__",
    "__eq__": "__eq__",
    "__ne__": "__ne__",
}


def method_of(stage: Stage, value: Any, name: str) -> Any | None:
    """Return the method `name` of a value's class if the user wrote it, and guard it; else None."""
    kind = type(value)
    if kind in FAST:
        return None
    found = guards.lookup(kind, name)
    if type(found) not in (types.FunctionType, Closure) or is_native(found):
        return None
    stage.guards.of_type(kind, name, found)
    if not stage.is_fresh(value):
        stage.guards.kind(value)
    return found


def _natively(stage: Stage, operate: Any, *values: Any) -> Any:
    for v in values:
        if type(v) not in FAST:
            see(stage, v)
    return operate(*values)


def binary(stage: Stage, operate: Any, name: str, a: Any, b: Any) -> Any:
    """Return ``a + b`` or the result of another binary operator.

    `name` is that of its method without underscores; `operate` is Python's function for operands
    without methods of the user. `stage` calls the methods.
    """
    forward, reflected = f"__{name}__", f"__r{name}__"
    mine, other = method_of(stage, a, forward), method_of(stage, b, reflected)
    if mine is None and other is None:
        return _natively(stage, operate, a, b)
    attempts = [(mine, a, b, forward), (other, b, a, reflected)]
    if type(b) is not type(a) and isinstance(b, type(a)) and other is not None:
        attempts.reverse()
    if type(a) is type(b):
        attempts.pop()
    for method, x, y, title in attempts:
        if method is not None:
            result = call(stage, method, (x, y), {})
        else:
            native = getattr(type(x), title, None)
            result = NotImplemented if native is None else native(x, y)
        if result is not NotImplemented:
            return result
    raise TypeError(f"unsupported operand type(s) for {name}: {type(a).__name__!r} and {type(b).__name__!r}")


def in_place(stage: Stage, operate: Any, symbol: Any, name: str, a: Any, b: Any) -> Any:
    """Return the result of ``a += b`` or of another operator in place.

    `name` is that of the binary operator's method without underscores, `symbol` Python's function
    for it, and `operate` Python's function for the operator in place. `stage` calls the methods.
    """
    method = method_of(stage, a, f"__i{name}__")
    if method is not None:
        result = call(stage, method, (a, b), {})
        if result is not NotImplemented:
            return result
    elif method_of(stage, a, f"__{name}__") is None and method_of(stage, b, f"__r{name}__") is None:
        return _natively(stage, operate, a, b)
    return binary(stage, symbol, name, a, b)


def compare(stage: Stage, operate: Any, name: str, a: Any, b: Any) -> Any:
    """Return ``a < b`` or the result of another comparison.

    `name` is that of its method without underscores; `operate` is Python's function for operands
    without methods of the user. `stage` calls the methods.
    """
    forward, reflected = f"__{name}__", _REFLECTED[f"__{name}__"]
    mine, other = method_of(stage, a, forward), method_of(stage, b, reflected)
    if name == "ne" and mine is None and other is None:
        if method_of(stage, a, "__eq__") is not None or method_of(stage, b, "__eq__") is not None:
            found = compare(stage, lambda x, y: x == y, "eq", a, b)
            return eager.apply(E.logical_not, found) if isinstance(found, Tensor) else not found
    if mine is None and other is None:
        return _natively(stage, operate, a, b)
    attempts = [(mine, a, b, forward), (other, b, a, reflected)]
    if type(b) is not type(a) and isinstance(b, type(a)) and other is not None:
        attempts.reverse()
    for method, x, y, title in attempts:
        if method is not None:
            result = call(stage, method, (x, y), {})
        else:
            native = getattr(type(x), title, None)
            result = NotImplemented if native is None else native(x, y)
        if result is not NotImplemented:
            return result
    if name in ("eq", "ne"):
        return (a is b) is (name == "eq")
    raise TypeError(f"{name!r} not supported between instances of {type(a).__name__!r} and {type(b).__name__!r}")


def unary(stage: Stage, operate: Any, name: str, value: Any, *rest: Any) -> Any:
    """Return ``-value``, ``len(value)`` or the result of another operation with a special method.

    `name` is that of the method; `operate` is Python's function for a `value` without such a method
    of the user. `stage` calls the method.
    """
    method = method_of(stage, value, name)
    if method is not None:
        return call(stage, method, (value, *rest), {})
    return _natively(stage, operate, value, *rest)


def item(stage: Stage, container: Any, index: Any) -> Any:
    """Return ``container[index]``."""
    method = method_of(stage, container, "__getitem__")
    if method is not None:
        return call(stage, method, (container, index), {})
    if isinstance(container, type):
        made = guards.lookup(container, "__class_getitem__")
        inner = getattr(made, "__func__", made)
        if type(inner) is types.FunctionType and not is_native(inner):
            stage.guards.of_type(container, "__class_getitem__", made)
            return call(stage, inner, (container, index), {})
    if method_of(stage, index, "__index__") is not None and isinstance(container, (list, tuple, str, Tensor)):
        index = unary(stage, operator.index, "__index__", index)
    missing = method_of(stage, container, "__missing__") if isinstance(container, dict) else None
    if missing is not None and index not in container:
        return call(stage, missing, (container, index), {})
    return _natively(stage, operator.getitem, container, index)


def contains(stage: Stage, container: Any, item: Any) -> Any:
    """Return ``item in container``."""
    method = method_of(stage, container, "__contains__")
    if method is not None:
        found = call(stage, method, (container, item), {})
        return found if isinstance(found, Tensor) else bool(found)
    if type(container) in (tuple, list) and (_compares(stage, item) or any(_compares(stage, v) for v in container)):
        return any(v is item or truth_of(stage, compare(stage, lambda a, b: a == b, "eq", v, item)) for v in container)
    if method_of(stage, container, "__iter__") is not None:
        return contains(stage, list(iterate(stage, container)), item)
    return _natively(stage, lambda c: item in c, container)


def _compares(stage: Stage, value: Any) -> bool:
    return method_of(stage, value, "__eq__") is not None


def truth_of(stage: Stage, value: Any) -> bool:
    """Return the truth of a value that is no staged tensor."""
    if stage is None or type(value) in FAST:
        return bool(value)
    for name in ("__bool__", "__len__"):
        method = method_of(stage, value, name)
        if method is not None:
            return bool(call(stage, method, (value,), {}))
        if guards.lookup(type(value), name) is not guards.MISSING:
            break
    return bool(_natively(stage, bool, value))


def length(stage: Stage, value: Any) -> Any:
    """Return ``len(value)``."""
    return unary(stage, len, "__len__", value)


def iterate(stage: Stage | None, value: Any) -> Any:
    """Return an object whose iteration by Python gives the items of `value`."""
    if stage is None or type(value) in FAST:
        return value
    method = method_of(stage, value, "__iter__")
    if method is not None:
        return (
            iterate(stage, call(stage, method, (value,), {}))
            if method_of(stage, value, "__next__") is None
            else stage.created(_steps(stage, value))
        )
    if method_of(stage, value, "__next__") is not None:
        return stage.created(_steps(stage, value))
    if guards.lookup(type(value), "__iter__") is guards.MISSING and method_of(stage, value, "__getitem__") is not None:
        return stage.created(_members(stage, value))
    if not hasattr(type(value), "__next__"):
        see(stage, value)
    return value


def _steps(stage: Stage, iterator: Any) -> Iterator[Any]:
    while True:
        method = method_of(stage, iterator, "__next__")
        try:
            item = call(stage, method, (iterator,), {})
        except StopIteration:
            return
        yield item


def _members(stage: Stage, sequence: Any) -> Iterator[Any]:
    method, i = method_of(stage, sequence, "__getitem__"), 0
    while True:
        try:
            item = call(stage, method, (sequence, i), {})
        except IndexError:
            return
        yield item
        i += 1
