"""Staging of branches on a tensor's value, as `cond` or `select` nodes.

Each branch is staged in a scope of its own. Then its changes are undone, and the two branches are
*joined*: variables, journaled changes and the way the block was left. Values that differ must be
tensors (or numbers, which become tensors) of one type; they become the outputs of a `cond`, or of a
`select` where neither branch computes anything. Containers are joined item by item.

A signal says how a block was left: None, BREAK, CONTINUE, a `Return`, or, where that depends on a
tensor, a `Dynamic`: an int32 code tensor (0 goes on, 1 break, 2 continue, 3 return) with the value
that a return would have. `after` runs the rest of a block under ``code == 0``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Graph, Node, Where, current_where, input_node, set_where, substitute
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims.base import constant, get_item
from mycel._src.compiler.prims.control_flow import control
from mycel._src.compiler.prims.shape import reshape
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import CompileError, NeedsValue, VmapError
from mycel._src.staging.frontend.calls import operator_methods
from mycel._src.staging.frontend.calls.frames import Undefined
from mycel._src.staging.frontend.control_flow.branch_join import Choice, Joiner, placeholder
from mycel._src.staging.frontend.graph_building.stage import Stage, Unfinished, is_constant, is_staged
from mycel._src.staging.frontend.graph_building.stage_state import MISSING, Effect, Scope
from mycel._src.staging.frontend.source_code.tracebacks import carry, keep_position
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.tensor import Tensor, make_staged

__all__ = ["BREAK", "CONTINUE", "Choice", "Dynamic", "Return"]

Run = Callable[[Any], Any]
_DEEPEST_FORK = 60


class _Signal:
    def __init__(self, name: str, code: int) -> None:
        self.name, self.code = name, code

    def __repr__(self) -> str:
        return self.name


BREAK = _Signal("break", 1)
CONTINUE = _Signal("continue", 2)


class Return:
    """The signal of a return, with its value."""

    __slots__ = ("value",)
    code = 3

    def __init__(self, value: Any) -> None:
        self.value = value


class Dynamic:
    """The signal of a block that was left in a way that depends on a tensor: the code, the possible
    codes, and the value of a return.
    """

    __slots__ = ("code", "kinds", "value")

    def __init__(self, code: Tensor, kinds: frozenset[int], value: Any = MISSING) -> None:
        self.code, self.kinds, self.value = code, kinds, value


def kinds_of(signal: Any) -> frozenset[int]:
    if signal is None:
        return frozenset((0,))
    return signal.kinds if type(signal) is Dynamic else frozenset((signal.code,))


def value_of(signal: Any) -> Any:
    return signal.value if type(signal) in (Return, Dynamic) else MISSING


def make_signal(kinds: frozenset[int], code: Any, value: Any) -> Any:
    """Return the simplest signal for these possible codes."""
    if len(kinds) > 1:
        return Dynamic(code(), kinds, value)
    (kind,) = kinds
    return (None, BREAK, CONTINUE, Return(value))[kind]


# Truth.


def _stage(f: Any) -> Stage:
    stage: Stage | None = f.stage
    assert stage is not None
    return stage


def truth(f: Any, value: Any, where: Where) -> Any:
    """Return the truth of a value: a bool, or a staged boolean if it depends on a tensor."""
    if value is True or value is False:
        return value
    if not isinstance(value, Tensor) or f.stage is None:
        return operator_methods.truth_of(f.stage, value)
    stage = f.stage
    node = stage.node_of(value) if is_staged(value) else None
    if node is None:
        if value._buf is not None and stage.is_fresh(value):
            return bool(value)
        node = stage.node_of(value)
    if is_constant(node):
        return bool(value)
    set_where(where)
    if value.size != 1:
        raise ValueError(f"the truth of a tensor of shape {value.shape} is not defined; use .any() or .all()")
    if node.dtype is D.bool_ and node.shape == ():
        return value if value._buf is None else make_staged(node)
    if node.dtype is not D.bool_:
        node = E.ne(node, 0)
    if node.shape != ():
        node = reshape(node, ())
    stage.adopt([node])
    return make_staged(node)


def static_truth(f: Any, value: Any, where: Where, what: str) -> bool:
    """Return the truth of `value` as a bool, in code of the frame `f` at the place `where`.

    Raises CompileError if the truth depends on a tensor; `what` describes the decision in it.
    """
    found = truth(f, value, where)
    if isinstance(found, Tensor) and f.stage.may_decide:
        return bool(f.stage.decide(found))
    if isinstance(found, Tensor):
        if f.stage.levels:
            f.stage.levels[-1].refuse(f.stage, f.stage.node_of(found), what)
        raise CompileError(
            f"{where}: {what} depends on the value of a tensor, which is computed only when the compiled function "
            "runs; "
            "move it outside, or use ops.where"
        )
    return bool(found)


def negate(f: Any, value: Any, where: Where) -> Any:
    """Return ``not value``."""
    found = truth(f, value, where)
    return eager.apply(E.logical_not, found) if isinstance(found, Tensor) else not found


def connect(f: Any, decided: Tensor, value: Any, is_and: bool, rest: Run, where: Where) -> Any:
    """Return ``value and rest`` if `is_and`, else ``value or rest``.

    `decided` is the truth of `value`, a staged boolean; `rest` computes the other operand in the
    frame `f`, and `where` is the place of the expression.
    """
    if is_and:
        return fork_value(f, decided, rest, lambda g: value, where, is_and)
    return fork_value(f, decided, lambda g: value, rest, where, is_and)


def fork_value(f: Any, pred: Tensor, true: Run, false: Run, where: Where | None, connective: bool | None = None) -> Any:
    """Return the value of one of two expressions, `true` or `false`, in the frame `f`.

    `pred`, `where` and `connective` are those of `fork`.
    """
    signal = fork(f, pred, lambda g: Return(true(g)), lambda g: Return(false(g)), where, connective)
    return signal.value


def then(first: Run, rest: Run) -> Run:
    """Return the sequence of two blocks; the second runs where the first is not left early."""

    def run(f: Any) -> Any:
        signal = first(f)
        if signal is None:
            return rest(f)
        return after(f, signal, rest) if type(signal) is Dynamic else signal

    return run


def after(f: Any, signal: Dynamic, rest: Run) -> Any:
    """Return the signal of a block that ended with `signal` and of `rest`, which follows it where
    it was not left.
    """
    others = signal.kinds - {0}
    if 0 not in signal.kinds:
        return signal
    if not others:
        return rest(f)
    left = make_signal(others, lambda: signal.code, signal.value)
    where = current_where()
    return fork(f, code_equals(f, signal.code, 0), rest, lambda g: left, where)


def code_equals(f: Any, code: Tensor, number: int) -> Tensor:
    return eager.apply(E.eq, code, _stage(f).literal(number, D.int32))


def result_of(f: Any, signal: Any) -> Any:
    """Return the result of a function whose body ended with a signal."""
    if signal.kinds <= {3}:
        return signal.value
    if f.stage is not None and f.stage.may_decide:
        signal = settled(f.stage, signal)
        return signal.value if type(signal) is Return else None
    if signal.value is None or signal.value is MISSING:
        return None
    raise CompileError(
        f"whether {f.code.name} returns a value or None is decided by a tensor; return a value on every path"
    )


# Functions that a tensor chooses.


def call_chosen(stage: Stage, choice: Choice, args: Any, kwargs: dict[str, Any]) -> Any:
    """Call the one of two functions that a tensor chooses, with `args` and `kwargs`.

    `choice` has both functions and the tensor; `stage` stages both calls.
    """
    return fork_value(
        _Anonymous(stage),
        choice.pred,
        lambda g: stage.invoke(choice.true, args, kwargs),
        lambda g: stage.invoke(choice.false, args, kwargs),
        current_where(),
    )


class _Anonymous:
    """A frame without variables, for forks outside any function."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.vars: dict[str, Any] = {}
        self.undefined: dict[str, Undefined] | None = None


