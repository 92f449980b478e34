"""Parts of arrays are drawn as the whole arrays are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn
from mycel.common import initializer as I
from mycel.common.block_draws import BLOCK, fill_part, runs
from mycel.common.seed import drawing_with

KINDS = [
    I.Normal(),
    I.TruncatedNormal(0.5, 0.1, -1.0, 1.5),
    I.Uniform(),
    I.XavierUniform(),
    I.XavierNormal(),
    I.HeNormal(),
    I.HeUniform(),
    I.VarianceScaling(),
    I.VarianceScaling(distribution="uniform"),
    I.VarianceScaling(distribution="untruncated_normal"),
    I.Orthogonal(),
    I.Sparse(0.3),
    I.Identity(),
    I.Zero(),
    I.One(),
    I.Constant(3.0),
    I.Constant(np.arange(170.0)),
]
SHAPE = (130, 170)


def drawn(places: list[Any]) -> list[np.ndarray[Any, Any] | None]:
    return [None if p is None else np.asarray(p) for p in places]


PARTS = [
    drawn([None, range(40, 90)]),
    drawn([range(13, 14), None]),
    drawn([range(60, 130), range(0, 85)]),
    drawn([[0, 1, 5, 6, 7, 129, 129], [3, 4, 100, 101, 102]]),
    drawn([None, None]),
]


@pytest.mark.parametrize("kind", KINDS, ids=repr)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_a_part_is_that_of_the_whole(kind: Any, dtype: Any) -> None:
    stream, whole = np.random.SeedSequence(7), np.zeros(SHAPE, dtype)
    assert whole.size > 5 * BLOCK
    with drawing_with(stream):
        kind(whole)
    for places in PARTS:
        expected = whole
        for axis, own in enumerate(places):
            expected = expected if own is None else expected.take(own, axis)
        part = np.full(expected.shape, np.nan, dtype)
        with drawing_with(stream):
            kind._initialize_part(part, SHAPE, places)
        np.testing.assert_array_equal(part, expected)


def test_a_part_of_a_large_array_draws_little_more() -> None:
    counted = 0

    def law(rng: np.random.Generator, out: Any) -> None:
        nonlocal counted
        counted += out.size
        rng.random(dtype=out.dtype, out=out)

    part = np.empty((4, 8192), np.float32)
    places = [np.arange(4) + 1_000_000, np.arange(8192) + 8192]
    fill_part(law, part, (1 << 40, 32768), places, np.random.SeedSequence(1))
    assert counted == part.size and len(np.unique(part)) > part.size * 0.99


def test_blocks_are_independent_and_their_distribution_is_that_of_the_law() -> None:
    ms.set_seed(3)
    values = I.initializer(I.Normal(1.0), [64, BLOCK]).init_data().asnumpy().astype(np.float64)
    between = np.corrcoef(values)[np.triu_indices(64, 1)]
    assert abs(between).max() < 6 / BLOCK**0.5 and abs(values.mean()) < 0.01 and abs(values.std() - 1) < 0.01


def test_runs() -> None:
    assert list(runs((2, 3, 4), [None, np.array([1, 2]), None])) == [(4, 8), (16, 8)]
    assert list(runs((2, 3, 4), [np.array([1]), None, np.array([0, 1, 3])])) == [
        (12, 2), (15, 1), (16, 2), (19, 1), (20, 2), (23, 1),
    ]  # fmt: skip
    assert list(runs((2, 3), [None, None])) == [(0, 6)] and list(runs((), [])) == [(0, 1)]
    assert list(runs((0, 3), [None, np.array([1])])) == [] and list(runs((2, 3), [None, np.array([], int)])) == []


def test_declared_parameters_have_the_values_of_those_made_at_once() -> None:
    def net() -> nn.Cell:
        return nn.SequentialCell(nn.Dense(9, 7), nn.Embedding(300, 30, padding_idx=2), nn.LSTM(3, 4))

    ms.set_seed(11)
    made = {p.name: p.asnumpy() for p in net().get_parameters()}
    ms.set_seed(11)
    with nn.no_init_parameters():
        later = net()
    after = ms.Parameter(I.initializer("normal", [5]))
    for p in reversed(list(later.get_parameters())):
        assert p.has_init
        np.testing.assert_array_equal(p.asnumpy(), made[p.name])
    ms.set_seed(11)
    net()
    np.testing.assert_array_equal(after.asnumpy(), ms.Parameter(I.initializer("normal", [5])).asnumpy())


def test_copies_and_types_of_declared_parameters() -> None:
    ms.set_seed(5)
    with nn.no_init_parameters():
        w = ms.Parameter(I.initializer("normal", [70, 80]), name="w")
        same = w.clone()
        half = w.clone().set_dtype(ms.float16)
    assert same.has_init and half.has_init and half.dtype is ms.float16
    np.testing.assert_array_equal(same.asnumpy(), w.asnumpy())
    np.testing.assert_array_equal(half.asnumpy(), w.asnumpy().astype(np.float16))
