"""Operations as objects over complex numbers, matrices, images, windows, special functions and
sequences.
"""

from __future__ import annotations

from typing import Any

from mycel._src.foundation import dtype as D
from mycel._src.tensors.core.tensor import Tensor
from mycel.ops import (
    array,
    bessel,
    blocks,
    complex_numbers,
    convolution,
    pairwise,
    segments,
    signal_windows,
    sorting,
    special,
)
from mycel.ops._operands import operand, permuted, reshaped
from mycel.ops.algebra import decompositions, diagonals, linalg, linear_systems
from mycel.ops.images import boxes, resize
from mycel.ops.operations.attributes import (
    anything,
    element_type,
    flag,
    integer,
    integers,
    numbers,
    optional,
    pairs,
    real,
    text,
    word,
)
from mycel.ops.operations.inputs import SIZES, WHOLE
from mycel.ops.operations.primitive import Primitive, alike, need_dimensions, operations_of
from mycel.ops.sequences import ctc

__all__: list[str] = []


class BesselI0(Primitive, compute=bessel.bessel_i0): ...


class BesselI0e(Primitive, compute=bessel.bessel_i0e): ...


class BesselI1(Primitive, compute=bessel.bessel_i1): ...


class BesselI1e(Primitive, compute=bessel.bessel_i1e): ...


class BesselJ0(Primitive, compute=bessel.bessel_j0): ...


class BesselJ1(Primitive, compute=bessel.bessel_j1): ...


class BesselK0(Primitive, compute=bessel.bessel_k0): ...


class BesselK0e(Primitive, compute=bessel.bessel_k0e): ...


class BesselK1(Primitive, compute=bessel.bessel_k1): ...


class BesselK1e(Primitive, compute=bessel.bessel_k1e): ...


class BesselY0(Primitive, compute=bessel.bessel_y0): ...


class BesselY1(Primitive, compute=bessel.bessel_y1): ...


class NextAfter(Primitive, compute=blocks.nextafter): ...


class CheckValid(Primitive, compute=boxes.check_valid): ...


class Angle(Primitive, compute=complex_numbers.angle): ...


class Complex(Primitive, compute=complex_numbers.complex_of, inputs=(Tensor, Tensor)): ...


class ComplexAbs(Primitive, compute=complex_numbers.absolute_value): ...


class Conj(Primitive, compute=complex_numbers.conj): ...


class Imag(Primitive, compute=complex_numbers.imag): ...


class Polar(Primitive, compute=alike("Polar", complex_numbers.polar)): ...


class Real(Primitive, compute=complex_numbers.real): ...


class Geqrf(Primitive, compute=decompositions.geqrf): ...


class LogMatrixDeterminant(Primitive, compute=linear_systems.log_matrix_determinant): ...


class MatrixDeterminant(Primitive, compute=linear_systems.det): ...


class MatrixExp(Primitive, compute=decompositions.matrix_exp): ...


class Orgqr(Primitive, compute=decompositions.orgqr): ...


class MatrixBandPart(Primitive, compute=diagonals.matrix_band_part, inputs=(Tensor, WHOLE, WHOLE)): ...


class Igamma(Primitive, compute=special.igamma): ...


class Igammac(Primitive, compute=special.igammac): ...


class Polygamma(Primitive, compute=special.polygamma): ...


class PopulationCount(Primitive, compute=special.population_count): ...


class Zeta(Primitive, compute=alike("Zeta", special.zeta)): ...


class ConjugateTranspose(
    Primitive, compute=lambda x, order: array.transpose(complex_numbers.conj(x), order), inputs=(Tensor, SIZES)
):
    """The complex conjugate with its axes in another order."""


class Cholesky(Primitive, compute=lambda p, x: decompositions.cholesky(x, p.upper), upper=False): ...


class CholeskyInverse(
    Primitive, compute=lambda p, x: linear_systems.cholesky_inverse(x, p.upper), upper=anything(False)
): ...


class CholeskySolve(Primitive, compute=lambda p, x, y: linear_systems.cholesky_solve(x, y, p.upper), upper=False): ...


class MatrixInverse(
    Primitive, compute=lambda p, x: linear_systems.inverse(array.adjoint(x) if p.adjoint else x), adjoint=False
): ...


class MatrixPower(Primitive, compute=lambda p, x: linalg.matrix_power(x, p.n), n=integer()): ...


class MatrixSolve(Primitive, compute=lambda p, x, y: linear_systems.matrix_solve(x, y, p.adjoint), adjoint=False): ...


