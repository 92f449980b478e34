"""Losses against formulas in float64: values and reductions in every floating type, eagerly and
compiled, and derivatives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import mycel as ms
from mycel import nn
from tests.meaning import A, Checks, I
from tests.nn.cases import wave

checks = Checks("NumPy")
CHECKED = {"nn.LossBase": "NumPy"}

KINDS = "float64 float32 float16"
REDUCTIONS: dict[str, Callable[..., Any]] = {"mean": np.mean, "sum": np.sum, "none": lambda x: x}


def low(*shape: int, at: float = 0.1, to: float = 0.9) -> Any:
    return A(*shape, low=at, high=to)


def signs(*shape: int) -> Any:
    return A(*shape, values=np.sign(wave(*shape, phase=2.0)).astype(np.float64))


def add(
    name: str,
    each: Any,
    *cases: Any,
    reductions: str = "mean sum none",
    grad: tuple[int, ...] = (0, 1),
    tolerance: float = 4.0,
    **init: Any,
) -> None:
    for reduction in reductions.split():
        reduce = REDUCTIONS[reduction]
        checks.add(
            f"nn.{name}",
            lambda *a, r=reduce: r(each(*a)),
            *cases,
            init={"reduction": reduction, **init},
            dtypes=KINDS,
            grad=grad,
            tolerance=tolerance,
        )


PAIRS = ((A(3, 5), A(3, 5)), (A(2, 3, 4), A(2, 3, 4)), (A(1), A(1)), (A(7), A(7)))


def smooth(d: Any, beta: float) -> Any:
    return np.where(np.abs(d) < beta, 0.5 * d * d / beta, np.abs(d) - 0.5 * beta)


add("L1Loss", lambda x, y: np.abs(x - y), *PAIRS)
add("L1Loss", lambda x, y: np.abs(x - y), (A(3, 5), A(5)), (A(1, 4), A(3, 1)), reductions="mean none")
add("MAELoss", lambda x, y: np.abs(x - y), *PAIRS)
add("MSELoss", lambda x, y: (x - y) ** 2, *PAIRS)
add("SmoothL1Loss", lambda x, y: smooth(x - y, 1.0), *PAIRS)
add("SmoothL1Loss", lambda x, y: smooth(x - y, 0.3), *PAIRS, beta=0.3)
add("HuberLoss", lambda x, y: smooth(x - y, 1.0), *PAIRS)
add("HuberLoss", lambda x, y: 0.6 * smooth(x - y, 0.6), *PAIRS, delta=0.6)
checks.add(
    "nn.RMSELoss",
    lambda x, y: np.sqrt(((x - y) ** 2).mean()),
    *PAIRS[:2],
    (A(4, 1), A(4, 1)),
    dtypes=KINDS,
    tolerance=4,
)
checks.add("nn.SmoothL1Loss", lambda x, y: smooth(x - y, 1.0), *PAIRS, dtypes=KINDS)
add("PoissonNLLLoss", lambda x, y: np.exp(x) - y * x, *PAIRS)
add(
    "PoissonNLLLoss",
    lambda x, y: x - y * np.log(x + 0.1),
    (low(3, 5), low(3, 5)),
    (low(4), low(4)),
    (low(2, 1, 2), low(2, 1, 2)),
    log_input=False,
    eps=0.1,
)


def stirling(y: Any) -> Any:
    with np.errstate(all="ignore"):
        return np.where(y > 1, y * np.log(y) - y + 0.5 * np.log(2 * np.pi * y), 0)


add(
    "PoissonNLLLoss",
    lambda x, y: np.exp(x) - y * x + stirling(y),
    (A(3, 5), low(3, 5, to=4.0)),
    (A(4), low(4, to=4.0)),
    (A(1, 2), low(1, 2, at=2.0, to=3.0)),
    full=True,
)


def gaussian(x: Any, y: Any, v: Any, eps: float = 1e-6, full: bool = False) -> Any:
    v = np.maximum(v, eps)
    return 0.5 * (np.log(v) + (x - y) ** 2 / v) + (0.5 * np.log(2 * np.pi) if full else 0)


THREE = ((A(3, 5), A(3, 5), low(3, 5)), (A(2, 1, 4), A(2, 1, 4), low(2, 1, 4)), (A(6), A(6), low(6)))
add("GaussianNLLLoss", gaussian, *THREE, grad=(0, 1, 2))
add("GaussianNLLLoss", lambda *a: gaussian(*a, 0.3, True), *THREE, eps=0.3, full=True)
SIGNED = tuple((x, signs(*x.shape)) for x, _ in PAIRS)
add("SoftMarginLoss", lambda x, y: np.logaddexp(0, -x * y), *SIGNED, grad=(0,))
add("HingeEmbeddingLoss", lambda x, y: np.where(y > 0, x, np.maximum(0, 1 - x)), *SIGNED, grad=(0,))
add("HingeEmbeddingLoss", lambda x, y: np.where(y > 0, x, np.maximum(0, 0.3 - x)), *SIGNED, grad=(0,), margin=0.3)
RANKED = tuple((x, y, signs(*x.shape)) for x, y in PAIRS)
add("MarginRankingLoss", lambda x, y, s: np.maximum(0, -s * (x - y)), *RANKED)
add("MarginRankingLoss", lambda x, y, s: np.maximum(0, 0.4 - s * (x - y)), *RANKED, margin=0.4)

PROBABILITIES = ((low(3, 5), low(3, 5)), (low(2, 3, 2), low(2, 3, 2)), (low(1), low(1)))


def entropy(p: Any, y: Any) -> Any:
    return -(y * np.log(p) + (1 - y) * np.log(1 - p))


add("BCELoss", entropy, *PROBABILITIES, grad=(0,))
LOGITS = tuple((x, low(*x.shape)) for x, _ in PAIRS)
add("BCEWithLogitsLoss", lambda x, y: entropy(scipy.special.expit(x), y), *LOGITS)
POSITIVE = np.arange(5.0) + 0.5


def weighted(x: Any, y: Any) -> Any:
    p = scipy.special.expit(x)
    return -(POSITIVE * y * np.log(p) + (1 - y) * np.log(1 - p)) * np.arange(5.0)


add(
    "BCEWithLogitsLoss",
    weighted,
    (A(3, 5), low(3, 5)),
    (A(2, 2, 5), low(2, 2, 5)),
    (A(1, 5), low(1, 5)),
    grad=(0,),
    weight=ms.Tensor(np.arange(5.0)),
    pos_weight=ms.Tensor(POSITIVE),
)
LOGS = tuple((A(*x.shape, low=-3.0, high=-0.1), y) for x, y in PROBABILITIES)
add("KLDivLoss", lambda x, y: y * (np.log(y) - x), *LOGS)
checks.add(
    "nn.KLDivLoss",
    lambda x, y: (y * (np.log(y) - x)).sum() / len(x),
    *LOGS,
    init={"reduction": "batchmean"},
    dtypes=KINDS,
    tolerance=4,
)
MANY = ((A(3, 5), low(3, 5)), (A(1, 2), low(1, 2)), (A(4, 1), low(4, 1)))
add("MultiLabelSoftMarginLoss", lambda x, y: entropy(scipy.special.expit(x), y).mean(-1), *MANY, grad=(0,))
add(
    "MultiLabelSoftMarginLoss",
    lambda x, y: (np.arange(5.0) * entropy(scipy.special.expit(x), y)).mean(-1),
    (A(3, 5), low(3, 5)),
    (A(1, 5), low(1, 5)),
    (A(4, 5), low(4, 5)),
    grad=(0,),
    weight=ms.Tensor(np.arange(5.0), ms.float16),
)


def multi_margin(x: Any, y: Any, p: int = 1, margin: float = 1.0, weight: Any = None) -> Any:
    rows = np.arange(len(y))
    scale = 1 if weight is None else weight[y][:, None]
    each = scale * np.maximum(0, margin - x[rows, y][:, None] + x) ** p
    each[rows, y] = 0
    return each.mean(1)


CLASSES = ((A(3, 5), I(3)), (A(1, 5), I(1)), (A(7, 6), I(7)))
add("MultiMarginLoss", multi_margin, *CLASSES, grad=(0,))
add("MultiMarginLoss", lambda x, y: multi_margin(x, y, 2, 0.5), *CLASSES, grad=(0,), p=2, margin=0.5)
add(
    "MultiMarginLoss",
    lambda x, y: multi_margin(x, y, 1, 1.0, POSITIVE),
    (A(3, 5), I(3)),
    (A(6, 5), I(6)),
    (A(1, 5), I(1)),
    grad=(0,),
    weight=ms.Tensor(POSITIVE, ms.float16),
)


def multilabel_margin(x: Any, y: Any) -> Any:
    result = np.zeros(x.shape[:-1])
    for row in np.ndindex(*x.shape[:-1]):
        wanted = []
        for k in y[row]:
            if k < 0:
                break
            wanted.append(k)
        others = [k for k in range(x.shape[-1]) if k not in wanted]
        result[row] = sum(max(0.0, 1 - (x[row][k] - x[row][j])) for k in wanted for j in others) / x.shape[-1]
    return result


LISTS = np.array([[1, 2, -1, 0, 0], [0, -1, 3, 0, 0], [3, 4, 0, 1, -1], [-1, 1, 1, 1, 1]])
add(
    "MultilabelMarginLoss",
    multilabel_margin,
    (A(4, 5), A(4, 5, values=LISTS.astype(np.int32))),
    (A(2, 5), A(2, 5, values=LISTS[1:3].astype(np.int32))),
    (A(5), A(5, values=LISTS[2].astype(np.int32))),
    grad=(0,),
)


def triplet(a: Any, p: Any, n: Any, margin: float = 1.0, power: int = 2, swap: bool = False) -> Any:
    distance = lambda x, y: (np.abs(x - y + 1e-6) ** power).sum(-1) ** (1 / power)
    far = distance(a, n)
    return np.maximum(0, distance(a, p) - (np.minimum(far, distance(p, n)) if swap else far) + margin)


TRIPLETS = ((A(3, 5), A(3, 5), A(3, 5)), (A(1, 2), A(1, 2), A(1, 2)), (A(6, 3), A(6, 3), A(6, 3)))
add("TripletMarginLoss", triplet, *TRIPLETS, grad=(0, 1, 2))
add("TripletMarginLoss", lambda *a: triplet(*a, 0.5, 1, True), *TRIPLETS, grad=(0, 1, 2), p=1, swap=True, margin=0.5)


def focal(x: Any, y: Any, gamma: float = 2.0, weight: Any = 1.0) -> Any:
    logs = scipy.special.log_softmax(x, 1)
    chosen = np.arange(x.shape[1]).reshape(1, -1, *(1,) * (x.ndim - 2)) == y
    scale = np.reshape(weight, (1, -1, *(1,) * (x.ndim - 2)))
    return (-((1 - np.exp(logs)) ** gamma) * logs * chosen * scale).sum(1)


FOCAL = ((A(3, 5), I(3, 1)), (A(2, 5, 3), I(2, 1, 3)), (A(2, 5, 2, 2), I(2, 1, 2, 2)))
add("FocalLoss", focal, *FOCAL, grad=(0,))
add(
    "FocalLoss",
    lambda x, y: focal(x, y, 1.5, POSITIVE),
    *FOCAL,
    grad=(0,),
    gamma=1.5,
    weight=ms.Tensor(POSITIVE, ms.float16),
)
add(
    "SoftmaxCrossEntropyWithLogits",
    lambda x, y: -(y * scipy.special.log_softmax(x, -1)).sum(-1),
    (A(3, 5), low(3, 5)),
    (A(1, 2), low(1, 2)),
    (A(6, 3), low(6, 3)),
    # Its derivative is defined otherwise where labels do not sum to 1: see `test_losses`.
    grad=(),
)
add(
    "SoftmaxCrossEntropyWithLogits",
    lambda x, y: -np.take_along_axis(scipy.special.log_softmax(x, -1), y[:, None], 1)[:, 0],
    *CLASSES,
    grad=(0,),
    sparse=True,
)
test_values, test_gradients = checks.tests()


@pytest.mark.parametrize("reduction", list(REDUCTIONS))
@pytest.mark.parametrize("shape", [(3, 4), (5,), (2, 1, 3)])
def test_losses_of_ones_own(reduction: str, shape: tuple[int, ...]) -> None:
    class Cubes(nn.LossBase):
        def construct(self, logits: ms.Tensor, labels: ms.Tensor) -> ms.Tensor:
            return self.get_loss(ms.ops.abs(logits - labels) ** 3, 0.5)

    loss = Cubes(reduction)
    x, y = wave(*shape).astype(np.float64), wave(*shape, phase=1.0).astype(np.float64)
    expected = REDUCTIONS[reduction](0.5 * np.abs(x - y) ** 3)
    for call in (loss, ms.jit(lambda a, b: loss(a, b))):
        np.testing.assert_allclose(call(ms.Tensor(x), ms.Tensor(y)).asnumpy(), expected, rtol=1e-9)
    assert loss.get_axis(ms.Tensor(x)) == tuple(range(len(shape)))
    with pytest.raises(ValueError, match="Cubes: reduction must be one of 'mean', 'sum', 'none', not 'x'"):
        Cubes("x")


def test_types_of_weighted_losses_are_those_of_the_products() -> None:
    x, wide, index = ms.ops.ones((2, 3)).astype(ms.float16), ms.ops.ones(3), ms.Tensor([0, 2], ms.int32)
    for reduction in REDUCTIONS:
        assert nn.CrossEntropyLoss(wide, reduction=reduction)(x, index).dtype is ms.float32
        assert nn.CrossEntropyLoss(wide, reduction=reduction)(x, x).dtype is ms.float32
        assert nn.NLLLoss(wide, reduction=reduction)(x, index).dtype is ms.float32
        assert nn.NLLLoss(wide.astype(ms.float16), reduction=reduction)(x.astype(ms.float32), index).dtype is ms.float32
        assert nn.FocalLoss(wide, reduction=reduction)(x, ms.Tensor([[0], [2]])).dtype is ms.float32
        assert nn.MultiLabelSoftMarginLoss(wide, reduction)(x, x).dtype is ms.float32
        assert nn.CrossEntropyLoss(wide.astype(ms.float16), reduction=reduction)(x, index).dtype is ms.float16


def test_labels_of_the_hinge_are_told_by_sign() -> None:
    x = ms.Tensor(np.array([0.3, 0.3, 0.3, 0.3, 2.0, 2.0], np.float32))
    labels = ms.Tensor(np.array([0, 1, -1, 0.2, -0.2, 5], np.float32))
    np.testing.assert_allclose(
        nn.HingeEmbeddingLoss(reduction="none")(x, labels).asnumpy(), [0, 0.3, 0.7, 0.3, 0, 2], rtol=1e-6
    )
