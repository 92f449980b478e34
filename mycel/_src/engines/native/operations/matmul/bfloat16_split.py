"""float32 factors split into three bfloat16 terms (*pieces*) and packed as AMX tiles.

A float32 number has 24 significant bits, a bfloat16 number 8 and the same exponents, so each number
is exactly the sum of three pieces. Of the nine products of the pieces of two numbers, the six
largest give the product of the numbers to 2**-23, which is how float32 itself rounds, and units
that multiply tiles of bfloat16 (`amx_support`) do sixteen times the work of vectors.

A packed factor is a sequence of blocks: `SIDE` rows of the left factor, or columns of the right
one, by `SIDE` steps of the common axis. A block has three pieces of two tiles of 16 x 16 words. A
word holds steps k and k + 16 of the block for one row or column. In a tile of the left factor a
line is a row and the lanes are words; in one of the right factor it is the other way round. Steps
beyond the last, rows and columns beyond the last are zeros.

With each row or column of blocks the bits of its largest magnitude are kept, part by part
(`part_steps` blocks along the common axis), for the reason that `amx_product_kernel` has.

What is said of rows of the left factor holds for columns of the right one.
"""

from __future__ import annotations

from mycel._src.engines.native.kernels.codegen import NAME
from mycel._src.engines.native.llvm.function_builder import Code
from mycel._src.engines.native.llvm.target import RememberedByTarget
from mycel._src.foundation.bounded_caches import SOME

__all__ = [
    "BLOCK_WORDS",
    "FLAGS",
    "FLOATS",
    "GROUP",
    "HEAD",
    "INTS",
    "LANES",
    "MASK",
    "PACK_NUMBERS",
    "PIECES",
    "SIDE",
    "TILE_WORDS",
    "least",
    "pack",
    "pack_code",
    "pack_text",
    "splat",
    "with_vectors",
]

SIDE, LANES, PIECES = 32, 16, 3
TILE_WORDS = LANES * LANES
BLOCK_WORDS = PIECES * 2 * TILE_WORDS
INTS, FLOATS, MASK = f"<{LANES} x i32>", f"<{LANES} x float>", f"<{LANES} x i1>"
# The most rows of blocks that are packed at once.
GROUP = 8
# Flags behind a packed factor, zeros, for `amx_product_kernel`.
FLAGS = 64
# The words before the addresses of the factor and of what is packed, in which the largest
# magnitudes begin at the word `largest`, and flags at the word `flags`.
PACK_NUMBERS = (
    "extent",
    "steps",
    "stride",
    "first",
    "matrices",
    "inner",
    "outer",
    "blocks",
    "groups",
    "depth",
    "parts",
    "part_steps",
    "largest",
    "flags",
)
HEAD = f"""declare i64 @llvm.smin.i64(i64, i64)
declare {INTS} @llvm.umax.v{LANES}i32({INTS}, {INTS})
declare i32 @llvm.vector.reduce.umax.v{LANES}i32({INTS})
declare {FLOATS} @llvm.masked.load.v{LANES}f32.p0(ptr, i32, {MASK}, {FLOATS})
attributes #0 = {{ nounwind "prefer-vector-width"="512" "min-legal-vector-width"="512" }}
"""


def splat(c: Code, value: str, kind: str = "i32") -> str:
    """Return a vector of one number; `kind` is its LLVM type."""
    vector = f"<{LANES} x {kind}>"
    first = c.put(f"insertelement {vector} poison, {kind} {value}, i32 0")
    return c.put(f"shufflevector {vector} {first}, {vector} poison, <{LANES} x i32> zeroinitializer")


