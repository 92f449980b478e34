"""Which values a recording keeps: what derivatives use of every primitive, and what is let go."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, ops
from mycel._src.compiler.ir.graph import input_node
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims import REGISTRY
from mycel._src.compiler.prims.base import Sample
from mycel._src.compiler.prims.saved_for_backward import SAVED, SAVED_ALONE, pairs
from mycel._src.devices import runtime
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.autograd import recording
from mycel._src.tensors.core.autograd.per_operation_gradient import _piece

SIZE = 256 * 1024
BYTES = 4 * SIZE


def types_of(sample: Sample) -> list[Any]:
    made = []
    for i, given in enumerate(sample.shapes):
        if isinstance(given, np.ndarray):
            made.append(tensor_type(given.shape, D.from_any(given.dtype)))
        else:
            kind = sample.dtypes[i] if sample.dtypes else "*"
            made.append(tensor_type(given, D.float32 if kind == "*" else getattr(D, kind.replace("bool", "bool_"))))
    return made


@pytest.mark.parametrize("name", sorted(SAVED))
def test_derivatives_use_no_more_than_is_kept(name: str) -> None:
    primitive = REGISTRY[name]
    for sample in primitive.samples:
        types = types_of(sample)
        try:
            node = primitive.node(*[input_node(t) for t in types], **sample.params)
        except (TypeError, ShapeError):
            continue
        results = node.type if isinstance(node.type, tuple) else (node.type,)
        smooth = [i for i, t in enumerate(types) if t.dtype.is_differentiable]
        if not smooth or not any(t.dtype.is_differentiable for t in results):
            continue
        for chosen in ([*smooth], *[[i] for i in smooth]):
            used = _piece(node, types, sum(1 << i for i in chosen), list(results)).used
            places = SAVED_ALONE[name][chosen[0]] if len(chosen) == 1 and name in SAVED_ALONE else SAVED[name]
            assert set(used) <= set(places), (name, types, sample.params, used)


def program(x: Any, y: Any, w: Any) -> Any:
    a = ops.tanh(x * y + 1.0) * ops.sigmoid(x - y)
    b = ops.exp(-x * x) / (ops.relu(y) + 2.0)
    c = ops.matmul(a.reshape(-1, 16), w) ** 2.0
    d = ops.softmax(b.reshape(-1, 16), -1) + ops.cumsum(c, 0)
    return (ops.concat((c, d), 1) * ops.maximum(d, c).sum(1, keepdims=True)).mean() + x.max() + ops.gelu(y).sum()


def inputs() -> list[Tensor]:
    draw = np.random.default_rng(3)
    return [Tensor(draw.uniform(-1, 1, s).astype(np.float64)) for s in ((6, 32), (6, 32), (16, 16))]


def gradients(f: Any, times: int = 1) -> list[Any]:
    given = inputs()
    for _ in range(times):
        found = ms.grad(f, (0, 1, 2))(*given)
    return [g.asnumpy() for g in found]


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("kept", ["usual", "nothing", "everything"])
def test_what_is_kept_changes_no_gradient(times: int, kept: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if kept != "usual":
        table: dict[str, tuple[int, ...]] = dict.fromkeys(SAVED, ()) if kept == "nothing" else {}
        monkeypatch.setattr(recording, "SAVED", table)
        monkeypatch.setattr(recording, "SAVED_ALONE", {})
        for primitive in REGISTRY.values():
            monkeypatch.setattr(primitive, "kept_of_pair", pairs(table, {}).get(primitive.name, (7, 7, 7)))
    expected = []
    values = [t.asnumpy() for t in inputs()]
    for k in range(3):
        slope = np.zeros(values[k].shape)
        for place in np.ndindex(*slope.shape):
            if sum(place) % 7:
                continue
            moved = [v.copy() for v in values]
            moved[k][place] += 1e-6
            up = program(*map(Tensor, moved)).asnumpy()
            moved[k][place] -= 2e-6
            slope[place] = (up - program(*map(Tensor, moved)).asnumpy()) / 2e-6
        expected.append(slope)
    for want, found in zip(expected, gradients(program, times)):
        chosen = [p for p in np.ndindex(*want.shape) if not sum(p) % 7]
        for place in chosen:
            assert abs(want[place] - found[place]) <= 1e-6 * max(1, abs(want[place]))


def test_a_value_that_another_operation_keeps() -> None:
    # The same structure with and without a value that something else has kept.
    x = Tensor(np.array([0.3, 0.7]))

    def f(x: Tensor, aside: bool) -> Tensor:
        y = x + 1.0
        if aside:
            ops.exp(y) * y
        return (y + y).sum() + (x * x).sum()

    for aside in (False, True, True, False, True, False, False):
        assert np.allclose(ms.grad(f)(x, aside).asnumpy(), 2 + 2 * x.asnumpy())


def test_second_derivatives() -> None:
    x = Tensor(np.array([0.3, 0.7]))
    first = ms.grad(lambda x: (ops.tanh(x + 1.0) * ops.exp(-x)).sum())
    second = ms.grad(lambda x: first(x).sum())(x).asnumpy()
    t, e = np.tanh(x.asnumpy() + 1), np.exp(-x.asnumpy())
    slope = 1 - t * t
    assert np.allclose(second, (-2 * t * slope - 2 * slope + t) * e)


def held(f: Any) -> float:
    """How many values of `SIZE` numbers are alive at the end of a function while it is recorded."""
    x = Tensor(np.linspace(0.1, 0.9, SIZE).astype(np.float32))
    found = []

    def counted(x: Tensor) -> Tensor:
        before = runtime.memory_allocated()
        out = f(x)
        found.append((runtime.memory_allocated() - before) / BYTES)
        return out

    ms.grad(counted)(x)
    return round(found[0], 1)


def test_values_that_no_derivative_uses_are_let_go() -> None:
    assert held(lambda x: ((x + 1.0) * 2.0 - 3.0).sum()) == 0
    assert held(lambda x: (2.0 / ((x + 1.0) * 2.0 / 3.0)).sum()) == 2
    assert held(lambda x: ops.tanh(ops.tanh(x) + 1.0).sum()) == 2
    assert held(lambda x: ops.exp(ops.exp(-x) - x).reshape(-1, 4).sum(1).sum()) == 2
