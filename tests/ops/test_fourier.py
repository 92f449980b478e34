"""Fourier transforms against SciPy, with their sizes, axes and norms, and their derivatives."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.fft

import mycel as ms
from mycel import Tensor, ops

ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
TWO = tuple(n + "2" for n in ONE)
SEVERAL = tuple(n + "n" for n in ONE)
SHIFTS = ("fftshift", "ifftshift", "fftfreq", "rfftfreq")
CHECKED = {f"ops.{n}": "SciPy" for n in (*ONE, *TWO, *SEVERAL, *SHIFTS)}
RANDOM = np.random.default_rng(5)
NORMS = pytest.mark.parametrize("norm", [None, "backward", "forward", "ortho"])


def data(name: str, *shape: int) -> np.ndarray:
    x = RANDOM.normal(size=shape)
    return x if name.startswith(("rfft", "ihfft")) else x + 1j * RANDOM.normal(size=shape)


def same(name: str, x: np.ndarray, *args: object, **kwargs: object) -> None:
    names = {"dim": "axis" if name in ONE else "axes"}
    want = getattr(scipy.fft, name)(x, *args, **{names.get(k, k): v for k, v in kwargs.items()})
    function = getattr(ops, name)
    results = [function(Tensor(x), *args, **kwargs)]
    if "norm" in kwargs and kwargs["norm"] is None:
        results.append(ms.jit(lambda t: function(t, *args, **kwargs))(Tensor(x)))
    for got in results:
        assert got.dtype is (ms.complex128 if want.dtype.kind == "c" else ms.float64)
        np.testing.assert_allclose(got.asnumpy(), want, rtol=1e-10, atol=1e-12)


@NORMS
@pytest.mark.parametrize("name", ONE)
def test_along_one_axis(name: str, norm: str) -> None:
    for shape in ((8,), (3, 7), (2, 5, 4)):
        same(name, data(name, *shape), norm=norm)
        same(name, data(name, *shape), 6, 0, norm)
        same(name, data(name, *shape), n=9, dim=-1, norm=norm)
    same(name, data(name, 5), 1)


@NORMS
@pytest.mark.parametrize("name", [*TWO, *SEVERAL])
def test_along_several_axes(name: str, norm: str) -> None:
    same(name, data(name, 4, 6), norm=norm)
    same(name, data(name, 3, 5, 4), norm=norm)
    same(name, data(name, 3, 5, 4), s=(4, 5), dim=(0, 2), norm=norm)


@pytest.mark.parametrize("name", SEVERAL)
def test_sizes_without_axes_are_for_the_last(name: str) -> None:
    same(name, data(name, 3, 5, 4), s=(4, 6))


def test_element_types() -> None:
    assert ops.fft(Tensor([1.0, 2.0])).dtype is ms.complex64 and ops.fft(Tensor([1, 2])).dtype is ms.complex64
    assert (
        ops.rfft(Tensor(np.ones(4))).dtype is ms.complex128
        and ops.irfft(Tensor(np.ones(3, np.complex64))).dtype is ms.float32
    )
    x = RANDOM.normal(size=6).astype(np.float32)
    np.testing.assert_allclose(ops.fft(Tensor(x)).asnumpy(), np.fft.fft(x), rtol=1e-5, atol=1e-5)


def test_frequencies_and_shifts() -> None:
    for n in (1, 4, 5):
        np.testing.assert_allclose(ops.fftfreq(n, 0.5).asnumpy(), np.fft.fftfreq(n, 0.5), rtol=1e-6)
        np.testing.assert_allclose(ops.rfftfreq(n, 0.5, ms.float64).asnumpy(), np.fft.rfftfreq(n, 0.5))
        x = RANDOM.normal(size=(n, 3))
        for dim in (None, 0, (0, 1)):
            np.testing.assert_array_equal(ops.fftshift(Tensor(x), dim).asnumpy(), np.fft.fftshift(x, dim))
            np.testing.assert_array_equal(ops.ifftshift(Tensor(x), dim).asnumpy(), np.fft.ifftshift(x, dim))


@pytest.mark.parametrize("name", [*ONE, *SEVERAL])
def test_gradients(name: str) -> None:
    x = data(name, 3, 5)
    way = data(name, 3, 5)

    def loss(t: Tensor) -> Tensor:
        out = getattr(ops, name)(t)
        weight = Tensor(np.cos(np.arange(out.size)).reshape(out.shape))
        return (ops.real(out) * weight).sum() + (ops.imag(out) * (1 - weight)).sum()

    got = float((np.conj(ms.grad(loss)(Tensor(x)).asnumpy()) * way).real.sum())
    want = (float(loss(Tensor(x + 1e-5 * way))) - float(loss(Tensor(x - 1e-5 * way)))) / 2e-5
    assert abs(got - want) < 1e-7 * (1 + abs(want))


def test_errors() -> None:
    x = ops.ones((2, 3))
    with pytest.raises(ValueError, match="norm must be one of"):
        ops.fft(x, norm="other")
    with pytest.raises(ValueError, match="out of range"):
        ops.fft(x, dim=2)
    with pytest.raises(ValueError, match="at least 1"):
        ops.fft(x, n=0)
    with pytest.raises(TypeError, match="use fft"):
        ops.rfft(Tensor([1j]))
    with pytest.raises(ValueError, match="one for each"):
        ops.fftn(x, s=(2, 2), dim=(0,))
    with pytest.raises(ValueError, match="must be at least 1"):
        ops.fftfreq(0)
