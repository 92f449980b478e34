"""Sorting, selecting and searching rows, as LLVM IR.

*Keys.* An element becomes an unsigned integer of its size whose order is the wanted one: integers
are shifted to begin at zero, floats have their sign bit flipped or, below zero, all bits; every NaN
is the largest key and -0 is 0. For descending order all bits are flipped. A *record* is a key above
the element's position, in 64 bits, or 128 for elements of 8 bytes: no two are equal, so that any
way of sorting records is stable.

*Sorting.* Few records are ranked: where a record belongs is the number of those below it, counted
with vectors and no branch. More are sorted by the bytes of their keys, from the lowest up, between
two halves of scratch memory; a byte that all keys share costs one look at its counts.

*Selecting.* The first k of a row are found with a threshold, the k-th of the elements seen so far:
elements below it, which soon become few, are collected, and when there is no room left all but the
first k are dropped, and the threshold falls. Equal elements that come later are never below it, so
this is stable as well.

*Searching* is a binary search for a vector of values at once; all of them take the same number of
steps.

A sorted element is computed back from its key, except zeros and NaN, which are read again to keep
their sign and payload.
"""

from __future__ import annotations

from mycel._src.engines.native.kernels.codegen import NAME
from mycel._src.engines.native.llvm.function_builder import Code
from mycel._src.engines.native.llvm.target import target
from mycel._src.foundation.dtype import DType

__all__ = ["PAD", "record_bytes", "search_text", "sort_text", "top_text"]

# Records that may be written beyond the last.
PAD = 16
VECTOR = 8
# Up to so many records are ranked.
RANKED, RANKED_WIDE = 64, 24

_MANTISSA = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}


def record_bytes(dtype: DType) -> int:
    """Return the bytes of a record."""
    return 16 if dtype.itemsize == 8 else 8


class _Order:
    """The keys and records of an element type in one direction."""

    def __init__(self, dtype: DType, descending: bool) -> None:
        self.floating, self.signed, self.descending = dtype.is_floating, dtype.kind == "i", descending
        self.bytes = dtype.itemsize
        self.bits = 8 * self.bytes
        self.sign, self.ones = 1 << self.bits - 1, (1 << self.bits) - 1
        self.element = f"i{self.bits}"
        self.wide = self.bytes == 8
        self.record = "i128" if self.wide else "i64"
        self.shift = 64 if self.wide else 32
        self.infinity = (self.ones >> 1) + 1 - (1 << _MANTISSA[dtype.name]) if self.floating else 0
        self.zero = self.sign ^ (self.ones if descending else 0)
        self.nan = 0 if descending else self.ones

    def kind(self, lanes: int) -> str:
        return self.element if lanes == 1 else f"<{lanes} x {self.element}>"

    def number(self, value: int, lanes: int, element: str = "") -> str:
        if lanes == 1:
            return str(value)
        return "<" + ", ".join([f"{element or self.element} {value}"] * lanes) + ">"

    def key(self, c: Code, bits: str, lanes: int = 1) -> str:
        """Return the key of an element's bits."""
        t = self.kind(lanes)

        def n(value: int) -> str:
            return self.number(value, lanes)

        if not self.floating:
            flip = (self.sign if self.signed else 0) ^ (self.ones if self.descending else 0)
            return c.put(f"xor {t} {bits}, {n(flip)}") if flip else bits
        flag = "i1" if lanes == 1 else f"<{lanes} x i1>"
        negative_zero = c.put(f"icmp eq {t} {bits}, {n(self.sign)}")
        plain = c.put(f"select {flag} {negative_zero}, {t} {n(0)}, {t} {bits}")
        below = c.put(f"ashr {t} {plain}, {n(self.bits - 1)}")
        mask = c.put(f"or {t} {below}, {n(self.sign)}")
        key = c.put(f"xor {t} {plain}, {mask}")
        if self.descending:
            key = c.put(f"xor {t} {key}, {n(self.ones)}")
        size = c.put(f"and {t} {plain}, {n(self.ones >> 1)}")
        nan = c.put(f"icmp ugt {t} {size}, {n(self.infinity)}")
        return c.put(f"select {flag} {nan}, {t} {n(self.nan)}, {t} {key}")

    def unkey(self, c: Code, key: str, lanes: int = 1) -> str:
        """Return the bits of the element with a key, which is not that of a zero or a NaN."""
        t = self.kind(lanes)

        def n(value: int) -> str:
            return self.number(value, lanes)

        if not self.floating:
            return self.key(c, key, lanes)
        if self.descending:
            key = c.put(f"xor {t} {key}, {n(self.ones)}")
        above = c.put(f"ashr {t} {key}, {n(self.bits - 1)}")
        mask = c.put(f"or {t} {c.put(f'xor {t} {above}, {n(self.ones)}')}, {n(self.sign)}")
        return c.put(f"xor {t} {key}, {mask}")

    def pack(self, c: Code, key: str, position: str) -> str:
        """Return a record of a key and a position."""
        high = c.put(f"zext {self.element} {key} to {self.record}")
        high = c.put(f"shl {self.record} {high}, {self.shift}")
        low = c.put(f"zext i64 {position} to i128") if self.wide else position
        return c.put(f"or {self.record} {high}, {low}")

    def key_of(self, c: Code, record: str) -> str:
        """Return the key in a record."""
        return c.put(f"trunc {self.record} {c.put(f'lshr {self.record} {record}, {self.shift}')} to {self.element}")


