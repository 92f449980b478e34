"""New tensors: constants, ranges and random numbers.

Random numbers come from `generator`, by default the default generator. `device` may be None or
"CPU".
"""

from __future__ import annotations

from typing import Any

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import operation_called
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.common.generator import Generator
from mycel.mint._arguments import number, whole
from mycel.ops._operands import floating, iota, need_room, operand, shape_of, size_of, term

__all__ = [
    "bernoulli",
    "empty",
    "empty_like",
    "linspace",
    "multinomial",
    "normal",
    "ones",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "randperm",
    "zeros",
]


def _here(name: str, device: Any) -> None:
    if device is not None and arguments.text(name, "device", device).upper() != "CPU":
        raise arguments.wrong_value(name, "device", "None or 'CPU'", device)


def _by(generator: Generator | None) -> Any:
    if generator is not None and not isinstance(generator, Generator):
        raise arguments.wrong_type(operation_called(), "generator", "a Generator or None", generator)
    return generator


def _kind(dtype: Any, like: Any = None) -> Any:
    return like if dtype is None else D.from_any(dtype)


def zeros(size: Any, *, dtype: Any = None) -> Tensor:
    """Return zeros of a shape, in float32 unless `dtype` is given.

    >>> import mycel as ms
    >>> ms.mint.zeros((2,)).tolist()
    [0.0, 0.0]
    """
    return ops.zeros(size, _kind(dtype))


def ones(size: Any, *, dtype: Any = None) -> Tensor:
    """Return ones of a shape, in float32 unless `dtype` is given.

    >>> import mycel as ms
    >>> ms.mint.ones((2,)).tolist()
    [1.0, 1.0]
    """
    return ops.ones(size, _kind(dtype))


