"""Bounds checks: makes every access in a kernel's LLVM IR check that it lies in its buffer.

The checks are added to the text of a finished kernel, whichever module wrote it. Small functions
that take pointers are inlined and slots become values first; then every pointer comes, by
arithmetic, `select` and `phi`, from an argument word or from the kernel's own memory. This is its
*origin*: the address where the memory begins, its bytes, and the number of the word. Each access is
limited to its origin: a scalar access outside goes to spare memory instead, and of a vector only
the lanes that are active and inside are accessed. The first access outside is recorded. Code that
this module does not know is an error, so that no access goes unchecked.

After a kernel's words come the address of the record, the number of the step, and the bytes of each
buffer (`HEADER` and one for each pointer). The record is seven words (`bounds_checking.RECORD`):
whether an access is recorded, its step, its word (-1 for the kernel's own memory), whether it was a
write, its offset, its bytes, and the bytes of the buffer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from mycel._src.engines.native.kernels.codegen import NAME
from mycel._src.engines.native.llvm.target import target

__all__ = ["HEADER", "with_checks"]

HEADER = 2

_HELPERS = r"""
define internal void @bounds_note(ptr %words, i64 %write, i64 %offset, i64 %bytes, i64 %size, i64 %word)
    noinline cold nounwind {
  %pr = getelementptr i64, ptr %words, i64 RECORD_WORD
  %record = load ptr, ptr %pr
  %taken = cmpxchg ptr %record, i64 0, i64 1 monotonic monotonic
  %first = extractvalue { i64, i1 } %taken, 1
  br i1 %first, label %fill, label %done
fill:
  %ps = getelementptr i64, ptr %words, i64 STEP_WORD
  %step = load i64, ptr %ps
  %p1 = getelementptr i64, ptr %record, i64 1
  store i64 %step, ptr %p1
  %p2 = getelementptr i64, ptr %record, i64 2
  store i64 %word, ptr %p2
  %p3 = getelementptr i64, ptr %record, i64 3
  store i64 %write, ptr %p3
  %p4 = getelementptr i64, ptr %record, i64 4
  store i64 %offset, ptr %p4
  %p5 = getelementptr i64, ptr %record, i64 5
  store i64 %bytes, ptr %p5
  %p6 = getelementptr i64, ptr %record, i64 6
  store i64 %size, ptr %p6
  br label %done
done:
  ret void
}

define internal ptr @bounds_one(ptr %words, i64 %write, ptr %at, ptr %base, i64 %size, i64 %word, i64 %bytes,
    ptr %spare) noinline nounwind {
  %a = ptrtoint ptr %at to i64
  %b = ptrtoint ptr %base to i64
  %offset = sub i64 %a, %b
  %room = sub i64 %size, %bytes
  %fits = icmp sge i64 %room, 0
  %before = icmp ule i64 %offset, %room
  %inside = and i1 %fits, %before
  br i1 %inside, label %fine, label %bad
fine:
  ret ptr %at
bad:
  call void @bounds_note(ptr %words, i64 %write, i64 %offset, i64 %bytes, i64 %size, i64 %word)
  ret ptr %spare
}

define internal i64 @bounds_lanes(ptr %words, i64 %write, ptr %at, ptr %base, i64 %size, i64 %word, i64 %bytes,
    i64 %lanes, i64 %mask) noinline nounwind {
entry:
  %a = ptrtoint ptr %at to i64
  %b = ptrtoint ptr %base to i64
  %start = sub i64 %a, %b
  %all = mul i64 %bytes, %lanes
  %reach = sub i64 %size, %all
  %fits = icmp sge i64 %reach, 0
  %before = icmp ule i64 %start, %reach
  %inside = and i1 %fits, %before
  br i1 %inside, label %fine, label %lane
fine:
  ret i64 %mask
lane:
  %i = phi i64 [ 0, %entry ], [ %i1, %next ]
  %kept = phi i64 [ %mask, %entry ], [ %kept1, %next ]
  %bit = shl i64 1, %i
  %own = and i64 %mask, %bit
  %active = icmp ne i64 %own, 0
  %moved = mul i64 %i, %bytes
  %offset = add i64 %start, %moved
  %room = sub i64 %size, %bytes
  %some = icmp sge i64 %room, 0
  %low = icmp ule i64 %offset, %room
  %good = and i1 %some, %low
  %outside = xor i1 %good, true
  %bad = and i1 %active, %outside
  br i1 %bad, label %drop, label %next
drop:
  call void @bounds_note(ptr %words, i64 %write, i64 %offset, i64 %bytes, i64 %size, i64 %word)
  %less = xor i64 %kept, %bit
  br label %next
next:
  %kept1 = phi i64 [ %kept, %lane ], [ %less, %drop ]
  %i1 = add i64 %i, 1
  %more = icmp ult i64 %i1, %lanes
  br i1 %more, label %lane, label %end
end:
  ret i64 %kept1
}