def _prepare(o: _Order) -> str:
    """Return the function that makes records of the first `n` elements."""
    c = Code()
    done = "0"
    if not o.wide:
        v = VECTOR
        done = c.put(f"and i64 %n, {-v}")
        lanes = "<" + ", ".join(f"i64 {k}" for k in range(v)) + ">"
        wide = f"<{v} x i64>"
        with c.loop("0", done, v) as i:
            bits = c.load(o.kind(v), "%x", i, o.element, o.bytes)
            key = c.put(f"zext {o.kind(v)} {o.key(c, bits, v)} to {wide}")
            high = c.put(f"shl {wide} {key}, {o.number(32, v, 'i64')}")
            at = c.put(f"add {wide} {_splat(c, i, 'i64', v)}, {lanes}")
            c.store(wide, c.put(f"or {wide} {high}, {at}"), "%records", i, "i64", 8)
    with c.loop(done, "%n") as i:
        record = o.pack(c, o.key(c, c.load(o.element, "%x", i)), i)
        c.store(o.record, record, "%records", i, align=8)
    c.do("ret void")
    return c.function("void", "prepare", "ptr %x, ptr %records, i64 %n")


def _splat(c: Code, value: str, element: str, lanes: int) -> str:
    kind = f"<{lanes} x {element}>"
    first = c.put(f"insertelement {kind} undef, {element} {value}, i64 0")
    return c.put(f"shufflevector {kind} {first}, {kind} undef, <{lanes} x i32> zeroinitializer")


def _rank(o: _Order) -> str:
    """Return the function that copies the `n` records at `a` to their ranks at `b`."""
    c = Code()
    if o.wide:
        with c.loop("0", "%n") as i:
            own = c.load("i128", "%a", i, align=8)
            rank = c.variable("i64", "0")
            with c.loop("0", "%n") as j:
                below = c.put(f"icmp ult i128 {c.load('i128', '%a', j, align=8)}, {own}")
                more = c.put(f"zext i1 {below} to i64")
                c.store("i64", c.put(f"add i64 {c.load('i64', rank)}, {more}"), rank)
            c.store("i128", own, "%b", c.load("i64", rank), align=8)
        c.do("ret void")
        return c.function("void", "rank", "ptr %a, ptr %b, i64 %n")
    v, copies = VECTOR, 2
    wide = f"<{v} x i64>"
    for k in range(v * copies):
        c.store("i64", "-1", "%a", c.put(f"add i64 %n, {k}"))
    with c.loop("0", "%n", v * copies) as i:
        bases = [c.put(f"add i64 {i}, {k * v}") for k in range(copies)]
        mine = [c.load(wide, "%a", base, "i64", 8) for base in bases]
        ranks = [c.variable(wide, "zeroinitializer") for _ in bases]
        with c.loop("0", "%n") as j:
            other = _splat(c, c.load("i64", "%a", j), "i64", v)
            for vector, counted in zip(mine, ranks):
                below = c.put(f"zext <{v} x i1> {c.put(f'icmp ult {wide} {other}, {vector}')} to {wide}")
                c.store(wide, c.put(f"add {wide} {c.load(wide, counted)}, {below}"), counted)
        for base, vector, counted in zip(bases, mine, ranks):
            where = c.load(wide, counted)
            for k in range(v):
                inside = c.put(f"icmp slt i64 {c.put(f'add i64 {base}, {k}')}, %n")
                place = c.put(f"extractelement {wide} {where}, i64 {k}")
                # What lies beyond the end goes where nothing is read.
                place = c.put(f"select i1 {inside}, i64 {place}, i64 %n")
                c.store("i64", c.put(f"extractelement {wide} {vector}, i64 {k}"), "%b", place)
    c.do("ret void")
    return c.function("void", "rank", "ptr %a, ptr %b, i64 %n")


