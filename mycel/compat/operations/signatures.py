"""MindSpore's signatures of operands of a primitive (`ops.signature`), calls of primitives by their
names, and checks of sizes.

`__mindspore_signature__` says which operands share an element type and which are written. Here
operations look at their operands themselves, so that it has no effect; it is kept.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor
from mycel.common.markers import _primexpr

__all__ = ["NAMES"]


def _numbered(name: str, words: str) -> Any:
    return enum.IntEnum(name, {word: number for number, word in enumerate(words.split())})


signature_rw = _numbered("signature_rw", "RW_READ RW_WRITE RW_REF RW_EMPTY_DEFAULT_VALUE")
signature_kind = _numbered(
    "signature_kind",
    "KIND_POSITIONAL_KEYWORD KIND_VAR_POSITIONAL KIND_KEYWORD_ONLY KIND_VAR_KEYWARD KIND_EMPTY_DEFAULT_VALUE",
)
signature_dtype = _numbered("signature_dtype", "T T1 T2 T3 T4 T5 T6 T7 T8 T9 T_EMPTY_DEFAULT_VALUE")


class Signature:
    """The signature of one operand.

    `name` is that of the operand, `rw` says whether it is read or written, `kind` how it is given,
    `default` is its default value, and operands of one `dtype` share their element type.
    """

    def __init__(self, name: str, rw: Any, kind: Any, default: Any, dtype: Any) -> None:
        self.name, self.rw, self.kind, self.default, self.dtype = name, rw, kind, default, dtype


def _make_sig(
    name: str = "var",
    rw: Any = signature_rw.RW_READ,
    kind: Any = signature_kind.KIND_POSITIONAL_KEYWORD,
    default: Any = signature_kind.KIND_EMPTY_DEFAULT_VALUE,
    dtype: Any = signature_dtype.T_EMPTY_DEFAULT_VALUE,
) -> Signature:
    return Signature(name, rw, kind, default, dtype)


def _contains_variable(item_dtype: Any, item_value: Any) -> bool:
    """Return whether a value or a part of it is known only when a program runs."""
    if isinstance(item_value, (tuple, list)):
        return any(_contains_variable(None, v) for v in item_value)
    return item_value is None or (isinstance(item_value, Tensor) and not isinstance(item_value, Parameter))


def _positive(
    arg_name: str,
    arg_value: Any,
    prim_name: str,
    allow_four: bool = False,
    ret_four: bool = False,
    strict_positive: bool = True,
) -> tuple[int, ...]:
    """Return two sizes.

    `arg_value` is a size, two or, with `allow_four`, four of which the first two are 1;
    `arg_name` and `prim_name` are named in the error; `ret_four` puts two ones before;
    `strict_positive` refuses 0.
    """
    sizes = (arg_value, arg_value) if isinstance(arg_value, int) else arg_value
    good = isinstance(sizes, tuple) and (len(sizes) == 2 or (allow_four and len(sizes) == 4))
    if good:
        sizes = sizes[-2:]
        good = all(
            isinstance(n, int) and not isinstance(n, bool) and (n > 0 or (n == 0 and not strict_positive))
            for n in sizes
        )
    if not good:
        raise ValueError(
            f"For '{prim_name}' attr '{arg_name}' must be an positive int number or a tuple of two "
            f"{'or four ' if allow_four else ''}positive int numbers, but got {arg_value}"
        )
    return (1, 1, *sizes) if ret_four else sizes


def _device_norm() -> Any:
    raise ValueError("The parallel config 'dump_device_local_norm' is False.")


def _run_op(obj: Callable[..., Any], op_name: str, args: Any) -> Any:
    """Return the result of a primitive for a sequence of operands."""
    return obj(*args)


NAMES: dict[str, Any] = {
    "Signature": Signature,
    "_check_contains_variable": _contains_variable,
    "_check_positive_int_or_tuple": _positive,
    "_primexpr": _primexpr,
    "_run_op": _run_op,
    "_run_op_sync": _run_op,
    "get_squared_device_local_norm_param": _device_norm,
    "make_sig": _make_sig,
    "sig_dtype": signature_dtype,
    "sig_kind": signature_kind,
    "sig_rw": signature_rw,
}
