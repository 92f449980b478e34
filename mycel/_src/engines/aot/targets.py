"""Named targets of ahead-of-time compilation: the machines that libraries are made for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import llvmlite.binding as llvm

from mycel._src.engines.native.llvm.target import LEVELS, Target, host
from mycel._src.foundation.errors import Unsupported

__all__ = ["named", "names"]

# Vectors of eight bytes are two numbers in registers of one, for what is written in vectors alone.
PAIR = 8
# The processor that this runs on.
HOST = "host"
_LINUX, _BARE = "unknown-linux-gnu", "unknown-none-gnueabi"


def _x86(level: str, width: int, system: str = _LINUX, more: str = "") -> Target:
    """Return a level of x86-64 with vectors of `width` bytes, and with `more` features."""
    names = list(LEVELS)
    features = frozenset([*" ".join(LEVELS[n] for n in names[: names.index(level) + 1]).split(), *more.split()])
    added = ",".join(f"+{f}" for f in more.split())
    return Target(f"x86_64-{system}", level, added, features, width, threads=False)


def _other(
    triple: str, cpu: str, features: str, width: int, copies: bool = True, stack: int = 4096, **layout: str
) -> Target:
    present = frozenset(f[1:] for f in features.split(",") if f.startswith("+"))
    bits = 64 if triple.startswith(("aarch64", "arm64", "riscv64")) else 32
    facts: dict[str, Any] = {"copies": copies, "index_bits": bits, "stack": stack, **layout}
    return Target(triple, cpu, features, present, width, threads=False, scalar=width == PAIR, **facts)


def _cortex_m(architecture: str, cpu: str, width: int, features: str = "", hard: bool = True) -> Target:
    triple = f"{architecture}-{_BARE}{'hf' if hard else ''}"
    return _other(triple, cpu, features, width, copies=False, stack=1024, reloc="static")


_TARGETS: dict[str, Target] = {
    "x86-64": _x86("x86-64", 16),
    "x86-64-v2": _x86("x86-64-v2", 16),
    "x86-64-v3": _x86("x86-64-v3", 32),
    "x86-64-v4": _x86("x86-64-v4", 64),
    # With products of bytes: Alder Lake and later, Ice Lake and Zen 4 and later.
    "x86-64-v3-vnni": _x86("x86-64-v3", 32, more="avxvnni"),
    "x86-64-v4-vnni": _x86("x86-64-v4", 64, more="avx512vnni"),
    "aarch64": _other(f"aarch64-{_LINUX}", "cortex-a53", "+neon", 16, stack=64 << 10),
    "aarch64-dot": _other(f"aarch64-{_LINUX}", "cortex-a76", "+neon,+dotprod", 16, stack=64 << 10),
    "android-arm64": _other("aarch64-linux-android24", "cortex-a53", "+neon", 16, stack=64 << 10),
    "ios-arm64": _other("arm64-apple-ios14", "apple-a12", "+neon", 16, stack=64 << 10),
    "macos-arm64": _other("arm64-apple-macosx11", "apple-m1", "+neon", 16, stack=64 << 10),
    "windows-arm64": _other("aarch64-pc-windows-msvc", "generic", "+neon", 16, stack=64 << 10),
    "windows-x86-64": _x86("x86-64-v2", 16, "pc-windows-msvc"),
    "armv7-a": _other(f"armv7-{_LINUX}eabihf", "cortex-a7", "+neon,+vfp4", 16, stack=64 << 10),
    "cortex-m0plus": _cortex_m("thumbv6m", "cortex-m0plus", 8, hard=False),
    "cortex-m23": _cortex_m("thumbv8m.base", "cortex-m23", 8, hard=False),
    "cortex-m3": _cortex_m("thumbv7m", "cortex-m3", 8, hard=False),
    "cortex-m4": _cortex_m("thumbv7em", "cortex-m4", 8, "+dsp"),
    "cortex-m7": _cortex_m("thumbv7em", "cortex-m7", 8, "+dsp"),
    "cortex-m33": _cortex_m("thumbv8m.main", "cortex-m33", 8, "+dsp"),
    "cortex-m55": _cortex_m("thumbv8.1m.main", "cortex-m55", 16, "+mve.fp"),
    "cortex-m85": _cortex_m("thumbv8.1m.main", "cortex-m85", 16, "+mve.fp"),
    "riscv32": _other(
        "riscv32-unknown-elf", "generic-rv32", "+m,+a,+f,+c", 8, False, 1024, reloc="static", abi="ilp32f"
    ),
    "riscv64": _other(f"riscv64-{_LINUX}", "generic-rv64", "+m,+a,+f,+d,+c", 8, model="medium", abi="lp64d"),
    # The V extension with registers of 128 bits or more, of which 128 are used.
    "riscv64-v": _other(
        f"riscv64-{_LINUX}", "generic-rv64", "+m,+a,+f,+d,+c,+v,+zvl128b", 16, model="medium", abi="lp64d"
    ),
    "wasm32": _other("wasm32-unknown-unknown", "generic", "+simd128,+bulk-memory", 16, stack=32 << 10, reloc="static"),
}


def names() -> list[str]:
    """Return the names of all targets."""
    return [*_TARGETS, HOST]


def named(name: str) -> Target:
    """Return the target of a name, with LLVM ready to make code for it.

    Raises Unsupported for other names.

    >>> named("cortex-m4").triple
    'thumbv7em-unknown-none-gnueabihf'
    """
    if name not in names():
        raise Unsupported(f"build: there is no target {name!r}; there are {', '.join(names())}")
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return replace(host() if name == HOST else _TARGETS[name], threads=False, runtime=False)
