"""Requantisation on vectors: int32 sums by fixed-point multiplication to another scale.

A level is floor((x m + 2**(p - 1)) / 2**p) + Z for a multiplier m of 31 bits and p = 31 - s places.
Vectors multiply every second lane to 64 bits, twice. Two operations, by what is known of all
places:

    rescale_high    p >= 33. Only the upper halves h = floor(x m / 2**32) are needed, as rounding
                    and zero point are whole numbers beside them; with q = p - 32 the level is
                    floor((h + 2**(q - 1) + Z 2**q) / 2**q), in 32 bits.
    rescale_whole   p >= 31: shifted in 64 bits; the result has 32.

The operands are x, m, s, Z and the ends of the levels.
"""

from __future__ import annotations

from mycel._src.engines.native.kernels.instruction_emitter import RULES, Emitter, choose
from mycel._src.engines.native.llvm.target import target
from mycel._src.foundation.dtype import DType, int16, int32

__all__ = ["HIGH", "WHOLE", "high_steps", "narrowed"]

HIGH, WHOLE = "rescale_high", "rescale_whole"


def _splat(kind: str, value: int) -> str:
    if not kind.startswith("<"):
        return str(value)
    count, element = kind[1:-1].split(" x ")
    return "<" + ", ".join([f"{element} {value}"] * int(count)) + ">"


class _Halves:
    """Vectors of 32-bit lanes as two vectors of every second lane in 64 bits, or halves of them.

    AArch64 multiplies lanes of halves, x86 every second lane.
    """

    def __init__(self, e: Emitter, kind: str) -> None:
        self.e, self.kind = e, kind
        self.lanes = int(kind[1:-1].split(" x ")[0])
        self.wide = f"<{self.lanes // 2} x i64>"
        self.turns = target().is_family("x86_64")

    def of(self, value: str) -> list[str]:
        """Return both vectors of a value."""
        e, half = self.e, self.lanes // 2
        if self.turns:
            v = e.put(f"bitcast {self.kind} {value} to {self.wide}")
            places = _splat(self.wide, 32)
            low = e.put(f"ashr {self.wide} {e.put(f'shl {self.wide} {v}, {places}')}, {places}")
            return [low, e.put(f"ashr {self.wide} {v}, {places}")]
        found = []
        for start in (0, half):
            order = ", ".join(f"i32 {start + k}" for k in range(half))
            part = e.put(f"shufflevector {self.kind} {value}, {self.kind} poison, <{half} x i32> <{order}>")
            found.append(e.put(f"sext <{half} x i32> {part} to {self.wide}"))
        return found

    def joined(self, parts: list[str], upper: bool) -> str:
        """Return the upper or lower 32 bits of all lanes, in their order."""
        e, n = self.e, self.lanes
        a, b = (e.put(f"bitcast {self.wide} {p} to {self.kind}") for p in parts)
        if self.turns:
            places = [k - k % 2 + int(upper) + (n if k % 2 else 0) for k in range(n)]
        else:
            places = [2 * k + int(upper) for k in range(n)]
        order = ", ".join(f"i32 {p}" for p in places)
        return e.put(f"shufflevector {self.kind} {a}, {self.kind} {b}, <{n} x i32> <{order}>")


def _clamped(e: Emitter, kind: str, value: str, dtype: DType, low: str, high: str) -> str:
    value = choose(e, kind, e.put(f"icmp sgt {kind} {value}, {low}"), value, low)
    value = choose(e, kind, e.put(f"icmp slt {kind} {value}, {high}"), value, high)
    narrow = f"i{dtype.bits}" if not kind.startswith("<") else kind.replace("i32", f"i{dtype.bits}")
    if narrow == kind or dtype.bits == 16 and "i16" in kind:
        return value
    return e.put(f"trunc {kind} {value} to {narrow}")


def high_steps(e: Emitter, kind: str, x: str, m: str, s: str, zero: str) -> str:
    """Return the levels of sums `x` by `rescale_high` in 32 bits, before they are cut to their
    ends.

    `e` writes them, `kind` is the type of a vector, `m` and `s` are multipliers and shifts, `zero`
    zero points.
    """
    if kind == "<4 x i32>" and (names := _doubling()):
        upper = e.intrinsic(kind, names[0], [kind] * 2, [x, m])
        return e.put(f"add {kind} {e.intrinsic(kind, names[1], [kind] * 2, [upper, s])}, {zero}")
    halves = _Halves(e, kind)
    products = [e.put(f"mul {halves.wide} {p}, {q}") for p, q in zip(halves.of(x), halves.of(m))]
    found = halves.joined(products, True)
    places = e.put(f"sub {kind} {_splat(kind, -1)}, {s}")
    half = e.put(f"shl {kind} {_splat(kind, 1)}, {e.put(f'sub {kind} {places}, {_splat(kind, 1)}')}")
    more = e.put(f"add {kind} {half}, {e.put(f'shl {kind} {zero}, {places}')}")
    return e.put(f"ashr {kind} {e.put(f'add {kind} {found}, {more}')}, {places}")


