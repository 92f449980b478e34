"""Diagonals, blocks, sequences, temporal classification, writing functions and plain numbers
against NumPy, PyTorch's and MindSpore's values.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, ops
from tests.meaning import A, Checks, I

CASES = json.loads((Path(__file__).parent / "expected_ctc.json").read_text())
NUMBERS = "add div eq floordiv ge gt le lt max min mod mul ne pow sub log uadd usub cast to_tensor"
CHECKED = {
    "ops.ctc_loss": "PyTorch",
    "ops.renorm": "NumPy",
    "Tensor.renorm": "NumPy",
    "ops.ctc_greedy_decoder": "MindSpore",
    "ops.matrix_diag_part": "MindSpore",
    "ops.matrix_diag": "MindSpore",
    "ops.matrix_set_diag": "MindSpore",
    "ops.col2im": "MindSpore",
    "ops.tuple_to_array": "Python",
    "ops.tensor_range": "NumPy",
    "ops.padding": "NumPy",
    "ops.space_to_batch_nd": "MindSpore",
    "ops.batch_to_space_nd": "MindSpore",
    "ops.zero_": "NumPy",
    "ops.tanh_": "NumPy",
    "ops.erfinv_": "SciPy",
    "ops.clamp_": "NumPy",
    "ops.put_": "NumPy",
    "ops.uniform_": "bounds",
    "ops.normal_": "moments",
    "ops.random_": "bounds",
    "ops.bernoulli_": "bounds",
    "ops.exponential_": "bounds",
    "Tensor.col2im": "MindSpore",
    **{f"ops.scalar_{n}": "Python" for n in NUMBERS.split()},
}
checks = Checks("NumPy")


def _reversed(x: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    out = x.copy()
    for i, n in enumerate(lengths.astype(int)):
        out[i, :n] = x[i, :n][::-1]
    return out


def _scattered(x: np.ndarray, src: np.ndarray) -> np.ndarray:
    out = x.copy()
    rows = np.arange(src.shape[-1])
    out[rows, rows + 1] = src
    return out


checks.add(
    "ops.reverse_sequence Tensor.reverse_sequence",
    lambda x, n, **_: _reversed(x, n),
    (A(3, 4), I(3)),
    (A(2, 5, 3), I(2, high=6)),
    (A(1, 1), I(1, high=2)),
    kwargs={"seq_dim": 1},
)
checks.add("ops.diagflat Tensor.diagflat", lambda x: np.diagflat(x), (A(3),), (A(2, 3),), (A(0),), (A(1, 1),))
checks.add(
    "ops.diagonal_scatter Tensor.diagonal_scatter",
    lambda x, s, offset: _scattered(x, s),
    (A(3, 4), A(3)),
    (A(4, 3), A(2)),
    (A(1, 2), A(1)),
    kwargs={"offset": 1},
)
checks.add(
    "ops.matrix_band_part",
    lambda x, lower, upper: np.triu(np.tril(x, upper), -lower),
    (A(3, 4),),
    (A(2, 5, 3),),
    (A(1, 1),),
    kwargs={"lower": 1, "upper": 2},
)
test_values, test_gradients = checks.tests()


@pytest.mark.parametrize("p", [1, 2])
def test_renorm(p: int) -> None:
    x = np.random.default_rng(0).normal(size=(2, 3, 4))
    size = (np.abs(x) ** p).sum((0, 2), keepdims=True) ** (1 / p)
    want = x * np.where(size > 1.5, 1.5 / (size + 1e-7), 1.0)
    np.testing.assert_allclose(ops.renorm(Tensor(x), p, 1, 1.5).asnumpy(), want, rtol=1e-12)
    np.testing.assert_allclose(Tensor(x).renorm(p, -2, 1.5).asnumpy(), want, rtol=1e-12)


PARTS = {
    "RIGHT_LEFT": [[9, 3, 8], [2, 7, 12], [1, 6, 11], [5, 10, 9]],
    "LEFT_RIGHT": [[3, 8, 9], [2, 7, 12], [1, 6, 11], [9, 5, 10]],
    "LEFT_LEFT": [[3, 8, 9], [2, 7, 12], [1, 6, 11], [5, 10, 9]],
    "RIGHT_RIGHT": [[9, 3, 8], [2, 7, 12], [1, 6, 11], [9, 5, 10]],
}


@pytest.mark.parametrize("align", list(PARTS))
def test_many_diagonals(align: str) -> None:
    x = np.arange(1.0, 25).reshape(2, 3, 4)
    part = ops.matrix_diag_part(Tensor(x), Tensor([-1, 2], ms.int32), Tensor(9.0), align)
    assert part.tolist()[0] == PARTS[align]
    again = ops.matrix_set_diag(Tensor(np.zeros_like(x)), part, (-1, 2), align)
    band = np.triu(np.tril(x, 2), -1)
    np.testing.assert_array_equal(again.asnumpy(), band)
    np.testing.assert_array_equal(ops.matrix_diag(part, (-1, 2), 3, 4, 0, align).asnumpy(), band)
    np.testing.assert_array_equal(ops.matrix_diag_part(Tensor(x), 1, 0.0).asnumpy(), np.diagonal(x, 1, 1, 2))
    gradient = ms.grad(lambda t: ops.sum(ops.matrix_diag_part(t, (-1, 2), 9.0, align)))(Tensor(x))
    np.testing.assert_array_equal(gradient.asnumpy(), np.triu(np.tril(np.ones_like(x), 2), -1))


def test_diagonal_matrices() -> None:
    assert ops.matrix_diag(Tensor([1.0, 2, 3]), 1, -1, -1, 5.0).tolist()[0] == [5.0, 1.0, 5.0, 5.0]
    assert ops.matrix_diag(Tensor([1.0, 2, 3]), Tensor(1, ms.int32), num_rows=3).shape == (3, 4)
    with pytest.raises(ValueError, match="do not lie"):
        ops.matrix_diag_part(Tensor([[1.0]]), 3, 0.0)


def test_space_and_batch() -> None:
    x = Tensor(np.arange(12.0).reshape(1, 1, 3, 4))
    want = [[[[0, 0, 0], [4, 6, 0]]], [[[0, 0, 0], [5, 7, 0]]], [[[0, 2, 0], [8, 10, 0]]], [[[1, 3, 0], [9, 11, 0]]]]
    blocks = ops.space_to_batch_nd(x, [2, 2], [[1, 0], [0, 2]])
    assert blocks.tolist() == want
    np.testing.assert_array_equal(ops.batch_to_space_nd(blocks, [2, 2], [[1, 0], [0, 2]]).asnumpy(), x.asnumpy())
    got = ops.batch_to_space_nd(Tensor(np.arange(16.0).reshape(4, 1, 2, 2)), [2, 2], [[1, 0], [0, 1]])
    assert got.tolist() == [[[[8, 12, 9], [2, 6, 3], [10, 14, 11]]]]


def test_columns_to_images() -> None:
    x = Tensor(np.arange(36.0).reshape(1, 1, 4, 9))
    want = [[0, 10, 12, 11], [21, 62, 66, 43], [27, 74, 78, 49], [24, 58, 60, 35]]
    assert ops.col2im(x, Tensor([4, 4], ms.int32), [2, 2], [1, 1], [0, 0], [1, 1]).tolist() == [[want]]
    assert x.col2im((4, 4), [2, 2], [1, 1], [0, 0], [1, 1]).tolist() == [[want]]


@pytest.mark.parametrize("case", CASES)
def test_temporal_classification(case: dict) -> None:
    x = np.array(case["lp"])
    rest = [Tensor(np.array(case[k])) for k in ("t", "il", "tl")]
    want = np.array([float(v) for v in case["none"]])
    each, alpha = ops.ctc_loss(Tensor(x), *rest, reduction="none", zero_infinity=case["zi"])
    np.testing.assert_allclose(each.asnumpy(), want, rtol=1e-9)
    assert alpha.shape == (x.shape[1], x.shape[0], 2 * len(case["t"][0]) + 1)
    np.testing.assert_allclose(
        ops.ctc_loss(Tensor(x), *rest, zero_infinity=case["zi"])[0].item(), float(case["mean"]), rtol=1e-9
    )
    flat = np.concatenate([row[:n] for row, n in zip(case["t"], case["tl"])]).astype(int)
    total, _ = ops.ctc_loss(Tensor(x), Tensor(flat), *rest[1:], reduction="sum", zero_infinity=case["zi"])
    np.testing.assert_allclose(total.item(), want.sum(), rtol=1e-9)


def test_gradient_of_temporal_classification() -> None:
    case = CASES[0]
    x = np.array(case["lp"])
    rest = [Tensor(np.array(case[k])) for k in ("t", "il", "tl")]

    def loss(p: Tensor) -> Tensor:
        return ops.ctc_loss(p, *rest, reduction="sum")[0]

    way = np.random.default_rng(0).normal(size=x.shape)
    got = (ms.grad(loss)(Tensor(x)).asnumpy() * way).sum()
    assert got == pytest.approx(
        (loss(Tensor(x + 1e-6 * way)).item() - loss(Tensor(x - 1e-6 * way)).item()) / 2e-6, rel=1e-6
    )


def test_greedy_decoding() -> None:
    logits = np.array([[[0.6, 0.4, 0.2], [0.8, 0.6, 0.3]], [[0.0, 0.6, 0.0], [0.5, 0.4, 0.5]]], np.float32)
    where, labels, shape, score = ops.ctc_greedy_decoder(Tensor(logits), Tensor([2, 2], ms.int32))
    assert where.tolist() == [[0, 0], [0, 1], [1, 0]] and labels.tolist() == [0, 1, 0] and shape.tolist() == [2, 2]
    np.testing.assert_allclose(score.asnumpy(), [[-1.2], [-1.3]], rtol=1e-6)


def test_writing_functions() -> None:
    x = Tensor(np.array([-2.0, 0.5, 0.25]))
    assert ops.clamp_(x, -0.5, 0.4) is x and x.tolist() == [-0.5, 0.4, 0.25]
    ops.erfinv_(x)
    np.testing.assert_allclose(x.asnumpy(), [-0.4769362762044699, 0.37080715859355795, 0.22531205501217805], rtol=1e-10)
    ops.tanh_(x)
    np.testing.assert_allclose(
        x.asnumpy(), np.tanh([-0.4769362762044699, 0.37080715859355795, 0.22531205501217805]), rtol=1e-10
    )
    assert ops.put_(x, Tensor([2]), Tensor([7.0]), True).tolist()[2] > 7 and ops.zero_(x).tolist() == [0, 0, 0]
    big = ops.zeros((40, 50))
    assert 3 <= ops.uniform_(big, 3, 4).min().item() and big.max().item() < 4
    assert abs(ops.normal_(big, 2.0, 0.5).mean().item() - 2) < 0.1 and abs(big.std().item() - 0.5) < 0.1
    assert set(np.unique(ops.random_(big, 2, 5).asnumpy())) == {2, 3, 4}
    assert set(np.unique(ops.bernoulli_(big, 0.5).asnumpy())) == {0, 1}
    assert ops.exponential_(big, 2.0).min().item() >= 0 and abs(big.mean().item() - 0.5) < 0.1


def test_plain_numbers() -> None:
    for name, want in {
        "add": 9,
        "sub": 5,
        "mul": 14,
        "div": 3.5,
        "floordiv": 3,
        "mod": 1,
        "pow": 49,
        "max": 7,
        "min": 2,
    }.items():
        assert getattr(ops, f"scalar_{name}")(7, 2) == want
    for name, want in {"eq": False, "ne": True, "lt": False, "le": False, "gt": True, "ge": True}.items():
        assert getattr(ops, f"scalar_{name}")(7, 2) is want
    assert ops.scalar_log(1) == 0 and ops.scalar_uadd(3) == 3 and ops.scalar_usub(3) == -3
    assert ops.scalar_cast(2.7, ms.int64) == 2 and ops.scalar_to_tensor(3).dtype is ms.float32
    assert ops.tuple_to_array((1, 2)).dtype is ms.int32 and ops.tuple_to_array((1.5, 2)).tolist() == [1.5, 2.0]
    assert ops.tensor_range(Tensor(1), Tensor(9), Tensor(3)).tolist() == [1, 4, 7]
    assert ops.padding(Tensor([[8.0], [10.0]]), 3).tolist() == [[8, 0, 0], [10, 0, 0]]
