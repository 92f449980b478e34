"""The interface of engines: all that the rest of Mycel asks of one.

An engine turns graphs into programs and reports on them: their cost, their memory, when they ran,
how the machine is used. Callers ask the engine in force (`current`), which answers in engine
independent terms: functions from buffers to buffers, the records of `engines.reports`, the traces
of `engines.trace_records`. So nothing outside of `engines` knows what a program consists of, and
another engine is one more class.

A *buffer* is the memory behind one value. It belongs to the engine, and only the engine accesses
its content; `engines.buffers` has the buffers of all engines that use the host's memory. An *entry*
is a function from the buffers of a graph's inputs to the buffer of its output, or to a tuple of
buffers where there are several outputs.

Engines register in `engines.select`, which also chooses one. This module imports no engine, so that
the modules of every engine may ask for the one in force.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from mycel._src.foundation.errors import Unsupported

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    import numpy as np

    from mycel._src.compiler.ir.graph import Graph, Node
    from mycel._src.compiler.ir.sharding.mesh import Mesh
    from mycel._src.engines.profile_hook import KnownCode
    from mycel._src.engines.reports import Account, Cost, Footprint
    from mycel._src.engines.trace_records import Trace

    Array = np.ndarray[Any, Any]

__all__ = [
    "Engine",
    "Entry",
    "MemoryAccount",
    "Repetition",
    "Rounds",
    "Sized",
    "Spread",
    "Stages",
    "Together",
    "choose",
    "current",
    "known",
    "program_made",
    "register",
]

Entry = Callable[..., Any]


class MemoryAccount(NamedTuple):
    """The account of an allocator, in bytes.

    It has the bytes that buffers and programs use now and used at most, the bytes that the
    allocator holds from the system now and held at most, and the limit that the program set;
    `blocks` counts the blocks held, those waiting for reuse included.
    """

    allocated: int = 0
    most_allocated: int = 0
    reserved: int = 0
    most_reserved: int = 0
    limit: int = 0
    blocks: int = 0


class Sized(ABC):
    """The programs of a graph whose sizes may be symbols, one for each tuple of actual sizes."""

    @abstractmethod
    def entry(self, sizes: Mapping[str, int]) -> Entry:
        """Return the entry for actual sizes of all symbols, by name."""


class Rounds(ABC):
    """The results of a program that ran several times; `count` runs completed."""

    count: int

    @abstractmethod
    def row(self, k: int) -> tuple[Any, ...]:
        """Return the buffers of the results of run `k`; of the last run for -1.

        Of aliased or carried results, and of those not kept, it has the buffers after the last run.
        """

    @abstractmethod
    def keeps(self, j: int) -> bool:
        """Return whether result `j` was kept for each run."""

    @abstractmethod
    def at(self, j: int, k: int) -> Any:
        """Return the buffer of result `j`, which was kept, of run `k`."""


class Repetition(ABC):
    """A program that one call runs many times.

    A result is one of three kinds: *aliased* (written into its input's memory), *carried* (the
    input of the next run; the first run's input is not overwritten), or separate for each run.
    """

    # The bytes of all rounds' own results up to which they are kept without being asked for.
    KEPT: ClassVar[int] = 1 << 20

    @abstractmethod
    def run(
        self,
        stay: Sequence[Any],
        rounds: Sequence[Sequence[Any]],
        keep: bool = False,
        restore: Callable[[int, Any], None] | None = None,
    ) -> Rounds:
        """Run the program once for each of `rounds`, which has the buffers of its first inputs.

        `stay` has the buffers of its other inputs. The results of all runs are kept where they are
        small, and with `keep` whatever their size. Raises what a call raises; before that,
        `restore` is called with the number of each carried input and a buffer of its value when the
        failed run began.
        """


class Spread(ABC):
    """The values of all ranks of a mesh, each on its device."""

    @abstractmethod
    def parts(self) -> list[Array]:
        """Return the value of each rank as an array of NumPy's, in the order of ranks.

        Where the ranks are devices of several processes, all processes have to ask.
        """

    @abstractmethod
    def own(self) -> Array:
        """Return the value of the first rank that is a device of this process."""

    @abstractmethod
    def part(self, rank: int) -> Array:
        """Return the value of one rank as an array of NumPy's, without moving the others."""


class Together(ABC):
    """The program of a graph of one rank, for all ranks of a mesh at once."""

    @abstractmethod
    def entry(self, *given: Spread) -> tuple[Spread, ...]:
        """Return the outputs of all ranks, given their inputs.

        Those of aliased outputs are the inputs themselves, with new values. Raises what the program
        of one rank raises, and TypeError for inputs of other types.
        """

    @abstractmethod
    def text(self) -> str:
        """Return the compiled program as text, in which its communication can be counted."""


class Stages(ABC):
    """The programs of several meshes, each with its graph, which send each other messages."""

    @abstractmethod
    def entry(self, *given: Sequence[Spread]) -> Sequence[tuple[Spread, ...]]:
        """Return for each mesh the outputs of its ranks, given their inputs.

        Those of aliased outputs are the inputs themselves, with new values. Raises what the program
        of one rank raises, and TypeError for inputs of other types.
        """


class Engine(ABC):
    """An engine, which turns graphs into programs and reports on them.

    `device` is the memory in which its buffers lie.
    """

    name: ClassVar[str]
    device: ClassVar[str]

    # Whether it is in force.

    def enter(self) -> None:
        """Get ready to be in force; raise an error where what it needs is missing."""
        return None

    def leave(self) -> None:
        """Undo what `enter` did: another engine will be in force."""
        return None

    # Programs.

    @abstractmethod
    def claims(self, node: Node) -> bool:
        """Return whether the engine computes a node as it is.

        Other nodes are opened by their primitive's `expand`.
        """

    @abstractmethod
    def prepared(self, graph: Graph) -> Graph:
        """Return the graph that is run: optimised, with only nodes that the engine claims."""

    @abstractmethod
    def compile(self, graph: Graph, aliases: Mapping[int, int] | None = None) -> Entry:
        """Return the entry of a graph of static types.

        `aliases` maps outputs to the inputs into whose memory they are written.
        """

    @abstractmethod
    def sized(self, graph: Graph, aliases: Mapping[int, int] | None = None) -> Sized:
        """Return the programs of a graph with symbolic sizes."""

    @abstractmethod
    def repetition(self, entry: Entry, carried: Mapping[int, int]) -> Repetition | None:
        """Return the program of an entry as a `Repetition`.

        `carried` maps results to the inputs of the next run. Returns None where the entry is not a
        single program of this engine.
        """

    def synchronize(self) -> None:
        """Wait until all programs that were started are complete, as they are when they return."""
        return None

    # Several devices.

    def meet(self, address: str) -> None:
        """Have the devices of all ranks work together, where the engine can; every rank calls this
        once they have met. `address` is this machine's, as the others reach it.
        """
        return None

    def device_count(self) -> int:
        """Return how many devices one program may use at once: those of this process, or of all
        ranks where they work together.
        """
        return 1

    def own_devices(self) -> range:
        """Return the numbers of this process's devices; each process has as many."""
        return range(self.device_count())

    def together(self, graph: Graph, mesh: Mesh, aliases: Mapping[int, int] | None = None) -> Together:
        """Return the program that runs a graph of one rank on all devices of a mesh at once.

        `aliases` maps outputs to the inputs whose memory they take. Raises Unsupported where the
        engine computes on one device, or cannot run the graph so, and ValueError where there are
        fewer devices than the mesh has.
        """
        raise Unsupported(
            f"the {self.name} engine runs a program on one device; set_context(engine='xla') runs one on several, and "
            "ranks that are processes have one each"
        )

    def stages(self, stages: Sequence[tuple[Graph, Mesh, Mapping[int, int]]]) -> Stages:
        """Return the programs of the graphs of several meshes, which send each other messages.

        Of each there are the graph of a rank, the mesh, and the inputs whose memory outputs take.
        Raises what `together` raises.
        """
        raise Unsupported(
            f"the {self.name} engine has one device; set_context(engine='xla') may have several, and ranks that are "
            "processes have one each"
        )

    def spread(self, mesh: Mesh, parts: Sequence[Any]) -> Spread:
        """Return the values of all ranks of a mesh, `parts` in the order of ranks, on its devices.

        Those of ranks that are devices of other processes may be None. Raises what `together`
        raises, and ShapeError where the parts are not as many as the ranks, or differ in shape or
        element type.
        """
        raise Unsupported(f"the {self.name} engine has one device; set_context(engine='xla') may have several")

    # Reports.

    @abstractmethod
    def host_steps(self, graph: Graph) -> list[tuple[Node, str]]:
        """Return the nodes that a graph's program leaves to the reference engine, with the reasons.

        The graph may have symbolic sizes.
        """

    @abstractmethod
    def account(self, graph: Graph, aliases: Mapping[int, int] | None = None) -> Account:
        """Return the steps of the program of a graph of static types, without running it."""

    @abstractmethod
    def footprint(self, graph: Graph, aliases: Mapping[int, int] | None = None) -> Footprint:
        """Return the memory that the program of a graph of static types needs.

        The program is not made for it.
        """

    def cost(self, graph: Graph, aliases: Mapping[int, int] | None = None) -> Cost:
        """Return the bytes moved and the floating-point operations of a graph of static types."""
        return self.account(graph, aliases).total

    @abstractmethod
    def tracing(
        self, room: int | None = None, before_run: Callable[[], None] | None = None
    ) -> AbstractContextManager[Trace]:
        """Trace all threads while a block runs.

        `room` limits the number of records (by default, to some millions); `before_run` is called
        before each run of a program, by the thread that is about to run it. Raises RuntimeError
        while another trace is being taken.
        """

    # Memory.

    @abstractmethod
    def memory(self) -> MemoryAccount:
        """Return the allocator's account of memory."""

    @abstractmethod
    def reset_peak(self, *, allocated: bool = False, reserved: bool = False) -> None:
        """Reset the maxima of the account to the amounts in use now.

        `allocated` resets that of buffers and programs, `reserved` that of the memory held from the
        system.
        """

    @abstractmethod
    def release_arenas(self) -> None:
        """Free the memory that programs keep for their next run."""

    @abstractmethod
    def empty_cache(self) -> None:
        """Give memory that waits for new buffers back to the system."""

    @abstractmethod
    def available_memory(self) -> int | None:
        """Return the bytes that buffers could take now; None where the system does not tell."""

    @abstractmethod
    def room_left(self) -> str:
        """Return the available memory as text for messages; "" where the system does not tell."""

    @abstractmethod
    def need(self, what: str, nbytes: int) -> None:
        """Raise MemoryError if `nbytes` at once are more than are available; `what` needs them."""

    # The machine.

    @property
    @abstractmethod
    def identity(self) -> str:
        """A text that tells apart machines and libraries for which code or measurements hold."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return the facts that `mycel info` shows.

        These are "uses" (the libraries and their versions) and others of the engine's own.
        """

    def check_environment(self) -> None:
        """Raise ValueError where environment variables ask for what this machine cannot do."""
        return None

    @property
    @abstractmethod
    def threads(self) -> int:
        """The number of threads that compute."""

    @abstractmethod
    def set_threads(self, count: int) -> None:
        """Compute on `count` threads; 0 means `default_threads`."""

    @abstractmethod
    def default_threads(self) -> int:
        """Return the number of threads used where none is set."""

    @abstractmethod
    def sharing(self, count: int) -> Callable[[], Any] | None:
        """Return a function that runs an empty task on `count` threads and waits for them.

        Returns None where there is no pool of threads.
        """

    @abstractmethod
    def known_code(self) -> KnownCode:
        """Return a profile hook that reports the frames whose code is not registered as known."""


_engines: dict[str, Engine] = {}
_chosen: list[Engine] = []
_began: list[str] = []


def register(engine: Engine) -> None:
    """Register an engine under its name."""
    _engines[engine.name] = engine


def known() -> Mapping[str, Engine]:
    """Return the engines by name."""
    return _engines


def program_made(engine: Engine) -> None:
    """Note that an engine makes a program, so that no other is chosen from now on."""
    if not _began:
        _began.append(engine.name)


def choose(name: str) -> Engine:
    """Put an engine in force, before anything is compiled.

    Programs are remembered, and no program runs in another engine. Raises ValueError for an unknown
    name, RuntimeError where programs have been made by another engine, and what the engine raises
    that cannot be in force here.
    """
    if name not in _engines:
        raise ValueError(f"there is no engine {name!r}; there are {', '.join(_engines)}")
    new = _engines[name]
    if not _chosen or _chosen[0] is not new:
        if _began:
            raise RuntimeError(
                f"the engine {name!r} is chosen before the first program; one of {_began[0]!r} has been compiled in "
                f"this process: call set_context(engine={name!r}) at its start, or set MYCEL_ENGINE={name}"
            )
        former = _chosen[:]
        for engine in former:
            engine.leave()
        try:
            new.enter()
        except BaseException:
            for engine in former:
                engine.enter()
            raise
        _chosen[:] = [new]
    return new


def current() -> Engine:
    """Return the engine in force."""
    return _chosen[0]
