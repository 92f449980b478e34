"""The types of tensors: one object for one type, and none of 2**63 bytes or more."""

from __future__ import annotations

import pickle
from itertools import product
from math import prod

import numpy as np
import pytest

from mycel._src.compiler.ir.dims import symbol
from mycel._src.compiler.ir.graph import input_node
from mycel._src.compiler.ir.types import MOST_BYTES, tensor_type
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.transforms.specialize import concrete
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import SizeError

SIZES = (
    0,
    1,
    3,
    1 << 20,
    1 << 31,
    (1 << 31) + 1,
    1 << 32,
    1 << 53,
    (1 << 60) - 1,
    1 << 61,
    1 << 62,
    (1 << 62) + 1,
    (1 << 63) - 1,
    1 << 63,
    1 << 64,
    (1 << 64) + 1,
)


def test_equal_types_are_one_object_whatever_the_sizes_are_made_of() -> None:
    kind = tensor_type((np.int64(7919), np.uint8(3)), D.float32)
    assert kind is tensor_type((7919, 3), D.float32) and [type(d) for d in kind.shape] == [int, int]
    assert pickle.loads(pickle.dumps(kind)) is kind


@pytest.mark.parametrize("dtype", [D.int8, D.float16, D.float32, D.float64, D.complex128], ids=lambda d: d.name)
def test_bytes_are_counted_in_63_bits(dtype: D.DType) -> None:
    """Every pair and triple of sizes: the type exists exactly if the product, with sizes of 0 as 1,
    fits.
    """
    for rank in (1, 2, 3):
        for shape in product(SIZES, repeat=rank):
            fits = prod(d or 1 for d in shape) * dtype.itemsize < 1 << 63
            if fits:
                assert tensor_type(shape, dtype).nbytes <= MOST_BYTES
            else:
                with pytest.raises(SizeError, match="no memory can have more than"):
                    tensor_type(shape, dtype)


def test_sizes_are_not_negative() -> None:
    with pytest.raises(SizeError, match=r"sizes must not be negative, got the shape \(3, -1\)"):
        tensor_type((3, -1), D.float32)


def test_sizes_are_whole_numbers() -> None:
    with pytest.raises(TypeError):
        tensor_type((3.5, 1), D.float32)


def test_the_error_names_the_operation_the_shape_and_the_bytes() -> None:
    x = input_node(tensor_type((4,), D.float32), "x")
    with pytest.raises(SizeError) as caught:
        S.broadcast_to(x, (1 << 60, 4))
    said = str(caught.value)
    assert "broadcast_to" in said and "(1152921504606846976, 4)" in said and str(1 << 64) in said and "float32" in said


def test_what_a_symbol_stands_for_is_checked_when_it_is_known() -> None:
    n = symbol("n")
    kind = tensor_type((n, n * 4), D.int8)
    assert concrete(kind, {"n": 1 << 30}).nbytes == 1 << 62
    with pytest.raises(SizeError):
        concrete(kind, {"n": 1 << 31})
    with pytest.raises(SizeError):
        tensor_type((n, 1 << 62, 2), D.int8)


def test_an_error_stays_readable_for_sizes_of_hundreds_of_digits() -> None:
    with pytest.raises(SizeError) as caught:
        tensor_type((10**5000,) * 40, D.float32)
    assert len(str(caught.value)) < 400
