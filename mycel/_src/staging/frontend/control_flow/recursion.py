"""Staging of recursion that ends by a tensor's value, as `recursion` nodes.

A call is such a recursion if the same code is running already, with the same plain arguments and
tensors of the same types, and a branch or loop that depends on a tensor has been opened since:
interpreting it would never end. The function is then staged once, as a graph from fresh inputs to
its results, in which further calls of it are `recur` nodes (`prims.control_flow.recursion`). The
form of its results is found by trial. In the first trial a call of the function itself ends its
path (`Unfinished`), and a fork with one path that ends so goes on with the other. Each later trial
assumes the form of the results of the trial before, with wider types where they differ, until a
trial returns the form that it assumed. Tensors from outside that the body uses become further
operands, which calls pass on.

Mutual recursion needs nothing else: the functions in between are followed until the first one is
called again. Numbers that change from level to level (such as a depth that is counted) become
tensors after `_FOLLOWED` levels, unless the function cannot be staged with them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from mycel._src.compiler.ir.graph import Node, current_where, input_node, set_where
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.prims.control_flow.recursion import recur, recursion
from mycel._src.foundation.errors import CompileError
from mycel._src.staging.frontend.calls.frames import Frame
from mycel._src.staging.frontend.control_flow.branch_join import NUMBERS, common_dtype, describe, node_as, same
from mycel._src.staging.frontend.control_flow.conditionals import closed, free_nodes, outputs_of_call
from mycel._src.staging.frontend.graph_building.stage import Activation, Stage, Unfinished
from mycel._src.staging.frontend.graph_building.stage_state import Scope
from mycel._src.tensors.core.tensor import Tensor, make_staged

__all__ = ["recursive_call"]

_FOLLOWED = 2
_TRIALS = 8
Build = Callable[[Any], Any]


def recursive_call(stage: Stage, frame: Frame) -> list[Any] | None:
    """Return the result of a recursive call, in a list; None for a call to follow as usual."""
    if len(stage.scopes) == stage.active[frame.code][0].scopes and not stage.recursions:
        return None
    key = _key(stage, frame, frame.vars)
    definition = stage.recursions.get(key)
    if definition is not None:
        return [definition.again(frame.vars)]
    levels = 0
    decided = False
    depth = len(stage.scopes)
    before: Activation | None = None
    for activation in reversed(stage.active[frame.code]):
        while depth > activation.scopes:
            depth -= 1
            decided = decided or stage.scopes[depth].is_branch
        if decided:
            before = before or activation
            levels += 1
            if _key(stage, frame, activation.variables) == key:
                return [_Definition(stage, frame, key).call()]
    if before is None or levels < _FOLLOWED or frame.code in stage.followed:
        return None
    return _generalized(stage, frame, before.variables)


def _generalized(stage: Stage, frame: Frame, before: dict[str, Any]) -> list[Any] | None:
    """Return the result of a recursion with tensors in place of the numbers that differ from those
    one level further out.
    """
    variables = dict(frame.vars)
    for name, value in variables.items():
        old = before.get(name)
        if type(value) in (int, float) and type(old) is type(value) and not same(old, value):
            variables[name] = stage.mark_number(stage.literal(value))
    if all(variables[n] is frame.vars[n] for n in variables):
        return None
    general = Frame(variables, frame.outer, frame.globals, frame.cells, stage, frame.code)
    general.owner = frame.owner
    key = _key(stage, general, variables)
    if key in stage.recursions:
        return [stage.recursions[key].again(variables)]
    try:
        return [_Definition(stage, general, key).call()]
    except Unfinished:
        raise
    except CompileError:
        # It may need its numbers: then it has to end by them.
        stage.followed.add(frame.code)
        return None


def _key(stage: Stage, frame: Frame, variables: dict[str, Any]) -> Any:
    cells = tuple(map(id, frame.cells.values())) if frame.cells else ()
    return frame.code, id(frame.outer), cells, tuple([(n, _form(stage, v)) for n, v in variables.items()])


def _form(stage: Stage, value: Any) -> Any:
    """Return the form by which arguments of a recursion are compared: types of tensors, forms of
    containers, plain values, and other objects by identity.
    """
    if isinstance(value, Tensor):
        return value._type, stage.is_number(value)
    kind = type(value)
    if kind is float:
        return kind, value.hex()
    if kind in (bool, int, complex, str, bytes, type(None)):
        return kind, value
    if isinstance(value, (tuple, list)):
        return kind, tuple([_form(stage, v) for v in value])
    if kind is dict or kind is OrderedDict:
        return kind, tuple([(k, _form(stage, v)) for k, v in value.items()])
    return kind, id(value)


class _Part:
    """The form of a tensor among the results: its type, and whether it stands for a
    Python number.
    """

    __slots__ = ("type", "is_number")

    def __init__(self, type: TensorType, is_number: bool) -> None:
        self.type, self.is_number = type, is_number


_UNKNOWN: Any = object()


class _Definition:
    """A recursive function while it is staged."""

    def __init__(self, stage: Stage, frame: Frame, key: Any) -> None:
        self.stage, self.frame, self.key = stage, frame, key
        self.where = current_where()
        self.name = frame.code.name
        self.label = f"{self.name} {frame.code.line}.{len(stage.recursions)}"
        self.result: Any = _UNKNOWN
        self.free: dict[Node, None] = {}

    # Calls.

    def call(self) -> Any:
        """Return the result of the call with which the recursion begins."""
        stage = self.stage
        stage.recursions[self.key] = self
        try:
            for _ in range(_TRIALS):
                try:
                    graph = self.trial()
                except Unfinished as error:
                    if error.args[1] is self:
                        raise CompileError(error.args[0]) from None
                    raise
                if graph is not None:
                    break
            else:
                raise CompileError(
                    f"{self.where}: the types of what {self.name} returns do not settle; give its results one type on "
                    "every path"
                )
        finally:
            del stage.recursions[self.key]
        set_where(self.where)
        operands = self.operands(self.frame.vars)
        return self.results(recursion.node(*operands, graph=graph, label=self.label))

    def again(self, variables: dict[str, Any]) -> Any:
        """Return the result of a call from inside."""
        if self.result is _UNKNOWN:
            raise Unfinished(f"{current_where()}: {self.name} calls itself on every path, so that it never ends", self)
        return self.results(recur.node(*self.operands(variables), label=self.label, types=tuple(self.types())))

    def operands(self, variables: dict[str, Any]) -> list[Node]:
        found: list[Tensor] = []
        for value in variables.values():
            _tensors(value, found)
        return [*[self.stage.node_of(t) for t in found], *self.free]

    def results(self, node: Node) -> Any:
        parts = iter(outputs_of_call(self.stage, node))
        return self.rebuilt(self.result, parts)

    def rebuilt(self, form: Any, parts: Any) -> Any:
        stage = self.stage
        if isinstance(form, _Part):
            made = make_staged(next(parts))
            return stage.mark_number(made) if form.is_number else made
        kind = type(form)
        if isinstance(form, tuple):
            values = [self.rebuilt(v, parts) for v in form]
            return kind(*values) if hasattr(kind, "_fields") else kind(values)
        if kind is list:
            return stage.created([self.rebuilt(v, parts) for v in form])
        if kind is dict or kind is OrderedDict:
            return stage.created(kind((k, self.rebuilt(v, parts)) for k, v in form.items()))
        return form

    def types(self) -> list[TensorType]:
        found: list[TensorType] = []
        _collect(self.result, found)
        return found

    # Trials.

    def trial(self) -> Any:
        """Stage the body once; return its graph if its results have the expected form, else
        None.
        """
        stage, frame = self.stage, self.frame
        scope = Scope(True)
        entered: list[tuple[Node, Tensor]] = []
        variables = {n: self.enter(v, scope, entered, n) for n, v in frame.vars.items()}
        inner = Frame(variables, frame.outer, frame.globals, frame.cells, stage, frame.code)
        inner.owner = frame.owner
        place = current_where()
        changes: Any = {}
        with stage.inside(scope):
            try:
                result = frame.code.run(inner)
                expected = self.result
                self.result = self.formed(result) if expected is _UNKNOWN else self.met(expected, result, "the result")
                settled = expected is not _UNKNOWN and _equal(self.result, expected)
                outputs: list[Node] = []
                self.nodes(self.result, result, scope, outputs)
            finally:
                changes = scope.take_back(stage)
                set_where(place)
        for effect, _ in changes.values():
            raise CompileError(
                f"{self.where}: {self.name} changes {effect}, and a tensor decides how often it calls itself; "
                "pass what changes as an argument and return it"
            )
        inputs = [node for node, _ in entered]
        for node, t in entered:
            if t._node is not node:
                raise CompileError(
                    f"{self.where}: {self.name} writes into an argument, and a tensor decides how often it calls "
                    "itself; "
                    "return the new tensor instead"
                )
        for node in free_nodes(stage, outputs, inputs)[0]:
            if node not in self.free:
                self.free[node] = None
                settled = False
        return closed(outputs, [*inputs, *self.free], self.name) if settled else None

    def enter(self, value: Any, scope: Scope, entered: list[tuple[Node, Tensor]], name: str) -> Any:
        """Return the argument `value` with fresh inputs in place of its tensors.

        The inputs are named `name` and belong to `scope`; they are added to `entered` with their
        tensors.
        """
        if isinstance(value, Tensor):
            node = input_node(value._type, name)
            scope.own.add(node)
            made = make_staged(node)
            if self.stage.is_number(value):
                self.stage.mark_number(made)
            entered.append((node, made))
            return made
        kind = type(value)
        if isinstance(value, tuple) or kind is list:
            items = [self.enter(v, scope, entered, name) for v in value]
            return kind(*items) if hasattr(kind, "_fields") else kind(items)
        if kind is dict or kind is OrderedDict:
            return kind((k, self.enter(v, scope, entered, name)) for k, v in value.items())
        return value

    # Forms of results.

    def formed(self, value: Any) -> Any:
        """Return the form of a result, with parts in place of tensors."""
        if isinstance(value, Tensor):
            return _Part(value._type, self.stage.is_number(value))
        kind = type(value)
        if isinstance(value, tuple):
            items = [self.formed(v) for v in value]
            return kind(*items) if hasattr(kind, "_fields") else kind(items)
        if kind is list:
            return [self.formed(v) for v in value]
        if kind is dict or kind is OrderedDict:
            return kind((k, self.formed(v)) for k, v in value.items())
        return value

    def met(self, form: Any, value: Any, what: str) -> Any:
        """Return the common form of an expected form and a result; `what` names it in errors."""
        kind = type(form)
        if isinstance(form, _Part) or isinstance(value, Tensor):
            return self.met_tensors(form, value, what)
        if isinstance(form, tuple) and type(value) is kind and len(value) == len(form):
            items = [self.met(f, v, f"{what}[{i}]") for i, (f, v) in enumerate(zip(form, value))]
            return kind(*items) if hasattr(kind, "_fields") else kind(items)
        if kind is list and type(value) is list and len(value) == len(form):
            return [self.met(f, v, f"{what}[{i}]") for i, (f, v) in enumerate(zip(form, value))]
        if kind in (dict, OrderedDict) and type(value) is kind and list(value) == list(form):
            return kind((k, self.met(form[k], value[k], f"{what}[{k!r}]")) for k in form)
        if same(form, value):
            return form
        if kind in NUMBERS and type(value) in NUMBERS:
            return _Part(self.stage.literal(0, common_dtype(form, value))._type, True)
        raise CompileError(
            f"{self.where}: {what} of {self.name} is {describe(form)} on one path and {describe(value)} on another; "
            "a tensor decides which, so both must be tensors of one type, or the same value"
        )

    def met_tensors(self, form: Any, value: Any, what: str) -> _Part:
        stage = self.stage
        a = make_staged(input_node(form.type)) if isinstance(form, _Part) else form
        for v in (a, value):
            if not isinstance(v, Tensor) and type(v) not in NUMBERS:
                raise CompileError(
                    f"{self.where}: {what} of {self.name} is a tensor on one path and {describe(v)} on another; "
                    "return tensors of one type on every path"
                )
        shapes = [v.shape if isinstance(v, Tensor) else () for v in (a, value)]
        if shapes[0] != shapes[1]:
            raise CompileError(
                f"{self.where}: {what} of {self.name} has shape {shapes[0]} on one path and {shapes[1]} on another; "
                "a tensor decides which, so both must have one shape"
            )
        is_number = (form.is_number if isinstance(form, _Part) else True) and stage.is_number(value)
        return _Part((a if isinstance(a, Tensor) else value)._type.with_dtype(common_dtype(a, value)), is_number)

    def nodes(self, form: Any, value: Any, scope: Scope, found: list[Node]) -> None:
        """Add the nodes of the result `value` to `found`, converted to the types of its `form`.

        Conversions belong to `scope`.
        """
        if isinstance(form, _Part):
            found.append(node_as(self.stage, value, form.type.dtype, scope))
        elif isinstance(form, (tuple, list)):
            for f, v in zip(form, value):
                self.nodes(f, v, scope, found)
        elif isinstance(form, dict):
            for k, f in form.items():
                self.nodes(f, value[k], scope, found)


def _tensors(value: Any, found: list[Tensor]) -> None:
    """Add the tensors of an argument to `found`."""
    if isinstance(value, Tensor):
        found.append(value)
    elif isinstance(value, (tuple, list)):
        for v in value:
            _tensors(v, found)
    elif isinstance(value, dict):
        for v in value.values():
            _tensors(v, found)


def _collect(form: Any, found: list[TensorType]) -> None:
    if isinstance(form, _Part):
        found.append(form.type)
    elif isinstance(form, (tuple, list)):
        for f in form:
            _collect(f, found)
    elif isinstance(form, dict):
        for f in form.values():
            _collect(f, found)


def _equal(a: Any, b: Any) -> bool:
    """Return whether two forms of results are the same."""
    if isinstance(a, _Part) or isinstance(b, _Part):
        return isinstance(a, _Part) and isinstance(b, _Part) and a.type is b.type and a.is_number == b.is_number
    if isinstance(a, (tuple, list)):
        return type(a) is type(b) and len(a) == len(b) and all(map(_equal, a, b))
    if isinstance(a, dict):
        return type(a) is type(b) and list(a) == list(b) and all(_equal(a[k], b[k]) for k in a)
    return same(a, b)
