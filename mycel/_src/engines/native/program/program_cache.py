"""The on-disk program cache: templates in files (`files.code_cache`) that later processes load.

The key is a digest of the graph as it was staged (structure, types, parameters, constants), of the
outputs that are written into inputs, and of everything that a lowering depends on
(`_surroundings`): Mycel's own source, the target machine, the versions of Python, NumPy and oneDNN,
and the number of threads. So a stored template is the one that lowering would make. Sizes are
numbers: graphs with symbols are lowered in each process, as are those with Python functions, and
small ones.

Names and places in the user's source are not part of the key, as programs that differ in them alone
are the same. A file refers to the inputs of the present graph, and has a node's place as the number
of a staged node with that place, and its loop program as the number among those of staged nodes.
The template itself is written by `pickle`, which is restricted to a closed list of classes: others
are neither written nor read, so that a file cannot call anything.
"""

from __future__ import annotations

import functools
import hashlib
import io
import os
import pickle
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import Atom, Dim
from mycel._src.compiler.ir.graph import Graph, Node, Where, toposort
from mycel._src.compiler.ir.structural_hash import structural_hash
from mycel._src.compiler.ir.types import TOKEN, TensorType, TokenType, tensor_type
from mycel._src.compiler.loops.programs import Program as LoopProgram
from mycel._src.compiler.prims.base import REGISTRY, Literal, Primitive
from mycel._src.engines.native.kernels import half_rounding
from mycel._src.engines.native.kernels.loop_nest import Access, Affine, Expr
from mycel._src.engines.native.llvm.target import host
from mycel._src.engines.native.onednn import autotune
from mycel._src.engines.native.onednn import binding as dense
from mycel._src.engines.native.operations.convolution import winograd_steps
from mycel._src.engines.native.operations.matmul import amx_support
from mycel._src.engines.native.program import exchange_overlap
from mycel._src.engines.native.program.template import Template
from mycel._src.engines.native.runtime import bounds_check_setting
from mycel._src.engines.native.runtime.runtime import runtime
from mycel._src.engines.native.steps.step_types import Lowered
from mycel._src.foundation.dtype import DType, from_any
from mycel._src.foundation.files import code_cache
from mycel._src.foundation.log import logger
from mycel._src.foundation.package import FOLDER
from mycel._src.foundation.spans import timed

__all__ = ["LEAST", "counts", "key_of", "load", "save", "settings", "written"]

# Smaller graphs are lowered in the time that it takes to look for them.
LEAST = 16
MOST_BYTES = 256 << 20
# Numbers beyond are taken for addresses.
_IDENTITY = 1 << 20
# Where the package lies.
ROOT = Path(FOLDER)
# Seconds after which a file that changes again has another time.
_SETTLED = 2.0
# What makes programs.
_PARTS = (
    *("__init__.py", "_src/foundation/settings/config.py", "_src/foundation/dtype.py"),
    *("_src/engines", "_src/compiler/ir", "_src/compiler/loops", "_src/compiler/prims", "_src/compiler/transforms"),
)
_MODULES = ("mycel._src.engines.native.", "mycel._src.compiler.ir.", "mycel._src.compiler.prims.")
# What else lowering depends on: functions that give a text, entered by whoever adds such a setting.
settings: list[Callable[[], str]] = [
    autotune.setting,
    bounds_check_setting.setting,
    half_rounding.setting,
    winograd_steps.setting,
    amx_support.setting,
    exchange_overlap.setting,
]
counts = {"found": 0, "made": 0}


class _NotStorable(Exception):
    """The error for a part of a template that has no form in a file."""


# The key.


@functools.cache
def _source() -> str | None:
    """Return the digest of the source of all modules that make programs; None if unreadable.

    It is kept under what the file system says of the files, as reading them takes longer.
    """
    try:
        files = [entry for part in _PARTS for entry in _modules(str(ROOT / part))]
        facts = hashlib.sha256()
        for path, at in sorted(files):
            facts.update(f"{path} {at.st_ino} {at.st_size} {at.st_mtime_ns} {at.st_ctime_ns}\n".encode())
        kind, name, begin = f"sources-{host().identity}", facts.hexdigest(), time.time()
        known = code_cache.read(kind, name)
        if known is not None:
            return known.decode()
        digest = hashlib.sha256()
        for path, _ in sorted(files):
            with open(path, "rb", buffering=0) as file:
                content = file.read()
            digest.update(f"{Path(path[len(str(ROOT)) + 1 :]).as_posix()} {len(content)}\n".encode())
            digest.update(content)
    except OSError as error:
        logger.info("programs are not kept, as the source of their compiler cannot be read: %s", error)
        return None
    # A file that is changed again within a tick of the clock would look the same.
    if begin - max(max(at.st_mtime, at.st_ctime) for _, at in files) > _SETTLED:
        code_cache.write(kind, name, digest.hexdigest().encode())
    return digest.hexdigest()


