"""Reproducible `np.random` and `random` in users' functions, whose numbers depend on the row alone.

NumPy and Python each have one global generator for all threads. So a function that a pipeline calls
ahead of the program would take numbers that the program draws otherwise, and the timing would
decide which. While a thread makes rows of a seeded pass, it therefore has a `Stream`, whose key is
a hash of (seed, epoch, node, row, operation), and both generators give numbers that start from that
key. Elsewhere they continue with what the program seeded.

NumPy's generator has one state, and takes its bit generator's lock before each draw. Ours is a bit
generator of the default kind whose lock exchanges the state when the owner changes; a pass that
draws alone never exchanges. Python's generator gets a class whose methods look for the thread's
stream. Its methods `random` and `getrandbits` are C functions that a program may have imported by
name before: such a name goes on drawing from the program's numbers. The first seeded pass installs
both, once, but not where the program has put generators of its own.
"""

from __future__ import annotations

import ctypes
import random
import threading
from typing import Any, Protocol

import numpy as np

from mycel._src.foundation.system import locks


class Source(Protocol):
    """What both generators ask of the stream of a row: its key, and what they have of it.

    `drawn` is the key from which NumPy's numbers began, and `numpy` the state in which they were
    left.
    """

    drawn: int | None
    numpy: Any

    @property
    def key(self) -> int:
        """The key from which the stream began."""

    def python(self) -> random.Random:
        """Return a generator of the module `random` that started from the key."""


class _Local(threading.local):
    """The row for which the functions of users draw in a thread."""

    # Asking for what is not there would take ten times as long.
    rows: Source | None = None


local = _Local()
_WORDS = 624
# The state of the Mersenne Twister: its words and a position.
_SIZE = 4 * (_WORDS + 1)


def _stream() -> Source | None:
    """Return the stream of the row that this thread makes, or None elsewhere."""
    return local.rows


def _any(item: Any) -> Any:
    """Return an object untyped, for attributes that its type does not declare."""
    return item


class _Turn:
    """The lock of NumPy's generator, which brings in the state of whoever holds it."""

    def __init__(self, generator: MT19937) -> None:
        self.generator = generator
        self.lock = locks.reentrant()
        self.owner: Source | None = None
        self.program: Any = None
        self.taking = False

    def __enter__(self) -> None:
        self.lock.acquire()
        stream = _stream()
        if not self.taking and (stream is not self.owner or (stream is not None and stream.drawn != stream.key)):
            # Reading and setting states enters this lock again.
            self.taking = True
            try:
                self._take(stream)
            except BaseException:
                self.lock.release()
                raise
            finally:
                self.taking = False

    def __exit__(self, *error: object) -> None:
        self.lock.release()

    def _take(self, stream: Source | None) -> None:
        generator = self.generator
        if stream is not self.owner:
            if self.owner is None:
                self.program = generator.read()
            else:
                self.owner.numpy = generator.read()
        self.owner = stream
        if stream is None:
            generator.write(self.program)
        elif stream.drawn == stream.key:
            generator.write(stream.numpy)
        else:
            stream.drawn = stream.key
            generator.begin(stream.key)

    def renew(self) -> None:
        """Free the lock in a forked child and restore the program's own state.

        A child has no other thread, so nobody holds the lock.
        """
        self.lock = locks.reentrant()
        if self.owner is not None:
            self.taking, self.owner = True, None
            self.generator.write(self.program)
        self.taking = False


