"""Transforms that give several images, and transforms made of other transforms."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Sized
from enum import Enum, IntEnum
from typing import Any

import numpy as np

from mycel._src.compiler.prims.linear_algebra.lapack import alone
from mycel._src.foundation import arguments
from mycel.dataset.pipeline_errors import InputValueError
from mycel.dataset.random_numbers.beta_distribution import betas
from mycel.dataset.random_numbers.random_streams import current_stream
from mycel.dataset.rows.column_blocks import Array, as_array
from mycel.dataset.transforms.base import Transform, check_operations, check_probability, numpy_type
from mycel.dataset.vision.base import ImageTransform, by_routine, dtypes_of, is_read, name_of, parse_fill, parse_size
from mycel.dataset.vision.color import Decode, Normalize, check_factor, looked_up, to_uint8
from mycel.dataset.vision.enums import Inter
from mycel.dataset.vision.geometry import RandomResizedCrop, crop
from mycel.dataset.vision.kernels import color_values, float_images
from mycel.dataset.vision.lazy_regions import cut, is_cut, mirror, mirrors
from mycel.dataset.vision.mixup import mixed
from mycel.dataset.vision.resize import Resize

# The types of images that routines light.
_LIT = dtypes_of("uint8", "uint16", "int16", "float32", "float64")


class FiveCrop(ImageTransform):
    """Five crops of `size`: the corners and the middle.

    The order is upper left and right, lower left and right, middle.
    """

    in_python = True
    keeps = True
    vectorised = False

    def __init__(self, size: int | Sequence[int]) -> None:
        self.size = parse_size(type(self).__name__, size)

    def compute(self, array: Array, lead: int) -> tuple[Array, ...]:
        height, width = self.size
        if is_cut(array):
            return tuple([cut(array, top, left, height, width) for top, left in self.places(array, lead)])
        return tuple([crop(array, top, left, height, width, 0) for top, left in self.places(array, lead)])

    def places(self, array: Array, lead: int) -> list[tuple[int, int]]:
        """Return the (top, left) of each crop; raise ValueError where they do not fit."""
        self.check_image(array, lead)
        height, width = self.size
        bottom, right = array.shape[0] - height, array.shape[1] - width
        if min(bottom, right) < 0:
            raise ValueError(
                f"{type(self).__name__}: size {self.size} is larger than the image, of shape {array.shape}"
            )
        return [(0, 0), (0, right), (bottom, 0), (bottom, right), (bottom // 2, right // 2)]


class TenCrop(FiveCrop):
    """The crops of `FiveCrop`, and those of the horizontally flipped image.

    With `use_vertical_flip` the flip is vertical.
    """

    def __init__(self, size: int | Sequence[int], use_vertical_flip: bool = False) -> None:
        super().__init__(size)
        arguments.flag("TenCrop", "use_vertical_flip", use_vertical_flip)
        self.use_vertical_flip = use_vertical_flip

    def compute(self, array: Array, lead: int) -> tuple[Array, ...]:
        first = super().compute(array, lead)
        height, width = self.size
        if self.use_vertical_flip and is_cut(array):
            # Where the parts of the flipped image lie in the image.
            found = [(array.shape[0] - height - top, left) for top, left in self.places(array, lead)]
            return (*first, *[cut(array, top, left, height, width, upwards=True) for top, left in found])
        if self.use_vertical_flip or not mirrors(array):
            return (*first, *super().compute(np.flip(array, 0 if self.use_vertical_flip else 1), lead))
        source = np.ascontiguousarray(array)
        flipped = [np.empty(part.shape, part.dtype) for part in first]
        for result, (top, left) in zip(flipped, self.places(array, lead)):
            mirror(source, result, top, array.shape[1] - width - left)
        return (*first, *flipped)


class LinearTransformation(ImageTransform):
    """A product of a matrix and an image as a vector of D values (whitening).

    `mean_vector`, [D], is subtracted before the image is multiplied by `transformation_matrix`, [D,
    D].
    """

    in_python = True
    vectorised = False

    def __init__(self, transformation_matrix: Any, mean_vector: Any) -> None:
        self.transformation_matrix = as_array(transformation_matrix)
        self.mean_vector = as_array(mean_vector).reshape(-1)
        rows = self.transformation_matrix.shape
        if len(rows) != 2 or rows[0] != rows[1] or rows[0] != self.mean_vector.size:
            raise ValueError(
                f"LinearTransformation: a matrix of shape {rows} does not fit a vector of {self.mean_vector.size}"
            )

    def compute(self, array: Array, lead: int) -> Array:
        if array.size != self.mean_vector.size:
            raise ValueError(
                f"LinearTransformation: the image has {array.size} values, but the matrix is "
                f"{self.transformation_matrix.shape}"
            )
        # Threads of BLAS would take ten times the processor time, and more time beside others.
        with alone():
            moved = np.dot(array.reshape(-1) - self.mean_vector, self.transformation_matrix)
        result: Array = moved.reshape(array.shape)
        return result


class NormalizePad(Normalize):
    """`Normalize`, followed by a further channel of zeros.

    Args:
        mean (Sequence[float]): The mean of each channel.
        std (Sequence[float]): The standard deviation of each channel.
        dtype (str): The type of the result, "float32" or "float16". Default: "float32".
        is_hwc (bool): Whether images are [H, W, C] instead of [C, H, W]. Default: True.
    """

    def __init__(
        self, mean: Sequence[float], std: Sequence[float], dtype: str = "float32", is_hwc: bool = True
    ) -> None:
        super().__init__(mean, std, is_hwc)
        arguments.choice("NormalizePad", "dtype", dtype, ("float32", "float16"))
        self.dtype = numpy_type("NormalizePad", dtype)

    def compute(self, array: Array, lead: int) -> Array:
        if (self.is_hwc or array.ndim == 2) and not lead and by_routine(array, (array.dtype,)) and is_read(array):
            channels = self._channels(array, 0)
            padded = np.empty((*array.shape[:2], channels + 1), np.float32)
            source = np.ascontiguousarray(array)
            color_values.normalise(source, array.size // channels, channels, *self._numbers(channels), 1, padded)
            return padded.astype(self.dtype, copy=False)
        normalised = super().compute(array, lead)
        if array.ndim - lead == 2:
            normalised = normalised[..., None]
        axis = normalised.ndim - 1 if self.is_hwc or array.ndim - lead == 2 else lead
        widths = [(0, int(a == axis)) for a in range(normalised.ndim)]
        return np.pad(normalised, widths).astype(self.dtype)


class RandomLighting(ImageTransform):
    """Random lighting of an image of three channels (Krizhevsky, Sutskever and Hinton, 2012).

    It adds a random amount, of deviation `alpha`, of each direction in which ImageNet's colours
    vary.
    """

    vectorised = False
    random = True
    _VECTORS = np.array([[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]])
    _VALUES = np.array([55.46, 4.794, 1.148])
    _SCALES = _VALUES.tolist()

    def __init__(self, alpha: float = 0.05) -> None:
        self.alpha = check_factor("RandomLighting", alpha)

    def compute(self, array: Array, lead: int) -> Array:
        self.check_image(array, lead, (3,))
        if array.shape[2] != 3:
            raise ValueError(f"RandomLighting: the image must have three channels, not shape {array.shape}")
        added = self.draw()
        if not lead and by_routine(array, _LIT):
            made: Array = np.empty(array.shape, array.dtype)
            source, repeated = np.ascontiguousarray(array), np.empty(3 * 64)
            float_images.add(source, name_of(array), array.size, *added, repeated, made)
            return made
        amounts = np.array(added)
        if array.dtype == np.uint8:
            return looked_up(array, to_uint8(np.arange(256, dtype=np.uint8) + amounts[:, None]))
        lit: Array = array + amounts
        return lit.astype(array.dtype)

    def draw(self) -> list[float]:
        """Draw what is added to each channel of one image."""
        stream = current_stream()
        drawn = [stream.normal() * self.alpha * value for value in self._SCALES]
        added: list[float] = (self._VECTORS @ np.array(drawn)).tolist()
        return added


class RandomResize(Resize):
    """`Resize` with a random interpolation."""

    keeps = False
    vectorised = False
    random = True

    def __init__(self, size: int | list[int] | tuple[int, int]) -> None:
        super().__init__(size)

    def compute(self, array: Array, lead: int) -> Array:
        kind = current_stream().choice((Inter.NEAREST, Inter.BILINEAR, Inter.BICUBIC, Inter.AREA))
        resize: Resize = self.made_for(kind, lambda: Resize(self.size, kind))
        resized: Array = resize.compute(array, lead) if lead else resize.again(resize.compute, array)
        return resized


class RandomCropDecodeResize(RandomResizedCrop):
    """`Decode`, followed by `RandomResizedCrop`, whose parameters these are; needs Pillow.

    Args:
        size (int | Sequence[int]): The size of the result.
        scale (Sequence[float]): The range of the part's fraction of the area. Default: (0.08, 1.0).
        ratio (Sequence[float]): The range of its aspect ratio. Default: (0.75, 1.3333333333333333).
        interpolation (Inter): The interpolation.
        max_attempts (int): After this many rectangles that do not fit, the part is the largest one
            in the middle whose aspect ratio is within `ratio`. Default: 10.
    """

    def compute(self, array: Array, lead: int) -> Array:
        return super().compute(Decode().compute(array, 0), 0)


class SliceMode(IntEnum):
    """The treatment of an image that `SlicePatches` cannot divide evenly: pad or drop."""

    PAD = 0
    DROP = 1


class SlicePatches(ImageTransform):
    """Equal images cut out of one, row by row.

    Args:
        num_height (int): How many lie below each other. Default: 1.
        num_width (int): How many lie side by side. Default: 1.
        slice_mode (SliceMode): Whether an image that cannot be divided evenly is padded or its rest
            dropped.
        fill_value (int): The value of the padding. Default: 0.
    """

    keeps = True
    vectorised = False

    def __init__(
        self, num_height: int = 1, num_width: int = 1, slice_mode: SliceMode = SliceMode.PAD, fill_value: int = 0
    ) -> None:
        for argument, value in (("num_height", num_height), ("num_width", num_width)):
            arguments.integer("SlicePatches", argument, value, 1)
        arguments.instance("SlicePatches", "slice_mode", slice_mode, SliceMode)
        self.num_height, self.num_width, self.slice_mode = num_height, num_width, slice_mode
        self.fill_value = parse_fill("SlicePatches", fill_value)

    def compute(self, array: Array, lead: int) -> Array | tuple[Array, ...]:
        self.check_image(array, lead)
        counts = (self.num_height, self.num_width)
        if self.slice_mode is SliceMode.PAD:
            widths = [(0, -length % count) for length, count in zip(array.shape, counts)] + [(0, 0)] * (array.ndim - 2)
            if widths[0][1] or widths[1][1]:
                array = np.pad(array, widths, constant_values=self.fill_value)
        height, width = (length // count for length, count in zip(array.shape, counts))
        if not height or not width:
            raise ValueError(f"SlicePatches: an image of shape {array.shape} cannot be cut into {counts} images")
        places = [(row * height, column * width) for row in range(counts[0]) for column in range(counts[1])]
        if is_cut(array):
            parts = tuple([cut(array, top, left, height, width) for top, left in places])
        else:
            parts = tuple([crop(array, top, left, height, width, 0) for top, left in places])
        return parts if len(parts) > 1 else parts[0]


class UniformAugment(Transform):
    """A random choice of `num_ops` transforms for every image, in random order.

    Each of them is then applied with probability 1/2.
    """

    random = True

    def __init__(self, transforms: Sequence[Callable[..., Any]], num_ops: int = 2) -> None:
        self.num_ops = arguments.integer("UniformAugment", "num_ops", num_ops, 1)
        if isinstance(transforms, Sized) and len(transforms) < num_ops:
            raise ValueError(f"UniformAugment: num_ops must be at most {len(transforms)}, not {num_ops}")
        self.transforms = check_operations("UniformAugment", transforms)

    def __call__(self, *inputs: Any) -> Any:
        (image,) = inputs
        stream = current_stream()
        for place in stream.permutation(len(self.transforms))[: self.num_ops]:
            if stream.uniform() < 0.5:
                image = self.transforms[place](image)
        return image


class RandomSelectSubpolicy(Transform):
    """A random choice of one of the lists in `policy` for every image.

    Each (transform, probability) of the list is applied with this probability.
    """

    random = True

    def __init__(self, policy: Sequence[Sequence[tuple[Callable[..., Any], float]]]) -> None:
        if (
            not isinstance(policy, (list, tuple))
            or not policy
            or not all(isinstance(part, (list, tuple)) and part for part in policy)
        ):
            raise TypeError(
                f"RandomSelectSubpolicy: policy must be a list of lists, none of them empty, not {policy!r}"
            )
        for part in policy:
            for entry in part:
                if not isinstance(entry, tuple) or len(entry) != 2 or not callable(entry[0]):
                    raise TypeError(
                        f"RandomSelectSubpolicy: each entry must be (transform, probability), not {entry!r}"
                    )
                check_probability("RandomSelectSubpolicy", entry[1])
        self.policy = [list(part) for part in policy]

    def __call__(self, *inputs: Any) -> Any:
        (image,) = map(as_array, inputs)
        stream = current_stream()
        for transform, probability in stream.choice(self.policy):
            if stream.uniform() < probability:
                image = transform(image)
        return image


class ImageBatchFormat(Enum):
    """The place of the channels in a batch of images: last or first."""

    NHWC = 0
    NCHW = 1


def _batches(operation: str, inputs: Sequence[Any]) -> list[Array]:
    found = [arguments.instance(operation, "each input", value, np.ndarray) for value in inputs]
    if len(found) != 2:
        raise InputValueError(f"{operation}: the input must be images and labels, not {len(found)} columns")
    return found


def _check_labels(operation: str, images: Array, labels: Array) -> None:
    if images.ndim != 4:
        raise InputValueError(
            f"{operation}: the images must be a batch of four axes, not of shape {images.shape}; use it after batch"
        )
    if labels.ndim not in (2, 3) or labels.dtype.kind not in "iuf" or len(labels) != len(images):
        raise InputValueError(
            f"{operation}: labels must be one-hot [N, classes] for {len(images)} images, not {labels.dtype} "
            f"{labels.shape}"
        )


class MixUpBatch(Transform):
    """Images and one-hot labels mixed with others of the batch (Zhang et al., 2018).

    Every pair is mixed by a share drawn from the distribution Beta(alpha, alpha). Takes two
    columns, images of four axes and labels [N, classes], and returns both, images in their type,
    labels as float32.
    """

    random = True

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = check_factor("MixUpBatch", alpha)
        if not self.alpha:
            raise ValueError("MixUpBatch: alpha must be positive, not 0")

    def __call__(self, *inputs: Any) -> Any:
        images, labels = _batches("MixUpBatch", inputs)
        _check_labels("MixUpBatch", images, labels)
        stream = current_stream()
        (share,) = betas([stream.bits()], self.alpha)
        others = np.array(stream.permutation(len(images)), np.int64)
        shares, marks = np.full(len(images), share), labels.astype(np.float32)
        return mixed(images, others, shares, images.dtype), mixed(marks, others, shares, marks.dtype)


class CutMixBatch(Transform):
    """Images with a rectangle of another image of the batch (Yun et al., 2019).

    A random rectangle of every image is replaced with probability `prob`, and the labels are mixed
    by its area, whose share follows Beta(alpha, alpha). Takes two columns, images of four axes and
    labels [N, classes], and returns both, labels as float32.
    """

    random = True

    def __init__(self, image_batch_format: ImageBatchFormat, alpha: float = 1.0, prob: float = 1.0) -> None:
        arguments.instance("CutMixBatch", "image_batch_format", image_batch_format, ImageBatchFormat)
        self.image_batch_format = image_batch_format
        self.alpha = check_factor("CutMixBatch", alpha)
        if not self.alpha:
            raise ValueError("CutMixBatch: alpha must be positive, not 0")
        self.prob = check_probability("CutMixBatch", prob)

    def __call__(self, *inputs: Any) -> Any:
        images, labels = _batches("CutMixBatch", inputs)
        _check_labels("CutMixBatch", images, labels)
        stream = current_stream()
        others = stream.permutation(len(images))
        result, marks = images.copy(), labels.astype(np.float32)
        last = self.image_batch_format is ImageBatchFormat.NHWC
        height, width = images.shape[1:3] if last else images.shape[2:4]
        cut, seeds, middles = [], [], []
        for number in range(len(images)):
            if stream.uniform() < self.prob:
                cut.append(number)
                seeds.append(stream.bits())
                middles.append((stream.integer(0, height - 1), stream.integer(0, width - 1)))
        areas = []
        for number, found, (down, across) in zip(cut, betas(seeds, self.alpha), middles):
            side = (1 - found) ** 0.5
            rows, columns = _span(down, height, side), _span(across, width, side)
            place = (rows, columns) if last else (slice(None), rows, columns)
            result[number][place] = images[others[number]][place]
            areas.append((rows.stop - rows.start) * (columns.stop - columns.start) / (height * width))
        if areas:
            share = np.array(areas).reshape(-1, *[1] * (marks.ndim - 1))
            whole = (1 - share).astype(np.float32) * marks[cut]
            marks[cut] = whole + share.astype(np.float32) * marks[[others[number] for number in cut]]
        return result, marks


def _span(middle: int, length: int, share: float) -> slice:
    """Return a range of this share of a length around a place, cut at the ends."""
    half = int(length * share) // 2
    return slice(max(0, middle - half), min(length, middle + half))
