"""Pickles for worker processes, with the functions and classes that they cannot import.

A worker does not run the user's script again. So functions and classes of `__main__`, and those
made within functions, travel as what they are: code, defaults, what they close over, and those of
their globals that the code names. All others travel by name. Arrays stay outside of the pickle, as
buffers.

Both sides run the same Python, so code travels in the form of `marshal`.
"""

from __future__ import annotations

import importlib
import io
import marshal
import pickle
import sys
import types
from typing import Any

_MAIN = ("__main__", "__mp_main__")
_OWN = {"__dict__", "__weakref__", "__abstractmethods__", "_abc_impl", "__doc__", "__module__"}
_spaces: dict[str, dict[str, Any]] = {}


def _named(item: Any, module: str, name: str) -> bool:
    """Return whether another process finds an object under this name."""
    if module in _MAIN or module not in sys.modules:
        return False
    found: Any = sys.modules[module]
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is item


def _names(code: types.CodeType) -> set[str]:
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= _names(constant)
    return found


def _function(content: bytes, module: str, name: str, cells: int) -> types.FunctionType:
    """Make a function that `_fill_function` completes."""
    space = _spaces.setdefault(module, {"__name__": module, "__builtins__": __builtins__})
    closure = tuple(types.CellType() for _ in range(cells)) if cells else None
    return types.FunctionType(marshal.loads(content), space, name, None, closure)


def _fill_function(function: Any, state: dict[str, Any]) -> None:
    for name, value in state["globals"].items():
        function.__globals__.setdefault(name, value)
    function.__defaults__, function.__kwdefaults__ = state["defaults"], state["keywords"]
    function.__qualname__, function.__module__ = state["name"], state["module"]
    function.__dict__.update(state["attributes"])
    for cell, value in zip(function.__closure__ or (), state["cells"]):
        if value:
            cell.cell_contents = value[0]


def forget() -> None:
    """Forget the globals of functions that were made before."""
    _spaces.clear()


def _class(kind: Any, name: str, bases: tuple[Any, ...], fixed: dict[str, Any]) -> type:
    """Make a class that `_fill_class` completes."""
    return types.new_class(name, bases, {"metaclass": kind}, lambda space: space.update(fixed))


def _fill_class(made: Any, state: dict[str, Any]) -> None:
    for name, value in state.items():
        setattr(made, name, value)


def _contents(cell: Any) -> tuple[Any, ...]:
    try:
        return (cell.cell_contents,)
    except ValueError:
        return ()


class Pickler(pickle.Pickler):
    """A pickler of functions and classes by value where they cannot be imported."""

    def reducer_override(self, item: Any) -> Any:
        """Return how to make an object, or NotImplemented for pickle's own way."""
        if isinstance(item, types.FunctionType):
            if _named(item, item.__module__ or "", item.__qualname__):
                return NotImplemented
            return self._of_function(item)
        if isinstance(item, types.ModuleType):
            return importlib.import_module, (item.__name__,)
        if isinstance(item, type) and not _named(item, item.__module__, item.__qualname__):
            return self._of_class(item)
        return NotImplemented

    @staticmethod
    def _of_function(item: types.FunctionType) -> Any:
        cells = item.__closure__ or ()
        state = {
            "globals": {n: item.__globals__[n] for n in sorted(_names(item.__code__)) if n in item.__globals__},
            "defaults": item.__defaults__,
            "keywords": item.__kwdefaults__,
            "name": item.__qualname__,
            "module": item.__module__,
            "attributes": dict(item.__dict__),
            "cells": [_contents(cell) for cell in cells],
        }
        made = (marshal.dumps(item.__code__), item.__module__ or "", item.__name__, len(cells))
        return _function, made, state, None, None, _fill_function

    @staticmethod
    def _of_class(item: type) -> Any:
        slots = item.__dict__.get("__slots__", ())
        slots = (slots,) if isinstance(slots, str) else tuple(slots)
        fixed: dict[str, Any] = {"__module__": item.__module__, "__qualname__": item.__qualname__}
        if "__slots__" in item.__dict__:
            fixed["__slots__"] = slots
        kept = {n: v for n, v in item.__dict__.items() if n not in _OWN | set(slots) | {"__slots__", "__qualname__"}}
        return _class, (type(item), item.__name__, item.__bases__, fixed), kept, None, None, _fill_class


def dumps(item: Any, apart: bool = True) -> tuple[bytes, list[memoryview]]:
    """Return the pickle of an object, and the buffers that lie outside of it.

    * `item`: the object.
    * `apart`: whether arrays lie outside.

    Raises what classes raise that cannot be pickled.
    """
    target = io.BytesIO()
    buffers: list[pickle.PickleBuffer] = []
    Pickler(target, 5, buffer_callback=buffers.append if apart else None).dump(item)
    return target.getvalue(), [buffer.raw() for buffer in buffers]


def modules(item: Any) -> list[str]:
    """Return the module of an object's class, or of a function, where a process may import it."""
    found = getattr(item, "__module__", None) or type(item).__module__
    return [found] if isinstance(found, str) and found not in _MAIN and found in sys.modules else []
