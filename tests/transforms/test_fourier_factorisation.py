"""Fourier transforms along one axis in kernels of our own, against NumPy's in float64."""

import math

import numpy as np
import pytest

import mycel as ms
from mycel import ops
from mycel._src.compiler.transforms.fourier_matmul import DIRECT, LARGEST, _factors

# Tiny ones, one pass, several, tables, products, convolutions, and sizes beyond one step.
SIZES = (1, 2, 3, 4, 7, 11, 16, 30, 50, 61, 97, 100, 105, 169, 256, 262, 360, 509, 512, 1000, 1001, 4096, 8192)


def close(found, expected):
    expected = np.asarray(expected)
    assert found.shape == expected.shape
    if not expected.size:
        return
    found = found.asnumpy()
    wide = found.dtype in (np.float64, np.complex128)
    error = np.sqrt((np.abs(found - expected) ** 2).sum() / max((np.abs(expected) ** 2).sum(), 1e-30))
    assert error <= (3e-15 if wide else 1e-6), error


def draw(*shape, parts=False, wide=False):
    random = np.random.default_rng(len(shape) + sum(shape))
    x = random.normal(size=shape)
    z = x + 1j * random.normal(size=shape) if parts else x
    return z if wide else z.astype(np.complex64 if parts else np.float32)


def exact(x):
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


@pytest.mark.parametrize("size", SIZES)
def test_one_axis(size):
    for lead in ((), (3,), (17,), (0,)):
        wide = size % 2 == 0 and len(lead) == 1
        x, z = draw(*lead, size, wide=wide), draw(*lead, size, parts=True, wide=wide)
        half = draw(*lead, size // 2 + 1, parts=True, wide=wide)
        close(ops.rfft(ms.Tensor(x)), np.fft.rfft(exact(x)))
        close(ops.fft(ms.Tensor(z)), np.fft.fft(exact(z)))
        close(ops.fft(ms.Tensor(x)), np.fft.fft(exact(x)))
        close(ops.ifft(ms.Tensor(z), norm="ortho"), np.fft.ifft(exact(z), norm="ortho"))
        close(ops.irfft(ms.Tensor(half), size), np.fft.irfft(exact(half), size))


def test_several_axes_at_random():
    random = np.random.default_rng(5)
    for _ in range(25):
        shape = tuple(int(d) for d in random.choice([1, 2, 5, 12, 17, 49, 64, 66], random.integers(1, 4)))
        axes = tuple(int(a) for a in random.permutation(len(shape))[: random.integers(1, len(shape) + 1)])
        x, z = draw(*shape), draw(*shape, parts=True)
        sizes = [shape[a] for a in axes]
        close(ops.rfftn(ms.Tensor(x), dim=axes), np.fft.rfftn(exact(x), axes=axes))
        close(ops.ifftn(ms.Tensor(z), dim=axes), np.fft.ifftn(exact(z), axes=axes))
        half = np.fft.rfftn(x, axes=axes).astype(np.complex64)
        close(ops.irfftn(ms.Tensor(half), sizes, dim=axes), np.fft.irfftn(exact(half), sizes, axes=axes))


def test_strided_operands_and_chains():
    z = draw(6, 40, 3, parts=True)
    t = ms.Tensor(z)
    # Parts that lie apart, reversed, cut, padded, and along an axis with few elements behind it.
    close(ms.jit(lambda t: ops.fft(t * 2.0, dim=0))(t), np.fft.fft(exact(z) * 2, axis=0))
    close(ms.jit(lambda t: ops.fft(t[:, ::-2], dim=1))(t), np.fft.fft(exact(z)[:, ::-2], axis=1))
    close(ms.jit(lambda t: ops.fft(t.swapaxes(0, 2), 64, dim=1))(t), np.fft.fft(exact(z).swapaxes(0, 2), 64, axis=1))
    close(ops.ifft(t, 20, dim=1), np.fft.ifft(exact(z), 20, axis=1))
    x = draw(5, 64, 20)
    close(ops.rfft(ms.Tensor(x), dim=1), np.fft.rfft(exact(x), axis=1))


def test_no_step_is_left_to_the_host():
    def spectrum(x):
        return ops.irfft2(ops.rfft2(x) * 2.0)

    for dtype, size in ((np.float32, 1000), (np.float32, 2 * 131), (np.float64, 100), (np.float64, 509)):
        x = ms.Tensor(draw(2, 60, size).astype(dtype))
        found = ms.explain(ms.jit(spectrum), x)
        assert not found.host_steps
        close(spectrum(x), np.fft.irfft2(2.0 * np.fft.rfft2(exact(x.asnumpy())), (60, size - size % 2)))


def test_lengths_are_known_where_other_sizes_are_symbols():
    f = ms.jit(lambda x: ops.rfft(x) * 1.0, dynamic=1)
    for rows, size in ((3, 64), (40, 64), (7, 100), (1, 33), (40, 100)):
        x = draw(rows, size)
        close(f(ms.Tensor(x)), np.fft.rfft(exact(x)))
        close(ops.rfft(ms.Tensor(x)), np.fft.rfft(exact(x)))


def test_gradients_are_the_adjoint():
    random = np.random.default_rng(3)
    for name in ("fft", "ifft", "rfft", "irfft", "rfft2", "irfft2", "hfft"):
        for shape in ((2, 7), (3, 8, 6), (2, 34)):
            f, given = getattr(ops, name), name.startswith("r")
            x, d = (random.normal(size=shape) + (0 if given else 1j * random.normal(size=shape)) for _ in range(2))
            out = f(ms.Tensor(x))
            y = random.normal(size=out.shape) + (1j * random.normal(size=out.shape) if out.dtype.is_complex else 0)
            yt = ms.Tensor(y)

            def loss(v, f=f, yt=yt):
                found = f(v)
                return (ops.real(found) * ops.real(yt) + ops.imag(found) * ops.imag(yt)).sum()

            def real_loss(v, f=f, yt=yt):
                return (f(v) * yt).sum()

            chosen = loss if out.dtype.is_complex else real_loss
            expected = float((np.conj(y) * f(ms.Tensor(d)).asnumpy()).sum().real)
            for gradient in (ms.grad(chosen)(ms.Tensor(x)), ms.jit(ms.grad(chosen))(ms.Tensor(x))):
                found = float((np.conj(gradient.asnumpy()) * d).sum().real)
                assert math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-9), (name, shape)


def test_batches():
    x = ms.Tensor(draw(4, 120))
    close(ops.vmap(ops.rfft)(x), np.fft.rfft(exact(x.asnumpy())))
    energy = lambda x: (ops.irfft(ops.rfft(x) * 3.0) ** 2).sum()
    close(ms.jit(ops.vmap(ms.grad(energy)))(x), 18.0 * exact(x.asnumpy()))


def test_imaginary_parts_at_the_ends_are_not_read():
    half = draw(3, 33, parts=True)
    clean = half.copy()
    clean[:, 0], clean[:, -1] = half[:, 0].real, half[:, -1].real
    half.imag[:, 0], half.imag[:, -1] = np.inf, np.nan
    close(ops.irfft(ms.Tensor(half)), np.fft.irfft(exact(clean)))


def test_factors_have_the_smallest_sum():
    assert _factors(61 * 59) in ((61, 59), (59, 61))
    assert _factors(DIRECT) == (1, DIRECT) and _factors(LARGEST**2) == (LARGEST, LARGEST)
    assert _factors(2 * LARGEST - 1) == (1, 2 * LARGEST - 1) and _factors(2 * 131) is None