define internal i64 @bounds_each(ptr %words, i64 %write, ptr %places, ptr %base, i64 %size, i64 %word, i64 %bytes,
    i64 %lanes, i64 %mask) noinline nounwind {
entry:
  %b = ptrtoint ptr %base to i64
  %room = sub i64 %size, %bytes
  %some = icmp sge i64 %room, 0
  br label %lane
lane:
  %i = phi i64 [ 0, %entry ], [ %i1, %next ]
  %kept = phi i64 [ %mask, %entry ], [ %kept1, %next ]
  %bit = shl i64 1, %i
  %own = and i64 %mask, %bit
  %active = icmp ne i64 %own, 0
  %place = getelementptr i64, ptr %places, i64 %i
  %a = load i64, ptr %place
  %offset = sub i64 %a, %b
  %low = icmp ule i64 %offset, %room
  %good = and i1 %some, %low
  %outside = xor i1 %good, true
  %bad = and i1 %active, %outside
  br i1 %bad, label %drop, label %next
drop:
  call void @bounds_note(ptr %words, i64 %write, i64 %offset, i64 %bytes, i64 %size, i64 %word)
  %less = xor i64 %kept, %bit
  br label %next
next:
  %kept1 = phi i64 [ %kept, %lane ], [ %less, %drop ]
  %i1 = add i64 %i, 1
  %more = icmp ult i64 %i1, %lanes
  br i1 %more, label %lane, label %end
end:
  ret i64 %kept1
}
"""

_SIZES = {"half": 2, "bfloat": 2, "float": 4, "double": 8, "ptr": 8}
_NAME = r"[%@][\w.$-]+"
_TYPE = r"(?:<\d+ x [\w ]+>|\[\d+ x [^\]]+\]|\w+)"
_ALLOCA = re.compile(rf"^\s*({_NAME}) = alloca ({_TYPE})(?:, i64 (\d+))?(?:, align \d+)?$")
_ELEMENT = re.compile(
    rf"^\s*({_NAME}) = getelementptr (?:inbounds |nuw |nusw )*({_TYPE}), (?:ptr|<\d+ x ptr>) ({_NAME}|null), (.*)$"
)
_CHOICE = re.compile(rf"^\s*({_NAME}) = select i1 (\S+), ptr (\S+), ptr (\S+)$")
_JOIN = re.compile(rf"^\s*({_NAME}) = phi ptr (.*)$")
_WAY = re.compile(r"\[ ([^,]+), ([^ ]+) \]")
_LOAD = re.compile(rf"^(\s*{_NAME} = load (?:atomic )?({_TYPE}), ptr )({_NAME})(.*)$")
_STORE = re.compile(rf"^(\s*store (?:atomic )?({_TYPE}) .*, ptr )({_NAME})((?: monotonic)?(?:, align \d+)?)$")
_CALL = re.compile(rf"^(\s*(?:{_NAME} = )?(?:tail )?call [^@]*)@([\w.]+)\((.*)\)(.*)$")
_POINTER = re.compile(rf"^(ptr (?:align \d+ )?)({_NAME})$")
_IGNORED = ("llvm.prefetch", "llvm.lifetime", "llvm.assume", "llvm.experimental.noalias")
_HARMLESS = re.compile(
    r"^\s*(?:br|ret|switch|;|define|declare|attributes|!|target|source_filename)|= icmp |= ptrtoint |= call i1 "
    r"%[vw]\d+\(ptr %[vw]\d+\)(?: #\d+)?$"
)


def size_of(kind: str) -> int:
    """Return the number of bytes of an LLVM type in memory."""
    if kind[0] in "<[":
        count, element = kind[1:-1].split(" x ", 1)
        return -(-int(count) // 8) if element == "i1" else int(count) * size_of(element)
    if kind in _SIZES:
        return _SIZES[kind]
    if not re.fullmatch(r"i\d+", kind):
        raise NotImplementedError(f"bounds checks do not know the size of {kind}")
    return -(-int(kind[1:]) // 8)


class Origin(NamedTuple):
    """The memory behind a pointer: its address, its bytes and its word, as operands of LLVM IR."""

    base: str
    size: str
    word: str


# Of pointers to records of the runtime, and of those that are read there: nothing is checked.
RECORDS = Origin("", "", "")


def with_checks(text: str, words: int, pointers: Sequence[int], records: Sequence[int]) -> str:
    """Return a kernel's text with checks.

    The kernel has `words` argument words; those numbered `pointers` are addresses of buffers, those
    numbered `records` addresses of the runtime's records.
    """
    return _Checker(words, pointers, records).run(_prepared(text))


def _prepared(text: str) -> str:
    """Return the module with pointers easy to follow.

    No function takes pointers any more, and no slot holds one.
    """
    import llvmlite.binding as llvm

    inlined = re.sub(r"^(define internal [^\n]*\([^\n]*\bptr\b[^\n]*\)) \{$", r"\1 alwaysinline {", text, flags=re.M)
    made_for = target()
    machine = made_for.machine()
    module = llvm.parse_assembly(inlined, context=llvm.create_context())
    module.triple, module.data_layout = made_for.triple, str(machine.target_data)
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=1))
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_sroa_pass()
    passes.run(module, builder)
    return str(module)


class _Checker:
    """The text of one module, which checks are added to line by line."""

    def __init__(self, words: int, pointers: Sequence[int], records: Sequence[int]) -> None:
        self.words, self.records = words, frozenset(records)
        self.sizes = {word: k for k, word in enumerate(pointers)}
        self.made: dict[str, tuple[str, ...]] = {}
        self.places: dict[str, int] = {"%words": 0}
        self.memory: dict[str, int] = {}
        self.origins: dict[str, Origin] = {}
        self.count = 0
        self.spare = 8
        self.lines: list[str] = []

    def run(self, text: str) -> str:
        """Return the module with checks."""
        head, mark, rest = text.partition(f"define void @{NAME}(")
        if not mark:
            raise NotImplementedError("bounds checks found no kernel")
        body, tail, rest = rest.partition("\n}\n")
        if re.search(r"^define [^\n]*\bptr\b", head + rest, flags=re.M):
            raise NotImplementedError("bounds checks met a function that takes pointers")
        signature, *lines = body.split("\n")
        lines = [re.sub(r"(?:, ![\w.]+ !\d+)+$", "", line) for line in lines]
        for line in lines:
            self.note(line)
        for line in lines:
            self.line(line)
        entry = next(k for k, line in enumerate(self.lines) if line.endswith(":")) + 1 if signature else 0
        start = [
            f"  %bounds.spare = alloca [{self.spare} x i8], align 64",
            "  %bounds.places = alloca [64 x i64], align 64",
            f"  store [{self.spare} x i8] zeroinitializer, ptr %bounds.spare",
        ]
        for k in self.sizes.values():
            start.append(f"  %bounds.at{k} = getelementptr i64, ptr %words, i64 {self.words + HEADER + k}")
            start.append(f"  %bounds.size{k} = load i64, ptr %bounds.at{k}")
        self.lines[entry:entry] = start
        helpers = _HELPERS.replace("RECORD_WORD", str(self.words)).replace("STEP_WORD", str(self.words + 1))
        return head + mark + "\n".join([signature, *self.lines]) + tail + rest + helpers

    def note(self, line: str) -> None:
        """Remember how the instruction on a line computes a pointer."""
        if m := _ALLOCA.match(line):
            self.memory[m[1]] = size_of(m[2]) * int(m[3] or 1)
        elif m := _ELEMENT.match(line):
            name, kind, base, index = m.groups()
            place = re.fullmatch(r"i64 (\d+)", index)
            if base in self.places and place:
                self.places[name] = self.places[base] + int(place[1]) * size_of(kind) // 8
            self.made[name] = ("element", base)
        elif m := _CHOICE.match(line):
            self.made[m[1]] = ("choice", m[2], m[3], m[4])
        elif m := _JOIN.match(line):
            self.made[m[1]] = ("join",)
        elif (m := _LOAD.match(line)) and m[2] == "ptr":
            self.made[line.split("=")[0].strip()] = ("word", m[3])

    def origin(self, name: str) -> Origin:
        """Return the origin of a pointer."""
        found = self.origins.get(name)
        if found is None:
            found = self.origins[name] = self.find(name)
        return found

    def find(self, name: str) -> Origin:
        if name in ("null", "undef", "poison"):
            return Origin("null", "0", "-1")
        if name in self.memory:
            return Origin(name, str(self.memory[name]), "-1")
        how, *operands = self.made.get(name, ("nothing",))
        if how == "element":
            return self.origin(operands[0])
        if how == "word" and operands[0] not in self.places:
            if self.origin(operands[0]) is RECORDS:
                return RECORDS
        elif how == "word":
            word = self.places[operands[0]]
            if word in self.records:
                return RECORDS
            if word in self.sizes:
                return Origin(name, f"%bounds.size{self.sizes[word]}", str(word))
        if how == "choice":
            a, b = self.origin(operands[1]), self.origin(operands[2])
            if a == b:
                return a
        if how in ("choice", "join"):
            return Origin(f"{name}.base", f"{name}.size", f"{name}.word")
        raise NotImplementedError(f"bounds checks cannot tell where the pointer {name} comes from")

    def line(self, line: str) -> None:
        """Append a line, with the checks that it needs in front."""
        if m := _LOAD.match(line):
            if m[3] not in self.places:
                line = f"{m[1]}{self.one(m[3], size_of(m[2]), 0)}{m[4]}"
        elif m := _STORE.match(line):
            line = f"{m[1]}{self.one(m[3], size_of(m[2]), 1)}{m[4]}"
        elif m := _CHOICE.match(line):
            self.lines.append(line)
            self.choose(m[1], m[2], m[3], m[4])
            return
        elif m := _JOIN.match(line):
            self.lines.append(line)
            self.join(m[1], _WAY.findall(m[2]))
            return
        elif (m := _CALL.match(line)) and re.search(r"\bptr\b", m[3]):
            line = self.call(m[1], m[2], m[3], m[4])
        elif re.search(r"\bptr\b", line) and not (
            _ALLOCA.match(line) or _ELEMENT.match(line) or _HARMLESS.search(line)
        ):
            raise NotImplementedError(f"bounds checks do not know {line.strip()!r}")
        self.lines.append(line)

    def name(self) -> str:
        self.count += 1
        return f"%bounds.{self.count}"

    def put(self, text: str) -> str:
        name = self.name()
        self.lines.append(f"  {name} = {text}")
        return name

    def choose(self, name: str, condition: str, x: str, y: str) -> None:
        """Define the origin of `name`, a pointer selected by `condition` between `x` and `y`."""
        a, b = self.origin(x), self.origin(y)
        if a == b:
            return
        for part, kind, u, v in zip(Origin._fields, ("ptr", "i64", "i64"), a, b):
            self.lines.append(f"  {name}.{part} = select i1 {condition}, {kind} {u}, {kind} {v}")

    def join(self, name: str, ways: list[tuple[str, str]]) -> None:
        found = [(self.origin(value), block) for value, block in ways]
        for k, (part, kind) in enumerate(zip(Origin._fields, ("ptr", "i64", "i64"))):
            each = ", ".join(f"[ {origin[k]}, {block} ]" for origin, block in found)
            self.lines.append(f"  {name}.{part} = phi {kind} {each}")

    def one(self, pointer: str, size: int, write: int) -> str:
        """Return the address that an access of `size` bytes may use; `write` is 1 for a store."""
        if self.memory.get(pointer, 0) >= size:
            return pointer
        if (found := self.origin(pointer)) is RECORDS:
            return pointer
        base, room, word = found
        self.spare = max(self.spare, size)
        return self.put(
            f"call ptr @bounds_one(ptr %words, i64 {write}, ptr {pointer}, ptr {base}, i64 {room}, i64 {word}, i64 "
            f"{size}, ptr %bounds.spare)"
        )

    def call(self, start: str, function: str, arguments: str, end: str) -> str:
        """Return the line that calls a function with a pointer, where the access is checked.

        `start` is the text before the function's name, `end` that after its `arguments`.
        """
        given = _split(arguments)
        kind, _, rest = function.removeprefix("llvm.").partition(".")
        if function.startswith(_IGNORED):
            return f"{start}@{function}({arguments}){end}"
        if function.startswith("llvm.memset.p0"):
            m = _POINTER.match(given[0])
            length = given[2].removeprefix("i64 ")
            if m is None:
                raise NotImplementedError(f"bounds checks do not know {function}({arguments})")
            base, room, word = self.origin(m[2])
            place = self.put(
                f"call ptr @bounds_one(ptr %words, i64 1, ptr {m[2]}, ptr {base}, i64 {room}, i64 {word}, i64 "
                f"{length}, ptr %bounds.spare)"
            )
            fine = self.put(f"icmp eq ptr {place}, {m[2]}")
            given[0], given[2] = f"ptr {place}", f"i64 {self.put(f'select i1 {fine}, i64 {length}, i64 0')}"
            return f"{start}@{function}({', '.join(given)}){end}"
        verb = rest.split(".")[0] if kind == "masked" else ""
        if verb not in ("load", "store", "gather", "scatter"):
            raise NotImplementedError(f"bounds checks do not know the function {function}")
        write = int(verb in ("store", "scatter"))
        where = next(k for k, a in enumerate(given) if re.match(r"ptr |<\d+ x ptr>", a))
        last = max(k for k, a in enumerate(given) if re.match(r"<\d+ x i1> ", a) and k > where)
        value = given[0] if write else start.partition("call ")[2].strip()
        m = re.match(r"<(\d+) x (\w+)>", value)
        pointer = re.search(rf"({_NAME})$", given[where])
        if m is None or pointer is None:
            raise NotImplementedError(f"bounds checks do not know {function}({arguments})")
        lanes, bytes_ = int(m[1]), size_of(m[2])
        base, room, word = self.origin(pointer[1])
        flags, long = f"<{lanes} x i1>", f"<{lanes} x i64>"
        bits = self.put(f"bitcast {flags} {given[last].split('> ', 1)[1]} to i{lanes}")
        mask = bits if lanes == 64 else self.put(f"zext i{lanes} {bits} to i64")
        place, helper = pointer[1], "bounds_lanes"
        if verb in ("gather", "scatter"):
            numbers = self.put(f"ptrtoint <{lanes} x ptr> {place} to {long}")
            self.lines.append(f"  store {long} {numbers}, ptr %bounds.places")
            place, helper = "%bounds.places", "bounds_each"
        kept = self.put(
            f"call i64 @{helper}(ptr %words, i64 {write}, ptr {place}, ptr {base}, i64 {room}, i64 {word}, i64 "
            f"{bytes_}, i64 {lanes}, i64 {mask})"
        )
        part = kept if lanes == 64 else self.put(f"trunc i64 {kept} to i{lanes}")
        given[last] = f"{flags} {self.put(f'bitcast i{lanes} {part} to {flags}')}"
        return f"{start}@{function}({', '.join(given)}){end}"


def _split(arguments: str) -> list[str]:
    """Return the arguments of a call."""
    parts, depth, start = [], 0, 0
    for k, letter in enumerate(arguments):
        depth += (letter in "(<[{") - (letter in ")>]}")
        if letter == "," and not depth:
            parts.append(arguments[start:k].strip())
            start = k + 1
    return [*parts, arguments[start:].strip()]