class Mvlgamma(Primitive, compute=lambda p, x: special.mvlgamma(x, p.p), p=integer(at_least=1)): ...


class Ormqr(
    Primitive,
    compute=lambda p, x, tau, y: decompositions.ormqr(x, tau, y, p.left, p.transpose),
    left=True,
    transpose=False,
): ...


class Qr(
    Primitive,
    compute=lambda p, x: decompositions.qr(x, "complete" if p.full_matrices else "reduced"),
    full_matrices=False,
): ...


class Svd(
    Primitive,
    compute=lambda p, x: decompositions.svd(x, p.full_matrices, p.compute_uv),
    full_matrices=False,
    compute_uv=True,
): ...


class Einsum(
    Primitive, compute=lambda p, xs: linalg.einsum(p.equation, *xs), equation=text(), inputs=((tuple, list),)
): ...


class Pdist(Primitive, compute=lambda p, x: pairwise.pdist(x, p.p), p=real(2.0, at_least=0)): ...


def _from_diagonals(p: Any, x: Any, k: Any, num_rows: Any, num_cols: Any, padding_value: Any) -> Tensor:
    need_dimensions(p.name, 0, num_rows=num_rows, num_cols=num_cols, padding_value=padding_value)
    return diagonals.matrix_diag(x, k, num_rows, num_cols, padding_value, p.align)


def _to_diagonals(p: Any, x: Any, k: Any, padding_value: Any) -> Tensor:
    need_dimensions(p.name, 0, padding_value=padding_value)
    return diagonals.matrix_diag_part(x, k, padding_value, p.align)


class MatrixDiagV3(
    Primitive,
    compute=_from_diagonals,
    align=word("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT"),
): ...


class MatrixDiagPartV3(
    Primitive,
    compute=_to_diagonals,
    align=word("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT"),
): ...


class MatrixSetDiagV3(
    Primitive,
    compute=lambda p, x, d, k: diagonals.matrix_set_diag(x, d, k, p.align),
    align=word("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT"),
): ...


class Renorm(
    Primitive,
    compute=lambda p, x: blocks.renorm(x, p.p, p.dim, p.maxnorm),
    p=integer(at_least=1),
    dim=integer(),
    maxnorm=real(),
): ...


class ReverseSequence(
    Primitive,
    compute=lambda p, x, n: blocks.reverse_sequence(x, n, p.seq_dim, p.batch_dim),
    seq_dim=integer(),
    batch_dim=0,
): ...


class Padding(
    Primitive, compute=lambda p, x: blocks.padding(x, p.pad_dim_size), pad_dim_size=integer(8, at_least=1)
): ...


class SpaceToBatchND(
    Primitive,
    compute=lambda p, x: blocks.space_to_batch_nd(x, p.block_shape, p.paddings),
    block_shape=integers(kinds=(tuple, list), at_least=1),
    paddings=pairs(),
): ...


class BatchToSpaceND(
    Primitive,
    compute=lambda p, x: blocks.batch_to_space_nd(x, p.block_shape, p.crops),
    block_shape=integers(kinds=(tuple, list), at_least=1),
    crops=pairs(),
): ...


class Col2Im(
    Primitive,
    compute=lambda p, x, size: blocks.col2im(x, size, p.kernel_size, p.dilation, p.padding, p.stride),
    kernel_size=integers(kinds=(tuple, list)),
    dilation=integers(1, kinds=(tuple, list)),
    padding=integers(0, kinds=(tuple, list)),
    stride=integers(1, kinds=(tuple, list)),
):
    """`mycel.ops.col2im` as an object: columns added up into images (N, C, H, W), as `fold` does.

    It is called with the columns (N, C, KH KW, positions) and the size (H, W), a tensor (2,).

    Args:
        kernel_size (int | tuple[int, int]): The size of the window: an int, or one for each axis.
        dilation (int | tuple[int, int]): The distance of its elements: an int, or one for each
            axis. Default: 1.
        padding (int | tuple[int, int]): The zeros that were added on each side: an int, or one for
            each axis. Default: 0.
        stride (int | tuple[int, int]): The step of the window: an int, or one for each axis.
            Default: 1.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.Col2Im(2)(ms.ops.ones((1, 1, 4, 4)), ms.Tensor([3, 3])).tolist()
        [[[[1.0, 2.0, 1.0], [2.0, 4.0, 2.0], [1.0, 2.0, 1.0]]]]
    """


class ChannelShuffle(
    Primitive, compute=lambda p, x: convolution.channel_shuffle(x, p.group), group=integer(error=ValueError)
): ...


