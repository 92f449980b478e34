"""`jit`: compiled functions, and the cache of their graphs.

A call is described by a key: the structure of its arguments, the types of the tensors in them and
the values of everything else. For each key there are versions (`compiled.function_version`), newest
first; the first whose guards hold runs. None of this keeps an object of the program alive: keys,
guards and versions refer to it weakly, and what was compiled for an argument is forgotten when the
argument is gone. Where a function cannot be one graph, the reason is logged once, kept for
`explain`, and the function runs in compiled segments for this key
(`frontend.ast_interpreter.graph_breaks`); with ``fullgraph=True`` it is an error instead.
"""

from __future__ import annotations

import dataclasses
import types
import weakref
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar, overload

from mycel._src.compiler.ir.dimension_guards import Decisions, deciding
from mycel._src.compiler.ir.dims import InconclusiveDimension
from mycel._src.compiler.ir.graph import at
from mycel._src.engines.error_messages import told
from mycel._src.foundation import arguments
from mycel._src.foundation.errors import CompileError, NeedsValue
from mycel._src.foundation.log import logger
from mycel._src.foundation.python_runtime import finalization, garbage_collection
from mycel._src.foundation.python_runtime.tracebacks import at_border
from mycel._src.foundation.settings import config
from mycel._src.foundation.settings.jit_config import check_options, is_strict
from mycel._src.foundation.settings.parallel_settings import current
from mycel._src.foundation.spans import timed
from mycel._src.foundation.system import locks
from mycel._src.staging.compiled.call_signature import Arguments, describe, identities, key_of
from mycel._src.staging.compiled.compile_threshold import Structures
from mycel._src.staging.compiled.function_version import Version
from mycel._src.staging.compiled.parallel_dispatch import dividing
from mycel._src.staging.compiled.recursion_limit import deep_stack
from mycel._src.staging.frontend.ast_interpreter.graph_breaks import REFUSALS, LivePlan, LiveStage
from mycel._src.staging.frontend.ast_interpreter.interpret import Interpreter
from mycel._src.staging.frontend.calls.native_calls import refuse_unseen, watched
from mycel._src.staging.frontend.graph_building.stage_state import MISSING
from mycel._src.staging.frontend.graph_building.symbolic_sizes import use_stage
from mycel._src.staging.frontend.returned_iterators import without_iterators
from mycel._src.staging.frontend.source_code.tracebacks import describe_places, note_end, reason_of, show_user_lines
from mycel._src.staging.frontend.specialization.dynamic_shapes import Dimensions, Plan, declared_inputs
from mycel._src.staging.frontend.specialization.snapshots import reach
from mycel._src.tensors.cells.cell import compiler
from mycel._src.tensors.core import eager

__all__ = ["Fallback", "Jit", "jit"]

_MANY = 16


