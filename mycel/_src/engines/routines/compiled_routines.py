"""Routines: Python functions over NumPy arrays, compiled to machine code.

A routine is compiled for the element types of its arrays and the values of its constants, once, and
kept with all other code. While it runs, other threads of Python may. It touches no memory but its
arguments', and may be called by several threads at once.
"""

from __future__ import annotations

import ctypes
import hashlib
import threading
from collections.abc import Callable
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mycel._src.engines import base
from mycel._src.engines.native.llvm.jit import compile_objects, machine
from mycel._src.engines.routines.array_address import address
from mycel._src.engines.routines.element_types import ARRAYS, ELEMENTS
from mycel._src.engines.routines.fastcall_entries import ARRAY, CONSTANT, DOUBLE, INTEGER, MOST, door
from mycel._src.foundation.bounded_caches import Remembered
from mycel._src.foundation.system import locks

if TYPE_CHECKING:
    from mycel._src.engines.routines.translate import Translated

__all__ = ["Code", "Routine", "are_on", "observers", "routine"]

_NUMBERS = {"Int": ("i64", ctypes.c_int64), "Double": ("double", ctypes.c_double)}
# Element types; those in another order of bytes are equal to none of them.
_TYPES = {np.dtype(name): name for name in ELEMENTS}
_table = Remembered[tuple[Any, ...], "Code"]("routines", 2048)
_compiling = locks.lock()
_KINDS = {"Int": INTEGER, "Double": DOUBLE}
# The most native entries of a routine: trying one costs a twentieth of finding code without any.
_DOORS = 16


def are_on() -> bool:
    """Return whether routines are to be run: not where the reference engine is in force, which
    leaves all to NumPy.
    """
    return base.current().name != "reference"


class _Plan(NamedTuple):
    """How the arguments of a call are passed to code.

    * `arity`: how many there are.
    * `arrays`: the numbers of those that are arrays, with their element types; None is any.
    * `known`: takes the key of the code from a list of arguments and the routine.
    * `given`: takes what the code is given.
    * `kinds`: what each is, as native entries encode it.
    """

    arity: int
    arrays: list[tuple[int, str | None]]
    known: Callable[[list[Any]], tuple[Any, ...]]
    given: Callable[[list[Any]], tuple[Any, ...]]
    kinds: list[int]


class Code(NamedTuple):
    """Code of a routine.

    * `call`, `words`: what calls it, and the address of what takes words in place of that.
    * `writes`: the numbers of the arguments that it writes.
    """

    call: Callable[..., None]
    words: int
    writes: frozenset[int]


# Who is told of the calls of routines by a thread, in place of their being done; see `call_replay`.
observers: dict[int, Callable[[Routine, tuple[Any, ...]], None]] = {}


def _those(numbers: list[int]) -> Callable[[list[Any]], tuple[Any, ...]]:
    if len(numbers) > 1:
        return itemgetter(*numbers)
    return lambda values: tuple(values[number] for number in numbers)


