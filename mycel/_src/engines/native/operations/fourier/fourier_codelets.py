"""FFT codelets: small transforms as straight-line code over vectors of complex numbers.

A complex number is a pair of names of vectors. An odd prime is transformed by sums and differences
of the elements that lie opposite each other, of which the sums meet cosines and the differences
sines; a product a b by transforms of a, a turn of each element, and transforms of b (Cooley and
Tukey, 1965). Turns by multiples of 1/8 cost no multiplication or one. All are forward ones, with
exp(-2 pi i k n / N).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

from mycel._src.compiler.prims.fourier import PRIMES
from mycel._src.engines.native.llvm.function_builder import Code

__all__ = ["RADICES", "Lanes", "Number"]

Number = tuple[str, str]

# The sizes of codelets, and for those that are products their factors.
_FACTORS = {4: (2, 2), 6: (2, 3), 8: (4, 2), 9: (3, 3), 10: (2, 5), 12: (4, 3), 15: (3, 5), 16: (4, 4)}
RADICES = tuple(sorted((*PRIMES, *_FACTORS)))


class Lanes:
    """A writer of arithmetic on vectors of `lanes` elements of an LLVM type."""

    def __init__(self, code: Code, element: str, lanes: int) -> None:
        self.code, self.element, self.lanes = code, element, lanes
        self.vector = f"<{lanes} x {element}>"

    def number(self, value: float) -> str:
        """Return a constant as LLVM writes it."""
        if self.element == "float":
            value = struct.unpack("<f", struct.pack("<f", value))[0]
        return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"

    def constant(self, value: float) -> str:
        """Return a vector of one constant."""
        return "<" + ", ".join([f"{self.element} {self.number(value)}"] * self.lanes) + ">"

    def splat(self, value: str) -> str:
        """Return a vector of one number."""
        first = self.code.put(f"insertelement {self.vector} poison, {self.element} {value}, i32 0")
        zeros = f"<{self.lanes} x i32> zeroinitializer"
        return self.code.put(f"shufflevector {self.vector} {first}, {self.vector} poison, {zeros}")

    def op(self, name: str, a: str, b: str) -> str:
        return self.code.put(f"{name} contract {self.vector} {a}, {b}")

    def add(self, a: str, b: str) -> str:
        return self.op("fadd", a, b)

    def sub(self, a: str, b: str) -> str:
        return self.op("fsub", a, b)

    def mul(self, a: str, b: str) -> str:
        return self.op("fmul", a, b)

    def neg(self, a: str) -> str:
        return self.code.put(f"fneg {self.vector} {a}")

    def scaled(self, a: str, factor: float) -> str:
        return self.mul(a, self.constant(factor))

    # Complex numbers.

    def plus(self, a: Number, b: Number) -> Number:
        return self.add(a[0], b[0]), self.add(a[1], b[1])

    def minus(self, a: Number, b: Number) -> Number:
        return self.sub(a[0], b[0]), self.sub(a[1], b[1])

    def times(self, a: Number, b: Number) -> Number:
        """Return the product of two complex numbers."""
        re = self.sub(self.mul(a[0], b[0]), self.mul(a[1], b[1]))
        return re, self.add(self.mul(a[0], b[1]), self.mul(a[1], b[0]))

    def turned(self, a: Number, k: int, n: int) -> Number:
        """Return a number multiplied by exp(-2 pi i k / n)."""
        k %= n
        re, im = a
        if 8 * k % n == 0:
            quarter, odd = divmod(8 * k // n, 2)
            if odd:
                # (1 - i) / sqrt(2)
                half = math.sqrt(0.5)
                re, im = self.scaled(self.add(re, im), half), self.scaled(self.sub(im, re), half)
            for _ in range(quarter):
                # -i, which the additions that follow take up as a change of sign.
                re, im = im, self.neg(re)
            return re, im
        cosine, sine = math.cos(2 * math.pi * k / n), -math.sin(2 * math.pi * k / n)
        return (
            self.sub(self.scaled(re, cosine), self.scaled(im, sine)),
            self.add(self.scaled(re, sine), self.scaled(im, cosine)),
        )

    # Transforms.

    def transform(self, x: Sequence[Number]) -> list[Number]:
        """Return the transform of as many numbers as one of `RADICES`, or of one."""
        n = len(x)
        if n == 1:
            return list(x)
        if n == 2:
            return [self.plus(x[0], x[1]), self.minus(x[0], x[1])]
        if n in PRIMES:
            return self._prime(x)
        a, b = _FACTORS[n]
        first = [self.transform(x[j::b]) for j in range(b)]
        found: list[Number] = [("", "")] * n
        for p in range(a):
            found[p::a] = self.transform([self.turned(first[j][p], j * p, n) for j in range(b)])
        return found

    def _prime(self, x: Sequence[Number]) -> list[Number]:
        n, half = len(x), range(1, len(x) // 2 + 1)
        sums = [self.plus(x[j], x[n - j]) for j in half]
        gaps = [self.minus(x[j], x[n - j]) for j in half]
        zero = x[0]
        for s in sums:
            zero = self.plus(zero, s)
        found = [zero] * n
        for k in half:
            near, far = x[0], ("", "")
            for j, s, d in zip(half, sums, gaps):
                turn = 2 * math.pi * (j * k % n) / n
                near = self._more(near, s, math.cos(turn))
                far = self._more(far, d, math.sin(turn))
            found[k] = self.add(near[0], far[1]), self.sub(near[1], far[0])
            found[n - k] = self.sub(near[0], far[1]), self.add(near[1], far[0])
        return found

    def _more(self, total: Number, x: Number, factor: float) -> Number:
        """Return `total` (nothing, if its names are empty) and `x` times a factor."""
        parts = [self.scaled(v, factor) for v in x]
        return (parts[0], parts[1]) if not total[0] else (self.add(total[0], parts[0]), self.add(total[1], parts[1]))
