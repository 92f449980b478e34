"""Eager dispatch: primitives applied to tensors run at once, are recorded, or are staged.

All primitives are applied by `apply`. Without a context it runs the kernel that a table has for
(primitive, types, parameters). A context (`core.execution_context`) is in force while a gradient is
being recorded or a function staged, and then applies the primitive. `active` counts the contexts of
all threads, so that the common case costs one comparison. `local` holds this thread's context, also
by the roles that operations ask for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from mycel._src.compiler.ir.graph import Graph, input_node
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.prims.base import Primitive, freeze, outputs_of
from mycel._src.engines import buffers
from mycel._src.engines.error_messages import out_of_memory, told
from mycel._src.engines.select import compile_primitive
from mycel._src.foundation.bounded_caches import MANY, Remembered
from mycel._src.foundation.settings import config
from mycel._src.foundation.system import locks
from mycel._src.tensors.core.execution_context import Context, Recording, Staging

if TYPE_CHECKING:
    from mycel._src.tensors.core.tensor import Tensor

__all__ = ["apply", "current_context", "execute", "use_context"]


class _Local(threading.local):
    """The context in force in this thread, also as a `Recording` and as a `Staging` where it is
    one.
    """

    context: Context | None = None
    recording: Recording | None = None
    staging: Staging | None = None


local = _Local()
active = 0
_lock = locks.lock()


def current_context() -> Context | None:
    """Return the context in force in this thread, if any."""
    return local.context


class use_context:
    """A block in which a context (None: plain execution) is in force in this thread."""

    __slots__ = ("context", "previous")

    def __init__(self, context: Context | None) -> None:
        self.context = context

    def __enter__(self) -> None:
        global active
        context = self.context
        self.previous = local.context, local.recording, local.staging
        with _lock:
            active += 1
        local.context = context
        local.recording, local.staging = (None, None) if context is None else (context.recording, context.staging)

    def __exit__(self, *_: object) -> None:
        global active
        local.context, local.recording, local.staging = self.previous
        with _lock:
            active -= 1


Entry = tuple[Callable[..., Any], Any]


class _Entries(Remembered[Any, Entry]):
    """The kernels of operations; the recent ones of binary primitives are in `_pairs` as well."""

    __slots__ = ()

    def emptied(self) -> None:
        for primitive, table in list(_pairs.items()):
            for types in list(table):
                if (primitive, types) not in self.recent:
                    table.pop(types, None)


_pairs: dict[Primitive, dict[tuple[TensorType, TensorType], Entry]] = {}
_entries = _Entries("operations", MANY, config.COMPILED_ANEW)
operations = _recent = _entries.recent


def _make_tensor(type: TensorType, buffer: Any) -> Tensor:
    raise AssertionError("mycel.tensor puts its constructor here")


def execute(primitive: Primitive, inputs: Sequence[Tensor], params: dict[str, Any]) -> Any:
    """Run a primitive now and return its output: a tensor, or a tuple of tensors."""
    types = tuple([t._type for t in inputs])
    key = (primitive, types, freeze(params)) if params else (primitive, types)
    entry = _recent.get(key)
    if entry is None:
        entry = _recalled(key, primitive, types, params)
    run, result = entry
    for t in inputs:
        if t._buf is None:
            t._need_value(primitive.name)
    try:
        values = run(*[t._buf for t in inputs])
    except MemoryError:
        raise _out_of_memory(primitive, types, params) from None
    if type(result) is tuple:
        if len(result) == 1 and type(values) is not tuple:
            values = (values,)
        return tuple([_make_tensor(t, v) for t, v in zip(result, values)])
    return _make_tensor(result, values)


def _recalled(key: Any, primitive: Primitive, types: tuple[Any, ...], params: dict[str, Any]) -> Entry:
    """Return the kernel of an operation that is not among the recent ones."""
    since = _entries.since
    entry = _entries.recall(key, partial(_build, primitive, types, params))
    if not params and len(types) == 2 and type(entry[1]) is TensorType:
        table = pair_table(primitive)
        table[types] = entry
        if _entries.since is not since:
            table.pop(types, None)
    return entry


def _out_of_memory(primitive: Primitive, types: tuple[Any, ...], params: dict[str, Any]) -> MemoryError:
    inputs = [input_node(t) for t in types]
    out = outputs_of(primitive.node(*inputs, **params))
    return out_of_memory(Graph(inputs, out if isinstance(out, tuple) else (out,), primitive.name))


def pair_table(primitive: Primitive) -> dict[tuple[TensorType, TensorType], Entry]:
    """Return the kernels of a binary primitive by its operands' types, the table that operators
    search first.
    """
    return _pairs.setdefault(primitive, {})


def _build(primitive: Primitive, types: tuple[Any, ...], params: dict[str, Any]) -> Entry:
    try:
        return compile_primitive(primitive, types, params), primitive.type_of(*types, **params)
    except MemoryError as error:
        raise told(error, f"making the program of {primitive.name}")  # noqa: B904


def apply(primitive: Primitive, *inputs: Tensor, **params: Any) -> Tensor:
    """Apply a primitive to tensors in the context in force.

    A primitive of several outputs gives a tuple of tensors.
    """
    if active:
        context = local.context
        if context is not None:
            emitted: Tensor = context.emit(primitive, inputs, params)
            return emitted
    result: Tensor = execute(primitive, inputs, params)
    return result


__all__ += ["buffers"]
