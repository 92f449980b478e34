"""LU, Cholesky and triangular solves of many small matrices, as LLVM IR.

Threads share the matrices. One of up to `MOST` rows and columns lies in near memory, where its rows
begin at whole vectors; all elimination goes along rows, by vectors, as soon as a pivot is known.
LU exchanges rows as LAPACK does, by the first largest pivot. Cholesky's factor is computed as the
upper one, of which it is the transpose, since that grows by rows. Triangular systems take as many
right sides at a time as there are lanes.
"""

from __future__ import annotations

from mycel._src.engines.native.kernels.codegen import NAME
from mycel._src.engines.native.llvm.function_builder import Code
from mycel._src.engines.native.llvm.target import RememberedByTarget, target
from mycel._src.foundation.bounded_caches import SOME
from mycel._src.foundation.dtype import DType

__all__ = ["MOST", "cholesky_text", "lu_text", "solve_text"]

MOST = 64


class _Writer:
    """A writer of one kernel.

    `numbers` are its first words, `pointers` the addresses after them.
    """

    def __init__(self, dtype: DType, numbers: tuple[str, ...], pointers: tuple[str, ...]) -> None:
        self.code = c = Code()
        self.bytes = dtype.itemsize
        self.lanes = target().vector_bytes // self.bytes
        self.element, self.short = ("float", "f32") if self.bytes == 4 else ("double", "f64")
        self.vector, self.flags = f"<{self.lanes} x {self.element}>", f"<{self.lanes} x i1>"
        self.number = {n: c.load("i64", "%words", str(k)) for k, n in enumerate(numbers)}
        start = len(numbers)
        self.base = {n: c.load("ptr", "%words", str(start + k), "i64") for k, n in enumerate(pointers)}
        self.near = c.slot(self.element, MOST * MOST)
        c.do(f"call void @llvm.memset.p0.i64(ptr {self.near}, i8 0, i64 {MOST * MOST * self.bytes}, i1 false)")

    def place(self, base: str, row: str, width: str, column: str) -> str:
        """Return the address of an element of the matrix at `base`, whose rows have a `width`.

        `row` and `column` say which element.
        """
        c = self.code
        return c.at(self.element, base, c.op("add i64", c.op("mul i64", row, width), column))

    def near_at(self, row: str, column: str) -> str:
        """Return the address of an element in near memory."""
        return self.place(self.near, row, str(MOST), column)

    def splat(self, value: str, kind: str = "") -> str:
        kind = kind or self.element
        vector = f"<{self.lanes} x {kind}>"
        first = self.code.put(f"insertelement {vector} poison, {kind} {value}, i32 0")
        return self.code.put(f"shufflevector {vector} {first}, {vector} poison, <{self.lanes} x i32> zeroinitializer")

    def lanes_where(self, column: str, test: str, bound: str) -> str:
        """Return the mask of the lanes whose columns, from `column` on, are so to `bound`."""
        c, kind = self.code, f"<{self.lanes} x i64>"
        each = ", ".join(f"i64 {k}" for k in range(self.lanes))
        columns = c.put(f"add {kind} {self.splat(column, 'i64')}, <{each}>")
        return c.put(f"icmp {test} {kind} {columns}, {self.splat(bound, 'i64')}")

    def masked_load(self, place: str, mask: str) -> str:
        return self.code.put(
            f"call {self.vector} @llvm.masked.load.v{self.lanes}{self.short}.p0(ptr {place}, i32 {self.bytes}, "
            f"{self.flags} {mask}, {self.vector} zeroinitializer)"
        )

    def masked_store(self, value: str, place: str, mask: str) -> None:
        self.code.do(
            f"call void @llvm.masked.store.v{self.lanes}{self.short}.p0({self.vector} {value}, ptr {place}, i32 "
            f"{self.bytes}, {self.flags} {mask})"
        )

    def load(self, place: str) -> str:
        return self.code.load(self.vector, place, align=self.bytes)

    def store(self, value: str, place: str) -> None:
        self.code.store(self.vector, value, place, align=self.bytes)

    def less(self, a: str, factor: str, b: str) -> str:
        """Return a - factor b."""
        product = self.code.put(f"fmul contract {self.vector} {factor}, {b}")
        return self.code.put(f"fsub contract {self.vector} {a}, {product}")

    def whole(self, column: str) -> str:
        """Return where the vector with a column begins."""
        return self.code.op("and i64", column, -self.lanes)

    def nan(self) -> str:
        return "0x7FF8000000000000"

    def text(self) -> str:
        c = self.code
        c.do("ret void")
        body = c.function("void", NAME, "ptr noalias readonly %words, i64 %begin, i64 %end", "")
        head, _, rest = body.partition(") {")
        kind, bits = f"v{self.lanes}{self.short}", target().vector_bytes * 8
        declares = (
            "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)\n"
            f"declare {self.element} @llvm.fabs.{self.short}({self.element})\n"
            f"declare {self.element} @llvm.sqrt.{self.short}({self.element})\n"
            f"declare {self.vector} @llvm.masked.load.{kind}.p0(ptr, i32, {self.flags}, {self.vector})\n"
            f"declare void @llvm.masked.store.{kind}.p0({self.vector}, ptr, i32, {self.flags})\n"
        )
        widths = f'attributes #0 = {{ nounwind "prefer-vector-width"="{bits}" "min-legal-vector-width"="{bits}" }}\n'
        return f"{head}) #0 {{{rest}\n{declares}{widths}"


