"""`mindspore_gs` and `mindspore.train.quant` over Mycel's quantisation.

Names, defaults and signatures are those that the golden stick 1.4.1 shows when asked.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import compat, nn
from mycel._src.foundation.errors import Unsupported
from mycel.quantisation import quantise
from mycel.quantisation.fake_quantisation import Folded, RoundedLayer
from mycel.quantisation.packed_weights import PackedDense

X = np.random.default_rng(0).normal(size=(12, 64)).astype(np.float32)


@pytest.fixture(autouse=True)
def installed() -> Iterator[None]:
    compat.install()
    yield
    compat.uninstall()


def network() -> Any:
    ms.set_seed(1)
    return nn.SequentialCell(nn.Dense(64, 32, activation="relu"), nn.Dense(32, 8))


def test_names_and_defaults() -> None:
    import mindspore_gs
    from mindspore_gs import CompAlgo
    from mindspore_gs.common import BackendTarget
    from mindspore_gs.ptq import PTQ, PTQConfig, PTQMode, RoundToNearest
    from mindspore_gs.quantization import SimulatedQuantizationAwareTraining as SimQAT

    assert mindspore_gs.__version__ == "1.4.1"
    assert issubclass(SimQAT, CompAlgo) and issubclass(RoundToNearest, CompAlgo) and issubclass(PTQ, CompAlgo)
    config = PTQConfig()
    assert config.mode is PTQMode.QUANTIZE and config.backend is BackendTarget.ASCEND
    assert config.weight_quant_dtype is ms.int8 and config.act_quant_dtype is None and config.group_size == 0
    assert [f.name for f in dataclasses.fields(config)] == (
        "mode backend opname_blacklist algo_args weight_quant_dtype kvcache_quant_dtype act_quant_dtype "
        "precision_recovery outliers_suppression weight_quant_granularity kvcache_quant_granularity "
        "act_quant_granularity group_size weight_clip"
    ).split()
    assert list(inspect.signature(SimQAT.convert).parameters) == ["self", "net_opt", "ckpt_path"]
    assert list(inspect.signature(PTQ.apply).parameters) == ["self", "network", "network_helper", "datasets", "kwargs"]
    with pytest.raises(ModuleNotFoundError, match="Mycel does not have mindspore_gs.ghost"):
        import mindspore_gs.ghost


def test_training_with_rounding(tmp_path: Any) -> None:
    from mindspore_gs.quantization import SimulatedQuantizationAwareTraining as SimQAT

    algorithm = SimQAT({"per_channel": [False, True], "symmetric": [False, True], "quant_delay": [1, 1]})
    algorithm.set_bn_fold(True)
    algorithm.set_freeze_bn(100)
    ms.set_seed(1)
    net = algorithm.apply(nn.SequentialCell(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU()))
    assert isinstance(net[0], Folded) and net[0].freeze_bn == 100 and net[0].weights.delay == 1
    assert algorithm.callbacks() == [] and algorithm.loss(abs) is abs
    images = ms.Tensor(X.reshape(12, 1, 8, 8))
    net.set_train()
    for _ in range(3):
        net(images)
    path = str(tmp_path / "net.ckpt")
    ms.save_checkpoint(net, path)
    again = algorithm.apply(nn.SequentialCell(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU()))
    deployed = algorithm.convert(again, path)
    assert not deployed.training
    np.testing.assert_allclose(deployed(images).asnumpy(), net.set_train(False)(images).asnumpy(), atol=1e-6)
    assert quantise(deployed, images).report.floats == []
    for setting, value in (
        ("act_per_channel", True),
        ("weight_symmetric", False),
        ("one_conv_fold", False),
        ("act_quant_dtype", "INT4"),
    ):
        with pytest.raises(ValueError, match=setting):
            getattr(algorithm, f"set_{setting}")(value)
    with pytest.raises(ValueError, match="there is no option 'bits'"):
        SimQAT({"bits": 8})


@pytest.mark.parametrize("case", range(7))
def test_after_training(case: int) -> None:
    from mindspore import qint4x2
    from mindspore_gs.ptq import (
        PTQ,
        GPTQQuantConfig,
        OutliersSuppressionType,
        PrecisionRecovery,
        PTQConfig,
        QuantGranularity,
    )

    group = {"weight_quant_granularity": QuantGranularity.PER_GROUP, "group_size": 16}
    gptq = {"precision_recovery": PrecisionRecovery.GPTQ, "algo_args": GPTQQuantConfig()}
    smooth = {"outliers_suppression": OutliersSuppressionType.SMOOTH, "act_quant_dtype": ms.int8}
    token = {"act_quant_granularity": QuantGranularity.PER_TOKEN}
    options, limit = [
        ({}, 0.02),
        ({"weight_quant_dtype": qint4x2}, 0.2),
        ({"weight_quant_dtype": qint4x2, **group}, 0.2),
        ({"weight_quant_dtype": qint4x2, **gptq, **group}, 0.1),
        (smooth, 0.03),
        ({**smooth, **token, "algo_args": {"alpha": 0.7}}, 0.03),
        ({"opname_blacklist": ["0"]}, 0.02),
    ][case]
    net = network()
    wanted = net(ms.Tensor(X)).asnumpy()
    algorithm = PTQ(PTQConfig(**options))
    made = algorithm.convert(algorithm.apply(net, datasets=[ms.Tensor(X[:6]), ms.Tensor(X[6:])]))
    assert isinstance(made[1], PackedDense) and isinstance(made[0], nn.Dense if case == 6 else PackedDense)
    found = made(ms.Tensor(X)).asnumpy()
    assert np.abs(found - wanted).max() < limit * np.abs(wanted).max()
    np.testing.assert_allclose(ms.jit(made)(ms.Tensor(X)).asnumpy(), found, atol=1e-5)


def test_packed_networks_are_saved(tmp_path: Any) -> None:
    from mindspore_gs.ptq import RoundToNearest

    made = RoundToNearest().apply(network())
    ms.save_checkpoint(made, str(tmp_path / "small.ckpt"))
    other = RoundToNearest().apply(nn.SequentialCell(nn.Dense(64, 32, activation="relu"), nn.Dense(32, 8)))
    other = RoundToNearest().convert(other, str(tmp_path / "small.ckpt"))
    np.testing.assert_array_equal(other(ms.Tensor(X)).asnumpy(), made(ms.Tensor(X)).asnumpy())


def test_what_is_of_other_machines_is_refused() -> None:
    from mindspore_gs.ptq import PTQ, OutliersSuppressionType, PrecisionRecovery, PTQConfig, PTQMode, RoundToNearest

    for options, text in (
        ({"mode": PTQMode.DEPLOY}, "mode .* is not supported"),
        ({"kvcache_quant_dtype": ms.int8}, "kvcache_quant_dtype"),
        ({"weight_clip": True}, "weight_clip"),
        ({"weight_quant_dtype": ms.float16}, "it may be int8 or qint4x2"),
        ({"group_size": 8}, "PER_GROUP needs a size"),
        ({"outliers_suppression": OutliersSuppressionType.AWQ}, "NONE or SMOOTH"),
        ({"algo_args": {"beta": 1}}, "algo_args"),
    ):
        with pytest.raises(ValueError, match=text):
            PTQ(PTQConfig(**options))
    with pytest.raises(ValueError, match="precision_recovery must be NONE"):
        RoundToNearest(PTQConfig(precision_recovery=PrecisionRecovery.GPTQ))
    with pytest.raises(ValueError, match="observes values; give data"):
        PTQ(PTQConfig(precision_recovery=PrecisionRecovery.GPTQ)).apply(network())


def test_the_program_of_the_slides() -> None:
    from mindspore.train.quant import quant as qat

    net = network()
    net = qat.convert_quant_network(net, quant_delay=0, bn_fold=False, freeze_bn=10000, weight_bits=8, act_bits=8)
    assert isinstance(net[0], RoundedLayer)
    net.set_train()(ms.Tensor(X))
    assert np.isfinite(net.set_train(False)(ms.Tensor(X)).asnumpy()).all()


@pytest.mark.parametrize("name", ["PrunerKfCompressAlgo", "PrunerFtCompressAlgo", "UniPruner"])
def test_pruners_say_what_does_their_work(name: str) -> None:
    import mindspore_gs.pruner
    from mindspore_gs import CompAlgo

    algorithm = getattr(mindspore_gs.pruner, name)
    assert issubclass(algorithm, CompAlgo) and str(inspect.signature(algorithm)).startswith("(config")
    with pytest.raises(Unsupported, match=f"{name}: this algorithm is not in Mycel; mycel.compression.prune_channels"):
        algorithm({})
