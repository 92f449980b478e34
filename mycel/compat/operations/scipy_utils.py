"""The helpers of MindSpore's `scipy`: conversions, norms, checks of matrices."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from mycel import ops
from mycel._src.tensors.core.tensor import Tensor
from mycel.compat.operations.numpy_utils import NAMES as NUMPY
from mycel.scipy import linalg

__all__ = ["NAMES"]


def _safe_normalize(x: Any, threshold: Any = None) -> Any:
    """Return a vector of length one and the former length; zeros for one that is too short."""
    norm = _norm(x)
    least = ops.Eps()(norm) if threshold is None else threshold
    long = norm > least
    return ops.where(long, x / ops.where(long, norm, ops.ones_like(norm)), ops.zeros_like(x)), ops.where(
        long, norm, ops.zeros_like(norm)
    )


def _norm(x: Any, ord_: Any = None) -> Any:
    if ord_ == float("inf"):
        return ops.abs(x).max()
    return ops.sqrt((x * x).sum())


def _to_scalar(arr: Any) -> Any:
    if isinstance(arr, (int, float, bool)):
        return arr
    if not isinstance(arr, Tensor):
        raise ValueError(f"{type(arr)} are not supported.")
    return arr.item() if arr.ndim == 0 else arr


def _to_tensor(*args: Any, dtype: Any = None) -> Any:
    found = NUMPY["_to_tensor"](*args)
    if dtype is None:
        return found
    return tuple(v.astype(dtype) for v in found) if isinstance(found, tuple) else found.astype(dtype)


_CHECKS: dict[str, Callable[[Any, Any], Any]] = {
    "in": lambda x, y: x in y if isinstance(y, (list, tuple)) else x == y,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "isinstance": isinstance,
}


def _value_check(
    func_name: str,
    arg1: Any,
    arg2: Any,
    arg_name: str = "",
    attr_name: str = "",
    op: str = "in",
    fmt: str = "attr",
    msg: Any = None,
) -> Any:
    """Return the value and what it is compared with, or raise ValueError where it does not compare.

    `arg1` is compared with `arg2` by `op`; `func_name`, `arg_name` and `attr_name` are named in the
    error, and `msg` is its text instead; `fmt` has no effect.
    """
    if not _CHECKS[op](arg1, arg2):
        raise ValueError(msg or f"For '{func_name}', the {attr_name} of '{arg_name}' should be {arg2}, but got {arg1}.")
    return arg1, arg2


def _type_check(
    func_name: str,
    arg1: Any,
    arg2: Any,
    arg_name: str = "",
    op: str = "isinstance",
    fmt: str = "type",
    msg: Any = None,
) -> Any:
    """Return the value and the types `arg2`, or raise TypeError where it is of none of them.

    `func_name` and `arg_name` are named in the error, and `msg` is its text instead; `op` is
    "isinstance" or "in"; `fmt` has no effect.
    """
    kinds = tuple(arg2) if isinstance(arg2, (list, tuple)) else (arg2,)
    good = arg1 in kinds if op == "in" else isinstance(arg1, kinds)
    if not good:
        names = ", ".join(getattr(k, "__name__", str(k)) for k in kinds)
        text = f"For '{func_name}', the type of '{arg_name}' should be {names}, but got '{arg1}' with type"
        raise TypeError(msg or f"{text} {type(arg1).__name__}.")
    return arg1, arg2


def _dtype_check(func_name: str, arg: Any, arg_dtype: Any, arg_name: str = "a") -> Any:
    kinds = list(arg_dtype) if isinstance(arg_dtype, (list, tuple)) else [arg_dtype]
    if isinstance(arg, Tensor) and arg.dtype not in kinds:
        raise TypeError(f"For '{func_name}', the data type of '{arg_name}' should be {kinds}, but got {arg.dtype}.")
    return getattr(arg, "dtype", arg), kinds


def _square_check(func_name: str, arg: Any, arg_name: str = "a") -> Any:
    shape = tuple(arg.shape)
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(
            f"For '{func_name}', the matrix '{arg_name}' should be a square matrix like (N, N), but got {shape}."
        )
    return arg


def _solve_check(
    func_name: str, arg1: Any, arg2: Any, arg1_name: str = "a", arg2_name: str = "b", sparse: bool = False
) -> Any:
    """Check a matrix and the right sides of a system of equations.

    `arg1` is the square matrix, `arg2` the right sides, `func_name`, `arg1_name` and `arg2_name`
    are named in errors, and `sparse` says that the matrix is sparse.
    """
    _square_check(func_name, arg1, arg1_name)
    if arg1.shape[1] != arg2.shape[0]:
        raise ValueError(
            f"For '{func_name}', the rows of '{arg2_name}' should be {arg1.shape[1]}, as '{arg1_name}' has columns, "
            f"but got {arg2.shape[0]}."
        )
    return arg1, arg2


def _product(a: Any, b: Any) -> Any:
    return ops.csr_mv(a, b.reshape((-1, 1))).reshape(-1) if not isinstance(a, Tensor) else ops.matmul(a, b)


def _adjoint(a: Any) -> Any:
    return ops.conj(ops.transpose(a, tuple(range(a.ndim))[::-1]))


def _batch_eyes(a: Any) -> Any:
    return ops.broadcast_to(ops.eye(a.shape[-2], a.shape[-1], a.dtype), a.shape)


def _over_differences(w: Any, epsilon: float = 1e-20) -> Any:
    """Return 1 / (w[j] - w[i]), and nearly 0 where values meet."""
    difference = w.expand_dims(-2) - w.expand_dims(-1)
    return difference / (difference * difference + epsilon)


NAMES: dict[str, Any] = {
    "SolveTriangular": linalg.SolveTriangular,
    "_adjoint": _adjoint,
    "_batch_eyes": _batch_eyes,
    "_compute_f": _over_differences,
    "_diag": lambda a: ops.matrix_diag(a),
    "_matrix_solve": lambda a, b: ops.matmul(ops.inverse(a), b),
    "matrix_set_diag": lambda input_x, diagonal, k=0, alignment="RIGHT_LEFT": ops.matrix_set_diag(
        input_x, diagonal, k, alignment
    ),
    "_callable_const": callable,
    "_convert_64_to_32": NUMPY["_convert_64_to_32"],
    "_dtype_check": _dtype_check,
    "_eps": lambda x: ops.Eps()(x.reshape(-1)[0]),
    "_matvec": lambda a, b: ops.matmul(a, b),
    "_nd_transpose": lambda a: a.swapaxes(-1, -2) if a.ndim > 1 else a,
    "_norm": _norm,
    "_safe_normalize": _safe_normalize,
    "_solve_check": _solve_check,
    "_square_check": _square_check,
    "_to_scalar": _to_scalar,
    "_to_tensor": _to_tensor,
    "_tuple": lambda x: tuple(x) if isinstance(x, (list, tuple)) else (x,),
    "_type_check": _type_check,
    "_type_convert": lambda new_type, obj: new_type(obj),
    "_value_check": _value_check,
    "pack": lambda *args: args,
    "sparse_dot": _product,
}
