"""`saved_tensors_hooks`: pack and unpack the values kept from the forward to the backward pass.

An operation under hooks is recorded as a `custom` node whose rule is the derivative of that one
operation (`_Plan`). It keeps only the results of ``pack`` for the values that the derivative uses,
so its own results are recorded without their values. The node of such a result is a *bridge*: an
identity with the value for operations recorded outside of the hooks, which operations under hooks
step over. While a function is staged the rule is staged with the operation, and ``pack`` is part of
the forward graph, ``unpack`` of the backward one.

The hooks that a thread entered last are in force in it; while a hook runs none are. A recorder has
another class while hooks are in force, so that recording without hooks costs no check.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from mycel._src.compiler.ir.graph import Graph, Node, input_node, toposort
from mycel._src.compiler.prims.base import GET_ITEM, Primitive, freeze, outputs_of
from mycel._src.compiler.prims.control_flow import control
from mycel._src.compiler.prims.custom_derivatives import Rule, custom, kept_call
from mycel._src.compiler.prims.elementwise import identity
from mycel._src.compiler.transforms.grad import vjp
from mycel._src.foundation import arguments
from mycel._src.foundation.bounded_caches import SOME, Remembered
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.autograd.gradient_hooks import call_user
from mycel._src.tensors.core.autograd.recorded_node import BRIDGE, CONSTANT, Recorded
from mycel._src.tensors.core.autograd.recording import Recorder, recorders
from mycel._src.tensors.core.execution_context import Context, Following, SavedHooks
from mycel._src.tensors.core.tensor import Tensor, make

__all__ = ["register_saved_tensors_hooks", "saved_tensors_hooks"]


class _Local(threading.local):
    stack: tuple[SavedHooks, ...] = ()


_local = _Local()


class saved_tensors_hooks:
    """A context manager within which ``pack_hook(tensor)`` returns what is kept of each value that
    the backward pass needs, and ``unpack_hook(kept)`` returns the value when it is needed.

    `pack_hook` may return anything: an array, a file's name, a compressed copy. It is called at the
    operation that needs the value, once for each such use, with a tensor of its own; `unpack_hook`
    each time that the derivative of the operation is taken, and must give a tensor of the same
    shape and type. Numbers are kept as they are. Only operations that are being differentiated call
    hooks, those of the innermost context, and operations in hooks are not differentiated. A region
    of `recompute` keeps its inputs only. In compiled functions both hooks are compiled with the
    operations, and must return what a compiled function can hold; they are not called for values
    that loops and conditions keep. Raises TypeError for hooks that cannot be called and for values
    that are no tensors or of another type, ValueError for another shape, RuntimeError where
    `pack_hook` writes into its argument.

    >>> import mycel as ms
    >>> def loss(x):
    ...     pack = lambda t: t.asnumpy().astype("float16")
    ...     with ms.saved_tensors_hooks(pack, lambda kept: ms.Tensor(kept.astype("float32"))):
    ...         return x * x
    >>> float(ms.grad(loss)(ms.Tensor(3.0)))
    6.0
    """

    def __init__(self, pack_hook: Callable[..., Any], unpack_hook: Callable[..., Any]) -> None:
        for name, hook in (("pack_hook", pack_hook), ("unpack_hook", unpack_hook)):
            arguments.function("saved_tensors_hooks", name, hook)
        self._hooks: SavedHooks = (pack_hook, unpack_hook)
        self._before: list[tuple[Following | None, Any]] = []

    def __enter__(self) -> None:
        staging = eager.local.staging
        if staging is not None:
            following = staging.following
            self._before.append((following, following.saving))
            following.saving = self._hooks
            return
        self._before.append((None, _local.stack))
        _install((*_local.stack, self._hooks))

    def __exit__(self, *error: Any) -> None:
        following, before = self._before.pop()
        if following is None:
            _install(before)
        else:
            following.saving = before


def register_saved_tensors_hooks(
    pack_hook: Callable[..., Any], unpack_hook: Callable[..., Any]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that lets a function run within `saved_tensors_hooks`, compiled or not.

    >>> import mycel as ms
    >>> @ms.register_saved_tensors_hooks(lambda t: t + 1, lambda t: t - 1)
    ... def square(x):
    ...     return x * x
    >>> float(ms.jit(ms.grad(square))(ms.Tensor(3.0)))
    6.0
    """
    manager = saved_tensors_hooks(pack_hook, unpack_hook)

    def decorate(fn: Callable[..., Any]) -> Callable[..., Any]:
        arguments.function("register_saved_tensors_hooks", "what is decorated", fn)

        @functools.wraps(fn)
        def run(*args: Any, **kwargs: Any) -> Any:
            context = eager.current_context()
            with manager:
                return fn(*args, **kwargs) if context is None else context.invoke(fn, args, kwargs)

        return run

    return decorate


