"""Building blocks of attention kernels in LLVM IR: tile products, transposes, exponentials.

*Products.* C (+)= A B, where rows of B and C are vectors of lanes. A tile of C, some rows of A by
some vectors of B, stays in registers while one element of each row of A meets the vectors of a row
of B. A has any two strides, so its transpose serves as well. What is in C is dropped, kept, or
multiplied by a factor for each lane.

*Turns.* A square block of as many rows as there are lanes is read, transposed in registers by
exchanging ever smaller blocks, and written. Rows and columns outside of the matrix are zeros where
they are read, and are not written.

*Exponentials* are those of `math/exponential.py` without what large arguments need: they are
differences from a row's largest score.
"""

from __future__ import annotations

from mycel._src.engines.native.kernels.codegen import NAME
from mycel._src.engines.native.llvm.function_builder import Code
from mycel._src.engines.native.llvm.target import target
from mycel._src.engines.native.math.exponential import exp_reduced, reduce
from mycel._src.engines.native.math.expression_builder import (
    Builder,
    Value,
    at_least,
    at_most,
    constant_text,
    power_of_two,
    select,
)
from mycel._src.foundation import dtype as D
from mycel._src.foundation.dtype import DType

__all__ = ["LOWEST", "Tiles", "lanes_of", "vectors"]

# Below this argument an exponential is taken to be zero, above its negative to be no larger.
LOWEST = {"f32": -87.0, "f64": -708.0}
Operand = str | int


def lanes_of(dtype: DType) -> int:
    """Return how many elements a vector has."""
    return target().vector_bytes // dtype.itemsize


def vectors() -> tuple[int, ...]:
    """Return the widths of tiles in vectors, the largest first."""
    few = target().is_family("x86_64") and "avx512f" not in target().feature_set
    return (2, 1) if few else (4, 2, 1)


def _heights(width: int) -> tuple[int, ...]:
    """Return the numbers of rows of tiles of so many vectors, the largest first."""
    if len(vectors()) == 2:
        return (4, 1) if width == 2 else (8, 1)
    return (6, 2, 1) if width == 4 else (8, 1)


