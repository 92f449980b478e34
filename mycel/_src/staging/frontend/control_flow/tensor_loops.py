"""Staging of loops whose trip count depends on a tensor, as one `while_loop`.

The loop is staged as one round, from fresh inputs for the carried values to their next values. The
carried values are found by trial. They are first the variables that the source assigns, as tensors
if they are tensors and as constants otherwise. Values that a trial changes are added, or given a
wider type, until a round returns the types with which it began. The test is staged at the end of
each round (and once before the loop), so that it runs where Python runs it; its result, `alive`, is
carried. The code of `conditionals.Dynamic`, which says how a round was left by break or return, is
carried too. A value that a round does not change becomes an operand that stays the same.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from mycel._src.compiler.ir.graph import Graph, Node, Where, current_where, input_node, set_where
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims.control_flow import control
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import CompileError, NeedsValue, VmapError
from mycel._src.staging.frontend.calls.frames import Undefined
from mycel._src.staging.frontend.control_flow.branch_join import (
    NUMBERS,
    common_dtype,
    describe,
    node_as,
    placeholder,
    same,
)
from mycel._src.staging.frontend.control_flow.conditionals import (
    BREAK,
    Dynamic,
    Return,
    after,
    apply_effect,
    closed,
    code_equals,
    fork_value,
    free_nodes,
    kinds_of,
    make_signal,
    outputs_of_call,
    truth,
    value_of,
)
from mycel._src.staging.frontend.graph_building.stage import Stage, Unfinished
from mycel._src.staging.frontend.graph_building.stage_state import MISSING, Effect, Scope
from mycel._src.staging.frontend.graph_building.staged_views import (
    OWN,
    Either,
    Mixed,
    Tree,
    is_sole,
    mix,
    origin,
    settle,
)
from mycel._src.staging.frontend.graph_building.symbolic_sizes import giving_up
from mycel._src.staging.frontend.source_code.tracebacks import carry, keep_position
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.tensor import Tensor, make_staged

__all__ = ["Loop", "Run", "next_test", "staged_loop", "without"]

Run = Callable[[Any], Any]
_TRIALS = 12


class Loop:
    """A loop statement: its `body`, its `orelse` (None without one), its place `where`, and the
    names that are `assigned` in it.
    """

    def __init__(self, body: Run, orelse: Run | None, where: Where, assigned: Sequence[str]) -> None:
        self.body, self.orelse, self.where, self.assigned = body, orelse, where, assigned
        self.counter = f"<counter {where.line}:{where.column}>"


def without(f: Any, signal: Any, code: int) -> Any:
    """Return the signal of a statement that catches one code of `signal`, and goes on after it."""
    if type(signal) is not Dynamic:
        return None if signal is not None and signal.code == code else signal
    if code not in signal.kinds:
        return signal
    kinds = (signal.kinds - {code}) | {0}
    if kinds == {0}:
        return None
    zero = f.stage.literal(0, D.int32)
    return Dynamic(eager.apply(E.SELECT, code_equals(f, signal.code, code), zero, signal.code), kinds, signal.value)


def next_test(f: Any, loop: Loop, signal: Any, test: Run) -> Any:
    """Return whether another round follows one that ended with `signal`: a bool or a tensor.

    `test` computes the test of `loop` in the frame `f`.
    """
    if signal is None:
        set_where(loop.where)
        return truth(f, test(f), loop.where)
    if type(signal) is not Dynamic or 0 not in signal.kinds:
        return False
    go_on = code_equals(f, signal.code, 0)
    return fork_value(f, go_on, lambda g: truth(g, test(g), loop.where), lambda g: False, loop.where)


class _Leaf:
    """A tensor that a loop carries.

    `path` is its place in the carried values, and `before` the value there before the loop, as the
    node `initial`. In a round the node `input` and the tensor `entered` stand for it; `output` and
    `now` are its next value.
    """

    __slots__ = ("path", "paths", "before", "initial", "input", "entered", "output", "seen", "in_place", "now")

    def __init__(self, path: Any, before: Any, initial: Node, input: Node, entered: Tensor) -> None:
        self.path, self.before, self.initial, self.input, self.entered = path, before, initial, input, entered
        self.paths, self.now = [path], entered
        self.output = input
        self.seen = False
        self.in_place = False


class _Plan:
    """The facts about the carried values of a loop, which are kept from trial to trial."""

    def __init__(self, names: Sequence[str], kinds: frozenset[int], value: Any) -> None:
        self.names = names
        self.effects: dict[Any, Effect] = {}
        self.types: dict[Any, TensorType] = {}
        self.separate: set[Any] = set()
        self.kinds, self.value = kinds, value
        self.sole: set[Any] = set()
        self.kept: set[Any] = set()
        self.origins: dict[Any, Tree] = {}
        self.tensors: set[Any] = set()  # what is a number before the loop and a tensor after a round


def staged_loop(f: Any, loop: Loop, alive: Any, signal: Any, test: Run) -> Any:
    """Run the rounds of `loop` from the state in the frame `f` on as one loop, and return its
    signal.

    `signal` is that of the round before them, `alive` the value of the test after it, and `test`
    computes the test.
    """
    stage = f.stage
    if not isinstance(alive, Tensor):
        alive = stage.literal(alive, D.bool_)
    value = value_of(signal)
    plan = _Plan([n for n in loop.assigned if n in f.vars], kinds_of(signal), value)
    plan.sole = {(("var", n),) for n in plan.names if is_sole(stage, f.vars, n)}
    for _ in range(_TRIALS):
        with giving_up() as forget:
            trial = _Trial(f, loop, plan, signal)
            try:
                settled = trial.run(test)
            except Unfinished:
                return trial.passed_by()
            if settled:
                return trial.finish(alive)
            forget()
    raise CompileError(
        f"{loop.where}: the types of what this loop carries do not settle; give the variables their final types before "
        "it"
    )


class _Trial:
    """One attempt to stage a round of `loop`, from the state in the frame `f`.

    `plan` has the carried values, and `signal` is that of the round before.
    """

    def __init__(self, f: Any, loop: Loop, plan: _Plan, signal: Any) -> None:
        self.f, self.loop, self.plan, self.signal = f, loop, plan, signal
        self.stage: Stage = f.stage
        self.scope = Scope(True)
        self.leaves: list[_Leaf] = []
        self.memo: dict[int, _Leaf] = {}
        self.settled = True
        code = signal.code if type(signal) is Dynamic else self.stage.literal(0, D.int32)
        self.before: dict[Any, Any] = {("var", n): f.vars[n] for n in plan.names}
        self.before.update({k: self.read(e) for k, e in plan.effects.items()})
        if plan.kinds != {0}:
            self.before["code"] = code
        if plan.value is not MISSING:
            self.before["value"] = plan.value
        self.mirrors: dict[Any, Any] = {}
        self.entered: dict[Any, Any] = {}
        self.now: dict[Any, Any] = {}
        for key, v in self.before.items():
            self.entered[key], self.mirrors[key] = self.enter(v, (key,))

    def read(self, effect: Effect) -> Any:
        value = effect.read(self.stage)
        return make_staged(value) if effect.kind == "tensor" else value

    def enter(self, value: Any, path: Any) -> tuple[Any, Any]:
        """Return a value with fresh inputs in place of its tensors, and its form with a `_Leaf` for
        each tensor.
        """
        if path in self.plan.kept:
            return value, _Static(value)
        if isinstance(value, Tensor) or path in self.plan.types:
            shared = isinstance(value, Tensor) and path not in self.plan.separate
            leaf = self.memo.get(id(value)) if shared else None
            if leaf is None:
                kind = self.plan.types.get(path) or value._type
                initial = node_as(self.stage, value, kind.dtype, self.stage.scope)
                node = input_node(kind, _label(path))
                self.scope.own.add(node)
                leaf = _Leaf(path, value, initial, node, make_staged(node))
                if self.stage.is_number(value):
                    if path not in self.plan.tensors:
                        self.stage.mark_number(leaf.entered)
                elif self.is_seen(leaf) and path not in self.plan.sole:
                    known = Either(None, origin(value), self.plan.origins.get(path, OWN))
                    mix(self.stage, leaf.entered, known, lambda: self.keep(leaf))
                self.leaves.append(leaf)
                if shared:
                    self.memo[id(value)] = leaf
            else:
                leaf.paths.append(path)
            return leaf.entered, leaf
        kind_of = type(value)
        if isinstance(value, tuple) or kind_of is list:
            parts = [self.enter(v, (*path, i)) for i, v in enumerate(value)]
            items = [p[0] for p in parts]
            made: Any = kind_of(*items) if hasattr(kind_of, "_fields") else kind_of(items)
            self.scope.fresh[id(made)] = made
            return made, (kind_of, None, [p[1] for p in parts])
        if kind_of is dict or kind_of is OrderedDict:
            pairs = {k: self.enter(v, (*path, k)) for k, v in value.items()}
            made = kind_of((k, p[0]) for k, p in pairs.items())
            self.scope.fresh[id(made)] = made
            return made, (kind_of, list(pairs), [p[1] for p in pairs.values()])
        return value, _Static(value)

    def is_seen(self, leaf: _Leaf) -> bool:
        """Return whether the program can reach the tensor that stands for a leaf."""
        effect = self.plan.effects.get(leaf.path[0])
        return leaf.path[0] != "code" and (effect is None or effect.kind != "tensor")

    def keep(self, leaf: _Leaf) -> None:
        """Let a tensor that is written to, or shares elements with one that is, stay the same
        object in the next trial.
        """
        self.plan.kept.update(leaf.paths)
        self.settled = False

    def share(self) -> None:
        """Note which tensors share their elements with others after a round."""
        seen = [leaf for leaf in self.leaves if self.is_seen(leaf) and not self.stage.is_number(leaf.now)]
        found = settle(self.stage, [self.after_round(leaf) for leaf in seen])
        for leaf, tree in zip(seen, found):
            if tree is not OWN and leaf.path not in self.plan.origins:
                self.plan.origins[leaf.path] = tree
                self.settled &= leaf.path not in self.plan.sole and not self.writes()
                self.plan.sole.discard(leaf.path)

    def writes(self) -> bool:
        return any(e.kind == "tensor" for e in self.plan.effects.values())

    def after_round(self, leaf: _Leaf) -> Tree:
        """Return the origin of the elements of a leaf's tensor after a round.

        A tensor that does not change has the origin that it had before the loop.
        """
        for other in self.leaves:
            if leaf.now is other.entered:
                if other.output is other.input:
                    return origin(other.before) if leaf is not other else OWN
                break
        return OWN if leaf.in_place else origin(leaf.now)

    def run(self, test: Run) -> bool:
        """Stage the round, and return whether it returns the types with which it began."""
        try:
            self.stage_round(test)
            if self.settled:
                self.share()
        finally:
            for leaf in self.leaves:
                if type(leaf.entered._view) is Mixed:
                    leaf.entered._view = None
        return self.settled

    def stage_round(self, test: Run) -> None:
        f, stage, loop, plan = self.f, self.stage, self.loop, self.plan
        before, place = dict(f.vars), current_where()
        changes: Any = {}
        with stage.inside(self.scope):
            try:
                set_where(loop.where)
                f.vars.update({n: self.entered["var", n] for n in plan.names})
                for key, effect in plan.effects.items():
                    apply_effect(stage, effect, self.entered[key])
                signal = loop.body(f)
                signal = without(f, signal, 2) if signal is not None else None
                self.alive = node_as(stage, next_test(f, loop, signal, test), D.bool_, self.scope)
                self.after_vars = dict(f.vars)
                self.find_names(before)
                set_where(loop.where)
                self.collect(signal)
                for key, mirror in self.mirrors.items():
                    self.compare(mirror, self.now[key], (key,), _word(key, plan, before))
            except (CompileError, NeedsValue, VmapError) as error:
                keep_position(error)
                raise
            except Exception as error:
                raise carry(error, "in a loop that a tensor decides") from error
            finally:
                self.memo.clear()
                changes = self.scope.take_back(stage)
                f.vars.clear()
                f.vars.update(before)
                set_where(place)
        for key, (effect, _) in changes.items():
            if key not in plan.effects:
                plan.effects[key] = effect
                self.settled = False

    def find_names(self, before: dict[str, Any]) -> None:
        """Carry also the variables that a function inside the frame assigned under a condition that
        depends on a tensor.
        """
        for n, value in before.items():
            if n in self.plan.names or self.after_vars.get(n, value) is value:
                continue
            if ("item", id(self.f.vars), n) not in self.scope.journal:
                self.plan.names = [*self.plan.names, n]
                self.settled = False

    def collect(self, signal: Any) -> None:
        """Collect the values at the end of the round, by the keys of those at its beginning."""
        plan = self.plan
        for n in plan.names:
            if n not in self.after_vars:
                raise CompileError(
                    f"{self.loop.where}: {n!r} is deleted in a loop that a tensor decides; delete it after the loop"
                )
            self.now["var", n] = self.after_vars[n]
        for key, effect in plan.effects.items():
            self.now[key] = self.read(effect)
        kinds = kinds_of(signal)
        if not kinds <= plan.kinds:
            plan.kinds |= kinds
            self.settled = False
        if 3 in kinds and plan.value is MISSING:
            plan.value = placeholder(value_of(signal))
            self.settled = False
        if "code" in self.mirrors:
            self.now["code"] = (
                signal.code
                if type(signal) is Dynamic
                else self.stage.literal(signal.code if signal is not None else 0, D.int32)
            )
            if type(signal) in (Return,) or signal is BREAK:
                self.now["code"] = self.stage.literal(signal.code, D.int32)
        if "value" in self.mirrors:
            self.now["value"] = value_of(signal) if 3 in kinds else self.entered["value"]

    def compare(self, mirror: Any, now: Any, path: Any, what: str) -> None:
        """Note the next values of a carried value, or that it has to be carried differently.

        `mirror` is its form, `now` its value after the round, `path` its place, and `what` its name
        in errors.
        """
        where = self.loop.where
        if isinstance(mirror, _Leaf):
            self.compare_leaf(mirror, now, path, what)
        elif isinstance(mirror, _Static):
            old = mirror.value
            if same(old, now):
                return
            if path in self.plan.kept:
                raise CompileError(
                    f"{where}: {what} is written in place and replaced by another tensor in a loop that a tensor "
                    "decides; "
                    "take a copy() of it before the loop"
                )
            if type(old) in NUMBERS and (isinstance(now, Tensor) or type(now) in NUMBERS):
                if isinstance(now, Tensor) and now.shape != ():
                    raise CompileError(
                        f"{where}: {what} is a number before this loop and a tensor of shape {now.shape} after a "
                        "round; "
                        "a tensor decides the number of rounds, so make it a tensor of that shape before the loop"
                    )
                self.plan.types[path] = self.stage.literal(0, common_dtype(old, now))._type
                self.settled = False
                return
            raise CompileError(
                f"{where}: {what} changes from {describe(old)} to {describe(now)} in a loop that a tensor decides; "
                "only tensors and numbers can change there"
            )
        else:
            kind, keys, parts = mirror
            same_form = type(now) is kind and len(now) == len(parts) and (keys is None or list(now) == keys)
            if not same_form:
                raise CompileError(
                    f"{where}: {what} changes its form in a loop that a tensor decides, to {describe(now)}; "
                    "write into a tensor of the final size instead"
                )
            for i, part in enumerate(parts):
                k = i if keys is None else keys[i]
                self.compare(part, now[k], (*path, k), f"{what}[{k!r}]")

    def compare_leaf(self, leaf: _Leaf, now: Any, path: Any, what: str) -> None:
        """Note the next value `now` of a carried tensor, or that it needs another type or place.

        `leaf`, `path` and `what` are those of `compare`.
        """
        where = self.loop.where
        kind = leaf.input.type
        if not isinstance(now, Tensor) and type(now) not in NUMBERS:
            raise CompileError(
                f"{where}: {what} turns from a tensor into {describe(now)} in a loop that a tensor decides; keep it a "
                "tensor"
            )
        shape = now.shape if isinstance(now, Tensor) else ()
        if shape != kind.shape:
            raise CompileError(
                f"{where}: {what} has shape {kind.shape} before a round of this loop and {shape} after it; "
                "a tensor decides the number of rounds, so shapes must stay: write into a tensor of the final size"
            )
        if self.stage.is_number(leaf.entered) and not self.stage.is_number(now):
            self.plan.tensors.add(leaf.path)
            self.settled = False
        wanted = common_dtype(leaf.entered, now)
        if wanted is not kind.dtype:
            self.plan.types[leaf.path] = kind.with_dtype(wanted)
            self.settled = False
            return
        node = node_as(self.stage, now, wanted, self.scope)
        if leaf.seen and node is not leaf.output:
            # Two places held one tensor before the loop and hold different ones after a round.
            self.plan.separate.add(path)
            self.settled = False
            return
        leaf.seen, leaf.output, leaf.now = True, node, now
        leaf.in_place = now is leaf.entered and node is not leaf.input

    # The loop itself.

    def finish(self, alive: Tensor) -> Any:
        """Make the node of the loop, take over its results, and return the loop's signal."""
        stage, f, plan = self.stage, self.f, self.plan
        set_where(self.loop.where)
        moving = [leaf for leaf in self.leaves if leaf.output is not leaf.input]
        fixed = [leaf for leaf in self.leaves if leaf.output is leaf.input]
        visible = [
            leaf for leaf in moving if self.is_seen(leaf) and not leaf.in_place and not stage.is_number(leaf.now)
        ]
        after = [Either(alive, self.plan.origins.get(leaf.path, OWN), origin(leaf.before)) for leaf in visible]
        origins = dict(zip(visible, settle(stage, after)))
        start = input_node(alive._type, "alive")
        outputs = [self.alive, *[leaf.output for leaf in moving]]
        free, _ = free_nodes(stage, outputs, [leaf.input for leaf in self.leaves])
        inner = [start, *[leaf.input for leaf in moving], *[leaf.input for leaf in fixed], *free]
        operands = [stage.node_of(alive), *[leaf.initial for leaf in moving], *[leaf.initial for leaf in fixed], *free]
        body = closed(outputs, inner, "body")
        test_inputs = [input_node(n.type, "carried") for n in inner]
        test = Graph(test_inputs, [test_inputs[0]], "test")
        parts = outputs_of_call(stage, control.while_loop.node(*operands, test=test, body=body, carried=len(outputs)))
        results = {leaf: make_staged(part) for leaf, part in zip(moving, parts[1:])}
        for leaf, tree in origins.items():
            mix(stage, results[leaf], tree)
        for leaf, result in results.items():
            if stage.is_number(leaf.before) and leaf.path not in plan.tensors:
                stage.mark_number(result)
        stage.scope.fresh.update(self.scope.fresh)
        for leaf in moving:
            if leaf.in_place and isinstance(leaf.before, Tensor):
                stage.write(leaf.before, results[leaf])
        rebuilt = {key: self.rebuild(mirror, self.before[key], results) for key, mirror in self.mirrors.items()}
        for n in plan.names:
            f.vars[n] = rebuilt["var", n]
        for key, effect in plan.effects.items():
            apply_effect(stage, effect, rebuilt[key])
        for n in self.after_vars:
            if n not in f.vars and not n.startswith("<"):
                text = f"{n!r} is set only inside a loop that a tensor decides; give it a value before the loop"
                f.undefined = {**(f.undefined or {}), n: Undefined(text, self.loop.where)}
        return self.end(rebuilt)

    def rebuild(self, mirror: Any, before: Any, results: dict[_Leaf, Tensor]) -> Any:
        if isinstance(mirror, _Leaf):
            known = isinstance(mirror.before, Tensor)
            if mirror not in results:
                return mirror.before if known else before
            return mirror.before if mirror.in_place and known else results[mirror]
        if isinstance(mirror, _Static):
            return before
        kind, keys, parts = mirror
        values = [self.rebuild(p, before[i if keys is None else keys[i]], results) for i, p in enumerate(parts)]
        if keys is not None:
            return self.stage.created(kind(zip(keys, values)))
        return kind(*values) if hasattr(kind, "_fields") else self.stage.created(kind(values))

    def passed_by(self) -> Any:
        """Return the signal of a loop of which no round reaches its end."""
        f, loop, signal = self.f, self.loop, self.signal
        if loop.orelse is not None:
            signal = loop.orelse(f) if signal is None else after(f, signal, loop.orelse)
        return without(f, signal, 1) if signal is not None else None

    def end(self, rebuilt: dict[Any, Any]) -> Any:
        plan, loop, f = self.plan, self.loop, self.f
        if plan.kinds == {0}:
            return loop.orelse(f) if loop.orelse is not None else None
        kinds = plan.kinds | {0}
        signal: Any = make_signal(kinds, lambda: rebuilt["code"], rebuilt.get("value", MISSING))
        if loop.orelse is not None:
            signal = after(f, signal, loop.orelse)
        return without(f, signal, 1) if signal is not None else None


class _Static:
    """A part of a carried value that is no tensor."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def _label(path: Any) -> str:
    key = path[0]
    return str(key[1]) if isinstance(key, tuple) and key[0] == "var" else "carried"


def _word(key: Any, plan: _Plan, variables: dict[str, Any]) -> str:
    if isinstance(key, tuple) and key[0] == "var":
        return repr(key[1])
    if key not in plan.effects:
        return "the result"
    effect = plan.effects[key]
    if effect.kind == "container":
        return next((repr(n) for n, v in variables.items() if v is effect.target), str(effect))
    return str(effect)
