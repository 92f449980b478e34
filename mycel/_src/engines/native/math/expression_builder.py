"""A small builder of straight-line LLVM IR: values with operators, for the elementary functions.

A `Value` is one SSA name with its kind (`f32`, `f64`, `i32`, `i64` or `i1`); all values of a
`Builder` have the same number of lanes. Operators emit one instruction each and equal instructions
are emitted once. Constants are Python numbers, rounded to the kind and written as splats in
hexadecimal, so the text is exact.

Invariants that the functions rely on: no instruction has a fast-math flag, so sums are evaluated in
the order written. `fma` is `llvm.fmuladd`, which has one rounding where the machine has the
instruction and two where it has not, so no function may depend on which. `nearest` rounds by adding
1.5 * 2^(p-1), which works on every target and leaves the integer in the low bits of the sum.
Comparisons are ordered: false when an operand is NaN.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Union

Scalar = float | int
Operand = Union["Value", float, int]


@dataclass(frozen=True)
class Format:
    """An IEEE 754 binary format: its LLVM type, the integer type of its size, and constants."""

    kind: str
    llvm: str
    integer: str
    mantissa: int
    bias: int

    @property
    def width(self) -> int:
        return 32 if self.kind == "f32" else 64

    @property
    def magic(self) -> float:
        """The number whose sum with a small number has the nearest integer in its low bits."""
        return 1.5 * 2.0**self.mantissa

    @property
    def tiny(self) -> float:
        """The smallest normal number."""
        return 2.0 ** (1 - self.bias)

    @property
    def sign(self) -> int:
        return 1 << (self.width - 1)

    def bits(self, value: float) -> int:
        """Return the bit pattern of `value` rounded to the format."""
        code = ("<f", "<I") if self.kind == "f32" else ("<d", "<Q")
        return int(struct.unpack(code[1], struct.pack(code[0], value))[0])


FORMATS = {"f32": Format("f32", "float", "i32", 23, 127), "f64": Format("f64", "double", "i64", 52, 1023)}
_TYPES = {"f32": "float", "f64": "double", "i32": "i32", "i64": "i64", "i1": "i1"}
INF = float("inf")
NAN = float("nan")


def type_text(kind: str, lanes: int) -> str:
    """Return the LLVM type of `lanes` elements: `type_text("f32", 4)` is `<4 x float>`."""
    return _TYPES[kind] if lanes == 1 else f"<{lanes} x {_TYPES[kind]}>"


def constant_text(kind: str, lanes: int, value: Scalar) -> str:
    """Return the constant `value` of a kind, in every lane."""
    if kind in FORMATS:
        if kind == "f32":
            value = float(struct.unpack("<f", struct.pack("<f", value))[0])
        one = f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
    else:
        width = int(kind[1:])
        wrapped = int(value) & ((1 << width) - 1)
        one = str(wrapped - (1 << width) if width > 1 and wrapped >> (width - 1) else wrapped)
    return one if lanes == 1 else "<" + ", ".join([f"{_TYPES[kind]} {one}"] * lanes) + ">"


class Value:
    """One SSA value; its operators emit the instructions for its kind."""

    __slots__ = ("builder", "kind", "name")

    def __init__(self, builder: Builder, name: str, kind: str) -> None:
        self.builder, self.name, self.kind = builder, name, kind

    @property
    def format(self) -> Format:
        """The floating-point format of the value."""
        return FORMATS[self.kind]

    def _binary(self, float_op: str, integer_op: str, other: Operand, swap: bool = False) -> Value:
        opcode = float_op if self.kind in FORMATS else integer_op
        left, right = self.name, self.builder.operand(other, self.kind)
        if swap:
            left, right = right, left
        return self.builder.emit(self.kind, f"{opcode} {self.builder.type(self.kind)} {left}, {right}")

    def __add__(self, other: Operand) -> Value:
        return self._binary("fadd", "add", other)

    def __radd__(self, other: Scalar) -> Value:
        return self._binary("fadd", "add", other, swap=True)

    def __sub__(self, other: Operand) -> Value:
        return self._binary("fsub", "sub", other)

    def __rsub__(self, other: Scalar) -> Value:
        return self._binary("fsub", "sub", other, swap=True)

    def __mul__(self, other: Operand) -> Value:
        return self._binary("fmul", "mul", other)

    def __rmul__(self, other: Scalar) -> Value:
        return self._binary("fmul", "mul", other, swap=True)

    def __truediv__(self, other: Operand) -> Value:
        return self._binary("fdiv", "sdiv", other)

    def __rtruediv__(self, other: Scalar) -> Value:
        return self._binary("fdiv", "sdiv", other, swap=True)

    def __and__(self, other: Operand) -> Value:
        return self._binary("and", "and", other)

    def __or__(self, other: Operand) -> Value:
        return self._binary("or", "or", other)

    def __xor__(self, other: Operand) -> Value:
        return self._binary("xor", "xor", other)

    def __invert__(self) -> Value:
        return self ^ -1

    def __lshift__(self, count: Operand) -> Value:
        return self._binary("shl", "shl", count)

    def __rshift__(self, count: Operand) -> Value:
        """Return a logical right shift, which fills with zeros."""
        return self._binary("lshr", "lshr", count)

    def __neg__(self) -> Value:
        return self.builder.emit(self.kind, f"fneg {self.builder.type(self.kind)} {self.name}")

    def _compare(self, predicate: str, other: Operand) -> Value:
        opcode = "fcmp" if self.kind in FORMATS else "icmp"
        right = self.builder.operand(other, self.kind)
        return self.builder.emit("i1", f"{opcode} {predicate} {self.builder.type(self.kind)} {self.name}, {right}")

    def __lt__(self, other: Operand) -> Value:
        return self._compare("olt", other)

    def __le__(self, other: Operand) -> Value:
        return self._compare("ole", other)

    def __gt__(self, other: Operand) -> Value:
        return self._compare("ogt", other)

    def __ge__(self, other: Operand) -> Value:
        return self._compare("oge", other)

    def equals(self, other: Operand) -> Value:
        """Return whether both are equal, false for NaN."""
        return self._compare("oeq" if self.kind in FORMATS else "eq", other)

    def is_nan(self) -> Value:
        """Return a value that is true where this one is NaN."""
        return self._compare("uno", self)


class Builder:
    """The instructions of one function over vectors of `lanes` elements.

    It also has the intrinsics that they call.
    """

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        self.lines: list[str] = []
        self.declarations: set[str] = set()
        self._known: dict[tuple[str, str], Value] = {}

    def type(self, kind: str) -> str:
        """Return the LLVM type of a value of that kind."""
        return type_text(kind, self.lanes)

    def operand(self, x: Operand, kind: str) -> str:
        """Return the text of an operand: a value of the same kind or a constant."""
        if not isinstance(x, Value):
            return constant_text(kind, self.lanes, x)
        if x.kind != kind:
            raise TypeError(f"an operand of kind {x.kind} meets one of kind {kind}; widen, narrow or bitcast it first")
        return x.name

    def emit(self, kind: str, instruction: str) -> Value:
        """Append an instruction and return its value.

        Returns the earlier value if the same instruction was emitted before.
        """
        known = self._known.get((kind, instruction))
        if known is None:
            known = self._known[kind, instruction] = Value(self, f"%t{len(self.lines)}", kind)
            self.lines.append(f"  {known.name} = {instruction}")
        return known

    def intrinsic(self, name: str, *args: Value | float) -> Value:
        """Call `llvm.<name>` over the kind of the first value among the arguments."""
        kind = next(a.kind for a in args if isinstance(a, Value))
        text = self.type(kind)
        suffix = kind if self.lanes == 1 else f"v{self.lanes}{kind}"
        self.declarations.add(f"declare {text} @llvm.{name}.{suffix}({', '.join([text] * len(args))})")
        operands = ", ".join(f"{text} {self.operand(a, kind)}" for a in args)
        return self.emit(kind, f"call {text} @llvm.{name}.{suffix}({operands})")

    def look_up(self, table: str, index: Value) -> Value:
        """Return the elements of a constant table of i64 at the indices, which must be in range."""
        one = self.lanes == 1
        places = "ptr" if one else f"<{self.lanes} x ptr>"
        at = self.emit(places, f"getelementptr i64, ptr @{table}, {self.type(index.kind)} {index.name}")
        kind = self.type("i64")
        if one:
            return self.emit("i64", f"load i64, ptr {at.name}, align 8")
        name, mask = f"llvm.masked.gather.v{self.lanes}i64.v{self.lanes}p0", f"<{self.lanes} x i1>"
        self.declarations.add(f"declare {kind} @{name}({places}, i32, {mask}, {kind})")
        every = "<" + ", ".join(["i1 true"] * self.lanes) + ">"
        return self.emit("i64", f"call {kind} @{name}({places} {at.name}, i32 8, {mask} {every}, {kind} undef)")


def _convert(opcode: str, x: Value, kind: str) -> Value:
    b = x.builder
    return b.emit(kind, f"{opcode} {b.type(x.kind)} {x.name} to {b.type(kind)}")


def widen(x: Value) -> Value:
    """Return a float32 as float64."""
    return _convert("fpext", x, "f64")


def narrow(x: Value) -> Value:
    """Return a float64 rounded to float32, or an int64 cut to its low 32 bits."""
    return _convert("fptrunc", x, "f32") if x.kind == "f64" else _convert("trunc", x, "i32")


def unsigned(x: Value) -> Value:
    """Return an int32, taken as unsigned, as int64."""
    return _convert("zext", x, "i64")


def number(x: Value) -> Value:
    """Return an int32 or int64 as float64, rounded."""
    return _convert("sitofp", x, "f64")


def bits(x: Value) -> Value:
    """Return the bit pattern as an integer."""
    return _convert("bitcast", x, x.format.integer)


def from_bits(i: Value) -> Value:
    """Return the floating-point number with that bit pattern."""
    return _convert("bitcast", i, "f32" if i.kind == "i32" else "f64")


def fma(a: Value, b: Operand, c: Operand) -> Value:
    """Return a * b + c, with one rounding or with two."""
    return a.builder.intrinsic("fmuladd", a, b, c)


def sqrt(x: Value) -> Value:
    """Return the square root, correctly rounded."""
    return x.builder.intrinsic("sqrt", x)


def fabs(x: Value) -> Value:
    """Return the absolute value."""
    return x.builder.intrinsic("fabs", x)


def copysign(x: Value | float, sign: Value) -> Value:
    """Return the magnitude of `x` with the sign bit of `sign`."""
    return sign.builder.intrinsic("copysign", x, sign)


def select(condition: Value, a: Operand, b: Operand, kind: str = "") -> Value:
    """Return `a` where the condition holds, else `b`.

    `kind` must be given where both are constants.
    """
    kind = a.kind if isinstance(a, Value) else b.kind if isinstance(b, Value) else kind
    builder = condition.builder
    text = builder.type(kind)
    choice = f"{text} {builder.operand(a, kind)}, {text} {builder.operand(b, kind)}"
    return builder.emit(kind, f"select {builder.type('i1')} {condition.name}, {choice}")


def at_most(x: Value, bound: float) -> Value:
    """Return the smaller of `x` and `bound`; NaN stays NaN."""
    return select(x > bound, bound, x)


def at_least(x: Value, bound: float) -> Value:
    """Return the larger of `x` and `bound`; NaN stays NaN."""
    return select(x < bound, bound, x)


def horner(x: Value, coefficients: Sequence[float]) -> Value:
    """Return the value at `x` of the polynomial with these coefficients, in ascending order."""
    total = fma(x, coefficients[-1], coefficients[-2])
    for coefficient in coefficients[-3::-1]:
        total = fma(total, x, coefficient)
    return total


def nearest(x: Value, factor: float = 1.0) -> tuple[Value, Value]:
    """Return the integer nearest to x * factor, and the shifted sum.

    The integer must be below 2^(p-2) in magnitude; the low bits of the shifted sum hold it.
    """
    magic = x.format.magic
    shifted = x + magic if factor == 1.0 else fma(x, factor, magic)
    return shifted - magic, shifted


def power_of_two(shifted: Value) -> Value:
    """Return 2^n for the integer n in the low bits of `shifted`.

    The integer must be the exponent of a normal number.
    """
    f = shifted.format
    return from_bits((bits(shifted) << f.mantissa) + (f.bias << f.mantissa))


def scale(y: Value, n: Value, shifted: Value) -> Value:
    """Return y * 2^n for n from -2 bias to 2 bias.

    There are two factors, so that results overflow or become subnormal only where they should.
    """
    half, half_shifted = nearest(n, 0.5)
    return y * power_of_two(half_shifted) * power_of_two(shifted - half)


def with_sign_of(y: Value, sign: Value) -> Value:
    """Return y, negated where the sign bit of `sign` is set."""
    return from_bits(bits(y) ^ (bits(sign) & y.format.sign))


def two_sum(a: Value, b: Operand) -> tuple[Value, Value]:
    """Return the rounded sum and its exact error, for |a| >= |b| or a zero.

    This is Dekker's fast two-sum.
    """
    total = a + b
    return total, b - (total - a) if isinstance(b, Value) else (a - total) + b


def two_product(a: Value, b: Value) -> tuple[Value, Value]:
    """Return the rounded product and its error, to twice the precision.

    The significands are split in halves (Dekker's product).
    """
    product = a * b
    (ah, al), (bh, bl) = _halves(a), _halves(b)
    return product, (((ah * bh - product) + ah * bl) + al * bh) + al * bl


def _halves(a: Value) -> tuple[Value, Value]:
    high = high_half(a)
    return high, a - high


def high_half(a: Value) -> Value:
    """Return the upper half of the significand, truncated.

    Products of two such numbers are exact.
    """
    low = (a.format.mantissa + 2) // 2
    return from_bits(bits(a) & ~((1 << low) - 1))
