"""Compiled functions: the cache of graphs behind `jit`.

A call is described by a key: the structure of its arguments, the types of the tensors in them and the values of everything else. For each
key there are versions, newest first; the first whose guards hold runs. A version takes the call's tensors and the captured ones, puts written
values back, and builds the result in the form that the function returned. Nothing of this keeps an object of the program's alive: keys, guards and versions hold them
weakly, and what was compiled for an argument is forgotten with it. Where a function cannot be one graph, the reason is logged
once, kept for `explain`, and the function runs in compiled segments for this key (`frontend.live`); with ``fullgraph=True`` it is an error instead.
"""

from __future__ import annotations

import copy
import dataclasses
import sys
import threading
import types
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Optional, ParamSpec, TypeVar, Union, overload

import numpy as np

from mycel.base import arguments, config, garbage, locks
from mycel.base.errors import CompileError, NeedsValue
from mycel.base.jit_config import check_options, is_strict
from mycel.base.log import logger
from mycel.base.spans import timed
from mycel.cells.cell import compiler
from mycel.core import eager
from mycel.core.hooks import carry_hooks, hooks_key
from mycel.core.parameter import Parameter
from mycel.core.tensor import Tensor, make, make_staged
from mycel.core.views import root_of
from mycel.engines.failures import out_of_memory, told
from mycel.frontend.dimensions import Dimensions, Plan, compiled, declared_inputs, is_open
from mycel.frontend.guards import frozen
from mycel.frontend.interpret import call
from mycel.frontend.mutables import MUTABLES, describe_mutable, replace_mutable
from mycel.frontend.native_calls import refuse_unseen, watched
from mycel.frontend.outputs import Outputs
from mycel.frontend.segments import REFUSALS, LivePlan, LiveStage
from mycel.frontend.sizes import use_stage
from mycel.frontend.snapshots import CONTAINERS, Same, reach
from mycel.frontend.stage import MISSING, Capture, Effect, Stage
from mycel.frontend.tracebacks import describe_places, note_end, note_origin, note_place_of, reason_of, show_user_lines
from mycel.ir.dims import Decisions, InconclusiveDimension, deciding, symbols_in
from mycel.ir.graph import Graph, Node, at, input_node, toposort
from mycel.prims import control as C
from mycel.prims.custom import refusal as refusal_of
from mycel.prims.elementwise import identity
from mycel.prims.positions import positions
from mycel.transforms.specialize import inner_sizes, specialize

__all__ = ["Fallback", "Jit", "Version", "jit"]

_MANY = 16
_STACK = 1_000_000 if sys.version_info >= (3, 11) else 12_000
_PLAIN = frozenset((int, str, bytes, bool, complex, type(None), type(...)))


@dataclasses.dataclass(frozen=True)
class Fallback:
    """Why a function is not one graph: the place, the reason, and what to write instead."""

    function: str
    reason: str
    place: str

    def __str__(self) -> str:
        return f"{self.function} is not one graph: {self.reason}" + (f"\n{self.place}" if self.place else "")


def _identities(key: Any) -> Iterator[Same]:
    """The objects in a key that are compared by identity."""
    if type(key) is tuple:
        for part in key:
            yield from _identities(part)
    elif type(key) is Same:
        yield key


def describe(value: Any, tensors: list[Any]) -> Any:
    """What a value contributes to a key; its tensors are collected."""
    kind = type(value)
    if kind is Tensor:
        tensors.append(value)
        return value._type
    if kind in _PLAIN:
        return (kind, value)
    if kind is float:
        return (kind, value.hex())
    if kind in MUTABLES:
        return describe_mutable(value, tensors, describe)
    if kind is tuple or kind is list:
        return (kind, *[describe(v, tensors) for v in value])
    if kind is dict or kind is OrderedDict:
        return (kind, *[(_static(k), describe(v, tensors)) for k, v in value.items()])
    if isinstance(value, Tensor):
        if isinstance(value, Parameter):
            return Same(value)
        tensors.append(value)
        return value._type
    if isinstance(value, tuple) and hasattr(kind, "_fields"):
        return (kind, *[describe(v, tensors) for v in value])
    if kind is types.MethodType:
        return (kind, Same(value.__func__), Same(value.__self__))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [f.name for f in dataclasses.fields(value)]
        return (kind, *[describe(getattr(value, n), tensors) for n in fields])
    return _static(value)


