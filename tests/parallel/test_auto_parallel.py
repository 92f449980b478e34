"""Networks that would be divided over devices compute what they compute on one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, nn
from mycel.parallel.auto_parallel import AutoParallel
from mycel.parallel.nn import GradAccumulation, MicroBatchInterleaved, Pipeline, PipelineGradReducer

CHECKED = dict.fromkeys(("nn.PipelineGradReducer",), "MindSpore")
# What MindSpore 2.10 refuses, and how.
REFUSED: list[tuple[str, tuple[Any, ...], type[Exception]]] = [
    ("comm_fusion", (3,), TypeError),
    ("dataset_strategy", (3,), TypeError),
    ("dataset_strategy", ("zz",), ValueError),
    ("dataset_strategy", (((1, 2), 3),), TypeError),
    ("hsdp", (0,), ValueError),
    ("hsdp", (-1, -5), ValueError),
    ("hsdp", (-1, 64, "x"), ValueError),
    ("load_operator_strategy_file", ("zz.json",), KeyError),
    ("save_operator_strategy_file", ("/zz.txt",), KeyError),
    ("load_param_strategy_file", (3,), TypeError),
    ("set_group_ckpt_save_file", (3,), TypeError),
    ("dump_local_norm", (3,), TypeError),
    ("pipeline", (0,), ValueError),
    ("pipeline", ("a",), TypeError),
    ("pipeline", (1, 3), TypeError),
    ("pipeline", (1, False, False, "zz"), ValueError),
    ("transformer_opt", ("/no/such/file.json",), ValueError),
]
TAKEN: list[tuple[str, tuple[Any, ...]]] = [
    ("comm_fusion", ({"allreduce": {"mode": "auto", "config": None}},)),
    ("dataset_strategy", ("full_batch",)),
    ("dataset_strategy", (((1, 1), (1, 1)),)),
    ("hsdp", (1, 64, "level2")),
    ("pipeline", (2, True, True, "gpipe")),
    ("load_operator_strategy_file", ("/zz.json",)),
    ("save_param_strategy_file", ("/z.ckpt",)),
    ("transformer_opt", (None,)),
    *[
        (name, ())
        for name in (
            "disable_gradient_fp32_sync disable_loss_repeated_mean enable_device_local_norm enable_fp32_communication "
            "disable_strategy_file_only_for_trainable_params enable_gradients_mean no_init_parameters_in_compile "
            "print_local_norm"
        ).split()
    ],
]


def dense() -> nn.Dense:
    return nn.Dense(3, 2, weight_init="ones", bias_init="zeros")


def test_the_network_computes_what_it_computes() -> None:
    net, x = dense(), Tensor(np.ones((4, 3), np.float32))
    for mode in ("semi_auto", "sharding_propagation", "recursive_programming"):
        made = AutoParallel(net, mode)
        assert made(x).tolist() == [[3.0, 3.0]] * 4 and ms.jit(made)(x).tolist() == [[3.0, 3.0]] * 4
        assert [p.name for p in made.get_parameters()] == ["weight", "bias"] and made.network is net
    assert AutoParallel(lambda v: v + 1)(x).tolist() == [[2.0] * 3] * 4
    with pytest.raises(ValueError, match="parallel_mode"):
        AutoParallel(net, "zzz")


def test_options_are_kept() -> None:
    net = AutoParallel(dense())
    assert net.get_pipeline_stages() == 1
    for name, args in TAKEN:
        assert getattr(net, name)(*args) is None
    kept = net.settings
    assert net.get_pipeline_stages() == kept.pipeline_stages == 2
    assert kept.parallel_optimizer_config["optimizer_level"] == "level2" and kept.enable_parallel_optimizer
    assert kept.operator_strategy_load == "/zz.json" and kept.dataset_strategy == ((1, 1), (1, 1))
    assert net(Tensor(np.ones((1, 3), np.float32))).tolist() == [[3.0, 3.0]]


@pytest.mark.parametrize("name, args, error", REFUSED)
def test_options_are_checked(name: str, args: tuple[Any, ...], error: type[Exception]) -> None:
    with pytest.raises(error):
        getattr(AutoParallel(dense()), name)(*args)


def test_parts_of_a_batch_add_up() -> None:
    loss = nn.WithLossCell(dense(), nn.MSELoss())
    x, y = Tensor(np.ones((4, 3), np.float32)), Tensor(np.zeros((4, 2), np.float32))
    for kind in (GradAccumulation, MicroBatchInterleaved, Pipeline):
        assert float(kind(loss, 2)(x, y)) == 18.0
    reduced = PipelineGradReducer(loss.trainable_params(), 2.0)((x, y))
    assert reduced[0].tolist() == [[0.5] * 3] * 4


@pytest.mark.parametrize("name", ["AdaSumByGradWrapCell", "AdaSumByDeltaWeightWrapCell"])
def test_adasum_needs_several_devices(name: str) -> None:
    with pytest.raises(RuntimeError, match="there is one"):
        getattr(nn, name)(nn.Momentum(dense().trainable_params(), 0.1, 0.9))
