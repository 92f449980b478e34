"""Functions that write into the tensor they are given and return it, and arithmetic of plain
numbers under MindSpore's names.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.tensors.core.tensor import Tensor, as_tensor, cast
from mycel.ops._operands import number_of, term

__all__ = [
    "bernoulli_",
    "clamp_",
    "erfinv_",
    "exponential_",
    "normal_",
    "put_",
    "random_",
    "scalar_add",
    "scalar_cast",
    "scalar_div",
    "scalar_eq",
    "scalar_floordiv",
    "scalar_ge",
    "scalar_gt",
    "scalar_le",
    "scalar_log",
    "scalar_lt",
    "scalar_max",
    "scalar_min",
    "scalar_mod",
    "scalar_mul",
    "scalar_ne",
    "scalar_pow",
    "scalar_sub",
    "scalar_to_tensor",
    "scalar_uadd",
    "scalar_usub",
    "tanh_",
    "tuple_to_array",
    "uniform_",
    "zero_",
]


def _written(name: str, input: Any) -> Tensor:
    """Return the tensor to write to."""
    return arguments.instance(name, "input", input, Tensor, "a Tensor to write to")


def zero_(input: Tensor) -> Tensor:
    """Return the tensor itself, after writing zeros everywhere.

    >>> import mycel as ms
    >>> ms.ops.zero_(ms.Tensor([1.0, 2.0])).tolist()
    [0.0, 0.0]
    """
    return _written("zero_", input).zero_()


def tanh_(input: Tensor) -> Tensor:
    """Return the tensor itself, after writing the hyperbolic tangents of its elements.

    >>> import mycel as ms
    >>> ms.ops.tanh_(ms.Tensor([0.0])).tolist()
    [0.0]
    """
    return _written("tanh_", input).tanh_()


def erfinv_(input: Tensor) -> Tensor:
    """Return the tensor itself, after writing the inverse of erf at its elements.

    >>> import mycel as ms
    >>> ms.ops.erfinv_(ms.Tensor([0.0])).tolist()
    [0.0]
    """
    return _written("erfinv_", input).erfinv_()


def clamp_(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """Return the tensor itself, after cutting its elements off at `min` and `max`.

    >>> import mycel as ms
    >>> ms.ops.clamp_(ms.Tensor([-3.0, 0.5]), -1.0, 1.0).tolist()
    [-1.0, 0.5]
    """
    return _written("clamp_", input).clamp_(min, max)


def put_(input: Tensor, index: Any, source: Any, accumulate: bool = False) -> Tensor:
    """Return the tensor itself, after writing the elements of `source` to it.

    Args:
        input (Tensor): The tensor that is written to.
        index (Tensor): Flat positions.
        source (Tensor): The elements.
        accumulate (bool): Whether elements are added there instead of replacing. Default: False.

    Returns:
        Tensor: The tensor itself.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.put_(ms.Tensor([[1.0, 2.0]]), ms.Tensor([1]), ms.Tensor([9.0])).tolist()
        [[1.0, 9.0]]
    """
    return _written("put_", input).put_(index, source, accumulate)


def uniform_(input: Tensor, from_: Any = 0, to: Any = 1, *, generator: Any = None) -> Tensor:
    """Return the tensor itself, after writing random numbers, uniform in [from_, to).

    Args:
        input (Tensor): The tensor that is written to.
        from_ (int): The lower bound. Default: 0.
        to (int): The upper bound, which is not among them. Default: 1.
        generator (Generator | None): The source of random numbers; None for the default one.
            Default: None.

    Returns:
        Tensor: The tensor itself.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.uniform_(ms.ops.zeros(2), 3.0, 4.0).shape
        (2,)
    """
    return _written("uniform_", input).uniform_(from_, to, generator=generator)


def normal_(input: Tensor, mean: Any = 0, std: Any = 1, *, generator: Any = None) -> Tensor:
    """Return the tensor itself, after writing normal random numbers.

    Args:
        input (Tensor): The tensor that is written to.
        mean (Tensor | float): The mean. Default: 0.
        std (Tensor | float): The standard deviation. Default: 1.
        generator (Generator | None): The source of random numbers; None for the default one.
            Default: None.

    Returns:
        Tensor: The tensor itself.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.normal_(ms.ops.zeros(2)).shape
        (2,)
    """
    return _written("normal_", input).normal_(mean, std, generator=generator)


def random_(input: Tensor, from_: int = 0, to: int | None = None, *, generator: Any = None) -> Tensor:
    """Return the tensor itself, after writing random whole numbers in [from_, to).

    Args:
        input (Tensor): The tensor that is written to.
        from_ (int): The lower bound. Default: 0.
        to (int | None): The upper bound, which is not among them; None for as far as its type holds
            every integer. Default: None.
        generator (Generator | None): The source of random numbers; None for the default one.
            Default: None.

    Returns:
        Tensor: The tensor itself.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.random_(ms.ops.zeros(2), 3, 4).tolist()
        [3.0, 3.0]
    """
    return _written("random_", input).random_(from_, to, generator=generator)


def bernoulli_(input: Tensor, p: Any = 0.5, *, generator: Any = None) -> Tensor:
    """Return the tensor itself, after writing 1 with probability `p` and 0 otherwise.

    >>> import mycel as ms
    >>> ms.ops.bernoulli_(ms.ops.zeros(2), 1.0).tolist()
    [1.0, 1.0]
    """
    return _written("bernoulli_", input).bernoulli_(p, generator=generator)


def exponential_(input: Tensor, lambd: Any = 1, *, generator: Any = None) -> Tensor:
    """Return the tensor itself, after writing random numbers of the exponential distribution with
    rate `lambd`.

    >>> import mycel as ms
    >>> ms.ops.exponential_(ms.ops.zeros(2)).shape
    (2,)
    """
    return _written("exponential_", input).exponential_(lambd, generator=generator)


def _need_numbers(name: str, *values: Any) -> None:
    """Raise an error for operands that are no numbers, or have no such result."""
    for value in values:
        number_of(name, "an operand", value)
    if name in ("scalar_div", "scalar_floordiv", "scalar_mod") and not isinstance(values[1], Tensor) and values[1] == 0:
        raise ZeroDivisionError(f"{name}: the divisor is 0")
    if name == "scalar_log" and not isinstance(values[0], Tensor) and values[0] <= 0:
        raise ValueError(f"scalar_log: takes a positive number, not {values[0]}")
    if name == "scalar_pow" and all(isinstance(v, int) for v in values):
        x, y = values
        if abs(x) > 1 and y * x.bit_length() > 1 << 24:
            raise ValueError("scalar_pow: the power has more than 2**24 bits; use floating numbers")


def _computed(name: str, function: Callable[..., Any], *values: Any) -> Any:
    """Return the result of Python's own arithmetic, whose errors name the operation."""
    try:
        return function(*values)
    except ArithmeticError as error:
        raise type(error)(f"{name}: {error.args[-1]}") from None


