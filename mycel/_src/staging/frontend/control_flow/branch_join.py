"""Joins the values of two branches between which a tensor decides.

Values that differ must be tensors of one type, or numbers, which become tensors and are marked as
numbers, so that assignments do not change them in place. Containers of one form are joined item by
item, and functions become a `Choice`; all other values that differ raise an error that names them.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Node, current_where
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims.base import constant
from mycel._src.compiler.prims.shape import broadcast_to
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import CompileError
from mycel._src.staging.frontend.graph_building.stage import Stage, current_stage
from mycel._src.staging.frontend.graph_building.stage_state import MISSING, Scope
from mycel._src.staging.frontend.graph_building.staged_views import Either, Tree, mix, origin, parts, settle
from mycel._src.tensors.core.binary_operators import number_dtype
from mycel._src.tensors.core.tensor import Tensor, make_staged

__all__ = ["NUMBERS", "Joiner", "common_dtype", "describe", "node_as", "placeholder", "same"]

NUMBERS = (bool, int, float, complex)


class Choice:
    """Two functions, and the tensor that chooses between them."""

    def __init__(self, pred: Tensor, true: Any, false: Any) -> None:
        self.pred, self.true, self.false = pred, true, false

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        stage = current_stage()
        if stage is None:
            raise RuntimeError("a function that a tensor chose can only be called inside the compiled function")
        return stage.invoke(self, args, kwargs)


class Joiner:
    """The pairs of nodes of two branches, which are collected while values are joined."""

    def __init__(self, stage: Stage, true: Scope, false: Scope) -> None:
        self.stage, self.scopes = stage, (true, false)
        self.pairs: list[tuple[Node, Node]] = []
        self.places: dict[tuple[Node, Node], int] = {}
        self.memo: dict[tuple[int, int], Any] = {}
        self.made: dict[tuple[int, int], Any] = {}
        self.kept: list[Any] = []
        self.origins: list[Tree] = []
        self.carried: list[tuple[Either, Any]] = []

    def pair(self, a: Node, b: Node) -> Any:
        """Return a function from the outputs to the tensor that joins two nodes."""
        if a is b:
            return lambda out: make_staged(a)
        place = self.places.get((a, b))
        if place is None:
            place = self.places[a, b] = len(self.pairs)
            self.pairs.append((a, b))
        return lambda out: make_staged(out[place])

    def join(self, a: Any, b: Any, what: str) -> Any:
        """Return a function from the outputs to the value that joins two values."""
        if a is b and not is_mutable(a):
            return lambda out: a
        self.kept.append((a, b))
        key = (id(a), id(b))
        if key not in self.memo:
            build = self._join(a, b, what)

            def once(out: Any) -> Any:
                if key not in self.made:
                    self.made[key] = build(out)
                return self.made[key]

            self.memo[key] = once
        return self.memo[key]

    def _join(self, a: Any, b: Any, what: str) -> Any:
        if a is b:
            return lambda out: a
        if (
            isinstance(a, Tensor)
            or isinstance(b, Tensor)
            or (type(a) in NUMBERS and type(b) in NUMBERS and not same(a, b))
        ):
            return self._join_tensors(a, b, what)
        if same(a, b):
            return lambda out: a
        if type(a) is type(b):
            if isinstance(a, (list, tuple)) and len(a) == len(b):
                parts = [self.join(x, y, f"{what}[{i}]") for i, (x, y) in enumerate(zip(a, b))]
                kind: Any = type(a)
                if hasattr(kind, "_fields"):
                    return lambda out: kind(*[p(out) for p in parts])
                return lambda out: self._new(kind([p(out) for p in parts]))
            if isinstance(a, dict) and list(a) == list(b):
                items = {k: self.join(a[k], b[k], f"{what}[{k!r}]") for k in a}
                copy = type(a) if type(a) in (dict, OrderedDict) else None
                if copy is not None:
                    return lambda out: self._new(copy((k, p(out)) for k, p in items.items()))
        if callable(a) and callable(b):
            return lambda out: Choice(self.pred, a, b)
        raise CompileError(
            f"{current_where()}: {what} is {describe(a)} where the condition holds and {describe(b)} where it does "
            "not; "
            "a tensor decides, so both must be tensors of one type, or the same value"
        )

    pred: Tensor

    def _new(self, value: Any) -> Any:
        return self.stage.created(value) if is_mutable(value) else value

    def _join_tensors(self, a: Any, b: Any, what: str) -> Any:
        for v in (a, b):
            if not isinstance(v, Tensor) and type(v) not in NUMBERS:
                other = b if v is a else a
                raise CompileError(
                    f"{current_where()}: {what} is {describe(v)} on one side of a condition that a tensor decides and "
                    f"{describe(other)} on the other; make both tensors of one type"
                )
        dtype = common_dtype(a, b)
        nodes = [self.convert(v, dtype, s) for v, s in zip((a, b), self.scopes)]
        if nodes[0].type is not nodes[1].type:
            raise CompileError(
                f"{current_where()}: {what} has shape {nodes[0].shape} where the condition holds and {nodes[1].shape} "
                "where it does not; "
                "a tensor decides, so both must have one shape"
            )
        build = self.pair(nodes[0], nodes[1])
        if self.stage.is_number(a) and self.stage.is_number(b):
            return lambda out: self.stage.mark_number(build(out))
        place = len(self.origins)
        self.origins.append(Either(self.pred, origin(a), origin(b)))
        return lambda out: mix(self.stage, build(out), self.origins[place])

    def settle(self) -> None:
        """Determine where the elements of the results are.

        Conditions of inner branches on which that depends become further outputs.
        """
        self.origins[:] = settle(self.stage, self.origins)
        for tree in self.origins:
            if isinstance(tree, Either):
                self._carry(tree.true, 0)
                self._carry(tree.false, 1)

    def _carry(self, tree: Tree, side: int) -> None:
        for part in parts(tree):
            if not isinstance(part, Either):
                continue
            pred = part.pred
            if (
                pred is not None
                and pred._node in self.scopes[side].own
                and pred._node.dtype is D.bool_
                and pred.shape == ()
            ):
                nodes: list[Any] = [constant(False, D.bool_), constant(False, D.bool_)]
                nodes[side] = pred._node
                self.carried.append((part, self.pair(*nodes)))

    def tell(self, outputs: Any) -> None:
        """Take over the values of conditions of inner branches from the outputs."""
        for tree, build in self.carried:
            tree.pred = build(outputs)

    def forget(self) -> None:
        """Drop the references to values of the branches, to see which are still in use
        elsewhere.
        """
        self.memo.clear()
        self.made.clear()
        self.kept.clear()

    def convert(self, value: Any, dtype: Any, scope: Scope) -> Node:
        return node_as(self.stage, value, dtype, scope)


def node_as(stage: Stage, value: Any, dtype: Any, scope: Scope) -> Node:
    """Return `value`, a tensor or number of `stage`, as a node of element type `dtype`.

    A conversion belongs to `scope`.
    """
    node = stage.node_of(value) if isinstance(value, Tensor) else constant(value, dtype)
    if node.dtype is not dtype:
        node = E.cast(node, dtype=dtype)
        scope.own.add(node)
    return node


def common_dtype(a: Any, b: Any) -> Any:
    """Return the common element type of two tensors or numbers."""
    if isinstance(a, Tensor):
        return D.promote(a.dtype, b.dtype) if isinstance(b, Tensor) else number_dtype(b, a.dtype)
    if isinstance(b, Tensor):
        return number_dtype(a, b.dtype)
    kinds = [D.from_any(type(v)) for v in (a, b)]
    return D.promote(*kinds)


def is_mutable(value: Any) -> bool:
    return isinstance(value, (list, dict, set, deque, tuple))


def same(a: Any, b: Any) -> bool:
    """Return whether two values are the same plain data or object."""
    if a is b:
        return True
    if type(a) is not type(b) or isinstance(a, Tensor):
        return False
    if isinstance(a, float):
        return bool(a.hex() == b.hex())
    if isinstance(a, np.ndarray):
        return bool(a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes())
    if isinstance(a, (int, complex, str, bytes, type(None), D.DType, range, slice)):
        return bool(a == b)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (set, frozenset)):
        return bool(a == b)
    method = getattr(a, "__func__", None)
    return method is not None and method is getattr(b, "__func__", None) and a.__self__ is b.__self__


def describe(value: Any) -> str:
    if value is MISSING:
        return "not set"
    if isinstance(value, Tensor):
        return f"a tensor {value._type}"
    text = repr(value)
    return f"{text if len(text) < 40 else text[:37] + '...'} ({type(value).__name__})"


def placeholder(value: Any) -> Any:
    """Return a value of the same form for the branch in which it is never used."""
    if isinstance(value, Tensor):
        return make_staged(broadcast_to(constant(0, value.dtype), value.shape))
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*[placeholder(v) for v in value])
    if type(value) in (tuple, list):
        return type(value)([placeholder(v) for v in value])
    if type(value) in (dict, OrderedDict):
        return type(value)((k, placeholder(v)) for k, v in value.items())
    return value
