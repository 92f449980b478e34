"""Compilation of LLVM IR to callable addresses: optimizer, linker and object cache.

Objects are kept on disk (`files.code_cache`) under the hash of the IR, in a folder for the
processor's features and LLVM's version, which several hosts may share. Several modules compile at
once, and while their caller goes on (`Modules`). Code that this process runs is the host's.
"""

from __future__ import annotations

import ctypes
import hashlib
import heapq
import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import llvmlite.binding as llvm

from mycel._src.engines.error_messages import no_memory
from mycel._src.engines.native.llvm.machine_code import LOOPS_MARK, Generator
from mycel._src.engines.native.llvm.object_loader import CodePages
from mycel._src.engines.native.llvm.target import host
from mycel._src.foundation.files import code_cache
from mycel._src.foundation.python_runtime.scoped_process_settings import Block, WhileOpen
from mycel._src.foundation.spans import timed
from mycel._src.foundation.system import locks
from mycel._src.foundation.system.system_memory import addresses_left

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

__all__ = ["LOOPS_MARK", "Machine", "Modules", "compile_objects", "machine", "python_symbols"]

# What LLVM takes for a module beside so many bytes for each byte of its text, and what its threads
# may reserve.
CODE_BYTES, CODE_FACTOR, THREADS_BYTES = 24 << 20, 256, 1 << 30
LINK_BYTES = 8 << 20


def _address(name: str) -> int:
    """Return the address of a function that the process has loaded; 0 if there is none."""
    function = getattr(ctypes.CDLL(None), name, None)
    return 0 if function is None else ctypes.cast(function, ctypes.c_void_p).value or 0


class Machine:
    """The host as a target of compilation, with the linker."""

    def __init__(self) -> None:
        self.host = host()
        self._idle: list[Generator] = []
        # LLVM's older linker puts the parts of an object wherever there is room. Where they lie
        # more than 2 GB apart it ends the process.
        self.linker = llvm.create_lljit_compiler(
            self.host.machine(), use_jit_link=sys.platform != "win32", suppress_errors=False
        )
        self._trackers: list[Any] = []
        self.pages = CodePages(_address)
        self._names = 0
        self._lock = locks.lock()

    @timed("LLVM")
    def compile(self, text: str) -> bytes:
        """Return the object code of a module."""
        return self._generated(text, False)

    def assembly(self, text: str) -> str:
        """Return the code of a module as the processor's instructions, in words."""
        return self._generated(text, True).decode()

    def _generated(self, text: str, assembly: bool) -> bytes:
        # LLVM ends the process where it gets no memory.
        left, needed = addresses_left(), CODE_BYTES + CODE_FACTOR * len(text)
        if left is not None and left < needed:
            raise no_memory("generating the machine code of a kernel", needed)
        try:
            generator = self._idle.pop()
        except IndexError:
            generator = Generator(self.host.machine(), self.host.triple)
        try:
            return generator.code_of(text, assembly)
        finally:
            self._idle.append(generator)

    def prepare(self, threads: int) -> None:
        """Make generators for so many threads, which would wait for Python's lock at each step."""
        while len(self._idle) < threads:
            self._idle.append(Generator(self.host.machine(), self.host.triple))

    @timed("linking")
    def link(self, object_code: bytes, names: Sequence[str], symbols: dict[str, int]) -> list[int]:
        """Load object code and return the addresses of `names`.

        `symbols` are the addresses of functions outside.
        """
        with self._lock:
            found = None if symbols else self.pages.load(object_code, names)
            if found is not None:
                return found
            left = addresses_left()
            if left is not None and left < LINK_BYTES:
                raise no_memory("linking the machine code of a kernel", LINK_BYTES)
            self._names += 1
            library = f"mycel{self._names}"
            builder = llvm.JITLibraryBuilder().add_object_img(object_code)
            builder = builder.add_current_process()
            for name, address in symbols.items():
                builder = builder.import_symbol(name, address)
            for name in names:
                builder = builder.export_symbol(name)
            tracker = builder.link(self.linker, library)
            self._trackers.append(tracker)
            return [tracker[name] for name in names]


