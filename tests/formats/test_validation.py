"""Graph files made to mislead: with a right digest, and with what no program could have written."""

from __future__ import annotations

import hashlib
import io
import json
import os
import resource
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel._src.compiler.ir.graph import Graph, input_node
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims.base import REGISTRY
from mycel.formats.exporting import model_of
from mycel.formats.graph_files import validation
from mycel.formats.graph_files.graph_file import GraphFileError, Model, write_model

F32 = {"type": ["float32", 3]}


def content_of(model: Model) -> tuple[dict[str, Any], bytes]:
    file = io.BytesIO()
    write_model(file, model)
    content = file.getvalue()
    length = int.from_bytes(content[12:20], "little")
    return json.loads(content[20 : 20 + length]), content[20 + length : -32]


def sealed(header: dict[str, Any], rest: bytes) -> bytes:
    text = json.dumps(header).encode()
    text += b" " * (-(20 + len(text)) % 64)
    body = b"\x89MYCELIR" + (1).to_bytes(4, "little") + len(text).to_bytes(8, "little") + text + rest
    return body + hashlib.sha256(body).digest()


def loaded(path: Path, header: dict[str, Any], rest: bytes = b"") -> Any:
    (path / "a.mindir").write_bytes(sealed(header, rest))
    return ms.load(str(path / "a.mindir"))


def program(nodes: list[Any], outputs: list[int], inputs: int = 1, kind: Any = None, **more: Any) -> dict[str, Any]:
    """The header of a graph that takes vectors of three numbers, or of `kind`."""
    main = {"name": "main", "inputs": [["x", kind or F32]] * inputs, "nodes": nodes, "outputs": outputs}
    header: dict[str, Any] = {
        "producer": "",
        "graph": len(more.get("graphs", [])),
        "states": [],
        "arguments": {"tuple": [{"argument": k} for k in range(inputs)]},
        "result": {"tuple": [{"tensor": k} for k in range(len(outputs))]},
        "writes": [],
        "conditions": [],
        "sizes": {},
        "user_info": {},
        "tensors": [],
        "dims": [],
        "graphs": [],
    }
    header.update(more)
    header["graphs"] = [*header["graphs"], main]
    return header


def test_a_sound_one_is_taken(tmp_path: Path) -> None:
    net = loaded(tmp_path, program([["exp", [0], {}], ["add", [1, 0], {}]], [2]))
    np.testing.assert_allclose(net(ms.Tensor([0.0, 1.0, 2.0]))[0].asnumpy(), np.exp([0, 1, 2]) + [0, 1, 2], rtol=1e-6)