def _pair(name: str, function: Callable[[Any, Any], Any], meaning: str, shown: str) -> Callable[[Any, Any], Any]:
    """Return the function `name` of two numbers."""

    def scalar(x: Any, y: Any) -> Any:
        _need_numbers(name, x, y)
        return _computed(name, function, x, y)

    scalar.__name__ = scalar.__qualname__ = name
    scalar.__doc__ = f"""Return {meaning} of two numbers.

    >>> import mycel as ms
    >>> ms.ops.{name}(7, 2)
    {shown}
    """
    return scalar


def _single(name: str, function: Callable[[Any], Any], meaning: str, shown: str) -> Callable[[Any], Any]:
    """Return the function `name` of one number."""

    def scalar(x: Any) -> Any:
        _need_numbers(name, x)
        return _computed(name, function, x)

    scalar.__name__ = scalar.__qualname__ = name
    scalar.__doc__ = f"""Return {meaning} of a number.

    >>> import mycel as ms
    >>> ms.ops.{name}(1)
    {shown}
    """
    return scalar


scalar_add = _pair("scalar_add", operator.add, "the sum", "9")
scalar_sub = _pair("scalar_sub", operator.sub, "the difference", "5")
scalar_mul = _pair("scalar_mul", operator.mul, "the product", "14")
scalar_div = _pair("scalar_div", operator.truediv, "the quotient", "3.5")
scalar_floordiv = _pair("scalar_floordiv", operator.floordiv, "the quotient, rounded down,", "3")
scalar_mod = _pair("scalar_mod", operator.mod, "the remainder, of the divisor's sign,", "1")
scalar_pow = _pair("scalar_pow", operator.pow, "the power", "49")
scalar_max = _pair("scalar_max", max, "the larger", "7")
scalar_min = _pair("scalar_min", min, "the smaller", "2")
scalar_eq = _pair("scalar_eq", operator.eq, "whether equality holds", "False")
scalar_ne = _pair("scalar_ne", operator.ne, "whether inequality holds", "True")
scalar_lt = _pair("scalar_lt", operator.lt, "the comparison by <", "False")
scalar_le = _pair("scalar_le", operator.le, "the comparison by <=", "False")
scalar_gt = _pair("scalar_gt", operator.gt, "the comparison by >", "True")
scalar_ge = _pair("scalar_ge", operator.ge, "the comparison by >=", "True")
scalar_log = _single("scalar_log", math.log, "the natural logarithm", "0.0")
scalar_uadd = _single("scalar_uadd", operator.pos, "the value", "1")
scalar_usub = _single("scalar_usub", operator.neg, "the value with its sign changed", "-1")


