"""Compilation of LLVM IR to callable addresses: target machine, optimizer, linker and object cache.

Objects are kept on disk (`mycel.cache`) under the hash of the IR, in a folder for the processor's
features and LLVM's version, which several hosts may share. Several modules compile at once: the
passes over a module and the generation of its code release Python's lock, and do not take the lock
that llvmlite puts around each call of LLVM. LLVM's own threads need none as long as each has a
context and a target machine of its own, as they have here.

Code is compiled for this machine's processor, or for the level of x86-64 that `MYCEL_CPU` names
(x86-64, x86-64-v2, x86-64-v3, x86-64-v4: the levels of the System V ABI), so that one cache serves
several machines.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import threading
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from typing import Any

import llvmlite.binding as llvm

from mycel.base import cache, locks
from mycel.base.spans import timed
from mycel.base.system_memory import addresses_left
from mycel.engines.failures import no_memory
from mycel.engines.native.llvm.pages import CodePages

__all__ = ["LOOPS_MARK", "Machine", "compile_objects", "machine", "processor", "python_symbols"]

_LEVELS = {
    "x86-64": "cmov cx8 fxsr mmx sse sse2",
    "x86-64-v2": "cx16 popcnt sahf sse3 sse4.1 sse4.2 ssse3",
    "x86-64-v3": "avx avx2 bmi bmi2 f16c fma lzcnt movbe",
    "x86-64-v4": "avx512bw avx512cd avx512dq avx512f avx512vl",
}
_FORMAT = 4
# The first line of a module of plain loops, over which all of LLVM's passes run.
LOOPS_MARK = "; loops"
# What LLVM takes for a module beside so many bytes for each byte of its text, and what its threads
# may reserve.
CODE_BYTES, CODE_FACTOR, THREADS_BYTES = 24 << 20, 256, 1 << 30
LINK_BYTES = 8 << 20


def processor() -> tuple[str, str, frozenset[str]]:
    """Return the name and features of the processor that code is compiled for.

    These are LLVM's name, the features in LLVM's form, and the names of those it has. Raises
    ValueError where `MYCEL_CPU` is not a level, or one that this processor does not reach.
    """
    host = llvm.get_host_cpu_features()
    present = frozenset(name for name, has in host.items() if has)
    level = os.environ.get("MYCEL_CPU")
    if not level:
        return llvm.get_host_cpu_name(), host.flatten(), present
    if not llvm.get_process_triple().startswith("x86_64"):
        raise ValueError(f"MYCEL_CPU={level}: levels are those of x86-64 and this is another processor; unset it")
    if level not in _LEVELS:
        raise ValueError(f"MYCEL_CPU={level}: there is no such level; they are {', '.join(_LEVELS)}")
    names = list(_LEVELS)
    needed = frozenset(" ".join(_LEVELS[name] for name in names[: names.index(level) + 1]).split())
    lacking = sorted(needed - present)
    if lacking:
        raise ValueError(
            f"MYCEL_CPU={level}: this processor lacks {', '.join(lacking)}; name a lower level or unset it"
        )
    return level, "", needed


def _address(name: str) -> int:
    """Return the address of a function that the process has loaded; 0 if there is none."""
    function = getattr(ctypes.CDLL(None), name, None)
    return 0 if function is None else ctypes.cast(function, ctypes.c_void_p).value or 0


def _unlocked(name: str) -> Any:
    """Return a function of llvmlite's library without the lock around its calls."""
    found = getattr(llvm.ffi.lib, name)
    return getattr(found, "_cfn", found)


def _object_of(module: Any, target: Any) -> bytes:
    """Return the object code that a target machine generates for a module."""
    with llvm.ffi.OutputString() as error:
        memory = _unlocked("LLVMPY_TargetMachineEmitToMemory")(target, module, 1, error)
        if not memory:
            raise RuntimeError(str(error))
    library = llvm.ffi.lib
    try:
        return ctypes.string_at(library.LLVMPY_GetBufferStart(memory), library.LLVMPY_GetBufferSize(memory))
    finally:
        library.LLVMPY_DisposeMemoryBuffer(memory)


