"""How one node's work is divided among ranks, and the node that each rank runs.

A division is a `Sharding` whose axes are the numbers of the node's factors. It implies the layout
of each operand and result: a part of a factor is a part of each tensor that has the factor, at the
factor's place. Parts inside of a factor are allowed where the primitive takes any subset of its
indices; one whose `part` rule wants to know where its share starts takes a leading part only.

Padding of an operand must not reach other elements. So where the factor of an uneven part is
combined, the operands that have it get the neutral element in the padding, and where the factor
names values for the padding, as for indices that are checked, they get those.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Graph, Node
from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.ir.source_locations import excerpt
from mycel._src.compiler.ir.types import TensorType, Type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import constant, outputs_of
from mycel._src.compiler.prims.factors import ANYTHING, Factor, Place, factors_of
from mycel._src.compiler.transforms.partition.resharding import first_index
from mycel._src.compiler.transforms.partition.tensor_sharding import (
    WHOLE,
    Part,
    Sharding,
    local_size,
    local_type,
    need_fit,
    part_of,
    view_of,
)
from mycel._src.foundation.bounded_caches import MANY, RememberedOf
from mycel._src.foundation.dtype import DType, int64
from mycel._src.foundation.errors import ShapeError

__all__ = ["allowed", "divisions_of", "factor_part", "factors_at", "implied", "local_outputs", "tensor_part"]

Local = Node | tuple[Node, ...]
_factors = RememberedOf[tuple[Factor, ...]]("factors of nodes", MANY)


def factors_at(node: Node) -> tuple[Factor, ...]:
    """Return the factors of a node, of tensors only, as they were found first."""
    return _factors.of(node, lambda: tuple(factors_of(node)) if _is_tensors(node) else ())


def _is_tensors(node: Node) -> bool:
    types = [*(i.type for i in node.inputs), *result_types(node)]
    return all(isinstance(t, TensorType) for t in types)


def factor_part(part: Part, factors: Sequence[Factor], places: Sequence[Place | None]) -> Part | None:
    """Return a part of a tensor as a part of the factor that has it, or None where none has.

    `places` are those of each of `factors` in the tensor.
    """
    for k, (factor, place) in enumerate(zip(factors, places)):
        if place is None or place.axis != part.axis or part.before % int(place.before):
            continue
        before, size = part.before // int(place.before), int(factor.size)
        if size % (before * part.size) == 0:
            return Part(k, before, part.size, size // (before * part.size), part.mesh_axes, part.count)
    return None


def tensor_part(part: Part, place: Place) -> Part:
    """Return a part of a factor as the part of a tensor that has the factor at `place`."""
    before, after = int(place.before) * part.before, part.after * int(place.after)
    return Part(place.axis, before, part.size, after, part.mesh_axes, part.count)


def result_types(node: Node) -> tuple[Type, ...]:
    return node.type if isinstance(node.type, tuple) else (node.type,)


def allowed(node: Node, factors: Sequence[Factor], part: Part, division: Sharding = WHOLE) -> bool:
    """Return whether a node can be divided by `part` of one of its `factors`.

    `division` is how it is divided already.
    """
    factor = factors[part.axis]
    others = [p for p in division.parts if p.axis == part.axis]
    if not part.is_even and factor.even:
        return False
    if node.prim is not None and node.prim.part is not None:
        # The share must be one stretch, and an uneven one must not overlap the next.
        end = math.prod(p.size for p in others if p.before < part.before)
        if part.before != end or (others and not (part.is_even and all(p.is_even for p in others))):
            return False
    ops = {factors[p.axis].combine for p in (*division.parts, part)} - {""}
    return len(ops) <= 1 and division.fits(part)


def need_division(node: Node, division: Sharding, mesh: Mesh) -> None:
    """Raise ShapeError unless a node can be divided so on `mesh`."""
    factors, done = factors_at(node), WHOLE
    place = f" at {node.where}" if node.where is not None else ""
    what = f"the division of {node.op}{place}"
    need_fit(division, [int(f.size) for f in factors], mesh, what)
    for part in division.parts:
        if not allowed(node, factors, part, done):
            raise ShapeError(
                f"{what}: factor {part.axis} of {factors[part.axis].size} cannot be divided as in {division}; "
                f"possible on this mesh are {', '.join(map(str, divisions_of(node, mesh)))}"
            )
        done = Sharding((*done.parts, part))


def divisions_of(node: Node, mesh: Mesh) -> list[Sharding]:
    """Return the divisions of a node on a mesh: each mesh axis divides one factor, or none.

    The first divides nothing. Factors smaller than the number of ranks are left whole.

    >>> from mycel._src.foundation.dtype import float32
    >>> from mycel._src.compiler.ir.graph import input_node
    >>> from mycel._src.compiler.ir.types import tensor_type
    >>> from mycel._src.compiler.prims import elementwise as E
    >>> x = input_node(tensor_type((4, 6), float32), "x")
    >>> print(*divisions_of(E.exp(x), Mesh((2,), ("x",))), sep=", ")
    whole, 0:x, 1:x
    """
    factors = factors_at(node)
    result: dict[Sharding, None] = {}
    for choice in itertools.product(range(-1, len(factors)), repeat=len(mesh.names)):
        division: Sharding | None = WHOLE
        for k in sorted({c for c in choice if c >= 0}):
            axes = tuple([a for a, c in zip(mesh.names, choice) if c == k])
            size = int(factors[k].size)
            for part in part_of(mesh, k, axes, size) if mesh.count(axes) <= size else ():
                if division is not None and allowed(node, factors, part, division):
                    division = Sharding((*division.parts, part))
                else:
                    division = None
            if mesh.count(axes) > size:
                division = None
        if division is not None:
            result[division] = None
    return list(result)


def implied(node: Node, division: Sharding) -> tuple[list[Sharding], list[Sharding]]:
    """Return the layouts of a node's operands and results under a division.

    What is partial in the division is so in the results, beside what the division itself leaves to
    combine; the operands are given without it.
    """
    if not division.parts:
        results = [Sharding((), division.partial) if division.partial else WHOLE] * len(result_types(node))
        return [WHOLE] * len(node.inputs), results
    factors = factors_at(node)
    divided = [(p, factors[p.axis]) for p in division.parts]
    operands = [_placed([(p, f.operands[k]) for p, f in divided]) for k in range(len(node.inputs))]
    results = []
    for k in range(len(result_types(node))):
        partial = dict(division.partial)
        for p, f in divided:
            if f.results[k] is None and f.combine:
                partial |= {a: f.combine for a in p.mesh_axes}
        placed = _placed([(p, f.results[k]) for p, f in divided])
        results.append(Sharding(placed.parts, tuple(partial.items())) if partial else placed)
    return operands, results


def _placed(found: Sequence[tuple[Part, Place | None]]) -> Sharding:
    parts = tuple([tensor_part(p, place) for p, place in found if place is not None])
    return Sharding(parts) if parts else WHOLE


# The node of a rank.


def local_outputs(node: Node, division: Sharding, operands: Sequence[Node], mesh: Mesh) -> Local:
    """Return what a rank computes of a node: a node, or one for each result.

    `node` is that of the whole graph, `operands` are the rank's, in the layouts that `division`
    implies on `mesh`. Raises ShapeError where a rule of the primitive gives a part of another shape
    than its factors say.
    """
    prim = node.prim
    assert prim is not None
    factors = factors_at(node)
    if not division.parts:
        if all(a is b for a, b in zip(operands, node.inputs)):
            return outputs_of(node)  # type: ignore[no-any-return]
        return outputs_of(Node(prim, tuple(operands), node.params, node.type))  # type: ignore[no-any-return]
    operands = [_guarded(x, k, node, factors, division, mesh) for k, x in enumerate(operands)]
    params = _local_params(node, factors, division)
    if prim.part is not None:
        starts = [_start(k, division, mesh) for k in range(len(factors))]
        made: Local = prim.part(node, tuple(operands), params, tuple(starts))
    else:
        made = outputs_of(prim.node(*operands, **params))
    _, layouts = implied(node, division)
    for one, layout, type in zip(made if isinstance(made, tuple) else (made,), layouts, result_types(node)):
        wanted = local_type(type, layout) if isinstance(type, TensorType) else type
        if one.type != wanted:
            raise ShapeError(f"{prim.name}: a rank's part divided by {division} is {one.type}, but should be {wanted}")
    return made


def _local_params(node: Node, factors: Sequence[Factor], division: Sharding) -> dict[str, Any]:
    params = dict(node.params)
    for k, factor in enumerate(factors):
        size = int(factor.size)
        length = local_size(size, k, division)
        if length == size:
            continue
        for name, index in factor.sizes:
            value = params[name]
            if isinstance(value, tuple):
                params[name] = (*value[:index], value[index] // size * length, *value[index + 1 :])
            else:
                params[name] = value // size * length
    return params


def _start(k: int, division: Sharding, mesh: Mesh) -> Node | None:
    """Return where this rank's share of a factor starts, None where it is whole."""
    total: Node | None = None
    for p in division.parts:
        if p.axis == k:
            stride = p.after if p.is_even else 1
            first = E.mul(first_index(p, mesh), constant(stride, int64)) if stride != 1 else first_index(p, mesh)
            total = first if total is None else E.add(total, first)
    return total


