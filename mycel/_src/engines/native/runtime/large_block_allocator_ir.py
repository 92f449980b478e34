"""Large blocks of the native runtime's allocator, as LLVM IR.

Memory comes from the system in segments, and a segment is cut into pieces: in use, warm (free, its
pages are there) or cold (free, its pages are the system's). Free neighbours of one state are one
piece. A request takes the smallest warm piece that is large enough and leaves the rest of it. Where
there is none, warm pieces are cooled until what is asked for fits within the bound, and a part of
the smallest cold piece, or of a new segment, is warmed, which joins its warm neighbours. So sizes
that change from step to step do not add up: what is resident is what was in use at one time, and a
little. A segment that is cold all over goes back whole.

Cold pieces are whole huge pages, as only these are cheap to write anew. A piece is described
outside of itself, in eight words (`_WORDS`). The first 64 bytes of a piece in use are a block's
header, as `allocator_ir` has it, whose link is the description.
"""

from __future__ import annotations

import sys

from mycel._src.engines.native.llvm.function_builder import Code

__all__ = ["LARGE", "PIECES", "PIECE_CLASS"]

# Blocks from so many bytes on are pieces; their headers have this class.
LARGE = 1 << 15
PIECE_CLASS = 255
_WORDS = ("address", "size", "state", "before", "after", "previous", "next", "unused")
_USED, _WARM, _COLD = 0, 1, 2
_PAGE = 4096
_HUGE_PAGE = 2 << 20
# A rest of fewer bytes stays with the piece.
_REST = 1 << 14
# Segments have at least so many bytes, where the system gives as many, and grow with what is used.
_SEGMENT, _MOST_SEGMENT = 64 << 20, 1 << 30
# Linux is asked for huge pages: the first touch of memory costs a fraction, and fewer addresses
# have to be looked up.
_ADVISES_HUGE = sys.platform == "linux"
# "The contents are not needed": MADV_DONTNEED, and MADV_FREE of macOS.
_NOT_NEEDED = 4 if sys.platform == "linux" else 5
_RESERVED, _LIMIT, _BLOCKS, _MACHINE = 2, 4, 5, 6


class _Writer(Code):
    """The writer of a function, with the words of pieces and of the account."""

    def get(self, piece: str, word: str) -> str:
        return self.load("i64", piece, str(_WORDS.index(word)))

    def set(self, piece: str, word: str, value: str | int) -> None:
        self.store("i64", str(value), piece, str(_WORDS.index(word)))

    def link_of(self, piece: str, word: str) -> str:
        return self.load("ptr", piece, str(_WORDS.index(word)), "i64")

    def set_link(self, piece: str, word: str, value: str) -> None:
        self.store("ptr", value, piece, str(_WORDS.index(word)), "i64")

    def account(self, word: int) -> str:
        return self.load("i64", "@account", str(word))

    def add_to(self, word: int, value: str) -> str:
        total = self.op("add i64", self.account(word), value)
        self.store("i64", total, "@account", str(word))
        return total

    def is_set(self, pointer: str) -> str:
        return self.put(f"icmp ne ptr {pointer}, null")

    def rounded(self, value: str, unit: int) -> str:
        return self.op("and i64", self.op("add i64", value, unit - 1), -unit)

    def call(self, text: str) -> None:
        self.do(f"call void {text}")


def _bin() -> str:
    """Return the function from a size to the number of its list, four to a power of two."""
    c = _Writer()
    log = c.op("sub i64", "63", c.put("call i64 @llvm.ctlz.i64(i64 %size, i1 false)"))
    quarter = c.op("and i64", c.op("lshr i64", "%size", c.op("sub i64", log, 2)), 3)
    c.do(f"ret i64 {c.op('add i64', c.op('shl i64', log, 2), quarter)}")
    return c.function("i64", "piece_bin", "i64 %size")


def _slot(c: _Writer, piece: str) -> str:
    """Return the address of the head of the list that a free piece belongs to."""
    size, state = c.get(piece, "size"), c.get(piece, "state")
    number = c.put(f"call i64 @piece_bin(i64 {size})")
    first = c.op("shl i64", c.op("sub i64", state, _WARM), 8)
    return c.at("ptr", "@piece_lists", c.op("add i64", first, number))


