"""Target processors: the features and vector width that code is made for, the host's or another's.

`target()` is the one in force, which lowering and all writers of kernels ask for vectors and
features. It is the host's unless a block of `making_for` says otherwise.

Code is compiled for this machine's processor, or for the level of x86-64 that `MYCEL_CPU` names
(x86-64, x86-64-v2, x86-64-v3, x86-64-v4: the levels of the System V ABI), so that one cache serves
several machines.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, TypeVar, cast

import llvmlite.binding as llvm

from mycel._src.foundation.bounded_caches import Remembered

__all__ = ["LEVELS", "RememberedByTarget", "Target", "host", "making_for", "processor", "target"]

F = TypeVar("F", bound=Callable[..., Any])

LEVELS = {
    "x86-64": "cmov cx8 fxsr mmx sse sse2",
    "x86-64-v2": "cx16 popcnt sahf sse3 sse4.1 sse4.2 ssse3",
    "x86-64-v3": "avx avx2 bmi bmi2 f16c fma lzcnt movbe",
    "x86-64-v4": "avx512bw avx512cd avx512dq avx512f avx512vl",
}
_FORMAT = 5


@dataclass(frozen=True)
class Target:
    """A processor and how code for it is laid out.

    `triple` and `cpu` are LLVM's names, `features` what differs from the processor's own, in LLVM's
    form, and `feature_set` the names of all that it has. `vector_bytes` is the width of vectors.
    `copies` says whether there is memory for copies of operands in another order, which pay where
    vectors are read; `threads`, whether threads divide a program's work; `scalar`, whether a
    register holds one element; `index_bits`, the width of positions; `stack`, the bytes that a
    kernel may take of the stack to work in; `runtime`, whether programs can ask for memory while
    they run. `reloc`, `model` and `abi` are LLVM's relocation model, code model and name of the
    calling convention. `identity` tells targets of different code apart:
    code made for another processor of the same features runs as well, and at most its instructions
    are in another order.
    """

    triple: str
    cpu: str
    features: str
    feature_set: frozenset[str]
    vector_bytes: int
    reloc: str = "pic"
    model: str = "default"
    abi: str = ""
    copies: bool = True
    threads: bool = True
    scalar: bool = False
    index_bits: int = 64
    stack: int = 96 << 10
    runtime: bool = True
    identity: str = field(init=False, compare=False, default="")

    def __post_init__(self) -> None:
        facts = (
            llvm.llvm_version_info,
            self.triple,
            self.features or self.cpu,
            self.vector_bytes,
            self.layout,
            (self.copies, self.threads, self.scalar, self.index_bits, self.stack),
            _FORMAT,
        )
        text = "|".join(map(str, facts))
        object.__setattr__(self, "identity", hashlib.sha256(text.encode()).hexdigest()[:16])

    @property
    def layout(self) -> tuple[str, str, str]:
        """Relocation model, code model and calling convention."""
        return self.reloc, self.model, self.abi

    def rounds(self, bits: int) -> bool:
        """Return whether there is an instruction that rounds floats of so many bits."""
        if self.is_family("x86_64"):
            return "sse4.1" in self.feature_set
        if self.is_family("thumb"):
            return bits == 32 and self.cpu in ("cortex-m7", "cortex-m33", "cortex-m55", "cortex-m85")
        return not self.is_family("armv7") and not self.is_family("riscv")

    def is_family(self, name: str) -> bool:
        """Return whether the processor is of a family, by the beginning of its triple."""
        return self.triple.startswith(name)

    def machine(self) -> Any:
        """Return a new code generator of LLVM's."""
        more = {"abiname": self.abi} if self.abi else {}
        return llvm.Target.from_triple(self.triple).create_target_machine(
            cpu=self.cpu, features=self.features, opt=2, reloc=self.reloc, codemodel=self.model, **more
        )


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
    if level not in LEVELS:
        raise ValueError(f"MYCEL_CPU={level}: there is no such level; they are {', '.join(LEVELS)}")
    names = list(LEVELS)
    needed = frozenset(" ".join(LEVELS[name] for name in names[: names.index(level) + 1]).split())
    lacking = sorted(needed - present)
    if lacking:
        raise ValueError(
            f"MYCEL_CPU={level}: this processor lacks {', '.join(lacking)}; name a lower level or unset it"
        )
    return level, "", needed


_host: list[Target] = []


def host() -> Target:
    """Return this machine's processor, or the level of it that is asked for."""
    if not _host:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        cpu, features, present = processor()
        width = 64 if "avx512f" in present else 32 if "avx" in present else 16
        # Threads that come at once find equal ones.
        _host.append(Target(llvm.get_process_triple(), cpu, features, present, width))
    return _host[0]


class _InForce(threading.local):
    target: Target | None = None


_in_force = _InForce()


def target() -> Target:
    """Return the processor that this thread makes code for."""
    return _in_force.target or host()


@contextmanager
def making_for(other: Target) -> Iterator[None]:
    """Have kernels of this thread made for another processor in a block."""
    before, _in_force.target = _in_force.target, other
    try:
        yield
    finally:
        _in_force.target = before


class RememberedByTarget(Remembered[Any, Any]):
    """A table of what is written for processors, of each its own."""

    __slots__ = ()

    def calls(self, function: F) -> F:
        """Decorate a function so that its results are remembered by arguments and target."""

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            return self.recall((target().identity, args, *kwargs.items()), lambda: function(*args, **kwargs))

        return cast(F, call)
