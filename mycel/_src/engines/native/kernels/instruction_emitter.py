"""Scalar expressions as LLVM instructions, on vectors and on scalars alike.

`Emitter` writes numbered instructions; `operation` maps a primitive's name to them. Booleans are i1
while computing and bytes in memory; the 16-bit floats are computed in float32, and `round_16` and
`round_sum_16` round to them. Integer division never traps: by zero it gives 0, and the most
negative number by -1 wraps.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.prims.elementwise import cast as CAST
from mycel._src.engines.native.llvm.half_conversion import ANY, COMPUTED, narrow, widen
from mycel._src.engines.native.llvm.target import target
from mycel._src.engines.native.math import function_definitions as vector_math
from mycel._src.foundation import dtype as D
from mycel._src.foundation.dtype import DType
from mycel._src.foundation.errors import Unsupported

__all__ = ["Emitter", "compute_type", "is_cast", "is_supported", "literal", "memory_type", "operation"]

_MEMORY = {
    "bool": "i8",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "i8",
    "uint16": "i16",
    "uint32": "i32",
    "uint64": "i64",
    "float16": "half",
    "bfloat16": "bfloat",
    "float32": "float",
    "float64": "double",
    "float8_e4m3fn": "i8",
    "float8_e5m2": "i8",
}


def is_cast(node: Node) -> bool:
    """Return whether a node is a cast that code can be generated for.

    8-bit floats are only moved as bytes; the reference converts them.
    """
    return node.prim is CAST and "s" not in (node.dtype.kind, node.inputs[0].dtype.kind)


def memory_type(dtype: DType) -> str:
    """Return the LLVM type of an element in memory."""
    found = _MEMORY.get(dtype.name)
    if found is None:
        raise Unsupported(f"the native engine does not compute with {dtype.name}; it does with {', '.join(_MEMORY)}")
    return found


def compute_type(dtype: DType) -> str:
    """Return the LLVM type in which an element is computed."""
    if dtype is D.bool_:
        return "i1"
    if dtype is D.float16 or dtype is D.bfloat16:
        return "float"
    return memory_type(dtype)


def literal(value: Any, dtype: DType) -> str:
    """Return a number as an LLVM literal of the type in which it is computed."""
    kind = compute_type(dtype)
    if kind == "i1":
        return "true" if value else "false"
    if kind == "float":
        rounded = float(np.asarray(value).astype(dtype.numpy).astype(np.float32))
        return "0x" + struct.pack(">d", rounded).hex().upper()
    if kind == "double":
        return "0x" + struct.pack(">d", float(value)).hex().upper()
    bits = int(np.asarray(value).astype(dtype.numpy)) if not isinstance(value, int) else value
    return str(bits & ((1 << dtype.bits) - 1))


class Emitter:
    """The text of one function body; `lanes` is the vector width."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        self.lines: list[str] = []
        self.counter = 0
        self.math: set[tuple[str, str, int]] = set()
        self.declares: set[str] = set()
        self.block = "entry"
        # What values of 16-bit floats were widened from.
        self.narrowed: dict[str, tuple[str, DType]] = {}

    def name(self) -> str:
        self.counter += 1
        return f"%v{self.counter}"

    def put(self, text: str) -> str:
        """Append an instruction and return the name of its result."""
        result = self.name()
        self.lines.append(f"  {result} = {text}")
        return result

    def do(self, text: str) -> None:
        """Append an instruction without a result."""
        self.lines.append(f"  {text}")

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")
        self.block = name

    def vector(self, element: str) -> str:
        return f"<{self.lanes} x {element}>"

    def splat(self, value: str, element: str) -> str:
        kind = self.vector(element)
        first = self.put(f"insertelement {kind} undef, {element} {value}, i32 0")
        return self.put(f"shufflevector {kind} {first}, {kind} undef, <{self.lanes} x i32> zeroinitializer")

    def call(self, kind: str, function: str, *args: str) -> str:
        return self.put(f"call {kind} @{function}({', '.join(args)})")

    def intrinsic(self, kind: str, name: str, types: list[str], values: list[str]) -> str:
        """Append a call of an intrinsic and declare it; return the name of its result.

        `kind` is the type of the result, `name` that of the intrinsic; `types` and `values` are
        those of its arguments.
        """
        self.declares.add(f"declare {kind} @{name}({', '.join(types)})")
        return self.call(kind, name, *[f"{t} {v}" for t, v in zip(types, values)])


