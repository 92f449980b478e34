"""Creation, shapes, joins, splits, arrangements and positions against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, ops

from .checks import check_gradient, close, numbers

X = numbers(2, 3, 4)


def test_creation() -> None:
    assert ops.zeros((2, 3)).dtype is ms.float32
    assert ops.zeros(3, ms.int32).tolist() == [0, 0, 0]
    assert (
        ops.full((2,), 3).dtype is ms.int64
        and ops.full((2,), 3.0).dtype is ms.float32
        and ops.full((2,), True).dtype is ms.bool_
    )
    assert ops.full((2,), Tensor(2.5)).tolist() == [2.5, 2.5]
    assert ops.full_like(Tensor(np.array([1, 2], np.int32)), 2.5).tolist() == [2, 2]
    assert ops.ones_like(Tensor(X), dtype=ms.int32).dtype is ms.int32
    for arguments in [(5,), (1, 8, 3), (5, 1, -2), (5, 5), (3, 1)]:
        np.testing.assert_array_equal(ops.arange(*arguments).asnumpy(), np.arange(*arguments))
    np.testing.assert_allclose(ops.arange(0, 1, 0.1).asnumpy(), np.arange(0, 1, 0.1).astype(np.float32))
    assert ops.arange(3.0).dtype is ms.float32
    np.testing.assert_allclose(ops.linspace(-1, 2, 7).asnumpy(), np.linspace(-1, 2, 7).astype(np.float32))
    assert ops.linspace(Tensor([0.0, 1.0]), Tensor([1.0, 3.0]), 3).tolist() == [[0.0, 0.5, 1.0], [1.0, 2.0, 3.0]]
    close(ops.eye(2, 3), np.eye(2, 3, dtype=np.float32))
    np.testing.assert_array_equal(ops.triu_indices(3, 4, 1).asnumpy(), np.stack(np.triu_indices(3, 1, 4)))


def test_a_scalar_that_is_written_to_does_not_change_others() -> None:
    x = ops.zeros((), ms.float32)
    x += 5
    assert ops.zeros((), ms.float32).item() == 0.0
    assert (Tensor(1.0) * 1.0).item() == 1.0


@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_one_hot(axis: int) -> None:
    index = np.array([[0, 2, 5], [1, -1, 2]])
    want = np.moveaxis(np.arange(3) == index[..., None], -1, axis)
    np.testing.assert_array_equal(ops.one_hot(Tensor(index), 3, axis=axis).asnumpy(), want.astype(np.int64))
    assert ops.one_hot(Tensor(index), 3, 1.0, 0.0).dtype is ms.float32
    with pytest.raises(TypeError, match="one_hot: indices must be integers, not float32"):
        ops.one_hot(Tensor([1.0]), 2)


def test_shapes() -> None:
    t = Tensor(X)
    close(ops.reshape(t, (4, -1)), X.reshape(4, -1))
    close(ops.transpose(t, (2, 0, 1)), X.transpose(2, 0, 1))
    close(ops.swapaxes(t, 0, -1), X.swapaxes(0, -1))
    close(ops.moveaxis(t, (0, 1), (-1, 0)), np.moveaxis(X, (0, 1), (-1, 0)))
    close(ops.expand_dims(t, -1), X[..., None])
    assert ops.squeeze(ops.ones((1, 2, 1)), 0).shape == (2, 1)
    assert ops.squeeze(ops.ones((2, 3)), 0).shape == (2, 3)
    assert ops.flatten(t).shape == (2, 12) and ops.flatten(t, start_dim=0).shape == (24,)
    close(ops.flatten(t, "F"), X.transpose(2, 1, 0).reshape(4, 6))
    close(ops.broadcast_to(t, (5, 2, -1, 4)), np.broadcast_to(X, (5, 2, 3, 4)))
    for wrong in ((5, -1), (-1, -1), (7,)):
        with pytest.raises(ValueError, match="reshape"):
            ops.reshape(t, wrong)
    with pytest.raises(ValueError, match="is not a permutation of the 3 axes"):
        ops.transpose(t, (0, 0, 1))


def test_joins_and_splits() -> None:
    t = Tensor(X)
    close(ops.concat((t, t[:, :1]), 1), np.concatenate((X, X[:, :1]), 1))
    assert ops.concat((Tensor([1]), Tensor([2.5]))).tolist() == [1.0, 2.5]
    close(ops.stack((t, t), -1), np.stack((X, X), -1))
    for name in ("hstack", "vstack", "dstack", "column_stack"):
        for v in (X, X[0], X[0, 0]):
            close(getattr(ops, name)((Tensor(v), Tensor(v))), getattr(np, name)((v, v)))
    for got, want in zip(ops.unstack(t, 1), np.moveaxis(X, 1, 0)):
        close(got, want)
    assert [p.shape for p in ops.split(t, 3, 2)] == [(2, 3, 3), (2, 3, 1)]
    assert [p.shape for p in ops.split(t, (1, 3), 2)] == [(2, 3, 1), (2, 3, 3)]
    assert [p.shape for p in ops.chunk(t, 3, 2)] == [(2, 3, 2), (2, 3, 2)]
    for cuts in (3, [1, 3], [-1], [3, 1]):
        for got, want in zip(ops.tensor_split(t, cuts, 2), np.array_split(X, cuts, 2)):
            close(got, want)
    with pytest.raises(ValueError, match="do not add up to 4"):
        ops.split(t, (1, 1), 2)
    with pytest.raises(ValueError, match="stack: the shapes"):
        ops.stack((t, t[0]))


def test_arrangements() -> None:
    t = Tensor(X)
    for dims in ((2,), (2, 1), (2, 1, 3, 1)):
        close(ops.tile(t, dims), np.tile(X, dims))
    close(ops.repeat_interleave(t, 2, 1), np.repeat(X, 2, 1))
    close(ops.repeat_interleave(t, [1, 0, 2], 1), np.repeat(X, [1, 0, 2], 1))
    close(ops.flip(t, (0, 2)), np.flip(X, (0, 2)))
    for k in range(-1, 5):
        close(ops.rot90(t, k, (0, 2)), np.rot90(X, k, (0, 2)))
    for shift, axis in ((1, None), (-2, 1), ((1, 5), (0, 2)), (3, 1)):
        close(ops.roll(t, shift, axis), np.roll(X, shift, axis))
    for k in (-2, 0, 1):
        close(ops.tril(t, k), np.tril(X, k))
        close(ops.triu(t, k), np.triu(X, k))
        for first, second in ((0, 1), (2, 0), (1, 2)):
            close(ops.diagonal(t, k, first, second), np.diagonal(X, k, first, second))
        close(ops.diag_embed(Tensor(X[0, 0]), k), np.diag(X[0, 0], k))
    for indexing in ("xy", "ij"):
        for got, want in zip(
            ops.meshgrid(Tensor(X[0, 0]), Tensor(X[0, 1, :2]), indexing=indexing),
            np.meshgrid(X[0, 0], X[0, 1, :2], indexing=indexing),
        ):
            close(got, want)
    close(ops.strided_slice(t, (0, 1, -1), (2, 3, -5), (1, 2, -1)), X[0:2, 1:3:2, -1:-5:-1])
    close(
        ops.strided_slice(t, (9, 0, 1), (9, 2, 9), (1, 1, 1), begin_mask=1, end_mask=1, shrink_axis_mask=4),
        X[:, 0:2, 1],
    )


@pytest.mark.parametrize(
    ("mode", "numpy_mode"),
    [("constant", "constant"), ("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")],
)
def test_padding(mode: str, numpy_mode: str) -> None:
    close(ops.pad(Tensor(X), (1, 2, 2, 0), mode), np.pad(X, ((0, 0), (2, 0), (1, 2)), numpy_mode))
    check_gradient(lambda t: ops.pad(t, (1, 2, 2, 0), mode), X[:1])
    if mode == "constant":
        close(ops.pad(Tensor(X), (-1, 1), value=3.0), np.pad(X[..., 1:], ((0, 0), (0, 0), (0, 1)), constant_values=3.0))
    else:
        with pytest.raises(ValueError, match="a value goes with mode 'constant'"):
            ops.pad(Tensor(X), (1, 1), mode, 1.0)


def test_moves_between_channels_and_space_are_inverse() -> None:
    x = numbers(2, 8, 3, 2)
    up = ops.pixel_shuffle(Tensor(x), 2)
    assert up.shape == (2, 2, 6, 4)
    assert up.asnumpy()[1, 1, 3, 2] == x[1, 4 + 2, 1, 1]
    close(ops.pixel_unshuffle(up, 2), x)
    close(ops.channel_shuffle(Tensor(x), 4), x.reshape(2, 4, 2, 3, 2).swapaxes(1, 2).reshape(x.shape))
    columns = ops.unfold(Tensor(x), (2, 1), padding=(1, 0), stride=(2, 1))
    check_gradient(lambda t: ops.unfold(t, (2, 1), padding=(1, 0), stride=(2, 1)), x[:1, :2])
    ones = ops.fold(ops.ones(columns.shape), (3, 2), (2, 1), padding=(1, 0), stride=(2, 1))
    assert ones.asnumpy()[0, 0].tolist() == [[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]]


def test_reading_at_positions() -> None:
    t, index = Tensor(X), np.array([[2, 0], [1, 1]])
    close(ops.gather(t, Tensor(index), 1), X[:, index])
    close(ops.gather(t, Tensor(index), 1, 1), np.stack([X[i, index[i]] for i in range(2)]))
    close(ops.gather(t, Tensor(index), 2, 1), np.stack([X[i][:, index[i]] for i in range(2)]))
    close(ops.gather_nd(t, Tensor(index % 2)), X[tuple((index % 2).T)])
    along = np.array([[[0, 2, 1, 0]], [[1, 1, 0, 2]]])
    close(ops.gather_elements(t, 1, Tensor(along)), np.take_along_axis(X, along, 1))
    close(ops.gather_elements(t, 1, Tensor(along[:1, :, :2])), np.take_along_axis(X[:1, :, :2], along[:1, :, :2], 1))
    close(ops.take(t, Tensor(index)), X.take(index))
    table = numbers(5, 3)
    close(ops.embedding(Tensor(index), Tensor(table)), table[index])
    gradient = ms.grad(lambda w: ops.embedding(Tensor(index), w, padding_idx=1).sum())(Tensor(table)).asnumpy()
    assert gradient[:, 0].tolist() == [1.0, 0.0, 1.0, 0.0, 0.0]
    check_gradient(lambda v: ops.gather(v, Tensor(index), 1, 1), X)
    with pytest.raises(TypeError, match="gather: indices must be integers, not float32"):
        ops.gather(t, Tensor([1.0]), 0)


@pytest.mark.parametrize("kind", ["update", "add", "sub", "mul", "div", "max", "min"])
def test_writing_at_positions(kind: str) -> None:
    x, updates, rows = numbers(4, 3), numbers(3, 3, seed=1, low=0.5), np.array([[1], [3], [0]])
    want = x.copy()
    if kind == "update":
        want[rows[:, 0]] = updates
    else:
        function = {
            "add": np.add,
            "sub": np.subtract,
            "mul": np.multiply,
            "div": np.divide,
            "max": np.maximum,
            "min": np.minimum,
        }[kind]
        function.at(want, rows[:, 0], updates)
    close(getattr(ops, f"tensor_scatter_{kind}")(Tensor(x), Tensor(rows), Tensor(updates)), want)
    parameter = ms.Parameter(Tensor(x))
    assert (
        getattr(ops, f"scatter_{kind}")(parameter, Tensor(rows[:, 0]), Tensor(updates)).tolist() == parameter.tolist()
    )
    close(parameter, want)
    parameter = ms.Parameter(Tensor(x))
    getattr(ops, f"scatter_nd_{kind}")(parameter, Tensor(rows), Tensor(updates))
    close(parameter, want)
    check_gradient(lambda a, b: getattr(ops, f"tensor_scatter_{kind}")(a, Tensor(rows), b), x, updates)


def test_writing_along_an_axis() -> None:
    x, index = numbers(3, 4), np.array([[1, 0], [3, 2], [2, 2]])
    new = numbers(3, 2, seed=1)
    want = x.copy()
    np.put_along_axis(want, index, new, 1)
    close(ops.scatter(Tensor(x), 1, Tensor(index), Tensor(new)), want)
    want = x.copy()
    np.add.at(want, (np.arange(3)[:, None], index), new)
    close(ops.tensor_scatter_elements(Tensor(x), Tensor(index), Tensor(new), 1, "add"), want)
    want = x.copy()
    want[:2, 0] += [5, 6]
    close(ops.tensor_scatter_elements(Tensor(x), Tensor([[0], [0]]), Tensor([[5.0], [6.0]]), 1, "add"), want)
    want = x.copy()
    want[:, [0, 2]] += new
    close(ops.index_add(Tensor(x), Tensor([0, 2]), Tensor(new), 1), want)
    want[:, 1] = 9
    close(ops.index_fill(Tensor(want), 1, Tensor([1]), 9.0), want)
    close(ops.slice_scatter(Tensor(x), Tensor(new), 1, 1, 4, 2)[:, 1::2], new)
    close(ops.select_scatter(Tensor(x), Tensor(new[:, 0]), 1, -1)[:, -1], new[:, 0])


def test_choices_by_value() -> None:
    mask = X > 0
    close(ops.masked_select(Tensor(X), Tensor(mask)), X[mask])
    check_gradient(lambda t: ops.masked_select(t, Tensor(mask)), X)
    close(ops.masked_fill(Tensor(X), Tensor(mask), 7), np.where(mask, 7, X))
    np.testing.assert_array_equal(ops.nonzero(Tensor(mask)).asnumpy(), np.argwhere(mask))
    values, inverse = ops.unique(Tensor([[3, 1], [3, 2]]))
    assert values.tolist() == [3, 1, 2] and inverse.tolist() == [[0, 1], [0, 2]]
    kept, inverse, counts = ops.unique_consecutive(Tensor([1, 1, 2, 1]), True, True)
    assert (kept.tolist(), inverse.tolist(), counts.tolist()) == ([1, 2, 1], [0, 0, 1, 2], [2, 1, 1])
    ids = np.array([0, 2, -1, 2])
    x = numbers(4, 2)
    close(ops.unsorted_segment_sum(Tensor(x), Tensor(ids), 3), np.stack([x[0], x[0] * 0, x[1] + x[3]]))
    assert ops.unsorted_segment_max(Tensor(x), Tensor(ids), 3).asnumpy()[1, 0] == np.finfo(np.float64).min
    assert ops.where(Tensor([True, False]), Tensor([1, 2]), 0.5).tolist() == [1.0, 0.5]


def test_assignments_give_the_values() -> None:
    w = ms.Parameter(Tensor([1.0, 2.0]))
    assert ops.assign(w, Tensor([3, 4])).tolist() == w.tolist() == [3.0, 4.0]
    ops.assign_add(w, Tensor([1.0, 1.0]))
    ops.assign_sub(w, 2.0)
    assert w.tolist() == [2.0, 3.0]
    with pytest.raises(ValueError, match=r"assign: a value of shape \(3,\) does not fit a variable of shape \(2,\)"):
        ops.assign(w, Tensor([1.0, 2.0, 3.0]))
