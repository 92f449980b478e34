"""State that is saved in a store: whole after each loss of power, damage found, other refused."""

from __future__ import annotations

import ctypes
import platform
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel.deploy import Library, build
from tests.deploy.loaded import Loaded

pytestmark = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="runs code for x86-64")


class _Layout(ctypes.Structure):
    _fields_ = [(n, ctypes.c_void_p) for n in ("context", "read", "write")] + [("stride", ctypes.c_uint32)]


class Store:
    """Memory of two slots. After `budget` written bytes the power is lost."""

    def __init__(self, slot: int) -> None:
        self.memory = bytearray(b"\xff" * 2 * slot)
        self.budget: float = float("inf")
        self.fails = False
        kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_uint32)
        self.read, self.write = kind(self._read), kind(self._write)
        read, write = (ctypes.cast(f, ctypes.c_void_p) for f in (self.read, self.write))
        self.layout = _Layout(None, read, write, slot)

    def _read(self, _: Any, offset: int, data: int, size: int) -> int:
        if self.fails or offset + size > len(self.memory):
            return 1
        ctypes.memmove(data, bytes(self.memory[offset : offset + size]), size)
        return 0

    def _write(self, _: Any, offset: int, data: int, size: int) -> int:
        assert offset + size <= len(self.memory)
        done = int(min(size, self.budget))
        self.memory[offset : offset + done] = ctypes.string_at(data, done)
        self.budget -= done
        return int(done < size)


class Device(Loaded):
    """A library whose state can be saved to a store."""

    def __init__(self, library: Library) -> None:
        super().__init__(library)
        kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Layout))
        self.functions = [kind(address) for address in self.keeping]

    def save(self, store: Store) -> int:
        return int(self.functions[0](ctypes.byref(store.layout)))

    def load(self, store: Store) -> int:
        return int(self.functions[1](ctypes.byref(store.layout)))


def _counter() -> Library:
    """A library that adds to a state of 600 numbers and a count, and gives both sums."""
    many, count = ms.Parameter(ops.zeros((600,)), name="many"), ms.Parameter(ops.zeros((), ms.int32), name="count")

    def step(x: Any) -> Any:
        ops.assign_add(many, x)
        ops.assign_add(count, ms.Tensor(1, ms.int32))
        return many.sum() * 1, count * 1

    return build(step, ops.ones((600,)), target="x86-64-v2", name="counter")


def _slot(library: Library) -> int:
    return int(library.header.split("_SLOT_BYTES ")[-1].split()[0])


def test_state_goes_on_after_a_load() -> None:
    library, x = _counter(), np.ones(600, "f4")
    assert _slot(library) == 600 * 4 + 4 + 16
    device, store = Device(library), Store(_slot(library))
    assert device.load(store) == 1
    for k in range(1, 4):
        assert int(device(x)[1]) == k
    assert device.save(store) == 0
    for _ in range(2):
        device(x)
    assert device.load(store) == 0
    assert [float(v) for v in device(x)] == [2400, 4]
    # Another device of the same library goes on as well; one of another library does not.
    other = Device(library)
    assert other.load(store) == 0 and [float(v) for v in other(x)] == [2400, 4]
    many = ms.Parameter(ops.zeros((600,)), name="many")
    else_ = Device(build(lambda x: ops.assign_add(many, x).sum(), ops.ones((600,)), target="x86-64-v2", name="sums"))
    assert else_.load(store) == 1


def test_a_thousand_losses_of_power() -> None:
    library, x, random = _counter(), np.ones(600, "f4"), np.random.RandomState(0)
    store, device, saved, now = Store(_slot(library)), Device(library), 0, 0
    bytes_of_save = _slot(library)
    assert device.save(store) == 0
    for cut in range(1000):
        device(x)
        now += 1
        budget = cut if cut < 40 else int(random.randint(bytes_of_save + 1))
        if cut % 5 == 4:
            budget = bytes_of_save - int(random.randint(20))
        store.budget = budget
        status = device.save(store)
        assert (status == 0) == (budget >= bytes_of_save)
        store.budget = float("inf")
        device = Device(library) if cut % 50 == 0 else device
        assert device.load(store) == 0
        total, count = device(x)
        # The state is that of one save, whole: before this one or after it.
        saved = now if status == 0 else saved
        now = saved + 1
        assert int(count) == now and float(total) == 600 * now


def test_damage_and_failures_are_told() -> None:
    library, x, random = _counter(), np.ones(600, "f4"), np.random.RandomState(1)
    device, store = Device(library), Store(_slot(library))
    device(x)
    assert device.save(store) == 0
    device(x)
    assert device.save(store) == 0
    whole = bytes(store.memory)
    for _ in range(100):
        store.memory[:] = whole
        store.memory[_slot(library) + int(random.randint(_slot(library)))] ^= 1 << int(random.randint(8))
        assert device.load(store) == 0 and int(device(x)[1]) == 2
        store.memory[int(random.randint(_slot(library)))] ^= 1 << int(random.randint(8))
        assert device.load(store) == 1
    store.memory[:] = whole
    store.fails = True
    assert device.load(store) == 1
    store.fails, store.layout.stride = False, _slot(library) - 1
    assert device.load(store) == 3 and device.save(store) == 3


def test_libraries_without_state_have_no_store() -> None:
    library = build(nn.Dense(4, 2), ops.ones((1, 4)), target="x86-64-v2", name="plain")
    assert "store" not in library.header
