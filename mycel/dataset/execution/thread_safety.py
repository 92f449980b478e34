"""Which objects several threads may share, and copies of those they may not.

An object whose `__getitem__` seeks in a file, or changes the object on the way, gives wrong rows
when threads share it. So each worker has a copy, made anew for each pass by pickling. Threads share
built-in containers and arrays, which are safe to read by number. Not copied are arrays that cannot
be written to, functions, classes, modules, and long lists of plain values such as file names. What
holds an open file, a lock or a connection cannot be copied: a copied descriptor would share its
position.
"""

from __future__ import annotations

import contextlib
import io
import pickle
import sys
import types
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import numpy as np

from mycel._src.foundation.logged_once import say_once
from mycel.dataset.pipeline_errors import operation_name

# The bytes that all copies of one source may take.
MOST = 1 << 30
_PLAIN = (list, tuple, dict, range, str, bytes, np.ndarray, np.memmap)
_CONTAINERS = (list, tuple, dict, set, frozenset)
_VALUES = {int, float, complex, bool, str, bytes, type(None)}
_LONG = 1000
_REFERENCES = (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType)
_MOVES = {"lseek", "sendfile", "readv"}


def is_safe(item: Any) -> bool:
    """Return whether threads may read an object at once: a built-in container or array."""
    return type(item) in _PLAIN


class _Refused(Exception):
    """The reason why there can be no copies."""


