"""Binary operators of tensors: type promotion, and the kernel for the operands' types.

Operators convert operands to a common type (`mycel.dtype.promote`); a Python or NumPy number, or a
sequence of Python numbers, takes the tensor's type where that can hold its kind. In products and
quotients a tensor of no dimensions does so too. ``x += y`` makes a new tensor, as ``x + y`` does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import Dim
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims.base import Primitive
from mycel._src.foundation import dtype as D
from mycel._src.foundation.dtype import DType
from mycel._src.foundation.python_runtime.tracebacks import at_border
from mycel._src.foundation.pytree import flatten
from mycel._src.tensors.core import eager, precision
from mycel._src.tensors.core.tensor import SCALARS, Tensor, as_tensor, cast, make, scalar, to_numpy_array

__all__ = ["NUMBERS", "beyond", "number_dtype", "pair", "promoted"]

_new = object.__new__
NUMBERS = (bool, int, float, complex)


def number_dtype(value: Any, dtype: DType) -> DType:
    """Return the type that a Python number takes beside a tensor of type `dtype`."""
    if isinstance(value, bool):
        return dtype
    if isinstance(value, int):
        return D.int64 if dtype is D.bool_ else dtype
    if isinstance(value, float):
        return dtype if dtype.kind in "fc" else D.float32
    return dtype if dtype.kind == "c" else D.complex128 if dtype is D.float64 else D.complex64


def pair(x: Any, y: Any) -> tuple[Tensor, Tensor] | None:
    """Return two operands, of which at least one is a tensor, as tensors of a common type.

    Returns None where one of them cannot be an operand.
    """
    if precision.active:
        x, y = precision.met(x), precision.met(y)
    if isinstance(x, Tensor):
        if isinstance(y, Tensor):
            if x._type.dtype is y._type.dtype:
                return x, y
            common = _weak(x, y) if eager.active else None
            common = common or D.promote(x._type.dtype, y._type.dtype)
            return cast(x, common), cast(y, common)
        if type(y) in _NUMBER_SET:
            common = number_dtype(y, x._type.dtype)
            return cast(x, common), scalar(y, common)
        other = _operand(y, x)
        return None if other is None else pair(x, other)
    if type(x) in _NUMBER_SET:
        common = number_dtype(x, y._type.dtype)
        return scalar(x, common), cast(y, common)
    other = _operand(x, y)
    return None if other is None else pair(other, y)


def beyond(x: Any, y: Any) -> tuple[Tensor, Tensor]:
    """Return operands of a comparison of a tensor with an integer that its type does not hold.

    All values of the type lie on one side of the integer, so that an infinity takes its place.
    """
    parts = [v if isinstance(v, Tensor) else float("inf") if v > 0 else float("-inf") for v in (x, y)]
    a, b = (cast(v, D.float32) if isinstance(v, Tensor) else scalar(v, D.float32) for v in parts)
    return a, b


_NUMBER_SET = frozenset(NUMBERS)
_REAL = frozenset((int, float))
_EXAMPLES = {"b": True, "f": 1.0, "c": 1j}


def _weak(x: Tensor, y: Tensor) -> DType | None:
    """Return the common type of two tensors, exactly one of which stands for a Python number in a
    compiled function; else None.
    """
    staging = eager.local.staging
    if staging is None or x._type.shape and y._type.shape or not staging.numbers:
        return None
    weak = [id(t) in staging.numbers for t in (x, y)]
    if weak[0] is weak[1]:
        return None
    number, other = (x, y) if weak[0] else (y, x)
    return number_dtype(_EXAMPLES.get(number._type.dtype.kind, 1), other._type.dtype)


def _operand(value: Any, beside: Tensor) -> Any:
    """Return an operand that is neither a tensor nor a Python number as one of these.

    Returns None where it cannot be an operand.
    """
    if isinstance(value, np.generic):
        return value.item() if value.dtype.kind in "biufcV" else None
    if isinstance(value, (list, tuple)):
        array = to_numpy_array(value)
        kind = next(k for k in NUMBERS if array.dtype.kind in _KINDS[k])
        plain = not any(isinstance(v, (Tensor, np.ndarray, np.generic)) for v in flatten(value)[0])
        return Tensor(array, number_dtype(kind(), beside._type.dtype) if plain else None)
    if isinstance(value, (np.ndarray, Dim)):
        return as_tensor(value)
    return next((kind(value) for kind in NUMBERS if isinstance(value, kind)), None)  # type: ignore[arg-type]


_KINDS = {bool: "b", int: "iu", float: "fV", complex: "c"}


def _yielding(x: Any, y: Any) -> tuple[Any, Any]:
    """Return the operands of a product, where a tensor of no dimensions takes the type of a tensor
    of the same kind that has dimensions.
    """
    if isinstance(x, Tensor) and isinstance(y, Tensor) and x._type.dtype is not y._type.dtype:
        a, b = x._type, y._type
        if a.dtype.kind == b.dtype.kind or (a.dtype.is_integer and b.dtype.is_integer):
            if not b.shape and a.shape:
                return x, cast(y, a.dtype)
            if not a.shape and b.shape:
                return cast(x, b.dtype), y
    return x, y


def _while_recorded(primitive: Primitive, table: Any, x: Any, y: Any) -> Tensor | None:
    """Return the result, if a gradient is being recorded and the kernel is known; else None."""
    recording = eager.local.recording
    if recording is None or precision.active:
        return None
    try:
        if type(y) in _REAL and x._type.dtype.kind == "f":
            y = SCALARS[y, x._type.dtype, type(y)]
        elif type(x) in _REAL and y._type.dtype.kind == "f":
            x = SCALARS[x, y._type.dtype, type(x)]
        run, result = table[x._type, y._type]
        made = make(result, run(x._buf, y._buf))
    except (KeyError, AttributeError, ValueError, MemoryError):
        return None
    recording.enter_pair(primitive, x, y, made)
    return made


def _install(
    name: str,
    primitive: Primitive,
    prepare: Callable[..., Any] | None = None,
    arrange: Callable[[Any, Any], tuple[Any, Any]] | None = None,
) -> None:
    table = eager.pair_table(primitive)

    def forward(self: Any, other: Any) -> Any:
        try:
            if eager.active:
                made = _while_recorded(primitive, table, self, other)
                return general(self, other) if made is None else made
            kind = type(other)
            try:
                if (kind is float or kind is int) and self._type.dtype.kind == "f":
                    other = SCALARS[other, self._type.dtype, kind]
                run, result = table[self._type, other._type]
                made = _new(Tensor)
                made._buf = run(self._buf, other._buf)
                made._type = result
                made._node = None
                return made
            except (KeyError, AttributeError, ValueError, MemoryError):
                return general(self, other)
        except Exception as error:
            at_border(error)
            raise

    def general(x: Any, y: Any) -> Any:
        if arrange is not None:
            x, y = arrange(x, y)
        operands = pair(x, y)
        if operands is None:
            return NotImplemented
        if prepare is not None:
            return prepare(*operands)
        return eager.apply(primitive, *operands)

    def backward(self: Any, other: Any) -> Any:
        try:
            if eager.active:
                made = _while_recorded(primitive, table, other, self)
                return general(other, self) if made is None else made
            kind = type(other)
            if (kind is float or kind is int) and self._type.dtype.kind == "f":
                try:
                    number = SCALARS[other, self._type.dtype, kind]
                    run, result = table[number._type, self._type]
                    return make(result, run(number._buf, self._buf))
                except (KeyError, ValueError, MemoryError):
                    return general(other, self)
            return general(other, self)
        except Exception as error:
            at_border(error)
            raise

    forward.__name__, backward.__name__ = f"__{name}__", f"__r{name}__"
    setattr(Tensor, f"__{name}__", forward)
    setattr(Tensor, f"__r{name}__", backward)


def _exactly(x: Any, y: Any) -> tuple[Any, Any]:
    """Return the operands of a quotient: those of a product, but with a Python int beside a tensor
    of integers as a float.
    """
    x, y = _yielding(x, y)
    if type(y) is int and x._type.dtype.is_integer:
        return promoted(x, D.float32), float(y)
    if type(x) is int and y._type.dtype.is_integer:
        return float(x), promoted(y, D.float32)
    return x, y


def promoted(x: Tensor, dtype: DType) -> Tensor:
    """Return integers as floats for an operation of floats, whose cotangent is not rounded."""
    return eager.apply(E.promote, x, dtype=dtype)


def _true_divide(x: Tensor, y: Tensor) -> Any:
    if x._type.dtype.kind in "iub":
        x, y = promoted(x, D.float32), promoted(y, D.float32)
    return eager.apply(E.div, x, y)


def _boolean_or_bits(logical: Primitive, bits: Primitive) -> Callable[[Tensor, Tensor], Any]:
    return lambda x, y: eager.apply(logical if x._type.dtype is D.bool_ else bits, x, y)


def _numeric(primitive: Primitive) -> Callable[[Tensor, Tensor], Any]:
    def run(x: Tensor, y: Tensor) -> Any:
        if x._type.dtype is D.bool_:
            x, y = cast(x, D.int32), cast(y, D.int32)
        return eager.apply(primitive, x, y)

    return run


def _bool_add(x: Tensor, y: Tensor) -> Any:
    return eager.apply(E.logical_or if x._type.dtype is D.bool_ else E.add, x, y)


def _bool_mul(x: Tensor, y: Tensor) -> Any:
    return eager.apply(E.logical_and if x._type.dtype is D.bool_ else E.mul, x, y)


_install("add", E.add, _bool_add)
_install("sub", E.sub, _numeric(E.sub))
_install("mul", E.mul, _bool_mul, _yielding)
_install("truediv", E.div, _true_divide, _exactly)
_install("floordiv", E.floor_div, _numeric(E.floor_div))
_install("mod", E.mod, _numeric(E.mod))
_install("pow", E.pow_, _numeric(E.pow_))
_install("and", E.logical_and, _boolean_or_bits(E.logical_and, E.bitwise_and))
_install("or", E.logical_or, _boolean_or_bits(E.logical_or, E.bitwise_or))
_install("xor", E.logical_xor, _boolean_or_bits(E.logical_xor, E.bitwise_xor))
_install("lshift", E.shift_left, _numeric(E.shift_left))
_install("rshift", E.shift_right, _numeric(E.shift_right))


_COMPARED = (Tensor, *NUMBERS, Dim)


def _install_comparison(name: str, primitive: Primitive, otherwise: Any) -> None:
    """Install a comparison, whose result for what a tensor cannot be compared with is `otherwise`.

    A tensor equals no array, no sequence and no number of NumPy's that is none of Python's.
    """
    decides = otherwise is not NotImplemented
    table = eager.pair_table(primitive)

    def compare(self: Any, other: Any) -> Any:
        try:
            if not eager.active:
                kind = type(other)
                try:
                    known = other
                    if (kind is float or kind is int) and self._type.dtype.kind == "f":
                        known = SCALARS[other, self._type.dtype, kind]
                    run, result = table[self._type, known._type]
                    return make(result, run(self._buf, known._buf))
                except (KeyError, AttributeError, ValueError, MemoryError):
                    return general(self, other)
            return general(self, other)
        except Exception as error:
            at_border(error)
            raise

    def general(self: Any, other: Any) -> Any:
        try:
            operands = pair(self, other) if not decides or isinstance(other, _COMPARED) else None
        except OverflowError:
            operands = beyond(self, other)
        if operands is None:
            return otherwise
        return eager.apply(primitive, *operands)

    compare.__name__ = f"__{name}__"
    setattr(Tensor, f"__{name}__", compare)


for _name, _primitive in (("lt", E.lt), ("le", E.le), ("gt", E.gt), ("ge", E.ge)):
    _install_comparison(_name, _primitive, NotImplemented)
_install_comparison("eq", E.eq, False)
_install_comparison("ne", E.ne, True)
