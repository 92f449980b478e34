"""Training steps as pipelines, with threads as ranks, compared with one device."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.prims.distributed.point_to_point import messages
from mycel._src.compiler.transport import thread_ranks
from mycel._src.engines.select import engine
from mycel._src.foundation.errors import CompileError, ShapeError
from mycel._src.staging.distributed import Layouts, Pipeline, distribute
from mycel._src.staging.distributed.sharded_tensors import held
from mycel._src.staging.frontend.parallelism.micro_batches import cut_into
from mycel.parallel.auto_parallel import AutoParallel

_making = threading.Lock()
_random = np.random.default_rng(5)
BATCHES = [(_random.normal(size=(16, 6)).astype("f4"), _random.integers(0, 3, 16).astype("i4")) for _ in range(4)]
TOKENS = [tuple(_random.integers(0, 9, (8, 5)).astype("i4") for _ in range(2)) for _ in range(4)]
ONE = Mesh((1,), ("dp",))
Result = tuple[list[float], dict[str, Any]]


@pytest.fixture(autouse=True)
def _settings() -> Iterator[None]:
    mode = ms.get_context("mode")
    yield
    ms.set_context(mode=mode)
    ms.reset_auto_parallel_context()


class Net(nn.Cell):
    """Dense layers and a head; with `again` the layers are computed anew for their gradients."""

    def __init__(self, width: int = 6, again: bool = False) -> None:
        super().__init__()
        self.first = nn.Dense(6, width, activation="tanh")
        self.layers = nn.SequentialCell([nn.Dense(width, width, activation="tanh") for _ in range(3)])
        self.head = nn.Dense(width, 3)
        if again:
            self.first.recompute()
            self.layers[2].recompute()

    def construct(self, x: Any) -> Any:
        return self.head(self.layers(self.first(x)))


class Tied(nn.Cell):
    """A table of embeddings that the first and the last stage use."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.middle = nn.Embedding(9, 4), nn.Dense(4, 4)

    def construct(self, tokens: Any) -> Any:
        x = ops.tanh(self.middle(self.words(tokens)))
        return ops.matmul(x, self.words.embedding_table.T).reshape(-1, 9)


def step_of(net: nn.Cell) -> Callable[..., Any]:
    weights = net.trainable_params()
    update = nn.Adam(weights, 1e-2)
    derive = ms.value_and_grad(lambda x, y: ops.cross_entropy(net(x), y.reshape(-1)), None, weights)

    def step(x: Any, y: Any) -> Any:
        loss, gradients = derive(x, y)
        update(gradients)
        return loss

    return step


def trained(make: Callable[[], nn.Cell], wrap: Callable[[Any], Any], batches: Any = BATCHES) -> Result:
    """The losses of a new network, and its parameters afterwards."""
    with _making:
        np.random.seed(1)
        ms.set_seed(1)
        net = make()
        step = wrap(step_of(net))
    losses = [float(step(*map(ms.Tensor, batch))) for batch in batches]
    return losses, {p.name: p.asnumpy().copy() for p in net.get_parameters()}


def agree(found: list[Result], expected: Result) -> None:
    for losses, values in found:
        np.testing.assert_allclose(losses, expected[0], rtol=1e-5)
        for name, value in expected[1].items():
            np.testing.assert_allclose(values[name], value, atol=1e-5, err_msg=name)


def piped(make: Callable[[], nn.Cell], pipeline: Pipeline, mesh: Mesh = ONE, batches: Any = BATCHES) -> list[Result]:
    layouts = Layouts(mesh, [("dp",)] * 2)
    return thread_ranks.run(
        pipeline.stages * mesh.size,
        lambda rank: trained(make, lambda step: distribute(step, layouts, pipeline), batches),
    )


CUT = ["layers.1"]


@pytest.mark.parametrize(
    ("pipeline", "mesh"),
    [
        (Pipeline(2, 4, "gpipe", CUT), ONE),
        (Pipeline(2, 4, "1f1b", CUT), ONE),
        (Pipeline(2, 4, "interleaved", ["layers.0", "layers.1", "head"], 2), ONE),
        (Pipeline(2, 4), ONE),
        (Pipeline(2, 4, "1f1b", CUT), Mesh((2,), ("dp",))),
        (Pipeline(4, 8, "1f1b", ["layers.0", "layers.1", "head"]), Mesh((2,), ("dp",))),
    ],
    ids=["gpipe", "1f1b", "interleaved", "by cost", "2 x 2", "4 x 2"],
)
def test_schedules_train_as_one_device(pipeline: Pipeline, mesh: Mesh) -> None:
    agree(piped(Net, pipeline, mesh), trained(Net, ms.jit))


def test_a_parameter_of_two_stages_has_one_gradient() -> None:
    expected = trained(Tied, ms.jit, TOKENS)
    agree(piped(Tied, Pipeline(2, 2, cuts=["middle"]), batches=TOKENS), expected)
    agree(piped(Tied, Pipeline(3, 4, "gpipe"), batches=TOKENS), expected)


