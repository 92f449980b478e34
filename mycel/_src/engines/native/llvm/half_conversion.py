"""Conversions between 16-bit floats and float32, as LLVM instructions.

LLVM turns the conversions that a processor lacks into calls of a support library that is missing
when code is generated at run time, and processors with a conversion to bfloat16 flush its subnormal
numbers. So conversions of bfloat16, and of float16 where there are none, are integer arithmetic on
the bits. They round to nearest, ties to even, and keep infinities, NaNs and subnormal numbers (IEEE
754-2019, section 4.3).

Narrowing a value that was widened gives the original value back; a value that is known to be a
number of the type (`EXACT`) is narrowed by dropping bits. Rounding could turn a NaN into a number
by a carry out of its low 16 bits; the NaNs that arithmetic on 16-bit operands gives have none set
there (`COMPUTED`).
"""

from __future__ import annotations

from typing import Any

from mycel._src.engines.native.llvm.target import target
from mycel._src.foundation.dtype import DType, bfloat16

__all__ = ["ANY", "COMPUTED", "EXACT", "narrow", "widen"]

ANY, COMPUTED, EXACT = range(3)

_SIGN, _INFINITY, _QUIET = 0x80000000, 0x7F800000, 0x40
_HALF_OVERFLOW = (127 + 16) << 23
_HALF_NORMAL = (127 - 14) << 23
_HALF_UNIT = (127 - 24 + 23) << 23
_REBIAS = (127 - 15) << 23
_REBIAS_FACTOR = (127 + 127 - 15) << 23


def _has_half() -> bool:
    """Return whether the processor converts float16; what LLVM calls otherwise is not there."""
    here = target()
    if here.is_family("x86_64"):
        return "f16c" in here.feature_set
    if here.is_family("riscv"):
        return "zfhmin" in here.feature_set
    if here.is_family("thumb"):
        return here.triple.endswith("hf")
    return not here.is_family("wasm")


class _Bits:
    """Instructions on 32-bit integers and floats of one shape."""

    def __init__(self, emitter: Any, wide: bool) -> None:
        self.e, self.wide = emitter, wide
        self.int, self.float, self.short = (emitter.vector(t) if wide else t for t in ("i32", "float", "i16"))

    def constant(self, value: int) -> str:
        return "<" + ", ".join([f"i32 {value}"] * self.e.lanes) + ">" if self.wide else str(value)

    def op(self, name: str, a: str, b: int | str) -> str:
        return str(self.e.put(f"{name} {self.int} {a}, {b if isinstance(b, str) else self.constant(b)}"))

    def choose(self, test: str, a: str, yes: int | str, no: str) -> str:
        """Return `yes` where the unsigned comparison `test` of `a` holds, else `no`."""
        name, limit = test.split()
        holds = self.op(f"icmp {name}", a, int(limit))
        other = yes if isinstance(yes, str) else self.constant(yes)
        return str(
            self.e.put(
                f"select {self.e.vector('i1') if self.wide else 'i1'} {holds}, {self.int} {other}, {self.int} {no}"
            )
        )

    def cast(self, value: str, old: str, new: str) -> str:
        return str(self.e.put(f"bitcast {old} {value} to {new}"))


def widen(emitter: Any, wide: bool, value: str, dtype: DType) -> str:
    """Return `value`, a 16-bit float of type `dtype`, as float32.

    `emitter` writes the instructions; the value is a vector where `wide`, else a scalar.
    """
    result = _widen(emitter, wide, value, dtype)
    emitter.narrowed[result] = value, dtype
    return result


def _widen(emitter: Any, wide: bool, value: str, dtype: DType) -> str:
    b = _Bits(emitter, wide)
    kind = "bfloat" if dtype is bfloat16 else "half"
    shape = emitter.vector(kind) if wide else kind
    if dtype is not bfloat16 and _has_half():
        return str(emitter.put(f"fpext {shape} {value} to {b.float}"))
    bits = emitter.put(f"zext {b.short} {b.cast(value, shape, b.short)} to {b.int}")
    if dtype is bfloat16:
        return b.cast(b.op("shl", bits, 16), b.int, b.float)
    size = b.op("shl", b.op("and", bits, 0x7FFF), 13)
    factor = b.cast(b.constant(_REBIAS_FACTOR), b.int, b.float)
    scaled = b.cast(emitter.put(f"fmul {b.float} {b.cast(size, b.int, b.float)}, {factor}"), b.float, b.int)
    scaled = b.choose(f"uge {0x7C00 << 13}", size, b.op("or", size, _INFINITY), scaled)
    return b.cast(b.op("or", scaled, b.op("shl", b.op("and", bits, 0x8000), 16)), b.int, b.float)


def narrow(emitter: Any, wide: bool, value: str, dtype: DType, known: int = ANY) -> str:
    """Return `value`, a float32, rounded to the 16-bit float type `dtype`.

    `emitter` writes the instructions; the value is a vector where `wide`, else a scalar. `known` is
    `ANY`, `COMPUTED` (by arithmetic on 16-bit operands) or `EXACT` (a number of the type).
    """
    origin = emitter.narrowed.get(value)
    if origin is not None and origin[1] is dtype:
        return str(origin[0])
    b = _Bits(emitter, wide)
    kind = "bfloat" if dtype is bfloat16 else "half"
    shape = emitter.vector(kind) if wide else kind
    if dtype is not bfloat16 and _has_half():
        return str(emitter.put(f"fptrunc {b.float} {value} to {shape}"))
    bits = b.cast(value, b.float, b.int)
    if dtype is bfloat16:
        result = b.op("lshr", bits, 16) if known == EXACT else _to_bfloat(b, value, bits, known)
    else:
        result = _to_half(b, bits)
    return b.cast(emitter.put(f"trunc {b.int} {result} to {b.short}"), b.short, shape)


def _to_bfloat(b: _Bits, value: str, bits: str, known: int) -> str:
    upper = b.op("lshr", bits, 16)
    even = b.op("add", b.op("and", upper, 1), 0x7FFF)
    rounded = b.op("lshr", b.op("add", bits, even), 16)
    if known == COMPUTED:
        return rounded
    nan = b.e.put(f"fcmp uno {b.float} {value}, {value}")
    mask = b.e.vector("i1") if b.wide else "i1"
    return str(b.e.put(f"select {mask} {nan}, {b.int} {b.op('or', upper, _QUIET)}, {b.int} {rounded}"))


def _to_half(b: _Bits, bits: str) -> str:
    size = b.op("and", bits, _SIGN - 1)
    even = b.op("add", b.op("and", b.op("lshr", size, 13), 1), 0xFFF)
    normal = b.op("lshr", b.op("add", b.op("sub", size, _REBIAS), even), 13)
    # Adding the number whose unit in the last place is the smallest subnormal rounds to a multiple
    # of that.
    unit = b.cast(b.constant(_HALF_UNIT), b.int, b.float)
    shifted = b.cast(b.e.put(f"fadd {b.float} {b.cast(size, b.int, b.float)}, {unit}"), b.float, b.int)
    result = b.choose(f"ult {_HALF_NORMAL}", size, b.op("sub", shifted, _HALF_UNIT), normal)
    result = b.choose(f"uge {_HALF_OVERFLOW}", size, 0x7C00, result)
    result = b.choose(f"ugt {_INFINITY}", size, 0x7E00, result)
    return b.op("or", result, b.op("lshr", b.op("and", bits, _SIGN), 16))
