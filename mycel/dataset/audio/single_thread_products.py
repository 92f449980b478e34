"""Single-threaded products with filter matrices, without the threads of BLAS libraries.

NumPy passes products to a BLAS library, which divides large ones among its own threads, as many as
there are cores. Where several threads of a pipeline do so at once, on matrices of some hundred
rows, the threads wait for each other: this costs thirty times the processor time, and more time as
well. So filters that are mostly zeros, such as triangles on a scale, are sparse matrices, which one
thread multiplies with a fraction of the work. Others are multiplied in pieces that BLAS libraries
do not divide.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mycel.dataset.rows.column_blocks import Array

# Multiplications of a piece. OpenBLAS shares out products from 2**18 on.
_PIECE = 1 << 17
_NARROW = 16


def filtered(matrix: Array, values: Array) -> Array:
    """Return the product [..., m, n] of a matrix [m, k] and values [..., k, n], of their type.

    >>> import numpy as np
    >>> from mycel.dataset.audio.single_thread_products import filtered
    >>> filtered(np.array([[1.0, 0.0, 2.0]]), np.ones((2, 3, 4))).tolist()
    [[[3.0, 3.0, 3.0, 3.0]], [[3.0, 3.0, 3.0, 3.0]]]
    """
    return Filters(matrix).of(values)


class Filters:
    """A matrix [m, k] of filters, which is prepared once for many products."""

    def __init__(self, matrix: Array) -> None:
        self.matrix = matrix
        self._is_sparse = 4 * np.count_nonzero(matrix) <= matrix.size
        self._prepared: dict[Any, Any] = {}

    def rows(self) -> tuple[Array, Array, Array]:
        """Return the filters' weights that are not zero, in order of rows.

        They are the columns of the weights, int64, where each row begins, with the end, and the
        weights, float64.
        """
        places, columns = np.nonzero(self.matrix)
        starts = np.searchsorted(places, np.arange(len(self.matrix) + 1))
        weights = self.matrix[places, columns].astype(np.float64)
        return columns.astype(np.int64), starts.astype(np.int64), weights

    def of(self, values: Array) -> Array:
        """Return the product [..., m, n] with values [..., k, n], of their type."""
        dtype = values.dtype
        if dtype.kind != "f" or not self._is_sparse:
            return _in_pieces(self.matrix.astype(dtype, copy=False), values)
        found = self._prepared.get(dtype)
        if found is None:
            from scipy.sparse import csr_matrix

            found = self._prepared[dtype] = csr_matrix(self.matrix.astype(dtype, copy=False))
        lead, frames = values.shape[:-2], values.shape[-1]
        if not lead:
            return np.asarray(found @ values)
        rows, inner = self.matrix.shape
        result: Array = np.empty((*lead, rows, frames), dtype)
        count = math.prod(lead)
        to, given = result.reshape(count, rows, frames), values.reshape(count, inner, frames)
        for one, each in zip(to, given):
            one[...] = found @ np.ascontiguousarray(each)
        return result


def _in_pieces(matrix: Array, values: Array) -> Array:
    rows, inner = matrix.shape
    frames = values.shape[-1]
    height = max(1, min(rows, _PIECE // max(1, inner * _NARROW)))
    width = max(1, _PIECE // max(1, inner * height))
    result: Array = np.empty((*values.shape[:-2], rows, frames), np.result_type(matrix, values))
    for top in range(0, rows, height):
        for left in range(0, frames, width):
            piece = values[..., left : left + width]
            np.matmul(matrix[top : top + height], piece, out=result[..., top : top + height, left : left + width])
    return result
