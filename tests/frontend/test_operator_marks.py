"""Operators of a divided program have marks around them, which change no value."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Layout, Parameter, Tensor, nn, ops
from mycel._src.compiler.prims import matrix_product
from mycel._src.compiler.prims.distributed.sharding_constraint import constrain
from mycel._src.compiler.prims.factors import Factor, Place
from mycel._src.compiler.transforms.operator_regions import Region, regions_of, strategies_of, unmarked, values_of
from mycel._src.foundation.settings.parallel_settings import in_force
from mycel.parallel.auto_parallel import AutoParallel
from mycel.parallel.regions import is_compiled, parallel_info, shard_strategy

CHECKED = dict.fromkeys(("ops.Reshard", "ops.reshard"), "the tensor itself")
rng = np.random.default_rng(3)


@pytest.fixture(autouse=True)
def _divided() -> Iterator[None]:
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", device_num=8)
    yield
    ms.reset_auto_parallel_context()


def values(*shape: int) -> Tensor:
    return Tensor(rng.normal(size=shape).astype(np.float32))


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.w = Parameter(values(32, 64), name="w")
        self.matmul: Any = ops.MatMul().shard(((2, 4), (4, 1)))
        self.relu: Any = ops.ReLU().shard(((8, 1),), ((8, 1),))

    def construct(self, x: Any) -> Any:
        return self.relu(self.matmul(x, self.w))


class Loss(nn.Cell):
    def __init__(self, network: nn.Cell) -> None:
        super().__init__()
        self.network = network
        self.mean: Any = ops.ReduceMean()

    def construct(self, x: Any) -> Any:
        return self.mean(self.network(x))


def graph_of(function: Any, *args: Any) -> Any:
    return ms.jit(function).compile(*args).graph


def test_regions_have_names_strategies_and_nodes() -> None:
    graph = graph_of(Loss(Net()), values(16, 32))
    first, second, third = regions_of(graph)
    assert [r.operator.name for r in (first, second, third)] == [
        "Default/network-Net/MatMul-op0",
        "Default/network-Net/ReLU-op1",
        "Default/ReduceMean-op2",
    ]
    assert [n.shape for n in first.inputs] == [(16, 32), (32, 64)] and [n.op for n in first.nodes] == ["matmul"]
    assert [d and d.cuts for d in first.in_strategy] == [(2, 4), (4, 1)] and first.out_strategy == (None,)
    assert [d and d.cuts for d in second.out_strategy] == [(8, 1)] and second.operator.kind == "ReLU"
    assert third.in_strategy == (None,) and not third.operator.strategy and first.operator.strategy
    where = first.operator.where
    assert where is not None and where.file == __file__
    assert strategies_of(graph) == {first.operator.name: [[2, 4], [4, 1]], second.operator.name: [[8, 1]]}
    assert not regions_of(unmarked(graph)) and len(unmarked(graph).nodes) == len(graph.nodes) - 7


def test_values_and_gradients_are_those_of_the_whole() -> None:
    net, x = Loss(Net()), values(16, 32)
    w = net.network.w
    step = ms.value_and_grad(net, None, [w])
    eager, gradients = step(x)
    for made in (ms.jit(net), ms.jit(lambda v: ms.jit(net)(v))):
        np.testing.assert_allclose(made(x).asnumpy(), eager.asnumpy(), rtol=1e-6)
    value, found = ms.jit(step)(x)
    np.testing.assert_allclose(value.asnumpy(), eager.asnumpy(), rtol=1e-6)
    np.testing.assert_allclose(found[0].asnumpy(), gradients[0].asnumpy(), rtol=1e-5, atol=1e-7)
    marks = [n.params["mark"] for n in graph_of(step, x).nodes if n.prim is constrain]
    assert {m.role for m in marks if m.gradient} == {"input", "result"}
    cuts = {(m.operator.kind, m.index): m.division.cuts for m in marks if m.gradient and m.division}
    assert cuts == {("MatMul", 1): (4, 1), ("ReLU", 0): (8, 1)}


def test_batches_have_one_more_axis() -> None:
    marked: Any = ops.MatMul().shard(((2, 4), (4, 1)))
    w, x = values(4, 3), values(5, 2, 4)
    function = ms.vmap(lambda v: marked(v, w))
    np.testing.assert_allclose(ms.jit(function)(x).asnumpy(), x.asnumpy() @ w.asnumpy(), rtol=1e-5)
    (region,) = regions_of(graph_of(function, x))
    assert [d and d.cuts for d in region.in_strategy] == [(1, 2, 4), (4, 1)]


def test_layouts_are_strategies() -> None:
    grid = Layout((2, 4), ("dp", "mp"))
    marked: Any = ops.MatMul().shard((grid("dp", "mp"), grid("mp", "None")))
    (region,) = regions_of(graph_of(marked.__call__, values(4, 8), values(8, 2)))
    assert [d and d.axes for d in region.in_strategy] == [(("dp",), ("mp",)), (("mp",), ())]
    assert marked.in_strategy is None and marked.in_layout[1]["tensor_map"] == (0, -1)


def test_tensors_in_tuples_count() -> None:
    concat: Any = ops.Concat(1).shard(((2, 1), (2, 1)))
    x, y = values(4, 2), values(4, 3)
    function = lambda a, b: concat((a, b))
    assert ms.jit(function)(x, y).asnumpy().tolist() == np.concatenate((x.asnumpy(), y.asnumpy()), 1).tolist()
    (region,) = regions_of(graph_of(function, x, y))
    assert [d and d.cuts for d in region.in_strategy] == [(2, 1), (2, 1)]


def test_a_tensor_may_be_passed_twice() -> None:
    mul: Any = ops.Mul().shard(((2,), (2,)))
    x = values(8)
    function = lambda a: mul(a, a) + mul(a[2:6], a[2:6]).sum()
    np.testing.assert_allclose(ms.jit(function)(x).asnumpy(), function(x).asnumpy(), rtol=1e-6)
    np.testing.assert_allclose(ms.jit(ms.grad(function))(x).asnumpy(), ms.grad(function)(x).asnumpy(), rtol=1e-6)
    cuts = [[d and d.cuts for d in r.in_strategy] for r in regions_of(graph_of(function, x)) if r.operator.strategy]
    assert cuts == [[(2,), (2,)]] * 2


def test_what_an_operator_writes_stays_written() -> None:
    class Counting(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.count = Parameter(Tensor(np.zeros(4, np.float32)), name="count")
            self.add: Any = ops.AssignAdd()
            self.mul: Any = ops.Mul().shard(((4,), (4,)))

        def construct(self, x: Any) -> Any:
            self.add(self.count, x)
            self.add(self.count[1:3], x[1:3])
            return self.mul(self.count, x)

    net, plain = Counting(), Counting()
    x = values(4)
    for _ in range(2):
        found, wanted = ms.jit(net)(x), plain(x)
        np.testing.assert_array_equal(found.asnumpy(), wanted.asnumpy())
        np.testing.assert_array_equal(net.count.asnumpy(), plain.count.asnumpy())


def test_loops_and_conditions_keep_marks() -> None:
    relu: Any = ops.ReLU().shard(((2,),))

    def function(x: Any) -> Any:
        for _ in range(3):
            if x.sum() > 0:
                x = relu(x) - 1
        return x

    x = values(4)
    np.testing.assert_allclose(ms.jit(function)(x).asnumpy(), function(x).asnumpy(), rtol=1e-6)
    names = [r.operator.name for r in regions_of(graph_of(function, x))]
    assert len(names) == len(set(names)) == 9 and sum("ReLU" in name for name in names) == 3


@pytest.mark.parametrize(
    "given, message",
    [
        (((2, 4),), r"MatMul-op0: in_strategy has 1 entries, and MatMul has 2 inputs"),
        (((2, 4, 1), (4, 1)), r"\(2, 4, 1\) does not fit input 0 of MatMul, of shape \(16, 32\): it has 3 entries"),
        (((3, 1), (1, 1)), r"3 parts, which do not divide 8 devices"),
        (((16, 1), (1, 1)), r"it makes 16 parts, and there are 8 devices"),
        (((1, 1), (1, 65)), r"axis 1 of size 64 is cut into 65 parts, more than it has elements"),
        (((1, 0), (1, 1)), r"axis 1 is cut into 0 parts"),
    ],
)
def test_a_strategy_that_does_not_fit(given: Any, message: str) -> None:
    net = Net()
    net.matmul.shard(given)
    with pytest.raises(ValueError, match=message) as error:
        ms.jit(net)(values(16, 32))
    assert f"{__file__}:" in str(error.value) and "self.relu(self.matmul(x, self.w))" in str(error.value)


def test_a_changed_strategy_or_mode_is_compiled_anew() -> None:
    net = Net()
    compiled, x = ms.jit(net), values(16, 32)
    names = lambda: [[d and d.cuts for d in r.in_strategy] for r in regions_of(compiled.compile(x).graph)]
    assert names() == [[(2, 4), (4, 1)], [(8, 1)]]
    net.matmul.shard(((8, 1), (1, 1)))
    assert names() == [[(8, 1), (1, 1)], [(8, 1)]]
    ms.set_auto_parallel_context(parallel_mode="data_parallel")
    assert names() == []


def test_one_device_divides_nothing() -> None:
    ms.set_auto_parallel_context(device_num=1)
    assert regions_of(graph_of(Net(), values(16, 32))) == []


def test_operators_within_an_operator_are_part_of_it() -> None:
    inner: Any = ops.ReLU()
    outer: list[Region] = regions_of(graph_of(lambda x: inner(inner(x)), values(4)))
    assert [r.operator.name for r in outer] == ["Default/ReLU-op0", "Default/ReLU-op1"]


class Stages(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Net(), nn.SequentialCell(nn.Dense(64, 16), nn.ReLU())
        self.mean: Any = ops.ReduceMean().set_stage(3)
        self.first.pipeline_stage = 1

    def construct(self, x: Any) -> Any:
        return self.mean(self.second(self.first(x)))


def test_stages_of_a_pipeline_are_in_regions() -> None:
    net, x = Stages(), values(16, 32)
    compiled = ms.jit(net)
    stages = lambda: [(r.operator.kind, r.operator.stage) for r in regions_of(compiled.compile(x).graph)]
    assert stages() == [("MatMul", 1), ("ReLU", 1), ("ReduceMean", 3)]
    net.pipeline_stage = 2
    net.first.pipeline_stage = 0
    assert stages() == [("MatMul", 0), ("ReLU", 0), ("ReduceMean", 3)]
    net.mean.set_stage(-1)
    assert stages()[2] == ("ReduceMean", 2)


def test_cells_have_strategies_and_plans() -> None:
    net, x = Loss(Net()), values(16, 32)
    compiled = ms.jit(net)
    before = compiled(x)
    assert ms.shard(net.network, ((4, 1),), ((4, 2),), {"network.w": (1, 2), "none": (1, 1)}) is net.network
    np.testing.assert_allclose(compiled(x).asnumpy(), before.asnumpy(), rtol=1e-6)
    graph = compiled.compile(x).graph
    found = {r.operator.name: r for r in regions_of(graph)}
    cell = found["Default/network-Net/Net-op0"]
    assert [d and d.cuts for d in cell.in_strategy] == [(4, 1)]
    assert [d and d.cuts for d in cell.out_strategy] == [(4, 2)] and cell.operator.kind == "Net"
    assert "Default/network-Net/MatMul-op1" in found
    ((node, mark),) = values_of(graph)
    assert node.shape == (32, 64) and mark.division is not None and mark.division.cuts == (1, 2)
    net.network.shard(((5, 1),))
    with pytest.raises(ValueError, match="5 parts, which do not divide 8 devices"):
        compiled(x)


def test_functions_have_strategies() -> None:
    def function(x: Any, y: Any) -> Any:
        return x * 2 + y

    divided = ms.shard(function, ((2, 4), None), ((8, 1),))
    x, y = values(8, 4), values(4)
    first, second, region = regions_of(graph_of(divided, x, y))
    assert [first.operator.name, second.operator.name] == ["Default/Mul-op1", "Default/Add-op2"]
    assert region.operator.name == "Default/function-op0" and divided.__name__ == "function"
    assert [d and d.cuts for d in (*region.in_strategy, *region.out_strategy)] == [(2, 4), None, (8, 1)]
    for made in (divided, ms.jit(divided), ms.grad(lambda a: ms.jit(divided)(a, y).sum()) and divided):
        np.testing.assert_allclose(made(x, y).asnumpy(), function(x, y).asnumpy(), rtol=1e-6)
    assert ms.grad(lambda a: divided(a, y).sum())(x).tolist() == [[2.0] * 4] * 8
    with pytest.raises(ValueError, match="is no Cell, which has parameters"):
        ms.shard(function, ((1,),), parameter_plan={"w": (1,)})
    with pytest.raises(TypeError, match="ints only, or layouts only"):
        ms.shard(function, ((1,), Layout((2,), ("a",))("a")))


def test_values_have_layouts() -> None:
    grid = Layout((2, 4), ("dp", "mp"))
    change: Any = ops.Reshard(grid("dp", "mp"), grid("None", "mp"), ((2, 4),))

    def function(x: Any) -> Any:
        return change(ms.reshard(x * 2, grid("dp", "mp"))) + 1

    x = values(4, 4)
    assert ms.jit(function)(x).tolist() == function(x).tolist() == (x * 2 + 1).tolist()
    graph = graph_of(function, x)
    ((_, mark),) = values_of(graph)
    assert mark.division is not None and mark.division.axes == (("dp",), ("mp",))
    (region,) = (r for r in regions_of(graph) if r.operator.kind == "Reshard")
    assert [d and d.cuts for d in (*region.in_strategy, *region.out_strategy)] == [(2, 4), (1, 4)]
    with pytest.raises(ValueError, match="axis 0 of size 1 is cut into 2 parts"):
        ms.jit(function)(values(1, 4))
    with pytest.raises(ValueError, match=r"in_strategy is \(\(1, 4\),\), and in_layout divides"):
        ops.Reshard(grid("dp", "mp"), grid("None", "mp"), ((1, 4),))


def test_a_network_under_auto_parallel_has_settings_of_its_own() -> None:
    ms.set_auto_parallel_context(parallel_mode="stand_alone")
    net, x = Net(), values(16, 32)
    whole = AutoParallel(net)
    assert regions_of(graph_of(net, x)) == []
    with in_force(whole.settings_in_force):
        names = [r.operator.name for r in regions_of(graph_of(whole, x))]
    assert names == ["Default/network-Net/MatMul-op0", "Default/network-Net/ReLU-op1"]
    np.testing.assert_allclose(ms.jit(whole)(x).asnumpy(), net(x).asnumpy(), rtol=1e-6)


def test_marks_do_not_go_into_files(tmp_path: Path) -> None:
    net, x = Net(), values(16, 32)
    ms.export(net, x, file_name=str(tmp_path / "net"), file_format="MINDIR")
    loaded = nn.GraphCell(ms.load(str(tmp_path / "net.mindir")))
    np.testing.assert_allclose(loaded(x).asnumpy(), net(x).asnumpy(), rtol=1e-5)


def test_functions_and_operators_of_the_language_are_operators() -> None:
    class Mixed(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.w = Parameter(values(4, 4), name="w")
            self.inner = nn.SequentialCell(nn.Dense(4, 4))

        def construct(self, x: Any) -> Any:
            y = ops.softmax(x @ self.w, -1)
            z = self.inner(y).reshape((2, 8))
            z[0] = 0.0
            return (z / 2).sum() + ops.reduce_sum(ms.mint.matmul(y, self.w)) - 1

    net, x = Mixed(), values(4, 4)
    np.testing.assert_allclose(ms.jit(net)(x).asnumpy(), net(x).asnumpy(), rtol=1e-5)
    kinds = [r.operator.kind for r in regions_of(graph_of(net, x))]
    assert sorted(kinds) == sorted(["MatMul", "Softmax", "Div", "Sum", "MatMul", "ReduceSum", "Add", "Sub"])
    ms.set_auto_parallel_context(device_num=1)
    assert regions_of(graph_of(net, x)) == []


def test_axes_of_one_factor_are_cut_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, inner, columns = Place(0), (Place(1), Place(0)), Place(1)
    factors = (
        Factor(16, (rows, None), (rows,)),
        Factor(64, (None, columns), (columns,)),
        Factor(32, inner, (None,), "sum"),
    )
    monkeypatch.setattr(matrix_product.matmul, "factors", lambda node: factors)
    net, x = Net(), values(16, 32)
    assert ms.jit(net)(x).shape == (16, 64)
    net.matmul.shard(((2, 4), (2, 1)))
    said = "MatMul iterates over these axes of size 32 together, and the strategy cuts axis 1 of input 0 into 4 parts, "
    with pytest.raises(ValueError, match=said + "axis 0 of input 1 into 2 parts; cut them alike"):
        ms.jit(net)(x)


def test_what_a_compiled_cell_says() -> None:
    net, x = Stages(), values(16, 32)
    assert not is_compiled(net)
    with pytest.raises(RuntimeError, match="Stages was not compiled"):
        shard_strategy(net)
    net.compile(x)
    names = ["Default/first-Net/MatMul-op0", "Default/first-Net/ReLU-op1"]
    assert shard_strategy(net) == {names[0]: [[2, 4], [4, 1]], names[1]: [[8, 1]]}
    said = parallel_info(net)
    assert list(said) == [*names, "Default/ReduceMean-op2"]
    line = said[names[0]].pop("line")
    assert line.startswith(__file__) and said[names[0]] == {
        "kind": "MatMul",
        "inputs": [(16, 32), (32, 64)],
        "results": [(16, 64)],
        "in_strategy": [(2, 4), (4, 1)],
        "out_strategy": [None],
        "stage": 1,
    }


class Layers(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(8, 4)
        self.norm, self.dense = nn.LayerNorm((4,)), nn.Dense(4, 6, activation="relu")
        self.softmax = nn.Softmax()

    def construct(self, ids: Any) -> Any:
        return self.softmax(self.dense(self.norm(self.embedding(ids))))


def test_operators_of_layers_are_divided() -> None:
    net, ids = Layers(), Tensor(rng.integers(0, 8, (4, 2)), ms.int32)
    compiled = ms.jit(net)
    want = compiled(ids).asnumpy()
    net.embedding.gather.shard(((2, 1), (4, 1)))
    net.dense.matmul.shard(((8, 1), (1, 1)))
    net.dense.bias_add.shard(((8, 1), (1,)))
    net.norm.layer_norm.shard(((4, 1, 1), (1,), (1,)))
    net.softmax.softmax.shard(((2, 2, 1),))
    np.testing.assert_allclose(compiled(ids).asnumpy(), want, rtol=1e-5)
    np.testing.assert_allclose(net(ids).asnumpy(), want, rtol=1e-5)
    found = strategies_of(compiled.compile(ids).graph)
    assert [name.rpartition("-")[0] for name in found] == [
        "Default/embedding-Embedding/Gather",
        "Default/norm-LayerNorm/LayerNorm",
        "Default/dense-Dense/MatMul",
        "Default/dense-Dense/BiasAdd",
        "Default/softmax-Softmax/Softmax",
    ]
    net.dense.matmul.shard(((3, 1), (1, 1)))
    with pytest.raises(ValueError, match="3 parts, which do not divide 8 devices"):
        compiled(ids)


def test_a_layer_that_computes_otherwise() -> None:
    net, x = nn.SmoothL1Loss(), values(4, 4)
    net.smooth_l1_loss.shard(((2, 1), (2, 1)))
    with pytest.raises(ValueError, match="SmoothL1Loss does not compute by its operation 'smooth_l1_loss'"):
        ms.jit(net)(x, x)
    image = values(2, 3, 8, 8)
    conv = nn.Conv2d(3, 4, 3, has_bias=True)
    want = conv(image).asnumpy()
    conv.conv2d.shard(((2, 1, 1, 1), (4, 1, 1, 1)))
    np.testing.assert_allclose(ms.jit(conv)(image).asnumpy(), want, rtol=1e-4, atol=1e-5)
    assert list(strategies_of(graph_of(conv, image))) == ["Default/Conv2D-op0"]


def test_names_in_a_training_step_are_those_of_mindspore() -> None:
    net, x, y = Stages(), values(16, 32), values(16, 16)
    ms.set_auto_parallel_context(pipeline_stages=4)
    loss = nn.PipelineCell(nn.WithLossCell(net, nn.MSELoss()), 2, {"_backbone.second": 3}, {"_backbone.second.0": 1})
    assert net.second.pipeline_stage == 3 and net.second[0].pipeline_segment == 1
    with pytest.raises(ValueError, match="is to be on stage 4, and pipeline_stages is 4"):
        nn.PipelineCell(net, 2, {"second": 4})
    step = nn.TrainOneStepCell(loss, nn.Momentum(net.trainable_params(), 0.1, 0.9))
    net.construct = lambda v: net.second(net.first(v))
    step.compile(x, y)
    said = parallel_info(step)
    prefix = "Default/network-PipelineCell/network-WithLossCell/_backbone-Stages/first-Net/"
    assert [name for name in said if name.startswith(prefix)][:2] == [f"{prefix}MatMul-op0", f"{prefix}ReLU-op1"]


def test_what_is_not_one_graph_has_no_marks() -> None:
    marked: Any = ops.Mul().shard(((2,), (2,)))

    def function(x: Any) -> Any:
        y = marked(x, x)
        return y * 2 if float(y.sum()) > 0 else y

    x = values(4)
    assert ms.jit(function)(x).tolist() == function(x).tolist()
