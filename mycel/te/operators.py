"""`te.operator`: a function over elements as an operation on tensors."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import FunctionType
from typing import Any, Optional

from mycel.base import arguments
from mycel.base.dtype import DType
from mycel.base.remembered import MANY, Remembered
from mycel.core import eager
from mycel.core.tensor import Tensor
from mycel.loops.programs import Array, Program
from mycel.prims.loops import loops
from mycel.te.interpreter import trace
from mycel.te.schedules import scheduled

__all__ = ["Operator", "operator"]

Types = Mapping[str, tuple[DType, int]]


class Operator:
    """An operation on tensors that a Python function over elements defines; `operator` makes it.

    Tensors among the arguments are arrays; all other arguments are known when it is compiled, so
    that each other value of them is compiled anew.
    """

    def __init__(self, function: FunctionType) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.title = function.__name__
        self._signature = inspect.signature(function)
        self._backward: Optional[FunctionType] = None
        self._schedule: Optional[FunctionType] = None
        self._reassociate = False
        self._programs = Remembered[Any, Program](f"operator {self.title}", MANY)

    def __repr__(self) -> str:
        return f"<operator {self.title}{self._signature}>"

    def __reduce__(self) -> str:
        # As a function: by the name under which it is found.
        return self.function.__qualname__

    def __copy__(self) -> Operator:
        return self

    def __deepcopy__(self, memo: Any) -> Operator:
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        bound = self._bound(args, kwargs)
        tensors = {k: v for k, v in bound.items() if isinstance(v, Tensor)}
        program = self._program(bound)
        return eager.apply(loops, *tensors.values(), program=program)

    def program(self, *args: Any, **kwargs: Any) -> Program:
        """Return the loop program for arguments, which shows its loops when printed."""
        return self._program(self._bound(args, kwargs))

    def derivative(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Give the operator a derivative of its own; a decorator.

        `function` is a function over elements as well. It takes the operator's arguments, then its
        results, then the cotangents of the results, and returns the cotangents of the tensors among
        the arguments that are of floating types.

        >>> import mycel as ms
        >>> from mycel import te
        >>> @te.operator
        ... def sigmoid(x):
        ...     y = te.empty(x.shape)
        ...     y[i] = 1 / (1 + te.exp(-x[i]))
        ...     return y
        >>> @sigmoid.derivative
        ... def _(x, y, dy):
        ...     dx = te.empty(x.shape)
        ...     dx[i] = dy[i] * y[i] * (1 - y[i])
        ...     return dx
        >>> ms.grad(lambda x: sigmoid(x).sum())(ms.Tensor([0.0])).tolist()
        [0.25]
        """
        self._backward = arguments.instance("derivative", "function", function, FunctionType, "a Python function")
        self._programs = Remembered[Any, Program](f"operator {self.title}", MANY)
        return function

    def schedule(self, function: Optional[Callable[..., Any]] = None, *, reassociate: bool = False) -> Any:
        """Give the operator a schedule: how its loops run; a decorator.

        `function` takes a `Schedule` and changes the loops by its words. What it may not do, as two
        accesses to an element would change places, is a ValueError with the line. With
        `reassociate`, sums and products of floats may be associated in another way. Derivatives are
        those of the operator without its schedule.

        >>> import mycel as ms
        >>> from mycel import te
        >>> @te.operator
        ... def product(a, b):
        ...     c = te.zeros((a.shape[0], b.shape[1]))
        ...     c[i, j] += a[i, k] * b[k, j]
        ...     return c
        >>> @product.schedule
        ... def _(s):
        ...     outer, across, inner, along = s.tile("i", "j", 4, 16)
        ...     s.reorder(outer, across, s["k"], inner, along)
        ...     s.parallel(outer)
        ...     s.vectorize(along)
        >>> product(ms.Tensor([[1.0, 2.0]]), ms.Tensor([[3.0], [4.0]])).tolist()
        [[11.0]]
        """
        if function is None:
            return functools.partial(self.schedule, reassociate=reassociate)
        self._schedule = arguments.instance("schedule", "function", function, FunctionType, "a Python function")
        self._reassociate = arguments.flag("schedule", "reassociate", reassociate)
        self._programs = Remembered[Any, Program](f"operator {self.title}", MANY)
        return function

    def _bound(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.title}: {error}") from None
        bound.apply_defaults()
        return dict(bound.arguments)

    def _program(self, bound: Mapping[str, Any]) -> Program:
        types = {k: (v.dtype, v.ndim) for k, v in bound.items() if isinstance(v, Tensor)}
        fixed = {k: v for k, v in bound.items() if k not in types}
        key = (tuple(types.items()), tuple([(k, type(v), v) for k, v in fixed.items()]))
        try:
            found = self._programs.get(key)
        except TypeError:
            raise TypeError(
                f"{self.title}: arguments that are no tensors must be numbers, strings, types or tuples of them; make "
                "tensors of arrays and lists"
            ) from None
        if found is None:
            found = trace(self.function, self.title, fixed, types)
            if self._backward is not None:
                found = replace(found, derivative=self._own_derivative(self._backward, found, bound, types))
            if self._schedule is not None:
                found = scheduled(found, self._schedule, self._reassociate)
            self._programs.enter(key, found)
        return found

    def _own_derivative(
        self, function: FunctionType, program: Program, bound: Mapping[str, Any], types: Types
    ) -> Program:
        """Return the program of the derivative that the user gave, for certain arguments."""
        smooth = [a for a in program.outputs if a.dtype.is_differentiable]
        names = list(inspect.signature(function).parameters)
        count = len(bound) + len(program.outputs) + len(smooth)
        if len(names) != count:
            raise TypeError(
                f"{self.title}: its derivative takes {len(names)} arguments, and {count} are there: those of the "
                f"operator, {len(program.outputs)} results and {len(smooth)} cotangents"
            )
        fixed: dict[str, Any] = {}
        known: dict[str, tuple[DType, int]] = {}
        for name, (own, value) in zip(names, bound.items()):
            if own in types:
                known[name] = types[own]
            else:
                fixed[name] = value
        for name, array in zip(names[len(bound) :], (*program.outputs, *smooth)):
            known[name] = (array.dtype, len(array.shape))
        made = trace(function, f"{self.title} backward", fixed, known)
        wanted = [a for a in program.inputs if a.dtype.is_differentiable]
        if [(a.dtype, len(a.shape)) for a in made.outputs] != [(a.dtype, len(a.shape)) for a in wanted]:
            raise TypeError(
                f"{self.title}: its derivative returns {_kinds(made.outputs)}, and the inputs that it is of are "
                f"{_kinds(wanted)}"
            )
        return made


