"""The C interface of oneDNN: finds, checks and declares the library.

The library is looked for in this order, and only when it is first needed: the file that
`MYCEL_ONEDNN` names; the files that the wheel `onednn-cpu-gomp` recorded; the `lib` folders of this
interpreter and of the user's scheme; and what the system's loader finds under the name `dnnl`.
Nothing else is tried if the file that `MYCEL_ONEDNN` names is unusable, or others may write it. Any
oneDNN 3.x is usable, because only enumerators and functions that all 3.x releases share are used
here.

A oneDNN primitive divides its work, and sizes its scratchpad, for the number of threads in force
when it was created. OpenMP keeps that number per calling thread, so `adopt_threads` must run on
each thread before it creates or executes primitives.

Where the library runs on OpenMP, what it imports of that is led to our own pool (`threads/`), so
that one pool serves all steps, and none waits for the threads of another. A library that imports
more of OpenMP than the pool offers, or has another format, stays with the runtime that it was
linked with.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import importlib.metadata
import os
import platform
import site
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mycel._src.engines.native.threads.openmp_interface_ir import OPENMP
from mycel._src.engines.native.threads.pool import pool
from mycel._src.engines.native.threads.symbol_interposition import imports, lead
from mycel._src.foundation.files.file_ownership import Refused, check_code
from mycel._src.foundation.log import logger
from mycel._src.foundation.system import locks

FILE_NAMES = ("libdnnl.so.3", "libdnnl.3.dylib", "dnnl.dll")
DISTRIBUTION = "onednn-cpu-gomp"

STATUS = {
    1: "out_of_memory",
    2: "invalid_arguments",
    3: "unimplemented",
    4: "last_impl_reached",
    5: "runtime_error",
    6: "not_required",
}
DATA_TYPE = {"float16": 1, "bfloat16": 2, "float32": 3, "int32": 4, "int8": 5, "uint8": 6, "float64": 7}
ITEM_SIZE = {"float16": 2, "bfloat16": 2, "float32": 4, "int32": 4, "int8": 1, "uint8": 1, "float64": 8}

CPU_ENGINE = 1
IN_ORDER = 1
FORMAT_ANY = 1
SCRATCHPAD_USER = 1
FORWARD_TRAINING = 64
CONVOLUTION_DIRECT = 1
ELTWISE = {"relu": 0x20, "tanh": 0x21, "gelu_erf": 0x31}
BINARY = {"binary_add": 0x1FFF0}
ISA_AVX512, ISA_AVX512_VNNI = 0x27, 0x67
RUNTIME_SEQUENTIAL, RUNTIME_OPENMP, RUNTIME_TBB = 1, 2, 4

QUERY_IMPLEMENTATION = 8
QUERY_SCRATCHPAD = 136
QUERY_ARGUMENT = 255

ARG_SRC, ARG_DST, ARG_WEIGHTS, ARG_BIAS, ARG_SCRATCHPAD = 1, 17, 33, 41, 80
ARG_DIFF_SRC, ARG_DIFF_DST, ARG_DIFF_WEIGHTS, ARG_DIFF_BIAS = 129, 145, 161, 169
ARG_BINARY_OPERAND = 2


def argument_of_post_operation(index: int) -> int:
    """Return the execution argument for the second operand of the binary post-operation `index`."""
    return 32768 * (index + 1) | ARG_BINARY_OPERAND


def is_x86() -> bool:
    """Return whether this is a 64-bit x86 processor."""
    return platform.machine() in ("x86_64", "AMD64")


class Version(ctypes.Structure):
    """The C structure dnnl_version_t."""

    _fields_ = [
        ("major", ctypes.c_int),
        ("minor", ctypes.c_int),
        ("patch", ctypes.c_int),
        ("hash", ctypes.c_char_p),
        ("cpu_runtime", ctypes.c_uint),
        ("gpu_runtime", ctypes.c_uint),
    ]


class ExecutionArgument(ctypes.Structure):
    """The C structure dnnl_exec_arg_t."""

    _fields_ = [("arg", ctypes.c_int), ("memory", ctypes.c_void_p)]


Dims = ctypes.c_int64 * 12

_P, _I, _F, _L = ctypes.c_void_p, ctypes.c_int, ctypes.c_float, ctypes.c_int64
_OUT = ctypes.POINTER(ctypes.c_void_p)
_DIMS = ctypes.POINTER(Dims)

_PROTOTYPES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "dnnl_engine_create": (_I, (_OUT, _I, ctypes.c_size_t)),
    "dnnl_stream_create": (_I, (_OUT, _P, ctypes.c_uint)),
    "dnnl_stream_wait": (_I, (_P,)),
    "dnnl_memory_desc_create_with_strides": (_I, (_OUT, _I, _DIMS, _I, _DIMS)),
    "dnnl_memory_desc_create_with_tag": (_I, (_OUT, _I, _DIMS, _I, _I)),
    "dnnl_memory_desc_equal": (_I, (_P, _P)),
    "dnnl_memory_desc_get_size": (ctypes.c_size_t, (_P,)),
    "dnnl_memory_desc_destroy": (_I, (_P,)),
    "dnnl_memory_create": (_I, (_OUT, _P, _P, _P)),
    "dnnl_memory_set_data_handle": (_I, (_P, _P)),
    "dnnl_memory_destroy": (_I, (_P,)),
    "dnnl_primitive_attr_create": (_I, (_OUT,)),
    "dnnl_primitive_attr_set_scratchpad_mode": (_I, (_P, _I)),
    "dnnl_primitive_attr_set_post_ops": (_I, (_P, _P)),
    "dnnl_primitive_attr_destroy": (_I, (_P,)),
    "dnnl_post_ops_create": (_I, (_OUT,)),
    "dnnl_post_ops_append_sum": (_I, (_P, _F, ctypes.c_int32, _I)),
    "dnnl_post_ops_append_eltwise": (_I, (_P, _I, _F, _F)),
    "dnnl_post_ops_append_binary": (_I, (_P, _I, _P)),
    "dnnl_post_ops_destroy": (_I, (_P,)),
    "dnnl_primitive_desc_query": (_I, (_P, _I, _I, _P)),
    "dnnl_primitive_desc_query_md": (_P, (_P, _I, _I)),
    "dnnl_primitive_desc_next_impl": (_I, (_P,)),
    "dnnl_primitive_desc_destroy": (_I, (_P,)),
    "dnnl_matmul_primitive_desc_create": (_I, (_OUT, *[_P] * 6)),
    "dnnl_convolution_forward_primitive_desc_create": (_I, (_OUT, _P, _I, _I, *[_P] * 4, *[_DIMS] * 4, _P)),
    "dnnl_convolution_backward_data_primitive_desc_create": (_I, (_OUT, _P, _I, *[_P] * 3, *[_DIMS] * 4, _P, _P)),
    "dnnl_convolution_backward_weights_primitive_desc_create": (_I, (_OUT, _P, _I, *[_P] * 4, *[_DIMS] * 4, _P, _P)),
    "dnnl_reorder_primitive_desc_create": (_I, (_OUT, *[_P] * 5)),
    "dnnl_primitive_create": (_I, (_OUT, _P)),
    "dnnl_primitive_execute": (_I, (_P, _P, _I, _P)),
    "dnnl_primitive_destroy": (_I, (_P,)),
    "dnnl_sgemm": (_I, (*[ctypes.c_char] * 2, *[_L] * 3, _F, _P, _L, _P, _L, _F, _P, _L)),
    "dnnl_get_effective_cpu_isa": (_I, ()),
}


class Unavailable(RuntimeError):
    """oneDNN cannot be used here; the message says why and what to do."""


class Library:
    """A loaded oneDNN 3.x with one CPU engine and one in-order stream.

    Raises Unavailable if the file cannot be loaded, is not oneDNN 3.x, or has no CPU engine of its
    own.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            self.c = ctypes.CDLL(path)
        except OSError as error:
            mend = "; install the system package of GNU OpenMP (libgomp1, libgomp)" if "libgomp" in str(error) else ""
            raise Unavailable(f"oneDNN: cannot load {path!r}: {error}{mend}") from error
        try:
            query = self.c.dnnl_version
            query.restype = ctypes.POINTER(Version)
            self.version: Version = query().contents
            if self.version.major != 3:
                raise Unavailable(f"oneDNN: {path!r} is version {self.version_text}, and 3.x is needed")
            for name, (result, arguments) in _PROTOTYPES.items():
                function = getattr(self.c, name)
                function.restype, function.argtypes = result, arguments
        except AttributeError as error:
            raise Unavailable(f"oneDNN: {path!r} is not a oneDNN 3.x library: {error}") from error
        if self.version.cpu_runtime not in (RUNTIME_SEQUENTIAL, RUNTIME_OPENMP, RUNTIME_TBB):
            raise Unavailable(
                f"oneDNN: {path!r} has no CPU runtime of its own (runtime {self.version.cpu_runtime}); "
                "use a build for OpenMP, TBB or sequential execution"
            )
        self.on_pool = self.version.cpu_runtime == RUNTIME_OPENMP and _on_pool(self.c)
        self.engine = self._create("dnnl_engine_create", CPU_ENGINE, 0)
        self.stream = self._create("dnnl_stream_create", self.engine, IN_ORDER)

    def _create(self, function: str, *arguments: Any) -> int:
        handle = ctypes.c_void_p()
        status = getattr(self.c, function)(ctypes.byref(handle), *arguments)
        if status or not handle.value:
            raise Unavailable(f"oneDNN: {function} of {self.path!r} failed: {STATUS.get(status, status)}")
        return handle.value

    @property
    def version_text(self) -> str:
        return f"{self.version.major}.{self.version.minor}.{self.version.patch}"

    def address(self, function: str) -> int:
        """Return the machine address of an exported function, or of one of its OpenMP."""
        if self.on_pool and function in OPENMP:
            return pool().address[OPENMP[function]]
        address = ctypes.cast(getattr(self.c, function), ctypes.c_void_p).value
        assert address is not None
        return address

    def has_isa(self, isa: int) -> bool:
        """Return whether the processor has an x86 instruction set that oneDNN may use."""
        return is_x86() and self.c.dnnl_get_effective_cpu_isa() & isa == isa

    @property
    def has_openmp(self) -> bool:
        """Whether the number of threads of this oneDNN can be set: by our pool or its OpenMP."""
        # Looking a name up in the library also searches the libraries that it was linked with.
        return self.version.cpu_runtime == RUNTIME_OPENMP and (self.on_pool or hasattr(self.c, "omp_set_num_threads"))

    def set_threads(self, count: int) -> None:
        """Let the calling thread's later plans and regions have `count` threads."""
        ctypes.CFUNCTYPE(None, ctypes.c_int)(self.address("omp_set_num_threads"))(count)

    def max_threads(self) -> int:
        """Return how many threads the calling thread's plans and regions have."""
        return int(ctypes.CFUNCTYPE(ctypes.c_int)(self.address("omp_get_max_threads"))())


