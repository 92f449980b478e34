"""Optimizers against their formulas in NumPy, and what surrounds them: names, groups, rates,
errors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn

CHECKED = dict.fromkeys(("nn.AdamOffload", "nn.LARS", "nn.Lamb", "nn.Optimizer"), "NumPy")
START = np.array([1.0, -0.5, 0.25])


def gradient(step: int) -> np.ndarray[Any, Any]:
    return np.sin(np.arange(3) + 0.7 * step)


def parameter(value: Any = START, name: str = "w") -> ms.Parameter:
    return ms.Parameter(ms.Tensor(np.asarray(value, np.float32)), name=name)


def steps(make: Callable[[list[ms.Parameter]], nn.Optimizer], count: int = 4) -> np.ndarray[Any, Any]:
    w = parameter()
    optimizer = make([w])
    for step in range(count):
        assert optimizer((ms.Tensor(gradient(step).astype(np.float32)),)) is True
    assert optimizer.global_step.asnumpy().tolist() == [count]
    return w.asnumpy()


def test_nesterov_momentum() -> None:
    p, v = START.copy(), np.zeros(3)
    for step in range(4):
        g = gradient(step)
        v = 0.9 * v + g
        p -= 0.1 * (g + 0.9 * v)
    np.testing.assert_allclose(steps(lambda w: nn.Momentum(w, 0.1, 0.9, use_nesterov=True)), p, rtol=1e-5)


def test_adagrad_without_updated_slots() -> None:
    p = START - 0.1 * sum(gradient(step) for step in range(4)) / np.sqrt(0.5)
    np.testing.assert_allclose(steps(lambda w: nn.Adagrad(w, 0.5, 0.1, update_slots=False)), p, rtol=1e-5)


def test_ftrl_with_an_absolute_penalty() -> None:
    p, n, z = START.copy(), np.full(3, 0.1), np.zeros(3)
    for step in range(4):
        g = gradient(step)
        total = n + g * g
        z += g - (np.sqrt(total) - np.sqrt(n)) / 0.1 * p
        n = total
        p = np.where(abs(z) <= 0.3, 0.0, (np.sign(z) * 0.3 - z) / (np.sqrt(n) / 0.1 + 2 * 0.2))
    np.testing.assert_allclose(steps(lambda w: nn.FTRL(w, learning_rate=0.1, l1=0.3, l2=0.2)), p, rtol=1e-4, atol=1e-6)


def test_lamb() -> None:
    p, m, v = START.copy(), np.zeros(3), np.zeros(3)
    for step in range(4):
        g = gradient(step)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        u = m / (1 - 0.9 ** (step + 1)) / (np.sqrt(v / (1 - 0.999 ** (step + 1))) + 1e-6) + 0.05 * p
        p -= 0.1 * np.linalg.norm(p) / np.linalg.norm(u) * u
    np.testing.assert_allclose(steps(lambda w: nn.Lamb(w, 0.1, weight_decay=0.05)), p, rtol=1e-4)


def test_lamb_with_groups_and_rates_of_the_step() -> None:
    a, b = parameter(name="a"), parameter(START[::-1] * 2, name="b")
    groups = [{"params": [a], "weight_decay": 0.2}, {"params": [b], "lr": 0.3}]
    optimizer = nn.Lamb(groups, [0.1, 0.05, 0.2], beta1=0.8, beta2=0.9, eps=1e-3, weight_decay=0.01)
    states = [[START.copy(), 0.0, 0.0], [START[::-1] * 2, 0.0, 0.0]]
    for step, rate in enumerate((0.1, 0.05, 0.2)):
        optimizer(tuple(ms.Tensor((k + 1) * gradient(step + k)) for k in range(2)))
        for k, (state, lr, decay) in enumerate(zip(states, (rate, 0.3), (0.2, 0.01))):
            p, m, v = state
            g = (k + 1) * gradient(step + k)
            m, v = 0.8 * m + 0.2 * g, 0.9 * v + 0.1 * g * g
            u = m / (1 - 0.8 ** (step + 1)) / (np.sqrt(v / (1 - 0.9 ** (step + 1))) + 1e-3) + decay * p
            state[:] = p - lr * np.linalg.norm(p) / np.linalg.norm(u) * u, m, v
    for p, state in zip((a, b), states):
        np.testing.assert_allclose(p.asnumpy(), state[0], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("nesterov", [False, True])
def test_adam_of_the_host(nesterov: bool) -> None:
    p, m, v = START.copy(), np.zeros(3), np.zeros(3)
    for step in range(4):
        g = 0.5 * gradient(step) + 0.1 * p
        m, v = 0.8 * m + 0.2 * g, 0.9 * v + 0.1 * g * g
        rate = 0.1 * np.sqrt(1 - 0.9 ** (step + 1)) / (1 - 0.8 ** (step + 1))
        p -= rate * (0.8 * m + 0.2 * g if nesterov else m) / (np.sqrt(v) + 1e-3)
    make = lambda w: nn.AdamOffload(w, 0.1, 0.8, 0.9, 1e-3, False, nesterov, weight_decay=0.1, loss_scale=2.0)
    np.testing.assert_allclose(steps(make), p, rtol=1e-4)


def test_adafactor_keeps_rows_and_columns() -> None:
    members = [parameter(np.ones((2, 3, 4)), "a"), parameter(np.ones(3), "b")]
    optimizer = nn.AdaFactor(members, beta1=None, compression=True)
    shapes = {p.name: p.shape for p in optimizer.get_parameters() if p.name.startswith("exp")}
    assert shapes == {
        "exp_avg_sq_row_a": (2, 3),
        "exp_avg_sq_row_b": (1,),
        "exp_avg_sq_col_a": (2, 4),
        "exp_avg_sq_col_b": (1,),
        "exp_avg_sq_a": (1,),
        "exp_avg_sq_b": (3,),
    }
    assert optimizer.exp_avg_sq[1].dtype is ms.float16
    g = np.cos(np.arange(24)).reshape(2, 3, 4)
    optimizer((ms.Tensor(g.astype(np.float32)), ms.Tensor(gradient(0).astype(np.float32))))
    row, column = (g**2).mean(-1), (g**2).mean(-2)
    u = g / np.sqrt((row / row.mean(-1, keepdims=True))[..., None] * column[..., None, :])
    u /= max(1.0, np.sqrt((u**2).mean()))
    np.testing.assert_allclose(members[0].asnumpy(), 1 - 0.01 * u, rtol=1e-5)


def test_lars_with_groups_decays_each_its_own() -> None:
    a, b = parameter(name="a"), parameter(START[::-1] * 2, name="b.bias")
    inner = nn.SGD([{"params": [a], "weight_decay": 0.2, "lr": [0.5, 0.25]}, {"params": [b]}], 0.3, weight_decay=0.1)
    optimizer = nn.LARS(inner, coefficient=0.1)
    p, q = START.copy(), START[::-1] * 2
    for step, lr in enumerate((0.5, 0.25)):
        g, h = gradient(step), gradient(step + 1)
        optimizer((ms.Tensor(g.astype(np.float32)), ms.Tensor(h.astype(np.float32))))
        size = np.linalg.norm(p)
        p = p - lr * 0.1 * size / (np.linalg.norm(g) + 0.2 * size + 1e-5) * (g + 0.2 * p)
        q = q - 0.3 * h
    np.testing.assert_allclose(a.asnumpy(), p, rtol=1e-5)
    np.testing.assert_allclose(b.asnumpy(), q, rtol=1e-5)


def test_lamb_of_a_zero_parameter_takes_a_plain_step() -> None:
    w = parameter(np.zeros(2))
    nn.Lamb([w], 0.1)((ms.Tensor([2.0, -3.0]),))
    np.testing.assert_allclose(w.asnumpy(), [-0.1, 0.1], rtol=1e-4)


@pytest.mark.parametrize("clip", [False, True])
def test_lars(clip: bool) -> None:
    p, v = START.copy(), np.zeros(3)
    for step in range(4):
        g = gradient(step)
        size = np.linalg.norm(p)
        rate = 0.2 * size / (np.linalg.norm(g) + 0.1 * size + 1e-5)
        rate = min(rate / 0.5, 1.0) if clip else rate
        v = 0.9 * v + rate * (g + 0.1 * p)
        p -= 0.5 * v

    def make(w: list[ms.Parameter]) -> nn.Optimizer:
        return nn.LARS(nn.Momentum(w, 0.5, 0.9, weight_decay=0.1), coefficient=0.2, use_clip=clip)

    np.testing.assert_allclose(steps(make), p, rtol=1e-4)


def test_lars_leaves_filtered_parameters_to_the_optimizer() -> None:
    w = parameter(name="fc.bias")
    nn.LARS(nn.SGD([w], 0.5, weight_decay=0.1))((ms.Tensor([1.0, 1.0, 1.0]),))
    np.testing.assert_allclose(w.asnumpy(), START - 0.5, rtol=1e-6)


def test_lars_divides_by_the_loss_scale() -> None:
    plain, scaled = parameter(), parameter()
    nn.LARS(nn.Momentum([plain], 0.5, 0.9, weight_decay=0.1))((ms.Tensor([1.0, 2.0, 3.0]),))
    nn.LARS(nn.Momentum([scaled], 0.5, 0.9, weight_decay=0.1, loss_scale=8.0))((ms.Tensor([8.0, 16.0, 24.0]),))
    np.testing.assert_allclose(scaled.asnumpy(), plain.asnumpy(), rtol=1e-6)


def test_gradient_centralization_of_convolution_weights() -> None:
    g = np.arange(16, dtype=np.float32).reshape(2, 2, 2, 2)
    conv, dense = parameter(np.zeros((2, 2, 2, 2)), "conv"), parameter(np.zeros((2, 2)), "dense")
    optimizer = nn.SGD([{"params": [conv, dense], "grad_centralization": True}], 1.0)
    optimizer((ms.Tensor(g), ms.Tensor(g[0, 0])))
    np.testing.assert_allclose(-conv.asnumpy(), g - g.mean(axis=(1, 2, 3), keepdims=True))
    np.testing.assert_allclose(-dense.asnumpy(), g[0, 0])


def test_a_half_precision_parameter_keeps_its_type() -> None:
    w = ms.Parameter(ms.Tensor(START.astype(np.float16)), name="w")
    nn.Adam([w], 0.1)((ms.Tensor(np.ones(3, np.float16)),))
    assert w.dtype is ms.float16
    np.testing.assert_allclose(w.asnumpy(), START - 0.1, atol=2e-3)


@pytest.mark.parametrize(
    "make",
    [
        nn.SGD,
        nn.Adam,
        nn.AdamWeightDecay,
        nn.AdaMax,
        nn.Adagrad,
        nn.RMSProp,
        nn.ProximalAdagrad,
        nn.FTRL,
        nn.Adadelta,
        nn.Rprop,
        nn.ASGD,
    ],
)
def test_a_parameter_without_dimensions_goes_down(make: Any) -> None:
    w = parameter(1.0)
    optimizer = make([w], learning_rate=0.01)
    for _ in range(3):
        optimizer((ms.Tensor(2.0),))
    assert w.shape == () and float(w) < 1


def test_state_names() -> None:
    net = nn.SequentialCell(nn.Dense(3, 4))
    names = lambda optimizer: [p.name for p in optimizer.get_parameters()]
    weights = ["0.weight", "0.bias"]
    head = ["global_step", "learning_rate", *weights]
    assert names(nn.Momentum(net.trainable_params(), 0.1, 0.9)) == [
        *head,
        "momentum",
        "moments.0.weight",
        "moments.0.bias",
    ]
    adam = [
        *head,
        "beta1_power",
        "beta2_power",
        "moment1.0.weight",
        "moment1.0.bias",
        "moment2.0.weight",
        "moment2.0.bias",
    ]
    assert names(nn.Adam(net.trainable_params())) == adam
    assert names(nn.Adam(net.trainable_params(), use_amsgrad=True)) == [*adam, "vhat.0.weight", "vhat.0.bias"]
    sgd = [*head, "momentum", "accum.0.weight", "accum.0.bias", "stat.0.weight", "stat.0.bias"]
    assert names(nn.SGD(net.trainable_params(), momentum=0.9)) == sgd
    listed = nn.Momentum(net.trainable_params(), [0.1, 0.2], 0.9)
    assert {p.name: p.shape for p in listed.get_parameters()}["learning_rate"] == (2,)
    groups = nn.Momentum(
        [{"params": net.trainable_params()[:1], "lr": 0.2}, {"params": net.trainable_params()[1:]}], 0.1, 0.9
    )
    assert names(groups)[:3] == ["global_step", "learning_rate_group_0", "learning_rate"]
    assert net.trainable_params()[0].name == "0.weight"


def test_momentum_takes_lr_for_learning_rate() -> None:
    w = parameter()
    nn.Momentum([w], lr=0.002, momentum=0.9, weight_decay=1e-4, loss_scale=2.0)((ms.Tensor([2.0, 2.0, 2.0]),))
    np.testing.assert_allclose(w.asnumpy(), START - 0.002 * (1 + 1e-4 * START), rtol=1e-6)
    with pytest.raises(TypeError, match="give the learning rate once"):
        nn.Momentum([w], 0.1, 0.9, lr=0.1)


def test_rates_and_decays_that_are_asked_for() -> None:
    a, b = parameter(name="a"), parameter(name="b")
    optimizer = nn.Momentum(
        [{"params": [a], "lr": [0.2, 0.3], "weight_decay": 0.5}, {"params": [b]}, {"order_params": [b, a]}], 0.1, 0.9
    )
    assert [p.name for p in optimizer.parameters] == ["b", "a"]
    assert [round(float(lr), 4) for lr in optimizer.get_lr()] == [0.1, 0.2]
    assert optimizer.get_weight_decay() == (0.0, 0.5)
    assert optimizer.get_lr_parameter(a).name == "learning_rate_group_0"
    assert [p.name for p in optimizer.get_lr_parameter([b, a])] == ["learning_rate", "learning_rate_group_0"]
    optimizer((ms.Tensor(START), ms.Tensor(START)))
    assert round(float(optimizer.get_lr()[1]), 4) == 0.3
    optimizer((ms.Tensor(START), ms.Tensor(START)))
    assert round(float(optimizer.get_lr()[1]), 4) == 0.3, "the last rate holds after the end of the list"


def test_the_rate_can_be_changed_in_place() -> None:
    w = parameter()
    optimizer = nn.SGD([w], 0.1)
    optimizer.learning_rate.set_data(ms.Tensor(1.0))
    optimizer((ms.Tensor([1.0, 1.0, 1.0]),))
    np.testing.assert_allclose(w.asnumpy(), START - 1, rtol=1e-6)


def test_weight_decay_as_a_cell_of_the_step() -> None:
    class Rising(nn.Cell):
        def construct(self, step: Any) -> Any:
            return 0.1 * (step + 1)

    w = parameter()
    optimizer = nn.SGD([w], 1.0, weight_decay=Rising())
    zero = (ms.Tensor(np.zeros(3, np.float32)),)
    optimizer(zero)
    np.testing.assert_allclose(w.asnumpy(), START * 0.9, rtol=1e-6)
    optimizer(zero)
    np.testing.assert_allclose(w.asnumpy(), START * 0.9 * 0.8, rtol=1e-6)


def test_a_user_defined_optimizer() -> None:
    class Mine(nn.Optimizer):
        def __init__(self, params: Any, learning_rate: Any) -> None:
            super().__init__(learning_rate, params)
            self.count = self.states("count")

        def construct(self, gradients: Any) -> Any:
            lr = self.get_lr()
            self.assignadd(self.global_step, 1)
            for p, g, c in zip(self.parameters, self.scale_grad(self.decay_weight(gradients)), self.count):
                self.assignadd(c, 1.0)
                p.set_data(p - lr * g)
            return True

    w = parameter()
    optimizer = Mine([w], 0.5)
    optimizer((ms.Tensor([1.0, 1.0, 1.0]),))
    np.testing.assert_allclose(w.asnumpy(), START - 0.5)
    assert optimizer.count[0].asnumpy().tolist() == [1, 1, 1] and optimizer.count[0].name == "count.w"


@pytest.mark.parametrize(
    "make, error, text",
    [
        (lambda w: nn.Momentum([], 0.1, 0.9), ValueError, "no parameters to optimize"),
        (lambda w: nn.Momentum(nn.Dense(1, 1), 0.1, 0.9), TypeError, "must be a list of them"),
        (lambda w: nn.Momentum([1], 0.1, 0.9), TypeError, "all Parameters or all groups"),
        (lambda w: nn.Momentum(w, -0.1, 0.9), ValueError, "learning_rate must be at least 0, not -0.1"),
        (lambda w: nn.Momentum(w, "a", 0.9), ValueError, "must be a number, a tensor, an iterable"),
        (lambda w: nn.Momentum(w, [], 0.9), ValueError, "list of learning rates is empty"),
        (lambda w: nn.Momentum(w, ms.Tensor([[0.1]]), 0.9), ValueError, "0 or 1 dimensions, not 2"),
        (lambda w: nn.Momentum(w, 0.1, -0.9), ValueError, "momentum must be at least 0, not -0.9"),
        (lambda w: nn.Momentum(w, 0.1), TypeError, "argument momentum is missing"),
        (lambda w: nn.Momentum(w, 0.1, 0.9, loss_scale=0.0), ValueError, "loss_scale must be above 0, not 0.0"),
        (
            lambda w: nn.Momentum(w, 0.1, 0.9, weight_decay=-1.0),
            ValueError,
            "weight_decay must be at least 0, not -1.0",
        ),
        (lambda w: nn.Momentum(w, 0.1, 0.9, weight_decay="a"), TypeError, "must be a number or a Cell, not str"),
        (lambda w: nn.Momentum([parameter(), parameter()], 0.1, 0.9), ValueError, "two parameters are named 'w'"),
        (lambda w: nn.Momentum([*w, *w], 0.1, 0.9), ValueError, "listed twice"),
        (lambda w: nn.Momentum([{"params": w}, {"params": w}], 0.1, 0.9), RuntimeError, "'w' is in two groups"),
        (
            lambda w: nn.Momentum([{"params": w, "foo": 1}], 0.1, 0.9),
            KeyError,
            "'foo' is not a key of a parameter group",
        ),
        (lambda w: nn.Momentum([{"lr": 0.1}], 0.1, 0.9), KeyError, "has no 'params'"),
        (
            lambda w: nn.Momentum([{"params": w}, {"order_params": []}], 0.1, 0.9),
            ValueError,
            "every parameter of the groups once",
        ),
        (lambda w: nn.SGD(w, dampening=-1.0), ValueError, "dampening must be at least 0"),
        (lambda w: nn.SGD(w, nesterov=True), ValueError, "nesterov needs a positive momentum and no dampening"),
        (lambda w: nn.SGD(w, nesterov=1), TypeError, "nesterov must be a bool, not int"),
        (lambda w: nn.Adam(w, beta1=1.0), ValueError, "beta1 must be below 1, not 1.0"),
        (lambda w: nn.Adam(w, eps=0.0), ValueError, "eps must be above 0"),
        (lambda w: nn.Adam(w, lr=0.1), KeyError, "unknown arguments lr"),
        (lambda w: nn.Adam(w, use_amsgrad=True, use_lazy=True), ValueError, "use_amsgrad does not go with"),
        (lambda w: nn.RMSProp(w, epsilon=0.0), ValueError, "epsilon must be above 0"),
        (lambda w: nn.Adagrad(w, accum=-1.0), ValueError, "accum must be at least 0"),
        (lambda w: nn.FTRL(w, lr_power=1.0), ValueError, "lr_power must be at most 0"),
        (lambda w: nn.FTRL(w, learning_rate=[0.1, 0.2]), ValueError, "one constant learning rate"),
        (lambda w: nn.Adadelta(w, rho=2.0), ValueError, "rho must be at most 1"),
        (lambda w: nn.Rprop(w, etas=(1.0, 2.0)), ValueError, r"etas\[0\] must be below 1"),
        (lambda w: nn.Rprop(w, step_sizes=(3.0, 2.0)), ValueError, "smallest step size 3.0 is above the largest 2.0"),
        (lambda w: nn.LARS(1), TypeError, "optimizer must be an Optimizer, not int"),
        (lambda w: nn.AdaFactor(w, 0.1), ValueError, "give a learning_rate where relative_step=False"),
        (
            lambda w: nn.AdaFactor(w, 0.1, relative_step=False, warmup_init=True),
            ValueError,
            "warmup_init needs relative_step",
        ),
        (lambda w: nn.AdaFactor(w, eps=1e-3), TypeError, "eps must be a tuple or a list"),
        (lambda w: nn.AdaFactor(w, decay_rate=0.0), ValueError, "decay_rate must be above 0"),
        (lambda w: nn.SGD(w)(()), RuntimeError, "there are 0 gradients for 1 parameters"),
        (
            lambda w: nn.SGD(w)((ms.Tensor([1.0]),)),
            ValueError,
            r"gradient of 'w' has shape \(1,\), the parameter \(3,\)",
        ),
        (lambda w: nn.SGD(w)((1.0,)), TypeError, "gradient of 'w' must be a Tensor, not float"),
    ],
)
def test_bad_arguments(make: Callable[[Any], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        make([parameter()])


@pytest.mark.parametrize(("kind", "right"), [(nn.AdamWeightDecay, 0.25713187), (nn.Lamb, 0.81)])
def test_one_derived_past_its_base_begins_as_any_optimizer(kind: type[nn.Optimizer], right: float) -> None:
    class Own(kind):  # type: ignore[valid-type,misc]
        def __init__(self, params: Any, learning_rate: float, weight_decay: float) -> None:
            super(kind, self).__init__(learning_rate, params, weight_decay)
            self.beta1, self.beta2, self.eps = (ms.Tensor([v], ms.float32) for v in (0.9, 0.999, 1e-6))
            self.moments1 = self.parameters.clone(prefix="m", init="zeros")
            self.moments2 = self.parameters.clone(prefix="v", init="zeros")

    w = ms.Parameter(ms.Tensor([1.0, 1.0]), name="w")
    optimizer = Own([w], 0.1, weight_decay=0.01)
    for _ in range(2):
        optimizer((ms.Tensor([3.0, 3.0]),))
    np.testing.assert_allclose(w.asnumpy(), [right, right], rtol=1e-6)
    np.testing.assert_allclose(optimizer.moments1[0].asnumpy(), [0.57, 0.57], rtol=1e-6)
