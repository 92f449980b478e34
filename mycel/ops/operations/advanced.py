"""Operations as objects over complex numbers, matrices, images, windows, special functions and sequences."""

from __future__ import annotations

from typing import Any

from mycel.base import dtype as D
from mycel.core.tensor import Tensor
from mycel.ops import array, bessel, blocks, complex_numbers, convolution, pairwise, segments, sorting, special, windows
from mycel.ops._operands import operand, permuted, reshaped
from mycel.ops.algebra import decompositions, diagonals, linalg
from mycel.ops.images import boxes, resize
from mycel.ops.operations.primitive import NEEDED, definer, plain
from mycel.ops.sequences import ctc

__all__: list[str] = []

define = definer(globals())

plain(define, {
    bessel: """BesselI0=bessel_i0 BesselI0e=bessel_i0e BesselI1=bessel_i1 BesselI1e=bessel_i1e BesselJ0=bessel_j0 BesselJ1=bessel_j1
        BesselK0=bessel_k0 BesselK0e=bessel_k0e BesselK1=bessel_k1 BesselK1e=bessel_k1e BesselY0=bessel_y0 BesselY1=bessel_y1""",
    blocks: "NextAfter=nextafter",
    boxes: "CheckValid=check_valid",
    complex_numbers: "Angle=angle Complex=complex_of ComplexAbs=absolute_value Conj=conj Imag=imag Polar=polar Real=real",
    decompositions: "Geqrf=geqrf LogMatrixDeterminant=log_matrix_determinant MatrixDeterminant=det MatrixExp=matrix_exp Orgqr=orgqr",
    diagonals: "MatrixBandPart=matrix_band_part",
    special: "Igamma=igamma Igammac=igammac Polygamma=polygamma PopulationCount=population_count Zeta=zeta",
})  # fmt: skip

define("ConjugateTranspose", lambda x, order: array.transpose(complex_numbers.conj(x), order), "The complex conjugate with its axes in another order.")  # fmt: skip
define("Cholesky", lambda p, x: decompositions.cholesky(x, p.upper), upper=False)
define("CholeskyInverse", lambda p, x: decompositions.cholesky_inverse(x, p.upper), upper=False)
define("CholeskySolve", lambda p, x, y: decompositions.cholesky_solve(x, y, p.upper), upper=False)
define("MatrixInverse", lambda p, x: decompositions.inverse(array.adjoint(x) if p.adjoint else x), adjoint=False)
define("MatrixPower", lambda p, x: linalg.matrix_power(x, p.n), n=NEEDED)
define("MatrixSolve", lambda p, x, y: decompositions.matrix_solve(x, y, p.adjoint), adjoint=False)
define("Mvlgamma", lambda p, x: special.mvlgamma(x, p.p), p=NEEDED)
define("Ormqr", lambda p, x, tau, y: decompositions.ormqr(x, tau, y, p.left, p.transpose), left=True, transpose=False)
define("Qr", lambda p, x: decompositions.qr(x, "complete" if p.full_matrices else "reduced"), full_matrices=False)
define("Svd", lambda p, x: decompositions.svd(x, p.full_matrices, p.compute_uv), full_matrices=False, compute_uv=True)
define("Einsum", lambda p, xs: linalg.einsum(p.equation, *xs), equation=NEEDED)
define("Pdist", lambda p, x: pairwise.pdist(x, p.p), p=2.0)
define("MatrixDiagV3", lambda p, x, k, rows, columns, fill: diagonals.matrix_diag(x, k, rows, columns, fill, p.align), align="RIGHT_LEFT")  # fmt: skip
define("MatrixDiagPartV3", lambda p, x, k, fill: diagonals.matrix_diag_part(x, k, fill, p.align), align="RIGHT_LEFT")
define("MatrixSetDiagV3", lambda p, x, d, k: diagonals.matrix_set_diag(x, d, k, p.align), align="RIGHT_LEFT")
define("Renorm", lambda p, x: blocks.renorm(x, p.p, p.dim, p.maxnorm), p=NEEDED, dim=NEEDED, maxnorm=NEEDED)
define("ReverseSequence", lambda p, x, n: blocks.reverse_sequence(x, n, p.seq_dim, p.batch_dim), seq_dim=NEEDED, batch_dim=0)  # fmt: skip
define("Padding", lambda p, x: blocks.padding(x, p.pad_dim_size), pad_dim_size=8)
define("SpaceToBatchND", lambda p, x: blocks.space_to_batch_nd(x, p.block_shape, p.paddings), block_shape=NEEDED, paddings=NEEDED)  # fmt: skip
define("BatchToSpaceND", lambda p, x: blocks.batch_to_space_nd(x, p.block_shape, p.crops), block_shape=NEEDED, crops=NEEDED)  # fmt: skip
define("Col2Im", lambda p, x, size: blocks.col2im(x, size, p.kernel_size, p.dilation, p.padding, p.stride), kernel_size=NEEDED, dilation=1, padding=0, stride=1)  # fmt: skip
define("ChannelShuffle", lambda p, x: convolution.channel_shuffle(x, p.group), group=NEEDED)


