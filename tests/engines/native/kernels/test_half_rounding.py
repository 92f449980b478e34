"""16-bit floats are rounded after every operation: random programs give the same bits operation by
operation and compiled, and those of the reference.

Where an operation of a program is correctly rounded (arithmetic, square roots, comparisons, whole
parts) the oracle is NumPy in float64, rounded to the type after each operation; a float64 holds
enough digits that the second rounding changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, ops
from mycel._src.engines.native.kernels.half_rounding import setting
from mycel._src.engines.native.program import program_cache

TYPES: dict[str, Any] = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
Array = Any
# Operations that round once, in NumPy.
EXACT: dict[str, tuple[int, Callable[..., Array]]] = {
    "add": (2, np.add),
    "sub": (2, np.subtract),
    "mul": (2, np.multiply),
    "div": (2, np.divide),
    "maximum": (2, np.maximum),
    "minimum": (2, np.minimum),
    "fmod": (2, np.fmod),
    "neg": (1, np.negative),
    "abs": (1, np.abs),
    "sqrt": (1, np.sqrt),
    "floor": (1, np.floor),
    "ceil": (1, np.ceil),
    "trunc": (1, np.trunc),
    "round": (1, np.rint),
    "square": (1, np.square),
    "reciprocal": (1, np.reciprocal),
    "relu": (1, lambda x: np.maximum(x, 0)),
    "sign": (1, np.sign),
}
# Operations that compiled and eager code do by the same instructions.
OTHERS = [
    "exp",
    "exp2",
    "expm1",
    "log",
    "log1p",
    "sin",
    "cos",
    "tan",
    "tanh",
    "sigmoid",
    "erf",
    "erfc",
    "rsqrt",
    "atan",
    "asinh",
    "lgamma",
    "gelu",
    "silu",
    "softplus",
    "mish",
    "selu",
    "hardswish",
    "logsigmoid",
    "leaky_relu",
    "sinc",
    "rad2deg",
]
PAIRS = ["pow", "atan2", "remainder", "floor_divide", "hypot", "logaddexp", "fmax"]
NUMBERS = [0.5, 2.0, -1.0, 0.1, 3.0, 10.0, 0.333, 7.0]
ROWS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: x.sum(1, keepdims=True),
    "mean": lambda x: x.mean(1, True),
    "amax": lambda x: ops.amax(x, 1, True),
    "softmax": lambda x: ops.softmax(x, 1),
    "logsumexp": lambda x: ops.logsumexp(x, 1, True),
    "std": lambda x: ops.std(x, 1, keepdims=True),
    "cumsum": lambda x: ops.cumsum(x, 1),
    "layer_norm": lambda x: ops.layer_norm(x, (x.shape[-1],)),
}


def program(rng: Any, exact: bool) -> Callable[..., list[Any]]:
    """A random program of two tensors.

    Its operations come from `ops`, or in float64 from NumPy with a rounding after each (`like`).
    """
    names = [*EXACT] if exact else [*EXACT, *OTHERS, *PAIRS]
    steps = []
    for k in range(int(rng.integers(3, 12))):
        kinds = (
            ["op", "op", "op", "number", "where"] if exact else ["op"] * 6 + ["number"] * 2 + ["where", "row", "cast"]
        )
        kind = kinds[int(rng.integers(len(kinds)))]
        places = rng.integers(max(0, k - 4), k + 2, 3)
        choices = {"number": NUMBERS, "row": [*ROWS], "cast": [*TYPES, "float32"]}.get(kind, names)
        steps.append((kind, choices[int(rng.integers(len(choices)))], places))
    last = {len(steps) + 1, int(rng.integers(2, len(steps) + 2))}

    def run(x: Any, y: Any, like: Any = None) -> list[Any]:
        values = [x, y]
        for kind, what, (a, b, c) in steps:
            first, second, third = values[a], values[b], values[c]
            if kind == "op" and like is not None:
                count, function = EXACT[what]
                result = function(*[first, second][:count])
            elif kind == "op":
                double = what in PAIRS or what in EXACT and EXACT[what][0] == 2
                result = getattr(ops, what)(first, second) if double else getattr(ops, what)(first)
            elif kind == "number":
                result = first * what if like is None else first * float(like(what))
            elif kind == "where":
                result = (ops if like is None else np).where(first > second, first, third)
            elif kind == "row":
                result = ROWS[what](first) + second
            else:
                result = first.astype(getattr(ms, what))
            values.append(result if like is None else result.astype(like).astype(np.float64))
        return [values[k] for k in sorted(last)]

    return run


def differing(a: Array, b: Array) -> int:
    """How many results differ, all NaNs counting as one and both zeros."""
    assert a.shape == b.shape
    with np.errstate(invalid="ignore"):
        wide, other = a.astype(np.float64), b.astype(np.float64)
    return int(((wide != other) & ~(np.isnan(wide) & np.isnan(other))).sum())


def arguments(rng: Any, dtype: Any) -> tuple[Array, Array]:
    shape = (int(rng.choice([1, 3])), int(rng.choice([1, 7, 32, 65])))
    with np.errstate(over="ignore"):
        x, y = ((rng.normal(size=shape) * rng.choice([0.1, 1, 30, 20000])).astype(dtype) for _ in "xy")
    return x, y


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("seed", range(12))
def test_compiled_programs_give_the_bits_of_their_operations(name: str, seed: int) -> None:
    rng = np.random.default_rng([seed, len(name)])
    x, y = map(Tensor, arguments(rng, TYPES[name]))
    run = program(rng, False)
    eager, compiled = run(x, y), ms.jit(lambda x, y: run(x, y))(x, y)
    assert [e.dtype for e in eager] == [c.dtype for c in compiled]
    assert [differing(e.asnumpy(), c.asnumpy()) for e, c in zip(eager, compiled)] == [0] * len(eager)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("seed", range(8))
def test_arithmetic_gives_the_bits_of_rounding_each_operation(name: str, seed: int) -> None:
    rng = np.random.default_rng([seed, len(name), 1])
    x, y = arguments(rng, TYPES[name])
    run = program(rng, True)
    compiled = ms.jit(lambda x, y: run(x, y))(Tensor(x), Tensor(y))
    with np.errstate(all="ignore"):
        want = run(x.astype(np.float64), y.astype(np.float64), TYPES[name])
    assert [differing(c.asnumpy(), w) for c, w in zip(compiled, want)] == [0] * len(want)


@pytest.fixture
def wide() -> Iterator[None]:
    ms.set_context(wide_intermediates=True)
    try:
        yield
    finally:
        ms.set_context(wide_intermediates=False)


def twice_less_once(x: Any) -> Any:
    return (x + x) - x


def test_intermediates_may_stay_wide(wide: None) -> None:
    x = Tensor(np.full(40, 60000, np.float16))
    function = ms.jit(twice_less_once)
    assert setting() in [entry() for entry in program_cache.settings]
    np.testing.assert_array_equal(function(x).asnumpy(), x.asnumpy())
    kept = setting()
    # What is compiled is compiled anew for another setting.
    ms.set_context(wide_intermediates=False)
    assert np.all(np.isinf(function(x).asnumpy())) and setting() != kept
    assert np.all(np.isinf(twice_less_once(x).asnumpy()))


def test_nothing_but_a_truth_value_says_whether_they_stay_wide() -> None:
    with pytest.raises(TypeError, match="set_context: wide_intermediates must be a bool, not int"):
        ms.set_context(wide_intermediates=1)


@pytest.mark.parametrize("name", TYPES)
def test_powers_that_become_other_operations_keep_their_bits(name: str) -> None:
    x = Tensor(np.arange(1 << 16, dtype=np.uint16).view(TYPES[name]))
    for power in (2.0, -1.0, 0.5, 1.0):
        as_tensor = Tensor(np.full(1 << 16, power, TYPES[name]))
        assert differing(ms.jit(lambda x, power=power: x**power)(x).asnumpy(), ops.pow(x, as_tensor).asnumpy()) == 0, (
            power
        )


@pytest.mark.parametrize("name", TYPES)
def test_nan_stays_nan(name: str) -> None:
    bits = np.arange(1 << 16, dtype=np.uint16)
    x = bits.view(TYPES[name])
    with np.errstate(invalid="ignore"):
        x = x[np.isnan(x.astype(np.float32))]
    for function in (
        lambda t: t + t * 2.0,
        lambda t: ops.exp(t) * t,
        lambda t: ops.sqrt(t - 1.0),
        lambda t: t.sum() + t,
    ):
        assert np.all(np.isnan(ms.jit(function)(Tensor(x)).asnumpy().astype(np.float32)))
    odd = np.array([0x7FFFFFFF, 0xFFFFFFFF, 0x7F800001, 0x7FC0FFFF], np.uint32).view(np.float32)
    odd = np.concatenate([odd] * 8)
    cast = ms.jit(lambda t: t.astype(getattr(ms, name)) * 1.5)
    assert np.all(np.isnan(cast(Tensor(odd)).asnumpy().astype(np.float32)))
