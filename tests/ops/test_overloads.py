"""Methods of tensors with the further names of parameters that MindSpore's overloads have."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor

X = Tensor(np.arange(12.0).reshape(3, 4))
PLACES = Tensor([[0, 1]])

# MindSpore 2.10 takes both spellings.
SAME: list[tuple[Callable[[], object], Callable[[], object]]] = [
    (lambda: X.chunk(2, dim=1)[1], lambda: X.chunk(2, axis=1)[1]),
    (lambda: X.split(3, dim=1)[1], lambda: X.split(3, axis=1)[1]),
    (lambda: Tensor([1.0]).expand_as(x=X), lambda: Tensor([1.0]).expand_as(other=X)),
    (lambda: X.remainder(divisor=Tensor(5.0)), lambda: X.remainder(other=Tensor(5.0))),
    (
        lambda: X.scatter(dim=1, index=PLACES, src=Tensor([[5.0, 6.0]])),
        lambda: X.scatter(1, PLACES, Tensor([[5.0, 6.0]])),
    ),
    (lambda: X.index_select(dim=1, index=Tensor([2])), lambda: X.index_select(axis=1, index=Tensor([2]))),
    (lambda: X.narrow(dim=1, start=1, length=2), lambda: X[:, 1:3]),
    (lambda: X.isclose(x2=X + 1e-9), lambda: X.isclose(X)),
    (lambda: X.tile(reps=(2, 1)), lambda: X.tile(2, 1)),
    (lambda: X.tile(dims=(2, 1)), lambda: X.tile((2, 1))),
    (lambda: X.add(X, alpha=2), lambda: X * 3),
    (lambda: X.sub(X, alpha=0.5), lambda: X * 0.5),
    (lambda: X.add(other=1.0), lambda: X + 1.0),
    (lambda: X.sub(y=1.0), lambda: X - 1.0),
    (lambda: X.copy().add_(X, alpha=2), lambda: X * 3),
    (lambda: X.copy().sub_(X, alpha=0.5), lambda: X * 0.5),
    (lambda: X.repeat_interleave(2, dim=1), lambda: X.repeat_interleave(2, 1)),
    (lambda: X.repeat_interleave(repeats=2, dim=None), lambda: X.repeat_interleave(2)),
    (lambda: X.matmul(tensor2=X.T), lambda: X @ X.T),
    (lambda: X.true_divide(other=X + 1), lambda: X / (X + 1)),
    (lambda: X.split(split_size=3, dim=1)[0], lambda: X.split(3, 1)[0]),
    (lambda: X.take(index=Tensor([1, 5])), lambda: X.take(Tensor([1, 5]))),
    (lambda: X.permute(dims=(1, 0)), lambda: X.T),
    (lambda: X.transpose(dim0=0, dim1=1), lambda: X.T),
    (lambda: X.transpose(0, dim1=1), lambda: X.T),
    (lambda: X.to(other=Tensor([1], ms.float16)), lambda: X.astype(ms.float16)),
    (lambda: X.view(dtype=ms.int64), lambda: X.view(ms.int64)),
    (lambda: X.copy().index_fill_(dim=1, index=Tensor([0]), value=9.0), lambda: X.index_fill(1, Tensor([0]), 9.0)),
    (
        lambda: X.copy().scatter_(dim=1, index=PLACES, src=Tensor([[5.0, 6.0]])),
        lambda: X.scatter(1, PLACES, Tensor([[5.0, 6.0]])),
    ),
    (lambda: X.copy().scatter_(dim=1, index=PLACES, value=5.0), lambda: X.scatter(1, PLACES, 5.0)),
]


@pytest.mark.parametrize("case", range(len(SAME)))
def test_both_spellings(case: int) -> None:
    one, other = (f() for f in SAME[case])
    assert isinstance(one, Tensor) and isinstance(other, Tensor)
    assert one.dtype == other.dtype and one.tolist() == other.tolist()


def test_a_parameter_given_twice() -> None:
    with pytest.raises(TypeError, match="chunk: dim and axis name the same parameter"):
        X.chunk(2, axis=1, dim=1)
    with pytest.raises(TypeError, match="chunk: chunks must be an int, not str"):
        X.chunk("a")
    with pytest.raises(TypeError, match="tile: give the numbers of repetitions once"):
        X.tile(2, reps=(2,))
    with pytest.raises(TypeError, match="view: give a shape or dtype, and not both"):
        X.view(4, 3, dtype=ms.int64)
    with pytest.raises(TypeError, match="transpose: takes dim0, dim1, but was given dim0="):
        X.transpose(dim0=0)
    with pytest.raises(TypeError, match="permute: takes dims, but was given axes="):
        X.permute(axes=(1, 0))


def test_assigning_a_value_of_another_shape() -> None:
    x = Tensor([1.0, 2.0, 3.0])
    assert x.assign_value(Tensor([[1, 2]])) is x and x.shape == (1, 2) and x.tolist() == [[1, 2]]
