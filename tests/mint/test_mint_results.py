"""What the functions of `mint` give beside values: named results, parts, statistics, and random
numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, mint


def test_results_have_names() -> None:
    x = Tensor([[3.0, 1.0, 2.0]])
    for found in (
        mint.max(x, 1),
        mint.sort(x),
        mint.topk(x, 2),
        mint.median(x, 1),
        mint.cummax(x, 1),
        mint.kthvalue(x, 2),
    ):
        assert found.values is found[0] and found.indices is found[1] and found.indices.dtype is ms.int64
    assert mint.max(x, other=x + 1).tolist() == [[4.0, 2.0, 3.0]]
    assert mint.median(Tensor([1.0, float("nan"), 0.0]), 0).indices.item() == 1
    ends = mint.sort(Tensor([1.0, float("nan"), 3.0]), descending=True)
    assert ends.indices.tolist() == [1, 2, 0] and np.isnan(ends.values.asnumpy()[0])
    with pytest.raises(ValueError, match=r"k must be in \[1, 3\]"):
        mint.kthvalue(x, 4)


@pytest.mark.parametrize("compiled", [False, True])
def test_unique(compiled: bool) -> None:
    x = np.array([[3, 1, 3], [1, 1, 7]])
    rows = np.array([[1, 2], [0, 5], [1, 2], [0, 4]])

    def every(t: Tensor) -> Any:
        return mint.unique(t, return_inverse=True, return_counts=True)

    def slices(t: Tensor) -> Any:
        return mint.unique(t, True, True, True, 0)

    for function, array, axis in ((every, x, None), (slices, rows, 0), (every, x.astype(np.float32), None)):
        want = np.unique(array, return_inverse=True, return_counts=True, axis=axis)
        got = (ms.jit(function) if compiled else function)(Tensor(array))
        for result, expected in zip(got, (want[0], want[1].reshape(array.shape if axis is None else (-1,)), want[2])):
            np.testing.assert_array_equal(result.asnumpy(), expected)
    assert mint.unique(Tensor(x)).tolist() == [1, 3, 7]


def test_places_and_single_elements() -> None:
    x = Tensor([[0, 5], [7, 0]])
    assert mint.nonzero(x).tolist() == [[0, 1], [1, 0]]
    assert (
        [t.tolist() for t in mint.nonzero(x, as_tuple=True)]
        == [t.tolist() for t in mint.where(x > 0)]
        == [[0, 1], [1, 0]]
    )
    assert mint.item(Tensor([4])) == 4
    with pytest.raises(ValueError):
        mint.item(x)
    with pytest.raises(TypeError, match="takes the condition alone"):
        mint.where(x > 0, x)
    assert mint.allclose(x, x) is True and mint.allclose(Tensor([1.0]), Tensor([1.1])) is False
    m = Tensor([[1.0, 2.0]])
    assert mint.addr_(m, Tensor([2.0]), Tensor([3.0, 4.0]), beta=2, alpha=0.5) is m and m.tolist() == [[5.0, 8.0]]
    z = Tensor([1 + 2j])
    assert mint.real(z).tolist() == [1.0] and mint.imag(z).tolist() == [2.0]


def test_statistics_of_parts_make_those_of_the_whole() -> None:
    random = np.random.default_rng(0)
    parts = [random.normal(size=(n, 3)) for n in (4, 6)]
    stats = [mint.batch_norm_stats(Tensor(p), 1e-5) for p in parts]
    whole = np.concatenate(parts)
    mean, var = ms.Tensor(np.zeros(3)), ms.Tensor(np.ones(3))
    got = mint.batch_norm_gather_stats_with_counts(
        Tensor(whole),
        mint.stack([m for m, _ in stats]),
        mint.stack([i for _, i in stats]),
        mean,
        var,
        0.1,
        1e-5,
        Tensor([4.0, 6.0]),
    )
    np.testing.assert_allclose(got[0].asnumpy(), whole.mean(0))
    np.testing.assert_allclose(got[1].asnumpy(), 1 / np.sqrt(whole.var(0) + 1e-5))
    np.testing.assert_allclose(mean.asnumpy(), 0.1 * whole.mean(0))
    np.testing.assert_allclose(var.asnumpy(), 0.9 + 0.1 * whole.var(0, ddof=1))


def test_equal_is_about_whole_tensors() -> None:
    x = Tensor([1, 2])
    assert mint.equal(x, Tensor([1.0, 2.0])).item() is True and mint.equal(x, Tensor([1, 3])).item() is False
    assert mint.equal(x, Tensor([1])).item() is False


def test_constants() -> None:
    assert mint.zeros((2,)).tolist() == [0, 0] and mint.ones((1,), dtype=ms.int32).dtype is ms.int32
    assert (
        mint.empty(2, 3).shape == mint.empty((2, 3), dtype=ms.int8).shape
        and mint.empty_like(Tensor([1]), dtype=ms.float64).dtype is ms.float64
    )
    for n in (1, 2, 7):
        np.testing.assert_allclose(mint.linspace(-1.5, 4, n, dtype=ms.float64).asnumpy(), np.linspace(-1.5, 4, n))
    with pytest.raises(ValueError, match="device must be"):
        mint.empty(1, device="GPU")


def test_random_numbers_follow_their_generator() -> None:
    def twice(draw: Any) -> Any:
        first = draw(ms.Generator().manual_seed(3)).asnumpy()
        np.testing.assert_array_equal(first, draw(ms.Generator().manual_seed(3)).asnumpy())
        assert not np.array_equal(first, draw(ms.Generator().manual_seed(4)).asnumpy())
        return first

    n = 20000
    u = twice(lambda g: mint.rand(n, generator=g))
    assert abs(u.mean() - 0.5) < 0.01 and u.min() >= 0 and u.max() < 1
    z = twice(lambda g: mint.randn(n, generator=g))
    assert abs(z.mean()) < 0.03 and abs(z.std() - 1) < 0.03
    i = twice(lambda g: mint.randint(2, 7, (n,), generator=g))
    assert i.dtype == np.int64 and set(i) == {2, 3, 4, 5, 6} and abs(i.mean() - 4) < 0.05
    p = twice(lambda g: mint.randperm(50, generator=g))
    assert sorted(p) == list(range(50))
    m = twice(lambda g: mint.normal(2.0, 3.0, (n,), g))
    assert abs(m.mean() - 2) < 0.1 and abs(m.std() - 3) < 0.1
    b = twice(lambda g: mint.bernoulli(mint.full((n,), 0.25), generator=g))
    assert abs(b.mean() - 0.25) < 0.02 and set(b) == {0.0, 1.0}
    c = twice(lambda g: mint.multinomial(Tensor([1.0, 3.0]), n, True, generator=g))
    assert abs(c.mean() - 0.75) < 0.02 and c.dtype == np.int64
    assert sorted(mint.multinomial(Tensor([1.0, 2.0, 3.0]), 3).tolist()) == [0, 1, 2]
    assert mint.normal(Tensor([0.0, 1.0]), 1.0).shape == (2,)
    assert mint.rand_like(Tensor([1.0, 2.0])).shape == mint.randn_like(Tensor([1.0, 2.0])).shape == (2,)
    assert mint.randint_like(Tensor([1.0, 2.0]), 5).dtype is ms.float32 and mint.randint(5, (2,)).shape == (2,)
    with pytest.raises(TypeError, match="takes"):
        mint.randint(1, 2, 3, 4)
    with pytest.raises(TypeError, match="Generator"):
        mint.rand(1, generator=3)
    with pytest.raises(TypeError, match="need a size"):
        mint.normal()