def _install(stack: tuple[SavedHooks, ...]) -> None:
    _local.stack = stack
    recorders.kind = _new
    context = eager.current_context()
    if type(context) in (Recorder, _Saving):
        context.__class__ = _Saving if stack else Recorder


def _new() -> Recorder:
    return _Saving() if _local.stack else Recorder()


@contextmanager
def _suspended() -> Iterator[None]:
    """Return a context manager within which no hooks are in force and nothing is recorded."""
    stack, _local.stack = _local.stack, ()
    try:
        with eager.use_context(None):
            yield
    finally:
        _local.stack = stack


# The derivative of one operation.


class _Plan:
    """The derivative of one operation: `primitive` of operands of these `types` and of `params`.

    `gradients` are the nodes of the gradients by the `active` operands. They are computed from the
    cotangents `seeds` of the first `visible` results and from the values `used`: operands, as
    (False, i), and results, as (True, i).
    """

    def __init__(
        self, primitive: Primitive, types: Sequence[Any], params: dict[str, Any], active: Sequence[int], visible: int
    ) -> None:
        inputs = [input_node(t) for t in types]
        whole = primitive.node(*inputs, **params)
        found = outputs_of(whole)
        outputs = found if isinstance(found, tuple) else (found,)
        smooth = [o for o in outputs[:visible] if o.dtype.is_differentiable]
        self.seeds = [input_node(o.type, "cotangent") for o in smooth]
        self.gradients = vjp(smooth, self.seeds, [inputs[i] for i in active]) if smooth else [None] * len(active)
        known = set(inputs) | set(self.seeds) | {whole}
        places: dict[Node, tuple[bool, int]] = {n: (False, i) for i, n in enumerate(inputs)}
        places.update((n, (True, i)) for i, n in enumerate(outputs))
        self.order, self.used = [], {}
        for node in toposort([g for g in self.gradients if g is not None], stop=known):
            if node.prim is GET_ITEM and node.inputs[0] is whole:
                self.used[node] = (True, node.params["index"])
            elif node in places:
                self.used[node] = places[node]
            elif node is not whole and node not in self.seeds:
                self.order.append(node)

    order: list[Node]
    used: dict[Node, tuple[bool, int]]

    def places(self) -> list[tuple[bool, int]]:
        """Return the places of the values that are used, each once."""
        return sorted(set(self.used.values()))

    def apply(self, values: dict[tuple[bool, int], Tensor], cotangents: Sequence[Tensor]) -> list[Tensor | None]:
        """Return the gradients, computed operation by operation in the context in force."""
        known: dict[Node, Any] = {node: values[place] for node, place in self.used.items()}
        known.update(zip(self.seeds, cotangents))
        for node in self.order:
            given = [known[i] for i in node.inputs]
            if node.prim is GET_ITEM:
                known[node] = given[0][node.params["index"]]
            else:
                assert node.prim is not None
                known[node] = eager.apply(node.prim, *given, **node.params)
        return [None if g is None else known[g] for g in self.gradients]


_plans = Remembered[Any, _Plan]("derivatives with packed values", SOME)


