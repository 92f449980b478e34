"""The rules of ONNX operators: their interface, their values, and what all rules share.

A value is a tensor; a *known* value, an array of NumPy (sizes, constants, strings, types of less
than a byte), whose content rules may read while a function is staged; a list of values (a
sequence); or None (an optional that holds nothing, or an input that was left out). An array of
sizes of which some are symbols has elements of type object.

A rule is a function ``(op, *values)``, entered by `rule` under its operator, for the newest version
of the operator: `opset_versions.modernized` brings older nodes into that form. By default its known
values are made tensors before it is called; `known` names the inputs that it wants as arrays
instead, and `raw` leaves all as they are. Where all values are known a rule of `host` computes in
NumPy; without one the rule itself runs at once, also while a function is staged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from mycel._src.compiler.ir.dims import Dim
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import Primitive
from mycel._src.foundation import dtype as D
from mycel._src.foundation.dtype import DType, from_any
from mycel._src.foundation.errors import Unsupported
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.execution_context import Context
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.formats.onnx import messages
from mycel.formats.onnx.tensors import TYPES

__all__ = [
    "HOST",
    "RULES",
    "Operation",
    "Rule",
    "apply",
    "array",
    "as_type",
    "broadcast",
    "host",
    "is_text",
    "known_of",
    "kind_of",
    "moved",
    "number",
    "pad",
    "reshaped",
    "rule",
    "run_rule",
    "same",
    "scalar",
    "shape_of",
    "shape_values",
    "sliced",
    "staged",
    "tensor",
    "transposed",
]

Array = np.ndarray[Any, Any]
Value = Any
apply = eager.apply
MOST_BYTES = 1 << 31


@dataclass
class Operation:
    """A node in the form that rules read.

    `bodies` are the graphs among its attributes, as functions of lists of values to lists of
    values, and are set where the node runs; `results` are the outputs that they declare. `count` is
    the number of outputs up to the last that is wanted.
    """

    domain: str
    operator: str
    name: str
    version: int
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, Any]
    bodies: dict[str, Callable[[Sequence[Value]], list[Value]]] = field(default_factory=dict)
    results: dict[str, list[messages.Value]] = field(default_factory=dict)

    def get(self, name: str, default: Any = None) -> Any:
        """Return an attribute, or the default where the node has none of that name."""
        return self.attributes.get(name, default)

    @property
    def count(self) -> int:
        """How many outputs the node has."""
        return len(self.outputs)

    @property
    def label(self) -> str:
        """The node in words, for errors."""
        domain = f"{self.domain}." if self.domain else ""
        return f"ONNX: {domain}{self.operator} (version {self.version}), node {self.name or self.outputs[0]!r}"

    def refused(self, what: str) -> Unsupported:
        """Return the error for what is not supported of this operator."""
        return Unsupported(f"{self.label}: {what}")

    def wrong(self, what: str) -> ValueError:
        """Return the error for values that contradict the operator."""
        return ValueError(f"{self.label}: {what}")


class Rule(NamedTuple):
    """A rule with what it wants of its inputs."""

    function: Callable[..., Any]
    known: tuple[int, ...]
    raw: bool
    folds: bool


RULES: dict[tuple[str, str], Rule] = {}
HOST: dict[str, Callable[..., Any]] = {}


def rule(
    *operators: str, known: Iterable[int] = (), raw: bool = False, folds: bool = True, domain: str = ""
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a function as the rule of operators of a domain.

    `known`, `raw` and `folds` are described above; a rule that does not fold runs at every call,
    as random numbers do.
    """

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        for operator in operators:
            RULES[domain, operator] = Rule(function, tuple(known), raw, folds and not raw)
        return function

    return enter