# Padding.


def _neutral(op: str, dtype: DType) -> Any:
    kind = dtype.kind
    if op in ("any", "all"):
        return op == "all"
    if op in ("sum", "prod"):
        return int(op == "prod")
    if kind == "f":
        return -np.inf if op == "max" else np.inf
    if kind == "b":
        return op == "min"
    limits = np.iinfo(dtype.numpy)
    return limits.min if op == "max" else limits.max


def _guarded(x: Node, k: int, node: Node, factors: Sequence[Factor], division: Sharding, mesh: Mesh) -> Node:
    """Return an operand with harmless values in the padding, where what is there would matter."""
    for p in division.parts:
        factor = factors[p.axis]
        place, fill = factor.operands[k], factor.padding[k] if factor.padding else None
        if p.is_even or place is None or fill == ANYTHING:
            continue
        if fill is None:
            if not factor.combine or all(r is not None for r in factor.results):
                continue
            fill = _neutral(factor.combine, x.dtype)
        divided = [(q, factors[q.axis].operands[k]) for q in division.parts]
        x = masked(x, tensor_part(p, place), _placed(divided), fill, mesh)
    return x


def masked(x: Node, part: Part, layout: Sharding, fill: Any, mesh: Mesh) -> Node:
    """Return a local tensor with `fill` in the padding of one part.

    `x` is laid out as `layout` on `mesh`, of which `part` is one.
    """
    before, after = view_of(part, layout)
    own = E.add(S.iota(shape=(part.length,), axis=0, dtype=int64), first_index(part, mesh))
    real = E.lt(own, constant(part.size, int64))
    size = before * part.length * after
    if before * after != 1:
        real = S.reshape(
            S.broadcast_to(S.reshape(real, (1, part.length, 1)), (before, part.length, after)),
            (size,),
        )
    shape = tuple(size if a == part.axis else 1 for a in range(x.type.rank))
    return E.select(S.reshape(real, shape), x, constant(fill, x.dtype))


def check_static(graph: Graph) -> None:
    """Raise ShapeError where a tensor has a symbolic size, with the operation that decides it."""
    for node in (*graph.inputs, *graph.nodes):
        for type in result_types(node):
            if isinstance(type, TensorType) and not type.is_static:
                raise ShapeError(f"partition: {_open_size(node, type)}")


def _open_size(node: Node, type: TensorType) -> str:
    if node.prim is None:
        return (
            f"the input {type} has a symbolic size; graphs are divided for known sizes only, so compile the function "
            "for the sizes at hand"
        )
    where = "" if node.where is None else f"\n{excerpt(node.where)}"
    return (
        f"data decide the size of {type}, which {node.op} gives; ranks can only divide what has known sizes, so keep "
        f"what a mask selects in place, as with `where`, or compute it outside of the divided function{where}"
    )
