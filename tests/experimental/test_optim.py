"""Optimizers with groups and their schedulers against values that PyTorch gave."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import mint
from mycel.experimental import optim
from mycel.experimental.optim import lr_scheduler
from tests.experimental import cases

EXPECTED = json.loads((pathlib.Path(__file__).parent / "expected.json").read_text())
CHECKED = {f"experimental.optim.{name}": "PyTorch" for name, _ in cases.OPTIMIZERS}
CHECKED.update({f"experimental.optim.lr_scheduler.{name}": "PyTorch" for name, _ in cases.SCHEDULERS})
CHECKED.update({f"mint.optim.{name}": "PyTorch" for name in ("Adam", "AdamW", "FusedAdamW", "SGD")})
CHECKED.update({f"experimental.optim.{name}": "definition" for name in ("Optimizer", "lr_scheduler.LRScheduler")})


def tensor(values: Any, which: int) -> ms.Tensor:
    return ms.Tensor(np.array(values, np.float32).reshape(cases.SHAPES[which]))


def parameters() -> list[ms.Parameter]:
    return [ms.Parameter(tensor(cases.start(w), w), name=f"p{w}") for w in range(2)]


def grouped(members: list[ms.Parameter]) -> list[dict[str, Any]]:
    return [{"params": [members[0]]}, {"params": [members[1]], "lr": cases.RATES[1]}]


def descent(rate: Any = 1.0) -> tuple[ms.Parameter, optim.SGD]:
    weight = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
    return weight, optim.SGD([weight], lr=rate)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize(("name", "options"), cases.OPTIMIZERS, ids=lambda v: v if isinstance(v, str) else "")
def test_steps(name: str, options: dict[str, Any], compiled: bool) -> None:
    for module, kind in ((optim, name), (mint.optim, name), (mint.optim, f"Fused{name}")):
        if not hasattr(module, kind):
            continue
        members = parameters()
        optimizer = getattr(module, kind)(grouped(members), lr=cases.RATES[0], **options)
        step = ms.jit(optimizer) if compiled else optimizer
        for k in range(max(cases.STEPS)):
            assert step(tuple(tensor(cases.gradient(w, k), w) for w in range(2))) is True
            if k + 1 in cases.STEPS:
                wanted = EXPECTED[cases.key(name, options)][cases.STEPS.index(k + 1)]
                for w, p in enumerate(members):
                    want = np.reshape(wanted[w], cases.SHAPES[w])
                    np.testing.assert_allclose(p.asnumpy(), want, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize(("name", "options"), cases.SCHEDULERS, ids=lambda v: v if isinstance(v, str) else "")
def test_rates(name: str, options: dict[str, Any], compiled: bool) -> None:
    optimizer = optim.SGD(grouped(parameters()), lr=cases.RATES[0])
    scheduler = cases.scheduler(lr_scheduler, optimizer, name, options)
    metrics = name == "ReduceLROnPlateau"

    def step(metric: Any) -> None:
        if metrics:
            scheduler.step(metric)
        else:
            scheduler.step()

    go = ms.jit(step) if compiled else step
    for k, wanted in enumerate(EXPECTED[cases.key(name, options)]):
        found = [rate.asnumpy().item() for rate in scheduler.get_last_lr()]
        np.testing.assert_allclose(found, wanted, rtol=3e-6, atol=1e-8, err_msg=f"step {k}")
        assert [group["lr"].asnumpy().item() for group in optimizer.param_groups] == found
        go(ms.Tensor(np.float32(cases.METRICS[k])))
    if compiled:
        assert not ms.explain(go).breaks


def test_a_compiled_training_step_with_its_schedule_is_compiled_once() -> None:
    weight, optimizer = descent()
    scheduler = lr_scheduler.StepLR(optimizer, 2, 0.5)

    @ms.jit
    def train(g: ms.Tensor) -> Any:
        optimizer((g,))
        scheduler.step()
        return optimizer.param_groups[0]["lr"] + 0.0

    rates = [train(ms.Tensor([1.0, 0.0])).item() for _ in range(6)]
    assert rates == [1.0, 0.5, 0.5, 0.25, 0.25, 0.125]
    np.testing.assert_allclose(weight.asnumpy(), [1 - 2 - 1 - 0.5, 2.0])
    assert len(ms.explain(train).graphs) == 1


def test_a_rate_or_an_option_that_is_set_between_steps_is_used() -> None:
    weight, optimizer = descent(0.5)
    gradient = (ms.Tensor([1.0, 0.0]),)
    for _ in range(5):
        optimizer(gradient)
    np.testing.assert_allclose(weight.asnumpy(), [-1.5, 2.0])
    optimizer.param_groups[0]["lr"] = 0.25
    optimizer(gradient)
    np.testing.assert_allclose(weight.asnumpy(), [-1.75, 2.0])
    ms.ops.assign(optimizer.param_groups[0]["lr"], ms.Tensor(1.0))
    optimizer(gradient)
    np.testing.assert_allclose(weight.asnumpy(), [-2.75, 2.0])
    optimizer.param_groups[0]["weight_decay"] = 0.5
    optimizer(gradient)
    np.testing.assert_allclose(weight.asnumpy(), [-2.75 - 1 + 1.375, 1.0])


def test_groups_can_be_added_and_have_names_and_states() -> None:
    first, second = parameters()
    optimizer = optim.NAdam([first], lr=0.1)
    optimizer((tensor(cases.gradient(0, 0), 0),))
    before = second.asnumpy().copy()
    optimizer.add_param_group({"params": [second], "lr": 0.5, "eps": 1e-6})
    assert [group["eps"] for group in optimizer.param_groups] == [1e-8, 1e-6]
    assert [p.name for p in optimizer.lrs] == ["learning_rate_group_0", "learning_rate_group_1"]
    assert [p.name for p in optimizer.exp_avg] == ["exp_avg.p0", "exp_avg.p1"]
    optimizer(tuple(tensor(cases.gradient(w, 1), w) for w in range(2)))
    assert np.abs(second.asnumpy() - before).min() > 1e-3
    assert "Parameter Group 1" in repr(optimizer) and "lr: 0.5" in repr(optimizer)


def test_training_of_a_network_lowers_its_loss() -> None:
    net = ms.nn.Dense(3, 1)
    optimizer = optim.AdamW(net.trainable_params(), lr=0.05)
    x = ms.Tensor(np.arange(12, dtype=np.float32).reshape(4, 3) / 10)
    value = ms.value_and_grad(lambda: ms.ops.sum((net(x) - 1.0) ** 2), None, optimizer.parameters)
    losses = []
    for _ in range(8):
        loss, gradients = value()
        optimizer(gradients)
        losses.append(loss.item())
    assert losses[-1] < losses[0]


def test_schedulers_of_ones_own() -> None:
    _, optimizer = descent()

    class Late(lr_scheduler.LRScheduler):
        def get_lr(self) -> list[Any]:
            if self.last_epoch < 2:
                return [lr * 1.0 for lr in self._last_lr]
            return [lr * 0.5 for lr in self._last_lr]

    scheduler = Late(optimizer)
    rates = []
    for _ in range(4):
        rates.append(scheduler.get_last_lr()[0].item())
        scheduler.step()
    assert rates == [1.0, 1.0, 0.5, 0.25]


def test_a_scheduler_goes_to_a_step_and_goes_on_from_one() -> None:
    _, optimizer = descent()
    scheduler = lr_scheduler.StepLR(optimizer, 2, 0.5)
    scheduler.step(7)
    assert scheduler.get_last_lr()[0].item() == 0.125
    assert lr_scheduler.StepLR(optimizer, 2, 0.5, last_epoch=7).get_last_lr()[0].item() == 0.0625
    fresh = descent()[1]
    with pytest.raises(KeyError, match="initial_lr"):
        lr_scheduler.StepLR(fresh, 2, last_epoch=3)


def test_errors() -> None:
    weight = ms.Parameter(ms.Tensor([1.0]), name="w")
    for error, match, make in (
        (ValueError, "no parameters", lambda: optim.SGD([], lr=0.1)),
        (TypeError, "list of Parameters", lambda: optim.SGD(weight, lr=0.1)),
        (ValueError, "learning rate", lambda: optim.SGD([weight], lr=-1.0)),
        (TypeError, "learning rate", lambda: optim.SGD([weight], lr="fast")),
        (ValueError, "two parameter", lambda: optim.SGD([{"params": [weight]}, {"params": [weight]}], lr=0.1)),
        (KeyError, "params", lambda: optim.SGD([{"weights": [weight]}], lr=0.1)),
        (ValueError, "nesterov", lambda: optim.SGD([weight], lr=0.1, nesterov=True)),
        (ValueError, "betas", lambda: optim.Adam([weight], betas=(1.0, 0.9))),
        (ValueError, "etas", lambda: optim.Rprop([weight], etas=(1.5, 0.5))),
        (ValueError, "1 gradients|2 gradients", lambda: optim.SGD([weight], lr=0.1)((weight, weight))),
        (TypeError, "optimizer", lambda: lr_scheduler.StepLR(ms.nn.SGD([weight]), 1)),
        (ValueError, "functions", lambda: lr_scheduler.LambdaLR(optim.SGD([weight], lr=0.1), [abs, abs])),
        (ValueError, "milestone", lambda: lr_scheduler.SequentialLR(optim.SGD([weight], lr=0.1), [], [1])),
        (NotImplementedError, "construct", lambda: optim.Optimizer([weight], {"lr": 0.1})((weight,))),
    ):
        with pytest.raises(error, match=match):
            make()
