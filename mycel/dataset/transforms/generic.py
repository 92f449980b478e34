"""Transforms for arrays of any meaning: types, one-hot vectors, padding, slicing, random choice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any

import numpy as np

from mycel._src.foundation import arguments
from mycel.dataset.pipeline_errors import InputIndexError, InputTypeError, InputValueError
from mycel.dataset.random_numbers.random_streams import current_stream
from mycel.dataset.rows.column_blocks import Array
from mycel.dataset.rows.padded_stacking import pad_stack
from mycel.dataset.transforms.base import Transform, check_operations, check_probability, numpy_type, run_in_turn


class TypeCast(Transform):
    """Conversion to a type, as by NumPy's `astype`.

    >>> import numpy as np
    >>> from mycel.dataset import transforms
    >>> transforms.TypeCast(np.int32)(np.array([1.7, -1.2])).tolist()
    [1, -1]
    """

    vectorised = True

    def __init__(self, data_type: Any) -> None:
        self.data_type = numpy_type("TypeCast", data_type)

    def compute(self, array: Array, lead: int) -> Array:
        try:
            return array.astype(self.data_type)
        except OverflowError as error:
            raise ValueError(f"TypeCast: a number is too large for {self.data_type}") from error


class OneHot(Transform):
    """One-hot vectors of class numbers, smoothed as by Szegedy et al. (2016).

    With smoothing they are (1 - s) * onehot + s / num_classes. The input is an integer or a list of
    them. Results keep its type, or are float64 with smoothing; negative numbers give zeros. Raises
    ValueError for a number that is not below `num_classes`.

    >>> import numpy as np
    >>> from mycel.dataset import transforms
    >>> transforms.OneHot(3)(np.array(2)).tolist()
    [0, 0, 1]
    """

    vectorised = True

    def __init__(self, num_classes: int, smoothing_rate: float = 0.0) -> None:
        arguments.integer("OneHot", "num_classes", num_classes, numpy=False)
        if num_classes < 1:
            raise ValueError(f"OneHot: num_classes must be positive, not {num_classes}")
        arguments.number("OneHot", "smoothing_rate", smoothing_rate, 0, at_most=1)
        self.num_classes = num_classes
        self.smoothing_rate = smoothing_rate

    def compute(self, array: Array, lead: int) -> Array:
        if array.dtype.kind not in "iu":
            raise TypeError(f"OneHot: class numbers must be integers, not {array.dtype}; use TypeCast first")
        if array.ndim - lead == 1 and array.shape[-1] == 1:
            array = array[..., 0]
        if array.ndim - lead > 1:
            raise ValueError(
                f"OneHot: the input must be a class number or a list of them, not of shape {array.shape[lead:]}"
            )
        if array.size and int(array.max()) >= self.num_classes:
            raise ValueError(f"OneHot: class {int(array.max())} is not below num_classes, {self.num_classes}")
        hot = array[..., None] == np.arange(self.num_classes)
        result: Array = hot.astype(array.dtype)
        if self.smoothing_rate:
            result = hot * (1.0 - self.smoothing_rate) + self.smoothing_rate / self.num_classes
        return result


class Fill(Transform):
    """Replacement of every element by one value, converted to the type of the array.

    >>> import numpy as np
    >>> from mycel.dataset import transforms
    >>> transforms.Fill(3)(np.array([1.0, 2.0])).tolist()
    [3.0, 3.0]
    """

    vectorised = True

    def __init__(self, fill_value: Any) -> None:
        arguments.instance("Fill", "fill_value", fill_value, (str, bytes, int, float, bool), "a number, text or bytes")
        self.fill_value = fill_value

    def compute(self, array: Array, lead: int) -> Array:
        value = np.asarray(self.fill_value)
        if (value.dtype.kind in "US") != (array.dtype.kind in "US"):
            raise TypeError(f"Fill: {self.fill_value!r} does not fit into an array of type {array.dtype}")
        try:
            value = value if value.dtype.kind in "US" else value.astype(array.dtype)
        except OverflowError:
            raise ValueError(
                f"Fill: {self.fill_value!r:.80} does not fit into an array of type {array.dtype}"
            ) from None
        return np.full(array.shape, value)


class Relational(IntEnum):
    """The comparisons of `Mask`."""

    EQ = 0
    NE = 1
    GT = 2
    GE = 3
    LT = 4
    LE = 5


_COMPARE: dict[Relational, Callable[[Any, Any], Any]] = {
    Relational.EQ: np.equal,
    Relational.NE: np.not_equal,
    Relational.GT: np.greater,
    Relational.GE: np.greater_equal,
    Relational.LT: np.less,
    Relational.LE: np.less_equal,
}


class Mask(Transform):
    """The comparison of each element with a constant, as `dtype` (default: bool).

    >>> import numpy as np
    >>> from mycel.dataset.transforms import Mask, Relational
    >>> Mask(Relational.GE, 2)(np.array([1, 2, 3])).tolist()
    [False, True, True]
    """

    vectorised = True

    def __init__(self, operator: Relational, constant: Any, dtype: Any = np.bool_) -> None:
        arguments.instance("Mask", "operator", operator, Relational)
        arguments.instance("Mask", "constant", constant, (str, int, float, bool), "a number or text")
        self.operator = operator
        self.constant = constant
        self.dtype = numpy_type("Mask", dtype)

    def compute(self, array: Array, lead: int) -> Array:
        if isinstance(self.constant, str) != (array.dtype.kind == "U"):
            raise TypeError(f"Mask: {self.constant!r} cannot be compared to an array of type {array.dtype}")
        result: Array = _COMPARE[self.operator](array, self.constant)
        return result.astype(self.dtype)


class PadEnd(Transform):
    """Padding or cutting at the end of each axis, to `pad_shape`; None keeps an axis.

    `pad_value` is 0 or empty text by default.

    >>> import numpy as np
    >>> from mycel.dataset import transforms
    >>> transforms.PadEnd([4], 9)(np.array([1, 2])).tolist()
    [1, 2, 9, 9]
    """

    def __init__(self, pad_shape: Sequence[int | None], pad_value: Any = None) -> None:
        for length in arguments.instance("PadEnd", "pad_shape", pad_shape, list):
            if length is not None:
                arguments.integer("PadEnd", "each of pad_shape", length, 1)
        arguments.optional("PadEnd", "pad_value", pad_value, (str, bytes, int, float), "a number or text")
        self.pad_shape = list(pad_shape)
        self.pad_value = pad_value

    def compute(self, array: Array, lead: int) -> Array:
        if not array.ndim:
            # As in MindSpore, a single value has no end.
            return array
        shape = [n if n is not None else m for n, m in zip(self.pad_shape, array.shape)]
        if len(self.pad_shape) != array.ndim:
            raise ValueError(
                f"PadEnd: pad_shape {self.pad_shape} has {len(self.pad_shape)} axes, the array {array.ndim}"
            )
        result: Array = pad_stack([array], shape, self.pad_value, "PadEnd")[0]
        return result


class Slice(Transform):
    """A part of each leading axis.

    It is given by an index (which keeps the axis), a list of indices, a slice, None for everything,
    or an Ellipsis. Raises IndexError for an index out of range.

    >>> import numpy as np
    >>> from mycel.dataset import transforms
    >>> transforms.Slice(slice(1, 3))(np.array([5, 6, 7, 8])).tolist()
    [6, 7]
    """

    def __init__(self, *slices: Any) -> None:
        for part in slices:
            valid = part is None or part is Ellipsis or isinstance(part, (bool, int, slice))
            if not valid and not (isinstance(part, list) and part and all(isinstance(i, int) for i in part)):
                raise TypeError(f"Slice: each part must be an index, a list, a slice, None or Ellipsis, not {part!r}")
        if sum(part is Ellipsis for part in slices) > 1:
            raise ValueError("Slice: an Ellipsis can stand once only")
        self.slices = slices

    def compute(self, array: Array, lead: int) -> Array:
        parts = list(self.slices)
        if any(part is Ellipsis for part in parts):
            place = next(i for i, part in enumerate(parts) if part is Ellipsis)
            parts[place : place + 1] = [None] * (array.ndim - len(parts) + 1)
        if len(parts) > array.ndim:
            raise ValueError(f"Slice: {len(parts)} slices for an array of {array.ndim} axes")
        for axis, part in enumerate(parts):
            if part is None or part is True:
                continue
            if isinstance(part, slice):
                array = array[(slice(None),) * axis + (part,)]
                continue
            indices = [part] if isinstance(part, int) else part
            length = array.shape[axis]
            for index in indices:
                if not -length <= index < length:
                    raise InputIndexError(f"Slice: index {index} is out of range for axis {axis} of length {length}")
            array = np.take(array, indices, axis)
        return np.ascontiguousarray(array) if array.ndim else array


class Unique(Transform):
    """The distinct elements of the flattened array in order of appearance.

    With them come each element's position among them, and their counts.

    >>> import numpy as np
    >>> from mycel.dataset import transforms
    >>> [a.tolist() for a in transforms.Unique()(np.array([3, 1, 3]))]
    [[3, 1], [0, 1, 0], [2, 1]]
    """

    def compute(self, array: Array, lead: int) -> tuple[Array, Array, Array]:
        values, first, inverse, counts = np.unique(
            array.ravel(), return_index=True, return_inverse=True, return_counts=True
        )
        order = np.argsort(first, kind="stable")
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        return values[order], rank[inverse.ravel()].astype(np.int32), counts[order].astype(np.int32)


class Duplicate(Transform):
    """The array twice: one column becomes two.

    >>> import numpy as np
    >>> from mycel.dataset import transforms
    >>> [a.tolist() for a in transforms.Duplicate()(np.array([1, 2]))]
    [[1, 2], [1, 2]]
    """

    def compute(self, array: Array, lead: int) -> tuple[Array, Array]:
        return array, array.copy()


class Concatenate(Transform):
    """The concatenation of columns of one axis, with `prepend` before and `append` after them.

    >>> import numpy as np
    >>> from mycel.dataset import transforms
    >>> transforms.Concatenate(append=np.array([9]))(np.array([1, 2]), np.array([3])).tolist()
    [1, 2, 3, 9]
    """

    def __init__(self, axis: int = 0, prepend: Any = None, append: Any = None) -> None:
        if axis is not None and arguments.integer("Concatenate", "axis", axis) not in (0, -1):
            raise ValueError(f"Concatenate: axis must be 0 or -1, as arrays have one axis, not {axis}")
        self.axis = axis
        for argument, part in (("prepend", prepend), ("append", append)):
            if arguments.optional("Concatenate", argument, part, np.ndarray) is not None and part.ndim != 1:
                raise ValueError(f"Concatenate: {argument} must have one axis, not shape {part.shape}")
        self.prepend, self.append = prepend, append

    def __call__(self, *inputs: Any) -> Array:
        parts = [self.convert(value) for value in inputs]
        if self.prepend is not None:
            parts.insert(0, self.prepend)
        if self.append is not None:
            parts.append(self.append)
        for part in parts:
            if part.ndim != 1:
                raise InputValueError(f"Concatenate: arrays must have one axis, not shape {part.shape}")
            if part.dtype != parts[0].dtype and not (part.dtype.kind == parts[0].dtype.kind == "U"):
                raise InputTypeError(
                    f"Concatenate: types differ: {parts[0].dtype} and {part.dtype}; use TypeCast first"
                )
        return np.concatenate(parts)


class RandomApply(Transform):
    """A sequence of transforms that is applied with probability `prob`.

    >>> from mycel.dataset import transforms
    >>> transforms.RandomApply([lambda x: x + 1, lambda x: x * 2], prob=1.0)(3)
    8
    """

    random = True

    def __init__(self, transforms: Sequence[Callable[..., Any]], prob: float = 0.5) -> None:
        self.transforms = check_operations("RandomApply", transforms)
        self.prob = check_probability("RandomApply", prob)

    def __call__(self, *inputs: Any) -> Any:
        if current_stream().uniform() < self.prob:
            inputs = run_in_turn(self.transforms, inputs)
        return inputs if len(inputs) > 1 else inputs[0]


class RandomChoice(Transform):
    """One of the transforms, each equally likely.

    >>> from mycel.dataset import transforms
    >>> transforms.RandomChoice([lambda x: x + 1, lambda x: x + 2])(0) in (1, 2)
    True
    """

    random = True

    def __init__(self, transforms: Sequence[Callable[..., Any]]) -> None:
        self.transforms = check_operations("RandomChoice", transforms)

    def __call__(self, *inputs: Any) -> Any:
        return current_stream().choice(self.transforms)(*inputs)


class RandomOrder(Transform):
    """All the transforms in a random order.

    >>> from mycel.dataset import transforms
    >>> transforms.RandomOrder([lambda x: x + 1, lambda x: x * 2])(1) in (3, 4)
    True
    """

    random = True

    def __init__(self, transforms: Sequence[Callable[..., Any]]) -> None:
        self.transforms = check_operations("RandomOrder", transforms)

    def __call__(self, *inputs: Any) -> Any:
        order = current_stream().permutation(len(self.transforms))
        results = run_in_turn([self.transforms[i] for i in order], inputs)
        return results if len(results) > 1 else results[0]