def scalar_cast(input_x: Any, input_y: Any) -> Any:
    """Return a number as a Python number of the kind of an element type: int64, float64 or bool.

    >>> import mycel as ms
    >>> ms.ops.scalar_cast(2.7, ms.int64)
    2
    """
    kinds = {D.int64: int, D.float64: float, D.bool_: bool}
    kind = D.from_any(input_y)
    if kind not in kinds:
        raise ValueError(f"scalar_cast: takes int64, float64 or bool, not {kind.name}")
    number = number_of("scalar_cast", "input_x", input_x)
    if kind is D.int64 and isinstance(number, (float, np.floating)) and not math.isfinite(number):
        raise ValueError(f"scalar_cast: {number} is no int64")
    return _computed("scalar_cast", kinds[kind], number)


def scalar_to_tensor(input_x: Any, dtype: Any = D.float32) -> Tensor:
    """Return a number as a tensor without dimensions.

    >>> import mycel as ms
    >>> ms.ops.scalar_to_tensor(3).item()
    3.0
    """
    return cast(term("scalar_to_tensor", input_x), D.from_any(dtype))


def tuple_to_array(input_x: Any) -> Tensor:
    """Return a tuple or a range of numbers as a tensor: int32 where the first of them is an int,
    else float32.

    Raises TypeError for other arguments, IndexError for an empty tuple.

    >>> import mycel as ms
    >>> ms.ops.tuple_to_array((1, 2)).tolist()
    [1, 2]
    """
    arguments.instance("tuple_to_array", "input_x", input_x, (tuple, range), "a tuple or a range")
    if not input_x:
        raise IndexError("tuple_to_array: the tuple has no members")
    if not all(isinstance(v, (int, float)) for v in input_x):
        raise TypeError(f"tuple_to_array: takes a tuple of numbers, not {input_x!r}")
    kind = float if isinstance(input_x[0], float) else int
    return as_tensor([kind(v) for v in input_x], D.float32 if kind is float else D.int32)