def _modules(path: str) -> Iterator[tuple[str, os.stat_result]]:
    """Find the modules in a folder, or the one at a path, and what the file system says of them."""
    if path.endswith(".py"):
        yield path, os.stat(path)
        return
    with os.scandir(path) as inside:
        for entry in inside:
            if entry.is_dir():
                yield from _modules(entry.path)
            elif entry.name.endswith(".py"):
                yield entry.path, entry.stat()


def _surroundings() -> str | None:
    source = _source()
    if source is None:
        return None
    library = f"{dense.version()}" if dense.available() else "none"
    limits = [os.environ.get(name, "") for name in ("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA")]
    parts = [
        source,
        host().identity,
        platform.python_version(),
        np.__version__,
        library,
        *limits,
        str(runtime().threads),
        *[setting() for setting in settings],
    ]
    return "\n".join(parts)


def key_of(graph: Graph, aliases: Mapping[int, int]) -> str | None:
    """Return the digest under which a graph's program is stored; None where it is not stored."""
    if not code_cache.is_on() or len(graph.nodes) < LEAST and not any(_programs((n,)) for n in graph.nodes):
        return None
    surroundings = _surroundings()
    if surroundings is None or not all(map(_is_own, {n.prim for n in _staged(graph) if n.prim is not None})):
        return None
    try:
        # What was kept of nodes without positions has none to give to nodes that have them.
        placed = any(n.where is not None for n in graph.nodes)
        text = f"{surroundings}\n{structural_hash(graph)}\n{sorted(aliases.items())}\n{placed}"
    except TypeError as error:
        logger.debug("%s is not kept: %s", graph.name, error)
        return None
    return hashlib.sha256(text.encode()).hexdigest()


def _is_own(prim: Primitive) -> bool:
    """Return whether a primitive is Mycel's; the code of others is not part of the key."""
    rules = [getattr(rule, "func", rule) for rule in (prim.infer, prim.expand) if rule is not None]
    return all(str(getattr(rule, "__module__", "")).startswith("mycel.") for rule in rules)


def _kind() -> str:
    return f"programs-{host().identity}"


# Places in the source.


def _staged(graph: Graph) -> list[Node]:
    """Return the nodes of a graph and of its nested graphs.

    Their order depends on the structure of the graph alone.
    """
    found: list[Node] = []
    seen: set[Graph] = set()

    def enter(inner: Graph) -> None:
        if inner in seen:
            return
        seen.add(inner)
        for node in (*inner.inputs, *inner.nodes):
            for name in sorted(node.params):
                for nested in _graphs(node.params[name]):
                    enter(nested)
            found.append(node)

    enter(graph)
    return found


def _graphs(value: Any) -> Iterator[Graph]:
    if isinstance(value, Graph):
        yield value
    elif type(value) is tuple:
        for v in value:
            if type(v) is not int:
                yield from _graphs(v)


def _programs(nodes: Iterable[Node]) -> list[LoopProgram]:
    """Return the loop programs of nodes, each once."""
    return list(dict.fromkeys([v for n in nodes for v in n.params.values() if isinstance(v, LoopProgram)]))


# Writing.


def written(graph: Graph, template: Template) -> bytes | None:
    """Return the template that was made of a staged graph as it is stored, but for its code.

    None where it is not storable.
    """
    try:
        return _written(graph, template)
    except (_NotStorable, pickle.PicklingError, RecursionError) as error:
        logger.debug("the program of %s is not kept: %s", graph.name, error)
        return None


def save(key: str, content: bytes, template: Template) -> None:
    """Store what `written` gave, with the object code that the template has of its kernels."""
    numbers = {kernel.digest: k for k, kernel in enumerate(template.kernels)}
    content += pickle.dumps({numbers[digest]: code for digest, code in (template.objects or {}).items()}, protocol=5)
    if len(content) <= MOST_BYTES:
        code_cache.write(_kind(), key, content)


def _written(graph: Graph, template: Template) -> bytes:
    if template.bodies:
        raise _NotStorable("it calls itself")
    file = io.BytesIO()
    writer = _Writer(file, graph)
    # Nodes come first, each after what it needs, so that writing does not descend through the
    # graph.
    writer.dump((writer.ordered(template.graph), _state(template)))
    return file.getvalue()


