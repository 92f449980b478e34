"""Plans chosen by trial: what is kept, what is taken from files, and that every way computes the
same. No test times anything: `measure` is replaced.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, ops
from mycel._src.compiler.ir.graph import Graph, input_node
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.engines.native.onednn import autotune
from mycel._src.engines.native.onednn import binding as dense
from mycel._src.engines.native.program import program_cache
from mycel._src.foundation.files import code_cache
from mycel._src.foundation.settings import config

pytestmark = pytest.mark.skipif(not dense.available(), reason=str(dense.why_unavailable()))

FIRST, LAST = (0, 1, 2, 3), (0, 2, 3, 1)


class Trials:
    """A measure for which the plan number `pick` of each work is the quickest (the last, where
    there are fewer).
    """

    def __init__(self, pick: int) -> None:
        self.pick, self.calls = pick, 0
        self.favourites: list[dense.Plan] = []

    def __call__(self, plans: Sequence[dense.Plan]) -> list[float]:
        self.calls += 1
        if not any(plan is f for plan in plans[1:] for f in self.favourites):
            self.favourites.append(plans[min(self.pick, len(plans) - 1)])
        return [0.1 if any(plan is f for f in self.favourites) else 1.0 for plan in plans]


@pytest.fixture(autouse=True)
def tuning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every test has a cache of its own, remembers no choices, and has tuning on."""
    before = dict(config._context)
    monkeypatch.setenv("MYCEL_CACHE", str(tmp_path))
    autotune.chosen.forget()
    ms.set_context(auto_tune_mode="GA", enable_compile_cache=True)
    yield
    config._context.clear()
    config._context.update(before)
    autotune.chosen.forget()


def trials(monkeypatch: pytest.MonkeyPatch, pick: int) -> Trials:
    made = Trials(pick)
    monkeypatch.setattr(autotune, "measure", made)
    return made


def product(rows: int = 12) -> dense.Plan:
    a, b, out = ((rows, 20), (20, 16), (rows, 16))
    return dense.matmul(*(dense.Operand.dense(shape, "float32") for shape in (a, b, out)))


def names(plan: dense.Plan) -> list[str]:
    return [call.description for call in plan.calls]


def files(folder: Path) -> list[Path]:
    return [path for path in folder.glob("choices-*/*/*") if path.is_file()]


def test_it_is_off_unless_asked_for() -> None:
    told = {**os.environ, "MYCEL_AUTOTUNE": "1"}
    untold = {name: value for name, value in os.environ.items() if name != "MYCEL_AUTOTUNE"}
    program = "from mycel._src.foundation.settings import config; print(config.get_context('auto_tune_mode'))"
    found = [
        subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True).stdout
        for env in (untold, told)
    ]
    assert found == ["NO_TUNE\n", "GA\n"]