class Tiles:
    """The functions of one module, made when a kernel first calls them."""

    def __init__(self, dtype: DType) -> None:
        self.kind = "f64" if dtype is D.float64 else "f32"
        self.element = "double" if dtype is D.float64 else "float"
        self.bytes = dtype.itemsize
        self.lanes = lanes_of(dtype)
        self.vector, self.mask = f"<{self.lanes} x {self.element}>", f"<{self.lanes} x i1>"
        self.numbers = f"<{self.lanes} x i32>"
        self.functions: dict[str, str] = {}
        self.declares: set[str] = set()

    # Single instructions.

    def intrinsic(self, c: Code, name: str, *operands: str) -> str:
        """Call an intrinsic on vectors; return its value."""
        full = f"llvm.{name}.v{self.lanes}{self.kind}"
        kinds = ", ".join([self.vector] * len(operands))
        self.declares.add(f"declare {self.vector} @{full}({kinds})")
        return c.put(f"call {self.vector} @{full}({', '.join(f'{self.vector} {x}' for x in operands)})")

    def number(self, value: float) -> str:
        """Return a constant of the element type."""
        return constant_text(self.kind, 1, value)

    def constant(self, value: float) -> str:
        """Return a vector with one constant in all lanes."""
        return constant_text(self.kind, self.lanes, value)

    def splat(self, c: Code, value: str, element: str = "") -> str:
        """Return a vector with `value` in all lanes."""
        vector = f"<{self.lanes} x {element or self.element}>"
        first = c.put(f"insertelement {vector} undef, {element or self.element} {value}, i32 0")
        return c.put(f"shufflevector {vector} {first}, {vector} undef, <{self.lanes} x i32> zeroinitializer")

    def below(self, c: Code, count: str) -> str:
        """Return the mask of the first `count` lanes, none if it is negative."""
        steps = ", ".join(f"i64 {k}" for k in range(self.lanes))
        return c.put(f"icmp slt <{self.lanes} x i64> <{steps}>, {self.splat(c, count, 'i64')}")

    def masked_load(self, c: Code, place: str, mask: str, element: str = "") -> str:
        """Return the vector at `place`, of which lanes outside of `mask` are zeros.

        `c` is the function that is written, `element` the type of the elements, where it is
        another.
        """
        element = element or self.element
        kind = f"<{self.lanes} x {element}>"
        short = {"float": "f32", "double": "f64"}.get(element, element)
        name = f"llvm.masked.load.v{self.lanes}{short}.p0"
        self.declares.add(f"declare {kind} @{name}(ptr, i32, {self.mask}, {kind})")
        align = self.bytes if element == self.element else 1
        return c.put(f"call {kind} @{name}(ptr {place}, i32 {align}, {self.mask} {mask}, {kind} zeroinitializer)")

    def masked_store(self, c: Code, value: str, place: str, mask: str) -> None:
        """Write, in the function `c`, the lanes of `value` that are in `mask` to `place`."""
        name = f"llvm.masked.store.v{self.lanes}{self.kind}.p0"
        self.declares.add(f"declare void @{name}({self.vector}, ptr, i32, {self.mask})")
        c.do(f"call void @{name}({self.vector} {value}, ptr {place}, i32 {self.bytes}, {self.mask} {mask})")

    def load(self, c: Code, base: str, index: str = "0") -> str:
        return c.load(self.vector, base, index, self.element, self.bytes)

    def store(self, c: Code, value: str, base: str, index: str = "0") -> None:
        """Write, in the function `c`, `value` from the element `index` after `base` on."""
        c.store(self.vector, value, base, index, self.element, self.bytes)

    def larger(self, c: Code, a: str, b: str) -> str:
        """Return the larger elements, those of `b` where either is NaN."""
        greater = c.put(f"fcmp ogt {self.vector} {a}, {b}")
        return self.select(c, greater, a, b)

    def select(self, c: Code, mask: str, a: str, b: str) -> str:
        """Return, in the function `c`, the lanes of `a` in `mask` and of `b` elsewhere."""
        return c.put(f"select {self.mask} {mask}, {self.vector} {a}, {self.vector} {b}")

    def op(self, c: Code, name: str, a: str, b: str) -> str:
        """Return what the instruction `name` gives for vectors `a` and `b`, in the function `c`."""
        return c.put(f"{name} {self.vector} {a}, {b}")

    def any(self, c: Code, mask: str) -> str:
        """Return whether any lane of a mask is true."""
        name = f"llvm.vector.reduce.or.v{self.lanes}i1"
        self.declares.add(f"declare i1 @{name}({self.mask})")
        return c.put(f"call i1 @{name}({self.mask} {mask})")

    # Functions.

    def exp(self, c: Code, x: str) -> str:
        """Return e^x; 0 far below zero, also for -inf."""
        if "exp" not in self.functions:
            b = Builder(self.lanes)
            low = LOWEST[self.kind]
            given = Value(b, "%x", self.kind)
            _, shifted, r = reduce(at_least(at_most(given, -low), low))
            made = select(given < low, 0.0, exp_reduced(r) * power_of_two(shifted))
            lines = "\n".join([*b.lines, f"  ret {self.vector} {made.name}"])
            head = f"define internal {self.vector} @attention_exp({self.vector} %x) alwaysinline nounwind {{"
            self.functions["exp"] = f"{head}\n{lines}\n}}"
            self.declares |= b.declarations
        return c.put(f"call {self.vector} @attention_exp({self.vector} {x})")

    def _call(self, c: Code, name: str, kinds: str, *operands: Operand) -> None:
        given = ", ".join(f"{kind} {x}" for kind, x in zip(kinds.split(), operands))
        c.do(f"call void @{name}({given})")

    def product(
        self,
        c: Code,
        width: int,
        rows: Operand,
        a: tuple[str, Operand, Operand],
        b: tuple[str, Operand],
        out: tuple[str, Operand],
        terms: Operand,
        keep: Operand = 0,
        factor: str = "null",
    ) -> None:
        """Add `rows` rows of A times a panel of B, of `width` vectors, to C, in the function `c`.

        `a` is the address of A with the strides of its rows and columns, `b` and `out` those of B
        and C with the strides of their rows; there are `terms` columns of A. Where `keep` is 0 the
        old values of C are dropped, else multiplied by the vectors at `factor` (by 1 without it).
        """
        scaled = factor != "null"
        name = f"attention_product{width}{'_scaled' if scaled else ''}"
        if name not in self.functions:
            self.functions[name] = self._product(name, width, scaled)
        kinds = "i64 ptr i64 i64 ptr i64 ptr i64 i64 i64 ptr"
        self._call(c, name, kinds, rows, *a, *b, *out, terms, keep, factor)

    def _product(self, name: str, width: int, scaled: bool) -> str:
        c = Code()
        heights = _heights(width)
        done = "0"
        for height in heights:
            tile = f"attention_tile{width}_{height}{'_scaled' if scaled else ''}"
            self.functions[tile] = self._tile(tile, width, height, scaled)
            left = c.op("sub i64", "%rows", done)
            whole = c.op("mul i64", c.op("sdiv i64", left, height), height) if height > 1 else left
            stop = c.op("add i64", done, whole)
            with c.loop(done, stop, height) as row:
                a = c.at(self.element, "%a", c.op("mul i64", row, "%ar"))
                out = c.at(self.element, "%c", c.op("mul i64", row, "%cr"))
                kinds = "ptr i64 i64 ptr i64 ptr i64 i64 i64 ptr"
                self._call(c, tile, kinds, a, "%ar", "%ak", "%b", "%bk", out, "%cr", "%terms", "%keep", "%factor")
            done = stop
        c.do("ret void")
        given = "i64 %rows, ptr %a, i64 %ar, i64 %ak, ptr %b, i64 %bk, ptr %c, i64 %cr, i64 %terms, i64 %keep"
        return c.function("void", name, f"{given}, ptr %factor")

    def _tile(self, name: str, width: int, height: int, scaled: bool) -> str:
        c = Code()
        rows = [c.at(self.element, "%a", c.op("mul i64", "%ar", r)) for r in range(height)]
        sums = [[c.variable(self.vector, "zeroinitializer") for _ in range(width)] for _ in range(height)]
        with c.loop("0", "%terms") as k:
            place = c.at(self.element, "%b", c.op("mul i64", k, "%bk"))
            given = [self.load(c, place, str(i * self.lanes)) for i in range(width)]
            step = c.op("mul i64", k, "%ak")
            for r in range(height):
                one = self.splat(c, c.load(self.element, rows[r], step))
                for i in range(width):
                    made = self.intrinsic(c, "fmuladd", one, given[i], c.load(self.vector, sums[r][i]))
                    c.store(self.vector, made, sums[r][i])
        fresh = c.put("icmp eq i64 %keep, 0")
        with c.when(fresh):
            for r in range(height):
                for i in range(width):
                    at = c.op("add i64", c.op("mul i64", "%cr", r), i * self.lanes)
                    self.store(c, c.load(self.vector, sums[r][i]), "%c", at)
            c.do("ret void")
            c.label(f"unused{width}")
        factors = [self.load(c, "%factor", str(i * self.lanes)) for i in range(width)] if scaled else []
        for r in range(height):
            for i in range(width):
                at = c.op("add i64", c.op("mul i64", "%cr", r), i * self.lanes)
                old, new = self.load(c, "%c", at), c.load(self.vector, sums[r][i])
                total = self.intrinsic(c, "fmuladd", old, factors[i], new) if scaled else self.op(c, "fadd", old, new)
                self.store(c, total, "%c", at)
        c.do("ret void")
        arguments = "ptr %a, i64 %ar, i64 %ak, ptr %b, i64 %bk, ptr %c, i64 %cr, i64 %terms, i64 %keep, ptr %factor"
        return c.function("void", name, arguments)

    def turned(self, c: Code, rows: list[str]) -> list[str]:
        """Return the columns of a square of vectors."""
        step = self.lanes // 2
        while step:
            made = list(rows)
            for i in range(self.lanes):
                if i & step:
                    continue
                low = [x if not x & step else self.lanes + x - step for x in range(self.lanes)]
                high = [x + step if not x & step else self.lanes + x for x in range(self.lanes)]
                for at, order in ((i, low), (i + step, high)):
                    lanes = ", ".join(f"i32 {x}" for x in order)
                    made[at] = c.put(
                        f"shufflevector {self.vector} {rows[i]}, {self.vector} {rows[i + step]}, <{self.lanes} x i32> "
                        f"<{lanes}>"
                    )
            rows, step = made, step // 2
        return rows

    def turn_in(
        self,
        c: Code,
        source: tuple[str, Operand],
        size: tuple[Operand, Operand],
        target: tuple[str, Operand],
        scale: str,
        flags: bool = False,
    ) -> None:
        """Write a square block of a matrix transposed, times `scale`, in the function `c`.

        `source` is its address with the stride of its rows, which are contiguous, and `size` how
        many rows and columns there are from there; `target` is where the transpose begins, with the
        stride of its rows, of which as many are written as there are lanes. With `flags` the
        elements are bytes.
        """
        name = "attention_turn_flags" if flags else "attention_turn_in"
        if name not in self.functions:
            self.functions[name] = self._turn_in(name, flags)
        kinds = f"ptr i64 i64 i64 ptr i64 {self.element}"
        self._call(c, name, kinds, *source, *size, *target, scale)

    def _turn_in(self, name: str, flags: bool) -> str:
        c = Code()
        columns = self.below(c, "%columns")
        element = "i8" if flags else self.element
        rows = []
        for r in range(self.lanes):
            there = self.splat(c, c.put(f"icmp sgt i64 %rows, {r}"), "i1")
            place = c.at(element, "%from", c.op("mul i64", "%stride", r))
            row = self.masked_load(c, place, c.put(f"and {self.mask} {columns}, {there}"), element)
            if flags:
                row = c.put(f"uitofp <{self.lanes} x i8> {row} to {self.vector}")
            rows.append(row)
        scale = self.splat(c, "%scale")
        for r, row in enumerate(self.turned(c, rows)):
            self.store(c, self.op(c, "fmul", row, scale), "%to", c.op("mul i64", "%step", r))
        c.do("ret void")
        given = "ptr %from, i64 %stride, i64 %rows, i64 %columns, ptr %to, i64 %step"
        return c.function("void", name, f"{given}, {self.element} %scale")

    def turn_out(
        self,
        c: Code,
        source: tuple[str, Operand],
        size: tuple[Operand, Operand],
        target: tuple[str, Operand],
        factor: str,
    ) -> None:
        """Write a square block transposed, times a number for each row of the result, in the
        function `c`.

        `source` is its address with the stride of its rows; `target` is where the result begins,
        with the stride of its rows, and `size` how many rows and columns it has from there. The
        numbers are the vector at `factor`.
        """
        if "attention_turn_out" not in self.functions:
            self.functions["attention_turn_out"] = self._turn_out("attention_turn_out")
        self._call(c, "attention_turn_out", "ptr i64 i64 i64 ptr i64 ptr", *source, *size, *target, factor)

    def _turn_out(self, name: str) -> str:
        c = Code()
        columns, factor = self.below(c, "%columns"), self.load(c, "%factor")
        rows = [
            self.op(c, "fmul", self.load(c, "%from", c.op("mul i64", "%stride", r)), factor) for r in range(self.lanes)
        ]
        for r, row in enumerate(self.turned(c, rows)):
            there = self.splat(c, c.put(f"icmp sgt i64 %rows, {r}"), "i1")
            place = c.at(self.element, "%to", c.op("mul i64", "%step", r))
            self.masked_store(c, row, place, c.put(f"and {self.mask} {columns}, {there}"))
        c.do("ret void")
        arguments = "ptr %from, i64 %stride, i64 %rows, i64 %columns, ptr %to, i64 %step, ptr %factor"
        return c.function("void", name, arguments)

    def text(self, c: Code) -> str:
        """Return the module of the kernel whose statements are those of `c`."""
        c.do("ret void")
        kernel = c.function("void", NAME, "ptr noalias readonly %words, i64 %begin, i64 %end", "")
        return "\n\n".join([kernel, *self.functions.values(), "\n".join(sorted(self.declares)), ""])
