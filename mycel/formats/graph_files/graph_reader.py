"""The reader of graph files, whose format `mycel.formats.graph_files.graph_file` describes.

Reading executes nothing. It first checks the digest, which finds damage but no forgery, as it needs
no key. Then it checks every index and every form, infers every type anew, and has the whole graph
verified (`graph_files.validation`), so that a file can say nothing that a program could not.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from mycel._src.compiler.ir.dim_values import symbols_in
from mycel._src.compiler.ir.dimension_guards import Decisions, deciding
from mycel._src.compiler.ir.dims import Atom, Dim, make, maximum
from mycel._src.compiler.ir.graph import Graph, at, input_node
from mycel._src.compiler.ir.types import TOKEN, TensorType, tensor_type
from mycel._src.compiler.prims.base import REGISTRY, Literal
from mycel._src.compiler.prims.custom_derivatives import Rule
from mycel._src.foundation.dtype import from_any
from mycel._src.foundation.errors import Unsupported, VerifyError
from mycel.formats.graph_files.graph_file import MAGIC, VERSION, GraphFileError, Model, State
from mycel.formats.graph_files.loop_serialization import program_of
from mycel.formats.graph_files.validation import (
    DEEPEST,
    MOST,
    MOST_TERMS,
    Refusal,
    check_model,
    check_node,
    check_terms,
)

__all__ = ["check_loaded", "read_model"]

_DIGEST = 32
_KINDS = ("parameter", "tensor", "generator")
_CHUNK = 1 << 20
_MOST_POWER = 16
_HEADER = {
    "producer": str,
    "graph": int,
    "states": list,
    "writes": list,
    "conditions": list,
    "sizes": dict,
    "user_info": dict,
    "tensors": list,
    "dims": list,
    "graphs": list,
}


def read_model(file: BinaryIO, path: str) -> Model:
    """Return the model in a file that is open for reading.

    Raises GraphFileError, naming `path`, for any other file.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    head = file.read(20)
    if head[:8] == MAGIC and len(head) < 20:
        raise GraphFileError(f"{path}: damaged: it ends after {size} bytes, within its header")
    if head[:8] != MAGIC:
        raise GraphFileError(
            f"{path}: not a graph that Mycel wrote, and it has not the beginning of one that MindSpore exported, which "
            "`mycel.load` reads"
        )
    version = int.from_bytes(head[8:12], "little")
    if version != VERSION:
        raise GraphFileError(f"{path}: it has version {version} of the format, and this Mycel reads version {VERSION}")
    length = int.from_bytes(head[12:20], "little")
    if length > size - 20 - _DIGEST:
        raise GraphFileError(f"{path}: damaged: it ends after {size} bytes, within its header")
    _check_digest(file, size, path)
    file.seek(20)
    try:
        return _Reader(json.loads(file.read(length)), file, 20 + length, size - _DIGEST).model()
    except (GraphFileError, Refusal) as error:
        raise GraphFileError(f"{path}: {error}") from None
    except (OSError, MemoryError):
        raise
    except Exception as error:
        # The rules of operations and the arithmetic of sizes raise errors of their own.
        raise GraphFileError(f"{path}: what it holds makes no graph: {error or type(error).__name__}") from error


def check_loaded(model: Model, path: str) -> None:
    """Raise GraphFileError for a model that a well-formed file may hold but that no network could
    have made; see `graph_files.validation`.
    """
    given = len(model.graph.inputs) - len(model.states)
    counter = [0]
    places = {
        "argument": given,
        "state": len(model.states),
        "tensor": len(model.graph.outputs),
        "number": len(model.graph.outputs),
    }
    try:
        check_model(model.graph, given, model.sizes)
        _check_form(model.arguments, {"argument": given}, counter)
        _check_form(model.result, places)
    except (Refusal, GraphFileError) as error:
        raise GraphFileError(f"{path}: {error}") from None
    except (VerifyError, ValueError, TypeError, ArithmeticError, RecursionError) as error:
        raise GraphFileError(f"{path}: what it holds makes no graph: {error}") from error
    if type(model.arguments) is not dict or counter[0] != given:
        raise GraphFileError(f"{path}: its arguments hold {counter[0]} tensors, and its graph takes {given}")


def _check_digest(file: BinaryIO, size: int, path: str) -> None:
    digest = hashlib.sha256()
    file.seek(0)
    left = size - _DIGEST
    while left > 0:
        block = file.read(min(left, _CHUNK))
        if not block:
            break
        digest.update(block)
        left -= len(block)
    if digest.digest() != file.read(_DIGEST):
        raise GraphFileError(f"{path}: damaged: its content does not have the digest that was saved with it")


