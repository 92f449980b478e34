"""Routines: Python functions over arrays of NumPy that run as machine code.

A routine is compiled for the element types of its arrays and the values of its constants, once, and
kept with all other code. While it runs, other threads of Python may. It touches no memory but its
arguments', and may be called by several threads at once.
"""

from __future__ import annotations

import ctypes
import hashlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from mycel.base import locks
from mycel.base.remembered import Remembered
from mycel.engines import base
from mycel.engines.routines.elements import ARRAYS, ELEMENTS

__all__ = ["Routine", "are_on", "routine"]

_NUMBERS = {"Int": ("i64", ctypes.c_int64), "Double": ("double", ctypes.c_double)}
# Element types; those in another order of bytes are equal to none of them.
_TYPES = {np.dtype(name): name for name in ELEMENTS}
_table = Remembered[tuple[Any, ...], Callable[..., None]]("routines", 2048)
_compiling = locks.lock()


# Where CPython's NumPy has the address of an array's elements: behind the head of the object.
_PLACE = object.__basicsize__
_word = ctypes.c_size_t.from_address


def _asked(array: np.ndarray[Any, Any]) -> int:
    return int(array.ctypes.data)


def _read(array: np.ndarray[Any, Any]) -> int:
    return _word(id(array) + _PLACE).value


# Reading it takes a tenth of the time of asking for it.
_sample = np.zeros(3)
_address = _read if sys.implementation.name == "cpython" and _read(_sample) == _asked(_sample) else _asked


def are_on() -> bool:
    """Return whether routines are to be run: not where the reference engine is in force, which
    leaves all to NumPy.
    """
    return base.current().name != "reference"


class Routine:
    """A function over arrays and numbers, which returns nothing and writes into its arguments.

    Arrays are in C order, and one that is written shares no memory with another argument. Bytes are
    read as an array of them.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self._parameters: list[tuple[str, str]] = []

    def parameters(self) -> list[tuple[str, str]]:
        """Return the parameters' names, with the words that annotate them."""
        if not self._parameters:
            # The translator is imported where it is needed first.
            from mycel.engines.routines.translate import definition

            arguments = definition(self.function).args.args
            self._parameters = [(a.arg, getattr(a.annotation, "id", "")) for a in arguments]
        return self._parameters

    def __call__(self, *arguments: Any) -> None:
        parameters = self._parameters or self.parameters()
        if len(arguments) != len(parameters):
            raise TypeError(f"routine {self.__name__}: takes {len(parameters)} arguments, got {len(arguments)}")
        key: list[Any] = [self]
        given: list[Any] = []
        for (name, word), argument in zip(parameters, arguments):
            if word in _NUMBERS:
                given.append(argument)
            elif word not in ARRAYS:
                key.append(argument)
            elif type(argument) is bytes and ARRAYS[word] == "uint8":
                key.append("uint8")
                given.append(argument)
            else:
                element = _TYPES.get(argument.dtype)
                if element is None or ARRAYS[word] not in (None, element) or not argument.flags.c_contiguous:
                    raise TypeError(
                        f"routine {self.__name__}: {name} must be {word} in C order, not {argument.dtype} "
                        f"with strides {argument.strides}"
                    )
                key.append(element)
                given.append(_address(argument))
        found = tuple(key)
        code = _table.get(found)
        if code is None:
            code = _table.recall(found, lambda: self._made(list(found[1:])))
        code(*given)

    def text(self, *known: Any) -> str:
        """Return the LLVM IR for element types and values of constants, in their order."""
        return self._written(list(known))[0]

    def _written(self, known: list[Any]) -> tuple[str, str, list[Any]]:
        """Return the text of the module, the function's name, and the types of its arguments."""
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
        from mycel.engines.routines.translate import translate

        text = translate(self.function, "NAME", arrays, numbers, constants)
        name = f"mycel_{self.__name__}_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
        return text.replace("@NAME(", f"@{name}("), name, types

    def _made(self, known: list[Any]) -> Callable[..., None]:
        from mycel.engines.native.llvm.jit import compile_objects, machine

        text, name, types = self._written(known)
        with _compiling:
            (address,) = machine().link(compile_objects([text])[0], [name], {})
        return ctypes.CFUNCTYPE(None, *types)(address)


def routine(function: Callable[..., Any]) -> Routine:
    """Make a routine of a Python function, whose parameters `words` annotate.

    It is a decorator.

    >>> import numpy as np
    >>> from mycel.engines.routines import routine
    >>> from mycel.engines.routines.words import Bytes, Int
    >>> def doubled(source: Bytes, result: Bytes, count: Int) -> None:
    ...     for i in range(count):
    ...         result[i] = 2 * source[i]
    """
    return Routine(function)