def _make() -> str:
    """Return the function that makes the description of a piece; null without memory for it."""
    c = _Writer()
    spare = c.load("ptr", "@spare_pieces")
    found = c.variable("ptr", spare)
    with c.when(c.is_set(spare)):
        c.store("ptr", c.link_of(spare, "next"), "@spare_pieces")
    with c.when(c.put(f"icmp eq ptr {spare}, null")):
        c.store("ptr", c.put(f"call ptr @aligned_alloc(i64 64, i64 {8 * len(_WORDS)})"), found)
    piece = c.load("ptr", found)
    c.leave_if(c.put(f"icmp eq ptr {piece}, null"), "ptr null")
    for word, value in (("address", "%address"), ("size", "%size"), ("state", "%state")):
        c.set(piece, word, value)
    c.set_link(piece, "before", "null")
    c.set_link(piece, "after", "null")
    c.do(f"ret ptr {piece}")
    return c.function("ptr", "piece_make", "i64 %address, i64 %size, i64 %state")


def _forget() -> str:
    """Return the function that keeps a description that is not needed for the next piece."""
    c = _Writer()
    c.set_link("%piece", "next", c.load("ptr", "@spare_pieces"))
    c.store("ptr", "%piece", "@spare_pieces")
    c.do("ret void")
    return c.function("void", "piece_forget", "ptr %piece")


def _list() -> str:
    """Return the function that enters a free piece into its list."""
    c = _Writer()
    slot = _slot(c, "%piece")
    head = c.load("ptr", slot)
    c.set_link("%piece", "previous", "null")
    c.set_link("%piece", "next", head)
    with c.when(c.is_set(head)):
        c.set_link(head, "previous", "%piece")
    c.store("ptr", "%piece", slot)
    c.do("ret void")
    return c.function("void", "piece_list", "ptr %piece")


def _unlist() -> str:
    """Return the function that takes a free piece out of its list."""
    c = _Writer()
    previous, following = c.link_of("%piece", "previous"), c.link_of("%piece", "next")
    with c.when(c.is_set(following)):
        c.set_link(following, "previous", previous)
    with c.when(c.is_set(previous)):
        c.set_link(previous, "next", following)
    with c.when(c.put(f"icmp eq ptr {previous}, null")):
        c.store("ptr", following, _slot(c, "%piece"))
    c.do("ret void")
    return c.function("void", "piece_unlist", "ptr %piece")


def _swallow(c: _Writer, piece: str, other: str) -> None:
    """Add the piece right after another one, which is in no list, to it."""
    c.set(piece, "size", c.op("add i64", c.get(piece, "size"), c.get(other, "size")))
    after = c.link_of(other, "after")
    c.set_link(piece, "after", after)
    with c.when(c.is_set(after)):
        c.set_link(after, "before", piece)
    c.call(f"@piece_forget(ptr {other})")


def _join() -> str:
    """Return the function that joins a free piece in no list with its neighbours of its state.

    It gives the joint piece.
    """
    c = _Writer()
    state = c.get("%piece", "state")
    after = c.link_of("%piece", "after")
    with c.when(c.is_set(after)):
        with c.when(c.put(f"icmp eq i64 {c.get(after, 'state')}, {state}")):
            c.call(f"@piece_unlist(ptr {after})")
            _swallow(c, "%piece", after)
    before = c.link_of("%piece", "before")
    c.leave_if(c.put(f"icmp eq ptr {before}, null"), "ptr %piece")
    c.leave_if(c.put(f"icmp ne i64 {c.get(before, 'state')}, {state}"), "ptr %piece")
    c.call(f"@piece_unlist(ptr {before})")
    _swallow(c, before, "%piece")
    c.do(f"ret ptr {before}")
    return c.function("ptr", "piece_join", "ptr %piece")


def _find() -> str:
    """Return the function that finds the smallest piece of a state with room for some bytes."""
    c = _Writer()
    lists = c.at("ptr", "@piece_lists", c.op("shl i64", c.op("sub i64", "%state", _WARM), 8))
    number = c.variable("i64", c.put("call i64 @piece_bin(i64 %size)"))
    best, least = c.variable("ptr", "null"), c.variable("i64", str((1 << 63) - 1))

    def going() -> str:
        open_ = c.put(f"icmp eq ptr {c.load('ptr', best)}, null")
        return c.op("and i1", open_, c.put(f"icmp ult i64 {c.load('i64', number)}, 256"))

    with c.repeat(going):
        at = c.load("i64", number)
        here = c.variable("ptr", c.load("ptr", lists, at))
        with c.repeat(lambda: c.is_set(c.load("ptr", here))):
            piece = c.load("ptr", here)
            size = c.get(piece, "size")
            fits = c.put(f"icmp uge i64 {size}, %size")
            with c.when(c.op("and i1", fits, c.put(f"icmp ult i64 {size}, {c.load('i64', least)}"))):
                c.store("ptr", piece, best)
                c.store("i64", size, least)
            c.store("ptr", c.link_of(piece, "next"), here)
        c.store("i64", c.op("add i64", at, 1), number)
    c.do(f"ret ptr {c.load('ptr', best)}")
    return c.function("ptr", "piece_find", "i64 %state, i64 %size")