def _radix(o: _Order) -> str:
    """Return the function that sorts `n` records at `a` by the bytes of their keys.

    It gives the place where they lie at the end, `a` or `b`.
    """
    c = Code()
    r = o.record
    counts = c.slot("i32", 256 * o.bytes)
    c.do(f"call void @llvm.memset.p0.i64(ptr {counts}, i8 0, i64 {1024 * o.bytes}, i1 false)")
    tables = [c.at("i32", counts, str(256 * d)) for d in range(o.bytes)]

    def digit(record: str, d: int) -> str:
        part = c.put(f"lshr {r} {record}, {o.shift + 8 * d}")
        if d == o.bytes - 1 and o.shift + o.bits == (128 if o.wide else 64):
            return part if r == "i64" else c.put(f"trunc i128 {part} to i64")
        low = c.put(f"and {r} {part}, 255")
        return low if r == "i64" else c.put(f"trunc i128 {low} to i64")

    with c.loop("0", "%n") as i:
        record = c.load(r, "%a", i, align=8)
        for d, table in enumerate(tables):
            place = c.at("i32", table, digit(record, d))
            c.store("i32", c.put(f"add i32 {c.load('i32', place)}, 1"), place)
    source, target = c.variable("ptr", "%a"), c.variable("ptr", "%b")
    n32 = c.put("trunc i64 %n to i32")
    first = c.load(r, "%a", align=8)
    for d, table in enumerate(tables):
        shared = c.load("i32", table, digit(first, d))
        with c.when(c.put(f"icmp ne i32 {shared}, {n32}")):
            total = c.variable("i32", "0")
            with c.loop("0", "256") as k:
                place = c.at("i32", table, k)
                count, start = c.load("i32", place), c.load("i32", total)
                c.store("i32", start, place)
                c.store("i32", c.put(f"add i32 {start}, {count}"), total)
            here, there = c.load("ptr", source), c.load("ptr", target)
            with c.loop("0", "%n") as i:
                record = c.load(r, here, i, align=8)
                place = c.at("i32", table, digit(record, d))
                spot = c.load("i32", place)
                c.store("i32", c.put(f"add i32 {spot}, 1"), place)
                c.store(r, record, there, c.put(f"zext i32 {spot} to i64"), align=8)
            c.store("ptr", there, source)
            c.store("ptr", here, target)
    c.do(f"ret ptr {c.load('ptr', source)}")
    return c.function("ptr", "radix", "ptr %a, ptr %b, i64 %n")


def _sort(o: _Order) -> str:
    """Return the function that sorts `n` records at `a`.

    It gives the place where they lie at the end, `a` or `b`.
    """
    c = Code()
    with c.when(c.op("icmp sle i64", "%n", RANKED_WIDE if o.wide else RANKED)):
        c.do("call void @rank(ptr %a, ptr %b, i64 %n)")
        c.leave_if("true", "ptr %b")
    c.do(f"ret ptr {c.put('call ptr @radix(ptr %a, ptr %b, i64 %n)')}")
    return c.function("ptr", "sorted", "ptr %a, ptr %b, i64 %n")


