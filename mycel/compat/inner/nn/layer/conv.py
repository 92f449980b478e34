"""`mindspore.nn.layer.conv`: checks of shapes, for layers of a program's own."""

from __future__ import annotations

from collections.abc import Sequence

__all__: list[str] = []


def _check_input_3d(input_shape: Sequence[int], op_name: str) -> None:
    """Raise ValueError unless a shape has three dimensions."""
    if len(input_shape) != 3:
        raise ValueError(f"{op_name}: the input must have 3 dimensions, not {len(input_shape)}")


def _deconv_output_length(
    is_valid: bool,
    is_same: bool,
    is_pad: bool,
    input_length: int,
    filter_size: int,
    stride_size: int,
    dilation_size: int,
    padding: int,
) -> int:
    """Return the length of a transposed convolution's output along one axis.

    One of `is_valid`, `is_same` and `is_pad` says how the input is padded; `input_length` is its
    length, `filter_size`, `stride_size` and `dilation_size` are those of the kernel, and `padding`
    is what is taken off both ends together.
    """
    spread = filter_size + (filter_size - 1) * (dilation_size - 1)
    length = input_length * stride_size
    if is_valid:
        return length + max(spread - stride_size, 0)
    return length - stride_size + spread - padding if is_pad else length
