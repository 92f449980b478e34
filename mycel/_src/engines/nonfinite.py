"""Finds the operation that first gives NaN or infinity (``check_nan=True``).

With ``set_context(check_nan=True)`` every program that the engines compile is *checked*: after a
run its results are examined, in two passes over the memory without a copy. Only where one is not
finite, the same graph runs again on the same inputs, operation by operation, and each value is
examined for NaN and infinity. An *origin* is an operation that gives one of these while its
operands have none of that kind; infinite constants, as masks have, count as operands. The search
goes from the nonfinite results backwards through nonfinite values; it reports the first origin in
the order of execution, forward operations before those of a derivative. Where the origin is a
branch or a loop, its graph is searched in turn; of a loop, the first iteration whose state is not
finite.

Checked programs never overwrite their inputs, so the error leaves every tensor as it was. An
eager operation is a graph of one node. If a function of the library calls it, only that function's
result counts: ``xlogy(0, 0)`` computes log(0) inside and gives 0.
"""

from __future__ import annotations

import sys
import threading
import types
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from mycel._src.compiler.ir.graph import Graph, Node, Where, current_where
from mycel._src.compiler.ir.source_locations import caller, excerpt, library_frames
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.prims.base import CONSTANT, GET_ITEM, REGISTRY
from mycel._src.compiler.prims.control_flow import control
from mycel._src.compiler.prims.control_flow.recursion import bind, recursion
from mycel._src.compiler.prims.control_flow.while_gradient import while_grad
from mycel._src.compiler.prims.custom_derivatives import kept_call
from mycel._src.engines import buffers
from mycel._src.engines.base import current
from mycel._src.engines.operation_by_operation import OneByOne, several
from mycel._src.foundation.bounded_caches import SOME, Remembered
from mycel._src.foundation.errors import NonFiniteError
from mycel._src.foundation.log import logger
from mycel._src.foundation.settings import config

__all__ = ["checked", "examine", "is_on", "kinds_of", "place_now", "program_of"]

NAN, INFINITE = 1, 2
_DEEPEST = 60
_GENERAL = "look at its operands; large values can be scaled or clipped, small divisors kept away from 0"


def is_on() -> bool:
    """Return whether programs are checked."""
    return config._context["check_nan"] is not False


def _wanted() -> int:
    return NAN if config._context["check_nan"] == "nan" else NAN | INFINITE


def place_now() -> Where | None:
    """Return where the user's code is, for nodes of eager operations.

    Returns None unless programs are checked.
    """
    return (current_where() or caller(2)) if is_on() else None


def kinds_of(array: np.ndarray[Any, Any]) -> int:
    """Return which kinds of values an array has: NAN, INFINITE, both or 0."""
    if array.size == 0 or array.dtype.kind not in "fcV":
        return 0
    if array.dtype.kind == "V":
        array = array.astype(np.float32)
    with np.errstate(all="ignore"):
        if array.dtype.kind == "f" and np.isfinite(array.min()) and np.isfinite(array.max()):
            return 0
        return (NAN if np.isnan(array).any() else 0) | (INFINITE if np.isinf(array).any() else 0)


def _state(buffer: Any, type: Any) -> int:
    if not isinstance(type, TensorType) or not type.dtype.is_inexact:
        return 0
    return kinds_of(buffers.to_array(buffer, type)) & _wanted()


def checked(graph: Graph, run: Callable[..., Any], alone: bool) -> Callable[..., Any]:
    """Return a program of a graph that raises NonFiniteError for the first NaN or infinity.

    `run` is the unchecked program. `alone` marks an eager operation, whose place is that of the
    user's code at the time of the call.
    """
    # What a call keeps for its derivative is no result.
    kinds = graph.output_types[: _results_of(graph.outputs)]
    if not any(isinstance(t, TensorType) and t.is_static and t.dtype.is_inexact for t in kinds):
        return run

    def call(*given: Any) -> Any:
        values = run(*given)
        if is_on() and any(_state(v, t) for v, t in zip(several(values), kinds)):
            _report(graph, given, alone)
        return values

    return call


def _results_of(outputs: Sequence[Node]) -> int | None:
    """Return how many outputs of an eager operation are results; None for all."""
    first = outputs[0] if outputs else None
    if first is not None and first.prim is GET_ITEM and first.inputs[0].prim is kept_call:
        return int(first.inputs[0].params["count"])
    return None


