"""What an engine is: the questions that the rest of Mycel asks of it, and which one answers.

An engine turns graphs into programs, and answers for them: what they cost, what memory they take,
what ran when, how the machine is used. Whoever needs one of these asks the engine in force
(`current`) and gets the field's terms back: functions from buffers to buffers, the records of
`engines.reports`, the traces of `engines.tracing`. So nothing outside of `engines` knows what a
program is made of, and another engine is one more class.

A *buffer* is the memory behind one value. It belongs to the engine, which alone looks into it; what
all engines of the host's memory share is `engines.buffers`. An *entry* is a function from the
buffers of a graph's inputs to the buffer of its output, or to the tuple of them where there are
several.

Engines register in `engines.select`, which also chooses; this module knows none of them, so that
whatever an engine is made of may ask for the one in force.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Optional

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from mycel.engines.known_code import KnownCode
    from mycel.engines.reports import Account, Cost, Footprint
    from mycel.engines.tracing import Trace
    from mycel.ir.graph import Graph, Node

__all__ = [
    "Engine",
    "Entry",
    "MemoryAccount",
    "Repetition",
    "Rounds",
    "Sized",
    "choose",
    "current",
    "known",
    "register",
]

Entry = Callable[..., Any]


class MemoryAccount(NamedTuple):
    """What an allocator keeps account of, in bytes: what buffers and programs have now and had at
    most, what it holds from the system now and held at most, and the limit that the program was
    given; `blocks` counts those that it holds, waiting ones included.
    """

    allocated: int = 0
    most_allocated: int = 0
    reserved: int = 0
    most_reserved: int = 0
    limit: int = 0
    blocks: int = 0


class Sized(ABC):
    """The programs of a graph whose sizes may be symbols, one for each tuple of actual sizes that
    is asked for.
    """

    @abstractmethod
    def entry(self, sizes: Mapping[str, int]) -> Entry:
        """Return the entry for actual sizes of all symbols, by name."""


class Rounds(ABC):
    """What some rounds of a program gave: `count` of them ran to their end."""

    count: int

    @abstractmethod
    def row(self, k: int) -> tuple[Any, ...]:
        """Return the buffers of the results of round `k`, of the last one for -1; of what is
        aliased, carried or not kept those after the last round.
        """

    @abstractmethod
    def keeps(self, j: int) -> bool:
        """Return whether result `j` was kept for each round."""

    @abstractmethod
    def at(self, j: int, k: int) -> Any:
        """Return the buffer of result `j` of round `k`, which was kept."""


class Repetition(ABC):
    """A program to be run for many rounds in one call.

    A result is one of three kinds: *aliased* (written into its input's memory), *carried* (the
    input of the next round; the first round's input is not written over), or one of its own for
    each round.
    """

    # The bytes of all rounds' own results up to which they are kept without being asked for.
    KEPT: ClassVar[int] = 1 << 20

    @abstractmethod
    def run(
        self,
        stay: Sequence[Any],
        rounds: Sequence[Sequence[Any]],
        keep: bool = False,
        restore: Optional[Callable[[int, Any], None]] = None,
    ) -> Rounds:
        """Run one round for each of `rounds`, which has the buffers of the first inputs.

        `stay` are those of the others.

        The results of all rounds are kept where they are small, and with `keep` whatever they take.
        Raises what a call raises; before that, `restore` gets each carried input, by number, with a
        buffer of what it was when the round that failed began.
        """


class Engine(ABC):
    """What turns graphs into programs and answers for them; `device` is where its buffers lie."""

    name: ClassVar[str]
    device: ClassVar[str]

    # Programs.

    @abstractmethod
    def claims(self, node: Node) -> bool:
        """Return whether a node is computed as it stands.

        What is not claimed is opened through its primitive's `expand`.
        """

    @abstractmethod
    def prepared(self, graph: Graph) -> Graph:
        """Return the graph as it is run: opened to what the engine claims, and optimised."""

    @abstractmethod
    def compile(self, graph: Graph, aliases: Optional[Mapping[int, int]] = None) -> Entry:
        """Return the entry of a graph of static types.

        `aliases` says which outputs are written into which inputs' memory.
        """

    @abstractmethod
    def sized(self, graph: Graph, aliases: Optional[Mapping[int, int]] = None) -> Sized:
        """Return the programs of a graph with symbolic sizes."""

    @abstractmethod
    def repetition(self, entry: Entry, carried: Mapping[int, int]) -> Optional[Repetition]:
        """Return the program of an entry, to be run for many rounds.

        `carried` says which results become which inputs of the next one. None where the entry runs
        no program of this engine alone.
        """

    # Reports.

    @abstractmethod
    def host_steps(self, graph: Graph) -> list[tuple[Node, str]]:
        """Return the nodes that a graph's program leaves to the reference engine, with the reasons.

        The graph's sizes may be symbols.
        """

    @abstractmethod
    def account(self, graph: Graph, aliases: Optional[Mapping[int, int]] = None) -> Account:
        """Return what the program of a graph of static types does, step by step, without running
        it.
        """

    @abstractmethod
    def footprint(self, graph: Graph, aliases: Optional[Mapping[int, int]] = None) -> Footprint:
        """Return what memory the program of a graph of static types needs, without making or
        running it.
        """

    def cost(self, graph: Graph, aliases: Optional[Mapping[int, int]] = None) -> Cost:
        """Return the bytes that the program of a graph of static types moves, and its
        floating-point operations.
        """
        return self.account(graph, aliases).total

    @abstractmethod
    def tracing(
        self, room: Optional[int] = None, before_run: Optional[Callable[[], None]] = None
    ) -> AbstractContextManager[Trace]:
        """Take a trace of all threads while a block runs; RuntimeError where one is being taken.

        `room` bounds the records (by default, to some millions); `before_run` is called before each
        run of a program, by the thread that is about to run it.
        """

    # Memory.

    @abstractmethod
    def memory(self) -> MemoryAccount:
        """Return the allocator's account."""

    @abstractmethod
    def reset_peak(self, *, allocated: bool = False, reserved: bool = False) -> None:
        """Let the account's maxima begin again with what is in use now."""

    @abstractmethod
    def release_arenas(self) -> None:
        """Free the memory that programs keep for their next run."""

    @abstractmethod
    def empty_cache(self) -> None:
        """Give back to the system what waits for new buffers."""

    @abstractmethod
    def available_memory(self) -> Optional[int]:
        """Return the bytes that buffers could take now; None where nothing tells."""

    @abstractmethod
    def room_left(self) -> str:
        """Return what is available, of what, for messages; "" where nothing tells."""

    @abstractmethod
    def need(self, what: str, nbytes: int) -> None:
        """Raise MemoryError if something needs more bytes at once than are available."""

    # The machine.

    @property
    @abstractmethod
    def identity(self) -> str:
        """What tells apart the machines and libraries for which what is measured or made by this
        engine holds.
        """

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return the facts that `mycel info` shows: "uses", the libraries and their versions, and
        whatever else is the engine's own.
        """

    def check_environment(self) -> None:
        """Raise ValueError where the environment asks for what this machine cannot do."""
        return None

    @property
    @abstractmethod
    def threads(self) -> int:
        """The number of threads that compute."""

    @abstractmethod
    def set_threads(self, count: int) -> None:
        """Compute on `count` threads; 0 stands for `default_threads`."""

    @abstractmethod
    def default_threads(self) -> int:
        """Return the number of threads where none is chosen."""

    @abstractmethod
    def sharing(self, count: int) -> Optional[Callable[[], Any]]:
        """Return a function that shares out nothing among `count` threads and waits for them.

        None where there is no pool of threads.
        """

    @abstractmethod
    def known_code(self) -> KnownCode:
        """Return a profile hook that tells of frames whose code is not known yet."""


_engines: dict[str, Engine] = {}
_chosen: list[Engine] = []


def register(engine: Engine) -> None:
    """Let an engine be chosen by its name."""
    _engines[engine.name] = engine


def known() -> Mapping[str, Engine]:
    """Return the engines by name."""
    return _engines


def choose(name: str) -> Engine:
    """Put an engine in force, before anything is compiled: programs are kept, and none runs in
    another engine. ValueError for a name that no engine has.
    """
    if name not in _engines:
        raise ValueError(f"there is no engine {name!r}; there are {', '.join(_engines)}")
    _chosen[:] = [_engines[name]]
    return _chosen[0]


def current() -> Engine:
    """Return the engine in force."""
    return _chosen[0]
