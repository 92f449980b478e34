"""Public functions against independent oracles, and the record of what is checked against what.

A test file declares its checks and takes its tests from them:

    checks = Checks("NumPy") checks.add("ops.add mint.add Tensor.add", np.add, (A(3, 4), A(4)),
    (A(1), A(2, 1)), (A(0, 3), A(3))) checks.add("ops.Softmax", lambda x: scipy.special.softmax(x,
    0), (A(3, 4),), init={"axis": 0}, oracle="SciPy") test_values, test_gradients = checks.tests()

Names are public names below `mycel`; a check that has several runs the same cases through all of
them. Each case runs eagerly in every element type, and compiled in the first, against the oracle's
result from float64 arrays; derivatives of float64 operands are compared with central differences
along random directions. A file whose tests are written by hand says what it checks by a
module-level `CHECKED`, from names to oracles.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor
from mycel._src.foundation.pytree import flatten

__all__ = ["A", "Array", "B", "Checks", "I", "resolve"]

FLOATS = ("float64", "float32")
TOLERANCE = {"float64": 1e-9, "float32": 3e-5, "float16": 4e-3, "bfloat16": 3e-2, "complex64": 3e-5, "complex128": 1e-9}


@dataclass(frozen=True)
class Array:
    """An operand: uniform numbers in [low, high) of the case's element type, or of `dtype` whatever
    the case's is; `values` instead of random numbers.
    """

    shape: tuple[int, ...]
    low: float = -2.0
    high: float = 2.0
    dtype: str | None = None
    values: Any = field(default=None, compare=False)

    def draw(self, dtype: str, seed: int) -> np.ndarray:
        """float64 (or complex128, integers, bools) that the element type holds exactly."""
        if self.values is not None:
            return np.asarray(self.values)
        random = np.random.default_rng(seed)
        kind = np.dtype(self.dtype or ("float32" if dtype == "bfloat16" else dtype))
        if kind.kind in "iu":
            return random.integers(max(self.low, 0) if kind.kind == "u" else self.low, self.high, self.shape).astype(
                kind
            )
        if kind.kind == "b":
            return random.uniform(0, 1, self.shape) < 0.5
        drawn = random.uniform(self.low, self.high, self.shape)
        if kind.kind == "c":
            drawn = drawn + 1j * random.uniform(self.low, self.high, self.shape)
        if dtype == "bfloat16" and self.dtype is None:
            return Tensor(drawn.astype(np.float32)).astype(ms.bfloat16).astype(ms.float32).asnumpy().astype(np.float64)
        return drawn.astype(kind).astype(np.complex128 if kind.kind == "c" else np.float64)

    def tensor(self, values: np.ndarray, dtype: str) -> Tensor:
        """The operand as a tensor of its element type."""
        kind = self.dtype or (dtype if values.dtype.kind in "fc" or self.values is None else None)
        return (
            Tensor(values) if kind is None else Tensor(values).astype(getattr(ms, "bool_" if kind == "bool" else kind))
        )


def A(*shape: int, low: float = -2.0, high: float = 2.0, values: Any = None) -> Array:
    """Numbers of the case's element type."""
    return Array(shape, low, high, None, values)


def I(*shape: int, low: int = 0, high: int = 5, dtype: str = "int32") -> Array:  # noqa: E743
    """Whole numbers: indices, labels, counts."""
    return Array(shape, low, high, dtype)


def B(*shape: int) -> Array:
    """Truth values."""
    return Array(shape, dtype="bool")


@dataclass(frozen=True)
class Check:
    """One name with one tuple of arguments."""

    name: str
    call: Callable[..., Any]
    expected: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    dtypes: tuple[str, ...]
    grad: tuple[int, ...]
    tolerance: float
    jit: bool
    made: bool = False
    init: dict[str, Any] = field(default_factory=dict)

    def drawn(self, dtype: str) -> list[Any]:
        seed = zlib.crc32(self.name.encode())
        return [_walk(a, lambda x, k=k: x.draw(dtype, seed + k)) for k, a in enumerate(self.args)]

    def tensors(self, drawn: Sequence[Any], dtype: str) -> list[Any]:
        return [_pair(a, v, lambda x, v: x.tensor(v, dtype)) for a, v in zip(self.args, drawn)]


def _walk(value: Any, of_array: Callable[[Array], Any]) -> Any:
    if isinstance(value, Array):
        return of_array(value)
    return type(value)(_walk(v, of_array) for v in value) if type(value) in (list, tuple) else value


def _pair(spec: Any, value: Any, of_array: Callable[[Array, Any], Any]) -> Any:
    if isinstance(spec, Array):
        return of_array(spec, value)
    return type(spec)(_pair(s, v, of_array) for s, v in zip(spec, value)) if type(spec) in (list, tuple) else value


def resolve(name: str, init: dict[str, Any] | None = None) -> Callable[..., Any]:
    """The function of a public name: a method takes its tensor first.

    A class is made with `init` and called.
    """
    if name.startswith("Tensor."):
        method = name.removeprefix("Tensor.")

        def of_tensor(x: Any, *args: Any, **kwargs: Any) -> Any:
            found = getattr(x, method)
            return found(*args, **kwargs) if callable(found) else found

        return of_tensor
    target: Any = ms
    for part in name.split("."):
        target = getattr(target, part)
    return target(**(init or {})) if isinstance(target, type) else target


def _is_class(name: str) -> bool:
    target: Any = ms
    for part in name.split("."):
        target = getattr(target, part)
    return isinstance(target, type) and not name.startswith("Tensor.")