def _static(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return frozen(value)
    kind = type(value)
    if kind in _PLAIN or kind is slice or isinstance(value, (np.generic, np.dtype)):
        return (kind, repr(value)) if kind is slice or isinstance(value, np.generic) else (kind, value)
    if kind.__hash__ is not None and isinstance(value, (frozenset, range, tuple)):
        return (kind, value)
    return Same(value)


class _Arguments:
    """The arguments as the staged function sees them: tensors replaced, containers made anew."""

    def __init__(self, types: Optional[Sequence[Any]] = None) -> None:
        self.types = types
        self.nodes: list[Node] = []
        self.staged: list[Tensor] = []
        self.containers: dict[int, Any] = {}
        self.known: dict[int, Tensor] = {}
        self.numbers: list[Tensor] = []
        self.opaque: list[Any] = []
        self.outside: set[int] = set()

    def replace(self, value: Any, name: str) -> Any:
        kind = type(value)
        if kind in MUTABLES:
            return replace_mutable(value, name, self)
        if isinstance(value, Tensor) and not isinstance(value, Parameter):
            node = input_node(value._type if self.types is None else self.types[len(self.nodes)], name)
            self.nodes.append(node)
            known = self.known.get(id(value))
            staged = known if known is not None else make_staged(node)
            carry_hooks(value, staged)
            self.known[id(value)] = staged
            self.staged.append(staged)
            return staged
        if kind is tuple:
            return tuple([self.replace(v, f"{name}.{i}") for i, v in enumerate(value)])
        if kind is list:
            return self.keep([self.replace(v, f"{name}.{i}") for i, v in enumerate(value)])
        if kind is dict or kind is OrderedDict:
            return self.keep(kind((k, self.replace(v, f"{name}.{k}")) for k, v in value.items()))
        if isinstance(value, tuple) and hasattr(kind, "_fields"):
            return kind(*[self.replace(v, f"{name}.{i}") for i, v in enumerate(value)])
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            made = object.__new__(kind)
            for field in dataclasses.fields(value):
                object.__setattr__(made, field.name, self.replace(getattr(value, field.name), f"{name}.{field.name}"))
            return self.keep(made)
        if isinstance(value, np.ndarray):
            return self.keep(value.copy())
        if isinstance(value, CONTAINERS):
            self.opaque.append(value)
        self.outside.add(id(value))
        return value

    def keep(self, value: Any) -> Any:
        self.containers[id(value)] = value
        return value


class _Change:
    """A change to an object from outside, which is made again after each call as long as there is the object."""

    def __init__(self, effect: Effect, get: Callable[[], Any]) -> None:
        self.effect, self.get, self.text = copy.copy(effect), get, str(effect)
        self.effect.target = self.effect.before = None

    def __str__(self) -> str:
        return self.text

    def write(self, value: Any) -> None:
        target = self.get()
        if target is not None:
            effect = copy.copy(self.effect)
            effect.target = target
            effect.write(None, value)  # type: ignore[arg-type]


class Version:
    """One compiled graph with its guards, captured tensors, written tensors and the form of its result."""

    def __init__(self, stage: Stage, arguments: _Arguments, result: Any, name: str) -> None:
        self.guards = stage.guards
        positions: dict[int, int] = {}
        for i, t in enumerate(arguments.staged):
            positions.setdefault(id(t), i)
        outputs = Outputs(stage, positions, frozenset(arguments.outside))
        self.build = outputs.of(result)
        changes = stage.scopes[0].take_back(stage)
        self.effects: list[tuple[_Change, Any]] = []
        for effect, value in changes.values():
            if id(effect.target) in arguments.containers:
                refusal = CompileError(
                    f"a compiled function cannot change {effect} that was passed to it; return the new value instead"
                )
                if effect.where is not None:
                    note_place_of(refusal, effect.where)
                raise refusal
            self.effects.append((_Change(effect, self.guards.way_to(effect.target)), outputs.of(value)))
        self.deferred = [(fn, outputs.of(args), outputs.of(kwargs)) for fn, args, kwargs in stage.deferred]
        self.argument_writes = []
        for i, (t, node) in enumerate(zip(arguments.staged, arguments.nodes)):
            if positions[id(t)] == i and t._node is not node:
                self.argument_writes.append((i, outputs.place(t._node, ("argument", i))))  # type: ignore[arg-type]
        written = stage.written()
        writes = [(c, outputs.place(stage.current[id(c.tensor)], ("state", id(c.tensor)))) for c in written]
        captures = self._needed(stage, outputs.nodes, arguments.nodes, written)
        self.ways = [reach(c.tensor) for c in captures]
        self.kept: Optional[list[Tensor]] = [c.tensor for c in captures]
        self.types = [c.type for c in captures]
        self.sources = self._sources(stage, captures)
        self.shares = bool(written) or bool(self.argument_writes)
        inputs = [*arguments.nodes, *[c.node for c in captures]]
        self.graph = _with_counts(stage, Graph(inputs, _distinct(outputs.nodes, inputs), name))
        positions_of = {id(c.tensor): i for i, c in enumerate(captures)}
        self.writes = [(positions_of[id(c.tensor)], place) for c, place in writes]
        numbers = {node: i for i, node in enumerate(inputs)}
        self.aliases = {place: numbers[c.node] for c, place in writes if isinstance(c.tensor, Parameter)}
        self.result_types = self.graph.output_types
        self.refusal = refusal_of(self.graph) or ("data decide sizes in it" if is_open(self.graph) else "")
        self.program: Optional[Callable[..., Any]] = None
        self.symbolic: Any = None
        self.phases: Any = None
        self.is_open = is_open(self.graph)
        self.sizes: dict[str, int] = {}
        self.pinned = outputs.pinned
        outputs.close()
        self.guards.close()

    @property
    def tensors(self) -> list[Tensor]:
        """The captured tensors."""
        return [get() for get in self.ways]

    def settle(self, keep: bool) -> None:
        """Keep those captured tensors alive that nobody else has, such as values of a recording, and with `keep` all of them.

        The others stay until the first run is over, as what staging left behind may have them for a while.
        """
        for i, t in enumerate(self.kept or ()):
            if keep or sys.getrefcount(t) <= _OURS:
                self.ways[i] = partial(_same, t)

    def _sources(self, stage: Stage, captures: list[Capture]) -> list[tuple[int, Callable[[], Any], str]]:
        """The captured tensors that are read anew from an attribute on each call; attributes of others are guarded."""
        captured = {id(c.tensor): i for i, c in enumerate(captures)}
        found = []
        for number, (target, name, t) in stage.sources.items():
            source = stage.source_of(t)
            if number in captured and source is not None:
                found.append((captured[number], reach(source[0]), source[1]))
            else:
                stage.guards.attribute(target, name, t)
        return found

    @staticmethod
    def _needed(stage: Stage, outputs: list[Node], given: list[Node], written: list[Capture]) -> list[Capture]:
        known = set(given)
        by_node = {c.node: c for c in stage.captures.values()}
        needed = {c.node: None for c in written}
        for node in toposort(outputs):
            if node.prim is None and node not in known:
                if node not in by_node:
                    raise CompileError(
                        "a tensor of another compiled function is used here; it has no value outside that function"
                    )
                needed[node] = None
        return [by_node[n] for n in needed]

    def holds(self) -> bool:
        """Whether this version still says what the function does."""
        ways = self.ways
        for i, get, name in self.sources:
            owner = get()
            found = None if owner is None else owner.__dict__.get(name)
            if type(found) is not Tensor or found._view is not None:
                return False
            if ways[i]() is not found:
                ways[i] = weakref.ref(found)
        for get, kind in zip(ways, self.types):
            t = get()
            if t is None or t._type is not kind:
                return False
        if self.shares and self.sources and len({id(root_of(t)) for t in self.tensors}) != len(ways):
            return False
        for get in self.pinned:
            if get() is None:
                return False
        return self.guards.hold()

    def is_over(self) -> bool:
        """Whether something that this was compiled for is gone."""
        dynamic = {i for i, _, _ in self.sources}
        return any(get() is None for i, get in enumerate(self.ways) if i not in dynamic) or self.guards.is_over()

    def overlaps(self, tensors: list[Any]) -> bool:
        """Whether an argument shares its elements with another or a captured tensor, so that writes to one would have to be seen in the other."""
        known: dict[int, Any] = {id(root_of(t)): None for t in self.tensors}
        return any(known.setdefault(id(root_of(t)), t) is not t for t in tensors)

    def run(self, tensors: list[Any]) -> Any:
        """Run on a call's tensors and give its result."""
        if self.result_types:
            given = [t._buf for t in tensors]
            given += [get()._buf for get in self.ways]
            if None in given:
                given = [_buffer(t) for t in (*tensors, *self.tensors)]
            program = self.program or self.compile()
            try:
                values = program(*given)
            except MemoryError:
                raise out_of_memory(self.graph) from None
            types = self.result_types
            if self.is_open:
                values, types = values
            elif len(types) == 1 and not isinstance(values, tuple):
                values = (values,)
            out = [make(t, v) for t, v in zip(types, values)]  # type: ignore[arg-type]
        else:
            out = []
        for i, place in self.writes:
            t = self.ways[i]()
            if t._views is None:
                t._buf = out[place]._buf
            else:
                t._replace(out[place])
        for i, place in self.argument_writes:
            tensors[i]._replace(out[place])
        self.kept = None
        return self._finish(out, tensors)

    def record(self, recorder: Any, tensors: list[Any]) -> Any:
        """Run as one operation that a gradient can go back through."""
        if not self.result_types:
            return self._finish([], tensors)
        if not recorder.is_staging:
            for t in (*tensors, *self.tensors):
                _buffer(t)
        graph = specialize(self.graph, self.sizes) if self.sizes and recorder.is_staging else self.graph
        out = recorder.emit(C.call, [*tensors, *self.tensors], {"graph": graph})
        for i, place in self.writes:
            self.ways[i]()._replace(out[place])
        for i, place in self.argument_writes:
            tensors[i]._replace(out[place])
        self.kept = None
        return self._finish(out, tensors)

    def _finish(self, out: Any, tensors: list[Any]) -> Any:
        for fn, args, kwargs in self.deferred:
            fn(*args(out, tensors), **kwargs(out, tensors))
        for effect, build in self.effects:
            effect.write(build(out, tensors))
        return self.build(out, tensors)

    def compile(self) -> Callable[..., Any]:
        """The native program of the graph."""
        from mycel.engines.select import compile_graph

        _with_program.add(self)
        try:
            with _deep_stack():
                self.program = (
                    compiled(self) if self.symbolic or self.is_open else compile_graph(self.graph, self.aliases)
                )
        except MemoryError as error:
            raise told(error, f"compiling {self.graph.name}")  # noqa: B904
        except Exception as error:
            raise note_origin(error)  # noqa: B904
        return self.program


_OURS = 3  # the list, the variable and the argument
_with_program: weakref.WeakSet[Version] = weakref.WeakSet()


def _same(value: Any) -> Any:
    return value


def _on_settings(options: Any) -> None:
    if not config.COMPILED_ANEW.isdisjoint(options):
        for version in list(_with_program):
            version.program = None
            for owner in (version, version.symbolic):
                if owner is not None:
                    owner.phases = None


config.listeners.append(_on_settings)


def _distinct(outputs: list[Node], inputs: list[Node]) -> list[Node]:
    """The outputs, each a node of its own and none of them an input."""
    seen = set(inputs)
    result = []
    for node in outputs:
        if node in seen:
            node = Node(identity, (node,), {}, node.type)
        seen.add(node)
        result.append(node)
    return result


def _with_counts(stage: Stage, graph: Graph) -> Graph:
    """The graph with further results: positions that it does not use, except that the number of them is a size in it."""
    counted = {
        name: node
        for node in stage.literals.values()
        if node.prim is positions
        for name in symbols_in(node.params["count"])
    }
    while counted:
        names = set(symbols_in(*inner_sizes(graph)))
        found = {n for n in graph.nodes if n.prim is positions}
        missing = [node for name, node in counted.items() if name in names and node not in found]
        if not missing:
            break
        graph = Graph(graph.inputs, (*graph.outputs, *missing), graph.name)
    return graph


def _buffer(t: Tensor) -> Any:
    if t._buf is None:
        t._need_value("a compiled function")
    return t._buf


class Jit:
    """A function, method or Cell that is compiled when called."""

    is_compiled_function = True

    def __init__(self, function: Any, fullgraph: bool = False, **options: Any) -> None:
        self.__wrapped__ = function
        self.fullgraph = fullgraph
        self.options = options
        self.__name__ = getattr(function, "__name__", type(function).__name__)
        self.__qualname__ = getattr(function, "__qualname__", self.__name__)
        self.__doc__ = getattr(function, "__doc__", None)
        self.__module__ = getattr(function, "__module__", "")
        self.versions: dict[Any, list[Version]] = {}
        self.lives: dict[Any, LivePlan] = {}
        self.dimensions = Dimensions(bool(options.get("dynamic")))
        self._lock = locks.reentrant()
        self._warned = False
        self._watched: dict[int, Any] = {}
        self._gone: dict[Any, int] = {}
        self._passing: set[Any] = set()  # keys of versions whose captured tensors nothing else keeps

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<compiled {self.__qualname__}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        context = eager.local.context if eager.active else None
        if context is not None and context.is_staging:
            return call(context, self.__wrapped__, args, kwargs)  # type: ignore[arg-type]
        if config.jit_is_off:
            target = self.__wrapped__
            run = getattr(target, "run_with_hooks", None)
            return target(*args, **kwargs) if run is None else run(target.construct, args, kwargs)
        tensors: list[Any] = []
        key = self._key(args, kwargs, tensors)
        plan = self.lives.get(key)
        if plan is not None:
            if is_strict(self.options, self.__wrapped__):
                raise CompileError(str(plan.refusal))
            return run_live(plan, self.__wrapped__, args, kwargs)
        for version in self.versions.get(key, ()):
            if version.holds():
                break
        else:
            found = self._version(key, args, kwargs)
            if found is None:
                return run_live(self.lives[key], self.__wrapped__, args, kwargs)
            version = found
        if version.shares and version.overlaps(tensors):
            return run_live(self._overlap(key), self.__wrapped__, args, kwargs)
        if context is None:
            return version.run(tensors)
        if version.refusal:
            return run_live(self._by_value(key, version.refusal), self.__wrapped__, args, kwargs)
        return version.record(context, tensors)

    def _by_value(self, key: Any, reason: str) -> LivePlan:
        """The plan for calls inside an eager gradient that needs derivatives of the program's own, which are no graph."""
        key = (key, "recorded")
        if key not in self.lives:
            self._run_live(key, Fallback(self.__qualname__, reason, ""))
        return self.lives[key]

    def _key(self, args: tuple[Any, ...], kwargs: dict[str, Any], tensors: list[Any]) -> Any:
        key = tuple([describe(a, tensors) for a in args])
        if kwargs:
            key = (key, tuple([(k, describe(v, tensors)) for k, v in kwargs.items()]))
        if len(tensors) > 1:
            numbers = [id(t) for t in tensors]
            if len(set(numbers)) != len(numbers):
                key = (key, "shared", tuple([numbers.index(n) for n in numbers]))
        hooks = hooks_key(tensors)
        return key if hooks is None else (key, "hooks", hooks)

    def unit(self, stage: LiveStage, args: Any, kwargs: Any) -> Any:
        """Call as one operation of a segment; MISSING where this is not one graph."""
        tensors: list[Any] = []
        key = self._key(args, kwargs, tensors)
        for version in self.versions.get(key, ()):
            if version.holds():
                break
        else:
            found = None if key in self.lives else self._version(key, args, kwargs, quiet=True)
            if found is None:
                return MISSING
            version = found
        if version.shares and version.overlaps(tensors) or version.guards.reads_any(stage.written()) or version.is_open:
            return MISSING
        if stage.depth or stage.outer is not None:
            if version.refusal:
                return MISSING
        return version.record(stage, tensors)

    def _overlap(self, key: Any) -> LivePlan:
        """The plan for calls whose arguments are tensors that the function also uses from outside and changes."""
        key = (key, "overlap")
        if key not in self.lives:
            reason = "an argument is also a tensor that the function uses from outside, and one of them is written; pass a copy"
            self._run_live(key, Fallback(self.__qualname__, reason, ""))
        return self.lives[key]

    def _version(self, key: Any, args: Any, kwargs: Any, quiet: bool = False) -> Optional[Version]:
        """A version for these arguments; None where they run in segments."""
        with self._lock:
            if key in self.lives:
                return None
            self._watch(key)
            versions = self.versions.setdefault(key, [])
            for version in versions:
                if version.holds():
                    return version
            over = [v for v in versions if v.is_over()]
            versions[:] = [v for v in versions if v not in over]
            self._gone[key] = gone = self._gone.get(key, 0) + len(over)
            if any(v.guards.hold() for v in over):
                self._passing.add(key)
            if len(versions) + gone >= _MANY:
                reason = (
                    f"what it reads from outside has changed more than {_MANY} times, and each change needs a new compilation; "
                    "pass what changes as a tensor argument"
                )
                self._run_live(key, Fallback(self.__qualname__, reason, ""), quiet)
                return None
            declared = declared_inputs(self.__wrapped__, args, describe)
            served = self.dimensions.serve(
                key, self.versions, lambda plan: self._settled(key, self._stage(args, kwargs, plan)), declared
            )
            if served is not None:
                return served
            try:
                version = self._settled(key, self._stage(args, kwargs))
            except REFUSALS as error:
                self._refused(key, error, quiet)
                return None
            except Exception as error:
                if isinstance(error, MemoryError):
                    told(error, f"staging {self.__qualname__}")
                raise show_user_lines(error) from error.__cause__
            self.versions.setdefault(key, versions).insert(0, version)
            known = set(_identities(key))
            alike = [found for other, found in self.versions.items() if not known or known == set(_identities(other))]
            count = sum(v.symbolic is None for found in alike for v in found)
            if count > _MANY and not self._warned:
                self._warned = True
                logger.warning("%s has been compiled %d times; arguments that are Python numbers are constants, pass what changes as tensors",
                               self.__qualname__, count)  # fmt: skip
            return version

    def _settled(self, key: Any, version: Version) -> Version:
        version.settle(key in self._passing)
        return version

    def _watch(self, key: Any) -> None:
        """Forget, with each object that a key has, what was compiled for it."""
        mine = weakref.ref(self)
        for part in _identities(key):
            if part.number in self._watched or not isinstance(part.get, weakref.ref):
                continue

            def forget(_: Any, number: int = part.number) -> None:
                jit = mine()
                if jit is not None:
                    jit._watched.pop(number, None)
                    jit._forget()

            self._watched[part.number] = weakref.ref(part.get(), forget)

    def _forget(self) -> None:
        tables: tuple[Any, ...] = (self.versions, self.lives, self._gone, self.dimensions.calls, self.dimensions.bound)
        for table in tables:
            for key in list(table):
                if any(part.get() is None for part in _identities(key)):
                    table.pop(key, None)
        self._passing = {key for key in self._passing if all(part.get() is not None for part in _identities(key))}

    @timed("staging", lambda self, *_: self.__qualname__)
    def _stage(self, args: Any, kwargs: Any, plan: Optional[Plan] = None) -> Version:
        stage = Stage()
        arguments = _Arguments(None if plan is None else plan.types)
        names = _parameter_names(self.__wrapped__)
        given = [arguments.replace(a, names[i] if i < len(names) else f"argument{i}") for i, a in enumerate(args)]
        options = {k: arguments.replace(v, k) for k, v in kwargs.items()}
        stage.scope.own.update(arguments.nodes)
        stage.vary(arguments.numbers)
        for value in arguments.opaque:
            stage.guards.content(value)
        result: Any = None
        decisions = Decisions({}, shows_values=True) if plan is None else plan.decisions
        try:
            with garbage.left_alone(), _deep_stack(), eager.use_context(stage), at(None), deciding(decisions):
                use_stage(stage)
                with watched(stage):
                    result = call(stage, self.__wrapped__, given, options)
                    for generator in stage.generators:
                        generator.close()
                refuse_unseen(stage)
                return Version(stage, arguments, result, self.__name__.replace("<lambda>", "lambda"))
        except BaseException as error:
            for scope in reversed(stage.scopes):
                scope.take_back(stage)
            if isinstance(error, REFUSALS) and stage.ended is not None:
                note_end(error, *stage.ended)
            if isinstance(error, InconclusiveDimension):
                raise NeedsValue(f"{error}; compute with tensors, or do this outside the compiled function") from error
            if arguments.numbers and isinstance(error, Exception) and not isinstance(error, REFUSALS):
                raise NeedsValue(
                    f"a number marked as mutable is used where its value is needed ({error}); pass it unmarked"
                ) from error
            raise

    def _refused(self, key: Any, error: Exception, quiet: bool) -> None:
        self._run_live(key, Fallback(self.__qualname__, reason_of(error), describe_places(error)), quiet)

    def _run_live(self, key: Any, reason: Fallback, quiet: bool = False) -> None:
        if self.fullgraph or is_strict(self.options, self.__wrapped__):
            raise CompileError(str(reason)) from None
        if not quiet and not any(p.refusal == reason for p in self.lives.values()):
            logger.warning("%s\n  it runs in compiled segments with Python in between; explain() shows them", reason)
        self.lives[key] = LivePlan(reason)

    def compile(self, *args: Any, **kwargs: Any) -> Optional[Version]:
        """Compile for these arguments without running; None where they run in segments."""
        version, _ = self.look(args, kwargs)
        if version is not None and version.program is None and version.result_types:
            version.compile()
        return version

    def look(self, args: Any, kwargs: Any) -> tuple[Optional[Version], Optional[LivePlan]]:
        """The version for these arguments, or how they are run in segments."""
        key = self._key(args, kwargs, [])
        version = self._version(key, args, kwargs)
        if version is None:
            return None, self.lives[key]
        version.kept = None
        return version, None


class Unit(Jit):
    """A function that is compiled as a part of others, and kept alive by them alone."""

    @property
    def __wrapped__(self) -> Any:
        return self._function()

    @__wrapped__.setter
    def __wrapped__(self, function: Any) -> None:
        self._function = weakref.WeakMethod(function) if isinstance(function, types.MethodType) else reach(function)


@timed("live", lambda plan, *_: plan.refusal.function)
def run_live(plan: LivePlan, function: Any, args: Any, kwargs: Any) -> Any:
    """Call a function in compiled segments with Python in between."""
    stage = LiveStage(plan, eager.current_context())
    try:
        with _deep_stack(), eager.use_context(stage), at(None):
            return call(stage, function, args, kwargs)
    except Exception as error:
        raise show_user_lines(error) from error.__cause__
    finally:
        stage.close()


def _parameter_names(function: Any) -> tuple[str, ...]:
    function = getattr(function, "construct", function)
    inner = getattr(function, "__func__", function)
    code = getattr(inner, "__code__", None)
    if code is None:
        return ()
    return tuple(code.co_varnames[inner is not function : code.co_argcount])


class _Limits:
    """The blocks of `_deep_stack` that are open, by thread, and Python's limit of recursion before the first: it is one for all threads."""

    def __init__(self) -> None:
        # A signal's handler may compile something while its own thread holds the lock.
        self.lock = locks.reentrant()
        self.open: dict[int, int] = {}
        self.before = 0

    def enter(self) -> None:
        with self.lock:
            limit = sys.getrecursionlimit()
            if not self.open:
                self.before = limit
            thread = threading.get_ident()
            self.open[thread] = self.open.get(thread, 0) + 1
            if limit < _STACK:
                sys.setrecursionlimit(_STACK)

    def leave(self) -> None:
        with self.lock:
            thread = threading.get_ident()
            # An interrupt may have come before it was entered.
            left = self.open.pop(thread, 1) - 1
            if left:
                self.open[thread] = left
            # Whoever changed it meanwhile meant it.
            if not self.open and sys.getrecursionlimit() == _STACK:
                sys.setrecursionlimit(self.before)


_limits = _Limits()


@locks.in_child
def _in_child() -> None:
    """Forget the blocks of threads that the child does not have."""
    thread = threading.get_ident()
    mine = _limits.open.get(thread)
    _limits.open = {thread: mine} if mine else {}
    if not mine and sys.getrecursionlimit() == _STACK and _limits.before:
        sys.setrecursionlimit(_limits.before)


@contextmanager
def _deep_stack() -> Iterator[None]:
    """Room for the interpreter, which takes several Python calls for each call of the program."""
    try:
        _limits.enter()
        yield
    finally:
        _limits.leave()


P = ParamSpec("P")
R = TypeVar("R")


@overload
def jit(
    function: Callable[P, R],
    *,
    capture_mode: str = ...,
    jit_level: str = ...,
    dynamic: int = ...,
    fullgraph: bool = ...,
    backend: str = ...,
    **options: Any,
) -> Callable[P, R]: ...


@overload
def jit(
    function: None = ...,
    *,
    capture_mode: str = ...,
    jit_level: str = ...,
    dynamic: int = ...,
    fullgraph: bool = ...,
    backend: str = ...,
    **options: Any,
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...


def jit(
    function: Optional[Callable[..., Any]] = None,
    *,
    capture_mode: str = "ast",
    jit_level: str = "O0",
    dynamic: int = 0,
    fullgraph: bool = False,
    backend: str = "",
    **options: Any,
) -> Any:
    """Compile a function, method or Cell into one graph when it is called.

    Works as a decorator with and without arguments. Tensors in the arguments (also inside containers) are inputs of the graph, everything else is a
    constant, for each value of which the function is compiled anew. With `fullgraph` a construct that cannot be compiled raises
    CompileError; otherwise the reason is logged and the function runs in compiled segments with Python in between, as `explain` shows. `capture_mode` may be "ast", "bytecode" or "trace", which mean
    the same here; with `dynamic` 1 all sizes of tensors are symbols from the first call on, else those that differ between calls are from the second;
    `jit_level` "O0", "O1" or "O2" and `backend` "", "ms_backend" or "GE" are accepted likewise. Raises ValueError for other values.

    >>> import mycel as ms
    >>> @ms.jit
    ... def double_until(x, limit):
    ...     while x < limit:
    ...         x = x * 2
    ...     return x
    >>> double_until(ms.Tensor(3.0), ms.Tensor(20.0))
    Tensor(shape=[], dtype=Float32, value= 24)
    """
    function = options.pop("fn", function)
    mode = options.pop("mode", None)
    if type(dynamic) is not int:
        raise TypeError(f"jit: dynamic must be an int, not {type(dynamic).__name__}")
    for name, value, allowed in (
        ("capture_mode", capture_mode, ("ast", "bytecode", "trace")),
        ("jit_level", jit_level or "O0", ("O0", "O1", "O2")),
        ("dynamic", dynamic, (0, 1)),
        ("backend", backend, ("", "ms_backend", "GE")),
        ("mode", mode or "PSJit", ("PSJit", "PIJit")),
    ):
        if value not in allowed:
            raise ValueError(f"jit: {name} must be one of {', '.join(map(repr, allowed))}, not {value!r}")
    arguments.flag("jit", "fullgraph", fullgraph)
    check_options("jit", options)
    settings: Mapping[str, Any] = {**options, "dynamic": dynamic} if dynamic else dict(options)
    if function is None:
        return lambda f: _wrapped(f, fullgraph, settings)
    return _wrapped(function, fullgraph, settings)


def _wrapped(function: Any, fullgraph: bool, settings: Mapping[str, Any]) -> Union[Jit, Any]:
    if isinstance(function, Jit):
        function = function.__wrapped__
    if isinstance(function, (staticmethod, classmethod)):
        return type(function)(_wrapped(function.__func__, fullgraph, settings))
    arguments.function("jit", "the argument", function, "a function, a method or a Cell")
    return Jit(function, fullgraph, **settings)


compiler.make, compiler.unit = Jit, Unit