@RememberedByTarget("kernels of LU", SOME).calls
def lu_text(dtype: DType) -> str:
    """Return the text of the kernel of LU.

    The words are the rows, the columns and the smaller of both, then the addresses of the matrices,
    of L and U in one, of the exchanges, and of the order of rows.
    """
    w = _Writer(dtype, ("rows", "columns", "least"), ("a", "packed", "pivots", "order"))
    c, rows, columns, least = w.code, w.number["rows"], w.number["columns"], w.number["least"]
    size = c.op("mul i64", rows, columns)
    with c.loop("%begin", "%end") as matrix:
        source, target = (c.at(w.element, w.base[n], c.op("mul i64", matrix, size)) for n in ("a", "packed"))
        pivots = c.at("i32", w.base["pivots"], c.op("mul i64", matrix, least))
        order = c.at("i32", w.base["order"], c.op("mul i64", matrix, rows))
        with c.loop("0", rows) as i:
            c.store("i32", c.put(f"trunc i64 {i} to i32"), order, i)
            with c.loop("0", columns, w.lanes) as j:
                mask = w.lanes_where(j, "slt", columns)
                w.store(w.masked_load(w.place(source, i, columns, j), mask), w.near_at(i, j))
        with c.loop("0", least) as k:
            _choose_pivot(w, k, pivots, order)
            pivot = c.load(w.element, w.near_at(k, k))
            after = c.op("add i64", k, 1)
            # A pivot of zero has zeros below it.
            with c.when(c.put(f"fcmp une {w.element} {pivot}, 0.0")):
                with c.loop(after, rows) as i:
                    place = w.near_at(i, k)
                    c.store(w.element, c.put(f"fdiv {w.element} {c.load(w.element, place)}, {pivot}"), place)
            with c.loop(w.whole(after), columns, w.lanes) as j:
                u, kept = w.load(w.near_at(k, j)), w.lanes_where(j, "sgt", k)
                with c.loop(after, rows) as i:
                    place, factor = w.near_at(i, j), w.splat(c.load(w.element, w.near_at(i, k)))
                    old = w.load(place)
                    new = w.less(old, factor, u)
                    w.store(c.put(f"select {w.flags} {kept}, {w.vector} {new}, {w.vector} {old}"), place)
        with c.loop("0", rows) as i:
            with c.loop("0", columns, w.lanes) as j:
                mask = w.lanes_where(j, "slt", columns)
                w.masked_store(w.load(w.near_at(i, j)), w.place(target, i, columns, j), mask)
    return w.text()


def _choose_pivot(w: _Writer, k: str, pivots: str, order: str) -> None:
    """Bring the row with the largest element of column `k` to row `k`."""
    c = w.code
    best, where = c.variable(w.element, "-1.0"), c.variable("i64", k)
    with c.loop(k, w.number["rows"]) as i:
        size = c.put(f"call {w.element} @llvm.fabs.{w.short}({w.element} {c.load(w.element, w.near_at(i, k))})")
        before = c.load(w.element, best)
        larger = c.put(f"fcmp ogt {w.element} {size}, {before}")
        c.store(w.element, c.put(f"select i1 {larger}, {w.element} {size}, {w.element} {before}"), best)
        c.store("i64", c.put(f"select i1 {larger}, i64 {i}, i64 {c.load('i64', where)}"), where)
    found = c.load("i64", where)
    c.store("i32", c.put(f"trunc i64 {found} to i32"), pivots, k)
    with c.when(c.put(f"icmp ne i64 {found}, {k}")):
        here, there = c.load("i32", order, k), c.load("i32", order, found)
        c.store("i32", there, order, k)
        c.store("i32", here, order, found)
        with c.loop("0", w.number["columns"], w.lanes) as j:
            above, below = w.near_at(k, j), w.near_at(found, j)
            a, b = w.load(above), w.load(below)
            w.store(b, above)
            w.store(a, below)