def _cut() -> str:
    """Return the function that leaves a piece in no list its first bytes.

    It gives the rest, a piece of the same state in no list, or null where it has fewer than
    `least` bytes.
    """
    c = _Writer()
    whole = c.get("%piece", "size")
    rest = c.op("sub i64", whole, "%size")
    c.leave_if(c.put(f"icmp slt i64 {rest}, %least"), "ptr null")
    address = c.op("add i64", c.get("%piece", "address"), "%size")
    made = c.put(f"call ptr @piece_make(i64 {address}, i64 {rest}, i64 {c.get('%piece', 'state')})")
    c.leave_if(c.put(f"icmp eq ptr {made}, null"), "ptr null")
    after = c.link_of("%piece", "after")
    c.set_link(made, "after", after)
    c.set_link(made, "before", "%piece")
    with c.when(c.is_set(after)):
        c.set_link(after, "before", made)
    c.set_link("%piece", "after", made)
    c.set("%piece", "size", "%size")
    c.do(f"ret ptr {made}")
    return c.function("ptr", "piece_cut", "ptr %piece, i64 %size, i64 %least")


def _cool() -> str:
    """Return the function that gives the pages of a warm piece in no list to the system."""
    c = _Writer()
    address, size = c.load("ptr", "%piece"), c.get("%piece", "size")
    c.put(f"call i32 @madvise(ptr {address}, i64 {size}, i32 {_NOT_NEEDED})")
    c.add_to(_RESERVED, c.op("sub i64", "0", size))
    c.set("%piece", "state", _COLD)
    joint = c.put("call ptr @piece_join(ptr %piece)")
    # Only a whole segment has no neighbours.
    lonely = c.put(f"icmp eq ptr {c.link_of(joint, 'before')}, {c.link_of(joint, 'after')}")
    with c.when(c.op("xor i1", lonely, "true")):
        c.call(f"@piece_list(ptr {joint})")
    with c.when(lonely):
        c.call(f"@free(ptr {c.load('ptr', joint)})")
        c.add_to(_BLOCKS, "-1")
        c.call(f"@piece_forget(ptr {joint})")
    c.do("ret void")
    return c.function("void", "piece_cool", "ptr %piece")


def _cool_some() -> str:
    """Return the function that cools as many whole huge pages of a warm piece in no list as bring
    what is reserved down to `most`, and enters what is left of it into its lists.
    """
    c = _Writer()
    address, size = c.get("%piece", "address"), c.get("%piece", "size")
    over = c.rounded(c.op("sub i64", c.account(_RESERVED), "%most"), _HUGE_PAGE)
    start = c.rounded(address, _HUGE_PAGE)
    end = c.op("and i64", c.op("add i64", address, size), -_HUGE_PAGE)
    start = c.put(f"call i64 @llvm.smax.i64(i64 {start}, i64 {c.op('sub i64', end, over)})")
    given = c.variable("ptr", "%piece")
    with c.when(c.put(f"icmp ugt i64 {start}, {address}")):
        part = c.put(f"call ptr @piece_cut(ptr %piece, i64 {c.op('sub i64', start, address)}, i64 1)")
        c.call("@piece_list(ptr %piece)")
        c.store("ptr", part, given)
    part = c.load("ptr", given)
    with c.when(c.is_set(part)):
        rest = c.put(f"call ptr @piece_cut(ptr {part}, i64 {c.op('sub i64', end, start)}, i64 1)")
        with c.when(c.is_set(rest)):
            c.call(f"@piece_list(ptr {rest})")
        c.call(f"@piece_cool(ptr {part})")
    c.do("ret void")
    return c.function("void", "piece_cool_some", "ptr %piece, i64 %most")


def _has_pages(c: _Writer, piece: str) -> str:
    """Return whether a piece has a whole huge page."""
    address = c.get(piece, "address")
    end = c.op("and i64", c.op("add i64", address, c.get(piece, "size")), -_HUGE_PAGE)
    return c.put(f"icmp ult i64 {c.rounded(address, _HUGE_PAGE)}, {end}")


