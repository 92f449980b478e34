"""Transforms as products of matrices, against NumPy's in float64."""

import numpy as np
import pytest

import mycel as ms
from mycel import ops
from mycel.transforms.fourier_products import DIRECT, LARGEST, _factors

SIZES = (1, 2, 3, 7, 50, DIRECT, 97, 98, 100, 105, 127, 128, 251, 256, 1000, 1001, 4096)


def close(found, expected):
    expected = np.asarray(expected)
    assert found.shape == expected.shape
    if not expected.size:
        return
    error = np.abs(found.asnumpy() - expected).max()
    assert error <= 3e-6 * max(np.abs(expected).max(), 1e-3), error


def draw(*shape, parts=False):
    random = np.random.default_rng(len(shape) + sum(shape))
    x = random.normal(size=shape)
    return (x + 1j * random.normal(size=shape)).astype(np.complex64) if parts else x.astype(np.float32)


@pytest.mark.parametrize("size", SIZES)
def test_one_axis(size):
    for lead in ((), (3,), (2, 1, 2), (0,)):
        x, z = draw(*lead, size), draw(*lead, size, parts=True)
        half = draw(*lead, size // 2 + 1, parts=True)
        close(ops.rfft(ms.Tensor(x)), np.fft.rfft(x))
        close(ops.fft(ms.Tensor(z)), np.fft.fft(z))
        close(ops.fft(ms.Tensor(x)), np.fft.fft(x))
        close(ops.ifft(ms.Tensor(z), norm="forward"), np.fft.ifft(z, norm="forward"))
        close(ops.irfft(ms.Tensor(half), size), np.fft.irfft(half, size))


def test_several_axes_at_random():
    random = np.random.default_rng(5)
    for _ in range(25):
        shape = tuple(int(d) for d in random.choice([1, 2, 5, 12, 49, 64, 66], random.integers(1, 4)))
        axes = tuple(int(a) for a in random.permutation(len(shape))[: random.integers(1, len(shape) + 1)])
        x, z = draw(*shape), draw(*shape, parts=True)
        sizes = [shape[a] for a in axes]
        close(ops.rfftn(ms.Tensor(x), dim=axes), np.fft.rfftn(x, axes=axes))
        close(ops.ifftn(ms.Tensor(z), dim=axes), np.fft.ifftn(z, axes=axes))
        half = np.fft.rfftn(x, axes=axes).astype(np.complex64)
        close(ops.irfftn(ms.Tensor(half), sizes, dim=axes), np.fft.irfftn(half, sizes, axes=axes))


def test_no_step_is_left_to_the_host_where_factors_are_small():
    def spectrum(x):
        return ops.irfft2(ops.rfft2(x) * 2.0)

    x = ms.Tensor(draw(2, 60, 1000))
    assert not ms.explain(ms.jit(spectrum), x).host_steps
    odd = ms.Tensor(draw(2, 2 * 131))
    assert ms.explain(ms.jit(lambda x: ops.rfft(x)), odd).host_steps
    wide = ms.Tensor(draw(2, 100).astype(np.float64))
    assert ms.explain(ms.jit(lambda x: ops.rfft(x)), wide).host_steps
    close(ops.rfft(odd), np.fft.rfft(odd.asnumpy()))
    np.testing.assert_allclose(ops.rfft(wide).asnumpy(), np.fft.rfft(wide.asnumpy()), rtol=1e-12, atol=1e-12)


def test_gradients_and_batches():
    x = ms.Tensor(draw(4, 120))
    energy = lambda x: (ops.irfft(ops.rfft(x) * 3.0) ** 2).sum()
    for gradient in (ms.grad(energy)(x), ms.jit(ms.grad(energy))(x)):
        close(gradient, 18.0 * x.asnumpy())
    close(ops.vmap(ops.rfft)(x), np.fft.rfft(x.asnumpy()))
    whole = lambda x: (ops.abs(ops.fft(x)) ** 2).sum()
    close(ms.jit(ms.grad(whole))(x), 240.0 * x.asnumpy())


def test_factors_have_the_smallest_sum():
    assert _factors(1000) == (40, 25) or _factors(1000) == (25, 40)
    assert _factors(DIRECT) == (1, DIRECT) and _factors(LARGEST**2) == (LARGEST, LARGEST)
    assert _factors(2 * LARGEST - 1) == (1, 2 * LARGEST - 1) and _factors(2 * 131) is None
