"""Records a function's routine calls for one array type and shape, and replays them natively.

Where a function makes arrays and calls routines, and all that it does beside depends on nothing but
the type and shape of the one array that it takes, its steps can be kept: `kept` calls it, notes the
calls of routines, and returns a function of the native entry in `fastcall_entries` that does the
same. It takes less time than one of the function's own calls.

What a routine is given is known by where it lies: in the array that was taken, in an array that a
routine writes, which is made anew in each call, or elsewhere. That is held and never changed.
Numbers that may be others another time are known as the objects that they are, of which nothing is
computed. Arrays that are made begin as they did when a routine first saw them: as a copy of the
array taken, as zeros, or as nothing.

What else a function does with arrays, or reads from them, is not noted, so who asks for this has to
know the function. The steps are tried with another array before they are trusted: what a function
computes by NumPy shows there.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from mycel._src.engines.routines.array_address import address
from mycel._src.engines.routines.compiled_routines import Code, Routine, observers
from mycel._src.engines.routines.fastcall_entries import DOUBLE, INTEGER, MOST_MADE, Steps, door

__all__ = ["Kept", "kept"]

Array = np.ndarray[Any, np.dtype[Any]]
# Takes an array and numbers and returns the result; None for an array of another type or shape.
Kept = Callable[..., Any]
_ALL = (1 << 64) - 1


class _Other(Exception):
    """The steps are of another kind than those that can be kept."""


def _refuse(*operands: Any) -> Any:
    raise _Other


# Nothing is computed from numbers, as what was would not change with them.
_REFUSED = {f"__{name}__": _refuse for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "neg", "abs")}
_REFUSED |= {f"__r{name}__": _refuse for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")}
_REFUSED |= {f"__{name}__": _refuse for name in ("lt", "le", "gt", "ge", "bool", "round", "floor", "ceil", "index")}
# A number and an integer that a call may have another time.
_Real: Any = type("_Real", (float,), dict(_REFUSED))
_Whole: Any = type("_Whole", (int,), dict(_REFUSED))


class _Call(NamedTuple):
    """A call of a routine: its code, its arguments, and what they are, as entries are told
    (`fastcall_entries`).
    """

    code: Code
    arguments: tuple[Any, ...]
    kinds: list[int]


class _Notes:
    """What a function did with an array and numbers."""

    def __init__(self, given: Array, numbers: Sequence[float]) -> None:
        self.given = given
        self.numbers = [_Whole(value) if isinstance(value, int) else _Real(value) for value in numbers]
        self.calls: list[_Call] = []
        # How arrays began, by their identity; they are held, so that none takes another's.
        self.began: dict[int, tuple[Callable[..., Any], int]] = {}
        self.held: list[Any] = []

    def __call__(self, routine: Routine, arguments: tuple[Any, ...]) -> None:
        for value in arguments:
            if isinstance(value, np.ndarray) and not self.is_within(value):
                self.note(_whole(value))
        code = routine.call(arguments)
        self.calls.append(_Call(code, arguments, routine.kinds()))

    def is_within(self, array: Array) -> bool:
        """Return whether an array lies in the one that was given."""
        return 0 <= address(array) - address(self.given) < self.given.nbytes

    def note(self, array: Array) -> None:
        if id(array) in self.began:
            return
        self.held.append(array)
        begin: tuple[Callable[..., Any], int] = np.empty, 0
        if (
            array.shape == self.given.shape
            and array.dtype == self.given.dtype
            and array.tobytes() == self.given.tobytes()
        ):
            begin = np.empty, array.nbytes
        elif not np.frombuffer(array.tobytes(), np.uint8).any():
            begin = np.zeros, 0
        self.began[id(array)] = begin

    def steps(self, result: Any) -> Steps:
        """Return the steps that give a result; raise _Other where there are none."""
        results = result if isinstance(result, tuple) else (result,)
        if not self.calls or not results:
            raise _Other
        written = self.written()
        made: list[Array] = []
        for part in results:
            if type(part) is not np.ndarray or not part.flags.c_contiguous or self.is_within(part):
                raise _Other
            whole = _whole(part)
            if id(whole) not in written or address(whole) != address(part) or whole.nbytes != part.nbytes:
                raise _Other
            made.append(whole)
        if len({id(whole) for whole in made}) < len(made):
            raise _Other
        own = {id(whole) for whole in made}
        made += [array for number, array in written.items() if number not in own]
        if len(made) > MOST_MADE:
            raise _Other
        # Where an array is: 0 is the one that was given, the others follow in their order.
        places_of = {id(array): number + 1 for number, array in enumerate(made)}
        ways = []
        for number, array in enumerate(made):
            maker, copied = self.began[id(array)]
            form = results[number] if number < len(results) else array
            ways.append((maker, (form.shape, form.dtype), copied))
        words: list[int] = []
        places: list[tuple[int, int, int]] = []
        codes: list[tuple[int, int]] = []
        constants: list[Any] = []
        numbers: list[tuple[int, int, int]] = []
        number_of = {id(value): number + 1 for number, value in enumerate(self.numbers)}
        for code, arguments, kinds in self.calls:
            codes.append((code.words, len(words)))
            for value, kind in zip(arguments, kinds):
                if id(value) in number_of and kind in (INTEGER, DOUBLE):
                    numbers.append((number_of[id(value)], kind, len(words)))
                if isinstance(value, np.ndarray):
                    whole = self.given if self.is_within(value) else _whole(value)
                    if whole is self.given or id(whole) in places_of:
                        places.append((len(words), places_of.get(id(whole), 0), address(value) - address(whole)))
                    else:
                        constants.append(value)
                    words.append(address(value))
                elif kind == INTEGER:
                    words.append(int(value) & _ALL)
                elif kind == DOUBLE:
                    words.append(struct.unpack("<Q", struct.pack("<d", value))[0])
        if {number for number, _, _ in numbers} != set(number_of.values()):
            raise _Other
        held = [constants, [call.code for call in self.calls]]
        return Steps(self.given, ways, words, places, codes, 1 + len(number_of), numbers, len(results), held)

    def written(self) -> dict[int, Array]:
        """Return the arrays that routines write, by their identity."""
        found: dict[int, Array] = {}
        for code, arguments, _ in self.calls:
            for number, value in enumerate(arguments):
                if isinstance(value, bytes):
                    raise _Other
                if number in code.writes:
                    if self.is_within(value) or not _whole(value).flags.owndata:
                        raise _Other
                    found[id(_whole(value))] = _whole(value)
        return found


def _whole(array: Array) -> Array:
    """Return the array that an array is a part of."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def kept(function: Callable[..., Any], array: Array, numbers: Sequence[float] = ()) -> tuple[Any, Kept | None]:
    """Return what a function gives for an array, and a function that does the same again.

    * `function`: a function of an array and numbers. It does nothing with these but to give them to
      routines.
    * `array`, `numbers`: what it is given.

    The second function is None where its steps are not those of routines, or the array is not in C
    order or empty.
    """
    entry = door()
    if (
        entry is None
        or type(array) is not np.ndarray
        or not (array.flags.c_contiguous and array.flags.aligned and array.size)
    ):
        return function(array, *numbers), None
    thread, notes = threading.get_ident(), _Notes(array, numbers)
    observers[thread] = notes
    try:
        found = entry.steps(notes.steps(function(array, *notes.numbers)))
    except _Other:
        return function(array, *numbers), None
    finally:
        del observers[thread]
    other = _other(array)
    return function(array, *numbers), found if _same(found(other, *numbers), function(other, *numbers)) else None


def _other(array: Array) -> Array:
    """Return an array like another one, with any values."""
    random = np.random.Generator(np.random.PCG64(array.size))
    content = random.integers(0, 2 if array.dtype.kind == "b" else 256, array.nbytes, np.uint8)
    if array.dtype.kind not in "biu":
        content = content[: array.size].astype(array.dtype)
    other: Array = content.view(array.dtype).reshape(array.shape)
    return other


def _same(one: Any, other: Any) -> bool:
    """Return whether arrays, or tuples of them, have the same bytes."""
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    same: bool = one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    return same
