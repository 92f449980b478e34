"""Rounds of federated learning: the same here, in a library and on a board; the server's mean."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel.deploy import Aggregator, build, client_round, client_step
from tests.deploy.boards import missing_tools, run
from tests.deploy.loaded import Loaded
from tests.deploy.networks import LeNet

OPTIMIZERS: dict[str, Any] = {
    "sgd": lambda p: nn.SGD(p, 0.1),
    "momentum": lambda p: nn.Momentum(p, 0.05, 0.9),
    "adam": lambda p: nn.Adam(p, 0.01),
    "scheduled": lambda p: nn.AdamWeightDecay(p, nn.CosineDecayLR(0.001, 0.02, 4), weight_decay=0.01),
}


def _client(kind: str = "sgd", clip: Any = None) -> tuple[Any, list[ms.Tensor]]:
    ms.set_seed(1)
    net = nn.SequentialCell(nn.Dense(6, 8), nn.ReLU(), nn.Dense(8, 3))
    update = OPTIMIZERS[kind](net.trainable_params())
    step = client_step(lambda x, y: ops.cross_entropy(net(x), y), update, clip=clip)
    return step, [p.copy() for p in update.parameters]


def _batches(count: int, seed: int = 0) -> list[tuple[ms.Tensor, ms.Tensor]]:
    random = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        x = random.normal(0, 1, (4, 6)).astype(np.float32)
        found.append((ms.Tensor(x), ms.Tensor(x[:, :3].argmax(1).astype(np.int32))))
    return found


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="runs code for x86-64")
@pytest.mark.parametrize("clip", [None, 0.05])
@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_a_library_runs_the_round_of_the_server(kind: str, clip: Any) -> None:
    step, weights = _client(kind, clip)
    batches = _batches(3)
    library = build(step, ms.Tensor(0, ms.int32), *batches[0], *weights, target="x86-64-v2", name="client")
    losses, moved = client_round(ms.jit(step), batches, weights)
    again, eager = client_round(step, batches, weights)
    loaded = Loaded(library)
    for _ in range(2):
        for k, batch in enumerate(batches):
            loss, *found = loaded(ms.Tensor(k, ms.int32), *batch, *weights)
            np.testing.assert_allclose([loss, again[k].asnumpy()], [losses[k].asnumpy()] * 2, rtol=1e-6)
        for a, b, c in zip(found, eager, moved):
            np.testing.assert_allclose(a, c.asnumpy(), atol=1e-6)
            np.testing.assert_allclose(b.asnumpy(), c.asnumpy(), atol=1e-6)
    norm = np.sqrt(sum(float((d.asnumpy().astype(np.float64) ** 2).sum()) for d in moved))
    assert norm > 0.05 if clip is None else norm <= 0.05 * (1 + 1e-5)


@pytest.mark.skipif(bool(missing_tools()), reason=f"needs {missing_tools()}: make device installs it")
def test_a_round_on_a_board(tmp_path: Path) -> None:
    ms.set_seed(2)
    net = LeNet()
    update = nn.Momentum(net.trainable_params(), 0.05, 0.9)
    step = client_step(lambda x, y: ops.cross_entropy(net(x), y), update, clip=0.2)
    weights = [p.copy() for p in update.parameters]
    random = np.random.RandomState(3)
    batches = [(random.randn(4, 1, 28, 28).astype("f4"), random.randint(0, 10, 4).astype("i4")) for _ in range(2)]
    given = [[np.array(k, "i4"), *b, *[w.asnumpy() for w in weights]] for k, b in enumerate(batches)]
    library = build(step, *map(ms.Tensor, given[0]), target="cortex-m4", name="client")
    done = run(library, given, tmp_path)
    losses, moved = client_round(ms.jit(step), [tuple(map(ms.Tensor, b)) for b in batches], weights)
    np.testing.assert_allclose([float(r[0]) for r in done.results], [float(v) for v in losses], atol=1e-6)
    for one, other in zip(done.results[-1][1:], moved):
        np.testing.assert_allclose(one, other.asnumpy(), atol=1e-6)
    # Weights and momenta change where they lie, so the arena is that of a training step.
    assert library.arena_bytes < 128 * 1024


def test_rounds_learn_what_no_client_has() -> None:
    step, weights = _client("sgd")
    run_step, server = ms.jit(step), [ms.Parameter(w.copy(), name=f"w{k}") for k, w in enumerate(weights)]
    aggregate, first = Aggregator(server), None
    for round_ in range(15):
        found = [client_round(run_step, _batches(4, 10 * round_ + client), server) for client in range(3)]
        first = found[0][0][0] if first is None else first
        aggregate([moved for _, moved in found], counts=[4, 4, 8])
    assert float(client_round(run_step, _batches(1, 999), server)[0][0]) < 0.6 * float(first)


def test_the_server_weighs_clients_and_may_have_an_optimizer() -> None:
    random = np.random.default_rng(0)
    start = random.normal(0, 1, (3, 2)).astype(np.float32)
    moves = random.normal(0, 1, (4, 3, 2)).astype(np.float32)
    p = ms.Parameter(ms.Tensor(start), name="p")
    Aggregator([p])([[m] for m in moves], counts=[1, 2, 0, 5])
    wanted = start + np.average(moves.astype(np.float64), axis=0, weights=[1, 2, 0, 5])
    np.testing.assert_allclose(p.asnumpy(), wanted, rtol=1e-6)
    p.set_data(ms.Tensor(start))
    Aggregator([p], nn.SGD([p], 0.5))([[ms.Tensor(m)] for m in moves])
    np.testing.assert_allclose(p.asnumpy(), start + 0.5 * moves.mean(0), rtol=1e-5, atol=1e-6)


def test_what_is_refused() -> None:
    p = ms.Parameter(ops.zeros((2,)), name="p")
    server, good = Aggregator([p]), [np.ones(2, np.float32)]
    for moved, counts, said in (
        ([], None, "there is no client"),
        ([good], [1, 2], "counts must be 1 numbers"),
        ([good], [-1], "counts must be 1 numbers"),
        ([good, good], [0, 0], "not all 0"),
        ([good, [np.ones(3)]], None, "client 1 moved p"),
        ([good, []], None, "client 1 gives 0 tensors"),
        ([good, [np.array([1, np.nan])]], None, "client 1 moved p by what is not finite"),
    ):
        with pytest.raises(ValueError, match=said):
            server(moved, counts)  # type: ignore[arg-type]
    assert (p.asnumpy() == 0).all()
    with pytest.raises(ValueError, match="the optimizer must have the parameters of the server"):
        Aggregator([p], nn.SGD([ms.Parameter(ops.zeros((2,)), name="q")], 0.1))
    with pytest.raises(TypeError, match="update must be an optimizer"):
        client_step(lambda x: x, None)  # type: ignore[arg-type, return-value]
    for clip in (0, -1.0, float("inf"), True):
        with pytest.raises(ValueError, match="clip must be None or a finite number above 0"):
            client_step(lambda x: x, nn.SGD([p], 0.1), clip=clip)
    step, weights = _client()
    with pytest.raises(ValueError, match="there is no batch"):
        client_round(step, [], weights)
    with pytest.raises(ValueError, match="is given for it"):
        step(ms.Tensor(0, ms.int32), *_batches(1)[0], *weights[::-1])
