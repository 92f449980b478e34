"""Derivatives where formulas divide by 0, subtract infinities, or have a choice.

Every entry of the tables gives what is right there, by a formula in float64 or as a number; it is
asked of both ways to run a function, at once and compiled.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import mycel as ms
import mycel.numpy as mnp
from mycel import mint, nn, ops

INF = math.inf


def gradients(function: Callable[..., Any], *arrays: Any, weights: Any = None) -> Any:
    """Return the derivatives of the weighted sum of what `function` gives, as both ways have it."""
    tensors = [ms.Tensor(a) for a in arrays]

    def total(*given: Any) -> Any:
        value = function(*given)
        return (value if weights is None else value * ms.Tensor(np.asarray(weights, arrays[0].dtype))).sum()

    derivative = ms.grad(total, tuple(range(len(arrays))))
    for form in (derivative, ms.jit(derivative)):
        found = form(*tensors)
        yield [t.asnumpy() for t in (found if isinstance(found, tuple) else (found,))]


def check(function: Callable[..., Any], arrays: Any, want: Any, weights: Any = None, close: float = 1e-5) -> None:
    for found in gradients(function, *arrays, weights=weights):
        for got, right in zip(found, want):
            if right is not None:
                np.testing.assert_allclose(got, right, rtol=close, atol=close * 1e-2)


def f32(*values: Any) -> Any:
    return np.array(values, np.float32)


# Norms.

ROWS = f32([0, 0, 0], [1, -2, 4], [0, 3, -4])


def slope(x: Any, p: float) -> Any:
    """Return the derivative of the norm of order `p` of each row, where zeros add nothing."""
    size = np.abs(x.astype(np.float64))
    with np.errstate(all="ignore"):
        if np.isinf(p):
            hit = size == (size.max if p > 0 else size.min)(-1, keepdims=True)
            return np.sign(x) * hit / hit.sum(-1, keepdims=True)
        whole = (size**p).sum(-1, keepdims=True) ** (1 / p)
        found = np.sign(x) * np.where(size > 0, (size / whole) ** (p - 1), 0)
        return np.nan_to_num(np.where(whole > 0, found, 0)) if p > 0 else np.where(whole > 0, found, 0)


NORMS: dict[str, Callable[[Any, float], Any]] = {
    "ops.norm": lambda a, p: ops.norm(a, p, 1),
    "ops.vector_norm": lambda a, p: ops.vector_norm(a, p, 1),
    "mint.norm": lambda a, p: mint.norm(a, p, 1),
    "mint.linalg.vector_norm": lambda a, p: mint.linalg.vector_norm(a, p, 1),
    "numpy.norm": lambda a, p: mnp.norm(a, p, 1),
    "Tensor.norm": lambda a, p: a.norm(p, 1),
}


@pytest.mark.parametrize("p", (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 10.0, INF, -INF, -1.0))
def test_norms_at_zero(p: float) -> None:
    names = NORMS if p in (2.0, 3.0) else ("ops.vector_norm",)
    for name in names:
        check(partial(NORMS[name], p=p), [ROWS], [slope(ROWS, p)], close=1e-4)
    for kind in (np.float16, np.float64):
        rows = ROWS.astype(kind)
        check(lambda a: ops.norm(a, p, 1), [rows], [slope(rows, p)], close=4e-3 if kind is np.float16 else 1e-9)


@pytest.mark.parametrize("p", (0.5, 1.5, 2.0, 3.0, 6.0))
def test_second_derivatives_of_norms_are_finite_at_zero(p: float) -> None:
    inner = ms.grad(lambda a: (ops.norm(a, p, 1) * ms.Tensor([1.0, 2.0, 3.0])).sum())
    second = ms.grad(lambda a: (inner(a) * ms.Tensor([1.0, -1.0, 2.0])).sum())(ms.Tensor(ROWS)).asnumpy()
    assert np.isfinite(second).all() and not second[0].any()
    rows = ms.vmap(ms.grad(lambda row: ops.norm(row, p)))(ms.Tensor(ROWS)).asnumpy()
    np.testing.assert_allclose(rows, slope(ROWS, p), rtol=1e-4)
    _, along = ms.jvp(lambda a: ops.norm(a, p, 1), ms.Tensor(ROWS), ms.ops.ones_like(ms.Tensor(ROWS)))
    np.testing.assert_allclose(along.asnumpy(), slope(ROWS, p).sum(-1), rtol=1e-4, atol=1e-6)


def test_a_frobenius_norm_has_the_second_derivative_of_its_squares() -> None:
    inner = ms.grad(lambda a: ops.norm(a))
    second = ms.grad(lambda a: inner(a)[0, 1])(ms.Tensor(np.eye(2)))
    np.testing.assert_allclose(second.asnumpy(), [[0, 1 / math.sqrt(2)], [0, 0]])


@pytest.mark.parametrize("scale", (1e-30, 1.0, 1e30))
@pytest.mark.parametrize("p", (1.5, 2, 3, 10, -2))
def test_norms_are_finite_wherever_the_type_holds_them(p: float, scale: float) -> None:
    row = np.array([1.0, 2.0, 4.0])
    right = (row**p).sum() ** (1 / p) * scale
    x = ms.Tensor((row * scale).astype(np.float32))
    assert np.isclose(ops.norm(x, p, 0).item(), right, rtol=1e-5, atol=0)
    check(lambda a: ops.norm(a, p, 0), [x.asnumpy()], [slope(row[None], p)[0]], close=1e-4)
    far = row * scale**10
    assert np.isclose(ops.norm(ms.Tensor(far), p, 0).item(), right / scale * scale**10, rtol=1e-9, atol=0)


def test_norms_of_complex_numbers_are_real() -> None:
    z = np.array([3 + 4j, 0], np.complex64)
    value = ops.norm(ms.Tensor(z))
    assert value.dtype is ms.float32 and value.item() == 5.0
    check(lambda a: ops.norm(a), [z], [np.array([0.6 + 0.8j, 0])])


PAIRS = f32([0, 0, 0], [1, -2, 4], [1, -2, 4])


@pytest.mark.parametrize("p", (0.5, 1.0, 1.5, 3.0, INF))
def test_coinciding_points(p: float) -> None:
    gaps = PAIRS[:, None] - PAIRS[None]
    each = slope(gaps, p)
    check(lambda a: ops.cdist(a, a, p), [PAIRS], [2 * each.sum(1)], close=1e-4)
    check(lambda a: ops.pdist(a, p), [PAIRS], [each.sum(1)], close=1e-4)
    if p in (1, 3):
        check(lambda a, b: ops.dist(a, b, int(p)), [ROWS, ROWS], [0 * ROWS] * 2)


def test_what_divides_by_norms() -> None:
    flat = f32([0, 0], [0.1, 0.2])
    for p in (1, 3):
        check(partial(ops.renorm, p=p, axis=0, maxnorm=1.0), [flat], [np.ones((2, 2))])
    for p in (1.5, 2.0):
        for found in gradients(partial(mint.nn.functional.normalize, p=p, dim=1), flat):
            assert np.isfinite(found[0]).all()
    line = f32(0, 0, 1, 2)
    for p in (2.0, 3.0):
        want = np.concatenate([[0, 0], slope(line[None, 2:], p)[0]])
        one = partial(ops.lp_pool1d, norm_type=p, kernel_size=2, stride=2)
        check(one, [line[None, None]], [want[None, None]])
        two = partial(ops.lp_pool2d, norm_type=p, kernel_size=(1, 2), stride=(1, 2))
        check(two, [line[None, None, None]], [want[None, None, None]])
    none = f32([0, 0], [0, 0])
    check(nn.Norm(1), [none], [0 * none])
    check(lambda a: nn.RMSELoss()(a, ms.Tensor(none)), [none], [0 * none])
    check(lambda a: nn.ClipByNorm()(a, ms.Tensor(1.0)), [none], [np.ones((2, 2))])
    check(lambda a: ops.clip_by_norm(a, 1.0, 3.0), [none], [np.ones((2, 2))])
    large = ops.clip_by_global_norm((ms.Tensor([3e30]), ms.Tensor([4e30])), 5.0)
    np.testing.assert_allclose([t.item() for t in large], [3, 4], rtol=1e-6)
    whole = f32([1e30, 1e30])
    assert np.isclose(ops.cosine_similarity(ms.Tensor(whole), ms.Tensor(whole)).item(), 1.0)
    for function in (
        lambda a: ops.std(a, 1),
        lambda a: mint.std(a, 1),
        lambda a: mnp.std(a, 1),
        lambda a: mnp.nanstd(a, 1),
    ):
        check(function, [none + 1], [0 * none])


# Determinants and inverses.

MATRICES: dict[str, Any] = {
    "rank 1 of 2": [[1, 2], [2, 4]],
    "rank 2 of 3": [[1, 2, 3], [4, 5, 6], [5, 7, 9]],
    "row of zeros": [[0, 0, 0], [1, 2, 3], [4, 5, 7]],
    "column of zeros": [[1, 0, 2], [3, 0, 1], [4, 0, 5]],
    "rank 1 of 3": [[1, 0, 2], [2, 0, 4], [3, 0, 6]],
    "zero": [[0, 0, 0]] * 3,
    "of one": [[0]],
    "nilpotent": [[0, 1], [0, 0]],
    "regular": [[2, 1], [1, 3]],
    "identity": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
}


def cofactors(a: Any) -> Any:
    n = len(a)
    minor = lambda i, j: np.linalg.det(np.delete(np.delete(a, i, 0), j, 1)) if n > 1 else 1.0
    return np.array([[(-1) ** (i + j) * minor(i, j) for j in range(n)] for i in range(n)])


@pytest.mark.parametrize("name", MATRICES)
def test_derivatives_of_determinants(name: str) -> None:
    a = np.array(MATRICES[name], np.float64)
    n = len(a)
    check(ops.det, [a], [cofactors(a)], close=1e-7)
    check(ops.MatrixDeterminant(), [a.astype(np.float32)], [cofactors(a)], close=1e-3)
    direction = np.cos(np.arange(n * n, dtype=float)).reshape(n, n)
    inner = ms.grad(ops.det)
    middle = ms.grad(lambda x: (inner(x) * ms.Tensor(direction)).sum())
    step = 1e-4  # central differences are exact for polynomials of the second degree
    shifted = [(cofactors(a + s * direction) - cofactors(a - s * direction)) / (2 * s) for s in (step, 1.0)]
    np.testing.assert_allclose(middle(ms.Tensor(a)).asnumpy(), shifted[1 if n < 4 else 0], rtol=1e-6, atol=1e-9)
    third = ms.grad(lambda x: (middle(x) * ms.Tensor(direction)).sum())(ms.Tensor(a)).asnumpy()
    around = [cofactors(a + s * direction) for s in (-1, 0, 1)]
    np.testing.assert_allclose(third, around[0] - 2 * around[1] + around[2], rtol=1e-6, atol=1e-9)


def test_determinants_of_stacks_and_along_directions() -> None:
    stack = np.stack([np.array(MATRICES[k], float) for k in ("rank 2 of 3", "zero", "identity", "rank 1 of 3")])
    want = np.stack([cofactors(a) for a in stack])
    check(ops.det, [stack], [want], close=1e-7)
    np.testing.assert_allclose(ms.vmap(ms.grad(ops.det))(ms.Tensor(stack)).asnumpy(), want, atol=1e-9)
    _, along = ms.jvp(ops.det, ms.Tensor(stack), ms.Tensor(np.ones_like(stack)))
    np.testing.assert_allclose(along.asnumpy(), want.sum((1, 2)), atol=1e-9)
    whole = np.array([[1, 1j], [1j, -1]])  # singular
    found = ms.grad(lambda z: ops.real(ops.det(z)))(ms.Tensor(whole)).asnumpy()
    np.testing.assert_allclose(found, np.conj([[-1, -1j], [-1j, 1]]), atol=1e-12)


@pytest.mark.parametrize("name", ("identity", "regular", "rank 2 of 3", "rank 1 of 3"))
def test_derivatives_of_pseudo_inverses(name: str) -> None:
    a = np.array(MATRICES[name], np.float64)
    n = len(a)
    weights = np.sin(np.arange(1.0, n * n + 1)).reshape(n, n)
    p, one = np.linalg.pinv(a), np.eye(n)
    g = weights.T
    want = (one - a @ p) @ g @ p @ p.T + p.T @ p @ g @ (one - p @ a) - p.T @ weights @ p.T
    check(ops.pinv, [a], [want], weights=weights, close=1e-7)
    if name == "identity":
        check(lambda x: ops.pinv(x, hermitian=True), [a], [-(weights + g) / 2], weights=weights)
        twice = ms.grad(lambda x: ms.grad(lambda y: (ops.pinv(y) * ms.Tensor(weights)).sum())(x)[0, 1])(ms.Tensor(a))
        again = ms.grad(lambda x: ms.grad(lambda y: (ops.inverse(y) * ms.Tensor(weights)).sum())(x)[0, 1])(ms.Tensor(a))
        np.testing.assert_allclose(twice.asnumpy(), again.asnumpy(), atol=1e-12)


@pytest.mark.parametrize("n", (-3, -2, -1))
def test_negative_powers_of_matrices(n: int) -> None:
    a = np.array([[[2.0, 1.0], [1.0, 3.0]], [[0.0, 1.0], [-1.0, 0.5]]])
    right = np.linalg.matrix_power(a, n)
    for kind, close in ((np.float64, 1e-12), (np.float32, 1e-5), (np.float16, 1e-2)):
        x = ms.Tensor(a.astype(kind))
        for found in (ops.matrix_power(x, n), ops.MatrixPower(n)(x), x.matrix_power(n), mnp.matrix_power(x, n)):
            assert found.dtype is x.dtype
            np.testing.assert_allclose(found.asnumpy(), right, rtol=close, atol=close)


# Functions of numbers: name, function, operands, derivatives by each.

RATIO = f32(0, 0, -0.0, 1), f32(4, 0.5, 2, 3)
TABLE: list[tuple[str, Callable[..., Any], Any, Any]] = [
    *[(f"xlogy {i}", f, RATIO, [np.log(RATIO[1]), RATIO[0] / RATIO[1]])
      for i, f in enumerate((ops.xlogy, mint.xlogy, ops.Xlogy(), lambda a, b: a.xlogy(b)))],
    *[(f"xdivy {i}", f, RATIO, [1 / RATIO[1], -RATIO[0] / RATIO[1] ** 2])
      for i, f in enumerate((ops.xdivy, ops.Xdivy()))],
    ("xlogy outside", ops.xlogy, (f32(0, 0, 0), f32(0, -1, INF)), [[0, 0, 0], [0, 0, 0]]),
    ("xdivy at 0 / 0", ops.xdivy, (f32(0), f32(0)), [[0], [0]]),
    ("hypot", ops.hypot, (f32(0, 3e30), f32(0, 4e30)), [[0, 0.6], [0, 0.8]]),
    ("atan2", ops.atan2, (f32(0, -0.0, 1e-30, 1e30), f32(0, 0, 1e-30, 1e30)),
     [[0, 0, 5e29, 5e-31], [0, 0, -5e29, -5e-31]]),
    ("numpy.arctan2", mnp.arctan2, (f32(0), f32(0)), [[0], [0]]),
    ("pow", ops.pow, (f32(0, 0, 0, -2), f32(0, 1, 2, 3)), [[0, 1, 0, 12], [0, 0, 0, 0]]),
    ("pow of 0", lambda a: ops.pow(a, 0), (f32(0, 2, 1e-30),), [[0, 0, 0]]),
    ("nextafter", ops.nextafter, (f32(1, 2, 0, -3), f32(2, 2, 0, -4)), [[1, 1, 1, 1], [0, 0, 0, 0]]),
    ("maximum", ops.maximum, (f32(1), f32(1)), [[0.5], [0.5]]),
    ("fmax", ops.fmax, (f32(1, 2), f32(1, 3)), [[1, 0], [0, 1]]),
    ("fmin", ops.fmin, (f32(1, 2), f32(1, 3)), [[1, 1], [0, 0]]),
    ("max with its position", lambda a: ops.max(a, 1)[0], (f32([1, 2, 2], [0, 0, 0]),), [[[0, 1, 0], [1, 0, 0]]]),
    ("min with its position", lambda a: ops.min(a, 1)[0], (f32([1, 1, 2]),), [[[1, 0, 0]]]),
    ("mint.max", lambda a: mint.max(a, 1)[0], (f32([1, 2, 2]),), [[[0, 1, 0]]]),
    ("amax", lambda a: ops.amax(a, 1), (f32([1, 2, 2]),), [[[0, 0.5, 0.5]]]),
    ("clamp", lambda a: ops.clamp(a, 0.0, 1.0), (f32(0, 1, 2),), [[1, 1, 0]]),
    ("abs", ops.abs, (f32(0, -0.0),), [[0, 0]]),
    ("logaddexp", ops.logaddexp, (f32(0, 5, -INF), f32(0, 5, 1)), [[0.5, 0.5, 0], [0.5, 0.5, 1]]),
    ("logsumexp", lambda a: ops.logsumexp(a, 1), (f32([-INF, 0, 0]),), [[[0, 0.5, 0.5]]]),
    ("logcumsumexp", lambda a: ops.logcumsumexp(a, 0), (f32(0, 0, -INF),), [[2, 1, 0]]),
    ("prod of a zero", ops.prod, (f32(0, 2, 3),), [[6, 0, 0]]),
    ("prod of zeros", ops.prod, (f32(0, 2, 0),), [[0, 0, 0]]),
    ("cumprod", lambda a: ops.cumprod(a, 0), (f32(0, 2, 0, 3),), [[3, 0, 0, 0]]),
    ("softplus", ops.softplus, (f32(0, 1e4, -1e4),), [[0.5, 1, 0]]),
    ("logsigmoid", ops.logsigmoid, (f32(0, 1e4, -1e4),), [[0.5, 0, 1]]),
    ("silu", ops.silu, (f32(0, 1e4, -1e4),), [[0.5, 1, 0]]),
    ("gelu", ops.gelu, (f32(0, 1e4, -1e4),), [[0.5, 1, 0]]),
    ("where keeps the other out", lambda a: ops.where(a > 0, ops.sqrt(ops.where(a > 0, a, 1.0)), 0.0),
     (f32(0, 4),), [[0, 0.25]]),
    ("margin_ranking_loss", lambda a, b: ops.margin_ranking_loss(a, b, ms.Tensor(f32(1, -1)), reduction="sum"),
     (f32(1, 0), f32(1, 0)), [[-1, 1], [1, -1]]),
    ("hinge_embedding_loss", lambda a: ops.hinge_embedding_loss(a, ms.Tensor(f32(-1)), reduction="sum"),
     (f32(1),), [[-1]]),
    ("cross_entropy, all ignored", lambda a: ops.cross_entropy(a, ms.Tensor([-100], ms.int32), reduction="sum"),
     (f32([1, 2]),), [[[0, 0]]]),
    ("kl_div at 0", lambda a: ops.kl_div(a, ms.Tensor(f32(0, 0.5)), "sum"), (f32(0, -1),), [[0, -0.5]]),
    ("layer_norm of equals", lambda a: ops.layer_norm(a, (3,)), (f32([2, 2, 2]),), [[[0, 0, 0]]]),
]  # fmt: skip


@pytest.mark.parametrize("case", TABLE, ids=[c[0] for c in TABLE])
def test_derivatives_at_singular_points(case: Any) -> None:
    _, function, arrays, want = case
    check(function, arrays, want, close=1e-4)


def _sinc(x: float) -> tuple[float, float]:
    """Return the first two derivatives of sin(pi x) / (pi x) for small x, by the series."""
    first = sum(
        (-1) ** k * math.pi ** (2 * k) * 2 * k * x ** (2 * k - 1) / math.factorial(2 * k + 1) for k in range(1, 12)
    )
    second = sum(
        (-1) ** k * math.pi ** (2 * k) * 2 * k * (2 * k - 1) * x ** (2 * k - 2) / math.factorial(2 * k + 1)
        for k in range(1, 12)
    )
    return first, second


SECOND: list[tuple[str, Callable[..., Any], Any, Any]] = [
    ("sinc", ops.sinc, f32(0, 1e-6, -1e-4, 1e-2, 0.1, 0.24, 0.26, 0.9), None),
    ("softplus", ops.softplus, f32(0, -0.0), [0.25, 0.25]),
    ("logsigmoid", ops.logsigmoid, f32(0), [-0.25]),
    ("pow of 0", lambda a: ops.pow(a, 0), f32(0, 2), [0, 0]),
    ("logaddexp", lambda a: ops.logaddexp(a, ms.Tensor(f32(0, 1))), f32(0, 1), [0.25, 0.25]),
    ("binary cross entropy", lambda a: ops.binary_cross_entropy_with_logits(
        a, ms.Tensor(f32(0, 1)), ms.Tensor(f32(1, 1)), ms.Tensor(f32(1, 1)), "sum"), f32(0, 0), [0.25, 0.25]),
]  # fmt: skip


@pytest.mark.parametrize("case", SECOND, ids=[c[0] for c in SECOND])
def test_second_derivatives_at_singular_points(case: Any) -> None:
    name, function, x, want = case
    if name == "sinc":
        check(function, [x], [[_sinc(float(v))[0] for v in x]], close=1e-4)
        want = [_sinc(float(v))[1] for v in x]
    inner = ms.grad(lambda a: function(a).sum())
    check(inner, [x], [want], close=1e-3)


# Masks that hide everything.


@pytest.mark.parametrize("floats", (False, True))
def test_rows_that_see_nothing_reach_no_other(floats: bool) -> None:
    rng = np.random.default_rng(0)
    x = ms.Tensor(rng.normal(size=(2, 3, 4)).astype(np.float32))
    hidden = np.array([[False] * 3, [True] * 3])
    mask = ms.Tensor(np.where(hidden, -INF, 0).astype(np.float32)) if floats else ms.Tensor(hidden)
    net = nn.MultiheadAttention(4, 2, batch_first=True)
    net.set_train(False)
    alone = net(x[:1], x[:1], x[:1])[0].asnumpy()

    def loss_of(a: Any, needed: bool) -> Any:
        return net(a, a, a, key_padding_mask=mask, need_weights=needed)[0].sum()

    for needed in (True, False):
        out, weights = net(x, x, x, key_padding_mask=mask, need_weights=needed)
        np.testing.assert_allclose(out[:1].asnumpy(), alone, atol=1e-6)
        np.testing.assert_allclose(out[1].asnumpy(), np.tile(net.out_proj.bias.asnumpy(), (3, 1)), atol=1e-6)
        assert not needed or not weights[1].asnumpy().any()
        for form in (lambda f: f, ms.jit):
            loss = partial(loss_of, needed=needed)
            found = form(ms.grad(loss, None, net.trainable_params()))(x)
            assert all(np.isfinite(t.asnumpy()).all() for t in found)
    layer = nn.TransformerDecoderLayer(4, 2, 8, batch_first=True)
    layer.set_train(False)
    found = ms.grad(lambda a: layer(a, a, memory_key_padding_mask=mask).sum(), None, layer.trainable_params())(x)
    assert all(np.isfinite(t.asnumpy()).all() for t in found)


# Positions at the ends of images.


@pytest.mark.parametrize("padding", ("border", "reflection"))
@pytest.mark.parametrize("rank", (2, 3))
def test_positions_at_the_ends_of_images(padding: str, rank: int) -> None:
    size = 3
    image = np.arange(size**rank, dtype=np.float32).reshape((1, 1) + (size,) * rank)
    line = f32(-1, 0, 1) if rank == 3 else f32(-1, -0.5, 0, 1, 1.5)
    grid = np.stack(np.meshgrid(*[line] * rank, indexing="ij")[::-1], -1)[None]
    steps = [size**k for k in range(rank)]  # of x, y, z
    inner = np.stack([np.where((np.abs(grid[..., k]) < 1), float(steps[k]), 0) for k in range(rank)], -1)
    for found in gradients(lambda g: ops.grid_sample(ms.Tensor(image), g, "bilinear", padding, True), grid):
        got = found[0]
        outside = np.abs(grid) > 1
        reflected = np.where(outside & (padding == "reflection"), -np.array(steps, float), inner)
        np.testing.assert_allclose(got, reflected, atol=1e-5)


# Long sums.


def test_running_sums_keep_their_digits() -> None:
    for shape, axis in (((200_000,), 0), ((50_000, 3), 0), ((3, 50_000), 1)):
        x = np.full(shape, 0.1, np.float32)
        right = np.cumsum(x.astype(np.float64), axis)
        np.testing.assert_allclose(ops.cumsum(ms.Tensor(x), axis).asnumpy(), right, rtol=5e-7)
        back = ops.CumSum(reverse=True)(ms.Tensor(x), axis).asnumpy()
        np.testing.assert_allclose(back, np.flip(right, axis), rtol=5e-7)
    grown = np.full(100_000, 1 + 2.0**-16, np.float32)
    np.testing.assert_allclose(
        ops.cumprod(ms.Tensor(grown), 0).asnumpy(), np.cumprod(grown.astype(np.float64)), rtol=5e-6
    )