# Forks.


class _Branch:
    """One staged branch: its signal, its variables and its changes, which have been undone."""

    def __init__(self, f: Any, run: Run) -> None:
        stage = f.stage
        before, undefined = dict(f.vars), f.undefined
        self.scope = Scope(True)
        place = current_where()
        with stage.inside(self.scope):
            try:
                self.signal = run(f)
                self.vars = dict(f.vars)
                self.undefined = f.undefined or {}
            except (CompileError, NeedsValue, VmapError) as error:
                keep_position(error)
                raise
            except RecursionError:
                raise CompileError(
                    f"{place}: a recursion does not end while it is compiled, as a tensor decides its end; write it as "
                    "a loop"
                ) from None
            except Exception as error:
                raise carry(error, "in a branch that a tensor decides") from error
            finally:
                self.changes = self.scope.take_back(stage)
                f.vars.clear()
                f.vars.update(before)
                f.undefined = undefined
                set_where(place)

    def state(self, name: str) -> tuple[Any, Any]:
        """Return the value of a variable at the end of the branch, and whether it is set."""
        if name in self.vars:
            return self.vars[name], True
        found = self.undefined.get(name)
        return (MISSING, False) if found is None or found.flag is None else (found.value, found.flag)


def settled(stage: Stage, signal: Any) -> Any:
    """Return a signal without a code tensor, whose value must be known."""
    if type(signal) is not Dynamic:
        return signal
    return (None, BREAK, CONTINUE, Return(signal.value))[int(stage.need_value(signal.code, ""))]