def test_nothing_is_tried_while_it_is_off(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = trials(monkeypatch, 9)
    ms.set_context(auto_tune_mode="NO_TUNE")
    product()
    assert made.calls == 0 and not autotune.chosen and not files(tmp_path)


def test_a_choice_is_stored_and_honoured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ms.set_context(auto_tune_mode="NO_TUNE")
    by_rule = names(product())
    ms.set_context(auto_tune_mode="GA")
    made = trials(monkeypatch, 9)
    tuned = names(product())
    assert tuned != by_rule and [way for _, way in autotune.chosen.items()] != [autotune.RULE]
    # All ways, and the best against the rule's once more.
    assert made.calls == 2 and len(files(tmp_path)) == 1
    assert names(product()) == tuned and made.calls == 2

    # Another process, for which the rule's way would be best.
    autotune.chosen.forget()
    other = trials(monkeypatch, 0)
    assert names(product()) == tuned and other.calls == 0
    # Other sizes are other work.
    assert names(product(13)) == by_rule and other.calls == 1 and len(files(tmp_path)) == 2


def test_another_number_of_threads_is_another_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    made = trials(monkeypatch, 0)
    for count in (1, 2):
        monkeypatch.setattr(autotune.dnnl, "max_threads", lambda count=count: count)
        product()
    assert made.calls == 2 and sorted(threads for (threads, _), _ in autotune.chosen.items()) == [1, 2]


@pytest.mark.parametrize("content", [None, b"by magic", b"\xff"], ids=["damaged", "unknown", "no text"])
def test_a_file_that_is_not_sound_is_made_anew(
    content: bytes | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    trials(monkeypatch, 9)
    tuned = names(product())
    (path,) = files(tmp_path)
    sound = path.read_bytes()
    if content is None:
        path.write_bytes(b"x" + sound[1:])
    else:
        code_cache.write(autotune._kind(), path.name, content)
    autotune.chosen.forget()
    again = trials(monkeypatch, 9)
    assert names(product()) == tuned and again.calls == 2
    assert path.read_bytes() == sound


def test_without_the_cache_a_choice_is_the_processs_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = trials(monkeypatch, 9)
    ms.set_context(enable_compile_cache=False)
    tuned = names(product())
    assert names(product()) == tuned and made.calls == 2 and not files(tmp_path)


def test_a_small_gain_or_one_that_does_not_come_again_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    ms.set_context(auto_tune_mode="NO_TUNE")
    by_rule = names(product())
    ms.set_context(auto_tune_mode="GA")
    calls: list[int] = []

    def slightly(plans: Sequence[dense.Plan]) -> list[float]:
        calls.append(len(plans))
        return [1.0, *[1.0 - autotune.MARGIN / 2] * (len(plans) - 1)]

    def once(plans: Sequence[dense.Plan]) -> list[float]:
        calls.append(len(plans))
        return [1.0, *[0.5 if len(calls) == 1 else 1.0] * (len(plans) - 1)]

    for measure, count in ((slightly, 1), (once, 2)):
        calls.clear()
        autotune.chosen.forget()
        monkeypatch.setattr(autotune, "measure", measure)
        ms.set_context(enable_compile_cache=False)
        assert names(product()) == by_rule and len(calls) == count
        assert [way for _, way in autotune.chosen.items()] == [autotune.RULE]


def test_the_keys_of_kept_programs_tell_tuned_ones_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_cache, "LEAST", 4)
    x = input_node(tensor_type((4,), ms.float32))
    node = x
    for _ in range(5):
        node = E.tanh(node)
    graph = Graph((x,), (node,), "chain")
    tuned = program_cache.key_of(graph, {})
    ms.set_context(auto_tune_mode="RL,GA")
    assert program_cache.key_of(graph, {}) == tuned is not None
    ms.set_context(auto_tune_mode="NO_TUNE")
    assert program_cache.key_of(graph, {}) not in (None, tuned)


def test_a_wrong_mode_is_named() -> None:
    with pytest.raises(
        ValueError, match="auto_tune_mode must be one of 'NO_TUNE', 'RL', 'GA', 'RL,GA', 'GA,RL', not True"
    ):
        ms.set_context(auto_tune_mode=True)


def test_measuring_runs_every_plan() -> None:
    ms.set_context(auto_tune_mode="NO_TUNE")
    plans = [product(), product()]
    spent = autotune.measure(plans)
    assert len(spent) == 2 and min(spent) > 0


def laid(array: np.ndarray, order: Sequence[int]) -> np.ndarray:
    """The float32 values with their axes in memory in `order`."""
    return np.ascontiguousarray(array.astype(np.float32).transpose(order)).transpose(np.argsort(order))


def operand(array: np.ndarray) -> dense.Operand:
    return dense.Operand(array.shape, tuple(s // array.itemsize for s in array.strides), "float32")


@pytest.mark.parametrize("pick", range(1, 4))
@pytest.mark.parametrize("turned", ["", "a", "b", "out", "a b", "a b out"])
@pytest.mark.parametrize("batch", [(), (3,), (2, 3)], ids=str)
def test_every_way_of_a_product(
    pick: int, turned: str, batch: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(1)
    a, b = random.standard_normal((*batch, 18, 40)), random.standard_normal((*batch, 40, 24))
    rank = len(batch) + 2
    straight, across = tuple(range(rank)), (*range(rank - 2), rank - 1, rank - 2)
    orders = {name: across if name in turned.split() else straight for name in ("a", "b", "out")}
    values = {"a": laid(a, orders["a"]), "b": laid(b, orders["b"])}
    values["out"] = laid(np.full((*batch, 18, 24), np.nan), orders["out"])
    trials(monkeypatch, pick)
    dense.matmul(*(operand(values[name]) for name in ("a", "b", "out")))(**values)
    np.testing.assert_allclose(values["out"], a @ b, rtol=1e-4, atol=1e-4)


def convolved(x: np.ndarray, w: np.ndarray, pad: int, step: int) -> np.ndarray:
    """The definition, position by position."""
    k = w.shape[2]
    wide = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    high, broad = ((n - k) // step + 1 for n in wide.shape[2:])
    out = np.zeros((x.shape[0], w.shape[0], high, broad))
    for i in range(k):
        for j in range(k):
            met = wide[:, :, i : i + step * (high - 1) + 1 : step, j : j + step * (broad - 1) + 1 : step]
            out += np.einsum("nchw,oc->nohw", met, w[:, :, i, j])
    return out


@pytest.mark.parametrize("pick", range(1, 4))
@pytest.mark.parametrize("order", [FIRST, LAST], ids=["channels first", "channels last"])
@pytest.mark.parametrize("size, pad, step", [(1, 0, 1), (3, 1, 1), (3, 1, 2)])
def test_every_way_of_a_convolution(
    pick: int, order: tuple[int, ...], size: int, pad: int, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(2)
    x, w = random.standard_normal((2, 32, 9, 8)), random.standard_normal((48, 32, size, size))
    y = convolved(x, w, pad, step)
    g = random.standard_normal(y.shape)
    window: dict[str, Any] = dict(
        strides=(step, step), padding_low=(pad, pad), padding_high=(pad, pad), dilation=(1, 1), groups=1
    )
    xs, gs, ws = laid(x, order), laid(g, order), laid(w, FIRST)
    made = trials(monkeypatch, pick)

    out = laid(np.full_like(y, np.nan), order)
    dense.conv_forward(operand(xs), operand(ws), operand(out), **window)(src=xs, weights=ws, dst=out)
    np.testing.assert_allclose(out, y, rtol=1e-4, atol=1e-3)

    # A linear map's gradients by what it gives for the unit vectors of a few places.
    by_image = laid(np.full_like(x, np.nan), order)
    dense.conv_backward_data(operand(gs), operand(ws), operand(by_image), **window)(
        diff_dst=gs, weights=ws, diff_src=by_image
    )
    by_weights = laid(np.full_like(w, np.nan), FIRST)
    dense.conv_backward_weights(operand(xs), operand(gs), operand(by_weights), **window)(
        src=xs, diff_dst=gs, diff_weights=by_weights
    )
    for _ in range(4):
        at = tuple(int(random.integers(n)) for n in x.shape)
        unit = np.zeros_like(x)
        unit[at] = 1
        assert by_image[at] == pytest.approx((g * convolved(unit, w, pad, step)).sum(), rel=1e-4, abs=1e-3)
        at = tuple(int(random.integers(n)) for n in w.shape)
        unit = np.zeros_like(w)
        unit[at] = 1
        assert by_weights[at] == pytest.approx((g * convolved(x, unit, pad, step)).sum(), rel=1e-4, abs=1e-3)
    assert made.calls > 0


def test_a_compiled_gradient_differs_in_its_rounding_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(4)
    x, w, v = (random.standard_normal(s).astype(np.float32) for s in ((2, 16, 10, 11), (24, 16, 1, 1), (24 * 110, 7)))

    def results() -> list[np.ndarray]:
        def loss(x: Tensor, w: Tensor, v: Tensor) -> Tensor:
            return (ops.matmul(ops.relu(ops.conv2d(x, w)).reshape(2, -1), v) ** 2).sum()

        found = ms.jit(ms.grad(loss, grad_position=(0, 1, 2)))(Tensor(x), Tensor(w), Tensor(v))
        return [t.asnumpy() for t in found]

    ms.set_context(auto_tune_mode="NO_TUNE")
    by_rule = results()
    ms.set_context(auto_tune_mode="GA")
    made = trials(monkeypatch, 1)
    tuned = results()
    assert made.calls > 0 and any(way != autotune.RULE for _, way in autotune.chosen.items())
    for a, b in zip(tuned, by_rule):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6 * np.abs(b).max())