_programs = Remembered[Any, Callable[..., Any]]("checked programs", SOME)


def program_of(structure: str, graph: Graph) -> Callable[..., Any]:
    """Return the checked program of a graph, remembered by its structure and its nodes' places."""
    key = (structure, tuple([n.where for n in graph.nodes]), _wanted())
    return _programs.recall(key, lambda: checked(graph, current().compile(graph), False))


def examine(graph: Graph, given: Sequence[Any], values: Sequence[Any]) -> None:
    """Raise NonFiniteError where a graph of static sizes gave a NaN or an infinity in `values`."""
    if any(_state(v, t) for v, t in zip(values, graph.output_types)):
        _report(graph, given, False)


class _Origin(NamedTuple):
    """An operation that gives the first nonfinite values, its operands and results.

    It also has the iteration numbers of the loops around it.
    """

    node: Node
    given: tuple[Any, ...]
    gave: tuple[Any, ...]
    rounds: tuple[tuple[int, Where | None], ...]


class _Search(OneByOne):
    """A run of a graph, operation by operation, that records which values are not finite."""

    def __init__(self) -> None:
        super().__init__()
        self.from_outside = False
        self.depth = 0

    def origins(self, graph: Graph, given: Sequence[Any], rounds: Any = (), count: int | None = None) -> list[_Origin]:
        """Return the origins of nonfinite results of a graph, in the order of execution.

        `given` are the buffers of the inputs, `rounds` the iteration numbers of the loops around
        the graph; the first `count` results are examined (None: all).
        """
        values: dict[Node, Any] = {}
        states: dict[Node, int] = {}
        for node, value in zip(graph.inputs, given):
            values[node], states[node] = value, _state(value, node.type)
            self.from_outside |= bool(states[node])
        uses: dict[Node, int] = {}
        for node in graph.nodes:
            for i in node.inputs:
                uses[i] = uses.get(i, 0) + 1
        found: dict[Node, _Origin] = {}
        items: dict[Node, list[int]] = {}
        for node in graph.nodes:
            before = [values[i] for i in node.inputs]
            values[node] = self.run(node, before)
            if node.prim is GET_ITEM:
                states[node] = items[node.inputs[0]][node.params["index"]]
            else:
                kinds = several(node.type)
                gave = several(values[node])
                items[node] = [_state(v, t) for v, t in zip(gave, kinds)]
                states[node] = _union(items[node])
                if node.prim is CONSTANT:
                    self.from_outside |= bool(states[node])
                elif states[node]:
                    known = _union(states[i] for i in node.inputs)
                    if not known & NAN and states[node] & ~known:
                        found[node] = _Origin(node, tuple(before), gave, rounds)
            for i in node.inputs:
                uses[i] -= 1
                if not uses[i]:
                    values.pop(i)
        reached = _backwards([o for o in graph.outputs[:count] if states[o]], states)
        return [self.inside(found[n]) for n in graph.nodes if n in found and n in reached]

    def inside(self, origin: _Origin) -> _Origin:
        """Return the origin inside the graph of a branch, a loop or a call.

        Returns `origin` itself where it has no graph, or nothing is found in it.
        """
        node, given, rounds = origin.node, origin.given, origin.rounds
        count = node.params.get("count")
        graph: Any = node.params.get("graph")
        if node.prim is recursion:
            graph = bind(graph, node.params["label"], graph)
        elif node.prim is control.cond:
            pred, given = given[0], given[1:]
            taken = bool(buffers.to_array(pred, node.inputs[0].type).reshape(()))
            graph = node.params["true" if taken else "false"]
        elif node.prim is control.while_loop:
            graph = node.params["body"]
            given, number = self.round_of(node, given)
            rounds = (*rounds, (number, node.where))
        elif node.prim is while_grad:
            graph = node.params["backward"]
            given, number = self.round_back(node, given)
            rounds = (*rounds, (number, node.where))
        if self.depth == _DEEPEST or not isinstance(graph, Graph) or len(graph.inputs) != len(given):
            return origin
        self.depth += 1
        found = self.origins(graph, given, rounds, count)
        self.depth -= 1
        return _first(found) if found else origin

    def round_of(self, node: Node, given: Sequence[Any]) -> tuple[tuple[Any, ...], int]:
        """Return the inputs of a loop's body in the first iteration that adds a nonfinite value.

        The number of the iteration, from 1, follows.
        """
        carried = node.params["carried"]
        state, fixed = tuple(given[:carried]), tuple(given[carried:])
        kinds = node.type[:carried]
        test, body = self.program_of(node.params["test"]), self.program_of(node.params["body"])
        test_type = node.params["test"].outputs[0].type
        known = _union(_state(v, i.type) for v, i in zip(given, node.inputs))
        number = 1
        while True:
            after = several(body(*state, *fixed))
            if _union(_state(v, t) for v, t in zip(after, kinds)) & ~known:
                return (*state, *fixed), number
            if not buffers.to_array(several(test(*after, *fixed))[0], test_type).all():
                return (*state, *fixed), number
            state, number = after, number + 1

    def round_back(self, node: Node, given: Sequence[Any]) -> tuple[tuple[Any, ...], int]:
        """Return the inputs of a loop's derivative in the iteration that adds a nonfinite value.

        It is the first such iteration from the last one backwards; its number follows.
        """
        p = node.params
        carried, size = p["carried"], len(p["body"].inputs)
        state, fixed, cts = tuple(given[:carried]), tuple(given[carried:size]), tuple(given[size:])
        test, body, backward = (self.program_of(p[name]) for name in ("test", "body", "backward"))
        test_type, kinds = p["test"].outputs[0].type, p["backward"].output_types
        before: list[tuple[Any, ...]] = []
        while buffers.to_array(several(test(*state, *fixed))[0], test_type).all():
            before.append(state)
            state = several(body(*state, *fixed))
        known = _union(_state(v, i.type) for v, i in zip(given, node.inputs))
        now = (*given,)
        for number in range(len(before), 0, -1):
            now = (*before[number - 1], *fixed, *cts)
            after = several(backward(*now))
            if _union(_state(v, t) for v, t in zip(after, kinds)) & ~known:
                return now, number
            cts = after[: len(p["smooth"])]
        return now, 1