def suffix(kind: str) -> str:
    """Return the form that a type has in an intrinsic's name."""
    lanes = ""
    if kind.startswith("<"):
        count, kind = kind[1:-1].split(" x ")
        lanes = f"v{count}"
    return lanes + {"float": "f32", "double": "f64", "half": "f16", "bfloat": "bf16"}.get(kind, kind)


Rule = Callable[[Emitter, str, DType, list[str], list[DType]], str]
RULES: dict[str, Rule] = {}


def is_supported(name: str) -> bool:
    """Return whether code can be generated for an element-wise primitive."""
    return name in RULES


def operation(e: Emitter, name: str, wide: bool, dtype: DType, args: list[str], types: list[DType]) -> str:
    """Write an element-wise primitive and return the name of its result.

    `e` is the writer, `name` the primitive's, `args` are the operands and `types` their element
    types; the result has type `dtype`. With `wide` the operands are vectors, otherwise scalars.
    """
    kind = compute_type(types[-1] if types else dtype)
    return RULES[name](e, e.vector(kind) if wide else kind, dtype, args, types)


def _floats(float_op: str, int_op: str) -> Rule:
    def rule(e: Emitter, kind: str, dtype: DType, a: list[str], types: list[DType]) -> str:
        return e.put(f"{float_op if types[0].kind == 'f' else int_op} {kind} {a[0]}, {a[1]}")

    return rule


def _compare(float_op: str, signed: str, unsigned: str) -> Rule:
    def rule(e: Emitter, kind: str, dtype: DType, a: list[str], types: list[DType]) -> str:
        k = types[0].kind
        op = f"fcmp {float_op}" if k == "f" else f"icmp {signed if k == 'i' else unsigned}"
        return e.put(f"{op} {kind} {a[0]}, {a[1]}")

    return rule


def _bits(op: str) -> Rule:
    return lambda e, kind, dtype, a, types: e.put(f"{op} {kind} {a[0]}, {a[1]}")


def _constant(e: Emitter, kind: str, text: str) -> str:
    if not kind.startswith("<"):
        return text
    element = kind[1:-1].split(" x ")[1]
    return f"<{', '.join([f'{element} {text}'] * e.lanes)}>"


def _number(e: Emitter, kind: str, dtype: DType, value: Any) -> str:
    return _constant(e, kind, literal(value, dtype))


def _mask(kind: str) -> str:
    return f"<{kind[1:-1].split(' x ')[0]} x i1>" if kind.startswith("<") else "i1"


def choose(e: Emitter, kind: str, condition: str, x: str, y: str) -> str:
    """Write a `select` and return the name of its result: `x` where `condition` holds, else `y`.

    `e` is the writer, `kind` the LLVM type of `x` and `y`.
    """
    return e.put(f"select {_mask(kind)} {condition}, {kind} {x}, {kind} {y}")


def extreme(e: Emitter, kind: str, dtype: DType, x: str, y: str, largest: bool) -> str:
    """Write the larger of `x` and `y`, or the smaller unless `largest`; NaN if either is.

    `e` is the writer, `kind` the LLVM type of both and `dtype` their element type.
    """
    if dtype.kind == "f":
        better = e.put(f"fcmp {'ogt' if largest else 'olt'} {kind} {x}, {y}")
        nan = e.put(f"fcmp uno {kind} {x}, {x}")
        return choose(e, kind, e.put(f"or {_mask(kind)} {better}, {nan}"), x, y)
    if dtype.kind == "b":
        return e.put(f"{'or' if largest else 'and'} {kind} {x}, {y}")
    op = ("sgt" if largest else "slt") if dtype.kind == "i" else ("ugt" if largest else "ult")
    return choose(e, kind, e.put(f"icmp {op} {kind} {x}, {y}"), x, y)


def _neg(e: Emitter, kind: str, dtype: DType, a: list[str], types: list[DType]) -> str:
    return e.put(f"fneg {kind} {a[0]}") if dtype.kind == "f" else e.put(f"sub {kind} {_constant(e, kind, '0')}, {a[0]}")


