"""Programs as users write them for many devices: they import `mindspore`, give operators
strategies, and compile for eight devices, of which none is there.

What is compiled says how its operators and parameters are divided, and what does not fit is refused
with the operator, the axis, the sizes and the line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Layout, Parameter, Tensor, compat, nn, ops
from mycel.common.initializer import initializer
from mycel.compat.inner.common.api import _cell_graph_executor as executor

P: Any = ops


@pytest.fixture(autouse=True)
def _graph_mode() -> Iterator[None]:
    compat.install()
    ms.set_context(mode=ms.GRAPH_MODE)
    ms.reset_auto_parallel_context()
    yield
    ms.reset_auto_parallel_context()
    ms.set_context(mode=ms.PYNATIVE_MODE)
    compat.uninstall()


def semi_auto(count: int = 8, rank: int = 0, **options: Any) -> None:
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", device_num=count, global_rank=rank, **options)


def ones(*shape: int, dtype: Any = ms.float32) -> Tensor:
    return Tensor(np.ones(shape), dtype)


class Net(nn.Cell):
    """A network of one operator, or of what `call` makes of some."""

    def __init__(self, *operators: Any, call: Callable[..., Any] | None = None, weight: Any = None) -> None:
        super().__init__()
        self.first, self.rest = operators[0], operators[1:]
        self.call = call
        if weight is not None:
            self.w = Parameter(initializer("ones", list(weight), ms.float32), name="w")

    def construct(self, *args: Any) -> Any:
        return self.first(*args) if self.call is None else self.call(self, *args)


class WithSum(nn.Cell):
    def __init__(self, network: nn.Cell) -> None:
        super().__init__()
        self.network, self.sum = network, P.ReduceSum()

    def construct(self, *args: Any) -> Any:
        return self.sum(self.network(*args))


class Gradients(nn.Cell):
    def __init__(self, network: nn.Cell) -> None:
        super().__init__()
        self.network, self.gradient = network, P.GradOperation(get_all=True)

    def construct(self, *args: Any) -> Any:
        return self.gradient(self.network)(*args)


def compiled(net: nn.Cell, *args: Any) -> dict[str, Any]:
    net.set_train()
    phase, _ = executor.compile(net, *args)
    found: dict[str, Any] = executor._graph_executor.get_strategy(phase)
    assert found == executor._get_shard_strategy(net)
    return found


def trained(net: nn.Cell, *args: Any, optimizer: Any = None) -> dict[str, Any]:
    update = optimizer or nn.Momentum(net.trainable_params(), 0.1, 0.9)
    return compiled(nn.TrainOneStepCell(net, update), *args)


def test_operators_of_gradients_are_named_by_their_place() -> None:
    semi_auto(16)
    net = Net(
        P.MatMul().shard(((4, 2), (2, 2))),
        P.MatMul().shard(((2, 2), (2, 4))),
        call=lambda net, x, y, b: net.rest[0](net.first(x, y), b),
    )
    found = compiled(Gradients(WithSum(net)), ones(64, 32), ones(32, 64), ones(64, 64))
    assert found == {
        "Default/network-WithSum/network-Net/MatMul-op0": [[4, 2], [2, 2]],
        "Default/network-WithSum/network-Net/MatMul-op1": [[2, 2], [2, 4]],
    }


@pytest.mark.parametrize(
    ("strategy", "words"),
    [
        (((4, 4), (4, 2)), "16 parts, and there are 8 devices"),
        (((2, 2), (4, 1)), "the strategy cuts axis 1 of input 0 into 2 parts, axis 0 of input 1 into 4"),
        (((2, 2),), "in_strategy has 1 entries, and MatMul has 2 inputs"),
        (((2, 2, 1), (2, 1)), "it has 3 entries, and the tensor has 2 axes"),
        (((3, 1), (1, 1)), "3 parts, which do not divide 8 devices"),
        (((0, 1), (1, 1)), "axis 0 is cut into 0 parts"),
        (((4, 1), (1, 4)), "8 devices cannot be divided into the numbers of parts"),
    ],
)
def test_what_does_not_fit_names_operator_sizes_and_line(strategy: Any, words: str) -> None:
    semi_auto()
    with pytest.raises(ValueError, match=words) as caught:
        compiled(Net(P.MatMul().shard(strategy)), ones(64, 32), ones(32, 64))
    assert "Default/MatMul-op0" in str(caught.value) and "test_parallel_programs.py" in str(caught.value)


def test_a_batch_that_does_not_fit() -> None:
    semi_auto(dataset_strategy=((16, 1), (1, 1)))
    with pytest.raises(ValueError, match=r"dataset_strategy: \(16, 1\) does not fit 8 devices"):
        compiled(Net(P.Mul()), ones(64, 64), ones(64, 64))


def test_layouts_of_parameters() -> None:
    semi_auto(8, 3)
    net = Net(P.MatMul().shard(((2, 2), (2, 2))), call=lambda net, x: net.first(x, net.w), weight=(64, 64))
    assert net.parameter_layout_dict == {} and net.parallel_parameter_name_list == ()
    compiled(net, ones(64, 64))
    assert net.parameter_layout_dict == {"w": ([2, 2, 2], [1, 0], [32, 32], 0, True, "", [64, 64])}
    assert net.parallel_parameter_name_list == ("w",)
    net = Net(P.MatMul().shard(((1, 8), (8, 1))), call=lambda net, x: net.first(x, net.w), weight=(64, 64))
    compiled(net, ones(64, 64))
    assert net.parameter_layout_dict["w"] == ([8], [0, -1], [8, 64], 0, True, "", [64, 64])
    net.parameter_layout_dict = {"w": [[8], [-1, -1], [64, 64], 0, True, ""]}
    assert net.parameter_layout_dict["w"][1] == [-1, -1]


def test_strategies_that_follow_or_are_found() -> None:
    net = Net(
        P.MatMul().shard(((4, 1), (1, 2))),
        P.MatMul(),
        P.ReLU(),
        call=lambda net, x, y, z: net.rest[1](net.rest[0](net.first(x, y), z)),
    )
    semi_auto()
    found = compiled(net, ones(64, 32), ones(32, 64), ones(64, 16))
    assert list(found) == ["Default/MatMul-op0", "Default/MatMul-op1", "Default/ReLU-op2"]
    assert found["Default/MatMul-op1"] == [[4, 2], [2, 1]]
    for mode in ("recursive_programming", "dynamic_programming", "sharding_propagation"):
        ms.reset_auto_parallel_context()
        ms.set_auto_parallel_context(parallel_mode="auto_parallel", device_num=8, search_mode=mode)
        loss = WithSum(Net(P.MatMul(), call=lambda net, x: net.first(x, net.w), weight=(64, 64)))
        found = trained(loss, ones(64, 64))
        assert list(found) == [
            "Default/network-WithSum/network-Net/MatMul-op0",
            "Default/network-WithSum/ReduceSum-op1",
        ]
        assert all(len(cuts) == 2 for cuts in found["Default/network-WithSum/network-Net/MatMul-op0"])


X, LABELS = ones(16, 64), ones(16, dtype=ms.int32)
ONE, ZERO = Tensor(1.0, ms.float32), Tensor(0.0, ms.float32)
OPERATORS: dict[str, tuple[Any, Any, tuple[Any, ...]]] = {
    "a number": (P.Mul(), ((4, 2), ()), (X, 2.0)),
    "a number first": (P.Sub(), ((), (4, 2)), (1.0, X)),
    "broadcast": (P.Add(), ((4, 2), (2,)), (X, ones(64))),
    "one hot": (lambda i: P.OneHot().shard(((8, 1), (), ()))(i, 64, ONE, ZERO), None, (LABELS,)),
    "one hot by classes": (lambda i: P.OneHot().shard(((2, 4), (), ()))(i, 64, ONE, ZERO), None, (LABELS,)),
    "one hot as given": (lambda i: P.OneHot().shard(((8,), (), ()))(i, 64, ONE, ZERO), None, (LABELS,)),
    "tile": (P.Tile(), ((2, 4),), (ones(1, 64), (4, 1))),
    "tile along a new axis": (P.Tile(), ((2, 1, 4),), (ones(16, 64), (2, 1, 1))),
    "softmax": (P.Softmax(), ((8, 1),), (X,)),
    "dropout": (P.Dropout(keep_prob=0.5), ((4, 2),), (X,)),
    "layer norm": (P.LayerNorm(1, 1), ((8, 1), (1,), (1,)), (X, ones(64), ones(64))),
    "gather rows": (P.Gather(), ((8, 1), (1,)), (X, LABELS, 0)),
    "gather columns": (P.Gather(), ((1, 8), (1,)), (X, LABELS, 0)),
    "gather indices": (P.Gather(), ((1, 1), (8,)), (X, LABELS, 0)),
    "look up": (P.EmbeddingLookup(), ((8, 1), (1,)), (X, LABELS, 0)),
    "reduce": (P.ReduceMean(keep_dims=True), ((4, 2),), (X, -1)),
    "reduce all": (P.ReduceMax(), ((4, 2),), (X, ())),
    "arg max": (P.ArgMaxWithValue(axis=1), ((8, 1),), (X,)),
    "top k": (P.TopK(), ((8, 1),), (X, 3)),
    "cumulative": (P.CumSum(), ((8, 1),), (X, 1)),
    "transpose": (P.Transpose(), ((4, 2),), (X, (1, 0))),
    "split": (P.Split(1, 2), ((8, 1),), (X,)),
    "concat": (P.Concat(1), ((8, 1), (8, 1)), ((X, X),)),
    "stack": (P.Stack(0), ((8, 1), (8, 1)), ((X, X),)),
    "strided": (P.StridedSlice(), ((8, 1),), (X, (0, 0), (16, 32), (1, 1))),
    "select": (P.Select(), ((4, 2), (4, 2), (4, 2)), (ones(16, 64, dtype=ms.bool_), X, X)),
    "batches": (P.BatchMatMul(transpose_b=True), ((2, 1, 4), (2, 1, 4)), (ones(4, 8, 8), ones(4, 8, 8))),
    "segments": (P.UnsortedSegmentSum(), ((8, 1), (8,)), (X, LABELS, 4)),
    "scatter": (P.TensorScatterUpdate(), ((1, 8), (1, 1), (1, 8)), (X, ones(4, 1, dtype=ms.int32), ones(4, 64))),
    "convolution": (
        P.Conv2D(8, 4, pad_mode="same", stride=2),
        ((1, 1, 2, 2), (2, 1, 1, 1)),
        (ones(4, 4, 8, 8), ones(8, 4, 4, 4)),
    ),
    "pool": (P.MaxPool(2, 2), ((4, 2, 1, 1),), (ones(8, 8, 8, 8),)),
    "entropy": (P.SoftmaxCrossEntropyWithLogits(), ((8, 1), (8, 1)), (X, X)),
    "sparse entropy": (P.SparseSoftmaxCrossEntropyWithLogits(), ((8, 1), (8,)), (X, LABELS)),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name: str) -> None:
    semi_auto()
    operator, strategy, args = OPERATORS[name]
    if strategy is None:
        net = Net(None, call=lambda net, *tensors: operator(*tensors))
    else:
        net = Net(operator.shard(strategy), call=lambda net, *tensors: net.first(*_put(args, tensors)))
    tensors = [v for v in _flat(args) if isinstance(v, Tensor)]
    (found,) = compiled(net, *tensors).values()
    whole = [d for d in strategy or () if d]
    assert strategy is None or name.startswith("tile") or found == [list(d) for d in whole]


def _flat(value: Any) -> list[Any]:
    return [v for part in value for v in _flat(part)] if isinstance(value, tuple) else [value]


def _put(args: Any, tensors: Any) -> Any:
    """The arguments with tensors in place of those that they have, in their order."""
    order = iter(tensors)

    def put(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple([put(v) for v in value])
        return next(order) if isinstance(value, Tensor) else value

    return put(args)


def test_a_product_whose_sum_is_scattered() -> None:
    grid = Layout((2, 2, 2), ("dp", "sp", "mp"))
    for given in (
        (((2, 4), (4, 1)), ((8, 1),)),
        ((grid("dp", "mp"), grid("mp", "sp")), (grid(("dp", "mp"), "sp"),)),
    ):
        ms.reset_auto_parallel_context()
        semi_auto(dataset_strategy="full_batch")
        net = Net(P.MatMul().shard(*given), P.ReLU(), call=lambda net, x, y: net.rest[0](net.first(x, y)))
        found = compiled(net, ones(64, 64), ones(64, 64))
        account = ms.explain(net, ones(64, 64), ones(64, 64), parallel=True)
        assert found["Default/ReLU-op1"] in ([[8, 1]], [[4, 2]])
        assert "reduce_scatter" in str(account.communication), account.communication
        found = ms.estimate(net, ones(64, 64), ones(64, 64), parallel=True)
        assert found.total == account.memory[0].total


def test_a_training_step_of_layers() -> None:
    semi_auto()

    class Layers(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.norm, self.relu = nn.Conv2d(4, 8, 3), nn.BatchNorm2d(8), nn.ReLU()
            self.flat, self.fc, self.drop = nn.Flatten(), nn.Dense(8 * 16, 16), nn.Dropout(p=0.5)
            self.conv.conv2d.shard(((8, 1, 1, 1), (1, 1, 1, 1)))
            self.norm.bn_train.shard(((8, 1, 1, 1), (1,), (1,), (1,), (1,)))
            self.relu.relu.shard(((8, 1, 1, 1),))
            self.fc.matmul.shard(((2, 4), (1, 4)))
            self.fc.bias_add.shard(((8, 1), (1,)))
            self.drop.dropout.shard(((8, 1),))

        def construct(self, x: Any) -> Any:
            return self.drop(self.fc(self.flat(self.relu(self.norm(self.conv(x))))))

    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True)
    loss.one_hot.shard(((8, 1), (), ()))
    loss.softmax_cross_entropy.shard(((8, 1), (8, 1)))
    found = trained(nn.WithLossCell(Layers(), loss), ones(16, 4, 4, 4), LABELS)
    place = "Default/network-WithLossCell"
    kinds = [name.removeprefix(place).rpartition("-op")[0] for name in found]
    assert kinds[:7] == [
        "/_backbone-Layers/conv-Conv2d/Conv2D",
        "/_backbone-Layers/norm-BatchNorm2d/BatchNorm",
        "/_backbone-Layers/relu-ReLU/ReLU",
        "/_backbone-Layers/fc-Dense/MatMul",
        "/_backbone-Layers/fc-Dense/BiasAdd",
        "/_backbone-Layers/drop-Dropout/Dropout",
        "/_loss_fn-SoftmaxCrossEntropyWithLogits/OneHot",
    ]


OPTIMIZERS = ("Lamb", "Adam", "AdamWeightDecay", "FTRL", "LazyAdam", "SGD", "Momentum")


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_states_of_optimizers_are_divided(name: str) -> None:
    semi_auto(enable_parallel_optimizer=True, parallel_optimizer_config={"parallel_optimizer_threshold": 1})
    product = P.MatMul().shard(((8, 1), (1, 1)))
    net = WithSum(Net(product, call=lambda net, x: net.first(x, net.w), weight=(64, 64)))
    given = {"momentum": 0.9} if name == "Momentum" else {}
    step = nn.TrainOneStepCell(net, getattr(nn, name)(net.trainable_params(), learning_rate=0.1, **given))
    compiled(step, ones(64, 64))
    layouts = step.parameter_layout_dict
    states = [entry for title, entry in layouts.items() if title.endswith("network.w")]
    assert states and all(entry[2] == [8, 64] for entry in states), layouts


def test_stages_and_parts_of_batches() -> None:
    for rank in (0, 4):
        ms.reset_auto_parallel_context()
        semi_auto(8, rank, pipeline_stages=2)

        class Stages(nn.Cell):
            def __init__(self) -> None:
                super().__init__()
                self.one, self.two = nn.Dense(64, 64), nn.Dense(64, 64)
                for stage, cell in enumerate((self.one, self.two)):
                    cell.matmul.shard(((4, 1), (1, 1)))
                    cell.pipeline_stage = stage

            def construct(self, x: Any) -> Any:
                return self.two(self.one(x))

        net = nn.PipelineCell(WithSum(Stages()), 4)
        found = trained(net, ones(64, 64))
        assert len([name for name in found if "MatMul" in name]) >= 2
    for wrap in (nn.GradAccumulationCell, nn.MicroBatchInterleaved):
        ms.reset_auto_parallel_context()
        semi_auto()
        net = WithSum(Net(P.MatMul().shard(((8, 1), (1, 1))), call=lambda n, x: n.first(x, n.w), weight=(64, 64)))
        assert trained(wrap(net, 2), ones(64, 64))


def test_plans_of_parameters_by_their_paths() -> None:
    ms.set_auto_parallel_context(parallel_mode="auto_parallel", search_mode="sharding_propagation", device_num=8)

    class Outer(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.block = nn.Dense(64, 64)
            self.block.shard(in_strategy=((8, 1),), parameter_plan={"self.block.weight": (1, 8)})

        def construct(self, x: Any) -> Any:
            return self.block(x)

    net = Outer()
    compiled(net, ones(64, 64))
    assert net.parameter_layout_dict["block.weight"][2] == [64, 8]


def test_recomputed_blocks_keep_their_options() -> None:
    semi_auto()
    net = nn.SequentialCell(nn.Dense(64, 64), nn.Dense(64, 64))
    for cell in net:
        cell.matmul.shard(((8, 1), (1, 1)))
        cell.recompute(mp_comm_recompute=False, parallel_optimizer_comm_recompute=True)
    assert trained(WithSum(net), ones(64, 64))
    with pytest.raises(TypeError, match="mp_comm_recompute must be a bool, not int"):
        net.recompute(mp_comm_recompute=1)


def test_other_graphs_are_asked_for_otherwise() -> None:
    semi_auto()
    net = Net(P.ReLU())
    phase, _ = executor.compile(net, X)
    inner = executor._graph_executor
    assert inner.get_num_parallel_ops(phase) == 1 and inner.get_parallel_parameter_name_list(phase) == []
    assert inner.get_parameter_layout(phase) == {}
    with pytest.raises(ms.errors.Unsupported, match="explain"):
        inner.get_parallel_graph_info(phase)
    with pytest.raises(KeyError):
        inner.get_strategy("no.such.phase")
