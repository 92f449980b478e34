"""What an error says that arises while compiled code runs: the operation, the types, the user's line and a mend."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from mycel.errors import IndexRangeError
from mycel.ir.graph import Graph, Node
from mycel.ir.places import annotate, excerpt, library_frames, spelled
from mycel.ir.types import TensorType
from mycel.prims.index import out_of_range

__all__ = ["index_out_of_range", "note_host_step", "out_of_memory", "readable"]


def note_host_step(error: Exception, node: Node, types: Sequence[Any]) -> None:
    """Show with an error the operation, computed by the reference engine, that raised it."""
    assert node.prim is not None
    lines = [f"  in {node.prim.name}({', '.join(map(str, types))})"]
    if node.where is not None:
        lines.append(excerpt(node.where))
    annotate(error, "\n".join(lines))


def index_out_of_range(node: Node, axis: int, size: int, index: int, wraps: bool) -> IndexRangeError:
    """The error for an index that compiled code found out of range, with the user's line where it is known."""
    assert node.prim is not None
    where = node.where
    name = (where and spelled(where)) or _called() or node.prim.name
    error = out_of_range(name, index, axis, size, "wrap" if wraps else "front")
    lines = [str(error)]
    if where is not None:
        if where.gradient:
            lines.append(f"  in the derivative of {where.gradient}")
        lines.append(excerpt(where))
    return IndexRangeError("\n".join(lines))


_SUBSCRIPTS = {"__getitem__": "x[...]", "__setitem__": "x[...] = y"}
_WRAPPERS = frozenset(("<lambda>", "call", "construct", "method", "plainly", "run", "run_with_hooks"))


def _called() -> str:
    """The name of the function, or the type of the object, of the library that the user's code called."""
    found = ""
    for frame in library_frames(sys._getframe(1)):
        code, module = frame.f_code, str(frame.f_globals.get("__name__", ""))
        owner = frame.f_locals.get("self") if code.co_varnames[:1] == ("self",) else None
        if module.startswith(("mycel.engines.", "mycel.jit")):
            continue
        if code.co_name in ("__call__", "call") and owner is not None:
            found = type(owner).__name__
        elif code.co_name not in _WRAPPERS:
            found = _SUBSCRIPTS.get(code.co_name, code.co_name.lstrip("_"))
    return found


def out_of_memory(graph: Graph) -> MemoryError:
    """The error for a graph whose values did not fit into memory; it names the largest of them."""
    total, largest, size = 0, None, -1
    for node in graph.nodes:
        if node.prim is not None and not node.is_constant:
            nbytes = sum(_nbytes(t) for t in (node.type if isinstance(node.type, tuple) else (node.type,)))
            total += nbytes
            if nbytes > size:
                largest, size = node, nbytes
    lines = [f"{graph.name} needs more memory than the system gives"]
    if largest is not None and largest.prim is not None:
        kinds = largest.type if isinstance(largest.type, tuple) else (largest.type,)
        lines[0] += f": {largest.prim.name} alone gives {', '.join(map(str, kinds))}, {readable(size)}"
        if largest.where is not None:
            lines.append(excerpt(largest.where))
    lines.append(
        "  work in smaller batches or pieces, use a narrower type such as float16, or free tensors that are not needed"
    )
    return MemoryError("\n".join(lines))


def _nbytes(kind: Any) -> int:
    return int(kind.nbytes) if isinstance(kind, TensorType) and kind.is_static else 0


def readable(size: float) -> str:
    """A number of bytes for people."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.4g} {unit}"
        size /= 1024
    return f"{size:.4g} TiB"
