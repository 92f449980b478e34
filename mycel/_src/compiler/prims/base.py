"""The rules that define a primitive, and the registry of all primitives.

A primitive is one record (`ir.graph.Primitive`): how types are inferred, its derivative, its
batching, its definition in simpler primitives, a NumPy reference, and samples for the contract
test. Applying one to nodes gives a node; rules are written in the same applications, so that a
rule's result can be differentiated, batched and compiled again.

    infer(*types, **params)                 -> type, or a tuple of types
    vjp(ct, out, *inputs, **params)         -> one cotangent, or None, for each input
    batch(size, values, axes, **params)     -> (value, axis), or tuples of both
    expand(*inputs, **params)               -> node, or a tuple of nodes
    reference(*arrays, **params)            -> array, or a tuple of arrays

Where there are several outputs, `ct` and `out` are tuples, and each `ct` may be None. axes[i] is
None where value i is not batched.

A record without `vjp` is differentiated, and one without `batch` batched, through `expand`. The
further fields of a record state properties that transformations, engines and reports need, so that
none of them lists primitives by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import Dim, DimLike, is_one, same
from mycel._src.compiler.ir.graph import APPLICATION, CONSTANT_OP, GET_ITEM_OP, Node, Primitive
from mycel._src.compiler.ir.primitive_properties import Cost, Rounding, Sample
from mycel._src.compiler.ir.types import TensorType, tensor_type
from mycel._src.compiler.prims.saved_for_backward import PAIRS
from mycel._src.foundation.dtype import DType, from_any
from mycel._src.foundation.errors import ShapeError

__all__ = [
    "Cost",
    "Literal",
    "Primitive",
    "REGISTRY",
    "Rounding",
    "SERVICES",
    "Sample",
    "broadcast_shapes",
    "constant",
    "freeze",
    "get_item",
    "normalize_axes",
    "normalize_axis",
    "register",
]

Array = np.ndarray[Any, Any]


class Literal:
    """A NumPy array as a hashable, immutable parameter."""

    __slots__ = ("array", "_hash")

    def __init__(self, array: Array) -> None:
        self.array = np.array(array, copy=True, order="C")
        self.array.setflags(write=False)
        self._hash = hash((self.array.dtype.str, self.array.shape, self.array.tobytes()))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Literal)
            and self._hash == other._hash
            and self.array.dtype == other.array.dtype
            and self.array.shape == other.array.shape
            and self.array.tobytes() == other.array.tobytes()
        )

    def __repr__(self) -> str:
        return str(self.array.item()) if self.array.ndim == 0 else f"array{list(self.array.shape)}"


def outputs_of(node: Node) -> Any:
    """Return one node for each output where there are several, else the node itself."""
    if isinstance(node.type, tuple):
        known = getattr(node, "items", None)
        if known is not None:
            return known()
        return tuple(Node(GET_ITEM, (node,), {"index": i}, t, node.where) for i, t in enumerate(node.type))
    return node


def _as_nodes(inputs: Sequence[Any]) -> list[Node]:
    if all(type(i) is Node for i in inputs):
        return list(inputs)
    like = next((i.type.dtype for i in inputs if isinstance(i, Node) and isinstance(i.type, TensorType)), None)
    return [i if isinstance(i, Node) else constant(i, like) for i in inputs]


REGISTRY: dict[str, Primitive] = {}


class Services:
    """Functions of higher layers that the rules of primitives with graphs need.

    Those layers put them here when they load. `differentiate` is `transforms.grad.vjp`,
    `push_forward` is `transforms.jvp.jvp`, `evaluate` that of `engines.reference`, `concrete` and
    `specialize` those of `transforms.specialize`.
    """

    differentiate: Callable[..., list[Node | None]]
    push_forward: Callable[..., tuple[list[Node], list[Node | None]]]
    evaluate: Callable[..., tuple[Any, ...]]
    concrete: Callable[[Any, Mapping[str, int]], Any]
    specialize: Callable[..., Any]


SERVICES = Services()


def register(primitive: Primitive) -> Primitive:
    """Enter a primitive into the registry; its name must be new."""
    if primitive.name in REGISTRY:
        raise ValueError(f"a primitive named {primitive.name!r} exists already")
    REGISTRY[primitive.name] = primitive
    primitive.kept_of_pair = PAIRS.get(primitive.name, primitive.kept_of_pair)
    return primitive


def _find(name: str) -> Primitive:
    return REGISTRY[name]


APPLICATION.operands, APPLICATION.outputs_of, APPLICATION.find = _as_nodes, outputs_of, _find


def freeze(params: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Return parameters as a hashable key."""
    return tuple(sorted(params.items()) if len(params) > 1 else params.items())


# Two primitives of the representation itself.


def _constant_infer(*, value: Literal) -> TensorType:
    return tensor_type(value.array.shape, from_any(value.array.dtype))


CONSTANT: Primitive = register(
    Primitive(
        CONSTANT_OP,
        _constant_infer,
        reference=lambda *, value: value.array,
        vjp=lambda ct, out, **_: (),
        batch=lambda size, values, axes, *, value: (CONSTANT(value=value), None),
        samples=(
            Sample((), {"value": Literal(np.arange(6.0).reshape(2, 3))}),
            Sample((), {"value": Literal(np.int32(4))}),
        ),
        cost=Cost.LIGHT,
        doc="A literal array.",
    )
)


