"""Products with the matrices of filters, in the thread that asks for them.

NumPy hands products to a BLAS library that shares large ones out among threads of its own, as many
as there are cores. Within a pipeline whose threads do that each, on matrices of some hundred rows,
the threads wait for each other: thirty times the processor time, and more time, too. So filters
that are mostly zeros, as triangles on a scale are, are a sparse matrix, which one thread multiplies
with a fraction of the work; others are multiplied in pieces that BLAS libraries do not share out.
"""

from __future__ import annotations

import numpy as np

from mycel.dataset.blocks import Array

# Multiplications of a piece. OpenBLAS shares out products from 2**18 on.
_PIECE = 1 << 17
_NARROW = 16


def filtered(matrix: Array, values: Array) -> Array:
    """[..., m, n] from a matrix [m, k] and values [..., k, n], of the type of the values.

    >>> import numpy as np
    >>> from mycel.dataset.audio.products import filtered
    >>> filtered(np.array([[1.0, 0.0, 2.0]]), np.ones((2, 3, 4))).tolist()
    [[[3.0, 3.0, 3.0, 3.0]], [[3.0, 3.0, 3.0, 3.0]]]
    """
    matrix = matrix.astype(values.dtype, copy=False)
    rows, inner = matrix.shape
    lead, frames = values.shape[:-2], values.shape[-1]
    if values.dtype.kind != "f" or 4 * np.count_nonzero(matrix) > matrix.size:
        return _in_pieces(matrix, values)
    from scipy.sparse import csr_matrix

    flat = values if not lead else np.moveaxis(values, -2, 0).reshape(inner, -1)
    found: Array = np.asarray(csr_matrix(matrix) @ flat)
    return found if not lead else np.ascontiguousarray(np.moveaxis(found.reshape(rows, *lead, frames), 0, -2))


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