def _plan(primitive: Primitive, types: Sequence[Any], params: dict[str, Any], active: Any, visible: int) -> _Plan:
    known = params["link"] if primitive is kept_call else freeze(params)
    key = (primitive, tuple(types), known, tuple(active), visible)
    return _plans.recall(key, partial(_Plan, primitive, types, params, active, visible))


def _checked(found: Any, like: Any) -> Tensor:
    if not isinstance(found, Tensor):
        raise TypeError(f"unpack_hook must return a tensor, not {type(found).__name__} ({found!r:.60})")
    if found.shape != like.shape:
        raise ValueError(f"unpack_hook returned a tensor of shape {found.shape} in place of {like.shape}")
    if found.dtype is not like.dtype:
        raise TypeError(
            f"unpack_hook returned a tensor of {found.dtype.name} in place of {like.dtype.name}; convert it"
        )
    found._settle()
    return found


# Recording.


class _Saving(Recorder):
    """A recording while hooks are in force."""

    def enter(self, primitive: Primitive, inputs: Sequence[Tensor], params: dict[str, Any], result: Any) -> None:
        """Record the `result` of a primitive of `inputs` and `params`, and keep packed values."""
        if any(self.node_of(t) is not None for t in inputs):
            results = result if isinstance(result, tuple) else (result,)
            self._save(primitive, self._nodes(inputs), params, results)

    def enter_pair(self, primitive: Primitive, x: Tensor, y: Tensor, result: Tensor) -> None:
        """Record the `result` of a primitive of `x` and `y`, and keep packed values."""
        self.enter(primitive, (x, y), {}, result)

    def enter_call(
        self,
        inputs: Sequence[Tensor],
        nodes: Sequence[Node | None],
        params: dict[str, Any],
        types: tuple[Any, ...],
        values: tuple[Any, ...],
    ) -> list[Tensor]:
        """Record a `kept_call` of `inputs` and `params` that has run, and return its results.

        `nodes` are the nodes of the inputs on this recording. `types` and `values` are those of the
        results and of what its derivative uses; these are packed.
        """
        results = [make(t, v) for t, v in zip(types, values)]
        self._save(kept_call, self._nodes(inputs), params, results)
        return results[: params["count"]]

    def recompute(self, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        def plain(*args: Any, **kwargs: Any) -> Any:
            self.__class__ = Recorder  # type: ignore[assignment]
            try:
                return fn(*args, **kwargs)
            finally:
                self.__class__ = _Saving

        return super().recompute(plain, args, kwargs)

    def _nodes(self, tensors: Sequence[Tensor]) -> tuple[Any, ...]:
        nodes: list[Any] = []
        for t in tensors:
            node = self.node_of(t)
            if node is None:
                node = Recorded(None, (), CONSTANT, t._type, t._buf, self)
            elif node.buffer is None:  # type: ignore[attr-defined]
                node.buffer = t._buf  # type: ignore[attr-defined]
            nodes.append(node)
        return tuple(nodes)

    def _enter(self, primitive: Primitive, nodes: tuple[Node, ...], params: Any, results: Sequence[Tensor]) -> None:
        if primitive is custom:
            super()._enter(primitive, nodes, params, results)
        else:
            self._save(primitive, nodes, params, results)

    def _save(self, primitive: Primitive, nodes: Sequence[Any], params: Any, results: Sequence[Tensor]) -> None:
        visible = len(results)
        if primitive is kept_call:
            visible = params["count"]
            if self.depth > 1:
                # A second derivative computes the values that the call keeps anew.
                primitive, params = control.call, {"graph": params["graph"]}
        active = [i for i, n in enumerate(nodes) if n.params is not CONSTANT and n.type.dtype.is_differentiable]
        plan = _plan(primitive, [n.type for n in nodes], params, active, visible)
        if all(g is None for g in plan.gradients):
            return
        pack, unpack = _local.stack[-1]
        kept = {}
        for place in plan.places():
            of_result, i = place
            value = make(results[i]._type, results[i]._buf) if of_result else make(nodes[i].type, nodes[i].buffer)
            if of_result or value._type.shape or nodes[i].params is not CONSTANT:
                kept[place] = (value._type, _packed(pack, value), unpack)
            else:
                kept[place] = (value._type, value, _same)
        rule = _rule(self, plan, kept, {i: _before(nodes[i]) for i in active})
        leaves = tuple([Recorded(None, (), CONSTANT, r._type, None, self) for r in results[:visible]])
        whole_params = {"count": visible, "backward": None, "wanted": (), "rule": rule}
        operands = tuple([_before(nodes[i]) for i in active])
        types = tuple([r._type for r in results[:visible]])
        whole = Recorded(custom, (*leaves, *operands), whole_params, types, None, self)
        for r, item in zip(results, whole.items()):
            r._node = Recorded(identity, (item,), BRIDGE, r._type, r._buf, self)


def _before(node: Any) -> Any:
    """Return the node to which a bridge leads, which has no value; other nodes as they are."""
    return node.inputs[0] if node.params is BRIDGE else node


def _same(value: Tensor) -> Tensor:
    return value


def _packed(pack: Callable[..., Any], value: Tensor) -> Any:
    buffer = value._buf
    with _suspended():
        found = pack(value)
    if value._buf is not buffer:
        raise RuntimeError("pack_hook writes into the tensor that it is given; make a copy of it with .copy()")
    return found


def _rule(recorder: Recorder, plan: _Plan, kept: Any, operands: dict[int, Any]) -> Rule:
    def function(values: Sequence[Tensor], cotangents: Sequence[Tensor]) -> list[Tensor | None]:
        linked = eager.current_context() is recorder
        found = {}
        for place, (kind, packed, unpack) in kept.items():
            with _suspended():
                value = _checked(unpack(packed), kind)
            found[place] = value = make(kind, value._buf)
            of_result, i = place
            if linked:
                # Values that a call keeps beyond its results are needed by no second derivative
                # (`_Saving._save`).
                node = operands.get(i) if not of_result else values[i]._node if i < len(values) else None
                if node is not None:
                    value._node = Recorded(identity, (node,), BRIDGE, kind, value._buf, recorder)
        return plan.apply(found, cotangents)

    return Rule(function)


# Staging.


def staged(
    context: Context, primitive: Primitive, inputs: Sequence[Tensor], params: dict[str, Any], result: Any
) -> Any:
    """Return the `result` of an operation that is staged under hooks, with a derivative that uses
    the values that the hooks keep.

    `context` is that of the function being staged; `primitive`, `inputs` and `params` are
    those of the operation.
    """
    if primitive in (custom, kept_call) or any(isinstance(p, Graph) for p in params.values()):
        return result
    staging = context.staging
    assert staging is not None
    following = staging.following
    results = result if isinstance(result, tuple) else (result,)
    nodes = [staging.node_of(t) for t in inputs]
    active = [i for i, n in enumerate(nodes) if n.dtype.is_differentiable and not n.is_constant]
    if not active or not any(r.dtype.is_differentiable for r in results):
        return result
    plan = _plan(primitive, [n.type for n in nodes], params, active, len(results))
    if not plan.used:
        return result
    assert following.saving is not None
    (pack, unpack), following.saving = following.saving, None
    try:
        kept: dict[Any, Any] = {}
        for place in plan.places():
            of_result, i = place
            value = results[i] if of_result else inputs[i]
            if of_result or not nodes[i].is_constant:
                kept[place] = (value._type, context.invoke(pack, (value,), {}), unpack)
            else:
                kept[place] = (value._type, value, _same)

        def function(values: Sequence[Tensor], cotangents: Sequence[Tensor]) -> list[Tensor | None]:
            found = {place: _checked(call_user(given, packed), kind) for place, (kind, packed, given) in kept.items()}
            return plan.apply(found, cotangents)

        made = context.differentiating.attach(results, [inputs[i] for i in active], Rule(function))
    finally:
        following.saving = (pack, unpack)
    return tuple(made) if isinstance(result, tuple) else made[0]
