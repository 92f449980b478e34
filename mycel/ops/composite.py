"""Functions of functions in MindSpore's older style: gradients as objects, overloads by type, and
maps over nested sequences.

Overloads and maps call their functions through the current context, so that a compiled function
traces the user's code in them. It guards the attributes that they read of themselves.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.staging.derivatives.gradient import Gradient
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.parameter import Parameter, ParameterTuple
from mycel._src.tensors.core.tensor import Tensor

__all__ = ["GradOperation", "HyperMap", "Map", "MultitypeFuncGraph", "Partial", "partial"]


class GradOperation:
    """The gradient of a function or Cell: ``GradOperation(get_all, get_by_list, sens_param)(fn,
    weights)(*inputs)``.

    By default it is the gradient by the first input; with `get_all` a tuple of those by all inputs;
    with `get_by_list` those by the weights (those given, or the trainable ones of a Cell); with
    both a pair. With `sens_param` the last input, or the one named `sens`, is the cotangent of the
    output. By inputs that hold no tensors there is no gradient.

    >>> import mycel as ms
    >>> float(ms.ops.GradOperation()(lambda x: x * x)(ms.Tensor(3.0)))
    6.0
    """

    def __init__(self, get_all: bool = False, get_by_list: bool = False, sens_param: bool = False) -> None:
        for name, value in (("get_all", get_all), ("get_by_list", get_by_list), ("sens_param", sens_param)):
            arguments.flag("GradOperation", name, value)
        self.get_all, self.get_by_list, self.sens_param = get_all, get_by_list, sens_param

    def __call__(self, fn: Callable[..., Any], weights: Any = None) -> Callable[..., Any]:
        arguments.function("GradOperation", "fn", fn)
        positions = None if self.get_all else () if self.get_by_list else (0,)
        chosen = _weights(fn, weights) if self.get_by_list else None
        return Gradient(fn, positions, chosen, sens_param=self.sens_param)


def _weights(fn: Any, weights: Any) -> Any:
    if weights is None:
        return ParameterTuple(fn.trainable_params()) if hasattr(fn, "trainable_params") else ()
    return weights if isinstance(weights, (Parameter, tuple, list)) else list(weights)


def partial(*args: Any, **kwargs: Any) -> Any:
    """Return a function with its first arguments fixed, and with arguments by name:
    ``partial(fn, *arguments, **named)``.

    Raises TypeError where `fn` cannot be called.

    >>> import mycel as ms
    >>> ms.ops.partial(lambda x, y: x - y, 5)(2)
    3
    """
    if not args or not callable(args[0]):
        raise TypeError("partial: the first argument must be a function")
    function, *given = args
    return functools.partial(function, *given, **kwargs)


class Partial:
    """`partial` as an object: ``Partial()(fn, *arguments)``.

    >>> import mycel as ms
    >>> ms.ops.Partial()(lambda x, y: x - y, 5)(2)
    3
    """

    def __call__(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., Any]:
        return partial(func, *args, **kwargs)


class MultitypeFuncGraph:
    """A function with one implementation for each combination of argument types.

    `register` takes the types by name, as MindSpore types or as Python classes. The names are
    "Tensor" (also "Tensor[Float32]" and so on), "Parameter", "Number", "Bool", "Int", "Float",
    "Complex" (each also with a width, such as "Int64"; Python's numbers are Int64 and Float64),
    "String", "Tuple", "List", "Dictionary", "Slice", "Ellipsis", "None", "Function" and "Type". A
    call takes the closest combination that fits: an exact type before a wider one, such as Bool
    before Number, and of those that are equally close the one registered first. A single
    implementation takes every call, whatever its types. `read_value` has no effect: an
    implementation that writes to a Parameter always finds the parameter itself. Raises TypeError
    for anything but types, RuntimeError for an unknown name, and ValueError for a call that no
    implementation fits.

    >>> import mycel as ms
    >>> add = ms.ops.MultitypeFuncGraph("add")
    >>> @add.register("Number", "Number")
    ... def add_numbers(x, y):
    ...     return x + y
    >>> add(1, 2)
    3
    """

    def __init__(self, name: str, read_value: bool = False) -> None:
        arguments.text("MultitypeFuncGraph", "the name", name)
        self.name, self.read_value = name, read_value
        self.entries: list[tuple[tuple[Any, ...], Callable[..., Any]]] = []

    def register(self, *type_names: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Return a decorator that adds an implementation for these types."""
        type_names = tuple([str(k) if isinstance(k, D.Type) and not isinstance(k, D.DType) else k for k in type_names])
        for kind in type_names:
            _check_type(kind)

        def add(fn: Callable[..., Any]) -> Callable[..., Any]:
            self.entries.append((type_names, fn))
            return fn

        return add

    def __call__(self, *args: Any) -> Any:
        _guard(self, "entries")
        if len(self.entries) == 1:
            return _invoke(self.entries[0][1], args)
        found = [_ancestors(a) for a in args]
        best: Any = None
        for types, fn in self.entries:
            if len(types) == len(args):
                distances = [_distance(a, f, t) for a, f, t in zip(args, found, types)]
                far = sum(d if d is not None else _NEVER for d in distances)
                if far < _NEVER and (best is None or far < best[0]):
                    best = (far, fn)
        if best is not None:
            return _invoke(best[1], args)
        known = "; ".join(f"({', '.join(map(_name, types))})" for types, _ in self.entries) or "none"
        raise ValueError(
            f"{self.name}: no implementation is registered for ({', '.join(f[0] for f in found)}); there are: {known}"
        )

    def __repr__(self) -> str:
        return f"<MultitypeFuncGraph {self.name!r} of {len(self.entries)} implementations>"


_NEVER = 1 << 30
_WIDTHS = [f"{k}{w}" for k in ("Int", "UInt", "Float") for w in (8, 16, 32, 64)] + [
    "BFloat16",
    "Complex64",
    "Complex128",
]
_SPELLINGS = {
    "Dict": "Dictionary",
    "TypeNone": "None",
    "NoneType": "None",
    "Func": "Function",
    "TypeType": "Type",
    "Ref": "Parameter",
    "Str": "String",
    "int": "Int",
    "float": "Float",
    "bool": "Bool",
    "str": "String",
}
_NAMES = frozenset(
    (
        "Tensor",
        "Parameter",
        "Number",
        "Bool",
        "Int",
        "UInt",
        "Float",
        "Complex",
        "String",
        "Tuple",
        "List",
        "Dictionary",
        "Slice",
        "Ellipsis",
        "None",
        "Function",
        "Type",
        "RowTensor",
        "COOTensor",
        "CSRTensor",
        *_WIDTHS,
    )
)
_PYTHON: tuple[tuple[type, tuple[str, ...]], ...] = (
    (bool, ("Bool", "Number")),
    (int, ("Int64", "Int", "Number")),
    (float, ("Float64", "Float32", "Float", "Number")),
    (complex, ("Complex128", "Complex64", "Complex", "Number")),
    (str, ("String",)),
    (tuple, ("Tuple",)),
    (list, ("List",)),
    (dict, ("Dictionary",)),
    (slice, ("Slice",)),
    (type(...), ("Ellipsis",)),
    (type(None), ("None",)),
    (D.Type, ("Type",)),
)


def _check_type(kind: Any) -> None:
    if isinstance(kind, str):
        inner = kind[7:-1] if kind.startswith("Tensor[") and kind.endswith("]") else kind
        if _SPELLINGS.get(inner, inner) not in _NAMES:
            raise RuntimeError(
                f"MultitypeFuncGraph: {kind!r} is no type name; use one of {', '.join(sorted(_NAMES))}, or Tensor[...] "
                "with one"
            )
    else:
        what = "a name, a MindSpore type or a class"
        arguments.instance("MultitypeFuncGraph", "a type", kind, (type, D.DType), what)


def _ancestors(value: Any) -> tuple[str, ...]:
    """Return the names of the types of a value, the closest first."""
    if isinstance(value, Tensor):
        dtype = value.dtype.name
        number = _number_class(value)
        if number is not None:
            return next(names for kind, names in _PYTHON if kind is number)
        own = ("Tensor[" + _capital(dtype) + "]", "Tensor")
        return ("Parameter", *own) if isinstance(value, Parameter) else own
    for kind, names in _PYTHON:
        if isinstance(value, kind):
            return names
    return ("Function",) if callable(value) else (type(value).__name__,)


def _capital(name: str) -> str:
    return (
        {"bool_": "Bool", "bool": "Bool"}.get(name) or name[:2].upper() + name[2:]
        if name[0] in "ub"
        else name.capitalize()
    )


def _number_class(value: Tensor) -> Any:
    """Return the class of the Python number that a tensor stands for in a compiled function; None
    where it stands for no number.
    """
    staging = eager.local.staging if eager.active else None
    if staging is None or not staging.is_number(value):
        return None
    return {"b": bool, "f": float, "c": complex}.get(value.dtype.kind, int)


def _distance(value: Any, names: tuple[str, ...], kind: Any) -> int | None:
    """Return how far a registered type is from the type of a value; None where it does not fit."""
    if isinstance(kind, str):
        inner = _SPELLINGS.get(kind, kind)
        return names.index(inner) if inner in names else None
    if isinstance(kind, D.DType):
        if isinstance(value, Tensor):
            return 0 if value.dtype is kind else None
        return names.index(_capital(kind.name)) if _capital(kind.name) in names else None
    held = _number_class(value) if isinstance(value, Tensor) else None
    mro = (held or type(value)).__mro__
    return mro.index(kind) if kind in mro else None


def _name(kind: Any) -> str:
    return kind if isinstance(kind, str) else getattr(kind, "__name__", None) or str(kind)


def _guard(target: Any, *names: str) -> None:
    staging = eager.local.staging if eager.active else None
    if staging is not None and not staging.following.is_fresh(target):
        for name in names:
            staging.following.guard_attribute(target, name, getattr(target, name))


def _invoke(function: Any, args: Any) -> Any:
    context = eager.local.context if eager.active else None
    return function(*args) if context is None or not context.is_staging else context.invoke(function, args, {})


class HyperMap:
    """A function applied to the corresponding leaves of equally nested tuples, lists and dicts.

    `ops` may be given at construction, or as the first argument of the call; it is most often a
    `MultitypeFuncGraph`. With `reverse` the leaves are taken from the last to the first. The result
    is nested like the first structure; outside of compiled functions it has tuples for lists.
    Raises TypeError where the structures do not match.

    >>> import mycel as ms
    >>> ms.ops.HyperMap()(lambda x, y: x + y, (1, (2, 3)), (10, (20, 30)))
    (11, (22, 33))
    """

    deep = True

    def __init__(self, ops: Callable[..., Any] | None = None, reverse: bool = False) -> None:
        if ops is not None:
            arguments.function(type(self).__name__, "ops", ops, "a function or None")
        arguments.flag(type(self).__name__, "reverse", reverse)
        self.ops, self.reverse = ops, reverse

    def __call__(self, *args: Any) -> Any:
        _guard(self, "ops", "reverse")
        function, structures = (self.ops, args) if self.ops is not None else (args[:1], args[1:])
        if self.ops is None:
            if not args or not callable(args[0]):
                raise TypeError(f"{type(self).__name__}: the first argument must be a function, unless ops is given")
            function = args[0]
        if not structures:
            raise TypeError(f"{type(self).__name__}: there is nothing to map over")
        return self._over(function, structures, True)

    def _over(self, function: Any, values: tuple[Any, ...], first: bool) -> Any:
        model = values[0]
        if not isinstance(model, (tuple, list, dict)) or not (first or self.deep):
            return _invoke(function, values)
        keys = list(model) if isinstance(model, dict) else None
        for v in values[1:]:
            fits = isinstance(v, dict) and list(v) == keys if keys is not None else isinstance(v, (tuple, list))
            if not fits or len(v) != len(model):
                raise TypeError(
                    f"{type(self).__name__}: the structures must all be {type(model).__name__}s of {len(model)} "
                    "members there, "
                    f"not {type(v).__name__}{f' of {len(v)}' if isinstance(v, (tuple, list, dict)) else ''}"
                )
        rows = [tuple([v[k] for v in values]) for k in (range(len(model)) if keys is None else keys)]
        done = [self._over(function, row, False) for row in (rows[::-1] if self.reverse else rows)]
        done = done[::-1] if self.reverse else done
        staging = eager.local.staging if eager.active else None
        if isinstance(model, tuple) or keys is None and staging is None:
            return tuple(done)
        made = done if keys is None else dict(zip(keys, done))
        return made if staging is None else staging.created(made)


class Map(HyperMap):
    """A function applied to the corresponding members of sequences; sequences within them are not
    entered.

    >>> import mycel as ms
    >>> ms.ops.Map()(lambda x, y: x + y, (1, 2), (10, 20))
    (11, 22)
    """

    deep = False