def _sqrt(e: Emitter, kind: str, dtype: DType, a: list[str], types: list[DType]) -> str:
    return e.intrinsic(kind, f"llvm.sqrt.{suffix(kind)}", [kind], [a[0]])


def _rint(e: Emitter, kind: str, dtype: DType, a: list[str], types: list[DType]) -> str:
    """Write the nearest whole numbers, halves to even.

    The last bit of a sum with 2**23 is 1, in float64 with 2**52; from there on all numbers are
    whole.
    """
    if dtype.kind != "f" or target().rounds(64 if dtype is D.float64 else 32):
        return e.intrinsic(kind, f"llvm.rint.{suffix(kind)}", [kind], [a[0]])
    wide = D.float64 if dtype is D.float64 else D.float32
    large = _number(e, kind, wide, 2.0 ** (52 if wide is D.float64 else 23))
    size = e.intrinsic(kind, f"llvm.fabs.{suffix(kind)}", [kind], [a[0]])
    whole = e.put(f"fsub {kind} {e.put(f'fadd {kind} {size}, {large}')}, {large}")
    found = choose(e, kind, e.put(f"fcmp olt {kind} {size}, {large}"), whole, size)
    return e.intrinsic(kind, f"llvm.copysign.{suffix(kind)}", [kind, kind], [found, a[0]])


def _whole(name: str) -> Rule:
    """Return the rule of floor, ceil or trunc, by way of `_rint` where no instruction does it."""

    def rule(e: Emitter, kind: str, dtype: DType, a: list[str], types: list[DType]) -> str:
        if dtype.kind != "f" or target().rounds(64 if dtype is D.float64 else 32):
            return e.intrinsic(kind, f"llvm.{name}.{suffix(kind)}", [kind], [a[0]])
        x = e.intrinsic(kind, f"llvm.fabs.{suffix(kind)}", [kind], [a[0]]) if name == "trunc" else a[0]
        near = _rint(e, kind, dtype, [x], types)
        one = _number(e, kind, dtype, -1.0 if name == "ceil" else 1.0)
        beyond = e.put(f"fcmp {'olt' if name == 'ceil' else 'ogt'} {kind} {near}, {x}")
        found = choose(e, kind, beyond, e.put(f"fsub {kind} {near}, {one}"), near)
        return e.intrinsic(kind, f"llvm.copysign.{suffix(kind)}", [kind, kind], [found, a[0]])

    return rule


def _abs(e: Emitter, kind: str, dtype: DType, a: list[str], types: list[DType]) -> str:
    if dtype.kind == "f":
        return e.intrinsic(kind, f"llvm.fabs.{suffix(kind)}", [kind], [a[0]])
    if dtype.kind == "u":
        return a[0]
    negative = e.put(f"icmp slt {kind} {a[0]}, {_constant(e, kind, '0')}")
    return choose(e, kind, negative, e.put(f"sub {kind} {_constant(e, kind, '0')}, {a[0]}"), a[0])


def _sign(e: Emitter, kind: str, dtype: DType, a: list[str], types: list[DType]) -> str:
    zero, one = _number(e, kind, dtype, 0), _number(e, kind, dtype, 1)
    if dtype.kind == "u":
        return choose(e, kind, e.put(f"icmp ne {kind} {a[0]}, {zero}"), one, zero)
    up = e.put(f"{'fcmp ogt' if dtype.kind == 'f' else 'icmp sgt'} {kind} {a[0]}, {zero}")
    down = e.put(f"{'fcmp olt' if dtype.kind == 'f' else 'icmp slt'} {kind} {a[0]}, {zero}")
    rest = a[0] if dtype.kind == "f" else zero
    return choose(e, kind, up, one, choose(e, kind, down, _number(e, kind, dtype, -1), rest))


