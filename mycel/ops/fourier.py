"""Discrete Fourier transforms, all built on one primitive. Sizes are reached by padding or cutting,
and real transforms by symmetry.

float32 and integers are transformed in complex64, float64 in complex128. `norm` says which
transform is divided by the number of elements: "backward" (the default) the inverse, "forward" the
forward one; with "ortho" both are divided by its square root. Half-size transforms of real data use
X[n - k] = conj X[k].
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import fourier
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import Primitive
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.ops._operands import axis_of, constant_like, floating, iota, operand, run, take_slice
from mycel.ops.arrange import roll
from mycel.ops.complex_numbers import conj

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "hfft2",
    "hfftn",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "ihfft2",
    "ihfftn",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]

Sizes = int | Sequence[int] | None
NORMS = ("backward", "forward", "ortho")
_OPPOSITE = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def _complex(name: str, value: Any) -> Tensor:
    x = floating(name, value)
    return x if x.dtype.is_complex else cast(x, D.complex128 if x.dtype is D.float64 else D.complex64)


def _real(name: str, value: Any) -> Tensor:
    x = floating(name, value)
    if x.dtype.is_complex:
        raise TypeError(
            f"{name}: takes real numbers, not {x.dtype.name}; use {name.replace('r', '', 1).replace('h', '', 1)}"
        )
    return x


def _norm(name: str, norm: str | None) -> str:
    if norm is None:
        return "backward"
    return arguments.choice(name, "norm", norm, NORMS)


def _several(name: str, parameter: str, value: Sizes) -> Sizes:
    """Check that `value` is None or a tuple or list of ints, and return it."""
    if value is not None:
        for v in arguments.sequence(name, parameter, value):
            arguments.index(name, f"each of {parameter}", v)
    return value


def _places(name: str, x: Tensor, s: Sizes, dim: Sizes) -> tuple[list[int | None], list[int]]:
    """Return the sizes that were asked for (None keeps a size) and the axes."""
    sizes: list[int | None] | None = None if s is None else [s] if isinstance(s, int) else list(s)
    if dim is None:
        axes = list(range(x.ndim)) if sizes is None else list(range(x.ndim - len(sizes), x.ndim))
    else:
        axes = [axis_of(name, a, x.ndim) for a in (dim if isinstance(dim, (tuple, list)) else [dim])]
    if sizes is not None and len(sizes) != len(axes):
        raise ShapeError(
            f"{name}: {len(sizes)} sizes {tuple(sizes)} for {len(axes)} axes {tuple(axes)}; give one for each"
        )
    if not axes or min(axes) < 0 or len(set(axes)) != len(axes):
        raise ShapeError(f"{name}: a tensor of {x.ndim} dimensions has no distinct axes {tuple(axes)}")
    return [None] * len(axes) if sizes is None else sizes, axes


def _sized(name: str, x: Tensor, size: int | None, axis: int) -> Tensor:
    """Cut an axis, or pad it with zeros, to `size`."""
    least = x.shape[axis] if size is None else size
    if isinstance(least, int) and least < 1:
        raise ValueError(f"{name}: a transform needs at least 1 element, not {least}, along axis {axis} of {x._type}")
    if size is None or size == x.shape[axis]:
        return x
    if size < x.shape[axis]:
        return take_slice(x, axis, 0, size)
    low = (0,) * x.ndim
    high = tuple(size - n if a == axis else 0 for a, n in enumerate(x.shape))
    return run(S.PAD, x, constant_like(0, x), low=low, high=high, interior=(0,) * x.ndim)


def _transform(x: Tensor, axes: Sequence[int], inverse: bool, norm: str) -> Tensor:
    scale = _scale(tuple([x.shape[a] for a in axes]), inverse, norm)
    return _scaled(fourier.fourier, x, scale, axes=tuple(axes), inverse=inverse)


def _scale(sizes: Sequence[Any], inverse: bool, norm: str) -> Any:
    """Return what a transform over axes of `sizes` is multiplied by as `norm` says."""
    if norm == "ortho":
        return 1 / math.sqrt(math.prod(sizes))
    return 1 / math.prod(sizes) if (norm == "backward") == inverse else 1.0


def _scaled(primitive: Primitive, x: Tensor, scale: Any, **params: Any) -> Tensor:
    """Return a transform times `scale`, which is part of it unless it depends on unknown sizes."""
    if isinstance(scale, float):
        return run(primitive, x, **params, **({} if scale == 1.0 else {"factor": scale}))
    return run(primitive, x, **params) * scale


def _full(name: str, input: Any, s: Sizes, dim: Sizes, norm: str | None, inverse: bool) -> Tensor:
    x, chosen = _complex(name, input), _norm(name, norm)
    sizes, axes = _places(name, x, s, dim)
    for size, axis in zip(sizes, axes):
        x = _sized(name, x, size, axis)
    return _transform(x, axes, inverse, chosen)


def _half(name: str, input: Any, s: Sizes, dim: Sizes, norm: str) -> Tensor:
    """Return the transform of real data without the second half of its last axis."""
    x = _real(name, input)
    sizes, axes = _places(name, x, s, dim)
    for size, axis in zip(sizes, axes):
        x = _sized(name, x, size, axis)
    wide = x if x.dtype is D.float64 else cast(x, D.float32)
    scale = _scale(tuple([x.shape[a] for a in axes]), False, norm)
    return _scaled(fourier.fourier_half, wide, scale, axes=tuple(axes))


def _from_half(name: str, input: Any, s: Sizes, dim: Sizes, norm: str) -> Tensor:
    """Return the real data whose transform has the given first half."""
    x = _complex(name, input)
    sizes, axes = _places(name, x, s, dim)
    last = axes[-1]
    count = 2 * (x.shape[last] - 1) if sizes[-1] is None else sizes[-1]
    if count < 1:
        raise ValueError(f"{name}: a transform needs at least 1 element, not {count}")
    for size, axis in zip(sizes[:-1], axes[:-1]):
        x = _sized(name, x, size, axis)
    x = _sized(name, x, count // 2 + 1, last)
    scale = _scale((*[x.shape[a] for a in axes[:-1]], count), True, norm)
    return _scaled(fourier.fourier_from_half, x, scale, axes=tuple(axes), size=count)


_HEADS: dict[str, str] = {
    "fft": "Return the discrete Fourier transform along one axis.",
    "fft2": "Return the discrete Fourier transform along two axes.",
    "fftn": "Return the discrete Fourier transform along several axes, all by default.",
    "ifft": "Return the inverse discrete Fourier transform along one axis.",
    "ifft2": "Return the inverse discrete Fourier transform along two axes.",
    "ifftn": "Return the inverse discrete Fourier transform along several axes, all by default.",
    "rfft": "Return the first n // 2 + 1 terms of the Fourier transform of real numbers along one axis.",
    "rfft2": "Return the Fourier transform of real numbers along two axes, the first half of the last.",
    "rfftn": "Return the Fourier transform of real numbers along several axes, the first half of the last.",
    "irfft": (
        "Return the real numbers whose Fourier transform has the given first half of m terms, along one axis.\n\n"
        "    There are 2 (m - 1) of them unless `n` is given."
    ),
    "irfft2": "Return the real numbers whose Fourier transform has the given first half, along two axes.",
    "irfftn": "Return the real numbers whose Fourier transform has the given first half, along several axes.",
    "hfft": (
        "Return the real Fourier transform, along one axis, of numbers with Hermitian symmetry.\n\n"
        "    Only the first half of the numbers is given."
    ),
    "hfft2": (
        "Return the real Fourier transform, along two axes, of numbers with Hermitian symmetry.\n\n"
        "    Only the first half of the numbers is given."
    ),
    "hfftn": (
        "Return the real Fourier transform, along several axes, of numbers with Hermitian symmetry.\n\n"
        "    Only the first half of the numbers is given."
    ),
    "ihfft": "Return the first half of the inverse Fourier transform of real numbers along one axis.",
    "ihfft2": "Return the first half of the inverse Fourier transform of real numbers along two axes.",
    "ihfftn": "Return the first half of the inverse Fourier transform of real numbers along several axes.",
}
_COMPUTE: dict[str, Callable[..., Tensor]] = {
    "fft": lambda n, x, s, d, m: _full(n, x, s, d, m, False),
    "ifft": lambda n, x, s, d, m: _full(n, x, s, d, m, True),
    "rfft": lambda n, x, s, d, m: _half(n, x, s, d, _norm(n, m)),
    "irfft": lambda n, x, s, d, m: _from_half(n, x, s, d, _norm(n, m)),
    "hfft": lambda n, x, s, d, m: _from_half(n, conj(_complex(n, x)), s, d, _OPPOSITE[_norm(n, m)]),
    "ihfft": lambda n, x, s, d, m: conj(_half(n, x, s, d, _OPPOSITE[_norm(n, m)])),
}


_SIZE = """n (int | None): The size to which the axis is cut or padded first; None to leave it.
            Default: None."""
_SIZES = """s (int | Sequence[int] | None): The sizes to which the axes are cut or padded first: those in
            `dim`, or the last ones; None to leave them. Default: None."""
_AXIS = "dim (int): The axis. Default: -1."
_AXES = {
    "2": "dim (Sequence[int]): The two axes. Default: (-2, -1).",
    "n": "dim (int | Sequence[int] | None): The axes; None for all, or as many as `s` has. Default: None.",
}


def _define(kind: str) -> tuple[Callable[..., Tensor], ...]:
    compute = _COMPUTE[kind]

    def one(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
        size = None if n is None else arguments.integer(kind, "n", n)
        return compute(kind, input, size, arguments.integer(kind, "dim", dim), norm)

    def two(input: Any, s: Sizes = None, dim: Sizes = (-2, -1), norm: str | None = None) -> Tensor:
        arguments.sequence(kind + "2", "dim", dim)
        return compute(kind + "2", input, _several(kind + "2", "s", s), dim, norm)

    def several(input: Any, s: Sizes = None, dim: Sizes = None, norm: str | None = None) -> Tensor:
        return compute(kind + "n", input, _several(kind + "n", "s", s), _several(kind + "n", "dim", dim), norm)

    for function, name in ((one, kind), (two, kind + "2"), (several, kind + "n")):
        function.__name__ = function.__qualname__ = name
        shape = "(4,)" if function is one else "(2, 4)"
        function.__doc__ = f"""{_HEADS[name]}

    Args:
        input (Tensor): The tensor.
        {_SIZE if function is one else _SIZES}
        {_AXIS if function is one else _AXES[name.removeprefix(kind)]}
        norm (str | None): "backward", which divides the inverse by the number of elements, "forward",
            which divides the transform, or "ortho", which divides both by its root; None for
            "backward". Default: None.

    Returns:
        Tensor: The transform, of the input's shape but for the sizes that are given, or halved.

    Raises:
        ShapeError: For axes that are out of range.
        ValueError: For an unknown `norm`.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.{name}(ms.ops.ones({shape})).ndim
        {1 if function is one else 2}
    """
    return one, two, several


fft, fft2, fftn = _define("fft")
ifft, ifft2, ifftn = _define("ifft")
rfft, rfft2, rfftn = _define("rfft")
irfft, irfft2, irfftn = _define("irfft")
hfft, hfft2, hfftn = _define("hfft")
ihfft, ihfft2, ihfftn = _define("ihfft")


def _frequencies(name: str, n: int, d: float, dtype: Any, half: bool) -> Tensor:
    arguments.integer(name, "n", n, 1)
    kind = D.float32 if dtype is None else D.from_any(dtype)
    k = iota((n // 2 + 1 if half else n,), 0, kind)
    if not half:
        late = run(E.ge, k, constant_like((n + 1) // 2, k))
        k = k - cast(late, kind) * n
    return k / (n * d)


def fftfreq(n: int, d: float = 1.0, dtype: Any = None) -> Tensor:
    """Return the frequencies of the terms of `fft` for `n` samples at distance `d`: 0, 1, ..., -2,
    -1, divided by n d.

    The result is float32 unless `dtype` is given.

    >>> import mycel as ms
    >>> ms.ops.fftfreq(4).tolist()
    [0.0, 0.25, -0.5, -0.25]
    """
    arguments.integer("fftfreq", "n", n)
    arguments.instance("fftfreq", "d", d, float)
    return _frequencies("fftfreq", n, d, dtype, False)


def rfftfreq(n: int, d: float = 1.0, dtype: Any = None) -> Tensor:
    """Return the frequencies of the terms of `rfft` for `n` samples at distance `d`: 0 to n // 2,
    divided by n d.

    The result is float32 unless `dtype` is given.

    >>> import mycel as ms
    >>> ms.ops.rfftfreq(4).tolist()
    [0.0, 0.25, 0.5]
    """
    arguments.integer("rfftfreq", "n", n)
    arguments.instance("rfftfreq", "d", d, float)
    return _frequencies("rfftfreq", n, d, dtype, True)


def _shifted(name: str, input: Any, dim: Sizes, forward: bool) -> Tensor:
    x = operand(name, input)
    axes = [
        axis_of(name, a, x.ndim)
        for a in (
            range(x.ndim)
            if dim is None
            else [dim]
            if isinstance(dim, int)
            else arguments.sequence(name, "dim", dim, "an int or a sequence of ints")
        )
    ]
    by = [x.shape[a] // 2 if forward else -(x.shape[a] // 2) for a in axes]
    return roll(x, tuple(by), tuple(axes)) if axes else x


def fftshift(input: Any, dim: Sizes = None) -> Tensor:
    """Move the term of frequency 0 to the middle of each axis in `dim` (by default all axes).

    >>> import mycel as ms
    >>> ms.ops.fftshift(ms.ops.fftfreq(4)).tolist()
    [-0.5, -0.25, 0.0, 0.25]
    """
    return _shifted("fftshift", input, dim, True)


def ifftshift(input: Any, dim: Sizes = None) -> Tensor:
    """Invert `fftshift`.

    >>> import mycel as ms
    >>> ms.ops.ifftshift(ms.Tensor([-0.5, -0.25, 0.0, 0.25])).tolist()
    [0.0, 0.25, -0.5, -0.25]
    """
    return _shifted("ifftshift", input, dim, False)