def _doubling() -> tuple[str, str] | None:
    """Return NEON's upper half of a doubled product, and its shift that rounds.

    Returns None where the processor has none. The half of such a product is that of the
    product with one bit more, and rounding shifts by negative numbers go to the right.
    """
    if target().is_family("armv7"):
        return "llvm.arm.neon.vqdmulh.v4i32", "llvm.arm.neon.vrshifts.v4i32"
    if target().is_family("aarch64") or target().is_family("arm64"):
        return "llvm.aarch64.neon.sqdmulh.v4i32", "llvm.aarch64.neon.srshl.v4i32"
    return None


def narrowed(e: Emitter, values: list[str], dtype: DType, ends: tuple[int, int]) -> str:
    """Return vectors of 32-bit levels, `values`, as one of bytes of a `dtype`, cut to their `ends`.

    `e` writes the code.

    Where there are instructions that narrow two vectors to one, channels come in the order that
    `operations.convolution.depthwise_channels_last_int8_kernel.order` has, and leave in their own.
    """
    n = len(values)
    lanes = e.lanes
    kind, wide = f"<{lanes} x i32>", f"<{lanes * n} x i8>"
    signed = dtype.kind == "i"
    if not target().is_family("x86_64"):
        values = [_clamped(e, kind, v, int32, *[_splat(kind, end) for end in ends]) for v in values]
        return e.put(f"trunc <{lanes * n} x i32> {_joined(e, values, lanes, 'i32')} to {wide}")
    half = f"<{2 * lanes} x i16>"
    name = _PACKS[lanes]
    halves = [e.intrinsic(half, f"llvm.x86.{name[0]}", [kind] * 2, [a, b]) for a, b in zip(values[::2], values[1::2])]
    if n == 2:
        cut = _clamped(e, half, halves[0], int16, *[_splat(half, end) for end in ends])
        return e.put(f"trunc {half} {cut} to {wide}")
    made = e.intrinsic(wide, f"llvm.x86.{name[1 if signed else 2]}", [half] * 2, halves)
    least, most = (-128, 127) if signed else (0, 255)
    for end, edge, test in ((ends[0], least, "gt"), (ends[1], most, "lt")):
        if end != edge:
            limit = _splat(wide, end)
            better = e.put(f"icmp {'s' if signed else 'u'}{test} {wide} {made}, {limit}")
            mask = wide.replace("i8", "i1")
            made = e.put(f"select {mask} {better}, {wide} {made}, {wide} {limit}")
    return made


_PACKS = {
    4: ("sse2.packssdw.128", "sse2.packsswb.128", "sse2.packuswb.128"),
    8: ("avx2.packssdw", "avx2.packsswb", "avx2.packuswb"),
    16: ("avx512.packssdw.512", "avx512.packsswb.512", "avx512.packuswb.512"),
}


def _joined(e: Emitter, values: list[str], lanes: int, element: str) -> str:
    """Return vectors one behind the other as one."""
    while len(values) > 1:
        kind, order = f"<{lanes} x {element}>", ", ".join(f"i32 {k}" for k in range(2 * lanes))
        values = [
            e.put(f"shufflevector {kind} {a}, {kind} {b}, <{2 * lanes} x i32> <{order}>")
            for a, b in zip(values[::2], values[1::2])
        ]
        lanes *= 2
    return values[0]


def _high(e: Emitter, kind: str, dtype: DType, a: list[str], types: list[DType]) -> str:
    if not kind.startswith("<"):
        return _whole(e, kind, dtype, a, types)
    return _clamped(e, kind, high_steps(e, kind, *a[:4]), dtype, a[4], a[5])


def _whole(e: Emitter, kind: str, dtype: DType, a: list[str], types: list[DType]) -> str:
    x, m, s, zero, low, high = a
    if not kind.startswith("<"):
        wide, parts = "i64", [[e.put(f"sext i32 {v} to i64")] for v in (x, m, s)]
    else:
        halves = _Halves(e, kind)
        wide, parts = halves.wide, [halves.of(v) for v in (x, m, s)]
    found = []
    for one, factor, shift in zip(*parts):
        places = e.put(f"sub {wide} {_splat(wide, 31)}, {shift}")
        half = e.put(f"shl {wide} {_splat(wide, 1)}, {e.put(f'sub {wide} {places}, {_splat(wide, 1)}')}")
        made = e.put(f"add {wide} {e.put(f'mul {wide} {one}, {factor}')}, {half}")
        found.append(e.put(f"ashr {wide} {made}, {places}"))
    if not kind.startswith("<"):
        total = e.put(f"add i64 {found[0]}, {e.put(f'sext i32 {zero} to i64')}")
        ends = [e.put(f"sext i32 {v} to i64") for v in (low, high)]
        total = choose(e, "i64", e.put(f"icmp sgt i64 {total}, {ends[0]}"), total, ends[0])
        total = choose(e, "i64", e.put(f"icmp slt i64 {total}, {ends[1]}"), total, ends[1])
        return e.put(f"trunc i64 {total} to i{dtype.bits}")
    total = halves.joined(found, False)
    return _clamped(e, kind, e.put(f"add {kind} {total}, {zero}"), dtype, low, high)


RULES[HIGH], RULES[WHOLE] = _high, _whole
