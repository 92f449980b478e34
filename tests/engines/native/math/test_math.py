"""The generated elementary functions: units in the last place against wider arithmetic, special
values, and the form of the code.

float32 results are compared with NumPy's and SciPy's float64; float64 results with 60-digit decimal
arithmetic from the standard library (`decimal` has exp, ln and sqrt; series and continued fractions
below give the rest). Code is compiled for this machine and for its architecture's baseline, which
on x86-64 has no fused multiply-add.
"""

from __future__ import annotations

import ctypes
import math
import platform
import re
from collections.abc import Callable
from decimal import Context, Decimal, getcontext, localcontext
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
import scipy.special

from mycel._src.engines.native.math import function_definitions as elementary

MACHINES = ("host", "baseline")
DTYPES: dict[str, Any] = {"f32": np.float32, "f64": np.float64}
UNARY = sorted(n for n, arity in elementary.FUNCTIONS.items() if arity == 1)
BINARY = sorted(n for n, arity in elementary.FUNCTIONS.items() if arity == 2)
Array = Any


def loop(name: str, element: str, lanes: int) -> str:
    """LLVM IR of a loop that applies a function to arrays."""
    scalar = "float" if element == "f32" else "double"
    vector = scalar if lanes == 1 else f"<{lanes} x {scalar}>"
    align = DTYPES[element]().itemsize
    count = elementary.FUNCTIONS[name]
    loads = "\n".join(
        f"  %p{k} = getelementptr {scalar}, ptr %a{k}, i64 %i\n  %v{k} = load {vector}, ptr %p{k}, align {align}"
        for k in range(count)
    )
    return f"""
define void @loop.{name}.{element}.{lanes}(i64 %n, ptr %out{"".join(f", ptr %a{k}" for k in range(count))}) {{
entry:
  br label %body
body:
  %i = phi i64 [0, %entry], [%next, %body]
{loads}
  %y = call {vector} @{elementary.symbol(name, element, lanes)}({", ".join(f"{vector} %v{k}" for k in range(count))})
  %to = getelementptr {scalar}, ptr %out, i64 %i
  store {vector} %y, ptr %to, align {align}
  %next = add i64 %i, {lanes}
  %more = icmp ult i64 %next, %n
  br i1 %more, label %body, label %done
done:
  ret void
}}
"""


