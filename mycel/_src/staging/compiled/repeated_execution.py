"""Runs a compiled function on many batches in one call.

`Repeater(function)` takes batches, each the arguments of a call, and returns the results of calls
one after the other. Neighbouring batches of tensors of the same types are rounds of one loop of
the engine (`Engine.repetition`), if the function is one graph for them that only computes: guards
are compared once, written parameters stay where they are, and no Python runs in between. All other
calls (other types, a gradient being recorded, effects on Python's objects, prints, sizes that data
decide, segments) are made one by one; the reason is logged once. A round runs the program that a
call runs, so that the results are the same to the bit.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mycel._src.engines import buffers
from mycel._src.engines.base import Entry, Repetition, Rounds
from mycel._src.engines.error_messages import out_of_memory
from mycel._src.engines.select import engine
from mycel._src.foundation.log import logger
from mycel._src.foundation.python_runtime import finalization
from mycel._src.foundation.pytree import map_leaves
from mycel._src.foundation.settings import config
from mycel._src.staging.compiled.call_signature import key_of
from mycel._src.staging.compiled.function_version import Version
from mycel._src.staging.compiled.jit import Jit
from mycel._src.staging.compiled.parallel_dispatch import dividing
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor, make
from mycel._src.tensors.core.views import root_of

__all__ = ["Repeater", "Results", "held"]


class Results:
    """The results of a sequence of calls, made into Python objects when they are read.

    They support `results[k]`, `len` and iteration.
    """

    def __init__(self) -> None:
        self._parts: list[tuple[int, Callable[[int], Any]]] = []
        self._count = 0

    def add(self, count: int, get: Callable[[int], Any]) -> None:
        """Append the results of further calls."""
        if count:
            self._parts.append((count, get))
            self._count += count

    def extend(self, other: Results) -> None:
        """Append the results in `other`."""
        for count, get in other._parts:
            self.add(count, get)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Any]:
        for count, get in self._parts:
            for k in range(count):
                yield get(k)

    def __getitem__(self, k: int) -> Any:
        k = k + self._count if k < 0 else k
        if 0 <= k < self._count:
            for count, get in self._parts:
                if k < count:
                    return get(k)
                k -= count
        raise IndexError(f"there are {self._count} results")


class _Loop:
    """A loop that runs the program `entry` of a version.

    `moving` counts the inputs that differ from round to round, and `repetition` is the engine's
    loop.
    """

    @classmethod
    def of(cls, version: Version, entry: Entry) -> _Loop | None:
        """Return the loop of a version's entry; None where the engine has no loop for it."""
        moving = len(version.graph.inputs) - len(version.tensors)
        carried = {place: moving + i for i, place in version.writes if place not in version.aliases}
        found = engine().repetition(entry, carried)
        return None if found is None else cls(version, entry, moving, found)

    def __init__(self, version: Version, entry: Entry, moving: int, repetition: Repetition) -> None:
        self.entry, self.moving, self.repetition = entry, moving, repetition
        self.outside = frozenset(id(root_of(t)) for t in version.tensors)

    def _restore(self, version: Version) -> Callable[[int, Any], None]:
        """Return a function that restores the state of an input in its tensor if a round fails."""

        def put(i: int, buffer: Any) -> None:
            t = version.tensors[i - self.moving]
            t._replace(make(version.types[i - self.moving], buffer))

        return put

    def run(
        self, version: Version, batches: Sequence[Sequence[Tensor]], keep: bool
    ) -> tuple[int, Callable[[int], Any]]:
        """Run on batches of this version's types; return the number of rounds, and a function from
        the number of a round to its result.
        """
        rounds = [[t._buf for t in batch] for batch in batches]
        try:
            ran = self.repetition.run([t._buf for t in version.tensors], rounds, keep, self._restore(version))
        except MemoryError:
            raise out_of_memory(version.graph) from None
        version.kept = None
        types = version.result_types
        last = [make(t, b) for t, b in zip(types, ran.row(-1))]  # type: ignore[arg-type]
        for i, place in version.writes:
            t = version.tensors[i]
            if t._views is None:
                t._buf = last[place]._buf
            else:
                t._replace(last[place])
        final = version.build(last, list(batches[-1]))

        def result(k: int) -> Any:
            return final if k == ran.count - 1 else version.build(_Row(types, ran, k), list(batches[k]))

        return ran.count, result


class _Row:
    """The tensors that a round returned, by place."""

    def __init__(self, types: Sequence[Any], ran: Rounds, k: int) -> None:
        self._types, self._ran, self._k = types, ran, k

    def __getitem__(self, place: int) -> Tensor:
        if not self._ran.keeps(place):
            raise LookupError(f"only the last result of {self._types[place]} was kept, as all of them are large")
        return make(self._types[place], self._ran.at(place, self._k))


