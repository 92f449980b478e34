"""Kernels of matrix products by register tiles, with sizes and strides as arguments.

The result is cut into blocks of rows and columns, one unit of the range that threads divide; which
thread computes a unit changes no number. In a unit the common axis is taken in blocks of `depth`
steps, whose sums are added in memory, so that a panel of the right factor and the rows of the left
one stay in near caches. Rows beyond the last are computed again from the last one and not written;
columns beyond the last are masked.
"""

from __future__ import annotations

from mycel._src.engines.native.kernels.codegen import NAME
from mycel._src.engines.native.llvm.function_builder import Code
from mycel._src.engines.native.llvm.target import RememberedByTarget
from mycel._src.engines.native.operations.matmul.register_tile import (
    Factor,
    Tile,
    accumulate,
    columns,
    declarations,
    lanes_below,
    lines,
    masked_load,
    masked_store,
    panel,
    rows,
)
from mycel._src.foundation.bounded_caches import SOME

__all__ = ["NEAR", "NUMBERS", "product_text"]

# The most steps of a panel that is gathered.
NEAR = 128

# The words before the addresses of the factors and the result.
NUMBERS = (
    "rows",
    "columns",
    "steps",
    "a_row",
    "b_row",
    "c_row",
    "matrices",
    "a_matrix",
    "b_matrix",
    "c_matrix",
    "a_outer",
    "b_outer",
    "c_outer",
    "a_first",
    "b_first",
    "c_first",
    "units_down",
    "units_across",
    "unit_rows",
    "unit_columns",
    "depth",
    "begun",
)


@RememberedByTarget("kernels of products", SOME).calls
def product_text(tile: Tile, turned: bool, right: str, exact: bool, even: bool, short: bool) -> str:
    """Return the text of the kernel for a tile.

    `turned`: the left factor's columns are contiguous, else its rows. `right`: the right factor
    lies in "panels" of the tile's width; or its rows are contiguous, and read as "lines" where they
    lie, or "gathered" first, panel by panel, `NEAR` steps at most. `exact`: tiles leave no rows
    over; `even`: nor columns. `short`: the common axis is one block, and nothing is added to the
    result.
    """
    writer = _Product(tile, turned, right, exact, even, short)
    writer.units()
    return writer.text()


