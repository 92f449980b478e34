"""Layers for images: their patches, sizes and channels, and the similarity of two images.

Similarities take two batches (N, C, H, W) of values up to `max_val` and return one number for each
pair. With Gaussian means m, variances v and covariance c of each window

    SSIM = l * s,   l = (2 m1 m2 + c1) / (m1^2 + m2^2 + c1),   s = (2 c + c2) / (v1 + v2 + c2)

where c1 = (k1 max_val)^2 and c2 = (k2 max_val)^2, averaged over windows (Wang et al., "Image
quality assessment", 2004). The multi-scale form halves the images by means, takes s from every
scale but the last, where it takes SSIM, and multiplies their powers (Wang, Simoncelli and Bovik,
2003).
"""

from __future__ import annotations

from collections.abc import Sized
from typing import Any

import numpy as np

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.nn.layer.argument_free import Plain
from mycel.ops._operands import input_of, numbers
from mycel.ops.images.patches import image_gradients

__all__ = ["CentralCrop", "ChannelShuffle", "ImageGradients", "MSSSIM", "PSNR", "SSIM", "Unfold", "Upsample"]


class Unfold(Cell):
    """The patches of (N, C, H, W) as channels: (N, rows * columns * C, H', W'), the position in the
    patch before the channel.

    Args:
        ksizes (int | tuple[int, ...]): The size of a patch, [1, rows, columns, 1].
        strides (int | tuple[int, ...]): The step of the patches, [1, rows, columns, 1].
        rates (tuple[int, ...] | list[int]): The distance of a patch's elements, [1, rows, columns,
            1].
        padding (str): "valid" takes whole patches only, "same" adds zeros for ceil(size / stride)
            of them. Default: "valid".

    Raises:
        ValueError: For other forms.

    Examples:
        >>> import mycel as ms
        >>> ms.nn.Unfold([1, 2, 2, 1], [1, 2, 2, 1], [1, 2, 2, 1])(ms.ops.ones((2, 3, 6, 6))).shape
        (2, 12, 2, 2)
    """

    def __init__(self, ksizes: Any, strides: Any, rates: Any, padding: str = "valid") -> None:
        super().__init__()
        found = []
        for name, value in (("ksizes", ksizes), ("strides", strides), ("rates", rates)):
            if name == "ksizes" or not isinstance(value, Sized):
                arguments.sequence("Unfold", name, value)
            if not isinstance(value, (tuple, list)) or len(value) != 4 or value[0] != 1 or value[3] != 1:
                raise ValueError(f"Unfold: {name} must be [1, rows, columns, 1], not {value!r}")
            found.append(tuple(arguments.integer("Unfold", f"each of {name}", v, 1) for v in value[1:3]))
        self.ksizes, self.strides, self.rates = found
        self.padding = arguments.choice(
            "Unfold", "padding", arguments.text("Unfold", "padding", padding).lower(), ("valid", "same")
        )

    def construct(self, input_x: Tensor) -> Tensor:
        """Return the patches."""
        input_x = input_of(self, input_x)
        if input_x.ndim != 4:
            raise ValueError(f"Unfold: the input must be (N, C, H, W), not of shape {input_x.shape}")
        spans = [(k - 1) * r + 1 for k, r in zip(self.ksizes, self.rates)]
        spatial = input_x.shape[2:]
        if self.padding == "same":
            around: list[Any] = []
            for d, span, s in zip(spatial, spans, self.strides):
                more = max((-(-d // s) - 1) * s + span - d, 0)
                around = [more // 2, more - more // 2, *around]
            input_x = ops.pad(input_x, tuple(around))
            spatial = input_x.shape[2:]
        if any(d < span for d, span in zip(spatial, spans)):
            raise ValueError(f"Unfold: patches of {tuple(spans)} do not fit into {tuple(spatial)}")
        (rows, columns), (down, right) = self.ksizes, self.rates
        high, wide = ((d - span) // s * s + 1 for d, span, s in zip(spatial, spans, self.strides))
        parts = [
            input_x[:, :, i * down : i * down + high : self.strides[0], j * right : j * right + wide : self.strides[1]]
            for i in range(rows)
            for j in range(columns)
        ]
        return ops.cat(parts, 1)


class Upsample(Cell):
    """(N, C, *spatial) resized to another size or scale; see `ops.interpolate`.

    Args:
        size (int | tuple[int, ...] | None): The new size. Default: None.
        scale_factor (float | tuple[float, ...] | None): The factor, an int or float or one for each
            axis. Default: None.
        mode (str): The method, such as "nearest", "linear", "bilinear" or "bicubic". Default:
            "nearest".
        align_corners (bool | None): Whether corner elements stay in place. Default: None.
        recompute_scale_factor (bool | None): Whether the factor is computed from the rounded sizes.
            Default: None.

    Examples:
        >>> import mycel as ms
        >>> ms.nn.Upsample(size=(4, 4))(ms.ops.ones((1, 3, 2, 2))).shape
        (1, 3, 4, 4)
    """

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.size, self.scale_factor, self.mode = size, scale_factor, mode
        self.align_corners, self.recompute_scale_factor = align_corners, recompute_scale_factor

    def construct(self, x: Tensor) -> Tensor:
        """Return the resized input."""
        return ops.interpolate(
            x, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor
        )


class ChannelShuffle(Cell):
    """The channels of (N, C, H, W) written as `groups` rows and read by columns (Zhang et al.,
    "ShuffleNet", 2018).

    >>> import mycel as ms
    >>> ms.nn.ChannelShuffle(2)(ms.ops.arange(4).reshape((1, 4, 1, 1))).flatten().tolist()
    [0, 2, 1, 3]
    """

    def __init__(self, groups: Any) -> None:
        super().__init__()
        self.groups = arguments.integer("ChannelShuffle", "groups", groups, 1)

    def construct(self, x: Tensor) -> Tensor:
        """Return the shuffled channels."""
        return ops.channel_shuffle(x, self.groups)


class CentralCrop(Cell):
    """The middle of images (C, H, W) or (N, C, H, W): `central_fraction`, in (0, 1], of the height
    and of the width.

    floor(d (1 - fraction) / 2) elements are removed at each end. Raises TypeError for a fraction
    that is not a float.

    >>> import mycel as ms
    >>> ms.nn.CentralCrop(0.5)(ms.ops.ones((4, 3, 4, 6))).shape
    (4, 3, 2, 4)
    """

    def __init__(self, central_fraction: float) -> None:
        super().__init__()
        arguments.instance("CentralCrop", "central_fraction", central_fraction, float)
        if not 0 < central_fraction <= 1:
            raise ValueError(f"CentralCrop: central_fraction must be in (0, 1], not {central_fraction}")
        self.central_fraction = central_fraction

    def construct(self, image: Tensor) -> Tensor:
        """Return the middle of each image."""
        image = input_of(self, image)
        if image.ndim not in (3, 4):
            raise ValueError(f"CentralCrop: the image must be (C, H, W) or (N, C, H, W), not {image._type}")
        cut = [int((int(d) - int(d) * self.central_fraction) / 2) for d in image.shape[-2:]]
        (top, left), (h, w) = cut, image.shape[-2:]
        return image[..., top : h - top, left : w - left]


class ImageGradients(Plain):
    """The differences to the next row and to the next column of images (N, C, H, W), 0 in the last
    row and column.

    >>> import mycel as ms
    >>> [t.flatten().tolist() for t in ms.nn.ImageGradients()(ms.Tensor([[[[1, 2], [3, 5]]]]))]
    [[2, 3, 0, 0], [1, 0, 2, 0]]
    """

    def construct(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Return the differences to the next row and to the next column."""
        return image_gradients(images)


def _images(owner: str, img1: Tensor, img2: Tensor, max_val: float) -> tuple[Tensor, Tensor]:
    if img1.dtype is not img2.dtype:
        raise TypeError(f"{owner}: the images must be of one type, not {img1._type} and {img2._type}")
    if img1.ndim != 4 or img1.shape != img2.shape:
        raise ValueError(f"{owner}: the images must be (N, C, H, W) of one shape, not {img1._type} and {img2._type}")
    kind = img1.dtype if img1.dtype is D.float64 else D.float32
    a, b = cast(img1, kind), cast(img2, kind)
    return (a / max_val, b / max_val) if max_val > 1 else (a, b)


class PSNR(Cell):
    """The peak signal-to-noise ratio ``10 log10(max_val ** 2 / mean((a - b) ** 2))`` of pairs of
    images, in decibels.

    >>> import mycel as ms
    >>> a = ms.ops.ones((1, 1, 2, 2))
    >>> round(float(ms.nn.PSNR()(a, a * 0.9)[0]), 3)
    20.0
    """

    def __init__(self, max_val: float = 1.0) -> None:
        super().__init__()
        self.max_val = arguments.number("PSNR", "max_val", max_val, above=0)

    def construct(self, img1: Tensor, img2: Tensor) -> Tensor:
        """Return one ratio for each pair."""
        a, b = _images("PSNR", img1, img2, self.max_val)
        error = ops.mean(ops.square(a - b), (1, 2, 3))
        return 10 * ops.log10(min(self.max_val, 1.0) ** 2 / error)


class _Similarity(Cell):
    """Base of similarities of images, with the constants of the module docstring.

    `max_val` is the largest value of images, `filter_size` and `filter_sigma` the size and
    deviation of the Gaussian windows, and `k1` and `k2` give c1 and c2.
    """

    def __init__(self, max_val: Any, filter_size: Any, filter_sigma: Any, k1: Any, k2: Any) -> None:
        super().__init__()
        owner = type(self).__name__
        self.max_val = arguments.number(owner, "max_val", max_val, above=0)
        self.filter_size = arguments.integer(owner, "filter_size", filter_size, 1)
        self.filter_sigma = arguments.real(owner, "filter_sigma", filter_sigma, above=0)
        k1, k2 = arguments.real(owner, "k1", k1, above=0), arguments.real(owner, "k2", k2, above=0)
        if max(k1, k2) > 1e150:
            raise ValueError(f"{owner}: k1 and k2 are squared, which {max(k1, k2)} is too large for")
        largest = min(self.max_val, 1.0)
        self.c1, self.c2 = (k1 * largest) ** 2, (k2 * largest) ** 2
        bell = np.exp(-((numbers(filter_size) - (filter_size - 1) / 2) ** 2) / (2 * self.filter_sigma**2))
        self._weights = tuple((bell / bell.sum()).tolist())

    def _smooth(self, x: Tensor) -> Tensor:
        """Return the weighted mean of each window."""
        n, c, h, w = x.shape
        size = self.filter_size
        if h < size or w < size:
            raise ValueError(f"{type(self).__name__}: images of {(h, w)} are smaller than filter_size {size}")
        line = Tensor(np.asarray(self._weights), x.dtype)
        flat = ops.conv2d(ops.reshape(x, (n * c, 1, h, w)), ops.reshape(line, (1, 1, size, 1)))
        flat = ops.conv2d(flat, ops.reshape(line, (1, 1, 1, size)))
        return ops.reshape(flat, (n, c, h - size + 1, w - size + 1))

    def _parts(self, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        """Return the means of l * s and of s over the windows of each channel."""
        m1, m2 = self._smooth(a), self._smooth(b)
        both, squares = m1 * m2, m1 * m1 + m2 * m2
        structure = (2 * (self._smooth(a * b) - both) + self.c2) / (self._smooth(a * a + b * b) - squares + self.c2)
        whole = structure * (2 * both + self.c1) / (squares + self.c1)
        return ops.mean(whole, (2, 3)), ops.mean(structure, (2, 3))


class SSIM(_Similarity):
    """The structural similarity of pairs of images over Gaussian windows of `filter_size` and
    deviation `filter_sigma` (Wang et al., 2004).

    Args:
        max_val (float): The largest value of images. Default: 1.0.
        filter_size (int): The size of the windows. Default: 11.
        filter_sigma (float): The standard deviation of the windows. Default: 1.5.
        k1 (float): The constant K1 of the paper. Default: 0.01.
        k2 (float): The constant K2 of the paper. Default: 0.03.

    Raises:
        ValueError: For images that differ in shape or type, or are smaller than a window.

    Examples:
        >>> import mycel as ms
        >>> a = ms.ops.ones((1, 3, 16, 16))
        >>> ms.nn.SSIM()(a, a).tolist()
        [1.0]
    """

    def __init__(
        self, max_val: float = 1.0, filter_size: int = 11, filter_sigma: float = 1.5, k1: float = 0.01, k2: float = 0.03
    ) -> None:
        super().__init__(max_val, filter_size, filter_sigma, k1, k2)

    def construct(self, img1: Tensor, img2: Tensor) -> Tensor:
        """Return one similarity for each pair."""
        return ops.mean(self._parts(*_images("SSIM", img1, img2, self.max_val))[0], -1)


class MSSSIM(_Similarity):
    """The structural similarity of pairs of images at several scales, one for each of
    `power_factors` (Wang et al., 2003).

    Args:
        max_val (float): The largest value of images. Default: 1.0.
        power_factors (tuple[float, ...] | list[float]): The exponents of the scales, one for each.
            Default: (0.0448, 0.2856, 0.3001, 0.2363, 0.1333).
        filter_size (int): The size of the windows. Default: 11.
        filter_sigma (float): The standard deviation of the windows. Default: 1.5.
        k1 (float): The constant K1 of the paper. Default: 0.01.
        k2 (float): The constant K2 of the paper. Default: 0.03.

    Raises:
        ValueError: For images that are smaller than a window at the last scale.

    Examples:
        >>> import mycel as ms
        >>> a = ms.ops.ones((1, 3, 32, 32))
        >>> ms.nn.MSSSIM(power_factors=(0.5, 0.5))(a, a).tolist()
        [1.0]
    """

    def __init__(
        self,
        max_val: float = 1.0,
        power_factors: Any = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333),
        filter_size: int = 11,
        filter_sigma: float = 1.5,
        k1: float = 0.01,
        k2: float = 0.03,
    ) -> None:
        super().__init__(max_val, filter_size, filter_sigma, k1, k2)
        if not isinstance(power_factors, (tuple, list)) or not power_factors:
            raise TypeError(f"MSSSIM: power_factors must be a tuple or list of numbers, not {power_factors!r}")
        self.power_factors = tuple(arguments.number("MSSSIM", "each of power_factors", p) for p in power_factors)

    def construct(self, img1: Tensor, img2: Tensor) -> Tensor:
        """Return one similarity for each pair."""
        a, b = _images("MSSSIM", img1, img2, self.max_val)
        result: Any = 1.0
        for scale, power in enumerate(self.power_factors):
            whole, structure = self._parts(a, b)
            last = scale == len(self.power_factors) - 1
            result = result * ops.relu(whole if last else structure) ** power
            if not last:
                a, b = ops.avg_pool2d(a, 2, 2), ops.avg_pool2d(b, 2, 2)
        return ops.mean(result, -1)
