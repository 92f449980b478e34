"""Variable numbers and containers: `mutable`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, ops
from tests.language.versions import graphs


@pytest.fixture(autouse=True)
def _modes() -> Iterator[None]:
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE, jit_syntax_level=ms.LAX, jit_config={}, max_call_depth=1000)


# Variable numbers.


def test_another_mutable_number_does_not_compile_again() -> None:
    f = ms.jit(lambda x, n: x * n + n, fullgraph=True)
    for n in (2, -3, 7):
        assert float(f(Tensor(1.5), ms.mutable(n))) == 1.5 * n + n
    for n in (2.5, -0.25):
        assert float(f(Tensor(1.5), ms.mutable(n))) == 1.5 * n + n
    assert graphs(f) == 2
    assert [float(f(Tensor(1.5), n)) for n in (2, 3)] == [5.0, 7.5]
    assert graphs(f) == 4


def test_mutable_numbers_behave_as_numbers() -> None:
    @ms.jit(fullgraph=True)
    def f(n: Any, k: Any, flag: Any) -> Any:
        return (
            n + 1,
            n // 2,
            n % 3,
            n**2,
            -n,
            n > 2,
            k * 2,
            isinstance(n, int),
            isinstance(k, float),
            type(n),
            int(k),
            float(n),
            abs(n),
            max(n, 2),
            n if flag else k,
            flag,
            not flag,
            n,
            divmod(7, 2),
        )

    for n, k, flag in ((5, 1.75, True), (-4, -2.5, False)):
        got = f(ms.mutable(n), ms.mutable(k), ms.mutable(flag))
        want = (n + 1, n // 2, n % 3, n**2, -n, n > 2, k * 2, True, True, int, int(k), float(n), abs(n), max(n, 2))
        assert got[:14] == want and [type(v) for v in got[:8]] == [type(v) for v in want[:8]]
        assert float(got[14]) == (n if flag else k)
        assert got[15:18] == (flag, not flag, n) and type(got[17]) is int
    assert graphs(f) == 1


@pytest.mark.parametrize("dtype", [ms.float16, ms.float32, ms.float64, ms.int32, ms.bfloat16])
def test_mutable_numbers_adapt_to_tensors(dtype: Any) -> None:
    x = Tensor([1, 2], dtype)
    f = ms.jit(lambda x, n: x + n, fullgraph=True)
    for n in (3, 2.5, True):
        assert f(x, ms.mutable(n)).dtype == (x + n).dtype
        np.testing.assert_allclose(f(x, ms.mutable(n)).float().asnumpy(), (x + n).float().asnumpy())


def test_mutable_numbers_decide_branches_and_loops() -> None:
    @ms.jit(fullgraph=True)
    def f(x: Any, n: Any) -> Any:
        s = x
        for i in range(n):
            s = s + x * i
        while n > 4:
            s, n = s * 2, n - 1
        return s if n > 1 else -s

    def plain(x: float, n: int) -> float:
        s = x
        for i in range(n):
            s = s + x * i
        while n > 4:
            s, n = s * 2, n - 1
        return s if n > 1 else -s

    for n in (0, 1, 3, 6):
        assert float(f(Tensor(1.5), ms.mutable(n))) == plain(1.5, n)
    assert graphs(f) == 1


def test_mutable_containers() -> None:
    @ms.jit(fullgraph=True)
    def f(x: Any, sizes: Any, options: Any) -> Any:
        total = sum(sizes)
        return x * total + options["k"], len(sizes), sizes[0], x[sizes[1]]

    x = Tensor([1.0, 2.0, 3.0])
    for a, b, k in ((1, 2, 0.5), (4, 0, 2.5)):
        got = f(x, ms.mutable([a, b]), ms.mutable({"k": k}))
        np.testing.assert_allclose(got[0].asnumpy(), np.array([1, 2, 3]) * (a + b) + k)
        assert got[1:3] == (2, a) and float(got[3]) == [1, 2, 3][b]
    assert graphs(f) == 1


def test_mutable_tensors_in_containers() -> None:
    f = ms.jit(lambda pair: (pair[0] * pair[1][0], pair[1][1]), fullgraph=True)
    for k in (2, 3):
        got = f(ms.mutable((Tensor(2.0), [k, Tensor(1.0)])))
        assert float(got[0]) == 2.0 * k and float(got[1]) == 1.0
    assert graphs(f) == 1


def test_gradients_with_mutable_numbers() -> None:
    f = ms.jit(lambda x, n: ops.sum(x * x * n), fullgraph=True)
    for n in (2, 5):
        for slope in (ms.grad(f), ms.jit(ms.grad(f)), ms.grad(lambda x, n: ops.sum(x * x * n))):
            np.testing.assert_allclose(slope(Tensor([1.0, 3.0]), ms.mutable(n)).asnumpy(), [2 * n, 6 * n])
    assert graphs(f) == 1


def test_a_mutable_number_where_its_value_is_needed_runs_in_segments() -> None:
    f = ms.jit(lambda x, shape: x.reshape(shape))
    for shape in ((3, 2), (6, 1)):
        assert f(ops.ones((2, 3)), ms.mutable(shape)).shape == shape
    assert "mutable" in str(ms.explain(f))


def test_a_mutable_number_too_large_for_a_tensor_is_a_constant() -> None:
    f = ms.jit(lambda x, n: x + (n >> 64), fullgraph=True)
    assert float(f(Tensor(1.0), ms.mutable(3 << 64))) == 4.0


def test_mutable_data_is_what_it_was() -> None:
    for value in (3, 2.5, True, (1, 2.0), [1, (2, 3)], {"a": 1}):
        made = ms.mutable(value)
        assert made == value and repr(made) == repr(value) and isinstance(made, (int, type(value)))
    t = Tensor(1.0)
    assert ms.mutable(t) is t
    assert ms.mutable((1, 2), True) == (1, 2)
    assert float(ms.jit(lambda x: x * ms.mutable(2))(t)) == 2.0


def test_lengths_of_dynamic_length_compile_once_each() -> None:
    f = ms.jit(lambda values: (sum(values), len(values)), fullgraph=True)
    for values in ([1, 2], [3, 4], [1, 2, 3], [4, 5, 6]):
        assert f(ms.mutable(values, dynamic_len=True)) == (sum(values), len(values))
    assert graphs(f) == 2


@pytest.mark.parametrize("value", ["a", None, (1, "a"), np.ones(2), {1: {2}}])
def test_what_cannot_be_mutable(value: Any) -> None:
    with pytest.raises(TypeError, match="mutable: takes a bool, int, float, Tensor"):
        ms.mutable(value)


def test_what_mutable_refuses() -> None:
    cyclic: list[Any] = []
    cyclic.append(cyclic)
    with pytest.raises(TypeError, match="without itself inside"):
        ms.mutable(cyclic)
    with pytest.raises(TypeError, match="dynamic_len must be a bool"):
        ms.mutable((1,), 3)
    with pytest.raises(TypeError, match="dynamic_len needs a tuple or list, not int"):
        ms.mutable(3, True)
    with pytest.raises(ValueError, match="of one type"):
        ms.mutable((1, 2.0), True)
