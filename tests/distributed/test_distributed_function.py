"""Functions that ranks compute together: results and parameters as on one device, with threads as
ranks.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.transport import thread_ranks
from mycel._src.foundation.errors import CompileError, ShapeError
from mycel._src.staging.distributed import Layouts, distribute
from mycel._src.staging.distributed.sharded_tensors import held
from tests.parallel.networks import TASKS, Task
from tests.parallel.ways import WAYS, fits, layouts

STEPS = 3
_making = threading.Lock()


def task(name: str) -> Task:
    """A network whose values are the same each time."""
    with _making:
        ms.set_seed(3)
        np.random.seed(3)
        return TASKS[name](STEPS)


def values(made: Task) -> dict[str, np.ndarray]:
    return {p.name: p.asnumpy().copy() for p in made.network.get_parameters()}


def run(made: Task, step: Callable[..., Any]) -> list[float]:
    return [float(step(*map(ms.Tensor, batch))) for batch in made.batches]


@pytest.mark.parametrize("name, count", [("lenet", 2), ("experts", 3), ("recommender", 4)])
def test_training_is_that_of_one_device(name: str, count: int) -> None:
    alone = task(name)
    losses = run(alone, ms.jit(alone.step))
    states = values(alone)
    for way in WAYS:
        if not fits(alone, way, count):
            continue

        def rank(_: int, way: str = way) -> tuple[list[float], dict[str, np.ndarray]]:
            made = task(name)
            found = run(made, distribute(made.step, layouts(made, way, count)))
            return found, values(made)

        for found, own in thread_ranks.run(count, rank):
            np.testing.assert_allclose(found, losses, rtol=1e-5)
            for key, value in states.items():
                np.testing.assert_allclose(own[key], value, atol=5e-5, err_msg=f"{way}: {key}")


def test_each_rank_may_give_its_part() -> None:
    x = np.arange(24, dtype=np.float32).reshape(6, 4)

    def rank(own: int) -> Any:
        made = Layouts(Mesh((3,), ("dp",)), [("dp",)], parts=True)
        return distribute(lambda a, b: (a * 2, (a * b).sum()), made)(
            ms.Tensor(x[2 * own : 2 * own + 2]), ms.Tensor(3.0)
        )

    for double, total in thread_ranks.run(3, rank):
        np.testing.assert_array_equal(double.asnumpy(), 2 * x)
        assert float(total) == 3 * x.sum()


def test_parameters_stay_divided_until_they_are_read() -> None:
    def rank(own: int) -> Any:
        w = ms.Parameter(ms.Tensor(np.arange(8, dtype=np.float32)), name="w")
        grow = distribute(
            lambda: ops.assign_add(w, ms.Tensor(np.ones(8, np.float32))), Layouts(_four, (), {"w": ("x",)})
        )
        grow()
        part = held(w)
        grow()
        kept = held(w) is not None
        return part is not None, kept, type(w).__name__, w.asnumpy().tolist(), held(w) is None

    found = thread_ranks.run(4, rank)
    assert found == [(True, True, "Parameter", [2.0 + k for k in range(8)], True)] * 4


_four = Mesh((4,), ("x",))


def test_shapes_that_differ_are_compiled_anew() -> None:
    def rank(own: int) -> list[float]:
        total = distribute(lambda a: (a * a).sum(), Layouts(Mesh((2,), ("dp",)), [("dp",)]))
        return [float(total(ms.Tensor(np.arange(n, dtype=np.float32)))) for n in (4, 5, 7, 4, 1)]

    want = [float((np.arange(n, dtype=np.float32) ** 2).sum()) for n in (4, 5, 7, 4, 1)]
    assert thread_ranks.run(2, rank) == [want, want]


def test_buffers_of_arguments_in_containers_and_by_name() -> None:
    def rank(own: int) -> Any:
        both = distribute(
            lambda pair, *, scale: pair["a"] * scale + pair["b"][0], Layouts(Mesh((2,), ("dp",)), [("dp",)])
        )
        a, b = ms.Tensor([1.0, 2.0]), ms.Tensor([10.0, 20.0])
        return both({"a": a, "b": [b]}, scale=ms.Tensor(3.0)).tolist()

    assert thread_ranks.run(2, rank) == [[13.0, 26.0]] * 2


def test_refusals() -> None:
    two = Mesh((2,), ("dp",))
    with pytest.raises(CompileError, match="divided among 2 ranks, but there are 1"):
        distribute(lambda x: x, Layouts(two, [("dp",)]))(ms.Tensor([1.0]))
    with pytest.raises(TypeError, match="a function"):
        distribute(3, Layouts(two))  # type: ignore[arg-type]

    def rank(own: int) -> None:
        distribute(lambda x: x * 2, Layouts(two, [("dp", None)]))(ms.Tensor([1.0]))

    with pytest.raises(ShapeError, match="argument 0"):
        thread_ranks.run(2, rank)

    def by_value(own: int) -> None:
        distribute(lambda x: x if float(x.sum()) > 0 else -x, Layouts(two, [("dp",)]))(ms.Tensor([1.0, 2.0]))

    with pytest.raises((CompileError, RuntimeError)):
        thread_ranks.run(2, by_value)


def test_batch_normalisation_sees_all_rows() -> None:
    x = np.random.default_rng(0).normal(size=(6, 3, 4, 4)).astype(np.float32)

    def made() -> tuple[nn.Cell, Any]:
        with _making:
            ms.set_seed(1)
            net = nn.BatchNorm2d(3)
        net.set_train()
        return net, lambda v: net(v).sum(0)

    net, function = made()
    want, mean = function(ms.Tensor(x)).asnumpy(), net.moving_mean.asnumpy()

    def rank(own: int) -> Any:
        net, function = made()
        found = distribute(function, Layouts(Mesh((3,), ("dp",)), [("dp",)]))(ms.Tensor(x))
        return found.asnumpy(), net.moving_mean.asnumpy()

    for found, own in thread_ranks.run(3, rank):
        np.testing.assert_allclose(found, want, atol=1e-5)
        np.testing.assert_allclose(own, mean, rtol=1e-5)