def _state(template: Template) -> dict[str, Any]:
    numbers = {id(step): k for k, step in enumerate(template.all_steps)}
    state: dict[str, Any] = {}
    for name, value in template.__dict__.items():
        if name in ("code", "making", "objects", "bodies", "_dims", "_values"):
            continue
        if isinstance(value, dict) and value and all(k in numbers for k in value):
            state[name] = _BySteps({numbers[k]: v for k, v in value.items()})
        elif isinstance(value, dict) and any(type(k) is int and k > _IDENTITY for k in value):
            raise _NotStorable(f"{name} is a table by what is no step")
        elif isinstance(value, Lowered):
            lowered = dict(value.__dict__)
            lowered["constants"] = list(value.constants.values())
            state[name] = lowered
        else:
            state[name] = value
    return state


class _BySteps:
    """A table by step, with the steps' numbers in place of their identities."""

    def __init__(self, entries: dict[int, Any]) -> None:
        self.entries = entries


class _Writer(pickle.Pickler):
    """A pickler of the listed classes, and of nothing else."""

    def __init__(self, file: io.BytesIO, graph: Graph) -> None:
        super().__init__(file, protocol=5)
        self.inputs = {node: k for k, node in enumerate(graph.inputs)}
        self.places: dict[Where, int] = {}
        staged = _staged(graph)
        self.programs = {program: k for k, program in enumerate(_programs(staged))}
        for k, node in enumerate(staged):
            if node.where is not None:
                self.places.setdefault(node.where, k)

    def ordered(self, graph: Graph) -> list[Node]:
        """Return all nodes of a graph; nodes of a nested graph come before the node that has it."""
        found: dict[Node, None] = {}

        def enter(inner: Graph) -> None:
            for node in toposort((*inner.inputs, *inner.outputs)):
                for value in node.params.values():
                    for nested in _graphs(value):
                        if nested not in seen:
                            seen.add(nested)
                            enter(nested)
                found[node] = None

        seen = {graph}
        enter(graph)
        return list(found)

    def reducer_override(self, value: Any) -> Any:
        kind = type(value)
        # Most objects are of these three. Reductions refer to their values, and these to them.
        if kind is Expr and value.kind not in ("reduced", "scanned"):
            return Expr, (value.kind, value.dtype, value.args, value.data)
        if kind is Affine:
            return Affine, (value.terms, value.const)
        if kind is Access:
            return Access, (value.buffer, value.offset, value.guards, value.dynamic)
        if kind is Node:
            return self.node(value)
        if kind is Graph:
            return _graph, (value.inputs, value.outputs, value.name)
        if isinstance(value, np.ndarray):
            return _array, (from_any(value.dtype).name, value.shape, value.tobytes())
        if isinstance(value, np.generic):
            return _scalar, (from_any(value.dtype).name, value.tobytes())
        if kind is Literal:
            return _literal, (value.array,)
        if kind is TokenType:
            return _token, ()
        if kind is DType:
            return _dtype, (value.name,)
        if kind is TensorType:
            return _type, (value.shape, value.dtype)
        if kind is Primitive:
            return _primitive, (value.name,)
        if kind is LoopProgram:
            if value not in self.programs:
                raise _NotStorable(f"it holds {value!r}, which was not staged")
            return _program, (self.programs[value],)
        if kind in (FunctionType, BuiltinFunctionType):
            if value in _HELPERS.values():
                return NotImplemented
            raise _NotStorable(f"it holds the function {value!r}")
        if isinstance(value, type):
            _check(value.__module__, value.__qualname__)
            return NotImplemented
        if kind in (Dim, Atom, Where):
            raise _NotStorable(f"it holds {value!r}")
        if kind in (complex, slice, range):
            return NotImplemented
        _check(kind.__module__, kind.__qualname__)
        return NotImplemented

    def node(self, node: Node) -> Any:
        if node in self.inputs:
            return _input, (self.inputs[node],)
        place = -1
        if node.where is not None:
            found = self.places.get(node.where)
            if found is None:
                raise _NotStorable(f"{node} is at {node.where}, where nothing was staged")
            place = found
        return _node, (node.prim, node.inputs, dict(node.params), node.type, place)


def _check(module: str, name: str) -> None:
    if module in ("builtins",) and name in ("complex", "slice", "range"):
        return
    if module == __name__ and name == "_BySteps":
        return
    if not module.startswith(_MODULES) or "." in name:
        raise _NotStorable(f"it holds a {module}.{name}")