def constant(value: Any, dtype: DType | None = None) -> Node:
    """Return a literal node from a scalar or array."""
    if isinstance(value, Dim):
        from mycel._src.compiler.prims.shape import size_node

        return size_node(value, dtype)
    array = np.asarray(value, dtype=None if dtype is None else dtype.numpy)
    literal = Literal(array)
    return Node(CONSTANT, (), {"value": literal}, _constant_infer(value=literal))


def _get_item_vjp(ct: Node, out: Node, whole: Node, *, index: int) -> Any:
    raise AssertionError("gradients of tuples are gathered by the transform")


GET_ITEM: Primitive = register(
    Primitive(
        GET_ITEM_OP,
        lambda whole, *, index: whole[index],
        reference=lambda whole, *, index: whole[index],
        vjp=_get_item_vjp,
        cost=Cost.LIGHT,
        doc="One of the outputs of a node that has several.",
    )
)


def get_item(whole: Node, index: int) -> Node:
    return Node(GET_ITEM, (whole,), {"index": index}, whole.type[index], whole.where)


# Shape arithmetic that many rules share.


def broadcast_shapes(*shapes: tuple[DimLike, ...], name: str = "") -> tuple[DimLike, ...]:
    """Return the common shape by NumPy's rule.

    Raises ShapeError, with the operation's `name` in front, where there is none.
    """
    if len(shapes) == 2:
        short, long = shapes if len(shapes[0]) < len(shapes[1]) else (shapes[1], shapes[0])
        if all([type(d) is int for d in long]) and (
            not short or short is long or (all([type(d) is int for d in short]) and short == long)
        ):
            return long
    rank = max((len(s) for s in shapes), default=0)
    result: list[DimLike] = []
    for axis in range(-rank, 0):
        size: DimLike = 1
        for s in shapes:
            # Sizes that are one expression fit whatever it is, so that nothing need be known of it.
            if len(s) >= -axis and not is_one(s[axis]) and not same(s[axis], size):
                if not is_one(size) and s[axis] == 1:
                    continue
                if not is_one(size) and size != 1 and s[axis] != size:
                    raise ShapeError(
                        f"{name}{': ' if name else ''}shapes {' and '.join(map(_show, shapes))} do not broadcast: "
                        f"sizes {size} and {s[axis]} at axis {axis} differ and neither is 1"
                    )
                size = s[axis]
        result.append(size)
    return tuple(result)


def _show(shape: Iterable[DimLike]) -> str:
    items = tuple(shape)
    return "(" + ", ".join(map(str, items)) + (",)" if len(items) == 1 else ")")


def normalize_axis(axis: int, rank: int, name: str = "axis") -> int:
    """Return `axis` counted from the front.

    Raises ShapeError, with `name` in front, for an axis outside [-rank, rank).
    """
    if not -rank <= axis < rank:
        raise ShapeError(
            f"{name} {axis} is out of range for a tensor of {rank} dimensions; use a value in [{-rank}, {rank})"
        )
    return axis % rank


def normalize_axes(axes: Any, rank: int) -> tuple[int, ...]:
    """Return `axes` (None for all, an int or a sequence) counted from the front and sorted.

    Raises ShapeError where an axis is out of range or repeated.
    """
    if axes is None:
        return tuple(range(rank))
    if isinstance(axes, (int, np.integer)):
        axes = (int(axes),)
    result = sorted(normalize_axis(int(a), rank) for a in axes)
    if len(set(result)) != len(result):
        raise ShapeError(f"axes {tuple(axes)} name a dimension twice")
    return tuple(result)


def same_dtype(name: str, *types: TensorType) -> DType:
    """Return the common element type of `types`; raise TypeError where they differ."""
    for t in types[1:]:
        if t.dtype is not types[0].dtype:
            raise TypeError(f"{name}: element types {', '.join(x.dtype.name for x in types)} differ; cast one of them")
    return types[0].dtype


def need_kind(name: str, kinds: str, *types: TensorType) -> None:
    """Raise TypeError unless each type's kind is one of the letters in `kinds`."""
    for t in types:
        if t.dtype.kind not in kinds:
            words = {"b": "boolean", "i": "signed integer", "u": "unsigned integer", "f": "floating", "c": "complex"}
            raise TypeError(f"{name} takes {', '.join(words[k] for k in kinds)} tensors, not {t.dtype.name}")


def batch_elementwise(
    primitive: Primitive, size: int, values: Sequence[Node], axes: Sequence[int | None], params: Any
) -> Any:
    """Apply the batch rule of element-wise primitives; return the result and its batch axis, 0.

    `values` are the operands of `primitive`, `params` its parameters. The batch axis of each value,
    in `axes` (None: not batched), moves to the front, and axes of size 1 behind it align the ranks.
    `size` is the number of examples; the rule does not need it.
    """
    from mycel._src.compiler.prims import shape as S

    rank = max((v.type.rank - (a is not None) for v, a in zip(values, axes)), default=0)
    aligned = []
    for v, a in zip(values, axes):
        if a is not None:
            v = S.move_axis(v, a, 0)
            missing = rank - (v.type.rank - 1)
            if missing:
                v = S.reshape(v, (v.shape[0],) + (1,) * missing + tuple(v.shape[1:]))
        aligned.append(v)
    return primitive(*aligned, **params), 0
