"""Rewrites a graph of complex numbers as one of pairs of real numbers.

Inside the result a complex value is a pair of real nodes. At the boundary, and where control flow
passes it on, it is one array whose last axis holds the two parts; this is the memory layout of a
complex array, so callers need no conversion. Functions become formulas of the parts (`FORMULAS`),
operations that only move or add elements are applied to both parts, and nested graphs are
transformed in the same way. All other operations, and what a formula leaves alone (None), compute
with complex arrays in the reference engine (`on_complex`).

A graph without complex values is returned as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Graph, Node, at, input_node
from mycel._src.compiler.ir.types import TensorType, tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import CONSTANT, GET_ITEM, REGISTRY, Primitive, constant, outputs_of, register
from mycel._src.compiler.prims.complex import angle, complex_, imag, modulus, part_of, real
from mycel._src.compiler.prims.control_flow.recursion import recur, recursion
from mycel._src.compiler.prims.distributed.collectives import COLLECTIVES
from mycel._src.compiler.prims.fourier import fourier, fourier_from_half, fourier_half
from mycel._src.compiler.prims.matrix_product import matmul
from mycel._src.compiler.transforms import fourier_factorisation
from mycel._src.compiler.transforms.fourier_factorisation import Parts as Pair
from mycel._src.compiler.transforms.fourier_factorisation import joined, split
from mycel._src.compiler.transforms.graph_rewriting import holds_graphs
from mycel._src.foundation.errors import Unsupported

__all__ = ["complex_pairs"]


Value = Node | Pair


def complex_pairs(graph: Graph) -> Graph:
    """Return the graph with every complex value replaced by two real ones."""
    return _Walk({}).graph(graph)


def _is_complex(kind: Any) -> bool:
    if isinstance(kind, tuple):
        return any(_is_complex(k) for k in kind)
    return isinstance(kind, TensorType) and kind.dtype.is_complex


def _paired(kind: Any) -> Any:
    if isinstance(kind, tuple):
        return tuple(_paired(k) for k in kind)
    return tensor_type((*kind.shape, 2), part_of(kind.dtype)) if _is_complex(kind) else kind


def _joined(value: Value) -> Node:
    return value if isinstance(value, Node) else joined(*value)


class _Walk:
    def __init__(self, done: dict[Graph, Graph]) -> None:
        self.done = done

    def graph(self, graph: Graph) -> Graph:
        found = self.done.get(graph)
        if found is not None:
            return found
        if not any(_touches(node) for node in graph.nodes):
            self.done[graph] = graph
            return graph
        image: dict[Node, Any] = {}
        inputs = []
        for node in graph.inputs:
            new = input_node(_paired(node.type)) if _is_complex(node.type) else node
            inputs.append(new)
            image[node] = split(new) if new is not node else node
        for node in graph.nodes:
            if node not in image:
                with at(node.where):
                    image[node] = self.visit(node, [image[i] for i in node.inputs])
        result = Graph(inputs, [_joined(image[o]) for o in graph.outputs], graph.name)
        self.done[graph] = result
        return result

    def visit(self, node: Node, values: Sequence[Any]) -> Any:
        """Return the value of a node; a tuple of values where it has several outputs."""
        prim = node.prim
        assert prim is not None
        if prim is GET_ITEM:
            whole = values[0]
            return whole[node.params["index"]] if isinstance(whole, tuple) and not isinstance(whole, Pair) else node
        nested = any(holds_graphs(v) for v in node.params.values())
        if not nested and not _is_complex(node.type) and not any(isinstance(v, Pair) for v in values):
            if all(a is b for a, b in zip(values, node.inputs)):
                return outputs_of(node)
            return outputs_of(Node(prim, tuple(values), node.params, node.type, node.where))
        if nested:
            return self.nested(node, values)
        if prim.linear and node.params.get("mode", "add") in ("add", "set"):
            return Pair(*[prim(*[v[k] if isinstance(v, Pair) else v for v in values], **node.params) for k in (0, 1)])
        formula = FORMULAS.get(prim)
        made = None if formula is None else formula(node, *values)
        if made is None:
            formula = None
            types = tuple(isinstance(v, Pair) for v in values), _paired(node.type)
            made = outputs_of(_ON_COMPLEX.node(*map(_joined, values), of=prim.name, params=_frozen(node), types=types))
        if isinstance(node.type, tuple):
            return tuple(split(m) if _is_complex(t) else m for m, t in zip(made, node.type))
        if _is_complex(node.type):
            pair = made if isinstance(made, Pair) else split(made)
            return Pair(*[S.broadcast_to(p, node.shape) for p in pair])
        return made if formula is None else S.broadcast_to(made, node.shape)

    def nested(self, node: Node, values: Sequence[Any]) -> Any:
        if node.prim in (recursion, recur) and (_is_complex(node.type) or any(isinstance(v, Pair) for v in values)):
            raise Unsupported(
                "recursion by a tensor's value does not carry complex numbers; pass real and imaginary parts"
            )
        params = {name: self.parameter(value) for name, value in node.params.items()}
        made = outputs_of(Node(node.prim, tuple(map(_joined, values)), params, _paired(node.type), node.where))
        if not isinstance(node.type, tuple):
            return split(made) if _is_complex(node.type) else made
        return tuple(split(m) if _is_complex(t) else m for m, t in zip(made, node.type))

    def parameter(self, value: Any) -> Any:
        if isinstance(value, Graph):
            return self.graph(value)
        return tuple(map(self.parameter, value)) if type(value) is tuple else value


def _touches(node: Node) -> bool:
    """Return whether a node, or a graph in its parameters, has complex values."""
    if _is_complex(node.type) or any(_is_complex(i.type) for i in node.inputs):
        return True
    return any(_touches(n) for v in node.params.values() for g in _graphs(v) for n in g.nodes)


def _graphs(value: Any) -> list[Graph]:
    if isinstance(value, Graph):
        return [value]
    return [g for v in value for g in _graphs(v)] if type(value) is tuple else []


# What has no formula: one step with complex arrays.


def _frozen(node: Node) -> tuple[Any, ...]:
    return tuple(sorted(node.params.items()))


def _on_complex_reference(*arrays: Any, of: str, params: Any, types: Any) -> Any:
    primitive = REGISTRY[of]
    inputs = [_whole(a, k) for a, k in zip(arrays, types[0])]
    assert primitive.reference is not None
    made = primitive.reference(*inputs, **dict(params))
    return tuple(map(_parts, made)) if isinstance(made, tuple) else _parts(made)


def _whole(array: Any, kind: Any) -> Any:
    if not kind:
        return array
    return np.ascontiguousarray(array).view(np.result_type(array.dtype, np.complex64)).reshape(array.shape[:-1])


def _parts(array: Any) -> Any:
    if array.dtype.kind != "c":
        return array
    return np.stack([array.real, array.imag], -1)


_ON_COMPLEX: Primitive = register(
    Primitive(
        "on_complex",
        lambda *kinds, of, params, types: types[1],
        _on_complex_reference,
        doc="A primitive applied to arrays whose last axis holds the parts of complex numbers.",
    )
)


# Formulas.


def _modulus(z: Pair) -> Node:
    return modulus(*z)


def _times(a: Pair, b: Pair) -> Pair:
    return Pair(E.sub(E.mul(a.re, b.re), E.mul(a.im, b.im)), E.add(E.mul(a.re, b.im), E.mul(a.im, b.re)))


def _scaled(a: Pair, by: float) -> Pair:
    return Pair(E.mul(a.re, by), E.mul(a.im, by))


def _plus(a: Pair, by: float) -> Pair:
    return Pair(E.add(a.re, by), a.im)


def _by_i(a: Pair) -> Pair:
    return Pair(E.neg(a.im), a.re)


def _divided(a: Pair, b: Pair) -> Pair:
    # Scaled by the larger part of the divisor, so that squares do not overflow.
    largest = E.maximum(E.abs_(b.re), E.abs_(b.im))
    scale = E.select(E.eq(largest, 0), 1, largest)
    c, d = E.div(b.re, scale), E.div(b.im, scale)
    size = E.mul(E.add(E.mul(c, c), E.mul(d, d)), scale)
    return Pair(E.div(E.add(E.mul(a.re, c), E.mul(a.im, d)), size), E.div(E.sub(E.mul(a.im, c), E.mul(a.re, d)), size))


def _one(like: Pair) -> Pair:
    return Pair(S.full(like.re.shape, 1, like.re.dtype), S.full(like.re.shape, 0, like.re.dtype))


def _exp(z: Pair) -> Pair:
    size = E.exp(z.re)
    real = E.eq(z.im, 0)
    return Pair(E.mul(size, E.cos(z.im)), E.select(real, z.im, E.mul(size, E.sin(z.im))))


def _log(z: Pair) -> Pair:
    return Pair(E.log(_modulus(z)), angle(*z))


def _sqrt(z: Pair) -> Pair:
    root = E.sqrt(E.mul(E.add(E.mul(E.abs_(z.re), 0.5), E.mul(_modulus(z), 0.5)), 1.0))
    zero = E.eq(root, 0)
    other = E.div(z.im, E.mul(E.select(zero, 1, root), 2))
    right = E.ge(z.re, 0)
    below = E.logical_or(E.lt(z.im, 0), E.lt(E.div(1, z.im), 0))
    signed = E.select(below, E.neg(root), root)
    return Pair(E.select(right, root, E.abs_(other)), E.select(right, E.select(zero, z.im, other), signed))


def _log1p(z: Pair) -> Pair:
    return _log(_plus(z, 1.0))


def _sinh(z: Pair) -> Pair:
    return Pair(E.mul(E.sinh(z.re), E.cos(z.im)), E.mul(E.cosh(z.re), E.sin(z.im)))


def _cosh(z: Pair) -> Pair:
    return Pair(E.mul(E.cosh(z.re), E.cos(z.im)), E.mul(E.sinh(z.re), E.sin(z.im)))


def _tanh(z: Pair) -> Pair:
    h, t = E.tanh(z.re), E.tan(z.im)
    hh, tt = E.mul(h, h), E.mul(t, t)
    size = E.add(E.mul(hh, tt), 1)
    return Pair(E.div(E.mul(h, E.add(tt, 1)), size), E.div(E.mul(t, E.sub(1, hh)), size))


def _asinh(z: Pair) -> Pair:
    # log(z + sqrt(z^2 + 1)) loses its digits on the left, where the function is minus that of -z.
    left = E.lt(z.re, 0)
    w = Pair(E.select(left, E.neg(z.re), z.re), E.select(left, E.neg(z.im), z.im))
    root = _sqrt(_plus(_times(w, w), 1.0))
    found = _log(Pair(E.add(w.re, root.re), E.add(w.im, root.im)))
    return Pair(E.select(left, E.neg(found.re), found.re), E.select(left, E.neg(found.im), found.im))


def _acosh(z: Pair) -> Pair:
    root = _times(_sqrt(_plus(z, 1.0)), _sqrt(_plus(z, -1.0)))
    return _log(Pair(E.add(z.re, root.re), E.add(z.im, root.im)))


def _atanh(z: Pair) -> Pair:
    above, below = _log(_plus(z, 1.0)), _log(Pair(E.sub(1, z.re), E.neg(z.im)))
    return Pair(E.mul(E.sub(above.re, below.re), 0.5), E.mul(E.sub(above.im, below.im), 0.5))


def _turned(function: Callable[[Pair], Pair]) -> Callable[[Pair], Pair]:
    """Return a trigonometric function made of its hyperbolic one: -i f(i z)."""

    def run(z: Pair) -> Pair:
        found = function(_by_i(z))
        return Pair(found.im, E.neg(found.re))

    return run


def _acos(z: Pair) -> Pair:
    found = _turned(_asinh)(z)
    return Pair(E.sub(math.pi / 2, found.re), E.neg(found.im))


def _power(node: Node, x: Pair, y: Pair) -> Pair:
    exponent = node.inputs[1]
    if exponent.is_constant and exponent.type.rank == 0:
        value = complex(exponent.value)
        if value.imag == 0 and value.real == int(value.real) and abs(value.real) <= 8:
            result, times = _one(x), abs(int(value.real))
            for k in range(times):
                result = x if k == 0 else _times(result, x)
            return result if value.real >= 0 else _divided(_one(x), result)
    found = _exp(_times(y, _log(x)))
    zero = E.logical_and(E.eq(x.re, 0), E.eq(x.im, 0))
    none = E.logical_and(E.eq(y.re, 0), E.eq(y.im, 0))
    return Pair(E.select(zero, E.cast(none, dtype=x.re.dtype), found.re), E.select(zero, 0, found.im))


def _cast(node: Node, value: Value) -> Value:
    to = node.params["dtype"]
    if isinstance(value, Node):
        part = E.cast(value, dtype=part_of(to))
        return Pair(part, S.zeros_like(part))
    if to.is_complex:
        return Pair(*[E.cast(p, dtype=part_of(to)) for p in value])
    if to.kind == "b":
        return E.logical_or(E.ne(value.re, 0), E.ne(value.im, 0))
    return E.cast(value.re, dtype=to)


def _constant(node: Node) -> Pair:
    return Pair(*[constant(p, part_of(node.dtype)) for p in (node.value.real, node.value.imag)])


def _matmul(a: Pair, b: Pair) -> Pair:
    return Pair(
        E.sub(matmul(a.re, b.re), matmul(a.im, b.im)),
        E.add(matmul(a.re, b.im), matmul(a.im, b.re)),
    )


def _either(function: Callable[[Node], Node]) -> Callable[[Pair], Node]:
    return lambda z: E.logical_or(function(z.re), function(z.im))


_PLAIN: Mapping[Primitive, Callable[..., Any]] = {
    complex_: lambda re, im: Pair(re, im),
    real: lambda z: z.re,
    imag: lambda z: z.im,
    E.mul: _times,
    E.div: _divided,
    matmul: _matmul,
    E.eq: lambda a, b: E.logical_and(E.eq(a.re, b.re), E.eq(a.im, b.im)),
    E.ne: lambda a, b: E.logical_or(E.ne(a.re, b.re), E.ne(a.im, b.im)),
    E.is_nan: _either(E.is_nan),
    E.is_inf: _either(E.is_inf),
    E.is_finite: lambda z: E.logical_and(E.is_finite(z.re), E.is_finite(z.im)),
    E.exp: _exp,
    E.exp2: lambda z: _exp(_scaled(z, math.log(2))),
    E.expm1: lambda z: _plus(_exp(z), -1.0),
    E.log: _log,
    E.log2: lambda z: _scaled(_log(z), 1 / math.log(2)),
    E.log10: lambda z: _scaled(_log(z), 1 / math.log(10)),
    E.log1p: _log1p,
    E.sqrt: _sqrt,
    E.rsqrt: lambda z: _divided(_one(z), _sqrt(z)),
    E.sigmoid: lambda z: _divided(_one(z), _plus(_exp(Pair(E.neg(z.re), E.neg(z.im))), 1.0)),
    E.sinh: _sinh,
    E.cosh: _cosh,
    E.tanh: _tanh,
    E.asinh: _asinh,
    E.acosh: _acosh,
    E.atanh: _atanh,
    E.sin: _turned(_sinh),
    E.tan: _turned(_tanh),
    E.asin: _turned(_asinh),
    E.atan: _turned(_atanh),
    E.acos: _acos,
    E.cos: lambda z: _cosh(_by_i(z)),
}


def _fourier(node: Node, z: Pair) -> Any:
    axes, inverse, factor = node.params["axes"], node.params["inverse"], node.params.get("factor", 1.0)
    return fourier_factorisation.whole(*z, axes, inverse, factor)


def _fourier_half(node: Node, x: Node) -> Any:
    return fourier_factorisation.half(x, node.params["axes"], node.params.get("factor", 1.0))


def _fourier_from_half(node: Node, z: Pair) -> Any:
    return fourier_factorisation.from_half(*z, node.params["axes"], node.params["size"], node.params.get("factor", 1.0))


def _moved(node: Node, z: Pair) -> Any:
    """Return what a collective moves or adds: both parts in one message."""
    if node.params.get("op", "sum") != "sum":
        return None
    assert node.prim is not None
    return split(node.prim(joined(*z), **node.params))


def _of_values(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda node, *values: function(*values)


FORMULAS: dict[Primitive, Callable[..., Any]] = {
    **{primitive: _of_values(function) for primitive, function in _PLAIN.items()},
    E.pow_: _power,
    E.cast: _cast,
    CONSTANT: _constant,
    fourier: _fourier,
    fourier_half: _fourier_half,
    fourier_from_half: _fourier_from_half,
    **dict.fromkeys(COLLECTIVES, _moved),
}