def host(*operators: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a function of arrays as what computes operators of known values."""

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        for operator in operators:
            HOST[operator] = function
        return function

    return enter


def run_rule(made: Rule, op: Operation, values: Sequence[Value]) -> list[Value]:
    """Apply an operator to values, and return those of its outputs."""
    if made.folds and all(v is None or isinstance(v, np.ndarray) for v in values):
        if not op.domain and op.operator in HOST:
            found = HOST[op.operator](op, *values)
            if found is not NotImplemented:
                return _listed(found)
        if not any(v is not None and is_text(v) and v.size for v in values) and not any(
            v is not None and is_symbolic(v) for v in values
        ):
            with eager.use_context(_AtOnce()):
                return [_as_known(v) for v in _listed(_applied(made, op, values))]
    return _listed(_applied(made, op, values))


class _AtOnce(Context):
    """A context in which operations on known values are computed by NumPy, without programs."""

    does = "computes known values"

    def emit(self, primitive: Primitive, inputs: Sequence[Tensor], params: dict[str, Any]) -> Any:
        if primitive.reference is None:
            return eager.execute(primitive, inputs, params)
        wanted = primitive.type_of(*[t._type for t in inputs], **params)
        with np.errstate(all="ignore"):
            found = primitive.reference(*[t.asnumpy() for t in inputs], **params)
        if type(wanted) is tuple:
            return tuple([Tensor.from_numpy(np.array(v, t.dtype.numpy)) for v, t in zip(found, wanted)])
        return Tensor.from_numpy(np.array(found, wanted.dtype.numpy))


def _applied(made: Rule, op: Operation, values: Sequence[Value]) -> Any:
    if made.raw:
        return made.function(op, *values)
    given = [
        (known_of(v, op, i) if v is not None else None) if i in made.known else tensor(v) for i, v in enumerate(values)
    ]
    return made.function(op, *given)


def _listed(found: Any) -> list[Value]:
    several = list(found) if type(found) is tuple else [found]
    return [np.asarray(v) if isinstance(v, np.generic) else v for v in several]


def _as_known(value: Value) -> Value:
    return value.asnumpy() if isinstance(value, Tensor) else value


# Values.


def staged() -> bool:
    """Return whether a function is being staged, so that tensors have no values."""
    return bool(eager.active) and eager.local.staging is not None


def is_text(value: Value) -> bool:
    """Return whether a value is an array of strings."""
    if not isinstance(value, np.ndarray) or value.dtype.kind != "O":
        return False
    return not value.size or isinstance(value.flat[0], str)


def is_symbolic(value: Array) -> bool:
    """Return whether a known value has sizes that are symbols."""
    return value.dtype.kind == "O" and not is_text(value)


def tensor(value: Value) -> Value:
    """Return a known value as a tensor; other values are returned as they are."""
    if not isinstance(value, np.ndarray):
        return value
    if value.dtype.kind == "O":
        if is_text(value):
            raise Unsupported("ONNX: strings have no form as a tensor; they are arrays of NumPy")
        parts = [_size(d) for d in value.reshape(-1)]
        return apply(S.RESHAPE, apply(S.CONCAT, *parts, axis=0), shape=value.shape)
    if value.dtype not in _TENSOR_TYPES:
        raise Unsupported(f"ONNX: elements of type {value.dtype} have no form as a tensor here")
    staging = eager.local.staging if eager.active else None
    return staging.literal(value) if staging is not None else Tensor.from_numpy(value)


def _size(d: Any) -> Tensor:
    if isinstance(d, Dim):
        return apply(S.RESHAPE, apply(S.SIZE, dim=d, dtype=D.int64), shape=(1,))
    found: Tensor = tensor(np.array([d], np.int64))
    return found


_TENSOR_TYPES = {
    np.dtype(from_any(name).numpy)
    for name in "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64".split()
} | {np.dtype(d.numpy) for d in (D.complex64, D.complex128, D.float8_e4m3fn, D.float8_e5m2)}


def has_tensor(kind: Any) -> bool:
    """Return whether tensors have the element type of NumPy."""
    return np.dtype(kind) in _TENSOR_TYPES


def known_of(value: Value, op: Operation, position: int) -> Array:
    """Return the content of an input that decides what an operator does.

    A tensor is asked for its value, which while a function is staged ends the graph.
    """
    if isinstance(value, np.ndarray):
        return value
    if not isinstance(value, Tensor):
        raise op.wrong(f"input {position} is a {type(value).__name__}, not a tensor")
    return value.asnumpy()


def array(value: Value) -> Array:
    """Return the content of a value as an array."""
    return value if isinstance(value, np.ndarray) else np.asarray(value.asnumpy())


def number(value: Array) -> Any:
    """Return the one number in a known value: an int, a float, or a symbolic size."""
    item = value.reshape(-1)[0]
    return item.item() if isinstance(item, np.generic) else item


def shape_values(value: Array) -> list[Any]:
    """Return the numbers in a known value: ints, floats or symbolic sizes."""
    return [v.item() if isinstance(v, np.generic) else v for v in value.reshape(-1)]


def shape_of(value: Value) -> tuple[Any, ...]:
    """Return the shape of a value."""
    return tuple(value.shape)


def kind_of(code: int, op: Operation) -> Any:
    """Return the element type of NumPy for a number in an attribute."""
    if code not in TYPES:
        raise op.refused(f"the element type {code} is unknown; those known are {sorted(TYPES)}")
    return TYPES[code]


# Small tensors and movements.


def scalar(value: Any, like: Tensor) -> Tensor:
    """Return a number as a tensor of the element type of another."""
    found: Tensor = tensor(np.asarray(value, like.dtype.numpy))
    return found


def same(value: Any, kind: DType) -> Tensor:
    """Return a number as a tensor of an element type."""
    found: Tensor = tensor(np.asarray(value, kind.numpy))
    return found


def as_type(x: Tensor, kind: DType | Any) -> Tensor:
    """Return a tensor with another element type."""
    kind = kind if isinstance(kind, DType) else from_any(kind)
    return x if x.dtype is kind else cast(x, kind)


def reshaped(x: Tensor, shape: Iterable[Any]) -> Tensor:
    """Return a tensor with another shape."""
    shape = tuple(shape)
    return x if tuple(x.shape) == shape else apply(S.RESHAPE, x, shape=shape)


def transposed(x: Tensor, order: Iterable[int]) -> Tensor:
    """Return a tensor with its axes in another order."""
    order = tuple(order)
    return x if order == tuple(range(len(order))) else apply(S.TRANSPOSE, x, permutation=order)


def moved(x: Tensor, source: int, target: int) -> Tensor:
    """Return a tensor with one axis at another place."""
    order = [i for i in range(x.ndim) if i != source % x.ndim]
    order.insert(target % x.ndim, source % x.ndim)
    return transposed(x, order)


def broadcast(x: Tensor, shape: Iterable[Any]) -> Tensor:
    """Return a tensor repeated to a shape, by NumPy's rule."""
    shape = tuple(shape)
    return x if tuple(x.shape) == shape else apply(S.BROADCAST_TO, x, shape=shape)


def sliced(x: Tensor, axis: int, start: Any, stop: Any, step: int = 1) -> Tensor:
    """Return the entries `start` to below `stop` of an `axis` of `x`, every `step`-th of them."""
    axis %= x.ndim
    shape = x.shape
    return apply(
        S.SLICE,
        x,
        starts=tuple(start if i == axis else 0 for i in range(x.ndim)),
        stops=tuple(stop if i == axis else n for i, n in enumerate(shape)),
        steps=tuple(step if i == axis else 1 for i in range(x.ndim)),
    )


def pad(x: Tensor, low: Sequence[Any], high: Sequence[Any], value: Any = 0) -> Tensor:
    """Return `x` with `low` and `high` entries of `value` around it; negative amounts cut off."""
    if all(isinstance(p, int) and p == 0 for p in (*low, *high)):
        return x
    fill = value if isinstance(value, Tensor) else scalar(value, x)
    return apply(S.PAD, x, fill, low=tuple(low), high=tuple(high), interior=(0,) * x.ndim)


def select(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Return `x` where the condition holds, and `y` elsewhere."""
    return apply(E.SELECT, condition, x, y)


def optional(values: Sequence[Value], position: int) -> Value | None:
    """Return an input that may be left out."""
    return values[position] if position < len(values) else None
