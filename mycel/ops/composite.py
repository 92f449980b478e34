"""Functions over functions in MindSpore's older style: gradients as objects, overloads by type, and maps over nested sequences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional

from mycel import dtype as D
from mycel.api import grad
from mycel.parameter import Parameter, ParameterTuple
from mycel.tensor import Tensor

__all__ = ["GradOperation", "HyperMap", "Map", "MultitypeFuncGraph"]


class GradOperation:
    """Gradients of a function or Cell: ``GradOperation(get_all, get_by_list, sens_param)(fn, weights)(*inputs)``.

    By default the gradient by the first input; with `get_all` by all inputs, with `get_by_list` by the weights (those given, or the trainable ones of a
    Cell), with both a pair of tuples. With `sens_param` the last input is the cotangent of the output.

    >>> import mycel as ms
    >>> float(ms.ops.GradOperation()(lambda x: x * x)(ms.Tensor(3.0)))
    6.0
    """

    def __init__(self, get_all: bool = False, get_by_list: bool = False, sens_param: bool = False) -> None:
        for name, value in (("get_all", get_all), ("get_by_list", get_by_list), ("sens_param", sens_param)):
            if not isinstance(value, bool):
                raise TypeError(f"GradOperation: {name} must be a bool, not {type(value).__name__}")
        self.get_all, self.get_by_list, self.sens_param = get_all, get_by_list, sens_param

    def __call__(self, fn: Callable[..., Any], weights: Any = None) -> Callable[..., Any]:
        def gradients(*inputs: Any) -> Any:
            arguments, sens = (inputs[:-1], inputs[-1]) if self.sens_param else (inputs, None)
            positions: Any = tuple(range(len(arguments))) if self.get_all else None if self.get_by_list else 0
            chosen = _weights(fn, weights) if self.get_by_list else None
            target = fn if not self.sens_param else lambda *args: _weighted(fn(*args), sens)
            result = grad(target, positions, chosen)(*arguments)
            if not self.get_all or len(arguments) != 1:
                return result
            # `grad` by a single input gives it without a tuple.
            return ((result[0],), result[1]) if self.get_by_list else (result,)

        return gradients


def _weights(fn: Any, weights: Any) -> Any:
    if weights is None:
        if not hasattr(fn, "trainable_params"):
            raise TypeError("GradOperation: get_by_list needs the weights: pass them after the function")
        return ParameterTuple(fn.trainable_params())
    return weights if isinstance(weights, (Parameter, tuple, list)) else list(weights)


def _weighted(out: Any, sens: Any) -> Any:
    if isinstance(out, (tuple, list)):
        total: Any = None
        for o, s in zip(out, sens):
            part = _weighted(o, s)
            total = part if total is None else total + part
        return total
    from mycel.ops.reduction import sum

    return sum(out * sens)


class MultitypeFuncGraph:
    """A function with one implementation for each combination of argument types.

    `register` takes the names of types: "Tensor", "Number", "Bool", "Float", "Int", "String", "Tuple", "List", "Dict", "None",
    "Parameter", "Function". A call takes the first registered combination that fits; TypeError where none does.

    >>> import mycel as ms
    >>> add = ms.ops.MultitypeFuncGraph("add")
    >>> @add.register("Number", "Number")
    ... def add_numbers(x, y):
    ...     return x + y
    >>> add(1, 2)
    3
    """

    def __init__(self, name: str, read_value: bool = False) -> None:
        self.name = name
        self.entries: list[tuple[tuple[Any, ...], Callable[..., Any]]] = []

    def register(self, *type_names: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """A decorator that adds an implementation for these types."""

        def add(fn: Callable[..., Any]) -> Callable[..., Any]:
            self.entries.append((type_names, fn))
            return fn

        return add

    def __call__(self, *args: Any) -> Any:
        for types, fn in self.entries:
            if len(types) == len(args) and all(_is(value, kind) for value, kind in zip(args, types)):
                return fn(*args)
        raise TypeError(
            f"{self.name}: no implementation is registered for ({', '.join(type(a).__name__ for a in args)})"
        )


_KINDS: dict[str, Any] = {
    "Tensor": Tensor, "Parameter": Parameter, "Number": (int, float), "Bool": bool, "Float": float, "Int": int, "String": str, "Tuple": tuple,
    "List": list, "Dict": dict, "None": type(None), "TypeNone": type(None), "Type": D.DType,
}  # fmt: skip


def _is(value: Any, kind: Any) -> bool:
    if not isinstance(kind, str):
        return isinstance(value, kind) if isinstance(kind, type) else isinstance(value, Tensor) and value.dtype is kind
    if kind in ("Function", "Func"):
        return callable(value)
    if kind not in _KINDS:
        raise TypeError(f"MultitypeFuncGraph: {kind!r} is no type name; use one of {', '.join(_KINDS)} or Function")
    if kind in ("Number", "Int") and isinstance(value, bool):
        return False
    return isinstance(value, _KINDS[kind])


class HyperMap:
    """A function applied to the corresponding leaves of equally nested sequences.

    `ops` may be given at construction, or as the first argument of the call. TypeError where the sequences do not match.

    >>> import mycel as ms
    >>> ms.ops.HyperMap()(lambda x, y: x + y, (1, (2, 3)), (10, (20, 30)))
    (11, (22, 33))
    """

    deep = True

    def __init__(self, ops: Optional[Callable[..., Any]] = None, reverse: bool = False) -> None:
        self.ops, self.reverse = ops, reverse

    def __call__(self, *args: Any) -> Any:
        function, sequences = (self.ops, args) if self.ops is not None else (args[0], args[1:])
        return self._over(function, sequences, True)

    def _over(self, function: Any, values: tuple[Any, ...], first: bool) -> Any:
        first_value = values[0]
        if not isinstance(first_value, (tuple, list)) or not (first or self.deep):
            return function(*values)
        if any(not isinstance(v, (tuple, list)) or len(v) != len(first_value) for v in values[1:]):
            raise TypeError(
                f"{type(self).__name__}: the sequences must all have {len(first_value)} members at every level"
            )
        rows = list(zip(*values))
        done = [self._over(function, row, False) for row in (rows[::-1] if self.reverse else rows)]
        done = done[::-1] if self.reverse else done
        return tuple(done) if isinstance(first_value, tuple) else done


class Map(HyperMap):
    """A function applied to the corresponding members of sequences, which are not looked into any further.

    >>> import mycel as ms
    >>> ms.ops.Map()(lambda x, y: x + y, (1, 2), (10, 20))
    (11, 22)
    """

    deep = False