@RememberedByTarget("kernels that pack factors", SOME).calls
def pack_text(left: bool, along: bool) -> str:
    """Return the text of the kernel that packs a whole factor; for the arguments see `pack_code`.

    A unit of the range is a part of a group of rows of blocks.
    """
    c = Code()
    n = {name: c.load("i64", "%words", str(k)) for k, name in enumerate(PACK_NUMBERS)}
    source, target = (c.load("ptr", "%words", str(len(PACK_NUMBERS) + k), "i64") for k in range(2))
    source = c.at("float", source, n["first"])
    with c.loop("%begin", "%end") as unit:
        with c.when(c.put(f"icmp eq i64 {unit}, 0")):
            with c.loop("0", str(FLAGS)) as k:
                c.store("i32", "0", target, c.op("add i64", n["flags"], k))
        part, rest = c.op("urem i64", unit, n["parts"]), c.op("udiv i64", unit, n["parts"])
        group, number = c.op("urem i64", rest, n["groups"]), c.op("udiv i64", rest, n["groups"])
        matrix, outer = c.op("urem i64", number, n["matrices"]), c.op("udiv i64", number, n["matrices"])
        moved = c.op("add i64", c.op("mul i64", matrix, n["inner"]), c.op("mul i64", outer, n["outer"]))
        block, step = c.op("mul i64", group, GROUP), c.op("mul i64", part, n["part_steps"])
        blocks = least(c, c.op("sub i64", n["blocks"], block), str(GROUP))
        count = least(c, c.op("sub i64", n["depth"], step), n["part_steps"])
        panel = c.op("add i64", c.op("mul i64", number, n["blocks"]), block)
        place = c.op("add i64", c.op("mul i64", panel, n["depth"]), step)
        most = c.op("add i64", n["largest"], c.op("add i64", c.op("mul i64", panel, n["parts"]), part))
        pack(
            c,
            along,
            (c.at("float", source, moved), n["stride"]),
            (c.op("mul i64", block, SIDE), c.op("mul i64", step, SIDE), n["extent"], n["steps"]),
            (blocks, count),
            (c.at("i32", target, c.op("mul i64", place, BLOCK_WORDS)), n["depth"]),
            (c.at("i32", target, most), n["parts"]),
        )
    c.do("ret void")
    body = c.function("void", NAME, "ptr noalias readonly %words, i64 %begin, i64 %end", "")
    return f"{HEAD}{pack_code(left, along)}\n{with_vectors(body)}"


def least(c: Code, a: str, b: str) -> str:
    """Return the smaller of two numbers."""
    return c.put(f"call i64 @llvm.smin.i64(i64 {a}, i64 {b})")


def with_vectors(text: str) -> str:
    """Return the text of a function that uses vectors of 512 bits."""
    first, _, rest = text.partition(") {")
    return f"{first}) #0 {{{rest}\n"


def pack(
    c: Code,
    along: bool,
    source: tuple[str, str],
    bounds: tuple[str, str, str, str],
    sizes: tuple[str, str],
    target: tuple[str, str],
    most: tuple[str, str],
) -> None:
    """Write, into the function `c`, a call of the function that `pack_code` gives.

    `along` is as there. `source` are the address of the factor and the stride of the axis that is
    not contiguous; `bounds` are the first row, the first step, and how many there are of each in
    the factor. `sizes` are the rows and columns of blocks to be packed, `target` and `most` are
    where blocks and largest magnitudes go, each with the distance from row to row of blocks.
    """
    row, step, rows, steps = bounds
    line, lane = (row, step) if along else (step, row)
    begin = c.at("float", c.at("float", source[0], c.op("mul i64", line, source[1])), lane)
    left = [c.op("sub i64", whole, first) for whole, first in ((rows, row), (steps, step))]
    numbers = ", ".join(f"i64 {value}" for value in (*left, source[1], *sizes, target[1], most[1]))
    c.do(f"call void @pack(ptr {begin}, ptr {target[0]}, ptr {most[0]}, {numbers})")


def pack_code(left: bool, along: bool) -> str:
    """Return the text of the function that packs some rows of blocks.

    `left` says which factor it is, and `along` whether the common axis is contiguous (else the
    other one is). Blocks are walked in the order in which the factor lies.
    """
    return _Pack(left, along).text()


