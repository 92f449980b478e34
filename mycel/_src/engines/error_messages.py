"""Error messages of compiled code: the operation, the types, the user's line, and a remedy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mycel._src.compiler.ir.dim_values import evaluate
from mycel._src.compiler.ir.graph import Graph, Node
from mycel._src.compiler.ir.source_locations import annotate, excerpt, is_library, spelled
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.prims.indexing.index_bounds import out_of_range
from mycel._src.engines.base import current
from mycel._src.foundation.errors import IndexRangeError, operation_called
from mycel._src.foundation.readable_sizes import readable

__all__ = ["index_out_of_range", "name_index_error", "no_memory", "note_host_step", "out_of_memory", "told"]

MEND = "  work in smaller batches or pieces, use a narrower type such as float16, or free tensors that are not needed"


def note_host_step(error: Exception, node: Node, types: Sequence[Any]) -> None:
    """Add to an error the operation, computed by the reference engine, that raised it."""
    lines = [f"  in {node.op}({', '.join(map(str, types))})"]
    if node.where is not None:
        lines.append(excerpt(node.where))
    annotate(error, "\n".join(lines))


def index_out_of_range(node: Node, axis: int, size: int, index: int, wraps: bool) -> IndexRangeError:
    """Return the error for an index that compiled code found out of range.

    `index` is out of range for axis number `axis` of `size`, in the operation of `node`, whose line
    in the user's source it names where known. With `wraps`, negative indices count from the end.
    """
    return IndexRangeError(_at_line(node, str(out_of_range("", index, axis, size, "wrap" if wraps else "front"))))


def name_index_error(error: IndexRangeError, node: Node) -> None:
    """Put the name that the user's code calls, and its line, into an error of an index.

    A primitive's reference raised the error; the line is added where it is known.
    """
    error.args = (_at_line(node, str(error)),)


def _at_line(node: Node, text: str) -> str:
    """Return the message "NAME: TEXT" with the name in the user's code, and the line below."""
    where = node.where
    lines = [f"{_called(node)}:{text.partition(':')[2]}"]
    if where is not None:
        if where.gradient:
            lines.append(f"  in the derivative of {where.gradient}")
        if not is_library(where.file):
            lines.append(excerpt(where))
    return "\n".join(lines)


def _called(node: Node) -> str:
    """Return the public name of an operation, with the user's spelling where that is another."""
    where = node.where
    if where is None:
        return operation_called() or _title(node)
    written = "" if is_library(where.file) else spelled(where)
    if not where.operation or not written:
        return written or where.operation or operation_called() or _title(node)
    alike = [name.rpartition(".")[2].strip("()").replace("_", "").lower() for name in (written, where.operation)]
    return written if alike[0] == alike[1] or written.endswith("]") else f"{where.operation} ({written})"


def _title(node: Node) -> str:
    """Return the name of an operation: an operator of the user's has one of its own."""
    return getattr(node.params.get("program"), "name", node.op)


def out_of_memory(graph: Graph, needed: int | None = None, sizes: Mapping[str, int] | None = None) -> MemoryError:
    """Return the error for a graph whose values did not fit into memory.

    It names the bytes needed, the largest of its values, and the memory available. `needed` are the
    bytes of a run where they are known, `sizes` those of the graph's symbols.
    """
    largest, size = None, 0
    for node in graph.nodes:
        if node.prim is not None and not node.is_constant:
            nbytes = _bytes_of(node.type, sizes)
            if nbytes > size:
                largest, size = node, nbytes
    name = operation_called()
    line = f"{name}: {graph.name}" if name and name != graph.name else graph.name
    line += " needs more memory than the system gives"
    if needed is not None:
        line += f", {readable(needed)} beside its inputs"
    lines = []
    if largest is not None and largest.prim is not None:
        kinds = largest.type if isinstance(largest.type, tuple) else (largest.type,)
        line += f": {largest.op} alone gives {', '.join(map(str, kinds))}, {readable(size)}"
        if largest.where is not None:
            lines.append(excerpt(largest.where))
    return MemoryError("\n".join([line + _there_is(), *lines, MEND]))


def no_memory(what: str, nbytes: int) -> MemoryError:
    """Return the error for something that cannot get the bytes that it needs."""
    return MemoryError(f"{what} needs {readable(nbytes)}, more memory than the system gives{_there_is()}")


def told(error: MemoryError, what: str) -> MemoryError:
    """Return the error itself or, where it has no message, one that says what ran out of memory."""
    if not error.args or not str(error):
        error.args = (f"{what} needs more memory than the system gives{_there_is()}",)
    return error


def _there_is() -> str:
    found = current().room_left()
    return f"; {found}" if found else ""


def _bytes_of(kind: Any, sizes: Mapping[str, int] | None) -> int:
    if isinstance(kind, tuple):
        return sum(_bytes_of(t, sizes) for t in kind)
    if not isinstance(kind, TensorType) or not (kind.is_static or sizes):
        return 0
    try:
        return evaluate(kind.nbytes, sizes or {})
    except KeyError:
        return 0
