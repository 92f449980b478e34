"""Dynamic shapes: argument dimensions that vary between calls become symbols of one version.

The first call of a function is compiled for its sizes. When a later call differs from earlier ones
in sizes alone, the dimensions that differ become symbols, and the function is staged with them
(`Plan`). Dimensions that were equal in every call so far share a symbol; a call in which they
differ gives them symbols of their own. While staging, questions about symbols that have no general
answer are decided by the sizes of that call, and the decisions become guards on the sizes. Sizes of
0 and 1 always get a version of their own, since they broadcast. If the function needs one value of
a symbol, its dimension is constant from then on.

A version with symbols serves a call through a *bound* version, which is the same version for actual
sizes and is called again as fast as any other. The last `MOST` bound versions are kept by the types
of the arguments.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from mycel._src.compiler.ir.dim_values import evaluate, substitute, symbols_in
from mycel._src.compiler.ir.dimension_guards import Decisions
from mycel._src.compiler.ir.dims import Dim, DimLike, symbol
from mycel._src.compiler.ir.symbol_binding import Binder
from mycel._src.compiler.ir.types import TensorType, tensor_type
from mycel._src.compiler.prims.nonzero_positions import positions
from mycel._src.compiler.transforms.specialize import specialize
from mycel._src.engines import nonfinite
from mycel._src.engines.select import compile_graph, engine
from mycel._src.engines.size_specialization import programs_of, types_for
from mycel._src.foundation.dtype import DType

if TYPE_CHECKING:
    from mycel._src.compiler.ir.graph import Graph
    from mycel._src.engines.base import Sized
    from mycel._src.tensors.core.tensor import Tensor

__all__ = ["Dimensions", "Plan", "Sizable", "Symbolic", "compiled", "declared_inputs", "is_open"]

Declared = TensorType | DType

MOST = 128
_REFUSALS = 4
_MANY = 16
_numbers = itertools.count()


def is_open(graph: Any) -> bool:
    """Return whether data decide sizes in a graph."""
    return any(node.prim is positions for node in graph.nodes)


def size_free(key: Any, types: list[TensorType]) -> Any:
    """Return a key without the sizes of the tensors in it, and add their types to `types`."""
    if type(key) is TensorType:
        types.append(key)
        return (TensorType, key.dtype, key.rank)
    if type(key) is tuple:
        return tuple([size_free(k, types) for k in key])
    return key


class Plan:
    """The types with which a function is to be staged, and the sizes by which questions about their
    symbols are decided.
    """

    def __init__(self, types: Sequence[TensorType], sizes: Mapping[str, int]) -> None:
        self.types, self.sizes = list(types), dict(sizes)
        self.decisions = Decisions(sizes, shows_values=True)

    def describe(self) -> list[str]:
        """Return one line for each symbol and one for each decision about symbols."""
        atoms = symbols_in(*[t.shape for t in self.types])
        lines = [
            f"{n} is {a.low:.0f} or more" + (f", {a.high:.0f} at most" if a.high < math.inf else "")
            for n, a in atoms.items()
        ]
        return lines + self.decisions.describe()

    def pinned(self) -> set[str]:
        """Return the symbols for which the decisions allow one value only."""
        found = set()
        for (difference, equal), answer in self.decisions.guards.items():
            names = symbols_in(difference)
            if equal and answer and len(names) == 1:
                (name,) = names
                near = [evaluate(difference, {name: self.sizes[name] + k}) for k in (1, 2, 7)]
                if 0 not in near:
                    found.add(name)
        return found


class Sizable(Protocol):
    """What is asked of a version of a function: its graph, and what it keeps of its programs.

    `aliases` maps outputs to the inputs that they replace, and `kept` are tensors that are kept
    alive until the first run. `is_open` says that data decide sizes. A version that is bound to
    actual sizes has them, by symbol, and the one with symbols that it was made of as `symbolic`.
    """

    graph: Graph
    aliases: dict[int, int]
    kept: list[Tensor] | None
    result_types: tuple[Any, ...]
    program: Callable[..., Any] | None
    symbolic: Any
    phases: Any
    is_open: bool
    sizes: dict[str, int]

    def holds(self) -> bool:
        """Return whether all that was read while staging is as it was."""


V = TypeVar("V", bound=Sizable)


class Symbolic(Generic[V]):
    """A version with symbols: the conditions under which it serves a call, and its programs."""

    def __init__(self, version: V, plan: Plan) -> None:
        self.version, self.plan = version, plan
        self.bind = Binder(plan.types)
        self.holds_for = plan.decisions.condition()
        self.pinned = {name: plan.sizes[name] for name in sorted(plan.pinned())}
        self.programs: Sized | None = None
        self.phases: Any = None

    def entry(self, sizes: Mapping[str, int]) -> Callable[..., Any]:
        """Return the program for actual sizes."""
        if self.programs is None:
            # Before the program pinned a symbol, its size was written as the symbol; from then on,
            # as the number.
            graph, aliases = self.version.graph, self.version.aliases
            graph = specialize(graph, self.pinned) if self.pinned else graph
            self.programs = engine().sized(graph, aliases) if aliases or self.pinned else programs_of(graph)
        return self.programs.entry({n: size for n, size in sizes.items() if n not in self.pinned})

    def sizes(self, types: Sequence[TensorType]) -> dict[str, int] | None:
        """Return the sizes of the symbols for a call of these types; None for a call that this
        version does not serve.
        """
        sizes = self.bind(types)
        if sizes is None or min(sizes.values(), default=2) < 2 or not self.holds_for(sizes):
            return None
        return sizes


class _Calls(Generic[V]):
    """The calls so far that differ in sizes alone."""

    def __init__(self) -> None:
        self.seen: list[tuple[TensorType, ...]] = []
        self.symbolic: list[Symbolic[V]] = []
        self.constant: set[tuple[int, int]] = set()
        self.refusals = self.staged = 0
        self.reasons: list[str] = []

    def plan(self, types: tuple[TensorType, ...], every: bool, declared: tuple[Declared, ...] | None) -> Plan | None:
        """Return the plan for a call, if a dimension differs from that of other calls or is
        declared to vary; else None.
        """
        if declared is not None:
            return _declared_plan(types, declared)
        columns: dict[tuple[int, ...], Dim] = {}
        sizes: dict[str, int] = {}
        made = []
        for i, t in enumerate(types):
            shape: list[DimLike] = []
            for axis, d in enumerate(t.shape):
                size = int(d)
                column = tuple([*[int(s[i].shape[axis]) for s in self.seen], size])
                differs = every or len(set(column)) > 1
                if not differs or size < 2 or (i, axis) in self.constant:
                    shape.append(size)
                    continue
                if column not in columns:
                    columns[column] = symbol(f"s{next(_numbers)}", 2)
                shape.append(columns[column])
                sizes[repr(columns[column])] = size
            made.append(tensor_type(tuple(shape), t.dtype))
        return Plan(made, sizes) if sizes else None

    def note_constant(self, plan: Plan, names: set[str]) -> None:
        for i, t in enumerate(plan.types):
            for axis, d in enumerate(t.shape):
                if isinstance(d, Dim) and repr(d) in names:
                    self.constant.add((i, axis))


def declared_inputs(function: Any, args: Any, describe: Callable[[Any, list[Any]], Any]) -> Any:
    """Return the types that `Cell.set_inputs` declared for a call, or None.

    The type of a tensor of any number of dimensions is its element type.
    """
    owner = function if hasattr(function, "_inputs_declared") else args[0] if args else None
    found = getattr(owner, "_inputs_declared", None)
    if not found:
        return None
    tensors: list[Any] = []
    inputs, options = found
    for value in (*inputs, *options.values()):
        describe(value, tensors)
    return tuple([t._type if t.__dict__.get("_declared_shape", ()) is not None else t.dtype for t in tensors])


def _open_type(rank: int, dtype: DType) -> TensorType:
    return tensor_type(tuple([symbol(f"r{next(_numbers)}", 0) for _ in range(rank)]), dtype)


def _declared_plan(types: tuple[TensorType, ...], given: tuple[Declared, ...]) -> Plan | None:
    sizes = None
    if len(given) == len(types):
        declared = [d if isinstance(d, TensorType) else _open_type(t.rank, d) for d, t in zip(given, types)]
        sizes = Binder(declared)(types)
    if sizes is None:
        wanted = ", ".join(repr(d) if isinstance(d, TensorType) else f"{d.name} of any rank" for d in given)
        got = ", ".join(map(repr, types))
        raise ValueError(f"the inputs do not fit those declared by set_inputs: expected {wanted}, got {got}")
    fresh: dict[str, Any] = {}
    hints: dict[str, int] = {}
    for name, atom in symbols_in(*[t.shape for t in declared]).items():
        fresh[name] = sizes[name]
        if sizes[name] >= 2:
            fresh[name] = symbol(f"s{next(_numbers)}", max(int(atom.low), 2), atom.high)
            hints[repr(fresh[name])] = sizes[name]
    if not hints:
        return None
    return Plan([tensor_type(tuple([substitute(d, fresh) for d in t.shape]), t.dtype) for t in declared], hints)


class Dimensions(Generic[V]):
    """The sizes in the calls of one compiled function."""

    def __init__(self, every: bool = False) -> None:
        self.every = every
        self.calls: dict[Any, _Calls[V]] = {}
        self.bound: OrderedDict[Any, V] = OrderedDict()

    def serve(
        self,
        key: Any,
        versions: dict[Any, list[V]],
        stage: Callable[[Plan], V],
        declared: tuple[Declared, ...] | None = None,
    ) -> V | None:
        """Return a version with symbols for a call with this `key`.

        It is found, or staged by `stage` from a plan, and entered in `versions`; `declared` are the
        types that the program declared. Returns None for a call that is to be compiled for its own
        sizes. Raises ValueError for tensors that do not fit `declared`.
        """
        types: list[TensorType] = []
        free = size_free(key, types)
        if not any(t.shape for t in types):
            return None
        calls = self.calls.setdefault(free, _Calls())
        for symbolic in calls.symbolic:
            sizes = symbolic.sizes(types)
            if sizes is not None and symbolic.version.holds():
                return self._bound(key, versions, symbolic, sizes)
        known = calls.seen or self.every or declared is not None
        plan = calls.plan(tuple(types), self.every, declared) if known else None
        if len(calls.seen) < 8:
            calls.seen.append(tuple(types))
        if plan is None or calls.refusals >= _REFUSALS or calls.staged >= _MANY:
            return None
        calls.staged += 1
        try:
            version = stage(plan)
        except Exception as error:
            # If staging fails without symbols too, that version's error is raised.
            calls.refusals += 1
            calls.reasons.append(f"{type(error).__name__}: {error}")
            return None
        pinned = plan.pinned()
        calls.note_constant(plan, pinned)
        symbolic = Symbolic(version, plan)
        if len(pinned) < len(plan.sizes):
            calls.symbolic.insert(0, symbolic)
        return self._bound(key, versions, symbolic, plan.sizes)

    def _bound(self, key: Any, versions: dict[Any, list[V]], symbolic: Symbolic[V], sizes: dict[str, int]) -> V:
        made = bound(symbolic, sizes)
        versions.setdefault(key, []).insert(0, made)
        self.bound[key, id(made)] = made
        while len(self.bound) > MOST:
            (old, _), gone = self.bound.popitem(last=False)
            kept = [v for v in versions.get(old, ()) if v is not gone]
            if kept:
                versions[old] = kept
            else:
                versions.pop(old, None)
        return made


def bound(symbolic: Symbolic[V], sizes: dict[str, int]) -> V:
    """Return a copy of a version with symbols that runs the program for actual sizes."""
    made = copy.copy(symbolic.version)
    made.symbolic, made.sizes = symbolic, sizes
    symbolic.version.kept = None
    made.result_types = types_for(symbolic.version.result_types, sizes)
    made.program = None
    return made


def compiled(version: Sizable) -> Callable[..., Any]:
    """Return the program of a version that is bound to actual sizes, or whose data decide sizes.

    The latter returns buffers and types.
    """
    from mycel._src.engines.data_dependent_phases import Phases

    if version.is_open:
        owner = version.symbolic or version
        if owner.phases is None:
            owner.phases = Phases(version.graph, version.aliases)
        phases, sizes = owner.phases, version.sizes
        return lambda *given: phases.run(given, sizes)
    if nonfinite.is_on():
        return compile_graph(specialize(version.graph, version.sizes), version.aliases)
    symbolic: Symbolic[Any] = version.symbolic
    return symbolic.entry(version.sizes)
