"""AMX kernels of float32 matrix products, from factors split into bfloat16 (`bfloat16_split`).

One factor, the far one, was packed before. The other, the near one, is packed here: a unit of the
range packs a group of its rows of blocks, part by part along the common axis, to where a cache next
to a core keeps them while the far one's blocks pass by. The memory for that is one of several
slots, which a call claims by a flag.

The result is cut into blocks of 32 x 32, of which four registers of tiles hold the sums while a
part of the common axis runs; the sums of parts are added in memory. The products of pieces are
added from the smallest on; the three that are left out are below what float32 rounds away.

What the units cannot do is done by vectors, from the factors as they lie, block by block (`plain`):

* They take tiny numbers to be zero. Where the largest numbers of two parts, or their product, are
  below 2**-94, pieces would be lost that matter.
* What is infinite, or no number, is no sum of pieces. Such a factor makes a result that is infinite
  or no number, and a result that is one is computed again.
"""

from __future__ import annotations

from mycel._src.engines.native.kernels.codegen import NAME
from mycel._src.engines.native.llvm.function_builder import Code
from mycel._src.engines.native.llvm.target import RememberedByTarget
from mycel._src.engines.native.operations.matmul.bfloat16_split import (
    BLOCK_WORDS,
    FLOATS,
    GROUP,
    HEAD,
    INTS,
    LANES,
    MASK,
    SIDE,
    TILE_WORDS,
    least,
    pack,
    pack_code,
    splat,
    with_vectors,
)
from mycel._src.foundation.bounded_caches import SOME

__all__ = ["PRODUCT_NUMBERS", "pieces_product_text", "slot_words"]

# The words before the addresses of the near factor, the far one, that packed, the slots and the
# result.
PRODUCT_NUMBERS = (
    "rows",
    "columns",
    "steps",
    "stride",
    "first",
    "far_row",
    "far_step",
    "far_first",
    "c_row",
    "c_first",
    "matrices",
    "near_inner",
    "far_inner",
    "packed_inner",
    "c_inner",
    "near_outer",
    "far_outer",
    "packed_outer",
    "c_outer",
    "near_blocks",
    "far_blocks",
    "near_units",
    "far_units",
    "near_unit",
    "far_unit",
    "depth",
    "parts",
    "part_steps",
    "largest",
    "flags",
    "slots",
    "slot",
    "added",
)
# 2**-94 and infinity as the bits of a float32.
_TINY, _ENDLESS = (127 - 94) << 23, 0xFF << 23
# Steps of the common axis in one round of the loop.
ROUND = 4
# Which piece of the left factor meets which of the right one, from the smallest product on.
_ORDER = ((0, 2), (1, 1), (0, 1), (2, 0), (1, 0), (0, 0))


def slot_words(part_steps: int) -> int:
    """Return the words of a slot: packed blocks, and the largest magnitude of each row of them."""
    return GROUP * part_steps * BLOCK_WORDS + LANES


@RememberedByTarget("kernels of products by tiles", SOME).calls
def pieces_product_text(left: bool, along: bool) -> str:
    """Return the text of the kernel.

    `left` says whether the near factor is the left one, and `along` whether its common axis is
    contiguous.
    """
    writer = _Product(left, along)
    writer.units()
    body = writer.code.function("void", NAME, "ptr noalias readonly %words, i64 %begin, i64 %end", "")
    return f"{HEAD}{_DECLARED}{pack_code(left, along)}\n{_plain()}\n{with_vectors(body)}"


