"""Programs that must mean the same everywhere: in plain Python over NumPy arrays, eagerly,
compiled, in GRAPH_MODE, and under a gradient.

A program is an ordinary function. `F` holds the functions that it may call on tensors and on NumPy
arrays alike, so that the very same source runs in plain Python in float64: that run is the oracle
of values, and central differences of it are the oracle of gradients. A test file declares its
programs with `@programs.add(arguments, ...)` and ends with `test = programs.test()`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn
from mycel._src.foundation.pytree import flatten

__all__ = ["F", "N", "P", "X", "Y", "Program", "Programs", "check"]

X = np.array([0.5, -1.5, 2.0], np.float32)
Y = np.array([1.0, 3.0, -2.0], np.float32)
P, N = np.float32(2.5), np.float32(-1.5)


class _Functions:
    """Functions of tensors, or of NumPy arrays where no tensor is among the arguments."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        on_tensors = getattr(ms.ops, name)
        on_arrays = getattr(np, {"concat": "concatenate", "select": "where"}.get(name, name))

        def either(*args: Any, **kwargs: Any) -> Any:
            return (on_tensors if _has_tensor(args) else on_arrays)(*args, **kwargs)

        setattr(self, name, either)
        return either


def _has_tensor(value: Any) -> bool:
    return isinstance(value, ms.Tensor) or isinstance(value, (list, tuple)) and any(_has_tensor(v) for v in value)


F: Any = _Functions()
# A compiled function finds these as plain attributes.
_COMMON = [name for name in dir(ms.ops) if not name.startswith("_") and callable(vars(np).get(name))]
for _name in [*_COMMON, "concat", "select"]:
    getattr(F, _name)


class Program:
    """A function with its arguments: NumPy arrays and scalars become tensors, everything else is
    passed as it is.

    `grad` is the position (or positions) of the arguments by which it is differentiated, None where
    it is not. `oracle` computes the expected result from float64 arrays; the function itself by
    default. `breaks` says whether the compiled function is expected to go back to Python on the
    way.
    """

    def __init__(self, fn: Any, args: Any, grad: Any, oracle: Any, breaks: bool, tolerance: float) -> None:
        self.fn, self.args, self.breaks, self.tolerance = fn, args, breaks, tolerance
        self.grad = () if grad is None else grad if isinstance(grad, tuple) else (grad,)
        self.oracle = oracle or fn

    def arrays(self) -> list[Any]:
        return [_wide(a) for a in self.args]

    def tensors(self) -> list[Any]:
        return [ms.Tensor(a) if isinstance(a, (np.ndarray, np.generic)) else a for a in self.args]


def _wide(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return np.array(value, np.float64) if value.dtype.kind == "f" else np.array(value)
    return value


class Programs:
    """The programs of one test file."""

    def __init__(self) -> None:
        self.all: list[Program] = []

    def add(
        self, *calls: tuple[Any, ...], grad: Any = 0, oracle: Any = None, breaks: bool = False, tolerance: float = 2e-4
    ) -> Any:
        """Declare a program, once for each tuple of arguments."""

        def declare(fn: Any) -> Any:
            self.all += [Program(fn, args, grad, oracle, breaks, tolerance) for args in calls]
            return fn

        return declare

    def test(self) -> Any:
        """A parametrized test of all programs declared so far."""
        names = [f"{p.fn.__name__}-{i}" for i, p in enumerate(self.all)]

        @pytest.mark.parametrize("program", self.all, ids=names)
        def test_program(program: Program) -> None:
            check(program)

        return test_program


def check(program: Program) -> None:
    """Assert that a program gives what its oracle gives, in every mode, with the breaks that it
    declares.
    """
    fn = program.fn
    expected = program.oracle(*program.arrays())
    same(fn(*program.tensors()), expected, program.tolerance, "eager")
    jitted = ms.jit(fn)
    for turn in ("the first compiled call", "the second compiled call"):
        same(jitted(*program.tensors()), expected, program.tolerance, turn)
    account = ms.explain(jitted)
    assert bool(account.breaks) == program.breaks, str(account)
    same(in_graph_mode(_Holder(fn), program.tensors()), expected, program.tolerance, "GRAPH_MODE")
    if program.grad:
        _check_gradients(program)


class _Holder(nn.Cell):
    def __init__(self, fn: Any) -> None:
        super().__init__()
        self.fn = fn

    def construct(self, *args: Any) -> Any:
        return self.fn(*args)


def in_graph_mode(fn: Any, args: list[Any]) -> Any:
    """Call a Cell, or a gradient, in GRAPH_MODE."""
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        return fn(*args)
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)


