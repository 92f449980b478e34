"""Captured variables of operators: what their functions read of modules, closures and attributes.

They are known when an operator is compiled. Each is compared before the program is used again, so
that a program is of the values that are there now.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator, Mapping
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from mycel._src.foundation.dtype import DType

__all__ = ["Names", "Reads"]

_MISSING: Any = object()
_PLAIN = (bool, int, float, str, type(None), DType, FunctionType, np.generic)
# Modules whose content does not change.
_FIXED = ("mycel", "math", "numpy", "operator", "builtins")


class _Read(NamedTuple):
    """Something that was read, how to read it again, and its content then."""

    now: Callable[[], Any]
    value: Any
    content: Any

    def is_current(self) -> bool:
        now = self.now()
        if now is self.value and self.content is None:
            return True
        if type(now) is not type(self.value):
            return False
        return bool(_content(now) == (self.value if self.content is None else self.content))


def _content(value: Any) -> Any:
    """Return what is compared of a value that may change, or that may be another but equal one."""
    if isinstance(value, np.ndarray):
        return value.dtype, value.shape, value.tobytes()
    if isinstance(value, (list, tuple)):
        return tuple([_content(v) for v in value])
    if isinstance(value, dict):
        return tuple([(k, _content(v)) for k, v in value.items()])
    return value


class Reads:
    """What was read while a program was made."""

    def __init__(self) -> None:
        self.found: dict[tuple[int, str], _Read] = {}

    def note(self, home: object, name: str, now: Callable[[], Any], value: Any) -> None:
        """Note that `name` of `home` is `value`, which `now` reads again."""
        if isinstance(value, _PLAIN):
            self.found[id(home), name] = _Read(now, value, None)
        elif isinstance(value, (list, tuple, dict, np.ndarray)):
            self.found[id(home), name] = _Read(now, value, _content(value))

    def attribute(self, home: Any, name: str) -> Any:
        """Return an attribute of an object, and note it where it may change."""
        value = getattr(home, name)
        fixed = home.__name__ if isinstance(home, ModuleType) else type(home).__module__
        if fixed.partition(".")[0] not in _FIXED:
            self.note(home, name, lambda: getattr(home, name, _MISSING), value)
        return value

    def are_current(self) -> bool:
        """Return whether all that was read has its values."""
        return all([r.is_current() for r in self.found.values()])


class Names(Mapping[str, Any]):
    """The variables of a function from outside of it; `reads` notes those that are looked up."""

    def __init__(self, function: FunctionType, reads: Reads) -> None:
        self.function, self.reads = function, reads
        self.cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))

    def now(self, name: str) -> Any:
        """Return the present value of a variable, or what stands for none."""
        cell = self.cells.get(name)
        if cell is not None:
            try:
                return cell.cell_contents
            except ValueError:
                return _MISSING
        found = self.function.__globals__.get(name, _MISSING)
        return getattr(builtins, name, _MISSING) if found is _MISSING else found

    def __getitem__(self, name: str) -> Any:
        value = self.now(name)
        if value is _MISSING:
            raise KeyError(name)
        home = self.cells.get(name, self.function.__globals__)
        self.reads.note(home, name, lambda: self.now(name), value)
        return value

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.now(name) is not _MISSING

    def is_index(self, name: str) -> bool:
        """Return whether a name means nothing outside, so that it is an index.

        Raises NameError for one letter that is a number of the module, as of a loop there: it would
        be taken for that number.
        """
        value = self.now(name)
        if len(name) == 1 and name not in self.cells and type(value) is int:
            raise NameError(
                f"{name} is an index here, and a variable of the module with the value {value}; call one of them "
                "something else, or write the loop"
            )
        return value is _MISSING

    def __iter__(self) -> Iterator[str]:
        return iter({**dict.fromkeys(dir(builtins)), **self.function.__globals__, **self.cells})

    def __len__(self) -> int:
        return sum(1 for _ in self)