def _trim() -> str:
    """Return the function that cools warm pieces, the largest first, until no more than `most` is
    reserved.
    """
    c = _Writer()
    number = c.variable("i64", "255")
    least = c.put(f"call i64 @piece_bin(i64 {_HUGE_PAGE})")

    def is_over() -> str:
        return c.put(f"icmp sgt i64 {c.account(_RESERVED)}, %most")

    with c.repeat(lambda: c.op("and i1", is_over(), c.put(f"icmp sge i64 {c.load('i64', number)}, {least}"))):
        at = c.load("i64", number)
        here = c.variable("ptr", c.load("ptr", "@piece_lists", at))
        with c.repeat(lambda: c.op("and i1", is_over(), c.is_set(c.load("ptr", here)))):
            piece = c.load("ptr", here)
            c.store("ptr", c.link_of(piece, "next"), here)
            with c.when(_has_pages(c, piece)):
                c.call(f"@piece_unlist(ptr {piece})")
                c.call(f"@piece_cool_some(ptr {piece}, i64 %most)")
        c.store("i64", c.op("sub i64", at, 1), number)
    c.do("ret void")
    return c.function("void", "trim_pieces", "i64 %most")


def _segment() -> str:
    """Return the function that takes a segment from the system, as a cold piece in no list."""
    c = _Writer()
    least = c.rounded("%size", _HUGE_PAGE)
    reserved = c.rounded(c.account(_RESERVED), _HUGE_PAGE)
    wished = c.put(f"call i64 @llvm.umin.i64(i64 {reserved}, i64 {_MOST_SEGMENT})")
    wished = c.put(f"call i64 @llvm.umax.i64(i64 {wished}, i64 {_SEGMENT})")
    bytes_ = c.variable("i64", c.put(f"call i64 @llvm.umax.i64(i64 {wished}, i64 {least})"))
    address = c.variable("ptr", c.put(f"call ptr @aligned_alloc(i64 {_HUGE_PAGE}, i64 {c.load('i64', bytes_)})"))
    with c.when(c.put(f"icmp eq ptr {c.load('ptr', address)}, null")):
        c.store("i64", least, bytes_)
        c.store("ptr", c.put(f"call ptr @aligned_alloc(i64 {_HUGE_PAGE}, i64 {least})"), address)
    start, size = c.load("ptr", address), c.load("i64", bytes_)
    c.leave_if(c.put(f"icmp eq ptr {start}, null"), "ptr null")
    if _ADVISES_HUGE:
        c.put(f"call i32 @madvise(ptr {start}, i64 {size}, i32 14)")
    number = c.put(f"ptrtoint ptr {start} to i64")
    made = c.put(f"call ptr @piece_make(i64 {number}, i64 {size}, i64 {_COLD})")
    with c.when(c.is_set(made)):
        c.add_to(_BLOCKS, "1")
    with c.when(c.put(f"icmp eq ptr {made}, null")):
        c.call(f"@free(ptr {start})")
    c.do(f"ret ptr {made}")
    return c.function("ptr", "piece_segment", "i64 %size")


