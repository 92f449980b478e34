"""Quantisation-aware training: the formulas of the seeds, accuracy on digits, folding, delays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel.quantisation import fake_quant, quantisation_aware, quantise
from mycel.quantisation.fake_quantisation import Folded, Rounded, RoundedLayer, Rounding
from tests.quantisation.digits import IMAGES, accuracy, trained, training


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("ends", [(-1.3, 2.6), (0.0, 5.0), (-0.4, 0.1), (0.5, 0.9)])
def test_formulas(bits: int, ends: tuple[float, float]) -> None:
    rounding = Rounding(bits)
    low, high = min(ends[0], 0.0), max(ends[1], 0.0)
    first, last = rounding.ends
    scale, zero = (v.asnumpy().item() for v in rounding.scale(ms.Tensor([ends[0]]), ms.Tensor([ends[1]])))
    # S = (Rmax - Rmin) / (Qmax - Qmin), Z = Qmax - Rmax div S.
    assert scale == pytest.approx((high - low) / (last - first), rel=1e-6)
    assert zero == np.round(last - high / scale)
    x = np.linspace(low, high, 41).astype(np.float32)
    # Q = R / S + Z, R = (Q - Z) * S.
    steps = np.clip(np.rint(x / np.float32(scale)) + zero, first, last)
    found = fake_quant(ms.Tensor(x), ms.Tensor([scale], ms.float32), ms.Tensor([zero], ms.float32), first, last)
    np.testing.assert_allclose(found.asnumpy(), (steps - zero) * scale, atol=1e-6)


def test_gradients_pass_inside_of_the_range() -> None:
    x = ms.Tensor(np.array([-5.0, -0.4, 0.2, 0.9, 7.0], np.float32))
    zero = ms.Tensor(np.float32(0))

    def loss(x: Any, scale: Any) -> Any:
        return (fake_quant(x, scale, zero, -2, 3) * ms.Tensor(np.arange(1.0, 6.0, dtype=np.float32))).sum()

    by_x, by_scale = ms.grad(loss, (0, 1))(x, ms.Tensor(np.float32(0.5)))
    np.testing.assert_array_equal(by_x.asnumpy(), [0, 2, 3, 4, 0])
    # Learned scales: the level outside, and how far it is off inside.
    wanted = 1 * -2 + 2 * (-1 + 0.8) + 3 * (0 - 0.4) + 4 * (2 - 1.8) + 5 * 3
    assert float(by_scale) == pytest.approx(wanted, rel=1e-5)
    rows = ops.stack([x, x * 0.1])
    each = ms.vmap(ms.grad(lambda x: loss(x, ms.Tensor(np.float32(0.5)))))(rows)
    np.testing.assert_array_equal(each.asnumpy(), [[0, 2, 3, 4, 0], [1, 2, 3, 4, 5]])


def test_digits_lose_less_than_a_third_of_a_point() -> None:
    net = trained()
    before = accuracy(net)
    net = quantisation_aware(net, weight_bits=8, act_bits=8)
    training(net, 1, 2e-4)
    made = quantise(net, IMAGES[:256], measure=accuracy, at_least=before - 0.003)
    assert made.report.floats == []


def test_four_bits_train() -> None:
    net = trained()
    four = quantise(net, IMAGES[:256], bits=4, measure=accuracy)
    net = quantisation_aware(net, weight_bits=4, act_bits=4)
    training(net, 2, 5e-4)
    made = quantise(net, IMAGES[:256], measure=accuracy)
    assert made.report.bits == [4] * 5
    assert made.report.measure is not None and four.report.measure is not None
    assert made.report.measure > max(four.report.measure, 0.95)


class Pictures(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.SequentialCell(
            nn.Conv2d(1, 4, 3, 2), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 4, 3, 2, group=4, has_bias=True)
        )
        self.block = nn.Conv2dBnAct(4, 6, 1, has_bn=True, activation="relu")
        self.last = nn.Dense(6 * 8 * 8, 10)

    def construct(self, x: Any) -> Any:
        return self.last(ops.flatten(self.block(self.body(x)), start_dim=1))


@pytest.mark.parametrize("bn_fold", [True, False])
def test_normalisations_fold_while_training(bn_fold: bool) -> None:
    ms.set_seed(5)
    net = Pictures()
    names = {p.name for p in net.trainable_params()}
    net = quantisation_aware(net, bn_fold=bn_fold, freeze_bn=30)
    assert isinstance(net.body[0], Folded if bn_fold else RoundedLayer)
    assert {p.name for p in net.trainable_params()} == names
    assert len({p.name for p in net.get_parameters()}) == len(list(net.get_parameters()))
    training(net, 2, 3e-3)
    net.set_train(False)
    made = quantise(net, IMAGES[:256], measure=accuracy)
    assert made.report.floats == []
    assert made.report.measure is not None and made.report.float_measure is not None
    assert made.report.measure > made.report.float_measure - 0.01 > 0.6


def test_statistics_freeze() -> None:
    net = quantisation_aware(nn.SequentialCell(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2)), freeze_bn=2)
    net.set_train()
    norm, seen = net[0].norm, []
    for k in range(4):
        net(ms.Tensor(np.random.default_rng(k).normal(size=(4, 1, 5, 5)).astype(np.float32)))
        seen.append(norm.moving_mean.asnumpy().copy())
    assert (seen[0] != seen[1]).all() and (seen[1] == seen[2]).all() and (seen[2] == seen[3]).all()


def test_folding_gives_what_the_layers_gave() -> None:
    x = ms.Tensor(np.random.default_rng(1).normal(size=(8, 3, 6, 6)).astype(np.float32))
    ms.set_seed(1)
    plain = nn.SequentialCell(nn.Conv2d(3, 4, 3, has_bias=True), nn.BatchNorm2d(4)).set_train()
    ms.set_seed(1)
    rounds = nn.SequentialCell(nn.Conv2d(3, 4, 3, has_bias=True), nn.BatchNorm2d(4))
    # Nothing is rounded before the delay.
    rounds = quantisation_aware(rounds, quant_delay=100).set_train()
    for _ in range(3):
        wanted, found = plain(x).asnumpy(), rounds(x).asnumpy()
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(rounds[0].norm.moving_variance.asnumpy(), plain[1].moving_variance.asnumpy(), rtol=1e-4)
    np.testing.assert_allclose(
        rounds.set_train(False)(x).asnumpy(), plain.set_train(False)(x).asnumpy(), rtol=1e-3, atol=1e-3
    )


def test_delay_counts_batches() -> None:
    layer = Rounded(Rounding(bits=2, delay=2)).set_train()
    x = ms.Tensor(np.array([0.0, 0.4, 3.0], np.float32))
    found = [layer(x).asnumpy()[1] for _ in range(4)]
    np.testing.assert_allclose(found, [0.4, 0.4, 0.0, 0.0], atol=1e-6)


def test_steps_compile() -> None:
    net = quantisation_aware(nn.SequentialCell(nn.Dense(3, 4), nn.ReLU(), nn.Dense(4, 2)))
    x = ms.Tensor(np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32))
    compiled = ms.jit(ms.value_and_grad(lambda x: net(x).sum(), None, net.trainable_params()))
    net.set_train()
    compiled(x)
    assert int(net[0].input.steps.asnumpy()[0]) == 1
    one, gradients = compiled(x)
    assert len(gradients) == 4 and all(np.isfinite(g.asnumpy()).all() for g in gradients)


def test_what_cannot_be_is_refused() -> None:
    net = nn.SequentialCell(nn.Dense(2, 2))
    for arguments, error, text in (
        ({"weight_bits": 1}, ValueError, "weight_bits must be an int from 2 to 8, not 1"),
        ({"quant_delay": -1}, ValueError, "quant_delay must be an int of 0 or more"),
        ({"per_channel": True}, ValueError, "values have one range"),
        ({"symmetric": False}, ValueError, "weights are symmetric"),
        ({"narrow_range": 1}, TypeError, "narrow_range must be a bool or two"),
        ({"bn_fold": 1}, TypeError, "bn_fold must be a bool"),
        ({"decay": 1.0}, ValueError, "decay must be from 0 to below 1"),
    ):
        with pytest.raises(error, match=text):
            quantisation_aware(net, **arguments)
    with pytest.raises(ValueError, match="has no dense layer or convolution"):
        quantisation_aware(nn.ReLU())
    with pytest.raises(ValueError, match="has layers that round already"):
        quantisation_aware(quantisation_aware(net))
