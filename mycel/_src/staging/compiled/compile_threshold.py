"""When a recursive function is compiled for a new argument structure, and when it runs in Python.

A function that calls itself over Python's containers or objects, as over a tree, is another graph
for each of them. A graph costs hundreds of times its run and gains that back only if it comes
again. So once such a function was compiled, a call with a structure that was not met before runs as
plain Python, and what comes again is compiled: at its second time, or where most structures are
new, so that this is a chance meeting, at its eighth. What is decided depends on the calls alone.
`explain` says how many calls ran so.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from mycel._src.compiler.ir.types import TensorType
from mycel._src.foundation.bounded_caches import SOME, Remembered
from mycel._src.staging.compiled.call_signature import describe
from mycel._src.staging.frontend.specialization.mutable_numbers import MUTABLES
from mycel._src.staging.frontend.specialization.snapshots import Same
from mycel._src.tensors.core.autograd.compile_threshold import OFTEN, USUAL

__all__ = ["Structures"]

_CONTAINERS = frozenset((tuple, list, dict, OrderedDict))


class Structures:
    """The structures of the arguments of one compiled function.

    `recurses` says that the function was seen to call itself, `passed` counts the calls that ran
    operation by operation.
    """

    def __init__(self) -> None:
        self.recurses = False
        self.passed = 0
        self._seen = Remembered[Any, int]("structures of arguments", SOME)
        self._news: deque[bool] = deque(maxlen=256)
        self._local = threading.local()

    def is_passing(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
        """Return whether a call for which nothing is compiled is better run as plain Python.

        So it is inside of another such call of the same function.
        """
        if not self.recurses:
            return False
        if getattr(self._local, "depth", 0):
            return True
        structure = _structure(args, kwargs)
        if structure is None:
            return False
        count = self._seen.get(structure) or 0
        if count and (count + 1 >= OFTEN or sum(self._news) <= USUAL):
            return False
        self._seen.replace(structure, count + 1)
        self._news.append(not count)
        self.passed += 1
        return True

    def met(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Note the structure of a call for which the function was compiled."""
        structure = _structure(args, kwargs) if self.recurses else None
        if structure is not None:
            self._seen.replace(structure, OFTEN)

    @contextmanager
    def passing(self) -> Iterator[None]:
        """Return a context manager for a call that runs as plain Python."""
        self._local.depth = getattr(self._local, "depth", 0) + 1
        try:
            yield
        finally:
            self._local.depth -= 1


def _structure(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Return the containers and objects of a call with all that is in them but tensors; None where
    there are none.
    """
    values: dict[Any, Any] = {**dict(enumerate(args)), **kwargs}
    found = tuple([(key, describe(v, [])) for key, v in values.items()])
    kinds = [type(v) for v in values.values()]
    if any(k in MUTABLES for k in kinds):
        return None
    is_nested = [k in _CONTAINERS and bool(v) or type(p) is Same for k, v, (_, p) in zip(kinds, values.values(), found)]
    return _blank(found) if any(is_nested) else None


def _blank(part: Any) -> Any:
    if type(part) is tuple:
        return tuple([_blank(p) for p in part])
    return TensorType if type(part) is TensorType else part