class _Pack:
    """A writer of the function's text; for `left` and `along` see `pack_code`."""

    def __init__(self, left: bool, along: bool) -> None:
        self.along, self.turned = along, left != along
        c = self.code = Code()
        self.near = [c.slot("float", TILE_WORDS) for _ in range(2)] if self.turned else []
        self.top, self.size = c.slot(INTS, GROUP), c.slot(INTS)
        with c.loop("0", str(GROUP)) as k:
            c.store(INTS, "zeroinitializer", c.at(INTS, self.top, k))
        outer, inner = ("%blocks", "%count") if along else ("%count", "%blocks")
        with c.loop("0", outer) as one, c.loop("0", inner) as two:
            block, step = (one, two) if along else (two, one)
            place = c.op("add i64", c.op("mul i64", block, "%panel"), step)
            target = c.at("i32", "%target", c.op("mul i64", place, BLOCK_WORDS))
            most = c.at(INTS, self.top, block)
            for t in range(2):
                row = c.op("add i64", c.op("mul i64", block, SIDE), t * LANES)
                self.tile(row, c.op("mul i64", step, SIDE), c.at("i32", target, str(t * TILE_WORDS)), most)
        with c.loop("0", "%blocks") as k:
            sizes = c.load(INTS, c.at(INTS, self.top, k))
            value = c.put(f"call i32 @llvm.vector.reduce.umax.v{LANES}i32({INTS} {sizes})")
            c.store("i32", value, "%most", c.op("mul i64", k, "%apart"))
        c.do("ret void")

    def tile(self, row: str, step: str, target: str, most: str) -> None:
        """Write the tile of three pieces of the rows from `row` on and the steps from `step` on.

        The tile is at `target`; at `most` magnitudes are kept.
        """
        c = self.code
        rows, steps = c.op("sub i64", "%rows", row), c.op("sub i64", "%steps", step)
        inside = c.put(f"icmp sge i64 {rows}, {LANES}")
        whole = c.op("and i1", inside, c.put(f"icmp sge i64 {steps}, {SIDE}"))
        line, lane = (row, step) if self.along else (step, row)
        begin = c.at("float", c.at("float", "%source", c.op("mul i64", line, "%stride")), lane)
        edge = c.op("xor i1", whole, "true")
        with c.when(whole):
            self.lines(begin, target, most, None)
        with c.when(edge):
            self.lines(begin, target, most, (rows, steps))

    def lines(self, begin: str, target: str, most: str, edge: tuple[str, str] | None) -> None:
        """Write the pieces of a tile whose first number is at `begin`.

        Of the tile at `target` so many rows and steps as `edge` says exist (None: all). Magnitudes
        are kept at `most`.
        """
        c = self.code
        c.store(INTS, c.load(INTS, most), self.size)
        if self.turned:
            pairs = [self.pair(begin, str(k), edge) for k in range(LANES)]
            for side, near in enumerate(self.near):
                for k, vector in enumerate(_transposed(c, [pair[side] for pair in pairs])):
                    c.store(FLOATS, vector, near, str(k * LANES), "float", 64)
        with c.loop("0", str(LANES), 4) as first:
            for u in range(4):
                line = c.op("add i64", first, u)
                self.split(target, line, *(self.turned_pair(line) if self.turned else self.pair(begin, line, edge)))
        c.store(INTS, c.load(INTS, self.size), most)

    def turned_pair(self, line: str) -> tuple[str, str]:
        """Return the vectors of steps k and k + 16 in a line of the transposed tile."""
        spot = self.code.op("mul i64", line, LANES)
        x, y = (self.code.load(FLOATS, near, spot, "float", 64) for near in self.near)
        return x, y

    def pair(self, begin: str, line: str, edge: tuple[str, str] | None) -> tuple[str, str]:
        """Return the vectors of steps k and k + 16 in a line; for `edge` see `lines`."""
        c, stride = self.code, "%stride"
        place = c.at("float", begin, c.op("mul i64", line, stride))
        if self.along:
            places = place, c.at("float", place, str(LANES))
        else:
            places = place, c.at("float", place, c.op("mul i64", stride, LANES))
        if edge is None:
            return c.load(FLOATS, places[0], align=4), c.load(FLOATS, places[1], align=4)
        rows, steps = edge
        found = []
        for side, p in enumerate(places):
            if self.along:
                there, lanes = c.put(f"icmp slt i64 {line}, {rows}"), c.op("sub i64", steps, side * LANES)
            else:
                behind = c.op("add i64", line, side * LANES)
                there, lanes = c.put(f"icmp slt i64 {behind}, {steps}"), rows
            count = c.put(f"select i1 {there}, i64 {lanes}, i64 0")
            numbers = ", ".join(f"i64 {k}" for k in range(LANES))
            mask = c.put(f"icmp slt <{LANES} x i64> <{numbers}>, {splat(c, count, 'i64')}")
            found.append(
                c.put(
                    f"call {FLOATS} @llvm.masked.load.v{LANES}f32.p0(ptr {p}, i32 4, {MASK} {mask}, "
                    f"{FLOATS} zeroinitializer)"
                )
            )
        return found[0], found[1]

    def split(self, target: str, line: str, x: str, y: str) -> None:
        """Write three pieces of the vectors `x` and `y` as a line of the tile at `target`.

        The first piece is cut off, so that no number becomes infinite, the second is rounded, and
        the third is what is left, which has 8 bits.
        """
        c = self.code
        top = _constant(-65536)
        place = c.at("i32", target, c.op("mul i64", line, LANES))
        most = c.load(INTS, self.size)
        for value in (x, y):
            size = c.op(f"and {INTS}", c.put(f"bitcast {FLOATS} {value} to {INTS}"), _constant(0x7FFFFFFF))
            most = c.put(f"call {INTS} @llvm.umax.v{LANES}i32({INTS} {most}, {INTS} {size})")
        c.store(INTS, most, self.size)
        left = [x, y]
        for piece in range(PIECES):
            cut = []
            for value in left:
                bits = c.put(f"bitcast {FLOATS} {value} to {INTS}")
                if piece == 1:
                    bits = c.op(f"add {INTS}", bits, _constant(0x8000))
                cut.append(bits if piece == 2 else c.op(f"and {INTS}", bits, top))
            high = cut[1] if piece < 2 else c.op(f"and {INTS}", cut[1], top)
            word = c.op(f"or {INTS}", c.op(f"lshr {INTS}", cut[0], _constant(16)), high)
            c.store(INTS, word, place, str(piece * 2 * TILE_WORDS), "i32", 64)
            if piece < 2:
                parts = [c.put(f"bitcast {INTS} {bits} to {FLOATS}") for bits in cut]
                left = [c.op(f"fsub {FLOATS}", value, part) for value, part in zip(left, parts)]

    def text(self) -> str:
        numbers = ", ".join(f"i64 %{name}" for name in ("rows", "steps", "stride", "blocks", "count", "panel", "apart"))
        return with_vectors(self.code.function("void", "pack", f"ptr %source, ptr %target, ptr %most, {numbers}"))


def _constant(value: int) -> str:
    return f"<{', '.join([f'i32 {value}'] * LANES)}>"


def _transposed(c: Code, rows: list[str]) -> list[str]:
    """Return the columns of a square of numbers, by exchanging ever smaller halves of rows."""
    half = LANES // 2
    while half:
        for k in range(LANES):
            if k & half:
                continue
            a, b = rows[k], rows[k + half]
            low = [j if not j & half else LANES + j - half for j in range(LANES)]
            high = [j + half if not j & half else LANES + j for j in range(LANES)]
            rows[k], rows[k + half] = (
                c.put(f"shufflevector {FLOATS} {a}, {FLOATS} {b}, {INTS} <{', '.join(f'i32 {j}' for j in chosen)}>")
                for chosen in (low, high)
            )
        half //= 2
    return rows