def _division(floored: bool) -> Rule:
    """Return the rule of an integer division without traps: (quotient, remainder).

    The quotient is rounded towards minus infinity if `floored`, else towards zero.
    """

    def rule(e: Emitter, kind: str, dtype: DType, x: str, y: str) -> tuple[str, str, str]:
        zero, one = _number(e, kind, dtype, 0), _number(e, kind, dtype, 1)
        void = e.put(f"icmp eq {kind} {y}, {zero}")
        safe = choose(e, kind, void, one, y)
        if dtype.kind == "u":
            q, r = e.put(f"udiv {kind} {x}, {safe}"), e.put(f"urem {kind} {x}, {safe}")
            return void, q, r
        minus = e.put(f"icmp eq {kind} {y}, {_number(e, kind, dtype, -1)}")
        safe = choose(e, kind, minus, one, safe)
        q, r = e.put(f"sdiv {kind} {x}, {safe}"), e.put(f"srem {kind} {x}, {safe}")
        q = choose(e, kind, minus, e.put(f"sub {kind} {zero}, {x}"), q)
        if floored:
            uneven = e.put(f"icmp ne {kind} {r}, {zero}")
            signs = e.put(f"icmp slt {kind} {e.put(f'xor {kind} {r}, {y}')}, {zero}")
            fix = e.put(f"and {_mask(kind)} {uneven}, {signs}")
            q = choose(e, kind, fix, e.put(f"sub {kind} {q}, {one}"), q)
            r = choose(e, kind, fix, e.put(f"add {kind} {r}, {y}"), r)
        return void, q, r

    return rule  # type: ignore[return-value]


_floored: Any = _division(True)
_truncated: Any = _division(False)


def _fmod_parts(e: Emitter, kind: str, x: str, y: str) -> str:
    # frem has no vector form; in float64 a float32 quotient's truncation is exact enough for |x/y|
    # < 2**52.
    lanes = e.lanes if kind.startswith("<") else 1
    if kind == "float" or kind.endswith("float>"):
        double = f"<{lanes} x double>" if kind.startswith("<") else "double"
        wx, wy = e.put(f"fpext {kind} {x} to {double}"), e.put(f"fpext {kind} {y} to {double}")
        return e.put(f"fptrunc {double} {_fmod_double(e, double, wx, wy)} to {kind}")
    return _fmod_double(e, kind, x, y)


def _fmod_double(e: Emitter, kind: str, x: str, y: str) -> str:
    return e.put(f"frem {kind} {x}, {y}")


def _floor_div(e: Emitter, kind: str, dtype: DType, a: list[str], types: list[DType]) -> str:
    if dtype.kind != "f":
        void, q, _ = _floored(e, kind, dtype, a[0], a[1])
        return choose(e, kind, void, _number(e, kind, dtype, 0), q)
    # As Python: the quotient of x less its remainder, so that it is exact at multiples, and 1 less
    # where their signs differ.
    zero = _number(e, kind, dtype, 0)
    r = _fmod_parts(e, kind, a[0], a[1])
    q = e.put(f"fdiv {kind} {e.put(f'fsub {kind} {a[0]}, {r}')}, {a[1]}")
    rounded = _rint(e, kind, dtype, [q], types)
    uneven = e.put(f"fcmp une {kind} {r}, {zero}")
    low_r, low_y = e.put(f"fcmp olt {kind} {r}, {zero}"), e.put(f"fcmp olt {kind} {a[1]}, {zero}")
    fix = e.put(f"and {_mask(kind)} {uneven}, {e.put(f'xor {_mask(kind)} {low_r}, {low_y}')}")
    rounded = choose(e, kind, fix, e.put(f"fsub {kind} {rounded}, {_number(e, kind, dtype, 1)}"), rounded)
    plain = e.put(f"fdiv {kind} {a[0]}, {a[1]}")
    signed_zero = e.intrinsic(kind, f"llvm.copysign.{suffix(kind)}", [kind, kind], [zero, plain])
    rounded = choose(e, kind, e.put(f"fcmp oeq {kind} {rounded}, {zero}"), signed_zero, rounded)
    by_zero = e.put(f"fcmp oeq {kind} {a[1]}, {_number(e, kind, dtype, 0)}")
    return choose(e, kind, by_zero, plain, rounded)


