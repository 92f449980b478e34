"""Point-to-point messages between groups of ranks that run different graphs, as pipeline stages do.

    messages(*values, *tokens; mesh, sent, received)    (*arrived, token)
    awaiting(x, *tokens)                                x, by a step that waits for tokens

The groups are meshes of the same form. `sent` has, for each of `values`, the mesh that gets it and
a tag; `received` has the mesh, the tag and the type of what arrives. A rank's partner is the one at
its place in the other mesh. Values are sent first, which waits for nobody, and then the arrivals
are awaited. Tokens are scalars whose values do not matter: the step waits for those it has as
operands, and gives one to those that are to come after it. So an order of messages is an order of
values, which every engine keeps.

The derivative of what arrives goes back to where it came from, and that of what was sent is awaited
from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import DimLike
from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.ir.types import TensorType, tensor_type
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import Primitive, Rounding, Sample, constant, register
from mycel._src.compiler.transport.current_transport import transport
from mycel._src.foundation.dtype import DType, float64, int32
from mycel._src.foundation.errors import ShapeError

__all__ = ["FIRST_TAG", "Arrival", "awaiting", "messages"]

Sent = tuple[tuple[Mesh, int], ...]
Arrival = tuple[Mesh, int, tuple[int, ...], DType]
FIRST_TAG = 1 << 21  # tags of collectives are below
_TOKEN = tensor_type((), int32)


def _infer(*operands: TensorType, mesh: Mesh, sent: Sent, received: tuple[Arrival, ...]) -> tuple[TensorType, ...]:
    for other in [s[0] for s in sent] + [r[0] for r in received]:
        if other.size != mesh.size:
            raise ShapeError(f"messages: {mesh.size} ranks have no partners among {other.size}")
    if len(operands) < len(sent) or any(t.shape != () for t in operands[len(sent) :]):
        raise ShapeError(f"messages: {len(sent)} values and tokens of one element are needed, not {operands}")
    return (*[tensor_type(shape, dtype) for _, _, shape, dtype in received], _TOKEN)


def _reference(*arrays: Any, mesh: Mesh, sent: Sent, received: tuple[Arrival, ...]) -> tuple[Any, ...]:
    way = transport()
    own = mesh.devices.index(way.rank)
    for array, (other, tag) in zip(arrays, sent):
        way.send(array, other.devices[own], tag)
    found = []
    for other, tag, shape, dtype in received:
        part = way.receive(other.devices[own], tag)
        if part.shape != shape or part.dtype != dtype.numpy:
            raise ShapeError(
                f"messages: {part.dtype.name} {part.shape} came from rank {other.devices[own]}, where {dtype.name} "
                f"{shape} is awaited; both stages must say the same"
            )
        found.append(part)
    return (*found, np.zeros((), np.int32))


def _vjp(
    cts: Sequence[Node | None],
    out: Any,
    *operands: Node,
    mesh: Mesh,
    sent: Sent,
    received: tuple[Arrival, ...],
) -> list[Node | None]:
    back = []
    for ct, (_, _, shape, dtype) in zip(cts, received):
        back.append(S.broadcast_to(constant(0, dtype), shape=shape) if ct is None else ct)
    awaited = tuple([(m, tag, tuple(x.shape), x.dtype) for x, (m, tag) in zip(operands, sent)])
    made = messages.outputs(*back, mesh=mesh, sent=tuple([(m, tag) for m, tag, _, _ in received]), received=awaited)
    return [*made[: len(sent)], *[None] * (len(operands) - len(sent))]


def _batch(
    size: DimLike,
    values: Sequence[Node],
    axes: Sequence[int | None],
    *,
    mesh: Mesh,
    sent: Sent,
    received: tuple[Arrival, ...],
) -> Any:
    count = len(sent)
    if any(a is not None for a in axes[count:]):
        raise ShapeError("messages: a token cannot be one of a batch")
    whole = []
    for x, axis in zip(values[:count], axes):
        wide = S.broadcast_to(x, shape=(size, *x.shape)) if axis is None else S.move_axis(x, axis, 0)
        whole.append(wide)
    wider = tuple([(m, tag, (int(size), *shape), dtype) for m, tag, shape, dtype in received])
    made = messages.outputs(*whole, *values[count:], mesh=mesh, sent=sent, received=wider)
    return made, (*[0] * len(received), None)


_ONE = Mesh((1,), ("x",))

messages: Primitive = register(
    Primitive(
        "messages",
        _infer,
        _reference,
        _vjp,
        _batch,
        samples=(Sample(((2, 3),), {"mesh": _ONE, "sent": ((_ONE, 1),), "received": ((_ONE, 1, (2, 3), float64),)}),),
        dtypes=("float64",),
        effect=True,
        exchanges=True,
        doc="Values sent to partners in other groups of ranks, and those that arrive from them, with a token.",
    )
)


def _awaiting_infer(x: TensorType, *tokens: TensorType) -> TensorType:
    if any(t.shape != () for t in tokens):
        raise ShapeError(f"awaiting: tokens must be one element each, not {', '.join(map(str, tokens))}")
    return x


def _awaiting_batch(size: DimLike, values: Sequence[Node], axes: Sequence[int | None]) -> Any:
    x, *tokens = values
    one = [t if a is None else S.reshape(S.slice_axis(t, 0, 0, 1), ()) for t, a in zip(tokens, axes[1:])]
    return awaiting(x, *one), axes[0]


awaiting: Primitive = register(
    Primitive(
        "awaiting",
        _awaiting_infer,
        lambda x, *tokens: np.array(x, copy=True),
        lambda ct, out, x, *tokens: (ct, *[None] * len(tokens)),
        _awaiting_batch,
        samples=(Sample(((3,), ())), Sample(((2,), (), ()))),
        dtypes=("float64", "float32", "int32", "bool"),
        rounding=Rounding.EXACT,
        effect=True,
        doc="The first operand, from a step that runs when the others are there.",
    )
)