# Reading.


@timed("cache", lambda _, graph, *__: graph.name)
def load(key: str, graph: Graph, aliases: Mapping[int, int]) -> Template | None:
    """Return the template that is stored for a staged graph; None where there is none."""
    content = code_cache.read(_kind(), key)
    if content is None:
        counts["made"] += 1
        return None
    file = io.BytesIO(content)
    try:
        _, state = _Reader(file, graph).load()
        objects = _Reader(file, graph).load()
    except pickle.UnpicklingError as error:
        logger.info("the program of %s is made anew: %s", graph.name, error)
        counts["made"] += 1
        return None
    template = Template.__new__(Template)
    for name, value in state.items():
        if name == "lowered":
            constants = {id(buffer): (buffer, array) for buffer, array in value.pop("constants")}
            value = Lowered(**value, constants=constants)
        elif isinstance(value, _BySteps):
            value = {id(state["all_steps"][k]): v for k, v in value.entries.items()}
        template.__dict__[name] = value
    template.graph.name = graph.name
    template.restored({template.kernels[k].digest: code for k, code in objects.items()})
    counts["found"] += 1
    return template


class _Reader(pickle.Unpickler):
    """An unpickler of what `_Writer` writes; any other name is an error."""

    def __init__(self, file: io.BytesIO, graph: Graph) -> None:
        super().__init__(file)
        self.graph = graph
        self._staged: list[Node] = []

    @property
    def staged(self) -> list[Node]:
        if not self._staged:
            self._staged = _staged(self.graph)
        return self._staged

    def program(self, number: int) -> LoopProgram:
        """Return a loop program by its number among those of the staged nodes."""
        return _programs(self.staged)[number]

    def find_class(self, module: str, name: str) -> Any:
        if module == __name__ and name in ("_node", "_input", "_program"):
            return {"_node": self.node, "_input": self.graph.inputs.__getitem__, "_program": self.program}[name]
        if module == __name__ and name in _HELPERS:
            return _HELPERS[name]
        try:
            _check(module, name)
        except _NotStorable as error:
            raise pickle.UnpicklingError(f"a program's file names {module}.{name}") from error
        found = super().find_class(module, name)
        if not isinstance(found, type):
            raise pickle.UnpicklingError(f"a program's file names {module}.{name}, which is no class")
        return found

    def node(self, prim: Any, inputs: tuple[Node, ...], params: dict[str, Any], type: Any, place: int) -> Node:
        """Return a node as it was written, where `place` is the number of a staged node.

        `prim`, `inputs`, `params` and `type` are those of the node. Its place in the source is that
        of the staged node; it has none where `place` is negative.
        """
        if place < 0:
            where = None
        else:
            where = self.staged[place].where
        made = Node(prim, inputs, params, type, where)
        # No position in force may take the place of none.
        made.where = where
        return made


def _node(*arguments: Any) -> Any:
    raise AssertionError("a reader makes nodes itself")


def _input(number: int) -> Any:
    raise AssertionError("a reader knows inputs itself")


def _program(number: int) -> Any:
    raise AssertionError("a reader knows loop programs itself")


def _graph(inputs: tuple[Node, ...], outputs: tuple[Node, ...], name: str) -> Graph:
    return Graph(inputs, outputs, name)


def _array(kind: str, shape: tuple[int, ...], content: bytes) -> np.ndarray[Any, Any]:
    made: np.ndarray[Any, Any] = np.empty(shape, from_any(kind).numpy)
    if content:
        made.reshape(-1).view(np.uint8)[:] = np.frombuffer(content, np.uint8)
    return made


def _scalar(kind: str, content: bytes) -> Any:
    return np.frombuffer(content, np.uint8).copy().view(from_any(kind).numpy)[0]


def _literal(array: np.ndarray[Any, Any]) -> Literal:
    return Literal(array)


def _token() -> TokenType:
    return TOKEN


def _dtype(name: str) -> DType:
    return from_any(name)


def _type(shape: tuple[int, ...], element: DType) -> TensorType:
    return tensor_type(shape, element)


def _primitive(name: str) -> Primitive:
    if name not in REGISTRY:
        raise pickle.UnpicklingError(f"there is no primitive {name}")
    return REGISTRY[name]


_HELPERS: dict[str, Any] = {
    f.__name__: f
    for f in (_node, _input, _program, _graph, _array, _scalar, _literal, _token, _dtype, _type, _primitive)
}