def _warmed() -> str:
    """Return the function that warms as much as gives a piece of at least `size` bytes.

    It gives the piece, which is in no list, or null; `using` are the bytes in use with it.
    """
    c = _Writer()
    most = c.rounded("%size", _HUGE_PAGE)
    c.call(f"@trim_pieces(i64 {c.op('sub i64', c.put('call i64 @bound(i64 %using)'), most)})")
    limit = c.account(_LIMIT)
    with c.when(c.put(f"icmp ugt i64 {c.op('add i64', c.account(_RESERVED), most)}, {limit}")):
        c.call("@mycel_empty_cache()")
    c.leave_if(c.put(f"icmp ugt i64 {c.op('add i64', c.account(_RESERVED), most)}, {limit}"), "ptr null")
    found = c.variable("ptr", c.put(f"call ptr @piece_find(i64 {_COLD}, i64 {most})"))
    with c.when(c.is_set(c.load("ptr", found))):
        c.call(f"@piece_unlist(ptr {c.load('ptr', found)})")
    with c.when(c.put(f"icmp eq ptr {c.load('ptr', found)}, null")):
        c.store("ptr", c.put(f"call ptr @piece_segment(i64 {most})"), found)
        with c.when(c.put(f"icmp eq ptr {c.load('ptr', found)}, null")):
            c.call("@mycel_empty_cache()")
            c.store("ptr", c.put(f"call ptr @piece_segment(i64 {most})"), found)
    piece = c.load("ptr", found)
    c.leave_if(c.put(f"icmp eq ptr {piece}, null"), "ptr null")
    before = c.link_of(piece, "before")
    there = c.variable("i64", "0")
    with c.when(c.is_set(before)):
        warm = c.put(f"icmp eq i64 {c.get(before, 'state')}, {_WARM}")
        c.store("i64", c.put(f"select i1 {warm}, i64 {c.get(before, 'size')}, i64 0"), there)
    needed = c.rounded(c.op("sub i64", "%size", c.load("i64", there)), _HUGE_PAGE)
    rest = c.put(f"call ptr @piece_cut(ptr {piece}, i64 {needed}, i64 1)")
    with c.when(c.is_set(rest)):
        c.call(f"@piece_list(ptr {rest})")
    reserved = c.add_to(_RESERVED, c.get(piece, "size"))
    highest = c.put(f"call i64 @llvm.umax.i64(i64 {reserved}, i64 {c.account(_RESERVED + 1)})")
    c.store("i64", highest, "@account", str(_RESERVED + 1))
    c.set(piece, "state", _WARM)
    c.do(f"ret ptr {c.put(f'call ptr @piece_join(ptr {piece})')}")
    return c.function("ptr", "piece_warmed", "i64 %size, i64 %using")


def _obtain() -> str:
    """Return the function that gives the header of a block of at least `n` bytes, or null."""
    c = _Writer()
    using = c.op("add i64", c.account(0), "%n")
    c.leave_if(c.put(f"icmp ugt i64 {using}, {c.account(_MACHINE)}"), "ptr null")
    size = c.rounded(c.op("add i64", "%n", 64), _PAGE)
    found = c.variable("ptr", c.put(f"call ptr @piece_find(i64 {_WARM}, i64 {size})"))
    warm = c.load("ptr", found)
    with c.when(c.is_set(warm)):
        c.call(f"@piece_unlist(ptr {warm})")
    with c.when(c.put(f"icmp eq ptr {warm}, null")):
        c.store("ptr", c.put(f"call ptr @piece_warmed(i64 {size}, i64 {using})"), found)
    piece = c.load("ptr", found)
    c.leave_if(c.put(f"icmp eq ptr {piece}, null"), "ptr null")
    rest = c.put(f"call ptr @piece_cut(ptr {piece}, i64 {size}, i64 {_REST})")
    with c.when(c.is_set(rest)):
        c.call(f"@piece_list(ptr {rest})")
    c.set(piece, "state", _USED)
    block = c.load("ptr", piece)
    whole = c.get(piece, "size")
    c.store("i64", str(PIECE_CLASS), block)
    c.store("ptr", piece, block, "1", "i64")
    c.store("i64", c.op("sub i64", whole, 64), block, "2")
    c.store("i64", whole, block, "4")
    c.do(f"ret ptr {block}")
    return c.function("ptr", "obtain_piece", "i64 %n")


def _release() -> str:
    """Return the function that takes a block back; `using` are the bytes in use without it."""
    c = _Writer()
    own = c.load("ptr", "%block", "1", "i64")
    c.set(own, "state", _WARM)
    joint = c.put(f"call ptr @piece_join(ptr {own})")
    most = c.put("call i64 @bound(i64 %using)")
    over = c.put(f"icmp sgt i64 {c.account(_RESERVED)}, {most}")
    cools = c.op("and i1", over, _has_pages(c, joint))
    with c.when(c.op("xor i1", cools, "true")):
        c.call(f"@piece_list(ptr {joint})")
    with c.when(cools):
        c.call(f"@piece_cool_some(ptr {joint}, i64 {most})")
    c.do("ret void")
    return c.function("void", "release_piece", "ptr %block, i64 %using")


_GLOBALS = """
@piece_lists = internal global [512 x ptr] zeroinitializer
@spare_pieces = internal global ptr null

declare i64 @llvm.smax.i64(i64, i64)
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.umax.i64(i64, i64)
"""
_FUNCTIONS = (_bin, _make, _forget, _list, _unlist, _join, _find, _cut, _cool, _cool_some, _trim, _segment, _warmed)
PIECES = "\n".join((_GLOBALS, *[write() for write in (*_FUNCTIONS, _obtain, _release)]))
