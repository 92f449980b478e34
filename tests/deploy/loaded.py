"""Libraries for this processor, linked into this process and run."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

import mycel as ms
from mycel._src.engines.aot.library import Library
from mycel._src.engines.native.llvm.jit import machine

__all__ = ["Loaded"]

CANARY = 64


class Loaded:
    """A library in this process. What lies around the arena and the results is watched."""

    def __init__(self, library: Library) -> None:
        self.library = library
        names = [
            library.name,
            *([f"{library.name}_begin"] if library.lends else []),
            *([f"{library.name}_save", f"{library.name}_load"] if "_save(" in library.header else []),
        ]
        address, *self.keeping = machine().link(library.object, names, {})
        count = len(library.inputs) + len(library.outputs) + 1 + library.lends + library.divides
        self.state: Any = None
        self.parallel: Any = None
        if library.lends:
            self.begin = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.keeping.pop(0))
            self.state = _guarded(library.state_bytes)
            self.begin(self.state[1])
        self.function = ctypes.CFUNCTYPE(
            ctypes.c_int, *[ctypes.c_int32] * len(library.sizes), *[ctypes.c_void_p] * count
        )(address)

    def __call__(self, *tensors: Any) -> Any:
        given = [_elsewhere(np.asarray(t.asnumpy() if isinstance(t, ms.Tensor) else t)) for t in tensors]
        for argument, array in zip(self.library.inputs, given):
            assert array.dtype == argument.type.dtype.numpy
        sizes, shapes = self.library.shapes(*[a.shape for a in given])
        results = [np.empty(s, a.type.dtype.numpy) for s, a in zip(shapes, self.library.outputs)]
        before = [a.copy() for a in given]
        memory = [_guarded(a.nbytes, a.itemsize) for a in results] + [_guarded(self.library.arena_bytes)]
        memory += [self.state] if self.library.lends else []
        last = [None if self.parallel is None else ctypes.byref(self.parallel)] if self.library.divides else []
        status = self.function(*sizes.values(), *[a.ctypes.data for a in given], *[start for _, start in memory], *last)
        for block, start in memory:
            offset = start - block.ctypes.data
            assert (block[offset - CANARY : offset] == 171).all(), "something was written before the memory given"
            assert (block[-CANARY:] == 171).all(), "something was written behind the memory given"
        for array, old in zip(given, before):
            assert array.tobytes() == old.tobytes(), "an input was written"
        if status:
            raise IndexError(status)
        for k, (block, start) in enumerate(memory[: len(results)]):
            offset, made = start - block.ctypes.data, results[k]
            results[k] = block[offset : offset + made.nbytes].view(made.dtype).reshape(made.shape).copy()
        return results[0] if len(results) == 1 else tuple(results)


def _guarded(size: int, unit: int = 16) -> tuple[np.ndarray[Any, Any], int]:
    """Memory at a multiple of a unit and no more, with canaries around: the block and the start."""
    block = np.full(size + 2 * CANARY + 64 + unit, 171, np.uint8)
    start = -(-(block.ctypes.data + CANARY) // 64) * 64 + unit
    return block[: start - block.ctypes.data + size + CANARY], start


def _elsewhere(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy of an array at a multiple of the size of its elements and of no more."""
    block = np.empty(array.nbytes + 128, np.uint8)
    start = -block.ctypes.data % 64 + array.itemsize
    made = block[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    made[...] = array
    return made