@RememberedByTarget("kernels of Cholesky", SOME).calls
def cholesky_text(dtype: DType) -> str:
    """Return the text of the kernel of Cholesky's decomposition.

    The words are the rows, then the addresses of the matrices and of their factors, which are NaN
    where there is none.
    """
    w = _Writer(dtype, ("rows",), ("a", "factor"))
    c, rows = w.code, w.number["rows"]
    size = c.op("mul i64", rows, rows)
    with c.loop("%begin", "%end") as matrix:
        source, target = (c.at(w.element, w.base[n], c.op("mul i64", matrix, size)) for n in ("a", "factor"))
        with c.loop("0", rows) as i:
            with c.loop("0", c.op("add i64", i, 1)) as j:
                c.store(w.element, c.load(w.element, w.place(source, i, rows, j)), w.near_at(j, i))
        fails = c.variable("i1", "false")
        with c.loop("0", rows) as k:
            corner, after = w.near_at(k, k), c.op("add i64", k, 1)
            pivot = c.load(w.element, corner)
            with c.when(c.put(f"fcmp ule {w.element} {pivot}, 0.0")):
                c.store("i1", "true", fails)
            root = c.put(f"call {w.element} @llvm.sqrt.{w.short}({w.element} {pivot})")
            c.store(w.element, root, corner)
            divisor = w.splat(root)
            with c.loop(w.whole(after), rows, w.lanes) as j:
                place, kept = w.near_at(k, j), w.lanes_where(j, "sgt", k)
                old = w.load(place)
                new = c.put(f"fdiv {w.vector} {old}, {divisor}")
                u = c.put(f"select {w.flags} {kept}, {w.vector} {new}, {w.vector} {old}")
                w.store(u, place)
            with c.loop(after, rows) as i:
                factor = w.splat(c.load(w.element, w.near_at(k, i)))
                with c.loop(w.whole(i), rows, w.lanes) as j:
                    place = w.near_at(i, j)
                    w.store(w.less(w.load(place), factor, w.load(w.near_at(k, j))), place)
        failed = c.load("i1", fails)
        with c.loop("0", rows) as i:
            with c.loop("0", rows) as j:
                above = c.put(f"icmp sgt i64 {j}, {i}")
                value = c.load(w.element, w.near_at(j, i))
                value = c.put(f"select i1 {above}, {w.element} 0.0, {w.element} {value}")
                value = c.put(f"select i1 {failed}, {w.element} {w.nan()}, {w.element} {value}")
                c.store(w.element, value, w.place(target, i, rows, j))
    return w.text()


@RememberedByTarget("kernels of triangular systems", SOME).calls
def solve_text(dtype: DType, lower: bool, transposed: bool, unit: bool) -> str:
    """Return the text of the kernel of triangular systems of a `dtype`.

    `lower` says which triangle of a matrix is read, `transposed` that the system is with its
    transpose, and with `unit` the diagonal counts as ones. The words are the rows and the number of
    right sides, then the addresses of the matrices, right sides and solutions, which are NaN where
    there is none.
    """
    w = _Writer(dtype, ("rows", "sides"), ("a", "b", "x"))
    c, rows, sides = w.code, w.number["rows"], w.number["sides"]
    forward = lower != transposed
    with c.loop("%begin", "%end") as matrix:
        a = c.at(w.element, w.base["a"], c.op("mul i64", matrix, c.op("mul i64", rows, rows)))
        size = c.op("mul i64", matrix, c.op("mul i64", rows, sides))
        b, x = (c.at(w.element, w.base[n], size) for n in "bx")
        singular = c.variable("i1", "false")
        if not unit:
            with c.loop("0", rows) as k:
                with c.when(c.put(f"fcmp oeq {w.element} {c.load(w.element, w.place(a, k, rows, k))}, 0.0")):
                    c.store("i1", "true", singular)
        with c.loop("0", sides, w.lanes) as j:
            mask = w.lanes_where(j, "slt", sides)
            with c.loop("0", rows) as i:
                w.store(w.masked_load(w.place(b, i, sides, j), mask), w.near_at(i, "0"))
            with c.loop("0", rows) as step:
                k = step if forward else c.op("sub i64", c.op("sub i64", rows, step), 1)
                known = w.load(w.near_at(k, "0"))
                if not unit:
                    divisor = w.splat(c.load(w.element, w.place(a, k, rows, k)))
                    known = c.put(f"fdiv {w.vector} {known}, {divisor}")
                    w.store(known, w.near_at(k, "0"))
                ends = (c.op("add i64", k, 1), rows) if forward else ("0", k)
                with c.loop(*ends) as i:
                    factor = c.load(w.element, w.place(a, k, rows, i) if transposed else w.place(a, i, rows, k))
                    place = w.near_at(i, "0")
                    w.store(w.less(w.load(place), w.splat(factor), known), place)
            failed, none = c.load("i1", singular), w.splat(w.nan())
            with c.loop("0", rows) as i:
                value = c.put(f"select i1 {failed}, {w.vector} {none}, {w.vector} {w.load(w.near_at(i, '0'))}")
                w.masked_store(value, w.place(x, i, sides, j), mask)
    return w.text()
