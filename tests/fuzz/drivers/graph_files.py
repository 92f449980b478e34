"""Graphs in files: damaged bytes, and headers, sealed anew, that say something else.

What is loaded runs, with every access to memory checked.

Half of the cases are one primitive with the operands and parameters of its samples, the others are
small networks, with symbolic sizes, loops, recursion, and derivatives of their own.
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
import os
import random as random_module
import sys
from pathlib import Path
from typing import Any

if "pytest" not in sys.modules:
    os.environ.setdefault("MYCEL_CHECK", "bounds")

import numpy as np

import mycel as ms
from mycel import nn, ops
from mycel._src.compiler.ir.dims import Dim
from mycel._src.compiler.ir.graph import Graph, Node
from mycel._src.compiler.ir.printer import graphs_in
from mycel._src.compiler.prims.base import REGISTRY
from mycel.formats.encryption import Encrypted
from mycel.formats.exporting import LoadedGraph, model_of
from mycel.formats.graph_files.graph_file import Model, write_model
from mycel.formats.graph_files.validation import NEVER_IN_FILES
from tests.fuzz.drivers._damage import clear, damage
from tests.fuzz.drivers._objects import changed, places
from tests.prims.cases import cases, nodes_for

CORPUS = 150
MEMORY, SECONDS = 3 << 30, 40
KEY = b"0123456789abcdef"
# Loops that a file changed may run for ever, as those of a program may.
_LOOPS = ("while_loop", "while_grad", "recursion", "recur")
_SIZES = [
    {"dim": 0},
    {"dim": 1},
    {"dim": 2},
    {"graph": 0},
    {"graph": 1},
    {"array": 0},
    {"array": 1},
    {"dtype": "float32"},
    {"dtype": "int64"},
    {"dtype": "bool"},
    {"dtype": "uint8"},
    {"type": ["float32", 2, 3]},
    {"float": "0x1p9999"},
    {"scalar": 0},
    {"set": [0]},
    {"slice": [0, 1, 2]},
    {"rule": [True, False]},
    {"token": 0},
    {"complex": ["0x1p0", "0x1p0"]},
    "add",
    "slice",
    "gather_nd",
    "scatter_nd",
    "take",
    "custom",
    "kept_call",
    "positions",
    "call",
    "while_loop",
    "recur",
    "get_item",
    "broadcast_to",
    "pad",
    "iota",
    "constant",
    "float64",
    "symbol",
    "//",
    "%",
    "max",
]


class Loop(nn.Cell):
    def construct(self, x: Any, n: Any) -> Any:
        while x.sum() < n:
            x = x * 2 + 1
        if x[0, 0] > 3:
            x = x - 1
        return {"x": x, "parts": (x.max(), [x.shape[0], "text", 0.5, None])}


class Sizes(nn.Cell):
    def construct(self, x: Any, y: Any) -> Any:
        z = ops.concat([x, y], 0)
        return z.reshape((-1,))[: x.shape[0] * 2], z[1:] @ ops.ones((3, 2)), ops.pad(x, (0, 0, 1, 2)), z[::2]


class Conv(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.pool = nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.MaxPool2d(2, 2)
        self.table = nn.Embedding(5, 4)

    def construct(self, x: Any, i: Any) -> Any:
        return (
            self.pool(ops.relu(self.norm(self.conv(x)))),
            self.table(i).sum(0),
            ops.top_k(x.reshape((-1,)), 3),
            ops.cumsum(x, 1),
        )


@functools.cache
def models() -> tuple[bytes, ...]:
    """Files of sound networks."""
    free = ms.Tensor(shape=[None, 3], dtype=ms.float32)
    x = ms.Tensor(np.ones((2, 3), np.float32))
    found = [
        model_of(nn.Dense(3, 4, activation="relu"), (x,)),
        model_of(Loop(), (x, ms.Tensor(40.0))),
        model_of(Sizes(), (free, ms.Tensor(shape=[None, 3], dtype=ms.float32))),
        model_of(nn.Dense(3, 4), (free,)),
        model_of(Conv().set_train(False), (ms.Tensor(np.ones((1, 2, 6, 6), np.float32)), ms.Tensor([0, 4, 2]))),
        model_of(lambda x: ms.grad(lambda v: (ops.softmax(v) ** 2).sum())(x), (x,)),
    ]
    return tuple([_file(model) for model in found])


# Operators of users have no form in a file.
WRITTEN = sorted(set(REGISTRY) - {"loops"} - NEVER_IN_FILES)


@functools.cache
def primitive(name: str) -> tuple[bytes, ...]:
    """Files of graphs that are one primitive, for each of its samples."""
    found: list[bytes] = []
    for case in cases(REGISTRY[name]):
        inputs = nodes_for(case.draw())
        whole = case.primitive.node(*inputs, **case.sample.params)
        get = REGISTRY["get_item"]
        count = len(whole.type) if isinstance(whole.type, tuple) else 0
        outs = [get.node(whole, index=k) for k in range(count)] if count else [whole]
        arguments = {"tuple": [{"argument": k} for k in range(len(inputs))]}
        result = {"tuple": [{"tensor": k} for k in range(len(outs))]}
        found.append(_file(Model(Graph(inputs, outs, name), [], arguments, result)))
        if len(found) == 6:
            break
    return tuple(found)


def _file(model: Model) -> bytes:
    file = io.BytesIO()
    write_model(file, model)
    return file.getvalue()


def sealed(header: Any, rest: bytes) -> bytes:
    text = json.dumps(header).encode()
    text += b" " * (-(20 + len(text)) % 64)
    body = b"\x89MYCELIR" + (1).to_bytes(4, "little") + len(text).to_bytes(8, "little") + text + rest
    return body + hashlib.sha256(body).digest()


def setup() -> None:
    models()


def case(random: random_module.Random) -> tuple[bytes, bool]:
    content = random.choice(models())
    if random.random() < 0.6:
        content = random.choice(primitive(random.choice(WRITTEN)) or models())
    kind = random.random()
    if kind < 0.1:
        return damage(random, content), False
    length = int.from_bytes(content[12:20], "little")
    header, rest = json.loads(content[20 : 20 + length]), content[20 + length : -32]
    if kind < 0.2:
        text = damage(random, content[20 : 20 + length].rstrip(), 2)
        body = content[:12] + len(text).to_bytes(8, "little") + text + rest
        content = body + hashlib.sha256(body).digest()
    elif kind < 0.7:
        for _ in range(random.choice((1, 1, 2, 3))):
            _misled(random, header)
        content = sealed(header, rest)
    elif kind < 0.85:
        # What nodes say is what most can go wrong with.
        graph = random.choice(header["graphs"])
        if graph["nodes"] and random.random() < 0.8:
            at = random.randrange(len(graph["nodes"]))
            graph["nodes"][at] = changed(random, graph["nodes"][at], 2, tuple(_SIZES))
        else:
            graph.update(changed(random, graph, 2, tuple(_SIZES)) or {})
        content = sealed(header, rest)
    else:
        part = random.choice(sorted(header))
        header[part] = changed(random, header[part], 2, tuple(_SIZES))
        content = sealed(header, rest)
    if random.random() < 0.05:
        file = io.BytesIO()
        writer = Encrypted(file, KEY, "AES-GCM")
        writer.write(content)
        writer.close()
        return damage(random, file.getvalue()) if random.random() < 0.5 else file.getvalue(), True
    return content, False


_WORDS = (
    "set",
    "add",
    "mul",
    "min",
    "max",
    "N",
    "T",
    "C",
    "left",
    "right",
    "all",
    "root",
    "symbol",
    "//",
    "%",
    "float32",
    "float16",
    "bfloat16",
    "float64",
    "int32",
    "int64",
    "uint8",
    "bool",
    "complex64",
)
_SMALL = (0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 12, 24)
_LARGE = (-1, -2, 64, 100, 1000, 2**16, 2**31 - 1, 2**31, 2**32, 2**33 + 1, 2**53, 2**57, 2**58, 2**61, 2**62, 2**63)


def _misled(random: random_module.Random, header: Any) -> None:
    """Change a number, a flag or a word in place, so that the rest still fits its form."""
    graph = random.choice(header["graphs"])
    roots = [
        header["dims"],
        header["sizes"],
        header["tensors"],
        header["writes"],
        header["conditions"],
        graph["inputs"],
        graph["outputs"],
    ]
    roots += [graph["nodes"]] * 6 + [random.choice(graph["nodes"] or [[]])[1:]] * 6
    leaves = [
        (inside, key) for inside, key in places(random.choice(roots), []) if not isinstance(inside[key], (dict, list))
    ]
    lists = [inside[key] for inside, key in places(graph["nodes"], []) if isinstance(inside[key], list) and inside[key]]
    if lists and random.random() < 0.2:
        chosen = random.choice(lists)
        at = random.randrange(len(chosen))
        choice = random.randrange(4)
        if choice == 0:
            del chosen[at]
        elif choice == 1:
            chosen.insert(at, chosen[random.randrange(len(chosen))])
        elif choice == 2:
            random.shuffle(chosen)
        else:
            chosen[at] = chosen[random.randrange(len(chosen))]
        return
    if not leaves:
        return
    inside, key = random.choice(leaves)
    value = inside[key]
    if type(value) is bool:
        inside[key] = random.choice((not value, not value, 1, None))
    elif type(value) is int:
        choice = random.random()
        inside[key] = (
            value + random.choice((-1, 1, 1, 2)) if choice < 0.5 else random.choice(_SMALL if choice < 0.85 else _LARGE)
        )
    elif value is None:
        inside[key] = random.choice((*_SMALL, *_LARGE))
    elif isinstance(inside, list) and key == 0 and value in REGISTRY:
        inside[key] = random.choice(sorted(REGISTRY))
    else:
        inside[key] = random.choice(_WORDS)


def run(case: tuple[bytes, bool]) -> None:
    content, secret = case
    Path("a.mindir").write_bytes(content)
    net = ms.load("a.mindir", **({"dec_key": KEY} if secret else {}))
    graph = net.model.graph
    given = graph.input_types[: len(graph.inputs) - len(net.model.states)]
    kinds = _all_nodes(graph)
    if any(node.prim is not None and node.prim.name in _LOOPS for node in kinds):
        return
    sizes = dict(net.model.sizes)
    if any(_bytes(node.type, sizes) > 1 << 26 for node in kinds):
        return
    draw = np.random.default_rng(len(content))
    for shift in (0, 1) if sizes else (0,):
        tensors = []
        for kind in given:
            shape = [_number(d, {k: v + shift for k, v in sizes.items()}) for d in kind.shape]
            values = draw.integers(0, 4, shape).astype(kind.dtype.numpy) if kind.dtype.numpy.kind != "V" else None
            if values is None:
                return
            tensors.append(ms.Tensor.from_numpy(values))
        _run(net, tensors)


def _run(net: LoadedGraph, tensors: list[Any]) -> None:
    try:
        out = net(*_filled(net.model.arguments, tensors))
        for t in _tensors(out):
            assert t.asnumpy().nbytes <= 1 << 26
    except Exception as error:
        # What the graph's own values or sizes forbid is said by its operations.
        if (
            not isinstance(error, (ValueError, TypeError, IndexError, NotImplementedError, MemoryError))
            and type(error) is not RuntimeError
        ):
            raise
        if "defect of the compiler" in str(error):
            raise AssertionError(f"an access beyond a buffer: {error}") from error


def _filled(form: Any, tensors: list[Any]) -> Any:
    if type(form) is not dict:
        return form
    ((kind, content),) = form.items()
    if kind == "argument":
        return tensors[content]
    if kind == "float":
        return float.fromhex(content)
    if kind == "dict":
        return {name: _filled(part, tensors) for name, part in content}
    parts = [_filled(part, tensors) for part in content]
    return tuple(parts) if kind == "tuple" else parts


def _tensors(value: Any) -> list[Any]:
    if isinstance(value, ms.Tensor):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return [t for part in parts for t in _tensors(part)]


def _all_nodes(graph: Graph) -> list[Node]:
    found: list[Node] = []
    stack, seen = [graph], set()
    while stack:
        top = stack.pop()
        if top not in seen:
            seen.add(top)
            for node in (*top.inputs, *top.nodes):
                found.append(node)
                stack += [g for v in node.params.values() for g in graphs_in(v)] if node.prim is not None else []
    return found


def _number(size: Any, sizes: dict[str, int]) -> int:
    from mycel._src.compiler.ir.dim_values import evaluate

    return evaluate(size, sizes) if isinstance(size, Dim) else size


def _bytes(kind: Any, sizes: dict[str, int]) -> int:
    if isinstance(kind, tuple):
        return max([_bytes(k, sizes) for k in kind], default=0)
    total = kind.dtype.itemsize
    for size in kind.shape:
        total *= max(_number(size, sizes), 1)
    return total


def judge(error: BaseException, case: tuple[bytes, bool]) -> str:
    return clear(error, ("a.mindir", "the loaded network"))


def describe(case: tuple[bytes, bool]) -> str:
    content = case[0]
    length = int.from_bytes(content[12:20], "little")
    return repr(content[20 : 20 + length].rstrip() if length < len(content) else content)