def _kinds(arrays: Sequence[Array]) -> str:
    return ", ".join(f"{a.dtype.name} of {len(a.shape)} axes" for a in arrays)


def operator(function: Callable[..., Any]) -> Operator:
    """Make an operation on tensors of a function over elements; a decorator.

    The function makes arrays with `zeros`, `full` and `empty`, writes their elements in loops over
    ``range``, `grid`, `parallel` and the like, and returns them. An index that means nothing in a
    statement runs over all places at which the elements exist: ``c[i, j] += a[i, k] * b[k, j]`` is
    a product of matrices.

    Raises TypeError, ValueError, IndexError and Unsupported, with the line, for what is no
    operator.

    >>> import mycel as ms
    >>> from mycel import te
    >>> @te.operator
    ... def product(a, b):
    ...     c = te.zeros((a.shape[0], b.shape[1]))
    ...     c[i, j] += a[i, k] * b[k, j]
    ...     return c
    >>> product(ms.Tensor([[1.0, 2.0]]), ms.Tensor([[3.0], [4.0]])).tolist()
    [[11.0]]
    """
    found = arguments.instance("operator", "function", function, FunctionType, "a Python function")
    if found.__name__ == "<lambda>":
        raise TypeError("operator: function must be defined with def, as an operator is made of statements")
    return Operator(found)