FORGED = {
    "a primitive that is not there": ([["os.system", [0], {}]], "there is no operation 'os.system'"),
    "a parameter too many": ([["exp", [0], {"file": "/etc/passwd"}]], "exp takes the parameters"),
    "a flag that is a number": (
        [["reduce_sum", [0], {"axes": [0], "keepdims": 2}]],
        "2 is no value for its parameter keepdims",
    ),
    "an axis that is a flag": ([["softmax", [0], {"axis": True}]], "True is no value for its parameter axis"),
    "an axis from behind": ([["take_along", [0, 0], {"axis": -1}]], "-1 is no value for its parameter axis"),
    "an axis beyond": ([["reverse", [0], {"axes": [1]}]], "are not distinct axes"),
    "a slice beyond": ([["slice", [0], {"starts": [0], "stops": [4], "steps": [1]}]], "does not lie in axis 0"),
    "a step of nothing": ([["slice", [0], {"starts": [0], "stops": [3], "steps": [0]}]], "steps are positive"),
    "a size of 2**61": ([["broadcast_to", [0], {"shape": [1 << 61, 3]}]], "no memory can have more"),
    "a size beyond": ([["broadcast_to", [0], {"shape": [1 << 63, 3]}]], "is no value for its parameter shape"),
    "a reshape that makes elements": ([["reshape", [0], {"shape": [4]}]], "has 3 elements"),
    "indices of the wrong type": ([["take", [0, 0], {"axis": 0}]], "index|indices"),
    "too few operands": ([["add", [0], {}]], "operands"),
    "too many operands": ([["reshape", [0, 0], {"shape": [3]}]], "reshape takes 1 operands, not 2"),
    "a part of what has none": ([["get_item", [0], {"index": 0}]], "a part is taken of a value that has none"),
    "a part that is not there": (
        [["sort", [0], {"axis": 0, "descending": False}], ["get_item", [1], {"index": 2}]],
        "part 2 is taken of a value of 2",
    ),
    "a tuple as an operand": ([["sort", [0], {"axis": 0, "descending": False}], ["exp", [1], {}]], "exp takes tensors"),
    "a size that data decide": ([["positions", [0], {"count": 3}]], "mask must be a vector of booleans"),
    "a call outside of its recursion": (
        [["recur", [0], {"label": "f", "types": [{"type": ["float32", 1000]}]}], ["get_item", [1], {"index": 0}]],
        "is called outside of its recursion",
    ),
    "more values than there are": (
        [
            ["custom", [0], {"count": 2, "backward": None, "wanted": [], "rule": {"rule": [False, False]}}],
            ["get_item", [1], {"index": 0}],
        ],
        "custom gives 2 of 1 values",
    ),
    "an output that is no tensor": (
        [["sort", [0], {"axis": 0, "descending": False}]],
        "an output of its graph is no tensor",
    ),
    "an infinite number": (
        [["pad", [0, 0], {"low": [{"float": "0x1p99999"}], "high": [0], "interior": [0]}]],
        "makes no graph",
    ),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_operations(tmp_path: Path, name: str) -> None:
    nodes, message = FORGED[name]
    with pytest.raises(GraphFileError, match=message):
        loaded(tmp_path, program(nodes, [len(nodes)]))


def test_sizes_that_data_decide_are_refused(tmp_path: Path) -> None:
    header = program([["positions", [0], {"count": 2}]], [1], kind={"type": ["bool", 3]})
    with pytest.raises(GraphFileError, match="positions has no place in a file"):
        loaded(tmp_path, header)


def test_parts_that_do_not_fit(tmp_path: Path) -> None:
    small = {"name": "small", "inputs": [["x", {"type": ["float32", 2]}]], "nodes": [], "outputs": [0]}
    same = {"name": "same", "inputs": [["x", F32]], "nodes": [], "outputs": [0]}
    called = ["recur", [0], {"label": "f", "types": [{"type": ["float32", 999]}]}]
    sums = [
        called,
        ["get_item", [1], {"index": 0}],
        ["reduce_sum", [2], {"axes": [0], "keepdims": True}],
        ["add", [0, 3], {}],
    ]
    inner = {"name": "f", "inputs": [["x", F32]], "nodes": sums, "outputs": [4]}
    cases: list[tuple[list[Any], list[Any], str]] = [
        ([small], [["call", [0], {"graph": {"graph": 0}}]], "called graph 'small' takes"),
        (
            [same],
            [["while_loop", [0], {"test": {"graph": 0}, "body": {"graph": 0}, "carried": 1}]],
            "test must give one boolean",
        ),
        ([inner], [["recursion", [0], {"graph": {"graph": 0}, "label": "f"}]], "a call of 'f' gives"),
        (
            [same],
            [["custom", [0, 0], {"count": 1, "backward": {"graph": 0}, "wanted": [0], "rule": None}]],
            "the derivative of custom takes",
        ),
        ([same], [["call", [0], {"graph": 0}]], "0 is no value for its parameter graph"),
        (
            [same],
            [["kept_call", [0], {"graph": {"graph": 0}, "count": 1, "link": None}]],
            "kept_call has no place in a file",
        ),
    ]
    for graphs, nodes, message in cases:
        with pytest.raises(GraphFileError, match=message):
            loaded(tmp_path, program([*nodes, ["get_item", [1], {"index": 0}]], [2], graphs=graphs))


def symbol(name: str, low: Any = 1, high: Any = None) -> list[Any]:
    return [[1, [[["symbol", name, [], low, high], 1]]]]


def test_sizes_that_are_symbols_are_checked_as_numbers(tmp_path: Path) -> None:
    """Whether b lies below a is open while the file is read, so the slice is decided by the sizes
    that come.
    """
    dims = [symbol("a"), symbol("b")]
    inputs = [["x", {"type": ["float32", {"dim": 0}]}], ["y", {"type": ["float32", {"dim": 1}]}]]
    node = ["slice", [0], {"starts": [0], "stops": [{"dim": 1}], "steps": [1]}]
    header = program([node], [2], inputs=2, dims=dims, sizes={"a": 7, "b": 5})
    header["graphs"][-1]["inputs"] = inputs
    net = loaded(tmp_path, header)
    assert net(ms.ops.ones((7,)), ms.ops.ones((5,)))[0].shape == (5,)
    assert net(ms.ops.ones((9,)), ms.ops.ones((9,)))[0].shape == (9,)
    for run in (net, ms.jit(net)):
        with pytest.raises(ValueError, match="it was exported for sizes with|it is no graph for"):
            run(ms.ops.ones((3,)), ms.ops.ones((100_000,)))


def test_bounds_of_sizes_are_not_believed(tmp_path: Path) -> None:
    """The file says that a // 2 is at most 3, so that a slice of 3 * ... would fit."""
    half = [[1, [[["//", "", [{"dim": 0}, 2], 0, 3], 1]]]]
    node = ["slice", [0], {"starts": [0], "stops": [{"dim": 1}], "steps": [1]}]
    header = program([node], [1], kind={"type": ["float32", {"dim": 0}]}, dims=[symbol("a"), half], sizes={"a": 7})
    net = loaded(tmp_path, header)
    assert net(ms.ops.ones((40,)))[0].shape == (20,)
    for dims, sizes, message in (
        ([symbol("a"), symbol("a", 5)], {"a": 7}, "the size 'a' has two bounds"),
        ([symbol("a", -5)], {"a": 7}, "-5 is no whole number"),
        ([symbol("a", 8)], {"a": 7}, "has no example within its bounds"),
        ([symbol("a")], {}, "has no example within its bounds"),
        ([[[1, [[["symbol", "a", [], 1, None], 1 << 40]]]]], {"a": 7}, "is no whole number from 1 to 16"),
        ([symbol("a"), [[1, [[["^", "", [{"dim": 0}, 2], 0, 3], 1]]]]], {"a": 7}, "unknown operation"),
    ):
        with pytest.raises(GraphFileError, match=message):
            loaded(
                tmp_path,
                program([["exp", [0], {}]], [1], kind={"type": ["float32", {"dim": 0}]}, dims=dims, sizes=sizes),
            )
    inner = program(
        [["iota", [], {"shape": [{"dim": 0}], "axis": 0, "dtype": {"dtype": "int32"}}]], [1], dims=[symbol("free")]
    )
    with pytest.raises(GraphFileError, match="the size 'free' is none of an argument"):
        loaded(tmp_path, inner)


def test_a_few_bytes_that_name_without_end(tmp_path: Path) -> None:
    """Each ends at once, and takes no memory to speak of."""
    graphs: list[Any] = [{"name": "g", "inputs": [["x", F32]], "nodes": [["exp", [0], {}]], "outputs": [1]}]
    for k in range(60):
        nodes: list[Any] = [
            ["call", [0], {"graph": {"graph": k}}],
            ["get_item", [1], {"index": 0}],
            ["call", [2], {"graph": {"graph": k}}],
            ["get_item", [3], {"index": 0}],
        ]
        graphs.append({"name": "g", "inputs": [["x", F32]], "nodes": nodes, "outputs": [4]})
    doubled = program([["call", [0], {"graph": {"graph": 60}}], ["get_item", [1], {"index": 0}]], [2], graphs=graphs)
    # 31 dimensions of sums of eight symbols each are 8**31 terms.
    names = [f"s{k}" for k in range(8)]
    total = [[1, [[["symbol", name, [], 1, None], 1]]] for name in names]
    wide = program(
        [["reduce_sum", [0], {"axes": [0], "keepdims": False}]],
        [1],
        kind={"type": ["float32", *[{"dim": 0}] * 31]},
        dims=[total],
        sizes=dict.fromkeys(names, 1),
    )
    deep: list[Any] = [symbol("a")]
    for k in range(200):
        deep.append([[1, [[["//", "", [{"dim": k}, 2], 0, None], 1]]], [1, []]])
    nested = program([["exp", [0], {}]], [1], kind={"type": ["float32", {"dim": 0}]}, dims=deep, sizes={"a": 7})
    tensors = [
        {"type": "uint8", "shape": [4096], "start": 0, "name": "t", "kind": "tensor", "requires_grad": False}
    ] * 3
    twice = program([["exp", [0], {}]], [1], tensors=tensors)
    far = program([["exp", [0], {}]], [1], tensors=[{"type": "float64", "shape": [1 << 40], "start": 0}])
    begun = time.process_time()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for header, message in (
        (doubled, "unfold to more than"),
        (wide, "sums of too many terms"),
        (nested, "too deep"),
        (twice, "lie within those of another"),
        (far, "lies beyond the end"),
    ):
        with pytest.raises(GraphFileError, match=message):
            loaded(tmp_path, header, bytes(8192))
    assert time.process_time() - begun < 20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 20


def test_truth_values_are_zero_or_one(tmp_path: Path) -> None:
    header = program(
        [
            ["constant", [], {"value": {"array": 0}}],
            ["cast", [1], {"dtype": {"dtype": "int32"}}],
            ["select", [1, 0, 0], {}],
        ],
        [2, 3],
        tensors=[{"type": "bool", "shape": [3], "start": 0}],
    )
    net = loaded(tmp_path, header, b"\x00\x02\xff" + bytes(61))
    assert net(ms.Tensor([1.0, 2.0, 3.0]))[0].tolist() == [0, 1, 1]


def test_forms_of_arguments_and_results(tmp_path: Path) -> None:
    def with_form(**change: Any) -> dict[str, Any]:
        return {**program([["exp", [0], {}]], [1]), **change}

    for change, message in (
        ({"arguments": {"tuple": []}}, "its arguments hold 0 tensors"),
        ({"arguments": {"tuple": [{"argument": 1}]}}, "is no whole number from 0 to 0"),
        ({"arguments": {"__class__": []}}, "is no form of an argument"),
        ({"result": {"tensor": 1}}, "is no whole number from 0 to 0"),
        ({"result": {"state": 0}}, "is no whole number"),
        ({"result": {"dict": [["x"]]}}, "is no entry of a dictionary"),
        ({"result": {"float": 1}}, "is no form"),
        ({"writes": [[0]]}, "a write has not the 2 parts"),
        ({"states": [0]}, "is not one of the 0 things"),
        ({"sizes": []}, "its header has no sizes"),
        ({"graphs": [7]}, "a graph has no inputs, nodes or outputs"),
    ):
        with pytest.raises(GraphFileError, match=message):
            loaded(tmp_path, with_form(**change))


def test_a_file_cut_anywhere_is_told(tmp_path: Path) -> None:
    header, rest = content_of(model_of(nn.Dense(2, 3), (ms.Tensor(np.zeros((1, 2), np.float32)),)))
    whole = sealed(header, rest)
    for length in (*range(0, 70), *range(70, len(whole), 97)):
        (tmp_path / "a.mindir").write_bytes(whole[:length])
        with pytest.raises(GraphFileError, match="a.mindir"):
            ms.load(str(tmp_path / "a.mindir"))


def test_no_primitive_reaches_outside() -> None:
    """Every primitive with parameters has forms for them, and each name in the table is one of a
    primitive.
    """
    assert set(validation.FORMS) <= set(REGISTRY)
    for name, prim in REGISTRY.items():
        assert str(prim.infer.__module__).startswith("mycel."), name
        for sample in () if name in validation.NEVER_IN_FILES else prim.samples:
            assert set(sample.params) <= set(validation.FORMS.get(name, {})), name
    x = input_node(tensor_type((3,), ms.float32), "x")
    with pytest.raises(validation.Refusal, match="has no place in a file"):
        validation.check_model(
            Graph(
                [x],
                [
                    REGISTRY["get_item"].node(
                        REGISTRY["kept_call"].node(x, graph=Graph([x], [x]), count=1, link=None), index=0
                    )
                ],
            ),
            1,
            {},
        )


@pytest.mark.skipif(not hasattr(resource, "RLIMIT_AS"), reason="memory cannot be limited here")
def test_a_kilobyte_does_not_take_gigabytes(tmp_path: Path) -> None:
    header = program(
        [["broadcast_to", [0], {"shape": [1 << 31, 3]}], ["reduce_sum", [1], {"axes": [0, 1], "keepdims": False}]], [2]
    )
    (tmp_path / "a.mindir").write_bytes(sealed(header, b""))
    text = """
        import resource
        import mycel as ms
        ms.Tensor([1.0]) + 1
        size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize() + (1 << 30)
        resource.setrlimit(resource.RLIMIT_AS, (size, size))
        net = ms.load("a.mindir")
        print("loaded")
    """
    environment = {**os.environ, "PYTHONPATH": str(Path(ms.__file__).parent.parent)}
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text)], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert run.stdout == "loaded\n", run.stderr