class _Reader:
    """The maker of the objects that a `header` describes, each once.

    The tensors lie in `file` from the position `start` to `end`.
    """

    def __init__(self, header: Mapping[str, Any], file: BinaryIO, start: int, end: int) -> None:
        self.header, self.file, self.start, self.end = header, file, start, end
        self.dims: list[Any] = []
        self.graphs: list[Graph] = []
        self.symbols: dict[str, Atom] = {}
        # Of each size and atom: how deeply it is nested, and its number of terms written out.
        self.depth: dict[Any, int] = {}
        self.weight: dict[Any, int] = {}
        self.literals: dict[int, Literal] = {}

    def model(self) -> Model:
        header = self.header
        if type(header) is not dict:
            raise GraphFileError("its header is no object")
        for name, kind in _HEADER.items():
            if type(header.get(name)) is not kind:
                raise GraphFileError(f"its header has no {name}, or one that is no {kind.__name__}")
        self.places()
        for terms in header["dims"]:
            self.dims.append(self.dim(terms))
        sizes = {name: _size(size) for name, size in header["sizes"].items()}
        decisions = Decisions(sizes)
        with at(None), deciding(decisions if sizes else None):
            for entry in header["graphs"]:
                self.graphs.append(self.graph(entry))
        graph = self.graphs[_index(header["graph"], self.graphs)]
        if len(set(map(repr, header["states"]))) != len(header["states"]):
            raise GraphFileError("a tensor is taken twice")
        states = [self.state(number) for number in header["states"]]
        given = len(graph.inputs) - len(states)
        if given < 0:
            raise GraphFileError(f"it has {len(states)} tensors for {len(graph.inputs)} inputs of its graph")
        for node, state in zip(graph.inputs[given:], states):
            if node.type != tensor_type(state.value.shape, from_any(state.value.dtype)):
                raise GraphFileError(
                    f"tensor {state.name!r} is {state.value.dtype}{list(state.value.shape)}, and the graph takes "
                    f"{node.type}"
                )
        writes = [(_index(s, states), _index(o, graph.outputs)) for s, o in _rows(header["writes"], 2, "a write")]
        for s, o in writes:
            if graph.inputs[given + s].type is not graph.outputs[o].type:
                raise GraphFileError(
                    f"output {o} of the graph does not fit tensor {states[s].name!r}, which it replaces"
                )
        conditions = {
            (self.dims[_index(d, self.dims)], bool(e)): bool(a)
            for d, e, a in _rows(header["conditions"], 3, "a condition")
        }
        if not all(isinstance(d, Dim) and set(symbols_in(d)) <= set(sizes) for d, _ in conditions):
            raise GraphFileError("a condition is about no size of an argument")
        # Decisions made while types were inferred hold whether the file lists them or not.
        conditions.update(decisions.guards)
        info = {str(k): str(v) for k, v in header["user_info"].items()}
        return Model(
            graph,
            states,
            header.get("arguments"),
            header.get("result"),
            writes,
            conditions,
            sizes,
            info,
            header["producer"],
        )

    def places(self) -> None:
        """Check that no two tensors share bytes, and that all lie within the file."""
        end = 0
        for entry in self.header["tensors"]:
            if type(entry) is not dict or type(entry.get("shape")) is not list or type(entry.get("type")) is not str:
                raise GraphFileError("a tensor has no type or no shape")
            start = _size(entry.get("start"))
            if start < end:
                raise GraphFileError("the bytes of a tensor lie within those of another")
            end = start + math.prod([_size(d) for d in entry["shape"]]) * from_any(entry["type"]).numpy.itemsize
            if self.start + end > self.end:
                raise GraphFileError(f"a tensor lies beyond the end of the file, in bytes {start} to {end}")

    def state(self, number: Any) -> State:
        entry = self.header["tensors"][_index(number, self.header["tensors"])]
        if entry.get("kind") not in _KINDS or type(entry.get("name")) is not str or "requires_grad" not in entry:
            raise GraphFileError(f"a tensor is of the unknown kind {entry.get('kind')!r:.100}, or has no name")
        return State(entry["name"], self.array(number), entry["kind"], bool(entry["requires_grad"]))

    def array(self, number: Any) -> NDArray[Any]:
        entry = self.header["tensors"][_index(number, self.header["tensors"])]
        kind = from_any(entry["type"]).numpy
        shape = tuple([_size(d) for d in entry["shape"]])
        length = math.prod(shape) * kind.itemsize
        array = np.empty(shape, kind)
        self.file.seek(self.start + _size(entry["start"]))
        if length and self.file.readinto(array.reshape(-1).view(np.uint8).data) != length:  # type: ignore[attr-defined]
            raise GraphFileError("the file grew shorter while it was read")
        if kind == np.bool_:
            # Other bytes than 0 and 1 are no truth values to compiled code.
            array = array.view(np.uint8) != 0
        return array.byteswap() if kind.byteorder == ">" else array

    def graph(self, entry: Any) -> Graph:
        if type(entry) is not dict or any(type(entry.get(k)) is not list for k in ("inputs", "nodes", "outputs")):
            raise GraphFileError("a graph has no inputs, nodes or outputs")
        nodes = [input_node(self.type(t), str(name)) for name, t in _rows(entry["inputs"], 2, "an input")]
        inputs = list(nodes)
        for name, numbers, given in _rows(entry["nodes"], 3, "an operation"):
            if type(numbers) is not list or type(given) is not dict:
                raise GraphFileError(f"an operation {name!r:.100} has no operands or no parameters")
            prim = REGISTRY.get(name) if type(name) is str else None
            if prim is None:
                raise GraphFileError(f"there is no operation {name!r:.100} in this version of Mycel")
            operands = [nodes[_index(i, nodes)] for i in numbers]
            params = {str(k): self.value(v) for k, v in given.items()}
            check_node(prim, operands, params)
            nodes.append(prim.node(*operands, **params))
        return Graph(inputs, [nodes[_index(o, nodes)] for o in entry["outputs"]], str(entry.get("name", "graph")))

    def type(self, value: Any) -> Any:
        found = self.value(value)
        if not isinstance(found, TensorType):
            raise GraphFileError(f"{value!r:.100} is not the type of an input")
        check_terms(found.shape, "an input")
        return found

    def value(self, value: Any) -> Any:
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is list:
            return tuple([self.value(v) for v in value])
        if type(value) is not dict or len(value) != 1:
            raise GraphFileError(f"{value!r:.100} is no parameter")
        ((kind, content),) = value.items()
        if kind in ("float", "complex", "set", "slice", "rule", "type") and type(content) is not (
            str if kind == "float" else list
        ):
            raise GraphFileError(f"{value!r:.100} is no parameter")
        if kind == "float":
            return float.fromhex(content)
        if kind == "complex":
            return complex(*[float.fromhex(part) for part in content])
        if kind == "dim":
            return self.dims[_index(content, self.dims)]
        if kind == "dtype":
            return from_any(str(content))
        if kind == "type":
            return tensor_type(tuple([self.length(v) for v in content[1:]]), from_any(str(content[0])))
        if kind == "token":
            return TOKEN
        if kind == "array":
            number = _index(content, self.header["tensors"])
            if number not in self.literals:
                self.literals[number] = Literal(self.array(number))
            return self.literals[number]
        if kind == "graph":
            return self.graphs[_index(content, self.graphs)]
        if kind == "scalar":
            return self.array(content)[()]
        if kind == "slice":
            return slice(*[self.value(v) for v in content])
        if kind == "set":
            return frozenset([self.value(v) for v in content])
        if kind == "program":
            return program_of(content, self.value)
        if kind == "rule":
            return _lost_rule(*content)
        raise GraphFileError(f"a parameter is of the unknown kind {kind!r:.100}")

    def length(self, value: Any) -> Any:
        found = self.value(value)
        return found if isinstance(found, Dim) else _size(found)

    def dim(self, terms: Any) -> Any:
        made: dict[Any, int] = {}
        depth = weight = 0
        for factor, atoms in _rows(terms, 2, "a size"):
            mono = [
                (self.atom(*a), _whole(power, 1, _MOST_POWER))
                for a, power in _rows(atoms, 2, "a size")
                for a in _rows([a], 5, "a size")
            ]
            made[tuple(sorted(mono, key=lambda e: repr(e[0])))] = _whole(factor, -MOST, MOST)
            depth = max([depth, *[self.depth.get(a, 0) for a, _ in mono]])
            weight += 1 + sum(self.weight.get(a, 1) for a, _ in mono)
            if weight > MOST_TERMS:
                raise GraphFileError("a size is a sum of too many terms")
        found = make(made)
        self.depth[found], self.weight[found] = depth, weight
        return found

    def atom(self, operator: str, name: str, operands: Any, low: int | None, high: int | None) -> Atom:
        """Return an atom of a size, checked.

        `operator` is "symbol" (with this `name` and the bounds `low` and `high`), "//", "%" or
        "max" of `operands`.
        """
        wanted = {"symbol": 0, "//": 2, "%": 2, "max": 2}.get(operator) if type(operator) is str else None
        if wanted is None or type(operands) is not list or len(operands) != wanted:
            raise GraphFileError(f"a size is made by the unknown operation {operator!r:.100}")
        if operator == "symbol":
            bounds = (_whole(low, 0, MOST), math.inf if high is None else _whole(high, 0, MOST))
            atom = Atom(str(name), operator, (), *bounds)
            before = self.symbols.setdefault(atom.name, atom)
            if before != atom:
                raise GraphFileError(f"the size {name!r:.100} has two bounds")
            return atom
        sizes = tuple([self.value(v) for v in operands])
        if not all(type(v) is int or isinstance(v, Dim) for v in sizes):
            raise GraphFileError(f"a size is made of {sizes!r:.100}")
        # Its bounds follow from its operands; those in the file are not believed.
        found = (
            maximum(*sizes) if operator == "max" else sizes[0] // sizes[1] if operator == "//" else sizes[0] % sizes[1]
        )
        atom = Atom("", operator, sizes, -math.inf, math.inf)
        for mono in found.terms if isinstance(found, Dim) else ():
            atom = next((a for a, _ in mono if a == atom), atom)
        self.depth[atom] = 1 + max(self.depth.get(v, 0) for v in sizes)
        self.weight[atom] = 1 + sum(self.weight.get(v, 1) for v in sizes)
        if self.depth[atom] > DEEPEST:
            raise GraphFileError("a size is made of sizes too deep")
        return atom


