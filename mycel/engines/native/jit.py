"""From LLVM IR to callable addresses: the machine, the optimizer, the linker and the object cache.

Objects are kept on disk under a name that is the hash of the IR, the CPU's name and features, and LLVM's version; a file is written whole or
not at all, and one that cannot be read is compiled anew. Compilation releases Python's lock, so that several modules compile at once.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import tempfile
import threading
from collections.abc import Iterable, Sequence
from typing import Any

import llvmlite
import llvmlite.binding as llvm

from mycel import config
from mycel.log import logger

__all__ = ["Machine", "compile_objects", "machine", "python_symbols"]


class Machine:
    """The host: its LLVM target, features, vector width and the process-wide linker."""

    def __init__(self) -> None:
        if tuple(int(p) for p in llvmlite.__version__.split(".")[:2]) < (0, 46):
            llvm.initialize()
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self.triple = llvm.get_process_triple()
        self.cpu = llvm.get_host_cpu_name()
        features = llvm.get_host_cpu_features()
        self.feature_set = frozenset(k for k, v in features.items() if v)
        self.features = features.flatten()
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
        self._names = 0
        self._lock = threading.Lock()
        identity = f"{llvm.llvm_version_info}|{self.triple}|{self.cpu}|{self.features}|1"
        self.identity = hashlib.sha256(identity.encode()).hexdigest()[:16]

    def target_machine(self) -> Any:
        """A code generator of this thread's own."""
        return self.target.create_target_machine(
            cpu=self.cpu, features=self.features, opt=2, reloc="pic", codemodel="default"
        )

    def compile(self, text: str) -> bytes:
        """The object code of a module."""
        if not hasattr(self._local, "machine"):
            self._local.machine = self.target_machine()
            self._local.context = llvm.create_context()
        target = self._local.machine
        module = llvm.parse_assembly(text, context=self._local.context)
        module.triple = self.triple
        module.data_layout = str(target.target_data)
        options = llvm.create_pipeline_tuning_options(speed_level=1)
        options.loop_vectorization = options.slp_vectorization = False
        builder = llvm.create_pass_builder(target, options)
        passes = llvm.create_new_module_pass_manager()
        passes.add_always_inliner_pass()
        passes.add_sroa_pass()
        passes.add_instruction_combine_pass()
        passes.add_simplify_cfg_pass()
        passes.add_new_gvn_pass()
        passes.run(module, builder)
        return target.emit_object(module)  # type: ignore[no-any-return]

    def link(self, object_code: bytes, names: Sequence[str], symbols: dict[str, int]) -> list[int]:
        """Load object code; the addresses of `names`."""
        with self._lock:
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
_machine_lock = threading.Lock()


def machine() -> Machine:
    """The host machine, set up on first use."""
    if not _machine:
        with _machine_lock:
            if not _machine:
                _machine.append(Machine())
    return _machine[0]


def _cache_path(text: str) -> Any:
    digest = hashlib.sha256(text.encode()).hexdigest()
    return config.cache_directory() / f"objects-{machine().identity}" / digest[:2] / f"{digest}.o"


def _write_whole(path: Any, data: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        logger.info("the compiled-object cache could not be written: %s", error)


def _one_object(text: str) -> bytes:
    host = machine()
    if not config._context["enable_compile_cache"]:
        return host.compile(text)
    path = _cache_path(text)
    try:
        data: bytes = path.read_bytes()
        if data[:4] in (b"\x7fELF", b"\xcf\xfa\xed\xfe") or os.name == "nt":
            if data[-8:] == len(data).to_bytes(8, "little"):
                return data[:-8]
    except OSError as missing:
        logger.debug("no cached object: %s", missing)
    data = host.compile(text)
    _write_whole(path, data + (len(data) + 8).to_bytes(8, "little"))
    return data


def compile_objects(texts: Sequence[str]) -> list[bytes]:
    """The object code of several modules, compiled at once on the machine's cores; from the cache where they are known."""
    if len(texts) < 3:
        return [_one_object(t) for t in texts]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(len(texts), os.cpu_count() or 1)) as pool:
        return list(pool.map(_one_object, texts))


def python_symbols(names: Iterable[str]) -> dict[str, int]:
    """Addresses of the functions and variables of the running Python."""
    found = {}
    for name in names:
        found[name] = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0
    return found