class _Product:
    """A writer of the kernel's text; for `tile`, `turned`, `right`, `exact`, `even` and `short` see
    `product_text`.
    """

    def __init__(self, tile: Tile, turned: bool, right: str, exact: bool, even: bool, short: bool) -> None:
        self.code, self.tile = Code(), tile
        self.turned, self.right, self.exact, self.even, self.short = turned, right, exact, even, short
        c = self.code
        self.number = {n: c.load("i64", "%words", str(k)) for k, n in enumerate(NUMBERS)}
        self.base = {}
        for k, n in enumerate("abc"):
            pointer = c.load("ptr", "%words", str(len(NUMBERS) + k), "i64")
            self.base[n] = c.at(tile.element, pointer, self.number[f"{n}_first"])

        if right == "gathered":
            self.near = c.slot(tile.element, NEAR * tile.width)

    def least(self, a: str, b: str) -> str:
        return self.code.put(f"select i1 {self.code.put(f'icmp slt i64 {a}, {b}')}, i64 {a}, i64 {b}")

    def moved(self, base: str, *parts: tuple[str, str]) -> str:
        """Return an address moved by the products of pairs of numbers."""
        c, total = self.code, "0"
        for count, step in parts:
            total = c.op("add i64", total, c.op("mul i64", count, step))
        return c.at(self.tile.element, base, total)

    def units(self) -> None:
        c, n, tile = self.code, self.number, self.tile
        with c.loop("%begin", "%end") as unit:
            down = c.op("urem i64", unit, n["units_down"])
            rest = c.op("udiv i64", unit, n["units_down"])
            across = c.op("urem i64", rest, n["units_across"])
            number = c.op("udiv i64", rest, n["units_across"])
            matrix, outer = c.op("urem i64", number, n["matrices"]), c.op("udiv i64", number, n["matrices"])
            row = c.op("mul i64", down, n["unit_rows"])
            last_row = self.least(c.op("add i64", row, n["unit_rows"]), n["rows"])
            column = c.op("mul i64", across, n["unit_columns"])
            last_column = self.least(c.op("add i64", column, n["unit_columns"]), n["columns"])
            a = self.moved(self.base["a"], (matrix, n["a_matrix"]), (outer, n["a_outer"]))
            b = self.moved(self.base["b"], (matrix, n["b_matrix"]), (outer, n["b_outer"]))
            out = self.moved(self.base["c"], (matrix, n["c_matrix"]), (outer, n["c_outer"]))
            blocks = c.op("udiv i64", c.op("sub i64", c.op("add i64", n["steps"], n["depth"]), "1"), n["depth"])
            with c.loop("0", blocks) as block:
                k = c.op("mul i64", block, n["depth"])
                count = self.least(c.op("sub i64", n["steps"], k), n["depth"])
                if self.right == "gathered":
                    with c.loop(column, last_column, tile.width) as j:
                        masks = self.masks(j)
                        self.gather(self.moved(b, (k, n["b_row"]), (j, "1")), count, masks)
                        with c.loop(row, last_row, tile.height) as i:
                            self.block(block, count, self.left(a, i, k), panel(c, tile, self.near), out, i, j, masks)
                else:
                    with c.loop(row, last_row, tile.height) as i:
                        left = self.left(a, i, k)
                        with c.loop(column, last_column, tile.width) as j:
                            masks = self.masks(j)
                            self.block(block, count, left, self.far(b, j, k, masks), out, i, j, masks)

    def left(self, a: str, i: str, k: str) -> Factor:
        """Return the left factor for the rows from `i` on and the steps from `k` on."""
        c, n, tile = self.code, self.number, self.tile
        inside = [self.row(i, m) for m in range(tile.height)]
        if self.turned:
            return columns(c, tile, self.moved(a, (k, n["a_row"]), (i, "1")), n["a_row"], inside)
        begin = c.at(tile.element, a, k)
        return rows(c, tile, [self.moved(begin, (c.op("add i64", i, m), n["a_row"])) for m in inside])

    def row(self, i: str, m: int) -> str:
        """Return the number of row `m` of the tile at row `i`, or of the last one that exists."""
        c = self.code
        if self.exact:
            return str(m)
        return self.least(str(m), c.op("sub i64", c.op("sub i64", self.number["rows"], i), "1"))

    def masks(self, j: str) -> list[str]:
        """Return, for each vector of the tile at column `j`, the mask of the lanes that exist."""
        c, tile = self.code, self.tile
        if self.even:
            return [f"<{', '.join(['i1 true'] * tile.lanes)}>"] * tile.vectors
        edge = c.op("sub i64", self.number["columns"], j)
        return [lanes_below(c, tile, edge, v) for v in range(tile.vectors)]

    def gather(self, source: str, count: str, masks: list[str]) -> None:
        """Copy `count` rows of a panel, contiguous from `source` on, to where they stay near."""
        c, tile = self.code, self.tile
        with c.loop("0", count) as k:
            line = c.at(tile.element, source, c.op("mul i64", k, self.number["b_row"]))
            target = c.at(tile.element, self.near, c.op("mul i64", k, str(tile.width)))
            for v, mask in enumerate(masks):
                vector = masked_load(c, tile, c.at(tile.element, line, str(v * tile.lanes)), mask)
                c.store(
                    tile.vector, vector, target, str(v * tile.lanes), tile.element, min(64, tile.lanes * tile.bytes)
                )

    def far(self, b: str, j: str, k: str, masks: list[str]) -> Factor:
        """Return the right factor at column `j` and step `k` of the matrix at `b`, where it lies.

        Columns under the `masks` exist.
        """
        c, n, tile = self.code, self.number, self.tile
        if self.right == "panels":
            return panel(c, tile, self.moved(b, (j, n["steps"]), (k, str(tile.width))))
        return lines(c, tile, self.moved(b, (k, n["b_row"]), (j, "1")), n["b_row"], masks)

    def block(
        self, block: str, count: str, left: Factor, right: Factor, out: str, i: str, j: str, masks: list[str]
    ) -> None:
        """Write one tile.

        `block` is the number of the block of the common axis, of `count` steps; `left` and `right`
        read the factors; the tile lies at row `i` and column `j` of the matrix at `out`, where
        columns under the `masks` exist.
        """
        c, n, tile = self.code, self.number, self.tile
        added = c.put(f"icmp ne i64 {c.op('or i64', block, n['begun'])}, 0")
        kind = f"<{tile.lanes} x i1>"
        places: list[list[str]] = []
        slots: list[list[str]] = []
        first = c.put(f"insertelement {kind} poison, i1 {added}, i32 0")
        more = c.put(f"shufflevector {kind} {first}, {kind} poison, <{tile.lanes} x i32> zeroinitializer")
        before = [c.put(f"and {kind} {more}, {mask}") for mask in masks]
        for m in range(tile.height):
            line = self.moved(out, (c.op("add i64", i, self.row(i, m)), n["c_row"]), (j, "1"))
            places.append([c.at(tile.element, line, str(v * tile.lanes)) for v in range(tile.vectors)])
            values = ["zeroinitializer"] * tile.vectors
            if not self.short:
                values = [masked_load(c, tile, place, mask) for place, mask in zip(places[m], before)]
            slots.append([c.variable(tile.vector, value) for value in values])
        accumulate(c, tile, slots, count, left, right)
        if self.exact:
            for spots, totals in zip(places, slots):
                self.store(spots, totals, masks)
            return
        last = c.op("sub i64", c.op("sub i64", n["rows"], i), "1")
        whole = c.put(f"icmp sge i64 {last}, {tile.height - 1}")
        edge = c.put(f"xor i1 {whole}, true")
        with c.when(whole):
            for spots, totals in zip(places, slots):
                self.store(spots, totals, masks)
        with c.when(edge):
            for m, (spots, totals) in enumerate(zip(places, slots)):
                with c.when(c.put(f"icmp sge i64 {last}, {m}")):
                    self.store(spots, totals, masks)

    def store(self, places: list[str], totals: list[str], masks: list[str]) -> None:
        """Write the sums of one row."""
        for place, total, mask in zip(places, totals, masks):
            masked_store(self.code, self.tile, self.code.load(self.tile.vector, total), place, mask)

    def text(self) -> str:
        self.code.do("ret void")
        body = self.code.function("void", NAME, "ptr noalias readonly %words, i64 %begin, i64 %end", "")
        head, _, rest = body.partition(") {")
        return f"{head}) #0 {{{rest}\n{declarations(self.tile)}"
