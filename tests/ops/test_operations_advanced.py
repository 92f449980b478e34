"""Operations as objects give what their functions give, which are checked against independent
oracles themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, ops
from mycel._src.foundation.pytree import flatten
from mycel.ops.operations import advanced

R = np.random.default_rng(0)
X, Y = Tensor(R.uniform(0.5, 3, (4, 4))), Tensor(R.uniform(0.5, 3, (4, 4)))
Z = Tensor(R.normal(size=(3, 4)) + 1j * R.normal(size=(3, 4)))
S = Tensor(np.cov(R.normal(size=(4, 9))))
IMAGE, GRID = Tensor(R.normal(size=(1, 4, 4, 4))), Tensor(R.uniform(-1, 1, (1, 2, 3, 2)))
BOX, OTHER = Tensor([[2.0, 2, 5, 6], [1, 1, 3, 3]]), Tensor([[1.0, 2, 5, 4], [1, 2, 2, 4]])
N = Tensor([1, 3, 2, 4])
PROBABILITIES = ops.log_softmax(Tensor(R.normal(size=(5, 2, 3))), -1)
LABELS = (Tensor([[1, 2], [2, 1]]), Tensor([5, 4]), Tensor([2, 1]))
TAU = ops.geqrf(X)
BESSEL = {
    f"Bessel{n}": ((), (X,), getattr(ops, f"bessel_{n.lower()}"))
    for n in "I0 I0e I1 I1e J0 J1 K0 K0e K1 K1e Y0 Y1".split()
}
CASES: dict[str, tuple[Any, Any, Callable[..., Any]]] = {
    **BESSEL,
    "NextAfter": ((), (X, Y), ops.nextafter),
    "CheckValid": ((), (BOX, Tensor([9.0, 4.0, 1.0])), ops.check_valid),
    "Angle": ((), (Z,), ops.angle),
    "Complex": ((), (X, Y), lambda a, b: Tensor(a.asnumpy() + 1j * b.asnumpy())),
    "ComplexAbs": ((), (Z,), lambda z: Tensor(np.abs(z.asnumpy()))),
    "Conj": ((), (Z,), ops.conj),
    "Imag": ((), (Z,), ops.imag),
    "Real": ((), (Z,), ops.real),
    "Polar": ((), (X, Y), ops.polar),
    "Geqrf": ((), (X,), ops.geqrf),
    "LogMatrixDeterminant": ((), (X,), ops.log_matrix_determinant),
    "MatrixDeterminant": ((), (X,), ops.det),
    "MatrixExp": ((), (X,), ops.matrix_exp),
    "Orgqr": ((), TAU, ops.orgqr),
    "MatrixBandPart": ((), (X, 1, 0), ops.matrix_band_part),
    "Igamma": ((), (X, Y), ops.igamma),
    "Igammac": ((), (X, Y), ops.igammac),
    "Polygamma": ((), (N, X), ops.polygamma),
    "PopulationCount": ((), (N,), ops.population_count),
    "Zeta": ((), (X + 1, Y), ops.zeta),
    "ConjugateTranspose": ((), (Z, (1, 0)), lambda z, _: Tensor(z.asnumpy().conj().T.copy())),
    "Cholesky": ((True,), (S,), lambda x: ops.cholesky(x, True)),
    "CholeskyInverse": ((), (S,), ops.cholesky_inverse),
    "CholeskySolve": ((), (X, S), ops.cholesky_solve),
    "MatrixInverse": ((True,), (X,), lambda x: Tensor(np.linalg.inv(x.asnumpy().T))),
    "MatrixPower": ((3,), (X,), lambda x: ops.matrix_power(x, 3)),
    "MatrixSolve": ((), (X, Y), ops.matrix_solve),
    "Mvlgamma": ((2,), (X,), lambda x: ops.mvlgamma(x, 2)),
    "Ormqr": ((), (*TAU, Y), ops.ormqr),
    "Qr": ((), (X,), ops.qr),
    "Svd": ((), (X,), ops.svd),
    "Einsum": (("ij,kj->ik",), ((X, Y),), lambda xs: xs[0] @ xs[1].T),
    "Pdist": ((3.0,), (X,), lambda x: ops.pdist(x, 3.0)),
    "MatrixDiagV3": (
        (),
        (X, Tensor([-1, 2]), Tensor(4), Tensor(4), Tensor(0.0)),
        lambda x, k, r, c, f: ops.matrix_diag(x, k, r, c, f),
    ),
    "MatrixDiagPartV3": (
        ("LEFT_LEFT",),
        (X, Tensor([-1, 2]), Tensor(0.0)),
        lambda x, k, f: ops.matrix_diag_part(x, k, f, "LEFT_LEFT"),
    ),
    "MatrixSetDiagV3": ((), (X, Y[0], Tensor(0)), ops.matrix_set_diag),
    "Renorm": ((2, 0, 1.0), (X,), lambda x: ops.renorm(x, 2, 0, 1.0)),
    "ReverseSequence": ((1,), (X, N), lambda x, n: ops.reverse_sequence(x, n, 1)),
    "Padding": ((4,), (X[:, :1],), lambda x: ops.padding(x, 4)),
    "SpaceToBatchND": (
        ([2, 2], [[0, 0], [2, 0]]),
        (IMAGE,),
        lambda x: ops.space_to_batch_nd(x, [2, 2], [[0, 0], [2, 0]]),
    ),
    "BatchToSpaceND": (
        ([2, 2], [[0, 0], [1, 0]]),
        (IMAGE.reshape((4, 1, 4, 4)),),
        lambda x: ops.batch_to_space_nd(x, [2, 2], [[0, 0], [1, 0]]),
    ),
    "Col2Im": ((2,), (IMAGE, Tensor([3, 3])), lambda x, s: ops.col2im(x, s, 2, 1, 0, 1)),
    "ChannelShuffle": ((2,), (IMAGE,), lambda x: ops.channel_shuffle(x, 2)),
    "DepthToSpace": ((2,), (ops.SpaceToDepth(2)(IMAGE),), lambda x: IMAGE),
    "SpaceToDepth": ((2,), (ops.DepthToSpace(2)(IMAGE),), lambda x: IMAGE),
    "AffineGrid": (
        (True,),
        (X.reshape((1, 16))[:, :6].reshape((1, 2, 3)), (1, 1, 2, 3)),
        lambda t, s: ops.affine_grid(t, s, True),
    ),
    "GridSampler2D": ((), (IMAGE, GRID), ops.grid_sample),
    "IOU": (("iof",), (BOX, OTHER), lambda a, b: ops.iou(a, b, "iof")),
    "GridSampler3D": ((), (ops.ones((1, 1, 2, 2, 2)), ops.zeros((1, 1, 1, 2, 3))), ops.grid_sample),
    "CropAndResize": ((), (IMAGE, Tensor([[0.1, 0.2, 0.8, 0.9]]), Tensor([0]), (2, 3)), ops.crop_and_resize),
    "BoundingBoxEncode": ((), (BOX, OTHER), ops.bounding_box_encode),
    "BoundingBoxDecode": (((9, 9),), (BOX, OTHER), lambda a, d: ops.bounding_box_decode(a, d, (9, 9))),
    "BartlettWindow": ((), (Tensor(5),), ops.bartlett_window),
    "BlackmanWindow": ((), (Tensor(5),), ops.blackman_window),
    "HammingWindow": ((), (Tensor(5),), ops.hamming_window),
    "STFT": (
        (4, 2, 4, True, True, True),
        (X, X[0]),
        lambda x, w: ops.stft(x, 4, 2, 4, w, False, "REFLECT", True, True, True),
    ),
    "CTCLossV2": ((), (PROBABILITIES, *LABELS), lambda *a: ops.ctc_loss(*a, reduction="none")),
    "CTCGreedyDecoder": ((False,), (PROBABILITIES, LABELS[1]), lambda x, n: ops.ctc_greedy_decoder(x, n, False)),
    "Histogram": ((4, 0.0, 3.0), (X,), lambda x: ops.histc(x, 4, 0.0, 3.0)),
    "UniqueConsecutive": ((), (N,), ops.unique_consecutive),
}
CHECKED = {f"ops.{n}": "its function" for n in CASES}


@pytest.mark.parametrize("name", list(CASES))
def test_objects(name: str) -> None:
    given, operands, function = CASES[name]
    got, want = (flatten(v)[0] for v in (getattr(ops, name)(*given)(*operands), function(*operands)))
    assert len(got) == len(want) and got
    for a, b in zip(got, want):
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-9, atol=1e-12)


def test_every_object_is_tested() -> None:
    assert set(advanced.__all__) <= set(CASES)
    assert isinstance(ops.Real(), ms.ops.Primitive)