def _mod(e: Emitter, kind: str, dtype: DType, a: list[str], types: list[DType]) -> str:
    if dtype.kind != "f":
        void, _, r = _floored(e, kind, dtype, a[0], a[1])
        return choose(e, kind, void, _number(e, kind, dtype, 0), r)
    zero = _number(e, kind, dtype, 0)
    r = _fmod_parts(e, kind, a[0], a[1])
    uneven = e.put(f"fcmp une {kind} {r}, {zero}")
    low_r, low_y = e.put(f"fcmp olt {kind} {r}, {zero}"), e.put(f"fcmp olt {kind} {a[1]}, {zero}")
    differ = e.put(f"xor {_mask(kind)} {low_r}, {low_y}")
    fix = e.put(f"and {_mask(kind)} {uneven}, {differ}")
    moved = choose(e, kind, fix, e.put(f"fadd {kind} {r}, {a[1]}"), r)
    even = e.intrinsic(kind, f"llvm.copysign.{suffix(kind)}", [kind, kind], [zero, a[1]])
    return choose(e, kind, uneven, moved, even)


def _fmod(e: Emitter, kind: str, dtype: DType, a: list[str], types: list[DType]) -> str:
    if dtype.kind != "f":
        void, _, r = _truncated(e, kind, dtype, a[0], a[1])
        return choose(e, kind, void, _number(e, kind, dtype, 0), r)
    return _fmod_parts(e, kind, a[0], a[1])


def _math(name: str) -> Rule:
    def rule(e: Emitter, kind: str, dtype: DType, a: list[str], types: list[DType]) -> str:
        element = "f64" if kind.endswith("double") or kind.endswith("double>") else "f32"
        lanes = e.lanes if kind.startswith("<") else 1
        e.math.add((name, element, lanes))
        return e.call(kind, vector_math.symbol(name, element, lanes), *[f"{kind} {v}" for v in a])

    return rule


def _integer_power(e: Emitter, kind: str, dtype: DType, a: list[str]) -> str:
    # Square and multiply over every bit of the exponent; negative exponents leave only 1 and -1.
    x, n = a
    one, zero = _number(e, kind, dtype, 1), _number(e, kind, dtype, 0)
    result, base, left = one, x, n
    for _ in range(dtype.bits):
        odd = e.put(f"icmp ne {kind} {e.put(f'and {kind} {left}, {one}')}, {zero}")
        result = choose(e, kind, odd, e.put(f"mul {kind} {result}, {base}"), result)
        base = e.put(f"mul {kind} {base}, {base}")
        left = e.put(f"lshr {kind} {left}, {one}")
    if dtype.kind == "u":
        return result
    minus = _number(e, kind, dtype, -1)
    even = e.put(f"icmp eq {kind} {e.put(f'and {kind} {n}, {one}')}, {zero}")
    repeat = choose(e, kind, e.put(f"icmp eq {kind} {x}, {minus}"), choose(e, kind, even, one, minus), zero)
    repeat = choose(e, kind, e.put(f"icmp eq {kind} {x}, {one}"), one, repeat)
    return choose(e, kind, e.put(f"icmp slt {kind} {n}, {zero}"), repeat, result)


def _pow(e: Emitter, kind: str, dtype: DType, a: list[str], types: list[DType]) -> str:
    if dtype.kind == "f":
        return _math("pow")(e, kind, dtype, a, types)
    return _integer_power(e, kind, dtype, a)


def _is_finite(e: Emitter, kind: str, dtype: DType, a: list[str], types: list[DType]) -> str:
    size = e.intrinsic(kind, f"llvm.fabs.{suffix(kind)}", [kind], [a[0]])
    return e.put(f"fcmp olt {kind} {size}, {_constant(e, kind, '0x7FF0000000000000')}")


def _is_inf(e: Emitter, kind: str, dtype: DType, a: list[str], types: list[DType]) -> str:
    size = e.intrinsic(kind, f"llvm.fabs.{suffix(kind)}", [kind], [a[0]])
    return e.put(f"fcmp oeq {kind} {size}, {_constant(e, kind, '0x7FF0000000000000')}")


def _not(e: Emitter, kind: str, dtype: DType, a: list[str], types: list[DType]) -> str:
    return e.put(f"xor {kind} {a[0]}, {_constant(e, kind, 'true' if types[0] is D.bool_ else '-1')}")


def _round(known: int) -> Rule:
    def rule(e: Emitter, kind: str, dtype: DType, a: list[str], types: list[DType]) -> str:
        wide = kind.startswith("<")
        return widen(e, wide, narrow(e, wide, a[0], dtype, known), dtype)

    return rule


def _select(e: Emitter, kind: str, dtype: DType, a: list[str], types: list[DType]) -> str:
    return choose(e, kind, a[0], a[1], a[2])