class _Product:
    """A writer of the kernel's text; for `left` and `along` see `pieces_product_text`.

    The numbers of a block leave the tiles by way of a scratch block. They are written to the result
    while the next block's products run, a quarter of them after each of its first steps.
    """

    def __init__(self, left: bool, along: bool) -> None:
        self.near_is_left, self.along = left, along
        c = self.code = Code()
        n = self.number = {name: c.load("i64", "%words", str(k)) for k, name in enumerate(PRODUCT_NUMBERS)}
        names = ("near", "far", "packed", "slots", "out")
        self.base = {m: c.load("ptr", "%words", str(len(PRODUCT_NUMBERS) + k), "i64") for k, m in enumerate(names)}
        self.base["near"] = c.at("float", self.base["near"], n["first"])
        self.base["far"] = c.at("float", self.base["far"], n["far_first"])
        self.base["out"] = c.at("float", self.base["out"], n["c_first"])
        self.sums, self.idle = c.slot("float", SIDE * SIDE), c.slot("float", TILE_WORDS)
        self.again = c.slot("float", SIDE * SIDE)
        # The block that is to be written: its rows (0: there is none), place, columns, those of
        # them to which it is added, and its factors as they lie; and the columns not finite.
        self.rows = c.variable("i64", "0")
        self.place, *factors = (c.variable("ptr", "null") for _ in range(5))
        self.factors, self.next = factors[:2], factors[2:]
        self.masks, self.olds, self.bad = ([c.variable(MASK, "zeroinitializer") for _ in range(2)] for _ in range(3))
        # Of both: steps of the common axis, and the rows and columns that there are.
        self.sizes, self.coming = ([c.variable("i64", "0") for _ in range(3)] for _ in range(2))
        # Where the far factor's panel after the one in use is fetched from.
        self.soon = "null"
        shapes = c.slot("i64", 8)
        # Form 1; eight tiles of 16 lines of 64 bytes.
        for k, word in enumerate((1, 0, 0x0040004000400040, 0x0040004000400040, 0, 0, 0x1010101010101010, 0)):
            c.store("i64", str(word), shapes, str(k))
        c.do(f"call void @llvm.x86.ldtilecfg(ptr {shapes})")

    def claim(self) -> tuple[str, str]:
        """Return the flag and the address of a slot that is this call's now."""
        c, n = self.code, self.number
        index, free = c.variable("i64", n["slots"]), c.variable("i1", "false")
        with c.repeat(lambda: c.op("xor i1", c.load("i1", free), "true")):
            behind = c.op("add i64", c.load("i64", index), "1")
            number = c.op("urem i64", behind, n["slots"])
            c.store("i64", number, index)
            flag = c.at("i32", self.base["packed"], c.op("add i64", n["flags"], number))
            tried = c.put(f"cmpxchg ptr {flag}, i32 0, i32 1 acquire monotonic")
            c.store("i1", c.put(f"extractvalue {{i32, i1}} {tried}, 1"), free)
        number = c.load("i64", index)
        flag = c.at("i32", self.base["packed"], c.op("add i64", n["flags"], number))
        return flag, c.at("i32", self.base["slots"], c.op("mul i64", number, n["slot"]))

    def units(self) -> None:
        c, n = self.code, self.number
        flag, slot = self.claim()
        # Behind the blocks of a slot.
        most = c.at("i32", slot, c.op("sub i64", n["slot"], LANES))
        with c.loop("%begin", "%end") as unit:
            near_unit, rest = c.op("urem i64", unit, n["near_units"]), c.op("udiv i64", unit, n["near_units"])
            far_unit, number = c.op("urem i64", rest, n["far_units"]), c.op("udiv i64", rest, n["far_units"])
            matrix, outer = c.op("urem i64", number, n["matrices"]), c.op("udiv i64", number, n["matrices"])
            first = {}
            for name in ("near", "far", "packed", "c"):
                inner = c.op("mul i64", matrix, n[f"{name}_inner"])
                first[name] = c.op("add i64", inner, c.op("mul i64", outer, n[f"{name}_outer"]))
            near, far = c.op("mul i64", near_unit, n["near_unit"]), c.op("mul i64", far_unit, n["far_unit"])
            count = least(c, c.op("sub i64", n["near_blocks"], near), n["near_unit"])
            last = least(c, c.op("add i64", far, n["far_unit"]), n["far_blocks"])
            source = c.at("float", self.base["near"], first["near"])
            other = c.at("float", self.base["far"], first["far"])
            out = c.at("float", self.base["out"], first["c"])
            extent = n["rows" if self.near_is_left else "columns"]
            with c.loop("0", n["parts"]) as part:
                added = c.put(f"icmp ne i64 {c.op('or i64', part, n['added'])}, 0")
                step = c.op("mul i64", part, n["part_steps"])
                steps = least(c, c.op("sub i64", n["depth"], step), n["part_steps"])
                pack(
                    c,
                    self.along,
                    (source, n["stride"]),
                    (c.op("mul i64", near, SIDE), c.op("mul i64", step, SIDE), extent, n["steps"]),
                    (count, steps),
                    (slot, steps),
                    (most, "1"),
                )
                with c.loop(far, last) as j:
                    panel = c.op("add i64", first["packed"], j)
                    place = c.op("add i64", c.op("mul i64", panel, n["depth"]), step)
                    there = c.at("i32", self.base["packed"], c.op("mul i64", place, BLOCK_WORDS))
                    spot = c.op("add i64", c.op("mul i64", panel, n["parts"]), part)
                    there_most = c.load("i32", self.base["packed"], c.op("add i64", n["largest"], spot))
                    with c.loop("0", count) as i:
                        here = c.at("i32", slot, c.op("mul i64", c.op("mul i64", i, steps), BLOCK_WORDS))
                        here_most = c.load("i32", most, i)
                        left, right = (here, there) if self.near_is_left else (there, here)
                        number = c.op("add i64", near, i)
                        row, column = (number, j) if self.near_is_left else (j, number)
                        # A part of the panel after this one.
                        self.soon = c.at("i32", there, c.op("mul i64", n["depth"], BLOCK_WORDS))
                        self.soon = c.at(
                            "i32", self.soon, c.op("mul i64", c.op("mul i64", i, steps), BLOCK_WORDS // GROUP)
                        )
                        self.meet((source, number), (other, j), step)
                        self.block(left, right, steps, (here_most, there_most))
                        self.take(out, (row, column), added)
                self.write_all()
        c.do("call void @llvm.x86.tilerelease()")
        c.do(f"store atomic i32 0, ptr {flag} release, align 4")
        c.do("ret void")

    def block(self, left: str, right: str, count: str, largest: tuple[str, str]) -> None:
        """Write the sums of `count` blocks of the panels `left` and `right` to the scratch block.

        `largest` are the bits of the panels' largest magnitudes.
        """
        c = self.code
        there = [c.put(f"icmp ne i32 {bits}, 0") for bits in largest]
        sizes = [c.put(f"bitcast i32 {bits} to float") for bits in largest]
        product = c.put(f"bitcast float {c.op('fmul float', *sizes)} to i32")
        small = "false"
        for bits in (*largest, product):
            small = c.op("or i1", small, c.put(f"icmp ult i32 {bits}, {_TINY}"))
        small = c.op("and i1", small, c.op("and i1", *there))
        usual = c.op("xor i1", small, "true")
        with c.when(small):
            self.write_all()
            self.plain(self.next, self.coming, self.sums)
        with c.when(usual):
            self.steps(left, right, count)

    def steps(self, left: str, right: str, count: str) -> None:
        """Write the sums of `count` blocks of two panels, by the units, to the scratch block."""
        c = self.code
        bulk = c.op("and i64", count, -ROUND)
        begun = c.put(f"icmp ne i64 {bulk}, 0")
        with c.when(c.op("xor i1", begun, "true")):
            self.write_all()
        for tile in range(4):
            c.do(f"call void @llvm.x86.tilezero(i8 {tile})")
        with c.when(begun):
            self.round(left, right, "0", ROUND, True)
        with c.loop(str(ROUND), bulk, ROUND) as k:
            self.round(left, right, k, ROUND, False)
        with c.loop(bulk, count) as k:
            self.round(left, right, k, 1, False)
        for tile in range(4):
            place = c.at("float", self.sums, str((tile // 2) * LANES * SIDE + (tile % 2) * LANES))
            c.do(f"call void @llvm.x86.tilestored64(i8 {tile}, ptr {place}, i64 {SIDE * 4})")

    def round(self, left: str, right: str, first: str, steps: int, writes: bool) -> None:
        """Add the products of blocks of `left` and `right`, from number `first` on, to the sums.

        There are so many `steps`; with `writes` the block before is written meanwhile. The tile
        that is stored after a full round has no reader: where none is stored for longer, the next
        store waits for some hundred nanoseconds in today's processors.
        """
        c = self.code
        for u in range(steps):
            far = c.op("mul i64", c.op("add i64", first, u), BLOCK_WORDS)
            self.step(c.at("i32", left, far), c.at("i32", right, far))
            soon = c.at("i32", self.soon, c.op("mul i64", c.op("add i64", first, u), BLOCK_WORDS // GROUP))
            for line in range(BLOCK_WORDS // GROUP // LANES):
                c.do(f"call void @llvm.prefetch.p0(ptr {c.at('i32', soon, str(line * LANES))}, i32 0, i32 2, i32 1)")
            if writes:
                self.write(u)
        if writes:
            self.finish()
        if steps == ROUND:
            c.do(f"call void @llvm.x86.tilestored64(i8 0, ptr {self.idle}, i64 {4 * LANES})")

    def step(self, left: str, right: str) -> None:
        """Add the products of two blocks to the sums in tiles 0 to 3."""
        c = self.code
        loaded: dict[str, int] = {}
        for first, second in _ORDER:
            for name, base, piece, tile in (("a", left, first, 4), ("b", right, second, 6)):
                if loaded.get(name) != piece:
                    loaded[name] = piece
                    for half in range(2):
                        place = c.at("i32", base, str((2 * piece + half) * TILE_WORDS))
                        c.do(f"call void @llvm.x86.tileloadd64(i8 {tile + half}, ptr {place}, i64 {4 * LANES})")
            for tile in range(4):
                c.do(f"call void @llvm.x86.tdpbf16ps(i8 {tile}, i8 {4 + tile // 2}, i8 {6 + tile % 2})")

    def meet(self, near: tuple[str, str], far: tuple[str, str], step: str) -> None:
        """Set where the factors of the coming block lie: addresses and numbers of blocks.

        `step` is the first block of the part along the common axis.
        """
        c, n = self.code, self.number
        first = c.op("mul i64", step, SIDE)
        across, along = (n["stride"], "1") if self.along else ("1", n["stride"])
        places = []
        for (base, block), row, one in ((near, across, along), (far, n["far_row"], n["far_step"])):
            moved = c.op("mul i64", c.op("mul i64", block, SIDE), row)
            places.append(c.at("float", base, c.op("add i64", moved, c.op("mul i64", first, one))))
        blocks = [near[1], far[1]]
        if not self.near_is_left:
            places.reverse()
            blocks.reverse()
        for place, slot in zip(places, self.next):
            c.store("ptr", place, slot)
        most = (c.op("mul i64", n["part_steps"], SIDE), str(SIDE), str(SIDE))
        begun = (first, *(c.op("mul i64", block, SIDE) for block in blocks))
        for limit, start, whole, slot in zip(most, begun, ("steps", "rows", "columns"), self.coming):
            c.store("i64", least(c, c.op("sub i64", n[whole], start), limit), slot)

    def plain(self, factors: list[str], sizes: list[str], out: str) -> None:
        """Write a block to `out`, by vectors, from where its factors are said to lie.

        `sizes` are its steps of the common axis, rows and columns.
        """
        c, n = self.code, self.number
        near = (n["stride"], "1") if self.along else ("1", n["stride"])
        far = n["far_row"], n["far_step"]
        left, right = (near, far) if self.near_is_left else (far, near)
        pointers = ", ".join(f"ptr {c.load('ptr', slot)}" for slot in factors)
        counts = [c.load("i64", slot) for slot in sizes]
        numbers = ", ".join(f"i64 {value}" for value in (*left, *right, *counts))
        c.do(f"call void @plain({pointers}, {numbers}, ptr {out})")

    def take(self, out: str, block: tuple[str, str], added: str) -> None:
        """Set that the scratch block is to be written as a block of the result at `out`.

        `block` is its row and column in blocks. With `added` it is added to what is there.
        """
        c, n = self.code, self.number
        row, column = (c.op("mul i64", k, SIDE) for k in block)
        line = c.op("add i64", c.op("mul i64", row, n["c_row"]), column)
        c.store("ptr", c.at("float", out, line), self.place)
        c.store("i64", least(c, c.op("sub i64", n["rows"], row), str(SIDE)), self.rows)
        edge = splat(c, c.op("sub i64", n["columns"], column), "i64")
        for v in range(2):
            numbers = ", ".join(f"i64 {v * LANES + k}" for k in range(LANES))
            mask = c.put(f"icmp slt <{LANES} x i64> <{numbers}>, {edge}")
            c.store(MASK, mask, self.masks[v])
            c.store(MASK, c.op(f"and {MASK}", mask, splat(c, added, "i1")), self.olds[v])
            c.store(MASK, "zeroinitializer", self.bad[v])
        for coming, slot in zip(self.next, self.factors):
            c.store("ptr", c.load("ptr", coming), slot)
        for coming, slot in zip(self.coming, self.sizes):
            c.store("i64", c.load("i64", coming), slot)

    def write(self, quarter: int) -> None:
        """Write what is finite in a quarter of the rows of the block that is to be written."""
        c, size = self.code, SIDE // ROUND
        with c.loop(str(quarter * size), least(c, c.load("i64", self.rows), str((quarter + 1) * size))) as i:
            for v in range(2):
                value = self.sum_of(self.sums, i, v)
                mask = c.load(MASK, self.masks[v])
                finite = c.op(f"and {MASK}", mask, self.is_finite(value))
                left = c.op(f"xor {MASK}", mask, finite)
                c.store(MASK, c.op(f"or {MASK}", c.load(MASK, self.bad[v]), left), self.bad[v])
                self.put(value, i, v, finite)

    def finish(self) -> None:
        """Say that the block is written; what was not finite is computed by vectors first."""
        c = self.code
        bad = c.op(f"or {MASK}", *(c.load(MASK, mask) for mask in self.bad))
        with c.when(c.put(f"call i1 @llvm.vector.reduce.or.v{LANES}i1({MASK} {bad})")):
            self.plain(self.factors, self.sizes, self.again)
            with c.loop("0", c.load("i64", self.rows)) as i:
                for v in range(2):
                    finite = self.is_finite(self.sum_of(self.sums, i, v))
                    mask = c.load(MASK, self.masks[v])
                    left = c.op(f"xor {MASK}", mask, c.op(f"and {MASK}", mask, finite))
                    self.put(self.sum_of(self.again, i, v), i, v, left)
        c.store("i64", "0", self.rows)

    def write_all(self) -> None:
        """Write the block that is to be written, if there is one."""
        c = self.code
        with c.when(c.put(f"icmp ne i64 {c.load('i64', self.rows)}, 0")):
            for quarter in range(ROUND):
                self.write(quarter)
            self.finish()

    def sum_of(self, block: str, row: str, v: int) -> str:
        """Return vector `v` of a row of a scratch block."""
        place = self.code.at("float", block, self.code.op("mul i64", row, SIDE))
        return self.code.load(FLOATS, place, str(v * LANES), "float", 64)

    def is_finite(self, value: str) -> str:
        """Return the mask of the lanes that are finite."""
        c = self.code
        bits = c.op(f"and {INTS}", c.put(f"bitcast {FLOATS} {value} to {INTS}"), splat(c, str(0x7FFFFFFF)))
        return c.put(f"icmp ult {INTS} {bits}, {splat(c, str(_ENDLESS))}")

    def put(self, value: str, row: str, v: int, mask: str) -> None:
        """Write the lanes of `value` in `mask` as vector `v` of a row of the block, or add them."""
        c = self.code
        place = c.at("float", c.load("ptr", self.place), c.op("mul i64", row, self.number["c_row"]))
        place = c.at("float", place, str(v * LANES))
        kind = f"v{LANES}f32.p0"
        old = c.put(
            f"call {FLOATS} @llvm.masked.load.{kind}(ptr {place}, i32 4, {MASK} {c.load(MASK, self.olds[v])}, "
            f"{FLOATS} zeroinitializer)"
        )
        total = c.op(f"fadd {FLOATS}", old, value)
        c.do(f"call void @llvm.masked.store.{kind}({FLOATS} {total}, ptr {place}, i32 4, {MASK} {mask})")


_DECLARED = f"""declare void @llvm.x86.ldtilecfg(ptr)
declare void @llvm.x86.tilerelease()
declare void @llvm.x86.tilezero(i8 immarg)
declare void @llvm.x86.tileloadd64(i8 immarg, ptr, i64)
declare void @llvm.x86.tilestored64(i8 immarg, ptr, i64)
declare void @llvm.x86.tdpbf16ps(i8 immarg, i8 immarg, i8 immarg)
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
declare i1 @llvm.vector.reduce.or.v{LANES}i1({MASK})
declare {FLOATS} @llvm.masked.gather.v{LANES}f32.v{LANES}p0(<{LANES} x ptr>, i32, {MASK}, {FLOATS})
declare void @llvm.masked.store.v{LANES}f32.p0({FLOATS}, ptr, i32, {MASK})
"""


def _plain() -> str:
    """Return the function that multiplies two factors, as they lie, by vectors."""
    c = Code()
    sums = [[c.variable(FLOATS, "zeroinitializer") for _ in range(2)] for _ in range(ROUND)]
    pointers, longs = f"<{LANES} x ptr>", f"<{LANES} x i64>"
    lanes = [f"{longs} <{', '.join(f'i64 {v * LANES + k}' for k in range(LANES))}>" for v in range(2)]
    masks = [c.put(f"icmp slt {lane}, {splat(c, '%columns', 'i64')}") for lane in lanes]
    offsets = [c.put(f"mul {lane}, {splat(c, '%right_row', 'i64')}") for lane in lanes]
    with c.loop("0", "%rows", ROUND) as row:
        # Rows beyond the last are computed as that one again; nobody reads them.
        end = c.op("sub i64", "%rows", "1")
        rows = [c.op("mul i64", least(c, c.op("add i64", row, u), end), "%left_row") for u in range(ROUND)]
        for line in sums:
            for slot in line:
                c.store(FLOATS, "zeroinitializer", slot)
        with c.loop("0", "%steps") as k:
            left = c.at("float", "%left", c.op("mul i64", k, "%left_step"))
            right = c.at("float", "%right", c.op("mul i64", k, "%right_step"))
            factors = []
            for mask, offset in zip(masks, offsets):
                places = c.put(f"getelementptr float, ptr {right}, {longs} {offset}")
                factors.append(
                    c.put(
                        f"call {FLOATS} @llvm.masked.gather.v{LANES}f32.v{LANES}p0({pointers} {places}, i32 4, "
                        f"{MASK} {mask}, {FLOATS} zeroinitializer)"
                    )
                )
            for place, line in zip(rows, sums):
                number = splat(c, c.load("float", left, place), "float")
                for slot, factor in zip(line, factors):
                    product = c.put(f"fmul contract {FLOATS} {number}, {factor}")
                    total = c.put(f"fadd contract {FLOATS} {c.load(FLOATS, slot)}, {product}")
                    c.store(FLOATS, total, slot)
        for u, line in enumerate(sums):
            place = c.at("float", "%out", c.op("mul i64", c.op("add i64", row, u), SIDE))
            for v, slot in enumerate(line):
                c.store(FLOATS, c.load(FLOATS, slot), place, str(v * LANES), "float", 64)
    c.do("ret void")
    names = ("left_row", "left_step", "right_row", "right_step", "steps", "rows", "columns")
    numbers = ", ".join(f"i64 %{name}" for name in names)
    return with_vectors(c.function("void", "plain", f"ptr %left, ptr %right, {numbers}, ptr %out"))