def fork(f: Any, pred: Tensor, true: Run, false: Run, where: Where | None, connective: bool | None = None) -> Any:
    """Stage two pieces of a program, join them, and return the signal with which they end.

    `true` and `false` run in the frame `f`; `pred` is the boolean tensor that chooses between them,
    and `where` the place of the condition. `connective` is True for `and`, False for `or`, and None
    for other conditions.
    """
    stage = _stage(f)
    if not stage.may_decide:
        return _fork(f, pred, true, false, where, connective)
    staged = lambda: _fork(f, pred, true, false, where, connective)
    return stage.attempt(where, staged, lambda: (true if stage.decide(pred, "") else false)(f))


def _fork(f: Any, pred: Tensor, true: Run, false: Run, where: Where | None, connective: bool | None) -> Any:
    stage = _stage(f)
    set_where(where)
    if len(stage.scopes) > _DEEPEST_FORK:
        raise CompileError(
            f"{where}: conditions that tensors decide nest more than {_DEEPEST_FORK} deep; "
            "a recursion must end by plain Python values, or be written as a loop"
        )
    try:
        a = _Branch(f, true)
    except Unfinished:
        return false(f)
    try:
        b = _Branch(f, false)
    except Unfinished:
        return true(f)
    branches = (a, b)
    joiner = Joiner(stage, a.scope, b.scope)
    joiner.pred = pred
    with stage.inside(Scope(True)):
        variables, undefined = _join_variables(f, joiner, a, b)
        effects = _join_effects(f, joiner, a, b)
        signal = _join_signals(stage, joiner, a.signal, b.signal)
        joiner.settle()
        extra = stage.scope
    stage.scope.own.update(extra.own)
    outputs = _emit(stage, pred, joiner, branches, connective)
    joiner.tell(outputs)
    for branch in branches:
        stage.scope.fresh.update(branch.scope.fresh)
    for name, build in variables.items():
        f.vars[name] = build(outputs)
    for name, found in undefined.items():
        f.vars.pop(name, None)
        if found.flag is not None:
            found.value, found.flag = found.value(outputs), found.flag(outputs)
        f.undefined = {**(f.undefined or {}), name: found}
    for effect, build in effects:
        apply_effect(stage, effect, build(outputs))
    result = signal(outputs)
    joiner.forget()
    return result