class MT19937(np.random.MT19937):
    """NumPy's default bit generator for `np.random`, with a state that changes with the thread.

    The class has the name that saved states refer to.
    """

    def __init__(self) -> None:
        super().__init__(0)
        self._plain = False
        self._turn = _Turn(self)
        self._address: int = self.ctypes.state_address

    @property
    def lock(self) -> Any:  # type: ignore[override]
        return self._turn

    @property
    def state(self) -> Any:
        if self._plain:
            return {"bit_generator": "MT19937", "state": {}}
        with self._turn:
            return np.random.MT19937.state.__get__(self)

    @state.setter
    def state(self, value: Any) -> None:
        if not self._plain:
            with self._turn:
                _any(np.random.MT19937.state).__set__(self, value)

    def _legacy_seeding(self, seed: Any) -> None:
        with self._turn:
            super()._legacy_seeding(seed)

    # The state has two parts: the words, which are this object's, and a second normal number,
    # which `RandomState` keeps.

    def read(self) -> tuple[bytes, Any]:
        """Return a copy of the state."""
        self._plain = True
        try:
            return ctypes.string_at(self._address, _SIZE), np.random.get_state(legacy=False)
        finally:
            self._plain = False

    def write(self, state: tuple[bytes, Any]) -> None:
        """Set the state."""
        self._plain = True
        try:
            np.random.set_state(state[1])
        finally:
            self._plain = False
        ctypes.memmove(self._address, state[0], _SIZE)

    def begin(self, key: int) -> None:
        """Set the state that a key determines."""
        super()._legacy_seeding([key & 0xFFFFFFFF, key >> 32])
        self._plain = True
        try:
            np.random.set_state({"bit_generator": "MT19937", "state": {}, "has_gauss": 0, "gauss": 0.0})
        finally:
            self._plain = False


class _Random(random.Random):
    """Python's global generator, which draws from the stream of the thread's row, if any."""

    def random(self) -> float:
        stream = _stream()
        return super().random() if stream is None else stream.python().random()

    def getrandbits(self, k: int, /) -> int:
        stream = _stream()
        return super().getrandbits(k) if stream is None else stream.python().getrandbits(k)

    def seed(self, *arguments: Any, **options: Any) -> None:
        stream = _stream()
        if stream is None:
            super().seed(*arguments, **options)
        else:
            stream.python().seed(*arguments, **options)

    def getstate(self) -> Any:
        stream = _stream()
        return super().getstate() if stream is None else stream.python().getstate()

    def setstate(self, state: Any) -> None:
        stream = _stream()
        if stream is None:
            super().setstate(state)
        else:
            stream.python().setstate(state)

    @property
    def gauss_next(self) -> Any:
        stream = _stream()
        return self.__dict__.get("gauss_next") if stream is None else _any(stream.python()).gauss_next

    @gauss_next.setter
    def gauss_next(self, value: Any) -> None:
        stream = _stream()
        if stream is None:
            self.__dict__["gauss_next"] = value
        else:
            _any(stream.python()).gauss_next = value


# Whoever asks for its origin is told Python's: these are the functions of the module `random`.
for _method in (_Random.random, _Random.getrandbits, _Random.seed, _Random.getstate, _Random.setstate):
    _method.__module__, _method.__qualname__ = "random", f"Random.{_method.__name__}"

_lock = locks.lock()
_ours: MT19937 | None = None
_native = (random.random, random.getrandbits)


_installed = False


def install() -> None:
    """Install both generators, the first time."""
    global _installed
    if not _installed:
        with _lock:
            if not _installed:
                _install_numpy()
                _install_python()
                _installed = True


def _install_numpy() -> None:
    global _ours
    present = _any(np.random).get_bit_generator()
    if type(present) is not np.random.MT19937:
        return
    generator = MT19937()
    state = np.random.get_state(legacy=False)
    generator.state = state
    _any(np.random).set_bit_generator(generator)
    np.random.set_state(state)
    _ours = generator


def _install_python() -> None:
    program = getattr(random, "_inst", None)
    if type(program) is not random.Random or (random.random, random.getrandbits) != _native:
        return
    program.__class__ = _Random
    for name in ("random", "getrandbits", "seed", "getstate", "setstate"):
        setattr(random, name, getattr(program, name))


@locks.in_child
def _renew() -> None:
    if _ours is not None:
        _ours._turn.renew()