def _space(name: str, value: Any) -> Tensor:
    x = operand(name, value)
    if x.ndim != 4:
        raise ValueError(f"{name}: takes (N, C, H, W), not {x._type}")
    return x


def _to_depth(p: Any, value: Any) -> Tensor:
    x, b = _space(p.name, value), p.block_size
    n, c, h, w = x.shape
    if h % b or w % b:
        raise ValueError(f"{p.name}: the height and width of {x._type} must divide by the block_size {b}")
    return reshaped(
        permuted(reshaped(x, (n, c, h // b, b, w // b, b)), (0, 3, 5, 1, 2, 4)), (n, c * b * b, h // b, w // b)
    )


def _to_space(p: Any, value: Any) -> Tensor:
    x, b = _space(p.name, value), p.block_size
    n, c, h, w = x.shape
    if c % (b * b):
        raise ValueError(f"{p.name}: the channels of {x._type} must divide by the square of the block_size {b}")
    return reshaped(
        permuted(reshaped(x, (n, b, b, c // (b * b), h, w)), (0, 3, 4, 1, 5, 2)), (n, c // (b * b), h * b, w * b)
    )


class SpaceToDepth(Primitive, compute=_to_depth, block_size=integer(at_least=2)):
    """Blocks of an image (N, C, H, W) moved into its channels."""


class DepthToSpace(Primitive, compute=_to_space, block_size=integer(at_least=2)):
    """The inverse of `SpaceToDepth`."""


class AffineGrid(
    Primitive,
    compute=lambda p, theta, size: resize.affine_grid(theta, size, p.align_corners),
    align_corners=False,
    inputs=(Tensor, SIZES),
): ...


class GridSampler2D(
    Primitive,
    compute=lambda p, x, grid: resize.grid_sample(x, grid, p.interpolation_mode, p.padding_mode, p.align_corners),
    interpolation_mode=word("bilinear", "nearest"),
    padding_mode=word("zeros", "border", "reflection"),
    align_corners=False,
): ...


class GridSampler3D(
    Primitive,
    compute=lambda p, x, grid: resize.grid_sample(x, grid, p.interpolation_mode, p.padding_mode, p.align_corners),
    interpolation_mode=word("bilinear", "nearest"),
    padding_mode=word("zeros", "border", "reflection"),
    align_corners=False,
): ...


class CropAndResize(
    Primitive,
    compute=lambda p, x, b, i, size: resize.crop_and_resize(x, b, i, size, p.method, p.extrapolation_value),
    method=word("bilinear", "nearest", "bilinear_v2"),
    extrapolation_value=0.0,
    inputs=(Tensor, Tensor, Tensor, SIZES),
): ...


class IOU(Primitive, compute=lambda p, x, y: boxes.iou(x, y, p.mode), mode=word("iou", "iof")): ...


class BoundingBoxEncode(
    Primitive,
    compute=lambda p, x, y: boxes.bounding_box_encode(x, y, p.means, p.stds),
    means=numbers((0.0, 0.0, 0.0, 0.0), 4),
    stds=numbers((1.0, 1.0, 1.0, 1.0), 4),
): ...


class BoundingBoxDecode(
    Primitive,
    compute=lambda p, x, y: boxes.bounding_box_decode(x, y, p.max_shape, p.means, p.stds, p.wh_ratio_clip),
    max_shape=integers(count=2, alone=False),
    means=numbers((0.0, 0.0, 0.0, 0.0), 4),
    stds=numbers((1.0, 1.0, 1.0, 1.0), 4),
    wh_ratio_clip=0.016,
):
    """`mycel.ops.bounding_box_decode` as an object: the boxes (boxes, 4) to which offsets take
    other boxes, cut at an image of `max_shape`.

    It is called with the boxes and the offsets, (boxes, 4) each. Offsets are multiplied by `stds`,
    and `means` are added.

    Args:
        max_shape (tuple[int, int]): The size of the image, (height, width).
        means (tuple[float, float, float, float]): The means of the offsets. Default:
            (0.0, 0.0, 0.0, 0.0).
        stds (tuple[float, float, float, float]): The scales of the offsets. Default:
            (1.0, 1.0, 1.0, 1.0).
        wh_ratio_clip (float): Sizes change by a factor of 1 / wh_ratio_clip at most. Default:
            0.016.

    Examples:
        >>> import mycel as ms
        >>> anchor, offsets = ms.Tensor([[2.0, 2.0, 5.0, 5.0]]), ms.Tensor([[0.5, 0.5, 0.0, 0.0]])
        >>> ms.ops.BoundingBoxDecode((20, 20))(anchor, offsets).tolist()
        [[4.0, 4.0, 7.0, 7.0]]
    """


def _window(function: Any) -> Any:
    def compute(p: Any, window_length: Any) -> Tensor:
        need_dimensions(p.name, 0, window_length=window_length)
        return function(window_length, p.periodic, dtype=p.dtype)

    return compute


class BartlettWindow(
    Primitive,
    compute=_window(signal_windows.bartlett_window),
    periodic=True,
    dtype=element_type(D.float32, D.float16, D.float64),
): ...


class BlackmanWindow(
    Primitive,
    compute=_window(signal_windows.blackman_window),
    periodic=True,
    dtype=element_type(D.float32, D.float16, D.float64),
): ...


class HammingWindow(
    Primitive,
    compute=lambda p, n: signal_windows.hamming_window(n, p.periodic, p.alpha, p.beta, dtype=p.dtype),
    periodic=True,
    alpha=0.54,
    beta=0.46,
    dtype=element_type(D.float32, D.float16, D.float64),
):
    """`mycel.ops.hamming_window` as an object: the Hamming window
    ``alpha - beta * cos(2 * pi * i / (n - 1))``.

    It is called with the number n of elements, a tensor of one integer.

    Args:
        periodic (bool): Whether the window is one of n + 1 elements without its last. Default:
            True.
        alpha (float): The first coefficient. Default: 0.54.
        beta (float): The second coefficient. Default: 0.46.
        dtype (DType): The element type: float16, float32 or float64. Default: float32.

    Examples:
        >>> import mycel as ms
        >>> [round(v, 2) for v in ms.ops.HammingWindow()(ms.Tensor(4)).tolist()]
        [0.08, 0.54, 1.0, 0.54]
    """


class STFT(
    Primitive,
    compute=lambda p, x, w: signal_windows.stft(
        x, p.n_fft, p.hop_length, p.win_length, w, False, "REFLECT", p.normalized, p.onesided, p.return_complex
    ),
    n_fft=integer(),
    hop_length=integer(),
    win_length=integer(),
    normalized=flag(),
    onesided=flag(),
    return_complex=flag(),
):
    """`mycel.ops.stft` as an object: the Fourier transforms of overlapping frames of a signal.

    It is called with the signal ([B,] L) and the factors of a frame (win_length,), and returns
    ([B,] frequencies, frames), or with an axis of 2 behind. Frame k begins at element k hop_length.
    Where there are fewer factors than `n_fft`, zeros stand on both sides of them.

    Args:
        n_fft (int): The length of a frame.
        hop_length (int): The distance between frames.
        win_length (int): The number of factors of a frame, 1 to `n_fft`.
        normalized (bool): Whether results are divided by sqrt(n_fft).
        onesided (bool): Whether frequencies above n_fft / 2 are left out, as only those of real
            signals can be.
        return_complex (bool): Whether the result is complex, else its last axis has the real and
            imaginary parts.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.STFT(4, 2, 4, False, True, True)(ms.ops.ones(8), ms.ops.ones(4)).shape
        (3, 3)
    """


def _ctc(p: Any, log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any) -> tuple[Tensor, Tensor]:
    need_dimensions(p.name, 3, log_probs=log_probs)
    need_dimensions(p.name, 2, targets=targets)
    need_dimensions(p.name, 1, input_lengths=input_lengths, target_lengths=target_lengths)
    return ctc.ctc_loss(log_probs, targets, input_lengths, target_lengths, p.blank, p.reduction, p.zero_infinity)


class CTCLossV2(
    Primitive,
    compute=_ctc,
    blank=0,
    reduction=word("none", "mean", "sum"),
    zero_infinity=False,
): ...


class CTCGreedyDecoder(
    Primitive, compute=lambda p, x, n: ctc.ctc_greedy_decoder(x, n, p.merge_repeated), merge_repeated=True
): ...


class Histogram(
    Primitive,
    compute=lambda p, x: sorting.histc(x, p.bins, p.min, p.max),
    bins=integer(100, at_least=1),
    min=0.0,
    max=0.0,
): ...


class UniqueConsecutive(
    Primitive,
    compute=lambda p, x: segments.unique_consecutive(x, p.return_inverse, p.return_counts, p.dim),
    return_inverse=False,
    return_counts=False,
    dim=optional(integer()),
): ...


__all__.extend(operations_of(globals()))