class Routine:
    """A function over arrays and numbers, which returns nothing and writes into its arguments.

    Arrays are in C order, and one that is written shares no memory with another argument. Bytes are
    read as an array of them.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self._parameters: list[tuple[str, str]] = []
        self._plan: _Plan | None = None
        # Functions that know their code, the newest first.
        self._doors: tuple[Callable[..., bool], ...] = ()

    def parameters(self) -> list[tuple[str, str]]:
        """Return the parameters' names, with the words that annotate them."""
        if not self._parameters:
            # The translator is imported where it is needed first.
            from mycel._src.engines.routines.translate import definition

            arguments = definition(self.function).args.args
            self._parameters = [(a.arg, getattr(a.annotation, "id", "")) for a in arguments]
        return self._parameters

    def kinds(self) -> list[int]:
        """Return what each argument is, as native entries encode it."""
        return (self._plan or self._planned()).kinds

    def _planned(self) -> _Plan:
        words = [word for _, word in self.parameters()]
        count = len(words)
        arrays = [(number, ARRAYS[word]) for number, word in enumerate(words) if word in ARRAYS]
        known = [number for number, word in enumerate(words) if word not in _NUMBERS]
        given = [number for number, word in enumerate(words) if word in _NUMBERS or word in ARRAYS]
        kinds = [ARRAY if word in ARRAYS else _KINDS.get(word, CONSTANT) for word in words]
        # What is made of a list, which ends with the routine itself, is a tuple.
        self._plan = plan = _Plan(count, arrays, _those([*known, count]), _those(given), kinds)
        return plan

    def __call__(self, *arguments: Any) -> None:
        if observers:
            observer = observers.get(threading.get_ident())
            if observer is not None:
                observer(self, arguments)
                return
        for opened in self._doors:
            if opened(*arguments):
                return
        self.call(arguments)

    def call(self, arguments: tuple[Any, ...]) -> Code:
        """Find the code for arguments or make it, call it, and make a native entry for others like
        them.
        """
        plan = self._plan or self._planned()
        if len(arguments) != plan.arity:
            raise TypeError(f"routine {self.__name__}: takes {plan.arity} arguments, got {len(arguments)}")
        given, known = list(arguments), list(arguments)
        known.append(self)
        for number, element in plan.arrays:
            array = arguments[number]
            if type(array) is bytes and element == "uint8":
                known[number] = element
                continue
            name = known[number] = _TYPES.get(array.dtype)
            if name is None or element is not None and name != element or not array.flags.c_contiguous:
                parameter, word = self.parameters()[number]
                raise TypeError(
                    f"routine {self.__name__}: {parameter} must be {word} in C order, not {array.dtype} "
                    f"with strides {array.strides}"
                )
            given[number] = address(array)
        found = plan.known(known)
        code = _table.recent.get(found)
        if code is None:
            code = _table.recall(found, lambda: self._made(list(found[:-1])))
        code.call(*plan.given(given))
        self._open(plan, code, arguments)
        return code

    def _open(self, plan: _Plan, code: Code, arguments: tuple[Any, ...]) -> None:
        """Make a native entry for arguments like these; the oldest of too many is dropped."""
        entry = door() if plan.arity <= MOST else None
        if entry is not None and all(type(arguments[number]) is np.ndarray for number, _ in plan.arrays):
            opened = entry.function(code.words, list(zip(plan.kinds, arguments)))
            self._doors = (opened, *self._doors)[:_DOORS]

    def text(self, *known: Any) -> str:
        """Return the LLVM IR for element types and values of constants, in their order."""
        return self._written(list(known))[0].text

    def _written(self, known: list[Any]) -> tuple[Translated, str, list[Any]]:
        """Return the module, the function's name, and the types of its arguments."""
        arrays: dict[str, str] = {}
        numbers: dict[str, str] = {}
        constants: dict[str, Any] = {}
        types: list[Any] = []
        for name, word in self.parameters():
            if word in ARRAYS:
                arrays[name] = known.pop(0)
                types.append(ctypes.c_void_p)
            elif word in _NUMBERS:
                numbers[name] = _NUMBERS[word][0]
                types.append(_NUMBERS[word][1])
            else:
                constants[name] = known.pop(0)
        from mycel._src.engines.routines.translate import translate

        made = translate(self.function, "NAME", arrays, numbers, constants)
        name = f"mycel_{self.__name__}_{hashlib.sha256(made.text.encode()).hexdigest()[:16]}"
        text = made.text.replace("@NAME(", f"@{name}(").replace("@NAME_words(", f"@{name}_words(")
        return made._replace(text=text), name, types

    def _made(self, known: list[Any]) -> Code:
        made, name, types = self._written(known)
        with _compiling:
            address, words = machine().link(compile_objects([made.text])[0], [name, f"{name}_words"], {})
        return Code(ctypes.CFUNCTYPE(None, *types)(address), words, made.writes)


def routine(function: Callable[..., Any]) -> Routine:
    """Make a routine of a Python function, whose parameters `words` annotate.

    It is a decorator.

    >>> import numpy as np
    >>> from mycel._src.engines.routines import routine
    >>> from mycel._src.engines.routines.routine_language import Bytes, Int
    >>> def doubled(source: Bytes, result: Bytes, count: Int) -> None:
    ...     for i in range(count):
    ...         result[i] = 2 * source[i]
    """
    return Routine(function)