def _space(name: str, value: Any, block: int) -> Tensor:
    x = operand(name, value)
    if x.ndim != 4 or block < 2:
        raise ValueError(f"{name}: takes (N, C, H, W) and a block_size of at least 2, not {x._type} and {block}")
    return x


def _to_depth(p: Any, value: Any) -> Tensor:
    x, b = _space(p.name, value, p.block_size), p.block_size
    n, c, h, w = x.shape
    if h % b or w % b:
        raise ValueError(f"{p.name}: the height and width of {x._type} must divide by the block_size {b}")
    return reshaped(
        permuted(reshaped(x, (n, c, h // b, b, w // b, b)), (0, 3, 5, 1, 2, 4)), (n, c * b * b, h // b, w // b)
    )


def _to_space(p: Any, value: Any) -> Tensor:
    x, b = _space(p.name, value, p.block_size), p.block_size
    n, c, h, w = x.shape
    if c % (b * b):
        raise ValueError(f"{p.name}: the channels of {x._type} must divide by the square of the block_size {b}")
    return reshaped(
        permuted(reshaped(x, (n, b, b, c // (b * b), h, w)), (0, 3, 4, 1, 5, 2)), (n, c // (b * b), h * b, w * b)
    )


define("SpaceToDepth", _to_depth, "Blocks of an image (N, C, H, W) moved into its channels.", block_size=NEEDED)
define("DepthToSpace", _to_space, "The inverse of `SpaceToDepth`.", block_size=NEEDED)
define("AffineGrid", lambda p, theta, size: resize.affine_grid(theta, size, p.align_corners), align_corners=False)
for _class in ("GridSampler2D", "GridSampler3D"):
    define(_class, lambda p, x, grid: resize.grid_sample(x, grid, p.interpolation_mode, p.padding_mode, p.align_corners), interpolation_mode="bilinear", padding_mode="zeros", align_corners=False)  # fmt: skip
define("CropAndResize", lambda p, x, b, i, size: resize.crop_and_resize(x, b, i, size, p.method, p.extrapolation_value), method="bilinear", extrapolation_value=0.0)  # fmt: skip
define("IOU", lambda p, x, y: boxes.iou(x, y, p.mode), mode="iou")
define("BoundingBoxEncode", lambda p, x, y: boxes.bounding_box_encode(x, y, p.means, p.stds), means=(0.0, 0.0, 0.0, 0.0), stds=(1.0, 1.0, 1.0, 1.0))  # fmt: skip
define("BoundingBoxDecode", lambda p, x, y: boxes.bounding_box_decode(x, y, p.max_shape, p.means, p.stds, p.wh_ratio_clip), max_shape=NEEDED, means=(0.0, 0.0, 0.0, 0.0), stds=(1.0, 1.0, 1.0, 1.0), wh_ratio_clip=0.016)  # fmt: skip
define(
    "BartlettWindow", lambda p, n: windows.bartlett_window(n, p.periodic, dtype=p.dtype), periodic=True, dtype=D.float32
)
define(
    "BlackmanWindow", lambda p, n: windows.blackman_window(n, p.periodic, dtype=p.dtype), periodic=True, dtype=D.float32
)
define("HammingWindow", lambda p, n: windows.hamming_window(n, p.periodic, p.alpha, p.beta, dtype=p.dtype), periodic=True, alpha=0.54, beta=0.46, dtype=D.float32)  # fmt: skip
define("STFT", lambda p, x, w: windows.stft(x, p.n_fft, p.hop_length, p.win_length, w, False, "REFLECT", p.normalized, p.onesided, p.return_complex), n_fft=NEEDED, hop_length=NEEDED, win_length=NEEDED, normalized=NEEDED, onesided=NEEDED, return_complex=NEEDED)  # fmt: skip
define("CTCLossV2", lambda p, x, y, m, n: ctc.ctc_loss(x, y, m, n, p.blank, p.reduction, p.zero_infinity), blank=0, reduction="none", zero_infinity=False)  # fmt: skip
define("CTCGreedyDecoder", lambda p, x, n: ctc.ctc_greedy_decoder(x, n, p.merge_repeated), merge_repeated=True)
define("Histogram", lambda p, x: sorting.histc(x, p.bins, p.min, p.max), bins=100, min=0.0, max=0.0)
define("UniqueConsecutive", lambda p, x: segments.unique_consecutive(x, p.return_inverse, p.return_counts, p.dim), return_inverse=False, return_counts=False, dim=None)  # fmt: skip