def empty(*size: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """Return a tensor of a shape (one sequence or several sizes) with unspecified elements, here
    zeros.

    The element type is float32 unless `dtype` is given.

    >>> import mycel as ms
    >>> ms.mint.empty(2, 3).shape
    (2, 3)
    """
    _here("empty", device)
    return ops.zeros(
        size[0] if len(size) == 1 and isinstance(size[0], (tuple, list)) else size, _kind(dtype, D.float32)
    )


def empty_like(input: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return a tensor of the shape and element type of another with unspecified elements, here
    zeros.

    >>> import mycel as ms
    >>> ms.mint.empty_like(ms.Tensor([1, 2])).shape
    (2,)
    """
    _here("empty_like", device)
    return ops.zeros_like(operand("empty_like", input), dtype=dtype)


def linspace(start: Any, end: Any, steps: int, *, dtype: Any = None) -> Tensor:
    """Return equally spaced numbers.

    Args:
        start (float): The first number.
        end (float): The last number.
        steps (int): How many.
        dtype (DType | None): The element type; None for float32. Default: None.

    Returns:
        Tensor: (steps,).

    Examples:
        >>> import mycel as ms
        >>> ms.mint.linspace(0, 1, 3).tolist()
        [0.0, 0.5, 1.0]
    """
    kind = _kind(dtype, D.float32)
    fine = D.float64 if kind is D.float64 or not kind.is_floating else D.float32
    ends = number("linspace", "start", start), number("linspace", "end", end)
    first, last = (cast(term("linspace", v), fine) for v in ends)
    count = size_of("linspace", steps)
    if count < 1:
        raise ValueError(f"linspace: steps must be at least 1, not {count}")
    need_room("linspace", (count,), fine)
    part = iota((count,), 0, fine) / max(count - 1, 1)
    return cast(first * (1 - part) + last * part, kind)


def rand(*size: Any, generator: Generator | None = None, dtype: Any = None, device: Any = None) -> Tensor:
    """Return numbers uniform in [0, 1).

    Args:
        *size (int): The shape, as numbers or one tuple.
        generator (Generator | None): The source of random numbers; None for the default one.
            Default: None.
        dtype (DType | None): The element type; None for float32. Default: None.
        device (str | None): Has no effect but for a check. Default: None.

    Returns:
        Tensor: The numbers.

    Examples:
        >>> import mycel as ms
        >>> ms.mint.rand(2, 3).shape
        (2, 3)
    """
    _here("rand", device)
    return ops.rand(*size, dtype=dtype, seed=_by(generator))


def rand_like(input: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return numbers uniform in [0, 1), of the shape and element type of another tensor.

    >>> import mycel as ms
    >>> ms.mint.rand_like(ms.ops.ones((2, 3))).shape
    (2, 3)
    """
    _here("rand_like", device)
    return ops.rand_like(input, dtype=dtype)


def randn(*size: Any, generator: Generator | None = None, dtype: Any = None, device: Any = None) -> Tensor:
    """Return numbers of the standard normal distribution.

    Args:
        *size (int): The shape, as numbers or one tuple.
        generator (Generator | None): The source of random numbers; None for the default one.
            Default: None.
        dtype (DType | None): The element type; None for float32. Default: None.
        device (str | None): Has no effect but for a check. Default: None.

    Returns:
        Tensor: The numbers.

    Examples:
        >>> import mycel as ms
        >>> ms.mint.randn(2, 3).shape
        (2, 3)
    """
    _here("randn", device)
    return ops.randn(*size, dtype=dtype, seed=_by(generator))


def randn_like(input: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return numbers of the standard normal distribution, of the shape and element type of another
    tensor.

    >>> import mycel as ms
    >>> ms.mint.randn_like(ms.ops.ones((2, 3))).shape
    (2, 3)
    """
    _here("randn_like", device)
    return ops.randn_like(input, dtype=dtype)


def _bounds(name: str, args: tuple[Any, ...], rest: int) -> tuple[Any, ...]:
    """Return `low` (0 unless given), `high`, and the arguments after them."""
    if len(args) == rest + 1:
        return (0, *args)
    if len(args) == rest + 2:
        return args
    raise TypeError(
        f"{name}: takes (low, high{', size' if rest else ''}), with low 0 unless given, not {len(args)} arguments"
    )


def randint(*args: Any, generator: Generator | None = None, dtype: Any = None, device: Any = None) -> Tensor:
    """Return integers uniform in low .. high - 1: ``randint(low, high, size)``, or ``randint(high,
    size)`` with `low` 0.

    Args:
        *args (int | tuple[int, ...]): The bounds and the size.
        generator (Generator | None): The source of random numbers; None for the default one.
            Default: None.
        dtype (DType | None): The element type; None for int64. Default: None.
        device (str | None): Has no effect but for a check. Default: None.

    Returns:
        Tensor: The numbers.

    Examples:
        >>> import mycel as ms
        >>> ms.mint.randint(0, 5, (2, 3)).shape
        (2, 3)
    """
    _here("randint", device)
    low, high, size = _bounds("randint", args, 1)
    low, high = whole("randint", "low", low), whole("randint", "high", high)
    arguments.sequence("randint", "size", size)
    kind = _kind(dtype, D.int64)
    return cast(ops.randint(low, high, size, _by(generator), dtype=kind if kind.is_integer else D.int64), kind)


def randint_like(input: Any, *args: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """Return integers uniform in low .. high - 1 of the shape of a tensor: ``randint_like(input,
    low, high)``, or ``randint_like(input, high)`` with `low` 0.

    Args:
        input (Tensor): The tensor whose shape and type are taken.
        *args (int): The bounds.
        dtype (DType | None): The element type; None for that of `input`. Default: None.
        device (str | None): Has no effect but for a check. Default: None.

    Returns:
        Tensor: The numbers.

    Examples:
        >>> import mycel as ms
        >>> ms.mint.randint_like(ms.ops.ones((2, 3)), 5).shape
        (2, 3)
    """
    x = operand("randint_like", input)
    low, high = _bounds("randint_like", args, 0)
    low, high = whole("randint_like", "low", low), whole("randint_like", "high", high)
    return randint(low, high, tuple(x.shape), dtype=_kind(dtype, x.dtype), device=device)


def randperm(n: int, *, generator: Generator | None = None, dtype: Any = D.int64) -> Tensor:
    """Return the numbers 0 .. n - 1 in random order.

    >>> import mycel as ms
    >>> sorted(ms.mint.randperm(3).tolist())
    [0, 1, 2]
    """
    order = ops.argsort(ops.rand(n, dtype=D.float64, seed=_by(generator)))
    return cast(order, D.from_any(dtype))


def normal(mean: Any = 0.0, std: Any = 1.0, size: Any = None, generator: Generator | None = None) -> Tensor:
    """Return numbers of normal distributions.

    Both are numbers, or tensors that broadcast to the result's shape.

    Args:
        mean (Tensor | float): The means. Default: 0.0.
        std (Tensor | float): The standard deviations. Default: 1.0.
        size (int | tuple[int, ...] | None): The shape, needed where both are numbers. Default:
            None.
        generator (Generator | None): The source of random numbers; None for the default one.
            Default: None.

    Returns:
        Tensor: The numbers.

    Examples:
        >>> import mycel as ms
        >>> ms.mint.normal(0.0, 1.0, (2, 3)).shape
        (2, 3)
    """
    m, s = floating("normal", term("normal", mean)), floating("normal", term("normal", std))
    if size is None and not isinstance(mean, Tensor) and not isinstance(std, Tensor):
        raise TypeError("normal: numbers for mean and std need a size")
    shape = tuple(ops.add(m, s).shape) if size is None else shape_of("normal", size)
    return ops.normal(shape, m, s, _by(generator))


def bernoulli(input: Any, *, generator: Generator | None = None) -> Tensor:
    """Return 1 with the probability that the element of `input` gives, else 0.

    >>> import mycel as ms
    >>> ms.mint.bernoulli(ms.Tensor([0.0, 1.0])).tolist()
    [0.0, 1.0]
    """
    x = floating("bernoulli", input)
    return ops.bernoulli(x, x, _by(generator))


def multinomial(
    input: Any, num_samples: int, replacement: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """Return positions along the last axis, drawn with elements as weights.

    Args:
        input (Tensor): The weights, (C,) or (N, C).
        num_samples (int): How many positions.
        replacement (bool): Whether a position may be drawn twice. Default: False.
        generator (Generator | None): The source of random numbers; None for the default one.
            Default: None.

    Returns:
        Tensor: (num_samples,) or (N, num_samples), int64.

    Examples:
        >>> import mycel as ms
        >>> ms.mint.multinomial(ms.Tensor([0.0, 1.0]), 1).tolist()
        [1]
    """
    arguments.flag("multinomial", "replacement", replacement)
    return cast(ops.multinomial(input, num_samples, replacement, _by(generator)), D.int64)
