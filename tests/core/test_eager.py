"""Operations at once: contexts, memory over long loops, what is remembered of kernels, errors,
threads.
"""

from __future__ import annotations

import gc
import os
import pathlib
import threading
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, nn
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims import shape as S
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.autograd import compile_threshold
from mycel._src.tensors.core.autograd import recording as record
from mycel._src.tensors.core.autograd.recording import Recorder, current_recorder
from mycel._src.tensors.core.execution_context import Context

STATUS = pathlib.Path("/proc/self/statm")


def resident() -> int:
    """The bytes of memory that the process holds."""
    return int(STATUS.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


needs_proc = pytest.mark.skipif(not STATUS.exists(), reason="needs /proc to see the process's memory")


def test_apply_runs_a_primitive() -> None:
    x, y = Tensor([1.0, 2.0]), Tensor([3.0, 5.0])
    assert eager.apply(E.add, x, y).tolist() == [4, 7]
    assert eager.apply(S.BROADCAST_TO, Tensor(2.0), shape=(2, 2)).tolist() == [[2, 2], [2, 2]]
    assert eager.execute(E.neg, [x], {}).tolist() == [-1, -2]
    before = len(eager._entries)
    eager.apply(E.add, Tensor([9.0, 9.0]), y)
    assert len(eager._entries) == before


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda: eager.apply(E.add, Tensor([1.0]), Tensor([1])), TypeError, "add"),
        (
            lambda: eager.apply(E.add, Tensor([1.0, 2.0]), Tensor([1.0, 2.0, 3.0])),
            ValueError,
            "add: shapes .* do not broadcast",
        ),
        (lambda: eager.apply(E.exp, Tensor([1])), TypeError, "exp takes floating"),
        (
            lambda: eager.apply(E.neg, Tensor(shape=(None,), dtype=ms.float32)),
            (TypeError, ValueError),
            "not known|declares a shape",
        ),
        (lambda: eager.apply(R.reduce_sum, Tensor([1.0]), axes=(4,), keepdims=False), ValueError, "4"),
    ],
)
def test_errors_name_the_operation_and_leave_nothing(call: Any, error: Any, text: str) -> None:
    before = eager._entries.items()
    with pytest.raises(error, match=text):
        call()
    assert eager._entries.items() == before and eager.current_context() is None


# Contexts.


class Counting(Context):
    def __init__(self) -> None:
        self.names: list[str] = []

    def emit(self, primitive: Any, inputs: Sequence[Tensor], params: dict[str, Any]) -> Any:
        self.names.append(primitive.name)
        return eager.execute(primitive, inputs, params)


def test_a_context_sees_every_operation_of_its_thread() -> None:
    outer, inner = Counting(), Counting()
    x = Tensor([1.0, 2.0])
    with eager.use_context(outer):
        assert eager.current_context() is outer and eager.active == 1
        x + x
        with eager.use_context(inner):
            x * x
        with eager.use_context(None):
            x - x
        other = threading.Thread(target=lambda: (x / x, x / x))
        other.start()
        other.join()
        -x
    assert (
        (outer.names, inner.names) == (["add", "neg"], ["mul"])
        and eager.current_context() is None
        and eager.active == 0
    )


def test_a_context_ends_with_an_exception() -> None:
    with pytest.raises(KeyError):
        with eager.use_context(Counting()):
            raise KeyError
    assert eager.current_context() is None and eager.active == 0


def test_a_recording_is_told_from_others() -> None:
    assert current_recorder() is None
    recorder = Recorder()
    x = Tensor([2.0])
    with eager.use_context(recorder):
        assert current_recorder() is recorder
        marked = recorder.mark(x)
        y = marked * marked + x
        assert recorder.node_of(x) is None and recorder.node_of(y) is not None and Recorder().node_of(y) is None
        recorder.depth = 1
        (gradient,) = recorder.pullback([y], [Tensor([1.0])], [recorder.node_of(marked)])
        assert recorder.pullback([x], [Tensor([1.0])], [recorder.node_of(marked)]) == [None]
        recorder.finish()
    assert gradient.tolist() == [4] and not y._node.inputs and y.tolist() == [6]


# Memory.


