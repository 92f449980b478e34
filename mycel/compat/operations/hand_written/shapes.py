"""Views, parts, scattering and other rearrangements with the parameters of MindSpore's kernels."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

from mycel import mint, ops
from mycel._src.foundation.dtype import DType
from mycel._src.tensors.core.tensor import Tensor
from mycel.mint.nn import functional
from mycel.ops._operands import shape_of

__all__ = [
    "as_strided",
    "col2im_grad",
    "bool_not",
    "constant_pad_nd",
    "einsum_ext",
    "empty",
    "empty_like",
    "get_data",
    "inner_index",
    "inner_unique",
    "inplace_to_device",
    "new_empty",
    "new_ones",
    "new_zeros",
    "non_zero_ext",
    "reflection_pad1d",
    "reflection_pad2d",
    "reflection_pad3d",
    "repeat",
    "replication_pad1d",
    "replication_pad2d",
    "replication_pad3d",
    "scatter",
    "scatter_value",
    "sequence_concat",
    "set_data",
    "slice_ext",
    "split_tensor",
    "split_with_size",
    "tensor_copy_slices",
    "tensor_scatter_elements",
    "to_device",
    "to_dtype",
    "to_other",
    "transpose_batch_matmul_transpose",
    "tuple_to_tensor",
    "unique2",
    "unique_dim",
    "view",
    "view_dtype",
]


def as_strided(input: Any, size: Any, stride: Any, storage_offset: int = 0) -> Tensor:
    """Return the elements that steps of `stride` along axes of `size` reach in the flat `input`.

    They begin at `storage_offset`; the result is a copy.
    """
    places: Any = storage_offset
    rank = builtins.len(size)
    for axis, (length, step) in enumerate(zip(size, stride)):
        line = ops.arange(0, length) * step
        places = places + line.reshape((-1, *[1] * (rank - axis - 1)))
    return ops.gather(ops.flatten(input, start_dim=0), ops.broadcast_to(places, tuple(size)), 0)


def slice_ext(input: Any, dim: int, start: Any, end: Any, step: Any) -> Tensor:
    """Return the elements of `input` from `start` to `end` by `step` along `dim`, as a view."""
    whole = [builtins.slice(None)] * input.ndim
    whole[dim] = builtins.slice(start, end, step)
    return input[tuple(whole)]


def split_tensor(input: Any, split_size: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Return parts of `split_size` along `dim`, the last of which may be smaller."""
    return mint.split(input, split_size, dim)