def _join_variables(f: Any, joiner: Joiner, a: _Branch, b: _Branch) -> Any:
    variables: dict[str, Any] = {}
    undefined: dict[str, Undefined] = {}
    for name in {**a.vars, **b.vars, **a.undefined, **b.undefined}:
        x, y = a.vars.get(name, MISSING), b.vars.get(name, MISSING)
        if x is y and f.vars.get(name, MISSING) is x and a.undefined.get(name) is b.undefined.get(name):
            continue
        if x is MISSING or y is MISSING:
            # A branch that returns does not reach the code that follows.
            leaves = kinds_of(a.signal if x is MISSING else b.signal)
            if leaves == {3} and x is not y:
                kept = y if x is MISSING else x
                try:
                    zeros = placeholder(kept)
                    variables[name] = joiner.join(zeros, kept, name) if x is MISSING else joiner.join(kept, zeros, name)
                    continue
                except CompileError:
                    pass
            undefined[name] = _partly_set(f, joiner, name, a, b)
            continue
        try:
            variables[name] = joiner.join(x, y, repr(name))
        except CompileError as error:
            if f.stage.is_live:
                raise
            undefined[name] = Undefined(str(error).split(": ", 1)[-1], current_where())
    return variables, undefined


def _partly_set(f: Any, joiner: Joiner, name: str, a: _Branch, b: _Branch) -> Undefined:
    """Return what is known of a variable that is not set at the end of both branches.

    Where Python can have values, its value and whether it is set are joined for when it is read.
    """
    text = f"{name!r} is set on only one side of {_condition()}; give it a value before the if"
    found = Undefined(text, current_where())
    if f.stage.is_live:
        (x, p), (y, q) = a.state(name), b.state(name)
        if x is not y:
            x, y = (placeholder(y) if x is MISSING else x), (placeholder(x) if y is MISSING else y)
        found.value, found.flag = joiner.join(x, y, repr(name)), joiner.join(p, q, repr(name))
    return found


def _condition() -> str:
    where = current_where()
    return (
        "a condition that a tensor decides"
        if where is None
        else f"the condition in line {where.line}, which a tensor decides"
    )


def _join_effects(f: Any, joiner: Joiner, a: _Branch, b: _Branch) -> list[tuple[Effect, Any]]:
    effects: list[tuple[Effect, Any]] = []
    for key in {**a.changes, **b.changes}:
        effect = (a.changes.get(key) or b.changes[key])[0]
        if effect.target is f.vars:
            # An inner function set a variable of this frame, which is joined with the others.
            continue
        x = a.changes[key][1] if key in a.changes else effect.before
        y = b.changes[key][1] if key in b.changes else effect.before
        if effect.kind == "tensor":
            if x.type is not y.type:
                raise CompileError(
                    f"{current_where()}: {effect} has type {x.type} on one side of a condition that a tensor decides "
                    f"and {y.type} on the other; "
                    "cast or reshape one of them"
                )
            effects.append((effect, joiner.pair(x, y)))
            continue
        if x is MISSING or y is MISSING:
            raise CompileError(
                f"{current_where()}: {effect} is set on only one side of a condition that a tensor decides; set it on "
                "both"
            )
        effects.append((effect, joiner.join(x, y, str(effect))))
    return effects


def apply_effect(stage: Stage, effect: Effect, value: Any) -> None:
    """Make a change again in the surrounding scope, which enters it in its own journal."""
    if effect.kind == "tensor":
        stage.write(effect.target, value)
    elif effect.kind == "container":
        stage.note_container(effect.target)
        fill(effect.target, value)
    elif effect.kind == "item":
        stage.note_item(effect.target, effect.name)
        effect.target[effect.name] = value
    else:
        stage.note_attribute(effect.target, effect.name)
        setattr(effect.target, effect.name, value)


def fill(target: Any, content: Any) -> None:
    if isinstance(target, np.ndarray):
        target[...] = content
        return
    content = dict(content) if isinstance(target, dict) else list(content)
    target.clear()
    if isinstance(target, (list, deque)):
        target.extend(content)
    else:
        target.update(content)


def _join_signals(stage: Stage, joiner: Joiner, a: Any, b: Any) -> Any:
    """Return a function from the outputs of the joined branches to the joined signal."""
    kinds = kinds_of(a) | kinds_of(b)
    x, y = value_of(a), value_of(b)
    value: Any = None
    if 3 in kinds:
        if x is MISSING:
            x = placeholder(y)
        if y is MISSING:
            y = placeholder(x)
        value = joiner.join(x, y, "the result")
    code = None
    if len(kinds) > 1:
        codes = [s.code if type(s) is Dynamic else (0 if s is None else s.code) for s in (a, b)]
        nodes = [stage.node_of(c) if isinstance(c, Tensor) else constant(c, D.int32) for c in codes]
        code = joiner.pair(nodes[0], nodes[1])

    def build(outputs: Any) -> Any:
        return make_signal(kinds, lambda: code(outputs), MISSING if value is None else value(outputs))  # type: ignore[misc]

    return build