def cast(e: Emitter, wide: bool, value: str, source: DType, target: DType) -> str:
    """Write a conversion from the type `source` to `target` and return the name of its result.

    `e` is the writer; `value` is a vector where `wide`, else a scalar. Floats become integers by
    truncation and saturate.
    """
    old, new = compute_type(source), compute_type(target)
    shape = e.vector if wide else (lambda t: t)
    if target is D.bool_:
        if source is D.bool_:
            return value
        zero = _constant(e, shape(old), literal(0, source))
        return e.put(f"{'fcmp une' if source.kind == 'f' else 'icmp ne'} {shape(old)} {value}, {zero}")
    if source.kind == "f" and target.kind == "f":
        if target in (D.float16, D.bfloat16) and source is not target:
            # By way of float32: the conversion from double is a library call on most machines.
            if old == "double":
                value, old = e.put(f"fptrunc {shape(old)} {value} to {shape('float')}"), "float"
            return widen(e, wide, narrow(e, wide, value, target), target)
        if old == new:
            return value
        return e.put(f"{'fpext' if new == 'double' else 'fptrunc'} {shape(old)} {value} to {shape(new)}")
    if source.kind == "f":
        op = "fptosi" if target.kind == "i" else "fptoui"
        kind, origin = shape(new), shape(old)
        return e.intrinsic(kind, f"llvm.{op}.sat.{suffix(kind)}.{suffix(origin)}", [origin], [value])
    if target.kind == "f":
        op = "uitofp" if source.kind in "bu" else "sitofp"
        result = e.put(f"{op} {shape(old)} {value} to {shape(new)}")
        return cast(e, wide, result, D.float32, target) if target in (D.float16, D.bfloat16) else result
    old_bits = 1 if source is D.bool_ else source.bits
    if old_bits == target.bits:
        return value
    op = "trunc" if old_bits > target.bits else "zext" if source.kind in "bu" else "sext"
    return e.put(f"{op} {shape(old)} {value} to {shape(new)}")


RULES.update(
    add=_floats("fadd", "add"),
    sub=_floats("fsub", "sub"),
    mul=_floats("fmul", "mul"),
    div=_floats("fdiv", "sdiv"),
    neg=_neg,
    abs=_abs,
    sign=_sign,
    floor=_whole("floor"),
    ceil=_whole("ceil"),
    trunc=_whole("trunc"),
    rint=_rint,
    sqrt=_sqrt,
    floor_div=_floor_div,
    mod=_mod,
    fmod=_fmod,
    pow=_pow,
    eq=_compare("oeq", "eq", "eq"),
    ne=_compare("une", "ne", "ne"),
    lt=_compare("olt", "slt", "ult"),
    le=_compare("ole", "sle", "ule"),
    gt=_compare("ogt", "sgt", "ugt"),
    ge=_compare("oge", "sge", "uge"),
    maximum=lambda e, k, d, a, t: extreme(e, k, d, a[0], a[1], True),
    minimum=lambda e, k, d, a, t: extreme(e, k, d, a[0], a[1], False),
    logical_and=_bits("and"),
    logical_or=_bits("or"),
    logical_xor=_bits("xor"),
    bitwise_and=_bits("and"),
    bitwise_or=_bits("or"),
    bitwise_xor=_bits("xor"),
    logical_not=_not,
    bitwise_not=_not,
    shift_left=_bits("shl"),
    shift_right=lambda e, k, d, a, t: e.put(f"{'ashr' if d.kind == 'i' else 'lshr'} {k} {a[0]}, {a[1]}"),
    is_nan=lambda e, k, d, a, t: e.put(f"fcmp uno {k} {a[0]}, {a[0]}"),
    is_inf=_is_inf,
    is_finite=_is_finite,
    select=_select,
    after=lambda e, k, d, a, t: a[0],
    identity=lambda e, k, d, a, t: a[0],
    stop_gradient=lambda e, k, d, a, t: a[0],
    round_16=_round(ANY),
    round_sum_16=_round(COMPUTED),
)
for _name in (
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
    "erf",
    "erfc",
    "erfinv",
    "sigmoid",
    "lgamma",
    "digamma",
    "atan2",
    "rsqrt",
):
    RULES[_name] = _math(_name)