class Machine:
    """The target of compilation: its LLVM name, features and vector width, and the linker."""

    def __init__(self) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self.triple = llvm.get_process_triple()
        self.cpu, self.features, self.feature_set = processor()
        if "avx512f" in self.feature_set:
            self.vector_bytes = 64
        elif "avx" in self.feature_set:
            self.vector_bytes = 32
        else:
            self.vector_bytes = 16
        self.target = llvm.Target.from_triple(self.triple)
        self._local = threading.local()
        self.linker = llvm.create_lljit_compiler(self.target_machine(), suppress_errors=False)
        self._trackers: list[Any] = []
        self.pages = CodePages(_address)
        self._names = 0
        self._lock = locks.lock()
        # Code made for another processor of the same features runs as well; at most its
        # instructions are in another order.
        identity = f"{llvm.llvm_version_info}|{self.triple}|{self.features or self.cpu}|{_FORMAT}"
        self.identity = hashlib.sha256(identity.encode()).hexdigest()[:16]

    def target_machine(self) -> Any:
        """Return the code generator of this thread."""
        return self.target.create_target_machine(
            cpu=self.cpu, features=self.features, opt=2, reloc="pic", codemodel="default"
        )

    @timed("LLVM")
    def compile(self, text: str) -> bytes:
        """Return the object code of a module."""
        if not hasattr(self._local, "machine"):
            self._local.machine = self.target_machine()
            self._local.context = llvm.create_context()
        target = self._local.machine
        # LLVM ends the process where it gets no memory.
        left, needed = addresses_left(), CODE_BYTES + CODE_FACTOR * len(text)
        if left is not None and left < needed:
            raise no_memory("generating the machine code of a kernel", needed)
        # Closed here, where an interrupt is heard: from an object's own end it would be lost.
        with ExitStack() as open_objects:
            return self._compiled(text, target, lambda made: (made, open_objects.callback(made.close))[0])

    def _compiled(self, text: str, target: Any, own: Any) -> bytes:
        module = own(llvm.parse_assembly(text, context=self._local.context))
        module.triple = self.triple
        module.data_layout = str(target.target_data)
        loops = text.startswith(LOOPS_MARK)
        options = own(llvm.create_pipeline_tuning_options(speed_level=2 if loops else 1))
        options.loop_vectorization = options.slp_vectorization = loops
        builder = own(llvm.create_pass_builder(target, options))
        if loops:
            passes = own(builder.getModulePassManager())
        else:
            passes = own(llvm.create_new_module_pass_manager())
            passes.add_always_inliner_pass()
            passes.add_sroa_pass()
            passes.add_instruction_combine_pass()
            passes.add_simplify_cfg_pass()
            passes.add_new_gvn_pass()
        _unlocked("LLVMPY_RunNewModulePassManager")(passes, module, builder)
        return _object_of(module, target)

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
    for host in _machine:
        host.pages.begin_anew()


# LLVM has locks of its own, and is called under this one.
locks.quiet(lambda: llvm.ffi.lib._lock._lock)


def machine() -> Machine:
    """Return the host machine, set up on first use."""
    if not _machine:
        with _machine_lock:
            if not _machine:
                _machine.append(Machine())
    return _machine[0]


def _one_object(text: str) -> bytes:
    host = machine()
    if not cache.is_on():
        return host.compile(text)
    kind, digest = f"objects-{host.identity}", hashlib.sha256(text.encode()).hexdigest()
    code = cache.read(kind, digest)
    if code is None:
        code = host.compile(text)
        cache.write(kind, digest, code)
    return code


@timed("LLVM", lambda texts: f"{len(texts)} modules")
def compile_objects(texts: Sequence[str]) -> list[bytes]:
    """Return the object code of several modules, from the cache where it has them.

    Others are compiled in parallel on the machine's cores.
    """
    left = addresses_left()
    if len(texts) < 3 or (left is not None and left < THREADS_BYTES):
        return [_one_object(t) for t in texts]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(len(texts), os.cpu_count() or 1)) as pool:
        return list(pool.map(_one_object, texts))


def python_symbols(names: Iterable[str]) -> dict[str, int]:
    """Return the addresses of functions and variables of the running Python."""
    found = {}
    for name in names:
        found[name] = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0
    return found
