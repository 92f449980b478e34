"""Functions of the stored values of sparse tensors: element by element, scaled by dense tensors,
and soft-maxes of rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mycel._src.compiler.ir.dims import Dim
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError
from mycel._src.staging.derivatives import stop_gradient
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.ops import activation, elementwise, segments
from mycel.ops._operands import cast_index, operand, reshaped, run, shape_of, terms, wide
from mycel.ops.gather_scatter import gather_nd
from mycel.ops.sparse.sparse_matrices import check_shapes, matrix, places_of, rows_of, summed
from mycel.ops.sparse.tensors import COOTensor, CSRTensor, differ

__all__ = [
    "coo_abs",
    "coo_acos",
    "coo_acosh",
    "coo_asin",
    "coo_asinh",
    "coo_atan",
    "coo_atanh",
    "coo_ceil",
    "coo_cos",
    "coo_cosh",
    "coo_exp",
    "coo_expm1",
    "coo_floor",
    "coo_inv",
    "coo_isfinite",
    "coo_isinf",
    "coo_isnan",
    "coo_log",
    "coo_log1p",
    "coo_neg",
    "coo_relu",
    "coo_relu6",
    "coo_round",
    "coo_sigmoid",
    "coo_sin",
    "coo_sinh",
    "coo_softsign",
    "coo_sqrt",
    "coo_square",
    "coo_tan",
    "coo_tanh",
    "csr_abs",
    "csr_acos",
    "csr_acosh",
    "csr_asin",
    "csr_asinh",
    "csr_atan",
    "csr_atanh",
    "csr_ceil",
    "csr_cos",
    "csr_cosh",
    "csr_div",
    "csr_exp",
    "csr_expm1",
    "csr_floor",
    "csr_gather",
    "csr_inv",
    "csr_isfinite",
    "csr_isinf",
    "csr_isnan",
    "csr_log",
    "csr_log1p",
    "csr_mul",
    "csr_neg",
    "csr_relu",
    "csr_relu6",
    "csr_round",
    "csr_sigmoid",
    "csr_sin",
    "csr_sinh",
    "csr_softmax",
    "csr_softsign",
    "csr_sqrt",
    "csr_square",
    "csr_tan",
    "csr_tanh",
]


def _met(name: str, x: CSRTensor, dense: Tensor) -> Tensor:
    """Return the elements at the places of `x` of a dense tensor that broadcasts to it: (N, ...).

    A tensor without rows and columns of its own gives its elements without the first dimension.
    """
    if dense.ndim > x.ndim or any(
        differ(a, 1) and differ(a, b) for a, b in zip(reversed(dense.shape), reversed(x.shape))
    ):
        raise ShapeError(
            f"{name}: a tensor of shape {dense.shape} does not broadcast to a CSRTensor of shape {x.shape}"
        )
    shape = (1,) * (x.ndim - dense.ndim) + tuple(dense.shape)
    rows, columns = rows_of(x.indptr, x.values.shape[0]), cast(x.indices, D.int64)
    one = [not isinstance(d, Dim) and d == 1 for d in shape[:2]]
    if all(one):
        return reshaped(dense, shape[2:])
    places = columns if one[0] else rows if one[1] else places_of(rows, columns, shape[1])
    return run(I.take, reshaped(dense, (shape[0] * shape[1], *shape[2:])), places, axis=0)


def csr_mul(x: Any, y: Any) -> CSRTensor:
    """Return x * y for a CSR tensor and a number or a tensor that broadcasts to it.

    The result is a CSR tensor with the places of `x`.

    >>> import mycel as ms
    >>> x = ms.CSRTensor(ms.Tensor([0, 1, 2]), ms.Tensor([0, 1]), ms.Tensor([2.0, 1.0]), (2, 2))
    >>> ms.ops.csr_mul(x, ms.Tensor([[3.0], [4.0]])).values.tolist()
    [6.0, 4.0]
    """
    a = arguments.instance("csr_mul", "x", x, CSRTensor)
    v, w = terms("csr_mul", a.values, y)
    return a._with(v * _met("csr_mul", a, w))


def csr_div(x: Any, y: Any) -> CSRTensor:
    """Return x / y for a CSR tensor and a number or a tensor that broadcasts to it.

    The result is a CSR tensor with the places of `x`; elements of `y` at other places are not read.

    >>> import mycel as ms
    >>> x = ms.CSRTensor(ms.Tensor([0, 1, 2]), ms.Tensor([0, 1]), ms.Tensor([2.0, 1.0]), (2, 2))
    >>> ms.ops.csr_div(x, ms.Tensor([[4.0, 0.0], [0.0, 2.0]])).values.tolist()
    [0.5, 0.5]
    """
    a = arguments.instance("csr_div", "x", x, CSRTensor)
    v, w = terms("csr_div", a.values, y)
    return a._with(v / _met("csr_div", a, w))


def coo_scaled(name: str, x: COOTensor, other: Any, divided: bool) -> COOTensor:
    """Return x / other if `divided`, else x * other, for a number or a tensor of the same shape.

    `name` is the operation, for errors.
    """
    v, w = terms(name, x.values, other)
    if w.ndim:
        check_shapes(name, x, w)
        w = gather_nd(w, x.indices)
    return x._with(v / w if divided else v * w)


def csr_gather(indptr: Any, indices: Any, dense: Any, sparse_shape: Any) -> Tensor:
    """Return the elements of a dense (M, N, ...) tensor at the places of a CSR tensor: (stored
    values, ...).

    Args:
        indptr (Tensor): The row pointers of the CSR tensor.
        indices (Tensor): The columns of the CSR tensor.
        dense (Tensor): (M, N, ...).
        sparse_shape (tuple[int, ...]): The shape of the CSR tensor.

    Returns:
        Tensor: (stored values, ...).

    Examples:
        >>> import mycel as ms
        >>> dense = ms.Tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> ms.ops.csr_gather(ms.Tensor([0, 1, 2]), ms.Tensor([0, 1]), dense, (2, 2)).tolist()
        [1.0, 4.0]
    """
    rows, columns = cast_index("csr_gather", indptr), cast_index("csr_gather", indices)
    x, sizes = operand("csr_gather", dense), shape_of("csr_gather", sparse_shape)
    if rows.ndim != 1 or columns.ndim != 1:
        raise ShapeError(f"csr_gather: indptr and indices are vectors, not {rows._type} and {columns._type}")
    if x.ndim < 2 or differ(x.shape[:2], sizes[:2]):
        raise ShapeError(f"csr_gather: the dense tensor must have the rows and columns of {sizes}, not {x._type}")
    places = places_of(rows_of(rows, columns.shape[0]), cast(columns, D.int64), sizes[1])
    return run(I.take, reshaped(x, (sizes[0] * sizes[1], *x.shape[2:])), places, axis=0)


def csr_softmax(logits: Any, dtype: Any) -> CSRTensor:
    """Return the soft-max of each row over its stored values, computed in `dtype`.

    The result is a CSR tensor with the same places.

    >>> import mycel as ms
    >>> values = ms.Tensor([1.0, 1.0, 7.0])
    >>> x = ms.CSRTensor(ms.Tensor([0, 2, 3]), ms.Tensor([0, 1, 1]), values, (2, 4))
    >>> ms.ops.csr_softmax(x, ms.float32).values.tolist()
    [0.5, 0.5, 1.0]
    """
    x = matrix("csr_softmax", logits)
    kind = D.from_any(dtype)
    if not kind.is_floating:
        raise TypeError(f"csr_softmax: dtype must be a floating type, not {kind.name}")
    rows, count = rows_of(x.indptr, x.values.shape[0]), x.shape[0]
    values = wide(cast(x.values, kind))
    highest = segments.unsorted_segment_max(stop_gradient(values), rows, count)
    shares = elementwise.exp(values - run(I.take, highest, rows, axis=0))
    sums = run(I.take, summed(shares, rows, count), rows, axis=0)
    return x._with(cast(shares / sums, kind))


def _valuewise(prefix: str, kind: type, function: Callable[..., Tensor]) -> Callable[[Any], Any]:
    """Return a function of the stored values of a sparse tensor of a class."""
    name = f"{prefix}_{function.__name__}"

    def call(x: Any) -> Any:
        return arguments.instance(name, "x", x, kind)._with(function(x.values))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"""Return `mycel.ops.{function.__name__}` of the stored values of a {kind.__name__}.

    Other places stay 0, whatever the function makes of 0. Raises TypeError for any other argument.

    >>> import mycel as ms
    >>> x = ms.Tensor([[0.0, 1.0]]).to_{prefix}()
    >>> bool((ms.ops.{name}(x).values == ms.ops.{function.__name__}(x.values)).all())
    True
    """
    return call


def _both(function: Callable[..., Tensor]) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """Return a function of stored values for COO and for CSR tensors."""
    return _valuewise("coo", COOTensor, function), _valuewise("csr", CSRTensor, function)


coo_abs, csr_abs = _both(elementwise.abs)
coo_acos, csr_acos = _both(elementwise.acos)
coo_acosh, csr_acosh = _both(elementwise.acosh)
coo_asin, csr_asin = _both(elementwise.asin)
coo_asinh, csr_asinh = _both(elementwise.asinh)
coo_atan, csr_atan = _both(elementwise.atan)
coo_atanh, csr_atanh = _both(elementwise.atanh)
coo_ceil, csr_ceil = _both(elementwise.ceil)
coo_cos, csr_cos = _both(elementwise.cos)
coo_cosh, csr_cosh = _both(elementwise.cosh)
coo_exp, csr_exp = _both(elementwise.exp)
coo_expm1, csr_expm1 = _both(elementwise.expm1)
coo_floor, csr_floor = _both(elementwise.floor)
coo_inv, csr_inv = _both(elementwise.inv)
coo_isfinite, csr_isfinite = _both(elementwise.isfinite)
coo_isinf, csr_isinf = _both(elementwise.isinf)
coo_isnan, csr_isnan = _both(elementwise.isnan)
coo_log, csr_log = _both(elementwise.log)
coo_log1p, csr_log1p = _both(elementwise.log1p)
coo_neg, csr_neg = _both(elementwise.neg)
coo_relu, csr_relu = _both(activation.relu)
coo_relu6, csr_relu6 = _both(activation.relu6)
coo_round, csr_round = _both(elementwise.round)
coo_sigmoid, csr_sigmoid = _both(elementwise.sigmoid)
coo_sin, csr_sin = _both(elementwise.sin)
coo_sinh, csr_sinh = _both(elementwise.sinh)
coo_softsign, csr_softsign = _both(activation.softsign)
coo_sqrt, csr_sqrt = _both(elementwise.sqrt)
coo_square, csr_square = _both(elementwise.square)
coo_tan, csr_tan = _both(elementwise.tan)
coo_tanh, csr_tanh = _both(elementwise.tanh)
