"""Quantisation after training: accuracy on digits, networks of many kinds, devices, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel._src.compiler.transforms.quantise.scales import levels_of, scale_for
from mycel._src.foundation.errors import Unsupported
from mycel.deploy import build
from mycel.quantisation import Refused, quantise
from mycel.quantisation.calibration import Observer
from tests.quantisation.digits import IMAGES, accuracy, trained


@pytest.fixture(scope="module")
def net() -> Any:
    return trained()


@pytest.mark.parametrize("method", ["minmax", "percentile", "mse", "kl"])
def test_digits_lose_less_than_a_point(net: Any, method: str) -> None:
    made = quantise(net, IMAGES[:256], method=method, measure=accuracy, at_least=0.95)
    assert made.report.float_measure is not None and made.report.measure is not None
    assert made.report.measure >= made.report.float_measure - 0.01
    assert made.report.floats == []
    assert made.report.bytes < 0.3 * made.report.float_bytes


def test_what_is_asked_for_is_measured(net: Any) -> None:
    with pytest.raises(Refused, match=r"measures 0\.\d+, the network of floats 0\.9\d*, and at least 0\.99 was asked"):
        quantise(net, IMAGES[:64], bits=2, measure=accuracy, at_least=0.99)
    with pytest.raises(Refused, match="times as fast, and more than 1000 was asked for") as error:
        quantise(net, IMAGES[:8], faster_than=1000)
    assert error.value.report.speed is not None and error.value.report.speed > 0
    with pytest.raises(ValueError, match="at_least asks for a measure"):
        quantise(net, IMAGES[:8], at_least=0.5)


def test_a_device_has_integers_only(net: Any) -> None:
    made = quantise(net, IMAGES[:64], integer_ends=True)
    x = made.quantised_input(IMAGES[:1])
    for target in ("cortex-m4", "cortex-m0plus", "riscv32", "x86-64"):
        library = build(made, ms.Tensor(x), target=target, name="digits")
        assert "int digits(const int8_t *input_0, int8_t *result, void *arena);" in library.header
        # What this processor lacks are floats: it would call for them by name.
        if target == "cortex-m0plus":
            assert not any(
                f"__aeabi_{kind}".encode() in library.object for kind in ("fadd", "fmul", "i2f", "f2iz", "dmul")
            )
    real = made.real_output(made(ms.Tensor(made.quantised_input(IMAGES[:64]))))
    assert (real.argmax(1) == net(ms.Tensor(IMAGES[:64])).asnumpy().argmax(1)).mean() > 0.95


class Block(nn.Cell):
    """What phones run: an expansion, a depthwise convolution, a projection and a sum."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        wide = 3 * channels
        self.body = nn.SequentialCell(
            *[nn.Conv2d(channels, wide, 1), nn.BatchNorm2d(wide), nn.ReLU6()],
            *[nn.Conv2d(wide, wide, 3, pad_mode="same", group=wide), nn.BatchNorm2d(wide), nn.HSwish()],
            *[nn.Conv2d(wide, channels, 1), nn.BatchNorm2d(channels)],
        )

    def construct(self, x: Any) -> Any:
        return x + self.body(x)


class Attention(nn.Cell):
    """Products of two values, a soft-max and a normalisation."""

    def __init__(self) -> None:
        super().__init__()
        self.all, self.last, self.norm = nn.Dense(8, 24), nn.Dense(8, 8), nn.LayerNorm([8])

    def construct(self, x: Any) -> Any:
        q, k, v = ops.split(self.all(x), 8, -1)
        weights = ops.softmax(ops.matmul(q, ops.transpose(k, (0, 2, 1))) / 8**0.5, -1)
        return self.norm(self.last(ops.matmul(weights, v)) + x)