class _Bounded:
    """A file for a pickler, which keeps what is written, up to a size."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.parts: list[bytes] = []
        self.size = 0

    def take(self, size: int) -> None:
        """Account for some more bytes; raise `_Refused` if they are too many."""
        self.size += size
        if self.size > self.most:
            raise _Refused(f"copies of it would take more than {MOST >> 20} MiB")

    def write(self, part: Any) -> int:
        """Keep a part."""
        self.take(len(part))
        self.parts.append(bytes(part))
        return len(part)


class _Pickler(pickle.Pickler):
    """A pickler of contents that refers to functions, classes and modules."""

    def __init__(self, target: _Bounded, references: list[Any]) -> None:
        self.buffers: list[pickle.PickleBuffer] = []
        self.references = references
        self.target = target
        super().__init__(target, 5, buffer_callback=self._keep)

    def _keep(self, buffer: pickle.PickleBuffer) -> bool:
        view = buffer.raw()
        if not view.readonly:
            self.target.take(view.nbytes)
        self.buffers.append(buffer)
        return False

    def persistent_id(self, item: Any) -> Any:
        """Return the number of a long container of plain values, which is shared, or None."""
        if type(item) in _CONTAINERS and len(item) >= _LONG and _is_plain(item):
            self.references.append(item)
            return len(self.references) - 1
        return None

    def reducer_override(self, item: Any) -> Any:
        """Refer to functions, classes and modules, and pickle everything else as usual."""
        if isinstance(item, _REFERENCES) and item is not _reference:
            if isinstance(item, types.FunctionType):
                for reason in _files_of(item):
                    raise _Refused(reason)
            self.references.append(item)
            return _reference, (len(self.references) - 1,)
        return NotImplemented


def _reference(number: int) -> Any:
    """Stand in a pickle for an object that is referred to."""
    raise RuntimeError(f"reference {number} outside of its pickle")


class _Unpickler(pickle.Unpickler):
    def __init__(self, content: bytes, buffers: list[Any], references: list[Any]) -> None:
        super().__init__(io.BytesIO(content), buffers=buffers)
        self.references = references

    def persistent_load(self, number: Any) -> Any:
        """Return a shared object."""
        return self.references[number]

    def find_class(self, module: str, name: str) -> Any:
        """Return a class, or for `_reference` the lookup of objects that are referred to."""
        if module == __name__ and name == _reference.__name__:
            return self.references.__getitem__
        return super().find_class(module, name)


def _is_plain(item: Any) -> bool:
    """Return whether a container holds only numbers and text, or tuples of them."""
    values = chain(item.keys(), item.values()) if isinstance(item, dict) else item
    kinds = set(map(type, values))
    if tuple in kinds:
        values = item.values() if isinstance(item, dict) else item
        inner = chain.from_iterable(value for value in values if type(value) is tuple)
        kinds = (kinds - {tuple}) | set(map(type, inner))
    return kinds <= _VALUES


def copies(item: Any, count: int) -> tuple[list[Any], str]:
    """Return `count` objects: `item` and copies of it.

    If it cannot be copied, return `item` alone and the reason.
    """
    if count == 1 or is_safe(item):
        return [item] * count, ""
    try:
        reason = _held_by_code(item)
        if reason:
            raise _Refused(reason)
        target = _Bounded(MOST // (count - 1))
        references: list[Any] = []
        pickler = _Pickler(target, references)
        pickler.dump(item)
        content = b"".join(target.parts)
        made = [item]
        for _ in range(count - 1):
            views = [buffer.raw() for buffer in pickler.buffers]
            buffers = [view if view.readonly else bytearray(view) for view in views]
            made.append(_Unpickler(content, buffers, references).load())
        return made, ""
    except _Refused as error:
        return [item], str(error)
    except Exception as error:
        # Whatever a class of the user's raises when it is copied: there is no copy then.
        return [item], f"it cannot be copied ({type(error).__name__}: {error})"


def held(item: Any) -> str:
    """Return why threads may not share an object or a function: the open file that it uses.

    The reason is empty if they may.
    """
    for name, value in getattr(item, "__dict__", {}).items():
        if _is_file(value):
            return f"it holds the open file {name!r}"
    return _held_by_code(item)


def threads_for(operation: str, functions: Iterable[Any], workers: int) -> int:
    """Return how many threads may call functions: one if any uses an open file, which is said once.

    `operation` is what calls them, and `workers` how many were asked for.
    """
    for function in functions if workers > 1 else ():
        reason = held(function)
        if reason:
            name = operation_name(function)
            say_once(
                operation,
                name,
                message="%s: num_parallel_workers=%d has no effect: threads must not share %s, as %s; one thread "
                "calls it. Open files where they are used",
                arguments=(operation, workers, name, reason),
            )
            return 1
    return workers


def _held_by_code(item: Any) -> str:
    kind = item if isinstance(item, type) else type(item)
    functions: list[Any] = [item] if isinstance(item, (types.FunctionType, types.MethodType)) else []
    for base in kind.__mro__[:-1]:
        for name, value in vars(base).items():
            if _is_file(value):
                return f"its class holds the open file {name!r}"
            functions.append(value)
    for function in functions:
        function = getattr(function, "__func__", function)
        if isinstance(function, types.FunctionType):
            found = next(_files_of(function), None)
            if found is not None:
                return found
    return ""


def _is_file(value: Any) -> bool:
    return isinstance(value, io.IOBase) and not isinstance(value, (io.BytesIO, io.StringIO)) and not _is_standard(value)


def _is_standard(value: Any) -> bool:
    return value in (sys.stdin, sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__, sys.__stdin__)


def _files_of(function: types.FunctionType, seen: set[int] | None = None) -> Iterator[str]:
    """Yield the open files that a function reaches.

    It reaches them through globals, enclosing variables and defaults, and through functions of its
    module that it reaches so; `seen` are those that were looked at.
    """
    seen = seen or set()
    seen.add(id(function))
    code = function.__code__
    names = _global_names(code)
    if names & _MOVES:
        yield f"{function.__qualname__} moves in an open file by its descriptor"
    reached = {name: function.__globals__[name] for name in names if name in function.__globals__}
    for name, cell in zip(code.co_freevars, function.__closure__ or ()):
        # A cell may be empty yet.
        with contextlib.suppress(ValueError):
            reached[name] = cell.cell_contents
    for name, value in reached.items():
        if _is_file(value):
            yield f"{function.__qualname__} uses the open file {name!r}"
        elif isinstance(value, types.FunctionType) and id(value) not in seen:
            if value.__globals__ is function.__globals__:
                yield from _files_of(value, seen)
    for value in (function.__defaults__ or ()) + tuple((function.__kwdefaults__ or {}).values()):
        if _is_file(value):
            yield f"{function.__qualname__} has an open file for a default"


def _global_names(code: types.CodeType) -> set[str]:
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= _global_names(constant)
    return found
