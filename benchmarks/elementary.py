"""The errors of every elementary and special function, in units in the last place, over the whole
range of its argument.

    python benchmarks/elementary.py
        every function: one float32 in 1021, all 16-bit floats
    python benchmarks/elementary.py --stride 1 sin cos
        all 2**32 float32 arguments of some functions: some minutes each
    python benchmarks/elementary.py --wide 2000
        also float64 at that many places, of all exponents (needs mpmath)

The oracle of float32 and the 16-bit floats is NumPy's and SciPy's float64; that of float64 is
mpmath with 60 digits or more. An error is counted in units of the exact result; in those of an
amplitude for Bessel functions of the first two kinds, next to whose zeros the oracle has no digits
either, and of the argument for gelu, which is a difference there. NaN or an infinity for a number,
or the reverse, is an infinite error, a zero of the other sign one of 9. The processor is chosen by
MYCEL_CPU.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.special as S

import mycel as ms
from mycel import ops

Array = Any
CHUNK = 1 << 21
HALF = {"float16": np.dtype(np.float16), "bfloat16": ms.bfloat16.numpy}


def _amplitude(x: Array) -> Array:
    return np.clip(np.sqrt(2 / np.pi / np.maximum(np.abs(x), 1e-300)), 1e-60, 1.0)


def _waving(near: Callable[[Array], Array], order: int, second: bool) -> Any:
    """Return SciPy's Bessel function, which loses the phase of large arguments, and the asymptotic
    expansion of those.
    """

    def function(x: Array) -> Array:
        far = np.abs(x) > 1e4
        a = np.where(far & np.isfinite(x), np.abs(x), 1e5)
        sine, cosine = np.sin(a), np.cos(a)
        real, imaginary = (cosine + sine, sine - cosine) if order == 0 else (sine - cosine, -(sine + cosine))
        q = (4 * order - 1) / (8 * a)
        p = 1 - (4 * order - 1) * (4 * order - 9) / (128 * a * a)
        value = (imaginary * p + real * q if second else real * p - imaginary * q) / np.sqrt(np.pi * a)
        value = value * np.sign(x) if order and not second else value
        value = np.where(np.isinf(x), 0.0, value)
        if second:
            value = np.where(x < 0, np.nan, value)
        return np.where(far, value, near(np.where(far, 1.0, x)))

    return function, _amplitude


def _round(x: Array) -> Array:
    return np.rint(x)


def _softplus(x: Array) -> Array:
    # Beyond its threshold of 20 it is x by definition.
    return np.where(x > 20, x, np.logaddexp(0, x))


def _mish(x: Array) -> Array:
    return x * np.tanh(np.logaddexp(0, x))


def _sinc(x: Array) -> Array:
    # NumPy's takes the sine of a rounded multiple of pi.
    turned = np.pi * (x - 2 * np.rint(x / 2))
    return np.where(x == 0, 1.0, np.where(np.isinf(x), np.nan, np.sin(turned) / (np.pi * np.where(x == 0, 1, x))))


def _gamma_log(x: Array) -> Array:
    return np.where(np.isnan(x), np.nan, np.where(np.isinf(x), np.inf, S.gammaln(np.where(np.isfinite(x), x, 1))))


def _digamma(x: Array) -> Array:
    poles = (x < 0) & (x == np.floor(x))
    y = np.where(poles | (x == -np.inf), np.nan, S.psi(np.where(poles | np.isinf(x), 1, x)))
    y = np.where(x == np.inf, np.inf, y)
    return np.where(x == 0, -np.copysign(np.inf, x), y)


def _erfinv(x: Array) -> Array:
    return np.where(x == 0, x, S.erfinv(x))


# Each function and its oracle in float64, with the amplitude in whose units errors are counted
# where that is not the result.
UNARY: dict[str, Any] = {
    **{
        n: getattr(np, n)
        for n in ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "sin", "cos", "tan")
    },
    **{n: getattr(np, n) for n in ("sinh", "cosh", "tanh", "floor", "ceil", "trunc", "reciprocal", "square")},
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "round": _round,
    "sigmoid": S.expit,
    "erf": S.erf,
    "erfc": S.erfc,
    "erfinv": _erfinv,
    "lgamma": _gamma_log,
    "digamma": _digamma,
    "gelu": (lambda x: x * (0.5 * S.erfc(-x / np.sqrt(2.0))), lambda x: np.abs(x)),
    "silu": lambda x: x * S.expit(x),
    "softplus": _softplus,
    "logsigmoid": S.log_expit,
    "mish": _mish,
    "softsign": lambda x: x / (1 + np.abs(x)),
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.where(x > 0, 0, x))),
    "logit": S.logit,
    "sinc": _sinc,
    "deg2rad": lambda x: x * (np.pi / 180),
    "rad2deg": lambda x: x * (180 / np.pi),
    "frac": lambda x: x - np.trunc(x),
    "tanhshrink": lambda x: x - np.tanh(x),
    "bessel_i0": S.i0,
    "bessel_i0e": S.i0e,
    "bessel_i1": lambda x: np.copysign(S.i1(x), x),
    "bessel_i1e": lambda x: np.copysign(S.i1e(x), x),
    "bessel_k0": S.k0,
    "bessel_k0e": S.k0e,
    "bessel_k1": S.k1,
    "bessel_k1e": S.k1e,
    "bessel_j0": _waving(S.j0, 0, False),
    "bessel_j1": _waving(S.j1, 1, False),
    "bessel_y0": _waving(S.y0, 0, True),
    "bessel_y1": _waving(S.y1, 1, True),
}
BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "pow": np.power,
    "atan2": np.arctan2,
    "hypot": np.hypot,
    "fmod": np.fmod,
    "remainder": np.mod,
    "floor_divide": np.floor_divide,
    "logaddexp": np.logaddexp,
    "xlogy": S.xlogy,
}


class Worst:
    """The largest error met, and where."""

    def __init__(self) -> None:
        self.error, self.at, self.got, self.want, self.count = 0.0, (), 0.0, 0.0, 0

    def see(self, got: Array, want: Array, scale: Array, arguments: tuple[Array, ...]) -> None:
        """Results of a 64-bit oracle; errors count in units of `scale`."""
        self.count += got.size
        integer = f"u{got.itemsize}"
        with np.errstate(all="ignore"):
            rounded = want.astype(got.dtype)
            differing = np.flatnonzero(rounded.view(integer) != got.view(integer))
            if not differing.size:
                return
            got, want, scale, rounded = (a[differing] for a in (got, want, scale, rounded))
            wide, unit = got.astype(np.float64), unit_of(scale, got.dtype)
            error = np.abs(wide - want) / unit
            error = np.where(np.isnan(wide) & np.isnan(want), 0.0, np.where(np.isnan(error), np.inf, error))
            error = np.where((got == rounded) & (want != 0), 0.0, error)
            # Next to the largest number either result is a rounding.
            largest = float(np.nextafter(np.array(np.inf, got.dtype), np.array(0, got.dtype)))
            edge = np.isinf(wide) & ~np.isinf(want) & (np.abs(want) <= largest * (1 + 1e-6))
            error = np.where(edge & (np.abs(want) > largest * (1 - 1e-6)), 1.0, error)
            error = np.where(
                (want == 0) & (wide == 0) & (np.signbit(wide) != np.signbit(want)) & (scale == 0), 9.0, error
            )
        k = int(np.argmax(error))
        if error[k] > self.error:
            self.error, self.got, self.want = float(error[k]), float(wide[k]), float(want[k])
            self.at = tuple(float(a[differing[k]]) for a in arguments)


def unit_of(want: Array, dtype: Any) -> Array:
    """Return units in the last place of float64 values as a type has them."""
    digits, least = {"float16": (10, -24), "bfloat16": (7, -133), "float32": (23, -149)}[np.dtype(dtype).name]
    with np.errstate(all="ignore"):
        _, exponent = np.frexp(np.where(np.isfinite(want), want, 1.0))
    return np.ldexp(1.0, np.maximum(exponent - 1 - digits, least))


def arguments(dtype: Any, stride: int) -> Iterator[Array]:
    """Yield all numbers of a type, or one of each `stride`, in chunks."""
    size = np.dtype(dtype).itemsize
    count = (1 << 8 * size) // stride
    for start in range(0, count, CHUNK):
        number = np.arange(start, min(start + CHUNK, count), dtype=np.uint64) * np.uint64(stride)
        yield number.astype(f"u{size}").view(dtype)


def hard(dtype: Any) -> Array:
    """Return the first and last numbers of each exponent, both signs, and those next to small
    multiples of 1/8 and of pi / 8.
    """
    info: Any = np.finfo(np.float32)
    powers = 2.0 ** np.arange(info.minexp - info.nmant, info.maxexp).astype(np.float64)
    near = np.concatenate(
        [powers, np.arange(1, 200) / 8, np.arange(1, 200) * np.pi / 8, [88.72284, 103.97208, 89.41599, 709.78]]
    )
    near = np.concatenate([near, -near]).astype(np.float32).view(np.uint32)
    near = np.concatenate([near + np.uint32(k % 2**32) for k in range(-3, 4)]).view(np.float32)
    zeros = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, info.max, -info.max], np.float32)
    with np.errstate(over="ignore"):
        return np.concatenate([near, zeros]).astype(dtype)


def unary(name: str, dtype: Any, stride: int) -> Worst:
    """Return one function over a type."""
    function, oracle = getattr(ops, name), UNARY[name]
    oracle, amplitude = oracle if isinstance(oracle, tuple) else (oracle, None)
    worst = Worst()

    def see(x: Array) -> None:
        got = function(ms.Tensor(x)).asnumpy()
        with np.errstate(all="ignore"):
            wide = x.astype(np.float64)
            want = np.asarray(oracle(wide), np.float64)
            scale = want if amplitude is None else np.maximum(np.abs(want), amplitude(wide))
        worst.see(got, want, scale, (x,))

    if np.dtype(dtype).itemsize == 4:
        see(hard(dtype))
    for x in arguments(dtype, stride if np.dtype(dtype).itemsize == 4 else 1):
        see(x)
    return worst


def pairs(dtype: Any, count: int) -> tuple[Array, Array]:
    """Return arguments of functions of two: all bit patterns, pairs of like size, and every pair of
    special numbers.
    """
    rng = np.random.default_rng(1)
    size = np.dtype(dtype).itemsize
    x, y = (rng.integers(0, 1 << 8 * size, count, np.uint64).astype(f"u{size}").view(dtype) for _ in "xy")
    ratio = np.exp(rng.normal(0, 3, count)) * rng.choice([-1, 1], count)
    base = np.exp(rng.normal(0, 2, count))
    special = hard(dtype)[:: 37 if size == 4 else 97]
    u, v = (g.ravel() for g in np.meshgrid(special, special))
    with np.errstate(all="ignore"):
        like = (x.astype(np.float64) * ratio).astype(dtype)
        x, y = np.concatenate([x, x, base.astype(dtype), u]), np.concatenate([y, like, (ratio * 4).astype(dtype), v])
    return x, y


def binary(name: str, dtype: Any, count: int) -> Worst:
    """Return one function of two arguments over a type."""
    x, y = pairs(dtype, count)
    got = getattr(ops, name)(ms.Tensor(x), ms.Tensor(y)).asnumpy()
    with np.errstate(all="ignore"):
        want = BINARY[name](x.astype(np.float64), y.astype(np.float64))
    worst = Worst()
    worst.see(got, want, want, (x, y))
    return worst


def _exact(m: Any) -> dict[str, Callable[[Any], Any]]:
    """Return the functions in mpmath."""
    return {
        **{
            n: getattr(m, n)
            for n in ("exp", "expm1", "log", "log10", "log1p", "sqrt", "sin", "cos", "tan", "sinh", "cosh")
        },
        **{
            n: getattr(m, n)
            for n in ("tanh", "asin", "acos", "atan", "asinh", "acosh", "atanh", "erf", "erfc", "erfinv")
        },
        "exp2": lambda x: m.mpf(2) ** x,
        "log2": lambda x: m.log(x, 2),
        "rsqrt": lambda x: 1 / m.sqrt(x),
        "sigmoid": lambda x: 1 / (1 + m.exp(-x)),
        "lgamma": lambda x: m.log(abs(m.gamma(x))) if x < 0 else m.loggamma(x),
        "digamma": m.digamma,
    }


def wide(name: str, count: int) -> Worst | None:
    """Return one function in float64 at random places of all exponents, and next to where it over-
    and underflows; None without an exact one.
    """
    import mpmath as m

    exact = _exact(m).get(name)
    if exact is None:
        return None
    rng = np.random.default_rng(2)
    x = rng.integers(0, 1 << 64, count, np.uint64).view(np.float64)
    moderate = np.exp(rng.uniform(-25, 7, count)) * rng.choice([-1, 1], count)
    x = np.concatenate([x, moderate, rng.uniform(-1, 1, count // 2), rng.uniform(0.5, 2, count // 2)])
    got = getattr(ops, name)(ms.Tensor(x)).asnumpy()
    worst = Worst()
    for argument, value in zip(x, got):
        if not np.isfinite(argument) or (name in ("lgamma", "digamma") and argument < -1e6):
            continue
        m.mp.prec = 240 + max(0, int(np.frexp(argument)[1])) * (name in ("sin", "cos", "tan"))
        m.mp.prec += max(0, -int(np.frexp(argument)[1])) if name in ("acosh", "sigmoid", "tanh", "erf") else 0
        try:
            want = exact(m.mpf(float(argument)))
        except (ValueError, ZeroDivisionError, OverflowError):
            continue
        if isinstance(want, m.mpc) or m.isnan(want):
            want = m.mpf("nan")
        rounded = float(want)
        unit = np.spacing(abs(rounded)) if np.isfinite(rounded) else 1.0
        error = (
            0.0
            if value == rounded or (value != value and rounded != rounded)
            else float(abs(m.mpf(float(value)) - want) / unit)
        )
        error = np.inf if error != error else error
        worst.count += 1
        if error > worst.error:
            worst.error, worst.at, worst.got, worst.want = error, (float(argument),), float(value), rounded
    return worst


def show(name: str, kind: str, worst: Worst, seconds: float) -> None:
    """A line of the table."""
    at = ", ".join(f"{a:.9g}" for a in worst.at)
    print(
        f"{name:<14} {kind:<9} {worst.error:10.3f}  {worst.count:>11,} {seconds:7.1f} s  at {at}: {worst.got:.9g}, not "
        f"{worst.want:.9g}",
        flush=True,
    )


def main() -> None:
    """The table."""
    parser = argparse.ArgumentParser(description="Errors of the elementary functions in units in the last place.")
    parser.add_argument("names", nargs="*", help="functions; all if none is given")
    parser.add_argument(
        "--stride", type=int, default=1021, help="of how many float32 arguments one is taken; 1 for all"
    )
    parser.add_argument("--wide", type=int, default=0, help="how many float64 arguments of each kind")
    parser.add_argument("--pairs", type=int, default=300_000, help="how many pairs of each kind")
    parser.add_argument("--types", default="float32,float16,bfloat16", help="which types")
    options = parser.parse_args()
    unknown = [n for n in options.names if n not in UNARY and n not in BINARY]
    if unknown:
        sys.exit(f"no function {', '.join(unknown)}; there are {', '.join([*UNARY, *BINARY])}")
    print(f"{'function':<14} {'type':<9} {'worst ulp':>10}  {'arguments':>11}")
    for name in options.names or [*UNARY, *BINARY]:
        for kind in [k for k in options.types.split(",") if k]:
            dtype = HALF.get(kind, np.dtype(np.float32))
            began = time.perf_counter()
            worst = unary(name, dtype, options.stride) if name in UNARY else binary(name, dtype, options.pairs)
            show(name, kind, worst, time.perf_counter() - began)
        if options.wide and name in UNARY:
            began = time.perf_counter()
            found = wide(name, options.wide)
            if found is not None:
                show(name, "float64", found, time.perf_counter() - began)


if __name__ == "__main__":
    main()