def test_recomputed_layers_train_as_others() -> None:
    expected = trained(Net, ms.jit)
    agree(piped(lambda: Net(again=True), Pipeline(2, 4, cuts=CUT)), expected)
    agree(piped(lambda: Net(again=True), Pipeline(2, 2, cuts=["layers.2"]), Mesh((2,), ("dp",))), expected)


def stages(pipeline: Pipeline, rows: int = 16, width: int = 6) -> list[Any]:
    """The graphs of the stages of a step, each with the names of its parameters."""
    batch = ms.Tensor(np.ones((rows, 6), "f4")), ms.Tensor(np.zeros(rows, "i4"))
    step = distribute(step_of(Net(width)), Layouts(ONE), pipeline)

    def run(rank: int) -> Any:
        if rank:
            return None
        program: Any = step.divided(*batch)
        found = [program.stage(k) for k in range(pipeline.stages)]
        return [(s, [program.version.tensors[k - 2].name for k in s.inputs if k > 1]) for s in found]

    result: list[Any] = thread_ranks.run(pipeline.stages, run)[0]
    return result


def test_stages_send_activations_and_their_gradients_only() -> None:
    (first, _), (second, names) = stages(Pipeline(2, 4, "1f1b", CUT))
    assert [first.sent, second.sent] == [16 * 6 * 4, 16 * 6 * 4 + 4]  # and the loss
    sent = [[len(n.params["sent"]) for n in s.graph.nodes if n.prim is messages] for s in (first, second)]
    assert sum(sent[0]) == 4 and sum(sent[1]) == 5
    assert "head.weight" in names and "first.weight" not in names


def test_one_forward_one_backward_takes_less_memory() -> None:
    found = {}
    for schedule in ("gpipe", "1f1b"):
        first, _ = stages(Pipeline(2, 8, schedule, CUT), 1 << 14, 32)[0]
        found[schedule] = engine().footprint(first.graph).bound
    assert found["1f1b"] < 0.6 * found["gpipe"], found


class Staged(Net):
    def __init__(self) -> None:
        super().__init__()
        self.first.pipeline_stage = self.layers.pipeline_stage = 0
        self.head.pipeline_stage = 1


class WithLoss(nn.Cell):
    def __init__(self, net: nn.Cell) -> None:
        super().__init__(auto_prefix=False)
        self.net = net

    def construct(self, x: Any, y: Any) -> Any:
        return ops.cross_entropy(self.net(x), y)


def in_mode(net: Callable[[], nn.Cell], full: Any = nn.PipelineCell, wrap: Any = lambda cell: cell) -> Any:
    """The losses of MindSpore's form of a pipeline, and without one."""

    def run(rank: int) -> list[float]:
        with _making:
            np.random.seed(1)
            ms.set_seed(1)
            cell = net()
            step = wrap(nn.TrainOneStepCell(full(WithLoss(cell), 4), nn.Momentum(cell.trainable_params(), 0.02, 0.9)))
            call = step if isinstance(step, AutoParallel) else ms.jit(step)
        return [float(call(*map(ms.Tensor, batch))) for batch in BATCHES]

    return run


@pytest.mark.parametrize("interleaved", [False, True])
def test_the_mode_makes_pipelines_of_pipeline_cells(interleaved: bool) -> None:
    expected = in_mode(Net)(0)
    ms.set_auto_parallel_context(
        parallel_mode="semi_auto_parallel",
        device_num=4,
        full_batch=True,
        pipeline_stages=2,
        pipeline_config={"pipeline_interleave": interleaved, "pipeline_scheduler": "1f1b"},
    )
    found = thread_ranks.run(4, in_mode(Staged))
    np.testing.assert_allclose(found, [expected] * 4, rtol=1e-5)


def test_stages_are_cut_by_cost_and_by_a_table() -> None:
    expected = in_mode(Net)(0)
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", device_num=2, full_batch=True, pipeline_stages=2)
    np.testing.assert_allclose(thread_ranks.run(2, in_mode(Net)), [expected] * 2, rtol=1e-5)
    table = {"net.first": 0, "net.layers": 0, "net.head": 1}
    cell = lambda net, count: nn.PipelineCell(net, count, table)
    np.testing.assert_allclose(thread_ranks.run(2, in_mode(Net, cell)), [expected] * 2, rtol=1e-5)
    with pytest.raises(ValueError, match="'seqpipe' has no schedule here"):
        ms.set_auto_parallel_context(pipeline_config={"pipeline_interleave": True, "pipeline_scheduler": "seqpipe"})
        thread_ranks.run(2, in_mode(Net))


