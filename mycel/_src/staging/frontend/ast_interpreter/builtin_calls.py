"""Interprets builtin functions that treat staged tensors differently, or call the user's code."""

from __future__ import annotations

import builtins
import functools
import math
import operator
from collections.abc import Callable
from typing import Any

from mycel._src.compiler.ir.dims import Dim
from mycel._src.compiler.ir.graph import current_where
from mycel._src.compiler.prims import elementwise as E
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import CompileError
from mycel._src.staging.frontend.calls.attribute_access import load_attribute, store_attribute
from mycel._src.staging.frontend.calls.native_calls import call_natively, callback
from mycel._src.staging.frontend.calls.operator_methods import FAST, binary, iterate, method_of, truth_of, unary
from mycel._src.staging.frontend.control_flow.conditionals import truth
from mycel._src.staging.frontend.control_flow.loop_unrolling import TensorRange
from mycel._src.staging.frontend.graph_building.stage import Stage, is_staged
from mycel._src.staging.frontend.graph_building.symbolic_sizes import FUNCTIONS, SizeRange, converted, number_of
from mycel._src.staging.frontend.specialization import guards
from mycel._src.staging.frontend.specialization.mutable_numbers import number_class
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.binary_operators import pair
from mycel._src.tensors.core.tensor import Tensor

__all__ = ["SPECIAL"]

Special = Callable[[Stage, Any, dict[str, Any]], Any]


def _has_tensor(values: Any) -> bool:
    return any(isinstance(v, Tensor) for v in values)


def _range(stage: Stage, args: Any, kwargs: Any) -> Any:
    if not _has_tensor(args):
        if not any(isinstance(a, Dim) for a in args):
            return range(*args, **kwargs)
        return SizeRange(*{1: (0, *args, 1), 2: (*args, 1), 3: tuple(args)}[len(args)])
    start, stop, step = {1: (0, *args, 1), 2: (*args, 1), 3: tuple(args)}[len(args)]
    start, stop = (number_of(stage, v) if isinstance(v, Dim) else v for v in (start, stop))
    for v in (start, stop, step):
        if isinstance(v, Tensor) and (v.size != 1 or not v.dtype.is_integer):
            raise TypeError(f"range() takes whole numbers, not a tensor {v._type}")
    return TensorRange(start, stop, step)


def _extreme(name: str) -> Special:
    native = getattr(builtins, name)

    def run(stage: Stage, args: Any, kwargs: Any) -> Any:
        values = list(args[0]) if len(args) == 1 and not isinstance(args[0], Tensor) else list(args)
        if kwargs or len(args) == 0 or not _has_tensor(values):
            return native(*([values] if len(args) == 1 else args), **_callbacks(kwargs))
        if len(args) == 1 and isinstance(args[0], Tensor):
            values = list(args[0])
        result = values[0]
        for v in values[1:]:
            result = _choose(result, v, E.gt if name == "max" else E.lt)
        return result

    return run


def _choose(a: Any, b: Any, better: Any) -> Any:
    operands = pair(a, b)
    if operands is None or any(t.size != 1 for t in operands):
        raise ValueError(
            "max() and min() compare single values; use ops.maximum, ops.minimum, or the tensor's own max() and min()"
        )
    x, y = operands
    return eager.apply(E.SELECT, eager.apply(better, y, x), y, x)


def _quantifier(name: str) -> Special:
    is_all = name == "all"

    def run(stage: Stage, args: Any, kwargs: Any) -> Any:
        found: Any = None
        for v in args[0]:
            where = current_where()
            decided = truth(_Here(stage), v, where)  # type: ignore[arg-type]
            if isinstance(decided, Tensor):
                found = (
                    decided if found is None else eager.apply(E.logical_and if is_all else E.logical_or, found, decided)
                )
            elif decided is not is_all:
                return not is_all
        return is_all if found is None else found

    return run