class Repeater:
    """A compiled function, Cell or method that is called on many batches at once.

    >>> import mycel as ms
    >>> total = ms.Parameter(ms.Tensor(0.0), name="total")
    >>> def add(x):
    ...     ms.ops.assign(total, total + x)
    ...     return total * 2
    >>> results = Repeater(ms.jit(add))([(ms.Tensor(1.0),), (ms.Tensor(2.0),), (ms.Tensor(3.0),)])
    >>> float(total), float(results[-1])
    (6.0, 12.0)
    """

    def __init__(self, function: Jit, call: Callable[..., Any] | None = None) -> None:
        self.function = function
        self.call: Callable[..., Any] = call or function
        self.told = False
        self._loops: dict[int, _Loop] = {}

    def __call__(self, batches: Sequence[Sequence[Any]], keep: bool = False) -> Results:
        """Call the function on each batch.

        With `keep` the results of all calls are kept; without it large results are kept of the last
        call only.
        """
        results = Results()
        start = 0
        while start < len(batches):
            stop = start + 1
            if _plain(batches[start]):
                while stop < len(batches) and _alike(batches[start], batches[stop]):
                    stop += 1
            group = batches[start:stop]
            loop = self._loop(group, keep) if len(group) > 1 else None
            if loop is None:
                for batch in group:
                    given = self.call(*batch)
                    results.add(1, _constant(held(given) if keep else given))
            else:
                results.add(*loop)
            start = stop
        return results

    def _loop(self, group: Sequence[Sequence[Tensor]], keep: bool) -> tuple[int, Callable[[int], Any]] | None:
        """Run a group of batches of equal types natively.

        Returns None where they have to be called one by one.
        """
        if (eager.active and eager.local.context is not None) or config.jit_is_off:
            return None
        if dividing.now:
            return self._tell("it is divided among ranks")
        version = self._version(group[0])
        if version is None:
            # Why it is not one graph was logged when that was found.
            return None
        reason = refusal(version, keep)
        if reason:
            return self._tell(reason)
        entry = version.program or version.compile()
        loop = self._loops.get(id(version))
        if loop is None or loop.entry is not entry:
            loop = _Loop.of(version, entry)
            if loop is None:
                return self._tell("its values are checked after every step (check_nan)")
            if id(version) not in self._loops:
                finalization.at_end(version, functools.partial(self._loops.pop, id(version)))
            self._loops[id(version)] = loop
        if version.shares and any(id(t) in loop.outside for batch in group for t in batch):
            return self._tell("a batch is a tensor that it uses from outside")
        for t in version.tensors:
            if t._buf is None:
                t._need_value("a compiled function")
        return loop.run(version, group, keep)

    def _version(self, batch: Sequence[Tensor]) -> Version | None:
        tensors: list[Any] = []
        key = key_of(tuple(batch), {}, tensors)
        for version in self.function.versions.get(key, ()):
            if version.holds():
                return version
        return self.function._version(key, tuple(batch), {})

    def _tell(self, reason: str) -> Any | None:
        """Log once why calls are made one by one."""
        if not self.told:
            self.told = True
            logger.warning(
                "%s runs step by step, with Python in between, because %s", self.function.__qualname__, reason
            )
        return None


def refusal(version: Version, keep: bool) -> str:
    """Return why a version cannot be a round of a native loop; "" if it can."""
    if not version.result_types:
        return "it computes nothing with tensors"
    if version.is_open:
        return "data decide sizes in it"
    if version.argument_writes:
        return "it writes into its arguments"
    if version.deferred:
        return "it prints or calls Python after each step"
    if version.effects:
        return f"it changes {version.effects[0][0]}, an object of Python's; keep it in a Parameter"
    if keep and version.shares:
        return "it changes tensors that its results may be, and the results of all steps are wanted"
    if len({id(root_of(t)) for t in version.tensors}) != len(version.tensors) and version.shares:
        return "it uses tensors from outside that share elements"
    return ""


def held(outputs: Any) -> Any:
    """Return outputs that keep their present values when tensors in them are written to later."""

    def hold(value: Any) -> Any:
        if not isinstance(value, Tensor) or value._buf is None:
            return value
        held = buffers.copy(value._buf, value._type) if isinstance(value, Parameter) else value._buf
        return make(value._type, held)

    return map_leaves(hold, outputs)


def _constant(value: Any) -> Callable[[int], Any]:
    return lambda k: value


def _plain(batch: Sequence[Any]) -> bool:
    """Return whether a batch consists of tensors that have values and are no views."""
    for t in batch:
        if type(t) is not Tensor or t._buf is None or t._view is not None or "_gradient_hooks" in t.__dict__:
            return False
    return len({id(t) for t in batch}) == len(batch)


def _alike(first: Sequence[Tensor], other: Sequence[Any]) -> bool:
    return len(first) == len(other) and _plain(other) and all(a._type is b._type for a, b in zip(first, other))
