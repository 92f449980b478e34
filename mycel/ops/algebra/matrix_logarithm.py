"""The principal logarithm of matrices, by inverse scaling and squaring: Higham, Functions of
Matrices, 2008, chapters 6 and 11.

Square roots are taken until a matrix is near the identity. A root is the limit of the product form
of Denman and Beavers' iteration,

    X' = X (1 + M^-1) / 2,   M' = (1 + (M + M^-1) / 2) / 2,   from X = M = A,

where M goes to 1 and X to the root. One loop does both, for every matrix of a batch at its own
pace: where M has arrived, the next root begins, until X is near 1 and rests. The logarithm of the
root, 1 + E, is the integral of E (1 + t E)^-1 over t in [0, 1], by Gauss-Legendre quadrature; it
doubles with each root that was taken. All of it is computed in complex128.

A matrix with eigenvalues on the negative real axis has no principal root. It is turned first, by
half of the angle that lies free behind the axis, and its logarithm is turned back; the logarithms
of these eigenvalues have the imaginary part pi. A matrix that has not come to rest after all steps
(a singular one) gives NaN.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims.control_flow import control
from mycel._src.foundation import dtype as D
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.fused import graph_of
from mycel._src.tensors.core.tensor import Tensor, cast, scalar
from mycel.ops._operands import constant_like, operand, reshaped, run, select
from mycel.ops.algebra.decompositions import eigvals
from mycel.ops.algebra.linalg import matmul
from mycel.ops.algebra.linear_systems import inverse
from mycel.ops.algebra.matrices import matrices, solve
from mycel.ops.complex_numbers import absolute_value, angle, polar
from mycel.ops.creation import eye

__all__ = ["matrix_logarithm"]

STEPS = 500
NODES = 12
# Eigenvalues nearer than this angle count as on the negative real axis.
AXIS = 1e-7


def _size(x: Tensor) -> Tensor:
    """Return the largest sum of magnitudes in a row, (.., 1, 1), without a derivative."""
    rows = run(R.reduce_sum, absolute_value(run(E.stop_gradient, x)), axes=(x.ndim - 1,), keepdims=True)
    return run(R.reduce_max, rows, axes=(x.ndim - 2,), keepdims=True)


def _turn(a: Tensor) -> Tensor:
    """Return the angle (.., 1, 1) by which to turn each matrix so that no eigenvalue is on the
    negative real axis.
    """
    angles = angle(eigvals(run(E.stop_gradient, a)))
    on_axis = math.pi - run(E.abs_, angles) < AXIS
    free = select(on_axis, 2 * math.pi, angles + math.pi)
    last = angles.ndim - 1
    turn = run(E.minimum, run(R.reduce_min, free, axes=(last,), keepdims=True) * 0.5, scalar(0.5, D.float64))
    turn = select(run(R.reduce_any, on_axis, axes=(last,), keepdims=True), turn, 0.0)
    return reshaped(turn, (*turn.shape, 1))


def _near_one(a: Tensor, one: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return a root of `a` near the identity, which power of the root `a` is, and where no root was
    found.
    """

    def body(k: Tensor, x: Tensor, m: Tensor, power: Tensor, left: Tensor, one: Tensor) -> Any:
        back = inverse(m)
        arrived = _size(m - one) < 1e-9
        root, m_next = (x + matmul(x, back)) * 0.5, one * 0.5 + (m + back) * 0.25
        near = _size(root - one) < 0.3
        again = run(E.logical_and, arrived, run(E.logical_not, near))
        power = select(run(E.logical_and, left, arrived), power * 2.0, power)
        x, m = select(left, root, x), select(left, select(again, root, m_next), m)
        left = run(E.logical_and, left, run(E.logical_not, run(E.logical_and, arrived, near)))
        return k + scalar(1, D.int32), x, m, power, left

    def test(k: Tensor, x: Tensor, m: Tensor, power: Tensor, left: Tensor, one: Tensor) -> Any:
        some = run(R.reduce_any, left, axes=tuple(range(left.ndim)), keepdims=False)
        return (run(E.logical_and, some, k < scalar(STEPS, D.int32)),)

    size = _size(a)
    operands = (scalar(0, D.int32), a, a, size * 0.0 + 1.0, size >= 0.0, one)
    types = [v._type for v in operands]
    graphs = {"test": graph_of(test, types), "body": graph_of(body, types)}
    done: Any = eager.apply(control.while_loop, *operands, **graphs, carried=5)
    return done[1], done[3], done[4]


def matrix_logarithm(x: Any) -> Tensor:
    """Return the principal logarithm of square matrices (.., n, n), complex64 or complex128.

    Singular matrices give NaN.

    >>> import mycel as ms
    >>> from mycel.ops.algebra.matrix_logarithm import matrix_logarithm
    >>> matrix_logarithm(ms.Tensor([[1.0 + 0j, 0], [0, 1]])).tolist()
    [[0j, 0j], [0j, 0j]]
    """
    given = matrices("MatrixLogarithm", operand("MatrixLogarithm", x))
    if not given.dtype.is_complex:
        raise TypeError(f"MatrixLogarithm: x must be complex64 or complex128, not {given.dtype.name}")
    a = cast(given, D.complex128)
    n = int(a.shape[-1])
    if given.size == 0:
        return given
    one = reshaped(eye(n, dtype=D.complex128), (*(1,) * (a.ndim - 2), n, n))
    turn = _turn(a)
    root, power, nowhere = _near_one(a * polar(run(E.exp, turn * 0.0), run(E.neg, turn)), one)
    rest = root - one
    points, weights = np.polynomial.legendre.leggauss(NODES)
    total = rest * 0.0
    for t, w in zip((points + 1) / 2, weights / 2):
        total = total + solve(one + rest * constant_like(float(t), rest), rest) * float(w)
    total = total * cast(power, D.complex128) + one * (cast(turn, D.complex128) * 1j)
    return cast(select(nowhere, scalar(complex("nan+nanj"), D.complex128), total), given.dtype)
