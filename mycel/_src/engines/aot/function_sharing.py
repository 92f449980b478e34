"""Chooses which steps of a library share one function, so that equal code is emitted once.

Kernels do not depend on sizes: layers of one structure have one text. Where their sizes agree as
well, they call one function that takes addresses, which costs a call. Where sizes differ, a
function takes these too, and LLVM sees fewer constants: microcontrollers, which have little memory
for code, do so from `MANY` steps on. Sizes that are arguments of the library are parameters, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mycel._src.compiler.ir.dims import Dim, DimLike
from mycel._src.engines.aot.target_plan import Plan
from mycel._src.engines.native.kernels.codegen import OBJECTS, PLACE, Kernel

__all__ = ["Shared", "shared_kernels"]

MANY = 4


@dataclass
class Shared:
    """A function of several steps: which of the kernel's words are its parameters.

    `extent` says whether the end of the kernel's range is one, too, and `kernels` are those of the
    steps. The function's name is given when it is written, and `row` what its calls have in tables.
    """

    parameters: tuple[int, ...]
    extent: bool
    kernels: tuple[Kernel, ...]
    name: str = ""
    row: tuple[tuple[int, str], ...] = ()


def shared_kernels(plan: Plan) -> dict[int, Shared]:
    """Return the functions of kernels that are shared, by the identity of the kernel."""
    texts: dict[str, dict[tuple[DimLike, ...], list[Kernel]]] = {}
    for kernel in plan.code.values():
        texts.setdefault(kernel.text, {}).setdefault(_sizes(kernel), []).append(kernel)
    found: dict[int, Shared] = {}
    for forms in texts.values():
        groups = list(forms.values())
        if sum(map(len, groups)) >= MANY and not plan.target.copies:
            groups = [[kernel for group in groups for kernel in group]]
        for group in groups:
            if len(group) > 1:
                found.update(dict.fromkeys(map(id, group), _shared(group)))
    return found


def _sizes(kernel: Kernel) -> tuple[DimLike, ...]:
    """Return the numbers among a kernel's words, and the end of its range."""
    return (*[value for kind, value in kernel.words if kind == "int"], kernel.extent)


def _shared(group: Sequence[Kernel]) -> Shared:
    sizes = [[v if kind == "int" else 0 for kind, v in kernel.words] for kernel in group]
    differ = [k for k, values in enumerate(zip(*sizes)) if _vary(values)]
    objects = [k for k, (kind, _) in enumerate(group[0].words) if kind in (*OBJECTS, PLACE)]
    return Shared(tuple(sorted({*differ, *objects})), _vary([kernel.extent for kernel in group]), tuple(group))


def _vary(values: Sequence[DimLike]) -> bool:
    """Return whether values differ between steps, or between calls."""
    return len(set(values)) > 1 or isinstance(values[0], Dim)