def test_what_is_exported_is_taken(tmp_path: Path) -> None:
    """Networks with loops, recursion, sizes, hooks and gradients pass the same checks."""

    def power(x: Any, n: Any) -> Any:
        if n > 0:
            return x * power(x, n - 1)
        return x

    def loops(x: Any) -> Any:
        while x.sum() < 40:
            x = x * 2
        return x

    x = ms.Tensor(np.ones((2, 3), np.float32))
    free = ms.Tensor(shape=[None, 3], dtype=ms.float32)
    cases: list[tuple[Any, tuple[Any, ...], tuple[Any, ...]]] = [
        (loops, (x,), (x,)),
        (lambda x: ms.grad(loops)(x), (x,), (x,)),
        (lambda x, n: power(x, n), (x, ms.Tensor(3)), (x, ms.Tensor(3))),
        (lambda x: ops.concat([x, x[: x.shape[0] // 2]]).reshape((-1,))[::2], (free,), (x,)),
        (lambda x: ms.recompute(lambda v: ops.exp(v) * 2, x), (x,), (x,)),
        (lambda x: ops.svd(x, compute_uv=False), (x,), (x,)),
        (lambda x: ops.top_k(x, 2)[0] + ops.cumsum(x, 1)[:, :2], (x,), (x,)),
    ]
    for number, (function, given, actual) in enumerate(cases):
        path = tmp_path / f"{number}.mindir"
        ms.export(function, *given, file_name=str(path), file_format="MINDIR")
        mine, theirs = ms.load(str(path))(*actual), function(*actual)
        np.testing.assert_allclose(mine.asnumpy(), theirs.asnumpy(), rtol=1e-5)
