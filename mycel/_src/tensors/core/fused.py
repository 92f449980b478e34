"""`fused`: composite functions that eager execution runs as one compiled program.

A function marked `fused` is composed of primitives. Called eagerly it is traced once for each
combination of element types, shapes and other arguments, and later calls run one compiled graph.
While a gradient is recorded that graph is one node, which keeps the values that its derivative
needs (`transforms.residuals`). Everywhere else (staged, in a Cell with a precision, where values
are checked) the function itself runs.

The function itself also runs for calls that cannot be traced, because it does more than apply
primitives to its arguments and to numbers (it asks for a value, writes, makes views, returns an
argument), or because it raises an error, which is then raised as usual.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any, Literal, TypeVar, cast

import numpy as np

from mycel._src.compiler.ir.graph import Graph, Node, input_node, substitute
from mycel._src.compiler.ir.structural_hash import structural_hash
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.prims.base import Primitive, constant, outputs_of
from mycel._src.compiler.prims.control_flow import control
from mycel._src.compiler.prims.custom_derivatives import kept_call
from mycel._src.compiler.prims.matrix_product import matmul
from mycel._src.compiler.transforms.residuals import link
from mycel._src.engines import buffers
from mycel._src.engines.select import compile_small
from mycel._src.foundation.bounded_caches import MANY, SOME, Remembered
from mycel._src.foundation.dtype import DType
from mycel._src.foundation.errors import named
from mycel._src.foundation.log import logger
from mycel._src.foundation.python_runtime.tracebacks import at_border
from mycel._src.foundation.settings import config
from mycel._src.tensors.core import eager, precision
from mycel._src.tensors.core.autograd.recorded_node import Recorded
from mycel._src.tensors.core.autograd.recording import Recorder
from mycel._src.tensors.core.execution_context import Context, Staging
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor, make, make_staged
from mycel._src.tensors.core.views import View

__all__ = ["entry_of", "fused", "graph_of"]

F = TypeVar("F", bound=Callable[..., Any])
V = TypeVar("V")
NODES = 1 << 16  # of the graphs of all calls that are kept
VARIETY = 16  # calls that differ in numbers alone and are compiled; further ones run op by op
_NUMBERS = frozenset((bool, int, float))
_AS_THEY_ARE = frozenset((type(None), str, DType, type, type(Ellipsis)))
_loops = Remembered[str, Graph]("loops of functions", SOME)
_varieties = Remembered[Any, int]("calls that differ in numbers", MANY)


class _Calls(Remembered[Any, Any]):
    """Calls by function, types and other arguments: a `_Call`, or False for what is not one
    program.

    The table is bounded by the nodes of its graphs as well: a program of many has megabytes.
    """

    __slots__ = ("nodes",)

    def __init__(self) -> None:
        super().__init__("functions as programs", MANY, config.COMPILED_ANEW)
        self.nodes = 0

    def _entered(self, key: Any, value: Any, since: object) -> Any:
        found = super()._entered(key, value, since)
        self.nodes += len(found.graph.nodes) if found else 1
        return found

    def is_full(self) -> bool:
        return super().is_full() or self.nodes >= NODES // 2

    def emptied(self) -> None:
        self.nodes = 0
        _varieties.forget()
        for table in list(_near):
            table.clear()


# The recent calls of each function once more, without the function in the key.
_near: list[dict[tuple[Any, ...], Any]] = []
_calls = _Calls()


class _Refused(Exception):
    """Raised where a function does something that cannot be part of one graph of its arguments."""


class _Tracing(Context, Staging):
    """A context in which applied primitives become nodes of one graph.

    Anything else that the traced function asks for ends the tracing.
    """

    does = "makes nodes of operations"
    is_staging = True

    @property
    def staging(self) -> Staging:
        return self

    def emit(self, primitive: Primitive, inputs: Sequence[Tensor], params: dict[str, Any]) -> Any:
        if primitive.effect:
            raise _Refused(primitive.name)
        made = outputs_of(primitive.node(*[self._node(t) for t in inputs], **params))
        return tuple([make_staged(n) for n in made]) if isinstance(made, tuple) else make_staged(made)

    def _node(self, t: Tensor) -> Node:
        if t._node is None or t._buf is not None or t._view is not None:
            raise _Refused("a tensor that is no argument")
        return t._node

    def literal(self, value: Any, dtype: Any = None) -> Tensor:
        return make_staged(constant(value, dtype))

    def created(self, value: V) -> V:
        if not isinstance(value, Tensor):
            raise _Refused("an object of the program's")
        value._node, value._buf = constant(buffers.to_array(value._buf, value._type)), None
        return value

    def node_of(self, t: Tensor) -> Node:
        raise _Refused("a tensor's node")

    def need_value(self, t: Tensor, what: str) -> np.ndarray[Any, Any]:
        raise _Refused(what)

    def invoke(self, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        raise _Refused("a function of the user's")

    def track(self, t: Tensor) -> None:
        """Do nothing, as tensors get no value later."""

    def viewed(self, t: Tensor) -> None:
        raise _Refused("a view")

    def before_draw(self, state: Tensor) -> None:
        raise _Refused("a draw")

    def refusal(self, what: str) -> Exception:
        return _Refused(what)


class _Call:
    """A traced call: its graph, the program that runs it and the types of the results (one, or
    several with the kind of their sequence).

    `only` is the primitive that the graph applies to its inputs with its parameters, where it does
    nothing else; `views` has the programs for operands that are views without a value, and `smooth`
    are the inputs that may have a gradient, and `kept` has what runs while
    recording, by the inputs that do as a mask.
    """

    __slots__ = ("graph", "run", "result", "kind", "only", "views", "smooth", "kept")

    def __init__(self, graph: Graph, kind: type | None) -> None:
        self.graph, self.kind = graph, kind
        self.run = compile_small(graph)
        types = graph.output_types
        self.result: Any = types[0] if kind is None else types
        self.only: Any = None
        node = graph.outputs[0]
        if kind is None and node.inputs == graph.inputs and node.prim not in (control.call, kept_call):
            self.only = node.prim, node.params
        self.views: dict[Any, Any] | None = {} if any(n.prim is matmul for n in graph.nodes) else None
        self.smooth = tuple([bool(i.type.dtype.is_differentiable) for i in graph.inputs])
        self.kept: dict[int, Any] = {}

    def results(self, values: Any) -> Any:
        if self.kind is None:
            return make(self.result, values)
        return self.kind([make(t, v) for t, v in zip(self.result, values if type(values) is tuple else (values,))])

    def through_views(self, tensors: Sequence[Tensor]) -> Any:
        """Run a product whose operands may be views that have no value yet, on their roots.

        Returns None where another value is missing.
        """
        if self.views is None:
            return None
        key: list[Any] = []
        roots = []
        for t in tensors:
            view = t._view if t._buf is None else None
            if view is None:
                key.append(None)
            elif type(view) is not View or view.key is None:
                return None
            else:
                key.append((view.root._type, view.key))
                t = view.root
            roots.append(t._buf)
        if None in roots:
            return None
        known = tuple(key)
        run = self.views.get(known)
        if run is None:
            if len(self.views) >= VARIETY:
                return None
            run = self.views[known] = self._on_roots(tensors)
        return self.results(run(*roots))

    def _on_roots(self, tensors: Sequence[Tensor]) -> Any:
        """Return the program for operands that are views, of their roots."""
        inputs, image = [], {}
        for t, own in zip(tensors, self.graph.inputs):
            node = own
            if t._buf is None:
                node = input_node(t._view.root._type)
                image[own] = node
                for primitive, params, _ in t._view.steps:
                    image[own] = primitive(image[own], **params)
            inputs.append(node)
        return compile_small(Graph(inputs, substitute(self.graph.outputs, image), self.graph.name))

    def recorded(self, recorder: Recorder, tensors: Sequence[Tensor]) -> Any:
        """Run the call as one node of a recording."""
        if self.only is not None:
            result = make(self.result, self.run(*[t._buf for t in tensors]))
            recorder.enter(self.only[0], tensors, self.only[1], result)
            return result
        mask, bit = 0, 1
        nodes = []
        for t, smooth in zip(tensors, self.smooth):
            node: Any = t._node
            if type(node) is not Recorded or node.tape is not recorder:
                node = None
            elif smooth:
                mask += bit
            nodes.append(node)
            bit += bit
        buffers = [t._buf for t in tensors]
        if not mask:
            return self.results(self.run(*buffers))
        found = self.kept.get(mask)
        if found is None:
            known = link(self.graph, [i for i in range(len(nodes)) if mask >> i & 1])
            params = {"graph": known.graph, "count": known.count, "link": known}
            found = self.kept[mask] = compile_small(known.graph), known.graph.output_types, params
        run, types, params = found
        values = run(*buffers)
        made = recorder.enter_call(tensors, nodes, params, types, values if type(values) is tuple else (values,))
        return made[0] if self.kind is None else self.kind(made)


def _traced(function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> _Call | Literal[False]:
    """Return the call as one graph; False where it cannot be one."""
    inputs: list[Node] = []

    def stand_in(value: Any) -> Any:
        if isinstance(value, Tensor):
            inputs.append(input_node(value._type))
            return make_staged(inputs[-1])
        if type(value) in (tuple, list):
            return type(value)([stand_in(v) for v in value])
        return value

    context = _Tracing()
    given = [stand_in(a) for a in args]
    named = {k: stand_in(v) for k, v in kwargs.items()}
    try:
        with eager.use_context(context):
            out = function(*given, **named)
        kind = type(out) if type(out) in (tuple, list) else None
        leaves = out if kind is not None else (out,)
        nodes = [context._node(t) for t in leaves]
        if not nodes or len(set(nodes)) < len(nodes) or any(n.prim is None or not n.type.is_static for n in nodes):
            return False
        return _Call(Graph(inputs, nodes, function.__name__), kind)
    except Exception as error:
        logger.debug("%s is not run as one program: %s", function.__name__, error)
        return False


def graph_of(function: Callable[..., Any], types: Sequence[TensorType]) -> Graph:
    """Return the graph of `function`, which takes tensors of these types and returns a tuple of
    tensors; it is used as the body of a loop.

    Outside of staging, graphs of the same structure are one object, so that the loop's program is
    found again at the next call.
    """
    inputs = [input_node(t) for t in types]
    around, context = eager.current_context(), _Tracing()
    with eager.use_context(context):
        results = function(*[make_staged(i) for i in inputs])
        graph = Graph(inputs, [context._node(t) for t in results], function.__name__)
    if (around is not None and around.is_staging) or not all(t.is_static for t in types):
        return graph
    return _loops.enter(structural_hash(graph), graph)


def entry_of(key: list[Any], tensors: list[Tensor], value: Any) -> bool:
    """Add an argument to the key of a call and its tensors to `tensors`.

    Returns False for an argument that cannot be part of a key.
    """
    kind = type(value)
    if kind is Tensor or kind is Parameter:
        key.append(value._type)
        tensors.append(value)
    elif kind in _AS_THEY_ARE:
        key.append(value)
    elif kind in _NUMBERS:
        key.append(kind)
        # -0.0 equals 0.0, and NaN not even itself.
        key.append(repr(value) if kind is float and (value == 0.0 or value != value) else value)
    elif kind is tuple or kind is list:
        key.append(kind)
        key.append(len(value))
        for v in value:
            if not entry_of(key, tensors, v):
                return False
    else:
        return False
    return True


def fused(function: F) -> F:
    """Return `function` in a form that eager execution runs as one program."""

    def known_or_new(key: tuple[Any, ...]) -> bool | None:
        """Return None for a call that is to be traced.

        Returns False where values are checked, or where many calls differ in numbers alone.
        """
        if config._context["check_nan"] is not False:
            return False
        kinds = tuple([None if type(k) in _NUMBERS else k for k in key])
        if kinds == key:
            return None  # it was forgotten for want of room
        count = (_varieties.get(kinds) or 0) + 1
        _varieties.replace(kinds, count)
        return None if count <= VARIETY else False

    def recalled(known: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return what is remembered of a call that is not near, or what a first trace gives."""
        key, since = (function, *known), _calls.since
        found = _calls.get(key)
        if found is None:
            found = known_or_new(key)
            if found is not None:
                return found
            found = _calls.recall(key, partial(_traced, function, args, kwargs))
        near[known] = found
        if _calls.since is not since:
            near.pop(known, None)
        return found

    near: dict[tuple[Any, ...], Any] = {}
    _near.append(near)
    plain = named(function)

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            recorder: Recorder | None = None
            if eager.active:
                context = eager.local.context
                if type(context) is Recorder:
                    recorder = context
                if precision.active or context is not recorder:
                    return plain(*args, **kwargs)
            key: list[Any] = []
            tensors: list[Tensor] = []
            for value in args:
                kind = type(value)
                if kind is Tensor:
                    key.append(value._type)
                    tensors.append(value)
                elif not entry_of(key, tensors, value):
                    return plain(*args, **kwargs)
            if kwargs:
                for name, value in kwargs.items():
                    key.append(name)
                    if not entry_of(key, tensors, value):
                        return plain(*args, **kwargs)
            known = tuple(key)
            found: Any = near.get(known)
            if found is None:
                found = recalled(known, args, kwargs)
            if found is False:
                return plain(*args, **kwargs)
            try:
                if recorder is not None:
                    return found.recorded(recorder, tensors)
                values = found.run(*[t._buf for t in tensors])
            except (ValueError, MemoryError) as error:
                made = found.through_views(tensors) if recorder is None and type(error) is ValueError else None
                # A value has to be computed first, or memory is short: the function raises this.
                return plain(*args, **kwargs) if made is None else made
            return make(found.result, values) if found.kind is None else found.results(values)
        except Exception as error:
            at_border(error)
            raise

    return cast(F, call)
