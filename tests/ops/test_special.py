"""Special functions, windows and neighbouring numbers against SciPy and NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.signal
import scipy.special as sp

import mycel as ms
from mycel import Tensor, ops
from tests.meaning import A, Checks, I

checks = Checks("SciPy")
CHECKED = {
    "ops.bartlett_window": "SciPy",
    "ops.blackman_window": "SciPy",
    "ops.hamming_window": "SciPy",
    "ops.hann_window": "SciPy",
    "ops.kaiser_window": "SciPy",
    "ops.mvlgamma": "SciPy",
    "Tensor.mvlgamma": "SciPy",
    "ops.nextafter": "NumPy",
    "ops.stft": "SciPy",
}
CHECKED_SHAPES = ("bessel_j0", "bessel_k1e", "i0")
WIDE = ((A(3, 8, low=0.05, high=20.0),),)
BOTH = ((A(3, 8, low=-12.0, high=12.0),),)
for name in ("i0", "i0e", "i1", "i1e", "j0", "j1"):
    near = ((A(3, 5, low=-4.0, high=4.0),),) if name in ("i0", "i1") else BOTH
    checks.add(f"ops.bessel_{name}" + (" ops.i0" if name == "i0" else ""), getattr(sp, name), *near, jit=name == "j1")
for name in ("k0", "k0e", "k1", "k1e", "y0", "y1"):
    checks.add(f"ops.bessel_{name}", getattr(sp, name), *WIDE, tolerance=10, jit=name == "k0")
POSITIVE = (A(3, 4, low=0.1, high=6.0), A(3, 4, low=0.1, high=9.0))
checks.add(
    "ops.igamma",
    sp.gammainc,
    POSITIVE,
    (A(3, 1, low=3.0, high=40.0), A(5, low=3.0, high=60.0)),
    (A(0), A(0)),
    tolerance=2,
)
checks.add(
    "ops.igammac",
    sp.gammaincc,
    POSITIVE,
    (A(3, 1, low=3.0, high=40.0), A(5, low=3.0, high=60.0)),
    (A(0), A(0)),
    tolerance=2,
)
checks.add(
    "ops.zeta",
    sp.zeta,
    (A(3, 4, low=1.5, high=9.0), A(3, 4, low=0.5, high=5.0)),
    (A(1, low=2, high=4), A(3, low=1, high=30)),
    (A(0), A(0)),
    grad=(1,),
)
checks.add(
    "ops.polygamma",
    sp.polygamma,
    (I(3, 1, low=0, high=5), A(4, low=0.5, high=9.0)),
    (I(low=1, high=2), A(2, 3, low=0.7, high=2.0)),
    (I(), A(0)),
    tolerance=10,
)
checks.add(
    "ops.population_count",
    lambda x: np.vectorize(lambda v: bin(int(v) & 0xFFFF).count("1"), otypes=[np.uint8])(x),
    (I(3, 4, low=-300, high=300, dtype="int16"),),
    (I(1, dtype="int16"),),
    (I(2, 2, high=30000, dtype="int16"),),
    dtypes="float32",
    oracle="NumPy",
)
test_values, test_gradients = checks.tests()


@pytest.mark.parametrize("p", [1, 2, 4])
def test_multivariate_gamma(p: int) -> None:
    x = np.linspace(p, p + 5.0, 7)
    want = [sp.multigammaln(v, p) for v in x]
    np.testing.assert_allclose(ops.mvlgamma(Tensor(x), p).asnumpy(), want, rtol=1e-12)
    np.testing.assert_allclose(Tensor(x.reshape(7, 1)).mvlgamma(p).asnumpy()[:, 0], want, rtol=1e-12)
    with pytest.raises(ValueError, match="p must be"):
        ops.mvlgamma(Tensor(x), 0)


def test_no_elements_and_one() -> None:
    for name in CHECKED_SHAPES:
        function = getattr(ops, name)
        assert function(Tensor(np.zeros((0, 3)))).shape == (0, 3)
        assert function(Tensor(np.ones((1, 1, 1), np.float32))).shape == (1, 1, 1)
    np.testing.assert_allclose(Tensor([0.5]).i0().asnumpy(), sp.i0(np.float32([0.5])), rtol=1e-6)
    np.testing.assert_allclose(Tensor([0.5]).igamma(Tensor([2.0])).asnumpy(), sp.gammainc(0.5, [2.0]), rtol=1e-6)
    np.testing.assert_allclose(Tensor([0.5]).igammac(Tensor([2.0])).asnumpy(), sp.gammaincc(0.5, [2.0]), rtol=1e-6)


def test_far_and_edge_arguments() -> None:
    x = np.array([0.0, 100.0, 3000.0, -50.0])
    for name in ("i0e", "i1e", "j0", "j1"):
        np.testing.assert_allclose(
            getattr(ops, "bessel_" + name)(Tensor(x)).asnumpy(), getattr(sp, name)(x), rtol=1e-10, atol=1e-13
        )
    for name in ("k0", "k1", "y0", "y1", "k0e", "k1e"):
        got = getattr(ops, "bessel_" + name)(Tensor(x)).asnumpy()
        np.testing.assert_allclose(got, getattr(sp, name)(x), rtol=1e-9, atol=1e-13)
    pairs = np.array(
        [(0, 0), (0, 1), (1, 0), (1, np.inf), (np.inf, 1), (-1, 1), (1, -1), (1, 700.0), (1e5, 1e5), (0.01, 1e-3)]
    ).T
    for name, want in (("igamma", sp.gammainc), ("igammac", sp.gammaincc)):
        got = getattr(ops, name)(Tensor(pairs[0]), Tensor(pairs[1])).asnumpy()
        np.testing.assert_allclose(got, want(*pairs), rtol=1e-9, atol=1e-12)
    edges = np.array([(1, 1), (0.5, 1), (2, 0), (2, -1), (2.5, -0.5), (3, -0.5), (4, -7.3), (1, -3)]).T
    np.testing.assert_allclose(ops.zeta(Tensor(edges[0]), Tensor(edges[1])).asnumpy(), sp.zeta(*edges), rtol=1e-12)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_next_numbers(kind: type) -> None:
    info = np.finfo(kind)
    tiny, least = info.tiny, info.smallest_subnormal
    x = np.array(
        [0, 1, -1, np.inf, tiny, 2 * tiny, -2 * tiny, tiny / 2, info.max, -info.max, 3.3, 1e-3, np.nan, least, 2, -0.0],
        kind,
    )
    for towards in (np.inf, -np.inf, 0):
        with np.errstate(over="ignore"):
            want = np.nextafter(x, kind(towards))
        np.testing.assert_array_equal(ops.nextafter(Tensor(x), Tensor(np.array(towards, kind))).asnumpy(), want)
    np.testing.assert_array_equal(Tensor(x[:3]).nextafter(Tensor(x[1:4])).asnumpy(), np.nextafter(x[:3], x[1:4]))


@pytest.mark.parametrize("name", ["bartlett", "blackman", "hamming", "hann", "kaiser"])
@pytest.mark.parametrize("periodic", [True, False])
def test_windows(name: str, periodic: bool) -> None:
    function = getattr(ops, f"{name}_window")
    for n in (0, 1, 2, 5, 8):
        want = (
            scipy.signal.get_window(("kaiser", 12.0) if name == "kaiser" else name, n, periodic) if n else np.zeros(0)
        )
        got = function(n, periodic, dtype=ms.float64)
        np.testing.assert_allclose(got.asnumpy(), want, atol=1e-14)
    assert function(4).dtype is (ms.float64 if name in ("hann", "kaiser") else ms.float32)
    with pytest.raises(ValueError, match="window_length must be at least 0"):
        function(-1)


def test_short_time_transforms() -> None:
    x = np.random.default_rng(3).normal(size=(2, 23))
    window = np.hanning(6) + 0.1
    for hop, one_sided, scale in ((2, True, 1.0), (3, False, 8**-0.5), (5, True, 1.0)):
        padded = np.pad(x, ((0, 0), (4, 4)), "reflect")
        full = np.pad(window, (1, 1))
        frames = np.stack([padded[:, k : k + 8] * full for k in range(0, padded.shape[1] - 7, hop)], 2)
        want = (np.fft.rfft if one_sided else np.fft.fft)(frames, axis=1) * scale
        args = (8, hop, 6, Tensor(window), True, "REFLECT", scale != 1.0, one_sided)
        np.testing.assert_allclose(ops.stft(Tensor(x), *args, True).asnumpy(), want, atol=1e-12)
        pairs = ops.stft(Tensor(x), *args, False).asnumpy()
        np.testing.assert_allclose(pairs[..., 0] + 1j * pairs[..., 1], want, atol=1e-12)
    assert ops.stft(Tensor(x[0]), 4, return_complex=True).shape == (3, 24)
    with pytest.raises(ValueError, match="shorter"):
        ops.stft(Tensor(x), 64, center=False)
