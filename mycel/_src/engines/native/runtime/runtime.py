"""The runtime's Python side: built-in functions made of native code, program tables, and threads.

`builtin(address)` makes a CPython function of a native fast-call entry, so that a call costs no
more than one of Python's own.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any

from mycel._src.engines.native.llvm import jit
from mycel._src.engines.native.onednn.blas_product_ir import PRODUCT, PRODUCT_SYMBOLS
from mycel._src.engines.native.runtime import bounds_check_setting
from mycel._src.engines.native.runtime.allocator_ir import ALLOCATOR, MEMORY
from mycel._src.engines.native.runtime.kernel_batch_ir import BATCH, BATCH_SYMBOLS
from mycel._src.engines.native.runtime.recursion_ir import RECURSION
from mycel._src.engines.native.runtime.repeat_ir import REPEAT_IR
from mycel._src.engines.native.runtime.runtime_ir import RUNTIME, RUNTIME_SYMBOLS
from mycel._src.engines.native.runtime.tape_ir import TAPE, TAPE_SYMBOLS
from mycel._src.engines.native.threads.pool import default_threads, pool, thread_limit
from mycel._src.foundation.log import logger
from mycel._src.foundation.settings import config
from mycel._src.foundation.system import locks
from mycel._src.foundation.system.system_memory import addresses_left, machine_memory

__all__ = ["Runtime", "runtime"]

_PYTHON = (
    "PyCapsule_New",
    "PyCapsule_GetPointer",
    "PyCapsule_GetContext",
    "PyCapsule_SetContext",
    "PyLong_FromVoidPtr",
    "PyLong_FromLongLong",
    "PyFloat_FromDouble",
    "PyBool_FromLong",
    "PyLong_AsVoidPtr",
    "PyLong_AsSsize_t",
    "PyErr_Occurred",
    "PyErr_NoMemory",
    "PyErr_SetString",
    "PyErr_SetObject",
    "PyErr_CheckSignals",
    "PyGILState_Ensure",
    "PyGILState_Release",
    "PyObject_Type",
    "Py_IncRef",
    "Py_DecRef",
    "PyTuple_New",
    "PyTuple_SetItem",
    "PyEval_SaveThread",
    "PyEval_RestoreThread",
    "PyExc_TypeError",
)
_FASTCALL = 0x80
# The addresses that a thread takes: its stack, and what the C library sets aside for its memory.
THREAD_BYTES = 32 << 20


class _MethodDef(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


class Runtime:
    """The linked runtime, one for the process."""

    def __init__(self) -> None:
        host = jit.machine()
        symbols = jit.python_symbols(_PYTHON)
        self.pool = pool()
        text = ALLOCATOR + RUNTIME + RECURSION + TAPE + BATCH + PRODUCT + REPEAT_IR
        names: tuple[str, ...] = (*RUNTIME_SYMBOLS, *TAPE_SYMBOLS, *BATCH_SYMBOLS, *PRODUCT_SYMBOLS, "mycel_repeat")
        if bounds_check_setting.is_on():
            text, names = bounds_check_setting.poisoned(text), (*names, "mycel_poison")
        symbols["pool_share"] = self.pool.address["pool_share"]
        (code,) = jit.compile_objects([text])
        self.address = dict(zip(names, host.link(code, names, symbols)))
        self._new_function = ctypes.pythonapi.PyCFunction_NewEx
        self._new_function.restype = ctypes.py_object
        self._new_function.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
        self._methods: list[_MethodDef] = []
        self.new_buffer = self.builtin(b"new_buffer", self.address["mycel_new_buffer"], None)
        self.wrap = self.builtin(b"wrap", self.address["mycel_wrap"], None)
        self.data_address = self.builtin(b"address", self.address["mycel_address"], None)
        self.number = self.builtin(b"number", self.address["mycel_number"], None)
        self.repeat = self.builtin(b"repeat", self.address["mycel_repeat"], None)
        self._invoke = self._method(b"run", self.address["mycel_invoke"])
        # The allocator relies on Python's lock, which these keep.
        self.release = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(self.address["mycel_release"])
        self.empty_cache = ctypes.PYFUNCTYPE(None)(self.address["mycel_empty_cache"])
        self.drop_arena = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(self.address["mycel_drop_arena"])
        # The same for `finalization.at_end`: what the table needs, and the reference that is given.
        words = (ctypes.c_void_p, ctypes.c_void_p, ctypes.py_object)
        self.end_program = ctypes.PYFUNCTYPE(None, *words)(self.address["mycel_drop_arena"])
        account = ctypes.PYFUNCTYPE(ctypes.c_void_p)(self.address["mycel_memory"])()
        self.account: Any = (ctypes.c_int64 * len(MEMORY)).from_address(account)
        self.set_limit(config._context["max_device_memory"])
        self.account[MEMORY.index("machine")] = machine_memory() or (1 << 63) - 1
        self.hear(threading.main_thread().ident or 0)
        self.threads, self.begun = 1, False
        self.set_threads(config._context["runtime_num_threads"])
        config.listeners.append(self._on_change)

    def raise_outside(self, make: Callable[[int, int, int], BaseException]) -> None:
        """Set the function that makes the error for an index out of range.

        `make` gets the addresses of a program's table and of the index's record, and the index.
        """
        # Kept, as native code calls it.
        self._outside = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(make)
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.address["mycel_outside_hook"])(
            ctypes.cast(self._outside, ctypes.c_void_p)
        )

    def hear(self, main: int) -> None:
        """Let long runs in thread `main`, Python's main thread, check for signals."""
        ctypes.CFUNCTYPE(None, ctypes.c_uint64)(self.address["mycel_main_thread"])(main)

    def _method(self, name: bytes, address: int) -> _MethodDef:
        method = _MethodDef(name, address, _FASTCALL, None)
        self._methods.append(method)
        return method

    def builtin(self, name: bytes, address: int, owner: Any) -> Any:
        """Return a built-in function of Python made of a native fast-call function.

        `owner` is kept alive by it.
        """
        return self._new_function(ctypes.addressof(self._method(name, address)), owner, None)

    def entry(self, owner: Any, table: int) -> Any:
        """Return the function that runs the program table of `owner`.

        It takes buffers and returns a buffer or a tuple of them.
        """
        return self._new_function(ctypes.addressof(self._invoke), self.wrap(owner, table), None)

    def set_threads(self, count: int) -> None:
        """Use `count` threads (0: `default_threads`), here and in the dense library."""
        # A team smaller than was asked for would leave out a part of the dense library's work.
        count = min(count or default_threads(), thread_limit())
        ctypes.CFUNCTYPE(None, ctypes.c_int)(self.address["mycel_set_threads"])(count)
        self.threads = count
        self.begun = count == 1
        from mycel._src.engines.native.onednn import c_interface as dense_library

        if dense_library.available() and dense_library.library().has_openmp:
            dense_library.set_num_threads(count)

    def begin_team(self) -> None:
        """Start the threads of parallel steps; use those alone that the system lets start."""
        self.begun = True
        if self.threads == 1:
            return
        left = addresses_left()
        if left is not None and left < self.threads * THREAD_BYTES:
            logger.warning(
                "there are %d MiB of addresses left (ulimit -v), too few for %d threads: computing on one",
                left >> 20,
                self.threads,
            )
            self.set_threads(1)
            return
        started = self.pool.start(self.threads)
        if started < self.threads:
            logger.warning("the system starts no more than %d of %d threads: using these", started, self.threads)
            self.set_threads(started)
            self.begun = True

    def sharing(self, count: int) -> Callable[[], Any]:
        """Return a function that runs an empty task on `count` threads and waits for them."""
        share = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 4, ctypes.c_void_p)(
            self.pool.address["pool_share"]
        )
        nothing = self.pool.address["team_loop_end"]
        return lambda: share(nothing, None, 0, count, count, count, None)

    def _on_change(self, options: dict[str, Any]) -> None:
        if "runtime_num_threads" in options:
            self.set_threads(options["runtime_num_threads"])
        if "max_device_memory" in options:
            self.set_limit(options["max_device_memory"])

    def set_limit(self, limit: str | None) -> None:
        """Limit the memory that buffers and arenas take from the system ("2GB"; None: no limit)."""
        self.account[MEMORY.index("limit")] = (1 << 63) - 1 if limit is None else config.memory_size(limit)


@locks.in_child
def _in_child() -> None:
    if _runtime:
        _runtime[0].hear(threading.get_ident())


_runtime: list[Runtime] = []
_lock = locks.lock()


def runtime() -> Runtime:
    """Return the process's runtime, which is linked on first use."""
    if not _runtime:
        with _lock:
            if not _runtime:
                _runtime.append(Runtime())
    return _runtime[0]
