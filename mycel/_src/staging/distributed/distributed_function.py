"""`distribute`: functions whose one call all ranks compute together (SPMD).

`distribute` takes a function and layouts. A call is staged for the whole tensors, the graph becomes
one rank's (`transforms.partition`), and the engine in force runs that with this rank's parts. The
results are whole on every rank. What the function writes into parameters stays divided as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mycel._src.compiler.ir.graph import Graph
from mycel._src.compiler.transport.current_transport import transport
from mycel._src.engines.error_messages import out_of_memory
from mycel._src.engines.select import engine
from mycel._src.foundation import arguments
from mycel._src.foundation.errors import CompileError
from mycel._src.foundation.settings.parallel_settings import in_force
from mycel._src.foundation.system import locks
from mycel._src.staging.compiled.call_signature import describe, key_of
from mycel._src.staging.compiled.function_version import Version
from mycel._src.staging.compiled.jit import Jit
from mycel._src.staging.compiled.parallel_dispatch import RankProgram
from mycel._src.staging.distributed.layout_specs import Layouts
from mycel._src.staging.distributed.pipeline_parallelism import Piped, Pipeline, settings_for
from mycel._src.staging.distributed.rank_executors import Entry, Executor, executor_for
from mycel._src.staging.distributed.sharded_tensors import GivenParts
from mycel._src.staging.distributed.version_partition import divide, is_static, sizes_of
from mycel._src.staging.frontend.parallelism.micro_batches import cut_into
from mycel._src.tensors.core.absent_values import by_types
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor, make

__all__ = ["Distributed", "distribute"]


class Divided:
    """One version of a function, with its graph divided among the ranks of a mesh."""

    def __init__(
        self, version: Version, layouts: Layouts, count: int, executor: Executor, sizes: Mapping[str, int]
    ) -> None:
        """Divide the graph of `version` by `layouts`, for `executor` to run.

        `count` is the number of tensors in the arguments, `sizes` are those of its symbols.
        """
        self.version, self.layouts, self.executor = version, layouts, executor
        self.of = divide(version, layouts, count, layouts.parts and executor.is_apart, sizes=sizes)
        self.made, self.writes = self.of.made, self.of.writes
        captured = zip(version.tensors, self.made.inputs[count:])
        layouts.divided({t.name: (t, s) for t, s in captured if isinstance(t, Parameter)})
        written = {i for i, _ in self.writes}
        self._read = {k for k in range(count, len(self.made.inputs)) if k not in written}
        self._entries: dict[int, Entry] = {}

    @property
    def graph(self) -> Graph:
        """The graph of each rank."""
        return self.made.graph

    def of_rank(self) -> RankProgram:
        """Return what each rank runs."""
        return RankProgram(self.version, self.graph, range(len(self.graph.inputs)), self.version.aliases)

    def run(self, tensors: list[Tensor], call: Any) -> Any:
        """Run on this rank's parts of a call's `tensors`, or on those that are whole."""
        version, made, executor = self.version, self.made, self.executor
        targets = [*tensors, *version.tensors]
        own = len(tensors) if self.layouts.parts and executor.is_apart else 0
        pieces = [
            executor.given(t, layout) if k < own else executor.piece(t, layout, self if k in self._read else None)
            for k, (layout, t) in enumerate(zip(made.inputs, targets))
        ]
        found: tuple[Any, ...] = ()
        if self.of.types:
            try:
                found = self._entry()(*pieces)
            except MemoryError:
                raise out_of_memory(made.graph) from None
        written = {place for _, place in self.writes}
        for i, place in self.writes:
            executor.keep(targets[i], found[place], made.outputs[place])
        out = [
            make(t, None if k in written else executor.own(piece))
            for k, (t, piece) in enumerate(zip(self.of.types, found))
        ]
        for i, place in self.writes:
            out[place] = targets[i]
        version.kept = None
        given = GivenParts(tensors, made.inputs, executor.joined) if own else tensors
        return version._finish(out, given, call)

    def _entry(self) -> Entry:
        rank = transport().rank
        if rank not in self._entries:
            self._entries[rank] = self.executor.entry(self.made.graph, self.version.aliases)
        return self._entries[rank]


class Distributed:
    """A function whose calls the ranks of a mesh compute together, each its part."""

    def __init__(self, function: Any, layouts: Layouts, pipeline: Pipeline | None = None) -> None:
        self.__wrapped__, self.layouts, self.pipeline = function, layouts, pipeline
        self.__name__ = getattr(function, "__name__", type(function).__name__)
        # One for each tuple of types: sizes become no symbols, but for those that are declared so.
        self._compiled: dict[Any, Jit] = {}
        self._divided: dict[Any, tuple[Version, Divided | Piped]] = {}
        # The programs for calls whose arguments have a key, on so many ranks; the last one first.
        self._ready: dict[Any, tuple[Divided | Piped, ...]] = {}
        self._lock = locks.reentrant()

    def __repr__(self) -> str:
        return f"<distributed {self.__name__} on {self.layouts.mesh.sizes}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        tensors: list[Tensor] = []
        key = (key_of(args, kwargs, tensors), transport().size)
        for program in self._ready.get(key, ()):
            if program.version.holds():
                break
        else:
            program = self.divided(*args, **kwargs)
            if is_static(program.version):
                with self._lock:
                    others = [p for p in self._ready.get(key, ()) if p is not program and not p.version.is_over()]
                    self._ready[key] = (program, *others)
        return program.run(tensors, (args, kwargs))

    @property
    def programs(self) -> list[tuple[Version, Divided | Piped]]:
        """The programs that there are, the last one made at the end."""
        return list(self._divided.values())

    @property
    def size(self) -> int:
        """The number of ranks that compute the function."""
        return self.layouts.mesh.size * (1 if self.pipeline is None else self.pipeline.stages)

    def divided(self, *args: Any, **kwargs: Any) -> Divided | Piped:
        """Return the program for arguments like these, without running it."""
        executor = self._executor()
        if executor.available < self.size:
            mend = "start as many with `mycel launch -n`"
            if self.pipeline is not None and engine().device_count() >= self.size:
                mend = (
                    f"a pipeline does not run on the {engine().device_count()} devices of several processes together: "
                    f"start {self.size} processes with `mycel launch -n`, of which each computes on one of its "
                    "devices, or one process with as many devices"
                )
            raise CompileError(
                f"{self.__name__} is divided among {self.size} ranks, but there are {executor.available}; {mend}"
            )
        return self._of(executor, args, kwargs)

    def planned(self, *args: Any, **kwargs: Any) -> RankProgram:
        """Return what a rank runs for arguments like these.

        Ranks need not have been started.
        """
        return self._of(self._executor(), args, kwargs).of_rank()

    def _of(self, executor: Executor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Divided | Piped:
        whole = self._whole(executor, args, kwargs) if executor.is_apart else (args, kwargs)
        with self._lock:
            tensors: list[Tensor] = []
            key = (len(whole[0]), *whole[1], *[describe(v, tensors) for v in (*whole[0], *whole[1].values())])
            jit = self._compiled.get(key)
            if jit is None:
                jit = self._compiled[key] = Jit(self.__wrapped__, fullgraph=True)
            version = self._version(jit, whole)
            sizes = sizes_of(version, tensors)
            place = (id(version), *sizes.items())
            if place not in self._divided:
                self._divided[place] = (version, self._made(version, len(tensors), executor, sizes))
            return self._divided[place][1]

    def _version(self, jit: Jit, whole: tuple[tuple[Any, ...], dict[str, Any]]) -> Version:
        with by_types():
            return self._looked(jit, whole)

    def _looked(self, jit: Jit, whole: tuple[tuple[Any, ...], dict[str, Any]]) -> Version:
        pipeline = self.pipeline
        if pipeline is None:
            version, _ = jit.look(*whole)
        elif pipeline.micro_batches is None:
            with cut_into(1):
                version, _ = jit.look(*whole)
        else:
            settings = settings_for(pipeline, self.layouts.mesh)
            with in_force(settings), cut_into(pipeline.micro_batches, pipeline.combined):
                version, _ = jit.look(*whole)
        assert version is not None
        return version

    def _executor(self) -> Executor:
        return executor_for(self.layouts.mesh, 1 if self.pipeline is None else self.pipeline.stages)

    def _made(self, version: Version, count: int, executor: Executor, sizes: Mapping[str, int]) -> Divided | Piped:
        if self.pipeline is None:
            return Divided(version, self.layouts, count, executor, sizes)
        return Piped(version, self.layouts, count, self.pipeline, executor, sizes)

    def _whole(
        self, executor: Executor, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return arguments of the whole tensors' types, for staging."""
        if not self.layouts.parts:
            return args, kwargs
        count = 0

        def placed(value: Any) -> Any:
            nonlocal count
            if isinstance(value, Tensor) and not isinstance(value, Parameter):
                shape = self.layouts.whole_shape(count, value._type.shape, executor.given_count)
                count += 1
                return make(value._type.with_shape(shape), None)
            if isinstance(value, (tuple, list)):
                return type(value)(placed(v) for v in value)
            if isinstance(value, dict):
                return type(value)((k, placed(v)) for k, v in value.items())
            return value

        return tuple(placed(a) for a in args), {k: placed(v) for k, v in kwargs.items()}


