"""Element-wise functions, reductions and other mathematics under NumPy's names."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

from numpy import ndarray

from mycel import ops
from mycel._src.compiler.prims.base import broadcast_shapes
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.numpy._operands import as_axis, as_flag, as_kind, asarray, axes_of, both, check_flags
from mycel.ops._operands import axis_of, terms
from mycel.ops.operations.control import while_loop

_UNARY = """
    abs absolute arccos arccosh arcsin arcsinh arctan arctanh bitwise_not ceil cos cosh deg2rad exp
    exp2 expm1 floor invert isfinite isinf isnan log log10 log1p log2 logical_not negative positive
    rad2deg reciprocal rint:round sign signbit sin sinh sqrt square tan tanh trunc fabs:abs
    radians:deg2rad
""".split()
_BINARY = """
    add arctan2 bitwise_and bitwise_or bitwise_xor copysign divide equal float_power floor_divide
    fmod gcd greater greater_equal heaviside hypot lcm less less_equal logaddexp logaddexp2
    logical_and logical_or logical_xor maximum minimum mod:remainder multiply not_equal power:pow
    remainder subtract true_divide:divide
""".split()
__all__ = [row.partition(":")[0] for row in (*_UNARY, *_BINARY)]
_A_FIRST = ("logical_not", "negative", "positive")


def _unary(name: str, function: Callable[[Any], Tensor]) -> Callable[..., Tensor]:
    def of_x(x: Any, dtype: Any = None) -> Tensor:
        return as_kind(function(asarray(x)), dtype)

    def of_a(a: Any, dtype: Any = None) -> Tensor:
        return of_x(a, dtype)

    def of_input(input: Any, dtype: Any = None) -> Tensor:
        return of_x(input, dtype)

    made: Callable[..., Tensor] = of_a if name in _A_FIRST else of_input if name == "arccos" else of_x
    made.__name__ = made.__qualname__ = name
    made.__doc__ = f"Return `mycel.ops.{function.__name__}` of an array-like object, in `dtype` if it is given."
    return made


def _binary(name: str, function: Callable[[Any, Any], Tensor]) -> Callable[..., Tensor]:
    def made(x1: Any, x2: Any, dtype: Any = None) -> Tensor:
        return as_kind(function(*both(x1, x2)), dtype)

    made.__name__ = made.__qualname__ = name
    made.__doc__ = f"Return `mycel.ops.{function.__name__}` of two array-like objects, in `dtype` if it is given."
    return made


def _copysign(x: Any, other: Any) -> Tensor:
    value = asarray(x)
    return cast(ops.copysign(value, other), value.dtype)


def _of_tensors(name: str) -> Callable[[Any, Any], Tensor]:
    """Return a function of `mycel.ops` that takes no numbers, for tensors and numbers."""
    function = getattr(ops, name)

    def made(x: Any, y: Any) -> Tensor:
        return function(*terms(name, x, y))

    made.__name__ = name
    return made


def _gcd(x: Any, y: Any) -> Tensor:
    a, b = terms("gcd", x, y)
    return ops.gcd(a, b) if a.dtype.is_integer else _real_divisor(a, b)


def _lcm(x: Any, y: Any) -> Tensor:
    a, b = terms("lcm", x, y)
    if a.dtype.is_integer:
        return ops.lcm(a, b)
    divisor = _real_divisor(a, b)
    return ops.abs(a / ops.where(divisor == 0, ops.ones_like(divisor), divisor) * b)


def _real_divisor(a: Tensor, b: Tensor) -> Tensor:
    """Return the greatest common divisor of real numbers, by Euclid's algorithm."""
    if not a.dtype.is_floating:
        raise TypeError(f"gcd: takes integers and real numbers, not {a.dtype.name}")
    shape = broadcast_shapes(a.shape, b.shape)
    a, b = ops.broadcast_to(ops.abs(a), shape), ops.broadcast_to(ops.abs(b), shape)

    def step(pair: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        a, b = pair
        done = b == 0
        return ops.where(done, a, b), ops.where(done, b, ops.fmod(a, ops.where(done, ops.ones_like(b), b)))

    return while_loop(lambda pair: (pair[1] > 0).any(), step, (a, b))[0]


_MADE = {name: _of_tensors(name) for name in ("heaviside", "logaddexp", "logaddexp2")}
for _divisor in (_gcd, _lcm):
    _divisor.__name__ = _divisor.__name__.lstrip("_")
    _MADE[_divisor.__name__] = _divisor
_MADE["copysign"] = _copysign
for _row in _UNARY:
    _name, _, _target = _row.partition(":")
    globals()[_name] = _unary(_name, getattr(ops, _target or _name))
for _row in _BINARY:
    _name, _, _target = _row.partition(":")
    globals()[_name] = _binary(_name, _MADE.get(_name) or getattr(ops, _target or _name))


def export(function: Any) -> Any:
    __all__.append(function.__name__)
    return function


@export
def cbrt(x: Any, dtype: Any = None) -> Tensor:
    """Return the cube root of each element, also of negative ones.

    >>> import mycel.numpy as mnp
    >>> f"{float(mnp.cbrt(-8.0)):.4f}"
    '-2.0000'
    """
    value = asarray(x)
    value = value if value.dtype.is_floating else cast(value, D.float32)
    return as_kind(ops.sign(value) * ops.abs(value) ** (1.0 / 3.0), dtype)


@export
def fix(x: Any) -> Tensor:
    """Return each element rounded towards zero.

    >>> import mycel.numpy as mnp
    >>> mnp.fix([1.7, -1.7]).tolist()
    [1.0, -1.0]
    """
    return ops.trunc(asarray(x))


@export
def divmod(x1: Any, x2: Any, dtype: Any = None) -> tuple[Tensor, Tensor]:
    """Return the floored quotient and the remainder.

    >>> import mycel.numpy as mnp
    >>> [t.item() for t in mnp.divmod(7, 2)]
    [3, 1]
    """
    a, b = both(x1, x2)
    return as_kind(ops.floor_divide(a, b), dtype), as_kind(ops.remainder(a, b), dtype)


@export
def clip(x: Any, xmin: Any, xmax: Any, dtype: Any = None) -> Tensor:
    """Return each element of `x` limited to [`xmin`, `xmax`], of which one may be None.

    Args:
        x (Tensor | float | list | tuple): The tensor.
        xmin (Tensor | float | None): A bound, or None.
        xmax (Tensor | float | None): A bound, or None.
        dtype (DType | None): The type of the result. Default: None.

    Returns:
        Tensor: The limited elements.

    Examples:
        >>> import mycel.numpy as mnp
        >>> mnp.clip([1, 5, 9], 2, 6).tolist()
        [2, 5, 6]
    """
    low, high = (asarray(v) if isinstance(v, (list, tuple)) else v for v in (xmin, xmax))
    return as_kind(ops.clamp(asarray(x), low, high), dtype)


@export
def round(a: Any, decimals: int = 0) -> Tensor:
    """Return elements rounded to a number of decimals, ties to even.

    >>> import mycel.numpy as mnp
    >>> mnp.round([0.5, 1.5]).tolist()
    [0.0, 2.0]
    """
    return ops.round(asarray(a), decimals=arguments.integer("round", "decimals", decimals))


@export
def around(a: Any, decimals: int = 0) -> Tensor:
    """Do the same as `round`.

    >>> import mycel.numpy as mnp
    >>> mnp.around([2.5]).tolist()
    [2.0]
    """
    return round(a, decimals)


def _check_initial(name: str, initial: Any) -> None:
    if isinstance(initial, (list, tuple)) or isinstance(initial, Tensor) and initial.ndim:
        raise arguments.wrong_type(name, "initial", "a number", initial)


@export
def sum(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, initial: Any = None) -> Tensor:
    """Return the sum of `a` over axes, plus `initial`.

    Args:
        a (Tensor | float | list | tuple): The array.
        axis (int | tuple[int, ...] | None): The axes; None for all. Default: None.
        dtype (DType | None): The element type of the result; None for that of the array, int64 of
            integers. Default: None.
        keepdims (bool): Whether reduced axes stay with size 1. Default: False.
        initial (Tensor | float | list | tuple): What is added; None for nothing. Default: None.

    Returns:
        Tensor: The results.

    Examples:
        >>> import mycel.numpy as mnp
        >>> mnp.sum([[1.0, 2.0], [3.0, 4.0]], axis=0).tolist()
        [4.0, 6.0]
    """
    if keepdims is not False:
        check_flags("sum", keepdims=keepdims)
    if initial is not None:
        _check_initial("sum", initial)
    total = ops.sum(asarray(a), axis, keepdims, dtype=dtype)
    return total if initial is None else total + initial


@export
def mean(a: Any, axis: Any = None, keepdims: bool = False, dtype: Any = None) -> Tensor:
    """Return the mean of `a` over axes.

    Args:
        a (Tensor | float | list | tuple): The array.
        axis (int | tuple[int, ...] | None): The axes; None for all. Default: None.
        keepdims (bool): Whether reduced axes stay with size 1. Default: False.
        dtype (DType | None): The element type of the result; None for that of the input. Default:
            None.

    Returns:
        Tensor: The results.

    Examples:
        >>> import mycel.numpy as mnp
        >>> mnp.mean([1.0, 2.0]).item()
        1.5
    """
    if keepdims is not False:
        check_flags("mean", keepdims=keepdims)
    x = as_kind(asarray(a), dtype)
    return as_kind(ops.mean(x, axes_of("mean", x, axis), keepdims), dtype)


@export
def average(x: Any, axis: Any = None, weights: Any = None, returned: bool = False) -> Any:
    """Return the mean of `x` over `axis` (default: all), weighted by `weights`.

    Args:
        x (Tensor | float | list | tuple): The array.
        axis (int | tuple[int, ...] | None): The axes; None for all. Default: None.
        weights (Tensor | float | list | tuple): The weights; None for equal ones. Default: None.
        returned (bool): Whether the sum of the weights is returned, too. Default: False.

    Returns:
        Tensor | tuple[Tensor, Tensor]: The means.

    Examples:
        >>> import mycel.numpy as mnp
        >>> mnp.average([1.0, 3.0], weights=[3.0, 1.0]).item()
        1.5
    """
    value = asarray(x)
    value = value if value.dtype.is_floating else cast(value, D.float32)
    share = ops.ones_like(value) if weights is None else asarray(weights)
    if share.shape != value.shape:
        where = axis_of("average", axis, value.ndim) if isinstance(axis, int) else 0
        if share.ndim != 1 or not isinstance(axis, int) or share.shape[0] != value.shape[where]:
            error = ValueError if share.ndim == 1 and isinstance(axis, int) else TypeError
            raise error(f"average: weights of shape {share.shape} do not fit {value.shape} along axis {axis}")
        share = ops.broadcast_to(ops.reshape(share, (-1, *(1,) * (value.ndim - 1 - where))), value.shape)
    whole = ops.sum(share, axis)
    result = ops.sum(value * share, axis) / whole
    return (result, whole) if returned else result


def _spread(name: str) -> Any:
    function = getattr(ops, name)

    def made(x: Any, axis: Any = None, ddof: int = 0, keepdims: bool = False) -> Tensor:
        if keepdims is not False:
            check_flags(name, keepdims=keepdims)
        return function(asarray(x), axis, ddof, keepdims)

    made.__name__ = made.__qualname__ = name
    made.__doc__ = f"""Return `mycel.ops.{name}` of an array-like object over axes.

    Args:
        x (Tensor | float | list | tuple): The array.
        axis (int | tuple[int, ...] | None): The axes; None for all. Default: None.
        ddof (int): What is subtracted from the number of elements. Default: 0.
        keepdims (bool): Whether reduced axes stay with size 1. Default: False.

    Returns:
        Tensor: The results.
    """
    return export(made)


std, var = _spread("std"), _spread("var")


def _extreme(name: str, largest: bool) -> Any:
    function = ops.amax if largest else ops.amin

    def made(a: Any, axis: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True) -> Tensor:
        if keepdims is not False:
            check_flags(name, keepdims=keepdims)
        if (
            where is not True
            and where is not None
            and not isinstance(where, (bool, int, float, list, tuple, Tensor, ndarray))
        ):
            raise arguments.wrong_type(name, "where", "an array of booleans", where)
        if initial is not None:
            _check_initial(name, initial)
        return function(asarray(a), as_axis(axis), keepdims, initial=initial, where=None if where is True else where)

    made.__name__ = made.__qualname__ = name
    made.__doc__ = f"""Return `mycel.ops.{function.__name__}` of an array-like object over axes.

    Args:
        a (Tensor | float | list | tuple): The array.
        axis (int | tuple[int, ...] | None): The axes; None for all. Default: None.
        keepdims (bool): Whether reduced axes stay with size 1. Default: False.
        initial (float | None): One more value to choose from. Default: None.
        where (Tensor | bool | list | tuple | None): Which elements count. Default: True.

    Returns:
        Tensor: The extremes.
    """
    return export(made)


max, min, amax, amin = _extreme("max", True), _extreme("min", False), _extreme("amax", True), _extreme("amin", False)


@export
def ptp(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the difference of the largest and the smallest element over axes.

    >>> import mycel.numpy as mnp
    >>> mnp.ptp([1.0, 4.0]).item()
    3.0
    """
    if keepdims is not False:
        check_flags("ptp", keepdims=keepdims)
    value, axis = asarray(x), as_axis(axis)
    return ops.amax(value, axis, keepdims) - ops.amin(value, axis, keepdims)


@export
def argmax(a: Any, axis: int | None = None) -> Tensor:
    """Return the int64 position of the first largest element.

    >>> import mycel.numpy as mnp
    >>> mnp.argmax([1.0, 4.0]).item()
    1
    """
    return ops.argmax(asarray(a), axis)


@export
def argmin(a: Any, axis: int | None = None) -> Tensor:
    """Return the int64 position of the first smallest element.

    >>> import mycel.numpy as mnp
    >>> mnp.argmin([1.0, 4.0]).item()
    0
    """
    return ops.argmin(asarray(a), axis)


@export
def cumsum(a: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
    """Return the cumulative sums along an axis, or of the flattened tensor.

    Those of booleans and small integers are int32.

    >>> import mycel.numpy as mnp
    >>> mnp.cumsum([1, 2, 3]).tolist()
    [1, 3, 6]
    """
    x = asarray(a)
    return x.cumsum(axis, dtype)


@export
def cumprod(a: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
    """Return the cumulative products along an axis, or of the flattened tensor.

    Those of booleans and small integers are int32 or uint32.

    >>> import mycel.numpy as mnp
    >>> mnp.cumprod([1, 2, 3]).tolist()
    [1, 2, 6]
    """
    x = asarray(a)
    if dtype is None and x.dtype.kind in "iub":
        wide = D.uint32 if x.dtype.kind == "u" else D.int32
        dtype = x.dtype if x.dtype.itemsize >= wide.itemsize else wide
    return ops.cumprod(ops.ravel(x), 0, dtype) if axis is None else ops.cumprod(x, as_axis(axis), dtype)


@export
def count_nonzero(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the number of elements that are not 0, over axes.

    >>> import mycel.numpy as mnp
    >>> mnp.count_nonzero([0, 1, 2]).item()
    2
    """
    if keepdims is not False:
        check_flags("count_nonzero", keepdims=keepdims)
    return ops.count_nonzero(asarray(x), () if axis is None else axis, keepdims)


@export
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Tensor:
    """Return the `n`-th differences of neighbours of `a` along `axis`.

    Args:
        a (Tensor | float | list | tuple): The tensor.
        n (int): How many times differences are taken. Default: 1.
        axis (int): The axis. Default: -1.
        prepend (Tensor | float | list | tuple): What is joined to the front first. Default: None.
        append (Tensor | float | list | tuple): What is joined to the end first. Default: None.

    Returns:
        Tensor: `n` elements less along the axis.

    Examples:
        >>> import mycel.numpy as mnp
        >>> mnp.diff([1, 4, 9]).tolist()
        [3, 5]
    """
    ends = [None if v is None else asarray(v) for v in (prepend, append)]
    return ops.diff(asarray(a), arguments.integer("diff", "n", n, 0), as_axis(axis), *ends)


@export
def trapz(y: Any, x: Any = None, dx: float = 1.0, axis: int = -1) -> Tensor:
    """Return the integral of `y` along `axis` by the trapezoidal rule.

    The values lie at `x`, or at distances of `dx`.

    Args:
        y (Tensor | float | list | tuple): The values.
        x (Tensor | float | list | tuple): The points; None for distances `dx`. Default: None.
        dx (float): The distance of the points. Default: 1.0.
        axis (int): The axis. Default: -1.

    Returns:
        Tensor: The integrals.

    Examples:
        >>> import mycel.numpy as mnp
        >>> mnp.trapz([1.0, 2.0, 3.0]).item()
        4.0
    """
    if x is not None:
        return ops.trapz(asarray(y), asarray(x), dim=axis)
    return ops.trapz(asarray(y), dim=axis) * dx


@export
def polyval(p: Any, x: Any) -> Tensor:
    """Return the values of a polynomial, its highest coefficient first, at `x`, by Horner's rule.

    >>> import mycel.numpy as mnp
    >>> mnp.polyval([1.0, 0.0, 2.0], [3.0]).tolist()
    [11.0]
    """
    coefficients, value = ops.atleast_1d(asarray(p)), asarray(x)
    result = ops.zeros_like(value) + coefficients[0]
    for i in builtins.range(1, coefficients.shape[0]):
        result = result * value + coefficients[i]
    return result


@export
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None) -> Tensor:
    """Return the linear interpolation between points.

    Args:
        x (Tensor | float | list | tuple): Where to interpolate.
        xp (Tensor | list | tuple): The places of the points, ascending.
        fp (Tensor | list | tuple): The values of the points.
        left (float | None): The value beyond that end; None for that of the last point there.
            Default: None.
        right (float | None): The value beyond that end; None for that of the last point there.
            Default: None.

    Returns:
        Tensor: The values, of the shape of `x`.

    Examples:
        >>> import mycel.numpy as mnp
        >>> mnp.interp([0.5, 9.0], [0.0, 1.0], [0.0, 10.0]).tolist()
        [5.0, 10.0]
    """
    point, xs, ys = (v if v.dtype.is_floating else cast(v, D.float32) for v in (asarray(x), asarray(xp), asarray(fp)))
    if xs.ndim != 1 or xs.shape != ys.shape or not xs.shape[0]:
        raise ValueError(f"interp: xp and fp are vectors of one length, at least 1, not {xs._type} and {ys._type}")
    last = xs.shape[0] - 1
    high = ops.clamp(ops.searchsorted(xs, point, right=True), builtins.min(last, 1), last)
    low = ops.clamp(high - 1, 0)
    x0, x1, y0, y1 = (ops.gather(t, i, 0) for t, i in ((xs, low), (xs, high), (ys, low), (ys, high)))
    width = ops.where(x1 == x0, 1.0, x1 - x0)
    result = y0 + (y1 - y0) * ops.clamp((point - x0) / width, 0.0, 1.0)
    for parameter, value in (("left", left), ("right", right)):
        if isinstance(value, (list, tuple)) or isinstance(value, Tensor) and value.ndim:
            raise arguments.wrong_value("interp", parameter, "one number", value)
    result = result if left is None else ops.where(point < xs[0], left, result)
    return result if right is None else ops.where(point > xs[last], right, result)


@export
def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Any = None,
    aweights: Any = None,
    dtype: Any = None,
) -> Tensor:
    """Return the covariances of the variables in `m` and `y` (rows, or columns without `rowvar`).

    Args:
        m (Tensor | float | list | tuple): Variables; None for none.
        y (Tensor | float | list | tuple | None): More variables. Default: None.
        rowvar (bool): Whether rows are variables instead of columns. Default: True.
        bias (bool): Whether sums are divided by the number of observations instead of one less.
            Default: False.
        ddof (int | None): What is subtracted from the number of observations; None for 0 with
            `bias`, else 1. Default: None.
        fweights (Tensor | float | list | tuple): How many times each observation counts. Default:
            None.
        aweights (Tensor | float | list | tuple): How much each observation weighs. Default: None.
        dtype (DType | None): The type of the result. Default: None.

    Returns:
        Tensor: (variables, variables).

    Examples:
        >>> import mycel.numpy as mnp
        >>> mnp.cov([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]).tolist()
        [[1.0, -1.0], [-1.0, 1.0]]
    """
    check_flags("cov", rowvar=rowvar)
    if m is None:
        raise arguments.wrong_type("cov", "m", "an array", m)
    rows = [asarray(v) for v in (m, y) if v is not None]
    rows = [
        ops.swapaxes(v, 0, 1) if not rowvar and v.ndim == 2 else ops.atleast_2d(v) if y is not None else v for v in rows
    ]
    value = rows[0] if len(rows) == 1 else ops.concat(rows)
    correction = (0 if bias else 1) if ddof is None else arguments.int64("cov", "ddof", ddof)
    for parameter, given in (("fweights", fweights), ("aweights", aweights)):
        if isinstance(given, (bool, int, float)):
            raise arguments.wrong_type("cov", parameter, "a vector", given)
    weights = {k: None if v is None else asarray(v) for k, v in (("fweights", fweights), ("aweights", aweights))}
    return as_kind(ops.cov(value, correction=correction, **weights), dtype)