def test_evaluation_runs_on_the_stages() -> None:
    def run(rank: int) -> Any:
        with _making:
            np.random.seed(1)
            ms.set_seed(1)
            net = Staged()
        return ms.jit(net)(ms.Tensor(BATCHES[0][0])).asnumpy()

    expected = run(0)
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", device_num=2, full_batch=True, pipeline_stages=2)
    for found in thread_ranks.run(2, run):
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_functions_cut_at_other_places_share_parameters() -> None:
    """After training, which leaves parameters on the ranks of their stages, others use them:
    in other stages, by all ranks together, and in training again.
    """

    def run(wrap: Callable[[Any, list[str]], Any], whole: Callable[[Any], Any]) -> list[Any]:
        with _making:
            np.random.seed(1)
            ms.set_seed(1)
            net = Net()
            train = wrap(step_of(net), CUT)
            found: list[Any] = []
            others = [wrap(lambda x, y: net(x), ["head"]), whole(lambda x, y: net(x)), wrap(step_of(net), ["layers.2"])]
        for batch in BATCHES[:2]:
            given = [ms.Tensor(a) for a in batch]
            found += [train(*given).asnumpy(), *[f(*given).asnumpy() for f in others]]
        return found

    expected = run(lambda f, cuts: ms.jit(f), ms.jit)
    layouts = Layouts(ONE), Layouts(Mesh((2,), ("dp",)), [("dp",)] * 2)
    piped = lambda f, cuts: distribute(f, layouts[0], Pipeline(2, 4, cuts=cuts))
    for found in thread_ranks.run(2, lambda rank: run(piped, lambda f: distribute(f, layouts[1]))):
        for value, wanted in zip(found, expected):
            np.testing.assert_allclose(value, wanted, atol=1e-5)


def test_micro_batches_are_the_batch() -> None:
    def in_parts(step: Any) -> Any:
        compiled = ms.jit(step)

        def call(*batch: Any) -> Any:
            with cut_into(4):
                return compiled(*batch)

        return call

    agree([trained(Net, in_parts)], trained(Net, ms.jit))


@pytest.mark.parametrize(
    ("function", "args", "kind", "text"),
    [
        (lambda x: x.sum(), (ms.Tensor(np.ones((6, 2), "f4")),), ValueError, "6 rows does not divide into 4 parts"),
        (
            lambda x, y: x.sum() * y.sum(),
            (ms.Tensor(np.ones((4, 2), "f4")), ms.Tensor(np.ones(3, "f4"))),
            ValueError,
            "the arguments have 4, 3 rows",
        ),
        (lambda x: x.sum(0), (ms.Tensor(np.ones((8, 3), "f4")),), ValueError, "a result of shape"),
    ],
)
def test_batches_that_cannot_be_cut(function: Any, args: Any, kind: Any, text: str) -> None:
    with cut_into(4), pytest.raises(kind, match=text):
        ms.jit(ms.value_and_grad(function))(*args)


def refused(pipeline: Pipeline | None, make: Callable[[], nn.Cell] = Net) -> None:
    piped(make, pipeline or Pipeline(2, 4))


@pytest.mark.parametrize(
    ("run", "kind", "text"),
    [
        (lambda: Pipeline(2, 4, "gpip"), ValueError, "schedule must be one of"),
        (lambda: Pipeline(2, 3, "interleaved", chunks=2), ValueError, "multiple of 2 microbatches"),
        (lambda: Pipeline(2, 4, cuts=["a", "b"]), ValueError, "2 stages need 1 cuts, not 2"),
        (lambda: refused(Pipeline(2, 4, cuts=["nobody"])), CompileError, "no Cell 'nobody' computes anything"),
        (lambda: refused(Pipeline(3, 4), Staged), CompileError, "nothing is computed in stage 2"),
        (lambda: refused(Pipeline(3, 4, cuts=["layers.1", "layers.0"])), ShapeError, "which comes later"),
        (
            lambda: distribute(step_of(Net()), Layouts(ONE), Pipeline(2, 4))(*map(ms.Tensor, BATCHES[0])),
            CompileError,
            "divided among 2 ranks, but there are 1",
        ),
    ],
)
def test_what_does_not_fit_is_refused(run: Callable[[], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        run()


def test_a_network_under_auto_parallel() -> None:
    expected = in_mode(Net)(0)

    pipelines: list[Any] = []

    def divided(step: nn.Cell) -> nn.Cell:
        net = AutoParallel(step)
        pipelines.append(net)
        net.pipeline(stages=2, scheduler="1f1b")
        return net

    ms.set_context(mode=ms.GRAPH_MODE)
    ms.set_auto_parallel_context(device_num=2)
    found = thread_ranks.run(2, in_mode(Staged, wrap=divided))
    np.testing.assert_allclose(found, [expected] * 2, rtol=1e-5)
    for net in pipelines:  # each rank has the parameters of its stage only
        known = [held(p) for p in net.trainable_params()]
        assert {h is not None and h.piece is None for h in known} == {True, False}