def _finish(o: _Order) -> str:
    """Return the function that writes the elements and positions of the first `n` records.

    The elements that the records were made of are at `x`.
    """
    c = Code()
    done = "0"
    if not o.wide:
        v = VECTOR
        wide = f"<{v} x i64>"
        done = c.op("and i64", "%n", -v)
        with c.loop("0", done, v) as i:
            records = c.load(wide, "%records", i, "i64", 8)
            c.store(f"<{v} x i32>", c.put(f"trunc {wide} {records} to <{v} x i32>"), "%positions", i, "i32", 4)
            high = c.put(f"lshr {wide} {records}, {o.number(32, v, 'i64')}")
            keys = c.put(f"trunc {wide} {high} to {o.kind(v)}")
            c.store(o.kind(v), o.unkey(c, keys, v), "%values", i, o.element, o.bytes)
            if o.floating:
                zero = c.put(f"icmp eq {o.kind(v)} {keys}, {o.number(o.zero, v)}")
                nan = c.put(f"icmp eq {o.kind(v)} {keys}, {o.number(o.nan, v)}")
                special = c.put(f"bitcast <{v} x i1> {c.put(f'or <{v} x i1> {zero}, {nan}')} to i{v}")
                with c.when(c.put(f"icmp ne i{v} {special}, 0")):
                    end = c.put(f"add i64 {i}, {v}")
                    with c.loop(i, end) as j:
                        at = c.put(f"and i64 {c.load('i64', '%records', j)}, 4294967295")
                        c.store(o.element, c.load(o.element, "%x", at), "%values", j)
    with c.loop(done, "%n") as i:
        record = c.load(o.record, "%records", i, align=8)
        position = c.put(f"trunc {o.record} {record} to i32")
        c.store("i32", position, "%positions", i)
        c.store(o.element, c.load(o.element, "%x", c.put(f"zext i32 {position} to i64")), "%values", i)
    c.do("ret void")
    return c.function("void", "finish", "ptr %x, ptr %records, i64 %n, ptr %values, ptr %positions")


def _select(o: _Order) -> str:
    """Return the function that gives the first `k` records of the `n` elements at `x`, in order.

    `a` and `b` have room for more than twice as many.
    """
    c = Code()
    double, some = c.op("shl i64", "%k", 1), c.op("add i64", "%k", 48)
    least = c.put(f"select i1 {c.op('icmp sgt i64', double, some)}, i64 {double}, i64 {some}")
    room = c.op("and i64", c.op("add i64", least, 15), -16)
    few = c.op("icmp sle i64", "%n", room)
    first = c.put(f"select i1 {few}, i64 %n, i64 {room}")
    c.do(f"call void @prepare(ptr %x, ptr %a, i64 {first})")
    here = c.variable("ptr", c.put(f"call ptr @sorted(ptr %a, ptr %b, i64 {first})"))
    c.leave_if(few, f"ptr {c.load('ptr', here)}")
    v = 8 if o.wide else 16
    last = c.put("sub i64 %k, 1")
    count = c.variable("i64", "%k")
    bound = c.variable(o.element, o.key_of(c, c.load(o.record, c.load("ptr", here), last, align=8)))
    whole = c.op("add i64", first, c.op("and i64", c.op("sub i64", "%n", first), -v))

    def prune() -> None:
        now = c.load("ptr", here)
        other = c.put(f"select i1 {c.put(f'icmp eq ptr {now}, %a')}, ptr %b, ptr %a")
        made = c.put(f"call ptr @sorted(ptr {now}, ptr {other}, i64 {c.load('i64', count)})")
        c.store("ptr", made, here)
        c.store("i64", "%k", count)
        c.store(o.element, o.key_of(c, c.load(o.record, made, last, align=8)), bound)

    def append(key: str, position: str) -> None:
        at = c.load("i64", count)
        c.store(o.record, o.pack(c, key, position), c.load("ptr", here), at, align=8)
        c.store("i64", c.put(f"add i64 {at}, 1"), count)

    def make_room() -> None:
        with c.when(c.op("icmp sgt i64", c.op("add i64", c.load("i64", count), v), room)):
            prune()

    flags = f"i{v}"
    with c.loop(first, whole, v) as i:
        keys = o.key(c, c.load(o.kind(v), "%x", i, o.element, o.bytes), v)
        limit = _splat(c, c.load(o.element, bound), o.element, v)
        below = c.put(f"icmp ult {o.kind(v)} {keys}, {limit}")
        hits = c.put(f"bitcast <{v} x i1> {below} to {flags}")
        with c.when(c.put(f"icmp ne {flags} {hits}, 0")):
            make_room()
            left = c.variable(flags, hits)
            with c.repeat(lambda: c.put(f"icmp ne {flags} {c.load(flags, left)}, 0")):
                now = c.load(flags, left)
                lane = c.put(f"zext {flags} {c.put(f'call {flags} @llvm.cttz.{flags}({flags} {now}, i1 true)')} to i64")
                c.store(flags, c.put(f"and {flags} {now}, {c.put(f'sub {flags} {now}, 1')}"), left)
                at = c.put(f"add i64 {i}, {lane}")
                append(o.key(c, c.load(o.element, "%x", at)), at)
    make_room()
    with c.loop(whole, "%n") as i:
        key = o.key(c, c.load(o.element, "%x", i))
        with c.when(c.put(f"icmp ult {o.element} {key}, {c.load(o.element, bound)}")):
            append(key, i)
    prune()
    c.do(f"ret ptr {c.load('ptr', here)}")
    text = c.function("ptr", "select_first", "ptr %x, i64 %n, i64 %k, ptr %a, ptr %b")
    return f"declare {flags} @llvm.cttz.{flags}({flags}, i1)\n{text}"