class Checks:
    """The checks of one test file.

    `oracle` says against what, where a check does not say so itself.
    """

    def __init__(self, oracle: str) -> None:
        self.oracle = oracle
        self.all: list[Check] = []
        self.checked: dict[str, str] = {}

    def add(
        self,
        names: str,
        expected: Callable[..., Any],
        *cases: tuple[Any, ...],
        kwargs: dict[str, Any] | None = None,
        init: dict[str, Any] | None = None,
        dtypes: str | Sequence[str] = FLOATS,
        grad: tuple[int, ...] | None = None,
        tolerance: float = 1.0,
        jit: bool = True,
        oracle: str | None = None,
    ) -> None:
        """Declare checks of every name with every case.

        `expected(*arrays, **kwargs)` gives the result in NumPy, a tuple where there are several.
        `grad` are the operands to differentiate by: by default all of floating type, () for none.
        `tolerance` multiplies that of the element type.
        """
        dtypes = tuple(dtypes.split()) if isinstance(dtypes, str) else tuple(dtypes)
        for name in names.split():
            self.checked[name] = oracle or self.oracle
            for args in cases:
                wrt = grad
                if wrt is None:
                    floating = any(d.startswith(("float", "bfloat")) for d in dtypes)
                    wrt = tuple(k for k, a in enumerate(args) if floating and isinstance(a, Array) and a.dtype is None)
                self.all.append(
                    Check(
                        name,
                        resolve(name, init),
                        expected,
                        args,
                        kwargs or {},
                        dtypes,
                        wrt,
                        tolerance,
                        jit,
                        _is_class(name),
                        init or {},
                    )
                )

    def tests(self) -> tuple[Any, Any]:
        """The parametrized tests of values and of derivatives."""
        ids = [f"{c.name}-{i}" for i, c in enumerate(self.all)]
        values = [pytest.param(c, d, id=f"{i}-{d}") for c, i in zip(self.all, ids) for d in c.dtypes]
        smooth = [pytest.param(c, id=i) for c, i in zip(self.all, ids) if c.grad]

        @pytest.mark.parametrize(("check", "dtype"), values)
        def test_values(check: Check, dtype: str) -> None:
            check_values(check, dtype)

        @pytest.mark.parametrize("check", smooth)
        def test_gradients(check: Check) -> None:
            check_gradients(check)

        return test_values, test_gradients


def check_values(check: Check, dtype: str) -> None:
    """Eagerly and compiled, the results have the shapes, kinds and values of the oracle's."""
    drawn = check.drawn(dtype)
    expected = check.expected(*drawn, **check.kwargs)
    _same(check, check.call(*check.tensors(drawn, dtype), **check.kwargs), expected, dtype)
    if check.jit and dtype == check.dtypes[0]:
        compiled = ms.jit(lambda *args: check.call(*args, **check.kwargs))
        _same(check, compiled(*check.tensors(drawn, dtype)), expected, dtype)


def _same(check: Check, got: Any, expected: Any, dtype: str) -> None:
    results = [x for x in flatten(got)[0] if x is not None]
    wanted = list(expected) if isinstance(expected, (tuple, list)) else [expected]
    assert len(results) == len(wanted), f"{len(results)} results, not {len(wanted)}"
    for result, want in zip(results, wanted):
        want = np.asarray(want)
        kind = want.dtype.kind
        if not isinstance(result, Tensor):
            np.testing.assert_allclose(result, want, rtol=check.tolerance * TOLERANCE.get(dtype, 0))
            continue
        assert result.shape == want.shape
        array = result.astype(ms.float32).asnumpy() if result.dtype is ms.bfloat16 else result.asnumpy()
        assert array.dtype.kind == kind or {array.dtype.kind, kind} <= set("iu"), (
            f"{result.dtype}, not of kind {want.dtype}"
        )
        if kind in "fc":
            near = check.tolerance * TOLERANCE.get(dtype, 3e-5)
            np.testing.assert_allclose(array.astype(want.dtype), want, rtol=near, atol=near)
        else:
            np.testing.assert_array_equal(array, want)


def check_gradients(check: Check, step: float = 1e-5, near: float = 2e-5) -> None:
    """The derivative of a weighted sum of the results agrees with central differences along two
    directions.
    """
    drawn = check.drawn("float64")
    random = np.random.default_rng(7)

    def loss(*tensors: Tensor) -> Any:
        sum_: Any = 0.0
        for k, out in enumerate(t for t in flatten(check.call(*tensors, **check.kwargs))[0] if isinstance(t, Tensor)):
            if out.dtype.is_floating:
                weight = np.cos(np.arange(np.prod(out.shape, dtype=int)) + k).reshape(out.shape)
                sum_ = sum_ + ms.ops.sum(out * Tensor(weight))
        return sum_

    def value(arrays: Sequence[Any]) -> float:
        return float(loss(*check.tensors(arrays, "float64")))

    gradients = ms.grad(loss, check.grad)(*check.tensors(drawn, "float64"))
    gradients = gradients if isinstance(gradients, tuple) else (gradients,)
    for position, gradient in zip(check.grad, gradients):
        assert gradient.shape == drawn[position].shape and gradient.dtype is ms.float64
        for _ in range(2 if drawn[position].size else 0):
            way = random.normal(size=drawn[position].shape)
            ends = []
            for sign in (1, -1):
                moved = list(drawn)
                moved[position] = moved[position] + sign * step * way
                ends.append(value(moved))
            want = (ends[0] - ends[1]) / (2 * step)
            got = float((gradient.asnumpy() * way).sum())
            scale = 1 + abs(want) + float(np.abs(gradient.asnumpy() * way).sum())
            assert abs(got - want) <= near * check.tolerance * scale, f"derivative {got}, by differences {want}"