@export
def isclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Return whether elements of `a` and `b` are close: |a - b| <= `atol` + `rtol` |b|.

    Args:
        a (Tensor | float | list | tuple): The tensor.
        b (Tensor | float | list | tuple): The second array.
        rtol (float): The tolerance relative to the second operand. Default: 1e-05.
        atol (float): The absolute tolerance. Default: 1e-08.
        equal_nan (bool): Whether NaN is close to NaN. Default: False.

    Returns:
        Tensor: Booleans.

    Examples:
        >>> import mycel.numpy as mnp
        >>> mnp.isclose([1.0], [1.0]).tolist()
        [True]
    """
    check_flags("isclose", equal_nan=equal_nan)
    for parameter, value in (("rtol", rtol), ("atol", atol)):
        arguments.number("isclose", parameter, value)
    return ops.isclose(asarray(a), asarray(b), rtol, atol, equal_nan)


@export
def isposinf(x: Any) -> Tensor:
    """Return whether each element is +inf.

    >>> import mycel.numpy as mnp
    >>> mnp.isposinf([mnp.inf]).tolist()
    [True]
    """
    return ops.isposinf(asarray(x))


@export
def isneginf(x: Any) -> Tensor:
    """Return whether each element is -inf.

    >>> import mycel.numpy as mnp
    >>> mnp.isneginf([mnp.inf]).tolist()
    [False]
    """
    return ops.isneginf(asarray(x))


@export
def sometrue(a: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return whether any element over axes is true.

    >>> import mycel.numpy as mnp
    >>> mnp.sometrue([False, True]).item()
    True
    """
    return ops.any(asarray(a), as_axis(axis), as_flag(keepdims))


@export
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Tensor:
    """Return whether two arrays have the same shape and equal elements.

    >>> import mycel.numpy as mnp
    >>> mnp.array_equal([1, 2], [1, 2]).item()
    True
    """
    check_flags("array_equal", equal_nan=equal_nan)
    a, b = asarray(a1), asarray(a2)
    if a.shape != b.shape:
        return Tensor(False)
    same = ops.equal(a, b)
    if equal_nan and a.dtype.is_floating:
        same = ops.logical_or(same, ops.logical_and(ops.isnan(a), ops.isnan(b)))
    return ops.all(same)
