"""Hooks on what is kept for the backward pass: the order of calls is PyTorch's and MindSpore's, the
gradients are those without hooks.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, nn, ops
from mycel._src.devices import runtime

CHECKED = {"saved_tensors_hooks": "MindSpore", "register_saved_tensors_hooks": "MindSpore"}
X = np.array([1.0, 2.0, 3.0], np.float32)


def rounded(array: np.ndarray[Any, Any]) -> list[float]:
    return [round(float(v), 3) for v in array.ravel()]


class Log:
    """Hooks that keep copies in NumPy and note what they were called with."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def pack(self, t: Tensor) -> Any:
        self.calls.append(("pack", rounded(t.asnumpy())))
        return t.asnumpy().copy()

    def unpack(self, kept: Any) -> Tensor:
        self.calls.append(("unpack", rounded(kept)))
        return Tensor(kept)

    def within(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            with ms.saved_tensors_hooks(self.pack, self.unpack):
                out = fn(*args)
            self.calls.append("end")
            return out

        return run


# What MindSpore 2.10 calls on a CPU for these functions of [1, 2, 3] (and [4, 5, 6]).
P, U, A, B = "pack", "unpack", [1.0, 2.0, 3.0], [4.0, 5.0, 6.0]
SOFTMAX, EXP, SIN = [0.09, 0.245, 0.665], [2.718, 7.389, 20.086], [0.841, 0.909, 0.141]
CHAIN = [2.32, 6.163, 1.527]
CALLS: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "mul": (lambda x, y: x * y, [(P, A), (P, B), "end", (U, A), (U, B)]),
    "add": (lambda x, y: x + y, ["end"]),
    "exp": (lambda x, y: ops.exp(x), [(P, EXP), "end", (U, EXP)]),
    "square": (lambda x, y: x * x, [(P, A), (P, A), "end", (U, A), (U, A)]),
    "number": (lambda x, y: x * 2.0, ["end"]),
    "reshape": (lambda x, y: x.reshape(3, 1).sum(), ["end"]),
    "softmax": (lambda x, y: ops.softmax(x, -1), [(P, SOFTMAX), "end", (U, SOFTMAX)]),
    "chain": (
        lambda x, y: ops.exp(ops.sin(x) * x),
        [(P, A), (P, SIN), (P, A), (P, CHAIN), "end", (U, CHAIN), (U, SIN), (U, A), (U, A)],
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_are_those_of_the_reference(name: str) -> None:
    fn, calls = CALLS[name]
    x, y = Tensor(X), Tensor(X + 3)
    log = Log()
    found = ms.grad(log.within(fn), (0, 1))(x, y)
    assert log.calls == calls
    for got, want in zip(found, ms.grad(fn, (0, 1))(x, y)):
        np.testing.assert_allclose(got.asnumpy(), want.asnumpy(), rtol=1e-6)


compiled = ms.jit(lambda a: ops.tanh(a) * a)


def mixed(a: Any) -> Any:
    b = compiled(a) * ops.exp(a)
    values, _ = ops.topk(b, 2)
    return b.reshape(3, 1)[1:] * values.sum() + ops.concat([b[:1], a[1:] / b[1:]]).sum()


def derivatives(fn: Callable[..., Any]) -> list[np.ndarray[Any, Any]]:
    x = Tensor(X.astype(np.float64))
    total = lambda a: fn(a).sum()
    return [
        ms.grad(total)(x).asnumpy(),
        ms.grad(lambda a: ms.grad(total)(a).sum())(x).asnumpy(),
        ms.jacrev(fn)(x).asnumpy(),
        ms.jacfwd(fn)(x).asnumpy(),
        ms.jvp(fn, x, Tensor(np.cos(X.astype(np.float64))))[1].asnumpy(),
    ]


def test_derivatives_of_all_kinds_are_those_without_hooks() -> None:
    plain = derivatives(mixed)
    for got, want in zip(derivatives(Log().within(mixed)), plain):
        np.testing.assert_allclose(got, want, rtol=1e-10)
    log = Log()
    with ms.saved_tensors_hooks(log.pack, log.unpack):
        around = derivatives(mixed)
    assert log.calls
    for got, want in zip(around, plain):
        np.testing.assert_allclose(got, want, rtol=1e-10)


def test_gradients_of_layers_and_parameters() -> None:
    net = nn.SequentialCell(
        nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Dense(32, 3), nn.LayerNorm((3,))
    )
    net.set_train()
    x = Tensor(np.random.default_rng(0).normal(size=(2, 1, 4, 4)).astype(np.float32))
    loss = lambda x: (net(x) * ops.arange(6).reshape(2, 3).astype(ms.float32)).sum()
    weights = net.trainable_params()
    got = ms.value_and_grad(Log().within(loss), None, weights)(x)
    want = ms.value_and_grad(loss, None, weights)(x)
    np.testing.assert_allclose(got[0].asnumpy(), want[0].asnumpy(), rtol=1e-5)
    for g, w in zip(got[1], want[1]):
        np.testing.assert_allclose(g.asnumpy(), w.asnumpy(), rtol=1e-4, atol=1e-5)


def test_values_go_to_files_and_are_compressed(tmp_path: Path) -> None:
    files: list[Path] = []

    def to_file(t: Tensor) -> Path:
        files.append(tmp_path / f"{len(files)}.npy")
        np.save(files[-1], t.asnumpy())
        return files[-1]

    def cubed(fn: Any, *hooks: Any) -> Any:
        with ms.saved_tensors_hooks(*hooks):
            return fn * fn * fn

    got = ms.grad(lambda x: cubed(x, to_file, lambda path: Tensor(np.load(path))))(Tensor(X))
    assert len(files) == 4
    np.testing.assert_allclose(got.asnumpy(), 3 * X**2)
    squeeze = lambda t: (t.shape, zlib.compress(t.asnumpy().tobytes()))
    restore = lambda kept: Tensor(np.frombuffer(zlib.decompress(kept[1]), np.float32).reshape(kept[0]))
    np.testing.assert_allclose(ms.grad(lambda x: cubed(x, squeeze, restore))(Tensor(X)).asnumpy(), 3 * X**2)


def test_memory_is_given_back_once_packed() -> None:
    size = 1 << 18
    x = Tensor(np.full(size, 0.5, np.float32))
    held: list[int] = []

    def waves(a: Tensor) -> Tensor:
        for _ in range(8):
            a = ops.sin(a)
        held.append(runtime.memory_allocated())
        return a.sum()

    def packed(a: Tensor) -> Tensor:
        with ms.saved_tensors_hooks(lambda t: t[0].item(), lambda v: Tensor(np.full(size, v, np.float32))):
            return waves(a)

    before = runtime.memory_allocated()
    want, got = ms.grad(waves)(x), ms.grad(packed)(x)
    assert held[0] - before >= 8 * 4 * size > 4 * 4 * size > held[1] - before - 4 * size
    np.testing.assert_allclose(got.asnumpy(), want.asnumpy(), rtol=1e-5)


def test_what_is_unpacked_is_what_the_derivative_uses() -> None:
    def f(x: Any) -> Any:
        with ms.saved_tensors_hooks(lambda t: t + 10, lambda t: t):
            return x * x

    assert ms.grad(f)(Tensor(X)).tolist() == [22.0, 24.0, 26.0]


def test_innermost_hooks_count_and_hooks_do_not_hook_themselves() -> None:
    calls: list[str] = []

    def noting(name: str) -> Any:
        def pack(t: Tensor) -> Any:
            calls.append(name)
            return (t * t).asnumpy() * 0 + t.asnumpy()

        return ms.saved_tensors_hooks(pack, Tensor)

    def f(a: Any) -> Any:
        with noting("outer"):
            b = a * a
            with noting("inner"):
                c = b * b
            return c * c

    np.testing.assert_allclose(ms.grad(f)(Tensor(X)).asnumpy(), 8 * X**7, rtol=1e-6)
    assert calls == ["outer", "outer", "inner", "inner", "outer", "outer"]
    calls.clear()
    with noting("idle"):
        assert (Tensor(X) * Tensor(X)).tolist() == [1.0, 4.0, 9.0]
    assert calls == []


def test_gradient_hooks_see_what_passes_through() -> None:
    def f(a: Any) -> Any:
        with ms.saved_tensors_hooks(lambda t: t.asnumpy().copy(), Tensor):
            b = a * a
            c = b * 3
        b.register_hook(lambda g: g * 10)
        return (c + b).sum()

    np.testing.assert_allclose(ms.grad(f)(Tensor(X)).asnumpy(), 80 * X)


def test_a_recomputed_region_keeps_its_inputs_only() -> None:
    region = lambda v: ops.exp(ops.sin(v) * 0.5)
    log = Log()
    got = ms.grad(log.within(lambda a: ms.recompute(region, a)))(Tensor(X))
    assert ("pack", X.tolist()) in log.calls and len(log.calls) == 5  # its input and the number, before and after
    np.testing.assert_allclose(got.asnumpy(), 0.5 * np.cos(X) * np.exp(np.sin(X) * 0.5), rtol=1e-5)


@pytest.mark.parametrize(
    ("pack", "unpack", "error", "text"),
    [
        (lambda t: t.asnumpy(), lambda v: 3, TypeError, "must return a tensor, not int"),
        (lambda t: t.asnumpy(), lambda v: Tensor(v[:2]), ValueError, r"\(2,\) in place of \(3,\)"),
        (lambda t: t.asnumpy(), lambda v: Tensor(v.astype(np.float16)), TypeError, "float16 in place of float32"),
        (lambda t: t.add_(1), lambda v: v, RuntimeError, "writes into the tensor"),
        (lambda t: 1 / 0, lambda v: v, ZeroDivisionError, "division"),
    ],
)
def test_errors(pack: Any, unpack: Any, error: Any, text: str) -> None:
    def f(x: Any) -> Any:
        with ms.saved_tensors_hooks(pack, unpack):
            return x * x

    with pytest.raises(error, match=text):
        ms.grad(f)(Tensor(X))
    assert ms.grad(lambda x: x * x)(Tensor(X)).tolist() == [2.0, 4.0, 6.0]


def test_hooks_must_be_callable() -> None:
    with pytest.raises(TypeError, match="pack_hook must be a function, not int"):
        ms.saved_tensors_hooks(3, Tensor)
    with pytest.raises(TypeError, match="what is decorated must be a function"):
        ms.register_saved_tensors_hooks(Tensor, Tensor)(3)


# Compiled.


@ms.register_saved_tensors_hooks(lambda t: t + 1, lambda t: t)
def shifted(x: Any, y: Any) -> Any:
    return x * y


def branching(x: Any) -> Any:
    with ms.saved_tensors_hooks(lambda t: (t.astype(ms.float16), 1), lambda kept: kept[0].astype(ms.float32)):
        z = ops.exp(x * 0.1) * x if x.sum() > 0 else ops.sin(x)
        return ops.tanh(z) * x


def test_compiled_functions_keep_what_hooks_say() -> None:
    x, y = Tensor(X), Tensor(X + 3)
    want = [[5.0, 6.0, 7.0], [2.0, 3.0, 4.0]]
    for gradient in (ms.grad(shifted, (0, 1)), ms.jit(ms.grad(shifted, (0, 1))), ms.grad(ms.jit(shifted), (0, 1))):
        assert [g.tolist() for g in gradient(x, y)] == want
    eager = ms.grad(branching)(x).asnumpy()
    np.testing.assert_allclose(ms.jit(ms.grad(branching))(x).asnumpy(), eager, rtol=1e-3)
    np.testing.assert_allclose(ms.jit(branching)(x).asnumpy(), branching(x).asnumpy(), rtol=1e-6)


class Square(nn.Cell):
    def construct(self, x: Any) -> Any:
        return x * x


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_hooks_of_a_cell_hold_in_its_construct(mode: int) -> None:
    cell = Square()
    cell.register_saved_tensors_hooks(lambda t: t + 1, lambda t: t)
    ms.set_context(mode=mode)
    try:
        got = ms.grad(lambda x: cell(x) * x)(Tensor(X))
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
    np.testing.assert_allclose(got.asnumpy(), X**2 + X * 2 * (X + 1), rtol=1e-6)
    with pytest.raises(TypeError, match="unpack_hook must be a function"):
        cell.register_saved_tensors_hooks(abs, 3)