def _on_pool(c: ctypes.CDLL) -> bool:
    """Lead a library's imports of OpenMP to our pool; return whether that was possible."""
    places = imports(c)
    if places is None:
        return False
    wanted = [name for name in places if name.startswith(("GOMP_", "GOACC_", "omp_", "kmp_", "__kmpc_"))]
    if not wanted or any(name not in OPENMP for name in wanted):
        return False
    address = pool().address
    return lead(places, {name: address[OPENMP[name]] for name in wanted})


def candidates() -> Iterator[str]:
    """Yield the files to try, in the order that the module describes."""
    chosen = os.environ.get("MYCEL_ONEDNN")
    if chosen:
        yield chosen
        return
    seen: set[str] = set()
    folders = [Path(sys.prefix) / "lib", Path(sys.base_prefix) / "lib"]
    if site.ENABLE_USER_SITE:
        folders.append(Path(site.getuserbase()) / "lib")
    places = [*_recorded_files(), *(folder / name for folder in folders for name in FILE_NAMES)]
    for place in places:
        # Not `Path.is_file`, which raises where a folder of another user may not be looked into.
        resolved = os.path.realpath(place)
        if resolved not in seen and os.path.isfile(resolved):
            seen.add(resolved)
            yield resolved
    system = ctypes.util.find_library("dnnl")
    if system:
        yield system