class _Here:
    """The part of a frame that `truth` needs."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage


def _needs(what: str, native: Any) -> Special:
    def run(stage: Stage, args: Any, kwargs: Any) -> Any:
        for v in args:
            if isinstance(v, Tensor):
                found = stage.need_value(v, what)
                return native(Tensor(found))
        if _holds_staged(args) and not stage.may_decide:
            raise CompileError(
                f"{current_where()}: {what} shows the value of a tensor that is computed only when the compiled "
                "function runs; "
                "return the tensor and show it outside"
            )
        return native(*args, **kwargs)

    return run


def _print(stage: Stage, args: Any, kwargs: Any) -> None:
    stage.defer(print, tuple(args), kwargs)


def _holds_staged(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(_holds_staged(v) for v in value)
    if isinstance(value, dict):
        return any(_holds_staged(v) for v in value.values())
    return is_staged(value)


def _getattr(stage: Stage, args: Any, kwargs: Any) -> Any:
    if not isinstance(args[1], str):
        return getattr(*args)
    try:
        return load_attribute(stage, args[0], args[1])
    except AttributeError:
        if len(args) < 3:
            raise
        _note_absence(stage, args[0], args[1])
        return args[2]


def _hasattr(stage: Stage, args: Any, kwargs: Any) -> Any:
    try:
        load_attribute(stage, *args)
    except AttributeError:
        _note_absence(stage, *args[:2])
        return False
    return True


def _note_absence(stage: Stage, target: Any, name: str) -> None:
    if not is_staged(target) and not stage.is_fresh(target):
        stage.guards.attribute(target, name, guards.MISSING)


def _setattr(stage: Stage, args: Any, kwargs: Any) -> Any:
    store_attribute(stage, *args)


def _delattr(stage: Stage, args: Any, kwargs: Any) -> Any:
    stage.note_attribute(*args)
    delattr(*args)


def _callbacks(kwargs: Any) -> Any:
    return {k: callback(v) for k, v in kwargs.items()}


def _with_callback(native: Any) -> Special:
    def run(stage: Stage, args: Any, kwargs: Any) -> Any:
        given = [callback(args[0]), *args[1:]] if args else args
        result = native(*given, **_callbacks(kwargs))
        return stage.created(result) if isinstance(result, (list, map, filter)) else result

    return run


def _container(kind: Any) -> Special:
    def run(stage: Stage, args: Any, kwargs: Any) -> Any:
        return stage.created(kind(*args, **kwargs))

    return run


def see_class(stage: Stage, value: Any) -> None:
    """Guard the class of an object whose class can be changed."""
    if type(value) not in FAST and not isinstance(value, type) and not stage.is_fresh(value):
        if type(value).__flags__ & _HEAP_TYPE:
            stage.guards.kind(value)


_HEAP_TYPE = 1 << 9


def _isinstance(stage: Stage, args: Any, kwargs: Any) -> Any:
    value = args[0]
    see_class(stage, value)
    if isinstance(value, Tensor) and stage.is_number(value):
        return issubclass(number_class(value), args[1])
    if isinstance(value, Dim):
        return issubclass(int, args[1])
    return isinstance(*args)


def _number(kind: Any) -> Special:
    def run(stage: Stage, args: Any, kwargs: Any) -> Any:
        if len(args) == 1 and isinstance(args[0], Tensor) and stage.is_number(args[0]):
            return stage.mark_number(args[0].astype({int: D.int64, float: D.float64, bool: D.bool_}[kind]))
        if len(args) == 1 and isinstance(args[0], Dim):
            return converted(stage, args[0], kind)
        if kind is bool and len(args) == 1 and not isinstance(args[0], Tensor):
            return truth_of(stage, args[0])
        return kind(*args, **kwargs)

    return run


def _type(stage: Stage, args: Any, kwargs: Any) -> Any:
    if len(args) == 1:
        see_class(stage, args[0])
        if isinstance(args[0], Tensor) and stage.is_number(args[0]):
            return number_class(args[0])
    if len(args) == 1 and isinstance(args[0], Dim):
        return int
    return type(*args, **kwargs)


def _globals(stage: Stage, args: Any, kwargs: Any) -> Any:
    raise CompileError(
        f"{current_where()}: globals(), vars(), eval() and exec() cannot be followed by the compiler; name what you "
        "need"
    )


def _effect(native: Any) -> Special:
    def run(stage: Stage, args: Any, kwargs: Any) -> Any:
        if stage.may_decide:
            return native(*args, **kwargs)
        raise CompileError(
            f"{current_where()}: a compiled function would do this only once, while it is compiled; do it outside"
        )

    return run


def _operator(name: str, native: Any) -> Special:
    """Return the replacement of a builtin function that calls a method of its first argument."""
    usual = _BY_METHOD_ELSE.get(native)

    def run(stage: Stage, args: Any, kwargs: Any) -> Any:
        if args and not kwargs and type(args[0]) not in FAST and method_of(stage, args[0], name) is not None:
            return unary(stage, native, name, *args)
        if usual is not None:
            return usual(stage, args, kwargs)
        return call_natively(stage, native, args, kwargs)

    return run


def _sum(stage: Stage, args: Any, kwargs: Any) -> Any:
    items = tuple(args[0])
    if all(type(v) in FAST for v in items):
        return call_natively(stage, sum, (items, *args[1:]), kwargs)
    total = args[1] if len(args) > 1 else kwargs.get("start", 0)
    for v in items:
        total = binary(stage, operator.add, "add", total, v)
    return total


def _over_items(native: Any) -> Special:
    """Return the replacement of a builtin function that iterates over its arguments."""
    usual = _BY_METHOD_ELSE.get(native)

    def run(stage: Stage, args: Any, kwargs: Any) -> Any:
        first = native in (map, filter)
        given = [a if type(a) in FAST or first and a is args[0] else iterate(stage, a) for a in args]
        if usual is not None:
            return usual(stage, given, kwargs)
        return call_natively(stage, native, given, kwargs)

    return run


SPECIAL: dict[Any, Special] = {
    **FUNCTIONS,
    range: _range,
    max: _extreme("max"),
    min: _extreme("min"),
    any: _quantifier("any"),
    sum: _sum,
    all: _quantifier("all"),
    print: _print,
    input: _effect(input),
    open: _effect(open),
    breakpoint: _effect(breakpoint),
    str: _needs("str()", str),
    repr: _needs("repr()", repr),
    getattr: _getattr,
    hasattr: _hasattr,
    setattr: _setattr,
    delattr: _delattr,
    isinstance: _isinstance,
    int: _number(int),
    float: _number(float),
    bool: _number(bool),
    type: _type,
    globals: _globals,
    vars: _globals,
    eval: _globals,
    exec: _globals,
    map: _with_callback(map),
    filter: _with_callback(filter),
    sorted: _with_callback(sorted),
    functools.reduce: _with_callback(functools.reduce),
    list: _container(list),
    dict: _container(dict),
    set: _container(set),
}
_BY_METHOD_ELSE: dict[Any, Special] = dict(SPECIAL)
SPECIAL.update(
    {
        native: _operator(name, native)
        for native, name in (
            (len, "__len__"),
            (abs, "__abs__"),
            (round, "__round__"),
            (float, "__float__"),
            (int, "__int__"),
            (complex, "__complex__"),
            (str, "__str__"),
            (repr, "__repr__"),
            (hash, "__hash__"),
            (divmod, "__divmod__"),
            (format, "__format__"),
            (operator.index, "__index__"),
            (math.floor, "__floor__"),
            (math.ceil, "__ceil__"),
            (math.trunc, "__trunc__"),
            (reversed, "__reversed__"),
            (next, "__next__"),
        )
    }
)
SPECIAL.update(
    {
        native: _over_items(native)
        for native in (list, tuple, set, frozenset, sum, zip, enumerate, map, filter, sorted, max, min, any, all, iter)
    }
)
