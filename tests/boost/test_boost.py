"""Boost: groups of parameters, frozen and accumulated gradients.

Values without a formula beside them are what MindSpore 2.10 gives.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import boost, nn, ops


def network() -> nn.Cell:
    return nn.SequentialCell(
        nn.Conv2d(1, 2, 3),
        nn.BatchNorm2d(2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Dense(8, 4),
        nn.LayerNorm((4,)),
        nn.Dense(4, 2),
    )


def shown(groups: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{k: [p.name for p in v] if isinstance(v, (list, tuple)) else v for k, v in g.items()} for g in groups]


def test_groups_whose_gradients_are_centralized() -> None:
    net = network()
    classes = boost.OptimizerProcess.build_params_dict(net)
    assert [classes[id(p)] for p in net.trainable_params()] == [
        "Conv2d",
        *["BatchNorm2d"] * 2,
        *["Dense"] * 2,
        *["LayerNorm"] * 2,
        *["Dense"] * 2,
    ]
    groups = boost.OptimizerProcess.build_gc_params_group(classes, [{"params": net.trainable_params(), "lr": 0.2}])
    assert shown(groups) == [
        {"params": ["0.weight", "4.weight", "6.weight"], "lr": 0.2, "grad_centralization": True},
        {"params": ["1.gamma", "1.beta", "4.bias", "5.gamma", "5.beta", "6.bias"], "lr": 0.2},
    ]


def test_a_new_optimizer_centralizes() -> None:
    net = network()
    process = boost.OptimizerProcess(nn.Momentum([{"params": net.trainable_params()}], 0.1, 0.9, weight_decay=0.01))
    process.add_grad_centralization(net)
    made = process.generate_new_optimizer()
    assert isinstance(made, nn.Momentum) and [p.name for p in made.parameters][:3] == [
        "0.weight",
        "4.weight",
        "6.weight",
    ]
    g = np.arange(18, dtype=np.float32).reshape(2, 1, 3, 3)
    centred = made.gradients_centralization([ms.Tensor(g)] + [ops.zeros_like(p) for p in made.parameters[1:]])[0]
    np.testing.assert_allclose(centred.asnumpy(), g - g.mean((1, 2, 3), keepdims=True))
    plain = boost.OptimizerProcess(nn.LARS(nn.SGD(net.trainable_params(), 0.1), use_clip=True)).generate_new_optimizer()
    assert isinstance(plain, nn.LARS) and plain.use_clip
    with pytest.raises(TypeError, match="opt must be an Optimizer, not int"):
        boost.OptimizerProcess(3)


def test_groups_of_other_parameters() -> None:
    ps = network().trainable_params()
    make = boost.ParameterProcess.generate_group_params
    assert shown(make(ps[:2], ps)) == [{"params": ["0.weight", "1.gamma"]}]
    origin = [{"params": ps[:2], "lr": 0.2}, {"params": ps[2:4], "weight_decay": 0.1}, {"order_params": ps}]
    assert shown(make(ps[:6], origin)) == [
        {"params": ["0.weight", "1.gamma"], "lr": 0.2},
        {"params": ["1.beta", "4.weight"], "weight_decay": 0.1},
        {"order_params": ["0.weight", "1.gamma", "1.beta", "4.weight", "4.bias", "5.gamma"]},
        {"params": ["4.bias", "5.gamma"], "lr": 0.2},
    ]
    with pytest.raises(ValueError, match="empty"):
        make(ps, [])


@pytest.mark.parametrize("points, parts", [(None, [1, 1, 1, 1, 2, 2, 2, 2, 2]), ([1, 3], [1, 2, 2, 3, 3, 3, 3, 3, 3])])
def test_where_communication_splits(points: Any, parts: list[int]) -> None:
    ps = network().trainable_params()
    assert [p.comm_fusion for p in boost.ParameterProcess().assign_parameter_group(ps, points)] == parts


def test_parameters_of_each_optimizer() -> None:
    freeze = boost.GradientFreeze(2, 1, 0.5, 10)
    whole, later = freeze.split_parameters_groups(network(), 2)
    assert len(whole) == 9 and [p.name for p in later] == [
        "4.weight",
        "4.bias",
        "5.gamma",
        "5.beta",
        "6.weight",
        "6.bias",
    ]


@pytest.mark.parametrize(
    "groups, part, steps, found",
    [
        (5, 0.5, 20, [0, 0, 0, 0, 1, 2, 3, 4] * 3),
        (4, 0.7, 30, [0, 0, 0, 0, 0, 0, 1, 2, 3] * 4),
        (1, 0.5, 10, [0] * 10),
        (10, 0.3, 40, [0, 0, 0, *range(1, 10)] * 4),
    ],
)
def test_runs_of_frozen_steps(groups: int, part: float, steps: int, found: list[int]) -> None:
    assert boost.GradientFreeze(groups, 0, part, steps).generate_freeze_index_sequence(groups, 0, part, steps) == found


def test_single_frozen_steps() -> None:
    np.random.seed(0)
    made = boost.GradientFreeze(5, 1, 0.5, 20).generate_freeze_index_sequence(5, 1, 0.5, 20)
    assert made == [0, 2, 0, 1, 0, 1, 0, 2, 0, 2, 0, 1, 0, 2, 0, 1, 0, 1, 0, 2]
    made = boost.GradientFreeze(4, 1, 0.7, 30).generate_freeze_index_sequence(4, 1, 0.7, 30)
    assert made == [0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 0, 3, 0, 0, 3, 0, 0, 3, 0, 0, 0, 1, 0, 0, 1, 0, 0]
    with pytest.raises(ValueError, match="freeze_type must be 0 or 1 and freeze_p below 1, not 2 and 0.5"):
        boost.GradientFreeze(2, 2, 0.5, 10)


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_steps_by_turns(mode: int) -> None:
    ms.set_context(mode=mode)
    try:
        net = nn.Dense(2, 1, weight_init="ones", bias_init="zeros")
        w, b = net.trainable_params()
        frozen = boost.FreezeOpt(nn.SGD([w, b], [0.1, 0.2, 0.3]), [[w, b], [b]], [0, 1, 0])
        step = boost.BoostTrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), frozen)
        x, y = np.array([[1.0, 2.0]]), 1.0
        weight, bias, losses = np.ones(2), 0.0, []
        for number, rate in ((0, 0.1), (1, 0.2), (0, 0.3)):
            error = x[0] @ weight + bias - y
            losses.append(error**2)
            bias -= rate * 2 * error
            if number == 0:
                weight = weight - rate * 2 * error * x[0]
        found = [float(step(ms.Tensor(x, ms.float32), ms.Tensor([[y]], ms.float32))) for _ in losses]
        np.testing.assert_allclose(found, losses, rtol=1e-5)
        np.testing.assert_allclose(w.asnumpy()[0], weight, rtol=1e-5)
        np.testing.assert_allclose(b.asnumpy()[0], bias, rtol=1e-5)
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)


def test_a_strategy_is_checked() -> None:
    w, b = nn.Dense(2, 1).trainable_params()
    opt = nn.SGD([w, b], 0.1)
    with pytest.raises(ValueError, match="train_strategy wants train_parameter_groups"):
        boost.FreezeOpt(opt, None, [0])
    with pytest.raises(ValueError, match="must name groups 0 to 1"):
        boost.FreezeOpt(opt, [[w, b], [b]], [0, 2])
    with pytest.raises(TypeError, match="train_strategy must be a tuple, list or Tensor"):
        boost.FreezeOpt(opt, [[w, b]], "0")
    with pytest.raises(TypeError, match="optimizer must be a FreezeOpt, not SGD"):
        boost.freeze_cell(False, nn.Dense(2, 1), opt, 1.0, ops.GradOperation(), False)


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_an_update_from_the_mean_of_steps(mode: int) -> None:
    ms.set_context(mode=mode)
    try:
        w = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
        collect = boost.GradientAccumulation(2, nn.SGD([w], 0.5))
        steps = [[1.0, 0.0], [3.0, 2.0], [4.0, 4.0], [0.0, 2.0], [9.0, 9.0]]
        kept = []
        for g in steps:
            assert float(collect(ms.Tensor(7.0), (ms.Tensor(g),))) == 7.0
            kept.append(w.asnumpy().tolist())
        assert kept == [[1, 2], [0, 1.5], [0, 1.5], [-1, 0], [-1, 0]]
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)


def test_frozen_steps_that_accumulate_and_reduce() -> None:
    net = nn.Dense(1, 1, weight_init="ones", has_bias=False)
    loss = nn.WithLossCell(net, nn.MSELoss())
    grad = ops.GradOperation(get_by_list=True, sens_param=True)
    opt = boost.FreezeOpt(nn.SGD(net.trainable_params(), 0.1))
    (step,) = boost.freeze_cell(True, loss, opt, 2.0, grad, True, True, 4, 2)
    for x in (1.0, 3.0):
        step(ms.Tensor([[x]]), ms.Tensor([[0.0]]))
    # The mean of the steps' gradients 2 x^2, times sens, divided by the degree.
    np.testing.assert_allclose(net.weight.asnumpy(), [[1 - 0.1 * (2 + 18) / 2 * 2 / 4]], rtol=1e-6)


def test_a_step_with_a_loss_scale() -> None:
    net = nn.Dense(1, 1, weight_init="ones", has_bias=False)
    loss = nn.WithLossCell(net, nn.MSELoss())
    step = boost.BoostTrainOneStepWithLossScaleCell(loss, nn.SGD(net.trainable_params(), 0.1), ms.Tensor(8.0))
    value, overflow, scale = step(ms.Tensor([[2.0]]), ms.Tensor([[0.0]]))
    assert (float(value), bool(overflow), float(scale)) == (4.0, False, 8.0)
    np.testing.assert_allclose(net.weight.asnumpy(), [[1 - 0.1 * 8]], rtol=1e-6)