def _networks() -> dict[str, tuple[Any, tuple[int, ...]]]:
    return {
        "phone": (nn.SequentialCell(nn.Conv2d(3, 8, 3, 2), nn.ReLU(), Block(8), nn.AvgPool2d(4, 4)), (3, 16, 16)),
        "attention": (Attention(), (5, 8)),
        "dense": (nn.SequentialCell(nn.Dense(6, 8, activation="tanh"), nn.Dense(8, 3), nn.Sigmoid()), (6,)),
        "sound": (nn.SequentialCell(nn.Conv1d(2, 4, 3), nn.LeakyReLU(), nn.MaxPool1d(2, 2)), (2, 12)),
        "solid": (nn.Conv3d(2, 4, 2), (2, 4, 4, 4)),
        "halves": (nn.SequentialCell(nn.Dense(6, 6), nn.GELU(), nn.Softmax()), (6,)),
    }


@pytest.mark.parametrize("name", list(_networks()))
@pytest.mark.parametrize("per_channel", [True, False])
def test_networks_of_many_kinds(name: str, per_channel: bool) -> None:
    ms.set_seed(3)
    net, shape = _networks()[name]
    net.set_train(False)
    x = np.random.default_rng(0).normal(size=(12, *shape)).astype(np.float32)
    made = quantise(net, [x[:8], x[8:]], per_channel=per_channel, symmetric=not per_channel)
    wanted = net(ms.Tensor(x)).asnumpy()
    for rows in (12, 1, 3):
        found = made(ms.Tensor(x[:rows])).asnumpy()
        assert np.abs(found - wanted[:rows]).max() <= 0.1 * np.abs(wanted).max()
    np.testing.assert_allclose(found, made.simulated(ms.Tensor(x[:rows])).asnumpy(), atol=0.03 * np.abs(wanted).max())


def test_engines_agree(net: Any) -> None:
    from mycel._src.compiler.ir.graph import Graph
    from mycel._src.compiler.transforms.specialize import specialize
    from mycel._src.engines.reference import evaluate

    made = quantise(net, IMAGES[:64])
    x = IMAGES[64:70]
    graph: Graph = made.model.graph
    (size,) = {d for d in graph.inputs[0].shape if not isinstance(d, int)}
    graph = specialize(graph, {str(size): 6})
    np.testing.assert_array_equal(made(ms.Tensor(x)).asnumpy(), evaluate(graph, [x])[0])


def test_a_network_is_kept_in_a_file(net: Any, tmp_path: Any) -> None:
    made = quantise(net, IMAGES[:64])
    x = ms.Tensor(IMAGES[:3])
    ms.export(made, x, file_name=tmp_path / "small", file_format="MINDIR")
    again = nn.GraphCell(ms.load(tmp_path / "small.mindir"))
    np.testing.assert_array_equal(again(x).asnumpy(), made(x).asnumpy())


def test_what_cannot_be_is_refused() -> None:
    net = nn.Dense(4, 2)
    x = np.zeros((2, 4), np.float32)
    for arguments, text in (
        ({"bits": 9}, "bits must be an int from 2 to 8, not 9"),
        ({"weight_bits": 1}, "weight_bits must be an int from 2 to 8, not 1"),
        ({"method": "best"}, "method must be"),
        ({"percentile": 101.0}, "percentile must be above 50"),
        ({"rounding": "up"}, "rounding must be"),
    ):
        with pytest.raises(ValueError, match=text):
            quantise(net, x, **arguments)
    with pytest.raises(ValueError, match="a batch has no rows"):
        quantise(net, x[:0])
    with pytest.raises(Unsupported, match="it is of float64; networks of float32 become integers"):
        quantise(nn.Dense(4, 2, dtype=ms.float64), x.astype(np.float64))
    with pytest.raises(Unsupported, match="nothing of the network is computed with integers"):
        quantise(nn.ReLU(), x)
    with pytest.raises(ValueError, match="data has no batch"):
        quantise(net, [])
    with pytest.raises(TypeError, match="a batch must be a tensor"):
        quantise(net, [3])
    with pytest.raises(ValueError, match="infinity or NaN"):
        quantise(net, np.full((2, 4), np.nan, np.float32))