@cache
def compiled(machine: str, lanes: int) -> Any:
    """An execution engine with the loops of all functions."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    requests = [(n, e, lanes) for n in elementary.FUNCTIONS for e in DTYPES]
    module = llvm.parse_assembly(elementary.definitions(requests) + "".join(loop(*r) for r in requests))
    module.verify()
    if machine == "host":
        cpu, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    else:
        cpu, features = ("x86-64" if platform.machine() in ("x86_64", "AMD64") else "generic"), ""
    target = llvm.Target.from_default_triple().create_target_machine(cpu=cpu, features=features, opt=1, jit=True)
    engine = llvm.create_mcjit_compiler(module, target)
    engine.finalize_object()
    return engine


def apply(name: str, element: str, *arrays: Array, machine: str = "host", lanes: int = 8) -> Array:
    """The generated function over arrays."""
    dtype = DTYPES[element]
    size = arrays[0].size
    padded = [np.concatenate([np.asarray(a, dtype), np.ones(-size % lanes, dtype)]) for a in arrays]
    out = np.empty_like(padded[0])
    address = compiled(machine, lanes).get_function_address(f"loop.{name}.{element}.{lanes}")
    pointers = [ctypes.c_void_p(a.ctypes.data) for a in (out, *padded)]
    ctypes.CFUNCTYPE(None, ctypes.c_int64, *[ctypes.c_void_p] * len(pointers))(address)(out.size, *pointers)
    return out[:size]


def log_gamma(x: Array) -> Array:
    """The standard library's, infinite at the poles and where it overflows.

    SciPy's is not IEEE's at -inf and below 1e-308.
    """

    def one(v: float) -> float:
        if v <= 0 and (math.isinf(v) or v == math.floor(v)) or v > 1e305:
            return math.inf
        return math.lgamma(v)

    return np.array([one(float(v)) for v in x])


REFERENCES: dict[str, Callable[..., Array]] = {
    "sigmoid": scipy.special.expit,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "atan2": np.arctan2,
    "pow": np.power,
    "erf": scipy.special.erf,
    "erfc": scipy.special.erfc,
    "erfinv": scipy.special.erfinv,
    "lgamma": log_gamma,
    "digamma": scipy.special.psi,
    **{n: getattr(np, n) for n in ("exp", "exp2", "expm1", "sinh", "cosh", "tanh", "sin", "cos", "tan", "hypot")},
    **{n: getattr(np, n) for n in ("log", "log2", "log10", "log1p")},
}

# Where each function is sampled in float32 and float64: uniformly, and by magnitude over (smallest,
# largest) of both signs or of one.
UNIFORM: dict[str, tuple[tuple[float, float], ...]] = {
    "exp": ((-104, 88.7), (-1, 1)),
    "exp2": ((-149, 127.9), (-1, 1)),
    "expm1": ((-30, 88.7), (-1.5, 1.5)),
    "sigmoid": ((-103, 20), (-6, 6)),
    "sinh": ((-89, 89), (-2, 2)),
    "cosh": ((-89, 89), (-2, 2)),
    "tanh": ((-12, 12), (-1, 1)),
    "log": ((0.5, 2), (0, 20)),
    "log2": ((0.5, 2), (0, 20)),
    "log10": ((0.5, 2), (0, 20)),
    "log1p": ((-0.99, 2), (0, 20)),
    "asinh": ((-4, 4),),
    "acosh": ((1, 4),),
    "atanh": ((-0.999, 0.999),),
    "sin": ((-10, 10), (-1e5, 1e5), (-2e6, 2e6)),
    "cos": ((-10, 10), (-1e5, 1e5), (-2e6, 2e6)),
    "tan": ((-10, 10), (-1e5, 1e5), (-2e6, 2e6)),
    "asin": ((-1, 1), (0.4, 0.6)),
    "acos": ((-1, 1), (0.4, 0.6)),
    "atan": ((-4, 4), (0.3, 0.5)),
    "erf": ((-4, 4), (0.8, 1.2)),
    "erfc": ((-4, 10), (-1, 1)),
    "erfinv": ((-1, 1), (0.98, 1)),
    "lgamma": ((0.01, 20), (-9, 0)),
    "digamma": ((0.01, 20), (-9, 0)),
    "rsqrt": ((0.5, 4),),
}
MAGNITUDES: dict[str, tuple[float, float]] = {
    **{n: (1e-37, 1e37) for n in ("log", "log2", "log10", "log1p", "asinh", "rsqrt", "atan", "lgamma", "digamma")},
    **{n: (1e-37, 1) for n in ("expm1", "sinh", "tanh", "erf", "erfinv", "atanh", "asin", "acos")},
    **{n: (1e-37, 3e38) for n in ("sin", "cos", "tan")},
    "acosh": (1, 1e37),
}
POSITIVE = {"log", "log2", "log10", "log1p", "rsqrt", "acosh", "lgamma", "digamma"}
WIDE64 = {
    "exp": (-745.0, 709.7),
    "exp2": (-1074.0, 1023.9),
    "expm1": (-40.0, 709.7),
    "sinh": (-710.0, 710.0),
    "cosh": (-710.0, 710.0),
    "sigmoid": (-745.0, 40.0),
    "erfc": (-6.0, 27.2),
    "sin": (-2e9, 2e9),
    "cos": (-2e9, 2e9),
    "tan": (-2e9, 2e9),
    "tanh": (-22.0, 22.0),
    "erf": (-6.0, 6.0),
}


def samples(name: str, element: str, count: int) -> Array:
    """Arguments of a unary function, `count` from each region."""
    rng = np.random.default_rng(len(name))
    regions = UNIFORM[name] + ((WIDE64[name],) if element == "f64" and name in WIDE64 else ())
    parts = [rng.uniform(low, high, count) for low, high in regions]
    if name in MAGNITUDES:
        low, high = MAGNITUDES[name]
        size = np.exp(rng.uniform(math.log(low), math.log(high), count))
        parts += [size] if name in POSITIVE else [size, -size]
    x = np.concatenate(parts).astype(DTYPES[element])
    return x[np.abs(x) < 1] if name == "erfinv" else x


def binary_samples(name: str, element: str, count: int) -> tuple[Array, Array]:
    """Arguments of a binary function; those of pow have finite results, mostly normal ones."""
    rng = np.random.default_rng(7)
    size = np.exp(rng.uniform(-80, 80, count))
    if name == "pow":
        x = np.concatenate([size, rng.uniform(0.5, 2, count), rng.uniform(0.99, 1.01, count)]).astype(DTYPES[element])
        largest = 87 if element == "f32" else 708
        with np.errstate(divide="ignore"):
            y = rng.uniform(-largest, largest, x.size) / np.log(x.astype(np.float64))
        return x, y.astype(DTYPES[element])
    x = np.concatenate([size, rng.uniform(-2, 2, count), size * rng.uniform(-4, 4, count)])
    y = np.concatenate([-size[::-1], rng.uniform(-2, 2, count), size])
    return x.astype(DTYPES[element]), y.astype(DTYPES[element])


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", UNARY + BINARY)
def test_float32_within_two_units(name: str, machine: str) -> None:
    arguments = (samples(name, "f32", 4000),) if name in UNARY else binary_samples(name, "f32", 4000)
    ours = apply(name, "f32", *arguments, machine=machine)
    with np.errstate(all="ignore"):
        expected = REFERENCES[name](*[a.astype(np.float64) for a in arguments])
        rounded = expected.astype(np.float32)
        unit = np.spacing(np.abs(np.where(np.isfinite(rounded), rounded, 1)))
        if name in ("lgamma", "digamma"):
            # Near their zeros the reference's own error counts; it is absolute.
            unit = np.maximum(unit, np.float32(1e-8))
        error = np.where(ours == rounded, 0, np.abs(ours - expected) / unit)
    worst = int(np.argmax(error))
    assert error[worst] <= 2, (error[worst], [a[worst] for a in arguments], ours[worst], expected[worst])
    assert np.all(ours == rounded) or error[worst] > 0


# Decimal arithmetic: D is a number of 60 digits.
D = Decimal
DIGITS = 60


def archimedes(digits: int) -> Decimal:
    """pi by Machin's formula in whole numbers."""
    one = 10 ** (digits + 10)

    def arc(n: int) -> int:
        powers = [one // n]
        while powers[-1]:
            powers.append(powers[-1] // (n * n))
        return sum((-1) ** k * (power // (2 * k + 1)) for k, power in enumerate(powers))

    return D(4 * (4 * arc(5) - arc(239))).scaleb(-digits - 10, context=Context(prec=digits + 20))


LONG_PI = archimedes(440)
with localcontext(Context(prec=95)):
    PI = +LONG_PI


def sin_cos(x: Decimal) -> tuple[Decimal, Decimal]:
    """By Taylor's series after removing the multiple of pi / 2, with as many digits of pi as that
    takes.
    """
    with localcontext(getcontext()) as context:
        context.prec += max(x.adjusted(), 0) + 40
        n = int((x / (LONG_PI / 2)).to_integral_value())
        r = x - n * (LONG_PI / 2)
    r = +r
    s = term = r
    k = 1
    while term and abs(term) > abs(r) * D(10) ** -DIGITS:
        term = -term * r * r / ((k + 1) * (k + 2))
        s, k = s + term, k + 2
    c = (1 - s * s).sqrt()
    return ((s, c), (c, -s), (-s, -c), (-c, s))[n % 4]


def arctan2(y: Decimal, x: Decimal) -> Decimal:
    """The float64 angle corrected by the small angle that is left."""
    start = D(math.atan2(y, x))
    s, c = sin_cos(start)
    u = (y * c - x * s) / (x * c + y * s)
    return start + u - u**3 / 3


def error_function(x: Decimal) -> Decimal:
    """Taylor's series of erf, for |x| up to about 6."""
    total = term = x
    k = 0
    while abs(term) > abs(x) * D(10) ** -(DIGITS):
        k += 1
        term = -term * x * x / k
        total += term / (2 * k + 1)
    return 2 * total / PI.sqrt()


def complementary(x: Decimal) -> Decimal:
    """1 - erf(x), beyond 3 by its continued fraction."""
    if x < 3:
        return 1 - error_function(x)
    fraction = x
    for k in range(300, 0, -1):
        fraction = x + D(k) / 2 / fraction
    return (-x * x).exp() / (fraction * PI.sqrt())


def inverse_error(x: Decimal) -> Decimal:
    """SciPy's value after one step of Newton's method."""
    y = D(float(scipy.special.erfinv(float(x))))
    return y + (x - error_function(y)) * PI.sqrt() / 2 * (y * y).exp()


def exponential_minus_one(x: Decimal) -> Decimal:
    return x.exp() - 1 if abs(x) > D("1e-9") else x * (1 + x / 2 * (1 + x / 3 * (1 + x / 4 * (1 + x / 5))))


def log_one_plus(x: Decimal) -> Decimal:
    return (1 + x).ln() if abs(x) > D("1e-9") else x * (1 - x * (D(1) / 2 - x * (D(1) / 3 - x * (D(1) / 4 - x / 5))))


def arcsinh(x: Decimal) -> Decimal:
    size = abs(x)
    return log_one_plus(size + size * size / (1 + (1 + size * size).sqrt())).copy_sign(x)


EXACT: dict[str, Callable[..., Decimal]] = {
    "exp": lambda x: x.exp(),
    "exp2": lambda x: (x * D(2).ln()).exp(),
    "expm1": exponential_minus_one,
    "sigmoid": lambda x: 1 / (1 + (-x).exp()),
    "sinh": lambda x: (exponential_minus_one(x) - exponential_minus_one(-x)) / 2,
    "cosh": lambda x: (x.exp() + (-x).exp()) / 2,
    "tanh": lambda x: exponential_minus_one(2 * x) / ((2 * x).exp() + 1),
    "log": lambda x: x.ln(),
    "log2": lambda x: x.ln() / D(2).ln(),
    "log10": lambda x: x.log10(),
    "log1p": log_one_plus,
    "asinh": arcsinh,
    "acosh": lambda x: log_one_plus(x - 1 + (x * x - 1).sqrt()),
    "atanh": lambda x: log_one_plus(2 * x / (1 - x)) / 2,
    "sin": lambda x: sin_cos(x)[0],
    "cos": lambda x: sin_cos(x)[1],
    "tan": lambda x: sin_cos(x)[0] / sin_cos(x)[1],
    "asin": lambda x: arctan2(x, (1 - x * x).sqrt()),
    "acos": lambda x: arctan2((1 - x * x).sqrt(), x),
    "atan": lambda x: arctan2(x, D(1)),
    "atan2": arctan2,
    "erf": error_function,
    "erfc": complementary,
    "erfinv": inverse_error,
    "rsqrt": lambda x: 1 / x.sqrt(),
    "hypot": lambda x, y: (x * x + y * y).sqrt(),
    "pow": lambda x, y: (x.ln() * y).exp(),
}
UNITS64 = {"erfc": 4.0}


def units(ours: float, exact: Decimal, dtype: Any = np.float64) -> float:
    """The error in units in the last place of the exact result."""
    nearest = dtype(float(exact))
    return 0.0 if ours == nearest else float(abs(D(ours) - exact) / D(float(np.spacing(abs(nearest)))))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", sorted(EXACT))
def test_float64_against_decimals(name: str, machine: str) -> None:
    arguments = (samples(name, "f64", 40),) if name in UNARY else binary_samples(name, "f64", 40)
    ours = apply(name, "f64", *arguments, machine=machine)
    with localcontext(getcontext()) as context:
        context.prec = DIGITS + 40 if name.startswith("erf") else DIGITS
        context.Emax, context.Emin = 10**6, -(10**6)
        errors = [units(float(y), EXACT[name](*map(D, map(float, point)))) for y, *point in zip(ours, *arguments)]
    worst = int(np.argmax(errors))
    assert errors[worst] <= UNITS64.get(name, 2.0), (errors[worst], [float(a[worst]) for a in arguments])


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", ["lgamma", "digamma"])
def test_float64_gamma_functions(name: str, machine: str) -> None:
    x = samples(name, "f64", 2000)
    ours, expected = apply(name, "f64", x, machine=machine), REFERENCES[name](x)
    # Next to a pole or a far zero the condition of the function, |x f'(x)|, bounds what any
    # rounding leaves.
    condition = np.abs(x * scipy.special.psi(x)) if name == "lgamma" else np.abs(x * scipy.special.polygamma(1, x))
    tolerance = 1e-13 * np.maximum(1, np.abs(expected)) + 4e-16 * condition
    assert np.all(np.abs(ours - expected) <= tolerance)


def test_all_functions_have_an_oracle() -> None:
    assert set(REFERENCES) == set(elementary.FUNCTIONS)
    assert set(EXACT) | {"lgamma", "digamma"} == set(elementary.FUNCTIONS)
    assert set(UNIFORM) == set(UNARY)


@pytest.mark.parametrize("machine", MACHINES)
def test_lanes_do_not_matter(machine: str) -> None:
    for element in DTYPES:
        for name in elementary.FUNCTIONS:
            arguments = (samples(name, element, 20),) if name in UNARY else binary_samples(name, element, 20)
            eight = apply(name, element, *arguments, machine=machine)
            for lanes in (1, 16):
                other = apply(name, element, *arguments, machine=machine, lanes=lanes)
                np.testing.assert_array_equal(other, eight, err_msg=f"{name} {element} {lanes}")


def edges(element: str) -> Array:
    """Zeros, infinities, NaN, the ends of the format and numbers at which functions are exact or
    undefined.
    """
    info: Any = np.finfo(DTYPES[element])
    numbers = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 100.0, np.inf, float(info.max), float(info.tiny), float(info.tiny) / 8]
    return np.array([np.nan, *numbers, *[-v for v in numbers]], DTYPES[element])


def assert_same_kind(ours: Array, expected: Array, *arguments: Array, name: str) -> None:
    """Equal NaNs, infinities and signs, zeros included; other values within four units (of 1, near
    the zeros of lgamma).
    """
    info: Any = np.finfo(ours.dtype)
    floor = 8.0 if name in ("lgamma", "digamma") else 0.0
    for y, w, *point in zip(ours, expected, *arguments):
        if np.isnan(w):
            assert np.isnan(y), (name, point, y, w)
            continue
        assert np.signbit(y) == np.signbit(w), (name, point, y, w)
        if np.isinf(w) or w == 0:
            assert y == w, (name, point, y, w)
        else:
            unit = max(abs(float(w)) * float(info.eps), floor * float(info.eps), float(info.smallest_subnormal))
            assert abs(float(y) - float(w)) <= 4 * unit, (name, point, y, w)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("element", DTYPES)
def test_special_values(element: str, machine: str) -> None:
    x = edges(element)
    for name in UNARY:
        points = x
        if name == "digamma":
            # SciPy's versions differ at -0 and -inf; the test below fixes both.
            points = x[~((x == 0) | (x == -np.inf))]
        if name == "erfinv":
            # SciPy loses the sign of zero.
            points = x[~((x == 0) & np.signbit(x))]
        with np.errstate(all="ignore"):
            expected = REFERENCES[name](points.astype(np.float64)).astype(DTYPES[element])
        assert_same_kind(apply(name, element, points, machine=machine), expected, points, name=name)


@pytest.mark.parametrize("element", DTYPES)
def test_special_pairs(element: str) -> None:
    integers = [3.0, 2.0**53 - 1, 2.0**53, 2.0**24 - 1, 2.0**24, 2.0**52 + 1]
    values = np.concatenate([edges(element), np.array([*integers, *[-v for v in integers]], DTYPES[element])])
    x, y = (grid.ravel() for grid in np.meshgrid(values, values))
    for name in BINARY:
        with np.errstate(all="ignore"):
            expected = REFERENCES[name](x, y)
        for machine in MACHINES:
            assert_same_kind(apply(name, element, x, y, machine=machine), expected, x, y, name=name)


@pytest.mark.parametrize("element", DTYPES)
def test_digamma_at_its_poles(element: str) -> None:
    ours = apply("digamma", element, np.array([0.0, -0.0, -1.0, -7.0, -np.inf, np.inf]))
    np.testing.assert_array_equal(ours, [-np.inf, np.inf, np.nan, np.nan, np.nan, np.inf])


@pytest.mark.parametrize("element", DTYPES)
def test_odd_functions_keep_the_sign_of_zero(element: str) -> None:
    zeros = np.array([0.0, -0.0])
    for name in ("sin", "tan", "sinh", "tanh", "asin", "atan", "asinh", "atanh", "erf", "erfinv", "expm1", "log1p"):
        ours = apply(name, element, zeros)
        assert np.all(ours == 0) and list(np.signbit(ours)) == [False, True], name


@pytest.mark.parametrize("element", DTYPES)
def test_exact_powers(element: str) -> None:
    n = np.arange(-120, 121).astype(DTYPES[element])
    np.testing.assert_array_equal(apply("exp2", element, n), np.exp2(n.astype(np.float64)))
    np.testing.assert_array_equal(apply("log2", element, np.exp2(n)), n)
    np.testing.assert_array_equal(apply("pow", element, np.full_like(n, 2), n), np.exp2(n))
    odd = np.array([3.0, -3.0, 5.0])
    np.testing.assert_array_equal(apply("pow", element, np.full(3, -2.0), odd), [-8.0, -0.125, -32.0])


def test_subnormal_results_are_gradual() -> None:
    x = np.linspace(-103.9, -87.4, 200).astype(np.float32)
    expected = np.exp(x.astype(np.float64))
    assert np.all(np.abs(apply("exp", "f32", x) - expected) <= 2.0**-149)
    assert np.all(np.abs(apply("sigmoid", "f32", x) - expected) <= 2.0**-149)


def nearest_to_quarter_turns(element: str) -> Array:
    """The numbers m 2^e of a format that are nearest to multiples n pi / 2: m / n are convergents
    of pi / 2^(e + 1).
    """
    info: Any = np.finfo(DTYPES[element])
    bits = info.nmant + 1
    found = []
    for exponent in range(-bits, info.maxexp - bits + 1, 1 if element == "f32" else 7):
        x, y = LONG_PI.as_integer_ratio()
        x, y = x << max(-exponent - 1, 0), y << max(exponent + 1, 0)
        numerators = [0, 1]
        while y and numerators[-1] < 2**bits:
            whole = x // y
            x, y = y, x - whole * y
            numerators.append(whole * numerators[-1] + numerators[-2])
        found += [math.ldexp(m, exponent) for m in numerators[-4:-1]]
    return np.array(found, DTYPES[element])


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("element", DTYPES)
def test_arguments_next_to_multiples_of_a_quarter_turn(element: str, machine: str) -> None:
    x = nearest_to_quarter_turns(element)
    assert np.abs(x).max() > 2.0 ** (100 if element == "f32" else 1000)
    exact = [sin_cos(D(float(v))) for v in x]
    assert min(min(abs(s), abs(c)) for s, c in exact) < (1e-8 if element == "f32" else 1e-16)
    for name, values in (
        ("sin", [s for s, _ in exact]),
        ("cos", [c for _, c in exact]),
        ("tan", [s / c for s, c in exact]),
    ):
        for lanes in (1, 16):
            ours = apply(name, element, x, machine=machine, lanes=lanes)
            errors = [units(float(y), v, DTYPES[element]) for y, v in zip(ours, values)]
            assert max(errors) <= 2, (name, max(errors), x[int(np.argmax(errors))])


def test_large_lanes_leave_the_others_alone() -> None:
    small = np.linspace(-20, 20, 64)
    for element in DTYPES:
        for name in ("sin", "cos", "tan"):
            x = small.astype(DTYPES[element])
            want = apply(name, element, x)
            for k, large in enumerate([1e20, -1e30, np.inf, np.nan, 3e38]):
                x[k * 9] = large
            mixed = np.abs(x) < 21
            np.testing.assert_array_equal(apply(name, element, x)[mixed], want[mixed])


@pytest.mark.parametrize("lanes", [1, 4, 8, 16, 32])
def test_code_is_straight_and_self_contained(lanes: int) -> None:
    requests = [(n, e, lanes) for n in elementary.FUNCTIONS for e in DTYPES]
    text = elementary.definitions([*requests, *requests])
    assert len(re.findall(r"^define internal .* alwaysinline", text, re.M)) == len(requests)
    declared = re.findall(r"^declare .* @([\w.]+)\(", text, re.M)
    assert len(declared) == len(set(declared))
    calls = set(re.findall(r"call [^@]*@([\w.]+)\(", text))
    beside = {name for name in calls if name.endswith(".large")}
    assert calls - beside == set(declared)
    assert {name.split(".")[1] for name in beside} == {"sin", "cos", "tan"}
    for define in re.findall(r"^define internal .*?^}", text, re.M | re.S):
        if not re.search(r"mycel\.(sin|cos|tan)\.", define):
            assert {name.split(".")[0] for name in re.findall(r"@llvm\.([\w.]+)\(", define)} <= {
                "fmuladd",
                "sqrt",
                "fabs",
                "copysign",
            }
            assert not re.search(r"^\s*(br|load|store|.*\b(load|getelementptr|alloca)\b)", define, re.M)
    llvm.parse_assembly(text).verify()


@pytest.mark.parametrize("triple", ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"])
def test_machine_code_calls_no_library(triple: str) -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    text = elementary.definitions([(n, e, 4) for n in elementary.FUNCTIONS for e in DTYPES])
    target = llvm.Target.from_triple(triple).create_target_machine(opt=1)
    assembly = target.emit_assembly(llvm.parse_assembly(f'target triple = "{triple}"\n' + text))
    assert "mycel.lgamma.v4f64" in assembly
    assert not re.findall(r"^\s+(?:callq?|jmp|blr?|b)\s+(?!mycel)[a-z_]\w*", assembly, re.M)


def test_symbols_and_refusals() -> None:
    assert elementary.symbol("exp", "f32", 16) == "mycel.exp.v16f32"
    assert elementary.symbol("pow", "f64", 1) == "mycel.pow.f64"
    assert elementary.FUNCTIONS["atan2"] == 2 and elementary.FUNCTIONS["exp"] == 1
    definition = elementary.definition("exp", "f32", 4)
    assert definition.startswith(
        "define internal <4 x float> @mycel.exp.v4f32(<4 x float> %x) alwaysinline nounwind {\n"
    )
    with pytest.raises(ValueError, match=r"no elementary function 'exq'; there are acos, acosh, "):
        elementary.definition("exq", "f32", 8)
    with pytest.raises(ValueError, match=r"exp: element 'f16' is not supported; widen to 'f32' or 'f64'"):
        elementary.symbol("exp", "f16", 8)
    with pytest.raises(ValueError, match=r"exp: 3 lanes; the number of lanes must be a power of two"):
        elementary.definitions([("exp", "f32", 3)])