def _index(number: Any, items: Any) -> int:
    if type(number) is not int or not 0 <= number < len(items):
        raise GraphFileError(f"{number!r} is not one of the {len(items)} things that it counts")
    return number


def _rows(rows: Any, count: int, what: str) -> list[Any]:
    """Return `rows`, checked to be a list of lists of `count` entries each."""
    if type(rows) is not list or not all(type(row) is list and len(row) == count for row in rows):
        raise GraphFileError(f"{what} has not the {count} parts that it needs")
    return rows


def _size(number: Any) -> int:
    if type(number) is not int or not 0 <= number < 1 << 58:
        raise GraphFileError(f"{number!r:.100} is no size")
    return number


def _whole(number: Any, low: int, high: int) -> int:
    if type(number) is not int or not low <= number <= high:
        raise GraphFileError(f"{number!r:.100} is no whole number from {low} to {high}")
    return number


def _check_form(form: Any, places: Mapping[str, int], counter: list[int] | None = None, depth: int = 0) -> None:
    """Raise GraphFileError for an invalid form of arguments or results.

    `counter` counts arguments, which must come in order.
    """
    if type(form) is not dict:
        if form is not None and type(form) not in (bool, int, str):
            raise GraphFileError(f"{form!r:.100} is no form of an argument or result")
        return
    kind, content = next(iter(form.items())) if len(form) == 1 else ("", None)
    if kind in places:
        number = _whole(content, 0, places[kind] - 1)
        if counter is not None:
            if number != counter[0]:
                raise GraphFileError("its arguments are not in order")
            counter[0] += 1
    elif kind == "float" and type(content) is str:
        float.fromhex(content)
    elif kind in ("dict", "list", "tuple") and type(content) is list and depth < DEEPEST:
        for part in content:
            if kind == "dict" and (type(part) is not list or len(part) != 2 or type(part[0]) is not str):
                raise GraphFileError(f"{part!r:.100} is no entry of a dictionary")
            _check_form(part[1] if kind == "dict" else part, places, counter, depth + 1)
    else:
        raise GraphFileError(f"{form!r:.100} is no form of an argument or result")


def _lost_rule(is_hook: bool, removed: bool) -> Rule:
    rule = Rule(_lost, bool(is_hook))
    rule.removed = bool(removed)
    rule.refusal = "it was a function of the program that exported this graph, which files do not hold"
    return rule


def _lost(*_: Any) -> Any:
    raise Unsupported("a derivative that the exporting program gave itself is not in the file")