def free_nodes(stage: Stage, outputs: Sequence[Node], stop: Sequence[Node] = ()) -> tuple[list[Node], list[Node]]:
    """Return the nodes from outside that `outputs` need, and the nodes made inside.

    Constants are in neither list.
    """
    operands: dict[Node, None] = {}
    inside: list[Node] = []
    seen: set[Node] = set(stop)
    stack = [o for o in reversed(outputs)]
    while stack:
        node = stack.pop()
        if node in seen or is_constant(node):
            continue
        seen.add(node)
        if stage.knows(node):
            operands[node] = None
        elif node.prim is None:
            raise CompileError(
                f"{current_where()}: a tensor of another compiled function, or of a branch that was not taken, is used "
                "here; "
                "return it from where it is computed, and pass it on from there"
            )
        else:
            inside.append(node)
            stack.extend(reversed(node.inputs))
    return list(operands), inside


def closed(outputs: Sequence[Node], inputs: Sequence[Node], name: str) -> Graph:
    """Return the graph of `outputs` as a function of the nodes `inputs`."""
    stand_in = {n: input_node(n.type, _name(n)) for n in inputs}
    return Graph(stand_in.values(), substitute(outputs, stand_in), name)


def _name(node: Node) -> str:
    return str(node.params["name"]) if node.prim is None and "name" in node.params else "operand"


def _emit(
    stage: Stage, pred: Tensor, joiner: Joiner, branches: Sequence[_Branch], connective: bool | None
) -> list[Node]:
    if not joiner.pairs:
        return []
    test = stage.node_of(pred)
    sides = [[p[i] for p in joiner.pairs] for i in (0, 1)]
    found = [free_nodes(stage, side) for side in sides]
    inside = [n for _, nodes in found for n in nodes]
    if (
        connective is not None
        and len(joiner.pairs) == 1
        and sides[0][0].type is test.type
        and all(_harmless(n) for n in inside)
    ):
        a, b = joiner.pairs[0]
        result = [E.logical_and(test, a) if connective else E.logical_or(test, b)]
        stage.adopt(result)
        return result
    if not inside:
        result = [E.SELECT(test, a, b) for a, b in joiner.pairs]
        stage.adopt(result)
        return result
    operands = list(dict.fromkeys([*found[0][0], *found[1][0]]))
    node = control.cond.node(
        test, *operands, true=closed(sides[0], operands, "true"), false=closed(sides[1], operands, "false")
    )
    return outputs_of_call(stage, node)


def _harmless(node: Node) -> bool:
    """Return whether computing a node needlessly is cheap and cannot disturb a gradient."""
    return node.prim is not None and node.prim.elementwise and node.dtype is D.bool_


def outputs_of_call(stage: Stage, node: Node) -> list[Node]:
    parts = [get_item(node, i) for i in range(len(node.type))]
    stage.scope.own.add(node)
    stage.scope.own.update(parts)
    return parts


def choose_item(f: Any, items: Any, index: Tensor) -> Any:
    """Return ``items[index]`` of a Python sequence for an index that is a tensor."""
    node = _stage(f).node_of(index)
    if is_constant(node):
        return items[int(node.value)]
    where = current_where()
    if not items or index.size != 1 or not index.dtype.is_integer:
        return items[index]
    count = len(items)
    if index.dtype.kind == "i":
        index = eager.apply(E.mod, index, _stage(f).literal(count, index.dtype))

    def choose(g: Any, low: int) -> Any:
        if low == count - 1:
            return items[low]
        test = eager.apply(E.eq, index, _stage(f).literal(low, index.dtype))
        return fork_value(g, truth(g, test, where), lambda h: items[low], lambda h: choose(h, low + 1), where)  # type: ignore[arg-type]

    return choose(f, 0)