@dataclasses.dataclass(frozen=True)
class Fallback:
    """The reason why a function is not one graph, with the place and what to write instead."""

    function: str
    reason: str
    place: str

    def __str__(self) -> str:
        return f"{self.function} is not one graph: {self.reason}" + (f"\n{self.place}" if self.place else "")


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
        self.dimensions: Dimensions[Version] = Dimensions(bool(options.get("dynamic")))
        self.structures = Structures()
        # what `distributed.parallel_modes` keeps of it
        self.divided: Any = None
        self._lock = locks.reentrant()
        self._warned = False
        self._watched: dict[int, Any] = {}
        self._gone: dict[Any, int] = {}
        # keys of versions whose captured tensors nothing else keeps
        self._passing: set[Any] = set()

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<compiled {self.__qualname__}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            context = eager.local.context if eager.active else None
            if context is not None and context.is_staging:
                return context.invoke(self.__wrapped__, args, kwargs)
            if config.jit_is_off:
                return self._run_plain(args, kwargs)
            if dividing.call is not None and context is None and current().dividing is not None:
                return dividing.call(self, args, kwargs)
            if context is not None and dividing.apart:
                raise RuntimeError(
                    f"{self.__qualname__}: it is divided among ranks, and so is only a whole compiled step; compute "
                    "gradients inside of the compiled function, not around it"
                )
            return self.run_here(args, kwargs, context)
        except Exception as error:
            at_border(error)
            raise

    def run_here(self, args: tuple[Any, ...], kwargs: dict[str, Any], context: Any = None) -> Any:
        """Call the function on this device, in the eager context that is in force or None."""
        tensors: list[Any] = []
        key = key_of(args, kwargs, tensors)
        plan = self.lives.get(key)
        if plan is not None:
            if is_strict(self.options, self.__wrapped__):
                raise CompileError(str(plan.refusal))
            return run_live(plan, self.__wrapped__, args, kwargs)
        for version in self.versions.get(key, ()):
            if version.holds():
                break
        else:
            if not self._is_strict() and self.structures.is_passing(args, kwargs):
                with self.structures.passing():
                    return without_iterators(None, self._run_plain(args, kwargs))
            found = self._version(key, args, kwargs)
            self.structures.met(args, kwargs)
            if found is None:
                return run_live(self.lives[key], self.__wrapped__, args, kwargs)
            version = found
        if version.shares and version.overlaps(tensors):
            return run_live(self._overlap(key), self.__wrapped__, args, kwargs)
        if context is None:
            return version.run(tensors, (args, kwargs)) if version.returns_given else version.run(tensors)
        if version.refusal:
            return run_live(self._by_value(key, version.refusal), self.__wrapped__, args, kwargs)
        return version.record(context, tensors, (args, kwargs))

    def _run_plain(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the function itself, as plain Python."""
        target = self.__wrapped__
        run = getattr(target, "run_with_hooks", None)
        return target(*args, **kwargs) if run is None else run(target.construct, args, kwargs)

    def _is_strict(self) -> bool:
        """Return whether it is an error where the function is not one graph."""
        return self.fullgraph or is_strict(self.options, self.__wrapped__)

    def _by_value(self, key: Any, reason: str) -> LivePlan:
        """Return the plan for calls inside an eager gradient that need a derivative of the
        program's own, which cannot be part of a graph.
        """
        key = (key, "recorded")
        if key not in self.lives:
            self._run_live(key, Fallback(self.__qualname__, reason, ""))
        return self.lives[key]

    def unit(self, stage: LiveStage, args: Any, kwargs: Any) -> Any:
        """Call the function as one operation of a segment; return MISSING where it is not one
        graph.
        """
        tensors: list[Any] = []
        key = key_of(args, kwargs, tensors)
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
        return version.record(stage, tensors, (args, kwargs))

    def _overlap(self, key: Any) -> LivePlan:
        """Return the plan for calls with an argument that the function also uses from outside and
        changes.
        """
        key = (key, "overlap")
        if key not in self.lives:
            reason = (
                "an argument is also a tensor that the function uses from outside, and one of them is written; "
                "pass a copy"
            )
            self._run_live(key, Fallback(self.__qualname__, reason, ""))
        return self.lives[key]

    def _version(self, key: Any, args: Any, kwargs: Any, quiet: bool = False) -> Version | None:
        """Return a version for these arguments; None where they run in segments."""
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
                    f"what it reads from outside has changed more than {_MANY} times, and each change needs a new "
                    "compilation; "
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
            known = set(identities(key))
            alike = [found for other, found in self.versions.items() if not known or known == set(identities(other))]
            count = sum(v.symbolic is None for found in alike for v in found)
            if count > _MANY and not self._warned:
                self._warned = True
                logger.warning(
                    "%s has been compiled %d times; arguments that are Python numbers are constants, pass what changes "
                    "as tensors",
                    self.__qualname__,
                    count,
                )
            return version

    def _settled(self, key: Any, version: Version) -> Version:
        if key in self._passing:
            version.hold()
        return version

    def _watch(self, key: Any) -> None:
        """Let what was compiled for a key be forgotten when an object in the key is gone."""
        mine = weakref.ref(self)
        for part in identities(key):
            if part.number in self._watched or not isinstance(part.get, weakref.ref):
                continue

            def forget(number: int = part.number) -> None:
                jit = mine()
                if jit is not None:
                    jit._watched.pop(number, None)
                    jit._forget()

            self._watched[part.number] = finalization.when_gone(part.get(), forget, at_exit=False)

    def _forget(self) -> None:
        tables: tuple[Any, ...] = (self.versions, self.lives, self._gone, self.dimensions.calls, self.dimensions.bound)
        for table in tables:
            for key in list(table):
                if any(part.get() is None for part in identities(key)):
                    table.pop(key, None)
        self._passing = {key for key in self._passing if all(part.get() is not None for part in identities(key))}

    @timed("staging", lambda self, *_: self.__qualname__)
    def _stage(self, args: Any, kwargs: Any, plan: Plan | None = None) -> Version:
        stage = Interpreter()
        arguments = Arguments(None if plan is None else plan.types)
        names = _parameter_names(self.__wrapped__)
        given = [arguments.replace(a, names[i] if i < len(names) else f"argument{i}") for i, a in enumerate(args)]
        options = {k: arguments.replace(v, k) for k, v in kwargs.items()}
        arguments.place((args, kwargs), (given, options))
        stage.scope.own.update(arguments.nodes)
        stage.vary(arguments.numbers)
        for value in arguments.opaque:
            stage.guards.content(value)
        result: Any = None
        decisions = Decisions({}, shows_values=True) if plan is None else plan.decisions
        try:
            with garbage_collection.left_alone(), deep_stack(), eager.use_context(stage), at(None), deciding(decisions):
                use_stage(stage)
                with watched(stage):
                    result = stage.invoke(self.__wrapped__, given, options)
                    for generator in stage.generators:
                        generator.close()
                refuse_unseen(stage)
                self.structures.recurses = self.structures.recurses or stage.recurses
                return Version(stage, arguments, result, self.__name__.replace("<lambda>", "lambda"))
        except BaseException as error:
            self.structures.recurses = self.structures.recurses or stage.recurses
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
        if isinstance(error, CompileError) and error.undecided is not None:
            self.lives[key].python[error.undecided] = reason_of(error)

    def _run_live(self, key: Any, reason: Fallback, quiet: bool = False) -> None:
        if self._is_strict():
            raise CompileError(str(reason)) from None
        if not quiet and not any(p.refusal == reason for p in self.lives.values()):
            logger.warning("%s\n  it runs in compiled segments with Python in between; explain() shows them", reason)
        self.lives[key] = LivePlan(reason)

    def compile(self, *args: Any, **kwargs: Any) -> Version | None:
        """Compile for these arguments without running; return None where they run in segments."""
        version, _ = self.look(args, kwargs)
        if version is not None and version.program is None and version.result_types:
            version.compile()
        return version

    def look(self, args: Any, kwargs: Any) -> tuple[Version | None, LivePlan | None]:
        """Return the version for these arguments and None, or None and the plan of segments."""
        key = key_of(args, kwargs, [])
        version = self._version(key, args, kwargs)
        if version is None:
            return None, self.lives[key]
        version.kept = None
        return version, None


class Unit(Jit):
    """A function that is compiled as a part of others, which alone keep it alive."""

    @property
    def __wrapped__(self) -> Any:
        return self._function()

    @__wrapped__.setter
    def __wrapped__(self, function: Any) -> None:
        self._function = finalization.Method(function) if isinstance(function, types.MethodType) else reach(function)


@timed("live", lambda plan, *_: plan.refusal.function)
def run_live(plan: LivePlan, function: Any, args: Any, kwargs: Any) -> Any:
    """Call `function` with `args` and `kwargs` in compiled segments with Python in between.

    `plan` has the segments that are compiled already and the reason why they are needed.
    """
    stage = LiveStage(plan, eager.current_context())
    try:
        with deep_stack(), eager.use_context(stage), at(None):
            result = without_iterators(stage, stage.invoke(function, args, kwargs))
    except Exception as error:
        raise show_user_lines(error) from error.__cause__
    finally:
        stage.close()
    return stage.numbers_of(result) if stage.numbers else result


def _parameter_names(function: Any) -> tuple[str, ...]:
    function = getattr(function, "construct", function)
    inner = getattr(function, "__func__", function)
    code = getattr(inner, "__code__", None)
    if code is None:
        return ()
    return tuple(code.co_varnames[inner is not function : code.co_argcount])


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
    function: Callable[..., Any] | None = None,
    *,
    capture_mode: str = "ast",
    jit_level: str = "O0",
    dynamic: int = 0,
    fullgraph: bool = False,
    backend: str = "",
    **options: Any,
) -> Any:
    """Compile a function, method or Cell into one graph when it is called.

    Works as a decorator with and without arguments. Tensors in the arguments (also inside
    containers) are inputs of the graph, everything else is a constant, for each value of which the
    function is compiled anew.

    Args:
        function (Callable[..., Any] | None): The function, method or Cell; None to get a decorator.
            Default: None.
        capture_mode (str): "ast", "bytecode" or "trace", which mean the same here. Default: "ast".
        jit_level (str): "O0", "O1" or "O2"; has no effect. Default: "O0".
        dynamic (int): 1 if all sizes of tensors are symbols from the first call on; else those that
            differ between calls are, from the second call on. Default: 0.
        fullgraph (bool): Whether a construct that cannot be compiled raises CompileError; otherwise
            the reason is logged and the function runs in compiled segments with Python in between,
            as `explain` shows. Default: False.
        backend (str): "", "ms_backend" or "GE"; has no effect. Default: "".
        **options (Any): Older names of options, and further ones, which have no effect.

    Returns:
        Callable[..., Any]: The compiled function, or the decorator.

    Raises:
        ValueError: For values that an option does not have.

    Examples:
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
        ("jit_level", jit_level, ("O0", "O1", "O2")),
        ("dynamic", dynamic, (0, 1)),
        ("backend", "" if backend is None else backend, ("", "ms_backend", "GE")),
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


def _wrapped(function: Any, fullgraph: bool, settings: Mapping[str, Any]) -> Jit | Any:
    if isinstance(function, Jit):
        function = function.__wrapped__
    if isinstance(function, (staticmethod, classmethod)):
        return type(function)(_wrapped(function.__func__, fullgraph, settings))
    arguments.function("jit", "the argument", function, "a function, a method or a Cell")
    return Jit(function, fullgraph, **settings)


compiler.make, compiler.unit = Jit, Unit
