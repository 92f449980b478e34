"""View cache of eager execution: the steps and program of a view, by tensor type and arguments.

The view that a function such as `transpose` makes depends on the tensor's type and on the other
arguments, and where a reshape may have to move elements also on the steps by which the tensor is a
view itself. So a call in eager execution finds its `Route` in a table: the steps, the type of the
view, and one program that computes its value from that of the tensor (none if the memory is shared;
a recording applies the steps one by one). For all other calls the function itself runs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any, TypeVar, cast
from weakref import ref

from mycel._src.compiler.ir.graph import Graph, Node, input_node
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.prims.base import Primitive
from mycel._src.compiler.prims.shape import TRANSPOSE
from mycel._src.engines.select import compile_small
from mycel._src.foundation.bounded_caches import MANY, Remembered
from mycel._src.foundation.python_runtime.tracebacks import at_border
from mycel._src.foundation.settings import config
from mycel._src.tensors.core import eager, precision
from mycel._src.tensors.core.autograd.recorded_node import Recorded
from mycel._src.tensors.core.autograd.recording import Recorder
from mycel._src.tensors.core.fused import entry_of
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor
from mycel._src.tensors.core.views import SHARING, Family, Step, View, attach, derived, family_of, root_of

__all__ = ["Route", "basic_key", "follow", "indexing", "viewing"]

F = TypeVar("F", bound=Callable[..., Any])
_new = object.__new__
WAITING = 1 << 16  # bytes of a transposed tensor from which on its value is computed when asked for
# By function, type of the tensor and other arguments: a route, several with the kind of their
# sequence, or False where there are none.
_table = Remembered[Any, Any]("views", MANY, config.COMPILED_ANEW)
_recent = _table.recent


class Route:
    """The way from a tensor of one type to a view of it.

    `steps` lead to the view, `type` is its type, and `run` computes its buffer from that of the
    tensor; `run` is None where the view shares the buffer. `types` are those after each step, where
    all steps but the first share, so that these have one buffer; else None. With `waits` the value
    is computed when it is asked for: a large matrix is most often transposed for a product, which
    reads it as it lies (`core.fused`).
    """

    __slots__ = ("steps", "type", "types", "run", "waits")

    def __init__(self, source: TensorType, steps: tuple[Step, ...], type: TensorType) -> None:
        self.steps, self.type = steps, type
        self.run = None
        node: Node = input_node(source)
        start = node
        types = []
        for primitive, params, _ in steps:
            node = primitive(node, **params)
            types.append(node.type)
        self.types = tuple(types) if all(s[0] in SHARING for s in steps[1:]) else None
        self.waits = steps[-1][0] is TRANSPOSE and type.is_static and type.nbytes >= WAITING
        if not all(s[0] in SHARING for s in steps):
            self.run = compile_small(Graph((start,), (node,), steps[-1][0].name), alone=True)


def follow(base: Tensor, route: Route, waits: bool = True) -> Tensor:
    """Return the view of `base` at the end of a route, in plain eager execution.

    With `waits` the value of the view may be computed later. Raises ValueError where `base` has no
    value yet.
    """
    buffer = base._buf
    if waits and route.waits and buffer is not None:
        buffer = None
    elif route.run is not None:
        buffer = route.run(buffer)
    elif buffer is None:
        raise ValueError("no value yet")
    made: Tensor = _new(Tensor)
    made._type, made._buf, made._node = route.type, buffer, None
    view = base._view
    if view is None:
        made._view = View(base, route.steps, route)
    else:
        made._view = view = View(view.root, view.steps + route.steps, None if view.key is None else (view.key, route))
        base = view.root
    family: Family | None = base._views
    if family is None:
        family = family_of(base)
    family.append(ref(made))
    if len(family) > family.limit:
        family.trim()
    return made


def _again(base: Tensor, route: Route) -> Tensor:
    """Return the view of `base` at the end of a route, in the recording in force."""
    recording, node = eager.local.recording, base._node
    if type(node) is not Recorded or node.tape is not recording:
        return follow(base, route, waits=False)
    if type(recording) is Recorder and route.types is not None:
        made = follow(base, route, waits=False)
        # Derivatives of views use no values.
        buffer = None if recording.region is None else made._buf
        for (primitive, params, _), kind in zip(route.steps, route.types):
            node = Recorded(primitive, (node,), params, kind, buffer, recording)
        made._node = node
        return made
    return attach(derived(base, route.steps), base, route.steps, route)


def _route(base: Tensor, made: Any) -> Route | None:
    """Return the route from `base` to `made`; None where it is no view of `base` by known steps."""
    if type(made) is not Tensor or type(made._view) is not View or made._view.root is not root_of(base) or made is base:
        return None
    before = len(base._view.steps) if type(base._view) is View else 0
    steps = made._view.steps[before:]
    if not steps or any(not isinstance(kind, Primitive) or operands for kind, _, operands in steps):
        return None
    return Route(base._type, steps, made._type)


def _routes(base: Tensor, made: Any) -> Any:
    """Return the route, or sequence of routes, from `base` to the result of a call; False where
    there is none.
    """
    if type(made) in (tuple, list) and made:
        routes = [_route(base, m) for m in made]
        return False if any(r is None for r in routes) else (type(made), routes)
    return _route(base, made) or False


def viewing(function: F) -> F:
    """Return `function`, which makes views of its first argument, in a form that repeats known
    routes.
    """

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            reach: Callable[[Tensor, Route], Tensor] = follow
            if eager.active:
                context = eager.local.context
                if context is not None and eager.local.recording is None or precision.active:
                    return function(*args, **kwargs)
                reach = follow if context is None else _again
            base = args[0] if args else None
            if type(base) is not Tensor and type(base) is not Parameter:
                return function(*args, **kwargs)
            view = base._view
            if view is None:
                key: list[Any] = [function, base._type]
            elif type(view) is not View or view.key is None:
                return function(*args, **kwargs)
            else:
                key = [function, base._type, view.key]
            others: list[Tensor] = []
            for value in args[1:]:
                if type(value) is int:
                    key.append(value)
                elif not entry_of(key, others, value):
                    return function(*args, **kwargs)
            for name in kwargs:
                key.append(name)
                if not entry_of(key, others, kwargs[name]):
                    return function(*args, **kwargs)
            known = tuple(key)
            found = _recent.get(known)
            if found is None and (found := _table.get(known)) is None:
                made = function(*args, **kwargs)
                if not others:
                    _table.recall(known, partial(_routes, base, made))
                return made
            if found is False or others:
                return function(*args, **kwargs)
            try:
                if type(found) is Route:
                    return reach(base, found)
                return found[0]([reach(base, route) for route in found[1]])
            except (ValueError, MemoryError):
                return function(*args, **kwargs)
        except Exception as error:
            at_border(error)
            raise

    return cast(F, call)


def basic_key(index: Any) -> Any:
    """Return an index of ints, slices of ints, None and "..." as a key; None for any
    other index.
    """
    if type(index) is slice:
        index = (index,)
    elif type(index) is not tuple:
        return index if type(index) is int else None
    key: list[Any] = []
    for entry in index:
        kind = type(entry)
        if kind is slice:
            for bound in (entry.start, entry.stop, entry.step):
                if bound is not None and type(bound) is not int:
                    return None
            key.append((entry.start, entry.stop, entry.step))
        elif kind is int or entry is None or entry is Ellipsis:
            key.append(entry)
        else:
            return None
    return tuple(key)


def indexing(get: Callable[[Tensor, Any], Tensor]) -> Callable[[Tensor, Any], Tensor]:
    """Return `get`, a function of a tensor and an index, in a form that repeats known routes."""

    def __getitem__(self: Tensor, index: Any) -> Tensor:
        try:
            reach: Callable[[Tensor, Route], Tensor] = follow
            if eager.active and eager.local.context is not None:
                if eager.local.recording is None:
                    return get(self, index)
                reach = _again
            part = index if type(index) is int else basic_key(index)
            if part is None:
                return get(self, index)
            view = self._view
            if view is not None and type(view) is not View:
                return get(self, index)
            key = (get, self._type, part)
            found = _recent.get(key)
            if found is None and (found := _table.get(key)) is None:
                made = get(self, index)
                _table.recall(key, partial(_routes, self, made))
                return made
            if found is False:
                return get(self, index)
            try:
                return reach(self, found)
            except (ValueError, MemoryError):
                return get(self, index)
        except Exception as error:
            at_border(error)
            raise

    return __getitem__