def _union(states: Any) -> int:
    result = 0
    for s in states:
        result |= s
    return result


def _backwards(roots: Sequence[Node], states: dict[Node, int]) -> set[Node]:
    """Return the nonfinite nodes that lead to `roots`, found through nonfinite nodes only."""
    reached: set[Node] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node not in reached:
            reached.add(node)
            stack.extend(i for i in node.inputs if states[i])
    return reached


def _first(found: Sequence[_Origin]) -> _Origin:
    """Return the origin that ran first.

    Forward operations come before their derivatives, and within one file lines decide.
    """
    forward = [o for o in found if o.node.where is None or not o.node.where.gradient]
    if not forward:
        return found[0]
    placed = [(o.node.where, o) for o in forward if o.node.where is not None and o.node.where.file]
    if len(placed) == len(forward) and len({where.file for where, _ in placed}) == 1:
        return min(placed, key=lambda place: place[0][1:3])[1]
    return forward[0]


def _report(graph: Graph, given: Sequence[Any], alone: bool) -> None:
    search = _Search()
    found = search.origins(graph, given, count=_results_of(graph.outputs))
    if not found:
        if search.from_outside:
            if not alone:
                _warn_of_inputs(graph, given)
            return
        raise NonFiniteError(
            f"{graph.name} gives a NaN or an infinity as a whole, and none where its operations run one by one; values "
            "are at the edge of "
            "their type's range: scale them, or use a wider type"
        )
    origin = _first(found)
    at_top = any(origin.node is n for n in graph.nodes)
    where = (None if alone and at_top else origin.node.where) or current_where() or caller(2)
    error = _error(origin, where, len(found))
    if not (alone and at_top):
        raise error
    _raise_from_library(error)