_machine: list[Machine] = []
_machine_lock = locks.lock()


@locks.in_child
def _in_child() -> None:
    for made in _machine:
        made.pages.begin_anew()


# LLVM has locks of its own, and is called under this one.
locks.quiet(lambda: llvm.ffi.lib._lock._lock)


def machine() -> Machine:
    """Return the machine, set up on first use."""
    if not _machine:
        with _machine_lock:
            if not _machine:
                _machine.append(Machine())
    return _machine[0]


# Threads of Python that wait for its lock ask for it after so many seconds while modules compile:
# by Python's own 5 milliseconds, a thread that compiles would wait longer than it works.
_SWITCH = 0.0005
_switching = WhileOpen(sys.getswitchinterval, sys.setswitchinterval, lambda now: min(now, _SWITCH))


class Modules:
    """Modules that compile while their caller goes on; `close` ends that.

    Object code that the cache has is taken from there, what is compiled is put there. Threads
    compile from the third module on, the longest that waits first.
    """

    def __init__(self) -> None:
        self._codes: dict[str, bytes] = {}
        self._made: dict[str, Future[bytes]] = {}
        # Modules that wait: minus their lengths, their numbers, which differ, and themselves.
        self._waiting: list[tuple[int, int, str]] = []
        self._pool: ThreadPoolExecutor | None = None
        self._block: Block | None = None

    def begin(self, text: str) -> None:
        """Compile a module, unless it was begun before."""
        if text in self._codes or text in self._made:
            return
        code = code_cache.read(_objects(), _digest(text)) if code_cache.is_on() else None
        if code is not None:
            self._codes[text] = code
            return
        from concurrent.futures import Future

        self._made[text] = Future()
        heapq.heappush(self._waiting, (-len(text), len(self._made), text))
        left = addresses_left()
        if left is not None and left < THREADS_BYTES:
            return
        if self._pool is not None:
            self._pool.submit(self._compile)
        elif len(self._waiting) == 3:
            self._start()

    def _start(self) -> None:
        from concurrent.futures import ThreadPoolExecutor

        threads, waiting = max(os.cpu_count() or 1, 2), len(self._waiting)
        machine().prepare(min(threads, waiting))
        self._pool = ThreadPoolExecutor(threads, "mycel-compile")
        self._block = _switching.block()
        self._block.__enter__()
        for _ in range(waiting):
            self._pool.submit(self._compile)

    def _compile(self) -> None:
        """Compile the longest module that waits."""
        text = heapq.heappop(self._waiting)[2]
        try:
            self._made[text].set_result(machine().compile(text))
        except BaseException as error:
            self._made[text].set_exception(error)

    @timed("LLVM", lambda self, text: "1 module")
    def code(self, text: str) -> bytes:
        """Return the object code of a module, which may have been begun."""
        self.begin(text)
        if text not in self._codes:
            made = self._made[text]
            while self._pool is None and not made.done():
                self._compile()
            try:
                self._codes[text] = made.result()
            except BaseException:
                # What failed or was interrupted is compiled again when it is asked for again.
                if made.done():
                    del self._made[text]
                raise
            if code_cache.is_on():
                code_cache.write(_objects(), _digest(text), self._codes[text])
        return self._codes[text]

    def close(self) -> None:
        """End the threads once they have compiled what they are at; the rest waits for `code`."""
        if self._block is not None:
            self._block.__exit__()
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(cancel_futures=True)


def _objects() -> str:
    return f"objects-{host().identity}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def compile_objects(texts: Sequence[str]) -> list[bytes]:
    """Return the object code of several modules, compiled in parallel on the machine's cores."""
    modules = Modules()
    try:
        for text in texts:
            modules.begin(text)
        return [modules.code(text) for text in texts]
    finally:
        modules.close()


def python_symbols(names: Iterable[str]) -> dict[str, int]:
    """Return the addresses of functions and variables of the running Python."""
    found = {}
    for name in names:
        found[name] = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0
    return found