def _rows(o: _Order, stack: int, body: str) -> str:
    """Return the kernel over rows of `n` elements, whose results are `m` long.

    Scratch memory is on the stack where `stack`, its size, is not 0. The words are rows, parts, n,
    m, the records that half of the scratch memory holds, then the addresses of the elements,
    values, positions and scratch memory.
    """
    c = Code()
    c.leave_if(c.op("icmp sge i64", "%begin", "%end"), "void")
    count, parts, n, m, room = (c.load("i64", "%words", str(k)) for k in range(5))
    x, values, positions = (c.load("ptr", "%words", str(k), "i64") for k in (5, 6, 7))
    half = c.op("mul i64", room, 16 if o.wide else 8)
    if stack:
        a = c.slot("i8", stack)
    else:
        a = c.at("i8", c.load("ptr", "%words", "8", "i64"), c.op("mul i64", c.op("shl i64", half, 1), "%begin"))
    b = c.at("i8", a, half)
    start = c.put(f"sdiv i64 {c.put(f'mul i64 {count}, %begin')}, {parts}")
    end = c.put(f"sdiv i64 {c.put(f'mul i64 {count}, %end')}, {parts}")
    with c.loop(start, end) as row:
        source = c.at(o.element, x, c.put(f"mul i64 {row}, {n}"))
        target = c.put(f"mul i64 {row}, {m}")
        if body == "sort":
            c.do(f"call void @prepare(ptr {source}, ptr {a}, i64 {n})")
            made = c.put(f"call ptr @sorted(ptr {a}, ptr {b}, i64 {n})")
        else:
            made = c.put(f"call ptr @select_first(ptr {source}, i64 {n}, i64 {m}, ptr {a}, ptr {b})")
        into = f"ptr {c.at(o.element, values, target)}, ptr {c.at('i32', positions, target)}"
        c.do(f"call void @finish(ptr {source}, ptr {made}, i64 {m}, {into})")
    c.do("ret void")
    return _kernel(c)


def _kernel(c: Code) -> str:
    bits = target().vector_bytes * 8
    width = f'attributes #0 = {{ nounwind "prefer-vector-width"="{bits}" "min-legal-vector-width"="{bits}" }}'
    return c.function("void", NAME, "ptr %words, i64 %begin, i64 %end", "").replace(") {", ") #0 {", 1) + "\n" + width


_DECLARED = "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"


def sort_text(dtype: DType, descending: bool, stack: int) -> str:
    """Return the text of the kernel that sorts rows."""
    o = _Order(dtype, descending)
    parts = (_DECLARED, _prepare(o), _rank(o), _radix(o), _sort(o), _finish(o), _rows(o, stack, "sort"))
    return "\n".join(parts) + "\n"


def top_text(dtype: DType, largest: bool, stack: int) -> str:
    """Return the text of the kernel that finds the first elements of rows."""
    o = _Order(dtype, largest)
    parts = (_DECLARED, _prepare(o), _rank(o), _radix(o), _sort(o), _finish(o), _select(o), _rows(o, stack, "top"))
    return "\n".join(parts) + "\n"