@needs_proc
def test_a_hundred_thousand_operations_take_no_more_memory() -> None:
    x, y = Tensor(np.ones((32, 32), np.float32)), Tensor(np.ones((32, 32), np.float32))
    for _ in range(1000):
        x = (x + y) * 0.5
    gc.collect()
    before = resident()
    for _ in range(50_000):
        x = (x + y) * 0.5
    gc.collect()
    assert resident() - before < 4 << 20 and x.tolist()[0][0] == 1


@needs_proc
def test_large_tensors_are_given_back() -> None:
    x = Tensor(np.ones((1 << 20,), np.float32))
    for _ in range(3):
        x = x + 1
    before = resident()
    for _ in range(200):
        x = x + 1
    assert resident() - before < 64 << 20 and float(x[0]) == 204


@needs_proc
def test_kept_losses_do_not_keep_what_led_to_them() -> None:
    w = ms.Parameter(Tensor(np.full((64, 4096), 0.01, np.float32)), name="w")
    x = Tensor(np.ones((64, 64), np.float32))
    step = ms.value_and_grad(lambda a: ms.ops.tanh(ms.ops.tanh(a @ w) * 2).sum(), None, [w])
    kept = [step(x)[0] for _ in range(3)]
    before = resident()
    kept += [step(x)[0] for _ in range(30)]
    gc.collect()
    assert resident() - before < 16 << 20 and len({float(v) for v in kept}) == 1


def test_cyclic_garbage_is_collected() -> None:
    class Holder(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.w = ms.Parameter(Tensor([1.0]), name="w")
            self.grad_fn = ms.value_and_grad(self.forward, None, [self.w])

        def forward(self, x: Any) -> Any:
            return (x * self.w).sum()

        def construct(self, x: Any) -> Any:
            return self.grad_fn(x)

    cell = Holder()
    cell(Tensor([1.0]))
    dead = [weakref.ref(cell), weakref.ref(cell.w)]
    t = Tensor([1.0])
    t.self_ = t
    dead.append(weakref.ref(t))
    del cell, t
    gc.collect()
    assert [r() for r in dead] == [None, None, None]


def test_intermediate_tensors_die_at_once() -> None:
    x = Tensor([1.0, 2.0])
    y = x * 2
    dead = weakref.ref(y)
    z = y + 1
    del y
    assert dead() is None and z.tolist() == [3, 5]


# What is remembered.


def test_what_is_remembered_of_kernels_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eager._entries, "most", 20)
    monkeypatch.setattr(record._derived, "most", 5)
    record._derived.forget()
    x = Tensor(np.arange(100.0))
    assert [float(x[i]) for i in range(60)] == list(range(60))
    sums = [float((Tensor(np.ones(n)) + Tensor(np.ones(n))).sum()) for n in range(1, 40)]
    assert sums == [2.0 * n for n in range(1, 40)]
    assert len(eager._entries) <= 20 and sum(map(len, eager._pairs.values())) <= 20
    for n in range(1, 15):
        assert ms.grad(lambda a: (a * a).sum())(Tensor(np.ones(n))).tolist() == [2.0] * n
    assert len(record._derived) <= 5


def test_backward_graphs_are_compiled_once_for_a_structure() -> None:
    f = ms.grad(lambda a: (ms.ops.sin(a) * a * 3).sum())
    for _ in range(compile_threshold.OFTEN):
        f(Tensor([1.0, 2.0, 5.0, 7.0]))
    before = len(record._derived)
    for i in range(5):
        f(Tensor([1.0, 2.0, 5.0, float(i)]))
    assert len(record._derived) == before


# Threads.


def test_gradients_in_four_threads() -> None:
    w = [ms.Parameter(Tensor(np.full((4, 4), n + 1.0)), name=f"w{n}") for n in range(4)]
    found: dict[int, Any] = {}
    start = threading.Barrier(4)

    def work(n: int) -> None:
        start.wait()
        for _ in range(20):
            value, gradients = ms.value_and_grad(lambda a: ((a @ w[n]) ** 2).sum(), None, [w[n]])(Tensor(np.eye(4)))
        found[n] = (float(value), gradients[0].tolist())

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == {n: (16 * (n + 1.0) ** 2, [[2 * (n + 1.0)] * 4] * 4) for n in range(4)} and eager.active == 0
