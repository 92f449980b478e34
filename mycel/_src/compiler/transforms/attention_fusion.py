"""Attention fusion: pattern matching of attention that programs write from simpler operations.

    matmul(dropout(softmax(select(drop, fill, scale * matmul(q, k^T) + bias))), v)

becomes one application of the primitive `attention`. Scale, biases, masks and dropout may each be
missing, and axes in front may be joined or split on the way (as for batched products of three
dimensions). Masks that compare positions become a band, and of a mask that a generator draws
element by element only the generator's state is left. Scores and weights must be used nowhere
else, since they are not computed any more.

This is done before differentiation, so that the derivative is that of the primitive, and again when
a graph is compiled. 16-bit floats are left as they are, since operations one by one round them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from mycel._src.compiler.ir.dims import DimLike, is_one, product, same
from mycel._src.compiler.ir.graph import Graph, Node, at, substitute
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import Primitive, broadcast_shapes
from mycel._src.compiler.prims.elementwise import SELECT
from mycel._src.compiler.prims.matrix_product import matmul, swap_last
from mycel._src.compiler.prims.neural.attention import attention, attention_grad
from mycel._src.compiler.prims.neural.normalization import softmax
from mycel._src.compiler.prims.random import random_bits
from mycel._src.compiler.transforms.graph_rewriting import Visit, rewrite, use_counts
from mycel._src.compiler.transforms.optimisation.rewrite_rules import uniform
from mycel._src.foundation import dtype as D

__all__ = ["Found", "attention_of", "pays_to_differentiate", "with_attention"]

# Heads of more features are left to products of matrices.
MOST_FEATURES = 256
MOST_STEPS = 12
# From so many keys on the derivative computes weights again instead of reading them. With fewer
# it does where heads have up to so many features: products are a small part of the work then, and
# masks that differ between queries cost passes over the scores.
FEW = 256
NARROW, NARROW_IF_MASKED, NARROW_IN_BAND = 32, 128, 64
# So few queries or keys of a mask leave much of a kernel's lanes empty.
FEWEST = 24
# Adding so low a number to a score gives that number.
LOW = -1e30
IsOwn = Callable[[Node], bool]
Shape = tuple[DimLike, ...]


class Found(NamedTuple):
    """The result of an attention, and the nodes of the program that it is computed from."""

    result: Node
    leaves: tuple[Node, ...]


def with_attention(graph: Graph) -> Graph:
    """Return the graph with each attention in it as the primitive; the graph itself without one."""

    def start(inner: Graph) -> Visit:
        if not any(n.prim in (softmax, attention, attention_grad) for n in inner.nodes):
            return lambda old, new: new
        uses, results = use_counts(inner), set(inner.outputs)
        image: dict[Node, Node] = {}

        def visit(old: Node, new: Node) -> Node:
            if old.prim is matmul:
                found = attention_of(old, lambda n: uses[n] == 1 and n not in results)
                if found is not None:
                    new = substitute([found.result], {n: image.get(n, n) for n in found.leaves})[0]
            elif old.prim in (attention, attention_grad):
                new = _with_state(_with_band(new))
            if new is not old:
                image[old] = new
            return new

        return visit

    return rewrite(graph, start)


def attention_of(node: Node, is_own: IsOwn) -> Found | None:
    """Return the attention that a product of matrices computes, or None if it is none.

    `is_own(node)` says whether a node on the way, such as the weights, is needed for nothing else.
    """
    if node.dtype not in (D.float32, D.float64) or not _may_be(node.inputs[0]):
        return None
    with at(node.where):
        try:
            return _Match(is_own).product(node)
        except _NoMatch:
            return None


def pays_to_differentiate(found: Found) -> bool:
    """Return whether the derivative of the primitive is better than that of what it replaces.

    It computes weights again, which short rows have at hand in little memory.
    """
    whole = found.result.inputs[0] if found.result.prim is S.RESHAPE else found.result
    node = whole.inputs[0]
    q, k, v, *masks = (i.type for i in node.inputs)
    queries, keys = q.shape[-2], k.shape[-2]
    if type(keys) is not int or keys > FEW:
        return True
    if q.dtype is not D.float32 or type(queries) is not int or min(queries, keys) < FEWEST:
        return False
    differing = any(
        m.rank > 1 and not is_one(m.shape[-2])
        for w, m in zip(node.params["operands"], masks)
        if w not in ("kept", "state")
    )
    most = NARROW_IF_MASKED if differing else NARROW_IN_BAND if node.params["band"] else NARROW
    return bool(max(q.shape[-1], v.shape[-1]) <= most)


def _may_be(node: Node) -> bool:
    """Return quickly whether a node may be weights: a soft-max, after dropout or reshaped."""
    for _ in range(MOST_STEPS):
        if node.prim is softmax:
            return True
        if node.prim is SELECT:
            node = node.inputs[1]
        elif node.prim in (S.RESHAPE, E.mul, E.identity):
            node = node.inputs[0]
        else:
            return False
    return False


class _NoMatch(Exception):
    """The pattern is not attention."""


class _Match:
    """One attempt to read a product as an attention, from the result backwards."""

    def __init__(self, is_own: IsOwn) -> None:
        self.is_own = is_own
        self.leaves: list[Node] = []
        self.scale = 1.0
        self.factors: list[tuple[Primitive, Node]] = []
        self.biases: list[Node] = []
        self.terms: list[tuple[Node, bool]] = []
        self.fill: float | None = None
        self.kept: Node | None = None
        self.keep = 1.0

    def leaf(self, node: Node) -> Node:
        self.leaves.append(node)
        return node

    def need(self, condition: bool) -> None:
        if not condition:
            raise _NoMatch

    def own(self, node: Node) -> Node:
        """Return a node that must be needed for nothing else."""
        self.need(self.is_own(node))
        return node

    def product(self, node: Node) -> Found:
        weights, v = node.inputs
        v, shape = self.leaf(v), weights.shape
        while weights.prim in (S.RESHAPE, E.identity):
            weights = self.own(weights).inputs[0]
        weights = self.dropout(weights)
        self.need(weights.prim is softmax and weights.params["axis"] == weights.type.rank - 1)
        scores = self.own(weights).inputs[0]
        self.shape: Shape = tuple(weights.shape)
        self.need(_ends(self.shape) == _ends(shape))
        q, k = self.scores(scores)
        if not same(self.shape, tuple(shape)):
            self.need(_is_same(tuple(v.shape[:-2]), tuple(shape[:-2])))
            v = S.reshape(v, (*self.shape[:-2], *v.shape[-2:]))
        made = self.made(q, k, v)
        result = made if made.type is node.type else S.reshape(made, node.shape)
        self.need(result.type is node.type)
        return Found(result, tuple(dict.fromkeys(self.leaves)))

    def dropout(self, node: Node) -> Node:
        """Return weights before dropout: select(kept, weights / keep, 0)."""
        if node.prim is not SELECT:
            return node
        kept, thick, zero = self.own(node).inputs
        self.need(uniform(zero) == 0 and thick.prim is E.mul and same(thick.shape, node.shape))
        factor = uniform(self.own(thick).inputs[1])
        self.need(factor is not None and float(factor) >= 1.0)
        self.kept, self.keep = self.leaf(kept), 1.0 / float(factor)
        return thick.inputs[0]

    # Scores, from the soft-max to the product of queries and keys.

    def scores(self, node: Node) -> tuple[Node, Node]:
        for _ in range(MOST_STEPS):
            prim, shape = node.prim, tuple(node.shape)
            if prim is matmul:
                return self.queries_and_keys(self.own(node))
            self.own(node)
            if prim is E.identity:
                node = node.inputs[0]
            elif prim is S.RESHAPE:
                node = node.inputs[0]
                self.need(_ends(tuple(node.shape)) == _ends(shape))
            elif prim is SELECT:
                node = self.masked(node)
            elif prim in (E.add, E.sub):
                node = self.biased(node)
            elif prim in (E.mul, E.div):
                node = self.scaled(node)
            else:
                raise _NoMatch
        raise _NoMatch

    def settle(self, node: Node) -> None:
        """Take the shape of `node` for that of scores, unless masks of another one are known."""
        if not same(tuple(node.shape), self.shape):
            self.need(self.kept is None and not (self.biases or self.terms or self.factors))
            self.need(_is_same(_ends(tuple(node.shape)), _ends(self.shape)))
            self.shape = tuple(node.shape)

    def masked(self, node: Node) -> Node:
        """Read select(drop, fill, scores) or select(keep, scores, fill); return the scores."""
        condition, x, y = node.inputs
        dropped = uniform(x) is not None
        fill, inner = uniform(x if dropped else y), y if dropped else x
        self.need(fill is not None and same(tuple(inner.shape), tuple(node.shape)))
        self.settle(node)
        self.need(not self.biases and not self.factors and self.scale == 1.0)
        self.drop(condition, dropped, float(fill))
        return inner

    def drop(self, condition: Node, dropped: bool, fill: float) -> None:
        self.need(not math.isnan(fill) and self.fill in (None, fill))
        self.fill = fill
        self.terms += _terms(condition, dropped)

    def biased(self, node: Node) -> Node:
        """Read scores + bias or scores - bias; return the scores."""
        x, y = node.inputs
        if node.prim is E.add and not _leads_to_product(x):
            x, y = y, x
        self.need(same(tuple(x.shape), tuple(node.shape)) and _leads_to_product(x))
        self.settle(node)
        mask = y if node.prim is E.add else E.neg(y)
        if y.prim is SELECT and node.prim is E.add and not self.biases and not self.factors and self.scale == 1.0:
            condition, a, b = y.inputs
            for fill, other, dropped in ((uniform(a), uniform(b), True), (uniform(b), uniform(a), False)):
                if fill is not None and other == 0 and fill <= LOW and self.fill in (None, float(fill)):
                    self.drop(condition, dropped, float(fill))
                    return x
        self.leaf(y)
        for prim, factor in self.factors:
            mask = prim(mask, factor)
        self.biases.append(E.mul(mask, self.scale) if self.scale != 1.0 else mask)
        return x

    def scaled(self, node: Node) -> Node:
        """Read scores times or over a number or one number for each matrix; return the scores."""
        x, y = node.inputs
        if node.prim is E.mul and not _leads_to_product(x):
            x, y = y, x
        self.need(same(tuple(x.shape), tuple(node.shape)))
        number = uniform(y)
        if number is not None:
            self.need(float(number) != 0.0 or node.prim is E.mul)
            self.scale = self.scale * float(number) if node.prim is E.mul else self.scale / float(number)
        else:
            self.need(all(is_one(d) for d in y.shape[-2:]))
            self.settle(node)
            assert node.prim is not None
            self.factors.insert(0, (node.prim, self.leaf(y)))
        return x

    def queries_and_keys(self, node: Node) -> tuple[Node, Node]:
        q, turned = node.inputs
        lead = tuple(node.shape[:-2])
        q, k = self.leaf(q), swap_last(self.leaf(turned))
        if not same(tuple(node.shape), self.shape):
            self.need(_is_same(lead, self.shape[:-2], product))
            q, k = (
                S.reshape(S.broadcast_to(x, (*lead, *x.shape[-2:])), (*self.shape[:-2], *x.shape[-2:])) for x in (q, k)
            )
        return q, k

    # The primitive.

    def made(self, q: Node, k: Node, v: Node) -> Node:
        lead = self.shape[:-2]
        sizes = (q.shape[-1], v.shape[-1])
        self.need(all(type(d) is int and 0 < d <= MOST_FEATURES for d in sizes))
        self.need(v.type.rank <= len(self.shape) and not is_one(self.shape[-2]))
        for prim, factor in self.factors:
            q = prim(q, factor)
        q = S.broadcast_to(q, (*lead, *q.shape[-2:]))
        k, v = (S.reshape(x, (*(1,) * (len(self.shape) - x.type.rank), *x.shape)) for x in (k, v))
        if not same(tuple(k.shape[:-2]), tuple(v.shape[:-2])):
            both = broadcast_shapes(k.shape[:-2], v.shape[:-2])
            k, v = (S.broadcast_to(x, (*both, *x.shape[-2:])) for x in (k, v))
        low, high, drop = _ends_of(self.terms)
        self.leaves += [term for term, _ in self.terms]
        masks = {"bias": _sum(self.biases), "drop": drop, "kept": self.kept}
        given = [m for m in masks.values() if m is not None]
        self.need(all(_fits(tuple(m.shape), self.shape) for m in given))
        words = tuple(w for w, m in masks.items() if m is not None)
        keep = self.keep
        drawn = None if self.kept is None else _drawn(self.kept, self.shape)
        if drawn is not None:
            words, given, keep = (*words[:-1], "state"), [*given[:-1], drawn[0]], drawn[1]
            self.leaves.append(drawn[0])
        band = None if low is None and high is None else (low, high)
        return attention.outputs(
            q,
            k,
            v,
            *given,
            scale=self.scale,
            operands=words,
            band=band,
            fill=-math.inf if self.fill is None else self.fill,
            keep=keep,
        )[0]


def _ends(shape: Shape) -> Shape:
    return tuple(shape[-2:])


def _is_same(a: Shape, b: Shape, by: Callable[[Shape], Any] = tuple) -> bool:
    """Return whether two shapes, or what `by` gives for them, are certainly the same."""
    return bool(same(by(a), by(b)))


def _fits(mask: Shape, scores: Shape) -> bool:
    """Return whether a mask broadcasts to scores."""
    if len(mask) > len(scores):
        return False
    return all(is_one(d) or same(d, whole) for d, whole in zip(reversed(mask), reversed(scores)))


def _leads_to_product(node: Node) -> bool:
    """Return whether a node is a product of matrices, with masks and factors."""
    for _ in range(MOST_STEPS):
        if node.prim is matmul:
            return True
        if node.prim is SELECT:
            node = node.inputs[2 if uniform(node.inputs[1]) is not None else 1]
        elif node.prim in (E.add, E.sub, E.mul, E.div, S.RESHAPE, E.identity):
            node = node.inputs[0]
        else:
            return False
    return False


def _sum(nodes: list[Node]) -> Node | None:
    total: Node | None = None
    for n in nodes:
        total = n if total is None else E.add(total, n)
    return total


def _any(nodes: list[Node]) -> Node | None:
    total: Node | None = None
    for n in nodes:
        total = n if total is None else E.logical_or(total, n)
    return total


# Masks that are drawn.


def _drawn(kept: Node, scores: Shape) -> tuple[Node, float] | None:
    """Return the state that draws a mask for scores, element by element, and the probability.

    Returns None for other masks.
    """
    while kept.prim in (S.RESHAPE, E.identity):
        kept = kept.inputs[0]
    if kept.prim is not E.lt:
        return None
    unit, chance = kept.inputs
    keep, bits = uniform(chance), _bits_of(unit)
    if keep is None or chance.dtype is not D.float32 or not 0.0 < float(keep) < 1.0 or bits is None:
        return None
    shape = tuple(bits.shape)
    if bits.inputs[0].type.rank != 1 or _ends(shape) != _ends(scores) or not _is_same(shape, scores, product):
        return None
    return bits.inputs[0], float(keep)


def _bits_of(unit: Node) -> Node | None:
    """Return the random bits of which `prims.random` makes float32 numbers from 0 to 1."""
    if unit.prim is not E.mul or uniform(unit.inputs[1]) != 2.0**-24:
        return None
    number = unit.inputs[0]
    if number.prim is not E.cast or number.dtype is not D.float32 or number.inputs[0].prim is not E.shift_right:
        return None
    bits, places = number.inputs[0].inputs
    return bits if bits.prim is random_bits and bits.dtype is D.uint32 and uniform(places) == 8 else None


def _with_state(node: Node) -> Node:
    """Return an application of the primitive whose dropout is drawn where it is needed, if that is
    possible.
    """
    p = node.params
    if "kept" not in p["operands"]:
        return node
    first = 0 if node.prim is attention else 1
    q, k = node.inputs[first : first + 2]
    drawn = _drawn(node.inputs[-1], (*q.shape[:-1], k.shape[-2]))
    if drawn is None:
        return node
    operands = (*p["operands"][:-1], "state")
    assert node.prim is not None
    with at(node.where):
        return node.prim.node(*node.inputs[:-1], drawn[0], **{**p, "operands": operands, "keep": drawn[1]})


# Masks that compare positions.


def _with_band(node: Node) -> Node:
    """Return an application of the primitive whose mask is a band, as far as it is one."""
    p = node.params
    if "drop" not in p["operands"] or p["band"] is not None:
        return node
    place = len(node.inputs) - len(p["operands"]) + p["operands"].index("drop")
    low, high, rest = _ends_of(_terms(node.inputs[place], True))
    if low is None and high is None:
        return node
    inputs, operands = list(node.inputs), list(p["operands"])
    inputs[place : place + 1] = [rest] if rest is not None else []
    if rest is None:
        operands.remove("drop")
    assert node.prim is not None
    with at(node.where):
        return node.prim.node(*inputs, **{**p, "operands": tuple(operands), "band": (low, high)})


def _ends_of(terms: list[tuple[Node, bool]]) -> tuple[DimLike | None, DimLike | None, Node | None]:
    """Return the band that terms leave, and the other terms as one mask."""
    low: DimLike | None = None
    high: DimLike | None = None
    others = []
    for term, value in terms:
        band = _band(term, value)
        if band is None:
            others.append(term if value else E.logical_not(term))
            continue
        low = band[0] if low is None else low if band[0] is None else max(band[0], low)
        high = band[1] if high is None else high if band[1] is None else min(band[1], high)
    return low, high, _any(others)


def _terms(node: Node, value: bool) -> list[tuple[Node, bool]]:
    """Return conditions, each with the value that it has, of which one holds where `node` has
    `value`.
    """
    if node.prim is E.logical_not:
        return _terms(node.inputs[0], not value)
    if node.prim is E.identity:
        return _terms(node.inputs[0], value)
    if node.prim is (E.logical_or if value else E.logical_and):
        return [t for i in node.inputs for t in _terms(i, value)]
    if node.prim is SELECT and uniform(node.inputs[1]) is not None and uniform(node.inputs[2]) is not None:
        yes, no = (bool(uniform(i)) for i in node.inputs[1:])
        if yes != no:
            return _terms(node.inputs[0], value == yes)
    return [(node, value)]


_ORDERS: Mapping[Primitive, tuple[int, bool]] = {E.gt: (1, True), E.ge: (1, False), E.lt: (-1, True), E.le: (-1, False)}


def _band(node: Node, value: bool) -> tuple[DimLike | None, DimLike | None] | None:
    """Return the ends of the band outside of which a comparison of positions has a value.

    Returns None for other conditions.
    """
    order = None if node.prim is None else _ORDERS.get(node.prim)
    if order is None or node.inputs[0].dtype.kind != "i":
        return None
    left, right = (_position(i, node.type.rank) for i in node.inputs)
    if left is None or right is None:
        return None
    keys, queries, rest = (a - b for a, b in zip(left, right))
    sign, strict = order
    if not value:
        sign, strict = -sign, not strict
    # sign * (keys * j + queries * i + rest) > 0, or >= 0.
    if (keys, queries) == (-1, 1):
        keys, rest, sign = 1, -rest, -sign
    elif (keys, queries) != (1, -1):
        return None
    edge = -rest
    if sign > 0:
        return None, edge if strict else edge - 1
    return edge if strict else edge + 1, None


def _position(node: Node, rank: int) -> tuple[int, int, DimLike] | None:
    """Return (a, b, c) where a node of truth is a * key + b * query + c; None where it is not.

    The last of `rank` axes is that of keys, the one before that of queries.
    """
    number = uniform(node)
    if number is not None:
        return 0, 0, int(number)
    if node.prim is S.iota:
        behind = node.type.rank - 1 - node.params["axis"]
        return (1, 0, 0) if behind == 0 else (0, 1, 0) if behind == 1 else None
    if node.prim is S.RESHAPE:
        inner = node.inputs[0]
        if inner.prim is S.iota and inner.type.rank == 1:
            long = [a for a, d in enumerate(node.shape) if not is_one(d)]
            if len(long) == 1 and node.type.rank - 1 - long[0] in (0, 1):
                return (1, 0, 0) if long[0] == node.type.rank - 1 else (0, 1, 0)
        return None
    if node.prim in (S.BROADCAST_TO, E.identity) or node.prim is E.cast and node.dtype.kind == "i":
        return _position(node.inputs[0], rank)
    if node.prim in (E.add, E.sub):
        a, b = (_position(i, rank) for i in node.inputs)
        if a is None or b is None:
            return None
        sign = 1 if node.prim is E.add else -1
        return a[0] + sign * b[0], a[1] + sign * b[1], a[2] + b[2] if sign > 0 else a[2] - b[2]
    return None