def search_text(dtype: DType, side: str, one_row: bool, position: DType) -> str:
    """Return the text of the kernel that finds where values belong in sorted rows.

    `dtype` is the type of the elements, `position` int32 or int64, that of the result. `side` is
    "left" or "right" of equal elements; with `one_row` all values are searched in the same row. The
    words are the elements of a row, the values of a row, and the addresses of rows, values and
    positions; the range is over all values.
    """
    o = _Order(dtype, False)
    c = Code()
    v, copies = VECTOR, 2
    wide, bits = f"<{v} x i64>", o.kind(v)
    n, m = c.load("i64", "%words", "0"), c.load("i64", "%words", "1")
    rows, values, positions = (c.load("ptr", "%words", str(k), "i64") for k in (2, 3, 4))
    before = "ult" if side == "left" else "ule"
    lanes = "<" + ", ".join(f"i64 {k}" for k in range(v)) + ">"
    every = "<" + ", ".join(["i1 true"] * v) + ">"
    last = _splat(c, c.op("sub i64", "%end", 1), "i64", v)
    some = _splat(c, c.op("icmp ne i64", n, 0), "i1", v)

    def gather(base: str, index: str) -> str:
        places = c.put(f"getelementptr {o.element}, ptr {base}, {wide} {index}")
        arguments = f"<{v} x ptr> {places}, i32 {o.bytes}, <{v} x i1> {every}, {bits} undef"
        return o.key(c, c.put(f"call {bits} @{gatherer}({arguments})"), v)

    gatherer = f"llvm.masked.gather.v{v}{o.element}.v{v}p0"
    whole_words, kind = position.bits == 64, f"<{v} x i{position.bits}>"
    storer = f"llvm.masked.store.v{v}i{position.bits}.p0"
    with c.loop("%begin", "%end", v * copies) as p:
        places, keys, starts = [], [], []
        for k in range(copies):
            first = _splat(c, c.op("add i64", p, k * v), "i64", v)
            # What lies beyond the end is the last value once more.
            place = c.put(f"call {wide} @llvm.smin.v{v}i64({wide} {c.op(f'add {wide}', first, lanes)}, {wide} {last})")
            places.append(place)
            keys.append(gather(values, place))
            row = "zeroinitializer"
            if not one_row:
                row = c.op(f"sdiv {wide}", place, _splat(c, m, "i64", v))
                row = c.op(f"mul {wide}", row, _splat(c, n, "i64", v))
            starts.append(row)
        lows = [c.variable(wide, row) for row in starts]
        length = c.variable("i64", n)
        with c.repeat(lambda: c.op("icmp sgt i64", c.load("i64", length), 1)):
            whole = c.load("i64", length)
            half = c.op("lshr i64", whole, 1)
            gain, step = _splat(c, half, "i64", v), _splat(c, c.op("sub i64", half, 1), "i64", v)
            for key, low in zip(keys, lows):
                now = c.load(wide, low)
                found = c.op(f"icmp {before} {bits}", gather(rows, c.op(f"add {wide}", now, step)), key)
                more = c.put(f"select <{v} x i1> {found}, {wide} {gain}, {wide} zeroinitializer")
                c.store(wide, c.op(f"add {wide}", now, more), low)
            c.store("i64", c.op("sub i64", whole, half), length)
        for k, (key, low, row) in enumerate(zip(keys, lows, starts)):
            now = c.load(wide, low)
            # A single element is left; it may still be before the value.
            found = c.op(f"and <{v} x i1>", c.op(f"icmp {before} {bits}", gather(rows, now), key), some)
            where = c.op(f"add {wide}", c.op(f"sub {wide}", now, row), c.put(f"zext <{v} x i1> {found} to {wide}"))
            first = c.op("add i64", p, k * v)
            inside = c.op(f"icmp sle {wide}", c.op(f"add {wide}", _splat(c, first, "i64", v), lanes), last)
            result = where if whole_words else c.put(f"trunc {wide} {where} to {kind}")
            target = c.at(f"i{position.bits}", positions, first)
            c.do(f"call void @{storer}({kind} {result}, ptr {target}, i32 {position.itemsize}, <{v} x i1> {inside})")
    c.do("ret void")
    declared = (
        f"declare {wide} @llvm.smin.v{v}i64({wide}, {wide})",
        f"declare {bits} @{gatherer}(<{v} x ptr>, i32, <{v} x i1>, {bits})",
        f"declare void @{storer}({kind}, ptr, i32, <{v} x i1>)",
    )
    return "\n".join([*declared, _kernel(c)]) + "\n"