def split_with_size(input: Any, split_size: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Return parts of these sizes along `dim`."""
    return mint.split(input, split_size, dim)


def repeat(input: Any, repeats: Any) -> Tensor:
    """Return the tensor repeated so often along each axis."""
    return input.repeat(*repeats)


def view(input: Any, shape: Any) -> Tensor:
    """Return a view of another shape."""
    return input.view(*shape_of("View", shape))


def view_dtype(input: Any, dtype: DType) -> Tensor:
    """Return the tensor as it is, for its own type.

    Raises TypeError for another one: bytes do not change their meaning.
    """
    return input if dtype == input.dtype else input.view(dtype)


def scatter(input: Any, dim: int, index: Any, src: Any, reduce: str = "none") -> Tensor:
    """Return `input` with `src` at the places `index` along `dim`: in place of what is there, or
    with `reduce` "add" or "multiply" combined with it.
    """
    if reduce in ("none", 0, None):
        return mint.scatter(input, dim, index, src)
    source = src if isinstance(src, Tensor) else ops.full(index.shape, src, dtype=input.dtype)
    return ops.tensor_scatter_elements(input, index, source, dim, {"multiply": "mul"}.get(reduce, reduce))


def scatter_value(input: Any, dim: int, index: Any, src: Any, reduce: str = "none") -> Tensor:
    """Return `scatter` of a number, `src`, with its `input`, `dim`, `index` and `reduce`."""
    return scatter(input, dim, index, src, reduce)


def inner_index(input: Any, indices: Sequence[Any]) -> Tensor:
    """Return the elements that tensors of indices name, one for each axis."""
    return input[tuple(indices)]


def constant_pad_nd(input: Any, padding: Any, value: Any = 0.0) -> Tensor:
    """Return `input` between borders of `value`."""
    return functional.pad(input, tuple(padding), "constant", value)


def _bordered(input: Any, padding: Any, mode: str, axes: int) -> Tensor:
    widths = (padding,) * 2 * axes if isinstance(padding, int) else tuple(padding)
    return functional.pad(input, widths, mode)


def reflection_pad1d(input: Any, padding: Any) -> Tensor:
    """Return lines continued by their reflection."""
    return _bordered(input, padding, "reflect", 1)


def reflection_pad2d(input: Any, padding: Any) -> Tensor:
    """Return images continued by their reflection."""
    return _bordered(input, padding, "reflect", 2)


def reflection_pad3d(input: Any, padding: Any) -> Tensor:
    """Return volumes continued by their reflection."""
    return _bordered(input, padding, "reflect", 3)


def replication_pad1d(input: Any, padding: Any) -> Tensor:
    """Return lines continued by their ends."""
    return _bordered(input, padding, "replicate", 1)


def replication_pad2d(input: Any, padding: Any) -> Tensor:
    """Return images continued by their edges."""
    return _bordered(input, padding, "replicate", 2)


def replication_pad3d(input: Any, padding: Any) -> Tensor:
    """Return volumes continued by their faces."""
    return _bordered(input, padding, "replicate", 3)


def col2im_grad(input: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """Return the cotangent of columns for that of the image that they were added up to: the
    columns of `input` under a window.

    `kernel_size`, `dilation`, `padding` and `stride` are those of the window.
    """
    return functional.unfold(input, kernel_size, dilation, padding, stride)


def einsum_ext(equation: str, operands: Sequence[Any]) -> Tensor:
    """Return the sum of products that `equation` says."""
    return mint.einsum(equation, *operands)


def sequence_concat(x: Sequence[Any], axis: int = 0) -> Tensor:
    """Return the tensors of a sequence, one after the other along an axis."""
    return ops.cat(list(x), axis)


def tuple_to_tensor(input_tuple: Sequence[Any], dtype: Any = None) -> Tensor:
    """Return the numbers of a tuple as a tensor."""
    return Tensor(input_tuple, dtype) if dtype is not None else Tensor(input_tuple)


def tensor_copy_slices(x: Any, value: Any, begin: Any, end: Any, strides: Any) -> Tensor:
    """Return `x` with `value` in the slices from `begin` to `end` by `strides`."""
    copied = x.copy()
    copied[tuple(builtins.slice(a, b, c) for a, b, c in zip(begin, end, strides))] = value
    return copied


def transpose_batch_matmul_transpose(
    input: Any, weight: Any, perm_in: Any, perm_out: Any, transpose_a: bool = False, transpose_b: bool = False
) -> Tensor:
    """Return the products of matrices of `input`, its axes in the order `perm_in`, and `weight`,
    with axes in the order `perm_out`.

    `transpose_a` and `transpose_b` say which of them is transposed.
    """
    product = ops.BatchMatMul(transpose_a, transpose_b)(ops.transpose(input, tuple(perm_in)), weight)
    return ops.transpose(product, tuple(perm_out))


def non_zero_ext(input: Any) -> tuple[Tensor, ...]:
    """Return the places of elements that are not zero, a tensor for each axis."""
    return mint.nonzero(input, as_tuple=True)


def inner_unique(input: Any, sorted: bool = True, return_inverse: bool = False) -> tuple[Tensor, Tensor]:
    """Return the different elements in their order and the number of each element's: both
    whatever `sorted` and `return_inverse` are.
    """
    return mint.unique(input, True, True)


def unique2(
    input: Any, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the different elements of `input` in their order, the number of each element's, and
    how often each occurs: all three whatever `sorted`, `return_inverse` and `return_counts` are.
    """
    return mint.unique(input, True, True, True)


def unique_dim(input: Any, sorted: bool, return_inverse: bool, dim: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the different slices of `input` along `dim` in their order, the number of each
    slice's, and how often each occurs: all three whatever `sorted` and `return_inverse` are.
    """
    return mint.unique(input, True, True, True, dim)


def empty(size: Any, dtype: Any = None, device: Any = None, pin_memory: bool = False) -> Tensor:
    """Return a tensor of shape `size` and type `dtype`; `device` and `pin_memory` have no
    effect.
    """
    return mint.empty(*size, dtype=dtype)


def empty_like(input: Any, dtype: Any = None, device: Any = None, pin_memory: bool = False) -> Tensor:
    """Return a tensor of the shape of `input`, of `dtype` if that is given; `device` and
    `pin_memory` have no effect.
    """
    return mint.empty(*input.shape, dtype=dtype or input.dtype)


def new_empty(input: Any, size: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """Return a tensor of shape `size`, of `dtype` or else that of `input`; `device` has no
    effect.
    """
    return mint.empty(*size, dtype=dtype or input.dtype)


def new_ones(input: Any, size: Any, dtype: Any = None) -> Tensor:
    """Return ones of the tensor's type, or of `dtype`."""
    return ops.ones(tuple(size), dtype or input.dtype)


def new_zeros(input: Any, size: Any, dtype: Any = None) -> Tensor:
    """Return zeros of the tensor's type, or of `dtype`."""
    return ops.zeros(tuple(size), dtype or input.dtype)


def to_dtype(input: Any, dtype: Any = None, non_blocking: bool = False, copy: bool = False) -> Tensor:
    """Return `input` in `dtype`, with `copy` also if it has it; `non_blocking` has no effect."""
    return input.copy() if copy and (dtype is None or dtype == input.dtype) else input.astype(dtype or input.dtype)


def to_device(
    input: Any, device: Any = None, dtype: Any = None, non_blocking: bool = False, copy: bool = False
) -> Tensor:
    """Return `to_dtype`; `device` has no effect, as there is one, nor has `non_blocking`.

    `input`, `dtype` and `copy` are those of `to_dtype`.
    """
    return to_dtype(input, dtype, non_blocking, copy)


def to_other(input: Any, other: Any, non_blocking: bool = False, copy: bool = False) -> Tensor:
    """Return `input` in the type of `other`; `non_blocking` and `copy` are those of `to_dtype`."""
    return to_dtype(input, other.dtype, non_blocking, copy)


def inplace_to_device(input: Any, device: Any = None, non_blocking: bool = False) -> Tensor:
    """Return the tensor itself: there is one device."""
    return input


def get_data(input: Any) -> Tensor:
    """Return what the tensor holds, apart from the operations that made it."""
    return ops.stop_gradient(input)


def set_data(input: Any, value: Any) -> Tensor:
    """Return `input` after writing `value` into it."""
    return input.copy_(value)


def bool_not(x: Any) -> Tensor:
    """Return whether a flag, or the element of a tensor, is false."""
    return ops.logical_not(x if isinstance(x, Tensor) else Tensor(bool(x)))


def tensor_scatter_elements(data: Any, indices: Any, updates: Any, axis: int = 0, reduce: str = "none") -> Tensor:
    """Return `data` with `updates` at the places `indices` along `axis`, or with `reduce` "add"
    added there.
    """
    return ops.tensor_scatter_elements(data, indices, updates, axis, reduce)