def _recorded_files() -> list[Path]:
    try:
        files = importlib.metadata.files(DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        return []
    return [Path(str(file.locate())) for file in files if file.name in FILE_NAMES]


def _check_named(path: str) -> None:
    # What lies beside Python is as safe as Python, and a name without a folder is what the system's
    # loader knows by it.
    if path == os.environ.get("MYCEL_ONEDNN") and os.path.dirname(path):
        try:
            check_code(path)
        except Refused as error:
            raise Unavailable(f"oneDNN: {path!r} is not loaded: {error}") from error
        except OSError as error:
            raise Unavailable(f"oneDNN: cannot load {path!r}: {error}") from error


def load() -> Library:
    """Load the first usable candidate.

    Raises Unavailable, with every reason, if there is none.
    """
    reasons = []
    for path in candidates():
        try:
            _check_named(path)
            return Library(path)
        except Unavailable as error:
            reasons.append(str(error))
    if not reasons:
        reasons.append("oneDNN: no library found")
    if os.environ.get("MYCEL_ONEDNN"):
        mend = "correct or unset MYCEL_ONEDNN"
    else:
        mend = f"install it (pip install {DISTRIBUTION}) or name a libdnnl 3.x file in MYCEL_ONEDNN"
    raise Unavailable("; ".join(reasons) + "; " + mend)


_lock = locks.reentrant()
_loaded: Library | Unavailable | None = None
_requested_threads: int | None = None


def library() -> Library:
    """Return the process's oneDNN, loaded on the first call.

    If it cannot be loaded, this and every later call raise Unavailable.
    """
    global _loaded
    if _loaded is None:
        with _lock:
            if _loaded is None:
                try:
                    _loaded = load()
                except Unavailable as error:
                    _loaded = error
    if isinstance(_loaded, Unavailable):
        raise Unavailable(str(_loaded))
    return _loaded


def available() -> bool:
    """Return whether oneDNN can be used in this process; the first call loads it.

    >>> available() == (why_unavailable() is None)
    True
    """
    return why_unavailable() is None


def why_unavailable() -> str | None:
    """Return why oneDNN cannot be used, and what to do about it; None if it can."""
    try:
        library()
    except Unavailable as error:
        return str(error)
    return None


def version() -> str:
    """Return the version of the oneDNN in use, such as '3.2.0'."""
    return library().version_text


def symbols() -> dict[str, int]:
    """Return the addresses of the C functions that generated code calls to run a plan.

    `omp_set_num_threads` is among them where oneDNN uses OpenMP.
    """
    names = ["dnnl_primitive_execute", "dnnl_memory_set_data_handle", "dnnl_stream_wait", "dnnl_sgemm"]
    if library().has_openmp:
        names.append("omp_set_num_threads")
    return {name: library().address(name) for name in names}


def stream() -> int:
    """Return the handle of the in-order CPU stream."""
    return library().stream


def set_num_threads(count: int) -> None:
    """Set the number of threads among which later plans divide their work.

    Raises ValueError for a count below 1, Unavailable where oneDNN does not use OpenMP.
    """
    global _requested_threads
    if count < 1:
        raise ValueError(f"set_num_threads: the count must be at least 1, not {count}")
    if not library().has_openmp:
        raise Unavailable(
            f"set_num_threads: {library().path!r} does not run on OpenMP, the only runtime whose thread number can be "
            "set"
        )
    _requested_threads = count
    own = _own_openmp()
    if own is not None:
        # A team smaller than was asked for would leave out a part of the work.
        own.omp_set_dynamic(0)
    adopt_threads()


def adopt_threads() -> None:
    """Set the calling thread's number of threads to that of `set_num_threads`."""
    if _requested_threads is not None:
        library().set_threads(_requested_threads)


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Build plans for `count` threads inside this block.

    Without OpenMP it has no effect.
    """
    global _requested_threads
    if not library().has_openmp or _requested_threads is None:
        yield
        return
    before = _requested_threads
    _requested_threads = min(count, before)
    adopt_threads()
    try:
        yield
    finally:
        _requested_threads = before
        adopt_threads()


_PAUSE_HARD = 2


def _before_fork() -> None:
    """Free the pool of an OpenMP of its own, for whose threads a child would wait for ever."""
    found = _own_openmp()
    pause = getattr(found, "omp_pause_resource_all", None)
    if pause is not None:
        pause(_PAUSE_HARD)


@locks.in_child
def _in_child() -> None:
    found = _own_openmp()
    if found is not None and not hasattr(found, "omp_pause_resource_all"):
        logger.warning(
            "libgomp before GCC 9 does not work in a process that was forked after it was used: products and "
            "convolutions of oneDNN may never end; start processes with multiprocessing's 'spawn' method"
        )


def _own_openmp() -> ctypes.CDLL | None:
    """Return the library where it runs on threads of the OpenMP that it was linked with."""
    found = _loaded
    return found.c if isinstance(found, Library) and found.has_openmp and not found.on_pool else None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork)


def max_threads() -> int:
    """Return how many threads a plan uses that the calling thread builds now."""
    found = library()
    if found.has_openmp:
        adopt_threads()
        return found.max_threads()
    return 1 if found.version.cpu_runtime == RUNTIME_SEQUENTIAL else os.cpu_count() or 1
