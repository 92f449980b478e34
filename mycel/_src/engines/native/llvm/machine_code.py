"""LLVM's passes and machine-code generation for a module, in one thread, without locks where long.

A call of LLVM that is long runs without Python's lock, and without the lock that llvmlite puts
around each call; short ones keep Python's lock, as a thread that lets it go may wait milliseconds
to have it back while another thread computes in Python. LLVM's own threads need no lock as long as
each has a context and a target machine of its own, as they have here.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import llvmlite.binding as llvm

__all__ = ["LOOPS_MARK", "Generator"]

# The first line of a module of plain loops, over which all of LLVM's passes run.
LOOPS_MARK = "; loops"


@functools.cache
def _function(name: str, long: bool = False) -> Any:
    """Return a function of llvmlite's library without the lock around its calls.

    A `long` one lets go of Python's lock.
    """
    known = getattr(llvm.ffi.lib, name)
    if long:
        return getattr(known, "_cfn", known)
    found = getattr(ctypes.PyDLL(llvm.ffi.lib._name, handle=llvm.ffi.lib._handle), name)
    found.argtypes, found.restype = known.argtypes, known.restype
    return found


def _raise(error: ctypes.c_char_p) -> None:
    """Raise RuntimeError with LLVM's message, if there is one."""
    if error.value is not None:
        message = error.value.decode(errors="replace")
        _function("LLVMPY_DisposeString")(error)
        raise RuntimeError(f"LLVM refuses a module: {message}")


# Modules after which a context is made anew: it keeps the types and constants of all.
_MODULES = 256


class Generator:
    """A generator of code for a target machine, to be used by one thread at a time."""

    def __init__(self, target: Any, triple: str) -> None:
        self.target = target
        self.context = llvm.create_context()
        self.modules = 0
        self.head = f'target datalayout = "{target.target_data}"\ntarget triple = "{triple}"\n'
        self._plain = _options(False), _plain_passes()

    def code_of(self, text: str, assembly: bool = False) -> bytes:
        """Return the object code of a module, or its instructions in words."""
        self.modules += 1
        if self.modules % _MODULES == 0:
            self.context = llvm.create_context()
        loops = text.startswith(LOOPS_MARK)
        error = ctypes.c_char_p()
        module = _function("LLVMPY_ParseAssembly")(self.context, (self.head + text).encode(), ctypes.byref(error))
        # Deleted here, where an interrupt is heard: from an object's own end it would be lost.
        try:
            _raise(error)
            if loops:
                _optimize_loops(module, self.target)
            else:
                self._optimize(module)
            emit = _function("LLVMPY_TargetMachineEmitToMemory", long=True)
            memory = emit(self.target, module, 0 if assembly else 1, ctypes.byref(error))
            _raise(error)
        finally:
            _function("LLVMPY_DisposeModule")(module)
        start, size = (_function(f"LLVMPY_GetBuffer{what}")(memory) for what in ("Start", "Size"))
        try:
            return ctypes.string_at(start, size)
        finally:
            _function("LLVMPY_DisposeMemoryBuffer")(memory)

    def _optimize(self, module: Any) -> None:
        """Run cheap passes over a module."""
        options, passes = self._plain
        # Each module has a builder of its own, as it keeps what it knows of one.
        builder = _function("LLVMPY_CreatePassBuilder")(self.target, options)
        try:
            _function("LLVMPY_RunNewModulePassManager", long=True)(passes, module, builder)
        finally:
            _function("LLVMPY_DisposePassBuilder")(builder)


def _optimize_loops(module: Any, target: Any) -> None:
    """Run all of LLVM's passes over a module of plain loops."""
    builder = llvm.create_pass_builder(target, _options(True))
    passes = builder.getModulePassManager()
    _function("LLVMPY_RunNewModulePassManager", long=True)(passes, module, builder)
    passes.close()
    builder.close()


def _options(loops: bool) -> Any:
    options = llvm.create_pipeline_tuning_options(speed_level=2 if loops else 1)
    options.loop_vectorization = options.slp_vectorization = loops
    return options


def _plain_passes() -> Any:
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.add_new_gvn_pass()
    return passes