def _error(origin: _Origin, where: Where | None, count: int) -> NonFiniteError:
    node = origin.node
    name = node.op
    kinds = _union(_state(v, t) for v, t in zip(origin.gave, several(node.type)))
    nans, infinities, size = _counts(origin.gave, several(node.type))
    parts = [f"{nans} NaN"] if nans else []
    if kinds & INFINITE:
        parts.append(f"{infinities} infinite value{'' if infinities == 1 else 's'}")
    operands = ", ".join(_shown(v, i.type) for v, i in zip(origin.given, node.inputs))
    gradient = where.gradient if where is not None else ""
    lines = [f"{name} gives {' and '.join(parts)} among {size}: {name}({operands})"]
    if gradient:
        lines.append(f"  in the derivative of {gradient}")
    if where is not None:
        lines.append(excerpt(where))
    for number, loop in reversed(origin.rounds):
        lines.append(f"  in round {number} of the loop" + (f" at {loop}" if loop is not None else ""))
    whose = REGISTRY.get(gradient)
    assert node.prim is not None
    mend = (whose is not None and whose.advice) or node.prim.advice or _GENERAL
    lines.append(f"  {mend}")
    if count > 1:
        lines.append(
            f"  {count - 1} more operation{'s' if count > 2 else ''} of the same run gave such values by themselves"
        )
    rounds = tuple(n for n, _ in origin.rounds)
    kind = "NaN" if kinds & NAN else "infinity"
    return NonFiniteError("\n".join(lines), operation=name, kind=kind, where=where, gradient_of=gradient, rounds=rounds)


def _counts(values: Sequence[Any], kinds: Sequence[Any]) -> tuple[int, int, int]:
    nans = infinities = size = 0
    for v, t in zip(values, kinds):
        if isinstance(t, TensorType) and t.dtype.is_inexact:
            array = buffers.to_array(v, t)
            array = array.astype(np.float32) if array.dtype.kind == "V" else array
            nans += int(np.isnan(array).sum())
            infinities += int(np.isinf(array).sum())
            size += array.size
    return nans, infinities, size


def _shown(value: Any, type: Any) -> str:
    """Return the type of an operand as text, with the range of its values."""
    if not isinstance(type, TensorType) or type.size == 0 or type.dtype.kind not in "iuf":
        return str(type)
    array = buffers.to_array(value, type)
    array = array.astype(np.float32) if array.dtype.kind == "V" else array
    if array.ndim == 0:
        return f"{type} = {array.item():.6g}"
    return f"{type} in [{array.min():.6g}, {array.max():.6g}]"


_warned: set[Any] = set()


def _warn_of_inputs(graph: Graph, given: Sequence[Any]) -> None:
    for node, value in zip(graph.inputs, given):
        kinds = _state(value, node.type)
        name = node.params.get("name", "input")
        if kinds and (graph.name, name) not in _warned:
            _warned.add((graph.name, name))
            what = "a NaN" if kinds & NAN else "an infinity"
            logger.warning(
                "check_nan: %s %s of %s already holds %s; what follows from it is no error",
                name,
                node.type,
                graph.name,
                what,
            )


# Operations inside functions of the library.

_PARTS = (
    "mycel.ops",
    "mycel.numpy",
    "mycel._src.tensors.core.tensor",
    "mycel._src.tensors.core.binary_operators",
    "mycel._src.tensors.core.indexing",
    "mycel._src.tensors.core.index_entries",
    "mycel._src.tensors.core.fused",
    "mycel._src.tensors.core.view_cache",
    "mycel._src.tensors.core.eager",
    "mycel._src.foundation",
    "mycel._src.engines",
    "mycel._src.tensors.core.autograd.recording",
    "mycel._src.tensors.core.autograd.replay",
    "mycel.common",
)
_pending = threading.local()


def _raise_from_library(error: NonFiniteError) -> None:
    """Raise an error if the result of the library function that the user called is not finite.

    The error is raised where that function returns.
    """
    if getattr(_pending, "error", None) is not None:
        return
    outermost: types.FrameType | None = None
    for frame in library_frames(sys._getframe(1)):
        if not frame.f_globals.get("__name__", "").startswith(_PARTS):
            break
        outermost = frame
    if outermost is None or outermost.f_globals.get("__name__") == __name__:
        raise error
    before = sys.getprofile()
    _pending.error = error

    def on_event(frame: types.FrameType, event: str, value: Any) -> None:
        if frame is outermost and event == "return":
            _pending.error = None
            sys.setprofile(before)
            if _holds(value):
                raise error

    sys.setprofile(on_event)


def _holds(value: Any) -> bool:
    """Return whether a function's result has values of the kinds looked for."""
    if isinstance(value, (tuple, list)):
        return any(_holds(v) for v in value)
    buffer = getattr(value, "_buf", None)
    return bool(buffer is not None and _state(buffer, value._type))