def distribute(function: Callable[..., Any], layouts: Layouts, pipeline: Pipeline | None = None) -> Distributed:
    """Return `function` as one that the ranks of a mesh compute together.

    It computes what the function computes on one device. Every rank calls it in the same order,
    with the same arguments, or with `Layouts.parts` each with its parts. Parameters have the same
    values on all ranks when it is first called, and are divided from then on as `layouts` says.
    With `pipeline_parallel` it is a training step, whose gradient is taken of micro-batches;
    `layouts` are those inside of a stage, and the ranks of stage s are those of its mesh behind the
    s meshes of the stages before. Raises TypeError for other arguments; calls raise CompileError
    where there are fewer ranks than that, and where the function is not one graph.

    >>> import mycel as ms
    >>> from mycel._src.compiler.ir.sharding.mesh import Mesh
    >>> double = distribute(lambda x: x * 2, Layouts(Mesh((1,), ("data",)), [("data",)]))
    >>> double(ms.Tensor([1.0, 2.0])).tolist()
    [2.0, 4.0]
    """
    arguments.function("distribute", "function", function, "a function, a method or a Cell")
    arguments.instance("distribute", "layouts", layouts, Layouts)
    arguments.optional("distribute", "pipeline", pipeline, Pipeline)
    return Distributed(function, layouts, pipeline)