def total(values: Any) -> Any:
    """The sum of everything of floating type in a result."""
    result: Any = None
    for leaf in flatten(values)[0]:
        if isinstance(leaf, ms.Tensor):
            part = ms.ops.sum(leaf) if leaf.dtype.is_differentiable else None
        else:
            array = np.asarray(leaf)
            part = float(array.sum()) if array.dtype.kind == "f" else None
        if part is not None:
            result = part if result is None else result + part
    return result


def differences(fn: Any, arrays: list[Any], position: int, step: float = 1e-6) -> np.ndarray[Any, Any]:
    """Central differences of the total of a function of float64 arrays by one argument."""
    base = np.array(arrays[position], np.float64)
    found = np.zeros(base.shape)
    for index in np.ndindex(base.shape):
        ends = []
        for sign in (1, -1):
            moved = base.copy()
            moved[index] += sign * step
            given = [np.array(a) if isinstance(a, np.ndarray) else a for a in arrays]
            given[position] = moved
            ends.append(total(fn(*given)))
        found[index] = (ends[0] - ends[1]) / (2 * step)
    return found


def _check_gradients(program: Program) -> None:
    fn, positions = program.fn, program.grad
    expected = [differences(program.oracle, program.arrays(), p) for p in positions]

    def value(*args: Any) -> Any:
        return total(fn(*args))

    tolerance = max(program.tolerance, 1e-3)
    for mode, run in (
        ("the eager gradient", lambda a: ms.grad(value, positions)(*a)),
        ("the gradient of the compiled function", lambda a: ms.grad(ms.jit(value), positions)(*a)),
        ("the compiled gradient", lambda a: ms.jit(ms.grad(value, positions))(*a)),
        ("the gradient in GRAPH_MODE", lambda a: in_graph_mode(ms.grad(value, positions), a)),
    ):
        found = run(program.tensors())
        found = found if isinstance(found, tuple) else (found,)
        for p, a, e in zip(positions, found, expected):
            same(a, e, tolerance, f"{mode} by argument {p}")


def same(actual: Any, expected: Any, tolerance: float, what: str, path: str = "result") -> None:
    """Assert that two results have one form and close values.

    A tensor may stand for a number or an array.
    """
    if isinstance(expected, dict):
        assert isinstance(actual, dict) and list(actual) == list(expected), f"{what}: {path} is {actual!r}"
        for k in expected:
            same(actual[k], expected[k], tolerance, what, f"{path}[{k!r}]")
    elif isinstance(expected, (list, tuple)):
        assert type(actual) is type(expected) and len(actual) == len(expected), f"{what}: {path} is {actual!r}"
        for i, (a, e) in enumerate(zip(actual, expected)):
            same(a, e, tolerance, what, f"{path}[{i}]")
    elif isinstance(expected, (np.ndarray, np.generic, int, float, complex)) and not isinstance(expected, bool):
        array = actual.asnumpy() if isinstance(actual, ms.Tensor) else np.asarray(actual)
        wanted = np.asarray(expected)
        assert array.shape == wanted.shape, f"{what}: {path} has shape {array.shape}, not {wanted.shape}"
        np.testing.assert_allclose(array, wanted, rtol=tolerance, atol=tolerance, err_msg=f"{what}: {path}")
    elif isinstance(actual, ms.Tensor):
        assert actual.asnumpy() == expected, f"{what}: {path} is {actual!r}"
    elif hasattr(expected, "__dict__") and not callable(expected):
        assert type(actual) is type(expected)
        same(vars(actual), vars(expected), tolerance, what, path)
    else:
        assert actual == expected, f"{what}: {path} is {actual!r}, not {expected!r}"


def explained(fn: Any, *args: Any) -> str | None:
    """What `explain` says of a call."""
    return str(ms.explain(fn, *args))
