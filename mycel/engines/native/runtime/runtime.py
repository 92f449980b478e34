"""The runtime's Python side: built-in functions made of native code, program tables, and threads.

`builtin(address)` makes a CPython function of a native fast-call entry, so that a call costs no
more than one of Python's own.

A forked child has one thread, but the memory that it inherits still counts the threads of libgomp's
pool, and the first parallel step would wait for them for ever. So the thread that forks frees its
pool first, and parent and child each make a new one when they need it.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from typing import Any, Optional

from mycel.base import config, locks
from mycel.base.log import logger
from mycel.base.system_memory import addresses_left, machine_memory
from mycel.engines.native.llvm import jit
from mycel.engines.native.onednn.product_ir import PRODUCT, PRODUCT_SYMBOLS
from mycel.engines.native.runtime import checking
from mycel.engines.native.runtime.batch_ir import BATCH, BATCH_SYMBOLS
from mycel.engines.native.runtime.memory_ir import ALLOCATOR, MEMORY
from mycel.engines.native.runtime.recursion_ir import RECURSION
from mycel.engines.native.runtime.repeat_ir import REPEAT_IR
from mycel.engines.native.runtime.runtime_ir import RUNTIME, RUNTIME_SYMBOLS
from mycel.engines.native.runtime.tape_ir import TAPE, TAPE_SYMBOLS

__all__ = ["Runtime", "default_threads", "openmp", "runtime"]

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


def openmp() -> Optional[Any]:
    """Return libgomp, whose thread pool oneDNN uses as well; None where it is not installed."""
    from ctypes.util import find_library

    for name in ("libgomp.so.1", find_library("gomp")):
        if name:
            try:
                return ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
            except OSError:
                continue
    return None


_SERIAL = """
define void @GOMP_parallel(ptr %f, ptr %data, i32 %n, i32 %flags) {
  call void %f(ptr %data)
  ret void
}
define i32 @omp_get_thread_num() {
  ret i32 0
}
define i32 @omp_get_num_threads() {
  ret i32 1
}
"""


class Runtime:
    """The linked runtime, one for the process."""

    def __init__(self) -> None:
        host = jit.machine()
        symbols = jit.python_symbols(_PYTHON)
        self.openmp = openmp()
        text = ALLOCATOR + RUNTIME + RECURSION + TAPE + BATCH + PRODUCT + REPEAT_IR
        names: tuple[str, ...] = (*RUNTIME_SYMBOLS, *TAPE_SYMBOLS, *BATCH_SYMBOLS, *PRODUCT_SYMBOLS, "mycel_repeat")
        if checking.is_on():
            text, names = checking.poisoned(text), (*names, "mycel_poison")
        if self.openmp is None:
            for line in (
                "void @GOMP_parallel(ptr, ptr, i32, i32)",
                "i32 @omp_get_thread_num()",
                "i32 @omp_get_num_threads()",
            ):
                text = text.replace(f"declare {line}\n", "")
            text += _SERIAL
        else:
            for name in ("GOMP_parallel", "omp_get_thread_num", "omp_get_num_threads"):
                symbols[name] = ctypes.cast(getattr(self.openmp, name), ctypes.c_void_p).value or 0
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
        if self.openmp is None:
            count = 1
        else:
            # A team smaller than was asked for would leave out a part of the dense library's work.
            count = min(count or default_threads(), self.openmp.omp_get_thread_limit())
            self.openmp.omp_set_dynamic(0)
        ctypes.CFUNCTYPE(None, ctypes.c_int)(self.address["mycel_set_threads"])(count)
        self.threads = count
        self.begun = count == 1
        if self.openmp is not None:
            from mycel.engines.native.onednn import library as dense_library

            self.openmp.omp_set_num_threads(count)
            if dense_library.available() and dense_library.library().has_openmp:
                dense_library.set_num_threads(count)

    def begin_team(self) -> None:
        """Start the threads of parallel steps where the process's addresses are limited.

        If that is impossible use one thread, as libgomp would end the process.
        """
        self.begun = True
        left = addresses_left()
        if left is None or self.threads == 1 or self.openmp is None:
            return
        if left < self.threads * THREAD_BYTES:
            logger.warning(
                "there are %d MiB of addresses left (ulimit -v), too few for %d threads: computing on one",
                left >> 20,
                self.threads,
            )
            self.set_threads(1)
            return
        # Each thread of the team frees nothing, once.
        free = ctypes.cast(ctypes.CDLL(None).free, ctypes.c_void_p)
        self.openmp.GOMP_parallel(free, None, ctypes.c_uint(self.threads), ctypes.c_uint(0))

    def sharing(self, count: int) -> Optional[Callable[[], Any]]:
        """Return a function that runs an empty task on `count` threads and waits for them.

        Returns None where there is no pool of threads.
        """
        if self.openmp is None:
            return None
        parallel = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)(
            ctypes.cast(self.openmp.GOMP_parallel, ctypes.c_void_p).value or 0
        )
        # A function without effects stands for the work.
        nothing = ctypes.cast(self.openmp.omp_get_thread_num, ctypes.c_void_p)
        return lambda: parallel(nothing, None, count, 0)

    def serial_from_now_on(self) -> None:
        """Run generated code on one thread.

        This child process has lost the other threads, and its libgomp cannot make new ones.
        """
        ctypes.CFUNCTYPE(None, ctypes.c_int)(self.address["mycel_set_threads"])(1)
        logger.warning(
            "libgomp before GCC 9 does not work in a process that was forked after it was used: products and "
            "convolutions of oneDNN may "
            "never end; start processes with multiprocessing's 'spawn' method"
        )

    def _on_change(self, options: dict[str, Any]) -> None:
        if "runtime_num_threads" in options:
            self.set_threads(options["runtime_num_threads"])
        if "max_device_memory" in options:
            self.set_limit(options["max_device_memory"])

    def set_limit(self, limit: Optional[str]) -> None:
        """Limit the memory that buffers and arenas take from the system ("2GB"; None: no limit)."""
        self.account[MEMORY.index("limit")] = (1 << 63) - 1 if limit is None else config.memory_size(limit)


def default_threads() -> int:
    """Return the number of threads used where none is set.

    It is the first number in OMP_NUM_THREADS, or that of usable cores.

    >>> default_threads() >= 1
    True
    """
    asked = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if asked.isdigit() and int(asked):
        return int(asked)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_OMP_PAUSE_HARD = 2


def _before_fork() -> None:
    pause = getattr(_runtime[0].openmp, "omp_pause_resource_all", None) if _runtime else None
    if pause is not None:
        pause(_OMP_PAUSE_HARD)


@locks.in_child
def _in_child() -> None:
    if _runtime:
        _runtime[0].hear(threading.get_ident())
    if _runtime and _runtime[0].threads > 1 and not hasattr(_runtime[0].openmp, "omp_pause_resource_all"):
        _runtime[0].serial_from_now_on()


_runtime: list[Runtime] = []
_lock = locks.lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork)


def runtime() -> Runtime:
    """Return the process's runtime, which is linked on first use."""
    if not _runtime:
        with _lock:
            if not _runtime:
                _runtime.append(Runtime())
    return _runtime[0]