def test_what_stays_in_floats_is_listed() -> None:
    x = np.random.default_rng(0).normal(size=(3, 5, 4)).astype(np.float32)
    made = quantise(nn.SequentialCell(nn.Dense(4, 4), Sequence()), x)
    assert len(made.report.floats) == 1 and "no arithmetic of levels" in made.report.floats[0]


class Sequence(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.RNN(4, 3, nonlinearity="relu", batch_first=True)

    def construct(self, x: Any) -> Any:
        return self.cell(x)[0]


class Joined(nn.Cell):
    """Two branches that become one, of which the second is dead."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how, self.first, self.second = how, nn.Dense(4, 6), shut(nn.Dense(4, 6))
        self.last = nn.Dense(12 if how == "concat" else 6, 3)

    def construct(self, x):
        a, b = ops.relu(self.first(x)), ops.relu(self.second(x))
        if self.how == "add":
            return self.last(a + b)
        return self.last(ops.concat((a, b), 1) if self.how == "concat" else ops.sigmoid(self.second(x)) * a)


def shut(layer: Any, bias: float = -100.0, weight: Any = None) -> Any:
    layer.bias.set_data(ms.Tensor(np.full(layer.bias.shape, bias, np.float32)))
    if weight is not None:
        layer.weight.set_data(ms.Tensor(layer.weight.asnumpy() * weight))
    return layer


DEAD = {
    "rectifier": (lambda: nn.SequentialCell(shut(nn.Dense(4, 6)), nn.ReLU(), nn.Dense(6, 3)), (16, 4)),
    "rectifier at the end": (lambda: nn.SequentialCell(shut(nn.Dense(4, 6)), nn.ReLU6()), (16, 4)),
    "convolution": (
        lambda: nn.SequentialCell(shut(nn.Conv2d(1, 3, 3, has_bias=True)), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten()),
        (4, 1, 4, 4),
    ),
    "constant": (lambda: nn.SequentialCell(shut(nn.Dense(4, 6), 5.0, 0.0), nn.ReLU(), nn.Dense(6, 3)), (16, 4)),
    "sum": (lambda: Joined("add"), (16, 4)),
    "concatenation": (lambda: Joined("concat"), (16, 4)),
    "gate": (lambda: Joined("gate"), (16, 4)),
}


@pytest.mark.parametrize("kind", DEAD)
def test_values_that_are_always_the_same(kind: str) -> None:
    make, shape = DEAD[kind]
    ms.set_seed(1)
    net, x = make(), np.random.default_rng(2).normal(size=shape).astype(np.float32)
    wanted = net(ms.Tensor(x)).asnumpy()
    for options in ({}, {"method": "mse", "symmetric": True}) if kind in ("rectifier", "gate") else ({},):
        found = quantise(net, x, **options)(ms.Tensor(x)).asnumpy()
        np.testing.assert_allclose(found, wanted, rtol=0, atol=0.05 * np.abs(wanted).max() + 1e-6)


@pytest.mark.parametrize("method", ["minmax", "percentile", "mse", "kl"])
@pytest.mark.parametrize(
    "values", [(0.0, 0.0), (3.0, 3.0), (-2.0, -2.0), (0.0, 1e-44), (1.0, 1.0 + 2**-23), (0.0, 1e-30)]
)
def test_ranges_without_extent(method: str, values: tuple[float, float]) -> None:
    seen, array = Observer(), np.array(values, np.float32)
    seen.extend(array)
    seen.tally(array)
    scale = scale_for(*seen.range(method, 8))
    levels = levels_of(array, scale)
    back = (levels.astype(np.float64) - scale.zero) * float(scale.size)
    np.testing.assert_allclose(back, array, rtol=0.01, atol=1e-28)
